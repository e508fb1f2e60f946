/* cc/newreno.c: NewReno as RFC 9002 §7 and appendix B have it.
 *
 * Slow start: the window grows by what is acknowledged, until it reaches ssthresh. Avoidance: by
 * one datagram for each window acknowledged; what was acknowledged toward the next is kept, so that
 * nothing is lost to rounding. On loss or CE: half, once a round trip; packets sent before the
 * reduction neither reduce nor grow the window (recovery). Persistent congestion: the least window.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/cc.h"

typedef struct newreno {
    uint64_t acked;   /* bytes acknowledged toward the next datagram of growth; below cwnd */
    bool in_recovery; /* nothing sent after recovery_start has been acknowledged yet */
} newreno;

static newreno *state_of(leat_cc *cc)
{
    return leat_cc_state(cc);
}

static void newreno_init(leat_cc *cc, leat_time now)
{
    (void)now;
    *state_of(cc) = (newreno){0};
}

static void avoid(leat_cc *cc, uint64_t bytes)
{
    newreno *nr = state_of(cc);

    nr->acked += bytes;
    while (nr->acked >= cc->cwnd) {
        nr->acked -= cc->cwnd;
        leat_cc_clamp(cc, cc->cwnd + cc->mds);
    }
}

static void newreno_on_acked(leat_cc *cc, const leat_cc_acked *facts)
{
    uint64_t bytes = facts->acked->bytes_after;

    /* These were sent in recovery; bytes_after counts from the start given with the ACK, which the
     * same ACK's losses may just have moved. */
    if (bytes == 0 || facts->acked->recovery_start != cc->recovery_start) {
        return;
    }
    state_of(cc)->in_recovery = false;
    if (!facts->cwnd_limited) {
        return;
    }
    if (cc->cwnd < cc->ssthresh) {
        leat_cc_clamp(cc, cc->cwnd + bytes);
    } else {
        avoid(cc, bytes);
    }
}

static void newreno_on_congestion(leat_cc *cc, const leat_cc_congestion *congestion)
{
    newreno *nr = state_of(cc);

    if (cc->recovery_start != 0 && congestion->sent_at <= cc->recovery_start) {
        return;
    }
    cc->recovery_start = leat_time_max(congestion->now, 1);
    leat_cc_clamp(cc, cc->cwnd / 2);
    cc->ssthresh = cc->cwnd;
    nr->acked = 0;
    nr->in_recovery = true;
}

static void newreno_on_persistent(leat_cc *cc, leat_time now)
{
    (void)now;
    cc->recovery_start = 0;
    leat_cc_clamp(cc, 0);
    *state_of(cc) = (newreno){0};
}

/* A window that has not moved yet is that of the new size (RFC 9002 §7.2); else only its floor
 * moves, which the caller sees to. */
static void newreno_on_mtu(leat_cc *cc, uint32_t old_mds)
{
    if (cc->ssthresh == UINT64_MAX && cc->cwnd == leat_cc_initial_window(old_mds)) {
        cc->cwnd = leat_cc_initial_window(cc->mds);
    } else if (cc->ssthresh < leat_cc_min_window(cc)) {
        cc->ssthresh = leat_cc_min_window(cc);
    }
}

static const char *newreno_state_name(const leat_cc *cc)
{
    const newreno *nr = leat_cc_state_const(cc);

    if (nr->in_recovery) {
        return "recovery";
    }
    return cc->cwnd < cc->ssthresh ? "slow_start" : "congestion_avoidance";
}

const leat_cc_ops leat_cc_newreno = {
    .name = "newreno",
    .state_size = sizeof(newreno),
    .init = newreno_init,
    .on_acked = newreno_on_acked,
    .on_congestion = newreno_on_congestion,
    .on_persistent = newreno_on_persistent,
    .on_mtu = newreno_on_mtu,
    .state_name = newreno_state_name,
};
