/* io/rx.c: receiving in batches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/rx.h"

#include <errno.h>
#include <string.h>

static void point_slot(leat_rx *rx, unsigned i)
{
    rx->iovs[i] = (struct iovec){.iov_base = rx->bufs[i].data, .iov_len = LEAT_RX_BUFFER};
    rx->msgs[i].msg_hdr.msg_iov = &rx->iovs[i];
    rx->msgs[i].msg_hdr.msg_iovlen = 1;
    rx->msgs[i].msg_hdr.msg_name = &rx->names[i];
    rx->msgs[i].msg_hdr.msg_control = rx->control[i];
}

/* Buffers for the slots that have none, as far as there are any. */
static leat_err fill_slots(leat_rx *rx)
{
    for (unsigned i = 0; i < LEAT_RX_SLOTS && rx->filled < LEAT_RX_SLOTS; i++) {
        if (rx->bufs[i].data != NULL) {
            continue;
        }
        leat_err err = leat_buf_take(rx->mem, LEAT_RX_BUFFER, &rx->bufs[i]);
        if (err != LEAT_OK) {
            return err;
        }
        point_slot(rx, i);
        rx->filled++;
    }
    return LEAT_OK;
}

leat_err leat_rx_init(leat_rx *rx, leat_mem *mem)
{
    memset(rx, 0, sizeof(*rx));
    rx->mem = mem;
    rx->slots = LEAT_RX_SLOTS;
    leat_err err = fill_slots(rx);
    if (err != LEAT_OK) {
        leat_rx_free(rx);
    }
    return err;
}

/* How many messages the next call may bring: the first slots that have a buffer, which those that
 * have one are moved to. */
static unsigned ready_slots(leat_rx *rx)
{
    unsigned n = 0;
    if (rx->filled == LEAT_RX_SLOTS) {
        return rx->slots;
    }
    fill_slots(rx);
    for (unsigned i = 0; i < LEAT_RX_SLOTS; i++) {
        if (rx->bufs[i].data == NULL) {
            continue;
        }
        if (i != n) {
            rx->bufs[n] = rx->bufs[i];
            rx->bufs[i] = (leat_buf){0};
            point_slot(rx, n);
        }
        n++;
    }
    return n < rx->slots ? n : rx->slots;
}

void leat_rx_free(leat_rx *rx)
{
    for (unsigned i = 0; i < LEAT_RX_SLOTS; i++) {
        leat_buf_release(&rx->bufs[i]);
    }
}

/* The kernel has written these in the last call. */
static void reset_slot(leat_rx *rx, unsigned i)
{
    rx->msgs[i].msg_hdr.msg_namelen = sizeof(rx->names[i]);
    rx->msgs[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
    rx->msgs[i].msg_hdr.msg_flags = 0;
}

/* Moves the slot's len bytes to *out: a copy, or the buffer itself and a new one in its place, or
 * none when memory is short. */
static leat_err take_message(leat_rx *rx, unsigned i, size_t len, leat_udp_stats *stats,
                             leat_buf *out)
{
    leat_buf fresh;
    if (len >= LEAT_RX_COPY_BELOW && leat_buf_take(rx->mem, LEAT_RX_BUFFER, &fresh) == LEAT_OK) {
        *out = rx->bufs[i];
        leat_buf_trim(out, len);
        rx->bufs[i] = fresh;
        point_slot(rx, i);
        return LEAT_OK;
    }
    leat_err err = leat_buf_take(rx->mem, len, out);
    if (err == LEAT_OK) {
        memcpy(out->data, rx->bufs[i].data, len);
        stats->recv_copied++;
    } else if (rx->filled > 1) {
        *out = rx->bufs[i];
        leat_buf_trim(out, len);
        rx->bufs[i] = (leat_buf){0};
        rx->filled--;
        err = LEAT_OK;
    }
    return err;
}

static void deliver(leat_rx *rx, unsigned i, const leat_sock *sock, leat_udp_stats *stats,
                    leat_rx_fn *fn, void *user)
{
    const struct msghdr *msg = &rx->msgs[i].msg_hdr;
    size_t len = rx->msgs[i].msg_len;
    leat_recv_info info;
    leat_buf buf;
    bool cut = (msg->msg_flags & MSG_TRUNC) != 0;
    if (cut || len == 0 || !leat_sockaddr_read(&rx->names[i].any, &info.remote) ||
        take_message(rx, i, len, stats, &buf) != LEAT_OK) {
        stats->recv_dropped++;
        return;
    }
    leat_cmsg_read(msg, &info);
    if (info.local.family == 0) {
        info.local = sock->any ? (leat_addr){0} : sock->local;
    }
    info.local.port = info.local.family != 0 ? sock->local.port : 0;
    size_t segment = info.segment != 0 && info.segment < len ? info.segment : 0;
    info.segment = segment;
    stats->recv_datagrams += segment != 0 ? (len + segment - 1) / segment : 1;
    stats->recv_bytes += len;
    fn(user, &buf, &info);
}

/* Bulk comes in full buffers: few of them make a turn's work, and the peer waits for its
 * acknowledgements. Small messages are many: a call should bring as many as it can. */
static bool is_bulk(const leat_rx *rx, unsigned n)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        bytes += rx->msgs[i].msg_len;
    }
    return bytes / n >= LEAT_RX_COPY_BELOW;
}

bool leat_rx_read(leat_rx *rx, const leat_sock *sock, leat_udp_stats *stats, leat_rx_fn *fn,
                  void *user)
{
    unsigned slots = ready_slots(rx);
    for (unsigned i = 0; i < slots; i++) {
        reset_slot(rx, i);
    }
    int n = recvmmsg(sock->fd, rx->msgs, slots, MSG_DONTWAIT, NULL);
    if (n <= 0) {
        /* Anything but "nothing there" has been taken off the socket by this call. */
        return errno != EAGAIN && errno != EWOULDBLOCK;
    }
    bool bulk = is_bulk(rx, (unsigned)n);
    rx->slots = bulk ? LEAT_RX_SLOTS_BULK : LEAT_RX_SLOTS;
    stats->recv_calls++;
    stats->recv_messages += (uint64_t)n;
    for (unsigned i = 0; i < (unsigned)n; i++) {
        deliver(rx, i, sock, stats, fn, user);
    }
    return (unsigned)n == slots && !bulk;
}
