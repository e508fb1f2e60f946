/* tests/unit/conn/test_early_rules.c: what must not be done with 0-RTT, rule by rule (RFC 9001
 * s4.6, s5.6, s8.3, RFC 9000 s7.4.1, RFC 9369 s4.1).
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "early_rig.h"
#include "forge.h"

#define UNKNOWN BYTES(0x21, 0, 0, 0) /* a frame that closes whoever reads it */

static bool early_was_told(void *arg)
{
    (void)arg;
    return t.early_told > 0;
}

static void soon(void)
{
    leat_pair_run(&t.echo.pair, NULL, NULL, LEAT_MILLISECOND);
}

/* ---- limits that were promised (RFC 9000 s7.4.1) ---- */

static void less_data(leat_conn_settings *s)
{
    s->max_data--;
}

static void less_of_own_streams(leat_conn_settings *s)
{
    s->max_stream_data_bidi_local--;
}

static void less_of_the_peers_streams(leat_conn_settings *s)
{
    s->max_stream_data_bidi_remote--;
}

static void less_of_one_way_streams(leat_conn_settings *s)
{
    s->max_stream_data_uni--;
}

static void fewer_streams(leat_conn_settings *s)
{
    s->max_streams_bidi--;
}

static void fewer_one_way_streams(leat_conn_settings *s)
{
    s->max_streams_uni--;
}

static void smaller_datagrams(leat_conn_settings *s)
{
    s->max_datagram_frame_size--;
}

static void no_datagrams(leat_conn_settings *s)
{
    s->max_datagram_frame_size = 0;
}

static void no_reset_at(leat_conn_settings *s)
{
    s->disable_reset_stream_at = true;
}

/* A server with any limit below what it promised with the ticket does not take 0-RTT: the client
 * would have to close. */
static void a_server_with_any_lower_limit_takes_no_early_data(void **state)
{
    static void (*const lowered[])(leat_conn_settings * s) = {
        less_data,     less_of_own_streams,   less_of_the_peers_streams, less_of_one_way_streams,
        fewer_streams, fewer_one_way_streams, smaller_datagrams,         no_datagrams,
        no_reset_at,
    };

    (void)state;
    for (size_t i = 0; i <= LEAT_COUNT_OF(lowered); i++) {
        bool same = i == LEAT_COUNT_OF(lowered);

        prepare();
        t.echo.setup.server.conn.max_datagram_frame_size = 1200;
        first_connection();
        if (!same) {
            lowered[i](&t.echo.setup.server.conn);
        }
        another_server(t.shared);
        connect_and_ask(STREAMS);
        answers_come(5 * LEAT_SECOND, STREAM_SIZE);
        assert_int_equal(leat_conn_early(t.echo.client.conn),
                         same ? LEAT_EARLY_ACCEPTED : LEAT_EARLY_REJECTED);
        assert_int_equal(t.echo.client.closed, 0);
        close_it();
        finish();
    }
}

/* ---- 0-RTT packets where there are none ---- */

/* RFC 9001 s5.6: a client has the keys, and must not read with them. */
static void a_client_takes_no_0rtt(void **state)
{
    (void)state;
    begin();
    connect_and_ask(1);
    assert_non_null(leat_early_tx(t.echo.pair.conn));
    leat_forge_odd_in(&t.echo.pair, t.echo.pair.conn, LEAT_SPACE_APP,
                      &(leat_forge_odd){.back = true}, UNKNOWN);
    soon();
    assert_int_equal(t.echo.client.closed, 0);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    close_it();
    finish();
}

/* RFC 9369 s4.1, RFC 9368 s2.3: 0-RTT is of the version that the client began with. */
static void early_data_of_another_version_is_dropped(void **state)
{
    (void)state;
    for (unsigned other = 0; other < 2; other++) {
        leat_forge_odd odd = {.version = other ? LEAT_QUIC_V2 : LEAT_QUIC_V1};

        begin();
        connect_and_ask(1);
        assert_true(leat_pair_run(&t.echo.pair, early_was_told, NULL, LEAT_SECOND));
        leat_forge_odd_in(&t.echo.pair, t.echo.pair.conn, LEAT_SPACE_APP, &odd, UNKNOWN);
        if (other) {
            answers_come(5 * LEAT_SECOND, STREAM_SIZE);
            leat_echo_settle(&t.echo, LEAT_SECOND);
            assert_int_equal(t.echo.client.closed + t.echo.server.closed, 0);
            close_it();
        } else {
            leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
            assert_int_equal(t.echo.server.closed, 1);
            assert_int_equal(t.echo.server.info.code, LEAT_TE_FRAME_ENCODING_ERROR);
        }
        finish();
    }
}

/* RFC 9001 s5.6: once it has 1-RTT keys a client sends no 0-RTT. */
static unsigned early_packets;

static bool count_0rtt(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair;
    for (size_t at = 0; to_server && at < *len && data[at] & 0x80; at += header.packet_len) {
        if (leat_header_parse(data + at, *len - at, LEAT_CID_LEN_DEFAULT, &header) != LEAT_OK) {
            break;
        }
        early_packets += header.type == LEAT_PACKET_ZERO_RTT;
    }
    return true;
}

static void no_0rtt_is_sent_once_there_are_1rtt_keys(void **state)
{
    unsigned before;

    (void)state;
    begin();
    early_packets = 0;
    t.echo.pair.filter = count_0rtt;
    connect_and_ask(1);
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, LEAT_SECOND));
    assert_true(early_packets > 0);
    before = early_packets;
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    ask(1, STREAM_SIZE);
    assert_true(leat_pair_run(&t.echo.pair, all_answered, NULL, LEAT_SECOND));
    assert_int_equal(early_packets, before);
    assert_null(leat_early_tx(t.echo.pair.conn));
    close_it();
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_with_any_lower_limit_takes_no_early_data),
        cmocka_unit_test(a_client_takes_no_0rtt),
        cmocka_unit_test(early_data_of_another_version_is_dropped),
        cmocka_unit_test(no_0rtt_is_sent_once_there_are_1rtt_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
