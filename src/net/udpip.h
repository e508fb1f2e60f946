/* net/udpip.h: UDP datagrams in IPv4 and IPv6 packets, built and read in user space.
 *
 * For the in-memory link with real headers and for captures. Building writes the headers straight
 * before a payload that is already in place; reading leaves the payload where it is. Both compute
 * the checksums (RFC 791, RFC 768, RFC 8200 s8.1; the Internet checksum is RFC 1071).
 *
 *     | IPv4 header, 20 bytes | UDP header, 8 | payload |        LEAT_IP4_UDP_HEADERS = 28
 *     | IPv6 header, 40 bytes | UDP header, 8 | payload |        LEAT_IP6_UDP_HEADERS = 48
 *
 * What is built: no IP options and no extension headers, "don't fragment", identification 0
 * (RFC 6864 s4.1), hop limit 64, traffic class zero but for ECN. What is read: that, and IPv4
 * options, which are skipped. Fragments and IPv6 extension headers are LEAT_ERR_UNSUPPORTED.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_NET_UDPIP_H
#define LEAT_NET_UDPIP_H

#include <leat/quic.h>

enum {
    LEAT_IP4_UDP_HEADERS = 28,
    LEAT_IP6_UDP_HEADERS = 48,
    LEAT_UDPIP_HEADERS_MAX = LEAT_IP6_UDP_HEADERS,
    LEAT_IP4_UDP_PAYLOAD_MAX = 65535 - LEAT_IP4_UDP_HEADERS,
    LEAT_IP6_UDP_PAYLOAD_MAX = 65535 - 8,
};

/* Between whom, and how. */
typedef struct leat_udpip {
    leat_addr src;
    leat_addr dst; /* of src's family */
    uint8_t ecn;   /* enum leat_ecn */
} leat_udpip;

/* Bytes of headers for this address family: 28 or 48. */
static inline size_t leat_udpip_headers(uint8_t family)
{
    return family == 4 ? LEAT_IP4_UDP_HEADERS : LEAT_IP6_UDP_HEADERS;
}

/* Writes the headers of the datagram whose len bytes of payload begin at `payload` into the
 * leat_udpip_headers() bytes right before it. LEAT_ERR_INVALID: families differ or are none, or len
 * does not fit the length fields; nothing is written then. */
leat_err leat_udpip_build(const leat_udpip *how, uint8_t *payload, size_t len);

/* Reads a packet of len bytes. *payload lies in the packet; bytes behind the IP packet's own
 * length (padding of a link layer) are left out.
 *   LEAT_ERR_TRUNCATED    the packet ends before a header or before the lengths it declares
 *   LEAT_ERR_MALFORMED    version, a length or a checksum is wrong. A UDP checksum of zero means
 *                         "none" over IPv4 and is an error over IPv6
 *   LEAT_ERR_UNSUPPORTED  not UDP, a fragment, or extension headers */
leat_err leat_udpip_parse(const uint8_t *packet, size_t len, leat_udpip *how, leat_span *payload);

/* The Internet checksum's sum over n bytes, added to `sum`; bytes of several calls count as joined
 * when all but the last n are even. */
uint64_t leat_checksum_add(uint64_t sum, const uint8_t *data, size_t n);

/* Folds a sum and complements it: the checksum in host order. 0 over data that holds its own right
 * checksum. */
uint16_t leat_checksum_end(uint64_t sum);

#endif
