/* sched/task.c: the owner's queue of tasks.
 *
 * A circular list with a sentinel in the context. A task is queued exactly while task->next is set;
 * it is unlinked before it is called, so that in its callback it is idle and may be queued or
 * freed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched/ctx.h"

#include <string.h>

#include "base/assert.h"

void leat_task_init(leat_task *task, leat_ctx *ctx, leat_task_fn *run)
{
    memset(task, 0, sizeof(*task));
    task->run = run;
    task->ctx = ctx;
}

static inline void list_init(leat_task *list)
{
    list->next = list;
    list->prev = list;
}

static inline void unlink_task(leat_task *task)
{
    task->prev->next = task->next;
    task->next->prev = task->prev;
    task->next = NULL;
    task->prev = NULL;
}

void leat_ctx_run_soon(leat_ctx *ctx, leat_task *task)
{
    LEAT_DCHECK(task->ctx == ctx);
    if (task->next != NULL) {
        return;
    }
    task->next = &ctx->queue;
    task->prev = ctx->queue.prev;
    ctx->queue.prev->next = task;
    ctx->queue.prev = task;
}

bool leat_task_queued(const leat_task *task)
{
    return task->next != NULL || __atomic_load_n(&task->posted, __ATOMIC_ACQUIRE) != 0;
}

bool leat_task_cancel(leat_task *task)
{
    if (__atomic_load_n(&task->posted, __ATOMIC_ACQUIRE) != 0) {
        leat_ctx_take_posted(task->ctx);
    }
    if (task->next == NULL) {
        return false;
    }
    unlink_task(task);
    return true;
}

void leat_ctx_tasks_init(leat_ctx *ctx)
{
    list_init(&ctx->queue);
    list_init(&ctx->batch);
}

/* Moves the queue to the empty batch. */
static void begin_batch(leat_ctx *ctx)
{
    leat_task *queue = &ctx->queue;
    leat_task *batch = &ctx->batch;
    LEAT_ASSERT(batch->next == batch);
    if (queue->next == queue) {
        return;
    }
    batch->next = queue->next;
    batch->prev = queue->prev;
    batch->next->prev = batch;
    batch->prev->next = batch;
    list_init(queue);
}

/* Moves what is left of the batch back, before what was queued meanwhile. */
static void end_batch(leat_ctx *ctx)
{
    leat_task *queue = &ctx->queue;
    leat_task *batch = &ctx->batch;
    if (batch->next == batch) {
        return;
    }
    batch->next->prev = queue;
    batch->prev->next = queue->next;
    queue->next->prev = batch->prev;
    queue->next = batch->next;
    list_init(batch);
}

void leat_ctx_run_tasks(leat_ctx *ctx)
{
    ctx->yielded = false;
    begin_batch(ctx);
    /* A task may cancel any other of the batch: the head is read anew each time. */
    while (ctx->batch.next != &ctx->batch && !ctx->yielded) {
        leat_task *task = ctx->batch.next;
        unlink_task(task);
        task->run(task);
    }
    end_batch(ctx);
}

static void drop_list(leat_task *list)
{
    while (list->next != list) {
        unlink_task(list->next);
    }
}

void leat_ctx_drop_tasks(leat_ctx *ctx)
{
    leat_ctx_take_posted(ctx);
    drop_list(&ctx->batch);
    drop_list(&ctx->queue);
}

static void check_list(const leat_ctx *ctx, const leat_task *list)
{
    const leat_task *task = list;
    do {
        LEAT_ASSERT(task->next != NULL);
        LEAT_ASSERT(task->next->prev == task);
        task = task->next;
        LEAT_ASSERT(task == list || task->ctx == ctx);
    } while (task != list);
}

void leat_ctx_check_tasks(const leat_ctx *ctx)
{
    check_list(ctx, &ctx->queue);
    check_list(ctx, &ctx->batch);
}
