/* cli/perf_load.c: what `leat perf client` sends: uploads, downloads, requests, handshakes.
 *
 * An upload counts as sent what went out for the first time, and is over when the server has
 * answered every stream: by then it has read all. A download counts what was read. Whatever ends by
 * time stops starting; a download's streams are stopped.
 *
 * With --rate requests have times of their own, and each is timed from then, not from when it could
 * be sent: one that is slow does not hide what waited behind it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

/* Of the client's streams that are not done, in a list; on the context's memory. */
struct perf_stream {
    leat_stream *stream;
    perf_stream *next, *prev;
    leat_time opened;
    uint64_t left; /* bytes to send, after the head */
};

static leat_ctx *ctx_of(const perf_client *c)
{
    return leat_loop_ctx(c->loop);
}

void perf_load_fail(perf_client *c, leat_cli_exit exit_code, const char *what)
{
    if (!c->over) {
        leat_cli_error("%s", what);
        c->exit_code = exit_code;
        c->over = true;
        perf_stop_all();
    }
}

static void check_over(perf_client *c)
{
    if (c->winding_down && c->running == 0 && !c->over) {
        c->ended = leat_ctx_now(ctx_of(c));
        c->over = true;
        perf_client_over(c);
    }
}

/* ---- streams ---- */

static void write_rest(perf_client *c, leat_stream *stream, perf_stream *s)
{
    uint64_t before = s->left;
    leat_err err = leat_perf_write(&c->source, stream, &s->left);

    leat_cli_steady_add(&c->steady, (size_t)(before - s->left), leat_ctx_mem(ctx_of(c)));
    if (err == LEAT_OK) {
        leat_stream_finish(stream);
    } else if (err != LEAT_ERR_BLOCKED && err != LEAT_ERR_STATE && err != LEAT_ERR_CLOSED) {
        perf_load_fail(c, LEAT_EXIT_FAILURE, leat_err_text(err));
    }
}

leat_time perf_load_due(const perf_client *c)
{
    return c->rate ? c->began + (leat_time)((double)c->started * 1e9 / (double)c->rate)
                   : leat_ctx_now(ctx_of(c));
}

/* Opens a stream that asks for `down` bytes and sends `up` more. False: not now, or never. */
static bool open_stream(perf_client *c, uint64_t up, uint64_t down)
{
    uint8_t head[LEAT_PERF_HEAD];
    leat_stream *stream;
    size_t written;
    perf_stream *s;

    if (leat_stream_open(c->conn, true, &stream) != LEAT_OK) {
        c->blocked = true; /* streams_available tells */
        return false;
    }
    s = leat_mem_calloc(leat_ctx_mem(ctx_of(c)), 1, sizeof *s);
    for (size_t i = 0; i < LEAT_PERF_HEAD; i++) {
        head[i] = (uint8_t)(down >> (8 * (LEAT_PERF_HEAD - 1 - i)));
    }
    if (!s || leat_stream_write(stream, head, sizeof head, &written) != LEAT_OK ||
        written != sizeof head) {
        leat_mem_release(leat_ctx_mem(ctx_of(c)), s);
        perf_load_fail(c, LEAT_EXIT_FAILURE, "out of memory");
        return false;
    }
    *s =
        (perf_stream){.stream = stream, .next = c->streams, .opened = perf_load_due(c), .left = up};
    if (s->next) {
        s->next->prev = s;
    }
    c->streams = s;
    leat_stream_set_user(stream, s);
    c->running++;
    c->started++;
    write_rest(c, stream, s);
    return true;
}

static void forget(perf_client *c, perf_stream *s)
{
    *(s->prev ? &s->prev->next : &c->streams) = s->next;
    if (s->next) {
        s->next->prev = s->prev;
    }
    leat_stream_set_user(s->stream, NULL);
    leat_mem_release(leat_ctx_mem(ctx_of(c)), s);
    c->running--;
}

/* The part of -n that the next of the parallel streams carries; without -n, no end. */
static uint64_t share(const perf_client *c)
{
    if (c->bytes == 0) {
        return UINT64_MAX >> 1;
    }
    return c->bytes / c->parallel + (c->started < c->bytes % c->parallel ? 1 : 0);
}

/* Streams, requests or handshakes that are not started yet. */
static bool to_come(const perf_client *c)
{
    if (c->winding_down || c->over) {
        return false;
    }
    if (c->mode == PERF_UPLOAD || c->mode == PERF_DOWNLOAD) {
        return c->started < c->parallel;
    }
    return c->count == 0 || c->started < c->count;
}

static bool wants_more(const perf_client *c)
{
    return to_come(c) && !c->blocked && c->running < c->parallel &&
           perf_load_due(c) <= leat_ctx_now(ctx_of(c));
}

static bool start_one(perf_client *c)
{
    switch (c->mode) {
    case PERF_UPLOAD:
        return open_stream(c, share(c), 0);
    case PERF_DOWNLOAD:
        return open_stream(c, 0, share(c));
    default:
        if (c->path) {
            return perf_http_request(c);
        }
        /* The head is part of the request. */
        return open_stream(c, c->up > LEAT_PERF_HEAD ? c->up - LEAT_PERF_HEAD : 0, c->down);
    }
}

void perf_load_start_more(perf_client *c)
{
    while (wants_more(c) && start_one(c)) {
    }
    if (!c->winding_down && c->started > 0 && !to_come(c) && c->running == 0) {
        perf_load_stop(c); /* all that was asked for is done */
    }
    /* What is due and could not be started comes with an answer, or with leave for more streams. */
    if (c->rate && to_come(c) && perf_load_due(c) > leat_ctx_now(ctx_of(c))) {
        leat_timer_set(&c->rate_timer, perf_load_due(c));
    }
}

void perf_load_answered(perf_client *c, leat_time opened)
{
    perf_histogram_add(&c->times, leat_ctx_now(ctx_of(c)) - opened);
    c->done++;
    perf_load_start_more(c);
    check_over(c);
}

/* A stream has its answer. */
static void stream_done(perf_client *c, perf_stream *s)
{
    leat_time opened = s->opened;

    forget(c, s);
    if (c->mode == PERF_REQUESTS) {
        c->moved += c->up;
    }
    perf_load_answered(c, opened);
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    perf_client *c = user;
    perf_stream *s = leat_stream_user(stream);
    uint64_t got = leat_perf_drop(stream);

    (void)conn;
    c->moved += got;
    leat_cli_steady_add(&c->steady, (size_t)got, leat_ctx_mem(ctx_of(c)));
    if (!s || !leat_stream_recv_done(stream)) {
        return;
    }
    if (!leat_stream_recv_whole(stream) && !c->winding_down) {
        perf_load_fail(c, LEAT_EXIT_BROKEN, "the server gave up a stream");
        return;
    }
    stream_done(c, s);
}

static void on_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    perf_stream *s = leat_stream_user(stream);

    (void)conn;
    if (s) {
        write_rest(user, stream, s);
    }
}

static void on_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn, (void)stream, (void)code;
    perf_load_fail(user, LEAT_EXIT_BROKEN, "the server stopped a stream");
}

/* One that ended without its answer: a download that was stopped, or the connection's end. */
static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    perf_client *c = user;
    perf_stream *s = leat_stream_user(stream);

    (void)conn;
    if (s) {
        forget(c, s);
        check_over(c);
    }
}

static void on_available(leat_conn *conn, bool bidi, void *user)
{
    perf_client *c = user;

    (void)conn, (void)bidi;
    c->blocked = false;
    perf_load_start_more(c);
}

/* ---- connections ---- */

static leat_err connect_one(perf_client *c);

static void begin(perf_client *c)
{
    leat_time now = leat_ctx_now(ctx_of(c));

    c->began = c->line_from = now;
    if (c->reports) {
        perf_report_begin(c);
    } else {
        perf_lines_begin(c);
    }
    if (c->time) {
        leat_timer_set(&c->end_timer, now + c->time);
    }
    if (c->interval) {
        leat_timer_set(&c->interval_timer, now + c->interval);
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    perf_client *c = user;
    leat_err err = c->path ? perf_http_attach(c, conn) : LEAT_OK;

    if (err != LEAT_OK) {
        perf_load_fail(c, LEAT_EXIT_FAILURE, leat_err_text(err));
        return;
    }
    begin(c);
    perf_load_start_more(c);
}

static leat_cli_exit exit_of(const leat_close_info *info)
{
    switch (info->kind) {
    case LEAT_CLOSE_IDLE:
    case LEAT_CLOSE_HANDSHAKE_TIMEOUT:
        return LEAT_EXIT_TIMEOUT;
    default:
        return info->err == LEAT_ERR_CERTIFICATE ? LEAT_EXIT_CERTIFICATE : LEAT_EXIT_BROKEN;
    }
}

void perf_load_closed(perf_client *c, const leat_close_info *info)
{
    leat_conn_stats(c->conn, &c->last);
    c->conn = NULL;
    c->http = NULL;
    perf_load_fail(c, exit_of(info), info->detail ? info->detail : leat_err_text(info->err));
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    perf_load_closed(user, info);
}

static const leat_conn_events perf_conn_events = {
    .connected = on_connected,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .stream_stopped = on_stopped,
    .stream_closed = on_stream_closed,
    .streams_available = on_available,
    .closed = on_closed,
};

/* ---- handshakes: each connection's user is its number among those that run, for its time ---- */

typedef struct perf_handshake {
    perf_client *client;
    leat_time started;
} perf_handshake;

static void more_handshakes(perf_client *c)
{
    while (wants_more(c)) {
        leat_err err = connect_one(c);

        if (err != LEAT_OK) {
            perf_load_fail(c, LEAT_EXIT_FAILURE, leat_err_text(err));
            return;
        }
    }
    if (!c->winding_down && c->started > 0 && c->running == 0) {
        perf_load_stop(c);
    }
}

static void handshake_connected(leat_conn *conn, void *user)
{
    perf_handshake *h = user;
    perf_client *c = h->client;

    perf_histogram_add(&c->times, leat_ctx_now(ctx_of(c)) - h->started);
    h->started = LEAT_TIME_NEVER; /* counted */
    c->running--;
    c->done++;
    leat_conn_close(conn, 0, (leat_span){NULL, 0});
    more_handshakes(c);
    check_over(c);
}

static void handshake_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    perf_handshake *h = user;
    perf_client *c = h->client;
    bool failed = h->started != LEAT_TIME_NEVER;

    (void)conn;
    leat_mem_release(leat_ctx_mem(ctx_of(c)), h);
    if (failed) {
        c->running--;
        perf_load_fail(c, exit_of(info), info->detail ? info->detail : leat_err_text(info->err));
    }
}

static const leat_conn_events handshake_events = {
    .connected = handshake_connected,
    .closed = handshake_closed,
};

static const leat_conn_events no_events = {.closed = NULL};

/* With --own-loop, as many attempts as it takes until the server's loop of this thread's number has
 * it: a group of sockets steers by the ID's first byte (leat/loop.h). The others are closed. */
static leat_err connect_to_loop(perf_client *c, leat_connect *how)
{
    leat_endpoint *endpoint = leat_udp_endpoint(c->udp);
    leat_err err;

    if (!c->own_loop) {
        return leat_conn_connect(endpoint, how, &c->conn);
    }
    how->events = &no_events;
    while ((err = leat_conn_connect(endpoint, how, &c->conn)) == LEAT_OK &&
           leat_conn_odcid(c->conn).data[0] % c->threads != c->thread_number) {
        leat_conn_close(c->conn, 0, (leat_span){NULL, 0});
    }
    if (err == LEAT_OK) {
        leat_conn_set_events(c->conn, &perf_conn_events, c);
    }
    return err;
}

static leat_err connect_one(perf_client *c)
{
    leat_connect how = {
        .remote = c->remote,
        .server_name = c->host,
        .tls = c->tls,
        .settings = &c->common.conn,
        .events = &perf_conn_events,
        .user = c,
    };
    leat_conn *conn;
    leat_err err;
    perf_handshake *h;

    if (c->mode != PERF_HANDSHAKES) {
        return connect_to_loop(c, &how);
    }
    h = leat_mem_calloc(leat_ctx_mem(ctx_of(c)), 1, sizeof *h);
    if (!h) {
        return LEAT_ERR_NOMEM;
    }
    *h = (perf_handshake){c, leat_ctx_now(ctx_of(c))};
    how.events = &handshake_events;
    how.user = h;
    err = leat_conn_connect(leat_udp_endpoint(c->udp), &how, &conn);
    if (err != LEAT_OK) {
        leat_mem_release(leat_ctx_mem(ctx_of(c)), h);
        return err;
    }
    c->running++;
    c->started++;
    return LEAT_OK;
}

/* ---- from outside ---- */

leat_err perf_load_start(perf_client *c)
{
    leat_ctx_set_now(ctx_of(c), leat_clock_now());
    if (c->mode != PERF_HANDSHAKES) {
        return connect_one(c);
    }
    begin(c);
    more_handshakes(c);
    return LEAT_OK;
}

void perf_load_stop(perf_client *c)
{
    perf_stream *next;

    c->winding_down = true;
    for (perf_stream *s = c->streams; s; s = next) {
        next = s->next;
        if (c->mode == PERF_DOWNLOAD) {
            forget(c, s); /* the rest is not wanted: the connection's end tells the server */
        } else if (c->mode == PERF_UPLOAD) {
            s->left = 0;
            leat_stream_finish(s->stream); /* does nothing where it was finished */
        }
    }
    check_over(c);
}

uint64_t perf_load_moved(const perf_client *c)
{
    leat_conn_stats_data stats;

    if (c->mode != PERF_UPLOAD) {
        return c->moved;
    }
    if (!c->conn) {
        return c->last.stream_bytes_sent;
    }
    leat_conn_stats(c->conn, &stats);
    return stats.stream_bytes_sent;
}
