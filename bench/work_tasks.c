/* bench/work_tasks.c: `leat bench tasks`: posted by the owner, by another thread in bursts, one by
 * one and a burst as a whole, and each task scheduling itself again.
 *
 * The other thread's time is of both sides: from its first post of a burst of 256 until the owner,
 * turning without sleep, has run the last. post_ns and through_ns are medians of the bursts: what
 * posting takes, and until the last has run. An owner that spins pauses between two turns, as one
 * that polls its sockets does for longer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>

#include <leat/sched.h>

#include "bench.h"

enum { BURST = 256, BURSTS = 200, OPERATIONS = BURST * BURSTS, ROUNDS_MOST = 500 };

typedef struct tasks {
    leat_ctx *ctx;
    leat_task burst[2][BURST]; /* in turn: those of the last burst may be posted no more */
    leat_task again;
    uint64_t ran;      /* atomic for the other thread */
    uint32_t go, gone; /* atomic: rounds asked of the other thread, and done */
    bool whole;        /* for the next of these: a burst is posted by one call */
    leat_task *list[2][BURST];
} tasks;

/* Of the bursts of one way. */
typedef struct burst_times {
    uint64_t count;
    double post_ns[(ROUNDS_MOST + 1) * BURSTS], through_ns[(ROUNDS_MOST + 1) * BURSTS];
} burst_times;

static tasks t;
static burst_times singly, whole;

static void count_run(leat_task *task)
{
    (void)task;
    __atomic_store_n(&t.ran, t.ran + 1, __ATOMIC_RELEASE);
}

static void run_again(leat_task *task)
{
    leat_ctx_run_soon(t.ctx, task);
}

static void owner_soon(void *arg)
{
    (void)arg;
    for (int i = 0; i < BURSTS; i++) {
        for (int k = 0; k < BURST; k++) {
            leat_ctx_run_soon(t.ctx, &t.burst[0][k]);
        }
        leat_ctx_turn(t.ctx, 1);
    }
}

static void owner_post(void *arg)
{
    (void)arg;
    for (int i = 0; i < BURSTS; i++) {
        for (int k = 0; k < BURST; k++) {
            leat_ctx_post(t.ctx, &t.burst[0][k]);
        }
        leat_ctx_turn(t.ctx, 1);
    }
}

static void itself(void *arg)
{
    (void)arg;
    leat_ctx_run_soon(t.ctx, &t.again);
    for (int i = 0; i < OPERATIONS; i++) {
        leat_ctx_turn(t.ctx, 1);
    }
    leat_task_cancel(&t.again);
}

/* ---- from another thread ---- */

static void post_burst(int which)
{
    if (t.whole) {
        leat_ctx_post_all(t.ctx, t.list[which], BURST);
        return;
    }
    for (int k = 0; k < BURST; k++) {
        leat_ctx_post(t.ctx, &t.burst[which][k]);
    }
}

static void post_bursts(void)
{
    burst_times *times = t.whole ? &whole : &singly;
    uint64_t target = __atomic_load_n(&t.ran, __ATOMIC_ACQUIRE);

    for (int i = 0; i < BURSTS; i++) {
        leat_time start = leat_bench_clock();

        post_burst(i % 2);
        times->post_ns[times->count] = (double)(leat_bench_clock() - start) / BURST;
        target += BURST;
        while (__atomic_load_n(&t.ran, __ATOMIC_ACQUIRE) != target) {
        }
        times->through_ns[times->count++] = (double)(leat_bench_clock() - start) / BURST;
    }
}

static void *poster(void *arg)
{
    const uint64_t rounds = *(const uint64_t *)arg;

    for (uint64_t round = 1; round <= rounds; round++) {
        while (__atomic_load_n(&t.go, __ATOMIC_ACQUIRE) != round) {
        }
        post_bursts();
        __atomic_store_n(&t.gone, (uint32_t)round, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void other_thread(void *arg)
{
    const bool *as_a_whole = arg;
    uint32_t round = t.go + 1;

    t.whole = *as_a_whole;
    __atomic_store_n(&t.go, round, __ATOMIC_RELEASE);
    while (__atomic_load_n(&t.gone, __ATOMIC_ACQUIRE) != round) {
        leat_ctx_turn(t.ctx, 1);
        leat_bench_pause();
    }
}

static void add_times(leat_bench_row *row, burst_times *times)
{
    leat_bench_figure_add(row, "post_ns", leat_bench_quantile(times->post_ns, times->count, 0.5));
    leat_bench_figure_add(row, "through_ns",
                          leat_bench_quantile(times->through_ns, times->count, 0.5));
}

void leat_bench_tasks(leat_bench *b)
{
    static const bool no = false, yes = true;
    uint64_t rounds =
        (leat_bench_or(b->options->count, (uint64_t)OPERATIONS * 51) + OPERATIONS - 1) / OPERATIONS;
    uint64_t posts;
    pthread_t thread;
    const leat_bench_piece mine[] = {
        {"owner, in bursts of 256", owner_soon, NULL, OPERATIONS},
        {"owner, by post", owner_post, NULL, OPERATIONS},
        {"each scheduling itself", itself, NULL, OPERATIONS},
    };
    const leat_bench_piece other[] = {
        {"another thread, bursts", other_thread, (void *)(uintptr_t)&no, OPERATIONS},
        {"another thread, bursts as one", other_thread, (void *)(uintptr_t)&yes, OPERATIONS},
    };

    rounds = rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
    posts = 2 * (rounds + 1); /* and the warm-up */
    t = (tasks){.ran = 0};
    singly.count = whole.count = 0;
    leat_bench_must(leat_ctx_new(NULL, &t.ctx), "context");
    for (int k = 0; k < BURST; k++) {
        leat_task_init(&t.burst[0][k], t.ctx, count_run);
        leat_task_init(&t.burst[1][k], t.ctx, count_run);
        t.list[0][k] = &t.burst[0][k];
        t.list[1][k] = &t.burst[1][k];
    }
    leat_task_init(&t.again, t.ctx, run_again);
    leat_bench_rounds(b, mine, 3, rounds);
    if (pthread_create(&thread, NULL, poster, &posts) != 0) {
        leat_bench_fail("cannot start a thread");
    }
    leat_bench_rounds(b, other, 2, rounds);
    pthread_join(thread, NULL);
    add_times(&b->rows[3], &singly);
    add_times(&b->rows[4], &whole);
    leat_ctx_free(t.ctx);
}
