/* conn/grease.c: see conn/grease.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/grease.h"

void leat_grease_init(leat_grease *grease, leat_random *random, bool no_spin, bool no_grease)
{
    uint64_t dice = leat_random_u64(random);

    *grease = (leat_grease){.accepts = !no_grease};
    grease->spins = !no_spin && dice % LEAT_SPIN_OFF_ONE_IN != 0;
    grease->spin = grease->spin_told = !grease->spins && (dice >> 32 & 1);
}

void leat_grease_params(const leat_grease *grease, leat_random *random, leat_tparams *params,
                        uint8_t room[16])
{
    uint64_t dice = leat_random_u64(random);

    if (!grease->accepts) {
        return;
    }
    params->present |= LEAT_TP_grease_quic_bit;
    params->grease_id = 31 * (dice % (UINT64_C(1) << 24)) + 27;
    params->grease = (leat_span){room, dice >> 60};
    leat_random_fill(random, room, params->grease.len);
}
