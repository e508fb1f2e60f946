/* sched/timer.c: timers on a pairing heap.
 *
 * Ordered by deadline, then by the order in which they were set. A deadline in the past is lifted
 * to "now" when it is set: so whatever a callback sets sorts behind all that was due when the pass
 * began, and the pass ends at the first timer that is younger than itself. That keeps a timer that
 * sets itself to "now" from holding the turn for ever.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched/ctx.h"

#include <string.h>

#include "base/assert.h"

static inline bool earlier(const leat_timer *a, const leat_timer *b)
{
    return a->deadline != b->deadline ? a->deadline < b->deadline : a->order < b->order;
}

#define LEAT_HEAP_NAME         timer_heap
#define LEAT_HEAP_TYPE         leat_timer
#define LEAT_HEAP_BEFORE(a, b) earlier(a, b)
#include "base/heap.h"

void leat_timer_init(leat_timer *timer, leat_ctx *ctx, leat_timer_fn *fire)
{
    memset(timer, 0, sizeof(*timer));
    timer->fire = fire;
    timer->ctx = ctx;
    timer->deadline = LEAT_TIME_NEVER;
}

void leat_timer_set(leat_timer *timer, leat_time deadline)
{
    leat_ctx *ctx = timer->ctx;
    leat_timer_unset(timer);
    if (deadline == LEAT_TIME_NEVER) {
        return;
    }
    timer->deadline = deadline > ctx->now ? deadline : ctx->now;
    timer->order = ctx->timer_order++;
    timer_heap_insert(&ctx->timers, timer);
}

void leat_timer_unset(leat_timer *timer)
{
    if (timer->deadline != LEAT_TIME_NEVER) {
        timer_heap_remove(&timer->ctx->timers, timer);
        timer->deadline = LEAT_TIME_NEVER;
    }
}

void leat_ctx_fire_timers(leat_ctx *ctx)
{
    uint64_t pass = ctx->timer_order;
    for (;;) {
        leat_timer *timer = ctx->timers;
        if (timer == NULL || timer->deadline > ctx->now || timer->order >= pass) {
            return;
        }
        timer_heap_pop(&ctx->timers);
        timer->deadline = LEAT_TIME_NEVER;
        timer->fire(timer, ctx->now);
    }
}

void leat_ctx_drop_timers(leat_ctx *ctx)
{
    leat_timer *timer;
    while ((timer = timer_heap_pop(&ctx->timers)) != NULL) {
        timer->deadline = LEAT_TIME_NEVER;
    }
}

leat_time leat_ctx_timer_deadline(const leat_ctx *ctx)
{
    return ctx->timers != NULL ? ctx->timers->deadline : LEAT_TIME_NEVER;
}

void leat_ctx_check_timers(const leat_ctx *ctx)
{
    timer_heap_check(ctx->timers);
}
