/* mem/pool.c: objects of one size, cut one by one from chunks that are regions of the leat_mem.
 *
 * Objects given back form a list, last in first out, through one of their words. A take prefers
 * that list and else cuts the next object from the newest chunk, so pages that no object was cut
 * from are never touched. Invariant: made = live + the length of the free list.
 *
 * In guarded builds each object is followed by a trailer that tells whether it is handed out and
 * holds the link, so that the object itself can be filled with poison.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/pool.h"

#include <string.h>

#include "mem/core.h"

#define CHUNK_FIRST   1024u /* the least first chunk … */
#define OBJECTS_FIRST 4u    /* … and the objects it has room for */

/* At the start of each chunk; the first object follows 64 bytes on, so that alignment is easy. */
struct leat_pool_chunk {
    leat_pool_chunk *next;
    unsigned shift;
};
#define CHUNK_HEADER 64u

#if LEAT_MEM_GUARD

typedef struct trailer {
    void *link;
    uint64_t magic;
} trailer;

#    define LIVE 0x6f626a206c697665u
#    define GONE 0x6f626a20676f6e65u

static trailer *trailer_of(const leat_pool *pool, void *object)
{
    return (trailer *)(void *)((char *)object + pool->stride - sizeof(trailer));
}

static void **link_of(const leat_pool *pool, void *object)
{
    return &trailer_of(pool, object)->link;
}

static void guard_made(const leat_pool *pool, void *object)
{
    trailer *t = trailer_of(pool, object);
    size_t front = pool->stride - sizeof *t;

    leat_guard_show(object, pool->stride);
    memset(object, LEAT_GUARD_POISON, front);
    t->magic = GONE;
    leat_guard_hide(object, front);
}

static void guard_taken(const leat_pool *pool, void *object)
{
    trailer *t = trailer_of(pool, object);
    size_t front = pool->stride - sizeof *t;

    leat_guard_show(object, front);
    if (t->magic != GONE || !leat_guard_all(object, front, LEAT_GUARD_POISON)) {
        leat_panic(__FILE__, __LINE__, "an object was written to after it was given back");
    }
    memset(object, LEAT_GUARD_FRESH, pool->size);
    memset((uint8_t *)object + pool->size, LEAT_GUARD_CANARY, front - pool->size);
    t->link = NULL;
    t->magic = LIVE;
    leat_guard_hide((uint8_t *)object + pool->size, pool->stride - pool->size);
}

static void guard_given(const leat_pool *pool, void *object)
{
    trailer *t = trailer_of(pool, object);
    size_t front = pool->stride - sizeof *t;

    leat_guard_show(t, sizeof *t);
    if (t->magic == GONE) {
        leat_panic(__FILE__, __LINE__, "an object was given back twice");
    }
    leat_guard_show(object, front);
    if (t->magic != LIVE ||
        !leat_guard_all((uint8_t *)object + pool->size, front - pool->size, LEAT_GUARD_CANARY)) {
        leat_panic(__FILE__, __LINE__,
                   "an object was written to past its end, or is not of this pool");
    }
    guard_made(pool, object);
}

#else

static void **link_of(const leat_pool *pool, void *object)
{
    (void)pool;
    return (void **)object;
}

#endif

static void init(leat_pool *pool, leat_mem *mem, size_t size, size_t align, const char *name)
{
    size_t stride = (size + align - 1) & ~(align - 1);
    size_t first;

    LEAT_ASSERT(size > 0);
    LEAT_ASSERT(size <= LEAT_POOL_OBJECT_MAX);
    if (LEAT_MEM_GUARD) {
        /* The trailer, and as much again for alignment's sake. */
        stride = (size + LEAT_GUARD_BYTES + align - 1) & ~(align - 1);
    }
    first = CHUNK_HEADER + OBJECTS_FIRST * stride;
    memset(pool, 0, sizeof *pool);
    pool->mem = mem;
    pool->size = (uint32_t)size;
    pool->stride = (uint32_t)stride;
    pool->name = name;
    pool->next_chunk = (size_t)1 << leat_region_shift(first < CHUNK_FIRST ? CHUNK_FIRST : first);
}

void leat_pool_init(leat_pool *pool, leat_mem *mem, size_t size, const char *name)
{
    init(pool, mem, size, 16, name);
}

void leat_pool_init_aligned(leat_pool *pool, leat_mem *mem, size_t size, const char *name)
{
    init(pool, mem, size, size >= 64 ? 64 : 16, name);
}

void leat_pool_free(leat_pool *pool)
{
    LEAT_ASSERT(pool->live == 0);
    while (pool->chunks) {
        leat_pool_chunk *chunk = pool->chunks;

        pool->chunks = chunk->next;
        leat_region_give(pool->mem, chunk, chunk->shift);
    }
    pool->free = NULL;
    pool->fresh = NULL;
    pool->fresh_end = NULL;
    pool->made = 0;
}

/* The next object of the newest chunk; there is one. */
static void *cut(leat_pool *pool)
{
    void *object = pool->fresh;

    pool->fresh += pool->stride;
    pool->made++;
#if LEAT_MEM_GUARD
    guard_made(pool, object);
#endif
    return object;
}

static size_t fresh_left(const leat_pool *pool)
{
    return (size_t)(pool->fresh_end - pool->fresh) / pool->stride;
}

static void put_free(leat_pool *pool, void *object)
{
    *link_of(pool, object) = pool->free;
    pool->free = object;
}

/* A new chunk to cut from. What is left of the one before goes on the free list. */
static bool next_chunk(leat_pool *pool)
{
    unsigned shift = leat_region_shift(pool->next_chunk);
    uint8_t *p = (uint8_t *)leat_region_take(pool->mem, shift);
    leat_pool_chunk *chunk = (leat_pool_chunk *)(void *)p;

    if (!chunk) {
        return false;
    }
    while (fresh_left(pool) > 0) {
        put_free(pool, cut(pool));
    }
    leat_guard_show(p, (size_t)1 << shift);
    leat_guard_hide(p + CHUNK_HEADER, ((size_t)1 << shift) - CHUNK_HEADER);
    chunk->next = pool->chunks;
    chunk->shift = shift;
    pool->chunks = chunk;
    pool->fresh = p + CHUNK_HEADER;
    pool->fresh_end = p + ((size_t)1 << shift);
    if (pool->next_chunk < pool->mem->slab_size) {
        pool->next_chunk *= 2;
    }
    return true;
}

static void *take_fresh(leat_pool *pool)
{
    if (fresh_left(pool) == 0 && !next_chunk(pool)) {
        return NULL;
    }
    return cut(pool);
}

void *leat_pool_take(leat_pool *pool)
{
    leat_mem *mem = pool->mem;
    void *object = pool->free;

    if (LEAT_UNLIKELY(mem->fault_takes) && leat_mem_faulted(mem, LEAT_MEM_FAULT_TAKE)) {
        return NULL;
    }
    if (LEAT_LIKELY(object != NULL)) {
        pool->free = *link_of(pool, object);
    } else {
        object = take_fresh(pool);
        if (!object) {
            return NULL;
        }
    }
#if LEAT_MEM_GUARD
    guard_taken(pool, object);
#endif
    mem->obj_live += pool->stride;
    pool->live++;
    if (pool->live > pool->high) {
        pool->high = pool->live;
    }
    return object;
}

void *leat_pool_take_zeroed(leat_pool *pool)
{
    void *object = leat_pool_take(pool);

    if (object) {
        memset(object, 0, pool->size);
    }
    return object;
}

void leat_pool_give(leat_pool *pool, void *object)
{
    if (!object) {
        return;
    }
    LEAT_ASSERT(pool->live > 0);
#if LEAT_MEM_GUARD
    guard_given(pool, object);
#endif
    pool->live--;
    pool->mem->obj_live -= pool->stride;
    put_free(pool, object);
}

static bool in_chunk(const leat_pool *pool, const void *object)
{
    const uint8_t *p = (const uint8_t *)object;

    for (const leat_pool_chunk *c = pool->chunks; c; c = c->next) {
        const uint8_t *start = (const uint8_t *)c + CHUNK_HEADER;

        if (p >= start && p < (const uint8_t *)c + ((size_t)1 << c->shift)) {
            return (size_t)(p - start) % pool->stride == 0;
        }
    }
    return false;
}

void leat_pool_check(const leat_pool *pool)
{
    size_t n = 0;

    for (void *o = pool->free; o; o = *link_of(pool, o)) {
        LEAT_ASSERT(in_chunk(pool, o));
        n++;
    }
    LEAT_ASSERT(n + pool->live == pool->made);
    LEAT_ASSERT(pool->live <= pool->high);
}

/* ---- pools in memory of their own ---- */

leat_err leat_pool_new(leat_mem *mem, size_t size, const char *name, leat_pool **out)
{
    leat_pool *pool;

    *out = NULL;
    if (size == 0 || size > LEAT_POOL_OBJECT_MAX) {
        return LEAT_ERR_INVALID;
    }
    pool = (leat_pool *)leat_mem_take(mem, sizeof *pool);
    if (!pool) {
        return LEAT_ERR_NOMEM;
    }
    leat_pool_init(pool, mem, size, name);
    *out = pool;
    return LEAT_OK;
}

void leat_pool_delete(leat_pool *pool)
{
    if (pool) {
        leat_mem *mem = pool->mem;

        leat_pool_free(pool);
        leat_mem_give(mem, pool, sizeof *pool);
    }
}
