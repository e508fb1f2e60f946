/* leat/feedback.h: what the two kinds of per-packet feedback share (leat/twcc.h, leat/ccfb.h): the
 * receiver's ring of arrivals, when to send feedback, the sender's history, and the results that it
 * and a feedback make together.
 *
 * The structures are open so that they can lie inside the caller's; their members are the
 * library's. Memory is taken once, when one is initialised. An object belongs to the thread that
 * has its leat_mem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_FEEDBACK_H
#define LEAT_FEEDBACK_H

#include <leat/buf.h>
#include <leat/rtp.h>

LEAT_BEGIN_DECLS

/* ---- arrivals ---------------------------------------------------------------------------------
 */

/* The last packets of one number space: a mark for each that came, 0 for each that did not. Numbers
 * are unwrapped to 64 bits. Those in [base, end) are still to be reported; of those below `base`,
 * as many are kept as a late packet needs that comes among them. */
typedef struct leat_arrivals {
    uint32_t *ring;
    uint32_t mask;
    leat_seq_restart restart; /* packets that were too old */
    uint64_t restart_end;     /* `end` when the last of them came: nothing else came since */
    uint64_t end;             /* one past the highest that came */
    uint64_t base;            /* the first that is not yet reported */
    uint64_t begin;           /* nothing below is kept */
    uint64_t newest;          /* the largest mark; 0: nothing came yet */
    leat_mem *mem;
    uint64_t duplicates; /* packets that came again, and are not counted again */
    uint64_t too_old;    /* packets that came when the ring had moved past them */
    uint64_t unreported; /* numbers that left the ring before they were reported */
} leat_arrivals;

/* ---- when to send feedback --------------------------------------------------------------------
 */

/* At intervals while packets come, when many wait, and when somebody asks. Nothing is due while no
 * packet waits, unless somebody asked. */
typedef struct leat_fb_policy {
    leat_time interval;
    leat_time deadline; /* LEAT_TIME_NEVER: nothing waits */
    leat_time last;     /* when feedback was sent */
    uint32_t most;      /* packets that may wait; 0: any number */
    uint32_t waiting;
    bool asked;
    bool started;
} leat_fb_policy;

/* interval: from one feedback to the next (100 ms is common; 0: after every packet). most: feedback
 * is due at once when that many packets wait; 0: by time alone. */
LEAT_API void leat_fb_policy_init(leat_fb_policy *policy, leat_time interval, uint32_t most);
/* A packet came at `now` and waits to be reported. */
LEAT_API void leat_fb_policy_on_packet(leat_fb_policy *policy, leat_time now);
/* On demand: feedback is due from now on, whether packets wait or not. */
LEAT_API void leat_fb_policy_ask(leat_fb_policy *policy);
/* When feedback is due: 0 for at once, LEAT_TIME_NEVER. */
LEAT_API leat_time leat_fb_policy_deadline(const leat_fb_policy *policy);
LEAT_API bool leat_fb_policy_is_due(const leat_fb_policy *policy, leat_time now);
/* Feedback on all that waited went out at `now`. */
LEAT_API void leat_fb_policy_on_sent(leat_fb_policy *policy, leat_time now);
/* The interval that spends 1/20 of `rate` (bits a second) on feedback of `bytes` each, 50 to 250
 * ms: what common senders expect. */
LEAT_API leat_time leat_fb_interval_for_rate(uint64_t rate, uint32_t bytes);

/* ---- the sender's history ---------------------------------------------------------------------
 */

typedef enum leat_fb_state {
    LEAT_FB_NONE, /* never sent, or forgotten */
    LEAT_FB_SENT, /* nothing known of it yet */
    LEAT_FB_LOST,
    LEAT_FB_ARRIVED,
} leat_fb_state;

/* What became of one packet. */
typedef struct leat_fb_result {
    uint64_t seq;      /* unwrapped, as the history counts; the low 16 bits are the packet's */
    leat_time sent;    /* by the sender's clock */
    leat_time arrived; /* by the receiver's clock, on a scale that goes on from one feedback to the
                          next; LEAT_TIME_NEVER: lost, or the receiver does not say when */
    uint32_t size;     /* as given when it was sent */
    uint32_t ssrc; /* the stream (RFC 8888), or the media source that the feedback names (TWCC) */
    leat_fb_state state; /* LEAT_FB_LOST or LEAT_FB_ARRIVED */
    uint8_t ecn;         /* 0 to 3 as in the IP header; 0 where feedback does not tell */
    bool late;           /* an earlier result said that it was lost */
} leat_fb_result;

typedef struct leat_fb_sent {
    leat_time at;
    uint32_t size;
    uint32_t state;
} leat_fb_sent;

/* The packets sent last in one number space. */
typedef struct leat_fb_history {
    leat_fb_sent *ring;
    uint64_t mask;
    uint64_t next;      /* one past the highest number sent */
    uint64_t reported;  /* one past the highest number that feedback told of */
    uint64_t in_flight; /* bytes of [reported, next) */
    leat_mem *mem;
    leat_seq_restart restart; /* numbers too far back */
    bool started;
} leat_fb_history;

/* packets: how many are remembered; a power of two, LEAT_FB_HISTORY_MIN to _MAX. LEAT_ERR_INVALID,
 * LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_fb_history_init(leat_fb_history *history, leat_mem *mem, size_t packets);
LEAT_API void leat_fb_history_free(leat_fb_history *history);

/* A packet of `size` bytes went out with this number; returns the number unwrapped. Numbers need
 * not follow each other; those left out count as never sent. One sent again counts as sent now. One
 * that lies further back than the history reaches is not remembered; the third of them in a row
 * that follow each other begins the numbers anew, above all before. */
LEAT_API uint64_t leat_fb_history_add(leat_fb_history *history, uint16_t seq, leat_time now,
                                      uint32_t size);

/* Bytes sent after the last packet that feedback told of. */
static inline uint64_t leat_fb_history_in_flight(const leat_fb_history *history)
{
    return history->in_flight;
}

LEAT_END_DECLS

#endif
