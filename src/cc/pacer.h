/* cc/pacer.h: spreads packets over the round trip, in batches that fit GSO (RFC 9002 §7.7).
 *
 * A leaky bucket kept as a time: free_at, when the bytes sent so far will have drained at the
 * pacing rate. Sending may start whenever free_at has passed; it moves free_at on by what was sent.
 *
 *  1. leat_pacer_set_rate() when the window, the RTT or the controller's rate has changed.
 *  2. leat_pacer_budget(now): how many bytes may go out in this batch. 0: wait until
 *     leat_pacer_next_at(). Not 0: at least one quantum, so that a wake-up always pays.
 *  3. leat_pacer_on_sent() for what did go out (a batch may overrun by less than a datagram; it is
 *     paid for by waiting). Packets that are not paced are not told.
 *
 * A batch is the quantum (what flows in LEAT_PACER_QUANTUM_TIME, between two datagrams and the
 * largest GSO batch) and the credit saved while nothing was sent. Credit is bounded by the initial
 * window (none where the rate is the caller's own: leat_cc_set()) and by what flows in
 * LEAT_PACER_LAG, so that a timer that fires a little late costs no throughput. With a round trip
 * below the lag the pacer never holds anything back: the window alone does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CC_PACER_H
#define LEAT_CC_PACER_H

#include "base/time.h"
#include "cc/cc.h"
#include "recovery/rtt.h"

#define LEAT_PACER_QUANTUM_TIME LEAT_MILLISECOND
#define LEAT_PACER_LAG          LEAT_MILLISECOND

typedef struct leat_pacer {
    leat_time free_at;
    uint64_t rate;        /* bytes a second; 0: not paced */
    uint64_t ns_per_byte; /* 20 bits of fraction */
    uint64_t fraction;    /* of a nanosecond, not yet in free_at; 20 bits */
    leat_time depth;      /* free_at lags behind now by this at most: the credit */
    uint32_t quantum;     /* bytes */
    uint32_t mds;
} leat_pacer;

/* Starts unpaced, with full credit. */
void leat_pacer_init(leat_pacer *pacer, uint32_t mds);

/* The controller's rate, or, if that is 0, cwnd / smoothed RTT times 2 in slow start and 1.25
 * after. Without an RTT sample nothing is paced. What is still to drain drains at the new rate. */
void leat_pacer_set_rate(leat_pacer *pacer, const leat_cc *cc, const leat_rtt *rtt, leat_time now);

uint64_t leat_pacer_budget(const leat_pacer *pacer, leat_time now);

void leat_pacer_on_sent(leat_pacer *pacer, leat_time now, uint64_t bytes);

/* When the next batch may start; 0: now. */
static inline leat_time leat_pacer_next_at(const leat_pacer *pacer)
{
    return pacer->rate ? pacer->free_at : 0;
}

#endif
