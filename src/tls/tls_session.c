/* A GnuTLS session for one connection: its making, its end, and what can be asked of it.
 *
 * No transport function is ever set, so GnuTLS can reach no socket.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <string.h>

#include "crypto/secret.h"
#include "mem/mem.h"
#include "tls/address.h"
#include "tls/session.h"
#include "tls/shared.h"

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
    gnutls_handshake_set_max_packet_length(session, LEAT_TLS_MESSAGE_DEFAULT);
    if (leat_tls_hook_up(tls) != LEAT_OK ||
        gnutls_priority_set(session, tls->config->priority) != 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->config->credentials) != 0) {
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
    leat_tls_forget_peer_params(tls);
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
    return leat_tls_aead_of(gnutls_cipher_get(tls->session), out);
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
