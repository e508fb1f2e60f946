/* tests/unit/conn/test_version.c: which version of QUIC a client and a server agree on, and what
 * they do when somebody on the path lies about it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "echo.h"
#include "forge.h"

#define UNKNOWN BYTES(0x21, 0, 0, 0) /* a frame that closes whoever reads it */

static leat_echo e;
static unsigned handshake_v1, handshake_v2, negotiations;

/* Counts long headers by version, coalesced ones too. */
static bool watch(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair, (void)to_server;
    for (size_t at = 0; at < *len && leat_header_parse(data + at, *len - at, 8, &header) == LEAT_OK;
         at += header.packet_len) {
        handshake_v1 += header.type == LEAT_PACKET_HANDSHAKE && header.version == LEAT_QUIC_V1;
        handshake_v2 += header.type == LEAT_PACKET_HANDSHAKE && header.version == LEAT_QUIC_V2;
        negotiations += header.type == LEAT_PACKET_VERSION_NEGOTIATION;
    }
    return true;
}

static void begin(leat_pair_filter *filter)
{
    handshake_v1 = handshake_v2 = negotiations = 0;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = filter;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
}

static void works_in(uint32_t version)
{
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    assert_int_equal(leat_conn_version(e.pair.conn), version);
    assert_int_equal(leat_conn_version(e.server.conn), version);
    leat_echo_bytes(&e, 50000, 5 * LEAT_SECOND);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

static void prefer(leat_conn_settings *settings, uint32_t first, uint32_t second)
{
    settings->versions[0] = first;
    settings->versions[1] = second;
    settings->version_count = second ? 2 : 1;
}

static void version_1_is_what_both_begin_with(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    begin(watch);
    works_in(LEAT_QUIC_V1);
    assert_int_equal(handshake_v2, 0);
}

/* The interop case v2: starts in 1, the server picks 2, all Handshake packets are of version 2. */
static void a_server_that_prefers_2_moves_the_client(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, LEAT_QUIC_V1);
    begin(watch);
    works_in(LEAT_QUIC_V2);
    assert_int_equal(handshake_v1, 0);
    assert_true(handshake_v2 > 0);
    assert_int_equal(negotiations, 0);
}

static void after_a_retry_too(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, LEAT_QUIC_V1);
    e.setup.server.conn.wait_for_validation = true;
    begin(watch);
    works_in(LEAT_QUIC_V2);
}

static void version_2_from_the_start(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.version = LEAT_QUIC_V2;
    begin(watch);
    /* The server's order begins with 1: compatible, so it moves the client there. */
    works_in(LEAT_QUIC_V1);
    leat_echo_prepare(&e);
    prefer(&e.setup.conn, LEAT_QUIC_V2, 0);
    begin(watch);
    works_in(LEAT_QUIC_V2);
}

static void version_2_with_a_retry(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.conn, LEAT_QUIC_V2, 0);
    e.setup.server.conn.wait_for_validation = true;
    begin(watch);
    works_in(LEAT_QUIC_V2);
}

static void a_version_not_spoken_is_negotiated(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, 0);
    prefer(&e.setup.conn, LEAT_QUIC_V1, LEAT_QUIC_V2);
    begin(watch);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    assert_int_equal(negotiations, 1);
    works_in(LEAT_QUIC_V2);
}

/* ---- a client that begins again has its timers begin again (RFC 9002 s6.3) ---- */

static unsigned to_lose, retries;

static bool lose_at_first(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    retries +=
        leat_header_parse(data, *len, 8, &header) == LEAT_OK && header.type == LEAT_PACKET_RETRY;
    return watch(pair, to_server, data, len) && (!to_server || to_lose == 0 || to_lose-- == 0);
}

static bool is_told_to_begin_again(void *arg)
{
    (void)arg;
    return negotiations + retries > 0;
}

/* Probes have been lost before, and so is the first packet of the new beginning. */
static void begins_again_soon(void)
{
    e.setup.conn.handshake_timeout = e.setup.server.conn.handshake_timeout = 60 * LEAT_SECOND;
    e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = 60 * LEAT_SECOND;
    retries = 0;
    to_lose = 7;
    begin(lose_at_first);
    assert_true(leat_pair_run(&e.pair, is_told_to_begin_again, NULL, 20 * LEAT_SECOND));
    assert_int_equal(e.pair.conn->loss.pto_total, 4);
    to_lose = 1;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 2 * LEAT_SECOND));
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

static void another_version_begins_the_timers_again(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, 0);
    prefer(&e.setup.conn, LEAT_QUIC_V1, LEAT_QUIC_V2);
    begins_again_soon();
    assert_true(negotiations > 0);
}

static void a_retry_begins_the_timers_again(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = true;
    begins_again_soon();
    assert_true(retries > 0);
}

static void no_version_in_common_ends_it(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, 0);
    prefer(&e.setup.conn, LEAT_QUIC_V1, 0);
    begin(watch);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_VERSION);
    leat_pair_free(&e.pair);
}

/* Loss in the first flights: the client may see the server's Handshake packets before its Initial.
 */
static unsigned noise;

static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    noise = noise * 1103515245 + 12345;
    return (noise >> 16) % 100 >= 25;
}

static void the_move_survives_loss(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        leat_echo_prepare(&e);
        prefer(&e.setup.server.conn, LEAT_QUIC_V2, LEAT_QUIC_V1);
        e.setup.conn.handshake_timeout = e.setup.server.conn.handshake_timeout = 60 * LEAT_SECOND;
        e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = 60 * LEAT_SECOND;
        noise = seed;
        begin(drop_some);
        if (!leat_pair_run(&e.pair, leat_echo_both_connected, &e, 60 * LEAT_SECOND)) {
            fail_msg("no handshake with seed %u", seed);
        }
        assert_int_equal(leat_conn_version(e.pair.conn), LEAT_QUIC_V2);
        e.pair.filter = NULL;
        leat_echo_finish(&e);
    }
}

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

#define PING   BYTES(0x01, 0, 0, 0)
#define CRYPTO BYTES(0x06, 0, 1, 0x02) /* a ServerHello's first byte */

/* Under the keys of a version an Initial of the server's. */
static void server_sends_an_initial_of(uint32_t version, uint64_t number, const uint8_t *payload,
                                       size_t len)
{
    leat_conn *client = e.pair.conn;
    leat_key_cache *cache = client->host->shared->keys;
    leat_cid scid = {.len = 8, .data = {9, 8, 7, 6, 5, 4, 3, 2}};
    leat_packet_keys theirs, ours;

    leat_packet_keys_init(&theirs);
    leat_packet_keys_init(&ours);
    leat_packet_keys_initial(&theirs, &ours, leat_schedule_for(version), client->odcid.data,
                             client->odcid.len);
    leat_forge_initial(
        &e.pair, client,
        &(leat_forge_odd){
            .keys = &ours, .version = version, .number = &number, .scid = &scid, .back = true},
        payload, len);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
    leat_packet_keys_drop(&theirs, cache);
    leat_packet_keys_drop(&ours, cache);
}

/* RFC 9368 s2.3, RFC 9369 s4.1: a client is moved once, by the server's first packet of another
 * version. What comes in the former one is read, and moves nobody back. */
static void a_client_is_moved_once(void **state)
{
    leat_conn *client;

    (void)state;
    leat_echo_prepare(&e);
    begin(nothing_passes);
    client = e.pair.conn;
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
    assert_int_equal(client->version, LEAT_QUIC_V1);
    server_sends_an_initial_of(LEAT_QUIC_V2, 0, PING);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    assert_int_equal(client->count.packets_received, 1);
    server_sends_an_initial_of(LEAT_QUIC_V1, 1, PING);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    assert_int_equal(client->count.packets_received, 2);
    leat_pair_free(&e.pair);
}

/* With its first CRYPTO the server has decided: what comes in another version after that is not
 * from it. */
static void a_client_is_not_moved_after_the_servers_first_crypto(void **state)
{
    leat_conn *client;

    (void)state;
    leat_echo_prepare(&e);
    begin(nothing_passes);
    client = e.pair.conn;
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
    server_sends_an_initial_of(LEAT_QUIC_V1, 0, CRYPTO);
    assert_int_equal(client->count.packets_received, 1);
    server_sends_an_initial_of(LEAT_QUIC_V2, 1, PING);
    assert_int_equal(client->version, LEAT_QUIC_V1);
    assert_int_equal(client->count.packets_received, 1);
    assert_int_equal(e.client.closed, 0);
    leat_pair_free(&e.pair);
}

/* RFC 9369 s4.1: Handshake packets of another version are dropped, good keys or not. */
static void handshake_packets_of_another_version_are_dropped(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    begin(leat_pair_initials_to_server);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_connected, &e, LEAT_SECOND));
    server = leat_echo_server_conn(&e);
    leat_forge_odd_in(&e.pair, server, LEAT_SPACE_HANDSHAKE,
                      &(leat_forge_odd){.version = LEAT_QUIC_V2}, UNKNOWN);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
    assert_int_equal(e.client.closed, 0);
    leat_forge_odd_in(&e.pair, server, LEAT_SPACE_HANDSHAKE, &(leat_forge_odd){0}, UNKNOWN);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    assert_int_equal(e.client.info.code, LEAT_TE_FRAME_ENCODING_ERROR);
    leat_pair_free(&e.pair);
}

/* ---- lies ---- */

/* Somebody answers the client's first Initial with a Version Negotiation packet that hides
 * version 1. */
static bool lie(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    static const uint32_t only_2[] = {LEAT_QUIC_V2};
    uint8_t packet[100];
    leat_header header;
    leat_writer w;

    (void)len;
    if (!to_server || negotiations > 0) {
        return true;
    }
    negotiations++;
    assert_int_equal(leat_header_parse(data, *len, 8, &header), LEAT_OK);
    leat_writer_init(&w, packet, sizeof(packet));
    assert_true(
        leat_header_write_version_negotiation(&w, header.scid, header.dcid, only_2, 1, 0, 0));
    leat_pair_inject(pair, false, packet, leat_writer_len(&w));
    return false;
}

static void a_downgrade_is_noticed(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    /* Both prefer 1; the forger makes the client begin again with 2. */
    prefer(&e.setup.server.conn, LEAT_QUIC_V2, LEAT_QUIC_V1);
    begin(lie);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(e.client.info.code, LEAT_TE_VERSION_NEGOTIATION_ERROR);
    e.pair.filter = NULL;
    leat_echo_settle(&e, LEAT_SECOND);
    leat_pair_free(&e.pair);
}

/* What the server says of its versions must explain what this client saw (RFC 9368 s4, s8). */
static void a_servers_word_must_explain_what_the_client_saw(void **state)
{
    static const struct row {
        uint32_t version, original; /* in use now; of the first Initial that was answered */
        bool renegotiated, says;
        uint32_t chosen, available[2];
        bool good;
    } rows[] = {
        /* Servers that know nothing of it speak version 1 alone, also after they have said so in a
         * Version Negotiation packet. */
        {LEAT_QUIC_V1, LEAT_QUIC_V1, false, false, 0, {0}, true},
        {LEAT_QUIC_V1, LEAT_QUIC_V1, true, false, 0, {0}, true},
        {LEAT_QUIC_V2, LEAT_QUIC_V2, false, false, 0, {0}, false},
        {LEAT_QUIC_V2, LEAT_QUIC_V2, true, false, 0, {0}, false},
        {LEAT_QUIC_V2, LEAT_QUIC_V1, false, false, 0, {0}, false},
        {LEAT_QUIC_V1, LEAT_QUIC_V2, false, false, 0, {0}, false},
        /* Those that do. The client prefers 1. */
        {LEAT_QUIC_V1, LEAT_QUIC_V1, false, true, LEAT_QUIC_V1, {LEAT_QUIC_V1}, true},
        {LEAT_QUIC_V2, LEAT_QUIC_V1, false, true, LEAT_QUIC_V2, {LEAT_QUIC_V2, LEAT_QUIC_V1}, true},
        {LEAT_QUIC_V1, LEAT_QUIC_V1, false, true, LEAT_QUIC_V2, {LEAT_QUIC_V1}, false},
        {LEAT_QUIC_V2, LEAT_QUIC_V2, true, true, LEAT_QUIC_V2, {LEAT_QUIC_V2}, true},
        {LEAT_QUIC_V2, LEAT_QUIC_V2, true, true, LEAT_QUIC_V2, {LEAT_QUIC_V2, LEAT_QUIC_V1}, false},
        /* The version in use counts as available; but to have negotiated, and to name none, is
         * wrong. */
        {LEAT_QUIC_V2, LEAT_QUIC_V2, true, true, LEAT_QUIC_V2, {0x1a2a3a4a}, true},
        {LEAT_QUIC_V1, LEAT_QUIC_V1, true, true, LEAT_QUIC_V1, {LEAT_QUIC_V2}, true},
        {LEAT_QUIC_V1, LEAT_QUIC_V2, true, true, LEAT_QUIC_V1, {LEAT_QUIC_V2}, false},
        {LEAT_QUIC_V2, LEAT_QUIC_V2, true, true, LEAT_QUIC_V2, {0}, false},
        {LEAT_QUIC_V1, LEAT_QUIC_V1, true, true, LEAT_QUIC_V1, {0}, false},
        {LEAT_QUIC_V1, LEAT_QUIC_V1, false, true, LEAT_QUIC_V1, {0}, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        static leat_handshake hs;
        static leat_conn conn;
        static leat_conn_settings settings;
        uint8_t list[8];
        leat_tparams params;
        const char *why = NULL;
        bool changed = true;
        uint64_t error;

        conn.hs = &hs;
        conn.version = r->version;
        hs.version.original = r->original;
        hs.version.renegotiated = r->renegotiated;
        conn.settings = &settings;
        prefer(&settings, LEAT_QUIC_V1, LEAT_QUIC_V2);
        leat_tparams_init(&params);
        if (r->says) {
            leat_store_u32(list, r->available[0]);
            leat_store_u32(list + 4, r->available[1]);
            params.version_information.chosen = r->chosen;
            params.version_information.available = (leat_span){list, r->available[1]   ? 8
                                                                     : r->available[0] ? 4
                                                                                       : 0};
            params.present |= LEAT_TP_version_information;
        }
        error = leat_version_on_params(&conn, &params, &changed, &why);
        if (error != (r->good ? LEAT_TE_NO_ERROR : LEAT_TE_VERSION_NEGOTIATION_ERROR)) {
            fail_msg("row %zu: error %llu", i, (unsigned long long)error);
        }
        assert_int_equal(why == NULL, r->good);
        assert_false(changed);
    }
}

/* A client's Chosen Version is that of its packets (RFC 9368 s4). */
static void a_clients_word_must_be_what_its_packets_say(void **state)
{
    static const uint8_t list[] = {0, 0, 0, 1};

    (void)state;
    leat_echo_prepare(&e);
    for (unsigned good = 0; good < 2; good++) {
        static leat_handshake hs;
        static leat_conn conn;
        leat_conn_settings settings = e.setup.server.conn;
        leat_tparams params;
        const char *why = NULL;
        bool changed = false;

        prefer(&settings, LEAT_QUIC_V1, LEAT_QUIC_V2);
        conn = (leat_conn){.hs = &hs, .settings = &settings, .is_server = true};
        conn.version = hs.version.original = good ? LEAT_QUIC_V1 : LEAT_QUIC_V2;
        leat_tparams_init(&params);
        params.version_information.chosen = LEAT_QUIC_V1;
        params.version_information.available = (leat_span){list, sizeof(list)};
        params.present |= LEAT_TP_version_information;
        assert_int_equal(leat_version_on_params(&conn, &params, &changed, &why),
                         good ? LEAT_TE_NO_ERROR : LEAT_TE_VERSION_NEGOTIATION_ERROR);
        assert_int_equal(why == NULL, good);
    }
}

static void bad_version_settings_are_refused(void **state)
{
    leat_endpoint_settings settings;
    leat_conn *conn;
    leat_connect how;
    leat_conn_settings s;

    (void)state;
    leat_echo_prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
    leat_endpoint_settings_init(&settings);
    leat_conn_settings_init(&s);
    how = (leat_connect){.remote = e.pair.server_addr,
                         .server_name = "localhost",
                         .tls = e.pair.client_tls,
                         .settings = &s};
    s.version_count = 0;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &conn), LEAT_ERR_INVALID);
    s.version_count = LEAT_VERSIONS_MAX + 1;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &conn), LEAT_ERR_INVALID);
    s.version_count = 1;
    s.versions[0] = 0x12345678;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &conn), LEAT_ERR_INVALID);
    /* There are no keys for its Initial: this was taken, and crashed. */
    s.versions[0] = LEAT_QUIC_V1;
    s.version = 0x1a2a3a4a;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &conn), LEAT_ERR_INVALID);
    leat_pair_free(&e.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1_is_what_both_begin_with),
        cmocka_unit_test(a_server_that_prefers_2_moves_the_client),
        cmocka_unit_test(after_a_retry_too),
        cmocka_unit_test(version_2_from_the_start),
        cmocka_unit_test(version_2_with_a_retry),
        cmocka_unit_test(a_version_not_spoken_is_negotiated),
        cmocka_unit_test(another_version_begins_the_timers_again),
        cmocka_unit_test(a_retry_begins_the_timers_again),
        cmocka_unit_test(no_version_in_common_ends_it),
        cmocka_unit_test(the_move_survives_loss),
        cmocka_unit_test(a_client_is_moved_once),
        cmocka_unit_test(a_client_is_not_moved_after_the_servers_first_crypto),
        cmocka_unit_test(handshake_packets_of_another_version_are_dropped),
        cmocka_unit_test(a_downgrade_is_noticed),
        cmocka_unit_test(a_servers_word_must_explain_what_the_client_saw),
        cmocka_unit_test(a_clients_word_must_be_what_its_packets_say),
        cmocka_unit_test(bad_version_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
