/* tests/sim/app.c: see app.h.
 *
 * Each direction of a stream has a fate (content.h): how much is written, whether it is reset or
 * stopped, and when. The writer pumps until it is blocked or over; the reader takes what is there,
 * or a little a tick. What the library tells must fit the fate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "app.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fault.h"
#include "stream/table.h"

typedef struct app_stream {
    leat_link link;
    leat_stream *stream;
    uint64_t id;
    leat_sim_fate out, in;
    uint64_t written, read;
    bool writes;      /* has a sending part that is not over */
    bool reads;       /* the same, receiving */
    bool held;        /* writes when reading has ended */
    bool stopped;     /* by us */
    bool whole;       /* read to the end */
    bool reset;       /* by the peer */
    bool finished;    /* by us */
    bool was_reset;   /* by us */
    bool was_stopped; /* by the peer */
} app_stream;

/* A tick that finds nothing to do makes the next one wait twice as long, up to so many doublings:
 * a connection that hears nothing for minutes would take up the simulator's time with ticks. */
enum { VAIN_TICKS_MOST = 8 };

static bool opened_by(uint64_t id)
{
    return id & 1;
}

static void pump(leat_sim_app *app, app_stream *s, uint64_t most);

/* ---- writing ---- */

static uint8_t scratch[65536];

static leat_err write_copy(leat_sim_app *app, app_stream *s, size_t n, size_t *written)
{
    leat_sim_content(s->out.key, s->written, scratch, n);
    scratch[0] ^= app->fault == LEAT_SIM_FAULT_wrong_byte;
    return leat_stream_write(s->stream, scratch, n, written);
}

static leat_err write_in_place(leat_sim_app *app, app_stream *s, size_t n, size_t *written)
{
    leat_mspan room;
    leat_err err = leat_stream_reserve(s->stream, n, &room);

    (void)app;
    if (err == LEAT_OK) {
        if (room.len == 0 || room.len > n) {
            leat_sim_fail("stream %llu: %zu bytes reserved when %zu were asked for",
                          (unsigned long long)s->id, room.len, n);
        }
        leat_sim_content(s->out.key, s->written, room.data, room.len);
        leat_stream_commit(s->stream, room.len);
        *written = room.len;
    }
    return err;
}

static leat_err write_by_reference(leat_sim_app *app, app_stream *s, size_t n, size_t *written)
{
    leat_buf buf;
    leat_err err = leat_buf_take(leat_ctx_mem(app->ctx), n, &buf);

    if (err != LEAT_OK) {
        return err;
    }
    leat_sim_content(s->out.key, s->written, buf.data, n);
    err = leat_stream_write_buf(s->stream, &buf);
    if (err == LEAT_OK) {
        *written = n;
    } else {
        leat_buf_release(&buf);
    }
    return err;
}

static leat_err write_some(leat_sim_app *app, app_stream *s, size_t n, size_t *written)
{
    uint64_t how = app->end->write_how < 3 ? app->end->write_how : leat_prng_below(&app->prng, 3);

    *written = 0;
    return how == 0   ? write_copy(app, s, n, written)
           : how == 1 ? write_in_place(app, s, n, written)
                      : write_by_reference(app, s, n, written);
}

/* RESET_STREAM, or RESET_STREAM_AT: at once with what is promised, or with more at first. */
static void reset(leat_sim_app *app, app_stream *s)
{
    uint64_t more = leat_prng_between(&app->prng, s->out.reliable, s->written);

    s->was_reset = true;
    if (s->out.reliable == 0) {
        leat_stream_reset(s->stream, s->out.reset_code);
        return;
    }
    for (int i = 0; i < 2; i++) {
        leat_err err =
            leat_stream_reset_at(s->stream, s->out.reset_code, i == 0 ? more : s->out.reliable);

        if (err != LEAT_OK && err != LEAT_ERR_CLOSED) {
            leat_sim_fail("stream %llu: reset_at gives %s", (unsigned long long)s->id,
                          leat_err_name(err));
        }
    }
}

/* All is written that is to be: FIN, or a reset instead. */
static void end_writing(leat_sim_app *app, app_stream *s)
{
    leat_err err;

    s->writes = false;
    if (s->out.reset_at != LEAT_SIM_NO) {
        reset(app, s);
        return;
    }
    if (app->fault == LEAT_SIM_FAULT_strange_reset) {
        leat_stream_reset(s->stream, s->out.reset_code ^ 1);
    }
    err = leat_stream_finish(s->stream);
    s->finished = err == LEAT_OK;
    if (err != LEAT_OK && err != LEAT_ERR_STATE && err != LEAT_ERR_CLOSED) {
        leat_sim_fail("stream %llu: finish gives %s", (unsigned long long)s->id,
                      leat_err_name(err));
    }
}

static uint64_t write_end(const leat_sim_app *app, const app_stream *s)
{
    if (app->fault == LEAT_SIM_FAULT_short_stream) {
        return s->out.size / 2;
    }
    return s->out.reset_at < s->out.size ? s->out.reset_at : s->out.size;
}

/* Writes up to `most` bytes now. */
static void pump(leat_sim_app *app, app_stream *s, uint64_t most)
{
    if (app->fault == LEAT_SIM_FAULT_stall) {
        return;
    }
    while (s->writes && !s->held && s->written < write_end(app, s) && most > 0) {
        uint64_t left = write_end(app, s) - s->written;
        uint64_t want = left < most ? left : most;
        size_t n = 0;
        leat_err err;

        want = want < app->end->piece ? want : app->end->piece;
        want = want < sizeof(scratch) ? want : sizeof(scratch);
        err = write_some(app, s, (size_t)want, &n);
        s->written += n;
        app->bytes_written += n;
        most -= n;
        if (err == LEAT_ERR_BLOCKED || err == LEAT_ERR_NOMEM) {
            if (n != 0) {
                leat_sim_fail("stream %llu: written, and an error", (unsigned long long)s->id);
            }
            if (err == LEAT_ERR_NOMEM && !leat_timer_is_set(&app->tick)) {
                leat_timer_set(&app->tick,
                               leat_ctx_now(app->ctx) + app->end->tick_us * LEAT_MICROSECOND);
            }
            return;
        }
        if (err == LEAT_ERR_STATE || err == LEAT_ERR_CLOSED) {
            s->writes = false; /* stopped, or all is over: events tell which */
            return;
        }
        if (err != LEAT_OK || n == 0) {
            leat_sim_fail("stream %llu: a write of %llu gives %s, %zu written",
                          (unsigned long long)s->id, (unsigned long long)want, leat_err_name(err),
                          n);
        }
    }
    /* Whether the peer knows RESET_STREAM_AT is sure once the handshake is over. */
    if (s->writes && !s->held && s->written == write_end(app, s) &&
        (s->out.reliable == 0 || app->connected)) {
        end_writing(app, s);
    }
}

static uint64_t burst(uint64_t chunk)
{
    return chunk == 0 ? UINT64_MAX : chunk;
}

/* ---- reading ---- */

static void end_reading(leat_sim_app *app, app_stream *s)
{
    s->reads = false;
    if (s->held) {
        s->held = false;
        pump(app, s, burst(app->end->write_chunk));
    }
}

static void check_bytes(leat_sim_app *app, app_stream *s, leat_span span)
{
    size_t wrong;

    (void)app;
    if (s->read + span.len > s->in.size) {
        leat_sim_fail("stream %llu: %llu bytes arrived, %llu were meant to be sent",
                      (unsigned long long)s->id, (unsigned long long)(s->read + span.len),
                      (unsigned long long)s->in.size);
    }
    wrong = leat_sim_content_wrong(s->in.key, s->read, span.data, span.len);
    if (wrong < span.len) {
        leat_sim_fail("stream %llu: byte %llu is wrong", (unsigned long long)s->id,
                      (unsigned long long)(s->read + wrong));
    }
}

static void read_span(leat_sim_app *app, app_stream *s, size_t n)
{
    leat_stream_consume(s->stream, n);
    s->read += n;
    app->bytes_read += n;
}

static void stop(leat_sim_app *app, app_stream *s)
{
    s->stopped = true;
    leat_stream_stop(s->stream, s->in.stop_code);
    end_reading(app, s);
}

/* Reads up to `most` bytes now. */
static void drain(leat_sim_app *app, app_stream *s, uint64_t most)
{
    leat_span span;

    while (s->reads && most > 0 && (span = leat_stream_peek(s->stream)).len > 0) {
        size_t n = span.len < most ? span.len : (size_t)most;

        check_bytes(app, s, span);
        if (n > 1 && leat_prng_chance(&app->prng, 1, 8)) {
            n = (size_t)leat_prng_between(&app->prng, 1, n);
        }
        if (s->in.stop_at < s->read + n) {
            n = (size_t)(s->in.stop_at - s->read);
        }
        read_span(app, s, n);
        most -= n;
        if (s->read == s->in.stop_at) {
            stop(app, s);
        }
    }
    if (!s->reads || !leat_stream_recv_done(s->stream)) {
        return;
    }
    s->whole = leat_stream_recv_whole(s->stream);
    if (s->whole && s->read != s->in.size) {
        leat_sim_fail("stream %llu: ends after %llu of %llu bytes", (unsigned long long)s->id,
                      (unsigned long long)s->read, (unsigned long long)s->in.size);
    }
    if (s->whole && s->in.reset_at != LEAT_SIM_NO) {
        leat_sim_fail("stream %llu: whole, but was never finished", (unsigned long long)s->id);
    }
    end_reading(app, s);
}

/* ---- streams ---- */

static void add(leat_sim_app *app, leat_stream *stream)
{
    app_stream *s = calloc(1, sizeof(*s));

    LEAT_ASSERT(s != NULL);
    s->stream = stream;
    s->id = leat_stream_id(stream);
    s->out = leat_sim_fate_of(app->plan, s->id, app->side);
    s->in = leat_sim_fate_of(app->plan, s->id, 1 - app->side);
    s->writes = leat_stream_is_bidi(stream) || leat_stream_is_local(stream);
    s->reads = leat_stream_is_bidi(stream) || !leat_stream_is_local(stream);
    s->held = s->writes && !leat_stream_is_local(stream) && s->out.after;
    if (leat_stream_is_local(stream) != (opened_by(s->id) == (app->side == 1))) {
        leat_sim_fail("stream %llu: opened by the wrong side", (unsigned long long)s->id);
    }
    app->opened++;
    leat_list_push_back(&app->streams, &s->link);
    leat_stream_set_user(stream, s);
    if (app->end->priorities) {
        LEAT_ASSERT(leat_stream_set_priority(stream, s->out.key & 7, s->out.key >> 3 & 1) ==
                    LEAT_OK);
    }
    if (s->reads && s->in.stop_at == 0) {
        stop(app, s);
    }
    pump(app, s, burst(app->end->write_chunk));
}

static void set_tick(leat_sim_app *app)
{
    if ((app->end->read_chunk || app->end->write_chunk) && !leat_list_empty(&app->streams) &&
        !leat_timer_is_set(&app->tick)) {
        leat_timer_set(&app->tick, leat_ctx_now(app->ctx) +
                                       (app->end->tick_us * LEAT_MICROSECOND << app->vain_ticks));
    }
}

/* An event: the next tick will find something. */
static void end_vain_ticks(leat_sim_app *app)
{
    if (app->vain_ticks > 0) {
        app->vain_ticks = 0;
        leat_timer_unset(&app->tick);
        set_tick(app);
    }
}

/* The budget is used up, for what has been written and not sent: some is free again later. */
static bool is_full(const leat_sim_app *app)
{
    leat_conn_stats_data stats;

    leat_conn_stats(app->conn, &stats);
    return stats.memory_used + sizeof(leat_stream) > app->end->memory;
}

static void open_more(leat_sim_app *app, bool bidi)
{
    uint64_t *left = &app->to_open[!bidi];

    while (*left > 0) {
        leat_stream *stream;
        leat_err err = leat_stream_open(app->conn, bidi, &stream);

        if (err == LEAT_ERR_BLOCKED || (err == LEAT_ERR_CLOSED && app->shutdown)) {
            return;
        }
        if (err == LEAT_ERR_NOMEM && is_full(app)) {
            app->short_of_memory = true;
            leat_timer_set(&app->tick,
                           leat_ctx_now(app->ctx) + app->end->tick_us * LEAT_MICROSECOND);
            return;
        }
        if (err != LEAT_OK) {
            leat_sim_fail("opening a stream gives %s", leat_err_name(err));
        }
        --*left;
        add(app, stream);
    }
}

static void on_tick(leat_timer *timer, leat_time now)
{
    leat_sim_app *app = LEAT_CONTAINER_OF(timer, leat_sim_app, tick);

    uint64_t before = app->bytes_read + app->bytes_written + app->ended;

    (void)now;
    for (leat_link *l = leat_list_first(&app->streams), *next; l; l = next) {
        app_stream *s = LEAT_CONTAINER_OF(l, app_stream, link);

        next = leat_list_next(&app->streams, l);
        drain(app, s, burst(app->end->read_chunk));
        pump(app, s, burst(app->end->write_chunk));
    }
    if (app->short_of_memory && app->conn) {
        app->short_of_memory = false;
        open_more(app, true);
        open_more(app, false);
    }
    if (app->bytes_read + app->bytes_written + app->ended != before) {
        app->vain_ticks = 0;
    } else if (app->vain_ticks < VAIN_TICKS_MOST) {
        app->vain_ticks++;
    }
    set_tick(app);
}

/* ---- datagrams ---- */

enum { DATAGRAM_HEAD = 8 };

static uint64_t datagram_key(const leat_sim_app *app, int sender)
{
    return app->plan->content ^ (UINT64_C(0xda7a) + (uint64_t)sender);
}

/* Each has its number in front; length and content follow from that. */
static size_t datagram_size(const leat_sim_app *app, int sender, uint64_t number)
{
    uint64_t most = app->plan->end[sender].datagram_size;

    return DATAGRAM_HEAD + (size_t)((datagram_key(app, sender) + number * 7919) % (most + 1));
}

static leat_err send_datagram(leat_sim_app *app)
{
    uint8_t data[65536];
    uint64_t number = app->datagrams_sent + app->datagrams_late;
    size_t len = datagram_size(app, app->side, number);
    leat_datagram_options options = {
        .lifetime = app->end->datagram_life_us * LEAT_MICROSECOND, .tag = number, .notify = true};
    leat_buf buf;
    leat_err err;

    memcpy(data, &number, DATAGRAM_HEAD);
    leat_sim_content(datagram_key(app, app->side), number, data + DATAGRAM_HEAD,
                     len - DATAGRAM_HEAD);
    if (number % 2) {
        return leat_conn_send_datagram(app->conn, (leat_span){data, len}, &options);
    }
    err = leat_buf_take(leat_ctx_mem(app->ctx), len, &buf);
    if (err == LEAT_OK) {
        memcpy(buf.data, data, len);
        err = leat_conn_send_datagram_buf(app->conn, &buf, &options);
        leat_buf_release(&buf);
    }
    return err;
}

static void on_datagram_timer(leat_timer *timer, leat_time now)
{
    leat_sim_app *app = LEAT_CONTAINER_OF(timer, leat_sim_app, datagram_timer);
    leat_err err;

    if (!app->conn || app->closed ||
        app->datagrams_sent + app->datagrams_late == app->end->datagrams) {
        return;
    }
    err = send_datagram(app);
    if (err == LEAT_OK) {
        app->datagrams_sent++;
    } else if (err == LEAT_ERR_UNSUPPORTED) {
        app->datagrams_late = app->end->datagrams - app->datagrams_sent;
    } else if (err == LEAT_ERR_LIMIT || err == LEAT_ERR_BLOCKED || err == LEAT_ERR_NOMEM) {
        app->datagrams_late++;
    } else if (err != LEAT_ERR_CLOSED) {
        leat_sim_fail("a datagram gives %s", leat_err_name(err));
    }
    leat_timer_set(timer, now + app->end->datagram_every_us * LEAT_MICROSECOND);
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    leat_sim_app *app = user;
    int sender = 1 - app->side;
    uint64_t number = UINT64_MAX;

    (void)conn;
    if (data.len >= DATAGRAM_HEAD) {
        memcpy(&number, data.data, DATAGRAM_HEAD);
    }
    if (number >= app->plan->end[sender].datagrams || number >= LEAT_SIM_DATAGRAMS_MAX ||
        data.len != datagram_size(app, sender, number) ||
        leat_sim_content_wrong(datagram_key(app, sender), number, data.data + DATAGRAM_HEAD,
                               data.len - DATAGRAM_HEAD) < data.len - DATAGRAM_HEAD) {
        leat_sim_fail("a datagram of %zu bytes that nobody sent", data.len);
    }
    if (app->datagram_seen[number]) {
        leat_sim_fail("datagram %llu twice", (unsigned long long)number);
    }
    app->datagram_seen[number] = 1;
    if (app->fault == LEAT_SIM_FAULT_datagram_twice) {
        on_datagram(conn, data, user);
    }
    app->datagrams_seen++;
}

static void on_datagram_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome,
                             void *user)
{
    leat_sim_app *app = user;

    (void)conn;
    if (app->fault == LEAT_SIM_FAULT_datagram_untold) {
        return;
    }
    if (tag >= app->end->datagrams || app->datagram_over[tag % LEAT_SIM_DATAGRAMS_MAX]) {
        leat_sim_fail("datagram %llu came to its end twice", (unsigned long long)tag);
    }
    app->datagram_over[tag % LEAT_SIM_DATAGRAMS_MAX] = 1;
    app->datagrams_over++;
    app->datagrams_acked += outcome == LEAT_DATAGRAM_ACKED;
}

/* ---- keys ---- */

static void on_rekey_timer(leat_timer *timer, leat_time now)
{
    leat_sim_app *app = LEAT_CONTAINER_OF(timer, leat_sim_app, rekey_timer);
    leat_err err;

    if (!app->conn || app->closed || leat_sim_app_done(app)) {
        return;
    }
    err = leat_conn_update_keys(app->conn);
    if (err != LEAT_OK && err != LEAT_ERR_STATE && err != LEAT_ERR_CLOSED) {
        leat_sim_fail("a key update gives %s", leat_err_name(err));
    }
    leat_timer_set(timer, now + app->end->rekey_every_us * LEAT_MICROSECOND);
}

/* ---- events ---- */

static bool ours(leat_sim_app *app, leat_conn *conn, const char *what)
{
    if (app->conn != conn || app->closed) {
        leat_sim_fail("%s: %s of a connection that is not there", app->side ? "server" : "client",
                      what);
    }
    return true;
}

static void open_all(leat_sim_app *app)
{
    open_more(app, true);
    open_more(app, false);
    set_tick(app);
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user);

/* A client's connection is there, with 0-RTT and not connected, or was, and here is another. The
 * client has not heard of the end of that and begins with its Initial once more; or it followed a
 * Retry, and an Initial of before came when Retry was off again: to the server that is a client of
 * its own, which will never end its handshake. The server wants nothing of this one. */
static bool turn_away(leat_sim_app *app, leat_conn *conn)
{
    static const leat_conn_events end_alone = {.closed = on_closed};
    bool over = app->closed && !app->connected;
    bool left = app->conn && app->conn != conn && !app->connected && app->plan->retry_above > 0;

    if (app->side != 1 || (!over && !left)) {
        return false;
    }
    app->turned_away = true;
    leat_conn_set_events(conn, &end_alone, app);
    leat_conn_close(conn, LEAT_SIM_CLOSE_CODE, (leat_span){(const uint8_t *)"over", 4});
    return true;
}

/* 0-RTT was accepted. */
static void on_early(leat_conn *conn, void *user)
{
    leat_sim_app *app = user;

    if (turn_away(app, conn)) {
        return;
    }
    if (app->conn || app->side != 1 || leat_conn_early(conn) != LEAT_EARLY_ACCEPTED) {
        leat_sim_fail("0-RTT accepted out of turn");
    }
    app->conn = conn;
    open_all(app);
}

static void pump_all(leat_sim_app *app)
{
    for (leat_link *l = leat_list_first(&app->streams), *next; l; l = next) {
        next = leat_list_next(&app->streams, l);
        pump(app, LEAT_CONTAINER_OF(l, app_stream, link), burst(app->end->write_chunk));
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    leat_sim_app *app = user;

    if (turn_away(app, conn)) {
        return;
    }
    if (app->connected || (app->conn && app->conn != conn)) {
        leat_sim_fail("connected twice");
    }
    if (leat_conn_early(conn) == LEAT_EARLY_OFFERED) {
        leat_sim_fail("connected, and the fate of 0-RTT is open");
    }
    app->connected = true;
    app->conn = conn;
    pump_all(app);
    open_all(app);
    if (app->end->datagrams > 0) {
        leat_timer_set(&app->datagram_timer, leat_ctx_now(app->ctx));
    }
    if (app->end->rekey_every_us > 0) {
        leat_timer_set(&app->rekey_timer, leat_ctx_now(app->ctx));
    }
}

static void on_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_sim_app *app = user;

    ours(app, conn, "stream opened");
    if (leat_stream_is_local(stream)) {
        leat_sim_fail("told of a stream that this side has opened");
    }
    add(app, stream);
    end_vain_ticks(app);
    set_tick(app);
}

static app_stream *known(leat_sim_app *app, leat_conn *conn, leat_stream *stream, const char *what)
{
    app_stream *s;

    ours(app, conn, what);
    s = leat_stream_user(stream);
    if (!s || s->stream != stream) {
        leat_sim_fail("%s of a stream that is not there", what);
    }
    return s;
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_sim_app *app = user;
    app_stream *s = known(app, conn, stream, "readable");

    end_vain_ticks(app);
    if (!app->end->read_chunk) {
        drain(app, s, UINT64_MAX);
    }
}

static void on_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_sim_app *app = user;
    app_stream *s = known(app, conn, stream, "writable");

    end_vain_ticks(app);
    if (!app->end->write_chunk) {
        pump(app, s, UINT64_MAX);
    }
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_sim_app *app = user;
    app_stream *s = known(app, conn, stream, "reset");
    bool by_fate = s->in.reset_at != LEAT_SIM_NO && code == s->in.reset_code;
    bool by_stop = s->stopped && code == s->in.stop_code;

    if (!by_fate && !by_stop) {
        leat_sim_fail("stream %llu: reset with code %#llx", (unsigned long long)s->id,
                      (unsigned long long)code);
    }
    /* (A reset for a stop of ours takes the promise back.) */
    if (!s->stopped && s->read < s->in.reliable) {
        leat_sim_fail("stream %llu: reset after %llu bytes, %llu were promised",
                      (unsigned long long)s->id, (unsigned long long)s->read,
                      (unsigned long long)s->in.reliable);
    }
    app->resets_seen++;
    s->reset = true;
    end_reading(app, s);
}

static void on_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_sim_app *app = user;
    app_stream *s = known(app, conn, stream, "stopped");

    if (s->out.stop_at == LEAT_SIM_NO || code != s->out.stop_code) {
        leat_sim_fail("stream %llu: stopped with code %#llx", (unsigned long long)s->id,
                      (unsigned long long)code);
    }
    app->stops_seen++;
    s->was_stopped = true;
    s->writes = s->held = false;
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_sim_app *app = user;
    app_stream *s = known(app, conn, stream, "closed");
    bool sends = leat_stream_is_bidi(stream) || leat_stream_is_local(stream);
    bool receives = leat_stream_is_bidi(stream) || !leat_stream_is_local(stream);

    if (!app->shutdown && leat_conn_is_connected(conn)) {
        drain(app, s, UINT64_MAX); /* a slow reader has not seen an end without bytes */
        if (sends && !s->finished && !s->was_reset && !s->was_stopped) {
            leat_sim_fail("stream %llu: closed, sending part not over", (unsigned long long)s->id);
        }
        if (receives && !s->whole && !s->reset && !s->stopped) {
            leat_sim_fail("stream %llu: closed with %llu of %llu bytes read",
                          (unsigned long long)s->id, (unsigned long long)s->read,
                          (unsigned long long)s->in.size);
        }
    }
    app->ended++;
    leat_link_remove(&s->link);
    free(s);
}

static void on_available(leat_conn *conn, bool bidi, void *user)
{
    leat_sim_app *app = user;

    ours(app, conn, "streams available");
    open_more(app, bidi);
    set_tick(app);
}

static void keep(leat_sim_app *app, int what, leat_span span)
{
    uint8_t *copy = malloc(span.len);

    if (app->side != 0 || span.len == 0) {
        leat_sim_fail("a session or token of nothing");
    }
    LEAT_ASSERT(copy != NULL);
    memcpy(copy, span.data, span.len);
    free((void *)(uintptr_t)app->keep[what].data);
    app->keep[what] = (leat_span){copy, span.len};
}

static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    ours(user, conn, "ticket");
    keep(user, LEAT_SIM_SESSION, session);
}

static void on_token(leat_conn *conn, leat_span token, void *user)
{
    ours(user, conn, "token");
    keep(user, LEAT_SIM_TOKEN, token);
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    leat_sim_app *app = user;

    if (app->side == 1 && app->conn != conn) {
        app->extra++; /* began with a late or damaged Initial, or was turned away */
        if (!app->connected && !app->closed) {
            app->info = *info;
        }
        return;
    }
    if (app->closed) {
        leat_sim_fail("closed twice");
    }
    if (!leat_list_empty(&app->streams)) {
        leat_sim_fail("closed with streams open");
    }
    app->closed = true;
    app->conn = NULL;
    app->info = *info;
    if (info->detail) {
        strncpy(app->detail, info->detail, sizeof(app->detail) - 1);
    } else {
        memcpy(app->detail, info->reason.data ? info->reason.data : (const uint8_t *)"",
               info->reason.len < sizeof(app->detail) ? info->reason.len : sizeof(app->detail) - 1);
    }
}

const leat_conn_events leat_sim_app_events = {
    .early = on_early,
    .connected = on_connected,
    .stream_opened = on_opened,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
    .stream_closed = on_stream_closed,
    .streams_available = on_available,
    .datagram = on_datagram,
    .datagram_done = on_datagram_done,
    .ticket = on_ticket,
    .token = on_token,
    .closed = on_closed,
};

/* ---- the server's door ---- */

static leat_sim_app *come_in(leat_conn *conn, void *user)
{
    const leat_sim_door *door = user;
    leat_sim_app *app = door->find(door->user, leat_conn_remote(conn));

    leat_conn_set_events(conn, &leat_sim_app_events, app);
    return app;
}

static void early_at_door(leat_conn *conn, void *user)
{
    on_early(conn, come_in(conn, user));
}

static void connected_at_door(leat_conn *conn, void *user)
{
    on_connected(conn, come_in(conn, user));
}

static void closed_at_door(leat_conn *conn, const leat_close_info *info, void *user)
{
    on_closed(conn, info, come_in(conn, user));
}

const leat_conn_events leat_sim_door_events = {
    .early = early_at_door,
    .connected = connected_at_door,
    .closed = closed_at_door,
};

/* ---- the whole ---- */

void leat_sim_app_init(leat_sim_app *app, const leat_sim_plan *plan, int side, leat_ctx *ctx)
{
    *app = (leat_sim_app){
        .plan = plan,
        .end = &plan->end[side],
        .side = side,
        .ctx = ctx,
        .to_open = {plan->end[side].bidi, plan->end[side].uni},
    };
    leat_prng_seed(&app->prng, plan->content + (uint64_t)side);
    leat_list_init(&app->streams);
    leat_timer_init(&app->tick, ctx, on_tick);
    leat_timer_init(&app->datagram_timer, ctx, on_datagram_timer);
    leat_timer_init(&app->rekey_timer, ctx, on_rekey_timer);
}

void leat_sim_app_free(leat_sim_app *app)
{
    leat_timer_unset(&app->tick);
    leat_timer_unset(&app->datagram_timer);
    leat_timer_unset(&app->rekey_timer);
    leat_sim_app_forget(app);
    LEAT_ASSERT(leat_list_empty(&app->streams));
}

void leat_sim_app_move(leat_sim_app *from, leat_sim_app *to, const leat_sim_plan *plan)
{
    bool ticks = leat_timer_is_set(&from->tick);
    leat_link *link;

    leat_timer_unset(&from->tick);
    leat_timer_unset(&from->datagram_timer);
    leat_timer_unset(&from->rekey_timer);
    *to = *from;
    to->plan = plan;
    to->end = &plan->end[to->side];
    to->shutdown = true;
    leat_list_init(&to->streams);
    while ((link = leat_list_pop_front(&from->streams)) != NULL) {
        leat_list_push_back(&to->streams, link);
    }
    leat_timer_init(&to->tick, to->ctx, on_tick);
    leat_timer_init(&to->datagram_timer, to->ctx, on_datagram_timer);
    leat_timer_init(&to->rekey_timer, to->ctx, on_rekey_timer);
    if (ticks) {
        set_tick(to);
    }
    if (to->end->datagrams > to->datagrams_sent + to->datagrams_late) {
        leat_timer_set(&to->datagram_timer, leat_ctx_now(to->ctx));
    }
    leat_conn_set_events(to->conn, &leat_sim_app_events, to);
}

void leat_sim_app_begin(leat_sim_app *app, leat_conn *conn)
{
    app->conn = conn;
    if (leat_conn_early(conn) == LEAT_EARLY_OFFERED) {
        open_all(app);
    }
}

void leat_sim_app_forget(leat_sim_app *app)
{
    for (int i = 0; i < LEAT_SIM_KEEPS; i++) {
        free((void *)(uintptr_t)app->keep[i].data);
        app->keep[i] = (leat_span){NULL, 0};
    }
}

bool leat_sim_app_done(const leat_sim_app *app)
{
    const leat_sim_end_plan *end = app->plan->end;
    uint64_t all = end[0].bidi + end[0].uni + end[1].bidi + end[1].uni;

    return app->connected && app->ended == all &&
           app->datagrams_sent + app->datagrams_late == app->end->datagrams;
}
