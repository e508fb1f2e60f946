/* tests/hostile/test_floods.c: a client that has completed its handshake and then floods: with what
 * is allowed one by one, at a rate and in an order that nobody needs. The server answers within its
 * budget, or closes with the error that the RFC has for it; and whoever lives on, works.
 *
 * Budgets: an event is some hundred nanoseconds. A frame of one byte costs an event, so the dearest
 * packets per byte are those of tiny frames.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "budget.h"

static hostile h;

#define CLIENT (h.echo.pair.conn)
#define SERVER (h.echo.server.conn)

static void connected(void)
{
    hostile_prepare(&h);
    hostile_connect(&h);
    hostile_begin(&h);
}

/* It lives on and echoes. */
static void works(void)
{
    leat_echo_settle(&h.echo, 2 * LEAT_SECOND);
    assert_int_equal(h.echo.client.closed, 0);
    assert_int_equal(h.echo.server.closed, 0);
    leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
    leat_echo_finish(&h.echo);
}

static void closes(uint64_t code)
{
    leat_echo_settle(&h.echo, LEAT_SECOND);
    assert_int_equal(h.echo.server.closed, 1);
    assert_int_equal(h.echo.server.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(h.echo.server.info.code, code);
    leat_echo_finish(&h.echo);
}

/* The same payload in so many packets. The client hears nothing of it and so does not answer. */
static void flood(const void *payload, size_t len, int packets)
{
    h.echo.pair.filter = hostile_deaf;
    for (int i = 0; i < packets && !h.echo.server.closed; i++) {
        leat_forge(&h.echo.pair, CLIENT, payload, len);
        hostile_settle(&h, 100 * LEAT_MICROSECOND);
    }
    hostile_settle(&h, LEAT_SECOND);
    h.echo.pair.filter = NULL;
}

/* ---- tiny frames ---- */

static void packets_of_padding_cost_nothing(void **state)
{
    static const uint8_t padding[1200];

    (void)state;
    connected();
    flood(padding, sizeof(padding), 2000);
    /* Padding alone elicits no ACK (RFC 9002 s2). */
    hostile_assert(&h, &(hostile_budget){4, 0, 65536, 12800});
    works();
}

static void packets_of_pings_are_answered_by_few_acks(void **state)
{
    uint8_t pings[1200];

    (void)state;
    connected();
    memset(pings, 0x01, sizeof(pings));
    flood(pings, sizeof(pings), 1000);
    hostile_assert(&h, &(hostile_budget){1200, 30, 65536, 12800});
    works();
}

static void frames_that_change_nothing_cost_one_event_each(void **state)
{
    leat_forge_payload payload;
    leat_writer *w = leat_forge_begin(&payload);

    (void)state;
    connected();
    /* Limits that were there before, and complaints that change nothing. */
    while (leat_writer_left(w) > 40) {
        assert_true(leat_frame_write_max_data(w, 1));
        assert_true(leat_frame_write_max_streams(w, true, 1));
        assert_true(leat_frame_write_data_blocked(w, 5));
        assert_true(leat_frame_write_streams_blocked(w, true, 5));
    }
    flood(payload.data, leat_writer_len(w), 1000);
    hostile_assert(&h, &(hostile_budget){700, 27, 65536, 12800});
    works();
}

static void empty_stream_frames_hold_nothing(void **state)
{
    leat_forge_payload payload;
    leat_writer *w = leat_forge_begin(&payload);

    (void)state;
    connected();
    while (leat_writer_left(w) > 8) {
        leat_writer_u8(w, 0x0a); /* STREAM with a length, no offset, no FIN */
        leat_writer_u8(w, 0x00);
        leat_writer_u8(w, 0x00);
    }
    flood(payload.data, leat_writer_len(w), 1000);
    hostile_assert(&h, &(hostile_budget){500, 26, 65536, 14080});
    works();
}

/* ---- acknowledgements ---- */

static void the_same_ack_ranges_again_cost_no_more(void **state)
{
    leat_forge_payload payload;
    leat_writer *w = leat_forge_begin(&payload);

    (void)state;
    connected();
    leat_echo_bytes(&h.echo, 200000, 5 * LEAT_SECOND);
    leat_echo_settle(&h.echo, LEAT_SECOND);
    hostile_begin(&h);
    /* 60 ranges of one, over what has long been acknowledged. */
    leat_writer_u8(w, 0x02);
    leat_writer_varint(w, leat_sent_next_pn(&SERVER->app.sent) - 1);
    leat_writer_varint(w, 0);
    leat_writer_varint(w, 60);
    leat_writer_varint(w, 0);
    for (int i = 0; i < 60; i++) {
        leat_writer_varint(w, 0);
        leat_writer_varint(w, 0);
    }
    flood(payload.data, leat_writer_len(w), 2000);
    if (h.echo.server.closed) {
        /* The list may name a number that was left out on purpose. */
        closes(LEAT_TE_PROTOCOL_VIOLATION);
        return;
    }
    hostile_assert(&h, &(hostile_budget){39, 0, 65536, 31744});
    works();
}

/* RFC 9000 s21.4: a receiver that acknowledges what it has not received, to be sent more and
 * faster. Numbers that were left out give it away. */
static void optimistic_acks_are_found_out(void **state)
{
    leat_stream *stream;
    size_t written;
    uint8_t data[1000] = {0};
    unsigned acks = 0;

    (void)state;
    connected();
    assert_int_equal(leat_stream_open(SERVER, true, &stream), LEAT_OK);
    h.echo.pair.filter = hostile_deaf;
    while (!h.echo.server.closed && acks < 5000) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        while (leat_stream_write(stream, data, sizeof(data), &written) == LEAT_OK) {
        }
        hostile_settle(&h, 10 * LEAT_MILLISECOND);
        leat_writer_u8(w, 0x02); /* all that was ever sent */
        leat_writer_varint(w, leat_sent_next_pn(&SERVER->app.sent) - 1);
        leat_writer_varint(w, 0);
        leat_writer_varint(w, 0);
        leat_writer_varint(w, leat_sent_next_pn(&SERVER->app.sent) - 1);
        leat_forge_send(&h.echo.pair, CLIENT, &payload);
        hostile_settle(&h, LEAT_MILLISECOND);
        acks++;
    }
    print_message("  found out after %u ACKs\n", acks);
    /* What is sent meanwhile was asked for by the application: no answer to weigh. */
    hostile_assert(&h, &(hostile_budget){4520, 3111430, 3014656, 2173184});
    h.echo.pair.filter = NULL;
    closes(LEAT_TE_PROTOCOL_VIOLATION);
}

/* ---- streams and credit ---- */

/* Streams are opened and reset as fast as the limit is raised again (the "rapid reset"). */
static void streams_reset_as_soon_as_opened_stay_within_the_budget(void **state)
{
    uint64_t id = 0;

    (void)state;
    connected();
    h.echo.pair.filter = hostile_deaf;
    for (int i = 0; i < 400 && !h.echo.server.closed; i++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        while (leat_writer_left(w) > 60 && id / 4 < SERVER->streams.remote[0].limit) {
            assert_true(leat_frame_write_reset_stream(w, id, 7, 0));
            assert_true(leat_frame_write_stop_sending(w, id, 7));
            id += 4;
        }
        if (leat_sent_next_pn(&SERVER->app.sent) < 120) { /* before a number is left out */
            leat_range all = {0, leat_sent_next_pn(&SERVER->app.sent)};

            assert_true(leat_frame_write_ack(w, &all, 1, 1, 0, NULL) == 1);
        }
        assert_true(leat_frame_write_ping(w));
        assert_true(leat_frame_write_padding(w, 20));
        leat_forge_send(&h.echo.pair, CLIENT, &payload);
        hostile_settle(&h, LEAT_MILLISECOND);
    }
    print_message("  %llu streams\n", (unsigned long long)id / 4);
    assert_true(id / 4 > 200);
    hostile_assert(&h, &(hostile_budget){500, 1130, 589824, 232448});
    leat_pair_free(&h.echo.pair);
}

/* All the credit there is, a byte to a stream's end, with every byte before it missing. */
static void the_whole_window_as_one_gap_holds_one_byte(void **state)
{
    leat_forge_payload payload;
    leat_writer *w = leat_forge_begin(&payload);
    leat_data_fit fit = {.len = 1, .fits = true};

    (void)state;
    connected();
    leat_frame_write_stream_head(w, 0, LEAT_STREAM_WINDOW_DEFAULT - 1, &fit, true);
    leat_writer_u8(w, 'x');
    leat_forge_send(&h.echo.pair, CLIENT, &payload);
    hostile_settle(&h, LEAT_SECOND);
    hostile_assert(&h, &(hostile_budget){280, 1950, 65536, 14336});
    leat_pair_free(&h.echo.pair);
}

/* A reader of nothing, who shows now and then that it is there: what the server may hold is what it
 * was given to. */
static void a_peer_that_reads_nothing_pins_no_more_than_the_send_buffer(void **state)
{
    leat_stream *stream;
    size_t written;
    uint8_t data[4096] = {0};

    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.conn.send_buffer = 65536;
    hostile_connect(&h);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    assert_int_equal(leat_stream_open(SERVER, true, &stream), LEAT_OK);
    for (int i = 0; i < 1000; i++) {
        leat_err err = leat_stream_write(stream, data, sizeof(data), &written);

        assert_true(err == LEAT_OK || err == LEAT_ERR_BLOCKED);
        leat_forge(&h.echo.pair, CLIENT, "\x01\0\0\0", 4);
        hostile_settle(&h, LEAT_MILLISECOND);
    }
    hostile_assert(&h, &(hostile_budget){250, 2600, 851968, 276224});
    leat_pair_free(&h.echo.pair);
}

/* ---- connection IDs, paths, keys ---- */

/* Each retirement asks for a new ID; ACKs are withheld, so that each is sent again and again. */
static void a_flood_of_retirements_is_answered_one_by_one(void **state)
{
    uint64_t sequence = 1;

    (void)state;
    connected();
    h.echo.pair.filter = hostile_deaf;
    for (int i = 0; i < 500 && !h.echo.server.closed; i++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        assert_true(leat_frame_write_retire_connection_id(w, sequence));
        assert_true(leat_frame_write_padding(w, 40));
        leat_forge_send(&h.echo.pair, CLIENT, &payload);
        hostile_settle(&h, LEAT_MILLISECOND);
        sequence++;
    }
    hostile_settle(&h, LEAT_SECOND);
    hostile_assert(&h, &(hostile_budget){170, 1800, 196608, 66560});
    leat_pair_free(&h.echo.pair);
}

/* Challenges from the address in use: the newest two of a packet are answered, in one datagram of
 * 1,200 bytes (RFC 9000 s8.2.2), and to whom no ACK comes from within the congestion window. */
static void path_challenges_are_no_amplifier(void **state)
{
    uint8_t payload[9 * 120];

    (void)state;
    connected();
    for (size_t i = 0; i < sizeof(payload); i++) {
        payload[i] = i % 9 == 0 ? 0x1a : (uint8_t)i;
    }
    flood(payload, sizeof(payload), 1000);
    hostile_assert(&h, &(hostile_budget){120, 60, 589824, 81920});
    works();
}

/* Answered to one that acknowledges each, it is one datagram for one. */
static void path_challenges_are_answered_one_for_one(void **state)
{
    uint8_t payload[9 * 120];

    (void)state;
    connected();
    for (size_t i = 0; i < sizeof(payload); i++) {
        payload[i] = i % 9 == 0 ? 0x1a : (uint8_t)i;
    }
    for (int i = 0; i < 1000; i++) {
        leat_forge(&h.echo.pair, CLIENT, payload, sizeof(payload));
        hostile_settle(&h, 12 * LEAT_MILLISECOND); /* a round trip */
    }
    hostile_assert(&h, &(hostile_budget){130, 1200, 65536, 12800});
    works();
}

/* A key update in each packet (RFC 9001 s6.5 forbids it before the last one is acknowledged). */
static void an_update_of_keys_with_each_packet_is_bounded(void **state)
{
    (void)state;
    connected();
    for (int i = 0; i < 300 && !h.echo.server.closed; i++) {
        leat_err err = leat_conn_update_keys(CLIENT);

        assert_true(err == LEAT_OK || err == LEAT_ERR_STATE);
        leat_forge(&h.echo.pair, CLIENT, "\x01\0\0\0", 4);
        hostile_settle(&h, 20 * LEAT_MILLISECOND);
    }
    hostile_assert(&h, &(hostile_budget){310, 1550, 65536, 12800});
    leat_pair_free(&h.echo.pair);
}

/* ---- after TLS ---- */

/* Tickets without end, to a client whose TLS is gone. The victim is the client here. */
static void tickets_without_end_are_taken_and_forgotten(void **state)
{
    uint8_t ticket[1100] = {0x04, 0x00, 0x04, 0x40, 0, 0, 0x1c, 0x20, 1, 2, 3, 4, 0, 0x04, 0x33};
    uint64_t offset;

    (void)state;
    hostile_prepare_against_client(&h);
    hostile_connect(&h);
    leat_echo_settle(&h.echo, 60 * LEAT_SECOND / 3);
    offset = leat_conn_crypto(CLIENT, &CLIENT->app)->recv.flow.consumed;
    hostile_begin(&h);
    for (int i = 0; i < 2000 && !h.echo.client.closed; i++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        leat_data_fit fit = leat_frame_fit_crypto(leat_writer_left(w), offset, 4 + 0x440);

        assert_int_equal(fit.len, 4 + 0x440);
        leat_frame_write_crypto_head(w, offset, &fit);
        leat_writer_bytes(w, ticket, sizeof(ticket) < fit.len ? sizeof(ticket) : fit.len);
        if (fit.len > sizeof(ticket)) {
            leat_writer_zero(w, fit.len - sizeof(ticket));
        }
        offset += fit.len;
        leat_forge_send(&h.echo.pair, SERVER, &payload);
        hostile_settle(&h, 100 * LEAT_MICROSECOND);
    }
    assert_int_equal(h.echo.client.closed, 0);
    hostile_assert(&h, &(hostile_budget){6, 32, 65536, 12800});
    works();
}

/* ---- replays, garbage ---- */

static struct {
    uint8_t data[1500];
    size_t len;
} kept;

static bool keep_newest(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && *len > 60) {
        memcpy(kept.data, data, *len);
        kept.len = *len;
    }
    return true;
}

static void a_packet_replayed_without_end_is_dropped(void **state)
{
    (void)state;
    connected();
    h.echo.pair.filter = keep_newest;
    leat_echo_bytes(&h.echo, 20000, 5 * LEAT_SECOND);
    h.echo.pair.filter = NULL;
    leat_echo_settle(&h.echo, LEAT_SECOND);
    hostile_begin(&h);
    for (int i = 0; i < 5000; i++) {
        uint8_t copy[1500];

        memcpy(copy, kept.data, kept.len);
        leat_pair_inject(&h.echo.pair, true, copy, kept.len);
        hostile_settle(&h, LEAT_MICROSECOND);
    }
    hostile_assert(&h, &(hostile_budget){14, 0, 65536, 12800});
    works();
}

/* Whoever does not know the keys learns nothing by an ID that is in use: no reset, no answer. */
static void an_id_in_use_is_no_oracle_for_its_reset_token(void **state)
{
    leat_addr stranger = {.family = 4, .port = 999, .ip = {10, 66, 0, 1}};
    uint8_t junk[60];
    const leat_cid *cid;

    (void)state;
    connected();
    cid = leat_remote_cids_current(&CLIENT->remote_cids);
    for (int i = 0; i < 1000; i++) {
        memset(junk, i, sizeof(junk));
        junk[0] = 0x40;
        memcpy(junk + 1, cid->data, cid->len);
        leat_pair_inject_from(&h.echo.pair, &stranger, junk, sizeof(junk));
        hostile_settle(&h, LEAT_MICROSECOND);
    }
    assert_int_equal(h.echo.pair.datagrams[0] - h.datagrams_out + h.unheard_datagrams, 0);
    hostile_assert(&h, &(hostile_budget){34, 0, 65536, 12800});
    works();
}

/* A token that was guessed ends nothing, at neither side. */
static void guessed_reset_tokens_end_nothing(void **state)
{
    uint8_t junk[43];

    (void)state;
    for (int to_server = 0; to_server < 2; to_server++) {
        to_server ? hostile_prepare(&h) : hostile_prepare_against_client(&h);
        hostile_connect(&h);
        hostile_begin(&h);
        for (unsigned i = 0; i < 2000; i++) {
            for (size_t j = 0; j < sizeof(junk); j++) {
                junk[j] = (uint8_t)(i * 31 + j * 7);
            }
            junk[0] = (uint8_t)(0x40 | (junk[0] & 0x3f));
            leat_pair_inject(&h.echo.pair, to_server, junk, sizeof(junk));
            hostile_settle(&h, LEAT_MICROSECOND);
        }
        hostile_assert(&h, &(hostile_budget){47, 0, 65536, 12800});
        works();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_padding_cost_nothing),
        cmocka_unit_test(packets_of_pings_are_answered_by_few_acks),
        cmocka_unit_test(frames_that_change_nothing_cost_one_event_each),
        cmocka_unit_test(empty_stream_frames_hold_nothing),
        cmocka_unit_test(the_same_ack_ranges_again_cost_no_more),
        cmocka_unit_test(optimistic_acks_are_found_out),
        cmocka_unit_test(streams_reset_as_soon_as_opened_stay_within_the_budget),
        cmocka_unit_test(the_whole_window_as_one_gap_holds_one_byte),
        cmocka_unit_test(a_peer_that_reads_nothing_pins_no_more_than_the_send_buffer),
        cmocka_unit_test(a_flood_of_retirements_is_answered_one_by_one),
        cmocka_unit_test(path_challenges_are_no_amplifier),
        cmocka_unit_test(path_challenges_are_answered_one_for_one),
        cmocka_unit_test(an_update_of_keys_with_each_packet_is_bounded),
        cmocka_unit_test(tickets_without_end_are_taken_and_forgotten),
        cmocka_unit_test(a_packet_replayed_without_end_is_dropped),
        cmocka_unit_test(an_id_in_use_is_no_oracle_for_its_reset_token),
        cmocka_unit_test(guessed_reset_tokens_end_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
