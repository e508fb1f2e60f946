/* cc/pacer.c: the leaky bucket of pacer.h.
 *
 * Bytes turn into time by a factor with 20 bits of fraction, and the fraction left over is kept, so
 * that the rate holds to a few parts in ten thousand even at 100 Gbit/s, where a datagram takes 100
 * ns. Bounds that keep the products within 64 bits: rate >= RATE_LEAST makes the factor at most
 * 2^42, so that 2^20 bytes always fit; more are cut to what fits, which is 2^62 / factor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cc/pacer.h"

#define FRACTION   20
#define BURST      ((uint64_t)LEAT_PACER_BURST_DEFAULT)
#define RATE_LEAST 256 /* bytes a second: a datagram in a few seconds */
#define BYTES_SAFE (UINT64_C(1) << 20)
#define PER_SECOND UINT64_C(1000000000)

void leat_pacer_init(leat_pacer *pacer, uint32_t mds)
{
    *pacer = (leat_pacer){.mds = mds};
}

/* cwnd / srtt times 2 or 1.25. cwnd is at most 2^30, so nothing overflows. */
static uint64_t window_rate(const leat_cc *cc, const leat_rtt *rtt)
{
    uint64_t factor = cc->cwnd < cc->ssthresh ? 2 * PER_SECOND : PER_SECOND + PER_SECOND / 4;

    return cc->cwnd * factor / (rtt->smoothed ? rtt->smoothed : 1);
}

static uint32_t quantum_of(uint64_t rate, uint32_t mds)
{
    uint64_t bytes = rate / (PER_SECOND / LEAT_PACER_QUANTUM_TIME);
    uint64_t least = 2 * (uint64_t)mds;

    bytes = bytes < BURST ? bytes : BURST;
    return (uint32_t)(bytes > least ? bytes : least);
}

/* Bytes that a pause may be made up for with. Whoever sets a rate of his own wants it even: a burst
 * of the initial window is 100 ms of a path with 1 Mbit/s. */
static uint64_t most_credit(const leat_cc *cc)
{
    return cc->ops == &leat_cc_fixed && cc->pacing_rate > 0 ? 0 : leat_cc_initial_window(cc->mds);
}

/* The time that bytes take to drain, with FRACTION bits of fraction; below 2^63. */
static uint64_t drain(const leat_pacer *pacer, uint64_t bytes)
{
    if (bytes > BYTES_SAFE && pacer->ns_per_byte != 0) {
        uint64_t most = (UINT64_C(1) << 62) / pacer->ns_per_byte;

        bytes = bytes < most ? bytes : most;
    }
    return bytes * pacer->ns_per_byte;
}

/* free_at, but not so long ago that the credit would be more than it may be. */
static leat_time free_since(const leat_pacer *pacer, leat_time now)
{
    return leat_time_max(pacer->free_at, leat_time_since(now, pacer->depth));
}

/* Bytes that drain in t, which is at most a drain time or the depth: below 2^43. */
static uint64_t bytes_in(const leat_pacer *pacer, leat_time t)
{
    if (pacer->ns_per_byte == 0) {
        return UINT64_MAX;
    }
    return (leat_time_min(t, UINT64_C(1) << 43) << FRACTION) / pacer->ns_per_byte;
}

void leat_pacer_set_rate(leat_pacer *pacer, const leat_cc *cc, const leat_rtt *rtt, leat_time now)
{
    uint64_t rate = cc->pacing_rate;
    uint64_t debt = 0;

    if (rate == 0) {
        if (!leat_rtt_has_sample(rtt)) {
            pacer->rate = 0;
            return;
        }
        rate = window_rate(cc, rtt);
    }
    rate = rate > RATE_LEAST ? rate : RATE_LEAST;
    if (rate == pacer->rate && cc->mds == pacer->mds) {
        return;
    }
    if (pacer->rate != 0 && pacer->free_at > now) {
        /* More than a batch cannot be owed: the clock stepped back. */
        debt = bytes_in(pacer, pacer->free_at - now);
        debt = debt < BURST ? debt : BURST;
    }
    pacer->rate = rate;
    pacer->mds = cc->mds;
    pacer->ns_per_byte = (PER_SECOND << FRACTION) / rate;
    pacer->quantum = quantum_of(rate, cc->mds);
    pacer->depth = leat_time_max(drain(pacer, most_credit(cc)) >> FRACTION, LEAT_PACER_LAG);
    if (pacer->free_at > now) {
        pacer->free_at = leat_time_add(now, drain(pacer, debt) >> FRACTION);
    }
}

uint64_t leat_pacer_budget(const leat_pacer *pacer, leat_time now)
{
    uint64_t credit;

    if (pacer->rate == 0) {
        return UINT64_MAX;
    }
    if (pacer->free_at > now) {
        return 0;
    }
    credit = bytes_in(pacer, now - free_since(pacer, now));
    return credit > pacer->quantum ? credit : pacer->quantum;
}

void leat_pacer_on_sent(leat_pacer *pacer, leat_time now, uint64_t bytes)
{
    uint64_t ns;

    if (pacer->rate == 0) {
        return;
    }
    ns = drain(pacer, bytes) + pacer->fraction;
    pacer->free_at = leat_time_add(free_since(pacer, now), ns >> FRACTION);
    pacer->fraction = ns & ((UINT64_C(1) << FRACTION) - 1);
}
