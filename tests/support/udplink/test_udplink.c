/* The bad link's faults hit as often, as long and as late as they say, and the same seed hits the
 * same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "udplink.h"

enum { DRAWS = 100000 };

static link_direction direction;

static void start(link_faults faults)
{
    assert_true(link_direction_init(&direction, &faults, 7));
}

static int stop(void **state)
{
    (void)state;
    free(direction.departure);
    return 0;
}

static void test_loss_is_as_often_as_said_and_repeats_from_its_seed(void **state)
{
    static uint8_t lost[DRAWS];
    unsigned count = 0;

    (void)state;
    start((link_faults){.loss = 30});
    for (int i = 0; i < DRAWS; i++) {
        lost[i] = link_decide(&direction, 5, 100, 0).copies == 0;
        count += lost[i];
    }
    assert_in_range(count, DRAWS * 29 / 100, DRAWS * 31 / 100);
    assert_int_equal(direction.counts.lost, count);
    free(direction.departure);
    start((link_faults){.loss = 30});
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(lost[i], link_decide(&direction, 5, 100, 0).copies == 0);
    }
}

static void test_no_more_are_lost_in_a_row_than_burst_says(void **state)
{
    unsigned row = 0, longest = 0;

    (void)state;
    start((link_faults){.loss = 60, .burst = 3});
    for (int i = 0; i < DRAWS; i++) {
        row = link_decide(&direction, 5, 100, 0).copies ? 0 : row + 1;
        longest = row > longest ? row : longest;
    }
    assert_int_equal(longest, 3);
}

static void test_corruption_changes_a_byte_that_is_there(void **state)
{
    unsigned count = 0;

    (void)state;
    start((link_faults){.corrupt = 50});
    for (int i = 0; i < DRAWS; i++) {
        link_fate fate = link_decide(&direction, 5, 1 + (size_t)i % 3, 0);

        assert_int_equal(fate.copies, 1);
        assert_true(fate.corrupt_at < 1 + (size_t)i % 3);
        assert_int_not_equal(fate.corrupt_with, 0);
        count += fate.corrupt;
    }
    assert_in_range(count, DRAWS * 49 / 100, DRAWS * 51 / 100);
    assert_false(link_decide(&direction, 5, 0, 0).corrupt);
}

static void test_only_ect_becomes_ce(void **state)
{
    (void)state;
    start((link_faults){.ce = 100});
    assert_false(link_decide(&direction, 5, 100, 0).mark);
    assert_true(link_decide(&direction, 5, 100, 1).mark);
    assert_true(link_decide(&direction, 5, 100, 2).mark);
    assert_false(link_decide(&direction, 5, 100, 3).mark);
}

static void test_datagrams_are_lost_by_number(void **state)
{
    (void)state;
    start((link_faults){.first_lost = 2, .last_lost = 7});
    for (int number = 1; number <= 10; number++) {
        assert_int_equal(link_decide(&direction, 5, 100, 0).copies, number < 2 || number > 7);
    }
}

static void test_darkness_comes_and_goes_in_turns(void **state)
{
    (void)state;
    start((link_faults){.dark_after = 5000, .dark_for = 2000});
    for (leat_time ms = 0; ms < 20000; ms += 100) {
        leat_time now = 77 * LEAT_SECOND + ms * LEAT_MILLISECOND;

        assert_int_equal(link_decide(&direction, now, 100, 0).copies, ms % 7000 < 5000);
    }
}

static void test_rate_delay_and_queue(void **state)
{
    leat_time now = 3 * LEAT_SECOND;

    (void)state;
    /* 1,000 bytes at 8,000 kbit/s take a millisecond. */
    start((link_faults){.rate = 8000, .queue = 4, .delay = 20});
    for (leat_time i = 1; i <= 4; i++) {
        link_fate fate = link_decide(&direction, now, 1000, 0);

        assert_int_equal(fate.copies, 1);
        assert_int_equal(fate.at[0], now + (20 + i) * LEAT_MILLISECOND);
    }
    assert_int_equal(link_decide(&direction, now, 1000, 0).copies, 0);
    assert_int_equal(direction.counts.full, 1);
    /* One has left, so one fits; it waits for the three before it. */
    now += LEAT_MILLISECOND;
    assert_int_equal(link_decide(&direction, now, 1000, 0).at[0], now + 24 * LEAT_MILLISECOND);
    assert_int_equal(link_decide(&direction, now, 1000, 0).copies, 0);
    now += LEAT_SECOND;
    assert_int_equal(link_decide(&direction, now, 1000, 0).at[0], now + 21 * LEAT_MILLISECOND);
}

static void test_duplicates_and_late_ones(void **state)
{
    link_fate fate;

    (void)state;
    start((link_faults){.duplicate = 100, .reorder = 100, .reorder_by = 30, .delay = 5});
    fate = link_decide(&direction, 0, 100, 0);
    assert_int_equal(fate.copies, 2);
    assert_int_equal(fate.at[0], 35 * LEAT_MILLISECOND);
    assert_int_equal(fate.at[1], 5 * LEAT_MILLISECOND);
}

static void test_datagrams_come_out_by_time_then_order(void **state)
{
    link_later later = {0};
    leat_time last = 0;
    uint64_t serial = 0;
    unsigned count = 0;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        link_datagram *d = link_later_take(&later);

        assert_non_null(d);
        d->at = 1 + i * 7919 % 101;
        assert_true(link_later_add(&later, d));
    }
    assert_null(link_later_due(&later, 0));
    assert_int_equal(link_later_next(&later), 1);
    for (leat_time now = 1; now <= 101; now++) {
        link_datagram *d;

        while ((d = link_later_due(&later, now)) != NULL) {
            assert_true(d->at <= now && d->at >= last);
            assert_true(d->at > last || d->serial > serial || count == 0);
            last = d->at;
            serial = d->serial;
            count++;
            link_later_give(&later, d);
        }
        assert_true(link_later_next(&later) > now);
    }
    assert_int_equal(count, 3000);
    link_later_free(&later);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_loss_is_as_often_as_said_and_repeats_from_its_seed),
        TEST(test_no_more_are_lost_in_a_row_than_burst_says),
        TEST(test_corruption_changes_a_byte_that_is_there),
        TEST(test_only_ect_becomes_ce),
        TEST(test_datagrams_are_lost_by_number),
        TEST(test_darkness_comes_and_goes_in_turns),
        TEST(test_rate_delay_and_queue),
        TEST(test_duplicates_and_late_ones),
        cmocka_unit_test(test_datagrams_come_out_by_time_then_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
