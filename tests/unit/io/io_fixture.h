/* tests/unit/io/io_fixture.h: what the tests of io/ have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_IO_FIXTURE_H
#define LEAT_TESTS_IO_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <leat/loop.h>

static inline leat_addr parse_addr(const char *text)
{
    leat_addr addr;
    assert_int_equal(leat_addr_parse(text, &addr), LEAT_OK);
    return addr;
}

static inline void assert_same_addr(const leat_addr *a, const leat_addr *b)
{
    char x[LEAT_ADDR_TEXT_MAX], y[LEAT_ADDR_TEXT_MAX];
    assert_string_equal(leat_addr_format(a, x), leat_addr_format(b, y));
}

#endif
