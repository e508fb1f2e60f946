/* Packet headers: the examples of RFC 9001 appendix A, packet numbers, all forms both ways, and
 * what must be dropped. */
#include "wire_test.h"

#include "wire/header.h"

/* RFC 9001 §A.2 and §A.3, protected: headers of the client's and the server's first Initial. */
static const char client_initial[] = "c000000001088394c8f03e5157080000449e7b9aec34";
static const char server_initial[] = "cf000000010008f067a5502a4262b5004075c0d9";

/* A datagram that begins with these bytes and goes on with `more` more. */
static bytes datagram(const char *hex, size_t more)
{
    bytes head = bytes_hex(hex);
    bytes b = {calloc(1, head.len + more), head.len + more};

    assert_non_null(b.data);
    memcpy(b.data, head.data, head.len);
    free(head.data);
    return b;
}

static leat_err parse(bytes b, leat_header *h)
{
    return leat_header_parse(b.data, b.len, 8, h);
}

static void assert_span(leat_span span, const char *hex)
{
    assert_bytes(span.data, span.len, hex);
}

static void the_rfcs_client_initial_is_read(void **state)
{
    bytes b = datagram(client_initial, 1182 - 4);
    leat_header h;

    (void)state;
    assert_int_equal(parse(b, &h), LEAT_OK);
    assert_int_equal(h.type, LEAT_PACKET_INITIAL);
    assert_int_equal(h.version, LEAT_VERSION_1);
    assert_span(h.dcid, "8394c8f03e515708");
    assert_int_equal(h.scid.len, 0);
    assert_int_equal(h.token.len, 0);
    assert_int_equal(h.pn_offset, 18);
    assert_int_equal(h.packet_len, 1200);
    assert_int_equal(h.first, 0xc0);
    assert_true(leat_header_is_protected(&h));
    assert_true(leat_header_fixed_bit(&h));
    free(b.data);
}

static void the_rfcs_server_initial_is_read_with_what_follows_left_over(void **state)
{
    bytes b = datagram(server_initial, 117 - 2 + 50);
    leat_header h;

    (void)state;
    assert_int_equal(parse(b, &h), LEAT_OK);
    assert_int_equal(h.type, LEAT_PACKET_INITIAL);
    assert_int_equal(h.dcid.len, 0);
    assert_span(h.scid, "f067a5502a4262b5");
    assert_int_equal(h.pn_offset, 18);
    assert_int_equal(h.packet_len, 135);
    assert_int_equal(b.len - h.packet_len, 50);
    free(b.data);
}

/* §A.2 and §A.3 give the headers before protection too. */
static void the_rfcs_initial_headers_are_written(void **state)
{
    bytes dcid = bytes_hex("8394c8f03e515708");
    bytes scid = bytes_hex("f067a5502a4262b5");
    leat_long_packet p;
    uint8_t out[64];
    leat_cid client, server, none;
    leat_writer w;

    (void)state;
    assert_true(leat_cid_set(&client, dcid.data, dcid.len));
    assert_true(leat_cid_set(&server, scid.data, scid.len));
    assert_true(leat_cid_set(&none, NULL, 0));
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_long(&w, &p, LEAT_PACKET_INITIAL, LEAT_VERSION_1, &client, &none,
                                       (leat_span){0}, 2, 4));
    leat_header_finish_long(&p, 1162 + LEAT_AEAD_TAG);
    assert_bytes(out, leat_writer_len(&w), "c300000001088394c8f03e5157080000449e00000002");
    assert_ptr_equal(p.start, out);
    assert_ptr_equal(p.pn, out + 18);
    assert_int_equal(leat_writer_len(&w), leat_header_long_size(LEAT_PACKET_INITIAL, 8, 0, 0, 4));

    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_long(&w, &p, LEAT_PACKET_INITIAL, LEAT_VERSION_1, &none, &server,
                                       (leat_span){0}, 1, 2));
    leat_header_finish_long(&p, 99 + LEAT_AEAD_TAG);
    assert_bytes(out, leat_writer_len(&w), "c1000000010008f067a5502a4262b50040750001");
    free(dcid.data);
    free(scid.data);
}

/* §A.4, and its bytes written again. */
static void the_rfcs_retry_is_read_and_written(void **state)
{
    bytes b = bytes_hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    leat_cid none = {0};
    leat_cid scid;
    leat_header h;
    uint8_t out[64];
    leat_writer w;

    (void)state;
    assert_int_equal(parse(b, &h), LEAT_OK);
    assert_int_equal(h.type, LEAT_PACKET_RETRY);
    assert_span(h.scid, "f067a5502a4262b5");
    assert_int_equal(h.token.len, 5);
    assert_memory_equal(h.token.data, "token", 5);
    assert_span(h.rest, "04a265ba2eff4d829058fb3f0f2496ba");
    assert_int_equal(h.packet_len, b.len);
    assert_false(leat_header_is_protected(&h));

    leat_cid_set(&scid, h.scid.data, h.scid.len);
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_retry(&w, LEAT_VERSION_1, &none, &scid, h.token, 0xff));
    assert_int_equal(leat_writer_len(&w), b.len - LEAT_RETRY_TAG);
    assert_memory_equal(out, b.data, leat_writer_len(&w));
    assert_int_equal(leat_header_retry_size(0, 8, 5), b.len);
    free(b.data);
}

/* §A.5: a short header without a connection ID, packet number 654360564 in three bytes. */
static void the_rfcs_short_header_is_read_and_written(void **state)
{
    bytes b = bytes_hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    leat_cid none = {0};
    leat_header h;
    uint8_t out[8];
    leat_writer w;

    (void)state;
    assert_int_equal(leat_header_parse(b.data, b.len, 0, &h), LEAT_OK);
    assert_int_equal(h.type, LEAT_PACKET_ONE_RTT);
    assert_int_equal(h.pn_offset, 1);
    assert_int_equal(h.packet_len, b.len);
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_short(&w, &none, false, false, 654360564, 3));
    assert_bytes(out, leat_writer_len(&w), "4200bff4");
    /* The mask of the example is aefefe7d03: a short header hides five bits. */
    assert_int_equal(out[0] ^ (0xae & leat_header_protected_bits(out[0])), 0x4c);
    assert_int_equal(leat_header_pn_len(0x42), 3);
    free(b.data);
}

static void short_headers_carry_spin_and_key_phase(void **state)
{
    leat_cid cid = {.len = 2, .data = {0xaa, 0xbb}};
    uint8_t out[16];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_short(&w, &cid, true, true, 0x1234567890, 4));
    assert_bytes(out, leat_writer_len(&w), "67 aabb 34567890");
    assert_int_equal(leat_writer_len(&w), leat_header_short_size(2, 4));
    assert_true(leat_header_spin(out[0]));
    assert_true(leat_header_key_phase(out[0]));
    assert_true(leat_header_reserved_clear(out[0]));
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_short(&w, &cid, false, false, 7, 1));
    assert_bytes(out, leat_writer_len(&w), "40 aabb 07");
    assert_false(leat_header_spin(out[0]));
    assert_false(leat_header_key_phase(out[0]));
}

static void reserved_bits_are_seen_in_either_form(void **state)
{
    (void)state;
    assert_false(leat_header_reserved_clear(0x40 | 0x08));
    assert_false(leat_header_reserved_clear(0x40 | 0x10));
    assert_true(leat_header_reserved_clear(0x40 | 0x20 | 0x07));
    assert_false(leat_header_reserved_clear(0xc0 | 0x04));
    assert_false(leat_header_reserved_clear(0xc0 | 0x08));
    assert_true(leat_header_reserved_clear(0xc0 | 0x33));
    assert_int_equal(leat_header_protected_bits(0xc0), 0x0f);
    assert_int_equal(leat_header_protected_bits(0x40), 0x1f);
}

/* ---- packet numbers ---- */

/* RFC 9000 §A.2: 0xabe8b3 acknowledged. */
static void packet_number_lengths_are_the_rfcs(void **state)
{
    (void)state;
    assert_int_equal(leat_pn_len(0xac5c02, 0xabe8b3 + 1), 2);
    assert_int_equal(leat_pn_len(0xace8fe, 0xabe8b3 + 1), 3);
    assert_int_equal(leat_pn_len(0, 0), 1);
    assert_int_equal(leat_pn_len(127, 0), 1);
    assert_int_equal(leat_pn_len(128, 0), 2);
    assert_int_equal(leat_pn_len(32767, 0), 2);
    assert_int_equal(leat_pn_len(32768, 0), 3);
    assert_int_equal(leat_pn_len((1 << 23) - 1, 0), 3);
    assert_int_equal(leat_pn_len(1 << 23, 0), 4);
    assert_int_equal(leat_pn_len(LEAT_HP_SAMPLE + 5000, 5000), 1);
}

/* §A.3: 0xa82f30ea was the largest. */
static void packet_numbers_decode_as_the_rfcs(void **state)
{
    static const uint8_t wire[] = {0x9b, 0x32};
    uint64_t top = (UINT64_C(1) << 62) - 1;

    (void)state;
    assert_int_equal(leat_header_pn_read(wire, 2), 0x9b32);
    assert_int_equal(leat_pn_decode(UINT64_C(0xa82f30ea) + 1, 0x9b32, 2), UINT64_C(0xa82f9b32));
    assert_int_equal(leat_pn_decode(0, 0, 1), 0);
    assert_int_equal(leat_pn_decode(0, 0xff, 1), 0xff); /* no number below 0 */
    assert_int_equal(leat_pn_decode(0x100, 0xff, 1), 0xff);
    assert_int_equal(leat_pn_decode(0x1ff, 0x00, 1), 0x200);
    assert_int_equal(leat_pn_decode(0x180, 0x00, 1),
                     0x200); /* half a window below: the one above */
    assert_int_equal(leat_pn_decode(0x17f, 0x00, 1), 0x100);
    assert_int_equal(leat_pn_decode(0x200, 0x81, 1), 0x181);
    assert_int_equal(leat_pn_decode(0x200, 0x80, 1), 0x280);
    assert_int_equal(leat_pn_decode(top, 0x00, 1), top - 0xff); /* none above 2^62 - 1 */
    assert_int_equal(leat_pn_decode(top, 0xff, 1), top);
}

/* What is sent in leat_pn_len() bytes is what a receiver decodes, whatever it has of what was sent
 * between the last acknowledged and this one. */
static void a_packet_number_survives_its_shortest_form(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(1));
    for (int i = 0; i < 100000; i++) {
        uint64_t acked_end = leat_prng_u64(&prng) >> leat_prng_between(&prng, 3, 63);
        uint64_t pn = acked_end + (leat_prng_u64(&prng) >> leat_prng_between(&prng, 34, 63));
        uint64_t expected = leat_prng_between(&prng, acked_end, pn + 100);
        size_t len = leat_pn_len(pn, acked_end);
        uint64_t sent = pn & ((UINT64_C(1) << (8 * len)) - 1);

        if (len < 4 || pn - acked_end < UINT64_C(1) << 30) {
            assert_int_equal(leat_pn_decode(expected, sent, len), pn);
        }
    }
}

/* ---- forms ---- */

static const leat_packet_type long_types[] = {LEAT_PACKET_INITIAL, LEAT_PACKET_ZERO_RTT,
                                              LEAT_PACKET_HANDSHAKE};

static void every_long_packet_comes_back_in_both_versions(void **state)
{
    static const uint32_t versions[] = {LEAT_VERSION_1, LEAT_VERSION_2};
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(2));
    for (int i = 0; i < 20000; i++) {
        leat_packet_type type = long_types[leat_prng_below(&prng, 3)];
        uint32_t version = versions[leat_prng_below(&prng, 2)];
        size_t pn_len = leat_prng_between(&prng, 1, 4);
        size_t sealed = leat_prng_between(&prng, 20 - pn_len, 1200);
        size_t token_len = leat_prng_below(&prng, 100);
        uint64_t pn = leat_prng_u64(&prng) >> 2;
        uint8_t token[100];
        uint8_t out[1500];
        leat_cid dcid, scid;
        leat_long_packet p;
        leat_header h;
        leat_writer w;
        bytes b;

        leat_prng_fill(&prng, token, sizeof token);
        leat_prng_fill(&prng, out, sizeof out);
        leat_cid_set(&dcid, out, leat_prng_between(&prng, 0, 20));
        leat_cid_set(&scid, out + 20, leat_prng_between(&prng, 0, 20));
        leat_writer_init(&w, out, sizeof out);
        assert_true(leat_header_write_long(&w, &p, type, version, &dcid, &scid,
                                           (leat_span){token, token_len}, pn, pn_len));
        assert_int_equal(leat_writer_len(&w),
                         leat_header_long_size(type, dcid.len, scid.len, token_len, pn_len));
        leat_header_finish_long(&p, sealed);
        b = bytes_copy(out, leat_writer_len(&w) + sealed);
        assert_int_equal(parse(b, &h), LEAT_OK);
        assert_int_equal(h.type, type);
        assert_int_equal(h.version, version);
        assert_true(leat_cid_equal_span(&dcid, h.dcid));
        assert_true(leat_cid_equal_span(&scid, h.scid));
        assert_int_equal(h.token.len, type == LEAT_PACKET_INITIAL ? token_len : 0);
        assert_memory_equal(h.token.data ? h.token.data : token, token, h.token.len);
        assert_int_equal(h.packet_len, b.len);
        assert_int_equal(h.pn_offset, (size_t)(p.pn - p.start));
        assert_int_equal(leat_header_pn_len(h.first), pn_len);
        assert_int_equal(leat_header_pn_read(b.data + h.pn_offset, pn_len),
                         pn & ((UINT64_C(1) << (8 * pn_len)) - 1));
        free(b.data);
    }
}

/* RFC 9369 §3.2: the types' bits are 1, 2, 3 and, for Retry, 0. */
static void version_2_turns_the_types(void **state)
{
    leat_packet_type t;

    (void)state;
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_2, LEAT_PACKET_INITIAL), 1);
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_2, LEAT_PACKET_ZERO_RTT), 2);
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_2, LEAT_PACKET_HANDSHAKE), 3);
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_2, LEAT_PACKET_RETRY), 0);
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_1, LEAT_PACKET_INITIAL), 0);
    assert_int_equal(leat_version_type_bits(LEAT_VERSION_1, LEAT_PACKET_RETRY), 3);
    for (t = LEAT_PACKET_INITIAL; t <= LEAT_PACKET_RETRY; t++) {
        if (t != LEAT_PACKET_ONE_RTT) {
            assert_int_equal(
                leat_version_packet_type(LEAT_VERSION_1, leat_version_type_bits(LEAT_VERSION_1, t)),
                t);
            assert_int_equal(
                leat_version_packet_type(LEAT_VERSION_2, leat_version_type_bits(LEAT_VERSION_2, t)),
                t);
        }
    }
}

static void reserved_versions_are_known_and_made(void **state)
{
    (void)state;
    assert_true(leat_version_reserved(0x1a2a3a4a));
    assert_false(leat_version_reserved(0x1a2a3a4b));
    assert_false(leat_version_reserved(LEAT_VERSION_1));
    assert_int_equal(leat_version_grease(0x12345678), 0x1a3a5a7a);
    assert_true(leat_version_known(LEAT_VERSION_2));
    assert_false(leat_version_known(0x709a50c4)); /* a draft's number for version 2 */
}

/* RFC 8999: an unknown version is answered, and its long connection IDs come back. */
static void version_negotiation_echoes_ids_of_255_bytes(void **state)
{
    static const uint32_t versions[] = {LEAT_VERSION_1, LEAT_VERSION_2};
    uint8_t in[1200] = {0xff, 0x1a, 0x2a, 0x3a, 0x4a, 255};
    uint8_t out[600];
    leat_header h, answer;
    leat_writer w;
    bytes b;

    (void)state;
    memset(in + 6, 0xd1, 255);
    in[261] = 255;
    memset(in + 262, 0x5c, 255);
    b = bytes_copy(in, sizeof in);
    assert_int_equal(parse(b, &h), LEAT_OK);
    assert_int_equal(h.type, LEAT_PACKET_UNKNOWN_VERSION);
    assert_int_equal(h.version, 0x1a2a3a4a);
    assert_int_equal(h.dcid.len, 255);
    assert_int_equal(h.scid.len, 255);
    assert_int_equal(h.packet_len, sizeof in);
    assert_false(leat_header_is_protected(&h));

    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_version_negotiation(&w, h.scid, h.dcid, versions, 2,
                                                      leat_version_grease(0x55555555), 0x2b));
    assert_int_equal(leat_writer_len(&w), leat_header_version_negotiation_size(255, 255, 3));
    assert_int_equal(leat_header_parse(out, leat_writer_len(&w), 8, &answer), LEAT_OK);
    assert_int_equal(answer.type, LEAT_PACKET_VERSION_NEGOTIATION);
    assert_int_equal(answer.first, 0xeb);
    assert_memory_equal(answer.dcid.data, h.scid.data, 255);
    assert_memory_equal(answer.scid.data, h.dcid.data, 255);
    assert_int_equal(leat_header_version_count(&answer), 3);
    assert_int_equal(leat_header_version_at(&answer, 0), LEAT_VERSION_1);
    assert_int_equal(leat_header_version_at(&answer, 1), LEAT_VERSION_2);
    assert_int_equal(leat_header_version_at(&answer, 2), 0x5a5a5a5a);
    free(b.data);
}

static void a_version_negotiation_that_lists_the_version_in_use_is_told(void **state)
{
    bytes b = bytes_hex("8000000000 01aa 01bb 1a2a3a4a 00000001");
    leat_header h;

    (void)state;
    assert_int_equal(parse(b, &h), LEAT_OK);
    assert_true(leat_header_lists_version(&h, LEAT_VERSION_1));
    assert_false(leat_header_lists_version(&h, LEAT_VERSION_2));
    free(b.data);
}

static void version_negotiation_is_written_byte_for_byte(void **state)
{
    static const uint32_t versions[] = {LEAT_VERSION_1};
    static const uint8_t dcid[] = {0xaa};
    uint8_t out[64];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_header_write_version_negotiation(&w, (leat_span){dcid, 1}, (leat_span){0},
                                                      versions, 1, 0, 0));
    assert_bytes(out, leat_writer_len(&w), "c0 00000000 01aa 00 00000001");
}

/* ---- what is dropped ---- */

static void malformed_datagrams_are_dropped_whole(void **state)
{
    static const struct {
        const char *hex;
        const char *what;
    } cases[] = {
        {"", "nothing"},
        {"40", "a short header cut in its connection ID"},
        {"c0000000", "a version cut"},
        {"c000000001", "no connection IDs"},
        {"c000000001 02aa", "a dcid cut"},
        {"c000000001 01aa 02bb", "a scid cut"},
        {"c000000001 15aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 00 00 14"
         "0000000000000000000000000000000000000000",
         "a dcid of 21 bytes"},
        {"c000000001 00 15bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 00 14"
         "0000000000000000000000000000000000000000",
         "a scid of 21 bytes"},
        {"c000000001 00 00 02aa", "a token cut"},
        {"c000000001 00 00 ffffffffffffffff", "a token of 2^62 - 1 bytes"},
        {"c000000001 00 00 00", "no Length"},
        {"c000000001 00 00 00 80", "a Length cut"},
        {"c000000001 00 00 00 15 0000000000000000000000000000000000000000",
         "a Length past the datagram"},
        {"e000000001 00 00 ffffffffffffffff 00", "a Length of 2^62 - 1"},
        {"f000000001 00 00 000102030405060708090a0b0c0d0e0f", "a Retry without a token"},
        {"f000000001 00 00 00", "a Retry shorter than its tag"},
        {"8000000000 00 00", "a Version Negotiation without versions"},
        {"8000000000 00 00 00000001 0000", "a Version Negotiation with a version cut"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = bytes_hex(cases[i].hex);
        leat_header h;

        if (parse(b, &h) != LEAT_ERR_MALFORMED) {
            fail_msg("accepted: %s", cases[i].what);
        }
        assert_int_equal(h.packet_len, b.len);
        free(b.data);
    }
}

/* From the field: a packet of 11 bytes, whose sample would lie past its end. */
static void a_packet_without_a_whole_sample_is_dropped(void **state)
{
    leat_header h;

    (void)state;
    for (size_t len = 9; len < 40; len++) {
        bytes b = {calloc(1, len), len};

        b.data[0] = 0x40;
        assert_int_equal(parse(b, &h), len < 9 + 4 + 16 ? LEAT_ERR_TRUNCATED : LEAT_OK);
        assert_int_equal(h.type, LEAT_PACKET_ONE_RTT);
        assert_int_equal(h.dcid.len, 8);
        free(b.data);
    }
}

static void a_long_packet_without_a_sample_does_not_hide_the_next(void **state)
{
    bytes b = bytes_hex("e000000001 00 00 13 00000000000000000000000000000000000000 4042");
    leat_header h;

    (void)state;
    assert_int_equal(parse(b, &h), LEAT_ERR_TRUNCATED);
    assert_int_equal(h.type, LEAT_PACKET_HANDSHAKE);
    assert_int_equal(b.len - h.packet_len, 2);
    free(b.data);
}

static void no_prefix_of_a_packet_is_read_past(void **state)
{
    static const char *const heads[] = {client_initial,
                                        server_initial,
                                        "d000000001 02aabb 01cc 4014",
                                        "e06b3343cf 02aabb 01cc 02ddee 14",
                                        "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff",
                                        "80000000000000 00000001 1a2a3a4a"};

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        bytes whole = datagram(heads[i], 30);

        for (size_t len = 0; len <= whole.len; len++) {
            bytes cut = bytes_copy(whole.data, len);
            leat_header h;

            if (parse(cut, &h) == LEAT_OK && leat_header_is_protected(&h)) {
                assert_true(h.pn_offset + 4 + 16 <= h.packet_len);
            }
            assert_true(h.packet_len <= len);
            free(cut.data);
        }
        free(whole.data);
    }
}

static void random_datagrams_stay_within_bounds(void **state)
{
    static const uint32_t versions[] = {0, LEAT_VERSION_1, LEAT_VERSION_2, 0x1a2a3a4a};
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(3));
    for (int i = 0; i < 100000; i++) {
        uint8_t buf[80];
        leat_header h;
        bytes b;

        leat_prng_fill(&prng, buf, sizeof buf);
        leat_store_u32(buf + 1, versions[leat_prng_below(&prng, 4)]);
        buf[5] &= 0x1f;
        b = bytes_copy(buf, leat_prng_below(&prng, sizeof buf));
        if (leat_header_parse(b.data, b.len, leat_prng_below(&prng, 21), &h) == LEAT_OK) {
            assert_true(h.packet_len <= b.len);
            if (leat_header_is_protected(&h)) {
                assert_true(h.pn_offset + 4 + 16 <= h.packet_len);
            }
            if (h.token.len > 0) {
                assert_true(h.token.data >= b.data);
                assert_true(h.token.data + h.token.len <= b.data + b.len);
            }
        }
        free(b.data);
    }
}

static void writers_without_room_write_nothing(void **state)
{
    static const uint32_t versions[] = {LEAT_VERSION_1};
    leat_cid cid = {.len = 8};
    leat_span token = {cid.data, 8};
    leat_long_packet p;
    uint8_t out[64];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, leat_header_long_size(LEAT_PACKET_INITIAL, 8, 8, 8, 4) - 1);
    assert_false(leat_header_write_long(&w, &p, LEAT_PACKET_INITIAL, LEAT_VERSION_1, &cid, &cid,
                                        token, 0, 4));
    assert_int_equal(leat_writer_len(&w), 0);
    assert_true(leat_writer_ok(&w));
    leat_writer_init(&w, out, leat_header_short_size(8, 2) - 1);
    assert_false(leat_header_write_short(&w, &cid, false, false, 0, 2));
    leat_writer_init(&w, out, leat_header_retry_size(8, 8, 8) - LEAT_RETRY_TAG - 1);
    assert_false(leat_header_write_retry(&w, LEAT_VERSION_1, &cid, &cid, token, 0));
    leat_writer_init(&w, out, leat_header_version_negotiation_size(8, 8, 1) - 1);
    assert_false(leat_header_write_version_negotiation(&w, token, token, versions, 1, 0, 0));
    assert_int_equal(leat_writer_len(&w), 0);
    assert_true(leat_writer_ok(&w));
}

static void connection_ids_are_values(void **state)
{
    uint8_t bytes20[LEAT_CID_MAX + 1];
    leat_cid a, b;

    (void)state;
    for (size_t i = 0; i < sizeof bytes20; i++) {
        bytes20[i] = (uint8_t)(i + 1);
    }
    for (size_t len = 0; len <= LEAT_CID_MAX; len++) {
        bytes exact = bytes_copy(bytes20, len);

        memset(&a, 0xff, sizeof a);
        assert_true(leat_cid_set(&a, exact.data, len));
        assert_int_equal(a.len, len);
        assert_memory_equal(a.data, bytes20, len);
        for (size_t i = len; i < LEAT_CID_MAX; i++) {
            assert_int_equal(a.data[i], 0);
        }
        assert_true(leat_cid_equal_span(&a, (leat_span){exact.data, len}));
        leat_cid_set(&b, exact.data, len);
        assert_true(leat_cid_equal(&a, &b));
        if (len > 0) {
            b.data[len - 1] ^= 1;
            assert_false(leat_cid_equal(&a, &b));
            leat_cid_set(&b, exact.data, len - 1);
            assert_false(leat_cid_equal(&a, &b));
        }
        free(exact.data);
    }
    assert_false(leat_cid_set(&a, bytes20, LEAT_CID_MAX + 1));
    assert_int_equal(a.len, 0);
}

static void every_type_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_INITIAL), "Initial");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_ZERO_RTT), "0-RTT");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_HANDSHAKE), "Handshake");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_ONE_RTT), "1-RTT");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_RETRY), "Retry");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_VERSION_NEGOTIATION),
                        "Version Negotiation");
    assert_string_equal(leat_packet_type_name(LEAT_PACKET_UNKNOWN_VERSION), "unknown version");
}

/* With room enough whole words are written: the header must be what it is without. */
static void a_short_header_is_the_same_with_little_room_and_with_much(void **state)
{
    (void)state;
    for (size_t cid_len = 0; cid_len <= LEAT_CID_MAX; cid_len++) {
        for (size_t pn_len = 1; pn_len <= LEAT_PN_LEN_MAX; pn_len++) {
            size_t size = leat_header_short_size(cid_len, pn_len);
            uint8_t tight[64], roomy[64];
            leat_cid cid = {.len = (uint8_t)cid_len};
            leat_writer w;

            memset(cid.data, 0xc1, cid_len);
            leat_writer_init(&w, tight, size);
            assert_true(leat_header_write_short(&w, &cid, true, false, 0xa1b2c3d4e5f6, pn_len));
            assert_int_equal(leat_writer_left(&w), 0);
            leat_writer_init(&w, roomy, sizeof roomy);
            assert_true(leat_header_write_short(&w, &cid, true, false, 0xa1b2c3d4e5f6, pn_len));
            assert_int_equal(leat_writer_len(&w), size);
            assert_memory_equal(tight, roomy, size);
            assert_int_equal(roomy[size - 1], 0xf6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_name),
        cmocka_unit_test(the_rfcs_client_initial_is_read),
        cmocka_unit_test(the_rfcs_server_initial_is_read_with_what_follows_left_over),
        cmocka_unit_test(the_rfcs_initial_headers_are_written),
        cmocka_unit_test(the_rfcs_retry_is_read_and_written),
        cmocka_unit_test(the_rfcs_short_header_is_read_and_written),
        cmocka_unit_test(short_headers_carry_spin_and_key_phase),
        cmocka_unit_test(reserved_bits_are_seen_in_either_form),
        cmocka_unit_test(packet_number_lengths_are_the_rfcs),
        cmocka_unit_test(packet_numbers_decode_as_the_rfcs),
        cmocka_unit_test(a_packet_number_survives_its_shortest_form),
        cmocka_unit_test(every_long_packet_comes_back_in_both_versions),
        cmocka_unit_test(version_2_turns_the_types),
        cmocka_unit_test(reserved_versions_are_known_and_made),
        cmocka_unit_test(version_negotiation_echoes_ids_of_255_bytes),
        cmocka_unit_test(a_version_negotiation_that_lists_the_version_in_use_is_told),
        cmocka_unit_test(version_negotiation_is_written_byte_for_byte),
        cmocka_unit_test(malformed_datagrams_are_dropped_whole),
        cmocka_unit_test(a_packet_without_a_whole_sample_is_dropped),
        cmocka_unit_test(a_long_packet_without_a_sample_does_not_hide_the_next),
        cmocka_unit_test(no_prefix_of_a_packet_is_read_past),
        cmocka_unit_test(random_datagrams_stay_within_bounds),
        cmocka_unit_test(writers_without_room_write_nothing),
        cmocka_unit_test(connection_ids_are_values),
        cmocka_unit_test(a_short_header_is_the_same_with_little_room_and_with_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
