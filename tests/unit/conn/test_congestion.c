/* tests/unit/conn/test_congestion.c: which controller a connection has, its states in the trace,
 * and control from outside.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/event.h>

#include "base/time.h"
#include "conn/conn.h"
#include "echo.h"

static leat_echo echo;

/* ---- what the sink saw of the client ---- */

static struct {
    unsigned changes;
    bool chained; /* each change begins where the one before ended */
    const char *last;
    char path[256];
} seen;

static void emit(leat_event_sink *sink, const leat_event *e)
{
    (void)sink;
    if (e->type != LEAT_EVENT_CONGESTION_STATE) {
        return;
    }
    seen.chained &= seen.last == NULL || strcmp(seen.last, e->congestion.from) == 0;
    seen.last = e->congestion.to;
    seen.changes++;
    if (strlen(seen.path) + strlen(e->congestion.to) + 2 < sizeof(seen.path)) {
        strcat(strcat(seen.path, e->congestion.to), " ");
    }
}

static leat_event_sink sink = {emit};

/* Drops one datagram to the server, once so many have passed. */
static size_t drop_at;

static bool drop_one(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data;
    (void)len;
    return !to_server || pair->datagrams[1] != drop_at || (drop_at = 0, false);
}

/* One in 20. */
static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    static unsigned count;

    (void)pair;
    (void)data;
    (void)len;
    return !to_server || ++count % 20 != 0;
}

static void begin(leat_congestion congestion)
{
    leat_echo_prepare(&echo);
    memset(&seen, 0, sizeof(seen));
    seen.chained = true;
    echo.setup.conn.congestion = congestion;
    echo.setup.client.events_sink = &sink;
}

/* ---- tests ---- */

static void names_go_both_ways(void **state)
{
    leat_congestion found;

    (void)state;
    for (int i = 0; i < LEAT_CONGESTIONS; i++) {
        assert_true(leat_congestion_find(leat_congestion_name((leat_congestion)i), &found));
        assert_int_equal(found, i);
        assert_non_null(leat_cc_find(leat_congestion_name((leat_congestion)i)));
    }
    assert_false(leat_congestion_find("vegas", &found));
    assert_string_equal(leat_congestion_name(LEAT_CONGESTIONS), "unknown");
}

static void the_setting_chooses_and_cubic_is_the_default(void **state)
{
    leat_conn_settings defaults;

    (void)state;
    leat_conn_settings_init(&defaults);
    assert_int_equal(defaults.congestion, LEAT_CONGESTION_CUBIC);
    for (int i = 0; i < LEAT_CONGESTIONS; i++) {
        begin((leat_congestion)i);
        leat_echo_connect(&echo);
        assert_string_equal(echo.pair.conn->cc.ops->name, leat_congestion_name((leat_congestion)i));
        assert_string_equal(echo.server.conn->cc.ops->name, "cubic");
        leat_echo_bytes(&echo, 300000, 20 * LEAT_SECOND);
        leat_echo_finish(&echo);
    }
}

static void an_unknown_controller_is_refused(void **state)
{
    leat_connect how = {.server_name = "localhost"};
    leat_conn *conn;

    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_connect(&echo);
    echo.setup.conn.congestion = LEAT_CONGESTIONS;
    how.remote = echo.pair.server_addr;
    how.local = echo.pair.client_addr;
    how.tls = echo.pair.client_tls;
    how.settings = &echo.setup.conn;
    assert_int_equal(leat_conn_connect(echo.pair.client, &how, &conn), LEAT_ERR_INVALID);
    leat_echo_finish(&echo);
}

static void changes_of_state_are_traced(void **state)
{
    (void)state;
    begin(LEAT_CONGESTION_NEWRENO);
    leat_echo_connect(&echo);
    drop_at = echo.pair.datagrams[1] + 40;
    echo.pair.filter = drop_one;
    leat_echo_bytes(&echo, 300000, 20 * LEAT_SECOND);
    assert_string_equal(seen.path, "recovery congestion_avoidance ");
    assert_true(seen.chained);
    leat_echo_finish(&echo);
}

static void bbr_tells_its_states(void **state)
{
    (void)state;
    begin(LEAT_CONGESTION_BBR);
    leat_echo_connect(&echo);
    echo.pair.filter = drop_some; /* the way out of start-up where bandwidth has no end */
    leat_echo_bytes(&echo, 1000000, 60 * LEAT_SECOND);
    assert_true(strncmp(seen.path, "drain ", 6) == 0 || strncmp(seen.path, "probe_bw", 8) == 0);
    assert_true(seen.chained);
    leat_echo_finish(&echo);
}

/* Sends n bytes; how long until the server has them. */
static leat_time time_for(size_t n)
{
    leat_time from = echo.pair.now;

    leat_echo_bytes(&echo, n, 60 * LEAT_SECOND);
    return echo.pair.now - from;
}

static void an_outside_controller_sets_the_rate(void **state)
{
    leat_conn_stats_data stats;

    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_connect(&echo);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 30000, 100000), LEAT_OK);
    assert_string_equal(seen.path, "fixed ");
    leat_conn_stats(echo.pair.conn, &stats);
    assert_int_equal(stats.cwnd, 30000);
    /* 200 kB at 100 kB/s; what the pacer lets out at once is a window at most */
    assert_in_range(time_for(200000), 1700 * LEAT_MILLISECOND, 2300 * LEAT_MILLISECOND);
    leat_conn_stats(echo.pair.conn, &stats);
    assert_int_equal(stats.cwnd, 30000); /* no controller of the connection's own meddles */
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 30000, 1000000), LEAT_OK);
    assert_in_range(time_for(200000), 170 * LEAT_MILLISECOND, 260 * LEAT_MILLISECOND);
    leat_echo_finish(&echo);
}

static void a_small_window_from_outside_bounds_what_is_in_flight(void **state)
{
    leat_conn_stats_data stats;

    (void)state;
    begin(LEAT_CONGESTION_BBR);
    leat_echo_connect(&echo);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 1, 0), LEAT_OK);
    leat_conn_stats(echo.pair.conn, &stats);
    assert_int_equal(stats.cwnd, 2 * echo.pair.conn->mtu.size);
    /* two datagrams a round trip of 10 ms */
    assert_true(time_for(60000) >= 200 * LEAT_MILLISECOND);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, UINT64_MAX, UINT64_MAX), LEAT_OK);
    leat_conn_stats(echo.pair.conn, &stats);
    assert_int_equal(stats.cwnd, LEAT_CWND_MAX);
    assert_true(time_for(200000) < 100 * LEAT_MILLISECOND);
    leat_echo_finish(&echo);
}

static void the_settings_controller_takes_over_again(void **state)
{
    (void)state;
    begin(LEAT_CONGESTION_BBR);
    leat_echo_connect(&echo);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 0, 0), LEAT_OK); /* it has it already */
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 100000, 0), LEAT_OK);
    assert_ptr_equal(echo.pair.conn->cc.ops, &leat_cc_fixed);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 0, 0), LEAT_OK);
    assert_ptr_equal(echo.pair.conn->cc.ops, &leat_cc_bbr);
    leat_echo_bytes(&echo, 300000, 20 * LEAT_SECOND);
    leat_echo_finish(&echo);
}

static void a_closed_connection_takes_no_rate(void **state)
{
    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_connect(&echo);
    leat_conn_close(echo.pair.conn, 0, (leat_span){NULL, 0});
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 30000, 0), LEAT_ERR_CLOSED);
    leat_echo_finish(&echo);
}

/* ---- padding ---- */

static uint64_t bytes_sent(void)
{
    leat_conn_stats_data stats;

    leat_conn_stats(echo.pair.conn, &stats);
    return stats.bytes_sent;
}

static void run_for(leat_time time)
{
    leat_time until = echo.pair.now + time;

    leat_pair_run(&echo.pair, NULL, NULL, time);
    echo.pair.now = until;
    leat_ctx_set_now(echo.pair.ctx, until);
}

/* 24 kB at 30 kB/s of padding alone: full datagrams, evenly, each acknowledged; and no more. */
static void padding_goes_out_at_the_rate_when_nothing_else_waits(void **state)
{
    uint64_t before, half, all;

    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_connect(&echo);
    run_for(200 * LEAT_MILLISECOND);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 30000, 30000), LEAT_OK);
    before = bytes_sent();
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 24000), LEAT_OK);
    run_for(400 * LEAT_MILLISECOND);
    half = bytes_sent() - before;
    assert_in_range(half, 10500, 15500);
    run_for(LEAT_SECOND);
    all = bytes_sent() - before;
    assert_in_range(all, 24000, 24000 + 1500 + 400); /* whole datagrams, and some ACKs */
    assert_int_equal(echo.pair.conn->flight.bytes, 0);
    run_for(LEAT_SECOND);
    assert_in_range(bytes_sent() - before, all, all + 100);
    leat_echo_finish(&echo);
}

/* While there is data to send it goes out at the rate as before; padding taken back is not sent. */
static void data_goes_before_padding(void **state)
{
    leat_time with, without;
    uint64_t before;

    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_connect(&echo);
    run_for(200 * LEAT_MILLISECOND);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 60000, 100000), LEAT_OK);
    without = time_for(100000);
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 10000000), LEAT_OK);
    with = time_for(100000);
    assert_true(with < without + without / 4);
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 0), LEAT_OK);
    run_for(100 * LEAT_MILLISECOND);
    before = bytes_sent();
    run_for(LEAT_SECOND);
    assert_in_range(bytes_sent() - before, 0, 200);
    leat_conn_close(echo.pair.conn, 0, (leat_span){NULL, 0});
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 1), LEAT_ERR_CLOSED);
    leat_echo_finish(&echo);
}

/* A window that is full, and a handshake that is not confirmed, hold it back: nobody spins. */
static void padding_waits_for_the_window_and_the_handshake(void **state)
{
    uint64_t before;

    (void)state;
    begin(LEAT_CONGESTION_CUBIC);
    leat_echo_begin(&echo);
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 100000), LEAT_OK);
    assert_true(leat_pair_run(&echo.pair, leat_echo_both_connected, &echo, 200 * LEAT_MILLISECOND));
    assert_in_range(bytes_sent(), 1200, 20000);
    run_for(200 * LEAT_MILLISECOND);
    assert_true(bytes_sent() > 100000);
    assert_int_equal(leat_conn_set_rate(echo.pair.conn, 2400, 0), LEAT_OK);
    before = bytes_sent();
    assert_int_equal(leat_conn_set_padding(echo.pair.conn, 1000000), LEAT_OK);
    run_for(100 * LEAT_MILLISECOND); /* ten round trips of two datagrams */
    assert_in_range(bytes_sent() - before, 2400, 13 * 3000);
    leat_echo_finish(&echo);
}

static bool shut_the_window(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    if (!to_server && pair->user == NULL) {
        pair->conn->cc.cwnd = LEAT_INITIAL_MIN_SIZE - 1;
        pair->user = pair;
    }
    return true;
}

static bool client_can_acknowledge(void *arg)
{
    const leat_conn *conn = ((leat_echo *)arg)->pair.conn;

    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].rx);
}

/* RFC 9002 s2: PADDING makes an ACK count, and a client pads each Initial. */
static void a_padded_initial_waits_for_the_window(void **state)
{
    leat_conn *conn;

    (void)state;
    leat_echo_prepare(&echo);
    leat_echo_begin(&echo);
    conn = echo.pair.conn;
    echo.pair.filter = shut_the_window;
    echo.pair.user = NULL;
    assert_true(leat_pair_run(&echo.pair, client_can_acknowledge, &echo, LEAT_SECOND));
    run_for(LEAT_MILLISECOND);
    assert_int_equal(conn->flight.bytes, 0); /* the ClientHello was acknowledged */
    assert_true(leat_acks_is_due(&conn->hs->spaces[LEAT_SPACE_INITIAL].acks, echo.pair.now));
    /* A probe after a PTO takes it along. */
    assert_true(leat_pair_run(&echo.pair, leat_echo_both_connected, &echo, 2 * LEAT_SECOND));
    echo.pair.filter = NULL;
    leat_echo_finish(&echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(the_setting_chooses_and_cubic_is_the_default),
        cmocka_unit_test(an_unknown_controller_is_refused),
        cmocka_unit_test(changes_of_state_are_traced),
        cmocka_unit_test(bbr_tells_its_states),
        cmocka_unit_test(an_outside_controller_sets_the_rate),
        cmocka_unit_test(a_small_window_from_outside_bounds_what_is_in_flight),
        cmocka_unit_test(the_settings_controller_takes_over_again),
        cmocka_unit_test(a_closed_connection_takes_no_rate),
        cmocka_unit_test(padding_goes_out_at_the_rate_when_nothing_else_waits),
        cmocka_unit_test(data_goes_before_padding),
        cmocka_unit_test(padding_waits_for_the_window_and_the_handshake),
        cmocka_unit_test(a_padded_initial_waits_for_the_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
