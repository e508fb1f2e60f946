/* mem/array.c: memory by power-of-two class: regions, and the arrays that leat_mem_take() hands
 * out.
 *
 * A class under half a slab is cut from a slab of regions; what is left of one when the next is
 * needed is cut up into smaller regions, so nothing is lost. A class from half a slab up is a block
 * of the system's. Regions given back are kept by class, linked through one of their own words.
 * Only when the limit refuses a new slab is a larger kept region split for a smaller class: it
 * would never be made whole again.
 *
 * In guarded builds an array has a trailer at the end of its region that tells the bytes asked for
 * and whether it is handed out, and canary between the two.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/core.h"

#include <string.h>

#if LEAT_MEM_GUARD

/* 16 bytes: the last of the region. The word where kept regions are linked is `size`. */
typedef struct trailer {
    uint64_t magic;
    uint64_t size;
} trailer;

#    define LIVE 0x6c656174206c6976u
#    define GONE 0x6c65617420676f6eu

_Static_assert(sizeof(trailer) == LEAT_GUARD_BYTES, "the class is chosen for n + LEAT_GUARD_BYTES");

static trailer *trailer_of(void *p, unsigned shift)
{
    return (trailer *)(void *)((char *)p + ((size_t)1 << shift) - sizeof(trailer));
}

/* What lies in the region is not an array's poison (any more). */
static void forget(void *p, unsigned shift)
{
    trailer_of(p, shift)->magic = 0;
}

#else

static void forget(void *p, unsigned shift)
{
    (void)p;
    (void)shift;
}

#endif

static void keep(leat_mem *mem, void *p, unsigned shift)
{
    *leat_region_link(p, shift) = mem->regions_kept[shift];
    mem->regions_kept[shift] = p;
}

static void *unkeep(leat_mem *mem, unsigned shift)
{
    void *p = mem->regions_kept[shift];

    if (p) {
        mem->regions_kept[shift] = *leat_region_link(p, shift);
    }
    return p;
}

/* Makes kept regions of [at, end): the largest that fit and are cut from slabs, each aligned to its
 * size up to 64. Both ends are aligned to 16. */
static void keep_pieces(leat_mem *mem, uint8_t *at, uint8_t *end)
{
    while (at < end) {
        size_t left = (size_t)(end - at);
        unsigned shift = 63u - (unsigned)__builtin_clzll((unsigned long long)left);
        unsigned aligned = (unsigned)__builtin_ctzll((unsigned long long)(uintptr_t)at | 64);

        if (aligned < 6 && shift > aligned) {
            shift = aligned;
        }
        while (leat_region_is_own(mem, shift)) {
            shift--;
        }
        leat_guard_show(at, (size_t)1 << shift);
        forget(at, shift);
        keep(mem, at, shift);
        at += (size_t)1 << shift;
    }
}

static void *cut(leat_mem *mem, unsigned shift)
{
    size_t size = (size_t)1 << shift;
    size_t align = size < 64 ? size : 64;
    size_t gap = -(uintptr_t)mem->region_cut & (align - 1);
    uint8_t *at;

    if ((size_t)(mem->region_end - mem->region_cut) < gap + size) {
        return NULL;
    }
    at = mem->region_cut + gap;
    keep_pieces(mem, mem->region_cut, at);
    mem->region_cut = at + size;
    leat_guard_show(at, size);
    forget(at, shift);
    return at;
}

static bool next_region_slab(leat_mem *mem)
{
    leat_block *slab = leat_block_new(mem, LEAT_BLOCK_REGIONS, mem->slab_size, NULL);

    if (!slab) {
        return false;
    }
    keep_pieces(mem, mem->region_cut, mem->region_end);
    mem->region_cut = slab->data;
    mem->region_end = slab->data + slab->size;
    return true;
}

/* Half by half down from the smallest larger class that has one. */
static void *split_kept(leat_mem *mem, unsigned shift)
{
    unsigned s = shift + 1;
    uint8_t *p;

    while (!leat_region_is_own(mem, s) && !mem->regions_kept[s]) {
        s++;
    }
    if (leat_region_is_own(mem, s)) {
        return NULL;
    }
    p = (uint8_t *)unkeep(mem, s);
    leat_guard_show(p, (size_t)1 << s);
    while (s > shift) {
        s--;
        forget(p + ((size_t)1 << s), s);
        keep(mem, p + ((size_t)1 << s), s);
    }
    forget(p, s);
    return p;
}

/* None is kept. Apart, so that the usual take saves no registers for it. */
static LEAT_SELDOM void *take_new(leat_mem *mem, unsigned shift)
{
    void *p;

    if (leat_region_is_own(mem, shift)) {
        p = leat_mem_grow(mem, (size_t)1 << shift);
        if (p) {
            forget(p, shift);
        }
        return p;
    }
    p = cut(mem, shift);
    if (!p) {
        p = next_region_slab(mem) ? cut(mem, shift) : split_kept(mem, shift);
    }
    return p;
}

void *leat_region_take(leat_mem *mem, unsigned shift)
{
    void *p = unkeep(mem, shift);

    return LEAT_LIKELY(p != NULL) ? p : take_new(mem, shift);
}

void leat_region_give(leat_mem *mem, void *p, unsigned shift)
{
    leat_guard_show(p, (size_t)1 << shift);
    forget(p, shift);
    keep(mem, p, shift);
}

#if LEAT_MEM_GUARD

static void guard_taken(void *p, size_t n, unsigned shift)
{
    trailer *t = trailer_of(p, shift);
    size_t front = (size_t)((uint8_t *)t - (uint8_t *)p);

    leat_guard_show(p, front);
    t->magic = LIVE;
    t->size = n;
    memset(p, LEAT_GUARD_FRESH, n);
    memset((uint8_t *)p + n, LEAT_GUARD_CANARY, front - n);
    leat_guard_hide((uint8_t *)p + n, ((size_t)1 << shift) - n);
}

static void guard_given(void *p, size_t n, unsigned shift)
{
    trailer *t = trailer_of(p, shift);
    size_t front = (size_t)((uint8_t *)t - (uint8_t *)p);

    leat_guard_show(p, (size_t)1 << shift);
    if (t->magic != LIVE || t->size != n) {
        leat_panic(__FILE__, __LINE__,
                   "an array was given back twice, with another size, or written to past its end");
    }
    if (!leat_guard_all((uint8_t *)p + n, front - n, LEAT_GUARD_CANARY)) {
        leat_panic(__FILE__, __LINE__, "an array was written to past its end");
    }
    memset(p, LEAT_GUARD_POISON, front);
    t->magic = GONE;
    leat_guard_hide(p, front);
}

/* A region that was an array before must hold poison still; one that was cut or split may hold
 * anything. */
static void guard_reused(void *p, unsigned shift)
{
    trailer *t = trailer_of(p, shift);
    size_t front = (size_t)((uint8_t *)t - (uint8_t *)p);

    if (t->magic == GONE) {
        leat_guard_show(p, front);
        if (!leat_guard_all(p, front, LEAT_GUARD_POISON)) {
            leat_panic(__FILE__, __LINE__, "an array was written to after it was given back");
        }
    }
}

#endif

static unsigned array_shift(size_t n)
{
    return leat_region_shift(LEAT_MEM_GUARD ? n + LEAT_GUARD_BYTES : n);
}

void *leat_mem_take(leat_mem *mem, size_t n)
{
    unsigned shift;
    void *p;

    LEAT_ASSERT(n > 0);
    if (LEAT_UNLIKELY(n > LEAT_BUF_MAX)) {
        return NULL;
    }
    if (LEAT_UNLIKELY(mem->fault_takes) && leat_mem_faulted(mem, LEAT_MEM_FAULT_TAKE)) {
        return NULL;
    }
    shift = array_shift(n);
    p = leat_region_take(mem, shift);
    if (!p) {
        return NULL;
    }
    mem->obj_live += (size_t)1 << shift;
#if LEAT_MEM_GUARD
    guard_reused(p, shift);
    guard_taken(p, n, shift);
#endif
    return p;
}

void *leat_mem_take_zeroed(leat_mem *mem, size_t n)
{
    void *p = leat_mem_take(mem, n);

    if (p) {
        memset(p, 0, n);
    }
    return p;
}

void leat_mem_give(leat_mem *mem, void *p, size_t n)
{
    unsigned shift;

    if (!p) {
        return;
    }
    LEAT_DCHECK(n > 0 && n <= LEAT_BUF_MAX);
    shift = array_shift(n);
#if LEAT_MEM_GUARD
    guard_given(p, n, shift);
#endif
    LEAT_DCHECK(mem->obj_live >= (size_t)1 << shift);
    mem->obj_live -= (size_t)1 << shift;
    keep(mem, p, shift);
}

void *leat_mem_regrow(leat_mem *mem, void *p, size_t old_n, size_t n)
{
    void *q;

    LEAT_ASSERT(n > 0);
    if (!p) {
        return leat_mem_take(mem, n);
    }
#if !LEAT_MEM_GUARD
    if (n <= LEAT_BUF_MAX && array_shift(old_n) == array_shift(n)) {
        return p;
    }
#endif
    q = leat_mem_take(mem, n);
    if (q) {
        memcpy(q, p, old_n < n ? old_n : n);
        leat_mem_give(mem, p, old_n);
    }
    return q;
}

size_t leat_mem_class_size(size_t n)
{
    return ((size_t)1 << array_shift(n)) - (LEAT_MEM_GUARD ? LEAT_GUARD_BYTES : 0);
}
