/* tests/unit/conn/test_early.c: 0-RTT, taken and rejected, between a client and a server.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "early_rig.h"
#include "forge.h"
#include "mem/mem.h"
#include "wire/frames.h"

static void early_data_is_answered_within_one_round_trip(void **state)
{
    leat_time from;

    (void)state;
    begin();
    connect_and_ask(STREAMS);
    from = t.echo.pair.now;
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_int_equal(answered_at - from, 2 * t.echo.pair.delay);
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
    assert_int_equal(leat_conn_early(t.echo.server.conn), LEAT_EARLY_ACCEPTED);
    assert_int_equal(t.early_told, 1);
    assert_int_equal(t.opened_before_connected, STREAMS);
    leat_echo_settle(&t.echo, LEAT_SECOND);
    leat_conn_check(t.echo.client.conn);
    leat_conn_check(t.echo.server.conn);
    assert_null(t.echo.client.conn->early_work);
    assert_null(t.echo.server.conn->early_work);
    close_it();
    finish();
}

static void every_version_and_cipher_carries_early_data(void **state)
{
    static const leat_tls_cipher ciphers[] = {LEAT_TLS_AES_128_GCM_SHA256,
                                              LEAT_TLS_AES_256_GCM_SHA384,
                                              LEAT_TLS_CHACHA20_POLY1305_SHA256};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        prepare();
        t.echo.setup.cipher = ciphers[i / 2];
        if (i % 2) { /* the server moves the first connection to it */
            t.echo.setup.server.conn.versions[0] = LEAT_QUIC_V2;
            t.echo.setup.server.conn.versions[1] = LEAT_QUIC_V1;
        }
        first_connection();
        connect_and_ask(STREAMS);
        answers_come(5 * LEAT_SECOND, STREAM_SIZE);
        assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
        assert_int_equal(leat_conn_version(t.echo.client.conn),
                         i % 2 ? LEAT_QUIC_V2 : LEAT_QUIC_V1);
        close_it();
        finish();
    }
}

static void rejected(void)
{
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_REJECTED);
    assert_int_equal(leat_conn_early(t.echo.server.conn), LEAT_EARLY_NONE);
    assert_int_equal(t.early_told, 0);
    assert_int_equal(t.opened_before_connected, 0);
    leat_conn_check(t.echo.client.conn);
}

static void rejected_early_data_is_sent_again_once(void **state)
{
    (void)state;
    begin();
    t.echo.setup.server.conn.early_data = false;
    another_server(t.shared);
    connect_and_ask(STREAMS);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    rejected();
    ask(1, STREAM_SIZE); /* and life goes on */
    assert_true(leat_pair_run(&t.echo.pair, all_answered, NULL, LEAT_SECOND));
    assert_int_equal(asked[0].got, STREAM_SIZE);
    close_it();
    finish();
}

/* RFC 9001 s4.6.2: what a server has not processed it cannot acknowledge. */
static void an_ack_of_rejected_early_data_closes(void **state)
{
    leat_forge_payload payload;
    const leat_range first = {0, 1};

    (void)state;
    begin();
    t.echo.setup.server.conn.early_data = false;
    another_server(t.shared);
    connect_and_ask(STREAMS);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    rejected();
    assert_true(t.echo.pair.conn->early_end > 0);
    leat_forge_begin(&payload);
    assert_true(leat_frame_write_ack(&payload.w, &first, 1, 1, 0, NULL) > 0);
    leat_forge_send(&t.echo.pair, t.echo.server.conn, &payload);
    leat_echo_settle(&t.echo, LEAT_SECOND);
    assert_int_equal(t.echo.client.closed, 1);
    assert_int_equal(t.echo.client.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(t.echo.client.info.code, LEAT_TE_PROTOCOL_VIOLATION);
    finish();
}

/* Streams above the new limit wait, those below have less credit than was used. */
static void rejected_with_lower_limits_the_rest_waits(void **state)
{
    (void)state;
    begin();
    t.echo.setup.server.conn.max_streams_bidi = 2;
    t.echo.setup.server.conn.max_data = 900;
    t.echo.setup.server.conn.max_stream_data_bidi_remote = 300;
    another_server(t.shared);
    connect_and_ask(STREAMS);
    assert_int_equal(open_count, STREAMS);
    answers_come(20 * LEAT_SECOND, STREAM_SIZE);
    rejected();
    close_it();
    finish();
}

static void a_ticket_is_good_for_early_data_once(void **state)
{
    (void)state;
    begin();
    connect_and_ask(1);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
    close_it(); /* before the next ticket came */
    connect_and_ask(1);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    rejected();
    leat_echo_settle(&t.echo, LEAT_SECOND);
    close_it();
    t.echo.pair.session = (leat_span){t.session, t.session_len}; /* the newer one is good again */
    connect_and_ask(1);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
    close_it();
    finish();
}

static bool recorder(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && t.record && t.recorded < 8) {
        memcpy(t.record_of[t.recorded].data, data, *len);
        t.record_of[t.recorded++].len = *len;
    }
    return true;
}

/* Somebody repeats what he has recorded, to this endpoint and to another that shares the keys. */
static void repeated_early_data_is_not_taken_again(void **state)
{
    leat_addr elsewhere = {.family = 4, .port = 666, .ip = {10, 9, 9, 9}};
    leat_shared_stats_data stats;

    (void)state;
    begin();
    t.record = true;
    t.echo.pair.filter = recorder;
    connect_and_ask(1);
    assert_true(leat_pair_step(&t.echo.pair, t.echo.pair.now + LEAT_SECOND));
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    t.record = false;
    close_it();
    assert_int_equal(t.early_told, 1);
    memset(&t.echo.server, 0, sizeof(t.echo.server));
    t.early_told = 0;
    for (int again = 0; again < 2; again++) {
        /* This endpoint would drop a copy of what it has answered; but it does not remember all. */
        memset(t.echo.pair.server->recent, 0, LEAT_RECENT_DCIDS_MAX * sizeof(uint64_t));
        leat_pair_inject_from(&t.echo.pair, &elsewhere, t.record_of[0].data, t.record_of[0].len);
        leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
        another_server(t.shared);
    }
    assert_int_equal(t.early_told, 0);
    assert_int_equal(t.echo.server.opened, 0);
    leat_shared_stats(t.shared, &stats);
    assert_int_equal(stats.early_accepted, 1);
    assert_int_equal(stats.early_refused, 2);
    finish();
}

/* RFC 9000 s7.4.1: the same client, that remembers more than the server says now. */
static void accepted_early_data_with_lower_limits_is_a_violation(void **state)
{
    static const uint8_t limits[] = {
        LEAT_TP_INDEX_initial_max_data,
        LEAT_TP_INDEX_initial_max_stream_data_bidi_local,
        LEAT_TP_INDEX_initial_max_stream_data_bidi_remote,
        LEAT_TP_INDEX_initial_max_stream_data_uni,
        LEAT_TP_INDEX_initial_max_streams_bidi,
        LEAT_TP_INDEX_initial_max_streams_uni,
        LEAT_TP_INDEX_active_connection_id_limit,
        LEAT_TP_INDEX_max_datagram_frame_size,
    };

    (void)state;
    /* The last is RESET_STREAM_AT, which the server does not take any more. */
    for (size_t i = 0; i < 2 * (sizeof(limits) + 1); i++) {
        static uint8_t blob[sizeof(t.session) + 1024];
        leat_session session;
        bool accept = i % 2 == 0;

        prepare();
        t.echo.setup.server.conn.disable_reset_stream_at = i / 2 == sizeof(limits);
        first_connection();
        assert_true(leat_session_decode(t.echo.pair.session, &session));
        if (i / 2 < sizeof(limits)) {
            session.params.numbers[limits[i / 2]]++;
        } else {
            session.params.present |= LEAT_TP_reset_stream_at;
        }
        t.echo.pair.session = (leat_span){blob, leat_session_encode(&session, blob, sizeof(blob))};
        if (!accept) {
            t.echo.setup.server.conn.early_data = false;
            another_server(t.shared);
        }
        connect_and_ask(1);
        if (accept) {
            assert_true(
                leat_pair_run(&t.echo.pair, leat_echo_client_closed, &t.echo, 10 * LEAT_SECOND));
            assert_int_equal(t.echo.client.info.code, LEAT_TE_PROTOCOL_VIOLATION);
            assert_false(t.echo.client.info.application);
            assert_int_equal(t.echo.client.connected, 0);
            leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
        } else {
            answers_come(5 * LEAT_SECOND, STREAM_SIZE);
            close_it();
        }
        finish();
    }
}

static void parameters_that_may_not_be_remembered_are_not(void **state)
{
    leat_session session;

    (void)state;
    prepare();
    t.echo.setup.server.conn.max_ack_delay = 77 * LEAT_MILLISECOND;
    first_connection();
    assert_true(leat_session_decode(t.echo.pair.session, &session));
    assert_int_equal(session.params.max_ack_delay, 25);
    assert_int_equal(session.params.ack_delay_exponent, 3);
    assert_int_equal(session.params.present, LEAT_TP_reset_stream_at);
    assert_int_equal(session.params.initial_scid.len, 0);
    connect_and_ask(1);
    assert_int_equal(t.echo.pair.conn->loss.max_ack_delay, 25 * LEAT_MILLISECOND);
    assert_false(t.echo.pair.conn->remote_cids.entry[0].has_token);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_int_equal(t.echo.pair.conn->loss.max_ack_delay, 77 * LEAT_MILLISECOND);
    assert_true(t.echo.pair.conn->remote_cids.entry[0].has_token);
    close_it();
    finish();
}

static void early_data_goes_on_after_a_retry(void **state)
{
    leat_time from;

    (void)state;
    begin();
    t.echo.setup.server.conn.wait_for_validation = true;
    another_server(t.shared);
    connect_and_ask(STREAMS);
    from = t.echo.pair.now;
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_int_equal(answered_at - from, 4 * t.echo.pair.delay);
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
    close_it();
    finish();
}

static void version_negotiation_rejects(void **state)
{
    (void)state;
    begin();
    t.echo.setup.server.conn.versions[0] = LEAT_QUIC_V2;
    t.echo.setup.server.conn.version_count = 1;
    another_server(t.shared);
    connect_and_ask(STREAMS);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    rejected();
    assert_int_equal(leat_conn_version(t.echo.client.conn), LEAT_QUIC_V2);
    close_it();
    finish();
}

/* RFC 9369 s5: the same client, that begins with another version than its ticket is of. */
static void a_ticket_of_another_version_is_not_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        static uint8_t blob[sizeof(t.session) + 1024];
        leat_session session;

        prepare();
        if (i == 1) {
            t.echo.setup.server.conn.versions[0] = LEAT_QUIC_V2;
            t.echo.setup.server.conn.versions[1] = LEAT_QUIC_V1;
        }
        first_connection();
        assert_true(leat_session_decode(t.echo.pair.session, &session));
        assert_int_equal(session.version, i == 1 ? LEAT_QUIC_V2 : LEAT_QUIC_V1);
        session.version ^= LEAT_QUIC_V1 ^ LEAT_QUIC_V2;
        session.early = false;
        t.echo.pair.session = (leat_span){blob, leat_session_encode(&session, blob, sizeof(blob))};
        t.echo.setup.server.conn.versions[0] = session.version;
        t.echo.setup.server.conn.versions[1] = LEAT_QUIC_V1 ^ LEAT_QUIC_V2 ^ session.version;
        another_server(t.shared);
        connect_again();
        assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
        assert_int_equal(leat_conn_version(t.echo.client.conn), session.version);
        assert_false(leat_conn_resumed(t.echo.client.conn));
        assert_false(leat_conn_resumed(t.echo.server.conn));
        close_it();
        finish();
    }
}

/* A client that has streams may close and reset them before anybody has answered. */
static void early_streams_may_be_reset_and_the_connection_closed(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        begin();
        if (i % 2) {
            t.echo.setup.server.conn.early_data = false;
            another_server(t.shared);
        }
        connect_and_ask(STREAMS);
        if (i < 2) {
            for (size_t k = 0; k < open_count; k++) {
                leat_stream_reset(asked[k].stream, 5);
                leat_stream_stop(asked[k].stream, 6);
            }
            assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
            leat_echo_settle(&t.echo, LEAT_SECOND);
            leat_conn_check(t.echo.pair.conn);
            close_it();
        } else {
            leat_pair_step(&t.echo.pair, t.echo.pair.now + LEAT_MILLISECOND);
            leat_conn_close(t.echo.pair.conn, 0, (leat_span){NULL, 0});
            leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
            assert_int_equal(t.echo.client.closed, 1);
        }
        finish();
    }
}

static bool early_was_told(void *arg)
{
    (void)arg;
    return t.early_told > 0;
}

/* RFC 9000 s12.4, s12.5. */
static void frames_that_0rtt_may_not_carry_close(void **state)
{
    static const struct {
        uint8_t bytes[12];
        size_t len;
    } frames[] = {
        {{0x02, 0, 0, 0, 0}, 5},             /* ACK */
        {{0x06, 0, 1, 'x'}, 4},              /* CRYPTO */
        {{0x07, 1, 'x'}, 3},                 /* NEW_TOKEN */
        {{0x19, 0}, 2},                      /* RETIRE_CONNECTION_ID */
        {{0x1b, 1, 2, 3, 4, 5, 6, 7, 8}, 9}, /* PATH_RESPONSE */
        {{0x1e}, 1},                         /* HANDSHAKE_DONE */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        uint8_t payload[40] = {0};

        begin();
        connect_and_ask(1);
        assert_true(leat_pair_run(&t.echo.pair, early_was_told, NULL, LEAT_SECOND));
        memcpy(payload, frames[i].bytes, frames[i].len);
        leat_forge(&t.echo.pair, t.echo.pair.conn, payload, sizeof(payload));
        leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
        assert_int_equal(t.echo.server.closed, 1);
        assert_int_equal(t.echo.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
        finish();
    }
}

static bool hold_initials(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    recorder(pair, to_server, data, len);
    return false;
}

/* 0-RTT that comes before the ClientHello is whole waits, up to a limit. */
static void a_flood_of_0rtt_before_the_client_hello_is_capped(void **state)
{
    static const uint8_t part[] = {0x06, 0, 4, 1, 0, 2, 0}; /* CRYPTO: the head of a ClientHello */
    leat_conn *server;

    (void)state;
    begin();
    t.record = true;
    t.echo.pair.filter = hold_initials;
    connect_and_ask(STREAMS);
    leat_pair_step(&t.echo.pair, t.echo.pair.now + LEAT_MILLISECOND);
    t.echo.pair.now += t.echo.pair.delay;
    leat_pair_step(&t.echo.pair, t.echo.pair.now);
    assert_true(t.recorded >= 3);
    leat_forge_in(&t.echo.pair, t.echo.pair.conn, LEAT_SPACE_INITIAL, part, sizeof(part));
    leat_ctx_turn(t.echo.pair.ctx, t.echo.pair.now);
    server = LEAT_CONTAINER_OF(leat_list_first(&t.echo.pair.server->conns), leat_conn, host_link);
    for (int i = 0; i < 100; i++) { /* the second holds nothing but 0-RTT */
        leat_pair_inject(&t.echo.pair, true, t.record_of[1].data, t.record_of[1].len);
    }
    leat_ctx_turn(t.echo.pair.ctx, t.echo.pair.now);
    assert_int_equal(server->hs->early_count, LEAT_EARLY_PACKETS_MAX);
    assert_int_equal(server->budget.by[LEAT_BUDGET_PACKETS],
                     LEAT_EARLY_PACKETS_MAX * t.record_of[1].len);
    leat_conn_check(server);
    t.echo.pair.filter = NULL;
    leat_echo_settle(&t.echo, 60 * LEAT_SECOND);
    finish();
}

/* Of leat's own memory: TLS asks for its own during a handshake. */
static void warm_connections_with_early_data_take_no_more_memory(void **state)
{
    leat_mem_stats warm, last;

    (void)state;
    begin();
    for (int i = 0; i < 40; i++) {
        connect_and_ask(STREAMS);
        answers_come(5 * LEAT_SECOND, STREAM_SIZE);
        assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_ACCEPTED);
        leat_echo_settle(&t.echo, LEAT_SECOND);
        close_it();
        t.echo.pair.session = (leat_span){t.session, t.session_len};
        leat_mem_stats_get(leat_ctx_mem(t.echo.pair.ctx), i < 10 ? &warm : &last);
    }
    assert_int_equal(last.grown, warm.grown);
    assert_int_equal(last.system, warm.system);
    finish();
}

/* One take after the other fails: a connection or a stream may come to nothing, and that is all. */
static void short_of_memory_nothing_breaks(void **state)
{
    (void)state;
    for (uint64_t nth = 1, hits = 1; hits > 0; nth++) {
        leat_mem *mem;
        leat_connect how;
        leat_err err;

        begin();
        t.echo.setup.server.conn.early_data = nth % 2;
        another_server(t.shared);
        memset(&t.echo.client, 0, sizeof(t.echo.client));
        memset(&t.echo.server, 0, sizeof(t.echo.server));
        how = (leat_connect){.remote = t.echo.pair.server_addr,
                             .local = t.echo.pair.client_addr,
                             .server_name = "localhost",
                             .tls = t.echo.pair.client_tls,
                             .settings = &t.echo.setup.conn,
                             .session = t.echo.pair.session,
                             .events = &leat_echo_client_events,
                             .user = &t.echo.client};
        mem = leat_ctx_mem(t.echo.pair.ctx);
        t.echo.pair.memory_fails = true;
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, nth, false);
        err = leat_conn_connect(t.echo.pair.client, &how, &t.echo.pair.conn);
        assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
        for (int i = 0; err == LEAT_OK && i < 3; i++) {
            leat_stream *stream;
            size_t written;

            if (leat_stream_open(t.echo.pair.conn, true, &stream) == LEAT_OK &&
                leat_stream_write(stream, "early", 5, &written) == LEAT_OK) {
                leat_stream_finish(stream);
            }
        }
        leat_echo_settle(&t.echo, 2 * LEAT_SECOND);
        hits = leat_mem_fault_count(mem);
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
        leat_echo_settle(&t.echo, 90 * LEAT_SECOND); /* the idle timeout ends what is left */
        assert_int_equal(leat_endpoint_conns(t.echo.pair.client), 0);
        assert_int_equal(leat_endpoint_conns(t.echo.pair.server), 0);
        leat_mem_check(mem);
        finish();
    }
}

/* ---- a bad network ---- */

static bool lose(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    if (leat_prng_below(&t.prng, 100) < t.repeat_percent) {
        leat_pair_inject(pair, to_server, data, *len);
    }
    pair->delay = (1 + leat_prng_below(&t.prng, 20)) * LEAT_MILLISECOND; /* of what is sent next */
    return leat_prng_below(&t.prng, 100) >= t.loss_percent;
}

static void early_data_arrives_once_through_loss_and_disorder(void **state)
{
    const char *seed_text = getenv("LEAT_TEST_SEED");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20261130;

    (void)state;
    for (int i = 0; i < 60; i++) {
        begin();
        if (i % 3 == 1) {
            t.echo.setup.server.conn.early_data = false;
            another_server(t.shared);
        } else if (i % 3 == 2) {
            t.echo.setup.server.conn.wait_for_validation = true;
            another_server(t.shared);
        }
        leat_prng_seed(&t.prng, seed + (uint64_t)i);
        t.loss_percent = 25;
        t.repeat_percent = 15;
        t.echo.setup.conn.handshake_timeout = 60 * LEAT_SECOND;
        t.echo.pair.filter = lose;
        connect_and_ask(STREAMS);
        if (!leat_pair_run(&t.echo.pair, all_answered, NULL, 60 * LEAT_SECOND) ||
            t.echo.client.closed) {
            print_message("run %d, replay with LEAT_TEST_SEED=%llu\n", i, (unsigned long long)seed);
        }
        answers_come(0, STREAM_SIZE);
        leat_conn_check(t.echo.client.conn);
        t.echo.pair.filter = NULL;
        close_it();
        finish();
    }
}

static unsigned dropped;

static void on_datagram_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome,
                             void *user)
{
    (void)conn, (void)user;
    dropped += tag == 7 && outcome == LEAT_DATAGRAM_DROPPED;
}

/* RFC 9221 s3: not even an empty one. What was queued on the word of the last connection waits
 * until the server that rejects 0-RTT has said that it takes none. */
static void datagrams_of_rejected_early_data_are_dropped_where_none_are_taken(void **state)
{
    static const uint8_t data[1000];
    leat_datagram_options options = {.notify = true, .tag = 7};
    unsigned queued = 0;

    (void)state;
    dropped = 0;
    prepare();
    t.client_events.datagram_done = on_datagram_done;
    t.echo.setup.server.conn.max_datagram_frame_size = 65535;
    first_connection();
    t.echo.setup.server.conn.early_data = false;
    t.echo.setup.server.conn.max_datagram_frame_size = 0;
    another_server(t.shared);
    connect_again();
    while (queued < 20) { /* more than the first window */
        assert_int_equal(
            leat_conn_send_datagram(t.echo.pair.conn, (leat_span){data, sizeof(data)}, NULL),
            LEAT_OK);
        queued++;
    }
    assert_int_equal(leat_conn_send_datagram(t.echo.pair.conn, (leat_span){NULL, 0}, &options),
                     LEAT_OK);
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, LEAT_SECOND));
    leat_echo_settle(&t.echo, LEAT_SECOND);
    assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_REJECTED);
    assert_int_equal(t.echo.server.closed, 0);
    assert_int_equal(t.echo.client.closed, 0);
    assert_int_equal(dropped, 1);
    assert_false(leat_datagrams_wait(&t.echo.pair.conn->datagrams));
    close_it();
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_data_is_answered_within_one_round_trip),
        cmocka_unit_test(every_version_and_cipher_carries_early_data),
        cmocka_unit_test(rejected_early_data_is_sent_again_once),
        cmocka_unit_test(an_ack_of_rejected_early_data_closes),
        cmocka_unit_test(rejected_with_lower_limits_the_rest_waits),
        cmocka_unit_test(a_ticket_is_good_for_early_data_once),
        cmocka_unit_test(repeated_early_data_is_not_taken_again),
        cmocka_unit_test(accepted_early_data_with_lower_limits_is_a_violation),
        cmocka_unit_test(parameters_that_may_not_be_remembered_are_not),
        cmocka_unit_test(early_data_goes_on_after_a_retry),
        cmocka_unit_test(version_negotiation_rejects),
        cmocka_unit_test(a_ticket_of_another_version_is_not_taken),
        cmocka_unit_test(early_streams_may_be_reset_and_the_connection_closed),
        cmocka_unit_test(frames_that_0rtt_may_not_carry_close),
        cmocka_unit_test(a_flood_of_0rtt_before_the_client_hello_is_capped),
        cmocka_unit_test(warm_connections_with_early_data_take_no_more_memory),
        cmocka_unit_test(short_of_memory_nothing_breaks),
        cmocka_unit_test(datagrams_of_rejected_early_data_are_dropped_where_none_are_taken),
        cmocka_unit_test(early_data_arrives_once_through_loss_and_disorder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
