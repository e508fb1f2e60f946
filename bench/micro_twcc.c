/* micro_twcc: what transport-wide feedback costs, part by part.
 *
 *   micro_twcc [--count N] [--csv] [--pattern steady|jitter|lossy|rough]
 *
 * N packets (default 4,000,000) in batches of 100, a feedback a batch. A round times many batches
 * of one part; printed are the best and the median of the rounds, after one to warm up, in
 * nanoseconds of CPU time, and how often memory was asked of the system meanwhile (0). `both` times
 * record and build together, as a receiver does them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "twcc_work.h"

enum { ROUNDS = 41, BATCH = LEAT_TWCC_WORK_BATCH };

/* X(name, per, text): per is what one unit of the figure is, of the batch's 100 or of the batch */
#define PART_LIST(X)                                                                               \
    X(RECORD, BATCH, "record one packet")                                                          \
    X(BUILD, 1, "build the feedback on 100, as bytes")                                             \
    X(BOTH, 1, "record 100 and build their feedback")                                              \
    X(PARSE, 1, "parse a feedback on 100, every status")                                           \
    X(SENT, BATCH, "remember one sent packet")                                                     \
    X(RESULTS, 1, "feedback on 100 to per-packet results")

#define PART_ENUM(name, per, text) PART_##name,
typedef enum part { PART_LIST(PART_ENUM) PARTS } part;

#define PART_TEXT(name, per, text) text,
static const char *const part_texts[] = {PART_LIST(PART_TEXT)};
#define PART_PER(name, per, text) (double)(per),
static const double part_per[] = {PART_LIST(PART_PER)};
#define PART_NAME(name, per, text) #name,
static const char *const part_names[] = {PART_LIST(PART_NAME)};

typedef struct clockwork {
    uint64_t batches; /* a round */
    double ns[PARTS][ROUNDS];
} clockwork;

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double time_both(leat_twcc_work *w, uint64_t batches)
{
    double before = now_ns();

    for (uint64_t i = 0; i < batches; i++) {
        leat_twcc_work_record(w);
        leat_twcc_work_build(w);
    }
    return (now_ns() - before) / (double)batches;
}

/* Recording alone: the feedback is built outside the time taken, a batch of batches at once. */
static double time_record(leat_twcc_work *w, uint64_t batches)
{
    enum { GROUP = 16 };
    uint8_t out[LEAT_TWCC_WORK_MTU];
    double spent = 0;

    for (uint64_t i = 0; i < batches; i += GROUP) {
        double before = now_ns();

        for (int g = 0; g < GROUP; g++) {
            leat_twcc_work_record(w);
            w->seq = (uint16_t)(w->seq + w->batches[w->turn % LEAT_TWCC_WORK_OFFSETS].span);
            w->now += w->batches[w->turn % LEAT_TWCC_WORK_OFFSETS].duration;
            w->turn++;
        }
        spent += now_ns() - before;
        while (leat_twcc_build(&w->recorder, out, sizeof out)) {
        }
    }
    return spent / (double)batches;
}

static double time_part(leat_twcc_work *w, uint64_t batches, void (*run)(leat_twcc_work *work))
{
    double before = now_ns();

    for (uint64_t i = 0; i < batches; i++) {
        run(w);
    }
    return (now_ns() - before) / (double)batches;
}

/* Sending and results, in turns. The numbers begin at 0 each time, as the feedback's do. */
static double time_sender(leat_twcc_work *w, uint64_t batches)
{
    double before = now_ns();

    for (uint64_t i = 0; i < batches; i++) {
        leat_twcc_work_sent_again(w);
        leat_twcc_work_results(w);
    }
    return (now_ns() - before) / (double)batches;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run_round(clockwork *c, leat_twcc_work *w, int round)
{
    double both = time_both(w, c->batches);
    double record = time_record(w, c->batches), sent;

    c->ns[PART_RECORD][round] = record;
    c->ns[PART_BOTH][round] = both;
    leat_twcc_work_prepare(w);
    c->ns[PART_PARSE][round] = time_part(w, c->batches, leat_twcc_work_parse);
    sent = time_part(w, c->batches, leat_twcc_work_sent);
    c->ns[PART_SENT][round] = sent * BATCH / w->batches[w->turn % LEAT_TWCC_WORK_OFFSETS].span;
    c->ns[PART_RESULTS][round] = time_sender(w, c->batches);
}

static void run_pattern(leat_mem *mem, leat_twcc_pattern pattern, uint64_t count, bool csv)
{
    static leat_twcc_work w;
    static clockwork c;
    leat_mem_stats before, after;

    if (leat_twcc_work_init(&w, mem, pattern) != LEAT_OK) {
        abort();
    }
    c.batches = count / BATCH / ROUNDS + 1;
    run_round(&c, &w, 0);
    leat_mem_stats_get(mem, &before);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(&c, &w, round);
    }
    leat_mem_stats_get(mem, &after);
    if (!csv) {
        printf("%s\n", leat_twcc_pattern_text(pattern));
    }
    for (int p = 0; p < PARTS; p++) {
        qsort(c.ns[p], ROUNDS, sizeof c.ns[p][0], compare);
    }
    for (int round = 0; round < ROUNDS; round++) { /* best less best, median less median */
        c.ns[PART_BUILD][round] = c.ns[PART_BOTH][round] - c.ns[PART_RECORD][round];
        c.ns[PART_RESULTS][round] -= c.ns[PART_SENT][round] * w.batches[0].span / BATCH;
    }
    for (int p = 0; p < PARTS; p++) {
        if (csv) {
            printf("leat,%d,%s,%.2f,%.2f,%llu\n", pattern, part_names[p], c.ns[p][0] / part_per[p],
                   c.ns[p][ROUNDS / 2] / part_per[p],
                   (unsigned long long)(after.grown - before.grown));
        } else {
            printf("  %-40s %8.2f ns best %8.2f median %4llu allocations\n", part_texts[p],
                   c.ns[p][0] / part_per[p], c.ns[p][ROUNDS / 2] / part_per[p],
                   (unsigned long long)(after.grown - before.grown));
        }
    }
    leat_twcc_work_free(&w);
}

static int pattern_named(const char *name)
{
#define PATTERN_NAME(id, text) #id,
    static const char *const names[] = {LEAT_TWCC_PATTERN_LIST(PATTERN_NAME)};
#undef PATTERN_NAME

    for (int p = 0; p < LEAT_TWCC_PATTERNS; p++) {
        if (strcasecmp(name, names[p]) == 0) {
            return p;
        }
    }
    fprintf(stderr, "micro_twcc: no such pattern: %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t count = 4000000;
    bool csv = false;
    int only = -1;
    leat_mem *mem;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) {
            count = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--csv") == 0) {
            csv = true;
        } else if (strcmp(argv[i], "--pattern") == 0 && i + 1 < argc) {
            only = pattern_named(argv[++i]);
        } else {
            fprintf(stderr, "usage: micro_twcc [--count N] [--csv] [--pattern NAME]\n");
            return 2;
        }
    }
    if (leat_mem_new(NULL, &mem) != LEAT_OK) {
        return 1;
    }
    for (int p = 0; p < LEAT_TWCC_PATTERNS; p++) {
        if (only < 0 || only == p) {
            run_pattern(mem, (leat_twcc_pattern)p, count, csv);
        }
    }
    leat_mem_free(mem);
    return 0;
}
