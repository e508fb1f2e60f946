/* Allocator hooks: they do what malloc's family does, within the limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/shim.h"

static void the_four_do_what_they_are_named_for(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_shim_malloc(100, mem);
    uint8_t *z;

    (void)state;
    assert_int_equal((uintptr_t)a % 16, 0);
    memset(a, 0xff, 100);
    leat_shim_free(a, mem);
    z = (uint8_t *)leat_shim_calloc(10, 10, mem);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(z[i], 0);
        z[i] = (uint8_t)i;
    }
    z = (uint8_t *)leat_shim_realloc(z, 10000, mem);
    z = (uint8_t *)leat_shim_realloc(z, 50, mem);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(z[i], i);
    }
    leat_shim_free(z, mem);
    z = (uint8_t *)leat_shim_realloc(NULL, 5, mem);
    assert_non_null(z);
    z = (uint8_t *)leat_shim_realloc(z, 0, mem);
    leat_shim_free(z, mem);
    leat_shim_free(leat_shim_malloc(0, mem), mem);
    leat_shim_free(NULL, mem);
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

static void sizes_that_overflow_are_refused(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_shim_malloc(4, mem);

    (void)state;
    memcpy(a, "leat", 4);
    assert_null(leat_shim_malloc(SIZE_MAX, mem));
    assert_null(leat_shim_malloc(SIZE_MAX - 15, mem));
    assert_null(leat_shim_calloc(SIZE_MAX / 2, 3, mem));
    assert_null(leat_shim_calloc(3, SIZE_MAX / 2, mem));
    assert_null(leat_shim_calloc(SIZE_MAX / 16 + 2, 16, mem)); /* 16, when it wraps */
    assert_null(leat_shim_realloc(a, SIZE_MAX - 8, mem));
    assert_memory_equal(a, "leat", 4);
    leat_shim_free(a, mem);
    leat_mem_free(mem);
}

static void a_failed_realloc_leaves_the_old_block(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_shim_malloc(4, mem);

    (void)state;
    memcpy(a, "leat", 4);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_null(leat_shim_realloc(a, 5000, mem));
    assert_null(leat_shim_malloc(1, mem));
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_memory_equal(a, "leat", 4);
    leat_shim_free(a, mem);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_four_do_what_they_are_named_for),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_failed_realloc_leaves_the_old_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
