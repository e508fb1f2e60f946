/* Tasks of the owner: order, cancellation, and what a task may do while it runs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched_fixture.h"

static void tasks_run_in_the_order_queued(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[3];
    for (int i = 0; i < 3; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    leat_ctx_run_soon(ctx, &t[2].task);
    leat_ctx_run_soon(ctx, &t[0].task);
    leat_ctx_run_soon(ctx, &t[1].task);
    check_ctx(ctx);
    assert_int_equal(leat_ctx_deadline(ctx), leat_ctx_now(ctx));
    assert_int_equal(leat_ctx_turn(ctx, 5), LEAT_TIME_NEVER);
    assert_journal(&j, 2, 0, 1);
    leat_ctx_free(ctx);
}

static void queueing_a_queued_task_changes_nothing(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task a, b;
    noting_init(&a, ctx, &j, 1);
    noting_init(&b, ctx, &j, 2);
    leat_ctx_run_soon(ctx, &a.task);
    leat_ctx_run_soon(ctx, &b.task);
    leat_ctx_run_soon(ctx, &a.task);
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 1, 2);
    leat_ctx_free(ctx);
}

static void cancelled_task_does_not_run(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[3];
    for (int i = 0; i < 3; i++) {
        noting_init(&t[i], ctx, &j, i);
        leat_ctx_run_soon(ctx, &t[i].task);
    }
    assert_true(leat_task_queued(&t[1].task));
    assert_true(leat_task_cancel(&t[1].task));
    assert_false(leat_task_queued(&t[1].task));
    assert_false(leat_task_cancel(&t[1].task));
    check_ctx(ctx);
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 0, 2);
    leat_ctx_free(ctx);
}

static void queue_itself(noting_task *self)
{
    leat_ctx_run_soon(self->task.ctx, &self->task);
}

static void task_that_queues_itself_runs_once_a_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task a, b;
    noting_init(&a, ctx, &j, 1);
    noting_init(&b, ctx, &j, 2);
    a.then = queue_itself;
    leat_ctx_run_soon(ctx, &a.task);
    leat_ctx_run_soon(ctx, &b.task);
    assert_int_equal(leat_ctx_turn(ctx, 7), 7);
    assert_journal(&j, 1, 2);
    assert_int_equal(leat_ctx_turn(ctx, 8), 8);
    assert_journal(&j, 1);
    assert_true(leat_task_cancel(&a.task));
    assert_int_equal(leat_ctx_deadline(ctx), LEAT_TIME_NEVER);
    leat_ctx_free(ctx);
}

static void cancel_other(noting_task *self)
{
    assert_true(leat_task_cancel(&self->other->task));
}

static void task_may_cancel_the_next_of_its_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[3];
    for (int i = 0; i < 3; i++) {
        noting_init(&t[i], ctx, &j, i);
        leat_ctx_run_soon(ctx, &t[i].task);
    }
    t[0].then = cancel_other;
    t[0].other = &t[1];
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 0, 2);
    leat_ctx_free(ctx);
}

static void move_other_to_next_turn(noting_task *self)
{
    cancel_other(self);
    leat_ctx_run_soon(self->task.ctx, &self->other->task);
}

static void cancelled_and_queued_again_moves_to_the_next_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task a, b;
    noting_init(&a, ctx, &j, 1);
    noting_init(&b, ctx, &j, 2);
    a.then = move_other_to_next_turn;
    a.other = &b;
    leat_ctx_run_soon(ctx, &a.task);
    leat_ctx_run_soon(ctx, &b.task);
    assert_int_equal(leat_ctx_turn(ctx, 3), 3);
    assert_journal(&j, 1);
    assert_int_equal(leat_ctx_turn(ctx, 3), LEAT_TIME_NEVER);
    assert_journal(&j, 2);
    leat_ctx_free(ctx);
}

static void overwrite_itself(noting_task *self)
{
    /* As free() would: the context must not touch a task that it has called. */
    memset(&self->task, 0xdd, sizeof(self->task));
}

static void task_may_be_freed_by_its_own_run(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task a, b;
    noting_init(&a, ctx, &j, 1);
    noting_init(&b, ctx, &j, 2);
    a.then = overwrite_itself;
    leat_ctx_run_soon(ctx, &a.task);
    leat_ctx_run_soon(ctx, &b.task);
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 1, 2);
    leat_ctx_free(ctx);
}

static void queue_other_and_yield(noting_task *self)
{
    if (self->other) {
        leat_ctx_run_soon(self->task.ctx, &self->other->task);
    }
    leat_ctx_yield(self->task.ctx);
}

/* The rest of the turn's tasks come first in the next, before what was queued meanwhile. */
static void a_task_that_yields_ends_the_turn(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task y, t[4];
    noting_init(&y, ctx, &j, 9);
    y.then = queue_other_and_yield;
    y.other = &t[3];
    for (int i = 0; i < 4; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    leat_ctx_run_soon(ctx, &t[0].task);
    leat_ctx_run_soon(ctx, &y.task);
    leat_ctx_run_soon(ctx, &t[1].task);
    leat_ctx_run_soon(ctx, &t[2].task);
    assert_int_equal(leat_ctx_turn(ctx, 5), 5); /* more waits */
    check_ctx(ctx);
    assert_journal(&j, 0, 9);
    assert_true(leat_task_queued(&t[1].task));
    assert_true(leat_task_cancel(&t[1].task));
    assert_int_equal(leat_ctx_turn(ctx, 6), LEAT_TIME_NEVER);
    assert_journal(&j, 2, 3);
    y.other = NULL;
    leat_ctx_run_soon(ctx, &y.task); /* alone, and the next turn is a whole one */
    assert_int_equal(leat_ctx_turn(ctx, 7), LEAT_TIME_NEVER);
    leat_ctx_run_soon(ctx, &t[0].task);
    leat_ctx_run_soon(ctx, &t[1].task);
    assert_int_equal(leat_ctx_turn(ctx, 8), LEAT_TIME_NEVER);
    assert_journal(&j, 9, 0, 1);
    leat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_in_the_order_queued),
        cmocka_unit_test(a_task_that_yields_ends_the_turn),
        cmocka_unit_test(queueing_a_queued_task_changes_nothing),
        cmocka_unit_test(cancelled_task_does_not_run),
        cmocka_unit_test(task_that_queues_itself_runs_once_a_turn),
        cmocka_unit_test(task_may_cancel_the_next_of_its_turn),
        cmocka_unit_test(cancelled_and_queued_again_moves_to_the_next_turn),
        cmocka_unit_test(task_may_be_freed_by_its_own_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
