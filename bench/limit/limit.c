/* bench/limit/limit.c: the limit of bulk over UDP: a bare pair of processes, a core each, that do
 * what any QUIC on this machine has to do to every packet, and nothing else. The sender seals as
 * many packets as a send with segmentation offload takes and hands them to the kernel; the receiver
 * takes what the kernel has coalesced, removes header protection and opens. No acknowledgement, no
 * timer, no copy, no state of a connection. Packets are sealed by leat's own door to packet
 * protection, so the AEAD is the same.
 *
 * Nothing may be lost, or the sender's work would count that nobody received: the receiver counts
 * in memory that both see, and the sender keeps no more than WINDOW bytes ahead of it.
 *
 *     leat-limit [--bytes N] [--size N] [--no-crypto]
 *
 * Prints one line of JSON: the payload that the receiver opened, in which time, and CPU seconds of
 * both.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crypto/keys.h"
#include "mem/mem.h"
#include "wire/version.h"

#include "pair.h"

enum {
    CID = 8,
    PN = 2,
    HEADER = 1 + CID + PN,
    CALL_MOST = 65000, /* bytes a call: what UDP takes, less headers */
    PACKETS_MOST = 54, /* of the smallest datagrams */
    WINDOW = 1 << 20, /* bytes under way: well within the socket's buffer, and two calls at least */
    SOCKET = 8 << 20,
    SPINS = 4096,  /* looks at the receiver's count before the sender sleeps */
    POLLS = 64,    /* reads in vain before the receiver sleeps */
    NAP = 20000,   /* ns */
    PATIENCE = 10, /* seconds without progress */
};

typedef struct shared {
    _Alignas(64) _Atomic uint64_t received; /* bytes, opened */
    _Alignas(64) double cpu;                /* the receiver's, at its end */
    uint64_t calls;
} shared;

typedef struct pair {
    uint64_t bytes; /* to be moved, of datagrams */
    size_t size;
    bool crypto;
    int fd[2];
    shared *shared;
    leat_key_cache *cache;
    leat_packet_keys keys;
} pair;

static void open_sockets(pair *p)
{
    struct sockaddr_in addr[2];
    int room = SOCKET, on = 1, segment = (int)p->size;

    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof addr[i];

        addr[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        p->fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
        leat_limit_must(p->fd[i] >= 0 && bind(p->fd[i], (struct sockaddr *)&addr[i], len) == 0 &&
                            getsockname(p->fd[i], (struct sockaddr *)&addr[i], &len) == 0,
                        "socket");
        /* Beyond the sysctl where that is allowed; else what is granted. */
        if (setsockopt(p->fd[i], SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0) {
            setsockopt(p->fd[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        }
    }
    leat_limit_must(connect(p->fd[0], (struct sockaddr *)&addr[1], sizeof addr[1]) == 0, "connect");
    leat_limit_must(setsockopt(p->fd[0], SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0,
                    "GSO");
    leat_limit_must(setsockopt(p->fd[1], SOL_UDP, UDP_GRO, &on, sizeof on) == 0, "GRO");
}

/* ---- sender ---- */

static void seal(pair *p, uint8_t *data, size_t count, uint64_t pn)
{
    leat_seal_op ops[PACKETS_MOST];

    for (size_t i = 0; i < count; i++) {
        uint8_t *packet = data + i * p->size;

        packet[0] = LEAT_FIRST_FIXED | (PN - 1);
        packet[1 + CID] = (uint8_t)((pn + i) >> 8);
        packet[1 + CID + 1] = (uint8_t)(pn + i);
        ops[i] = (leat_seal_op){.packet = packet,
                                .pn = pn + i,
                                .header_len = HEADER,
                                .payload_len = (uint32_t)(p->size - HEADER - LEAT_AEAD_TAG),
                                .pn_len = PN};
    }
    leat_limit_must(leat_seal(p->cache, &p->keys, ops, count) == LEAT_OK, "seal");
}

/* The receiver has come so far that `end` bytes may have been sent. Polls for some microseconds and
 * then sleeps: what waits for longer than a core is idle must not be counted as work. */
static void wait_for_room(const pair *p, uint64_t end)
{
    static const struct timespec nap = {.tv_nsec = NAP};
    double patience = 0;

    for (uint64_t tries = 1;
         end > atomic_load_explicit(&p->shared->received, memory_order_acquire) + WINDOW; tries++) {
        if (tries > SPINS) {
            patience = patience > 0 ? patience : leat_limit_now() + PATIENCE;
            leat_limit_must(leat_limit_now() < patience,
                            "the receiver has stopped: datagrams were lost");
            nanosleep(&nap, NULL);
        }
    }
}

static void send_all(pair *p)
{
    static uint8_t data[CALL_MOST];
    size_t count = sizeof data / p->size < PACKETS_MOST ? sizeof data / p->size : PACKETS_MOST;
    uint64_t pn = 0, sent = 0;

    while (sent < p->bytes) {
        size_t len = count * p->size;

        if (p->crypto) {
            seal(p, data, count, pn);
        }
        wait_for_room(p, sent + len);
        leat_limit_must(send(p->fd[0], data, len, 0) == (ssize_t)len, "send");
        pn += count;
        sent += len;
    }
}

/* ---- receiver ---- */

static void open_packet(pair *p, uint8_t *packet, size_t len, uint64_t pn)
{
    leat_mask_op mask = {.sample = packet + 1 + CID + LEAT_PN_LEN_MAX};
    leat_open_op op = {.header = packet, .pn = pn};
    uint32_t truncated;

    leat_limit_must(leat_mask(p->cache, &p->keys, &mask, 1) == LEAT_OK, "mask");
    op.header_len = (uint32_t)(1 + CID + leat_hp_remove(packet, 1 + CID, mask.mask, &truncated));
    op.payload = packet + op.header_len;
    op.payload_len = (uint32_t)(len - op.header_len);
    leat_limit_must((uint16_t)pn == truncated, "a packet came out of order");
    leat_limit_must(leat_open(p->cache, &p->keys, &op, 1) == LEAT_OK && op.result == LEAT_OK,
                    "open");
}

/* What the kernel has: polled for, since to sleep and to be woken is the machine's cost and not the
 * packets'; but not for long. */
static ssize_t read_some(int fd, uint8_t *data, size_t room)
{
    for (int i = 0; i < POLLS; i++) {
        ssize_t n = recv(fd, data, room, MSG_DONTWAIT);

        if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            return n;
        }
    }
    return recv(fd, data, room, 0);
}

static void receive_all(pair *p)
{
    static uint8_t data[65536];
    uint64_t pn = 0, received = 0;

    while (received < p->bytes) {
        ssize_t n = read_some(p->fd[1], data, sizeof data);

        leat_limit_must(n > 0, "recv");
        for (size_t at = 0; p->crypto && at < (size_t)n; at += p->size) {
            open_packet(p, data + at, (size_t)n - at < p->size ? (size_t)n - at : p->size, pn++);
        }
        received += (uint64_t)n;
        p->shared->calls++;
        atomic_store_explicit(&p->shared->received, received, memory_order_release);
    }
    p->shared->cpu = leat_limit_cpu();
}

/* ---- both ---- */

static void make_keys(pair *p)
{
    static const uint8_t secret[LEAT_SECRET_MAX] = {0x6c, 0x65, 0x61, 0x74};
    leat_mem *mem;

    leat_limit_must(leat_mem_new(NULL, &mem) == LEAT_OK &&
                        leat_key_cache_new(mem, NULL, 0, &p->cache) == LEAT_OK,
                    "memory");
    leat_packet_keys_init(&p->keys);
    leat_packet_keys_set(&p->keys, leat_schedule_for(LEAT_VERSION_1), LEAT_AEAD_AES_128_GCM,
                         secret);
}

static void run(pair *p)
{
    double began = leat_limit_now(), seconds;
    pid_t child = fork();
    int status;

    leat_limit_must(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it polls: not without anybody who sends */
        leat_limit_stay_on(1);
        make_keys(p);
        receive_all(p);
        _exit(0);
    }
    leat_limit_stay_on(0);
    make_keys(p);
    send_all(p);
    leat_limit_must(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                        WEXITSTATUS(status) == 0,
                    "receiver");
    seconds = leat_limit_now() - began;
    printf("{\"bytes\": %.0f, \"seconds\": %.6f, \"cpu_sender\": %.6f, \"cpu_receiver\": %.6f, "
           "\"packets_a_read\": %.1f}\n",
           (double)p->shared->received / (double)p->size *
               (double)(p->size - HEADER - LEAT_AEAD_TAG),
           seconds, leat_limit_cpu(), p->shared->cpu,
           (double)p->shared->received / (double)p->size / (double)p->shared->calls);
}

int main(int argc, char **argv)
{
    pair p = {.bytes = UINT64_C(2000000000), .size = 1452, .crypto = true};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-crypto") == 0) {
            p.crypto = false;
        } else if (i + 1 < argc && strcmp(argv[i], "--bytes") == 0) {
            p.bytes = strtoull(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--size") == 0) {
            p.size = (size_t)strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: leat-limit [--bytes N] [--size N] [--no-crypto]\n");
            return 2;
        }
    }
    if (p.size < 1200 || p.size > 9000 || p.bytes == 0) {
        fprintf(stderr, "leat-limit: --size 1200 to 9000, --bytes not 0\n");
        return 2;
    }
    p.shared =
        mmap(NULL, sizeof *p.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    leat_limit_must(p.shared != MAP_FAILED, "memory");
    open_sockets(&p);
    run(&p);
    return 0;
}
