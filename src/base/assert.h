/* base/assert.h: what must hold, said where it must hold.
 *
 * LEAT_ASSERT stands in every build: it guards what would corrupt memory or state, and is cheap.
 * LEAT_DCHECK stands in debug builds (LEAT_DEBUG) alone: for what is dear or on the hottest path.
 * Neither may have side effects. A compound condition is two assertions.
 *
 * Neither is for what a peer or a caller's input can cause: that is an error, not a bug.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_ASSERT_H
#define LEAT_BASE_ASSERT_H

#include <stddef.h>

#define LEAT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define LEAT_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What is seldom called: kept out of the functions that call it, and what leads to it out of the
 * way that is usually taken, so that this lies in few cache lines. */
#define LEAT_SELDOM      __attribute__((cold, noinline))

/* Called with the place and the text before the process aborts. It need not return; if it does,
 * leat_panic() aborts. The default prints one line to standard error. */
typedef void leat_panic_fn(const char *file, int line, const char *text);

/* Sets the hook for the whole process and returns the one before. NULL: the default. Not to be
 * raced: set it before other threads run. */
leat_panic_fn *leat_panic_set_hook(leat_panic_fn *hook);

_Noreturn void leat_panic(const char *file, int line, const char *text)
    __attribute__((cold, noinline));

#define LEAT_ASSERT(cond)  (LEAT_LIKELY(cond) ? (void)0 : leat_panic(__FILE__, __LINE__, #cond))

/* A place that is never reached. */
#define LEAT_UNREACHABLE() leat_panic(__FILE__, __LINE__, "unreachable")

#if defined(LEAT_DEBUG)
#    define LEAT_DCHECK(cond) LEAT_ASSERT(cond)
#else
#    define LEAT_DCHECK(cond) ((void)sizeof((cond) ? 1 : 0))
#endif

/* The structure that holds `member` at ptr. ptr is used once and must not be NULL. */
#define LEAT_CONTAINER_OF(ptr, type, member)                                                       \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define LEAT_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
