/* bench/udp_echo.c: the least that a request over UDP can cost here, for bench/latency.py.
 *
 *     udp_echo server ADDR                              prints its port, echoes what comes
 *     udp_echo client ADDR PORT BYTES RATE SECONDS      prints one JSON object
 *
 * The client sends RATE datagrams a second, each at a time of its own, and times each from then to
 * its echo: as `leat perf client --requests --rate` does, so that neither hides what waited.
 * Sockets have room for what comes while a process is held up, as leat's have; one that is lost all
 * the same counts as slow as the slowest.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES_MOST = 65507, ROOM = 4 << 20 };

#define SECOND UINT64_C(1000000000)

static uint8_t data[BYTES_MOST];

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "udp_echo: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static struct sockaddr_in address(const char *ip, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};

    must(inet_pton(AF_INET, ip, &a.sin_addr) == 1, ip);
    return a;
}

/* A socket with as much room as the system allows, up to ROOM. */
static int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0), room = ROOM;

    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0 &&
             setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0,
         "socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room); /* who may */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    return fd;
}

static _Noreturn void serve(const char *ip)
{
    struct sockaddr_in a = address(ip, "0");
    socklen_t len = sizeof a;
    int fd = open_socket();

    must(bind(fd, (struct sockaddr *)&a, sizeof a) == 0, "bind");
    must(getsockname(fd, (struct sockaddr *)&a, &len) == 0, "getsockname");
    printf("%u\n", ntohs(a.sin_port));
    fflush(stdout);
    for (;;) {
        ssize_t n;

        len = sizeof a;
        n = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&a, &len);
        if (n >= 0) {
            sendto(fd, data, (size_t)n, 0, (struct sockaddr *)&a, len);
        }
    }
}

/* ---- the client ---- */

typedef struct client {
    int fd;
    size_t bytes;
    uint64_t began, total, sent, got;
    double gap;      /* nanoseconds between two */
    uint64_t *times; /* of those that came back */
} client;

static uint64_t due(const client *c, uint64_t n)
{
    return c->began + (uint64_t)((double)n * c->gap);
}

static void send_due(client *c)
{
    while (c->sent < c->total && due(c, c->sent) <= now()) {
        memcpy(data, &c->sent, sizeof c->sent);
        (void)!send(c->fd, data, c->bytes, 0);
        c->sent++;
    }
}

static void take_echoes(client *c)
{
    uint64_t n;

    while (recv(c->fd, data, sizeof data, MSG_DONTWAIT) == (ssize_t)c->bytes) {
        memcpy(&n, data, sizeof n);
        if (n < c->total && c->got < c->total) {
            c->times[c->got++] = now() - due(c, n);
        }
    }
}

static void wait_for_more(const client *c, uint64_t until)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    uint64_t next = c->sent < c->total ? due(c, c->sent) : until, at = now();
    uint64_t left = next > at ? next - at : 0;
    struct timespec ts = {.tv_sec = (time_t)(left / SECOND), .tv_nsec = (long)(left % SECOND)};

    ppoll(&p, 1, &ts, NULL);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Of all that were sent. */
static double quantile_us(const client *c, double part)
{
    size_t at = (size_t)(part * (double)(c->sent - 1));

    return c->got > 0 ? (double)c->times[at < c->got ? at : c->got - 1] / 1e3 : 0;
}

static int ask(char **argv)
{
    struct sockaddr_in a = address(argv[0], argv[1]);
    double rate = strtod(argv[3], NULL), seconds = strtod(argv[4], NULL);
    client c = {.fd = open_socket(), .bytes = strtoul(argv[2], NULL, 10)};
    uint64_t until;

    must(c.bytes >= sizeof c.sent && c.bytes <= BYTES_MOST && rate > 0 && seconds > 0, "arguments");
    must(connect(c.fd, (struct sockaddr *)&a, sizeof a) == 0, "connect");
    c.gap = 1e9 / rate;
    c.total = (uint64_t)(rate * seconds);
    c.times = calloc(c.total + 1, sizeof *c.times);
    must(c.times != NULL, "memory");
    c.began = now();
    until = due(&c, c.total) + SECOND;
    while (c.got < c.total && now() < until) {
        send_due(&c);
        take_echoes(&c);
        if (c.got < c.total) {
            wait_for_more(&c, until);
        }
    }
    qsort(c.times, c.got, sizeof *c.times, by_value);
    printf("{\"sent\": %llu, \"echoed\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"p99_9_us\": %.1f}\n",
           (unsigned long long)c.sent, (unsigned long long)c.got, quantile_us(&c, 0.5),
           quantile_us(&c, 0.99), quantile_us(&c, 0.999));
    free(c.times);
    close(c.fd);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "server") == 0) {
        serve(argv[2]);
    }
    if (argc == 7 && strcmp(argv[1], "client") == 0) {
        return ask(argv + 2);
    }
    fprintf(stderr, "usage: udp_echo server ADDR | client ADDR PORT BYTES RATE SECONDS\n");
    return 2;
}
