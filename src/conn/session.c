/* conn/session.c: see conn/session.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/session.h"

#include <string.h>

#include <leat/quic.h>

#include "base/cursor.h"
#include "crypto/schedule.h"
#include "crypto/secret.h"

#define FORMAT     1
#define FLAG_EARLY 1
#define FIXED      (4 + 1 + 1 + 1 + 4 + 1 + 1 + 2 + 4)
#define SUM        16

static const uint8_t magic[4] = LEAT_SESSION_MAGIC; /* without a zero byte */

static void check_sum(const uint8_t *data, size_t len, uint8_t out[32])
{
    leat_hmac(LEAT_HASH_SHA256, magic, sizeof(magic), data, len, out);
}

size_t leat_session_size(const leat_session *session)
{
    return FIXED + session->alpn.len + session->server_name.len + LEAT_TPARAMS_MAX +
           session->tls.len + SUM;
}

size_t leat_session_encode(const leat_session *session, uint8_t *out, size_t cap)
{
    uint8_t room[LEAT_TPARAMS_MAX], sum[32];
    leat_writer w, params;

    leat_writer_init(&params, room, sizeof(room));
    if (!leat_tparams_encode(&session->params, &params) || session->alpn.len > 255 ||
        session->server_name.len > 255) {
        return 0;
    }
    leat_writer_init(&w, out, cap);
    leat_writer_bytes(&w, magic, sizeof(magic));
    leat_writer_u8(&w, FORMAT);
    leat_writer_u8(&w, session->early ? FLAG_EARLY : 0);
    leat_writer_u8(&w, session->trust);
    leat_writer_u32(&w, session->version);
    leat_writer_u8(&w, (uint8_t)session->alpn.len);
    leat_writer_bytes(&w, session->alpn.data, session->alpn.len);
    leat_writer_u8(&w, (uint8_t)session->server_name.len);
    leat_writer_bytes(&w, session->server_name.data, session->server_name.len);
    leat_writer_u16(&w, (uint16_t)leat_writer_len(&params));
    leat_writer_bytes(&w, room, leat_writer_len(&params));
    leat_writer_u32(&w, (uint32_t)session->tls.len);
    leat_writer_bytes(&w, session->tls.data, session->tls.len);
    check_sum(out, leat_writer_ok(&w) ? leat_writer_len(&w) : 0, sum);
    leat_writer_bytes(&w, sum, SUM);
    return leat_writer_ok(&w) ? leat_writer_len(&w) : 0;
}

static leat_span take(leat_cursor *c, size_t len)
{
    const uint8_t *data = leat_cursor_bytes(c, len);

    return (leat_span){data, data ? len : 0};
}

/* Whatever is not to be remembered is as if the server had not sent it. */
static bool read_params(leat_span data, leat_tparams *out)
{
    const char *why;
    leat_tparams defaults;

    leat_tparams_init(&defaults);
    if (leat_tparams_decode(data, true, out, &why) != LEAT_TE_NO_ERROR) {
        return false;
    }
    out->ack_delay_exponent = defaults.ack_delay_exponent;
    out->max_ack_delay = defaults.max_ack_delay;
    out->present &= (uint32_t)(LEAT_TP_disable_active_migration | LEAT_TP_reset_stream_at);
    return true;
}

bool leat_session_is_whole(leat_span session)
{
    leat_session decoded;

    return leat_session_decode(session, &decoded);
}

bool leat_session_decode(leat_span blob, leat_session *out)
{
    uint8_t sum[32];
    leat_cursor c;
    leat_span params;
    uint8_t flags;

    memset(out, 0, sizeof(*out));
    if (blob.len < FIXED + SUM || blob.len > LEAT_SESSION_MAX ||
        memcmp(blob.data, magic, sizeof(magic)) != 0 || blob.data[4] != FORMAT) {
        return false;
    }
    check_sum(blob.data, blob.len - SUM, sum);
    if (!leat_secret_equal(sum, blob.data + blob.len - SUM, SUM)) {
        return false;
    }
    leat_cursor_init(&c, blob.data + 5, blob.len - 5 - SUM);
    flags = leat_cursor_u8(&c);
    out->early = (flags & FLAG_EARLY) != 0;
    out->trust = leat_cursor_u8(&c);
    out->version = leat_cursor_u32(&c);
    out->alpn = take(&c, leat_cursor_u8(&c));
    out->server_name = take(&c, leat_cursor_u8(&c));
    params = take(&c, leat_cursor_u16(&c));
    out->tls = take(&c, leat_cursor_u32(&c));
    return leat_cursor_ok(&c) && leat_cursor_left(&c) == 0 && read_params(params, &out->params);
}

bool leat_session_limits_kept(const leat_tparams *remembered, const leat_tparams *now)
{
    static const uint8_t limits[] = {
        LEAT_TP_INDEX_initial_max_data,
        LEAT_TP_INDEX_initial_max_stream_data_bidi_local,
        LEAT_TP_INDEX_initial_max_stream_data_bidi_remote,
        LEAT_TP_INDEX_initial_max_stream_data_uni,
        LEAT_TP_INDEX_initial_max_streams_bidi,
        LEAT_TP_INDEX_initial_max_streams_uni,
        LEAT_TP_INDEX_active_connection_id_limit,
        LEAT_TP_INDEX_max_datagram_frame_size,
    };

    for (size_t i = 0; i < sizeof(limits); i++) {
        if (now->numbers[limits[i]] < remembered->numbers[limits[i]]) {
            return false;
        }
    }
    return leat_tparams_has(now, LEAT_TP_reset_stream_at) ||
           !leat_tparams_has(remembered, LEAT_TP_reset_stream_at);
}
