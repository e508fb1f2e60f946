/* conn/cid.h: the connection IDs of a connection (RFC 9000 §5.1).
 *
 * leat_local_cids are those that this side gave out, by which the endpoint finds the connection;
 * leat_remote_cids are those that the peer gave out, to be put on what is sent. Both are small
 * arrays with a fixed bound; neither knows the connection. What must be sent (NEW_CONNECTION_ID,
 * RETIRE_CONNECTION_ID) is a state of the entry, so a lost frame only sets that state back.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_CID_H
#define LEAT_CONN_CID_H

#include <leat/limits.h>

#include "wire/cid.h"
#include "wire/frames.h"

/* ---- given out by this side ---- */

typedef enum leat_cid_state {
    LEAT_CID_FREE,    /* no ID in this entry */
    LEAT_CID_PENDING, /* made, to be told to the peer */
    LEAT_CID_SENT     /* told, or known from the handshake */
} leat_cid_state;

typedef struct leat_local_cid {
    uint64_t sequence;
    leat_cid cid;
    uint8_t state; /* leat_cid_state */
} leat_local_cid;

typedef struct leat_local_cids {
    uint64_t next_sequence;
    uint64_t sent_end; /* 1 + the largest that was told, ever */
    uint8_t want;      /* how many to keep issued: the peer's limit and our own */
    uint8_t pending;   /* entries in that state: asked for with each packet */
    leat_local_cid entry[LEAT_LOCAL_CIDS_MAX];
} leat_local_cids;

/* Starts with the ID of the handshake, sequence number 0. */
void leat_local_cids_init(leat_local_cids *cids, const leat_cid *first);

/* A free entry that should be filled (leat_local_cids_fill()), or NULL when enough are issued. */
leat_local_cid *leat_local_cids_wanted(leat_local_cids *cids);

/* Gives the entry its ID and the next sequence number; it is pending from then on. */
void leat_local_cids_fill(leat_local_cids *cids, leat_local_cid *entry, const leat_cid *cid);

/* Another that the peer knows from the handshake, sequence number 1 (§5.1.1). */
void leat_local_cids_add_known(leat_local_cids *cids, const leat_cid *cid);

/* The next entry to be told to the peer, or NULL; whether there is one. */
leat_local_cid *leat_local_cids_pending(leat_local_cids *cids);
static inline bool leat_local_cids_any_pending(const leat_local_cids *cids)
{
    return cids->pending > 0;
}

/* NEW_CONNECTION_ID for this pending entry was sent. */
void leat_local_cids_sent(leat_local_cids *cids, leat_local_cid *entry);

/* NEW_CONNECTION_ID with this sequence number was lost: tell again, unless retired meanwhile. */
void leat_local_cids_lost(leat_local_cids *cids, uint64_t sequence);

/* RETIRE_CONNECTION_ID arrived in a packet addressed to dcid. On LEAT_TE_NO_ERROR *retired is the
 * ID to be forgotten, or has length 0 when it was retired before (§19.16). */
uint64_t leat_local_cids_retire(leat_local_cids *cids, uint64_t sequence, leat_span dcid,
                                leat_cid *retired);

/* ---- given out by the peer ---- */

typedef struct leat_remote_cid {
    uint64_t sequence;
    leat_cid cid;
    bool used;
    bool taken; /* packets go to it, or went: it is not for another path, and its token counts */
    bool has_token;
    uint8_t reset_token[LEAT_STATELESS_RESET_TOKEN];
} leat_remote_cid;

/* A sequence number to be retired: pending until sent, kept until acknowledged. */
typedef struct leat_retiring {
    uint64_t sequence;
    bool sent;
} leat_retiring;

typedef struct leat_remote_cids {
    uint64_t retire_prior_to;
    uint64_t seen_end; /* 1 + the largest sequence number that came */
    uint64_t seen;     /* bit i: seen_end - 1 - i came; what lies further back counts as come */
    uint8_t current;   /* index of the entry in use */
    uint8_t retiring_count;
    leat_remote_cid entry[LEAT_REMOTE_CIDS_MAX];
    leat_retiring retiring[LEAT_RETIRING_CIDS_MAX];
} leat_remote_cids;

/* Starts with the ID that the first packets go to, sequence number 0, without a reset token. */
void leat_remote_cids_init(leat_remote_cids *cids, const leat_cid *first);

static inline const leat_cid *leat_remote_cids_current(const leat_remote_cids *cids)
{
    return &cids->entry[cids->current].cid;
}

/* The entry with this sequence number, or NULL when it is retired or was never given. */
leat_remote_cid *leat_remote_cids_find(leat_remote_cids *cids, uint64_t sequence);

/* One that nothing was sent to yet, for a path of its own; NULL: there is none. */
leat_remote_cid *leat_remote_cids_fresh(leat_remote_cids *cids);

/* From now on this entry, a taken one, is the one in use. */
void leat_remote_cids_use(leat_remote_cids *cids, const leat_remote_cid *entry);

/* Retires one that is not in use. False when as many retirements as may be are unacknowledged: try
 * again later. */
bool leat_remote_cids_retire(leat_remote_cids *cids, leat_remote_cid *entry);

/* The peer chose another ID in its first packet or a Retry (§7.2): replaces entry 0. */
void leat_remote_cids_replace(leat_remote_cids *cids, const leat_cid *cid);

/* The reset token of the handshake's ID, from the transport parameters. */
void leat_remote_cids_set_token(leat_remote_cids *cids,
                                const uint8_t token[LEAT_STATELESS_RESET_TOKEN]);

/* What changed, for the endpoint's table of reset tokens: it has those of taken IDs (RFC 9000
 * s10.3.1). */
typedef struct leat_cids_change {
    const leat_remote_cid *added; /* or NULL */
    const leat_remote_cid *taken; /* the one in use was retired, and this one is; or NULL */
    /* Entries that were taken and are retired: copies of their tokens. */
    uint8_t dropped_count;
    uint8_t dropped[LEAT_REMOTE_CIDS_MAX + 1][LEAT_STATELESS_RESET_TOKEN];
} leat_cids_change;

/* NEW_CONNECTION_ID arrived (§19.15). Moves to another ID when the one in use is retired. Errors:
 * PROTOCOL_VIOLATION (zero-length IDs in use, or a sequence number given again with other
 * contents), CONNECTION_ID_LIMIT_ERROR (more than we allow, or more retirements than
 * LEAT_RETIRING_CIDS_MAX unacknowledged, §5.1.2). */
uint64_t leat_remote_cids_add(leat_remote_cids *cids, const leat_frame_new_connection_id *frame,
                              leat_cids_change *change);

/* The next retirement to be sent, or NULL; whether there is one. */
leat_retiring *leat_remote_cids_to_retire(leat_remote_cids *cids);
static inline bool leat_remote_cids_any_to_retire(const leat_remote_cids *cids)
{
    for (size_t i = 0; i < cids->retiring_count; i++) {
        if (!cids->retiring[i].sent) {
            return true;
        }
    }
    return false;
}
void leat_remote_cids_retire_lost(leat_remote_cids *cids, uint64_t sequence);
void leat_remote_cids_retire_acked(leat_remote_cids *cids, uint64_t sequence);

void leat_local_cids_check(const leat_local_cids *cids);
void leat_remote_cids_check(const leat_remote_cids *cids);

#endif
