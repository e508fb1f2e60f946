/* bench/bench.c: runs a work, and measures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heap.h"

static const struct {
    const char *name, *unit;
    leat_bench_work_fn *run;
} works[] = {
#define WORK_ROW(name, unit, text) {#name, unit, leat_bench_##name},
    LEAT_BENCH_WORK_LIST(WORK_ROW)
#undef WORK_ROW
};

static jmp_buf failed;
static char why[256];
static bool counts;

/* Apart, so that nothing of the caller's is changed between setjmp() and a jump back. */
static leat_bench_err run_work(leat_bench_work_fn *run, leat_bench *b)
{
    if (setjmp(failed) != 0) {
        return LEAT_BENCH_FAILED;
    }
    run(b);
    leat_bench_report(b);
    return LEAT_BENCH_OK;
}

/* Whether the work has a link, which can be shaped and captured. */
static bool has_link(const char *work)
{
    static const char *const with[] = {"transfer", "handshake", "streams", "scale", "idle"};

    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        if (strcmp(with[i], work) == 0) {
            return true;
        }
    }
    return false;
}

static bool wants_link(const leat_bench_options *o)
{
    return o->quic_stack || o->delay > 0 || o->loss > 0 || o->rate > 0 || o->pcap || o->keylog;
}

leat_bench_err leat_bench_run(const char *work, const leat_bench_options *options)
{
    static leat_bench bench;

    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        if (strcmp(works[i].name, work) == 0) {
            if (wants_link(options) && !has_link(work)) {
                return LEAT_BENCH_NO_LINK;
            }
            bench = (leat_bench){.options = options, .work = works[i].name, .unit = works[i].unit};
            counts = leat_bench_heap_open();
            return run_work(works[i].run, &bench);
        }
    }
    return LEAT_BENCH_UNKNOWN;
}

const char *leat_bench_error(void)
{
    return why;
}

void leat_bench_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    longjmp(failed, 1);
}

void leat_bench_must(leat_err err, const char *what)
{
    if (err != LEAT_OK) {
        leat_bench_fail("%s: %s", what, leat_err_text(err));
    }
}

/* ---- measuring ---- */

static leat_time read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (leat_time)ts.tv_sec * LEAT_SECOND + (leat_time)ts.tv_nsec;
}

leat_time leat_bench_clock(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

leat_time leat_bench_cpu(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool leat_bench_counts(void)
{
    return counts;
}

void leat_bench_start(leat_bench *b)
{
    b->heap = leat_bench_heap_now();
    b->cpu = leat_bench_cpu();
    b->time = leat_bench_clock();
}

leat_bench_row *leat_bench_note(leat_bench *b, const char *name)
{
    leat_bench_row *row = &b->rows[b->row_count];

    if (b->row_count == LEAT_BENCH_ROWS) {
        leat_bench_fail("more than %d rows", LEAT_BENCH_ROWS);
    }
    b->row_count++;
    *row = (leat_bench_row){.operations = 1};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

leat_bench_row *leat_bench_stop(leat_bench *b, const char *name, uint64_t operations)
{
    leat_time time = leat_bench_clock();
    leat_time cpu = leat_bench_cpu();
    leat_bench_heap heap = leat_bench_heap_now();
    leat_bench_row *row = leat_bench_note(b, name);

    row->timed = true;
    row->operations = operations;
    row->time = time - b->time;
    row->cpu = cpu - b->cpu;
    for (unsigned i = 0; i < LEAT_BENCH_WHOSE; i++) {
        row->heap.calls[i] = heap.calls[i] - b->heap.calls[i];
        row->heap.bytes[i] = heap.bytes[i] - b->heap.bytes[i];
    }
    return row;
}

void leat_bench_figure_add(leat_bench_row *row, const char *name, double value)
{
    if (row->figure_count == LEAT_BENCH_FIGURES) {
        leat_bench_fail("more than %d figures", LEAT_BENCH_FIGURES);
    }
    row->figures[row->figure_count++] = (leat_bench_figure){name, value};
}

const char *leat_bench_size_text(uint64_t bytes, char out[LEAT_BENCH_SIZE_TEXT])
{
    const char *unit = bytes % 1048576 == 0 ? "M" : bytes % 1024 == 0 ? "k" : "";
    uint64_t n = *unit == 'M' ? bytes / 1048576 : *unit == 'k' ? bytes / 1024 : bytes;

    snprintf(out, LEAT_BENCH_SIZE_TEXT, "%llu%s", (unsigned long long)n, unit);
    return out;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double leat_bench_quantile(double *values, size_t n, double part)
{
    qsort(values, n, sizeof values[0], by_value);
    return n ? values[(size_t)(part * (double)(n - 1) + 0.5)] : 0;
}

/* ---- rounds of small pieces ---- */

enum { ROUNDS_MOST = 1001 };

typedef struct piece_sum {
    leat_time time, cpu;
    leat_bench_heap heap;
    double ns[ROUNDS_MOST], cpu_ns[ROUNDS_MOST]; /* an operation, round by round */
} piece_sum;

static piece_sum sums[LEAT_BENCH_PIECES];
static uint64_t rounds_done;
static double sorted[ROUNDS_MOST];

static void run_round(leat_bench *b, const leat_bench_piece *piece, piece_sum *sum, uint64_t round)
{
    leat_bench_heap heap;
    leat_time time, cpu;

    if (b->prepare) {
        b->prepare(piece->arg);
    }
    leat_bench_start(b);
    piece->run(piece->arg);
    time = leat_bench_clock() - b->time;
    cpu = leat_bench_cpu() - b->cpu;
    sum->time += time;
    sum->cpu += cpu;
    sum->ns[round] = (double)time / (double)piece->operations;
    sum->cpu_ns[round] = (double)cpu / (double)piece->operations;
    heap = leat_bench_heap_now();
    for (unsigned i = 0; i < LEAT_BENCH_WHOSE; i++) {
        sum->heap.calls[i] += heap.calls[i] - b->heap.calls[i];
        sum->heap.bytes[i] += heap.bytes[i] - b->heap.bytes[i];
    }
}

/* Another order for each round, the same in each run. What ran before leaves its own in the caches:
 * were the order always the same, each piece would have one and the same predecessor. */
static void shuffle(size_t *order, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        size_t other, moved = order[i - 1];

        *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        other = (size_t)(*state >> 33) % i;
        order[i - 1] = order[other];
        order[other] = moved;
    }
}

void leat_bench_rounds(leat_bench *b, const leat_bench_piece *pieces, size_t count, uint64_t rounds)
{
    size_t order[LEAT_BENCH_PIECES];
    uint64_t state = 1;

    if (count > LEAT_BENCH_PIECES) {
        leat_bench_fail("more than %d pieces", LEAT_BENCH_PIECES);
    }
    rounds = rounds ? rounds : LEAT_BENCH_ROUNDS;
    rounds = rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < count; i++) {
        if (b->prepare) {
            b->prepare(pieces[i].arg);
        }
        pieces[i].run(pieces[i].arg);
        order[i] = i;
    }
    for (uint64_t round = 0; round < rounds; round++) {
        shuffle(order, count, &state);
        for (size_t i = 0; i < count; i++) {
            run_round(b, &pieces[order[i]], &sums[order[i]], round);
        }
    }
    for (size_t i = 0; i < count; i++) {
        leat_bench_row *row = leat_bench_note(b, pieces[i].name);

        row->timed = true;
        row->operations = rounds * pieces[i].operations;
        row->time = sums[i].time;
        row->cpu = sums[i].cpu;
        row->heap = sums[i].heap;
        memcpy(sorted, sums[i].ns, sizeof sorted); /* its rounds keep their order */
        leat_bench_figure_add(row, "median_ns", leat_bench_quantile(sorted, rounds, 0.5));
        leat_bench_figure_add(row, "best_ns", sorted[0]);
    }
    rounds_done = rounds;
}

double leat_bench_rounds_ratio(size_t piece, size_t base, bool cpu)
{
    for (uint64_t i = 0; i < rounds_done; i++) {
        sorted[i] = cpu ? sums[piece].cpu_ns[i] / sums[base].cpu_ns[i]
                        : sums[piece].ns[i] / sums[base].ns[i];
    }
    return leat_bench_quantile(sorted, rounds_done, 0.5);
}
