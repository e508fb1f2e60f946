/* media/twcc_record.c: arrivals in ticks of 250 µs, rounded to the nearest.
 *
 * All times lie on one grid, that of the ticks since time 0; a feedback's deltas are differences of
 * numbers on it. So the error of each is below half a tick, and there is nothing that could add up.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <leat/twcc.h>

#include "media/twcc_ring.h"

leat_err leat_twcc_recorder_init(leat_twcc_recorder *r, leat_mem *mem, uint32_t sender_ssrc,
                                 size_t packets)
{
    packets = packets ? packets : LEAT_TWCC_RECORD_DEFAULT;
    *r = (leat_twcc_recorder){.sender_ssrc = sender_ssrc};
    if (packets < LEAT_TWCC_RECORD_MIN || packets > LEAT_TWCC_RECORD_MAX ||
        (packets & (packets - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    return leat_arrivals_init(&r->arrivals, mem, packets);
}

void leat_twcc_recorder_free(leat_twcc_recorder *r)
{
    leat_arrivals_free(&r->arrivals);
}

void leat_twcc_record(leat_twcc_recorder *r, uint32_t ssrc, uint16_t seq, leat_time arrival)
{
    uint64_t tick = (arrival + LEAT_TWCC_TICK / 2) / LEAT_TWCC_TICK;

    r->media_ssrc = ssrc;
    leat_arrivals_put(&r->arrivals, seq, leat_twcc_mark(tick), LEAT_TWCC_MARK_WINDOW);
}
