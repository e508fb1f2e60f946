/* wire/tparams.c: transport parameters: defaults, encoding, and the check of connection IDs.
 *
 * A parameter is its id, the length of its value, and the value; ids and lengths are varints. A set
 * is parameters one after the other, in any order.
 *
 * Encoding writes straight on, without asking for room: where the caller left less than
 * LEAT_TPARAMS_MAX it goes through a buffer on the stack. That lets small things be written as
 * fixed wide stores, the bytes too many being overwritten by the next parameter; SCRIBBLE is how
 * far the last one's may reach past the end.
 */
#include "wire/tparams.h"

#define SCRIBBLE    LEAT_CID_MAX

/* The longest that each part can be. */
#define NUMBERS_MAX (LEAT_TPARAM_NUMBERS * (1 + 1 + LEAT_VARINT_MAX_LEN))
#define CIDS_MAX    (3 * (1 + 1 + LEAT_CID_MAX))
#define TOKEN_MAX   (1 + 1 + LEAT_STATELESS_RESET_TOKEN)
#define ADDRESS_MAX (1 + 1 + 4 + 2 + 16 + 2 + 1 + LEAT_CID_MAX + LEAT_STATELESS_RESET_TOKEN)
#define FLAGS_MAX   (2 * (1 + 1) + (2 + 1))
#define VERSION_MAX (1 + 2 + 4 * (1 + LEAT_TPARAMS_VERSIONS_MAX))
#define DELAY_MAX   (8 + 1 + LEAT_VARINT_MAX_LEN)
#define GREASE_MAX  (LEAT_VARINT_MAX_LEN + 2 + LEAT_TPARAMS_GREASE_MAX)
#define LONGEST_SET                                                                                \
    (NUMBERS_MAX + CIDS_MAX + TOKEN_MAX + ADDRESS_MAX + FLAGS_MAX + VERSION_MAX + GREASE_MAX +     \
     DELAY_MAX)

_Static_assert(LONGEST_SET + SCRIBBLE <= LEAT_TPARAMS_MAX, "every set fits LEAT_TPARAMS_MAX");

#define SET_DEFAULT(name, id, def, least, most, why) params->name = (def);

/* Member by member: gcc clears a struct of this size as a whole with a string instruction, which
 * takes as long as decoding. */
void leat_tparams_init(leat_tparams *params)
{
    params->present = 0;
    LEAT_TPARAM_NUMBER_LIST(SET_DEFAULT)
    params->original_dcid = (leat_cid){0};
    params->initial_scid = (leat_cid){0};
    params->retry_scid = (leat_cid){0};
    memset(params->stateless_reset_token, 0, sizeof params->stateless_reset_token);
    params->preferred_address = (leat_preferred_address){.ipv4_port = 0};
    params->version_information = (leat_version_information){0};
    params->min_ack_delay = 0;
    params->grease_id = 0;
    params->grease = (leat_span){0};
}

/* ---- encoding ---- */

/* Writes a number parameter, id below 64: the varint as eight bytes of which the first count. */
static inline uint8_t *put_number(uint8_t *p, uint8_t id, uint64_t v)
{
    unsigned form = (v >= 64) + (v >= 16384) + (v >= (UINT64_C(1) << 30));
    unsigned bits = 8u << form;

    LEAT_DCHECK(v <= LEAT_VARINT_MAX);
    p[0] = id;
    p[1] = (uint8_t)(bits / 8);
    leat_store_u64(p + 2, v << (64 - bits) | (uint64_t)form << 62);
    return p + 2 + bits / 8;
}

static inline uint8_t *put_cid(uint8_t *p, uint8_t id, const leat_cid *cid)
{
    p[0] = id;
    p[1] = cid->len;
    memcpy(p + 2, cid->data, LEAT_CID_MAX);
    return p + 2 + cid->len;
}

static uint8_t *put_bytes(uint8_t *p, const uint8_t *data, size_t len)
{
    if (len > 0) {
        memcpy(p, data, len);
    }
    return p + len;
}

static uint8_t *put_preferred_address(uint8_t *p, const leat_preferred_address *a)
{
    p = leat_varint_put(p, LEAT_TP_ID_preferred_address);
    p = leat_varint_put(p, 4 + 2 + 16 + 2 + 1 + a->cid.len + LEAT_STATELESS_RESET_TOKEN);
    p = put_bytes(p, a->ipv4, sizeof a->ipv4);
    leat_store_u16(p, a->ipv4_port);
    p = put_bytes(p + 2, a->ipv6, sizeof a->ipv6);
    leat_store_u16(p, a->ipv6_port);
    p += 2;
    *p++ = a->cid.len;
    p = put_bytes(p, a->cid.data, a->cid.len);
    return put_bytes(p, a->reset_token, sizeof a->reset_token);
}

static uint8_t *put_version_information(uint8_t *p, const leat_version_information *v)
{
    LEAT_ASSERT(v->available.len <= 4 * LEAT_TPARAMS_VERSIONS_MAX);
    p = leat_varint_put(p, LEAT_TP_ID_version_information);
    p = leat_varint_put(p, 4 + v->available.len);
    leat_store_u32(p, v->chosen);
    return put_bytes(p + 4, v->available.data, v->available.len);
}

/* What only some endpoints send. */
static uint8_t *put_rare(uint8_t *p, const leat_tparams *t)
{
    if (leat_tparams_has(t, LEAT_TP_retry_scid)) {
        p = put_cid(p, LEAT_TP_ID_retry_scid, &t->retry_scid);
    }
    if (leat_tparams_has(t, LEAT_TP_preferred_address)) {
        p = put_preferred_address(p, &t->preferred_address);
    }
    if (leat_tparams_has(t, LEAT_TP_version_information)) {
        p = put_version_information(p, &t->version_information);
    }
    if (leat_tparams_has(t, LEAT_TP_min_ack_delay)) {
        p = leat_varint_put(p, LEAT_TP_ID_min_ack_delay);
        p = leat_varint_put(p, leat_varint_len(t->min_ack_delay));
        p = leat_varint_put(p, t->min_ack_delay);
    }
    if (t->grease_id != 0) {
        LEAT_ASSERT(t->grease.len <= LEAT_TPARAMS_GREASE_MAX);
        p = leat_varint_put(p, t->grease_id);
        p = leat_varint_put(p, t->grease.len);
        p = put_bytes(p, t->grease.data, t->grease.len);
    }
    return p;
}

#define RARE                                                                                       \
    (LEAT_TP_retry_scid | LEAT_TP_preferred_address | LEAT_TP_version_information |                \
     LEAT_TP_min_ack_delay)

#define PUT_NUMBER(name, id, def, least, most, why)                                                \
    if (t->name != (def)) {                                                                        \
        p = put_number(p, (id), t->name);                                                          \
    }

static uint8_t *put_all(uint8_t *p, const leat_tparams *t)
{
    LEAT_TPARAM_NUMBER_LIST(PUT_NUMBER)
    if (leat_tparams_has(t, LEAT_TP_original_dcid)) {
        p = put_cid(p, LEAT_TP_ID_original_dcid, &t->original_dcid);
    }
    if (leat_tparams_has(t, LEAT_TP_initial_scid)) {
        p = put_cid(p, LEAT_TP_ID_initial_scid, &t->initial_scid);
    }
    if (leat_tparams_has(t, LEAT_TP_stateless_reset_token)) {
        p[0] = LEAT_TP_ID_stateless_reset_token;
        p[1] = LEAT_STATELESS_RESET_TOKEN;
        memcpy(p + 2, t->stateless_reset_token, LEAT_STATELESS_RESET_TOKEN);
        p += 2 + LEAT_STATELESS_RESET_TOKEN;
    }
    if (leat_tparams_has(t, LEAT_TP_disable_active_migration)) {
        p[0] = LEAT_TP_ID_disable_active_migration;
        p[1] = 0;
        p += 2;
    }
    if (leat_tparams_has(t, LEAT_TP_reset_stream_at)) {
        p[0] = LEAT_TP_ID_reset_stream_at;
        p[1] = 0;
        p += 2;
    }
    if (leat_tparams_has(t, LEAT_TP_grease_quic_bit)) {
        leat_varint_put2(p, LEAT_TP_ID_grease_quic_bit);
        p[2] = 0;
        p += 3;
    }
    if (LEAT_UNLIKELY(leat_tparams_has(t, RARE) || t->grease_id != 0)) {
        p = put_rare(p, t);
    }
    return p;
}

/* The way for little room: encode aside, then copy. */
static bool encode_aside(const leat_tparams *params, leat_writer *w)
{
    uint8_t buf[LEAT_TPARAMS_MAX];
    size_t len = (size_t)(put_all(buf, params) - buf);

    if (len > leat_writer_left(w)) {
        return false;
    }
    leat_writer_bytes(w, buf, len);
    return leat_writer_ok(w);
}

bool leat_tparams_encode(const leat_tparams *params, leat_writer *w)
{
    if (leat_writer_left(w) < LEAT_TPARAMS_MAX) {
        return encode_aside(params, w);
    }
    w->at = put_all(w->at, params);
    return true;
}

size_t leat_tparams_size(const leat_tparams *params)
{
    uint8_t buf[LEAT_TPARAMS_MAX];

    return (size_t)(put_all(buf, params) - buf);
}

/* ---- authentication of connection IDs (§7.3) ---- */

/* Whether the parameter is there and names this ID; with NULL, whether it is absent. */
static bool names(const leat_tparams *params, uint32_t bit, const leat_cid *given,
                  const leat_cid *seen)
{
    if (!seen) {
        return !leat_tparams_has(params, bit);
    }
    return leat_tparams_has(params, bit) && leat_cid_equal(given, seen);
}

uint64_t leat_tparams_check_cids(const leat_tparams *params, bool from_server,
                                 const leat_cid *peer_scid, const leat_cid *original_dcid,
                                 const leat_cid *retry_scid, const char **why)
{
    *why = NULL;
    if (!names(params, LEAT_TP_initial_scid, &params->initial_scid, peer_scid)) {
        *why = "initial_source_connection_id is not the one on the packets";
    } else if (from_server &&
               !names(params, LEAT_TP_original_dcid, &params->original_dcid, original_dcid)) {
        *why = "original_destination_connection_id is not the one sent to";
    } else if (from_server && !names(params, LEAT_TP_retry_scid, &params->retry_scid, retry_scid)) {
        *why = "retry_source_connection_id does not agree with the Retry";
    }
    return *why ? LEAT_TE_TRANSPORT_PARAMETER_ERROR : LEAT_TE_NO_ERROR;
}
