/* The pairing heap: everything comes out in order, ties by the order of insertion, removal of any
 * entry.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

typedef struct entry entry;
struct entry {
    uint64_t key;
    uint64_t order;
    bool in;
    entry *child;
    entry *next;
    entry *prev;
};

#define LEAT_HEAP_NAME node_heap
#define LEAT_HEAP_TYPE entry
#define LEAT_HEAP_BEFORE(a, b)                                                                     \
    ((a)->key < (b)->key || ((a)->key == (b)->key && (a)->order < (b)->order))
#include "base/heap.h"

#define NODES 300u

static bool before(const entry *a, const entry *b)
{
    return a->key < b->key || (a->key == b->key && a->order < b->order);
}

/* The first of those that are in, by looking at all of them. */
static entry *least(entry *nodes)
{
    entry *found = NULL;

    for (unsigned i = 0; i < NODES; i++) {
        if (nodes[i].in && (!found || before(&nodes[i], found))) {
            found = &nodes[i];
        }
    }
    return found;
}

static void an_empty_heap_gives_nothing(void **state)
{
    entry *root = NULL;

    (void)state;
    assert_null(node_heap_pop(&root));
    node_heap_check(root);
}

static void ties_come_out_in_the_order_they_went_in(void **state)
{
    static entry nodes[NODES];
    entry *root = NULL;

    (void)state;
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < NODES; i++) {
        nodes[i].key = 7;
        nodes[i].order = i;
        node_heap_insert(&root, &nodes[i]);
    }
    for (unsigned i = 0; i < NODES; i++) {
        assert_ptr_equal(node_heap_pop(&root), &nodes[i]);
    }
    assert_null(root);
}

static void a_node_that_is_out_says_so(void **state)
{
    entry nodes[3] = {{.key = 1}, {.key = 2}, {.key = 3}};
    entry *root = NULL;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_false(node_heap_contains(root, &nodes[i]));
        node_heap_insert(&root, &nodes[i]);
        assert_true(node_heap_contains(root, &nodes[i]));
    }
    node_heap_remove(&root, &nodes[1]);
    assert_false(node_heap_contains(root, &nodes[1]));
    assert_ptr_equal(node_heap_pop(&root), &nodes[0]);
    assert_false(node_heap_contains(root, &nodes[0]));
    assert_ptr_equal(root, &nodes[2]);
}

static void it_agrees_with_a_linear_search_whatever_is_done(void **state)
{
    static entry nodes[NODES];
    leat_prng prng = test_prng("heap");
    uint64_t order = 0;
    entry *root = NULL;

    (void)state;
    memset(nodes, 0, sizeof nodes);
    for (unsigned step = 0; step < 20000; step++) {
        entry *n = &nodes[leat_prng_below(&prng, NODES)];

        if (leat_prng_chance(&prng, 1, 4)) {
            entry *popped = node_heap_pop(&root);

            assert_ptr_equal(popped, least(nodes));
            if (popped) {
                popped->in = false;
            }
        } else if (n->in) {
            node_heap_remove(&root, n);
            n->in = false;
        } else {
            n->key = leat_prng_below(&prng, 40);
            n->order = order++;
            n->in = true;
            node_heap_insert(&root, n);
        }
        assert_ptr_equal(root, least(nodes));
        if (step % 64 == 0) {
            node_heap_check(root);
        }
    }
}

static void check_broken_heap(void)
{
    entry nodes[3] = {{.key = 1}, {.key = 2}, {.key = 3}};
    entry *root = NULL;

    for (unsigned i = 0; i < 3; i++) {
        node_heap_insert(&root, &nodes[i]);
    }
    nodes[2].key = 0;
    node_heap_check(root);
}

static void the_walker_sees_a_key_changed_in_place(void **state)
{
    (void)state;
    assert_true(panics(check_broken_heap, "BEFORE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_gives_nothing),
        cmocka_unit_test(ties_come_out_in_the_order_they_went_in),
        cmocka_unit_test(a_node_that_is_out_says_so),
        cmocka_unit_test(it_agrees_with_a_linear_search_whatever_is_done),
        cmocka_unit_test(the_walker_sees_a_key_changed_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
