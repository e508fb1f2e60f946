/* wire/tparams_decode.c: transport parameters, read and checked.
 *
 * One pass: each id is looked up in a table made from the two lists of tparams.h, which says what
 * to do with its value. Numbers are handled by their row (where the member is, its bounds); each of
 * the others has a few lines of its own. `present` collects what was seen, so that a second one is
 * found with one test. Unknown ids are remembered, the first LEAT_TPARAMS_UNKNOWN_MAX of them, for
 * the same purpose.
 *
 * Every refusal is TRANSPORT_PARAMETER_ERROR (RFC 9000 §7.4); what differs is the text.
 */
#include "wire/tparams.h"

typedef struct number_row {
    uint64_t least;
    uint64_t span;   /* from least to most */
    const char *why; /* refused when out of bounds */
} number_row;

#define NUMBER_ROW(name, id, def, least, most, why) {(least), (most) - (least), (why)},

static const number_row number_rows[LEAT_TPARAM_NUMBERS] = {LEAT_TPARAM_NUMBER_LIST(NUMBER_ROW)};

/* Index of a parameter by an id of one byte, from the end of the list: 0 is an unknown one, so that
 * ids without an entry are. Ids that are longer are compared one by one. */
#define SHORT_IDS       64
#define FROM_END(index) (LEAT_TPARAM_KINDS - (index))
#define SHORT_ENTRY(name, id, ...)                                                                 \
    [(id) < SHORT_IDS ? (id) : SHORT_IDS + LEAT_TP_INDEX_##name] = FROM_END(LEAT_TP_INDEX_##name),

static const uint8_t index_of_short_id[SHORT_IDS + LEAT_TPARAM_KINDS] = {
    LEAT_TPARAM_NUMBER_LIST(SHORT_ENTRY) LEAT_TPARAM_OTHER_LIST(SHORT_ENTRY)};

#define LONG_CASE(name, number, ...)                                                               \
    if ((number) >= SHORT_IDS && id == (number)) {                                                 \
        return LEAT_TP_INDEX_##name;                                                               \
    }

/* LEAT_TPARAM_KINDS when unknown. */
static inline unsigned index_of(uint64_t id)
{
    if (LEAT_LIKELY(id < SHORT_IDS)) {
        return FROM_END(index_of_short_id[id]);
    }
    LEAT_TPARAM_NUMBER_LIST(LONG_CASE)
    LEAT_TPARAM_OTHER_LIST(LONG_CASE)
    return LEAT_TPARAM_KINDS;
}

#define SERVER_ONLY(name, id, server_only) ((server_only) ? LEAT_TP_##name : 0) |

static const uint32_t server_only = LEAT_TPARAM_OTHER_LIST(SERVER_ONLY) 0;

/* *out is zero: it has its default. */
static const char *decode_cid(leat_span value, leat_cid *out)
{
    if (value.len > LEAT_CID_MAX) {
        return "connection ID above 20 bytes";
    }
    out->len = (uint8_t)value.len;
    leat_cid_copy(out->data, value.data, value.len);
    return NULL;
}

static const char *decode_preferred_address(leat_span value, leat_preferred_address *out)
{
    leat_cursor c;
    uint8_t cid_len;

    leat_cursor_init(&c, value.data, value.len);
    leat_cursor_copy(&c, out->ipv4, sizeof out->ipv4);
    out->ipv4_port = leat_cursor_u16(&c);
    leat_cursor_copy(&c, out->ipv6, sizeof out->ipv6);
    out->ipv6_port = leat_cursor_u16(&c);
    cid_len = leat_cursor_u8(&c);
    if (!leat_cursor_ok(&c)) {
        return "preferred_address cut short";
    }
    if (cid_len < 1 || cid_len > LEAT_CID_MAX) { /* §18.2 */
        return "preferred_address with a connection ID of an impossible length";
    }
    out->cid = (leat_cid){.len = cid_len};
    leat_cursor_copy(&c, out->cid.data, cid_len);
    leat_cursor_copy(&c, out->reset_token, sizeof out->reset_token);
    if (!leat_cursor_ok(&c) || leat_cursor_left(&c) > 0) {
        return "preferred_address of a wrong length";
    }
    return NULL;
}

/* RFC 9368 §3 and §4. */
static const char *decode_version_information(leat_span value, bool from_server,
                                              leat_version_information *out)
{
    bool lists_chosen = false;

    if (value.len < 4 || value.len % 4 != 0) {
        return "version_information of a wrong length";
    }
    out->chosen = leat_load_u32(value.data);
    out->available = (leat_span){value.data + 4, value.len - 4};
    if (out->chosen == 0) {
        return "version 0 in version_information";
    }
    for (size_t i = 0; i < out->available.len; i += 4) {
        uint32_t version = leat_load_u32(out->available.data + i);

        if (version == 0) {
            return "version 0 in version_information";
        }
        lists_chosen |= version == out->chosen;
    }
    return from_server || lists_chosen ? NULL : "chosen version not among the available ones";
}

static const char *decode_min_ack_delay(leat_span value, uint64_t *out)
{
    const uint8_t *end;

    if (value.len == 0 || value.len != leat_varint_len_of(*value.data)) {
        return "number in a parameter is not one varint";
    }
    *out = leat_varint_get(value.data, &end);
    return NULL;
}

static const char *decode_other(unsigned index, leat_span value, bool from_server,
                                leat_tparams *out)
{
    switch (index) {
    case LEAT_TP_INDEX_original_dcid:
        return decode_cid(value, &out->original_dcid);
    case LEAT_TP_INDEX_initial_scid:
        return decode_cid(value, &out->initial_scid);
    case LEAT_TP_INDEX_retry_scid:
        return decode_cid(value, &out->retry_scid);
    case LEAT_TP_INDEX_stateless_reset_token:
        if (value.len != LEAT_STATELESS_RESET_TOKEN) {
            return "stateless_reset_token not of 16 bytes";
        }
        memcpy(out->stateless_reset_token, value.data, LEAT_STATELESS_RESET_TOKEN);
        return NULL;
    case LEAT_TP_INDEX_preferred_address:
        return decode_preferred_address(value, &out->preferred_address);
    case LEAT_TP_INDEX_version_information:
        return decode_version_information(value, from_server, &out->version_information);
    case LEAT_TP_INDEX_min_ack_delay:
        return decode_min_ack_delay(value, &out->min_ack_delay);
    default: /* disable_active_migration, reset_stream_at, grease_quic_bit */
        return value.len == 0 ? NULL : "flag parameter with content";
    }
}

typedef struct unknown_ids {
    uint64_t ids[LEAT_TPARAMS_UNKNOWN_MAX];
    size_t count;
} unknown_ids;

/* False when it is known to have come before. */
static bool note_unknown(unknown_ids *seen, uint64_t id)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->ids[i] == id) {
            return false;
        }
    }
    if (seen->count < LEAT_TPARAMS_UNKNOWN_MAX) {
        seen->ids[seen->count++] = id;
    }
    return true;
}

static const char *decode_number(unsigned index, leat_span value, leat_tparams *out)
{
    const number_row *row = &number_rows[index];
    const uint8_t *end;
    uint64_t v;

    if (value.len == 0 || value.len != leat_varint_len_of(*value.data)) {
        return "number in a parameter is not one varint";
    }
    v = leat_varint_get(value.data, &end);
    out->numbers[index] = v;
    return v - row->least <= row->span ? NULL : row->why;
}

/* The usual parameter, a number whose id and length take one byte each and that is followed by
 * enough bytes to be read as eight, without a branch on its length. False and nothing taken when it
 * is anything else, or wrong in any way: the general way then sees to it. */
static inline bool take_usual_number(leat_cursor *c, uint32_t *present, leat_tparams *out)
{
    const uint8_t *p = c->at;
    const number_row *row;
    unsigned index;
    unsigned len;
    uint64_t word;
    uint64_t v;

    if (leat_cursor_left(c) < 2 + 8 || p[0] >= SHORT_IDS) {
        return false;
    }
    index = FROM_END(index_of_short_id[p[0]]);
    if (index >= LEAT_TPARAM_NUMBERS || *present >> index & 1) {
        return false;
    }
    len = p[1];
    word = leat_load_u64(p + 2);
    row = &number_rows[index];
    v = (word & LEAT_VARINT_MAX) >> ((64 - 8 * len) & 63);
    if (len != 1u << (word >> 62) || v - row->least > row->span) {
        return false;
    }
    out->numbers[index] = v;
    *present |= UINT32_C(1) << index;
    c->at = p + 2 + len;
    return true;
}

/* Takes the next parameter off the cursor, which fails when it is cut short. */
static inline leat_span take(leat_cursor *c, uint64_t *id)
{
    const uint8_t *p = c->at;

    if (LEAT_LIKELY(leat_cursor_left(c) >= 2 && (p[0] | p[1]) < 64)) { /* a byte each */
        *id = p[0];
        c->at += 2;
        return (leat_span){leat_cursor_bytes(c, p[1]), p[1]};
    }
    *id = leat_cursor_varint(c);
    return leat_cursor_varint_span(c);
}

static const char *decode_all(leat_span data, bool from_server, leat_tparams *out)
{
    unknown_ids unknown;
    uint32_t present = 0;
    leat_cursor c;

    unknown.count = 0;
    leat_cursor_init(&c, data.data, data.len);
    while (leat_cursor_left(&c) > 0) {
        uint64_t id;
        leat_span value;
        unsigned index;
        const char *why;

        if (LEAT_LIKELY(take_usual_number(&c, &present, out))) {
            continue;
        }
        value = take(&c, &id);
        index = index_of(id);
        if (!leat_cursor_ok(&c)) {
            why = "parameters cut short";
        } else if (index == LEAT_TPARAM_KINDS) {
            why = note_unknown(&unknown, id) ? NULL : "unknown parameter given twice";
        } else if (present >> index & 1) {
            why = "parameter given twice";
        } else if (!from_server && server_only >> index & 1) {
            why = "parameter that only a server may send";
        } else {
            present |= UINT32_C(1) << index;
            why = index < LEAT_TPARAM_NUMBERS ? decode_number(index, value, out)
                                              : decode_other(index, value, from_server, out);
        }
        if (why) {
            return why;
        }
    }
    out->present = present;
    /* min_ack_delay is in microseconds, max_ack_delay in milliseconds. */
    if (leat_tparams_has(out, LEAT_TP_min_ack_delay) &&
        out->min_ack_delay > out->max_ack_delay * 1000) {
        return "min_ack_delay above max_ack_delay";
    }
    /* A server that uses an empty connection ID has no address to move to (§18.2). */
    if (leat_tparams_has(out, LEAT_TP_preferred_address) &&
        leat_tparams_has(out, LEAT_TP_initial_scid) && out->initial_scid.len == 0) {
        return "preferred_address from a server without connection IDs";
    }
    if (leat_tparams_has(out, LEAT_TP_preferred_address) &&
        leat_tparams_has(out, LEAT_TP_initial_scid) &&
        leat_cid_equal(&out->preferred_address.cid, &out->initial_scid)) {
        return "preferred_address with the connection ID of the handshake";
    }
    return NULL;
}

uint64_t leat_tparams_decode(leat_span data, bool from_server, leat_tparams *out, const char **why)
{
    leat_tparams_init(out);
    *why = decode_all(data, from_server, out);
    return *why ? LEAT_TE_TRANSPORT_PARAMETER_ERROR : LEAT_TE_NO_ERROR;
}
