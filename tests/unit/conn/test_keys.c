/* tests/unit/conn/test_keys.c: when the keys of a connection come, go, and may not be used any more
 * (RFC 9001 s4.9, s5.7, s6).
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

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define UNKNOWN    BYTES(0x21, 0, 0, 0) /* a frame that closes whoever reads it */
#define PING       BYTES(0x01, 0, 0, 0)

static void soon(void)
{
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
}

static leat_conn *server_conn(void)
{
    return LEAT_CONTAINER_OF(leat_list_first(&e.pair.server->conns), leat_conn, host_link);
}

static void connected(void)
{
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
}

static void write_some(size_t n)
{
    static const uint8_t data[100000];
    leat_stream *stream;
    size_t written;

    assert_true(n <= sizeof(data));
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, n, &written), LEAT_OK);
    assert_int_equal(written, n);
}

/* ---- the handshake ---- */

/* Of what goes to the server nothing but Initials. */
static bool no_handshake_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair;
    for (size_t at = 0; to_server && at < *len; at += header.packet_len) {
        if (leat_header_parse(data + at, *len - at, LEAT_CID_LEN_DEFAULT, &header) != LEAT_OK ||
            header.type != LEAT_PACKET_INITIAL) {
            return false;
        }
    }
    return true;
}

static bool nothing_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

static bool client_has_handshake_keys(void *arg)
{
    leat_conn *conn = e.pair.conn;

    (void)arg;
    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

static bool client_connected(void *arg)
{
    (void)arg;
    return e.client.connected > 0;
}

/* Any Handshake packet will do, not only the one that ends the handshake. It proves the address,
 * too (RFC 9000 s8.1). */
static void a_servers_initial_keys_go_with_the_first_handshake_packet(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = no_handshake_to_server;
    assert_true(leat_pair_run(&e.pair, client_has_handshake_keys, NULL, LEAT_SECOND));
    server = server_conn();
    assert_true(server->hs->spaces[LEAT_SPACE_INITIAL].open);
    assert_false(leat_paths_active(&server->paths)->validated);
    leat_forge_in(&e.pair, e.pair.conn, LEAT_SPACE_HANDSHAKE, PING);
    soon();
    assert_int_equal(server->state, LEAT_CONN_HANDSHAKE);
    assert_false(server->hs->spaces[LEAT_SPACE_INITIAL].open);
    assert_true(leat_paths_active(&server->paths)->validated);
    e.pair.filter = NULL;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_finish(&e);
}

/* s5.7: neither does a client, though TLS may have given it the keys. */
static void a_client_reads_no_1rtt_before_the_handshake_is_complete(void **state)
{
    leat_conn *client;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = no_handshake_to_server;
    assert_true(leat_pair_run(&e.pair, client_connected, NULL, LEAT_SECOND));
    client = e.pair.conn;
    client->state = LEAT_CONN_HANDSHAKE; /* as if it was not */
    leat_forge(&e.pair, server_conn(), UNKNOWN);
    soon();
    assert_int_equal(e.client.closed, 0);
    assert_int_equal(client->hs->early_count, 1);
    client->state = LEAT_CONN_ACTIVE;
    client->hs->fresh_keys = true;
    leat_forge_in(&e.pair, server_conn(), LEAT_SPACE_HANDSHAKE, PING);
    soon(); /* now what was kept is read */
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.code, LEAT_TE_FRAME_ENCODING_ERROR);
    leat_pair_free(&e.pair);
}

/* A server may have them before the client has proved anything. */
static void a_server_reads_no_1rtt_before_the_handshake_is_complete(void **state)
{
    (void)state;
    connected();
    e.server.conn->state = LEAT_CONN_HANDSHAKE;
    leat_forge(&e.pair, e.pair.conn, UNKNOWN);
    soon();
    assert_int_equal(e.server.closed, 0);
    e.server.conn->state = LEAT_CONN_ACTIVE;
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_finish(&e);
}

/* ---- updates ---- */

/* s6.1: that the keys are there, and a packet was acknowledged, is not enough. */
static void no_update_before_the_handshake_is_confirmed(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = no_handshake_to_server;
    assert_true(leat_pair_run(&e.pair, client_connected, NULL, LEAT_SECOND));
    write_some(100);
    soon();
    assert_true(leat_sent_next_pn(&e.pair.conn->app.sent) > 0);
    leat_forge(&e.pair, server_conn(), BYTES(0x02, 0, 0, 0, 0)); /* ACK of packet 0 */
    soon();
    assert_true(leat_rekey_may_update(&e.pair.conn->rekey));
    assert_false(e.pair.conn->confirmed);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_ERR_STATE);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_true(e.pair.conn->confirmed);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_finish(&e);
}

/* s6.6: keys that are used up, while the last update is not answered, end the connection. */
static void keys_used_up_end_the_connection(void **state)
{
    leat_packet_keys *tx;
    uint64_t limit;

    (void)state;
    connected();
    tx = &e.pair.conn->rekey.tx;
    limit = leat_packet_keys_info(tx)->seal_limit;
    e.pair.conn->rekey.acked = false;
    tx->sealed = limit - 1;
    e.pair.filter = nothing_to_client;
    write_some(100);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(e.client.info.code, LEAT_TE_AEAD_LIMIT_REACHED);
    leat_pair_free(&e.pair);
}

static struct {
    size_t count;
    size_t len[2];
    uint8_t data[2][1500];
} held;

/* The next two datagrams to the server wait for the test, and from then on the client hears
 * nothing: once the server's ACKs have arrived it would take older numbers for duplicates. */
static bool hold_two(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!to_server || held.count == 2) {
        return to_server;
    }
    memcpy(held.data[held.count], data, *len);
    held.len[held.count++] = *len;
    return false;
}

static void release(size_t i)
{
    leat_pair_inject(&e.pair, true, held.data[i], held.len[i]);
    soon();
}

/* s6.5: what was sent before an update is read for three PTOs after it, and no longer. */
static void the_old_keys_are_kept_for_three_ptos(void **state)
{
    leat_conn *server;
    leat_time pto, begin;
    uint64_t received;

    (void)state;
    connected();
    held.count = 0;
    e.pair.filter = hold_two;
    write_some(2000);
    soon();
    leat_pair_run(&e.pair, NULL, NULL, 2 * e.setup.delay);
    assert_int_equal(held.count, 2);
    server = e.server.conn;
    begin = e.pair.now;
    pto = leat_loss_pto(&server->loss, LEAT_SPACE_APP);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_pair_run(&e.pair, NULL, NULL, 2 * e.setup.delay);
    assert_int_equal(server->rekey.rx_phase, 1);
    assert_true(leat_packet_keys_ready(&server->rekey.rx_prev));
    leat_pair_run(&e.pair, NULL, NULL, begin + 5 * pto / 2 - e.pair.now);
    received = server->count.packets_received;
    release(0);
    assert_int_equal(server->count.packets_received, received + 1);
    assert_int_equal(server->rekey.rx_phase, 1);
    leat_echo_settle(&e, 3 * pto);
    assert_false(leat_packet_keys_ready(&server->rekey.rx_prev));
    received = server->count.packets_received;
    release(1);
    assert_int_equal(server->count.packets_received, received);
    assert_int_equal(server->rekey.rx_phase, 1);
    e.pair.filter = NULL;
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* s6.4: of two packets the one with the higher number has no older keys. */
static void a_newer_phase_below_an_older_ones_numbers_closes(void **state)
{
    uint64_t ahead;

    (void)state;
    connected();
    ahead = leat_sent_next_pn(&e.pair.conn->app.sent) + 10;
    e.pair.filter = nothing_to_client;
    leat_forge_odd_in(&e.pair, e.pair.conn, LEAT_SPACE_APP, &(leat_forge_odd){.number = &ahead},
                      PING);
    soon();
    assert_int_equal(e.server.closed, 0);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_pair_run(&e.pair, NULL, NULL, 2 * e.setup.delay);
    assert_int_equal(e.server.closed, 1);
    assert_int_equal(e.server.info.code, LEAT_TE_KEY_UPDATE_ERROR);
    leat_pair_free(&e.pair);
}

/* s6.4, the other way round: what older keys have sealed with a higher number is dropped. */
static void an_older_phase_above_a_newer_ones_numbers_is_dropped(void **state)
{
    leat_packet_keys old;
    uint64_t ahead, received;

    (void)state;
    connected();
    old = e.pair.conn->rekey.tx;
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_echo_settle(&e, 30 * LEAT_MILLISECOND);
    assert_int_equal(e.server.conn->rekey.rx_phase, 1);
    assert_true(leat_packet_keys_ready(&e.server.conn->rekey.rx_prev));
    received = e.server.conn->count.packets_received;
    ahead = leat_sent_next_pn(&e.pair.conn->app.sent) + 10;
    e.pair.conn->rekey.tx_phase--; /* as the bit says */
    leat_forge_odd_in(&e.pair, e.pair.conn, LEAT_SPACE_APP,
                      &(leat_forge_odd){.number = &ahead, .keys = &old}, UNKNOWN);
    e.pair.conn->rekey.tx_phase++;
    soon();
    assert_int_equal(e.server.closed, 0);
    assert_int_equal(e.server.conn->count.packets_received, received);
    assert_int_equal(e.server.conn->rekey.rx_phase, 1);
    leat_packet_keys_drop(&old, e.pair.conn->host->shared->keys);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_servers_initial_keys_go_with_the_first_handshake_packet),
        cmocka_unit_test(a_client_reads_no_1rtt_before_the_handshake_is_complete),
        cmocka_unit_test(a_server_reads_no_1rtt_before_the_handshake_is_complete),
        cmocka_unit_test(no_update_before_the_handshake_is_confirmed),
        cmocka_unit_test(keys_used_up_end_the_connection),
        cmocka_unit_test(the_old_keys_are_kept_for_three_ptos),
        cmocka_unit_test(a_newer_phase_below_an_older_ones_numbers_closes),
        cmocka_unit_test(an_older_phase_above_a_newer_ones_numbers_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
