/* wire/tparams.h: transport parameters (RFC 9000 §18; RFC 9221, RFC 9287, RFC 9368).
 *
 * Start from leat_tparams_init(), which fills in the values that absence means. Numbers are as on
 * the wire (milliseconds where the RFC says so). What is not a number has a bit in `present`.
 *
 * Encoding goes in one pass into the caller's buffer and leaves out what has its default value.
 * Decoding does every check of §7.4 and §18 that needs no connection; leat_tparams_check_cids()
 * does those of §7.3. Neither allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_TPARAMS_H
#define LEAT_WIRE_TPARAMS_H

#include <leat/transport_error.h>

#include "base/cursor.h"
#include "wire/cid.h"
#include "wire/varint.h"

/* The parameters that are a number: X(MEMBER, id, default, least, most, "why it was refused"). */
/* clang-format off */
#define LEAT_TPARAM_NUMBER_LIST(X)                                                                 \
    X(max_idle_timeout, 0x01, 0, 0, LEAT_VARINT_MAX, "")                                           \
    X(max_udp_payload_size, 0x03, 65527, 1200, LEAT_VARINT_MAX,                                    \
      "max_udp_payload_size below 1200")                                                           \
    X(initial_max_data, 0x04, 0, 0, LEAT_VARINT_MAX, "")                                           \
    X(initial_max_stream_data_bidi_local, 0x05, 0, 0, LEAT_VARINT_MAX, "")                         \
    X(initial_max_stream_data_bidi_remote, 0x06, 0, 0, LEAT_VARINT_MAX, "")                        \
    X(initial_max_stream_data_uni, 0x07, 0, 0, LEAT_VARINT_MAX, "")                                \
    X(initial_max_streams_bidi, 0x08, 0, 0, UINT64_C(1) << 60,                                     \
      "initial_max_streams_bidi above 2^60")                                                       \
    X(initial_max_streams_uni, 0x09, 0, 0, UINT64_C(1) << 60,                                      \
      "initial_max_streams_uni above 2^60")                                                        \
    X(ack_delay_exponent, 0x0a, 3, 0, 20, "ack_delay_exponent above 20")                           \
    X(max_ack_delay, 0x0b, 25, 0, 16383, "max_ack_delay of 2^14 or more")                          \
    X(active_connection_id_limit, 0x0e, 2, 2, LEAT_VARINT_MAX,                                     \
      "active_connection_id_limit below 2")                                                        \
    X(max_datagram_frame_size, 0x20, 0, 0, LEAT_VARINT_MAX, "")

/* The others: X(NAME, id, only a server may send it). Bit LEAT_TP_NAME of `present` says that it is
 * there; the three flags have no other content. */
#define LEAT_TPARAM_OTHER_LIST(X)                                                                  \
    X(original_dcid, 0x00, true)                                                                   \
    X(stateless_reset_token, 0x02, true)                                                           \
    X(disable_active_migration, 0x0c, false)                                                       \
    X(preferred_address, 0x0d, true)                                                               \
    X(initial_scid, 0x0f, false)                                                                   \
    X(retry_scid, 0x10, true)                                                                      \
    X(version_information, 0x11, false)                                                            \
    X(reset_stream_at, 0x1d, false)                                                                \
    X(grease_quic_bit, 0x2ab2, false)                                                              \
    X(min_ack_delay, 0xff04de1b, false)
/* clang-format on */

#define LEAT_TPARAM_ID(name, id, ...) LEAT_TP_ID_##name = (id),
enum leat_tparam_id {
    LEAT_TPARAM_NUMBER_LIST(LEAT_TPARAM_ID) LEAT_TPARAM_OTHER_LIST(LEAT_TPARAM_ID)
};
#undef LEAT_TPARAM_ID

#define LEAT_TPARAM_INDEX(name, ...) LEAT_TP_INDEX_##name,
enum leat_tparam_index {
    LEAT_TPARAM_NUMBER_LIST(LEAT_TPARAM_INDEX) LEAT_TPARAM_OTHER_LIST(LEAT_TPARAM_INDEX)
        LEAT_TPARAM_KINDS,
    LEAT_TPARAM_NUMBERS = LEAT_TP_INDEX_original_dcid /* those come first */
};
#undef LEAT_TPARAM_INDEX

/* LEAT_TP_original_dcid and so on: bits of `present`. Decoding sets the bits of numbers too. */
#define LEAT_TPARAM_BIT(name, ...) LEAT_TP_##name = 1 << LEAT_TP_INDEX_##name,
enum leat_tparam_bit {
    LEAT_TPARAM_NUMBER_LIST(LEAT_TPARAM_BIT) LEAT_TPARAM_OTHER_LIST(LEAT_TPARAM_BIT)
};
#undef LEAT_TPARAM_BIT

/* §18.2: a family that is not offered is all zero, address and port. */
typedef struct leat_preferred_address {
    uint8_t ipv4[4];
    uint16_t ipv4_port; /* host order */
    uint8_t ipv6[16];
    uint16_t ipv6_port;
    leat_cid cid; /* not empty */
    uint8_t reset_token[LEAT_STATELESS_RESET_TOKEN];
} leat_preferred_address;

/* RFC 9368 §3. available is 4 bytes a version in network order. */
typedef struct leat_version_information {
    uint32_t chosen;
    leat_span available;
} leat_version_information;

#define LEAT_TPARAM_MEMBER(name, ...) uint64_t name;
typedef struct leat_tparams {
    uint32_t present; /* LEAT_TP_… */
    union {
        struct {
            LEAT_TPARAM_NUMBER_LIST(LEAT_TPARAM_MEMBER)
        };
        uint64_t numbers[LEAT_TPARAM_NUMBERS]; /* the same by index */
    };
    leat_cid original_dcid;
    leat_cid initial_scid;
    leat_cid retry_scid;
    uint8_t stateless_reset_token[LEAT_STATELESS_RESET_TOKEN];
    leat_preferred_address preferred_address;
    uint64_t min_ack_delay; /* microseconds (draft-ietf-quic-ack-frequency, conn/ackfreq.h) */
    leat_version_information version_information; /* decoded: points into the input */
    /* Encoding only: a reserved parameter (id 31 * N + 27, §18.1) to send, when the id is not 0. */
    uint64_t grease_id;
    leat_span grease;
} leat_tparams;
#undef LEAT_TPARAM_MEMBER

/* Available versions, and bytes of grease, that may be encoded. (As many as come are decoded.) */
#define LEAT_TPARAMS_VERSIONS_MAX 16
#define LEAT_TPARAMS_GREASE_MAX   64

/* Room in which every set can be encoded, and fastest. The longest takes 423 bytes. */
#define LEAT_TPARAMS_MAX          464

void leat_tparams_init(leat_tparams *params);

static inline bool leat_tparams_has(const leat_tparams *params, uint32_t bit)
{
    return (params->present & bit) != 0;
}

/* Writes the set; true, or false and nothing written when it does not fit (LEAT_TPARAMS_MAX always
 * does). A server's own parameters are written when present is set: a client sets none of them. */
bool leat_tparams_encode(const leat_tparams *params, leat_writer *w);

/* The bytes that leat_tparams_encode() will write. */
size_t leat_tparams_size(const leat_tparams *params);

/* Reads what the peer sent (from_server: the peer is a server). LEAT_TE_NO_ERROR and *out complete,
 * absent ones at their defaults; or LEAT_TE_TRANSPORT_PARAMETER_ERROR, and *why (static) says what
 * was wrong. Unknown parameters are ignored; the first LEAT_TPARAMS_UNKNOWN_MAX of them are checked
 * for being given twice, which bounds the work. out->version_information points into data. */
#define LEAT_TPARAMS_UNKNOWN_MAX 16
uint64_t leat_tparams_decode(leat_span data, bool from_server, leat_tparams *out, const char **why);

/* The authentication of connection IDs (§7.3): the peer's parameters must name the IDs that were
 * seen on its packets. peer_scid: source ID of the peer's first Initial. The others are for a set
 * that came from a server: original_dcid, the destination ID of this client's first Initial;
 * retry_scid, the source ID of the Retry, or NULL when there was none. Errors as
 * leat_tparams_decode(). */
uint64_t leat_tparams_check_cids(const leat_tparams *params, bool from_server,
                                 const leat_cid *peer_scid, const leat_cid *original_dcid,
                                 const leat_cid *retry_scid, const char **why);

#endif
