/* tests/unit/roq/test_send.c: packets from a client to a server in every mode, over paths that
 * lose, block, or are too narrow.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "roq/roq.h"
#include "world.h"

static world w;

/* Media as an encoder gives it: `frames` of them, `packets` each, 30 a second. */
static uint16_t send_frames(unsigned frames, unsigned packets, size_t len, uint16_t seq)
{
    for (unsigned i = 0; i < frames; i++) {
        for (unsigned k = 0; k < packets; k++, seq++) {
            assert_int_equal(world_send(&w, seq, i * 3000, k + 1 == packets, len), LEAT_OK);
        }
        world_run(&w, LEAT_SECOND / 30);
    }
    return seq;
}

static leat_roq_stats stats_of(leat_roq_flow *flow)
{
    leat_roq_stats stats;

    leat_roq_flow_stats(flow, &stats);
    return stats;
}

static void every_mode_carries_packets(void **state)
{
    static const uint64_t streams[LEAT_ROQ_MODES] = {0, 60, 20, 1};

    (void)state;
    for (int mode = 0; mode < LEAT_ROQ_MODES; mode++) {
        leat_roq_stats stats;

        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        world_connect(&w);
        send_frames(20, 3, 1000, 65500);
        world_run(&w, 300 * LEAT_MILLISECOND);
        assert_int_equal(w.got_count, 60);
        for (size_t i = 0; i < 60; i++) {
            assert_int_equal(w.got[i].seq, (uint16_t)(65500 + i));
            assert_int_equal(w.got[i].stream, mode != LEAT_ROQ_MODE_DATAGRAM);
        }
        stats = stats_of(w.flow);
        assert_int_equal(stats.streams_opened, streams[mode]);
        assert_int_equal(stats.streams_reset, 0);
        assert_int_equal(stats.packets_acked, 60);
        assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_ACKED], 60);
        assert_int_equal(w.result_count, 60);
        world_free(&w);
    }
}

/* No packet follows, no deadline comes and the stream stays open: the acknowledgement alone tells.
 */
static void the_last_packet_of_a_flow_is_told_of(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    w.flow_settings.lifetime = 0;
    world_connect(&w);
    assert_int_equal(world_send(&w, 7, 99, true, 100), LEAT_OK);
    world_run(&w, 300 * LEAT_MILLISECOND);
    assert_int_equal(w.result_count, 1);
    assert_int_equal(w.results[0].outcome, LEAT_ROQ_OUTCOME_ACKED);
    assert_int_equal(w.results[0].seq, 7);
    world_free(&w);
}

/* More of them than there may be streams: those that ended make room for others. */
static void frames_without_a_marker_end_with_the_next(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FRAME;
    w.flow_settings.lifetime = 0;
    w.setup.server.conn.max_streams_uni = 4;
    world_connect(&w);
    for (uint16_t i = 0; i < 30; i++) {
        assert_int_equal(world_send(&w, i, i / 3 * 3000u, false, 500), LEAT_OK);
    }
    world_run(&w, LEAT_SECOND);
    assert_int_equal(w.got_count, 30);
    assert_int_equal(stats_of(w.flow).streams_opened, 10);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_ACKED], 30); /* those of the open stream, too */
    world_free(&w);
}

static leat_err send_rtcp(void)
{
    static const uint8_t report[] = {0x80, 201, 0, 1, 0, 0, 0, 7};

    return leat_roq_send(w.flow, (leat_span){report, sizeof report}, NULL);
}

/* RTCP belongs to no frame: each on a stream of its own, which ends with it. */
static void rtcp_among_frames_ends_its_stream(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FRAME;
    w.flow_settings.lifetime = 0;
    w.setup.server.conn.max_streams_uni = 4;
    world_connect(&w);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_rtcp(), LEAT_OK);
    }
    world_run(&w, LEAT_SECOND);
    assert_int_equal(w.got_count, 10);
    assert_true(w.got[9].rtcp);
    assert_int_equal(stats_of(w.flow).streams_opened, 10);
    assert_null(w.flow->outs); /* closed, all of them */
    world_free(&w);
}

/* What is queued first goes last. */
static void a_flows_urgency_is_that_of_its_streams(void **state)
{
    leat_roq_flow *urgent;

    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    w.flow_settings.urgency = 4;
    w.server_opens = true;
    world_connect(&w);
    w.flow_settings.urgency = 2;
    assert_int_equal(leat_roq_flow_open(w.client, 2, &w.flow_settings, &urgent), LEAT_OK);
    for (uint16_t i = 0; i < 10; i++) {
        assert_int_equal(world_send(&w, i, i, true, 1000), LEAT_OK);
    }
    for (uint16_t i = 0; i < 5; i++) {
        assert_int_equal(leat_roq_send(urgent, world_rtp(i, i, true, 1000), NULL), LEAT_OK);
    }
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 15);
    for (size_t i = 0; i < 15; i++) {
        assert_int_equal(w.got[i].flow, i < 5 ? 2 : 1);
    }
    world_free(&w);
}

/* A flow's packets may take any way, each its own. */
static void modes_may_be_mixed(void **state)
{
    leat_roq_send_options options = {.use_mode = true};

    (void)state;
    world_init(&w);
    world_connect(&w);
    for (uint16_t i = 0; i < 40; i++) {
        options.mode = (leat_roq_mode)(i % LEAT_ROQ_MODES);
        options.tag = i;
        assert_int_equal(leat_roq_send(w.flow, world_rtp(i, i, true, 800), &options), LEAT_OK);
    }
    world_run(&w, 300 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 40);
    assert_int_equal(stats_of(w.flow).streams_opened, 21);
    world_free(&w);
}

static void what_is_no_rtp_is_refused(void **state)
{
    static const uint8_t bad[20] = {0x40, 0x60};

    (void)state;
    world_init(&w);
    world_connect(&w);
    assert_int_equal(leat_roq_send(w.flow, (leat_span){bad, 20}, NULL), LEAT_ERR_INVALID);
    assert_int_equal(leat_roq_send(w.flow, (leat_span){bad, 0}, NULL), LEAT_ERR_INVALID);
    assert_int_equal(leat_roq_send(w.flow, (leat_span){(const uint8_t *)"\x80\xc8", 2}, NULL),
                     LEAT_ERR_INVALID);
    world_free(&w);
}

/* The count of SRTP's padding is encrypted: it may read as anything. */
static void padding_is_not_looked_at(void **state)
{
    uint8_t packet[20] = {0xa0, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0x12, 0x34};

    (void)state;
    world_init(&w);
    world_connect(&w);
    for (unsigned last = 0; last < 256; last += 255) {
        packet[19] = (uint8_t)last;
        assert_int_equal(leat_roq_send(w.flow, (leat_span){packet, 20}, NULL), LEAT_OK);
    }
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    world_free(&w);
}

static void too_long_for_a_datagram_goes_on_a_stream(void **state)
{
    (void)state;
    world_init(&w);
    world_connect(&w);
    assert_int_equal(world_send(&w, 1, 1, true, 4000), LEAT_OK);
    assert_int_equal(world_send(&w, 2, 2, true, 400), LEAT_OK);
    world_run(&w, 300 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    assert_int_equal(stats_of(w.flow).packets_oversize, 1);
    assert_int_equal(stats_of(w.flow).streams_opened, 1);
    world_free(&w);
}

/* With its identifier before it: of one byte here, of four there. */
static void what_fits_a_datagram_is_measured_with_its_identifier(void **state)
{
    leat_roq_flow *flow;
    size_t max;

    (void)state;
    world_init(&w);
    w.server_opens = true;
    world_connect(&w);
    assert_int_equal(leat_roq_flow_open(w.client, 1 << 20, &w.flow_settings, &flow), LEAT_OK);
    max = leat_conn_datagram_max(w.pair.conn);
    assert_int_equal(world_send(&w, 1, 1, true, max - 1), LEAT_OK);
    assert_int_equal(leat_roq_send(flow, world_rtp(2, 2, true, max - 4), NULL), LEAT_OK);
    assert_int_equal(stats_of(w.flow).packets_oversize, 0);
    assert_int_equal(stats_of(flow).packets_oversize, 0);
    assert_int_equal(world_send(&w, 3, 3, true, max), LEAT_OK);
    assert_int_equal(leat_roq_send(flow, world_rtp(4, 4, true, max - 3), NULL), LEAT_OK);
    assert_int_equal(stats_of(w.flow).packets_oversize, 1);
    assert_int_equal(stats_of(flow).packets_oversize, 1);
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 4);
    world_free(&w);
}

/* As in RFC 3550 (s6.4.1): in 1/256, rounded down; all is 255. */
static void the_fraction_lost_is_in_256ths(void **state)
{
    leat_roq_report report;

    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_PACKET;
    world_connect(&w);
    assert_int_equal(world_send(&w, 1, 1, true, 100), LEAT_OK);
    world_run(&w, 150 * LEAT_MILLISECOND);
    w.dark = true;
    for (uint16_t i = 2; i < 5; i++) {
        assert_int_equal(world_send(&w, i, i, true, 100), LEAT_OK);
    }
    world_run(&w, 300 * LEAT_MILLISECOND);
    leat_roq_flow_report(w.flow, &report);
    assert_int_equal(report.lost, 3);
    assert_int_equal(report.acked, 1);
    assert_int_equal(report.fraction_lost, 192);
    assert_int_equal(world_send(&w, 5, 5, true, 100), LEAT_OK);
    world_run(&w, 300 * LEAT_MILLISECOND);
    leat_roq_flow_report(w.flow, &report);
    assert_int_equal(report.fraction_lost, 255);
    world_free(&w);
}

static void lost_datagrams_are_told_and_reported(void **state)
{
    leat_roq_report report;
    size_t lost;

    (void)state;
    world_init(&w);
    world_connect(&w);
    w.drop_nth = 10;
    send_frames(100, 2, 900, 10);
    w.drop_nth = 0;
    world_run(&w, LEAT_SECOND);
    lost = 200 - w.got_count;
    assert_in_range(lost, 10, 30);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LOST], lost);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_ACKED], w.got_count);
    leat_roq_flow_report(w.flow, &report);
    assert_int_equal(report.lost, lost);
    assert_int_equal(report.acked, w.got_count);
    assert_int_equal(report.fraction_lost, lost * 256 / 200);
    assert_int_equal(report.highest_seq, w.got[w.got_count - 1].seq);
    assert_in_range(report.rtt, 39 * LEAT_MILLISECOND, 70 * LEAT_MILLISECOND);
    leat_roq_flow_report(w.flow, &report);
    assert_int_equal(report.fraction_lost, 0); /* since the last one */
    world_free(&w);
}

static void streams_repair_what_the_path_loses(void **state)
{
    (void)state;
    for (int mode = LEAT_ROQ_MODE_PACKET; mode < LEAT_ROQ_MODES; mode++) {
        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        w.flow_settings.lifetime = 2 * LEAT_SECOND;
        world_connect(&w);
        w.drop_nth = 10;
        send_frames(60, 3, 1000, 0);
        world_run(&w, 2 * LEAT_SECOND);
        assert_int_equal(w.got_count, 180);
        world_free(&w);
    }
}

/* One frame of 500 kB on a stream that takes 100 kB at a time, through a narrow path. */
static void a_large_frame_waits_and_is_not_lost(void **state)
{
    (void)state;
    for (int mode = LEAT_ROQ_MODE_PACKET; mode < LEAT_ROQ_MODES; mode++) {
        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        w.flow_settings.lifetime = 0;
        w.setup.conn.send_buffer = 100000;
        w.setup.server.conn.max_streams_uni = 16;
        world_connect(&w);
        w.pair.rate = 4000000;
        w.pair.most_wait = 100 * LEAT_MILLISECOND;
        for (uint16_t i = 0; i < 500; i++) {
            assert_int_equal(world_send(&w, i, 7, i == 499, 1000), LEAT_OK);
        }
        assert_true(stats_of(w.flow).queue_packets > 0);
        world_run(&w, 5 * LEAT_SECOND);
        assert_int_equal(w.got_count, 500);
        assert_int_equal(stats_of(w.flow).queue_packets, 0);
        world_free(&w);
    }
}

static void a_packet_larger_than_the_stream_takes_goes_whole(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    w.flow_settings.lifetime = 0;
    w.setup.conn.send_buffer = 10000;
    w.setup.server.conn.max_stream_data_uni = 16384;
    world_connect(&w);
    for (uint16_t i = 0; i < 4; i++) {
        assert_int_equal(world_send(&w, i, i, true, 200000), LEAT_OK);
    }
    world_run(&w, 10 * LEAT_SECOND);
    assert_int_equal(w.got_count, 4);
    assert_int_equal(w.big, 200000);
    world_free(&w);
}

static void a_queue_kept_for_ever_holds_its_sender_back(void **state)
{
    leat_err err;
    uint16_t sent = 0;

    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    w.flow_settings.lifetime = 0;
    w.flow_settings.queue_packets = 64;
    w.setup.conn.send_buffer = 20000;
    world_connect(&w);
    w.dark = true;
    while ((err = world_send(&w, sent, sent, true, 1000)) == LEAT_OK) {
        sent++;
        assert_true(sent < 200);
    }
    assert_int_equal(err, LEAT_ERR_BLOCKED);
    assert_int_equal(stats_of(w.flow).queue_packets, 64);
    assert_int_equal(w.writable, 0);
    w.dark = false;
    world_run(&w, 5 * LEAT_SECOND);
    assert_int_equal(w.writable, 1);
    assert_int_equal(w.got_count, sent);
    world_free(&w);
}

/* Both kinds: what is kept for ever holds its sender back, what has a lifetime makes room. */
static void a_queue_holds_its_bytes_and_no_more(void **state)
{
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        leat_err err = LEAT_OK;

        world_init(&w);
        w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
        w.flow_settings.lifetime = forever ? 0 : LEAT_SECOND;
        w.flow_settings.queue_bytes = 64000;
        w.setup.conn.send_buffer = 20000;
        world_connect(&w);
        w.dark = true;
        for (uint16_t i = 0; i < 200 && err == LEAT_OK; i++) {
            err = world_send(&w, i, i, true, 1000);
        }
        assert_int_equal(err, forever ? LEAT_ERR_BLOCKED : LEAT_OK);
        assert_int_equal(stats_of(w.flow).queue_bytes, 64000);
        assert_int_equal(stats_of(w.flow).packets_overflow > 0, !forever);
        assert_int_equal(world_send(&w, 300, 300, true, 64001), LEAT_ERR_LIMIT);
        assert_int_equal(world_send(&w, 300, 300, true, 64000),
                         forever ? LEAT_ERR_BLOCKED : LEAT_OK);
        assert_int_equal(stats_of(w.flow).queue_bytes, 64000);
        w.dark = false;
        world_run(&w, 5 * LEAT_SECOND);
        assert_int_equal(w.writable, forever);
        world_free(&w);
    }
}

/* ---- late ---- */

enum { FRAME_PACKETS = 8, FRAME_PACKET = 1000 };

/* One frame of FRAME_PACKETS, every 30th of a second. */
static uint16_t send_frame(uint32_t frame, uint16_t seq)
{
    for (unsigned k = 0; k < FRAME_PACKETS; k++, seq++) {
        assert_int_equal(world_send(&w, seq, frame * 3000, k + 1 == FRAME_PACKETS, FRAME_PACKET),
                         LEAT_OK);
    }
    world_run(&w, LEAT_SECOND / 30);
    return seq;
}

typedef struct whole {
    size_t count;
    leat_time slowest, sum; /* from a frame's sending to its last packet */
} whole;

/* Frames of which every packet has come, of the first `frames`: one every 30th of a second since
 * `began`. */
static whole whole_frames(uint32_t frames, leat_time began)
{
    static uint8_t packets[1024];
    static leat_time done[1024];
    whole all = {0, 0, 0};

    memset(packets, 0, sizeof packets);
    for (size_t i = 0; i < w.got_count; i++) {
        uint32_t frame = w.got[i].timestamp / 3000;

        assert_in_range(frame, 0, 1023);
        packets[frame]++;
        done[frame] = w.got[i].at > done[frame] || packets[frame] == 1 ? w.got[i].at : done[frame];
    }
    for (uint32_t i = 0; i < frames; i++) {
        if (packets[i] == FRAME_PACKETS) {
            leat_time took = done[i] - (began + i * (LEAT_SECOND / 30));

            all.count++;
            all.sum += took;
            all.slowest = took > all.slowest ? took : all.slowest;
        }
    }
    return all;
}

/* 1.92 Mbit/s of media into 1.2 Mbit/s for ten seconds, then a quarter of it. */
static void outrun(leat_roq_mode mode, leat_time lifetime)
{
    leat_conn_stats_data conn;
    leat_roq_stats stats;
    uint16_t seq = 0;
    leat_time began;
    whole all;

    world_init(&w);
    w.flow_settings.mode = mode;
    w.flow_settings.lifetime = lifetime;
    w.setup.server.conn.max_streams_uni = 512;
    world_connect(&w);
    w.pair.rate = 1200000;
    w.pair.most_wait = 100 * LEAT_MILLISECOND;
    began = w.pair.now;
    for (uint32_t i = 0; i < 300; i++) {
        seq = send_frame(i, seq);
        leat_conn_stats(w.pair.conn, &conn);
        assert_true(conn.memory_used < 4 << 20);
    }
    stats = stats_of(w.flow);
    all = whole_frames(300, began);
    print_message("%s, %.0f ms: %zu whole frames of 187, mean %.0f ms, slowest %.0f ms\n",
                  leat_roq_mode_name(mode), (double)lifetime / 1e6, all.count,
                  (double)all.sum / (double)all.count / 1e6, (double)all.slowest / 1e6);
    assert_true(stats.queue_bytes < 300000);
    /* What arrives is known to have, but for the last, and on one stream for some behind the late.
     */
    assert_true(stats.packets_acked >= w.got_count * (mode == LEAT_ROQ_MODE_FLOW ? 80 : 95) / 100);
    assert_true(all.count >= 131); /* 70 % of the 187 that the path has room for */
    assert_true(all.sum < all.count * (lifetime + 15 * LEAT_MILLISECOND));
    /* What was begun in time and left at the end of its lifetime has a full path before it. */
    assert_true(all.slowest <=
                lifetime + (mode == LEAT_ROQ_MODE_DATAGRAM ? 40 : 140) * LEAT_MILLISECOND);
    /* It recovers: what is sent slowly afterwards comes, all of it, and in time. */
    world_run(&w, LEAT_SECOND);
    for (uint32_t i = 0; i < 60; i++) {
        for (unsigned k = 0; k < 2; k++, seq++) {
            assert_int_equal(world_send(&w, seq, (400 + i) * 3000, k == 1, 1000), LEAT_OK);
        }
        world_run(&w, LEAT_SECOND / 30);
    }
    world_run(&w, LEAT_SECOND / 2);
    assert_true(w.got[w.got_count - 1].at < w.pair.now - 300 * LEAT_MILLISECOND);
    for (size_t i = 0; i < 120; i++) {
        assert_int_equal(w.got[w.got_count - 120 + i].timestamp, (400 + i / 2) * 3000);
    }
    world_free(&w);
}

static void a_sender_that_outruns_the_path_recovers_with_datagrams(void **state)
{
    (void)state;
    outrun(LEAT_ROQ_MODE_DATAGRAM, 300 * LEAT_MILLISECOND);
    outrun(LEAT_ROQ_MODE_DATAGRAM, 200 * LEAT_MILLISECOND);
}

static void a_sender_that_outruns_the_path_recovers_with_frames(void **state)
{
    (void)state;
    outrun(LEAT_ROQ_MODE_FRAME, 300 * LEAT_MILLISECOND);
    outrun(LEAT_ROQ_MODE_FRAME, 200 * LEAT_MILLISECOND);
}

static void a_sender_that_outruns_the_path_recovers_with_packets(void **state)
{
    (void)state;
    outrun(LEAT_ROQ_MODE_PACKET, 300 * LEAT_MILLISECOND);
    outrun(LEAT_ROQ_MODE_PACKET, 200 * LEAT_MILLISECOND);
}

static void a_sender_that_outruns_the_path_recovers_with_one_stream(void **state)
{
    (void)state;
    outrun(LEAT_ROQ_MODE_FLOW, 300 * LEAT_MILLISECOND);
    outrun(LEAT_ROQ_MODE_FLOW, 200 * LEAT_MILLISECOND);
}

/* Media of 95 % of what a path of 20 ms carries, a frame every 30th of a second: of the link that
 * arrives in a second, in percent. The window has a second before that. */
static double share_of(uint64_t rate, leat_roq_mode mode)
{
    size_t packets = (size_t)(rate / 8 * 95 / 100 / 30 / FRAME_PACKET);
    uint64_t before = 0;
    uint16_t seq = 0;

    world_init(&w);
    w.flow_settings.mode = mode;
    w.flow_settings.results = false;
    w.flow_settings.queue_packets = 65536;
    w.flow_settings.queue_bytes = 64 << 20;
    w.setup.conn.send_buffer = 8 << 20; /* neither it nor credit is what holds QUIC back */
    w.setup.server.conn.max_data = 16 << 20;
    w.setup.server.conn.max_stream_data_uni = 16 << 20;
    w.setup.delay = 10 * LEAT_MILLISECOND;
    world_connect(&w);
    w.pair.rate = rate;
    w.pair.most_wait = 20 * LEAT_MILLISECOND;
    for (uint32_t i = 0; i < 60; i++) {
        before = i == 30 ? w.got_bytes : before;
        for (size_t k = 0; k < packets; k++, seq++) {
            assert_int_equal(world_send(&w, seq, i * 3000, k + 1 == packets, FRAME_PACKET),
                             LEAT_OK);
        }
        world_run(&w, LEAT_SECOND / 30);
        w.got_count = 0;
    }
    before = w.got_bytes - before;
    world_free(&w);
    return (double)before * 8 * 100 / (double)rate;
}

/* What waits in the flow's queue is there when QUIC can send it: the gate holds nothing up. */
static void a_fast_path_is_filled(void **state)
{
    static const leat_roq_mode modes[] = {LEAT_ROQ_MODE_FRAME, LEAT_ROQ_MODE_DATAGRAM,
                                          LEAT_ROQ_MODE_FLOW};

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (uint64_t mbit = 100; mbit <= 500; mbit += 400) {
            double share = share_of(mbit * 1000000, modes[i]);

            print_message("%s, %u Mbit/s: %.1f %% of it\n", leat_roq_mode_name(modes[i]),
                          (unsigned)mbit, share);
            assert_true(share >= 90);
        }
    }
}

/* Two flows that bring as much as the path carries each, in other ways: neither starves. */
static void flows_share_a_narrow_path(void **state)
{
    (void)state;
    for (int pair = 0; pair < LEAT_ROQ_MODES * LEAT_ROQ_MODES; pair++) {
        leat_roq_mode one = (leat_roq_mode)(pair / LEAT_ROQ_MODES);
        leat_roq_mode other = (leat_roq_mode)(pair % LEAT_ROQ_MODES);
        leat_roq_flow *second;
        size_t got[2] = {0, 0};
        uint16_t seq = 0;

        world_init(&w);
        w.flow_settings.mode = one;
        w.server_opens = true;
        w.setup.server.conn.max_streams_uni = 512;
        world_connect(&w);
        w.flow_settings.mode = other;
        assert_int_equal(leat_roq_flow_open(w.client, 2, &w.flow_settings, &second), LEAT_OK);
        w.pair.rate = 1200000;
        w.pair.most_wait = 100 * LEAT_MILLISECOND;
        for (uint32_t i = 0; i < 150; i++) {
            for (unsigned k = 0; k < 5; k++, seq++) {
                assert_int_equal(world_send(&w, seq, i * 3000, k == 4, 1000), LEAT_OK);
                assert_int_equal(
                    leat_roq_send(second, world_rtp(seq, i * 3000, k == 4, 1000), NULL), LEAT_OK);
            }
            world_run(&w, LEAT_SECOND / 30);
        }
        world_run(&w, LEAT_SECOND / 2);
        for (size_t i = 0; i < w.got_count; i++) {
            got[w.got[i].flow - 1]++;
        }
        print_message("%s %zu, %s %zu\n", leat_roq_mode_name(one), got[0],
                      leat_roq_mode_name(other), got[1]);
        assert_true(got[0] + got[1] > 470); /* of the 625 that there is room for */
        assert_true(got[0] > got[1] / 2 && got[1] > got[0] / 2);
        world_free(&w);
    }
}

/* The path goes dark in the middle of a frame: its stream is reset, and what comes after it goes on
 * others; in mode FLOW on another one. */
static void a_late_frame_is_cancelled_by_a_reset(void **state)
{
    (void)state;
    for (int mode = LEAT_ROQ_MODE_PACKET; mode < LEAT_ROQ_MODES; mode++) {
        leat_roq_stats stats;

        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        world_connect(&w);
        send_frames(5, 3, 1000, 0);
        w.dark = true;
        for (uint16_t i = 0; i < 3; i++) {
            assert_int_equal(world_send(&w, (uint16_t)(15 + i), 90000, i == 2, 1000), LEAT_OK);
        }
        world_run(&w, 280 * LEAT_MILLISECOND);
        stats = stats_of(w.flow);
        assert_int_equal(stats.packets_late, 3);
        assert_int_equal(stats.streams_reset, mode == LEAT_ROQ_MODE_PACKET ? 3 : 1);
        assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 3);
        w.dark = false;
        send_frames(5, 3, 1000, 18);
        world_run(&w, 2 * LEAT_SECOND);
        for (size_t i = 0; i < w.got_count; i++) {
            assert_true(w.got[i].timestamp != 90000);
        }
        assert_int_equal(w.got_count, 30);
        world_free(&w);
    }
}

/* What lies behind it on the stream and was sent is not sent again (s5.2.2), though it has time. */
static void what_was_sent_behind_a_late_frame_is_not_sent_twice(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    world_connect(&w);
    w.dark = true;
    assert_int_equal(world_send(&w, 1, 3000, true, 1000), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(world_send(&w, 2, 6000, true, 1000), LEAT_OK);
    world_run(&w, 130 * LEAT_MILLISECOND);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 2);
    w.dark = false;
    world_run(&w, LEAT_SECOND);
    assert_int_equal(w.got_count, 0);
    assert_int_equal(stats_of(w.flow).streams_opened, 1);
    world_free(&w);
}

/* A packet of a frame that was given up is not worth sending. */
static void the_rest_of_a_dead_frame_is_not_sent(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FRAME;
    world_connect(&w);
    w.dark = true;
    assert_int_equal(world_send(&w, 1, 5, false, 1000), LEAT_OK);
    world_run(&w, 300 * LEAT_MILLISECOND);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 1);
    assert_int_equal(world_send(&w, 2, 5, true, 1000), LEAT_OK);
    world_run(&w, 10 * LEAT_MILLISECOND);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 2);
    assert_int_equal(stats_of(w.flow).packets_sent, 1);
    w.dark = false;
    world_run(&w, LEAT_SECOND);
    assert_int_equal(w.got_count, 0);
    world_free(&w);
}

/* The same of a frame in datagrams of which QUIC had some when they became late. */
static void the_rest_of_a_late_frame_in_datagrams_is_not_sent(void **state)
{
    uint64_t sent;
    uint16_t seq = 0;

    (void)state;
    world_init(&w);
    world_connect(&w);
    w.dark = true;
    for (; seq < 12; seq++) { /* a window */
        assert_int_equal(world_send(&w, seq, 3000, seq == 11, 1000), LEAT_OK);
        world_run(&w, 2 * LEAT_MILLISECOND);
    }
    for (; seq < 17; seq++) { /* and five that wait at QUIC */
        assert_int_equal(world_send(&w, seq, 6000, false, 1000), LEAT_OK);
    }
    assert_int_equal(stats_of(w.flow).queue_packets, 0);
    world_run(&w, 300 * LEAT_MILLISECOND);
    w.dark = false;
    world_run(&w, LEAT_SECOND);
    assert_in_range(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 1, 4);
    sent = stats_of(w.flow).packets_sent;
    assert_int_equal(world_send(&w, seq++, 6000, true, 1000), LEAT_OK);
    assert_int_equal(stats_of(w.flow).packets_sent, sent);
    assert_int_equal(world_send(&w, seq++, 9000, true, 1000), LEAT_OK);
    assert_int_equal(stats_of(w.flow).packets_sent, sent + 1);
    world_free(&w);
}

/* STOP_SENDING: the stream's packets are not sent again, newer ones go on another. */
static void a_receiver_may_skip(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FLOW;
    world_connect(&w);
    send_frames(3, 3, 1000, 0);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 9);
    leat_roq_flow_skip(leat_roq_flow_find(w.server, 1));
    world_run(&w, 100 * LEAT_MILLISECOND);
    send_frames(3, 3, 1000, 9);
    world_run(&w, 200 * LEAT_MILLISECOND);
    assert_int_equal(stats_of(w.flow).streams_opened, 2);
    assert_int_equal(w.got_count, 18);
    world_free(&w);
}

/* The same of a frame's own stream: the rest of that frame is of no use to a receiver who does not
 * want what came before it; the next one goes on. */
static void a_frame_that_is_stopped_is_not_continued(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_FRAME;
    world_connect(&w);
    assert_int_equal(world_send(&w, 0, 3000, false, 1000), LEAT_OK);
    assert_int_equal(world_send(&w, 1, 3000, false, 1000), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    leat_roq_flow_skip(leat_roq_flow_find(w.server, 1));
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(world_send(&w, 2, 3000, true, 1000), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 2);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_STOPPED], 1);
    assert_int_equal(stats_of(w.flow).streams_opened, 1);
    assert_int_equal(world_send(&w, 3, 6000, true, 1000), LEAT_OK);
    world_run(&w, 100 * LEAT_MILLISECOND);
    assert_int_equal(w.got_count, 3);
    world_free(&w);
}

static void what_is_on_a_stopped_stream_is_told_of_as_stopped(void **state)
{
    (void)state;
    for (int mode = LEAT_ROQ_MODE_FRAME; mode <= LEAT_ROQ_MODE_FLOW; mode++) {
        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        world_connect(&w);
        assert_int_equal(world_send(&w, 0, 3000, false, 1000), LEAT_OK);
        world_run(&w, 100 * LEAT_MILLISECOND);
        assert_int_equal(w.got_count, 1);
        w.dark = true;
        assert_int_equal(world_send(&w, 1, 3000, false, 1000), LEAT_OK);
        world_run(&w, 10 * LEAT_MILLISECOND);
        leat_roq_flow_skip(leat_roq_flow_find(w.server, 1));
        world_run(&w, 50 * LEAT_MILLISECOND);
        assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_STOPPED], 1);
        assert_int_equal(stats_of(w.flow).packets_stopped, 1);
        assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 0);
        world_free(&w);
    }
}

static void packets_may_have_lifetimes_of_their_own(void **state)
{
    leat_roq_send_options options = {.lifetime = 50 * LEAT_MILLISECOND};

    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_PACKET;
    w.flow_settings.lifetime = 0;
    world_connect(&w);
    w.dark = true;
    assert_int_equal(leat_roq_send(w.flow, world_rtp(1, 1, true, 500), &options), LEAT_OK);
    assert_int_equal(world_send(&w, 2, 2, true, 500), LEAT_OK);
    world_run(&w, 150 * LEAT_MILLISECOND);
    assert_int_equal(w.outcomes[LEAT_ROQ_OUTCOME_LATE], 1);
    w.dark = false;
    world_run(&w, 2 * LEAT_SECOND);
    assert_int_equal(w.got_count, 1);
    assert_int_equal(w.got[0].seq, 2);
    world_free(&w);
}

/* ---- streams that may not be opened ---- */

static void packets_wait_for_streams(void **state)
{
    (void)state;
    world_init(&w);
    w.flow_settings.mode = LEAT_ROQ_MODE_PACKET;
    w.flow_settings.lifetime = 0;
    w.setup.server.conn.max_streams_uni = 4;
    world_connect(&w);
    for (uint16_t i = 0; i < 100; i++) {
        assert_int_equal(world_send(&w, i, i, true, 200), LEAT_OK);
    }
    assert_true(stats_of(w.flow).queue_packets >= 90);
    world_run(&w, 5 * LEAT_SECOND);
    assert_int_equal(w.got_count, 100);
    world_free(&w);
}

/* ---- ends ---- */

static void a_flow_may_close_with_packets_under_way(void **state)
{
    (void)state;
    for (int mode = 0; mode < LEAT_ROQ_MODES; mode++) {
        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        w.flow_settings.queue_packets = 16;
        world_connect(&w);
        w.dark = true;
        for (uint16_t i = 0; i < 400; i++) {
            assert_int_equal(world_send(&w, i, i, true, 1000), LEAT_OK);
        }
        world_run(&w, 10 * LEAT_MILLISECOND);
        leat_roq_flow_close(w.flow);
        w.flow = NULL;
        leat_roq_check(w.client);
        w.dark = false;
        world_run(&w, 2 * LEAT_SECOND);
        assert_int_equal(leat_roq_flow_open(w.client, 1, &w.flow_settings, &w.flow), LEAT_OK);
        assert_int_equal(world_send(&w, 9, 9, true, 100), LEAT_OK);
        world_run(&w, LEAT_SECOND);
        assert_int_equal(w.got[w.got_count - 1].seq, 9);
        world_free(&w);
    }
}

static void a_session_may_close_with_packets_under_way(void **state)
{
    (void)state;
    for (int mode = 0; mode < LEAT_ROQ_MODES; mode++) {
        world_init(&w);
        w.flow_settings.mode = (leat_roq_mode)mode;
        world_connect(&w);
        for (uint16_t i = 0; i < 400; i++) {
            assert_int_equal(world_send(&w, i, i, true, 1000), LEAT_OK);
        }
        world_run(&w, 30 * LEAT_MILLISECOND);
        leat_roq_close(w.client, LEAT_ROQ_GENERAL_ERROR, "enough");
        assert_int_equal(world_send(&w, 401, 401, true, 1000), LEAT_ERR_CLOSED);
        world_run(&w, LEAT_SECOND);
        assert_true(w.server_closed && w.client_closed);
        assert_int_equal(w.server_close.code, LEAT_ROQ_GENERAL_ERROR);
        world_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_carries_packets),
        cmocka_unit_test(the_last_packet_of_a_flow_is_told_of),
        cmocka_unit_test(frames_without_a_marker_end_with_the_next),
        cmocka_unit_test(rtcp_among_frames_ends_its_stream),
        cmocka_unit_test(a_flows_urgency_is_that_of_its_streams),
        cmocka_unit_test(modes_may_be_mixed),
        cmocka_unit_test(what_is_no_rtp_is_refused),
        cmocka_unit_test(padding_is_not_looked_at),
        cmocka_unit_test(too_long_for_a_datagram_goes_on_a_stream),
        cmocka_unit_test(what_fits_a_datagram_is_measured_with_its_identifier),
        cmocka_unit_test(the_fraction_lost_is_in_256ths),
        cmocka_unit_test(lost_datagrams_are_told_and_reported),
        cmocka_unit_test(streams_repair_what_the_path_loses),
        cmocka_unit_test(a_large_frame_waits_and_is_not_lost),
        cmocka_unit_test(a_packet_larger_than_the_stream_takes_goes_whole),
        cmocka_unit_test(a_queue_kept_for_ever_holds_its_sender_back),
        cmocka_unit_test(a_queue_holds_its_bytes_and_no_more),
        cmocka_unit_test(a_sender_that_outruns_the_path_recovers_with_datagrams),
        cmocka_unit_test(a_sender_that_outruns_the_path_recovers_with_frames),
        cmocka_unit_test(a_sender_that_outruns_the_path_recovers_with_packets),
        cmocka_unit_test(a_sender_that_outruns_the_path_recovers_with_one_stream),
        cmocka_unit_test(a_fast_path_is_filled),
        cmocka_unit_test(flows_share_a_narrow_path),
        cmocka_unit_test(a_late_frame_is_cancelled_by_a_reset),
        cmocka_unit_test(what_was_sent_behind_a_late_frame_is_not_sent_twice),
        cmocka_unit_test(the_rest_of_a_dead_frame_is_not_sent),
        cmocka_unit_test(the_rest_of_a_late_frame_in_datagrams_is_not_sent),
        cmocka_unit_test(a_receiver_may_skip),
        cmocka_unit_test(a_frame_that_is_stopped_is_not_continued),
        cmocka_unit_test(what_is_on_a_stopped_stream_is_told_of_as_stopped),
        cmocka_unit_test(packets_may_have_lifetimes_of_their_own),
        cmocka_unit_test(packets_wait_for_streams),
        cmocka_unit_test(a_flow_may_close_with_packets_under_way),
        cmocka_unit_test(a_session_may_close_with_packets_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
