/* stream/reassembly.c: see reassembly.h.
 *
 * New bytes only ever go into holes. A hole lies at the end of one run and before the start of the
 * next, so a piece is appended to a run, put in front of one, or makes a new one between; nothing
 * is inserted in the middle of a run. When a hole closes two runs become one by linking them. The
 * runs other than the front are found by binary search in an array of pointers.
 *
 * When a piece is referenced and when it is copied (append_piece, new_run):
 *   - A few bytes (< SMALL) that follow others are gathered in copies with room for more, so that a
 * peer that sends byte by byte does not make us hold a segment and a reference for each.
 *   - A few bytes that start a run elsewhere are copied tightly.
 *   - The rest is referenced, if that retains no more than DENSE times its length, or while less
 * than half of the budget is in use; else it is copied. What is first in line is read soon, as a
 * rule, so it is not copied just for being small.
 *
 * Invariants: read <= front < runs[0]->offset, and each run ends before the next begins; segments
 * of a run touch.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/reassembly.h"

#include <string.h>

#define SMALL        128u  /* bytes: less than a segment and its share of a reference cost */
#define GATHER_FIRST 512u  /* room of the first copy that gathers small pieces */
#define GATHER_MAX   4096u /* and of the last */
#define DENSE        2u    /* bytes retained for each byte held: a copy costs as much at worst */
#define RUNS_FIRST   8u

void leat_reassembly_init(leat_reassembly *held, leat_stream_env *env, leat_budget_user user,
                          uint32_t gaps_max)
{
    *held = (leat_reassembly){.env = env, .budget_user = (uint8_t)user, .gaps_max = gaps_max};
}

/* ---- memory ---- */

static bool charge(leat_reassembly *held, size_t n)
{
    return leat_budget_charge(held->env->budget, held->budget_user, n);
}

static void refund(leat_reassembly *held, size_t n)
{
    leat_budget_refund(held->env->budget, held->budget_user, n);
}

static bool same_block(const leat_recv_segment *a, const leat_recv_segment *b)
{
    return a && b && a->buf.block && a->buf.block == b->buf.block;
}

/* What a segment retains when it stands alone. */
static size_t retained(const leat_recv_segment *seg)
{
    return seg->size > 0 ? seg->size : leat_buf_pinned(&seg->buf);
}

/* Two runs meet, or a reference joins a run: a block that both retain is paid for once. */
static void refund_shared(leat_reassembly *held, const leat_recv_segment *a,
                          const leat_recv_segment *b)
{
    if (same_block(a, b)) {
        refund(held, retained(b));
    }
}

static leat_recv_segment *take_segment(leat_reassembly *held, uint64_t offset, size_t cost)
{
    leat_recv_segment *seg;

    if (!charge(held, cost + sizeof *seg)) {
        return NULL;
    }
    seg = leat_pool_take(&held->env->pools->segments);
    if (!seg) {
        refund(held, cost + sizeof *seg);
        return NULL;
    }
    *seg = (leat_recv_segment){.offset = offset};
    return seg;
}

/* Gives a segment back, and what it alone retains. */
static void give_segment(leat_reassembly *held, leat_recv_segment *seg, bool shared)
{
    size_t cost = shared ? 0 : retained(seg);

    if (seg->size > 0) {
        leat_mem_give(held->env->pools->mem, seg->buf.data, seg->size);
    } else {
        leat_buf_release(&seg->buf);
    }
    refund(held, cost + sizeof *seg);
    leat_pool_give(&held->env->pools->segments, seg);
}

/* A copy of data with room for `room` bytes, at least data->len. NULL: no memory. */
static leat_recv_segment *copy_piece(leat_reassembly *held, uint64_t offset, const leat_buf *data,
                                     size_t room)
{
    size_t size = leat_mem_class_size(room);
    leat_recv_segment *seg = take_segment(held, offset, size);
    uint8_t *bytes;

    if (!seg) {
        return NULL;
    }
    bytes = leat_mem_take(held->env->pools->mem, size);
    if (!bytes) {
        refund(held, size + sizeof *seg);
        leat_pool_give(&held->env->pools->segments, seg);
        return NULL;
    }
    memcpy(bytes, data->data, data->len);
    seg->buf.data = bytes;
    seg->len = (uint32_t)data->len;
    seg->size = (uint32_t)size;
    return seg;
}

/* A reference, or a copy where that is better. prev and next: the neighbours that the piece will
 * touch, or NULL. NULL: no memory. */
static leat_recv_segment *hold_piece(leat_reassembly *held, uint64_t offset, const leat_buf *data,
                                     const leat_recv_segment *prev, const leat_recv_segment *next)
{
    const leat_budget *budget = held->env->budget;
    bool shared =
        (prev && prev->buf.block == data->block) || (next && next->buf.block == data->block);
    leat_recv_segment *seg = NULL;
    size_t cost;

    if (!data->block) {
        return copy_piece(held, offset, data,
                          data->len); /* bytes that nobody counts references on */
    }
    cost = shared ? 0 : leat_buf_pinned(data);
    if (cost <= DENSE * data->len || budget->limit == 0 ||
        budget->used + cost <= budget->limit / 2) {
        seg = take_segment(held, offset, cost);
    }
    if (!seg) {
        return copy_piece(held, offset, data, data->len);
    }
    seg->buf = leat_buf_slice(data, 0, data->len);
    seg->len = (uint32_t)data->len;
    return seg;
}

/* ---- runs ---- */

static leat_err grow_runs(leat_reassembly *held)
{
    uint32_t cap = held->run_cap > 0 ? 2 * held->run_cap : RUNS_FIRST;
    size_t old_bytes = held->run_cap * sizeof *held->runs;
    size_t bytes = cap * sizeof *held->runs;
    leat_recv_segment **runs;

    if (!charge(held, bytes - old_bytes)) {
        return LEAT_ERR_NOMEM;
    }
    runs = leat_mem_regrow(held->env->pools->mem, held->runs, old_bytes, bytes);
    if (!runs) {
        refund(held, bytes - old_bytes);
        return LEAT_ERR_NOMEM;
    }
    held->runs = runs;
    held->run_cap = cap;
    return LEAT_OK;
}

static void free_runs(leat_reassembly *held)
{
    size_t bytes = held->run_cap * sizeof *held->runs;

    LEAT_ASSERT(held->run_count == 0);
    leat_mem_give(held->env->pools->mem, held->runs, bytes);
    refund(held, bytes);
    held->runs = NULL;
    held->run_cap = 0;
}

static leat_err insert_run(leat_reassembly *held, uint32_t at, leat_recv_segment *seg)
{
    if (held->run_count == held->gaps_max) {
        return LEAT_ERR_LIMIT;
    }
    if (held->run_count == held->run_cap && grow_runs(held) != LEAT_OK) {
        return LEAT_ERR_NOMEM;
    }
    memmove(&held->runs[at + 1], &held->runs[at], (held->run_count - at) * sizeof *held->runs);
    held->runs[at] = seg;
    held->run_count++;
    seg->run_last = seg;
    seg->run_to = seg->offset + seg->len;
    return LEAT_OK;
}

static void remove_run(leat_reassembly *held, uint32_t at)
{
    held->run_count--;
    memmove(&held->runs[at], &held->runs[at + 1], (held->run_count - at) * sizeof *held->runs);
    if (held->run_count == 0) {
        free_runs(held);
    }
}

/* The first run that ends at offset or after it; run_count if none does. */
static uint32_t find_run(const leat_reassembly *held, uint64_t offset)
{
    uint32_t from = 0;
    uint32_t to = held->run_count;

    /* Most often data comes at the end of the last run or after it. */
    if (to > 0 && held->runs[to - 1]->run_to < offset) {
        return to;
    }
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (held->runs[mid]->run_to >= offset) {
            to = mid;
        } else {
            from = mid + 1;
        }
    }
    return from;
}

/* ---- pieces: parts of what came that fit into one hole ---- */

/* As much as possible of a small piece into the room that `last` has left. Returns the bytes taken.
 */
static size_t gather(leat_recv_segment *last, const leat_buf *data)
{
    size_t room = last && last->size > 0 ? last->size - last->len : 0;
    size_t n = data->len < room ? data->len : room;

    if (data->len >= SMALL || n == 0) {
        return 0;
    }
    memcpy(last->buf.data + last->len, data->data, n);
    last->len += (uint32_t)n;
    return n;
}

/* A segment to follow `last` (NULL: the front run is empty). */
static leat_recv_segment *hold_next(leat_reassembly *held, uint64_t offset, const leat_buf *data,
                                    const leat_recv_segment *last)
{
    size_t room = GATHER_FIRST;

    if (!last || data->len >= SMALL) {
        return hold_piece(held, offset, data, last, NULL);
    }
    if (last->size >= GATHER_FIRST) {
        room = last->size < GATHER_MAX ? 2 * (size_t)last->size : GATHER_MAX;
    }
    return copy_piece(held, offset, data, room);
}

static leat_buf view(const leat_buf *data, size_t skip, size_t len)
{
    return (leat_buf){.data = data->data + skip, .len = len, .block = data->block};
}

/* Appends the piece at the end of a run whose last segment is *last. */
static leat_err append_piece(leat_reassembly *held, uint64_t offset, const leat_buf *data,
                             leat_recv_segment **last)
{
    size_t n = gather(*last, data);
    leat_recv_segment *seg;
    leat_buf rest;

    if (n == data->len) {
        return LEAT_OK;
    }
    rest = view(data, n, data->len - n);
    seg = hold_next(held, offset + n, &rest, *last);
    if (!seg) {
        return LEAT_ERR_NOMEM;
    }
    if (*last) {
        (*last)->next = seg;
    }
    *last = seg;
    return LEAT_OK;
}

static leat_err append_front(leat_reassembly *held, const leat_buf *data)
{
    leat_err err = append_piece(held, held->front, data, &held->last);

    if (err == LEAT_OK) {
        held->front += data->len;
        if (!held->first) {
            held->first = held->last;
        }
    }
    return err;
}

/* The front has reached the first run: they become one. */
static void absorb_run(leat_reassembly *held)
{
    leat_recv_segment *run = held->runs[0];

    refund_shared(held, held->last, run);
    if (held->last) {
        held->last->next = run;
    } else {
        held->first = run;
    }
    held->last = run->run_last;
    held->front = run->run_to;
    remove_run(held, 0);
}

static leat_err append_run(leat_reassembly *held, uint32_t at, const leat_buf *data)
{
    leat_recv_segment *run = held->runs[at];
    leat_err err = append_piece(held, run->run_to, data, &run->run_last);

    if (err != LEAT_OK) {
        return err;
    }
    run->run_to += data->len;
    if (at + 1 < held->run_count && held->runs[at + 1]->offset == run->run_to) {
        leat_recv_segment *next = held->runs[at + 1];

        refund_shared(held, run->run_last, next);
        run->run_last->next = next;
        run->run_last = next->run_last;
        run->run_to = next->run_to;
        remove_run(held, at + 1);
    }
    return LEAT_OK;
}

/* A piece that touches no run before it: a run of its own, or the new start of the one it touches.
 */
static leat_err start_run(leat_reassembly *held, uint32_t at, uint64_t offset, const leat_buf *data)
{
    leat_recv_segment *next = at < held->run_count ? held->runs[at] : NULL;
    bool touches = next && next->offset == offset + data->len;
    leat_recv_segment *seg;
    leat_err err;

    if (data->len < SMALL) {
        seg = copy_piece(held, offset, data, data->len);
    } else {
        seg = hold_piece(held, offset, data, NULL, touches ? next : NULL);
    }
    if (!seg) {
        return LEAT_ERR_NOMEM;
    }
    if (touches) {
        seg->next = next;
        seg->run_last = next->run_last;
        seg->run_to = next->run_to;
        held->runs[at] = seg;
        return LEAT_OK;
    }
    err = insert_run(held, at, seg);
    if (err != LEAT_OK) {
        give_segment(held, seg, false);
    }
    return err;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Puts the first of [offset, to) where it belongs; *done says up to where it is held then. offset >
 * front. */
static leat_err insert_beyond(leat_reassembly *held, uint64_t offset, const leat_buf *data,
                              uint64_t *done)
{
    uint64_t to = offset + data->len;
    uint32_t at = find_run(held, offset);
    leat_recv_segment *run = at < held->run_count ? held->runs[at] : NULL;
    leat_buf piece;

    if (run && run->offset <= offset) {
        if (offset < run->run_to) {
            *done = run->run_to;
            return LEAT_OK;
        }
        *done = at + 1 < held->run_count ? least(to, held->runs[at + 1]->offset) : to;
        piece = view(data, 0, (size_t)(*done - offset));
        return append_run(held, at, &piece);
    }
    *done = run ? least(to, run->offset) : to;
    piece = view(data, 0, (size_t)(*done - offset));
    return start_run(held, at, offset, &piece);
}

static leat_err insert_front(leat_reassembly *held, const leat_buf *data, uint64_t *done)
{
    leat_err err;
    leat_buf piece;

    *done = held->front + data->len;
    if (LEAT_LIKELY(held->run_count == 0)) {
        return append_front(held, data);
    }
    *done = least(*done, held->runs[0]->offset);
    piece = view(data, 0, (size_t)(*done - held->front));
    err = append_front(held, &piece);
    if (err == LEAT_OK && held->runs[0]->offset == held->front) {
        absorb_run(held);
        *done = held->front;
    }
    return err;
}

leat_err leat_reassembly_insert(leat_reassembly *held, uint64_t offset, const leat_buf *data)
{
    uint64_t to = offset + data->len;

    while (offset < to) {
        leat_buf rest;
        uint64_t done;
        leat_err err;

        if (offset < held->front) {
            offset = held->front;
            continue;
        }
        rest = view(data, (size_t)(data->len - (to - offset)), (size_t)(to - offset));
        if (offset == held->front) {
            err = insert_front(held, &rest, &done);
        } else {
            err = insert_beyond(held, offset, &rest, &done);
        }
        if (err != LEAT_OK) {
            return err;
        }
        offset = done;
    }
    return LEAT_OK;
}

/* ---- reading ---- */

static void drop_first(leat_reassembly *held)
{
    leat_recv_segment *seg = held->first;

    held->first = seg->next;
    if (!held->first) {
        held->last = NULL;
    }
    give_segment(held, seg, same_block(seg, held->first));
}

void leat_reassembly_consume(leat_reassembly *held, uint64_t n)
{
    LEAT_ASSERT(n <= leat_reassembly_readable(held));
    held->read += n;
    while (held->first && held->first->offset + held->first->len <= held->read) {
        drop_first(held);
    }
}

leat_err leat_reassembly_peek_buf(const leat_reassembly *held, leat_buf *out)
{
    leat_span span = leat_reassembly_peek(held);
    leat_err err;

    *out = (leat_buf){0};
    if (span.len == 0) {
        return LEAT_ERR_NOT_FOUND;
    }
    if (held->first->size == 0) {
        *out =
            leat_buf_slice(&held->first->buf, (size_t)(held->read - held->first->offset), span.len);
        return LEAT_OK;
    }
    err = leat_buf_take(held->env->pools->mem, span.len, out);
    if (err == LEAT_OK) {
        memcpy(out->data, span.data, span.len);
    }
    return err;
}

/* Shortens a run that begins below `to` and ends above. */
static void cut_run(leat_reassembly *held, leat_recv_segment *run, uint64_t to)
{
    leat_recv_segment *last = run;
    leat_recv_segment *seg;
    const void *block;

    while (last->offset + last->len < to) {
        last = last->next;
    }
    last->len = (uint32_t)(to - last->offset);
    seg = last->next;
    last->next = NULL;
    run->run_last = last;
    run->run_to = to;
    block = last->buf.block;
    while (seg) {
        leat_recv_segment *next = seg->next;
        bool shared = block && seg->buf.block == block; /* with the one before: that one paid */

        block = seg->buf.block;
        give_segment(held, seg, shared);
        seg = next;
    }
}

/* The last run goes: it becomes the front run and goes the same way. */
static void drop_last_run(leat_reassembly *held)
{
    leat_recv_segment *front = held->first;
    leat_recv_segment *front_last = held->last;
    leat_recv_segment *run = held->runs[held->run_count - 1];

    held->first = run;
    held->last = run->run_last;
    remove_run(held, held->run_count - 1);
    while (held->first) {
        drop_first(held);
    }
    held->first = front;
    held->last = front_last;
}

void leat_reassembly_cut(leat_reassembly *held, uint64_t to)
{
    LEAT_ASSERT(held->front <= to);
    while (held->run_count > 0 && held->runs[held->run_count - 1]->offset >= to) {
        drop_last_run(held);
    }
    if (held->run_count > 0 && held->runs[held->run_count - 1]->run_to > to) {
        cut_run(held, held->runs[held->run_count - 1], to);
    }
}

void leat_reassembly_clear(leat_reassembly *held)
{
    while (held->first) {
        drop_first(held);
    }
    while (held->run_count > 0) {
        drop_last_run(held);
    }
    held->front = held->read;
}

/* ---- walking ---- */

/* Walks a run; returns what it should be charged. */
static size_t check_run(const leat_recv_segment *first, const leat_recv_segment *last, uint64_t to)
{
    const leat_recv_segment *prev = NULL;
    size_t cost = 0;

    for (const leat_recv_segment *seg = first; seg; prev = seg, seg = seg->next) {
        LEAT_ASSERT(seg->len > 0);
        LEAT_ASSERT(!prev || prev->offset + prev->len == seg->offset);
        LEAT_ASSERT(seg->size > 0 || seg->buf.block != NULL);
        LEAT_ASSERT(seg->size == 0 || seg->buf.block == NULL);
        LEAT_ASSERT(seg->size == 0 || seg->len <= seg->size);
        cost += sizeof *seg + (same_block(prev, seg) ? 0 : retained(seg));
    }
    LEAT_ASSERT(prev == last);
    LEAT_ASSERT(!last || last->offset + last->len == to);
    return cost;
}

size_t leat_reassembly_check(const leat_reassembly *held)
{
    size_t cost = check_run(held->first, held->last, held->front);
    uint64_t at = held->front;

    LEAT_ASSERT(held->read <= held->front);
    LEAT_ASSERT((held->first != NULL) == (held->read < held->front));
    LEAT_ASSERT(!held->first || held->first->offset <= held->read);
    LEAT_ASSERT(held->run_count <= held->run_cap);
    LEAT_ASSERT(held->run_count <= held->gaps_max);
    for (uint32_t i = 0; i < held->run_count; i++) {
        const leat_recv_segment *run = held->runs[i];

        LEAT_ASSERT(run->offset > at);
        LEAT_ASSERT(run->run_to > run->offset);
        cost += check_run(run, run->run_last, run->run_to);
        at = run->run_to;
    }
    return cost + held->run_cap * sizeof *held->runs;
}
