/* roq/out.c: streams that packets are sent on.
 *
 * A stream's packets are in the order of its bytes, each with where it ends, so that what QUIC says
 * of the stream (leat_stream_progress) says which packets have arrived. At the deadline of the
 * first that has not, the stream is reset: nothing of it is sent again, and what has not been sent
 * is not sent at all (s5.2.2). If all had left by then, the reset waits for a loss, and until the
 * word of its arrival should have come; half a round trip where it carries a whole flow. Its media
 * frame is dead then. On a stream that carries a whole flow later frames may lie behind it; of
 * these, what was not yet sent goes back to the queue and on the next stream; a packet sent is
 * never sent twice, as the draft wants it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

#define ACK_DELAY (25 * LEAT_MILLISECOND) /* that most peers take for an acknowledgement */

static void out_timer(leat_timer *timer, leat_time now);

/* ---- opening ---- */

static leat_roq_out *find_frame(leat_roq_flow *flow, const leat_roq_packet *p)
{
    leat_roq_out *out = flow->outs;

    while (out && (out->mode != LEAT_ROQ_MODE_FRAME || out->finished || out->over || out->rtcp ||
                   out->ssrc != p->ssrc || out->timestamp != p->timestamp)) {
        out = out->next;
    }
    return out;
}

static void finish(leat_roq_out *out)
{
    if (!out->finished && !out->over) {
        out->finished = leat_stream_finish(out->stream) == LEAT_OK;
    }
}

/* Where frames come without a marker, the next one ends the one before. */
static void finish_before(leat_roq_flow *flow, const leat_roq_packet *p)
{
    for (leat_roq_out *out = flow->outs; out; out = out->next) {
        if (out->mode == LEAT_ROQ_MODE_FRAME && !out->rtcp && out->ssrc == p->ssrc) {
            finish(out);
        }
    }
}

static leat_err open_out(leat_roq_packet *p, uint8_t mode, leat_roq_out **to)
{
    leat_roq_flow *flow = p->flow;
    leat_roq_out *out = leat_pool_take_zeroed(flow->roq->out_pool);
    leat_err err;

    if (!out) {
        return LEAT_ERR_NOMEM;
    }
    err = leat_stream_open(flow->roq->conn, false, &out->stream);
    if (err != LEAT_OK) {
        leat_pool_give(flow->roq->out_pool, out);
        return err;
    }
    out->flow = flow;
    out->mode = mode;
    out->rtcp = p->rtcp;
    out->ssrc = p->ssrc;
    out->timestamp = p->timestamp;
    leat_timer_init(&out->timer, flow->roq->ctx, out_timer);
    leat_stream_set_user(out->stream, out);
    leat_stream_set_priority(out->stream, flow->settings.urgency, false);
    out->next = flow->outs;
    if (out->next) {
        out->next->prev = out;
    }
    flow->outs = out;
    flow->stats.streams_opened++;
    *to = out;
    return LEAT_OK;
}

/* One that was opened and could not be written to: it waits for `stream_writable`, and its packet
 * comes again, or another. */
static leat_roq_out *find_empty(leat_roq_flow *flow, const leat_roq_packet *p, uint8_t mode)
{
    leat_roq_out *out = flow->outs;

    if (!out || out->written > 0 || out->over || out->finished || out->mode != mode) {
        return NULL;
    }
    out->rtcp = p->rtcp;
    out->ssrc = p->ssrc;
    out->timestamp = p->timestamp;
    return out;
}

leat_err leat_roq_out_for(leat_roq_packet *p, uint8_t mode, leat_roq_out **out)
{
    leat_roq_flow *flow = p->flow;
    leat_err err;

    *out = find_empty(flow, p, mode);
    if (*out) {
        return LEAT_OK;
    }
    switch (mode) {
    case LEAT_ROQ_MODE_FLOW:
        if (flow->current) {
            *out = flow->current;
            return LEAT_OK;
        }
        err = open_out(p, mode, out);
        if (err == LEAT_OK) {
            flow->current = *out;
        }
        return err;
    case LEAT_ROQ_MODE_FRAME:
        if (!p->rtcp) {
            *out = find_frame(flow, p);
            if (*out) {
                return LEAT_OK;
            }
            finish_before(flow, p);
        }
        return open_out(p, mode, out);
    default:
        return open_out(p, mode, out);
    }
}

/* ---- writing ---- */

static void arm(leat_roq_out *out)
{
    leat_timer_set(&out->timer,
                   out->packets.first ? out->packets.first->deadline : LEAT_TIME_NEVER);
}

static void unlink_out(leat_roq *roq, leat_roq_out *out)
{
    leat_roq_out **first = out->flow ? &out->flow->outs : &roq->orphans;

    *(out->prev ? &out->prev->next : first) = out->next;
    if (out->next) {
        out->next->prev = out->prev;
    }
    if (out->flow && out->flow->current == out) {
        out->flow->current = NULL;
    }
}

leat_err leat_roq_out_write(leat_roq_out *out, leat_roq_packet *p)
{
    leat_buf buf;
    size_t len;
    leat_err err;

    leat_roq_out_look(out);
    buf = leat_roq_packet_frame(p, out->written == 0, true);
    len = buf.len;
    err = leat_stream_write_buf(out->stream, &buf);
    leat_buf_release(&buf); /* empty when it was taken */
    if (err != LEAT_OK) {
        if (out->written == 0 && err != LEAT_ERR_BLOCKED) { /* nothing will come on it */
            out->over = true;
            leat_stream_reset(out->stream, LEAT_ROQ_INTERNAL_ERROR);
        }
        return err;
    }
    p->from = out->written;
    out->written += len;
    p->to = out->written;
    if (out->mode != LEAT_ROQ_MODE_FLOW) {
        leat_buf_release(&p->buf); /* it will not come back */
    }
    leat_roq_list_push(&out->packets, p);
    if (out->mode == LEAT_ROQ_MODE_PACKET ||
        (out->mode == LEAT_ROQ_MODE_FRAME && (p->rtcp || p->marker))) {
        finish(out);
    }
    leat_roq_gate_written(out, len);
    arm(out);
    return LEAT_OK;
}

/* ---- what became of it ---- */

void leat_roq_out_look(leat_roq_out *out)
{
    leat_stream_progress progress;
    leat_roq_packet *p;

    leat_stream_progress_get(out->stream, &progress);
    while ((p = out->packets.first) != NULL && p->to <= progress.acked) {
        leat_roq_list_remove(&out->packets, p);
        leat_roq_packet_done(out->flow->roq, p, LEAT_ROQ_OUTCOME_ACKED);
    }
}

/* All that is on it is given up, except, in mode FLOW, what was never sent: that goes back. */
static void give_up(leat_roq_out *out, leat_roq_outcome outcome)
{
    leat_roq_flow *flow = out->flow;
    bool flow_mode = out->mode == LEAT_ROQ_MODE_FLOW;
    leat_time now = leat_roq_now(flow->roq);
    leat_stream_progress progress;
    leat_roq_list back = {NULL, NULL};
    leat_roq_packet *p;

    leat_stream_progress_get(out->stream, &progress);
    leat_roq_gate_forget(out);
    out->over = true;
    if (flow->current == out) {
        flow->current = NULL;
    }
    while ((p = out->packets.first) != NULL) {
        leat_roq_list_remove(&out->packets, p);
        if (flow_mode && p->from >= progress.sent && p->deadline > now &&
            !(flow->dead_known && !p->rtcp && p->ssrc == flow->dead_ssrc &&
              p->timestamp == flow->dead_timestamp)) {
            leat_roq_list_push(&back, p);
            continue;
        }
        if (!p->rtcp && flow_mode) {
            leat_roq_frame_dies(flow, p->ssrc, p->timestamp, outcome);
        }
        leat_roq_packet_done(flow->roq, p, outcome);
    }
    while ((p = back.last) != NULL) {
        leat_roq_list_remove(&back, p);
        leat_roq_unsend(flow, p);
    }
    leat_timer_unset(&out->timer);
}

void leat_roq_out_cancel(leat_roq_out *out, leat_roq_outcome outcome)
{
    if (out->over) {
        return;
    }
    leat_roq_out_look(out);
    give_up(out, outcome);
    out->flow->stats.streams_reset++;
    leat_stream_reset(out->stream, LEAT_ROQ_FRAME_CANCELLED);
}

void leat_roq_out_stopped(leat_roq_out *out)
{
    if (!out->flow || out->over) {
        return;
    }
    leat_roq_out_look(out);
    give_up(out, LEAT_ROQ_OUTCOME_STOPPED);
    if (out->mode == LEAT_ROQ_MODE_FRAME && !out->rtcp && !out->finished) {
        leat_roq_cancel_frame(out->flow, out->ssrc, out->timestamp, LEAT_ROQ_OUTCOME_STOPPED);
    }
    leat_roq_pump(out->flow->roq);
}

/* What left whole within its lifetime may have arrived: so long, the word of that may be on its
 * way. A stream of its own is not sent again meanwhile; on a flow's one stream others wait behind
 * it. */
static leat_time grace(const leat_roq_out *out)
{
    bool flow_mode = out->mode == LEAT_ROQ_MODE_FLOW;
    const leat_roq_packet *p = flow_mode ? out->packets.first : out->packets.last;
    leat_stream_progress progress;
    leat_conn_stats_data conn;

    leat_stream_progress_get(out->stream, &progress);
    if (p->to > progress.sent || (!flow_mode && !out->finished)) {
        return 0;
    }
    leat_conn_stats(out->flow->roq->conn, &conn);
    if (flow_mode) {
        return conn.rtt_smoothed / 2;
    }
    leat_stream_reset_if_lost(out->stream, LEAT_ROQ_FRAME_CANCELLED);
    return conn.rtt_smoothed + ACK_DELAY;
}

static void out_timer(leat_timer *timer, leat_time now)
{
    leat_roq_out *out = LEAT_ROQ_OF(timer, leat_roq_out, timer);
    leat_roq_flow *flow = out->flow;
    leat_roq_packet *first;
    leat_time late;

    leat_roq_out_look(out);
    first = out->packets.first;
    if (!first || first->deadline > now) {
        arm(out);
        return;
    }
    late = first->deadline + grace(out);
    if (late > now) {
        leat_timer_set(timer, late);
        return;
    }
    if (!first->rtcp && out->mode != LEAT_ROQ_MODE_PACKET) {
        leat_roq_cancel_frame(flow, first->ssrc, first->timestamp, LEAT_ROQ_OUTCOME_LATE);
    }
    leat_roq_out_cancel(out, LEAT_ROQ_OUTCOME_LATE);
    leat_roq_pump(flow->roq);
}

/* ---- the end ---- */

void leat_roq_out_free(leat_roq *roq, leat_roq_out *out)
{
    leat_roq_packet *p;

    while ((p = out->packets.first) != NULL) {
        leat_roq_list_remove(&out->packets, p);
        leat_roq_packet_free(roq, p);
    }
    leat_timer_unset(&out->timer);
    leat_roq_gate_forget(out);
    unlink_out(roq, out);
    leat_pool_give(roq->out_pool, out);
}

void leat_roq_out_closed(leat_roq *roq, leat_roq_out *out)
{
    if (out->flow && !out->over) {
        leat_roq_out_look(out);
    }
    leat_stream_set_user(out->stream, NULL);
    leat_roq_out_free(roq, out);
}

void leat_roq_out_orphan(leat_roq_out *out)
{
    leat_roq *roq = out->flow->roq;
    leat_roq_packet *p;

    while ((p = out->packets.first) != NULL) {
        leat_roq_list_remove(&out->packets, p);
        leat_roq_packet_free(roq, p);
    }
    leat_timer_unset(&out->timer);
    leat_roq_gate_forget(out);
    unlink_out(roq, out);
    if (!out->over) {
        out->over = true;
        leat_stream_reset(out->stream, LEAT_ROQ_FRAME_CANCELLED);
    }
    out->flow = NULL;
    out->prev = NULL;
    out->next = roq->orphans;
    if (out->next) {
        out->next->prev = out;
    }
    roq->orphans = out;
}
