/* recovery/sent_ack.c: an ACK frame against the ring of sent packets.
 *
 * Peers acknowledge the same numbers many times over; work must follow what is new. So each acked
 * record knows from where on down to it everything is acked (closed_from), and a range is walked
 * from its top in jumps over what is closed. Jumps are shortened as they are taken (path halving,
 * and the top record of each range learns the whole distance), which keeps the walk near one step a
 * range beyond the packets newly acknowledged, whatever ranges a peer makes up.
 *
 * A range that reaches down to the head takes all its records out at once; others leave when the
 * head gets to them (leat_sent_sweep()).
 *
 * The newest packet newly acknowledged is met first, since ranges come newest first: its record
 * gives the delivery-rate sample (draft-ietf-ccwg-bbr §4.1.2).
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/sent_ring.h"

/* All of it to 0, member by member: compilers make a slow "rep stos" of clearing the whole. */
static inline void clear(leat_sent_acked *acked)
{
    acked->bytes = 0;
    acked->bytes_after = 0;
    acked->packets = 0;
    acked->ect0 = 0;
    acked->ect1 = 0;
    acked->largest_size = 0;
    acked->jumps = 0;
    acked->spurious = 0;
    acked->spurious_sent_at = 0;
    acked->eliciting = false;
    acked->largest_is_new = false;
    acked->rtt_sample = false;
    acked->largest_sent_at = 0;
    acked->newest_sent_at = 0;
    acked->newest_first_sent_at = 0;
    acked->newest_delivered_at = 0;
    acked->rate.delivered = 0;
    acked->rate.interval = 0;
    acked->rate.prior_delivered = 0;
    acked->rate.prior_lost = 0;
    acked->rate.tx_in_flight = 0;
    acked->rate.app_limited = false;
}

leat_err leat_sent_ack_start(leat_sent *sent, leat_sent_acked *acked, uint64_t largest,
                             leat_time now, leat_time recovery_start)
{
    LEAT_ASSERT(!sent->busy);
    clear(acked);
    acked->now = now;
    acked->largest = largest;
    acked->recovery_start = recovery_start;
    acked->prior_in_flight = sent->flight->bytes;
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

/* The first packet met on the current path: what the rate sample wants of its record. */
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

/* The largest number is the top of the first range: RTT is measured by it if it is new. */
static void note_largest(const leat_sent *sent, leat_sent_acked *acked)
{
    const leat_sent_packet *p = leat_sent_at(sent, acked->largest);

    if (p->state == LEAT_SENT_OUTSTANDING && p->path == sent->path) {
        acked->largest_is_new = true;
        acked->largest_sent_at = p->sent_at;
    }
}

/* n packets alike (flags, path) have been acknowledged, `bytes` of them, `after` sent after the
 * start of recovery. */
static void add_alike(leat_sent *sent, leat_sent_acked *acked, const leat_sent_packet *like,
                      uint32_t n, uint64_t bytes, uint64_t after)
{
    unsigned flags = like->flags;

    acked->packets += n;
    acked->ect0 += flags & LEAT_SENT_ECT0 ? n : 0;
    acked->ect1 += flags & LEAT_SENT_ECT1 ? n : 0;
    if (!(flags & LEAT_SENT_IN_FLIGHT)) {
        return;
    }
    LEAT_DCHECK(sent->outstanding >= n);
    sent->outstanding -= n;
    sent->eliciting -= flags & LEAT_SENT_ELICITING ? n : 0;
    if (like->path != sent->path) {
        leat_sent_leave_aside(sent, flags, bytes);
        return;
    }
    LEAT_DCHECK(sent->bytes >= bytes);
    sent->bytes -= bytes;
    sent->flight->bytes -= bytes;
    acked->bytes += bytes;
    acked->bytes_after += acked->recovery_start ? after : bytes;
    acked->eliciting |= (flags & LEAT_SENT_ELICITING) != 0;
}

/* Acknowledges the outstanding packet below `end` and those below it that are like it, down to
 * `low`. Returns where it stopped. */
static uint64_t acknowledge_alike(leat_sent *sent, leat_sent_acked *acked, uint64_t low,
                                  uint64_t end)
{
    const leat_sent_packet like = *leat_sent_at(sent, end - 1);
    bool tell = !(like.flags & LEAT_SENT_REQUEUED);
    uint64_t top = end, bytes = 0, after = 0;
    uint16_t largest = 0;

    if (acked->bytes == 0 && leat_sent_counts(sent, &like)) {
        note_newest(acked, &like);
    }
    do {
        leat_sent_packet *p = leat_sent_at(sent, end - 1);

        if (p->tag != like.tag) {
            break;
        }
        end--;
        bytes += p->size;
        largest = p->size > largest ? p->size : largest;
        after = p->sent_at > acked->recovery_start ? bytes : after; /* times fall with numbers */
        p->state = LEAT_SENT_ACKED;
        p->closed_from = end;
        if (sent->visit_acked) {
            sent->visit_acked(sent->visit_acked_ctx, end, p);
        }
    } while (end > low);
    /* In the order of sending: a stream's bytes then join those acknowledged before. */
    for (uint64_t pn = end; tell && pn < top; pn++) {
        tell_acked(sent, leat_sent_at(sent, pn));
    }
    if (leat_sent_counts(sent, &like) && largest > acked->largest_size) {
        acked->largest_size = largest;
    }
    add_alike(sent, acked, &like, (uint32_t)(top - end), bytes, after);
    return end;
}

/* A packet given up for lost has arrived after all. */
static void acknowledge_lost(leat_sent *sent, leat_sent_acked *acked, leat_sent_packet *p,
                             uint64_t pn)
{
    acked->spurious++;
    acked->spurious_sent_at = leat_time_max(acked->spurious_sent_at, p->sent_at);
    acked->ect0 += (p->flags & LEAT_SENT_ECT0) != 0;
    acked->ect1 += (p->flags & LEAT_SENT_ECT1) != 0;
    sent->loss_run_at = LEAT_TIME_NEVER;
    p->state = LEAT_SENT_ACKED;
    p->closed_from = pn;
}

/* All from the head up to `to` is acked: it leaves at once. */
static void pop_acked(leat_sent *sent, uint64_t to)
{
    const leat_sent_packet *last = leat_sent_at(sent, to - 1);

    sent->frame_head = last->frame_first + last->frame_count;
    sent->head = to;
    if (sent->open < to) {
        sent->open = to;
        sent->loss_run_at = LEAT_TIME_NEVER;
    }
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
    if (to - 1 == acked->largest) {
        note_largest(sent, acked);
    }
    sent->busy = true;
    while (end > low) {
        leat_sent_packet *p = leat_sent_at(sent, end - 1);

        if (LEAT_LIKELY(p->state == LEAT_SENT_OUTSTANDING)) {
            end = acknowledge_alike(sent, acked, low, end);
        } else if (p->state == LEAT_SENT_ACKED) {
            end = jump(sent, p);
            acked->jumps++;
        } else if (p->state == LEAT_SENT_LOST) {
            acknowledge_lost(sent, acked, p, --end);
        } else {
            err = LEAT_ERR_INVALID; /* skipped: nobody can have received it */
            break;
        }
    }
    if (end <= sent->head) {
        pop_acked(sent, to);
    } else if (end < to) {
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
