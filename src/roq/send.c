/* roq/send.c: a flow's queue.
 *
 * Everything goes through it, in order, and out at once if the gate (gate.c) is open. The queue is
 * where late packets are dropped for nothing: what QUIC has is not easily had back. A packet leaves
 * when
 *   - QUIC takes it: as a datagram, with what is left of its lifetime, or on a stream (out.c);
 *   - its lifetime is over, or would be before all of its frame has left (gate.c), and with it the
 * rest of its media frame, which is of no use alone;
 *   - newer ones push it out of a full queue, a media frame at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

/* ---- in and out of the queue ---- */

static void tell_room(leat_roq_flow *flow)
{
    if (flow->want_writable && leat_roq_has_room(flow)) {
        leat_ctx_run_soon(flow->roq->ctx, &flow->roq->task);
    }
}

static void begin_to_wait(leat_roq_flow *flow)
{
    leat_roq *roq = flow->roq;

    flow->waiting = true;
    flow->waits_prev = NULL;
    flow->waits_next = roq->waits;
    if (flow->waits_next) {
        flow->waits_next->waits_prev = flow;
    }
    roq->waits = flow;
    leat_roq_gate_waits(flow);
}

static void end_to_wait(leat_roq_flow *flow)
{
    *(flow->waits_prev ? &flow->waits_prev->waits_next : &flow->roq->waits) = flow->waits_next;
    if (flow->waits_next) {
        flow->waits_next->waits_prev = flow->waits_prev;
    }
    flow->waiting = false;
    leat_timer_unset(&flow->timer);
}

static void enqueue(leat_roq_flow *flow, leat_roq_packet *p, bool front)
{
    if (!flow->waiting) {
        begin_to_wait(flow);
    }
    if (front) {
        leat_roq_list_push_front(&flow->queue, p);
    } else {
        leat_roq_list_push(&flow->queue, p);
    }
    flow->stats.queue_packets++;
    flow->stats.queue_bytes += p->len;
}

static void dequeue(leat_roq_flow *flow, leat_roq_packet *p)
{
    leat_roq_list_remove(&flow->queue, p);
    flow->stats.queue_packets--;
    flow->stats.queue_bytes -= p->len;
    if (!flow->queue.first) {
        end_to_wait(flow);
    }
    tell_room(flow);
}

static void arm(leat_roq_flow *flow)
{
    leat_timer_set(&flow->timer, flow->queue.first ? flow->queue.first->deadline : LEAT_TIME_NEVER);
}

static bool is_dead(const leat_roq_flow *flow, const leat_roq_packet *p)
{
    return flow->dead_known && !p->rtcp && p->ssrc == flow->dead_ssrc &&
           p->timestamp == flow->dead_timestamp;
}

bool leat_roq_is_begun(const leat_roq_flow *flow, const leat_roq_packet *p)
{
    for (size_t i = 0; i < LEAT_ROQ_BEGUN; i++) {
        const leat_roq_begun *begun = &flow->begun[i];

        if (begun->known && begun->ssrc == p->ssrc && begun->timestamp == p->timestamp) {
            return true;
        }
    }
    return false;
}

/* A source's newest frame takes the place of the one before. */
static void note_begun(leat_roq_flow *flow, const leat_roq_packet *p)
{
    leat_roq_begun *at = NULL;

    if (p->rtcp) {
        return;
    }
    for (size_t i = 0; i < LEAT_ROQ_BEGUN && !at; i++) {
        if (flow->begun[i].known && flow->begun[i].ssrc == p->ssrc) {
            at = &flow->begun[i];
        }
    }
    if (!at) {
        at = &flow->begun[flow->begun_next];
        flow->begun_next = (flow->begun_next + 1) % LEAT_ROQ_BEGUN;
    }
    *at = (leat_roq_begun){.ssrc = p->ssrc, .timestamp = p->timestamp, .known = true};
}

/* ---- giving up ---- */

static void drop(leat_roq_flow *flow, leat_roq_packet *p, leat_roq_outcome outcome)
{
    dequeue(flow, p);
    leat_roq_packet_done(flow->roq, p, outcome);
}

void leat_roq_frame_dies(leat_roq_flow *flow, uint32_t ssrc, uint32_t timestamp,
                         leat_roq_outcome outcome)
{
    flow->dead_known = true;
    flow->dead_outcome = (uint8_t)outcome;
    flow->dead_ssrc = ssrc;
    flow->dead_timestamp = timestamp;
}

void leat_roq_cancel_frame(leat_roq_flow *flow, uint32_t ssrc, uint32_t timestamp,
                           leat_roq_outcome outcome)
{
    leat_roq_packet *next;

    leat_roq_frame_dies(flow, ssrc, timestamp, outcome);
    for (leat_roq_packet *p = flow->queue.first; p; p = next) {
        next = p->next;
        if (is_dead(flow, p)) {
            drop(flow, p, outcome);
        }
    }
    for (leat_roq_out *out = flow->outs; out; out = out->next) {
        if (out->mode == LEAT_ROQ_MODE_FRAME && !out->rtcp && !out->over && out->ssrc == ssrc &&
            out->timestamp == timestamp) {
            leat_roq_out_cancel(out, outcome);
        }
    }
}

static void give_up(leat_roq_flow *flow, leat_roq_packet *p, leat_roq_outcome outcome)
{
    if (p->rtcp) {
        drop(flow, p, outcome);
    } else {
        leat_roq_cancel_frame(flow, p->ssrc, p->timestamp, outcome);
    }
}

static void drop_late(leat_roq_flow *flow)
{
    leat_time now = leat_roq_now(flow->roq);

    while (flow->queue.first && flow->queue.first->deadline <= now) {
        give_up(flow, flow->queue.first, LEAT_ROQ_OUTCOME_LATE);
    }
}

/* The oldest that may be dropped. */
static leat_roq_packet *droppable(const leat_roq_flow *flow)
{
    leat_roq_packet *p = flow->queue.first;

    while (p && p->deadline == LEAT_TIME_NEVER) {
        p = p->next;
    }
    return p;
}

static leat_err make_room(leat_roq_flow *flow, size_t len)
{
    drop_late(flow);
    while (flow->stats.queue_packets >= flow->settings.queue_packets ||
           flow->stats.queue_bytes + len > flow->settings.queue_bytes) {
        leat_roq_packet *p = droppable(flow);

        if (!p) {
            flow->want_writable = true;
            return LEAT_ERR_BLOCKED;
        }
        give_up(flow, p, LEAT_ROQ_OUTCOME_OVERFLOW);
    }
    return LEAT_OK;
}

void leat_roq_queue_drop(leat_roq_flow *flow)
{
    leat_roq_packet *p;

    while ((p = flow->queue.first) != NULL) {
        dequeue(flow, p);
        leat_roq_packet_free(flow->roq, p);
    }
}

/* ---- handing over ---- */

static void count_sent(leat_roq_flow *flow, const leat_roq_packet *p)
{
    note_begun(flow, p);
    leat_roq_gate_given(flow, p->len);
    flow->stats.packets_sent++;
    flow->stats.bytes_sent += p->len;
}

static leat_err send_datagram(leat_roq_flow *flow, leat_roq_packet *p)
{
    leat_datagram_options options = {
        .lifetime = p->deadline == LEAT_TIME_NEVER ? 0 : p->deadline - leat_roq_now(flow->roq),
        .tag = (uint64_t)(uintptr_t)p,
        .notify = true,
    };
    leat_buf buf = leat_roq_packet_frame(p, true, false);
    leat_err err = leat_conn_send_datagram_buf(flow->roq->conn, &buf, &options);

    leat_buf_release(&buf); /* empty when it was taken */
    if (err == LEAT_OK) {
        dequeue(flow, p);
        leat_buf_release(&p->buf);
        leat_roq_list_push(&flow->flight, p);
        leat_roq_gate_datagram(flow->roq, p->len);
        count_sent(flow, p);
    }
    return err;
}

static leat_err send_on_stream(leat_roq_flow *flow, leat_roq_packet *p, uint8_t mode)
{
    leat_roq_out *out;
    leat_err err = leat_roq_out_for(p, mode, &out);

    if (err != LEAT_OK) {
        return err;
    }
    dequeue(flow, p);
    err = leat_roq_out_write(out, p);
    if (err == LEAT_OK) {
        count_sent(flow, p);
    } else {
        enqueue(flow, p, true);
    }
    return err;
}

static leat_err send_one(leat_roq_flow *flow, leat_roq_packet *p)
{
    size_t framed = leat_roq_varint_len(flow->id) + p->len;

    if (p->mode != LEAT_ROQ_MODE_DATAGRAM) {
        return send_on_stream(flow, p, p->mode);
    }
    if (framed <= leat_conn_datagram_max(flow->roq->conn)) {
        return send_datagram(flow, p);
    }
    if (!leat_conn_is_connected(flow->roq->conn)) {
        return LEAT_ERR_STATE; /* what the path takes is not known yet */
    }
    leat_err err = send_on_stream(flow, p, LEAT_ROQ_MODE_PACKET);

    flow->stats.packets_oversize += err == LEAT_OK;
    return err;
}

/* The flow's next packet. What QUIC refuses for now waits for its event; without memory the packet
 * is dropped, so that the next one may find some. */
static void serve(leat_roq_flow *flow)
{
    leat_roq_packet *p = flow->queue.first;
    leat_err err;

    if (is_dead(flow, p)) {
        drop(flow, p, (leat_roq_outcome)flow->dead_outcome);
        return;
    }
    if (leat_roq_gate_is_hopeless(p)) {
        give_up(flow, p, LEAT_ROQ_OUTCOME_LATE);
        return;
    }
    err = send_one(flow, p);
    if (err == LEAT_ERR_NOMEM) {
        drop(flow, p, LEAT_ROQ_OUTCOME_DROPPED);
    } else if (err != LEAT_OK) {
        flow->blocked = true;
    }
}

static void prepare(leat_roq *roq)
{
    leat_roq_flow *next;

    for (leat_roq_flow *flow = roq->waits; flow; flow = next) {
        next = flow->waits_next;
        flow->blocked = false;
        drop_late(flow);
    }
}

void leat_roq_pump(leat_roq *roq)
{
    leat_roq_flow *flow, *next;

    if (roq->pumping || roq->closing) {
        return;
    }
    roq->pumping = true;
    prepare(roq);
    while ((flow = leat_roq_gate_next(roq)) != NULL) {
        serve(flow);
    }
    for (flow = roq->waits; flow; flow = next) {
        next = flow->waits_next;
        leat_roq_gate_shed(flow);
        arm(flow);
    }
    leat_roq_gate_pumped(roq);
    roq->pumping = false;
}

void leat_roq_queue_timer(leat_timer *timer, leat_time now)
{
    leat_roq_flow *flow = LEAT_ROQ_OF(timer, leat_roq_flow, timer);

    (void)now;
    leat_roq_pump(flow->roq);
}

void leat_roq_unsend(leat_roq_flow *flow, leat_roq_packet *p)
{
    flow->stats.packets_sent--;
    flow->stats.bytes_sent -= p->len;
    enqueue(flow, p, true);
}

/* ---- the public face ---- */

leat_err leat_roq_send(leat_roq_flow *flow, leat_span packet, const leat_roq_send_options *options)
{
    static const leat_roq_send_options none;
    leat_roq_packet *p;
    leat_err err;
    bool rtcp;

    options = options ? options : &none;
    if (flow->roq->closing) {
        return LEAT_ERR_CLOSED;
    }
    if (!leat_roq_is_rtp(packet, &rtcp) ||
        (options->use_mode && (unsigned)options->mode >= LEAT_ROQ_MODES)) {
        return LEAT_ERR_INVALID;
    }
    if (packet.len > flow->settings.queue_bytes) {
        return LEAT_ERR_LIMIT;
    }
    err = make_room(flow, packet.len);
    if (err != LEAT_OK) {
        return err;
    }
    p = leat_roq_packet_new(flow, packet, options);
    if (!p) {
        return LEAT_ERR_NOMEM;
    }
    if (is_dead(flow, p)) {
        leat_roq_packet_done(flow->roq, p, (leat_roq_outcome)flow->dead_outcome);
        return LEAT_OK;
    }
    enqueue(flow, p, false);
    leat_roq_pump(flow->roq);
    return LEAT_OK;
}
