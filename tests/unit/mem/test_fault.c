/* Faults to order: each take and each growth can be made to fail, once or from then on, and nothing
 * leaks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/hmap.h"
#include "mem/pool.h"
#include "mem/queue.h"
#include "mem/ranges.h"

/* The system, which has only so much: the linker brings mem's calls here. */
static size_t system_room = SIZE_MAX;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (size > system_room) {
        return NULL;
    }
    system_room -= system_room == SIZE_MAX ? 0 : size;
    return __real_aligned_alloc(alignment, size);
}

/* Without a limit of our own there is the system's: what is kept for another size goes back first.
 */
static void what_is_kept_goes_back_when_the_system_has_no_more(void **state)
{
    leat_mem *mem = new_mem(65536, 0);
    leat_buf large = take(mem, 1000000), other;
    size_t before;

    (void)state;
    leat_buf_release(&large);
    before = stats_of(mem).system;
    system_room = 0;
    assert_int_equal(leat_buf_take(mem, 500000, &other), LEAT_ERR_NOMEM);
    assert_true(stats_of(mem).system < before); /* the larger block, which was of no use */
    system_room = SIZE_MAX;
    other = take(mem, 500000);
    leat_buf_release(&other);
    leat_mem_free(mem);
}

static void the_nth_take_fails_and_no_other(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_pool pool;

    (void)state;
    leat_pool_init(&pool, mem, 32, "test");
    for (unsigned nth = 1; nth <= 9; nth++) {
        leat_buf bufs[3];
        void *arrays[3];
        void *objects[3];

        leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, nth, false);
        for (unsigned i = 0; i < 3; i++) {
            leat_err err = leat_buf_take(mem, 100, &bufs[i]);

            assert_int_equal(err, nth == i * 3 + 1 ? LEAT_ERR_NOMEM : LEAT_OK);
            arrays[i] = leat_mem_take(mem, 100);
            assert_int_equal(arrays[i] == NULL, nth == i * 3 + 2);
            objects[i] = leat_pool_take(&pool);
            assert_int_equal(objects[i] == NULL, nth == i * 3 + 3);
        }
        assert_int_equal(leat_mem_fault_count(mem), 1);
        for (unsigned i = 0; i < 3; i++) {
            leat_buf_release(&bufs[i]);
            leat_mem_give(mem, arrays[i], 100);
            leat_pool_give(&pool, objects[i]);
        }
    }
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    leat_pool_free(&pool);
    leat_mem_free(mem);
}

static void lasting_faults_last_until_they_are_ended(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_buf buf;

    (void)state;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 2, true);
    buf = take(mem, 10);
    leat_buf_release(&buf);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(leat_buf_take(mem, 10, &buf), LEAT_ERR_NOMEM);
        assert_int_equal(leat_buf_take(mem, 60000, &buf), LEAT_ERR_NOMEM);
    }
    assert_int_equal(leat_mem_fault_count(mem), 10);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    buf = take(mem, 10);
    leat_buf_release(&buf);
    leat_mem_free(mem);
}

static void growth_faults_leave_what_is_kept_usable(void **state)
{
    leat_mem *mem = new_mem(4096, 0);
    leat_buf a = take(mem, 1000);
    leat_buf b;

    (void)state;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_GROWTH, 1, true);
    b = take(mem, 1000);
    leat_buf_release(&a);
    leat_buf_release(&b);
    a = take(mem, 2000);
    b = take(mem, 1000);
    assert_int_equal(leat_mem_fault_count(mem), 0);
    {
        leat_buf c;

        assert_int_equal(leat_buf_take(mem, 2000, &c), LEAT_ERR_NOMEM);
        assert_int_equal(leat_buf_take(mem, 5000, &c), LEAT_ERR_NOMEM);
    }
    assert_null(leat_mem_take(mem, 1));
    assert_null(leat_mem_take(mem, 100000));
    assert_int_equal(leat_mem_fault_count(mem), 4);
    leat_buf_release(&a);
    leat_buf_release(&b);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    leat_mem_free(mem);
}

/* A bit of everything. Returns early, cleaned up, when memory is refused. */
static bool work(leat_mem *mem)
{
    static leat_hnode_u64 nodes[40];
    leat_pool pool;
    leat_queue queue;
    leat_queue batch;
    leat_ranges ranges;
    leat_hmap map;
    leat_buf small = {0};
    leat_buf large = {0};
    void *objects[20] = {0};
    void *block = NULL;
    bool done = false;

    leat_pool_init(&pool, mem, 300, "test");
    leat_queue_init(&queue, mem, 24);
    leat_queue_init(&batch, mem, 24);
    leat_ranges_init(&ranges, mem, 100);
    leat_hmap_init(&map, mem, (leat_hash_key){{1, 2}});
    for (unsigned i = 0; i < 40; i++) {
        leat_hmap_insert_u64(&map, &nodes[i], i);
    }
    if (leat_buf_take(mem, 1000, &small) != LEAT_OK ||
        leat_buf_take(mem, 10000, &large) != LEAT_OK) {
        goto out;
    }
    for (unsigned i = 0; i < 20; i++) {
        objects[i] = leat_pool_take(&pool);
        if (!objects[i] || !leat_queue_push(&queue) || !leat_queue_push(&batch) ||
            leat_ranges_add(&ranges, i * 3, i * 3 + 1) != LEAT_OK) {
            goto out;
        }
    }
    block = leat_mem_calloc(mem, 3, 1000);
    if (!block || leat_queue_append(&queue, &batch) != LEAT_OK ||
        leat_queue_drain(&queue, &batch) != LEAT_OK) {
        goto out;
    }
    done = true;
out:
    leat_hmap_check(&map);
    leat_ranges_check(&ranges);
    leat_queue_check(&queue);
    leat_queue_check(&batch);
    leat_pool_check(&pool);
    leat_mem_check(mem);
    assert_int_equal(leat_hmap_count(&map), 40);
    for (unsigned i = 0; i < 20; i++) {
        leat_pool_give(&pool, objects[i]);
    }
    leat_mem_release(mem, block);
    leat_buf_release(&small);
    leat_buf_release(&large);
    leat_hmap_free(&map);
    leat_ranges_free(&ranges);
    leat_queue_free(&queue);
    leat_queue_free(&batch);
    leat_pool_free(&pool);
    return done;
}

/* Fails the first operation, the second, … until one run has no fault. Returns how many there were.
 */
static unsigned fail_each(leat_mem_fault kind, bool lasting)
{
    for (unsigned nth = 1;; nth++) {
        leat_mem *mem = new_mem(4096, 0);
        uint64_t hits;
        bool done;

        leat_mem_fault_set(mem, kind, nth, lasting);
        done = work(mem);
        hits = leat_mem_fault_count(mem);
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
        assert_int_equal(stats_of(mem).obj_live, 0);
        assert_int_equal(stats_of(mem).buf_live, 0);
        assert_true(work(mem));
        leat_mem_free(mem);
        if (hits == 0) {
            assert_true(done);
            return nth - 1;
        }
        assert_true(nth < 1000);
    }
}

static void every_single_failure_leaves_all_whole(void **state)
{
    (void)state;
    assert_true(fail_each(LEAT_MEM_FAULT_TAKE, false) > 30);
    assert_true(fail_each(LEAT_MEM_FAULT_TAKE, true) > 30);
    assert_true(fail_each(LEAT_MEM_FAULT_GROWTH, false) > 4);
    assert_true(fail_each(LEAT_MEM_FAULT_GROWTH, true) > 4);
}

/* The same with a limit that gets in the way earlier and earlier. */
static void every_limit_leaves_all_whole(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (size_t limit = 80 * 1024; limit > 8 * 1024; limit -= 1000) {
        leat_mem *mem = new_mem(4096, limit);

        failed += !work(mem);
        assert_int_equal(stats_of(mem).obj_live, 0);
        assert_true(stats_of(mem).system_high <= limit);
        leat_mem_free(mem);
    }
    assert_in_range(failed, 10, 70);
}

static void a_limit_too_small_for_anything_is_refused(void **state)
{
    leat_mem_settings settings;
    leat_mem *mem;

    (void)state;
    leat_mem_settings_init(&settings);
    settings.limit = 10;
    assert_int_equal(leat_mem_new(&settings, &mem), LEAT_ERR_NOMEM);
    assert_null(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_goes_back_when_the_system_has_no_more),
        cmocka_unit_test(the_nth_take_fails_and_no_other),
        cmocka_unit_test(lasting_faults_last_until_they_are_ended),
        cmocka_unit_test(growth_faults_leave_what_is_kept_usable),
        cmocka_unit_test(every_single_failure_leaves_all_whole),
        cmocka_unit_test(every_limit_leaves_all_whole),
        cmocka_unit_test(a_limit_too_small_for_anything_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
