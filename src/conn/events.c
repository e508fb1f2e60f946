/* conn/events.c: what the application is told, by a task of its own: never from inside a call of
 * its.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "conn/trace.h"
#include "stream/output.h"

/* Stream events told in one go: about as many as have answers that fill one send of 64 KiB. The
 * owner sends what came of them before it tells the next, so that the peer has something to do
 * while the rest is told, and one connection does not keep all others waiting. */
#define LEAT_EVENTS_A_TURN 32

void leat_conn_tell(leat_conn *conn, unsigned events)
{
    conn->tell |= (uint8_t)events;
    leat_ctx_run_soon(conn->host->ctx, &conn->event_task);
}

/* Before the handshake is complete datagrams have to wait. */
static bool has_more(const leat_conn *conn)
{
    return leat_streams_has_events(&conn->streams) ||
           (conn->state == LEAT_CONN_ACTIVE &&
            (leat_datagrams_has_events(&conn->datagrams) || leat_news_waits(&conn->news)));
}

void leat_conn_tell_more(leat_conn *conn)
{
    if (has_more(conn)) {
        leat_ctx_run_soon(conn->host->ctx, &conn->event_task);
    }
}

static bool take(leat_conn *conn, unsigned event)
{
    bool set = (conn->tell & event) != 0;

    conn->tell &= (uint8_t)~event;
    return set;
}

static void tell_stream(leat_conn *conn, leat_stream *stream, unsigned events)
{
    /* A callback may put others in place for the next. */
    if ((events & LEAT_STREAM_EVENT_OPENED) && conn->events->stream_opened) {
        conn->events->stream_opened(conn, stream, conn->user);
    }
    if ((events & LEAT_STREAM_EVENT_READABLE) && conn->events->stream_readable) {
        conn->events->stream_readable(conn, stream, conn->user);
    }
    if ((events & LEAT_STREAM_EVENT_RESET) && conn->events->stream_reset) {
        conn->events->stream_reset(conn, stream, stream->recv.reset_code, conn->user);
    }
    if ((events & LEAT_STREAM_EVENT_STOPPED) && conn->events->stream_stopped) {
        conn->events->stream_stopped(conn, stream, stream->stop_code, conn->user);
    }
    if ((events & LEAT_STREAM_EVENT_WRITABLE) && conn->events->stream_writable) {
        conn->events->stream_writable(conn, stream, conn->user);
    }
    if ((events & LEAT_STREAM_EVENT_CLOSED) && conn->events->stream_closed) {
        conn->events->stream_closed(conn, stream, conn->user);
    }
}

static void tell_streams(leat_conn *conn, size_t most)
{
    leat_stream *stream;
    unsigned events;

    while (most-- > 0 && (stream = leat_streams_next_event(&conn->streams, &events)) != NULL) {
        tell_stream(conn, stream, events);
        leat_streams_told(&conn->streams, stream, events);
    }
}

static void tell_available(leat_conn *conn)
{
    uint8_t available = conn->streams.available;

    conn->streams.available = 0;
    if (!conn->events->streams_available || !leat_conn_is_open(conn)) {
        return;
    }
    if (available & 1) {
        conn->events->streams_available(conn, true, conn->user);
    }
    if (available & 2) {
        conn->events->streams_available(conn, false, conn->user);
    }
}

static void tell_token(leat_conn *conn)
{
    if (conn->events->token && conn->new_token.len > 0) {
        conn->events->token(conn, (leat_span){conn->new_token.data, conn->new_token.len},
                            conn->user);
    }
    leat_buf_release(&conn->new_token);
}

static void tell_closed(leat_conn *conn)
{
    leat_close_info info = conn->closing.info;

    leat_trace_closed(conn);
    conn->host->ops->closed(conn->host, conn);
    conn->closing.told = true;
    if (conn->events->closed) {
        conn->events->closed(conn, &info, conn->user);
    }
}

static void tell(leat_conn *conn, size_t most_streams)
{
    static const leat_conn_events nothing;

    if (!conn->events) {
        conn->events = &nothing;
    }
    if (take(conn, LEAT_CONN_TELL_EARLY) && conn->events->early) {
        conn->events->early(conn, conn->user);
    }
    if (take(conn, LEAT_CONN_TELL_CONNECTED) && conn->events->connected) {
        conn->events->connected(conn, conn->user);
    }
    tell_streams(conn, most_streams);
    tell_available(conn);
    if (conn->state == LEAT_CONN_ACTIVE) {
        leat_conn_tell_datagrams(conn);
    }
    if (conn->state == LEAT_CONN_ACTIVE) {
        leat_conn_tell_news(conn);
    }
    if (take(conn, LEAT_CONN_TELL_TOKEN)) {
        tell_token(conn);
    }
    if (take(conn, LEAT_CONN_TELL_TICKETS)) {
        leat_tickets_tell(conn);
    }
    if (conn->events->told && leat_conn_is_open(conn)) {
        conn->events->told(conn, conn->user);
    }
    /* After the last stream's last event. */
    if ((conn->tell & LEAT_CONN_TELL_CLOSED) && !leat_streams_has_events(&conn->streams)) {
        take(conn, LEAT_CONN_TELL_CLOSED);
        tell_closed(conn);
    }
}

void leat_conn_tell_now(leat_conn *conn)
{
    if (!conn->closing.told) {
        tell(conn, SIZE_MAX);
    }
}

void leat_conn_event_task(leat_task *task)
{
    leat_conn *conn = LEAT_CONTAINER_OF(task, leat_conn, event_task);

    tell(conn, LEAT_EVENTS_A_TURN);
    if (conn->closing.told && conn->state == LEAT_CONN_GONE) {
        leat_conn_close_over(conn);
        return;
    }
    if (conn->closing.told) {
        leat_conn_rearm(conn); /* the closing period may be over already */
    }
    if (conn->tell != 0 || has_more(conn)) {
        leat_ctx_run_soon(conn->host->ctx, &conn->event_task);
    } else {
        leat_task_cancel(&conn->event_task); /* what callbacks did has been told already */
    }
    if (leat_conn_is_open(conn) && leat_streams_wants_send(&conn->streams)) {
        leat_conn_want_send(conn);
    }
}
