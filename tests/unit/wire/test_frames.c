/* Frames read: the table against RFC 9000 table 3, bytes written by hand, every value that must be
 * refused and its neighbour that must not. */
#include "wire_test.h"

#include "wire/frames.h"

/* Decodes the first frame of bytes that lie on the heap alone; the caller frees in->data. */
static uint64_t decode(const char *hex, bytes *in, leat_frame *f)
{
    leat_cursor c;

    *in = bytes_hex(hex);
    leat_cursor_init(&c, in->data, in->len);
    memset(f, 0xff, sizeof *f);
    return leat_frame_decode(&c, f);
}

static void assert_span(leat_span span, const char *hex)
{
    assert_bytes(span.data, span.len, hex);
}

/* ---- the table ---- */

/* RFC 9000 table 3, RFC 9221 §4 and the drafts' frames, copied by hand: code, packets, not
 * eliciting, probing. */
static const struct {
    uint64_t code;
    const char *packets;
    bool eliciting, probing;
} table3[] = {
    {0x00, "IH01", false, true},  {0x01, "IH01", true, false},  {0x02, "IH_1", false, false},
    {0x03, "IH_1", false, false}, {0x04, "__01", true, false},  {0x05, "__01", true, false},
    {0x06, "IH_1", true, false},  {0x07, "___1", true, false},  {0x08, "__01", true, false},
    {0x09, "__01", true, false},  {0x0a, "__01", true, false},  {0x0b, "__01", true, false},
    {0x0c, "__01", true, false},  {0x0d, "__01", true, false},  {0x0e, "__01", true, false},
    {0x0f, "__01", true, false},  {0x10, "__01", true, false},  {0x11, "__01", true, false},
    {0x12, "__01", true, false},  {0x13, "__01", true, false},  {0x14, "__01", true, false},
    {0x15, "__01", true, false},  {0x16, "__01", true, false},  {0x17, "__01", true, false},
    {0x18, "__01", true, true},   {0x19, "__01", true, false},  {0x1a, "__01", true, true},
    {0x1b, "___1", true, true},   {0x1c, "IH01", false, false}, {0x1d, "__01", false, false},
    {0x1e, "___1", true, false},  {0x30, "__01", true, false},  {0x31, "__01", true, false},
    {0x1f, "___1", true, false},  {0x24, "__01", true, false},  {0xaf, "___1", true, false},
};

static void the_table_is_that_of_the_rfc(void **state)
{
    static const leat_packet_type columns[] = {LEAT_PACKET_INITIAL, LEAT_PACKET_HANDSHAKE,
                                               LEAT_PACKET_ZERO_RTT, LEAT_PACKET_ONE_RTT};

    (void)state;
    for (size_t i = 0; i < sizeof table3 / sizeof table3[0]; i++) {
        leat_frame_kind kind = leat_frame_kind_of(table3[i].code);

        assert_true(kind < LEAT_FRAME_KINDS);
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(leat_frame_allowed(kind, columns[k]), table3[i].packets[k] != '_');
        }
        assert_false(leat_frame_allowed(kind, LEAT_PACKET_RETRY));
        assert_int_equal(leat_frame_is_ack_eliciting(kind), table3[i].eliciting);
        assert_int_equal(leat_frame_is_probing(kind), table3[i].probing);
        /* RFC 9002 §2: what elicits an ACK, and PADDING. */
        assert_int_equal(leat_frame_is_in_flight(kind), table3[i].eliciting || table3[i].code == 0);
    }
}

static void no_other_code_has_a_kind(void **state)
{
    size_t known = 0;

    (void)state;
    for (uint64_t code = 0; code < 0x10000; code++) {
        known += leat_frame_kind_of(code) != LEAT_FRAME_KINDS;
    }
    assert_int_equal(known, sizeof table3 / sizeof table3[0]);
    assert_int_equal(leat_frame_kind_of(LEAT_VARINT_MAX), LEAT_FRAME_KINDS);
    assert_int_equal(leat_frame_kind_of(UINT64_C(0x100000000)), LEAT_FRAME_KINDS);
    assert_string_equal(leat_frame_name(LEAT_FRAME_NEW_CONNECTION_ID), "new_connection_id");
}

/* From the field: CONNECTION_CLOSE 0x1d in an Initial. */
static void an_application_close_is_not_allowed_in_the_handshake(void **state)
{
    (void)state;
    assert_false(leat_frame_allowed(leat_frame_kind_of(0x1d), LEAT_PACKET_INITIAL));
    assert_false(leat_frame_allowed(leat_frame_kind_of(0x1d), LEAT_PACKET_HANDSHAKE));
    assert_true(leat_frame_allowed(leat_frame_kind_of(0x1c), LEAT_PACKET_INITIAL));
}

/* ---- bytes written by hand ---- */

static void a_run_of_padding_is_one_frame(void **state)
{
    (void)state;
    for (size_t len = 1; len < 40; len++) {
        bytes in = {calloc(1, len + 1), len + 1};
        leat_frame f;
        leat_cursor c;

        in.data[len] = 0x01;
        leat_cursor_init(&c, in.data, in.len);
        assert_int_equal(leat_frame_decode(&c, &f), 0);
        assert_int_equal(f.kind, LEAT_FRAME_PADDING);
        assert_int_equal(f.padding.len, len);
        assert_int_equal(leat_frame_decode(&c, &f), 0);
        assert_int_equal(f.kind, LEAT_FRAME_PING);
        assert_int_equal(leat_cursor_left(&c), 0);

        leat_cursor_init(&c, in.data, len); /* padding to the packet's end */
        assert_int_equal(leat_frame_decode(&c, &f), 0);
        assert_int_equal(f.padding.len, len);
        assert_int_equal(leat_cursor_left(&c), 0);
        free(in.data);
    }
}

/* 1000 to 998, 995, 990 to 0. Gaps count what is missing, less one (§19.3.1). */
static void an_ack_gives_its_ranges_newest_first(void **state)
{
    static const leat_range want[] = {{998, 1001}, {995, 996}, {0, 991}};
    leat_ack_iter iter;
    leat_range r;
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("02 43e8 10 02 02  01 00  03 43de", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_ACK);
    assert_int_equal(f.ack.largest, 1000);
    assert_int_equal(f.ack.smallest_first, 998);
    assert_int_equal(f.ack.smallest, 0);
    assert_int_equal(f.ack.delay, 16);
    assert_false(f.ack.has_ecn);
    leat_ack_iter_init(&iter, &f.ack);
    for (size_t i = 0; i < 3; i++) {
        assert_true(leat_ack_iter_next(&iter, &r));
        assert_int_equal(r.from, want[i].from);
        assert_int_equal(r.to, want[i].to);
    }
    assert_false(leat_ack_iter_next(&iter, &r));
    assert_false(leat_ack_iter_next(&iter, &r));
    free(in.data);
}

static void an_ack_brings_ecn_counts(void **state)
{
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("03 00 00 00 00 05 4040 07", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_ACK);
    assert_int_equal(f.code, 3);
    assert_true(f.ack.has_ecn);
    assert_int_equal(f.ack.ecn.ect0, 5);
    assert_int_equal(f.ack.ecn.ect1, 64);
    assert_int_equal(f.ack.ecn.ce, 7);
    free(in.data);
}

static void a_stream_comes_in_all_its_eight_forms(void **state)
{
    static const struct {
        const char *hex;
        uint64_t offset;
        const char *data;
        bool fin;
    } forms[] = {
        {"08 04 aabbcc", 0, "aabbcc", false},
        {"09 04 aabbcc", 0, "aabbcc", true},
        {"0a 04 02 aabbcc", 0, "aabb", false},
        {"0b 04 02 aabbcc", 0, "aabb", true},
        {"0c 04 4400 aabbcc", 1024, "aabbcc", false},
        {"0d 04 4400 aabbcc", 1024, "aabbcc", true},
        {"0e 04 4400 02 aabbcc", 1024, "aabb", false},
        {"0f 04 4400 00 cc", 1024, "", true},
        {"09 04", 0, "", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        leat_frame f;
        bytes in;

        assert_int_equal(decode(forms[i].hex, &in, &f), 0);
        assert_int_equal(f.kind, LEAT_FRAME_STREAM);
        assert_int_equal(f.stream.stream_id, 4);
        assert_int_equal(f.stream.offset, forms[i].offset);
        assert_span(f.stream.data, forms[i].data);
        assert_int_equal(f.stream.fin, forms[i].fin);
        free(in.data);
    }
}

static void the_other_frames_are_read(void **state)
{
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("04 05 4100 8000ffff", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_RESET_STREAM);
    assert_int_equal(f.reset_stream.stream_id, 5);
    assert_int_equal(f.reset_stream.error, 256);
    assert_int_equal(f.reset_stream.final_size, 65535);
    free(in.data);
    assert_int_equal(decode("24 05 4100 8000ffff 07", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_RESET_STREAM_AT);
    assert_int_equal(f.reset_stream_at.stream_id, 5);
    assert_int_equal(f.reset_stream_at.error, 256);
    assert_int_equal(f.reset_stream_at.final_size, 65535);
    assert_int_equal(f.reset_stream_at.reliable_size, 7);
    free(in.data);
    assert_int_equal(decode("24 05 4100 09 09", &in, &f), 0);
    free(in.data);
    assert_int_equal(decode("24 05 4100 09 0a", &in, &f), LEAT_TE_FRAME_ENCODING_ERROR);
    free(in.data);
    assert_int_equal(decode("05 05 4100", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_STOP_SENDING);
    assert_int_equal(f.stop_sending.stream_id, 5);
    assert_int_equal(f.stop_sending.error, 256);
    free(in.data);
    assert_int_equal(decode("06 41f4 03 010203", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_CRYPTO);
    assert_int_equal(f.crypto.offset, 500);
    assert_span(f.crypto.data, "010203");
    free(in.data);
    assert_int_equal(decode("07 02 beef", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_NEW_TOKEN);
    assert_span(f.new_token.token, "beef");
    free(in.data);
    assert_int_equal(decode("10 80100000", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_MAX_DATA);
    assert_int_equal(f.max_data.max, 1 << 20);
    free(in.data);
    assert_int_equal(decode("11 08 80100000", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_MAX_STREAM_DATA);
    assert_int_equal(f.max_stream_data.stream_id, 8);
    assert_int_equal(f.max_stream_data.max, 1 << 20);
    free(in.data);
    assert_int_equal(decode("14 09", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_DATA_BLOCKED);
    assert_int_equal(f.data_blocked.limit, 9);
    free(in.data);
    assert_int_equal(decode("15 04 09", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_STREAM_DATA_BLOCKED);
    assert_int_equal(f.stream_data_blocked.stream_id, 4);
    assert_int_equal(f.stream_data_blocked.limit, 9);
    free(in.data);
    assert_int_equal(decode("18 03 01 04 c1c2c3c4 000102030405060708090a0b0c0d0e0f", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_NEW_CONNECTION_ID);
    assert_int_equal(f.new_connection_id.sequence, 3);
    assert_int_equal(f.new_connection_id.retire_prior_to, 1);
    assert_span(leat_cid_span(&f.new_connection_id.cid), "c1c2c3c4");
    assert_bytes(f.new_connection_id.reset_token, 16, "000102030405060708090a0b0c0d0e0f");
    free(in.data);
    assert_int_equal(decode("19 4040", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_RETIRE_CONNECTION_ID);
    assert_int_equal(f.retire_connection_id.sequence, 64);
    free(in.data);
    assert_int_equal(decode("1a 0102030405060708", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_PATH_CHALLENGE);
    assert_bytes(f.path_challenge.data, 8, "0102030405060708");
    free(in.data);
    assert_int_equal(decode("1b 0102030405060708", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_PATH_RESPONSE);
    assert_bytes(f.path_response.data, 8, "0102030405060708");
    free(in.data);
    assert_int_equal(decode("1c 0a 06 02 6e6f", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_CONNECTION_CLOSE);
    assert_false(f.connection_close.application);
    assert_int_equal(f.connection_close.error, LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(f.connection_close.frame_type, LEAT_FRAME_CODE_CRYPTO);
    assert_span(f.connection_close.reason, "6e6f");
    free(in.data);
    assert_int_equal(decode("1d 4100 00", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_APPLICATION_CLOSE);
    assert_true(f.connection_close.application);
    assert_int_equal(f.connection_close.error, 0x100);
    assert_int_equal(f.connection_close.frame_type, 0);
    assert_int_equal(f.connection_close.reason.len, 0);
    free(in.data);
    assert_int_equal(decode("1e", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_HANDSHAKE_DONE);
    free(in.data);
    assert_int_equal(decode("30 aabb", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_DATAGRAM);
    assert_span(f.datagram.data, "aabb");
    free(in.data);
    assert_int_equal(decode("31 01 aabb", &in, &f), 0);
    assert_int_equal(f.kind, LEAT_FRAME_DATAGRAM);
    assert_span(f.datagram.data, "aa");
    free(in.data);
    assert_int_equal(decode("30", &in, &f), 0);
    assert_int_equal(f.datagram.data.len, 0);
    free(in.data);
}

static void stream_kinds_of_limits_are_told_apart(void **state)
{
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("12 05", &in, &f), 0);
    assert_true(f.max_streams.bidi);
    assert_int_equal(f.max_streams.max, 5);
    free(in.data);
    assert_int_equal(decode("13 05", &in, &f), 0);
    assert_false(f.max_streams.bidi);
    free(in.data);
    assert_int_equal(decode("16 05", &in, &f), 0);
    assert_true(f.streams_blocked.bidi);
    assert_int_equal(f.streams_blocked.limit, 5);
    free(in.data);
    assert_int_equal(decode("17 05", &in, &f), 0);
    assert_false(f.streams_blocked.bidi);
    free(in.data);
}

/* ---- what is refused, and what is just allowed ---- */

static void values_out_of_bounds_are_refused(void **state)
{
    static const struct {
        const char *hex;
        const char *what;
        uint64_t error;
    } cases[] = {
        {"0e 00 ffffffffffffffff 01 aa", "STREAM past 2^62 - 1", LEAT_TE_FRAME_ENCODING_ERROR},
        {"0c 00 ffffffffffffffff aa", "the same to the packet's end", LEAT_TE_FRAME_ENCODING_ERROR},
        {"0e 00 ffffffffffffffff 00", "an empty STREAM at 2^62 - 1", 0},
        {"0e 00 fffffffffffffffe 01 aa", "the last byte there can be", 0},
        {"06 ffffffffffffffff 01 aa", "CRYPTO past 2^62 - 1", LEAT_TE_FRAME_ENCODING_ERROR},
        {"06 fffffffffffffffe 01 aa", "the last byte of CRYPTO", 0},
        {"02 05 00 00 06", "a first range below zero", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 05 00 00 05", "a first range down to zero", 0},
        {"02 05 00 01 03 00 00", "a range down to zero", 0},
        {"02 05 00 01 03 00 01", "a range below zero", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 05 00 01 03 01 00", "a gap below zero", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 05 00 01 05 00 00", "a range after one that reached zero",
         LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 05 00 01 03 ffffffffffffffff 00", "the largest gap", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 ffffffffffffffff 00 01 00 00 ffffffffffffffff", "the largest range",
         LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 4040 00 ffffffffffffffff 00 00 00", "2^62 - 1 ranges", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 ffffffffffffffff 00 ffffffffffffffff 00 00 00",
         "the same, with numbers for all of them", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 05 00 01 00", "a range that is not there", LEAT_TE_FRAME_ENCODING_ERROR},
        {"02 4040 00 02 00 00 00 00", "half a range", LEAT_TE_FRAME_ENCODING_ERROR},
        {"12 d000000000000000", "MAX_STREAMS of 2^60", 0},
        {"12 d000000000000001", "MAX_STREAMS above 2^60", LEAT_TE_FRAME_ENCODING_ERROR},
        {"13 d000000000000000", "MAX_STREAMS (uni) of 2^60", 0},
        {"13 d000000000000001", "MAX_STREAMS (uni) above 2^60", LEAT_TE_FRAME_ENCODING_ERROR},
        {"16 d000000000000000", "STREAMS_BLOCKED of 2^60", 0},
        {"16 d000000000000001", "STREAMS_BLOCKED above 2^60", LEAT_TE_FRAME_ENCODING_ERROR},
        {"17 d000000000000001", "STREAMS_BLOCKED (uni) above 2^60", LEAT_TE_FRAME_ENCODING_ERROR},
        {"07 00", "an empty NEW_TOKEN", LEAT_TE_FRAME_ENCODING_ERROR},
        {"18 03 04 01 c1 000102030405060708090a0b0c0d0e0f", "retire_prior_to above the sequence",
         LEAT_TE_FRAME_ENCODING_ERROR},
        {"18 03 03 01 c1 000102030405060708090a0b0c0d0e0f", "retire_prior_to at the sequence", 0},
        {"18 03 00 00 000102030405060708090a0b0c0d0e0f", "an empty connection ID",
         LEAT_TE_FRAME_ENCODING_ERROR},
        {"18 03 00 14 0000000000000000000000000000000000000000 000102030405060708090a0b0c0d0e0f",
         "a connection ID of 20 bytes", 0},
        {"18 03 00 15 000000000000000000000000000000000000000000 000102030405060708090a0b0c0d0e0f",
         "a connection ID of 21 bytes", LEAT_TE_FRAME_ENCODING_ERROR},
        {"1c 00 00 05 6e6f", "a reason cut", LEAT_TE_FRAME_ENCODING_ERROR},
        {"20", "an unknown type", LEAT_TE_FRAME_ENCODING_ERROR},
        {"2f", "an unknown type below DATAGRAM", LEAT_TE_FRAME_ENCODING_ERROR},
        {"32", "an unknown type above DATAGRAM", LEAT_TE_FRAME_ENCODING_ERROR},
        {"40af 00 01 02", "an ACK_FREQUENCY cut short", LEAT_TE_FRAME_ENCODING_ERROR},
        {"ffffffffffffffff", "the largest type", LEAT_TE_FRAME_ENCODING_ERROR},
        {"40", "half a type", LEAT_TE_FRAME_ENCODING_ERROR},
        {"4001", "PING in two bytes", LEAT_TE_PROTOCOL_VIOLATION},
        {"4000", "PADDING in two bytes", LEAT_TE_PROTOCOL_VIOLATION},
        {"80000001", "PING in four bytes", LEAT_TE_PROTOCOL_VIOLATION},
        {"c000000000000001", "PING in eight bytes", LEAT_TE_PROTOCOL_VIOLATION},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat_frame f;
        bytes in;
        uint64_t error = decode(cases[i].hex, &in, &f);

        if (error != cases[i].error) {
            fail_msg("%s: %s", cases[i].what, leat_transport_error_name(error));
        }
        free(in.data);
    }
}

static void an_error_names_the_frame(void **state)
{
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("0e 00 ffffffffffffffff 01 aa", &in, &f), LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(f.code, 0x0e);
    free(in.data);
    assert_int_equal(decode("40af 00", &in, &f), LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(f.code, 0xaf);
    free(in.data);
    assert_int_equal(decode("40", &in, &f), LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(f.code, 0);
    free(in.data);
}

/* The fields of frames, unlike their types, may come in any form. */
static void fields_may_be_longer_than_they_need(void **state)
{
    leat_frame f;
    bytes in;

    (void)state;
    assert_int_equal(decode("0f 4004 80000001 c000000000000001 aa", &in, &f), 0);
    assert_int_equal(f.stream.stream_id, 4);
    assert_int_equal(f.stream.offset, 1);
    assert_span(f.stream.data, "aa");
    free(in.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_that_of_the_rfc),
        cmocka_unit_test(no_other_code_has_a_kind),
        cmocka_unit_test(an_application_close_is_not_allowed_in_the_handshake),
        cmocka_unit_test(a_run_of_padding_is_one_frame),
        cmocka_unit_test(an_ack_gives_its_ranges_newest_first),
        cmocka_unit_test(an_ack_brings_ecn_counts),
        cmocka_unit_test(a_stream_comes_in_all_its_eight_forms),
        cmocka_unit_test(the_other_frames_are_read),
        cmocka_unit_test(stream_kinds_of_limits_are_told_apart),
        cmocka_unit_test(values_out_of_bounds_are_refused),
        cmocka_unit_test(an_error_names_the_frame),
        cmocka_unit_test(fields_may_be_longer_than_they_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
