/* cc/cubic.c and cc/hystart.c on numbers worked by hand from RFC 9438 and RFC 9406, driven through
 * a real leat_sent.
 *
 * Datagrams are 1200 bytes. The curve used most is that of a loss at 100 datagrams: the window
 * falls to 70, W_max is 100, K = cbrt(30 / 0.4) = 4.217 s, and the window is
 * 100 + 0.4 (t - 4.217)^3 datagrams.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cc/hystart.h"
#include "mem/mem.h"

#define MS   LEAT_MILLISECOND
#define MDS  1200u
#define DATA (LEAT_SENT_ELICITING | LEAT_SENT_IN_FLIGHT)
#define RTT  (100 * MS)

static leat_mem *mem;
static leat_flight flight;
static leat_sent sent;
static leat_rtt rtt;
static leat_cc cc;
static leat_time now;

static const leat_frame_ops no_ops[1];

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, no_ops, NULL);
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, RTT, 0, 0);
    now = 1000 * MS;
    leat_cc_init(&cc, &leat_cc_cubic, MDS, NULL, now);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    leat_cc_check(&cc);
    leat_sent_check(&sent);
    leat_sent_free(&sent);
    leat_mem_free(mem);
    return 0;
}

static void send_one(void)
{
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_commit(&sent, now, MDS, DATA, 0);
    leat_cc_on_sent(&cc, &flight, now, MDS);
}

static void fill(void)
{
    while (leat_cc_room(&cc, &flight) >= MDS) {
        send_one();
    }
}

static void visit(void *ctx, const leat_sent_loss *loss)
{
    (void)ctx;
    leat_cc_on_packet_lost(&cc, loss, &flight);
}

/* Acknowledges [first, last], with `ce` marks; what that makes lost by number goes along. */
static void ack(uint64_t first, uint64_t last, uint64_t ce)
{
    leat_sent_loss_rule rule = {
        .now = now,
        .delay = LEAT_TIME_NEVER,
        .persistent = LEAT_TIME_NEVER,
        .keep = LEAT_TIME_NEVER,
        .packets = 3,
        .visit = visit,
    };
    leat_sent_acked acked;
    leat_sent_lost lost;

    assert_int_equal(leat_sent_ack_start(&sent, &acked, last, now, cc.recovery_start), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, first, last + 1), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 0);
    leat_sent_detect_lost(&sent, &rule, &lost);
    leat_cc_on_recovery(&cc, now, &acked, &lost, ce, &rtt, &flight);
    leat_cc_check(&cc);
}

/* Fills the window and acknowledges all of it one round trip later. */
static void round_trip(void)
{
    uint64_t first = leat_sent_next_pn(&sent);

    fill();
    now += RTT;
    ack(first, leat_sent_next_pn(&sent) - 1, 0);
}

static void rounds(unsigned n)
{
    while (n-- > 0) {
        round_trip();
    }
}

/* A full window of which the first packet is lost; all else arrives. */
static void lose_one(void)
{
    uint64_t first = leat_sent_next_pn(&sent);

    fill();
    now += RTT;
    ack(first + 1, leat_sent_next_pn(&sent) - 1, 0);
}

static void avoid_with(uint64_t datagrams)
{
    cc.cwnd = datagrams * MDS;
    cc.ssthresh = cc.cwnd;
}

static void assert_near(uint64_t value, uint64_t want, uint64_t within)
{
    assert_in_range(value, want - within, want + within);
}

/* ---- CUBIC ---- */

static void a_loss_takes_the_window_to_seven_tenths(void **state)
{
    (void)state;
    avoid_with(100);
    lose_one();
    assert_int_equal(cc.cwnd, 84000);
    assert_int_equal(cc.ssthresh, 84000);
    assert_int_equal(cc.recovery_start, now);
    assert_string_equal(leat_cc_state_name(&cc), "recovery");
}

static void the_first_ack_after_a_loss_is_in_the_reno_friendly_region(void **state)
{
    uint64_t first;

    (void)state;
    avoid_with(100);
    lose_one();
    first = leat_sent_next_pn(&sent);
    now += 1;
    fill();
    now += RTT;
    /* W_cubic(0) is 70.0; W_est is 70 + 9/17 * 2/70: 84000 + 9 * 2400 * 1200 / (17 * 84000) */
    ack(first, first + 1, 0);
    assert_int_equal(cc.cwnd, 84018);
    assert_string_equal(leat_cc_state_name(&cc), "congestion_avoidance");
}

static void the_window_follows_the_cubic(void **state)
{
    (void)state;
    avoid_with(100);
    lose_one();
    now += 1;
    round_trip(); /* the curve begins with this ACK */
    rounds(10);   /* t = 1 s, target t = 1.1: 100 - 0.4 * 3.117^3 = 87.89 */
    assert_near(cc.cwnd, 105467, 60);
    rounds(20); /* t = 3, target 3.1: 100 - 0.4 * 1.117^3 = 99.44 */
    assert_near(cc.cwnd, 119331, 60);
    rounds(12); /* t = 4.2: flat at W_max */
    assert_near(cc.cwnd, 120000, 10);
    rounds(42); /* t = 8.4, target 8.5: 100 + 0.4 * 4.283^3 = 131.43 */
    assert_near(cc.cwnd, 157714, 60);
}

static void growth_is_at_most_half_a_window_a_round(void **state)
{
    uint64_t before;

    (void)state;
    avoid_with(10);
    round_trip();
    now += 1;
    /* An hour in which the window stays full, and no ACK comes: the curve is out of sight. */
    fill();
    now += 3600 * LEAT_SECOND;
    before = cc.cwnd;
    ack(leat_sent_next_pn(&sent) - before / MDS, leat_sent_next_pn(&sent) - 1, 0);
    assert_true(cc.cwnd <= before + before / 2);
    assert_near(cc.cwnd, before + before / 2, MDS);
}

static void a_small_window_grows_as_reno_would(void **state)
{
    (void)state;
    avoid_with(10);
    lose_one(); /* 7 datagrams; K is 1.957 s: the curve is far below */
    assert_int_equal(cc.cwnd, 8400);
    now += 1;
    round_trip(); /* a whole window acknowledged: 9/17 datagram, 635.3 bytes */
    assert_int_equal(cc.cwnd, 9035);
    rounds(4); /* 591 for 7 datagrams of 9035, then 633, 594, 632 */
    assert_near(cc.cwnd, 11485, 2);
    rounds(1);                      /* 597 */
    assert_near(cc.cwnd, 12082, 3); /* past cwnd_prior: one datagram a window from here */
    {
        uint64_t before = cc.cwnd;
        uint64_t part = before / MDS * MDS; /* what a window of whole datagrams acknowledges */

        round_trip();
        assert_near(cc.cwnd, before + MDS * part / before, 1);
    }
}

static void a_second_loss_below_w_max_leaves_room_to_others(void **state)
{
    (void)state;
    avoid_with(100);
    lose_one(); /* 70, W_max 100 */
    now += 1;
    round_trip();
    cc.cwnd = 84000; /* as if it had not grown: the numbers stay round */
    lose_one();
    assert_int_equal(cc.cwnd, 58800);
    now += 1;
    /* W_max = 0.85 * 70 = 59.5 datagrams, so K = cbrt(10.5 / 0.4) = 2.972 s; without fast
     * convergence 70 and 3.744 s, and 64.6 at t = 1.4 + 0.1. Here: 59.5 - 0.4 * 1.472^3 = 58.22,
     * above which W_est = 49 + 15 * 9/17 = 56.9 is not. */
    rounds(15);
    assert_near(cc.cwnd, 69870, 100);
}

static void a_loss_at_the_peak_keeps_w_max(void **state)
{
    (void)state;
    avoid_with(100);
    lose_one();
    now += 1;
    rounds(50); /* t = 4.9: past W_max */
    assert_true(cc.cwnd > 120000);
    cc.cwnd = 144000;
    lose_one();
    assert_int_equal(cc.cwnd, 100800);
    now += 1;
    rounds(46); /* K = cbrt(36 / 0.4) = 4.481 */
    assert_near(cc.cwnd, 144000, 20);
}

static void losses_of_one_round_reduce_once(void **state)
{
    uint64_t first = leat_sent_next_pn(&sent);

    (void)state;
    avoid_with(100);
    fill();
    now += RTT;
    ack(first + 1, first + 10, 0);
    now += MS;
    ack(first + 12, first + 60, 0);
    assert_int_equal(cc.cwnd, 84000);
}

static void a_mark_reduces_like_a_loss(void **state)
{
    (void)state;
    avoid_with(100);
    fill();
    now += RTT;
    ack(0, 1, 1);
    assert_int_equal(cc.cwnd, 84000);
}

static void persistent_congestion_starts_anew_from_ssthresh(void **state)
{
    leat_sent_lost lost = {.congestion_bytes = 1, .persistent = true, .newest_sent_at = 2000 * MS};

    (void)state;
    avoid_with(100);
    now = 2000 * MS;
    leat_cc_on_recovery(&cc, now, NULL, &lost, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, 2400);
    assert_int_equal(cc.ssthresh, 84000);
    rounds(5); /* 2, 4, 8, 16, 32, 64 datagrams */
    assert_int_equal(cc.cwnd, 64 * MDS);
    assert_string_equal(leat_cc_state_name(&cc), "slow_start");
    round_trip(); /* 128, which is above ssthresh */
    assert_string_equal(leat_cc_state_name(&cc), "congestion_avoidance");
    round_trip(); /* a new stage: K is 0, W_max the window it begins with (§4.8) */
    assert_near(cc.cwnd, 128 * MDS, MDS);
    rounds(10); /* Reno-friendly, and beyond cwnd_prior: a datagram a round */
    assert_near(cc.cwnd, 138 * MDS, 2 * MDS);
}

static void the_curve_stands_still_while_the_application_sends_little(void **state)
{
    uint64_t window;

    (void)state;
    avoid_with(100);
    lose_one();
    now += 1;
    rounds(11); /* t = 1 s */
    window = cc.cwnd;
    for (unsigned i = 0; i < 600; i++) { /* a minute of one datagram a round */
        send_one();
        now += RTT;
        ack(leat_sent_next_pn(&sent) - 1, leat_sent_next_pn(&sent) - 1, 0);
    }
    assert_int_equal(cc.cwnd, window);
    rounds(1); /* goes on at t = 1.1, target 1.2: 89.0 datagrams, and not at W(61) */
    assert_near(cc.cwnd, 106800, 120);
}

static void an_idle_time_does_not_count(void **state)
{
    uint64_t window;

    (void)state;
    avoid_with(100);
    lose_one();
    now += 1;
    rounds(11);
    window = cc.cwnd;
    now += 3600 * LEAT_SECOND;
    leat_cc_on_idle_restart(&cc, &flight, now);
    round_trip();
    assert_near(cc.cwnd, 106800, 120);
    assert_true(cc.cwnd < window + 2 * MDS);
}

static void a_week_without_loss_ends_at_the_largest_window(void **state)
{
    leat_sent_acked acked = {.bytes = 1200, .bytes_after = 1200};
    leat_sent_lost none = {.next_at = LEAT_TIME_NEVER};
    leat_time week = 7 * 24 * 3600 * LEAT_SECOND;

    (void)state;
    avoid_with(100);
    for (leat_time end = now + week; now < end; now += 60 * LEAT_SECOND) {
        acked.bytes = acked.bytes_after = cc.cwnd;
        acked.now = now;
        flight.delivered += cc.cwnd;
        cc.full_until = UINT64_MAX;
        leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight);
        leat_cc_check(&cc);
    }
    assert_int_equal(cc.cwnd, LEAT_CWND_MAX);
    /* and comes down from there */
    none = (leat_sent_lost){.congestion_bytes = 1, .newest_sent_at = now};
    leat_cc_on_recovery(&cc, now, NULL, &none, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, (uint64_t)LEAT_CWND_MAX * 7 / 10);
}

/* A window in use for hours and weeks between two ACKs: the cube of so long a time does not fit 64
 * bits, and of multiples of 2^22 ms what fits is 0. The curve is cut where it is above any window.
 */
static void a_long_time_on_the_curve_overflows_nothing(void **state)
{
    leat_time wrap = (UINT64_C(1) << 22) * MS;

    (void)state;
    for (unsigned i = 1; i <= 150; i++) {
        leat_sent_acked acked = {.bytes = 120000, .bytes_after = 120000};
        leat_sent_lost none = {.next_at = LEAT_TIME_NEVER};

        leat_cc_init(&cc, &leat_cc_cubic, MDS, NULL, now);
        avoid_with(100);
        cc.full_until = UINT64_MAX;
        leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight); /* the curve begins */
        now += i * wrap - RTT; /* the target is where the curve will be a round trip later */
        cc.cwnd = 120000;
        leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight);
        assert_int_equal(cc.cwnd, 180000); /* half as much again is the most (s4.2) */
    }
}

static void a_loss_that_was_none_is_taken_back(void **state)
{
    uint64_t first;

    (void)state;
    avoid_with(100);
    first = leat_sent_next_pn(&sent);
    fill();
    now += RTT;
    ack(first + 2, first + 6, 0); /* two are lost by number */
    assert_int_equal(cc.cwnd, 84000);
    now += MS;
    ack(first, first, 0); /* one arrives: not all */
    assert_int_equal(cc.cwnd, 84000);
    now += MS;
    ack(first + 1, first + 1, 0);
    assert_int_equal(cc.cwnd, 120000);
    assert_int_equal(cc.ssthresh, 120000);
    assert_int_equal(cc.recovery_start, 0);
    assert_string_equal(leat_cc_state_name(&cc), "congestion_avoidance");
}

static void a_loss_with_a_mark_is_not_taken_back(void **state)
{
    uint64_t first = leat_sent_next_pn(&sent);

    (void)state;
    avoid_with(100);
    fill();
    now += RTT;
    ack(first + 1, first + 5, 1);
    now += MS;
    ack(first, first, 0);
    assert_int_equal(cc.cwnd, 84000);
}

/* Seeds 4721 and 5533 of the simulator: what was kept is from before the datagrams grew. */
static void what_is_given_back_respects_the_new_floor(void **state)
{
    uint64_t first;

    (void)state;
    avoid_with(2);
    first = leat_sent_next_pn(&sent);
    cc.cwnd = 60000; /* to have more in flight than the threshold lets grow */
    fill();
    now += RTT;
    ack(first + 1, first + 5, 0);
    leat_cc_on_mtu(&cc, 9000);
    now += MS;
    ack(first, first, 0);
    assert_true(cc.ssthresh >= 18000);
    leat_cc_check(&cc);
}

static void a_spurious_loss_in_slow_start_gives_slow_start_back(void **state)
{
    uint64_t first = leat_sent_next_pn(&sent);

    (void)state;
    fill();
    now += RTT;
    ack(first + 1, first + 5, 0);
    assert_int_equal(cc.ssthresh, 8400);
    ack(first, first, 0);
    assert_int_equal(cc.ssthresh, UINT64_MAX);
    assert_string_equal(leat_cc_state_name(&cc), "slow_start");
}

static void a_smaller_datagram_moves_the_floors_alone(void **state)
{
    (void)state;
    leat_cc_init(&cc, &leat_cc_cubic, 9000, NULL, now);
    cc.cwnd = cc.ssthresh = 18000;
    leat_cc_on_mtu(&cc, 1200);
    assert_int_equal(cc.cwnd, 18000);
    leat_cc_init(&cc, &leat_cc_cubic, 1200, NULL, now);
    cc.cwnd = cc.ssthresh = 2400;
    leat_cc_on_mtu(&cc, 9000);
    assert_int_equal(cc.cwnd, 18000);
    assert_int_equal(cc.ssthresh, 18000);
    leat_cc_init(&cc, &leat_cc_cubic, 9000, NULL, now);
    leat_cc_on_mtu(&cc, 1200); /* a window that has not moved is the new size's */
    assert_int_equal(cc.cwnd, 12000);
}

static void the_curve_survives_a_shrinking_datagram(void **state)
{
    (void)state;
    leat_cc_init(&cc, &leat_cc_cubic, 1452, NULL, now);
    cc.cwnd = cc.ssthresh = 145200;
    lose_one(); /* 101640, W_max 145200 */
    now += 1;
    round_trip();
    leat_cc_on_mtu(&cc, 1200); /* 36.3 datagrams to go: K = 4.494 s */
    rounds(10);                /* target t = 1.1: 145200 - 0.4 * 3.394^3 * 1200 */
    assert_near(cc.cwnd, 126434, 100);
    rounds(36);
    assert_near(cc.cwnd, 145200, 60);
}

/* ---- HyStart++ ---- */

static leat_hystart hystart;
static leat_sent_acked one;
static bool done;

/* An ACK of one datagram; `sample` its RTT. first: it was sent after the round began. */
static uint64_t grow(leat_time sample, bool first)
{
    leat_cc_acked facts = {.acked = &one, .rtt = &rtt, .flight = &flight};

    flight.delivered += MDS;
    one = (leat_sent_acked){.bytes = MDS, .rtt_sample = true};
    one.rate.prior_delivered = first ? hystart.round_end : hystart.round_end - 1;
    rtt.latest = sample;
    return leat_hystart_grow(&hystart, &facts, MDS, &done);
}

/* A round of n samples. */
static void hystart_round(leat_time sample, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        grow(sample, i == 0);
        if (done) {
            return;
        }
    }
}

static void begin_hystart(leat_time sample)
{
    leat_hystart_init(&hystart);
    flight.delivered = MDS;
    hystart_round(sample, 8);
    assert_false(hystart.in_css);
}

static void css_begins_when_the_least_rtt_grows_by_an_eighth(void **state)
{
    (void)state;
    begin_hystart(100 * MS);
    hystart_round(112 * MS + MS / 2 - 1, 20);
    assert_false(hystart.in_css);
    begin_hystart(100 * MS);
    hystart_round(112 * MS + MS / 2, 7);
    assert_false(hystart.in_css); /* 8 samples it takes */
    grow(112 * MS + MS / 2, false);
    assert_true(hystart.in_css);
}

static void the_threshold_is_4_to_16_ms(void **state)
{
    (void)state;
    begin_hystart(8 * MS);
    hystart_round(12 * MS - 1, 8);
    assert_false(hystart.in_css);
    begin_hystart(8 * MS);
    hystart_round(12 * MS, 8);
    assert_true(hystart.in_css);
    begin_hystart(400 * MS);
    hystart_round(416 * MS - 1, 8);
    assert_false(hystart.in_css);
    begin_hystart(400 * MS);
    hystart_round(416 * MS, 8);
    assert_true(hystart.in_css);
}

static void one_low_sample_in_a_round_is_enough_to_go_on(void **state)
{
    (void)state;
    begin_hystart(100 * MS);
    grow(100 * MS, true);
    for (unsigned i = 0; i < 30; i++) {
        grow(150 * MS, false);
    }
    assert_false(hystart.in_css);
}

static void css_grows_at_a_quarter(void **state)
{
    (void)state;
    begin_hystart(100 * MS);
    assert_int_equal(grow(200 * MS, true), 1200);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(grow(200 * MS, false), 1200);
    }
    assert_true(hystart.in_css);
    assert_int_equal(grow(200 * MS, false), 300);
}

static void css_ends_slow_start_after_five_rounds(void **state)
{
    (void)state;
    begin_hystart(100 * MS);
    hystart_round(200 * MS, 8);
    assert_true(hystart.in_css);
    for (unsigned i = 0; i < 4; i++) {
        hystart_round(200 * MS, 8);
        assert_false(done);
    }
    grow(200 * MS, true); /* the fifth round of CSS is over */
    assert_true(done);
}

static void a_false_alarm_resumes_slow_start(void **state)
{
    (void)state;
    begin_hystart(100 * MS);
    hystart_round(150 * MS, 8);
    assert_true(hystart.in_css);
    hystart_round(150 * MS, 8); /* not below the baseline */
    assert_true(hystart.in_css);
    hystart_round(149 * MS, 8);
    assert_false(hystart.in_css);
    assert_int_equal(grow(149 * MS, false), 1200);
}

static void css_is_seen_in_the_window_and_in_the_state(void **state)
{
    (void)state;
    rounds(1); /* 10 -> 20 datagrams; each ACK is one sample, so rounds here never have eight */
    assert_int_equal(cc.cwnd, 24000);
    for (unsigned r = 0; r < 8 && strcmp(leat_cc_state_name(&cc), "slow_start") == 0; r++) {
        uint64_t first = leat_sent_next_pn(&sent);

        fill();
        now += RTT;
        leat_rtt_sample(&rtt, RTT + r * 20 * MS, 0, now);
        for (uint64_t pn = first; pn < leat_sent_next_pn(&sent); pn++) {
            ack(pn, pn, 0);
        }
    }
    assert_string_equal(leat_cc_state_name(&cc), "conservative_slow_start");
    assert_int_equal(cc.ssthresh, UINT64_MAX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_loss_takes_the_window_to_seven_tenths),
        TEST(the_first_ack_after_a_loss_is_in_the_reno_friendly_region),
        TEST(the_window_follows_the_cubic),
        TEST(growth_is_at_most_half_a_window_a_round),
        TEST(a_small_window_grows_as_reno_would),
        TEST(a_second_loss_below_w_max_leaves_room_to_others),
        TEST(a_loss_at_the_peak_keeps_w_max),
        TEST(losses_of_one_round_reduce_once),
        TEST(a_mark_reduces_like_a_loss),
        TEST(persistent_congestion_starts_anew_from_ssthresh),
        TEST(the_curve_stands_still_while_the_application_sends_little),
        TEST(an_idle_time_does_not_count),
        TEST(a_week_without_loss_ends_at_the_largest_window),
        TEST(a_long_time_on_the_curve_overflows_nothing),
        TEST(a_loss_that_was_none_is_taken_back),
        TEST(a_loss_with_a_mark_is_not_taken_back),
        TEST(what_is_given_back_respects_the_new_floor),
        TEST(a_spurious_loss_in_slow_start_gives_slow_start_back),
        TEST(a_smaller_datagram_moves_the_floors_alone),
        TEST(the_curve_survives_a_shrinking_datagram),
        TEST(css_begins_when_the_least_rtt_grows_by_an_eighth),
        TEST(the_threshold_is_4_to_16_ms),
        TEST(one_low_sample_in_a_round_is_enough_to_go_on),
        TEST(css_grows_at_a_quarter),
        TEST(css_ends_slow_start_after_five_rounds),
        TEST(a_false_alarm_resumes_slow_start),
        TEST(css_is_seen_in_the_window_and_in_the_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
