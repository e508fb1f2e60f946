/* tests/unit/conn/test_pair.c: a client and a server that talk: handshake, streams, close.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "conn/shared.h"
#include "echo.h"
#include "endpoint/endpoint.h"

static void handshake_completes_and_closes(void **state)
{
    leat_echo f;
    leat_conn_stats_data stats;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_echo_settle(&f, LEAT_SECOND);
    assert_true(leat_conn_is_connected(f.pair.conn));
    assert_int_equal(leat_conn_alpn(f.server.conn).len, 9);
    assert_memory_equal(leat_conn_alpn(f.client.conn).data, "leat-test", 9);
    assert_memory_equal(leat_conn_server_name(f.server.conn).data, "localhost", 9);
    leat_conn_stats(f.pair.conn, &stats);
    assert_int_equal(stats.packets_lost, 0);
    leat_conn_close(f.pair.conn, 7, (leat_span){(const uint8_t *)"bye", 3});
    assert_true(leat_pair_run(&f.pair, leat_echo_both_closed, &f, LEAT_SECOND));
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_PEER);
    assert_true(f.server.info.application);
    assert_int_equal(f.server.info.code, 7);
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_LOCAL);
    leat_echo_finish(&f);
}

static void every_cipher_carries_a_handshake(void **state)
{
    static const leat_tls_cipher ciphers[] = {LEAT_TLS_AES_128_GCM_SHA256,
                                              LEAT_TLS_AES_256_GCM_SHA384,
                                              LEAT_TLS_CHACHA20_POLY1305_SHA256};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        leat_echo f;

        leat_echo_prepare(&f);
        f.setup.cipher = ciphers[i];
        f.setup.verify = true;
        leat_echo_connect(&f);
        leat_echo_finish(&f);
    }
}

static void streams_echo_what_is_written(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_echo_bytes(&f, 1, LEAT_SECOND);
    leat_echo_bytes(&f, 1200, LEAT_SECOND);
    leat_echo_bytes(&f, 1000000, 60 * LEAT_SECOND);
    leat_echo_settle(&f, LEAT_SECOND);
    assert_int_equal(f.client.stream_closed, 3);
    assert_int_equal(f.server.stream_closed, 3);
    leat_echo_finish(&f);
}

/* ---- loss ---- */

static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *seed = pair->user;

    (void)to_server, (void)data, (void)len;
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % 100 >= 10;
}

static void a_lossy_path_loses_no_byte(void **state)
{
    (void)state;
    for (unsigned s = 1; s <= 20; s++) {
        leat_echo f;
        unsigned seed = s;

        leat_echo_prepare(&f);
        f.setup.seed = (uint8_t)s;
        f.pair.filter = NULL;
        leat_pair_init(&f.pair, &f.setup);
        f.pair.filter = drop_some;
        f.pair.user = &seed;
        leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
        if (!leat_pair_run(&f.pair, leat_echo_both_connected, &f, 30 * LEAT_SECOND)) {
            fail_msg("no handshake with seed %u", s);
        }
        leat_echo_bytes(&f, 100000, 120 * LEAT_SECOND);
        f.pair.filter = NULL;
        leat_echo_finish(&f);
    }
}

/* A client whose ClientHello is acknowledged, alone in a datagram, before anything else arrives has
 * nothing left to send again: it has to probe all the same, since the server may wait for bytes to
 * spend (RFC 9002 s6.2.2.1). Met with 30 % loss. */
typedef struct silent_server {
    unsigned from_client;
    uint8_t kept[1500]; /* the client's second probe, which is late */
    size_t kept_len;
} silent_server;

static bool acknowledge_alone(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    silent_server *s = pair->user;

    if (!to_server) {
        return *len < 1000 || s->from_client > 5;
    }
    s->from_client++;
    if (s->from_client == 3) {
        memcpy(s->kept, data, *len);
        s->kept_len = *len;
    }
    return s->from_client != 1 && s->from_client != 3;
}

static bool second_probe_kept(void *user)
{
    return ((silent_server *)user)->kept_len > 0;
}

static void an_acknowledged_client_hello_does_not_silence_the_client(void **state)
{
    silent_server s = {0};
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = acknowledge_alone;
    f.pair.user = &s;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, second_probe_kept, &s, 5 * LEAT_SECOND));
    leat_echo_settle(&f, 100 * LEAT_MILLISECOND);
    leat_pair_inject(&f.pair, true, s.kept, s.kept_len);
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 8 * LEAT_SECOND));
    leat_echo_finish(&f);
}

/* When the server's first flight is lost, one datagram of its probes brings all of it (RFC 9002
 * s6.2.4). */
static bool pass_the_second_of_the_server(leat_pair *pair, bool to_server, uint8_t *data,
                                          size_t *len)
{
    unsigned *count = pair->user;

    (void)data, (void)len;
    return to_server || ++*count == 2;
}

static bool client_connected(void *user)
{
    return ((leat_echo *)user)->client.connected > 0;
}

static void a_lost_flight_comes_again_in_one_datagram(void **state)
{
    unsigned count = 0;
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = pass_the_second_of_the_server;
    f.pair.user = &count;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, client_connected, &f, 5 * LEAT_SECOND));
    f.pair.filter = NULL;
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 5 * LEAT_SECOND));
    leat_echo_finish(&f);
}

/* ---- the handshake's flights come again when the peer's do (RFC 9002 s6.2.3) ---- */

typedef struct hurry {
    leat_time heard_at; /* the server's probe */
    unsigned to_server, big;
    bool deaf; /* the client hears nothing */
} hurry;

/* All that the client sends behind its ClientHello is lost, until the server asks for it. */
static bool lose_the_finished(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    hurry *h = pair->user;

    (void)data, (void)len;
    if (to_server) {
        return ++h->to_server == 1 || h->heard_at > 0;
    }
    if (pair->now > 1900 * LEAT_MILLISECOND && h->heard_at == 0) {
        h->heard_at = pair->now;
    }
    return true;
}

static bool server_has_asked(void *user)
{
    return ((hurry *)((leat_echo *)user)->pair.user)->heard_at > 0;
}

static void a_finished_comes_again_when_the_servers_flight_does(void **state)
{
    hurry h = {0};
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.delay = 20 * LEAT_MILLISECOND;
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = lose_the_finished;
    f.pair.user = &h;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, server_has_asked, &f, 2 * LEAT_SECOND));
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 50 * LEAT_MILLISECOND));
    f.pair.filter = NULL;
    leat_echo_finish(&f);
}

static bool count_flights(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    hurry *h = pair->user;

    (void)data;
    h->big += !to_server && *len >= 1200;
    return to_server || !h->deaf;
}

/* A server that thinks the way is long. */
static leat_conn *in_no_hurry(leat_echo *f, hurry *h)
{
    leat_conn *server;

    *h = (hurry){.deaf = true};
    leat_echo_prepare(f);
    f->setup.conn.handshake_timeout = f->setup.server.conn.handshake_timeout = 60 * LEAT_SECOND;
    f->setup.conn.idle_timeout = f->setup.server.conn.idle_timeout = 60 * LEAT_SECOND;
    f->setup.delay = 20 * LEAT_MILLISECOND;
    leat_pair_init(&f->pair, &f->setup);
    f->pair.filter = count_flights;
    f->pair.user = h;
    leat_pair_connect(&f->pair, &f->setup, &leat_echo_client_events, &f->client);
    leat_pair_run(&f->pair, NULL, NULL, 100 * LEAT_MILLISECOND);
    server = LEAT_CONTAINER_OF(leat_list_first(&f->pair.server->conns), leat_conn, host_link);
    server->loss.rtt.smoothed = 100 * LEAT_SECOND;
    assert_int_equal(h->big, 1);
    return server;
}

static void a_servers_flight_comes_again_when_the_client_hello_does(void **state)
{
    hurry h;
    leat_echo f;

    (void)state;
    in_no_hurry(&f, &h);
    h.deaf = false;
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 1100 * LEAT_MILLISECOND));
    f.pair.filter = NULL;
    leat_echo_finish(&f);
}

static bool client_is_connected(void *arg)
{
    return ((leat_echo *)arg)->client.connected > 0;
}

/* Once the client is connected it hears nothing, and one datagram of its is heard, when it is time.
 */
static bool lose_all_but_a_probe(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    hurry *h = pair->user;

    (void)data, (void)len;
    if (!h->deaf) {
        return !to_server || ++h->to_server == 1;
    }
    return to_server && h->heard_at <= pair->now && ++h->big == 1;
}

/* RFC 9002 s6.2.4: a probe of the handshake brings application data in flight along. */
static void a_probe_of_the_finished_brings_data_along(void **state)
{
    hurry h = {0};
    leat_stream *stream;
    size_t written;
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.delay = 20 * LEAT_MILLISECOND;
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = lose_all_but_a_probe;
    f.pair.user = &h;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, client_is_connected, &f, LEAT_SECOND));
    assert_int_equal(leat_stream_open(f.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "asked", 5, &written), LEAT_OK);
    h.deaf = true;
    h.heard_at = f.pair.now + 25 * LEAT_MILLISECOND; /* all this was lost by then */
    leat_pair_run(&f.pair, NULL, NULL, 500 * LEAT_MILLISECOND);
    assert_true(h.big > 0);
    assert_int_equal(f.server.connected, 1);
    assert_int_equal(f.server.received, 5);
    f.pair.filter = NULL;
    leat_echo_finish(&f);
}

/* RFC 9002 s7: no PTO has expired, so that the window holds for what is hurried. */
static void a_flight_is_not_hurried_past_the_window(void **state)
{
    leat_conn *server;
    hurry h;
    leat_echo f;

    (void)state;
    server = in_no_hurry(&f, &h);
    server->cc.cwnd = server->flight.bytes + LEAT_LOSS_PROBES * server->mtu.size;
    leat_pair_run(&f.pair, NULL, NULL, 1100 * LEAT_MILLISECOND);
    assert_int_equal(h.big, 1);
    assert_int_equal(server->hs->hurried, 0);
    h.deaf = false;
    server->cc.cwnd += 2 * server->mtu.size; /* with the next ClientHello, 3 s after the first */
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 2100 * LEAT_MILLISECOND));
    f.pair.filter = NULL;
    leat_echo_finish(&f);
}

/* The ClientHello comes again after 1, 3, 7, 15 and 31 s, twice each time. */
static void a_flight_is_not_hurried_for_ever(void **state)
{
    hurry h;
    leat_echo f;
    leat_conn *server;

    (void)state;
    server = in_no_hurry(&f, &h);
    leat_pair_run(&f.pair, NULL, NULL, 2 * LEAT_SECOND);
    assert_int_equal(server->hs->hurried, 1);
    assert_int_equal(h.big, 3);
    leat_pair_run(&f.pair, NULL, NULL, 30 * LEAT_SECOND);
    assert_int_equal(server->hs->hurried, LEAT_CONN_HURRIES);
    assert_int_equal(h.big, 5);
    leat_pair_free(&f.pair);
}

/* Either of the two probes brings the ClientHello: a server can do nothing with a PING. Met with 30
 * % loss. */
static bool pass_the_third_of_the_client(leat_pair *pair, bool to_server, uint8_t *data,
                                         size_t *len)
{
    unsigned *count = pair->user;

    (void)data, (void)len;
    return !to_server || ++*count == 3;
}

static void either_probe_brings_the_client_hello(void **state)
{
    unsigned count = 0;
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = pass_the_third_of_the_client;
    f.pair.user = &count;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, client_connected, &f, 1500 * LEAT_MILLISECOND));
    f.pair.filter = NULL;
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 5 * LEAT_SECOND));
    leat_echo_finish(&f);
}

/* ---- Retry, versions, errors ---- */

static void a_retry_is_followed(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.server.conn.wait_for_validation = true;
    leat_echo_connect(&f);
    leat_echo_bytes(&f, 5000, LEAT_SECOND);
    leat_echo_finish(&f);
}

/* The client's second Initial goes to the Retry's ID, which is as short as the server's IDs are. */
static void a_retry_with_a_short_id_is_followed(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.server.conn.wait_for_validation = true;
    f.setup.server.cid_len = LEAT_CID_LEN_MIN;
    leat_echo_connect(&f);
    leat_echo_finish(&f);
}

/* Flips a bit of the token in the first Initial that has one. */
static bool damage_one_token(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    bool *done = pair->user;
    size_t at = 6;

    (void)len;
    if (to_server && !*done && (data[0] & 0xf0) == 0xc0) {
        at += data[5];       /* behind the destination ID */
        at += 1u + data[at]; /* behind the source ID */
        if (data[at] != 0) {
            data[at + 20] ^= 1; /* the length has two bytes */
            *done = true;
        }
    }
    return true;
}

/* The client sends it again undamaged; the server once closed for the damaged one. */
static void a_token_damaged_on_the_way_ends_nothing(void **state)
{
    leat_echo f;
    bool done = false;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.server.conn.wait_for_validation = true;
    leat_echo_begin(&f);
    f.pair.filter = damage_one_token;
    f.pair.user = &done;
    assert_true(leat_pair_run(&f.pair, leat_echo_both_connected, &f, 5 * LEAT_SECOND));
    assert_true(done);
    leat_echo_finish(&f);
}

static void another_alpn_fails_with_the_alert(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.client_alpn = "other";
    leat_echo_begin(&f);
    assert_true(leat_pair_run(&f.pair, leat_echo_both_closed, &f, 5 * LEAT_SECOND));
    assert_int_equal(f.client.connected, 0);
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_PEER);
    assert_int_equal(f.client.info.code, 0x178);
    leat_echo_finish(&f);
}

static void key_updates_go_unnoticed(void **state)
{
    leat_echo f;
    leat_conn_stats_data stats;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.conn.key_update_packets = 50;
    f.setup.server.conn.key_update_packets = 70;
    leat_echo_connect(&f);
    for (int i = 0; i < 5; i++) { /* as they should be: three PTO apart (RFC 9001 s6.5) */
        leat_echo_bytes(&f, 200000, 60 * LEAT_SECOND);
        f.pair.now += leat_conn_rekey_wait(f.pair.conn);
    }
    leat_conn_stats(f.pair.conn, &stats);
    assert_true(stats.key_updates > 3);
    leat_echo_finish(&f);
}

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

static void a_silent_server_times_out(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = nothing_passes;
    leat_pair_connect(&f.pair, &f.setup, &leat_echo_client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, leat_echo_client_closed, &f, 11 * LEAT_SECOND));
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_HANDSHAKE_TIMEOUT);
    assert_int_equal(f.client.info.err, LEAT_ERR_TIMEOUT);
    leat_pair_free(&f.pair);
}

static void an_idle_connection_times_out(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    f.pair.filter = nothing_passes;
    assert_true(leat_pair_run(&f.pair, leat_echo_both_closed, &f, 40 * LEAT_SECOND));
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_IDLE);
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_IDLE);
    leat_pair_free(&f.pair);
}

static void write_bytes(leat_echo *f, size_t n)
{
    static const uint8_t bytes[4000];
    leat_stream *stream;
    size_t written;

    assert_int_equal(leat_stream_open(f->pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, bytes, n, &written), LEAT_OK);
    assert_int_equal(written, n);
}

/* A host that was held up, as a suspended machine is, finds datagrams and timers that are due at
 * once: it reads before it says that nothing came. */
static void what_waits_to_be_read_came_in_time(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_echo_settle(&f, LEAT_SECOND);
    write_bytes(&f, 1200);
    assert_true(leat_pair_step(&f.pair, LEAT_TIME_NEVER - 1)); /* it is on its way */
    f.pair.now += 31 * LEAT_SECOND;
    assert_true(leat_pair_step(&f.pair, LEAT_TIME_NEVER - 1));
    leat_pair_step(&f.pair, LEAT_TIME_NEVER - 1);
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_IDLE);
    assert_int_equal(f.server.closed, 0);
    assert_int_equal(f.server.received, 1200);
    leat_pair_free(&f.pair);
}

static void an_ack_that_waits_to_be_read_saves_the_probe(void **state)
{
    leat_echo f;
    size_t sent;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_echo_settle(&f, LEAT_SECOND);
    write_bytes(&f, 3000);
    assert_true(leat_pair_step(&f.pair, LEAT_TIME_NEVER - 1));
    assert_true(leat_pair_step(&f.pair, LEAT_TIME_NEVER - 1)); /* the ACK is on its way */
    sent = f.pair.datagrams[1];
    f.pair.now += 2 * LEAT_SECOND;
    leat_echo_settle(&f, LEAT_SECOND);
    assert_int_equal(f.pair.datagrams[1], sent);
    leat_echo_finish(&f);
}

typedef struct ways {
    bool up, down; /* what is sent there arrives */
} ways;

static bool along_ways(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    const ways *w = pair->user;

    (void)data, (void)len;
    return to_server ? w->up : w->down;
}

/* The ACK of what the server said was lost, and then a byte of the client's. */
static void a_probe_brings_an_ack_that_was_lost(void **state)
{
    leat_echo f;
    ways w = {false, true};
    leat_stream *stream;
    size_t written;
    uint64_t said;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    assert_int_equal(leat_stream_open(f.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "x", 1, &written), LEAT_OK);
    leat_echo_settle(&f, LEAT_SECOND);
    f.pair.filter = along_ways;
    f.pair.user = &w;
    said = leat_sent_next_pn(&f.server.conn->app.sent);
    assert_int_equal(leat_stream_write(f.server.stream, "y", 1, &written), LEAT_OK);
    leat_echo_settle(&f, 38 * LEAT_MILLISECOND); /* there in 10 ms, the ACK 25 ms later */
    w.down = false;
    assert_int_equal(leat_stream_write(stream, "z", 1, &written), LEAT_OK);
    leat_echo_settle(&f, LEAT_MILLISECOND);
    w.up = true;
    leat_echo_settle(&f, LEAT_SECOND);
    assert_true(leat_sent_acked_end(&f.server.conn->app.sent) > said);
    f.pair.filter = NULL;
    leat_echo_finish(&f);
}

static void keep_alive_keeps_it(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.conn.keep_alive = 10 * LEAT_SECOND;
    leat_echo_connect(&f);
    leat_pair_run(&f.pair, leat_echo_client_closed, &f, 600 * LEAT_SECOND);
    assert_int_equal(f.client.closed, 0);
    leat_echo_finish(&f);
}

static void a_reset_reaches_the_peer(void **state)
{
    leat_echo f;
    leat_stream *stream;
    size_t written;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    assert_int_equal(leat_stream_open(f.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "abc", 3, &written), LEAT_OK);
    leat_echo_settle(&f, LEAT_SECOND);
    leat_stream_reset(stream, 42);
    leat_stream_stop(stream, 43);
    leat_echo_settle(&f, LEAT_SECOND);
    assert_int_equal(f.server.reset, 1);
    assert_int_equal(f.server.stopped, 1);
    leat_echo_finish(&f);
}

static bool drop_some_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *seen = pair->user;

    (void)data, (void)len;
    return !to_server || ++*seen % 3 != 1;
}

/* RESET_STREAM_AT, with every third datagram lost: what was promised arrives, then the reset. */
static void a_reset_at_delivers_what_it_promised(void **state)
{
    static uint8_t bytes[60000];
    leat_echo f;
    leat_stream *stream;
    unsigned seen = 0;
    size_t written;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_echo_settle(&f, LEAT_SECOND);
    f.pair.filter = drop_some_to_server;
    f.pair.user = &seen;
    assert_int_equal(leat_stream_open(f.pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, bytes, sizeof(bytes), &written), LEAT_OK);
    assert_int_equal(written, sizeof(bytes));
    leat_pair_step(&f.pair, f.pair.now + LEAT_MILLISECOND); /* some is under way */
    assert_int_equal(leat_stream_reset_at(stream, 42, 60001), LEAT_ERR_INVALID);
    assert_int_equal(leat_stream_reset_at(stream, 42, 30000), LEAT_OK);
    leat_echo_settle(&f, 10 * LEAT_SECOND);
    assert_true(seen > 10);
    assert_int_equal(f.server.reset, 1);
    assert_int_equal(f.server.code, 42);
    assert_true(f.server.received >= 30000);
    assert_true(f.server.received < sizeof(bytes));
    assert_int_equal(f.client.stream_closed, 1);
    assert_int_equal(f.server.stream_closed, 1);
    leat_echo_finish(&f);
}

static void a_reset_at_needs_a_peer_that_takes_it(void **state)
{
    leat_echo f;
    leat_stream *stream;
    size_t written;

    (void)state;
    leat_echo_prepare(&f);
    f.setup.server.conn.disable_reset_stream_at = true;
    leat_echo_connect(&f);
    assert_int_equal(leat_stream_open(f.pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "abc", 3, &written), LEAT_OK);
    assert_int_equal(leat_stream_reset_at(stream, 42, 3), LEAT_ERR_UNSUPPORTED);
    assert_int_equal(leat_stream_write(stream, "def", 3, &written), LEAT_OK);
    leat_echo_settle(&f, LEAT_SECOND);
    assert_int_equal(f.server.received, 6);
    leat_echo_finish(&f);
}

/* A process that stops for a while between the call and its next turn: the closing period is over
 * before `closed` is told. The connection once stayed for ever. */
static void a_close_that_is_told_late_leaves_nothing(void **state)
{
    leat_echo f;
    leat_conn_shared *shared;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_conn_close(f.pair.conn, 7, (leat_span){NULL, 0});
    f.pair.now += 10 * LEAT_SECOND;
    leat_echo_settle(&f, 10 * LEAT_SECOND);
    assert_int_equal(f.client.closed, 1);
    assert_int_equal(f.server.info.code, 7);
    assert_int_equal(leat_conn_shared_get(f.pair.ctx, &shared), LEAT_OK);
    assert_int_equal(leat_pool_live(&shared->conns), 0);
    leat_echo_finish(&f);
}

static void the_end_of_an_endpoint_is_told(void **state)
{
    leat_echo f;

    (void)state;
    leat_echo_prepare(&f);
    leat_echo_connect(&f);
    leat_endpoint_free(f.pair.server);
    f.pair.server = NULL;
    assert_int_equal(f.server.closed, 1);
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_DROPPED);
    leat_pair_free(&f.pair);
    assert_int_equal(f.client.closed, 1);
}

/* ---- turns ---- */

/* Hands over all that an endpoint has to say, and turns once. */
static void carry_over(leat_echo *e, bool to_server)
{
    static uint8_t buf[65536];
    leat_endpoint *from = to_server ? e->pair.client : e->pair.server;
    leat_endpoint *to = to_server ? e->pair.server : e->pair.client;
    leat_recv_info in = {.remote = to_server ? e->pair.client_addr : e->pair.server_addr,
                         .local = to_server ? e->pair.server_addr : e->pair.client_addr};
    leat_send_info out;
    size_t n;

    while ((n = leat_endpoint_send(from, buf, sizeof buf, &out)) > 0) {
        in.segment = out.segment;
        assert_int_equal(leat_endpoint_recv_copy(to, buf, n, &in), LEAT_OK);
    }
    leat_ctx_turn(e->pair.ctx, e->pair.now);
}

/* The application is told in the turn that brought it, and what it answers goes with the ACK. */
static void a_question_is_answered_in_the_turn_that_brings_it(void **state)
{
    leat_echo e;
    leat_stream *stream;
    leat_conn_stats_data before, after;
    size_t written;

    (void)state;
    leat_echo_establish(&e);
    leat_conn_stats(e.pair.conn, &before);
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "question", 8, &written), LEAT_OK);
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    carry_over(&e, true);
    assert_int_equal(e.server.received, 8);
    carry_over(&e, false);
    assert_int_equal(e.client.received, 8);
    assert_true(e.client.end);
    leat_conn_stats(e.pair.conn, &after);
    assert_int_equal(after.packets_sent - before.packets_sent, 1);
    assert_int_equal(after.packets_received - before.packets_received, 1);
    leat_echo_finish(&e);
}

/* ---- messages of many datagrams ---- */

/* Appends what the client has to say, no more than `datagrams` full ones, to a message; returns its
 * length. */
static size_t gather(leat_echo *e, uint8_t *message, size_t len, size_t datagrams,
                     leat_recv_info *in)
{
    size_t size = e->pair.conn->mtu.size;
    leat_send_info out;
    size_t n = leat_endpoint_send(e->pair.client, message + len, datagrams * size, &out);

    assert_int_equal(n, datagrams * size);
    assert_int_equal(out.segment, size);
    *in = (leat_recv_info){
        .remote = e->pair.client_addr, .local = e->pair.server_addr, .segment = size};
    return len + n;
}

static void write_much(leat_echo *e, size_t n)
{
    static const uint8_t data[65536];
    leat_stream *stream;
    size_t written;

    assert_true(n <= sizeof data);
    assert_int_equal(leat_stream_open(e->pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, n, &written), LEAT_OK);
    assert_int_equal(written, n);
}

/* Packets of one message are opened before the frames of the first are looked at: each is judged by
 * itself all the same. */
static void one_forged_in_a_message_is_dropped_alone(void **state)
{
    enum { DATAGRAMS = 9, TOTAL = 30000 };
    static uint8_t message[65536];
    leat_conn_stats_data before, after;
    leat_recv_info in;
    leat_echo e;
    size_t len;

    (void)state;
    for (size_t bad = 0; bad < DATAGRAMS; bad++) {
        leat_echo_prepare(&e);
        leat_echo_connect(&e);
        leat_echo_find_size(&e);
        write_much(&e, TOTAL);
        len = gather(&e, message, 0, DATAGRAMS, &in);
        message[bad * in.segment + in.segment / 2] ^= 1;
        leat_conn_stats(e.server.conn, &before);
        assert_int_equal(leat_endpoint_recv_copy(e.pair.server, message, len, &in), LEAT_OK);
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        leat_conn_stats(e.server.conn, &after);
        assert_int_equal(after.packets_dropped - before.packets_dropped, 1);
        assert_int_equal(after.packets_received - before.packets_received, DATAGRAMS - 1);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        assert_int_equal(e.server.received, TOTAL);
        leat_echo_finish(&e);
    }
}

/* The same where the sender's keys change on the way: the message holds packets of both phases. */
static void keys_may_change_within_a_message(void **state)
{
    enum { DATAGRAMS = 9, TOTAL = 30000 };
    static uint8_t message[65536];
    leat_conn_stats_data before, after;
    leat_recv_info in;
    leat_echo e;
    size_t len;

    (void)state;
    for (size_t old = 1; old < DATAGRAMS; old++) {
        leat_echo_prepare(&e);
        leat_echo_connect(&e);
        leat_echo_find_size(&e);
        write_much(&e, TOTAL);
        len = gather(&e, message, 0, old, &in);
        assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
        len = gather(&e, message, len, DATAGRAMS - old, &in);
        leat_conn_stats(e.server.conn, &before);
        assert_int_equal(leat_endpoint_recv_copy(e.pair.server, message, len, &in), LEAT_OK);
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        leat_conn_stats(e.server.conn, &after);
        assert_int_equal(after.packets_dropped, before.packets_dropped);
        assert_int_equal(after.packets_received - before.packets_received, DATAGRAMS);
        assert_int_equal(after.key_updates - before.key_updates, 1);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
        assert_int_equal(e.server.received, TOTAL);
        leat_echo_finish(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_forged_in_a_message_is_dropped_alone),
        cmocka_unit_test(keys_may_change_within_a_message),
        cmocka_unit_test(a_question_is_answered_in_the_turn_that_brings_it),
        cmocka_unit_test(handshake_completes_and_closes),
        cmocka_unit_test(every_cipher_carries_a_handshake),
        cmocka_unit_test(streams_echo_what_is_written),
        cmocka_unit_test(a_lossy_path_loses_no_byte),
        cmocka_unit_test(either_probe_brings_the_client_hello),
        cmocka_unit_test(a_lost_flight_comes_again_in_one_datagram),
        cmocka_unit_test(a_finished_comes_again_when_the_servers_flight_does),
        cmocka_unit_test(a_servers_flight_comes_again_when_the_client_hello_does),
        cmocka_unit_test(a_probe_of_the_finished_brings_data_along),
        cmocka_unit_test(a_flight_is_not_hurried_past_the_window),
        cmocka_unit_test(a_flight_is_not_hurried_for_ever),
        cmocka_unit_test(an_acknowledged_client_hello_does_not_silence_the_client),
        cmocka_unit_test(a_retry_is_followed),
        cmocka_unit_test(a_retry_with_a_short_id_is_followed),
        cmocka_unit_test(a_token_damaged_on_the_way_ends_nothing),
        cmocka_unit_test(another_alpn_fails_with_the_alert),
        cmocka_unit_test(key_updates_go_unnoticed),
        cmocka_unit_test(a_silent_server_times_out),
        cmocka_unit_test(an_idle_connection_times_out),
        cmocka_unit_test(what_waits_to_be_read_came_in_time),
        cmocka_unit_test(an_ack_that_waits_to_be_read_saves_the_probe),
        cmocka_unit_test(a_probe_brings_an_ack_that_was_lost),
        cmocka_unit_test(keep_alive_keeps_it),
        cmocka_unit_test(a_reset_reaches_the_peer),
        cmocka_unit_test(a_reset_at_delivers_what_it_promised),
        cmocka_unit_test(a_reset_at_needs_a_peer_that_takes_it),
        cmocka_unit_test(a_close_that_is_told_late_leaves_nothing),
        cmocka_unit_test(the_end_of_an_endpoint_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
