/* tests/cc/roq_flow.h: media over QUIC in the lab: the encoder's frames as RTP over QUIC, the
 * estimator in the place of the connection's controller, fed with QUIC's acknowledgements.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_ROQ_FLOW_H
#define LEAT_TESTS_CC_ROQ_FLOW_H

#include <leat/estimate.h>
#include <leat/roq.h>

#include "media_encoder.h"

typedef struct leat_roq_media {
    leat_estimate estimate;
    leat_media_encoder encoder;
    leat_roq *client, *server;
    leat_roq_flow *flow;
    uint32_t frame;
    uint16_t seq;
    bool datagrams; /* otherwise a stream for each frame */
    bool over;      /* the connection may be closed, and its sessions with it */
} leat_roq_media;

void leat_roq_media_init(leat_roq_media *media, const leat_media_encoder *encoder, bool datagrams);
/* The connection is there, at the sender, at the receiver. */
void leat_roq_media_send_on(leat_roq_media *media, leat_conn *conn);
void leat_roq_media_receive_on(leat_roq_media *media, leat_conn *conn);
/* Encodes what is due; returns when the next frame is. */
leat_time leat_roq_media_turn(leat_roq_media *media, leat_time now);

#endif
