/* Ranges: merging, splitting, caps, and a bitmap that knows better.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/ranges.h"

static leat_mem *mem;

static int make_mem(void **state)
{
    (void)state;
    mem = new_mem(4096, 0);
    return 0;
}

/* Every test gives all its memory back. */
static int end_mem(void **state)
{
    (void)state;
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
    return 0;
}

static void expect(const leat_ranges *r, const leat_range *ranges, uint32_t n)
{
    leat_ranges_check(r);
    assert_int_equal(leat_ranges_count(r), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(leat_ranges_at(r, i).from, ranges[i].from);
        assert_int_equal(leat_ranges_at(r, i).to, ranges[i].to);
    }
}

#define EXPECT(r, ...)                                                                             \
    expect(r, (const leat_range[])__VA_ARGS__,                                                     \
           sizeof((const leat_range[])__VA_ARGS__) / sizeof(leat_range))

static void add(leat_ranges *r, uint64_t from, uint64_t to)
{
    assert_int_equal(leat_ranges_add(r, from, to), LEAT_OK);
}

static void ranges_that_overlap_or_touch_become_one(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 100);
    add(&r, 10, 20);
    add(&r, 30, 40);
    EXPECT(&r, {{10, 20}, {30, 40}});
    add(&r, 20, 25);
    EXPECT(&r, {{10, 25}, {30, 40}});
    add(&r, 28, 30);
    EXPECT(&r, {{10, 25}, {28, 40}});
    add(&r, 24, 29);
    EXPECT(&r, {{10, 40}});
    add(&r, 50, 51);
    add(&r, 60, 61);
    add(&r, 0, 1);
    EXPECT(&r, {{0, 1}, {10, 40}, {50, 51}, {60, 61}});
    add(&r, 1, 60);
    EXPECT(&r, {{0, 61}});
    add(&r, 5, 7);
    add(&r, 9, 9);
    EXPECT(&r, {{0, 61}});
    leat_ranges_free(&r);
}

static void adding_in_order_extends_the_last(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        add(&r, i, i + 1);
    }
    EXPECT(&r, {{0, 1000}});
    assert_int_equal(leat_ranges_held(&r), 0);
    leat_ranges_free(&r);
}

static void two_ranges_take_no_memory(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 100);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    add(&r, 1, 2);
    add(&r, 3, 4);
    assert_int_equal(leat_ranges_add(&r, 5, 6), LEAT_ERR_NOMEM);
    EXPECT(&r, {{1, 2}, {3, 4}});
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    add(&r, 5, 6);
    EXPECT(&r, {{1, 2}, {3, 4}, {5, 6}});
    assert_true(leat_ranges_held(&r) > 0);
    leat_ranges_free(&r);
    expect(&r, NULL, 0);
    assert_int_equal(leat_ranges_held(&r), 0);
}

static void the_structure_may_be_moved(void **state)
{
    leat_ranges a;
    leat_ranges b;

    (void)state;
    leat_ranges_init(&a, mem, 10);
    add(&a, 1, 2);
    b = a;
    memset(&a, 0xff, sizeof a);
    EXPECT(&b, {{1, 2}});
    leat_ranges_free(&b);
}

static void past_the_cap_an_add_is_refused_and_changes_nothing(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 3);
    add(&r, 10, 11);
    add(&r, 20, 21);
    add(&r, 30, 31);
    assert_int_equal(leat_ranges_add(&r, 0, 1), LEAT_ERR_LIMIT);
    assert_int_equal(leat_ranges_add(&r, 40, 41), LEAT_ERR_LIMIT);
    assert_int_equal(leat_ranges_remove(&r, 10, 10), LEAT_OK);
    EXPECT(&r, {{10, 11}, {20, 21}, {30, 31}});
    add(&r, 11, 12);
    add(&r, 25, 30);
    EXPECT(&r, {{10, 12}, {20, 21}, {25, 31}});
    assert_int_equal(leat_ranges_remove(&r, 27, 28), LEAT_ERR_LIMIT);
    EXPECT(&r, {{10, 12}, {20, 21}, {25, 31}});
    leat_ranges_free(&r);
}

static void dropping_makes_room_at_the_bottom(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 3);
    assert_false(leat_ranges_add_dropping(&r, 10, 11));
    assert_false(leat_ranges_add_dropping(&r, 20, 21));
    assert_false(leat_ranges_add_dropping(&r, 30, 31));
    assert_true(leat_ranges_add_dropping(&r, 40, 41));
    EXPECT(&r, {{20, 21}, {30, 31}, {40, 41}});
    assert_true(leat_ranges_add_dropping(&r, 0, 1));
    EXPECT(&r, {{20, 21}, {30, 31}, {40, 41}});
    assert_true(leat_ranges_add_dropping(&r, 25, 26));
    EXPECT(&r, {{25, 26}, {30, 31}, {40, 41}});
    assert_false(leat_ranges_add_dropping(&r, 26, 30));
    EXPECT(&r, {{25, 31}, {40, 41}});
    leat_ranges_free(&r);
}

static void dropping_works_with_one_range_and_without_memory(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 1);
    assert_false(leat_ranges_add_dropping(&r, 10, 11));
    assert_true(leat_ranges_add_dropping(&r, 20, 21));
    EXPECT(&r, {{20, 21}});
    leat_ranges_free(&r);
    leat_ranges_init(&r, mem, 100);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_false(leat_ranges_add_dropping(&r, 10, 11));
    assert_false(leat_ranges_add_dropping(&r, 20, 21));
    assert_true(leat_ranges_add_dropping(&r, 30, 31));
    EXPECT(&r, {{20, 21}, {30, 31}});
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    leat_ranges_free(&r);
}

static void removal_cuts_splits_and_swallows(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 10);
    add(&r, 0, 100);
    assert_int_equal(leat_ranges_remove(&r, 40, 50), LEAT_OK);
    EXPECT(&r, {{0, 40}, {50, 100}});
    assert_int_equal(leat_ranges_remove(&r, 30, 60), LEAT_OK);
    EXPECT(&r, {{0, 30}, {60, 100}});
    assert_int_equal(leat_ranges_remove(&r, 30, 60), LEAT_OK);
    assert_int_equal(leat_ranges_remove(&r, 70, 80), LEAT_OK);
    EXPECT(&r, {{0, 30}, {60, 70}, {80, 100}});
    leat_ranges_remove_below(&r, 65);
    EXPECT(&r, {{65, 70}, {80, 100}});
    leat_ranges_remove_below(&r, 80);
    EXPECT(&r, {{80, 100}});
    leat_ranges_remove_below(&r, 0);
    EXPECT(&r, {{80, 100}});
    assert_int_equal(leat_ranges_remove(&r, 0, UINT64_MAX), LEAT_OK);
    expect(&r, NULL, 0);
    leat_ranges_free(&r);
}

static void the_largest_numbers_work(void **state)
{
    leat_ranges r;

    (void)state;
    leat_ranges_init(&r, mem, 10);
    add(&r, UINT64_MAX - 1, UINT64_MAX);
    assert_true(leat_ranges_contains(&r, UINT64_MAX - 1));
    assert_false(leat_ranges_contains(&r, UINT64_MAX));
    assert_int_equal(leat_ranges_find(&r, UINT64_MAX), 1);
    add(&r, 0, UINT64_MAX);
    assert_int_equal(leat_ranges_count(&r), 1);
    assert_true(leat_ranges_first(&r).to == UINT64_MAX);
    leat_ranges_remove_below(&r, UINT64_MAX);
    expect(&r, NULL, 0);
    leat_ranges_free(&r);
}

#define UNIVERSE 300u

static void ask_everything(const leat_ranges *r, const bool *in)
{
    uint32_t runs = 0;

    leat_ranges_check(r);
    for (unsigned v = 0; v < UNIVERSE; v++) {
        unsigned missing = v;

        while (missing < UNIVERSE && in[missing]) {
            missing++;
        }
        assert_int_equal(leat_ranges_contains(r, v), in[v]);
        assert_int_equal(leat_ranges_next_missing(r, v), missing);
        runs += in[v] && (v == 0 || !in[v - 1]);
    }
    assert_int_equal(leat_ranges_count(r), runs);
}

static void they_agree_with_a_bitmap_whatever_is_done(void **state)
{
    static bool in[UNIVERSE];
    leat_prng prng = test_prng("ranges");
    leat_ranges r;

    (void)state;
    memset(in, 0, sizeof in);
    leat_ranges_init(&r, mem, 1000);
    for (unsigned step = 0; step < 2000; step++) {
        uint64_t from = leat_prng_below(&prng, UNIVERSE);
        uint64_t to = from + leat_prng_below(&prng, leat_prng_chance(&prng, 1, 10) ? 200 : 9);
        bool adding = leat_prng_chance(&prng, 1, 2);

        to = to < UNIVERSE ? to : UNIVERSE;
        if (leat_prng_chance(&prng, 1, 50)) {
            leat_ranges_remove_below(&r, to);
            from = 0;
            adding = false;
        } else if (adding) {
            add(&r, from, to);
        } else {
            assert_int_equal(leat_ranges_remove(&r, from, to), LEAT_OK);
        }
        for (uint64_t v = from; v < to; v++) {
            in[v] = adding;
        }
        ask_everything(&r, in);
    }
    leat_ranges_free(&r);
}

/* With a cap: adds that fail change nothing, drops take the lowest. */
static void capped_they_agree_too(void **state)
{
    static bool in[UNIVERSE];
    leat_prng prng = test_prng("ranges, capped");
    leat_ranges r;

    (void)state;
    memset(in, 0, sizeof in);
    leat_ranges_init(&r, mem, 6);
    for (unsigned step = 0; step < 2000; step++) {
        uint64_t from = leat_prng_below(&prng, UNIVERSE - 8);
        uint64_t to = from + leat_prng_between(&prng, 1, 8);

        if (leat_prng_chance(&prng, 1, 3)) {
            if (leat_ranges_remove(&r, from, to) == LEAT_OK) {
                memset(in + from, false, (size_t)(to - from));
            } else {
                assert_int_equal(leat_ranges_count(&r), 6);
            }
        } else if (leat_prng_chance(&prng, 1, 2)) {
            if (leat_ranges_add(&r, from, to) == LEAT_OK) {
                memset(in + from, true, (size_t)(to - from));
            } else {
                assert_int_equal(leat_ranges_count(&r), 6);
            }
        } else {
            bool full = leat_ranges_count(&r) == 6;
            uint64_t lowest = full ? leat_ranges_first(&r).from : 0;
            uint64_t end = full ? leat_ranges_first(&r).to : 0;
            bool dropped = leat_ranges_add_dropping(&r, from, to);

            assert_true(full || !dropped);
            if (dropped && from > lowest) {
                memset(in + lowest, false, (size_t)(end - lowest));
            }
            if (!dropped || from > lowest) {
                memset(in + from, true, (size_t)(to - from));
            }
        }
        ask_everything(&r, in);
    }
    leat_ranges_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranges_that_overlap_or_touch_become_one, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(adding_in_order_extends_the_last, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(two_ranges_take_no_memory, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(the_structure_may_be_moved, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(past_the_cap_an_add_is_refused_and_changes_nothing,
                                        make_mem, end_mem),
        cmocka_unit_test_setup_teardown(dropping_makes_room_at_the_bottom, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(dropping_works_with_one_range_and_without_memory, make_mem,
                                        end_mem),
        cmocka_unit_test_setup_teardown(removal_cuts_splits_and_swallows, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(the_largest_numbers_work, make_mem, end_mem),
        cmocka_unit_test_setup_teardown(they_agree_with_a_bitmap_whatever_is_done, make_mem,
                                        end_mem),
        cmocka_unit_test_setup_teardown(capped_they_agree_too, make_mem, end_mem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
