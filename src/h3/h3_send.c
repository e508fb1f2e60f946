/* h3/h3_send.c: from nghttp3 into streams.
 *
 * nghttp3 frames; leat's stream holds the bytes until they are acknowledged. So what nghttp3 gives
 * out is copied at once and reported to it as acknowledged, and it keeps nothing; the end of an
 * answer apart, whose rest goes with the stream.
 *
 * Body bytes are not copied by nghttp3. When it wants to know the next DATA frame's payload, a span
 * of the stream's send buffer is reserved, and the application fills it behind a gap for all that
 * is ahead of it: the frame's header, and the head too, where that was not written yet. nghttp3
 * then gives out head and header (from its own memory) and that payload in one call: the former are
 * put ahead of the payload, and the span is committed whole. That works as long as nothing else of
 * the stream is in between, so nghttp3 is told to wait with the body until all before it is written
 * (send_ready) or nothing is (head_most).
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/h3.h"

enum {
    BODY_CHUNK = 65536,  /* asked of the send buffer at a time: the payload of a DATA frame */
    BODY_FIRST = 16384,  /* with the head, whose length is known afterwards: the payload is moved */
    SPAN_LEAST = 64,     /* less of a body is not worth a frame: LEAT_HTTP_SMALL bytes are copied */
    HEAD_FRAME_MOST = 9, /* bytes of a frame's header */
    HEAD_PREFIX_MOST = 20, /* of a field section's: two integers (RFC 9204 s4.5.1) */
    HEAD_FIELD_MOST = 20,  /* of a field's, beside name and value: the same (s4.5.6) */
    VECS = 16,
    FIELDS_MOST = 64 /* in a head that is sent */
};

/* ---- heads ---- */

typedef struct head_out {
    nghttp3_nv nv[FIELDS_MOST];
    size_t count;
    size_t bytes; /* of names and values */
    char length[24], status[4];
} head_out;

/* Its room is some thousand bytes, and stays as it is. */
static void begin_head(head_out *h)
{
    h->count = h->bytes = 0;
}

static void put_nv(head_out *h, leat_span name, leat_span value, uint8_t flags)
{
    /* nghttp3 does not write here; its interface only lacks the const. */
    h->nv[h->count++] = (nghttp3_nv){(uint8_t *)(uintptr_t)name.data,
                                     (uint8_t *)(uintptr_t)value.data, name.len, value.len, flags};
    h->bytes += name.len + value.len;
}

/* A field whose name is a static string, which nghttp3 need not copy. */
static void put(head_out *h, const char *name, leat_span value)
{
    put_nv(h, leat_http_text(name), value, NGHTTP3_NV_FLAG_NO_COPY_NAME);
}

static leat_span decimal(char *end, uint64_t v)
{
    char *p = end;

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return (leat_span){(const uint8_t *)p, (size_t)(end - p)};
}

/* The other fields. LEAT_ERR_LIMIT: a head that no peer takes would cost the whole connection (a
 * QPACK decoder gives up), so it is not sent. */
static leat_err put_fields(head_out *h, const leat_http_field *fields, size_t count,
                           uint64_t length)
{
    if (count > FIELDS_MOST - 8) {
        return LEAT_ERR_INVALID;
    }
    if (length != LEAT_HTTP_LENGTH_UNKNOWN) {
        put(h, "content-length", decimal(h->length + sizeof h->length, length));
    }
    for (size_t i = 0; i < count; i++) {
        if (!nghttp3_check_header_name(fields[i].name.data, fields[i].name.len) ||
            !nghttp3_check_header_value(fields[i].value.data, fields[i].value.len)) {
            return LEAT_ERR_INVALID;
        }
        put_nv(h, fields[i].name, fields[i].value, NGHTTP3_NV_FLAG_NONE);
    }
    return h->bytes <= LEAT_HTTP_HEADER_BYTES_MAX ? LEAT_OK : LEAT_ERR_LIMIT;
}

static nghttp3_ssize read_body(nghttp3_conn *conn, int64_t stream_id, nghttp3_vec *vec,
                               size_t vec_count, uint32_t *flags, void *user, void *stream_user);

static const nghttp3_data_reader body_reader = {read_body};

static size_t head_most(const head_out *h)
{
    return HEAD_FRAME_MOST + HEAD_PREFIX_MOST + h->bytes + h->count * HEAD_FIELD_MOST;
}

/* Sends soon: after the event that is going on, or in the next turn. */
static void kick(leat_h3 *h3)
{
    h3->due = true;
    if (h3->depth == 0) {
        leat_ctx_run_soon(h3->pump.ctx, &h3->pump);
    }
}

leat_err leat_h3_request(leat_http_exchange *x, const leat_http_request_head *head)
{
    leat_h3 *h3 = leat_h3_of(x->http);
    bool body = head->body.pull && head->body.length != 0;
    head_out h;
    leat_err err;

    begin_head(&h);
    put(&h, ":method", head->method.len ? head->method : leat_http_text("GET"));
    put(&h, ":scheme", head->scheme.len ? head->scheme : leat_http_text("https"));
    put(&h, ":authority", head->authority);
    put(&h, ":path", head->path);
    err = put_fields(&h, head->fields, head->field_count,
                     head->body.pull ? head->body.length : LEAT_HTTP_LENGTH_UNKNOWN);
    if (err != LEAT_OK) {
        return err;
    }
    if (nghttp3_conn_submit_request(h3->conn, (int64_t)x->id, h.nv, h.count,
                                    body ? &body_reader : NULL, x) != 0) {
        return LEAT_ERR_NOMEM;
    }
    x->head_most = head_most(&h);
    kick(h3);
    return LEAT_OK;
}

leat_err leat_h3_respond(leat_http_exchange *x, const leat_http_response_head *head)
{
    leat_h3 *h3 = leat_h3_of(x->http);
    bool body = head->body.pull && head->body.length != 0 && !x->head_method;
    head_out h;
    leat_err err;

    begin_head(&h);
    put(&h, ":status", decimal(h.status + sizeof h.status, head->status));
    err = put_fields(&h, head->fields, head->field_count, head->body.length);
    if (err != LEAT_OK) {
        return err;
    }
    if (nghttp3_conn_submit_response(h3->conn, (int64_t)x->id, h.nv, h.count,
                                     body ? &body_reader : NULL) != 0) {
        return LEAT_ERR_NOMEM;
    }
    x->head_most = head_most(&h);
    kick(h3);
    return LEAT_OK;
}

/* ---- bodies ---- */

/* Bytes of a DATA frame's header: type 0 and the length as a variable-length integer. */
static size_t header_len(size_t payload)
{
    return payload < 64 ? 2 : payload < 16384 ? 3 : payload < 1073741824 ? 5 : 9;
}

static nghttp3_ssize wait_for_body(leat_h3 *h3, leat_http_exchange *x)
{
    x->pull_waits = true;
    h3->due = true; /* it hid what comes next */
    return NGHTTP3_ERR_WOULDBLOCK;
}

static nghttp3_ssize cut_body(leat_h3 *h3, leat_http_exchange *x)
{
    x->cut = true;
    h3->any_cut = true;
    return wait_for_body(h3, x);
}

static void drop_span(leat_http_exchange *x)
{
    if (x->span.data) {
        x->span = (leat_mspan){NULL, 0};
        leat_stream_commit(x->stream, 0);
    }
}

/* Opens a span and says where in it the payload goes; or the small room when the span is too small.
 * LEAT_ERR_BLOCKED: the payload has to wait, at least for its head. */
static leat_err open_span(leat_http_exchange *x, leat_mspan *room)
{
    uint64_t left = x->body.length - x->body_sent; /* of a body of unknown length: more than any */
    uint64_t most = x->head_most > 0 ? BODY_FIRST : BODY_CHUNK;
    size_t want = (size_t)(left < most ? left : most);
    leat_err err;

    x->gap = x->head_most + header_len(want);
    err = leat_stream_reserve(x->stream, x->gap + want, &x->span);
    if (err != LEAT_OK) {
        x->span = (leat_mspan){NULL, 0};
        return err;
    }
    if (x->span.len >= x->gap + (want < SPAN_LEAST ? want : SPAN_LEAST)) {
        *room = (leat_mspan){x->span.data + x->gap, x->span.len - x->gap};
        return LEAT_OK;
    }
    drop_span(x);
    *room = (leat_mspan){x->small, sizeof x->small};
    return x->head_most > 0 ? LEAT_ERR_BLOCKED : LEAT_OK;
}

static nghttp3_ssize read_body(nghttp3_conn *conn, int64_t stream_id, nghttp3_vec *vec,
                               size_t vec_count, uint32_t *flags, void *user, void *stream_user)
{
    leat_h3 *h3 = user;
    leat_http_exchange *x = stream_user;
    leat_mspan room;
    size_t got;
    bool end;
    leat_err err;

    (void)conn;
    (void)stream_id;
    (void)vec_count;
    if ((!x->send_ready && x->head_most == 0) || x->cut || x->send_over) {
        return wait_for_body(h3, x);
    }
    err = open_span(x, &room);
    if (err == LEAT_ERR_BLOCKED) {
        return wait_for_body(h3, x);
    }
    if (err != LEAT_OK || leat_http_pull(x, room, &got, &end) != LEAT_OK) {
        drop_span(x);
        return cut_body(h3, x);
    }
    if (got == 0) {
        drop_span(x);
    }
    if (got == 0 && !end) {
        return wait_for_body(h3, x);
    }
    if (end) {
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    }
    x->send_ready = false;
    if (got == 0) {
        return 0;
    }
    x->span_body = got;
    vec[0] = (nghttp3_vec){room.data, got};
    return 1;
}

/* ---- writing ---- */

/* What ends with the payload that lies in the open span: a head perhaps, and the frame's header. */
static bool write_span(leat_http_exchange *x, const nghttp3_vec *vec, size_t count, size_t *written)
{
    uint8_t *at = x->span.data, *payload = at + x->gap;
    size_t ahead = 0;

    for (size_t i = 0; i + 1 < count; i++) {
        ahead += vec[i].len;
    }
    if (count == 0 || ahead > x->gap || vec[count - 1].len != x->span_body ||
        vec[count - 1].base != payload) {
        return false;
    }
    if (ahead < x->gap) {
        memmove(at + ahead, payload, x->span_body);
    }
    for (size_t i = 0; i + 1 < count; i++) {
        memcpy(at, vec[i].base, vec[i].len);
        at += vec[i].len;
    }
    *written = ahead + x->span_body;
    x->span = (leat_mspan){NULL, 0};
    leat_stream_commit(x->stream, *written);
    return true;
}

/* Copies in what there is room for; true when that was all. */
static bool write_copy(leat_stream *stream, const nghttp3_vec *vec, size_t count, size_t *written)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = 0;

        if (vec[i].len == 0) {
            continue;
        }
        if (leat_stream_write(stream, vec[i].base, vec[i].len, &n) != LEAT_OK) {
            return false;
        }
        *written += n;
        if (n < vec[i].len) {
            return false;
        }
    }
    return true;
}

static leat_stream *stream_of(leat_h3 *h3, int64_t id, leat_http_exchange **x)
{
    leat_stream *const ours[] = {h3->control, h3->encoder, h3->decoder};

    *x = leat_h3_find(h3, id);
    if (*x) {
        return (*x)->stream;
    }
    for (size_t i = 0; i < 3; i++) {
        if (leat_stream_id(ours[i]) == (uint64_t)id) {
            return ours[i];
        }
    }
    return NULL;
}

/* nghttp3 may ask for the body again. */
static void go_on(leat_h3 *h3, leat_http_exchange *x)
{
    if (x->pull_waits && !x->app_waits && !x->cut) {
        x->pull_waits = false;
        h3->due = true;
        nghttp3_conn_resume_stream(h3->conn, (int64_t)x->id);
    }
}

/* All of what the exchange had was written: its FIN follows, or more of its body. */
static void written_all(leat_h3 *h3, leat_http_exchange *x, bool fin)
{
    if (fin) {
        x->finished = leat_stream_finish(x->stream) == LEAT_OK;
        return;
    }
    x->send_ready = true;
    go_on(h3, x);
}

/* With an answer's last bytes nghttp3 need not be told that they are acknowledged: the stream ends
 * when they are, and what was kept of it goes. A request's stream may live long. */
static bool is_last(const leat_h3 *h3, bool all, bool fin)
{
    return h3->http->server && all && fin;
}

static void write_out(leat_h3 *h3, int64_t id, const nghttp3_vec *vec, size_t count, bool fin)
{
    leat_http_exchange *x;
    leat_stream *stream = stream_of(h3, id, &x);
    size_t written = 0;
    bool all;

    if (x) {
        x->head_most = 0;
    }
    if (!stream || (x && x->send_over)) {
        if (x) {
            drop_span(x);
        }
        nghttp3_conn_shutdown_stream_write(h3->conn, id);
        return;
    }
    if (x && x->span.data) {
        all = write_span(x, vec, count, &written);
        if (!all) {
            leat_http_abort(h3->http, LEAT_H3_INTERNAL_ERROR, "a DATA frame is not as foreseen");
            return;
        }
    } else {
        all = write_copy(stream, vec, count, &written);
    }
    if (nghttp3_conn_add_write_offset(h3->conn, id, written) != 0 ||
        (!is_last(h3, all, fin) && nghttp3_conn_add_ack_offset(h3->conn, id, written) != 0)) {
        leat_http_abort(h3->http, LEAT_H3_INTERNAL_ERROR, "out of memory");
        return;
    }
    if (!all) {
        nghttp3_conn_block_stream(h3->conn, id);
    } else if (x) {
        written_all(h3, x, fin);
    }
}

/* Resets the streams whose body failed. */
static void cut_now(leat_h3 *h3)
{
    h3->any_cut = false;
    for (leat_http_exchange *x = h3->http->first; x; x = x->next) {
        if (x->cut && !x->send_over) {
            leat_http_fail(x, LEAT_ERR_IO, LEAT_H3_INTERNAL_ERROR);
            leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
        }
    }
}

void leat_h3_pump(leat_h3 *h3)
{
    h3->depth++;
    h3->due = true;
    while (h3->due && !h3->http->closing) {
        nghttp3_vec vec[VECS];
        int64_t id = -1;
        int fin = 0;
        nghttp3_ssize count;

        h3->due = false;
        count = nghttp3_conn_writev_stream(h3->conn, &id, &fin, vec, VECS);
        if (count < 0) {
            leat_h3_failed(h3, count);
        } else if (id >= 0) {
            h3->due = true;
            write_out(h3, id, vec, (size_t)count, fin != 0);
        }
    }
    h3->depth--;
    if (h3->any_cut && !h3->http->closing) {
        cut_now(h3);
    }
}

void leat_h3_leave(leat_h3 *h3)
{
    if (--h3->depth == 0 && h3->due && !h3->http->closing) {
        leat_h3_pump(h3);
    }
}

void leat_h3_leave_event(leat_h3 *h3)
{
    if (--h3->depth == 0 && h3->due) {
        leat_ctx_run_soon(h3->pump.ctx, &h3->pump);
    }
}

void leat_h3_writable(leat_http *http, leat_stream *stream, leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(http);

    leat_h3_enter(h3);
    h3->due = true;
    nghttp3_conn_unblock_stream(h3->conn, (int64_t)leat_stream_id(stream));
    if (x) {
        go_on(h3, x);
    }
    leat_h3_leave_event(h3);
}

void leat_h3_told(leat_http *http)
{
    leat_h3 *h3 = leat_h3_of(http);

    if (h3->due) {
        leat_task_cancel(&h3->pump);
        leat_h3_pump(h3);
    }
}

void leat_h3_resume(leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(x->http);

    leat_h3_enter(h3);
    go_on(h3, x);
    leat_h3_leave(h3);
}
