/* net/udpip.c: IP and UDP headers.
 *
 * IPv4 (RFC 791):                                 IPv6 (RFC 8200):
 *    0  version 4, header length in words            0  version 6, traffic class, flow label
 *    1  traffic class (DSCP, ECN)                    4  payload length
 *    2  total length                                 6  next header: 17
 *    4  identification                               7  hop limit
 *    6  flags (DF, MF), fragment offset              8  source
 *    8  time to live                                24  destination
 *    9  protocol: 17                             UDP (RFC 768):
 *   10  header checksum                              0  source port     2  destination port
 *   12  source     16  destination                   4  length          6  checksum
 *
 * The UDP checksum covers a pseudo-header of the addresses, the protocol and the UDP length.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/udpip.h"

#include <string.h>

enum {
    PROTOCOL_UDP = 17,
    HOP_LIMIT = 64,
    IP4_HEADER = 20,
    IP6_HEADER = 40,
    UDP_HEADER = 8,
    IP4_DONT_FRAGMENT = 0x4000,
    IP4_FRAGMENT_MASK = 0x3fff, /* MF and the offset */
};

static inline void put16(uint8_t *out, size_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

static inline uint16_t get16(const uint8_t *in)
{
    return (uint16_t)(in[0] << 8 | in[1]);
}

/* The sum of the pseudo-header: addrs are source and destination, one behind the other, as they lie
 * in either IP header. */
static uint64_t pseudo_sum(const uint8_t *addrs, size_t addrs_len, size_t udp_len)
{
    uint8_t rest[4] = {0, PROTOCOL_UDP};
    put16(rest + 2, udp_len);
    return leat_checksum_add(leat_checksum_add(0, addrs, addrs_len), rest, sizeof(rest));
}

static void build_ip4(const leat_udpip *how, uint8_t *ip, size_t udp_len)
{
    ip[0] = 4 << 4 | IP4_HEADER / 4;
    ip[1] = how->ecn & 3;
    put16(ip + 2, IP4_HEADER + udp_len);
    put16(ip + 4, 0);
    put16(ip + 6, IP4_DONT_FRAGMENT);
    ip[8] = HOP_LIMIT;
    ip[9] = PROTOCOL_UDP;
    put16(ip + 10, 0);
    memcpy(ip + 12, how->src.ip, 4);
    memcpy(ip + 16, how->dst.ip, 4);
    put16(ip + 10, leat_checksum_end(leat_checksum_add(0, ip, IP4_HEADER)));
}

static void build_ip6(const leat_udpip *how, uint8_t *ip, size_t udp_len)
{
    ip[0] = 6 << 4;
    ip[1] = (uint8_t)((how->ecn & 3) << 4); /* the traffic class straddles bytes 0 and 1 */
    put16(ip + 2, 0);
    put16(ip + 4, udp_len);
    ip[6] = PROTOCOL_UDP;
    ip[7] = HOP_LIMIT;
    memcpy(ip + 8, how->src.ip, 16);
    memcpy(ip + 24, how->dst.ip, 16);
}

static void build_udp(const leat_udpip *how, uint8_t *udp, size_t udp_len, uint64_t pseudo)
{
    put16(udp, how->src.port);
    put16(udp + 2, how->dst.port);
    put16(udp + 4, udp_len);
    put16(udp + 6, 0);
    uint16_t sum = leat_checksum_end(leat_checksum_add(pseudo, udp, udp_len));
    put16(udp + 6, sum != 0 ? sum : 0xffff); /* zero would say "none" */
}

leat_err leat_udpip_build(const leat_udpip *how, uint8_t *payload, size_t len)
{
    if (how->src.family != how->dst.family) {
        return LEAT_ERR_INVALID;
    }
    uint8_t *udp = payload - UDP_HEADER;
    size_t udp_len = UDP_HEADER + len;
    if (how->src.family == 4 && len <= LEAT_IP4_UDP_PAYLOAD_MAX) {
        uint8_t *ip = udp - IP4_HEADER;
        build_ip4(how, ip, udp_len);
        build_udp(how, udp, udp_len, pseudo_sum(ip + 12, 8, udp_len));
        return LEAT_OK;
    }
    if (how->src.family == 6 && len <= LEAT_IP6_UDP_PAYLOAD_MAX) {
        uint8_t *ip = udp - IP6_HEADER;
        build_ip6(how, ip, udp_len);
        build_udp(how, udp, udp_len, pseudo_sum(ip + 8, 32, udp_len));
        return LEAT_OK;
    }
    return LEAT_ERR_INVALID;
}

/* What the IP header says of the UDP datagram behind it. */
typedef struct ip_content {
    const uint8_t *addrs;
    size_t addrs_len;
    const uint8_t *udp;
    size_t udp_room; /* bytes that the IP packet has left for it */
} ip_content;

static void set_addr(leat_addr *addr, uint8_t family, const uint8_t *ip)
{
    memset(addr, 0, sizeof(*addr));
    addr->family = family;
    memcpy(addr->ip, ip, family == 4 ? 4 : 16);
}

static leat_err parse_ip4(const uint8_t *ip, size_t len, leat_udpip *how, ip_content *content)
{
    if (len < IP4_HEADER) {
        return LEAT_ERR_TRUNCATED;
    }
    size_t header = (size_t)(ip[0] & 0x0f) * 4;
    size_t total = get16(ip + 2);
    if (header < IP4_HEADER || total < header) {
        return LEAT_ERR_MALFORMED;
    }
    if (len < total) {
        return LEAT_ERR_TRUNCATED;
    }
    if (leat_checksum_end(leat_checksum_add(0, ip, header)) != 0) {
        return LEAT_ERR_MALFORMED;
    }
    if (ip[9] != PROTOCOL_UDP || (get16(ip + 6) & IP4_FRAGMENT_MASK) != 0) {
        return LEAT_ERR_UNSUPPORTED;
    }
    how->ecn = ip[1] & 3;
    set_addr(&how->src, 4, ip + 12);
    set_addr(&how->dst, 4, ip + 16);
    *content = (ip_content){ip + 12, 8, ip + header, total - header};
    return LEAT_OK;
}

static leat_err parse_ip6(const uint8_t *ip, size_t len, leat_udpip *how, ip_content *content)
{
    if (len < IP6_HEADER) {
        return LEAT_ERR_TRUNCATED;
    }
    size_t room = get16(ip + 4);
    if (len - IP6_HEADER < room) {
        return LEAT_ERR_TRUNCATED;
    }
    if (ip[6] != PROTOCOL_UDP) {
        return LEAT_ERR_UNSUPPORTED;
    }
    how->ecn = ip[1] >> 4 & 3;
    set_addr(&how->src, 6, ip + 8);
    set_addr(&how->dst, 6, ip + 24);
    *content = (ip_content){ip + 8, 32, ip + IP6_HEADER, room};
    return LEAT_OK;
}

static leat_err parse_udp(const ip_content *content, leat_udpip *how, leat_span *payload)
{
    const uint8_t *udp = content->udp;
    if (content->udp_room < UDP_HEADER) {
        return LEAT_ERR_TRUNCATED;
    }
    size_t udp_len = get16(udp + 4);
    if (udp_len < UDP_HEADER) {
        return LEAT_ERR_MALFORMED;
    }
    if (udp_len > content->udp_room) {
        return LEAT_ERR_TRUNCATED;
    }
    bool unsummed = get16(udp + 6) == 0;
    if (unsummed && how->src.family == 6) {
        return LEAT_ERR_MALFORMED;
    }
    uint64_t pseudo = pseudo_sum(content->addrs, content->addrs_len, udp_len);
    if (!unsummed && leat_checksum_end(leat_checksum_add(pseudo, udp, udp_len)) != 0) {
        return LEAT_ERR_MALFORMED;
    }
    how->src.port = get16(udp);
    how->dst.port = get16(udp + 2);
    *payload = (leat_span){udp + UDP_HEADER, udp_len - UDP_HEADER};
    return LEAT_OK;
}

leat_err leat_udpip_parse(const uint8_t *packet, size_t len, leat_udpip *how, leat_span *payload)
{
    if (len == 0) {
        return LEAT_ERR_TRUNCATED;
    }
    ip_content content;
    leat_err err = LEAT_ERR_MALFORMED;
    if (packet[0] >> 4 == 4) {
        err = parse_ip4(packet, len, how, &content);
    } else if (packet[0] >> 4 == 6) {
        err = parse_ip6(packet, len, how, &content);
    }
    return err == LEAT_OK ? parse_udp(&content, how, payload) : err;
}
