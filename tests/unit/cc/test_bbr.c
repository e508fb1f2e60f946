/* cc/bbr*.c (draft-ietf-ccwg-bbr-06) on a path made of arithmetic: a bottleneck of 10 Mbit/s
 * (1.25 MB/s) and 100 ms, so a BDP of 125,000 bytes, with a real leat_sent before it. The test
 * cases of the draft's appendix A are named with their numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cc/bbr.h"
#include "cc/pacer.h"
#include "mem/mem.h"

#define MS   LEAT_MILLISECOND
#define MDS  1250u
#define DATA (LEAT_SENT_ELICITING | LEAT_SENT_IN_FLIGHT)
#define RTT  (100 * MS)
#define RATE 1250000u
#define BDP  125000u

static leat_mem *mem;
static leat_flight flight;
static leat_sent sent;
static leat_rtt rtt;
static leat_cc cc;
static leat_pacer pacer;
static leat_time now;

static const leat_frame_ops no_ops[1];

/* ---- the path ---- */

typedef struct arrival {
    uint64_t pn;
    leat_time at; /* of its ACK */
} arrival;

#define UNDER_WAY 4096
static struct {
    uint64_t rate;
    leat_time rtt;
    uint64_t queue; /* bytes; 0: any */
    leat_time idle_at;
    uint64_t drop_every; /* packets; 0: none */
    uint64_t sent;
    uint64_t dropped;
    uint64_t app_rate; /* bytes a second that there are to send; 0: any */
    leat_time app_at;
    bool paused;
    arrival ring[UNDER_WAY];
    size_t head, tail;
} path;

static leat_bbr *bbr(void)
{
    return leat_bbr_of(&cc);
}

static bool is(const char *state)
{
    return strcmp(leat_cc_state_name(&cc), state) == 0;
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, no_ops, NULL);
    leat_rtt_init(&rtt, 0);
    now = LEAT_SECOND;
    leat_cc_init(&cc, &leat_cc_bbr, MDS, NULL, now);
    leat_pacer_init(&pacer, MDS);
    memset(&path, 0, sizeof(path));
    path.rate = RATE;
    path.rtt = RTT;
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

/* Into the bottleneck: dropped, or its ACK comes when it is through. */
static void carry(uint64_t pn)
{
    leat_time wait = leat_time_since(path.idle_at, now);

    path.sent++;
    if ((path.drop_every && path.sent % path.drop_every == 0) ||
        (path.queue && wait * path.rate / LEAT_SECOND + MDS > path.queue)) {
        path.dropped++;
        return;
    }
    path.idle_at = now + wait + MDS * LEAT_SECOND / path.rate;
    path.ring[path.tail++ % UNDER_WAY] = (arrival){pn, path.idle_at + path.rtt};
    assert_true(path.tail - path.head < UNDER_WAY);
}

static bool has_data(void)
{
    return !path.paused && (path.app_rate == 0 || path.app_at <= now);
}

static void send_all(void)
{
    uint64_t budget = leat_pacer_budget(&pacer, now);

    if (flight.bytes == 0 && has_data()) {
        leat_cc_on_idle_restart(&cc, &flight, now);
    }
    while (has_data() && budget > 0 && leat_cc_room(&cc, &flight) >= MDS) {
        uint64_t pn = leat_sent_next_pn(&sent);

        assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
        leat_sent_commit(&sent, now, MDS, DATA, 0);
        leat_cc_on_sent(&cc, &flight, now, MDS);
        leat_pacer_on_sent(&pacer, now, MDS);
        budget -= budget < MDS ? budget : MDS;
        if (path.app_rate) {
            path.app_at = leat_time_max(path.app_at, now) + MDS * LEAT_SECOND / path.app_rate;
        }
        carry(pn);
    }
    if (!has_data() && leat_cc_room(&cc, &flight) >= MDS) {
        leat_cc_on_app_limited(&cc, &flight, now);
    }
}

static void visit(void *ctx, const leat_sent_loss *loss)
{
    (void)ctx;
    leat_cc_on_packet_lost(&cc, loss, &flight);
}

static void ack(uint64_t pn, uint64_t ce)
{
    leat_sent_loss_rule rule = {
        .now = now,
        .delay = LEAT_TIME_NEVER,
        .persistent = LEAT_TIME_NEVER,
        .keep = LEAT_SECOND,
        .packets = 3,
        .visit = visit,
    };
    leat_sent_acked acked;
    leat_sent_lost lost;

    assert_int_equal(leat_sent_ack_start(&sent, &acked, pn, now, cc.recovery_start), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, pn, pn + 1), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, rtt.min);
    if (acked.rtt_sample) {
        leat_rtt_sample(&rtt, now - acked.largest_sent_at, 0, now);
    }
    leat_sent_detect_lost(&sent, &rule, &lost);
    leat_cc_on_recovery(&cc, now, &acked, &lost, ce, &rtt, &flight);
    leat_pacer_set_rate(&pacer, &cc, &rtt, now);
    leat_cc_check(&cc);
}

/* The next thing that happens, but not after `until`. */
static void step(leat_time until)
{
    leat_time next = until;

    send_all();
    if (path.head != path.tail) {
        next = leat_time_min(next, path.ring[path.head % UNDER_WAY].at);
    }
    if (!path.paused && leat_cc_room(&cc, &flight) >= MDS) {
        leat_time at = leat_time_max(leat_pacer_next_at(&pacer), path.app_rate ? path.app_at : 0);

        next = leat_time_min(next, leat_time_max(at, now + 1));
    }
    now = next;
    if (path.head != path.tail && path.ring[path.head % UNDER_WAY].at <= now) {
        ack(path.ring[path.head++ % UNDER_WAY].pn, 0);
    }
}

static void run_for(leat_time t)
{
    leat_time until = now + t;

    while (now < until) {
        step(until);
    }
}

/* Until it is in that state. False: not within t. */
static bool reaches(const char *state, leat_time t)
{
    leat_time until = now + t;

    while (now < until && !is(state)) {
        step(until);
    }
    return is(state);
}

static void assert_near(uint64_t value, uint64_t want, uint64_t percent)
{
    assert_in_range(value, want - want * percent / 100, want + want * percent / 100);
}

/* ---- start-up ---- */

static void it_begins_with_the_window_in_a_round_trip_times_2_77(void **state)
{
    (void)state;
    assert_true(is("startup"));
    assert_int_equal(cc.cwnd, 12500);
    assert_int_equal(cc.pacing_rate, 0); /* no RTT: the initial window goes at once */
    while (!leat_rtt_has_sample(&rtt)) {
        step(now + RTT);
    }
    /* 12500 bytes in 101 ms (a packet takes 1 ms), times 2.77 */
    assert_in_range(cc.pacing_rate, 342820, 342822);
}

/* A.1 */
static void start_up_ends_when_bandwidth_grows_no_more(void **state)
{
    (void)state;
    assert_true(reaches("drain", 3 * LEAT_SECOND));
    assert_near(bbr()->max_bw, RATE, 2);
    assert_true(bbr()->full_bw_reached && bbr()->full_bw_now);
    assert_int_equal(bbr()->full_bw_count, 3);
    assert_int_equal(bbr()->inflight_longterm, LEAT_BBR_INFINITE);
    /* 12.5 kB to 125 kB are 3.3 doublings, three rounds of no growth, and one to see the last */
    assert_true(now < LEAT_SECOND + 12 * 2 * RTT);
}

/* A.2 */
static void start_up_ends_by_loss_even_when_application_limited(void **state)
{
    (void)state;
    path.app_rate = RATE / 2;
    run_for(LEAT_SECOND);
    assert_true(is("startup"));
    path.drop_every = 5;
    run_for(4 * RTT);
    assert_false(is("startup")); /* nor drain: there is no queue */
    assert_true(bbr()->full_bw_reached);
    assert_true(bbr()->inflight_longterm < LEAT_BBR_INFINITE);
}

static void a_little_loss_does_not_end_start_up(void **state)
{
    (void)state;
    path.rate = 10 * RATE;
    path.app_rate = 5 * RATE;
    path.drop_every = 70; /* 1.4 %, seven ranges a round */
    run_for(4 * LEAT_SECOND);
    assert_true(path.dropped > 200);
    assert_true(is("startup"));
}

/* A.7 */
static void without_loss_an_application_limited_flow_stays_in_start_up(void **state)
{
    (void)state;
    path.app_rate = RATE / 2;
    run_for(4 * LEAT_SECOND);
    assert_true(is("startup"));
    assert_true(bbr()->max_bw <= RATE / 2 + RATE / 50);
}

/* A.3 */
static void drain_empties_the_queue(void **state)
{
    (void)state;
    assert_true(reaches("drain", 3 * LEAT_SECOND));
    assert_int_equal(leat_bbr_pacing_gain(bbr()), 50);
    step(now + RTT);
    assert_near(cc.pacing_rate, RATE / 2 * 99 / 100, 2);
    assert_true(flight.bytes > BDP * 3 / 2);
    /* down is over as soon as it begins: nothing is queued */
    assert_true(reaches("probe_bw_cruise", LEAT_SECOND));
    assert_true(flight.bytes <= BDP + BDP / 50);
}

/* A.4 */
static void drain_ends_after_three_rounds_anyway(void **state)
{
    uint32_t round;

    (void)state;
    assert_true(reaches("drain", 3 * LEAT_SECOND));
    round = bbr()->round_count;
    path.rate = RATE * 4 / 10; /* less than the pacing of drain */
    assert_true(reaches("probe_bw_down", 5 * LEAT_SECOND));
    assert_int_equal(bbr()->round_count, round + 4);
    assert_true(flight.bytes > BDP);
}

/* ---- probing for bandwidth ---- */

static void the_cycle_goes_down_cruise_refill_up(void **state)
{
    leat_time cruise;

    (void)state;
    assert_true(reaches("probe_bw_cruise", 3 * LEAT_SECOND));
    cruise = now;
    run_for(RTT);
    assert_near(cc.pacing_rate, RATE * 99 / 100, 2);
    assert_near(cc.cwnd, 2 * BDP, 5);
    assert_near(flight.bytes, BDP, 5);
    assert_true(reaches("probe_bw_refill", 4 * LEAT_SECOND));
    assert_in_range(now - cruise, LEAT_SECOND, 3 * LEAT_SECOND + MS); /* A.8 */
    cruise = now;
    assert_true(reaches("probe_bw_up", LEAT_SECOND));
    assert_near(now - cruise, RTT, 10); /* one round */
    assert_int_equal(leat_bbr_pacing_gain(bbr()), 125);
    assert_int_equal(leat_bbr_cwnd_gain(bbr()), 225);
    assert_true(reaches("probe_bw_down", 2 * LEAT_SECOND)); /* A.5: a plateau */
    assert_true(bbr()->full_bw_now);
    assert_near(bbr()->max_bw, RATE, 2);
    assert_false(bbr()->prev_probe_too_high);
    assert_int_equal(leat_bbr_pacing_gain(bbr()), 90);
    assert_true(reaches("probe_bw_cruise", LEAT_SECOND));
}

static void a_faster_path_is_found(void **state)
{
    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    path.rate = RATE * 3;
    run_for(10 * LEAT_SECOND);
    assert_near(bbr()->max_bw, RATE * 3, 3);
}

static void a_slower_path_is_believed_after_two_cycles(void **state)
{
    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    path.rate = RATE / 2;
    run_for(15 * LEAT_SECOND); /* a probe of the RTT comes between */
    assert_near(bbr()->max_bw, RATE / 2, 3);
}

static void loss_in_a_probe_bounds_what_is_in_flight(void **state)
{
    (void)state;
    path.queue = BDP / 10;
    assert_true(reaches("probe_bw_cruise", 5 * LEAT_SECOND));
    run_for(4 * LEAT_SECOND); /* a probe overruns the queue */
    assert_true(bbr()->inflight_longterm < 2 * BDP);
    assert_true(bbr()->inflight_longterm > BDP * 7 / 10);
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    step(now + RTT);
    /* cruising leaves 15 % of it to others */
    assert_true(cc.cwnd <= bbr()->inflight_longterm * 85 / 100 + 1);
}

static void loss_outside_of_a_probe_bounds_the_short_term(void **state)
{
    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    assert_int_equal(bbr()->bw_shortterm, LEAT_BBR_INFINITE);
    path.drop_every = 2;
    run_for(3 * RTT);
    assert_true(bbr()->bw_shortterm < RATE);
    assert_true(bbr()->bw_shortterm >= RATE * 7 / 10 * 7 / 10 * 7 / 10);
    assert_near(bbr()->max_bw, RATE, 2); /* the long term stands */
    path.drop_every = 0;
    assert_true(reaches("probe_bw_refill", 4 * LEAT_SECOND));
    assert_int_equal(bbr()->bw_shortterm, LEAT_BBR_INFINITE);
}

static void a_round_with_losses_takes_no_more_than_three_tenths(void **state)
{
    leat_bbr_sample rs = {.flight = &flight};

    (void)state;
    cc.cwnd = 100000;
    leat_bbr_enter(&cc, LEAT_BBR_CRUISE);
    bbr()->bw_filter[1] = bbr()->max_bw = 1000000;
    bbr()->bw_latest = 99000; /* hardly anything arrived */
    bbr()->inflight_latest = 1000;
    bbr()->is_loss_in_round = true;
    bbr()->loss_round_start = true;
    leat_bbr_update_congestion(&cc, &rs);
    assert_int_equal(bbr()->bw_shortterm, 700000);
    assert_int_equal(bbr()->inflight_shortterm, 70000);
    bbr()->bw_latest = 643500; /* what arrived at 650000, paced 1 % below */
    bbr()->inflight_latest = 65000;
    bbr()->is_loss_in_round = true;
    leat_bbr_update_congestion(&cc, &rs);
    assert_int_equal(bbr()->bw_shortterm, 650000);
    assert_int_equal(bbr()->inflight_shortterm, 65000);
}

static void an_application_limited_sample_counts_if_it_is_higher(void **state)
{
    leat_bbr_sample rs = {.flight = &flight, .app_limited = true, .delivery_rate = 500000};

    (void)state;
    bbr()->bw_filter[0] = bbr()->max_bw = 1000000;
    leat_bbr_update_congestion(&cc, &rs);
    assert_int_equal(bbr()->bw_filter[1], 0);
    rs.delivery_rate = 1100000;
    leat_bbr_update_congestion(&cc, &rs);
    assert_int_equal(bbr()->max_bw, 1100000);
}

/* ---- the least RTT ---- */

/* A.10 */
static void the_rtt_is_probed_every_five_seconds(void **state)
{
    leat_time entered;

    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    assert_true(reaches("probe_rtt", 6 * LEAT_SECOND));
    entered = now;
    assert_int_equal(leat_bbr_cwnd_gain(bbr()), 50);
    run_for(150 * MS);
    assert_true(is("probe_rtt"));
    assert_near(cc.cwnd, BDP / 2, 3);
    assert_true(flight.app_limited > 0);
    assert_true(reaches("probe_bw_cruise", LEAT_SECOND));
    assert_true(now - entered >= 200 * MS);
    assert_near(bbr()->min_rtt, RTT, 2);
}

static void a_probe_of_the_rtt_lasts_200_ms_on_a_short_path(void **state)
{
    leat_time entered;

    (void)state;
    path.rtt = 5 * MS;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    assert_true(reaches("probe_rtt", 6 * LEAT_SECOND));
    entered = now;
    step(now + RTT);
    assert_int_equal(cc.cwnd, 4 * MDS); /* half of 6 is less than the least */
    assert_true(reaches("probe_bw_cruise", LEAT_SECOND));
    assert_in_range(now - entered, 200 * MS, 230 * MS);
    assert_int_equal(bbr()->probe_rtt_min_stamp, now); /* the next in 5 s from here */
}

/* A.11 */
static void an_idle_time_takes_the_place_of_a_probe(void **state)
{
    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    path.paused = true;
    run_for(6 * LEAT_SECOND);
    assert_int_equal(flight.bytes, 0);
    path.paused = false;
    send_all();
    assert_true(bbr()->idle_restart);
    assert_near(cc.pacing_rate, RATE * 99 / 100, 2); /* at bw, not faster */
    run_for(RTT + 10 * MS);
    assert_false(is("probe_rtt"));
    assert_false(bbr()->idle_restart);
}

/* ---- other ---- */

static void a_spurious_loss_in_start_up_is_taken_back(void **state)
{
    leat_sent_acked acked = {.spurious = 1000, .spurious_sent_at = UINT64_MAX - 1};
    leat_sent_lost none = {.next_at = LEAT_TIME_NEVER};

    (void)state;
    run_for(2 * RTT);
    path.drop_every = 5;
    assert_true(reaches("drain", 2 * LEAT_SECOND));
    assert_int_equal(bbr()->undo_state, LEAT_BBR_STARTUP);
    leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight);
    assert_true(is("startup"));
    assert_false(bbr()->full_bw_reached);
    assert_int_equal(bbr()->inflight_longterm, LEAT_BBR_INFINITE);
}

static void a_mark_in_a_probe_counts_as_too_much(void **state)
{
    (void)state;
    assert_true(reaches("probe_bw_up", 8 * LEAT_SECOND));
    run_for(RTT + 20 * MS);
    assert_true(is("probe_bw_up"));
    assert_true(path.head != path.tail);
    ack(path.ring[path.head++ % UNDER_WAY].pn, 1);
    assert_true(is("probe_bw_down"));
    assert_true(bbr()->inflight_longterm < 2 * BDP);
}

static void persistent_congestion_takes_the_window_to_the_least(void **state)
{
    leat_sent_lost lost = {.congestion_bytes = MDS, .persistent = true, .newest_sent_at = 1};

    (void)state;
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    lost.newest_sent_at = now;
    leat_cc_on_recovery(&cc, now, NULL, &lost, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, 2 * MDS);
    run_for(LEAT_SECOND); /* and comes back */
    assert_near(cc.cwnd, 2 * BDP, 10);
}

static void a_tiny_path_keeps_four_datagrams(void **state)
{
    (void)state;
    path.rate = 12500; /* 100 kbit/s */
    path.rtt = 10 * MS;
    run_for(20 * LEAT_SECOND);
    assert_true(cc.cwnd >= 4 * MDS);
    assert_near(bbr()->max_bw, 12500, 3);
}

/* Before the start is over the window is the initial one of the new size; later it stays, and the
 * path is used as before. */
static void a_datagram_size_that_shrinks_moves_the_start_alone(void **state)
{
    (void)state;
    assert_int_equal(cc.cwnd, leat_cc_initial_window(MDS));
    leat_cc_on_mtu(&cc, 1200);
    assert_int_equal(cc.cwnd, leat_cc_initial_window(1200));
    leat_cc_on_mtu(&cc, MDS);
    assert_true(reaches("probe_bw_cruise", 4 * LEAT_SECOND));
    uint64_t cwnd = cc.cwnd;
    leat_cc_on_mtu(&cc, 1200);
    leat_cc_check(&cc);
    assert_int_equal(cc.cwnd, cwnd);
    run_for(10 * LEAT_SECOND);
    assert_near(bbr()->max_bw, RATE, 3);
    assert_near(cc.cwnd, 2 * BDP, 10);
}

static void years_and_terabits_do_not_overflow(void **state)
{
    leat_sent_acked acked = {.bytes = 1 << 30, .bytes_after = 1 << 30, .eliciting = true};
    leat_sent_lost none = {.next_at = LEAT_TIME_NEVER};

    (void)state;
    acked.rate = (leat_rate_sample){.delivered = 1 << 30, .interval = 1};
    for (unsigned i = 0; i < 1000; i++) {
        now += 365 * 24 * 3600 * LEAT_SECOND / 100;
        acked.now = now;
        acked.newest_sent_at = i % 2 ? now - LEAT_SECOND * 3600 : now;
        flight.delivered += 1 << 30;
        acked.rate.prior_delivered = flight.delivered - 1;
        leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight);
        leat_cc_check(&cc);
        assert_true(cc.pacing_rate <= 3 * LEAT_BBR_RATE_MAX);
    }
    assert_int_equal(bbr()->max_bw, LEAT_BBR_RATE_MAX);
}

static void states_have_names(void **state)
{
    (void)state;
#define CHECK_NAME(name, text, pacing, cwnd)                                                       \
    leat_bbr_enter(&cc, LEAT_BBR_##name);                                                          \
    assert_string_equal(leat_cc_state_name(&cc), text);
    LEAT_BBR_STATE_LIST(CHECK_NAME)
#undef CHECK_NAME
    assert_ptr_equal(leat_cc_find("bbr"), &leat_cc_bbr);
    assert_ptr_equal(leat_cc_find("cubic"), &leat_cc_cubic);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_begins_with_the_window_in_a_round_trip_times_2_77),
        TEST(start_up_ends_when_bandwidth_grows_no_more),
        TEST(start_up_ends_by_loss_even_when_application_limited),
        TEST(a_little_loss_does_not_end_start_up),
        TEST(without_loss_an_application_limited_flow_stays_in_start_up),
        TEST(drain_empties_the_queue),
        TEST(drain_ends_after_three_rounds_anyway),
        TEST(the_cycle_goes_down_cruise_refill_up),
        TEST(a_faster_path_is_found),
        TEST(a_slower_path_is_believed_after_two_cycles),
        TEST(loss_in_a_probe_bounds_what_is_in_flight),
        TEST(loss_outside_of_a_probe_bounds_the_short_term),
        TEST(the_rtt_is_probed_every_five_seconds),
        TEST(a_round_with_losses_takes_no_more_than_three_tenths),
        TEST(a_probe_of_the_rtt_lasts_200_ms_on_a_short_path),
        TEST(an_application_limited_sample_counts_if_it_is_higher),
        TEST(an_idle_time_takes_the_place_of_a_probe),
        TEST(a_spurious_loss_in_start_up_is_taken_back),
        TEST(a_mark_in_a_probe_counts_as_too_much),
        TEST(persistent_congestion_takes_the_window_to_the_least),
        TEST(a_tiny_path_keeps_four_datagrams),
        TEST(a_datagram_size_that_shrinks_moves_the_start_alone),
        TEST(years_and_terabits_do_not_overflow),
        TEST(states_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
