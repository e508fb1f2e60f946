/* bench/work_estimate.c: `leat bench estimate`: what a bandwidth estimate costs: a feedback on 100
 * packets read, resolved by the sender's history, and taken by the estimator; and a packet
 * remembered by both when it is sent.
 *
 * A stream of some 50 s, a packet a millisecond, a little late each, one in 50 lost, and its
 * feedbacks are made before. A round reads all of them; before it, history and estimator are put
 * back to where they were.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <leat/estimate.h>
#include <leat/twcc.h>

#include "bench.h"

enum { FEEDBACKS = 500, BATCH = 100, PACKETS = FEEDBACKS * BATCH, MTU = 1200, HISTORY = 65536 };

typedef struct work {
    leat_twcc_sender sender, sender_before;
    leat_fb_sent ring[HISTORY];
    leat_estimate estimate, estimate_before;
    uint8_t feedback[FEEDBACKS][MTU];
    size_t len[FEEDBACKS];
    leat_time at[FEEDBACKS];
    leat_twcc_sender sending;
    leat_estimate sending_estimate;
    leat_time now;
} work;

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

static void make_stream(work *w, leat_mem *mem)
{
    leat_twcc_recorder recorder;
    leat_time now = LEAT_SECOND;
    uint64_t state = 1;

    leat_bench_must(leat_twcc_sender_init(&w->sender, mem, HISTORY), "memory");
    leat_bench_must(leat_twcc_sender_init(&w->sending, mem, 0), "memory");
    leat_bench_must(leat_twcc_recorder_init(&recorder, mem, 1, 0), "memory");
    leat_bench_must(leat_estimate_init(&w->estimate_before, NULL, NULL, NULL), "estimate");
    w->sending_estimate = w->estimate_before;
    leat_estimate_on_sent(&w->estimate_before, now, 1200);
    for (int i = 0; i < FEEDBACKS; i++) {
        for (int j = 0; j < BATCH; j++) {
            uint16_t seq = leat_twcc_sent(&w->sender, now, 1200);
            leat_time arrival = now + 20 * LEAT_MILLISECOND + random_below(&state, 500000);

            if (j == BATCH - 1 || random_below(&state, 50) != 0) {
                leat_twcc_record(&recorder, 2, seq, arrival);
            }
            now += LEAT_MILLISECOND;
        }
        w->len[i] = leat_twcc_build(&recorder, w->feedback[i], MTU);
        w->at[i] = now + 40 * LEAT_MILLISECOND;
    }
    w->sender_before = w->sender;
    memcpy(w->ring, w->sender.sent.ring, sizeof w->ring);
    w->now = now;
    leat_twcc_recorder_free(&recorder);
}

static void put_back(void *arg)
{
    work *w = arg;

    w->estimate = w->estimate_before;
    memcpy(w->sender_before.sent.ring, w->ring, sizeof w->ring);
    w->sender = w->sender_before;
}

static void read_all(void *arg)
{
    work *w = arg;
    leat_fb_result results[2 * BATCH];
    size_t total = 0;

    for (int i = 0; i < FEEDBACKS; i++) {
        leat_twcc_iter it;
        size_t n;

        leat_bench_must(leat_twcc_feedback(&w->sender, (leat_span){w->feedback[i], w->len[i]}, &it),
                        "feedback");
        n = leat_twcc_results(&w->sender, &it, results, 2 * BATCH);
        leat_estimate_on_results(&w->estimate, w->at[i], results, n);
        total += n;
    }
    if (total != PACKETS || w->estimate.acked_rate == 0) {
        leat_bench_fail("%zu of %d results", total, PACKETS);
    }
}

static void send_all(void *arg)
{
    work *w = arg;

    for (int i = 0; i < PACKETS; i++) {
        leat_twcc_sent(&w->sending, w->now, 1200);
        leat_estimate_on_sent(&w->sending_estimate, w->now, 1200);
        w->now += LEAT_MILLISECOND;
    }
}

void leat_bench_estimate(leat_bench *b)
{
    static work w;
    uint64_t count = leat_bench_or(b->options->count, FEEDBACKS * LEAT_BENCH_ROUNDS);
    const leat_bench_piece pieces[] = {
        {"feedback on 100, history, estimate", read_all, &w, FEEDBACKS},
        {"remember 100 sent packets", send_all, &w, FEEDBACKS},
    };
    leat_mem *mem;

    leat_bench_must(leat_mem_new(NULL, &mem), "memory");
    make_stream(&w, mem);
    b->prepare = put_back;
    leat_bench_rounds(b, pieces, 2, (count + FEEDBACKS - 1) / FEEDBACKS);
    leat_twcc_sender_free(&w.sender);
    leat_twcc_sender_free(&w.sending);
    leat_mem_free(mem);
}
