/* mem/slab.c: buffers.
 *
 * Under half a slab a buffer is cut from the current slab, which is one where bytes are handed out
 * in order of address and none comes back before all do (but for the trimmed end of the newest). A
 * slab that is full is left to its buffers; the last of them to go puts it on slabs_kept, last in
 * first out, since what was used last is warm. From half a slab up a buffer has a block of its own,
 * of one of four sizes between one power of two and the next, so that at most a quarter is wasted;
 * blocks given back are kept by class.
 *
 * Invariants: what came to a block less what went tells the number of buffers on it and the sum of
 * their lengths; a slab or own block without buffers is on exactly one list, or is the current
 * slab, with cut at its start, or is own_current.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/fast.h"

static const leat_buf empty;

/* Four classes to a power of two: those of (2^k, 2^(k+1)] are 2^(k-2) apart. n >= 8. */
static unsigned own_class(size_t n, size_t *size)
{
    unsigned k = 63u - (unsigned)__builtin_clzll((unsigned long long)n - 1);
    size_t step = (size_t)1 << (k - 2);
    size_t up = (n + step - 1) & ~(step - 1);

    *size = up;
    return k * 4 + (unsigned)((n - 1) >> (k - 2) & 3);
}

/* The smallest request that a block of this class is for. The quick way alone asks: guarded builds,
 * where classes are chosen with the guard added, have none. */
static size_t own_least(const leat_mem *mem, size_t size)
{
    size_t below = size - 1;
    size_t step = (size_t)1 << (63u - (unsigned)__builtin_clzll((unsigned long long)below) - 2);
    size_t least = size - step + 1;

    return least > mem->slab_size / 2 ? least : mem->slab_size / 2;
}

static inline void give_own(leat_block *block, size_t n, leat_buf *out)
{
    leat_block_add(&block->came, leat_block_share(n));
    out->data = block->data;
    out->len = n;
    out->block = block;
#if LEAT_MEM_GUARD
    leat_guard_taken(block, block->data, n, leat_buf_room(n));
#endif
}

/* A kept block, if there is one. */
static inline leat_block *pop(leat_block **kept)
{
    leat_block *block = *kept;

    if (LEAT_LIKELY(block != NULL)) {
        *kept = block->next;
    }
    return block;
}

/* A kept or new block of the class. It becomes the current one, unless that is of its class too. */
static leat_block *next_own(leat_mem *mem, unsigned c, size_t size)
{
    leat_block *before = mem->own_current;
    leat_block **kept = &mem->own_kept[c];
    leat_block *block;

    if (before && before->kept == kept && leat_block_refs(before) == 0) {
        return before;
    }
    block = pop(kept);
    if (!block) {
        block = leat_block_new(mem, LEAT_BLOCK_OWN, size, kept);
        if (!block) {
            return NULL;
        }
        block->own_least = own_least(mem, size);
    }
    before = mem->own_current; /* again: growing may have given it back to the system */
    if (!before || before->kept != kept) {
        mem->own_current = block;
        if (before && leat_block_refs(before) == 0) {
            leat_block_keep(before);
        }
    }
    return block;
}

static leat_err take_own(leat_mem *mem, size_t n, leat_buf *out)
{
    size_t size;
    unsigned c;
    leat_block *block;

    if (n > LEAT_BUF_MAX) {
        return LEAT_ERR_NOMEM;
    }
    c = own_class(LEAT_MEM_GUARD ? leat_buf_room(n) : n, &size);
    block = next_own(mem, c, size);
    if (!block) {
        return LEAT_ERR_NOMEM;
    }
    give_own(block, n, out);
    return LEAT_OK;
}

static inline void cut(leat_mem *mem, leat_block *slab, uint8_t *data, size_t n, leat_buf *out)
{
    size_t room = leat_buf_room(n);

    mem->cut = data + room;
    leat_block_add(&slab->came, leat_block_share(n));
    out->data = data;
    out->len = n;
    out->block = slab;
#if LEAT_MEM_GUARD
    leat_guard_taken(slab, data, n, room);
#endif
}

/* Makes a slab without buffers the current one. The one before is left to its buffers. */
static inline void begin_slab(leat_mem *mem, leat_block *slab)
{
    LEAT_DCHECK(!mem->current || leat_block_refs(mem->current) > 0); /* it would have room */
    mem->current = slab;
    mem->cut = slab->data;
    mem->cut_end = slab->data + mem->slab_size;
}

/* Makes a kept or new slab the current one. */
static bool next_slab(leat_mem *mem)
{
    leat_block *slab = pop(&mem->slabs_kept);

    if (!slab) {
        slab = leat_block_new(mem, LEAT_BLOCK_SLAB, mem->slab_size, &mem->slabs_kept);
        if (!slab) {
            return false;
        }
    }
    begin_slab(mem, slab);
    leat_mem_set_fast(mem);
    return true;
}

static __attribute__((noinline)) leat_err take_cold(leat_mem *mem, size_t n, leat_buf *out)
{
    *out = empty;
    if (LEAT_UNLIKELY(mem->fault_takes) && leat_mem_faulted(mem, LEAT_MEM_FAULT_TAKE)) {
        return LEAT_ERR_NOMEM;
    }
    if (n >= mem->slab_size / 2) {
        return take_own(mem, n, out);
    }
    if (!mem->current || leat_buf_room(n) > (size_t)(mem->cut_end - mem->cut)) {
        if (!next_slab(mem)) {
            return LEAT_ERR_NOMEM;
        }
    }
    cut(mem, mem->current, mem->cut, n, out);
    return LEAT_OK;
}

/* First what is nearly as quick as a slab with room: a kept slab, the current own block when nobody
 * holds it, or a kept one of its class. */
static inline __attribute__((always_inline)) leat_err take_warm(leat_mem *mem, size_t n,
                                                                leat_buf *out)
{
#if !LEAT_MEM_GUARD
    leat_block *block = mem->own_current;

    if (n < mem->cut_below) {
        block = pop(&mem->slabs_kept);
        if (LEAT_LIKELY(block != NULL)) {
            begin_slab(mem, block);
            cut(mem, block, block->data, n, out);
            return LEAT_OK;
        }
    } else if (block && n >= block->own_least && n <= block->size && !mem->fault_takes) {
        if (leat_block_refs(block) > 0) {
            block = pop(block->kept);
        }
        if (LEAT_LIKELY(block != NULL)) {
            give_own(block, n, out);
            return LEAT_OK;
        }
    }
#endif
    return take_cold(mem, n, out);
}

leat_err leat_buf_take_slow(leat_mem *mem, size_t n, leat_buf *out)
{
    return take_warm(mem, n, out);
}

leat_err leat_buf_take(leat_mem *mem, size_t n, leat_buf *out)
{
    return leat_buf_cut(mem, n, out) ? LEAT_OK : take_warm(mem, n, out);
}

leat_buf leat_buf_slice(const leat_buf *buf, size_t offset, size_t len)
{
    return leat_buf_slice_fast(buf, offset, len);
}

void leat_buf_release(leat_buf *buf)
{
    leat_buf_release_fast(buf);
}

/* Where the next buffer is cut when one ends at `end`. */
static uint8_t *cut_after(uint8_t *end)
{
    return end + (-(uintptr_t)end & 7) + (LEAT_MEM_GUARD ? LEAT_GUARD_BYTES : 0);
}

bool leat_buf_can_shrink(const leat_buf *buf)
{
    const leat_block *block = buf->block;
    uint8_t *end = buf->data + buf->len;

    return block && block == block->mem->current && cut_after(end) == block->mem->cut &&
           block->sliced < end;
}

void leat_buf_trim(leat_buf *buf, size_t n)
{
    leat_block *block = buf->block;

    LEAT_ASSERT(n <= buf->len);
    if (!block || n == buf->len) {
        return;
    }
    if (leat_buf_can_shrink(buf)) {
        block->mem->cut = cut_after(buf->data + n);
#if LEAT_MEM_GUARD
        leat_guard_trimmed(buf, n, block->mem->cut);
#endif
    }
    block->went += (uint64_t)(buf->len - n) << LEAT_REFS_BITS;
    buf->len = n;
}

size_t leat_buf_pinned(const leat_buf *buf)
{
    return buf->block ? buf->block->size : 0;
}
