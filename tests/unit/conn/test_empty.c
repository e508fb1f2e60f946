/* tests/unit/conn/test_empty.c: connections with a peer whose connection IDs are empty (RFC 9000
 * s5.1).
 *
 * No setting makes an endpoint choose such: here it is made to behind its back. It tells of no
 * other IDs then, for it can have the empty one but once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/token.h"
#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"

static leat_echo e;
static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};

/* NEW_CONNECTION_ID of sequence number 1, with an ID of four bytes. */
static const uint8_t another_id[] = {0x18, 1, 0, 4, 1, 2,  3,  4,  1,  2,  3,  4,
                                     5,    6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void connected(bool server_is_empty)
{
    leat_pair_init(&e.pair, &e.setup);
    (server_is_empty ? e.pair.server : e.pair.client)->host.cid_len = 0;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 5 * LEAT_SECOND);
}

/* Nothing was said of IDs but the one of the handshake. */
static void assert_sends_to_none(leat_conn *conn)
{
    assert_int_equal(leat_remote_cids_current(&conn->remote_cids)->len, 0);
    assert_null(leat_remote_cids_fresh(&conn->remote_cids));
    assert_int_equal(conn->remote_cids.retiring_count, 0);
    leat_conn_check(conn);
}

/* ---- a server's ---- */

static void a_server_may_have_them(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    connected(true);
    assert_sends_to_none(e.pair.conn);
    /* Whoever went elsewhere could be followed by anybody (s9.5). */
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_ERR_UNSUPPORTED);
    leat_echo_bytes(&e, 100000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* Whoever chose an empty ID gives no others (s19.15). */
static void then_gives_others(bool server)
{
    leat_echo_app *wrong = server ? &e.server : &e.client;

    leat_echo_prepare(&e);
    connected(server);
    leat_forge(&e.pair, server ? e.server.conn : e.pair.conn, another_id, sizeof(another_id));
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, LEAT_SECOND));
    assert_int_equal(wrong->info.kind, LEAT_CLOSE_PEER);
    assert_int_equal(wrong->info.code, LEAT_TE_PROTOCOL_VIOLATION);
    leat_echo_finish(&e);
}

static void a_server_that_then_gives_others_is_wrong(void **state)
{
    (void)state;
    then_gives_others(true);
}

/* The token in the transport parameters is the only one (s10.3). */
static void a_reset_of_theirs_is_known(void **state)
{
    uint8_t reset[43];

    (void)state;
    leat_echo_prepare(&e);
    connected(true);
    memset(reset, 0x5b, sizeof(reset));
    leat_reset_token(e.pair.server->host.reset_key, reset, 0,
                     reset + sizeof(reset) - LEAT_STATELESS_RESET_TOKEN);
    leat_pair_inject(&e.pair, false, reset, sizeof(reset));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_RESET);
    leat_pair_free(&e.pair);
}

/* ---- a client's ---- */

static void a_client_may_have_them(void **state)
{
    (void)state;
    for (int retry = 0; retry < 2; retry++) {
        leat_echo_prepare(&e);
        e.setup.server.conn.wait_for_validation = retry;
        connected(false);
        assert_sends_to_none(e.server.conn);
        leat_echo_finish(&e);
    }
}

static void a_client_that_then_gives_others_is_wrong(void **state)
{
    (void)state;
    then_gives_others(false);
}

static void a_client_of_theirs_is_followed_behind_a_nat(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    connected(false);
    for (uint8_t i = 1; i < 10; i++) {
        e.pair.nat = (leat_addr){.family = 4, .port = 2000, .ip = {172, 16, 0, i}};
        leat_echo_bytes(&e, 20000, 5 * LEAT_SECOND);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &e.pair.nat));
        assert_true(leat_paths_active_const(&e.server.conn->paths)->validated);
        assert_sends_to_none(e.server.conn);
    }
    leat_echo_finish(&e);
}

/* It takes another of the server's IDs, which has none of the client's to take: what it sends goes
 * on without one. */
static void a_client_of_theirs_moves_again_and_again(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    connected(false);
    for (uint8_t i = 1; i < 10; i++) {
        leat_addr to = elsewhere;
        leat_cid before = *leat_remote_cids_current(&e.pair.conn->remote_cids);

        to.ip[3] = i;
        assert_int_equal(leat_conn_migrate(e.pair.conn, &to), LEAT_OK);
        leat_echo_settle(&e, LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &to));
        leat_echo_bytes(&e, 20000, 5 * LEAT_SECOND);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &to));
        assert_true(leat_paths_active_const(&e.server.conn->paths)->validated);
        assert_false(leat_cid_equal(&before, leat_remote_cids_current(&e.pair.conn->remote_cids)));
        assert_sends_to_none(e.server.conn);
        leat_conn_check(e.pair.conn);
    }
    leat_echo_finish(&e);
}

static void a_client_of_theirs_follows_to_the_preferred_address(void **state)
{
    static const leat_addr preferred = {.family = 4, .port = 4444, .ip = {10, 0, 0, 3}};

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.preferred_ip4 = preferred;
    connected(false);
    assert_true(leat_addr_equal(leat_conn_remote(e.pair.conn), &preferred));
    assert_true(leat_addr_equal(leat_conn_local(e.server.conn), &preferred));
    assert_sends_to_none(e.server.conn);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_may_have_them),
        cmocka_unit_test(a_server_that_then_gives_others_is_wrong),
        cmocka_unit_test(a_reset_of_theirs_is_known),
        cmocka_unit_test(a_client_may_have_them),
        cmocka_unit_test(a_client_that_then_gives_others_is_wrong),
        cmocka_unit_test(a_client_of_theirs_is_followed_behind_a_nat),
        cmocka_unit_test(a_client_of_theirs_moves_again_and_again),
        cmocka_unit_test(a_client_of_theirs_follows_to_the_preferred_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
