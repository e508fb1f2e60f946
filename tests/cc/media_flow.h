/* tests/cc/media_flow.h: a media sender and its receiver in the lab, over UDP: an encoder that
 * follows the estimate, frame by frame; the pacer; feedback, TWCC or RFC 8888; the estimator. All
 * of it is the library's, but the encoder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_MEDIA_FLOW_H
#define LEAT_TESTS_CC_MEDIA_FLOW_H

#include <leat/ccfb.h>
#include <leat/estimate.h>
#include <leat/pace.h>
#include <leat/twcc.h>

#include "media_encoder.h"

typedef struct leat_media_flow {
    leat_estimate estimate;
    leat_media_encoder encoder;
    bool ccfb; /* feedback of RFC 8888; otherwise TWCC */
    leat_twcc_sender twcc_sent;
    leat_twcc_recorder twcc;
    leat_ccfb_sender ccfb_sent;
    leat_ccfb_recorder ccfb_recorder;
    leat_fb_policy policy;
    leat_pace pace;
    uint16_t seq; /* RFC 8888: of the next packet */
    leat_time last_sent;
    uint64_t received; /* bytes */
    uint64_t lost;     /* packets, as feedback tells */
} leat_media_flow;

/* How the flow sends a datagram: bytes, their number, from the sender (0) or the receiver (1). */
typedef void leat_media_send(void *user, int from, const uint8_t *data, size_t len);

void leat_media_flow_init(leat_media_flow *flow, leat_mem *mem, bool ccfb,
                          const leat_media_encoder *encoder);
void leat_media_flow_free(leat_media_flow *flow);
/* A datagram came, at the sender (0) or the receiver (1). */
void leat_media_flow_recv(leat_media_flow *flow, int at, leat_span data, leat_time now);
/* All that is due at the sender (0) or the receiver (1); returns when the next is. */
leat_time leat_media_flow_turn(leat_media_flow *flow, int at, leat_time now, leat_media_send *send,
                               void *user);

#endif
