/* media/gcc_delay.c, gcc_rate.c: what an end that stands still does to delay and rates. */
#include "media_test.h"

#include "media/gcc.h"

enum { PACKET = 1250, EVERY = 10 }; /* 1 Mbit/s */

typedef struct path {
    leat_gcc_trend trend;
    leat_time at;
    uint64_t bytes;
} path;

/* A packet that came so long after the one before, sent so long after it. */
static void come(path *p, double sent_ms, double arrived_ms)
{
    leat_gcc_delta d = {.sent_ms = sent_ms, .arrived_ms = arrived_ms, .size = PACKET};

    p->at += (leat_time)(arrived_ms * 1e6);
    p->bytes += PACKET;
    d.arrived = p->at;
    d.bytes = p->bytes;
    leat_gcc_trend_take(&p->trend, &d);
}

static path calm_path(void)
{
    path p = {.at = LEAT_SECOND};

    for (unsigned i = 0; i < 60; i++) {
        come(&p, EVERY, EVERY);
    }
    return p;
}

static double rounded(double value)
{
    return (double)(int64_t)(value * 1000 + (value < 0 ? -0.5 : 0.5)) / 1000;
}

static void a_delay_of_one_group_is_hardly_believed(void **state)
{
    path p = calm_path();
    double most = 0;

    (void)state;
    come(&p, EVERY, EVERY + 250);
    assert_true(rounded(p.trend.accumulated) == 250);
    assert_true(rounded(p.trend.believed) == 15);
    come(&p, EVERY + 250, EVERY);
    assert_true(rounded(p.trend.accumulated) == 0 && rounded(p.trend.believed) == 0);
    for (unsigned i = 0; i < 20; i++) {
        double value = leat_gcc_trend_value(&p.trend);

        most = value > most ? value : most;
        come(&p, EVERY, EVERY);
    }
    assert_true(most < 6); /* the least threshold */
}

static void after_a_long_gap_it_is_no_more_either(void **state)
{
    path p = calm_path();

    (void)state;
    come(&p, 400, 650);
    assert_true(rounded(p.trend.believed) == 50);
    come(&p, EVERY, EVERY - 5); /* it gets less: it is no longer than before */
    assert_true(rounded(p.trend.believed) == 50);
}

static void a_delay_that_stays_is_believed_in_the_end(void **state)
{
    path p = calm_path();

    (void)state;
    come(&p, EVERY, EVERY + 100); /* another way */
    for (unsigned i = 0; i < 40; i++) {
        come(&p, EVERY, i % 2 ? EVERY + 1 : EVERY - 1);
    }
    assert_true(rounded(p.trend.accumulated) == 100);
    assert_true(p.trend.believed >= 99);
}

static void a_queue_that_grows_is_believed_at_once(void **state)
{
    path p = calm_path();

    (void)state;
    for (unsigned i = 1; i <= 20; i++) {
        come(&p, EVERY, 2 * EVERY); /* half of what is sent */
        assert_true(rounded(p.trend.believed) == i * EVERY);
    }
}

static void what_the_path_carried_is_told_while_a_queue_grows(void **state)
{
    path p = calm_path();
    double rate;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        come(&p, 5, EVERY); /* twice 1 Mbit/s is sent */
    }
    rate = leat_gcc_trend_carried(&p.trend);
    assert_true(rate > 0.9e6 && rate <= 1e6);
    /* It drains: what came lately, while it grew, is still known; that it drains says nothing. */
    for (unsigned i = 0; i < 10; i++) {
        come(&p, 2 * EVERY, EVERY);
    }
    rate = leat_gcc_trend_carried(&p.trend);
    assert_true(rate > 0.8e6 && rate <= 1e6);
}

/* 250 ms of packets come at once, as after a radio's pause: the path does not carry that. */
static void what_had_waited_is_not_what_the_path_carries(void **state)
{
    path p = calm_path();

    (void)state;
    come(&p, EVERY, 250);
    for (unsigned i = 0; i < 19; i++) {
        come(&p, EVERY, 1);
    }
    assert_true(leat_gcc_trend_carried(&p.trend) <= 1e6);
}

static void a_few_points_tell_no_rate(void **state)
{
    path p = {.at = LEAT_SECOND};

    (void)state;
    for (unsigned i = 1; i < LEAT_GCC_TREND_POINTS; i++) {
        come(&p, 5, EVERY);
        assert_true(leat_gcc_trend_carried(&p.trend) == 0);
    }
}

/* Acknowledgements that were read at once are told apart by their delays, and may seem to have come
 * in the wrong order: what is left out then is not lost for the sum. */
static void groups_out_of_order_leave_no_delay_behind(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;
    double sum = 0;
    static const unsigned sent[] = {0, 40, 80, 120, 160, 200, 240},
                          arrived[] = {100, 140, 210, 185, 260, 300, 340};

    (void)state;
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        if (leat_gcc_groups_take(&g, sent[i] * MS, arrived[i] * MS, &d)) {
            sum += d.arrived_ms - d.sent_ms;
        }
    }
    assert_true(rounded(sum) == 0); /* of the fifth, against the first: the same delay */
}

static void a_rate_below_what_arrives_waits_for_the_queue_to_drain(void **state)
{
    leat_gcc_control c;
    double rate;

    (void)state;
    leat_gcc_control_init(&c, 3e6);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, 1e6, 50 * MS);
    rate = c.rate;
    assert_true(rounded(rate) == 850000);
    for (unsigned ms = 1100; ms < 1500; ms += 100) { /* it drains: more comes than is sent */
        leat_gcc_control_take(&c, ms * MS, LEAT_USAGE_OVER, 1.2e6, 50 * MS);
        assert_true(c.rate == rate);
    }
    for (unsigned ms = 1500; ms < 4500; ms += 100) {
        leat_gcc_control_take(&c, ms * MS, LEAT_USAGE_NORMAL, 1e6, 50 * MS);
    }
    rate = c.rate; /* over-use once more, where it was met before: lower, whatever arrives */
    leat_gcc_control_take(&c, 4500 * MS, LEAT_USAGE_OVER, 3e6, 50 * MS);
    assert_true(c.rate < rate && c.rate >= 0.85 * rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delay_of_one_group_is_hardly_believed),
        cmocka_unit_test(after_a_long_gap_it_is_no_more_either),
        cmocka_unit_test(a_delay_that_stays_is_believed_in_the_end),
        cmocka_unit_test(a_queue_that_grows_is_believed_at_once),
        cmocka_unit_test(what_the_path_carried_is_told_while_a_queue_grows),
        cmocka_unit_test(what_had_waited_is_not_what_the_path_carries),
        cmocka_unit_test(a_few_points_tell_no_rate),
        cmocka_unit_test(groups_out_of_order_leave_no_delay_behind),
        cmocka_unit_test(a_rate_below_what_arrives_waits_for_the_queue_to_drain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
