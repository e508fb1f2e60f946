/* mem/pool.h: objects of one fixed size.
 *
 * A pool cuts its objects one by one from chunks of a leat_mem. The first chunk is small (a page or
 * a few objects), each next one doubles up to a slab, so a pool of few objects costs little and one
 * of many asks rarely. Objects given back are kept in the pool, last in first out; chunks go back
 * to the leat_mem when the pool ends.
 *
 * Taking and giving back stand in <leat/buf.h>, with a pool that lies in memory of its own.
 *
 * An object is aligned to 16 bytes, and to 64 when its size is 64 or more and the pool was asked
 * for it (leat_pool_init_aligned). Contents are undefined after take, except by
 * leat_pool_take_zeroed().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_POOL_H
#define LEAT_MEM_POOL_H

#include "mem/guard.h"
#include "mem/mem.h"

typedef struct leat_pool_chunk leat_pool_chunk;

struct leat_pool {
    void *free;     /* objects given back, linked through their first (guarded: last) word */
    uint8_t *fresh; /* the part of the newest chunk from which nothing was cut yet */
    uint8_t *fresh_end;
    leat_mem *mem;
    uint32_t size;   /* bytes an object as asked for */
    uint32_t stride; /* bytes from one object to the next */
    size_t live;     /* objects handed out */
    size_t high;     /* the most that were */
    size_t made;     /* objects cut so far, handed out or free */
    leat_pool_chunk *chunks;
    size_t next_chunk; /* bytes of the next chunk */
    const char *name;  /* for messages and statistics; static */
};

/* Takes no memory. 0 < size <= LEAT_POOL_OBJECT_MAX. */
#define LEAT_POOL_OBJECT_MAX 16384u
void leat_pool_init(leat_pool *pool, leat_mem *mem, size_t size, const char *name);
void leat_pool_init_aligned(leat_pool *pool, leat_mem *mem, size_t size, const char *name);

/* Gives all chunks back. Every object must have come back before (asserted). */
void leat_pool_free(leat_pool *pool);

static inline size_t leat_pool_live(const leat_pool *pool)
{
    return pool->live;
}

static inline size_t leat_pool_high(const leat_pool *pool)
{
    return pool->high;
}

/* Walks chunks and free list and asserts that the counts agree. */
void leat_pool_check(const leat_pool *pool);

#endif
