/* Pools: objects apart from each other, reuse, small beginnings, the limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/pool.h"

static void objects_do_not_overlap_and_are_aligned(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    static uint8_t *objects[500];

    (void)state;
    for (size_t size = 1; size < 300; size += 37) {
        leat_pool pool;

        leat_pool_init(&pool, mem, size, "test");
        for (unsigned i = 0; i < 500; i++) {
            objects[i] = (uint8_t *)leat_pool_take(&pool);
            assert_non_null(objects[i]);
            assert_int_equal((uintptr_t)objects[i] % 16, 0);
            memset(objects[i], (uint8_t)i, size);
        }
        leat_pool_check(&pool);
        assert_int_equal(leat_pool_live(&pool), 500);
        for (unsigned i = 0; i < 500; i++) {
            for (size_t k = 0; k < size; k++) {
                assert_int_equal(objects[i][k], (uint8_t)i);
            }
            leat_pool_give(&pool, objects[i]);
        }
        leat_pool_check(&pool);
        assert_int_equal(leat_pool_live(&pool), 0);
        assert_int_equal(leat_pool_high(&pool), 500);
        leat_pool_free(&pool);
    }
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

static void aligned_pools_align_to_cache_lines(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_pool pool;
    void *objects[50];

    (void)state;
    leat_pool_init_aligned(&pool, mem, 200, "test");
    for (unsigned i = 0; i < 50; i++) {
        objects[i] = leat_pool_take(&pool);
        assert_int_equal((uintptr_t)objects[i] % 64, 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        leat_pool_give(&pool, objects[i]);
    }
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

static void the_last_given_back_is_the_next_taken(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_pool pool;
    void *a;
    void *b;

    (void)state;
    leat_pool_init(&pool, mem, 40, "test");
    a = leat_pool_take(&pool);
    b = leat_pool_take(&pool);
    leat_pool_give(&pool, a);
    leat_pool_give(&pool, b);
    assert_ptr_equal(leat_pool_take(&pool), b);
    assert_ptr_equal(leat_pool_take(&pool), a);
    leat_pool_give(&pool, a);
    leat_pool_give(&pool, b);
    leat_pool_give(&pool, NULL);
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

static void zeroed_objects_are_zero_even_when_reused(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_pool pool;
    uint8_t *a;

    (void)state;
    leat_pool_init(&pool, mem, 40, "test");
    a = (uint8_t *)leat_pool_take(&pool);
    memset(a, 0xff, 40);
    leat_pool_give(&pool, a);
    a = (uint8_t *)leat_pool_take_zeroed(&pool);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(a[i], 0);
    }
    leat_pool_give(&pool, a);
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

/* Twenty pools with an object each live on one slab. */
static void pools_of_few_objects_share_a_slab(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_pool pools[20];
    void *objects[20];

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        leat_pool_init(&pools[i], mem, 64 + i * 8, "test");
        objects[i] = leat_pool_take(&pools[i]);
    }
    assert_int_equal(stats_of(mem).slabs, 1);
    for (unsigned i = 0; i < 20; i++) {
        leat_pool_give(&pools[i], objects[i]);
        leat_pool_free(&pools[i]);
    }
    leat_mem_free(mem);
}

static void a_pool_that_ends_gives_its_chunks_to_the_next(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    uint64_t grown = 0;

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        leat_pool pool;
        void *objects[2000];

        leat_pool_init(&pool, mem, 100, "test");
        for (unsigned i = 0; i < 2000; i++) {
            objects[i] = leat_pool_take(&pool);
        }
        for (unsigned i = 0; i < 2000; i++) {
            leat_pool_give(&pool, objects[i]);
        }
        leat_pool_free(&pool);
        if (round == 0) {
            grown = stats_of(mem).grown;
        }
    }
    assert_int_equal(stats_of(mem).grown, grown);
    leat_mem_free(mem);
}

static void past_the_limit_takes_fail_until_something_comes_back(void **state)
{
    leat_mem *mem = new_mem(4096, 32 * 1024);
    static void *objects[1000];
    leat_pool pool;
    unsigned n = 0;

    (void)state;
    leat_pool_init(&pool, mem, 200, "test");
    while ((objects[n] = leat_pool_take(&pool)) != NULL) {
        n++;
        assert_true(n < 1000);
    }
    assert_in_range(n, 60, 160);
    leat_pool_check(&pool);
    leat_pool_give(&pool, objects[3]);
    assert_ptr_equal(leat_pool_take(&pool), objects[3]);
    assert_null(leat_pool_take(&pool));
    while (n > 0) {
        leat_pool_give(&pool, objects[--n]);
    }
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap_and_are_aligned),
        cmocka_unit_test(aligned_pools_align_to_cache_lines),
        cmocka_unit_test(the_last_given_back_is_the_next_taken),
        cmocka_unit_test(zeroed_objects_are_zero_even_when_reused),
        cmocka_unit_test(pools_of_few_objects_share_a_slab),
        cmocka_unit_test(a_pool_that_ends_gives_its_chunks_to_the_next),
        cmocka_unit_test(past_the_limit_takes_fail_until_something_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
