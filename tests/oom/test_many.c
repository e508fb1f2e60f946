/* tests/oom/test_many.c: memory fails while several connections of the same endpoints shake hands
 * and carry data at once: what one lacks is no other's end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "world.h"

enum { MANY = 4, BYTES = 6000 };

typedef struct one {
    leat_conn *conn; /* NULL: none, or closed */
    bool asked, connected, closed;
    size_t written, received;
    bool whole; /* all came back */
    bool over;  /* or the stream ended in another way */
} one;

static one many[MANY];
static leat_conn_events server_events; /* the echo, which does not note whose connection it is */

/* ---- client ---- */

static void give_up(one *o, leat_stream *stream)
{
    o->over = true;
    leat_stream_reset(stream, 1);
    leat_stream_stop(stream, 1);
}

static void pump(one *o, leat_stream *stream)
{
    static const uint8_t bytes[BYTES];
    size_t n = 0;
    leat_err err = LEAT_OK;

    if (o->written < BYTES) {
        err = leat_stream_write(stream, bytes, BYTES - o->written, &n);
        o->written += n;
    }
    if (o->written == BYTES) {
        leat_stream_finish(stream);
    } else if (err == LEAT_ERR_NOMEM) {
        give_up(o, stream);
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    one *o = user;
    leat_stream *stream;
    leat_err err;

    o->connected = true;
    err = leat_stream_open(conn, true, &stream);
    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
    if (err == LEAT_OK) {
        pump(o, stream);
    } else {
        o->over = true;
    }
}

static void on_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    pump(user, stream);
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    one *o = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        o->received += span.len;
        leat_stream_consume(stream, span.len);
    }
    if (leat_stream_recv_whole(stream)) {
        assert_true(o->received == BYTES || o->over);
        o->whole = o->received == BYTES;
    }
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)code;
    give_up(user, stream);
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    one *o = user;

    (void)conn;
    assert_false(o->closed);
    assert_true(info->kind != LEAT_CLOSE_VERSION);
    o->closed = true;
    o->conn = NULL;
}

static const leat_conn_events client_events = {
    .connected = on_connected,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .stream_reset = on_reset,
    .stream_stopped = on_reset,
    .closed = on_closed,
};

/* ---- server ---- */

static void server_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((oom_world *)user)->server.connected++;
}

static void server_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn, (void)info, (void)user;
}

static void prepare(oom_world *w)
{
    server_events = leat_oom_server_events;
    server_events.connected = server_connected;
    server_events.closed = server_closed;
    w->setup.server.events = &server_events;
}

/* ---- both ---- */

static void connect_one(oom_world *w, one *o)
{
    leat_connect how = {.remote = w->pair.server_addr,
                        .local = w->pair.client_addr,
                        .server_name = "localhost",
                        .tls = w->pair.client_tls,
                        .settings = &w->setup.conn,
                        .events = &client_events,
                        .user = o};
    leat_err err = leat_conn_connect(w->pair.client, &how, &o->conn);

    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM || err == LEAT_ERR_TLS);
    o->asked = err == LEAT_OK;
    o->conn = o->asked ? o->conn : NULL;
}

static bool all_over(void *arg)
{
    bool over = true;

    (void)arg;
    for (size_t i = 0; i < MANY; i++) {
        const one *o = &many[i];

        if (o->conn) {
            leat_conn_check(o->conn);
        }
        over = over && (!o->asked || o->closed || o->whole || o->over);
    }
    return over;
}

static void play(oom_world *w)
{
    memset(many, 0, sizeof(many));
    w->drop = 13;
    for (size_t i = 0; i < MANY; i++) {
        connect_one(w, &many[i]);
    }
    leat_oom_open(w, 20000); /* and one that was there before */
    leat_pair_run(&w->pair, all_over, w, 3 * LEAT_SECOND);
}

/* Each one ends in a way that it is told of. */
static void judge(oom_world *w, bool whole)
{
    w->drop = 0;
    assert_true(leat_pair_run(&w->pair, all_over, w, 100 * LEAT_SECOND));
    for (size_t i = 0; i < MANY; i++) {
        assert_true(!whole || many[i].whole);
        if (many[i].conn) {
            leat_conn_close(many[i].conn, 0, (leat_span){NULL, 0});
        }
    }
}

static void memory_fails_among_several_connections(void **state)
{
    static const oom_scenario several = {
        .prepare = prepare, .connected = true, .play = play, .judge = judge, .step = 3};

    (void)state;
    assert_true(leat_oom_try(&several, LEAT_MEM_FAULT_TAKE, false) > 100);
    leat_oom_try(&several, LEAT_MEM_FAULT_TAKE, true);
    leat_oom_try(&several, LEAT_MEM_FAULT_GROWTH, false);
    leat_oom_try(&several, LEAT_MEM_FAULT_GROWTH, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_among_several_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
