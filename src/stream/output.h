/* stream/output.h: what streams want to send, in which order, and what became of it.
 *
 * Two kinds of frames: control frames, few and first; and STREAM frames, scheduled by urgency. To
 * fill a packet:
 *
 *     while (leat_streams_next_control(s, now, srtt, &c)) {
 *         if it does not fit: break
 *         write the frame c.what says; record {c.stream, c.what, c.value};
 * leat_streams_control_sent(s, &c);
 *     }
 *     while ((stream = leat_streams_next_stream(s)) != NULL) {
 *         max_len = room less the frame's header; if too small: break
 *         if (!leat_stream_send_next(&stream->send, max_len, &s->flow_out, &part)) break;
 *         write the header, leat_stream_send_copy() the bytes; record {stream, part.offset,
 * part.len, part.fin}; leat_streams_stream_sent(s, stream, &part);
 *     }
 *
 * Each record's fate is told once: _acked, _lost or _record_dropped. It may free the stream.
 *
 * Scheduling: strict urgency; inside one, a stream that is incremental goes to the end of the line
 * after each frame, another stays in front until it has nothing more (RFC 9218). Streams that need
 * the connection's credit stand in lines of their own, so that a blocked connection does not
 * search. Everything here is O(1) a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_OUTPUT_H
#define LEAT_STREAM_OUTPUT_H

#include "stream/table.h"

/* Streams that wait for memory are told when all together hold no more than this part of the
 * budget; they may hold half. */
#define LEAT_STREAMS_FEED_BELOW 4

/* X(NAME, bit, level, what value and extra mean) */
#define LEAT_CONTROL_LIST(X)                                                                       \
    X(RESET_STREAM, 0x01, stream, "value: application code; extra: final size")                    \
    X(STOP_SENDING, 0x02, stream, "value: application code")                                       \
    X(MAX_STREAM_DATA, 0x04, stream, "value: limit")                                               \
    X(STREAM_DATA_BLOCKED, 0x08, stream, "value: limit")                                           \
    X(RESET_STREAM_AT, 0x10, stream, "value: reliable size; extra: final size")                    \
    X(MAX_DATA, 0x20, connection, "value: limit")                                                  \
    X(DATA_BLOCKED, 0x40, connection, "value: limit")                                              \
    X(MAX_STREAMS_BIDI, 0x80, connection, "value: limit")                                          \
    X(MAX_STREAMS_UNI, 0x100, connection, "value: limit")                                          \
    X(STREAMS_BLOCKED_BIDI, 0x200, connection, "value: limit")                                     \
    X(STREAMS_BLOCKED_UNI, 0x400, connection, "value: limit")

#define LEAT_CONTROL_ENUM(name, bit, level, text) LEAT_CONTROL_##name = (bit),
typedef enum leat_control { LEAT_CONTROL_LIST(LEAT_CONTROL_ENUM) } leat_control;
#undef LEAT_CONTROL_ENUM

typedef struct leat_control_frame {
    leat_stream *stream; /* NULL: of the connection */
    leat_control what;
    uint64_t value;
    uint64_t extra;
} leat_control_frame;

/* The next control frame to send; false: none. The same one until it is said to be sent. */
bool leat_streams_next_control(leat_streams *streams, leat_time now, leat_time srtt,
                               leat_control_frame *frame);
/* It went into a packet: the caller holds a record of it (the stream, if any, is held). */
void leat_streams_control_sent(leat_streams *streams, const leat_control_frame *frame);

/* The stream whose turn it is, or NULL. */
leat_stream *leat_streams_next_stream(leat_streams *streams);
/* The part went into a packet: uses credit, holds the stream, moves the line on. */
void leat_streams_stream_sent(leat_streams *streams, leat_stream *stream,
                              const leat_send_part *part);

/* Something waits that could be sent now. */
bool leat_streams_wants_send(const leat_streams *streams);

/* The fate of records. */
void leat_streams_stream_acked(leat_streams *streams, leat_stream *stream, uint64_t offset,
                               size_t len, bool fin);
void leat_streams_stream_lost(leat_streams *streams, leat_stream *stream, uint64_t offset,
                              size_t len, bool fin);
void leat_streams_control_acked(leat_streams *streams, leat_stream *stream, leat_control what,
                                uint64_t value);
void leat_streams_control_lost(leat_streams *streams, leat_stream *stream, leat_control what,
                               uint64_t value);
/* Neither: the record goes because the connection or its keys do. */
void leat_streams_record_dropped(leat_streams *streams, leat_stream *stream);

/* A probe (RFC 9002 §6.2.4) wants bytes that are in flight sent again, while their record stays
 * open: as lost, but the record is kept. */
void leat_streams_stream_probe(leat_streams *streams, leat_stream *stream, uint64_t offset,
                               size_t len, bool fin);
void leat_streams_control_probe(leat_streams *streams, leat_stream *stream, leat_control what,
                                uint64_t value);

/* Streams that wait for credit, and the connection if it does, tell the peer once more. */
void leat_streams_blocked_again(leat_streams *streams);

/* ---- for the files of this folder ---- */

/* Streams gave memory back: tells those that wait for it once there is a good part. */
void leat_streams_feed(leat_streams *streams);

/* Puts the stream into the queue it belongs in now, or none. Call after anything that may change
 * it. */
void leat_streams_requeue(leat_streams *streams, leat_stream *stream);
void leat_streams_requeue_all(leat_streams *streams);
/* Wants a control frame sent, or not any more. Ignored once the stream is closed. */
void leat_streams_want_control(leat_streams *streams, leat_stream *stream, unsigned bits);
void leat_streams_unwant_control(leat_streams *streams, leat_stream *stream, unsigned bits);

#endif
