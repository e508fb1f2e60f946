/* tests/reproduce/test_queue.c: what the old ways of the queue have in common with leat's: order,
 * whatever is done, and amortised growth. The tests are those of tests/unit/mem/test_queue.c that
 * do not ask who keeps which storage.
 *
 * SPDX-License-Identifier: MIT
 */
int leat_all_queue_tests(void);
#define main leat_all_queue_tests
#include "../unit/mem/test_queue.c"
#undef main

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pushes_grow_the_storage_rarely),
        TEST(elements_are_found_by_their_place),
        TEST(order_is_kept_whatever_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
