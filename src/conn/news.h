/* conn/news.h: what is new of packets, told to an application that asks for it (`packet_news`).
 *
 * An ACK frame is worked through newest packet first, in the middle of recovery's bookkeeping: what
 * it says is queued, put in order when the frame is done with, and told by the event task.
 *
 *   1. leat_news_sent() for each packet that goes out.
 *   2. leat_news_begin() before an ACK frame of the application's space, leat_news_acked() for each
 *      packet, as recovery meets them, leat_news_end() when the frame is through.
 *   3. leat_news_lost() for each packet lost.
 *   4. leat_conn_tell_news() from the event task.
 *
 * What was sent does not wake anybody: it is told before what comes next. Without memory the news
 * of one packet is not told; that there was some is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_NEWS_H
#define LEAT_CONN_NEWS_H

#include <leat/quic.h>

#include "mem/budget.h"
#include "mem/queue.h"
#include "recovery/sent.h"

typedef struct leat_news {
    leat_queue queue; /* leat_packet_news */
    leat_budget *budget;
    uint32_t begun; /* elements when the present ACK frame began */
    bool missed;    /* there was no memory for some: told as news of no packet */
    leat_time at;   /* when it came */
} leat_news;

void leat_news_init(leat_news *all, leat_mem *mem, leat_budget *budget);
void leat_news_clear(leat_news *all);
/* Gives the storage back, if nothing is queued. */
void leat_news_shrink(leat_news *all);

/* flags are leat_sent_flags. */
void leat_news_sent(leat_news *all, uint64_t pn, leat_time now, size_t size, uint8_t flags);
void leat_news_begin(leat_news *all, leat_time at);
/* A leat_sent_acked_fn; ctx is the leat_news. */
void leat_news_acked(void *ctx, uint64_t pn, const leat_sent_packet *packet);
/* largest_new: the largest number of the frame was newly acknowledged; delay: the frame's. */
void leat_news_end(leat_news *all, uint64_t largest, bool largest_new, leat_time delay);
void leat_news_lost(leat_news *all, const leat_sent_loss *loss);

static inline bool leat_news_waits(const leat_news *all)
{
    return !leat_queue_empty(&all->queue) || all->missed;
}

/* Takes up to max elements out; how many. */
size_t leat_news_take(leat_news *all, leat_packet_news *out, size_t max);

void leat_news_check(const leat_news *all);

#endif
