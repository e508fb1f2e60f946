/* conn/migrate.c: see conn/migrate.h.
 *
 * Who moves: a client by leat_conn_migrate(), or to the server's preferred address, after it has
 * validated the new path; a server follows the newest packet that is more than a probe, NAT
 * rebinding being the same to it, and validates afterwards (s9.3). When that fails it goes back to
 * the last path that was valid.
 *
 * The server's own address changes once: to the one that it prefers, when a client follows there
 * (s9.6). It validates that path as soon as it hears of it and sends nothing but probes from there
 * before. It does not go back to the address that it left, which is read for as long as packets may
 * be late.
 *
 * What a move resets (s9.4): congestion controller, RTT, pacing and datagram size, unless only
 * ports differ, as after a NAT rebinding: then it is taken to be the same path.
 *
 * Connection IDs (s9.5): a path gets an ID of the peer's that no other path has used, except that a
 * peer which itself goes on with the ID that it used before, as one does that knows of no move, is
 * answered with the ID in use. A peer of empty IDs has no other, and is sent to without one
 * wherever it moves; this side does not move then, for it could be followed by anybody.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/migrate.h"

#include <string.h>

#include "base/assert.h"
#include "base/time.h"
#include "conn/trace.h"

/* The larger of this PTO and that of a path without a sample. */
leat_time leat_migrate_pto(const leat_conn *conn)
{
    leat_rtt fresh;

    leat_rtt_init(&fresh, 0);
    return leat_time_max(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), leat_rtt_pto(&fresh));
}

/* Both are known, and not the same. */
static bool differ(const leat_addr *a, const leat_addr *b)
{
    return a->family != 0 && b->family != 0 && !leat_addr_equal(a, b);
}

static bool same_host(const leat_addr *a, const leat_addr *b)
{
    leat_addr c = *b;

    c.port = a->port;
    return a->family == 0 || b->family == 0 || leat_addr_equal(a, &c);
}

/* ---- connection IDs ---- */

/* The path sends to this ID from now on, and no other path ever does. */
static void take_cid(leat_conn *conn, leat_path *path, leat_remote_cid *entry)
{
    entry->taken = true;
    path->cid = entry->sequence;
    leat_conn_heed_reset(conn, entry);
}

const leat_cid *leat_migrate_dcid(leat_conn *conn, leat_path *path)
{
    leat_remote_cid *entry;

    if (path == leat_paths_active(&conn->paths)) {
        return leat_remote_cids_current(&conn->remote_cids);
    }
    if (leat_remote_cids_current(&conn->remote_cids)->len == 0) {
        path->cid = conn->remote_cids.entry[conn->remote_cids.current].sequence;
    }
    entry = leat_remote_cids_find(&conn->remote_cids, path->cid);
    if (!entry) {
        entry = leat_remote_cids_fresh(&conn->remote_cids);
        path->cid = LEAT_PATH_NO_CID;
        if (entry) {
            take_cid(conn, path, entry);
        }
    }
    return entry ? &entry->cid : NULL;
}

static void retire_cid(leat_conn *conn, leat_remote_cid *entry)
{
    uint8_t token[LEAT_STATELESS_RESET_TOKEN];
    bool has_token = entry->has_token;

    memcpy(token, entry->reset_token, sizeof(token));
    if (leat_remote_cids_retire(&conn->remote_cids, entry) && has_token) {
        conn->host->ops->reset_remove(conn->host, conn, token);
    }
}

void leat_migrate_retire_cids(leat_conn *conn)
{
    leat_remote_cids *cids = &conn->remote_cids;

    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        leat_remote_cid *entry = &cids->entry[i];

        if (entry->used && entry->taken && i != cids->current &&
            !leat_paths_use_cid(&conn->paths, entry->sequence)) {
            retire_cid(conn, entry);
        }
    }
}

static leat_path *add_path(leat_conn *conn, const leat_addr *local, const leat_addr *remote)
{
    leat_path *path = leat_paths_add(&conn->paths, local, remote);

    leat_migrate_retire_cids(conn); /* of the one that gave way */
    return path;
}

static void drop_path(leat_conn *conn, leat_path *path)
{
    leat_trace_path(conn, path, true);
    leat_paths_drop(&conn->paths, path);
    leat_migrate_retire_cids(conn);
}

/* Server: a path that a packet came on, and there was not. */
static LEAT_SELDOM leat_path *add_path_of(leat_conn *conn, const leat_packet_in *in)
{
    const leat_path *active = leat_paths_active(&conn->paths);
    bool preferred = active->preferred != differ(&active->local, &in->info->local);
    bool known_peer = leat_paths_know_peer(&conn->paths, &in->info->remote);
    leat_path *path = add_path(conn, &in->info->local, &in->info->remote);

    if (path) {
        path->preferred = preferred;
        path->known_peer = known_peer;
        leat_path_on_received(path, in->datagram_len);
        leat_cid_set(&path->addressed, in->dcid.data, in->dcid.len);
        leat_trace_path(conn, path, false);
    }
    return path;
}

/* ---- moving ---- */

/* A path about which nothing is known yet (s9.4). */
static void reset_recovery(leat_conn *conn, leat_time now)
{
    leat_mtu_init(&conn->mtu, conn->settings->udp_payload);
    leat_mtu_limit(&conn->mtu, conn->peer.max_udp_payload);
    leat_ecn_init(&conn->ecn, !conn->settings->disable_ecn);
    leat_sent_set_path(&conn->app.sent, &conn->flight, leat_paths_active(&conn->paths)->number);
    leat_loss_reset_path(&conn->loss, 0);
    leat_cc_init(&conn->cc, conn->cc.ops, conn->mtu.size, conn->cc.user, now);
    leat_pacer_init(&conn->pacer, conn->mtu.size);
}

/* Makes path the active one. Its connection ID is there already (leat_migrate_dcid()), or keep_cid:
 * the one in use. */
static LEAT_SELDOM void move_to(leat_conn *conn, leat_path *path, bool keep_cid)
{
    leat_paths *paths = &conn->paths;
    leat_path *old = leat_paths_active(paths);
    bool same = same_host(&old->remote, &path->remote) && same_host(&old->local, &path->local);

    leat_trace_migration(conn, path, "migration_started");
    leat_trace_addressed(conn, old->addressed, &path->addressed);
    old->cid = conn->remote_cids.entry[conn->remote_cids.current].sequence;
    if (!keep_cid) {
        leat_cid former = *leat_remote_cids_current(&conn->remote_cids);

        leat_grease_on_new_path(&conn->grease);
        leat_remote_cids_use(&conn->remote_cids,
                             leat_remote_cids_find(&conn->remote_cids, path->cid));
        leat_trace_cid(conn, &former, leat_remote_cids_current(&conn->remote_cids));
    }
    if (old->carries) {
        paths->fallback = paths->active;
    }
    paths->active = leat_paths_index(paths, path);
    path->move_to = false;
    path->cid = LEAT_PATH_NO_CID;
    if (path->carries) {
        paths->fallback = paths->active;
    }
    path->expire_at = LEAT_TIME_NEVER;
    old->expire_at = leat_time_add(leat_conn_now(conn), 3 * leat_migrate_pto(conn));
    if (same) {
        /* What is in flight is this path's now; what is still sent to the old address is not. */
        path->number = old->number;
        old->number = paths->next_number++;
    } else {
        reset_recovery(conn, leat_conn_now(conn));
    }
    conn->count.migrations++;
    if (path->validated && path->carries) {
        leat_trace_migration(conn, path, "migration_complete");
    }
    leat_conn_want_send(conn);
}

/* Validates a path besides the active one. */
static void probe(leat_conn *conn, leat_path *path, leat_time now)
{
    if (path->give_up_at == LEAT_TIME_NEVER) {
        leat_trace_migration(conn, path, "probing_started");
    }
    leat_path_probe(path, now, leat_migrate_pto(conn));
}

/* Client: begins to validate a path that it will move to. LEAT_ERR_LIMIT, LEAT_ERR_BLOCKED: see
 * leat_conn_migrate(). */
static leat_err go_to(leat_conn *conn, const leat_addr *local, const leat_addr *remote,
                      uint64_t cid, bool preferred)
{
    leat_path *path = leat_paths_find(&conn->paths, local, remote);
    leat_remote_cid *given = leat_remote_cids_find(&conn->remote_cids, cid);

    if (path && path != leat_paths_active(&conn->paths)) {
        drop_path(conn, path); /* left a while ago: it begins anew, with another ID */
    }
    path = add_path(conn, local, remote);
    if (!path) {
        return LEAT_ERR_LIMIT;
    }
    if (given && !given->taken) {
        take_cid(conn, path, given);
    }
    if (!leat_migrate_dcid(conn, path)) {
        drop_path(conn, path);
        return LEAT_ERR_BLOCKED;
    }
    path->move_to = true;
    path->known_peer = true;
    path->preferred = preferred;
    leat_trace_path(conn, path, false);
    probe(conn, path, leat_conn_now(conn));
    leat_conn_rearm(conn);
    leat_conn_want_send(conn);
    return LEAT_OK;
}

/* What it sends from there is the system's choice: the way to this address may be another. */
void leat_migrate_to_preferred(leat_conn *conn, const leat_addr *remote, uint64_t cid)
{
    leat_addr local = {.family = 0};

    (void)go_to(conn, &local, remote, cid, true); /* there is no need to: it stays */
}

/* The path to the server's preferred address, while it is validated; or NULL. */
static leat_path *on_its_way_to_preferred(leat_conn *conn)
{
    if (leat_paths_active(&conn->paths)->preferred) {
        return NULL;
    }
    for (size_t i = 0; i < leat_paths_room(&conn->paths); i++) {
        leat_path *path = leat_paths_at(&conn->paths, i);

        if (path->used && path->preferred && path->move_to) {
            return path;
        }
    }
    return NULL;
}

/* A client that moves before it has reached the preferred address tries to reach that from its new
 * address (s9.6.3). */
static void take_preferred_along(leat_conn *conn, const leat_addr *local)
{
    leat_path *path = on_its_way_to_preferred(conn);

    if (path) {
        leat_addr remote = path->remote;

        drop_path(conn, path);
        (void)go_to(conn, local, &remote, LEAT_PATH_NO_CID, true);
    }
}

leat_err leat_conn_migrate(leat_conn *conn, const leat_addr *local)
{
    const leat_path *active = leat_paths_active(&conn->paths);
    leat_err err;

    if (!leat_conn_is_open(conn)) {
        return LEAT_ERR_CLOSED;
    }
    if (conn->is_server || !conn->confirmed) {
        return LEAT_ERR_STATE;
    }
    if (conn->peer.no_migration && !active->preferred) {
        return LEAT_ERR_UNSUPPORTED; /* RFC 9000 s18.2: disable_active_migration */
    }
    if (leat_remote_cids_current(&conn->remote_cids)->len == 0) {
        return LEAT_ERR_UNSUPPORTED; /* s9.5 */
    }
    if (local->family != active->remote.family || leat_addr_equal(local, &active->local)) {
        return LEAT_ERR_INVALID;
    }
    err = go_to(conn, local, &active->remote, LEAT_PATH_NO_CID, active->preferred);
    if (err == LEAT_OK) {
        take_preferred_along(conn, local);
    }
    return err;
}

/* ---- what comes ---- */

/* Server: the datagram came to the address that the connection had before the preferred one. */
static bool is_left(const leat_path *active, const leat_recv_info *info)
{
    return active->preferred && differ(&active->local, &info->local);
}

bool leat_migrate_admits(leat_conn *conn, const leat_recv_info *info, size_t len, leat_path **out)
{
    leat_path *path = leat_paths_find(&conn->paths, &info->local, &info->remote);

    *out = path;
    if (path) {
        leat_path_on_received(path, len);
        if (path->local.family == 0) {
            path->local = info->local;
        }
        return true;
    }
    /* A server does not move (s9), nor does a client before the handshake is confirmed. The
     * server's address that both have left is read no more when its path has expired (s9.6.2). A
     * server may still send to where the client was: it learns by the answer where that is. */
    return conn->confirmed && (conn->is_server ? !is_left(leat_paths_active(&conn->paths), info)
                                               : leat_paths_know_peer(&conn->paths, &info->remote));
}

/* The peer sends to the ID that it used on the active path: it does not know that it moved. Before
 * its first 1-RTT packet that was the ID of the handshake. */
static bool keeps_its_cid(const leat_conn *conn, const leat_packet_in *in)
{
    const leat_cid *before = &leat_paths_active_const(&conn->paths)->addressed;

    return leat_cid_equal_span(before->len > 0 ? before : &conn->local_cids.entry[0].cid, in->dcid);
}

/* The client is at the preferred address: this side follows when it has validated the path, whoever
 * may have sent the packet there (s9.6.2). Of several only the newest is waited for. */
static LEAT_SELDOM void wait_for_preferred(leat_conn *conn, leat_path *path,
                                           const leat_packet_in *in)
{
    for (size_t i = 0; i < leat_paths_room(&conn->paths); i++) {
        leat_paths_at(&conn->paths, i)->move_to = false;
    }
    leat_cid_set(&path->addressed, in->dcid.data, in->dcid.len);
    path->move_to = true;
    probe(conn, path, in->at);
}

void leat_migrate_on_packet(leat_conn *conn, const leat_packet_in *in)
{
    leat_path *active = leat_paths_active(&conn->paths);
    leat_path *path;
    bool keep_cid;

    if (in->type != LEAT_PACKET_ONE_RTT || in->probing ||
        in->number + 1 != leat_acks_expected(&in->pn->acks)) {
        return;
    }
    path = in->path;
    if (!path || !path->used) { /* there was none, or a frame made it go */
        path = leat_paths_find(&conn->paths, &in->info->local, &in->info->remote);
    }
    if (path) {
        conn->paths.heard = leat_paths_index(&conn->paths, path);
    }
    if (path == active) {
        if (!leat_cid_equal_span(&active->addressed, in->dcid)) {
            leat_cid former = active->addressed;

            leat_cid_set(&active->addressed, in->dcid.data, in->dcid.len);
            leat_trace_addressed(conn, former, &active->addressed);
        }
        return;
    }
    if (!conn->is_server || !conn->confirmed) {
        return;
    }
    if (is_left(active, in->info)) {
        return;
    }
    if (!path && (path = add_path_of(conn, in)) == NULL) {
        return;
    }
    if (path->preferred && !active->preferred && !path->validated) {
        wait_for_preferred(conn, path, in);
        return;
    }
    keep_cid = keeps_its_cid(conn, in);
    if (!keep_cid && !leat_migrate_dcid(conn, path)) {
        return; /* no ID to go there with: stays until the peer gives one */
    }
    leat_cid_set(&path->addressed, in->dcid.data, in->dcid.len);
    if (active->validated) {
        /* Somebody off the path may have forwarded the packet: the old path is asked too (s9.3.3).
         */
        probe(conn, active, in->at);
    }
    move_to(conn, path, keep_cid);
    if (!path->validated) {
        leat_path_probe(path, in->at, leat_migrate_pto(conn));
    }
}

void leat_migrate_on_challenge(leat_conn *conn, const leat_packet_in *in,
                               const uint8_t data[LEAT_PATH_DATA])
{
    leat_path *path = leat_paths_find(&conn->paths, &in->info->local, &in->info->remote);

    if (!path && conn->is_server && conn->confirmed) {
        path = add_path_of(conn, in);
    }
    if (path) {
        leat_path_challenged(path, data);
        if (conn->is_server && path->preferred && !path->validated) {
            probe(conn, path, in->at); /* s9.6.2 */
        }
        leat_conn_want_send(conn);
    }
}

/* A client that has reached the preferred address goes nowhere else that it was about to (s9.6.3).
 */
static void abandon_original(leat_conn *conn, const leat_path *reached)
{
    for (size_t i = 0; i < leat_paths_room(&conn->paths); i++) {
        leat_path *path = leat_paths_at(&conn->paths, i);

        if (reached->preferred && path->used && path->move_to && !path->preferred) {
            drop_path(conn, path);
        }
    }
}

/* The path that is in use is good in all: it is what is gone back to from now on. */
static void settle_on(leat_conn *conn, const leat_path *path)
{
    leat_paths *paths = &conn->paths;
    bool moved = !same_host(&path->remote, &leat_paths_at(paths, paths->fallback)->remote);

    if (paths->fallback != paths->active) {
        leat_trace_migration(conn, path, "migration_complete");
    }
    paths->fallback = paths->active;
    if (conn->is_server && moved) {
        leat_conn_offer_token(conn); /* the one before is of another address (s9.3) */
    }
}

void leat_migrate_on_response(leat_conn *conn, const uint8_t data[LEAT_PATH_DATA])
{
    leat_path *path = leat_paths_on_response(&conn->paths, data);

    if (!path) {
        return;
    }
    if (path != leat_paths_active(&conn->paths)) {
        leat_trace_migration(conn, path, "probing_successful");
    }
    if (!path->carries) { /* s8.2.1: it is asked again, in 1,200 bytes */
        leat_path_probe(path, leat_conn_now(conn), leat_migrate_pto(conn));
        leat_conn_rearm(conn);
    }
    if (path == leat_paths_active(&conn->paths)) {
        if (path->carries) {
            settle_on(conn, path);
        }
    } else if (path->move_to) {
        if (!leat_migrate_dcid(conn, path)) {
            drop_path(conn, path);
        } else {
            move_to(conn, path, false);
            abandon_original(conn, path);
        }
    }
    leat_conn_want_send(conn);
}

/* ---- time ---- */

static void failed(leat_conn *conn, leat_path *path)
{
    leat_paths *paths = &conn->paths;

    if (path->validated && (path->carries || path != leat_paths_active_const(paths) ||
                            paths->fallback == paths->active)) {
        return; /* asked once more for somebody else's move: it was good, and stays until it
                   expires; or too small for QUIC, as it seems, but there is no other */
    }
    if (path != leat_paths_active(paths)) {
        leat_trace_migration(conn, path, "probing_abandoned");
        drop_path(conn, path);
        return;
    }
    if (paths->fallback == paths->active) {
        leat_conn_fail(conn, LEAT_TE_NO_VIABLE_PATH, 0, "no path to the peer is left");
        return;
    }
    leat_trace_migration(conn, path, "migration_abandoned");
    if (leat_migrate_dcid(conn, leat_paths_at(paths, paths->fallback))) {
        move_to(conn, leat_paths_at(paths, paths->fallback), false);
    } else {
        move_to(conn, leat_paths_at(paths, paths->fallback), true);
    }
    paths->fallback = paths->active;
    drop_path(conn, path);
}

void leat_migrate_on_time(leat_conn *conn, leat_time now)
{
    leat_path *path;

    while (leat_conn_is_open(conn) && (path = leat_paths_on_time(&conn->paths, now)) != NULL) {
        failed(conn, path);
    }
    while ((path = leat_paths_expired(&conn->paths, now)) != NULL) {
        drop_path(conn, path);
    }
}
