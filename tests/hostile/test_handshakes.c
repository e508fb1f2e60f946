/* tests/hostile/test_handshakes.c: what can be done to a server before it knows anybody: handshakes
 * that drip, are spoilt on the way, or come by the thousands and never end.
 *
 * LEAT_HOSTILE_COUNT=N sets how many half-open handshakes come (20,000).
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "budget.h"
#include "endpoint/endpoint.h"

static hostile h;

/* ---- dripping ---- */

/* One byte of the ClientHello a second, each in a datagram of its own: the handshake timeout counts
 * from its beginning, and until then it costs little. */
static void a_handshake_that_drips_is_ended(void **state)
{
    leat_stream_send *hello;

    (void)state;
    hostile_prepare(&h);
    leat_echo_begin(&h.echo);
    hostile_begin(&h);
    h.echo.pair.user = &h;
    h.echo.pair.filter = hostile_deaf;
    hello = &h.echo.pair.conn->hs->crypto[LEAT_SPACE_INITIAL].send;
    for (uint64_t i = 0; i < 60 && (i < 2 || leat_endpoint_conns(h.echo.pair.server) > 0); i++) {
        leat_forge_payload payload;
        leat_writer *w = leat_forge_begin(&payload);
        leat_data_fit fit = {.len = 1, .fits = true};

        leat_frame_write_crypto_head(w, i, &fit);
        leat_stream_send_copy(hello, i, 1, leat_writer_room(w, 1));
        leat_forge_in(&h.echo.pair, h.echo.pair.conn, LEAT_SPACE_INITIAL, payload.data,
                      leat_writer_len(w));
        hostile_settle(&h, 0);
        h.echo.pair.now += LEAT_SECOND;
        leat_ctx_turn(h.echo.pair.ctx, h.echo.pair.now);
    }
    hostile_assert(&h, &(hostile_budget){12, 1080, 65536, 24576});
    assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
    assert_int_equal(h.echo.pair.server->handshakes, 0);
    assert_int_equal(h.echo.server.connected, 0);
    leat_pair_free(&h.echo.pair);
}

/* ---- tokens ---- */

static bool lose_until_stale(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    return !to_server || pair->datagrams[1] == 0 || pair->now > 18 * LEAT_SECOND;
}

/* A client that was cut off for longer than a Retry's token is good is told so (RFC 9000 s8.1.3),
 * whatever the length of the ID that the Retry gave it: it would ask in vain until its timeout. */
static void a_token_that_came_too_late_is_refused_with_a_word(void **state)
{
    static const uint8_t lengths[] = {4, 7, 8, 20};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths); i++) {
        hostile_prepare(&h);
        h.echo.setup.server.cid_len = lengths[i];
        h.echo.setup.server.conn.wait_for_validation = true;
        h.echo.setup.conn.handshake_timeout = 100 * LEAT_SECOND;
        h.echo.setup.conn.idle_timeout = 100 * LEAT_SECOND;
        leat_echo_begin(&h.echo);
        hostile_begin(&h);
        h.echo.pair.filter = lose_until_stale;
        assert_true(
            leat_pair_run(&h.echo.pair, leat_echo_client_closed, &h.echo, 90 * LEAT_SECOND));
        assert_int_equal(h.echo.client.info.kind, LEAT_CLOSE_PEER);
        assert_int_equal(h.echo.client.info.code, LEAT_TE_INVALID_TOKEN);
        hostile_settle(&h, LEAT_SECOND);
        hostile_assert(&h, &(hostile_budget){2, 124, 65536, 0});
        leat_pair_free(&h.echo.pair);
    }
}

static struct {
    uint8_t data[1500];
    size_t len;
} spent;

static bool keep_the_one_with_a_token(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair;
    if (!to_server || leat_header_parse(data, *len, 8, &header) != LEAT_OK ||
        header.type != LEAT_PACKET_INITIAL || header.token.len == 0) {
        return true;
    }
    if (spent.len == 0) {
        memcpy(spent.data, data, *len);
        spent.len = *len;
    }
    return false;
}

/* A Retry's good token, in the good Initial that it came in, again and again: from other addresses
 * it makes no connection, from its own no second one. */
static void a_token_replayed_makes_one_connection_at_most(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        hostile_prepare(&h);
        h.echo.setup.server.conn.wait_for_validation = true;
        leat_echo_begin(&h.echo);
        h.echo.pair.filter = keep_the_one_with_a_token;
        spent.len = 0;
        leat_pair_run(&h.echo.pair, NULL, NULL, 100 * LEAT_MILLISECOND);
        assert_true(spent.len >= LEAT_INITIAL_MIN_SIZE);
        hostile_begin(&h);
        h.echo.pair.filter = hostile_deaf;
        for (unsigned i = 0; i < 1000; i++) {
            leat_addr from = h.echo.pair.client_addr;

            if (!own) {
                from = (leat_addr){.family = 4, .port = 999, .ip = {13, 0, 0, 0}};
                memcpy(from.ip + 1, &i, 3);
            }
            leat_pair_inject_from(&h.echo.pair, &from, spent.data, spent.len);
            hostile_settle(&h, LEAT_MICROSECOND);
            assert_true(leat_endpoint_conns(h.echo.pair.server) <= (size_t)own);
        }
        hostile_settle(&h, 50 * LEAT_MILLISECOND);
        hostile_assert(&h, &(hostile_budget){2, 79, 131072, 23040});
        leat_pair_free(&h.echo.pair);
    }
}

/* ---- what is forged for a client ---- */

static bool client_has_handshake_keys(void *arg)
{
    leat_conn *conn = ((leat_echo *)arg)->pair.conn;

    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

/* Without end, by one who has seen the client's IDs, to a client that the server has answered or
 * not: Version Negotiation that lists the version in use, or comes too late, and Initials that do
 * not open. The handshake goes on (RFC 9000 s6.2, RFC 9001 s5.3). */
static void forged_answers_change_no_handshake(void **state)
{
    uint8_t negotiation[100], initial[LEAT_INITIAL_MIN_SIZE];

    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        uint32_t version = answered ? 0x12345678 : LEAT_QUIC_V1;
        leat_conn *conn;
        leat_writer w;
        leat_cid id;

        hostile_prepare_against_client(&h);
        leat_echo_begin(&h.echo);
        if (answered) {
            assert_true(
                leat_pair_run(&h.echo.pair, client_has_handshake_keys, &h.echo, LEAT_SECOND));
        }
        conn = h.echo.pair.conn;
        id = conn->local_cids.entry[0].cid;
        leat_writer_init(&w, negotiation, sizeof(negotiation));
        assert_true(leat_header_write_version_negotiation(
            &w, leat_cid_span(&id), leat_cid_span(&conn->odcid), &version, 1, 0, 0));
        memset(initial, 0x5c, sizeof(initial));
        memcpy(initial, "\xc3\0\0\0\1", 5);
        initial[5] = id.len;
        memcpy(initial + 6, id.data, id.len);
        memcpy(initial + 6 + id.len, "\0\0\x44\0", 4); /* no ID, no token, 1,024 bytes */
        hostile_begin(&h);
        for (unsigned i = 0; i < 2000; i++) {
            uint8_t copy[LEAT_INITIAL_MIN_SIZE];

            memcpy(copy, initial, sizeof(copy));
            copy[100] = (uint8_t)i;
            leat_pair_inject(&h.echo.pair, false, copy, sizeof(copy));
            leat_pair_inject(&h.echo.pair, false, negotiation, leat_writer_len(&w));
            hostile_settle(&h, 0);
        }
        hostile_assert(&h, &(hostile_budget){5, 1, 131072, 20992});
        assert_true(
            leat_pair_run(&h.echo.pair, leat_echo_both_connected, &h.echo, 5 * LEAT_SECOND));
        leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
        leat_echo_finish(&h.echo);
    }
}

/* ---- amplification ---- */

typedef struct seen {
    uint64_t to_server, to_client;
    unsigned keep; /* of the client's datagrams so many arrive, and then no more */
} seen;

/* RFC 9000 s8.1, at every datagram. */
static bool weigh(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    seen *s = pair->user;

    (void)data;
    if (to_server) {
        if (s->keep == 0) {
            return false;
        }
        s->keep--;
        s->to_server += *len;
        return true;
    }
    s->to_client += *len;
    assert_true(s->to_client <= 3 * s->to_server);
    return false;
}

static void a_client_that_falls_silent_gets_three_times_what_it_sent(void **state)
{
    (void)state;
    for (unsigned keep = 1; keep < 6; keep++) {
        seen s = {.keep = keep};

        hostile_prepare(&h);
        leat_echo_begin(&h.echo);
        hostile_begin(&h);
        h.echo.pair.user = &s;
        h.echo.pair.filter = weigh;
        for (int i = 0; i < 60; i++) {
            hostile_settle(&h, LEAT_SECOND);
        }
        h.unheard = s.to_client;
        hostile_assert(&h, &(hostile_budget){50, 3000, 65536, 23040});
        assert_true(s.to_client > s.to_server); /* it does answer */
        assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
        leat_pair_free(&h.echo.pair);
    }
}

/* ---- corruption ---- */

static struct {
    bool to_server;
    size_t at;
    bool done;
} spoil;

static bool spoil_one(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!spoil.done && to_server == spoil.to_server && *len > spoil.at) {
        data[spoil.at] ^= 0x10;
        spoil.done = true;
    }
    return true;
}

/* Whatever byte of the first flights is changed on the way, the handshake comes to its end, or the
 * client is told that it cannot; a damaged token or version may have that effect and no other. */
static void any_byte_of_the_first_flights_may_be_spoilt(void **state)
{
    uint64_t received = 0;

    (void)state;
    hostile_count();
    for (int to_server = 0; to_server < 2; to_server++) {
        for (size_t at = 0; at < 1200; at += at < 64 ? 1 : 41) {
            hostile_prepare(&h);
            h.many = true;
            leat_echo_begin(&h.echo);
            hostile_begin(&h);
            spoil.to_server = to_server;
            spoil.at = at;
            spoil.done = false;
            h.echo.pair.filter = spoil_one;
            leat_pair_run(&h.echo.pair, leat_echo_both_connected, &h.echo, 20 * LEAT_SECOND);
            assert_true(spoil.done);
            hostile_settle(&h, 0);
            received += h.echo.pair.bytes[1];
            hostile_assert(&h, &(hostile_budget){43, 3360, 65536, 12800});
            if (!leat_echo_both_connected(&h.echo)) {
                /* The version field alone is no one's secret: a spoilt one may be negotiated. */
                assert_in_range(at, 1, 4);
                leat_pair_free(&h.echo.pair);
                continue;
            }
            leat_echo_bytes(&h.echo, 3000, 5 * LEAT_SECOND);
            /* A server that took a spoilt first ID for another connection forgets it in time. */
            leat_conn_close(h.echo.pair.conn, 0, (leat_span){NULL, 0});
            leat_echo_settle(&h.echo, 60 * LEAT_SECOND);
            assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
            leat_pair_free(&h.echo.pair);
        }
    }
    hostile_counted(__func__, received);
}

/* ---- half open ---- */

static struct {
    uint8_t data[1500];
    size_t len;
} first;

static bool keep_first(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && first.len == 0) {
        memcpy(first.data, data, *len);
        first.len = *len;
    }
    return false;
}

/* The client's first datagram, opened, so that it can be sealed for other IDs. */
typedef struct initial {
    uint8_t plain[1500];
    size_t header_len, payload_len, pn_offset;
    unsigned pn_len;
} initial;

static void open_first(hostile *hh, initial *out)
{
    leat_key_cache *cache = hh->echo.pair.server->host.shared->keys;
    leat_packet_keys client = {0}, server = {0};
    leat_header header;
    leat_mask_op mask;
    leat_open_op op = {.result = LEAT_ERR_CRYPTO};
    uint32_t truncated;

    assert_int_equal(leat_header_parse(first.data, first.len, 8, &header), LEAT_OK);
    assert_int_equal(header.type, LEAT_PACKET_INITIAL);
    leat_packet_keys_initial(&client, &server, leat_schedule_for(header.version), header.dcid.data,
                             header.dcid.len);
    mask.sample = first.data + header.pn_offset + 4;
    assert_int_equal(leat_mask(cache, &client, &mask, 1), LEAT_OK);
    out->pn_offset = header.pn_offset;
    out->pn_len = leat_hp_remove(first.data, header.pn_offset, mask.mask, &truncated);
    out->header_len = header.pn_offset + out->pn_len;
    op.header = first.data;
    op.header_len = (uint32_t)out->header_len;
    op.pn = truncated;
    op.payload = first.data + out->header_len;
    op.payload_len = (uint32_t)(header.packet_len - out->header_len);
    assert_int_equal(leat_open(cache, &client, &op, 1), LEAT_OK);
    assert_int_equal(op.result, LEAT_OK);
    out->payload_len = op.payload_len - LEAT_AEAD_TAG;
    memcpy(out->plain, first.data, out->header_len + out->payload_len);
    leat_packet_keys_drop(&client, cache);
    leat_packet_keys_drop(&server, cache);
}

/* The same ClientHello to another ID. Its bytes: 1 first, 4 version, 1 length, 8 of the ID. */
static size_t seal_for(hostile *hh, const initial *in, uint64_t number, uint8_t *out)
{
    leat_key_cache *cache = hh->echo.pair.server->host.shared->keys;
    leat_packet_keys client = {0}, server = {0};
    leat_seal_op op = {.packet = out,
                       .header_len = (uint32_t)in->header_len,
                       .payload_len = (uint32_t)in->payload_len,
                       .pn_len = (uint8_t)in->pn_len};

    memcpy(out, in->plain, in->header_len + in->payload_len);
    memcpy(out + 6, &number, 8);
    leat_packet_keys_initial(&client, &server, leat_schedule_for(LEAT_QUIC_V1), out + 6, 8);
    assert_int_equal(leat_seal(cache, &client, &op, 1), LEAT_OK);
    leat_packet_keys_drop(&client, cache);
    leat_packet_keys_drop(&server, cache);
    return in->header_len + in->payload_len + LEAT_AEAD_TAG;
}

static uint64_t how_many(void)
{
    const char *text = getenv("LEAT_HOSTILE_COUNT");

    return text ? strtoull(text, NULL, 0) : 20000;
}

/* Good ClientHellos from as many addresses, none of which ever answers. Those above the limit on
 * handshakes are refused or sent a Retry, without a trace; none gets more than three times its
 * bytes; when the timeout has passed all is as before. */
typedef enum retry_use { NO_RETRY, RETRY_ALWAYS, RETRY_BY_LOAD } retry_use;

enum { LOAD = 16 }; /* half-open handshakes with which Retry comes on */

static void half_open(const char *test, retry_use use, uint64_t count)
{
    static uint8_t out[65536];
    initial in;
    size_t most = 0, warm = 0;
    uint64_t bytes_in = 0, bytes_out = 0;
    leat_send_info info;
    size_t n;

    hostile_prepare(&h);
    h.echo.setup.server.max_handshakes = 64;
    h.echo.setup.server.conn.wait_for_validation = use == RETRY_ALWAYS;
    h.echo.setup.server.retry_above = use == RETRY_BY_LOAD ? LOAD : 0;
    leat_echo_begin(&h.echo);
    h.echo.pair.filter = keep_first;
    first.len = 0;
    leat_pair_run(&h.echo.pair, NULL, NULL, 20 * LEAT_MILLISECOND);
    open_first(&h, &in);
    hostile_count();
    for (uint64_t i = 1; i <= count; i++) {
        uint8_t packet[1500];
        leat_addr from = {.family = 4,
                          .port = (uint16_t)(1024 + i % 60000),
                          .ip = {11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
        leat_recv_info at = {.remote = from, .local = h.echo.pair.server_addr};
        uint64_t to_this = 0;
        size_t len = seal_for(&h, &in, i * 0x9e3779b97f4a7c15u, packet);

        h.echo.pair.now += 10 * LEAT_MICROSECOND;
        leat_ctx_set_now(h.echo.pair.ctx, h.echo.pair.now);
        assert_int_equal(leat_endpoint_recv_copy(h.echo.pair.server, packet, len, &at), LEAT_OK);
        leat_ctx_turn(h.echo.pair.ctx, h.echo.pair.now);
        while ((n = leat_endpoint_send(h.echo.pair.server, out, sizeof(out), &info)) > 0) {
            bytes_out += n;
            to_this += leat_addr_equal(&info.remote, &from) ? n : 0;
        }
        bytes_in += len;
        assert_true(to_this <= 3 * len);
        assert_true(bytes_out <= 3 * bytes_in);
        if (leat_endpoint_conns(h.echo.pair.server) > most) {
            most = leat_endpoint_conns(h.echo.pair.server);
        }
        if (i == 1000) {
            leat_mem_stats stats;

            leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
            warm = stats.system_high;
        }
    }
    hostile_counted(test, bytes_in);
    {
        leat_mem_stats stats;

        leat_mem_stats_get(leat_ctx_mem(h.echo.pair.ctx), &stats);
        print_message("  %llu Initials: %zu connections at most, %zu bytes of memory after 1,000, "
                      "%zu at the end; %.2f bytes out for one in\n",
                      (unsigned long long)count, most, warm, stats.system_high,
                      (double)bytes_out / (double)bytes_in);
        assert_true(stats.system_high <= warm + 65536);
    }
    assert_in_range(most, use == RETRY_ALWAYS ? 0 : 1, use == RETRY_BY_LOAD ? LOAD + 1 : 64);
    h.echo.pair.user = &h;
    h.echo.pair.filter = hostile_deaf;
    leat_echo_settle(&h.echo, 60 * LEAT_SECOND);
    assert_int_equal(h.echo.pair.server->handshakes, 0);
    assert_int_equal(leat_endpoint_conns(h.echo.pair.server), 0);
    assert_false(h.echo.pair.server->retry_mode); /* the load is gone, and Retry with it */
    leat_pair_free(&h.echo.pair);
}

static void half_open_handshakes_are_capped(void **state)
{
    (void)state;
    half_open(__func__, NO_RETRY, how_many());
}

static void with_retry_half_open_handshakes_leave_nothing(void **state)
{
    (void)state;
    half_open(__func__, RETRY_ALWAYS, how_many());
}

static void by_load_retry_comes_on_and_goes(void **state)
{
    (void)state;
    half_open(__func__, RETRY_BY_LOAD, how_many());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_that_drips_is_ended),
        cmocka_unit_test(a_token_that_came_too_late_is_refused_with_a_word),
        cmocka_unit_test(a_token_replayed_makes_one_connection_at_most),
        cmocka_unit_test(forged_answers_change_no_handshake),
        cmocka_unit_test(a_client_that_falls_silent_gets_three_times_what_it_sent),
        cmocka_unit_test(any_byte_of_the_first_flights_may_be_spoilt),
        cmocka_unit_test(half_open_handshakes_are_capped),
        cmocka_unit_test(with_retry_half_open_handshakes_leave_nothing),
        cmocka_unit_test(by_load_retry_comes_on_and_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
