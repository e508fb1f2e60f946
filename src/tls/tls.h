/* tls/tls.h: the narrow door to TLS 1.3 (RFC 9001 §4). Behind it is GnuTLS (tls_gnutls.c,
 * tls_hooks.c, tls_session.c); the connection sees only this.
 *
 * The life of a leat_tls:
 *   1. leat_tls_new() with this end's transport parameters.
 *   2. Client: leat_tls_start() sends the ClientHello.
 *   3. leat_tls_recv() with every CRYPTO byte that comes, in order, each once, by level, in pieces
 *      of any size. From inside it (and from leat_tls_start) the hooks are called: bytes to send,
 *      secrets, the peer's parameters.
 *   4. leat_tls_complete() turns true. The getters may be asked from then on (some earlier, as
 *      they say); what they return lives until leat_tls_free().
 *   5. A server with tickets: leat_tls_send_tickets().
 *   6. leat_tls_leave() hands post-handshake bytes over to the small parser of tls/post.h; then
 *      leat_tls_free(). Secrets have been passed on before: nothing in crypto/ depends on TLS.
 *
 * Errors: a call that fails leaves the handshake dead, and leat_tls_fail() says why: a transport
 * error code for CONNECTION_CLOSE (CRYPTO_ERROR 0x100 + alert, or another of RFC 9000 §20.1) and a
 * text. Later calls return the same again. No hook frees the leat_tls.
 *
 * Memory: the TLS library allocates during a handshake, the declared exception of DESIGN.md's rule
 * 3; what this file keeps itself comes from leat_mem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_TLS_H
#define LEAT_TLS_TLS_H

#include <leat/base.h>
#include <leat/buf.h>
#include <leat/shared.h>
#include <leat/tls.h>
#include <leat/transport_error.h>

#include "crypto/aead.h"
#include "crypto/level.h"
#include "tls/post.h"

typedef struct leat_tls leat_tls;

/* What TLS asks of the connection. Pointers are good during the call only. */
typedef struct leat_tls_hooks {
    /* A traffic secret of the algorithm's secret_len bytes. Comes before anything of that level is
     * sent or may be read. Not called for INITIAL. */
    leat_err (*secret)(void *user, leat_level level, leat_dir dir, leat_aead aead,
                       const uint8_t *secret, size_t len);
    /* Handshake bytes to carry in CRYPTO frames of a level, in order. */
    leat_err (*send)(void *user, leat_level level, const uint8_t *data, size_t len);
    /* The peer's transport parameters, as received, before this end answers: a server may still
     * call leat_tls_set_params() in here. Returns 0, or the transport error code to close with. May
     * be NULL. The bytes are not authentic before the handshake is complete. May come twice, with
     * the same bytes, at a server that asked for another ClientHello. */
    uint64_t (*params)(void *user, const uint8_t *data, size_t len);
    /* Server: the version of QUIC that the connection will have, seeing these transport parameters
     * of a ClientHello (empty: there are none). A ticket is good for one version (RFC 9369 §5). May
     * be NULL: all tickets are of version 1. */
    uint32_t (*version)(void *user, leat_span params);
    /* Client: a ticket came. `session` is what leat_tls_params.session takes for a later handshake;
     * early: the ticket allows early data. May be NULL: tickets are then only counted. */
    void (*ticket)(void *user, leat_span session, bool early);
} leat_tls_hooks;

typedef struct leat_tls_params {
    const leat_tls_config
        *config;             /* says client or server; borrowed for the life of the leat_tls */
    const char *server_name; /* client: name or address that the user asked for; copied */
    const char *const *alpn; /* client: instead of the config's list; NULL: the config's */
    size_t alpn_count;
    leat_span transport_params; /* this end's, encoded; copied; LEAT_TLS_PARAMS_MAX bytes at most */
    const leat_tls_hooks *hooks; /* borrowed */
    void *user;
    leat_span session; /* client: from the ticket hook of an earlier one, to resume it; or empty. It
                          must be what the hook gave, byte by byte: GnuTLS reads it unchecked. */
    bool early_data;   /* client: offer early data with that; server: accept it */
    leat_shared *shared; /* server: ticket keys and replay protection; NULL: the config's key, and
                            no early data. Borrowed */
    uint64_t early_tag;  /* server: see leat_tls_set_early_tag() */
} leat_tls_params;

enum { LEAT_TLS_PARAMS_MAX = 1024, LEAT_TLS_NAME_MAX = 255 };

/* LEAT_ERR_NOMEM, LEAT_ERR_INVALID (no ALPN, a name or parameters too long). */
leat_err leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out);

/* Wipes and frees. NULL is allowed. */
void leat_tls_free(leat_tls *tls);

/* Replaces this end's transport parameters. LEAT_ERR_STATE once they are sent, LEAT_ERR_INVALID
 * when they are too long. */
leat_err leat_tls_set_params(leat_tls *tls, leat_span transport_params);

/* Client: sends the first flight. Server: nothing to do, LEAT_OK. LEAT_ERR_TLS. */
leat_err leat_tls_start(leat_tls *tls);

/* Takes CRYPTO bytes. LEAT_OK; LEAT_ERR_TLS; LEAT_ERR_CERTIFICATE when the peer's certificate is
 * not accepted; LEAT_ERR_NOMEM; or what a hook returned. Bytes at a level that TLS is past, or has
 * not come to, are PROTOCOL_VIOLATION (RFC 9001 §4.1.3); a message above LEAT_TLS_MESSAGE_DEFAULT
 * of leat/limits.h is CRYPTO_BUFFER_EXCEEDED. */
leat_err leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len);

/* True from when the handshake is complete in the sense of TLS (RFC 9001 §4.1.1): this end has sent
 * its Finished and verified the peer's. */
bool leat_tls_complete(const leat_tls *tls);

/* The level at which leat_tls_recv() wants bytes now. */
leat_level leat_tls_read_level(const leat_tls *tls);

typedef struct leat_tls_failure {
    leat_err err;     /* LEAT_OK: nothing failed */
    uint64_t code;    /* transport error code for CONNECTION_CLOSE */
    const char *text; /* for a person and for the reason phrase; lives as long as the leat_tls */
} leat_tls_failure;

leat_tls_failure leat_tls_fail(const leat_tls *tls);

/* Server: writes `config.tickets` session tickets by the send hook, level ONE_RTT. Complete only.
 */
leat_err leat_tls_send_tickets(leat_tls *tls);

/* Server: the conditions of early data besides protocol and server name, as a hash. A ticket is
 * good for early data where the tag is the one that was set when it was issued. */
void leat_tls_set_early_tag(leat_tls *tls, uint64_t tag);

/* Client: early data was offered (known after leat_tls_start()). */
bool leat_tls_early_offered(const leat_tls *tls);

/* Early data is accepted. A server knows after the ClientHello, a client from when the params hook
 * is called; its word is authentic when the handshake is complete. */
bool leat_tls_early_accepted(const leat_tls *tls);

/* An earlier session is resumed: the peer sends no certificate. */
bool leat_tls_resumed(const leat_tls *tls);

/* Client: how many session tickets have come. */
unsigned leat_tls_tickets_seen(const leat_tls *tls);

/* Makes `post` take up the ONE_RTT CRYPTO bytes where this one stands. Complete only (asserted). */
void leat_tls_leave(const leat_tls *tls, leat_tls_post *post);

/* The peer's transport parameters; empty before they have come. */
leat_span leat_tls_peer_params(const leat_tls *tls);

/* The chosen ALPN protocol; empty before. */
leat_span leat_tls_alpn(const leat_tls *tls);

/* Server: the name that the client asked for (SNI); empty when it named none. */
leat_span leat_tls_sni(const leat_tls *tls);

/* The negotiated cipher. False before the ServerHello. */
bool leat_tls_aead(const leat_tls *tls, leat_aead *out);

/* The peer's certificate, DER; empty when there is none. */
leat_span leat_tls_peer_certificate(const leat_tls *tls);

/* What verification found, in words: "certificate: verified", "certificate: not verified (verify is
 * off)", "certificate: expired". Never NULL. */
const char *leat_tls_verify_text(const leat_tls *tls);

/* Keying material of RFC 5705 / RFC 8446 §7.5. Complete only: LEAT_ERR_STATE. */
leat_err leat_tls_export(leat_tls *tls, const char *label, leat_span context, uint8_t *out,
                         size_t len);

/* "certificate expired" for 45; "unknown alert" for what is not known. Static. */
const char *leat_tls_alert_text(uint8_t alert);

/* What leat_tls_config_server/client were given. */
bool leat_tls_config_is_server(const leat_tls_config *config);
unsigned leat_tls_config_tickets(const leat_tls_config *config);
bool leat_tls_config_has_alpn(const leat_tls_config *config, leat_span protocol);
/* Client: what it checks of a certificate: 1 the chain, 2 the name. A session may be resumed with
 * no more bits than those under which it began, for then nothing is checked. */
unsigned leat_tls_config_trust(const leat_tls_config *config);

#endif
