/* cc/bbr.c: BBRv3 (draft-ietf-ccwg-bbr-06): the order of work on an ACK (§5.2.3), and what comes
 * out of the model: pacing rate and window (§5.6). See bbr.h for the map and for differences.
 *
 * The send quantum of §5.6.3 is the pacer's own quantum (cc/pacer.h), which follows the same rule.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/bbr.h"

#define PER_SECOND UINT64_C(1000000000)

static void bbr_init(leat_cc *cc, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    *b = (leat_bbr){.undo_state = LEAT_BBR_UNDO_NONE};
    leat_bbr_model_init(b, now);
    leat_bbr_reset_full_bw(b);
    leat_bbr_enter(cc, LEAT_BBR_STARTUP);
}

/* ---- pacing (§5.6.2) ---- */

void leat_bbr_set_pacing(leat_cc *cc, unsigned gain_percent)
{
    const leat_bbr *b = leat_bbr_of(cc);
    uint64_t rate = b->bw * gain_percent / 100 * (100 - LEAT_BBR_PACING_MARGIN_PERCENT) / 100;

    if (b->full_bw_reached || rate > cc->pacing_rate) {
        cc->pacing_rate = rate;
    }
}

/* Before there is a bandwidth: the window in one round trip. */
static void init_pacing(leat_cc *cc, const leat_rtt *rtt)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (!b->has_rate && leat_rtt_has_sample(rtt)) {
        b->has_rate = true;
        cc->pacing_rate = cc->cwnd * PER_SECOND / leat_bbr_larger(rtt->smoothed, 1) *
                          LEAT_BBR_STARTUP_PACING / 100;
    }
}

static uint64_t send_quantum(const leat_cc *cc)
{
    uint64_t quantum = leat_bbr_min(cc->pacing_rate / 1000, LEAT_BBR_QUANTUM_MAX);

    return leat_bbr_larger(quantum, 2 * (uint64_t)cc->mds);
}

/* ---- the window (§5.6.4) ---- */

uint64_t leat_bbr_bdp(const leat_cc *cc, uint64_t bw, unsigned gain_percent)
{
    const leat_bbr *b = leat_cc_state_const(cc);
    uint64_t us;

    if (b->min_rtt == LEAT_TIME_NEVER) {
        return leat_cc_initial_window(cc->mds);
    }
    us = leat_bbr_min(b->min_rtt / LEAT_MICROSECOND, LEAT_BBR_RTT_MAX);
    return leat_bbr_percent(bw * us / 1000000, gain_percent);
}

static uint64_t quantize(const leat_cc *cc, uint64_t bytes)
{
    const leat_bbr *b = leat_cc_state_const(cc);

    bytes = leat_bbr_larger(bytes, send_quantum(cc));
    bytes = leat_bbr_larger(bytes, leat_bbr_min_pipe(cc));
    return b->state == LEAT_BBR_UP ? bytes + 2 * (uint64_t)cc->mds : bytes;
}

uint64_t leat_bbr_inflight(const leat_cc *cc, uint64_t bw, unsigned gain_percent)
{
    return quantize(cc, leat_bbr_bdp(cc, bw, gain_percent));
}

uint64_t leat_bbr_probe_rtt_cwnd(const leat_cc *cc)
{
    const leat_bbr *b = leat_cc_state_const(cc);
    leat_bbr probe = {.state = LEAT_BBR_PROBE_RTT};

    return leat_bbr_larger(leat_bbr_bdp(cc, b->bw, leat_bbr_cwnd_gain(&probe)),
                           leat_bbr_min_pipe(cc));
}

void leat_bbr_save_cwnd(leat_cc *cc)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (!b->in_recovery && b->state != LEAT_BBR_PROBE_RTT) {
        b->prior_cwnd = cc->cwnd;
    } else {
        b->prior_cwnd = leat_bbr_larger(b->prior_cwnd, cc->cwnd);
    }
}

void leat_bbr_restore_cwnd(leat_cc *cc)
{
    leat_cc_clamp(cc, leat_bbr_larger(cc->cwnd, leat_bbr_of(cc)->prior_cwnd));
}

static uint64_t bound_by_model(const leat_cc *cc, uint64_t cwnd)
{
    const leat_bbr *b = leat_cc_state_const(cc);
    uint64_t cap = LEAT_BBR_INFINITE;

    if (b->state == LEAT_BBR_CRUISE || b->state == LEAT_BBR_PROBE_RTT) {
        cap = leat_bbr_with_headroom(cc);
    } else if (leat_bbr_in_probe_bw(b)) {
        cap = b->inflight_longterm;
    }
    cap = leat_bbr_min(cap, b->inflight_shortterm);
    cap = leat_bbr_larger(cap, leat_bbr_min_pipe(cc));
    return leat_bbr_min(cwnd, cap);
}

static void set_cwnd(leat_cc *cc, const leat_bbr_sample *rs)
{
    const leat_bbr *b = leat_bbr_of(cc);
    uint64_t most =
        quantize(cc, leat_bbr_bdp(cc, b->bw, leat_bbr_cwnd_gain(b)) + b->extra_acked.value[0]);
    uint64_t cwnd = cc->cwnd;

    if (b->full_bw_reached) {
        cwnd = leat_bbr_min(cwnd + rs->newly_acked, most);
    } else if (cwnd < most || rs->flight->delivered < leat_cc_initial_window(cc->mds)) {
        cwnd += rs->newly_acked;
    }
    cwnd = leat_bbr_larger(cwnd, leat_bbr_min_pipe(cc));
    if (b->state == LEAT_BBR_PROBE_RTT) {
        cwnd = leat_bbr_min(cwnd, leat_bbr_probe_rtt_cwnd(cc));
    }
    leat_cc_clamp(cc, bound_by_model(cc, cwnd));
}

/* ---- ACKs ---- */

static leat_bbr_sample sample_of(const leat_cc_acked *facts)
{
    const leat_sent_acked *acked = facts->acked;
    const leat_rate_sample *rate = &acked->rate;
    leat_bbr_sample rs = {
        .now = facts->now,
        .rtt = leat_time_since(acked->now, acked->newest_sent_at),
        .delivered = rate->delivered,
        .prior_delivered = rate->prior_delivered,
        .newly_acked = acked->bytes,
        .tx_in_flight = rate->tx_in_flight,
        .lost = facts->flight->lost - leat_bbr_min(rate->prior_lost, facts->flight->lost),
        .app_limited = rate->app_limited,
        .cwnd_limited = facts->cwnd_limited,
        .flight = facts->flight,
    };

    if (rate->interval > 0 && rate->delivered < UINT64_MAX / PER_SECOND) {
        rs.delivery_rate =
            leat_bbr_min(rate->delivered * PER_SECOND / rate->interval, LEAT_BBR_RATE_MAX);
    }
    return rs;
}

static void update_model_and_state(leat_cc *cc, const leat_bbr_sample *rs)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_bbr_update_latest(b, rs);
    leat_bbr_update_congestion(cc, rs);
    leat_bbr_update_aggregation(cc, rs);
    leat_bbr_check_full_bw(b, rs);
    leat_bbr_check_startup(cc, rs);
    leat_bbr_check_drain(cc, rs);
    leat_bbr_update_cycle(cc, rs);
    leat_bbr_update_min_rtt(b, rs);
    leat_bbr_check_probe_rtt(cc, rs);
    leat_bbr_advance_latest(b, rs);
    leat_bbr_bound_bw(b);
}

/* Something sent in recovery has arrived: recovery is over. */
static void check_recovery(leat_cc *cc, const leat_sent_acked *acked)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (b->in_recovery && acked->bytes_after > 0 && acked->recovery_start == cc->recovery_start) {
        b->in_recovery = false;
        leat_bbr_restore_cwnd(cc);
    }
}

static void bbr_on_acked(leat_cc *cc, const leat_cc_acked *facts)
{
    leat_bbr_sample rs = sample_of(facts);
    leat_bbr *b = leat_bbr_of(cc);

    check_recovery(cc, facts->acked);
    if (facts->ce > 0 && b->is_bw_probe_sample) {
        leat_bbr_handle_too_high(cc, &rs);
    }
    init_pacing(cc, facts->rtt);
    update_model_and_state(cc, &rs);
    leat_bbr_set_pacing(cc, leat_bbr_pacing_gain(b));
    set_cwnd(cc, &rs);
}

/* ---- losses ---- */

static void save_state(leat_cc *cc)
{
    leat_bbr *b = leat_bbr_of(cc);

    leat_bbr_save_cwnd(cc);
    b->undo_state = LEAT_BBR_UNDO_NONE;
    b->undo_bw_shortterm = b->bw_shortterm;
    b->undo_inflight_shortterm = b->inflight_shortterm;
    b->undo_inflight_longterm = b->inflight_longterm;
}

static void bbr_on_packet_lost(leat_cc *cc, const leat_sent_loss *loss, const leat_flight *flight)
{
    leat_bbr *b = leat_bbr_of(cc);
    bool coming = b->episode.coming;

    leat_cc_episode_loss(&b->episode, cc, loss);
    if (b->episode.coming && !coming) {
        save_state(cc);
    }
    if (loss->counts) {
        leat_bbr_handle_lost(cc, loss, flight);
    }
}

static void bbr_on_congestion(leat_cc *cc, const leat_cc_congestion *congestion)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (congestion->ce > 0) {
        leat_bbr_note_loss(b, congestion->flight);
    }
    if (congestion->lost_bytes > 0 &&
        (cc->recovery_start == 0 || congestion->sent_at > cc->recovery_start)) {
        leat_cc_episode_begin(&b->episode, cc);
        cc->recovery_start = leat_time_max(congestion->now, 1);
        b->in_recovery = true;
    }
    if (congestion->ce > 0) {
        leat_cc_episode_mark(&b->episode);
    }
}

/* In place of a retransmission timeout (§5.6.4.4). */
static void bbr_on_persistent(leat_cc *cc, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    (void)now;
    leat_bbr_save_cwnd(cc);
    leat_cc_episode_close(&b->episode);
    leat_cc_clamp(cc, 0);
}

/* §5.5.11.2 */
static void bbr_on_spurious(leat_cc *cc, const leat_sent_acked *acked, const leat_flight *flight)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (!leat_cc_episode_spurious(&b->episode, acked)) {
        return;
    }
    b->in_recovery = false;
    leat_bbr_restore_cwnd(cc);
    b->is_loss_in_round = false;
    leat_bbr_reset_full_bw(b);
    b->bw_shortterm = leat_bbr_larger(b->bw_shortterm, b->undo_bw_shortterm);
    b->inflight_shortterm = leat_bbr_larger(b->inflight_shortterm, b->undo_inflight_shortterm);
    b->inflight_longterm = leat_bbr_larger(b->inflight_longterm, b->undo_inflight_longterm);
    if (b->undo_state == LEAT_BBR_STARTUP && b->state != LEAT_BBR_STARTUP) {
        b->full_bw_reached = false;
        if (b->state != LEAT_BBR_PROBE_RTT) {
            leat_bbr_enter(cc, LEAT_BBR_STARTUP);
        }
    } else if (b->undo_state == LEAT_BBR_UP && leat_bbr_in_probe_bw(b) && b->state != LEAT_BBR_UP) {
        leat_bbr_start_refill(cc, flight);
    }
    b->undo_state = LEAT_BBR_UNDO_NONE;
}

/* ---- the rest ---- */

/* §5.4.1 */
static void bbr_on_idle_restart(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    leat_bbr *b = leat_bbr_of(cc);

    if (flight->bytes > 0 || flight->app_limited == 0) {
        return;
    }
    b->idle_restart = true;
    b->extra_acked_start = now;
    if (leat_bbr_in_probe_bw(b)) {
        leat_bbr_set_pacing(cc, 100);
    } else if (b->state == LEAT_BBR_PROBE_RTT) {
        leat_bbr_check_probe_rtt_done(cc, flight, now);
    }
}

static void bbr_on_mtu(leat_cc *cc, uint32_t old_mds)
{
    if (cc->cwnd == leat_cc_initial_window(old_mds) && !leat_bbr_of(cc)->full_bw_reached) {
        cc->cwnd = leat_cc_initial_window(cc->mds);
    }
}

const leat_cc_ops leat_cc_bbr = {
    .name = "bbr",
    .state_size = sizeof(leat_bbr),
    .whole_window = true,
    .init = bbr_init,
    .on_acked = bbr_on_acked,
    .on_packet_lost = bbr_on_packet_lost,
    .on_congestion = bbr_on_congestion,
    .on_persistent = bbr_on_persistent,
    .on_spurious = bbr_on_spurious,
    .on_mtu = bbr_on_mtu,
    .on_idle_restart = bbr_on_idle_restart,
    .state_name = leat_bbr_state_name,
};
