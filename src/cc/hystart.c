/* cc/hystart.c: see hystart.h. The steps stand in the order of RFC 9406 §4.2.
 *
 * Rounds are counted by what was delivered when a packet was sent, as BBR does: the first ACK of a
 * packet that was sent after the round began ends it, which is what windowEnd says in the RFC.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/hystart.h"

void leat_hystart_init(leat_hystart *h)
{
    *h = (leat_hystart){
        .last_min = LEAT_TIME_NEVER,
        .round_min = LEAT_TIME_NEVER,
        .css_baseline = LEAT_TIME_NEVER,
    };
}

/* True when CSS has had all its rounds. */
static bool next_round(leat_hystart *h, const leat_cc_acked *facts)
{
    h->round_end = facts->flight->delivered;
    h->last_min = h->round_min;
    h->round_min = LEAT_TIME_NEVER;
    h->samples = 0;
    if (!h->in_css) {
        return false;
    }
    h->css_rounds++;
    return h->css_rounds >= LEAT_HYSTART_CSS_ROUNDS;
}

static void sample(leat_hystart *h, leat_time rtt)
{
    h->round_min = leat_time_min(h->round_min, rtt);
    h->samples++;
}

static leat_time threshold(leat_time last_min)
{
    leat_time t = leat_time_min(last_min / LEAT_HYSTART_DIVISOR, LEAT_HYSTART_MAX_THRESH);

    return leat_time_max(t, LEAT_HYSTART_MIN_THRESH);
}

static void judge(leat_hystart *h)
{
    if (h->samples < LEAT_HYSTART_SAMPLES || h->round_min == LEAT_TIME_NEVER) {
        return;
    }
    if (h->in_css) {
        if (h->round_min < h->css_baseline) {
            h->in_css = false;
            h->css_baseline = LEAT_TIME_NEVER;
        }
    } else if (h->last_min != LEAT_TIME_NEVER &&
               h->round_min >= leat_time_add(h->last_min, threshold(h->last_min))) {
        h->in_css = true;
        h->css_baseline = h->round_min;
        h->css_rounds = 0;
        h->css_part = 0;
    }
}

uint64_t leat_hystart_grow(leat_hystart *h, const leat_cc_acked *facts, uint64_t bytes, bool *done)
{
    uint64_t growth = bytes;

    *done = facts->acked->rate.prior_delivered >= h->round_end && next_round(h, facts);
    if (facts->acked->rtt_sample) {
        sample(h, facts->rtt->latest);
    }
    if (h->in_css) {
        h->css_part += bytes;
        growth = h->css_part / LEAT_HYSTART_CSS_GROWTH;
        h->css_part %= LEAT_HYSTART_CSS_GROWTH;
    }
    judge(h);
    return growth;
}
