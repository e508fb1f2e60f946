/* recovery/sent_loss.c: which sent packets are lost by now (RFC 9002 §6.1), and putting frames back
 * on the senders' queues for probes.
 *
 * Numbers and sending times grow together, and so do both tests for loss: if a packet is not lost,
 * no later one is. The cursor `open` therefore only ever moves up, to the first packet that is
 * still waited for; each record is passed once in its life.
 *
 * Persistent congestion (§7.6.2) is seen on the same walk: a run of ack-eliciting losses without an
 * acknowledged packet among them, of any space, from the first one's sending time to the last
 * one's. The run may go on over several calls.
 *
 * Packets that are not in flight are passed over: nothing depends on them, and a timer for them
 * would wake the connection for nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/sent_ring.h"

static bool is_lost(const leat_sent *sent, const leat_sent_packet *p, uint64_t pn,
                    const leat_sent_loss_rule *rule)
{
    return sent->largest_acked_end - 1 - pn >= rule->packets ||
           leat_time_add(p->sent_at, rule->delay) <= rule->now;
}

static void note_persistent(leat_sent *sent, const leat_sent_packet *p,
                            const leat_sent_loss_rule *rule, leat_sent_lost *lost)
{
    if (!(p->flags & LEAT_SENT_ELICITING) || p->sent_at <= rule->first_rtt_at) {
        return;
    }
    if (sent->loss_run_at == LEAT_TIME_NEVER || sent->loss_run_at <= rule->acked_elsewhere) {
        sent->loss_run_at = p->sent_at;
    } else if (leat_time_since(p->sent_at, sent->loss_run_at) > rule->persistent) {
        lost->persistent = true;
        sent->loss_run_at = LEAT_TIME_NEVER;
    }
}

static void visit(const leat_sent_packet *p, uint64_t pn, bool counts,
                  const leat_sent_loss_rule *rule)
{
    leat_sent_loss loss = {
        .now = rule->now,
        .pn = pn,
        .sent_at = p->sent_at,
        .in_flight = p->in_flight,
        .lost = p->lost,
        .delivered = p->delivered,
        .size = p->size,
        .flags = p->flags,
        .counts = counts,
    };

    rule->visit(rule->visit_ctx, &loss);
}

static void declare_lost(leat_sent *sent, leat_sent_packet *p, uint64_t pn,
                         const leat_sent_loss_rule *rule, leat_sent_lost *lost)
{
    bool here = leat_sent_counts(sent, p);
    bool counts = here && !(p->flags & LEAT_SENT_MTU_PROBE);

    lost->packets++;
    leat_sent_leave(sent, p);
    if (here) {
        sent->bytes -= p->size;
        sent->flight->bytes -= p->size;
        lost->bytes += p->size;
    } else {
        leat_sent_leave_aside(sent, p->flags, p->size);
    }
    if (counts) {
        sent->flight->lost += p->size;
        lost->congestion_bytes += p->size;
        lost->newest_sent_at = p->sent_at;
        note_persistent(sent, p, rule, lost);
    }
    if (rule->visit) {
        visit(p, pn, counts, rule);
    }
    p->state = LEAT_SENT_LOST;
    p->lost_at = rule->now;
    leat_sent_tell_lost(sent, p);
}

void leat_sent_detect_lost(leat_sent *sent, const leat_sent_loss_rule *rule, leat_sent_lost *lost)
{
    uint64_t pn = sent->open;

    LEAT_ASSERT(!sent->busy);
    *lost = (leat_sent_lost){.next_at = LEAT_TIME_NEVER};
    sent->keep = rule->keep;
    sent->busy = true;
    for (; pn < sent->largest_acked_end; pn++) {
        leat_sent_packet *p = leat_sent_at(sent, pn);

        if (p->state == LEAT_SENT_ACKED) {
            sent->loss_run_at = LEAT_TIME_NEVER;
        } else if (p->state == LEAT_SENT_OUTSTANDING && (p->flags & LEAT_SENT_IN_FLIGHT)) {
            if (!is_lost(sent, p, pn, rule)) {
                lost->next_at = leat_time_add(p->sent_at, rule->delay);
                break;
            }
            declare_lost(sent, p, pn, rule, lost);
        }
    }
    sent->open = pn;
    sent->busy = false;
    leat_sent_sweep(sent, rule->now);
}

leat_time leat_sent_loss_time(const leat_sent *sent, leat_time delay)
{
    for (uint64_t pn = sent->open; pn < sent->largest_acked_end; pn++) {
        const leat_sent_packet *p = leat_sent_at(sent, pn);

        if (p->state == LEAT_SENT_OUTSTANDING && (p->flags & LEAT_SENT_IN_FLIGHT)) {
            return leat_time_add(p->sent_at, delay);
        }
    }
    return LEAT_TIME_NEVER;
}

uint32_t leat_sent_requeue(leat_sent *sent, uint32_t n)
{
    uint32_t found = 0;

    LEAT_ASSERT(!sent->busy);
    sent->busy = true;
    for (uint64_t pn = sent->open; pn < sent->next_pn && found < n; pn++) {
        leat_sent_packet *p = leat_sent_at(sent, pn);

        if (p->state == LEAT_SENT_OUTSTANDING && (p->flags & LEAT_SENT_ELICITING) &&
            !(p->flags & LEAT_SENT_REQUEUED) && p->frame_count > 0) {
            leat_sent_tell_lost(sent, p);
            found++;
        }
    }
    sent->busy = false;
    return found;
}
