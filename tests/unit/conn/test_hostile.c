/* tests/unit/conn/test_hostile.c: a peer with good keys that breaks the rules. What one case shows
 * holds for the kind: each is closed with the RFC's error, or ignored where the RFC says so, and
 * nothing is lost or leaks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "budget.h"
#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"

static hostile h;
static const char *attack;    /* the test that runs */
static hostile_budget budget; /* which a test may widen */

/* Before each test: what breaks a rule at once is a packet, and its answer a packet at most. */
static int begin(void **state)
{
    attack = *state;
    budget = (hostile_budget){400, 4700, 131072, 23552};
    return 0;
}

static void weigh(void)
{
    hostile_assert_named(attack, &h, &budget);
}

static void connected(void)
{
    hostile_prepare(&h);
    hostile_connect(&h);
    hostile_begin(&h);
}

static void connected_against_client(void)
{
    hostile_prepare_against_client(&h);
    hostile_connect(&h);
    hostile_begin(&h);
}

/* What the victim said when it closed. */
static void expect_close(const leat_echo_app *victim, uint64_t code)
{
    hostile_settle(&h, LEAT_MICROSECOND); /* while it closes, which is soon over */
    hostile_settle(&h, LEAT_SECOND);
    weigh();
    assert_int_equal(victim->closed, 1);
    assert_int_equal(victim->info.kind, LEAT_CLOSE_LOCAL);
    assert_false(victim->info.application);
    assert_int_equal(victim->info.code, code);
    leat_echo_finish(&h.echo);
}

/* It lives on and echoes. */
static void expect_nothing(void)
{
    hostile_settle(&h, LEAT_SECOND);
    weigh();
    assert_int_equal(h.echo.client.closed, 0);
    assert_int_equal(h.echo.server.closed, 0);
    leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
    leat_echo_finish(&h.echo);
}

/* The client sends these bytes as a payload, and the server closes with this code. */
static void server_refuses(const void *payload, size_t len, uint64_t code)
{
    connected();
    leat_forge(&h.echo.pair, h.echo.pair.conn, payload, len);
    expect_close(&h.echo.server, code);
}

/* ---- frames that are wrong in themselves ---- */

static void malformed_frames_close(void **state)
{
    (void)state;
    server_refuses(BYTES(0x21), LEAT_TE_FRAME_ENCODING_ERROR);
    server_refuses(BYTES(0x40, 0x01),
                   LEAT_TE_PROTOCOL_VIOLATION); /* type not in its shortest form */
    server_refuses(BYTES(0x08), LEAT_TE_FRAME_ENCODING_ERROR);
    server_refuses(BYTES(0x04, 0x00), LEAT_TE_FRAME_ENCODING_ERROR);
    /* RESET_STREAM_AT that promises more than the final size. */
    server_refuses(BYTES(0x24, 0x00, 0x00, 0x05, 0x06), LEAT_TE_FRAME_ENCODING_ERROR);
    /* STREAM at offset 2^62-1 with a byte. */
    server_refuses(BYTES(0x0e, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x61),
                   LEAT_TE_FRAME_ENCODING_ERROR);
    /* ACK whose first range reaches below zero. */
    server_refuses(BYTES(0x02, 0x00, 0x00, 0x00, 0x01), LEAT_TE_FRAME_ENCODING_ERROR);
    /* MAX_STREAMS and STREAMS_BLOCKED above 2^60. */
    server_refuses(BYTES(0x12, 0xd0, 0, 0, 0, 0, 0, 0, 1), LEAT_TE_FRAME_ENCODING_ERROR);
    server_refuses(BYTES(0x16, 0xd0, 0, 0, 0, 0, 0, 0, 1), LEAT_TE_FRAME_ENCODING_ERROR);
    /* An empty NEW_TOKEN is malformed whoever sends it. */
    server_refuses(BYTES(0x07, 0x00), LEAT_TE_FRAME_ENCODING_ERROR);
}

static void a_reset_stream_at_that_was_not_offered_closes(void **state)
{
    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.conn.disable_reset_stream_at = true;
    hostile_connect(&h);
    hostile_begin(&h);
    leat_forge(&h.echo.pair, h.echo.pair.conn, BYTES(0x24, 0x00, 0x00, 0x05, 0x05));
    expect_close(&h.echo.server, LEAT_TE_PROTOCOL_VIOLATION);
}

static void a_packet_without_frames_closes(void **state)
{
    (void)state;
    server_refuses("", 0, LEAT_TE_PROTOCOL_VIOLATION);
}

static void max_streams_of_2_60_is_accepted(void **state)
{
    (void)state;
    connected();
    leat_forge(&h.echo.pair, h.echo.pair.conn, BYTES(0x12, 0xd0, 0, 0, 0, 0, 0, 0, 0));
    expect_nothing();
}

static void reserved_bits_close(void **state)
{
    (void)state;
    connected();
    leat_forge_first(&h.echo.pair, h.echo.pair.conn, 0x08, BYTES(0x01));
    expect_close(&h.echo.server, LEAT_TE_PROTOCOL_VIOLATION);
}

/* ---- frames in the wrong place or from the wrong side ---- */

static void frames_of_the_other_side_close(void **state)
{
    (void)state;
    server_refuses(BYTES(0x1e), LEAT_TE_PROTOCOL_VIOLATION);             /* HANDSHAKE_DONE */
    server_refuses(BYTES(0x07, 0x01, 0x61), LEAT_TE_PROTOCOL_VIOLATION); /* NEW_TOKEN */
}

static bool server_has_handshake_keys(void *arg)
{
    leat_echo *echo = arg;
    leat_conn *conn = echo->pair.conn;

    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

/* APPLICATION_CLOSE, STREAM and others have no place in an Initial (RFC 9000 table 3). */
static void application_frames_in_an_initial_close(void **state)
{
    static const uint8_t close[] = {0x1d, 0x00, 0x00};
    static const uint8_t stream[] = {0x08, 0x00, 0x61};

    (void)state;
    for (int i = 0; i < 2; i++) {
        hostile_prepare(&h);
        leat_echo_begin(&h.echo);
        hostile_begin(&h);
        leat_forge_in(&h.echo.pair, h.echo.pair.conn, LEAT_SPACE_INITIAL, i ? stream : close, 3);
        hostile_settle(&h, LEAT_SECOND);
        assert_int_equal(h.echo.server.closed, 1);
        assert_int_equal(h.echo.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
        weigh();
        leat_echo_finish(&h.echo);
    }
}

static void handshake_done_before_its_time_closes(void **state)
{
    (void)state;
    hostile_prepare(&h);
    leat_echo_begin(&h.echo);
    hostile_begin(&h);
    assert_true(leat_pair_run(&h.echo.pair, server_has_handshake_keys, &h.echo, LEAT_SECOND));
    leat_forge_in(&h.echo.pair, h.echo.pair.conn, LEAT_SPACE_HANDSHAKE, BYTES(0x1e, 0, 0, 0));
    hostile_settle(&h, LEAT_SECOND);
    assert_int_equal(h.echo.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
    weigh();
    leat_echo_finish(&h.echo);
}

static bool server_has_read_the_hello(void *arg)
{
    leat_link *first = leat_list_first(&((leat_echo *)arg)->pair.server->conns);

    return first &&
           leat_packet_keys_ready(
               &LEAT_CONTAINER_OF(first, leat_conn, host_link)->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

/* RFC 9001 s4.1.3: CRYPTO that TLS will never read: behind a gap when it goes on to the next level,
 * or beyond the end of a level that it has left. */
static void crypto_beyond_its_level_closes(void **state)
{
    static const uint8_t crypto[] = {0x06, 0x60, 0x00, 0x01, 0x00}; /* a byte at 8,192 */

    (void)state;
    for (int late = 0; late < 2; late++) {
        hostile_prepare(&h);
        leat_echo_begin(&h.echo);
        hostile_begin(&h);
        if (late) {
            assert_true(
                leat_pair_run(&h.echo.pair, server_has_read_the_hello, &h.echo, LEAT_SECOND));
        }
        leat_forge_in(&h.echo.pair, h.echo.pair.conn, LEAT_SPACE_INITIAL, crypto, sizeof(crypto));
        hostile_settle(&h, LEAT_SECOND);
        assert_int_equal(h.echo.server.closed, 1);
        assert_int_equal(h.echo.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
        weigh();
        leat_echo_finish(&h.echo);
    }
}

/* ---- a ClientHello in pieces ---- */

static void write_piece(leat_writer *w, leat_stream_send *hello, uint64_t from, uint64_t to)
{
    leat_data_fit fit = leat_frame_fit_crypto(leat_writer_left(w), from, to - from);

    assert_int_equal(fit.len, to - from);
    leat_frame_write_crypto_head(w, from, &fit);
    leat_stream_send_copy(hello, from, to - from, leat_writer_room(w, to - from));
}

/* As Chromium sends it: over several Initials, in shuffled CRYPTO frames, PING and PADDING between.
 */
static void a_client_hello_in_shuffled_pieces_is_assembled(void **state)
{
    leat_forge_payload payload[3];
    leat_stream_send *hello;
    uint64_t end, third;

    (void)state;
    hostile_prepare(&h);
    leat_echo_begin(&h.echo);
    hostile_begin(&h);
    hello = &h.echo.pair.conn->hs->crypto[LEAT_SPACE_INITIAL].send;
    end = hello->end;
    third = end / 3;
    assert_true(third > 60);
    for (int i = 0; i < 3; i++) {
        leat_forge_begin(&payload[i]);
    }
    write_piece(&payload[0].w, hello, 2 * third + 7, end);
    leat_frame_write_ping(&payload[0].w);
    write_piece(&payload[0].w, hello, 50, 60);
    leat_frame_write_padding(&payload[1].w, 3);
    write_piece(&payload[1].w, hello, 60, third);
    leat_frame_write_ping(&payload[1].w);
    write_piece(&payload[1].w, hello, third, 2 * third);
    write_piece(&payload[2].w, hello, 2 * third - 20, 2 * third + 10); /* overlaps on both sides */
    leat_frame_write_padding(&payload[2].w, 20);
    write_piece(&payload[2].w, hello, 0, 1);
    write_piece(&payload[2].w, hello, 1, 50);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(h.echo.server.connected, 0);
        leat_forge_in(&h.echo.pair, h.echo.pair.conn, LEAT_SPACE_INITIAL, payload[i].data,
                      leat_writer_len(&payload[i].w));
    }
    assert_true(leat_pair_run(&h.echo.pair, leat_echo_both_connected, &h.echo, 5 * LEAT_SECOND));
    leat_echo_bytes(&h.echo, 3000, LEAT_SECOND);
    weigh();
    leat_echo_finish(&h.echo);
}

/* A server's Initial with CONNECTION_CLOSE alone, not padded (RFC 9000 s14.1 lets it be small). */
static bool server_started(void *arg)
{
    return leat_endpoint_conns(((leat_echo *)arg)->pair.server) > 0;
}

static void a_small_initial_with_a_close_is_accepted(void **state)
{
    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.max_handshakes = 1;
    leat_echo_begin(&h.echo);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    assert_true(leat_pair_run(&h.echo.pair, server_started, &h.echo, LEAT_SECOND));
    h.echo.pair.filter = NULL;
    /* A second connection is refused by such a packet. */
    leat_pair_connect(&h.echo.pair, &h.echo.setup, &leat_echo_client_events, &h.echo.client);
    assert_true(leat_pair_run(&h.echo.pair, leat_echo_client_closed, &h.echo, LEAT_SECOND));
    assert_int_equal(h.echo.client.info.kind, LEAT_CLOSE_PEER);
    assert_int_equal(h.echo.client.info.code, LEAT_TE_CONNECTION_REFUSED);
    weigh();
    leat_pair_free(&h.echo.pair);
}

/* ---- acknowledgements ---- */

static void an_ack_for_the_unsent_closes(void **state)
{
    (void)state;
    /* Largest 2^30 - 1, far above anything sent. */
    server_refuses(BYTES(0x02, 0xbf, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00),
                   LEAT_TE_PROTOCOL_VIOLATION);
}

/* ---- streams ---- */

static void stream_violations_close(void **state)
{
    (void)state;
    /* A stream that the server itself would open. */
    server_refuses(BYTES(0x08, 0x01, 0x61), LEAT_TE_STREAM_STATE_ERROR);
    server_refuses(BYTES(0x08, 0x03, 0x61), LEAT_TE_STREAM_STATE_ERROR);
    /* MAX_STREAM_DATA for a stream on which the server does not send. */
    server_refuses(BYTES(0x11, 0x02, 0x10), LEAT_TE_STREAM_STATE_ERROR);
    /* Stream 4 * 65536: above the limit on streams. */
    server_refuses(BYTES(0x08, 0x80, 0x04, 0x00, 0x00, 0x61), LEAT_TE_STREAM_LIMIT_ERROR);
    /* A byte far beyond the stream's window. */
    server_refuses(BYTES(0x0c, 0x00, 0xbf, 0xff, 0xff, 0xff, 0x61), LEAT_TE_FLOW_CONTROL_ERROR);
    /* Another final size. */
    server_refuses(BYTES(0x0b, 0x00, 0x02, 0x61, 0x62, 0x04, 0x00, 0x00, 0x01),
                   LEAT_TE_FINAL_SIZE_ERROR);
}

/* ---- connection IDs ---- */

static void retiring_what_was_not_issued_closes(void **state)
{
    (void)state;
    server_refuses(BYTES(0x19, 0x3f), LEAT_TE_PROTOCOL_VIOLATION);
}

static void retiring_the_id_in_use_closes(void **state)
{
    (void)state;
    /* The handshake's ID, sequence number 0, is what the client sends to. */
    server_refuses(BYTES(0x19, 0x00), LEAT_TE_PROTOCOL_VIOLATION);
}

static void retiring_twice_is_ignored(void **state)
{
    (void)state;
    connected();
    h.echo.pair.filter = hostile_deaf; /* the replacement is one more than the client asked for */
    leat_forge(&h.echo.pair, h.echo.pair.conn, BYTES(0x19, 0x01));
    hostile_settle(&h, LEAT_MILLISECOND);
    leat_forge(&h.echo.pair, h.echo.pair.conn, BYTES(0x19, 0x01));
    hostile_settle(&h, LEAT_MILLISECOND);
    assert_int_equal(h.echo.server.closed, 0);
    weigh();
    leat_pair_free(&h.echo.pair);
}

static void write_new_cid(leat_writer *w, uint64_t sequence, uint64_t prior, uint8_t fill)
{
    leat_frame_new_connection_id frame = {.sequence = sequence, .retire_prior_to = prior};

    frame.cid.len = 8;
    memset(frame.cid.data, fill, 8);
    memset(frame.reset_token, fill ^ 0x55, sizeof(frame.reset_token));
    assert_true(leat_frame_write_new_connection_id(w, &frame));
}

/* The client has given out its own: one more exceeds what the server allows. */
static void too_many_ids_close(void **state)
{
    leat_forge_payload payload;

    (void)state;
    connected();
    leat_forge_begin(&payload);
    for (uint8_t i = 0; i < 8; i++) {
        write_new_cid(&payload.w, 10u + i, 0, (uint8_t)(0xa0 + i));
    }
    leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
    expect_close(&h.echo.server, LEAT_TE_CONNECTION_ID_LIMIT_ERROR);
}

static void an_id_given_again_differently_closes(void **state)
{
    leat_forge_payload payload;

    (void)state;
    connected();
    leat_forge_begin(&payload);
    write_new_cid(&payload.w, 1, 0, 0xb1);
    leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
    expect_close(&h.echo.server, LEAT_TE_PROTOCOL_VIOLATION);
}

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    hostile_deaf(pair, to_server, data, len);
    return false;
}

/* New IDs that retire all before, and no ACK of the retirements: bounded, then closed (RFC 9000
 * s5.1.2). */
static void a_flood_of_retirements_closes(void **state)
{
    size_t sent = 0;

    (void)state;
    budget = (hostile_budget){220, 1560, 65536, 12800};
    connected();
    h.echo.pair.filter = nothing_passes;
    while (!h.echo.server.closed && sent < 1000) {
        leat_forge_payload payload;

        leat_forge_begin(&payload);
        write_new_cid(&payload.w, 100 + sent, 100 + sent, (uint8_t)sent);
        leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
        hostile_settle(&h, LEAT_MILLISECOND);
        sent++;
    }
    assert_true(sent <= LEAT_RETIRING_CIDS_MAX + 2);
    h.echo.pair.filter = NULL;
    expect_close(&h.echo.server, LEAT_TE_CONNECTION_ID_LIMIT_ERROR);
}

/* ---- floods ---- */

static uint64_t server_memory(void)
{
    leat_conn_stats_data stats;

    leat_conn_stats(h.echo.server.conn, &stats);
    return stats.memory_high;
}

static uint8_t challenges[9 * 100]; /* a payload of nothing else */

static void challenge_without_end(void)
{
    for (size_t i = 0; i < sizeof(challenges); i++) {
        challenges[i] = i % 9 == 0 ? 0x1a : (uint8_t)i;
    }
    h.echo.pair.filter = nothing_passes;
    for (int i = 0; i < 1000; i++) {
        leat_forge(&h.echo.pair, h.echo.pair.conn, challenges, sizeof(challenges));
        hostile_settle(&h, LEAT_MICROSECOND);
        assert_true(h.echo.server.conn->flight.bytes <= h.echo.server.conn->cc.cwnd);
    }
}

/* RFC 9002 s7: the answers of one that hears nothing of them fill the congestion window, no more.
 */
static void a_flood_of_path_challenges_is_answered_within_the_window(void **state)
{
    uint64_t before;

    (void)state;
    budget = (hostile_budget){220, 73, 327680, 76288};
    connected();
    before = server_memory();
    challenge_without_end();
    assert_int_equal(h.echo.server.closed, 0);
    assert_true(h.echo.server.conn->flight.bytes + LEAT_INITIAL_MIN_SIZE >
                h.echo.server.conn->cc.cwnd);
    assert_true(server_memory() <= before + 8192);
    h.echo.pair.filter = NULL;
    expect_nothing();
}

/* The same on a path that is probed alone: it has an initial window, whatever the one in use has.
 */
static void a_flood_of_probes_from_elsewhere_is_answered_within_a_window(void **state)
{
    const leat_sent *sent;

    (void)state;
    budget = (hostile_budget){220, 75, 589824, 141824};
    connected();
    h.echo.pair.nat = h.echo.pair.client_addr;
    h.echo.pair.nat.port++;
    challenge_without_end();
    sent = &h.echo.server.conn->app.sent;
    assert_int_equal(h.echo.server.closed, 0);
    assert_int_equal(h.echo.server.conn->paths.count, 2);
    assert_int_equal(h.echo.server.conn->flight.bytes, 0);
    assert_int_equal(sent->aside, leat_cc_initial_window(LEAT_INITIAL_MIN_SIZE));
    leat_conn_check(h.echo.server.conn);
    h.echo.pair.filter = NULL;
    h.echo.pair.nat = (leat_addr){.family = 0};
    leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
    hostile_settle(&h, LEAT_SECOND);
    assert_int_equal(sent->aside, 0); /* lost, as what came after them was acknowledged */
    expect_nothing();
}

static void a_flood_of_resets_on_fresh_streams_is_bounded(void **state)
{
    (void)state;
    budget = (hostile_budget){180, 0, 327680, 154112};
    connected();
    for (uint64_t i = 0; i < 20000 && !h.echo.server.closed; i++) {
        leat_forge_payload payload;

        leat_forge_begin(&payload);
        assert_true(leat_frame_write_reset_stream(&payload.w, 4 * i, 9, 0));
        leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
        hostile_settle(&h, 10 * LEAT_MICROSECOND);
    }
    assert_int_equal(h.echo.server.closed, 1);
    assert_int_equal(h.echo.server.info.code, LEAT_TE_STREAM_LIMIT_ERROR);
    weigh();
    leat_echo_finish(&h.echo);
}

/* A byte of a stream with a gap before it. */
static void send_after_gap(uint64_t i)
{
    leat_forge_payload payload;
    leat_data_fit fit = {.len = 1, .fits = true};

    leat_forge_begin(&payload);
    leat_frame_write_stream_head(&payload.w, 0, 2 * i + 1, &fit, false);
    leat_writer_u8(&payload.w, 'x');
    leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
    hostile_settle(&h, LEAT_MICROSECOND);
}

/* The largest window is a quarter of the memory; every second packet of it may be lost. */
static void the_gaps_that_are_borne_grow_with_the_window(void **state)
{
    static const size_t windows[] = {1 << 20, 8 << 20, 16 << 20};

    (void)state;
    budget = (hostile_budget){170, 1080, 2883584, 1263616};
    for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
        uint64_t borne = windows[w] / 2400, i = 0;

        borne = borne > LEAT_STREAM_RECV_GAPS_DEFAULT ? borne : LEAT_STREAM_RECV_GAPS_DEFAULT;
        hostile_prepare(&h);
        h.echo.setup.server.conn.memory = 4 * windows[w];
        leat_echo_begin(&h.echo);
        hostile_begin(&h);
        assert_true(leat_pair_run(&h.echo.pair, leat_echo_both_connected, &h.echo, LEAT_SECOND));
        hostile_settle(&h, 100 * LEAT_MILLISECOND);
        while (i <= borne && !h.echo.server.closed) {
            send_after_gap(i++);
        }
        assert_int_equal(i, borne + 1); /* that many, and one more was too many */
        expect_close(&h.echo.server, LEAT_TE_INTERNAL_ERROR);
    }
}

static void a_flood_of_tiny_gaps_is_bounded(void **state)
{
    (void)state;
    budget = (hostile_budget){170, 1080, 2883584, 1263616};
    connected();
    for (uint64_t i = 0; i < 20000 && !h.echo.server.closed; i++) {
        send_after_gap(i);
        if (!h.echo.server.closed) {
            assert_true(server_memory() <= h.echo.setup.server.conn.memory);
        }
    }
    expect_close(&h.echo.server, LEAT_TE_INTERNAL_ERROR);
}

static void crypto_with_gaps_is_bounded(void **state)
{
    (void)state;
    budget = (hostile_budget){180, 0, 917504, 373248};
    connected();
    for (uint64_t i = 0; i < 100000 && !h.echo.server.closed; i++) {
        leat_forge_payload payload;
        leat_data_fit fit = {.len = 1, .fits = true};

        leat_forge_begin(&payload);
        leat_frame_write_crypto_head(&payload.w, 2 * i + 1, &fit);
        leat_writer_u8(&payload.w, 'x');
        leat_forge_send(&h.echo.pair, h.echo.pair.conn, &payload);
        hostile_settle(&h, LEAT_MICROSECOND);
    }
    assert_int_equal(h.echo.server.closed, 1);
    assert_true(h.echo.server.info.code == LEAT_TE_CRYPTO_BUFFER_EXCEEDED ||
                h.echo.server.info.code == LEAT_TE_INTERNAL_ERROR);
    weigh();
    leat_echo_finish(&h.echo);
}

/* ---- after TLS ---- */

/* A server accepts no TLS message after the handshake: KeyUpdate is the one that RFC 9001 s6 names.
 */
static void tls_messages_after_the_handshake_close(void **state)
{
    (void)state;
    server_refuses(BYTES(0x06, 0x00, 0x05, 0x18, 0x00, 0x00, 0x01, 0x00), 0x10a);
    connected_against_client();
    leat_forge(&h.echo.pair, h.echo.server.conn,
               BYTES(0x06, 0x00, 0x05, 0x18, 0x00, 0x00, 0x01, 0x00));
    expect_close(&h.echo.client, 0x10a);
    connected_against_client(); /* CertificateRequest */
    leat_forge(&h.echo.pair, h.echo.server.conn,
               BYTES(0x06, 0x00, 0x07, 0x0d, 0x00, 0x00, 0x03, 0, 0, 0));
    expect_close(&h.echo.client, LEAT_TE_PROTOCOL_VIOLATION);
}

/* ---- datagrams that are not packets ---- */

static void garbage_is_ignored(void **state)
{
    uint8_t junk[1300];
    const leat_cid *cid;

    (void)state;
    budget = (hostile_budget){6, 102, 65536, 12800};
    connected();
    cid = leat_remote_cids_current(&h.echo.pair.conn->remote_cids);
    for (size_t len = 0; len < sizeof(junk); len += len < 60 ? 1 : 97) {
        for (int kind = 0; kind < 4; kind++) {
            memset(junk, 0x5a, sizeof(junk));
            junk[0] = kind & 1 ? 0xc3 : 0x43;
            if (kind & 2) {
                memcpy(junk + 1, cid->data, cid->len);
            } else {
                memcpy(junk + 1, "\0\0\0\1", 4);
            }
            leat_pair_inject(&h.echo.pair, true, junk, len);
            hostile_settle(&h, LEAT_MICROSECOND);
        }
    }
    expect_nothing();
}

#define ATTACK(test) cmocka_unit_test_prestate_setup_teardown(test, begin, NULL, (char[]){#test})

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(malformed_frames_close),
        ATTACK(a_packet_without_frames_closes),
        ATTACK(a_reset_stream_at_that_was_not_offered_closes),
        ATTACK(max_streams_of_2_60_is_accepted),
        ATTACK(reserved_bits_close),
        ATTACK(frames_of_the_other_side_close),
        ATTACK(application_frames_in_an_initial_close),
        ATTACK(handshake_done_before_its_time_closes),
        ATTACK(crypto_beyond_its_level_closes),
        ATTACK(a_client_hello_in_shuffled_pieces_is_assembled),
        ATTACK(a_small_initial_with_a_close_is_accepted),
        ATTACK(an_ack_for_the_unsent_closes),
        ATTACK(stream_violations_close),
        ATTACK(retiring_what_was_not_issued_closes),
        ATTACK(retiring_the_id_in_use_closes),
        ATTACK(retiring_twice_is_ignored),
        ATTACK(too_many_ids_close),
        ATTACK(an_id_given_again_differently_closes),
        ATTACK(a_flood_of_retirements_closes),
        ATTACK(a_flood_of_path_challenges_is_answered_within_the_window),
        ATTACK(a_flood_of_probes_from_elsewhere_is_answered_within_a_window),
        ATTACK(a_flood_of_resets_on_fresh_streams_is_bounded),
        ATTACK(the_gaps_that_are_borne_grow_with_the_window),
        ATTACK(a_flood_of_tiny_gaps_is_bounded),
        ATTACK(crypto_with_gaps_is_bounded),
        ATTACK(tls_messages_after_the_handshake_close),
        ATTACK(garbage_is_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
