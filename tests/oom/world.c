/* tests/oom/world.c: see world.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"

static uint8_t pattern(uint64_t id, size_t at)
{
    return (uint8_t)(id * 31 + at * 7 + at / 251);
}

static oom_world *world_of(void *user)
{
    return user;
}

/* ---- what either side is told ---- */

static void on_closed(oom_side *side, const leat_close_info *info)
{
    side->closed++;
    side->conn = NULL;
    side->info = *info;
    side->info.detail = NULL;
    side->info.reason = (leat_span){NULL, 0};
}

/* ---- the client ---- */

static void pump(oom_stream *s)
{
    while (s->stream && s->end == OOM_OPEN && !s->finished) {
        uint8_t piece[1500];
        size_t n = s->size - s->written < sizeof(piece) ? s->size - s->written : sizeof(piece);
        size_t written = 0;
        leat_err err;

        for (size_t i = 0; i < n; i++) {
            piece[i] = pattern(leat_stream_id(s->stream), s->written + i);
        }
        if (n == 0) {
            assert_int_equal(leat_stream_finish(s->stream), LEAT_OK);
            s->finished = true;
            return;
        }
        err = leat_stream_write(s->stream, piece, n, &written);
        s->written += written;
        if (err == LEAT_ERR_BLOCKED || err == LEAT_ERR_CLOSED) {
            return;
        }
        if (err != LEAT_OK) { /* the application gives the stream up */
            assert_int_equal(err, LEAT_ERR_NOMEM);
            leat_stream_reset(s->stream, 1);
            leat_stream_stop(s->stream, 1);
            s->end = OOM_RESET;
        }
    }
}

static void client_connected(leat_conn *conn, void *user)
{
    oom_world *w = world_of(user);

    w->client.conn = conn;
    assert_true(leat_conn_alpn(conn).len > 0); /* which was copied */
    w->client.connected++;
}

static void client_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    oom_stream *s = leat_stream_user(stream);
    leat_span span;

    (void)conn, (void)user;
    if (!s) {
        return;
    }
    while ((span = leat_stream_peek(stream)).len > 0) {
        for (size_t i = 0; i < span.len; i++) {
            assert_int_equal(span.data[i], pattern(leat_stream_id(stream), s->received + i));
        }
        s->received += span.len;
        leat_stream_consume(stream, span.len);
    }
    if (leat_stream_recv_whole(stream) && s->end == OOM_OPEN) {
        assert_int_equal(s->received, s->size);
        s->end = OOM_WHOLE;
    }
}

static void client_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn, (void)user;
    if (leat_stream_user(stream)) {
        pump(leat_stream_user(stream));
    }
}

static void client_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    oom_stream *s = leat_stream_user(stream);

    (void)conn, (void)user;
    assert_int_equal(code, 1);
    if (s && s->end == OOM_OPEN) {
        s->end = OOM_RESET;
        leat_stream_reset(stream, 1);
    }
}

static void client_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    oom_stream *s = leat_stream_user(stream);

    (void)conn, (void)user;
    if (s) {
        s->stream = NULL;
        s->end = s->end == OOM_OPEN ? OOM_GONE : s->end;
    }
}

static void client_datagram(leat_conn *conn, leat_span data, void *user)
{
    (void)conn, (void)data;
    world_of(user)->client.datagrams++;
}

static void client_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    oom_world *w = world_of(user);

    (void)conn;
    on_closed(&w->client, info);
    w->pair.conn = NULL;
}

const leat_conn_events leat_oom_client_events = {
    .connected = client_connected,
    .stream_readable = client_readable,
    .stream_writable = client_writable,
    .stream_reset = client_reset,
    .stream_stopped = client_reset,
    .stream_closed = client_stream_closed,
    .datagram = client_datagram,
    .closed = client_closed,
};

/* ---- the server: sends back what comes ---- */

static void server_connected(leat_conn *conn, void *user)
{
    world_of(user)->server.conn = conn;
    assert_true(leat_conn_alpn(conn).len > 0);
    world_of(user)->server.connected++;
}

static void server_echo(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_span span;

    (void)conn, (void)user;
    while ((span = leat_stream_peek(stream)).len > 0) {
        size_t written = 0;
        leat_err err = leat_stream_write(stream, span.data, span.len, &written);

        if (err == LEAT_ERR_BLOCKED || err == LEAT_ERR_CLOSED) {
            return;
        }
        if (err != LEAT_OK) {
            leat_stream_reset(stream, 1);
            leat_stream_stop(stream, 1);
            return;
        }
        leat_stream_consume(stream, written);
    }
    if (leat_stream_recv_whole(stream)) {
        leat_stream_finish(stream);
    }
}

static void server_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)user, (void)code;
    leat_stream_reset(stream, 1);
}

static void server_datagram(leat_conn *conn, leat_span data, void *user)
{
    world_of(user)->server.datagrams++;
    leat_conn_send_datagram(conn, data, NULL);
}

static void server_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    on_closed(&world_of(user)->server, info);
}

const leat_conn_events leat_oom_server_events = {
    .connected = server_connected,
    .stream_readable = server_echo,
    .stream_writable = server_echo,
    .stream_reset = server_reset,
    .datagram = server_datagram,
    .closed = server_closed,
};

/* ---- for scenarios ---- */

void leat_oom_connect(oom_world *w)
{
    leat_connect how = {
        .remote = w->pair.server_addr,
        .local = w->pair.client_addr,
        .server_name = "localhost",
        .tls = w->pair.client_tls,
        .settings = &w->setup.conn,
        .events = &leat_oom_client_events,
        .user = w,
    };
    leat_err err = leat_conn_connect(w->pair.client, &how, &w->pair.conn);

    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM || err == LEAT_ERR_TLS);
    if (err != LEAT_OK) {
        w->failing = true;
        w->pair.conn = NULL;
    }
}

void leat_oom_open(oom_world *w, size_t size)
{
    oom_stream *s;
    leat_stream *stream;
    leat_err err;

    if (!w->pair.conn) {
        return;
    }
    err = leat_stream_open(w->pair.conn, true, &stream);
    if (err != LEAT_OK) {
        assert_true(err == LEAT_ERR_NOMEM || err == LEAT_ERR_CLOSED || err == LEAT_ERR_STATE);
        return;
    }
    assert_true(w->stream_count < OOM_STREAMS);
    s = &w->streams[w->stream_count++];
    *s = (oom_stream){.world = w, .stream = stream, .size = size};
    leat_stream_set_user(stream, s);
    pump(s);
}

static bool all_over(void *arg)
{
    oom_world *w = arg;
    bool over = true;

    for (size_t i = 0; i < w->stream_count; i++) {
        over = over && w->streams[i].end != OOM_OPEN;
    }
    if (w->client.conn) {
        leat_conn_check(w->client.conn);
    }
    if (w->server.conn) {
        leat_conn_check(w->server.conn);
    }
    return over;
}

static bool never(void *arg)
{
    all_over(arg);
    return false;
}

void leat_oom_run(oom_world *w, leat_time timeout)
{
    if (w->stream_count) {
        leat_pair_run(&w->pair, all_over, w, timeout);
    } else {
        leat_pair_run(&w->pair, never, w, timeout < 5 * LEAT_SECOND ? timeout : 5 * LEAT_SECOND);
    }
}

/* ---- trying ---- */

static bool lose_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    oom_world *w = pair->user;

    (void)to_server, (void)data, (void)len;
    w->passed++;
    return w->drop == 0 || w->passed % w->drop != 0;
}

static bool both_connected(void *arg)
{
    oom_world *w = arg;

    return w->client.connected && w->server.connected;
}

static bool both_closed(void *arg)
{
    oom_world *w = arg;

    return leat_endpoint_conns(w->pair.client) == 0 && leat_endpoint_conns(w->pair.server) == 0;
}

static void begin(oom_world *w, const oom_scenario *scenario)
{
    memset(w, 0, sizeof(*w));
    leat_pair_setup_init(&w->setup);
    w->setup.server.events = &leat_oom_server_events;
    w->setup.server.user = w;
    w->setup.conn.udp_payload = 1200;
    w->setup.server.conn.udp_payload = 1200;
    w->setup.delay = LEAT_MILLISECOND;
    if (scenario->prepare) {
        scenario->prepare(w);
    }
    leat_pair_init(&w->pair, &w->setup);
    w->pair.memory_fails = true;
    w->pair.user = w;
    w->pair.filter = lose_some;
    if (scenario->connected) {
        leat_oom_connect(w);
        assert_true(leat_pair_run(&w->pair, both_connected, w, 5 * LEAT_SECOND));
        leat_pair_run(&w->pair, NULL, NULL, LEAT_SECOND / 2);
    }
}

/* A connection ends for a reason that is said. */
static void judge_close(const oom_world *w, const oom_side *side)
{
    if (side->closed == 0) {
        return;
    }
    assert_int_equal(side->closed, 1);
    if (!w->lasting && w->failing) {
        assert_true(side->info.kind == LEAT_CLOSE_LOCAL || side->info.kind == LEAT_CLOSE_PEER ||
                    side->info.kind == LEAT_CLOSE_RESET || side->info.kind == LEAT_CLOSE_DROPPED);
    }
    if (side->info.kind == LEAT_CLOSE_LOCAL && !side->info.application) {
        assert_true(side->info.code != LEAT_TE_NO_ERROR);
    }
}

/* What lives works. */
static void judge_living(oom_world *w)
{
    if (w->pair.conn && w->client.connected && leat_conn_is_connected(w->pair.conn)) {
        oom_stream *s;

        leat_oom_open(w, 5000);
        s = &w->streams[w->stream_count - 1];
        leat_oom_run(w, 20 * LEAT_SECOND);
        assert_true(s->end == OOM_WHOLE || w->client.closed);
    }
}

static void end(oom_world *w)
{
    leat_mem_stats stats;

    if (w->pair.conn) {
        leat_conn_close(w->pair.conn, 0, (leat_span){NULL, 0});
    }
    assert_true(leat_pair_run(&w->pair, both_closed, w, 100 * LEAT_SECOND));
    memset(&w->client, 0, sizeof(w->client));
    memset(&w->server, 0, sizeof(w->server));
    w->stream_count = 0;
    w->pair.memory_fails = false;
    w->drop = 0;
    /* Nothing that failed before stands in the way of a new connection. */
    leat_oom_connect(w);
    assert_true(leat_pair_run(&w->pair, both_connected, w, 5 * LEAT_SECOND));
    leat_oom_open(w, 20000);
    leat_oom_run(w, 5 * LEAT_SECOND);
    assert_int_equal(w->streams[0].end, OOM_WHOLE);
    leat_conn_close(w->pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&w->pair, both_closed, w, 100 * LEAT_SECOND));
    leat_pair_run(&w->pair, NULL, NULL, 100 * LEAT_SECOND); /* closing periods, and NATs' ways */
    leat_mem_stats_get(leat_ctx_mem(w->pair.ctx), &stats);
    assert_int_equal(stats.buf_live, 0);
    leat_mem_check(leat_ctx_mem(w->pair.ctx));
    leat_pair_free(&w->pair); /* asserts that all objects came back */
}

static uint64_t try_one(const oom_scenario *scenario, oom_arm_fn *arm, uint64_t nth, bool lasting)
{
    static oom_world world;
    oom_world *w = &world;
    uint64_t hits;

    begin(w, scenario);
    w->lasting = lasting;
    arm(w, nth, lasting);
    scenario->play(w);
    hits = arm(w, 0, false);
    w->failing = w->failing || hits > 0;
    /* What waited for memory gets it now, and by a good way: after long failures the next probes
     * are half a minute apart, and nothing should hang on which of them the way would lose. */
    w->drop = 0;
    leat_oom_run(w, 60 * LEAT_SECOND);
    if (getenv("LEAT_OOM_TRACE")) {
        print_message(
            "n %llu, hits %llu, client closed %u (%d, %#llx), server closed %u (%d, %#llx)\n",
            (unsigned long long)nth, (unsigned long long)hits, w->client.closed,
            w->client.info.kind, (unsigned long long)w->client.info.code, w->server.closed,
            w->server.info.kind, (unsigned long long)w->server.info.code);
    }
    for (size_t i = 0; i < w->stream_count; i++) {
        assert_true(w->streams[i].end != OOM_OPEN);
        assert_true(hits || scenario->closes || w->streams[i].end == OOM_WHOLE);
    }
    judge_close(w, &w->client);
    judge_close(w, &w->server);
    if (scenario->judge) {
        scenario->judge(w, hits == 0);
    }
    judge_living(w);
    end(w);
    return hits;
}

static uint64_t order_fault(oom_world *w, leat_mem_fault kind, uint64_t nth, bool lasting)
{
    leat_mem *mem = leat_ctx_mem(w->pair.ctx);
    uint64_t hits = leat_mem_fault_count(mem);

    leat_mem_fault_set(mem, nth ? kind : LEAT_MEM_FAULT_NONE, nth, lasting);
    return hits;
}

static uint64_t order_take(oom_world *w, uint64_t nth, bool lasting)
{
    return order_fault(w, LEAT_MEM_FAULT_TAKE, nth, lasting);
}

static uint64_t order_growth(oom_world *w, uint64_t nth, bool lasting)
{
    return order_fault(w, LEAT_MEM_FAULT_GROWTH, nth, lasting);
}

uint64_t leat_oom_try_with(const oom_scenario *scenario, oom_arm_fn *arm, bool lasting)
{
    uint64_t nth = 1, step = scenario->step ? scenario->step : 1;

    while (try_one(scenario, arm, nth, lasting) > 0) {
        nth += step;
    }
    return nth - 1;
}

uint64_t leat_oom_try(const oom_scenario *scenario, leat_mem_fault kind, bool lasting)
{
    return leat_oom_try_with(scenario, kind == LEAT_MEM_FAULT_TAKE ? order_take : order_growth,
                             lasting);
}
