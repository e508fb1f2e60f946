/* Field sections that leat writes, read by nghttp3's decoder, which has a static table of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp3/nghttp3.h>

#include "h3/qpack.h"

enum { STATIC_ENTRIES = 99, NAME_MOST = 250, VALUE_MOST = 65536 }; /* nghttp3 takes no more */

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static bool equal(leat_span a, nghttp3_rcbuf *b)
{
    nghttp3_vec v = nghttp3_rcbuf_get_buf(b);

    return a.len == v.len && (a.len == 0 || memcmp(a.data, v.base, a.len) == 0);
}

/* What a decoder without a dynamic table makes of a section of one field. The caller releases name
 * and value. */
static void decode(const uint8_t *section, size_t len, nghttp3_qpack_nv *out)
{
    const nghttp3_mem *mem = nghttp3_mem_default();
    nghttp3_qpack_stream_context *stream;
    nghttp3_qpack_decoder *decoder;
    uint8_t flags = 0;
    bool seen = false;

    assert_int_equal(nghttp3_qpack_decoder_new(&decoder, 0, 0, mem), 0);
    assert_int_equal(nghttp3_qpack_stream_context_new(&stream, 0, mem), 0);
    while (!(flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL)) {
        nghttp3_qpack_nv nv;
        nghttp3_ssize n =
            nghttp3_qpack_decoder_read_request(decoder, stream, &nv, &flags, section, len, 1);

        assert_true(n >= 0);
        section += n;
        len -= (size_t)n;
        if (flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT) {
            assert_false(seen);
            seen = true;
            *out = nv;
        }
    }
    assert_true(seen);
    assert_int_equal(len, 0);
    nghttp3_qpack_stream_context_del(stream);
    nghttp3_qpack_decoder_del(decoder);
}

static size_t encode(const leat_http_field *field, uint8_t *room)
{
    uint8_t *from = leat_qpack_begin(room), *end = leat_qpack_field(from, field);

    assert_int_equal(from - room, LEAT_QPACK_BEGIN);
    assert_true((size_t)(end - from) <= field->name.len + field->value.len + LEAT_QPACK_FIELD);
    return (size_t)(end - room);
}

/* Encodes, and has it read back. Returns the first byte behind the section's beginning. */
static uint8_t there_and_back(leat_span name, leat_span value)
{
    leat_http_field field = {name, value};
    uint8_t *room = malloc(name.len + value.len + LEAT_QPACK_BEGIN + LEAT_QPACK_FIELD);
    nghttp3_qpack_nv nv;
    uint8_t first;

    assert_non_null(room);
    decode(room, encode(&field, room), &nv);
    first = room[LEAT_QPACK_BEGIN];
    free(room);
    assert_true(equal(name, nv.name));
    assert_true(equal(value, nv.value));
    nghttp3_rcbuf_decref(nv.name);
    nghttp3_rcbuf_decref(nv.value);
    return first;
}

/* An indexed field line says which entry: the same as the one that was looked for. */
static void every_entry_of_the_static_table_is_found(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STATIC_ENTRIES; i++) {
        uint8_t section[4] = {0, 0, (uint8_t)(0xc0 | (i < 63 ? i : 63)), (uint8_t)(i - 63)};
        uint8_t again[LEAT_QPACK_BEGIN + LEAT_QPACK_FIELD + 200];
        size_t len = i < 63 ? 3 : 4;
        nghttp3_qpack_nv nv;
        nghttp3_vec name, value;
        leat_http_field field;

        decode(section, len, &nv);
        name = nghttp3_rcbuf_get_buf(nv.name);
        value = nghttp3_rcbuf_get_buf(nv.value);
        field = (leat_http_field){{name.base, name.len}, {value.base, value.len}};
        assert_int_equal(encode(&field, again), len);
        assert_memory_equal(again, section, len);
        nghttp3_rcbuf_decref(nv.name);
        nghttp3_rcbuf_decref(nv.value);
    }
}

static void other_values_refer_to_the_name_and_other_names_are_spelt(void **state)
{
    (void)state;
    assert_int_equal(there_and_back(text(":status"), text("418")) & 0xf0, 0x50);
    assert_int_equal(there_and_back(text("content-length"), text("1024")), 0x54);
    assert_int_equal(there_and_back(text("user-agent"), text("leat")) & 0xf0, 0x50);
    assert_int_equal(there_and_back(text(":statuz"), text("200")) & 0xf8, 0x20);
    assert_int_equal(there_and_back(text("x"), text("")) & 0xf8, 0x20);
    assert_int_equal(
        there_and_back(text("a-name-that-is-longer-than-any-in-the-table"), text("v")) & 0xf8,
        0x20);
}

/* RFC 9204 s7.1.3: the N bit. */
static void secrets_may_not_be_put_into_tables(void **state)
{
    (void)state;
    assert_int_equal(there_and_back(text("authorization"), text("Basic eA==")) & 0xf0, 0x70);
    assert_int_equal(there_and_back(text("cookie"), text("id=1")) & 0xf0, 0x70);
    assert_int_equal(there_and_back(text("set-cookie"), text("id=1")) & 0xf0, 0x70);
    assert_int_equal(there_and_back(text("proxy-authorization"), text("x")) & 0xf8, 0x30);
}

static void lengths_of_every_size_come_back(void **state)
{
    uint8_t *bytes = malloc(VALUE_MOST);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'a', VALUE_MOST);
    for (size_t len = 1; len <= VALUE_MOST; len = len < 400 ? len + 1 : len * 2) {
        there_and_back(text("etag"), (leat_span){bytes, len});
        if (len <= NAME_MOST) {
            there_and_back((leat_span){bytes, len}, text("v"));
        }
    }
    there_and_back(text("etag"), (leat_span){bytes, VALUE_MOST});
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_of_the_static_table_is_found),
        cmocka_unit_test(other_values_refer_to_the_name_and_other_names_are_spelt),
        cmocka_unit_test(secrets_may_not_be_put_into_tables),
        cmocka_unit_test(lengths_of_every_size_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
