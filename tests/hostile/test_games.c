/* tests/hostile/test_games.c: a peer with good keys that plays with what makes others work: holes
 * in what it sends and acknowledges, credit by the byte, messages and IDs without end, many
 * addresses. And strangers whose datagrams cost a look at a token or a version. Budgets as in
 * test_floods.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "budget.h"
#include "endpoint/endpoint.h"

static hostile h;

#define CLIENT (h.echo.pair.conn)
#define SERVER (h.echo.server.conn)

static void connected(void)
{
    hostile_prepare(&h);
    hostile_connect(&h);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
}

static void closes(uint64_t code)
{
    h.echo.pair.filter = NULL;
    leat_echo_settle(&h.echo, LEAT_SECOND);
    assert_int_equal(h.echo.server.closed, 1);
    assert_int_equal(h.echo.server.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(h.echo.server.info.code, code);
    leat_echo_finish(&h.echo);
}

static void works(void)
{
    h.echo.pair.filter = NULL;
    leat_echo_settle(&h.echo, 2 * LEAT_SECOND);
    assert_int_equal(h.echo.server.closed, 0);
    leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
    leat_echo_finish(&h.echo);
}

static void deliver(const leat_forge_payload *payload)
{
    leat_forge_send(&h.echo.pair, CLIENT, payload);
    hostile_settle(&h, 10 * LEAT_MICROSECOND);
}

static void write_byte_at(leat_writer *w, uint64_t stream, uint64_t offset)
{
    leat_data_fit fit = {.len = 1, .fits = true};

    leat_frame_write_stream_head(w, stream, offset, &fit, false);
    leat_writer_u8(w, 'x');
}

/* ---- holes in data ---- */

static void tiny_frames_with_gaps_stay_within_the_budget(void **state)
{
    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.conn.memory = 4 << 20;
    hostile_connect(&h);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    /* As many in a packet as fit: from the end to the beginning, so that each is put in front. */
    for (uint64_t at = 1 << 20; at > 4000 && !h.echo.server.closed;) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        while (leat_writer_left(w) > 60) {
            write_byte_at(w, 0, at);
            at -= 2;
        }
        deliver(&payload);
    }
    assert_true(h.held <= 4 << 20);
    hostile_assert(&h, &(hostile_budget){240, 0, 917504, 369408});
    closes(LEAT_TE_INTERNAL_ERROR);
}

/* The gaps that one stream may have, on each of as many streams as may be open: the connection's
 * budget ends it. */
static void gaps_on_all_streams_stay_within_the_budget(void **state)
{
    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.conn.memory = 1 << 20;
    hostile_connect(&h);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    for (uint64_t round = 0; round < 400 && !h.echo.server.closed; round++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        for (uint64_t stream = 0; stream < 100; stream++) {
            write_byte_at(w, 4 * stream, 2 * round + 1);
        }
        deliver(&payload);
    }
    assert_true(h.held <= 1 << 20);
    hostile_assert(&h, &(hostile_budget){300, 0, 4587520, 1 << 20});
    closes(LEAT_TE_INTERNAL_ERROR);
}

static void crypto_with_gaps_stays_within_its_buffer(void **state)
{
    (void)state;
    connected();
    for (uint64_t at = 1; at < 1000000 && !h.echo.server.closed;) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        leat_data_fit fit = {.len = 1, .fits = true};

        while (leat_writer_left(w) > 60) {
            leat_frame_write_crypto_head(w, at, &fit);
            leat_writer_u8(w, 'x');
            at += 2;
        }
        deliver(&payload);
    }
    hostile_assert(&h, &(hostile_budget){380, 0, 917504, 373248});
    assert_int_equal(h.echo.server.closed, 1);
    assert_true(h.echo.server.info.code == LEAT_TE_CRYPTO_BUFFER_EXCEEDED ||
                h.echo.server.info.code == LEAT_TE_INTERNAL_ERROR);
    leat_pair_free(&h.echo.pair);
}

/* A TLS message that promises more than leat takes, when TLS is gone. */
static void a_message_without_end_after_tls_closes(void **state)
{
    uint64_t at;

    (void)state;
    hostile_prepare_against_client(&h);
    hostile_connect(&h);
    hostile_begin(&h);
    at = leat_conn_crypto(CLIENT, &CLIENT->app)->recv.flow.consumed;
    for (bool first = true; at < 4 * LEAT_TLS_POST_MESSAGE_DEFAULT && !h.echo.client.closed;) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        leat_data_fit fit = leat_frame_fit_crypto(leat_writer_left(w), at, 1000);

        leat_frame_write_crypto_head(w, at, &fit);
        if (first) {
            leat_writer_bytes(w, "\x04\xff\xff\xff", 4); /* a ticket of 16 MiB */
        }
        leat_writer_zero(w, fit.len - (first ? 4 : 0));
        first = false;
        at += fit.len;
        leat_forge_send(&h.echo.pair, SERVER, &payload);
        hostile_settle(&h, LEAT_MILLISECOND);
    }
    hostile_assert(&h, &(hostile_budget){12, 0, 65536, 12800});
    assert_int_equal(h.echo.client.closed, 1);
    assert_true(at <= 2 * LEAT_TLS_POST_MESSAGE_DEFAULT);
    leat_pair_free(&h.echo.pair);
}

/* ---- holes in numbers ---- */

/* Every second packet number: each packet is a range of its own to be acknowledged. */
static void packet_numbers_full_of_gaps_are_kept_within_a_cap(void **state)
{
    (void)state;
    connected();
    for (int i = 0; i < 5000; i++) {
        leat_forge_payload payload;

        assert_int_equal(leat_sent_begin(&CLIENT->app.sent, true), LEAT_OK);
        leat_sent_commit(&CLIENT->app.sent, leat_ctx_now(h.echo.pair.ctx), 0, 0, 0);
        leat_frame_write_padding(leat_forge_begin(&payload), 100);
        leat_frame_write_ping(&payload.w);
        deliver(&payload);
    }
    hostile_assert(&h, &(hostile_budget){77, 2240, 131072, 12800});
    leat_pair_free(&h.echo.pair);
}

/* The server has a flight of many packets out. Each ACK acknowledges every second one of a part of
 * it, and the next ACK the same again with one more range: the sent packets are walked over and
 * over, if anything is. */
static void acks_full_of_gaps_are_read_once(void **state)
{
    leat_stream *stream;
    size_t written;
    uint8_t data[65536] = {0};
    uint64_t first, last;

    (void)state;
    hostile_prepare(&h);
    h.echo.setup.conn.max_data = h.echo.setup.conn.max_stream_data_bidi_remote = 8 << 20;
    hostile_connect(&h);
    assert_int_equal(leat_conn_set_rate(SERVER, 4 << 20, 1000000000), LEAT_OK);
    first = leat_sent_next_pn(&SERVER->app.sent);
    h.echo.pair.filter = hostile_deaf;
    h.echo.pair.user = &h;
    assert_int_equal(leat_stream_open(SERVER, true, &stream), LEAT_OK);
    for (int i = 0; i < 200; i++) {
        while (leat_stream_write(stream, data, sizeof(data), &written) == LEAT_OK) {
        }
        leat_echo_settle(&h.echo, 100 * LEAT_MICROSECOND);
    }
    last = leat_sent_next_pn(&SERVER->app.sent) - 1;
    assert_true(last - first > 400);
    hostile_begin(&h);
    for (uint64_t ranges = 1; ranges < 200 && !h.echo.server.closed; ranges++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);

        leat_writer_u8(w, 0x02);
        leat_writer_varint(w, last - ranges % 2);
        leat_writer_varint(w, 0);
        leat_writer_varint(w, ranges);
        leat_writer_varint(w, 0);
        for (uint64_t i = 0; i < ranges; i++) {
            leat_writer_varint(w, 0);
            leat_writer_varint(w, 0);
        }
        deliver(&payload);
    }
    /* What is lost by it is sent again, at the rate that was asked for: no answer to weigh. */
    hostile_assert(&h, &(hostile_budget){190, 0, 524288, 2473216});
    leat_pair_free(&h.echo.pair);
}

/* ---- credit ---- */

/* One more byte of credit with each packet, to a sender that has plenty. */
static void credit_by_the_byte_is_answered_in_kind(void **state)
{
    leat_stream *stream;
    size_t written;
    uint8_t data[4096] = {0};

    (void)state;
    hostile_prepare(&h);
    h.echo.setup.conn.max_stream_data_bidi_remote = 16384;
    hostile_connect(&h);
    assert_int_equal(leat_stream_open(SERVER, true, &stream), LEAT_OK);
    while (leat_stream_write(stream, data, sizeof(data), &written) == LEAT_OK) {
    }
    leat_echo_settle(&h.echo, LEAT_SECOND);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    for (uint64_t i = 1; i < 2000; i++) {
        leat_forge_payload payload;

        leat_frame_write_max_stream_data(leat_forge_begin(&payload), leat_stream_id(stream),
                                         16384 + i);
        deliver(&payload);
    }
    hostile_assert(&h, &(hostile_budget){180, 800, 65536, 110848});
    leat_pair_free(&h.echo.pair);
}

/* DATAGRAMs that nobody asked for, and then ones that nobody reads. */
static void datagrams_that_nobody_reads_hold_nothing(void **state)
{
    leat_forge_payload payload;
    leat_writer *w;

    (void)state;
    hostile_prepare(&h);
    h.echo.setup.server.conn.max_datagram_frame_size = 65535;
    hostile_connect(&h);
    hostile_begin(&h);
    h.echo.pair.filter = hostile_deaf;
    w = leat_forge_begin(&payload);
    while (leat_writer_left(w) > 8) {
        leat_writer_bytes(w, "\x31\x00", 2); /* empty, with a length */
    }
    for (int i = 0; i < 500; i++) {
        deliver(&payload);
    }
    hostile_assert(&h, &(hostile_budget){600, 0, 65536, 12800});
    works();
}

/* ---- IDs and paths ---- */

/* New IDs that retire those before; the retirements are acknowledged, so that nothing but the work
 * is spent. */
static void ids_without_end_cost_what_they_weigh(void **state)
{
    (void)state;
    connected();
    for (uint64_t i = 0; i < 2000 && !h.echo.server.closed; i++) {
        leat_frame_new_connection_id frame = {.sequence = 100 + i, .retire_prior_to = 100 + i};
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        leat_range all = {0, leat_sent_next_pn(&SERVER->app.sent)};

        frame.cid.len = 8;
        memcpy(frame.cid.data, &i, sizeof(i));
        frame.cid.data[7] = 0x77;
        memcpy(frame.reset_token, &i, sizeof(i));
        assert_true(leat_frame_write_new_connection_id(w, &frame));
        if (all.to < 120) { /* before a number is left out */
            assert_true(leat_frame_write_ack(w, &all, 1, 1, 0, NULL) == 1);
        }
        deliver(&payload);
        hostile_settle(&h, LEAT_MILLISECOND);
    }
    hostile_assert(&h, &(hostile_budget){250, 1180, 65536, 12800});
    closes(LEAT_TE_CONNECTION_ID_LIMIT_ERROR); /* from when on they are not acknowledged */
}

static struct {
    leat_addr to;
    uint64_t bytes;
} watched;

static bool watch_answers(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data;
    if (!to_server && leat_addr_equal(&pair->to, &watched.to)) {
        watched.bytes += *len;
    }
    return to_server;
}

/* Good packets that probe, from a thousand addresses that nobody answers from: none of these gets
 * more than three times what was sent from it (RFC 9000 s8.1), and few are remembered. */
static void probes_from_many_addresses_amplify_nothing(void **state)
{
    (void)state;
    connected();
    h.echo.pair.filter = watch_answers;
    for (unsigned i = 0; i < 1000; i++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        size_t before = h.echo.pair.bytes[1];

        watched.to =
            (leat_addr){.family = 4, .port = 4000, .ip = {10, 77, (uint8_t)(i >> 8), (uint8_t)i}};
        watched.bytes = 0;
        h.echo.pair.nat = watched.to;
        assert_true(leat_frame_write_path_challenge(w, (const uint8_t *)"12345678"));
        assert_true(leat_frame_write_padding(w, i % 2 ? 1100 : 40));
        leat_forge_send(&h.echo.pair, CLIENT, &payload);
        hostile_settle(&h, 3 * LEAT_SECOND / 1000);
        assert_true(watched.bytes <= 3 * (h.echo.pair.bytes[1] - before));
    }
    h.echo.pair.nat.family = 0;
    hostile_assert(&h, &(hostile_budget){17, 0, 589824, 141824});
    leat_pair_free(&h.echo.pair);
}

/* ---- strangers ---- */

static bool nothing_to_send(void)
{
    return !leat_endpoint_wants_send(h.echo.pair.server);
}

/* So many datagrams from as many addresses, to a server that has no connection; returns the bytes
 * that were sent in answer. */
static uint64_t strangers(uint8_t *datagram, size_t len, unsigned count)
{
    static uint8_t out[65536];
    uint64_t answers = 0;
    leat_send_info info;
    size_t n;

    for (unsigned i = 0; i < count; i++) {
        leat_recv_info at = {.remote = {.family = 4, .port = 999, .ip = {12, 0, 0, 0}},
                             .local = h.echo.pair.server_addr};

        memcpy(at.remote.ip + 1, &i, 3);
        memcpy(datagram + 6, &i, sizeof(i)); /* in the destination ID */
        assert_int_equal(leat_endpoint_recv_copy(h.echo.pair.server, datagram, len, &at), LEAT_OK);
        h.echo.pair.now += LEAT_MICROSECOND;
        leat_ctx_turn(h.echo.pair.ctx, h.echo.pair.now);
        while ((n = leat_endpoint_send(h.echo.pair.server, out, sizeof(out), &info)) > 0) {
            answers += n;
            assert_true(n <= 3 * len);
        }
    }
    assert_true(nothing_to_send());
    return answers;
}

/* A short packet to an ID that nobody has may be answered by a reset, which is shorter than it. */
static void packets_to_nobody_are_answered_by_less(void **state)
{
    enum { PACKET = 60, COUNT = 5000 };
    uint8_t datagram[PACKET];
    leat_mem_stats stats;
    uint64_t answers;
    size_t grown;

    (void)state;
    hostile_prepare(&h);
    leat_echo_begin(&h.echo);
    memset(datagram, 0x5c, sizeof(datagram));
    strangers(datagram, sizeof(datagram), COUNT);
    leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
    grown = stats.grown;
    hostile_count();
    answers = strangers(datagram, sizeof(datagram), COUNT);
    hostile_counted(__func__, COUNT * sizeof(datagram));
    leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
    assert_int_equal(stats.grown, grown);
    assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
    print_message("  %llu bytes out for %d in\n", (unsigned long long)answers, PACKET * COUNT);
    assert_true(answers <= (PACKET - 1) * COUNT);
    leat_pair_free(&h.echo.pair);
}

static size_t write_initial(uint8_t *out, uint32_t version, size_t token_len)
{
    leat_writer w;

    memset(out, 0x5c, 1200);
    leat_writer_init(&w, out, 1200);
    leat_writer_u8(&w, 0xc3);
    leat_writer_u32(&w, version);
    leat_writer_u8(&w, 8);
    leat_writer_zero(&w, 8);
    leat_writer_u8(&w, 8);
    leat_writer_zero(&w, 8);
    leat_writer_varint(&w, token_len);
    leat_writer_zero(&w, token_len);
    leat_writer_u16(&w, (uint16_t)(0x4000 | (1200 - leat_writer_len(&w) - 2)));
    return 1200;
}

static void ask_strangers(const char *test, uint32_t version, size_t token_len,
                          uint64_t most_answer)
{
    uint8_t datagram[1200];
    size_t len = write_initial(datagram, version, token_len), grown;
    leat_mem_stats stats;
    uint64_t answers;

    hostile_prepare(&h);
    leat_echo_begin(&h.echo);
    strangers(datagram, len, 200); /* queues have their size */
    leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
    grown = stats.grown;
    hostile_count();
    answers = strangers(datagram, len, 5000);
    hostile_counted(test, 5000 * len);
    leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
    assert_int_equal(stats.grown, grown);
    assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
    print_message("  %.3f bytes out for one in\n", (double)answers / (5000.0 * (double)len));
    assert_true(answers <= most_answer * 5000);
    leat_pair_free(&h.echo.pair);
}

/* Tokens of all lengths that nobody gave out, in Initials that do not open: not a word (RFC 9000
 * s8.1.3 asks for a close only where the packet is good). */
static void forged_tokens_cost_no_state(void **state)
{
    (void)state;
    ask_strangers("forged_tokens_cost_no_state", LEAT_QUIC_V1, 120, 0);
}

static void initials_that_do_not_open_cost_no_state(void **state)
{
    (void)state;
    ask_strangers("initials_that_do_not_open_cost_no_state", LEAT_QUIC_V1, 0, 0);
}

static void unknown_versions_are_answered_in_short(void **state)
{
    (void)state;
    ask_strangers("unknown_versions_are_answered_in_short", 0x7a7a7a7a, 0, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_frames_with_gaps_stay_within_the_budget),
        cmocka_unit_test(gaps_on_all_streams_stay_within_the_budget),
        cmocka_unit_test(crypto_with_gaps_stays_within_its_buffer),
        cmocka_unit_test(a_message_without_end_after_tls_closes),
        cmocka_unit_test(packet_numbers_full_of_gaps_are_kept_within_a_cap),
        cmocka_unit_test(acks_full_of_gaps_are_read_once),
        cmocka_unit_test(credit_by_the_byte_is_answered_in_kind),
        cmocka_unit_test(datagrams_that_nobody_reads_hold_nothing),
        cmocka_unit_test(ids_without_end_cost_what_they_weigh),
        cmocka_unit_test(probes_from_many_addresses_amplify_nothing),
        cmocka_unit_test(packets_to_nobody_are_answered_by_less),
        cmocka_unit_test(forged_tokens_cost_no_state),
        cmocka_unit_test(initials_that_do_not_open_cost_no_state),
        cmocka_unit_test(unknown_versions_are_answered_in_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
