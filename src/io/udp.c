/* io/udp.c: the UDP sockets of an endpoint.
 *
 * Nearly always there is one. Others are a server's preferred address, the address that a client
 * migrates to, and a client's way to where a server would be met: its socket is connected to the
 * peer, which is faster, so what goes elsewhere gets a socket of its own, connected too.
 *
 * Received messages go to the endpoint as they come; what it wants to send is pulled in batches and
 * sent from the socket that is meant. When a socket's buffer is full nothing more is pulled, so
 * that the endpoint's pacing and congestion control see it; the loop then waits until the socket is
 * writable.
 *
 * Both directions are bounded a turn, so that one socket does not keep the others, the timers and
 * the other direction waiting.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/time.h"
#include "io/group.h"
#include "io/loop.h"
#include "io/rx.h"
#include "io/tx.h"

enum {
    RECV_CALLS_A_TURN = 8,
    SEND_ROUNDS_A_TURN = 8,
};

typedef struct leat_port {
    leat_source source;
    leat_udp *udp;
    leat_sock sock; /* fd below 0: there is none */
} leat_port;

struct leat_udp {
    leat_link link; /* first: leat_udp_of() */
    leat_buf self;
    leat_loop *loop;
    leat_endpoint *endpoint;
    leat_pcap *capture; /* or NULL */
    leat_port *blocked; /* is waited for until it is writable, or NULL */
    unsigned member;    /* of the group */
    leat_udp_group *group;
    leat_group_box *box; /* what the group's others hand over; NULL without a group */
    leat_udp_stats stats;
    leat_udp_settings settings; /* of the first socket, which is always there */
    leat_port ports[LEAT_UDP_SOCKETS_MAX];
    unsigned open; /* how many there are */
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
    leat_addr addr = local->family != 0 ? *local : udp->ports[0].sock.local;
    if (addr.family != family) {
        addr = (leat_addr){.family = family, .port = addr.port};
    }
    if (addr.port == 0) {
        addr.port = udp->ports[0].sock.local.port;
    }
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

/* ---- groups ---------------------------------------------------------------------------------- */

static void make_cid(uint8_t *cid, size_t len, void *user)
{
    const leat_udp *udp = user;
    (void)len;
    leat_group_mark(cid, udp->group->count, udp->member);
}

/* Hands a datagram to the member that has its connection. */
static void hand_over(leat_udp *udp, unsigned member, leat_span datagram,
                      const leat_recv_info *info)
{
    if (leat_group_box_put(udp->group->members[member]->box, datagram.data, datagram.len, info)) {
        udp->stats.handed_over++;
    } else {
        udp->stats.recv_dropped++;
    }
}

/* Takes out of a message what is for others; true: all of it is this member's, and still in buf. */
static bool sort_out(leat_udp *udp, leat_buf *buf, const leat_recv_info *info)
{
    unsigned count = udp->group->count;
    size_t step = info->segment != 0 ? info->segment : buf->len;
    bool all_mine = true;
    for (size_t at = 0; at < buf->len && all_mine; at += step) {
        size_t len = buf->len - at < step ? buf->len - at : step;
        all_mine = leat_group_member_of(buf->data + at, len, count, udp->member) == udp->member;
    }
    if (all_mine) {
        return true;
    }
    for (size_t at = 0; at < buf->len; at += step) {
        size_t len = buf->len - at < step ? buf->len - at : step;
        unsigned member = leat_group_member_of(buf->data + at, len, count, udp->member);
        leat_recv_info one = *info;
        one.segment = 0;
        if (member == udp->member) {
            leat_buf part = leat_buf_slice(buf, at, len);
            leat_endpoint_recv(udp->endpoint, &part, &one);
        } else {
            hand_over(udp, member, (leat_span){buf->data + at, len}, &one);
        }
    }
    leat_buf_release(buf);
    return false;
}

/* What others have handed over. */
static void take_over(leat_task *task)
{
    leat_group_box *box = LEAT_CONTAINER_OF(task, leat_group_box, task);
    leat_udp *udp = box->owner;
    leat_mem *mem = leat_ctx_mem(udp->loop->ctx);
    leat_recv_info info;
    leat_buf buf;
    leat_err err;
    while ((err = leat_group_box_take(box, mem, &buf, &info)) != LEAT_ERR_BLOCKED) {
        if (err == LEAT_OK) {
            udp->stats.taken_over++;
            leat_endpoint_recv(udp->endpoint, &buf, &info);
        } else {
            udp->stats.recv_dropped++;
        }
    }
}

static leat_err join_group(leat_udp *udp, const leat_udp_settings *settings)
{
    leat_udp_group *group = settings->group;
    udp->group = group;
    udp->member = group->opened;
    return leat_group_box_new(udp->loop->ctx, take_over, udp, &udp->box);
}

/* The socket is bound: it has its place among the group's in the kernel. */
static void joined(leat_udp *udp)
{
    leat_udp_group *group = udp->group;
    group->members[group->opened++] = udp;
    if (group->opened == group->count && !group->no_steering) {
        group->steered = leat_group_steer(udp->ports[0].sock.fd, group->count);
    }
}

static bool can_join(const leat_udp_settings *settings, const leat_endpoint_settings *endpoint)
{
    const leat_udp_group *group = settings->group;
    return group->count >= 1 && group->count <= LEAT_UDP_GROUP_MAX &&
           group->opened < group->count && settings->remote.family == 0 && !endpoint->make_cid;
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
    if (udp->group == NULL || sort_out(udp, buf, info)) {
        leat_endpoint_recv(udp->endpoint, buf, info);
    }
}

static void unblock(leat_udp *udp)
{
    leat_loop_change(udp->loop, &udp->blocked->source, EPOLLIN);
    udp->blocked = NULL;
}

static void port_ready(leat_source *source, uint32_t events)
{
    leat_port *port = LEAT_CONTAINER_OF(source, leat_port, source);
    leat_udp *udp = port->udp;
    if ((events & EPOLLOUT) != 0 && udp->blocked == port) {
        unblock(udp); /* the turn's end sends */
    }
    if ((events & ~(uint32_t)EPOLLOUT) == 0) {
        return;
    }
    for (int i = 0; i < RECV_CALLS_A_TURN; i++) {
        if (!leat_rx_read(&udp->rx, &port->sock, &udp->stats, received, udp)) {
            return;
        }
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

bool leat_udp_wants_send(const leat_udp *udp)
{
    return !udp->blocked && (!leat_tx_empty(&udp->tx) || leat_endpoint_wants_send(udp->endpoint));
}

static bool is_from(const leat_sock *sock, const leat_addr *local)
{
    if (local->family == 0) {
        return true;
    }
    return sock->any ? local->port == sock->local.port : leat_addr_equal(local, &sock->local);
}

static bool leads_to(const leat_sock *sock, const leat_addr *remote)
{
    return sock->connected.family == 0 || leat_addr_equal(&sock->connected, remote);
}

/* A client's peer would be met elsewhere (RFC 9000 s9.6): the way there, or NULL. */
static leat_sock *open_way_to(leat_udp *udp, const leat_addr *remote)
{
    leat_udp_settings settings = udp->settings;
    leat_addr local;
    settings.remote = *remote;
    settings.local.port = 0; /* the port is taken */
    if (leat_udp_add(udp, &settings, &local) != LEAT_OK) {
        return NULL;
    }
    for (unsigned i = 0; i < LEAT_UDP_SOCKETS_MAX; i++) {
        leat_sock *sock = &udp->ports[i].sock;
        if (sock->fd >= 0 && leat_addr_equal(&sock->local, &local)) {
            return sock;
        }
    }
    LEAT_UNREACHABLE();
}

/* The socket that a batch leaves from; NULL: there is none for it. */
static leat_sock *sock_for(leat_udp *udp, const leat_send_info *info)
{
    leat_sock *first = &udp->ports[0].sock;
    if (LEAT_LIKELY(udp->open == 1 && leads_to(first, &info->remote))) {
        return first;
    }
    for (unsigned i = 0; i < LEAT_UDP_SOCKETS_MAX; i++) {
        leat_sock *sock = &udp->ports[i].sock;
        if (sock->fd >= 0 && leads_to(sock, &info->remote) && is_from(sock, &info->local)) {
            return sock;
        }
    }
    if (leads_to(first, &info->remote)) {
        return first;
    }
    return info->local.family == 0 ? open_way_to(udp, &info->remote) : NULL;
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
        leat_sock *sock = sock_for(udp, &info);
        if (sock == NULL) {
            udp->stats.send_failed += info.datagrams;
            continue;
        }
        if (udp->capture != NULL) {
            leat_addr local = info.local.family != 0 ? info.local : sock->local;
            local = capture_local(udp, &local, info.remote.family);
            size_t segment = info.segment != 0 ? info.segment : n;
            capture(udp, &local, &info.remote, info.ecn, (leat_span){room, n}, segment);
        }
        leat_tx_add(&udp->tx, sock, n, &info);
    }
    return true;
}

static void block(leat_udp *udp, leat_sock *sock)
{
    udp->blocked = LEAT_CONTAINER_OF(sock, leat_port, sock);
    leat_loop_change(udp->loop, &udp->blocked->source, EPOLLIN | EPOLLOUT);
}

void leat_udp_send(leat_udp *udp)
{
    for (int i = 0; i < SEND_ROUNDS_A_TURN && !udp->blocked; i++) {
        bool more = pull(udp);
        if (leat_tx_flush(&udp->tx, &udp->stats) == LEAT_TX_BLOCKED) {
            block(udp, leat_tx_blocked(&udp->tx));
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
           s->send_buffer >= LEAT_SOCKET_BUFFER_MIN && s->send_buffer <= LEAT_SOCKET_BUFFER_MAX &&
           s->busy_poll >= 0;
}

/* Opens a socket in a free place. */
static leat_err port_open(leat_udp *udp, leat_port *port, const leat_udp_settings *settings)
{
    leat_err err = leat_sock_open(&port->sock, settings);
    if (err != LEAT_OK) {
        return err;
    }
    port->udp = udp;
    port->source = (leat_source){.ready = port_ready, .fd = port->sock.fd};
    err = leat_loop_add(udp->loop, &port->source, EPOLLIN);
    if (err != LEAT_OK) {
        int saved = errno;
        leat_sock_close(&port->sock);
        errno = saved;
        return err;
    }
    udp->open++;
    udp->loop->busy_poll =
        leat_time_max(udp->loop->busy_poll, (leat_time)settings->busy_poll * LEAT_MICROSECOND);
    return LEAT_OK;
}

static void port_close(leat_udp *udp, leat_port *port)
{
    if (port->sock.fd < 0) {
        return;
    }
    if (udp->blocked == port) {
        udp->blocked = NULL;
    }
    leat_tx_forget(&udp->tx, &port->sock);
    leat_loop_remove(udp->loop, &port->source);
    leat_sock_close(&port->sock);
    udp->open--;
}

/* Frees what has been made so far. */
static void take_down(leat_udp *udp)
{
    int saved = errno;
    leat_buf self = udp->self;
    leat_endpoint_free(udp->endpoint);
    for (unsigned i = 0; i < LEAT_UDP_SOCKETS_MAX; i++) {
        port_close(udp, &udp->ports[i]);
    }
    leat_group_box_free(udp->box);
    leat_tx_free(&udp->tx);
    leat_rx_free(&udp->rx);
    leat_buf_release(&self);
    errno = saved;
}

static leat_err set_up(leat_udp *udp, const leat_udp_settings *settings,
                       const leat_endpoint_settings *endpoint)
{
    leat_mem *mem = leat_ctx_mem(udp->loop->ctx);
    leat_endpoint_settings own = *endpoint;
    leat_udp_settings ours = *settings;
    leat_err err = leat_rx_init(&udp->rx, mem);
    if (settings->group != NULL && settings->group->opened > 0) {
        ours.local = settings->group->members[0]->ports[0].sock.local; /* with its port */
    }
    if (err == LEAT_OK && settings->group != NULL) {
        err = join_group(udp, settings);
        own.make_cid = make_cid;
        own.make_cid_user = udp;
    }
    if (err == LEAT_OK) {
        err = leat_tx_init(&udp->tx, mem);
    }
    if (err == LEAT_OK) {
        err = leat_endpoint_new(udp->loop->ctx, &own, &udp->endpoint);
    }
    if (err == LEAT_OK) {
        err = port_open(udp, &udp->ports[0], &ours);
    }
    if (err == LEAT_OK && udp->group != NULL) {
        joined(udp);
    }
    return err;
}

leat_err leat_udp_open(leat_loop *loop, const leat_udp_settings *settings,
                       const leat_endpoint_settings *endpoint, leat_udp **out)
{
    *out = NULL;
    if (!settings_valid(settings) || (settings->group && !can_join(settings, endpoint))) {
        return LEAT_ERR_INVALID;
    }
    leat_buf self;
    leat_udp *udp = leat_io_take(leat_ctx_mem(loop->ctx), sizeof(*udp), &self);
    if (udp == NULL) {
        return LEAT_ERR_NOMEM;
    }
    udp->self = self;
    udp->loop = loop;
    udp->settings = *settings;
    for (unsigned i = 0; i < LEAT_UDP_SOCKETS_MAX; i++) {
        udp->ports[i].sock.fd = -1;
    }
    leat_err err = set_up(udp, settings, endpoint);
    if (err != LEAT_OK) {
        take_down(udp);
        return err;
    }
    leat_list_push_back(&loop->udps, &udp->link);
    *out = udp;
    return LEAT_OK;
}

/* It receives at that address already. */
static bool covers(const leat_sock *sock, const leat_udp_settings *s)
{
    return sock->fd >= 0 && sock->any && s->remote.family == 0 && s->local.port != 0 &&
           s->local.port == sock->local.port &&
           (sock->family == 6 || s->local.family == sock->family);
}

leat_err leat_udp_add(leat_udp *udp, const leat_udp_settings *settings, leat_addr *local)
{
    leat_port *free_port = NULL;
    if (!settings_valid(settings) || settings->group != NULL) {
        return LEAT_ERR_INVALID;
    }
    if (udp->group != NULL) {
        return LEAT_ERR_UNSUPPORTED; /* the other members would not be there */
    }
    for (unsigned i = 0; i < LEAT_UDP_SOCKETS_MAX; i++) {
        leat_port *port = &udp->ports[i];
        if (covers(&port->sock, settings)) {
            *local = settings->local;
            return LEAT_OK;
        }
        if (port->sock.fd < 0 && free_port == NULL) {
            free_port = port;
        }
    }
    if (free_port == NULL) {
        return LEAT_ERR_LIMIT;
    }
    leat_err err = port_open(udp, free_port, settings);
    if (err == LEAT_OK) {
        *local = free_port->sock.local;
    }
    return err;
}

void leat_udp_remove(leat_udp *udp, const leat_addr *local)
{
    for (unsigned i = 1; i < LEAT_UDP_SOCKETS_MAX; i++) {
        if (udp->ports[i].sock.fd >= 0 && leat_addr_equal(&udp->ports[i].sock.local, local)) {
            port_close(udp, &udp->ports[i]);
        }
    }
}

void leat_udp_close(leat_udp *udp)
{
    if (udp == NULL) {
        return;
    }
    leat_udp_send(udp);
    leat_link_remove(&udp->link);
    take_down(udp);
}

leat_endpoint *leat_udp_endpoint(leat_udp *udp)
{
    return udp->endpoint;
}

leat_addr leat_udp_local(const leat_udp *udp)
{
    return udp->ports[0].sock.local;
}

const char *leat_udp_warning(const leat_udp *udp)
{
    const char *warning = udp->ports[0].sock.warning;
    return warning[0] != '\0' ? warning : NULL;
}

void leat_udp_stats_get(const leat_udp *udp, leat_udp_stats *out)
{
    *out = udp->stats;
}
