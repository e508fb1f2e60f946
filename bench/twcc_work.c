/* bench/twcc_work.c: see twcc_work.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "twcc_work.h"

#include <stdlib.h>

const char *leat_twcc_pattern_text(leat_twcc_pattern pattern)
{
#define PATTERN_TEXT(name, text) text,
    static const char *const texts[] = {LEAT_TWCC_PATTERN_LIST(PATTERN_TEXT)};
#undef PATTERN_TEXT

    return pattern < LEAT_TWCC_PATTERNS ? texts[pattern] : "?";
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

/* Nanoseconds from one packet to the next. */
static uint32_t gap(leat_twcc_pattern pattern, uint64_t *state)
{
    switch (pattern) {
    case LEAT_TWCC_PATTERN_STEADY:
        return 1000000;
    case LEAT_TWCC_PATTERN_ROUGH:
        return random_below(state, 20) == 0 ? 100000000 : random_below(state, 4) * 200000;
    default:
        return 100000 + random_below(state, 2900000);
    }
}

static uint32_t loss(leat_twcc_pattern pattern)
{
    return pattern == LEAT_TWCC_PATTERN_LOSSY ? 3 : pattern == LEAT_TWCC_PATTERN_ROUGH ? 20 : 0;
}

static void make_batch(leat_twcc_batch *batch, leat_twcc_pattern pattern, uint64_t *state)
{
    uint32_t at = 0;
    uint16_t seq = 0;

    for (int i = 0; i < LEAT_TWCC_WORK_BATCH; i++) {
        at += gap(pattern, state);
        while (i > 0 && random_below(state, 100) < loss(pattern)) {
            seq++;
        }
        batch->seq[i] = seq++;
        batch->at[i] = at;
    }
    for (int i = 1; pattern == LEAT_TWCC_PATTERN_ROUGH && i < LEAT_TWCC_WORK_BATCH - 1; i++) {
        if (random_below(state, 20) == 0) { /* two change places */
            uint16_t s = batch->seq[i];

            batch->seq[i] = batch->seq[i - 1];
            batch->seq[i - 1] = s;
        }
    }
    batch->span = seq;
    batch->duration = at;
}

leat_err leat_twcc_work_init(leat_twcc_work *work, leat_mem *mem, leat_twcc_pattern pattern)
{
    uint64_t state = 1;
    leat_err err;

    *work = (leat_twcc_work){.now = LEAT_SECOND};
    for (int i = 0; i < LEAT_TWCC_WORK_OFFSETS; i++) {
        make_batch(&work->batches[i], pattern, &state);
    }
    err = leat_twcc_recorder_init(&work->recorder, mem, 1, 0);
    return err != LEAT_OK ? err : leat_twcc_sender_init(&work->sender, mem, 0);
}

void leat_twcc_work_free(leat_twcc_work *work)
{
    leat_twcc_recorder_free(&work->recorder);
    leat_twcc_sender_free(&work->sender);
}

static const leat_twcc_batch *batch_of(const leat_twcc_work *work)
{
    return &work->batches[work->turn % LEAT_TWCC_WORK_OFFSETS];
}

void leat_twcc_work_record(leat_twcc_work *work)
{
    const leat_twcc_batch *batch = batch_of(work);

    for (int i = 0; i < LEAT_TWCC_WORK_BATCH; i++) {
        leat_twcc_record(&work->recorder, 2, (uint16_t)(work->seq + batch->seq[i]),
                         work->now + batch->at[i]);
    }
}

void leat_twcc_work_build(leat_twcc_work *work)
{
    const leat_twcc_batch *batch = batch_of(work);

    work->feedback_len = leat_twcc_build(&work->recorder, work->feedback, LEAT_TWCC_WORK_MTU);
    if (work->feedback_len == 0 || leat_twcc_pending(&work->recorder)) {
        abort();
    }
    work->seq = (uint16_t)(work->seq + batch->span);
    work->now += batch->duration;
    work->turn++;
}

void leat_twcc_work_parse(leat_twcc_work *work)
{
    leat_twcc_iter it;
    size_t n;

    if (leat_twcc_parse((leat_span){work->feedback, work->feedback_len}, &it) != LEAT_OK) {
        abort();
    }
    while ((n = leat_twcc_read(&it, work->statuses, LEAT_TWCC_WORK_BATCH)) > 0) {
        work->sum += work->statuses[n - 1].arrival + work->statuses[n - 1].seq;
    }
}

void leat_twcc_work_sent(leat_twcc_work *work)
{
    const leat_twcc_batch *batch = batch_of(work);

    for (int i = 0; i < batch->span; i++) {
        work->sum += leat_twcc_sent(&work->sender, work->now + (leat_time)i, 1200);
    }
}

void leat_twcc_work_results(leat_twcc_work *work)
{
    leat_twcc_iter it;
    size_t n;

    if (leat_twcc_feedback(&work->sender, (leat_span){work->feedback, work->feedback_len}, &it) !=
        LEAT_OK) {
        abort();
    }
    n = leat_twcc_results(&work->sender, &it, work->results,
                          sizeof work->results / sizeof work->results[0]);
    if (n < LEAT_TWCC_WORK_BATCH) {
        abort();
    }
    work->sum += work->results[n - 1].arrived;
}

void leat_twcc_work_prepare(leat_twcc_work *work)
{
    leat_twcc_work_record(work);
    leat_twcc_work_build(work);
    work->feedback[12] = 0; /* the base */
    work->feedback[13] = 0;
    work->turn--;
}

void leat_twcc_work_sent_again(leat_twcc_work *work)
{
    leat_fb_history *sent = &work->sender.sent;

    sent->next &= ~(uint64_t)0xffff;
    sent->reported = sent->next;
    sent->in_flight = 0;
    leat_twcc_work_sent(work);
}
