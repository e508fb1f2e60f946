/* tests/unit/sched/sched_fixture.h: a context, and a journal of which tasks and timers ran.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SCHED_FIXTURE_H
#define LEAT_TESTS_SCHED_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <leat/sched.h>

#include "base/assert.h"
#include "sched/ctx.h"

enum { JOURNAL_MAX = 4096 };

typedef struct journal {
    int entries[JOURNAL_MAX];
    size_t count;
} journal;

static inline void journal_note(journal *j, int what)
{
    assert_true(j->count < JOURNAL_MAX);
    j->entries[j->count++] = what;
}

/* Asserts that the journal holds exactly these entries, and empties it. */
#define assert_journal(j, ...)                                                                     \
    do {                                                                                           \
        const int expected_[] = {__VA_ARGS__};                                                     \
        assert_int_equal((j)->count, LEAT_COUNT_OF(expected_));                                    \
        for (size_t i_ = 0; i_ < LEAT_COUNT_OF(expected_); i_++) {                                 \
            assert_int_equal((j)->entries[i_], expected_[i_]);                                     \
        }                                                                                          \
        (j)->count = 0;                                                                            \
    } while (0)

/* A task that writes its number into a journal and then does `then`, if any. */
typedef struct noting_task {
    leat_task task;
    journal *journal;
    int number;
    void (*then)(struct noting_task *self);
    struct noting_task *other;
} noting_task;

static inline void noting_run(leat_task *task)
{
    noting_task *self = LEAT_CONTAINER_OF(task, noting_task, task);
    assert_false(leat_task_queued(task));
    journal_note(self->journal, self->number);
    if (self->then != NULL) {
        self->then(self);
    }
}

static inline void noting_init(noting_task *t, leat_ctx *ctx, journal *j, int number)
{
    memset(t, 0, sizeof(*t));
    leat_task_init(&t->task, ctx, noting_run);
    t->journal = j;
    t->number = number;
}

static inline leat_ctx *new_ctx(void)
{
    leat_ctx *ctx;
    assert_int_equal(leat_ctx_new(NULL, &ctx), LEAT_OK);
    return ctx;
}

static inline void check_ctx(leat_ctx *ctx)
{
    leat_ctx_check_tasks(ctx);
    leat_ctx_check_timers(ctx);
}

#endif
