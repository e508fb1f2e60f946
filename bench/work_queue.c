/* bench/work_queue.c: `leat bench queue`: the batch queue that datagrams reach a connection by.
 * Elements of 32 bytes: one in and one out; 64 in, drained for a batch; a batch handed over.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/queue.h"

#include "bench.h"

enum { BATCH = 64, CYCLES = 256 };

typedef struct element {
    void *packet;
    uint64_t values[3];
} element;

typedef struct queues {
    leat_queue queue, batch;
    uint64_t sum; /* of what came out, so that it has to */
} queues;

static void put(queues *q, leat_queue *to, uint64_t value)
{
    element *e = leat_queue_push(to);

    if (!e) {
        leat_bench_fail("out of memory");
    }
    *e = (element){q, {value, value, value}};
}

static void take_all(queues *q, leat_queue *from)
{
    const element *e;

    while ((e = leat_queue_pop(from)) != NULL) {
        q->sum += e->values[1];
    }
}

static void one_by_one(void *arg)
{
    queues *q = arg;

    for (unsigned i = 0; i < CYCLES * BATCH; i++) {
        put(q, &q->queue, i);
        q->sum += ((const element *)leat_queue_pop(&q->queue))->values[1];
    }
}

static void drained(void *arg)
{
    queues *q = arg;

    for (unsigned c = 0; c < CYCLES; c++) {
        for (unsigned i = 0; i < BATCH; i++) {
            put(q, &q->queue, i);
        }
        leat_bench_must(leat_queue_drain(&q->queue, &q->batch), "drain");
        take_all(q, &q->batch);
    }
}

static void handed_over(void *arg)
{
    queues *q = arg;

    for (unsigned c = 0; c < CYCLES; c++) {
        for (unsigned i = 0; i < BATCH; i++) {
            put(q, &q->batch, i);
        }
        leat_bench_must(leat_queue_append(&q->queue, &q->batch), "append");
        take_all(q, &q->queue);
    }
}

void leat_bench_queue(leat_bench *b)
{
    static queues q;
    uint64_t count = leat_bench_or(b->options->count, BATCH * CYCLES * LEAT_BENCH_ROUNDS);
    leat_mem *mem;
    const leat_bench_piece pieces[] = {
        {"push, pop", one_by_one, &q, BATCH * CYCLES},
        {"64 drained for a batch", drained, &q, BATCH * CYCLES},
        {"batch of 64 handed over", handed_over, &q, BATCH * CYCLES},
    };

    leat_bench_must(leat_mem_new(NULL, &mem), "memory");
    leat_queue_init(&q.queue, mem, sizeof(element));
    leat_queue_init(&q.batch, mem, sizeof(element));
    leat_bench_rounds(b, pieces, 3, (count + BATCH * CYCLES - 1) / (BATCH * CYCLES));
    leat_queue_free(&q.queue);
    leat_queue_free(&q.batch);
    leat_mem_free(mem);
}
