/* cc/cc.h: the door to congestion controllers.
 *
 * A controller is a table of functions over a leat_cc. It decides two numbers, cwnd and
 * pacing_rate, that the sender reads as plain fields; everything it knows comes through the calls
 * below. Its state lies inside the leat_cc, so nothing is allocated. One leat_cc a path.
 *
 * Calls, from the connection:
 *  1. leat_cc_init() with a controller's table. Again on a new path (RFC 9000 §9.4).
 *  2. leat_cc_on_sent() for each packet in flight, after leat_sent_commit().
 *  3. leat_cc_on_recovery() after an ACK or a loss timeout, with what recovery/ found: it calls, in
 *     this order, on_spurious, on_congestion (losses, CE), on_persistent, on_acked.
 *     leat_cc_on_packet_lost() is the visitor for each lost packet, if the controller wants it.
 *  4. leat_cc_on_app_limited() when the sender stops though the window has room;
 *     leat_cc_on_idle_restart() when it sends again with nothing in flight.
 *  5. leat_cc_on_mtu() when the path's datagram size changes, either way.
 * Send while flight->bytes + size <= cwnd and the pacer (cc/pacer.h) lets it; probes and packets
 * that are not in flight go out regardless.
 *
 * A controller only fills what it uses: every function but init may be NULL. An outside controller
 * (a media estimator, say) is a table of the application's with `user` behind it, which sets cwnd
 * and pacing_rate by leat_cc_set() whenever it likes; or LEAT_CC_FIXED, that takes what it is
 * given.
 *
 * Sizes are bytes, rates bytes a second, times nanoseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CC_CC_H
#define LEAT_CC_CC_H

#include "base/assert.h"
#include "base/time.h"
#include "recovery/flight.h"
#include "recovery/rtt.h"
#include "recovery/sent.h"
#include <leat/limits.h>

#define LEAT_CC_STATE_SIZE 384

typedef struct leat_cc leat_cc;

/* A packet in flight was sent. */
typedef struct leat_cc_sent {
    leat_time now;
    uint64_t in_flight; /* with it */
    uint32_t size;
    bool app_limited; /* as the flight has it */
} leat_cc_sent;

/* Packets were acknowledged. */
typedef struct leat_cc_acked {
    leat_time now;
    const leat_sent_acked *acked; /* bytes, bytes_after (the recovery start), rate sample, ... */
    const leat_sent_lost *lost;   /* what the same ACK made lost; never NULL */
    const leat_rtt *rtt;          /* the sample of this ACK included */
    leat_flight *flight;          /* after; a controller may mark it app-limited, no more */
    uint64_t ce;                  /* newly reported CE marks */
    bool cwnd_limited;            /* the sender filled the window while these were in flight */
} leat_cc_acked;

/* Packets were lost, or marked. */
typedef struct leat_cc_congestion {
    leat_time now;
    leat_time sent_at;   /* of the newest packet lost; for CE, of the newest acknowledged */
    uint64_t lost_bytes; /* 0: marks only */
    uint64_t ce;
    uint64_t in_flight; /* before the loss */
    const leat_rtt *rtt;
    const leat_flight *flight;
} leat_cc_congestion;

typedef struct leat_cc_ops {
    const char *name;  /* "newreno" */
    size_t state_size; /* at most LEAT_CC_STATE_SIZE (asserted) */
    bool whole_window; /* only a full window counts as cwnd-limited, in slow start too */
    void (*init)(leat_cc *cc, leat_time now); /* the fields below are at their defaults */
    void (*on_sent)(leat_cc *cc, const leat_cc_sent *sent);
    void (*on_acked)(leat_cc *cc, const leat_cc_acked *acked);
    void (*on_packet_lost)(leat_cc *cc, const leat_sent_loss *loss, const leat_flight *flight);
    void (*on_congestion)(leat_cc *cc, const leat_cc_congestion *congestion);
    void (*on_persistent)(leat_cc *cc, leat_time now);
    void (*on_spurious)(leat_cc *cc, const leat_sent_acked *acked, const leat_flight *flight);
    void (*on_mtu)(leat_cc *cc, uint32_t old_mds);
    void (*on_app_limited)(leat_cc *cc, leat_time now);
    void (*on_idle_restart)(leat_cc *cc, const leat_flight *flight, leat_time now);
    const char *(*state_name)(const leat_cc *cc); /* for qlog; a static string */
} leat_cc_ops;

struct leat_cc {
    const leat_cc_ops *ops;
    void *user; /* an outside controller's */
    uint64_t cwnd;
    uint64_t ssthresh;    /* UINT64_MAX: none yet */
    uint64_t pacing_rate; /* 0: the pacer makes one of cwnd and smoothed RTT */
    leat_time
        recovery_start;  /* packets sent up to here were sent before the last reduction; 0: none */
    uint64_t full_until; /* cwnd-limited until flight->delivered passes this */
    uint32_t mds;        /* the path's datagram size */
    union {
        uint64_t align;
        void *align_pointer;
        uint8_t bytes[LEAT_CC_STATE_SIZE];
    } state;
};

/* ---- the controllers ---- */

extern const leat_cc_ops leat_cc_cubic; /* the default */
extern const leat_cc_ops leat_cc_newreno;
extern const leat_cc_ops leat_cc_bbr;
extern const leat_cc_ops leat_cc_fixed; /* what leat_cc_set() says */

/* The controller of that name; NULL: there is none. */
const leat_cc_ops *leat_cc_find(const char *name);

/* ---- calls ---- */

/* mds: the path's datagram size, at least 1200. */
void leat_cc_init(leat_cc *cc, const leat_cc_ops *ops, uint32_t mds, void *user, leat_time now);

void leat_cc_on_sent(leat_cc *cc, const leat_flight *flight, leat_time now, uint32_t size);

/* now: the latest time known (leat_loss.now), not an ACK's arrival, so that what was sent already
 * counts as sent before. acked NULL: no ACK but a loss timeout. ce: how much the peer's CE count
 * grew. */
void leat_cc_on_recovery(leat_cc *cc, leat_time now, const leat_sent_acked *acked,
                         const leat_sent_lost *lost, uint64_t ce, const leat_rtt *rtt,
                         leat_flight *flight);

static inline void leat_cc_on_packet_lost(leat_cc *cc, const leat_sent_loss *loss,
                                          const leat_flight *flight)
{
    if (cc->ops->on_packet_lost) {
        cc->ops->on_packet_lost(cc, loss, flight);
    }
}

/* Marks the flight too. */
void leat_cc_on_app_limited(leat_cc *cc, leat_flight *flight, leat_time now);
void leat_cc_on_idle_restart(leat_cc *cc, const leat_flight *flight, leat_time now);
void leat_cc_on_mtu(leat_cc *cc, uint32_t mds);

/* For outside controllers. cwnd is raised to the least window and cut at LEAT_CWND_MAX. */
void leat_cc_set(leat_cc *cc, uint64_t cwnd, uint64_t pacing_rate);

/* "slow_start", "recovery", ... */
const char *leat_cc_state_name(const leat_cc *cc);

/* ---- what controllers share ---- */

/* min(10 * mds, max(14720, 2 * mds)) (RFC 9002 §7.2). */
uint64_t leat_cc_initial_window(uint32_t mds);

static inline uint64_t leat_cc_min_window(const leat_cc *cc)
{
    return 2 * (uint64_t)cc->mds;
}

/* Sets cwnd within its bounds. */
void leat_cc_clamp(leat_cc *cc, uint64_t cwnd);

/* How many bytes the window still lets out. */
static inline uint64_t leat_cc_room(const leat_cc *cc, const leat_flight *flight)
{
    return cc->cwnd > flight->bytes ? cc->cwnd - flight->bytes : 0;
}

static inline void *leat_cc_state(leat_cc *cc)
{
    return cc->state.bytes;
}

static inline const void *leat_cc_state_const(const leat_cc *cc)
{
    return cc->state.bytes;
}

void leat_cc_check(const leat_cc *cc);

#endif
