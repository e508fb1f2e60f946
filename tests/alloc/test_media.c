/* tests/alloc/test_media.c: media feedback costs no heap: nothing in the process allocates while
 * packets are parsed, recorded, reported, resolved, asked for again, kept and played, with loss,
 * reordering and leaps.
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

#include <leat/ccfb.h>
#include <leat/estimate.h>
#include <leat/jitter.h>
#include <leat/nack.h>
#include <leat/pace.h>
#include <leat/report.h>
#include <leat/twcc.h>

#include "malloc_count.h"

enum { PACKETS = 200000, WARM = 20000, MTU = 1200, STREAMS = 3 };

typedef struct rig {
    leat_mem *mem;
    leat_twcc_sender twcc_sender;
    leat_twcc_recorder twcc;
    leat_ccfb_sender ccfb_sender;
    leat_ccfb_recorder ccfb;
    leat_fb_policy policy;
    leat_nack nack;
    leat_resend resend;
    leat_jitter jitter;
    leat_report_source source;
    leat_report_sender sender;
    leat_estimate estimate;
    leat_pace pace;
    uint64_t noise;
    uint64_t results, played, resent, paced;
} rig;

static rig r;

static uint32_t noise(uint32_t n)
{
    r.noise = r.noise * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((r.noise >> 33) % n);
}

static void start(void)
{
    leat_ccfb_settings ccfb;
    leat_nack_settings nack;
    leat_jitter_settings jitter;

    leat_ccfb_settings_init(&ccfb);
    leat_nack_settings_init(&nack);
    leat_jitter_settings_init(&jitter, 90000);
    assert_int_equal(leat_mem_new(NULL, &r.mem), LEAT_OK);
    assert_int_equal(leat_twcc_sender_init(&r.twcc_sender, r.mem, 0), LEAT_OK);
    assert_int_equal(leat_twcc_recorder_init(&r.twcc, r.mem, 1, 0), LEAT_OK);
    assert_int_equal(leat_ccfb_sender_init(&r.ccfb_sender, r.mem, STREAMS, 0), LEAT_OK);
    assert_int_equal(leat_ccfb_recorder_init(&r.ccfb, r.mem, &ccfb), LEAT_OK);
    leat_fb_policy_init(&r.policy, 50 * LEAT_MILLISECOND, 500);
    assert_int_equal(leat_nack_init(&r.nack, r.mem, &nack), LEAT_OK);
    assert_int_equal(leat_resend_init(&r.resend, r.mem, 256, 1 << 20, 0), LEAT_OK);
    assert_int_equal(leat_jitter_init(&r.jitter, r.mem, &jitter), LEAT_OK);
    leat_report_source_init(&r.source, 0, 90000);
    leat_report_sender_init(&r.sender, 0, 90000);
    assert_int_equal(leat_estimate_init(&r.estimate, NULL, NULL, NULL), LEAT_OK);
    assert_int_equal(leat_pace_init(&r.pace, r.mem, 0, r.estimate.pacing_rate), LEAT_OK);
}

static void finish(void)
{
    leat_pace_free(&r.pace);
    leat_jitter_free(&r.jitter);
    leat_resend_free(&r.resend);
    leat_nack_free(&r.nack);
    leat_ccfb_recorder_free(&r.ccfb);
    leat_ccfb_sender_free(&r.ccfb_sender);
    leat_twcc_recorder_free(&r.twcc);
    leat_twcc_sender_free(&r.twcc_sender);
    leat_mem_free(r.mem);
}

static leat_buf make_packet(uint32_t ssrc, uint16_t seq, leat_time now)
{
    uint8_t number[LEAT_TWCC_EXT];
    leat_rtp_ext ext = {3, {number, sizeof number}};
    leat_rtp_header h = {.ssrc = ssrc,
                         .seq = seq,
                         .timestamp = (uint32_t)(now / 11111),
                         .payload_type = 96,
                         .ext_count = 1,
                         .exts = &ext};
    leat_buf buf;
    size_t len;

    assert_int_equal(leat_buf_take(r.mem, 1000, &buf), LEAT_OK);
    leat_twcc_ext_write(number, leat_twcc_sent(&r.twcc_sender, now, 1000));
    assert_int_equal(leat_rtp_write(&h, buf.data, buf.len, &len), LEAT_OK);
    assert_int_equal(leat_ccfb_sent(&r.ccfb_sender, ssrc, seq, now, 1000), LEAT_OK);
    leat_report_on_sent(&r.sender, h.timestamp, 1000, now);
    leat_estimate_on_sent(&r.estimate, now, 1000);
    return buf;
}

static void receive(leat_buf *buf, leat_time now)
{
    leat_rtp_packet packet;
    leat_span ext;
    uint16_t seq = 0;

    assert_int_equal(leat_rtp_parse((leat_span){buf->data, buf->len}, &packet), LEAT_OK);
    assert_true(leat_rtp_ext_find(&packet, 3, &ext));
    assert_true(leat_twcc_ext_read(ext, &seq));
    leat_twcc_record(&r.twcc, packet.ssrc, seq, now);
    leat_ccfb_record(&r.ccfb, packet.ssrc, packet.seq, now, 1);
    leat_fb_policy_on_packet(&r.policy, now);
    if (packet.ssrc == 0) {
        leat_report_on_packet(&r.source, packet.seq, packet.timestamp, now);
        leat_nack_on_packet(&r.nack, packet.seq, now);
        leat_jitter_push(&r.jitter, &packet, buf, now);
    } else {
        leat_buf_release(buf);
    }
}

static void report(leat_time now)
{
    static uint8_t out[MTU];
    static leat_fb_result results[100];
    leat_twcc_iter twcc;
    leat_ccfb_iter ccfb;
    size_t len, n;

    while ((len = leat_twcc_build(&r.twcc, out, MTU)) > 0) {
        assert_int_equal(leat_twcc_feedback(&r.twcc_sender, (leat_span){out, len}, &twcc), LEAT_OK);
        while ((n = leat_twcc_results(&r.twcc_sender, &twcc, results, 100)) > 0) {
            leat_estimate_on_results(&r.estimate, now, results, n);
            r.results += n;
        }
    }
    do {
        len = leat_ccfb_build(&r.ccfb, now, out, MTU);
        assert_int_equal(leat_ccfb_feedback(&r.ccfb_sender, (leat_span){out, len}, &ccfb), LEAT_OK);
        while ((n = leat_ccfb_results(&r.ccfb_sender, &ccfb, results, 100)) > 0) {
            r.results += n;
        }
    } while (leat_ccfb_pending(&r.ccfb));
    leat_fb_policy_on_sent(&r.policy, now);
}

/* Reports, requests and what answers them. */
static void exchange(leat_time now)
{
    static uint8_t out[MTU];
    leat_rtcp_writer w;
    leat_rtcp_sender_info info;
    leat_rtcp_report block;
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;
    leat_rtcp_nack_iter nack;
    leat_jitter_packet played;
    leat_span again;
    uint16_t seq;

    leat_rtcp_writer_init(&w, out, sizeof out);
    leat_report_sender_info(&r.sender, leat_ntp_from_unix(now), now, &info);
    leat_report_on_sr(&r.source, &info, now);
    if (leat_report_block(&r.source, now, &block)) {
        leat_rtcp_write_sr(&w, &info, &block, 1);
    }
    leat_nack_write(&r.nack, now, 1, 0, &w);
    leat_rtcp_begin(&iter, (leat_span){out, w.len});
    while (leat_rtcp_next(&iter, &packet)) {
        if (leat_rtcp_nack_begin(&nack, &packet) == LEAT_OK) {
            while (leat_rtcp_nack_next(&nack, &seq)) {
                r.resent += leat_resend_find(&r.resend, seq, now, &again);
            }
        }
    }
    while (leat_jitter_pop(&r.jitter, now, &played)) {
        r.played++;
        leat_buf_release(&played.buf);
    }
}

/* Packets wait their turn, of all kinds. */
static void pace(unsigned i, leat_time now)
{
    leat_pace_item item;

    leat_estimate_on_time(&r.estimate, now);
    leat_pace_set_rate(&r.pace, r.estimate.pacing_rate);
    leat_pace_push(&r.pace, (leat_pace_kind)(i % LEAT_PACE_KINDS), &r, 1000, now);
    while (leat_pace_pop(&r.pace, now, &item)) {
        r.paced++;
    }
}

/* One packet on its way: lost, delayed past the next, or after a leap, or just there. */
static void step(unsigned i)
{
    static leat_buf held;
    static uint16_t seqs[STREAMS];
    uint32_t ssrc = i % STREAMS, dice = noise(1000);
    leat_time now = (leat_time)i * 300 * LEAT_MICROSECOND;
    leat_buf buf, copy;

    seqs[ssrc] = (uint16_t)(seqs[ssrc] + (dice == 0 ? 5000 : 1));
    buf = make_packet(ssrc, seqs[ssrc], now);
    copy = leat_buf_slice(&buf, 0, buf.len);
    if (ssrc == 0) {
        leat_resend_keep(&r.resend, seqs[0], now, &copy);
    }
    leat_buf_release(&copy);
    if (dice < 30) {
        leat_buf_release(&buf);
    } else if (dice < 60 && held.len == 0) {
        held = buf;
    } else {
        receive(&buf, now);
        if (held.len > 0) {
            receive(&held, now);
        }
    }
    if (leat_fb_policy_is_due(&r.policy, now)) {
        report(now);
    }
    pace(i, now);
    if (i % 50 == 0) {
        exchange(now);
    }
    if (i == PACKETS - 1) {
        leat_buf_release(&held);
    }
}

static void nothing_on_the_way_allocates(void **state)
{
    leat_malloc_count before, after;
    leat_mem_stats first, last;

    (void)state;
    start();
    for (unsigned i = 0; i < WARM; i++) {
        step(i);
    }
    before = leat_malloc_counted();
    leat_mem_stats_get(r.mem, &first);
    for (unsigned i = WARM; i < PACKETS; i++) {
        step(i);
    }
    after = leat_malloc_counted();
    leat_mem_stats_get(r.mem, &last);
    print_message("%llu results, %llu played, %llu sent again, %llu allocations\n",
                  (unsigned long long)r.results, (unsigned long long)r.played,
                  (unsigned long long)r.resent,
                  (unsigned long long)(leat_malloc_total(after) - leat_malloc_total(before)));
    assert_int_equal(leat_malloc_total(after), leat_malloc_total(before));
    assert_int_equal(after.free, before.free);
    assert_int_equal(last.grown, first.grown);
    assert_true(r.results > 300000);
    assert_true(r.played > 50000);
    assert_true(r.resent > 1000);
    assert_true(r.paced > 10000);
    assert_true(r.estimate.acked_rate > 0);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_on_the_way_allocates)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
