/* conn/done.c: see conn/done.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/done.h"

#include "conn/conn.h"

enum { TOLD_AT_ONCE = 64 };

/* ---- the queue ---- */

static void charge(leat_done *done)
{
    size_t held = leat_queue_held(&done->queue);
    size_t charged = done->budget->by[LEAT_BUDGET_EVENTS];

    if (held > charged) {
        leat_budget_force(done->budget, LEAT_BUDGET_EVENTS, held - charged);
    } else if (held < charged) {
        leat_budget_refund(done->budget, LEAT_BUDGET_EVENTS, charged - held);
    }
}

void leat_done_init(leat_done *done, leat_mem *mem, leat_budget *budget)
{
    *done = (leat_done){.budget = budget};
    leat_queue_init(&done->queue, mem, sizeof(leat_packet_done));
}

void leat_done_clear(leat_done *done)
{
    leat_queue_free(&done->queue);
    charge(done);
}

void leat_done_shrink(leat_done *done)
{
    leat_queue_shrink(&done->queue);
    charge(done);
}

static void push(leat_done *done, const leat_packet_done *news)
{
    leat_packet_done *at = leat_queue_push(&done->queue);

    if (at) {
        *at = *news;
        charge(done);
    }
}

size_t leat_done_take(leat_done *done, leat_packet_done *out, size_t max)
{
    const leat_packet_done *next;
    size_t n = 0;

    while (n < max && (next = leat_queue_pop(&done->queue)) != NULL) {
        out[n++] = *next;
    }
    return n;
}

void leat_done_check(const leat_done *done)
{
    leat_queue_check(&done->queue);
    LEAT_ASSERT(done->budget->by[LEAT_BUDGET_EVENTS] == leat_queue_held(&done->queue));
}

/* ---- an ACK frame ---- */

static bool is_told(uint8_t flags)
{
    return (flags & LEAT_SENT_ELICITING) && !(flags & LEAT_SENT_MTU_PROBE);
}

void leat_done_begin(leat_done *done, leat_time at)
{
    done->begun = leat_queue_count(&done->queue);
    done->at = at;
}

void leat_done_acked(void *ctx, uint64_t pn, const leat_sent_packet *packet)
{
    leat_done *done = ctx;
    leat_packet_done news = {
        .number = pn,
        .sent = packet->sent_at,
        .acked = done->at,
        .arrived = LEAT_TIME_NEVER,
        .size = packet->size,
    };

    if (is_told(packet->flags)) {
        push(done, &news);
    }
}

void leat_done_end(leat_done *done, uint64_t largest, bool largest_new, leat_time delay)
{
    uint32_t from = done->begun;
    uint32_t to = leat_queue_count(&done->queue);
    leat_packet_done *first = leat_queue_at(&done->queue, from);

    /* A delay that reaches back before the sending is not true. */
    if (first && largest_new && first->number == largest) {
        first->arrived = delay < done->at - first->sent ? done->at - delay : first->sent;
    }
    for (; from + 1 < to; from++, to--) {
        leat_packet_done *low = leat_queue_at(&done->queue, from);
        leat_packet_done *high = leat_queue_at(&done->queue, to - 1);
        leat_packet_done swap = *low;

        *low = *high;
        *high = swap;
    }
}

void leat_done_lost(leat_done *done, const leat_sent_loss *loss)
{
    leat_packet_done news = {
        .number = loss->pn,
        .sent = loss->sent_at,
        .acked = loss->now,
        .arrived = LEAT_TIME_NEVER,
        .size = loss->size,
        .lost = true,
    };

    if (is_told(loss->flags)) {
        push(done, &news);
    }
}

/* ---- the connection's ---- */

/* In batches of the caller's stack: a callback may close the connection, which empties the queue.
 */
void leat_conn_tell_done(leat_conn *conn)
{
    leat_packet_done news[TOLD_AT_ONCE];
    size_t n;

    while ((n = leat_done_take(&conn->done, news, TOLD_AT_ONCE)) > 0) {
        if (conn->events->packets_done) {
            conn->events->packets_done(conn, news, n, conn->user);
        }
    }
}
