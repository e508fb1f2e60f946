/* mem/budget.c: what of a budget is not inline: the check.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/budget.h"

void leat_budget_check(const leat_budget *b)
{
    size_t sum = 0;

    for (unsigned i = 0; i < LEAT_BUDGET_USERS; i++) {
        sum += b->by[i];
    }
    LEAT_ASSERT(sum == b->used);
    LEAT_ASSERT(b->used <= b->high);
}
