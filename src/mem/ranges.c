/* mem/ranges.c: a set of numbers as sorted ranges in a contiguous array.
 *
 * Adding finds the run of ranges that the new one overlaps or touches and puts one in its place:
 * the run is [lo, hi) where lo is the first range that ends at or after `from` and hi the first
 * that starts after `to`. An empty run is an insertion, a run of several a merge. Removing finds
 * the run that overlaps and puts back the one or two ends that stick out.
 *
 * Invariants: from < to in each, and each starts after (not at) the end of the one before.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/ranges.h"

#include <string.h>

void leat_ranges_init(leat_ranges *r, leat_mem *mem, uint32_t max)
{
    LEAT_ASSERT(max >= 1);
    LEAT_ASSERT(max <= LEAT_RANGES_MAX);
    r->array = NULL;
    r->mem = mem;
    r->count = 0;
    r->cap = LEAT_RANGES_INLINE;
    r->max = max;
}

void leat_ranges_free(leat_ranges *r)
{
    if (r->array) {
        leat_mem_give(r->mem, r->array, r->cap * sizeof *r->array);
    }
    leat_ranges_init(r, r->mem, r->max);
}

static leat_range *all(leat_ranges *r)
{
    return r->array ? r->array : r->few;
}

static leat_err grow(leat_ranges *r)
{
    uint32_t cap = r->cap * 2;
    leat_range *array;

    array = (leat_range *)leat_mem_regrow(r->mem, r->array, r->array ? r->cap * sizeof *array : 0,
                                          cap * sizeof *array);
    if (!array) {
        return LEAT_ERR_NOMEM;
    }
    if (!r->array) {
        memcpy(array, r->few, r->count * sizeof *array);
    }
    r->array = array;
    r->cap = cap;
    return LEAT_OK;
}

/* Makes room for one range more. */
static leat_err reserve_one(leat_ranges *r)
{
    if (r->count >= r->max) {
        return LEAT_ERR_LIMIT;
    }
    return r->count < r->cap ? LEAT_OK : grow(r);
}

/* The first range whose end is at or after v. */
static uint32_t first_reaching(const leat_ranges *r, uint64_t v)
{
    const leat_range *a = leat_ranges_all(r);
    uint32_t low = 0;
    uint32_t high = r->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (a[mid].to < v) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* The first range, from `low` on, that starts after v. */
static uint32_t first_after(const leat_ranges *r, uint32_t low, uint64_t v)
{
    const leat_range *a = leat_ranges_all(r);
    uint32_t high = r->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (a[mid].from <= v) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

uint32_t leat_ranges_find(const leat_ranges *r, uint64_t v)
{
    return v == UINT64_MAX ? r->count : first_reaching(r, v + 1);
}

/* Replaces ranges [lo, hi) by n others; there is room. */
static void replace(leat_ranges *r, uint32_t lo, uint32_t hi, const leat_range *with, uint32_t n)
{
    leat_range *a = all(r);

    if (n != hi - lo) {
        memmove(a + lo + n, a + hi, (r->count - hi) * sizeof *a);
    }
    for (uint32_t i = 0; i < n; i++) {
        a[lo + i] = with[i];
    }
    r->count = r->count - (hi - lo) + n;
}

/* Adds at or past the end of the last range, or tells that it is not there. */
static bool extend_last(leat_ranges *r, uint64_t from, uint64_t to)
{
    leat_range *last;

    if (r->count == 0) {
        return false;
    }
    last = &all(r)[r->count - 1];
    if (from < last->from || from > last->to) {
        return false;
    }
    if (to > last->to) {
        last->to = to;
    }
    return true;
}

leat_err leat_ranges_add(leat_ranges *r, uint64_t from, uint64_t to)
{
    leat_range merged = {.from = from, .to = to};
    uint32_t lo;
    uint32_t hi;

    LEAT_ASSERT(from <= to);
    if (from == to || extend_last(r, from, to)) {
        return LEAT_OK;
    }
    if (r->count == 0 || from > all(r)[r->count - 1].to) {
        lo = r->count;
        hi = r->count;
    } else {
        lo = first_reaching(r, from);
        hi = first_after(r, lo, to);
    }
    if (lo == hi) {
        leat_err err = reserve_one(r);

        if (err != LEAT_OK) {
            return err;
        }
    } else {
        const leat_range *a = all(r);

        merged.from = a[lo].from < from ? a[lo].from : from;
        merged.to = a[hi - 1].to > to ? a[hi - 1].to : to;
    }
    replace(r, lo, hi, &merged, 1);
    return LEAT_OK;
}

bool leat_ranges_add_dropping(leat_ranges *r, uint64_t from, uint64_t to)
{
    if (leat_ranges_add(r, from, to) == LEAT_OK) {
        return false;
    }
    /* It failed, so it would have been a range of its own, and there is at least one besides: the
     * inline ranges always fit, and max is at least 1. */
    if (from > leat_ranges_first(r).from) {
        leat_err err;

        replace(r, 0, 1, NULL, 0);
        err = leat_ranges_add(r, from, to);
        LEAT_ASSERT(err == LEAT_OK);
    }
    return true;
}

leat_err leat_ranges_remove(leat_ranges *r, uint64_t from, uint64_t to)
{
    leat_range rest[2];
    uint32_t n = 0;
    uint32_t lo;
    uint32_t hi;

    LEAT_ASSERT(from <= to);
    if (from == to) {
        return LEAT_OK;
    }
    lo = leat_ranges_find(r, from);
    hi = first_after(r, lo, to - 1);
    if (lo == hi) {
        return LEAT_OK;
    }
    if (all(r)[lo].from < from) {
        rest[n++] = (leat_range){.from = all(r)[lo].from, .to = from};
    }
    if (all(r)[hi - 1].to > to) {
        rest[n++] = (leat_range){.from = to, .to = all(r)[hi - 1].to};
    }
    if (n > hi - lo) {
        leat_err err = reserve_one(r);

        if (err != LEAT_OK) {
            return err;
        }
    }
    replace(r, lo, hi, rest, n);
    return LEAT_OK;
}

void leat_ranges_remove_below(leat_ranges *r, uint64_t below)
{
    leat_range *a;

    replace(r, 0, leat_ranges_find(r, below), NULL, 0);
    a = all(r);
    if (r->count && a[0].from < below) {
        a[0].from = below;
    }
}

bool leat_ranges_contains(const leat_ranges *r, uint64_t v)
{
    uint32_t i = leat_ranges_find(r, v);

    return i < r->count && leat_ranges_at(r, i).from <= v;
}

uint64_t leat_ranges_next_missing(const leat_ranges *r, uint64_t v)
{
    uint32_t i = leat_ranges_find(r, v);

    return i < r->count && leat_ranges_at(r, i).from <= v ? leat_ranges_at(r, i).to : v;
}

void leat_ranges_check(const leat_ranges *r)
{
    const leat_range *a = leat_ranges_all(r);

    LEAT_ASSERT(r->count <= r->cap);
    LEAT_ASSERT(r->count <= r->max);
    for (uint32_t i = 0; i < r->count; i++) {
        LEAT_ASSERT(a[i].from < a[i].to);
        LEAT_ASSERT(i == 0 || a[i - 1].to < a[i].from);
    }
}
