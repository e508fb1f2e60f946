/* cc/cc.h with NewReno (RFC 9002 §7), driven through a real leat_sent, on windows worked out by
 * hand.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cc/cc.h"
#include "mem/mem.h"

#define MS   LEAT_MILLISECOND
#define MDS  1200u
#define DATA (LEAT_SENT_ELICITING | LEAT_SENT_IN_FLIGHT)

static leat_mem *mem;
static leat_flight flight;
static leat_sent sent;
static leat_rtt rtt;
static leat_cc cc;

static const leat_frame_ops no_ops[1];

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, no_ops, NULL);
    leat_rtt_init(&rtt, 0);
    leat_rtt_sample(&rtt, 100 * MS, 0, 0);
    leat_cc_init(&cc, &leat_cc_newreno, MDS, NULL, 0);
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

static void send_one(leat_time now)
{
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_commit(&sent, now, MDS, DATA, 0);
    leat_cc_on_sent(&cc, &flight, now, MDS);
}

/* Sends until the window is full. */
static void fill(leat_time now)
{
    while (leat_cc_room(&cc, &flight) >= MDS) {
        send_one(now);
    }
}

/* Acknowledges [first, last], with `ce` marks; what that makes lost by number goes along. */
static void ack(uint64_t first, uint64_t last, leat_time now, uint64_t ce)
{
    leat_sent_loss_rule rule = {
        .now = now,
        .delay = LEAT_TIME_NEVER,
        .persistent = LEAT_TIME_NEVER,
        .packets = 3,
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

/* A window of cwnd bytes in congestion avoidance, nothing in flight. */
static void avoid_with(uint64_t cwnd)
{
    cc.cwnd = cwnd;
    cc.ssthresh = cwnd;
}

static void the_initial_window_follows_the_datagram_size(void **state)
{
    (void)state;
    assert_int_equal(leat_cc_initial_window(1200), 12000);
    assert_int_equal(leat_cc_initial_window(1452), 14520);
    assert_int_equal(leat_cc_initial_window(1500), 14720);
    assert_int_equal(leat_cc_initial_window(9000), 18000);
    assert_int_equal(leat_cc_initial_window(65527), 131054);
    assert_int_equal(cc.cwnd, 12000);
    assert_string_equal(leat_cc_state_name(&cc), "slow_start");
}

static void slow_start_doubles_the_window_each_round(void **state)
{
    (void)state;
    fill(0);
    assert_int_equal(flight.bytes, 12000);
    ack(0, 9, 100 * MS, 0);
    assert_int_equal(cc.cwnd, 24000);
    fill(100 * MS);
    ack(10, 29, 200 * MS, 0);
    assert_int_equal(cc.cwnd, 48000);
    assert_int_equal(cc.ssthresh, UINT64_MAX);
}

static void a_loss_halves_the_window_once_a_round(void **state)
{
    (void)state;
    fill(10 * MS);          /* 0 to 9 */
    ack(1, 4, 110 * MS, 0); /* 0 is lost; 1 to 4 were sent before the reduction and add nothing */
    assert_int_equal(cc.cwnd, 6000);
    assert_int_equal(cc.ssthresh, 6000);
    assert_int_equal(cc.recovery_start, 110 * MS);
    assert_string_equal(leat_cc_state_name(&cc), "recovery");
    send_one(110 * MS);     /* 10 */
    ack(9, 9, 111 * MS, 0); /* 5 and 6 are lost, of the same window: no further reduction */
    assert_int_equal(cc.cwnd, 6000);
    ack(7, 8, 112 * MS, 0); /* old ones add nothing either */
    assert_int_equal(cc.cwnd, 6000);
    /* what was sent after the reduction ends the recovery; its loss would be a new one */
    fill(112 * MS);           /* from 11 */
    ack(14, 14, 212 * MS, 0); /* 10 and 11 are lost; 10 left at the start itself, 11 after */
    assert_int_equal(cc.cwnd, 3000);
    assert_int_equal(cc.recovery_start, 212 * MS);
}

static void recovery_ends_with_the_first_packet_sent_in_it(void **state)
{
    (void)state;
    fill(10 * MS);
    ack(1, 9, 110 * MS, 0);
    assert_string_equal(leat_cc_state_name(&cc), "recovery");
    fill(111 * MS);
    ack(10, 10, 211 * MS, 0);
    assert_string_equal(leat_cc_state_name(&cc), "congestion_avoidance");
}

static void avoidance_adds_one_datagram_a_window(void **state)
{
    (void)state;
    avoid_with(12000);
    fill(0);
    for (uint64_t pn = 0; pn < 9; pn++) {
        ack(pn, pn, 100 * MS, 0);
        assert_int_equal(cc.cwnd, 12000);
    }
    ack(9, 9, 100 * MS, 0);
    assert_int_equal(cc.cwnd, 13200);
    fill(100 * MS); /* 11 */
    ack(10, 20, 200 * MS, 0);
    assert_int_equal(cc.cwnd, 14400);
    assert_string_equal(leat_cc_state_name(&cc), "congestion_avoidance");
}

static void what_is_left_over_counts_toward_the_next_datagram(void **state)
{
    (void)state;
    avoid_with(12000);
    fill(0);
    ack(0, 8, 100 * MS, 0); /* 10800 toward 12000 */
    fill(100 * MS);
    ack(9, 10, 200 * MS, 0); /* 13200: one datagram, 1200 left */
    assert_int_equal(cc.cwnd, 13200);
    fill(200 * MS);
    ack(11, 19, 300 * MS, 0);
    assert_int_equal(cc.cwnd, 13200);
    fill(300 * MS);
    ack(20, 20, 400 * MS, 0); /* ten more make 13200 */
    assert_int_equal(cc.cwnd, 14400);
}

static void slow_start_grows_with_half_a_window(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        send_one(0);
    }
    ack(0, 5, 100 * MS, 0);
    assert_int_equal(cc.cwnd, 19200);
}

/* One ACK for what was sent under a full window and for what was not. */
static void an_ack_across_the_mark_counts_as_full(void **state)
{
    (void)state;
    avoid_with(12000);
    fill(0);
    ack(0, 8, 100 * MS, 0);
    send_one(100 * MS);
    send_one(100 * MS);
    ack(9, 11, 200 * MS, 0);
    assert_int_equal(cc.cwnd, 13200);
    send_one(200 * MS); /* and what follows does not */
    ack(12, 12, 300 * MS, 0);
    for (uint64_t i = 13; i < 40; i++) {
        send_one(300 * MS);
        ack(i, i, 400 * MS, 0);
    }
    assert_int_equal(cc.cwnd, 13200);
}

static void what_left_at_the_start_of_recovery_is_of_the_old_window(void **state)
{
    (void)state;
    fill(10 * MS);            /* 0 to 9 */
    ack(1, 9, 110 * MS, 0);   /* 0 is lost */
    send_one(110 * MS);       /* 10, at the very start */
    fill(111 * MS);           /* 11 to 14 */
    ack(11, 13, 211 * MS, 0); /* 10 is lost */
    assert_int_equal(cc.ssthresh, 6000);
    assert_int_equal(cc.recovery_start, 110 * MS);
}

static void an_unused_window_does_not_grow(void **state)
{
    (void)state;
    /* slow start, two packets a round: less than half the window */
    for (uint64_t i = 0; i < 20; i++) {
        send_one(i * 100 * MS);
        send_one(i * 100 * MS);
        ack(2 * i, 2 * i + 1, (i + 1) * 100 * MS, 0);
    }
    assert_int_equal(cc.cwnd, 12000);
    /* avoidance, nine of ten: not full */
    avoid_with(12000);
    for (uint64_t i = 0; i < 20; i++) {
        for (int k = 0; k < 9; k++) {
            send_one(3000 * MS);
        }
        ack(40 + 9 * i, 48 + 9 * i, 3100 * MS, 0);
    }
    assert_int_equal(cc.cwnd, 12000);
    /* and one that is filled again grows again */
    fill(4000 * MS);
    ack(220, 229, 4100 * MS, 0);
    assert_int_equal(cc.cwnd, 13200);
}

static void the_window_never_falls_below_two_datagrams(void **state)
{
    uint64_t pn = 0;

    (void)state;
    for (int i = 1; i < 20; i++) {
        leat_time now = (leat_time)i * 1000 * MS;

        for (int k = 0; k < 4; k++) {
            send_one(now);
        }
        ack(pn + 3, pn + 3, now + 100 * MS, 0);
        pn = leat_sent_next_pn(&sent);
    }
    assert_int_equal(cc.cwnd, 2 * MDS);
    assert_int_equal(cc.ssthresh, 2 * MDS);
}

static void a_congestion_mark_is_a_loss_without_losing(void **state)
{
    (void)state;
    fill(10 * MS);
    ack(0, 1, 110 * MS, 1);
    assert_int_equal(cc.cwnd, 6000);
    ack(2, 3, 111 * MS, 1); /* of the same window */
    assert_int_equal(cc.cwnd, 6000);
    ack(4, 9, 112 * MS, 0);
    fill(112 * MS);
    ack(10, 10, 212 * MS, 1);
    assert_int_equal(cc.cwnd, 3000);
}

static void persistent_congestion_starts_over_from_the_least_window(void **state)
{
    leat_sent_lost lost = {
        .packets = 5, .congestion_bytes = 5 * MDS, .newest_sent_at = 10 * MS, .persistent = true};

    (void)state;
    cc.cwnd = 120000;
    leat_cc_on_recovery(&cc, 2000 * MS, NULL, &lost, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, 2400);
    assert_int_equal(cc.ssthresh, 60000);
    assert_int_equal(cc.recovery_start, 0);
    assert_string_equal(leat_cc_state_name(&cc), "slow_start");
    fill(2000 * MS);
    ack(0, 1, 2100 * MS, 0);
    assert_int_equal(cc.cwnd, 4800);
}

static void losses_that_are_no_congestion_change_nothing(void **state)
{
    leat_sent_lost lost = {.packets = 1, .bytes = 1450};

    (void)state;
    leat_cc_on_recovery(&cc, 100 * MS, NULL, &lost, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, 12000);
}

/* Twice the window each round would pass 2^64 within the hour. */
static void a_week_without_loss_overflows_nothing(void **state)
{
    leat_sent_acked acked = {.packets = 1};
    leat_sent_lost none = {.next_at = LEAT_TIME_NEVER};
    const leat_time week = 7 * 24 * 3600 * LEAT_SECOND;
    uint64_t rounds = 0;

    (void)state;
    for (leat_time now = 0; now < week; now += 10 * LEAT_SECOND) {
        acked.now = now;
        acked.bytes = cc.cwnd;
        acked.bytes_after = cc.cwnd;
        flight.bytes = cc.cwnd;
        leat_cc_on_sent(&cc, &flight, now, MDS);
        flight.delivered += cc.cwnd;
        flight.bytes = 0;
        leat_cc_on_recovery(&cc, now, &acked, &none, 0, &rtt, &flight);
        leat_cc_check(&cc);
        /* the second half of the week in avoidance */
        if (++rounds == 30000) {
            cc.ssthresh = cc.cwnd / 2;
        }
    }
    assert_int_equal(cc.cwnd, LEAT_CWND_MAX);
    leat_cc_on_idle_restart(&cc, &flight, 2 * week);
    leat_cc_on_app_limited(&cc, &flight, 2 * week);
    leat_cc_check(&cc);
    assert_int_equal(cc.cwnd, LEAT_CWND_MAX);
    /* and it still knows how to halve */
    none.congestion_bytes = MDS;
    none.newest_sent_at = 2 * week;
    leat_cc_on_recovery(&cc, 2 * week + 1, NULL, &none, 0, &rtt, &flight);
    assert_int_equal(cc.cwnd, LEAT_CWND_MAX / 2);
}

static void a_datagram_size_that_changes_moves_the_bounds(void **state)
{
    (void)state;
    leat_cc_on_mtu(&cc, 1452); /* nothing was learned yet: the initial window of the new size */
    assert_int_equal(cc.cwnd, 14520);
    leat_cc_on_mtu(&cc, 1200);
    assert_int_equal(cc.cwnd, 12000);
    leat_cc_init(&cc, &leat_cc_newreno, 9000, NULL, 0);
    cc.cwnd = 18000;
    cc.ssthresh = 18000;
    leat_cc_on_mtu(&cc, 1200); /* shrinks: what is in the window stays, its floor sinks */
    assert_int_equal(cc.cwnd, 18000);
    assert_int_equal(leat_cc_min_window(&cc), 2400);
    cc.cwnd = 2400;
    cc.ssthresh = 2400;
    leat_cc_on_mtu(&cc, 65527); /* grows: the floor rises above the window */
    assert_int_equal(cc.cwnd, 131054);
    assert_int_equal(cc.ssthresh, 131054);
    leat_cc_on_mtu(&cc, 1200);
    leat_cc_check(&cc);
    /* packets of the old size still come back */
    avoid_with(2400);
    flight.bytes = 0;
    fill(0);
    ack(0, 1, 100 * MS, 0);
    assert_int_equal(cc.cwnd, 3600);
}

static void a_packet_sent_at_time_0_can_be_lost(void **state)
{
    (void)state;
    fill(0);
    ack(3, 3, 0, 0);
    assert_int_equal(cc.cwnd, 6000);
    assert_true(cc.recovery_start > 0);
}

static void a_controller_from_outside_sets_its_window(void **state)
{
    int mine = 0;

    (void)state;
    leat_cc_init(&cc, &leat_cc_fixed, MDS, &mine, 0);
    assert_ptr_equal(cc.user, &mine);
    leat_cc_set(&cc, 100000, 5000000);
    fill(0);
    ack(0, 10, 100 * MS, 3);
    assert_int_equal(cc.cwnd, 100000);
    assert_int_equal(cc.pacing_rate, 5000000);
    leat_cc_set(&cc, 0, 0);
    assert_int_equal(cc.cwnd, 2400);
    leat_cc_set(&cc, UINT64_MAX, 0);
    assert_int_equal(cc.cwnd, LEAT_CWND_MAX);
    assert_string_equal(leat_cc_state_name(&cc), "fixed");
}

static void controllers_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(leat_cc_find("newreno"), &leat_cc_newreno);
    assert_ptr_equal(leat_cc_find("fixed"), &leat_cc_fixed);
    assert_null(leat_cc_find("vegas"));
}

/* A controller of the test's that writes down the order of its calls. */
static char journal[64];

static void note_init(leat_cc *c, leat_time now)
{
    (void)c;
    (void)now;
    journal[0] = 0;
}

static void note_acked(leat_cc *c, const leat_cc_acked *facts)
{
    (void)c;
    assert_int_equal(facts->acked->bytes, MDS);
    assert_int_equal(facts->ce, 2);
    strcat(journal, "acked ");
}

static void note_lost(leat_cc *c, const leat_sent_loss *loss, const leat_flight *f)
{
    (void)c;
    (void)f;
    assert_int_equal(loss->size, MDS);
    strcat(journal, "lost ");
}

static void note_congestion(leat_cc *c, const leat_cc_congestion *congestion)
{
    (void)c;
    assert_int_equal(congestion->lost_bytes, MDS);
    assert_int_equal(congestion->in_flight, 4 * MDS);
    assert_int_equal(congestion->sent_at,
                     5 * MS); /* of the newest acknowledged, since it was marked */
    strcat(journal, "congestion ");
}

static void note_persistent(leat_cc *c, leat_time now)
{
    (void)c;
    (void)now;
    strcat(journal, "persistent ");
}

static void note_spurious(leat_cc *c, const leat_sent_acked *acked, const leat_flight *f)
{
    (void)c;
    (void)acked;
    (void)f;
    strcat(journal, "spurious ");
}

static const leat_cc_ops noting = {
    .name = "noting",
    .init = note_init,
    .on_acked = note_acked,
    .on_packet_lost = note_lost,
    .on_congestion = note_congestion,
    .on_persistent = note_persistent,
    .on_spurious = note_spurious,
};

static void visit(void *ctx, const leat_sent_loss *loss)
{
    leat_cc_on_packet_lost(ctx, loss, &flight);
}

static void a_controller_hears_losses_before_acknowledgements(void **state)
{
    leat_sent_loss_rule rule = {
        .now = 100 * MS,
        .delay = LEAT_TIME_NEVER,
        .persistent = LEAT_TIME_NEVER,
        .packets = 3,
        .visit = visit,
        .visit_ctx = &cc,
    };
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    leat_cc_init(&cc, &noting, MDS, NULL, 0);
    for (int i = 0; i < 4; i++) {
        send_one(i == 3 ? 5 * MS : 0);
    }
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 3, 100 * MS, 0), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 3, 4), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 0);
    leat_sent_detect_lost(&sent, &rule, &lost);
    lost.persistent = true;
    acked.spurious = 1;
    leat_cc_on_recovery(&cc, 100 * MS, &acked, &lost, 2, &rtt, &flight);
    assert_string_equal(journal, "lost spurious congestion persistent acked ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_initial_window_follows_the_datagram_size),
        TEST(slow_start_doubles_the_window_each_round),
        TEST(a_loss_halves_the_window_once_a_round),
        TEST(recovery_ends_with_the_first_packet_sent_in_it),
        TEST(avoidance_adds_one_datagram_a_window),
        TEST(what_is_left_over_counts_toward_the_next_datagram),
        TEST(slow_start_grows_with_half_a_window),
        TEST(an_ack_across_the_mark_counts_as_full),
        TEST(what_left_at_the_start_of_recovery_is_of_the_old_window),
        TEST(an_unused_window_does_not_grow),
        TEST(the_window_never_falls_below_two_datagrams),
        TEST(a_congestion_mark_is_a_loss_without_losing),
        TEST(persistent_congestion_starts_over_from_the_least_window),
        TEST(losses_that_are_no_congestion_change_nothing),
        TEST(a_week_without_loss_overflows_nothing),
        TEST(a_datagram_size_that_changes_moves_the_bounds),
        TEST(a_packet_sent_at_time_0_can_be_lost),
        TEST(a_controller_from_outside_sets_its_window),
        TEST(controllers_are_found_by_name),
        TEST(a_controller_hears_losses_before_acknowledgements),
    };

    return cmocka_run_group_tests_name("cc.newreno", tests, NULL, NULL);
}
