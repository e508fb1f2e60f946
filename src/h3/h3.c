/* h3/h3.c: an HTTP/3 session on nghttp3: its streams, its memory, its end.
 *
 * nghttp3 takes all its memory from the context's, through its allocator hook. Its decoder is given
 * a dynamic table but no blocked streams: a header block that would have to wait for the encoder
 * stream would be buffered by nghttp3 beyond flow control, so the peer may not send one. Its
 * encoder has no dynamic table: an entry costs instructions and memory, and saves some bytes of a
 * head.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/h3.h"

enum { BUCKETS_FIRST = 16 };

/* ---- nghttp3's memory ---- */

static void *hook_malloc(size_t size, void *mem)
{
    return leat_mem_malloc(mem, size);
}

static void hook_free(void *block, void *mem)
{
    leat_mem_release(mem, block);
}

static void *hook_calloc(size_t count, size_t size, void *mem)
{
    return leat_mem_calloc(mem, count, size);
}

static void *hook_realloc(void *block, size_t size, void *mem)
{
    return leat_mem_realloc(mem, block, size);
}

/* ---- exchanges by stream ID ---- */

static size_t bucket_of(const leat_h3 *h3, uint64_t id)
{
    return (size_t)(id >> 2) & (h3->bucket_count - 1);
}

leat_http_exchange *leat_h3_find(leat_h3 *h3, int64_t stream_id)
{
    leat_http_exchange *x = h3->buckets[bucket_of(h3, (uint64_t)stream_id)];

    while (x && x->id != (uint64_t)stream_id) {
        x = x->hash_next;
    }
    return x;
}

/* Doubles the buckets; without memory the chains just get longer. */
static void grow(leat_h3 *h3)
{
    size_t count = h3->bucket_count * 2;
    leat_http_exchange **buckets = leat_mem_calloc(h3->http->mem, count, sizeof(void *));

    if (!buckets) {
        return;
    }
    leat_mem_release(h3->http->mem, h3->buckets);
    h3->buckets = buckets;
    h3->bucket_count = count;
    for (leat_http_exchange *x = h3->http->first; x; x = x->next) {
        size_t at = bucket_of(h3, x->id);

        x->hash_next = buckets[at];
        buckets[at] = x;
    }
}

/* RFC 9218 lets a client set priorities of streams that it has not opened yet. nghttp3 keeps a
 * record for each, so it must know how far that may go: what we allow open at once beyond the last
 * one. */
static void allow_requests(leat_h3 *h3, uint64_t stream_id)
{
    uint64_t allowed = (stream_id >> 2) + 1 + h3->http->settings.max_requests;

    if (h3->http->server && allowed > h3->requests_allowed) {
        h3->requests_allowed = allowed;
        nghttp3_conn_set_max_client_streams_bidi(h3->conn, allowed);
    }
}

static leat_err h3_opened(leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(x->http);
    size_t at;

    if (x->http->count >= h3->bucket_count) {
        grow(h3);
    }
    at = bucket_of(h3, x->id);
    x->hash_next = h3->buckets[at];
    h3->buckets[at] = x;
    allow_requests(h3, x->id);
    return LEAT_OK;
}

static void h3_closed(leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(x->http);
    leat_http_exchange **at = &h3->buckets[bucket_of(h3, x->id)];

    while (*at != x) {
        at = &(*at)->hash_next;
    }
    *at = x->hash_next;
    nghttp3_conn_close_stream(h3->conn, (int64_t)x->id, x->end.code);
}

/* ---- what nghttp3 asks for ---- */

void leat_h3_failed(leat_h3 *h3, nghttp3_ssize error)
{
    int code = (int)error;

    leat_http_abort(h3->http, nghttp3_err_infer_quic_app_error_code(code), nghttp3_strerror(code));
}

/* STOP_SENDING or RESET_STREAM: for a request stream nghttp3 asks for both, with one reason. */
static int on_give_up(nghttp3_conn *conn, int64_t stream_id, uint64_t code, void *user,
                      void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = leat_h3_find(h3, stream_id);

    (void)conn;
    (void)stream_user;
    if (x) {
        leat_http_fail(x, LEAT_ERR_MALFORMED, code);
        leat_http_cancel(x, code);
    } else {
        h3->uni_stop = true;
    }
    return 0;
}

/* GOAWAY. From a server: requests from this stream ID on were not and will not be looked at. */
static int on_shutdown(nghttp3_conn *conn, int64_t id, void *user)
{
    leat_h3 *h3 = user;
    leat_http *http = h3->http;

    (void)conn;
    http->going_away = true;
    for (leat_http_exchange *x = http->server ? NULL : http->first; x; x = x->next) {
        if (x->id >= (uint64_t)id) {
            leat_http_fail(x, LEAT_ERR_CLOSED, LEAT_H3_REQUEST_REJECTED);
            leat_http_cancel(x, LEAT_H3_REQUEST_CANCELLED);
        }
    }
    if (http->events->goaway) {
        http->events->goaway(http, http->user);
    }
    return 0;
}

/* ---- start and stop ---- */

static leat_err bind_streams(leat_h3 *h3)
{
    leat_conn *conn = h3->http->conn;
    leat_err err = leat_stream_open(conn, false, &h3->control);

    if (err == LEAT_OK) {
        err = leat_stream_open(conn, false, &h3->encoder);
    }
    if (err == LEAT_OK) {
        err = leat_stream_open(conn, false, &h3->decoder);
    }
    if (err != LEAT_OK) {
        return err == LEAT_ERR_BLOCKED ? LEAT_ERR_UNSUPPORTED : err;
    }
    /* Small and needed by every request: ahead of all bodies. */
    leat_stream_set_priority(h3->control, 0, true);
    leat_stream_set_priority(h3->encoder, 0, true);
    leat_stream_set_priority(h3->decoder, 0, true);
    if (nghttp3_conn_bind_control_stream(h3->conn, (int64_t)leat_stream_id(h3->control)) != 0 ||
        nghttp3_conn_bind_qpack_streams(h3->conn, (int64_t)leat_stream_id(h3->encoder),
                                        (int64_t)leat_stream_id(h3->decoder)) != 0) {
        return LEAT_ERR_NOMEM;
    }
    return LEAT_OK;
}

static void pump_task(leat_task *task)
{
    leat_h3_pump((leat_h3 *)((char *)task - offsetof(leat_h3, pump)));
}

static void h3_free(leat_h3 *h3)
{
    leat_mem *mem = h3->http->mem;

    leat_task_cancel(&h3->pump);
    nghttp3_conn_del(h3->conn);
    leat_mem_release(mem, h3->buckets);
    leat_mem_release(mem, h3);
}

static leat_err session_new(leat_h3 *h3)
{
    leat_http *http = h3->http;
    nghttp3_callbacks callbacks = {
        .stop_sending = on_give_up, .reset_stream = on_give_up, .shutdown = on_shutdown};
    nghttp3_settings settings;
    int rv;

    leat_h3_recv_callbacks(&callbacks);
    nghttp3_settings_default(&settings);
    settings.max_field_section_size = http->settings.max_header_bytes;
    settings.qpack_max_dtable_capacity = http->settings.qpack_table;
    settings.qpack_encoder_max_dtable_capacity = 0;
    settings.qpack_blocked_streams = 0;
    if (http->server) {
        rv = nghttp3_conn_server_new(&h3->conn, &callbacks, &settings, &h3->mem, h3);
    } else {
        rv = nghttp3_conn_client_new(&h3->conn, &callbacks, &settings, &h3->mem, h3);
    }
    return rv == 0 ? LEAT_OK : LEAT_ERR_NOMEM;
}

static leat_err h3_start(leat_http *http)
{
    leat_h3 *h3 = leat_mem_calloc(http->mem, 1, sizeof *h3);
    leat_ctx *ctx = leat_endpoint_ctx(leat_conn_endpoint(http->conn));
    leat_err err = LEAT_ERR_NOMEM;

    if (!h3) {
        return LEAT_ERR_NOMEM;
    }
    h3->http = http;
    h3->mem = (nghttp3_mem){http->mem, hook_malloc, hook_free, hook_calloc, hook_realloc};
    h3->bucket_count = BUCKETS_FIRST;
    h3->buckets = leat_mem_calloc(http->mem, h3->bucket_count, sizeof(void *));
    leat_task_init(&h3->pump, ctx, pump_task);
    if (h3->buckets) {
        err = session_new(h3);
    }
    if (err == LEAT_OK) {
        err = bind_streams(h3);
    }
    if (err != LEAT_OK) {
        h3_free(h3);
        return err;
    }
    http->state = h3;
    if (http->server) {
        nghttp3_conn_set_max_concurrent_streams(h3->conn, http->settings.max_requests);
        h3->requests_allowed = http->settings.max_requests;
        nghttp3_conn_set_max_client_streams_bidi(h3->conn, h3->requests_allowed);
    }
    leat_ctx_run_soon(ctx, &h3->pump); /* SETTINGS */
    return LEAT_OK;
}

static void h3_stop(leat_http *http)
{
    h3_free(leat_h3_of(http));
}

/* ---- ends ---- */

static void h3_cancelled(leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(x->http);

    leat_h3_enter(h3);
    h3->due = true;
    nghttp3_conn_shutdown_stream_write(h3->conn, (int64_t)x->id);
    if (nghttp3_conn_shutdown_stream_read(h3->conn, (int64_t)x->id) != 0) {
        leat_http_abort(x->http, LEAT_H3_INTERNAL_ERROR, "out of memory");
    }
    leat_h3_leave(h3);
}

static bool is_ours(const leat_h3 *h3, const leat_stream *stream)
{
    return stream == h3->control || stream == h3->encoder || stream == h3->decoder;
}

/* A unidirectional stream of the peer's has ended: was it one that must not? */
static void uni_ended(leat_h3 *h3, leat_stream *stream)
{
    int64_t id = (int64_t)leat_stream_id(stream);

    if (!h3->http->closing && leat_conn_is_connected(h3->http->conn) &&
        nghttp3_conn_close_stream(h3->conn, id, 0) == NGHTTP3_ERR_H3_CLOSED_CRITICAL_STREAM) {
        leat_http_abort(h3->http, LEAT_H3_CLOSED_CRITICAL_STREAM, "a critical stream was closed");
    }
}

static void h3_uni_closed(leat_http *http, leat_stream *stream)
{
    leat_h3 *h3 = leat_h3_of(http);

    if (!is_ours(h3, stream)) {
        uni_ended(h3, stream);
    }
}

/* A request reset before its end needs no answer; a response reset leaves nothing to send. */
static void h3_reset(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code)
{
    (void)code;
    if (!x) {
        uni_ended(leat_h3_of(http), stream);
        return;
    }
    if (!x->send_over && !x->completed) {
        x->send_over = true;
        leat_stream_reset(x->stream, LEAT_H3_REQUEST_CANCELLED);
    }
    if (!x->completed) {
        h3_cancelled(x);
    }
}

static void h3_stopped(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code)
{
    leat_h3 *h3 = leat_h3_of(http);

    (void)code;
    if (x) {
        nghttp3_conn_shutdown_stream_write(h3->conn, (int64_t)x->id);
    } else if (is_ours(h3, stream)) {
        leat_http_abort(http, LEAT_H3_CLOSED_CRITICAL_STREAM, "a critical stream was stopped");
    }
}

static void h3_shutdown(leat_http *http)
{
    leat_h3 *h3 = leat_h3_of(http);

    leat_h3_enter(h3);
    h3->due = true;
    if (nghttp3_conn_shutdown(h3->conn) != 0) {
        leat_http_abort(http, LEAT_H3_INTERNAL_ERROR, "out of memory");
    }
    leat_h3_leave(h3);
}

static uint64_t h3_code(uint64_t code)
{
    return code;
}

const leat_http_protocol leat_http_h3 = {
    .alpn = LEAT_HTTP_ALPN_H3,
    .start = h3_start,
    .stop = h3_stop,
    .request = leat_h3_request,
    .respond = leat_h3_respond,
    .opened = h3_opened,
    .closed = h3_closed,
    .readable = leat_h3_readable,
    .writable = leat_h3_writable,
    .reset = h3_reset,
    .stopped = h3_stopped,
    .uni_closed = h3_uni_closed,
    .told = leat_h3_told,
    .resume = leat_h3_resume,
    .cancelled = h3_cancelled,
    .shutdown = h3_shutdown,
    .code = h3_code,
};
