/* stream/send_chunks.c: the buffers of the sending part.
 *
 * They lie in a ring by offset, each where the one before ends: pushed at one end by the
 * application, freed at the other by acknowledgements, found by binary search in between. One chunk
 * lies in the structure itself, which is all that a short stream needs; then the ring is an array
 * that doubles.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/send_chunks.h"

#include <string.h>

#include "mem/core.h"

#define RING_FIRST 4u /* chunks in the first array */

static void charge_force(leat_stream_send *send, size_t n)
{
    leat_budget_force(send->env->budget, send->budget_user, n);
}

static void refund(leat_stream_send *send, size_t n)
{
    leat_budget_refund(send->env->budget, send->budget_user, n);
}

bool leat_send_chunks_fit(const leat_stream_send *send, size_t n)
{
    const leat_budget *budget = send->env->budget;

    if (send->budget_user != LEAT_BUDGET_STREAM_SEND) {
        return leat_budget_fits(budget, n);
    }
    return budget->limit == 0 || (budget->by[LEAT_BUDGET_STREAM_SEND] + n <= budget->limit / 2 &&
                                  leat_budget_spares(budget, n));
}

static void free_ring(leat_stream_send *send)
{
    if (send->ring) {
        size_t bytes = send->ring_cap * sizeof *send->ring;

        leat_mem_give(send->env->pools->mem, send->ring, bytes);
        refund(send, bytes);
        send->ring = NULL;
    }
    send->ring_cap = LEAT_SEND_INLINE_CHUNKS;
    send->ring_head = 0;
}

static leat_err grow_ring(leat_stream_send *send)
{
    uint32_t cap = send->ring ? 2 * send->ring_cap : RING_FIRST;
    size_t bytes = cap * sizeof *send->ring;
    leat_send_chunk *ring;

    if (!leat_send_chunks_fit(send, bytes)) {
        return LEAT_ERR_LIMIT;
    }
    ring = leat_mem_take(send->env->pools->mem, bytes);
    if (!ring) {
        return LEAT_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < send->ring_count; i++) {
        ring[i] = *leat_send_chunk_at(send, i);
    }
    free_ring(send);
    charge_force(send, bytes);
    send->ring = ring;
    send->ring_cap = cap;
    return LEAT_OK;
}

leat_err leat_send_chunks_push(leat_stream_send *send, leat_buf *buf, size_t used)
{
    leat_send_chunk *last;

    LEAT_ASSERT(used <= buf->len);
    if (send->ring_count == send->ring_cap) {
        leat_err err = grow_ring(send);

        if (err != LEAT_OK) {
            return err;
        }
    }
    if (!leat_send_chunks_fit(send, buf->len)) {
        return LEAT_ERR_LIMIT;
    }
    charge_force(send, buf->len);
    send->ring_count++;
    last = leat_send_chunk_last(send);
    *last = (leat_send_chunk){.buf = *buf, .offset = send->end, .used = used};
    *buf = (leat_buf){0};
    return LEAT_OK;
}

static void release_chunk(leat_stream_send *send, leat_send_chunk *chunk)
{
    refund(send, chunk->buf.len);
    leat_buf_release(&chunk->buf);
}

void leat_send_chunks_trim(leat_stream_send *send)
{
    leat_send_chunk *last = leat_send_chunk_last(send);

    if (!last || last->used == last->buf.len) {
        return;
    }
    if (last->used == 0) {
        release_chunk(send, last);
        send->ring_count--;
        return;
    }
    if (leat_buf_can_shrink(&last->buf)) {
        refund(send, last->buf.len - last->used);
        leat_buf_trim(&last->buf, last->used);
    }
}

void leat_send_chunks_free_below(leat_stream_send *send, uint64_t below)
{
    while (send->ring_count > 0) {
        leat_send_chunk *oldest = leat_send_chunk_at(send, 0);

        if (oldest->offset + oldest->used > below) {
            return;
        }
        if (send->reserved && send->ring_count == 1) {
            return;
        }
        release_chunk(send, oldest);
        send->ring_head = (send->ring_head + 1) & (send->ring_cap - 1);
        send->ring_count--;
    }
}

void leat_send_chunks_cut(leat_stream_send *send)
{
    leat_send_chunk reserved = {0};

    if (send->reserved) {
        reserved = *leat_send_chunk_last(send);
        send->ring_count--;
    }
    while (send->ring_count > 0 && leat_send_chunk_last(send)->offset >= send->end) {
        release_chunk(send, leat_send_chunk_last(send));
        send->ring_count--;
    }
    if (send->ring_count > 0) {
        leat_send_chunk *last = leat_send_chunk_last(send);

        if (last->offset + last->used > send->end) {
            last->used = (size_t)(send->end - last->offset);
            leat_send_chunks_trim(send);
        }
    }
    if (send->reserved) {
        if (reserved.offset >= send->end) {
            reserved.offset = send->end;
            reserved.used = 0;
        } else if (reserved.offset + reserved.used > send->end) {
            reserved.used = (size_t)(send->end - reserved.offset);
        }
        send->ring_count++;
        *leat_send_chunk_last(send) = reserved;
    }
}

void leat_send_chunks_drop(leat_stream_send *send)
{
    leat_send_chunks_free_below(send, UINT64_MAX);
    if (send->ring_count == 0) {
        free_ring(send);
    }
}

/* Whether the i-th chunk holds the byte at offset, which is none below it. */
static inline bool ends_above(const leat_stream_send *send, uint32_t i, uint64_t offset)
{
    return i + 1 == send->ring_count || leat_send_chunk_at(send, i + 1)->offset > offset;
}

static uint32_t search_chunk(const leat_stream_send *send, uint64_t offset)
{
    uint32_t from = 0;
    uint32_t to = send->ring_count;

    while (to - from > 1) {
        uint32_t mid = from + (to - from) / 2;

        if (leat_send_chunk_at(send, mid)->offset <= offset) {
            from = mid;
        } else {
            to = mid;
        }
    }
    return from;
}

/* The index of the chunk that holds the byte at offset: mostly the one found before, or the next.
 */
static inline uint32_t find_chunk(leat_stream_send *send, uint64_t offset)
{
    uint32_t i = (send->ring_near - send->ring_head) & (send->ring_cap - 1);

    if (i >= send->ring_count || leat_send_chunk_at(send, i)->offset > offset) {
        i = search_chunk(send, offset);
    } else if (!ends_above(send, i, offset)) {
        i = ends_above(send, i + 1, offset) ? i + 1 : search_chunk(send, offset);
    }
    send->ring_near = send->ring_head + i;
    return i;
}

void leat_stream_send_copy(leat_stream_send *send, uint64_t offset, size_t len, uint8_t *dst)
{
    if (len == 0) {
        return;
    }
    for (uint32_t i = find_chunk(send, offset); len > 0; i++) {
        const leat_send_chunk *chunk;
        size_t skip, n;

        LEAT_ASSERT(i < send->ring_count);
        chunk = leat_send_chunk_at(send, i);
        LEAT_ASSERT(offset >= chunk->offset);
        skip = (size_t)(offset - chunk->offset);
        LEAT_ASSERT(skip <= chunk->used);
        n = chunk->used - skip < len ? chunk->used - skip : len;
        memcpy(dst, chunk->buf.data + skip, n);
        dst += n;
        offset += n;
        len -= n;
    }
}

leat_span leat_stream_send_span(leat_stream_send *send, uint64_t offset, size_t max)
{
    const leat_send_chunk *chunk;
    size_t skip, n;

    if (offset < send->base || offset >= send->end || send->ring_count == 0) {
        return (leat_span){0};
    }
    chunk = leat_send_chunk_at(send, find_chunk(send, offset));
    skip = (size_t)(offset - chunk->offset);
    n = chunk->used - skip < max ? chunk->used - skip : max;
    return (leat_span){.data = chunk->buf.data + skip, .len = n};
}

void leat_send_chunks_check(const leat_stream_send *send)
{
    uint64_t at = 0;

    LEAT_ASSERT(send->ring_count <= send->ring_cap);
    LEAT_ASSERT((send->ring_cap & (send->ring_cap - 1)) == 0);
    for (uint32_t i = 0; i < send->ring_count; i++) {
        const leat_send_chunk *chunk = leat_send_chunk_at(send, i);

        LEAT_ASSERT(i == 0 || chunk->offset == at);
        LEAT_ASSERT(chunk->used <= chunk->buf.len);
        LEAT_ASSERT(i == 0 || chunk->used > 0 || i + 1 == send->ring_count);
        at = chunk->offset + chunk->used;
    }
    if (leat_stream_send_live(send)) {
        LEAT_ASSERT(send->ring_count == 0 || at == send->end);
        LEAT_ASSERT(send->ring_count == 0 || leat_send_chunk_at(send, 0)->offset <= send->base);
        LEAT_ASSERT(send->ring_count > 0 || send->base == send->end);
    }
}
