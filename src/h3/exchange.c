/* h3/exchange.c: one request and its response, from the opening of its stream to the stream's end.
 *
 * Bodies received are given out as spans of packets. What the application does not take at once is
 * copied out (at most what was left of one packet) and the stream is not read until it goes on:
 * QUIC's flow control then holds the peer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/http.h"

static void resume_task(leat_task *task);

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

void leat_http_held_free(leat_http_exchange *x)
{
    leat_buf_release(&x->held.buf);
    x->held.from = x->held.to = 0;
}

/* The stream is gone: tells the owner how it ended, and frees. */
void leat_http_exchange_close(leat_http_exchange *x)
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
    leat_http_held_free(x);
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
        leat_http_held_free(x);
    }
    x->paused = false;
    http->protocol->cancelled(x);
}

/* ---- heads and bodies ---- */

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
    leat_http_held_free(x);
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

/* ---- the public face ---- */

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

/* RFC 9110 s9.2.1. No method: GET. */
static bool is_safe(leat_span method)
{
    return method.len == 0 || leat_http_is(method, "GET") || leat_http_is(method, "HEAD") ||
           leat_http_is(method, "OPTIONS");
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
    if (leat_conn_early(http->conn) == LEAT_EARLY_OFFERED && !is_safe(head->method)) {
        return LEAT_ERR_STATE;
    }
    err = leat_stream_open(http->conn, true, &stream);
    if (err != LEAT_OK) {
        return err;
    }
    x = leat_http_exchange_add(http, stream);
    if (!x) {
        leat_http_refuse(http, stream, LEAT_H3_REQUEST_CANCELLED);
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
        leat_http_refuse(http, stream, LEAT_H3_REQUEST_CANCELLED);
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
