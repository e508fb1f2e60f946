/* bench/peers/peer.h: what the peers' programs share: clock, rounds, and the line of JSON that
 * bench/run.py reads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_PEER_H
#define LEAT_BENCH_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "malloc_count.h"

enum { PEER_ROUNDS = 51 };

static inline uint64_t peer_clock(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Processor time of all threads. */
static inline uint64_t peer_cpu(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void peer_must(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "peer: %s failed\n", what);
        exit(1);
    }
}

static inline int peer_by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

typedef struct peer_name {
    const char *peer, *version, *work, *name;
} peer_name;

/* Runs a round of so many operations, first to warm up, then PEER_ROUNDS times, and prints the
 * median time of one and the heap calls of all. */
static inline void peer_measure(peer_name name, void (*round)(void *arg), void *arg,
                                uint64_t operations)
{
    static double ns[PEER_ROUNDS];
    leat_malloc_count before, after;
    uint64_t cpu;

    round(arg);
    cpu = peer_cpu();
    before = leat_malloc_counted();
    for (int i = 0; i < PEER_ROUNDS; i++) {
        uint64_t start = peer_clock();

        round(arg);
        ns[i] = (double)(peer_clock() - start) / (double)operations;
    }
    after = leat_malloc_counted();
    cpu = peer_cpu() - cpu;
    qsort(ns, PEER_ROUNDS, sizeof ns[0], peer_by_value);
    printf("{\"peer\": \"%s\", \"version\": \"%s\", \"work\": \"%s\", \"name\": \"%s\", "
           "\"ns_per_op\": %.3f, \"cpu_ns_per_op\": %.3f, \"allocs_per_op\": %.4f}\n",
           name.peer, name.version, name.work, name.name, ns[PEER_ROUNDS / 2],
           (double)cpu / ((double)operations * PEER_ROUNDS),
           (double)(leat_malloc_total(after) - leat_malloc_total(before)) /
               ((double)operations * PEER_ROUNDS));
    fflush(stdout);
}

#endif
