/* conn/mtu.c: see conn/mtu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/mtu.h"

#include "base/time.h"

/* Nothing is known of what lies above `size`. */
static void search(leat_mtu *mtu)
{
    mtu->too_large = (uint16_t)(mtu->most + 1);
    mtu->lost = 0;
    mtu->raise_at = LEAT_TIME_NEVER;
}

void leat_mtu_init(leat_mtu *mtu, uint16_t wanted)
{
    *mtu =
        (leat_mtu){.size = LEAT_MTU_BASE, .most = wanted > LEAT_MTU_BASE ? wanted : LEAT_MTU_BASE};
    search(mtu);
}

void leat_mtu_limit(leat_mtu *mtu, uint64_t most)
{
    if (mtu->most > most) {
        mtu->most = most > LEAT_MTU_BASE ? (uint16_t)most : LEAT_MTU_BASE;
        search(mtu);
    }
}

static bool search_is_over(const leat_mtu *mtu)
{
    return mtu->size >= mtu->most || mtu->too_large - mtu->size <= LEAT_MTU_STEP;
}

uint16_t leat_mtu_probe(leat_mtu *mtu, leat_time now)
{
    if (!mtu->enabled || mtu->probe > 0 || mtu->size >= mtu->most) {
        return 0;
    }
    if (search_is_over(mtu)) {
        if (mtu->raise_at == LEAT_TIME_NEVER) {
            mtu->raise_at = leat_time_add(now, LEAT_MTU_RAISE);
        }
        if (now < mtu->raise_at) {
            return 0;
        }
        search(mtu);
    }
    if (mtu->too_large > mtu->most) {
        return mtu->most;
    }
    return (uint16_t)(mtu->size + (mtu->too_large - mtu->size) / 2);
}

void leat_mtu_probe_sent(leat_mtu *mtu, uint16_t size)
{
    mtu->probe = size;
}

bool leat_mtu_probe_acked(leat_mtu *mtu, uint16_t size)
{
    mtu->probe = 0;
    mtu->lost = 0;
    mtu->black = 0;
    if (size <= mtu->size || size > mtu->most) {
        return false;
    }
    mtu->size = size;
    return true;
}

void leat_mtu_probe_lost(leat_mtu *mtu)
{
    if (++mtu->lost >= LEAT_MTU_PROBES) {
        mtu->too_large = mtu->probe > mtu->size ? mtu->probe : mtu->too_large;
        mtu->lost = 0;
    }
    mtu->probe = 0;
}

/* ---- black holes ---- */

static bool black_hole(leat_mtu *mtu)
{
    mtu->black = 0;
    mtu->large = false;
    if (mtu->size <= LEAT_MTU_BASE) {
        return false;
    }
    mtu->size = LEAT_MTU_BASE;
    search(mtu);
    return true;
}

void leat_mtu_on_acked(leat_mtu *mtu, uint16_t size)
{
    if (size > LEAT_MTU_BASE) {
        mtu->black = 0;
        mtu->large = false;
    }
}

bool leat_mtu_on_lost(leat_mtu *mtu, uint16_t size)
{
    if (size <= LEAT_MTU_BASE || mtu->size <= LEAT_MTU_BASE) {
        return false;
    }
    return ++mtu->black >= LEAT_MTU_BLACK_LOSSES && black_hole(mtu);
}

bool leat_mtu_on_pto(leat_mtu *mtu, uint32_t count)
{
    return mtu->large && count >= LEAT_MTU_BLACK_PTOS && black_hole(mtu);
}
