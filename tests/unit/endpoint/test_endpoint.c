/* tests/unit/endpoint/test_endpoint.c: what an endpoint does with datagrams that belong to no
 * connection, and its tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/retry.h"
#include "crypto/token.h"
#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"

static leat_echo e;

/* What the server says to one datagram; 0: nothing. */
static size_t ask(const void *data, size_t len, uint8_t *answer, size_t cap)
{
    leat_send_info info;

    leat_ctx_set_now(e.pair.ctx, e.pair.now);
    leat_pair_inject(&e.pair, true, data, len);
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    return leat_endpoint_send(e.pair.server, answer, cap, &info);
}

static void begin(void)
{
    leat_echo_prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
}

static void end(void)
{
    leat_pair_free(&e.pair);
}

/* A long header with IDs of these lengths; the rest of the datagram is zero. */
static void write_long(uint8_t *out, size_t len, uint32_t version, uint8_t dcid_len,
                       uint8_t scid_len)
{
    leat_writer w;

    memset(out, 0, len);
    leat_writer_init(&w, out, len);
    leat_writer_u8(&w, 0xc0);
    leat_writer_u32(&w, version);
    leat_writer_u8(&w, dcid_len);
    for (unsigned i = 0; i < dcid_len; i++) {
        leat_writer_u8(&w, (uint8_t)(0xd0 + i));
    }
    leat_writer_u8(&w, scid_len);
    for (unsigned i = 0; i < scid_len; i++) {
        leat_writer_u8(&w, (uint8_t)(0x50 + i));
    }
}

static void an_unknown_version_is_answered_with_ours(void **state)
{
    uint8_t question[1200], answer[1500];
    leat_header header;
    size_t n;

    (void)state;
    begin();
    write_long(question, sizeof(question), 0x1a2a3a4a, 255, 200); /* RFC 8999: IDs to 255 bytes */
    n = ask(question, sizeof(question), answer, sizeof(answer));
    assert_true(n > 0 && n <= 3 * sizeof(question));
    assert_int_equal(leat_header_parse(answer, n, 8, &header), LEAT_OK);
    assert_int_equal(header.type, LEAT_PACKET_VERSION_NEGOTIATION);
    assert_int_equal(header.dcid.len, 200);
    assert_int_equal(header.scid.len, 255);
    assert_memory_equal(header.scid.data, question + 6, 255);
    assert_true(leat_header_lists_version(&header, LEAT_VERSION_1));
    /* One that is too small could be an amplification: silence (RFC 9000 s6.1). */
    assert_int_equal(ask(question, 1199, answer, sizeof(answer)), 0);
    /* A Version Negotiation packet is never answered. */
    write_long(question, sizeof(question), 0, 8, 8);
    assert_int_equal(ask(question, sizeof(question), answer, sizeof(answer)), 0);
    end();
}

static void a_client_gives_no_answers(void **state)
{
    uint8_t question[1200], answer[1500];
    leat_send_info info;

    (void)state;
    begin();
    write_long(question, sizeof(question), 0x1a2a3a4a, 8, 8);
    leat_pair_inject(&e.pair, false, question, sizeof(question));
    memset(question, 0x41, sizeof(question));
    leat_pair_inject(&e.pair, false, question, sizeof(question));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(leat_endpoint_send(e.pair.client, answer, sizeof(answer), &info), 0);
    end();
}

/* RFC 9000 s7.2. One of eight bytes is asked to come again with a token. */
static void an_initial_with_a_short_dcid_is_ignored(void **state)
{
    (void)state;
    for (uint8_t len = 7; len <= 8; len++) {
        uint8_t question[1200], answer[1500];
        leat_header header;
        leat_writer w;
        size_t n;

        leat_echo_prepare(&e);
        e.setup.server.conn.wait_for_validation = true;
        leat_pair_init(&e.pair, &e.setup);
        write_long(question, sizeof(question), LEAT_VERSION_1, len, 8);
        leat_writer_init(&w, question + 1 + 4 + 1 + len + 9, 3);
        leat_writer_u8(&w, 0); /* no token */
        leat_writer_u16(&w, (uint16_t)(0x4000 | (1200 - (1 + 4 + 1 + len + 9 + 3))));
        n = ask(question, sizeof(question), answer, sizeof(answer));
        if (len < 8) {
            assert_int_equal(n, 0);
        } else {
            assert_int_equal(leat_header_parse(answer, n, 8, &header), LEAT_OK);
            assert_int_equal(header.type, LEAT_PACKET_RETRY);
        }
        assert_int_equal(leat_endpoint_conns(e.pair.server), 0);
        end();
    }
}

/* An Initial that does not open leaves nothing behind. */
static void a_forged_initial_leaves_no_connection(void **state)
{
    uint8_t question[1200], answer[1500];
    leat_writer w;

    (void)state;
    begin();
    write_long(question, sizeof(question), LEAT_VERSION_1, 8, 8);
    leat_writer_init(&w, question + 1 + 4 + 9 + 9, 3);
    leat_writer_u8(&w, 0); /* no token */
    leat_writer_u16(&w, 0x4000 | (1200 - 26));
    assert_int_equal(ask(question, sizeof(question), answer, sizeof(answer)), 0);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 0);
    assert_int_equal(e.server.closed, 0);
    end();
}

/* ---- stateless reset ---- */

static void a_reset_is_shorter_than_what_it_answers(void **state)
{
    uint8_t question[1400], answer[1500];

    (void)state;
    begin();
    memset(question, 0x41, sizeof(question));
    for (size_t len = 1; len < sizeof(question); len++) {
        size_t n = ask(question, len, answer, sizeof(answer));

        assert_true(n < len);
        if (len > 21) {
            assert_true(n >= 21);
            assert_int_equal(answer[0] & 0xc0, 0x40);
        } else {
            assert_int_equal(n, 0);
        }
    }
    end();
}

/* Two endpoints that know nothing of each other fall silent. */
static void resets_do_not_loop(void **state)
{
    uint8_t a[1500], b[1500];
    size_t n = 200;
    unsigned rounds = 0;

    (void)state;
    begin();
    memset(a, 0x41, sizeof(a));
    while (n > 0) {
        n = ask(a, n, b, sizeof(b));
        memcpy(a, b, n);
        rounds++;
    }
    assert_true(rounds < 30);
    end();
}

static void a_restarted_server_resets_its_connections(void **state)
{
    leat_stream *stream;
    size_t written;
    leat_endpoint_settings settings;

    (void)state;
    leat_echo_prepare(&e);
    memset(e.setup.server.reset_key, 7, sizeof(e.setup.server.reset_key));
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_endpoint_free(e.pair.server);
    settings = e.setup.server;
    settings.server_tls = e.pair.server_tls;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &e.pair.server), LEAT_OK);
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "are you there, server?", 22, &written), LEAT_OK);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_RESET);
    assert_int_equal(e.client.info.err, LEAT_ERR_RESET);
    end();
}

/* A datagram that ends in this token; what it begins with is no packet of the client's. */
static void reset_with(const uint8_t token[LEAT_STATELESS_RESET_TOKEN], uint8_t first)
{
    uint8_t reset[60];

    memset(reset, 0x5a, sizeof(reset));
    reset[0] = first;
    memcpy(reset + sizeof(reset) - LEAT_STATELESS_RESET_TOKEN, token, LEAT_STATELESS_RESET_TOKEN);
    leat_pair_inject(&e.pair, false, reset, sizeof(reset));
    leat_echo_settle(&e, LEAT_MILLISECOND);
}

/* The same in what looks like a packet for the connection. */
static void reset_in_packet_with(const uint8_t token[LEAT_STATELESS_RESET_TOKEN], bool is_long)
{
    const leat_cid *cid = &e.pair.conn->local_cids.entry[0].cid;
    uint8_t reset[100];
    leat_writer w;

    memset(reset, 0x5a, sizeof(reset));
    leat_writer_init(&w, reset, sizeof(reset));
    if (is_long) {
        leat_writer_u8(&w, 0xe0); /* Handshake */
        leat_writer_u32(&w, LEAT_VERSION_1);
        leat_writer_u8(&w, cid->len);
    } else {
        leat_writer_u8(&w, 0x41);
    }
    leat_writer_bytes(&w, cid->data, cid->len);
    memcpy(reset + sizeof(reset) - LEAT_STATELESS_RESET_TOKEN, token, LEAT_STATELESS_RESET_TOKEN);
    leat_pair_inject(&e.pair, false, reset, sizeof(reset));
    leat_echo_settle(&e, LEAT_MILLISECOND);
}

static const leat_remote_cid *spare_id(void)
{
    const leat_remote_cid *entry = leat_remote_cids_fresh(&e.pair.conn->remote_cids);

    assert_non_null(entry);
    assert_true(entry->has_token);
    return entry;
}

/* RFC 9000 s10.3.1: tokens of IDs that were not used, or are retired, are not looked at. */
static void only_tokens_of_ids_in_use_reset(void **state)
{
    static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};
    uint8_t retired[LEAT_STATELESS_RESET_TOKEN], in_use[LEAT_STATELESS_RESET_TOKEN];

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    reset_with(spare_id()->reset_token, 0x41);
    reset_in_packet_with(spare_id()->reset_token, false);
    assert_int_equal(e.client.closed, 0);
    /* The client moves: what it used is retired, a spare one is in use. */
    memcpy(retired, e.pair.conn->remote_cids.entry[0].reset_token, sizeof(retired));
    memcpy(in_use, spare_id()->reset_token, sizeof(in_use));
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    reset_with(retired, 0x41);
    reset_in_packet_with(retired, false);
    assert_int_equal(e.client.closed, 0);
    /* Nor are those in use from where nothing was sent to. */
    e.pair.server_addr.port ^= 1;
    reset_with(in_use, 0x41);
    reset_in_packet_with(in_use, false);
    assert_int_equal(e.client.closed, 0);
    e.pair.server_addr.port ^= 1;
    reset_in_packet_with(in_use, false);
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_RESET);
    end();
}

/* s10.3: whatever the datagram begins with, since other versions may answer so. */
static void a_reset_may_begin_as_a_long_packet(void **state)
{
    (void)state;
    for (unsigned for_connection = 0; for_connection < 2; for_connection++) {
        uint8_t in_use[LEAT_STATELESS_RESET_TOKEN];

        leat_echo_prepare(&e);
        leat_echo_connect(&e);
        leat_echo_settle(&e, LEAT_SECOND);
        memcpy(in_use, e.pair.conn->remote_cids.entry[0].reset_token, sizeof(in_use));
        if (for_connection) {
            reset_in_packet_with(in_use, true);
        } else {
            reset_with(in_use, 0xe5);
        }
        assert_int_equal(e.client.closed, 1);
        assert_int_equal(e.client.info.kind, LEAT_CLOSE_RESET);
        end();
    }
}

/* ---- version negotiation and Retry, seen by a client ---- */

static void run_client_only(void)
{
    leat_send_info info;
    uint8_t buf[1500];

    leat_ctx_turn(e.pair.ctx, e.pair.now);
    while (leat_endpoint_send(e.pair.client, buf, sizeof(buf), &info) > 0) {
    }
    leat_ctx_turn(e.pair.ctx, e.pair.now);
}

static size_t version_negotiation(uint8_t *out, size_t cap, uint32_t version)
{
    leat_conn *conn = e.pair.conn;
    leat_writer w;

    leat_writer_init(&w, out, cap);
    assert_true(
        leat_header_write_version_negotiation(&w, leat_cid_span(&conn->local_cids.entry[0].cid),
                                              leat_cid_span(&conn->odcid), &version, 1, 0, 0));
    return leat_writer_len(&w);
}

static void a_version_negotiation_that_lists_ours_is_ignored(void **state)
{
    uint8_t packet[200];
    size_t n;

    (void)state;
    begin();
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    run_client_only();
    n = version_negotiation(packet, sizeof(packet), LEAT_VERSION_1);
    leat_pair_inject(&e.pair, false, packet, n);
    run_client_only();
    assert_int_equal(e.client.closed, 0);
    n = version_negotiation(packet, sizeof(packet), 0x12345678);
    leat_pair_inject(&e.pair, false, packet, n);
    run_client_only();
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_VERSION);
    end();
}

static uint8_t kept[1500];
static size_t kept_len;

static bool keep_retry(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!to_server && (data[0] & 0xf0) == 0xf0 && kept_len == 0) {
        memcpy(kept, data, *len);
        kept_len = *len;
    }
    return true;
}

static bool damage_retry(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (!to_server && (data[0] & 0xf0) == 0xf0) {
        data[*len - 20] ^= 1;
    }
    return true;
}

/* A second Retry, or one after something else was answered, changes nothing (RFC 9000 s17.2.5.2).
 */
static void a_late_retry_is_discarded(void **state)
{
    (void)state;
    kept_len = 0;
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = true;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = keep_retry;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    assert_true(kept_len > 0);
    leat_pair_inject(&e.pair, false, kept, kept_len);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    leat_echo_finish(&e);
}

/* A Retry as somebody on the path could make it: its tag proves no more than that he saw the
 * client's first Initial. */
static void inject_forged_retry(void)
{
    static const uint8_t own[] = {9, 9, 9, 9, 9, 9, 9, 9};
    leat_conn *conn = e.pair.conn;
    leat_span odcid = leat_conn_odcid(conn);
    const leat_cid *scid = &conn->local_cids.entry[0].cid;
    uint8_t packet[200];
    leat_writer w;
    size_t len;

    leat_writer_init(&w, packet, sizeof(packet));
    leat_writer_u8(&w, 0xf0);
    leat_writer_u32(&w, LEAT_QUIC_V1);
    leat_writer_u8(&w, scid->len);
    leat_writer_bytes(&w, scid->data, scid->len);
    leat_writer_u8(&w, sizeof(own));
    leat_writer_bytes(&w, own, sizeof(own));
    leat_writer_bytes(&w, "a token", 7);
    len = leat_writer_len(&w);
    leat_retry_tag(leat_schedule_for(LEAT_QUIC_V1), odcid.data, odcid.len, packet, len,
                   leat_writer_room(&w, LEAT_AEAD_TAG));
    leat_pair_inject(&e.pair, false, packet, leat_writer_len(&w));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
}

static bool follows_the_forger(void)
{
    return leat_remote_cids_current(&e.pair.conn->remote_cids)->data[0] == 9 &&
           leat_remote_cids_current(&e.pair.conn->remote_cids)->data[7] == 9;
}

static bool server_has_answered(void *arg)
{
    leat_conn *conn = ((leat_echo *)arg)->pair.conn;

    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].rx);
}

static void a_forged_retry_counts_before_an_answer_alone(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        leat_echo_prepare(&e);
        leat_echo_begin(&e);
        if (answered) {
            assert_true(leat_pair_run(&e.pair, server_has_answered, &e, LEAT_SECOND));
        }
        inject_forged_retry();
        assert_int_equal(follows_the_forger(), !answered);
        if (answered) {
            assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
            leat_echo_bytes(&e, 1000, LEAT_SECOND);
            leat_echo_finish(&e);
        } else {
            leat_pair_free(&e.pair);
        }
    }
}

static void a_retry_with_a_bad_tag_is_discarded(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = true;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = damage_retry;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_false(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 3 * LEAT_SECOND));
    e.pair.filter = NULL; /* the client's next Initial is answered by a whole one */
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_finish(&e);
}

/* ---- tokens ---- */

static void tokens_are_bound_and_expire(void **state)
{
    leat_addr addr = {.family = 4, .port = 1000, .ip = {1, 2, 3, 4}}, other = addr;
    uint8_t token[LEAT_ADDRTOKEN_MAX];
    uint8_t odcid_bytes[20] = {5};
    leat_span odcid = {odcid_bytes, 20};
    leat_cid scid = {.len = 8, .data = {9}}, found;
    leat_span dcid = leat_cid_span(&scid), none = {NULL, 0};
    leat_endpoint *ep;
    size_t n;

    (void)state;
    begin();
    ep = e.pair.server;
    leat_ctx_set_now(e.pair.ctx, 1000 * LEAT_SECOND);
    n = leat_addrtoken_retry(ep, &addr, LEAT_QUIC_V1, odcid, &scid, token);
    assert_int_equal(
        leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_RETRY);
    assert_int_equal(found.len, 20);
    assert_memory_equal(found.data, odcid_bytes, 20);
    other.port++;
    assert_int_equal(
        leat_addrtoken_check(ep, &other, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_STALE);
    assert_int_equal(
        leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n}, odcid, &found),
        LEAT_ADDRTOKEN_STALE);
    for (size_t i = 1; i < n; i++) {
        token[i] ^= 0x10;
        assert_int_equal(
            leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
            LEAT_ADDRTOKEN_STALE);
        token[i] ^= 0x10;
    }
    assert_int_equal(leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, none, dcid, &found),
                     LEAT_ADDRTOKEN_NONE);
    leat_ctx_set_now(e.pair.ctx, 1020 * LEAT_SECOND);
    assert_int_equal(
        leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_STALE);
    /* For a later connection: the port may be another, the address not. */
    n = leat_addrtoken_new(ep, &addr, LEAT_QUIC_V1, token);
    assert_int_equal(
        leat_addrtoken_check(ep, &other, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_EARLIER);
    /* RFC 9369 s5: nor the version. */
    assert_int_equal(
        leat_addrtoken_check(ep, &other, LEAT_QUIC_V2, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_NONE);
    other.ip[0]++;
    assert_int_equal(
        leat_addrtoken_check(ep, &other, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_NONE);
    leat_ctx_set_now(e.pair.ctx, 200000 * LEAT_SECOND);
    assert_int_equal(
        leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
        LEAT_ADDRTOKEN_NONE);
    end();
}

/* A token that our key opens and that says less than it must is as bad as one that it does not. */
static void a_token_of_ours_that_says_too_little_is_refused(void **state)
{
    static const leat_addrtoken_kind bad[] = {LEAT_ADDRTOKEN_NONE, LEAT_ADDRTOKEN_STALE};
    leat_addr addr = {.family = 4, .port = 1000, .ip = {1, 2, 3, 4}};
    leat_endpoint *ep;
    leat_cid found;

    (void)state;
    begin();
    ep = e.pair.server;
    leat_ctx_set_now(e.pair.ctx, LEAT_SECOND);
    for (int retry = 0; retry < 2; retry++) {
        /* kind, version, address; of a Retry the port, and its connection ID, which is empty */
        uint8_t aad[] = {0x4e, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0x03, 0xe8, 0};
        /* good for a second more; the original destination ID, of 8 bytes */
        uint8_t plain[] = {0, 0, 0, 0, 0x77, 0x35, 0x94, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
        size_t needs = retry ? sizeof plain : 8, aad_len = retry ? sizeof aad : 10;

        aad[0] = retry ? 0x52 : 0x4e;
        for (size_t len = 0; len <= needs; len++) {
            uint8_t token[LEAT_ADDRTOKEN_MAX] = {aad[0], 0};
            size_t n = 2 + leat_token_seal(ep->settings.token_key, &ep->host.shared->random,
                                           (leat_span){aad, aad_len}, plain, len, token + 2);

            assert_int_equal(leat_addrtoken_check(ep, &addr, LEAT_QUIC_V1, (leat_span){token, n},
                                                  (leat_span){NULL, 0}, &found),
                             len < needs ? bad[retry]
                             : retry     ? LEAT_ADDRTOKEN_RETRY
                                         : LEAT_ADDRTOKEN_EARLIER);
        }
    }
    assert_int_equal(found.len, 8);
    end();
}

static void without_a_life_there_are_no_tokens(void **state)
{
    leat_addr addr = {.family = 4, .port = 1000, .ip = {1, 2, 3, 4}};
    uint8_t token[LEAT_ADDRTOKEN_MAX];

    (void)state;
    begin();
    assert_true(leat_addrtoken_new(e.pair.server, &addr, LEAT_QUIC_V1, token) > 0);
    e.pair.server->settings.token_life = 0;
    assert_int_equal(leat_addrtoken_new(e.pair.server, &addr, LEAT_QUIC_V1, token), 0);
    end();
}

/* What two endpoints with one leat_shared give out is good at both, until three more keys came. */
static void tokens_of_shared_keys_are_good_anywhere(void **state)
{
    leat_addr addr = {.family = 4, .port = 1000, .ip = {1, 2, 3, 4}};
    uint8_t token[LEAT_ADDRTOKEN_MAX], key[LEAT_SHARED_KEY] = {1};
    leat_span dcid = {key, 8};
    leat_shared_settings settings;
    leat_endpoint_settings endpoint;
    leat_endpoint *other;
    leat_shared *shared;
    leat_cid found;
    size_t n;

    (void)state;
    leat_shared_settings_init(&settings);
    settings.seed[0] = 1;
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
    leat_echo_prepare(&e);
    e.setup.server.shared = shared;
    leat_echo_begin(&e);
    endpoint = e.setup.server;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &endpoint, &other), LEAT_OK);
    assert_memory_equal(other->settings.reset_key, e.pair.server->settings.reset_key, 32);
    leat_ctx_set_now(e.pair.ctx, 1000 * LEAT_SECOND);
    n = leat_addrtoken_new(e.pair.server, &addr, LEAT_QUIC_V1, token);
    for (unsigned rotations = 0; rotations < 6; rotations++) {
        assert_int_equal(
            leat_addrtoken_check(other, &addr, LEAT_QUIC_V1, (leat_span){token, n}, dcid, &found),
            rotations < 4 ? LEAT_ADDRTOKEN_EARLIER : LEAT_ADDRTOKEN_NONE);
        key[1]++;
        leat_shared_rotate_tokens(shared, key);
    }
    /* A clock that began anew makes a token no older than it is. */
    n = leat_addrtoken_new(e.pair.server, &addr, LEAT_QUIC_V1, token);
    leat_endpoint_free(other);
    leat_pair_free(&e.pair);
    leat_echo_begin(&e); /* its clock starts at one second */
    assert_int_equal(leat_addrtoken_check(e.pair.server, &addr, LEAT_QUIC_V1, (leat_span){token, n},
                                          dcid, &found),
                     LEAT_ADDRTOKEN_NONE);
    leat_pair_free(&e.pair);
    /* Early data without the means to find a replay is refused. */
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    endpoint.shared = NULL;
    endpoint.server_tls = e.pair.server_tls;
    endpoint.conn.early_data = true;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &endpoint, &other), LEAT_ERR_INVALID);
    leat_pair_free(&e.pair);
    leat_shared_free(shared);
}

static uint8_t client_token[512];
static size_t client_token_len;

static void keep_token(leat_conn *conn, leat_span token, void *user)
{
    (void)conn, (void)user;
    memcpy(client_token, token.data, token.len);
    client_token_len = token.len;
}

static unsigned retries;

static bool count_retries(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair;
    retries += !to_server &&
               leat_header_parse(data, *len, LEAT_CID_LEN_DEFAULT, &header) == LEAT_OK &&
               header.type == LEAT_PACKET_RETRY;
    return true;
}

/* The token of one connection spares the next its Retry. */
/* A connection that brings a token for the next. */
static void earn_a_token(leat_conn_events *events)
{
    retries = 0;
    e.setup.server.conn.wait_for_validation = true;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = count_retries;
    *events = leat_echo_client_events;
    events->token = keep_token;
    leat_pair_connect(&e.pair, &e.setup, events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(retries, 1);
    assert_true(client_token_len > 0);
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    leat_echo_settle(&e, 10 * LEAT_SECOND);
}

/* The next one, which begins with this version, 0: as it likes. */
static void spend_the_token(const leat_conn_events *events, uint32_t version)
{
    leat_connect how = {.remote = e.pair.server_addr,
                        .local = e.pair.client_addr,
                        .server_name = "localhost",
                        .tls = e.pair.client_tls,
                        .token = {client_token, client_token_len},
                        .settings = &e.setup.conn,
                        .events = events,
                        .user = &e.client};

    memset(&e.client, 0, sizeof(e.client));
    memset(&e.server, 0, sizeof(e.server));
    e.setup.conn.version = version;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &e.pair.conn), LEAT_OK);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
}

static void a_token_spares_the_retry(void **state)
{
    leat_conn_events events;

    (void)state;
    leat_echo_prepare(&e);
    earn_a_token(&events);
    spend_the_token(&events, 0);
    assert_int_equal(retries, 1);
    leat_echo_finish(&e);
}

/* RFC 9369 s5: a token belongs to the version that the connection ended up with. */
static void a_token_is_used_with_its_own_version(void **state)
{
    leat_conn_events events;

    (void)state;
    for (int i = 0; i < 2; i++) {
        leat_echo_prepare(&e);
        e.setup.server.conn.versions[0] = LEAT_QUIC_V2;
        e.setup.server.conn.versions[1] = LEAT_QUIC_V1;
        earn_a_token(&events); /* from version 1 to 2 */
        spend_the_token(&events, i == 0 ? 0 : LEAT_QUIC_V1);
        assert_int_equal(retries, i == 0 ? 1 : 2);
        assert_int_equal(leat_conn_version(e.pair.conn), LEAT_QUIC_V2);
        leat_echo_finish(&e);
    }
}

/* ---- amplification ---- */

static size_t to_server_bytes, to_client_bytes;

static bool weigh(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server) {
        if (to_server_bytes > 1200) {
            return false; /* an Initial and some bytes of another are all that the server ever gets
                           */
        }
        *len = to_server_bytes == 0 ? *len : 100;
        to_server_bytes += *len;
        return true;
    }
    to_client_bytes += *len;
    /* All Initials of the server's ask for an ACK here (s14.1). */
    assert_true((data[0] & 0xb0) != 0x80 || *len >= 1200);
    return false;
}

static void an_unvalidated_address_gets_three_times_what_it_sent(void **state)
{
    (void)state;
    to_server_bytes = to_client_bytes = 0;
    leat_echo_prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = weigh;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    assert_int_equal(to_server_bytes, 1300);
    assert_true(to_client_bytes > 1200);
    assert_true(to_client_bytes <= 3 * to_server_bytes);
    end();
}

/* ---- many datagrams in one buffer ---- */

static void a_gro_buffer_is_cut_by_connection(void **state)
{
    uint8_t buf[3 * 1200], out[65536];
    leat_send_info send;
    leat_recv_info recv;
    leat_echo_app second = {0};
    size_t n;

    (void)state;
    begin();
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    n = leat_endpoint_send(e.pair.client, out, sizeof(out), &send);
    assert_int_equal(n, 1200);
    memcpy(buf, out, n);
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &second);
    n = leat_endpoint_send(e.pair.client, out, sizeof(out), &send);
    assert_int_equal(n, 1200);
    memcpy(buf + 1200, out, n);
    memset(buf + 2400, 0x41, 100);
    recv = (leat_recv_info){
        .remote = e.pair.client_addr, .local = e.pair.server_addr, .segment = 1200};
    assert_int_equal(leat_endpoint_recv_copy(e.pair.server, buf, 2500, &recv), LEAT_OK);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 2);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.client.connected, 1);
    assert_int_equal(second.connected, 1);
    end();
}

static void bad_settings_are_refused(void **state)
{
    leat_endpoint_settings settings;
    leat_endpoint *ep;

    (void)state;
    begin();
    leat_endpoint_settings_init(&settings);
    settings.cid_len = 0;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    settings.cid_len = LEAT_CID_LEN_MIN - 1;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    settings.cid_len = LEAT_CID_LEN_MAX + 1;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    settings.cid_len = 8;
    settings.max_conns = 0;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    settings.max_conns = 1;
    settings.server_tls = e.pair.client_tls;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    settings.server_tls = e.pair.server_tls;
    settings.retry_above = LEAT_RETRY_ABOVE_MAX + 1;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &ep), LEAT_ERR_INVALID);
    end();
}

static void expect_refused(leat_endpoint_settings *settings)
{
    leat_endpoint *ep;

    assert_int_equal(leat_endpoint_new(e.pair.ctx, settings, &ep), LEAT_ERR_INVALID);
    leat_conn_settings_init(&settings->conn);
}

/* With them each client would be passed over in silence. */
static void a_server_with_bad_settings_for_connections_is_refused(void **state)
{
    leat_endpoint_settings settings;

    (void)state;
    begin();
    leat_endpoint_settings_init(&settings);
    settings.server_tls = e.pair.server_tls;
    settings.conn.memory = LEAT_CONN_MEMORY_MIN - 1;
    expect_refused(&settings);
    settings.conn.udp_payload = LEAT_UDP_PAYLOAD_MIN - 1;
    expect_refused(&settings);
    settings.conn.udp_payload = LEAT_UDP_PAYLOAD_MAX + 1;
    expect_refused(&settings);
    settings.conn.send_buffer = LEAT_STREAM_SEND_BUFFER_MIN - 1;
    expect_refused(&settings);
    settings.conn.max_data = (uint64_t)LEAT_CONN_WINDOW_MAX + 1;
    expect_refused(&settings);
    settings.conn.version_count = 0;
    expect_refused(&settings);
    settings.conn.handshake_timeout = 0;
    expect_refused(&settings);
    end();
}

/* Connection IDs, tokens and stateless resets would be anybody's to foretell. */
static void a_context_without_a_seed_has_no_endpoints(void **state)
{
    leat_endpoint_settings settings;
    leat_endpoint *ep;
    leat_ctx *ctx;

    (void)state;
    leat_endpoint_settings_init(&settings);
    assert_int_equal(leat_ctx_new(NULL, &ctx), LEAT_OK);
    assert_int_equal(leat_endpoint_new(ctx, &settings, &ep), LEAT_ERR_INVALID);
    assert_null(ep);
    leat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_without_a_seed_has_no_endpoints),
        cmocka_unit_test(an_unknown_version_is_answered_with_ours),
        cmocka_unit_test(a_client_gives_no_answers),
        cmocka_unit_test(an_initial_with_a_short_dcid_is_ignored),
        cmocka_unit_test(a_forged_initial_leaves_no_connection),
        cmocka_unit_test(a_reset_is_shorter_than_what_it_answers),
        cmocka_unit_test(resets_do_not_loop),
        cmocka_unit_test(a_restarted_server_resets_its_connections),
        cmocka_unit_test(only_tokens_of_ids_in_use_reset),
        cmocka_unit_test(a_reset_may_begin_as_a_long_packet),
        cmocka_unit_test(a_version_negotiation_that_lists_ours_is_ignored),
        cmocka_unit_test(a_late_retry_is_discarded),
        cmocka_unit_test(a_forged_retry_counts_before_an_answer_alone),
        cmocka_unit_test(a_retry_with_a_bad_tag_is_discarded),
        cmocka_unit_test(tokens_are_bound_and_expire),
        cmocka_unit_test(a_token_of_ours_that_says_too_little_is_refused),
        cmocka_unit_test(without_a_life_there_are_no_tokens),
        cmocka_unit_test(tokens_of_shared_keys_are_good_anywhere),
        cmocka_unit_test(a_token_spares_the_retry),
        cmocka_unit_test(a_token_is_used_with_its_own_version),
        cmocka_unit_test(an_unvalidated_address_gets_three_times_what_it_sent),
        cmocka_unit_test(a_gro_buffer_is_cut_by_connection),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(a_server_with_bad_settings_for_connections_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
