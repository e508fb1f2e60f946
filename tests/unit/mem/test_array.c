/* Arrays by size class: alignment, reuse, growth, the limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

static void an_array_is_aligned_and_whole(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    size_t sizes[] = {1, 15, 16, 17, 48, 64, 65, 1000, 1024, 2047, 2048, 2049, 100000};
    uint8_t *arrays[LEAT_COUNT_OF(sizes)];

    (void)state;
    for (unsigned i = 0; i < LEAT_COUNT_OF(sizes); i++) {
        arrays[i] = (uint8_t *)leat_mem_take(mem, sizes[i]);
        assert_non_null(arrays[i]);
        assert_int_equal((uintptr_t)arrays[i] % 16, 0);
        memset(arrays[i], (int)i, sizes[i]);
    }
    for (unsigned i = 0; i < LEAT_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(arrays[i][k], i);
        }
        leat_mem_give(mem, arrays[i], sizes[i]);
    }
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_give(mem, NULL, 0);
    leat_mem_free(mem);
}

static void what_was_given_back_is_taken_next(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    void *a = leat_mem_take(mem, 100);
    void *big = leat_mem_take(mem, 50000);
    uint64_t grown = stats_of(mem).grown;

    (void)state;
    leat_mem_give(mem, a, 100);
    leat_mem_give(mem, big, 50000);
    assert_ptr_equal(leat_mem_take(mem, 90), a);
    assert_ptr_equal(leat_mem_take(mem, 40000), big);
    assert_int_equal(stats_of(mem).grown, grown);
    leat_mem_give(mem, a, 90);
    leat_mem_give(mem, big, 40000);
    leat_mem_free(mem);
}

static void obj_live_counts_by_class(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    void *a = leat_mem_take(mem, 100);
    void *b = leat_mem_take(mem, 40000);

    (void)state;
    assert_int_equal(stats_of(mem).obj_live, 128 + 65536);
    assert_int_equal(leat_mem_class_size(100), 128 - GUARD);
    assert_int_equal(leat_mem_class_size(128 - GUARD), 128 - GUARD);
    assert_int_equal(leat_mem_class_size(129 - GUARD), 256 - GUARD);
    leat_mem_give(mem, a, 100);
    leat_mem_give(mem, b, 40000);
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

static void zeroed_means_zeroed_even_when_reused(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    uint8_t *a = (uint8_t *)leat_mem_take(mem, 200);

    (void)state;
    memset(a, 0xff, 200);
    leat_mem_give(mem, a, 200);
    a = (uint8_t *)leat_mem_take_zeroed(mem, 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(a[i], 0);
    }
    leat_mem_give(mem, a, 200);
    leat_mem_free(mem);
}

static void regrow_keeps_what_was_there(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = NULL;
    size_t n = 0;

    (void)state;
    for (size_t more = 1; more < 20000; more = more * 3 / 2 + 1) {
        a = (uint8_t *)leat_mem_regrow(mem, a, n, more);
        assert_non_null(a);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(a[i], (uint8_t)(i * 7));
        }
        n = more;
        for (size_t i = 0; i < n; i++) {
            a[i] = (uint8_t)(i * 7);
        }
    }
    a = (uint8_t *)leat_mem_regrow(mem, a, n, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(a[i], (uint8_t)(i * 7));
    }
    leat_mem_give(mem, a, 10);
    leat_mem_free(mem);
}

static void a_slab_of_small_arrays_is_used_up_to_its_end(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    size_t in_first = 0;
    void *all[300];
    unsigned n = 0;

    (void)state;
    /* Leaves a rest in the first slab that one more of these does not fit in … */
    while (stats_of(mem).slabs < 2) {
        all[n++] = leat_mem_take(mem, 512 - GUARD);
    }
    assert_int_equal(n, 9);
    /* … and what is left of the second is cut into smaller ones before a third is asked for. */
    all[n++] = leat_mem_take(mem, 64 - GUARD);
    for (unsigned i = 0; i < 6; i++) {
        all[n++] = leat_mem_take(mem, 512 - GUARD);
    }
    assert_int_equal(stats_of(mem).slabs, 2);
    all[n++] = leat_mem_take(mem, 512 - GUARD);
    assert_int_equal(stats_of(mem).slabs, 3);
    in_first = stats_of(mem).grown;
    all[n++] = leat_mem_take(mem, 256 - GUARD);
    all[n++] = leat_mem_take(mem, 128 - GUARD);
    all[n++] = leat_mem_take(mem, 64 - GUARD);
    assert_int_equal(stats_of(mem).grown, in_first);
    for (unsigned i = 0; i < n; i++) {
        size_t size = i == 9 || i == n - 1 ? 64 : i == n - 2 ? 128 : i == n - 3 ? 256 : 512;

        leat_mem_give(mem, all[i], size - GUARD);
    }
    leat_mem_free(mem);
}

static void a_larger_kept_array_is_split_only_when_the_limit_is_reached(void **state)
{
    leat_mem *mem = new_mem(4096, sizeof(leat_mem) + 4096 + 2 * 4096);
    void *all[8];
    void *small;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        all[i] = leat_mem_take(mem, 1024 - GUARD);
        assert_non_null(all[i]);
    }
    assert_null(leat_mem_take(mem, 64 - GUARD));
    leat_mem_give(mem, all[0], 1024 - GUARD);
    small = leat_mem_take(mem, 64 - GUARD);
    assert_non_null(small);
    assert_null(leat_mem_take(mem, 1024 - GUARD));
    leat_mem_give(mem, small, 64 - GUARD);
    for (unsigned i = 1; i < 8; i++) {
        leat_mem_give(mem, all[i], 1024 - GUARD);
    }
    leat_mem_free(mem);
}

static void sizes_nothing_can_have_are_refused(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    uint8_t *a = (uint8_t *)leat_mem_take(mem, 10);

    (void)state;
    a[9] = 5;
    assert_null(leat_mem_take(mem, SIZE_MAX));
    assert_null(leat_mem_take(mem, SIZE_MAX / 2));
    assert_null(leat_mem_regrow(mem, a, 10, SIZE_MAX));
    assert_int_equal(a[9], 5);
    leat_mem_give(mem, a, 10);
    leat_mem_free(mem);
}

typedef struct array {
    uint8_t *p;
    size_t n;
    uint8_t fill;
} array;

static void arrays_keep_their_bytes_whatever_is_done(void **state)
{
    leat_mem *mem = new_mem(4096, 1u << 20);
    leat_prng prng = test_prng("array");
    static array all[200];

    (void)state;
    memset(all, 0, sizeof all);
    for (unsigned step = 0; step < 20000; step++) {
        array *a = &all[leat_prng_below(&prng, 200)];
        size_t n = leat_prng_between(&prng, 1, (size_t)1 << leat_prng_below(&prng, 15));

        assert_true(!a->p || leat_guard_all(a->p, a->n, a->fill));
        if (a->p && leat_prng_chance(&prng, 1, 2)) {
            leat_mem_give(mem, a->p, a->n);
            a->p = NULL;
        } else {
            uint8_t *p = (uint8_t *)leat_mem_regrow(mem, a->p, a->p ? a->n : 0, n);

            if (p) {
                a->p = p;
                a->n = n;
                a->fill = (uint8_t)step;
                memset(p, a->fill, n);
            }
        }
        assert_true(mem->system <= 1u << 20);
    }
    for (unsigned i = 0; i < 200; i++) {
        leat_mem_give(mem, all[i].p, all[i].n);
    }
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_aligned_and_whole),
        cmocka_unit_test(what_was_given_back_is_taken_next),
        cmocka_unit_test(obj_live_counts_by_class),
        cmocka_unit_test(zeroed_means_zeroed_even_when_reused),
        cmocka_unit_test(regrow_keeps_what_was_there),
        cmocka_unit_test(a_slab_of_small_arrays_is_used_up_to_its_end),
        cmocka_unit_test(a_larger_kept_array_is_split_only_when_the_limit_is_reached),
        cmocka_unit_test(sizes_nothing_can_have_are_refused),
        cmocka_unit_test(arrays_keep_their_bytes_whatever_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
