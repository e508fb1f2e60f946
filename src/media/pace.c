/* media/pace.c: the pacer's queues and its clock.
 *
 * `next` is when the rate lets the next packet leave: each that leaves moves it on by the time its
 * bytes take. It lags behind the present by LEAT_PACE_BURST at most, which is what a caller's timer
 * may be late by without the rate falling short. A ring's head and tail run on for ever; their
 * difference is how many wait.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <leat/pace.h>

#include "base/assert.h"
#include "base/time.h"
#include "mem/mem.h"

static size_t bytes_of(const leat_pace *p)
{
    return ((size_t)p->mask + 1) * LEAT_PACE_KINDS * sizeof *p->items;
}

leat_err leat_pace_init(leat_pace *p, leat_mem *mem, size_t packets, uint64_t rate)
{
    packets = packets ? packets : LEAT_PACE_PACKETS_DEFAULT;
    *p = (leat_pace){.mem = mem, .rate = rate};
    if (packets < LEAT_PACE_PACKETS_MIN || packets > LEAT_PACE_PACKETS_MAX ||
        (packets & (packets - 1)) != 0 || rate == 0) {
        return LEAT_ERR_INVALID;
    }
    p->mask = (uint32_t)packets - 1;
    p->items = (leat_pace_item *)leat_mem_take(mem, bytes_of(p));
    return p->items ? LEAT_OK : LEAT_ERR_NOMEM;
}

void leat_pace_free(leat_pace *p)
{
    if (p->items) {
        leat_mem_give(p->mem, p->items, bytes_of(p));
        p->items = NULL;
    }
}

static leat_pace_item *slot(const leat_pace *p, unsigned kind, uint32_t at)
{
    return &p->items[(size_t)kind * ((size_t)p->mask + 1) + (at & p->mask)];
}

static bool is_empty(const leat_pace *p, unsigned kind)
{
    return p->head[kind] == p->tail[kind];
}

/* The first kind of which something waits; LEAT_PACE_KINDS: none. */
static unsigned first_kind(const leat_pace *p)
{
    unsigned kind = 0;

    while (kind < LEAT_PACE_KINDS && is_empty(p, kind)) {
        kind++;
    }
    return kind;
}

/* How long bytes take at the rate. */
static leat_time time_of(const leat_pace *p, uint64_t bytes)
{
    return p->rate ? leat_time_mul(bytes * 8, LEAT_SECOND) / p->rate : LEAT_TIME_NEVER;
}

void leat_pace_set_rate(leat_pace *p, uint64_t rate)
{
    p->rate = rate;
}

leat_err leat_pace_push(leat_pace *p, leat_pace_kind kind, void *packet, uint32_t size,
                        leat_time now)
{
    LEAT_ASSERT((unsigned)kind < LEAT_PACE_KINDS);
    if (p->head[kind] - p->tail[kind] > p->mask) {
        return LEAT_ERR_LIMIT;
    }
    *slot(p, kind, p->head[kind]++) =
        (leat_pace_item){.packet = packet, .at = now, .size = size, .kind = kind};
    p->queued[kind] += size;
    return LEAT_OK;
}

bool leat_pace_drop(leat_pace *p, leat_pace_kind kind, leat_pace_item *out)
{
    LEAT_ASSERT((unsigned)kind < LEAT_PACE_KINDS);
    if (is_empty(p, kind)) {
        return false;
    }
    *out = *slot(p, kind, p->tail[kind]++);
    p->queued[kind] -= out->size;
    return true;
}

void leat_pace_sent(leat_pace *p, leat_time now, uint32_t size)
{
    leat_time from = leat_time_max(p->next, leat_time_since(now, LEAT_PACE_BURST));
    leat_time takes = time_of(p, size);

    if (takes != LEAT_TIME_NEVER) { /* stopped: the clock stands still */
        p->next = leat_time_add(from, takes);
    }
}

static bool may_leave(const leat_pace *p, unsigned kind, leat_time now)
{
    return kind == LEAT_PACE_AUDIO || (p->rate > 0 && now >= p->next);
}

bool leat_pace_pop(leat_pace *p, leat_time now, leat_pace_item *out)
{
    unsigned kind = first_kind(p);

    if (kind == LEAT_PACE_KINDS || !may_leave(p, kind, now)) {
        return false;
    }
    leat_pace_drop(p, (leat_pace_kind)kind, out);
    leat_pace_sent(p, now, out->size);
    return true;
}

leat_time leat_pace_deadline(const leat_pace *p)
{
    unsigned kind = first_kind(p);

    if (kind == LEAT_PACE_AUDIO) {
        return 0;
    }
    return kind == LEAT_PACE_KINDS || p->rate == 0 ? LEAT_TIME_NEVER : p->next;
}

uint64_t leat_pace_room(const leat_pace *p, leat_time now)
{
    leat_time from = leat_time_max(p->next, leat_time_since(now, LEAT_PACE_BURST));

    if (first_kind(p) != LEAT_PACE_KINDS || now < p->next || p->rate == 0) {
        return 0;
    }
    return p->rate / 8 * (now - from) / LEAT_SECOND + 1;
}

uint64_t leat_pace_queued(const leat_pace *p)
{
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < LEAT_PACE_KINDS; kind++) {
        sum += p->queued[kind];
    }
    return sum;
}

leat_time leat_pace_queue_time(const leat_pace *p)
{
    uint64_t bytes = leat_pace_queued(p);

    return bytes ? time_of(p, bytes) : 0;
}
