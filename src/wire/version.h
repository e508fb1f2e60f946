/* wire/version.h: the versions of QUIC that leat reads and writes, and how each of them numbers its
 * long packet types.
 *
 * A packet type is named by leat_packet_type everywhere; the two bits on the wire differ by version
 * (RFC 9000 table 5, RFC 9369 §3.2), and only this file knows them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_VERSION_H
#define LEAT_WIRE_VERSION_H

#include <leat/base.h>

#define LEAT_VERSION_NEGOTIATION UINT32_C(0) /* marks a Version Negotiation packet */
#define LEAT_VERSION_1           UINT32_C(0x00000001)
#define LEAT_VERSION_2           UINT32_C(0x6b3343cf)

/* The first four number the bits of the frame table's "packets" column too: see wire/frames.h. */
typedef enum leat_packet_type {
    LEAT_PACKET_INITIAL,
    LEAT_PACKET_ZERO_RTT,
    LEAT_PACKET_HANDSHAKE,
    LEAT_PACKET_ONE_RTT, /* short header */
    LEAT_PACKET_RETRY,
    LEAT_PACKET_VERSION_NEGOTIATION,
    LEAT_PACKET_UNKNOWN_VERSION, /* long header of a version that leat does not read */
} leat_packet_type;

/* "Initial", "0-RTT", "Handshake", "1-RTT", "Retry", "Version Negotiation", "unknown version". */
const char *leat_packet_type_name(leat_packet_type type);

/* Whether leat can read and write long headers of this version. What an endpoint is willing to
 * speak is a setting of its own, and never more than this. */
static inline bool leat_version_known(uint32_t version)
{
    return version == LEAT_VERSION_1 || version == LEAT_VERSION_2;
}

/* 0x?a?a?a?a: reserved to exercise version negotiation, never to be spoken (RFC 9000 §15). */
static inline bool leat_version_reserved(uint32_t version)
{
    return (version & UINT32_C(0x0f0f0f0f)) == UINT32_C(0x0a0a0a0a);
}

/* A reserved version made from random bits of the caller's. */
static inline uint32_t leat_version_grease(uint32_t random)
{
    return (random & UINT32_C(0xf0f0f0f0)) | UINT32_C(0x0a0a0a0a);
}

/* Version 2 turns the four types by one: its Retry is 0, its Initial 1, and so on. */
static inline uint8_t leat_version_type_bits(uint32_t version, leat_packet_type type)
{
    uint8_t bits = type == LEAT_PACKET_RETRY ? 3 : (uint8_t)type;

    return version == LEAT_VERSION_2 ? (bits + 1) & 3 : bits;
}

/* The inverse, for a version that leat_version_known(). */
static inline leat_packet_type leat_version_packet_type(uint32_t version, uint8_t bits)
{
    uint8_t v1 = version == LEAT_VERSION_2 ? (bits + 3) & 3 : bits & 3;

    return v1 == 3 ? LEAT_PACKET_RETRY : (leat_packet_type)v1;
}

#endif
