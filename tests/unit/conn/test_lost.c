/* tests/unit/conn/test_lost.c: what was lost is sent again, frame by frame (RFC 9000 s13.3), and
 * what a side said of itself in its transport parameters is kept to (s18.2).
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

/* What is under way now is lost in one direction, and all else arrives. */
static void lose_what_is_under_way(bool to_server)
{
    e.pair.filter = to_server ? leat_pair_nothing_to_server : leat_pair_nothing_to_client;
    leat_echo_settle(&e, LEAT_MILLISECOND);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
}

static unsigned short_lost;

static bool lose_three_short_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)len;
    if (to_server || (data[0] & 0x80) || short_lost == 3) {
        return true;
    }
    short_lost++;
    return false;
}

/* HANDSHAKE_DONE, NEW_TOKEN, NEW_CONNECTION_ID: the first that a server says. */
static void what_a_server_says_first_comes_again(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    short_lost = 0;
    e.pair.filter = lose_three_short_to_client;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(short_lost, 3);
    assert_true(e.pair.conn->confirmed);
    assert_int_equal(e.client.tokens, 1);
    for (uint64_t sequence = 1; sequence < 4; sequence++) {
        assert_non_null(leat_remote_cids_find(&e.pair.conn->remote_cids, sequence));
    }
    leat_echo_finish(&e);
}

static void a_retirement_and_the_id_for_it_come_again(void **state)
{
    leat_remote_cids *cids;

    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        leat_echo_establish(&e);
        cids = &e.server.conn->remote_cids;
        assert_true(leat_remote_cids_retire(cids, leat_remote_cids_find(cids, 1)));
        leat_conn_want_send(e.server.conn);
        if (which == 0) { /* RETIRE_CONNECTION_ID is lost */
            lose_what_is_under_way(false);
        } else { /* its answer, NEW_CONNECTION_ID, is */
            leat_pair_run(&e.pair, NULL, NULL, e.setup.delay);
            assert_int_equal(e.pair.conn->local_cids.next_sequence, 5);
            lose_what_is_under_way(true);
        }
        assert_int_equal(cids->retiring_count, 0);
        assert_non_null(leat_remote_cids_find(cids, 4));
        assert_int_equal(e.client.closed + e.server.closed, 0);
        leat_echo_finish(&e);
    }
}

static void a_reset_comes_again(void **state)
{
    leat_stream *stream;
    size_t written;

    (void)state;
    leat_echo_establish(&e);
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "a", 1, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_stream_reset(stream, 42);
    lose_what_is_under_way(true);
    assert_int_equal(e.server.reset, 1);
    assert_int_equal(e.server.code, 42);
    leat_echo_finish(&e);
}

/* Without the limit that it was to raise the transfer would stand still. */
static void a_raised_limit_comes_again(void **state)
{
    unsigned lost = 0;
    static uint8_t data[4096];
    leat_stream *stream;
    size_t sent = 0, written;
    leat_time until;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.max_data = 8192;
    e.setup.server.conn.max_stream_data_uni = 8192;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    until = e.pair.now + 20 * LEAT_SECOND;
    while (sent < 60000) {
        leat_err err;

        written = 0;
        err = leat_stream_write(stream, data, sizeof(data), &written);
        sent += written;
        /* Each time that the server has read all of it, what it says of that is lost. */
        e.pair.filter = lost < 5 && sent > 10000u * (lost + 1) ? leat_pair_nothing_to_client : NULL;
        if (e.pair.filter) {
            lost++;
            leat_pair_run(&e.pair, NULL, NULL, 3 * e.setup.delay);
            e.pair.filter = NULL;
        }
        if (err == LEAT_ERR_BLOCKED) {
            assert_true(leat_pair_step(&e.pair, until));
        }
    }
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.server.received, sent);
    assert_int_equal(lost, 5);
    leat_echo_finish(&e);
}

/* ACK_FREQUENCY, when the window that it is made from does not change any more. */
static void a_wish_for_fewer_acks_comes_again(void **state)
{
    leat_conn *client;
    leat_stream *stream;
    size_t written;
    uint64_t sequence;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.min_ack_delay = e.setup.server.conn.min_ack_delay = LEAT_MILLISECOND;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    client = e.pair.conn;
    assert_true(client->ackfreq.peer_takes);
    sequence = client->ackfreq.next_sent;
    assert_int_equal(leat_conn_set_rate(client, 200 * client->mtu.size, 0), LEAT_OK);
    assert_int_equal(leat_stream_open(client, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "a", 1, &written), LEAT_OK);
    while (client->ackfreq.next_sent == sequence) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    lose_what_is_under_way(true);
    assert_int_equal(client->ackfreq.next_sent, sequence + 2); /* once more, under a new number */
    assert_int_equal(e.server.conn->ackfreq.next_received, sequence + 2);
    leat_echo_finish(&e);
}

/* ---- parameters ---- */

static bool client_knows_the_server(void *arg)
{
    (void)arg;
    return e.pair.conn->peer.known;
}

static size_t largest;

static bool watch_sizes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data;
    if (to_server && *len > largest) {
        largest = *len;
    }
    return true;
}

/* s18.2: max_udp_payload_size bounds what the path is asked to carry; active_connection_id_limit,
 * the IDs that are given out (s5.1.1). */
static void a_peers_limits_are_kept(void **state)
{
    const leat_conn_settings *s = &e.setup.server.conn;
    leat_tparams params;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    largest = 0;
    e.pair.filter = watch_sizes;
    assert_true(leat_pair_run(&e.pair, client_knows_the_server, NULL, LEAT_SECOND));
    leat_tparams_init(&params);
    params.initial_max_data = s->max_data;
    params.initial_max_stream_data_bidi_remote = s->max_stream_data_bidi_remote;
    params.initial_max_streams_bidi = s->max_streams_bidi;
    params.max_udp_payload_size = 1250;
    params.active_connection_id_limit = 2;
    leat_conn_apply_params(e.pair.conn, &params);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_true(e.pair.conn->confirmed);
    assert_in_range(largest, 1200, 1250);
    assert_int_equal(e.pair.conn->local_cids.next_sequence, 2);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_says_first_comes_again),
        cmocka_unit_test(a_retirement_and_the_id_for_it_come_again),
        cmocka_unit_test(a_reset_comes_again),
        cmocka_unit_test(a_raised_limit_comes_again),
        cmocka_unit_test(a_wish_for_fewer_acks_comes_again),
        cmocka_unit_test(a_peers_limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
