/* mem/budget.c: what of a budget is not inline: names, and the check.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/budget.h"

const char *leat_budget_user_name(leat_budget_user user)
{
#define USER_NAME(name, text, what) text,
    static const char *const names[] = {LEAT_BUDGET_LIST(USER_NAME)};
#undef USER_NAME

    return (unsigned)user < LEAT_COUNT_OF(names) ? names[user] : "?";
}

void leat_budget_check(const leat_budget *b)
{
    size_t sum = 0;

    for (unsigned i = 0; i < LEAT_BUDGET_USERS; i++) {
        sum += b->by[i];
    }
    LEAT_ASSERT(sum == b->used);
    LEAT_ASSERT(b->used <= b->high);
}
