/* cc/cc.c: what lies between the connection and a controller: defaults, the order of calls, and the
 * question whether the window was in use.
 *
 * A window that the sender did not fill says nothing about the path, and must not grow (RFC 9002
 * §7.8). When a packet is sent that leaves no room for another, all that is in flight then counts
 * as sent under a full window: full_until marks where `delivered` will be when the last of it
 * arrives. In slow start half a window is full enough, since the other half is what the last round
 * trip opened. A sender held back by the pacer alone fills the window in time and needs no case of
 * its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/cc.h"

#include <string.h>

static const leat_cc_ops *const controllers[] = {&leat_cc_cubic, &leat_cc_newreno, &leat_cc_bbr,
                                                 &leat_cc_fixed};

const leat_cc_ops *leat_cc_find(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT_OF(controllers); i++) {
        if (strcmp(controllers[i]->name, name) == 0) {
            return controllers[i];
        }
    }
    return NULL;
}

uint64_t leat_cc_initial_window(uint32_t mds)
{
    uint64_t low = 2 * (uint64_t)mds > 14720 ? 2 * (uint64_t)mds : 14720;
    uint64_t high = 10 * (uint64_t)mds;

    return high < low ? high : low;
}

void leat_cc_clamp(leat_cc *cc, uint64_t cwnd)
{
    uint64_t least = leat_cc_min_window(cc);

    cwnd = cwnd < LEAT_CWND_MAX ? cwnd : LEAT_CWND_MAX;
    cc->cwnd = cwnd > least ? cwnd : least;
}

void leat_cc_init(leat_cc *cc, const leat_cc_ops *ops, uint32_t mds, void *user, leat_time now)
{
    LEAT_ASSERT(ops->state_size <= LEAT_CC_STATE_SIZE);
    LEAT_ASSERT(mds >= LEAT_UDP_PAYLOAD_MIN);
    *cc = (leat_cc){
        .ops = ops,
        .user = user,
        .cwnd = leat_cc_initial_window(mds),
        .ssthresh = UINT64_MAX,
        .mds = mds,
    };
    ops->init(cc, now);
}

void leat_cc_on_sent(leat_cc *cc, const leat_flight *flight, leat_time now, uint32_t size)
{
    bool half = cc->cwnd < cc->ssthresh && !cc->ops->whole_window;
    uint64_t full = half ? cc->cwnd / 2 : cc->cwnd;

    if (flight->bytes + cc->mds > full) {
        cc->full_until = flight->delivered + flight->bytes;
    }
    if (cc->ops->on_sent) {
        leat_cc_sent sent = {
            .now = now,
            .in_flight = flight->bytes,
            .size = size,
            .app_limited = flight->app_limited != 0,
        };

        cc->ops->on_sent(cc, &sent);
    }
}

static void tell_congestion(leat_cc *cc, leat_time now, const leat_sent_acked *acked,
                            const leat_sent_lost *lost, uint64_t ce, const leat_rtt *rtt,
                            const leat_flight *flight)
{
    leat_cc_congestion congestion = {
        .now = now,
        .sent_at = lost->congestion_bytes ? lost->newest_sent_at : 0,
        .lost_bytes = lost->congestion_bytes,
        .ce = ce,
        .in_flight = acked ? acked->prior_in_flight : flight->bytes + lost->bytes,
        .rtt = rtt,
        .flight = flight,
    };

    if (ce > 0 && acked) {
        congestion.sent_at = leat_time_max(congestion.sent_at, acked->newest_sent_at);
    }
    if ((lost->congestion_bytes > 0 || ce > 0) && cc->ops->on_congestion) {
        cc->ops->on_congestion(cc, &congestion);
    }
    if (lost->persistent && cc->ops->on_persistent) {
        cc->ops->on_persistent(cc, now);
    }
}

void leat_cc_on_recovery(leat_cc *cc, leat_time now, const leat_sent_acked *acked,
                         const leat_sent_lost *lost, uint64_t ce, const leat_rtt *rtt,
                         leat_flight *flight)
{
    if (acked && acked->spurious > 0 && cc->ops->on_spurious) {
        cc->ops->on_spurious(cc, acked, flight);
    }
    if (lost->congestion_bytes > 0 || ce > 0 || lost->persistent) {
        tell_congestion(cc, now, acked, lost, ce, rtt, flight);
    }
    if (acked && acked->bytes > 0 && cc->ops->on_acked) {
        leat_cc_acked facts = {
            .now = now,
            .acked = acked,
            .lost = lost,
            .rtt = rtt,
            .flight = flight,
            .ce = ce,
            .cwnd_limited = flight->delivered - acked->bytes < cc->full_until,
        };

        cc->ops->on_acked(cc, &facts);
    }
}

void leat_cc_on_app_limited(leat_cc *cc, leat_flight *flight, leat_time now)
{
    leat_flight_set_app_limited(flight);
    if (cc->ops->on_app_limited) {
        cc->ops->on_app_limited(cc, now);
    }
}

void leat_cc_on_idle_restart(leat_cc *cc, const leat_flight *flight, leat_time now)
{
    if (cc->ops->on_idle_restart) {
        cc->ops->on_idle_restart(cc, flight, now);
    }
}

void leat_cc_on_mtu(leat_cc *cc, uint32_t mds)
{
    uint32_t old = cc->mds;

    LEAT_ASSERT(mds >= LEAT_UDP_PAYLOAD_MIN);
    if (mds == old) {
        return;
    }
    cc->mds = mds;
    if (cc->ops->on_mtu) {
        cc->ops->on_mtu(cc, old);
    }
    leat_cc_clamp(cc, cc->cwnd);
}

void leat_cc_set(leat_cc *cc, uint64_t cwnd, uint64_t pacing_rate)
{
    leat_cc_clamp(cc, cwnd);
    cc->pacing_rate = pacing_rate;
}

const char *leat_cc_state_name(const leat_cc *cc)
{
    return cc->ops->state_name ? cc->ops->state_name(cc) : cc->ops->name;
}

void leat_cc_check(const leat_cc *cc)
{
    LEAT_ASSERT(cc->cwnd >= leat_cc_min_window(cc));
    LEAT_ASSERT(cc->cwnd <= LEAT_CWND_MAX);
    LEAT_ASSERT(cc->ssthresh >= leat_cc_min_window(cc));
}

/* ---- the controller that does what it is told ---- */

static void fixed_init(leat_cc *cc, leat_time now)
{
    (void)cc;
    (void)now;
}

const leat_cc_ops leat_cc_fixed = {
    .name = "fixed",
    .init = fixed_init,
};
