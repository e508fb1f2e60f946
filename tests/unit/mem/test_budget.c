/* Budgets: what fits is charged, what does not changes nothing, users sum up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

#include "mem/budget.h"

static void a_charge_that_does_not_fit_changes_nothing(void **state)
{
    leat_budget b;

    (void)state;
    leat_budget_init(&b, 100);
    assert_true(leat_budget_charge(&b, LEAT_BUDGET_STREAM_RECV, 60));
    assert_true(leat_budget_charge(&b, LEAT_BUDGET_SENT, 40));
    assert_false(leat_budget_charge(&b, LEAT_BUDGET_SENT, 1));
    assert_false(leat_budget_charge(&b, LEAT_BUDGET_SENT, SIZE_MAX));
    assert_int_equal(b.used, 100);
    assert_int_equal(b.by[LEAT_BUDGET_SENT], 40);
    assert_int_equal(b.refused, 2);
    leat_budget_refund(&b, LEAT_BUDGET_STREAM_RECV, 10);
    assert_true(leat_budget_charge(&b, LEAT_BUDGET_SENT, 10));
    leat_budget_check(&b);
    assert_int_equal(b.high, 100);
}

static void without_a_limit_everything_fits(void **state)
{
    leat_budget b;

    (void)state;
    leat_budget_init(&b, 0);
    assert_true(leat_budget_charge(&b, LEAT_BUDGET_OTHER, SIZE_MAX / 2));
    leat_budget_check(&b);
}

static void what_is_forced_may_pass_the_limit_and_blocks_the_rest(void **state)
{
    leat_budget b;

    (void)state;
    leat_budget_init(&b, 100);
    leat_budget_force(&b, LEAT_BUDGET_CRYPTO, 150);
    assert_false(leat_budget_fits(&b, 0));
    leat_budget_check(&b);
    leat_budget_refund(&b, LEAT_BUDGET_CRYPTO, 50);
    assert_true(leat_budget_fits(&b, 0));
    assert_false(leat_budget_fits(&b, 1));
    leat_budget_check(&b);
}

static void refund_too_much(void)
{
    leat_budget b;

    leat_budget_init(&b, 100);
    leat_budget_force(&b, LEAT_BUDGET_CRYPTO, 5);
    leat_budget_force(&b, LEAT_BUDGET_SENT, 5);
    leat_budget_refund(&b, LEAT_BUDGET_CRYPTO, 6);
}

static void refunding_more_than_was_charged_is_caught(void **state)
{
    (void)state;
    assert_true(panics(refund_too_much, "by[user]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_charge_that_does_not_fit_changes_nothing),
        cmocka_unit_test(without_a_limit_everything_fits),
        cmocka_unit_test(what_is_forced_may_pass_the_limit_and_blocks_the_rest),
        cmocka_unit_test(refunding_more_than_was_charged_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
