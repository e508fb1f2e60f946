/* leat/rtp.h: RTP packets, read and written in place (RFC 3550 §5, RFC 8285).
 *
 * Nothing here copies or allocates: a parsed packet points into the caller's bytes and is good as
 * long as they are. Everything that a length field says is checked before it is used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RTP_H
#define LEAT_RTP_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

enum {
    LEAT_RTP_HEADER = 12,           /* bytes without CSRCs and extension */
    LEAT_RTP_CSRCS_MAX = 15,        /* the field has four bits */
    LEAT_RTP_EXT_ONE_BYTE = 0xBEDE, /* RFC 8285 §4.2 */
    LEAT_RTP_EXT_TWO_BYTE = 0x1000, /* RFC 8285 §4.3, appbits 0; the low four bits may vary */
};

/* ---- sequence numbers -------------------------------------------------------------------------
 */

/* The 64-bit number whose low 16 bits are seq and which is nearest to `near`. Start with `near` at
 * 65536 or more and a stream may begin with packets out of order without going below zero. */
static inline uint64_t leat_seq_unwrap(uint64_t near, uint16_t seq)
{
    return near + (uint64_t)(int64_t)(int16_t)(uint16_t)(seq - (uint16_t)near);
}

/* Numbers far from where a stream is, in a row: what begins it anew. The library's. */
typedef struct leat_seq_restart {
    uint16_t next;  /* what would follow the last of them */
    uint16_t count; /* how many followed each other */
} leat_seq_restart;

/* ---- reading ----------------------------------------------------------------------------------
 */

typedef struct leat_rtp_packet {
    uint32_t ssrc;
    uint32_t timestamp;
    uint16_t seq;
    uint8_t payload_type; /* 7 bits */
    bool marker;
    bool has_ext;
    uint8_t csrc_count;
    uint8_t padding;      /* bytes of padding at the end, its count byte too; 0: none */
    uint16_t ext_profile; /* "defined by profile": LEAT_RTP_EXT_ONE_BYTE and so on */
    const uint8_t *csrcs; /* csrc_count words, big-endian: leat_rtp_csrc() reads them */
    leat_span ext;        /* the extension's words, without its own header of four bytes */
    leat_span payload;    /* may be empty: a header alone is a packet */
    size_t header_len;    /* all bytes before the payload */
} leat_rtp_packet;

/* Reads a packet. LEAT_ERR_TRUNCATED: the bytes end before what they announce. LEAT_ERR_MALFORMED:
 * not version 2, or padding that is none or more than the payload. On an error *out is all zero. */
LEAT_API leat_err leat_rtp_parse(leat_span data, leat_rtp_packet *out);
/* The same of an SRTP packet, whose padding count is encrypted (RFC 3711 s3.1): only the header is
 * read, all behind it is `payload`, and `padding` is 0. */
LEAT_API leat_err leat_rtp_parse_header(leat_span data, leat_rtp_packet *out);

/* The i-th contributing source; 0 beyond csrc_count. */
LEAT_API uint32_t leat_rtp_csrc(const leat_rtp_packet *packet, unsigned i);

/* Whether bytes that came to a port for both are RTCP (RFC 5761 §4: packet types 192 to 223). Looks
 * at the first two bytes; false for fewer. */
static inline bool leat_rtp_is_rtcp(leat_span data)
{
    return data.len >= 2 && data.data[0] >> 6 == 2 && data.data[1] >= 192 && data.data[1] <= 223;
}

/* One element of a header extension. Its bytes lie in the packet. */
typedef struct leat_rtp_ext {
    uint8_t id; /* 1 to 14, or to 255 in the two-byte form */
    leat_span data;
} leat_rtp_ext;

typedef struct leat_rtp_ext_iter {
    const uint8_t *at;
    const uint8_t *end;
    bool two_byte;
    bool bad;
} leat_rtp_ext_iter;

/* Begins at the first element. A packet without an extension, or with one in neither form of RFC
 * 8285, has none. */
LEAT_API void leat_rtp_ext_begin(leat_rtp_ext_iter *iter, const leat_rtp_packet *packet);

/* The next element; false at the end. Padding is skipped; the reserved ID 15 of the one-byte form
 * ends the list (RFC 8285 §4.2). So does ID 0 with a length, and an element that reaches past the
 * extension; these set iter->bad. The elements before it stand. */
LEAT_API bool leat_rtp_ext_next(leat_rtp_ext_iter *iter, leat_rtp_ext *out);

/* The first element with this ID; false, and an empty *out, when there is none. */
LEAT_API bool leat_rtp_ext_find(const leat_rtp_packet *packet, uint8_t id, leat_span *out);

/* ---- writing ----------------------------------------------------------------------------------
 */

typedef struct leat_rtp_header {
    uint32_t ssrc;
    uint32_t timestamp;
    uint16_t seq;
    uint8_t payload_type; /* 0 to 127 */
    bool marker;
    bool padding;          /* the packet will end in padding: leat_rtp_write_padding() */
    uint8_t csrc_count;    /* 0 to 15 */
    const uint32_t *csrcs; /* csrc_count of them */
    uint8_t ext_count;     /* elements in exts; 0: no extension */
    const leat_rtp_ext
        *exts; /* elements of 1 to 16 bytes with IDs 1 to 14 make the one-byte form, */
               /* otherwise all are written in the two-byte form */
} leat_rtp_header;

/* How many bytes leat_rtp_write() will write. 0: the header cannot be written. */
LEAT_API size_t leat_rtp_header_len(const leat_rtp_header *header);

/* Writes a header with its CSRCs and extension; the payload goes right behind, at out + *len.
 * LEAT_ERR_TRUNCATED: it needs more than cap bytes. LEAT_ERR_INVALID: a field or an extension's ID
 * or length is out of range. On an error nothing is written and *len is 0. */
LEAT_API leat_err leat_rtp_write(const leat_rtp_header *header, uint8_t *out, size_t cap,
                                 size_t *len);

/* Fills n bytes (1 to 255) of padding at out: zeros, and the count in the last (RFC 3550 §5.1). The
 * header must have been written with `padding`. */
LEAT_API void leat_rtp_write_padding(uint8_t *out, uint8_t n);

LEAT_END_DECLS

#endif
