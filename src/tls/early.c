/* tls/early.c: see tls/early.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/early.h"

#include "base/assert.h"
#include "base/cursor.h"
#include "tls/session.h"
#include "tls/shared.h"

/* Extensions one after the other; false at the end, or when the bytes are not extensions. */
static bool next_extension(leat_cursor *c, uint16_t *type, leat_span *body)
{
    if (leat_cursor_left(c) == 0) {
        return false;
    }
    *type = leat_cursor_u16(c);
    body->len = leat_cursor_u16(c);
    body->data = leat_cursor_bytes(c, body->len);
    return leat_cursor_ok(c);
}

static bool begin_extensions(leat_cursor *c, leat_cursor *list)
{
    size_t len = leat_cursor_u16(c);
    const uint8_t *data = leat_cursor_bytes(c, len);

    leat_cursor_init(list, data, leat_cursor_ok(c) ? len : 0);
    return leat_cursor_ok(c);
}

bool leat_tls_read_ticket(leat_span message, leat_tls_ticket *out)
{
    leat_cursor c, list;
    leat_span body;
    uint16_t type;

    *out = (leat_tls_ticket){.early = false};
    leat_cursor_init(&c, message.data, message.len);
    leat_cursor_skip(&c, LEAT_TLS_MESSAGE_HEADER + 4 + 4); /* lifetime, age_add */
    leat_cursor_skip(&c, leat_cursor_u8(&c));              /* nonce */
    out->ticket.len = leat_cursor_u16(&c);
    out->ticket.data = leat_cursor_bytes(&c, out->ticket.len);
    if (!leat_cursor_ok(&c) || !begin_extensions(&c, &list)) {
        return false;
    }
    while (next_extension(&list, &type, &body)) {
        if (type == LEAT_TLS_EARLY_DATA && body.len == 4) {
            leat_cursor_init(&c, body.data, body.len);
            out->early = true;
            out->early_max = leat_cursor_u32(&c);
        }
    }
    return true;
}

static leat_span ticket_of(leat_span pre_shared_key)
{
    leat_cursor c;
    leat_span ticket;

    leat_cursor_init(&c, pre_shared_key.data, pre_shared_key.len);
    leat_cursor_u16(&c);
    ticket.len = leat_cursor_u16(&c);
    ticket.data = leat_cursor_bytes(&c, ticket.len);
    return leat_cursor_ok(&c) ? ticket : (leat_span){NULL, 0};
}

void leat_tls_read_hello(leat_span message, leat_tls_hello *out)
{
    leat_cursor c, list;
    leat_span body;
    uint16_t type;

    *out = (leat_tls_hello){.ticket = {NULL, 0}};
    leat_cursor_init(&c, message.data, message.len);
    leat_cursor_skip(&c, LEAT_TLS_MESSAGE_HEADER + 2 + 32); /* version, random */
    leat_cursor_skip(&c, leat_cursor_u8(&c));               /* session ID */
    leat_cursor_skip(&c, leat_cursor_u16(&c));              /* ciphers */
    leat_cursor_skip(&c, leat_cursor_u8(&c));               /* compression */
    if (!begin_extensions(&c, &list)) {
        return;
    }
    while (next_extension(&list, &type, &body)) {
        if (type == LEAT_TLS_PRE_SHARED_KEY) {
            out->ticket = ticket_of(body);
        } else if (type == LEAT_TLS_KEY_SHARE) {
            out->shares = body;
        } else if (type == LEAT_TLS_QUIC_PARAMS) {
            out->params = body;
        }
    }
}

bool leat_tls_has_share(const leat_tls_hello *hello, const leat_tls_config *config)
{
    leat_cursor c;

    leat_cursor_init(&c, hello->shares.data, hello->shares.len);
    leat_cursor_u16(&c);
    while (leat_cursor_ok(&c) && leat_cursor_left(&c) > 0) {
        uint16_t group = leat_cursor_u16(&c);

        leat_cursor_skip(&c, leat_cursor_u16(&c));
        for (size_t i = 0; leat_cursor_ok(&c) && i < config->group_count; i++) {
            if ((uint16_t)config->groups[i] == group) {
                return true;
            }
        }
    }
    return false;
}

/* ---- replay protection ---- */

/* GnuTLS tells its function nothing of the session. */
static _Thread_local leat_tls *present;

void leat_tls_early_enter(leat_tls *tls)
{
    present = tls;
}

uint64_t leat_tls_early_context(const leat_tls *tls)
{
    leat_span alpn = leat_tls_alpn(tls);
    char name[LEAT_TLS_NAME_MAX + 1];
    size_t len = sizeof name;
    unsigned type;

    if (gnutls_server_name_get(tls->session, name, &len, &type, 0) != 0) {
        len = 0;
    }
    return tls->early_tag ^ leat_shared_hash(tls->shared, alpn.data, alpn.len) ^
           leat_shared_hash(tls->shared, name, len) * 3;
}

/* Called when the ticket is one of ours and the client has shown that it has its key. */
static int on_early_data(void *user, time_t until, const gnutls_datum_t *key,
                         const gnutls_datum_t *data)
{
    (void)user, (void)until, (void)key, (void)data;
    LEAT_ASSERT(present != NULL);
    if (present->early_possible &&
        leat_shared_claim(present->shared,
                          (leat_span){present->offered.data, present->offered.size},
                          leat_tls_early_context(present))) {
        return 0;
    }
    return GNUTLS_E_DB_ENTRY_EXISTS;
}

void leat_tls_early_prepare(gnutls_anti_replay_t anti_replay)
{
    /* 32 bits of milliseconds: what GnuTLS compares with it is never larger. */
    gnutls_anti_replay_set_window(anti_replay, UINT32_MAX);
    gnutls_anti_replay_set_add_function(anti_replay, on_early_data);
}
