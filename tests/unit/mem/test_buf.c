/* Buffers: where they are cut, when slabs and blocks come back, what statistics say.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include <leat/limits.h>

#define SLAB 65536u

static void settings_out_of_bounds_are_refused(void **state)
{
    static const size_t bad[] = {0, 1, 2048, 4095, 4097, 65535, 2097152};
    leat_mem_settings settings;
    leat_mem *mem;

    (void)state;
    leat_mem_settings_init(&settings);
    assert_int_equal(settings.slab_size, LEAT_SLAB_SIZE_DEFAULT);
    for (size_t i = 0; i < LEAT_COUNT_OF(bad); i++) {
        settings.slab_size = bad[i];
        assert_int_equal(leat_mem_new(&settings, &mem), LEAT_ERR_INVALID);
        assert_null(mem);
    }
    for (size_t size = LEAT_SLAB_SIZE_MIN; size <= LEAT_SLAB_SIZE_MAX; size *= 2) {
        settings.slab_size = size;
        assert_int_equal(leat_mem_new(&settings, &mem), LEAT_OK);
        leat_mem_free(mem);
    }
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_mem_free(mem);
    leat_mem_free(NULL);
}

static void small_buffers_are_cut_in_a_row_aligned_to_8(void **state)
{
    leat_mem *mem = new_mem(SLAB, 0);
    leat_buf a = take(mem, 1);
    leat_buf b = take(mem, 8);
    leat_buf c = take(mem, 13);
    leat_buf d = take(mem, 100);

    (void)state;
    assert_int_equal((uintptr_t)a.data % 8, 0);
    assert_ptr_equal(b.data, a.data + 8 + GUARD);
    assert_ptr_equal(c.data, b.data + 8 + GUARD);
    assert_ptr_equal(d.data, c.data + 16 + GUARD);
    assert_ptr_equal(a.block, d.block);
    assert_int_equal(leat_buf_pinned(&a), SLAB);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_buf_release(&c);
    leat_buf_release(&d);
    leat_mem_free(mem);
}

static void half_a_slab_and_more_get_a_block_of_their_own(void **state)
{
    leat_mem *mem = new_mem(SLAB, 0);
    leat_buf small = take(mem, SLAB / 2 - 1);
    leat_buf large = take(mem, SLAB / 2);
    leat_buf huge = take(mem, 1000000);

    (void)state;
    assert_int_equal(leat_buf_pinned(&small), SLAB);
    assert_in_range(leat_buf_pinned(&large), SLAB / 2, SLAB / 2 * 5 / 4);
    assert_in_range(leat_buf_pinned(&huge), 1000000, 1250000);
    assert_int_equal(stats_of(mem).slabs, 1);
    assert_int_equal(stats_of(mem).buf_pinned,
                     leat_buf_pinned(&small) + leat_buf_pinned(&large) + leat_buf_pinned(&huge));
    memset(huge.data, 1, huge.len);
    leat_buf_release(&small);
    leat_buf_release(&large);
    leat_buf_release(&huge);
    leat_mem_free(mem);
}

static void no_own_block_wastes_more_than_a_quarter(void **state)
{
    leat_mem *mem = new_mem(4096, 0);

    (void)state;
    for (size_t n = 2048; n < 300000; n += n / 19 + 1) {
        leat_buf buf = take(mem, n);

        assert_true(leat_buf_pinned(&buf) >= n + GUARD);
        assert_true(leat_buf_pinned(&buf) <= (n + GUARD) * 5 / 4 + 1);
        leat_buf_release(&buf);
    }
    leat_mem_free(mem);
}

static void own_blocks_are_kept_by_class_and_used_again(void **state)
{
    leat_mem *mem = new_mem(SLAB, 0);
    leat_buf a = take(mem, 100000);
    leat_buf b = take(mem, 100000);
    leat_buf c = take(mem, 400000);
    uint8_t *ad = a.data;
    uint8_t *bd = b.data;
    uint8_t *cd = c.data;
    uint64_t grown = stats_of(mem).grown;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        leat_buf_release(&a);
        leat_buf_release(&b);
        leat_buf_release(&c);
        assert_int_equal(stats_of(mem).buf_pinned, 0);
        c = take(mem, 399999);
        a = take(mem, 100001);
        b = take(mem, 99999);
        assert_ptr_equal(c.data, cd);
        assert_true((a.data == ad && b.data == bd) || (a.data == bd && b.data == ad));
    }
    assert_int_equal(stats_of(mem).grown, grown);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_buf_release(&c);
    leat_mem_free(mem);
}

static void a_slab_starts_again_when_its_last_buffer_goes(void **state)
{
    leat_mem *mem = new_mem(SLAB, 0);
    leat_buf a = take(mem, 1000);
    leat_buf b = take(mem, 1000);
    uint8_t *first = a.data;
    leat_buf c;

    (void)state;
    leat_buf_release(&a);
    c = take(mem, 1000);
    assert_ptr_not_equal(c.data, first);
    leat_buf_release(&b);
    leat_buf_release(&c);
    a = take(mem, 1000);
    assert_ptr_equal(a.data, first);
    leat_buf_release(&a);
    leat_mem_free(mem);
}

static void one_long_lived_buffer_pins_its_slab_alone(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf keep = take(mem, 16);
    leat_block *pinned = keep.block;
    uint64_t grown = 0;

    (void)state;
    memset(keep.data, 0x77, 16);
    for (unsigned i = 0; i < 1000; i++) {
        leat_buf a = take(mem, 1000);
        leat_buf b = take(mem, 1000);

        assert_true(i < 8 || a.block != pinned);
        memset(a.data, 1, 1000);
        memset(b.data, 2, 1000);
        leat_buf_release(&a);
        leat_buf_release(&b);
        if (i == 8) {
            grown = stats_of(mem).grown;
        }
    }
    assert_int_equal(stats_of(mem).grown, grown);
    assert_int_equal(stats_of(mem).slabs, 2);
    assert_int_equal(stats_of(mem).buf_pinned, 4096);
    assert_int_equal(stats_of(mem).buf_used, 16);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(keep.data[i], 0x77);
    }
    leat_buf_release(&keep);
    leat_mem_free(mem);
}

static void a_slice_keeps_the_slab_after_its_parent_went(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf buf = take(mem, 100);
    leat_buf slice;
    leat_buf of_slice;

    (void)state;
    memcpy(buf.data, "0123456789", 10);
    slice = leat_buf_slice(&buf, 2, 6);
    of_slice = leat_buf_slice(&slice, 3, 3);
    assert_int_equal(stats_of(mem).buf_live, 3);
    assert_int_equal(stats_of(mem).buf_used, 109);
    leat_buf_release(&buf);
    leat_buf_release(&slice);
    assert_int_equal(of_slice.len, 3);
    assert_memory_equal(of_slice.data, "567", 3);
    assert_int_equal(stats_of(mem).buf_pinned, 4096);
    leat_buf_release(&of_slice);
    assert_int_equal(stats_of(mem).buf_pinned, 0);
    assert_int_equal(stats_of(mem).buf_live, 0);
    leat_mem_free(mem);
}

static void slices_of_own_blocks_count_too(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf buf = take(mem, 5000);
    leat_buf slice = leat_buf_slice(&buf, 4000, 1000);
    leat_buf other;

    (void)state;
    leat_buf_release(&buf);
    other = take(mem, 5000);
    assert_ptr_not_equal(other.block, slice.block);
    leat_buf_release(&slice);
    leat_buf_release(&other);
    leat_mem_free(mem);
}

static void an_empty_buffer_is_safe_to_release_and_to_slice(void **state)
{
    leat_buf buf = {0};
    leat_buf slice = leat_buf_slice(&buf, 0, 0);

    (void)state;
    assert_null(slice.block);
    leat_buf_trim(&buf, 0);
    leat_buf_release(&buf);
    leat_buf_release(&slice);
    assert_int_equal(leat_buf_pinned(&buf), 0);
}

static void release_empties_the_buffer(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf buf = take(mem, 10);

    (void)state;
    leat_buf_release(&buf);
    assert_null(buf.data);
    assert_null(buf.block);
    assert_int_equal(buf.len, 0);
    leat_buf_release(&buf);
    leat_mem_free(mem);
}

static void a_buffer_of_no_bytes_holds_a_reference(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf none = take(mem, 0);

    (void)state;
    assert_non_null(none.block);
    assert_int_equal(stats_of(mem).buf_live, 1);
    assert_int_equal(stats_of(mem).buf_pinned, SLAB);
    leat_buf_release(&none);
    leat_mem_free(mem);
}

static void trim_gives_the_end_of_the_newest_back(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf a = take(mem, 1500);
    leat_buf b;

    (void)state;
    leat_buf_trim(&a, 41);
    assert_int_equal(a.len, 41);
    b = take(mem, 8);
    assert_ptr_equal(b.data, a.data + 48 + GUARD);
    assert_int_equal(stats_of(mem).buf_used, 49);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_mem_free(mem);
}

static void trim_of_an_older_buffer_only_shortens_it(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf a = take(mem, 1500);
    leat_buf b = take(mem, 8);
    leat_buf c;

    (void)state;
    leat_buf_trim(&a, 40);
    assert_int_equal(a.len, 40);
    c = take(mem, 8);
    assert_ptr_equal(c.data, b.data + 8 + GUARD);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_buf_release(&c);
    leat_mem_free(mem);
}

/* Else the next buffer would lie on bytes that the slice still shows. */
static void trim_gives_nothing_back_that_a_slice_holds(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf a = take(mem, 1000);
    leat_buf slice = leat_buf_slice(&a, 500, 500);
    leat_buf b;

    (void)state;
    leat_buf_trim(&a, 100);
    b = take(mem, 100);
    assert_true(b.data >= slice.data + slice.len);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_buf_release(&slice);
    leat_mem_free(mem);
}

static void trim_works_again_after_the_slab_started_again(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf a = take(mem, 1000);
    leat_buf slice = leat_buf_slice(&a, 0, 1000);
    leat_buf b;

    (void)state;
    leat_buf_release(&a);
    leat_buf_release(&slice);
    a = take(mem, 1000);
    leat_buf_trim(&a, 8);
    b = take(mem, 8);
    assert_ptr_equal(b.data, a.data + 8 + GUARD);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_mem_free(mem);
}

/* The slice stands past the front of the buffer that was let go. */
static void a_slice_that_is_left_alone_counts_its_own_bytes(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf whole = take(mem, 100);
    leat_buf rest = leat_buf_slice(&whole, 33, 67);
    uint8_t *start = whole.data;

    (void)state;
    assert_int_equal(stats_of(mem).buf_live, 2);
    assert_int_equal(stats_of(mem).buf_used, 167);
    leat_buf_release(&whole);
    assert_ptr_equal(rest.data, start + 33);
    assert_int_equal(stats_of(mem).buf_live, 1);
    assert_int_equal(stats_of(mem).buf_used, 67);
    leat_buf_trim(&rest, 7);
    assert_int_equal(stats_of(mem).buf_used, 7);
    leat_buf_release(&rest);
    assert_int_equal(stats_of(mem).buf_live, 0);
    assert_int_equal(stats_of(mem).buf_used, 0);
    leat_mem_free(mem);
}

static void statistics_tell_used_from_pinned_and_kept(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_mem_stats s = stats_of(mem);
    leat_buf bufs[10];

    (void)state;
    assert_int_equal(s.slabs, 0);
    assert_int_equal(s.grown, 1);
    assert_true(s.system > 0);
    for (unsigned i = 0; i < 10; i++) {
        bufs[i] = take(mem, 1500);
    }
    s = stats_of(mem);
    assert_int_equal(s.buf_live, 10);
    assert_int_equal(s.buf_used, 15000);
    assert_int_equal(s.slabs, 5);
    assert_int_equal(s.slabs_free, 0);
    assert_int_equal(s.buf_pinned, 5 * 4096);
    assert_int_equal(s.system, s.system_high);
    for (unsigned i = 0; i < 10; i++) {
        leat_buf_release(&bufs[i]);
    }
    s = stats_of(mem);
    assert_int_equal(s.buf_live, 0);
    assert_int_equal(s.buf_used, 0);
    assert_int_equal(s.buf_pinned, 0);
    assert_int_equal(s.slabs_free, 5);
    assert_int_equal(leat_mem_reclaim(mem), 5 * 4096);
    s = stats_of(mem);
    assert_int_equal(s.slabs, 0);
    assert_true(s.system < s.system_high);
    leat_mem_free(mem);
}

static void a_take_past_the_limit_fails_and_changes_nothing(void **state)
{
    leat_mem *mem = new_mem(4096, 64 * 1024);
    leat_buf bufs[64];
    unsigned n = 0;
    leat_mem_stats before;
    leat_buf out;

    (void)state;
    while (leat_buf_take(mem, 2000, &bufs[n]) == LEAT_OK) {
        n++;
        assert_true(n < 64);
    }
    assert_in_range(n, 20, 32);
    before = stats_of(mem);
    assert_true(before.system <= 64 * 1024);
    memset(&out, 1, sizeof out);
    assert_int_equal(leat_buf_take(mem, 3000, &out), LEAT_ERR_NOMEM);
    assert_null(out.block);
    assert_int_equal(out.len, 0);
    assert_int_equal(leat_buf_take(mem, SIZE_MAX, &out), LEAT_ERR_NOMEM);
    assert_int_equal(leat_buf_take(mem, SIZE_MAX - 6, &out), LEAT_ERR_NOMEM);
    assert_int_equal(stats_of(mem).system, before.system);
    assert_int_equal(stats_of(mem).buf_live, before.buf_live);
    while (n > 0) {
        leat_buf_release(&bufs[--n]);
    }
    leat_mem_free(mem);
}

/* What was a block of one class must not stand in the way of another class for ever. */
static void kept_memory_makes_way_when_the_limit_is_reached(void **state)
{
    leat_mem *mem = new_mem(4096, 256 * 1024);

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        leat_buf large = take(mem, 150000);
        leat_buf small[40];
        void *array;

        leat_buf_release(&large);
        for (unsigned i = 0; i < 40; i++) {
            small[i] = take(mem, 2000);
        }
        array = leat_mem_take(mem, 60000);
        assert_non_null(array);
        leat_mem_give(mem, array, 60000);
        for (unsigned i = 0; i < 40; i++) {
            leat_buf_release(&small[i]);
        }
        array = leat_mem_take(mem, 130000);
        assert_non_null(array);
        leat_mem_give(mem, array, 130000);
        assert_true(stats_of(mem).system_high <= 256 * 1024);
    }
    leat_mem_free(mem);
}

static void a_steady_state_asks_the_system_for_nothing(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    uint64_t grown = 0;

    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        leat_buf bufs[200];

        for (unsigned i = 0; i < 200; i++) {
            bufs[i] = take(mem, 100 + i * 257);
        }
        for (unsigned i = 0; i < 200; i++) {
            leat_buf_release(&bufs[i]);
        }
        if (round == 1) {
            grown = stats_of(mem).grown;
        }
    }
    assert_int_equal(stats_of(mem).grown, grown);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_out_of_bounds_are_refused),
        cmocka_unit_test(small_buffers_are_cut_in_a_row_aligned_to_8),
        cmocka_unit_test(half_a_slab_and_more_get_a_block_of_their_own),
        cmocka_unit_test(no_own_block_wastes_more_than_a_quarter),
        cmocka_unit_test(own_blocks_are_kept_by_class_and_used_again),
        cmocka_unit_test(a_slab_starts_again_when_its_last_buffer_goes),
        cmocka_unit_test(one_long_lived_buffer_pins_its_slab_alone),
        cmocka_unit_test(a_slice_keeps_the_slab_after_its_parent_went),
        cmocka_unit_test(slices_of_own_blocks_count_too),
        cmocka_unit_test(an_empty_buffer_is_safe_to_release_and_to_slice),
        cmocka_unit_test(release_empties_the_buffer),
        cmocka_unit_test(a_buffer_of_no_bytes_holds_a_reference),
        cmocka_unit_test(trim_gives_the_end_of_the_newest_back),
        cmocka_unit_test(trim_of_an_older_buffer_only_shortens_it),
        cmocka_unit_test(trim_gives_nothing_back_that_a_slice_holds),
        cmocka_unit_test(trim_works_again_after_the_slab_started_again),
        cmocka_unit_test(a_slice_that_is_left_alone_counts_its_own_bytes),
        cmocka_unit_test(statistics_tell_used_from_pinned_and_kept),
        cmocka_unit_test(a_take_past_the_limit_fails_and_changes_nothing),
        cmocka_unit_test(kept_memory_makes_way_when_the_limit_is_reached),
        cmocka_unit_test(a_steady_state_asks_the_system_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
