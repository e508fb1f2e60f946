/* Posting: from the owner's thread and from others; no post lost, none doubled, each thread's in
 * order, one wake-up for a burst. Meant for ThreadSanitizer too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched_fixture.h"

#include <pthread.h>
#include <sched.h>

static void count_wake(void *user)
{
    __atomic_fetch_add((uint32_t *)user, 1, __ATOMIC_RELAXED);
}

static leat_ctx *new_waking_ctx(uint32_t *wakes)
{
    leat_ctx_settings settings;
    leat_ctx_settings_init(&settings);
    settings.wake = count_wake;
    settings.user = wakes;
    leat_ctx *ctx;
    assert_int_equal(leat_ctx_new(&settings, &ctx), LEAT_OK);
    return ctx;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void posted_tasks_run_in_order_behind_those_queued(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[4];
    for (int i = 0; i < 4; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    assert_true(leat_ctx_post(ctx, &t[1].task));
    assert_true(leat_ctx_post(ctx, &t[2].task));
    assert_true(leat_ctx_post(ctx, &t[3].task));
    leat_ctx_run_soon(ctx, &t[0].task);
    assert_int_equal(leat_ctx_deadline(ctx), leat_ctx_now(ctx));
    assert_int_equal(leat_ctx_turn(ctx, 1), LEAT_TIME_NEVER);
    assert_journal(&j, 0, 1, 2, 3);
    leat_ctx_free(ctx);
}

static void second_post_is_refused_until_taken_in(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t;
    noting_init(&t, ctx, &j, 1);
    assert_true(leat_ctx_post(ctx, &t.task));
    assert_true(leat_task_queued(&t.task));
    assert_false(leat_ctx_post(ctx, &t.task));
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 1);
    assert_true(leat_ctx_post(ctx, &t.task));
    leat_ctx_turn(ctx, 2);
    assert_journal(&j, 1);
    leat_ctx_free(ctx);
}

static void task_queued_and_posted_runs_once(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[3];
    for (int i = 0; i < 3; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    leat_ctx_run_soon(ctx, &t[0].task);
    leat_ctx_run_soon(ctx, &t[1].task);
    assert_true(leat_ctx_post(ctx, &t[2].task));
    assert_true(leat_ctx_post(ctx, &t[0].task));
    assert_int_equal(leat_ctx_turn(ctx, 1), LEAT_TIME_NEVER);
    assert_journal(&j, 0, 1, 2);
    check_ctx(ctx);
    leat_ctx_free(ctx);
}

static void tasks_posted_together_run_in_order_but_for_those_posted_already(void **state)
{
    (void)state;
    uint32_t wakes = 0;
    leat_ctx *ctx = new_waking_ctx(&wakes);
    journal j = {.count = 0};
    noting_task t[6];
    leat_task *all[7];
    for (int i = 0; i < 6; i++) {
        noting_init(&t[i], ctx, &j, i);
        all[i] = &t[i].task;
    }
    all[6] = all[2]; /* once more */
    assert_int_equal(leat_ctx_post_all(ctx, all, 0), 0);
    assert_int_equal(wakes, 0);
    assert_true(leat_ctx_post(ctx, &t[3].task));
    assert_int_equal(leat_ctx_post_all(ctx, all, 7), 5);
    assert_int_equal(leat_ctx_post_all(ctx, all, 7), 0);
    assert_int_equal(wakes, 1);
    assert_true(leat_ctx_post(ctx, &t[0].task) == false);
    assert_int_equal(leat_ctx_turn(ctx, 1), LEAT_TIME_NEVER);
    assert_journal(&j, 3, 0, 1, 2, 4, 5);
    assert_int_equal(leat_ctx_post_all(ctx, all, 6), 6);
    assert_int_equal(wakes, 2);
    assert_true(leat_task_cancel(&t[1].task));
    assert_true(leat_task_cancel(&t[5].task));
    check_ctx(ctx);
    leat_ctx_turn(ctx, 2);
    assert_journal(&j, 0, 2, 3, 4);
    leat_ctx_free(ctx);
}

static void posted_task_can_be_cancelled(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task t[3];
    for (int i = 0; i < 3; i++) {
        noting_init(&t[i], ctx, &j, i);
        assert_true(leat_ctx_post(ctx, &t[i].task));
    }
    assert_true(leat_task_cancel(&t[1].task));
    assert_false(leat_task_queued(&t[1].task));
    assert_false(leat_task_cancel(&t[1].task));
    check_ctx(ctx);
    leat_ctx_turn(ctx, 1);
    assert_journal(&j, 0, 2);
    leat_ctx_free(ctx);
}

static void post_itself(noting_task *self)
{
    assert_true(leat_ctx_post(self->task.ctx, &self->task));
}

static void task_that_posts_itself_runs_once_a_turn(void **state)
{
    (void)state;
    uint32_t wakes = 0;
    leat_ctx *ctx = new_waking_ctx(&wakes);
    journal j = {.count = 0};
    noting_task t;
    noting_init(&t, ctx, &j, 1);
    t.then = post_itself;
    leat_ctx_run_soon(ctx, &t.task);
    assert_int_equal(leat_ctx_turn(ctx, 4), 4);
    assert_journal(&j, 1);
    assert_int_equal(leat_ctx_turn(ctx, 5), 5);
    assert_journal(&j, 1);
    assert_int_equal(wakes, 0); /* the owner was awake all the time */
    assert_true(leat_task_cancel(&t.task));
    leat_ctx_free(ctx);
}

static void burst_wakes_a_sleeping_owner_once(void **state)
{
    (void)state;
    uint32_t wakes = 0;
    leat_ctx *ctx = new_waking_ctx(&wakes);
    journal j = {.count = 0};
    noting_task t[8];
    for (int i = 0; i < 8; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    for (int burst = 1; burst <= 3; burst++) {
        for (int i = 0; i < 8; i++) {
            leat_ctx_post(ctx, &t[i].task);
        }
        assert_int_equal(wakes, burst);
        leat_ctx_turn(ctx, 1);
        assert_journal(&j, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    leat_ctx_free(ctx);
}

static void owner_with_work_left_is_not_woken(void **state)
{
    (void)state;
    uint32_t wakes = 0;
    leat_ctx *ctx = new_waking_ctx(&wakes);
    journal j = {.count = 0};
    noting_task busy, t;
    noting_init(&busy, ctx, &j, 1);
    noting_init(&t, ctx, &j, 2);
    busy.then = post_itself;
    leat_ctx_run_soon(ctx, &busy.task);
    assert_int_equal(leat_ctx_turn(ctx, 1), 1);
    leat_ctx_post(ctx, &t.task);
    assert_int_equal(wakes, 0);
    busy.then = NULL;
    leat_ctx_turn(ctx, 2);
    leat_ctx_post(ctx, &t.task);
    assert_int_equal(wakes, 1);
    leat_ctx_free(ctx);
}

static void idle_turns_leave_the_next_post_to_wake_once(void **state)
{
    (void)state;
    uint32_t wakes = 0;
    leat_ctx *ctx = new_waking_ctx(&wakes);
    journal j = {.count = 0};
    noting_task t[2];
    for (int i = 0; i < 2; i++) {
        noting_init(&t[i], ctx, &j, i);
    }
    for (uint32_t burst = 1; burst <= 3; burst++) {
        for (leat_time now = 0; now < burst; now++) {
            assert_int_equal(leat_ctx_turn(ctx, now), LEAT_TIME_NEVER);
        }
        leat_ctx_post(ctx, &t[0].task);
        leat_ctx_post(ctx, &t[1].task);
        assert_int_equal(wakes, burst);
        assert_int_equal(leat_ctx_turn(ctx, burst), LEAT_TIME_NEVER);
        assert_journal(&j, 0, 1);
    }
    leat_ctx_free(ctx);
}

static void free_leaves_waiting_tasks_idle(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    journal j = {.count = 0};
    noting_task queued, posted;
    leat_timer timer;
    noting_init(&queued, ctx, &j, 1);
    noting_init(&posted, ctx, &j, 2);
    leat_timer_init(&timer, ctx, NULL);
    leat_timer_set(&timer, 5);
    leat_ctx_run_soon(ctx, &queued.task);
    leat_ctx_post(ctx, &posted.task);
    leat_ctx_free(ctx);
    assert_int_equal(j.count, 0);
    assert_false(leat_task_queued(&queued.task));
    assert_false(leat_task_queued(&posted.task));
    assert_false(leat_timer_is_set(&timer));
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 8, RING = 64, POSTS_A_THREAD = 20000 };

/* A thread's task: carries the thread and a number that the thread counts up. */
typedef struct counted_task {
    leat_task task;
    struct posting_thread *from;
    uint32_t number;
} counted_task;

typedef struct posting_thread {
    leat_ctx *ctx;
    counted_task ring[RING];
    uint32_t taken; /* atomic: how many the owner has run */
    uint32_t last;  /* owner: the number of the last one */
} posting_thread;

static void run_counted(leat_task *task)
{
    counted_task *t = LEAT_CONTAINER_OF(task, counted_task, task);
    posting_thread *from = t->from;
    assert_int_equal(t->number, from->last + 1); /* in order, none lost, none twice */
    from->last = t->number;
    __atomic_fetch_add(&from->taken, 1, __ATOMIC_RELEASE);
}

/* One by one, and now and then some together. */
static void *post_counted(void *arg)
{
    posting_thread *self = arg;
    leat_task *together[RING / 2];
    for (uint32_t n = 0; n < POSTS_A_THREAD;) {
        uint32_t count = n % 3 == 0 ? 1 + n % (RING / 2) : 1;
        count = count < POSTS_A_THREAD - n ? count : POSTS_A_THREAD - n;
        /* The ring's oldest must have run before they are written again. */
        while (n + count - __atomic_load_n(&self->taken, __ATOMIC_ACQUIRE) > RING) {
            sched_yield();
        }
        for (uint32_t k = 0; k < count; k++) {
            counted_task *t = &self->ring[(n + k) % RING];
            t->number = n + k + 1;
            together[k] = &t->task;
        }
        bool good = count > 1 ? leat_ctx_post_all(self->ctx, together, count) == count
                              : leat_ctx_post(self->ctx, together[0]);
        if (!good) {
            return self; /* refused: the owner's assertions will see that it is missing */
        }
        n += count;
    }
    return NULL;
}

static void eight_threads_lose_nothing_and_keep_their_order(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    static posting_thread threads[THREADS];
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++) {
        posting_thread *t = &threads[i];
        memset(t, 0, sizeof(*t));
        t->ctx = ctx;
        for (int k = 0; k < RING; k++) {
            leat_task_init(&t->ring[k].task, ctx, run_counted);
            t->ring[k].from = t;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, post_counted, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS;) {
        if (leat_ctx_turn(ctx, 1) == LEAT_TIME_NEVER) {
            sched_yield();
        }
        if (__atomic_load_n(&threads[i].taken, __ATOMIC_RELAXED) == POSTS_A_THREAD) {
            i++;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        void *refused;
        pthread_join(ids[i], &refused);
        assert_null(refused);
        assert_int_equal(threads[i].last, POSTS_A_THREAD);
    }
    assert_int_equal(leat_ctx_turn(ctx, 2), LEAT_TIME_NEVER);
    leat_ctx_free(ctx);
}

/* All threads post one and the same task, each after counting up its own number: whatever the last
 * run saw must be everything, although most posts were refused. */
typedef struct shared_task {
    leat_task task;
    leat_ctx *ctx;
    uint32_t written[THREADS]; /* relaxed: the post alone hands them over */
    uint32_t seen[THREADS];
    uint32_t finished; /* atomic */
} shared_task;

typedef struct sharing_thread {
    shared_task *shared;
    int index;
} sharing_thread;

static void run_shared(leat_task *task)
{
    shared_task *s = LEAT_CONTAINER_OF(task, shared_task, task);
    for (int i = 0; i < THREADS; i++) {
        s->seen[i] = __atomic_load_n(&s->written[i], __ATOMIC_RELAXED);
    }
}

static void *post_shared(void *arg)
{
    sharing_thread *self = arg;
    shared_task *s = self->shared;
    for (uint32_t n = 1; n <= POSTS_A_THREAD; n++) {
        __atomic_store_n(&s->written[self->index], n, __ATOMIC_RELAXED);
        if (n % 2 == 0) {
            leat_ctx_post(s->ctx, &s->task);
        } else {
            leat_ctx_post_all(s->ctx, &(leat_task *){&s->task}, 1);
        }
    }
    __atomic_fetch_add(&s->finished, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void run_after_a_refused_post_sees_its_writes(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    static shared_task shared;
    memset(&shared, 0, sizeof(shared));
    leat_task_init(&shared.task, ctx, run_shared);
    shared.ctx = ctx;
    pthread_t ids[THREADS];
    sharing_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (sharing_thread){.shared = &shared, .index = i};
        assert_int_equal(pthread_create(&ids[i], NULL, post_shared, &threads[i]), 0);
    }
    while (__atomic_load_n(&shared.finished, __ATOMIC_ACQUIRE) != THREADS) {
        leat_ctx_turn(ctx, 1);
        leat_ctx_run_soon(ctx, &shared.task); /* the owner's queueing races with the posts */
    }
    while (leat_ctx_turn(ctx, 1) != LEAT_TIME_NEVER) {
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        assert_int_equal(shared.seen[i], POSTS_A_THREAD);
    }
    leat_ctx_free(ctx);
}

/* An owner that really sleeps, on a condition variable that the wake-up signals: a lost wake-up
 * hangs here, and CTest's time limit says so. */
typedef struct sleeper {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool woken;
    uint64_t wakes;
} sleeper;

static void wake_sleeper(void *user)
{
    sleeper *s = user;
    pthread_mutex_lock(&s->lock);
    s->woken = true;
    s->wakes++;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

static void sleep_until_woken(sleeper *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->woken) {
        pthread_cond_wait(&s->cond, &s->lock);
    }
    s->woken = false;
    pthread_mutex_unlock(&s->lock);
}

static void sleeping_owner_misses_no_post(void **state)
{
    (void)state;
    sleeper s = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    leat_ctx_settings settings;
    leat_ctx_settings_init(&settings);
    settings.wake = wake_sleeper;
    settings.user = &s;
    leat_ctx *ctx;
    assert_int_equal(leat_ctx_new(&settings, &ctx), LEAT_OK);
    static posting_thread threads[2];
    pthread_t ids[2];
    for (int i = 0; i < 2; i++) {
        posting_thread *t = &threads[i];
        memset(t, 0, sizeof(*t));
        t->ctx = ctx;
        for (int k = 0; k < RING; k++) {
            leat_task_init(&t->ring[k].task, ctx, run_counted);
            t->ring[k].from = t;
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, post_counted, &threads[i]), 0);
    }
    uint64_t turns = 0;
    while (threads[0].last + threads[1].last < 2 * POSTS_A_THREAD) {
        turns++;
        if (leat_ctx_turn(ctx, 1) == LEAT_TIME_NEVER &&
            threads[0].last + threads[1].last < 2 * POSTS_A_THREAD) {
            sleep_until_woken(&s);
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(ids[i], NULL);
    }
    assert_true(s.wakes <= turns); /* at most one between two turns */
    leat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posted_tasks_run_in_order_behind_those_queued),
        cmocka_unit_test(second_post_is_refused_until_taken_in),
        cmocka_unit_test(task_queued_and_posted_runs_once),
        cmocka_unit_test(tasks_posted_together_run_in_order_but_for_those_posted_already),
        cmocka_unit_test(posted_task_can_be_cancelled),
        cmocka_unit_test(task_that_posts_itself_runs_once_a_turn),
        cmocka_unit_test(burst_wakes_a_sleeping_owner_once),
        cmocka_unit_test(owner_with_work_left_is_not_woken),
        cmocka_unit_test(idle_turns_leave_the_next_post_to_wake_once),
        cmocka_unit_test(free_leaves_waiting_tasks_idle),
        cmocka_unit_test(eight_threads_lose_nothing_and_keep_their_order),
        cmocka_unit_test(run_after_a_refused_post_sees_its_writes),
        cmocka_unit_test(sleeping_owner_misses_no_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
