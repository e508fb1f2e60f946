/* conn/ecn.h: explicit congestion notification on the active path, and whether it can be relied on
 * (RFC 9000 s13.4, appendix A.4).
 *
 *     testing   packets are marked ECT(0), LEAT_ECN_TESTING of them, or until LEAT_ECN_PTOS probe
 *               timeouts in a row
 *     unknown   so many were sent and none is acknowledged yet: no marks until one is
 *     capable   an ACK's counts were right: all packets are marked
 *     failed    counts were missing or wrong, or all marked packets were lost: no marks on this
 *               path any more, and its CE counts mean nothing
 *
 * The counts belong to a packet-number space (leat_ecn_space), the state to the path. Only an ACK
 * that raises the largest number acknowledged is judged, since older ones may have been overtaken.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_ECN_H
#define LEAT_CONN_ECN_H

#include <leat/quic.h>

#include "recovery/sent.h"
#include "wire/frames.h"

#define LEAT_ECN_TESTING 10 /* appendix A.4: enough that not all are lost by chance */
#define LEAT_ECN_PTOS    2  /* a path that drops what is marked costs a handshake no more */

/* X(NAME, name as qlog has it) */
#define LEAT_ECN_STATE_LIST(X)                                                                     \
    X(TESTING, "testing")                                                                          \
    X(UNKNOWN, "unknown")                                                                          \
    X(CAPABLE, "capable")                                                                          \
    X(FAILED, "failed")

#define LEAT_ECN_STATE_ENUM(name, text) LEAT_ECN_IS_##name,
typedef enum leat_ecn_state { LEAT_ECN_STATE_LIST(LEAT_ECN_STATE_ENUM) } leat_ecn_state;
#undef LEAT_ECN_STATE_ENUM

typedef struct leat_ecn_path {
    uint8_t state;   /* leat_ecn_state */
    uint32_t marked; /* packets sent with a mark while testing */
    uint32_t lost;   /* of these */
    uint64_t ce;     /* marks that the peer has reported and that were believed */
} leat_ecn_path;

typedef struct leat_ecn_space {
    uint64_t sent;           /* packets ever marked ECT(0), on any path */
    uint64_t ect0, ect1, ce; /* the counts that the peer reported last */
} leat_ecn_space;

/* A path about which nothing is known; or one that is not to be marked. */
void leat_ecn_init(leat_ecn_path *ecn, bool enabled);

/* enum leat_ecn: what the next datagrams carry. */
static inline uint8_t leat_ecn_mark(const leat_ecn_path *ecn)
{
    return ecn->state == LEAT_ECN_IS_TESTING || ecn->state == LEAT_ECN_IS_CAPABLE
               ? LEAT_ECN_ECT0
               : LEAT_ECN_NOT_ECT;
}

/* A packet went out with that mark. */
void leat_ecn_on_sent(leat_ecn_path *ecn, leat_ecn_space *space);

/* A packet that was marked on this path was declared lost. */
void leat_ecn_on_lost(leat_ecn_path *ecn);

/* So many probe timeouts in a row. */
void leat_ecn_on_pto(leat_ecn_path *ecn, uint32_t count);

/* An ACK that has newly acknowledged packets and raised the largest number. Returns how many CE
 * marks it newly reports; 0 when it cannot be trusted. */
uint64_t leat_ecn_on_ack(leat_ecn_path *ecn, leat_ecn_space *space, const leat_frame_ack *ack,
                         const leat_sent_acked *acked);

const char *leat_ecn_state_name(const leat_ecn_path *ecn);

#endif
