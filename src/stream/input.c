/* stream/input.c: frames from the peer; see input.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/input.h"

#include <leat/transport_error.h>

#include "stream/output.h"

/* What a receiving part reported, as events; and its end, if it is that. */
static void after_recv(leat_streams *streams, leat_stream *stream, unsigned news)
{
    unsigned events = 0;

    if (news & LEAT_RECV_READABLE) {
        events |= LEAT_STREAM_EVENT_READABLE;
    }
    if (news & LEAT_RECV_RESET) {
        events |= LEAT_STREAM_EVENT_RESET;
    }
    leat_streams_tell(streams, stream, events);
    if (stream->recv.state != LEAT_RECV_RECV) {
        /* No more credit is of use, and there is nothing to stop. */
        leat_streams_unwant_control(streams, stream,
                                    LEAT_CONTROL_MAX_STREAM_DATA | LEAT_CONTROL_STOP_SENDING);
    }
    if (leat_stream_recv_ended(&stream->recv)) {
        leat_streams_settle(streams, stream);
    }
}

uint64_t leat_streams_on_stream(leat_streams *streams, uint64_t id, uint64_t offset,
                                const leat_buf *data, bool fin)
{
    leat_stream *stream;
    unsigned news = 0;
    uint64_t code = leat_streams_for_frame(streams, id, true, &stream);

    if (code != 0 || !stream) {
        return code;
    }
    code = leat_stream_recv_on_data(&stream->recv, offset, data, fin, &streams->flow_in, &news);
    if (code == 0) {
        after_recv(streams, stream, news);
    }
    return code;
}

uint64_t leat_streams_on_reset_stream(leat_streams *streams, uint64_t id, uint64_t reset_code,
                                      uint64_t final_size)
{
    leat_stream *stream;
    unsigned news = 0;
    uint64_t code = leat_streams_for_frame(streams, id, true, &stream);

    if (code != 0 || !stream) {
        return code;
    }
    code =
        leat_stream_recv_on_reset(&stream->recv, reset_code, final_size, &streams->flow_in, &news);
    if (code == 0) {
        after_recv(streams, stream, news);
    }
    return code;
}

uint64_t leat_streams_on_reset_stream_at(leat_streams *streams, uint64_t id, uint64_t reset_code,
                                         uint64_t final_size, uint64_t reliable)
{
    leat_stream *stream;
    unsigned news = 0;
    uint64_t code = leat_streams_for_frame(streams, id, true, &stream);

    if (code != 0 || !stream) {
        return code;
    }
    code = leat_stream_recv_on_reset_at(&stream->recv, reset_code, final_size, reliable,
                                        &streams->flow_in, &news);
    if (code == 0) {
        after_recv(streams, stream, news);
    }
    return code;
}

uint64_t leat_streams_on_stop_sending(leat_streams *streams, uint64_t id, uint64_t stop_code)
{
    leat_stream *stream;
    uint64_t code = leat_streams_for_frame(streams, id, false, &stream);

    if (code != 0 || !stream) {
        return code;
    }
    if (leat_stream_send_reset(&stream->send, stop_code)) {
        stream->stop_code = stop_code;
        leat_streams_unwant_control(streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
        leat_streams_requeue(streams, stream);
        leat_streams_want_control(streams, stream, LEAT_CONTROL_RESET_STREAM);
        leat_streams_tell(streams, stream, LEAT_STREAM_EVENT_STOPPED);
        leat_streams_feed(streams);
    }
    return 0;
}

uint64_t leat_streams_on_max_data(leat_streams *streams, uint64_t limit)
{
    leat_flow_out_raise(&streams->flow_out, limit);
    return 0;
}

uint64_t leat_streams_on_max_stream_data(leat_streams *streams, uint64_t id, uint64_t limit)
{
    leat_stream *stream;
    uint64_t code = leat_streams_for_frame(streams, id, false, &stream);

    if (code != 0 || !stream) {
        return code;
    }
    if (leat_flow_out_raise(&stream->send.flow, limit)) {
        leat_streams_requeue(streams, stream);
    }
    return 0;
}

uint64_t leat_streams_on_max_streams(leat_streams *streams, bool bidi, uint64_t limit)
{
    if (limit > LEAT_STREAMS_MAX) {
        return LEAT_TE_FRAME_ENCODING_ERROR;
    }
    leat_streams_raise_local(streams, bidi, limit);
    return 0;
}

uint64_t leat_streams_on_data_blocked(leat_streams *streams, uint64_t limit)
{
    (void)streams;
    (void)limit;
    return 0;
}

uint64_t leat_streams_on_stream_data_blocked(leat_streams *streams, uint64_t id, uint64_t limit)
{
    leat_stream *stream;

    (void)limit;
    return leat_streams_for_frame(streams, id, true, &stream);
}

uint64_t leat_streams_on_streams_blocked(leat_streams *streams, bool bidi, uint64_t limit)
{
    if (limit > LEAT_STREAMS_MAX) {
        return LEAT_TE_FRAME_ENCODING_ERROR;
    }
    leat_streams_raise_remote(streams, bidi);
    return 0;
}
