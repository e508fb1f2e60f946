/* leat/rtcp.h: RTCP packets, read and written. */
#include "media_test.h"

#include <leat/rtcp.h>

static uint8_t out[4096];
static leat_rtcp_writer w;

static int start(void **state)
{
    (void)state;
    leat_rtcp_writer_init(&w, out, sizeof out);
    return 0;
}

/* The first packet of what was written, in memory of exactly its size. */
static bytes written;
static leat_rtcp_packet first(void)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet p;

    free(written.data);
    written = bytes_copy(out, w.len);
    leat_rtcp_begin(&iter, span_of(written));
    assert_true(leat_rtcp_next(&iter, &p));
    return p;
}

static int finish(void **state)
{
    (void)state;
    free(written.data);
    written = (bytes){NULL, 0};
    return 0;
}

static const leat_rtcp_report report = {.ssrc = 2,
                                        .fraction_lost = 3,
                                        .lost = -1,
                                        .highest_seq = 0x10002,
                                        .jitter = 4,
                                        .last_sr = 5,
                                        .delay_last_sr = 6};

static void assert_same_report(const leat_rtcp_report *r, int32_t lost)
{
    assert_int_equal(r->ssrc, 2);
    assert_int_equal(r->fraction_lost, 3);
    assert_int_equal(r->lost, lost);
    assert_int_equal(r->highest_seq, 0x10002);
    assert_int_equal(r->jitter, 4);
    assert_int_equal(r->last_sr, 5);
    assert_int_equal(r->delay_last_sr, 6);
}

static void a_sender_report_is_written_and_read(void **state)
{
    leat_rtcp_sender_info info = {1, 0x1111111122222222, 3, 4, 5}, got;
    leat_rtcp_report r;
    leat_rtcp_packet p;

    (void)state;
    assert_int_equal(leat_rtcp_write_sr(&w, &info, &report, 1), LEAT_OK);
    assert_bytes(out, w.len,
                 "81c8000c 00000001 1111111122222222 00000003 00000004 00000005"
                 "00000002 03ffffff 00010002 00000004 00000005 00000006");
    p = first();
    assert_int_equal(leat_rtcp_sr_parse(&p, &got), LEAT_OK);
    assert_int_equal(got.ssrc, 1);
    assert_int_equal(got.ntp, info.ntp);
    assert_int_equal(got.timestamp, 3);
    assert_int_equal(got.packets, 4);
    assert_int_equal(got.octets, 5);
    assert_int_equal(leat_rtcp_report_get(&p, 0, &r), LEAT_OK);
    assert_same_report(&r, -1);
    assert_int_equal(leat_rtcp_report_get(&p, 1, &r), LEAT_ERR_NOT_FOUND);
    assert_int_equal(leat_rtcp_rr_parse(&p, &got.ssrc), LEAT_ERR_INVALID);
}

static void a_receiver_report_is_written_and_read(void **state)
{
    leat_rtcp_report many[32], r;
    leat_rtcp_packet p;
    uint32_t ssrc;

    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        many[i] = report;
    }
    many[30].lost = 10000000; /* 24 bits hold 8388607 */
    assert_int_equal(leat_rtcp_write_rr(&w, 9, many, 32), LEAT_ERR_INVALID);
    assert_int_equal(w.len, 0);
    assert_int_equal(leat_rtcp_write_rr(&w, 9, many, 31), LEAT_OK);
    p = first();
    assert_int_equal(leat_rtcp_rr_parse(&p, &ssrc), LEAT_OK);
    assert_int_equal(ssrc, 9);
    assert_int_equal(leat_rtcp_report_get(&p, 29, &r), LEAT_OK);
    assert_same_report(&r, -1);
    assert_int_equal(leat_rtcp_report_get(&p, 30, &r), LEAT_OK);
    assert_same_report(&r, 8388607);
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static void descriptions_are_written_and_read(void **state)
{
    leat_rtcp_sdes_item items[] = {{1, LEAT_RTCP_SDES_CNAME, text("abc")},
                                   {1, LEAT_RTCP_SDES_TOOL, text("")},
                                   {2, LEAT_RTCP_SDES_CNAME, text("de")}};
    leat_rtcp_sdes_iter iter;
    leat_rtcp_sdes_item item;
    leat_rtcp_packet p;

    (void)state;
    assert_int_equal(leat_rtcp_write_sdes(&w, items, 3), LEAT_OK);
    assert_bytes(out, w.len, "82ca0006 00000001 0103616263 0600 00 00000002 01026465 00000000");
    p = first();
    leat_rtcp_sdes_begin(&iter, &p);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(leat_rtcp_sdes_next(&iter, &item));
        assert_int_equal(item.ssrc, items[i].ssrc);
        assert_int_equal(item.type, items[i].type);
        assert_text(item.text, (const char *[]){"abc", "", "de"}[i]);
    }
    assert_false(leat_rtcp_sdes_next(&iter, &item));
    assert_int_equal(iter.err, LEAT_OK);
    w.len = 0;
    assert_int_equal(leat_rtcp_write_sdes(&w, NULL, 0), LEAT_OK);
    assert_bytes(out, w.len, "80ca0000");
}

/* Walks the items; returns how it ended. */
static leat_err walk_sdes(const char *hex, unsigned *n)
{
    bytes b = bytes_hex(hex);
    leat_rtcp_iter packets;
    leat_rtcp_packet p;
    leat_rtcp_sdes_iter iter;
    leat_rtcp_sdes_item item;

    *n = 0;
    leat_rtcp_begin(&packets, span_of(b));
    assert_true(leat_rtcp_next(&packets, &p));
    leat_rtcp_sdes_begin(&iter, &p);
    while (leat_rtcp_sdes_next(&iter, &item)) {
        (*n)++;
    }
    free(b.data);
    return iter.err;
}

static void descriptions_that_are_cut_short_end_with_an_error(void **state)
{
    unsigned n;

    (void)state;
    assert_int_equal(walk_sdes("81ca0002 00000001 00000000", &n), LEAT_OK); /* no item */
    assert_int_equal(walk_sdes("82ca0004 00000001 00000000 00000002 00000000", &n), LEAT_OK);
    assert_int_equal(walk_sdes("82ca0002 00000001 00000000", &n), LEAT_ERR_TRUNCATED);
    assert_int_equal(walk_sdes("81ca0002 00000001 01036162", &n), LEAT_ERR_TRUNCATED);
    assert_int_equal(n, 0);
    assert_int_equal(walk_sdes("81ca0002 00000001 01026162", &n), LEAT_ERR_TRUNCATED); /* no end */
    assert_int_equal(n, 1);
    assert_int_equal(walk_sdes("81ca0002 00000001 01016101", &n), LEAT_ERR_TRUNCATED);
    assert_int_equal(n, 1);
    assert_int_equal(walk_sdes("81ca0000", &n), LEAT_ERR_TRUNCATED);
    assert_int_equal(walk_sdes("81ca0001 00000001", &n), LEAT_ERR_TRUNCATED); /* a source alone */
    /* Padding that is no multiple of four leaves the chunk one zero of the four that end it. */
    assert_int_equal(walk_sdes("a1ca0002 00000001 00000003", &n), LEAT_ERR_TRUNCATED);
    /* RFC 3550 s6.5: where a word ends in the last byte of an item, four more zeros end the chunk.
     */
    assert_int_equal(walk_sdes("82ca0005 00000001 01026162 00000000 00000002 00000000", &n),
                     LEAT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(walk_sdes("81c90001 00000001", &n), LEAT_ERR_INVALID);
}

static void goodbyes_are_written_and_read(void **state)
{
    const uint32_t ssrcs[] = {1, 2};
    leat_rtcp_packet p;
    leat_span reason;
    uint32_t ssrc;

    (void)state;
    assert_int_equal(leat_rtcp_write_bye(&w, ssrcs, 2, text("bye!")), LEAT_OK);
    assert_bytes(out, w.len, "82cb0004 00000001 00000002 04627965 21000000");
    p = first();
    assert_int_equal(leat_rtcp_bye_source(&p, 1, &ssrc), LEAT_OK);
    assert_int_equal(ssrc, 2);
    assert_int_equal(leat_rtcp_bye_source(&p, 2, &ssrc), LEAT_ERR_NOT_FOUND);
    assert_int_equal(leat_rtcp_bye_reason(&p, &reason), LEAT_OK);
    assert_text(reason, "bye!");
    w.len = 0;
    assert_int_equal(leat_rtcp_write_bye(&w, ssrcs, 1, text("")), LEAT_OK);
    assert_bytes(out, w.len, "81cb0001 00000001");
    p = first();
    assert_int_equal(leat_rtcp_bye_reason(&p, &reason), LEAT_OK);
    assert_int_equal(reason.len, 0);
    out[0] = 0x82; /* two sources, one there */
    p = first();
    assert_int_equal(leat_rtcp_bye_source(&p, 1, &ssrc), LEAT_ERR_TRUNCATED);
    assert_int_equal(leat_rtcp_bye_reason(&p, &reason), LEAT_ERR_TRUNCATED);
}

static void nacks_pair_numbers_that_lie_close(void **state)
{
    const uint16_t seqs[] = {65530, 65531, 10, 11, 200};
    leat_rtcp_nack_iter iter;
    leat_rtcp_packet p;
    uint16_t seq;

    (void)state;
    assert_int_equal(leat_rtcp_write_nack(&w, 1, 2, seqs, 5), LEAT_OK);
    assert_bytes(out, w.len, "81cd0005 00000001 00000002 fffa8001 000b0000 00c80000");
    p = first();
    assert_int_equal(leat_rtcp_nack_begin(&iter, &p), LEAT_OK);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(leat_rtcp_nack_next(&iter, &seq));
        assert_int_equal(seq, seqs[i]);
    }
    assert_false(leat_rtcp_nack_next(&iter, &seq));
    assert_int_equal(leat_rtcp_write_nack(&w, 1, 2, seqs, 0), LEAT_ERR_INVALID);
}

static void nacks_of_random_numbers_ask_for_the_same(void **state)
{
    seeds s = seeds_start(5000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        uint16_t seqs[200], seq;
        leat_rtcp_nack_iter iter;
        leat_rtcp_packet p;
        leat_prng prng;
        size_t n;

        leat_prng_seed(&prng, s.next);
        n = (size_t)leat_prng_between(&prng, 1, 200);
        seqs[0] = (uint16_t)leat_prng_u64(&prng);
        for (size_t i = 1; i < n; i++) {
            seqs[i] = (uint16_t)(seqs[i - 1] + leat_prng_between(&prng, 1, 25));
        }
        w.len = 0;
        assert_seed(leat_rtcp_write_nack(&w, 1, 2, seqs, n) == LEAT_OK, s.next);
        p = first();
        assert_seed(leat_rtcp_nack_begin(&iter, &p) == LEAT_OK, s.next);
        for (size_t i = 0; i < n; i++) {
            assert_seed(leat_rtcp_nack_next(&iter, &seq) && seq == seqs[i], s.next);
        }
        assert_seed(!leat_rtcp_nack_next(&iter, &seq), s.next);
    }
}

static void requests_for_pictures_are_written_and_read(void **state)
{
    const leat_rtcp_fir entries[] = {{7, 1}, {8, 255}};
    leat_rtcp_packet p;
    leat_rtcp_fir fir;
    leat_rtcp_fb fb;

    (void)state;
    assert_int_equal(leat_rtcp_write_pli(&w, 1, 2), LEAT_OK);
    assert_bytes(out, w.len, "81ce0002 00000001 00000002");
    p = first();
    assert_int_equal(leat_rtcp_fb_parse(&p, &fb), LEAT_OK);
    assert_int_equal(fb.sender_ssrc, 1);
    assert_int_equal(fb.media_ssrc, 2);
    assert_int_equal(fb.fci.len, 0);
    assert_int_equal(leat_rtcp_fir_get(&p, 0, &fir), LEAT_ERR_INVALID);
    w.len = 0;
    assert_int_equal(leat_rtcp_write_fir(&w, 1, entries, 2), LEAT_OK);
    assert_bytes(out, w.len, "84ce0006 00000001 00000000 00000007 01000000 00000008 ff000000");
    p = first();
    assert_int_equal(leat_rtcp_fir_get(&p, 1, &fir), LEAT_OK);
    assert_int_equal(fir.ssrc, 8);
    assert_int_equal(fir.command, 255);
    assert_int_equal(leat_rtcp_fir_get(&p, 2, &fir), LEAT_ERR_NOT_FOUND);
    assert_string_equal(leat_rtcp_type_text(206, 4), "full intra request");
    assert_string_equal(leat_rtcp_type_text(206, 9), "payload feedback");
    assert_string_equal(leat_rtcp_type_text(200, 1), "sender report");
    assert_string_equal(leat_rtcp_type_text(1, 1), "unknown");
}

static leat_err check_hex(const char *hex, bool reduced)
{
    bytes b = bytes_hex(hex);
    leat_err err = leat_rtcp_check(span_of(b), reduced);

    free(b.data);
    return err;
}

#define RR  "80c90001 00000001"
#define PLI "81ce0002 00000001 00000002"

static void datagrams_are_checked_as_a_whole(void **state)
{
    (void)state;
    assert_int_equal(check_hex(RR PLI, false), LEAT_OK);
    assert_int_equal(check_hex(PLI, true), LEAT_OK);
    assert_int_equal(
        check_hex("80c80006 00000001 00000000 00000000 00000000 00000000 00000000" PLI, false),
        LEAT_OK);
    assert_int_equal(check_hex(PLI, false), LEAT_ERR_MALFORMED);
    assert_int_equal(check_hex("", true), LEAT_ERR_TRUNCATED);
    assert_int_equal(check_hex(RR "81ce0002 00000001", false), LEAT_ERR_TRUNCATED);
    assert_int_equal(check_hex(RR "81ce", false), LEAT_ERR_TRUNCATED);
    assert_int_equal(check_hex("40c90001 00000001", false), LEAT_ERR_MALFORMED);
    assert_int_equal(check_hex(RR "a1ce0003 00000001 00000002 00000004", false), LEAT_OK);
    assert_int_equal(check_hex("a0c90002 00000001 00000004" PLI, false), LEAT_ERR_MALFORMED);
    assert_int_equal(check_hex(RR "a1ce0002 00000001 0000000a", true), LEAT_ERR_MALFORMED);
    assert_int_equal(check_hex(RR "a1ce0002 00000001 00000000", true), LEAT_ERR_MALFORMED);
}

static void a_walk_says_where_it_stopped(void **state)
{
    bytes b = bytes_hex(RR "81ce0002 00000001");
    leat_rtcp_iter iter;
    leat_rtcp_packet p;

    (void)state;
    leat_rtcp_begin(&iter, span_of(b));
    assert_true(leat_rtcp_next(&iter, &p));
    assert_false(leat_rtcp_next(&iter, &p));
    assert_int_equal(iter.offset, 8);
    assert_int_equal(iter.err, LEAT_ERR_TRUNCATED);
    assert_false(leat_rtcp_next(&iter, &p));
    free(b.data);
}

static void bodies_too_short_for_their_kind_are_refused(void **state)
{
    static const char *const cases[] = {
        "80c80001 00000001",
        "81c90001 00000001",
        "81cd0001 00000001",
        "81cd0002 00000001 00000002",
        /* a sender's report on one that is not there; half a NACK's pair, by padding */
        "81c80006 00000001 1111111122222222 00000003 00000004 00000005",
        "a1cd0003 00000001 00000002 00030002",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = bytes_hex(cases[i]);
        leat_rtcp_iter iter;
        leat_rtcp_packet p;
        leat_rtcp_sender_info info;
        leat_rtcp_report r;
        leat_rtcp_nack_iter nack;
        uint32_t ssrc;

        leat_rtcp_begin(&iter, span_of(b));
        assert_true(leat_rtcp_next(&iter, &p));
        assert_int_not_equal(leat_rtcp_sr_parse(&p, &info), LEAT_OK);
        assert_int_not_equal(leat_rtcp_rr_parse(&p, &ssrc), LEAT_OK);
        assert_int_not_equal(leat_rtcp_report_get(&p, 0, &r), LEAT_OK);
        assert_int_not_equal(leat_rtcp_nack_begin(&nack, &p), LEAT_OK);
        free(b.data);
    }
}

static leat_rtcp_packet only(bytes b)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet p;

    leat_rtcp_begin(&iter, span_of(b));
    assert_true(leat_rtcp_next(&iter, &p));
    return p;
}

static void a_packet_is_not_read_as_another_kind(void **state)
{
    static const struct {
        const char *hex;
        leat_err nack, fir, source, reason;
    } cases[] = {
        /* a NACK, and one without a pair, and with half a one: a word and a half cannot be */
        {"81cd0003 00000001 00000002 00030000", LEAT_OK, LEAT_ERR_INVALID, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID},
        {"81cd0002 00000001 00000002", LEAT_ERR_MALFORMED, LEAT_ERR_INVALID, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID},
        {"81cd0001 00000001", LEAT_ERR_TRUNCATED, LEAT_ERR_INVALID, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID},
        /* feedback of the transport's that is none; of the payload's: PLI, FIR, half a FIR */
        {"8fcd0003 00000001 00000002 00030000", LEAT_ERR_INVALID, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID, LEAT_ERR_INVALID},
        {"81ce0002 00000001 00000002", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID},
        {"84ce0004 00000001 00000000 00000007 05000000", LEAT_ERR_INVALID, LEAT_OK,
         LEAT_ERR_INVALID, LEAT_ERR_INVALID},
        {"84ce0003 00000001 00000000 00000007", LEAT_ERR_INVALID, LEAT_ERR_NOT_FOUND,
         LEAT_ERR_INVALID, LEAT_ERR_INVALID},
        {"84ce0001 00000001", LEAT_ERR_INVALID, LEAT_ERR_TRUNCATED, LEAT_ERR_INVALID,
         LEAT_ERR_INVALID},
        /* BYE: of nobody, of one, of more than are there, with a reason, with half a one */
        {"80cb0000", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_ERR_NOT_FOUND, LEAT_OK},
        {"81cb0001 00000001", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_OK, LEAT_OK},
        {"82cb0001 00000001", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_OK, LEAT_ERR_TRUNCATED},
        {"81cb0000", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_ERR_TRUNCATED, LEAT_ERR_TRUNCATED},
        {"81cb0002 00000001 03627965", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_OK, LEAT_OK},
        {"81cb0002 00000001 04627965", LEAT_ERR_INVALID, LEAT_ERR_INVALID, LEAT_OK,
         LEAT_ERR_TRUNCATED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = bytes_hex(cases[i].hex);
        leat_rtcp_packet p = only(b);
        leat_rtcp_nack_iter nack;
        leat_rtcp_fir fir;
        leat_span reason;
        uint32_t ssrc;

        assert_int_equal(leat_rtcp_nack_begin(&nack, &p), cases[i].nack);
        assert_int_equal(leat_rtcp_fir_get(&p, 0, &fir), cases[i].fir);
        assert_int_equal(leat_rtcp_bye_source(&p, 0, &ssrc), cases[i].source);
        assert_int_equal(leat_rtcp_bye_reason(&p, &reason), cases[i].reason);
        free(b.data);
    }
}

static void every_kind_has_a_text(void **state)
{
    (void)state;
#define CHECK_FMT(name, of, number, text)                                                          \
    assert_string_equal(leat_rtcp_type_text(LEAT_RTCP_##of, number), text);
    LEAT_RTCP_FMT_LIST(CHECK_FMT)
#undef CHECK_FMT
#define CHECK_TYPE(name, number, text) assert_string_equal(leat_rtcp_type_text(number, 30), text);
    LEAT_RTCP_TYPE_LIST(CHECK_TYPE)
#undef CHECK_TYPE
    assert_string_equal(leat_rtcp_type_text(192, 0), "unknown");
}

static void what_does_not_fit_is_not_begun(void **state)
{
    leat_rtcp_sdes_item item = {1, 1, text("abc")};
    leat_rtcp_sender_info info = {1, 2, 3, 4, 5};
    const uint16_t seq = 1;

    (void)state;
    for (size_t cap = 0; cap < 12; cap++) {
        leat_rtcp_writer_init(&w, out, 8 + cap);
        assert_int_equal(leat_rtcp_write_rr(&w, 1, NULL, 0), LEAT_OK);
        assert_int_equal(leat_rtcp_write_sr(&w, &info, NULL, 0), LEAT_ERR_TRUNCATED);
        assert_int_equal(leat_rtcp_write_sdes(&w, &item, 1), LEAT_ERR_TRUNCATED);
        assert_int_equal(leat_rtcp_write_nack(&w, 1, 2, &seq, 1), LEAT_ERR_TRUNCATED);
        assert_int_equal(leat_rtcp_write_pli(&w, 1, 2), LEAT_ERR_TRUNCATED);
        assert_int_equal(w.len, 8);
    }
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        case_of(a_sender_report_is_written_and_read),
        case_of(a_receiver_report_is_written_and_read),
        case_of(descriptions_are_written_and_read),
        case_of(descriptions_that_are_cut_short_end_with_an_error),
        case_of(goodbyes_are_written_and_read),
        case_of(nacks_pair_numbers_that_lie_close),
        case_of(nacks_of_random_numbers_ask_for_the_same),
        case_of(requests_for_pictures_are_written_and_read),
        case_of(datagrams_are_checked_as_a_whole),
        case_of(a_walk_says_where_it_stopped),
        case_of(bodies_too_short_for_their_kind_are_refused),
        case_of(a_packet_is_not_read_as_another_kind),
        case_of(every_kind_has_a_text),
        case_of(what_does_not_fit_is_not_begun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
