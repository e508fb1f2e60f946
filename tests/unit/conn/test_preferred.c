/* tests/unit/conn/test_preferred.c: the server's preferred address, and clients that follow there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "conn/migrate.h"
#include "crypto/token.h"
#include "echo.h"
#include "forge.h"

#define PROBE_SIZE 1200 /* what path validation is padded to; nothing else here has this size */

static leat_echo e;
static const leat_addr preferred = {.family = 4, .port = 4444, .ip = {10, 0, 0, 3}};
static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};
static const leat_addr victim = {.family = 4, .port = 9, .ip = {203, 0, 113, 9}};

/* ---- the network ---- */

static struct {
    bool dark;          /* nothing passes to or from the preferred address */
    bool new_is_dark;   /* nor between there and `elsewhere` */
    unsigned loss;      /* percent of what passes */
    size_t to, from;    /* datagrams to the preferred address, and from there */
    size_t from_others; /* of those from there: no probes */
    size_t probes_let;  /* probes that reach it; more are lost */
    size_t probes_to;
    leat_cid first_dcid; /* of the first datagram there */
    leat_prng prng;
} net;

static bool passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    bool to = leat_addr_equal(&pair->to, &preferred);
    bool from = leat_addr_equal(&pair->from, &preferred);

    (void)to_server;
    if (to && net.to++ == 0) {
        leat_cid_set(&net.first_dcid, data + 1, 8);
    }
    net.from += from;
    net.from_others += from && *len != PROBE_SIZE;
    if (to && *len == PROBE_SIZE && net.probes_to++ >= net.probes_let) {
        return false;
    }
    if ((to || from) &&
        (net.dark || (net.new_is_dark && (leat_addr_equal(&pair->from, &elsewhere) ||
                                          leat_addr_equal(&pair->to, &elsewhere))))) {
        return false;
    }
    return net.loss == 0 || leat_prng_u64(&net.prng) % 100 >= net.loss;
}

static void prepare(void)
{
    memset(&net, 0, sizeof(net));
    net.probes_let = SIZE_MAX;
    leat_echo_prepare(&e);
    e.setup.server.preferred_ip4 = preferred;
}

static void begin(void)
{
    leat_echo_begin(&e);
    e.pair.filter = passes;
}

static bool confirmed(void *arg)
{
    (void)arg;
    return e.pair.conn->confirmed && e.server.connected;
}

static void connect(void)
{
    begin();
    assert_true(leat_pair_run(&e.pair, confirmed, NULL, 30 * LEAT_SECOND));
}

static void connect_and_settle(void)
{
    connect();
    leat_echo_settle(&e, LEAT_SECOND);
}

static bool client_is_there(void)
{
    return leat_addr_equal(leat_conn_remote(e.pair.conn), &preferred);
}

static bool server_is_there(void)
{
    return leat_addr_equal(leat_conn_local(e.server.conn), &preferred);
}

static void check_and_finish(void)
{
    leat_conn_check(e.pair.conn);
    leat_conn_check(e.server.conn);
    leat_echo_finish(&e);
}

/* ---- following ---- */

static void a_client_follows(void **state)
{
    leat_cid before;
    size_t to_original;
    leat_conn_stats_data stats;

    (void)state;
    prepare();
    connect();
    before = *leat_remote_cids_current(&e.pair.conn->remote_cids);
    assert_false(client_is_there());
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(client_is_there());
    leat_echo_bytes(&e, 300000, 10 * LEAT_SECOND);
    assert_true(server_is_there());
    assert_true(leat_paths_active(&e.pair.conn->paths)->validated);
    assert_true(leat_paths_active(&e.server.conn->paths)->validated);
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &e.pair.client_addr));
    /* With the connection ID that came with the address. */
    assert_true(leat_cid_equal(&net.first_dcid, &e.server.conn->local_cids.entry[1].cid));
    assert_int_equal(e.pair.conn->remote_cids.entry[e.pair.conn->remote_cids.current].sequence, 1);
    assert_false(leat_cid_equal(&before, leat_remote_cids_current(&e.pair.conn->remote_cids)));
    leat_conn_stats(e.pair.conn, &stats);
    assert_int_equal(stats.migrations, 1);
    leat_conn_stats(e.server.conn, &stats);
    assert_int_equal(stats.migrations, 1);
    /* The original address is left, by both. */
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    to_original = e.pair.datagrams[1] - net.to;
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_int_equal(e.pair.datagrams[1] - net.to, to_original);
    check_and_finish();
}

static void a_client_follows_where_it_speaks_ipv6(void **state)
{
    static const leat_addr there = {
        .family = 6, .port = 4444, .ip = {0x20, 1, 0xd, 0xb8, [15] = 3}};

    (void)state;
    prepare();
    e.setup.server.preferred_ip6 = there;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.server_addr =
        (leat_addr){.family = 6, .port = 4433, .ip = {0x20, 1, 0xd, 0xb8, [15] = 2}};
    e.pair.client_addr =
        (leat_addr){.family = 6, .port = 1234, .ip = {0x20, 1, 0xd, 0xb8, [15] = 1}};
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, confirmed, NULL, LEAT_SECOND));
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(e.pair.conn), &there));
    assert_true(leat_addr_equal(leat_conn_local(e.server.conn), &there));
    check_and_finish();
}

static void a_client_follows_in_the_middle_of_a_transfer(void **state)
{
    (void)state;
    for (uint8_t seed = 1; seed <= 20; seed++) {
        prepare();
        net.loss = 20;
        leat_prng_seed(&net.prng, seed);
        e.setup.seed = seed;
        begin();
        assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 30 * LEAT_SECOND));
        leat_echo_bytes(&e, 300000, 300 * LEAT_SECOND);
        net.loss = 0;
        /* What was lost of the server's validation is given up, and begins anew. */
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        leat_echo_bytes(&e, 10000, 60 * LEAT_SECOND);
        leat_echo_settle(&e, LEAT_SECOND);
        leat_conn_check(e.pair.conn);
        leat_conn_check(e.server.conn);
        /* Where one is the other is, whether or not the validation got through. */
        assert_int_equal(client_is_there(), server_is_there());
        leat_echo_finish(&e);
    }
}

/* A Retry and another version have the parameters made twice, with one connection ID. */
static void a_client_follows_after_a_retry_and_a_change_of_version(void **state)
{
    (void)state;
    prepare();
    e.setup.server.conn.wait_for_validation = true;
    e.setup.server.conn.versions[0] = LEAT_QUIC_V2;
    e.setup.server.conn.versions[1] = LEAT_QUIC_V1;
    connect_and_settle();
    assert_int_equal(leat_conn_version(e.pair.conn), LEAT_QUIC_V2);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_true(client_is_there() && server_is_there());
    check_and_finish();
}

static void no_more_ids_are_given_out_than_the_client_takes(void **state)
{
    size_t held = 0;

    (void)state;
    prepare();
    net.dark = true;
    connect_and_settle();
    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        held += e.server.conn->local_cids.entry[i].state != LEAT_CID_FREE;
    }
    assert_int_equal(held, LEAT_REMOTE_CIDS_MAX);
    assert_int_equal(e.server.conn->local_cids.next_sequence, LEAT_REMOTE_CIDS_MAX);
    check_and_finish();
}

/* The token that came with the connection ID is good for it. */
static void a_server_that_forgot_resets_the_connection(void **state)
{
    uint8_t reset[60] = {0x41};
    const leat_cid *cid;

    (void)state;
    prepare();
    connect_and_settle();
    cid = leat_remote_cids_current(&e.pair.conn->remote_cids);
    leat_reset_token(e.server.conn->host->reset_key, cid->data, cid->len,
                     reset + sizeof(reset) - LEAT_STATELESS_RESET_TOKEN);
    e.pair.server_addr = preferred;
    leat_pair_inject(&e.pair, false, reset, sizeof(reset));
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_RESET);
    leat_conn_close(e.server.conn, 0, (leat_span){NULL, 0});
    leat_echo_finish(&e);
}

/* ---- staying ---- */

static void stays(void)
{
    connect_and_settle();
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(e.pair.conn), &e.pair.server_addr));
    assert_true(leat_addr_equal(leat_conn_local(e.server.conn), &e.pair.server_addr));
    check_and_finish();
}

static void a_client_stays_when_the_address_is_dark(void **state)
{
    (void)state;
    prepare();
    net.dark = true;
    stays();
    assert_in_range(net.to, 1, LEAT_PATH_CHALLENGES);
}

static void a_client_stays_when_it_is_told_to(void **state)
{
    (void)state;
    prepare();
    e.setup.conn.ignore_preferred = true;
    stays();
    assert_int_equal(net.to, 0);
}

static void a_client_stays_when_the_address_is_of_the_other_family(void **state)
{
    (void)state;
    prepare();
    e.setup.server.preferred_ip4 = (leat_addr){.family = 0};
    e.setup.server.preferred_ip6 =
        (leat_addr){.family = 6, .port = 4444, .ip = {0x20, 1, 0xd, 0xb8, [15] = 3}};
    stays();
}

static void a_client_stays_where_it_is_already(void **state)
{
    leat_path_stats paths[LEAT_PATHS_MAX];

    (void)state;
    prepare();
    leat_pair_init(&e.pair, &e.setup);
    e.pair.server_addr = preferred;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, confirmed, NULL, LEAT_SECOND));
    assert_int_equal(leat_conn_paths(e.pair.conn, paths, LEAT_PATHS_MAX), 1);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    check_and_finish();
}

static void a_client_goes_to_no_impossible_address(void **state)
{
    static const leat_addr impossible[] = {
        {.family = 4, .port = 4444, .ip = {127, 0, 0, 1}},
        {.family = 4, .port = 4444, .ip = {0}},
        {.family = 4, .port = 4444, .ip = {224, 0, 0, 1}},
        {.family = 4, .port = 4444, .ip = {255, 255, 255, 255}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        leat_path_stats paths[LEAT_PATHS_MAX];

        prepare();
        e.setup.server.preferred_ip4 = impossible[i];
        connect();
        assert_int_equal(leat_conn_paths(e.pair.conn, paths, LEAT_PATHS_MAX), 1);
        check_and_finish();
    }
}

/* RFC 9000 s21.5.6, for IPv6, where an IPv4 address may hide. */
static void a_client_goes_to_no_impossible_address_of_ip6(void **state)
{
    static const leat_addr impossible[] = {
        {.family = 6, .port = 4444, .ip = {[15] = 1}},
        {.family = 6, .port = 4444, .ip = {0}},
        {.family = 6, .port = 4444, .ip = {0xff, 2, [15] = 1}},
        {.family = 6, .port = 4444, .ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}},
        {.family = 6, .port = 4444, .ip = {[10] = 0xff, 0xff, 127, 9, 9, 9}},
        {.family = 6, .port = 4444, .ip = {[10] = 0xff, 0xff, 0, 0, 0, 0}},
        {.family = 6, .port = 4444, .ip = {[10] = 0xff, 0xff, 224, 0, 0, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        leat_path_stats paths[LEAT_PATHS_MAX];

        prepare();
        e.setup.server.preferred_ip6 = impossible[i];
        leat_pair_init(&e.pair, &e.setup);
        e.pair.client_addr =
            (leat_addr){.family = 6, .port = 1234, .ip = {0x20, 1, 0xd, 0xb8, [15] = 1}};
        e.pair.server_addr =
            (leat_addr){.family = 6, .port = 4433, .ip = {0x20, 1, 0xd, 0xb8, [15] = 2}};
        leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
        assert_true(leat_pair_run(&e.pair, confirmed, NULL, LEAT_SECOND));
        assert_int_equal(leat_conn_paths(e.pair.conn, paths, LEAT_PATHS_MAX), 1);
        check_and_finish();
    }
}

static void a_client_on_loopback_may_go_to_loopback(void **state)
{
    (void)state;
    prepare();
    e.setup.server.preferred_ip4.ip[0] = 127;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.server_addr.ip[0] = e.pair.client_addr.ip[0] = 127;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, confirmed, NULL, LEAT_SECOND));
    leat_echo_bytes(&e, 1000, 10 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(e.pair.conn), &e.setup.server.preferred_ip4));
    check_and_finish();
}

/* ---- the server's side ---- */

/* RFC 9000 s9.6.2. The client's answers to the server's challenges are lost. */
static void a_server_sends_probes_alone_before_it_has_validated(void **state)
{
    static uint8_t data[20000];
    leat_stream *stream;
    size_t written;

    (void)state;
    prepare();
    net.probes_let = 1;
    connect();
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
    leat_echo_settle(&e, 200 * LEAT_MILLISECOND);
    assert_true(client_is_there());
    assert_true(e.client.received > 0);
    assert_false(server_is_there());
    assert_true(net.from > 0);
    assert_int_equal(net.from_others, 0);
    net.probes_let = SIZE_MAX;
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    leat_echo_settle(&e, 5 * LEAT_SECOND); /* the next challenge */
    assert_true(server_is_there());
    check_and_finish();
}

static uint8_t stolen[1500];
static size_t stolen_len;

static bool steal(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && stolen_len == 0) {
        memcpy(stolen, data, *len);
        stolen_len = *len;
        return false;
    }
    return true;
}

static size_t to_victim, from_victim;

static bool count_victims(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)to_server;
    to_victim += leat_addr_equal(&pair->to, &victim) ? *len : 0;
    net.from += leat_addr_equal(&pair->from, &preferred);
    return !leat_addr_equal(&pair->to, &victim);
}

/* Somebody on the way sends a client's packet on, to the preferred address, from another. */
static void a_forger_does_not_move_the_server(void **state)
{
    leat_stream *stream;
    leat_recv_info info = {.remote = victim, .local = preferred};
    size_t written;

    (void)state;
    prepare();
    e.setup.conn.ignore_preferred = true;
    connect_and_settle();
    leat_echo_find_size(&e); /* so that what is stolen is the data */
    stolen_len = to_victim = 0;
    e.pair.filter = steal;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_MILLISECOND);
    assert_true(stolen_len > 0);
    e.pair.filter = count_victims;
    leat_endpoint_recv_copy(e.pair.server, stolen, stolen_len, &info);
    from_victim = stolen_len;
    leat_echo_settle(&e, 100 * LEAT_MILLISECOND);
    assert_int_equal(e.client.received, 1);
    for (int i = 0; i < 5; i++) {
        leat_echo_bytes(&e, 20000, 10 * LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_local(e.server.conn), &e.pair.server_addr));
        assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &e.pair.client_addr));
    }
    assert_true(to_victim > 0);
    assert_true(to_victim <= 3 * from_victim);
    assert_int_equal(e.server.conn->count.migrations, 0);
    check_and_finish();
}

/* They do not keep a client's NAT from being followed. */
static void many_forgers_take_no_path_from_the_client(void **state)
{
    static const uint8_t ping[] = {0x01};

    (void)state;
    prepare();
    e.setup.conn.ignore_preferred = true;
    connect_and_settle();
    for (uint8_t i = 0; i < 100; i++) {
        leat_addr original = e.pair.server_addr;

        e.pair.nat = victim;
        e.pair.nat.ip[3] = i;
        e.pair.server_addr = preferred;
        leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping));
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        leat_conn_check(e.server.conn);
        e.pair.server_addr = original;
    }
    e.pair.nat = (leat_addr){.family = 4, .port = 1000, .ip = {172, 16, 0, 1}};
    leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &e.pair.nat));
    leat_echo_bytes(&e, 10000, 30 * LEAT_SECOND);
    check_and_finish();
}

/* s9.6.2: what is late is read for a while, what is newer is not. */
static void the_address_that_was_left_is_read_no_more(void **state)
{
    static const uint8_t ping[] = {0x01};
    leat_addr original;
    uint64_t received;

    (void)state;
    prepare();
    connect_and_settle();
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    original = e.pair.server_addr;
    assert_true(server_is_there());
    received = e.server.conn->count.packets_received;
    leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping)); /* to the original address */
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(e.server.conn->count.packets_received, received + 1);
    assert_true(server_is_there());
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    received = e.server.conn->count.packets_received;
    leat_forge(&e.pair, e.pair.conn, ping, sizeof(ping));
    leat_pair_inject_from(&e.pair, &victim, ping, sizeof(ping));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    assert_int_equal(e.server.conn->count.packets_received, received);
    assert_true(server_is_there());
    assert_true(leat_addr_equal(&original, &e.pair.server_addr));
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    check_and_finish();
}

/* ---- and other moves ---- */

static void a_nat_that_rebinds_at_the_preferred_address_is_followed(void **state)
{
    (void)state;
    prepare();
    connect_and_settle();
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    for (uint8_t i = 1; i < 5; i++) {
        e.pair.nat = (leat_addr){.family = 4, .port = 1000, .ip = {172, 16, 0, i}};
        leat_echo_bytes(&e, 10000, 10 * LEAT_SECOND);
        assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &e.pair.nat));
        assert_true(server_is_there());
    }
    check_and_finish();
}

/* s18.2: what disable_active_migration forbids ends with the preferred address. */
static void a_client_may_move_from_there_whatever_was_forbidden(void **state)
{
    (void)state;
    prepare();
    e.setup.server.conn.disable_migration = true;
    connect();
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_ERR_UNSUPPORTED);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(client_is_there());
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(client_is_there());
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &elsewhere));
    assert_true(server_is_there());
    /* Again, now that the client has moved. */
    assert_int_equal(leat_conn_migrate(e.pair.conn, &e.pair.client_addr), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &e.pair.client_addr));
    check_and_finish();
}

/* s9.6.3: both at once. */
static void a_client_that_moves_at_the_same_time_arrives_at_both(void **state)
{
    (void)state;
    prepare();
    connect();
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_true(client_is_there() && server_is_there());
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    assert_true(leat_addr_equal(leat_conn_remote(e.server.conn), &elsewhere));
    check_and_finish();
}

static void a_client_that_moves_arrives_although_the_preferred_address_is_dark(void **state)
{
    (void)state;
    prepare();
    net.dark = true;
    connect();
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    leat_echo_bytes(&e, 100000, 10 * LEAT_SECOND);
    assert_false(client_is_there() || server_is_there());
    assert_true(leat_addr_equal(leat_conn_local(e.pair.conn), &elsewhere));
    check_and_finish();
}

/* ---- settings ---- */

static void what_endpoint_settings_must_be(void **state)
{
    leat_endpoint *endpoint;
    leat_endpoint_settings settings;

    (void)state;
    prepare();
    leat_pair_init(&e.pair, &e.setup);
    settings = e.setup.server;
    settings.server_tls = e.pair.server_tls;
    settings.preferred_ip4.port = 0;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &endpoint), LEAT_ERR_INVALID);
    settings.preferred_ip4 = (leat_addr){.family = 6, .port = 1, .ip = {1}};
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &endpoint), LEAT_ERR_INVALID);
    settings.preferred_ip4 = (leat_addr){.family = 0};
    settings.preferred_ip6 = preferred;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &endpoint), LEAT_ERR_INVALID);
    settings.preferred_ip6 = (leat_addr){.family = 0};
    settings.preferred_ip4 = preferred;
    settings.server_tls = NULL; /* a client has none */
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &settings, &endpoint), LEAT_ERR_INVALID);
    leat_pair_free(&e.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_follows),
        cmocka_unit_test(a_client_follows_where_it_speaks_ipv6),
        cmocka_unit_test(a_client_follows_in_the_middle_of_a_transfer),
        cmocka_unit_test(a_client_follows_after_a_retry_and_a_change_of_version),
        cmocka_unit_test(no_more_ids_are_given_out_than_the_client_takes),
        cmocka_unit_test(a_server_that_forgot_resets_the_connection),
        cmocka_unit_test(a_client_stays_when_the_address_is_dark),
        cmocka_unit_test(a_client_stays_when_it_is_told_to),
        cmocka_unit_test(a_client_stays_when_the_address_is_of_the_other_family),
        cmocka_unit_test(a_client_stays_where_it_is_already),
        cmocka_unit_test(a_client_goes_to_no_impossible_address),
        cmocka_unit_test(a_client_goes_to_no_impossible_address_of_ip6),
        cmocka_unit_test(a_client_on_loopback_may_go_to_loopback),
        cmocka_unit_test(a_server_sends_probes_alone_before_it_has_validated),
        cmocka_unit_test(a_forger_does_not_move_the_server),
        cmocka_unit_test(many_forgers_take_no_path_from_the_client),
        cmocka_unit_test(the_address_that_was_left_is_read_no_more),
        cmocka_unit_test(a_nat_that_rebinds_at_the_preferred_address_is_followed),
        cmocka_unit_test(a_client_may_move_from_there_whatever_was_forbidden),
        cmocka_unit_test(a_client_that_moves_at_the_same_time_arrives_at_both),
        cmocka_unit_test(a_client_that_moves_arrives_although_the_preferred_address_is_dark),
        cmocka_unit_test(what_endpoint_settings_must_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
