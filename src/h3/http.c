/* h3/http.c: sessions and exchanges, whatever the protocol.
 *
 * A session takes its connection's events. Each bidirectional stream is one exchange, found through
 * the stream's user pointer; unidirectional streams are the protocol's own. An exchange lives from
 * the opening of its stream to the stream's `stream_closed`, a session to the connection's `closed`.
 *
 * Bodies received are given out as spans of packets. What the application does not take at once is
 * copied out (at most what was left of one packet) and the stream is not read until it goes on:
 * QUIC's flow control then holds the peer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/http.h"

static void resume_task(leat_task *task);

void leat_http_settings_init(leat_http_settings *settings)
{
    *settings = (leat_http_settings){
        .max_header_bytes = LEAT_HTTP_HEADER_BYTES_DEFAULT,
        .max_header_fields = LEAT_HTTP_HEADER_FIELDS_DEFAULT,
        .max_requests = LEAT_HTTP_REQUESTS_DEFAULT,
        .qpack_table = LEAT_QPACK_TABLE_DEFAULT,
    };
}

/* ---- exchanges -------------------------------------------------------------------------------- */

leat_http_exchange *leat_http_exchange_add(leat_http *http, leat_stream *stream)
{
    leat_http_exchange *x = leat_mem_calloc(http->mem, 1, sizeof *x);

    if (!x) {
        return NULL;
    }
    x->http = http;
    x->stream = stream;
    x->id = leat_stream_id(stream);
    leat_task_init(&x->resume, leat_endpoint_ctx(leat_conn_endpoint(http->conn)), resume_task);
    if (http->protocol->opened(x) != LEAT_OK) {
        leat_mem_release(http->mem, x);
        return NULL;
    }
    x->prev = http->last;
    if (http->last) {
        http->last->next = x;
    } else {
        http->first = x;
    }
    http->last = x;
    http->count++;
    leat_stream_set_user(stream, x);
    return x;
}

static void exchange_unlink(leat_http_exchange *x)
{
    leat_http *http = x->http;

    if (x->prev) {
        x->prev->next = x->next;
    } else {
        http->first = x->next;
    }
    if (x->next) {
        x->next->prev = x->prev;
    } else {
        http->last = x->prev;
    }
    http->count--;
}

static void held_free(leat_http_exchange *x)
{
    leat_buf_release(&x->held.buf);
    x->held.from = x->held.to = 0;
}

/* The stream is gone: tells the owner how it ended, and frees. */
static void exchange_close(leat_http_exchange *x)
{
    leat_http *http = x->http;
    bool whole = x->completed && (!http->server || x->finished);

    leat_task_cancel(&x->resume);
    if (x->end.err == LEAT_OK && !whole) {
        x->end.err = LEAT_ERR_CLOSED;
    }
    http->protocol->closed(x);
    exchange_unlink(x);
    if (http->events->exchange_closed) {
        http->events->exchange_closed(x, &x->end, http->user);
    }
    leat_http_fields_free(http, &x->fields);
    held_free(x);
    leat_mem_release(http->mem, x);
}

void leat_http_fail(leat_http_exchange *x, leat_err err, uint64_t code)
{
    if (x->end.err == LEAT_OK) {
        x->end.err = err;
        x->end.code = code;
        x->end.rejected = code == LEAT_H3_REQUEST_REJECTED;
    }
}

void leat_http_cancel(leat_http_exchange *x, uint64_t code)
{
    leat_http *http = x->http;
    uint64_t wire = http->protocol->code(code);

    leat_http_fail(x, LEAT_ERR_CLOSED, code);
    if (!x->send_over) {
        x->send_over = true;
        leat_stream_reset(x->stream, wire);
    }
    if (!x->recv_over) {
        x->recv_over = true;
        x->stop_later = http->reading_exchange == x;
        x->stop_code = wire;
        if (!x->stop_later) {
            leat_stream_stop(x->stream, wire);
        }
    }
    if (http->reading_exchange != x) {
        held_free(x);
    }
    x->paused = false;
    http->protocol->cancelled(x);
}

void leat_http_abort(leat_http *http, uint64_t code, const char *reason)
{
    if (http->closing) {
        return;
    }
    http->closing = true;
    http->close_code = http->protocol->code(code);
    http->close_reason = reason;
    http->close_later = http->reading;
    if (!http->close_later) {
        leat_conn_close(http->conn, http->close_code, leat_http_text(reason));
    }
}

void leat_http_read_begin(leat_http *http, leat_http_exchange *x)
{
    http->reading = true;
    http->reading_exchange = x;
}

void leat_http_read_end(leat_http *http)
{
    leat_http_exchange *x = http->reading_exchange;

    http->reading = false;
    http->reading_exchange = NULL;
    if (x && x->stop_later) {
        x->stop_later = false;
        held_free(x);
        leat_stream_stop(x->stream, x->stop_code);
    }
    if (http->close_later) {
        http->close_later = false;
        leat_conn_close(http->conn, http->close_code, leat_http_text(http->close_reason));
    }
}

/* ---- heads and bodies ------------------------------------------------------------------------- */

void leat_http_tell_head(leat_http_exchange *x, const leat_http_head *head)
{
    const leat_http_events *events = x->http->events;
    void (*tell)(leat_http_exchange *, const leat_http_head *, void *) =
        x->http->server ? events->request : events->response;

    x->head_seen = true;
    if (tell) {
        tell(x, head, x->http->user);
    }
    leat_http_fields_free(x->http, &x->fields);
}

/* Copies what the application did not take, out of a packet that is to be given back. */
static bool hold(leat_http_exchange *x, leat_span data, size_t more)
{
    leat_http_held *held = &x->held;

    if (held->to == 0 && leat_buf_take(x->http->mem, data.len + more, &held->buf) != LEAT_OK) {
        leat_http_fail(x, LEAT_ERR_NOMEM, LEAT_H3_INTERNAL_ERROR);
        leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
        return false;
    }
    memcpy(held->buf.data + held->to, data.data, data.len);
    held->to += data.len;
    return true;
}

/* Offers bytes; returns how many are still to be taken. Pauses when there are any. */
static size_t offer(leat_http_exchange *x, leat_span data)
{
    const leat_http_events *events = x->http->events;
    size_t taken = data.len;

    if (events->body && !x->recv_over) {
        taken = events->body(x, data, x->http->user);
    }
    if (taken >= data.len || x->recv_over) {
        return 0;
    }
    x->paused = true;
    return data.len - taken;
}

bool leat_http_tell_body(leat_http_exchange *x, leat_span data, size_t more)
{
    size_t left = data.len;

    if (x->recv_over) {
        return true;
    }
    if (!x->paused) {
        left = offer(x, data);
    }
    if (left == 0) {
        return true;
    }
    return hold(x, (leat_span){data.data + (data.len - left), left}, more);
}

void leat_http_tell_complete(leat_http_exchange *x)
{
    x->completed = true;
    if (x->http->events->complete) {
        x->http->events->complete(x, x->http->user);
    }
}

leat_err leat_http_pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end)
{
    bool bounded = x->body.length != LEAT_HTTP_LENGTH_UNKNOWN;
    leat_err err;

    *got = 0;
    *end = false;
    if (bounded && room.len > x->body.length - x->body_sent) {
        room.len = (size_t)(x->body.length - x->body_sent);
    }
    if (bounded && room.len == 0) {
        *end = true;
        return LEAT_OK;
    }
    err = x->body.pull(x, room, got, end, x->user);
    if (err != LEAT_OK) {
        return err;
    }
    if (*got > room.len) {
        return LEAT_ERR_INVALID;
    }
    x->body_sent += *got;
    if (bounded && x->body_sent == x->body.length) {
        *end = true;
    } else if (bounded && *end) {
        return LEAT_ERR_TRUNCATED; /* shorter than announced */
    }
    x->app_waits = *got == 0 && !*end;
    return LEAT_OK;
}

/* Gives out what was held; true when nothing of it is left. */
static bool give_held(leat_http_exchange *x)
{
    leat_http_held *held = &x->held;

    if (held->to > held->from) {
        leat_span rest = {held->buf.data + held->from, held->to - held->from};

        leat_http_read_begin(x->http, x); /* the bytes must outlive the event */
        held->from = held->to - offer(x, rest);
        leat_http_read_end(x->http);
    }
    if (x->recv_over || x->http->closing) {
        return false;
    }
    if (x->paused) {
        return false;
    }
    held_free(x);
    return true;
}

static void resume_task(leat_task *task)
{
    leat_http_exchange *x =
        (leat_http_exchange *)((char *)task - offsetof(leat_http_exchange, resume));
    const leat_http_protocol *protocol = x->http->protocol;

    if (x->paused && !x->recv_over) {
        x->paused = false;
        if (give_held(x)) {
            protocol->readable(x->http, x->stream, x);
        }
    }
    if (x->app_waits && !x->send_over) {
        x->app_waits = false;
        protocol->resume(x);
    }
}

void leat_http_resume(leat_http_exchange *x)
{
    leat_ctx_run_soon(x->resume.ctx, &x->resume);
}

/* ---- the connection's events ------------------------------------------------------------------ */

static leat_http_exchange *exchange_of(leat_stream *stream)
{
    return leat_stream_is_bidi(stream) ? leat_stream_user(stream) : NULL;
}

/* A stream that does not become an exchange. */
static void refuse(leat_http *http, leat_stream *stream, uint64_t code)
{
    leat_stream_stop(stream, http->protocol->code(code));
    leat_stream_reset(stream, http->protocol->code(code));
}

static void on_stream_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = NULL;

    (void)conn;
    if (http->closing) {
        return;
    }
    if (http->shutting && leat_stream_is_bidi(stream)) {
        refuse(http, stream, LEAT_H3_REQUEST_REJECTED);
        return;
    }
    if (leat_stream_is_bidi(stream)) {
        if (!http->server) {
            leat_http_abort(http, LEAT_H3_STREAM_CREATION_ERROR, "a server opened a request stream");
            return;
        }
        x = leat_http_exchange_add(http, stream);
        if (!x) {
            refuse(http, stream, LEAT_H3_REQUEST_REJECTED);
            return;
        }
    }
    http->protocol->readable(http, stream, x);
}

static void on_stream_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = exchange_of(stream);

    (void)conn;
    if (http->closing || (leat_stream_is_bidi(stream) && (!x || x->paused || x->recv_over))) {
        return;
    }
    http->protocol->readable(http, stream, x);
}

static void on_stream_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = exchange_of(stream);

    (void)conn;
    if (http->closing || (leat_stream_is_bidi(stream) && (!x || x->send_over))) {
        return;
    }
    http->protocol->writable(http, stream, x);
}

static void on_stream_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = exchange_of(stream);

    (void)conn;
    if (http->closing) {
        return;
    }
    if (x) {
        if (!x->completed) {
            leat_http_fail(x, LEAT_ERR_RESET, code);
        }
        x->recv_over = true;
        held_free(x);
        x->paused = false;
    }
    http->protocol->reset(http, stream, x, code);
}

static void on_stream_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = exchange_of(stream);

    (void)conn;
    if (http->closing) {
        return;
    }
    if (x) {
        /* A client may be told so when the response needs no more of the request: that is no failure
         * (RFC 9114 s4.1). */
        if (http->server) {
            leat_http_fail(x, LEAT_ERR_RESET, code);
        }
        x->send_over = true;
    }
    http->protocol->stopped(http, stream, x, code);
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_http *http = user;
    leat_http_exchange *x = exchange_of(stream);

    (void)conn;
    if (x) {
        exchange_close(x);
    } else if (!leat_stream_is_bidi(stream)) {
        http->protocol->uni_closed(http, stream);
    }
    if (http->shutting && http->count == 0) {
        leat_http_close(http, LEAT_H3_NO_ERROR);
    }
}

static void on_streams_available(leat_conn *conn, bool bidi, void *user)
{
    leat_http *http = user;

    (void)conn;
    if (bidi && !http->closing && http->events->available) {
        http->events->available(http, http->user);
    }
}

static void on_token(leat_conn *conn, leat_span token, void *user)
{
    leat_http *http = user;

    (void)conn;
    if (http->events->token) {
        http->events->token(http, token, http->user);
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    leat_http *http = user;

    (void)conn;
    http->closing = true;
    http->protocol->stop(http);
    if (http->events->closed) {
        http->events->closed(http, info, http->user);
    }
    leat_mem_release(http->mem, http);
}

static const leat_conn_events conn_events = {
    .stream_opened = on_stream_opened,
    .stream_readable = on_stream_readable,
    .stream_writable = on_stream_writable,
    .stream_reset = on_stream_reset,
    .stream_stopped = on_stream_stopped,
    .stream_closed = on_stream_closed,
    .streams_available = on_streams_available,
    .token = on_token,
    .closed = on_closed,
};

/* ---- the public face -------------------------------------------------------------------------- */

static const leat_http_protocol *protocol_of(leat_span alpn)
{
    if (leat_http_is(alpn, leat_http_h3.alpn)) {
        return &leat_http_h3;
    }
    return leat_http_is(alpn, leat_http_hq.alpn) ? &leat_http_hq : NULL;
}

leat_err leat_http_attach(leat_conn *conn, const leat_http_settings *settings,
                          const leat_http_events *events, void *user, leat_http **out)
{
    const leat_http_protocol *protocol = protocol_of(leat_conn_alpn(conn));
    leat_mem *mem = leat_ctx_mem(leat_endpoint_ctx(leat_conn_endpoint(conn)));
    leat_http *http;
    leat_err err;

    *out = NULL;
    if (!protocol) {
        return LEAT_ERR_UNSUPPORTED;
    }
    http = leat_mem_calloc(mem, 1, sizeof *http);
    if (!http) {
        return LEAT_ERR_NOMEM;
    }
    *http = (leat_http){
        .conn = conn,
        .mem = mem,
        .protocol = protocol,
        .events = events,
        .user = user,
        .server = leat_conn_is_server(conn),
    };
    if (settings) {
        http->settings = *settings;
    } else {
        leat_http_settings_init(&http->settings);
    }
    err = protocol->start(http);
    if (err != LEAT_OK) {
        leat_mem_release(mem, http);
        return err;
    }
    leat_conn_set_events(conn, &conn_events, http);
    *out = http;
    return LEAT_OK;
}

/* No byte that could end a line or a word of the request. */
static bool path_fits(leat_span path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (path.data[i] <= ' ' || path.data[i] == 0x7f) {
            return false;
        }
    }
    return path.len > 0;
}

leat_err leat_http_request(leat_http *http, const leat_http_request_head *head, void *user,
                           leat_http_exchange **out)
{
    leat_http_exchange *x;
    leat_stream *stream;
    leat_err err;

    *out = NULL;
    if (http->server || !path_fits(head->path)) {
        return LEAT_ERR_INVALID;
    }
    if (http->closing || http->shutting || http->going_away) {
        return LEAT_ERR_CLOSED;
    }
    err = leat_stream_open(http->conn, true, &stream);
    if (err != LEAT_OK) {
        return err;
    }
    x = leat_http_exchange_add(http, stream);
    if (!x) {
        refuse(http, stream, LEAT_H3_REQUEST_CANCELLED);
        return LEAT_ERR_NOMEM;
    }
    x->user = user;
    x->answered = true;
    x->body = head->body;
    x->head_method = leat_http_is(head->method, "HEAD");
    err = http->protocol->request(x, head);
    if (err != LEAT_OK) {
        leat_stream_set_user(stream, NULL);
        http->protocol->closed(x);
        exchange_unlink(x);
        leat_mem_release(http->mem, x);
        refuse(http, stream, LEAT_H3_REQUEST_CANCELLED);
        return err;
    }
    *out = x;
    return LEAT_OK;
}

leat_err leat_http_respond(leat_http_exchange *x, const leat_http_response_head *head)
{
    if (!x->http->server || head->status < 200 || head->status > 599) {
        return LEAT_ERR_INVALID;
    }
    if (x->answered) {
        return LEAT_ERR_STATE;
    }
    if (x->http->closing || x->send_over) {
        return LEAT_ERR_CLOSED;
    }
    x->answered = true;
    x->body = head->body;
    return x->http->protocol->respond(x, head);
}

void leat_http_shutdown(leat_http *http)
{
    if (http->shutting || http->closing) {
        return;
    }
    http->shutting = true;
    if (http->count == 0) {
        leat_http_close(http, LEAT_H3_NO_ERROR);
    } else {
        http->protocol->shutdown(http);
    }
}

void leat_http_close(leat_http *http, uint64_t code)
{
    leat_http_abort(http, code, "");
}

leat_conn *leat_http_conn(leat_http *http)
{
    return http->conn;
}

void leat_http_set_user(leat_http *http, void *user)
{
    http->user = user;
}

void *leat_http_user(const leat_http *http)
{
    return http->user;
}

size_t leat_http_exchanges(const leat_http *http)
{
    return http->count;
}

leat_http *leat_http_exchange_session(leat_http_exchange *x)
{
    return x->http;
}

leat_stream *leat_http_exchange_stream(leat_http_exchange *x)
{
    return x->stream;
}

void leat_http_exchange_set_user(leat_http_exchange *x, void *user)
{
    x->user = user;
}

void *leat_http_exchange_user(const leat_http_exchange *x)
{
    return x->user;
}

const char *leat_h3_error_name(uint64_t code)
{
    switch (code) {
#define ERROR_NAME(name, value, text)                                                              \
    case LEAT_H3_##name:                                                                           \
        return &("H3_" #name)[code >= LEAT_H3_QPACK_DECOMPRESSION_FAILED ? 3 : 0];
        LEAT_H3_ERROR_LIST(ERROR_NAME)
#undef ERROR_NAME
    }
    return "H3_?";
}

const char *leat_h3_error_text(uint64_t code)
{
    switch (code) {
#define ERROR_TEXT(name, value, text)                                                              \
    case LEAT_H3_##name:                                                                           \
        return text;
        LEAT_H3_ERROR_LIST(ERROR_TEXT)
#undef ERROR_TEXT
    }
    return "unknown error";
}
