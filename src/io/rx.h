/* io/rx.h: the receiving side of a UDP socket.
 *
 * Each message is received into a buffer of 64 KiB, which GRO may fill with datagrams of one
 * sender. What fills a good part of it is handed on as it is and the slot gets another buffer. What
 * is small for the buffer is copied into one of its own size, so that it does not keep 64 KiB from
 * reuse; the buffer, warm in the cache, receives the next.
 *
 * When memory is short a small message takes its slot's buffer with it, and the slot stays empty
 * until there is one again. What was received is soon given back, and what it acknowledges is
 * freed: so those who wait for memory get it. The last slot keeps its buffer: its message is
 * dropped, as a full socket would have dropped it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_RX_H
#define LEAT_IO_RX_H

#include <leat/loop.h>

#include <sys/socket.h>

#include "io/cmsg.h"
#include "io/sock.h"
#include "io/sockaddr.h"

enum {
    LEAT_RX_SLOTS = 16,     /* messages a call */
    LEAT_RX_SLOTS_BULK = 4, /* the same while they come full: what a cache holds, then answer */
    LEAT_RX_BUFFER = 65535, /* the largest UDP message, with GRO too */
    LEAT_RX_COPY_BELOW = 16384,
};

/* Takes a message's buffer over; *buf is empty when it returns. */
typedef void leat_rx_fn(void *user, leat_buf *buf, const leat_recv_info *info);

typedef struct leat_rx {
    leat_mem *mem;
    unsigned slots;  /* messages of the next call */
    unsigned filled; /* slots that have a buffer: the first ones */
    leat_buf bufs[LEAT_RX_SLOTS];
    struct mmsghdr msgs[LEAT_RX_SLOTS];
    struct iovec iovs[LEAT_RX_SLOTS];
    leat_sockaddr names[LEAT_RX_SLOTS];
    _Alignas(8) uint8_t control[LEAT_RX_SLOTS][LEAT_CMSG_RECV_MAX];
} leat_rx;

/* Takes the buffers. LEAT_ERR_NOMEM: none is kept. */
leat_err leat_rx_init(leat_rx *rx, leat_mem *mem);
void leat_rx_free(leat_rx *rx);

/* One receive call; hands each message to fn. Returns true if more may be waiting and should be
 * read before anything else is done: not so after a call that brought bulk. Errors of the socket
 * (an ICMP message, say) are taken off it and otherwise ignored. */
bool leat_rx_read(leat_rx *rx, const leat_sock *sock, leat_udp_stats *stats, leat_rx_fn *fn,
                  void *user);

#endif
