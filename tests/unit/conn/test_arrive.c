/* tests/unit/conn/test_arrive.c: whose packets a connection takes for its own, and what it makes of
 * where they come from (RFC 9000 s9.3, s12.2).
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

#define UNKNOWN BYTES(0x21, 0, 0, 0) /* a frame that closes whoever reads it */
#define PING    BYTES(0x01, 0, 0, 0)

static const leat_addr elsewhere = {.family = 4, .port = 666, .ip = {10, 9, 9, 9}};

static bool drop_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

static bool server_started(void *arg)
{
    (void)arg;
    return leat_endpoint_conns(e.pair.server) > 0;
}

/* s12.2: what is coalesced with a packet has its destination, or is not looked at. */
static void a_coalesced_packet_for_another_is_dropped(void **state)
{
    leat_cid other = {.len = 8, .data = {1, 2, 3, 4, 5, 6, 7, 8}};
    leat_conn *server;

    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        uint8_t datagram[1500];
        leat_writer w;

        leat_echo_prepare(&e);
        leat_echo_begin(&e);
        e.pair.filter = drop_to_client;
        assert_true(leat_pair_run(&e.pair, server_started, NULL, LEAT_SECOND));
        server = leat_echo_server_conn(&e);
        leat_writer_init(&w, datagram, sizeof(datagram));
        leat_forge_initial(&e.pair, e.pair.conn, &(leat_forge_odd){.size = 100, .into = &w}, PING);
        leat_forge_initial(
            &e.pair, e.pair.conn,
            &(leat_forge_odd){.size = 1150, .into = &w, .dcid = same ? NULL : &other}, UNKNOWN);
        leat_pair_inject(&e.pair, true, datagram, leat_writer_len(&w));
        leat_echo_settle(&e, LEAT_MILLISECOND);
        assert_int_equal(leat_conn_is_open(server), !same);
        leat_pair_free(&e.pair);
    }
}

static struct {
    uint8_t data[1500];
    size_t len;
} kept;

static bool keep_the_first(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!to_server || kept.len > 0) {
        return true;
    }
    memcpy(kept.data, data, *len);
    kept.len = *len;
    return false;
}

/* s9.3: only the packet with the highest number says where the peer is. */
static void an_old_packet_from_elsewhere_moves_nobody(void **state)
{
    leat_conn *server;
    uint64_t received;

    (void)state;
    leat_echo_establish(&e);
    server = e.server.conn;
    kept.len = 0;
    e.pair.filter = keep_the_first;
    leat_echo_write(&e, 4000);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay + LEAT_MILLISECOND);
    assert_true(kept.len > 0);
    received = server->count.packets_received;
    leat_pair_inject_from(&e.pair, &elsewhere, kept.data, kept.len);
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_int_equal(server->count.packets_received, received + 1);
    assert_int_equal(server->count.migrations, 0);
    assert_true(leat_addr_equal(leat_conn_remote(server), &e.pair.client_addr));
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_finish(&e);
}

static unsigned to_old, to_new;

static bool count_by_address(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data;
    if (!to_server) {
        to_old += leat_addr_equal(&pair->to, &pair->client_addr) && *len >= 1200;
        to_new += leat_addr_equal(&pair->to, &elsewhere);
    }
    return !to_server || kept.len > 0;
}

/* s9.3.3: a packet may have been forwarded by somebody. The path that was in use is asked, too, and
 * the peer's answer from there takes the connection back. */
static void the_path_that_was_left_is_asked(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_establish(&e);
    server = e.server.conn;
    kept.len = 0;
    e.pair.filter = keep_the_first;
    leat_echo_write(&e, 100);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay + LEAT_MILLISECOND);
    assert_true(kept.len > 0);
    to_old = to_new = 0;
    e.pair.filter = count_by_address;
    leat_pair_inject_from(&e.pair, &elsewhere, kept.data, kept.len);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay + LEAT_MILLISECOND);
    assert_int_equal(server->count.migrations, 1);
    assert_true(to_old > 0); /* PATH_CHALLENGE, padded */
    assert_true(to_new > 0); /* the same, as large as may be sent there */
    e.pair.filter = NULL;
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(server), &e.pair.client_addr));
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coalesced_packet_for_another_is_dropped),
        cmocka_unit_test(an_old_packet_from_elsewhere_moves_nobody),
        cmocka_unit_test(the_path_that_was_left_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
