/* stream/app.c: the application's calls on a stream: the part's own function, then the lists.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/app.h"

#include "stream/output.h"

/* ---- writing ---- */

/* There is no memory, and nothing of this stream's own that will be acknowledged. If others hold
 * it, theirs will be: the stream waits. */
static leat_err may_wait(leat_stream *stream, leat_err err)
{
    const leat_budget *budget = stream->streams->env.budget;

    if (err == LEAT_ERR_NOMEM &&
        budget->by[LEAT_BUDGET_STREAM_SEND] > budget->limit / LEAT_STREAMS_FEED_BELOW) {
        stream->send.want_writable = true;
        stream->streams->starved = true;
        return LEAT_ERR_BLOCKED;
    }
    return err;
}

/* There is more to send. In the line of those with new bytes it stays where it is. */
static void has_more(leat_stream *stream)
{
    if (stream->queue != LEAT_STREAM_QUEUE_NEW) {
        leat_streams_requeue(stream->streams, stream);
    }
}

leat_err leat_streams_write(leat_stream *stream, const void *data, size_t len, size_t *written)
{
    leat_err err = leat_stream_send_write(&stream->send, data, len, written);

    if (*written > 0) {
        has_more(stream);
    }
    return may_wait(stream, err);
}

leat_err leat_streams_reserve(leat_stream *stream, size_t want, leat_mspan *out)
{
    return may_wait(stream, leat_stream_send_reserve(&stream->send, want, out));
}

void leat_streams_commit(leat_stream *stream, size_t n)
{
    leat_stream_send_commit(&stream->send, n);
    has_more(stream);
}

leat_err leat_streams_append(leat_stream *stream, leat_buf *buf)
{
    leat_err err = leat_stream_send_append(&stream->send, buf);

    if (err == LEAT_OK) {
        has_more(stream);
    }
    return may_wait(stream, err);
}

leat_err leat_streams_finish(leat_stream *stream)
{
    leat_err err = leat_stream_send_finish(&stream->send);

    if (err == LEAT_OK) {
        has_more(stream);
    }
    return err;
}

void leat_streams_reset(leat_stream *stream, uint64_t code)
{
    if (leat_stream_send_reset(&stream->send, code)) {
        leat_streams_requeue(stream->streams, stream);
        leat_streams_unwant_control(stream->streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
        leat_streams_want_control(stream->streams, stream, LEAT_CONTROL_RESET_STREAM);
        leat_streams_feed(stream->streams);
    }
}

void leat_streams_reset_if_lost(leat_stream *stream, uint64_t code)
{
    leat_stream_send *send = &stream->send;

    if (!leat_stream_send_live(send)) {
        return;
    }
    if (!send->fin_sent || leat_stream_send_has_free(send) || leat_stream_send_has_new(send)) {
        leat_streams_reset(stream, code);
        return;
    }
    stream->once = true;
    send->reset_code = code;
}

leat_err leat_streams_reset_at(leat_stream *stream, uint64_t code, uint64_t reliable)
{
    leat_stream_send *send = &stream->send;

    if (send->state == LEAT_SEND_NONE) {
        return LEAT_ERR_STATE;
    }
    if (reliable == 0) {
        leat_streams_reset(stream, code); /* the same, and understood by all */
        return LEAT_OK;
    }
    if (!stream->streams->peer.reset_stream_at) {
        return LEAT_ERR_UNSUPPORTED;
    }
    if (leat_stream_send_live(send) && reliable > send->end) {
        return LEAT_ERR_INVALID;
    }
    if (leat_stream_send_reset_at(send, code, reliable)) {
        leat_streams_unwant_control(stream->streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
        leat_streams_requeue(stream->streams, stream);
        leat_streams_feed(stream->streams);
    }
    return LEAT_OK;
}

/* ---- reading ---- */

leat_span leat_streams_peek(leat_stream *stream)
{
    return leat_stream_recv_peek(&stream->recv);
}

void leat_streams_consume(leat_stream *stream, size_t n)
{
    leat_streams *streams = stream->streams;
    leat_stream_recv *recv = &stream->recv;
    bool reset_at = recv->state == LEAT_RECV_RESET_AT;

    leat_stream_recv_consume(recv, n, stream->in_table ? &streams->flow_in : NULL);
    if (reset_at && recv->state == LEAT_RECV_RESET_RECVD) {
        leat_streams_tell(streams, stream, LEAT_STREAM_EVENT_RESET);
    }
    if (leat_stream_recv_wants_credit(recv)) {
        leat_streams_want_control(streams, stream, LEAT_CONTROL_MAX_STREAM_DATA);
    }
    if (leat_stream_recv_ended(recv)) {
        leat_streams_settle(streams, stream);
    }
}

void leat_streams_stop(leat_stream *stream, uint64_t code)
{
    leat_streams *streams = stream->streams;

    leat_streams_unwant_control(streams, stream, LEAT_CONTROL_MAX_STREAM_DATA);
    if (leat_stream_recv_stop(&stream->recv, &streams->flow_in)) {
        stream->stop_sent_code = code;
        leat_streams_want_control(streams, stream, LEAT_CONTROL_STOP_SENDING);
    }
    leat_streams_settle(streams, stream);
}

bool leat_streams_recv_done(const leat_stream *stream)
{
    return stream->recv.stopped || stream->recv.state >= LEAT_RECV_DATA_READ;
}

bool leat_streams_recv_whole(const leat_stream *stream)
{
    return !stream->recv.stopped && stream->recv.state == LEAT_RECV_DATA_READ;
}
