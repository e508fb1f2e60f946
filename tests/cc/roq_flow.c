/* tests/cc/roq_flow.c: see roq_flow.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq_flow.h"

#include <stdio.h>
#include <stdlib.h>

#include <leat/rtp.h>

enum { PACKET = 1160, CLOCK = 90000 }; /* bytes of RTP; ticks a second */

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "media over QUIC: %s\n", what);
        exit(1);
    }
}

static void on_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    (void)roq;
    if (((leat_roq_media *)user)->over) {
        return;
    }
    fprintf(stderr, "media over QUIC: closed: %d, code %#llx: %s\n", info->kind,
            (unsigned long long)info->code, info->detail ? info->detail : "");
    exit(1);
}

static const leat_roq_events events = {.closed = on_closed};

void leat_roq_media_init(leat_roq_media *m, const leat_media_encoder *encoder, bool datagrams)
{
    *m = (leat_roq_media){.encoder = *encoder, .datagrams = datagrams};
    must(leat_estimate_init(&m->estimate, NULL, NULL, NULL) == LEAT_OK, "no estimate");
}

static leat_roq *session_on(leat_roq_media *m, leat_conn *conn, leat_roq_flow **flow)
{
    leat_roq_flow_settings settings;
    leat_roq *roq;

    leat_roq_flow_settings_init(&settings);
    settings.mode = m->datagrams ? LEAT_ROQ_MODE_DATAGRAM : LEAT_ROQ_MODE_FRAME;
    must(leat_roq_attach(conn, NULL, &events, m, &roq) == LEAT_OK, "no session");
    must(leat_roq_flow_open(roq, 1, &settings, flow) == LEAT_OK, "no flow");
    return roq;
}

void leat_roq_media_send_on(leat_roq_media *m, leat_conn *conn)
{
    m->client = session_on(m, conn, &m->flow);
    leat_roq_set_estimate(m->client, &m->estimate);
}

void leat_roq_media_receive_on(leat_roq_media *m, leat_conn *conn)
{
    leat_roq_flow *flow;

    m->server = session_on(m, conn, &flow);
}

static void send_frame(leat_roq_media *m, uint64_t bytes)
{
    uint8_t packet[PACKET] = {0};

    while (bytes > 0) {
        size_t len = bytes + LEAT_RTP_HEADER < PACKET ? (size_t)bytes + LEAT_RTP_HEADER : PACKET;
        leat_rtp_header header = {.ssrc = 2,
                                  .seq = m->seq++,
                                  .timestamp = m->frame * (CLOCK / LEAT_MEDIA_FRAMES),
                                  .payload_type = 96};
        size_t head;

        bytes -= len - LEAT_RTP_HEADER;
        header.marker = bytes == 0;
        must(leat_rtp_write(&header, packet, sizeof packet, &head) == LEAT_OK, "no header");
        must(leat_roq_send(m->flow, (leat_span){packet, len}, NULL) == LEAT_OK, "not sent");
    }
    m->frame++;
}

leat_time leat_roq_media_turn(leat_roq_media *m, leat_time now)
{
    uint64_t bytes;

    if (!m->flow) { /* the encoder begins when it can send */
        m->encoder.next = now;
        return LEAT_TIME_NEVER;
    }
    bytes = leat_media_encode(&m->encoder, now, m->estimate.target_rate);
    if (bytes > 0) {
        send_frame(m, bytes);
    }
    return m->encoder.next;
}
