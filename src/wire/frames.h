/* wire/frames.h: frames (RFC 9000 §19, RFC 9221 §4): the table of their facts, decoding, encoding.
 *
 * LEAT_FRAME_LIST is the only list of frame types. A row gives a frame its kind
 * (LEAT_FRAME_STREAM), its codes, the packets it may come in and its properties; whoever needs
 * something a frame (a handler, a counter, a name in a log) expands the same list or indexes by
 * kind.
 *
 * Decoding: leat_frame_decode() takes the next frame off a cursor over a packet's payload and does
 * every check that needs no connection. Data, tokens and reasons are spans into the payload and
 * live as long as it does.
 *
 * Encoding: leat_frame_write_…() writes one whole frame and returns true, or, when it does not fit
 * what is left of the writer, writes nothing and returns false; the writer is not put into error.
 * leat_frame_size_…() says how many bytes it takes. Arguments are values that the protocol allows
 * (varints at most LEAT_VARINT_MAX, and so on): that is asserted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_FRAMES_H
#define LEAT_WIRE_FRAMES_H

#include <leat/transport_error.h>

#include "base/cursor.h"
#include "mem/ranges.h"
#include "wire/cid.h"
#include "wire/varint.h"
#include "wire/version.h"

/* ---- the table ---- */

/* clang-format off */

/* Packets a frame may come in, as the "Pkts" column of RFC 9000 table 3. */
#define LEAT_IN_I    (1 << LEAT_PACKET_INITIAL)
#define LEAT_IN_H    (1 << LEAT_PACKET_HANDSHAKE)
#define LEAT_IN_0    (1 << LEAT_PACKET_ZERO_RTT)
#define LEAT_IN_1    (1 << LEAT_PACKET_ONE_RTT)
#define LEAT_IN_IH01 (LEAT_IN_I | LEAT_IN_H | LEAT_IN_0 | LEAT_IN_1)
#define LEAT_IN_IH_1 (LEAT_IN_I | LEAT_IN_H | LEAT_IN_1)
#define LEAT_IN___01 (LEAT_IN_0 | LEAT_IN_1)
#define LEAT_IN____1 (LEAT_IN_1)

/* Properties. A packet is in flight when it holds a frame that is (RFC 9002 §2); a packet is
 * probing when all its frames are (RFC 9000 §9.1). */
#define LEAT_FRAME_IS_IN_FLIGHT 0x1
#define LEAT_FRAME_IS_ELICITING 0x2
#define LEAT_FRAME_IS_PROBING   0x4
#define LEAT_FRAME_E            (LEAT_FRAME_IS_ELICITING | LEAT_FRAME_IS_IN_FLIGHT)
#define LEAT_FRAME_EP           (LEAT_FRAME_E | LEAT_FRAME_IS_PROBING)
#define LEAT_FRAME_CP           (LEAT_FRAME_IS_IN_FLIGHT | LEAT_FRAME_IS_PROBING)

/* X(KIND, member, first code, last code, packets, properties, "name as qlog writes it") */
#define LEAT_FRAME_LIST(X)                                                                         \
    X(PADDING, padding, 0x00, 0x00, LEAT_IN_IH01, LEAT_FRAME_CP, "padding")                        \
    X(PING, ping, 0x01, 0x01, LEAT_IN_IH01, LEAT_FRAME_E, "ping")                                  \
    X(ACK, ack, 0x02, 0x03, LEAT_IN_IH_1, 0, "ack")                                                \
    X(RESET_STREAM, reset_stream, 0x04, 0x04, LEAT_IN___01, LEAT_FRAME_E, "reset_stream")          \
    X(STOP_SENDING, stop_sending, 0x05, 0x05, LEAT_IN___01, LEAT_FRAME_E, "stop_sending")          \
    X(CRYPTO, crypto, 0x06, 0x06, LEAT_IN_IH_1, LEAT_FRAME_E, "crypto")                            \
    X(NEW_TOKEN, new_token, 0x07, 0x07, LEAT_IN____1, LEAT_FRAME_E, "new_token")                   \
    X(STREAM, stream, 0x08, 0x0f, LEAT_IN___01, LEAT_FRAME_E, "stream")                            \
    X(MAX_DATA, max_data, 0x10, 0x10, LEAT_IN___01, LEAT_FRAME_E, "max_data")                      \
    X(MAX_STREAM_DATA, max_stream_data, 0x11, 0x11, LEAT_IN___01, LEAT_FRAME_E,                    \
      "max_stream_data")                                                                           \
    X(MAX_STREAMS, max_streams, 0x12, 0x13, LEAT_IN___01, LEAT_FRAME_E, "max_streams")             \
    X(DATA_BLOCKED, data_blocked, 0x14, 0x14, LEAT_IN___01, LEAT_FRAME_E, "data_blocked")          \
    X(STREAM_DATA_BLOCKED, stream_data_blocked, 0x15, 0x15, LEAT_IN___01, LEAT_FRAME_E,            \
      "stream_data_blocked")                                                                       \
    X(STREAMS_BLOCKED, streams_blocked, 0x16, 0x17, LEAT_IN___01, LEAT_FRAME_E, "streams_blocked") \
    X(NEW_CONNECTION_ID, new_connection_id, 0x18, 0x18, LEAT_IN___01, LEAT_FRAME_EP,               \
      "new_connection_id")                                                                         \
    X(RETIRE_CONNECTION_ID, retire_connection_id, 0x19, 0x19, LEAT_IN___01, LEAT_FRAME_E,          \
      "retire_connection_id")                                                                      \
    X(PATH_CHALLENGE, path_challenge, 0x1a, 0x1a, LEAT_IN___01, LEAT_FRAME_EP, "path_challenge")   \
    X(PATH_RESPONSE, path_response, 0x1b, 0x1b, LEAT_IN____1, LEAT_FRAME_EP, "path_response")      \
    /* The transport's in any packet; the application's not before 0-RTT (§10.2.3). */             \
    X(CONNECTION_CLOSE, connection_close, 0x1c, 0x1c, LEAT_IN_IH01, 0, "connection_close")         \
    X(APPLICATION_CLOSE, connection_close, 0x1d, 0x1d, LEAT_IN___01, 0, "connection_close")        \
    X(HANDSHAKE_DONE, handshake_done, 0x1e, 0x1e, LEAT_IN____1, LEAT_FRAME_E, "handshake_done")    \
    X(IMMEDIATE_ACK, immediate_ack, 0x1f, 0x1f, LEAT_IN____1, LEAT_FRAME_E, "immediate_ack")       \
    X(RESET_STREAM_AT, reset_stream_at, 0x24, 0x24, LEAT_IN___01, LEAT_FRAME_E,                    \
      "reset_stream_at")                                                                           \
    X(DATAGRAM, datagram, 0x30, 0x31, LEAT_IN___01, LEAT_FRAME_E, "datagram")                      \
    X(ACK_FREQUENCY, ack_frequency, 0xaf, 0xaf, LEAT_IN____1, LEAT_FRAME_E, "ack_frequency")
/* clang-format on */

#define LEAT_FRAME_KIND(kind, member, first, last, packets, props, name) LEAT_FRAME_##kind,
typedef enum leat_frame_kind { LEAT_FRAME_LIST(LEAT_FRAME_KIND) LEAT_FRAME_KINDS } leat_frame_kind;
#undef LEAT_FRAME_KIND

/* LEAT_FRAME_CODE_STREAM and so on: the first code of each kind. */
#define LEAT_FRAME_CODE(kind, member, first, last, packets, props, name)                           \
    LEAT_FRAME_CODE_##kind = (first),
enum leat_frame_code { LEAT_FRAME_LIST(LEAT_FRAME_CODE) };
#undef LEAT_FRAME_CODE

typedef struct leat_frame_facts {
    const char *name;
    uint64_t first, last; /* codes */
    uint8_t packets;      /* bit 1 << leat_packet_type */
    uint8_t props;        /* LEAT_FRAME_IS_… */
} leat_frame_facts;

extern const leat_frame_facts leat_frame_table[LEAT_FRAME_KINDS];

static inline const char *leat_frame_name(leat_frame_kind kind)
{
    return leat_frame_table[kind].name;
}

/* Whether the frame may come in a packet of this type: if not, PROTOCOL_VIOLATION (§12.4). */
static inline bool leat_frame_allowed(leat_frame_kind kind, leat_packet_type packet)
{
    return (leat_frame_table[kind].packets >> packet & 1) != 0;
}

static inline bool leat_frame_is_ack_eliciting(leat_frame_kind kind)
{
    return (leat_frame_table[kind].props & LEAT_FRAME_IS_ELICITING) != 0;
}

static inline bool leat_frame_is_in_flight(leat_frame_kind kind)
{
    return (leat_frame_table[kind].props & LEAT_FRAME_IS_IN_FLIGHT) != 0;
}

static inline bool leat_frame_is_probing(leat_frame_kind kind)
{
    return (leat_frame_table[kind].props & LEAT_FRAME_IS_PROBING) != 0;
}

/* The kind that a code belongs to, LEAT_FRAME_KINDS when none does. */
leat_frame_kind leat_frame_kind_of(uint64_t code);

/* ---- decoded frames ---- */

#define LEAT_MAX_STREAMS_LIMIT (UINT64_C(1) << 60) /* streams of a kind there can be (§19.11) */
#define LEAT_PATH_DATA         8                   /* bytes in a path challenge (§19.17) */

#define LEAT_STREAM_FIN        0x01 /* bits of a STREAM's code */
#define LEAT_STREAM_LEN        0x02
#define LEAT_STREAM_OFF        0x04

typedef struct leat_frame_padding {
    size_t len; /* bytes: a run of PADDING frames counts as one */
} leat_frame_padding;

typedef struct leat_ecn_counts {
    uint64_t ect0, ect1, ce;
} leat_ecn_counts;

/* An ACK, validated as a whole; its ranges are read with leat_ack_iter. */
typedef struct leat_frame_ack {
    uint64_t largest;
    uint64_t smallest_first; /* smallest number of the range that largest is in */
    uint64_t smallest;       /* smallest number acknowledged at all */
    uint64_t delay;          /* as on the wire: to be shifted by the peer's ack_delay_exponent */
    uint64_t range_count;    /* ranges after the first */
    const uint8_t *ranges;   /* encoded pairs of gap and length */
    bool has_ecn;
    leat_ecn_counts ecn;
} leat_frame_ack;

typedef struct leat_frame_reset_stream {
    uint64_t stream_id, error, final_size;
} leat_frame_reset_stream;

/* draft-ietf-quic-reliable-stream-reset-09: frame type 0x24, transport parameter 0x1d. */
typedef struct leat_frame_reset_stream_at {
    uint64_t stream_id, error, final_size;
    uint64_t reliable_size; /* <= final_size */
} leat_frame_reset_stream_at;

typedef struct leat_frame_stop_sending {
    uint64_t stream_id, error;
} leat_frame_stop_sending;

typedef struct leat_frame_crypto {
    uint64_t offset; /* offset + data.len <= LEAT_VARINT_MAX */
    leat_span data;
} leat_frame_crypto;

typedef struct leat_frame_new_token {
    leat_span token; /* not empty */
} leat_frame_new_token;

typedef struct leat_frame_stream {
    uint64_t stream_id;
    uint64_t offset; /* offset + data.len <= LEAT_VARINT_MAX */
    leat_span data;
    bool fin;
} leat_frame_stream;

typedef struct leat_frame_max_data {
    uint64_t max;
} leat_frame_max_data;

typedef struct leat_frame_max_stream_data {
    uint64_t stream_id, max;
} leat_frame_max_stream_data;

typedef struct leat_frame_max_streams {
    uint64_t max; /* <= LEAT_MAX_STREAMS_LIMIT */
    bool bidi;
} leat_frame_max_streams;

typedef struct leat_frame_data_blocked {
    uint64_t limit;
} leat_frame_data_blocked;

typedef struct leat_frame_stream_data_blocked {
    uint64_t stream_id, limit;
} leat_frame_stream_data_blocked;

typedef struct leat_frame_streams_blocked {
    uint64_t limit; /* <= LEAT_MAX_STREAMS_LIMIT */
    bool bidi;
} leat_frame_streams_blocked;

typedef struct leat_frame_new_connection_id {
    uint64_t sequence, retire_prior_to; /* retire_prior_to <= sequence */
    leat_cid cid;                       /* 1 to 20 bytes */
    uint8_t reset_token[LEAT_STATELESS_RESET_TOKEN];
} leat_frame_new_connection_id;

typedef struct leat_frame_retire_connection_id {
    uint64_t sequence;
} leat_frame_retire_connection_id;

typedef struct leat_frame_path_data {
    uint8_t data[LEAT_PATH_DATA];
} leat_frame_path_data;

typedef struct leat_frame_connection_close {
    bool application;
    uint64_t error;
    uint64_t frame_type; /* of a transport close; 0 otherwise */
    leat_span reason;
} leat_frame_connection_close;

typedef struct leat_frame_datagram {
    size_t size; /* of the frame, with its type and length as they were encoded */
    leat_span data;
} leat_frame_datagram;

/* draft-ietf-quic-ack-frequency: see conn/ackfreq.h. */
typedef struct leat_frame_ack_frequency {
    uint64_t sequence;
    uint64_t threshold; /* ack-eliciting packets that may go without an ACK */
    uint64_t max_delay; /* microseconds */
    uint64_t reorder;
} leat_frame_ack_frequency;

typedef struct leat_frame {
    leat_frame_kind kind;
    uint64_t code; /* as on the wire: what a CONNECTION_CLOSE about this frame names */
    union {
        leat_frame_padding padding;
        leat_frame_ack ack;
        leat_frame_reset_stream reset_stream;
        leat_frame_reset_stream_at reset_stream_at;
        leat_frame_stop_sending stop_sending;
        leat_frame_crypto crypto;
        leat_frame_new_token new_token;
        leat_frame_stream stream;
        leat_frame_max_data max_data;
        leat_frame_max_stream_data max_stream_data;
        leat_frame_max_streams max_streams;
        leat_frame_data_blocked data_blocked;
        leat_frame_stream_data_blocked stream_data_blocked;
        leat_frame_streams_blocked streams_blocked;
        leat_frame_new_connection_id new_connection_id;
        leat_frame_retire_connection_id retire_connection_id;
        leat_frame_path_data path_challenge;
        leat_frame_path_data path_response;
        leat_frame_connection_close connection_close; /* CONNECTION_CLOSE and APPLICATION_CLOSE */
        leat_frame_datagram datagram;
        leat_frame_ack_frequency ack_frequency;
    };
} leat_frame;

/* Takes the next frame off the cursor, which is not at its end. LEAT_TE_NO_ERROR, or the transport
 * error to close with: FRAME_ENCODING_ERROR for what does not parse (an unknown type too) or holds
 * an impossible value, PROTOCOL_VIOLATION for a type not in its shortest encoding (§12.4).
 * out->code is set in either case (0 when not even the type could be read); on an error the rest of
 * *out and the cursor are not to be used.
 *
 * Left to the caller: leat_frame_allowed(), and that a packet without frames is a
 * PROTOCOL_VIOLATION. */
uint64_t leat_frame_decode(leat_cursor *cursor, leat_frame *out);

/* ---- ranges of an ACK ---- */

/* Walks the ranges of a decoded ACK, newest first. */
typedef struct leat_ack_iter {
    const uint8_t *next;
    uint64_t left;     /* ranges */
    uint64_t from, to; /* of the range to be given next */
} leat_ack_iter;

void leat_ack_iter_init(leat_ack_iter *iter, const leat_frame_ack *ack);

/* The next range, half-open; false after the last. They are disjoint, not adjacent, descending. */
bool leat_ack_iter_next(leat_ack_iter *iter, leat_range *out);

/* ---- writing: acknowledgements ---- */

/* Writes an ACK of the newest of ranges: an array in ascending order, disjoint and not adjacent, as
 * leat_ranges_all() gives them, count >= 1. At most max_ranges of them, and no more than fit: the
 * oldest are left out. delay is already shifted. ecn: the counts to report, or NULL for a plain
 * ACK. Returns how many ranges were written; 0: not even one fits, and nothing was written. */
size_t leat_frame_write_ack(leat_writer *w, const leat_range *ranges, size_t count,
                            size_t max_ranges, uint64_t delay, const leat_ecn_counts *ecn);

/* The most bytes that an ACK of one range takes. */
#define LEAT_FRAME_ACK_ONE_MAX (1 + 8 + 8 + 1 + 8 + 3 * 8)

/* ---- writing: data ---- */

/* How a piece of stream, crypto or datagram data goes into what is left of a packet. */
typedef struct leat_data_fit {
    size_t len;  /* bytes of data that go in */
    uint8_t pad; /* PADDING bytes ahead of the frame, so that it fills the packet to the byte */
    bool fits;   /* false: the frame does not go in at all */
    bool fills;  /* no length on the wire: the frame ends where the packet's payload ends */
} leat_data_fit;

/* Fits up to want bytes of a stream into left bytes. All of it, with its length, where that leaves
 * room for more frames; else as much as there is room for, without a length (and so nothing may
 * follow in the packet: the writer is full afterwards). want may be 0, for a bare FIN. */
leat_data_fit leat_frame_fit_stream(size_t left, uint64_t stream_id, uint64_t offset, size_t want);

/* Writes a STREAM up to where its data begins, in the way that leat_frame_fit_stream() found for
 * what is left of this writer; the caller then writes fit->len bytes of data. Always fits. */
void leat_frame_write_stream_head(leat_writer *w, uint64_t stream_id, uint64_t offset,
                                  const leat_data_fit *fit, bool fin);

/* The same for CRYPTO, which always has its length; want > 0. */
leat_data_fit leat_frame_fit_crypto(size_t left, uint64_t offset, size_t want);
void leat_frame_write_crypto_head(leat_writer *w, uint64_t offset, const leat_data_fit *fit);

/* The same for DATAGRAM, which is never split: it fits whole or not at all. */
leat_data_fit leat_frame_fit_datagram(size_t left, size_t len);
void leat_frame_write_datagram_head(leat_writer *w, const leat_data_fit *fit);

/* The most data that a DATAGRAM in left bytes of payload can carry, 0 when none fits. */
static inline size_t leat_frame_datagram_room(size_t left)
{
    return left > 0 ? left - 1 : 0;
}

/* ---- writing: the others ---- */

bool leat_frame_write_padding(leat_writer *w, size_t len);
bool leat_frame_write_ping(leat_writer *w);
bool leat_frame_write_reset_stream(leat_writer *w, uint64_t stream_id, uint64_t error,
                                   uint64_t final_size);
bool leat_frame_write_reset_stream_at(leat_writer *w, const leat_frame_reset_stream_at *frame);
bool leat_frame_write_stop_sending(leat_writer *w, uint64_t stream_id, uint64_t error);
bool leat_frame_write_new_token(leat_writer *w, leat_span token);
bool leat_frame_write_max_data(leat_writer *w, uint64_t max);
bool leat_frame_write_max_stream_data(leat_writer *w, uint64_t stream_id, uint64_t max);
bool leat_frame_write_max_streams(leat_writer *w, bool bidi, uint64_t max);
bool leat_frame_write_data_blocked(leat_writer *w, uint64_t limit);
bool leat_frame_write_stream_data_blocked(leat_writer *w, uint64_t stream_id, uint64_t limit);
bool leat_frame_write_streams_blocked(leat_writer *w, bool bidi, uint64_t limit);
bool leat_frame_write_new_connection_id(leat_writer *w, const leat_frame_new_connection_id *frame);
bool leat_frame_write_retire_connection_id(leat_writer *w, uint64_t sequence);
bool leat_frame_write_path_challenge(leat_writer *w, const uint8_t data[LEAT_PATH_DATA]);
bool leat_frame_write_path_response(leat_writer *w, const uint8_t data[LEAT_PATH_DATA]);
/* The reason is cut to what fits, between characters of UTF-8. */
bool leat_frame_write_connection_close(leat_writer *w, const leat_frame_connection_close *frame);
bool leat_frame_write_handshake_done(leat_writer *w);
bool leat_frame_write_immediate_ack(leat_writer *w);
bool leat_frame_write_ack_frequency(leat_writer *w, const leat_frame_ack_frequency *frame);

/* ---- sizes ---- */

static inline size_t leat_frame_size_reset_stream(uint64_t stream_id, uint64_t error,
                                                  uint64_t final_size)
{
    return 1 + leat_varint_len(stream_id) + leat_varint_len(error) + leat_varint_len(final_size);
}

static inline size_t leat_frame_size_reset_stream_at(const leat_frame_reset_stream_at *frame)
{
    return leat_frame_size_reset_stream(frame->stream_id, frame->error, frame->final_size) +
           leat_varint_len(frame->reliable_size);
}

static inline size_t leat_frame_size_stop_sending(uint64_t stream_id, uint64_t error)
{
    return 1 + leat_varint_len(stream_id) + leat_varint_len(error);
}

static inline size_t leat_frame_size_new_token(size_t token_len)
{
    return 1 + leat_varint_len(token_len) + token_len;
}

/* MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID: one number each. */
static inline size_t leat_frame_size_one(uint64_t value)
{
    return 1 + leat_varint_len(value);
}

/* MAX_STREAM_DATA, STREAM_DATA_BLOCKED. */
static inline size_t leat_frame_size_two(uint64_t stream_id, uint64_t value)
{
    return 1 + leat_varint_len(stream_id) + leat_varint_len(value);
}

static inline size_t leat_frame_size_new_connection_id(const leat_frame_new_connection_id *frame)
{
    return 1 + leat_varint_len(frame->sequence) + leat_varint_len(frame->retire_prior_to) + 1 +
           frame->cid.len + LEAT_STATELESS_RESET_TOKEN;
}

static inline size_t leat_frame_size_ack_frequency(const leat_frame_ack_frequency *frame)
{
    return leat_varint_len(LEAT_FRAME_CODE_ACK_FREQUENCY) + leat_varint_len(frame->sequence) +
           leat_varint_len(frame->threshold) + leat_varint_len(frame->max_delay) +
           leat_varint_len(frame->reorder);
}

/* PATH_CHALLENGE, PATH_RESPONSE. */
#define LEAT_FRAME_SIZE_PATH_DATA (1 + LEAT_PATH_DATA)

#endif
