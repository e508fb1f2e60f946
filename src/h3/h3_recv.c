/* h3/h3_recv.c: from streams into nghttp3, and from its callbacks to the application.
 *
 * Each span of a stream is fed to nghttp3 whole and then consumed; body bytes come back as parts of
 * that span, so they are touched once. When the application takes too little, tell_body copies out
 * what is left of the span and the stream is not read until it goes on. The end of the stream is
 * fed after the last byte, alone: whether a span is the last is known only when it is consumed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/h3.h"

enum { QPACK_ENCODER_STREAM = 2 }; /* RFC 9204 s4.2 */

/* ---- nghttp3's callbacks ---- */

static int on_begin_headers(nghttp3_conn *conn, int64_t stream_id, void *user, void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = leat_h3_find(h3, stream_id);

    (void)stream_user;
    return nghttp3_conn_set_stream_user_data(conn, stream_id, x);
}

static leat_span span_of(nghttp3_rcbuf *rcbuf)
{
    nghttp3_vec v = nghttp3_rcbuf_get_buf(rcbuf);

    return (leat_span){v.base, v.len};
}

static int on_header(nghttp3_conn *conn, int64_t stream_id, int32_t token, nghttp3_rcbuf *name,
                     nghttp3_rcbuf *value, uint8_t flags, void *user, void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = stream_user;

    (void)conn;
    (void)stream_id;
    (void)token;
    (void)flags;
    if (x && !x->recv_over) {
        leat_http_fields_add(h3->http, &x->fields, span_of(name), span_of(value));
    }
    return 0;
}

/* Where a pseudo-header field goes; NULL: unknown to us (:protocol). */
static leat_span *pseudo(leat_http_head *head, leat_span name, leat_span *status)
{
    if (leat_http_is(name, ":method")) {
        return &head->method;
    }
    if (leat_http_is(name, ":scheme")) {
        return &head->scheme;
    }
    if (leat_http_is(name, ":authority")) {
        return &head->authority;
    }
    if (leat_http_is(name, ":path")) {
        return &head->path;
    }
    return leat_http_is(name, ":status") ? status : NULL;
}

/* Splits the gathered fields into what a head has members for and the rest. nghttp3 has checked
 * that pseudo-header fields come first, once each, and are those that a message must have. */
static void make_head(leat_http_fields *fields, leat_http_head *head)
{
    leat_span status = {NULL, 0}, length;
    uint64_t value;
    uint32_t i = 0;

    leat_http_fields_finish(fields);
    for (; i < fields->count && fields->list[i].name.len && fields->list[i].name.data[0] == ':';
         i++) {
        leat_span *to = pseudo(head, fields->list[i].name, &status);

        if (to) {
            *to = fields->list[i].value;
        }
    }
    head->fields = fields->list + i;
    head->field_count = fields->count - i;
    head->status = leat_http_number(status, &value) && value < 1000 ? (unsigned)value : 0;
    length = leat_http_head_find(head, "content-length");
    head->content_length = leat_http_number(length, &value) ? value : LEAT_HTTP_LENGTH_UNKNOWN;
}

/* The client's wish for its place among the others (RFC 9218), as nghttp3 has read it. */
static void take_priority(leat_h3 *h3, leat_http_exchange *x)
{
    nghttp3_pri pri;

    if (nghttp3_conn_get_stream_priority(h3->conn, &pri, (int64_t)x->id) == 0) {
        leat_stream_set_priority(x->stream, pri.urgency, pri.inc != 0);
    }
}

static int on_end_headers(nghttp3_conn *conn, int64_t stream_id, int fin, void *user,
                          void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = stream_user;
    leat_http_head head = {.status = 0};

    (void)conn;
    (void)stream_id;
    (void)fin;
    if (!x || x->recv_over || x->fields.too_large || x->fields.no_memory) {
        return 0; /* dealt with when nghttp3 is done with the span */
    }
    make_head(&x->fields, &head);
    if (!h3->http->server && head.status < 200) {
        leat_http_fields_free(h3->http, &x->fields); /* 1xx: the final response is still to come */
        return 0;
    }
    if (h3->http->server) {
        x->head_method = leat_http_is(head.method, "HEAD");
        take_priority(h3, x);
    }
    leat_http_tell_head(x, &head);
    return 0;
}

static int on_body(nghttp3_conn *conn, int64_t stream_id, const uint8_t *data, size_t len,
                   void *user, void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = stream_user;

    (void)conn;
    (void)stream_id;
    if (x) {
        leat_http_tell_body(x, (leat_span){data, len}, (size_t)(h3->span_end - (data + len)));
    }
    return 0;
}

static int on_end_stream(nghttp3_conn *conn, int64_t stream_id, void *user, void *stream_user)
{
    leat_http_exchange *x = stream_user;

    (void)conn;
    (void)stream_id;
    (void)user;
    if (x && !x->recv_over) {
        leat_http_tell_complete(x);
    }
    return 0;
}

void leat_h3_recv_callbacks(nghttp3_callbacks *callbacks)
{
    callbacks->begin_headers = on_begin_headers;
    callbacks->recv_header = on_header;
    callbacks->end_headers = on_end_headers;
    callbacks->recv_data = on_body;
    callbacks->end_stream = on_end_stream;
}

/* ---- feeding ---- */

/* A message that is not well formed costs its stream, anything else the connection. */
static void read_failed(leat_h3 *h3, leat_http_exchange *x, nghttp3_ssize error)
{
    if (x && (error == NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING ||
              error == NGHTTP3_ERR_MALFORMED_HTTP_HEADER)) {
        leat_http_fail(x, LEAT_ERR_MALFORMED, LEAT_H3_MESSAGE_ERROR);
        leat_http_cancel(x, LEAT_H3_MESSAGE_ERROR);
    } else {
        leat_h3_failed(h3, error);
    }
}

/* The head was larger than our limits: a server says so, a client gives up. What still comes of the
 * request is not wanted. */
static void head_too_large(leat_h3 *h3, leat_http_exchange *x)
{
    leat_http_response_head answer = {.status = 431};
    bool memory = x->fields.no_memory;

    leat_http_fields_free(h3->http, &x->fields);
    leat_http_fail(x, memory ? LEAT_ERR_NOMEM : LEAT_ERR_LIMIT, LEAT_H3_EXCESSIVE_LOAD);
    if (memory || !h3->http->server || leat_http_respond(x, &answer) != LEAT_OK) {
        leat_http_cancel(x, LEAT_H3_EXCESSIVE_LOAD);
        return;
    }
    x->recv_over = true;
    leat_stream_stop(x->stream, LEAT_H3_NO_ERROR);
}

static bool goes_on(const leat_http_exchange *x)
{
    return !x->paused && !x->recv_over && !x->http->closing;
}

/* Feeds one span, or with an empty one the end of the stream. */
static void feed(leat_h3 *h3, leat_http_exchange *x, leat_span data, bool fin)
{
    nghttp3_ssize rv;

    h3->span_end = data.len ? data.data + data.len : data.data;
    leat_http_read_begin(h3->http, x);
    rv = nghttp3_conn_read_stream(h3->conn, (int64_t)x->id, data.data, data.len, fin);
    if (rv < 0) {
        read_failed(h3, x, rv);
    }
    leat_http_read_end(h3->http);
    if ((x->fields.too_large || x->fields.no_memory) && !x->recv_over && !h3->http->closing) {
        head_too_large(h3, x);
    }
}

static void read_end(leat_h3 *h3, leat_http_exchange *x)
{
    x->fin_fed = true;
    if (x->head_seen) {
        feed(h3, x, (leat_span){NULL, 0}, true);
        return;
    }
    /* RFC 9114 s4.1.2: a message without a head. */
    leat_http_fail(x, LEAT_ERR_MALFORMED, LEAT_H3_REQUEST_INCOMPLETE);
    leat_http_cancel(x, LEAT_H3_REQUEST_INCOMPLETE);
}

static void read_exchange(leat_h3 *h3, leat_http_exchange *x)
{
    while (goes_on(x)) {
        leat_span data = leat_stream_peek(x->stream);

        if (data.len == 0) {
            break;
        }
        feed(h3, x, data, false);
        if (x->recv_over || h3->http->closing) {
            return;
        }
        leat_stream_consume(x->stream, data.len);
    }
    if (goes_on(x) && !x->fin_fed && leat_stream_recv_whole(x->stream)) {
        read_end(h3, x);
    }
}

/* Looks for the peer's encoder: before it has put something into our table there is nothing to
 * acknowledge to it. */
static void note_encoder(leat_h3 *h3, leat_stream *stream, leat_span data)
{
    bool first = leat_stream_user(stream) == NULL;

    if (first) {
        leat_stream_set_user(stream, h3);
        if (data.data[0] == QPACK_ENCODER_STREAM) {
            h3->peer_encoder = stream;
        }
    }
    if (stream == h3->peer_encoder && data.len > first) {
        h3->table_used = true;
    }
}

static void read_uni(leat_h3 *h3, leat_stream *stream)
{
    int64_t id = (int64_t)leat_stream_id(stream);
    nghttp3_ssize rv = 0;

    while (!h3->http->closing) {
        leat_span data = leat_stream_peek(stream);

        if (data.len == 0) {
            break;
        }
        note_encoder(h3, stream, data);
        h3->uni_stop = false;
        h3->span_end = data.data + data.len;
        leat_http_read_begin(h3->http, NULL);
        rv = nghttp3_conn_read_stream(h3->conn, id, data.data, data.len, 0);
        if (rv < 0) {
            leat_h3_failed(h3, rv);
        }
        leat_http_read_end(h3->http);
        if (h3->uni_stop && !h3->http->closing) {
            leat_stream_stop(stream, LEAT_H3_STREAM_CREATION_ERROR);
            return;
        }
        if (!h3->http->closing) {
            leat_stream_consume(stream, data.len);
        }
    }
    if (!h3->http->closing && leat_stream_recv_whole(stream)) {
        rv = nghttp3_conn_read_stream(h3->conn, id, NULL, 0, 1);
        if (rv < 0) {
            leat_h3_failed(h3, rv);
        }
    }
}

void leat_h3_readable(leat_http *http, leat_stream *stream, leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(http);

    leat_h3_enter(h3);
    if (x) {
        read_exchange(h3, x);
        h3->due |= h3->table_used;
    } else {
        read_uni(h3, stream);
        h3->due = true;
    }
    leat_h3_leave_event(h3);
}
