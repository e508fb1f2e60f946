/* media/gcc.h: each part by itself, with figures worked out by hand. */
#include "media_test.h"

#include "base/prng.h"
#include "media/gcc.h"

static bool is_near(double value, double wanted)
{
    double off = value - wanted, bound = wanted < 0 ? -wanted : wanted;

    return (off < 0 ? -off : off) <= 1e-9 * (bound + 1);
}

#define assert_near(value, wanted)                                                                 \
    do {                                                                                           \
        double got = (value);                                                                      \
                                                                                                   \
        if (!is_near(got, (wanted))) {                                                             \
            print_error("%s is %.12g, not %.12g\n", #value, got, (double)(wanted));                \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* ---- groups ---- */

static bool take(leat_gcc_groups *g, leat_time sent, leat_time arrived, leat_gcc_delta *d)
{
    return leat_gcc_groups_take(g, sent, arrived, d);
}

static void packets_of_five_milliseconds_are_one_group(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;

    (void)state;
    assert_false(take(&g, 0, 100 * MS, &d));
    assert_false(take(&g, 3 * MS, 104 * MS, &d));
    assert_false(take(&g, 5 * MS, 108 * MS, &d));  /* still: five */
    assert_false(take(&g, 20 * MS, 121 * MS, &d)); /* the first group is done; none before it */
    assert_false(take(&g, 22 * MS, 123 * MS, &d));
    assert_true(take(&g, 40 * MS, 143 * MS, &d)); /* the second: last to last */
    assert_near(d.sent_ms, 17);
    assert_near(d.arrived_ms, 15);
    assert_int_equal(d.arrived, 123 * MS);
    assert_true(take(&g, 60 * MS, 170 * MS, &d));
    assert_near(d.sent_ms, 18);
    assert_near(d.arrived_ms, 20);
}

static void a_burst_is_one_group(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;

    (void)state;
    take(&g, 0, 100 * MS, &d);
    take(&g, 20 * MS, 120 * MS, &d);
    assert_true(take(&g, 40 * MS, 200 * MS, &d));  /* the path paused … */
    assert_false(take(&g, 60 * MS, 201 * MS, &d)); /* … and lets all go at once */
    assert_false(take(&g, 80 * MS, 202 * MS, &d));
    assert_true(take(&g, 100 * MS, 220 * MS, &d)); /* 18 ms later: no burst any more */
    assert_near(d.sent_ms, 60);
    assert_near(d.arrived_ms, 82);
}

/* Two packets leave each 2 ms, while their queue grows: the first of each pair comes quicker after
 * the one before than it left, which is no burst of the path's. */
static void packets_that_leave_in_pairs_into_a_queue_are_no_burst(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;
    unsigned groups = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        groups += take(&g, i / 2 * 2 * MS, 100 * MS + i * 1100 * US, &d);
    }
    assert_int_equal(groups, 100 / 6 - 1); /* of 6 ms, as without a queue */
}

static void a_packet_that_was_overtaken_changes_nothing(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;

    (void)state;
    take(&g, 0, 100 * MS, &d);
    take(&g, 20 * MS, 120 * MS, &d);
    assert_false(take(&g, 4 * MS, 125 * MS, &d));
    assert_true(take(&g, 40 * MS, 140 * MS, &d));
    assert_near(d.arrived_ms, 20);
}

static void a_receivers_clock_that_steps_back_starts_anew(void **state)
{
    leat_gcc_groups g = {.disorders = 0};
    leat_gcc_delta d;

    (void)state;
    take(&g, 0, 5000 * MS, &d);
    take(&g, 20 * MS, 100 * MS, &d);
    assert_false(take(&g, 40 * MS, 90 * MS, &d));
    assert_false(take(&g, 60 * MS, 80 * MS, &d));
    assert_false(take(&g, 80 * MS, 70 * MS, &d)); /* three in a row: forgotten */
    take(&g, 100 * MS, 120 * MS, &d);
    take(&g, 120 * MS, 140 * MS, &d);
    assert_false(g.disorders);
    assert_true(take(&g, 140 * MS, 160 * MS, &d));
    assert_near(d.arrived_ms, 20);
}

/* ---- trendline ---- */

/* Each group 20 ms after the last and a millisecond later than it should. The sums are 1, 2, 3 …;
 * smoothed: s(n) = 0.9 s(n-1) + 0.1 n, which is n - 9 (1 - 0.9^n). */
static void a_growing_queue_has_the_slope_of_the_line_through_its_delays(void **state)
{
    leat_gcc_trend t = {.count = 0};
    double at[20], delay[20], sum_at = 0, sum_delay = 0, above = 0, below = 0, power = 1;

    (void)state;
    for (int n = 1; n <= 20; n++) {
        leat_gcc_delta d = {.sent_ms = 20, .arrived_ms = 21, .arrived = (leat_time)n * 21 * MS};

        assert_near(leat_gcc_trend_value(&t), 0);
        leat_gcc_trend_take(&t, &d);
        power *= 0.9;
        at[n - 1] = 21 * (n - 1);
        delay[n - 1] = n - 9 * (1 - power);
        assert_near(t.smoothed, delay[n - 1]);
        sum_at += at[n - 1];
        sum_delay += delay[n - 1];
    }
    for (int i = 0; i < 20; i++) {
        above += (at[i] - sum_at / 20) * (delay[i] - sum_delay / 20);
        below += (at[i] - sum_at / 20) * (at[i] - sum_at / 20);
    }
    assert_near(t.slope, above / below);
    assert_near(leat_gcc_trend_value(&t), 20 * t.slope * 4);
}

static void a_steady_delay_has_no_slope(void **state)
{
    leat_gcc_trend t = {.count = 0};

    (void)state;
    for (int n = 1; n <= 100; n++) {
        leat_gcc_delta d = {.sent_ms = 20, .arrived_ms = 20, .arrived = (leat_time)n * 20 * MS};

        leat_gcc_trend_take(&t, &d);
    }
    assert_near(leat_gcc_trend_value(&t), 0);
}

/* Least squares anew, over the points that a trendline holds. */
static double slope_anew(const leat_gcc_trend *t)
{
    double at = 0, delay = 0, above = 0, below = 0;

    for (int i = 0; i < LEAT_GCC_TREND_POINTS; i++) {
        at += t->at[i] / LEAT_GCC_TREND_POINTS;
        delay += t->delay[i] / LEAT_GCC_TREND_POINTS;
    }
    for (int i = 0; i < LEAT_GCC_TREND_POINTS; i++) {
        above += (t->at[i] - at) * (t->delay[i] - delay);
        below += (t->at[i] - at) * (t->at[i] - at);
    }
    return above / below;
}

/* Sums that go on say what sums made anew say, over hours and across pauses. */
static void a_trend_of_running_sums_does_not_drift(void **state)
{
    leat_gcc_trend t = {.count = 0};
    leat_time now = LEAT_SECOND;
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, 7);
    for (int n = 1; n <= 500000; n++) {
        leat_gcc_delta d = {.sent_ms = (double)leat_prng_between(&prng, 5000, 40000) / 1e3,
                            .arrived_ms = (double)leat_prng_between(&prng, 5000, 40000) / 1e3};
        double slope, off;

        now += (leat_time)(d.arrived_ms * 1e6);
        now += n % 1013 == 0 ? leat_prng_between(&prng, 1, 3600) * LEAT_SECOND : 0;
        d.arrived = now;
        leat_gcc_trend_take(&t, &d);
        if (n < LEAT_GCC_TREND_POINTS) {
            continue;
        }
        slope = slope_anew(&t);
        off = t.slope - slope;
        if ((off < 0 ? -off : off) > 1e-6) {
            fail_msg("point %d: %.12f, not %.12f", n, t.slope, slope);
        }
    }
}

/* ---- detector ---- */

static void over_use_takes_two_points_and_ten_milliseconds(void **state)
{
    leat_gcc_detector d;

    (void)state;
    leat_gcc_detector_init(&d);
    assert_int_equal(leat_gcc_detector_take(&d, 20, 0.1, 8, 1 * MS), LEAT_USAGE_NORMAL); /* 4 ms */
    assert_int_equal(leat_gcc_detector_take(&d, 20, 0.1, 5, 2 * MS), LEAT_USAGE_NORMAL); /* 9 ms */
    assert_int_equal(leat_gcc_detector_take(&d, 20, 0.1, 5, 3 * MS), LEAT_USAGE_OVER);   /* 14 ms */
    assert_int_equal(leat_gcc_detector_take(&d, 0, 0, 5, 4 * MS), LEAT_USAGE_NORMAL);
    assert_int_equal(leat_gcc_detector_take(&d, -20, -0.1, 5, 5 * MS), LEAT_USAGE_UNDER);
}

static void a_slope_that_falls_is_no_over_use(void **state)
{
    leat_gcc_detector d;

    (void)state;
    leat_gcc_detector_init(&d);
    leat_gcc_detector_take(&d, 26, 0.3, 20, 1 * MS);
    assert_int_equal(leat_gcc_detector_take(&d, 25, 0.2, 20, 2 * MS), LEAT_USAGE_NORMAL);
    assert_int_equal(leat_gcc_detector_take(&d, 25, 0.2, 20, 3 * MS), LEAT_USAGE_OVER);
}

/* The threshold starts at 12.5 and moves by K (|value| - threshold) a millisecond. */
static void the_threshold_follows_the_value(void **state)
{
    leat_gcc_detector d;

    (void)state;
    leat_gcc_detector_init(&d);
    leat_gcc_detector_take(&d, 0, 0, 10, 1000 * MS); /* the first sets the clock */
    assert_near(d.threshold, 12.5);
    leat_gcc_detector_take(&d, 2.5, 0, 10, 1010 * MS);
    assert_near(d.threshold, 12.5 - 0.0006 * 10 * 10);
    d.threshold = 12.5;
    leat_gcc_detector_take(&d, -22.5, 0, 10, 1020 * MS); /* by its size */
    assert_near(d.threshold, 12.5 + 0.0087 * 10 * 10);
    d.threshold = 12.5;
    leat_gcc_detector_take(&d, 28, 0, 10, 1030 * MS); /* more than 15 past it: a spike */
    assert_near(d.threshold, 12.5);
    leat_gcc_detector_take(&d, 22.5, 0, 10, 2030 * MS); /* no more than 100 ms are counted */
    assert_near(d.threshold, 12.5 + 0.0087 * 10 * 100);
    for (int i = 1; i < 1000; i++) {
        leat_gcc_detector_take(&d, 0, 0, 10, (2030 + 100 * (leat_time)i) * MS);
    }
    assert_near(d.threshold, 6); /* never below */
}

/* ---- what arrives ---- */

static void the_acknowledged_rate_is_known_after_half_a_second(void **state)
{
    leat_gcc_acked a;

    (void)state;
    leat_gcc_acked_init(&a);
    for (leat_time t = 0; t < 500; t += 10) { /* 1250 bytes each 10 ms: 1 Mbit/s */
        leat_gcc_acked_take(&a, t * MS, 1250, false);
        assert_true(a.rate < 0);
    }
    leat_gcc_acked_take(&a, 500 * MS, 1250, false);
    assert_near(a.rate, 1e6);
}

/* A sample of half the rate: its deviation is 10 * 0.5, so its variance 25; the estimate's is
 * 50 + 5. (25 * 1 + 55 * 0.5) / 80 = 0.65625. */
static void a_sample_counts_by_its_certainty(void **state)
{
    leat_gcc_acked a;

    (void)state;
    leat_gcc_acked_init(&a);
    for (leat_time t = 0; t <= 500; t += 10) {
        leat_gcc_acked_take(&a, t * MS, 1250, false);
    }
    a.bytes = 0;
    for (leat_time t = 510; t <= 640; t += 10) {
        leat_gcc_acked_take(&a, t * MS, 625, false);
    }
    leat_gcc_acked_take(&a, 645 * MS, 625, false); /* 15 times 625 bytes in the 150 ms */
    leat_gcc_acked_take(&a, 650 * MS, 625, false);
    assert_near(a.rate, 656250);
    assert_near(a.variance, 25.0 * 55 / 80);
}

static void a_pause_of_the_application_is_no_sample(void **state)
{
    leat_gcc_acked a;

    (void)state;
    leat_gcc_acked_init(&a);
    for (leat_time t = 0; t <= 500; t += 10) {
        leat_gcc_acked_take(&a, t * MS, 1250, false);
    }
    leat_gcc_acked_take(&a, 5000 * MS, 1250, true); /* the application's: no sample */
    assert_near(a.rate, 1e6);
    leat_gcc_acked_take(&a, 5400 * MS, 1250, false); /* the path's: a packet took 400 ms */
    assert_true(a.rate < 700e3);
}

static void arrivals_on_a_clock_that_was_set_back_are_measured(void **state)
{
    leat_gcc_acked a;

    (void)state;
    leat_gcc_acked_init(&a);
    for (unsigned t = 100000; t <= 101000; t += 10) {
        leat_gcc_acked_take(&a, t * MS, 1250, false);
    }
    assert_near(a.rate, 1000000);
    leat_gcc_acked_take(&a, 100500 * MS, 0, false); /* half a second late: no other clock */
    leat_gcc_acked_take(&a, 101100 * MS, 11 * 1250, false);
    assert_true(a.rate > 900000);
    for (unsigned t = 10; t <= 5000; t += 10) {
        leat_gcc_acked_take(&a, t * MS, 625, false);
    }
    assert_true(a.rate > 490000);
    assert_true(a.rate < 600000);
}

/* ---- rate control ---- */

static void over_use_takes_the_rate_to_85_percent_of_what_arrives(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 1e6);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, 800e3, 50 * MS);
    assert_near(c.rate, 680e3);
    assert_int_equal(c.state, LEAT_GCC_HOLD);
    /* Again within a round trip: no. After it: yes. */
    leat_gcc_control_take(&c, 1020 * MS, LEAT_USAGE_OVER, 700e3, 50 * MS);
    assert_near(c.rate, 680e3);
    leat_gcc_control_take(&c, 1050 * MS, LEAT_USAGE_OVER, 600e3, 50 * MS);
    assert_near(c.rate, 510e3);
    /* Less than half of the rate arrives: at once. */
    leat_gcc_control_take(&c, 1055 * MS, LEAT_USAGE_OVER, 200e3, 50 * MS);
    assert_near(c.rate, 170e3);
}

static void over_use_never_raises_the_rate(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 100e3);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, 800e3, 50 * MS);
    assert_near(c.rate, 100e3);
    leat_gcc_control_init(&c, 100e3); /* nothing known of what arrives: half */
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, -1, 50 * MS);
    assert_near(c.rate, 50e3);
}

static void without_a_known_capacity_the_rate_grows_by_8_percent_a_second(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 1e6);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_NORMAL, 1e6, 50 * MS); /* hold: increase next */
    assert_near(c.rate, 1e6);
    leat_gcc_control_take(&c, 1100 * MS, LEAT_USAGE_NORMAL, 1e6, 50 * MS);
    assert_near(c.rate, 1008e3);
    leat_gcc_control_take(&c, 9000 * MS, LEAT_USAGE_NORMAL, 1e6, 50 * MS); /* a second at most */
    assert_near(c.rate, 1008e3 * 1.08);
    leat_gcc_control_take(&c, 9100 * MS, LEAT_USAGE_UNDER, 1e6, 50 * MS); /* the queue drains */
    assert_near(c.rate, 1008e3 * 1.08);
    assert_int_equal(c.state, LEAT_GCC_HOLD);
}

/* Over-use at 800 kbit/s: that mean, and three deviations are 3 * sqrt(0.4 * 800) = 53.7 kbit/s. At
 * 780 kbit/s and 30 frames a second a frame is 26,000 bits, three packets of 8,667: one more in 50
 * ms and 100 ms. */
static void near_the_capacity_the_rate_grows_by_a_packet_a_response_time(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 1e6);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, 800e3, 50 * MS);
    leat_gcc_control_take(&c, 2000 * MS, LEAT_USAGE_NORMAL, 680e3, 50 * MS);
    leat_gcc_control_take(&c, 2100 * MS, LEAT_USAGE_NORMAL, 680e3, 50 * MS);
    assert_near(c.rate, 680e3 * 1.008); /* not near it yet */
    c.rate = 780e3;
    leat_gcc_control_take(&c, 2200 * MS, LEAT_USAGE_NORMAL, 780e3, 50 * MS);
    assert_near(c.rate, 780e3 + 780e3 / 30 / 3 / 0.15 * 0.1);
    /* More arrives than that: the capacity is not known any more, so the growth is by the share. */
    c.rate = 900e3;
    leat_gcc_control_take(&c, 2300 * MS, LEAT_USAGE_NORMAL, 850e3, 50 * MS);
    assert_true(c.capacity.rate >= 0);
    c.rate = 900e3;
    leat_gcc_control_take(&c, 2400 * MS, LEAT_USAGE_NORMAL, 860e3, 50 * MS);
    assert_true(c.capacity.rate < 0);
    assert_near(c.rate, 900e3 * 1.008);
}

/* At 30 Mbit/s a packet a response time is a fifth of a percent a second: the queue would be 150 ms
 * long by the time its growth is steep enough to be seen. Growth of 0.025^2 / (2 * 0.02) leaves 20.
 */
static void a_high_rate_grows_by_a_share_near_the_capacity(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 30e6);
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_OVER, 30e6, 50 * MS);
    leat_gcc_control_take(&c, 2000 * MS, LEAT_USAGE_NORMAL, 30e6, 50 * MS);
    c.rate = 30e6;
    leat_gcc_control_take(&c, 2100 * MS, LEAT_USAGE_NORMAL, 30e6, 50 * MS);
    assert_near(c.rate, 30e6 * (1 + 0.025 * 0.025 / 0.04 * 0.1));
}

static void the_rate_is_bounded_by_half_as_much_again_as_arrives(void **state)
{
    leat_gcc_control c;

    (void)state;
    leat_gcc_control_init(&c, 300e3);
    for (int i = 0; i < 1000; i++) {
        leat_gcc_control_take(&c, (1000 + 100 * (leat_time)i) * MS, LEAT_USAGE_NORMAL, 200e3,
                              50 * MS);
    }
    assert_near(c.rate, 310e3);
    leat_gcc_control_init(&c, 500e3); /* what is above it already stays */
    leat_gcc_control_take(&c, 1000 * MS, LEAT_USAGE_NORMAL, 200e3, 50 * MS);
    leat_gcc_control_take(&c, 1100 * MS, LEAT_USAGE_NORMAL, 200e3, 50 * MS);
    assert_near(c.rate, 500e3);
}

/* ---- loss ---- */

static void count(leat_gcc_loss *l, uint32_t packets, uint32_t lost)
{
    leat_gcc_loss_count(l, packets, lost, 0);
}

static void loss_over_a_tenth_takes_half_of_it_off(void **state)
{
    leat_gcc_loss l;

    (void)state;
    leat_gcc_loss_init(&l, 10e6);
    leat_gcc_loss_judge(&l, 1000 * MS, 1e6, 10e6, 50 * MS); /* sets the clock */
    count(&l, 19, 10);
    leat_gcc_loss_judge(&l, 1100 * MS, 1e6, 10e6, 50 * MS);
    assert_near(l.rate, 10e6); /* too few to judge */
    count(&l, 81, 10);
    leat_gcc_loss_judge(&l, 1200 * MS, 1e6, 10e6, 50 * MS);
    assert_near(l.share, 0.2);
    assert_near(l.rate, 0.9e6);
    count(&l, 100, 20);
    leat_gcc_loss_judge(&l, 1300 * MS, 0.9e6, 10e6, 50 * MS);
    assert_near(l.rate, 0.9e6); /* within 300 ms and a round trip */
    count(&l, 100, 20);
    leat_gcc_loss_judge(&l, 1550 * MS, 0.9e6, 10e6, 50 * MS);
    assert_near(l.rate, 0.81e6);
    count(&l, 100, 5);
    leat_gcc_loss_judge(&l, 3000 * MS, 0.81e6, 10e6, 50 * MS);
    assert_near(l.rate, 0.81e6); /* in between it holds */
    count(&l, 100, 1);
    leat_gcc_loss_judge(&l, 3100 * MS, 0.81e6, 10e6, 50 * MS);
    assert_near(l.rate, 0.81e6 * 1.008);
}

/* On a path that loses 3 %, three of 20 packets are lost once in fifty times. */
static void few_packets_tell_of_much_loss_alone(void **state)
{
    leat_gcc_loss l;

    (void)state;
    leat_gcc_loss_init(&l, 10e6);
    leat_gcc_loss_judge(&l, 1000 * MS, 1e6, 10e6, 50 * MS);
    count(&l, 20, 3);
    leat_gcc_loss_judge(&l, 1100 * MS, 1e6, 10e6, 50 * MS);
    assert_near(l.rate, 10e6); /* may be chance: more are waited for … */
    count(&l, 80, 0);
    leat_gcc_loss_judge(&l, 1200 * MS, 1e6, 10e6, 50 * MS);
    assert_near(l.share, 0.03); /* … and it was */
    assert_near(l.rate, 10e6);
    count(&l, 20, 5);
    leat_gcc_loss_judge(&l, 1300 * MS, 1e6, 10e6, 50 * MS);
    assert_near(l.share, 0.25); /* is not */
    assert_near(l.rate, 0.875e6);
    count(&l, 20, 3);
    leat_gcc_loss_judge(&l, 2300 * MS, 0.875e6, 10e6, 50 * MS);
    assert_near(l.share, 0.15); /* a second brings no more: that is what there is to go by */
}

static void what_was_lost_and_came_late_is_not_lost(void **state)
{
    leat_gcc_loss l;

    (void)state;
    leat_gcc_loss_init(&l, 10e6);
    leat_gcc_loss_judge(&l, 1000 * MS, 1e6, 10e6, 0);
    count(&l, 100, 20);
    leat_gcc_loss_count(&l, 0, 0, 15);
    leat_gcc_loss_judge(&l, 2000 * MS, 1e6, 10e6, 0);
    assert_near(l.share, 0.05);
    leat_gcc_loss_count(&l, 100, 1, 2); /* one was judged already: no less than none */
    leat_gcc_loss_judge(&l, 3000 * MS, 1e6, 10e6, 0);
    assert_near(l.share, 0);
}

/* ---- probes ---- */

/* Ten packets of 1250 bytes, one a millisecond: 10 Mbit/s; they arrive `apart` from each other. */
static double probe(leat_time apart, unsigned arrive)
{
    leat_gcc_probe p;

    leat_gcc_probe_begin(&p, LEAT_SECOND, 6e6, 0);
    assert_int_equal(p.want_bytes, 11251); /* 15 ms of it */
    for (leat_time i = 0; i < 10; i++) {
        assert_int_equal(p.state, i < 10 ? LEAT_GCC_PROBE_SENDING : LEAT_GCC_PROBE_WAITING);
        leat_gcc_probe_on_sent(&p, LEAT_SECOND + i * MS, 1250);
    }
    assert_int_equal(p.state, LEAT_GCC_PROBE_WAITING);
    leat_gcc_probe_on_sent(&p, LEAT_SECOND + 20 * MS, 1250); /* not its own */
    for (leat_time i = 0; i < arrive; i++) {
        leat_fb_result r = {.sent = LEAT_SECOND + i * MS,
                            .arrived = 5 * LEAT_SECOND + i * apart,
                            .size = 1250,
                            .state = LEAT_FB_ARRIVED};

        leat_gcc_probe_on_results(&p, &r, 1);
    }
    return leat_gcc_probe_result(&p);
}

static void a_probe_tells_what_the_path_carries(void **state)
{
    (void)state;
    assert_near(probe(1 * MS, 10), 10e6);           /* all of it */
    assert_near(probe(2 * MS, 10), 0.95 * 5e6);     /* it came at half the pace: a little less */
    assert_near(probe(1050 * US, 10), 10e6 / 1.05); /* hardly slower: as it came */
    assert_near(probe(800 * US, 10), 10e6);         /* no more than was sent */
    assert_near(probe(400 * US, 10), 0);            /* what was that? */
    assert_near(probe(1 * MS, 8), 10e6);            /* four fifths are enough */
    assert_near(probe(1 * MS, 7), 0);               /* and less is not */
}

/* As of QUIC's acknowledgements: of every second packet alone it is known when it came. */
static void a_probe_makes_do_with_some_times(void **state)
{
    leat_gcc_probe p;
    leat_fb_result r = {.size = 1200, .state = LEAT_FB_ARRIVED};

    (void)state;
    leat_gcc_probe_begin(&p, LEAT_SECOND, 9.6e6, 0);
    for (unsigned i = 0; i < 16; i++) { /* 9.6 Mbit/s */
        leat_gcc_probe_on_sent(&p, LEAT_SECOND + i * MS, 1200);
    }
    for (unsigned i = 0; i < 16; i++) { /* 4.8 */
        r.sent = LEAT_SECOND + i * MS;
        r.arrived = i % 2 == 1 ? 2 * LEAT_SECOND + i * 2 * MS : LEAT_TIME_NEVER;
        leat_gcc_probe_on_results(&p, &r, 1);
    }
    assert_near(leat_gcc_probe_result(&p), 0.95 * 4.8e6);
}

/* All at once says what the path carries as well, but for no more than was asked. */
static void a_burst_proves_no_more_than_was_asked(void **state)
{
    (void)state;
    for (unsigned us = 500; us <= 2000; us *= 4) { /* 19.2 Mbit/s, 4.8 */
        leat_gcc_probe p;
        leat_fb_result r = {.size = 1200, .state = LEAT_FB_ARRIVED, .sent = LEAT_SECOND};

        leat_gcc_probe_begin(&p, LEAT_SECOND, 9.6e6, 0);
        for (unsigned i = 0; i < 16; i++) {
            leat_gcc_probe_on_sent(&p, LEAT_SECOND, 1200);
        }
        for (unsigned i = 0; i < 16; i++) {
            r.arrived = 2 * LEAT_SECOND + i * us * US;
            leat_gcc_probe_on_results(&p, &r, 1);
        }
        assert_near(leat_gcc_probe_result(&p), us == 500 ? 9.6e6 : 0.95 * 4.8e6);
    }
}

/* One packet each 10 ms where 1 ms was asked for, and two arrivals alone that jitter drew apart: to
 * be asked again. An answer of many arrivals is the path's. */
static void a_probe_that_left_slowly_or_is_known_of_few_arrivals_is_vague(void **state)
{
    static const struct {
        unsigned left_ms, came_ms, timed;
        bool vague;
    } cases[] = {{10, 10, 10, true}, {1, 2, 2, true}, {1, 2, 10, false}, {1, 1, 2, false}};

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        leat_gcc_probe p;

        leat_gcc_probe_begin(&p, LEAT_SECOND, 9.6e6, 0);
        for (unsigned i = 0; i < 16; i++) {
            leat_gcc_probe_on_sent(&p, LEAT_SECOND + i * cases[k].left_ms * MS, 1200);
        }
        for (unsigned i = 0; i < 16; i++) {
            leat_fb_result r = {.size = 1200,
                                .state = LEAT_FB_ARRIVED,
                                .sent = LEAT_SECOND + i * cases[k].left_ms * MS,
                                .arrived = 2 * LEAT_SECOND + i * cases[k].came_ms * MS};

            if (i > 0 && i < 17 - cases[k].timed) {
                r.arrived = LEAT_TIME_NEVER;
            }
            leat_gcc_probe_on_results(&p, &r, 1);
        }
        assert_true(leat_gcc_probe_result(&p) > 0);
        assert_int_equal(p.vague, cases[k].vague);
    }
}

/* All leave and come one a millisecond; the first is large, the last is small, or the other way
 * round: the path took nothing longer than it left, and the rate is what both say on average. */
static void sizes_at_a_probes_ends_do_not_make_it_slower(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        leat_gcc_probe p;

        leat_gcc_probe_begin(&p, LEAT_SECOND, 5.15e6, 0);
        for (unsigned pass = 0; pass < 2; pass++) {
            for (unsigned i = 0; i < 16; i++) {
                leat_fb_result r = {.size = i == (first ? 0 : 15) ? 1200
                                            : i % 15              ? 600
                                                                  : 120,
                                    .state = LEAT_FB_ARRIVED,
                                    .sent = LEAT_SECOND + i * MS,
                                    .arrived = 2 * LEAT_SECOND + i * MS};

                if (pass == 0) {
                    leat_gcc_probe_on_sent(&p, r.sent, r.size);
                } else {
                    leat_gcc_probe_on_results(&p, &r, 1);
                }
            }
        }
        assert_near(leat_gcc_probe_result(&p), (14 * 600 + 660) * 8 / 0.015);
    }
}

static void a_probe_that_takes_long_is_given_up(void **state)
{
    leat_gcc_probe p;

    (void)state;
    leat_gcc_probe_begin(&p, LEAT_SECOND, 6e6, 0);
    assert_false(leat_gcc_probe_expire(&p, 2 * LEAT_SECOND - 1));
    assert_true(leat_gcc_probe_expire(&p, 2 * LEAT_SECOND));
    assert_int_equal(p.state, LEAT_GCC_PROBE_NONE);
    assert_false(leat_gcc_probe_expire(&p, 9 * LEAT_SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_five_milliseconds_are_one_group),
        cmocka_unit_test(a_burst_is_one_group),
        cmocka_unit_test(packets_that_leave_in_pairs_into_a_queue_are_no_burst),
        cmocka_unit_test(a_packet_that_was_overtaken_changes_nothing),
        cmocka_unit_test(a_receivers_clock_that_steps_back_starts_anew),
        cmocka_unit_test(a_growing_queue_has_the_slope_of_the_line_through_its_delays),
        cmocka_unit_test(a_steady_delay_has_no_slope),
        cmocka_unit_test(a_trend_of_running_sums_does_not_drift),
        cmocka_unit_test(over_use_takes_two_points_and_ten_milliseconds),
        cmocka_unit_test(a_slope_that_falls_is_no_over_use),
        cmocka_unit_test(the_threshold_follows_the_value),
        cmocka_unit_test(the_acknowledged_rate_is_known_after_half_a_second),
        cmocka_unit_test(a_sample_counts_by_its_certainty),
        cmocka_unit_test(a_pause_of_the_application_is_no_sample),
        cmocka_unit_test(over_use_takes_the_rate_to_85_percent_of_what_arrives),
        cmocka_unit_test(over_use_never_raises_the_rate),
        cmocka_unit_test(without_a_known_capacity_the_rate_grows_by_8_percent_a_second),
        cmocka_unit_test(near_the_capacity_the_rate_grows_by_a_packet_a_response_time),
        cmocka_unit_test(a_high_rate_grows_by_a_share_near_the_capacity),
        cmocka_unit_test(the_rate_is_bounded_by_half_as_much_again_as_arrives),
        cmocka_unit_test(arrivals_on_a_clock_that_was_set_back_are_measured),
        cmocka_unit_test(loss_over_a_tenth_takes_half_of_it_off),
        cmocka_unit_test(few_packets_tell_of_much_loss_alone),
        cmocka_unit_test(what_was_lost_and_came_late_is_not_lost),
        cmocka_unit_test(a_probe_tells_what_the_path_carries),
        cmocka_unit_test(a_probe_makes_do_with_some_times),
        cmocka_unit_test(a_burst_proves_no_more_than_was_asked),
        cmocka_unit_test(a_probe_that_left_slowly_or_is_known_of_few_arrivals_is_vague),
        cmocka_unit_test(sizes_at_a_probes_ends_do_not_make_it_slower),
        cmocka_unit_test(a_probe_that_takes_long_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
