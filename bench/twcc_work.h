/* bench/twcc_work.h: the work that TWCC benchmarks time, on the public interface alone, so that
 * micro_twcc and `leat bench twcc` time the same code.
 *
 * A leat_twcc_work holds a recorder and a sender, and what arrives: batches of 100 packets. Each
 * function does its part for one batch; the caller times many. They take no memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_TWCC_WORK_H
#define LEAT_BENCH_TWCC_WORK_H

#include <leat/twcc.h>

enum {
    LEAT_TWCC_WORK_BATCH = 100,
    LEAT_TWCC_WORK_MTU = 1200,
    LEAT_TWCC_WORK_OFFSETS = 64, /* batches until the pattern repeats */
};

/* How packets arrive: X(name, text) */
#define LEAT_TWCC_PATTERN_LIST(X)                                                                  \
    X(STEADY, "one a millisecond, none lost")                                                      \
    X(JITTER, "0.1 to 3 ms apart, none lost")                                                      \
    X(LOSSY, "0.1 to 3 ms apart, 3 % lost")                                                        \
    X(ROUGH, "bursts, pauses of 100 ms, 20 % lost, some late")

#define LEAT_TWCC_PATTERN_ENUM(name, text) LEAT_TWCC_PATTERN_##name,
typedef enum leat_twcc_pattern {
    LEAT_TWCC_PATTERN_LIST(LEAT_TWCC_PATTERN_ENUM) LEAT_TWCC_PATTERNS
} leat_twcc_pattern;
#undef LEAT_TWCC_PATTERN_ENUM

const char *leat_twcc_pattern_text(leat_twcc_pattern pattern);

/* One batch: what arrives, by number and time within the batch. */
typedef struct leat_twcc_batch {
    uint16_t seq[LEAT_TWCC_WORK_BATCH];
    uint32_t at[LEAT_TWCC_WORK_BATCH]; /* ns */
    uint16_t span;                     /* numbers that it covers */
    uint32_t duration;
} leat_twcc_batch;

typedef struct leat_twcc_work {
    leat_twcc_recorder recorder;
    leat_twcc_sender sender;
    leat_time now;
    uint16_t seq;
    unsigned turn;
    leat_twcc_batch batches[LEAT_TWCC_WORK_OFFSETS];
    uint8_t feedback[2 * LEAT_TWCC_WORK_MTU];
    size_t feedback_len;
    leat_twcc_status statuses[LEAT_TWCC_WORK_BATCH];
    leat_fb_result results[8 * LEAT_TWCC_WORK_BATCH];
    uint64_t sum; /* of what came out, so that it has to */
} leat_twcc_work;

/* LEAT_ERR_NOMEM. Free with leat_twcc_work_free(), also after an error. */
leat_err leat_twcc_work_init(leat_twcc_work *work, leat_mem *mem, leat_twcc_pattern pattern);
void leat_twcc_work_free(leat_twcc_work *work);

void leat_twcc_work_record(leat_twcc_work *work);  /* 100 packets */
void leat_twcc_work_build(leat_twcc_work *work);   /* the feedback on them, as bytes */
void leat_twcc_work_parse(leat_twcc_work *work);   /* the feedback built last, all its statuses */
void leat_twcc_work_sent(leat_twcc_work *work);    /* remembers as many packets as a batch covers */
void leat_twcc_work_results(leat_twcc_work *work); /* the feedback built last, to results */

/* Makes a feedback whose first number is 0, and sends what it answers, numbered from 0: results can
 * then be had for it, again and again. */
void leat_twcc_work_prepare(leat_twcc_work *work);
void leat_twcc_work_sent_again(leat_twcc_work *work);

#endif
