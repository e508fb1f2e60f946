/* cc/bbr_model.c: what BBR believes of the path (draft-ietf-ccwg-bbr-06 §5.5).
 *
 * Two time scales: max_bw and inflight_longterm stand until a probe finds something else;
 * bw_shortterm and inflight_shortterm follow losses down, round by round, and are forgotten when
 * the next probe begins.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/bbr.h"

void leat_bbr_model_init(leat_bbr *b, leat_time now)
{
    b->min_rtt = LEAT_TIME_NEVER;
    b->min_rtt_stamp = now;
    b->probe_rtt_min_delay = LEAT_TIME_NEVER;
    b->probe_rtt_min_stamp = now;
    b->extra_acked_start = now;
    b->inflight_longterm = LEAT_BBR_INFINITE;
    b->probe_up_acked_per_inc = LEAT_BBR_INFINITE;
    leat_bbr_reset_congestion(b);
    leat_bbr_reset_shortterm(b);
}

/* ---- rounds (§5.5.1) ---- */

void leat_bbr_start_round(leat_bbr *b, const leat_flight *flight)
{
    b->next_round_delivered = flight->delivered;
}

static void update_round(leat_bbr *b, const leat_bbr_sample *rs)
{
    b->round_start = rs->prior_delivered >= b->next_round_delivered;
    if (b->round_start) {
        leat_bbr_start_round(b, rs->flight);
        b->round_count++;
        b->rounds_since_probe_up++;
    }
}

/* ---- bandwidth (§5.5.2 to §5.5.6) ---- */

static void update_max_bw(leat_bbr *b, const leat_bbr_sample *rs)
{
    update_round(b, rs);
    if (rs->delivery_rate > 0 && (rs->delivery_rate >= b->max_bw || !rs->app_limited)) {
        b->bw_filter[1] = leat_bbr_larger(b->bw_filter[1], rs->delivery_rate);
        b->max_bw = leat_bbr_larger(b->bw_filter[0], b->bw_filter[1]);
    }
}

void leat_bbr_advance_max_bw(leat_bbr *b)
{
    if (b->bw_filter[1] == 0) {
        return; /* a cycle without samples does not forget the one before */
    }
    b->bw_filter[0] = b->bw_filter[1];
    b->bw_filter[1] = 0;
    b->max_bw = b->bw_filter[0];
}

void leat_bbr_bound_bw(leat_bbr *b)
{
    b->bw = leat_bbr_min(b->max_bw, b->bw_shortterm);
}

/* ---- RTT (§5.3.4.3) ---- */

void leat_bbr_update_min_rtt(leat_bbr *b, const leat_bbr_sample *rs)
{
    b->probe_rtt_expired =
        rs->now > leat_time_add(b->probe_rtt_min_stamp, LEAT_BBR_PROBE_RTT_INTERVAL);
    if (rs->rtt < b->probe_rtt_min_delay || b->probe_rtt_expired) {
        b->probe_rtt_min_delay = rs->rtt;
        b->probe_rtt_min_stamp = rs->now;
    }
    if (b->probe_rtt_min_delay < b->min_rtt ||
        rs->now > leat_time_add(b->min_rtt_stamp, LEAT_BBR_MIN_RTT_FILTER)) {
        b->min_rtt = b->probe_rtt_min_delay;
        b->min_rtt_stamp = b->probe_rtt_min_stamp;
    }
}

/* ---- aggregation (§5.5.9) ---- */

static void max_put(leat_bbr_max *m, int from, uint64_t value, uint32_t round)
{
    for (int i = from; i < 3; i++) {
        m->value[i] = value;
        m->round[i] = round;
    }
}

static void max_shift(leat_bbr_max *m)
{
    m->value[0] = m->value[1];
    m->round[0] = m->round[1];
    m->value[1] = m->value[2];
    m->round[1] = m->round[2];
}

/* The maximum of the last `window` rounds, by three candidates that age in turn. */
static void max_update(leat_bbr_max *m, uint32_t window, uint64_t value, uint32_t round)
{
    if (value >= m->value[0] || round - m->round[2] > window) {
        max_put(m, 0, value, round);
        return;
    }
    if (value >= m->value[1]) {
        max_put(m, 1, value, round);
    } else if (value >= m->value[2]) {
        max_put(m, 2, value, round);
    }
    while (round - m->round[0] > window) {
        max_shift(m);
        m->value[2] = value;
        m->round[2] = round;
    }
}

void leat_bbr_update_aggregation(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);
    leat_time interval = leat_time_since(rs->now, b->extra_acked_start);
    /* An interval as long as RTT_MAX ends here anyway: nothing is expected to last longer. */
    uint64_t us = leat_bbr_min(interval / LEAT_MICROSECOND, LEAT_BBR_RTT_MAX);
    uint64_t expected = b->bw * us / 1000000;
    uint32_t window = b->full_bw_reached ? LEAT_BBR_EXTRA_ACKED_ROUNDS : 1;

    if (b->extra_acked_delivered <= expected) {
        b->extra_acked_delivered = 0;
        b->extra_acked_start = rs->now;
        expected = 0;
    }
    b->extra_acked_delivered += rs->newly_acked;
    max_update(&b->extra_acked, window, leat_bbr_min(b->extra_acked_delivered - expected, cc->cwnd),
               b->round_count);
}

/* ---- what a round delivers, and loss outside of probes (§5.5.10.3) ---- */

void leat_bbr_reset_shortterm(leat_bbr *b)
{
    b->bw_shortterm = LEAT_BBR_INFINITE;
    b->inflight_shortterm = LEAT_BBR_INFINITE;
}

void leat_bbr_reset_congestion(leat_bbr *b)
{
    b->is_loss_in_round = false;
    b->bw_latest = 0;
    b->inflight_latest = 0;
}

void leat_bbr_update_latest(leat_bbr *b, const leat_bbr_sample *rs)
{
    b->bw_latest = leat_bbr_larger(b->bw_latest, rs->delivery_rate);
    b->inflight_latest = leat_bbr_larger(b->inflight_latest, rs->delivered);
    b->loss_round_start = rs->prior_delivered >= b->loss_round_delivered;
    if (b->loss_round_start) {
        b->loss_round_delivered = rs->flight->delivered;
    }
}

void leat_bbr_advance_latest(leat_bbr *b, const leat_bbr_sample *rs)
{
    if (b->loss_round_start) {
        b->bw_latest = rs->delivery_rate;
        b->inflight_latest = rs->delivered;
        b->loss_ranges = 0;
    }
}

static bool is_probing(const leat_bbr *b)
{
    return b->state == LEAT_BBR_STARTUP || b->state == LEAT_BBR_REFILL || b->state == LEAT_BBR_UP;
}

/* The rate that the last round delivered, had it not been paced a margin below bw: else each round
 * with a loss, however small, would take the margin off for good. */
static uint64_t bw_latest_unpaced(const leat_bbr *b)
{
    return b->bw_latest * 100 / (100 - LEAT_BBR_PACING_MARGIN_PERCENT);
}

static void adapt_lower_bounds(leat_cc *cc)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (is_probing(b) || !b->is_loss_in_round) {
        return;
    }
    if (b->bw_shortterm == LEAT_BBR_INFINITE) {
        b->bw_shortterm = b->max_bw;
    }
    if (b->inflight_shortterm == LEAT_BBR_INFINITE) {
        b->inflight_shortterm = cc->cwnd;
    }
    b->bw_shortterm = leat_bbr_larger(bw_latest_unpaced(b),
                                      leat_bbr_percent(b->bw_shortterm, LEAT_BBR_BETA_PERCENT));
    b->inflight_shortterm = leat_bbr_larger(
        b->inflight_latest, leat_bbr_percent(b->inflight_shortterm, LEAT_BBR_BETA_PERCENT));
}

void leat_bbr_update_congestion(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    update_max_bw(b, rs);
    if (b->loss_round_start) {
        adapt_lower_bounds(cc);
        b->is_loss_in_round = false;
    }
}

/* ---- loss while probing (§5.5.10.2) ---- */

void leat_bbr_note_loss(leat_bbr *b, const leat_flight *flight)
{
    if (!b->is_loss_in_round) {
        b->loss_round_delivered = flight->delivered;
    }
    b->is_loss_in_round = true;
}

bool leat_bbr_inflight_too_high(const leat_bbr_sample *rs)
{
    return rs->lost > leat_bbr_percent(rs->tx_in_flight, LEAT_BBR_LOSS_THRESH_PERCENT);
}

uint64_t leat_bbr_target_inflight(const leat_cc *cc)
{
    const leat_bbr *b = leat_cc_state_const(cc);

    return leat_bbr_min(leat_bbr_bdp(cc, b->bw, 100), cc->cwnd);
}

void leat_bbr_handle_too_high(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    b->prev_probe_too_high = true;
    b->is_bw_probe_sample = false; /* one reaction a probe */
    if (!rs->app_limited) {
        b->inflight_longterm =
            leat_bbr_larger(rs->tx_in_flight,
                            leat_bbr_percent(leat_bbr_target_inflight(cc), LEAT_BBR_BETA_PERCENT));
    }
    if (b->state == LEAT_BBR_UP) {
        b->undo_state = LEAT_BBR_UP;
        leat_bbr_start_down(cc, rs->flight, rs->now);
    }
}

/* How much was in flight when losses crossed the threshold, within this packet: lost_prefix of the
 * draft solves (lost_before + x) / (in_flight_before + x) = LossThresh. */
static uint64_t inflight_at_loss(const leat_bbr_sample *rs, uint32_t size)
{
    uint64_t before = rs->tx_in_flight > size ? rs->tx_in_flight - size : 0;
    uint64_t lost_before = rs->lost > size ? rs->lost - size : 0;
    uint64_t may = leat_bbr_percent(before, LEAT_BBR_LOSS_THRESH_PERCENT);

    if (may <= lost_before) {
        return before;
    }
    return before + (may - lost_before) * 100 / (100 - LEAT_BBR_LOSS_THRESH_PERCENT);
}

void leat_bbr_handle_lost(leat_cc *cc, const leat_sent_loss *loss, const leat_flight *flight)
{
    leat_bbr *b = leat_bbr_of(cc);
    leat_flight copy = *flight;
    leat_bbr_sample rs = {
        .now = loss->now,
        .tx_in_flight = loss->in_flight,
        .lost = flight->lost - leat_bbr_min(loss->lost, flight->lost),
        .app_limited = (loss->flags & LEAT_SENT_APP_LIMITED) != 0,
        .flight = &copy,
    };

    if (loss->pn != b->lost_pn_end && b->loss_ranges < UINT8_MAX) {
        b->loss_ranges++;
    }
    b->lost_pn_end = loss->pn + 1;
    leat_bbr_note_loss(b, flight);
    if (b->is_bw_probe_sample && leat_bbr_inflight_too_high(&rs)) {
        rs.tx_in_flight = inflight_at_loss(&rs, loss->size);
        leat_bbr_handle_too_high(cc, &rs);
    }
}
