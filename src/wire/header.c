/* wire/header.c: packet headers, read and written.
 *
 * The long header, whose first part is the same in every version (RFC 8999 §5.1):
 *
 *      1 byte    form, fixed bit, type, and four bits that the type gives a meaning
 *      4         version
 *      1 + n     destination connection ID
 *      1 + n     source connection ID
 *
 * and what follows it in versions 1 and 2 (RFC 9000 §17.2):
 *
 *      Initial               token (varint length), Length (varint), packet number, payload
 *      0-RTT, Handshake                             Length (varint), packet number, payload
 *      Retry                 token up to the 16-byte integrity tag at the datagram's end
 *      Version Negotiation   (version 0) 4-byte versions to the datagram's end
 *
 * The short header is the first byte, the destination connection ID in a length that only its
 * issuer knows, and the packet number.
 *
 * Retry and Version Negotiation have no Length: they take the rest of the datagram, as does a
 * packet of an unknown version and every short one.
 */
#include "wire/header.h"

#include "wire/varint.h"

const char *leat_packet_type_name(leat_packet_type type)
{
    switch (type) {
    case LEAT_PACKET_INITIAL:
        return "Initial";
    case LEAT_PACKET_ZERO_RTT:
        return "0-RTT";
    case LEAT_PACKET_HANDSHAKE:
        return "Handshake";
    case LEAT_PACKET_ONE_RTT:
        return "1-RTT";
    case LEAT_PACKET_RETRY:
        return "Retry";
    case LEAT_PACKET_VERSION_NEGOTIATION:
        return "Version Negotiation";
    case LEAT_PACKET_UNKNOWN_VERSION:
        break;
    }
    return "unknown version";
}

/* ---- reading ---- */

/* A protected packet of whatever form: is there a sample? (RFC 9001 §5.4.2) */
static leat_err check_sample(const leat_header *h)
{
    return h->packet_len - h->pn_offset < LEAT_PN_LEN_MAX + LEAT_HP_SAMPLE ? LEAT_ERR_TRUNCATED
                                                                           : LEAT_OK;
}

static leat_err parse_short(const uint8_t *data, size_t len, size_t dcid_len, leat_header *out)
{
    if (len < 1 + dcid_len) {
        return LEAT_ERR_MALFORMED;
    }
    out->type = LEAT_PACKET_ONE_RTT;
    out->dcid = (leat_span){data + 1, dcid_len};
    out->pn_offset = 1 + dcid_len;
    return check_sample(out);
}

/* A list that is empty or ends within a version makes the packet one to ignore (RFC 8999 §6). */
static leat_err parse_version_negotiation(leat_cursor *c, leat_header *out)
{
    size_t left = leat_cursor_left(c);

    if (left == 0 || left % 4 != 0) {
        return LEAT_ERR_MALFORMED;
    }
    out->type = LEAT_PACKET_VERSION_NEGOTIATION;
    out->rest = (leat_span){leat_cursor_bytes(c, left), left};
    return LEAT_OK;
}

/* A Retry without a token is one to discard (§17.2.5.2). */
static leat_err parse_retry(leat_cursor *c, leat_header *out)
{
    size_t left = leat_cursor_left(c);

    if (left <= LEAT_RETRY_TAG) {
        return LEAT_ERR_MALFORMED;
    }
    out->token = (leat_span){leat_cursor_bytes(c, left - LEAT_RETRY_TAG), left - LEAT_RETRY_TAG};
    out->rest = (leat_span){leat_cursor_bytes(c, LEAT_RETRY_TAG), LEAT_RETRY_TAG};
    return LEAT_OK;
}

static leat_err parse_long(const uint8_t *data, size_t len, leat_header *out)
{
    leat_cursor c;
    leat_span protected_part;

    leat_cursor_init(&c, data, len);
    leat_cursor_skip(&c, 1);
    out->version = leat_cursor_u32(&c);
    out->dcid.len = leat_cursor_u8(&c);
    out->dcid.data = leat_cursor_bytes(&c, out->dcid.len);
    out->scid.len = leat_cursor_u8(&c);
    out->scid.data = leat_cursor_bytes(&c, out->scid.len);
    if (!leat_cursor_ok(&c)) {
        return LEAT_ERR_MALFORMED;
    }
    if (out->version == LEAT_VERSION_NEGOTIATION) {
        return parse_version_negotiation(&c, out);
    }
    if (!leat_version_known(out->version)) {
        out->type = LEAT_PACKET_UNKNOWN_VERSION;
        return LEAT_OK;
    }
    if (out->dcid.len > LEAT_CID_MAX || out->scid.len > LEAT_CID_MAX) {
        return LEAT_ERR_MALFORMED;
    }
    out->type = leat_version_packet_type(out->version, data[0] >> 4 & 3);
    if (out->type == LEAT_PACKET_RETRY) {
        return parse_retry(&c, out);
    }
    if (out->type == LEAT_PACKET_INITIAL) {
        out->token = leat_cursor_varint_span(&c);
    }
    protected_part = leat_cursor_varint_span(&c);
    if (!leat_cursor_ok(&c)) {
        return LEAT_ERR_MALFORMED;
    }
    out->pn_offset = (size_t)(protected_part.data - data);
    out->packet_len = out->pn_offset + protected_part.len;
    return check_sample(out);
}

leat_err leat_header_parse(const uint8_t *data, size_t len, size_t short_dcid_len, leat_header *out)
{
    LEAT_ASSERT(short_dcid_len <= LEAT_CID_MAX);
    *out = (leat_header){.packet_len = len};
    if (len == 0) {
        return LEAT_ERR_MALFORMED;
    }
    out->first = data[0];
    return data[0] & LEAT_FIRST_LONG ? parse_long(data, len, out)
                                     : parse_short(data, len, short_dcid_len, out);
}

uint32_t leat_header_version_at(const leat_header *h, size_t i)
{
    LEAT_ASSERT(i < leat_header_version_count(h));
    return leat_load_u32(h->rest.data + 4 * i);
}

bool leat_header_lists_version(const leat_header *h, uint32_t version)
{
    for (size_t i = 0; i < leat_header_version_count(h); i++) {
        if (leat_header_version_at(h, i) == version) {
            return true;
        }
    }
    return false;
}

/* ---- writing ---- */

/* Each of these takes the place to write at, where there is room, and returns the byte after. */

static uint8_t *put_bytes(uint8_t *p, const uint8_t *data, size_t len)
{
    if (len > 0) {
        memcpy(p, data, len);
    }
    return p + len;
}

static uint8_t *put_invariant(uint8_t *p, uint8_t first, uint32_t version, leat_span dcid,
                              leat_span scid)
{
    *p++ = first;
    leat_store_u32(p, version);
    p += 4;
    *p++ = (uint8_t)dcid.len;
    p = put_bytes(p, dcid.data, dcid.len);
    *p++ = (uint8_t)scid.len;
    return put_bytes(p, scid.data, scid.len);
}

static uint8_t *put_pn(uint8_t *p, uint64_t pn, size_t pn_len)
{
    for (size_t i = pn_len; i > 0; i--) {
        *p++ = (uint8_t)(pn >> (8 * (i - 1)));
    }
    return p;
}

/* Room for n bytes, or NULL with the writer as it was. */
static uint8_t *try_room(leat_writer *w, size_t n)
{
    return n <= leat_writer_left(w) ? leat_writer_room(w, n) : NULL;
}

size_t leat_header_long_size(leat_packet_type type, size_t dcid_len, size_t scid_len,
                             size_t token_len, size_t pn_len)
{
    size_t token = type == LEAT_PACKET_INITIAL ? leat_varint_len(token_len) + token_len : 0;

    return leat_header_invariant_size(dcid_len, scid_len) + token + 2 + pn_len;
}

bool leat_header_write_long(leat_writer *w, leat_long_packet *out, leat_packet_type type,
                            uint32_t version, const leat_cid *dcid, const leat_cid *scid,
                            leat_span token, uint64_t pn, size_t pn_len)
{
    size_t size = leat_header_long_size(type, dcid->len, scid->len, token.len, pn_len);
    uint8_t *p = try_room(w, size);
    uint8_t first = (uint8_t)(LEAT_FIRST_LONG | LEAT_FIRST_FIXED |
                              leat_version_type_bits(version, type) << 4 | (pn_len - 1));

    LEAT_ASSERT(type <= LEAT_PACKET_HANDSHAKE);
    LEAT_ASSERT(pn_len >= 1);
    LEAT_ASSERT(pn_len <= LEAT_PN_LEN_MAX);
    if (!p) {
        return false;
    }
    out->start = p;
    p = put_invariant(p, first, version, leat_cid_span(dcid), leat_cid_span(scid));
    if (type == LEAT_PACKET_INITIAL) {
        p = leat_varint_put(p, token.len);
        p = put_bytes(p, token.data, token.len);
    }
    out->length = p;
    leat_varint_put2(p, 0);
    out->pn = p + 2;
    out->pn_len = pn_len;
    p = put_pn(out->pn, pn, pn_len);
    LEAT_DCHECK(p == w->at);
    return true;
}

void leat_header_finish_long(const leat_long_packet *packet, size_t sealed_len)
{
    LEAT_ASSERT(packet->pn_len + sealed_len <= LEAT_LONG_LENGTH_MAX);
    leat_varint_put2(packet->length, packet->pn_len + sealed_len);
}

bool leat_header_write_short(leat_writer *w, const leat_cid *dcid, bool spin, bool key_phase,
                             uint64_t pn, size_t pn_len)
{
    bool roomy = leat_writer_left(w) >= 1 + LEAT_CID_MAX + LEAT_PN_LEN_MAX;
    uint8_t *p = try_room(w, leat_header_short_size(dcid->len, pn_len));

    LEAT_ASSERT(pn_len >= 1);
    LEAT_ASSERT(pn_len <= LEAT_PN_LEN_MAX);
    if (!p) {
        return false;
    }
    *p++ = (uint8_t)(LEAT_FIRST_FIXED | (spin ? LEAT_FIRST_SPIN : 0) |
                     (key_phase ? LEAT_FIRST_KEY_PHASE : 0) | (pn_len - 1));
    if (LEAT_LIKELY(roomy)) { /* whole words; what is too much, the payload overwrites */
        memcpy(p, dcid->data, LEAT_CID_MAX);
        leat_store_u32(p + dcid->len, (uint32_t)pn << (32 - 8 * pn_len));
        return true;
    }
    p = put_bytes(p, dcid->data, dcid->len);
    p = put_pn(p, pn, pn_len);
    LEAT_DCHECK(p == w->at);
    return true;
}

bool leat_header_write_retry(leat_writer *w, uint32_t version, const leat_cid *dcid,
                             const leat_cid *scid, leat_span token, uint8_t unused)
{
    size_t size = leat_header_retry_size(dcid->len, scid->len, token.len) - LEAT_RETRY_TAG;
    uint8_t *p = try_room(w, size);
    uint8_t first =
        (uint8_t)(LEAT_FIRST_LONG | LEAT_FIRST_FIXED |
                  leat_version_type_bits(version, LEAT_PACKET_RETRY) << 4 | (unused & 0x0f));

    LEAT_ASSERT(token.len > 0);
    if (!p) {
        return false;
    }
    p = put_invariant(p, first, version, leat_cid_span(dcid), leat_cid_span(scid));
    p = put_bytes(p, token.data, token.len);
    LEAT_DCHECK(p == w->at);
    return true;
}

bool leat_header_write_version_negotiation(leat_writer *w, leat_span dcid, leat_span scid,
                                           const uint32_t *versions, size_t count, uint32_t grease,
                                           uint8_t unused)
{
    size_t listed = count + (grease != 0);
    uint8_t *p = try_room(w, leat_header_version_negotiation_size(dcid.len, scid.len, listed));

    LEAT_ASSERT(dcid.len <= LEAT_CID_INVARIANT_MAX);
    LEAT_ASSERT(scid.len <= LEAT_CID_INVARIANT_MAX);
    LEAT_ASSERT(listed > 0);
    if (!p) {
        return false;
    }
    p = put_invariant(p, LEAT_FIRST_LONG | LEAT_FIRST_FIXED | (unused & 0x7f),
                      LEAT_VERSION_NEGOTIATION, dcid, scid);
    for (size_t i = 0; i < listed; i++) {
        leat_store_u32(p, i < count ? versions[i] : grease);
        p += 4;
    }
    LEAT_DCHECK(p == w->at);
    return true;
}
