/* media/gcc.c: Google congestion control put together.
 *
 * The target is the lesser of what delay allows and what loss allows. Packets leave half as fast
 * again, for as long as that makes no more than it (gcc_window.c).
 *
 * Probes: three times the start's rate at once, then twice as much as long as the path answers with
 * most of it; and every five seconds twice the target, while no queue grows, so that a path that
 * got faster is soon found out. While the application sends little there is one probe at a time,
 * and none once the target is twice what is sent. A probe never lowers the target: over-use does.
 *
 * No feedback for a second, though packets wait for it: the rate is halved, every second.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>

#include "media/gcc.h"

#include "base/assert.h"
#include "base/time.h"

static const double PROBE_FIRST = 3;   /* times the start */
static const double PROBE_FURTHER = 2; /* times the last */
static const double PROBE_AGAIN = 2;   /* times the target, now and then */
static const double PROBE_LIMITED = 2; /* the target over what is sent: no more is asked for */
static const double PROBE_CALM = 0.25; /* of the threshold: more of a trend forbids a probe */
/* What the path is shown to carry counts for no more than this times what it was thought to carry
 * before the over-use: each lowers the rate, then, however arrivals are bunched. */
static const double CARRIED_MOST = 1.05;
static const double LIMITED_BELOW = 0.65; /* of the target sent: the application limits … */
static const double NO_LIMIT = LEAT_ESTIMATE_MAX_RATE_MAX; /* by loss */
static const double LIMITED_UNTIL = 0.8;                   /* … until so much is */

enum { SILENCE_ROUND_TRIPS = 4, PROBE_TRIES = 3 };
#define PROBE_PAUSE    (5 * LEAT_SECOND)
#define SILENCE        LEAT_SECOND /* without feedback, at least */
#define LIMITED_WINDOW (500 * LEAT_MILLISECOND)
#define RTT_MOST       (60 * LEAT_SECOND) /* of what a feedback makes believe */

_Static_assert(sizeof(leat_gcc) <= LEAT_ESTIMATE_STATE, "the estimator's state does not fit");

static leat_gcc *state(leat_estimate *e)
{
    return (leat_gcc *)leat_estimate_state(e);
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static leat_time silence(const leat_estimate *e)
{
    return leat_time_max(SILENCE, SILENCE_ROUND_TRIPS * e->rtt);
}

static leat_time deadline(const leat_estimate *e, const leat_gcc *g)
{
    leat_time at = LEAT_TIME_NEVER;

    if (g->probe.state != LEAT_GCC_PROBE_NONE) {
        at = g->probe.began + LEAT_GCC_PROBE_PATIENCE;
    }
    if (g->unanswered > 0) {
        at = leat_time_min(at, g->last_feedback + silence(e));
    }
    return at;
}

/* Makes the decisions of what the parts say. */
static void publish(leat_estimate *e)
{
    leat_gcc *g = state(e);
    double most = (double)e->settings.max_rate, least = (double)e->settings.min_rate;
    double target, pacing, window;
    bool sending = g->probe.state == LEAT_GCC_PROBE_SENDING;

    g->control.rate = g->control.rate < most ? g->control.rate : most;
    g->control.rate = g->control.rate > least ? g->control.rate : least;
    g->loss.rate = g->loss.rate > least ? g->loss.rate : least;
    target = lesser(g->control.rate, g->loss.rate);
    pacing = leat_gcc_bucket_pacing(&g->bucket, target);
    window = leat_gcc_round_window(&g->round, target);
    if (sending && g->probe.rate > pacing) {
        pacing = g->probe.rate;
        window += (double)g->probe.want_bytes;
    }
    e->target_rate = (uint64_t)target;
    e->pacing_rate = (uint64_t)pacing;
    e->window = (uint64_t)window;
    e->acked_rate = g->acked.rate > 0 ? (uint64_t)g->acked.rate : 0;
    e->delay_rate = (uint64_t)g->control.rate;
    e->loss_rate = (uint64_t)lesser(g->loss.rate, most);
    e->loss = g->loss.share;
    e->trend = leat_gcc_trend_value(&g->trend);
    e->threshold = g->detector.threshold;
    e->usage = g->detector.usage;
    e->probing = sending;
    e->padding = sending && g->probe.want_bytes > g->probe.sent_bytes
                     ? g->probe.want_bytes - g->probe.sent_bytes
                     : 0;
    e->deadline = deadline(e, g);
}

/* ---- probing ----------------------------------------------------------------------------------
 */

static void probe(leat_estimate *e, leat_time now, double rate, double next_rate)
{
    leat_gcc *g = state(e);
    double most = (double)e->settings.max_rate;

    if (!e->settings.probe || g->control.rate >= most) {
        return;
    }
    leat_gcc_probe_begin(&g->probe, now, lesser(rate, most), rate < most ? next_rate : 0);
    g->last_probe = now;
    g->tries = 1;
}

/* The same once more, for what came tells nothing of the rate asked for. */
static void probe_anew(leat_estimate *e, leat_time now, double rate, double next_rate)
{
    leat_gcc *g = state(e);
    uint32_t tries = g->tries;

    if (tries < PROBE_TRIES) {
        probe(e, now, rate, next_rate);
        g->tries = tries + 1;
    }
}

/* A cluster may be whole: its answer, and the next one. It may have come out of order, or have left
 * too slowly: as when a QUIC handshake was not over yet. */
static void take_probe(leat_estimate *e, leat_time now)
{
    leat_gcc *g = state(e);
    double asked = g->probe.rate, next = g->probe.next_rate;
    leat_gcc_probe_state was = g->probe.state;
    double answer = lesser(leat_gcc_probe_result(&g->probe), (double)e->settings.max_rate);

    if (was != LEAT_GCC_PROBE_WAITING || g->probe.state != LEAT_GCC_PROBE_NONE ||
        g->detector.usage == LEAT_USAGE_OVER) {
        return;
    }
    if (answer > g->control.rate) {
        leat_gcc_control_set(&g->control, now, answer);
        if (answer > g->acked.rate) {
            leat_gcc_acked_set(&g->acked, answer);
        }
    }
    if (e->app_limited) {
        return;
    }
    if (answer > LEAT_GCC_PROBE_ANSWERED * asked) {
        if (next > 0) {
            probe(e, now, next, PROBE_FURTHER * next);
        }
    } else if (g->probe.vague) {
        probe_anew(e, now, asked, next);
    }
}

/* An application that sends little asks for no more than it may soon make use of. */
static bool may_use_more(const leat_estimate *e)
{
    const leat_gcc *g = (const leat_gcc *)(const void *)e->state.bytes;

    return !e->app_limited || g->control.rate < PROBE_LIMITED * g->sent_rate;
}

/* The beginning of over-use is seen late where packets are few: a probe on top of it would make of
 * a short queue a long one. */
static bool grows(const leat_gcc *g)
{
    return leat_gcc_trend_value(&g->trend) > PROBE_CALM * g->detector.threshold;
}

/* Now and then, while the path is not known to be full. */
static void probe_again(leat_estimate *e, leat_time now)
{
    leat_gcc *g = state(e);

    if (g->probe.state == LEAT_GCC_PROBE_NONE && g->detector.usage == LEAT_USAGE_NORMAL &&
        g->control.state == LEAT_GCC_INCREASE && now - g->last_probe >= PROBE_PAUSE &&
        now - g->control.decreased >= PROBE_PAUSE && g->loss.rate >= g->control.rate && !grows(g) &&
        may_use_more(e)) {
        probe(e, now, PROBE_AGAIN * g->control.rate, PROBE_AGAIN * PROBE_FURTHER * g->control.rate);
    }
}

/* ---- the door's functions ---------------------------------------------------------------------
 */

static void init(leat_estimate *e)
{
    leat_gcc *g = state(e);

    leat_gcc_detector_init(&g->detector);
    leat_gcc_acked_init(&g->acked);
    leat_gcc_control_init(&g->control, (double)e->settings.start_rate);
    leat_gcc_loss_init(&g->loss, NO_LIMIT);
    publish(e);
}

/* Whether the application sends less than it may, by windows of half a second. */
static void watch_application(leat_estimate *e, leat_time now, uint32_t size)
{
    leat_gcc *g = state(e);
    leat_time passed = now - g->window_began;

    if (passed >= LIMITED_WINDOW) {
        double rate = (double)g->window_bytes * 8 * (double)LEAT_SECOND / (double)passed;
        double share = e->app_limited ? LIMITED_UNTIL : LIMITED_BELOW;

        g->sent_rate = rate;
        e->app_limited = rate < share * (double)e->target_rate;
        g->window_began = now;
        g->window_bytes = 0;
    }
    g->window_bytes += size;
}

static void on_sent(leat_estimate *e, leat_time now, uint32_t size)
{
    leat_gcc *g = state(e);
    bool decides = g->unanswered == 0; /* the deadline, or more */

    if (g->started == 0) {
        g->started = g->window_began = now ? now : 1;
        probe(e, now, PROBE_FIRST * g->control.rate, PROBE_FIRST * PROBE_FURTHER * g->control.rate);
    }
    if (g->unanswered == 0) {
        g->last_feedback = now;
    }
    g->unanswered += size;
    watch_application(e, now, size);
    decides |= leat_gcc_bucket_take(&g->bucket, now, size, (double)e->target_rate);
    if (g->probe.state == LEAT_GCC_PROBE_SENDING) {
        leat_gcc_probe_on_sent(&g->probe, now, size);
        decides = true;
    }
    if (decides) {
        publish(e);
    }
}

/* The first result from here on that says when its packet arrived; the end, if none does. */
static const leat_fb_result *find_timed(const leat_fb_result *r, const leat_fb_result *end)
{
    while (r < end && (r->state != LEAT_FB_ARRIVED || r->arrived == LEAT_TIME_NEVER)) {
        r++;
    }
    return r;
}

/* Packets that came in time, of the present group and in the present window: nothing is decided by
 * them, and most are such. Returns the first that is not. */
static const leat_fb_result *take_plain(leat_gcc *g, const leat_fb_result *r,
                                        const leat_fb_result *end, leat_time *newest)
{
    leat_gcc_group group = g->groups.present;
    leat_time began = g->acked.began, length = g->acked.length, sent = *newest;
    uint64_t bytes = 0;

    for (; r < end && r->state == LEAT_FB_ARRIVED && !r->late &&
           r->sent - group.first_sent < group.span && r->arrived - began < length;
         r++) {
        leat_gcc_group_join(&group, r->sent, r->arrived);
        sent = leat_time_max(sent, r->sent);
        bytes += r->size;
    }
    g->groups.present.last_sent = group.last_sent;
    g->groups.present.last_arrived = group.last_arrived;
    leat_gcc_acked_add(&g->acked, group.last_arrived, bytes);
    g->came += bytes;
    *newest = sent;
    return r;
}

/* A packet that came, whenever that was. */
static void take_arrival(leat_estimate *e, leat_time arrived, const leat_fb_result *r)
{
    leat_gcc *g = state(e);
    leat_gcc_delta delta;

    leat_gcc_acked_take(&g->acked, arrived, r->size, e->app_limited);
    g->came += r->size;
    if (r->arrived == LEAT_TIME_NEVER || r->late ||
        !leat_gcc_groups_take(&g->groups, r->sent, arrived, &delta)) {
        return;
    }
    delta.bytes = g->came;
    delta.size = r->size;
    leat_gcc_trend_take(&g->trend, &delta);
    leat_gcc_detector_take(&g->detector, leat_gcc_trend_value(&g->trend), g->trend.slope,
                           delta.sent_ms, delta.arrived);
}

/* What came and what did not. Returns when the newest packet that came had left; 0: none came. */
static leat_time take_results(leat_estimate *e, leat_time now, const leat_fb_result *results,
                              size_t n)
{
    leat_gcc *g = state(e);
    const leat_fb_result *end = results + n, *timed = results, *r = results;
    uint32_t lost = 0, late = 0;
    leat_time newest = 0;

    while ((r = take_plain(g, r, end, &newest)) < end) {
        leat_time arrived = r->arrived;

        if (r->state == LEAT_FB_ARRIVED) {
            if (arrived == LEAT_TIME_NEVER) {
                /* When the next one did of which it is known; otherwise nobody knows better. */
                timed = find_timed(timed > r ? timed : r, end);
                arrived = timed < end ? timed->arrived : now;
            }
            take_arrival(e, arrived, r);
            newest = leat_time_max(newest, r->sent);
            late += r->late;
        } else {
            lost++;
        }
        r++;
    }
    leat_gcc_loss_count(&g->loss, (uint32_t)n - late, lost, late);
    return newest;
}

static void on_results(leat_estimate *e, leat_time now, const leat_fb_result *results, size_t n)
{
    leat_gcc *g = state(e);
    leat_time newest = take_results(e, now, results, n);
    double arrives;

    leat_gcc_probe_on_results(&g->probe, results, n);
    if (newest > 0 && now > newest) {
        e->rtt = leat_time_min(now - newest, RTT_MOST);
    }
    if (n > 0) {
        leat_gcc_round_take(&g->round, now, newest > 0 ? e->rtt : 0, now - g->last_feedback);
        g->unanswered = 0;
        g->last_feedback = now;
    }
    if (g->detector.usage == LEAT_USAGE_OVER) {
        leat_gcc_acked_expect_change(&g->acked);
    }
    /* The acknowledged rate is late, and says little of the path when little was sent, or one end
     * stood still. */
    arrives = g->acked.rate;
    if (g->detector.usage == LEAT_USAGE_OVER && arrives >= 0) {
        arrives = greater(arrives,
                          lesser(CARRIED_MOST * g->calm_rate, leat_gcc_trend_carried(&g->trend)));
    } else {
        g->calm_rate = g->control.rate;
    }
    leat_gcc_control_take(&g->control, now, g->detector.usage, arrives, e->rtt);
    leat_gcc_loss_judge(&g->loss, now, (double)e->target_rate, NO_LIMIT, e->rtt);
    take_probe(e, now);
    leat_gcc_probe_expire(&g->probe, now);
    probe_again(e, now);
    publish(e);
}

static void on_time(leat_estimate *e, leat_time now)
{
    leat_gcc *g = state(e);

    leat_gcc_probe_expire(&g->probe, now);
    if (g->unanswered > 0 && now - g->last_feedback >= silence(e)) {
        g->control.rate /= 2;
        g->last_feedback = now;
    }
    publish(e);
}

const leat_estimate_ops *leat_estimate_gcc(void)
{
    static const leat_estimate_ops ops = {.name = "gcc",
                                          .state_size = sizeof(leat_gcc),
                                          .init = init,
                                          .on_sent = on_sent,
                                          .on_results = on_results,
                                          .on_time = on_time};

    return &ops;
}
