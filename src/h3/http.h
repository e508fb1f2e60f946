/* h3/http.h: the inside of a leat_http: sessions, exchanges, and the door to the two protocols.
 *
 * http.c owns sessions and exchanges and takes the connection's events; a protocol (h3.c and its
 * files, hq.c) is a table of functions, chosen by ALPN, that turns streams into messages and back.
 * Public leat headers only: HTTP is the first user of the QUIC interface.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_H3_HTTP_H
#define LEAT_H3_HTTP_H

#include <string.h>

#include <leat/h3.h>

typedef struct leat_http_protocol leat_http_protocol;

/* Where the fields of a head are kept until its event: bytes and descriptors in two arrays, both
 * from the context's memory, given back after the event. While it grows, spans hold offsets in
 * place of pointers. */
typedef struct leat_http_fields {
    uint8_t *bytes;
    uint32_t bytes_len, bytes_cap;
    leat_http_field *list;
    uint32_t count, cap;
    bool too_large; /* a limit was passed: what comes is dropped */
    bool no_memory;
} leat_http_fields;

/* Bytes of a body that the application did not take yet, copied out of the packet. */
typedef struct leat_http_held {
    leat_buf buf;
    size_t from, to; /* what of buf is filled and not taken */
} leat_http_held;

enum { LEAT_HTTP_SMALL = 16 };

struct leat_http_exchange {
    leat_http *http;
    leat_stream *stream;
    void *user;
    leat_http_exchange *prev, *next; /* the session's list */
    leat_http_exchange *hash_next;   /* h3: by stream ID */
    uint64_t id;                     /* of the stream */

    /* Receiving. */
    leat_http_fields fields;
    leat_http_held held;
    bool head_seen; /* the request or final response was told */
    bool paused;    /* the application took too little */
    bool fin_fed;   /* the protocol knows of the end */
    bool completed; /* `complete` was told */
    bool recv_over; /* nothing more is read: reset, or given up */

    /* Sending. */
    leat_http_body body;
    uint64_t body_sent;
    bool head_method; /* HEAD: the response has no body */
    bool answered;    /* a request or response was submitted */
    bool send_ready; /* h3: everything framed is in the stream, the next body bytes may be pulled */
    bool pull_waits; /* h3: told nghttp3 to wait */
    bool app_waits;  /* the pull function had nothing */
    bool finished;   /* FIN is in the stream */
    bool send_over;  /* nothing more is written: stopped, or given up */
    bool cut;        /* pull failed: reset the stream when out of nghttp3 */
    bool stop_later; /* leat_stream_stop() when no span is being read any more */
    uint64_t stop_code;
    /* h3: the span of the stream's send buffer that the body was just pulled into, `gap` bytes
     * behind its start, for what is framed ahead of it. Empty when none is open. */
    leat_mspan span;
    size_t gap, span_body;
    size_t head_most;               /* bytes that a head still to be written may take; 0: none is */
    uint8_t small[LEAT_HTTP_SMALL]; /* where a span is too small for a frame */

    leat_http_end end;
    leat_task resume; /* leat_http_resume() works in the next turn, never inside an event */
};

struct leat_http {
    leat_conn *conn;
    leat_mem *mem;
    const leat_http_protocol *protocol;
    void *state; /* the protocol's */
    leat_http_settings settings;
    const leat_http_events *events;
    void *user;
    bool server;
    bool shutting;   /* leat_http_shutdown() was called */
    bool going_away; /* the peer takes no more requests */
    bool closing;    /* leat_conn_close() was called, or is about to be */
    /* While a span of a packet is being read, nothing may be done that gives its memory back:
     * stopping the stream and closing the connection wait for leat_http_read_end(). */
    bool reading;
    leat_http_exchange *reading_exchange;
    bool close_later;
    uint64_t close_code;
    const char *close_reason; /* static */
    leat_http_exchange *first, *last;
    size_t count;
};

struct leat_http_protocol {
    const char *alpn;
    /* Sets http->state up, opens what the protocol needs. */
    leat_err (*start)(leat_http *http);
    void (*stop)(leat_http *http);
    leat_err (*request)(leat_http_exchange *x, const leat_http_request_head *head);
    leat_err (*respond)(leat_http_exchange *x, const leat_http_response_head *head);
    /* An exchange was added to the session, or is about to leave it. */
    leat_err (*opened)(leat_http_exchange *x);
    void (*closed)(leat_http_exchange *x);
    /* A bidirectional stream of an exchange, or (x NULL) a unidirectional one, has news. */
    void (*readable)(leat_http *http, leat_stream *stream, leat_http_exchange *x);
    void (*writable)(leat_http *http, leat_stream *stream, leat_http_exchange *x);
    void (*reset)(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code);
    void (*stopped)(leat_http *http, leat_stream *stream, leat_http_exchange *x, uint64_t code);
    void (*uni_closed)(leat_http *http, leat_stream *stream);
    /* Those of a turn have been told. May be NULL. */
    void (*told)(leat_http *http);
    /* The application went on with a body to send. */
    void (*resume)(leat_http_exchange *x);
    /* The exchange is given up: forget what is queued. */
    void (*cancelled)(leat_http_exchange *x);
    void (*shutdown)(leat_http *http);
    /* What goes on the wire for a code of LEAT_H3_ERROR_LIST. */
    uint64_t (*code)(uint64_t h3_code);
};

extern const leat_http_protocol leat_http_h3, leat_http_hq;

/* ---- exchange.c ---- */

/* Adds an exchange on a stream; NULL: no memory. */
leat_http_exchange *leat_http_exchange_add(leat_http *http, leat_stream *stream);

/* The stream is gone: tells the owner how the exchange ended, and frees it. */
void leat_http_exchange_close(leat_http_exchange *x);
/* Drops what the application did not take. */
void leat_http_held_free(leat_http_exchange *x);

/* Tells the head kept in x->fields, split by the caller, and drops the fields. */
void leat_http_tell_head(leat_http_exchange *x, const leat_http_head *head);
/* Gives body bytes to the application; what it does not take is held, and room for `more` bytes
 * that may follow from the same packet. False: no memory, the exchange was cancelled. */
bool leat_http_tell_body(leat_http_exchange *x, leat_span data, size_t more);
void leat_http_tell_complete(leat_http_exchange *x);

/* Gives up with a reason for the `exchange_closed` event; the first reason stays. */
void leat_http_fail(leat_http_exchange *x, leat_err err, uint64_t code);

/* Pulls body bytes into room, and checks them against the length announced. *end also when the body
 * is complete by its length. Sets x->app_waits. */
leat_err leat_http_pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end);

/* ---- http.c ---- */

/* A stream that does not become an exchange. */
void leat_http_refuse(leat_http *http, leat_stream *stream, uint64_t code);
/* Around the reading of one span: of an exchange's stream, or (x NULL) of another. */
void leat_http_read_begin(leat_http *http, leat_http_exchange *x);
void leat_http_read_end(leat_http *http);
/* Closes the connection for an error of the peer's, or of ours. The reason is a static string. */
void leat_http_abort(leat_http *http, uint64_t code, const char *reason);

static inline leat_span leat_http_text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static inline bool leat_http_is(leat_span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* ---- fields.c ---- */

/* Adds a copy; over a limit it sets too_large, without memory no_memory, and does nothing more. */
void leat_http_fields_add(leat_http *http, leat_http_fields *f, leat_span name, leat_span value);
/* Turns offsets into pointers; call once, before reading. */
void leat_http_fields_finish(leat_http_fields *f);
void leat_http_fields_free(leat_http *http, leat_http_fields *f);

/* Adds raw bytes at the end; false when a limit or memory forbids, as above. */
bool leat_http_fields_bytes(leat_http *http, leat_http_fields *f, leat_span data);

/* Decimal digits alone, no overflow. */
bool leat_http_number(leat_span s, uint64_t *out);

#endif
