/* conn/news.c: see conn/news.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/news.h"

#include "conn/conn.h"

enum { TOLD_AT_ONCE = 64 };

/* ---- the queue ---- */

void leat_news_init(leat_news *all, leat_mem *mem, leat_budget *budget)
{
    *all = (leat_news){.budget = budget};
    leat_queue_init(&all->queue, mem, sizeof(leat_packet_news));
}

void leat_news_clear(leat_news *all)
{
    leat_budget_refund(all->budget, LEAT_BUDGET_EVENTS, leat_queue_held(&all->queue));
    leat_queue_free(&all->queue);
    all->missed = false;
}

void leat_news_shrink(leat_news *all)
{
    if (leat_queue_empty(&all->queue)) {
        leat_budget_refund(all->budget, LEAT_BUDGET_EVENTS, leat_queue_held(&all->queue));
        leat_queue_free(&all->queue);
    }
}

/* Room for one more; false: neither the budget nor memory has any. */
static bool make_room(leat_news *all)
{
    uint32_t count = leat_queue_count(&all->queue) + 1;
    size_t more;

    if (count <= all->queue.cap) {
        return true;
    }
    more = leat_queue_growth(&all->queue, count);
    if (!leat_budget_charge(all->budget, LEAT_BUDGET_EVENTS, more)) {
        return false;
    }
    if (leat_queue_reserve(&all->queue, count) != LEAT_OK) {
        leat_budget_refund(all->budget, LEAT_BUDGET_EVENTS, more);
        return false;
    }
    return true;
}

static void push(leat_news *all, const leat_packet_news *news)
{
    if (make_room(all)) {
        *(leat_packet_news *)leat_queue_add(&all->queue) = *news;
    } else {
        all->missed = true;
    }
}

size_t leat_news_take(leat_news *all, leat_packet_news *out, size_t max)
{
    const leat_packet_news *next;
    size_t n = 0;

    while (n < max && (next = leat_queue_pop(&all->queue)) != NULL) {
        out[n++] = *next;
    }
    return n;
}

void leat_news_check(const leat_news *all)
{
    leat_queue_check(&all->queue);
    LEAT_ASSERT(all->budget->by[LEAT_BUDGET_EVENTS] == leat_queue_held(&all->queue));
}

/* ---- packets ---- */

static bool is_told(uint8_t flags)
{
    return (flags & LEAT_SENT_ELICITING) && !(flags & LEAT_SENT_MTU_PROBE);
}

void leat_news_sent(leat_news *all, uint64_t pn, leat_time now, size_t size, uint8_t flags)
{
    leat_packet_news news = {
        .number = pn,
        .sent = now,
        .at = now,
        .arrived = LEAT_TIME_NEVER,
        .size = (uint32_t)size,
        .fate = LEAT_PACKET_SENT,
    };

    if (is_told(flags)) {
        push(all, &news);
    }
}

void leat_news_begin(leat_news *all, leat_time at)
{
    all->begun = leat_queue_count(&all->queue);
    all->at = at;
}

void leat_news_acked(void *ctx, uint64_t pn, const leat_sent_packet *packet)
{
    leat_news *all = ctx;
    leat_packet_news news = {
        .number = pn,
        .sent = packet->sent_at,
        .at = all->at,
        .arrived = LEAT_TIME_NEVER,
        .size = packet->size,
        .fate = LEAT_PACKET_ACKED,
    };

    if (is_told(packet->flags)) {
        push(all, &news);
    }
}

void leat_news_end(leat_news *all, uint64_t largest, bool largest_new, leat_time delay)
{
    uint32_t from = all->begun;
    uint32_t to = leat_queue_count(&all->queue);
    leat_packet_news *first = leat_queue_at(&all->queue, from);

    /* A delay that reaches back before the sending is not true. */
    if (first && largest_new && first->number == largest) {
        first->arrived = delay < all->at - first->sent ? all->at - delay : first->sent;
    }
    for (; from + 1 < to; from++, to--) {
        leat_packet_news *low = leat_queue_at(&all->queue, from);
        leat_packet_news *high = leat_queue_at(&all->queue, to - 1);
        leat_packet_news swap = *low;

        *low = *high;
        *high = swap;
    }
}

void leat_news_lost(leat_news *all, const leat_sent_loss *loss)
{
    leat_packet_news news = {
        .number = loss->pn,
        .sent = loss->sent_at,
        .at = loss->now,
        .arrived = LEAT_TIME_NEVER,
        .size = loss->size,
        .fate = LEAT_PACKET_LOST,
    };

    if (is_told(loss->flags)) {
        push(all, &news);
    }
}

/* ---- the connection's ---- */

bool leat_conn_tells_news(const leat_conn *conn, leat_space space)
{
    return space == LEAT_SPACE_APP && conn->events && conn->events->packet_news;
}

/* In batches of the caller's stack: a callback may close the connection, which empties the queue.
 */
void leat_conn_tell_news(leat_conn *conn)
{
    leat_packet_news news[TOLD_AT_ONCE];
    size_t n;

    while ((n = leat_news_take(&conn->news, news, TOLD_AT_ONCE)) > 0 || conn->news.missed) {
        conn->news.missed &= n > 0;
        if (conn->events->packet_news) {
            conn->events->packet_news(conn, news, n, conn->user);
        }
    }
}
