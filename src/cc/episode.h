/* cc/episode.h: whether a reduction was for nothing.
 *
 * An episode begins with the loss that makes a controller reduce and takes in all packets lost that
 * were sent before it. When each of them has been acknowledged after all, the episode was spurious
 * (RFC 9438 §4.9) and the controller takes it back. A CE mark makes an episode real.
 *
 *  1. leat_cc_episode_loss() in on_packet_lost.
 *  2. leat_cc_episode_begin() in on_congestion when it reduces, before recovery_start moves;
 *     leat_cc_episode_mark() in any on_congestion with marks.
 *  3. leat_cc_episode_spurious() in on_spurious: true once, when it all was for nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CC_EPISODE_H
#define LEAT_CC_EPISODE_H

#include "cc/cc.h"

typedef struct leat_cc_episode {
    leat_time before; /* recovery_start as it was before: packets sent later belong here */
    uint32_t lost;    /* declared so and not yet acknowledged */
    bool coming;      /* losses of a new episode were seen, the reduction is about to be told */
    bool open;        /* it may still turn out spurious */
} leat_cc_episode;

static inline void leat_cc_episode_loss(leat_cc_episode *e, const leat_cc *cc,
                                        const leat_sent_loss *loss)
{
    if (!loss->counts) {
        return;
    }
    if (!e->coming && loss->sent_at > cc->recovery_start) {
        e->coming = true;
        e->lost = 0;
    }
    e->lost += e->lost < UINT32_MAX;
}

static inline void leat_cc_episode_begin(leat_cc_episode *e, const leat_cc *cc)
{
    e->before = cc->recovery_start;
    e->open = e->coming;
    e->coming = false;
}

static inline void leat_cc_episode_mark(leat_cc_episode *e)
{
    e->open = false;
}

/* Nothing can be taken back any more: a new start, or persistent congestion. */
static inline void leat_cc_episode_close(leat_cc_episode *e)
{
    e->open = false;
    e->coming = false;
}

static inline bool leat_cc_episode_spurious(leat_cc_episode *e, const leat_sent_acked *acked)
{
    if (!e->open || e->coming || acked->spurious_sent_at <= e->before) {
        return false;
    }
    e->lost -= acked->spurious < e->lost ? acked->spurious : e->lost;
    if (e->lost > 0) {
        return false;
    }
    e->open = false;
    return true;
}

#endif
