/* conn/close.c: how a connection ends (RFC 9000 s10).
 *
 *     closing    this side said CONNECTION_CLOSE; for three PTOs it says it again when packets
 * come, after the 1st, 2nd, 4th, 8th draining   the peer said so: nothing is sent for three PTOs
 *     ended      by timeout, reset, or the endpoint's end: without a word
 *
 * Streams and handshake go at once, the application is told in the next turn, and what remains, the
 * connection's IDs and keys, goes when the period is over.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "base/time.h"

/* Leaves the open states. All that only an open connection needs is given up. */
static void leave(leat_conn *conn, leat_conn_state state, const leat_close_info *info)
{
    leat_time now = leat_conn_now(conn);
    leat_time period = leat_time_mul(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), 3);

    LEAT_ASSERT(leat_conn_is_open(conn));
    conn->state = (uint8_t)state;
    conn->closing.info = *info;
    conn->closing.until = state == LEAT_CONN_GONE ? now : leat_time_add(now, period);
    conn->closing.answer_at = 1;
    conn->closing.send = state == LEAT_CONN_CLOSING;
    leat_streams_close_all(&conn->streams);
    leat_sent_forget(&conn->app.sent, true); /* lets go of the streams */
    leat_datagrams_clear(&conn->datagrams);
    leat_news_clear(&conn->news);
    if (!conn->settled) {
        conn->settled = true;
        conn->host->ops->settled(conn->host, conn);
    }
    leat_conn_tell(conn, LEAT_CONN_TELL_CLOSED);
    leat_conn_rearm(conn);
    if (conn->closing.send) {
        leat_conn_want_send(conn);
    }
}

/* Keeps a text for as long as the application needs it. */
static const char *keep_detail(leat_conn *conn, const char *detail)
{
    if (!detail) {
        return NULL;
    }
    conn->closing.detail = leat_conn_keep(conn, detail, strlen(detail));
    return (const char *)conn->closing.detail.data;
}

static leat_span keep_reason(leat_conn *conn, leat_span reason)
{
    size_t len = reason.len < LEAT_CLOSE_REASON_DEFAULT ? reason.len : LEAT_CLOSE_REASON_DEFAULT;

    if (len == 0) {
        return (leat_span){NULL, 0};
    }
    conn->closing.reason = leat_conn_keep(conn, reason.data, len);
    return (leat_span){conn->closing.reason.data, conn->closing.reason.len};
}

void leat_conn_fail_as(leat_conn *conn, leat_err err, uint64_t code, const char *detail)
{
    leat_close_info info = {.kind = LEAT_CLOSE_LOCAL, .code = code, .err = err};

    if (!leat_conn_is_open(conn)) {
        return;
    }
    info.detail = keep_detail(conn, detail);
    if (info.detail) {
        info.reason = keep_reason(conn, (leat_span){(const uint8_t *)detail, strlen(detail)});
    }
    leave(conn, LEAT_CONN_CLOSING, &info);
}

void leat_conn_fail(leat_conn *conn, uint64_t code, uint64_t frame_type, const char *detail)
{
    leat_close_info info = {.kind = LEAT_CLOSE_LOCAL,
                            .code = code,
                            .frame_type = frame_type,
                            .err = LEAT_ERR_MALFORMED};

    if (!leat_conn_is_open(conn)) {
        return;
    }
    if (code == LEAT_TE_INTERNAL_ERROR) {
        info.err = LEAT_ERR_NOMEM;
    }
    info.detail = keep_detail(conn, detail ? detail : leat_transport_error_text(code));
    if (info.detail) {
        info.reason = (leat_span){(const uint8_t *)info.detail, strlen(info.detail)};
    }
    leave(conn, LEAT_CONN_CLOSING, &info);
}

void leat_conn_close(leat_conn *conn, uint64_t code, leat_span reason)
{
    leat_close_info info = {
        .kind = LEAT_CLOSE_LOCAL, .application = true, .code = code, .err = LEAT_OK};

    if (!leat_conn_is_open(conn)) {
        return;
    }
    info.reason = keep_reason(conn, reason);
    leave(conn, LEAT_CONN_CLOSING, &info);
}

/* What an error of the peer's handshake is called here. */
static leat_err err_of_code(const leat_frame_connection_close *frame)
{
    if (frame->application) {
        return frame->error == 0 ? LEAT_OK : LEAT_ERR_CLOSED;
    }
    if (leat_transport_error_is_crypto(frame->error)) {
        return LEAT_ERR_TLS;
    }
    return frame->error == LEAT_TE_NO_ERROR ? LEAT_OK : LEAT_ERR_CLOSED;
}

void leat_conn_on_close(leat_conn *conn, const leat_frame_connection_close *frame,
                        const leat_buf *buf)
{
    leat_close_info info = {
        .kind = LEAT_CLOSE_PEER,
        .application = frame->application,
        .code = frame->error,
        .frame_type = frame->frame_type,
        .err = err_of_code(frame),
    };

    (void)buf;
    info.reason = keep_reason(conn, frame->reason);
    if (!frame->application && leat_transport_error_is_crypto(frame->error)) {
        info.detail = leat_tls_alert_text(leat_transport_error_alert(frame->error));
    } else if (!frame->application) {
        info.detail = leat_transport_error_text(frame->error);
    }
    leave(conn, LEAT_CONN_DRAINING, &info);
}

void leat_conn_end(leat_conn *conn, leat_close_kind kind, leat_err err)
{
    leat_close_info info = {.kind = kind, .err = err};

    if (leat_conn_is_open(conn)) {
        leave(conn, LEAT_CONN_GONE, &info);
    }
}

void leat_conn_on_reset(leat_conn *conn)
{
    leat_close_info info = {.kind = LEAT_CLOSE_RESET, .err = LEAT_ERR_RESET};

    if (leat_conn_is_open(conn)) {
        leave(conn, LEAT_CONN_DRAINING, &info);
    } else if (conn->state == LEAT_CONN_CLOSING) {
        conn->state = LEAT_CONN_DRAINING;
        conn->closing.send = false;
    }
}

void leat_conn_close_poke(leat_conn *conn)
{
    if (conn->state == LEAT_CONN_CLOSING && ++conn->closing.received >= conn->closing.answer_at) {
        conn->closing.answer_at *= 2;
        conn->closing.send = true;
        leat_conn_want_send(conn);
    }
}

/* ---- CONNECTION_CLOSE ---- */

bool leat_conn_close_due(leat_conn *conn)
{
    bool due = conn->state == LEAT_CONN_CLOSING && conn->closing.send;

    conn->closing.send = false;
    return due;
}

bool leat_conn_close_level(leat_conn *conn, leat_space space)
{
    leat_pnspace *pn = leat_conn_space(conn, space);

    if (conn->confirmed && space != LEAT_SPACE_APP) {
        return false;
    }
    return pn && pn->open &&
           leat_packet_keys_ready(space == LEAT_SPACE_APP ? &conn->rekey.tx : &pn->keys->tx);
}

leat_frame_connection_close leat_conn_close_frame(const leat_conn *conn, leat_space space)
{
    const leat_close_info *info = &conn->closing.info;

    if (info->application && space != LEAT_SPACE_APP) {
        return (leat_frame_connection_close){.error = LEAT_TE_APPLICATION_ERROR};
    }
    return (leat_frame_connection_close){
        .application = info->application,
        .error = info->code,
        .frame_type = info->frame_type,
        .reason = info->reason,
    };
}

/* ---- the end ---- */

void leat_conn_close_over(leat_conn *conn)
{
    if (!conn->closing.told) {
        return; /* the event task comes back here */
    }
    conn->state = LEAT_CONN_GONE;
    leat_conn_free(conn);
}
