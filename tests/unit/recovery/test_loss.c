/* recovery/loss.h: loss timer, PTO, its back-off and spaces (RFC 9002 §6), on times worked out by
 * hand.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sent_fixture.h"

#include "recovery/loss.h"

static leat_mem *mem;
static told t;
static leat_flight flight;
static leat_sent spaces[LEAT_SPACES];
static leat_loss loss;

static void start(bool is_server)
{
    leat_loss_init(&loss, is_server, 0, 0);
    for (int i = 0; i < LEAT_SPACES; i++) {
        leat_sent_free(&spaces[i]);
        leat_sent_init(&spaces[i], mem, &flight, frame_ops, &t);
        leat_loss_set_space(&loss, (leat_space)i, &spaces[i]);
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    mem = fixture_mem();
    leat_flight_init(&flight);
    for (int i = 0; i < LEAT_SPACES; i++) {
        leat_sent_init(&spaces[i], mem, &flight, frame_ops, &t);
    }
    start(true);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < LEAT_SPACES; i++) {
        leat_sent_free(&spaces[i]);
    }
    leat_mem_free(mem);
    return 0;
}

static uint64_t send_in(leat_space space, leat_time now, uint8_t flags)
{
    uint64_t pn = send_packet(&spaces[space], &t, now, 1000, flags, 0, 0);

    leat_loss_on_sent(&loss, now, (flags & LEAT_SENT_IN_FLIGHT) != 0);
    leat_loss_check(&loss);
    return pn;
}

static leat_sent_lost ack_in(leat_space space, uint64_t first, uint64_t last, leat_time now,
                             leat_time ack_delay)
{
    leat_sent_acked acked;
    leat_sent_lost lost;

    assert_int_equal(ack_one(&spaces[space], &acked, first, last, now), LEAT_OK);
    leat_loss_on_ack(&loss, space, &acked, ack_delay, &lost);
    leat_loss_check(&loss);
    return lost;
}

static leat_loss_timeout timeout_at(leat_time now)
{
    leat_loss_timeout out;

    leat_loss_on_timeout(&loss, now, &out);
    leat_loss_check(&loss);
    return out;
}

static void without_anything_in_flight_there_is_no_deadline(void **state)
{
    (void)state;
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    assert_int_equal(timeout_at(1000 * MS).action, LEAT_LOSS_NONE);
    send_in(LEAT_SPACE_INITIAL, 1000 * MS, DATA);
    ack_in(LEAT_SPACE_INITIAL, 0, 0, 1100 * MS, 0);
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
}

static void a_pto_is_smoothed_and_four_deviations(void **state)
{
    leat_loss_timeout out;

    (void)state;
    send_in(LEAT_SPACE_INITIAL, 10 * MS, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 10 * MS + 999 * MS);
    assert_int_equal(timeout_at(1009 * MS - 1).action, LEAT_LOSS_NONE);
    out = timeout_at(1009 * MS);
    assert_int_equal(out.action, LEAT_LOSS_PROBE);
    assert_int_equal(out.space, LEAT_SPACE_INITIAL);
    assert_int_equal(out.probes, 2);
    assert_int_equal(loss.pto_count, 1);
    /* probes go out: twice as long from the last */
    send_in(LEAT_SPACE_INITIAL, 1010 * MS, DATA);
    send_in(LEAT_SPACE_INITIAL, 1011 * MS, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 1011 * MS + 1998 * MS);
    assert_int_equal(timeout_at(3009 * MS).action, LEAT_LOSS_PROBE);
    send_in(LEAT_SPACE_INITIAL, 3010 * MS, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 3010 * MS + 3996 * MS);
    /* an answer to the last, 100 ms old, resets it: 100 + 4 * 50. The ones before are lost by
     * number */
    ack_in(LEAT_SPACE_INITIAL, 3, 3, 3110 * MS, 0);
    assert_int_equal(loss.pto_count, 0);
    assert_int_equal(loss.pto_total, 2);
    assert_int_equal(loss.rtt.smoothed, 100 * MS);
    send_in(LEAT_SPACE_INITIAL, 3200 * MS, DATA);
    assert_int_equal(loss.lost_packets, 3);
    assert_int_equal(leat_loss_deadline(&loss), 3500 * MS);
}

static void only_a_padded_ack_in_flight_arms_nothing(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_INITIAL, 0, DATA);
    ack_in(LEAT_SPACE_INITIAL, 0, 0, 100 * MS, 0);
    send_in(LEAT_SPACE_INITIAL, 5000 * MS, LEAT_SENT_IN_FLIGHT);
    assert_int_equal(flight.bytes, 1000);
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    assert_int_equal(timeout_at(9000 * MS).action, LEAT_LOSS_NONE);
    /* for a client with an address not validated it is a PTO from then, not from the past */
    start(false);
    send_in(LEAT_SPACE_INITIAL, 0, DATA);
    ack_in(LEAT_SPACE_INITIAL, 0, 0, 100 * MS, 0);
    send_in(LEAT_SPACE_INITIAL, 5000 * MS, LEAT_SENT_IN_FLIGHT);
    assert_int_equal(leat_loss_deadline(&loss), 5000 * MS + 300 * MS);
}

static void a_client_keeps_the_handshake_from_deadlock(void **state)
{
    leat_loss_timeout out;

    (void)state;
    start(false);
    leat_loss_set_space(&loss, LEAT_SPACE_HANDSHAKE, NULL);
    leat_loss_set_space(&loss, LEAT_SPACE_APP, NULL);
    send_in(LEAT_SPACE_INITIAL, 0, DATA);
    ack_in(LEAT_SPACE_INITIAL, 0, 0, 100 * MS, 0);
    /* nothing in flight: one PTO (100 + 200) after the last thing that happened */
    assert_int_equal(leat_loss_deadline(&loss), 400 * MS);
    out = timeout_at(400 * MS);
    assert_int_equal(out.action, LEAT_LOSS_PROBE);
    assert_int_equal(out.space, LEAT_SPACE_INITIAL);
    assert_int_equal(out.probes, 1);
    assert_int_equal(leat_loss_deadline(&loss), 400 * MS + 600 * MS);
    /* with Handshake keys the probe goes there */
    leat_loss_set_space(&loss, LEAT_SPACE_HANDSHAKE, &spaces[LEAT_SPACE_HANDSHAKE]);
    out = timeout_at(1000 * MS);
    assert_int_equal(out.space, LEAT_SPACE_HANDSHAKE);
    /* an answer does not reset the back-off while the server may be held back */
    send_in(LEAT_SPACE_INITIAL, 1000 * MS, DATA);
    ack_in(LEAT_SPACE_INITIAL, 1, 1, 1100 * MS, 0);
    assert_int_equal(loss.pto_count, 2);
    loss.peer_validated = true;
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    send_in(LEAT_SPACE_HANDSHAKE, 1200 * MS, DATA);
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 0, 1300 * MS, 0);
    assert_int_equal(loss.pto_count, 0);
}

static void a_server_waits_for_nothing_while_blocked(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    loss.blocked = true;
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    assert_int_equal(timeout_at(5000 * MS).action, LEAT_LOSS_NONE);
    assert_int_equal(loss.pto_count, 0);
    loss.blocked = false; /* a datagram arrived: what was due is due */
    assert_true(leat_loss_deadline(&loss) <= 5000 * MS);
    assert_int_equal(timeout_at(5000 * MS).action, LEAT_LOSS_PROBE);
}

static void application_data_waits_for_confirmation_and_adds_max_ack_delay(void **state)
{
    (void)state;
    leat_loss_set_space(&loss, LEAT_SPACE_INITIAL, NULL);
    leat_loss_set_space(&loss, LEAT_SPACE_HANDSHAKE, NULL);
    send_in(LEAT_SPACE_APP, 0, DATA);
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    loss.confirmed = true;
    assert_int_equal(leat_loss_deadline(&loss), 999 * MS + 25 * MS);
    loss.max_ack_delay = 100 * MS;
    assert_int_equal(leat_loss_deadline(&loss), 1099 * MS);
    /* the delay is doubled with the rest */
    assert_int_equal(timeout_at(1099 * MS).space, LEAT_SPACE_APP);
    send_in(LEAT_SPACE_APP, 1100 * MS, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 1100 * MS + 2198 * MS);
}

/* The peer cannot acknowledge it before it has the handshake data that was lost, and that may find
 * no window beside it: both sides once waited for ever. */
static void application_data_alone_in_flight_has_the_handshake_probed(void **state)
{
    leat_loss_timeout out;

    (void)state;
    send_in(LEAT_SPACE_APP, 0, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 999 * MS);
    out = timeout_at(999 * MS);
    assert_int_equal(out.action, LEAT_LOSS_PROBE);
    assert_int_equal(out.space, LEAT_SPACE_HANDSHAKE);
    assert_int_equal(out.probes, 1);
    assert_int_equal(leat_loss_deadline(&loss), 999 * MS + 1998 * MS);
    /* what is in flight there has its own deadline */
    send_in(LEAT_SPACE_HANDSHAKE, 1000 * MS, DATA);
    assert_int_equal(timeout_at(1000 * MS + 1998 * MS).probes, 2);
}

/* leat-sim --seed 1007929: a window full of lost 0-RTT, nothing else in flight; the server probed
 * and was answered, each answer put this side's probe off, and its Finished was never sent. */
static void answers_do_not_put_a_probe_off(void **state)
{
    (void)state;
    start(false);
    send_in(LEAT_SPACE_APP, 0, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 999 * MS);
    for (unsigned i = 1; i < 10; i++) {
        send_in(LEAT_SPACE_HANDSHAKE, i * 100 * MS, 0);
        assert_int_equal(leat_loss_deadline(&loss), 999 * MS);
    }
    assert_int_equal(timeout_at(999 * MS).space, LEAT_SPACE_HANDSHAKE);
}

static void the_earliest_space_comes_first(void **state)
{
    (void)state;
    loss.confirmed = true;
    send_in(LEAT_SPACE_APP, 0, DATA);             /* 1024 */
    send_in(LEAT_SPACE_HANDSHAKE, 10 * MS, DATA); /* 1009 */
    send_in(LEAT_SPACE_INITIAL, 20 * MS, DATA);   /* 1019 */
    assert_int_equal(leat_loss_deadline(&loss), 1009 * MS);
    assert_int_equal(timeout_at(1009 * MS).space, LEAT_SPACE_HANDSHAKE);
}

static void a_space_dropped_takes_its_deadline_and_the_back_off_along(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_INITIAL, 0, DATA);
    assert_int_equal(timeout_at(999 * MS).action, LEAT_LOSS_PROBE);
    assert_int_equal(loss.pto_count, 1);
    leat_sent_forget(&spaces[LEAT_SPACE_INITIAL], false);
    leat_loss_set_space(&loss, LEAT_SPACE_INITIAL, NULL);
    assert_int_equal(loss.pto_count, 0);
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
    assert_int_equal(flight.bytes, 0);
}

static void losses_by_time_come_before_the_pto(void **state)
{
    leat_loss_timeout out;
    leat_sent_lost lost;

    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    send_in(LEAT_SPACE_HANDSHAKE, 40 * MS, DATA);
    lost = ack_in(LEAT_SPACE_HANDSHAKE, 1, 1, 80 * MS, 0);
    /* rtt 80: 0 is lost at 90; 2 would have its PTO at 40 + 240 */
    assert_int_equal(lost.packets, 0);
    assert_int_equal(leat_loss_deadline(&loss), 90 * MS);
    loss.blocked = true; /* the loss timer runs all the same */
    assert_int_equal(leat_loss_deadline(&loss), 90 * MS);
    loss.blocked = false;
    assert_int_equal(timeout_at(90 * MS - 1).action, LEAT_LOSS_NONE);
    out = timeout_at(90 * MS);
    assert_int_equal(out.action, LEAT_LOSS_LOST);
    assert_int_equal(out.lost.packets, 1);
    assert_int_equal(out.lost.congestion_bytes, 1000);
    assert_int_equal(loss.pto_count, 0);
    assert_int_equal(leat_loss_deadline(&loss), 280 * MS);
}

/* Nor is it in the way of these where it would end before them: a path that has been calm for long,
 * and whose last packet took long (RFC 9002 s6.2.1). */
static void losses_by_time_come_before_an_earlier_pto(void **state)
{
    (void)state;
    leat_loss_set_space(&loss, LEAT_SPACE_INITIAL, NULL);
    leat_loss_set_space(&loss, LEAT_SPACE_HANDSHAKE, NULL);
    loss.confirmed = true;
    loss.max_ack_delay = 0;
    send_in(LEAT_SPACE_APP, 0, DATA);
    send_in(LEAT_SPACE_APP, 0, DATA);
    ack_in(LEAT_SPACE_APP, 1, 1, 80 * MS, 0);
    loss.rtt.smoothed = 70 * MS;
    loss.rtt.var = 0;
    assert_true(spaces[LEAT_SPACE_APP].last_eliciting_at + leat_loss_pto(&loss, LEAT_SPACE_APP) <
                80 * MS);
    assert_int_equal(leat_loss_deadline(&loss), 90 * MS);
    assert_int_equal(timeout_at(90 * MS - 1).action, LEAT_LOSS_NONE);
    assert_int_equal(timeout_at(90 * MS).action, LEAT_LOSS_LOST);
    assert_int_equal(loss.pto_count, 0);
}

static void the_loss_threshold_follows_the_latest_rtt_too(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 0, 80 * MS, 0);
    send_in(LEAT_SPACE_HANDSHAKE, 100 * MS, DATA);
    send_in(LEAT_SPACE_HANDSHAKE, 100 * MS, DATA);
    ack_in(LEAT_SPACE_HANDSHAKE, 2, 2, 260 * MS, 0);
    /* smoothed 90, latest 160: 100 + 180 and not 100 + 101.25, which would be past already */
    assert_int_equal(leat_loss_deadline(&loss), 280 * MS);
    assert_int_equal(loss.lost_packets, 0);
}

static void a_sample_needs_the_largest_and_something_ack_eliciting(void **state)
{
    leat_sent_acked acked;
    leat_sent_lost lost;

    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    send_in(LEAT_SPACE_HANDSHAKE, 10 * MS, LEAT_SENT_IN_FLIGHT);
    /* the largest is new but elicits nothing, alone: no sample */
    ack_in(LEAT_SPACE_HANDSHAKE, 1, 1, 60 * MS, 0);
    assert_false(leat_rtt_has_sample(&loss.rtt));
    /* packet 0 is new, but the largest is not: no sample */
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 1, 70 * MS, 0);
    assert_false(leat_rtt_has_sample(&loss.rtt));
    /* a largest that elicits nothing together with one that does: from the largest's time */
    send_in(LEAT_SPACE_HANDSHAKE, 100 * MS, DATA);
    send_in(LEAT_SPACE_HANDSHAKE, 110 * MS, LEAT_SENT_IN_FLIGHT);
    ack_in(LEAT_SPACE_HANDSHAKE, 2, 3, 160 * MS, 0);
    assert_int_equal(loss.rtt.latest, 50 * MS);
    /* an empty ACK changes nothing */
    assert_int_equal(ack_one(&spaces[LEAT_SPACE_HANDSHAKE], &acked, 0, 3, 900 * MS), LEAT_OK);
    leat_loss_on_ack(&loss, LEAT_SPACE_HANDSHAKE, &acked, 0, &lost);
    assert_int_equal(loss.rtt.latest, 50 * MS);
}

static void the_time_spent_here_is_not_in_the_rtt(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    /* the ACK came at 50; before it was looked at, this side was busy sending until 90 */
    send_in(LEAT_SPACE_HANDSHAKE, 90 * MS, DATA);
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 0, 50 * MS, 0);
    assert_int_equal(loss.rtt.latest, 50 * MS);
    assert_int_equal(loss.now, 90 * MS);
}

static void the_peers_delay_is_capped_once_confirmed(void **state)
{
    (void)state;
    loss.confirmed = true;
    send_in(LEAT_SPACE_APP, 0, DATA);
    ack_in(LEAT_SPACE_APP, 0, 0, 100 * MS, 0);
    send_in(LEAT_SPACE_APP, 200 * MS, DATA);
    ack_in(LEAT_SPACE_APP, 1, 1, 340 * MS, 1000 * MS);
    /* 140 - 25 = 115: smoothed = 87.5 + 14.375 */
    assert_int_equal(loss.rtt.smoothed, 101875000);
}

static void persistent_congestion_is_three_ptos(void **state)
{
    (void)state;
    loss.confirmed = true;
    send_in(LEAT_SPACE_APP, 0, DATA);
    ack_in(LEAT_SPACE_APP, 0, 0, 100 * MS, 0);
    assert_int_equal(leat_loss_persistent_duration(&loss), 975 * MS); /* 3 * (100 + 200 + 25) */
    send_in(LEAT_SPACE_APP, 200 * MS, DATA);
    send_in(LEAT_SPACE_APP, 700 * MS, DATA);
    send_in(LEAT_SPACE_APP, 1200 * MS, DATA);
    send_in(LEAT_SPACE_APP, 1300 * MS, DATA);
    /* rtt stays 100 but its deviation shrinks to 37.5: 3 * (100 + 150 + 25) = 825 < 1000 */
    assert_true(ack_in(LEAT_SPACE_APP, 4, 4, 1400 * MS, 0).persistent);
}

/* s7.6.2: none sent between is acknowledged, across all spaces. */
static void an_acknowledgement_in_another_space_ends_a_run_of_losses(void **state)
{
    (void)state;
    for (int between = 0; between < 2; between++) {
        loss.peer_validated = true;
        send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
        ack_in(LEAT_SPACE_HANDSHAKE, 0, 0, 100 * MS, 0);
        if (!between) {
            send_in(LEAT_SPACE_INITIAL, 150 * MS, DATA);
        }
        send_in(LEAT_SPACE_HANDSHAKE, 200 * MS, DATA);
        if (between) {
            send_in(LEAT_SPACE_INITIAL, 700 * MS, DATA);
        }
        ack_in(LEAT_SPACE_INITIAL, 0, 0, between ? 800 * MS : 250 * MS, 0);
        send_in(LEAT_SPACE_HANDSHAKE, 1800 * MS, DATA);
        send_in(LEAT_SPACE_HANDSHAKE, 1900 * MS, DATA);
        /* Numbers 1 and 2 are lost, 1,600 ms apart. */
        assert_int_equal(ack_in(LEAT_SPACE_HANDSHAKE, 3, 3, 2000 * MS, 0).persistent, !between);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* s5.2: what was the least before may be of another path. */
static void the_least_rtt_begins_anew_with_persistent_congestion(void **state)
{
    (void)state;
    loss.confirmed = true;
    send_in(LEAT_SPACE_APP, 0, DATA);
    ack_in(LEAT_SPACE_APP, 0, 0, 100 * MS, 0);
    send_in(LEAT_SPACE_APP, 150 * MS, DATA);
    ack_in(LEAT_SPACE_APP, 1, 1, 300 * MS, 0);
    assert_int_equal(loss.rtt.min, 100 * MS);
    send_in(LEAT_SPACE_APP, 400 * MS, DATA);
    send_in(LEAT_SPACE_APP, 5000 * MS, DATA);
    send_in(LEAT_SPACE_APP, 5100 * MS, DATA);
    assert_true(ack_in(LEAT_SPACE_APP, 4, 4, 5400 * MS, 0).persistent);
    assert_int_equal(loss.rtt.min, 300 * MS);
}

static void a_clock_that_steps_back_is_clamped_here_too(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 1000 * MS, DATA);
    assert_int_equal(timeout_at(0).action, LEAT_LOSS_NONE);
    assert_int_equal(loss.now, 1000 * MS);
    send_in(LEAT_SPACE_HANDSHAKE, 10 * MS, DATA);
    assert_int_equal(leat_loss_deadline(&loss), 1999 * MS);
    /* an ACK from before its packet gives no sample rather than one of nothing */
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 1, 500 * MS, 0);
    assert_false(leat_rtt_has_sample(&loss.rtt));
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
}

static void a_long_sleep_makes_one_probe_and_no_loop(void **state)
{
    leat_time now = 3600 * LEAT_SECOND;

    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    assert_int_equal(timeout_at(now).action, LEAT_LOSS_PROBE);
    send_in(LEAT_SPACE_HANDSHAKE, now, DATA);
    assert_true(leat_loss_deadline(&loss) > now);
    assert_int_equal(timeout_at(now).action, LEAT_LOSS_NONE);
}

static void a_probe_that_cannot_be_sent_makes_no_endless_loop(void **state)
{
    int fired = 0;

    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    for (leat_time at = 3600 * LEAT_SECOND; at < 7200 * LEAT_SECOND; at += LEAT_SECOND / 4) {
        fired += timeout_at(at).action == LEAT_LOSS_PROBE;
        assert_true(leat_loss_deadline(&loss) > at);
    }
    assert_in_range(fired, 60, 66);
}

static void the_back_off_ends(void **state)
{
    static const uint32_t more[] = {6, 7, 63, 64, 1000, UINT32_MAX};

    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    loss.pto_count = 5;
    assert_int_equal(leat_loss_deadline(&loss), 32 * 999 * MS);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        loss.pto_count = more[i];
        assert_int_equal(leat_loss_deadline(&loss), 60000 * MS);
    }
    assert_int_equal(timeout_at(60000 * MS - 1).action, LEAT_LOSS_NONE);
    assert_int_equal(timeout_at(60000 * MS).action, LEAT_LOSS_PROBE);
    /* of a client that has nothing in flight, as well */
    start(false);
    send_in(LEAT_SPACE_INITIAL, 0, DATA);
    ack_in(LEAT_SPACE_INITIAL, 0, 0, 100 * MS, 0);
    loss.pto_count = 20;
    assert_int_equal(leat_loss_deadline(&loss), 60100 * MS);
}

/* A way to another planet: no probe comes before its answer could. */
static void the_back_off_ends_no_earlier_than_the_path_allows(void **state)
{
    (void)state;
    send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 0, 600000 * MS, 0);
    send_in(LEAT_SPACE_HANDSHAKE, 600000 * MS, DATA);
    loss.pto_count = 3;
    assert_int_equal(leat_loss_deadline(&loss), (600000 + 3 * 600000) * MS);
    loss.rtt.smoothed = LEAT_TIME_NEVER;
    assert_int_equal(leat_loss_deadline(&loss), LEAT_TIME_NEVER);
}

static void spurious_losses_are_counted(void **state)
{
    leat_sent_lost lost;

    (void)state;
    for (int i = 0; i < 4; i++) {
        send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    }
    lost = ack_in(LEAT_SPACE_HANDSHAKE, 3, 3, 50 * MS, 0);
    assert_int_equal(lost.packets, 1);
    ack_in(LEAT_SPACE_HANDSHAKE, 0, 3, 52 * MS, 0);
    assert_int_equal(loss.lost_packets, 1);
    assert_int_equal(loss.spurious_packets, 1);
}

static void note_space(void *ctx, const leat_sent_loss *one)
{
    int *seen = ctx;

    (void)one;
    seen[loss.visit_space]++;
}

static void a_visitor_hears_of_each_loss_and_its_space(void **state)
{
    int seen[LEAT_SPACES] = {0};

    (void)state;
    loss.visit = note_space;
    loss.visit_ctx = seen;
    for (int i = 0; i < 5; i++) {
        send_in(LEAT_SPACE_HANDSHAKE, 0, DATA);
    }
    ack_in(LEAT_SPACE_HANDSHAKE, 4, 4, 50 * MS, 0);
    assert_int_equal(seen[LEAT_SPACE_HANDSHAKE], 2);
    assert_int_equal(seen[LEAT_SPACE_INITIAL], 0);
}

static void a_new_path_starts_over(void **state)
{
    (void)state;
    loss.confirmed = true;
    send_in(LEAT_SPACE_APP, 0, DATA);
    ack_in(LEAT_SPACE_APP, 0, 0, 10 * MS, 0);
    loss.pto_count = 3;
    leat_loss_reset_path(&loss, 0);
    assert_int_equal(loss.pto_count, 0);
    assert_int_equal(leat_loss_pto(&loss, LEAT_SPACE_APP), 1024 * MS);
    assert_int_equal(leat_loss_pto(&loss, LEAT_SPACE_HANDSHAKE), 999 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_anything_in_flight_there_is_no_deadline),
        TEST(a_pto_is_smoothed_and_four_deviations),
        TEST(only_a_padded_ack_in_flight_arms_nothing),
        TEST(a_client_keeps_the_handshake_from_deadlock),
        TEST(a_server_waits_for_nothing_while_blocked),
        TEST(application_data_waits_for_confirmation_and_adds_max_ack_delay),
        TEST(application_data_alone_in_flight_has_the_handshake_probed),
        TEST(answers_do_not_put_a_probe_off),
        TEST(the_earliest_space_comes_first),
        TEST(a_space_dropped_takes_its_deadline_and_the_back_off_along),
        TEST(losses_by_time_come_before_the_pto),
        TEST(losses_by_time_come_before_an_earlier_pto),
        TEST(the_loss_threshold_follows_the_latest_rtt_too),
        TEST(a_sample_needs_the_largest_and_something_ack_eliciting),
        TEST(the_time_spent_here_is_not_in_the_rtt),
        TEST(the_peers_delay_is_capped_once_confirmed),
        TEST(persistent_congestion_is_three_ptos),
        TEST(an_acknowledgement_in_another_space_ends_a_run_of_losses),
        TEST(the_least_rtt_begins_anew_with_persistent_congestion),
        TEST(a_clock_that_steps_back_is_clamped_here_too),
        TEST(a_long_sleep_makes_one_probe_and_no_loop),
        TEST(a_probe_that_cannot_be_sent_makes_no_endless_loop),
        TEST(the_back_off_ends),
        TEST(the_back_off_ends_no_earlier_than_the_path_allows),
        TEST(spurious_losses_are_counted),
        TEST(a_visitor_hears_of_each_loss_and_its_space),
        TEST(a_new_path_starts_over),
    };

    return cmocka_run_group_tests_name("recovery.loss", tests, NULL, NULL);
}
