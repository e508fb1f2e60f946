/* media/gcc_delay.c: from arrival times to over-use.
 *
 * Packets that leave together (a video frame, or what the pacer lets out in 5 ms) make a group, for
 * what happens among them says more of the sender than of the path. So do packets that come in one
 * burst, as after a radio's pause: each within 5 ms of the one before and quicker than it left,
 * 100 ms at most. From group to group, the arrivals' distance less the departures' is how much the
 * queue grew.
 *
 * A process that was not scheduled reads late what came, and has sent nothing meanwhile: the delay
 * of one group stands out, and that of the next is what it was. A queue does not get longer faster
 * than about the time that passes while it is filled. So the sum is believed to rise by no more
 * than that from one group to the next, and to fall at once.
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
    LATER = 1,       /* a packet of the next group may be counted */
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
    60000; /* of a point, after a pause: sums would lose their last digits */
/* What delay is believed to rise by from a group to the next: the time between them and … */
static const double RISE_MORE_MS = 5;
static const double RISE_MOST_MS = 50; /* … no more than this, for that may be a pause */
static const double CARRIED_MS = 50;   /* of arrivals, to tell a rate */
static const double LATELY_MS = 150;   /* ago, when they ended: the slope is late to see a fall */
static const double OVER_MS = 10;      /* above the threshold, before that is over-use */

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
    if (groups->disorders == 0) { /* otherwise what is next is compared with the same one */
        groups->before = groups->present;
    }
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
static void put(leat_gcc_trend *t, double at, double delay, uint64_t bytes)
{
    uint32_t i = t->next;
    bool full = t->count > LEAT_GCC_TREND_POINTS;

    if (full && i > 0) {
        sum(t, i, -1);
    }
    t->at[i] = at;
    t->delay[i] = delay;
    t->believed_at[i] = t->believed;
    t->bytes[i] = bytes;
    if (full && i > 0) {
        sum(t, i, 1);
    }
    if (t->count >= LEAT_GCC_TREND_POINTS && (i == 0 || !full || at - t->at_from > FAR_MS)) {
        sum_anew(t, i);
    }
    t->next = (i + 1) % LEAT_GCC_TREND_POINTS;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

void leat_gcc_trend_take(leat_gcc_trend *t, const leat_gcc_delta *delta)
{
    if (t->count == 0) {
        t->origin = delta->arrived;
    }
    t->count += t->count < COUNT_MOST;
    t->accumulated += delta->arrived_ms - delta->sent_ms;
    if (delta->arrived_ms > delta->sent_ms) {
        t->believed += lesser(delta->sent_ms + RISE_MORE_MS, RISE_MOST_MS);
    }
    t->believed = lesser(t->accumulated, t->believed);
    t->smoothed = SMOOTHING * t->smoothed + (1 - SMOOTHING) * t->believed;
    t->size = delta->size;
    put(t, ms(since(t->origin, delta->arrived)), t->smoothed, delta->bytes);
    if (t->count >= LEAT_GCC_TREND_POINTS) {
        t->slope = slope_of(t);
    }
}

double leat_gcc_trend_value(const leat_gcc_trend *t)
{
    return (t->count < COUNT_FULL ? t->count : COUNT_FULL) * t->slope * GAIN;
}

/* The point that was taken so many before the last. */
static uint32_t point(const leat_gcc_trend *t, uint32_t before)
{
    return (t->next + 2 * LEAT_GCC_TREND_POINTS - 1 - before) % LEAT_GCC_TREND_POINTS;
}

/* Bits a second from one point to a later one; 0: not known, for it is short, or the queue got
 * shorter: what had waited came then, too. */
static double carried(const leat_gcc_trend *t, uint32_t from, uint32_t to)
{
    double time = t->at[to] - t->at[from];
    double bytes = (double)(t->bytes[to] - t->bytes[from]) - (double)LATER * t->size;

    return time >= CARRIED_MS && t->believed_at[to] >= t->believed_at[from] ? bytes * 8e3 / time
                                                                            : 0;
}

double leat_gcc_trend_carried(const leat_gcc_trend *t)
{
    double now = t->at[point(t, 0)], most = 0;

    if (t->count < LEAT_GCC_TREND_POINTS) {
        return 0;
    }
    for (uint32_t end = 0; end < LEAT_GCC_TREND_POINTS; end++) {
        uint32_t to = point(t, end);

        if (now - t->at[to] > LATELY_MS) {
            break;
        }
        for (uint32_t before = end + 1; before < LEAT_GCC_TREND_POINTS; before++) {
            double rate = carried(t, point(t, before), to);

            most = rate > most ? rate : most;
        }
    }
    return most;
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
