/* conn/frames_out.h: a packet that is being written, and the frames that go into it.
 *
 * send.c opens and closes packets; frames_out.c decides what goes in. Each frame that somebody
 * wants to hear of again leaves a record (leat_record_kind).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_FRAMES_OUT_H
#define LEAT_CONN_FRAMES_OUT_H

#include "conn/conn.h"
#include "wire/header.h"

typedef struct leat_packet_out {
    leat_conn *conn;
    leat_pnspace *pn;
    leat_time now;
    uint8_t *start;   /* first byte of the header */
    uint8_t *payload; /* first byte behind the packet number */
    leat_writer w;    /* at the end of what is written; its end leaves room for the tag */
    leat_packet_type type;
    leat_packet_keys *keys;
    leat_long_packet header;
    size_t pn_len;
    bool eliciting;
    bool in_flight; /* eliciting, or padded */
    bool probe;     /* of the path's datagram size */
    uint8_t path;   /* number of the path it goes out on */
} leat_packet_out;

/* Something besides ACKs waits to be sent in this space. */
bool leat_frames_waiting(const leat_conn *conn, const leat_pnspace *pn);

/* An ACK of what arrived, if it fits. */
void leat_frames_ack(leat_packet_out *out);

/* As much as fits of what waits, the urgent first. */
void leat_frames_fill(leat_packet_out *out);

void leat_frames_ping(leat_packet_out *out);

/* What a path wants: a response, a challenge. */
void leat_frames_path(leat_packet_out *out, leat_path *path, bool full, leat_time pto);

/* A PING, padded to a datagram of this size. False: not possible, nothing was written. */
bool leat_frames_mtu_probe(leat_packet_out *out, size_t size);

#endif
