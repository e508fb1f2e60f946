/* bench/micro_buf.c: what a buffer costs, against malloc.
 *
 * For each size from 64 B to 32 KiB, two patterns: take and release one at a time, and take 64,
 * then release 64 in the order taken. Nothing is written to the bytes, on either side. The ways
 * compared run in turn, round by round, after a warm-up; printed is the best round of each, in
 * nanoseconds for a pair of take and release: what the machine's other work adds is noise. inline
 * leat_buf_take_fast(), as the packet's way has it call     leat_buf_take(), as an application has
 * it malloc   malloc() and free() of whatever library is loaded: preload jemalloc or mimalloc to
 * compare
 *
 * Usage: micro_buf [rounds]
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mem/fast.h"

#define BATCH      64u
#define ROUNDS_MAX 1001u
#define PAIRS      (BATCH * 256u) /* a round */

typedef struct bench {
    leat_mem *mem;
    size_t size;
    leat_buf bufs[BATCH];
    void *blocks[BATCH];
} bench;

/* Tells the compiler that what p points to is looked at, so that no pair is left out. */
static inline void looked_at(void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

static void inline_one(bench *b)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        leat_buf buf;

        (void)leat_buf_take_fast(b->mem, b->size, &buf);
        looked_at(buf.data);
        leat_buf_release_fast(&buf);
    }
}

static void call_one(bench *b)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        leat_buf buf;

        (void)leat_buf_take(b->mem, b->size, &buf);
        looked_at(buf.data);
        leat_buf_release(&buf);
    }
}

static void malloc_one(bench *b)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        void *p = malloc(b->size);

        looked_at(p);
        free(p);
    }
}

static void inline_many(bench *b)
{
    for (unsigned i = 0; i < PAIRS / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            (void)leat_buf_take_fast(b->mem, b->size, &b->bufs[k]);
            looked_at(b->bufs[k].data);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            leat_buf_release_fast(&b->bufs[k]);
        }
    }
}

static void call_many(bench *b)
{
    for (unsigned i = 0; i < PAIRS / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            (void)leat_buf_take(b->mem, b->size, &b->bufs[k]);
            looked_at(b->bufs[k].data);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            leat_buf_release(&b->bufs[k]);
        }
    }
}

static void malloc_many(bench *b)
{
    for (unsigned i = 0; i < PAIRS / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            b->blocks[k] = malloc(b->size);
            looked_at(b->blocks[k]);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            free(b->blocks[k]);
        }
    }
}

typedef void way_fn(bench *b);

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Runs the ways in turn, each round beginning with another, and prints the best of each. */
static void compare(bench *b, way_fn *const ways[3], unsigned rounds)
{
    double best[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};

    for (unsigned w = 0; w < 3; w++) {
        ways[w](b);
    }
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned w = 0; w < 3; w++) {
            unsigned which = (w + r) % 3;
            double start = now_ns();
            double ns;

            ways[which](b);
            ns = (now_ns() - start) / PAIRS;
            best[which] = ns < best[which] ? ns : best[which];
        }
    }
    for (unsigned w = 0; w < 3; w++) {
        printf(" %8.2f", best[w]);
    }
}

int main(int argc, char **argv)
{
    static way_fn *const one[3] = {inline_one, call_one, malloc_one};
    static way_fn *const many[3] = {inline_many, call_many, malloc_many};
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 201;
    static bench b;

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "micro_buf: rounds: 1 to %u\n", ROUNDS_MAX);
        return 2;
    }
    if (leat_mem_new(NULL, &b.mem) != LEAT_OK) {
        fprintf(stderr, "micro_buf: out of memory\n");
        return 1;
    }
    printf("ns a take and release     one at a time              64, then 64\n");
    printf("%8s   %8s %8s %8s   %8s %8s %8s\n", "bytes", "inline", "call", "malloc", "inline",
           "call", "malloc");
    for (b.size = 64; b.size <= 32768; b.size *= 2) {
        printf("%8zu  ", b.size);
        compare(&b, one, rounds);
        printf("  ");
        compare(&b, many, rounds);
        printf("\n");
    }
    leat_mem_free(b.mem);
    return 0;
}
