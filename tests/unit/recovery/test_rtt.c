/* recovery/rtt.h: RFC 9002 §5 and the PTO of §6.2.1, on numbers worked out by hand.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery_fixture.h"

#include "recovery/rtt.h"

static void before_a_sample_the_initial_rtt_stands_in(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    assert_false(leat_rtt_has_sample(&rtt));
    assert_int_equal(rtt.smoothed, 333 * MS);
    assert_int_equal(rtt.var, 166500000);
    /* 333 + 4 * 166.5: the second that §6.2.2 promises, near enough */
    assert_int_equal(leat_rtt_pto(&rtt), 999 * MS);
    leat_rtt_init(&rtt, 100 * MS);
    assert_int_equal(leat_rtt_pto(&rtt), 300 * MS);
}

static void the_first_sample_sets_everything(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 100 * MS, 60 * MS, 7 * MS);
    assert_true(leat_rtt_has_sample(&rtt));
    assert_int_equal(rtt.first_sample_at, 7 * MS);
    assert_int_equal(rtt.latest, 100 * MS);
    assert_int_equal(rtt.min, 100 * MS);
    assert_int_equal(rtt.smoothed, 100 * MS); /* of the first, it is taken off what is long */
    assert_int_equal(rtt.var, 50 * MS);
    assert_int_equal(leat_rtt_pto(&rtt), 300 * MS);
}

/* The only ACK that came through is one that a probe of the peer's brought again. */
static void a_long_first_sample_that_is_mostly_delay_is_none(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 8000 * MS, 4001 * MS, 0);
    assert_false(leat_rtt_has_sample(&rtt));
    assert_int_equal(leat_rtt_pto(&rtt), 999 * MS);
    leat_rtt_sample(&rtt, 8000 * MS, UINT64_MAX, 0);
    assert_false(leat_rtt_has_sample(&rtt));
    /* the true one is found soon */
    leat_rtt_sample(&rtt, 2 * MS, 0, 0);
    assert_int_equal(rtt.min, 2 * MS);
    assert_int_equal(rtt.smoothed, 2 * MS);
}

/* s5.3: nothing is taken off a first sample, for the result would lie below min_rtt. */
static void a_first_sample_is_taken_whole(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 8000 * MS, 4000 * MS, 0);
    assert_int_equal(rtt.latest, 8000 * MS);
    assert_int_equal(rtt.min, 8000 * MS);
    assert_int_equal(rtt.smoothed, 8000 * MS);
    assert_int_equal(rtt.var, 4000 * MS);
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 333 * MS, 300 * MS, 0);
    assert_int_equal(rtt.smoothed, 333 * MS);
}

static void later_samples_are_weighted(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 100 * MS, 0, 0);
    leat_rtt_sample(&rtt, 120 * MS, 10 * MS, 0);
    /* adjusted 110: var = 3/4 * 50 + 1/4 * 10 = 40, smoothed = 7/8 * 100 + 1/8 * 110 = 101.25 */
    assert_int_equal(rtt.latest, 120 * MS);
    assert_int_equal(rtt.min, 100 * MS);
    assert_int_equal(rtt.var, 40 * MS);
    assert_int_equal(rtt.smoothed, 101250000);
    /* a shorter one: adjusted 80, var = 30 + 21.25 / 4, smoothed = 88.59375 + 10 */
    leat_rtt_sample(&rtt, 80 * MS, 0, 0);
    assert_int_equal(rtt.min, 80 * MS);
    assert_int_equal(rtt.var, 35312500);
    assert_int_equal(rtt.smoothed, 98593750);
}

static void an_adjusted_sample_is_never_below_min(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 100 * MS, 0, 0);
    /* 104 - 10 would be below 100: the delay is not believed, adjusted is 104 */
    leat_rtt_sample(&rtt, 104 * MS, 10 * MS, 0);
    assert_int_equal(rtt.smoothed, 100500000);
    /* 110 - 10 is exactly min: believed */
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 100 * MS, 0, 0);
    leat_rtt_sample(&rtt, 110 * MS, 10 * MS, 0);
    assert_int_equal(rtt.smoothed, 100 * MS);
    /* an absurd delay wraps nothing */
    leat_rtt_sample(&rtt, 100 * MS, UINT64_MAX, 0);
    assert_int_equal(rtt.smoothed, 100 * MS);
}

static void the_ack_delay_is_capped_once_confirmed(void **state)
{
    (void)state;
    assert_int_equal(leat_rtt_ack_delay(40 * MS, 25 * MS, false), 40 * MS);
    assert_int_equal(leat_rtt_ack_delay(40 * MS, 25 * MS, true), 25 * MS);
    assert_int_equal(leat_rtt_ack_delay(9 * MS, 25 * MS, true), 9 * MS);
}

static void the_loss_delay_uses_the_larger_of_smoothed_and_latest(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 80 * MS, 0, 0);
    assert_int_equal(leat_rtt_loss_delay(&rtt), 90 * MS);
    leat_rtt_sample(&rtt, 160 * MS, 0, 0); /* latest 160, smoothed 90 */
    assert_int_equal(leat_rtt_loss_delay(&rtt), 180 * MS);
    leat_rtt_sample(&rtt, 8 * MS, 0, 0); /* latest 8, smoothed 79.75 */
    assert_int_equal(rtt.smoothed, 79750000);
    assert_int_equal(leat_rtt_loss_delay(&rtt), 79750000 + 79750000 / 8);
}

static void tiny_and_huge_samples_keep_their_bounds(void **state)
{
    leat_rtt rtt;

    (void)state;
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 0, 0, 0); /* two readings of a coarse clock */
    assert_int_equal(rtt.latest, 1);
    assert_int_equal(rtt.min, 1);
    assert_int_equal(leat_rtt_loss_delay(&rtt), MS);
    assert_int_equal(leat_rtt_pto(&rtt), 1 + MS);
    for (int i = 0; i < 100; i++) {
        leat_rtt_sample(&rtt, UINT64_MAX / 2, 0, 0);
    }
    assert_true(rtt.smoothed <= UINT64_MAX / 2);
    assert_true(leat_rtt_pto(&rtt) >= rtt.smoothed);
    assert_true(leat_rtt_loss_delay(&rtt) >= rtt.latest);
    leat_rtt_sample(&rtt, UINT64_MAX, 0, 0);
    assert_int_equal(leat_rtt_loss_delay(&rtt), LEAT_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_a_sample_the_initial_rtt_stands_in),
        cmocka_unit_test(the_first_sample_sets_everything),
        cmocka_unit_test(a_long_first_sample_that_is_mostly_delay_is_none),
        cmocka_unit_test(a_first_sample_is_taken_whole),
        cmocka_unit_test(later_samples_are_weighted),
        cmocka_unit_test(an_adjusted_sample_is_never_below_min),
        cmocka_unit_test(the_ack_delay_is_capped_once_confirmed),
        cmocka_unit_test(the_loss_delay_uses_the_larger_of_smoothed_and_latest),
        cmocka_unit_test(tiny_and_huge_samples_keep_their_bounds),
    };

    return cmocka_run_group_tests_name("recovery.rtt", tests, NULL, NULL);
}
