/* recovery/sent.h: the packets sent in one packet-number space, until their fate is known.
 *
 * Two contiguous rings: one record a packet, found by its number; one record a frame, so that a
 * packet has any number of them. Both double when they are full, up to LEAT_SENT_PACKETS and
 * LEAT_SENT_FRAMES, and keep what they have until leat_sent_shrink(). What they hold is charged
 * before it is taken; who has used the budget up sends nothing new until something is acknowledged.
 *
 * Sending a packet
 *  1. leat_sent_begin(): makes sure that there is room for one packet and a usual number of frames.
 *     Its number will be leat_sent_next_pn().
 *  2. leat_sent_add() for each frame that somebody wants to hear of again. It may refuse: then do
 * not write that frame into this packet.
 *  3. leat_sent_commit() once the packet is sealed, or leat_sent_abort(): the number was not used.
 *     leat_sent_skip() between packets gives a number up on purpose: a peer that acknowledges it
 *     is caught (RFC 9000 §21.4).
 *
 * An ACK frame arrives
 *  4. leat_sent_ack_start() with its largest number, leat_sent_ack_range() for each range, newest
 *     first, leat_sent_ack_finish(). Each newly acknowledged packet is taken out of flight and the
 *     on_acked of its frames called. Work is proportional to the packets newly acknowledged and
 *     the ranges in the frame, not to the numbers that these span.
 *     LEAT_ERR_INVALID: the peer acknowledged what was never sent; close with PROTOCOL_VIOLATION.
 *  5. leat_sent_detect_lost() (through recovery/loss.h): what is lost by now is taken out of
 * flight, the on_lost of its frames called. The record stays for a while (`keep` from the loss on),
 * so that a late ACK shows the loss to have been spurious; frames hear nothing more.
 *
 * Whenever the frames should be sent once more though nothing is known to be lost (PTO)
 *  6. leat_sent_requeue(): on_lost of the frames of the oldest packets is called; the packets stay
 *     in flight and count when acknowledged, but their frames hear nothing more.
 *
 * Each frame record committed is told exactly once: on_acked or on_lost, by 4, 5, 6,
 * leat_sent_forget(), or a leat_sent_begin() that had to make room. A callback may do anything but
 * call this leat_sent.
 *
 * A packet's flags say what it counts for: in flight (RFC 9002 §2) for the window, ack-eliciting
 * for PTO. Of one that is not in flight (ACKs alone, a close) no frames are kept and nobody is
 * told: a receiver that only sends ACKs keeps nothing. Losing a path MTU probe is not congestion
 * (RFC 9000 §14.4).
 *
 * Paths: each packet carries a small path number. Only those that carry the current one count in
 * the leat_flight and in the sums handed to congestion control; leat_sent_set_path() changes it.
 * What is sent on others is summed in `aside`, for whoever bounds it.
 *
 * Sending times do not decrease from one commit to the next (a clock that steps back is clamped).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_SENT_H
#define LEAT_RECOVERY_SENT_H

#include "base/assert.h"
#include "base/time.h"
#include "mem/budget.h"
#include "mem/mem.h"
#include "recovery/flight.h"
#include <leat/limits.h>

/* Room for so many frames is made before a packet is begun. */
#define LEAT_SENT_FRAMES_USUAL  16

/* The smallest rings. */
#define LEAT_SENT_PACKETS_LEAST 16
#define LEAT_SENT_FRAMES_LEAST  32

/* All leat_sent of a budget together hold no more than this part of it: what the peer may send has
 * to fit in as well. */
#define LEAT_SENT_BUDGET_SHARE  4

/* ---- frames ---- */

typedef struct leat_sent_frame {
    uint64_t value; /* an offset, a sequence number, a limit: as the kind says */
    void *owner;    /* must live until the frame has been told */
    uint32_t len;
    uint16_t flags;
    uint8_t kind; /* index into the table of leat_frame_ops */
} leat_sent_frame;

/* What becomes of frames of one kind; either may be NULL. ctx is what leat_sent_init() was given.
 */
typedef struct leat_frame_ops {
    void (*on_acked)(void *ctx, const leat_sent_frame *frame);
    void (*on_lost)(void *ctx, const leat_sent_frame *frame);
} leat_frame_ops;

/* ---- packets ---- */

enum leat_sent_flags {
    LEAT_SENT_ELICITING = 1 << 0, /* ack-eliciting */
    LEAT_SENT_IN_FLIGHT = 1 << 1, /* counts toward bytes in flight */
    LEAT_SENT_MTU_PROBE = 1 << 2, /* its loss is not congestion */
    LEAT_SENT_ECT0 = 1 << 3,
    LEAT_SENT_ECT1 = 1 << 4,
    LEAT_SENT_ASIDE = 1 << 5,      /* internal: counts in leat_sent.aside */
    LEAT_SENT_REQUEUED = 1 << 6,   /* internal: frames have been told */
    LEAT_SENT_APP_LIMITED = 1 << 7 /* internal: as the flight was */
};

typedef struct leat_sent_packet leat_sent_packet;

/* One packet newly acknowledged, before its frames are told. It may do no more than copy. */
typedef void leat_sent_acked_fn(void *ctx, uint64_t pn, const leat_sent_packet *packet);

typedef enum leat_sent_state {
    LEAT_SENT_OUTSTANDING,
    LEAT_SENT_LOST,
    LEAT_SENT_SKIPPED,
    LEAT_SENT_ACKED
} leat_sent_state;

struct leat_sent_packet {
    leat_time sent_at;
    union {
        leat_time delivered_at; /* outstanding: the flight's, when this was sent */
        leat_time lost_at;      /* lost: when declared so */
        uint64_t closed_from;   /* acked: so are all numbers from this one on, as far as is known */
    };
    leat_time first_sent_at; /* these three: the flight's, when this was sent */
    uint64_t delivered;
    uint64_t lost;
    uint64_t in_flight; /* bytes, this packet among them */
    uint32_t frame_first;
    uint16_t frame_count;
    uint16_t size;
    union {
        struct {
            uint8_t flags;
            uint8_t state;
            uint8_t path;
            uint8_t zero;
        };
        uint32_t tag; /* the three in one: most packets of one ACK have it alike */
    };
};

typedef struct leat_sent {
    leat_sent_packet *packets; /* packets[pn & packet_mask] for head <= pn < next_pn */
    leat_sent_frame *frames;   /* frames[i & frame_mask] for frame_head <= i < frame_tail */
    uint32_t packet_cap;       /* powers of two, or 0 */
    uint32_t frame_cap;
    uint64_t head;              /* oldest number with a record */
    uint64_t next_pn;           /* the next number to be sent */
    uint64_t open;              /* nothing below is outstanding and in flight */
    uint64_t largest_acked_end; /* 1 + the largest number acknowledged; 0: none */
    uint32_t frame_head;
    uint32_t frame_tail;    /* as committed; these run modulo 2^32 */
    uint32_t frame_pending; /* frame_tail and what was added since begin */
    uint32_t outstanding;   /* packets in flight, on any path */
    uint32_t eliciting;     /* of these, ack-eliciting */
    uint64_t bytes;         /* in flight in this space, on the current path */
    leat_time last_sent_at;
    leat_time last_eliciting_at; /* when the newest ack-eliciting packet was sent */
    leat_time loss_run_at;       /* sending time of the first of a run of losses; NEVER: none */
    leat_time keep;              /* how long lost packets are remembered: as last told */
    uint8_t path;
    bool busy;      /* in a callback, or between begin and commit */
    uint32_t aside; /* bytes in flight that were sent on another path than the current one */
    leat_flight *flight;
    const leat_frame_ops *ops;
    void *ctx;
    leat_sent_acked_fn *visit_acked; /* told of each packet acknowledged; may be NULL */
    void *visit_acked_ctx;
    leat_mem *mem;
    leat_budget *budget; /* NULL: nobody counts */
    uint32_t packet_limit;
    uint32_t frame_limit;
} leat_sent;

/* Starts with number 0 and no storage. ops is an array indexed by kind, and like flight and ctx
 * must outlive *sent. */
void leat_sent_init(leat_sent *sent, leat_mem *mem, leat_flight *flight, const leat_frame_ops *ops,
                    void *ctx);

/* From now on (nothing is held yet) storage is charged. The smallest rings are charged for here and
 * until leat_sent_free(), whether they are held or not: a connection that has used its budget up
 * can always acknowledge, probe and close. */
void leat_sent_set_budget(leat_sent *sent, leat_budget *budget);

/* Drops everything without telling anybody and gives the storage back. */
void leat_sent_free(leat_sent *sent);

/* Keys dropped (RFC 9002 §6.4), Retry, or 0-RTT rejected: takes everything out of flight and, if
 * `lost` is set, tells on_lost to the frames not told yet (otherwise nobody hears of them again).
 * The storage goes back; numbers go on (a Retry does not reset them). */
void leat_sent_forget(leat_sent *sent, bool lost);

/* Gives storage back as far as nothing in it is needed; all of it when nothing is in flight. For a
 * connection that has become idle. Forgets lost packets kept for a late ACK. */
void leat_sent_shrink(leat_sent *sent);

/* Bytes of storage held, and what is charged for them. */
size_t leat_sent_memory(const leat_sent *sent);
size_t leat_sent_charged(const leat_sent *sent);

/* ---- sending ---- */

/* None is sent with this number or above: the connection ends without a word (RFC 9000 s12.3). */
#define LEAT_PN_LAST ((UINT64_C(1) << 62) - 1)

static inline uint64_t leat_sent_next_pn(const leat_sent *sent)
{
    return sent->next_pn;
}

/* Room for one packet more, and for a usual number of frames. */
static inline bool leat_sent_has_room(const leat_sent *sent)
{
    return sent->next_pn - sent->head < sent->packet_cap &&
           sent->frame_tail - sent->frame_head + LEAT_SENT_FRAMES_USUAL <= sent->frame_cap;
}

leat_err leat_sent_make_room(leat_sent *sent,
                             bool must) LEAT_SELDOM; /* for leat_sent_begin() alone */

/* LEAT_ERR_LIMIT: as many packets are outstanding as may be, or as the budget has room for: send
 * when some have been acknowledged. LEAT_ERR_NOMEM. With `must` (a probe, an ACK, a close) a full
 * ring instead gives up its oldest packet, whose frames are told on_lost, so that only
 * LEAT_ERR_NOMEM remains, and that only before the first packet: a ring that cannot grow gives up
 * its oldest as well. */
static inline leat_err leat_sent_begin(leat_sent *sent, bool must)
{
    LEAT_ASSERT(!sent->busy);
    sent->busy = true;
    sent->frame_pending = sent->frame_tail;
    if (LEAT_UNLIKELY(!leat_sent_has_room(sent))) {
        return leat_sent_make_room(sent, must);
    }
    return LEAT_OK;
}

/* LEAT_ERR_LIMIT, LEAT_ERR_NOMEM: the frame is not recorded; the packet may go on without it. */
leat_err leat_sent_add_slow(leat_sent *sent, const leat_sent_frame *frame) LEAT_SELDOM;

static inline leat_err leat_sent_add(leat_sent *sent, uint8_t kind, void *owner, uint64_t value,
                                     uint32_t len, uint16_t flags)
{
    leat_sent_frame frame = {value, owner, len, flags, kind};

    LEAT_DCHECK(sent->busy);
    if (LEAT_UNLIKELY(sent->frame_pending - sent->frame_head >= sent->frame_cap)) {
        return leat_sent_add_slow(sent, &frame);
    }
    sent->frames[sent->frame_pending++ & (sent->frame_cap - 1)] = frame;
    return LEAT_OK;
}

/* Frames added since begin: 0 says that nothing of this packet needs to be told. */
static inline uint32_t leat_sent_added(const leat_sent *sent)
{
    return sent->frame_pending - sent->frame_tail;
}

/* The packet goes out at `now`, `size` bytes of UDP payload. flags are leat_sent_flags without the
 * internal ones; ack-eliciting implies in flight (asserted). */
void leat_sent_commit(leat_sent *sent, leat_time now, uint16_t size, uint8_t flags, uint8_t path);
void leat_sent_abort(leat_sent *sent);

/* Gives up the next number. Does nothing, and returns false, when the ring has no room or nothing
 * is in flight: try again after the next packet. */
bool leat_sent_skip(leat_sent *sent);

/* From now on `path` is what counts, in this flight (which may be the same). In-flight bytes of
 * that path are added to it, those of the other taken out of the old. Linear in what is
 * outstanding. */
void leat_sent_set_path(leat_sent *sent, leat_flight *flight, uint8_t path);

/* ---- acknowledgement ---- */

/* What one ACK frame did. Bytes and counts are of newly acknowledged packets on the current path.
 */
typedef struct leat_sent_acked {
    leat_time now;
    uint64_t largest;         /* as the frame names it */
    leat_time recovery_start; /* given: see bytes_after */
    uint64_t prior_in_flight; /* flight->bytes before */
    uint64_t bytes;           /* in flight before, acknowledged now */
    uint64_t bytes_after;     /* of these, sent after recovery_start */
    uint32_t packets;         /* newly acknowledged, on any path, also those not in flight */
    uint32_t ect0, ect1;      /* newly acknowledged that were sent with this mark */
    uint16_t largest_size;    /* bytes of the largest packet in `bytes` */
    uint32_t jumps;           /* steps over what was acknowledged already: what stale ranges cost */
    uint32_t spurious;        /* packets declared lost before, acknowledged now */
    leat_time spurious_sent_at; /* the latest sending time among these */
    bool eliciting;             /* one at least, on the current path, was ack-eliciting */
    bool largest_is_new;        /* the largest was acknowledged now, on the current path */
    bool rtt_sample;           /* largest_is_new and eliciting: now - largest_sent_at is a sample */
    leat_time largest_sent_at; /* if largest_is_new */
    leat_time newest_sent_at;  /* of the newest packet in bytes; 0 if bytes is 0 */
    leat_time newest_first_sent_at; /* as its record has it, */
    leat_time newest_delivered_at;  /* for the rate sample */
    leat_rate_sample rate;
} leat_sent_acked;

/* now is the arrival time of the datagram. recovery_start as the congestion controller has it (0:
 * none). LEAT_ERR_INVALID: largest was never sent. */
leat_err leat_sent_ack_start(leat_sent *sent, leat_sent_acked *acked, uint64_t largest,
                             leat_time now, leat_time recovery_start);

/* The numbers [from, to), as leat_ack_iter_next() gives them: none above `largest`, each range
 * below the one before. LEAT_ERR_INVALID: one of them was skipped. */
leat_err leat_sent_ack_range(leat_sent *sent, leat_sent_acked *acked, uint64_t from, uint64_t to);

/* Completes the sums and the rate sample. min_rtt (0: unknown) filters samples too short to be
 * true. */
void leat_sent_ack_finish(leat_sent *sent, leat_sent_acked *acked, leat_time min_rtt);

/* ---- loss ---- */

/* One lost packet, as a visitor sees it. */
typedef struct leat_sent_loss {
    leat_time now; /* declared lost */
    uint64_t pn;
    leat_time sent_at;
    uint64_t in_flight; /* bytes in flight just after it was sent, it among them */
    uint64_t lost;      /* flight->lost when it was sent */
    uint64_t delivered; /* flight->delivered when it was sent */
    uint16_t size;
    uint8_t flags;
    bool counts; /* it was in flight on the current path and no MTU probe: a congestion signal */
} leat_sent_loss;

typedef void leat_sent_loss_fn(void *ctx, const leat_sent_loss *loss);

/* How to look for losses (RFC 9002 §6.1, §7.6). */
typedef struct leat_sent_loss_rule {
    leat_time now;
    leat_time delay;           /* lost when sent this long before now (leat_rtt_loss_delay()) */
    leat_time acked_elsewhere; /* sending time of the newest packet acknowledged in another space: a
                                  run of losses that began before is over (0: none) */
    leat_time first_rtt_at;    /* losses of packets sent before are no persistent congestion */
    leat_time persistent;      /* a run of losses over more than this is; NEVER: do not look */
    leat_time keep;            /* remember lost packets this long */
    uint32_t packets;          /* lost when this many numbers below the largest acknowledged */
    leat_sent_loss_fn *visit;  /* told of each, before its frames; may be NULL */
    void *visit_ctx;
} leat_sent_loss_rule;

typedef struct leat_sent_lost {
    uint32_t packets;          /* declared lost, of any sort */
    uint64_t bytes;            /* that counted in flight on the current path */
    uint64_t congestion_bytes; /* of these, not of MTU probes: 0 means no congestion event */
    leat_time newest_sent_at;  /* of those in congestion_bytes */
    bool persistent;           /* they establish persistent congestion (§7.6.2) */
    leat_time next_at;         /* when the next packet will be lost by time; NEVER: none waits */
} leat_sent_lost;

void leat_sent_detect_lost(leat_sent *sent, const leat_sent_loss_rule *rule, leat_sent_lost *lost);

/* All that was in flight below the largest number acknowledged is acknowledged too: nothing can be
 * lost. */
static inline bool leat_sent_is_whole(const leat_sent *sent)
{
    return sent->open >= sent->largest_acked_end;
}

/* When the oldest outstanding packet below the largest acknowledged will be lost by time, given the
 * delay; NEVER: there is none. */
leat_time leat_sent_loss_time(const leat_sent *sent, leat_time delay);

/* Tells on_lost to the frames of up to n of the oldest outstanding ack-eliciting packets that have
 * frames untold. Returns how many packets had some. */
uint32_t leat_sent_requeue(leat_sent *sent, uint32_t n);

/* An ack-eliciting packet is in flight. */
static inline bool leat_sent_has_eliciting(const leat_sent *sent)
{
    return sent->eliciting > 0;
}

/* 1 + the largest number acknowledged; 0: none. What leat_pn_len() wants. */
static inline uint64_t leat_sent_acked_end(const leat_sent *sent)
{
    return sent->largest_acked_end;
}

/* Walks everything and asserts what must hold. */
void leat_sent_check(const leat_sent *sent);

#endif
