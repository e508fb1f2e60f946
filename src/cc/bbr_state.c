/* cc/bbr_state.c: BBR's state machine (draft-ietf-ccwg-bbr-06 §5.3).
 *
 *     STARTUP -> DRAIN -> DOWN -> CRUISE -> REFILL -> UP -> DOWN ...
 *
 * and PROBE_RTT from any of them, when the least RTT is 5 s old. STARTUP doubles the rate each
 * round until bandwidth stops growing or too much is lost; DRAIN empties the queue that made; UP
 * looks for more bandwidth every 2 to 3 s, DOWN pays for it, CRUISE sends what is delivered, REFILL
 * fills the pipe before the next look.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/bbr.h"

typedef struct state_facts {
    const char *name;
    uint16_t pacing, cwnd;
} state_facts;

#define STATE_FACTS(name, text, pacing, cwnd) {text, pacing, cwnd},
static const state_facts states[] = {LEAT_BBR_STATE_LIST(STATE_FACTS)};
#undef STATE_FACTS

unsigned leat_bbr_pacing_gain(const leat_bbr *b)
{
    return states[b->state].pacing;
}

unsigned leat_bbr_cwnd_gain(const leat_bbr *b)
{
    return states[b->state].cwnd;
}

const char *leat_bbr_state_name(const leat_cc *cc)
{
    const leat_bbr *b = leat_cc_state_const(cc);

    return states[b->state].name;
}

void leat_bbr_enter(leat_cc *cc, leat_bbr_state state)
{
    leat_bbr_of(cc)->state = (uint8_t)state;
}

/* ---- STARTUP (§5.3.1) ---- */

void leat_bbr_reset_full_bw(leat_bbr *b)
{
    b->full_bw = 0;
    b->full_bw_count = 0;
    b->full_bw_now = false;
}

void leat_bbr_check_full_bw(leat_bbr *b, const leat_bbr_sample *rs)
{
    if (b->full_bw_now || !b->round_start || rs->app_limited || rs->delivery_rate == 0) {
        return;
    }
    if (rs->delivery_rate >= leat_bbr_percent(b->full_bw, LEAT_BBR_FULL_BW_GROWTH)) {
        leat_bbr_reset_full_bw(b);
        b->full_bw = rs->delivery_rate;
        return;
    }
    b->full_bw_count++;
    b->full_bw_now = b->full_bw_count >= LEAT_BBR_FULL_BW_ROUNDS;
    b->full_bw_reached |= b->full_bw_now;
}

/* At the end of a round with losses. */
static void check_startup_loss(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->full_bw_reached || !b->loss_round_start ||
        b->loss_ranges < LEAT_BBR_STARTUP_LOSS_RANGES || !leat_bbr_inflight_too_high(rs)) {
        return;
    }
    b->undo_state = LEAT_BBR_STARTUP;
    b->full_bw_reached = true;
    b->inflight_longterm = leat_bbr_larger(leat_bbr_bdp(cc, b->bw, 100), b->inflight_latest);
}

void leat_bbr_check_startup(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->state != LEAT_BBR_STARTUP) {
        return;
    }
    check_startup_loss(cc, rs);
    if (b->full_bw_reached) {
        leat_bbr_enter(cc, LEAT_BBR_DRAIN);
        b->drain_start_round = b->round_count;
    }
}

/* ---- DRAIN (§5.3.2) ---- */

void leat_bbr_check_drain(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->state == LEAT_BBR_DRAIN &&
        (rs->flight->bytes <= leat_bbr_inflight(cc, b->bw, 100) ||
         b->round_count - b->drain_start_round > LEAT_BBR_DRAIN_ROUNDS)) {
        leat_bbr_start_down(cc, rs->flight, rs->now);
    }
}

/* ---- PROBE_BW (§5.3.3) ---- */

/* Flows must differ; see bbr.h. The finalizer of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void pick_probe_wait(leat_bbr *b, const leat_flight *flight, leat_time now)
{
    uint64_t chance = mix(now + mix(flight->delivered));

    b->rounds_since_probe_up = chance >> 63;
    b->bw_probe_wait = LEAT_BBR_PROBE_WAIT + chance % LEAT_SECOND;
}

void leat_bbr_start_down(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_bbr_reset_congestion(b);
    b->probe_up_acked_per_inc = LEAT_BBR_INFINITE;
    pick_probe_wait(b, flight, now);
    b->cycle_stamp = now;
    b->ack_phase = LEAT_BBR_ACKS_PROBE_STOPPING;
    leat_bbr_start_round(b, flight);
    leat_bbr_enter(cc, LEAT_BBR_DOWN);
}

void leat_bbr_start_refill(leat_cc *cc, const leat_flight *flight)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_bbr_reset_shortterm(b);
    b->bw_probe_up_rounds = 0;
    b->bw_probe_up_acked = 0;
    b->prev_probe_precautionary = false;
    b->ack_phase = LEAT_BBR_ACKS_REFILLING;
    leat_bbr_start_round(b, flight);
    leat_bbr_enter(cc, LEAT_BBR_REFILL);
}

static void raise_slope(leat_cc *cc)
{
    leat_bbr *b = leat_bbr_of(cc);

    b->probe_up_acked_per_inc = leat_bbr_larger(cc->cwnd >> b->bw_probe_up_rounds, cc->mds);
    b->bw_probe_up_rounds += b->bw_probe_up_rounds < 30;
}

static void start_up(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    b->ack_phase = LEAT_BBR_ACKS_PROBE_STARTING;
    leat_bbr_start_round(b, rs->flight);
    leat_bbr_reset_full_bw(b);
    b->full_bw = rs->delivery_rate;
    leat_bbr_enter(cc, LEAT_BBR_UP);
    raise_slope(cc);
}

uint64_t leat_bbr_with_headroom(const leat_cc *cc)
{
    const leat_bbr *b = leat_cc_state_const(cc);
    uint64_t headroom;

    if (b->inflight_longterm == LEAT_BBR_INFINITE) {
        return LEAT_BBR_INFINITE;
    }
    headroom =
        leat_bbr_larger(leat_bbr_percent(b->inflight_longterm, LEAT_BBR_HEADROOM_PERCENT), cc->mds);
    return leat_bbr_larger(b->inflight_longterm - leat_bbr_min(headroom, b->inflight_longterm),
                           leat_bbr_min_pipe(cc));
}

/* Does the flow press against inflight_longterm? */
static bool is_bound(const leat_cc *cc, const leat_bbr_sample *rs)
{
    const leat_bbr *b = leat_cc_state_const(cc);

    return rs->cwnd_limited && cc->cwnd >= b->inflight_longterm;
}

static void probe_longterm_upward(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (!is_bound(cc, rs)) {
        return;
    }
    b->bw_probe_up_acked += rs->newly_acked;
    if (b->bw_probe_up_acked >= b->probe_up_acked_per_inc) {
        uint64_t delta = b->bw_probe_up_acked / b->probe_up_acked_per_inc;

        b->bw_probe_up_acked -= delta * b->probe_up_acked_per_inc;
        b->inflight_longterm += delta * cc->mds;
    }
    if (b->round_start) {
        raise_slope(cc);
    }
}

/* The ACKs of a probe have all come in. True: it went well and goes on. */
static bool probe_feedback_ends(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    b->is_bw_probe_sample = false;
    b->ack_phase = LEAT_BBR_ACKS_INIT;
    if (!leat_bbr_in_probe_bw(b)) {
        return false;
    }
    if (!rs->app_limited) {
        leat_bbr_advance_max_bw(b);
    }
    if (b->prev_probe_precautionary && !b->prev_probe_too_high) {
        leat_bbr_start_refill(cc, rs->flight);
        return true;
    }
    return false;
}

/* True: it decided where to go. */
static bool adapt_longterm(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->ack_phase == LEAT_BBR_ACKS_PROBE_STARTING && b->round_start) {
        b->ack_phase = LEAT_BBR_ACKS_PROBE_FEEDBACK;
    }
    if (b->ack_phase == LEAT_BBR_ACKS_PROBE_STOPPING && b->round_start &&
        probe_feedback_ends(cc, rs)) {
        return true;
    }
    if (leat_bbr_inflight_too_high(rs) || b->inflight_longterm == LEAT_BBR_INFINITE) {
        return false;
    }
    b->inflight_longterm = leat_bbr_larger(b->inflight_longterm, rs->tx_in_flight);
    if (b->state == LEAT_BBR_UP) {
        probe_longterm_upward(cc, rs);
    }
    return false;
}

/* 2 to 3 s after the last probe, or when Reno would have probed (§5.3.3.8). */
static bool is_time_to_probe(const leat_cc *cc, const leat_bbr_sample *rs)
{
    const leat_bbr *b = leat_cc_state_const(cc);
    uint64_t rounds = leat_bbr_target_inflight(cc) / cc->mds;

    return rs->now > leat_time_add(b->cycle_stamp, b->bw_probe_wait) ||
           b->rounds_since_probe_up >= leat_bbr_min(rounds, LEAT_BBR_RENO_ROUNDS);
}

static bool is_time_to_cruise(const leat_cc *cc, const leat_bbr_sample *rs)
{
    const leat_bbr *b = leat_cc_state_const(cc);

    return rs->flight->bytes <= leat_bbr_with_headroom(cc) &&
           rs->flight->bytes <= leat_bbr_inflight(cc, b->max_bw, 100);
}

static bool is_time_to_go_down(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->prev_probe_too_high && rs->flight->bytes >= b->inflight_longterm) {
        b->prev_probe_precautionary = true;
        return true;
    }
    if (is_bound(cc, rs)) {
        leat_bbr_reset_full_bw(b);
        b->full_bw = rs->delivery_rate;
        return false;
    }
    return b->full_bw_now;
}

void leat_bbr_update_cycle(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (!b->full_bw_reached || adapt_longterm(cc, rs)) {
        return;
    }
    switch ((leat_bbr_state)b->state) {
    case LEAT_BBR_DOWN:
        if (is_time_to_probe(cc, rs)) {
            leat_bbr_start_refill(cc, rs->flight);
        } else if (is_time_to_cruise(cc, rs)) {
            leat_bbr_enter(cc, LEAT_BBR_CRUISE);
        }
        break;
    case LEAT_BBR_CRUISE:
        if (is_time_to_probe(cc, rs)) {
            leat_bbr_start_refill(cc, rs->flight);
        }
        break;
    case LEAT_BBR_REFILL:
        if (b->round_start) {
            b->is_bw_probe_sample = true;
            start_up(cc, rs);
        }
        break;
    case LEAT_BBR_UP:
        if (is_time_to_go_down(cc, rs)) {
            b->prev_probe_too_high = false;
            leat_bbr_start_down(cc, rs->flight, rs->now);
        }
        break;
    default:
        break;
    }
}

/* ---- PROBE_RTT (§5.3.4) ---- */

static void exit_probe_rtt(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_bbr_reset_shortterm(b);
    if (b->full_bw_reached) {
        leat_bbr_start_down(cc, flight, now);
        leat_bbr_enter(cc, LEAT_BBR_CRUISE); /* little is in flight: nothing to drain */
    } else {
        leat_bbr_enter(cc, LEAT_BBR_STARTUP);
    }
}

void leat_bbr_check_probe_rtt_done(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->probe_rtt_done_stamp != 0 && now > b->probe_rtt_done_stamp) {
        b->probe_rtt_min_stamp = now;
        leat_bbr_restore_cwnd(cc);
        exit_probe_rtt(cc, flight, now);
    }
}

static void handle_probe_rtt(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_flight_set_app_limited(rs->flight); /* samples are low on purpose */
    if (b->probe_rtt_done_stamp == 0) {
        if (rs->flight->bytes <= leat_bbr_probe_rtt_cwnd(cc)) {
            b->probe_rtt_done_stamp = leat_time_add(rs->now, LEAT_BBR_PROBE_RTT_DURATION);
            b->probe_rtt_round_done = false;
            leat_bbr_start_round(b, rs->flight);
        }
        return;
    }
    b->probe_rtt_round_done |= b->round_start;
    if (b->probe_rtt_round_done) {
        leat_bbr_check_probe_rtt_done(cc, rs->flight, rs->now);
    }
}

void leat_bbr_check_probe_rtt(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->state != LEAT_BBR_PROBE_RTT && b->probe_rtt_expired && !b->idle_restart) {
        leat_bbr_save_cwnd(cc);
        leat_bbr_enter(cc, LEAT_BBR_PROBE_RTT);
        b->probe_rtt_done_stamp = 0;
        b->ack_phase = LEAT_BBR_ACKS_PROBE_STOPPING;
        leat_bbr_start_round(b, rs->flight);
    }
    if (b->state == LEAT_BBR_PROBE_RTT) {
        handle_probe_rtt(cc, rs);
    }
    if (rs->delivered > 0) {
        b->idle_restart = false;
    }
}
