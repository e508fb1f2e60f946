/* recovery/sent_ack.c: an ACK frame against the ring of sent packets.
 *
 * Peers acknowledge the same numbers many times over; work must follow what is new. So each acked
 * record knows from where on down to it everything is acked (closed_from), and a range is walked from
 * its top in jumps over what is closed. Jumps are shortened as they are taken (path halving, and the
 * top record of each range learns the whole distance), which keeps the walk near one step a range
 * beyond the packets newly acknowledged, whatever ranges a peer makes up.
 *
 * The newest packet newly acknowledged is met first, since ranges come newest first: its record gives
 * the delivery-rate sample (draft-ietf-ccwg-bbr §4.1.2).
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/sent_ring.h"

leat_err leat_sent_ack_start(leat_sent *sent, leat_sent_acked *acked, uint64_t largest, leat_time now,
                             leat_time recovery_start)
{
    LEAT_ASSERT(!sent->busy);
    *acked = (leat_sent_acked){
        .now = now,
        .largest = largest,
        .recovery_start = recovery_start,
        .prior_in_flight = sent->flight->bytes,
    };
    if (largest >= sent->next_pn) {
        return LEAT_ERR_INVALID;
    }
    if (largest >= sent->largest_acked_end) {
        sent->largest_acked_end = largest + 1;
    }
    return LEAT_OK;
}

static void tell_acked(leat_sent *sent, const leat_sent_packet *p)
{
    uint32_t mask = sent->frame_cap - 1;

    for (uint32_t i = 0; i < p->frame_count; i++) {
        const leat_sent_frame *f = &sent->frames[(p->frame_first + i) & mask];

        if (sent->ops[f->kind].on_acked) {
            sent->ops[f->kind].on_acked(sent->ctx, f);
        }
    }
}

/* The first packet met on the current path: what the sample and RTT want of its record. */
static void note_newest(leat_sent_acked *acked, const leat_sent_packet *p)
{
    acked->newest_sent_at = p->sent_at;
    acked->newest_first_sent_at = p->first_sent_at;
    acked->newest_delivered_at = p->delivered_at;
    acked->rate.prior_delivered = p->delivered;
    acked->rate.prior_lost = p->lost;
    acked->rate.tx_in_flight = p->in_flight;
    acked->rate.app_limited = (p->flags & LEAT_SENT_APP_LIMITED) != 0;
}

static void acknowledge_in_flight(leat_sent *sent, leat_sent_acked *acked, const leat_sent_packet *p,
                                  uint64_t pn)
{
    if (acked->bytes == 0) {
        note_newest(acked, p);
    }
    if (pn == acked->largest) {
        acked->largest_is_new = true;
        acked->largest_sent_at = p->sent_at;
    }
    acked->eliciting |= (p->flags & LEAT_SENT_ELICITING) != 0;
    acked->bytes += p->size;
    if (acked->recovery_start == 0 || p->sent_at > acked->recovery_start) {
        acked->bytes_after += p->size;
    }
    sent->bytes -= p->size;
    sent->flight->bytes -= p->size;
}

static void acknowledge_outstanding(leat_sent *sent, leat_sent_acked *acked, leat_sent_packet *p,
                                    uint64_t pn)
{
    acked->packets++;
    acked->ect0 += (p->flags & LEAT_SENT_ECT0) != 0;
    acked->ect1 += (p->flags & LEAT_SENT_ECT1) != 0;
    leat_sent_leave(sent, p);
    if (leat_sent_counts(sent, p)) {
        acknowledge_in_flight(sent, acked, p, pn);
    } else if (pn == acked->largest && p->path == sent->path) {
        acked->largest_is_new = true;
        acked->largest_sent_at = p->sent_at;
    }
    p->state = LEAT_SENT_ACKED;
    p->closed_from = pn;
    if (!(p->flags & LEAT_SENT_REQUEUED)) {
        tell_acked(sent, p);
    }
}

/* A packet given up for lost has arrived after all. */
static void acknowledge_lost(leat_sent *sent, leat_sent_acked *acked, leat_sent_packet *p, uint64_t pn)
{
    acked->spurious++;
    acked->spurious_sent_at = leat_time_max(acked->spurious_sent_at, p->sent_at);
    acked->ect0 += (p->flags & LEAT_SENT_ECT0) != 0;
    acked->ect1 += (p->flags & LEAT_SENT_ECT1) != 0;
    sent->loss_run_at = LEAT_TIME_NEVER;
    p->state = LEAT_SENT_ACKED;
    p->closed_from = pn;
}

/* Where to go on below an acked record. */
static uint64_t jump(const leat_sent *sent, leat_sent_packet *p)
{
    uint64_t to = p->closed_from;

    if (to > sent->head) {
        const leat_sent_packet *below = leat_sent_at(sent, to - 1);

        if (below->state == LEAT_SENT_ACKED) {
            to = below->closed_from;
            p->closed_from = to;
        }
    }
    return to;
}

leat_err leat_sent_ack_range(leat_sent *sent, leat_sent_acked *acked, uint64_t from, uint64_t to)
{
    uint64_t low = from > sent->head ? from : sent->head;
    uint64_t end = to;
    leat_err err = LEAT_OK;

    if (from >= to || to - 1 > acked->largest) {
        return LEAT_ERR_INVALID;
    }
    if (to <= low) {
        return LEAT_OK;
    }
    sent->busy = true;
    while (end > low) {
        leat_sent_packet *p = leat_sent_at(sent, end - 1);

        if (LEAT_LIKELY(p->state == LEAT_SENT_OUTSTANDING)) {
            acknowledge_outstanding(sent, acked, p, --end);
        } else if (p->state == LEAT_SENT_ACKED) {
            end = jump(sent, p);
        } else if (p->state == LEAT_SENT_LOST) {
            acknowledge_lost(sent, acked, p, --end);
        } else {
            err = LEAT_ERR_INVALID; /* skipped: nobody can have received it */
            break;
        }
    }
    if (end < to) {
        leat_sent_at(sent, to - 1)->closed_from = end;
    }
    sent->busy = false;
    return err;
}

static void sample_rate(leat_flight *flight, leat_sent_acked *acked, leat_time min_rtt)
{
    leat_time now = leat_time_max(acked->now, flight->delivered_at);
    leat_rate_sample *rate = &acked->rate;
    leat_time send_elapsed, ack_elapsed;

    flight->delivered += acked->bytes;
    flight->delivered_at = now;
    flight->first_sent_at = acked->newest_sent_at;
    if (flight->app_limited && flight->delivered > flight->app_limited) {
        flight->app_limited = 0;
    }
    /* Sent on this path before its flight was made anew: the record is of another count. */
    if (rate->prior_delivered > flight->delivered) {
        return;
    }
    send_elapsed = leat_time_since(acked->newest_sent_at, acked->newest_first_sent_at);
    ack_elapsed = leat_time_since(now, acked->newest_delivered_at);
    rate->interval = leat_time_max(send_elapsed, ack_elapsed);
    rate->delivered = flight->delivered - rate->prior_delivered;
    if (rate->interval < min_rtt) {
        rate->interval = 0;
    }
}

void leat_sent_ack_finish(leat_sent *sent, leat_sent_acked *acked, leat_time min_rtt)
{
    acked->rtt_sample = acked->largest_is_new && acked->eliciting;
    if (acked->bytes > 0) {
        sample_rate(sent->flight, acked, min_rtt);
    }
    if (acked->packets > 0 || acked->spurious > 0) {
        leat_sent_sweep(sent, acked->now);
    }
}
