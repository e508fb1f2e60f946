/* tests/cc/media_flow.c: see media_flow.h.
 *
 * A datagram is its number and zeros.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media_flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/time.h"

enum { PACKET = 1200, HEADERS = 40, MTU = 1200, FEEDBACK_EVERY = 50, SSRC = 2 };

#define LIFETIME (200 * LEAT_MILLISECOND) /* that the pacer's queue is long at most */
#define PATIENCE (250 * LEAT_MILLISECOND) /* with feedback */

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "media flow: %s\n", what);
        exit(1);
    }
}

void leat_media_flow_init(leat_media_flow *f, leat_mem *mem, bool ccfb,
                          const leat_media_encoder *encoder)
{
    leat_ccfb_settings settings;

    *f = (leat_media_flow){.encoder = *encoder, .ccfb = ccfb};
    leat_ccfb_settings_init(&settings);
    must(leat_estimate_init(&f->estimate, NULL, NULL, NULL) == LEAT_OK, "no estimate");
    must(leat_twcc_sender_init(&f->twcc_sent, mem, 0) == LEAT_OK, "no memory");
    must(leat_twcc_recorder_init(&f->twcc, mem, 1, 0) == LEAT_OK, "no memory");
    must(leat_ccfb_sender_init(&f->ccfb_sent, mem, settings.streams, 0) == LEAT_OK, "no memory");
    must(leat_ccfb_recorder_init(&f->ccfb_recorder, mem, &settings) == LEAT_OK, "no memory");
    must(leat_pace_init(&f->pace, mem, 0, f->estimate.pacing_rate) == LEAT_OK, "no memory");
    leat_fb_policy_init(&f->policy, FEEDBACK_EVERY * LEAT_MILLISECOND, 0);
}

void leat_media_flow_free(leat_media_flow *f)
{
    leat_twcc_sender_free(&f->twcc_sent);
    leat_twcc_recorder_free(&f->twcc);
    leat_ccfb_sender_free(&f->ccfb_sent);
    leat_ccfb_recorder_free(&f->ccfb_recorder);
    leat_pace_free(&f->pace);
}

/* ---- the receiver ---- */

static void receive_media(leat_media_flow *f, leat_span data, leat_time now)
{
    uint16_t seq = leat_load_u16(data.data);

    f->received += data.len;
    if (f->ccfb) {
        must(leat_ccfb_record(&f->ccfb_recorder, SSRC, seq, now, 0) == LEAT_OK, "not recorded");
    } else {
        leat_twcc_record(&f->twcc, SSRC, seq, now);
    }
    leat_fb_policy_on_packet(&f->policy, now);
}

/* The next part of what there is to tell; its length, 0: nothing more. */
static size_t build(leat_media_flow *f, leat_time now, uint8_t *out, size_t cap)
{
    if (!f->ccfb) {
        return leat_twcc_build(&f->twcc, out, cap);
    }
    return leat_ccfb_pending(&f->ccfb_recorder) ? leat_ccfb_build(&f->ccfb_recorder, now, out, cap)
                                                : 0;
}

static leat_time receiver_turn(leat_media_flow *f, leat_time now, leat_media_send *send, void *user)
{
    uint8_t out[MTU];
    size_t len;

    if (leat_fb_policy_is_due(&f->policy, now)) {
        while ((len = build(f, now, out, sizeof out)) > 0) {
            send(user, 1, out, len);
        }
        leat_fb_policy_on_sent(&f->policy, now);
    }
    return leat_fb_policy_deadline(&f->policy);
}

/* ---- the sender ---- */

static void take_results(leat_media_flow *f, leat_time now, const leat_fb_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        f->lost += results[i].state == LEAT_FB_LOST;
    }
    leat_estimate_on_results(&f->estimate, now, results, n);
}

static void receive_feedback(leat_media_flow *f, leat_span data, leat_time now)
{
    leat_fb_result results[256];
    leat_twcc_iter twcc;
    leat_ccfb_iter ccfb;
    size_t n;

    if (f->ccfb) {
        must(leat_ccfb_feedback(&f->ccfb_sent, data, &ccfb) == LEAT_OK, "bad feedback");
        while ((n = leat_ccfb_results(&f->ccfb_sent, &ccfb, results, 256)) > 0) {
            take_results(f, now, results, n);
        }
    } else {
        must(leat_twcc_feedback(&f->twcc_sent, data, &twcc) == LEAT_OK, "bad feedback");
        while ((n = leat_twcc_results(&f->twcc_sent, &twcc, results, 256)) > 0) {
            take_results(f, now, results, n);
        }
    }
}

void leat_media_flow_recv(leat_media_flow *f, int at, leat_span data, leat_time now)
{
    if (at == 1) {
        receive_media(f, data, now);
    } else {
        receive_feedback(f, data, now);
    }
}

static void encode(leat_media_flow *f, leat_time now)
{
    uint64_t bytes = leat_media_encode(&f->encoder, now, f->estimate.target_rate);

    while (bytes > 0) {
        uint32_t size = (uint32_t)(bytes < PACKET - HEADERS ? bytes : PACKET - HEADERS);

        leat_pace_push(&f->pace, LEAT_PACE_VIDEO, f, size + HEADERS, now);
        bytes -= size;
    }
}

/* The number that the datagram carries. */
static uint16_t number(leat_media_flow *f, leat_time now, uint32_t size)
{
    if (!f->ccfb) {
        return leat_twcc_sent(&f->twcc_sent, now, size);
    }
    must(leat_ccfb_sent(&f->ccfb_sent, SSRC, f->seq, now, size) == LEAT_OK, "not sent");
    return f->seq++;
}

static void send_packet(leat_media_flow *f, uint32_t size, leat_time now, leat_media_send *send,
                        void *user)
{
    uint8_t out[PACKET] = {0};

    leat_store_u16(out, number(f, now, size));
    f->last_sent = now;
    leat_estimate_on_sent(&f->estimate, now, size);
    leat_pace_set_rate(&f->pace, f->estimate.pacing_rate);
    send(user, 0, out, size);
}

/* What is late does not leave: a frame of an encoder that makes more than it may. */
static void drop_late(leat_media_flow *f)
{
    leat_pace_item item;

    while (leat_pace_queue_time(&f->pace) > LIFETIME &&
           leat_pace_drop(&f->pace, LEAT_PACE_VIDEO, &item)) {
    }
}

/* One packet leaves all the same when feedback does not come: it may be lost that it waits for. */
static bool has_room(const leat_media_flow *f, leat_time now)
{
    uint64_t in_flight = f->ccfb ? leat_ccfb_in_flight(&f->ccfb_sent)
                                 : leat_fb_history_in_flight(&f->twcc_sent.sent);

    return in_flight < f->estimate.window || now - f->last_sent >= PATIENCE;
}

static bool wants_padding(const leat_media_flow *f)
{
    return leat_estimate_padding(&f->estimate) > 0 && f->encoder.most == 0;
}

static leat_time sender_turn(leat_media_flow *f, leat_time now, leat_media_send *send, void *user)
{
    leat_pace_item item;
    leat_time next;

    leat_estimate_on_time(&f->estimate, now);
    leat_pace_set_rate(&f->pace, f->estimate.pacing_rate);
    encode(f, now);
    drop_late(f);
    while (has_room(f, now) && leat_pace_pop(&f->pace, now, &item)) {
        send_packet(f, item.size, now, send, user);
    }
    while (wants_padding(f) && has_room(f, now) && leat_pace_room(&f->pace, now) > 0) {
        send_packet(f, PACKET, now, send, user);
        leat_pace_sent(&f->pace, now, PACKET);
    }
    next = leat_time_min(f->encoder.next, leat_estimate_deadline(&f->estimate));
    if (!has_room(f, now)) { /* feedback makes some */
        return leat_time_min(next, f->last_sent + PATIENCE);
    }
    if (wants_padding(f)) {
        next = leat_time_min(next, f->pace.next);
    }
    return leat_time_min(next, leat_pace_deadline(&f->pace));
}

leat_time leat_media_flow_turn(leat_media_flow *f, int at, leat_time now, leat_media_send *send,
                               void *user)
{
    return at == 0 ? sender_turn(f, now, send, user) : receiver_turn(f, now, send, user);
}
