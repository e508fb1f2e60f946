/* A leat_sent whose frames carry the number of a counter: how often each was told what.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SENT_FIXTURE_H
#define SENT_FIXTURE_H

#include "recovery_fixture.h"

#include "recovery/sent.h"

enum { TOLD_MAX = 400000 };

/* By frame.value. */
typedef struct told {
    uint8_t acked[TOLD_MAX];
    uint8_t lost[TOLD_MAX];
    uint32_t total;
} told;

static inline void told_acked(void *ctx, const leat_sent_frame *frame)
{
    told *t = ctx;

    assert_true(frame->value < TOLD_MAX);
    assert_ptr_equal(frame->owner, ctx);
    t->acked[frame->value]++;
    t->total++;
}

static inline void told_lost(void *ctx, const leat_sent_frame *frame)
{
    told *t = ctx;

    assert_true(frame->value < TOLD_MAX);
    assert_ptr_equal(frame->owner, ctx);
    t->lost[frame->value]++;
    t->total++;
}

enum { KIND_BOTH, KIND_DEAF };

static const leat_frame_ops frame_ops[] = {
    [KIND_BOTH] = {told_acked, told_lost},
    [KIND_DEAF] = {NULL, NULL},
};

/* Sends one packet with `frames` frames numbered from `value`. Returns its number. */
static inline uint64_t send_packet(leat_sent *sent, told *t, leat_time now, uint16_t size,
                                   uint8_t flags, uint64_t value, uint32_t frames)
{
    uint64_t pn = leat_sent_next_pn(sent);

    assert_int_equal(leat_sent_begin(sent, false), LEAT_OK);
    for (uint32_t i = 0; i < frames; i++) {
        assert_int_equal(leat_sent_add(sent, KIND_BOTH, t, value + i, 1, 0), LEAT_OK);
    }
    assert_int_equal(leat_sent_added(sent), frames);
    leat_sent_commit(sent, now, size, flags, 0);
    return pn;
}

#define DATA (LEAT_SENT_ELICITING | LEAT_SENT_IN_FLIGHT)

/* The ACK of one range [first, last]. */
static inline leat_err ack_one(leat_sent *sent, leat_sent_acked *acked, uint64_t first,
                               uint64_t last, leat_time now)
{
    leat_err err = leat_sent_ack_start(sent, acked, last, now, 0);

    if (err == LEAT_OK) {
        err = leat_sent_ack_range(sent, acked, first, last + 1);
    }
    if (err == LEAT_OK) {
        leat_sent_ack_finish(sent, acked, 0);
    }
    leat_sent_check(sent);
    return err;
}

/* A rule that loses by the packet threshold, and by time after 90 ms. */
static inline leat_sent_loss_rule usual_rule(leat_time now)
{
    return (leat_sent_loss_rule){
        .now = now,
        .delay = 90 * MS,
        .first_rtt_at = 0,
        .persistent = LEAT_TIME_NEVER,
        .keep = 200 * MS,
        .packets = 3,
    };
}

#endif
