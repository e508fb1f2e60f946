/* recovery/sent.h, case by case. test_sent_model.c holds it against a plain list.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sent_fixture.h"

static leat_mem *mem;
static told t;
static leat_flight flight;
static leat_sent sent;

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    mem = fixture_mem();
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, frame_ops, &t);
    return 0;
}

static int tear_down(void **state)
{
    leat_mem_stats stats;

    (void)state;
    leat_sent_free(&sent);
    leat_mem_stats_get(mem, &stats);
    assert_int_equal(stats.obj_live, 0);
    leat_mem_free(mem);
    return 0;
}

static void an_ack_takes_packets_out_of_flight_and_tells_their_frames(void **state)
{
    leat_sent_acked acked;

    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        send_packet(&sent, &t, i * MS, 1000, DATA, 10 * i, 3);
    }
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 5000);
    assert_int_equal(ack_one(&sent, &acked, 1, 3, 50 * MS), LEAT_OK);
    assert_int_equal(flight.bytes, 2000);
    assert_int_equal(acked.packets, 3);
    assert_int_equal(acked.bytes, 3000);
    assert_int_equal(acked.prior_in_flight, 5000);
    assert_true(acked.rtt_sample);
    assert_int_equal(acked.largest_sent_at, 3 * MS);
    assert_int_equal(t.total, 9);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(t.acked[10 + i], 1);
        assert_int_equal(t.acked[i], 0);
    }
    assert_int_equal(leat_sent_acked_end(&sent), 4);
    /* the same again does nothing */
    assert_int_equal(ack_one(&sent, &acked, 1, 3, 51 * MS), LEAT_OK);
    assert_int_equal(acked.packets, 0);
    assert_false(acked.rtt_sample);
    assert_int_equal(t.total, 9);
    /* all of them: two new, and the largest among these */
    assert_int_equal(ack_one(&sent, &acked, 0, 4, 52 * MS), LEAT_OK);
    assert_int_equal(acked.packets, 2);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(t.total, 15);
    assert_false(leat_sent_has_eliciting(&sent));
}

static void an_ack_of_what_was_never_sent_is_an_error(void **state)
{
    leat_sent_acked acked;

    (void)state;
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 0), LEAT_ERR_INVALID);
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    assert_int_equal(ack_one(&sent, &acked, 0, 1, 0), LEAT_ERR_INVALID);
    assert_int_equal(ack_one(&sent, &acked, 1, 1, 0), LEAT_ERR_INVALID);
    assert_int_equal(ack_one(&sent, &acked, 0, UINT64_C(1) << 61, 0), LEAT_ERR_INVALID);
    assert_int_equal(flight.bytes, 1000);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 0), LEAT_OK);
    assert_int_equal(ack_one(&sent, &acked, 1, 1, 0), LEAT_ERR_INVALID);
}

static void an_ack_of_a_number_given_up_on_purpose_is_an_error(void **state)
{
    leat_sent_acked acked;

    (void)state;
    assert_false(leat_sent_skip(&sent)); /* nothing is in flight to hide it among */
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    assert_true(leat_sent_skip(&sent));
    assert_int_equal(send_packet(&sent, &t, 0, 1000, DATA, 1, 1), 2);
    leat_sent_check(&sent);
    assert_int_equal(ack_one(&sent, &acked, 0, 2, 0), LEAT_ERR_INVALID);
    /* an honest peer names the others */
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 2, 0, 0), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 2, 3), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 0, 1), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 0);
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(t.acked[0], 1);
    assert_int_equal(t.acked[1], 1);
}

static void ranges_out_of_order_are_refused(void **state)
{
    leat_sent_acked acked;

    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 2, 0, 0), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 2, 4), LEAT_ERR_INVALID);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 2, 2), LEAT_ERR_INVALID);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 2, 1), LEAT_ERR_INVALID);
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 5000);
}

static void three_numbers_above_make_a_packet_lost(void **state)
{
    leat_sent_loss_rule rule = usual_rule(1 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    for (uint64_t i = 0; i < 6; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 2, 2, 1 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 0);
    assert_int_equal(lost.next_at, 90 * MS);
    assert_int_equal(leat_sent_loss_time(&sent, rule.delay), 90 * MS);
    assert_int_equal(ack_one(&sent, &acked, 4, 4, 1 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    leat_sent_check(&sent);
    /* 0 and 1 are 3 and more below 4; 3 is not, and 5 is above */
    assert_int_equal(lost.packets, 2);
    assert_int_equal(lost.congestion_bytes, 2000);
    assert_int_equal(t.lost[0], 1);
    assert_int_equal(t.lost[1], 1);
    assert_int_equal(t.lost[3], 0);
    assert_int_equal(flight.bytes, 2000);
    assert_int_equal(flight.lost, 2000);
}

static void time_makes_a_packet_lost(void **state)
{
    leat_sent_loss_rule rule = usual_rule(90 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    send_packet(&sent, &t, 10 * MS, 1000, DATA, 1, 1);
    send_packet(&sent, &t, 20 * MS, 1000, DATA, 2, 1);
    assert_int_equal(ack_one(&sent, &acked, 2, 2, 89 * MS), LEAT_OK);
    rule.now = 90 * MS - 1;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 0);
    assert_int_equal(lost.next_at, 90 * MS);
    rule.now = 90 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_int_equal(lost.newest_sent_at, 0);
    assert_int_equal(lost.next_at, 100 * MS);
    rule.now = 100 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_int_equal(lost.newest_sent_at, 10 * MS);
    assert_int_equal(lost.next_at, LEAT_TIME_NEVER);
    assert_int_equal(flight.bytes, 0);
}

static void what_is_above_the_largest_acknowledged_is_never_lost_by_time(void **state)
{
    leat_sent_loss_rule rule = usual_rule(1000 * MS);
    leat_sent_lost lost;

    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 0);
    assert_int_equal(lost.next_at, LEAT_TIME_NEVER);
}

static void a_late_ack_shows_a_loss_to_have_been_spurious(void **state)
{
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        send_packet(&sent, &t, i * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 3, 3, 50 * MS), LEAT_OK);
    rule.now = 50 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 60 * MS), LEAT_OK);
    assert_int_equal(acked.spurious, 1);
    assert_int_equal(acked.packets, 0);
    assert_int_equal(acked.bytes, 0);
    assert_false(acked.rtt_sample);
    /* the frame was told of the loss, and is told no more */
    assert_int_equal(t.lost[0], 1);
    assert_int_equal(t.acked[0], 0);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 61 * MS), LEAT_OK);
    assert_int_equal(acked.spurious, 0);
}

static void lost_packets_are_forgotten_after_a_while(void **state)
{
    leat_sent_loss_rule rule = usual_rule(50 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 1, 3, 50 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_int_equal(sent.head, 0);
    rule.now = 50 * MS + rule.keep;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(sent.head, 4);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 300 * MS), LEAT_OK);
    assert_int_equal(acked.spurious, 0);
}

static void a_lost_mtu_probe_is_no_congestion(void **state)
{
    leat_sent_loss_rule rule = usual_rule(50 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    send_packet(&sent, &t, 0, 1450, DATA | LEAT_SENT_MTU_PROBE, 0, 1);
    for (uint64_t i = 1; i < 4; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 1, 3, 50 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_int_equal(lost.bytes, 1450);
    assert_int_equal(lost.congestion_bytes, 0);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(t.lost[0], 1);
}

static leat_sent_loss visited[8];
static int visits;

static void note_visit(void *ctx, const leat_sent_loss *loss)
{
    assert_ptr_equal(ctx, &sent);
    assert_int_equal(t.lost[loss->pn], 0); /* before its frames */
    visited[visits++] = *loss;
}

static void each_loss_is_shown_with_what_was_in_flight(void **state)
{
    leat_sent_loss_rule rule = usual_rule(50 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    visits = 0;
    rule.visit = note_visit;
    rule.visit_ctx = &sent;
    for (uint64_t i = 0; i < 5; i++) {
        send_packet(&sent, &t, i * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 4, 4, 50 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(visits, 2);
    assert_int_equal(visited[0].pn, 0);
    assert_int_equal(visited[0].in_flight, 1000);
    assert_int_equal(visited[1].pn, 1);
    assert_int_equal(visited[1].in_flight, 2000);
    assert_int_equal(visited[1].sent_at, 1 * MS);
    assert_true(visited[1].counts);
}

/* §7.6.2: two ack-eliciting packets lost, nothing between them acknowledged, far enough apart. */
static void a_long_run_of_losses_is_persistent_congestion(void **state)
{
    leat_sent_loss_rule rule = usual_rule(2000 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    rule.first_rtt_at = 1;
    rule.persistent = 900 * MS;
    /* packet 0 left before the first RTT sample and does not count; 1 to 4 span 900 ms exactly */
    send_packet(&sent, &t, 1, 1000, DATA, 0, 1);
    for (uint64_t i = 1; i <= 4; i++) {
        send_packet(&sent, &t, i * 300 * MS, 1000, DATA, i, 1);
    }
    send_packet(&sent, &t, 1900 * MS, 1000, DATA, 5, 1);
    assert_int_equal(ack_one(&sent, &acked, 5, 5, 2000 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 5);
    assert_false(lost.persistent);
    /* the next run: one nanosecond longer */
    send_packet(&sent, &t, 3000 * MS, 1000, DATA, 6, 1);
    send_packet(&sent, &t, 3900 * MS + 1, 1000, DATA, 7, 1);
    send_packet(&sent, &t, 3901 * MS, 1000, DATA, 8, 1);
    assert_int_equal(ack_one(&sent, &acked, 8, 8, 4001 * MS), LEAT_OK);
    rule.now = 4001 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 2);
    assert_true(lost.persistent);
}

static void an_acknowledged_packet_between_ends_the_run(void **state)
{
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    rule.persistent = 900 * MS;
    for (uint64_t i = 0; i < 6; i++) {
        send_packet(&sent, &t, (i + 1) * 400 * MS, 1000, DATA, i, 1);
    }
    /* 2 arrives; 0, 1 and 3, 4 are lost: no run is longer than 400 ms */
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 5, 2500 * MS, 0), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 5, 6), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 2, 3), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 0);
    rule.now = 2500 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 4);
    assert_false(lost.persistent);
}

static void a_run_of_losses_may_be_found_in_two_parts(void **state)
{
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    rule.persistent = 900 * MS;
    for (uint64_t i = 0; i < 8; i++) {
        send_packet(&sent, &t, (i + 1) * 400 * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 3, 3, 1690 * MS), LEAT_OK);
    rule.now = 800 * MS; /* 0 by number; 1 and 2 not by time yet */
    rule.delay = 2000 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    assert_false(lost.persistent);
    rule.now = 3300 * MS; /* 1 and 2 too: 400 to 1200 is 800 */
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 2);
    assert_false(lost.persistent);
    /* 3 was acknowledged: the run from 4 on is another */
    assert_int_equal(ack_one(&sent, &acked, 7, 7, 3300 * MS), LEAT_OK);
    rule.now = 9000 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 3);
    assert_false(lost.persistent);
}

static void packets_acknowledged_before_the_detector_comes_by_end_the_run_too(void **state)
{
    leat_sent_loss_rule rule = usual_rule(710 * MS);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    rule.delay = 5000 * MS;
    rule.persistent = 900 * MS;
    rule.keep = 0;
    for (uint64_t i = 0; i < 4; i++) {
        send_packet(&sent, &t, (4 + i) * 100 * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 3, 3, 710 * MS), LEAT_OK);
    leat_sent_detect_lost(&sent, &rule, &lost); /* 0, sent at 400 */
    assert_int_equal(lost.packets, 1);
    assert_int_equal(ack_one(&sent, &acked, 1, 3, 720 * MS), LEAT_OK);
    assert_int_equal(sent.head, 4);
    for (uint64_t i = 4; i < 8; i++) {
        send_packet(&sent, &t, 1500 * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 7, 7, 1600 * MS), LEAT_OK);
    rule.now = 1600 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost); /* 4, sent at 1500 */
    assert_int_equal(lost.packets, 1);
    assert_false(lost.persistent);
}

static void a_probe_tells_frames_once_and_its_packet_stays_in_flight(void **state)
{
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    send_packet(&sent, &t, 0, 100, DATA, 0, 0); /* a PING: nothing to send again */
    for (uint64_t i = 1; i < 5; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, 10 * i, 2);
    }
    assert_int_equal(leat_sent_requeue(&sent, 2), 2);
    leat_sent_check(&sent);
    assert_int_equal(t.total, 4);
    assert_int_equal(t.lost[10], 1);
    assert_int_equal(t.lost[21], 1);
    assert_int_equal(flight.bytes, 4100);
    /* the next probe brings the next ones */
    assert_int_equal(leat_sent_requeue(&sent, 5), 2);
    assert_int_equal(leat_sent_requeue(&sent, 5), 0);
    assert_int_equal(t.total, 8);
    /* acknowledged and lost, nobody is told twice */
    assert_int_equal(ack_one(&sent, &acked, 4, 4, 1 * MS), LEAT_OK);
    assert_int_equal(acked.bytes, 1000);
    rule.now = 1 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 2);
    assert_int_equal(t.total, 8);
}

static void a_receiver_that_only_acknowledges_keeps_nothing(void **state)
{
    leat_sent_acked acked;
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_lost lost;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        send_packet(&sent, &t, i * MS, 40, 0, 0, 1);
        leat_sent_check(&sent);
    }
    assert_int_equal(sent.head, 1000);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(t.total, 0);
    /* behind something in flight they are kept, until that is acknowledged */
    send_packet(&sent, &t, 1000 * MS, 100, DATA, 5, 1);
    for (uint64_t i = 0; i < 50; i++) {
        send_packet(&sent, &t, 1000 * MS, 40, 0, 0, 1);
    }
    leat_sent_check(&sent);
    assert_int_equal(sent.next_pn - sent.head, 51);
    assert_int_equal(leat_sent_loss_time(&sent, MS), LEAT_TIME_NEVER);
    assert_int_equal(ack_one(&sent, &acked, 1000, 1000, 1050 * MS), LEAT_OK);
    assert_int_equal(sent.head, sent.next_pn);
    /* nor does a lost packet kept for a late ACK make them pile up for ever */
    for (int i = 0; i < 4; i++) {
        send_packet(&sent, &t, 1100 * MS, 100, DATA, 6, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, sent.next_pn - 3, sent.next_pn - 1, 1150 * MS),
                     LEAT_OK);
    rule.now = 1150 * MS;
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        send_packet(&sent, &t, 1150 * MS + i * MS, 40, 0, 0, 1);
    }
    assert_int_equal(sent.head, sent.next_pn);
    assert_true(sent.packet_cap <= 256);
}

static void an_idle_connection_gives_its_storage_back(void **state)
{
    leat_sent_acked acked;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 2);
    }
    assert_true(leat_sent_memory(&sent) >= 1024 * (sizeof(leat_sent_packet) + 48));
    assert_int_equal(ack_one(&sent, &acked, 0, 989, 1 * MS), LEAT_OK);
    leat_sent_shrink(&sent);
    leat_sent_check(&sent);
    assert_true(leat_sent_memory(&sent) <= 16 * sizeof(leat_sent_packet) + 32 * 24);
    assert_int_equal(ack_one(&sent, &acked, 990, 999, 1 * MS), LEAT_OK);
    assert_int_equal(acked.packets, 10);
    assert_int_equal(t.total, 2000);
    leat_sent_shrink(&sent);
    assert_int_equal(leat_sent_memory(&sent), 0);
    send_packet(&sent, &t, 2 * MS, 1000, DATA, 5000, 1);
    leat_sent_check(&sent);
    assert_int_equal(ack_one(&sent, &acked, 0, 1000, 3 * MS), LEAT_OK);
    assert_int_equal(t.acked[5000], 1);
}

static void a_full_ring_holds_back_all_but_what_must_go_out(void **state)
{
    leat_sent_acked acked;

    (void)state;
    sent.packet_limit = 64;
    for (uint64_t i = 0; i < 64; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_ERR_LIMIT);
    assert_int_equal(leat_sent_begin(&sent, true), LEAT_OK);
    assert_int_equal(t.lost[0], 1); /* the oldest was given up for it */
    leat_sent_commit(&sent, 1, 1000, DATA, 0);
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 64000);
    assert_false(leat_sent_skip(&sent));
    assert_int_equal(ack_one(&sent, &acked, 0, 64, 1 * MS), LEAT_OK);
    assert_int_equal(acked.packets, 64);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_abort(&sent);
}

static void a_full_frame_ring_refuses_frames_and_not_packets(void **state)
{
    leat_err err = LEAT_OK;
    uint32_t added = 0;

    (void)state;
    sent.frame_limit = 256;
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    while (err == LEAT_OK) {
        err = leat_sent_add(&sent, KIND_BOTH, &t, added, 0, 0);
        added += err == LEAT_OK;
    }
    assert_int_equal(err, LEAT_ERR_LIMIT);
    assert_int_equal(added, 256);
    leat_sent_commit(&sent, 0, 1200, DATA, 0);
    leat_sent_check(&sent);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_ERR_LIMIT);
    assert_int_equal(leat_sent_begin(&sent, true), LEAT_OK);
    assert_int_equal(t.total, 256);
    assert_int_equal(leat_sent_add(&sent, KIND_BOTH, &t, 300, 0, 0), LEAT_OK);
    leat_sent_commit(&sent, 0, 1200, DATA, 0);
    leat_sent_check(&sent);
}

/* What the rings hold is never more than their share of the budget, nor than what others leave of
 * it; the smallest ones are always to be had. */
static void a_budget_used_up_holds_back_all_but_what_must_go_out(void **state)
{
    leat_sent_acked acked;
    leat_budget budget;
    size_t least;
    uint64_t count = 0, first;

    (void)state;
    leat_budget_init(&budget, 65536);
    leat_sent_set_budget(&sent, &budget);
    least = budget.used;
    assert_true(least > 0);
    assert_int_equal(leat_sent_memory(&sent), 0);
    while (leat_sent_begin(&sent, false) == LEAT_OK) {
        assert_int_equal(leat_sent_add(&sent, KIND_BOTH, &t, count++, 1, 0), LEAT_OK);
        leat_sent_commit(&sent, 0, 1000, DATA, 0);
        assert_int_equal(budget.used, leat_sent_charged(&sent));
        assert_true(budget.high <= budget.limit / LEAT_SENT_BUDGET_SHARE);
    }
    assert_true(count > LEAT_SENT_PACKETS_LEAST);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_ERR_LIMIT);
    assert_int_equal(leat_sent_begin(&sent, true), LEAT_OK);
    assert_int_equal(t.lost[0], 1);
    leat_sent_abort(&sent);
    assert_true(budget.refused > 0);
    leat_sent_forget(&sent, true);
    assert_int_equal(budget.used, least);

    /* Others hold the rest: no ring is larger than the smallest. */
    assert_true(leat_budget_charge(&budget, LEAT_BUDGET_STREAM_RECV, budget.limit - budget.used));
    first = leat_sent_next_pn(&sent);
    for (int i = 0; i < LEAT_SENT_PACKETS_LEAST; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, count++, 1);
    }
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_ERR_LIMIT);
    assert_int_equal(budget.used, budget.limit);
    assert_int_equal(leat_sent_memory(&sent), least);
    assert_int_equal(ack_one(&sent, &acked, first, first + 15, 1 * MS), LEAT_OK);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_abort(&sent);
    leat_sent_check(&sent);
    leat_sent_free(&sent);
    assert_int_equal(budget.by[LEAT_BUDGET_SENT], 0);
    assert_int_equal(budget.high, budget.limit);
}

static void memory_that_runs_out_changes_nothing(void **state)
{
    leat_sent_acked acked;
    uint64_t sent_ok = 0;
    uint64_t fault;

    (void)state;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_ERR_NOMEM);
    assert_int_equal(leat_sent_begin(&sent, true), LEAT_ERR_NOMEM);
    for (fault = 1; fault < 12; fault++) {
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, fault, true);
        for (int i = 0; i < 200; i++) {
            if (leat_sent_begin(&sent, false) != LEAT_OK) {
                break;
            }
            if (leat_sent_add(&sent, KIND_BOTH, &t, sent_ok, 0, 0) != LEAT_OK) {
                leat_sent_abort(&sent);
                break;
            }
            sent_ok++;
            leat_sent_commit(&sent, 0, 1000, DATA, 0);
        }
        leat_sent_check(&sent);
    }
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_int_equal(flight.bytes, 1000 * sent_ok);
    assert_int_equal(ack_one(&sent, &acked, 0, sent_ok - 1, 0), LEAT_OK);
    assert_int_equal(t.total, sent_ok);
}

static void an_aborted_packet_leaves_no_trace(void **state)
{
    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(leat_sent_add(&sent, KIND_BOTH, &t, 50 + i, 1, 0), LEAT_OK);
    }
    leat_sent_abort(&sent);
    leat_sent_check(&sent);
    assert_int_equal(leat_sent_next_pn(&sent), 1);
    assert_int_equal(send_packet(&sent, &t, 0, 1000, DATA, 1, 1), 1);
    leat_sent_forget(&sent, true);
    assert_int_equal(t.total, 2);
}

static void a_forgotten_space_leaves_nothing_in_flight(void **state)
{
    leat_sent_acked acked;

    (void)state;
    flight.bytes = 500; /* another space's */
    for (uint64_t i = 0; i < 10; i++) {
        send_packet(&sent, &t, 0, 1000, DATA, i, 1);
    }
    assert_int_equal(leat_sent_requeue(&sent, 1), 1);
    assert_int_equal(ack_one(&sent, &acked, 5, 5, 0), LEAT_OK);
    leat_sent_forget(&sent, true);
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 500);
    assert_int_equal(t.total, 10);
    assert_int_equal(leat_sent_memory(&sent), 0);
    assert_false(leat_sent_has_eliciting(&sent));
    /* numbers go on, and a late ACK finds nothing */
    assert_int_equal(leat_sent_next_pn(&sent), 10);
    assert_int_equal(ack_one(&sent, &acked, 0, 9, 0), LEAT_OK);
    assert_int_equal(acked.packets, 0);
    send_packet(&sent, &t, 0, 1000, DATA, 20, 1);
    leat_sent_forget(&sent, false);
    assert_int_equal(t.total, 10);
    assert_int_equal(flight.bytes, 500);
    flight.bytes = 0;
}

static void only_the_current_path_counts(void **state)
{
    leat_flight other;
    leat_sent_acked acked;

    (void)state;
    leat_flight_init(&other);
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_commit(&sent, 0, 1200, DATA, 7); /* a challenge on path 7 */
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 1000);
    assert_int_equal(sent.aside, 1200);
    leat_sent_set_path(&sent, &other, 7);
    leat_sent_check(&sent);
    assert_int_equal(sent.aside, 0);
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(other.bytes, 1200);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 1 * MS), LEAT_OK);
    assert_int_equal(acked.packets, 1);
    assert_int_equal(acked.bytes, 0);
    assert_false(acked.rtt_sample); /* of the old path */
    assert_int_equal(t.acked[0], 1);
    leat_sent_set_path(&sent, &flight, 0); /* and back */
    leat_sent_check(&sent);
    assert_int_equal(other.bytes, 0);
    assert_int_equal(flight.bytes, 0);
}

static void a_clock_that_steps_back_is_clamped(void **state)
{
    leat_sent_loss_rule rule = usual_rule(0);
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    send_packet(&sent, &t, 100 * MS, 1000, DATA, 0, 1);
    send_packet(&sent, &t, 50 * MS, 1000, DATA, 1, 1);
    send_packet(&sent, &t, 0, 1000, DATA, 2, 1);
    assert_int_equal(sent.last_sent_at, 100 * MS);
    assert_int_equal(ack_one(&sent, &acked, 2, 2, 10 * MS), LEAT_OK);
    assert_int_equal(acked.largest_sent_at, 100 * MS);
    assert_int_equal(acked.rate.interval, 0);
    leat_sent_detect_lost(&sent, &rule, &lost);
    assert_int_equal(lost.packets, 0);
    assert_int_equal(lost.next_at, 190 * MS);
}

/* Ten packets, 1 ms apart, acknowledged 50 ms later at the same pace: 1000 bytes a millisecond. */
static void the_rate_sample_is_delivered_over_the_longer_interval(void **state)
{
    leat_sent_acked acked;

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        send_packet(&sent, &t, i * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 50 * MS), LEAT_OK);
    /* nothing was delivered when it was sent, at 0; 50 ms for 1000 bytes */
    assert_int_equal(acked.rate.delivered, 1000);
    assert_int_equal(acked.rate.interval, 50 * MS);
    assert_int_equal(acked.rate.tx_in_flight, 1000);
    for (uint64_t i = 1; i < 10; i++) {
        assert_int_equal(ack_one(&sent, &acked, i, i, (50 + i) * MS), LEAT_OK);
    }
    assert_int_equal(flight.delivered, 10000);
    /* the next window: sent from 60 on, when 10000 had been delivered, with nothing in flight */
    for (uint64_t i = 0; i < 10; i++) {
        send_packet(&sent, &t, (60 + i) * MS, 1000, DATA, 10 + i, 1);
    }
    assert_int_equal(ack_one(&sent, &acked, 10, 19, 110 * MS), LEAT_OK);
    assert_int_equal(acked.rate.prior_delivered, 10000);
    assert_int_equal(acked.rate.delivered, 10000);
    assert_int_equal(acked.rate.interval, 50 * MS); /* 60 to 110; sending took 9 */
    assert_int_equal(acked.rate.tx_in_flight, 10000);
    assert_false(acked.rate.app_limited);
}

static void an_application_limited_sample_says_so(void **state)
{
    leat_sent_acked acked;

    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    leat_flight_set_app_limited(&flight);
    send_packet(&sent, &t, 1 * MS, 1000, DATA, 1, 1);
    assert_int_equal(ack_one(&sent, &acked, 0, 0, 10 * MS), LEAT_OK);
    assert_false(acked.rate.app_limited); /* sent before */
    assert_int_equal(ack_one(&sent, &acked, 1, 1, 11 * MS), LEAT_OK);
    assert_true(acked.rate.app_limited);
    assert_int_equal(flight.app_limited, 0); /* delivered has passed the mark */
}

static void a_sample_shorter_than_min_rtt_is_not_believed(void **state)
{
    leat_sent_acked acked;

    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA, 0, 1);
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 0, 5 * MS, 0), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 0, 1), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 6 * MS);
    assert_int_equal(acked.rate.interval, 0);
}

static void bytes_sent_in_recovery_are_told_apart(void **state)
{
    leat_sent_acked acked;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        send_packet(&sent, &t, i * MS, 1000, DATA, i, 1);
    }
    assert_int_equal(leat_sent_ack_start(&sent, &acked, 3, 50 * MS, 1 * MS), LEAT_OK);
    assert_int_equal(leat_sent_ack_range(&sent, &acked, 0, 4), LEAT_OK);
    leat_sent_ack_finish(&sent, &acked, 0);
    assert_int_equal(acked.bytes, 4000);
    assert_int_equal(acked.bytes_after, 2000); /* those at 2 and 3 ms */
}

static void marks_are_counted(void **state)
{
    leat_sent_acked acked;

    (void)state;
    send_packet(&sent, &t, 0, 1000, DATA | LEAT_SENT_ECT0, 0, 1);
    send_packet(&sent, &t, 0, 40, LEAT_SENT_ECT0, 0, 0);
    send_packet(&sent, &t, 0, 1000, DATA | LEAT_SENT_ECT1, 1, 1);
    send_packet(&sent, &t, 0, 1000, DATA, 2, 1);
    assert_int_equal(ack_one(&sent, &acked, 0, 3, 0), LEAT_OK);
    assert_int_equal(acked.ect0, 2);
    assert_int_equal(acked.ect1, 1);
    assert_int_equal(acked.packets, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_ack_takes_packets_out_of_flight_and_tells_their_frames),
        TEST(an_ack_of_what_was_never_sent_is_an_error),
        TEST(an_ack_of_a_number_given_up_on_purpose_is_an_error),
        TEST(ranges_out_of_order_are_refused),
        TEST(three_numbers_above_make_a_packet_lost),
        TEST(time_makes_a_packet_lost),
        TEST(what_is_above_the_largest_acknowledged_is_never_lost_by_time),
        TEST(a_late_ack_shows_a_loss_to_have_been_spurious),
        TEST(lost_packets_are_forgotten_after_a_while),
        TEST(a_lost_mtu_probe_is_no_congestion),
        TEST(each_loss_is_shown_with_what_was_in_flight),
        TEST(a_long_run_of_losses_is_persistent_congestion),
        TEST(an_acknowledged_packet_between_ends_the_run),
        TEST(a_run_of_losses_may_be_found_in_two_parts),
        TEST(packets_acknowledged_before_the_detector_comes_by_end_the_run_too),
        TEST(a_probe_tells_frames_once_and_its_packet_stays_in_flight),
        TEST(a_receiver_that_only_acknowledges_keeps_nothing),
        TEST(an_idle_connection_gives_its_storage_back),
        TEST(a_full_ring_holds_back_all_but_what_must_go_out),
        TEST(a_full_frame_ring_refuses_frames_and_not_packets),
        TEST(a_budget_used_up_holds_back_all_but_what_must_go_out),
        TEST(memory_that_runs_out_changes_nothing),
        TEST(an_aborted_packet_leaves_no_trace),
        TEST(a_forgotten_space_leaves_nothing_in_flight),
        TEST(only_the_current_path_counts),
        TEST(a_clock_that_steps_back_is_clamped),
        TEST(the_rate_sample_is_delivered_over_the_longer_interval),
        TEST(an_application_limited_sample_says_so),
        TEST(a_sample_shorter_than_min_rtt_is_not_believed),
        TEST(bytes_sent_in_recovery_are_told_apart),
        TEST(marks_are_counted),
    };

    return cmocka_run_group_tests_name("recovery.sent", tests, NULL, NULL);
}
