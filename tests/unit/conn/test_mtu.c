/* tests/unit/conn/test_mtu.c: the search for a path's datagram size, alone and on paths that drop
 * what is too large.
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

/* ---- alone ---- */

static void a_probe_raises_the_size(void **state)
{
    leat_mtu mtu;

    (void)state;
    leat_mtu_init(&mtu, 1452);
    assert_int_equal(leat_mtu_probe(&mtu, 0), 0); /* not before the handshake is confirmed */
    leat_mtu_enable(&mtu);
    assert_int_equal(leat_mtu_probe(&mtu, 0), 1452);
    leat_mtu_probe_sent(&mtu, 1452);
    assert_int_equal(leat_mtu_probe(&mtu, 0), 0);
    assert_true(leat_mtu_probe_acked(&mtu, 1452));
    assert_int_equal(mtu.size, 1452);
    assert_int_equal(leat_mtu_probe(&mtu, 0), 0);
    leat_mtu_init(&mtu, 1452);
    leat_mtu_limit(&mtu, 100); /* a peer cannot make it smaller than QUIC's floor */
    leat_mtu_enable(&mtu);
    assert_int_equal(leat_mtu_probe(&mtu, 0), 0);
}

/* Searches on a path that carries `carries` bytes; returns how many probes it took. */
static unsigned search(leat_mtu *mtu, uint16_t carries, leat_time now)
{
    unsigned probes = 0;
    uint16_t size;

    while ((size = leat_mtu_probe(mtu, now)) > 0) {
        assert_true(size > mtu->size && size <= mtu->most);
        leat_mtu_probe_sent(mtu, size);
        if (size <= carries) {
            assert_true(leat_mtu_probe_acked(mtu, size));
        } else {
            leat_mtu_probe_lost(mtu);
        }
        assert_true(++probes < 200);
    }
    return probes;
}

static void the_search_comes_within_a_step_of_any_size(void **state)
{
    (void)state;
    for (unsigned carries = 1200; carries <= 9000; carries += 7) {
        leat_mtu mtu;
        unsigned probes;

        leat_mtu_init(&mtu, 65527);
        leat_mtu_enable(&mtu);
        leat_mtu_limit(&mtu, 9000);
        probes = search(&mtu, (uint16_t)carries, 0);
        assert_true(mtu.size <= carries);
        assert_true(carries - mtu.size < LEAT_MTU_STEP);
        assert_true(probes <= LEAT_MTU_PROBES * 10); /* 2^9 steps lie between */
    }
}

static void the_search_begins_anew_after_a_while(void **state)
{
    leat_mtu mtu;

    (void)state;
    leat_mtu_init(&mtu, 1452);
    leat_mtu_enable(&mtu);
    search(&mtu, 1300, 1000);
    assert_int_equal(leat_mtu_probe(&mtu, 999 + LEAT_MTU_RAISE), 0);
    assert_int_equal(search(&mtu, 1452, 1000 + LEAT_MTU_RAISE), 1);
    assert_int_equal(mtu.size, 1452);
}

/* Three in a row do (RFC 8899 s5.1.2: MAX_PROBES). */
static void one_loss_of_a_probe_decides_nothing(void **state)
{
    leat_mtu mtu;

    (void)state;
    leat_mtu_init(&mtu, 1452);
    leat_mtu_enable(&mtu);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(leat_mtu_probe(&mtu, 0), 1452);
        leat_mtu_probe_sent(&mtu, 1452);
        leat_mtu_probe_lost(&mtu);
    }
    assert_int_equal(leat_mtu_probe(&mtu, 0), 1326);
}

static void a_run_of_large_losses_is_a_black_hole(void **state)
{
    leat_mtu mtu;

    (void)state;
    leat_mtu_init(&mtu, 1452);
    leat_mtu_enable(&mtu);
    search(&mtu, 1452, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LEAT_MTU_BLACK_LOSSES - 1; i++) {
            assert_false(leat_mtu_on_lost(&mtu, 1452));
            assert_false(leat_mtu_on_lost(&mtu, 100));
            leat_mtu_on_acked(&mtu, 1200); /* small ones pass a black hole */
        }
        if (round < 2) {
            leat_mtu_on_acked(&mtu, 1201);
        }
    }
    assert_true(leat_mtu_on_lost(&mtu, 1452));
    assert_int_equal(mtu.size, LEAT_MTU_BASE);
    assert_false(leat_mtu_on_lost(&mtu, 1452)); /* what is still under way */
    assert_int_equal(leat_mtu_probe(&mtu, 0), 1452);
}

/* ---- on a path ---- */

static size_t carries;
static size_t too_large;

static bool drop_large(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data;
    too_large += *len > carries;
    return *len <= carries;
}

static void begin(leat_echo *e, size_t bytes)
{
    carries = bytes;
    too_large = 0;
    leat_echo_prepare(e);
    leat_echo_connect(e);
    e->pair.filter = drop_large;
}

/* Small messages for some 200 round trips: probes need a connection that is in use. */
static void chat(leat_echo *e)
{
    for (int i = 0; i < 200; i++) {
        leat_echo_bytes(e, 1000, LEAT_SECOND);
    }
}

static void a_connection_finds_what_its_path_carries(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e, 1383);
    chat(&e);
    assert_in_range(e.pair.conn->mtu.size, 1383 - LEAT_MTU_STEP + 1, 1383);
    assert_in_range(e.server.conn->mtu.size, 1383 - LEAT_MTU_STEP + 1, 1383);
    assert_true(too_large > 0);
    leat_echo_finish(&e);
}

static void who_has_nothing_to_send_looks_for_nothing(void **state)
{
    leat_stream *stream;
    size_t written;
    leat_echo e;

    (void)state;
    begin(&e, 1200);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(e.pair.conn->confirmed && e.server.conn->confirmed);
    assert_int_equal(too_large, 0); /* no probe of either */
    carries = 65535;
    assert_int_equal(leat_stream_open(e.server.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.server.conn->mtu.size, 1452);
    assert_int_equal(e.pair.conn->mtu.size, 1200); /* it only listens */
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    leat_echo_finish(&e);
}

/* Its application may ask for the size before it sends the first. */
static void who_may_send_datagrams_looks_at_once(void **state)
{
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 65535;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    assert_int_equal(e.server.conn->mtu.size, 1200); /* the client takes none */
    leat_echo_finish(&e);
}

static void lost_probes_are_no_congestion(void **state)
{
    leat_echo e;
    uint64_t cwnd;

    (void)state;
    begin(&e, 1200);
    cwnd = e.pair.conn->cc.cwnd;
    chat(&e);
    assert_true(too_large >= LEAT_MTU_PROBES);
    assert_true(e.pair.conn->loss.lost_packets >= LEAT_MTU_PROBES);
    assert_true(e.pair.conn->cc.cwnd >= cwnd);
    assert_int_equal(e.pair.conn->cc.recovery_start, 0);
    leat_echo_finish(&e);
}

/* RFC 9002 s7: a probe is larger than what else there is to send, and in flight as a whole. */
static void a_probe_waits_for_as_much_room_as_it_takes(void **state)
{
    static const uint8_t data[1100];
    leat_conn *conn;
    leat_stream *stream;
    size_t written;
    uint64_t in_flight;
    leat_echo e;

    (void)state;
    begin(&e, 65535);
    conn = e.pair.conn;
    leat_echo_settle(&e, LEAT_SECOND);
    leat_mtu_init(&conn->mtu, LEAT_MTU_BASE);
    leat_cc_init(&conn->cc, &leat_cc_fixed, LEAT_MTU_BASE, NULL, e.pair.now);
    leat_cc_set(&conn->cc, 2 * LEAT_MTU_BASE, 0);
    assert_int_equal(leat_stream_open(conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    in_flight = conn->flight.bytes; /* for a round trip, of 10 ms */
    assert_in_range(leat_cc_room(&conn->cc, &conn->flight), LEAT_MTU_BASE, 1452 - 1);
    leat_mtu_init(&conn->mtu, 1452);
    leat_mtu_enable(&conn->mtu);
    leat_conn_want_send(conn);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(conn->flight.bytes, in_flight);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(conn->mtu.size, 1452); /* once there is room it goes */
    leat_echo_finish(&e);
}

static void a_transfer_survives_a_black_hole(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e, 65535);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    carries = 1300;
    leat_echo_bytes(&e, 500000, 60 * LEAT_SECOND);
    chat(&e);
    assert_in_range(e.pair.conn->mtu.size, 1300 - LEAT_MTU_STEP + 1, 1300);
    assert_in_range(e.server.conn->mtu.size, 1300 - LEAT_MTU_STEP + 1, 1300);
    leat_echo_finish(&e);
}

static void an_outage_costs_no_more_than_a_probe(void **state)
{
    static const uint8_t data[2000];
    leat_stream *stream;
    size_t written;
    leat_echo e;

    (void)state;
    begin(&e, 65535);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    carries = 0;
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, LEAT_MTU_BASE);
    carries = 65535;
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    leat_echo_finish(&e);
}

/* What is lost is small, as all that a connection without data sends: its size is not why. */
static void an_outage_of_small_packets_is_no_black_hole(void **state)
{
    leat_stream *stream;
    size_t written;
    leat_echo e;

    (void)state;
    begin(&e, 65535);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    carries = 0;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    assert_true(e.pair.conn->loss.pto_count >= LEAT_MTU_BLACK_PTOS);
    assert_int_equal(e.pair.conn->mtu.size, 1452);
    carries = 65535;
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_raises_the_size),
        cmocka_unit_test(the_search_comes_within_a_step_of_any_size),
        cmocka_unit_test(the_search_begins_anew_after_a_while),
        cmocka_unit_test(one_loss_of_a_probe_decides_nothing),
        cmocka_unit_test(a_run_of_large_losses_is_a_black_hole),
        cmocka_unit_test(a_connection_finds_what_its_path_carries),
        cmocka_unit_test(who_has_nothing_to_send_looks_for_nothing),
        cmocka_unit_test(who_may_send_datagrams_looks_at_once),
        cmocka_unit_test(lost_probes_are_no_congestion),
        cmocka_unit_test(a_probe_waits_for_as_much_room_as_it_takes),
        cmocka_unit_test(a_transfer_survives_a_black_hole),
        cmocka_unit_test(an_outage_costs_no_more_than_a_probe),
        cmocka_unit_test(an_outage_of_small_packets_is_no_black_hole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
