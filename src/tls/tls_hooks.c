/* What GnuTLS calls while it works on a handshake: with secrets, messages, alerts, extension 57
 * (0x39, the transport parameters) and lines of the key log, which go on to the connection's hooks.
 *
 * Checks that GnuTLS does not make for QUIC stand in hook_message(): transport parameters and ALPN
 * must be there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"
#include "mem/mem.h"
#include "tls/early.h"
#include "tls/session.h"
#include "tls/shared.h"

enum { EXTENSION_QUIC_TRANSPORT_PARAMETERS = 0x39 }; /* RFC 9001 §8.2 */

_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_INITIAL == (int)LEAT_LEVEL_INITIAL, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_EARLY == (int)LEAT_LEVEL_ZERO_RTT, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE == (int)LEAT_LEVEL_HANDSHAKE, "same levels");
_Static_assert((int)GNUTLS_ENCRYPTION_LEVEL_APPLICATION == (int)LEAT_LEVEL_ONE_RTT, "same levels");

/* For a GnuTLS callback: what it returns to make the handshake stop. */
static int fail_hook(leat_tls *tls, leat_err err)
{
    if (err == LEAT_OK) {
        return 0;
    }
    leat_tls_set_failure(tls, err, LEAT_TE_INTERNAL_ERROR, leat_err_text(err));
    return GNUTLS_E_INTERNAL_ERROR;
}

bool leat_tls_aead_of(gnutls_cipher_algorithm_t cipher, leat_aead *out)
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
    if (!leat_tls_aead_of(level == GNUTLS_ENCRYPTION_LEVEL_EARLY ? gnutls_early_cipher_get(session)
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
        leat_tls_fail_alert(tls, (uint8_t)alert, leat_tls_alert_text((uint8_t)alert));
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
void leat_tls_forget_peer_params(leat_tls *tls)
{
    if (tls->peer_params.data) {
        leat_mem_give(tls->mem, tls->peer_params.data, tls->peer_params.size + 1);
    }
    tls->peer_params = (gnutls_datum_t){0};
}

static int on_params_recv(gnutls_session_t session, const unsigned char *data, size_t len)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    leat_tls_forget_peer_params(tls);
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
leat_err leat_tls_check_peer_hello(leat_tls *tls)
{
    gnutls_datum_t alpn;
    if (gnutls_alpn_get_selected_protocol(tls->session, &alpn) != 0) {
        return leat_tls_fail_alert(tls, LEAT_TLS_ALERT_NO_APPLICATION_PROTOCOL,
                                   "no application protocol in common (ALPN)");
    }
    if (!tls->peer_params.data) {
        return leat_tls_fail_alert(tls, LEAT_TLS_ALERT_MISSING_EXTENSION,
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
    return leat_tls_check_peer_hello(tls) == LEAT_OK ? 0 : GNUTLS_E_INTERNAL_ERROR;
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

leat_err leat_tls_hook_up(leat_tls *tls)
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
    int rc = gnutls_session_ext_register(
        session, "quic_transport_parameters", EXTENSION_QUIC_TRANSPORT_PARAMETERS, GNUTLS_EXT_TLS,
        on_params_recv, on_params_send, NULL, NULL, NULL,
        GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE);
    return rc == 0 ? LEAT_OK : LEAT_ERR_NOMEM;
}
