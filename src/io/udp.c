/* io/udp.c: a UDP socket of the loop and the endpoint behind it.
 *
 * Received messages go to the endpoint as they come; what it wants to send is pulled in batches and
 * sent. When the socket's buffer is full nothing more is pulled, so that the endpoint's pacing and
 * congestion control see it; the loop then waits until the socket is writable.
 *
 * Both directions are bounded a turn, so that one socket does not keep the others, the timers and
 * the other direction waiting.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "io/loop.h"
#include "io/rx.h"
#include "io/tx.h"

enum {
    RECV_CALLS_A_TURN = 8,
    SEND_ROUNDS_A_TURN = 8,
};

struct leat_udp {
    leat_link link; /* first: leat_udp_of() */
    leat_source source;
    leat_buf self;
    leat_loop *loop;
    leat_endpoint *endpoint;
    leat_pcap *capture; /* or NULL */
    bool blocked;       /* waits until the socket is writable */
    leat_udp_stats stats;
    leat_sock sock;
    leat_rx rx;
    leat_tx tx;
};

_Static_assert(offsetof(leat_udp, link) == 0, "leat_udp_of() relies on it");

/* ---- capturing ------------------------------------------------------------------------------- */

void leat_udp_capture(leat_udp *udp, leat_pcap *pcap)
{
    udp->capture = pcap;
}

/* This end's address, as far as it is known, in the family of the other's. */
static leat_addr capture_local(const leat_udp *udp, const leat_addr *local, uint8_t family)
{
    leat_addr addr = local->family != 0 ? *local : udp->sock.local;
    if (addr.family != family) {
        addr = (leat_addr){.family = family};
    }
    addr.port = udp->sock.local.port;
    return addr;
}

/* Writes each datagram of a message or batch. */
static void capture(leat_udp *udp, const leat_addr *src, const leat_addr *dst, uint8_t ecn,
                    leat_span bytes, size_t segment)
{
    leat_time now = leat_ctx_now(udp->loop->ctx);
    for (size_t at = 0; at < bytes.len; at += segment) {
        size_t left = bytes.len - at;
        leat_span one = {bytes.data + at, left < segment ? left : segment};
        leat_pcap_write(udp->capture, now, src, dst, ecn, one);
    }
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void received(void *user, leat_buf *buf, const leat_recv_info *info)
{
    leat_udp *udp = user;
    if (udp->capture != NULL) {
        leat_addr local = capture_local(udp, &info->local, info->remote.family);
        size_t segment = info->segment != 0 ? info->segment : buf->len;
        capture(udp, &info->remote, &local, info->ecn, (leat_span){buf->data, buf->len}, segment);
    }
    leat_endpoint_recv(udp->endpoint, buf, info);
}

static void unblock(leat_udp *udp)
{
    udp->blocked = false;
    leat_loop_change(udp->loop, &udp->source, EPOLLIN);
}

static void udp_ready(leat_source *source, uint32_t events)
{
    leat_udp *udp = LEAT_CONTAINER_OF(source, leat_udp, source);
    if ((events & EPOLLOUT) != 0) {
        unblock(udp); /* the turn's end sends */
    }
    if ((events & ~(uint32_t)EPOLLOUT) == 0) {
        return;
    }
    for (int i = 0; i < RECV_CALLS_A_TURN; i++) {
        if (!leat_rx_read(&udp->rx, &udp->sock, &udp->stats, received, udp)) {
            return;
        }
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

bool leat_udp_wants_send(const leat_udp *udp)
{
    return !udp->blocked && (!leat_tx_empty(&udp->tx) || leat_endpoint_wants_send(udp->endpoint));
}

/* Pulls batches until there is no more, or no more room. False: there is no more. */
static bool pull(leat_udp *udp)
{
    uint8_t *room;
    while ((room = leat_tx_room(&udp->tx)) != NULL) {
        leat_send_info info = {0};
        size_t n = leat_endpoint_send(udp->endpoint, room, LEAT_TX_BATCH_MAX, &info);
        if (n == 0) {
            return false;
        }
        if (udp->capture != NULL) {
            leat_addr local = capture_local(udp, &info.local, info.remote.family);
            size_t segment = info.segment != 0 ? info.segment : n;
            capture(udp, &local, &info.remote, info.ecn, (leat_span){room, n}, segment);
        }
        leat_tx_add(&udp->tx, n, &info);
    }
    return true;
}

static void block(leat_udp *udp)
{
    udp->blocked = true;
    leat_loop_change(udp->loop, &udp->source, EPOLLIN | EPOLLOUT);
}

void leat_udp_send(leat_udp *udp)
{
    for (int i = 0; i < SEND_ROUNDS_A_TURN && !udp->blocked; i++) {
        bool more = pull(udp);
        if (leat_tx_flush(&udp->tx, &udp->sock, &udp->stats) == LEAT_TX_BLOCKED) {
            block(udp);
        }
        if (!more) {
            return;
        }
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void leat_udp_settings_init(leat_udp_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->recv_buffer = LEAT_SOCKET_BUFFER_DEFAULT;
    settings->send_buffer = LEAT_SOCKET_BUFFER_DEFAULT;
}

static bool settings_valid(const leat_udp_settings *s)
{
    return s->recv_buffer >= LEAT_SOCKET_BUFFER_MIN && s->recv_buffer <= LEAT_SOCKET_BUFFER_MAX &&
           s->send_buffer >= LEAT_SOCKET_BUFFER_MIN && s->send_buffer <= LEAT_SOCKET_BUFFER_MAX;
}

/* Frees what has been made so far. */
static void take_down(leat_udp *udp)
{
    int saved = errno;
    leat_buf self = udp->self;
    leat_endpoint_free(udp->endpoint);
    leat_sock_close(&udp->sock);
    leat_tx_free(&udp->tx);
    leat_rx_free(&udp->rx);
    leat_buf_release(&self);
    errno = saved;
}

static leat_err set_up(leat_udp *udp, const leat_udp_settings *settings,
                       const leat_endpoint_settings *endpoint)
{
    leat_mem *mem = leat_ctx_mem(udp->loop->ctx);
    leat_err err = leat_sock_open(&udp->sock, settings);
    if (err == LEAT_OK) {
        err = leat_rx_init(&udp->rx, mem);
    }
    if (err == LEAT_OK) {
        err = leat_tx_init(&udp->tx, mem);
    }
    if (err == LEAT_OK) {
        err = leat_endpoint_new(udp->loop->ctx, endpoint, &udp->endpoint);
    }
    if (err == LEAT_OK) {
        udp->source = (leat_source){.ready = udp_ready, .fd = udp->sock.fd};
        err = leat_loop_add(udp->loop, &udp->source, EPOLLIN);
    }
    return err;
}

leat_err leat_udp_open(leat_loop *loop, const leat_udp_settings *settings,
                       const leat_endpoint_settings *endpoint, leat_udp **out)
{
    *out = NULL;
    if (!settings_valid(settings)) {
        return LEAT_ERR_INVALID;
    }
    leat_buf self;
    leat_udp *udp = leat_io_take(leat_ctx_mem(loop->ctx), sizeof(*udp), &self);
    if (udp == NULL) {
        return LEAT_ERR_NOMEM;
    }
    udp->self = self;
    udp->loop = loop;
    udp->sock.fd = -1;
    leat_err err = set_up(udp, settings, endpoint);
    if (err != LEAT_OK) {
        take_down(udp);
        return err;
    }
    leat_list_push_back(&loop->udps, &udp->link);
    *out = udp;
    return LEAT_OK;
}

void leat_udp_close(leat_udp *udp)
{
    if (udp == NULL) {
        return;
    }
    leat_udp_send(udp);
    leat_loop_remove(udp->loop, &udp->source);
    leat_link_remove(&udp->link);
    take_down(udp);
}

leat_endpoint *leat_udp_endpoint(leat_udp *udp)
{
    return udp->endpoint;
}

leat_addr leat_udp_local(const leat_udp *udp)
{
    return udp->sock.local;
}

const char *leat_udp_warning(const leat_udp *udp)
{
    return udp->sock.warning[0] != '\0' ? udp->sock.warning : NULL;
}

void leat_udp_stats_get(const leat_udp *udp, leat_udp_stats *out)
{
    *out = udp->stats;
}
