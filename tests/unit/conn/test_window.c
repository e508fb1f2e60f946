/* tests/unit/conn/test_window.c: what a connection tells its controller and its loss timer, and
 * heeds of what they say (RFC 9002 s2, s5.3, s6.2.2.1, s7). The parts by themselves are shown in
 * recovery/ and cc/.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"

static leat_echo e;

#define PING      BYTES(0x01, 0, 0, 0)
#define FIRST_ACK BYTES(0x02, 0, 0, 0, 0) /* of packet 0 */

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

static bool has_handshake_packet(const uint8_t *data, size_t len)
{
    leat_header header;

    for (size_t at = 0; at < len; at += header.packet_len) {
        if (leat_header_parse((uint8_t *)(uintptr_t)data + at, len - at, LEAT_CID_LEN_DEFAULT,
                              &header) != LEAT_OK) {
            return false;
        }
        if (header.type == LEAT_PACKET_HANDSHAKE) {
            return true;
        }
    }
    return false;
}

static bool no_handshake_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    return !to_server || !has_handshake_packet(data, *len);
}

static bool server_started(void *arg)
{
    (void)arg;
    return leat_endpoint_conns(e.pair.server) > 0;
}

/* ---- what is in flight, and the window ---- */

/* s2: an ACK alone is not in flight, but with padding it is. */
static void padding_is_in_flight(void **state)
{
    uint64_t before, sent;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = leat_pair_nothing_to_client;
    assert_true(leat_pair_run(&e.pair, server_started, NULL, LEAT_SECOND));
    before = e.pair.conn->flight.bytes;
    sent = e.pair.conn->count.packets_sent;
    leat_forge_in(&e.pair, leat_echo_server_conn(&e), LEAT_SPACE_INITIAL, PING);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(e.pair.conn->count.packets_sent, sent + 1);
    assert_int_equal(e.pair.conn->flight.bytes, before + 1200);
    leat_pair_free(&e.pair);
}

/* Nothing of what it has sent arrives. */
static leat_conn *client_with_a_full_window(void)
{
    leat_conn *client;

    leat_echo_establish(&e);
    client = e.pair.conn;
    assert_int_equal(leat_conn_set_rate(client, 1, 0), LEAT_OK);
    e.pair.filter = leat_pair_nothing_to_server;
    leat_echo_write(&e, 20000);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_true(leat_cc_room(&client->cc, &client->flight) < client->mtu.size);
    return client;
}

/* s7: ACKs are not held back. */
static void an_ack_does_not_wait_for_the_window(void **state)
{
    leat_conn *client;
    uint64_t sent, in_flight;

    (void)state;
    client = client_with_a_full_window();
    assert_true(client->flight.bytes > 0);
    sent = client->count.packets_sent;
    in_flight = client->flight.bytes;
    leat_forge(&e.pair, e.server.conn, PING);
    leat_forge(&e.pair, e.server.conn, PING);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(client->count.packets_sent, sent + 1);
    assert_int_equal(client->flight.bytes, in_flight);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* s7: nor is a window passed by less than a datagram. */
static void what_is_in_flight_never_passes_the_window(void **state)
{
    leat_conn *client;
    uint64_t most = 0;
    leat_time until;

    (void)state;
    leat_echo_establish(&e);
    client = e.pair.conn;
    assert_int_equal(leat_conn_set_rate(client, 7u * client->mtu.size + 700, 0), LEAT_OK);
    leat_echo_write(&e, 50000);
    until = e.pair.now + LEAT_SECOND;
    while (leat_pair_step(&e.pair, until)) {
        most = client->flight.bytes > most ? client->flight.bytes : most;
        assert_true(client->flight.bytes <= client->cc.cwnd);
    }
    assert_true(most > 6u * client->mtu.size);
    leat_echo_finish(&e);
}

/* s6.2.4, s7.5: what a probe takes along does not wait for the window either: with a PING alone the
 * peer would have no more than before. */
static void a_probe_brings_data_past_a_full_window(void **state)
{
    leat_conn *client;
    uint64_t ptos, resent;

    (void)state;
    client = client_with_a_full_window();
    ptos = client->loss.pto_total;
    resent = client->streams.stat_resent;
    while (client->loss.pto_total == ptos) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_true(client->streams.stat_resent >= resent + 1000);
    assert_true(client->flight.bytes > client->cc.cwnd);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* ---- the loss timer in the handshake ---- */

/* s6.2.2.1: what may not be sent needs no timer, until the client is heard of again. */
static void a_server_that_may_not_send_arms_no_timer(void **state)
{
    leat_conn *server;
    uint64_t ptos, sent;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.handshake_timeout = e.setup.conn.handshake_timeout = 60 * LEAT_SECOND;
    e.setup.server.conn.idle_timeout = e.setup.conn.idle_timeout = 120 * LEAT_SECOND;
    leat_echo_begin(&e);
    e.pair.filter = leat_pair_nothing_to_client;
    assert_true(leat_pair_run(&e.pair, server_started, NULL, LEAT_SECOND));
    server = leat_echo_server_conn(&e);
    e.pair.filter = nothing_passes;
    leat_echo_pass(&e, 20 * LEAT_SECOND);
    assert_true(server->loss.blocked);
    assert_int_equal(leat_loss_deadline(&server->loss), LEAT_TIME_NEVER);
    ptos = server->loss.pto_total;
    sent = server->count.datagrams_sent;
    assert_true(ptos > 0);
    leat_echo_pass(&e, 30 * LEAT_SECOND);
    assert_int_equal(server->loss.pto_total, ptos);
    assert_int_equal(server->count.datagrams_sent, sent);
    leat_forge_initial(&e.pair, e.pair.conn, &(leat_forge_odd){0}, PING);
    leat_echo_settle(&e, LEAT_MILLISECOND); /* the probe that was due goes at once */
    assert_true(server->count.datagrams_sent > sent);
    assert_int_equal(server->loss.pto_total, ptos + 1);
    leat_pair_free(&e.pair);
}

/* s6.2.2.1: whoever has a Handshake packet acknowledged is not held back any more, and has nothing
 * to probe for. */
static void an_ack_of_a_handshake_packet_ends_the_clients_probes(void **state)
{
    uint64_t ptos;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = no_handshake_to_server;
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_false(e.pair.conn->loss.peer_validated);
    e.pair.filter = nothing_passes;
    leat_forge_in(&e.pair, leat_echo_server_conn(&e), LEAT_SPACE_HANDSHAKE, FIRST_ACK);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_true(e.pair.conn->loss.peer_validated);
    assert_int_equal(e.pair.conn->loss.pto_count, 0);
    assert_false(e.pair.conn->confirmed);
    ptos = e.pair.conn->loss.pto_total;
    leat_echo_pass(&e, 2 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->loss.pto_total, ptos);
    leat_pair_free(&e.pair);
}

/* s5.3, RFC 9000 s13.2.5: what waited for its keys had arrived. The server acknowledges it late,
 * and says so; the client takes that time off, whatever max_ack_delay is, for the handshake is not
 * confirmed. */
static void the_wait_for_keys_is_not_in_the_rtt(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = no_handshake_to_server;
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    leat_echo_write(&e, 100);
    leat_echo_pass(&e, 300 * LEAT_MILLISECOND);
    server = leat_echo_server_conn(&e);
    assert_int_equal(server->state, LEAT_CONN_HANDSHAKE);
    assert_true(server->hs->early_count > 0);
    assert_in_range(e.pair.conn->loss.rtt.smoothed, 9 * LEAT_MILLISECOND, 12 * LEAT_MILLISECOND);
    e.pair.filter = NULL;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_settle(&e, 100 * LEAT_MILLISECOND);
    assert_true(e.pair.conn->confirmed);
    assert_true(leat_sent_acked_end(&e.pair.conn->app.sent) > 0);
    assert_true(e.pair.conn->loss.rtt.latest > 0);
    assert_in_range(e.pair.conn->loss.rtt.smoothed, 9 * LEAT_MILLISECOND, 15 * LEAT_MILLISECOND);
    leat_echo_finish(&e);
}

static struct {
    uint8_t data[1500];
    size_t len;
} kept;

static bool keep_one_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server || kept.len > 0) {
        return true;
    }
    memcpy(kept.data, data, *len);
    kept.len = *len;
    return false;
}

/* s5.3: nor is the time for which what has arrived lies unread. */
static void the_wait_for_a_turn_is_not_in_the_rtt(void **state)
{
    leat_conn *client;
    leat_time smoothed;

    (void)state;
    leat_echo_establish(&e);
    client = e.pair.conn;
    kept.len = 0;
    e.pair.filter = keep_one_to_client;
    leat_echo_write(&e, 3000);
    while (kept.len == 0) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    smoothed = client->loss.rtt.smoothed;
    leat_pair_inject(&e.pair, false, kept.data, kept.len);
    e.pair.now += 20 * LEAT_MILLISECOND; /* this thread has been held up */
    leat_ctx_set_now(e.pair.ctx, e.pair.now);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(client->flight.bytes, 0);
    assert_in_range(client->loss.rtt.latest, 10 * LEAT_MILLISECOND, 11 * LEAT_MILLISECOND);
    assert_in_range(client->loss.rtt.smoothed, smoothed - LEAT_MILLISECOND,
                    smoothed + LEAT_MILLISECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_finish(&e);
}

/* ---- what the controller is told ---- */

static struct {
    unsigned restarts, app_limited, mtu;
    uint32_t mtu_before;
} told;

static void spy_restart(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    (void)cc, (void)now;
    assert_int_equal(flight->bytes, 0);
    told.restarts++;
}

static void spy_app_limited(leat_cc *cc, leat_time now)
{
    (void)cc, (void)now;
    told.app_limited++;
}

static void spy_mtu(leat_cc *cc, uint32_t before)
{
    (void)cc;
    told.mtu++;
    told.mtu_before = before;
}

/* The client's controller is CUBIC, but for what it is asked here. */
static void spy_on_client(void)
{
    static leat_cc_ops spy;

    spy = leat_cc_cubic;
    spy.on_idle_restart = spy_restart;
    spy.on_app_limited = spy_app_limited;
    spy.on_mtu = spy_mtu;
    e.pair.conn->cc.ops = &spy;
    memset(&told, 0, sizeof(told));
}

static void a_controller_is_told_of_idle_times(void **state)
{
    (void)state;
    leat_echo_establish(&e);
    spy_on_client();
    for (unsigned i = 1; i <= 3; i++) {
        leat_echo_pass(&e, 10 * LEAT_SECOND);
        assert_int_equal(told.restarts, i - 1);
        leat_echo_write(&e, 100);
        leat_echo_settle(&e, LEAT_SECOND);
        assert_int_equal(told.restarts, i);
    }
    /* While something is in flight it is not idle. */
    leat_echo_write(&e, 100);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(told.restarts, 4);
    leat_echo_write(&e, 100);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(told.restarts, 4);
    leat_echo_finish(&e);
}

static void a_controller_is_told_when_the_application_sends_little(void **state)
{
    leat_conn *client;
    leat_time until;

    (void)state;
    leat_echo_establish(&e);
    client = e.pair.conn;
    spy_on_client();
    client->flight.app_limited = 0;
    leat_echo_write(&e, 100);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(told.app_limited, 1);
    assert_true(client->flight.app_limited > 0);
    leat_echo_settle(&e, LEAT_SECOND);
    /* Not while data waits for the window. */
    told.app_limited = 0;
    client->cc.cwnd = 2 * client->mtu.size;
    client->cc.ssthresh = client->cc.cwnd;
    leat_echo_write(&e, 30000);
    until = e.pair.now + LEAT_SECOND;
    while (client->streams.flow_out.used < 20000) {
        assert_true(leat_pair_step(&e.pair, until));
        assert_int_equal(told.app_limited, 0);
    }
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(told.app_limited > 0);
    leat_echo_finish(&e);
}

/* Grows, and falls back when the path carries less. */
static bool small_pass(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data;
    return !to_server || *len <= 1200;
}

static void a_controller_is_told_of_the_datagram_size(void **state)
{
    leat_conn *client;
    uint32_t large;

    (void)state;
    leat_echo_establish(&e);
    client = e.pair.conn;
    large = client->mtu.size;
    assert_true(large > 1200);
    assert_int_equal(client->cc.mds, large);
    assert_int_equal(client->pacer.mds, large);
    spy_on_client();
    e.pair.filter = small_pass;
    leat_echo_write(&e, 30000);
    leat_echo_settle(&e, 20 * LEAT_SECOND);
    assert_true(told.mtu > 0);
    assert_int_equal(client->mtu.size, 1200);
    assert_int_equal(client->cc.mds, 1200);
    assert_int_equal(client->pacer.mds, 1200);
    assert_int_equal(told.mtu_before, large);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_is_in_flight),
        cmocka_unit_test(an_ack_does_not_wait_for_the_window),
        cmocka_unit_test(what_is_in_flight_never_passes_the_window),
        cmocka_unit_test(a_probe_brings_data_past_a_full_window),
        cmocka_unit_test(a_server_that_may_not_send_arms_no_timer),
        cmocka_unit_test(an_ack_of_a_handshake_packet_ends_the_clients_probes),
        cmocka_unit_test(the_wait_for_keys_is_not_in_the_rtt),
        cmocka_unit_test(the_wait_for_a_turn_is_not_in_the_rtt),
        cmocka_unit_test(a_controller_is_told_of_idle_times),
        cmocka_unit_test(a_controller_is_told_when_the_application_sends_little),
        cmocka_unit_test(a_controller_is_told_of_the_datagram_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
