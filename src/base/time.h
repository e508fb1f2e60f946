/* base/time.h: arithmetic on leat_time that saturates at LEAT_TIME_NEVER and at 0.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_TIME_H
#define LEAT_BASE_TIME_H

#include <leat/base.h>

/* a + b; LEAT_TIME_NEVER where that overflows, so "never" plus anything is never. */
static inline leat_time leat_time_add(leat_time a, leat_time b)
{
    return b > LEAT_TIME_NEVER - a ? LEAT_TIME_NEVER : a + b;
}

/* How long after b a is; 0 if it is not. */
static inline leat_time leat_time_since(leat_time a, leat_time b)
{
    return a > b ? a - b : 0;
}

static inline leat_time leat_time_min(leat_time a, leat_time b)
{
    return a < b ? a : b;
}

static inline leat_time leat_time_max(leat_time a, leat_time b)
{
    return a > b ? a : b;
}

/* a * n, saturating. */
static inline leat_time leat_time_mul(leat_time a, uint64_t n)
{
    return n && a > LEAT_TIME_NEVER / n ? LEAT_TIME_NEVER : a * n;
}

/* a doubled n times, saturating: exponential back-off. */
static inline leat_time leat_time_backoff(leat_time a, unsigned n)
{
    return n >= 64 ? (a ? LEAT_TIME_NEVER : 0) : leat_time_mul(a, (uint64_t)1 << n);
}

#endif
