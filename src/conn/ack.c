/* conn/ack.c: ACK frames and the loss timer, joined with congestion control and key updates.
 *
 * The order matters and is that of recovery/loss.h: the packets acknowledged, the RTT, what is lost
 * by that, the controller, the pacer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "base/time.h"
#include "conn/frames_out.h"
#include "conn/trace.h"

static void ask_for_acks(leat_conn *conn)
{
    if (conn->confirmed && conn->ackfreq.peer_takes) {
        leat_ackfreq_path path = {
            .cwnd = conn->cc.cwnd,
            .mds = conn->cc.mds,
            .reorder = conn->loss.packet_threshold,
            .srtt = conn->loss.rtt.smoothed,
            .peer_max = conn->peer.max_ack_delay,
        };

        leat_ackfreq_update(&conn->ackfreq, &path);
    }
}

static void after_recovery(leat_conn *conn, leat_time now, const leat_sent_acked *acked,
                           const leat_sent_lost *lost, uint64_t ce)
{
    leat_cc_on_recovery(&conn->cc, now, acked, lost, ce, &conn->loss.rtt, &conn->flight);
    leat_pacer_set_rate(&conn->pacer, &conn->cc, &conn->loss.rtt, now);
    ask_for_acks(conn);
    if (leat_trace_on(conn)) {
        leat_trace_metrics(conn);
        leat_trace_congestion(conn);
    }
    if (leat_news_waits(&conn->news)) {
        leat_conn_tell_more(conn);
    }
    leat_conn_want_send(conn);
}

/* Newly reported CE marks. Only an ACK that brings the largest number so far is looked at: others
 * may have been overtaken (RFC 9000 s13.4.2.1). */
static uint64_t new_ce_marks(leat_conn *conn, leat_pnspace *pn, const leat_frame_ack *ack,
                             const leat_sent_acked *acked, uint64_t acked_end)
{
    leat_ecn_path before = conn->ecn;
    uint64_t ce;

    if (ack->largest < acked_end || acked->packets == 0) {
        return 0;
    }
    ce = leat_ecn_on_ack(&conn->ecn, &pn->ecn, ack, acked);
    leat_trace_ecn(conn, before);
    return ce;
}

void leat_conn_on_mtu(leat_conn *conn)
{
    leat_trace_mtu(conn, (uint16_t)conn->cc.mds);
    leat_cc_on_mtu(&conn->cc, conn->mtu.size);
    conn->pacer.mds = conn->mtu.size;
}

leat_time leat_conn_ack_delay(const leat_conn *conn, leat_space space, const leat_frame_ack *ack)
{
    unsigned exponent =
        space == LEAT_SPACE_APP ? conn->peer.ack_delay_exponent : LEAT_ACK_DELAY_EXPONENT;
    uint64_t us = ack->delay;

    if (us > (LEAT_TIME_NEVER / LEAT_MICROSECOND) >> exponent) {
        return LEAT_TIME_NEVER;
    }
    return (us << exponent) * LEAT_MICROSECOND;
}

/* What an acknowledgement says beyond its packets. */
static void note_acked(leat_conn *conn, const leat_pnspace *pn, const leat_sent_acked *acked)
{
    if (acked->packets == 0) {
        return;
    }
    if (pn->space == LEAT_SPACE_HANDSHAKE) {
        conn->loss.peer_validated = true; /* RFC 9002 s6.2.2.1 */
    }
    if (pn->space == LEAT_SPACE_APP) {
        leat_rekey_on_acked(&conn->rekey, acked->largest, acked->now);
    }
}

uint64_t leat_conn_on_ack(leat_conn *conn, leat_packet_in *in, const leat_frame_ack *ack)
{
    bool tells = leat_conn_tells_news(conn, in->pn->space);
    leat_pnspace *pn = in->pn;
    uint64_t acked_end = leat_sent_acked_end(&pn->sent);
    leat_time delay = leat_conn_ack_delay(conn, pn->space, ack);
    /* Rejected 0-RTT was never processed (RFC 9001 s4.6.2). */
    uint64_t early_end = pn->space == LEAT_SPACE_APP ? conn->early_end : 0;
    leat_sent_acked acked;
    leat_sent_lost lost;
    leat_ack_iter iter;
    leat_range range;

    if (leat_sent_ack_start(&pn->sent, &acked, ack->largest, in->at, conn->cc.recovery_start) !=
        LEAT_OK) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    pn->sent.visit_acked = tells ? leat_news_acked : NULL;
    pn->sent.visit_acked_ctx = &conn->news;
    leat_news_begin(&conn->news, in->at);
    leat_ack_iter_init(&iter, ack);
    while (leat_ack_iter_next(&iter, &range)) {
        if (leat_sent_ack_range(&pn->sent, &acked, range.from, range.to) != LEAT_OK ||
            range.from < early_end) {
            return LEAT_TE_PROTOCOL_VIOLATION;
        }
    }
    leat_sent_ack_finish(&pn->sent, &acked, conn->loss.rtt.min);
    note_acked(conn, pn, &acked);
    if (tells) {
        leat_news_end(&conn->news, acked.largest, acked.rtt_sample, delay);
    }
    leat_mtu_on_acked(&conn->mtu, acked.largest_size);
    leat_loss_on_ack(&conn->loss, pn->space, &acked, delay, &lost);
    /* Not the time of arrival: what was sent since then was sent before the window shrinks. */
    after_recovery(conn, conn->loss.now, &acked, &lost,
                   new_ce_marks(conn, pn, ack, &acked, acked_end));
    return LEAT_TE_NO_ERROR;
}

/* A probe of one space takes the other's of the handshake along (RFC 9002 s6.2.4). It must where
 * the window is full of what the peer cannot read before it has them. */
static void probe_along(leat_conn *conn, leat_space space)
{
    leat_pnspace *pn = leat_conn_space(conn, space);

    if (pn && leat_packet_keys_ready(&pn->keys->tx) &&
        (leat_frames_waiting(conn, pn) || leat_sent_has_eliciting(&pn->sent))) {
        pn->probes = 1;
        leat_sent_requeue(&pn->sent, 1);
    }
}

/* And what application data is in flight, for the peer may have the keys of one space alone. From a
 * client that waits for HANDSHAKE_DONE a 1-RTT packet in any case: a server that has the Finished
 * and no Handshake keys any more reads nothing else. Behind a NAT that gives another address now it
 * would not hear of that, and all that it sends would go where nobody is. */
static void probe_app_along(leat_conn *conn)
{
    bool waits = conn->state == LEAT_CONN_ACTIVE && !conn->confirmed &&
                 leat_packet_keys_ready(&conn->rekey.tx);

    if (waits || leat_sent_has_eliciting(&conn->app.sent)) {
        conn->app.probes = 1;
        leat_sent_requeue(&conn->app.sent, 1);
    }
}

/* Something has been under way there for a round trip or more. */
static bool is_late(leat_conn *conn, leat_space space)
{
    const leat_pnspace *pn = leat_conn_space(conn, space);
    leat_time rtt = leat_time_min(conn->loss.rtt.smoothed, LEAT_RTT_INITIAL);

    return pn && pn->probes == 0 && leat_sent_has_eliciting(&pn->sent) &&
           leat_time_since(leat_conn_now(conn), pn->sent.last_eliciting_at) >= rtt;
}

static void probe(leat_conn *conn, const leat_loss_timeout *timeout)
{
    leat_pnspace *pn = leat_conn_space(conn, timeout->space);

    if (pn && timeout->space == LEAT_SPACE_HANDSHAKE && !leat_packet_keys_ready(&pn->keys->tx)) {
        pn = leat_conn_space(conn, LEAT_SPACE_INITIAL); /* RFC 9002 s6.2.2.1 */
    }
    if (!pn) {
        return;
    }
    pn->probes = (uint8_t)timeout->probes;
    leat_sent_requeue(&pn->sent, timeout->probes);
    if (pn->space != LEAT_SPACE_APP) {
        probe_along(conn,
                    pn->space == LEAT_SPACE_INITIAL ? LEAT_SPACE_HANDSHAKE : LEAT_SPACE_INITIAL);
        probe_app_along(conn);
    }
    leat_conn_want_send(conn);
}

void leat_conn_on_loss_timeout(leat_conn *conn, leat_time now)
{
    leat_loss_timeout timeout;

    leat_loss_on_timeout(&conn->loss, now, &timeout);
    switch (timeout.action) {
    case LEAT_LOSS_NONE:
        break;
    case LEAT_LOSS_LOST:
        after_recovery(conn, now, NULL, &timeout.lost, 0);
        break;
    case LEAT_LOSS_PROBE:
        leat_ecn_on_pto(&conn->ecn, conn->loss.pto_count);
        if (leat_mtu_on_pto(&conn->mtu, conn->loss.pto_count)) {
            leat_conn_on_mtu(conn);
        }
        probe(conn, &timeout);
        break;
    }
}

/* The peer has not heard all of this side's flight, or thinks so (RFC 9002 s6.2.3). */
void leat_conn_on_crypto_again(leat_conn *conn)
{
    leat_loss_timeout early = {.probes = LEAT_LOSS_PROBES};
    uint64_t room = leat_cc_room(&conn->cc, &conn->flight);

    /* No PTO has expired: the window holds for these (s7), and for what goes along. */
    if (!conn->hs || conn->hs->hurried == LEAT_CONN_HURRIES ||
        room < (LEAT_LOSS_PROBES + 2) * (uint64_t)conn->mtu.size) {
        return;
    }
    if (is_late(conn, LEAT_SPACE_INITIAL)) {
        early.space = LEAT_SPACE_INITIAL;
    } else if (is_late(conn, LEAT_SPACE_HANDSHAKE)) {
        early.space = LEAT_SPACE_HANDSHAKE;
    } else {
        return;
    }
    conn->hs->hurried++;
    probe(conn, &early);
}

void leat_conn_on_packet_lost(void *user, const leat_sent_loss *loss)
{
    leat_conn *conn = user;

    leat_cc_on_packet_lost(&conn->cc, loss, &conn->flight);
    if (leat_conn_tells_news(conn, conn->loss.visit_space)) {
        leat_news_lost(&conn->news, loss);
    }
    if (loss->counts && (loss->flags & LEAT_SENT_ECT0)) {
        leat_ecn_path before = conn->ecn;

        leat_ecn_on_lost(&conn->ecn);
        leat_trace_ecn(conn, before);
    }
    if (loss->counts && leat_mtu_on_lost(&conn->mtu, loss->size)) {
        leat_conn_on_mtu(conn);
    }
    if (leat_trace_on(conn)) {
        leat_trace_lost(conn, conn->loss.visit_space, loss);
    }
}
