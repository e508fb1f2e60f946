/* conn/ackfreq.h: how often the other side acknowledges (draft-ietf-quic-ack-frequency-14).
 *
 * Code points of the draft, as this revision has them: frames ACK_FREQUENCY 0xaf and IMMEDIATE_ACK
 * 0x1f (wire/frames.h), transport parameter min_ack_delay 0xff04de1b (wire/tparams.h).
 *
 * Receiving: the newest ACK_FREQUENCY sets the three fields of recovery/acks.h. The frame counts
 * the packets that may go without an ACK, leat_acks the one that calls for it: one more.
 *
 * Sending, to a peer that takes it and after the handshake is confirmed: an ACK every eighth of a
 * congestion window, but for no more than LEAT_ACKFREQ_MOST packets, and no fewer than the usual
 * two; after a quarter of the smoothed RTT at the latest, or what the peer can do, or its own
 * max_ack_delay if that is less; at once when a packet may be declared lost. So an RTT brings four
 * ACKs at least. Asked for anew when one of the two has doubled or halved. Probes, of a path's size
 * and after a timeout, ask for an ACK at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_ACKFREQ_H
#define LEAT_CONN_ACKFREQ_H

#include <leat/quic.h>

#include "recovery/acks.h"
#include "wire/frames.h"

#define LEAT_ACKFREQ_SHARE     8  /* ACKs a window */
#define LEAT_ACKFREQ_MOST      32 /* packets an ACK: less than a GSO batch of 64 KiB */
#define LEAT_ACKFREQ_DELAY_MAX ((leat_time)(1 << 14) * LEAT_MILLISECOND) /* as max_ack_delay */

typedef struct leat_ackfreq {
    leat_time own_min;  /* the least delay that we can be asked for; 0: the extension is off */
    leat_time peer_min; /* the same of the peer's; meaningless unless peer_takes */
    bool peer_takes;
    bool pending;           /* an ACK_FREQUENCY is to be sent */
    uint64_t next_received; /* 1 + the largest sequence number received */
    uint64_t next_sent;     /* sequence number of the next to be sent */
    uint32_t packets;       /* what was asked for last: an ACK every so many; 0: nothing yet */
    uint32_t reorder;
    leat_time delay;
} leat_ackfreq;

/* The other side's transport parameter, in ns. */
void leat_ackfreq_set_peer(leat_ackfreq *af, leat_time min_ack_delay);

/* An ACK_FREQUENCY arrived. LEAT_TE_NO_ERROR or PROTOCOL_VIOLATION. */
uint64_t leat_ackfreq_received(leat_ackfreq *af, const leat_frame_ack_frequency *frame,
                               leat_acks *acks);

/* What there is to know of the path. */
typedef struct leat_ackfreq_path {
    uint64_t cwnd;
    uint32_t mds;
    uint32_t reorder; /* packets out of order at which one is declared lost */
    leat_time srtt;
    leat_time peer_max; /* the peer's max_ack_delay, as it was agreed on */
} leat_ackfreq_path;

/* Decides whether to ask for another frequency: `pending` is then set. */
void leat_ackfreq_update(leat_ackfreq *af, const leat_ackfreq_path *path);

/* The frame to send, and that it was. */
leat_frame_ack_frequency leat_ackfreq_frame(const leat_ackfreq *af);
void leat_ackfreq_sent(leat_ackfreq *af);

/* The frame with this sequence number is the newest. */
static inline bool leat_ackfreq_is_newest(const leat_ackfreq *af, uint64_t sequence)
{
    return sequence + 1 == af->next_sent;
}

#endif
