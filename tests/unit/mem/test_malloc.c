/* leat_mem_malloc and its kin do what malloc's family does, within the limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

static void the_four_do_what_they_are_named_for(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_malloc(mem, 100);
    uint8_t *z;

    (void)state;
    assert_int_equal((uintptr_t)a % 16, 0);
    memset(a, 0xff, 100);
    leat_mem_release(mem, a);
    z = (uint8_t *)leat_mem_calloc(mem, 10, 10);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(z[i], 0);
        z[i] = (uint8_t)i;
    }
    z = (uint8_t *)leat_mem_realloc(mem, z, 10000);
    z = (uint8_t *)leat_mem_realloc(mem, z, 50);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(z[i], i);
    }
    leat_mem_release(mem, z);
    z = (uint8_t *)leat_mem_realloc(mem, NULL, 5);
    assert_non_null(z);
    z = (uint8_t *)leat_mem_realloc(mem, z, 0);
    leat_mem_release(mem, z);
    leat_mem_release(mem, leat_mem_malloc(mem, 0));
    leat_mem_release(mem, NULL);
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

static void sizes_that_overflow_are_refused(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_malloc(mem, 4);

    (void)state;
    memcpy(a, "leat", 4);
    assert_null(leat_mem_malloc(mem, SIZE_MAX));
    assert_null(leat_mem_malloc(mem, SIZE_MAX - 15));
    assert_null(leat_mem_calloc(mem, SIZE_MAX / 2, 3));
    assert_null(leat_mem_calloc(mem, 3, SIZE_MAX / 2));
    assert_null(leat_mem_calloc(mem, SIZE_MAX / 16 + 2, 16)); /* 16, when it wraps */
    assert_null(leat_mem_realloc(mem, a, SIZE_MAX - 8));
    assert_memory_equal(a, "leat", 4);
    leat_mem_release(mem, a);
    leat_mem_free(mem);
}

static void a_failed_realloc_leaves_the_old_block(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_malloc(mem, 4);

    (void)state;
    memcpy(a, "leat", 4);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_null(leat_mem_realloc(mem, a, 5000));
    assert_null(leat_mem_malloc(mem, 1));
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_memory_equal(a, "leat", 4);
    leat_mem_release(mem, a);
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
