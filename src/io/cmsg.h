/* io/cmsg.h: what travels beside a datagram: the local address, the ECN bits, the size of a
 * segment.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_CMSG_H
#define LEAT_IO_CMSG_H

#include <leat/loop.h>

#include <netinet/in.h>
#include <sys/socket.h>

enum {
    /* sent: address, ECN, segment size */
    LEAT_CMSG_SEND_MAX = CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) +
                         CMSG_SPACE(sizeof(uint16_t)),
    /* received: the same, and a socket for both families may give the address in both forms */
    LEAT_CMSG_RECV_MAX = CMSG_SPACE(sizeof(struct in6_pktinfo)) +
                         CMSG_SPACE(sizeof(struct in_pktinfo)) + 3 * CMSG_SPACE(sizeof(int)),
};

/* What leat_cmsg_write() is to say; what is zero is left out. */
typedef struct leat_cmsg_content {
    leat_addr local; /* the address to send from; family 0: the system's choice */
    uint8_t ecn;
    uint16_t segment; /* bytes a datagram (UDP GSO) */
} leat_cmsg_content;

/* Writes into control, which has LEAT_CMSG_SEND_MAX aligned bytes, for a socket of this family and
 * a destination of that, and returns the length. */
size_t leat_cmsg_write(void *control, uint8_t socket_family, uint8_t remote_family,
                       const leat_cmsg_content *content);

/* Sets local (without its port), ecn and segment of info from what came with a message. */
void leat_cmsg_read(const struct msghdr *msg, leat_recv_info *info);

#endif
