/* mem/fast.h: buffers, inline, for those on the packet's way. The functions of <leat/buf.h> are
 * these.
 *
 * Taking from the current slab moves a pointer and counts one buffer on it; releasing counts one
 * off. When none is left the current slab starts again at its first byte, the current own block
 * waits where it is, and any other goes to the kept ones. Statistics are summed up from the headers
 * when somebody asks, so they cost the fast path one addition. What counts is the number of stores,
 * of which a processor writes one a cycle: nothing is stored that stands there already.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_FAST_H
#define LEAT_MEM_FAST_H

#include <string.h>

#include "mem/core.h"

/* Cuts it from the current slab. False: it is too large for one, or does not fit there now. */
static inline bool leat_buf_cut(leat_mem *mem, size_t n, leat_buf *out)
{
#if !LEAT_MEM_GUARD
    if (LEAT_LIKELY(n < mem->cut_below)) {
        size_t room = leat_buf_room(n);
        uint8_t *data = mem->cut;

        if (LEAT_LIKELY(room <= (size_t)(mem->cut_end - data))) {
            leat_block *block = mem->current;

            mem->cut = data + room;
            leat_block_add(&block->came, leat_block_share(n));
            out->data = data;
            out->len = n;
            out->block = block;
            return true;
        }
    }
#else
    (void)mem, (void)n, (void)out;
#endif
    return false;
}

static inline leat_err leat_buf_take_fast(leat_mem *mem, size_t n, leat_buf *out)
{
    return LEAT_LIKELY(leat_buf_cut(mem, n, out)) ? LEAT_OK : leat_buf_take_slow(mem, n, out);
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
        leat_block_add(&block->came, leat_block_share(len));
        LEAT_ASSERT(leat_block_refs(block) > 0);
        if (end > block->sliced) {
            block->sliced = end;
        }
    }
    return slice;
}

static inline void leat_buf_release_fast(leat_buf *buf)
{
    leat_block *block = buf->block;
    uint64_t went;

    if (LEAT_UNLIKELY(!block)) {
        return;
    }
#if LEAT_MEM_GUARD
    leat_guard_released(buf);
#endif
    went = leat_block_add(&block->went, leat_block_share(buf->len));
    memset(buf, 0, sizeof *buf);
    if (leat_block_refs_of(block->came - went) == 0) {
        leat_mem *mem = block->mem;

        if (LEAT_UNLIKELY(block->sliced != block->data)) {
            block->sliced = block->data;
        }
        if (LEAT_LIKELY(block == mem->current)) {
            mem->cut = block->data;
        } else if (block != mem->own_current) {
            leat_block_keep(block);
        }
#if LEAT_MEM_GUARD
        leat_guard_reset(block);
#endif
    }
}

#endif
