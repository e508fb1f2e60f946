/* bench/work_udpip.c: `leat bench udpip`: packets through the IP and UDP layer alone: headers with
 * their checksums built before a payload, and read and checked again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "net/udpip.h"

#include "bench.h"

enum { BATCH = 2000, PACKET_MOST = 65535 };

typedef struct udpip {
    leat_udpip how;
    size_t size;
    size_t headers;
    uint8_t packet[LEAT_UDPIP_HEADERS_MAX + PACKET_MOST];
} udpip;

static void build(void *arg)
{
    udpip *u = arg;

    for (int i = 0; i < BATCH; i++) {
        leat_bench_opaque(u);
        leat_bench_must(leat_udpip_build(&u->how, u->packet + u->headers, u->size), "build");
    }
}

static void parse(void *arg)
{
    udpip *u = arg;

    for (int i = 0; i < BATCH; i++) {
        leat_udpip how;
        leat_span payload;

        leat_bench_opaque(u);
        leat_bench_must(leat_udpip_parse(u->packet, u->headers + u->size, &how, &payload), "parse");
        leat_bench_opaque(&how);
    }
}

void leat_bench_udpip(leat_bench *b)
{
    static udpip v4, v6;
    const leat_bench_options *o = b->options;
    uint64_t count = leat_bench_or(o->count, BATCH * LEAT_BENCH_ROUNDS);

    v4 = (udpip){.how = {{.family = 4, .port = 40000, .ip = {10, 0, 0, 1}},
                         {.family = 4, .port = 4433, .ip = {10, 0, 0, 2}},
                         LEAT_ECN_ECT0}};
    v6 = (udpip){.how = {{.family = 6, .port = 40000, .ip = {0xfd, [15] = 1}},
                         {.family = 6, .port = 4433, .ip = {0xfd, [15] = 2}},
                         LEAT_ECN_ECT0}};
    v4.size = v6.size = (size_t)leat_bench_or(o->size, 1252);
    if (v4.size > LEAT_IP4_UDP_PAYLOAD_MAX) {
        leat_bench_fail("--size: at most %d", LEAT_IP4_UDP_PAYLOAD_MAX);
    }
    v4.headers = LEAT_IP4_UDP_HEADERS;
    v6.headers = LEAT_IP6_UDP_HEADERS;
    memset(v4.packet, 0x5a, sizeof v4.packet);
    memset(v6.packet, 0x5a, sizeof v6.packet);
    build(&v4);
    build(&v6);
    const leat_bench_piece pieces[] = {
        {"build, IPv4", build, &v4, BATCH},
        {"read and check, IPv4", parse, &v4, BATCH},
        {"build, IPv6", build, &v6, BATCH},
        {"read and check, IPv6", parse, &v6, BATCH},
    };
    leat_bench_rounds(b, pieces, 4, (count + BATCH - 1) / BATCH);
}
