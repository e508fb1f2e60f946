/* conn/congestion.c: which congestion controller a connection has, and control from outside.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "conn/trace.h"

#include <string.h>

#define CONGESTION_NAME(name, text, what) text,
static const char *const names[LEAT_CONGESTIONS] = {LEAT_CONGESTION_LIST(CONGESTION_NAME)};
#undef CONGESTION_NAME

const char *leat_congestion_name(leat_congestion congestion)
{
    return (unsigned)congestion < LEAT_CONGESTIONS ? names[congestion] : "unknown";
}

bool leat_congestion_find(const char *name, leat_congestion *out)
{
    for (int i = 0; i < LEAT_CONGESTIONS; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (leat_congestion)i;
            return true;
        }
    }
    return false;
}

/* What was sent before counts on in flight, but the controller knows nothing of it. */
static void begin(leat_conn *conn, const leat_cc_ops *ops, leat_time now)
{
    leat_cc_init(&conn->cc, ops, conn->mtu.size, NULL, now);
}

static const leat_cc_ops *controller(const leat_conn *conn)
{
    const leat_cc_ops *ops = leat_cc_find(names[conn->settings->congestion]);

    LEAT_ASSERT(ops);
    return ops;
}

void leat_conn_congestion_init(leat_conn *conn, leat_time now)
{
    begin(conn, controller(conn), now);
    conn->cc_state = leat_cc_state_name(&conn->cc);
}

leat_err leat_conn_set_rate(leat_conn *conn, uint64_t cwnd, uint64_t pacing_rate)
{
    leat_time now = leat_conn_now(conn);

    if (!leat_conn_is_open(conn)) {
        return LEAT_ERR_CLOSED;
    }
    if (cwnd == 0) {
        if (conn->cc.ops == &leat_cc_fixed) {
            begin(conn, controller(conn), now);
        }
    } else {
        if (conn->cc.ops != &leat_cc_fixed) {
            begin(conn, &leat_cc_fixed, now);
        }
        leat_cc_set(&conn->cc, cwnd, pacing_rate);
    }
    leat_pacer_set_rate(&conn->pacer, &conn->cc, &conn->loss.rtt, now);
    if (leat_trace_on(conn)) {
        leat_trace_congestion(conn);
    }
    leat_conn_want_send(conn);
    return LEAT_OK;
}

leat_err leat_conn_set_padding(leat_conn *conn, size_t bytes)
{
    if (!leat_conn_is_open(conn)) {
        return LEAT_ERR_CLOSED;
    }
    conn->padding = bytes;
    if (bytes > 0) {
        leat_conn_want_send(conn);
    }
    return LEAT_OK;
}
