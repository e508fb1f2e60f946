/* io/tx.c: sending in batches.
 *
 * The place in the queue is (first, sent): batch and bytes of it. A round fills messages from there
 * on, as many as there are for one socket, sends them with one call and moves the place over those
 * that went.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/tx.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

leat_err leat_tx_init(leat_tx *tx, leat_mem *mem)
{
    memset(tx, 0, sizeof(*tx));
    return leat_buf_take(mem, LEAT_TX_ARENA, &tx->arena);
}

void leat_tx_free(leat_tx *tx)
{
    leat_buf_release(&tx->arena);
}

uint8_t *leat_tx_room(leat_tx *tx)
{
    bool full = tx->count == LEAT_TX_BATCHES || LEAT_TX_ARENA - tx->used < LEAT_TX_BATCH_MAX;
    return full ? NULL : tx->arena.data + tx->used;
}

void leat_tx_add(leat_tx *tx, leat_sock *sock, size_t len, const leat_send_info *info)
{
    LEAT_ASSERT(tx->count < LEAT_TX_BATCHES);
    LEAT_ASSERT(len > 0);
    LEAT_ASSERT(len <= LEAT_TX_ARENA - tx->used);
    leat_tx_batch *batch = &tx->batches[tx->count++];
    *batch = (leat_tx_batch){.info = *info, .sock = sock, .offset = tx->used, .len = len};
    if (info->segment == 0 || info->segment > len) {
        batch->info.segment = len;
    }
    tx->used += len;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The bytes of a batch that go as one message, from `sent` on. */
static size_t message_len(const leat_tx_batch *batch, size_t sent, bool gso)
{
    size_t left = batch->len - sent;
    size_t segment = batch->info.segment;
    if (!gso) {
        return left < segment ? left : segment;
    }
    size_t segments = LEAT_TX_GSO_BYTES / segment;
    if (segments > LEAT_TX_GSO_SEGMENTS) {
        segments = LEAT_TX_GSO_SEGMENTS;
    }
    if (segments == 0) {
        segments = 1;
    }
    return left < segments * segment ? left : segments * segment;
}

static void fill_message(leat_tx *tx, const leat_sock *sock, unsigned m, unsigned b, size_t sent,
                         size_t len)
{
    const leat_tx_batch *batch = &tx->batches[b];
    const leat_send_info *info = &batch->info;
    struct msghdr *msg = &tx->msgs[m].msg_hdr;
    tx->iovs[m].iov_base = tx->arena.data + batch->offset + sent;
    tx->iovs[m].iov_len = len;
    memset(msg, 0, sizeof(*msg));
    msg->msg_iov = &tx->iovs[m];
    msg->msg_iovlen = 1;
    if (sock->connected.family == 0 || !leat_addr_equal(&sock->connected, &info->remote)) {
        msg->msg_name = &tx->names[m];
        msg->msg_namelen = leat_sockaddr_write(&info->remote, sock->family, &tx->names[m]);
    }
    leat_cmsg_content content = {.ecn = info->ecn};
    if (sock->any && info->local.family != 0) {
        content.local = info->local;
    }
    if (len > info->segment) {
        content.segment = (uint16_t)info->segment;
    }
    msg->msg_controllen =
        leat_cmsg_write(tx->control[m], sock->family, info->remote.family, &content);
    msg->msg_control = msg->msg_controllen != 0 ? tx->control[m] : NULL;
}

/* Fills messages for one socket from the place on and returns how many. */
static unsigned fill_messages(leat_tx *tx, const leat_sock *sock)
{
    unsigned m = 0;
    size_t sent = tx->sent;
    for (unsigned b = tx->first; b < tx->count && tx->batches[b].sock == sock; b++, sent = 0) {
        while (sent < tx->batches[b].len && m < LEAT_TX_BATCHES) {
            size_t len = message_len(&tx->batches[b], sent, sock->gso);
            fill_message(tx, sock, m++, b, sent, len);
            sent += len;
        }
    }
    return m;
}

static uint64_t datagrams_in(const leat_tx_batch *batch, size_t len)
{
    return (len + batch->info.segment - 1) / batch->info.segment;
}

/* Moves the place over len bytes, which end at the end of a datagram. */
static uint64_t advance(leat_tx *tx, size_t len)
{
    const leat_tx_batch *batch = &tx->batches[tx->first];
    uint64_t datagrams = datagrams_in(batch, len);
    tx->sent += len;
    if (tx->sent == batch->len) {
        tx->first++;
        tx->sent = 0;
    }
    return datagrams;
}

static void count_sent(leat_tx *tx, size_t len, leat_udp_stats *stats)
{
    stats->send_messages++;
    stats->send_bytes += len;
    stats->send_datagrams += advance(tx, len);
}

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum outcome { GO_ON, BLOCKED } outcome;

enum { TRIES = 3 }; /* of a datagram alone */

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK;
}

/* What the kernel answers when a device cannot segment or checksum (EIO), or GSO is not possible
 * here (EINVAL). EMSGSIZE is not among them: segments too large for the path are so alone, too. */
static bool may_be_gso(int error)
{
    return error == EIO || error == EINVAL;
}

/* Sends len bytes at the place as a single datagram. Returns 0 or errno. */
static int send_alone(leat_tx *tx, const leat_sock *sock, size_t len, leat_udp_stats *stats)
{
    fill_message(tx, sock, 0, tx->first, tx->sent, len);
    int error;
    do {
        stats->send_calls++;
        error = sendmsg(sock->fd, &tx->msgs[0].msg_hdr, MSG_DONTWAIT) < 0 ? errno : 0;
    } while (error == EINTR);
    return error;
}

/* The message at the place was refused. On a connected socket any error may be of an ICMP message
 * that came before, forged ones among them ("packet too big" is EMSGSIZE, whatever the socket was
 * told of path MTU discovery): then nothing was sent, and another try succeeds unless yet another
 * ICMP message came. So the datagram is tried by itself, a few times; what that says is true. */
static outcome handle_refusal(leat_tx *tx, leat_sock *sock, int error, leat_udp_stats *stats)
{
    const leat_tx_batch *batch = &tx->batches[tx->first];
    size_t left = batch->len - tx->sent;
    size_t one = left < batch->info.segment ? left : batch->info.segment;
    bool batched = message_len(batch, tx->sent, sock->gso) > one;
    int again = error;
    for (int i = 0; again != 0 && !would_block(again) && i < TRIES; i++) {
        again = send_alone(tx, sock, one, stats);
    }
    if (would_block(again)) {
        return BLOCKED;
    }
    if (again != 0) {
        stats->send_failed += advance(tx, one);
        return GO_ON;
    }
    if (batched && may_be_gso(error)) {
        sock->gso = false;
        stats->gso_failed = 1;
    }
    count_sent(tx, one, stats);
    return GO_ON;
}

leat_tx_result leat_tx_flush(leat_tx *tx, leat_udp_stats *stats)
{
    while (tx->first < tx->count) {
        leat_sock *sock = tx->batches[tx->first].sock;
        if (sock == NULL) {
            stats->send_failed += advance(tx, tx->batches[tx->first].len - tx->sent);
            continue;
        }
        unsigned n = fill_messages(tx, sock);
        int went = sendmmsg(sock->fd, tx->msgs, n, MSG_DONTWAIT);
        stats->send_calls++;
        if (went < 0 && errno == EINTR) {
            continue;
        }
        if (went < 0 && handle_refusal(tx, sock, errno, stats) == BLOCKED) {
            stats->send_blocked++;
            return LEAT_TX_BLOCKED;
        }
        for (int m = 0; m < went; m++) {
            count_sent(tx, tx->iovs[m].iov_len, stats);
        }
    }
    tx->count = 0;
    tx->first = 0;
    tx->sent = 0;
    tx->used = 0;
    return LEAT_TX_DONE;
}

void leat_tx_forget(leat_tx *tx, const leat_sock *sock)
{
    for (unsigned b = tx->first; b < tx->count; b++) {
        if (tx->batches[b].sock == sock) {
            tx->batches[b].sock = NULL;
        }
    }
}
