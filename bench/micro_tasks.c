/* bench/micro_tasks.c: what a task costs: queued and run by the owner, posting itself again, and
 * posted in bursts from another thread (to an owner that spins, and to one that sleeps on an
 * eventfd).
 *
 * "post" is the time in the posting thread alone; "through" is from the first post of a burst until
 * its last task has run. Each burst is timed by itself and the median of a round's bursts counts,
 * so that a neighbour on the machine disturbs little; shown are the best and the median of several
 * rounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/sched.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 256, BURSTS = 1000, ROUNDS = 9, SETS = 2 };

typedef struct result {
    double ns[ROUNDS];
} result;

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * LEAT_SECOND + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, result *r)
{
    qsort(r->ns, ROUNDS, sizeof(r->ns[0]), by_value);
    printf("%-44s best %7.2f ns   median %7.2f ns\n", name, r->ns[0], r->ns[ROUNDS / 2]);
}

static leat_task tasks[SETS][BURST];
static uint64_t ran;

static void count_run(leat_task *task)
{
    (void)task;
    __atomic_store_n(&ran, ran + 1, __ATOMIC_RELEASE);
}

static void run_again(leat_task *task)
{
    ran++;
    leat_ctx_run_soon(task->ctx, task);
}

static double owner_round(leat_ctx *ctx)
{
    uint64_t begin = clock_ns();
    for (int b = 0; b < BURSTS; b++) {
        for (int i = 0; i < BURST; i++) {
            leat_ctx_run_soon(ctx, &tasks[0][i]);
        }
        leat_ctx_turn(ctx, 1);
    }
    return (double)(clock_ns() - begin) / (BURSTS * BURST);
}

static double owner_post_round(leat_ctx *ctx)
{
    uint64_t begin = clock_ns();
    for (int b = 0; b < BURSTS; b++) {
        for (int i = 0; i < BURST; i++) {
            leat_ctx_post(ctx, &tasks[0][i]);
        }
        leat_ctx_turn(ctx, 1);
    }
    return (double)(clock_ns() - begin) / (BURSTS * BURST);
}

static double self_round(leat_ctx *ctx)
{
    leat_task task;
    leat_task_init(&task, ctx, run_again);
    leat_ctx_run_soon(ctx, &task);
    uint64_t begin = clock_ns();
    for (int i = 0; i < BURSTS * 16; i++) {
        leat_ctx_turn(ctx, 1);
    }
    double ns = (double)(clock_ns() - begin) / (BURSTS * 16);
    leat_task_cancel(&task);
    return ns;
}

typedef struct poster {
    leat_ctx *ctx;
    double post_ns[BURSTS];
    double through_ns[BURSTS];
    uint32_t done; /* atomic */
} poster;

static void *post_bursts(void *arg)
{
    poster *p = arg;
    uint64_t target = __atomic_load_n(&ran, __ATOMIC_ACQUIRE);
    for (int b = 0; b < BURSTS; b++) {
        uint64_t start = clock_ns();
        for (int i = 0; i < BURST; i++) {
            leat_ctx_post(p->ctx, &tasks[b % SETS][i]);
        }
        p->post_ns[b] = (double)(clock_ns() - start) / BURST;
        target += BURST;
        while (__atomic_load_n(&ran, __ATOMIC_ACQUIRE) != target) {
        }
        p->through_ns[b] = (double)(clock_ns() - start) / BURST;
    }
    __atomic_store_n(&p->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(values[0]), by_value);
    return values[n / 2];
}

static int wake_fd;
static uint64_t wakes;

static void wake_by_eventfd(void *user)
{
    (void)user;
    wakes++;
    uint64_t one = 1;
    if (write(wake_fd, &one, sizeof(one)) < 0) {
        abort();
    }
}

static void other_round(leat_ctx *ctx, bool sleeping, double *post_ns, double *through_ns)
{
    static poster p;
    p.ctx = ctx;
    p.done = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, post_bursts, &p);
    while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE)) {
        if (leat_ctx_turn(ctx, 1) == LEAT_TIME_NEVER && sleeping) {
            struct pollfd pfd = {.fd = wake_fd, .events = POLLIN};
            uint64_t count;
            if (poll(&pfd, 1, 1) > 0 && read(wake_fd, &count, sizeof(count)) < 0) {
                abort();
            }
        }
    }
    pthread_join(thread, NULL);
    *post_ns = median(p.post_ns, BURSTS);
    *through_ns = median(p.through_ns, BURSTS);
}

static leat_ctx *make_ctx(void (*wake)(void *))
{
    leat_ctx_settings settings;
    leat_ctx_settings_init(&settings);
    settings.wake = wake;
    leat_ctx *ctx;
    if (leat_ctx_new(&settings, &ctx) != LEAT_OK) {
        abort();
    }
    for (int s = 0; s < SETS; s++) {
        for (int i = 0; i < BURST; i++) {
            leat_task_init(&tasks[s][i], ctx, count_run);
        }
    }
    return ctx;
}

static void measure_owner(void)
{
    leat_ctx *ctx = make_ctx(NULL);
    result soon, post, self;
    owner_round(ctx); /* warm-up */
    for (int r = 0; r < ROUNDS; r++) {
        soon.ns[r] = owner_round(ctx);
        post.ns[r] = owner_post_round(ctx);
        self.ns[r] = self_round(ctx);
    }
    show("owner, run_soon and run", &soon);
    show("owner, post and run", &post);
    show("owner, one task a turn, itself again", &self);
    leat_ctx_free(ctx);
}

static void measure_other(bool sleeping)
{
    leat_ctx *ctx = make_ctx(sleeping ? wake_by_eventfd : NULL);
    result post, through;
    double ignore_post, ignore_through;
    other_round(ctx, sleeping, &ignore_post, &ignore_through);
    wakes = 0;
    for (int r = 0; r < ROUNDS; r++) {
        other_round(ctx, sleeping, &post.ns[r], &through.ns[r]);
    }
    show(sleeping ? "other thread, owner sleeps: post" : "other thread, owner spins: post", &post);
    show(sleeping ? "other thread, owner sleeps: through" : "other thread, owner spins: through",
         &through);
    if (sleeping) {
        printf("%-44s %.2f a burst of %d\n", "wake-ups", (double)wakes / (ROUNDS * BURSTS), BURST);
    }
    leat_ctx_free(ctx);
}

int main(void)
{
    wake_fd = eventfd(0, EFD_CLOEXEC);
    measure_owner();
    measure_other(false);
    measure_other(true);
    close(wake_fd);
    return 0;
}
