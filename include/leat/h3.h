/* leat/h3.h: HTTP on a QUIC connection, as a client or a server.
 *
 * Two protocols stand behind one interface; the connection's ALPN picks: "h3", HTTP/3 (RFC 9114)
 * with QPACK (RFC 9204), and "hq-interop", HTTP/0.9 over QUIC as interop tests speak it: `GET
 * /path`, the bare body, FIN. What hq-interop cannot say (a status, a length, header fields) is
 * left open: a response has status 200 and LEAT_HTTP_LENGTH_UNKNOWN, and a server's error becomes a
 * stream reset.
 *
 * It stands on leat/quic.h alone, and like it belongs to the context's thread; events are called
 * from leat_ctx_turn() only, except where a function's comment says otherwise.
 *
 *   1. In the connection's `connected` event: leat_http_attach(). It takes over the connection's
 *      events and its user pointer.
 *   2. Client: leat_http_request(). Server: the `request` event, then leat_http_respond().
 *   3. A body is sent by pull: a function fills room in the stream's own send buffer whenever there
 *      is some. A body is received by push: the `body` event is given spans of the received
 * packets, and taking less than all of one pauses it until leat_http_resume().
 *   4. `exchange_closed` ends an exchange, `closed` ends the session.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_H3_H
#define LEAT_H3_H

#include <leat/quic.h>

LEAT_BEGIN_DECLS

typedef struct leat_http leat_http;                   /* HTTP on one connection */
typedef struct leat_http_exchange leat_http_exchange; /* one request and its response */

#define LEAT_HTTP_ALPN_H3        "h3"
#define LEAT_HTTP_ALPN_HQ        "hq-interop"

#define LEAT_HTTP_LENGTH_UNKNOWN UINT64_MAX

/* The application error codes of HTTP/3 (RFC 9114 s8.1) and QPACK (RFC 9204 s6): X(name, value,
 * text). */
#define LEAT_H3_ERROR_LIST(X)                                                                      \
    X(NO_ERROR, 0x0100, "no error")                                                                \
    X(GENERAL_PROTOCOL_ERROR, 0x0101, "the peer broke a rule of the protocol")                     \
    X(INTERNAL_ERROR, 0x0102, "an internal error")                                                 \
    X(STREAM_CREATION_ERROR, 0x0103, "a stream of a kind that may not be opened")                  \
    X(CLOSED_CRITICAL_STREAM, 0x0104, "a stream that the connection needs was closed")             \
    X(FRAME_UNEXPECTED, 0x0105, "a frame where it may not be")                                     \
    X(FRAME_ERROR, 0x0106, "a frame that is not well formed")                                      \
    X(EXCESSIVE_LOAD, 0x0107, "the peer asks for too much")                                        \
    X(ID_ERROR, 0x0108, "a stream or push ID used wrongly")                                        \
    X(SETTINGS_ERROR, 0x0109, "settings that are not valid")                                       \
    X(MISSING_SETTINGS, 0x010a, "no settings at the start of the control stream")                  \
    X(REQUEST_REJECTED, 0x010b, "the request was not looked at")                                   \
    X(REQUEST_CANCELLED, 0x010c, "the request or its response was cancelled")                      \
    X(REQUEST_INCOMPLETE, 0x010d, "the request ended too early")                                   \
    X(MESSAGE_ERROR, 0x010e, "a message that is not well formed")                                  \
    X(CONNECT_ERROR, 0x010f, "a tunnel was reset")                                                 \
    X(VERSION_FALLBACK, 0x0110, "the request needs HTTP/1.1")                                      \
    X(QPACK_DECOMPRESSION_FAILED, 0x0200, "a header block cannot be decoded")                      \
    X(QPACK_ENCODER_STREAM_ERROR, 0x0201, "the QPACK encoder stream cannot be decoded")            \
    X(QPACK_DECODER_STREAM_ERROR, 0x0202, "the QPACK decoder stream cannot be decoded")

#define LEAT_H3_ERROR_ENUM(name, value, text) LEAT_H3_##name = (value),
typedef enum leat_h3_error { LEAT_H3_ERROR_LIST(LEAT_H3_ERROR_ENUM) } leat_h3_error;
#undef LEAT_H3_ERROR_ENUM

/* "H3_REQUEST_REJECTED" and its text; for a code outside the list "H3_?" and "unknown error".
 * Static strings; any thread. */
LEAT_API const char *leat_h3_error_name(uint64_t code);
LEAT_API const char *leat_h3_error_text(uint64_t code);

/* ---- messages ---- */

/* A header field. Names are lower case. */
typedef struct leat_http_field {
    leat_span name, value;
} leat_http_field;

/* The head of a message received. All spans live until the event returns. */
typedef struct leat_http_head {
    leat_span method, scheme, authority, path; /* of a request */
    unsigned status;                           /* of a response */
    uint64_t content_length;       /* LEAT_HTTP_LENGTH_UNKNOWN when the peer does not say */
    const leat_http_field *fields; /* the others, in the order in which they came */
    size_t field_count;
} leat_http_head;

/* The value of the first field of that (lower-case) name; an empty span with NULL data when there
 * is none. */
LEAT_API leat_span leat_http_head_find(const leat_http_head *head, const char *name);

/* Fills room, up to room.len bytes that go out as they are, and says how many in *got (0 at first)
 * and in *end (false at first) whether the body ends with them. LEAT_OK with *got 0 and not *end:
 * nothing now, leat_http_resume() will be called. Any error cancels the message with
 * H3_INTERNAL_ERROR, as does a body that is shorter than the length announced. It may be called
 * from inside leat_http_request(), leat_http_respond() and leat_http_resume(), and must not call
 * anything of this header itself. */
typedef leat_err leat_http_pull_fn(leat_http_exchange *exchange, leat_mspan room, size_t *got,
                                   bool *end, void *user);

/* A body to send. */
typedef struct leat_http_body {
    leat_http_pull_fn *pull; /* NULL: no body */
    uint64_t length;         /* sent as content-length; LEAT_HTTP_LENGTH_UNKNOWN: not sent */
} leat_http_body;

typedef struct leat_http_request_head {
    leat_span method, scheme, authority, path; /* method empty: GET; scheme empty: https */
    const leat_http_field *fields;
    size_t field_count;
    leat_http_body body;
} leat_http_request_head;

typedef struct leat_http_response_head {
    unsigned status;               /* 200 to 599 */
    const leat_http_field *fields; /* without content-length, which comes from body.length */
    size_t field_count;
    leat_http_body body; /* for a HEAD request: length is sent, pull is not called */
} leat_http_response_head;

/* ---- sessions ---- */

/* How an exchange ended. */
typedef struct leat_http_end {
    leat_err err;  /* LEAT_OK: both messages went through whole. LEAT_ERR_RESET: by the peer;
                      LEAT_ERR_CLOSED: with the connection, or by leat_http_cancel();
                      LEAT_ERR_MALFORMED, LEAT_ERR_LIMIT: what the peer sent */
    uint64_t code; /* the application error code, of either side; 0 when there was none */
    bool rejected; /* the server did not look at the request: it may be made again */
} leat_http_end;

/* What a session tells its owner. Any member may be NULL. `user` is leat_http_attach()'s. */
typedef struct leat_http_events {
    /* Server: the head of a request is there; answer now or later. */
    void (*request)(leat_http_exchange *exchange, const leat_http_head *head, void *user);
    /* Client: the head of the final response is there. */
    void (*response)(leat_http_exchange *exchange, const leat_http_head *head, void *user);
    /* Bytes of the body, in order. Returns how many it takes; fewer than data.len pauses the
     * exchange, the rest comes again after leat_http_resume(). NULL: bodies are dropped. */
    size_t (*body)(leat_http_exchange *exchange, leat_span data, void *user);
    /* The peer's message has ended as it should: all of the body was there. */
    void (*complete)(leat_http_exchange *exchange, void *user);
    /* The last event of the exchange; the handle dies when it returns. A server hears of exchanges
     * whose request never came whole, too: their user pointer is NULL. */
    void (*exchange_closed)(leat_http_exchange *exchange, const leat_http_end *end, void *user);
    /* Client: after LEAT_ERR_BLOCKED from leat_http_request(), more may be made. */
    void (*available)(leat_http *http, void *user);
    /* The peer is going away: no new requests on this connection. */
    void (*goaway)(leat_http *http, void *user);
    /* Client: a token for the next connection (leat/quic.h). */
    void (*token)(leat_http *http, leat_span token, void *user);
    /* Client: a session for the next connection (leat/quic.h). */
    void (*ticket)(leat_http *http, leat_span session, void *user);
    /* The connection is closed; the session's last event, the handle dies when it returns. */
    void (*closed)(leat_http *http, const leat_close_info *info, void *user);
} leat_http_events;

typedef struct leat_http_settings {
    size_t max_header_bytes; /* of names and values in a head received; a longer one is answered
                                with 431, or cancelled with H3_EXCESSIVE_LOAD by a client */
    size_t max_header_fields;
    size_t max_requests; /* server: as max_streams_bidi of the connection's settings */
    size_t qpack_table;  /* bytes of QPACK dynamic table that the peer may use */
} leat_http_settings;

/* Fills in the defaults of leat/limits.h. */
LEAT_API void leat_http_settings_init(leat_http_settings *settings);

/* Makes the session on a connection that has just been told connected, and takes over its events.
 * So it does from a server's `early` event, and, for a client, right after leat_conn_connect()
 * where leat_conn_early() says that 0-RTT is offered. NULL settings: defaults. `events` is borrowed
 * until `closed`. LEAT_ERR_UNSUPPORTED: ALPN is neither; LEAT_ERR_INVALID: settings out of the
 * bounds of leat/limits.h; LEAT_ERR_NOMEM. After an error the connection is as before. */
LEAT_API leat_err leat_http_attach(leat_conn *conn, const leat_http_settings *settings,
                                   const leat_http_events *events, void *user, leat_http **out);

LEAT_API leat_conn *leat_http_conn(leat_http *http);
LEAT_API void leat_http_set_user(leat_http *http, void *user);
LEAT_API void *leat_http_user(const leat_http *http);
LEAT_API size_t leat_http_exchanges(const leat_http *http); /* not yet closed */

/* Client: sends a request. `user` is the exchange's. LEAT_ERR_BLOCKED: the server allows no more
 * now, the `available` event tells when; LEAT_ERR_CLOSED: closing or going away; LEAT_ERR_STATE: as
 * 0-RTT, which somebody may repeat, only safe methods are sent: GET, HEAD, OPTIONS (RFC 8470 s4);
 * LEAT_ERR_UNSUPPORTED: hq-interop knows only GET without a body; LEAT_ERR_LIMIT: names and values
 * of more than LEAT_HTTP_HEADER_BYTES_MAX bytes, which no server takes; LEAT_ERR_INVALID;
 * LEAT_ERR_NOMEM. Spans are copied. */
LEAT_API leat_err leat_http_request(leat_http *http, const leat_http_request_head *head, void *user,
                                    leat_http_exchange **out);

/* Server: answers, once. LEAT_ERR_STATE: answered already; LEAT_ERR_LIMIT as for a request;
 * LEAT_ERR_CLOSED, LEAT_ERR_INVALID, LEAT_ERR_NOMEM. Over hq-interop a status other than 200 resets
 * the stream. */
LEAT_API leat_err leat_http_respond(leat_http_exchange *exchange,
                                    const leat_http_response_head *head);

/* Goes on with an exchange whose `body` event took too little, or whose pull function had nothing.
 * Events may come before it returns. */
LEAT_API void leat_http_resume(leat_http_exchange *exchange);

/* Gives up an exchange, both ways; its `exchange_closed` event comes later with `code`. */
LEAT_API void leat_http_cancel(leat_http_exchange *exchange, uint64_t code);

LEAT_API leat_http *leat_http_exchange_session(leat_http_exchange *exchange);
LEAT_API leat_stream *leat_http_exchange_stream(leat_http_exchange *exchange);
LEAT_API void leat_http_exchange_set_user(leat_http_exchange *exchange, void *user);
LEAT_API void *leat_http_exchange_user(const leat_http_exchange *exchange);

/* Graceful end: takes no more requests (RFC 9114 s5.2, GOAWAY), lets those there finish, then
 * closes with H3_NO_ERROR (hq-interop: 0). */
LEAT_API void leat_http_shutdown(leat_http *http);

/* Closes now, with a code of LEAT_H3_ERROR_LIST; hq-interop, which has none, sends 0 for
 * H3_NO_ERROR. */
LEAT_API void leat_http_close(leat_http *http, uint64_t code);

LEAT_END_DECLS

#endif
