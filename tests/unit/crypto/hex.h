/* Bytes from hexadecimal text, for vectors out of RFCs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_HEX_H
#define LEAT_TEST_HEX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline unsigned hex_nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Reads text, with spaces anywhere between bytes, into out; returns the number of bytes. */
static inline size_t unhex(const char *text, uint8_t *out, size_t room)
{
    size_t n = 0;
    while (*text) {
        if (*text == ' ') {
            text++;
            continue;
        }
        assert_true(n < room);
        out[n++] = (uint8_t)(hex_nibble(text[0]) << 4 | hex_nibble(text[1]));
        text += 2;
    }
    return n;
}

/* The bytes are those of the text. */
static inline void assert_hex(const uint8_t *bytes, size_t len, const char *text)
{
    uint8_t want[2048];
    size_t n = unhex(text, want, sizeof want);
    assert_int_equal(len, n);
    assert_memory_equal(bytes, want, n);
}

#endif
