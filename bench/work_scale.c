/* bench/work_scale.c: `leat bench scale`: whether a packet costs the same among many.
 *
 * A task of the client's writes 16 messages (--burst), and is scheduled again when the server has
 * read them; the next 16 go on the next connection, one stream each, and then the same with the
 * next streams of one connection. The same number of messages is sent with 1, 100 and 10,000
 * connections or streams (--concurrent: with that many alone), so each row but the first shows what
 * it costs to have touched something else meanwhile: caches, the keys that must be expanded anew,
 * tables, lists, timers.
 *
 * Under `valgrind --tool=callgrind --instr-atstart=no` the messages that are measured are counted,
 * and nothing else: bench/linear.py holds the counts together.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "world.h"

#if __has_include(<valgrind/callgrind.h>)
#    include <valgrind/callgrind.h>
#else
#    define CALLGRIND_START_INSTRUMENTATION
#    define CALLGRIND_STOP_INSTRUMENTATION
#endif

typedef struct scale {
    leat_bench_world world;
    leat_conn **conns;
    leat_stream **streams; /* where messages go, in turn */
    size_t conn_count, stream_count;
    size_t next;       /* of the streams */
    bool each_message; /* goes on the next stream; else each burst */
    leat_task hop;
    uint64_t size, burst;
    uint64_t left;      /* messages still to be written */
    uint64_t unread;    /* bytes that the server has still to read */
    uint64_t connected; /* ends, up to the present target */
    uint64_t target;
    bool all, done, failed;
} scale;

/* Messages at least that are not counted. What is sent stays in its slab until the next ACK of its
 * connection, so how many slabs there are at once depends on where in them the bursts of the
 * connections begin; by then those have begun everywhere. */
#define WARM_UP_LEAST 4096

static uint8_t content[65536];

static void on_connected(leat_conn *conn, void *user)
{
    scale *s = user;

    (void)conn;
    s->connected++;
    s->all = s->connected == s->target;
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    scale *s = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        s->unread -= span.len;
        leat_stream_consume(stream, span.len);
    }
    s->done = s->done || s->unread == 0;
    if (s->left > 0 && s->unread == s->left * s->size) {
        leat_ctx_run_soon(s->world.ctx, &s->hop);
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    scale *s = user;

    (void)conn, (void)info;
    s->failed = s->all = s->done = true;
}

static const leat_conn_events server_events = {
    .connected = on_connected,
    .stream_readable = on_readable,
    .closed = on_closed,
};

static const leat_conn_events client_events = {
    .connected = on_connected,
    .closed = on_closed,
};

static void must_be_open(const scale *s)
{
    if (s->failed) {
        leat_bench_fail("a connection was closed");
    }
}

/* The next burst is written when this one was read, so nothing piles up where a connection may not
 * send yet: its first windows are smaller than a burst, and its pacer goes by a round trip that at
 * first holds the time an ACK was waited for. Flow control's windows are far larger than a burst: a
 * message always finds room. */
static void hop(leat_task *task)
{
    scale *s = LEAT_CONTAINER_OF(task, scale, hop);

    for (uint64_t i = 0; i < s->burst && s->left > 0; i++) {
        size_t written;

        leat_bench_must(leat_stream_write(s->streams[s->next], content, (size_t)s->size, &written),
                        "write");
        if (written < s->size) {
            leat_bench_fail("a burst is more than a stream takes at once");
        }
        s->left--;
        if (s->each_message || i + 1 == s->burst) {
            s->next = (s->next + 1) % s->stream_count;
        }
    }
}

static void send_messages(scale *s, uint64_t count)
{
    s->left = count;
    s->unread = count * s->size;
    s->done = false;
    leat_ctx_run_soon(s->world.ctx, &s->hop);
    leat_bench_world_until(&s->world, &s->done, "messages");
    must_be_open(s);
}

static void connect_all(scale *s)
{
    enum { AT_ONCE = 16 };

    for (size_t made = 0; made < s->conn_count;) {
        size_t some = s->conn_count - made < AT_ONCE ? s->conn_count - made : AT_ONCE;

        s->connected = 0;
        s->target = 2 * some;
        s->all = false;
        for (size_t i = 0; i < some; i++) {
            s->conns[made++] = leat_bench_world_connect(&s->world, &client_events, s);
        }
        leat_bench_world_until(&s->world, &s->all, "handshakes");
        must_be_open(s);
    }
    leat_bench_world_settle(&s->world, LEAT_SECOND);
}

static void open_streams(scale *s)
{
    for (size_t i = 0; i < s->stream_count; i++) {
        leat_bench_must(leat_stream_open(s->conns[i % s->conn_count], true, &s->streams[i]),
                        "stream");
    }
}

static uint64_t warm_up(const leat_bench_options *o, uint64_t count)
{
    uint64_t tenth = count / 10;

    return leat_bench_or(o->warm_up, tenth > WARM_UP_LEAST ? tenth : WARM_UP_LEAST);
}

static void measure(leat_bench *b, size_t conns, size_t streams, uint64_t count, bool each)
{
    static scale s;
    leat_bench_options options = *b->options, *o = &options;
    size_t most = conns > streams ? conns : streams;
    uint64_t burst = leat_bench_or(o->burst, 16);
    leat_conn_stats_data before = {0}, after = {0};
    char name[LEAT_BENCH_NAME];
    leat_bench_row *row;

    s = (scale){.conn_count = conns,
                .stream_count = most,
                .each_message = each,
                .size = leat_bench_or(o->size, 1200),
                .burst = burst};
    if (s.size > sizeof content) {
        leat_bench_fail("a message has at most %zu bytes", sizeof content);
    }
    s.conns = calloc(conns, sizeof(leat_conn *));
    s.streams = calloc(most, sizeof(leat_stream *));
    if (!s.conns || !s.streams) {
        leat_bench_fail("out of memory");
    }
    options.concurrent = streams; /* the peer allows so many */
    leat_bench_world_open(&s.world, o, &server_events, &s);
    leat_task_init(&s.hop, s.world.ctx, hop);
    connect_all(&s);
    open_streams(&s);
    /* Each stream has carried something before it counts. */
    send_messages(&s, most * (each ? 1 : burst) + warm_up(o, count));
    leat_conn_stats(s.conns[0], &before);
    leat_bench_start(b);
    CALLGRIND_START_INSTRUMENTATION;
    send_messages(&s, count);
    CALLGRIND_STOP_INSTRUMENTATION;
    snprintf(name, sizeof name, "among %zu %s%s", most, each ? "stream" : "connection",
             most == 1 ? "" : "s");
    row = leat_bench_stop(b, name, count);
    leat_conn_stats(s.conns[0], &after);
    if (conns == 1) {
        leat_bench_figure_add(row, "packets_per_op",
                              (double)(after.packets_sent - before.packets_sent) / (double)count);
    }
    leat_bench_world_close(&s.world);
    free(s.conns);
    free(s.streams);
}

void leat_bench_scale(leat_bench *b)
{
    static const size_t steps[] = {1, 100, 10000};
    const leat_bench_options *o = b->options;
    uint64_t count = leat_bench_or(o->count, 640000);
    bool conns = !o->among || strcmp(o->among, "connections") == 0;
    bool streams = !o->among || strcmp(o->among, "streams") == 0;
    size_t only = (size_t)o->concurrent;

    for (size_t i = 0; conns && i < (only ? 1 : LEAT_COUNT_OF(steps)); i++) {
        measure(b, only ? only : steps[i], 1, count, false);
    }
    for (size_t i = 0; streams && i < (only ? 1 : LEAT_COUNT_OF(steps)); i++) {
        measure(b, 1, only ? only : steps[i], count, true);
    }
}
