/* stream/output.c: see output.h.
 *
 * A stream with something to send is in one of two queues of its urgency: `free` when it can send
 * without the connection's credit (lost bytes, a bare FIN), `new` when it needs some.
 * leat_streams_requeue() moves it to where its state says; between calls the queues are always
 * right.
 *
 * Limits that we advertise are raised when leat_streams_next_control() offers the frame that tells
 * them, so what a frame says is always the limit in force.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/output.h"

#include "stream/app.h"

/* ---- queues ---- */

static leat_list *queue_of(leat_streams *streams, const leat_stream *stream)
{
    leat_stream_lines *lines = streams->lines;

    return stream->queue == LEAT_STREAM_QUEUE_FREE ? &lines->free[stream->urgency]
                                                   : &lines->fresh[stream->urgency];
}

static uint32_t *mask_of(leat_streams *streams, const leat_stream *stream)
{
    return stream->queue == LEAT_STREAM_QUEUE_FREE ? &streams->free_mask : &streams->new_mask;
}

static void leave_queue(leat_streams *streams, leat_stream *stream)
{
    if (stream->queue == LEAT_STREAM_QUEUE_NONE) {
        return;
    }
    leat_link_remove(&stream->send_link);
    if (leat_list_empty(queue_of(streams, stream))) {
        *mask_of(streams, stream) &= ~(1u << stream->urgency);
    }
    stream->queue = LEAT_STREAM_QUEUE_NONE;
}

static void join_queue(leat_streams *streams, leat_stream *stream, enum leat_stream_queue queue,
                       bool in_front)
{
    stream->queue = (uint8_t)queue;
    if (in_front) {
        leat_list_push_front(queue_of(streams, stream), &stream->send_link);
    } else {
        leat_list_push_back(queue_of(streams, stream), &stream->send_link);
    }
    *mask_of(streams, stream) |= 1u << stream->urgency;
}

static enum leat_stream_queue wanted_queue(const leat_streams *streams, const leat_stream *stream)
{
    if (!stream->in_table || leat_streams_is_held(streams, stream)) {
        return LEAT_STREAM_QUEUE_NONE;
    }
    if (leat_stream_send_has_free(&stream->send)) {
        return LEAT_STREAM_QUEUE_FREE;
    }
    return leat_stream_send_has_new(&stream->send) ? LEAT_STREAM_QUEUE_NEW : LEAT_STREAM_QUEUE_NONE;
}

void leat_streams_requeue(leat_streams *streams, leat_stream *stream)
{
    enum leat_stream_queue wanted = wanted_queue(streams, stream);

    if (wanted != (enum leat_stream_queue)stream->queue) {
        /* One that was being served keeps its turn unless turns go round. */
        bool in_front = stream->queue == LEAT_STREAM_QUEUE_FREE && !stream->incremental;

        leave_queue(streams, stream);
        if (wanted != LEAT_STREAM_QUEUE_NONE) {
            join_queue(streams, stream, wanted, in_front);
        }
    }
    if (wanted == LEAT_STREAM_QUEUE_NEW && stream->control == 0) {
        return; /* has credit, and nothing else to say */
    }
    if (leat_stream_send_wants_blocked(&stream->send)) {
        leat_streams_want_control(streams, stream, LEAT_CONTROL_STREAM_DATA_BLOCKED);
    } else if (stream->control & LEAT_CONTROL_STREAM_DATA_BLOCKED) {
        leat_streams_unwant_control(streams, stream, LEAT_CONTROL_STREAM_DATA_BLOCKED);
    }
    if (leat_stream_send_wants_reset_at(&stream->send)) {
        leat_streams_want_control(streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
    }
}

leat_err leat_streams_set_priority(leat_stream *stream, unsigned urgency, bool incremental)
{
    leat_streams *streams = stream->streams;

    if (urgency >= LEAT_STREAM_URGENCIES) {
        return LEAT_ERR_INVALID;
    }
    leave_queue(streams, stream);
    stream->urgency = (uint8_t)urgency;
    stream->incremental = incremental;
    leat_streams_requeue(streams, stream);
    return LEAT_OK;
}

leat_stream *leat_streams_next_stream(leat_streams *streams)
{
    uint32_t needy = leat_flow_out_left(&streams->flow_out) > 0 ? streams->new_mask : 0;
    uint32_t both = streams->free_mask | needy;
    unsigned urgency;
    const leat_list *queue;

    if (both == 0) {
        return NULL;
    }
    urgency = (unsigned)__builtin_ctz(both);
    queue = streams->free_mask >> urgency & 1 ? &streams->lines->free[urgency]
                                              : &streams->lines->fresh[urgency];
    return LEAT_CONTAINER_OF(leat_list_first(queue), leat_stream, send_link);
}

void leat_streams_stream_sent(leat_streams *streams, leat_stream *stream,
                              const leat_send_part *part)
{
    leat_stream_send_sent(&stream->send, part, &streams->flow_out);
    leat_stream_hold(stream);
    if (part->again) {
        streams->stat_resent += part->len;
    }
    leat_streams_requeue(streams, stream);
    if (stream->incremental && stream->queue != LEAT_STREAM_QUEUE_NONE) {
        leat_link_remove(&stream->send_link);
        leat_list_push_back(queue_of(streams, stream), &stream->send_link);
    }
}

/* ---- control frames ---- */

/* On the list exactly when there is something to send and it may be sent. */
static void list_control(leat_streams *streams, leat_stream *stream)
{
    bool wanted = stream->control != 0 && !leat_streams_is_held(streams, stream);

    if (wanted == leat_link_listed(&stream->control_link)) {
        return;
    }
    if (wanted) {
        leat_list_push_back(&streams->controls, &stream->control_link);
    } else {
        leat_link_remove(&stream->control_link);
    }
}

void leat_streams_want_control(leat_streams *streams, leat_stream *stream, unsigned bits)
{
    if (stream->in_table && bits != 0) {
        stream->control |= (uint8_t)bits;
        list_control(streams, stream);
    }
}

void leat_streams_unwant_control(leat_streams *streams, leat_stream *stream, unsigned bits)
{
    if (stream->control != 0) {
        stream->control &= (uint8_t)~bits;
        list_control(streams, stream);
    }
}

void leat_streams_requeue_all(leat_streams *streams)
{
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        leat_streams_requeue(streams, s);
        list_control(streams, s);
    }
}

/* How much more the peer may be allowed to send, at most: a part of what the budget has left, as
 * several windows grow by it. */
static uint64_t window_room(const leat_streams *streams)
{
    const leat_budget *budget = streams->env.budget;

    if (budget->limit == 0) {
        return UINT64_MAX;
    }
    return budget->used < budget->limit ? (budget->limit - budget->used) / 4 : 0;
}

static bool wants_max_data(const leat_streams *streams)
{
    return (streams->control & LEAT_CONTROL_MAX_DATA) ||
           leat_flow_in_wants_update(&streams->flow_in);
}

static bool wants_data_blocked(const leat_streams *streams)
{
    return streams->new_mask != 0 && leat_flow_out_wants_report(&streams->flow_out);
}

static bool next_of_connection(leat_streams *streams, leat_time now, leat_time srtt,
                               leat_control_frame *frame)
{
    frame->stream = NULL;
    frame->extra = 0;
    if (wants_max_data(streams)) {
        if (leat_flow_in_wants_update(&streams->flow_in)) {
            leat_flow_in_update(&streams->flow_in, now, srtt, window_room(streams));
            streams->control |= LEAT_CONTROL_MAX_DATA;
        }
        frame->what = LEAT_CONTROL_MAX_DATA;
        frame->value = streams->flow_in.limit;
    } else if (wants_data_blocked(streams)) {
        frame->what = LEAT_CONTROL_DATA_BLOCKED;
        frame->value = streams->flow_out.limit;
    } else if (streams->control & LEAT_CONTROL_MAX_STREAMS_BIDI) {
        frame->what = LEAT_CONTROL_MAX_STREAMS_BIDI;
        frame->value = streams->remote[0].limit;
    } else if (streams->control & LEAT_CONTROL_MAX_STREAMS_UNI) {
        frame->what = LEAT_CONTROL_MAX_STREAMS_UNI;
        frame->value = streams->remote[1].limit;
    } else if (streams->control & LEAT_CONTROL_STREAMS_BLOCKED_BIDI) {
        frame->what = LEAT_CONTROL_STREAMS_BLOCKED_BIDI;
        frame->value = streams->local[0].limit;
    } else if (streams->control & LEAT_CONTROL_STREAMS_BLOCKED_UNI) {
        frame->what = LEAT_CONTROL_STREAMS_BLOCKED_UNI;
        frame->value = streams->local[1].limit;
    } else {
        return false;
    }
    return true;
}

static void max_stream_data(leat_streams *streams, leat_stream *stream, leat_time now,
                            leat_time srtt, leat_control_frame *frame)
{
    leat_flow_in *flow = &stream->recv.flow;

    if (leat_stream_recv_wants_credit(&stream->recv)) {
        leat_flow_in_update(flow, now, srtt, window_room(streams));
        leat_flow_in_grow(&streams->flow_in, flow->window + flow->window / 2);
    }
    frame->what = LEAT_CONTROL_MAX_STREAM_DATA;
    frame->value = flow->limit;
}

static void next_of_stream(leat_streams *streams, leat_stream *stream, leat_time now,
                           leat_time srtt, leat_control_frame *frame)
{
    *frame = (leat_control_frame){.stream = stream};
    if (stream->control & LEAT_CONTROL_RESET_STREAM) {
        frame->what = LEAT_CONTROL_RESET_STREAM;
        frame->value = stream->send.reset_code;
        frame->extra = leat_stream_send_final_size(&stream->send);
    } else if (stream->control & LEAT_CONTROL_RESET_STREAM_AT) {
        frame->what = LEAT_CONTROL_RESET_STREAM_AT;
        frame->value = stream->send.reliable;
        frame->extra = leat_stream_send_final_size(&stream->send);
    } else if (stream->control & LEAT_CONTROL_STOP_SENDING) {
        frame->what = LEAT_CONTROL_STOP_SENDING;
        frame->value = stream->stop_sent_code;
    } else if (stream->control & LEAT_CONTROL_MAX_STREAM_DATA) {
        max_stream_data(streams, stream, now, srtt, frame);
    } else {
        LEAT_ASSERT(stream->control == LEAT_CONTROL_STREAM_DATA_BLOCKED);
        frame->what = LEAT_CONTROL_STREAM_DATA_BLOCKED;
        frame->value = stream->send.flow.limit;
    }
}

bool leat_streams_next_control(leat_streams *streams, leat_time now, leat_time srtt,
                               leat_control_frame *frame)
{
    leat_link *link;

    if (next_of_connection(streams, now, srtt, frame)) {
        return true;
    }
    link = leat_list_first(&streams->controls);
    if (!link) {
        return false;
    }
    next_of_stream(streams, LEAT_CONTAINER_OF(link, leat_stream, control_link), now, srtt, frame);
    return true;
}

void leat_streams_control_sent(leat_streams *streams, const leat_control_frame *frame)
{
    if (frame->stream) {
        if (frame->what == LEAT_CONTROL_STREAM_DATA_BLOCKED) {
            leat_flow_out_report_sent(&frame->stream->send.flow);
        } else if (frame->what == LEAT_CONTROL_RESET_STREAM_AT) {
            leat_stream_send_reset_at_sent(&frame->stream->send);
        }
        leat_streams_unwant_control(streams, frame->stream, frame->what);
        leat_stream_hold(frame->stream);
        return;
    }
    streams->control &= ~(uint32_t)frame->what;
    switch (frame->what) {
    case LEAT_CONTROL_DATA_BLOCKED:
        leat_flow_out_report_sent(&streams->flow_out);
        break;
    case LEAT_CONTROL_STREAMS_BLOCKED_BIDI:
        streams->local[0].reported = frame->value + 1;
        break;
    case LEAT_CONTROL_STREAMS_BLOCKED_UNI:
        streams->local[1].reported = frame->value + 1;
        break;
    default:
        break;
    }
}

bool leat_streams_wants_send(const leat_streams *streams)
{
    return streams->control != 0 || !leat_list_empty(&streams->controls) ||
           streams->free_mask != 0 || wants_max_data(streams) || wants_data_blocked(streams) ||
           (streams->new_mask != 0 && leat_flow_out_left(&streams->flow_out) > 0);
}

/* ---- outcomes ---- */

void leat_streams_feed(leat_streams *streams)
{
    const leat_budget *budget = streams->env.budget;

    if (!streams->starved ||
        budget->by[LEAT_BUDGET_STREAM_SEND] > budget->limit / LEAT_STREAMS_FEED_BELOW) {
        return;
    }
    streams->starved = false;
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        if (leat_stream_send_take_writable(&s->send)) {
            leat_streams_tell(streams, s, LEAT_STREAM_EVENT_WRITABLE);
        }
    }
}

void leat_streams_stream_acked(leat_streams *streams, leat_stream *stream, uint64_t offset,
                               size_t len, bool fin)
{
    leat_stream_send_on_acked(&stream->send, offset, len, fin);
    if (stream->in_table) {
        if (leat_stream_send_take_writable(&stream->send)) {
            leat_streams_tell(streams, stream, LEAT_STREAM_EVENT_WRITABLE);
        }
        if (stream->queue == LEAT_STREAM_QUEUE_FREE) {
            leat_streams_requeue(streams, stream); /* what was lost may have arrived after all */
        }
        if (leat_stream_send_ended(&stream->send)) {
            leat_streams_settle(streams, stream);
        }
    }
    if (LEAT_UNLIKELY(streams->starved)) {
        leat_streams_feed(streams);
    }
    leat_streams_release(streams, stream);
}

void leat_streams_stream_probe(leat_streams *streams, leat_stream *stream, uint64_t offset,
                               size_t len, bool fin)
{
    leat_stream_send_on_lost(&stream->send, offset, len, fin);
    if (LEAT_UNLIKELY(stream->once) && leat_stream_send_has_free(&stream->send)) {
        stream->once = false;
        leat_streams_reset(stream, stream->send.reset_code);
    }
    leat_streams_requeue(streams, stream);
}

void leat_streams_stream_lost(leat_streams *streams, leat_stream *stream, uint64_t offset,
                              size_t len, bool fin)
{
    leat_streams_stream_probe(streams, stream, offset, len, fin);
    leat_streams_release(streams, stream);
}

void leat_streams_control_acked(leat_streams *streams, leat_stream *stream, leat_control what,
                                uint64_t value)
{
    if (!stream) {
        return;
    }
    if (what == LEAT_CONTROL_RESET_STREAM) {
        leat_stream_send_on_reset_acked(&stream->send);
        leat_streams_unwant_control(streams, stream, LEAT_CONTROL_RESET_STREAM);
        leat_streams_settle(streams, stream);
    } else if (what == LEAT_CONTROL_RESET_STREAM_AT) {
        leat_stream_send_on_reset_at_acked(&stream->send, value);
        if (!leat_stream_send_wants_reset_at(&stream->send)) {
            leat_streams_unwant_control(streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
        }
        leat_streams_settle(streams, stream);
    } else if (what == LEAT_CONTROL_STOP_SENDING) {
        stream->stop_acked = true;
        leat_streams_unwant_control(streams, stream, LEAT_CONTROL_STOP_SENDING);
    }
    leat_streams_release(streams, stream);
}

/* A frame about a limit is out of date once the limit has moved: the frame about the new one is
 * under way. */
static void lost_of_connection(leat_streams *streams, leat_control what, uint64_t value)
{
    bool again = false;

    switch (what) {
    case LEAT_CONTROL_MAX_DATA:
        again = value == streams->flow_in.limit;
        break;
    case LEAT_CONTROL_DATA_BLOCKED:
        leat_flow_out_report_lost(&streams->flow_out, value);
        break;
    case LEAT_CONTROL_MAX_STREAMS_BIDI:
        again = value == streams->remote[0].limit;
        break;
    case LEAT_CONTROL_MAX_STREAMS_UNI:
        again = value == streams->remote[1].limit;
        break;
    case LEAT_CONTROL_STREAMS_BLOCKED_BIDI:
        again = streams->local[0].blocked && value == streams->local[0].limit;
        break;
    case LEAT_CONTROL_STREAMS_BLOCKED_UNI:
        again = streams->local[1].blocked && value == streams->local[1].limit;
        break;
    default:
        LEAT_UNREACHABLE();
    }
    if (again) {
        streams->control |= (uint32_t)what;
    }
}

static void lost_of_stream(leat_streams *streams, leat_stream *stream, leat_control what,
                           uint64_t value)
{
    const leat_stream_recv *recv = &stream->recv;
    bool again = false;

    switch (what) {
    case LEAT_CONTROL_RESET_STREAM:
        again = stream->send.state == LEAT_SEND_RESET_SENT;
        break;
    case LEAT_CONTROL_RESET_STREAM_AT:
        leat_stream_send_on_reset_at_lost(&stream->send, value);
        leat_streams_requeue(streams, stream);
        break;
    case LEAT_CONTROL_STOP_SENDING:
        again = recv->state == LEAT_RECV_RECV && !stream->stop_acked;
        break;
    case LEAT_CONTROL_MAX_STREAM_DATA:
        again = recv->state == LEAT_RECV_RECV && !recv->stopped && value == recv->flow.limit;
        break;
    case LEAT_CONTROL_STREAM_DATA_BLOCKED:
        leat_flow_out_report_lost(&stream->send.flow, value);
        leat_streams_requeue(streams, stream);
        break;
    default:
        LEAT_UNREACHABLE();
    }
    if (again) {
        leat_streams_want_control(streams, stream, what);
    }
}

void leat_streams_blocked_again(leat_streams *streams)
{
    lost_of_connection(streams, LEAT_CONTROL_DATA_BLOCKED, streams->flow_out.limit);
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        if (s->send.flow.reported > 0) {
            lost_of_stream(streams, s, LEAT_CONTROL_STREAM_DATA_BLOCKED, s->send.flow.limit);
        }
    }
}

void leat_streams_control_probe(leat_streams *streams, leat_stream *stream, leat_control what,
                                uint64_t value)
{
    if (stream) {
        lost_of_stream(streams, stream, what, value);
    } else {
        lost_of_connection(streams, what, value);
    }
}

void leat_streams_control_lost(leat_streams *streams, leat_stream *stream, leat_control what,
                               uint64_t value)
{
    leat_streams_control_probe(streams, stream, what, value);
    if (stream) {
        leat_streams_release(streams, stream);
    }
}

void leat_streams_record_dropped(leat_streams *streams, leat_stream *stream)
{
    if (stream) {
        leat_streams_release(streams, stream);
    }
}
