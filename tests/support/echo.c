/* tests/support/echo.c: see echo.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "echo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/endpoint.h"

static void on_connected(leat_conn *conn, void *user)
{
    leat_echo_app *a = user;

    a->conn = conn;
    a->connected++;
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    leat_echo_app *a = user;

    (void)conn;
    a->closed++;
    a->info = *info;
    if (info->detail) {
        strncpy(a->detail, info->detail, sizeof(a->detail) - 1);
    }
}

static void on_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_echo_app *a = user;

    (void)conn;
    a->opened++;
    a->stream = stream;
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_echo_app *a = user;

    (void)conn;
    a->stream_closed++;
    a->stream = a->stream == stream ? NULL : a->stream;
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)stream;
    ((leat_echo_app *)user)->reset++;
    ((leat_echo_app *)user)->code = code;
}

static void on_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)stream;
    ((leat_echo_app *)user)->stopped++;
    ((leat_echo_app *)user)->code = code;
}

static void on_token(leat_conn *conn, leat_span token, void *user)
{
    (void)conn;
    ((leat_echo_app *)user)->tokens += token.len > 0;
}

static void on_available(leat_conn *conn, bool bidi, void *user)
{
    (void)conn, (void)bidi;
    ((leat_echo_app *)user)->available++;
}

static void read_all(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_echo_app *a = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        a->received += span.len;
        leat_stream_consume(stream, span.len);
    }
    a->end = leat_stream_recv_done(stream);
}

static void echo_all(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_echo_app *a = user;
    leat_span span;

    if (!leat_stream_is_bidi(stream)) {
        read_all(conn, stream, user);
        return;
    }
    while ((span = leat_stream_peek(stream)).len > 0) {
        size_t written;
        leat_err err = leat_stream_write(stream, span.data, span.len, &written);

        if (err == LEAT_ERR_BLOCKED) {
            return;
        }
        if (err != LEAT_OK) {
            written = span.len; /* reset: nobody wants the echo */
        }
        a->received += written;
        leat_stream_consume(stream, written);
    }
    if (leat_stream_recv_done(stream)) {
        leat_stream_finish(stream);
    }
}

const leat_conn_events leat_echo_client_events = {
    .connected = on_connected,
    .stream_opened = on_opened,
    .stream_readable = read_all,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
    .stream_closed = on_stream_closed,
    .streams_available = on_available,
    .token = on_token,
    .closed = on_closed,
};

const leat_conn_events leat_echo_server_events = {
    .connected = on_connected,
    .stream_opened = on_opened,
    .stream_readable = echo_all,
    .stream_writable = echo_all,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
    .stream_closed = on_stream_closed,
    .closed = on_closed,
};

void leat_echo_prepare(leat_echo *e)
{
    memset(e, 0, sizeof(*e));
    leat_pair_setup_init(&e->setup);
    e->setup.server.events = &leat_echo_server_events;
    e->setup.server.user = &e->server;
}

void leat_echo_begin(leat_echo *e)
{
    leat_pair_init(&e->pair, &e->setup);
    leat_pair_connect(&e->pair, &e->setup, &leat_echo_client_events, &e->client);
}

bool leat_echo_client_connected(void *arg)
{
    return ((leat_echo *)arg)->client.connected > 0;
}

bool leat_echo_both_connected(void *arg)
{
    leat_echo *e = arg;

    return e->client.connected && e->server.connected;
}

bool leat_echo_both_closed(void *arg)
{
    leat_echo *e = arg;

    return e->client.closed && e->server.closed;
}

bool leat_echo_client_closed(void *arg)
{
    return ((leat_echo *)arg)->client.closed > 0;
}

void leat_echo_connect(leat_echo *e)
{
    leat_echo_begin(e);
    assert_true(leat_pair_run(&e->pair, leat_echo_both_connected, e, 5 * LEAT_SECOND));
}

void leat_echo_settle(leat_echo *e, leat_time time)
{
    leat_pair_run(&e->pair, NULL, NULL, time);
}

void leat_echo_find_size(leat_echo *e)
{
    leat_conn *conn[] = {e->pair.conn, leat_echo_server_conn(e)};

    leat_echo_settle(e, LEAT_SECOND);
    for (int i = 0; i < 2; i++) {
        assert_true(conn[i]->confirmed);
        leat_mtu_enable(&conn[i]->mtu);
        leat_conn_want_send(conn[i]);
    }
    leat_echo_settle(e, LEAT_SECOND);
}

void leat_echo_establish(leat_echo *e)
{
    leat_echo_prepare(e);
    leat_echo_connect(e);
    leat_echo_find_size(e);
}

void leat_echo_pass(leat_echo *e, leat_time time)
{
    leat_time until = e->pair.now + time;

    leat_pair_run(&e->pair, NULL, NULL, time);
    e->pair.now = until;
    leat_ctx_set_now(e->pair.ctx, until);
}

leat_conn *leat_echo_server_conn(leat_echo *e)
{
    return LEAT_CONTAINER_OF(leat_list_first(&e->pair.server->conns), leat_conn, host_link);
}

void leat_echo_write(leat_echo *e, size_t n)
{
    static const uint8_t data[100000];
    leat_stream *stream;
    size_t written;

    assert_true(n <= sizeof(data));
    assert_int_equal(leat_stream_open(e->pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, n, &written), LEAT_OK);
    assert_int_equal(written, n);
}

static bool client_end(void *arg)
{
    return ((leat_echo *)arg)->client.end;
}

void leat_echo_bytes(leat_echo *e, size_t n, leat_time timeout)
{
    static uint8_t data[4096];
    size_t sent = 0, before = e->client.received;
    leat_time until = e->pair.now + timeout;
    leat_stream *stream;

    e->client.end = false;
    assert_int_equal(leat_stream_open(e->pair.conn, true, &stream), LEAT_OK);
    while (sent < n) {
        size_t want = n - sent < sizeof(data) ? n - sent : sizeof(data);
        size_t written = 0;
        leat_err err = leat_stream_write(stream, data, want, &written);

        sent += written;
        if (err == LEAT_ERR_BLOCKED) {
            assert_true(leat_pair_step(&e->pair, until));
        } else {
            assert_int_equal(err, LEAT_OK);
        }
    }
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    assert_true(leat_pair_run(&e->pair, client_end, e, timeout));
    assert_int_equal(e->client.received - before, n);
}

void leat_echo_finish(leat_echo *e)
{
    if (!e->client.closed) {
        leat_conn_close(e->pair.conn, 0, (leat_span){NULL, 0});
    }
    assert_true(leat_pair_run(&e->pair, leat_echo_both_closed, e, 60 * LEAT_SECOND));
    leat_echo_settle(e, 60 * LEAT_SECOND);
    assert_int_equal(leat_endpoint_conns(e->pair.client), 0);
    assert_int_equal(leat_endpoint_conns(e->pair.server), 0);
    leat_pair_free(&e->pair);
}
