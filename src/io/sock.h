/* io/sock.h: a UDP socket with the options that QUIC wants.
 *
 * Non-blocking; "don't fragment" set and path MTU messages ignored (QUIC probes by itself: RFC 9000
 * s14.3); local address and ECN bits asked for with each datagram; GRO on and GSO found out.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_SOCK_H
#define LEAT_IO_SOCK_H

#include <leat/loop.h>

enum { LEAT_SOCK_WARNING_MAX = 256 };

typedef struct leat_sock {
    int fd;
    uint8_t family;      /* of the socket: 4, or 6, which may serve both */
    bool gso;            /* batches may be sent with UDP_SEGMENT */
    bool any;            /* not bound to one address: datagrams say which one they leave from */
    leat_addr local;     /* where it is bound, with the port that the system chose */
    leat_addr connected; /* family 0: not connected */
    char warning[LEAT_SOCK_WARNING_MAX]; /* "": the kernel granted the buffers asked for */
} leat_sock;

/* LEAT_ERR_ADDRESS, or LEAT_ERR_IO with errno. */
leat_err leat_sock_open(leat_sock *sock, const leat_udp_settings *settings);

void leat_sock_close(leat_sock *sock);

#endif
