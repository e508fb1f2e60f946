/* tests/cc/media_flow.h: a media sender and its receiver in the lab: an encoder that follows the
 * estimate, frame by frame; the pacer; transport-wide numbers and feedback; the estimator. All of
 * it is the library's, but the encoder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_MEDIA_FLOW_H
#define LEAT_TESTS_CC_MEDIA_FLOW_H

#include <leat/estimate.h>
#include <leat/pace.h>
#include <leat/twcc.h>

#include "base/prng.h"

enum { LEAT_MEDIA_DELAYS = 4000 }; /* of 0.1 ms each, and more */

typedef struct leat_media_flow {
    leat_estimate estimate;
    leat_twcc_sender sent;
    leat_twcc_recorder recorder;
    leat_fb_policy policy;
    leat_pace pace;
    leat_prng prng;
    leat_time next_frame;
    uint64_t most;     /* bits a second that the encoder makes; 0: as much as it may */
    uint64_t received; /* bytes */
    leat_time way;     /* what a packet takes without a queue, its own bytes apart */
    uint64_t rate;     /* of the bottleneck */
    bool counts;       /* delays, from now on */
    uint32_t delays[LEAT_MEDIA_DELAYS];
    uint64_t lost;
    struct leat_media_sent {
        leat_time at;
    } departures[65536]; /* by number, for the delays */
} leat_media_flow;

/* How the flow sends a datagram: bytes, their number, from the sender (0) or the receiver (1). */
typedef void leat_media_send(void *user, int from, const uint8_t *data, size_t len);

void leat_media_flow_init(leat_media_flow *flow, leat_mem *mem, leat_time now, uint64_t seed);
void leat_media_flow_free(leat_media_flow *flow);
/* A datagram came, at the sender (0) or the receiver (1). */
void leat_media_flow_recv(leat_media_flow *flow, int at, leat_span data, leat_time now);
/* All that is due; returns when the next is. */
leat_time leat_media_flow_turn(leat_media_flow *flow, leat_time now, leat_media_send *send,
                               void *user);
/* The delay by queueing that this share of packets stays below. */
leat_time leat_media_flow_delay(const leat_media_flow *flow, double share);

#endif
