/* media_feedback: a sender learns what became of each RTP packet, by transport-wide feedback. Both
 * ends stand in one program, and the network between them is a function that loses every tenth
 * packet; put your sockets and your clock in its place. It needs RTP's part of the library alone:
 *
 *     cc media_feedback.c $(pkg-config --cflags --libs leat-media)
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include <leat/rtcp.h>
#include <leat/rtp.h>
#include <leat/twcc.h>

enum {
    EXT_ID = 3, /* what both ends agreed on for the header extension (SDP's a=extmap) */
    MTU = 1200,
    PACKETS = 200,
    SENDER_SSRC = 1,
    RECEIVER_SSRC = 2,
};

typedef struct sender {
    leat_twcc_sender twcc;
    uint16_t seq;
    unsigned arrived, lost;
} sender;

typedef struct receiver {
    leat_twcc_recorder twcc;
    leat_fb_policy policy;
} receiver;

static void must(leat_err err, const char *what)
{
    if (err != LEAT_OK) {
        fprintf(stderr, "%s: %s\n", what, leat_err_text(err));
        exit(1);
    }
}

/* Writes the next RTP packet; its number for feedback goes into the header extension. */
static size_t write_packet(sender *s, leat_time now, uint8_t *out, size_t cap)
{
    uint8_t number[LEAT_TWCC_EXT];
    leat_rtp_ext ext = {EXT_ID, {number, sizeof number}};
    leat_rtp_header header = {
        .ssrc = SENDER_SSRC,
        .seq = s->seq++,
        .timestamp = (uint32_t)(now * 90 / LEAT_MILLISECOND),
        .payload_type = 96,
        .ext_count = 1,
        .exts = &ext,
    };
    size_t len, payload = 1000;

    leat_twcc_ext_write(number, leat_twcc_next_seq(&s->twcc));
    must(leat_rtp_write(&header, out, cap - payload, &len), "header");
    for (size_t i = 0; i < payload; i++) {
        out[len + i] = (uint8_t)i; /* here comes the picture */
    }
    leat_twcc_sent(&s->twcc, now, (uint32_t)(len + payload));
    return len + payload;
}

/* A datagram came to the receiver. */
static void receive_packet(receiver *r, leat_time now, leat_span data)
{
    leat_rtp_packet packet;
    leat_span ext;
    uint16_t number;

    if (leat_rtp_parse(data, &packet) != LEAT_OK || !leat_rtp_ext_find(&packet, EXT_ID, &ext) ||
        !leat_twcc_ext_read(ext, &number)) {
        return; /* no RTP, or without a number */
    }
    leat_twcc_record(&r->twcc, packet.ssrc, number, now);
    leat_fb_policy_on_packet(&r->policy, now);
}

/* A datagram with feedback came back to the sender. */
static void receive_feedback(sender *s, leat_span data)
{
    leat_fb_result results[64];
    leat_rtcp_packet packet;
    leat_rtcp_iter rtcp;
    leat_twcc_iter it;
    size_t n;

    leat_rtcp_begin(&rtcp, data);
    while (leat_rtcp_next(&rtcp, &packet)) {
        if (leat_twcc_feedback(&s->twcc, packet.whole, &it) != LEAT_OK) {
            continue; /* another kind of RTCP, or broken */
        }
        while ((n = leat_twcc_results(&s->twcc, &it, results, 64)) > 0) {
            for (size_t i = 0; i < n; i++) { /* leat_estimate_on_results() would take them */
                s->arrived += results[i].state == LEAT_FB_ARRIVED;
                s->lost += results[i].state == LEAT_FB_LOST;
            }
        }
    }
}

/* Sends all the feedback that there is, an RTCP packet a datagram. */
static void send_feedback(receiver *r, leat_time now, sender *to)
{
    uint8_t out[MTU];
    size_t len;

    while ((len = leat_twcc_build(&r->twcc, out, sizeof out)) > 0) {
        receive_feedback(to, (leat_span){out, len});
    }
    leat_fb_policy_on_sent(&r->policy, now);
}

int main(void)
{
    sender s = {.seq = 0};
    receiver r;
    leat_mem *mem; /* for both: one thread has both ends here */

    must(leat_mem_new(NULL, &mem), "memory");
    must(leat_twcc_sender_init(&s.twcc, mem, 0), "sender");
    must(leat_twcc_recorder_init(&r.twcc, mem, RECEIVER_SSRC, 0), "recorder");
    leat_fb_policy_init(&r.policy, 100 * LEAT_MILLISECOND, 0);
    for (unsigned i = 0; i < PACKETS; i++) {
        leat_time now = (leat_time)i * 5 * LEAT_MILLISECOND;
        uint8_t packet[MTU];
        size_t len = write_packet(&s, now, packet, sizeof packet);

        if (i % 10 != 5) { /* the network */
            receive_packet(&r, now + 20 * LEAT_MILLISECOND, (leat_span){packet, len});
        }
        if (leat_fb_policy_is_due(&r.policy, now + 20 * LEAT_MILLISECOND)) {
            send_feedback(&r, now + 20 * LEAT_MILLISECOND, &s);
        }
    }
    send_feedback(&r, PACKETS * 5 * LEAT_MILLISECOND, &s); /* what came since the last */
    printf("%d packets: %u arrived, %u lost\n", PACKETS, s.arrived, s.lost);
    leat_twcc_recorder_free(&r.twcc);
    leat_twcc_sender_free(&s.twcc);
    leat_mem_free(mem);
    return 0;
}
