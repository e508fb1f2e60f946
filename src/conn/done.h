/* conn/done.h: what became of packets, told to an application that asks for it (`packets_done`).
 *
 * An ACK frame is worked through newest packet first, in the middle of recovery's bookkeeping: what
 * it says is queued, put in order when the frame is done with, and told by the event task.
 *
 *   1. leat_done_begin() before an ACK frame of the application's space.
 *   2. leat_done_acked() for each packet, as recovery meets them.
 *   3. leat_done_end() when the frame is through.
 *   4. leat_done_lost() for each packet lost.
 *   5. leat_done_tell() from the event task.
 *
 * Without memory the oldest news stays and the rest is not told.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_DONE_H
#define LEAT_CONN_DONE_H

#include <leat/quic.h>

#include "mem/budget.h"
#include "mem/queue.h"
#include "recovery/sent.h"

typedef struct leat_done {
    leat_queue queue; /* leat_packet_done */
    leat_budget *budget;
    uint32_t begun; /* elements when the present ACK frame began */
    leat_time at;   /* when it came */
} leat_done;

void leat_done_init(leat_done *done, leat_mem *mem, leat_budget *budget);
void leat_done_clear(leat_done *done);
/* Gives the storage back, if nothing is queued. */
void leat_done_shrink(leat_done *done);

void leat_done_begin(leat_done *done, leat_time at);
/* A leat_sent_acked_fn; ctx is the leat_done. */
void leat_done_acked(void *ctx, uint64_t pn, const leat_sent_packet *packet);
/* largest_new: the largest number of the frame was newly acknowledged; delay: the frame's. */
void leat_done_end(leat_done *done, uint64_t largest, bool largest_new, leat_time delay);
void leat_done_lost(leat_done *done, const leat_sent_loss *loss);

static inline bool leat_done_waits(const leat_done *done)
{
    return !leat_queue_empty(&done->queue);
}

/* Takes up to max elements out; how many. */
size_t leat_done_take(leat_done *done, leat_packet_done *out, size_t max);

void leat_done_check(const leat_done *done);

#endif
