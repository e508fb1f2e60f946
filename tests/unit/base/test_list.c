/* Lists: order, removal from anywhere, moving whole lists, and the walker.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

#include "base/list.h"

typedef struct item {
    int value;
    leat_link link;
} item;

/* Asserts that the list holds just these values in this order, both ways. */
static void expect(const leat_list *list, const int *values, size_t n)
{
    size_t i = 0;

    leat_list_check(list);
    assert_int_equal(leat_list_count(list), n);
    for (leat_link *l = leat_list_first(list); l; l = leat_list_next(list, l)) {
        assert_int_equal(LEAT_CONTAINER_OF(l, item, link)->value, values[i]);
        i++;
    }
    assert_int_equal(i, n);
    if (n) {
        assert_int_equal(LEAT_CONTAINER_OF(leat_list_last(list), item, link)->value, values[n - 1]);
    }
}

static void make(item *items, int n)
{
    for (int i = 0; i < n; i++) {
        items[i].value = i;
        leat_link_init(&items[i].link);
    }
}

static void an_empty_list_has_nothing_to_give(void **state)
{
    leat_list list;

    (void)state;
    leat_list_init(&list);
    assert_true(leat_list_empty(&list));
    assert_null(leat_list_first(&list));
    assert_null(leat_list_last(&list));
    assert_null(leat_list_pop_front(&list));
    expect(&list, NULL, 0);
}

static void pushes_keep_their_order(void **state)
{
    item items[3];
    leat_list list;

    (void)state;
    make(items, 3);
    leat_list_init(&list);
    leat_list_push_back(&list, &items[1].link);
    leat_list_push_back(&list, &items[2].link);
    leat_list_push_front(&list, &items[0].link);
    expect(&list, (int[]){0, 1, 2}, 3);
}

static void removal_needs_no_list_and_leaves_the_link_unlisted(void **state)
{
    item items[4];
    leat_list list;

    (void)state;
    make(items, 4);
    leat_list_init(&list);
    for (int i = 0; i < 4; i++) {
        assert_false(leat_link_listed(&items[i].link));
        leat_list_push_back(&list, &items[i].link);
        assert_true(leat_link_listed(&items[i].link));
    }
    leat_link_remove(&items[1].link);
    assert_false(leat_link_listed(&items[1].link));
    expect(&list, (int[]){0, 2, 3}, 3);
    assert_ptr_equal(leat_list_pop_front(&list), &items[0].link);
    expect(&list, (int[]){2, 3}, 2);
    leat_link_remove(&items[3].link);
    leat_link_remove(&items[2].link);
    assert_true(leat_list_empty(&list));
}

static void check_broken_list(void)
{
    item items[3];
    leat_list list;

    make(items, 3);
    leat_list_init(&list);
    for (int i = 0; i < 3; i++) {
        leat_list_push_back(&list, &items[i].link);
    }
    items[1].link.prev = &items[2].link;
    leat_list_check(&list);
}

static void the_walker_sees_a_broken_link(void **state)
{
    (void)state;
    assert_true(panics(check_broken_list, "prev"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_has_nothing_to_give),
        cmocka_unit_test(pushes_keep_their_order),
        cmocka_unit_test(removal_needs_no_list_and_leaves_the_link_unlisted),
        cmocka_unit_test(the_walker_sees_a_broken_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
