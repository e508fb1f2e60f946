/* cc/bbr.h: BBR version 3 (draft-ietf-ccwg-bbr-06), as its files share it. Not for others.
 *
 *     bbr.c        the door's calls; pacing rate and window out of the model (§5.2, §5.6)
 *     bbr_state.c  the state machine (§5.3, §5.4)
 *     bbr_model.c  the model of the path: bandwidth, RTT, aggregation, bounds by loss (§5.5)
 *
 * Names are the draft's without its prefixes. Section numbers in these files are the draft's. Its
 * constants stand here and nowhere else; it has no code points.
 *
 * Where this differs from the draft:
 *   - CE marks, about which the draft says nothing, count as a loss in the round, and as too much
 *     in flight when they come while bandwidth is probed (RFC 9002 §7.1 wants a reaction).
 *   - The state for an undo is saved when a loss episode begins (cc/episode.h), which is what is
 *     undone, and not anew in each of its rounds.
 *   - A retransmission timeout does not exist; persistent congestion takes its place (§5.6.4.4).
 *   - The random part of the time between probes is a hash of the time and of what was delivered:
 *     flows need to differ, nobody needs to be surprised, and a simulation can be replayed.
 *
 * Rates are bytes a second, at most LEAT_BBR_RATE_MAX; RTTs are used in microseconds, at most
 * LEAT_BBR_RTT_MAX; their product then fits 64 bits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CC_BBR_H
#define LEAT_CC_BBR_H

#include "cc/cc.h"
#include "cc/episode.h"

/* ---- constants (§2.5 to §2.16) ---- */

#define LEAT_BBR_LOSS_THRESH_PERCENT   2  /* LossThresh */
#define LEAT_BBR_BETA_PERCENT          70 /* Beta */
#define LEAT_BBR_HEADROOM_PERCENT      15 /* Headroom */
#define LEAT_BBR_MIN_PIPE              4  /* MinPipeCwnd, datagrams */
#define LEAT_BBR_PACING_MARGIN_PERCENT 1  /* PacingMarginPercent */
#define LEAT_BBR_STARTUP_PACING        277
#define LEAT_BBR_STARTUP_LOSS_RANGES   6   /* StartupFullLossCnt */
#define LEAT_BBR_FULL_BW_GROWTH        125 /* percent: still growing */
#define LEAT_BBR_FULL_BW_ROUNDS        3
#define LEAT_BBR_DRAIN_ROUNDS          3
#define LEAT_BBR_RENO_ROUNDS           63
#define LEAT_BBR_PROBE_WAIT            (2 * LEAT_SECOND) /* and up to one second more */
#define LEAT_BBR_MIN_RTT_FILTER        (10 * LEAT_SECOND)
#define LEAT_BBR_PROBE_RTT_INTERVAL    (5 * LEAT_SECOND)
#define LEAT_BBR_PROBE_RTT_DURATION    (200 * LEAT_MILLISECOND)
#define LEAT_BBR_EXTRA_ACKED_ROUNDS    10
#define LEAT_BBR_QUANTUM_MAX           65536 /* §5.6.3 */

#define LEAT_BBR_RATE_MAX              (UINT64_C(1) << 38)
#define LEAT_BBR_RTT_MAX               (UINT64_C(1) << 24) /* microseconds */
#define LEAT_BBR_INFINITE              UINT64_MAX

/* X(NAME, name for qlog, pacing gain, cwnd gain), in percent (§5.6.1) */
#define LEAT_BBR_STATE_LIST(X)                                                                     \
    X(STARTUP, "startup", LEAT_BBR_STARTUP_PACING, 200)                                            \
    X(DRAIN, "drain", 50, 200)                                                                     \
    X(DOWN, "probe_bw_down", 90, 200)                                                              \
    X(CRUISE, "probe_bw_cruise", 100, 200)                                                         \
    X(REFILL, "probe_bw_refill", 100, 200)                                                         \
    X(UP, "probe_bw_up", 125, 225)                                                                 \
    X(PROBE_RTT, "probe_rtt", 100, 50)

#define LEAT_BBR_STATE_ENUM(name, text, pacing, cwnd) LEAT_BBR_##name,
typedef enum leat_bbr_state { LEAT_BBR_STATE_LIST(LEAT_BBR_STATE_ENUM) } leat_bbr_state;
#undef LEAT_BBR_STATE_ENUM

/* What the ACKs that come in now tell about (§2.14). */
typedef enum leat_bbr_ack_phase {
    LEAT_BBR_ACKS_INIT,
    LEAT_BBR_ACKS_REFILLING,
    LEAT_BBR_ACKS_PROBE_STARTING,
    LEAT_BBR_ACKS_PROBE_FEEDBACK,
    LEAT_BBR_ACKS_PROBE_STOPPING
} leat_bbr_ack_phase;

/* A windowed maximum: the best of the window, and the best after each of these. */
typedef struct leat_bbr_max {
    uint64_t value[3];
    uint32_t round[3];
} leat_bbr_max;

typedef struct leat_bbr {
    /* the model: rates */
    uint64_t bw_filter[2]; /* maxima of the cycle before and of this one */
    uint64_t max_bw;
    uint64_t bw_shortterm;
    uint64_t bw;
    uint64_t bw_latest;
    /* the model: volumes */
    uint64_t inflight_latest;
    uint64_t inflight_shortterm;
    uint64_t inflight_longterm;
    uint64_t extra_acked_delivered;
    leat_time extra_acked_start;
    leat_bbr_max extra_acked;
    /* the model: RTT */
    leat_time min_rtt; /* NEVER: none */
    leat_time min_rtt_stamp;
    leat_time probe_rtt_min_delay;
    leat_time probe_rtt_min_stamp;
    leat_time probe_rtt_done_stamp; /* 0: none */
    /* rounds */
    uint64_t next_round_delivered;
    uint64_t loss_round_delivered;
    uint32_t round_count;
    uint32_t drain_start_round;
    uint32_t rounds_since_probe_up;
    /* full pipe */
    uint64_t full_bw;
    /* probing */
    uint64_t probe_up_acked_per_inc;
    uint64_t bw_probe_up_acked;
    leat_time cycle_stamp;
    leat_time bw_probe_wait;
    /* what to go back to */
    uint64_t prior_cwnd;
    uint64_t undo_bw_shortterm;
    uint64_t undo_inflight_shortterm;
    uint64_t undo_inflight_longterm;
    leat_cc_episode episode;
    uint64_t lost_pn_end; /* 1 + the number lost last: ranges are counted by it */
    uint8_t loss_ranges;  /* discontiguous, in this round */
    uint8_t full_bw_count;
    uint8_t bw_probe_up_rounds;
    uint8_t state;      /* leat_bbr_state */
    uint8_t undo_state; /* the state to go back to; CRUISE: none */
    uint8_t ack_phase;  /* leat_bbr_ack_phase */
    bool round_start;
    bool loss_round_start;
    bool is_loss_in_round;
    bool is_bw_probe_sample;
    bool full_bw_now;
    bool full_bw_reached;
    bool prev_probe_too_high;
    bool prev_probe_precautionary;
    bool probe_rtt_expired;
    bool probe_rtt_round_done;
    bool idle_restart;
    bool in_recovery;
    bool has_rate; /* the pacing rate was set from an RTT sample */
} leat_bbr;

/* No state is gone back to by it, so it says "none" (§5.5.11). */
#define LEAT_BBR_UNDO_NONE LEAT_BBR_CRUISE

/* The rate sample, RS of the draft. */
typedef struct leat_bbr_sample {
    leat_time now;
    leat_time rtt;
    uint64_t delivery_rate; /* 0: none */
    uint64_t delivered;
    uint64_t prior_delivered;
    uint64_t newly_acked;
    uint64_t tx_in_flight;
    uint64_t lost; /* since the packet was sent */
    bool app_limited;
    bool cwnd_limited;
    leat_flight *flight;
} leat_bbr_sample;

static inline leat_bbr *leat_bbr_of(leat_cc *cc)
{
    return leat_cc_state(cc);
}

static inline uint64_t leat_bbr_percent(uint64_t x, uint64_t percent)
{
    return x == LEAT_BBR_INFINITE ? x : x / 100 * percent + x % 100 * percent / 100;
}

static inline uint64_t leat_bbr_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t leat_bbr_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t leat_bbr_min_pipe(const leat_cc *cc)
{
    return LEAT_BBR_MIN_PIPE * (uint64_t)cc->mds;
}

static inline bool leat_bbr_in_probe_bw(const leat_bbr *b)
{
    return b->state >= LEAT_BBR_DOWN && b->state <= LEAT_BBR_UP;
}

/* ---- bbr.c ---- */

/* gain * bw * min_rtt; the initial window before there is an RTT. */
uint64_t leat_bbr_bdp(const leat_cc *cc, uint64_t bw, unsigned gain_percent);
/* The same with room for offloads and the least pipe (Inflight() of §5.6.4.2). */
uint64_t leat_bbr_inflight(const leat_cc *cc, uint64_t bw, unsigned gain_percent);
uint64_t leat_bbr_probe_rtt_cwnd(const leat_cc *cc);
void leat_bbr_set_pacing(leat_cc *cc, unsigned gain_percent);
void leat_bbr_save_cwnd(leat_cc *cc);
void leat_bbr_restore_cwnd(leat_cc *cc);

/* ---- bbr_model.c ---- */

void leat_bbr_model_init(leat_bbr *b, leat_time now);
void leat_bbr_update_latest(leat_bbr *b, const leat_bbr_sample *rs);
void leat_bbr_update_congestion(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_update_aggregation(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_update_min_rtt(leat_bbr *b, const leat_bbr_sample *rs);
void leat_bbr_advance_latest(leat_bbr *b, const leat_bbr_sample *rs);
void leat_bbr_bound_bw(leat_bbr *b);
void leat_bbr_advance_max_bw(leat_bbr *b);
void leat_bbr_reset_shortterm(leat_bbr *b);
void leat_bbr_reset_congestion(leat_bbr *b);
void leat_bbr_start_round(leat_bbr *b, const leat_flight *flight);
/* A loss, or a mark, in this round. */
void leat_bbr_note_loss(leat_bbr *b, const leat_flight *flight);
bool leat_bbr_inflight_too_high(const leat_bbr_sample *rs);
/* One lost packet: how it bears on probing (§5.5.10.2). */
void leat_bbr_handle_lost(leat_cc *cc, const leat_sent_loss *loss, const leat_flight *flight);
/* Too much was in flight: tx_in_flight of rs. */
void leat_bbr_handle_too_high(leat_cc *cc, const leat_bbr_sample *rs);
/* min(bdp, cwnd) */
uint64_t leat_bbr_target_inflight(const leat_cc *cc);

/* ---- bbr_state.c ---- */

void leat_bbr_enter(leat_cc *cc, leat_bbr_state state);
void leat_bbr_start_down(leat_cc *cc, const leat_flight *flight, leat_time now);
void leat_bbr_start_refill(leat_cc *cc, const leat_flight *flight);
void leat_bbr_reset_full_bw(leat_bbr *b);
void leat_bbr_check_full_bw(leat_bbr *b, const leat_bbr_sample *rs);
void leat_bbr_check_startup(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_check_drain(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_update_cycle(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_check_probe_rtt(leat_cc *cc, const leat_bbr_sample *rs);
void leat_bbr_check_probe_rtt_done(leat_cc *cc, const leat_flight *flight, leat_time now);
/* inflight_longterm with room left for others; infinite if it is. */
uint64_t leat_bbr_with_headroom(const leat_cc *cc);
unsigned leat_bbr_pacing_gain(const leat_bbr *b);
unsigned leat_bbr_cwnd_gain(const leat_bbr *b);
const char *leat_bbr_state_name(const leat_cc *cc);

#endif
