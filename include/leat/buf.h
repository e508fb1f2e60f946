/* leat/buf.h: the memory of a context, and the reference-counted buffers cut from it.
 *
 * A leat_mem is where all memory of one context comes from. It takes slabs from the system and
 * keeps what it has; the hot paths only ever move things between its free lists. One thread owns
 * it; no function here may be called from another.
 *
 * A buffer (leat_buf) is a small value: where the bytes are, how many, and the block they lie in.
 * It holds one reference on that block.
 *   - A request under half a slab is cut from the current slab, 8-byte aligned. A larger one gets a
 *     block of its own, kept for reuse by size class when it is released.
 *   - leat_buf_slice() makes another buffer on the same bytes, or a part of them, and a reference
 *     with it.
 *   - A slab or block is used again when the last buffer on it is released. One long-lived buffer
 *     therefore pins its whole slab: leat_mem_stats() tells pinned from used.
 *   - Copying the struct copies no reference: the copy is a move. Release exactly once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BUF_H
#define LEAT_BUF_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

typedef struct leat_mem leat_mem;
typedef struct leat_block leat_block;

typedef struct leat_buf {
    uint8_t *data;
    size_t len;
    leat_block *block; /* NULL: an empty buffer, safe to release */
} leat_buf;

typedef struct leat_mem_settings {
    size_t slab_size; /* bytes a slab: a power of two, LEAT_SLAB_SIZE_MIN to _MAX */
    size_t limit;     /* bytes that may be taken from the system in all; 0: no limit */
} leat_mem_settings;

typedef struct leat_mem_stats {
    size_t system;      /* bytes taken from the system now: slabs, blocks, pools, bookkeeping */
    size_t system_high; /* the most that it has been */
    size_t slabs;       /* slabs held, in use or kept */
    size_t slabs_free;  /* of these, kept for reuse */
    size_t buf_live;    /* buffers held by somebody */
    size_t buf_used;    /* bytes of these buffers; bytes in two slices count twice */
    size_t buf_pinned;  /* bytes of the slabs and blocks that they keep from reuse */
    size_t obj_live;    /* bytes of pool objects and arrays handed out, by size class */
    uint64_t grown;     /* how often memory was asked of the system: flat in a steady state */
} leat_mem_stats;

/* Fills in the defaults of leat/limits.h. */
LEAT_API void leat_mem_settings_init(leat_mem_settings *settings);

/* Makes the memory of a context. NULL settings: the defaults. LEAT_ERR_INVALID when slab_size is
 * out of bounds, LEAT_ERR_NOMEM. The caller owns *out; free it with leat_mem_free(). */
LEAT_API leat_err leat_mem_new(const leat_mem_settings *settings, leat_mem **out);

/* Gives everything back to the system. Every buffer and object must have come back before (asserted
 * in debug builds). NULL is allowed. */
LEAT_API void leat_mem_free(leat_mem *mem);

LEAT_API void leat_mem_stats_get(const leat_mem *mem, leat_mem_stats *out);

/* Takes a buffer of n bytes (n may be 0), contents undefined. On success the caller holds the one
 * reference. LEAT_ERR_NOMEM: the system or the limit refuses; *out is then an empty buffer. */
LEAT_API leat_err leat_buf_take(leat_mem *mem, size_t n, leat_buf *out);

/* Gives back the unused end of a buffer just taken: only the newest buffer of a slab really returns
 * bytes, and none that a slice holds; any other is only shortened. buf->len is n after it;
 * n <= buf->len. A buffer's bounds are not changed by hand: statistics count them. */
LEAT_API void leat_buf_trim(leat_buf *buf, size_t n);

/* A second buffer on bytes [offset, offset + len) of buf, with its own reference. The range must
 * lie within buf, and a block has fewer than 2^23 buffers at a time (both asserted). */
LEAT_API leat_buf leat_buf_slice(const leat_buf *buf, size_t offset, size_t len);

/* Drops the reference and empties *buf. Releasing an empty buffer does nothing. */
LEAT_API void leat_buf_release(leat_buf *buf);

/* What this buffer keeps from reuse: the size of its slab or block, in bytes. */
LEAT_API size_t leat_buf_pinned(const leat_buf *buf);

/* malloc and its kin on a context's memory, for what has no fixed size and for libraries that ask
 * for an allocator. 16-byte aligned; NULL when memory is refused or a size overflows, and a block
 * that was to be reallocated is then as it was. A block of 0 bytes is one too, to be released. NULL
 * may be released and reallocated. What is given back is kept for reuse by size class, as
 * everything here. */
LEAT_API void *leat_mem_malloc(leat_mem *mem, size_t size);
LEAT_API void *leat_mem_calloc(leat_mem *mem, size_t count, size_t size);
LEAT_API void *leat_mem_realloc(leat_mem *mem, void *block, size_t size);
LEAT_API void leat_mem_release(leat_mem *mem, void *block);

/* ---- objects of one size ---------------------------------------------------------------------
 *
 * For records of which many come and go: cut from chunks, kept in the pool when given back, the
 * last first. Aligned to 16 bytes; what an object holds is undefined after leat_pool_take(). */
typedef struct leat_pool leat_pool;

/* size: 1 to 16,384 bytes; name: static, for messages. LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_pool_new(leat_mem *mem, size_t size, const char *name, leat_pool **out);
/* Every object must have come back (asserted). NULL is allowed. */
LEAT_API void leat_pool_delete(leat_pool *pool);
/* An object, or NULL: memory is refused. */
LEAT_API void *leat_pool_take(leat_pool *pool);
LEAT_API void *leat_pool_take_zeroed(leat_pool *pool);
/* To the pool that it was taken from. NULL is allowed. */
LEAT_API void leat_pool_give(leat_pool *pool, void *object);

LEAT_END_DECLS

#endif
