/* media/gcc_delay.c: from arrival times to over-use.
 *
 * Packets that leave together (a video frame, or what the pacer lets out in 5 ms) make a group, for
 * what happens among them says more of the sender than of the path. So do packets that come in one
 * burst, as after a radio's pause: each within 5 ms of the one before and quicker than it left,
 * 100 ms at most. From group to group, the arrivals' distance less the departures' is how much the
 * queue grew.
 *
 * These differences are summed up, smoothed, and a line is laid through the last 20 sums: its slope
 * tells whether the queue grows. The slope, times the number of points (at most 60) and a gain of
 * 4, is compared with a threshold. The threshold follows the value itself upwards (K_u = 0.0087),
 * so that a flow that fills the queue by itself does not push this one out (draft §5.4), and slowly
 * downwards. K_d lies between the draft's and what common implementations have: docs/ESTIMATE.md
 * tells what each does beside a CUBIC flow. A value more
 * than 15 ms past the threshold does not move it: that is a spike, such as a route change.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/gcc.h"

#include "base/assert.h"

#define GROUP_SPAN (5 * LEAT_MILLISECOND + 1)
#define BURST_GAP  (5 * LEAT_MILLISECOND)
#define BURST_MOST (100 * LEAT_MILLISECOND)

enum {
    DISORDERS_MOST = 3, /* in a row: the receiver's clock was set back */
    COUNT_MOST = 1000,
    COUNT_FULL = 60, /* points from which on the value does not grow by their number */
};

static const double SMOOTHING = 0.9;
static const double GAIN = 4;
static const double THRESHOLD_START = 12.5;
static const double THRESHOLD_MIN = 6;
static const double THRESHOLD_MAX = 600;
static const double K_UP = 0.0087;
static const double K_DOWN = 0.0006;
static const double SPIKE = 15;          /* past the threshold: not adapted to */
static const double ADAPT_MS_MOST = 100; /* counted between two adaptations */
static const double FAR_MS =
    60000;                        /* of a point, after a pause: sums would lose their last digits */
static const double OVER_MS = 10; /* above the threshold, before that is over-use */

/* From one time to another, which may lie before it. */
static int64_t since(leat_time from, leat_time to)
{
    return (int64_t)(to - from);
}

static double ms(int64_t time)
{
    return (double)time * 1e-6;
}

/* ---- groups -----------------------------------------------------------------------------------
 */

/* Whether what left later came in one burst with the group. Jitter decides most of these, so they
 * are worked out all, without a branch for each that nobody could predict. */
static bool is_in_burst(const leat_gcc_group *g, leat_time sent, leat_time arrived)
{
    int64_t after = since(g->last_arrived, arrived);
    int64_t grown = after - since(g->last_sent, sent);
    int64_t grown_all = since(g->first_arrived, arrived) - since(g->first_sent, sent);
    bool quicker = (grown < 0) & (grown_all < 0) & (after <= (int64_t)BURST_GAP) &
                   (after >= -(int64_t)BURST_GAP) &
                   (since(g->first_arrived, arrived) < (int64_t)BURST_MOST);

    return quicker || sent == g->last_sent;
}

static void begin_group(leat_gcc_group *g, leat_time sent, leat_time arrived)
{
    *g = (leat_gcc_group){.first_sent = sent,
                          .last_sent = sent,
                          .first_arrived = arrived,
                          .last_arrived = arrived,
                          .span = GROUP_SPAN};
}

/* Compares the group that is complete with the one before. */
static bool compare(leat_gcc_groups *groups, leat_gcc_delta *out)
{
    const leat_gcc_group *a = &groups->before, *b = &groups->present;

    if (a->span == 0) {
        return false;
    }
    *out = (leat_gcc_delta){.sent_ms = ms(since(a->last_sent, b->last_sent)),
                            .arrived_ms = ms(since(a->last_arrived, b->last_arrived)),
                            .arrived = b->last_arrived};
    if (out->arrived_ms < 0) {
        if (++groups->disorders >= DISORDERS_MOST) {
            *groups = (leat_gcc_groups){.disorders = 0};
        }
        return false;
    }
    groups->disorders = 0;
    return true;
}

bool leat_gcc_groups_take_other(leat_gcc_groups *groups, leat_time sent, leat_time arrived,
                                leat_gcc_delta *out)
{
    leat_gcc_group *g = &groups->present;
    bool complete;

    if (g->span == 0) {
        begin_group(g, sent, arrived);
        return false;
    }
    if (since(g->first_sent, sent) < 0) {
        return false; /* overtaken: its group is closed */
    }
    if (is_in_burst(g, sent, arrived)) {
        leat_gcc_group_join(g, sent, arrived);
        return false;
    }
    complete = compare(groups, out);
    groups->before = groups->present;
    begin_group(g, sent, arrived);
    return complete;
}

/* ---- trendline --------------------------------------------------------------------------------
 */

/* A point goes into the sums, or out of them (`sign` -1). */
static void sum(leat_gcc_trend *t, uint32_t i, double sign)
{
    double x = t->at[i] - t->at_from, y = t->delay[i] - t->delay_from;

    t->sum_at += sign * x;
    t->sum_delay += sign * y;
    t->sum_products += sign * x * y;
    t->sum_squares += sign * x * x;
}

/* Once a round of the ring, and after a pause, the sums are made anew, counted from the newest
 * point: so numbers stay small and rounding does not add up, however long the stream is. */
static void sum_anew(leat_gcc_trend *t, uint32_t newest)
{
    t->at_from = t->at[newest];
    t->delay_from = t->delay[newest];
    t->sum_at = t->sum_delay = t->sum_products = t->sum_squares = 0;
    for (uint32_t i = 0; i < LEAT_GCC_TREND_POINTS; i++) {
        sum(t, i, 1);
    }
}

static double slope_of(const leat_gcc_trend *t)
{
    const double share = 1.0 / LEAT_GCC_TREND_POINTS;
    double squares = t->sum_squares - t->sum_at * t->sum_at * share;

    return squares > 0 ? (t->sum_products - t->sum_at * t->sum_delay * share) / squares : t->slope;
}

/* The new point takes the oldest one's place. */
static void put(leat_gcc_trend *t, double at, double delay)
{
    uint32_t i = t->next;
    bool full = t->count > LEAT_GCC_TREND_POINTS;

    if (full && i > 0) {
        sum(t, i, -1);
    }
    t->at[i] = at;
    t->delay[i] = delay;
    if (full && i > 0) {
        sum(t, i, 1);
    }
    if (t->count >= LEAT_GCC_TREND_POINTS && (i == 0 || !full || at - t->at_from > FAR_MS)) {
        sum_anew(t, i);
    }
    t->next = (i + 1) % LEAT_GCC_TREND_POINTS;
}

void leat_gcc_trend_take(leat_gcc_trend *t, const leat_gcc_delta *delta)
{
    if (t->count == 0) {
        t->origin = delta->arrived;
    }
    t->count += t->count < COUNT_MOST;
    t->accumulated += delta->arrived_ms - delta->sent_ms;
    t->smoothed = SMOOTHING * t->smoothed + (1 - SMOOTHING) * t->accumulated;
    put(t, ms(since(t->origin, delta->arrived)), t->smoothed);
    if (t->count >= LEAT_GCC_TREND_POINTS) {
        t->slope = slope_of(t);
    }
}

double leat_gcc_trend_value(const leat_gcc_trend *t)
{
    return (t->count < COUNT_FULL ? t->count : COUNT_FULL) * t->slope * GAIN;
}

/* ---- detector ---------------------------------------------------------------------------------
 */

void leat_gcc_detector_init(leat_gcc_detector *d)
{
    *d = (leat_gcc_detector){.threshold = THRESHOLD_START, .over_ms = -1};
}

static void adapt(leat_gcc_detector *d, double value, leat_time now)
{
    double size = value < 0 ? -value : value, passed;

    if (d->last == 0) {
        d->last = now;
    }
    if (size <= d->threshold + SPIKE) {
        passed = ms(since(d->last, now));
        passed = passed < ADAPT_MS_MOST ? passed : ADAPT_MS_MOST;
        d->threshold += (size < d->threshold ? K_DOWN : K_UP) * (size - d->threshold) * passed;
        d->threshold = d->threshold > THRESHOLD_MIN ? d->threshold : THRESHOLD_MIN;
        d->threshold = d->threshold < THRESHOLD_MAX ? d->threshold : THRESHOLD_MAX;
    }
    d->last = now;
}

leat_usage leat_gcc_detector_take(leat_gcc_detector *d, double value, double slope, double sent_ms,
                                  leat_time now)
{
    if (value > d->threshold) {
        d->over_ms = d->over_ms < 0 ? sent_ms / 2 : d->over_ms + sent_ms;
        d->over++;
        if (d->over_ms > OVER_MS && d->over > 1 && slope >= d->last_slope) {
            d->over_ms = 0;
            d->over = 0;
            d->usage = LEAT_USAGE_OVER;
        }
    } else {
        d->over_ms = -1;
        d->over = 0;
        d->usage = value < -d->threshold ? LEAT_USAGE_UNDER : LEAT_USAGE_NORMAL;
    }
    d->last_slope = slope;
    adapt(d, value, now);
    return d->usage;
}
