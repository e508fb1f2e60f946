/* stream/table.h: the streams of a connection, and its flow control.
 *
 * Lookup is a hash table over the streams that exist; its size follows their number, and its hash
 * is keyed, so that a peer cannot choose IDs that collide. Streams that the peer opened by opening
 * a higher one (RFC 9000 §3.2) are only ranges of indexes until a frame names them. IDs below the
 * highest that are in neither are closed: frames for them are ignored.
 *
 * A stream's life: opened by leat_streams_open() or by a frame; in the table until both parts are
 * at their end, then out of it (its peer may open another) with event CLOSED pending; given back to
 * the pool when CLOSED has been told and no record of a sent frame points to it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_TABLE_H
#define LEAT_STREAM_TABLE_H

#include "stream/stream.h"

#define LEAT_STREAM_URGENCIES       8
#define LEAT_STREAM_URGENCY_DEFAULT 3
#define LEAT_STREAMS_AVAILABLE_BIDI 1u
#define LEAT_STREAMS_AVAILABLE_UNI  2u
#define LEAT_STREAMS_MAX            (UINT64_C(1) << 60) /* RFC 9000 §4.6 */

typedef struct leat_streams_settings {
    bool is_server;
    leat_hash_key hash_key; /* random */
    uint64_t max_data;      /* our transport parameters: initial limits for the peer */
    uint64_t max_stream_data_bidi_local;
    uint64_t max_stream_data_bidi_remote;
    uint64_t max_stream_data_uni;
    uint64_t max_streams_bidi; /* open at once */
    uint64_t max_streams_uni;
    uint64_t window_max;        /* how far max_data may grow by itself; 0: fixed */
    uint64_t stream_window_max; /* the same for a stream */
    size_t send_buffer;         /* bytes a stream */
    uint32_t gaps_max;          /* LEAT_STREAM_RECV_GAPS; 0: the default */
} leat_streams_settings;

/* The peer's transport parameters that concern streams. */
typedef struct leat_streams_peer {
    uint64_t max_data;
    uint64_t max_stream_data_bidi_local;
    uint64_t max_stream_data_bidi_remote;
    uint64_t max_stream_data_uni;
    uint64_t max_streams_bidi;
    uint64_t max_streams_uni;
    bool reset_stream_at; /* it takes RESET_STREAM_AT */
} leat_streams_peer;

/* One of the two kinds that the peer opens. Counts are of streams, not IDs. */
typedef struct leat_streams_remote {
    uint64_t opened;     /* the next index that was never opened */
    uint64_t limit;      /* advertised: MAX_STREAMS */
    uint64_t closed;     /* how many have gone */
    uint64_t concurrent; /* how many may be open at once */
    leat_ranges idle;    /* indexes opened by a higher one, of which no frame came yet */
} leat_streams_remote;

/* One of the two kinds that we open. */
typedef struct leat_streams_local {
    uint64_t opened;
    uint64_t limit;    /* the peer's MAX_STREAMS */
    uint64_t reported; /* 1 + the limit for which STREAMS_BLOCKED was sent; 0: none yet */
    bool blocked;      /* the application was refused one: tell it when the limit rises */
} leat_streams_local;

/* Streams that can send, by urgency, each in one of two lines (stream/output.h). */
typedef struct leat_stream_lines {
    leat_list free[LEAT_STREAM_URGENCIES];
    leat_list fresh[LEAT_STREAM_URGENCIES];
} leat_stream_lines;

/* What each packet asks comes first. */
struct leat_streams {
    leat_stream_env env;
    leat_list controls; /* streams with control bits */
    leat_list events;   /* streams with events to tell */
    uint32_t control;   /* LEAT_CONTROL_ bits of the connection itself */
    uint32_t free_mask; /* urgencies with a line in lines->free */
    uint32_t new_mask;
    uint8_t
        available; /* LEAT_STREAMS_AVAILABLE_ bits: tell the application that it may open more */
    bool held;     /* after restart: streams above the new limit exist and must wait */
    bool starved;  /* a stream waits for memory that others hold */
    leat_stream_lines *lines; /* NULL while there has been no stream for long */
    leat_flow_in flow_in;     /* MAX_DATA for the peer */
    leat_flow_out flow_out;   /* MAX_DATA of the peer */
    leat_hmap by_id;
    leat_streams_remote remote[2]; /* bidi, uni */
    leat_streams_local local[2];
    uint32_t zombies; /* out of the table, not yet back in the pool */
    uint64_t stat_opened;
    uint64_t stat_resent; /* stream bytes sent again; flow_out.used and flow_in.received tell the
                             others */
    leat_streams_settings settings;
    leat_streams_peer peer;
};

/* pools and budget must outlive it; it must stay in place. Until leat_streams_set_peer() the peer
 * allows nothing. */
void leat_streams_init(leat_streams *streams, leat_stream_pools *pools, leat_budget *budget,
                       const leat_streams_settings *settings);

/* Frees all streams without telling anybody. Records of sent frames must have been dropped before
 * (leat_streams_record_dropped()). */
void leat_streams_free(leat_streams *streams);

/* Gives storage back that nothing is in: for a connection that has become idle. */
void leat_streams_shrink(leat_streams *streams);

/* The peer's parameters are known, remembered or new. Raises limits only, except after
 * leat_streams_restart(). */
void leat_streams_set_peer(leat_streams *streams, const leat_streams_peer *peer);

/* 0-RTT was rejected: whatever was sent counts as never sent, and the peer's limits are these.
 * Records of the rejected frames must have been dropped with leat_streams_record_dropped(). */
void leat_streams_restart(leat_streams *streams, const leat_streams_peer *peer);

/* The next stream of a kind. LEAT_ERR_BLOCKED at the peer's limit: STREAMS_BLOCKED is sent and
 * `available` set when it rises. LEAT_ERR_NOMEM. */
leat_err leat_streams_open(leat_streams *streams, bool bidi, leat_stream **out);

/* The stream with this ID, or NULL when it is closed, idle, or never opened. */
leat_stream *leat_streams_find(leat_streams *streams, uint64_t id);

/* The connection is over: every stream leaves the table and the send queues with event CLOSED
 * pending, and OPENED if that was not told yet, nothing else. The connection then drops its records
 * and lets the events be told. */
void leat_streams_close_all(leat_streams *streams);

/* ---- events ---- */

static inline bool leat_streams_has_events(const leat_streams *streams)
{
    return !leat_list_empty(&streams->events) || streams->available != 0;
}

/* Takes the next stream that has events, and its bits; NULL when none is left. The caller tells
 * them in order, then calls leat_streams_told() with the same bits, and must not use the stream
 * after that if they had CLOSED. New events that arise meanwhile queue it again, at the end. */
leat_stream *leat_streams_next_event(leat_streams *streams, unsigned *events);
void leat_streams_told(leat_streams *streams, leat_stream *stream, unsigned events);

/* ---- for the files of this folder ---- */

/* Walks the streams in the table; it must not change meanwhile. */
leat_stream *leat_streams_first(leat_streams *streams);
leat_stream *leat_streams_after(leat_streams *streams, const leat_stream *stream);
/* A record that pointed to the stream is gone; the stream may be, after this. */
void leat_streams_release(leat_streams *streams, leat_stream *stream);
/* The peer allows so many streams of a kind that we open; a lower limit is ignored. */
void leat_streams_raise_local(leat_streams *streams, bool bidi, uint64_t limit);
/* Allows the peer as many streams of a kind as have closed. */
void leat_streams_raise_remote(leat_streams *streams, bool bidi);
/* A stream of ours above the peer's limit: it must not send. */
bool leat_streams_is_held(const leat_streams *streams, const leat_stream *stream);
/* Queues bits for the application. */
void leat_streams_tell(leat_streams *streams, leat_stream *stream, unsigned events);
/* Takes it out of the table if both parts are at their end. Call after anything that may end a
 * part. */
void leat_streams_settle(leat_streams *streams, leat_stream *stream);
/* For a frame that came: the stream with this ID, opened if the peer may and has. *out NULL:
 * closed, ignore the frame. needs_recv: the frame concerns our receiving part, else our sending
 * part. Returns 0, STREAM_LIMIT_ERROR, STREAM_STATE_ERROR or INTERNAL_ERROR. */
uint64_t leat_streams_for_frame(leat_streams *streams, uint64_t id, bool needs_recv,
                                leat_stream **out);

/* Walks everything. */
void leat_streams_check(leat_streams *streams);
/* Credit is neither lost nor made: what the connection has received and not consumed is what its
 * streams have. For an open connection. */
void leat_streams_check_credit(leat_streams *streams);

#endif
