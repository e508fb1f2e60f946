/* stream/flow.c: see flow.h.
 *
 * The limit that we advertise is consumed + window, told again when half of the window is used up:
 * late enough that few frames are needed, early enough that a peer with a window of two
 * bandwidth-delay products never waits. A window that is used up faster than twice a round trip
 * holds the peer back, so it doubles.
 *
 * Invariants: consumed <= received <= limit <= 2^62-1; used <= limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/flow.h"

#include "base/assert.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void leat_flow_in_init(leat_flow_in *flow, uint64_t window, uint64_t window_max)
{
    window = min_u64(window, LEAT_FLOW_MAX);
    *flow = (leat_flow_in){
        .limit = window,
        .window = window,
        .window_max = window_max > window ? min_u64(window_max, LEAT_FLOW_MAX) : window,
    };
}

static uint64_t target(const leat_flow_in *flow)
{
    return leat_flow_in_target(flow);
}

uint64_t leat_flow_in_update(leat_flow_in *flow, leat_time now, leat_time srtt, uint64_t room)
{
    bool fast = flow->updated != 0 && now - flow->updated < 2 * srtt;

    if (fast) {
        flow->window += min_u64(min_u64(flow->window, room), flow->window_max - flow->window);
    }
    flow->updated = now;
    if (target(flow) > flow->limit) {
        flow->limit = target(flow);
    }
    return flow->limit;
}

void leat_flow_in_grow(leat_flow_in *flow, uint64_t least)
{
    least = min_u64(least, flow->window_max);
    if (flow->window < least) {
        flow->window = least;
    }
}

void leat_flow_in_check(const leat_flow_in *flow)
{
    LEAT_ASSERT(flow->consumed <= flow->received);
    LEAT_ASSERT(flow->received <= flow->limit);
    LEAT_ASSERT(flow->limit <= LEAT_FLOW_MAX);
    LEAT_ASSERT(flow->window <= flow->window_max);
}

void leat_flow_out_init(leat_flow_out *flow, uint64_t limit)
{
    *flow = (leat_flow_out){.limit = limit};
}

bool leat_flow_out_raise(leat_flow_out *flow, uint64_t limit)
{
    if (limit <= flow->limit) {
        return false;
    }
    flow->limit = limit;
    return true;
}
