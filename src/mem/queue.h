/* mem/queue.h: the batch queue: elements of one fixed size, first in first out, moved by the batch.
 *
 * What it promises:
 *  1. Push and pop are amortised O(1), and a queue that has once been large enough takes no memory.
 *  2. Draining keeps this side's capacity: a queue drained for a batch holds at least the room it
 *     had, so the next batch fits without growing. The elements change hands by exchange of storage
 *     where the other side's is at least as large, else by copying.
 *  3. Handing a batch over adopts the incoming storage only when this side would otherwise have to
 *     grow. While this side has room, elements are copied in and both keep their storage.
 *  4. Order is kept, in all of these.
 *
 * Elements are plain bytes, copied and moved as such. Pointers to them hold until the next call
 * that pushes, drains, appends, reserves or shrinks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_QUEUE_H
#define LEAT_MEM_QUEUE_H

#include "base/assert.h"
#include "mem/mem.h"

typedef struct leat_queue {
    uint8_t *data; /* a ring of cap elements; NULL while cap is 0 */
    leat_mem *mem;
    uint32_t size; /* bytes an element */
    uint32_t head; /* index of the first, below cap */
    uint32_t count;
    uint32_t cap; /* a power of two, or 0 */
} leat_queue;

/* Takes no memory. size > 0; a multiple of what the element's type is aligned to (at most 16). */
void leat_queue_init(leat_queue *q, leat_mem *mem, size_t size);

/* Gives the storage back. Elements still in it are forgotten. Ready for use again. */
void leat_queue_free(leat_queue *q);

static inline bool leat_queue_empty(const leat_queue *q)
{
    return q->count == 0;
}

static inline uint32_t leat_queue_count(const leat_queue *q)
{
    return q->count;
}

/* Makes room for n elements in all. LEAT_ERR_NOMEM, LEAT_ERR_LIMIT (2^31 elements or 4 GiB). */
leat_err leat_queue_reserve(leat_queue *q, uint32_t n) LEAT_SELDOM;

/* Bytes that q will hold more than it does when leat_queue_reserve(q, n) has made room: for whoever
 * asks a budget first. SIZE_MAX: there may not be so many. */
size_t leat_queue_growth(const leat_queue *q, uint32_t n);

static inline void *leat_queue_slot(const leat_queue *q, uint32_t i)
{
    return q->data + (size_t)((q->head + i) & (q->cap - 1)) * q->size;
}

/* Adds an element at the end and returns where it lies, for the caller to fill; NULL: out of
 * memory. */
static inline void *leat_queue_push(leat_queue *q)
{
    if (LEAT_UNLIKELY(q->count == q->cap) && leat_queue_reserve(q, q->count + 1) != LEAT_OK) {
        return NULL;
    }
    return leat_queue_slot(q, q->count++);
}

/* The same, where leat_queue_reserve() has made room (asserted in debug builds). */
static inline void *leat_queue_add(leat_queue *q)
{
    LEAT_DCHECK(q->count < q->cap);
    return leat_queue_slot(q, q->count++);
}

/* Takes the first element out and returns where it lies, or NULL when empty. */
static inline void *leat_queue_pop(leat_queue *q)
{
    void *p;

    if (q->count == 0) {
        return NULL;
    }
    p = leat_queue_slot(q, 0);
    q->head = (q->head + 1) & (q->cap - 1);
    q->count--;
    return p;
}

/* The i-th element from the first, or NULL when there are not so many. */
static inline void *leat_queue_at(const leat_queue *q, uint32_t i)
{
    return i < q->count ? leat_queue_slot(q, i) : NULL;
}

static inline void leat_queue_clear(leat_queue *q)
{
    q->count = 0;
    q->head = 0;
}

/* Moves everything from `from` into `batch`, which must be empty and of the same element size and
 * memory. `from` is empty after it and keeps at least its capacity. LEAT_ERR_NOMEM (only if batch's
 * storage is too small): nothing is moved. */
leat_err leat_queue_drain(leat_queue *from, leat_queue *batch);

/* Moves everything from `batch` to the end of `to`, adopting batch's storage only if `to` would
 * otherwise have to grow. `batch` is empty after it and keeps a storage, its own or the one
 * exchanged. LEAT_ERR_NOMEM: nothing is moved. */
leat_err leat_queue_append(leat_queue *to, leat_queue *batch);

/* Gives the storage of an empty queue back; does nothing if it holds elements. For the idle. */
void leat_queue_shrink(leat_queue *q);

/* Bytes of storage held. */
static inline size_t leat_queue_held(const leat_queue *q)
{
    return (size_t)q->cap * q->size;
}

void leat_queue_check(const leat_queue *q);

#endif
