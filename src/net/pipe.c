/* net/pipe.c: the pipe's way, step by step as net/pipe.h numbers them.
 *
 * Under way are two collections: a list of those that keep their order, whose times of delivery
 * never fall, and a heap of the few that are held back. What comes out next is the earlier of the
 * two heads; ties are ordered by when they went in.
 *
 * Chance is drawn only where a setting asks for it, always in the same order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/pipe.h"

#include <string.h>

#include "base/assert.h"
#include "base/time.h"

struct leat_pipe_entry {
    leat_dgram dgram;
    leat_time at;
    uint64_t order;
    leat_pipe_entry *next; /* in the list or the heap */
    leat_pipe_entry *prev; /* heap only, as child */
    leat_pipe_entry *child;
};

static inline bool earlier(const leat_pipe_entry *a, const leat_pipe_entry *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

#define LEAT_HEAP_NAME         held_heap
#define LEAT_HEAP_TYPE         leat_pipe_entry
#define LEAT_HEAP_BEFORE(a, b) earlier(a, b)
#include "base/heap.h"

void leat_pipe_init(leat_pipe *pipe, leat_mem *mem, const leat_pipe_settings *settings,
                    uint64_t seed)
{
    memset(pipe, 0, sizeof(*pipe));
    pipe->mem = mem;
    leat_prng_seed(&pipe->prng, seed);
    leat_pool_init(&pipe->pool, mem, sizeof(leat_pipe_entry), "datagrams under way");
    if (settings != NULL) {
        pipe->settings = *settings;
    }
}

void leat_pipe_set(leat_pipe *pipe, const leat_pipe_settings *settings)
{
    pipe->settings = *settings;
    pipe->losing = false;
}

void leat_pipe_free(leat_pipe *pipe)
{
    leat_dgram dgram;
    while (leat_pipe_recv(pipe, LEAT_TIME_NEVER, &dgram)) {
        leat_buf_release(&dgram.buf);
    }
    leat_pool_free(&pipe->pool);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static bool chance(leat_pipe *pipe, uint32_t parts)
{
    return parts != 0 && leat_prng_chance(&pipe->prng, parts, LEAT_PIPE_WHOLE);
}

/* Step 3. A burst goes on with chance 1 - 1/mean, which makes its mean length what is asked. */
static bool is_lost(leat_pipe *pipe)
{
    uint32_t mean = pipe->settings.loss_burst;
    if (pipe->losing) {
        pipe->losing = !leat_prng_chance(&pipe->prng, 1, mean);
    }
    if (!pipe->losing && chance(pipe, pipe->settings.loss)) {
        pipe->losing = mean > 1;
        return true;
    }
    return pipe->losing;
}

/* The square root of a number, rounded down. */
static uint64_t root(uint64_t n)
{
    uint64_t r = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1) {
        if ((r + bit) * (r + bit) <= n) {
            r += bit;
        }
    }
    return r;
}

/* CoDel, RFC 8289 s5.3: whether a datagram that leaves the queue at `now`, having waited so long,
 * is let through. Datagrams leave in the order in which they came and one that is dropped delays
 * nobody, so it can be said when they come. That a queue of less than one datagram is left alone
 * (s5.4) is not known then; the target stands for it. */
static bool codel_passes(leat_pipe *pipe, leat_time now, leat_time waited)
{
    leat_pipe_codel *c = &pipe->codel;
    leat_time interval = 20 * pipe->settings.codel;
    bool late = false;

    if (waited < pipe->settings.codel) {
        c->first_above = 0;
    } else if (c->first_above == 0) {
        c->first_above = leat_time_add(now, interval);
    } else {
        late = now >= c->first_above;
    }
    if (!late) {
        c->dropping = false;
        return true;
    }
    if (c->dropping && now < c->drop_next) {
        return true;
    }
    if (c->dropping) {
        c->count++;
        c->drop_next = leat_time_add(c->drop_next, root(interval * interval / c->count));
    } else {
        bool again = leat_time_since(now, c->drop_next) < 8 * interval;
        c->count = again && c->count > 2 ? c->count - 2 : 1;
        c->drop_next = leat_time_add(now, root(interval * interval / c->count));
        c->dropping = true;
    }
    pipe->stats.codel++;
    return false;
}

/* Step 4: waits behind what was sent before. Sets *through to when it is through; false: the queue
 * is full. */
static bool pass_rate(leat_pipe *pipe, leat_time now, leat_dgram *dgram, leat_time *through)
{
    const leat_pipe_settings *s = &pipe->settings;
    if (s->rate == 0) {
        *through = now;
        return true;
    }
    leat_time wait = leat_time_since(pipe->idle_at, now);
    /* in 128 bits: hours of queue at terabits must not overflow */
    uint64_t waiting = (uint64_t)((unsigned __int128)wait * s->rate / (8 * LEAT_SECOND));
    if (s->queue != 0 && wait != 0 && waiting + dgram->buf.len > s->queue) {
        return false;
    }
    if (s->mark != 0 && waiting > s->mark && dgram->ecn != LEAT_ECN_NOT_ECT) {
        pipe->stats.marked += dgram->ecn != LEAT_ECN_CE;
        dgram->ecn = LEAT_ECN_CE;
    }
    if (s->codel != 0 && !codel_passes(pipe, now + wait, wait)) {
        return false;
    }
    leat_time takes = (leat_time)((unsigned __int128)dgram->buf.len * 8 * LEAT_SECOND / s->rate);
    pipe->idle_at = leat_time_add(now + wait, takes);
    *through = pipe->idle_at;
    return true;
}

/* Step 5. */
static void damage(leat_pipe *pipe, leat_dgram *dgram)
{
    const leat_pipe_settings *s = &pipe->settings;
    bool damaged = false;
    if (chance(pipe, s->corrupt) && dgram->buf.len > 0) {
        uint64_t bit = leat_prng_below(&pipe->prng, dgram->buf.len * 8);
        dgram->buf.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        damaged = true;
    }
    if (chance(pipe, s->truncate) && dgram->buf.len > 0) {
        leat_buf_trim(&dgram->buf, leat_prng_below(&pipe->prng, dgram->buf.len));
        damaged = true;
    }
    if (s->bleach) {
        dgram->ecn = LEAT_ECN_NOT_ECT;
    }
    dgram->damaged |= damaged;
    pipe->stats.damaged += damaged;
}

/* Steps 6 and 7: when it comes out, given when it is through the rate. */
static leat_time arrival(leat_pipe *pipe, leat_time through, bool *held)
{
    const leat_pipe_settings *s = &pipe->settings;
    leat_time at = leat_time_add(through, s->delay);
    if (s->jitter != 0) {
        at = leat_time_add(at, leat_prng_between(&pipe->prng, 0, s->jitter));
    }
    at = leat_time_max(at, pipe->last_at);
    *held = chance(pipe, s->reorder);
    if (*held) {
        return leat_time_add(at, s->reorder_delay != 0 ? s->reorder_delay : LEAT_MILLISECOND);
    }
    pipe->last_at = at;
    return at;
}

static void append(leat_pipe *pipe, leat_pipe_entry *entry)
{
    entry->next = NULL;
    if (pipe->first == NULL) {
        pipe->first = entry;
    } else {
        pipe->last->next = entry;
    }
    pipe->last = entry;
}

/* Steps 5 to 7: puts it under way. */
static void dispatch(leat_pipe *pipe, leat_time through, leat_dgram *dgram)
{
    leat_pipe_entry *entry = leat_pool_take(&pipe->pool);
    if (entry == NULL) {
        pipe->stats.no_memory++;
        leat_buf_release(&dgram->buf);
        return;
    }
    damage(pipe, dgram);
    bool held;
    entry->at = arrival(pipe, through, &held);
    entry->order = pipe->order++;
    entry->dgram = *dgram; /* moves the buffer */
    dgram->buf = (leat_buf){0};
    if (held) {
        pipe->stats.reordered++;
        held_heap_insert(&pipe->held, entry);
    } else {
        append(pipe, entry);
    }
}

/* Step 8. */
static bool copy_of(leat_pipe *pipe, const leat_dgram *dgram, leat_dgram *copy)
{
    *copy = *dgram;
    if (leat_buf_take(pipe->mem, dgram->buf.len, &copy->buf) != LEAT_OK) {
        pipe->stats.no_memory++;
        return false;
    }
    if (dgram->buf.len > 0) {
        memcpy(copy->buf.data, dgram->buf.data, dgram->buf.len);
    }
    return true;
}

/* Counts why a datagram does not get through steps 1 to 4; true if it does. */
static bool admit(leat_pipe *pipe, leat_time now, leat_dgram *dgram, leat_time *through)
{
    const leat_pipe_settings *s = &pipe->settings;
    uint64_t index = pipe->stats.sent++;
    if (s->mtu != 0 && dgram->buf.len > s->mtu) {
        pipe->stats.too_large++;
        return false;
    }
    if (s->filter != NULL && !s->filter(s->filter_user, dgram, index)) {
        pipe->stats.filtered++;
        return false;
    }
    if (is_lost(pipe)) {
        pipe->stats.lost++;
        return false;
    }
    uint64_t codel = pipe->stats.codel;
    if (!pass_rate(pipe, now, dgram, through)) {
        pipe->stats.overflowed += pipe->stats.codel == codel;
        return false;
    }
    return true;
}

/* ---- in and out ------------------------------------------------------------------------------ */

void leat_pipe_send(leat_pipe *pipe, leat_time now, leat_dgram *dgram)
{
    leat_time through;
    if (!admit(pipe, now, dgram, &through)) {
        leat_buf_release(&dgram->buf);
        return;
    }
    leat_dgram copy;
    bool copied = chance(pipe, pipe->settings.duplicate) && copy_of(pipe, dgram, &copy);
    dispatch(pipe, through, dgram);
    if (copied) {
        pipe->stats.duplicated++;
        dispatch(pipe, through, &copy);
    }
}

static bool held_is_next(const leat_pipe *pipe)
{
    return pipe->held != NULL && (pipe->first == NULL || earlier(pipe->held, pipe->first));
}

bool leat_pipe_recv(leat_pipe *pipe, leat_time now, leat_dgram *out)
{
    bool from_held = held_is_next(pipe);
    leat_pipe_entry *entry = from_held ? pipe->held : pipe->first;
    if (entry == NULL || entry->at > now) {
        return false;
    }
    if (from_held) {
        held_heap_pop(&pipe->held);
    } else {
        pipe->first = entry->next;
    }
    *out = entry->dgram;
    leat_pool_give(&pipe->pool, entry);
    pipe->stats.delivered++;
    pipe->stats.bytes_delivered += out->buf.len;
    return true;
}

leat_time leat_pipe_deadline(const leat_pipe *pipe)
{
    const leat_pipe_entry *entry = held_is_next(pipe) ? pipe->held : pipe->first;
    return entry != NULL ? entry->at : LEAT_TIME_NEVER;
}

void leat_pipe_check(const leat_pipe *pipe)
{
    size_t listed = 0;
    for (const leat_pipe_entry *e = pipe->first; e != NULL; e = e->next) {
        LEAT_ASSERT(e->next != NULL || e == pipe->last);
        LEAT_ASSERT(e->next == NULL || !earlier(e->next, e));
        listed++;
    }
    held_heap_check(pipe->held);
    LEAT_ASSERT(listed <= leat_pool_live(&pipe->pool));
}
