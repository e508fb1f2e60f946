/* mem/guard.h: how debug builds catch misuse of memory.
 *
 * LEAT_MEM_GUARD is 1 in debug builds and under AddressSanitizer. Then everything taken ends in a
 * canary, everything given back is filled with poison and checked when it is used again, and every
 * give and release is checked against what is handed out. Under AddressSanitizer what is not handed
 * out is poisoned for it too, so that a stray read stops at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_GUARD_H
#define LEAT_MEM_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#    define LEAT_MEM_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define LEAT_MEM_ASAN 1
#    endif
#endif
#if !defined(LEAT_MEM_ASAN)
#    define LEAT_MEM_ASAN 0
#endif

#if defined(LEAT_DEBUG) || LEAT_MEM_ASAN
#    define LEAT_MEM_GUARD 1
#else
#    define LEAT_MEM_GUARD 0
#endif

#define LEAT_GUARD_BYTES  16u   /* the canary after each thing taken */
#define LEAT_GUARD_CANARY 0xcbu /* what it is made of */
#define LEAT_GUARD_POISON 0xddu /* what is given back is filled with */
#define LEAT_GUARD_FRESH  0xa5u /* what is handed out is filled with: undefined means undefined */

#if LEAT_MEM_ASAN
#    include <sanitizer/asan_interface.h>
#endif

static inline void leat_guard_hide(const void *p, size_t n)
{
#if LEAT_MEM_ASAN
    __asan_poison_memory_region(p, n);
#else
    (void)p;
    (void)n;
#endif
}

static inline void leat_guard_show(const void *p, size_t n)
{
#if LEAT_MEM_ASAN
    __asan_unpoison_memory_region(p, n);
#else
    (void)p;
    (void)n;
#endif
}

/* True if all n bytes are `byte`. They must be shown. */
static inline int leat_guard_all(const void *p, size_t n, uint8_t byte)
{
    const uint8_t *b = (const uint8_t *)p;

    /* The first is right and each is as the one before. */
    return n == 0 || (b[0] == byte && memcmp(b, b + 1, n - 1) == 0);
}

#endif
