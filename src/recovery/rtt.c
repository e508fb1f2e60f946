/* recovery/rtt.c: the round-trip estimate.
 *
 * An exponentially weighted mean (weight 1/8) and its mean deviation (weight 1/4), as RFC 9002 §5.3
 * has them, in whole nanoseconds. min takes the raw sample, before the peer's ACK delay comes off
 * (§5.2).
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/rtt.h"

void leat_rtt_init(leat_rtt *rtt, leat_time initial)
{
    *rtt = (leat_rtt){
        .smoothed = initial ? initial : LEAT_RTT_INITIAL,
        .first_sample_at = LEAT_TIME_NEVER,
    };
    rtt->var = rtt->smoothed / 2;
}

leat_time leat_rtt_ack_delay(leat_time reported, leat_time max_ack_delay, bool confirmed)
{
    return confirmed ? leat_time_min(reported, max_ack_delay) : reported;
}

void leat_rtt_sample(leat_rtt *rtt, leat_time sample, leat_time ack_delay, leat_time now)
{
    leat_time adjusted, deviation;

    if (sample == 0) {
        sample = 1;
    }
    if (!leat_rtt_has_sample(rtt)) {
        if (sample > rtt->smoothed && ack_delay > sample / 2) {
            return;
        }
        rtt->latest = rtt->min = rtt->smoothed = sample;
        rtt->var = rtt->smoothed / 2;
        rtt->first_sample_at = now;
        return;
    }
    rtt->latest = sample;
    rtt->min = leat_time_min(rtt->min, sample);
    /* A peer that reports more delay than the path leaves room for is not believed at all. */
    adjusted = leat_time_since(sample, rtt->min) >= ack_delay ? sample - ack_delay : sample;
    deviation = adjusted > rtt->smoothed ? adjusted - rtt->smoothed : rtt->smoothed - adjusted;
    rtt->var = rtt->var - rtt->var / 4 + deviation / 4;
    rtt->smoothed = rtt->smoothed - rtt->smoothed / 8 + adjusted / 8;
}

leat_time leat_rtt_pto(const leat_rtt *rtt)
{
    leat_time spread = leat_time_max(leat_time_mul(rtt->var, 4), LEAT_RTT_GRANULARITY);

    return leat_time_add(rtt->smoothed, spread);
}

leat_time leat_rtt_loss_delay(const leat_rtt *rtt)
{
    leat_time base = leat_time_max(rtt->smoothed, rtt->latest);

    return leat_time_max(leat_time_add(base, base / 8), LEAT_RTT_GRANULARITY);
}
