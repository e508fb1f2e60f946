/* tests/support/malloc_count.h: counts every call to the allocator in the whole process, libraries
 * included.
 *
 * Link malloc_count.c into the test: its malloc and kin take the C library's place. Not together
 * with AddressSanitizer, which does the same.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_MALLOC_COUNT_H
#define LEAT_TESTS_MALLOC_COUNT_H

#include <stdint.h>

typedef struct leat_malloc_count {
    uint64_t malloc, calloc, realloc, aligned, free;
} leat_malloc_count;

/* What has been counted so far. */
leat_malloc_count leat_malloc_counted(void);

/* Allocations in it: all but free. */
static inline uint64_t leat_malloc_total(leat_malloc_count c)
{
    return c.malloc + c.calloc + c.realloc + c.aligned;
}

#endif
