/* mem/queue.c: the batch queue: a ring whose storage can change hands.
 *
 * The storage is a ring of a power of two of elements. Draining exchanges storages when the batch's
 * is at least as large as this side's (so this side's capacity never shrinks), else copies into the
 * batch's. Appending copies while this side has room; when it would have to grow it looks at the
 * incoming storage first: if everything fits there, it puts its own elements in front of the
 * batch's and takes the storage over, giving its own in exchange. Only then does it grow.
 *
 * Invariants: count <= cap; head < cap, or 0 while cap is 0; data is NULL exactly while cap is 0.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/queue.h"

#include <string.h>

#define CAP_FIRST 4u
#define CAP_MAX   ((uint32_t)1 << 31)

void leat_queue_init(leat_queue *q, leat_mem *mem, size_t size)
{
    LEAT_ASSERT(size > 0);
    LEAT_ASSERT(size <= UINT32_MAX);
    memset(q, 0, sizeof *q);
    q->mem = mem;
    q->size = (uint32_t)size;
}

void leat_queue_free(leat_queue *q)
{
    if (q->data) {
        leat_mem_give(q->mem, q->data, leat_queue_held(q));
    }
    leat_queue_init(q, q->mem, q->size);
}

void leat_queue_shrink(leat_queue *q)
{
    if (q->count == 0) {
        leat_queue_free(q);
    }
}

/* Copies the elements of q, in order, to contiguous bytes. */
static void copy_out(const leat_queue *q, uint8_t *out)
{
    size_t first = q->count < q->cap - q->head ? q->count : q->cap - q->head;

    if (q->count) {
        memcpy(out, q->data + (size_t)q->head * q->size, first * q->size);
        memcpy(out + first * q->size, q->data, (q->count - first) * q->size);
    }
}

/* The capacity for n elements; 0: there may not be so many. */
static uint32_t cap_for(const leat_queue *q, uint32_t n)
{
    uint32_t cap = q->cap ? q->cap : CAP_FIRST;

    if (n > CAP_MAX) {
        return 0;
    }
    while (cap < n) {
        cap *= 2;
    }
    return cap <= UINT32_MAX / q->size ? cap : 0;
}

size_t leat_queue_growth(const leat_queue *q, uint32_t n)
{
    uint32_t cap = n > q->cap ? cap_for(q, n) : q->cap;

    return n > 0 && cap == 0 ? SIZE_MAX : (size_t)(cap - q->cap) * q->size;
}

leat_err leat_queue_reserve(leat_queue *q, uint32_t n)
{
    uint32_t cap;
    uint8_t *data;

    if (n <= q->cap) {
        return LEAT_OK;
    }
    cap = cap_for(q, n);
    if (cap == 0) {
        return LEAT_ERR_LIMIT;
    }
    data = (uint8_t *)leat_mem_take(q->mem, (size_t)cap * q->size);
    if (!data) {
        return LEAT_ERR_NOMEM;
    }
    copy_out(q, data);
    if (q->data) {
        leat_mem_give(q->mem, q->data, leat_queue_held(q));
    }
    q->data = data;
    q->cap = cap;
    q->head = 0;
    return LEAT_OK;
}

static void exchange(leat_queue *a, leat_queue *b)
{
    leat_queue t = *a;

    *a = *b;
    *b = t;
}

/* Puts the elements of q into ring `to` from index `at` on (modulo its capacity); they fit. */
static void copy_in(leat_queue *to, uint32_t at, const leat_queue *q)
{
    uint32_t done = 0;

    while (done < q->count) {
        uint32_t src = (q->head + done) & (q->cap - 1);
        uint32_t dst = (at + done) & (to->cap - 1);
        uint32_t n = q->count - done;

        n = n < q->cap - src ? n : q->cap - src;
        n = n < to->cap - dst ? n : to->cap - dst;
        memcpy(to->data + (size_t)dst * to->size, q->data + (size_t)src * q->size,
               (size_t)n * q->size);
        done += n;
    }
}

leat_err leat_queue_drain(leat_queue *from, leat_queue *batch)
{
    LEAT_ASSERT(from->size == batch->size);
    LEAT_ASSERT(from->mem == batch->mem);
    LEAT_ASSERT(batch->count == 0);
    if (from->count == 0) {
        return LEAT_OK;
    }
    batch->head = 0;
    if (batch->cap < from->count) {
        leat_err err = leat_queue_reserve(batch, from->count);

        if (err != LEAT_OK) {
            return err;
        }
    }
    if (batch->cap >= from->cap) {
        exchange(from, batch);
    } else {
        copy_in(batch, 0, from);
        batch->count = from->count;
        leat_queue_clear(from);
    }
    return LEAT_OK;
}

leat_err leat_queue_append(leat_queue *to, leat_queue *batch)
{
    uint32_t total;

    LEAT_ASSERT(to->size == batch->size);
    LEAT_ASSERT(to->mem == batch->mem);
    LEAT_ASSERT(to != batch);
    if (batch->count == 0) {
        return LEAT_OK;
    }
    if (batch->count > CAP_MAX - to->count) {
        return LEAT_ERR_LIMIT;
    }
    total = to->count + batch->count;
    if (total > to->cap && total <= batch->cap) {
        uint32_t head = (batch->head - to->count) & (batch->cap - 1);

        copy_in(batch, head, to);
        batch->head = head;
        batch->count = total;
        leat_queue_clear(to);
        exchange(to, batch);
        return LEAT_OK;
    }
    if (total > to->cap) {
        leat_err err = leat_queue_reserve(to, total);

        if (err != LEAT_OK) {
            return err;
        }
    }
    copy_in(to, to->head + to->count, batch);
    to->count = total;
    leat_queue_clear(batch);
    return LEAT_OK;
}

void leat_queue_check(const leat_queue *q)
{
    LEAT_ASSERT((q->data == NULL) == (q->cap == 0));
    LEAT_ASSERT((q->cap & (q->cap - 1)) == 0);
    LEAT_ASSERT(q->count <= q->cap);
    LEAT_ASSERT(q->cap ? q->head < q->cap : q->head == 0);
}
