/* Tasks and timers allocate nothing: neither leat's own code nor anything it calls.
 *
 * The linker sends every call to the allocator through the counter here (--wrap).
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched_fixture.h"

#include <stdlib.h>

static uint64_t allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
    allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    allocations++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    allocations++;
    return __real_aligned_alloc(align, n);
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    allocations++;
    return __real_posix_memalign(out, align, n);
}

enum { TASKS = 1000 };
static leat_task tasks[TASKS];
static leat_timer timers[TASKS];
static uint64_t ran;

static void count_task(leat_task *task)
{
    (void)task;
    ran++;
}

static void count_timer(leat_timer *timer, leat_time now)
{
    (void)now;
    ran++;
    leat_timer_set(timer, now + 1);
}

static void the_counter_counts(void **state)
{
    (void)state;
    uint64_t before = allocations;
    leat_ctx *ctx = new_ctx(); /* takes memory from the system */
    assert_true(allocations > before);
    leat_ctx_free(ctx);
}

static void tasks_and_timers_allocate_nothing(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    for (int i = 0; i < TASKS; i++) {
        leat_task_init(&tasks[i], ctx, count_task);
        leat_timer_init(&timers[i], ctx, count_timer);
        leat_timer_set(&timers[i], (leat_time)(i % 7));
    }
    uint64_t before = allocations;
    ran = 0;
    for (leat_time now = 10; now < 20; now++) {
        for (int i = 0; i < TASKS; i += 2) {
            leat_ctx_run_soon(ctx, &tasks[i]);
            leat_ctx_post(ctx, &tasks[i + 1]);
        }
        leat_task_cancel(&tasks[4]);
        leat_ctx_turn(ctx, now);
    }
    assert_int_equal(allocations - before, 0);
    assert_int_equal(ran, 10 * (TASKS - 1 + TASKS));
    leat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(tasks_and_timers_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
