/* roq/gate.c: how much of what waits QUIC is given, which flow is next, and which frames are not
 * worth beginning.
 *
 * What QUIC has is not easily had back, so it is given a little more than it sends at once: the
 * gate. It is open while fewer bytes than that have not left; the rest waits in the flows' queues,
 * where a frame may still be dropped for nothing. A timer looks again when about half has left.
 *
 *   backlog   bytes of streams beyond what leat_stream_progress has as sent, and datagrams that the
 *             connection's statistics do not count as sent: looked at when the gate seems closed
 *   rate      of what leaves while there is a backlog, half of it forgotten every half second; the
 *             window by the round trip until that is known, and again once all had left before the
 *             look while more waited: then it was the gate that held QUIC back, not the path
 *   turns     among flows of one urgency it is that of the one that was given least; a flow that
 *             had nothing to send saves no turns up
 *
 * In time is there by the deadline: the way, with what queues on it, is taken off. A flow whose
 * newest packet would be late behind all that waits drops its oldest frames of which nothing has
 * left, until half of the time would do: what goes out then is fresh, and whole. A frame that would
 * not be through in time by itself is not begun; that others share the rate is not counted there,
 * or the flow that came first would keep it. One that a whole lifetime would not do for is tried
 * all the same: it may be the rate that is wrong. What has begun may leave until its deadline.
 *
 * A stream that its receiver does not read keeps its backlog: once much else has left, its flow is
 * left out of the sum and waits alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

enum {
    GATE_LEAST = 7200,                /* bytes: six datagrams of QUIC's least size */
    GATE_TIME = 8 * LEAT_MILLISECOND, /* … or what leaves in this */
    LOOK_LEAST = LEAT_MILLISECOND,
    LOOK_MOST = 10 * LEAT_MILLISECOND,
    RATE_KNOWN = 50 * LEAT_MILLISECOND, /* of measuring, for a rate to count */
    RATE_MEMORY = 500 * LEAT_MILLISECOND,
    STALLED = 4 /* gates of others' bytes left, and none of its own */
};

/* ---- the backlog ---- */

static void unlink_busy(leat_roq *roq, leat_roq_out *out)
{
    *(out->busy_prev ? &out->busy_prev->busy_next : &roq->gate.busy) = out->busy_next;
    if (out->busy_next) {
        out->busy_next->busy_prev = out->busy_prev;
    }
    out->busy_prev = out->busy_next = NULL;
    out->busy = false;
}

void leat_roq_gate_written(leat_roq_out *out, size_t len)
{
    leat_roq_gate *gate = &out->flow->roq->gate;

    out->flow->unsent += len;
    gate->unsent += len;
    if (!out->busy) {
        out->busy = true;
        out->busy_prev = NULL;
        out->busy_next = gate->busy;
        if (out->busy_next) {
            out->busy_next->busy_prev = out;
        }
        gate->busy = out;
    }
}

/* So much of the stream has left, or will never. */
static void settle(leat_roq_out *out, uint64_t bytes)
{
    out->left += bytes;
    out->flow->unsent -= bytes;
    out->flow->roq->gate.unsent -= bytes;
    if (out->left == out->written) {
        unlink_busy(out->flow->roq, out);
    }
}

void leat_roq_gate_forget(leat_roq_out *out)
{
    if (out->busy) {
        settle(out, out->written - out->left);
    }
}

void leat_roq_gate_datagram(leat_roq *roq, size_t len)
{
    leat_roq_gate *gate = &roq->gate;

    gate->datagram_len =
        gate->datagram_len ? (7 * gate->datagram_len + (uint32_t)len) / 8 : (uint32_t)len;
    gate->datagrams++;
}

void leat_roq_gate_unsent_datagram(leat_roq *roq)
{
    roq->gate.datagrams -= roq->gate.datagrams > 0;
}

static uint64_t look_at_streams(leat_roq *roq)
{
    leat_roq_out *next;
    uint64_t left = 0;

    for (leat_roq_out *out = roq->gate.busy; out; out = next) {
        leat_stream_progress progress;

        next = out->busy_next;
        leat_stream_progress_get(out->stream, &progress);
        if (progress.sent > out->left) {
            left += progress.sent - out->left;
            out->flow->moved = roq->gate.left + left;
            settle(out, progress.sent - out->left);
        }
    }
    return left;
}

static uint64_t look_at_datagrams(leat_roq_gate *gate, uint64_t frames_sent)
{
    uint64_t sent = frames_sent - gate->frames_sent;

    gate->frames_sent = frames_sent;
    sent = sent < gate->datagrams ? sent : gate->datagrams;
    gate->datagrams -= sent;
    return sent * gate->datagram_len;
}

static uint64_t backlog(const leat_roq_gate *gate)
{
    return gate->unsent + gate->datagrams * gate->datagram_len;
}

/* ---- the rate ---- */

static void measure(leat_roq_gate *gate, leat_time time, uint64_t bytes)
{
    gate->rate_time += time;
    gate->rate_bytes += bytes;
    while (gate->rate_time > RATE_MEMORY) {
        gate->rate_time /= 2;
        gate->rate_bytes /= 2;
    }
}

static void note_rate(leat_roq *roq, const leat_conn_stats_data *stats)
{
    leat_roq_gate *gate = &roq->gate;

    /* Media fill the queue of their own direction; the way back is as long as it ever was. */
    gate->way = stats->rtt_smoothed > stats->rtt_min ? stats->rtt_smoothed - stats->rtt_min / 2
                                                     : stats->rtt_smoothed / 2;
    if (gate->rate_time >= RATE_KNOWN) {
        gate->rate = gate->rate_bytes * LEAT_SECOND / gate->rate_time;
        return;
    }
    gate->rate = stats->rtt_smoothed ? stats->cwnd * LEAT_SECOND / stats->rtt_smoothed : 0;
    if (roq->rate.estimate && roq->rate.pacing / 8 < gate->rate) {
        gate->rate = roq->rate.pacing / 8;
    }
}

/* A time in which all had left meanwhile says nothing of what could have, but that what was
 * measured before is too little: a gate that went by it would never see more leave than it gives.
 */
static void note_left(leat_roq_gate *gate, leat_time time, uint64_t left)
{
    if (backlog(gate) > 0) {
        measure(gate, time, left);
    } else {
        gate->rate_time = 0;
        gate->rate_bytes = 0;
    }
}

static void look(leat_roq *roq)
{
    leat_roq_gate *gate = &roq->gate;
    leat_time now = leat_roq_now(roq);
    leat_conn_stats_data stats;
    uint64_t left;

    leat_conn_stats(roq->conn, &stats);
    left = look_at_streams(roq) + look_at_datagrams(gate, stats.datagram_frames_sent);
    gate->left += left;
    if (gate->closed) {
        note_left(gate, now - gate->looked, left);
    }
    gate->closed = false;
    gate->looked = now;
    note_rate(roq, &stats);
}

/* Nanoseconds; a rate of nothing is not known. */
static leat_time time_for(const leat_roq_gate *gate, uint64_t bytes)
{
    return gate->rate ? bytes * LEAT_SECOND / gate->rate : 0;
}

static uint64_t width(const leat_roq_gate *gate)
{
    uint64_t most = gate->rate * GATE_TIME / LEAT_SECOND;

    return most > GATE_LEAST ? most : GATE_LEAST;
}

/* ---- whose turn it is ---- */

static bool is_stalled(const leat_roq_flow *flow)
{
    const leat_roq_gate *gate = &flow->roq->gate;

    return flow->unsent > 0 && gate->left - flow->moved > STALLED * width(gate);
}

/* What leaves before a packet of the flow that is handed over now: QUIC keeps to urgencies, and
 * does not wait for those that do not get on. */
static uint64_t ahead_of(const leat_roq_flow *flow)
{
    const leat_roq_gate *gate = &flow->roq->gate;
    uint64_t sum = backlog(gate);

    for (const leat_roq_out *out = gate->busy; out; out = out->busy_next) {
        if (out->flow->settings.urgency > flow->settings.urgency || is_stalled(out->flow)) {
            sum -= out->written - out->left;
        }
    }
    return sum;
}

/* One that has nothing at QUIC may always give a packet: nobody's backlog keeps it out. */
static bool is_open(const leat_roq_flow *flow, bool wide)
{
    const leat_roq_gate *gate = &flow->roq->gate;
    bool own =
        flow->settings.mode == LEAT_ROQ_MODE_DATAGRAM ? gate->datagrams > 0 : flow->unsent > 0;

    return !is_stalled(flow) && (wide || !own || ahead_of(flow) < width(gate));
}

static bool is_before(const leat_roq_flow *a, const leat_roq_flow *b)
{
    return a->settings.urgency != b->settings.urgency ? a->settings.urgency < b->settings.urgency
                                                      : a->given < b->given;
}

leat_roq_flow *leat_roq_gate_next(leat_roq *roq)
{
    leat_roq_gate *gate = &roq->gate;
    leat_roq_flow *best = NULL;
    bool wide = backlog(gate) < width(gate);

    if (roq->waits && (!wide || gate->rate == 0)) {
        look(roq);
        wide = backlog(gate) < width(gate);
    }
    for (leat_roq_flow *flow = roq->waits; flow; flow = flow->waits_next) {
        if (!flow->blocked && is_open(flow, wide) && (!best || is_before(flow, best))) {
            best = flow;
        }
    }
    return best;
}

void leat_roq_gate_given(leat_roq_flow *flow, size_t len)
{
    flow->roq->gate.turn = flow->given;
    flow->given += len;
}

void leat_roq_gate_waits(leat_roq_flow *flow)
{
    if (flow->given < flow->roq->gate.turn) {
        flow->given = flow->roq->gate.turn;
    }
}

void leat_roq_gate_pumped(leat_roq *roq)
{
    leat_roq_gate *gate = &roq->gate;
    leat_time wait = time_for(gate, backlog(gate) / 2);

    gate->closed = roq->waits != NULL && backlog(gate) > 0;
    if (!gate->closed) {
        leat_timer_unset(&gate->timer);
        return;
    }
    wait = wait < LOOK_LEAST ? LOOK_LEAST : wait > LOOK_MOST ? LOOK_MOST : wait;
    leat_timer_set(&gate->timer, leat_roq_now(roq) + wait);
}

void leat_roq_gate_timer(leat_timer *timer, leat_time now)
{
    leat_roq *roq = LEAT_ROQ_OF(timer, leat_roq, gate.timer);

    (void)now;
    look(roq);
    leat_roq_pump(roq);
}

/* ---- what is worth sending ---- */

/* Flows that share the way with this one, itself among them. */
static uint64_t sharers(const leat_roq_flow *flow)
{
    uint64_t count = 1;

    for (const leat_roq_flow *other = flow->roq->waits; other; other = other->waits_next) {
        count += other != flow && other->settings.urgency <= flow->settings.urgency;
    }
    return count;
}

/* What is left for the packet to leave in, so that it arrives by its deadline; half of its lifetime
 * where that does not do for the way. */
static leat_time time_left(const leat_roq_packet *p)
{
    const leat_roq *roq = p->flow->roq;
    leat_time now = leat_roq_now(roq);
    leat_time way = roq->gate.way;
    leat_time half = (p->deadline - p->queued) / 2;

    way = way < half ? way : half;
    return p->deadline > now + way ? p->deadline - now - way : 0;
}

static leat_time time_needed(const leat_roq_flow *flow, uint64_t bytes)
{
    return time_for(&flow->roq->gate, ahead_of(flow) + bytes * sharers(flow));
}

/* The oldest of the flow's frames that may be dropped for newer ones. */
static leat_roq_packet *oldest_to_drop(const leat_roq_flow *flow)
{
    const leat_roq_packet *newest = flow->queue.last;
    leat_roq_packet *p = flow->queue.first;

    while (p && (p->rtcp || p->deadline == LEAT_TIME_NEVER || leat_roq_is_begun(flow, p))) {
        p = p->next;
    }
    return p && p != newest && !leat_roq_same_frame(p, newest) ? p : NULL;
}

void leat_roq_gate_shed(leat_roq_flow *flow)
{
    const leat_roq_packet *newest = flow->queue.last;
    leat_roq_packet *p;
    leat_time left;

    if (!newest || newest->deadline == LEAT_TIME_NEVER) {
        return;
    }
    left = time_left(newest);
    if (time_needed(flow, flow->stats.queue_bytes) <= left) {
        return;
    }
    while (time_needed(flow, flow->stats.queue_bytes) > left / 2 &&
           (p = oldest_to_drop(flow)) != NULL) {
        leat_roq_cancel_frame(flow, p->ssrc, p->timestamp, LEAT_ROQ_OUTCOME_LATE);
    }
}

bool leat_roq_gate_is_hopeless(const leat_roq_packet *p)
{
    const leat_roq_flow *flow = p->flow;
    uint64_t bytes = 0;

    if (p->rtcp || p->deadline == LEAT_TIME_NEVER || leat_roq_is_begun(flow, p) ||
        p->queued == leat_roq_now(flow->roq)) {
        return false;
    }
    for (const leat_roq_packet *q = p; q; q = q->next) {
        bytes += leat_roq_same_frame(p, q) ? q->len : 0;
    }
    return time_for(&flow->roq->gate, ahead_of(flow) + bytes) > time_left(p) &&
           time_for(&flow->roq->gate, bytes) <= p->deadline - p->queued;
}
