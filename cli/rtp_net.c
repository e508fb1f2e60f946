/* cli/rtp_net.c: UDP for `leat rtp`: plain sockets, which no QUIC endpoint owns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

bool leat_cli_udp_url(const char *what, const char *text, leat_addr *out)
{
    static const char scheme[] = "udp://";
    const char *address = strncmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : text;
    const char *colon = strrchr(address, ':');
    char host[256];
    size_t count = 0;
    unsigned long port;
    char *end;

    if (leat_addr_parse(address, out) == LEAT_OK) {
        return true;
    }
    if (colon && colon > address && (size_t)(colon - address) < sizeof host) {
        memcpy(host, address, (size_t)(colon - address));
        host[colon - address] = 0;
        port = strtoul(colon + 1, &end, 10);
        if (colon[1] && !*end && port > 0 && port <= UINT16_MAX) {
            if (leat_addr_resolve(host, (uint16_t)port, out, 1, &count) == LEAT_OK && count == 1) {
                return true;
            }
            leat_cli_error("--%s: %s: there is no such host", what, host);
            return false;
        }
    }
    leat_cli_error("--%s wants udp://HOST:PORT, not '%s'", what, text);
    return false;
}

bool leat_cli_udp_target(const char *what, const char *text, leat_addr *out)
{
    if (!leat_cli_udp_url(what, text, out)) {
        return false;
    }
    if (out->port == 0) {
        leat_cli_error("--%s: nothing can be sent to port 0", what);
        return false;
    }
    return true;
}

static socklen_t to_system(const leat_addr *a, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (a->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(a->port);
        in6->sin6_scope_id = a->scope;
        memcpy(&in6->sin6_addr, a->ip, 16);
        return sizeof *in6;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)out;

    in->sin_family = AF_INET;
    in->sin_port = htons(a->port);
    memcpy(&in->sin_addr, a->ip, 4);
    return sizeof *in;
}

static leat_addr from_system(const struct sockaddr_storage *s)
{
    leat_addr a = {.family = 0};

    if (s->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)s;

        a.family = 6;
        a.port = ntohs(in6->sin6_port);
        a.scope = in6->sin6_scope_id;
        memcpy(a.ip, &in6->sin6_addr, 16);
    } else if (s->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)s;

        a.family = 4;
        a.port = ntohs(in->sin_port);
        memcpy(a.ip, &in->sin_addr, 4);
    }
    return a;
}

int leat_cli_udp_open(const leat_addr *local, const leat_addr *remote)
{
    leat_addr any = {.family = remote ? remote->family : 4};
    const leat_addr *bound = local->family ? local : &any;
    struct sockaddr_storage s;
    socklen_t len = to_system(bound, &s);
    char text[LEAT_ADDR_TEXT_MAX];
    int on = 1, off = 0, room = 4 << 20;
    int fd = socket(s.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
        if (s.ss_family == AF_INET6) {
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
            setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
        }
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&s, len) != 0) {
        leat_cli_error("cannot open a UDP socket on %s: %s", leat_addr_format(bound, text),
                       strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

/* How long ago the kernel took the datagram in: its stamp is on another clock. */
static leat_time age(const struct timespec *came)
{
    struct timespec real;
    int64_t since;

    clock_gettime(CLOCK_REALTIME, &real);
    since = (int64_t)(real.tv_sec - came->tv_sec) * 1000000000 + real.tv_nsec - came->tv_nsec;
    return since > 0 && since < 1000000000 ? (leat_time)since : 0;
}

static void read_control(struct msghdr *msg, leat_cli_arrival *arrival)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec came;

            memcpy(&came, CMSG_DATA(c), sizeof came);
            arrival->at -= age(&came);
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
            arrival->ecn =
                *CMSG_DATA(c) & 3; /* one byte in IPv4; IPv6's int is little-endian here */
        }
    }
}

ssize_t leat_cli_udp_recv(int fd, uint8_t *out, size_t cap, leat_cli_arrival *arrival)
{
    struct sockaddr_storage s = {.ss_family = AF_UNSPEC};
    struct iovec iov = {out, cap};
    union {
        struct cmsghdr align;
        char bytes[256];
    } control;
    struct msghdr msg = {.msg_name = &s,
                         .msg_namelen = sizeof s,
                         .msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n;

    do {
        n = recvmsg(fd, &msg, 0);
    } while (n < 0 && errno == EINTR && !leat_cli_rtp_stopped);
    if (n >= 0) {
        *arrival = (leat_cli_arrival){.from = from_system(&s), .at = leat_clock_now()};
        read_control(&msg, arrival);
    }
    return n;
}

bool leat_cli_udp_send(int fd, const uint8_t *data, size_t len, const leat_addr *to)
{
    struct sockaddr_storage s;
    socklen_t n = to_system(to, &s);

    return sendto(fd, data, len, 0, (struct sockaddr *)&s, n) == (ssize_t)len;
}

leat_addr leat_cli_udp_local(int fd)
{
    struct sockaddr_storage s = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof s;

    getsockname(fd, (struct sockaddr *)&s, &len);
    return from_system(&s);
}
