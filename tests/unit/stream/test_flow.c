/* test_flow.c: credit in both directions, RFC 9000 §4.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream_rig.h"

static void more_than_the_limit_is_refused_and_not_counted(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, 1000, 0);
    assert_true(leat_flow_in_receive(&flow, 999));
    assert_false(leat_flow_in_receive(&flow, 2));
    assert_int_equal(flow.received, 999);
    assert_true(leat_flow_in_receive(&flow, 1));
    assert_false(leat_flow_in_receive(&flow, UINT64_MAX));
    leat_flow_in_check(&flow);
}

static void an_update_waits_until_half_of_the_window_is_consumed(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, 1000, 0);
    assert_true(leat_flow_in_receive(&flow, 1000));
    leat_flow_in_consume(&flow, 499);
    assert_false(leat_flow_in_wants_update(&flow));
    leat_flow_in_consume(&flow, 1);
    assert_true(leat_flow_in_wants_update(&flow));
    assert_int_equal(leat_flow_in_update(&flow, 1, 0, UINT64_MAX), 1500);
    assert_false(leat_flow_in_wants_update(&flow));
}

static void a_window_of_nothing_never_wants_an_update(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, 0, 0);
    assert_false(leat_flow_in_wants_update(&flow));
    assert_false(leat_flow_in_receive(&flow, 1));
}

static void the_limit_never_passes_the_largest_offset(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, UINT64_MAX, UINT64_MAX);
    assert_int_equal(flow.limit, LEAT_STREAM_OFFSET_MAX);
    assert_true(leat_flow_in_receive(&flow, LEAT_STREAM_OFFSET_MAX));
    leat_flow_in_consume(&flow, LEAT_STREAM_OFFSET_MAX);
    assert_false(leat_flow_in_wants_update(&flow));
    assert_int_equal(leat_flow_in_update(&flow, 1, 1, UINT64_MAX), LEAT_STREAM_OFFSET_MAX);
    leat_flow_in_check(&flow);
}

/* Half a window taken within two round trips: the window was the bottleneck. */
static void a_window_used_up_fast_doubles_within_its_bound_and_the_room(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, 1000, 3000);
    assert_true(leat_flow_in_receive(&flow, 500));
    leat_flow_in_consume(&flow, 500);
    assert_int_equal(leat_flow_in_update(&flow, 1000, 10, UINT64_MAX),
                     1500); /* the first: no rate yet */
    assert_true(leat_flow_in_receive(&flow, 500));
    leat_flow_in_consume(&flow, 500);
    assert_int_equal(leat_flow_in_update(&flow, 1019, 10, UINT64_MAX), 3000); /* 19 < 2 * 10 */
    assert_int_equal(flow.window, 2000);
    assert_true(leat_flow_in_receive(&flow, 1000));
    leat_flow_in_consume(&flow, 1000);
    assert_int_equal(leat_flow_in_update(&flow, 1039, 10, UINT64_MAX), 4000); /* 20: slow enough */
    assert_true(leat_flow_in_receive(&flow, 1000));
    leat_flow_in_consume(&flow, 1000);
    assert_int_equal(leat_flow_in_update(&flow, 1040, 10, 100),
                     3000 + 2100); /* only room for 100 */
    assert_true(leat_flow_in_receive(&flow, 2000));
    leat_flow_in_consume(&flow, 2000);
    assert_int_equal(leat_flow_in_update(&flow, 1041, 10, UINT64_MAX), 5000 + 3000); /* the bound */
    leat_flow_in_check(&flow);
}

static void a_fixed_window_does_not_grow(void **state)
{
    leat_flow_in flow;

    (void)state;
    leat_flow_in_init(&flow, 1000, 0);
    leat_flow_in_update(&flow, 1, 10, UINT64_MAX);
    leat_flow_in_update(&flow, 2, 10, UINT64_MAX);
    assert_int_equal(flow.window, 1000);
    leat_flow_in_grow(&flow, 5000);
    assert_int_equal(flow.window, 1000);
}

static void the_peers_limit_only_rises(void **state)
{
    leat_flow_out flow;

    (void)state;
    leat_flow_out_init(&flow, 100);
    assert_false(leat_flow_out_raise(&flow, 99));
    assert_false(leat_flow_out_raise(&flow, 100));
    assert_int_equal(leat_flow_out_left(&flow), 100);
    assert_true(leat_flow_out_raise(&flow, 101));
    leat_flow_out_use(&flow, 101);
    assert_int_equal(leat_flow_out_left(&flow), 0);
}

static void blocked_is_reported_once_a_limit_unless_the_report_is_lost(void **state)
{
    leat_flow_out flow;

    (void)state;
    leat_flow_out_init(&flow, 0);
    assert_true(leat_flow_out_wants_report(&flow));
    leat_flow_out_report_sent(&flow);
    assert_false(leat_flow_out_wants_report(&flow));
    leat_flow_out_report_lost(&flow, 0);
    assert_true(leat_flow_out_wants_report(&flow));
    leat_flow_out_report_sent(&flow);
    leat_flow_out_raise(&flow, 10);
    assert_false(leat_flow_out_wants_report(&flow)); /* there is credit */
    leat_flow_out_use(&flow, 10);
    assert_true(leat_flow_out_wants_report(&flow));
    leat_flow_out_report_sent(&flow);
    leat_flow_out_report_lost(&flow, 0); /* the report of a limit long gone */
    assert_false(leat_flow_out_wants_report(&flow));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_the_limit_is_refused_and_not_counted),
        cmocka_unit_test(an_update_waits_until_half_of_the_window_is_consumed),
        cmocka_unit_test(a_window_of_nothing_never_wants_an_update),
        cmocka_unit_test(the_limit_never_passes_the_largest_offset),
        cmocka_unit_test(a_window_used_up_fast_doubles_within_its_bound_and_the_room),
        cmocka_unit_test(a_fixed_window_does_not_grow),
        cmocka_unit_test(the_peers_limit_only_rises),
        cmocka_unit_test(blocked_is_reported_once_a_limit_unless_the_report_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
