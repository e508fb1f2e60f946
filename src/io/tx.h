/* io/tx.h: the sending side of a UDP socket.
 *
 *   1. leat_tx_room() is where the next batch goes, one datagram behind the other to one address;
 *   2. leat_tx_add() says what has been written there, and which socket it is for;
 *   3. leat_tx_flush() sends all that has been added, with as few calls as it can, and keeps what
 * the socket does not take now.
 *
 * A batch leaves as one message where GSO allows (64 datagrams and 64 KiB a message), else as one
 * message a datagram. When a message fails its first datagram is sent alone. If that fails too, a
 * few times, the datagram is at fault and is lost, and counted: QUIC repairs it. If it succeeds, an
 * error that GSO can cause was GSO's, which stays off, the rest going singly; any other belonged to
 * what came before (an ICMP message), and costs nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_TX_H
#define LEAT_IO_TX_H

#include <leat/loop.h>

#include <sys/socket.h>

#include "io/cmsg.h"
#include "io/sock.h"
#include "io/sockaddr.h"

enum {
    LEAT_TX_BATCHES = 64,       /* batches kept, and messages a call */
    LEAT_TX_ARENA = 256 * 1024, /* bytes of them */
    LEAT_TX_BATCH_MAX = 65527,  /* bytes of one: the largest UDP payload (IPv6) */
    LEAT_TX_GSO_BYTES = 65507,  /* bytes a GSO message: the largest UDP payload over IPv4 */
    LEAT_TX_GSO_SEGMENTS = 64,  /* datagrams a GSO message: the kernel's limit */
};

typedef struct leat_tx_batch {
    leat_send_info info;
    leat_sock *sock; /* NULL: closed meanwhile, the batch is lost */
    size_t offset;   /* in the arena */
    size_t len;
} leat_tx_batch;

typedef struct leat_tx {
    leat_buf arena;
    size_t used; /* bytes of it */
    unsigned count;
    unsigned first; /* the first batch not wholly sent */
    size_t sent;    /* bytes of that one which are */
    leat_tx_batch batches[LEAT_TX_BATCHES];
    struct mmsghdr msgs[LEAT_TX_BATCHES];
    struct iovec iovs[LEAT_TX_BATCHES];
    leat_sockaddr names[LEAT_TX_BATCHES];
    _Alignas(8) uint8_t control[LEAT_TX_BATCHES][LEAT_CMSG_SEND_MAX];
} leat_tx;

typedef enum leat_tx_result {
    LEAT_TX_DONE,    /* everything has been sent, or lost */
    LEAT_TX_BLOCKED, /* some is kept: flush again when the socket is writable */
} leat_tx_result;

/* LEAT_ERR_NOMEM. */
leat_err leat_tx_init(leat_tx *tx, leat_mem *mem);
void leat_tx_free(leat_tx *tx);

/* LEAT_TX_BATCH_MAX writable bytes, or NULL: flush first. */
uint8_t *leat_tx_room(leat_tx *tx);

/* len bytes have been written to leat_tx_room(). */
void leat_tx_add(leat_tx *tx, leat_sock *sock, size_t len, const leat_send_info *info);

leat_tx_result leat_tx_flush(leat_tx *tx, leat_udp_stats *stats);

/* The socket that has blocked: the others wait behind it. */
static inline leat_sock *leat_tx_blocked(const leat_tx *tx)
{
    return tx->batches[tx->first].sock;
}

/* The socket is about to be closed: what waits for it is lost. */
void leat_tx_forget(leat_tx *tx, const leat_sock *sock);

static inline bool leat_tx_empty(const leat_tx *tx)
{
    return tx->count == 0;
}

#endif
