/* conn/mtu.c: see conn/mtu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/mtu.h"

void leat_mtu_init(leat_mtu *mtu, uint16_t wanted)
{
    *mtu = (leat_mtu){.size = LEAT_MTU_BASE,
                      .wanted = wanted > LEAT_MTU_BASE ? wanted : LEAT_MTU_BASE,
                      .tries = LEAT_MTU_PROBES};
}

void leat_mtu_limit(leat_mtu *mtu, uint64_t most)
{
    if (mtu->wanted > most) {
        mtu->wanted = most > LEAT_MTU_BASE ? (uint16_t)most : LEAT_MTU_BASE;
    }
}

void leat_mtu_probe_sent(leat_mtu *mtu)
{
    mtu->in_flight = true;
    mtu->tries--;
}

bool leat_mtu_probe_acked(leat_mtu *mtu, uint16_t size)
{
    mtu->in_flight = false;
    if (size <= mtu->size) {
        return false;
    }
    mtu->size = size;
    return true;
}

void leat_mtu_probe_lost(leat_mtu *mtu)
{
    mtu->in_flight = false;
}
