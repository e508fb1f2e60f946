/* bench/work_twcc.c: `leat bench twcc`: transport-wide feedback, part by part: the same work as
 * micro_twcc's (bench/twcc_work.h), packets one a millisecond and a feedback every 100.
 *
 * SPDX-License-Identifier: MIT
 */
#include "twcc_work.h"

#include "bench.h"

enum { BATCHES = 50, OPERATIONS = BATCHES * LEAT_TWCC_WORK_BATCH };

/* Recording alone: nobody asks for the feedback, and the ring moves on. */
static void record(void *arg)
{
    leat_twcc_work *w = arg;

    for (int i = 0; i < BATCHES; i++) {
        leat_twcc_work_record(w);
        w->seq = (uint16_t)(w->seq + LEAT_TWCC_WORK_BATCH);
        w->now += 100 * LEAT_MILLISECOND;
    }
}

static void record_and_build(void *arg)
{
    leat_twcc_work *w = arg;

    for (int i = 0; i < BATCHES; i++) {
        leat_twcc_work_record(w);
        leat_twcc_work_build(w);
    }
}

static void parse(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        leat_twcc_work_parse(arg);
    }
}

static void sent(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        leat_twcc_work_sent(arg);
    }
}

static void sent_and_results(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        leat_twcc_work_sent_again(arg);
        leat_twcc_work_results(arg);
    }
}

void leat_bench_twcc(leat_bench *b)
{
    static leat_twcc_work recorder, receiver, reader, sender;
    leat_twcc_work *const all[] = {&recorder, &receiver, &reader, &sender};
    uint64_t count = leat_bench_or(b->options->count, OPERATIONS * 201);
    const leat_bench_piece pieces[] = {
        {"record", record, &recorder, OPERATIONS},
        {"record, and feedback every 100", record_and_build, &receiver, OPERATIONS},
        {"parse feedback on 100", parse, &reader, OPERATIONS},
        {"remember a sent packet", sent, &sender, OPERATIONS},
        {"remember, and results every 100", sent_and_results, &sender, OPERATIONS},
    };
    leat_mem *mem;

    leat_bench_must(leat_mem_new(NULL, &mem), "memory");
    for (int i = 0; i < 4; i++) {
        leat_bench_must(leat_twcc_work_init(all[i], mem, LEAT_TWCC_PATTERN_STEADY), "memory");
        leat_twcc_work_prepare(all[i]);
    }
    leat_bench_rounds(b, pieces, 5, (count + OPERATIONS - 1) / OPERATIONS);
    for (int i = 0; i < 4; i++) {
        leat_twcc_work_free(all[i]);
    }
    leat_mem_free(mem);
}
