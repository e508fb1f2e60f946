/* The batch queue: its promises one by one, and an array that knows better.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/queue.h"

typedef struct item {
    uint64_t value;
    uint32_t more[3];
} item;

static leat_mem *mem;

static int make_mem(void **state)
{
    (void)state;
    mem = new_mem(0, 0);
    return 0;
}

static int end_mem(void **state)
{
    (void)state;
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
    return 0;
}

static leat_queue make(void)
{
    leat_queue q;

    leat_queue_init(&q, mem, sizeof(item));
    return q;
}

static void push(leat_queue *q, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        item *it = (item *)leat_queue_push(q);

        assert_non_null(it);
        *it = (item){.value = from, .more = {(uint32_t)from, 1, ~(uint32_t)from}};
    }
}

/* Asserts that exactly from … to - 1 come out, in this order. */
static void pop(leat_queue *q, uint64_t from, uint64_t to)
{
    leat_queue_check(q);
    for (; from < to; from++) {
        item *it = (item *)leat_queue_pop(q);

        assert_non_null(it);
        assert_int_equal(it->value, from);
        assert_int_equal(it->more[2], ~(uint32_t)from);
    }
}

static uint64_t takes(void)
{
    return stats_of(mem).grown + stats_of(mem).obj_live;
}

static void push_and_pop_keep_the_order_and_the_storage(void **state)
{
    leat_queue q = make();
    uint64_t before;

    (void)state;
    assert_null(leat_queue_pop(&q));
    push(&q, 0, 100);
    before = takes();
    pop(&q, 0, 60);
    for (uint64_t i = 60; i < 5000; i++) {
        push(&q, i + 40, i + 41);
        pop(&q, i, i + 1);
    }
    assert_int_equal(leat_queue_count(&q), 40);
    assert_int_equal(takes(), before);
    pop(&q, 5000, 5040);
    assert_true(leat_queue_empty(&q));
    assert_null(leat_queue_pop(&q));
    leat_queue_free(&q);
}

/* Promise 1: the number of growths is logarithmic. */
static void pushes_grow_the_storage_rarely(void **state)
{
    leat_queue q = make();
    unsigned grown = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        uint32_t cap = q.cap;

        push(&q, i, i + 1);
        grown += q.cap != cap;
    }
    assert_in_range(grown, 10, 14);
    pop(&q, 0, 10000);
    leat_queue_free(&q);
}

/* Promise 2. Whether the storages are exchanged or elements copied, this side has its room after
 * it. */
static void draining_keeps_this_sides_capacity(void **state)
{
    (void)state;
    for (uint32_t other = 0; other <= 256; other = other * 2 + 1) {
        leat_queue q = make();
        leat_queue batch = make();
        uint32_t cap;

        assert_int_equal(leat_queue_reserve(&batch, other), LEAT_OK);
        push(&q, 0, 100);
        pop(&q, 0, 90);
        push(&q, 100, 110);
        cap = q.cap;
        assert_int_equal(leat_queue_drain(&q, &batch), LEAT_OK);
        assert_true(leat_queue_empty(&q));
        assert_true(q.cap >= cap);
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
        push(&q, 500, 500 + cap);
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
        pop(&batch, 90, 110);
        pop(&q, 500, 500 + cap);
        leat_queue_free(&q);
        leat_queue_free(&batch);
    }
}

static void drains_in_turn_take_memory_only_at_first(void **state)
{
    leat_queue q = make();
    leat_queue batch = make();
    uint64_t before = 0;

    (void)state;
    for (unsigned round = 0; round < 100; round++) {
        push(&q, 0, 64);
        assert_int_equal(leat_queue_drain(&q, &batch), LEAT_OK);
        push(&q, 64, 70);
        pop(&batch, 0, 64);
        pop(&q, 64, 70);
        if (round == 1) {
            before = takes();
        }
    }
    assert_int_equal(takes(), before);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

/* Promise 3, first half: with room on this side the incoming storage stays where it is. */
static void with_room_a_batch_is_copied_and_keeps_its_storage(void **state)
{
    leat_queue q = make();
    leat_queue batch = make();
    uint8_t *mine;
    uint8_t *its;

    (void)state;
    assert_int_equal(leat_queue_reserve(&q, 64), LEAT_OK);
    push(&q, 0, 10);
    push(&batch, 10, 64);
    mine = q.data;
    its = batch.data;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_int_equal(leat_queue_append(&q, &batch), LEAT_OK);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_ptr_equal(q.data, mine);
    assert_ptr_equal(batch.data, its);
    assert_true(leat_queue_empty(&batch));
    pop(&q, 0, 64);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

/* Promise 3, second half: where this side would have to grow it takes the incoming storage instead.
 */
static void without_room_the_incoming_storage_is_adopted(void **state)
{
    leat_queue q = make();
    leat_queue batch = make();
    uint8_t *mine;
    uint8_t *its;

    (void)state;
    push(&q, 0, 4);
    assert_int_equal(leat_queue_reserve(&batch, 64), LEAT_OK);
    push(&batch, 4, 40);
    mine = q.data;
    its = batch.data;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_int_equal(leat_queue_append(&q, &batch), LEAT_OK);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_ptr_equal(q.data, its);
    assert_ptr_equal(batch.data, mine);
    assert_true(leat_queue_empty(&batch));
    leat_queue_check(&batch);
    pop(&q, 0, 40);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

static void when_neither_storage_has_room_this_side_grows(void **state)
{
    leat_queue q = make();
    leat_queue batch = make();

    (void)state;
    push(&q, 0, 60);
    push(&batch, 60, 120);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, false);
    assert_int_equal(leat_queue_append(&q, &batch), LEAT_ERR_NOMEM);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_int_equal(leat_queue_count(&q), 60);
    assert_int_equal(leat_queue_count(&batch), 60);
    assert_int_equal(leat_queue_append(&q, &batch), LEAT_OK);
    pop(&q, 0, 120);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

static void out_of_memory_loses_nothing(void **state)
{
    leat_queue q = make();
    leat_queue batch = make();

    (void)state;
    push(&q, 0, 4);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_null(leat_queue_push(&q));
    assert_int_equal(leat_queue_reserve(&q, 5), LEAT_ERR_NOMEM);
    assert_int_equal(leat_queue_drain(&q, &batch), LEAT_ERR_NOMEM);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_int_equal(leat_queue_reserve(&q, UINT32_MAX), LEAT_ERR_LIMIT);
    pop(&q, 0, 4);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

static void elements_are_found_by_their_place(void **state)
{
    leat_queue q = make();

    (void)state;
    push(&q, 0, 8);
    pop(&q, 0, 5);
    push(&q, 8, 12);
    assert_int_equal(q.cap, 8); /* they go round its end */
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(((item *)leat_queue_at(&q, i))->value, 5 + i);
    }
    assert_null(leat_queue_at(&q, 7));
    leat_queue_free(&q);
}

static void an_idle_queue_gives_its_storage_back(void **state)
{
    leat_queue q = make();

    (void)state;
    push(&q, 0, 100);
    leat_queue_shrink(&q);
    assert_int_equal(leat_queue_held(&q), 128 * sizeof(item));
    pop(&q, 0, 100);
    leat_queue_shrink(&q);
    assert_int_equal(leat_queue_held(&q), 0);
    assert_int_equal(stats_of(mem).obj_live, 0);
    push(&q, 0, 3);
    pop(&q, 0, 3);
    leat_queue_free(&q);
}

static void what_it_will_hold_is_known_before(void **state)
{
    leat_queue q = make();

    (void)state;
    assert_int_equal(leat_queue_growth(&q, 0), 0);
    for (uint32_t n = 1; n < 1000; n++) {
        size_t more = leat_queue_growth(&q, n);
        size_t held = leat_queue_held(&q);

        push(&q, n - 1, n);
        assert_int_equal(leat_queue_held(&q), held + more);
        assert_int_equal(leat_queue_growth(&q, n), 0);
    }
    assert_true(leat_queue_growth(&q, UINT32_MAX) == SIZE_MAX);
    assert_int_equal(leat_queue_reserve(&q, UINT32_MAX), LEAT_ERR_LIMIT);
    leat_queue_free(&q);
}

/* Two queues and two counters each: what is in them is always a run of numbers. */
static void order_is_kept_whatever_is_done(void **state)
{
    leat_prng prng = test_prng("queue");
    leat_queue q = make();
    leat_queue batch = make();
    uint64_t out = 0; /* the next number that must come out of q */
    uint64_t mid = 0; /* where q ends and batch begins */
    uint64_t in = 0;  /* the next number to push to batch */

    (void)state;
    for (unsigned step = 0; step < 50000; step++) {
        uint64_t n = leat_prng_below(&prng, leat_prng_chance(&prng, 1, 20) ? 300 : 12);

        switch (leat_prng_below(&prng, 6)) {
        case 0:
        case 1:
            push(&batch, in, in + n);
            in += n;
            break;
        case 2:
        case 3:
            n = n < mid - out ? n : mid - out;
            pop(&q, out, out + n);
            out += n;
            break;
        case 4:
            assert_int_equal(leat_queue_append(&q, &batch), LEAT_OK);
            mid = in;
            break;
        default:
            if (leat_queue_empty(&q)) {
                assert_int_equal(leat_queue_drain(&batch, &q), LEAT_OK);
                mid = in;
                if (leat_prng_chance(&prng, 1, 4)) {
                    leat_queue_shrink(&batch);
                }
            }
        }
        leat_queue_check(&q);
        leat_queue_check(&batch);
        assert_int_equal(leat_queue_count(&q), mid - out);
        assert_int_equal(leat_queue_count(&batch), in - mid);
    }
    pop(&q, out, mid);
    pop(&batch, mid, in);
    leat_queue_free(&q);
    leat_queue_free(&batch);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_mem, end_mem)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(push_and_pop_keep_the_order_and_the_storage),
        TEST(pushes_grow_the_storage_rarely),
        TEST(draining_keeps_this_sides_capacity),
        TEST(drains_in_turn_take_memory_only_at_first),
        TEST(with_room_a_batch_is_copied_and_keeps_its_storage),
        TEST(without_room_the_incoming_storage_is_adopted),
        TEST(when_neither_storage_has_room_this_side_grows),
        TEST(out_of_memory_loses_nothing),
        TEST(elements_are_found_by_their_place),
        TEST(an_idle_queue_gives_its_storage_back),
        TEST(what_it_will_hold_is_known_before),
        TEST(order_is_kept_whatever_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
