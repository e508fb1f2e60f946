/* tools/alloccount/walk.c: see walk.h.
 *
 * Rules are kept in a table that only grows: an address is put in by compare-and-swap, its rule is
 * written after that and is not 0; who finds an address without a rule works it out for itself.
 * What is kept for code that was unloaded is not found any more, since the key holds how often that
 * happened. A full table costs speed alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "walk.h"

#include <unwind.h>

/* ---- by the unwinder ---- */

typedef struct walk {
    uintptr_t *callers;
    uint32_t depth, most, skip;
} walk;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *user)
{
    walk *w = user;
    uintptr_t ip = _Unwind_GetIP(context);

    if (ip == 0 || w->depth == w->most) {
        return _URC_END_OF_STACK;
    }
    if (w->skip > 0) {
        w->skip--;
    } else {
        w->callers[w->depth++] = ip;
    }
    return _URC_NO_REASON;
}

__attribute__((noinline)) uint32_t leat_walk_slowly(uintptr_t *callers, uint32_t most,
                                                    uint32_t skip)
{
    /* The first two are this function and the one that called it. */
    walk w = {.callers = callers, .most = most, .skip = skip + 2};

    _Unwind_Backtrace(step, &w);
    return w.depth;
}

#ifdef __x86_64__

#    include <dlfcn.h>
#    include <stdatomic.h>
#    include <stdbool.h>
#    include <stddef.h>
#    include <string.h>

#    include "unwind_table.h"

enum { RULES = 16384, LOOKS = 8 };

static struct {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t rule;
} rules[RULES];
static _Atomic uint64_t unloaded;

/* A rule as one word that is not 0. */
static uint64_t pack(leat_unwind_rule rule)
{
    return 1 | (uint64_t)rule.kind << 1 | (uint64_t)(uint16_t)rule.saved << 16 |
           (uint64_t)(uint32_t)rule.offset << 32;
}

static leat_unwind_rule unpack(uint64_t word)
{
    return (leat_unwind_rule){.kind = (leat_unwind_kind)(word >> 1 & 0x7f),
                              .saved = (int16_t)(word >> 16),
                              .offset = (int32_t)(word >> 32)};
}

static leat_unwind_rule rule_of(uintptr_t ip)
{
    uint64_t key = (uint64_t)ip ^ atomic_load_explicit(&unloaded, memory_order_relaxed) << 48;
    uint64_t at = (key * 0x9e3779b97f4a7c15u) >> 32;
    leat_unwind_rule rule;

    for (unsigned i = 0; i < LOOKS; i++, at++) {
        uint64_t seen = atomic_load_explicit(&rules[at % RULES].key, memory_order_relaxed);

        if (seen == key) {
            uint64_t word = atomic_load_explicit(&rules[at % RULES].rule, memory_order_relaxed);

            return word ? unpack(word) : leat_unwind_rule_of(ip);
        }
        if (seen == 0) {
            rule = leat_unwind_rule_of(ip);
            if (atomic_compare_exchange_strong_explicit(&rules[at % RULES].key, &seen, key,
                                                        memory_order_relaxed,
                                                        memory_order_relaxed)) {
                atomic_store_explicit(&rules[at % RULES].rule, pack(rule), memory_order_relaxed);
            }
            return rule;
        }
    }
    return leat_unwind_rule_of(ip);
}

static uintptr_t load(uintptr_t address)
{
    uintptr_t value;

    memcpy(&value, (const void *)address, sizeof value);
    return value;
}

__attribute__((noinline)) uint32_t leat_walk(uintptr_t *callers, uint32_t most, uint32_t skip)
{
    /* Reading its own frame gives this function a frame pointer: the saved one lies there, the
     * return address above it. */
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t fp = load(frame), sp = frame + 16;
    uint32_t depth = 0, left = skip;
    /* Where this function returns to is in its caller, which is not wanted either. */
    uintptr_t ip = load(frame + 8);
    bool first = true;

    while (ip != 0 && depth < most) {
        leat_unwind_rule rule = rule_of(ip);
        uintptr_t cfa;

        if (rule.kind == LEAT_UNWIND_OTHER) {
            return leat_walk_slowly(callers, most, skip + 1);
        }
        if (first) {
            first = false;
        } else if (left > 0) {
            left--;
        } else {
            callers[depth++] = ip;
        }
        if (rule.kind == LEAT_UNWIND_END) {
            break;
        }
        cfa = (rule.kind == LEAT_UNWIND_BY_SP ? sp : fp) + (uintptr_t)(intptr_t)rule.offset;
        if (cfa <= sp) {
            return leat_walk_slowly(callers, most, skip + 1);
        }
        fp = rule.saved ? load(cfa + (uintptr_t)(intptr_t)rule.saved) : fp;
        ip = load(cfa - 8);
        sp = cfa;
    }
    return depth;
}

void leat_walk_forget(void)
{
    atomic_fetch_add_explicit(&unloaded, 1, memory_order_relaxed);
}

#else

uint32_t leat_walk(uintptr_t *callers, uint32_t most, uint32_t skip)
{
    return leat_walk_slowly(callers, most, skip + 1);
}

void leat_walk_forget(void)
{
}

#endif
