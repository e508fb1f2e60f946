/* recovery/acks.h: the receiver's side of one packet-number space: what arrived, and when to say so
 * (RFC 9000 §13.2).
 *
 * For each packet that was authenticated:
 *  1. leat_acks_is_duplicate(): when true, drop it. Also true for a number so old that it is no
 *     longer known whether it arrived (§12.3).
 *  2. Process its frames, then leat_acks_on_packet() with the arrival time of its datagram.
 *
 * When building packets:
 *  3. leat_acks_is_due(now): an ACK must go out now, in a packet of its own if need be.
 *     leat_acks_has_news(): an ack-eliciting packet is not acknowledged yet; an ACK rides along in
 *     any packet that is sent anyway. leat_acks_deadline(): when is_due will become true by time;
 *     LEAT_TIME_NEVER when it will not.
 *  4. Write leat_acks_ranges() newest first, leat_acks_delay() as the ACK delay, the ECN counts if
 *     leat_acks_has_ecn(). No more than LEAT_ACK_RANGES_WRITTEN_DEFAULT ranges, and no more than
 * fit; the older ones are left out. Then leat_acks_on_sent(), which clears 3.
 *  5. When a packet that carried an ACK is acknowledged, leat_acks_on_acked() with the largest
 * number that this ACK named: ranges below the one that holds it are forgotten (§13.2.4).
 *
 * Ranges are capped at LEAT_ACK_RANGES_DEFAULT: the oldest go first, and what lies below a
 * forgotten range counts as a duplicate from then on. More are kept than are written into one ACK,
 * so that heavy reordering does not turn late packets into duplicates.
 *
 * When an ACK is due (§13.2.1; draft-ietf-quic-ack-frequency for other settings):
 *   - after `eliciting_threshold` ack-eliciting packets (2), or `max_delay` after the first of
 * them;
 *   - at once on an ack-eliciting packet out of order or behind a gap, as reorder_threshold says
 *     (1: any; 0: never; n: a gap of n or more that was not reported yet, or a packet n or more
 *     below the largest acknowledged);
 *   - at once when a packet is marked CE (§13.2.1; with a threshold above 2 only when the one
 * before was not), and always in the Initial and Handshake spaces (max_delay is 0 there);
 *   - at once after leat_acks_set_immediate() (IMMEDIATE_ACK, or a PING that asks for a quick
 * answer). The three settings are fields to be written at any time; they act from the next packet
 * on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_ACKS_H
#define LEAT_RECOVERY_ACKS_H

#include "base/time.h"
#include "mem/ranges.h"
#include <leat/limits.h>
#include <leat/quic.h>

typedef struct leat_acks {
    leat_ranges received;
    uint64_t floor;                 /* numbers below are duplicates */
    uint64_t largest_eliciting_end; /* 1 + the largest ack-eliciting number; 0: none */
    uint64_t largest_sent_end;      /* 1 + the largest number that an ACK of ours named; 0: none */
    leat_time largest_at;           /* arrival time of the largest number */
    leat_time deadline;
    uint64_t ect0, ect1, ce; /* packets by ECN mark */

    leat_time max_delay;
    uint32_t eliciting_threshold;
    uint32_t reorder_threshold;

    uint32_t eliciting; /* ack-eliciting packets since the last ACK sent */
    bool immediate;
    bool last_marked; /* the packet before was CE */
} leat_acks;

/* max_delay: this side's max_ack_delay in the application space, 0 in the other two. */
void leat_acks_init(leat_acks *acks, leat_mem *mem, leat_time max_delay);

/* Gives the memory back. The struct must be initialised again before use. */
void leat_acks_free(leat_acks *acks);

bool leat_acks_is_duplicate(const leat_acks *acks, uint64_t pn);

/* pn is no duplicate (asserted). ecn is an enum leat_ecn. Never fails: short of memory, the oldest
 * range goes. */
void leat_acks_on_packet(leat_acks *acks, uint64_t pn, leat_time received_at, uint8_t ecn,
                         bool ack_eliciting);

/* Makes an ACK due at once if anything is there to acknowledge. */
void leat_acks_set_immediate(leat_acks *acks);

void leat_acks_on_sent(leat_acks *acks);
void leat_acks_on_acked(leat_acks *acks, uint64_t largest);

static inline bool leat_acks_has_news(const leat_acks *acks)
{
    return acks->eliciting > 0;
}

static inline bool leat_acks_is_due(const leat_acks *acks, leat_time now)
{
    return acks->immediate || acks->deadline <= now;
}

/* 0 when an ACK is due whatever the time: it is then for the sender to send, not for a timer. */
static inline leat_time leat_acks_deadline(const leat_acks *acks)
{
    return acks->immediate ? 0 : acks->deadline;
}

static inline bool leat_acks_has_ecn(const leat_acks *acks)
{
    return (acks->ect0 | acks->ect1 | acks->ce) != 0;
}

/* Nothing was received, so no ACK can be written. */
static inline bool leat_acks_is_empty(const leat_acks *acks)
{
    return leat_ranges_count(&acks->received) == 0;
}

/* 1 + the largest number received; 0: none. What leat_pn_decode() expects. */
static inline uint64_t leat_acks_expected(const leat_acks *acks)
{
    return leat_acks_is_empty(acks) ? 0 : leat_ranges_last(&acks->received).to;
}

/* Half-open ranges in ascending order: write from the last to the first. */
static inline const leat_ranges *leat_acks_ranges(const leat_acks *acks)
{
    return &acks->received;
}

/* How long ago the largest number arrived (§13.2.5), in ns: the caller turns it into microseconds
 * shifted by ack_delay_exponent. */
static inline leat_time leat_acks_delay(const leat_acks *acks, leat_time now)
{
    return leat_time_since(now, acks->largest_at);
}

/* Gives back memory that today's ranges do not need, for a connection that has become idle. */
void leat_acks_shrink(leat_acks *acks);

/* Walks everything and asserts what must hold. */
void leat_acks_check(const leat_acks *acks);

#endif
