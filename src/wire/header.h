/* wire/header.h: packet headers (RFC 8999 §5, RFC 9000 §17), read and written.
 *
 * Reading goes in two steps, because protection hides the packet number and some bits of the first
 * byte:
 *   1. leat_header_parse() takes the packet at the head of (what is left of) a datagram and says
 * what it is, where its packet number starts, and how many bytes of the datagram belong to it. What
 *      follows those bytes is the next packet, coalesced. Every length has been checked against the
 *      datagram; a protected packet is long enough for a header-protection sample.
 *   2. After the crypto layer has computed the mask and XORed it in (leat_header_protected_bits()
 * says which bits of the first byte it covers, leat_header_pn_len() how many bytes of the packet
 *      number), leat_header_pn_read() and leat_pn_decode() give the packet number.
 *      leat_header_reserved_clear() is to be asked only after the packet was authenticated (§17.2).
 *
 * Nothing is copied: spans point into the datagram and live as long as it does.
 *
 * Writing a protected packet:
 *      leat_long_packet p;
 *      leat_header_write_long(w, &p, …);        leaves a 2-byte Length open
 *      … frames into w …                         at least leat_header_min_payload(pn_len) bytes
 *      leat_header_finish_long(&p, payload + LEAT_AEAD_TAG);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_HEADER_H
#define LEAT_WIRE_HEADER_H

#include "base/cursor.h"
#include "wire/cid.h"
#include "wire/version.h"

#define LEAT_AEAD_TAG         16 /* bytes every AEAD of QUIC adds (RFC 9001 §5.3) */
#define LEAT_RETRY_TAG        16 /* bytes of the Retry Integrity Tag (RFC 9001 §5.8) */
#define LEAT_PN_LEN_MAX       4
#define LEAT_HP_SAMPLE        16    /* bytes sampled, from pn_offset + 4 on (RFC 9001 §5.4.2) */
#define LEAT_LONG_LENGTH_MAX  16383 /* what the 2-byte Length that leat writes can say */
#define LEAT_INITIAL_MIN_SIZE 1200  /* bytes of a datagram that carries an Initial (§14.1) */

/* Bits of the first byte (§17.2, §17.3.1). */
#define LEAT_FIRST_LONG       0x80
#define LEAT_FIRST_FIXED      0x40
#define LEAT_FIRST_SPIN       0x20
#define LEAT_FIRST_KEY_PHASE  0x04
#define LEAT_FIRST_PN_LEN     0x03

typedef struct leat_header {
    leat_packet_type type;
    uint8_t first;     /* first byte as received, still protected */
    uint32_t version;  /* 0 for ONE_RTT and VERSION_NEGOTIATION */
    leat_span dcid;    /* at most LEAT_CID_MAX bytes, but for VERSION_NEGOTIATION */
    leat_span scid;    /* and UNKNOWN_VERSION, which may carry 255; empty for ONE_RTT */
    leat_span token;   /* INITIAL (may be empty) and RETRY (never empty) */
    leat_span rest;    /* RETRY: the integrity tag; VERSION_NEGOTIATION: the versions */
    size_t pn_offset;  /* from the packet's first byte; protected packets only */
    size_t packet_len; /* bytes of the datagram that this packet takes */
} leat_header;

/* Reads the header of the packet at data. short_dcid_len is the length of the connection IDs that
 * this endpoint issues, since a short header does not tell. The fixed bit is not looked at: whether
 * it may be clear depends on the connection (RFC 9287); see leat_header_fixed_bit().
 *
 * LEAT_OK
 *      *out is complete. UNKNOWN_VERSION has only what RFC 8999 promises: first, version, dcid,
 * scid, enough to answer with Version Negotiation; it takes the whole datagram. LEAT_ERR_TRUNCATED
 *      A protected packet too short to hold a sample: drop it. *out is complete, so that the bytes
 *      after it can still be read, and so that a short one can be tried as a stateless reset
 * (§10.3). LEAT_ERR_MALFORMED Not a packet; packet_len is len (there is no telling where the next
 * begins). Drop the rest of the datagram. Other fields are not to be used. */
leat_err leat_header_parse(const uint8_t *data, size_t len, size_t short_dcid_len,
                           leat_header *out);

static inline bool leat_header_is_protected(const leat_header *h)
{
    return h->type <= LEAT_PACKET_ONE_RTT;
}

static inline bool leat_header_fixed_bit(const leat_header *h)
{
    return (h->first & LEAT_FIRST_FIXED) != 0;
}

/* The number of versions in a Version Negotiation packet, and the i-th of them. */
static inline size_t leat_header_version_count(const leat_header *h)
{
    return h->rest.len / 4;
}

uint32_t leat_header_version_at(const leat_header *h, size_t i);

/* Whether a Version Negotiation packet lists a version. A client ignores one that lists the version
 * it used (RFC 9000 §6.2). */
bool leat_header_lists_version(const leat_header *h, uint32_t version);

/* ---- the first byte, protection removed ---- */

/* The bits of the first byte that header protection covers (RFC 9001 §5.4.1). */
static inline uint8_t leat_header_protected_bits(uint8_t first)
{
    return first & LEAT_FIRST_LONG ? 0x0f : 0x1f;
}

static inline size_t leat_header_pn_len(uint8_t first)
{
    return (size_t)(first & LEAT_FIRST_PN_LEN) + 1;
}

/* False: close with PROTOCOL_VIOLATION, once the packet is authenticated (§17.2, §17.3.1). */
static inline bool leat_header_reserved_clear(uint8_t first)
{
    return (first & (first & LEAT_FIRST_LONG ? 0x0c : 0x18)) == 0;
}

static inline bool leat_header_key_phase(uint8_t first)
{
    return (first & LEAT_FIRST_KEY_PHASE) != 0;
}

static inline bool leat_header_spin(uint8_t first)
{
    return (first & LEAT_FIRST_SPIN) != 0;
}

/* ---- packet numbers (§17.1, appendix A.2 and A.3) ---- */

/* Both sides work with the number after the largest one known, 0 when there is none, which needs no
 * special case: acked_end is largest_acked + 1 in the space, expected is the largest number
 * authenticated there + 1. */

/* The fewest bytes, 1 to 4, in which the peer can tell pn. pn >= acked_end. */
static inline size_t leat_pn_len(uint64_t pn, uint64_t acked_end)
{
    uint64_t span = (pn - acked_end + 1) * 2; /* twice the numbers in flight, pn among them */

    return span <= 0x100 ? 1 : span <= 0x10000 ? 2 : span <= 0x1000000 ? 3 : 4;
}

/* The packet number nearest to expected whose last pn_len bytes are truncated. */
static inline uint64_t leat_pn_decode(uint64_t expected, uint64_t truncated, size_t pn_len)
{
    uint64_t window = UINT64_C(1) << (8 * pn_len);
    uint64_t half = window / 2;
    uint64_t pn = (expected & ~(window - 1)) | truncated;

    if (pn + half <= expected && pn < (UINT64_C(1) << 62) - window) {
        return pn + window;
    }
    if (pn > expected + half && pn >= window) {
        return pn - window;
    }
    return pn;
}

/* The pn_len bytes at p as a number. */
static inline uint64_t leat_header_pn_read(const uint8_t *p, size_t pn_len)
{
    uint64_t pn = 0;

    for (size_t i = 0; i < pn_len; i++) {
        pn = pn << 8 | p[i];
    }
    return pn;
}

/* ---- writing ---- */

/* The fewest plaintext bytes that a packet needs, so that the sample of its header protection lies
 * within it: pn and payload together are 4 bytes at least. */
static inline size_t leat_header_min_payload(size_t pn_len)
{
    return LEAT_PN_LEN_MAX - pn_len;
}

/* Bytes of a long header up to the end of the connection IDs (RFC 8999 §5.1). */
static inline size_t leat_header_invariant_size(size_t dcid_len, size_t scid_len)
{
    return 1 + 4 + 1 + dcid_len + 1 + scid_len;
}

/* Bytes of a whole Retry, integrity tag and all. */
static inline size_t leat_header_retry_size(size_t dcid_len, size_t scid_len, size_t token_len)
{
    return leat_header_invariant_size(dcid_len, scid_len) + token_len + LEAT_RETRY_TAG;
}

/* Bytes of a Version Negotiation packet that lists so many versions, a greased one among them. */
static inline size_t leat_header_version_negotiation_size(size_t dcid_len, size_t scid_len,
                                                          size_t versions)
{
    return leat_header_invariant_size(dcid_len, scid_len) + 4 * versions;
}

/* Bytes of a long header with the 2-byte Length and the packet number; token_len counts for INITIAL
 * alone. */
size_t leat_header_long_size(leat_packet_type type, size_t dcid_len, size_t scid_len,
                             size_t token_len, size_t pn_len);

static inline size_t leat_header_short_size(size_t dcid_len, size_t pn_len)
{
    return 1 + dcid_len + pn_len;
}

/* A long header whose Length is still open. Points into the writer's buffer. */
typedef struct leat_long_packet {
    uint8_t *start;  /* the first byte */
    uint8_t *length; /* the 2-byte Length */
    uint8_t *pn;
    size_t pn_len;
} leat_long_packet;

/* Writes an INITIAL, ZERO_RTT or HANDSHAKE header, unprotected, up to and including the packet
 * number in pn_len bytes, and notes in *out where things are. token is for INITIAL alone. False,
 * and nothing written, when the writer has not enough room. */
bool leat_header_write_long(leat_writer *w, leat_long_packet *out, leat_packet_type type,
                            uint32_t version, const leat_cid *dcid, const leat_cid *scid,
                            leat_span token, uint64_t pn, size_t pn_len);

/* Closes the Length: sealed_len is the bytes that follow the packet number, AEAD tag among them.
 * pn_len + sealed_len is at most LEAT_LONG_LENGTH_MAX. */
void leat_header_finish_long(const leat_long_packet *packet, size_t sealed_len);

/* Writes a short header, unprotected; the packet number follows the dcid. False, and nothing
 * written, when the writer has not enough room. */
bool leat_header_write_short(leat_writer *w, const leat_cid *dcid, bool spin, bool key_phase,
                             uint64_t pn, size_t pn_len);

/* Writes a Retry without its integrity tag, which the crypto layer computes over these bytes and
 * appends (LEAT_RETRY_TAG bytes). The low four bits of unused go into the first byte, where they
 * are arbitrary (§17.2.5). token is not empty. False, and nothing written, when there is no room.
 */
bool leat_header_write_retry(leat_writer *w, uint32_t version, const leat_cid *dcid,
                             const leat_cid *scid, leat_span token, uint8_t unused);

/* Writes a Version Negotiation packet (§17.2.1) in answer to a packet: dcid is that packet's scid
 * and the other way round, up to 255 bytes each. Lists the versions given and then grease, unless
 * that is 0 (make it with leat_version_grease()). The low seven bits of unused go into the first
 * byte, with the fixed bit set as RFC 9000 recommends. False, and nothing written, when there is no
 * room. */
bool leat_header_write_version_negotiation(leat_writer *w, leat_span dcid, leat_span scid,
                                           const uint32_t *versions, size_t count, uint32_t grease,
                                           uint8_t unused);

#endif
