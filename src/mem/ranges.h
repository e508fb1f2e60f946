/* mem/ranges.h: a set of uint64 numbers, kept as ordered, disjoint, half-open ranges [from, to).
 *
 * Ranges that touch are merged. Two lie within the structure itself; more lie in an array from the
 * owner's leat_mem that doubles as needed and is kept until leat_ranges_free(). Lookups are binary
 * searches; adding at or past the end of the last range is O(1). The number of ranges is capped by
 * the owner: a peer decides how many holes there are.
 *
 * The structure may be moved as bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_RANGES_H
#define LEAT_MEM_RANGES_H

#include "base/assert.h"
#include "mem/mem.h"

#define LEAT_RANGES_INLINE 2u
#define LEAT_RANGES_MAX    ((uint32_t)1 << 24) /* what an owner's cap may be */

typedef struct leat_range {
    uint64_t from;
    uint64_t to; /* the first number that is not in it; from < to */
} leat_range;

typedef struct leat_ranges {
    leat_range *array; /* NULL: they are in few[] */
    leat_mem *mem;
    uint32_t count;
    uint32_t cap; /* of array or few */
    uint32_t max;
    leat_range few[LEAT_RANGES_INLINE];
} leat_ranges;

/* Takes no memory. At most max ranges (1 to LEAT_RANGES_MAX) will be held. */
void leat_ranges_init(leat_ranges *r, leat_mem *mem, uint32_t max);

/* Gives the memory back and leaves it empty, ready for use again. */
void leat_ranges_free(leat_ranges *r);

/* Empties it but keeps the memory. */
static inline void leat_ranges_clear(leat_ranges *r)
{
    r->count = 0;
}

static inline const leat_range *leat_ranges_all(const leat_ranges *r)
{
    return r->array ? r->array : r->few;
}

static inline uint32_t leat_ranges_count(const leat_ranges *r)
{
    return r->count;
}

/* The i-th range from below. i < count. */
static inline leat_range leat_ranges_at(const leat_ranges *r, uint32_t i)
{
    LEAT_DCHECK(i < r->count);
    return leat_ranges_all(r)[i];
}

/* The lowest and highest range; the set must not be empty. */
static inline leat_range leat_ranges_first(const leat_ranges *r)
{
    return leat_ranges_at(r, 0);
}

static inline leat_range leat_ranges_last(const leat_ranges *r)
{
    return leat_ranges_at(r, r->count - 1);
}

/* Adds v if it is the number behind the highest range: what nearly always comes next. */
static inline bool leat_ranges_extend(leat_ranges *r, uint64_t v)
{
    leat_range *all = r->array ? r->array : r->few;

    if (r->count == 0 || all[r->count - 1].to != v) {
        return false;
    }
    all[r->count - 1].to++;
    return true;
}

/* Adds [from, to), from <= to (equal: nothing). LEAT_ERR_LIMIT when it would make one range more
 * than max, LEAT_ERR_NOMEM; the set is then as it was. */
leat_err leat_ranges_add(leat_ranges *r, uint64_t from, uint64_t to);

/* As leat_ranges_add(), but where that would fail it makes room by dropping the lowest range (which
 * is the new one itself when that lies below all others). Never fails. Returns true if something
 * was dropped. What received packet numbers need: RFC 9000 s13.2.3 lets the oldest go. */
bool leat_ranges_add_dropping(leat_ranges *r, uint64_t from, uint64_t to);

/* Takes [from, to) out. Splitting a range may need one more: LEAT_ERR_LIMIT, LEAT_ERR_NOMEM; the
 * set is then as it was. Never fails if from is at most the lowest number or to at least the
 * highest + 1. */
leat_err leat_ranges_remove(leat_ranges *r, uint64_t from, uint64_t to);

/* Takes out everything below `below`. */
void leat_ranges_remove_below(leat_ranges *r, uint64_t below);

bool leat_ranges_contains(const leat_ranges *r, uint64_t v);

/* The index of the first range that ends after v (it contains v or lies above it); count if there
 * is none. */
uint32_t leat_ranges_find(const leat_ranges *r, uint64_t v);

/* The lowest number >= v that is not in the set. */
uint64_t leat_ranges_next_missing(const leat_ranges *r, uint64_t v);

/* Bytes of memory held beyond the structure itself, for budgets. */
static inline size_t leat_ranges_held(const leat_ranges *r)
{
    return r->array ? r->cap * sizeof(leat_range) : 0;
}

/* Asserts order, gaps and bounds. */
void leat_ranges_check(const leat_ranges *r);

#endif
