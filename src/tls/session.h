/* tls/session.h: the inside of a leat_tls, for the GnuTLS backend's own files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_SESSION_H
#define LEAT_TLS_SESSION_H

#include <gnutls/gnutls.h>
#include <leat/shared.h>

#include "tls/assemble.h"
#include "tls/config.h"
#include "tls/message.h"
#include "tls/tls.h"

struct leat_tls {
    leat_mem *mem;
    const leat_tls_config *config;
    const leat_tls_hooks *hooks;
    void *user;
    gnutls_session_t session; /* its user pointer leads back here */
    leat_tls_assembler in;    /* the message that is coming in */
    leat_level read_level;
    bool complete;
    bool params_sent;
    bool early_wanted;   /* server: early data may be accepted; client: it may be offered */
    bool early_keyed;    /* the early secret was passed on */
    bool early_possible; /* server: nothing in the ClientHello stands against it */
    bool resumable;      /* client: a session was given that GnuTLS could read */
    uint8_t ticket_slot; /* server: of the key in use */
    bool ticket_key_set;
    unsigned tickets_seen;
    uint64_t early_tag;
    leat_shared *shared;    /* server; NULL: the config's key, and no early data */
    gnutls_datum_t offered; /* the ticket in the ClientHello that is being worked on */
    leat_tls_failure failure;
    const char *verify_text;
    gnutls_datum_t peer_params; /* from mem */
    uint16_t params_len;
    uint8_t sni_len;
    char name[LEAT_TLS_NAME_MAX + 1];
    char sni[LEAT_TLS_NAME_MAX + 1];
    char text[320]; /* of the failure */
    uint8_t params[LEAT_TLS_PARAMS_MAX];
};

/* tls_gnutls.c: the handshake. */

/* Records why the handshake dies; the first reason stands. Returns failure.err. */
leat_err leat_tls_set_failure(leat_tls *tls, leat_err err, uint64_t code, const char *text);
/* The same for what TLS has an alert for. */
leat_err leat_tls_fail_alert(leat_tls *tls, uint8_t alert, const char *text);

/* tls_hooks.c: what GnuTLS calls. */

/* Has GnuTLS call them for this session. LEAT_ERR_NOMEM. */
leat_err leat_tls_hook_up(leat_tls *tls);
/* The peer's ClientHello or EncryptedExtensions must have brought what QUIC cannot do without (RFC
 * 9001 s8.1, s8.2). */
leat_err leat_tls_check_peer_hello(leat_tls *tls);
void leat_tls_forget_peer_params(leat_tls *tls);
/* False: none that QUIC uses here. */
bool leat_tls_aead_of(gnutls_cipher_algorithm_t cipher, leat_aead *out);

#endif
