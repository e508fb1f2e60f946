/* mem/fast.h: buffers, inline, for those on the packet's way. The functions of <leat/buf.h> are
 * these.
 *
 * Taking from the current slab moves a pointer and counts one buffer on it; releasing counts one
 * off. When none is left the current slab starts again at its first byte, the current own block
 * waits where it is, and any other goes to the kept ones. Statistics are summed up
 * from the headers when somebody asks, so they cost the fast path one addition.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_FAST_H
#define LEAT_MEM_FAST_H

#include "mem/core.h"

static inline leat_err leat_buf_take_fast(leat_mem *mem, size_t n, leat_buf *out)
{
#if !LEAT_MEM_GUARD
    if (LEAT_LIKELY(n < mem->cut_below)) {
        size_t room = leat_buf_room(n);
        uint8_t *data = mem->cut;

        if (LEAT_LIKELY(room <= (size_t)(mem->cut_end - data))) {
            leat_block *block = mem->current;

            mem->cut = data + room;
            block->taken++;
            block->used += n;
            out->data = data;
            out->len = n;
            out->block = block;
            return LEAT_OK;
        }
    }
#endif
    return leat_buf_take_slow(mem, n, out);
}

static inline leat_buf leat_buf_slice_fast(const leat_buf *buf, size_t offset, size_t len)
{
    leat_block *block = buf->block;
    leat_buf slice = *buf;

    LEAT_ASSERT(offset <= buf->len);
    LEAT_ASSERT(len <= buf->len - offset);
    if (block) {
        uint8_t *end = buf->data + buf->len;

#if LEAT_MEM_GUARD
        leat_guard_sliced(buf);
#endif
        slice.data += offset;
        slice.len = len;
        block->taken++;
        block->used += len;
        if (end > block->sliced) {
            block->sliced = end;
        }
    }
    return slice;
}

static inline void leat_buf_release_fast(leat_buf *buf)
{
    leat_block *block = buf->block;
    uint64_t gone;

    if (LEAT_UNLIKELY(!block)) {
        return;
    }
#if LEAT_MEM_GUARD
    leat_guard_released(buf);
#endif
    gone = block->gone + 1;
    block->gone = gone;
    block->used -= buf->len;
    buf->data = NULL;
    buf->len = 0;
    buf->block = NULL;
    if (gone >= block->taken) {
        leat_mem *mem = block->mem;

        LEAT_ASSERT(gone == block->taken);
        if (LEAT_LIKELY(block == mem->current)) {
            mem->cut = block->data;
            block->sliced = block->data;
            block->used = 0;
        } else if (block != mem->own_current) {
            leat_block_keep(block);
        }
#if LEAT_MEM_GUARD
        leat_guard_reset(block);
#endif
    }
}

/* Drops the first n bytes of the buffer; n <= buf->len. With leat_buf_trim() the way to move a
 * buffer's bounds: changed by hand, the statistics would count bytes that nobody holds. */
static inline void leat_buf_advance(leat_buf *buf, size_t n)
{
    LEAT_ASSERT(n <= buf->len);
    if (n) {
        buf->data += n;
        buf->len -= n;
        buf->block->used -= n;
    }
}

#endif
