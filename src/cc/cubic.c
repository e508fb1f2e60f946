/* cc/cubic.c: CUBIC (RFC 9438), with HyStart++ in the first slow start (RFC 9406).
 *
 * In congestion avoidance the window follows a cubic of the time since the last reduction,
 *
 *     W_cubic(t) = C (t - K)^3 + W_max,    K = cbrt((W_max - cwnd_epoch) / C),    C = 0.4,
 *
 * that is flat around W_max, the window at which loss came, and steep far from it. Where NewReno
 * would have a larger window by now (W_est), that one is taken (the Reno-friendly region). A loss
 * takes the window to 0.7 of itself. The RFC counts segments and seconds; here windows are bytes
 * and the cubic's time is milliseconds:
 *
 *     C t^3 segments = 0.4 * t_ms^3 / 10^9 * mds bytes = t_ms^3 * mds / CUBE
 *
 * All is integer arithmetic with the remainders kept, so that runs are the same on every machine.
 * Bounds: windows are at most 2^30 and mds at most 2^16, so differences times CUBE stay below 2^62;
 * times on the curve are cut at TIME_MAX = 2^20 ms, where the curve is far above any window and a
 * cube is 2^60.
 *
 * Time on the curve passes only while the window is in use (§5.8): an ACK of packets that did not
 * fill the window, and an idle time, move the clock without moving `elapsed`.
 *
 * A reduction whose lost packets all arrive after all is taken back (§4.9, cc/episode.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/cc.h"
#include "cc/episode.h"
#include "cc/hystart.h"

#define CUBE              UINT64_C(2500000000) /* 10^9 / C */
#define CUBE_HIGH         2500000              /* CUBE = CUBE_HIGH * CUBE_LOW */
#define CUBE_LOW          1000
#define TIME_MAX          (UINT64_C(1) << 20)
/* beta, the multiplicative decrease (§4.6), and what fast convergence makes of W_max (§4.7). */
#define BETA_TENTHS       7
#define CONVERGE_HUNDREDS 85
/* alpha of the Reno-friendly region: 3 (1 - beta) / (1 + beta) = 9/17 (§4.3). */
#define ALPHA_NUM         9
#define ALPHA_DEN         17

/* What a reduction changes, and an undo brings back. */
typedef struct cubic_curve {
    uint64_t w_max;
    uint64_t cwnd_epoch; /* the window when this stage began */
    uint64_t w_est;      /* what NewReno would have */
    uint64_t est_part;   /* of a byte of w_est, in 1 / (ALPHA_DEN * cwnd) */
    uint64_t part;       /* of a byte of cwnd, in 1 / cwnd */
    uint64_t cwnd_prior; /* the window before the last reduction */
    uint64_t k;          /* ms */
    leat_time elapsed;   /* on the curve */
    bool valid;          /* there is a curve: a stage of congestion avoidance has begun */
} cubic_curve;

typedef struct cubic {
    cubic_curve curve;
    leat_time last_at; /* of the ACK before, or of the restart from idle */
    leat_hystart hystart;
    leat_cc_episode episode;
    struct {
        uint64_t cwnd, ssthresh;
        cubic_curve curve;
    } undo;
    bool in_recovery;
} cubic;

static cubic *state_of(leat_cc *cc)
{
    return leat_cc_state(cc);
}

static void cubic_init(leat_cc *cc, leat_time now)
{
    *state_of(cc) = (cubic){.last_at = now};
    leat_hystart_init(&state_of(cc)->hystart);
}

/* ---- the curve ---- */

/* The largest r with r^3 <= x, bit by bit. */
static uint64_t cube_root(uint64_t x)
{
    uint64_t r = 0;

    for (int bit = 20; bit >= 0; bit--) {
        uint64_t next = r | (UINT64_C(1) << bit);

        if (next * next * next <= x) {
            r = next;
        }
    }
    return r;
}

/* C d^3 in bytes, d in ms. */
static uint64_t cube_bytes(uint64_t d, uint32_t mds)
{
    d = d < TIME_MAX ? d : TIME_MAX;
    return d * d * d / CUBE_HIGH * mds / CUBE_LOW;
}

static uint64_t w_cubic(const cubic_curve *curve, uint32_t mds, leat_time t)
{
    uint64_t ms = t / LEAT_MILLISECOND;
    uint64_t fall;

    if (ms >= curve->k) {
        return curve->w_max + cube_bytes(ms - curve->k, mds);
    }
    fall = cube_bytes(curve->k - ms, mds);
    return curve->w_max > fall ? curve->w_max - fall : 0;
}

static void set_k(cubic_curve *curve, uint32_t mds)
{
    curve->k = curve->w_max > curve->cwnd_epoch
                   ? cube_root((curve->w_max - curve->cwnd_epoch) * CUBE / mds)
                   : 0;
}

/* A stage of congestion avoidance begins with the present window. Without a reduction before it
 * (slow start reached ssthresh) there is no W_max to return to: K is 0 (§4.8, §4.10). */
static void begin_stage(leat_cc *cc, uint64_t w_max)
{
    cubic_curve *curve = &state_of(cc)->curve;

    curve->cwnd_epoch = cc->cwnd;
    curve->w_est = cc->cwnd;
    curve->w_max = w_max > cc->cwnd ? w_max : cc->cwnd;
    curve->est_part = 0;
    curve->part = 0;
    curve->elapsed = 0;
    curve->valid = true;
    set_k(curve, cc->mds);
}

/* ---- growth ---- */

/* W_est grows by alpha segments for each window acknowledged; by one once it has passed what the
 * window was before (§4.3). */
static void grow_est(leat_cc *cc, uint64_t bytes)
{
    cubic_curve *curve = &state_of(cc)->curve;
    uint64_t alpha = curve->w_est >= curve->cwnd_prior ? ALPHA_DEN : ALPHA_NUM;
    uint64_t whole = ALPHA_DEN * cc->cwnd;

    curve->est_part += alpha * bytes * cc->mds;
    curve->w_est += curve->est_part / whole;
    curve->est_part %= whole;
    if (curve->w_est > LEAT_CWND_MAX) {
        curve->w_est = LEAT_CWND_MAX;
    }
}

static void avoid(leat_cc *cc, const leat_cc_acked *facts, uint64_t bytes)
{
    cubic_curve *curve = &state_of(cc)->curve;
    uint64_t target, growth;

    grow_est(cc, bytes);
    if (w_cubic(curve, cc->mds, curve->elapsed) < curve->w_est) {
        leat_cc_clamp(cc, curve->w_est > cc->cwnd ? curve->w_est : cc->cwnd);
        return;
    }
    /* Where the curve will be one round trip from now, within [cwnd, 1.5 cwnd] (§4.2). */
    target = w_cubic(curve, cc->mds, leat_time_add(curve->elapsed, facts->rtt->smoothed));
    target = target < cc->cwnd + cc->cwnd / 2 ? target : cc->cwnd + cc->cwnd / 2;
    if (target <= cc->cwnd) {
        return;
    }
    curve->part += (target - cc->cwnd) * bytes;
    growth = curve->part / cc->cwnd;
    curve->part %= cc->cwnd;
    leat_cc_clamp(cc, cc->cwnd + growth);
}

static void slow_start(leat_cc *cc, const leat_cc_acked *facts, uint64_t bytes)
{
    bool done = false;

    /* After a reduction slow start ends at ssthresh and needs no HyStart++ (RFC 9406 §4.3). */
    if (cc->ssthresh == UINT64_MAX) {
        bytes = leat_hystart_grow(&state_of(cc)->hystart, facts, bytes, &done);
    }
    leat_cc_clamp(cc, cc->cwnd + bytes);
    if (done) {
        cc->ssthresh = cc->cwnd;
    }
}

static void cubic_on_acked(leat_cc *cc, const leat_cc_acked *facts)
{
    cubic *c = state_of(cc);
    uint64_t bytes = facts->acked->bytes_after;
    leat_time passed = leat_time_since(facts->now, c->last_at);

    c->last_at = leat_time_max(c->last_at, facts->now);
    /* As in newreno.c: sent in recovery, or this ACK has just begun one. */
    if (bytes == 0 || facts->acked->recovery_start != cc->recovery_start) {
        return;
    }
    if (c->in_recovery) {
        c->in_recovery = false;
        passed = 0; /* the stage begins now */
    }
    if (!facts->cwnd_limited) {
        return;
    }
    if (cc->cwnd < cc->ssthresh) {
        slow_start(cc, facts, bytes);
        return;
    }
    if (!c->curve.valid) {
        begin_stage(cc, 0);
        passed = 0;
    }
    c->curve.elapsed = leat_time_add(c->curve.elapsed, passed);
    avoid(cc, facts, bytes);
}

/* ---- reduction ---- */

static void cubic_on_packet_lost(leat_cc *cc, const leat_sent_loss *loss, const leat_flight *flight)
{
    (void)flight;
    leat_cc_episode_loss(&state_of(cc)->episode, cc, loss);
}

static void save(leat_cc *cc)
{
    cubic *c = state_of(cc);

    c->undo.cwnd = cc->cwnd;
    c->undo.ssthresh = cc->ssthresh;
    c->undo.curve = c->curve;
}

static void reduce(leat_cc *cc)
{
    cubic *c = state_of(cc);
    uint64_t w_max = cc->cwnd;

    /* Fast convergence: below the old W_max already, this flow gives others room (§4.7). */
    if (cc->cwnd < c->curve.w_max) {
        w_max = cc->cwnd * CONVERGE_HUNDREDS / 100;
    }
    c->curve.cwnd_prior = cc->cwnd;
    leat_cc_clamp(cc, cc->cwnd * BETA_TENTHS / 10);
    cc->ssthresh = cc->cwnd;
    begin_stage(cc, w_max);
    c->in_recovery = true;
}

static void cubic_on_congestion(leat_cc *cc, const leat_cc_congestion *congestion)
{
    cubic *c = state_of(cc);

    if (congestion->ce > 0) {
        leat_cc_episode_mark(&c->episode);
    }
    if (cc->recovery_start != 0 && congestion->sent_at <= cc->recovery_start) {
        return;
    }
    leat_cc_episode_begin(&c->episode, cc);
    if (congestion->ce > 0) {
        leat_cc_episode_mark(&c->episode);
    }
    cc->recovery_start = leat_time_max(congestion->now, 1);
    save(cc);
    reduce(cc);
}

static void cubic_on_persistent(leat_cc *cc, leat_time now)
{
    cubic *c = state_of(cc);

    (void)now;
    cc->recovery_start = 0;
    leat_cc_clamp(cc, 0);
    c->curve.valid = false; /* slow start comes first (§4.8) */
    c->in_recovery = false;
    leat_cc_episode_close(&c->episode);
}

/* §4.9.2. What was acknowledged meanwhile may have brought the window further already. */
static void cubic_on_spurious(leat_cc *cc, const leat_sent_acked *acked, const leat_flight *flight)
{
    cubic *c = state_of(cc);

    (void)flight;
    if (!leat_cc_episode_spurious(&c->episode, acked) || c->undo.cwnd <= cc->cwnd) {
        return;
    }
    leat_cc_clamp(cc, c->undo.cwnd);
    cc->ssthresh = c->undo.ssthresh;
    if (cc->ssthresh < leat_cc_min_window(cc)) {
        cc->ssthresh = leat_cc_min_window(cc); /* datagrams have grown since */
    }
    c->curve = c->undo.curve;
    c->in_recovery = false;
    cc->recovery_start = c->episode.before;
}

/* ---- the path ---- */

static void cubic_on_mtu(leat_cc *cc, uint32_t old_mds)
{
    cubic_curve *curve = &state_of(cc)->curve;

    if (cc->ssthresh == UINT64_MAX && cc->cwnd == leat_cc_initial_window(old_mds)) {
        cc->cwnd = leat_cc_initial_window(cc->mds);
    } else if (cc->ssthresh < leat_cc_min_window(cc)) {
        cc->ssthresh = leat_cc_min_window(cc);
    }
    if (curve->valid) {
        set_k(curve, cc->mds);
    }
}

static void cubic_on_idle_restart(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    cubic *c = state_of(cc);

    (void)flight;
    c->last_at = leat_time_max(c->last_at, now);
}

static const char *cubic_state_name(const leat_cc *cc)
{
    const cubic *c = leat_cc_state_const(cc);

    if (c->in_recovery) {
        return "recovery";
    }
    if (cc->cwnd >= cc->ssthresh) {
        return "congestion_avoidance";
    }
    return c->hystart.in_css && cc->ssthresh == UINT64_MAX ? "conservative_slow_start"
                                                           : "slow_start";
}

const leat_cc_ops leat_cc_cubic = {
    .name = "cubic",
    .state_size = sizeof(cubic),
    .init = cubic_init,
    .on_acked = cubic_on_acked,
    .on_packet_lost = cubic_on_packet_lost,
    .on_congestion = cubic_on_congestion,
    .on_persistent = cubic_on_persistent,
    .on_spurious = cubic_on_spurious,
    .on_mtu = cubic_on_mtu,
    .on_idle_restart = cubic_on_idle_restart,
    .state_name = cubic_state_name,
};
