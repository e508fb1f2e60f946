/* recovery/rtt.h: the estimate of one path's round-trip time (RFC 9002 §5).
 *
 *  1. leat_rtt_init() starts without a sample: smoothed and var are then what §6.2.2 makes of the
 *     initial RTT, so that a PTO can be computed; latest and min are 0.
 *  2. leat_rtt_sample() takes one sample. The caller makes one only when an ACK newly acknowledges
 *     the largest packet that it names, and something ack-eliciting (§5.1). The sample runs from
 *     the packet's time of sending to the arrival time of the datagram that carried the ACK, not to
 *     the time when it was looked at: this side's own processing is not part of the path.
 *  3. The ACK delay given to it has gone through leat_rtt_ack_delay(), which knows what counts. An
 *     adjusted sample is never below min.
 *
 * Times are nanoseconds. Nothing here fails.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_RTT_H
#define LEAT_RECOVERY_RTT_H

#include "base/time.h"
#include "recovery/space.h"

#define LEAT_RTT_INITIAL     (333 * LEAT_MILLISECOND) /* §6.2.2 */
#define LEAT_RTT_GRANULARITY LEAT_MILLISECOND         /* kGranularity, §6.1.2 */

typedef struct leat_rtt {
    leat_time latest;
    leat_time smoothed;
    leat_time var;
    leat_time min;
    leat_time first_sample_at; /* LEAT_TIME_NEVER: no sample yet (§7.6.2 asks) */
} leat_rtt;

/* initial 0: LEAT_RTT_INITIAL. */
void leat_rtt_init(leat_rtt *rtt, leat_time initial);

static inline bool leat_rtt_has_sample(const leat_rtt *rtt)
{
    return rtt->first_sample_at != LEAT_TIME_NEVER;
}

/* What counts of the ACK delay that a peer reports (§5.3): at most its max_ack_delay once the
 * handshake is confirmed. */
leat_time leat_rtt_ack_delay(leat_time reported, leat_time max_ack_delay, bool confirmed);

/* One sample, taken at `now`. A sample of 0 (a clock too coarse) counts as 1 ns. One longer than
 * the initial RTT of which the peer says that more than half was its own delay is no first sample:
 * where all ACKs but one that a probe repeats are lost, it is seconds long, no delay may be taken
 * off it (§5.3), and the next probe would wait for several times that. */
void leat_rtt_sample(leat_rtt *rtt, leat_time sample, leat_time ack_delay, leat_time now);

/* smoothed + max(4 * var, granularity): the PTO before max_ack_delay and back-off (§6.2.1). */
leat_time leat_rtt_pto(const leat_rtt *rtt);

/* 9/8 of the larger of smoothed and latest, at least the granularity: how long after a packet was
 * sent it is lost by time (§6.1.2). */
leat_time leat_rtt_loss_delay(const leat_rtt *rtt);

#endif
