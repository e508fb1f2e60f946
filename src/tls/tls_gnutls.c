/* TLS 1.3 by GnuTLS, with the hooks that GnuTLS has for QUIC.
 *
 * In: CRYPTO bytes become whole messages (assemble.h), each of which is written to GnuTLS and the
 * handshake driven on, until GnuTLS wants the next. Out: GnuTLS calls back with messages, secrets
 * and extension 57 (0x39, the transport parameters); no transport function is ever set, so it can
 * reach no socket.
 *
 * Whatever goes wrong is written down once, in failure, by whoever sees it first: a hook of the
 * connection's, a check of ours inside a GnuTLS callback, or the mapping of a GnuTLS error to its
 * alert.
 *
 * Checks that GnuTLS does not make for QUIC stand in hook_message() (transport parameters and ALPN
 * must be there) and judge() (messages that QUIC does without).
 *
 * SPDX-License-Identifier: MIT
 */
#include <gnutls/crypto.h>
#include <leat/limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cursor.h"
#include "crypto/schedule.h"
#include "crypto/secret.h"
#include "mem/mem.h"
#include "tls/address.h"
#include "tls/early.h"
#include "tls/session.h"
#include "tls/shared.h"

enum { EXTENSION_QUIC_TRANSPORT_PARAMETERS = 0x39 }; /* RFC 9001 §8.2 */

_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_INITIAL == (int)LEAT_LEVEL_INITIAL, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_EARLY == (int)LEAT_LEVEL_ZERO_RTT, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE == (int)LEAT_LEVEL_HANDSHAKE, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_APPLICATION == (int)LEAT_LEVEL_ONE_RTT, "same levels");

/* ---- failures ---- */

leat_err leat_tls_set_failure(leat_tls *tls, leat_err err, uint64_t code, const char *text)
{
    if (tls->failure.err == LEAT_OK) {
        snprintf(tls->text, sizeof tls->text, "%s", text);
        tls->failure = (leat_tls_failure){.err = err, .code = code, .text = tls->text};
    }
    return tls->failure.err;
}

static leat_err fail_alert(leat_tls *tls, uint8_t alert, const char *text)
{
    return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_ERROR + alert, text);
}

/* For a GnuTLS callback: what it returns to make the handshake stop. */
static int fail_hook(leat_tls *tls, leat_err err)
{
    if (err == LEAT_OK) {
        return 0;
    }
    leat_tls_set_failure(tls, err, LEAT_TE_INTERNAL_ERROR, leat_err_text(err));
    return GNUTLS_E_INTERNAL_ERROR;
}

static leat_err fail_gnutls(leat_tls *tls, int rc)
{
    if (rc == GNUTLS_E_MEMORY_ERROR) {
        return leat_tls_set_failure(tls, LEAT_ERR_NOMEM, LEAT_TE_INTERNAL_ERROR,
                                    "TLS: out of memory");
    }
    int level;
    int alert = gnutls_error_to_alert(rc, &level);
    char text[sizeof tls->text];
    snprintf(text, sizeof text, "TLS: %s", gnutls_strerror(rc));
    return fail_alert(tls, alert < 0 ? LEAT_TLS_ALERT_INTERNAL_ERROR : (uint8_t)alert, text);
}

/* ---- what GnuTLS calls ---- */

static bool negotiated_aead(gnutls_cipher_algorithm_t cipher, leat_aead *out)
{
    switch (cipher) {
    case GNUTLS_CIPHER_AES_128_GCM:
        *out = LEAT_AEAD_AES_128_GCM;
        return true;
    case GNUTLS_CIPHER_AES_256_GCM:
        *out = LEAT_AEAD_AES_256_GCM;
        return true;
    case GNUTLS_CIPHER_CHACHA20_POLY1305:
        *out = LEAT_AEAD_CHACHA20_POLY1305;
        return true;
    default:
        return false;
    }
}

static int on_secret(gnutls_session_t session, gnutls_record_encryption_level_t level,
                     const void *rx, const void *tx, size_t len)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    leat_aead aead;
    if (!negotiated_aead(level == GNUTLS_ENCRYPTION_LEVEL_EARLY ? gnutls_early_cipher_get(session)
                                                                : gnutls_cipher_get(session),
                         &aead)) {
        return fail_hook(tls, LEAT_ERR_UNSUPPORTED);
    }
    LEAT_ASSERT(len == leat_aead_info_get(aead)->secret_len);
    leat_err err = LEAT_OK;
    if (level == GNUTLS_ENCRYPTION_LEVEL_EARLY) {
        if (tls->early_keyed) {
            return 0; /* of a second ClientHello: early data is refused by then */
        }
        tls->early_keyed = true;
    }
    if (rx) {
        err = tls->hooks->secret(tls->user, (leat_level)level, LEAT_RX, aead, rx, len);
        if (level != GNUTLS_ENCRYPTION_LEVEL_EARLY) {
            tls->read_level = (leat_level)level;
        }
    }
    if (tx && err == LEAT_OK) {
        err = tls->hooks->secret(tls->user, (leat_level)level, LEAT_TX, aead, tx, len);
    }
    return fail_hook(tls, err);
}

/* A ticket of ours goes out. */
static void note_issued(leat_tls *tls, leat_span message)
{
    leat_tls_ticket ticket;
    if (leat_tls_read_ticket(message, &ticket)) {
        leat_shared_issued(tls->shared, tls->ticket_slot, ticket.ticket,
                           leat_tls_early_context(tls), ticket.early);
    }
}

static int on_send(gnutls_session_t session, gnutls_record_encryption_level_t level,
                   gnutls_handshake_description_t type, const void *data, size_t len)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC) {
        return 0; /* has no place in QUIC (RFC 9001 §8.4) */
    }
    if (type == GNUTLS_HANDSHAKE_NEW_SESSION_TICKET && tls->shared) {
        note_issued(tls, (leat_span){data, len});
    }
    return fail_hook(tls, tls->hooks->send(tls->user, (leat_level)level, data, len));
}

/* GnuTLS would write alerts into the record layer; here they come out as failure.code. */
static int on_alert(gnutls_session_t session, gnutls_record_encryption_level_t level,
                    gnutls_alert_level_t severity, gnutls_alert_description_t alert)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    (void)level;
    if (severity == GNUTLS_AL_FATAL) {
        fail_alert(tls, (uint8_t)alert, leat_tls_alert_text((uint8_t)alert));
    }
    return 0;
}

static int on_params_send(gnutls_session_t session, gnutls_buffer_t out)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    tls->params_sent = true;
    int rc = gnutls_buffer_append_data(out, tls->params, tls->params_len);
    return rc < 0 ? rc : (int)tls->params_len;
}

/* Kept with a byte more than they have, so that empty ones are there too. */
static void forget_peer_params(leat_tls *tls)
{
    if (tls->peer_params.data) {
        leat_mem_give(tls->mem, tls->peer_params.data, tls->peer_params.size + 1);
    }
    tls->peer_params = (gnutls_datum_t){0};
}

static int on_params_recv(gnutls_session_t session, const unsigned char *data, size_t len)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    forget_peer_params(tls);
    tls->peer_params.data = leat_mem_take(tls->mem, len + 1);
    if (!tls->peer_params.data) {
        return fail_hook(tls, LEAT_ERR_NOMEM);
    }
    tls->peer_params.size = (unsigned)len;
    memcpy(tls->peer_params.data, data, len);
    if (!tls->hooks->params) {
        return 0;
    }
    uint64_t code = tls->hooks->params(tls->user, data, len);
    if (code == 0) {
        return 0;
    }
    leat_tls_set_failure(tls, LEAT_ERR_TLS, code, "transport parameters refused");
    return GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER;
}

static void copy_sni(leat_tls *tls)
{
    size_t len = sizeof tls->sni;
    unsigned type = 0;
    int rc = gnutls_server_name_get(tls->session, tls->sni, &len, &type, 0);
    bool good = rc == 0 && type == GNUTLS_NAME_DNS && len <= LEAT_TLS_NAME_MAX;
    tls->sni_len = good ? (uint8_t)len : 0;
}

/* The peer's ClientHello or EncryptedExtensions must have brought what QUIC cannot do without (RFC
 * 9001 §8.1, §8.2). */
static leat_err check_peer_hello(leat_tls *tls)
{
    gnutls_datum_t alpn;
    if (gnutls_alpn_get_selected_protocol(tls->session, &alpn) != 0) {
        return fail_alert(tls, LEAT_TLS_ALERT_NO_APPLICATION_PROTOCOL,
                          "no application protocol in common (ALPN)");
    }
    if (!tls->peer_params.data) {
        return fail_alert(tls, LEAT_TLS_ALERT_MISSING_EXTENSION,
                          "the peer sent no transport parameters");
    }
    return LEAT_OK;
}

/* A server looks at the ClientHello here, before it answers. (A client cannot do likewise: GnuTLS
 * calls this for EncryptedExtensions before it reads them. See deliver().) */
static int hook_message(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                        const gnutls_datum_t *message)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    (void)message;
    (void)when;
    if (!incoming || type != GNUTLS_HANDSHAKE_CLIENT_HELLO) {
        return 0;
    }
    copy_sni(tls);
    return check_peer_hello(tls) == LEAT_OK ? 0 : GNUTLS_E_INTERNAL_ERROR;
}

static void put_hex(char **to, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *(*to)++ = digits[bytes[i] >> 4];
        *(*to)++ = digits[bytes[i] & 15];
    }
}

/* Set on every session: GnuTLS's default would itself write the file that SSLKEYLOGFILE names. */
static int on_keylog(gnutls_session_t session, const char *label, const gnutls_datum_t *secret)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    char line[64 + 1 + 64 + 1 + 2 * 64 + 1];
    size_t label_len = strlen(label);
    gnutls_datum_t client;
    gnutls_datum_t server;
    gnutls_session_get_random(session, &client, &server);
    if (!tls->config->keylog || label_len > 64 || client.size != 32 || secret->size > 64) {
        return 0;
    }
    char *to = line;
    memcpy(to, label, label_len);
    to += label_len;
    *to++ = ' ';
    put_hex(&to, client.data, client.size);
    *to++ = ' ';
    put_hex(&to, secret->data, secret->size);
    *to = '\0';
    tls->config->keylog(tls->config->keylog_user, line);
    leat_wipe(line, sizeof line);
    return 0;
}

/* ---- making one ---- */

static leat_err set_alpn(leat_tls *tls, const leat_tls_params *params)
{
    gnutls_datum_t own[LEAT_TLS_ALPN_MAX];
    const gnutls_datum_t *list = tls->config->alpn;
    size_t count = tls->config->alpn_count;
    if (params->alpn) {
        if (!leat_tls_alpn_list(params->alpn, params->alpn_count, own)) {
            return LEAT_ERR_INVALID;
        }
        list = own;
        count = params->alpn_count;
    }
    unsigned flags = GNUTLS_ALPN_MANDATORY;
    if (tls->config->server) {
        flags |= GNUTLS_ALPN_SERVER_PRECEDENCE;
    }
    return gnutls_alpn_set_protocols(tls->session, list, (unsigned)count, flags) == 0
               ? LEAT_OK
               : LEAT_ERR_NOMEM;
}

/* The name is kept for the certificate's check; what is not an address goes into SNI too. The dot
 * that ends a fully qualified name belongs in neither (RFC 6066 §3). */
static leat_err set_name(leat_tls *tls, const char *name)
{
    if (!name) {
        return LEAT_OK;
    }
    size_t len = strlen(name);
    if (len > 1 && name[len - 1] == '.') {
        len--;
    }
    if (len > LEAT_TLS_NAME_MAX) {
        return LEAT_ERR_INVALID;
    }
    memcpy(tls->name, name, len);
    tls->name[len] = '\0';
    uint8_t address[16];
    if (len == 0 || leat_tls_parse_address(tls->name, address) > 0) {
        return LEAT_OK;
    }
    int rc = gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, tls->name, len);
    if (rc == GNUTLS_E_MEMORY_ERROR) {
        return LEAT_ERR_NOMEM;
    }
    return rc == 0 ? LEAT_OK : LEAT_ERR_INVALID;
}

/* What a server needs besides the flag, to take early data. The size is QUIC's (RFC 9001 §4.6.1).
 */
static void set_up_early(leat_tls *tls, const leat_tls_params *params)
{
    tls->shared = params->shared;
    tls->early_tag = params->early_tag;
    if (tls->early_wanted) {
        gnutls_record_set_max_early_data_size(tls->session, UINT32_MAX);
        gnutls_anti_replay_enable(tls->session, leat_shared_anti_replay(tls->shared));
    }
}

/* A session that GnuTLS cannot read any more is passed over. */
static void set_up_session(leat_tls *tls, leat_span session)
{
    tls->resumable =
        session.len > 0 && gnutls_session_set_data(tls->session, session.data, session.len) == 0;
}

static leat_err set_up(leat_tls *tls, const leat_tls_params *params)
{
    gnutls_session_t session = tls->session;
    gnutls_session_set_ptr(session, tls);
    gnutls_handshake_set_secret_function(session, on_secret);
    gnutls_handshake_set_read_function(session, on_send);
    gnutls_alert_set_read_function(session, on_alert);
    gnutls_session_set_keylog_function(session, on_keylog);
    if (tls->config->server) {
        gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CLIENT_HELLO, GNUTLS_HOOK_POST,
                                           hook_message);
    }
    gnutls_handshake_set_max_packet_length(session, LEAT_TLS_MESSAGE_DEFAULT);
    if (gnutls_priority_set(session, tls->config->priority) != 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->config->credentials) != 0 ||
        gnutls_session_ext_register(
            session, "quic_transport_parameters", EXTENSION_QUIC_TRANSPORT_PARAMETERS,
            GNUTLS_EXT_TLS, on_params_recv, on_params_send, NULL, NULL, NULL,
            GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE) != 0) {
        return LEAT_ERR_NOMEM;
    }
    if (tls->config->server) {
        set_up_early(tls, params);
    } else {
        set_up_session(tls, params->session);
    }
    leat_err err = set_alpn(tls, params);
    if (err == LEAT_OK && !tls->config->server) {
        err = set_name(tls, params->server_name);
    }
    if (err == LEAT_OK) {
        err = leat_tls_set_params(tls, params->transport_params);
    }
    return err;
}

static bool wants_early(const leat_tls_params *params)
{
    return params->early_data &&
           (params->config->server ? params->shared != NULL && params->config->tickets > 0
                                   : params->session.len > 0);
}

leat_err leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out)
{
    *out = NULL;
    leat_tls *tls = leat_mem_take_zeroed(mem, sizeof *tls);
    if (!tls) {
        return LEAT_ERR_NOMEM;
    }
    tls->mem = mem;
    tls->config = params->config;
    tls->hooks = params->hooks;
    tls->user = params->user;
    tls->read_level = LEAT_LEVEL_INITIAL;
    tls->failure.text = "";
    tls->verify_text = "certificate: none yet";
    unsigned flags = GNUTLS_NO_SIGNAL | GNUTLS_NONBLOCK | GNUTLS_NO_AUTO_REKEY |
                     GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_END_OF_EARLY_DATA |
                     GNUTLS_KEY_SHARE_TOP;
    if (tls->config->tickets == 0 && params->session.len == 0) {
        flags |= GNUTLS_NO_TICKETS;
    }
    tls->early_wanted = wants_early(params);
    if (tls->early_wanted) {
        flags |= GNUTLS_ENABLE_EARLY_DATA;
    }
    leat_err err = LEAT_ERR_NOMEM;
    if (gnutls_init(&tls->session, flags | (tls->config->server ? GNUTLS_SERVER : GNUTLS_CLIENT)) ==
        0) {
        err = set_up(tls, params);
    }
    if (err != LEAT_OK) {
        leat_tls_free(tls);
        return err;
    }
    *out = tls;
    return LEAT_OK;
}

void leat_tls_free(leat_tls *tls)
{
    if (!tls) {
        return;
    }
    if (tls->session) {
        gnutls_deinit(tls->session);
    }
    leat_tls_assembler_reset(&tls->in, tls->mem);
    forget_peer_params(tls);
    leat_mem *mem = tls->mem;
    leat_wipe(tls, sizeof *tls);
    leat_mem_give(mem, tls, sizeof *tls);
}

leat_err leat_tls_set_params(leat_tls *tls, leat_span transport_params)
{
    if (tls->params_sent) {
        return LEAT_ERR_STATE;
    }
    if (transport_params.len == 0 || transport_params.len > LEAT_TLS_PARAMS_MAX) {
        return LEAT_ERR_INVALID;
    }
    memcpy(tls->params, transport_params.data, transport_params.len);
    tls->params_len = (uint16_t)transport_params.len;
    return LEAT_OK;
}

/* ---- the handshake ---- */

/* Runs GnuTLS until it wants the next message, is done, or fails. */
static leat_err drive(leat_tls *tls)
{
    if (tls->complete) {
        return LEAT_OK;
    }
    int rc = gnutls_handshake(tls->session);
    if (tls->failure.err != LEAT_OK) {
        return tls->failure.err;
    }
    if (rc == GNUTLS_E_AGAIN) {
        return LEAT_OK;
    }
    if (rc < 0) {
        return fail_gnutls(tls, rc);
    }
    tls->complete = true;
    if (!tls->config->server && leat_tls_resumed(tls)) {
        tls->verify_text = "certificate: as when the session began";
    }
    return LEAT_OK;
}

leat_err leat_tls_start(leat_tls *tls)
{
    if (tls->failure.err != LEAT_OK || tls->config->server) {
        return tls->failure.err;
    }
    return drive(tls);
}

/* What can be said about a message by its header. */
static leat_err judge(leat_tls *tls, const uint8_t header[LEAT_TLS_MESSAGE_HEADER])
{
    uint32_t len = leat_tls_message_len(header);
    if (tls->complete) {
        const char *text;
        uint64_t code = leat_tls_post_judge(tls->config->server, header[0], len, &text);
        return code ? leat_tls_set_failure(tls, LEAT_ERR_TLS, code, text) : LEAT_OK;
    }
    if (header[0] == LEAT_TLS_END_OF_EARLY_DATA || header[0] == LEAT_TLS_KEY_UPDATE) {
        return fail_alert(tls, LEAT_TLS_ALERT_UNEXPECTED_MESSAGE,
                          "a TLS message that QUIC does not use"); /* RFC 9001 §6, §8.3 */
    }
    if (len > LEAT_TLS_MESSAGE_DEFAULT) {
        return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_BUFFER_EXCEEDED,
                                    "TLS handshake message too long");
    }
    return LEAT_OK;
}

/* A ClientHello must not ask for TLS's middlebox compatibility mode (RFC 9001 §8.4): header,
 * version (2), random (32), then the session ID's length. */
static bool has_session_id(leat_span message)
{
    const size_t at = LEAT_TLS_MESSAGE_HEADER + 2 + 32;
    return message.data[0] == LEAT_TLS_CLIENT_HELLO && message.len > at && message.data[at] != 0;
}

/* Tickets of another version are sealed with another key, so that none is taken for its own (RFC
 * 9369 §5). That of version 1 is the key as it was given. */
static void key_of_version(uint8_t key[LEAT_TLS_TICKET_KEY], uint32_t version)
{
    uint8_t salt[4], root[32];

    if (version <= 1) {
        return;
    }
    leat_store_u32(salt, version);
    leat_hkdf_extract(LEAT_HASH_SHA256, salt, sizeof salt, key, LEAT_TLS_TICKET_KEY, root);
    leat_hkdf_expand_label(LEAT_HASH_SHA256, root, "tickets", key, LEAT_TLS_TICKET_KEY);
    leat_wipe(root, sizeof root);
}

/* The ticket key is chosen by the ticket that the client shows, and by the version. */
static leat_err set_ticket_key(leat_tls *tls, leat_span client_hello)
{
    uint8_t bytes[LEAT_TLS_TICKET_KEY];
    gnutls_datum_t key = tls->config->ticket_key;
    leat_tls_hello hello;
    leat_tls_read_hello(client_hello, &hello);
    tls->offered = (gnutls_datum_t){(unsigned char *)hello.ticket.data, (unsigned)hello.ticket.len};
    /* GnuTLS would accept before it asks for another ClientHello, which refuses (RFC 8446 §4.2.10).
     */
    tls->early_possible = tls->early_wanted && leat_tls_has_share(&hello, tls->config);
    if (tls->config->tickets == 0 || tls->ticket_key_set) {
        return LEAT_OK;
    }
    if (tls->shared) {
        leat_shared_ticket_key(tls->shared, hello.ticket, bytes, &tls->ticket_slot);
    } else {
        LEAT_ASSERT(key.size == sizeof bytes);
        memcpy(bytes, key.data, sizeof bytes);
    }
    if (tls->hooks->version) {
        key_of_version(bytes, tls->hooks->version(tls->user, hello.params));
    }
    key = (gnutls_datum_t){bytes, sizeof bytes};
    int rc = gnutls_session_ticket_enable_server(tls->session, &key);
    leat_wipe(bytes, sizeof bytes);
    tls->ticket_key_set = true;
    return rc == 0 ? LEAT_OK : fail_gnutls(tls, rc);
}

/* TLS's number of a group, 0 for one that is not in the list. */
static leat_tls_group group_number(gnutls_group_t group)
{
    switch (group) {
    case GNUTLS_GROUP_SECP256R1:
        return LEAT_TLS_GROUP_P256;
    case GNUTLS_GROUP_SECP384R1:
        return LEAT_TLS_GROUP_P384;
    case GNUTLS_GROUP_X25519:
        return LEAT_TLS_GROUP_X25519;
    default:
        return (leat_tls_group)0;
    }
}

/* Client: a ticket was read. */
static leat_err take_ticket(leat_tls *tls, leat_span message)
{
    leat_tls_ticket ticket;
    gnutls_datum_t session;
    tls->tickets_seen++;
    if (!leat_tls_read_ticket(message, &ticket) ||
        (ticket.early && ticket.early_max != UINT32_MAX)) {
        return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION,
                                    "a ticket with another early data size than QUIC's");
    }
    if (tls->hooks->ticket && gnutls_session_get_data2(tls->session, &session) == 0) {
        /* With early data a client of GnuTLS 3.7 does not get over a HelloRetryRequest: a server
         * that takes another group than the one a share is sent of would ask for that again. */
        bool share = (unsigned)group_number(gnutls_group_get(tls->session)) ==
                     (unsigned)tls->config->groups[0];
        tls->hooks->ticket(tls->user, (leat_span){session.data, session.size},
                           ticket.early && share);
        leat_wipe(session.data, session.size);
        gnutls_free(session.data);
    }
    return LEAT_OK;
}

/* Gives GnuTLS one message, and lets it go on. */
static leat_err push(leat_tls *tls, leat_span message)
{
    int rc = gnutls_handshake_write(tls->session, (gnutls_record_encryption_level_t)tls->read_level,
                                    message.data, message.len);
    if (tls->failure.err != LEAT_OK) {
        return tls->failure.err;
    }
    if (rc < 0 && gnutls_error_is_fatal(rc)) {
        return fail_gnutls(tls, rc);
    }
    return tls->complete ? LEAT_OK : drive(tls);
}

static leat_err deliver_hello(leat_tls *tls, leat_span message)
{
    if (has_session_id(message)) {
        return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION,
                                    "ClientHello with a legacy session ID");
    }
    leat_err err = set_ticket_key(tls, message);
    if (err == LEAT_OK) {
        leat_tls_early_enter(tls);
        err = push(tls, message);
        leat_tls_early_enter(NULL);
    }
    tls->offered = (gnutls_datum_t){0};
    return err;
}

static leat_err deliver(leat_tls *tls, leat_span message)
{
    if (tls->config->server && message.data[0] == LEAT_TLS_CLIENT_HELLO) {
        return deliver_hello(tls, message);
    }
    if (tls->complete) { /* nothing but a ticket passes judge() */
        leat_err posted = push(tls, message);
        return posted == LEAT_OK ? take_ticket(tls, message) : posted;
    }
    leat_err err = push(tls, message);
    if (err == LEAT_OK && message.data[0] == LEAT_TLS_ENCRYPTED_EXTENSIONS) {
        err = check_peer_hello(tls);
    }
    return err;
}

static leat_err check_level(leat_tls *tls, leat_level level)
{
    if (level == tls->read_level) {
        return LEAT_OK;
    }
    return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION,
                                "TLS bytes at the wrong encryption level");
}

leat_err leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len)
{
    while (tls->failure.err == LEAT_OK && len > 0) {
        if (check_level(tls, level) != LEAT_OK) {
            break;
        }
        if (!leat_tls_assemble_header(&tls->in, &data, &len)) {
            break;
        }
        if (judge(tls, tls->in.header) != LEAT_OK) {
            break;
        }
        leat_span message;
        leat_err err = leat_tls_assemble_body(&tls->in, tls->mem, &data, &len, &message);
        if (err != LEAT_OK) {
            return leat_tls_set_failure(tls, err, LEAT_TE_INTERNAL_ERROR, leat_err_text(err));
        }
        if (!message.data) {
            break;
        }
        err = deliver(tls, message);
        leat_tls_assembler_reset(&tls->in, tls->mem);
        if (err != LEAT_OK) {
            break;
        }
    }
    return tls->failure.err;
}

leat_err leat_tls_send_tickets(leat_tls *tls)
{
    if (!tls->complete || !tls->config->server) {
        return LEAT_ERR_STATE;
    }
    if (tls->config->tickets == 0) {
        return LEAT_OK;
    }
    int rc = gnutls_session_ticket_send(tls->session, tls->config->tickets, 0);
    if (tls->failure.err != LEAT_OK) {
        return tls->failure.err;
    }
    return rc < 0 ? fail_gnutls(tls, rc) : LEAT_OK;
}

void leat_tls_leave(const leat_tls *tls, leat_tls_post *post)
{
    LEAT_ASSERT(tls->complete);
    leat_tls_post_init(post, tls->config->server);
    post->tickets = tls->tickets_seen;
    if (!tls->in.message) { /* between messages, or within a header */
        memcpy(post->header, tls->in.header, sizeof post->header);
        post->have = (uint8_t)tls->in.have;
        return;
    }
    post->left = LEAT_TLS_MESSAGE_HEADER + leat_tls_message_len(tls->in.header) - tls->in.have;
    post->tickets++;
}

/* ---- questions ---- */

bool leat_tls_complete(const leat_tls *tls)
{
    return tls->complete;
}

leat_level leat_tls_read_level(const leat_tls *tls)
{
    return tls->read_level;
}

leat_tls_failure leat_tls_fail(const leat_tls *tls)
{
    return tls->failure;
}

void leat_tls_set_early_tag(leat_tls *tls, uint64_t tag)
{
    tls->early_tag = tag;
}

bool leat_tls_early_offered(const leat_tls *tls)
{
    return !tls->config->server && tls->early_keyed;
}

bool leat_tls_early_accepted(const leat_tls *tls)
{
    return tls->early_wanted &&
           (gnutls_session_get_flags(tls->session) & GNUTLS_SFLAGS_EARLY_DATA) != 0;
}

bool leat_tls_resumed(const leat_tls *tls)
{
    return gnutls_session_is_resumed(tls->session) != 0;
}

unsigned leat_tls_tickets_seen(const leat_tls *tls)
{
    return tls->tickets_seen;
}

leat_span leat_tls_peer_params(const leat_tls *tls)
{
    return (leat_span){tls->peer_params.data, tls->peer_params.size};
}

leat_span leat_tls_alpn(const leat_tls *tls)
{
    gnutls_datum_t alpn;
    if (gnutls_alpn_get_selected_protocol(tls->session, &alpn) != 0) {
        return (leat_span){0};
    }
    return (leat_span){alpn.data, alpn.size};
}

leat_span leat_tls_sni(const leat_tls *tls)
{
    return (leat_span){(const uint8_t *)tls->sni, tls->sni_len};
}

bool leat_tls_aead(const leat_tls *tls, leat_aead *out)
{
    return negotiated_aead(gnutls_cipher_get(tls->session), out);
}

leat_span leat_tls_peer_certificate(const leat_tls *tls)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls->session, &count);
    if (!chain || count == 0) {
        return (leat_span){0};
    }
    return (leat_span){chain[0].data, chain[0].size};
}

const char *leat_tls_verify_text(const leat_tls *tls)
{
    return tls->verify_text;
}

leat_err leat_tls_export(leat_tls *tls, const char *label, leat_span context, uint8_t *out,
                         size_t len)
{
    if (!tls->complete) {
        return LEAT_ERR_STATE;
    }
    int rc = gnutls_prf_rfc5705(tls->session, strlen(label), label, context.len,
                                (const char *)context.data, len, (char *)out);
    return rc == 0 ? LEAT_OK : LEAT_ERR_CRYPTO;
}

const char *leat_tls_alert_text(uint8_t alert)
{
    const char *text = gnutls_alert_get_name((gnutls_alert_description_t)alert);
    return text ? text : "unknown alert";
}
