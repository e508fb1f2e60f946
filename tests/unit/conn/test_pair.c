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

#include "pair.h"

/* An application that counts what it is told. The server's half echoes what comes. */
typedef struct app {
    leat_conn *conn;
    unsigned connected, closed, opened, stream_closed, reset, stopped;
    size_t received;
    bool end;
    leat_close_info info;
    char detail[256];
    leat_stream *stream;
    uint64_t code;
} app;

static void on_connected(leat_conn *conn, void *user)
{
    app *a = user;

    a->conn = conn;
    a->connected++;
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    app *a = user;

    (void)conn;
    a->closed++;
    a->info = *info;
    if (info->detail) {
        strncpy(a->detail, info->detail, sizeof(a->detail) - 1);
    }
}

static void on_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    app *a = user;

    (void)conn;
    a->opened++;
    a->stream = stream;
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn, (void)stream;
    ((app *)user)->stream_closed++;
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)stream;
    ((app *)user)->reset++;
    ((app *)user)->code = code;
}

static void on_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)stream;
    ((app *)user)->stopped++;
    ((app *)user)->code = code;
}

static void drain(leat_conn *conn, leat_stream *stream, void *user)
{
    app *a = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        a->received += span.len;
        leat_stream_consume(stream, span.len);
    }
    a->end = leat_stream_recv_done(stream);
}

static void echo(leat_conn *conn, leat_stream *stream, void *user)
{
    app *a = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        size_t written;
        leat_err err = leat_stream_write(stream, span.data, span.len, &written);

        if (err == LEAT_ERR_BLOCKED) {
            return;
        }
        assert_int_equal(err, LEAT_OK);
        a->received += written;
        leat_stream_consume(stream, written);
    }
    if (leat_stream_recv_done(stream)) {
        leat_stream_finish(stream);
    }
}

static const leat_conn_events client_events = {
    .connected = on_connected,
    .closed = on_closed,
    .stream_readable = drain,
    .stream_closed = on_stream_closed,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
};
static const leat_conn_events server_events = {
    .connected = on_connected,
    .closed = on_closed,
    .stream_opened = on_opened,
    .stream_readable = echo,
    .stream_writable = echo,
    .stream_closed = on_stream_closed,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
};

typedef struct fixture {
    leat_pair pair;
    leat_pair_setup setup;
    app client, server;
} fixture;

static void prepare(fixture *f)
{
    memset(f, 0, sizeof(*f));
    leat_pair_setup_init(&f->setup);
    f->setup.server.events = &server_events;
    f->setup.server.user = &f->server;
}

static void begin(fixture *f)
{
    leat_pair_init(&f->pair, &f->setup);
    leat_pair_connect(&f->pair, &f->setup, &client_events, &f->client);
}

static bool both_connected(void *arg)
{
    fixture *f = arg;

    return f->client.connected && f->server.connected;
}

static bool both_closed(void *arg)
{
    fixture *f = arg;

    return f->client.closed && f->server.closed;
}

static void connect_both(fixture *f)
{
    begin(f);
    assert_true(leat_pair_run(&f->pair, both_connected, f, 5 * LEAT_SECOND));
}

/* Closes from the client, waits the closing period out, and everything must be gone. */
static void finish(fixture *f)
{
    if (!f->client.closed) {
        leat_conn_close(f->pair.conn, 0, (leat_span){NULL, 0});
    }
    assert_true(leat_pair_run(&f->pair, both_closed, f, 60 * LEAT_SECOND));
    leat_pair_run(&f->pair, NULL, NULL, 60 * LEAT_SECOND);
    assert_int_equal(leat_endpoint_conns(f->pair.client), 0);
    assert_int_equal(leat_endpoint_conns(f->pair.server), 0);
    leat_pair_free(&f->pair);
}

static void handshake_completes_and_closes(void **state)
{
    fixture f;
    leat_conn_stats_data stats;

    (void)state;
    prepare(&f);
    connect_both(&f);
    leat_pair_run(&f.pair, NULL, NULL, LEAT_SECOND);
    assert_true(leat_conn_is_connected(f.pair.conn));
    assert_int_equal(leat_conn_alpn(f.server.conn).len, 9);
    assert_memory_equal(leat_conn_alpn(f.client.conn).data, "leat-test", 9);
    assert_memory_equal(leat_conn_server_name(f.server.conn).data, "localhost", 9);
    leat_conn_stats(f.pair.conn, &stats);
    assert_int_equal(stats.packets_lost, 0);
    leat_conn_close(f.pair.conn, 7, (leat_span){(const uint8_t *)"bye", 3});
    assert_true(leat_pair_run(&f.pair, both_closed, &f, LEAT_SECOND));
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_PEER);
    assert_true(f.server.info.application);
    assert_int_equal(f.server.info.code, 7);
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_LOCAL);
    finish(&f);
}

static void every_cipher_carries_a_handshake(void **state)
{
    static const leat_tls_cipher ciphers[] = {LEAT_TLS_AES_128_GCM_SHA256,
                                              LEAT_TLS_AES_256_GCM_SHA384,
                                              LEAT_TLS_CHACHA20_POLY1305_SHA256};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fixture f;

        prepare(&f);
        f.setup.cipher = ciphers[i];
        f.setup.verify = true;
        connect_both(&f);
        finish(&f);
    }
}

static bool echoed(void *arg)
{
    return ((fixture *)arg)->client.end;
}

/* Writes n bytes on a stream, as room comes, and reads them back. */
static void echo_bytes(fixture *f, size_t n, leat_time timeout)
{
    leat_stream *stream;
    static uint8_t data[4096];
    size_t sent = 0, before = f->client.received;
    leat_time until = f->pair.now + timeout;

    f->client.end = false;
    assert_int_equal(leat_stream_open(f->pair.conn, true, &stream), LEAT_OK);
    while (sent < n) {
        size_t want = n - sent < sizeof(data) ? n - sent : sizeof(data);
        size_t written = 0;
        leat_err err = leat_stream_write(stream, data, want, &written);

        sent += written;
        if (err == LEAT_ERR_BLOCKED) {
            assert_true(leat_pair_step(&f->pair, until));
        } else {
            assert_int_equal(err, LEAT_OK);
        }
    }
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    assert_true(leat_pair_run(&f->pair, echoed, f, timeout));
    assert_int_equal(f->client.received - before, n);
}

static void streams_echo_what_is_written(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    connect_both(&f);
    echo_bytes(&f, 1, LEAT_SECOND);
    echo_bytes(&f, 1200, LEAT_SECOND);
    echo_bytes(&f, 1000000, 60 * LEAT_SECOND);
    leat_pair_run(&f.pair, NULL, NULL, LEAT_SECOND);
    assert_int_equal(f.client.stream_closed, 3);
    assert_int_equal(f.server.stream_closed, 3);
    finish(&f);
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
        fixture f;
        unsigned seed = s;

        prepare(&f);
        f.setup.seed = (uint8_t)s;
        f.pair.filter = NULL;
        leat_pair_init(&f.pair, &f.setup);
        f.pair.filter = drop_some;
        f.pair.user = &seed;
        leat_pair_connect(&f.pair, &f.setup, &client_events, &f.client);
        if (!leat_pair_run(&f.pair, both_connected, &f, 30 * LEAT_SECOND)) {
            fail_msg("no handshake with seed %u", s);
        }
        echo_bytes(&f, 100000, 120 * LEAT_SECOND);
        f.pair.filter = NULL;
        finish(&f);
    }
}

/* ---- Retry, versions, errors ---- */

static void a_retry_is_followed(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    f.setup.server.conn.wait_for_validation = true;
    connect_both(&f);
    echo_bytes(&f, 5000, LEAT_SECOND);
    finish(&f);
}

static void another_alpn_fails_with_the_alert(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    f.setup.client_alpn = "other";
    begin(&f);
    assert_true(leat_pair_run(&f.pair, both_closed, &f, 5 * LEAT_SECOND));
    assert_int_equal(f.client.connected, 0);
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_PEER);
    assert_int_equal(f.client.info.code, 0x178);
    finish(&f);
}

static void key_updates_go_unnoticed(void **state)
{
    fixture f;
    leat_conn_stats_data stats;

    (void)state;
    prepare(&f);
    f.setup.conn.key_update_packets = 50;
    f.setup.server.conn.key_update_packets = 70;
    connect_both(&f);
    echo_bytes(&f, 1000000, 60 * LEAT_SECOND);
    leat_conn_stats(f.pair.conn, &stats);
    assert_true(stats.key_updates > 3);
    finish(&f);
}

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

static bool client_closed(void *arg)
{
    return ((fixture *)arg)->client.closed;
}

static void a_silent_server_times_out(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    leat_pair_init(&f.pair, &f.setup);
    f.pair.filter = nothing_passes;
    leat_pair_connect(&f.pair, &f.setup, &client_events, &f.client);
    assert_true(leat_pair_run(&f.pair, client_closed, &f, 11 * LEAT_SECOND));
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_HANDSHAKE_TIMEOUT);
    assert_int_equal(f.client.info.err, LEAT_ERR_TIMEOUT);
    leat_pair_free(&f.pair);
}

static void an_idle_connection_times_out(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    connect_both(&f);
    f.pair.filter = nothing_passes;
    assert_true(leat_pair_run(&f.pair, both_closed, &f, 40 * LEAT_SECOND));
    assert_int_equal(f.client.info.kind, LEAT_CLOSE_IDLE);
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_IDLE);
    leat_pair_free(&f.pair);
}

static void keep_alive_keeps_it(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    f.setup.conn.keep_alive = 10 * LEAT_SECOND;
    connect_both(&f);
    leat_pair_run(&f.pair, client_closed, &f, 600 * LEAT_SECOND);
    assert_int_equal(f.client.closed, 0);
    finish(&f);
}

static void a_reset_reaches_the_peer(void **state)
{
    fixture f;
    leat_stream *stream;
    size_t written;

    (void)state;
    prepare(&f);
    connect_both(&f);
    assert_int_equal(leat_stream_open(f.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "abc", 3, &written), LEAT_OK);
    leat_pair_run(&f.pair, NULL, NULL, LEAT_SECOND);
    leat_stream_reset(stream, 42);
    leat_stream_stop(stream, 43);
    leat_pair_run(&f.pair, NULL, NULL, LEAT_SECOND);
    assert_int_equal(f.server.reset, 1);
    assert_int_equal(f.server.stopped, 1);
    finish(&f);
}

static void the_end_of_an_endpoint_is_told(void **state)
{
    fixture f;

    (void)state;
    prepare(&f);
    connect_both(&f);
    leat_endpoint_free(f.pair.server);
    f.pair.server = NULL;
    assert_int_equal(f.server.closed, 1);
    assert_int_equal(f.server.info.kind, LEAT_CLOSE_DROPPED);
    leat_pair_free(&f.pair);
    assert_int_equal(f.client.closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshake_completes_and_closes),
        cmocka_unit_test(every_cipher_carries_a_handshake),
        cmocka_unit_test(streams_echo_what_is_written),
        cmocka_unit_test(a_lossy_path_loses_no_byte),
        cmocka_unit_test(a_retry_is_followed),
        cmocka_unit_test(another_alpn_fails_with_the_alert),
        cmocka_unit_test(key_updates_go_unnoticed),
        cmocka_unit_test(a_silent_server_times_out),
        cmocka_unit_test(an_idle_connection_times_out),
        cmocka_unit_test(keep_alive_keeps_it),
        cmocka_unit_test(a_reset_reaches_the_peer),
        cmocka_unit_test(the_end_of_an_endpoint_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
