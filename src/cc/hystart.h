/* cc/hystart.h: HyStart++ (RFC 9406): leaves slow start when round trips grow, before packets are
 * lost.
 *
 * A round in which the least RTT of at least 8 samples is clearly above that of the round before
 * says that a queue is building. Slow start then goes on at a quarter of its pace (conservative
 * slow start, CSS), for at most 5 rounds; should the RTT fall below what it was when CSS began, it
 * was a false alarm and slow start resumes. The sender is paced, so L is infinite (§4.3).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CC_HYSTART_H
#define LEAT_CC_HYSTART_H

#include "cc/cc.h"

/* §4.3 */
#define LEAT_HYSTART_MIN_THRESH (4 * LEAT_MILLISECOND)
#define LEAT_HYSTART_MAX_THRESH (16 * LEAT_MILLISECOND)
#define LEAT_HYSTART_DIVISOR    8
#define LEAT_HYSTART_SAMPLES    8
#define LEAT_HYSTART_CSS_GROWTH 4
#define LEAT_HYSTART_CSS_ROUNDS 5

typedef struct leat_hystart {
    leat_time last_min;     /* least RTT of the round before; NEVER: none */
    leat_time round_min;    /* of this round */
    leat_time css_baseline; /* what CSS began with */
    uint64_t round_end;     /* flight->delivered when the round ends */
    uint64_t css_part;      /* bytes acknowledged toward the next byte of growth in CSS */
    uint32_t samples;       /* RTT samples of this round */
    uint8_t css_rounds;     /* rounds of CSS that are over */
    bool in_css;
} leat_hystart;

void leat_hystart_init(leat_hystart *h);

/* An ACK in slow start acknowledged `bytes` that count. Returns by how much the window grows;
 * *done: slow start is over, ssthresh is to be the window. */
uint64_t leat_hystart_grow(leat_hystart *h, const leat_cc_acked *facts, uint64_t bytes, bool *done);

#endif
