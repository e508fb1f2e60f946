/* Hash maps: finding by both kinds of key, growing step by step, without memory too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#include "mem/hmap.h"

#define NODES 3000u

typedef struct entry {
    leat_hnode_u64 node;
    bool in;
    bool seen;
} entry;

static leat_hash_key some_key(leat_prng *prng)
{
    leat_hash_key key;

    leat_prng_fill(prng, &key, sizeof key);
    return key;
}

static entry *entry_of(leat_hnode *node)
{
    return LEAT_CONTAINER_OF(LEAT_CONTAINER_OF(node, leat_hnode_u64, node), entry, node);
}

static void few_nodes_take_no_memory(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_hnode_u64 nodes[4];
    leat_hmap map;

    (void)state;
    leat_hmap_init(&map, mem, (leat_hash_key){{1, 2}});
    assert_null(leat_hmap_find_u64(&map, 0));
    assert_null(leat_hmap_next(&map, NULL));
    for (unsigned i = 0; i < 4; i++) {
        leat_hmap_insert_u64(&map, &nodes[i], i * 4);
    }
    leat_hmap_check(&map);
    for (unsigned i = 0; i < 4; i++) {
        assert_ptr_equal(leat_hmap_find_u64(&map, i * 4), &nodes[i]);
    }
    assert_null(leat_hmap_find_u64(&map, 16));
    assert_int_equal(leat_hmap_held(&map), 0);
    assert_int_equal(stats_of(mem).grown, 1);
    leat_hmap_free(&map);
    leat_mem_free(mem);
}

static void without_memory_it_gets_slower_but_loses_nothing(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    static leat_hnode_u64 nodes[200];
    leat_hmap map;

    (void)state;
    leat_hmap_init(&map, mem, (leat_hash_key){{1, 2}});
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 3, true);
    for (unsigned i = 0; i < 100; i++) {
        leat_hmap_insert_u64(&map, &nodes[i], i);
        leat_hmap_check(&map);
    }
    assert_true(leat_mem_fault_count(mem) > 0);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    for (unsigned i = 100; i < 200; i++) {
        leat_hmap_insert_u64(&map, &nodes[i], i);
        leat_hmap_check(&map);
    }
    for (unsigned i = 0; i < 200; i++) {
        assert_ptr_equal(leat_hmap_find_u64(&map, i), &nodes[i]);
    }
    assert_true(leat_hmap_held(&map) >= 100 * sizeof(void *));
    leat_hmap_free(&map);
    leat_mem_free(mem);
}

static void byte_keys_differ_by_length_and_by_every_byte(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    static leat_hnode_bytes nodes[LEAT_HMAP_BYTES_MAX + 1];
    uint8_t key[LEAT_HMAP_BYTES_MAX] = {0};
    leat_hmap map;

    (void)state;
    leat_hmap_init(&map, mem, (leat_hash_key){{3, 4}});
    for (unsigned len = 0; len <= LEAT_HMAP_BYTES_MAX; len++) {
        leat_hmap_insert_bytes(&map, &nodes[len], key, len);
    }
    leat_hmap_check(&map);
    for (unsigned len = 0; len <= LEAT_HMAP_BYTES_MAX; len++) {
        assert_ptr_equal(leat_hmap_find_bytes(&map, len ? key : NULL, len), &nodes[len]);
        for (unsigned i = 0; i < len; i++) {
            key[i] = 1;
            assert_null(leat_hmap_find_bytes(&map, key, len));
            key[i] = 0;
        }
    }
    leat_hmap_remove(&map, &nodes[7].node);
    assert_null(leat_hmap_find_bytes(&map, key, 7));
    assert_int_equal(leat_hmap_count(&map), LEAT_HMAP_BYTES_MAX);
    leat_hmap_free(&map);
    leat_mem_free(mem);
}

/* A key longer than any node's is looked up, as a packet may bring it, and not found. */
static void a_longer_key_than_any_is_not_found(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    leat_hnode_bytes node;
    uint8_t key[255] = {0};
    leat_hmap map;

    (void)state;
    leat_hmap_init(&map, mem, (leat_hash_key){{3, 4}});
    leat_hmap_insert_bytes(&map, &node, key, 20);
    assert_null(leat_hmap_find_bytes(&map, key, 255));
    leat_hmap_free(&map);
    leat_mem_free(mem);
}

static void a_walk_meets_each_node_once_and_may_remove_it(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    static entry all[NODES];
    leat_hmap map;

    (void)state;
    for (unsigned n = 0; n < NODES; n = n * 5 / 4 + 1) {
        unsigned met = 0;

        memset(all, 0, sizeof all);
        leat_hmap_init(&map, mem, (leat_hash_key){{n, 4}});
        for (unsigned i = 0; i < n; i++) {
            leat_hmap_insert_u64(&map, &all[i].node, i);
        }
        for (leat_hnode *at = leat_hmap_next(&map, NULL), *next; at; at = next) {
            next = leat_hmap_next(&map, at);
            assert_false(entry_of(at)->seen);
            entry_of(at)->seen = true;
            met++;
            if (met % 2) {
                leat_hmap_remove(&map, at);
            }
        }
        assert_int_equal(met, n);
        assert_int_equal(leat_hmap_count(&map), n / 2);
        leat_hmap_check(&map);
        leat_hmap_free(&map);
    }
    leat_mem_free(mem);
}

static void it_agrees_with_a_plain_array_whatever_is_done(void **state)
{
    leat_prng prng = test_prng("hmap");
    leat_mem *mem = new_mem(0, 0);
    static entry all[NODES];
    size_t count = 0;
    leat_hmap map;

    (void)state;
    memset(all, 0, sizeof all);
    leat_hmap_init(&map, mem, some_key(&prng));
    for (unsigned step = 0; step < 60000; step++) {
        unsigned i = (unsigned)leat_prng_below(&prng, step < 30000 ? step / 10 + 1 : NODES);

        assert_ptr_equal(leat_hmap_find_u64(&map, i * 4), all[i].in ? &all[i].node : NULL);
        if (leat_prng_chance(&prng, 1, 3) ? all[i].in : !all[i].in) {
            if (all[i].in) {
                leat_hmap_remove(&map, &all[i].node.node);
                count--;
            } else {
                leat_hmap_insert_u64(&map, &all[i].node, i * 4);
                count++;
            }
            all[i].in = !all[i].in;
        }
        assert_int_equal(leat_hmap_count(&map), count);
        if (step % 1000 == 0) {
            leat_hmap_check(&map);
        }
    }
    leat_hmap_free(&map);
    assert_int_equal(stats_of(mem).obj_live, 0);
    leat_mem_free(mem);
}

/* No insert moves more than a few buckets: the old array is there for many inserts, and gone in
 * time. */
static void growing_is_spread_over_inserts(void **state)
{
    leat_mem *mem = new_mem(0, 0);
    static entry all[NODES];
    unsigned both = 0;
    leat_hmap map;

    (void)state;
    leat_hmap_init(&map, mem, (leat_hash_key){{5, 6}});
    for (unsigned i = 0; i < 2048; i++) {
        size_t moved = map.old ? map.moved : 0;

        leat_hmap_insert_u64(&map, &all[i].node, i);
        assert_true(!map.old || map.moved <= moved + 4);
        both += map.old != NULL;
    }
    assert_in_range(both, 300, 700);
    leat_hmap_free(&map);
    leat_mem_free(mem);
}

static void remove_a_stranger(void)
{
    leat_mem *mem = new_mem(0, 0);
    leat_hnode_u64 in;
    leat_hnode_u64 out = {.key = 9};
    leat_hmap map;

    leat_hmap_init(&map, mem, (leat_hash_key){{5, 6}});
    leat_hmap_insert_u64(&map, &in, 1);
    leat_hmap_remove(&map, &out.node);
}

static void removing_a_node_that_is_not_in_is_caught(void **state)
{
    (void)state;
    assert_true(panics(remove_a_stranger, "NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_nodes_take_no_memory),
        cmocka_unit_test(without_memory_it_gets_slower_but_loses_nothing),
        cmocka_unit_test(byte_keys_differ_by_length_and_by_every_byte),
        cmocka_unit_test(a_longer_key_than_any_is_not_found),
        cmocka_unit_test(a_walk_meets_each_node_once_and_may_remove_it),
        cmocka_unit_test(it_agrees_with_a_plain_array_whatever_is_done),
        cmocka_unit_test(growing_is_spread_over_inserts),
        cmocka_unit_test(removing_a_node_that_is_not_in_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
