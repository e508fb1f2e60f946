/* mem/core.h: the inside of a leat_mem. For src/mem, and for mem/fast.h; nobody else looks in.
 *
 * Three layers, each on the one before:
 *
 *     system   mem.c    leat_mem_grow, leat_mem_shrink: the limit, and the only calls to the heap
 *     regions  array.c  raw memory by power-of-two class, for arrays and for the chunks of pools
 *     blocks   slab.c   slabs and own blocks with a count of references, for buffers
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_CORE_H
#define LEAT_MEM_CORE_H

#include <leat/buf.h>

#include "base/assert.h"
#include "mem/guard.h"
#include "mem/mem.h"

#define LEAT_REGION_SHIFT_MIN 4u  /* the smallest region: 16 bytes */
#define LEAT_REGION_SHIFTS    48u /* classes 2^0 to 2^47; the lowest four stay empty */
#define LEAT_OWN_CLASSES      (LEAT_REGION_SHIFTS * 4u)
#define LEAT_BUF_MAX          ((size_t)1 << 40) /* bytes a buffer or array; no more is sane */
#define LEAT_REFS_BITS        24u /* of a block's sums: twice the buffers that it may have */

typedef enum leat_block_kind {
    LEAT_BLOCK_UNUSED,  /* a header without memory */
    LEAT_BLOCK_SLAB,    /* buffers are cut from it */
    LEAT_BLOCK_OWN,     /* one buffer's own block */
    LEAT_BLOCK_REGIONS, /* small regions are cut from it; never comes back before the end */
} leat_block_kind;

/* Guarded builds only: one buffer as taken, and how many buffers lie on it. */
typedef struct leat_extent {
    uint32_t live;
    size_t at;
    size_t len;
} leat_extent;

/* Headers lie apart from what they describe: a slab is a whole number of pages, and headers of
 * neighbours share cache lines' sets with nobody's data. What a take and a release touch is the
 * first cache line. */
struct leat_block {
    /* Buffers on it: the sum of leat_block_share() of those that came, and of those that went. Two
     * sums that only grow, because one that goes up and down would make each take wait for the
     * release before it. */
    _Alignas(64) uint64_t came;
    uint8_t *data; /* between them: compilers would join the two into one wide load, which has to
                      wait for the narrow stores before it */
    uint64_t went;
    leat_mem *mem;
    uint8_t *sliced;          /* the highest end of a buffer that was sliced: trim stops here */
    leat_block *next;         /* while unused or kept: the list it is on */
    struct leat_block **kept; /* the list for it while nobody holds it; of regions NULL */
    size_t size;
    size_t own_least; /* an own block is for requests of this many bytes to size */
    leat_block_kind kind;
#if LEAT_MEM_GUARD
    leat_extent *extents; /* by address */
    size_t extent_count;
    size_t poisoned; /* bytes from the start that hold poison unless they are in a live extent */
#endif
};

#define LEAT_HEADERS_BYTES 4096u
typedef struct leat_headers {
    struct leat_headers *next;
    leat_block blocks[LEAT_HEADERS_BYTES / sizeof(leat_block) - 1];
} leat_headers;

struct leat_mem {
    /* The current slab: what leat_buf_take() touches. */
    uint8_t *cut;     /* its first byte not handed out */
    uint8_t *cut_end; /* its end */
    leat_block *current;
    size_t cut_below; /* buffers under this many bytes are cut on the fast path: half a slab, or 0
                         while there is no current slab or takes may fail by order */
    leat_block *own_current; /* the own block to look at first, in use or not; no list has it */
    leat_block *slabs_kept;
    leat_block *headers_unused;
    leat_headers *headers;

    bool fault_takes; /* takes may fail by order */
    bool fault_lasting;
    leat_mem_fault fault_kind;
    uint64_t fault_nth;
    uint64_t fault_seen;
    uint64_t fault_hits;

    size_t slab_size;
    size_t limit;
    size_t system;
    size_t system_high;
    uint64_t grown;
    size_t obj_live;

    uint8_t *region_cut; /* the slab from which regions are cut */
    uint8_t *region_end;
    void *regions_kept[LEAT_REGION_SHIFTS];
    leat_block *own_kept[LEAT_OWN_CLASSES];
};

/* What a buffer of n bytes adds to its block's sums: one, and its bytes above LEAT_REFS_BITS. */
static inline uint64_t leat_block_share(size_t n)
{
    return ((uint64_t)n << LEAT_REFS_BITS) + 1;
}

/* Adds to a sum. It is loaded by an instruction of its own: processors forward a plain load of what
 * was stored last at once, and not one that adds as well. */
static inline uint64_t leat_block_add(uint64_t *sum, uint64_t share)
{
    uint64_t now = *sum;

    __asm__("" : "+r"(now));
    now += share;
    *sum = now;
    return now;
}

/* Buffers on a block, by the difference of its sums. Half of what the bits can tell: one was
 * released twice, or has slices by the million. */
static inline size_t leat_block_refs_of(uint64_t left)
{
    LEAT_ASSERT((left & (UINT64_C(1) << (LEAT_REFS_BITS - 1))) == 0);
    return (size_t)(left & ((UINT64_C(1) << LEAT_REFS_BITS) - 1));
}

static inline size_t leat_block_refs(const leat_block *block)
{
    return leat_block_refs_of(block->came - block->went);
}

/* Bytes of the buffers on it. */
static inline size_t leat_block_used(const leat_block *block)
{
    return (size_t)((block->came - block->went) >> LEAT_REFS_BITS);
}

/* True when the operation of this kind is to fail by order. */
bool leat_mem_faulted(leat_mem *mem, leat_mem_fault kind);

/* Memory from the system, or NULL: the system, the limit or a fault refuses. Kept memory that is
 * unused goes back first when the limit stands in the way. Page-aligned when size is whole pages,
 * else aligned to 64 (sizes are multiples of 64). */
void *leat_mem_grow(leat_mem *mem, size_t size);
void leat_mem_shrink(leat_mem *mem, void *p, size_t size);

/* Gives kept blocks, regions, slabs back to the system until `want` bytes went. Returns how many
 * did. */
size_t leat_mem_reclaim_some(leat_mem *mem, size_t want);

/* A header with `size` fresh bytes, on no list; NULL. `kept`: where it waits when it is unused. */
leat_block *leat_block_new(leat_mem *mem, leat_block_kind kind, size_t size, leat_block **kept);

/* Gives the bytes back to the system and keeps the header for the next. */
void leat_block_free(leat_block *block);

/* The regions' classes: 2^shift bytes. */
static inline unsigned leat_region_shift(size_t n)
{
    return n <= 16 ? LEAT_REGION_SHIFT_MIN
                   : 64u - (unsigned)__builtin_clzll((unsigned long long)n - 1);
}

/* Regions from half a slab up are blocks of the system's, smaller ones are cut from a slab. */
static inline bool leat_region_is_own(const leat_mem *mem, unsigned shift)
{
    return ((size_t)1 << shift) >= mem->slab_size / 2;
}

void *leat_region_take(leat_mem *mem, unsigned shift);
void leat_region_give(leat_mem *mem, void *p, unsigned shift);

/* The word of a kept region that links it to the next. */
static inline void **leat_region_link(void *p, unsigned shift)
{
    /* Guarded: at the end, so that the whole front can hold poison. */
    return LEAT_MEM_GUARD ? (void **)(void *)((char *)p + ((size_t)1 << shift) - sizeof(void *))
                          : (void **)p;
}

/* The last buffer on a slab or block that is not the current one is gone: keeps it for reuse. */
static inline void leat_block_keep(leat_block *block)
{
    leat_block **kept = block->kept;

    block->next = *kept;
    *kept = block;
}

/* Buffers off the fast path: a new slab, an own block, faults. All of them in guarded builds. */
leat_err leat_buf_take_slow(leat_mem *mem, size_t n, leat_buf *out);

/* Whether a trim would really give bytes back: to the current slab, if nothing was cut behind them
 * and no slice reaches into them. */
bool leat_buf_can_shrink(const leat_buf *buf);

#if LEAT_MEM_GUARD
/* guard.c: what guarded builds know of the buffers on a block. */
bool leat_guard_block_init(leat_block *block);
void leat_guard_block_done(leat_block *block);
void leat_guard_taken(leat_block *block, uint8_t *data, size_t n, size_t room);
void leat_guard_sliced(const leat_buf *buf);
void leat_guard_trimmed(const leat_buf *buf, size_t n, const uint8_t *cut);
void leat_guard_released(const leat_buf *buf);
void leat_guard_reset(leat_block *block);
void leat_guard_check_block(const leat_block *block);
#endif

/* Sets what the fast path may do; after any change of the current slab or of faults. */
static inline void leat_mem_set_fast(leat_mem *mem)
{
    mem->cut_below = mem->current && !mem->fault_takes ? mem->slab_size / 2 : 0;
}

/* Bytes that a buffer of n takes in its slab. */
static inline size_t leat_buf_room(size_t n)
{
    return ((n + 7) & ~(size_t)7) + (LEAT_MEM_GUARD ? LEAT_GUARD_BYTES : 0);
}

#endif
