/* bench/work_socket.c: `leat bench socket`: what the kernel's sockets cost on loopback, without
 * QUIC: both ends in one thread, so that the processor's work is counted and waking is not.
 *
 * UDP: a datagram there and back; one way in batches of up to 16; one way with segmentation offload
 * (one system call for up to 64 KiB of datagrams on each side). TCP: the same without batches.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { BATCH = 2000, WINDOW = 16, OFFLOAD_MOST = 60000, SIZE_MOST = 65000 };

typedef struct pair {
    int a, b;
    size_t size;
    size_t segments; /* with offload: datagrams a call */
} pair;

/* How many messages may wait in a socket's buffer. */
static int window(size_t size)
{
    size_t fit = 65536 / size;

    return fit > WINDOW ? WINDOW : fit > 1 ? (int)fit : 1;
}

static uint8_t bytes[65536];

static void must(bool good, const char *what)
{
    if (!good) {
        leat_bench_fail("%s: %s", what, strerror(errno));
    }
}

static struct sockaddr_in loopback(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

static void bind_and_learn(int fd, struct sockaddr_in *addr)
{
    socklen_t len = sizeof *addr;

    *addr = loopback();
    must(bind(fd, (struct sockaddr *)addr, len) == 0, "bind");
    must(getsockname(fd, (struct sockaddr *)addr, &len) == 0, "getsockname");
}

static pair open_udp(size_t size)
{
    pair p = {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_DGRAM, 0), size, 0};
    struct sockaddr_in a, b;
    int room = 4 << 20;

    must(p.a >= 0 && p.b >= 0, "socket");
    bind_and_learn(p.a, &a);
    bind_and_learn(p.b, &b);
    must(connect(p.a, (struct sockaddr *)&b, sizeof b) == 0, "connect");
    must(connect(p.b, (struct sockaddr *)&a, sizeof a) == 0, "connect");
    setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    setsockopt(p.b, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return p;
}

static pair open_tcp(size_t size)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pair p = {socket(AF_INET, SOCK_STREAM, 0), -1, size, 0};
    struct sockaddr_in addr;
    int on = 1;

    must(listener >= 0 && p.a >= 0, "socket");
    bind_and_learn(listener, &addr);
    must(listen(listener, 1) == 0, "listen");
    must(connect(p.a, (struct sockaddr *)&addr, sizeof addr) == 0, "connect");
    p.b = accept(listener, NULL, NULL);
    must(p.b >= 0, "accept");
    setsockopt(p.a, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(p.b, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
    return p;
}

static void close_pair(pair *p)
{
    close(p->a);
    close(p->b);
}

static void put(int fd, size_t n)
{
    must(send(fd, bytes, n, 0) == (ssize_t)n, "send");
}

/* n bytes: one datagram, or that much of a TCP stream. */
static void get(int fd, size_t n)
{
    size_t got = 0;

    while (got < n) {
        ssize_t some = recv(fd, bytes, n - got, 0);

        must(some > 0, "recv");
        got += (size_t)some;
    }
}

static void echo(void *arg)
{
    const pair *p = arg;

    for (int i = 0; i < BATCH; i++) {
        put(p->a, p->size);
        get(p->b, p->size);
        put(p->b, p->size);
        get(p->a, p->size);
    }
}

static void one_way(void *arg)
{
    const pair *p = arg;

    int some = window(p->size);

    for (int i = 0; i < BATCH; i += some) {
        for (int k = 0; k < some; k++) {
            put(p->a, p->size);
        }
        for (int k = 0; k < some; k++) {
            get(p->b, p->size);
        }
    }
}

static void one_way_offload(void *arg)
{
    const pair *p = arg;

    for (size_t i = 0; i < BATCH; i += p->segments) {
        put(p->a, p->size * p->segments);
        get(p->b, p->size * p->segments);
    }
}

static bool turn_offload_on(pair *p)
{
    int segment = (int)p->size, on = 1;

    p->segments = OFFLOAD_MOST / p->size < 64 ? OFFLOAD_MOST / p->size : 64; /* the kernel's most */
    return p->segments > 1 &&
           setsockopt(p->a, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0 &&
           setsockopt(p->b, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

static uint64_t rounds_of(const leat_bench *b)
{
    return (leat_bench_or(b->options->count, BATCH * 41) + BATCH - 1) / BATCH;
}

static void measure_udp(leat_bench *b, size_t size)
{
    pair plain = open_udp(size), offload = open_udp(size);
    size_t count = 3;

    if (!turn_offload_on(&offload)) {
        count = 2;
    }
    const leat_bench_piece pieces[] = {
        {"UDP echo", echo, &plain, BATCH},
        {"UDP one way", one_way, &plain, BATCH},
        {"UDP one way, GSO and GRO", one_way_offload, &offload,
         count == 3 ? (BATCH + offload.segments - 1) / offload.segments * offload.segments : 1},
    };
    leat_bench_rounds(b, pieces, count, rounds_of(b));
    close_pair(&plain);
    close_pair(&offload);
}

static void measure_tcp(leat_bench *b, size_t size)
{
    pair p = open_tcp(size);
    const leat_bench_piece pieces[] = {
        {"TCP echo", echo, &p, BATCH},
        {"TCP one way", one_way, &p, BATCH},
    };

    leat_bench_rounds(b, pieces, 2, rounds_of(b));
    close_pair(&p);
}

void leat_bench_socket(leat_bench *b)
{
    const char *proto = b->options->proto;
    size_t size = (size_t)leat_bench_or(b->options->size, 1200);

    if (size > SIZE_MOST) {
        leat_bench_fail("--size: at most %d", SIZE_MOST);
    }
    if (!proto || strcmp(proto, "udp") == 0) {
        measure_udp(b, size);
    }
    if (!proto || strcmp(proto, "tcp") == 0) {
        measure_tcp(b, size);
    }
}
