/* tests/sim/content.h: what streams carry. Each byte follows from its stream, direction and offset,
 * and so do size and fate of each direction: both ends know them without a word.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_CONTENT_H
#define LEAT_TESTS_SIM_CONTENT_H

#include "plan.h"

#define LEAT_SIM_NO UINT64_MAX

typedef struct leat_sim_fate {
    uint64_t key;        /* of the content */
    uint64_t size;       /* bytes that the sender means to send */
    uint64_t reset_at;   /* the sender resets instead of sending more; LEAT_SIM_NO: it finishes */
    uint64_t reliable;   /* with it: what is to arrive before (RESET_STREAM_AT); 0: RESET_STREAM */
    uint64_t stop_at;    /* the receiver stops once it has read as much; LEAT_SIM_NO: never */
    uint64_t reset_code; /* the codes that come with them */
    uint64_t stop_code;
    bool after; /* a bidirectional stream's answer begins when the request has ended */
} leat_sim_fate;

/* The fate of what `sender` (0: client, 1: server) sends on a stream. */
leat_sim_fate leat_sim_fate_of(const leat_sim_plan *plan, uint64_t stream_id, int sender);

/* Writes n bytes of content from an offset on. */
void leat_sim_content(uint64_t key, uint64_t offset, uint8_t *out, size_t n);

/* The first of n bytes that is not as it should be; n: all are. */
size_t leat_sim_content_wrong(uint64_t key, uint64_t offset, const uint8_t *data, size_t n);

#endif
