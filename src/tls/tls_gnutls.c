/* TLS 1.3 by GnuTLS, with the hooks that GnuTLS has for QUIC: how a handshake goes on.
 *
 * In: CRYPTO bytes become whole messages (assemble.h), each of which is written to GnuTLS and the
 * handshake driven on, until GnuTLS wants the next. Out: GnuTLS calls back (tls_hooks.c). What it
 * works on is made in tls_session.c.
 *
 * Whatever goes wrong is written down once, in failure, by whoever sees it first: a hook of the
 * connection's, a check of ours inside a GnuTLS callback, or the mapping of a GnuTLS error to its
 * alert. judge() refuses messages that QUIC does without.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cursor.h"
#include "crypto/schedule.h"
#include "crypto/secret.h"
#include "tls/early.h"
#include "tls/session.h"
#include "tls/shared.h"

/* ---- failures ---- */

leat_err leat_tls_set_failure(leat_tls *tls, leat_err err, uint64_t code, const char *text)
{
    if (tls->failure.err == LEAT_OK) {
        snprintf(tls->text, sizeof tls->text, "%s", text);
        tls->failure = (leat_tls_failure){.err = err, .code = code, .text = tls->text};
    }
    return tls->failure.err;
}

leat_err leat_tls_fail_alert(leat_tls *tls, uint8_t alert, const char *text)
{
    return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_ERROR + alert, text);
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
    return leat_tls_fail_alert(tls, alert < 0 ? LEAT_TLS_ALERT_INTERNAL_ERROR : (uint8_t)alert,
                               text);
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
        return leat_tls_fail_alert(tls, LEAT_TLS_ALERT_UNEXPECTED_MESSAGE,
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
        (ticket.early && ticket.early_max != LEAT_TLS_EARLY_DATA_MAX)) {
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
        err = leat_tls_check_peer_hello(tls);
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
    (void)leat_tls_post_recv(post, tls->in.message ? tls->in.message : tls->in.header, tls->in.have,
                             NULL); /* a fault in it is said with the next bytes */
}
