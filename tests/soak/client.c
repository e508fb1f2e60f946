/* tests/soak/client.c: workers, each of which makes one connection after the other, for one job
 * after the other, until the time is over.
 *
 * A job is drawn by chance: a large transfer, many streams, streams given up half way, datagrams,
 * media; at half of the connections the client moves to another port, at some it updates its keys.
 * A job whose connection ends before it is done goes on with another one: a stream that was not
 * seen whole is begun again. Each such end is told of in a line, and whoever knows when the server
 * was restarted judges.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { WORKERS = 64, TASKS = 256, SESSION = 16384, DATAGRAM = 900 };

typedef struct worker worker;

typedef enum task_state { TASK_WAITS, TASK_OPEN, TASK_DONE } task_state;

/* One stream of a job. */
typedef struct task {
    worker *owner;
    leat_stream *stream;
    uint64_t key, up, down;
    uint64_t sent, got; /* sent: with the head */
    uint64_t cancel_at; /* of what goes up; 0: never */
    task_state state;
} task;

typedef struct session {
    uint8_t data[SESSION];
    size_t len;
} session;

typedef enum worker_state { WORKER_IDLE, WORKER_RUNNING, WORKER_CLOSED, WORKER_OVER } worker_state;

struct worker {
    unsigned number;
    uint64_t random;
    worker_state state;
    leat_udp *udp;
    leat_conn *conn;
    soak_media *media;
    leat_time began, migrate_at, update_at, next_tick, retry_at;
    bool ready;   /* streams may be opened */
    bool closing; /* by this side, its job done */

    /* the job */
    bool has_job, is_media;
    task tasks[TASKS];
    size_t task_count, tasks_done, open, open_most;
    leat_time until; /* datagrams and media are sent until then */
    unsigned datagrams_a_tick;
    session sessions[2]; /* of a connection for streams, and of one for media */
};

static leat_loop *loop;
static leat_tls_config *tls[2];
static const soak_options *options;
static worker workers[WORKERS];
static bool ending;

static uint64_t below(worker *w, uint64_t limit)
{
    return soak_random(&w->random) % limit;
}

/* ---- jobs ---- */

static void add_task(worker *w, uint64_t up, uint64_t down, uint64_t cancel_at)
{
    w->tasks[w->task_count++] = (task){
        .owner = w, .key = soak_random(&w->random), .up = up, .down = down, .cancel_at = cancel_at};
}

static void draw_job(worker *w)
{
    w->has_job = true;
    w->is_media = false;
    w->task_count = w->tasks_done = 0;
    w->open_most = 1;
    w->until = 0;
    w->datagrams_a_tick = 0;
    switch (below(w, 5)) {
    case 0:
        add_task(w, below(w, 2) ? 0 : below(w, 8 << 20), below(w, 12 << 20), 0);
        break;
    case 1:
        w->open_most = 1 + below(w, 60);
        for (size_t i = 0; i < TASKS; i++) {
            add_task(w, below(w, 3000), below(w, 3000), 0);
        }
        break;
    case 2:
        w->open_most = 1 + below(w, 16);
        for (size_t i = 0; i < 60; i++) {
            bool cancel = below(w, 2);

            add_task(w, 1 + below(w, 200000), below(w, 200000), cancel ? 1 + below(w, 200000) : 0);
        }
        break;
    case 3:
        w->until = leat_clock_now() + (1 + below(w, 4)) * LEAT_SECOND;
        w->datagrams_a_tick = 1 + (unsigned)below(w, 10);
        add_task(w, below(w, 1 << 20), below(w, 1 << 20), 0);
        break;
    default:
        w->until = leat_clock_now() + (2 + below(w, 6)) * LEAT_SECOND;
        w->is_media = true;
        break;
    }
}

/* ---- streams ---- */

static void task_done(task *t)
{
    t->state = TASK_DONE;
    t->owner->tasks_done++;
}

static void write_up(task *t)
{
    uint64_t all = SOAK_HEAD + t->up;
    leat_mspan room;

    while (t->sent < all && leat_stream_reserve(t->stream, all - t->sent, &room) == LEAT_OK) {
        uint64_t n = room.len < all - t->sent ? room.len : all - t->sent;

        if (t->sent < SOAK_HEAD) {
            uint8_t head[SOAK_HEAD];

            memcpy(head, &t->key, 8);
            memcpy(head + 8, &t->up, 8);
            memcpy(head + 16, &t->down, 8);
            n = n < SOAK_HEAD - t->sent ? n : SOAK_HEAD - t->sent;
            memcpy(room.data, head + t->sent, n);
        } else {
            soak_fill(t->key, t->sent - SOAK_HEAD, room.data, n);
        }
        leat_stream_commit(t->stream, n);
        t->sent += n;
    }
    if (t->cancel_at && t->sent >= t->cancel_at) {
        leat_stream_stop(t->stream, SOAK_CODE_CANCEL);
        leat_stream_reset(t->stream, SOAK_CODE_CANCEL);
    } else if (t->sent == all) {
        leat_stream_finish(t->stream);
    }
}

static void read_down(task *t)
{
    leat_span data;

    while ((data = leat_stream_peek(t->stream)).len > 0) {
        if (t->got + data.len > t->down || !soak_same(~t->key, t->got, data.data, data.len)) {
            soak_fault("worker %u, stream %llu: bytes at %llu are not what was sent",
                       t->owner->number, (unsigned long long)leat_stream_id(t->stream),
                       (unsigned long long)t->got);
            leat_stream_stop(t->stream, SOAK_CODE_FAULT);
            return;
        }
        t->got += data.len;
        soak_count.bytes_down += data.len;
        leat_stream_consume(t->stream, data.len);
    }
    if (t->state == TASK_OPEN && leat_stream_recv_whole(t->stream)) {
        if (t->got != t->down) {
            soak_fault("worker %u: a stream ends after %llu bytes of %llu", t->owner->number,
                       (unsigned long long)t->got, (unsigned long long)t->down);
        }
        soak_count.streams++;
        soak_count.bytes_up += t->up; /* it answers when it has seen all of them */
        task_done(t);
    }
}

static void open_tasks(worker *w)
{
    for (size_t i = 0; i < w->task_count && w->open < w->open_most; i++) {
        task *t = &w->tasks[i];

        if (t->state != TASK_WAITS) {
            continue;
        }
        if (leat_stream_open(w->conn, true, &t->stream) != LEAT_OK) {
            return;
        }
        leat_stream_set_user(t->stream, t);
        t->state = TASK_OPEN;
        t->sent = t->got = 0;
        w->open++;
        write_up(t);
    }
}

static void on_stream(leat_conn *conn, leat_stream *stream, void *user)
{
    task *t = leat_stream_user(stream);

    (void)conn;
    (void)user;
    if (t) {
        read_down(t);
        write_up(t);
    }
}

static void on_stream_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    task *t = leat_stream_user(stream);

    (void)conn;
    (void)user;
    if (!t || !t->cancel_at || code != SOAK_CODE_CANCEL) {
        soak_fault("a stream was reset with code %llu", (unsigned long long)code);
    }
}

/* The connection may have ended, too: then its streams are begun again. */
static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    task *t = leat_stream_user(stream);
    worker *w = user;

    (void)conn;
    if (!t) {
        return;
    }
    w->open--;
    t->stream = NULL;
    if (t->state == TASK_OPEN && t->cancel_at && t->sent >= t->cancel_at) {
        soak_count.cancelled++;
        task_done(t);
    } else if (t->state == TASK_OPEN) {
        t->state = TASK_WAITS;
        soak_count.retried++;
    }
}

/* ---- connections ---- */

static void note_handshake(const leat_conn *conn)
{
    soak_count.connected++;
    soak_count.resumed += leat_conn_resumed(conn);
    soak_count.early_accepted += leat_conn_early(conn) == LEAT_EARLY_ACCEPTED;
    soak_count.early_rejected += leat_conn_early(conn) == LEAT_EARLY_REJECTED;
}

static void on_connected(leat_conn *conn, void *user)
{
    worker *w = user;

    note_handshake(conn);
    w->ready = true;
}

void soak_worker_ticket(void *user, bool media, leat_span data)
{
    worker *w = user;
    session *s = &w->sessions[media];

    if (data.len <= SESSION) {
        memcpy(s->data, data.data, data.len);
        s->len = data.len;
    }
}

static void on_ticket(leat_conn *conn, leat_span data, void *user)
{
    (void)conn;
    soak_worker_ticket(user, false, data);
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    uint64_t key;

    (void)conn;
    (void)user;
    if (data.len == DATAGRAM) {
        memcpy(&key, data.data, sizeof key);
    }
    if (data.len != DATAGRAM || !soak_same(key, 0, data.data + 8, DATAGRAM - 8)) {
        soak_fault("a DATAGRAM of %zu bytes is not what was sent", data.len);
        return;
    }
    soak_count.datagrams_back++;
}

/* A line for each connection that ended before its job was done: kind, from when to when, why. */
void soak_worker_closed(void *user, leat_conn *conn, const leat_close_info *info)
{
    static const char *const kinds[] = {"local", "peer",    "idle",   "handshake",
                                        "reset", "version", "dropped"};
    worker *w = user;
    leat_conn_stats_data stats;

    leat_conn_stats(conn, &stats);
    soak_count.migrations += stats.migrations;
    soak_count.key_updates += stats.key_updates;
    soak_count.bytes_resent += stats.stream_bytes_resent;
    if (!w->closing) {
        soak_count.resets += info->kind == LEAT_CLOSE_RESET;
        soak_count.broken += info->kind != LEAT_CLOSE_RESET;
        printf("ended worker=%u kind=%s code=0x%llx from=%.3f to=%.3f %s\n", w->number,
               kinds[info->kind], (unsigned long long)info->code, (double)w->began / 1e9,
               (double)leat_clock_now() / 1e9, info->detail ? info->detail : "");
        fflush(stdout);
        w->retry_at = leat_clock_now() + 200 * LEAT_MILLISECOND;
    }
    w->state = WORKER_CLOSED;
    w->conn = NULL;
    w->media = NULL;
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    soak_worker_closed(user, conn, info);
}

static const leat_conn_events events = {
    .connected = on_connected,
    .stream_readable = on_stream,
    .stream_writable = on_stream,
    .stream_reset = on_stream_reset,
    .stream_closed = on_stream_closed,
    .datagram = on_datagram,
    .ticket = on_ticket,
    .closed = on_closed,
};

static void fill_settings(worker *w, leat_conn_settings *settings)
{
    static const leat_congestion congestion[] = {LEAT_CONGESTION_CUBIC, LEAT_CONGESTION_NEWRENO,
                                                 LEAT_CONGESTION_BBR};

    leat_conn_settings_init(settings);
    settings->early_data = true;
    settings->max_datagram_frame_size = 65535;
    settings->idle_timeout = 8 * LEAT_SECOND;
    settings->keep_alive = 2 * LEAT_SECOND;
    settings->handshake_timeout = 8 * LEAT_SECOND;
    settings->congestion = congestion[below(w, 3)];
    if (below(w, 4) == 0) {
        settings->max_data = settings->max_stream_data_bidi_local = 65536;
    }
    if (below(w, 4) == 0) {
        settings->version = LEAT_QUIC_V2;
    }
}

/* Another socket, another connection, with the newest ticket, which is used once. */
static void begin(worker *w, leat_time now)
{
    session *s = &w->sessions[w->is_media];
    const leat_addr *to = &options->to[below(w, options->ways)];
    leat_conn_settings settings;
    leat_udp_settings udp_settings;
    leat_endpoint_settings endpoint_settings;
    leat_connect how = {.remote = *to,
                        .server_name = "localhost",
                        .tls = tls[w->is_media],
                        .session = {s->data, s->len},
                        .settings = &settings,
                        .events = &events,
                        .user = w};
    leat_err err;

    fill_settings(w, &settings);
    leat_udp_settings_init(&udp_settings);
    udp_settings.remote = *to;
    udp_settings.no_offload = below(w, 4) == 0;
    leat_endpoint_settings_init(&endpoint_settings);
    err = leat_udp_open(loop, &udp_settings, &endpoint_settings, &w->udp);
    if (err == LEAT_OK) {
        err = leat_conn_connect(leat_udp_endpoint(w->udp), &how, &w->conn);
    }
    if (err != LEAT_OK) {
        soak_fault("worker %u cannot connect: %s", w->number, leat_err_text(err));
        w->state = WORKER_OVER;
        return;
    }
    s->len = 0;
    soak_count.conns++;
    w->state = WORKER_RUNNING;
    w->began = now;
    w->closing = false;
    w->ready = leat_conn_early(w->conn) == LEAT_EARLY_OFFERED;
    w->migrate_at = below(w, 2) ? now + below(w, 1000) * LEAT_MILLISECOND : LEAT_TIME_NEVER;
    w->update_at = below(w, 3) ? LEAT_TIME_NEVER : now + below(w, 1000) * LEAT_MILLISECOND;
    w->next_tick = now;
    if (w->is_media) {
        w->media =
            soak_media_begin(w->conn, true, (uint32_t)soak_random(&w->random) & 0xfffffff0, w);
    }
}

/* Opens another socket and moves there; tried again until the connection can. */
static void migrate(worker *w, leat_time now)
{
    leat_udp_settings settings;
    leat_addr local;

    leat_udp_settings_init(&settings);
    settings.remote = *leat_conn_remote(w->conn);
    w->migrate_at = now + 100 * LEAT_MILLISECOND;
    if (!leat_conn_is_connected(w->conn) || leat_udp_add(w->udp, &settings, &local) != LEAT_OK) {
        return;
    }
    if (leat_conn_migrate(w->conn, &local) == LEAT_OK) {
        w->migrate_at = LEAT_TIME_NEVER;
    } else {
        leat_udp_remove(w->udp, &local);
    }
}

static void send_datagrams(worker *w)
{
    uint8_t data[DATAGRAM];

    for (unsigned i = 0; i < w->datagrams_a_tick; i++) {
        uint64_t key = soak_random(&w->random);

        memcpy(data, &key, sizeof key);
        soak_fill(key, 0, data + 8, DATAGRAM - 8);
        soak_count.datagrams +=
            leat_conn_send_datagram(w->conn, (leat_span){data, DATAGRAM}, NULL) == LEAT_OK;
    }
}

static void run(worker *w, leat_time now)
{
    bool timed = now < w->until && !ending;

    if (w->closing) {
        return;
    }
    if (now >= w->migrate_at) {
        migrate(w, now);
    }
    if (now >= w->update_at && leat_conn_update_keys(w->conn) == LEAT_OK) {
        w->update_at = LEAT_TIME_NEVER;
    }
    if (timed && now >= w->next_tick) {
        w->next_tick += 20 * LEAT_MILLISECOND;
        w->next_tick = w->next_tick < now ? now : w->next_tick;
        if (w->media) {
            soak_media_send(w->media);
        } else if (w->ready) {
            send_datagrams(w);
        }
    }
    if (w->media) {
        w->closing = !timed && soak_media_settled(w->media);
    } else if (w->ready) {
        open_tasks(w);
        w->closing = !timed && w->tasks_done == w->task_count;
    }
    if (w->closing) {
        w->has_job = false;
        soak_count.jobs++;
        leat_conn_close(w->conn, SOAK_CODE_DONE, (leat_span){NULL, 0});
    }
}

static void turn(worker *w, leat_time now)
{
    switch (w->state) {
    case WORKER_CLOSED:
        leat_udp_close(w->udp); /* not from the event */
        w->udp = NULL;
        w->state = WORKER_IDLE;
        break;
    case WORKER_IDLE:
        if (ending && !w->has_job) {
            w->state = WORKER_OVER;
        } else if (now >= w->retry_at) {
            if (!w->has_job) {
                draw_job(w);
            }
            begin(w, now);
        }
        break;
    case WORKER_RUNNING:
        run(w, now);
        break;
    case WORKER_OVER:
        break;
    }
}

/* ---- the whole ---- */

static bool make_tls(void)
{
    static const char *const alpn[2] = {SOAK_ALPN, LEAT_ROQ_ALPN};

    for (int i = 0; i < 2; i++) {
        leat_tls_settings settings;
        leat_tls_error error;

        leat_tls_settings_init(&settings);
        settings.alpn = &alpn[i];
        settings.alpn_count = 1;
        settings.verify = settings.verify_host = settings.system_ca = false;
        settings.tickets = 2;
        if (leat_tls_config_client(&settings, &tls[i], &error) != LEAT_OK) {
            fprintf(stderr, "leat-soak: TLS: %s\n", error.text);
            return false;
        }
    }
    return true;
}

static bool all_over(void)
{
    for (unsigned i = 0; i < options->workers; i++) {
        if (workers[i].state != WORKER_OVER) {
            return false;
        }
    }
    return true;
}

static void tell_unfinished(void)
{
    for (unsigned i = 0; i < options->workers; i++) {
        if (workers[i].state != WORKER_OVER) {
            soak_fault("worker %u does not finish: state %d, %zu of %zu streams", i,
                       (int)workers[i].state, workers[i].tasks_done, workers[i].task_count);
        }
    }
}

int soak_client(const soak_options *o)
{
    leat_time start = leat_clock_now(), now = start;
    leat_mem_stats before, after;
    unsigned fds;
    leat_err err;

    options = o;
    if (!make_tls() || leat_loop_new(NULL, &loop) != LEAT_OK) {
        return 1;
    }
    fds = soak_fds();
    leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &before);
    for (unsigned i = 0; i < o->workers; i++) {
        workers[i].number = i;
        workers[i].random = o->seed * 1000 + i;
    }
    while (!all_over() && now < start + o->duration + 90 * LEAT_SECOND) {
        err = leat_loop_turn(loop, now + 10 * LEAT_MILLISECOND);
        if (err != LEAT_OK) {
            soak_fault("the loop: %s", leat_err_text(err));
            break;
        }
        now = leat_clock_now();
        ending = now >= start + o->duration;
        for (unsigned i = 0; i < o->workers; i++) {
            turn(&workers[i], now);
        }
    }
    tell_unfinished();
    leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &after);
    printf("memory_high=%zu\n", after.system_high);
    /* Besides, the context keeps expanded keys, by KEY_CACHE, and the tables they are found by. */
    if (all_over() && (after.buf_live != before.buf_live ||
                       after.obj_live > before.obj_live + 4096 * LEAT_KEY_CACHE_DEFAULT)) {
        soak_fault("left at the end: %zu buffers of %zu, %zu bytes of objects of %zu",
                   after.buf_live, before.buf_live, after.obj_live, before.obj_live);
    }
    if (all_over() && soak_fds() != fds) {
        soak_fault("%u file descriptors at the end, %u at the start", soak_fds(), fds);
    }
    leat_loop_free(loop);
    leat_tls_config_free(tls[0]);
    leat_tls_config_free(tls[1]);
    return 0;
}
