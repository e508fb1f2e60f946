/* bench/reproduce/tasks.c: src/sched/task.c and post.c with tasks boxed on the heap. For
 * measurement only: it stands before libleat in the link, whose two files are then left out.
 *
 * The old way takes two pieces of the heap to schedule a task: a copy of the closure (what to call,
 * with what it has captured: the task) and a box that holds the closure while it waits. The queues
 * link boxes. The owner lets both go when the task has run or is taken back.
 *
 * A task is queued exactly while task->next is set; it then points to the box. Everything else is
 * as in the two files, whose comments hold here too. Without memory it gives up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched/ctx.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

typedef struct closure {
    leat_task_fn *run;
    leat_task *task;
} closure;

typedef struct box {
    leat_task link; /* next, prev, ctx, posted_next; the first member */
    closure *closure;
} box;

static box *box_of(leat_task *link)
{
    return (box *)(void *)link;
}

static box *box_new(leat_ctx *ctx, leat_task *task)
{
    box *b = malloc(sizeof *b);
    closure *c = malloc(sizeof *c);

    LEAT_ASSERT(b);
    LEAT_ASSERT(c);
    *c = (closure){task->run, task};
    *b = (box){.link = {.ctx = ctx}, .closure = c};
    return b;
}

static void box_free(box *b)
{
    free(b->closure);
    free(b);
}

void leat_task_init(leat_task *task, leat_ctx *ctx, leat_task_fn *run)
{
    memset(task, 0, sizeof *task);
    task->run = run;
    task->ctx = ctx;
}

static void list_init(leat_task *list)
{
    list->next = list;
    list->prev = list;
}

static void insert(box *b, leat_task *before)
{
    b->link.prev = before;
    b->link.next = before->next;
    before->next->prev = &b->link;
    before->next = &b->link;
    b->closure->task->next = &b->link;
}

/* Takes the box out of its queue; the task is idle. */
static void take_out(box *b)
{
    b->link.prev->next = b->link.next;
    b->link.next->prev = b->link.prev;
    b->closure->task->next = NULL;
}

/* ---- the owner's queue ---- */

void leat_ctx_run_soon(leat_ctx *ctx, leat_task *task)
{
    LEAT_DCHECK(task->ctx == ctx);
    if (task->next == NULL) {
        insert(box_new(ctx, task), ctx->queue.prev);
    }
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
    box *b = box_of(task->next);
    take_out(b);
    box_free(b);
    return true;
}

void leat_ctx_tasks_init(leat_ctx *ctx)
{
    list_init(&ctx->queue);
    list_init(&ctx->batch);
}

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
    while (ctx->batch.next != &ctx->batch && !ctx->yielded) {
        box *b = box_of(ctx->batch.next);
        closure *c = b->closure;
        take_out(b);
        free(b);
        c->run(c->task); /* the task's memory may be gone after it, the closure's is not */
        free(c);
    }
    end_batch(ctx);
}

static void drop_list(leat_task *list)
{
    while (list->next != list) {
        box *b = box_of(list->next);
        take_out(b);
        box_free(b);
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
    const leat_task *link = list;
    do {
        LEAT_ASSERT(link->next != NULL);
        LEAT_ASSERT(link->next->prev == link);
        link = link->next;
        LEAT_ASSERT(link == list || link->ctx == ctx);
    } while (link != list);
}

void leat_ctx_check_tasks(const leat_ctx *ctx)
{
    check_list(ctx, &ctx->queue);
    check_list(ctx, &ctx->batch);
}

/* ---- from other threads ---- */

bool leat_ctx_post(leat_ctx *ctx, leat_task *task)
{
    LEAT_DCHECK(task->ctx == ctx);
    if (__atomic_exchange_n(&task->posted, 1, __ATOMIC_ACQ_REL) != 0) {
        return false;
    }
    leat_task *link = &box_new(ctx, task)->link;
    leat_task *head = __atomic_load_n(&ctx->posted, __ATOMIC_RELAXED);
    do {
        link->posted_next = head;
    } while (!__atomic_compare_exchange_n(&ctx->posted, &head, link, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    if (__atomic_load_n(&ctx->armed, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&ctx->armed, 0, __ATOMIC_SEQ_CST) != 0 && ctx->wake != NULL) {
        ctx->wake(ctx->user);
    }
    return true;
}

/* One after the other: nothing of the old way knew of several. */
size_t leat_ctx_post_all(leat_ctx *ctx, leat_task *const *tasks, size_t count)
{
    size_t posted = 0;

    for (size_t i = 0; i < count; i++) {
        posted += leat_ctx_post(ctx, tasks[i]);
    }
    return posted;
}

bool leat_ctx_arm(leat_ctx *ctx)
{
    __atomic_store_n(&ctx->armed, 1, __ATOMIC_SEQ_CST);
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
    leat_task *link = __atomic_exchange_n(&ctx->posted, NULL, __ATOMIC_ACQUIRE);
    leat_task *before = ctx->queue.prev;
    while (link != NULL) {
        box *b = box_of(link);
        leat_task *task = b->closure->task;
        leat_task *next = link->posted_next;
        if (task->next == NULL) {
            insert(b, before);
        } else {
            box_free(b);
        }
        uint32_t was = __atomic_exchange_n(&task->posted, 0, __ATOMIC_ACQ_REL);
        LEAT_ASSERT(was == 1);
        link = next;
    }
}
