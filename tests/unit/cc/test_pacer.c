/* cc/pacer.h: rates and bursts worked out by hand, and long runs at every speed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cc/pacer.h"

#define MS  LEAT_MILLISECOND
#define US  LEAT_MICROSECOND
#define MDS 1200u

static leat_cc cc;
static leat_rtt rtt;
static leat_pacer pacer;

static int set_up(void **state)
{
    (void)state;
    leat_cc_init(&cc, &leat_cc_newreno, MDS, NULL, 0);
    leat_rtt_init(&rtt, 0);
    leat_pacer_init(&pacer, MDS);
    return 0;
}

static void set_rtt(leat_time t)
{
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, t, 0, 0);
}

static void without_a_sample_nothing_is_paced(void **state)
{
    (void)state;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.rate, 0);
    assert_int_equal(leat_pacer_budget(&pacer, 0), UINT64_MAX);
    leat_pacer_on_sent(&pacer, 0, 1000000);
    assert_int_equal(leat_pacer_next_at(&pacer), 0);
}

static void the_rate_is_the_window_over_the_round_trip(void **state)
{
    (void)state;
    set_rtt(100 * MS);
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.rate, 240000); /* 12000 bytes in 100 ms, twice that in slow start */
    cc.ssthresh = cc.cwnd;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.rate, 150000); /* and a quarter more than that after it */
    cc.pacing_rate = 777777;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.rate, 777777);
}

static void the_initial_window_goes_out_in_one_burst(void **state)
{
    (void)state;
    set_rtt(100 * MS);
    cc.ssthresh = cc.cwnd;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 10 * LEAT_SECOND);
    /* 80 ms of credit at 150 bytes a ms; a byte or so is lost to rounding */
    assert_in_range(leat_pacer_budget(&pacer, 10 * LEAT_SECOND), 11999, 12000);
    leat_pacer_on_sent(&pacer, 10 * LEAT_SECOND, 12000);
    /* credit used up: the next quantum, two datagrams, may start at once, those after it wait 16 ms
     */
    assert_int_equal(leat_pacer_budget(&pacer, 10 * LEAT_SECOND), 2 * MDS);
    leat_pacer_on_sent(&pacer, 10 * LEAT_SECOND, 2 * MDS);
    assert_int_equal(leat_pacer_budget(&pacer, 10 * LEAT_SECOND), 0);
    assert_in_range(leat_pacer_next_at(&pacer), 10 * LEAT_SECOND + 15999000,
                    10 * LEAT_SECOND + 16000000);
}

static void idle_time_saves_no_more_than_the_credit(void **state)
{
    const leat_time week = 7 * 24 * 3600 * LEAT_SECOND;

    (void)state;
    set_rtt(100 * MS);
    cc.ssthresh = cc.cwnd;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    leat_pacer_on_sent(&pacer, 0, 12000);
    assert_in_range(leat_pacer_budget(&pacer, week), 11999, 12000);
}

/* Sends as fast as the pacer lets, waking `late` after it says, and counts. */
typedef struct run {
    uint64_t bytes;
    uint64_t wakes;
    leat_time time;
    uint64_t most; /* bytes in one wake */
} run;

static run run_for(leat_time time, leat_time late)
{
    run r = {0};
    leat_time now = 1000 * LEAT_SECOND, start = now;

    while (now - start < time) {
        uint64_t budget = leat_pacer_budget(&pacer, now), burst = 0;
        leat_time next;

        r.wakes++;
        while (budget > burst) { /* whole datagrams, the last may overrun */
            burst += MDS;
        }
        leat_pacer_on_sent(&pacer, now, burst);
        r.bytes += burst;
        r.most = burst > r.most ? burst : r.most;
        next = leat_pacer_next_at(&pacer);
        now = (next > now ? next : now) + late;
    }
    r.time = now - start;
    return r;
}

/* bytes within a part in 1000 of rate * time, but for the credit of the start. */
static void assert_rate(const run *r, uint64_t rate)
{
    uint64_t want = (uint64_t)((double)rate * (double)r->time / 1e9);
    uint64_t slack = want / 1000 + 12000 + rate / 1000 + 3 * MDS;

    assert_true(r->bytes + slack >= want);
    assert_true(r->bytes <= want + slack + LEAT_PACER_BURST_DEFAULT);
}

static void the_rate_holds_at_every_speed_and_wakes_seldom(void **state)
{
    (void)state;
    for (uint64_t rate = 1000; rate <= UINT64_C(20000000000); rate *= 7) {
        leat_time time = rate < 1000000 ? 100 * LEAT_SECOND : LEAT_SECOND / 2;
        run r;

        leat_pacer_init(&pacer, MDS);
        cc.pacing_rate = rate;
        leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
        r = run_for(time, 0);
        assert_rate(&r, rate);
        /* no storm: a wake pays for a quantum */
        assert_true(r.wakes <= r.bytes / pacer.quantum + 3);
    }
}

/* 1200 bytes at 7 GB/s take 171.43 ns: what is cut off each time is not lost. */
static void fractions_of_a_nanosecond_add_up(void **state)
{
    leat_time now = 1000 * LEAT_SECOND;

    (void)state;
    cc.pacing_rate = UINT64_C(7000000000);
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    pacer.free_at = now;
    for (int i = 0; i < 7000; i++) {
        leat_pacer_on_sent(&pacer, now, 1200);
    }
    assert_in_range(pacer.free_at - now, 1199980, 1200000);
}

static void a_timer_that_is_a_millisecond_late_costs_no_throughput(void **state)
{
    (void)state;
    for (uint64_t rate = 100000; rate <= UINT64_C(2000000000); rate *= 10) {
        run r;

        leat_pacer_init(&pacer, MDS);
        cc.pacing_rate = rate;
        leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
        r = run_for(10 * LEAT_SECOND, LEAT_PACER_LAG);
        assert_rate(&r, rate);
    }
}

static void a_burst_fits_a_gso_send_when_wakes_are_on_time(void **state)
{
    run r;

    (void)state;
    cc.pacing_rate = 1250000000; /* 10 Gbit/s */
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.quantum, LEAT_PACER_BURST_DEFAULT);
    pacer.free_at = 1000 * LEAT_SECOND; /* no credit from before */
    r = run_for(100 * MS, 0);
    assert_true(r.most <= LEAT_PACER_BURST_DEFAULT + MDS);
    cc.pacing_rate = 125000; /* 1 Mbit/s */
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.quantum, 2 * MDS);
}

/* On loopback, a window each 20 µs: the window holds it back, never the pacer. */
static void a_tiny_round_trip_is_not_held_back(void **state)
{
    static const leat_time rtts[] = {1, 100, 20 * US, 500 * US};

    (void)state;
    for (size_t i = 0; i < LEAT_COUNT_OF(rtts); i++) {
        leat_time now = LEAT_SECOND;

        leat_pacer_init(&pacer, MDS);
        cc.ssthresh = cc.cwnd;
        set_rtt(rtts[i]);
        for (int round = 0; round < 1000; round++) {
            leat_pacer_set_rate(&pacer, &cc, &rtt, now);
            assert_true(leat_pacer_budget(&pacer, now) >= cc.cwnd);
            leat_pacer_on_sent(&pacer, now, cc.cwnd);
            now += rtts[i];
        }
    }
}

static void extremes_overflow_nothing(void **state)
{
    (void)state;
    cc.cwnd = LEAT_CWND_MAX;
    set_rtt(1);
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    leat_pacer_on_sent(&pacer, 0, UINT64_MAX);
    assert_true(leat_pacer_budget(&pacer, 0) >= LEAT_PACER_BURST_DEFAULT);
    cc.cwnd = 2 * MDS;
    cc.ssthresh = 2 * MDS;
    set_rtt(3600 * LEAT_SECOND);
    leat_pacer_init(&pacer, MDS);
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    assert_int_equal(pacer.rate, 256);
    pacer.free_at = 1000 * LEAT_SECOND;
    leat_pacer_on_sent(&pacer, 1000 * LEAT_SECOND, 2 * MDS);
    assert_int_equal(leat_pacer_next_at(&pacer), 1000 * LEAT_SECOND + 9375 * MS); /* 2400 / 256 s */
    pacer.free_at = LEAT_TIME_NEVER - 1;
    leat_pacer_on_sent(&pacer, LEAT_TIME_NEVER - 1, 2 * MDS);
    assert_int_equal(leat_pacer_next_at(&pacer), LEAT_TIME_NEVER);
    cc.pacing_rate = UINT64_MAX;
    leat_pacer_init(&pacer, 65527);
    cc.mds = 65527;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    leat_pacer_on_sent(&pacer, 0, 100000);
    assert_true(leat_pacer_budget(&pacer, 0) > 0);
}

/* A slow start to the connection, then a round trip is known to be short: what is owed at the slow
 * rate is not waited for. */
static void a_faster_rate_drains_the_debt_faster(void **state)
{
    leat_time now = 1000 * LEAT_SECOND;

    (void)state;
    cc.pacing_rate = 1000;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    pacer.free_at = now;
    leat_pacer_on_sent(&pacer, now, 2400);
    assert_in_range(leat_pacer_next_at(&pacer), now + 2399 * MS, now + 2400 * MS);
    cc.pacing_rate = 1000000;
    leat_pacer_set_rate(&pacer, &cc, &rtt, now);
    assert_in_range(leat_pacer_next_at(&pacer), now + 2398 * US, now + 2400 * US);
}

static void a_clock_that_steps_back_heals_with_the_next_rate(void **state)
{
    (void)state;
    cc.pacing_rate = 1000000;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    leat_pacer_on_sent(&pacer, 1000 * LEAT_SECOND, 100000);
    cc.pacing_rate = 1000001;
    leat_pacer_set_rate(&pacer, &cc, &rtt, 0);
    /* no more is owed than one batch can be */
    assert_true(leat_pacer_next_at(&pacer) <= 2 * LEAT_SECOND);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_sample_nothing_is_paced),
        TEST(the_rate_is_the_window_over_the_round_trip),
        TEST(the_initial_window_goes_out_in_one_burst),
        TEST(idle_time_saves_no_more_than_the_credit),
        TEST(the_rate_holds_at_every_speed_and_wakes_seldom),
        TEST(fractions_of_a_nanosecond_add_up),
        TEST(a_timer_that_is_a_millisecond_late_costs_no_throughput),
        TEST(a_burst_fits_a_gso_send_when_wakes_are_on_time),
        TEST(a_tiny_round_trip_is_not_held_back),
        TEST(extremes_overflow_nothing),
        TEST(a_faster_rate_drains_the_debt_faster),
        TEST(a_clock_that_steps_back_heals_with_the_next_rate),
    };

    return cmocka_run_group_tests_name("cc.pacer", tests, NULL, NULL);
}
