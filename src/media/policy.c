/* media/policy.c: when feedback is due: an interval after the last one, counted from the first
 * packet that waits; at once when many wait, or when asked.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/feedback.h>

#include "base/time.h"

enum {
    SHARE = 20, /* one part in so many of the rate goes into feedback */
    INTERVAL_MIN = 50,
    INTERVAL_MAX = 250, /* milliseconds */
};

void leat_fb_policy_init(leat_fb_policy *policy, leat_time interval, uint32_t most)
{
    *policy = (leat_fb_policy){
        .interval = interval,
        .deadline = LEAT_TIME_NEVER,
        .most = most,
    };
}

void leat_fb_policy_on_packet(leat_fb_policy *policy, leat_time now)
{
    policy->waiting++;
    if (policy->most && policy->waiting >= policy->most) {
        policy->deadline = 0;
    } else if (policy->waiting == 1) {
        leat_time next = policy->started ? leat_time_add(policy->last, policy->interval)
                                         : leat_time_add(now, policy->interval);

        policy->deadline = next;
    }
}

void leat_fb_policy_ask(leat_fb_policy *policy)
{
    policy->asked = true;
}

leat_time leat_fb_policy_deadline(const leat_fb_policy *policy)
{
    return policy->asked ? 0 : policy->deadline;
}

bool leat_fb_policy_is_due(const leat_fb_policy *policy, leat_time now)
{
    leat_time deadline = leat_fb_policy_deadline(policy);

    return deadline != LEAT_TIME_NEVER && now >= deadline;
}

void leat_fb_policy_on_sent(leat_fb_policy *policy, leat_time now)
{
    policy->last = now;
    policy->started = true;
    policy->asked = false;
    policy->waiting = 0;
    policy->deadline = LEAT_TIME_NEVER;
}

leat_time leat_fb_interval_for_rate(uint64_t rate, uint32_t bytes)
{
    leat_time least = INTERVAL_MIN * LEAT_MILLISECOND, most = INTERVAL_MAX * LEAT_MILLISECOND;
    leat_time interval;

    if (rate == 0) {
        return most;
    }
    interval = leat_time_mul((leat_time)bytes * 8 * SHARE, LEAT_SECOND) / rate;
    interval = leat_time_max(interval, least);
    return leat_time_min(interval, most);
}
