/* tests/unit/conn/test_end.c: when a connection ends of itself, where its end is said, and for how
 * long it is remembered (RFC 9000 s10).
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

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

/* s10.1: the first packet that asks for an ACK, after one was received, begins the idle time anew;
 * those after it do not, or who hears nothing would never end. */
static void sending_begins_the_idle_time_anew_once(void **state)
{
    leat_time begin;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = 10 * LEAT_SECOND;
    leat_echo_connect(&e);
    leat_echo_pass(&e, LEAT_SECOND);
    e.pair.filter = nothing_passes;
    leat_echo_pass(&e, 7 * LEAT_SECOND);
    begin = e.pair.now;
    leat_echo_write(&e, 100);
    leat_echo_pass(&e, 5 * LEAT_SECOND); /* and its probes */
    leat_echo_write(&e, 100);
    leat_echo_pass(&e, 4 * LEAT_SECOND);
    assert_int_equal(e.client.closed, 0);
    assert_int_equal(e.server.closed, 1); /* it has sent nothing */
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    assert_in_range(e.pair.now - begin, 9990 * LEAT_MILLISECOND, 10010 * LEAT_MILLISECOND);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_IDLE);
    leat_pair_free(&e.pair);
}

static void nothing_is_read(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn, (void)stream, (void)user;
}

/* RFC 9000 s4.1: who waits for credit says so before the idle timeout ends the connection. */
static void a_reader_that_pauses_loses_no_connection(void **state)
{
    leat_conn_events pausing = leat_echo_server_events;
    leat_stream *stream;
    leat_span span;
    size_t n, sent;

    (void)state;
    pausing.stream_readable = nothing_is_read;
    leat_echo_prepare(&e);
    e.setup.server.events = &pausing;
    e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = 10 * LEAT_SECOND;
    e.setup.server.conn.max_stream_data_uni = 1000;
    leat_echo_connect(&e);
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "0123456789", 10, &n), LEAT_OK);
    for (sent = n; sent < 1500; sent += n) {
        static const uint8_t bytes[100];

        assert_int_equal(leat_stream_write(stream, bytes, sizeof bytes, &n), LEAT_OK);
    }
    leat_echo_pass(&e, LEAT_SECOND);
    sent = e.pair.conn->count.packets_sent;
    leat_echo_pass(&e, 100 * LEAT_SECOND);
    assert_int_equal(e.client.closed + e.server.closed, 0);
    assert_in_range(e.pair.conn->count.packets_sent - sent, 15, 25); /* one in five seconds */
    for (n = 0; n < 1500; leat_echo_pass(&e, LEAT_SECOND)) {
        span = leat_stream_peek(e.server.stream);
        assert_true(span.len > 0);
        n += span.len;
        leat_stream_consume(e.server.stream, span.len);
    }
    leat_echo_finish(&e);
}

/* s10.2.3: a server that has not got the Finished reads no 1-RTT: it is told in a Handshake packet
 * as well. */
static void a_close_is_said_at_each_level_until_the_handshake_is_confirmed(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = leat_pair_initials_to_server;
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    leat_echo_pass(&e, LEAT_MILLISECOND);
    server = leat_echo_server_conn(&e);
    assert_int_equal(server->state, LEAT_CONN_HANDSHAKE);
    e.pair.filter = NULL;
    e.pair.queue_count = 0; /* of what is under way the Finished does not arrive either */
    leat_conn_close(e.pair.conn, 42, (leat_span){NULL, 0});
    leat_echo_pass(&e, 2 * e.setup.delay);
    assert_int_equal(e.server.connected, 0);
    assert_int_equal(server->state, LEAT_CONN_DRAINING);
    assert_int_equal(server->closing.info.code, LEAT_TE_APPLICATION_ERROR);
    leat_pair_free(&e.pair);
}

/* s10.2: who closes, and who is told, knows the connection for three PTOs more. */
static void the_end_is_remembered_for_three_ptos(void **state)
{
    (void)state;
    for (unsigned told = 0; told < 2; told++) {
        const leat_list *conns;
        leat_time three;

        leat_echo_prepare(&e);
        leat_echo_connect(&e);
        leat_echo_pass(&e, LEAT_SECOND);
        conns = told ? &e.pair.server->conns : &e.pair.client->conns;
        three = 3 * leat_loss_pto(&(told ? e.server.conn : e.pair.conn)->loss, LEAT_SPACE_APP);
        leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
        leat_echo_pass(&e, (told ? e.setup.delay : 0) + three - LEAT_MILLISECOND);
        assert_false(leat_list_empty(conns));
        leat_echo_pass(&e, 2 * LEAT_MILLISECOND);
        assert_true(leat_list_empty(conns));
        leat_pair_free(&e.pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sending_begins_the_idle_time_anew_once),
        cmocka_unit_test(a_reader_that_pauses_loses_no_connection),
        cmocka_unit_test(a_close_is_said_at_each_level_until_the_handshake_is_confirmed),
        cmocka_unit_test(the_end_is_remembered_for_three_ptos),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
