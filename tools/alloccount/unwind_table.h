/* tools/alloccount/unwind_table.h: what .eh_frame says of one return address on x86-64, as far as
 * it can be said in two numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ALLOC_UNWIND_TABLE_H
#define LEAT_ALLOC_UNWIND_TABLE_H

#include <stdint.h>

typedef enum leat_unwind_kind {
    LEAT_UNWIND_OTHER, /* more than this can say: ask the unwinder */
    LEAT_UNWIND_BY_SP, /* the caller's frame (CFA) begins at rsp + offset */
    LEAT_UNWIND_BY_FP, /* at rbp + offset */
    LEAT_UNWIND_END    /* nobody called it, or there is no table */
} leat_unwind_kind;

typedef struct leat_unwind_rule {
    leat_unwind_kind kind;
    int16_t saved; /* the caller's rbp lies at CFA + saved; 0: it is in rbp still */
    int32_t offset;
} leat_unwind_rule;

/* The return address itself lies at CFA - 8 wherever the kind is BY_SP or BY_FP. Reads the tables
 * of the module that `ip` (a return address) is in. */
leat_unwind_rule leat_unwind_rule_of(uintptr_t ip);

#endif
