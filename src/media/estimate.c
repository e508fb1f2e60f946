/* media/estimate.c: the door to estimators: settings, bounds, and the calls behind which one
 * stands.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/estimate.h>
#include <leat/limits.h>

#include "base/assert.h"

void leat_estimate_settings_init(leat_estimate_settings *settings)
{
    *settings = (leat_estimate_settings){.start_rate = LEAT_ESTIMATE_START_DEFAULT,
                                         .min_rate = LEAT_ESTIMATE_MIN_RATE_DEFAULT,
                                         .max_rate = LEAT_ESTIMATE_MAX_RATE_DEFAULT,
                                         .probe = true};
}

static bool are_bounds(uint64_t least, uint64_t most)
{
    return least >= LEAT_ESTIMATE_MIN_RATE_MIN && least <= most &&
           most <= LEAT_ESTIMATE_MAX_RATE_MAX;
}

/* Whatever an estimator decides, the bounds hold, and a packet may always be in flight. */
static void hold_bounds(leat_estimate *e)
{
    const leat_estimate_settings *s = &e->settings;

    e->target_rate = e->target_rate < s->min_rate ? s->min_rate : e->target_rate;
    e->target_rate = e->target_rate > s->max_rate ? s->max_rate : e->target_rate;
    e->pacing_rate = e->pacing_rate < e->target_rate ? e->target_rate : e->pacing_rate;
    e->window = e->window < LEAT_ESTIMATE_WINDOW_DEFAULT ? LEAT_ESTIMATE_WINDOW_DEFAULT : e->window;
}

leat_err leat_estimate_init(leat_estimate *e, const leat_estimate_ops *ops,
                            const leat_estimate_settings *settings, void *user)
{
    *e = (leat_estimate){
        .ops = ops ? ops : leat_estimate_gcc(), .user = user, .deadline = LEAT_TIME_NEVER};
    leat_estimate_settings_init(&e->settings);
    if (settings) {
        e->settings = *settings;
    }
    if (!e->ops->init || e->ops->state_size > LEAT_ESTIMATE_STATE ||
        !are_bounds(e->settings.min_rate, e->settings.max_rate) ||
        e->settings.start_rate < e->settings.min_rate ||
        e->settings.start_rate > e->settings.max_rate) {
        return LEAT_ERR_INVALID;
    }
    e->target_rate = e->settings.start_rate;
    e->ops->init(e);
    hold_bounds(e);
    return LEAT_OK;
}

void leat_estimate_on_sent(leat_estimate *e, leat_time now, uint32_t size)
{
    if (e->ops->on_sent) {
        e->ops->on_sent(e, now, size);
        hold_bounds(e);
    }
}

void leat_estimate_on_results(leat_estimate *e, leat_time now, const leat_fb_result *results,
                              size_t n)
{
    if (e->ops->on_results) {
        e->ops->on_results(e, now, results, n);
        hold_bounds(e);
    }
}

void leat_estimate_on_time(leat_estimate *e, leat_time now)
{
    if (e->ops->on_time && now >= e->deadline) {
        e->ops->on_time(e, now);
        hold_bounds(e);
    }
}

leat_err leat_estimate_set_bounds(leat_estimate *e, uint64_t min_rate, uint64_t max_rate)
{
    if (!are_bounds(min_rate, max_rate)) {
        return LEAT_ERR_INVALID;
    }
    e->settings.min_rate = min_rate;
    e->settings.max_rate = max_rate;
    hold_bounds(e);
    return LEAT_OK;
}

const char *leat_usage_name(leat_usage usage)
{
#define LEAT_USAGE_TEXT(name, text) text,
    static const char *const names[] = {LEAT_USAGE_LIST(LEAT_USAGE_TEXT)};
#undef LEAT_USAGE_TEXT

    return (unsigned)usage < LEAT_USAGES ? names[usage] : "?";
}
