/* stream/stream.h: a stream: its two parts, and its places in the lists of its connection's
 * streams.
 *
 * Only plain accessors are here. What happens to a stream goes through stream/table.h (opening,
 * closing), stream/input.h (frames from the peer), stream/output.h (what to send, and what became
 * of it) and stream/app.h (the application's calls), which keep the lists right.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_STREAM_H
#define LEAT_STREAM_STREAM_H

#include "base/list.h"
#include "mem/hmap.h"
#include "stream/recv.h"
#include "stream/send.h"

typedef struct leat_stream leat_stream;
typedef struct leat_streams leat_streams;

/* The kinds of streams are the two low bits of the ID, RFC 9000 §2.1. */
#define LEAT_STREAM_BY_SERVER UINT64_C(1)
#define LEAT_STREAM_UNI       UINT64_C(2)
#define LEAT_STREAM_KINDS     4

/* What the application is to be told, X(NAME, bit, what). In the order in which to tell it. */
#define LEAT_STREAM_EVENT_LIST(X)                                                                  \
    X(OPENED, 1, "the peer opened the stream")                                                     \
    X(READABLE, 2, "there is something to read, or the end")                                       \
    X(RESET, 4, "the peer reset its sending part: recv.reset_code")                                \
    X(STOPPED, 8, "the peer wants no more: stop_code")                                             \
    X(WRITABLE, 16, "there is room after the application was held back")                           \
    X(CLOSED, 32, "both parts are at their end; the last event")

#define LEAT_STREAM_EVENT_ENUM(name, bit, text) LEAT_STREAM_EVENT_##name = (bit),
enum leat_stream_event { LEAT_STREAM_EVENT_LIST(LEAT_STREAM_EVENT_ENUM) };
#undef LEAT_STREAM_EVENT_ENUM

/* Which list of sendable streams it is in. */
enum leat_stream_queue {
    LEAT_STREAM_QUEUE_NONE,
    LEAT_STREAM_QUEUE_FREE, /* can send without the connection's credit: lost bytes, a bare FIN */
    LEAT_STREAM_QUEUE_NEW   /* needs it */
};

struct leat_stream {
    uint64_t id;
    leat_streams *streams;
    void *user;
    leat_hnode_u64 node;    /* by ID, while in the table */
    leat_link send_link;    /* in a queue of sendable streams */
    leat_link control_link; /* control != 0 */
    leat_link event_link;   /* events != 0 */
    uint32_t records;       /* sent frames whose fate is open and that point here */
    uint8_t events;         /* LEAT_STREAM_EVENT_ bits not yet told */
    uint8_t control;        /* LEAT_CONTROL_ bits (stream/output.h) to be sent */
    uint8_t queue;          /* enum leat_stream_queue */
    uint8_t urgency;        /* 0 first to 7 last */
    bool incremental;       /* round robin inside its urgency */
    bool in_table;          /* not closed yet */
    bool closed_told;       /* CLOSED was delivered: goes when records is 0 */
    bool stop_acked;
    bool once;               /* what is lost is not sent again: a reset with send.reset_code */
    uint64_t stop_code;      /* of the STOP_SENDING received */
    uint64_t stop_sent_code; /* of the STOP_SENDING we send */
    leat_stream_send send;
    leat_stream_recv recv;
};

static inline bool leat_stream_id_is_uni(uint64_t id)
{
    return (id & LEAT_STREAM_UNI) != 0;
}

static inline bool leat_stream_id_by_server(uint64_t id)
{
    return (id & LEAT_STREAM_BY_SERVER) != 0;
}

/* A sent frame that points to the stream is on record: the object stays until its fate is told. */
static inline void leat_stream_hold(leat_stream *stream)
{
    stream->records++;
}

/* Both parts and the links. */
void leat_stream_check(const leat_stream *stream);

#endif
