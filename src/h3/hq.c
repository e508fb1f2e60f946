/* h3/hq.c: hq-interop, HTTP/0.9 over QUIC: the request is the line `GET /path` on a bidirectional
 * stream, the response is the bare body, FIN ends both.
 *
 * The interop runner's only application protocol. There is no status: a server that has nothing to
 * give resets the stream, with the HTTP status as the code. There is no length: the end of the
 * stream is the end of the body, so a reset must never be taken for it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/http.h"

enum { HQ_CHUNK = 65536 }; /* asked of the send buffer at a time */

static leat_err hq_start(leat_http *http)
{
    (void)http;
    return LEAT_OK;
}

static void hq_stop(leat_http *http)
{
    (void)http;
}

static leat_err hq_opened(leat_http_exchange *x)
{
    (void)x;
    return LEAT_OK;
}

static void hq_closed(leat_http_exchange *x)
{
    (void)x;
}

/* A code of HTTP/3 is not one of this protocol, which has none; statuses pass. */
static uint64_t hq_code(uint64_t code)
{
    return code == LEAT_H3_NO_ERROR ? 0 : code;
}

/* ---- sending ---- */

static void hq_finish(leat_http_exchange *x)
{
    if (!x->finished && leat_stream_finish(x->stream) == LEAT_OK) {
        x->finished = true;
    }
}

/* Pulls the body into the send buffer until that is full. */
static void hq_send(leat_http_exchange *x)
{
    while (!x->finished && !x->send_over && !x->app_waits) {
        leat_mspan room;
        size_t got;
        bool end;

        if (!x->body.pull || x->body_sent == x->body.length) {
            hq_finish(x);
            return;
        }
        if (leat_stream_reserve(x->stream, HQ_CHUNK, &room) != LEAT_OK) {
            return; /* `stream_writable` will come, or the end */
        }
        if (leat_http_pull(x, room, &got, &end) != LEAT_OK) {
            leat_http_fail(x, LEAT_ERR_IO, LEAT_H3_INTERNAL_ERROR);
            leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
            return;
        }
        leat_stream_commit(x->stream, got);
        if (end) {
            hq_finish(x);
        }
    }
}

static leat_err hq_respond(leat_http_exchange *x, const leat_http_response_head *head)
{
    if (head->status != 200) {
        leat_http_cancel(x, head->status);
        return LEAT_OK;
    }
    hq_send(x);
    return LEAT_OK;
}

static leat_err hq_request(leat_http_exchange *x, const leat_http_request_head *head)
{
    static const char get[] = "GET ", end[] = "\r\n";
    leat_buf line;
    uint8_t *p;
    leat_err err;

    if ((head->method.len && !leat_http_is(head->method, "GET")) || head->body.pull) {
        return LEAT_ERR_UNSUPPORTED;
    }
    err = leat_buf_take(x->http->mem, sizeof get - 1 + head->path.len + sizeof end - 1, &line);
    if (err != LEAT_OK) {
        return err;
    }
    p = line.data;
    memcpy(p, get, sizeof get - 1);
    p += sizeof get - 1;
    memcpy(p, head->path.data, head->path.len);
    memcpy(p + head->path.len, end, sizeof end - 1);
    err = leat_stream_write_buf(x->stream, &line);
    leat_buf_release(&line); /* empty when it was taken */
    if (err == LEAT_OK) {
        hq_finish(x);
    }
    return err;
}

static void hq_writable(leat_http *http, leat_stream *stream, leat_http_exchange *x)
{
    (void)stream;
    if (x && http->server && x->answered) {
        hq_send(x);
    }
}

static void hq_resume(leat_http_exchange *x)
{
    hq_send(x);
}

/* ---- receiving ---- */

/* The request line without its end is in x->fields: checks it and tells the application. */
static void hq_tell_request(leat_http_exchange *x)
{
    leat_span line = {x->fields.bytes, x->fields.bytes_len};
    leat_http_head head = {.content_length = 0};

    while (line.len && line.data[line.len - 1] == '\r') {
        line.len--;
    }
    if (line.len < 5 || memcmp(line.data, "GET /", 5) != 0 ||
        memchr(line.data, 0, line.len) != NULL) {
        leat_http_fail(x, LEAT_ERR_MALFORMED, LEAT_H3_MESSAGE_ERROR);
        leat_http_cancel(x, 400);
        return;
    }
    head.method = leat_http_text("GET");
    head.scheme = leat_http_text("https");
    head.authority = leat_conn_server_name(x->http->conn);
    head.path = (leat_span){line.data + 4, line.len - 4};
    leat_http_tell_head(x, &head);
}

/* Gathers the request line; what follows it is dropped. */
static void hq_read_request(leat_http_exchange *x)
{
    for (;;) {
        leat_span data = leat_stream_peek(x->stream);
        const uint8_t *newline;
        leat_span part = data;

        if (data.len == 0) {
            break;
        }
        if (!x->head_seen) {
            newline = memchr(data.data, '\n', data.len);
            if (newline) {
                part.len = (size_t)(newline - data.data);
            }
            if (!leat_http_fields_bytes(x->http, &x->fields, part)) {
                leat_http_fail(x, LEAT_ERR_LIMIT, LEAT_H3_EXCESSIVE_LOAD);
                leat_http_cancel(x, 431);
                return;
            }
            if (newline) {
                hq_tell_request(
                    x); /* the head lies in a copy: nothing of the span is read after it */
            }
        }
        if (x->recv_over || x->http->closing) {
            return;
        }
        leat_stream_consume(x->stream, data.len);
    }
    if (!leat_stream_recv_whole(x->stream) || x->fin_fed) {
        return;
    }
    x->fin_fed = true;
    if (!x->head_seen) {
        hq_tell_request(x);
    }
    if (!x->recv_over) {
        leat_http_tell_complete(x);
    }
}

static void hq_tell_response(leat_http_exchange *x)
{
    leat_http_head head = {.status = 200, .content_length = LEAT_HTTP_LENGTH_UNKNOWN};

    if (!x->head_seen) {
        leat_http_tell_head(x, &head);
    }
}

static void hq_read_response(leat_http_exchange *x)
{
    while (!x->paused && !x->recv_over) {
        leat_span data = leat_stream_peek(x->stream);

        if (data.len == 0) {
            break;
        }
        leat_http_read_begin(x->http, x);
        hq_tell_response(x);
        leat_http_tell_body(x, data, 0);
        leat_http_read_end(x->http);
        if (x->recv_over || x->http->closing) {
            return;
        }
        leat_stream_consume(x->stream, data.len);
    }
    if (x->paused || x->recv_over || x->fin_fed || !leat_stream_recv_whole(x->stream)) {
        return;
    }
    x->fin_fed = true;
    hq_tell_response(x);
    if (!x->recv_over) {
        leat_http_tell_complete(x);
    }
}

static void hq_readable(leat_http *http, leat_stream *stream, leat_http_exchange *x)
{
    if (!x) {
        leat_stream_stop(stream, 0); /* the protocol has no unidirectional streams */
    } else if (http->server) {
        hq_read_request(x);
    } else {
        hq_read_response(x);
    }
}

/* ---- ends ---- */

static void hq_reset(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code)
{
    (void)stream;
    if (x && http->server && !x->send_over) {
        x->send_over = true;
        leat_stream_reset(x->stream, code); /* the client gave its request up */
    }
}

static void hq_stopped(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code)
{
    (void)http;
    (void)stream;
    (void)x;
    (void)code;
}

static void hq_uni_closed(leat_http *http, leat_stream *stream)
{
    (void)http;
    (void)stream;
}

static void hq_cancelled(leat_http_exchange *x)
{
    (void)x;
}

static void hq_shutdown(leat_http *http)
{
    (void)http;
}

const leat_http_protocol leat_http_hq = {
    .alpn = LEAT_HTTP_ALPN_HQ,
    .start = hq_start,
    .stop = hq_stop,
    .request = hq_request,
    .respond = hq_respond,
    .opened = hq_opened,
    .closed = hq_closed,
    .readable = hq_readable,
    .writable = hq_writable,
    .reset = hq_reset,
    .stopped = hq_stopped,
    .uni_closed = hq_uni_closed,
    .resume = hq_resume,
    .cancelled = hq_cancelled,
    .shutdown = hq_shutdown,
    .code = hq_code,
};
