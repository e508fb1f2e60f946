/* tests/unit/conn/early_rig.c: see early_rig.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "early_rig.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct early_run t;

int64_t clock_skew;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *at)
{
    int result = (int)syscall(SYS_clock_gettime, clock, at);

    at->tv_sec += clock == CLOCK_REALTIME ? clock_skew : 0;
    return result;
}

static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    (void)conn, (void)user;
    assert_true(session.len <= sizeof(t.session));
    memcpy(t.session, session.data, session.len);
    t.session_len = session.len;
    t.tickets++;
}

static void on_early(leat_conn *conn, void *user)
{
    t.early_told++;
    ((leat_echo_app *)user)->conn = conn;
    assert_int_equal(leat_conn_early(conn), LEAT_EARLY_ACCEPTED);
    assert_int_equal(leat_conn_alpn(conn).len, 9);
    assert_true(leat_conn_server_name(conn).len == 9 || t.echo.pair.memory_fails);
    assert_false(leat_conn_is_connected(conn));
}

static void on_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    t.opened_before_connected += !leat_conn_is_connected(conn);
    leat_echo_server_events.stream_opened(conn, stream, user);
}

leat_shared *make_shared(uint8_t seed, const uint8_t *ticket_key)
{
    leat_shared_settings settings;
    leat_shared *shared;

    leat_shared_settings_init(&settings);
    settings.seed[0] = seed;
    settings.early_tickets = 100;
    if (ticket_key) {
        settings.ticket_key = (leat_span){ticket_key, LEAT_TLS_TICKET_KEY};
    }
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
    return shared;
}

void prepare_with(const uint8_t *ticket_key)
{
    memset(&t, 0, sizeof(t));
    t.shared = make_shared(1, ticket_key);
    leat_echo_prepare(&t.echo);
    t.client_events = leat_echo_client_events;
    t.client_events.ticket = on_ticket;
    t.server_events = leat_echo_server_events;
    t.server_events.early = on_early;
    t.server_events.stream_opened = on_opened;
    t.echo.setup.server.events = &t.server_events;
    t.echo.setup.server.shared = t.shared;
    t.echo.setup.server.conn.early_data = true;
    t.echo.setup.conn.early_data = true;
    t.echo.setup.tickets = 1;
}

void prepare(void)
{
    prepare_with(NULL);
}

bool both_connected(void *arg)
{
    (void)arg;
    return leat_echo_both_connected(&t.echo);
}

void connect_again(void)
{
    memset(&t.echo.client, 0, sizeof(t.echo.client));
    memset(&t.echo.server, 0, sizeof(t.echo.server));
    t.tickets = t.early_told = t.opened_before_connected = 0;
    leat_pair_connect(&t.echo.pair, &t.echo.setup, &t.client_events, &t.echo.client);
}

void close_it(void)
{
    leat_conn_close(t.echo.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&t.echo.pair, leat_echo_both_closed, &t.echo, 60 * LEAT_SECOND));
    leat_echo_settle(&t.echo, 10 * LEAT_SECOND);
}

/* A connection that leaves a session behind. */
void first_connection(void)
{
    leat_pair_init(&t.echo.pair, &t.echo.setup);
    connect_again();
    assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_NONE);
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
    leat_echo_settle(&t.echo, LEAT_SECOND);
    assert_int_equal(t.tickets, 1);
    assert_false(leat_conn_resumed(t.echo.pair.conn));
    close_it();
    t.echo.pair.session = (leat_span){t.session, t.session_len};
}

void begin(void)
{
    prepare();
    first_connection();
}

/* The server starts anew. */
void another_server(leat_shared *shared)
{
    leat_endpoint_settings settings = t.echo.setup.server;

    settings.events_sink = t.echo.pair.server->host.sink;
    leat_endpoint_free(t.echo.pair.server);
    settings.server_tls = t.echo.pair.server_tls;
    settings.shared = shared;
    assert_int_equal(leat_endpoint_new(t.echo.pair.ctx, &settings, &t.echo.pair.server), LEAT_OK);
}

void finish(void)
{
    leat_pair_free(&t.echo.pair);
    leat_shared_free(t.shared);
}

struct early_asked asked[STREAMS];
size_t open_count;
leat_time answered_at;

static uint8_t pattern(size_t stream, size_t at)
{
    return (uint8_t)(stream * 37 + at * 11 + (at >> 8));
}

static void on_answer(leat_conn *conn, leat_stream *stream, void *user)
{
    size_t i = (size_t)(uintptr_t)leat_stream_user(stream);
    leat_span span;

    (void)conn, (void)user;
    while ((span = leat_stream_peek(stream)).len > 0) {
        for (size_t k = 0; k < span.len; k++) {
            assert_int_equal(span.data[k], pattern(i, asked[i].got + k));
        }
        asked[i].got += span.len;
        leat_stream_consume(stream, span.len);
    }
}

static void on_answer_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn, (void)user;
    asked[(size_t)(uintptr_t)leat_stream_user(stream)].closed = true;
    answered_at = t.echo.pair.now;
}

void ask(size_t n, size_t size)
{
    memset(asked, 0, sizeof(asked));
    open_count = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t data[STREAM_SIZE];
        size_t written;

        if (leat_stream_open(t.echo.pair.conn, true, &asked[i].stream) != LEAT_OK) {
            return;
        }
        open_count++;
        leat_stream_set_user(asked[i].stream, (void *)(uintptr_t)i);
        for (size_t k = 0; k < size; k++) {
            data[k] = pattern(i, k);
        }
        assert_int_equal(leat_stream_write(asked[i].stream, data, size, &written), LEAT_OK);
        assert_int_equal(written, size);
        assert_int_equal(leat_stream_finish(asked[i].stream), LEAT_OK);
    }
}

bool all_answered(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < open_count; i++) {
        if (!asked[i].closed) {
            return false;
        }
    }
    return true;
}

void answers_come(leat_time within, size_t size)
{
    assert_true(leat_pair_run(&t.echo.pair, all_answered, NULL, within));
    for (size_t i = 0; i < open_count; i++) {
        assert_int_equal(asked[i].got, size);
    }
    /* Not a byte twice. */
    assert_int_equal(t.echo.server.received, open_count * size);
    assert_int_equal(t.echo.server.opened, open_count);
}

void connect_and_ask(size_t n)
{
    t.client_events.stream_readable = on_answer;
    t.client_events.stream_closed = on_answer_closed;
    connect_again();
    assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_OFFERED);
    assert_int_equal(leat_conn_alpn(t.echo.pair.conn).len, 9);
    ask(n, STREAM_SIZE);
}
