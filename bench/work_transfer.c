/* bench/work_transfer.c: `leat bench transfer`: messages on one stream, or streams of a given size.
 *
 * Messages: a task of the client's writes one (or --burst) and schedules itself again, so that each
 * is a hop through the scheduler; the work is done when the server has read them all. Transfers:
 * one stream after the other, each done when the client knows that all has been acknowledged.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "base/list.h"
#include "world.h"

typedef struct transfer {
    leat_bench_world world;
    leat_conn *conn;
    leat_stream *stream;
    leat_task hop;
    uint64_t size, burst;
    uint64_t left;   /* bytes still to be written of the present run */
    uint64_t unread; /* bytes that the server has still to read of it */
    bool connected[2];
    bool blocked, done, failed;
    char why[128]; /* the connection was closed */
} transfer;

static uint8_t content[65536];

/* ---- the server ---- */

static void server_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((transfer *)user)->connected[LEAT_BENCH_SERVER] = true;
}

static void server_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    transfer *t = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        t->unread -= span.len;
        leat_stream_consume(stream, span.len);
    }
    if (t->unread == 0 && t->size) {
        t->done = true;
    }
}

static void note_why(transfer *t, const char *who, const leat_close_info *info)
{
    if (!t->failed) {
        snprintf(t->why, sizeof t->why, "%s: %s (%#llx, frame %#llx)", who,
                 info->detail ? info->detail : leat_err_text(info->err),
                 (unsigned long long)info->code, (unsigned long long)info->frame_type);
    }
    t->failed = t->done = true;
    t->connected[LEAT_BENCH_CLIENT] = t->connected[LEAT_BENCH_SERVER] = true; /* nobody waits */
}

/* What was waited for has come, or the connection's end. */
static void must_be_open(const transfer *t)
{
    if (t->failed) {
        leat_bench_fail("the connection was closed: %s", t->why);
    }
}

static void server_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    note_why(user, "server", info);
}

static const leat_conn_events server_events = {
    .connected = server_connected,
    .stream_readable = server_readable,
    .closed = server_closed,
};

/* ---- the client ---- */

static void client_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((transfer *)user)->connected[LEAT_BENCH_CLIENT] = true;
}

static void client_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    transfer *t = user;

    (void)conn, (void)stream;
    t->blocked = false;
    leat_ctx_run_soon(t->world.ctx, &t->hop);
}

/* A transfer's stream is closed when every byte is acknowledged. */
static void client_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    transfer *t = user;

    (void)conn, (void)stream;
    if (t->size == 0) {
        t->done = true;
    }
}

static void client_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    note_why(user, "client", info);
}

static const leat_conn_events client_events = {
    .connected = client_connected,
    .stream_writable = client_writable,
    .stream_closed = client_stream_closed,
    .closed = client_closed,
};

/* Writes up to n bytes; false when there is no more room. */
static bool write_some(transfer *t, uint64_t n)
{
    while (n > 0) {
        size_t want = n < sizeof content ? (size_t)n : sizeof content;
        size_t written = 0;
        leat_err err = leat_stream_write(t->stream, content, want, &written);

        n -= written;
        t->left -= written;
        if (err == LEAT_ERR_BLOCKED || written < want) {
            t->blocked = true;
            return false;
        }
        leat_bench_must(err, "write");
    }
    return true;
}

/* One hop: `burst` messages, then again in the next turn. A message cut short by a full buffer goes
 * on when there is room. */
static void hop(leat_task *task)
{
    transfer *t = LEAT_CONTAINER_OF(task, transfer, hop);
    uint64_t step = t->size ? t->size * t->burst : t->left;
    uint64_t odd = t->size ? t->left % t->size : 0; /* the rest of one that was cut short */

    step = odd ? odd : step;
    step = step < t->left ? step : t->left;
    if (!write_some(t, step)) {
        return;
    }
    if (t->left > 0) {
        leat_ctx_run_soon(t->world.ctx, &t->hop);
    } else if (t->size == 0) {
        leat_bench_must(leat_stream_finish(t->stream), "finish");
    }
}

static void open_stream(transfer *t)
{
    leat_bench_must(leat_stream_open(t->conn, false, &t->stream), "stream");
}

static void run_bytes(transfer *t, uint64_t bytes)
{
    t->left = t->unread = bytes;
    t->done = false;
    leat_ctx_run_soon(t->world.ctx, &t->hop);
    leat_bench_world_until(&t->world, &t->done, "transfer");
    must_be_open(t);
}

/* ---- the work ---- */

static void add_link_figures(leat_bench_row *row, const transfer *t, leat_time skipped,
                             uint64_t bytes, const leat_conn_stats_data *before)
{
    double waited = (double)(t->world.skipped - skipped);
    leat_conn_stats_data stats;

    leat_conn_stats(t->conn, &stats);
    leat_bench_figure_add(row, "gbit_s", (double)bytes * 8 / (double)row->time);
    leat_bench_figure_add(row, "packets_per_op",
                          (double)(stats.packets_sent - before->packets_sent) /
                              (double)row->operations);
    leat_bench_figure_add(row, "packets_lost", (double)(stats.packets_lost - before->packets_lost));
    leat_bench_figure_add(row, "key_updates", (double)(stats.key_updates - before->key_updates));
    if (waited > 0) {
        leat_bench_figure_add(row, "waited_s", waited / (double)LEAT_SECOND);
        leat_bench_figure_add(row, "link_gbit_s", (double)bytes * 8 / ((double)row->time + waited));
    }
}

static void measure_messages(leat_bench *b, transfer *t, uint64_t count, uint64_t warm_up)
{
    char name[LEAT_BENCH_NAME], size[LEAT_BENCH_SIZE_TEXT];
    leat_conn_stats_data before;
    leat_time skipped;

    open_stream(t);
    run_bytes(t, warm_up * t->size);
    leat_conn_stats(t->conn, &before);
    skipped = t->world.skipped;
    leat_bench_start(b);
    run_bytes(t, count * t->size);
    snprintf(name, sizeof name, "message %s, burst %llu", leat_bench_size_text(t->size, size),
             (unsigned long long)t->burst);
    add_link_figures(leat_bench_stop(b, name, count), t, skipped, count * t->size, &before);
}

static void measure_transfers(leat_bench *b, transfer *t, uint64_t total, uint64_t count,
                              uint64_t warm_up)
{
    char name[LEAT_BENCH_NAME], size[LEAT_BENCH_SIZE_TEXT];
    leat_conn_stats_data before;
    leat_time skipped = 0;

    for (uint64_t i = 0; i < warm_up + count; i++) {
        if (i == warm_up) {
            leat_conn_stats(t->conn, &before);
            skipped = t->world.skipped;
            leat_bench_start(b);
        }
        open_stream(t);
        run_bytes(t, total);
    }
    snprintf(name, sizeof name, "transfer %s", leat_bench_size_text(total, size));
    add_link_figures(leat_bench_stop(b, name, count), t, skipped, count * total, &before);
}

void leat_bench_transfer(leat_bench *b)
{
    static transfer t;
    const leat_bench_options *o = b->options;

    t = (transfer){.size = o->total ? 0 : leat_bench_or(o->size, 1200),
                   .burst = leat_bench_or(o->burst, 1)};
    leat_bench_world_open(&t.world, o, &server_events, &t);
    leat_task_init(&t.hop, t.world.ctx, hop);
    t.conn = leat_bench_world_connect(&t.world, &client_events, &t);
    leat_bench_world_until(&t.world, &t.connected[LEAT_BENCH_CLIENT], "handshake");
    leat_bench_world_until(&t.world, &t.connected[LEAT_BENCH_SERVER], "handshake");
    must_be_open(&t);
    /* Tickets and confirmation are not part of it. */
    leat_bench_world_settle(&t.world, LEAT_SECOND);
    if (o->total) {
        b->unit = "transfer";
        measure_transfers(b, &t, o->total, leat_bench_or(o->count, 2000),
                          leat_bench_or(o->warm_up, 200));
    } else {
        measure_messages(b, &t, leat_bench_or(o->count, 500000), leat_bench_or(o->warm_up, 50000));
    }
    leat_bench_world_close(&t.world);
}
