/* wire_test.h: what the tests of wire/ share: bytes from hex, copies on the heap of exactly the
 * size (so that AddressSanitizer sees one byte read too many), and the seed of random tests. */
#ifndef LEAT_TEST_WIRE_H
#define LEAT_TEST_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <leat/base.h>

#include "base/prng.h"

/* Bytes on the heap; free(data) afterwards. */
typedef struct bytes {
    uint8_t *data;
    size_t len;
} bytes;

static inline bytes bytes_copy(const void *data, size_t len)
{
    bytes b = {malloc(len), len};

    assert_true(b.data != NULL || len == 0);
    if (len > 0) {
        memcpy(b.data, data, len);
    }
    return b;
}

/* From hexadecimal digits; spaces do not count. */
static inline bytes bytes_hex(const char *hex)
{
    uint8_t buf[4096];
    size_t digits = 0;

    for (; *hex; hex++) {
        const char *all = "0123456789abcdef";
        const char *at = strchr(all, *hex);

        if (*hex == ' ') {
            continue;
        }
        assert_non_null(at);
        assert_true(digits < 2 * sizeof buf);
        if (digits % 2 == 0) {
            buf[digits / 2] = 0;
        }
        buf[digits / 2] = (uint8_t)(buf[digits / 2] << 4 | (at - all));
        digits++;
    }
    assert_int_equal(digits % 2, 0);
    return bytes_copy(buf, digits / 2);
}

static inline void assert_bytes(const void *data, size_t len, const char *hex)
{
    bytes want = bytes_hex(hex);

    assert_int_equal(len, want.len);
    assert_memory_equal(data, want.data, len);
    free(want.data);
}

/* The given seed, or that of the environment's LEAT_TEST_SEED; says which. */
static inline uint64_t test_seed(uint64_t seed)
{
    const char *given = getenv("LEAT_TEST_SEED");

    seed = given ? strtoull(given, NULL, 0) : seed;
    print_message("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* A number of a random size, so that each length of varint comes up. */
static inline uint64_t random_varint(leat_prng *prng)
{
    return leat_prng_u64(prng) >> leat_prng_between(prng, 2, 63);
}

#endif
