/* io/cmsg.c: ancillary data, written and read.
 *
 * On a socket for both families a datagram for an IPv4 destination is handled by the IPv4 code of
 * the kernel: its traffic class is IP_TOS, although its addresses are written as IPv6 ones.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/cmsg.h"

#include <netinet/udp.h>
#include <string.h>

#include "io/sockaddr.h"

/* Appends one and returns the new length. */
static size_t append(uint8_t *control, size_t len, int level, int type, const void *data, size_t n)
{
    struct cmsghdr header = {.cmsg_len = CMSG_LEN(n), .cmsg_level = level, .cmsg_type = type};
    memset(control + len, 0, CMSG_SPACE(n));
    memcpy(control + len, &header, sizeof(header));
    memcpy(control + len + CMSG_LEN(0), data, n);
    return len + CMSG_SPACE(n);
}

static size_t append_local(uint8_t *control, size_t len, uint8_t socket_family,
                           const leat_addr *local)
{
    if (socket_family == 4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, local->ip, 4);
        return append(control, len, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
    }
    struct in6_pktinfo info = {.ipi6_ifindex = local->scope};
    leat_addr_to_in6(local, &info.ipi6_addr);
    return append(control, len, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
}

size_t leat_cmsg_write(void *control, uint8_t socket_family, uint8_t remote_family,
                       const leat_cmsg_content *content)
{
    size_t len = 0;
    if (content->local.family != 0) {
        len = append_local(control, len, socket_family, &content->local);
    }
    if (content->ecn != 0) {
        int tos = content->ecn;
        len = remote_family == 4
                  ? append(control, len, IPPROTO_IP, IP_TOS, &tos, sizeof(tos))
                  : append(control, len, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
    }
    if (content->segment != 0) {
        len =
            append(control, len, SOL_UDP, UDP_SEGMENT, &content->segment, sizeof(content->segment));
    }
    return len;
}

static void read_ip4(const struct cmsghdr *c, leat_recv_info *info)
{
    if (c->cmsg_type == IP_PKTINFO) {
        struct in_pktinfo pktinfo;
        memcpy(&pktinfo, CMSG_DATA(c), sizeof(pktinfo));
        memset(&info->local, 0, sizeof(info->local));
        info->local.family = 4;
        memcpy(info->local.ip, &pktinfo.ipi_addr, 4);
    } else if (c->cmsg_type == IP_TOS) {
        info->ecn = *CMSG_DATA(c) & 3; /* one byte, although it is sent as an int */
    }
}

static void read_ip6(const struct cmsghdr *c, leat_recv_info *info)
{
    if (c->cmsg_type == IPV6_PKTINFO) {
        struct in6_pktinfo pktinfo;
        memcpy(&pktinfo, CMSG_DATA(c), sizeof(pktinfo));
        memset(&info->local, 0, sizeof(info->local));
        info->local.family = 6;
        memcpy(info->local.ip, &pktinfo.ipi6_addr, 16);
        if (IN6_IS_ADDR_LINKLOCAL(&pktinfo.ipi6_addr)) {
            info->local.scope = pktinfo.ipi6_ifindex;
        }
        leat_addr_unmap(&info->local);
    } else if (c->cmsg_type == IPV6_TCLASS) {
        int tclass;
        memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
        info->ecn = (uint8_t)(tclass & 3);
    }
}

void leat_cmsg_read(const struct msghdr *msg, leat_recv_info *info)
{
    info->local.family = 0;
    info->ecn = 0;
    info->segment = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
         c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
        if (c->cmsg_level == IPPROTO_IP) {
            read_ip4(c, info);
        } else if (c->cmsg_level == IPPROTO_IPV6) {
            read_ip6(c, info);
        } else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
            int segment;
            memcpy(&segment, CMSG_DATA(c), sizeof(segment));
            info->segment = segment > 0 ? (size_t)segment : 0;
        }
    }
}
