/* leat/rtcp.h: RTCP packets, read and written in place (RFC 3550 §6, RFC 4585, RFC 5104, RFC 5506).
 *
 * A datagram carries one or more RTCP packets: leat_rtcp_next() walks them, each
 * leat_rtcp_…_parse() reads one kind. Transport-wide feedback is read by leat/twcc.h, RFC 8888's by
 * leat/ccfb.h. Nothing copies or allocates: what is read points into the caller's bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RTCP_H
#define LEAT_RTCP_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

/* X(name, number, text) */
#define LEAT_RTCP_TYPE_LIST(X)                                                                     \
    X(SR, 200, "sender report")                                                                    \
    X(RR, 201, "receiver report")                                                                  \
    X(SDES, 202, "source description")                                                             \
    X(BYE, 203, "goodbye")                                                                         \
    X(APP, 204, "application-defined")                                                             \
    X(RTPFB, 205, "transport feedback")                                                            \
    X(PSFB, 206, "payload feedback")                                                               \
    X(XR, 207, "extended report")

#define LEAT_RTCP_TYPE_ENUM(name, number, text) LEAT_RTCP_##name = (number),
enum leat_rtcp_type { LEAT_RTCP_TYPE_LIST(LEAT_RTCP_TYPE_ENUM) };
#undef LEAT_RTCP_TYPE_ENUM

/* Formats of RTPFB and PSFB: X(name, type, number, text) */
#define LEAT_RTCP_FMT_LIST(X)                                                                      \
    X(NACK, RTPFB, 1, "generic NACK")                                                              \
    X(CCFB, RTPFB, 11, "congestion control feedback")                                              \
    X(TWCC, RTPFB, 15, "transport-wide feedback")                                                  \
    X(PLI, PSFB, 1, "picture loss indication")                                                     \
    X(FIR, PSFB, 4, "full intra request")

#define LEAT_RTCP_FMT_ENUM(name, type, number, text) LEAT_RTCP_FMT_##name = (number),
enum leat_rtcp_fmt { LEAT_RTCP_FMT_LIST(LEAT_RTCP_FMT_ENUM) };
#undef LEAT_RTCP_FMT_ENUM

/* "sender report", "generic NACK"; "unknown" for what no list has. fmt counts for RTPFB and PSFB
 * alone. Static string. */
LEAT_API const char *leat_rtcp_type_text(uint8_t type, uint8_t fmt);

/* ---- the packets of a datagram ----------------------------------------------------------------
 */

typedef struct leat_rtcp_packet {
    uint8_t type;
    uint8_t count;   /* report blocks, chunks or sources; the format of RTPFB and PSFB */
    uint8_t padding; /* bytes, with the count byte; 0: none */
    leat_span whole; /* header and padding too */
    leat_span body;  /* what is between the first four bytes and the padding */
} leat_rtcp_packet;

typedef struct leat_rtcp_iter {
    leat_span all;
    size_t offset; /* of the next packet; after an error, of the one that is bad */
    leat_err err;  /* why leat_rtcp_next() returned false: LEAT_OK at the end */
} leat_rtcp_iter;

LEAT_API void leat_rtcp_begin(leat_rtcp_iter *iter, leat_span data);

/* The next packet. False at the end, or with iter->err LEAT_ERR_TRUNCATED (the rest is shorter than
 * it says) or LEAT_ERR_MALFORMED (not version 2, or impossible padding). */
LEAT_API bool leat_rtcp_next(leat_rtcp_iter *iter, leat_rtcp_packet *out);

/* Checks a datagram as a whole: every packet's length, padding in the last alone and, unless
 * `reduced_size` (RFC 5506), that the first is an SR or RR (RFC 3550 §6.1). LEAT_ERR_TRUNCATED,
 * LEAT_ERR_MALFORMED. */
LEAT_API leat_err leat_rtcp_check(leat_span data, bool reduced_size);

/* ---- reading one packet: LEAT_ERR_INVALID when it is of another kind, LEAT_ERR_TRUNCATED -------
 */

/* A report block (RFC 3550 §6.4.1). */
typedef struct leat_rtcp_report {
    uint32_t ssrc;          /* of the source it is about */
    uint8_t fraction_lost;  /* of 256 */
    int32_t lost;           /* in all; 24 bits on the wire, so writing clamps it */
    uint32_t highest_seq;   /* with the count of cycles in the upper 16 bits */
    uint32_t jitter;        /* in units of the timestamp */
    uint32_t last_sr;       /* the middle of the NTP time of the last SR; 0: none */
    uint32_t delay_last_sr; /* since then, in 1/65536 s */
} leat_rtcp_report;

typedef struct leat_rtcp_sender_info {
    uint32_t ssrc; /* of the sender */
    uint64_t ntp;  /* 32.32 seconds since 1900; 0: the sender has no clock */
    uint32_t timestamp;
    uint32_t packets;
    uint32_t octets;
} leat_rtcp_sender_info;

LEAT_API leat_err leat_rtcp_sr_parse(const leat_rtcp_packet *packet, leat_rtcp_sender_info *out);
/* An RR: the SSRC of who reports. */
LEAT_API leat_err leat_rtcp_rr_parse(const leat_rtcp_packet *packet, uint32_t *ssrc);
/* The i-th report block of an SR or RR; LEAT_ERR_NOT_FOUND beyond packet->count. */
LEAT_API leat_err leat_rtcp_report_get(const leat_rtcp_packet *packet, unsigned i,
                                       leat_rtcp_report *out);

/* Types of SDES items: X(name, number) */
#define LEAT_RTCP_SDES_LIST(X)                                                                     \
    X(CNAME, 1)                                                                                    \
    X(NAME, 2)                                                                                     \
    X(EMAIL, 3)                                                                                    \
    X(PHONE, 4)                                                                                    \
    X(LOC, 5)                                                                                      \
    X(TOOL, 6)                                                                                     \
    X(NOTE, 7)                                                                                     \
    X(PRIV, 8)

#define LEAT_RTCP_SDES_ENUM(name, number) LEAT_RTCP_SDES_##name = (number),
enum leat_rtcp_sdes_type { LEAT_RTCP_SDES_LIST(LEAT_RTCP_SDES_ENUM) };
#undef LEAT_RTCP_SDES_ENUM

typedef struct leat_rtcp_sdes_item {
    uint32_t ssrc; /* whom it describes */
    uint8_t type;
    leat_span text; /* UTF-8 by the RFC; nobody has checked */
} leat_rtcp_sdes_item;

typedef struct leat_rtcp_sdes_iter {
    const uint8_t *at, *end, *chunk;
    uint32_t ssrc;
    uint8_t chunks_left;
    bool in_chunk;
    leat_err err; /* LEAT_OK at the end */
} leat_rtcp_sdes_iter;

LEAT_API void leat_rtcp_sdes_begin(leat_rtcp_sdes_iter *iter, const leat_rtcp_packet *packet);
/* The next item of all chunks; a chunk without items gives none. False at the end or on an error.
 */
LEAT_API bool leat_rtcp_sdes_next(leat_rtcp_sdes_iter *iter, leat_rtcp_sdes_item *out);

/* BYE: the i-th source that leaves (LEAT_ERR_NOT_FOUND beyond packet->count), and the reason, empty
 * when none is given. */
LEAT_API leat_err leat_rtcp_bye_source(const leat_rtcp_packet *packet, unsigned i, uint32_t *ssrc);
LEAT_API leat_err leat_rtcp_bye_reason(const leat_rtcp_packet *packet, leat_span *reason);

/* The head of RTPFB and PSFB (RFC 4585 §6.1) and what follows it. */
typedef struct leat_rtcp_fb {
    uint32_t sender_ssrc;
    uint32_t media_ssrc;
    leat_span fci;
} leat_rtcp_fb;

LEAT_API leat_err leat_rtcp_fb_parse(const leat_rtcp_packet *packet, leat_rtcp_fb *out);

/* The sequence numbers that a generic NACK asks for, in its order (RFC 4585 §6.2.1). */
typedef struct leat_rtcp_nack_iter {
    const uint8_t *at, *end;
    uint32_t mask; /* of the present pair: bit i stands for pid + i */
    uint16_t pid;
} leat_rtcp_nack_iter;

/* LEAT_ERR_INVALID, LEAT_ERR_TRUNCATED, LEAT_ERR_MALFORMED (an FCI of a length that no NACK has);
 * then the iterator is at its end. */
LEAT_API leat_err leat_rtcp_nack_begin(leat_rtcp_nack_iter *iter, const leat_rtcp_packet *packet);
LEAT_API bool leat_rtcp_nack_next(leat_rtcp_nack_iter *iter, uint16_t *seq);

/* The entries of a full intra request (RFC 5104 §4.3.1): LEAT_ERR_NOT_FOUND beyond the last. */
typedef struct leat_rtcp_fir {
    uint32_t ssrc; /* of the source that shall send a full picture */
    uint8_t command;
} leat_rtcp_fir;
LEAT_API leat_err leat_rtcp_fir_get(const leat_rtcp_packet *packet, unsigned i, leat_rtcp_fir *out);

/* ---- writing ----------------------------------------------------------------------------------
 */

/* A datagram in the making. Each write appends one packet whole, or fails with LEAT_ERR_TRUNCATED
 * (no room) or LEAT_ERR_INVALID (more than a packet can hold) and leaves what is there as it was.
 */
typedef struct leat_rtcp_writer {
    uint8_t *data;
    size_t cap;
    size_t len;
} leat_rtcp_writer;

static inline void leat_rtcp_writer_init(leat_rtcp_writer *w, uint8_t *data, size_t cap)
{
    w->data = data;
    w->cap = cap;
    w->len = 0;
}

/* At most 31 report blocks. */
LEAT_API leat_err leat_rtcp_write_sr(leat_rtcp_writer *w, const leat_rtcp_sender_info *info,
                                     const leat_rtcp_report *reports, size_t count);
LEAT_API leat_err leat_rtcp_write_rr(leat_rtcp_writer *w, uint32_t ssrc,
                                     const leat_rtcp_report *reports, size_t count);
/* Items of one source stand together and make one chunk; at most 31 chunks. Texts of at most 255
 * bytes. */
LEAT_API leat_err leat_rtcp_write_sdes(leat_rtcp_writer *w, const leat_rtcp_sdes_item *items,
                                       size_t count);
/* At most 31 sources; reason may be empty and has at most 255 bytes. */
LEAT_API leat_err leat_rtcp_write_bye(leat_rtcp_writer *w, const uint32_t *ssrcs, size_t count,
                                      leat_span reason);
/* seqs in rising order (modulo 2^16); numbers that lie close share a pair. count > 0. */
LEAT_API leat_err leat_rtcp_write_nack(leat_rtcp_writer *w, uint32_t sender_ssrc,
                                       uint32_t media_ssrc, const uint16_t *seqs, size_t count);
LEAT_API leat_err leat_rtcp_write_pli(leat_rtcp_writer *w, uint32_t sender_ssrc,
                                      uint32_t media_ssrc);
/* count > 0. */
LEAT_API leat_err leat_rtcp_write_fir(leat_rtcp_writer *w, uint32_t sender_ssrc,
                                      const leat_rtcp_fir *entries, size_t count);

LEAT_END_DECLS

#endif
