/* h3/h3_send.c: messages into streams, and nghttp3's own streams into theirs.
 *
 * Heads and bodies are framed here. A head becomes one HEADERS frame, without the dynamic table
 * (qpack.h). Where the length of a body is known, one DATA frame has all of it: its header goes out
 * with the head, and the application fills the stream's send buffer itself. Where it is not, each
 * part is a frame, filled in behind a gap for its header. Frames' lengths may be written longer
 * than they need (RFC 9000 s16), so a gap is of one size. What a frame must have in one piece and
 * the send buffer has no room for waits in x->rest.
 *
 * nghttp3 hears of a request only what it needs to read the response. What it has to say on the
 * control and QPACK streams is copied at once and reported to it as acknowledged, so it keeps
 * nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/h3.h"
#include "h3/qpack.h"

enum {
    BODY_CHUNK = 65536, /* asked of the send buffer at a time */
    DATA_HEADER = 5,    /* of a part: type, and a length of four bytes */
    DATA_HEADER_MOST = 9,
    PART_LEAST = 64,  /* in less room than that it is not worth a gap: */
    PART_SMALL = 16,  /* so many bytes are copied */
    FIELDS_MOST = 56, /* in a head that is sent */
    VECS = 16,
    FRAME_DATA = 0,
    FRAME_HEADERS = 1
};

static const uint64_t VARINT_MOST = (UINT64_C(1) << 62) - 1;

/* ---- heads ---- */

typedef struct head_out {
    leat_http_field own[5]; /* pseudo-header fields, and the length */
    size_t own_count;
    const leat_http_field *fields;
    size_t field_count;
    size_t most; /* bytes that the frame may take */
    char length[20], status[3];
} head_out;

static void put(head_out *h, const char *name, leat_span value)
{
    h->own[h->own_count++] = (leat_http_field){leat_http_text(name), value};
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

static size_t bytes_of(const leat_http_field *field)
{
    return field->name.len + field->value.len;
}

/* The other fields. LEAT_ERR_LIMIT: a head that no peer takes would cost the whole connection (a
 * QPACK decoder gives up), so it is not sent. */
static leat_err put_fields(head_out *h, const leat_http_field *fields, size_t count,
                           uint64_t length)
{
    size_t bytes = 0;

    if (count > FIELDS_MOST || (length > VARINT_MOST && length != LEAT_HTTP_LENGTH_UNKNOWN)) {
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
        bytes += bytes_of(&fields[i]);
    }
    for (size_t i = 0; i < h->own_count; i++) {
        bytes += bytes_of(&h->own[i]);
    }
    h->fields = fields;
    h->field_count = count;
    h->most =
        DATA_HEADER_MOST + LEAT_QPACK_BEGIN + bytes + (h->own_count + count) * LEAT_QPACK_FIELD;
    return bytes <= LEAT_HTTP_HEADER_BYTES_MAX ? LEAT_OK : LEAT_ERR_LIMIT;
}

/* A variable-length integer in 2, 4 or 8 bytes. */
static uint8_t *put_varint(uint8_t *p, unsigned len, uint64_t v)
{
    static const uint8_t tags[] = {0, 0, 0x40, 0, 0x80, 0, 0, 0, 0xc0};

    for (unsigned i = len; i-- > 0; v >>= 8) {
        p[i] = (uint8_t)v;
    }
    p[0] |= tags[len];
    return p + len;
}

static uint8_t *write_head(const head_out *h, uint8_t *p)
{
    unsigned len = h->most < 16384 ? 2 : 4;
    uint8_t *gap, *from;

    *p++ = FRAME_HEADERS;
    gap = p;
    from = p + len;
    p = leat_qpack_begin(from);
    for (size_t i = 0; i < h->own_count; i++) {
        p = leat_qpack_field(p, &h->own[i]);
    }
    for (size_t i = 0; i < h->field_count; i++) {
        p = leat_qpack_field(p, &h->fields[i]);
    }
    put_varint(gap, len, (uint64_t)(p - from));
    return p;
}

static bool has_body(const leat_http_exchange *x)
{
    return x->body.pull && x->body.length != 0;
}

/* The header of the frame that a body of known length is. */
static uint8_t *write_body_header(const leat_http_exchange *x, uint8_t *p)
{
    uint64_t length = x->body.length;

    *p++ = FRAME_DATA;
    return put_varint(p, length < 16384 ? 2 : length < 1073741824 ? 4 : 8, length);
}

static uint8_t *write_start(const leat_http_exchange *x, const head_out *h, uint8_t *p)
{
    p = write_head(h, p);
    if (has_body(x) && x->body.length != LEAT_HTTP_LENGTH_UNKNOWN) {
        p = write_body_header(x, p);
    }
    return p;
}

/* ---- what must wait ---- */

static void cut(leat_http_exchange *x)
{
    leat_http_fail(x, LEAT_ERR_IO, LEAT_H3_INTERNAL_ERROR);
    leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
}

/* The stream did not take bytes: `stream_writable` will come, or its end; or there is no memory. */
static bool refused(leat_http_exchange *x, leat_err err)
{
    if (err != LEAT_ERR_BLOCKED && err != LEAT_ERR_CLOSED) {
        cut(x);
    }
    return false;
}

/* False: the rest has to wait. */
static bool send_rest(leat_http_exchange *x)
{
    leat_http_held *rest = &x->rest;

    while (rest->from < rest->to) {
        size_t n = 0;
        leat_err err =
            leat_stream_write(x->stream, rest->buf.data + rest->from, rest->to - rest->from, &n);

        if (err != LEAT_OK) {
            return refused(x, err);
        }
        rest->from += n;
    }
    leat_buf_release(&rest->buf);
    rest->from = rest->to = 0;
    return true;
}

/* Makes the room of x->rest, which is empty. */
static uint8_t *begin_rest(leat_http_exchange *x, size_t most)
{
    leat_err err = leat_buf_take(x->http->mem, most, &x->rest.buf);

    return err == LEAT_OK ? x->rest.buf.data : NULL;
}

/* The head where it will be sent from, with room behind it for as much of the body as is known of;
 * or else in x->rest. */
static leat_err begin(leat_http_exchange *x, const head_out *h)
{
    size_t most = h->most + DATA_HEADER_MOST;
    uint64_t body = x->body.length < BODY_CHUNK && has_body(x) ? x->body.length : 0;
    leat_mspan room;
    leat_err err = leat_stream_reserve(x->stream, most + (size_t)body, &room);
    uint8_t *at;

    if (err == LEAT_OK && room.len >= most) {
        leat_stream_commit(x->stream, (size_t)(write_start(x, h, room.data) - room.data));
        return LEAT_OK;
    }
    if (err == LEAT_OK) {
        leat_stream_commit(x->stream, 0);
    } else if (err != LEAT_ERR_BLOCKED) {
        return err;
    }
    at = begin_rest(x, most);
    if (!at) {
        return LEAT_ERR_NOMEM;
    }
    x->rest.to = (size_t)(write_start(x, h, at) - at);
    return LEAT_OK;
}

/* ---- bodies ---- */

/* A part of a body of unknown length in too little room: frame and all may have to wait. */
static leat_err send_small(leat_http_exchange *x, bool *end)
{
    uint8_t *at = begin_rest(x, DATA_HEADER + PART_SMALL);
    leat_err err = LEAT_ERR_NOMEM;
    size_t got = 0;

    if (at) {
        err = leat_http_pull(x, (leat_mspan){at + DATA_HEADER, PART_SMALL}, &got, end);
    }
    if (err == LEAT_OK && got > 0) {
        *at = FRAME_DATA;
        put_varint(at + 1, DATA_HEADER - 1, got);
        x->rest.to = DATA_HEADER + got;
    }
    return err;
}

/* A part of a body of unknown length, framed. */
static leat_err send_framed(leat_http_exchange *x, leat_mspan room, bool *end)
{
    leat_mspan payload = {room.data + DATA_HEADER, room.len - DATA_HEADER};
    size_t got;
    leat_err err = leat_http_pull(x, payload, &got, end);

    if (err != LEAT_OK || got == 0) {
        leat_stream_commit(x->stream, 0);
        return err;
    }
    *room.data = FRAME_DATA;
    put_varint(room.data + 1, DATA_HEADER - 1, got);
    leat_stream_commit(x->stream, DATA_HEADER + got);
    return LEAT_OK;
}

static leat_err pull_into(leat_http_exchange *x, leat_mspan room, bool *end)
{
    size_t got;
    leat_err err;

    if (x->body.length == LEAT_HTTP_LENGTH_UNKNOWN) {
        return send_framed(x, room, end);
    }
    err = leat_http_pull(x, room, &got, end);
    leat_stream_commit(x->stream, err == LEAT_OK ? got : 0);
    return err;
}

/* The next part of a body. False: it has to wait, or there will be no more. */
static bool send_part(leat_http_exchange *x)
{
    bool known = x->body.length != LEAT_HTTP_LENGTH_UNKNOWN;
    uint64_t left = known ? x->body.length - x->body_sent : BODY_CHUNK;
    size_t want = left < BODY_CHUNK ? (size_t)left : BODY_CHUNK;
    leat_mspan room;
    leat_err err = leat_stream_reserve(x->stream, want, &room);

    if (err != LEAT_OK) {
        return refused(x, err);
    }
    if (known || room.len >= PART_LEAST) {
        err = pull_into(x, room, &x->body_over);
    } else {
        leat_stream_commit(x->stream, 0);
        err = send_small(x, &x->body_over);
    }
    if (err != LEAT_OK) {
        cut(x);
    }
    return err == LEAT_OK;
}

/* As much of the message as there is room for, and as the application has. */
static void send_on(leat_http_exchange *x)
{
    while (!x->finished && !x->send_over && send_rest(x)) {
        if (!has_body(x) || x->body_over) {
            x->finished = leat_stream_finish(x->stream) == LEAT_OK;
            return;
        }
        if (x->app_waits || !send_part(x)) {
            return;
        }
    }
}

/* ---- requests and responses ---- */

/* nghttp3 is told of the method, by which it judges the response, and that it has nothing to send.
 */
static leat_err tell_nghttp3(leat_h3 *h3, leat_http_exchange *x, leat_span method)
{
    static const char name[] = ":method";
    /* nghttp3 copies; its interface only lacks the const. */
    nghttp3_nv nv = {(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)method.data, sizeof name - 1,
                     method.len, NGHTTP3_NV_FLAG_NONE};

    if (nghttp3_conn_submit_request(h3->conn, (int64_t)x->id, &nv, 1, NULL, x) != 0) {
        return LEAT_ERR_NOMEM;
    }
    nghttp3_conn_shutdown_stream_write(h3->conn, (int64_t)x->id);
    return LEAT_OK;
}

leat_err leat_h3_request(leat_http_exchange *x, const leat_http_request_head *head)
{
    leat_span method = head->method.len ? head->method : leat_http_text("GET");
    head_out h = {.own_count = 0};
    leat_err err;

    put(&h, ":method", method);
    put(&h, ":scheme", head->scheme.len ? head->scheme : leat_http_text("https"));
    put(&h, ":authority", head->authority);
    put(&h, ":path", head->path);
    err = put_fields(&h, head->fields, head->field_count,
                     head->body.pull ? head->body.length : LEAT_HTTP_LENGTH_UNKNOWN);
    if (err == LEAT_OK) {
        err = tell_nghttp3(leat_h3_of(x->http), x, method);
    }
    if (err == LEAT_OK) {
        err = begin(x, &h);
    }
    if (err == LEAT_OK) {
        send_on(x);
    }
    return err;
}

leat_err leat_h3_respond(leat_http_exchange *x, const leat_http_response_head *head)
{
    head_out h = {.own_count = 0};
    leat_err err;

    put(&h, ":status", decimal(h.status + sizeof h.status, head->status));
    err = put_fields(&h, head->fields, head->field_count, head->body.length);
    if (err != LEAT_OK) {
        return err;
    }
    if (x->head_method) {
        x->body.pull = NULL;
    }
    err = begin(x, &h);
    if (err == LEAT_OK) {
        send_on(x);
    }
    return err;
}

/* ---- nghttp3's streams ---- */

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

static leat_stream *stream_of(leat_h3 *h3, int64_t id)
{
    leat_stream *const ours[] = {h3->control, h3->encoder, h3->decoder};

    for (size_t i = 0; i < 3; i++) {
        if (leat_stream_id(ours[i]) == (uint64_t)id) {
            return ours[i];
        }
    }
    return NULL;
}

static void write_out(leat_h3 *h3, int64_t id, const nghttp3_vec *vec, size_t count)
{
    leat_stream *stream = stream_of(h3, id);
    size_t written = 0;
    bool all;

    if (!stream) {
        leat_http_abort(h3->http, LEAT_H3_INTERNAL_ERROR, "not a stream that nghttp3 writes");
        return;
    }
    all = write_copy(stream, vec, count, &written);
    if (nghttp3_conn_add_write_offset(h3->conn, id, written) != 0 ||
        nghttp3_conn_add_ack_offset(h3->conn, id, written) != 0) {
        leat_http_abort(h3->http, LEAT_H3_INTERNAL_ERROR, "out of memory");
        return;
    }
    if (!all) {
        nghttp3_conn_block_stream(h3->conn, id);
    }
}

void leat_h3_pump(leat_h3 *h3)
{
    h3->depth++;
    h3->due = false;
    while (!h3->http->closing) {
        nghttp3_vec vec[VECS];
        int64_t id = -1;
        int fin = 0;
        nghttp3_ssize count = nghttp3_conn_writev_stream(h3->conn, &id, &fin, vec, VECS);

        if (count < 0) {
            leat_h3_failed(h3, count);
        } else if (id >= 0) {
            write_out(h3, id, vec, (size_t)count);
        } else {
            break;
        }
    }
    h3->depth--;
}

void leat_h3_leave(leat_h3 *h3)
{
    if (--h3->depth == 0 && h3->due && !h3->http->closing) {
        leat_h3_pump(h3);
    }
}

void leat_h3_writable(leat_http *http, leat_stream *stream, leat_http_exchange *x)
{
    leat_h3 *h3 = leat_h3_of(http);

    leat_h3_enter(h3);
    if (!x) {
        nghttp3_conn_unblock_stream(h3->conn, (int64_t)leat_stream_id(stream));
        h3->due = true;
    } else if (x->answered) {
        send_on(x);
    }
    leat_h3_leave(h3);
}

void leat_h3_resume(leat_http_exchange *x)
{
    send_on(x);
}
