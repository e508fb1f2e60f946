/* h3/http.c: sessions, whatever the protocol: the events of a connection, and its end.
 *
 * A session takes its connection's events. Each bidirectional stream is one exchange, found through
 * the stream's user pointer; unidirectional streams are the protocol's own. An exchange lives from
 * the opening of its stream to the stream's `stream_closed`, a session to the connection's
 * `closed`.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/http.h"

void leat_http_settings_init(leat_http_settings *settings)
{
    *settings = (leat_http_settings){
        .max_header_bytes = LEAT_HTTP_HEADER_BYTES_DEFAULT,
        .max_header_fields = LEAT_HTTP_HEADER_FIELDS_DEFAULT,
        .max_requests = LEAT_HTTP_REQUESTS_DEFAULT,
        .qpack_table = LEAT_QPACK_TABLE_DEFAULT,
    };
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
        leat_http_held_free(x);
        leat_stream_stop(x->stream, x->stop_code);
    }
    if (http->close_later) {
        http->close_later = false;
        leat_conn_close(http->conn, http->close_code, leat_http_text(http->close_reason));
    }
}

/* ---- the connection's events ---- */

static leat_http_exchange *exchange_of(leat_stream *stream)
{
    return leat_stream_is_bidi(stream) ? leat_stream_user(stream) : NULL;
}

/* A stream that does not become an exchange. */
void leat_http_refuse(leat_http *http, leat_stream *stream, uint64_t code)
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
        leat_http_refuse(http, stream, LEAT_H3_REQUEST_REJECTED);
        return;
    }
    if (leat_stream_is_bidi(stream)) {
        if (!http->server) {
            leat_http_abort(http, LEAT_H3_STREAM_CREATION_ERROR,
                            "a server opened a request stream");
            return;
        }
        x = leat_http_exchange_add(http, stream);
        if (!x) {
            leat_http_refuse(http, stream, LEAT_H3_REQUEST_REJECTED);
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
        leat_http_held_free(x);
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
        /* A client may be told so when the response needs no more of the request: that is no
         * failure (RFC 9114 s4.1). */
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
        leat_http_exchange_close(x);
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

static void on_told(leat_conn *conn, void *user)
{
    leat_http *http = user;

    (void)conn;
    if (!http->closing && http->protocol->told) {
        http->protocol->told(http);
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

static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    leat_http *http = user;

    (void)conn;
    if (http->events->ticket) {
        http->events->ticket(http, session, http->user);
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
    .ticket = on_ticket,
    .told = on_told,
    .closed = on_closed,
};

/* ---- the public face ---- */

static const leat_http_protocol *protocol_of(leat_span alpn)
{
    if (leat_http_is(alpn, leat_http_h3.alpn)) {
        return &leat_http_h3;
    }
    return leat_http_is(alpn, leat_http_hq.alpn) ? &leat_http_hq : NULL;
}

static bool within(size_t value, size_t least, size_t most)
{
    return value >= least && value <= most;
}

static bool settings_valid(const leat_http_settings *s)
{
    return within(s->max_header_bytes, LEAT_HTTP_HEADER_BYTES_MIN, LEAT_HTTP_HEADER_BYTES_MAX) &&
           within(s->max_header_fields, LEAT_HTTP_HEADER_FIELDS_MIN, LEAT_HTTP_HEADER_FIELDS_MAX) &&
           within(s->max_requests, LEAT_HTTP_REQUESTS_MIN, LEAT_HTTP_REQUESTS_MAX) &&
           within(s->qpack_table, LEAT_QPACK_TABLE_MIN, LEAT_QPACK_TABLE_MAX);
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
    if (settings && !settings_valid(settings)) {
        return LEAT_ERR_INVALID;
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
