/* conn/timers.c: the one deadline of a connection, the earliest of what its parts wait for.
 *
 * The timer is only ever brought forward; when it fires too early the deadline is computed anew. So
 * a packet costs no timer work, and what is waited for is looked at in one place.
 *
 * What is waited for is of two sorts. Losses, probes, ACKs and the pacer are each packet's; the
 * rest (idle time, keep-alive, shrinking, a handshake, former keys, paths) packets only put off, or
 * change seldom. Once the timer was set for the second sort, it stands early enough for it until it
 * fires: `timer_settled`.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "base/time.h"
#include "conn/migrate.h"
#include "conn/trace.h"
#include "stream/output.h"

/* RFC 9000 s10.1: the smaller of both sides' settings; 0: none. */
static leat_time idle_timeout(const leat_conn *conn)
{
    leat_time mine = conn->settings->idle_timeout, peers = conn->peer.idle_timeout;

    return mine == 0 ? peers : peers == 0 ? mine : leat_time_min(mine, peers);
}

/* And not less than three PTOs. */
leat_time leat_conn_idle_deadline(const leat_conn *conn)
{
    leat_time timeout = idle_timeout(conn);
    leat_time least = leat_time_mul(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), 3);

    if (timeout == 0) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(conn->last_received, leat_time_max(timeout, least));
}

static leat_time keep_alive_at(const leat_conn *conn)
{
    if (conn->settings->keep_alive == 0 || !conn->confirmed) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(leat_time_max(conn->last_received, conn->last_sent),
                         conn->settings->keep_alive);
}

/* RFC 9000 s4.1: a sender that waits for credit says so again before it is idle for too long. */
static leat_time blocked_at(const leat_conn *conn)
{
    leat_time timeout = idle_timeout(conn);

    if (timeout == 0 || !conn->confirmed) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(leat_time_max(conn->last_received, conn->last_sent), timeout / 2);
}

/* Once a silence, which an ACK does not end: what is waited for is more than that. */
static leat_time ask_at(const leat_conn *conn)
{
    if (conn->asked || conn->settings->ask_after == 0 || !conn->confirmed) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(conn->last_received, conn->settings->ask_after);
}

/* When an ACK is due by time. One that is due already is for the sender: no timer can help it. */
static leat_time ack_at(leat_conn *conn)
{
    leat_time at = leat_acks_deadline(&conn->app.acks);

    return at > leat_conn_now(conn) ? at : LEAT_TIME_NEVER;
}

static leat_time deadline_of_packets(leat_conn *conn)
{
    leat_time at = leat_time_min(leat_loss_deadline(&conn->loss), ack_at(conn));

    return leat_time_min(at, conn->send_at);
}

static leat_time deadline(leat_conn *conn)
{
    leat_time at;

    if (!leat_conn_is_open(conn)) {
        return conn->closing.until;
    }
    at = leat_time_min(deadline_of_packets(conn), leat_conn_idle_deadline(conn));
    at = leat_time_min(at, conn->handshake_until);
    at = leat_time_min(at, conn->rekey.drop_prev_at);
    at = leat_time_min(at, leat_early_deadline(conn));
    at = leat_time_min(at, leat_conn_shrink_at(conn));
    at = leat_time_min(at, leat_paths_deadline(&conn->paths));
    at = leat_time_min(at, ask_at(conn));
    at = leat_time_min(at, blocked_at(conn));
    return leat_time_min(at, keep_alive_at(conn));
}

static void bring_forward(leat_conn *conn, leat_time at)
{
    if (at < conn->timer.deadline) {
        leat_timer_set(&conn->timer, at);
    }
}

/* Nothing of the second sort can come earlier than when it was last looked at. Three PTOs may,
 * where the idle timeout is shorter, when the RTT falls. */
static bool can_settle(const leat_conn *conn)
{
    return conn->confirmed && !conn->early_work && conn->rekey.drop_prev_at == LEAT_TIME_NEVER &&
           leat_paths_calm(&conn->paths) &&
           leat_conn_idle_deadline(conn) >
               leat_time_add(conn->last_received,
                             leat_time_mul(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), 3));
}

void leat_conn_may_ask(leat_conn *conn)
{
    conn->asked = false;
    leat_conn_rearm(conn);
}

void leat_conn_rearm(leat_conn *conn)
{
    bring_forward(conn, deadline(conn));
    conn->timer_settled = leat_conn_is_open(conn) && can_settle(conn);
}

void leat_conn_rearm_usual(leat_conn *conn)
{
    if (LEAT_LIKELY(conn->timer_settled && conn->rekey.drop_prev_at == LEAT_TIME_NEVER &&
                    leat_paths_calm(&conn->paths) && leat_conn_is_open(conn))) {
        bring_forward(conn, deadline_of_packets(conn));
    } else {
        leat_conn_rearm(conn);
    }
}

static void fire_open(leat_conn *conn, leat_time now)
{
    if (now >= conn->handshake_until) {
        leat_conn_end(conn, LEAT_CLOSE_HANDSHAKE_TIMEOUT, LEAT_ERR_TIMEOUT);
        return;
    }
    if (now >= leat_conn_idle_deadline(conn)) {
        leat_conn_end(conn, LEAT_CLOSE_IDLE, LEAT_ERR_TIMEOUT);
        return;
    }
    if (now >= conn->rekey.drop_prev_at) {
        leat_key_phases before = leat_key_phases_of(&conn->rekey);

        leat_rekey_on_time(&conn->rekey, leat_conn_shared_of(conn)->keys, now);
        leat_trace_rekey(conn, before, "tls");
    }
    leat_early_on_time(conn, now);
    leat_migrate_on_time(conn, now);
    if (now >= leat_loss_deadline(&conn->loss)) {
        leat_conn_on_loss_timeout(conn, now);
    }
    if (now >= keep_alive_at(conn)) {
        conn->pending |= LEAT_CONN_SEND_PING;
        conn->last_sent = now; /* one PING is enough until the next is due */
    }
    if (now >= blocked_at(conn)) {
        leat_streams_blocked_again(&conn->streams);
        conn->last_sent = now; /* as above */
    }
    if (now >= ask_at(conn)) {
        conn->asked = true;
        conn->pending |= leat_streams_first(&conn->streams) ? LEAT_CONN_SEND_PING : 0;
    }
    if (now >= leat_conn_shrink_at(conn)) {
        leat_conn_shrink(conn);
    }
    conn->send_at = LEAT_TIME_NEVER;
    leat_conn_want_send(conn);
}

void leat_conn_timer_fired(leat_timer *timer, leat_time now)
{
    leat_conn *conn = LEAT_CONTAINER_OF(timer, leat_conn, timer);

    conn->timer_settled = false; /* it is not set any more */
    /* Where this thread was held up, datagrams and timers are due at once. What came is read before
     * it is said that nothing came: the receiving task, queued in this turn, calls again. */
    conn->timer_waits = leat_conn_is_open(conn) && !leat_queue_empty(&conn->inbound);
    if (conn->timer_waits) {
        return;
    }
    if (leat_conn_is_open(conn)) {
        fire_open(conn, now);
        leat_conn_tell_more(conn);
    } else if (now >= conn->closing.until) {
        leat_conn_close_over(conn);
        return;
    }
    leat_conn_rearm(conn);
}

void leat_conn_timer_check(leat_conn *conn)
{
    bool about_to = leat_link_listed(&conn->send_link) || leat_task_queued(&conn->recv_task) ||
                    leat_task_queued(&conn->event_task) || conn->timer_waits;

    /* What is due already was set to the time at which it was. */
    if (leat_conn_is_open(conn) && conn->timer_settled && !about_to) {
        LEAT_ASSERT(conn->timer.deadline <= leat_time_max(deadline(conn), leat_conn_now(conn)));
    }
}
