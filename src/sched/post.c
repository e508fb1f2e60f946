/* sched/post.c: tasks from other threads.
 *
 * Posted tasks form a stack that any thread pushes on with compare-and-swap and that the owner
 * takes whole with one exchange. Nothing is ever popped singly, so the same task coming back
 * between a thread's read and its swap does no harm: the link it writes is that of the head it
 * swaps against (no ABA). The owner turns the stack round while it moves it to its queue, which
 * keeps the order of each thread.
 *
 * Several tasks are linked with each other first, and pushed by one swap.
 *
 * The flag task->posted keeps a task from being pushed twice. It changes by exchange on both sides,
 * never by plain store, so that even a refused post hands over to the owner what its thread wrote
 * before: the owner's exchange reads that of the last thread.
 *
 * Waking. The owner sets `armed` when it has nothing to run and then looks at the stack again; a
 * poster pushes and then looks at `armed`. With both pairs sequentially consistent, one of the two
 * sees the other, so no post is slept through. The poster that finds it set clears it and wakes the
 * owner: once a sleep.
 *
 * The cache line of both is written by every poster, so the owner keeps off it: a turn that finds
 * nothing to run reads it once and leaves `armed` set, and an owner that turns without sleeping
 * does not take the line from those who post.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched/ctx.h"

#include "base/assert.h"

/* Whether the task is this thread's to push. */
static inline bool claim(const leat_ctx *ctx, leat_task *task)
{
    LEAT_DCHECK(task->ctx == ctx);
    return __atomic_exchange_n(&task->posted, 1, __ATOMIC_ACQ_REL) == 0;
}

/* Pushes claimed tasks, of which the newest leads to the oldest, and wakes the owner. */
static inline void push(leat_ctx *ctx, leat_task *newest, leat_task *oldest)
{
    leat_task *head = __atomic_load_n(&ctx->posted, __ATOMIC_RELAXED);
    do {
        oldest->posted_next = head;
    } while (!__atomic_compare_exchange_n(&ctx->posted, &head, newest, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    if (__atomic_load_n(&ctx->armed, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&ctx->armed, 0, __ATOMIC_SEQ_CST) != 0 && ctx->wake != NULL) {
        ctx->wake(ctx->user);
    }
}

bool leat_ctx_post(leat_ctx *ctx, leat_task *task)
{
    if (!claim(ctx, task)) {
        return false;
    }
    push(ctx, task, task);
    return true;
}

size_t leat_ctx_post_all(leat_ctx *ctx, leat_task *const *tasks, size_t count)
{
    leat_task *newest = NULL;
    leat_task *oldest = NULL;
    size_t claimed = 0;
    for (size_t i = 0; i < count; i++) {
        leat_task *task = tasks[i];
        if (!claim(ctx, task)) {
            continue;
        }
        task->posted_next = newest;
        oldest = oldest != NULL ? oldest : task;
        newest = task;
        claimed++;
    }
    if (claimed > 0) {
        push(ctx, newest, oldest);
    }
    return claimed;
}

bool leat_ctx_arm(leat_ctx *ctx)
{
    /* Only the owner sets it: where it stands since an idle turn, that store still counts. */
    if (__atomic_load_n(&ctx->armed, __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(&ctx->armed, 1, __ATOMIC_SEQ_CST);
    }
    if (__atomic_load_n(&ctx->posted, __ATOMIC_SEQ_CST) == NULL) {
        return true;
    }
    leat_ctx_disarm(ctx);
    return false;
}

void leat_ctx_take_posted(leat_ctx *ctx)
{
    if (!leat_ctx_has_posted(ctx)) {
        return;
    }
    leat_task *task = __atomic_exchange_n(&ctx->posted, NULL, __ATOMIC_ACQUIRE);
    /* The stack comes newest first: each goes in before its successor, behind what was queued. */
    leat_task *before = ctx->queue.prev;
    while (task != NULL) {
        leat_task *next = task->posted_next;
        bool queued = task->next != NULL;
        if (!queued) {
            task->prev = before;
            task->next = before->next;
            before->next->prev = task;
            before->next = task;
        }
        /* From here on another thread may post it again, so its link is read no more. */
        uint32_t was = __atomic_exchange_n(&task->posted, 0, __ATOMIC_ACQ_REL);
        LEAT_ASSERT(was == 1);
        task = next;
    }
}
