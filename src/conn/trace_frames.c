/* conn/trace_frames.c: what a sink is told of a frame: its name, and every number in it under the
 * name that qlog gives it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/trace.h"

#include "wire/frames.h"

static void number(leat_event_frame *out, const char *key, uint64_t value)
{
    out->key[out->values] = key;
    out->value[out->values++] = value;
}

static void data(leat_event_frame *out, const char *key, leat_span span)
{
    out->data_key = key;
    out->data = span;
}

/* The newest ranges of an ACK, into room of the caller's. */
static size_t ack_ranges(const leat_frame_ack *ack, leat_event_ack_range out[LEAT_EVENT_RANGES])
{
    leat_ack_iter iter;
    leat_range range;
    size_t n = 0;

    leat_ack_iter_init(&iter, ack);
    while (n < LEAT_EVENT_RANGES && leat_ack_iter_next(&iter, &range)) {
        out[n++] = (leat_event_ack_range){range.from, range.to - 1};
    }
    return n;
}

static void ecn_counts(leat_event_frame *out, const leat_frame_ack *ack)
{
    if (ack->has_ecn) {
        number(out, "ect1", ack->ecn.ect1);
        number(out, "ect0", ack->ecn.ect0);
        number(out, "ce", ack->ecn.ce);
    }
}

static void describe_stream_frame(const leat_frame *f, leat_event_frame *out)
{
    switch (f->kind) {
    case LEAT_FRAME_RESET_STREAM:
        number(out, "stream_id", f->reset_stream.stream_id);
        number(out, "error_code", f->reset_stream.error);
        number(out, "final_size", f->reset_stream.final_size);
        break;
    case LEAT_FRAME_RESET_STREAM_AT:
        number(out, "stream_id", f->reset_stream_at.stream_id);
        number(out, "error_code", f->reset_stream_at.error);
        number(out, "final_size", f->reset_stream_at.final_size);
        number(out, "reliable_size", f->reset_stream_at.reliable_size);
        break;
    case LEAT_FRAME_STOP_SENDING:
        number(out, "stream_id", f->stop_sending.stream_id);
        number(out, "error_code", f->stop_sending.error);
        break;
    case LEAT_FRAME_STREAM:
        number(out, "stream_id", f->stream.stream_id);
        number(out, "offset", f->stream.offset);
        number(out, "length", f->stream.data.len);
        number(out, "fin", f->stream.fin);
        break;
    case LEAT_FRAME_MAX_DATA:
        number(out, "maximum", f->max_data.max);
        break;
    case LEAT_FRAME_MAX_STREAM_DATA:
        number(out, "stream_id", f->max_stream_data.stream_id);
        number(out, "maximum", f->max_stream_data.max);
        break;
    case LEAT_FRAME_MAX_STREAMS:
        number(out, "stream_type", f->code & 1);
        number(out, "maximum", f->max_streams.max);
        break;
    case LEAT_FRAME_DATA_BLOCKED:
        number(out, "limit", f->data_blocked.limit);
        break;
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        number(out, "stream_id", f->stream_data_blocked.stream_id);
        number(out, "limit", f->stream_data_blocked.limit);
        break;
    case LEAT_FRAME_STREAMS_BLOCKED:
        number(out, "stream_type", f->code & 1);
        number(out, "limit", f->streams_blocked.limit);
        break;
    default:
        break;
    }
}

/* The frame's fields in the order of RFC 9000 s19. */
static void describe(const leat_frame *f, leat_event_frame *out)
{
    switch (f->kind) {
    case LEAT_FRAME_PADDING:
        number(out, "payload_length", f->padding.len);
        break;
    case LEAT_FRAME_CRYPTO:
        number(out, "offset", f->crypto.offset);
        number(out, "length", f->crypto.data.len);
        break;
    case LEAT_FRAME_NEW_TOKEN:
        data(out, "token", f->new_token.token);
        break;
    case LEAT_FRAME_NEW_CONNECTION_ID:
        number(out, "sequence_number", f->new_connection_id.sequence);
        number(out, "retire_prior_to", f->new_connection_id.retire_prior_to);
        data(out, "connection_id", leat_cid_span(&f->new_connection_id.cid));
        break;
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        number(out, "sequence_number", f->retire_connection_id.sequence);
        break;
    case LEAT_FRAME_PATH_CHALLENGE:
    case LEAT_FRAME_PATH_RESPONSE:
        data(out, "data", (leat_span){f->path_challenge.data, LEAT_PATH_DATA});
        break;
    case LEAT_FRAME_CONNECTION_CLOSE:
        number(out, "error_code", f->connection_close.error);
        number(out, "trigger_frame_type", f->connection_close.frame_type);
        data(out, "reason", f->connection_close.reason);
        break;
    case LEAT_FRAME_APPLICATION_CLOSE:
        number(out, "error_code", f->connection_close.error);
        data(out, "reason", f->connection_close.reason);
        break;
    case LEAT_FRAME_ACK_FREQUENCY:
        number(out, "sequence_number", f->ack_frequency.sequence);
        number(out, "ack_eliciting_threshold", f->ack_frequency.threshold);
        number(out, "requested_max_ack_delay", f->ack_frequency.max_delay);
        number(out, "reordering_threshold", f->ack_frequency.reorder);
        break;
    case LEAT_FRAME_DATAGRAM:
        number(out, "length", f->datagram.data.len);
        break;
    default:
        describe_stream_frame(f, out);
        break;
    }
}

/* As its reader takes it. */
static leat_time ack_delay(const leat_conn *conn, leat_event_type type, leat_space space,
                           const leat_frame_ack *ack)
{
    return type == LEAT_EVENT_FRAME_RECEIVED
               ? leat_conn_ack_delay(conn, space, ack)
               : (ack->delay << LEAT_ACK_DELAY_EXPONENT) * LEAT_MICROSECOND;
}

void leat_trace_frame(leat_conn *conn, leat_event_type type, leat_space space,
                      const leat_frame *frame)
{
    leat_event_ack_range ranges[LEAT_EVENT_RANGES];
    leat_event event = leat_trace_begin(conn, type);

    event.frame = (leat_event_frame){.type = frame->code, .name = leat_frame_name(frame->kind)};
    describe(frame, &event.frame);
    if (frame->kind == LEAT_FRAME_ACK) {
        number(&event.frame, "ack_delay", ack_delay(conn, type, space, &frame->ack));
        ecn_counts(&event.frame, &frame->ack);
        event.frame.ranges = ranges;
        event.frame.range_count = ack_ranges(&frame->ack, ranges);
    }
    leat_trace_emit(conn, &event);
}
