/* tests/unit/roq/test_wire.c: bytes on the wire, both ways, and what is done about wrong ones. A
 * raw client writes them, as any other program could.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mem/mem.h"
#include "roq/roq.h"
#include "world.h"

static world w;

/* An RTP packet of 14 bytes, and an RTCP receiver report without blocks. */
static const uint8_t rtp[] = {0x80, 0x60, 0x12, 0x34, 0, 0, 0, 9, 0, 0, 0, 7, 0xaa, 0xbb};
static const uint8_t rtcp[] = {0x80, 201, 0, 1, 0, 0, 0, 7};

static void start(void)
{
    world_init(&w);
    w.raw = true;
}

static leat_stream *open_stream(bool bidi)
{
    leat_stream *stream;

    assert_int_equal(leat_stream_open(w.pair.conn, bidi, &stream), LEAT_OK);
    return stream;
}

static void put(leat_stream *stream, const void *data, size_t len)
{
    size_t written;

    assert_int_equal(leat_stream_write(stream, data, len, &written), LEAT_OK);
    assert_int_equal(written, len);
}

static void put_byte(leat_stream *stream, uint8_t byte)
{
    put(stream, &byte, 1);
}

/* ---- varints ---- */

static void varints_are_quics(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t len;
        uint64_t value;
    } examples[] = {
        /* RFC 9000 appendix A.1 */
        {{0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}, 8, UINT64_C(151288809941952652)},
        {{0x9d, 0x7f, 0x3e, 0x7d}, 4, 494878333},
        {{0x7b, 0xbd}, 2, 15293},
        {{0x25}, 1, 37},
    };
    uint64_t value;
    uint8_t out[8];

    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        leat_span in = {examples[i].bytes, examples[i].len};

        assert_int_equal(leat_roq_varint_read(in, &value), in.len);
        assert_true(value == examples[i].value);
        assert_int_equal(leat_roq_varint_len(value), in.len);
        assert_int_equal(leat_roq_varint_write(out, value), in.len);
        assert_memory_equal(out, in.data, in.len);
        in.len--;
        assert_int_equal(leat_roq_varint_read(in, &value), 0);
    }
    assert_int_equal(leat_roq_varint_read((leat_span){(const uint8_t *)"\x40\x25", 2}, &value), 2);
    assert_int_equal(value, 37); /* more bytes than it needs are allowed */
}

static void a_varint_is_as_short_as_its_value_allows(void **state)
{
    static const struct {
        uint64_t most; /* of so many bytes */
        size_t len;
    } ranges[] = {{63, 1}, {16383, 2}, {(1u << 30) - 1, 4}, {LEAT_ROQ_FLOW_MAX, 8}};
    uint64_t value;
    uint8_t out[8];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(leat_roq_varint_write(out, ranges[i].most), ranges[i].len);
        assert_int_equal(leat_roq_varint_read((leat_span){out, 8}, &value), ranges[i].len);
        assert_true(value == ranges[i].most);
        if (i < 3) {
            assert_int_equal(leat_roq_varint_write(out, ranges[i].most + 1), ranges[i + 1].len);
            leat_roq_varint_read((leat_span){out, 8}, &value);
            assert_true(value == ranges[i].most + 1);
        }
    }
}

static void errors_have_names(void **state)
{
    (void)state;
    assert_string_equal(leat_roq_error_name(0x03), "ROQ_PACKET_ERROR");
    assert_string_equal(leat_roq_error_name(0x07), "ROQ_EXPECTATION_UNMET");
    assert_string_equal(leat_roq_error_name(0x08), "ROQ_?");
    assert_string_equal(leat_roq_error_text(0x05), "a frame is not wanted any more");
    assert_string_equal(leat_roq_error_text(0x08), "unknown error");
    for (uint64_t a = 0; a < 8; a++) { /* no two are the same */
        for (uint64_t b = 0; b < a; b++) {
            assert_string_not_equal(leat_roq_error_name(a), leat_roq_error_name(b));
            assert_string_not_equal(leat_roq_error_text(a), leat_roq_error_text(b));
        }
    }
}

/* ---- what is right ---- */

static void a_datagram_is_identifier_and_packet(void **state)
{
    uint8_t data[1 + sizeof rtp] = {0x01};

    (void)state;
    start();
    world_connect(&w);
    memcpy(data + 1, rtp, sizeof rtp);
    assert_int_equal(leat_conn_send_datagram(w.pair.conn, (leat_span){data, sizeof data}, NULL),
                     LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    assert_int_equal(w.got[0].flow, 1);
    assert_false(w.got[0].rtcp);
    assert_false(w.got[0].stream);
    assert_int_equal(w.got[0].len, sizeof rtp);
    assert_memory_equal(w.got[0].first, rtp, sizeof rtp);
    world_free(&w);
}

static void a_stream_is_identifier_then_lengths_and_packets(void **state)
{
    leat_stream *stream;
    leat_roq_stats stats;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp);
    put(stream, "\x40\x08", 2); /* a length in two bytes */
    put(stream, rtcp, sizeof rtcp);
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    assert_true(w.got[0].stream);
    assert_memory_equal(w.got[0].first, rtp, sizeof rtp);
    assert_true(w.got[1].rtcp);
    assert_int_equal(w.got[1].len, sizeof rtcp);
    leat_roq_flow_stats(leat_roq_flow_find(w.server, 1), &stats);
    assert_int_equal(stats.packets_received, 2);
    assert_int_equal(stats.rtcp_received, 1);
    assert_int_equal(stats.stream_packets_received, 2);
    assert_int_equal(stats.bytes_received, sizeof rtp + sizeof rtcp);
    world_free(&w);
}

/* Each byte in a packet of its own: nothing depends on how the bytes come. */
static void a_stream_may_come_byte_by_byte(void **state)
{
    static const uint8_t head[] = {0xc0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, sizeof rtp};
    leat_stream *stream;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    for (size_t i = 0; i < sizeof head; i++) {
        put_byte(stream, head[i]);
        world_run(&w, 30 * LEAT_MILLISECOND);
    }
    for (size_t i = 0; i < sizeof rtp; i++) {
        assert_int_equal(w.got_count, 0);
        put_byte(stream, rtp[i]);
        world_run(&w, 30 * LEAT_MILLISECOND);
    }
    assert_int_equal(w.got_count, 1);
    assert_memory_equal(w.got[0].first, rtp, sizeof rtp);
    world_free(&w);
}

static void an_identifier_of_eight_bytes_works(void **state)
{
    uint8_t data[8 + sizeof rtp] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    (void)state;
    start();
    w.server_opens = true;
    world_connect(&w);
    memcpy(data + 8, rtp, sizeof rtp);
    leat_conn_send_datagram(w.pair.conn, (leat_span){data, sizeof data}, NULL);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    assert_true(w.got[0].flow == LEAT_ROQ_FLOW_MAX);
    world_free(&w);
}

/* ---- flows that are not open ---- */

static void what_comes_early_waits_for_its_flow(void **state)
{
    uint8_t data[1 + sizeof rtp] = {0x05};
    leat_stream *stream;
    leat_roq_flow *flow;

    (void)state;
    start();
    world_connect(&w);
    memcpy(data + 1, rtp, sizeof rtp);
    leat_conn_send_datagram(w.pair.conn, (leat_span){data, sizeof data}, NULL);
    stream = open_stream(false);
    put_byte(stream, 5);
    put_byte(stream, sizeof rtcp);
    put(stream, rtcp, sizeof rtcp);
    leat_stream_finish(stream);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 0);
    assert_int_equal(w.unknown, 2);
    assert_int_equal(w.unknown_id, 5);
    assert_int_equal(leat_roq_flow_open(w.server, 5, &w.flow_settings, &flow), LEAT_OK);
    assert_int_equal(w.got_count, 0); /* never from inside a call */
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    assert_true(w.got[0].flow == 5 && w.got[1].flow == 5);
    assert_int_equal(w.client_stopped, UINT64_MAX);
    world_free(&w);
}

static void of_streams_too_many_the_newest_are_stopped(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    w.settings.max_unknown = 2;
    world_connect(&w);
    for (int i = 0; i < 3; i++) {
        stream = open_stream(false);
        put_byte(stream, 9);
        world_run(&w, 100 * LEAT_MILLISECOND);
        assert_int_equal(w.client_stopped, i < 2 ? UINT64_MAX : LEAT_ROQ_UNKNOWN_FLOW_ID);
    }
    assert_false(w.server_closed);
    world_free(&w);
}

static void a_stream_given_up_while_it_waits_leaves_its_place(void **state)
{
    (void)state;
    start();
    w.settings.max_unknown = 2;
    world_connect(&w);
    for (int i = 0; i < 6; i++) {
        leat_stream *stream = open_stream(false);

        put_byte(stream, 9);
        world_run(&w, 100 * LEAT_MILLISECOND);
        assert_int_equal(w.client_stopped, UINT64_MAX);
        leat_stream_reset(stream, LEAT_ROQ_FRAME_CANCELLED);
        world_run(&w, 100 * LEAT_MILLISECOND);
    }
    assert_int_equal(w.cancelled, 0); /* nobody knows the flow */
    world_free(&w);
}

static void of_datagrams_too_many_the_oldest_are_dropped(void **state)
{
    uint8_t data[1 + sizeof rtp] = {0x09};
    leat_roq_flow *flow;

    (void)state;
    start();
    w.settings.max_unknown = 2;
    world_connect(&w);
    memcpy(data + 1, rtp, sizeof rtp);
    for (uint8_t i = 0; i < 5; i++) {
        data[4] = i; /* the number's low byte */
        leat_conn_send_datagram(w.pair.conn, (leat_span){data, sizeof data}, NULL);
        world_run(&w, 30 * LEAT_MILLISECOND);
    }
    assert_int_equal(leat_roq_flow_open(w.server, 9, &w.flow_settings, &flow), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    assert_int_equal(w.got[0].first[3], 3);
    assert_int_equal(w.got[1].first[3], 4);
    world_free(&w);
}

/* Each datagram and each stream of another flow, RTCP too, none of them open: so many wait as may,
 * the others are gone, and the flow that is open is served as before. */
static void a_flood_of_flows_is_held_to_the_limits(void **state)
{
    uint8_t data[2 + sizeof rtcp];
    leat_conn_stats_data stats;
    uint64_t half = 0;

    (void)state;
    start();
    w.setup.server.conn.max_streams_uni = 64;
    world_connect(&w);
    memcpy(data + 2, rtcp, sizeof rtcp);
    for (unsigned i = 0; i < 2000; i++) {
        leat_stream *stream;

        data[0] = (uint8_t)(0x41 + (i >> 8)); /* flows 256 to 2255 */
        data[1] = (uint8_t)i;
        leat_conn_send_datagram(w.pair.conn, (leat_span){data, 2 + sizeof rtcp}, NULL);
        if (leat_stream_open(w.pair.conn, false, &stream) == LEAT_OK) {
            put(stream, data, 2 + i % 3); /* never to be finished */
        }
        world_run(&w, LEAT_MILLISECOND);
        if (i == 999) {
            world_run(&w, LEAT_SECOND);
            leat_conn_stats(leat_roq_conn(w.server), &stats);
            half = stats.memory_used;
        }
    }
    world_run(&w, LEAT_SECOND);
    assert_false(w.client_closed || w.server_closed);
    assert_true(w.unknown >= 2000);
    assert_int_equal(w.server->stray_count, LEAT_ROQ_UNKNOWN_DEFAULT);
    assert_int_equal(w.server->waiting, LEAT_ROQ_UNKNOWN_DEFAULT);
    assert_int_equal(w.client_stopped, LEAT_ROQ_UNKNOWN_FLOW_ID);
    assert_int_equal(w.got_count, 0);
    leat_conn_stats(leat_roq_conn(w.server), &stats);
    assert_true(stats.memory_used <= half); /* a thousand more cost nothing more */
    data[1] = 0x01;
    memcpy(data + 2, rtcp, sizeof rtcp);
    leat_conn_send_datagram(w.pair.conn, (leat_span){data + 1, 1 + sizeof rtcp}, NULL);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    world_free(&w);
}

/* The longest length that can be said, of a packet that never comes. */
static void a_packet_of_any_length_may_be_announced(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    for (int i = 0; i < 100; i++) {
        leat_stream *stream = open_stream(false);

        put(stream, "\x01\xff\xff\xff\xff\xff\xff\xff\xff\x80", 10);
        world_run(&w, 60 * LEAT_MILLISECOND);
        assert_int_equal(w.client_stopped, LEAT_ROQ_GENERAL_ERROR);
        w.client_stopped = UINT64_MAX;
    }
    assert_int_equal(w.server->unread, 0);
    assert_false(w.client_closed);
    world_free(&w);
}

/* A datagram of a flow, and a packet on a stream of its own. */
static void put_both(uint8_t flow)
{
    uint8_t data[1 + sizeof rtp] = {flow};
    leat_stream *stream = open_stream(false);

    memcpy(data + 1, rtp, sizeof rtp);
    leat_conn_send_datagram(w.pair.conn, (leat_span){data, sizeof data}, NULL);
    put_byte(stream, flow);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp);
}

/* Who has no ear for packets has them counted, and flows that are not open wait all the same. */
static void a_session_may_listen_to_nothing(void **state)
{
    leat_roq_stats stats;

    (void)state;
    start();
    w.server_deaf = true;
    world_connect(&w);
    put_both(1);
    put_both(9);
    world_run(&w, 100 * LEAT_MILLISECOND);
    leat_roq_flow_stats(leat_roq_flow_find(w.server, 1), &stats);
    assert_int_equal(stats.packets_received, 2);
    assert_int_equal(stats.stream_packets_received, 1);
    assert_int_equal(w.server->stray_count, 1);
    assert_int_equal(w.server->waiting, 1);
    assert_false(w.client_closed);
    world_free(&w);
}

static void where_none_may_wait_all_others_are_refused(void **state)
{
    leat_roq_flow *flow;

    (void)state;
    start();
    w.settings.max_unknown = 0;
    world_connect(&w);
    put_both(9);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.unknown, 2);
    assert_int_equal(w.server->stray_count, 0);
    assert_int_equal(w.client_stopped, LEAT_ROQ_UNKNOWN_FLOW_ID);
    assert_int_equal(leat_roq_flow_open(w.server, 9, &w.flow_settings, &flow), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 0);
    assert_false(w.client_closed);
    world_free(&w);
}

/* There is memory for what remembers a datagram, and then none for its bytes. */
static void a_datagram_that_no_memory_is_left_for_is_dropped(void **state)
{
    uint8_t data[1 + sizeof rtp] = {9};

    (void)state;
    start();
    world_connect(&w);
    memcpy(data + 1, rtp, sizeof rtp);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        leat_mem_fault_set(w.server->mem, LEAT_MEM_FAULT_TAKE, nth, false);
        leat_roq_in_datagram(w.server, (leat_span){data, sizeof data});
        leat_mem_fault_set(w.server->mem, LEAT_MEM_FAULT_NONE, 0, false);
        assert_int_equal(w.server->stray_count, nth == 3);
    }
    assert_false(w.client_closed);
    world_free(&w);
}

/* Nothing is kept for a session that ends when it is asked about a flow, nor told after that. */
static void a_session_may_end_when_a_flow_is_asked_for(void **state)
{
    uint8_t data[1 + sizeof rtp] = {9};

    (void)state;
    start();
    w.close_in_unknown = true;
    world_connect(&w);
    memcpy(data + 1, rtp, sizeof rtp);
    for (int i = 0; i < 2; i++) {
        leat_roq_in_datagram(w.server, (leat_span){data, sizeof data});
        assert_int_equal(w.unknown, 1);
        assert_int_equal(w.server->stray_count, 0);
    }
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_true(w.client_closed);
    assert_int_equal(w.client_close.code, LEAT_ROQ_NO_ERROR);
    world_free(&w);
}

static void of_what_waited_nothing_is_told_after_the_end(void **state)
{
    leat_roq_flow *flow;

    (void)state;
    start();
    w.close_in_packet = true;
    world_connect(&w);
    for (int i = 0; i < 3; i++) {
        put_both(9);
    }
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.server->waiting, 3);
    assert_int_equal(w.server->stray_count, 3);
    assert_int_equal(leat_roq_flow_open(w.server, 9, &w.flow_settings, &flow), LEAT_OK);
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    assert_true(w.client_closed);
    world_free(&w);
}

/* ---- what is wrong ---- */

static void expect_close(uint64_t code)
{
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_true(w.client_closed);
    assert_int_equal(w.client_close.kind, LEAT_CLOSE_PEER);
    assert_true(w.client_close.application);
    assert_int_equal(w.client_close.code, code);
    assert_int_equal(w.got_count, 0);
    world_free(&w);
}

static void an_empty_datagram_is_a_packet_error(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    leat_conn_send_datagram(w.pair.conn, (leat_span){rtp, 0}, NULL);
    expect_close(LEAT_ROQ_PACKET_ERROR);
}

static void a_datagram_with_half_an_identifier_is_a_packet_error(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    leat_conn_send_datagram(w.pair.conn, (leat_span){(const uint8_t *)"\xc0\x00\x01", 3}, NULL);
    expect_close(LEAT_ROQ_PACKET_ERROR);
}

static void a_stream_without_an_identifier_is_a_packet_error(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    leat_stream_finish(open_stream(false));
    expect_close(LEAT_ROQ_PACKET_ERROR);
}

static void a_stream_that_ends_in_a_length_is_a_packet_error(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put(stream, "\x01\x40", 2);
    leat_stream_finish(stream);
    expect_close(LEAT_ROQ_PACKET_ERROR);
}

static void a_stream_that_ends_in_a_packet_is_a_packet_error(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp - 1);
    leat_stream_finish(stream);
    expect_close(LEAT_ROQ_PACKET_ERROR);
}

static void a_flow_on_a_bidirectional_stream_closes(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    put_byte(open_stream(true), 1);
    expect_close(LEAT_ROQ_STREAM_CREATION_ERROR);
}

static void an_unknown_flow_on_a_bidirectional_stream_is_refused(void **state)
{
    (void)state;
    start();
    world_connect(&w);
    put_byte(open_stream(true), 2);
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_false(w.client_closed);
    assert_int_equal(w.client_stopped, LEAT_ROQ_UNKNOWN_FLOW_ID);
    assert_int_equal(w.client_reset, LEAT_ROQ_UNKNOWN_FLOW_ID);
    world_free(&w);
}

static void a_peer_without_datagrams_may_fail_expectations(void **state)
{
    (void)state;
    start();
    w.settings.require_datagrams = true;
    w.setup.conn.max_datagram_frame_size = 0;
    world_connect(&w);
    expect_close(LEAT_ROQ_EXPECTATION_UNMET);
}

/* A session that is there before the handshake learns with its end what the peer takes. */
static void expectations_are_looked_at_when_connected(void **state)
{
    (void)state;
    for (int takes = 0; takes < 2; takes++) {
        world_init(&w);
        w.early = true;
        w.client_wants_datagrams = true;
        w.setup.server.conn.max_datagram_frame_size = takes ? 65535 : 0;
        world_connect(&w);
        world_run(&w, 200 * LEAT_MILLISECOND);
        assert_int_equal(w.connected, takes);
        assert_int_equal(w.server_closed, !takes);
        if (!takes) {
            assert_true(w.server_close.application);
            assert_int_equal(w.server_close.code, LEAT_ROQ_EXPECTATION_UNMET);
        }
        world_free(&w);
    }
}

static void what_is_no_rtp_stops_its_stream_alone(void **state)
{
    leat_stream *stream;
    leat_roq_stats stats;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put(stream, "\x01\x04zoo!", 6);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, LEAT_ROQ_PACKET_ERROR);
    w.client_stopped = UINT64_MAX;
    stream = open_stream(false);
    put(stream, "\x01\x00", 2); /* an empty packet is none either */
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, LEAT_ROQ_PACKET_ERROR);
    leat_conn_send_datagram(w.pair.conn, (leat_span){(const uint8_t *)"\x01zoo", 4}, NULL);
    /* RTP of 12 bytes that tells of a contributing source; RTCP without a length */
    leat_conn_send_datagram(
        w.pair.conn, (leat_span){(const uint8_t *)"\x01\x81\x60\0\1\0\0\0\2\0\0\0\3", 13}, NULL);
    leat_conn_send_datagram(w.pair.conn, (leat_span){(const uint8_t *)"\x01\x80\xc8\0", 4}, NULL);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_false(w.client_closed);
    leat_roq_flow_stats(leat_roq_flow_find(w.server, 1), &stats);
    assert_int_equal(stats.recv_malformed, 5);
    assert_int_equal(w.got_count, 0);
    world_free(&w);
}

static void a_packet_beyond_the_limit_stops_its_stream(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    w.settings.max_packet = 2000;
    world_connect(&w);
    stream = open_stream(false);
    put(stream, "\x01\x47\xd1", 3); /* 2001 */
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, LEAT_ROQ_GENERAL_ERROR);
    assert_false(w.client_closed);
    world_free(&w);
}

/* 40 streams announce 10,000 bytes each and send 100: 65,536 hold six. */
static void half_packets_are_bounded_together(void **state)
{
    uint8_t some[103] = {0x01, 0x67, 0x10};
    size_t stopped = 0;

    (void)state;
    start();
    w.settings.max_unread = LEAT_ROQ_UNREAD_MIN;
    world_connect(&w);
    for (int i = 0; i < 40; i++) {
        put(open_stream(false), some, sizeof some);
        w.client_stopped = UINT64_MAX;
        world_run(&w, 100 * LEAT_MILLISECOND);
        stopped += w.client_stopped == LEAT_ROQ_FRAME_CANCELLED;
    }
    assert_int_equal(stopped, 40 - 6);
    assert_true(w.server->unread <= LEAT_ROQ_UNREAD_MIN);
    assert_false(w.client_closed);
    world_free(&w);
}

static void a_reset_within_a_packet_is_told(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, 5);
    world_run(&w, 100 * LEAT_MILLISECOND);
    leat_stream_reset(stream, LEAT_ROQ_FRAME_CANCELLED);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.cancelled, 1);
    assert_false(w.client_closed);
    assert_int_equal(w.server->unread, 0);
    stream = open_stream(false); /* between packets it is nothing to tell */
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp);
    world_run(&w, 100 * LEAT_MILLISECOND);
    leat_stream_reset(stream, LEAT_ROQ_FRAME_CANCELLED);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    assert_int_equal(w.cancelled, 1);
    world_free(&w);
}

static void a_packet_that_takes_too_long_is_given_up(void **state)
{
    leat_stream *stream;
    leat_roq_stats stats;

    (void)state;
    start();
    w.flow_settings.recv_lifetime = 150 * LEAT_MILLISECOND;
    world_connect(&w);
    stream = open_stream(false);
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp);
    world_run(&w, LEAT_SECOND); /* between packets it may take any time */
    assert_int_equal(w.client_stopped, UINT64_MAX);
    put_byte(stream, sizeof rtp);
    world_run(&w, 150 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, UINT64_MAX);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, LEAT_ROQ_FRAME_CANCELLED);
    leat_roq_flow_stats(leat_roq_flow_find(w.server, 1), &stats);
    assert_int_equal(stats.recv_late, 1);
    world_free(&w);
}

/* From its first byte, which is that of its length: it came in pieces. */
static void a_length_in_pieces_is_part_of_its_packet(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    w.flow_settings.recv_lifetime = 150 * LEAT_MILLISECOND;
    world_connect(&w);
    stream = open_stream(false);
    put(stream, "\x01\xc0", 2);
    world_run(&w, 100 * LEAT_MILLISECOND);
    put_byte(stream, 0);
    world_run(&w, 100 * LEAT_MILLISECOND); /* 150, and the way there and back */
    assert_int_equal(w.client_stopped, LEAT_ROQ_FRAME_CANCELLED);
    world_free(&w);
}

static void a_flow_that_closes_stops_its_streams(void **state)
{
    leat_stream *stream;

    (void)state;
    start();
    world_connect(&w);
    stream = open_stream(false);
    put_byte(stream, 1);
    put_byte(stream, sizeof rtp);
    put(stream, rtp, sizeof rtp);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 1);
    leat_roq_flow_close(leat_roq_flow_find(w.server, 1));
    put_byte(stream, sizeof rtp); /* under way when the other side hears of it */
    put(stream, rtp, sizeof rtp);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.client_stopped, LEAT_ROQ_UNKNOWN_FLOW_ID);
    assert_int_equal(w.got_count, 1);
    assert_false(w.client_closed);
    world_free(&w);
}

static void a_callback_may_give_up_or_close(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        leat_stream *stream;

        start();
        w.skip_in_packet = i == 0;
        w.close_in_packet = i == 1;
        world_connect(&w);
        stream = open_stream(false);
        put_byte(stream, 1);
        for (int k = 0; k < 3; k++) {
            put_byte(stream, sizeof rtp);
            put(stream, rtp, sizeof rtp);
        }
        world_run(&w, 200 * LEAT_MILLISECOND);
        assert_int_equal(w.got_count, 1);
        assert_int_equal(w.client_stopped, i == 0 ? LEAT_ROQ_FRAME_CANCELLED : UINT64_MAX);
        assert_int_equal(w.client_closed, i == 1);
        world_free(&w);
    }
}

static void flows_are_limited(void **state)
{
    leat_roq_flow_settings bad = {.mode = LEAT_ROQ_MODES};
    leat_roq_flow *flow, *none;

    (void)state;
    start();
    w.settings.max_flows = 2;
    world_connect(&w);
    assert_int_equal(leat_roq_flow_open(w.server, 1, NULL, &none), LEAT_ERR_STATE);
    assert_int_equal(leat_roq_flow_open(w.server, LEAT_ROQ_FLOW_MAX + 1, NULL, &none),
                     LEAT_ERR_INVALID);
    assert_int_equal(leat_roq_flow_open(w.server, 3, &bad, &none), LEAT_ERR_INVALID);
    assert_int_equal(leat_roq_flow_open(w.server, 2, NULL, &flow), LEAT_OK);
    assert_int_equal(leat_roq_flow_open(w.server, 3, NULL, &none), LEAT_ERR_LIMIT);
    leat_roq_flow_close(flow);
    assert_null(leat_roq_flow_find(w.server, 2));
    assert_int_equal(leat_roq_flow_open(w.server, 3, NULL, &flow), LEAT_OK);
    assert_ptr_equal(leat_roq_flow_find(w.server, 3), flow);
    world_free(&w);
}

static void a_flows_settings_have_bounds(void **state)
{
    leat_roq_flow_settings good, s[5];
    leat_roq_flow *flow;

    (void)state;
    start();
    world_connect(&w);
    leat_roq_flow_settings_init(&good);
    for (size_t i = 0; i < 5; i++) {
        s[i] = good;
    }
    s[0].urgency = 8;
    s[1].queue_bytes = LEAT_ROQ_QUEUE_BYTES_MIN - 1;
    s[2].queue_bytes = LEAT_ROQ_QUEUE_BYTES_MAX + 1;
    s[3].queue_packets = LEAT_ROQ_QUEUE_PACKETS_MIN - 1;
    s[4].queue_packets = LEAT_ROQ_QUEUE_PACKETS_MAX + 1;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(leat_roq_flow_open(w.server, 2, &s[i], &flow), LEAT_ERR_INVALID);
        assert_null(flow);
    }
    good.urgency = 7;
    good.queue_bytes = LEAT_ROQ_QUEUE_BYTES_MIN;
    good.queue_packets = LEAT_ROQ_QUEUE_PACKETS_MIN;
    assert_int_equal(leat_roq_flow_open(w.server, 2, &good, &flow), LEAT_OK);
    good.queue_bytes = LEAT_ROQ_QUEUE_BYTES_MAX;
    good.queue_packets = LEAT_ROQ_QUEUE_PACKETS_MAX;
    assert_int_equal(leat_roq_flow_open(w.server, 3, &good, &flow), LEAT_OK);
    world_free(&w);
}

static void a_sessions_settings_have_bounds(void **state)
{
    static const leat_roq_events none = {.closed = NULL};
    leat_roq_settings s[7];
    leat_roq *roq;

    (void)state;
    start();
    world_connect(&w);
    for (size_t i = 0; i < 7; i++) {
        leat_roq_settings_init(&s[i]);
    }
    s[0].max_flows = LEAT_ROQ_FLOWS_MIN - 1;
    s[1].max_flows = LEAT_ROQ_FLOWS_MAX + 1;
    s[2].max_packet = LEAT_ROQ_PACKET_MIN - 1;
    s[3].max_packet = LEAT_ROQ_PACKET_MAX + 1;
    s[4].max_unread = LEAT_ROQ_UNREAD_MIN - 1;
    s[5].max_unread = LEAT_ROQ_UNREAD_MAX + 1;
    s[6].max_unknown = LEAT_ROQ_UNKNOWN_MAX + 1;
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(leat_roq_attach(w.pair.conn, &s[i], &none, NULL, &roq), LEAT_ERR_INVALID);
        assert_null(roq);
    }
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_are_quics),
        cmocka_unit_test(a_varint_is_as_short_as_its_value_allows),
        cmocka_unit_test(errors_have_names),
        cmocka_unit_test(a_datagram_is_identifier_and_packet),
        cmocka_unit_test(a_stream_is_identifier_then_lengths_and_packets),
        cmocka_unit_test(a_stream_may_come_byte_by_byte),
        cmocka_unit_test(an_identifier_of_eight_bytes_works),
        cmocka_unit_test(what_comes_early_waits_for_its_flow),
        cmocka_unit_test(of_streams_too_many_the_newest_are_stopped),
        cmocka_unit_test(a_stream_given_up_while_it_waits_leaves_its_place),
        cmocka_unit_test(of_datagrams_too_many_the_oldest_are_dropped),
        cmocka_unit_test(a_flood_of_flows_is_held_to_the_limits),
        cmocka_unit_test(a_packet_of_any_length_may_be_announced),
        cmocka_unit_test(a_session_may_listen_to_nothing),
        cmocka_unit_test(where_none_may_wait_all_others_are_refused),
        cmocka_unit_test(a_datagram_that_no_memory_is_left_for_is_dropped),
        cmocka_unit_test(a_session_may_end_when_a_flow_is_asked_for),
        cmocka_unit_test(of_what_waited_nothing_is_told_after_the_end),
        cmocka_unit_test(an_empty_datagram_is_a_packet_error),
        cmocka_unit_test(a_datagram_with_half_an_identifier_is_a_packet_error),
        cmocka_unit_test(a_stream_without_an_identifier_is_a_packet_error),
        cmocka_unit_test(a_stream_that_ends_in_a_length_is_a_packet_error),
        cmocka_unit_test(a_stream_that_ends_in_a_packet_is_a_packet_error),
        cmocka_unit_test(a_flow_on_a_bidirectional_stream_closes),
        cmocka_unit_test(an_unknown_flow_on_a_bidirectional_stream_is_refused),
        cmocka_unit_test(a_peer_without_datagrams_may_fail_expectations),
        cmocka_unit_test(expectations_are_looked_at_when_connected),
        cmocka_unit_test(what_is_no_rtp_stops_its_stream_alone),
        cmocka_unit_test(a_packet_beyond_the_limit_stops_its_stream),
        cmocka_unit_test(half_packets_are_bounded_together),
        cmocka_unit_test(a_reset_within_a_packet_is_told),
        cmocka_unit_test(a_packet_that_takes_too_long_is_given_up),
        cmocka_unit_test(a_length_in_pieces_is_part_of_its_packet),
        cmocka_unit_test(a_flow_that_closes_stops_its_streams),
        cmocka_unit_test(a_callback_may_give_up_or_close),
        cmocka_unit_test(flows_are_limited),
        cmocka_unit_test(a_flows_settings_have_bounds),
        cmocka_unit_test(a_sessions_settings_have_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
