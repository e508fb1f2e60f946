/* bench/micro_queue.c: what the batch queue costs for one element of 32 bytes.
 *
 *   push, pop      one in, one out
 *   batch          64 in, the whole drained into a batch, 64 out of that
 *   hand over      64 into a batch, the batch appended to a queue that has room, 64 out of that
 *   list           64 in, 64 out of a linked list with a malloc for each: what the queue spares
 *
 * Printed is the best of many rounds, in nanoseconds an element, and how often memory was asked of
 * the system after the warm-up: 0.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mem/queue.h"

#define BATCH  64u
#define CYCLES 256u /* a round */
#define ROUNDS 201u

typedef struct element {
    void *packet;
    uint64_t values[3];
} element;

typedef struct node {
    struct node *next;
    element element;
} node;

typedef struct bench {
    leat_queue queue;
    leat_queue batch;
    uint64_t sum; /* of what came out, so that it has to */
} bench;

static void fill(leat_queue *q)
{
    for (unsigned i = 0; i < BATCH; i++) {
        element *e = (element *)leat_queue_push(q);

        if (!e) {
            abort();
        }
        *e = (element){.packet = q, .values = {i, i, i}};
    }
}

static void empty(bench *b, leat_queue *q)
{
    element *e;

    while ((e = (element *)leat_queue_pop(q)) != NULL) {
        b->sum += e->values[1];
    }
}

static void push_pop(bench *b)
{
    for (unsigned c = 0; c < CYCLES * BATCH; c++) {
        element *e = (element *)leat_queue_push(&b->queue);

        if (!e) {
            abort();
        }
        *e = (element){.packet = b, .values = {c, c, c}};
        e = (element *)leat_queue_pop(&b->queue);
        b->sum += e->values[1];
    }
}

static void drain(bench *b)
{
    for (unsigned c = 0; c < CYCLES; c++) {
        fill(&b->queue);
        (void)leat_queue_drain(&b->queue, &b->batch);
        empty(b, &b->batch);
    }
}

static void hand_over(bench *b)
{
    for (unsigned c = 0; c < CYCLES; c++) {
        fill(&b->batch);
        (void)leat_queue_append(&b->queue, &b->batch);
        empty(b, &b->queue);
    }
}

static void malloc_list(bench *b)
{
    for (unsigned c = 0; c < CYCLES; c++) {
        node *first = NULL;
        node **last = &first;

        for (unsigned i = 0; i < BATCH; i++) {
            node *n = (node *)malloc(sizeof *n);

            if (!n) {
                abort();
            }
            n->element = (element){.packet = b, .values = {i, i, i}};
            n->next = NULL;
            *last = n;
            last = &n->next;
        }
        while (first) {
            node *next = first->next;

            b->sum += first->element.values[1];
            free(first);
            first = next;
        }
    }
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(bench *b);
    } ways[] = {
        {"push, pop", push_pop},
        {"batch", drain},
        {"hand over", hand_over},
        {"list", malloc_list},
    };
    double best[LEAT_COUNT_OF(ways)];
    leat_mem_stats before;
    leat_mem_stats after;
    leat_mem *mem;
    bench b = {.sum = 0};

    if (leat_mem_new(NULL, &mem) != LEAT_OK) {
        return 1;
    }
    leat_queue_init(&b.queue, mem, sizeof(element));
    leat_queue_init(&b.batch, mem, sizeof(element));
    for (unsigned w = 0; w < LEAT_COUNT_OF(ways); w++) {
        best[w] = HUGE_VAL;
        ways[w].run(&b);
    }
    leat_mem_stats_get(mem, &before);
    for (unsigned r = 0; r < ROUNDS; r++) {
        for (unsigned w = 0; w < LEAT_COUNT_OF(ways); w++) {
            double start = now_ns();
            double ns;

            ways[w].run(&b);
            ns = (now_ns() - start) / (CYCLES * BATCH);
            best[w] = ns < best[w] ? ns : best[w];
        }
    }
    leat_mem_stats_get(mem, &after);
    for (unsigned w = 0; w < LEAT_COUNT_OF(ways); w++) {
        printf("%-10s %6.2f ns an element\n", ways[w].name, best[w]);
    }
    printf("memory asked of the system meanwhile: %llu times (sum %llu)\n",
           (unsigned long long)(after.grown - before.grown), (unsigned long long)b.sum);
    leat_queue_free(&b.queue);
    leat_queue_free(&b.batch);
    leat_mem_free(mem);
    return 0;
}
