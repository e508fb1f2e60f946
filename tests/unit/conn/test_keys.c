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
#include "forge.h"

static leat_echo e;

#define UNKNOWN BYTES(0x21, 0, 0, 0) /* a frame that closes whoever reads it */
#define PING    BYTES(0x01, 0, 0, 0)

/* ---- the handshake ---- */

static bool client_has_handshake_keys(void *arg)
{
    leat_conn *conn = e.pair.conn;

    (void)arg;
    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

/* Any Handshake packet will do, not only the one that ends the handshake. It proves the address,
 * too (RFC 9000 s8.1). */
static void a_servers_initial_keys_go_with_the_first_handshake_packet(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = leat_pair_initials_to_server;
    assert_true(leat_pair_run(&e.pair, client_has_handshake_keys, NULL, LEAT_SECOND));
    server = leat_echo_server_conn(&e);
    assert_true(server->hs->spaces[LEAT_SPACE_INITIAL].open);
    assert_false(leat_paths_active(&server->paths)->validated);
    leat_forge_in(&e.pair, e.pair.conn, LEAT_SPACE_HANDSHAKE, PING);
    leat_echo_settle(&e, LEAT_MILLISECOND);
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
    e.pair.filter = leat_pair_initials_to_server;
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    client = e.pair.conn;
    client->state = LEAT_CONN_HANDSHAKE; /* as if it was not */
    leat_forge(&e.pair, leat_echo_server_conn(&e), UNKNOWN);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(e.client.closed, 0);
    assert_int_equal(client->hs->early_count, 1);
    client->state = LEAT_CONN_ACTIVE;
    client->hs->fresh_keys = true;
    leat_forge_in(&e.pair, leat_echo_server_conn(&e), LEAT_SPACE_HANDSHAKE, PING);
    leat_echo_settle(&e, LEAT_MILLISECOND); /* now what was kept is read */
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.code, LEAT_TE_FRAME_ENCODING_ERROR);
    leat_pair_free(&e.pair);
}

/* A server may have them before the client has proved anything. */
static void a_server_reads_no_1rtt_before_the_handshake_is_complete(void **state)
{
    (void)state;
    leat_echo_establish(&e);
    e.server.conn->state = LEAT_CONN_HANDSHAKE;
    leat_forge(&e.pair, e.pair.conn, UNKNOWN);
    leat_echo_settle(&e, LEAT_MILLISECOND);
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
    e.pair.filter = leat_pair_initials_to_server;
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    leat_echo_write(&e, 100);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_true(leat_sent_next_pn(&e.pair.conn->app.sent) > 0);
    leat_forge(&e.pair, leat_echo_server_conn(&e), BYTES(0x02, 0, 0, 0, 0)); /* ACK of packet 0 */
    leat_echo_settle(&e, LEAT_MILLISECOND);
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
    leat_echo_establish(&e);
    tx = &e.pair.conn->rekey.tx;
    limit = leat_packet_keys_info(tx)->seal_limit;
    e.pair.conn->rekey.acked = false;
    tx->sealed = limit - 1;
    e.pair.filter = leat_pair_nothing_to_client;
    leat_echo_write(&e, 100);
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
    leat_echo_settle(&e, LEAT_MILLISECOND);
}

/* s6.5: what was sent before an update is read for three PTOs after it, and no longer. */
static void the_old_keys_are_kept_for_three_ptos(void **state)
{
    leat_conn *server;
    leat_time pto, begin;
    uint64_t received;

    (void)state;
    leat_echo_establish(&e);
    held.count = 0;
    e.pair.filter = hold_two;
    leat_echo_write(&e, 2000);
    leat_echo_settle(&e, LEAT_MILLISECOND);
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

/* s6.4, the other way round: what older keys have sealed with a higher number is dropped. */
static void an_older_phase_above_a_newer_ones_numbers_is_dropped(void **state)
{
    leat_packet_keys old;
    uint64_t ahead, received;

    (void)state;
    leat_echo_establish(&e);
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
    leat_echo_settle(&e, LEAT_MILLISECOND);
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
        cmocka_unit_test(an_older_phase_above_a_newer_ones_numbers_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
