/* recovery/loss.c: the RTT, the loss detector and the probe timer tied together (RFC 9002 appendix
 * A, with its functions' work under the names of loss.h).
 *
 * The deadline is a pure function of the state (set_loss_detection_timer in the appendix stores
 * one):
 *   - the earliest time at which a packet is lost by time, over the spaces; else
 *   - none while anti-amplification blocks; else
 *   - the PTO of the space whose last ack-eliciting packet is the oldest; only spaces with
 * something ack-eliciting in flight count, so that a padded ACK in flight arms nothing; else
 *   - for a client whose address the server may not have validated yet, a PTO from the last thing
 *     that happened, since the server may be waiting for bytes to spend (§6.2.2.1), and likewise
 *     for either side that has nothing in flight but application data before the handshake is
 *     confirmed: that data has no PTO, and if it fills the window, lost handshake data would wait
 *     behind it for ever; else none.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/loss.h"

#define MAX_ACK_DELAY (25 * LEAT_MILLISECOND) /* RFC 9000 §18.2, until the peer's is known */

void leat_loss_init(leat_loss *loss, bool is_server, leat_time initial_rtt, leat_time now)
{
    *loss = (leat_loss){
        .max_ack_delay = MAX_ACK_DELAY,
        .now = now,
        .armed_at = now,
        .packet_threshold = LEAT_LOSS_PACKET_THRESHOLD,
        .peer_validated = is_server,
    };
    leat_rtt_init(&loss->rtt, initial_rtt);
}

/* Time never runs backwards here. */
static leat_time advance(leat_loss *loss, leat_time now)
{
    loss->now = leat_time_max(loss->now, now);
    return loss->now;
}

void leat_loss_set_space(leat_loss *loss, leat_space space, leat_sent *sent)
{
    if (loss->spaces[space] && !sent) {
        loss->pto_count = 0;
        loss->armed_at = loss->now;
    }
    loss->spaces[space] = sent;
}

void leat_loss_on_sent(leat_loss *loss, leat_time now, bool in_flight)
{
    now = advance(loss, now);
    if (in_flight) { /* (appendix A.5) answers to a peer that probes must not put a probe off */
        loss->armed_at = now;
    }
}

leat_time leat_loss_pto(const leat_loss *loss, leat_space space)
{
    leat_time pto = leat_rtt_pto(&loss->rtt);

    return space == LEAT_SPACE_APP ? leat_time_add(pto, loss->max_ack_delay) : pto;
}

leat_time leat_loss_persistent_duration(const leat_loss *loss)
{
    return leat_time_mul(leat_loss_pto(loss, LEAT_SPACE_APP), LEAT_LOSS_PERSISTENT);
}

/* ---- losses ---- */

static leat_time acked_elsewhere(const leat_loss *loss, leat_space space)
{
    leat_time at = 0;

    for (int i = 0; i < LEAT_SPACES; i++) {
        at = i == (int)space ? at : leat_time_max(at, loss->acked_sent_at[i]);
    }
    return at;
}

static void look_for_losses(leat_loss *loss, leat_space space, leat_sent_lost *lost)
{
    leat_sent_loss_rule rule = {
        .now = loss->now,
        .delay = leat_rtt_loss_delay(&loss->rtt),
        .acked_elsewhere = acked_elsewhere(loss, space),
        .first_rtt_at = loss->rtt.first_sample_at,
        .persistent = leat_loss_persistent_duration(loss),
        .keep = leat_loss_pto(loss, LEAT_SPACE_APP),
        .packets = loss->packet_threshold,
        .visit = loss->visit,
        .visit_ctx = loss->visit_ctx,
    };

    loss->visit_space = space;
    leat_sent_detect_lost(loss->spaces[space], &rule, lost);
    loss->lost_packets += lost->packets;
    if (lost->persistent) {
        loss->rtt.min = loss->rtt.latest; /* the path may be another since (s5.2) */
    }
}

static void detect(leat_loss *loss, leat_space space, leat_sent_lost *lost)
{
    if (leat_sent_is_whole(loss->spaces[space])) {
        *lost = (leat_sent_lost){.next_at = LEAT_TIME_NEVER}; /* as nearly always */
    } else {
        look_for_losses(loss, space, lost);
    }
}

static void take_sample(leat_loss *loss, const leat_sent_acked *acked, leat_time ack_delay)
{
    /* An ACK from before the packet: the clock stepped back in between, there is no telling. */
    if (acked->now < acked->largest_sent_at) {
        return;
    }
    ack_delay = leat_rtt_ack_delay(ack_delay, loss->max_ack_delay, loss->confirmed);
    leat_rtt_sample(&loss->rtt, acked->now - acked->largest_sent_at, ack_delay, loss->now);
}

void leat_loss_on_ack(leat_loss *loss, leat_space space, const leat_sent_acked *acked,
                      leat_time ack_delay, leat_sent_lost *lost)
{
    LEAT_ASSERT(loss->spaces[space]);
    *lost = (leat_sent_lost){.next_at = LEAT_TIME_NEVER};
    advance(loss, acked->now);
    loss->spurious_packets += acked->spurious;
    if (acked->packets == 0) {
        return;
    }
    if (acked->rtt_sample) {
        take_sample(loss, acked, ack_delay);
    }
    loss->acked_sent_at[space] = leat_time_max(loss->acked_sent_at[space], acked->newest_sent_at);
    detect(loss, space, lost);
    /* A client that the server may still hold back must not probe faster for being answered. */
    if (loss->peer_validated) {
        loss->pto_count = 0;
    }
    loss->armed_at = loss->now;
}

/* ---- the deadline ---- */

/* The earliest loss by time, and in which space; NEVER: none. */
static leat_time earliest_loss(const leat_loss *loss, leat_space *space)
{
    leat_time delay = leat_rtt_loss_delay(&loss->rtt);
    leat_time earliest = LEAT_TIME_NEVER;

    for (int i = 0; i < LEAT_SPACES; i++) {
        leat_time at;

        if (!loss->spaces[i]) {
            continue;
        }
        at = leat_sent_loss_time(loss->spaces[i], delay);
        if (at < earliest) {
            earliest = at;
            *space = (leat_space)i;
        }
    }
    return earliest;
}

/* A PTO and its back-off, which ends, but not below what the path asks for. */
static leat_time backed_off(const leat_loss *loss, leat_space space)
{
    leat_time pto = leat_loss_pto(loss, space);
    leat_time period = leat_time_backoff(pto, loss->pto_count);

    return leat_time_min(period, leat_time_max(pto, LEAT_LOSS_BACKOFF_MAX));
}

/* One space's PTO; NEVER: nothing there to probe for. */
static leat_time space_pto(const leat_loss *loss, leat_space space)
{
    const leat_sent *sent = loss->spaces[space];
    leat_time from;

    if (!sent || !leat_sent_has_eliciting(sent)) {
        return LEAT_TIME_NEVER;
    }
    /* Before the handshake is confirmed the peer may be unable to read 1-RTT packets (§6.2.1). */
    if (space == LEAT_SPACE_APP && !loss->confirmed) {
        return LEAT_TIME_NEVER;
    }
    from = sent->last_eliciting_at;
    if (loss->pto_count > 0) { /* its probes may not have been sent */
        from = leat_time_max(from, loss->fired_at);
    }
    return leat_time_add(from, backed_off(loss, space));
}

/* Data that the peer may be unable to read, and to acknowledge, before the handshake goes on. */
static bool unreadable_in_flight(const leat_loss *loss)
{
    const leat_sent *app = loss->spaces[LEAT_SPACE_APP];

    return !loss->confirmed && app && leat_sent_has_eliciting(app);
}

/* The PTO over the spaces, in which, and whether it is only to keep the handshake from deadlock. */
static leat_time earliest_pto(const leat_loss *loss, leat_space *space, bool *idle)
{
    leat_time earliest = LEAT_TIME_NEVER;

    *idle = false;
    for (int i = 0; i < LEAT_SPACES; i++) {
        leat_time at = space_pto(loss, (leat_space)i);

        if (at < earliest) {
            earliest = at;
            *space = (leat_space)i;
        }
    }
    if (earliest != LEAT_TIME_NEVER || (loss->peer_validated && !unreadable_in_flight(loss))) {
        return earliest;
    }
    *idle = true;
    *space = loss->spaces[LEAT_SPACE_HANDSHAKE] ? LEAT_SPACE_HANDSHAKE : LEAT_SPACE_INITIAL;
    if (!loss->spaces[*space]) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(loss->armed_at, backed_off(loss, *space));
}

/* The usual case once the handshake is over: one space. */
static bool has_only_app(const leat_loss *loss)
{
    return loss->confirmed && loss->spaces[LEAT_SPACE_APP] && !loss->spaces[LEAT_SPACE_INITIAL] &&
           !loss->spaces[LEAT_SPACE_HANDSHAKE];
}

leat_time leat_loss_deadline(const leat_loss *loss)
{
    leat_space space = LEAT_SPACE_INITIAL;
    leat_time at;
    bool idle;

    if (has_only_app(loss)) {
        at = leat_sent_loss_time(loss->spaces[LEAT_SPACE_APP], leat_rtt_loss_delay(&loss->rtt));
        return at != LEAT_TIME_NEVER || loss->blocked ? at : space_pto(loss, LEAT_SPACE_APP);
    }
    at = earliest_loss(loss, &space);
    if (at != LEAT_TIME_NEVER || loss->blocked) {
        return at;
    }
    return earliest_pto(loss, &space, &idle);
}

void leat_loss_on_timeout(leat_loss *loss, leat_time now, leat_loss_timeout *out)
{
    leat_space space = LEAT_SPACE_INITIAL;
    leat_time at = earliest_loss(loss, &space);
    bool idle;

    now = advance(loss, now);
    *out = (leat_loss_timeout){.action = LEAT_LOSS_NONE, .lost = {.next_at = LEAT_TIME_NEVER}};
    if (at != LEAT_TIME_NEVER) {
        if (at <= now) {
            out->action = LEAT_LOSS_LOST;
            out->space = space;
            detect(loss, space, &out->lost);
        }
        return;
    }
    if (loss->blocked) {
        return;
    }
    at = earliest_pto(loss, &space, &idle);
    if (at == LEAT_TIME_NEVER || at > now) {
        return;
    }
    loss->pto_count++;
    loss->pto_total++;
    loss->armed_at = loss->fired_at = now;
    out->action = LEAT_LOSS_PROBE;
    out->space = space;
    out->probes = idle ? 1 : LEAT_LOSS_PROBES;
}

void leat_loss_reset_path(leat_loss *loss, leat_time initial_rtt)
{
    leat_rtt_init(&loss->rtt, initial_rtt);
    loss->pto_count = 0;
    loss->packet_threshold = LEAT_LOSS_PACKET_THRESHOLD;
}

void leat_loss_restart(leat_loss *loss)
{
    leat_loss_reset_path(loss, 0);
    loss->armed_at = loss->now;
}

void leat_loss_check(const leat_loss *loss)
{
    for (int i = 0; i < LEAT_SPACES; i++) {
        if (loss->spaces[i]) {
            leat_sent_check(loss->spaces[i]);
        }
    }
    LEAT_ASSERT(loss->armed_at <= loss->now && loss->fired_at <= loss->now);
    if (leat_rtt_has_sample(&loss->rtt)) {
        LEAT_ASSERT(loss->rtt.min <= loss->rtt.latest);
    }
}
