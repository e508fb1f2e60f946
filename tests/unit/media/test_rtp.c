/* leat/rtp.h: RTP packets, read and written. */
#include "media_test.h"

#include <leat/rtp.h>

static leat_err parse_hex(const char *hex)
{
    bytes b = bytes_hex(hex);
    leat_rtp_packet p;
    leat_err err = leat_rtp_parse(span_of(b), &p);

    assert_true(err == LEAT_OK || p.header_len == 0);
    free(b.data);
    return err;
}

static void a_plain_packet_is_read(void **state)
{
    bytes b = bytes_hex("80e0fffe 01020304 0a0b0c0d 112233");
    leat_rtp_packet p;

    (void)state;
    assert_int_equal(leat_rtp_parse(span_of(b), &p), LEAT_OK);
    assert_true(p.marker);
    assert_int_equal(p.payload_type, 0x60);
    assert_int_equal(p.seq, 0xfffe);
    assert_int_equal(p.timestamp, 0x01020304);
    assert_int_equal(p.ssrc, 0x0a0b0c0d);
    assert_int_equal(p.header_len, 12);
    assert_ptr_equal(p.payload.data, b.data + 12);
    assert_int_equal(p.payload.len, 3);
    assert_false(p.has_ext);
    assert_int_equal(leat_rtp_csrc(&p, 0), 0);
    free(b.data);
}

/* SRTP encrypts the count of the padding. */
static void a_header_is_read_whatever_is_encrypted_behind_it(void **state)
{
    static const char *const ends[] = {"00", "ff", "11ff", ""};
    leat_rtp_packet p;

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char hex[64];
        bytes b;

        snprintf(hex, sizeof hex, "a0e0fffe 01020304 0a0b0c0d %s", ends[i]);
        b = bytes_hex(hex);
        assert_int_equal(leat_rtp_parse(span_of(b), &p), LEAT_ERR_MALFORMED);
        assert_int_equal(leat_rtp_parse_header(span_of(b), &p), LEAT_OK);
        assert_int_equal(p.ssrc, 0x0a0b0c0d);
        assert_int_equal(p.payload.len, strlen(ends[i]) / 2);
        assert_int_equal(p.padding, 0);
        assert_int_equal(leat_rtp_parse_header((leat_span){b.data, 11}, &p), LEAT_ERR_TRUNCATED);
        free(b.data);
    }
}

static void csrcs_extension_and_padding_are_read(void **state)
{
    bytes b = bytes_hex("b260 0001 00000002 00000003 0000000a 0000000b"
                        "bede0002 10aa 2201020300 00"
                        "ff 000003");
    leat_rtp_packet p;
    leat_span ext;

    (void)state;
    assert_int_equal(leat_rtp_parse(span_of(b), &p), LEAT_OK);
    assert_int_equal(p.csrc_count, 2);
    assert_int_equal(leat_rtp_csrc(&p, 0), 10);
    assert_int_equal(leat_rtp_csrc(&p, 1), 11);
    assert_int_equal(leat_rtp_csrc(&p, 2), 0);
    assert_int_equal(p.padding, 3);
    assert_int_equal(p.payload.len, 1);
    assert_int_equal(p.payload.data[0], 0xff);
    assert_int_equal(p.header_len, 32);
    assert_true(leat_rtp_ext_find(&p, 1, &ext));
    assert_bytes(ext.data, ext.len, "aa");
    assert_true(leat_rtp_ext_find(&p, 2, &ext));
    assert_bytes(ext.data, ext.len, "010203");
    assert_false(leat_rtp_ext_find(&p, 3, &ext));
    assert_int_equal(ext.len, 0);
    free(b.data);
}

/* CASES: an RTP packet that consists of a header and an extension only is valid. */
static void a_header_and_an_extension_alone_are_a_packet(void **state)
{
    bytes b = bytes_hex("9060 0001 00000002 00000003 bede0001 51002a00");
    leat_rtp_packet p;
    leat_span ext;

    (void)state;
    assert_int_equal(leat_rtp_parse(span_of(b), &p), LEAT_OK);
    assert_int_equal(p.payload.len, 0);
    assert_true(leat_rtp_ext_find(&p, 5, &ext));
    assert_bytes(ext.data, ext.len, "002a");
    free(b.data);
    assert_int_equal(parse_hex("8060 0001 00000002 00000003"), LEAT_OK);
    assert_int_equal(parse_hex("9060 0001 00000002 00000003 bede0000"), LEAT_OK);
    assert_int_equal(parse_hex("a060 0001 00000002 00000003 00000004"), LEAT_OK); /* padding only */
}

static void what_is_cut_short_or_wrong_is_refused(void **state)
{
    (void)state;
    assert_int_equal(parse_hex(""), LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("8060 0001 00000002 000000"), LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("8160 0001 00000002 00000003 000000"), LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("9060 0001 00000002 00000003 bede00"), LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("9060 0001 00000002 00000003 bede0001 000000"), LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("9060 0001 00000002 00000003 bedeffff 00000000"),
                     LEAT_ERR_TRUNCATED);
    assert_int_equal(parse_hex("4060 0001 00000002 00000003"), LEAT_ERR_MALFORMED);
    assert_int_equal(parse_hex("a060 0001 00000002 00000003"), LEAT_ERR_MALFORMED);
    assert_int_equal(parse_hex("a060 0001 00000002 00000003 aabb00"), LEAT_ERR_MALFORMED);
    assert_int_equal(parse_hex("a060 0001 00000002 00000003 aabb04"), LEAT_ERR_MALFORMED);
}

/* The elements of an extension as text: "id:len id:len", and '!' when it was bad. */
static void assert_elements(const char *hex, const char *want)
{
    bytes b = bytes_hex(hex);
    char got[200] = "";
    leat_rtp_packet p;
    leat_rtp_ext_iter iter;
    leat_rtp_ext e;

    assert_int_equal(leat_rtp_parse(span_of(b), &p), LEAT_OK);
    leat_rtp_ext_begin(&iter, &p);
    while (leat_rtp_ext_next(&iter, &e)) {
        sprintf(got + strlen(got), "%u:%zu ", e.id, e.data.len);
    }
    assert_false(leat_rtp_ext_next(&iter, &e));
    strcat(got, iter.bad ? "!" : "");
    assert_string_equal(got, want);
    free(b.data);
}

#define HEAD "9060 0001 00000002 00000003 "

static void elements_of_both_forms_are_read(void **state)
{
    (void)state;
    assert_elements(HEAD "bede0000", "");
    assert_elements(HEAD "bede0001 00000000", "");
    assert_elements(HEAD "bede0002 1001 00 00 e1aabb 00", "1:1 14:2 ");
    assert_elements(HEAD "bede0005 1f000102030405060708090a0b0c0d0e0f 000000", "1:16 ");
    assert_elements(HEAD "10000002 0100 0201aa 00 ff00", "1:0 2:1 255:0 ");
    assert_elements(HEAD "100f0001 0102aabb", "1:2 "); /* appbits */
    assert_elements(HEAD "abcd0001 1001aabb", "");     /* neither form */
}

static void a_list_ends_where_the_rfc_says(void **state)
{
    (void)state;
    assert_elements(HEAD "bede0002 10aa f0bb 20cc0000", "1:1 ");  /* ID 15 */
    assert_elements(HEAD "bede0002 10aa 01bb 20cc0000", "1:1 !"); /* ID 0 with a length */
    assert_elements(HEAD "bede0001 10aa 27bb", "1:1 !");
    assert_elements(HEAD "bede0001 10aa00 20", "1:1 !");
    assert_elements(HEAD "10000001 01 00 00 02", "1:0 !");
    assert_elements(HEAD "10000001 0102aa 00", "1:2 ");
    assert_elements(HEAD "10000001 0103aabb", "!");
}

static void rtcp_is_told_from_rtp(void **state)
{
    uint8_t b[2] = {0x80, 0};

    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        b[1] = (uint8_t)type;
        assert_int_equal(leat_rtp_is_rtcp((leat_span){b, 2}), type >= 192 && type < 224);
    }
    assert_false(leat_rtp_is_rtcp((leat_span){b, 1}));
    b[0] = 0x40;
    b[1] = 200;
    assert_false(leat_rtp_is_rtcp((leat_span){b, 2}));
}

static void a_header_is_written_byte_by_byte(void **state)
{
    static const uint8_t two[] = {0, 0x2a}, three[] = {1, 2, 3};
    const uint32_t csrcs[] = {10, 11};
    leat_rtp_ext exts[] = {{5, {two, 2}}, {14, {three, 3}}};
    leat_rtp_header h = {.ssrc = 3, .timestamp = 2, .seq = 1, .payload_type = 96, .marker = true};
    uint8_t out[64];
    size_t len;

    (void)state;
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_OK);
    assert_bytes(out, len, "80e0 0001 00000002 00000003");
    h.csrc_count = 2;
    h.csrcs = csrcs;
    h.ext_count = 2;
    h.exts = exts;
    h.padding = true;
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_OK);
    assert_bytes(out, len,
                 "b2e0 0001 00000002 00000003 0000000a 0000000b bede0002 51002a e2010203 00");
    exts[1].id = 15; /* no ID of the one-byte form */
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_OK);
    assert_bytes(out, len,
                 "b2e0 0001 00000002 00000003 0000000a 0000000b 10000003 0502002a 0f03010203 "
                 "000000");
    exts[1] = (leat_rtp_ext){2, {NULL, 0}}; /* no length of it either */
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_OK);
    assert_int_equal(leat_rtp_header_len(&h), len);
    assert_bytes(out + 20, len - 20, "10000002 0502002a 0200 0000");
    leat_rtp_write_padding(out, 5);
    assert_bytes(out, 5, "0000000005");
    leat_rtp_write_padding(out, 1);
    assert_bytes(out, 1, "01");
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
    static const uint8_t data[300];
    leat_rtp_ext ext = {0, {data, 1}};
    leat_rtp_header h = {.payload_type = 128};
    uint8_t out[16] = {0xee};
    size_t len = 9;

    (void)state;
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_ERR_INVALID);
    h.payload_type = 0;
    h.csrc_count = 16;
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_ERR_INVALID);
    h.csrc_count = 0;
    h.ext_count = 1;
    h.exts = &ext;
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_ERR_INVALID);
    ext = (leat_rtp_ext){1, {data, 256}};
    assert_int_equal(leat_rtp_write(&h, out, sizeof out, &len), LEAT_ERR_INVALID);
    ext.data.len = 1;
    assert_int_equal(leat_rtp_write(&h, out, 19, &len), LEAT_ERR_TRUNCATED);
    assert_int_equal(len, 0);
    assert_int_equal(out[0], 0xee);
    h.ext_count = 0;
    assert_int_equal(leat_rtp_write(&h, out, 11, &len), LEAT_ERR_TRUNCATED);
    assert_int_equal(leat_rtp_write(&h, out, 12, &len), LEAT_OK);
}

static void random_header(leat_prng *prng, leat_rtp_header *h, uint32_t *csrcs, leat_rtp_ext *exts,
                          const uint8_t *data)
{
    uint64_t longest = leat_prng_below(prng, 2) ? 16 : 255;

    *h = (leat_rtp_header){.ssrc = (uint32_t)leat_prng_u64(prng),
                           .timestamp = (uint32_t)leat_prng_u64(prng),
                           .seq = (uint16_t)leat_prng_u64(prng),
                           .payload_type = (uint8_t)leat_prng_below(prng, 128),
                           .marker = leat_prng_below(prng, 2),
                           .padding = leat_prng_below(prng, 2),
                           .csrc_count = (uint8_t)leat_prng_below(prng, 16),
                           .csrcs = csrcs,
                           .ext_count = (uint8_t)leat_prng_below(prng, 6),
                           .exts = exts};
    for (unsigned i = 0; i < 15; i++) {
        csrcs[i] = (uint32_t)leat_prng_u64(prng);
    }
    for (unsigned i = 0; i < 6; i++) {
        exts[i].id = (uint8_t)leat_prng_between(prng, 1, longest == 16 ? 14 : 255);
        exts[i].data = (leat_span){data, (size_t)leat_prng_between(prng, 1, longest)};
    }
}

static void what_is_written_reads_the_same(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 5000 : 100000);
    uint8_t data[256], out[4096];

    (void)state;
    for (; s.next <= s.last; s.next++) {
        leat_rtp_header h;
        uint32_t csrcs[15];
        leat_rtp_ext exts[6], e;
        leat_rtp_packet p;
        leat_rtp_ext_iter iter;
        leat_prng prng;
        bytes exact;
        size_t len, payload, padding;

        leat_prng_seed(&prng, s.next);
        leat_prng_fill(&prng, data, sizeof data);
        random_header(&prng, &h, csrcs, exts, data);
        assert_seed(leat_rtp_write(&h, out, sizeof out, &len) == LEAT_OK, s.next);
        payload = (size_t)leat_prng_below(&prng, 100);
        padding = h.padding ? (size_t)leat_prng_between(&prng, 1, 255) : 0;
        if (padding) {
            leat_rtp_write_padding(out + len + payload, (uint8_t)padding);
        }
        exact = bytes_copy(out, len + payload + padding);
        assert_seed(leat_rtp_parse(span_of(exact), &p) == LEAT_OK, s.next);
        assert_seed(p.ssrc == h.ssrc && p.timestamp == h.timestamp && p.seq == h.seq, s.next);
        assert_seed(p.marker == h.marker && p.payload_type == h.payload_type, s.next);
        assert_seed(p.payload.len == payload && p.padding == padding, s.next);
        assert_seed(p.header_len == len && p.csrc_count == h.csrc_count, s.next);
        for (unsigned i = 0; i < h.csrc_count; i++) {
            assert_seed(leat_rtp_csrc(&p, i) == csrcs[i], s.next);
        }
        leat_rtp_ext_begin(&iter, &p);
        for (unsigned i = 0; i < h.ext_count; i++) {
            assert_seed(leat_rtp_ext_next(&iter, &e) && e.id == exts[i].id, s.next);
            assert_seed(e.data.len == exts[i].data.len, s.next);
            assert_seed(memcmp(e.data.data, data, e.data.len) == 0, s.next);
        }
        assert_seed(!leat_rtp_ext_next(&iter, &e) && !iter.bad, s.next);
        free(exact.data);
    }
}

static void numbers_unwrap_to_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(leat_seq_unwrap(65536, 0), 65536);
    assert_int_equal(leat_seq_unwrap(65536, 65535), 65535);
    assert_int_equal(leat_seq_unwrap(65535, 0), 65536);
    assert_int_equal(leat_seq_unwrap(100000, (uint16_t)(100000 + 32767)), 132767);
    assert_int_equal(leat_seq_unwrap(100000, (uint16_t)(100000 - 32768)), 67232);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_packet_is_read),
        cmocka_unit_test(a_header_is_read_whatever_is_encrypted_behind_it),
        cmocka_unit_test(csrcs_extension_and_padding_are_read),
        cmocka_unit_test(a_header_and_an_extension_alone_are_a_packet),
        cmocka_unit_test(what_is_cut_short_or_wrong_is_refused),
        cmocka_unit_test(elements_of_both_forms_are_read),
        cmocka_unit_test(a_list_ends_where_the_rfc_says),
        cmocka_unit_test(rtcp_is_told_from_rtp),
        cmocka_unit_test(a_header_is_written_byte_by_byte),
        cmocka_unit_test(what_cannot_be_written_leaves_nothing),
        cmocka_unit_test(what_is_written_reads_the_same),
        cmocka_unit_test(numbers_unwrap_to_the_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
