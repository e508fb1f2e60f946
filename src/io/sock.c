/* io/sock.c: opening a UDP socket.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/sock.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/sockaddr.h"

static leat_err set_int(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? LEAT_OK : LEAT_ERR_IO;
}

static leat_err set_ip4_options(int fd)
{
    leat_err err = set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
    if (err == LEAT_OK) {
        err = set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
    }
    if (err == LEAT_OK) {
        err = set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    }
    return err;
}

static leat_err set_ip6_options(int fd, bool both_families)
{
    leat_err err = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
    if (err == LEAT_OK) {
        err = set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    }
    if (err == LEAT_OK) {
        err = set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    }
    if (err == LEAT_OK) {
        err = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    }
    if (err == LEAT_OK && both_families) {
        err = set_ip4_options(fd);
    }
    return err;
}

/* Asks for a buffer and returns what the kernel grants (it tells double, for its bookkeeping). */
static int size_buffer(int fd, int name, int force_name, int asked)
{
    int granted = 0;
    socklen_t len = sizeof(granted);
    set_int(fd, SOL_SOCKET, name, asked);
    if (getsockopt(fd, SOL_SOCKET, name, &granted, &len) == 0 && granted / 2 < asked) {
        set_int(fd, SOL_SOCKET, force_name, asked); /* beyond the sysctl, with CAP_NET_ADMIN */
        getsockopt(fd, SOL_SOCKET, name, &granted, &len);
    }
    return granted / 2;
}

static void size_buffers(leat_sock *sock, const leat_udp_settings *settings)
{
    int recv = size_buffer(sock->fd, SO_RCVBUF, SO_RCVBUFFORCE, settings->recv_buffer);
    int send = size_buffer(sock->fd, SO_SNDBUF, SO_SNDBUFFORCE, settings->send_buffer);
    if (recv < settings->recv_buffer) {
        snprintf(sock->warning, sizeof(sock->warning),
                 "the system grants a UDP receive buffer of %d bytes instead of %d, which costs "
                 "speed; to raise it: sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d",
                 recv, settings->recv_buffer, settings->recv_buffer, settings->send_buffer);
    } else if (send < settings->send_buffer) {
        snprintf(sock->warning, sizeof(sock->warning),
                 "the system grants a UDP send buffer of %d bytes instead of %d, which costs "
                 "speed; to raise it: sysctl -w net.core.wmem_max=%d",
                 send, settings->send_buffer, settings->send_buffer);
    }
}

static void enable_offload(leat_sock *sock)
{
    sock->gso = set_int(sock->fd, SOL_UDP, UDP_SEGMENT, 0) == LEAT_OK;
    set_int(sock->fd, SOL_UDP, UDP_GRO, 1); /* without it datagrams come singly */
}

/* Which address to bind, given where to connect. */
static leat_err choose_local(const leat_udp_settings *settings, leat_addr *local)
{
    *local = settings->local;
    uint8_t remote = settings->remote.family;
    if (local->family == 0) {
        local->family = remote;
    }
    bool known = local->family == 4 || local->family == 6;
    bool agree = remote == 0 || remote == local->family ||
                 (remote == 4 && local->family == 6 && leat_addr_is_any(local));
    return known && agree ? LEAT_OK : LEAT_ERR_ADDRESS;
}

static int make_socket(leat_addr *local)
{
    int type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = socket(local->family == 4 ? AF_INET : AF_INET6, type, 0);
    if (fd < 0 && errno == EAFNOSUPPORT && leat_addr_is_any(local)) {
        local->family = 4; /* a system without IPv6: any address is any IPv4 address */
        fd = socket(AF_INET, type, 0);
    }
    return fd;
}

static leat_err read_name(leat_sock *sock)
{
    leat_sockaddr name;
    socklen_t len = sizeof(name);
    if (getsockname(sock->fd, &name.any, &len) != 0) {
        return LEAT_ERR_IO;
    }
    leat_sockaddr_read(&name.any, &sock->local);
    return LEAT_OK;
}

static leat_err bind_and_connect(leat_sock *sock, const leat_addr *local, const leat_addr *remote)
{
    leat_sockaddr name;
    socklen_t len = leat_sockaddr_write(local, sock->family, &name);
    if (bind(sock->fd, &name.any, len) != 0) {
        return LEAT_ERR_IO;
    }
    if (remote->family != 0) {
        len = leat_sockaddr_write(remote, sock->family, &name);
        if (connect(sock->fd, &name.any, len) != 0) {
            return LEAT_ERR_IO;
        }
        sock->connected = *remote;
    }
    return read_name(sock);
}

static leat_err set_up(leat_sock *sock, const leat_udp_settings *settings, const leat_addr *local)
{
    leat_err err = sock->family == 4 ? set_ip4_options(sock->fd)
                                     : set_ip6_options(sock->fd, leat_addr_is_any(local));
    if (err != LEAT_OK) {
        return err;
    }
    size_buffers(sock, settings);
    if (!settings->no_offload) {
        enable_offload(sock);
    }
    if (settings->busy_poll > 0) {
        set_int(sock->fd, SOL_SOCKET, SO_BUSY_POLL, settings->busy_poll); /* a wish */
    }
    if (settings->group != NULL && set_int(sock->fd, SOL_SOCKET, SO_REUSEPORT, 1) != LEAT_OK) {
        return LEAT_ERR_IO;
    }
    return bind_and_connect(sock, local, &settings->remote);
}

leat_err leat_sock_open(leat_sock *sock, const leat_udp_settings *settings)
{
    leat_addr local;
    memset(sock, 0, sizeof(*sock));
    sock->fd = -1;
    leat_err err = choose_local(settings, &local);
    if (err != LEAT_OK) {
        return err;
    }
    sock->fd = make_socket(&local);
    if (sock->fd < 0) {
        return LEAT_ERR_IO;
    }
    sock->family = local.family;
    sock->any = leat_addr_is_any(&local) && settings->remote.family == 0;
    err = set_up(sock, settings, &local);
    if (err != LEAT_OK) {
        int saved = errno;
        leat_sock_close(sock);
        errno = saved;
    }
    return err;
}

void leat_sock_close(leat_sock *sock)
{
    if (sock->fd >= 0) {
        close(sock->fd);
        sock->fd = -1;
    }
}
