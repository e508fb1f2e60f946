/* tests/support/udplink/sock.c: sockets that keep ECN.
 *
 * No GSO and GRO: the system cuts what the sender batched, so that each datagram has its own fate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "udplink.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 8 << 20, ECN_MASK = 3 };

static socklen_t to_system(const leat_addr *addr, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (addr->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(addr->port);
        in6->sin6_scope_id = addr->scope;
        memcpy(&in6->sin6_addr, addr->ip, 16);
        return sizeof *in6;
    }
    ((struct sockaddr_in *)out)->sin_family = AF_INET;
    ((struct sockaddr_in *)out)->sin_port = htons(addr->port);
    memcpy(&((struct sockaddr_in *)out)->sin_addr, addr->ip, 4);
    return sizeof(struct sockaddr_in);
}

static leat_addr from_system(const struct sockaddr_storage *from)
{
    leat_addr addr = {.family = 4};

    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

        addr.family = 6;
        addr.port = ntohs(in6->sin6_port);
        addr.scope = in6->sin6_scope_id;
        memcpy(addr.ip, &in6->sin6_addr, 16);
        return addr;
    }
    addr.port = ntohs(((const struct sockaddr_in *)from)->sin_port);
    memcpy(addr.ip, &((const struct sockaddr_in *)from)->sin_addr, 4);
    return addr;
}

static void set(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value); /* what fails costs precision, no more */
}

int link_sock_open(const leat_addr *local)
{
    struct sockaddr_storage addr;
    socklen_t len = to_system(local, &addr);
    int fd = socket(addr.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) != 0) {
        char text[LEAT_ADDR_TEXT_MAX];

        fprintf(stderr, "udplink: cannot bind %s: %s\n", leat_addr_format(local, text),
                strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
    set(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER);
    set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER);
    /* No fragments, and no belief in what ICMP says of the way: anybody can forge it. */
    if (local->family == 6) {
        set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    } else {
        set(fd, IPPROTO_IP, IP_RECVTOS, 1);
        set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    }
    return fd;
}

leat_addr link_sock_local(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;

    getsockname(fd, (struct sockaddr *)&addr, &len);
    return from_system(&addr);
}

static uint8_t ecn_of(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            return *(uint8_t *)CMSG_DATA(c) & ECN_MASK;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int value;

            memcpy(&value, CMSG_DATA(c), sizeof value);
            return (uint8_t)value & ECN_MASK;
        }
    }
    return 0;
}

int link_sock_receive(int fd, void *data, size_t cap, leat_addr *from, uint8_t *ecn)
{
    struct sockaddr_storage addr;
    struct iovec iov = {data, cap};
    _Alignas(struct cmsghdr) char control[64];
    struct msghdr message = {.msg_name = &addr,
                             .msg_namelen = sizeof addr,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t n;

    do { /* a refusal of the peer's system is not a datagram, and not the end */
        n = recvmsg(fd, &message, 0);
    } while (n < 0 && (errno == EINTR || errno == ECONNREFUSED));
    if (n < 0) {
        return -1;
    }
    *from = from_system(&addr);
    *ecn = ecn_of(&message);
    return (int)n;
}

bool link_sock_send(int fd, const void *data, size_t len, const leat_addr *to, uint8_t ecn)
{
    struct sockaddr_storage addr;
    struct iovec iov = {(void *)(uintptr_t)data, len};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    int value = ecn;
    struct msghdr message = {
        .msg_name = &addr, .msg_namelen = to_system(to, &addr), .msg_iov = &iov, .msg_iovlen = 1};

    if (ecn) {
        struct cmsghdr *c;

        message.msg_control = control;
        message.msg_controllen = sizeof control;
        c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = to->family == 6 ? IPPROTO_IPV6 : IPPROTO_IP;
        c->cmsg_type = to->family == 6 ? IPV6_TCLASS : IP_TOS;
        c->cmsg_len = CMSG_LEN(sizeof value);
        memcpy(CMSG_DATA(c), &value, sizeof value);
    }
    for (int tries = 0; tries < 3; tries++) {
        if (sendmsg(fd, &message, 0) >= 0) {
            return true;
        }
        if (errno != EINTR && errno != ECONNREFUSED) { /* the latter tells of an earlier one */
            break;
        }
    }
    return false;
}
