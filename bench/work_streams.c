/* bench/work_streams.c: `leat bench streams`: request and answer, a stream each.
 *
 * So many streams are open at once (--concurrent): the client sends --up bytes and the end, the
 * server reads them and answers with --down bytes and the end; when the client has read that, it
 * opens the next. Round trips are from opening to the end of the answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

typedef struct slot {
    leat_time opened;
    uint64_t left; /* to be written */
} slot;

typedef struct streams {
    leat_bench_world world;
    leat_conn *conn;
    uint64_t up, down;
    bool connected[2], done, failed, counting;
    uint64_t target, opened, closed; /* of the present run */
    slot *slots;                     /* one for each stream that is open, a stack of free ones */
    slot **free;
    size_t free_count;
    double *round_trips; /* nanoseconds */
    size_t round_trip_count;
} streams;

static uint8_t content[65536];

/* Writes what is left of `left` bytes and the end; false: there is no room now. */
static bool write_rest(leat_stream *stream, uint64_t *left)
{
    for (;;) {
        size_t want = *left < sizeof content ? (size_t)*left : sizeof content;
        size_t written = 0;
        leat_err err = want ? leat_stream_write(stream, content, want, &written) : LEAT_OK;

        *left -= written;
        if (err != LEAT_OK || written < want) {
            return false;
        }
        if (*left == 0) {
            leat_bench_must(leat_stream_finish(stream), "finish");
            return true;
        }
    }
}

static void read_all(leat_stream *stream)
{
    leat_span span;

    while ((span = leat_stream_peek(stream)).len > 0) {
        leat_stream_consume(stream, span.len);
    }
}

/* ---- the server: what is left to answer is the stream's user pointer, plus one ---- */

static void server_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((streams *)user)->connected[LEAT_BENCH_SERVER] = true;
}

static void server_answer(leat_stream *stream, uint64_t left)
{
    bool all = write_rest(stream, &left);

    leat_stream_set_user(stream, all ? NULL : (void *)(uintptr_t)(left + 1));
}

static void server_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    read_all(stream);
    if (leat_stream_recv_done(stream)) {
        server_answer(stream, ((streams *)user)->down);
    }
}

static void server_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    uintptr_t left = (uintptr_t)leat_stream_user(stream);

    (void)conn, (void)user;
    if (left) {
        server_answer(stream, left - 1);
    }
}

static const leat_conn_events server_events = {
    .connected = server_connected,
    .stream_readable = server_readable,
    .stream_writable = server_writable,
};

/* ---- the client ---- */

static void open_some(streams *s)
{
    while (s->free_count > 0 && s->opened < s->target) {
        leat_stream *stream;
        leat_err err = leat_stream_open(s->conn, true, &stream);
        slot *mine;

        if (err == LEAT_ERR_BLOCKED) {
            return; /* streams_available will tell */
        }
        leat_bench_must(err, "stream");
        s->opened++;
        mine = s->free[--s->free_count];
        *mine = (slot){leat_bench_clock() + s->world.skipped, s->up};
        leat_stream_set_user(stream, mine);
        write_rest(stream, &mine->left);
    }
}

static void client_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((streams *)user)->connected[LEAT_BENCH_CLIENT] = true;
}

static void client_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    streams *s = user;
    slot *mine = leat_stream_user(stream);

    (void)conn;
    read_all(stream);
    if (!leat_stream_recv_done(stream) || !mine) {
        return;
    }
    if (s->counting) {
        s->round_trips[s->round_trip_count++] =
            (double)(leat_bench_clock() + s->world.skipped - mine->opened);
    }
    leat_stream_set_user(stream, NULL);
    s->free[s->free_count++] = mine;
    open_some(s);
}

static void client_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    slot *mine = leat_stream_user(stream);

    (void)conn, (void)user;
    if (mine && mine->left) {
        write_rest(stream, &mine->left);
    }
}

static void client_available(leat_conn *conn, bool bidi, void *user)
{
    (void)conn, (void)bidi;
    open_some(user);
}

static void client_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    streams *s = user;

    (void)conn, (void)stream;
    s->closed++;
    s->done = s->done || s->closed == s->target;
}

static void client_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    streams *s = user;

    (void)conn, (void)info;
    s->failed = s->done = true;
    s->connected[LEAT_BENCH_CLIENT] = s->connected[LEAT_BENCH_SERVER] = true; /* nobody waits */
}

static const leat_conn_events client_events = {
    .connected = client_connected,
    .stream_readable = client_readable,
    .stream_writable = client_writable,
    .streams_available = client_available,
    .stream_closed = client_stream_closed,
    .closed = client_closed,
};

/* ---- the work ---- */

/* What was waited for has come, or the connection's end. */
static void must_be_open(const streams *s)
{
    if (s->failed) {
        leat_bench_fail("the connection was closed");
    }
}

static void run(streams *s, uint64_t count)
{
    s->target = count;
    s->opened = s->closed = 0;
    s->done = false;
    open_some(s);
    leat_bench_world_until(&s->world, &s->done, "streams");
    must_be_open(s);
}

static void make_room(streams *s, uint64_t concurrent, uint64_t count)
{
    s->slots = calloc(concurrent, sizeof *s->slots);
    s->free = calloc(concurrent, sizeof *s->free);
    s->round_trips = calloc(count, sizeof *s->round_trips);
    if (!s->slots || !s->free || !s->round_trips) {
        leat_bench_fail("out of memory");
    }
    memset(s->round_trips, 1, count * sizeof *s->round_trips); /* touched before it counts */
    for (uint64_t i = 0; i < concurrent; i++) {
        s->free[s->free_count++] = &s->slots[i];
    }
}

static void report(leat_bench *b, streams *s, uint64_t count, uint64_t concurrent)
{
    char name[LEAT_BENCH_NAME], up[LEAT_BENCH_SIZE_TEXT], down[LEAT_BENCH_SIZE_TEXT];
    leat_bench_row *row;

    snprintf(name, sizeof name, "%s up, %s down, %llu at once", leat_bench_size_text(s->up, up),
             leat_bench_size_text(s->down, down), (unsigned long long)concurrent);
    row = leat_bench_stop(b, name, count);
    leat_bench_figure_add(row, "p50_ns",
                          leat_bench_quantile(s->round_trips, s->round_trip_count, 0.5));
    leat_bench_figure_add(row, "p99_ns",
                          leat_bench_quantile(s->round_trips, s->round_trip_count, 0.99));
    leat_bench_figure_add(row, "p99_9_ns",
                          leat_bench_quantile(s->round_trips, s->round_trip_count, 0.999));
}

void leat_bench_streams(leat_bench *b)
{
    static streams s;
    const leat_bench_options *o = b->options;
    uint64_t count = leat_bench_or(o->count, 200000);
    uint64_t concurrent = leat_bench_or(o->concurrent, 10);

    s = (streams){.up = leat_bench_or(o->up, 100), .down = leat_bench_or(o->down, 100)};
    make_room(&s, concurrent, count);
    leat_bench_world_open(&s.world, o, &server_events, &s);
    s.conn = leat_bench_world_connect(&s.world, &client_events, &s);
    leat_bench_world_until(&s.world, &s.connected[LEAT_BENCH_CLIENT], "handshake");
    leat_bench_world_until(&s.world, &s.connected[LEAT_BENCH_SERVER], "handshake");
    must_be_open(&s);
    leat_bench_world_settle(&s.world, LEAT_SECOND);
    run(&s, leat_bench_or(o->warm_up, count / 10 + concurrent));
    s.counting = true;
    leat_bench_start(b);
    run(&s, count);
    report(b, &s, count, concurrent);
    leat_bench_world_close(&s.world);
    free(s.slots);
    free(s.free);
    free(s.round_trips);
}
