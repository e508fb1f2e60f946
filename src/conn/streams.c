/* conn/streams.c: the application's calls on streams (leat/quic.h), which come down to
 * stream/app.h; here they learn whether the connection is open, and have sent and told what they
 * bring about.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/app.h"

#include "conn/conn.h"

#include "stream/output.h"

static leat_conn *conn_of(const leat_stream *stream)
{
    return LEAT_CONTAINER_OF(stream->streams, leat_conn, streams);
}

static bool is_open(const leat_stream *stream)
{
    return leat_conn_is_open(conn_of(stream));
}

/* Something may now wait to be sent. Writing has no news for whoever writes. */
static void written_to(const leat_stream *stream)
{
    leat_conn *conn = conn_of(stream);

    if (!leat_link_listed(&conn->send_link) && leat_streams_wants_send(&conn->streams)) {
        leat_conn_want_send(conn);
    }
}

/* The same, or to be told. */
static void touched(const leat_stream *stream)
{
    leat_conn_tell_more(conn_of(stream));
    written_to(stream);
}

leat_err leat_stream_open(leat_conn *conn, bool bidi, leat_stream **out)
{
    leat_err err;

    if (conn->state > LEAT_CONN_ACTIVE) {
        return LEAT_ERR_CLOSED;
    }
    if (conn->state == LEAT_CONN_HANDSHAKE && conn->early == LEAT_EARLY_NONE) {
        return LEAT_ERR_STATE;
    }
    err = leat_streams_open(&conn->streams, bidi, out);
    if (conn->asked) {
        leat_conn_may_ask(conn);
    }
    if (err == LEAT_ERR_BLOCKED) {
        leat_conn_want_send(conn); /* STREAMS_BLOCKED */
    }
    return err;
}

uint64_t leat_stream_id(const leat_stream *stream)
{
    return stream->id;
}

leat_conn *leat_stream_conn(leat_stream *stream)
{
    return conn_of(stream);
}

bool leat_stream_is_bidi(const leat_stream *stream)
{
    return !leat_stream_id_is_uni(stream->id);
}

bool leat_stream_is_local(const leat_stream *stream)
{
    return leat_stream_id_by_server(stream->id) == conn_of(stream)->is_server;
}

void leat_stream_set_user(leat_stream *stream, void *user)
{
    stream->user = user;
}

void *leat_stream_user(const leat_stream *stream)
{
    return stream->user;
}

leat_err leat_stream_set_priority(leat_stream *stream, unsigned urgency, bool incremental)
{
    return leat_streams_set_priority(stream, urgency, incremental);
}

/* ---- reading ---- */

leat_span leat_stream_peek(leat_stream *stream)
{
    return is_open(stream) ? leat_streams_peek(stream) : (leat_span){NULL, 0};
}

void leat_stream_consume(leat_stream *stream, size_t n)
{
    if (is_open(stream)) {
        leat_streams_consume(stream, n);
        touched(stream);
    }
}

bool leat_stream_recv_done(const leat_stream *stream)
{
    return leat_streams_recv_done(stream);
}

bool leat_stream_recv_whole(const leat_stream *stream)
{
    return leat_streams_recv_whole(stream);
}

void leat_stream_stop(leat_stream *stream, uint64_t code)
{
    if (is_open(stream)) {
        leat_streams_stop(stream, code);
        touched(stream);
    }
}

/* ---- writing ---- */

size_t leat_stream_writable(const leat_stream *stream)
{
    return is_open(stream) ? leat_stream_send_writable(&stream->send) : 0;
}

leat_err leat_stream_reserve(leat_stream *stream, size_t want, leat_mspan *out)
{
    return is_open(stream) ? leat_streams_reserve(stream, want, out) : LEAT_ERR_CLOSED;
}

void leat_stream_commit(leat_stream *stream, size_t n)
{
    if (is_open(stream)) {
        leat_streams_commit(stream, n);
        written_to(stream);
    }
}

leat_err leat_stream_write(leat_stream *stream, const void *data, size_t len, size_t *written)
{
    leat_err err = LEAT_ERR_CLOSED;

    *written = 0;
    if (is_open(stream)) {
        err = leat_streams_write(stream, data, len, written);
        written_to(stream);
    }
    return err;
}

leat_err leat_stream_write_buf(leat_stream *stream, leat_buf *buf)
{
    leat_err err = LEAT_ERR_CLOSED;

    if (is_open(stream)) {
        err = leat_streams_append(stream, buf);
        written_to(stream);
    }
    return err;
}

leat_err leat_stream_finish(leat_stream *stream)
{
    leat_err err = LEAT_ERR_CLOSED;

    if (is_open(stream)) {
        err = leat_streams_finish(stream);
        written_to(stream);
    }
    return err;
}

void leat_stream_reset(leat_stream *stream, uint64_t code)
{
    if (is_open(stream)) {
        leat_streams_reset(stream, code);
        touched(stream);
    }
}

void leat_stream_reset_if_lost(leat_stream *stream, uint64_t code)
{
    if (is_open(stream)) {
        leat_streams_reset_if_lost(stream, code);
        touched(stream);
    }
}

leat_err leat_stream_reset_at(leat_stream *stream, uint64_t code, uint64_t reliable)
{
    leat_err err = LEAT_ERR_CLOSED;

    if (is_open(stream)) {
        err = leat_streams_reset_at(stream, code, reliable);
        touched(stream);
    }
    return err;
}

void leat_stream_progress_get(const leat_stream *stream, leat_stream_progress *out)
{
    const leat_stream_send *send = &stream->send;

    *out =
        (leat_stream_progress){.written = send->end, .sent = send->flow.used, .acked = send->base};
}
