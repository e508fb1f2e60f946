/* conn/path.h: the network paths of a connection: addresses, validation, what may be sent
 * (RFC 9000 s8, s9).
 *
 * A path is a pair of addresses. One is active: all but probes goes there. Others are there because
 * the peer probes them, or this side does before it moves.
 *
 * Until the peer's address is validated an endpoint sends at most three times what it received from
 * it (s8.1): leat_path_allowance(). Validation sends PATH_CHALLENGE up to LEAT_PATH_CHALLENGES
 * times, each with data of its own, and any of the answers will do (s8.2). Where the limit leaves
 * no room for 1,200 bytes the answer proves the address alone, and the path is probed once more,
 * for its size (s8.2.1). A challenge of the peer's is answered on the path that it came on; the
 * newest LEAT_PATH_RESPONSES_MAX of them are kept.
 *
 * Neither passes the congestion window (RFC 9002 s7), but for a challenge whose time has come
 * again: a PTO has expired then. One that the window holds back from the start therefore waits for
 * a PTO at most.
 *
 * Nearly every connection has but one path ever, which lies within leat_paths. The others are taken
 * from a pool with the first of them, and go back when the connection is idle and has one again.
 *
 * The paths know nothing of congestion control: conn/migrate.c joins them with it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_PATH_H
#define LEAT_CONN_PATH_H

#include <leat/quic.h>

#include "mem/pool.h"
#include "wire/cid.h"
#include "wire/frames.h"

#define LEAT_PATH_AMPLIFICATION 3 /* RFC 9000 s8.1 */
#define LEAT_PATH_CHALLENGES                                                                       \
    3 /* tries: one may be lost each way, and the give-up time has room for so many */
/* Bytes of a datagram with a PATH_CHALLENGE that is not padded, at most: header, longest ID, packet
 * number, frame, tag. */
#define LEAT_PATH_CHALLENGE_SIZE (1 + LEAT_CID_MAX + 4 + LEAT_FRAME_SIZE_PATH_DATA + 16)
#define LEAT_PATH_NO_CID         UINT64_MAX

typedef struct leat_path {
    leat_addr local;
    leat_addr remote;
    leat_cid addressed; /* the ID of ours that the peer sends to on this path */
    bool used;
    bool validated;
    bool carries;        /* 1,200 bytes, besides: QUIC's least */
    bool known_peer;     /* the remote address was validated on another path, or by the handshake */
    bool move_to;        /* becomes active once it is validated */
    bool preferred;      /* the server's end is the address that it prefers (s9.6) */
    bool challenge_due;  /* a PATH_CHALLENGE is to be sent */
    bool challenge_late; /* and has been for a PTO, or the one before was sent that long ago */
    uint8_t number; /* carried by records of sent packets; paths that differ in a port share it */
    uint8_t challenges; /* sent, not answered */
    uint8_t full;       /* bit i: challenge i went in a datagram of 1,200 bytes */
    uint8_t responses;  /* PATH_RESPONSEs to send */
    uint32_t id;        /* what a trace calls it: no other path of the connection ever has it */
    uint64_t cid; /* sequence number of the peer's ID to send to, or LEAT_PATH_NO_CID; the active
                     path sends to leat_remote_cids_current() */
    uint64_t received; /* bytes of UDP payload */
    uint64_t sent;
    leat_time retry_at;   /* the next challenge; NEVER while none is wanted */
    leat_time expire_at;  /* forgotten then, unless it is the fallback or the peer is there; NEVER
                             while it is active */
    leat_time give_up_at; /* NEVER while no validation is going on */
    uint8_t challenge[LEAT_PATH_CHALLENGES][LEAT_PATH_DATA];
    uint8_t response[LEAT_PATH_RESPONSES_MAX][LEAT_PATH_DATA];
} leat_path;

typedef struct leat_paths {
    uint8_t active;
    uint8_t fallback; /* the last validated one that was active; may be the active one */
    uint8_t heard;    /* where the peer's newest packet came that was no probe: where the peer is */
    uint8_t next_number;
    uint8_t count; /* in use: with one alone the others need not be looked at */
    uint32_t next_id;
    leat_path first;
    leat_path *others; /* LEAT_PATHS_MAX - 1 more, or NULL while there is but one */
    leat_pool *pool;   /* that these come from */
} leat_paths;

/* ---- one path ---- */

static inline void leat_path_on_received(leat_path *path, size_t bytes)
{
    path->received += bytes;
}

static inline void leat_path_on_sent(leat_path *path, size_t bytes)
{
    path->sent += bytes;
}

/* Bytes that may be sent now; SIZE_MAX on a validated path. */
static inline size_t leat_path_allowance(const leat_path *path)
{
    uint64_t allowed = LEAT_PATH_AMPLIFICATION * path->received;

    if (path->validated || path->known_peer) {
        return SIZE_MAX;
    }
    return allowed > path->sent ? (size_t)(allowed - path->sent) : 0;
}

/* How much of that data may take: a validation that goes on keeps back what the rest of its
 * challenges need. With nothing left they could not be sent again when they are lost, and a peer
 * that waits sends nothing that would bring more. */
static inline size_t leat_path_allowance_of_data(const leat_path *path)
{
    size_t allowed = leat_path_allowance(path);
    size_t kept = (size_t)(LEAT_PATH_CHALLENGES - path->challenges) * LEAT_PATH_CHALLENGE_SIZE;

    if (allowed == SIZE_MAX || path->give_up_at == LEAT_TIME_NEVER) {
        return allowed;
    }
    return allowed > kept ? allowed - kept : 0;
}

/* The peer's address is proved, and that the path carries 1,200 bytes, as the handshake shows of
 * its own; a validation that goes on ends. */
void leat_path_validate(leat_path *path);

/* Begins to validate, unless that is going on. Challenges are due every `pto`, and given up after
 * three of them (s8.2.4). */
void leat_path_probe(leat_path *path, leat_time now, leat_time pto);

/* A PATH_CHALLENGE goes out: keeps its data. full: in 1,200 bytes. */
void leat_path_challenge_sent(leat_path *path, const uint8_t data[LEAT_PATH_DATA], bool full,
                              leat_time now, leat_time pto);

/* A PATH_CHALLENGE arrived on it. */
void leat_path_challenged(leat_path *path, const uint8_t data[LEAT_PATH_DATA]);

/* The next response to send, or NULL; leat_path_responded() takes it off. */
const uint8_t *leat_path_response(const leat_path *path);
void leat_path_responded(leat_path *path);

/* A challenge or response waits to be sent. */
static inline bool leat_path_wants_send(const leat_path *path)
{
    return path->used && (path->challenge_due || path->responses > 0);
}

/* ---- all of them ---- */

/* pool: of objects of LEAT_PATHS_MAX - 1 leat_path. */
void leat_paths_init(leat_paths *paths, leat_pool *pool, const leat_addr *local,
                     const leat_addr *remote, bool validated);
void leat_paths_free(leat_paths *paths);

/* Gives the others back when none of them is used. */
void leat_paths_shrink(leat_paths *paths);

/* How many there is room for now: indexes below are good for leat_paths_at(). */
static inline size_t leat_paths_room(const leat_paths *paths)
{
    return paths->others ? LEAT_PATHS_MAX : 1;
}

static inline leat_path *leat_paths_at(leat_paths *paths, size_t i)
{
    return i == 0 ? &paths->first : &paths->others[i - 1];
}

static inline const leat_path *leat_paths_at_const(const leat_paths *paths, size_t i)
{
    return i == 0 ? &paths->first : &paths->others[i - 1];
}

static inline uint8_t leat_paths_index(const leat_paths *paths, const leat_path *path)
{
    return path == &paths->first ? 0 : (uint8_t)(path - paths->others + 1);
}

static inline leat_path *leat_paths_active(leat_paths *paths)
{
    return leat_paths_at(paths, paths->active);
}

static inline const leat_path *leat_paths_active_const(const leat_paths *paths)
{
    return leat_paths_at_const(paths, paths->active);
}

/* It is in use no more. Not the active one. */
void leat_paths_drop(leat_paths *paths, leat_path *path);

/* The path with these addresses, or NULL. A local address that is not known equals any. */
leat_path *leat_paths_find(leat_paths *paths, const leat_addr *local, const leat_addr *remote);

/* Adds one; NULL without memory. When there is no room, one that is neither active nor the fallback
 * nor moved to, nor where the peer is, gives way, a validated one last; NULL when there is none of
 * these. */
leat_path *leat_paths_add(leat_paths *paths, const leat_addr *local, const leat_addr *remote);

/* The peer's address is validated on a path. */
bool leat_paths_know_peer(const leat_paths *paths, const leat_addr *remote);

/* A path but the active one sends to this ID. */
bool leat_paths_use_cid(const leat_paths *paths, uint64_t cid);

/* A PATH_RESPONSE arrived, on any path: validates the one whose challenge it answers and returns
 * it; NULL: none (any more). Where the challenge was small it is not known yet whether the path
 * carries 1,200 bytes: `carries` tells. */
leat_path *leat_paths_on_response(leat_paths *paths, const uint8_t data[LEAT_PATH_DATA]);

/* The next path behind `after` (NULL: the first) on which a challenge or response waits, or NULL.
 */
leat_path *leat_paths_wanting(leat_paths *paths, const leat_path *after);

/* There is one. */
static inline bool leat_paths_any_wanting(leat_paths *paths)
{
    if (paths->count == 1) {
        return leat_path_wants_send(leat_paths_active(paths));
    }
    return leat_paths_wanting(paths, NULL) != NULL;
}

/* Nothing is to be done about paths at any time. */
static inline bool leat_paths_calm(const leat_paths *paths)
{
    return paths->count == 1 && leat_paths_active_const(paths)->give_up_at == LEAT_TIME_NEVER;
}

/* When leat_paths_on_time() has something to do; NEVER: nothing. */
leat_time leat_paths_deadline(const leat_paths *paths);
/* Makes challenges due; returns a path whose validation has failed (call again for more), or NULL.
 */
leat_path *leat_paths_on_time(leat_paths *paths, leat_time now);

/* A path that was left long enough ago to be forgotten; NULL: none. */
leat_path *leat_paths_expired(leat_paths *paths, leat_time now);

void leat_paths_check(const leat_paths *paths);

#endif
