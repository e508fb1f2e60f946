/* What the tests of recovery/ share: cmocka's headers, milliseconds, a memory, and seeds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECOVERY_FIXTURE_H
#define RECOVERY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "mem/mem.h"

#define MS LEAT_MILLISECOND

static inline leat_mem *fixture_mem(void)
{
    leat_mem *mem = NULL;

    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    return mem;
}

/* LEAT_TEST_SEED replays one seed; otherwise `usual`. Says which, so that a failure can be
 * replayed. */
static inline uint64_t fixture_seed(const char *what, uint64_t usual)
{
    const char *text = getenv("LEAT_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : usual;

    print_message("%s: LEAT_TEST_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

#endif
