/* tests/cli/test_walk.c: the fast walk of tools/alloccount names the callers that the unwinder
 * names, through the C library, frame pointers, realigned stacks and signal handlers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alloca.h>
#include <cmocka.h>
#include <pthread.h>

#include "unwind_table.h"
#include "walk.h"

enum { MOST = 48 };

#define APART __attribute__((noinline))

static unsigned compared, by_frame_pointer, left_to_unwinder;
static uint32_t deepest;

/* Called wherever a stack is to be compared. */
static APART void compare(void)
{
    uintptr_t fast[MOST], slow[MOST];
    uint32_t fast_depth = leat_walk(fast, MOST, 0), slow_depth = leat_walk_slowly(slow, MOST, 0);

    assert_int_equal(fast_depth, slow_depth);
    assert_memory_equal(fast, slow, fast_depth * sizeof fast[0]);
    for (uint32_t i = 0; i < fast_depth; i++) {
        leat_unwind_kind kind = leat_unwind_rule_of(fast[i]).kind;

        by_frame_pointer += kind == LEAT_UNWIND_BY_FP;
        left_to_unwinder += kind == LEAT_UNWIND_OTHER;
    }
    deepest = fast_depth > deepest ? fast_depth : deepest;
    compared++;
}

static int begin(void **state)
{
    (void)state;
    compared = by_frame_pointer = left_to_unwinder = deepest = 0;
    return 0;
}

static APART int compare_in_qsort(const void *a, const void *b)
{
    compare();
    return *(const int *)a - *(const int *)b;
}

/* Nothing of it needs the unwinder: this is the way that has to be fast. */
static void through_the_c_library(void **state)
{
    int numbers[] = {3, 1, 2, 7, 5};

    (void)state;
    for (int i = 0; i < 3; i++) {
        qsort(numbers, 5, sizeof numbers[0], compare_in_qsort);
        numbers[0] = 9;
    }
    assert_true(compared > 10);
    assert_true(deepest > 5);
    assert_int_equal(left_to_unwinder, 0);
}

static APART void with_room(size_t n)
{
    char *room = alloca(n);

    memset(room, 1, n);
    __asm__ volatile("" : : "r"(room) : "memory");
    compare();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void where_the_frame_pointer_tells(void **state)
{
    (void)state;
    for (size_t n = 1; n < 5000; n += 997) {
        with_room(n);
    }
    assert_int_equal(compared, 6);
    assert_true(by_frame_pointer >= 6);
    assert_int_equal(left_to_unwinder, 0);
}

static APART void realigned(void)
{
    _Alignas(64) char room[64];

    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    compare();
    with_room(100);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void where_the_stack_is_realigned(void **state)
{
    (void)state;
    realigned();
    assert_int_equal(compared, 2);
}

static APART int recurse(int n)
{
    if (n == 0) {
        compare();
        return 1;
    }
    return recurse(n - 1) + 1;
}

static void deeper_than_there_is_room(void **state)
{
    (void)state;
    assert_int_equal(recurse(200), 201);
    assert_int_equal(deepest, MOST);
}

static void on_signal(int number)
{
    (void)number;
    compare();
}

/* The frame of a signal is none that has been called. */
static void in_a_signal_handler(void **state)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_int_equal(compared, 1);
    assert_true(left_to_unwinder > 0);
}

static void *in_thread(void *arg)
{
    recurse(3);
    return arg;
}

static void to_the_beginning_of_a_thread(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(compared, 1);
    assert_int_equal(left_to_unwinder, 0);
}

/* What was kept is thrown away, and worked out again. */
static void after_code_was_unloaded(void **state)
{
    (void)state;
    recurse(5);
    leat_walk_forget();
    recurse(5);
    assert_int_equal(compared, 2);
}

static void some_are_passed_over(void **state)
{
    uintptr_t all[MOST], rest[MOST];
    uint32_t depth = leat_walk(all, MOST, 0);

    (void)state;
    assert_int_equal(leat_walk(rest, MOST, 2), depth - 2);
    assert_memory_equal(rest, all + 2, (depth - 2) * sizeof all[0]);
    assert_int_equal(leat_walk_slowly(rest, MOST, 2), depth - 2);
    assert_memory_equal(rest, all + 2, (depth - 2) * sizeof all[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(through_the_c_library, begin),
        cmocka_unit_test_setup(where_the_frame_pointer_tells, begin),
        cmocka_unit_test_setup(where_the_stack_is_realigned, begin),
        cmocka_unit_test_setup(deeper_than_there_is_room, begin),
        cmocka_unit_test_setup(in_a_signal_handler, begin),
        cmocka_unit_test_setup(to_the_beginning_of_a_thread, begin),
        cmocka_unit_test_setup(after_code_was_unloaded, begin),
        cmocka_unit_test_setup(some_are_passed_over, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
