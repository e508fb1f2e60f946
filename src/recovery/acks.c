/* recovery/acks.c: what arrived in a packet-number space, and when to acknowledge it.
 *
 * The set of received numbers is a leat_ranges with a cap, from which the oldest range falls out.
 * The floor rises with it, and with acknowledged ACKs, so that no number can be taken twice: below
 * the floor, everything is a duplicate. It never rises past a number that may still come in good
 * time: a range that holds the largest number of an acknowledged ACK stays whole, which costs no
 * more than part of it would.
 *
 * Invariants: floor <= the lowest number of the set; deadline is NEVER unless eliciting > 0.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/acks.h"

#include "base/assert.h"

#define USUAL_THRESHOLD 2 /* RFC 9000 s13.2.2 */

void leat_acks_init(leat_acks *acks, leat_mem *mem, leat_time max_delay)
{
    *acks = (leat_acks){
        .deadline = LEAT_TIME_NEVER,
        .max_delay = max_delay,
        .eliciting_threshold = USUAL_THRESHOLD,
        .reorder_threshold = 1,
    };
    leat_ranges_init(&acks->received, mem, LEAT_ACK_RANGES_DEFAULT);
}

void leat_acks_free(leat_acks *acks)
{
    leat_ranges_free(&acks->received);
}

bool leat_acks_is_duplicate(const leat_acks *acks, uint64_t pn)
{
    if (pn < acks->floor) {
        return true;
    }
    return pn < leat_acks_expected(acks) && leat_ranges_contains(&acks->received, pn);
}

/* Adds pn to the set; what falls out of it for want of room raises the floor. */
static void record(leat_acks *acks, uint64_t pn)
{
    leat_range lowest = {0, 0};

    if (LEAT_LIKELY(leat_ranges_extend(&acks->received, pn))) {
        return; /* in order */
    }
    if (!leat_acks_is_empty(acks)) {
        lowest = leat_ranges_first(&acks->received);
    }
    if (!leat_ranges_add_dropping(&acks->received, pn, pn + 1)) {
        return;
    }
    /* Either the lowest range fell out, or pn itself, being below it. */
    acks->floor = pn < lowest.from ? pn + 1 : lowest.to;
}

/* The gap rule of draft-ietf-quic-ack-frequency: the smallest number still missing that no ACK sent
 * so far lets the peer declare lost (which takes one for n numbers above), and how far the largest
 * ack-eliciting packet is past it. */
static bool gap_is_due(const leat_acks *acks)
{
    uint64_t n = acks->reorder_threshold;
    uint64_t from = acks->floor;
    uint64_t missing;

    if (acks->largest_sent_end >= n) {
        uint64_t unreported = acks->largest_sent_end - n; /* largest acked - n + 1 */

        from = from > unreported ? from : unreported;
    }
    missing = leat_ranges_next_missing(&acks->received, from);
    return missing < acks->largest_eliciting_end && acks->largest_eliciting_end - 1 - missing >= n;
}

/* Whether the ack-eliciting packet pn, recorded already, calls for an ACK at once because of where
 * it lies. `before` is largest_eliciting_end without it. */
static bool order_is_due(const leat_acks *acks, uint64_t pn, uint64_t before)
{
    uint32_t at;

    if (acks->reorder_threshold == 0) {
        return false;
    }
    if (acks->reorder_threshold > 1) {
        /* So far below what was acknowledged that the sender has given it up for lost. */
        bool late = pn + acks->reorder_threshold < acks->largest_sent_end;

        return late || gap_is_due(acks);
    }
    if (pn < before) {
        return true;
    }
    if (pn + 1 == leat_acks_expected(acks)) {
        return leat_ranges_last(&acks->received).from > before;
    }
    at = leat_ranges_find(&acks->received, pn);
    /* Numbers below pn are missing if its range starts above the last ack-eliciting one. */
    return at == leat_ranges_count(&acks->received) ||
           leat_ranges_at(&acks->received, at).from > before;
}

static void count_ecn(leat_acks *acks, uint8_t ecn)
{
    switch (ecn) {
    case LEAT_ECN_ECT0:
        acks->ect0++;
        break;
    case LEAT_ECN_ECT1:
        acks->ect1++;
        break;
    case LEAT_ECN_CE:
        acks->ce++;
        break;
    default:
        break;
    }
}

/* Each CE mark; of a run of them the first, where ACKs were asked to be few. */
static bool mark_is_due(const leat_acks *acks, uint8_t ecn, bool marked_before)
{
    return ecn == LEAT_ECN_CE && (!marked_before || acks->eliciting_threshold <= USUAL_THRESHOLD);
}

void leat_acks_on_packet(leat_acks *acks, uint64_t pn, leat_time received_at, uint8_t ecn,
                         bool ack_eliciting)
{
    uint64_t before = acks->largest_eliciting_end;
    bool marked_before = acks->last_marked;

    LEAT_DCHECK(!leat_acks_is_duplicate(acks, pn));
    if (pn >= leat_acks_expected(acks)) {
        acks->largest_at = received_at;
    }
    record(acks, pn);
    count_ecn(acks, ecn);
    acks->last_marked = ecn == LEAT_ECN_CE;
    /* What elicits no ACK only rides along in one: two ends must not answer ACKs with ACKs. */
    if (!ack_eliciting) {
        return;
    }
    if (pn >= before) {
        acks->largest_eliciting_end = pn + 1;
    }
    if (acks->eliciting++ == 0) {
        acks->deadline = leat_time_add(received_at, acks->max_delay);
    }
    if (acks->max_delay == 0 || acks->eliciting >= acks->eliciting_threshold ||
        mark_is_due(acks, ecn, marked_before) || order_is_due(acks, pn, before)) {
        acks->immediate = true;
    }
}

void leat_acks_set_immediate(leat_acks *acks)
{
    acks->immediate = !leat_acks_is_empty(acks);
}

void leat_acks_on_sent(leat_acks *acks)
{
    acks->largest_sent_end = leat_acks_expected(acks);
    acks->eliciting = 0;
    acks->immediate = false;
    acks->deadline = LEAT_TIME_NEVER;
}

void leat_acks_on_acked(leat_acks *acks, uint64_t largest)
{
    uint32_t at = leat_ranges_find(&acks->received, largest);
    uint64_t from;

    if (at == leat_ranges_count(&acks->received)) {
        return;
    }
    from = leat_ranges_at(&acks->received, at).from;
    /* A largest that has left the set since says nothing about where the next range begins. */
    if (from > largest || from <= acks->floor) {
        return;
    }
    leat_ranges_remove_below(&acks->received, from);
    acks->floor = from;
}

void leat_acks_shrink(leat_acks *acks)
{
    leat_ranges *received = &acks->received;
    leat_range few[LEAT_RANGES_INLINE];
    uint32_t count = leat_ranges_count(received);

    if (leat_ranges_held(received) == 0 || count > LEAT_RANGES_INLINE) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        few[i] = leat_ranges_at(received, i);
    }
    leat_ranges_free(received);
    for (uint32_t i = 0; i < count; i++) {
        leat_err err = leat_ranges_add(received, few[i].from, few[i].to);

        LEAT_ASSERT(err == LEAT_OK); /* these fit inline */
    }
}

void leat_acks_check(const leat_acks *acks)
{
    leat_ranges_check(&acks->received);
    LEAT_ASSERT(leat_acks_is_empty(acks) || acks->floor <= leat_ranges_first(&acks->received).from);
    LEAT_ASSERT(acks->largest_sent_end <= leat_acks_expected(acks));
    LEAT_ASSERT(acks->eliciting > 0 || acks->deadline == LEAT_TIME_NEVER);
}
