/* roq/send.c: a flow's queue.
 *
 * Everything goes through it, in order, and out at once if the connection takes it. The queue is
 * where late packets are dropped for nothing: what QUIC has is not easily had back. A packet leaves
 * when
 *   - QUIC takes it: as a datagram, with what is left of its lifetime, or on a stream (out.c);
 *   - its lifetime is over, and with it the rest of its media frame, which is of no use alone;
 *   - newer ones push it out of a full queue, a media frame at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

/* ---- in and out of the queue ---- */

static void enqueue(leat_roq_flow *flow, leat_roq_packet *p, bool front)
{
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

static void tell_room(leat_roq_flow *flow)
{
    if (flow->want_writable && leat_roq_has_room(flow)) {
        leat_ctx_run_soon(flow->roq->ctx, &flow->roq->task);
    }
}

/* What QUIC refuses for now waits for its event; without memory the packet is dropped, so that the
 * next one may find some. */
void leat_roq_pump(leat_roq_flow *flow)
{
    leat_err err = LEAT_OK;

    if (flow->pumping || flow->roq->closing) {
        return;
    }
    flow->pumping = true;
    drop_late(flow);
    while (flow->queue.first && err == LEAT_OK) {
        leat_roq_packet *p = flow->queue.first;

        if (is_dead(flow, p)) {
            drop(flow, p, (leat_roq_outcome)flow->dead_outcome);
            continue;
        }
        err = send_one(flow, p);
        if (err == LEAT_ERR_NOMEM) {
            drop(flow, p, LEAT_ROQ_OUTCOME_DROPPED);
            err = LEAT_OK;
        }
    }
    flow->pumping = false;
    arm(flow);
    tell_room(flow);
}

void leat_roq_pump_all(leat_roq *roq)
{
    for (leat_roq_flow *flow = roq->flows; flow; flow = flow->next) {
        leat_roq_pump(flow);
    }
}

void leat_roq_queue_timer(leat_timer *timer, leat_time now)
{
    leat_roq_flow *flow = LEAT_ROQ_OF(timer, leat_roq_flow, timer);

    (void)now;
    leat_roq_pump(flow);
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
    leat_roq_pump(flow);
    return LEAT_OK;
}
