/* conn/pathstats.c: what is known of a connection's paths, in one call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

static leat_path_stats describe(const leat_conn *conn, const leat_path *path)
{
    leat_path_stats stats = {
        .local = path->local,
        .remote = path->remote,
        .active = path == leat_paths_active_const(&conn->paths),
        .validated = path->validated,
        .bytes_sent = path->sent,
        .bytes_received = path->received,
    };

    if (stats.active) {
        stats.udp_payload = conn->mtu.size;
        stats.ecn = leat_ecn_state_name(&conn->ecn);
        stats.congestion = conn->cc.ops->name;
        stats.ce_marks = conn->ecn.ce;
        stats.rtt_smoothed = conn->loss.rtt.smoothed;
        stats.rtt_min = conn->loss.rtt.min;
        stats.rtt_var = conn->loss.rtt.var;
        stats.cwnd = conn->cc.cwnd;
        stats.bytes_in_flight = conn->flight.bytes;
    }
    return stats;
}

size_t leat_conn_paths(const leat_conn *conn, leat_path_stats *out, size_t max)
{
    const leat_path *active = leat_paths_active_const(&conn->paths);
    size_t n = 0;

    if (max > 0) {
        out[n++] = describe(conn, active);
    }
    for (size_t i = 0; i < leat_paths_room(&conn->paths) && n < max; i++) {
        const leat_path *path = leat_paths_at_const(&conn->paths, i);

        if (path->used && path != active) {
            out[n++] = describe(conn, path);
        }
    }
    return n;
}
