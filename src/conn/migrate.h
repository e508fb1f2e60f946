/* conn/migrate.h: moving a connection from path to path (RFC 9000 s9): the addresses of conn/path.h
 * joined with connection IDs, congestion control and loss detection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_MIGRATE_H
#define LEAT_CONN_MIGRATE_H

#include "conn/conn.h"

/* A datagram came. False: drop it, for it comes from where this peer cannot be. *path: that it came
 * on, or NULL when there is none yet. */
bool leat_migrate_admits(leat_conn *conn, const leat_recv_info *info, size_t len, leat_path **path);

/* A packet was processed: when it is the newest, and more than a probe, the peer now is where it
 * came from. */
void leat_migrate_on_packet(leat_conn *conn, const leat_packet_in *in);

/* PATH_CHALLENGE and PATH_RESPONSE. */
void leat_migrate_on_challenge(leat_conn *conn, const leat_packet_in *in,
                               const uint8_t data[LEAT_PATH_DATA]);
void leat_migrate_on_response(leat_conn *conn, const uint8_t data[LEAT_PATH_DATA]);

/* Client: goes to the server's preferred address (s9.6), with the ID of this sequence number if it
 * is still there. */
void leat_migrate_to_preferred(leat_conn *conn, const leat_addr *remote, uint64_t cid);

/* What validation counts in (s8.2.4). */
leat_time leat_migrate_pto(const leat_conn *conn);

/* Timers of validation. */
void leat_migrate_on_time(leat_conn *conn, leat_time now);

/* IDs that were sent to, and that no path needs any more, are retired, so that the peer gives
 * others; as many as may wait for it at once. */
void leat_migrate_retire_cids(leat_conn *conn);

/* The ID to send to on a path, or NULL: none is left for it (s9.5). */
const leat_cid *leat_migrate_dcid(leat_conn *conn, leat_path *path);

#endif
