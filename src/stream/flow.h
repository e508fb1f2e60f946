/* stream/flow.h: credit-based flow control, RFC 9000 §4. The same two structs serve a connection
 * and a stream: MAX_DATA and MAX_STREAM_DATA follow one rule.
 *
 * leat_flow_in is what we allow the peer:
 *   1. leat_flow_in_receive() when the highest offset rises: refuses what exceeds the limit.
 *   2. leat_flow_in_consume() when the application has taken bytes, or they were dropped for good.
 *   3. When leat_flow_in_wants_update(), send a frame with what leat_flow_in_update() returns.
 *      If that frame is lost, the next one (with the limit of that time) replaces it.
 * leat_flow_out is what the peer allows us:
 *   1. leat_flow_out_raise() on each MAX_ frame; a lower limit is ignored (§4.1).
 *   2. leat_flow_out_left() before new bytes are sent, leat_flow_out_use() after. What is sent
 * again needs no credit.
 *   3. leat_flow_out_wants_report() when there was more to send than credit: one BLOCKED frame a
 * limit.
 *
 * Plain data; no memory, no time of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_FLOW_H
#define LEAT_STREAM_FLOW_H

#include <leat/base.h>

#include "base/assert.h"

#define LEAT_FLOW_MAX ((UINT64_C(1) << 62) - 1) /* RFC 9000 s4.5 */

typedef struct leat_flow_in {
    uint64_t limit;      /* advertised to the peer */
    uint64_t received;   /* bytes up to the highest offset; on a connection, summed over streams */
    uint64_t consumed;   /* of these, taken by the application or dropped */
    uint64_t window;     /* how far the limit is kept ahead of consumed */
    uint64_t window_max; /* how far the window may grow by itself */
    leat_time updated;   /* when the limit was raised last; 0: never */
} leat_flow_in;

typedef struct leat_flow_out {
    uint64_t limit;    /* the peer's */
    uint64_t used;     /* new bytes sent */
    uint64_t reported; /* 1 + the limit for which BLOCKED was sent; 0: none yet */
} leat_flow_out;

/* window is also the first limit, as the transport parameters tell it. window_max < window: fixed.
 */
void leat_flow_in_init(leat_flow_in *flow, uint64_t window, uint64_t window_max);

/* Counts n more bytes. False, and nothing counted: the peer exceeds the limit (FLOW_CONTROL_ERROR).
 */
static inline bool leat_flow_in_receive(leat_flow_in *flow, uint64_t n)
{
    if (n > flow->limit - flow->received) {
        return false;
    }
    flow->received += n;
    return true;
}

/* n bytes of those received are done with. */
static inline void leat_flow_in_consume(leat_flow_in *flow, uint64_t n)
{
    LEAT_ASSERT(n <= flow->received - flow->consumed);
    flow->consumed += n;
}

/* Where the limit would be set now. */
static inline uint64_t leat_flow_in_target(const leat_flow_in *flow)
{
    uint64_t target = flow->consumed + flow->window;

    return target < LEAT_FLOW_MAX ? target : LEAT_FLOW_MAX;
}

/* True when half of the window or more has been consumed since the limit was set. */
static inline bool leat_flow_in_wants_update(const leat_flow_in *flow)
{
    return flow->limit - flow->consumed <= flow->window / 2 &&
           leat_flow_in_target(flow) > flow->limit;
}

/* Raises the limit to consumed + window and returns it. When the last raise is less than two round
 * trips ago the window was too small for the path: it doubles first, but grows by no more than room
 * (bytes that the connection's budget can still take) and not over window_max. srtt 0: not known,
 * no growth. */
uint64_t leat_flow_in_update(leat_flow_in *flow, leat_time now, leat_time srtt, uint64_t room);

/* The connection's window must not be what holds one large stream back: grows it to at least
 * `least`, within window_max. */
void leat_flow_in_grow(leat_flow_in *flow, uint64_t least);

void leat_flow_in_check(const leat_flow_in *flow);

void leat_flow_out_init(leat_flow_out *flow, uint64_t limit);

/* True when the limit rose. */
bool leat_flow_out_raise(leat_flow_out *flow, uint64_t limit);

static inline uint64_t leat_flow_out_left(const leat_flow_out *flow)
{
    return flow->limit - flow->used;
}

static inline void leat_flow_out_use(leat_flow_out *flow, uint64_t n)
{
    LEAT_ASSERT(n <= leat_flow_out_left(flow));
    flow->used += n;
}

/* True when no credit is left and this limit has not been reported. */
static inline bool leat_flow_out_wants_report(const leat_flow_out *flow)
{
    return flow->used == flow->limit && flow->reported != flow->limit + 1;
}

/* BLOCKED was sent for the present limit. */
static inline void leat_flow_out_report_sent(leat_flow_out *flow)
{
    flow->reported = flow->limit + 1;
}

/* The BLOCKED frame with this limit was lost: report again if it is still the limit. */
static inline void leat_flow_out_report_lost(leat_flow_out *flow, uint64_t limit)
{
    if (flow->reported == limit + 1)
        flow->reported = 0;
}

#endif
