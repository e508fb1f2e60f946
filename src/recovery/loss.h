/* recovery/loss.h: loss detection and the probe timeout over the packet-number spaces of one path
 * (RFC 9002 §6 and appendix A).
 *
 * It owns no packets: the connection lends it the leat_sent of each space while its keys are there.
 * There is one deadline, computed from the state whenever it is asked for, never stored: it cannot
 * be stale, and it is never armed without something to wait for.
 *
 *  1. leat_loss_set_space() when a space's keys are there, with NULL when they are dropped (after
 *     leat_sent_forget(); the back-off is then reset, §6.2.2).
 *  2. leat_loss_on_sent() after each leat_sent_commit() (once for a batch will do).
 *  3. An ACK frame: leat_sent_ack_start/range/finish(), then leat_loss_on_ack(): takes the RTT
 * sample, finds what is lost, resets the back-off. Then tell the congestion controller
 *     (leat_cc_on_recovery() in cc/cc.h does it in the right order).
 *  4. At leat_loss_deadline(): leat_loss_on_timeout(). It says either that packets were lost (tell
 * the controller) or that `probes` ack-eliciting packets are to be sent in `space` without asking
 *     the window: new data, else what leat_sent_requeue() brings back, else PING (§6.2.4).
 *  5. Three flags are the connection's to write as it learns: confirmed when the handshake is;
 *     peer_validated when the peer is known to have validated this side's address (a server is
 * always sure and starts so; a client by a Handshake ACK or HANDSHAKE_DONE); blocked while the
 *     anti-amplification limit lets nothing out (no PTO then, §6.2.2.1).
 *
 * Times given may step back: they are clamped to the latest seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_LOSS_H
#define LEAT_RECOVERY_LOSS_H

#include "recovery/rtt.h"
#include "recovery/sent.h"
#include "recovery/space.h"

#define LEAT_LOSS_PACKET_THRESHOLD 3 /* kPacketThreshold, §6.1.1 */
#define LEAT_LOSS_PERSISTENT       3 /* kPersistentCongestionThreshold, §7.6.1 */
#define LEAT_LOSS_PROBES           2 /* ack-eliciting packets a PTO, §6.2.4 */

/* The longest PTO that comes of the back-off, as RFC 6298 §2.5 has it for TCP. RFC 9002 §6.2.1
 * knows none; but with an idle timeout of minutes there would be two probes, and then none. */
#define LEAT_LOSS_BACKOFF_MAX      (60 * LEAT_SECOND)

typedef struct leat_loss {
    leat_sent *spaces[LEAT_SPACES];
    leat_rtt rtt;
    leat_time max_ack_delay; /* the peer's, for the application space */
    leat_time now;           /* the latest time seen */
    leat_time armed_at;      /* from when a client without anything in flight counts its PTO */
    leat_time fired_at;      /* when the newest of the PTOs in a row came */
    uint32_t pto_count;      /* back-off: PTOs in a row */
    uint32_t packet_threshold;

    bool confirmed;
    bool peer_validated;
    bool blocked;

    leat_sent_loss_fn *visit; /* told of each lost packet; may be NULL. The space is visit_space */
    void *visit_ctx;
    leat_space visit_space;

    uint64_t lost_packets;                /* statistics */
    leat_time acked_sent_at[LEAT_SPACES]; /* sending time of the newest packet acknowledged */
    uint64_t spurious_packets;
    uint64_t pto_total;
} leat_loss;

typedef enum leat_loss_action {
    LEAT_LOSS_NONE, /* nothing was due */
    LEAT_LOSS_LOST, /* packets were lost by time: see lost */
    LEAT_LOSS_PROBE /* a PTO: send `probes` ack-eliciting packets in `space` */
} leat_loss_action;

typedef struct leat_loss_timeout {
    leat_loss_action action;
    leat_space space;
    uint32_t probes;
    leat_sent_lost lost;
} leat_loss_timeout;

/* initial_rtt 0: the RFC's. max_ack_delay starts as the RFC's 25 ms until the peer's is known. */
void leat_loss_init(leat_loss *loss, bool is_server, leat_time initial_rtt, leat_time now);

void leat_loss_set_space(leat_loss *loss, leat_space space, leat_sent *sent);

/* in_flight: something that counts as in flight was among what was sent. */
void leat_loss_on_sent(leat_loss *loss, leat_time now, bool in_flight);

/* After leat_sent_ack_finish(). ack_delay: the frame's, decoded to ns. Fills *lost. */
void leat_loss_on_ack(leat_loss *loss, leat_space space, const leat_sent_acked *acked,
                      leat_time ack_delay, leat_sent_lost *lost);

/* The one deadline over all spaces; NEVER: none. It may lie in the past: it is then due. */
leat_time leat_loss_deadline(const leat_loss *loss);

void leat_loss_on_timeout(leat_loss *loss, leat_time now, leat_loss_timeout *out);

/* smoothed + max(4 * var, granularity), + max_ack_delay in the application space; no back-off. What
 * closing (3 * PTO), key updates and path validation count in. */
leat_time leat_loss_pto(const leat_loss *loss, leat_space space);

/* How long a run of losses makes persistent congestion (§7.6.1). */
leat_time leat_loss_persistent_duration(const leat_loss *loss);

/* A new path: RTT, back-off and thresholds as at the start (RFC 9000 §9.4). */
void leat_loss_reset_path(leat_loss *loss, leat_time initial_rtt);

/* The server asks the client to begin again, after leat_sent_forget(): timers and back-off as at
 * the start (RFC 9002 §6.3). */
void leat_loss_restart(leat_loss *loss);

void leat_loss_check(const leat_loss *loss);

#endif
