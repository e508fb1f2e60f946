/* base/wipe.h: what must not be found in memory afterwards.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_WIPE_H
#define LEAT_BASE_WIPE_H

#include <stddef.h>
#include <string.h>

/* Overwrites n bytes with zeros, also where the compiler sees that nobody reads them afterwards. */
static inline void leat_wipe(void *data, size_t n)
{
    memset(data, 0, n);
    __asm__ __volatile__("" : : "r"(data) : "memory");
}

#endif
