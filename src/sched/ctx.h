/* sched/ctx.h: the inside of a context, for the folders above.
 *
 * Who touches what:
 *   - `posted` and `armed`, on a cache line of their own, are written by every posting thread. All
 *     else is the owner's.
 *   - `queue` holds the tasks that wait; a turn moves it whole to `batch` and works that off, so
 *     what is queued meanwhile waits for the next turn. Both are circular lists through a sentinel:
 *     a task can be taken from either without knowing which it is in. Where a task yields the rest
 *     of the batch goes back to the front of the queue.
 *
 * Slots are where upper folders keep one thing a context (the CSPRNG, the cache of expanded keys)
 * without the context knowing its type. They are destroyed in the reverse order of the list when
 * the context is freed, before its memory is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_SCHED_CTX_H
#define LEAT_SCHED_CTX_H

#include <leat/sched.h>

#define LEAT_CTX_SEED_LEN   32
#define LEAT_CTX_CACHE_LINE 64
#define LEAT_CTX_SLOT_LIST(X)                                                                      \
    X(RAND)     /* crypto: the CSPRNG grown from the seed */                                       \
    X(CRYPTO)   /* crypto: backend state, IPSec-MB's manager */                                    \
    X(KEYCACHE) /* crypto: the cache of expanded keys */                                           \
    X(TLS)      /* tls: what handshakes of a context have in common */                             \
    X(CONN)     /* conn: pools of connections, packets and frames */                               \
    X(ENDPOINT) /* endpoint: the batch queue and pools of endpoints */                             \
    X(SPARE)    /* tests */

#define LEAT_CTX_SLOT_ENUM(name) LEAT_CTX_SLOT_##name,
typedef enum leat_ctx_slot {
    LEAT_CTX_SLOT_LIST(LEAT_CTX_SLOT_ENUM) LEAT_CTX_SLOT_COUNT
} leat_ctx_slot;
#undef LEAT_CTX_SLOT_ENUM

typedef void leat_ctx_slot_free_fn(leat_ctx *ctx, void *value);

struct leat_ctx {
    leat_time now;
    leat_task queue;      /* sentinel */
    leat_task batch;      /* sentinel: what the present turn still has to run */
    leat_timer *timers;   /* root of the heap */
    uint64_t timer_order; /* of the next timer to be set */
    leat_mem *mem;
    void (*wake)(void *user);
    void *user;
    bool turning; /* a turn is going on */
    bool seeded;  /* the seed has not been taken */
    bool yielded; /* the turn ends behind the present task */
    uint8_t seed[LEAT_CTX_SEED_LEN];
    struct {
        void *value;
        leat_ctx_slot_free_fn *free;
    } slots[LEAT_CTX_SLOT_COUNT];

    /* Written by other threads. `posted`: the newest posted task, each leading to the one before.
     * `armed`: 1 when the owner may sleep and the next post has to wake it. */
    _Alignas(2 * LEAT_CTX_CACHE_LINE) leat_task *posted;
    uint32_t armed;
};

static inline void *leat_ctx_slot_get(const leat_ctx *ctx, leat_ctx_slot slot)
{
    return ctx->slots[slot].value;
}

/* What is going on takes as long as hundreds of packets do (a step of a handshake): the turn ends
 * behind it, so that the owner sends what came of it before the next one begins. */
static inline void leat_ctx_yield(leat_ctx *ctx)
{
    ctx->yielded = true;
}

/* Attaches value; free_fn (may be NULL) is called when the context ends. The slot must be empty, or
 * value NULL to empty it, which calls nothing. */
void leat_ctx_slot_set(leat_ctx *ctx, leat_ctx_slot slot, void *value,
                       leat_ctx_slot_free_fn *free_fn);

/* Copies the seed out and wipes it here: for the CSPRNG, once. LEAT_ERR_STATE the second time;
 * LEAT_ERR_INVALID: the owner has given none. */
leat_err leat_ctx_seed_take(leat_ctx *ctx, uint8_t seed[LEAT_CTX_SEED_LEN]);

/* Between the files of this folder. */

/* Empties the stack of posted tasks into the queue, each thread's in its order. */
void leat_ctx_take_posted(leat_ctx *ctx);

/* True if something is posted. */
static inline bool leat_ctx_has_posted(const leat_ctx *ctx)
{
    return __atomic_load_n(&ctx->posted, __ATOMIC_RELAXED) != NULL;
}

/* Tells posting threads that the owner may sleep; false if something has been posted before they
 * could know, and then it must not. */
bool leat_ctx_arm(leat_ctx *ctx);

/* The owner is awake: posts need not wake it. Writes only if nobody has cleared it already, so that
 * the line stays with those who post. */
static inline void leat_ctx_disarm(leat_ctx *ctx)
{
    if (__atomic_load_n(&ctx->armed, __ATOMIC_RELAXED) != 0) {
        __atomic_store_n(&ctx->armed, 0, __ATOMIC_RELAXED);
    }
}

/* Runs what is queued now, in order, up to a task that yields. */
void leat_ctx_run_tasks(leat_ctx *ctx);
void leat_ctx_tasks_init(leat_ctx *ctx);
/* Takes every task back, leaving it idle. */
void leat_ctx_drop_tasks(leat_ctx *ctx);
static inline bool leat_ctx_has_tasks(const leat_ctx *ctx)
{
    return ctx->queue.next != &ctx->queue;
}

/* Fires the timers that are due at ctx->now. */
void leat_ctx_fire_timers(leat_ctx *ctx);
void leat_ctx_drop_timers(leat_ctx *ctx);
/* The earliest deadline, or LEAT_TIME_NEVER. */
leat_time leat_ctx_timer_deadline(const leat_ctx *ctx);

/* Walk the tasks or the timers of the owner and assert their links and order. */
void leat_ctx_check_tasks(const leat_ctx *ctx);
void leat_ctx_check_timers(const leat_ctx *ctx);

#endif
