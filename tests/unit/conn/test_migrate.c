/* tests/unit/conn/test_migrate.c: connections that change their path: by the client's will, by a
 * NAT's, by a forger's.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/migrate.h"
#include "echo.h"
#include "forge.h"

static leat_echo e;

static void connected(void)
{
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 5 * LEAT_SECOND);
}

static const leat_path *server_path(void)
{
    return leat_paths_active_const(&e.server.conn->paths);
}

static uint8_t replay[1500];
static size_t replay_len;

static bool keep_one(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!to_server && replay_len == 0) {
        memcpy(replay, data, *len);
        replay_len = *len;
        return false;
    }
    return true;
}

/* ---- the client's will ---- */

static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};

static void paths_are_told_of_in_one_call(void **state)
{
    leat_path_stats paths[LEAT_PATHS_MAX];

    (void)state;
    connected();
    assert_int_equal(leat_conn_paths(e.pair.conn, paths, LEAT_PATHS_MAX), 1);
    assert_true(paths[0].active && paths[0].validated);
    assert_int_equal(paths[0].udp_payload, 1452);
    assert_string_equal(paths[0].ecn, "capable");
    assert_in_range(paths[0].rtt_min, 10 * LEAT_MILLISECOND, 11 * LEAT_MILLISECOND);
    assert_true(paths[0].bytes_received > 100000);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    assert_int_equal(leat_conn_paths(e.pair.conn, paths, LEAT_PATHS_MAX), 2);
    assert_true(paths[0].active && !paths[1].active && !paths[1].validated);
    assert_true(leat_addr_equal(&paths[1].local, &elsewhere));
    assert_null(paths[1].ecn);
    leat_echo_settle(&e, LEAT_SECOND / 10);
    assert_int_equal(leat_conn_paths(e.pair.conn, paths, 1), 1);
    assert_true(leat_addr_equal(&paths[0].local, &elsewhere));
    leat_echo_finish(&e);
}

static void a_client_moves_and_takes_a_fresh_id(void **state)
{
    leat_cid before_client, before_server;
    leat_conn_stats_data stats;
    leat_stream *stream;
    size_t written;

    (void)state;
    connected();
    before_client = *leat_remote_cids_current(&e.pair.conn->remote_cids);
    before_server = *leat_remote_cids_current(&e.server.conn->remote_cids);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    /* Nothing but probes went there until it was validated; now it is the path. */
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "moved", 5, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &elsewhere));
    assert_true(server_path()->validated);
    assert_false(
        leat_cid_equal(&before_client, leat_remote_cids_current(&e.pair.conn->remote_cids)));
    assert_false(
        leat_cid_equal(&before_server, leat_remote_cids_current(&e.server.conn->remote_cids)));
    leat_conn_stats(e.pair.conn, &stats);
    assert_int_equal(stats.migrations, 1);
    leat_echo_bytes(&e, 300000, 10 * LEAT_SECOND);
    leat_conn_check(e.pair.conn);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* IDs come again after each move, so it can go on for ever. */
static void a_client_moves_again_and_again(void **state)
{
    (void)state;
    connected();
    for (uint8_t i = 1; i < 30; i++) {
        leat_addr to = elsewhere;

        to.ip[3] = i;
        assert_int_equal(leat_conn_migrate(e.pair.conn, &to), LEAT_OK);
        leat_echo_settle(&e, LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &to));
        leat_echo_bytes(&e, 20000, 5 * LEAT_SECOND);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        leat_conn_check(e.pair.conn);
        leat_conn_check(e.server.conn);
    }
    leat_echo_finish(&e);
}

/* RFC 9000 s5.1.2: an ID whose retirement has to wait for others' is neither forgotten nor used for
 * another path. */
static void an_id_that_cannot_be_retired_yet_is_retired_later(void **state)
{
    leat_remote_cids *cids;

    (void)state;
    connected();
    cids = &e.pair.conn->remote_cids;
    for (uint8_t i = 0; i < LEAT_RETIRING_CIDS_MAX; i++) { /* sent, and never acknowledged */
        cids->retiring[i] = (leat_retiring){.sequence = 1000u + i, .sent = true};
    }
    cids->retiring_count = LEAT_RETIRING_CIDS_MAX;
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_settle(&e, 10 * LEAT_SECOND); /* the path that was left is forgotten */
    assert_int_equal(e.pair.conn->paths.count, 1);
    assert_non_null(leat_remote_cids_find(cids, 0));
    assert_true(leat_remote_cids_find(cids, 0)->taken);
    leat_remote_cids_retire_acked(cids, 1000);
    leat_migrate_retire_cids(e.pair.conn);
    assert_null(leat_remote_cids_find(cids, 0));
    assert_int_equal(cids->retiring_count, LEAT_RETIRING_CIDS_MAX);
    cids->retiring[0] = cids->retiring[LEAT_RETIRING_CIDS_MAX - 1];
    cids->retiring_count = 1;
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_conn_check(e.pair.conn);
    leat_echo_finish(&e);
}

static bool from_elsewhere_is_lost(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    return !to_server || *(bool *)pair->user;
}

static void a_path_that_leads_nowhere_is_not_taken(void **state)
{
    leat_addr before;

    (void)state;
    connected();
    before = *leat_conn_local(e.pair.conn);
    e.pair.filter = from_elsewhere_is_lost;
    e.pair.user = &(bool){false};
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    e.pair.filter = NULL;
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &before));
    leat_echo_bytes(&e, 30000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

static void what_migrate_refuses(void **state)
{
    leat_addr v6 = {.family = 6, .port = 1};

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_ERR_STATE);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &v6), LEAT_ERR_INVALID);
    assert_int_equal(leat_conn_migrate(e.pair.conn, leat_conn_local(e.pair.conn)),
                     LEAT_ERR_INVALID);
    assert_int_equal(leat_conn_migrate(e.server.conn, &elsewhere), LEAT_ERR_STATE);
    e.pair.conn->peer.no_migration = true;
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_ERR_UNSUPPORTED);
    leat_echo_finish(&e);
}

static uint8_t overtaken[1500];
static size_t overtaken_len, overtaken_by;

/* The server's answer on the new path, which its size tells, comes after 140 later packets. */
static bool overtake(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    if (to_server) {
        return true;
    }
    if (overtaken_len == 0 && *len == LEAT_INITIAL_MIN_SIZE) {
        memcpy(overtaken, data, *len);
        overtaken_len = *len;
        return false;
    }
    if (overtaken_len > 0 && ++overtaken_by == 140) {
        leat_pair_inject(pair, false, overtaken, overtaken_len);
    }
    return true;
}

/* More than a packet number of one byte can tell apart. */
static void an_answer_that_is_overtaken_by_many_packets_counts(void **state)
{
    leat_time began;

    (void)state;
    connected();
    leat_echo_bytes(&e, 2000000, 10 * LEAT_SECOND); /* the window grows */
    overtaken_len = overtaken_by = 0;
    e.pair.filter = overtake;
    began = e.pair.now;
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_bytes(&e, 400000, 5 * LEAT_SECOND);
    assert_true(overtaken_by >= 140);
    assert_true(e.pair.now - began < LEAT_SECOND / 2); /* the challenge was not sent again */
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    leat_echo_finish(&e);
}

/* The server may be where the client was, and has nothing to learn better from unless what it sends
 * is acknowledged. */
static void a_client_hears_the_server_at_an_address_that_it_left(void **state)
{
    leat_recv_info info;
    leat_conn_stats_data before, after;
    leat_stream *stream;
    size_t written;

    (void)state;
    replay_len = 0;
    connected();
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->paths.count, 1);
    e.pair.filter = keep_one;
    assert_int_equal(leat_stream_write(e.server.stream, "y", 1, &written), LEAT_OK);
    leat_echo_settle(&e, 20 * LEAT_MILLISECOND);
    assert_true(replay_len > 0);
    leat_conn_stats(e.pair.conn, &before);
    info = (leat_recv_info){.remote = *leat_conn_remote(e.pair.conn), .local = e.pair.client_addr};
    leat_endpoint_recv_copy(e.pair.client, replay, replay_len, &info);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    leat_conn_stats(e.pair.conn, &after);
    assert_int_equal(after.packets_received, before.packets_received + 1);
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    leat_conn_check(e.pair.conn);
    leat_echo_finish(&e);
}

/* ---- a NAT's will ---- */

static void rebind(uint16_t port, uint8_t host)
{
    /* What was on its way to the old mapping is lost. */
    e.pair.nat = (leat_addr){.family = 4, .port = port, .ip = {172, 16, 0, host}};
}

static void connected_behind_nat(void)
{
    leat_echo_begin(&e);
    rebind(1000, 1);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
}

static void a_rebound_port_is_followed_without_a_new_start(void **state)
{
    uint64_t cwnd;
    leat_time srtt;

    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    leat_echo_bytes(&e, 300000, 5 * LEAT_SECOND);
    cwnd = e.server.conn->cc.cwnd;
    srtt = e.server.conn->loss.rtt.smoothed;
    assert_true(cwnd > 14720);
    rebind(2000, 1);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    assert_true(server_path()->validated);
    assert_true(e.server.conn->cc.cwnd >= cwnd / 2);
    assert_true(e.server.conn->loss.rtt.smoothed < 2 * srtt);
    leat_echo_bytes(&e, 100000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

static void a_rebound_address_starts_congestion_control_anew(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    leat_echo_bytes(&e, 300000, 5 * LEAT_SECOND);
    assert_true(e.server.conn->cc.cwnd > 30000);
    rebind(1000, 2);
    leat_echo_bytes(&e, 100, 5 * LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.server.conn)->ip[3], 2);
    assert_true(e.server.conn->cc.cwnd <= 16000);
    leat_echo_bytes(&e, 300000, 10 * LEAT_SECOND);
    assert_true(server_path()->validated);
    leat_echo_finish(&e);
}

/* As the interop runner does it: again and again in the middle of a transfer. */
static bool server_has_finished(void *arg)
{
    (void)arg;
    return e.server.conn && e.server.conn->confirmed;
}

/* The server has the Finished, and its Handshake keys are gone; the address that HANDSHAKE_DONE
 * goes to is nobody's any more. Handshake probes tell such a server nothing of the new one. */
static void rebinding_before_handshake_done_is_followed(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    rebind(1000, 1);
    assert_true(leat_pair_run(&e.pair, server_has_finished, NULL, LEAT_SECOND));
    assert_false(e.pair.conn->confirmed);
    rebind(2000, 1);
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    assert_true(e.pair.conn->confirmed);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    leat_echo_bytes(&e, 100000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

static void rebinding_in_a_transfer_loses_nothing(void **state)
{
    leat_stream *stream;
    static uint8_t data[20000];
    size_t sent = 0;
    uint16_t port = 1000;

    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    for (int i = 0; i < 20; i++) {
        size_t written = 0;

        leat_stream_write(stream, data, sizeof(data), &written);
        sent += written;
        leat_echo_settle(&e, 8 * LEAT_MILLISECOND);
        rebind(++port, (uint8_t)(1 + (i & 1)));
    }
    leat_stream_finish(stream);
    leat_echo_settle(&e, 20 * LEAT_SECOND);
    assert_int_equal(e.client.received, sent);
    assert_true(e.client.end);
    leat_echo_finish(&e);
}

/* A download's client sends nothing of itself, and what the server sends goes to the old mapping
 * until the client is heard. It asks once a silence. */
static void who_waits_for_data_asks_once_a_silence(void **state)
{
    leat_stream *stream;
    uint64_t sent;
    size_t n;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.ask_after = 2 * LEAT_SECOND;
    e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = 300 * LEAT_SECOND;
    connected_behind_nat();
    sent = e.pair.conn->count.packets_sent;
    leat_echo_pass(&e, 10 * LEAT_SECOND); /* a silence in which nothing is waited for */
    assert_int_equal(e.pair.conn->count.packets_sent, sent);
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &n), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    rebind(2000, 1);
    assert_int_equal(leat_stream_write(e.server.stream, "y", 1, &n), LEAT_OK);
    leat_echo_settle(&e, 900 * LEAT_MILLISECOND);
    assert_int_equal(e.client.received, 1);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(e.client.received, 2);
    leat_echo_settle(&e, LEAT_SECOND);
    sent = e.pair.conn->count.packets_sent;
    leat_echo_settle(&e, 100 * LEAT_SECOND);
    assert_in_range(e.pair.conn->count.packets_sent - sent, 0, 3); /* a PING, and what it brought */
    leat_echo_finish(&e);
}

static bool to_client_is_lost(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

/* RFC 9002 s7: what validates the path in use waits for the window, too, until a PTO has expired.
 */
static void a_challenge_waits_for_the_window_and_for_a_pto_at_most(void **state)
{
    static uint8_t data[100000];
    leat_stream *stream;
    size_t written;
    uint64_t in_flight;

    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    e.pair.filter = to_client_is_lost;
    assert_int_equal(leat_stream_write(e.server.stream, data, sizeof(data), &written), LEAT_OK);
    do { /* until the next PTO is further away than giving up will be */
        leat_echo_settle(&e, 4 * LEAT_SECOND);
    } while (leat_loss_deadline(&e.server.conn->loss) < e.pair.now + 4 * LEAT_SECOND);
    in_flight = e.server.conn->flight.bytes;
    assert_true(in_flight + e.server.conn->mtu.size > e.server.conn->cc.cwnd);
    rebind(2000, 1);
    leat_forge(&e.pair, e.pair.conn, (const uint8_t[1200]){0x01}, 1200);
    e.pair.filter = NULL;
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    assert_true(server_path()->challenge_due);
    assert_int_equal(server_path()->challenges, 0);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(e.server.conn->flight.bytes, in_flight);
    assert_true(leat_loss_deadline(&e.server.conn->loss) > server_path()->give_up_at);
    leat_echo_settle(&e, leat_migrate_pto(e.server.conn) + 20 * LEAT_MILLISECOND);
    assert_true(server_path()->validated);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    assert_int_equal(e.client.received, sizeof(data) + 1);
    leat_echo_finish(&e);
}

static size_t small, full; /* datagrams to a NAT's new port, by size */
static bool carries_1200;

static bool by_size(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data;
    if (to_server || pair->to.port != 2000) {
        return true;
    }
    small += *len < 1200;
    full += *len >= 1200;
    return *len < 1200 || carries_1200;
}

/* What comes first from the new port is so small that no 1,200 bytes may go there. */
static void rebind_with_a_small_packet(void)
{
    leat_echo_prepare(&e);
    connected_behind_nat();
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    small = full = 0;
    e.pair.filter = by_size;
    rebind(2000, 1);
    leat_forge(&e.pair, e.pair.conn, (const uint8_t[]){0x01}, 1);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
}

/* RFC 9000 s8.2.1: a challenge that could not be padded proves the address; another, padded, that
 * QUIC's least fits. */
static void an_address_is_proved_first_and_its_size_afterwards(void **state)
{
    (void)state;
    carries_1200 = true;
    rebind_with_a_small_packet();
    leat_echo_settle(&e, 12 * LEAT_MILLISECOND); /* a round trip */
    assert_true(small > 0);
    assert_true(server_path()->validated);
    assert_false(server_path()->carries);
    leat_echo_settle(&e, 12 * LEAT_MILLISECOND);
    assert_true(full > 0);
    assert_true(server_path()->carries);
    assert_int_equal(server_path()->challenges, 0);
    assert_int_equal(e.server.conn->paths.fallback, e.server.conn->paths.active);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

static bool server_is_back(void *arg)
{
    (void)arg;
    return leat_conn_remote(e.server.conn)->port == 1000;
}

static void a_path_too_small_for_quic_is_left(void **state)
{
    (void)state;
    carries_1200 = false;
    rebind_with_a_small_packet();
    leat_echo_settle(&e, 12 * LEAT_MILLISECOND);
    assert_true(server_path()->validated);
    assert_true(leat_pair_run(&e.pair, server_is_back, NULL, 10 * LEAT_SECOND));
    assert_int_equal(full, LEAT_PATH_CHALLENGES);
    rebind(1000, 1);
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* s9.5 lets the ID in use go on where the peer's is the same: a NAT's new port needs no other. */
static void a_server_without_a_spare_id_follows_a_nat(void **state)
{
    leat_remote_cids *cids;
    leat_remote_cid *spare;

    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    cids = &e.server.conn->remote_cids;
    while ((spare = leat_remote_cids_fresh(cids)) != NULL) {
        *spare = (leat_remote_cid){.used = false};
    }
    rebind(2000, 2);
    leat_echo_bytes(&e, 50000, 5 * LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    assert_true(server_path()->validated);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* A token is good at the address where it was given (s8.1.4), so a new address gets a new one
 * (s9.3). */
static void a_client_at_a_new_address_gets_a_new_token(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    assert_int_equal(e.client.tokens, 1);
    rebind(2000, 1);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.client.tokens, 1); /* a port is not in it */
    rebind(2000, 2);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.client.tokens, 2);
    leat_echo_finish(&e);
}

/* disable_active_migration forbids the client to move, not its NAT (CASES.md). */
static void rebinding_is_followed_where_migration_is_forbidden(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.disable_migration = true;
    connected_behind_nat();
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_ERR_UNSUPPORTED);
    rebind(2000, 1);
    leat_echo_bytes(&e, 50000, 5 * LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    leat_echo_finish(&e);
}

/* ---- a forger's will ---- */

static leat_addr victim = {.family = 4, .port = 9, .ip = {203, 0, 113, 9}};
static uint8_t stolen[1500];
static size_t stolen_len, to_victim;

/* Steals the client's next datagram: it reaches the server from the victim's address. */
static bool steal(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && stolen_len == 0) {
        memcpy(stolen, data, *len);
        stolen_len = *len;
        return false;
    }
    return true;
}

/* A tenth of a second in which nobody hears what the server sends. */
static void send_to_victim(void)
{
    static uint8_t out[65536];
    leat_send_info info;
    size_t n;

    leat_ctx_set_now(e.pair.ctx, e.pair.now);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    while ((n = leat_endpoint_send(e.pair.server, out, sizeof(out), &info)) > 0) {
        to_victim += leat_addr_equal(&info.remote, &victim) ? n : 0;
    }
    e.pair.now += 100 * LEAT_MILLISECOND;
}

static void a_forged_move_is_taken_back(void **state)
{
    leat_stream *stream;
    size_t written;
    static uint8_t data[50000];

    (void)state;
    connected();
    leat_echo_settle(&e, LEAT_SECOND);
    stolen_len = to_victim = 0;
    e.pair.filter = steal;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_MILLISECOND);
    assert_true(stolen_len > 0);
    e.pair.filter = NULL;
    leat_pair_inject_from(&e.pair, &victim, stolen, stolen_len);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    leat_ctx_turn(e.pair.ctx, e.pair.now); /* the application is told */
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &victim));
    /* A server that has much to send may not send it to the victim. */
    assert_non_null(e.server.stream);
    assert_int_equal(leat_stream_write(e.server.stream, data, sizeof(data), &written), LEAT_OK);
    for (int i = 0; i < 100 && leat_addr_equal(leat_conn_remote(e.server.conn), &victim); i++) {
        send_to_victim();
    }
    assert_true(to_victim <= 3 * stolen_len);
    assert_false(leat_addr_equal(leat_conn_remote(e.server.conn), &victim));
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.server.closed, 0);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* One datagram of the client's comes from the victim's address, and nothing more. */
static void a_challenge_that_is_lost_comes_again_whatever_there_is_to_send(void **state)
{
    static uint8_t data[50000];
    leat_stream *stream;
    size_t written;
    unsigned times = 0;

    (void)state;
    connected();
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    stolen_len = to_victim = 0;
    e.pair.filter = steal;
    assert_int_equal(leat_stream_write(stream, data, 100, &written), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_MILLISECOND);
    assert_true(stolen_len > 100);
    e.pair.filter = NULL;
    assert_int_equal(leat_stream_write(e.server.stream, data, sizeof(data), &written), LEAT_OK);
    leat_pair_inject_from(&e.pair, &victim, stolen, stolen_len);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    for (int i = 0; i < 28; i++) { /* until it gives up, after three times a second */
        size_t before = to_victim;

        send_to_victim();
        times += to_victim > before;
    }
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &victim));
    assert_int_equal(times, LEAT_PATH_CHALLENGES);
    /* Each with data of its own (s8.2.1). */
    assert_int_equal(server_path()->challenges, LEAT_PATH_CHALLENGES);
    for (unsigned i = 1; i < LEAT_PATH_CHALLENGES; i++) {
        assert_memory_not_equal(server_path()->challenge[0], server_path()->challenge[i],
                                LEAT_PATH_DATA);
    }
    assert_true(to_victim <= 3 * stolen_len);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* s9.3.3: a client that is asked where it is says more than that, so that a server which was led
 * away comes back. */
static void an_answer_on_the_path_in_use_is_no_mere_probe(void **state)
{
    static const uint8_t challenge[] = {0x1a, 1, 2, 3, 4, 5, 6, 7, 8};
    const leat_sent *sent;

    (void)state;
    connected();
    leat_echo_settle(&e, LEAT_SECOND);
    sent = &e.server.conn->app.sent;
    leat_forge(&e.pair, e.server.conn, challenge, sizeof(challenge));
    assert_true(leat_sent_acked_end(sent) < leat_sent_next_pn(sent));
    leat_echo_settle(&e, e.pair.delay + LEAT_MILLISECOND); /* less than an ACK would wait */
    assert_int_equal(leat_sent_acked_end(sent), leat_sent_next_pn(sent));
    leat_echo_finish(&e);
}

static void probe_from(leat_addr from, unsigned i)
{
    static const uint8_t ping[] = {0x01, 0x1a, 1, 2, 3, 4, 5, 6, 7, 8};
    leat_path_stats paths[LEAT_PATHS_MAX + 1];

    from.ip[2] = (uint8_t)(i >> 8);
    from.ip[3] = (uint8_t)i;
    e.pair.nat = from;
    leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    e.pair.now += LEAT_MILLISECOND;
    leat_conn_check(e.server.conn);
    assert_in_range(leat_conn_paths(e.server.conn, paths, LEAT_PATHS_MAX + 1), 1, LEAT_PATHS_MAX);
}

static void packets_from_many_addresses_keep_few_paths(void **state)
{
    (void)state;
    connected();
    for (unsigned i = 0; i < 1000; i++) {
        probe_from(victim, i);
    }
    e.pair.nat.family = 0;
    leat_echo_bytes(&e, 10000, 30 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* What the server sends to those addresses nobody hears; all of it is acknowledged, from yet
 * another address: paths that were given up, and those that are probed, hear of probes that
 * arrived. */
static void answers_to_probes_of_many_paths_break_nothing(void **state)
{
    static uint8_t out[65536];
    unsigned acked = 0;

    (void)state;
    connected();
    for (unsigned i = 0; i < 1000 && !e.server.closed; i++) {
        uint64_t first = leat_sent_next_pn(&e.server.conn->app.sent), next;
        leat_forge_payload ack;

        probe_from(victim, i);
        while (leat_endpoint_send(e.pair.server, out, sizeof(out), &(leat_send_info){0}) > 0) {
        }
        next = leat_sent_next_pn(&e.server.conn->app.sent);
        if (next == first) {
            continue;
        }
        e.pair.nat.port = (uint16_t)(7000 + i);
        leat_frame_write_ack(leat_forge_begin(&ack), &(leat_range){next - 1, next}, 1, 1, 0, NULL);
        leat_forge_send(&e.pair, e.pair.conn, &ack);
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        leat_conn_check(e.server.conn);
        acked++;
    }
    assert_true(acked > 10);
    leat_pair_free(&e.pair);
}

/* Somebody probes from an address to which as much went as may, before it is validated. */
static void a_path_that_cannot_be_answered_holds_up_no_other(void **state)
{
    static const uint8_t challenge[] = {0x1a, 1, 2, 3, 4, 5, 6, 7, 8};
    leat_path *probed;

    (void)state;
    leat_echo_prepare(&e);
    connected_behind_nat();
    e.pair.nat = victim;
    leat_forge(&e.pair, e.pair.conn, challenge, sizeof(challenge));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    probed = leat_paths_wanting(&e.server.conn->paths, NULL);
    assert_non_null(probed);
    probed->sent = LEAT_PATH_AMPLIFICATION * probed->received;
    rebind(2000, 1);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND / 10);
    assert_true(leat_path_wants_send(probed));
    assert_int_equal(leat_conn_remote(e.server.conn)->port, 2000);
    assert_true(server_path()->validated);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* A server does not move: what comes from another address is not it. */
static void a_client_takes_nothing_from_another_server(void **state)
{
    leat_recv_info info;
    leat_conn_stats_data before, after;

    (void)state;
    replay_len = 0;
    connected();
    e.pair.filter = keep_one;
    leat_forge(&e.pair, e.pair.conn, (const uint8_t[]){0x01}, 1);
    leat_echo_settle(&e, 100 * LEAT_MILLISECOND);
    assert_true(replay_len > 0);
    leat_conn_stats(e.pair.conn, &before);
    info = (leat_recv_info){.remote = victim, .local = e.pair.client_addr};
    leat_endpoint_recv_copy(e.pair.client, replay, replay_len, &info);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    leat_conn_stats(e.pair.conn, &after);
    assert_int_equal(after.packets_received, before.packets_received);
    assert_int_equal(after.packets_dropped, before.packets_dropped + 1);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_told_of_in_one_call),
        cmocka_unit_test(a_client_moves_and_takes_a_fresh_id),
        cmocka_unit_test(a_client_moves_again_and_again),
        cmocka_unit_test(an_id_that_cannot_be_retired_yet_is_retired_later),
        cmocka_unit_test(a_path_that_leads_nowhere_is_not_taken),
        cmocka_unit_test(an_answer_that_is_overtaken_by_many_packets_counts),
        cmocka_unit_test(a_client_hears_the_server_at_an_address_that_it_left),
        cmocka_unit_test(what_migrate_refuses),
        cmocka_unit_test(a_rebound_port_is_followed_without_a_new_start),
        cmocka_unit_test(a_rebound_address_starts_congestion_control_anew),
        cmocka_unit_test(rebinding_before_handshake_done_is_followed),
        cmocka_unit_test(rebinding_in_a_transfer_loses_nothing),
        cmocka_unit_test(who_waits_for_data_asks_once_a_silence),
        cmocka_unit_test(a_challenge_waits_for_the_window_and_for_a_pto_at_most),
        cmocka_unit_test(an_address_is_proved_first_and_its_size_afterwards),
        cmocka_unit_test(a_path_too_small_for_quic_is_left),
        cmocka_unit_test(a_server_without_a_spare_id_follows_a_nat),
        cmocka_unit_test(a_client_at_a_new_address_gets_a_new_token),
        cmocka_unit_test(an_answer_on_the_path_in_use_is_no_mere_probe),
        cmocka_unit_test(rebinding_is_followed_where_migration_is_forbidden),
        cmocka_unit_test(a_forged_move_is_taken_back),
        cmocka_unit_test(a_challenge_that_is_lost_comes_again_whatever_there_is_to_send),
        cmocka_unit_test(packets_from_many_addresses_keep_few_paths),
        cmocka_unit_test(answers_to_probes_of_many_paths_break_nothing),
        cmocka_unit_test(a_path_that_cannot_be_answered_holds_up_no_other),
        cmocka_unit_test(a_client_takes_nothing_from_another_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
