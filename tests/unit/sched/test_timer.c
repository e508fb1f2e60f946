/* Timers: order, ties, setting, moving and unsetting, also from within a timer, and the deadline
 * that a turn returns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched_fixture.h"

#include <stdlib.h>

#include "base/prng.h"

typedef struct noting_timer {
    leat_timer timer;
    journal *journal;
    int number;
    void (*then)(struct noting_timer *self, leat_time now);
    struct noting_timer *other;
} noting_timer;

static void noting_fire(leat_timer *timer, leat_time now)
{
    noting_timer *self = LEAT_CONTAINER_OF(timer, noting_timer, timer);
    assert_false(leat_timer_is_set(timer));
    assert_int_equal(now, leat_ctx_now(timer->ctx));
    journal_note(self->journal, self->number);
    if (self->then != NULL) {
        self->then(self, now);
    }
}

static void timer_init(noting_timer *t, leat_ctx *ctx, journal *j, int number)
{
    memset(t, 0, sizeof(*t));
    leat_timer_init(&t->timer, ctx, noting_fire);
    t->journal = j;
    t->number = number;
}

static void timers_init(noting_timer *t, int n, leat_ctx *ctx, journal *j)
{
    for (int i = 0; i < n; i++) {
        timer_init(&t[i], ctx, j, i);
    }
}

static void timers_fire_by_deadline_and_not_before(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[3];
    timers_init(t, 3, ctx, &j);
    leat_timer_set(&t[0].timer, 30);
    leat_timer_set(&t[1].timer, 10);
    leat_timer_set(&t[2].timer, 20);
    assert_int_equal(leat_ctx_deadline(ctx), 10);
    assert_int_equal(leat_ctx_turn(ctx, 9), 10);
    assert_int_equal(j.count, 0);
    assert_int_equal(leat_ctx_turn(ctx, 20), 30);
    assert_journal(&j, 1, 2);
    assert_int_equal(leat_ctx_turn(ctx, 1000), LEAT_TIME_NEVER);
    assert_journal(&j, 0);
    leat_ctx_free(ctx);
}

static void ties_fire_in_the_order_set(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[5];
    timers_init(t, 5, ctx, &j);
    const int order[] = {3, 0, 4, 1, 2};
    for (int i = 0; i < 5; i++) {
        leat_timer_set(&t[order[i]].timer, 10);
    }
    leat_timer_set(&t[0].timer, 10); /* set again: behind the others now */
    leat_ctx_turn(ctx, 10);
    assert_journal(&j, 3, 4, 1, 2, 0);
    leat_ctx_free(ctx);
}

static void moved_timer_fires_once_at_its_new_time(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[2];
    timers_init(t, 2, ctx, &j);
    leat_timer_set(&t[0].timer, 10);
    leat_timer_set(&t[1].timer, 20);
    leat_timer_set(&t[0].timer, 30);
    assert_int_equal(leat_ctx_turn(ctx, 20), 30);
    assert_journal(&j, 1);
    leat_timer_set(&t[0].timer, 25);
    assert_int_equal(leat_ctx_deadline(ctx), 25);
    assert_int_equal(leat_ctx_turn(ctx, 40), LEAT_TIME_NEVER);
    assert_journal(&j, 0);
    leat_ctx_free(ctx);
}

static void unset_timer_does_not_fire(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[3];
    timers_init(t, 3, ctx, &j);
    for (int i = 0; i < 3; i++) {
        leat_timer_set(&t[i].timer, 10);
    }
    leat_timer_unset(&t[0].timer);
    leat_timer_unset(&t[0].timer);
    leat_timer_set(&t[2].timer, LEAT_TIME_NEVER);
    assert_false(leat_timer_is_set(&t[0].timer));
    assert_true(leat_timer_is_set(&t[1].timer));
    assert_false(leat_timer_is_set(&t[2].timer));
    leat_ctx_turn(ctx, 10);
    assert_journal(&j, 1);
    leat_ctx_free(ctx);
}

static void deadline_in_the_past_fires_in_the_next_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[2];
    timers_init(t, 2, ctx, &j);
    leat_ctx_set_now(ctx, 100);
    leat_timer_set(&t[0].timer, 7);
    leat_timer_set(&t[1].timer, 3); /* later set, and both are taken as "now" */
    assert_int_equal(leat_ctx_deadline(ctx), 100);
    assert_int_equal(leat_ctx_turn(ctx, 100), LEAT_TIME_NEVER);
    assert_journal(&j, 0, 1);
    leat_ctx_free(ctx);
}

static void set_itself_to_now(noting_timer *self, leat_time now)
{
    leat_timer_set(&self->timer, now);
}

static void timer_that_sets_itself_to_now_fires_once_a_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[3];
    timers_init(t, 3, ctx, &j);
    t[0].then = set_itself_to_now;
    leat_timer_set(&t[0].timer, 5);
    leat_timer_set(&t[1].timer, 6);
    leat_timer_set(&t[2].timer, 10);
    assert_int_equal(leat_ctx_turn(ctx, 10), 10);
    assert_journal(&j, 0, 1, 2); /* all that was due, none twice */
    assert_int_equal(leat_ctx_turn(ctx, 10), 10);
    assert_journal(&j, 0);
    leat_ctx_free(ctx);
}

static void unset_other(noting_timer *self, leat_time now)
{
    (void)now;
    leat_timer_unset(&self->other->timer);
}

static void move_other_later(noting_timer *self, leat_time now)
{
    leat_timer_set(&self->other->timer, now + 10);
}

static void timer_may_unset_or_move_another_that_is_due(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t[4];
    timers_init(t, 4, ctx, &j);
    for (int i = 0; i < 4; i++) {
        leat_timer_set(&t[i].timer, 10);
    }
    t[0].then = unset_other;
    t[0].other = &t[1];
    t[2].then = move_other_later;
    t[2].other = &t[3];
    assert_int_equal(leat_ctx_turn(ctx, 10), 20);
    assert_journal(&j, 0, 2);
    leat_ctx_turn(ctx, 20);
    assert_journal(&j, 3);
    leat_ctx_free(ctx);
}

static noting_task queued_by_timer;

static void queue_a_task(noting_timer *self, leat_time now)
{
    (void)now;
    leat_ctx_run_soon(self->timer.ctx, &queued_by_timer.task);
}

static void task_queued_by_a_timer_runs_in_the_same_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t;
    timer_init(&t, ctx, &j, 1);
    noting_init(&queued_by_timer, ctx, &j, 2);
    t.then = queue_a_task;
    leat_timer_set(&t.timer, 10);
    assert_int_equal(leat_ctx_turn(ctx, 10), LEAT_TIME_NEVER);
    assert_journal(&j, 1, 2);
    leat_ctx_free(ctx);
}

static void clock_that_steps_back_is_held(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_timer t;
    timer_init(&t, ctx, &j, 1);
    leat_ctx_turn(ctx, 1000);
    leat_timer_set(&t.timer, 1500);
    assert_int_equal(leat_ctx_turn(ctx, 400), 1500);
    assert_int_equal(leat_ctx_now(ctx), 1000);
    leat_ctx_set_now(ctx, 999);
    assert_int_equal(leat_ctx_now(ctx), 1000);
    leat_ctx_turn(ctx, 1500);
    assert_journal(&j, 1);
    leat_ctx_free(ctx);
}

/* A model: an array searched in full. */
typedef struct model_timer {
    leat_time deadline;
    uint64_t order;
} model_timer;

enum { RANDOM_TIMERS = 64, RANDOM_STEPS = 20000 };

static int model_next(const model_timer *model, leat_time now)
{
    int best = -1;
    for (int i = 0; i < RANDOM_TIMERS; i++) {
        if (model[i].deadline > now || model[i].deadline == LEAT_TIME_NEVER) {
            continue;
        }
        if (best < 0 || model[i].deadline < model[best].deadline ||
            (model[i].deadline == model[best].deadline && model[i].order < model[best].order)) {
            best = i;
        }
    }
    return best;
}

static void turn_against_model(leat_ctx *ctx, model_timer *model, journal *j, leat_time now)
{
    j->count = 0;
    leat_ctx_turn(ctx, now);
    for (size_t i = 0; i < j->count; i++) {
        int expected = model_next(model, now);
        assert_int_equal(j->entries[i], expected);
        model[expected].deadline = LEAT_TIME_NEVER;
    }
    assert_int_equal(model_next(model, now), -1);
}

static void random_timers_fire_as_a_plain_array_says(void **state)
{
    (void)state;
    const char *given = getenv("LEAT_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 0x7133;
    print_message("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)seed);
    leat_prng prng;
    leat_prng_seed(&prng, seed);
    leat_ctx *ctx = new_ctx();
    static journal j;
    static noting_timer t[RANDOM_TIMERS];
    model_timer model[RANDOM_TIMERS];
    uint64_t order = 0;
    leat_time now = 0;
    timers_init(t, RANDOM_TIMERS, ctx, &j);
    for (int i = 0; i < RANDOM_TIMERS; i++) {
        model[i].deadline = LEAT_TIME_NEVER;
    }
    for (int step = 0; step < RANDOM_STEPS; step++) {
        int i = (int)leat_prng_below(&prng, RANDOM_TIMERS);
        uint64_t what = leat_prng_below(&prng, 10);
        if (what < 7) { /* near deadlines, so that many tie */
            model[i].deadline = now + leat_prng_below(&prng, 40);
            model[i].order = order++;
            leat_timer_set(&t[i].timer, model[i].deadline);
        } else if (what < 9) {
            model[i].deadline = LEAT_TIME_NEVER;
            leat_timer_unset(&t[i].timer);
        } else {
            now += leat_prng_below(&prng, 20);
            turn_against_model(ctx, model, &j, now);
        }
        if (step % 64 == 0) {
            check_ctx(ctx);
        }
    }
    leat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_by_deadline_and_not_before),
        cmocka_unit_test(ties_fire_in_the_order_set),
        cmocka_unit_test(moved_timer_fires_once_at_its_new_time),
        cmocka_unit_test(unset_timer_does_not_fire),
        cmocka_unit_test(deadline_in_the_past_fires_in_the_next_turn),
        cmocka_unit_test(timer_that_sets_itself_to_now_fires_once_a_turn),
        cmocka_unit_test(timer_may_unset_or_move_another_that_is_due),
        cmocka_unit_test(task_queued_by_a_timer_runs_in_the_same_turn),
        cmocka_unit_test(clock_that_steps_back_is_held),
        cmocka_unit_test(random_timers_fire_as_a_plain_array_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
