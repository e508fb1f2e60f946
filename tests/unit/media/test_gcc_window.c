/* media/gcc_window.c: how fast packets leave, and how many may be in flight. */
#include "media_test.h"

#include "base/time.h"
#include "media/gcc.h"

static const double TARGET = 1e6; /* 125 bytes a millisecond */

/* Sends packets of 125 bytes at the pacing rate for so long; gives the bits sent. */
static double send_for(leat_gcc_bucket *b, leat_time *now, leat_time time)
{
    leat_time end = *now + time;
    double bits = 0;

    while (*now < end) {
        leat_gcc_bucket_take(b, *now, 125, TARGET);
        bits += 1000;
        *now += (leat_time)(1000 / leat_gcc_bucket_pacing(b, TARGET) * 1e9);
    }
    return bits;
}

static void a_frame_leaves_half_as_fast_again(void **state)
{
    leat_gcc_bucket b = {.bits = 0};
    leat_time now = LEAT_SECOND;

    (void)state;
    for (unsigned frame = 0; frame < 100; frame++) { /* each 33 ms of the target */
        double bits = send_for(&b, &now, 22 * MS);

        assert_in_range((uint64_t)bits, 32000, 34000);
        assert_false(b.full);
        now += 11 * MS;
    }
}

static void who_always_has_more_to_send_gets_little_more_than_the_target(void **state)
{
    leat_gcc_bucket b = {.bits = 0};
    leat_time now = LEAT_SECOND;
    double bits = send_for(&b, &now, LEAT_SECOND);

    (void)state;
    assert_in_range((uint64_t)bits, 1100000, 1160000); /* the bucket once */
    assert_true(b.full);
    for (unsigned second = 0; second < 10; second++) {
        bits = send_for(&b, &now, LEAT_SECOND);
        assert_in_range((uint64_t)bits, 1090000, 1110000);
    }
    /* A decrease to 0.85 of what arrives has to leave room for the queue to drain. */
    assert_true(0.85 * bits < 0.95 * TARGET);
}

static void a_pause_empties_the_bucket(void **state)
{
    leat_gcc_bucket b = {.bits = 0};
    leat_time now = LEAT_SECOND;

    (void)state;
    send_for(&b, &now, LEAT_SECOND);
    assert_true(b.full);
    assert_false(leat_gcc_bucket_take(&b, now, 125, TARGET));
    assert_true(leat_gcc_bucket_take(&b, now + 30 * MS, 125, TARGET)); /* half of it is gone */
    assert_false(b.full);
    leat_gcc_bucket_take(&b, now + LEAT_SECOND, 125, TARGET);
    assert_int_equal(b.bits, 1000);
}

static void a_clock_that_steps_back_drains_nothing(void **state)
{
    leat_gcc_bucket b = {.bits = 0};

    (void)state;
    leat_gcc_bucket_take(&b, 10 * LEAT_SECOND, 125, TARGET);
    leat_gcc_bucket_take(&b, 9 * LEAT_SECOND, 125, TARGET);
    assert_int_equal(b.bits, 2000);
    assert_int_equal(b.at, 10 * LEAT_SECOND);
}

static uint64_t window_ms(const leat_gcc_round *r)
{
    return (uint64_t)(leat_gcc_round_window(r, TARGET) / 125 + 0.5);
}

static void the_window_does_not_grow_with_the_queue(void **state)
{
    leat_gcc_round r = {.turned = 0};
    leat_time now = LEAT_SECOND;

    (void)state;
    assert_int_equal(window_ms(&r), 500 + 50 + 100); /* nothing is known yet */
    leat_gcc_round_take(&r, now, 40 * MS, 25 * MS);
    assert_int_equal(window_ms(&r), 40 + 50 + 100);
    for (unsigned i = 0; i < 200; i++) { /* ten seconds of a queue */
        now += 50 * MS;
        leat_gcc_round_take(&r, now, 500 * MS, 50 * MS);
    }
    assert_int_equal(window_ms(&r), 40 + 50 + 100);
}

/* A path that became longer, or another flow's queue that stays, is believed after 20 s. */
static void a_longer_way_is_believed_in_the_end(void **state)
{
    leat_gcc_round r = {.turned = 0};
    leat_time now = LEAT_SECOND, from;

    (void)state;
    leat_gcc_round_take(&r, now, 40 * MS, 50 * MS);
    from = now;
    while (window_ms(&r) < 350) {
        now += 50 * MS;
        leat_gcc_round_take(&r, now, 200 * MS, 50 * MS);
        assert_true(now - from <= 20 * LEAT_SECOND);
    }
    assert_true(now - from >= 10 * LEAT_SECOND);
    leat_gcc_round_take(&r, now, 30 * MS, 50 * MS); /* a shorter one at once */
    assert_int_equal(window_ms(&r), 30 + 50 + 100);
}

static void rare_feedback_widens_the_window_within_bounds(void **state)
{
    leat_gcc_round r = {.turned = 0};
    leat_time now = LEAT_SECOND;

    (void)state;
    leat_gcc_round_take(&r, now, 40 * MS, 200 * MS);
    assert_int_equal(window_ms(&r), 40 + 200 + 100);
    leat_gcc_round_take(&r, now, 40 * MS, 3 * LEAT_SECOND); /* a pause is no interval */
    assert_int_equal(window_ms(&r), 40 + 250 + 100);
    for (unsigned i = 0; i < 100; i++) {
        leat_gcc_round_take(&r, now, 40 * MS, 50 * MS);
    }
    assert_in_range(window_ms(&r), 40 + 50 + 100, 40 + 51 + 100);
    leat_gcc_round_take(&r, now, 0, 50 * MS); /* nothing came: no round trip */
    assert_in_range(window_ms(&r), 40 + 50 + 100, 40 + 51 + 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_leaves_half_as_fast_again),
        cmocka_unit_test(who_always_has_more_to_send_gets_little_more_than_the_target),
        cmocka_unit_test(a_pause_empties_the_bucket),
        cmocka_unit_test(a_clock_that_steps_back_drains_nothing),
        cmocka_unit_test(the_window_does_not_grow_with_the_queue),
        cmocka_unit_test(a_longer_way_is_believed_in_the_end),
        cmocka_unit_test(rare_feedback_widens_the_window_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
