/* tests/unit/conn/test_ackfreq.c: ACK_FREQUENCY and IMMEDIATE_ACK, alone and between a client and a
 * server.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "echo.h"
#include "forge.h"

/* ---- alone ---- */

static void the_newest_frame_counts(void **state)
{
    leat_ackfreq af = {.own_min = LEAT_MILLISECOND};
    leat_frame_ack_frequency frame = {.sequence = 3, .threshold = 9, .max_delay = 5000};
    leat_acks acks = {.eliciting_threshold = 2, .reorder_threshold = 1};

    (void)state;
    frame.reorder = 4;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_NO_ERROR);
    assert_int_equal(acks.eliciting_threshold, 10); /* nine may go without one */
    assert_int_equal(acks.reorder_threshold, 4);
    assert_int_equal(acks.max_delay, 5 * LEAT_MILLISECOND);
    frame.sequence = 2;
    frame.threshold = 1;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_NO_ERROR);
    assert_int_equal(acks.eliciting_threshold, 10);
    frame.sequence = 3; /* a second copy */
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_NO_ERROR);
    assert_int_equal(acks.eliciting_threshold, 10);
    frame.sequence = 4;
    frame.threshold = LEAT_VARINT_MAX;
    frame.reorder = LEAT_VARINT_MAX;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_NO_ERROR);
    assert_int_equal(acks.eliciting_threshold, UINT32_MAX);
}

static void delays_out_of_bounds_are_a_violation(void **state)
{
    leat_ackfreq af = {.own_min = LEAT_MILLISECOND};
    leat_frame_ack_frequency frame = {.max_delay = 999};
    leat_acks acks = {.eliciting_threshold = 2};

    (void)state;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_PROTOCOL_VIOLATION);
    frame.max_delay = UINT64_C(16384000);
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_PROTOCOL_VIOLATION);
    frame.max_delay = LEAT_VARINT_MAX;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_PROTOCOL_VIOLATION);
    af.own_min = 0; /* never offered */
    frame.max_delay = 5000;
    assert_int_equal(leat_ackfreq_received(&af, &frame, &acks), LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(acks.eliciting_threshold, 2);
}

static void the_request_follows_window_and_rtt(void **state)
{
    leat_ackfreq af = {.own_min = LEAT_MILLISECOND};
    leat_ackfreq_path path = {.cwnd = 10 * 1200,
                              .mds = 1200,
                              .reorder = 3,
                              .srtt = 40 * LEAT_MILLISECOND,
                              .peer_max = 25 * LEAT_MILLISECOND};
    leat_frame_ack_frequency frame;

    (void)state;
    path.cwnd = 100 * 1200;
    leat_ackfreq_update(&af, &path);
    assert_false(af.pending); /* the peer has not said that it takes it */
    leat_ackfreq_set_peer(&af, LEAT_MILLISECOND);
    path.cwnd = 10 * 1200;
    leat_ackfreq_update(&af, &path);
    assert_false(af.pending); /* a small window wants what is usual */
    path.cwnd = 100 * 1200;
    leat_ackfreq_update(&af, &path);
    assert_true(af.pending);
    frame = leat_ackfreq_frame(&af);
    assert_int_equal(frame.sequence, 0);
    assert_int_equal(frame.threshold, 100 / 8 - 1);
    assert_int_equal(frame.max_delay, 10000);
    assert_int_equal(frame.reorder, 3);
    leat_ackfreq_sent(&af);
    path.cwnd = 150 * 1200;
    leat_ackfreq_update(&af, &path);
    assert_false(af.pending); /* not for a little */
    path.cwnd = 10000 * 1200;
    path.srtt = 4 * LEAT_SECOND;
    leat_ackfreq_update(&af, &path);
    assert_true(af.pending);
    frame = leat_ackfreq_frame(&af);
    assert_int_equal(frame.sequence, 1);
    assert_int_equal(frame.threshold, LEAT_ACKFREQ_MOST - 1);
    assert_int_equal(frame.max_delay, 25000); /* no more than the peer said by itself */
    leat_ackfreq_sent(&af);
    path.srtt = 100; /* and no less than it can do */
    leat_ackfreq_update(&af, &path);
    assert_int_equal(leat_ackfreq_frame(&af).max_delay, 1000);
}

/* ---- between a client and a server ---- */

/* A transfer of 4 MB to the server; returns how many packets the server sent. */
static uint64_t packets_back(bool with)
{
    static uint8_t data[65536];
    leat_conn_stats_data stats;
    leat_stream *stream;
    leat_echo e;
    size_t sent = 0;
    leat_time until;

    leat_echo_prepare(&e);
    e.setup.delay = 20 * LEAT_MILLISECOND;
    e.setup.conn.min_ack_delay = with ? LEAT_MILLISECOND : 0;
    e.setup.server.conn.min_ack_delay = e.setup.conn.min_ack_delay;
    leat_echo_connect(&e);
    until = e.pair.now + 60 * LEAT_SECOND;
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    while (sent < 4000000) {
        size_t written = 0;

        if (leat_stream_write(stream, data, sizeof(data), &written) == LEAT_ERR_BLOCKED) {
            assert_true(leat_pair_step(&e.pair, until));
        }
        sent += written;
    }
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(e.server.received, sent);
    leat_conn_stats(e.server.conn, &stats);
    if (with) {
        assert_true(e.server.conn->app.acks.eliciting_threshold > 2);
        assert_true(e.pair.conn->loss.max_ack_delay == e.pair.conn->ackfreq.delay);
    }
    leat_conn_stats(e.pair.conn, &stats);
    assert_int_equal(stats.packets_lost, 0);
    assert_int_equal(stats.pto_count, 0);
    leat_conn_stats(e.server.conn, &stats);
    leat_echo_finish(&e);
    return stats.packets_sent;
}

static void a_transfer_has_fewer_acks(void **state)
{
    uint64_t without = packets_back(false), with = packets_back(true);

    (void)state;
    print_message("4 MB: %llu packets back, %llu with ACK_FREQUENCY\n", (unsigned long long)without,
                  (unsigned long long)with);
    /* What arrives in one turn has one ACK either way, and here that is much. */
    assert_true(with * 4 < without * 3);
}

static void an_immediate_ack_is_answered_at_once(void **state)
{
    static const uint8_t ping[] = {0x01, 0, 0, 0}, now[] = {0x1f, 0, 0, 0};
    leat_conn_stats_data before, after;
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.min_ack_delay = LEAT_MILLISECOND;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_conn_stats(e.server.conn, &before);
    leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping));
    leat_echo_settle(&e, LEAT_MILLISECOND);
    leat_conn_stats(e.server.conn, &after);
    assert_int_equal(after.packets_sent, before.packets_sent); /* it may wait */
    leat_echo_settle(&e, LEAT_SECOND);
    leat_conn_stats(e.server.conn, &before);
    leat_forge(&e.pair, e.pair.conn, now, sizeof(now));
    leat_echo_settle(&e, LEAT_MILLISECOND);
    leat_conn_stats(e.server.conn, &after);
    assert_int_equal(after.packets_sent, before.packets_sent + 1);
    assert_int_equal(e.server.closed, 0); /* what it sent was an ACK */
    assert_false(leat_acks_has_news(&e.server.conn->app.acks));
    leat_echo_finish(&e);
}

/* Without the transport parameter it is an error, and so it is in ACK_FREQUENCY (below). */
static void an_immediate_ack_that_was_not_offered_closes(void **state)
{
    static const uint8_t now[] = {0x1f, 0, 0, 0};
    leat_echo e;

    (void)state;
    leat_echo_establish(&e);
    leat_forge(&e.pair, e.pair.conn, now, sizeof(now));
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, LEAT_SECOND));
    assert_int_equal(e.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(e.server.info.frame_type, LEAT_FRAME_CODE_IMMEDIATE_ACK);
    leat_echo_finish(&e);
}

static void a_forged_request_closes_when_it_cannot_be(void **state)
{
    leat_frame_ack_frequency frame = {.threshold = 1, .max_delay = 1};
    leat_forge_payload payload;
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(leat_frame_write_ack_frequency(leat_forge_begin(&payload), &frame));
    leat_forge_send(&e.pair, e.pair.conn, &payload);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, LEAT_SECOND));
    assert_int_equal(e.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(e.server.info.frame_type, LEAT_FRAME_CODE_ACK_FREQUENCY);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_frame_counts),
        cmocka_unit_test(delays_out_of_bounds_are_a_violation),
        cmocka_unit_test(the_request_follows_window_and_rtt),
        cmocka_unit_test(a_transfer_has_fewer_acks),
        cmocka_unit_test(an_immediate_ack_is_answered_at_once),
        cmocka_unit_test(an_immediate_ack_that_was_not_offered_closes),
        cmocka_unit_test(a_forged_request_closes_when_it_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
