/* conn/ecn.c: see conn/ecn.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/ecn.h"

void leat_ecn_init(leat_ecn_path *ecn, bool enabled)
{
    *ecn = (leat_ecn_path){.state = enabled ? LEAT_ECN_IS_TESTING : LEAT_ECN_IS_FAILED};
}

void leat_ecn_on_sent(leat_ecn_path *ecn, leat_ecn_space *space)
{
    space->sent++;
    if (ecn->state == LEAT_ECN_IS_TESTING && ++ecn->marked >= LEAT_ECN_TESTING) {
        ecn->state = LEAT_ECN_IS_UNKNOWN;
    }
}

void leat_ecn_on_lost(leat_ecn_path *ecn)
{
    if (ecn->state == LEAT_ECN_IS_UNKNOWN && ++ecn->lost >= ecn->marked) {
        ecn->state = LEAT_ECN_IS_FAILED; /* something on the path drops what is marked */
    } else if (ecn->state == LEAT_ECN_IS_TESTING) {
        ecn->lost++;
    }
}

void leat_ecn_on_pto(leat_ecn_path *ecn, uint32_t count)
{
    if (ecn->state == LEAT_ECN_IS_TESTING && ecn->marked > 0 && count >= LEAT_ECN_PTOS) {
        ecn->state = LEAT_ECN_IS_UNKNOWN;
    }
}

/* The checks of s13.4.2.1. We never mark ECT(1). */
static bool counts_hold(const leat_ecn_space *space, const leat_frame_ack *ack,
                        const leat_sent_acked *acked)
{
    const leat_ecn_counts *now = &ack->ecn;
    uint64_t news;

    if (!ack->has_ecn) {
        return acked->ect0 == 0;
    }
    if (now->ect0 < space->ect0 || now->ce < space->ce || now->ect1 > 0) {
        return false;
    }
    news = (now->ect0 - space->ect0) + (now->ce - space->ce);
    return news >= acked->ect0 && now->ect0 <= space->sent && now->ce <= space->sent;
}

uint64_t leat_ecn_on_ack(leat_ecn_path *ecn, leat_ecn_space *space, const leat_frame_ack *ack,
                         const leat_sent_acked *acked)
{
    uint64_t ce = 0;

    if (!counts_hold(space, ack, acked)) {
        ecn->state = LEAT_ECN_IS_FAILED;
        return 0;
    }
    if (!ack->has_ecn) {
        return 0;
    }
    ce = ack->ecn.ce - space->ce;
    space->ect0 = ack->ecn.ect0;
    space->ce = ack->ecn.ce;
    if (ecn->state == LEAT_ECN_IS_FAILED) {
        return 0;
    }
    ecn->ce += ce;
    if (acked->ect0 > 0 && acked->bytes > 0) { /* bytes are of this path alone */
        ecn->state = LEAT_ECN_IS_CAPABLE;
    }
    return ce;
}

#define STATE_NAME(name, text) [LEAT_ECN_IS_##name] = (text),
static const char *const names[] = {LEAT_ECN_STATE_LIST(STATE_NAME)};
#undef STATE_NAME

const char *leat_ecn_state_name(const leat_ecn_path *ecn)
{
    return names[ecn->state];
}
