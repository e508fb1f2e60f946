/* leat/sched.h: the context, a serial executor that owns memory, tasks and timers.
 *
 * A leat_ctx belongs to one thread, and so does every object made from it. No locks; the only
 * functions that another thread may call are leat_ctx_post() and leat_ctx_post_all().
 *
 * Tasks and timers are intrusive: the caller embeds them, so scheduling one allocates nothing. The
 * owner runs the context by calling leat_ctx_turn() with the time; leat/loop.h does it for those
 * without a loop of their own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_SCHED_H
#define LEAT_SCHED_H

#include <leat/base.h>
#include <leat/buf.h>

LEAT_BEGIN_DECLS

typedef struct leat_ctx leat_ctx;
typedef struct leat_task leat_task;
typedef struct leat_timer leat_timer;

/* Called with the task itself: embed it and find the owner from its address. When it is called the
 * task is idle again, so it may schedule itself, be scheduled, or be freed. */
typedef void leat_task_fn(leat_task *task);

/* Memory of the caller, alive and in place while it is scheduled. All members are the context's;
 * those of the owner's queue and those that other threads write are apart, so that the owner's way
 * needs no atomic operation. */
struct leat_task {
    leat_task *next; /* neighbours in the run queue; NULL while not queued */
    leat_task *prev;
    leat_task_fn *run;
    leat_ctx *ctx;
    leat_task *posted_next; /* the next in the stack of posted tasks */
    uint32_t posted;        /* atomic: 1 from leat_ctx_post() until the owner takes it in */
};

/* As for a task: the timer is unset when it is called, and may be set again or freed. */
typedef void leat_timer_fn(leat_timer *timer, leat_time now);

/* Memory of the caller, alive and in place while it is set. */
struct leat_timer {
    leat_timer_fn *fire;
    leat_ctx *ctx;
    leat_time deadline; /* LEAT_TIME_NEVER while not set */
    uint64_t order;     /* timers with one deadline fire in the order in which they were set */
    leat_timer *child;  /* links in the context's heap: setting a timer needs no memory */
    leat_timer *next;
    leat_timer *prev;
};

typedef struct leat_ctx_settings {
    leat_mem_settings mem;
    /* Called, by the posting thread, when leat_ctx_post() finds that the owner's last turn ended
     * with nothing to run: make the owner call leat_ctx_turn() soon (write an eventfd). Posts to an
     * owner in a turn that runs something do not call it, nor do those that follow one that did. A
     * posting thread may be slow to call it: the owner may then be in a turn already, or about to
     * sleep again, and turns once for nothing. NULL: the owner polls. */
    void (*wake)(void *user);
    void *user;
    /* Seed of everything random that the context puts on the wire: 32 bytes from the system's
     * random device. The core reads no device itself. Wipe the settings after leat_ctx_new(). All
     * zero, as leat_ctx_settings_init() leaves it: none; such a context has no endpoints. */
    uint8_t seed[32];
} leat_ctx_settings;

LEAT_API void leat_ctx_settings_init(leat_ctx_settings *settings);

/* Makes a context. NULL settings: the defaults. LEAT_ERR_NOMEM, LEAT_ERR_INVALID. The caller owns
 * it. */
LEAT_API leat_err leat_ctx_new(const leat_ctx_settings *settings, leat_ctx **out);

/* Ends a context. Tasks still queued, posted ones too, are dropped without being run and left idle,
 * timers are unset: their memory is the callers'. Everything made from the context must have been
 * freed, and no thread may post any more. NULL is allowed. */
LEAT_API void leat_ctx_free(leat_ctx *ctx);

LEAT_API leat_mem *leat_ctx_mem(leat_ctx *ctx);

/* The time of the present turn, or of the last one: what the context's objects take as "now". */
LEAT_API leat_time leat_ctx_now(const leat_ctx *ctx);

/* Sets the time without running anything. A time before leat_ctx_now() is taken as leat_ctx_now().
 */
LEAT_API void leat_ctx_set_now(leat_ctx *ctx, leat_time now);

/* One turn: sets the time, fires the timers that are due in order of deadline, takes in what other
 * threads have posted, and runs the tasks queued by then, in order. It ends behind a task that took
 * long, as a step of a handshake does: the others wait for the next turn, so that the owner can
 * send in between. A task that schedules itself runs again in the next turn, and so does a timer
 * set to a time that has come. Returns when the context wants its next turn: `now` if tasks wait,
 * the earliest deadline, or LEAT_TIME_NEVER. Not to be called from a task or timer. */
LEAT_API leat_time leat_ctx_turn(leat_ctx *ctx, leat_time now);

/* As leat_ctx_turn() returns it, for the present state. The owner asks again before it sleeps when
 * it has scheduled something since its last turn. */
LEAT_API leat_time leat_ctx_deadline(leat_ctx *ctx);

/* Prepares a task. It belongs to ctx from now on. */
LEAT_API void leat_task_init(leat_task *task, leat_ctx *ctx, leat_task_fn *run);

/* Owner only: queues the task at the end. Does nothing if it is queued already. */
LEAT_API void leat_ctx_run_soon(leat_ctx *ctx, leat_task *task);

/* Any thread: hands the task to the context; those of one thread run in the order in which it
 * posted them. Returns false, and does nothing, if the task is posted already and not yet taken in
 * by the owner; the run that is then still to come sees all that this thread wrote before the call.
 * (A task that the owner has queued at the same time runs once for both.) Lock-free, allocates
 * nothing; the task's memory must stay until it has run. */
LEAT_API bool leat_ctx_post(leat_ctx *ctx, leat_task *task);

/* Any thread: posts `count` tasks as one, in order: the same as leat_ctx_post() for each, at half
 * the price, and with one wake-up. Returns how many were not posted already. */
LEAT_API size_t leat_ctx_post_all(leat_ctx *ctx, leat_task *const *tasks, size_t count);

/* Owner only: takes a task back before it runs; true if it was queued or posted. A post that is
 * still going on in another thread may come after the cancellation: see to it that nobody posts a
 * task that you free. */
LEAT_API bool leat_task_cancel(leat_task *task);

/* Owner only: true while it waits to run, queued or posted. */
LEAT_API bool leat_task_queued(const leat_task *task);

LEAT_API void leat_timer_init(leat_timer *timer, leat_ctx *ctx, leat_timer_fn *fire);

/* Sets or moves the timer; LEAT_TIME_NEVER unsets it. A deadline in the past is taken as
 * leat_ctx_now() and fires in the next turn. */
LEAT_API void leat_timer_set(leat_timer *timer, leat_time deadline);

LEAT_API void leat_timer_unset(leat_timer *timer);

/* True while the timer waits to fire. */
static inline bool leat_timer_is_set(const leat_timer *timer)
{
    return timer->deadline != LEAT_TIME_NEVER;
}

LEAT_END_DECLS

#endif
