/* media/gcc_rate.c: from over-use, arrivals and losses to a rate.
 *
 * The acknowledged rate: bytes that arrived in windows of 150 ms (the first: 500 ms), each a sample
 * whose uncertainty grows with its distance from the estimate, relative to the larger of both (to
 * the estimate alone, a rate that a probe made ten times as high would take seconds to be
 * believed), joined to it by their variances.
 *
 * Rate control (draft §5.5): over-use decreases to 0.85 of the acknowledged rate and holds; an
 * under-use holds, for the queue drains; otherwise the rate increases: by 8 % a second, and by
 * about a packet in a response time where over-use was met lately: within three deviations of the
 * mean of what arrived then. Never above 1.5 times what arrives: an application that sends little
 * proves little.
 *
 * Loss (draft §6): over 10 % decreases by half of it, under 2 % increases, in between holds. It is
 * judged by 20 packets when these leave no doubt that more than 10 % are lost, otherwise by 100 or
 * by what a second brings: a limit that chance put there would stay where some loss is always.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/gcc.h"

#include "base/assert.h"

/* ---- what arrives -----------------------------------------------------------------------------
 */

#define FIRST_WINDOW (500 * LEAT_MILLISECOND)
#define WINDOW       (150 * LEAT_MILLISECOND)
/* No packet is told of so long after others that came later: the receiver's clock was set back. */
#define CLOCK_BACK   LEAT_SECOND

static const double VARIANCE_START = 50;
static const double VARIANCE_STEP = 5;        /* added a window */
static const double VARIANCE_CHANGE = 200;    /* added when a probe tells the rate */
static const double VARIANCE_OVER = 20;       /* added when over-use tells that it changed */
static const double UNCERTAINTY = 10;         /* of a sample, by its relative distance */
static const double UNCERTAINTY_LIMITED = 20; /* when the application decides how much arrives */

void leat_gcc_acked_init(leat_gcc_acked *a)
{
    *a = (leat_gcc_acked){.rate = -1, .variance = VARIANCE_START};
}

/* A window is over: its rate, in bits a second, joins the estimate. */
static void take_sample(leat_gcc_acked *a, double sample, bool app_limited)
{
    double scale = app_limited && sample < a->rate ? UNCERTAINTY_LIMITED : UNCERTAINTY;
    double off, sample_variance, variance;

    if (a->rate < 0) {
        a->rate = sample;
        return;
    }
    off = scale * (a->rate - sample) / (a->rate > sample ? a->rate : sample);
    sample_variance = off * off;
    variance = a->variance + VARIANCE_STEP;
    a->rate = (sample_variance * a->rate + variance * sample) / (sample_variance + variance);
    a->variance = sample_variance * variance / (sample_variance + variance);
}

void leat_gcc_acked_expect_change(leat_gcc_acked *a)
{
    a->variance += VARIANCE_OVER;
}

static leat_time window_length(const leat_gcc_acked *a)
{
    return a->rate < 0 ? FIRST_WINDOW : WINDOW;
}

void leat_gcc_acked_set(leat_gcc_acked *a, double rate)
{
    a->rate = rate;
    a->variance += VARIANCE_CHANGE;
    a->length = a->length > 0 ? window_length(a) : 0;
}

/* The last arrival was `passed` after the one before it. A window is over, or more than one when
 * nothing came for long. */
static void close_window(leat_gcc_acked *a, leat_time passed, bool app_limited)
{
    leat_time open = a->last - a->began;
    leat_time over = passed > a->length ? open : a->length;

    if (passed > a->length && app_limited) {
        a->bytes = 0; /* nothing was sent: that says nothing of the path */
    }
    if (a->bytes > 0) {
        take_sample(a, (double)a->bytes * 8 * (double)LEAT_SECOND / (double)over, app_limited);
    }
    a->began = a->last - open % a->length;
    a->bytes = 0;
    a->length = window_length(a);
}

void leat_gcc_acked_turn(leat_gcc_acked *a, leat_time arrived, bool app_limited)
{
    leat_time passed = 0;

    if (a->length == 0 || (int64_t)(a->last - arrived) > (int64_t)CLOCK_BACK) {
        a->began = a->last = arrived;
        a->length = window_length(a);
        a->bytes = 0;
    } else if ((int64_t)(arrived - a->last) > 0) {
        passed = arrived - a->last;
        a->last = arrived;
    }
    if (a->last - a->began >= a->length) {
        close_window(a, passed, app_limited);
    }
}

/* ---- capacity ---------------------------------------------------------------------------------
 */

static const double CAPACITY_WEIGHT = 0.05;
static const double DEVIATION_MIN = 0.4;
static const double DEVIATION_MAX = 2.5;

/* Whether a rate is further from the mean than three deviations: another capacity. */
static bool is_other(const leat_gcc_capacity *c, double rate)
{
    double off = rate / 1000 - c->rate;

    return off * off > 9 * c->deviation * c->rate;
}

static void capacity_take(leat_gcc_capacity *c, double rate)
{
    double kbits = rate / 1000, off, norm;

    c->rate = c->rate < 0 ? kbits : (1 - CAPACITY_WEIGHT) * c->rate + CAPACITY_WEIGHT * kbits;
    norm = c->rate > 1 ? c->rate : 1;
    off = c->rate - kbits;
    c->deviation = (1 - CAPACITY_WEIGHT) * c->deviation + CAPACITY_WEIGHT * off * off / norm;
    c->deviation = c->deviation > DEVIATION_MIN ? c->deviation : DEVIATION_MIN;
    c->deviation = c->deviation < DEVIATION_MAX ? c->deviation : DEVIATION_MAX;
}

/* ---- rate control -----------------------------------------------------------------------------
 */

static const double DECREASE = 0.85;
static const double INCREASE_A_SECOND = 0.08;
static const double ACKED_BOUND = 1.5;        /* times what arrives … */
static const double ACKED_BOUND_MORE = 10000; /* … and so many bits a second more */
static const double ADD_LEAST = 4000;         /* bits a second, a second */
static const double PACKET_BITS = 1200 * 8;
static const double FRAMES = 30; /* a second: what a packet is, of a low rate */
/* The detector sees a queue only while that grows by more than a share of time: its least threshold
 * over its gain. A rate that grows past the path's by `a` of itself a second has left a queue of
 * SEEN^2 / 2a by then, and a packet a response time is little of a high rate: it would be 50 ms at
 * 10 Mbit/s and half a second at 100. */
static const double SEEN = LEAT_GCC_SLOPE_SEEN;
static const double UNSEEN_MOST = 0.02; /* seconds of queue */

#define RTT_UNKNOWN      (200 * LEAT_MILLISECOND)
#define RESPONSE_EXTRA   (100 * LEAT_MILLISECOND) /* for the detector */
#define REDUCE_PAUSE_MIN (10 * LEAT_MILLISECOND)
#define REDUCE_PAUSE_MAX (200 * LEAT_MILLISECOND)
#define PERSISTENT       (500 * LEAT_MILLISECOND) /* over-use all the same */

void leat_gcc_control_init(leat_gcc_control *c, double rate)
{
    *c = (leat_gcc_control){
        .rate = rate, .state = LEAT_GCC_HOLD, .capacity = {.rate = -1, .deviation = DEVIATION_MIN}};
}

/* Bits a second to add in a second: a packet of the usual size in a response time, and no less than
 * what keeps the queue short that grows unseen. */
static double near_maximum(double rate, leat_time rtt)
{
    double frame = rate / FRAMES;
    double packet = frame / ((double)(uint64_t)(frame / PACKET_BITS) + 1);
    double response = (double)((rtt ? rtt : RTT_UNKNOWN) + RESPONSE_EXTRA) / (double)LEAT_SECOND;
    double add = packet / response;
    double least = rate * SEEN * SEEN / (2 * UNSEEN_MOST);

    least = least > ADD_LEAST ? least : ADD_LEAST;
    return add > least ? add : least;
}

static void increase(leat_gcc_control *c, leat_time now, double acked, leat_time rtt)
{
    double seconds = (double)(now - c->changed) / (double)LEAT_SECOND, rate = c->rate, bound;

    seconds = seconds < 1 ? seconds : 1;
    if (c->capacity.rate >= 0 && acked > c->capacity.rate * 1000 && is_other(&c->capacity, acked)) {
        c->capacity.rate = -1; /* there is more than there was */
    }
    if (c->capacity.rate >= 0 &&
        (rate > c->capacity.rate * 1000 || !is_other(&c->capacity, rate))) {
        rate += near_maximum(rate, rtt) * seconds;
    } else {
        rate +=
            (rate * INCREASE_A_SECOND > ADD_LEAST ? rate * INCREASE_A_SECOND : ADD_LEAST) * seconds;
    }
    bound = acked >= 0 ? ACKED_BOUND * acked + ACKED_BOUND_MORE : rate;
    c->rate = rate < bound ? rate : bound > c->rate ? bound : c->rate;
}

static bool may_reduce(const leat_gcc_control *c, leat_time now, double acked, leat_time rtt)
{
    leat_time pause = rtt < REDUCE_PAUSE_MIN ? REDUCE_PAUSE_MIN : rtt;

    pause = pause < REDUCE_PAUSE_MAX ? pause : REDUCE_PAUSE_MAX;
    return c->decreased == 0 || now - c->decreased >= pause ||
           (acked >= 0 && acked < 0.5 * c->rate);
}

static void decrease(leat_gcc_control *c, leat_time now, double acked)
{
    double rate = acked >= 0 ? DECREASE * acked : c->rate / 2;

    if (rate > c->rate && c->capacity.rate >= 0) {
        if (now - c->decreased < PERSISTENT) {
            return; /* less than what arrives already: the queue drains */
        }
        rate = DECREASE * c->capacity.rate * 1000;
        rate = rate > DECREASE * c->rate ? rate : DECREASE * c->rate;
    }
    c->rate = rate < c->rate ? rate : c->rate;
    if (acked >= 0) {
        if (c->capacity.rate >= 0 && acked < c->capacity.rate * 1000 &&
            is_other(&c->capacity, acked)) {
            c->capacity.rate = -1; /* there is less than there was */
        }
        capacity_take(&c->capacity, acked);
    }
    c->decreased = now;
    c->state = LEAT_GCC_HOLD;
}

void leat_gcc_control_take(leat_gcc_control *c, leat_time now, leat_usage usage, double acked,
                           leat_time rtt)
{
    if (c->changed == 0) {
        c->changed = now;
    }
    if (usage == LEAT_USAGE_OVER) {
        if (may_reduce(c, now, acked, rtt)) {
            decrease(c, now, acked);
        }
        c->state = LEAT_GCC_HOLD;
    } else if (usage == LEAT_USAGE_UNDER) {
        c->state = LEAT_GCC_HOLD;
    } else if (c->state == LEAT_GCC_INCREASE) {
        increase(c, now, acked, rtt);
    } else {
        c->state = LEAT_GCC_INCREASE;
    }
    c->changed = now;
}

void leat_gcc_control_set(leat_gcc_control *c, leat_time now, double rate)
{
    c->rate = rate;
    c->changed = now;
}

/* ---- loss -------------------------------------------------------------------------------------
 */

static const double LOSS_HIGH = 0.1;
static const double LOSS_LOW = 0.02;
static const double LOSS_INCREASE_A_SECOND = 0.08;

enum { LOSS_PACKETS = 20, LOSS_SURE = 100 };
#define LOSS_PAUSE    (300 * LEAT_MILLISECOND) /* and a round trip, from decrease to decrease */
#define LOSS_PATIENCE LEAT_SECOND              /* for more packets, once there are the fewest */

void leat_gcc_loss_init(leat_gcc_loss *l, double most)
{
    *l = (leat_gcc_loss){.rate = most};
}

/* Whether more than a tenth was lost, and by two deviations, so that it is not chance: of 20
 * packets on a path that loses 3 %, three or more are lost once in fifty times. */
static bool is_heavy(const leat_gcc_loss *l)
{
    double over = l->lost - LOSS_HIGH * l->packets;

    return over > 0 && over * over > 4 * LOSS_HIGH * (1 - LOSS_HIGH) * l->packets;
}

static bool is_enough(const leat_gcc_loss *l, leat_time now)
{
    return l->packets >= LOSS_PACKETS &&
           (l->packets >= LOSS_SURE || now - l->judged >= LOSS_PATIENCE || is_heavy(l));
}

void leat_gcc_loss_judge(leat_gcc_loss *l, leat_time now, double target, double most, leat_time rtt)
{
    double seconds = (double)(now - l->judged) / (double)LEAT_SECOND;

    if (l->judged == 0) {
        l->judged = now;
        return;
    }
    if (!is_enough(l, now)) {
        return;
    }
    l->share = (double)l->lost / l->packets;
    if (l->share > LOSS_HIGH) {
        if (l->decreased == 0 || now - l->decreased >= LOSS_PAUSE + rtt) {
            l->rate = (l->rate < target ? l->rate : target) * (1 - l->share / 2);
            l->decreased = now;
        }
    } else if (l->share < LOSS_LOW) {
        l->rate += l->rate * LOSS_INCREASE_A_SECOND * (seconds < 1 ? seconds : 1);
        if (l->rate > 2 * target) { /* it has not limited for long */
            l->rate = most;
        }
    }
    l->rate = l->rate < most ? l->rate : most;
    l->packets = l->lost = 0;
    l->judged = now;
}
