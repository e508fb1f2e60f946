/* mem/guard.c: what guarded builds (mem/guard.h) know of the buffers on a block.
 *
 * A buffer is a value without a header, so a block keeps a table of extents beside it: each range
 * of bytes as it was taken, and how many buffers lie on it. Extents are in order of address,
 * because a slab is cut that way; a buffer's extent is found by its address. From this:
 *   - releasing or slicing a buffer whose extent has no buffers left is a use after release;
 *   - after each extent lie at least LEAT_GUARD_BYTES of canary, checked when its last buffer goes;
 *   - then the extent is filled with poison, and whoever is given these bytes next finds out
 *     whether somebody wrote there meanwhile.
 * The table is as long as a slab can need and made with it, so that guarded builds too allocate
 * nothing in a steady state; it counts neither as `system` nor against the limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/core.h"

#if LEAT_MEM_GUARD

#    include <stdlib.h>
#    include <string.h>

static size_t extents_max(const leat_block *block)
{
    switch (block->kind) {
    case LEAT_BLOCK_SLAB:
        return block->size / LEAT_GUARD_BYTES;
    case LEAT_BLOCK_OWN:
        return 1;
    default:
        return 0;
    }
}

bool leat_guard_block_init(leat_block *block)
{
    size_t n = extents_max(block);

    if (n) {
        block->extents = (leat_extent *)malloc(n * sizeof *block->extents);
        if (!block->extents) {
            return false;
        }
    }
    leat_guard_hide(block->data, block->size);
    return true;
}

void leat_guard_block_done(leat_block *block)
{
    free(block->extents);
    block->extents = NULL;
}

/* The bytes of the block from `at` on that were handed out before must hold poison still. */
static void check_poison(const leat_block *block, size_t at, size_t n)
{
    size_t end = at + n < block->poisoned ? at + n : block->poisoned;

    if (at >= end) {
        return;
    }
    leat_guard_show(block->data + at, end - at);
    if (!leat_guard_all(block->data + at, end - at, LEAT_GUARD_POISON)) {
        leat_panic(__FILE__, __LINE__, "a buffer was written to after its release");
    }
    leat_guard_hide(block->data + at, end - at);
}

static void set_canary(uint8_t *data, size_t n, size_t room)
{
    leat_guard_show(data, room);
    memset(data + n, LEAT_GUARD_CANARY, room - n);
    leat_guard_hide(data + n, room - n);
}

void leat_guard_taken(leat_block *block, uint8_t *data, size_t n, size_t room)
{
    size_t at = (size_t)(data - block->data);

    LEAT_ASSERT(block->extent_count < extents_max(block));
    LEAT_ASSERT(at + room <= block->size);
    check_poison(block, at, room);
    block->extents[block->extent_count++] = (leat_extent){.live = 1, .at = at, .len = n};
    set_canary(data, n, room);
    memset(data, LEAT_GUARD_FRESH, n);
    if (at + room > block->poisoned) {
        block->poisoned = at + room;
    }
}

/* The extent that the buffer lies on; it must be live. */
static leat_extent *find_extent(const leat_buf *buf, const char *text)
{
    const leat_block *block = buf->block;
    size_t at = (size_t)(buf->data - block->data);
    size_t low = 0;
    size_t high = block->extent_count;
    leat_extent *extent;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (block->extents[mid].at <= at) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == 0) {
        leat_panic(__FILE__, __LINE__, text);
    }
    extent = &block->extents[low - 1];
    if (extent->live == 0 || at + buf->len > extent->at + extent->len) {
        leat_panic(__FILE__, __LINE__, text);
    }
    return extent;
}

void leat_guard_sliced(const leat_buf *buf)
{
    find_extent(buf, "a buffer was sliced that is not held")->live++;
}

static size_t extent_room(const leat_extent *extent)
{
    return leat_buf_room(extent->len);
}

static void check_canary(const leat_block *block, const leat_extent *extent)
{
    const uint8_t *end = block->data + extent->at + extent->len;
    size_t n = extent_room(extent) - extent->len;

    leat_guard_show(end, n);
    if (!leat_guard_all(end, n, LEAT_GUARD_CANARY)) {
        leat_panic(__FILE__, __LINE__, "a buffer was written to past its end");
    }
    leat_guard_hide(end, n);
}

/* The newest buffer of the slab got shorter; the next one will be cut at `cut`. */
void leat_guard_trimmed(const leat_buf *buf, size_t n, const uint8_t *cut)
{
    leat_block *block = buf->block;
    leat_extent *extent = find_extent(buf, "a buffer was trimmed that is not held");
    uint8_t *data = block->data + extent->at;
    size_t was = extent_room(extent);
    size_t room = (size_t)(cut - data);

    LEAT_ASSERT(extent == &block->extents[block->extent_count - 1]);
    check_canary(block, extent);
    extent->len = (size_t)(buf->data - data) + n;
    LEAT_ASSERT(room == extent_room(extent));
    leat_guard_show(data, was);
    memset(data + room, LEAT_GUARD_POISON, was - room);
    leat_guard_hide(data + room, was - room);
    set_canary(data, extent->len, room);
}

void leat_guard_released(const leat_buf *buf)
{
    leat_block *block = buf->block;
    leat_extent *extent = find_extent(buf, "a buffer was released that is not held");

    extent->live--;
    if (extent->live == 0) {
        uint8_t *data = block->data + extent->at;
        size_t room = extent_room(extent);

        check_canary(block, extent);
        leat_guard_show(data, room);
        memset(data, LEAT_GUARD_POISON, room);
        leat_guard_hide(data, room);
    }
}

void leat_guard_reset(leat_block *block)
{
    for (size_t i = 0; i < block->extent_count; i++) {
        LEAT_ASSERT(block->extents[i].live == 0);
    }
    block->extent_count = 0;
}

void leat_guard_check_block(const leat_block *block)
{
    size_t end = 0;

    for (size_t i = 0; i < block->extent_count; i++) {
        const leat_extent *extent = &block->extents[i];

        LEAT_ASSERT(extent->at >= end);
        end = extent->at + extent_room(extent);
        LEAT_ASSERT(end <= block->size);
        if (extent->live) {
            check_canary(block, extent);
        } else {
            check_poison(block, extent->at, extent_room(extent));
        }
    }
    check_poison(block, end, block->size - end);
}

#else

typedef int leat_guard_nothing; /* C wants a declaration */

#endif
