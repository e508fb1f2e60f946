/* tests/cc/media_flow.c: see media_flow.h.
 *
 * A datagram is its number and zeros. Frames come 30 a second, of the target's size, 25 % more or
 * less.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media_flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/time.h"

enum { FRAMES = 30, PACKET = 1200, HEADERS = 40, MTU = 1200, FEEDBACK_EVERY = 50 };
#define DELAY_STEP (100 * LEAT_MICROSECOND)

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "media flow: %s\n", what);
        exit(1);
    }
}

void leat_media_flow_init(leat_media_flow *f, leat_mem *mem, leat_time now, uint64_t seed)
{
    *f = (leat_media_flow){.next_frame = now};
    leat_prng_seed(&f->prng, seed);
    must(leat_estimate_init(&f->estimate, NULL, NULL, NULL) == LEAT_OK, "no estimate");
    must(leat_twcc_sender_init(&f->sent, mem, 0) == LEAT_OK, "no memory");
    must(leat_twcc_recorder_init(&f->recorder, mem, 1, 0) == LEAT_OK, "no memory");
    must(leat_pace_init(&f->pace, mem, 0, f->estimate.pacing_rate) == LEAT_OK, "no memory");
    leat_fb_policy_init(&f->policy, FEEDBACK_EVERY * LEAT_MILLISECOND, 0);
}

void leat_media_flow_free(leat_media_flow *f)
{
    leat_twcc_sender_free(&f->sent);
    leat_twcc_recorder_free(&f->recorder);
    leat_pace_free(&f->pace);
}

/* ---- the receiver ---- */

static void count_delay(leat_media_flow *f, uint16_t seq, size_t len, leat_time now)
{
    leat_time own = len * 8 * LEAT_SECOND / f->rate;
    leat_time took = leat_time_since(now - f->departures[seq].at, f->way + own);
    size_t step = took / DELAY_STEP;

    f->delays[step < LEAT_MEDIA_DELAYS ? step : LEAT_MEDIA_DELAYS - 1]++;
}

static void receive_media(leat_media_flow *f, leat_span data, leat_time now)
{
    uint16_t seq = leat_load_u16(data.data);

    f->received += data.len;
    leat_twcc_record(&f->recorder, 2, seq, now);
    leat_fb_policy_on_packet(&f->policy, now);
    if (f->counts) {
        count_delay(f, seq, data.len, now);
    }
}

static void send_feedback(leat_media_flow *f, leat_time now, leat_media_send *send, void *user)
{
    uint8_t out[MTU];
    size_t len;

    if (!leat_fb_policy_is_due(&f->policy, now)) {
        return;
    }
    while ((len = leat_twcc_build(&f->recorder, out, sizeof out)) > 0) {
        send(user, 1, out, len);
    }
    leat_fb_policy_on_sent(&f->policy, now);
}

/* ---- the sender ---- */

static void receive_feedback(leat_media_flow *f, leat_span data, leat_time now)
{
    leat_fb_result results[256];
    leat_twcc_iter it;
    size_t n;

    must(leat_twcc_feedback(&f->sent, data, &it) == LEAT_OK, "bad feedback");
    while ((n = leat_twcc_results(&f->sent, &it, results, 256)) > 0) {
        for (size_t i = 0; i < n; i++) {
            f->lost += results[i].state == LEAT_FB_LOST;
        }
        leat_estimate_on_results(&f->estimate, now, results, n);
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
    uint64_t rate = f->estimate.target_rate, bytes;

    if (now < f->next_frame) {
        return;
    }
    f->next_frame += LEAT_SECOND / FRAMES;
    rate = f->most && f->most < rate ? f->most : rate;
    bytes = rate / 8 / FRAMES * leat_prng_between(&f->prng, 75, 125) / 100;
    while (bytes > 0) {
        uint32_t size = (uint32_t)(bytes < PACKET - HEADERS ? bytes : PACKET - HEADERS);

        leat_pace_push(&f->pace, LEAT_PACE_VIDEO, f, size + HEADERS, now);
        bytes -= size;
    }
}

static void send_packet(leat_media_flow *f, uint32_t size, leat_time now, leat_media_send *send,
                        void *user)
{
    uint8_t out[PACKET] = {0};
    uint16_t seq = leat_twcc_sent(&f->sent, now, size);

    leat_store_u16(out, seq);
    f->departures[seq].at = now;
    leat_estimate_on_sent(&f->estimate, now, size);
    leat_pace_set_rate(&f->pace, f->estimate.pacing_rate);
    send(user, 0, out, size);
}

leat_time leat_media_flow_turn(leat_media_flow *f, leat_time now, leat_media_send *send, void *user)
{
    leat_pace_item item;
    leat_time next;

    leat_estimate_on_time(&f->estimate, now);
    leat_pace_set_rate(&f->pace, f->estimate.pacing_rate);
    encode(f, now);
    while (leat_pace_pop(&f->pace, now, &item)) {
        send_packet(f, item.size, now, send, user);
    }
    while (leat_estimate_padding(&f->estimate) > 0 && leat_pace_room(&f->pace, now) > 0 &&
           f->most == 0) {
        send_packet(f, PACKET, now, send, user);
        leat_pace_sent(&f->pace, now, PACKET);
    }
    send_feedback(f, now, send, user);
    next = leat_time_min(f->next_frame, leat_pace_deadline(&f->pace));
    if (leat_estimate_padding(&f->estimate) > 0 && f->most == 0) {
        next = leat_time_min(next, f->pace.next);
    }
    next = leat_time_min(next, leat_fb_policy_deadline(&f->policy));
    return leat_time_min(next, leat_estimate_deadline(&f->estimate));
}

leat_time leat_media_flow_delay(const leat_media_flow *f, double share)
{
    uint64_t sum = 0, below = 0;
    size_t i;

    for (i = 0; i < LEAT_MEDIA_DELAYS; i++) {
        sum += f->delays[i];
    }
    for (i = 0; i < LEAT_MEDIA_DELAYS && (double)below < share * (double)sum; i++) {
        below += f->delays[i];
    }
    return i * DELAY_STEP;
}
