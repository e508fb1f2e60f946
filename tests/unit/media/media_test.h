/* media_test.h: what the tests of media/ share: memory for objects, bytes from hex on the heap in
 * exactly their size (so that AddressSanitizer sees one byte read too many), and seeds. */
#ifndef LEAT_TEST_MEDIA_H
#define LEAT_TEST_MEDIA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <leat/buf.h>

#include "base/prng.h"

#if defined(__SANITIZE_ADDRESS__) || defined(LEAT_DEBUG)
#    define SLOW_BUILD 1
#else
#    define SLOW_BUILD 0
#endif

#define MS LEAT_MILLISECOND
#define US LEAT_MICROSECOND

static inline leat_mem *new_mem(void)
{
    leat_mem *mem;

    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    return mem;
}

/* Bytes on the heap; free(data) afterwards. */
typedef struct bytes {
    uint8_t *data;
    size_t len;
} bytes;

static inline bytes bytes_copy(const void *data, size_t len)
{
    bytes b = {malloc(len ? len : 1), len};

    assert_non_null(b.data);
    memcpy(b.data, data, len);
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
        buf[digits / 2] = (uint8_t)((digits % 2 ? buf[digits / 2] << 4 : 0) | (at - all));
        digits++;
    }
    assert_int_equal(digits % 2, 0);
    return bytes_copy(buf, digits / 2);
}

static inline leat_span span_of(bytes b)
{
    return (leat_span){b.data, b.len};
}

static inline void assert_bytes(const void *data, size_t len, const char *hex)
{
    bytes want = bytes_hex(hex);

    assert_int_equal(len, want.len);
    assert_memory_equal(data, want.data, len);
    free(want.data);
}

static inline void assert_text(leat_span s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.data, text, s.len);
}

/* Seeds of a random test: the one of the environment's LEAT_TEST_SEED, or `count` from 1 on. A test
 * that fails says which it was at. */
typedef struct seeds {
    uint64_t next, last;
} seeds;

static inline seeds seeds_start(uint64_t count)
{
    const char *given = getenv("LEAT_TEST_SEED");
    uint64_t one = given ? strtoull(given, NULL, 0) : 0;

    return given ? (seeds){one, one} : (seeds){1, count};
}

#define assert_seed(cond, seed)                                                                    \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            print_error("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)(seed));          \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)

#endif
