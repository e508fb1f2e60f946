/* fuzz/support/fake_tls.c: in place of GnuTLS behind tls/tls.h: a handshake of four empty messages
 * and two sets of transport parameters, so that a fuzzer is past it at once and every byte of it is
 * its own.
 *
 *     client            server
 *     1 (parameters) ->                      Initial
 *                    <- 2                    Initial
 *                    <- 8 (parameters), 20   Handshake
 *     20             ->                      Handshake
 *                    <- 4 …                  1-RTT: tickets
 *
 * Each message is a type, three bytes of length, and a body, as in TLS.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "mem/mem.h"
#include "tls/tls.h"

/* The rest of tls/ asks for it. */
leat_err leat_tls_set_failure(leat_tls *tls, leat_err err, uint64_t code, const char *text);

enum { HELLO = 1, ANSWER = 2, TICKET = 4, PARAMETERS = 8, FINISHED = 20, ROOM = 2048 };

struct leat_tls {
    leat_mem *mem;
    const leat_tls_config *config;
    const leat_tls_hooks *hooks;
    void *user;
    bool server, complete;
    leat_level read_level;
    leat_tls_failure failure;
    unsigned tickets_seen;
    size_t params_len, peer_len, in_len;
    uint8_t params[LEAT_TLS_PARAMS_MAX];
    uint8_t peer[ROOM];
    uint8_t in[ROOM];
};

leat_err leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out)
{
    leat_tls *tls = leat_mem_take_zeroed(mem, sizeof(*tls));

    *out = tls;
    if (!tls) {
        return LEAT_ERR_NOMEM;
    }
    tls->mem = mem;
    tls->config = params->config;
    tls->hooks = params->hooks;
    tls->user = params->user;
    tls->server = leat_tls_config_is_server(params->config);
    tls->params_len = params->transport_params.len;
    memcpy(tls->params, params->transport_params.data, tls->params_len);
    return LEAT_OK;
}

void leat_tls_free(leat_tls *tls)
{
    if (tls) {
        leat_mem_give(tls->mem, tls, sizeof(*tls));
    }
}

leat_err leat_tls_set_params(leat_tls *tls, leat_span params)
{
    tls->params_len = params.len;
    memcpy(tls->params, params.data, params.len);
    return LEAT_OK;
}

leat_err leat_tls_set_failure(leat_tls *tls, leat_err err, uint64_t code, const char *text)
{
    if (tls->failure.err == LEAT_OK) {
        tls->failure = (leat_tls_failure){err, code, text};
    }
    return tls->failure.err;
}

static leat_err unexpected(leat_tls *tls)
{
    return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_ERROR + 10, "unexpected message");
}

static leat_err internal(leat_tls *tls, leat_err err)
{
    return err == LEAT_OK
               ? LEAT_OK
               : leat_tls_set_failure(tls, err, LEAT_TE_INTERNAL_ERROR, leat_err_text(err));
}

static leat_err say(leat_tls *tls, leat_level level, uint8_t type, const uint8_t *body, size_t len)
{
    uint8_t message[4 + ROOM] = {type, 0, (uint8_t)(len >> 8), (uint8_t)len};

    if (len > 0) {
        memcpy(message + 4, body, len);
    }
    return internal(tls, tls->hooks->send(tls->user, level, message, 4 + len));
}

static leat_err secret(leat_tls *tls, leat_level level, leat_dir dir)
{
    static const uint8_t none[LEAT_SECRET_MAX];

    return internal(tls,
                    tls->hooks->secret(tls->user, level, dir, LEAT_AEAD_AES_128_GCM, none, 32));
}

leat_err leat_tls_start(leat_tls *tls)
{
    return tls->server ? LEAT_OK
                       : say(tls, LEAT_LEVEL_INITIAL, HELLO, tls->params, tls->params_len);
}

static leat_err take_params(leat_tls *tls, const uint8_t *body, size_t len)
{
    uint64_t code = tls->hooks->params(tls->user, body, len);

    if (code != LEAT_TE_NO_ERROR) {
        return leat_tls_set_failure(tls, LEAT_ERR_TLS, code, "parameters refused");
    }
    memcpy(tls->peer, body, len);
    tls->peer_len = len;
    return LEAT_OK;
}

static leat_err on_hello(leat_tls *tls, const uint8_t *body, size_t len)
{
    leat_err err = take_params(tls, body, len);

    err = err ? err : say(tls, LEAT_LEVEL_INITIAL, ANSWER, NULL, 0);
    err = err ? err : secret(tls, LEAT_LEVEL_HANDSHAKE, LEAT_TX);
    err = err ? err : secret(tls, LEAT_LEVEL_HANDSHAKE, LEAT_RX);
    err = err ? err : say(tls, LEAT_LEVEL_HANDSHAKE, PARAMETERS, tls->params, tls->params_len);
    err = err ? err : say(tls, LEAT_LEVEL_HANDSHAKE, FINISHED, NULL, 0);
    err = err ? err : secret(tls, LEAT_LEVEL_ONE_RTT, LEAT_TX);
    tls->read_level = LEAT_LEVEL_HANDSHAKE;
    return err;
}

static leat_err on_answer(leat_tls *tls)
{
    leat_err err = secret(tls, LEAT_LEVEL_HANDSHAKE, LEAT_TX);

    tls->read_level = LEAT_LEVEL_HANDSHAKE;
    return err ? err : secret(tls, LEAT_LEVEL_HANDSHAKE, LEAT_RX);
}

static leat_err on_finished(leat_tls *tls)
{
    leat_err err = LEAT_OK;

    if (!tls->server) {
        err = tls->peer_len == 0 ? unexpected(tls) : LEAT_OK;
        err = err ? err : say(tls, LEAT_LEVEL_HANDSHAKE, FINISHED, NULL, 0);
        err = err ? err : secret(tls, LEAT_LEVEL_ONE_RTT, LEAT_TX);
    }
    err = err ? err : secret(tls, LEAT_LEVEL_ONE_RTT, LEAT_RX);
    tls->complete = err == LEAT_OK;
    tls->read_level = LEAT_LEVEL_ONE_RTT;
    return err;
}

static leat_err on_message(leat_tls *tls, leat_level level, uint8_t type, const uint8_t *body,
                           size_t len)
{
    if (level == LEAT_LEVEL_INITIAL && tls->server && type == HELLO) {
        return on_hello(tls, body, len);
    }
    if (level == LEAT_LEVEL_INITIAL && !tls->server && type == ANSWER) {
        return on_answer(tls);
    }
    if (level == LEAT_LEVEL_HANDSHAKE && !tls->server && type == PARAMETERS && tls->peer_len == 0) {
        return take_params(tls, body, len);
    }
    if (level == LEAT_LEVEL_HANDSHAKE && type == FINISHED) {
        return on_finished(tls);
    }
    if (level == LEAT_LEVEL_ONE_RTT && !tls->server && type == TICKET) {
        tls->tickets_seen++;
        if (tls->hooks->ticket) {
            tls->hooks->ticket(tls->user, (leat_span){body, len}, false);
        }
        return LEAT_OK;
    }
    return unexpected(tls);
}

leat_err leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len)
{
    leat_err err = tls->failure.err;

    if (err == LEAT_OK && level != tls->read_level) {
        err = leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION, "wrong level");
    }
    while (err == LEAT_OK && len > 0) {
        size_t whole = 4;

        tls->in[tls->in_len++] = *data++;
        len--;
        if (tls->in_len >= 4) {
            whole += (size_t)tls->in[1] << 16 | (size_t)tls->in[2] << 8 | tls->in[3];
        }
        if (whole > ROOM) {
            return leat_tls_set_failure(tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_BUFFER_EXCEEDED,
                                        "a long message");
        }
        if (tls->in_len >= 4 && tls->in_len == whole) {
            tls->in_len = 0;
            err = on_message(tls, level, tls->in[0], tls->in + 4, whole - 4);
            if (err == LEAT_OK && len > 0 && level != tls->read_level) {
                err = unexpected(tls);
            }
        }
    }
    return err;
}

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

leat_err leat_tls_send_tickets(leat_tls *tls)
{
    static const uint8_t ticket[40] = {1, 2, 3};

    return say(tls, LEAT_LEVEL_ONE_RTT, TICKET, ticket, sizeof(ticket));
}

void leat_tls_set_early_tag(leat_tls *tls, uint64_t tag)
{
    (void)tls, (void)tag;
}

bool leat_tls_early_offered(const leat_tls *tls)
{
    (void)tls;
    return false;
}

bool leat_tls_early_accepted(const leat_tls *tls)
{
    (void)tls;
    return false;
}

bool leat_tls_resumed(const leat_tls *tls)
{
    (void)tls;
    return false;
}

unsigned leat_tls_tickets_seen(const leat_tls *tls)
{
    return tls->tickets_seen;
}

void leat_tls_leave(const leat_tls *tls, leat_tls_post *post)
{
    (void)tls, (void)post;
}

leat_span leat_tls_peer_params(const leat_tls *tls)
{
    return (leat_span){tls->peer, tls->peer_len};
}

leat_span leat_tls_alpn(const leat_tls *tls)
{
    (void)tls;
    return (leat_span){(const uint8_t *)"fuzz", 4};
}

leat_span leat_tls_sni(const leat_tls *tls)
{
    (void)tls;
    return (leat_span){NULL, 0};
}

bool leat_tls_aead(const leat_tls *tls, leat_aead *out)
{
    (void)tls;
    *out = LEAT_AEAD_AES_128_GCM;
    return true;
}

leat_span leat_tls_peer_certificate(const leat_tls *tls)
{
    (void)tls;
    return (leat_span){NULL, 0};
}

const char *leat_tls_verify_text(const leat_tls *tls)
{
    (void)tls;
    return "";
}

leat_err leat_tls_export(leat_tls *tls, const char *label, leat_span context, uint8_t *out,
                         size_t len)
{
    (void)tls, (void)label, (void)context;
    memset(out, 0, len);
    return LEAT_OK;
}

const char *leat_tls_alert_text(uint8_t alert)
{
    (void)alert;
    return "an alert";
}
