/* mem_test.h: what the tests of mem share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_MEM_TEST_H
#define LEAT_TESTS_MEM_TEST_H

#include "base_test.h"

#include "mem/fast.h"

/* Guarded builds put a canary after each buffer and array, so less fits in a slab or class. */
#define GUARD (LEAT_MEM_GUARD ? LEAT_GUARD_BYTES : 0u)

static inline leat_mem *new_mem(size_t slab_size, size_t limit)
{
    leat_mem_settings settings;
    leat_mem *mem = NULL;

    leat_mem_settings_init(&settings);
    if (slab_size) {
        settings.slab_size = slab_size;
    }
    settings.limit = limit;
    assert_int_equal(leat_mem_new(&settings, &mem), LEAT_OK);
    return mem;
}

static inline leat_mem_stats stats_of(const leat_mem *mem)
{
    leat_mem_stats stats;

    leat_mem_check(mem);
    leat_mem_stats_get(mem, &stats);
    return stats;
}

static inline leat_buf take(leat_mem *mem, size_t n)
{
    leat_buf buf;

    assert_int_equal(leat_buf_take(mem, n, &buf), LEAT_OK);
    assert_int_equal(buf.len, n);
    return buf;
}

#endif
