/* Misuse of memory stops the process in guarded builds, and what release builds can see, there too.
 *
 * Each test runs the misuse in a child. Writes past bounds go through `poke`, which
 * AddressSanitizer does not watch, so that it is leat's own check that catches them; that the
 * sanitizer catches them too is asserted apart.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/pool.h"

__attribute__((no_sanitize("address"), noinline)) static void poke(uint8_t *p, uint8_t v)
{
    *(volatile uint8_t *)p = v;
}

static void release_a_copy(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf other = take(mem, 10);
    leat_buf a = take(mem, 10);
    leat_buf copy = a;

    (void)other;
    leat_buf_release(&a);
    leat_buf_release(&copy);
}

static void release_more_than_taken(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 10);
    leat_buf copy = a;

    leat_buf_release(&a);
    leat_buf_release(&copy);
}

static void release_an_own_block_twice(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 5000);
    leat_buf copy = a;

    leat_buf_release(&a);
    leat_buf_release(&copy);
}

static void slice_past_the_end(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 10);

    (void)leat_buf_slice(&a, 5, 6);
}

static void slice_with_an_offset_that_wraps(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 10);

    (void)leat_buf_slice(&a, SIZE_MAX, 2);
}

static void misuse_is_caught_in_every_build(void **state)
{
    (void)state;
    assert_true(panics(release_more_than_taken, LEAT_MEM_GUARD ? "not held" : "LEAT_REFS_BITS"));
    assert_true(panics(release_an_own_block_twice, LEAT_MEM_GUARD ? "not held" : "LEAT_REFS_BITS"));
    assert_true(panics(slice_past_the_end, "len"));
    assert_true(panics(slice_with_an_offset_that_wraps, "offset"));
}

#if LEAT_MEM_GUARD

static void slice_after_release(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf other = take(mem, 10);
    leat_buf a = take(mem, 10);
    leat_buf copy = a;

    (void)other;
    leat_buf_release(&a);
    (void)leat_buf_slice(&copy, 0, 1);
}

static void overrun_a_buffer(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 13);

    poke(a.data + 13, 0);
    leat_buf_release(&a);
}

static void overrun_an_own_block(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 5000);

    poke(a.data + 5000, 0);
    leat_buf_release(&a);
}

static void overrun_a_trimmed_buffer(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 1000);

    leat_buf_trim(&a, 20);
    poke(a.data + 20, 0);
    leat_buf_release(&a);
}

static void write_to_a_released_buffer(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 100);
    uint8_t *p = a.data;

    leat_buf_release(&a);
    poke(p + 50, 0);
    (void)take(mem, 100);
}

static void write_to_a_released_buffer_of_a_live_slab(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf keep = take(mem, 100);
    leat_buf a = take(mem, 100);
    uint8_t *p = a.data;

    (void)keep;
    leat_buf_release(&a);
    poke(p + 50, 0);
    leat_mem_check(mem);
}

static void free_with_a_buffer_out(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 100);

    (void)a;
    leat_mem_free(mem);
}

static void misuse_of_buffers_is_caught(void **state)
{
    (void)state;
    assert_true(panics(release_a_copy, "released that is not held"));
    assert_true(panics(slice_after_release, "sliced that is not held"));
    assert_true(panics(overrun_a_buffer, "past its end"));
    assert_true(panics(overrun_an_own_block, "past its end"));
    assert_true(panics(overrun_a_trimmed_buffer, "past its end"));
    assert_true(panics(write_to_a_released_buffer, "after its release"));
    assert_true(panics(write_to_a_released_buffer_of_a_live_slab, "after its release"));
#    if defined(LEAT_DEBUG)
    assert_true(panics(free_with_a_buffer_out, "refs"));
#    else
    (void)free_with_a_buffer_out;
#    endif
}

static void give_an_array_twice(void)
{
    leat_mem *mem = new_mem(4096, 0);
    void *a = leat_mem_take(mem, 100);

    leat_mem_give(mem, a, 100);
    leat_mem_give(mem, a, 100);
}

static void give_an_array_with_another_size(void)
{
    leat_mem *mem = new_mem(4096, 0);

    leat_mem_give(mem, leat_mem_take(mem, 100), 101);
}

static void overrun_an_array(void)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_take(mem, 100);

    poke(a + 100, 0);
    leat_mem_give(mem, a, 100);
}

static void overrun_an_array_that_fills_its_class(void)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_take(mem, 112);

    poke(a + 112, 0);
    leat_mem_give(mem, a, 112);
}

static void write_to_an_array_given_back(void)
{
    leat_mem *mem = new_mem(4096, 0);
    uint8_t *a = (uint8_t *)leat_mem_take(mem, 100);

    leat_mem_give(mem, a, 100);
    poke(a, 0);
    (void)leat_mem_take(mem, 100);
}

static void misuse_of_arrays_is_caught(void **state)
{
    (void)state;
    assert_true(panics(give_an_array_twice, "given back twice"));
    assert_true(panics(give_an_array_with_another_size, "another size"));
    assert_true(panics(overrun_an_array, "past its end"));
    assert_true(panics(overrun_an_array_that_fills_its_class, "past its end"));
    assert_true(panics(write_to_an_array_given_back, "after it was given back"));
}

static leat_pool pool_of(leat_mem *mem)
{
    leat_pool pool;

    leat_pool_init(&pool, mem, 40, "test");
    return pool;
}

static void give_an_object_twice(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_pool pool = pool_of(mem);
    void *other = leat_pool_take(&pool);
    void *a = leat_pool_take(&pool);

    (void)other;
    leat_pool_give(&pool, a);
    leat_pool_give(&pool, a);
}

static void give_what_is_no_object(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_pool pool = pool_of(mem);
    uint8_t *array = (uint8_t *)leat_mem_take(mem, 500);

    (void)leat_pool_take(&pool);
    leat_pool_give(&pool, array + 64);
}

static void overrun_an_object(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_pool pool = pool_of(mem);
    uint8_t *a = (uint8_t *)leat_pool_take(&pool);

    poke(a + 40, 0);
    leat_pool_give(&pool, a);
}

static void write_to_an_object_given_back(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_pool pool = pool_of(mem);
    uint8_t *a = (uint8_t *)leat_pool_take(&pool);

    leat_pool_give(&pool, a);
    poke(a + 39, 0);
    (void)leat_pool_take(&pool);
}

static void end_a_pool_with_an_object_out(void)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_pool pool = pool_of(mem);

    (void)leat_pool_take(&pool);
    leat_pool_free(&pool);
}

static void misuse_of_pools_is_caught(void **state)
{
    (void)state;
    assert_true(panics(give_an_object_twice, "given back twice"));
    assert_true(panics(give_what_is_no_object, "not of this pool"));
    assert_true(panics(overrun_an_object, "past its end"));
    assert_true(panics(write_to_an_object_given_back, "after it was given back"));
    assert_true(panics(end_a_pool_with_an_object_out, "live"));
}

static void what_is_handed_out_holds_nothing_of_before(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 100);

    (void)state;
    memset(a.data, 1, 100);
    leat_buf_release(&a);
    a = take(mem, 100);
    assert_true(leat_guard_all(a.data, 100, LEAT_GUARD_FRESH));
    leat_buf_release(&a);
    leat_mem_free(mem);
}

#endif

#if LEAT_MEM_ASAN

static bool hidden(const uint8_t *p)
{
    return __asan_address_is_poisoned(p);
}

static void the_sanitizer_knows_what_is_handed_out(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 13);
    leat_buf b = leat_buf_slice(&a, 2, 3);
    uint8_t *p = a.data;
    uint8_t *array = (uint8_t *)leat_mem_take(mem, 100);
    leat_pool pool = pool_of(mem);
    uint8_t *object = (uint8_t *)leat_pool_take(&pool);

    (void)state;
    assert_false(hidden(p + 12));
    assert_true(hidden(p + 13));
    leat_buf_release(&a);
    assert_false(hidden(p));
    leat_buf_release(&b);
    assert_true(hidden(p));
    assert_true(hidden(p + 12));
    assert_false(hidden(array + 99));
    assert_true(hidden(array + 100));
    leat_mem_give(mem, array, 100);
    assert_true(hidden(array));
    assert_false(hidden(object + 39));
    assert_true(hidden(object + 40));
    leat_pool_give(&pool, object);
    assert_true(hidden(object));
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_caught_in_every_build),
#if LEAT_MEM_GUARD
        cmocka_unit_test(misuse_of_buffers_is_caught),
        cmocka_unit_test(misuse_of_arrays_is_caught),
        cmocka_unit_test(misuse_of_pools_is_caught),
        cmocka_unit_test(what_is_handed_out_holds_nothing_of_before),
#endif
#if LEAT_MEM_ASAN
        cmocka_unit_test(the_sanitizer_knows_what_is_handed_out),
#endif
    };

#if !LEAT_MEM_GUARD
    (void)release_a_copy;
    (void)poke;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
