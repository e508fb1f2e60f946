/* bench/reproduce/queue.c: src/mem/queue.c with the old way of handing storage over. For
 * measurement only: it stands before libleat in the link, whose queue is then left out.
 *
 * The old way always moves storage along with the elements. Draining gives the queue's storage away
 * and leaves it none, so that the next element has to find new; a queue that is handed a batch
 * while it is empty lets its own storage go and takes the batch's.
 *
 * In leat storage comes from the context's memory, which keeps what is let go. To see what the
 * change does where it comes from the heap, as it did where the change was made: REPRODUCE_ON_HEAP
 * storage comes from malloc() REPRODUCE_KEEPS    with leat's own way of handing over, for a base to
 * compare with
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/queue.h"

#include <stdlib.h>
#include <string.h>

#if REPRODUCE_ON_HEAP
#    define leat_mem_take(mem, n)    ((void)(mem), malloc(n))
#    define leat_mem_give(mem, p, n) ((void)(mem), (void)(n), free(p))
#endif

#if REPRODUCE_KEEPS
#    include "mem/queue.c"
#else

leat_err leat_queue_drain_kept(leat_queue *from, leat_queue *batch);
leat_err leat_queue_append_kept(leat_queue *to, leat_queue *batch);
#    define leat_queue_drain  leat_queue_drain_kept
#    define leat_queue_append leat_queue_append_kept
#    include "mem/queue.c"
#    undef leat_queue_drain
#    undef leat_queue_append

leat_err leat_queue_drain(leat_queue *from, leat_queue *batch)
{
    LEAT_ASSERT(from->size == batch->size);
    LEAT_ASSERT(from->mem == batch->mem);
    LEAT_ASSERT(batch->count == 0);
    if (from->count > 0) {
        leat_queue_free(batch);
        exchange(from, batch);
    }
    return LEAT_OK;
}

leat_err leat_queue_append(leat_queue *to, leat_queue *batch)
{
    LEAT_ASSERT(to != batch);
    if (to->count > 0 || batch->count == 0) {
        return leat_queue_append_kept(to, batch);
    }
    return leat_queue_drain(batch, to);
}

#endif
