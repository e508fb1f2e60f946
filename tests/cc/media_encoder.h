/* tests/cc/media_encoder.h: an encoder in the lab: frames of what the estimate allows, each so much
 * larger or smaller by chance.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_MEDIA_ENCODER_H
#define LEAT_TESTS_CC_MEDIA_ENCODER_H

#include "base/prng.h"
#include "base/time.h"

enum { LEAT_MEDIA_FRAMES = 30 }; /* a second */

typedef struct leat_media_encoder {
    leat_prng prng;
    leat_time next;  /* frame */
    uint64_t most;   /* bits a second that it makes; 0: as much as it may */
    uint64_t deaf;   /* bits a second that it makes whatever it may; 0: it listens */
    uint32_t spread; /* percent by which a frame is larger or smaller, at most */
} leat_media_encoder;

/* Bytes of the frame that is due; 0: none is. */
static inline uint64_t leat_media_encode(leat_media_encoder *e, leat_time now, uint64_t target)
{
    uint64_t rate = e->deaf ? e->deaf : e->most && e->most < target ? e->most : target;

    if (now < e->next) {
        return 0;
    }
    e->next += LEAT_SECOND / LEAT_MEDIA_FRAMES;
    return rate / 8 / LEAT_MEDIA_FRAMES *
           leat_prng_between(&e->prng, 100 - e->spread, 100 + e->spread) / 100;
}

#endif
