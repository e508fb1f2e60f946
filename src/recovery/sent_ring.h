/* recovery/sent_ring.h: what the files of recovery/sent.h share. Not for others.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_SENT_RING_H
#define LEAT_RECOVERY_SENT_RING_H

#include "recovery/sent.h"

static inline leat_sent_packet *leat_sent_at(const leat_sent *sent, uint64_t pn)
{
    return &sent->packets[pn & (sent->packet_cap - 1)];
}

static inline bool leat_sent_is_empty(const leat_sent *sent)
{
    return sent->head == sent->next_pn;
}

/* In flight, and on the path that counts. */
static inline bool leat_sent_counts(const leat_sent *sent, const leat_sent_packet *p)
{
    return (p->flags & LEAT_SENT_IN_FLIGHT) != 0 && p->path == sent->path;
}

/* An outstanding packet leaves flight, whatever its fate: the counters that do not go with bytes.
 */
static inline void leat_sent_leave(leat_sent *sent, const leat_sent_packet *p)
{
    if (p->flags & LEAT_SENT_IN_FLIGHT) {
        LEAT_DCHECK(sent->outstanding > 0);
        sent->outstanding--;
        sent->eliciting -= p->flags & LEAT_SENT_ELICITING;
    }
}

/* So many bytes of packets with these flags leave flight, or come to the current path. */
static inline void leat_sent_leave_aside(leat_sent *sent, unsigned flags, uint64_t bytes)
{
    if (flags & LEAT_SENT_ASIDE) {
        LEAT_DCHECK(sent->aside >= bytes);
        sent->aside -= (uint32_t)bytes;
    }
}

/* Tells the frames of a packet, unless they have been told, and marks them told. */
void leat_sent_tell_lost(leat_sent *sent, leat_sent_packet *p);

/* Pops from the head what nobody needs any more: acked, skipped, lost for `keep`, not in flight. */
void leat_sent_sweep(leat_sent *sent, leat_time now);

#endif
