/* h3/h3.h: HTTP/3 by nghttp3: what its files share. h3.c makes the session and hears nghttp3's
 * wishes, h3_recv.c feeds it, h3_send.c empties it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_H3_H3_H
#define LEAT_H3_H3_H

#include <nghttp3/nghttp3.h>

#include "h3/http.h"

typedef struct leat_h3 {
    leat_http *http;
    nghttp3_conn *conn;
    nghttp3_mem mem;
    leat_stream *control, *encoder, *decoder; /* ours */
    uint64_t requests_allowed;                /* told to nghttp3: bounds PRIORITY_UPDATE */

    /* Exchanges by stream ID: chains from a power of two of buckets. */
    leat_http_exchange **buckets;
    size_t bucket_count;

    /* nghttp3 calls back while it is called: what must not happen inside waits for the outermost
     * leat_h3_leave(). */
    unsigned depth;
    bool due;     /* nghttp3 may have something to send */
    bool any_cut; /* an exchange has `cut` set */
    leat_task pump;

    leat_stream *peer_encoder; /* known by its address: it may be gone */
    bool table_used;           /* the peer's encoder said something: what is read is acknowledged */
    const uint8_t *span_end;   /* of the packet's bytes being read */
    bool uni_stop;             /* the unidirectional stream being read is of no known type */
} leat_h3;

static inline leat_h3 *leat_h3_of(leat_http *http)
{
    return (leat_h3 *)http->state;
}

leat_http_exchange *leat_h3_find(leat_h3 *h3, int64_t stream_id);

/* Around every call from outside that may make nghttp3 call back; the outermost leave sends what
 * came of it. */
static inline void leat_h3_enter(leat_h3 *h3)
{
    h3->depth++;
}
void leat_h3_leave(leat_h3 *h3);
/* The same, but what came of it waits for leat_h3_told(), so that what all streams of a turn have
 * to say goes in one go; or, when this is no event, for the next turn. */
void leat_h3_leave_event(leat_h3 *h3);

/* Closes the connection for an error of nghttp3's. */
void leat_h3_failed(leat_h3 *h3, nghttp3_ssize error);

/* h3_recv.c: the callbacks that receive, and the readable event. */
void leat_h3_recv_callbacks(nghttp3_callbacks *callbacks);
void leat_h3_readable(leat_http *http, leat_stream *stream, leat_http_exchange *x);

/* h3_send.c */
leat_err leat_h3_request(leat_http_exchange *x, const leat_http_request_head *head);
leat_err leat_h3_respond(leat_http_exchange *x, const leat_http_response_head *head);
void leat_h3_writable(leat_http *http, leat_stream *stream, leat_http_exchange *x);
void leat_h3_resume(leat_http_exchange *x);
void leat_h3_told(leat_http *http);
/* Moves what nghttp3 has to send into the streams. */
void leat_h3_pump(leat_h3 *h3);

#endif
