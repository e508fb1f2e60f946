/* endpoint/endpoint.h: an endpoint, as the files of endpoint/ see it.
 *
 *     recv.c       cuts what was received into datagrams and finds the connection of each
 *     accept.c     an Initial that belongs to none: a new connection, a Retry, a refusal
 *     stateless.c  answers without a connection: Version Negotiation, Retry, refusal, reset
 *     trace.c      what the sink is told of these
 *     addrtoken.c  address validation tokens
 *     send.c       whose turn it is to send
 *     endpoint.c   the rest, and what connections ask of it (conn/host.h)
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ENDPOINT_ENDPOINT_H
#define LEAT_ENDPOINT_ENDPOINT_H

#include "conn/conn.h"
#include "mem/hmap.h"

/* A connection ID or a reset token, and whose it is. */
typedef struct leat_route {
    leat_hnode_bytes node;
    leat_conn *conn;
} leat_route;

/* An answer without a connection that waits to be sent. */
typedef struct leat_stateless {
    leat_addr remote, local;
    leat_buf datagram;
} leat_stateless;

struct leat_endpoint {
    leat_conn_host host;
    leat_endpoint_settings settings;
    leat_hmap cids;   /* leat_route by connection ID */
    leat_hmap resets; /* leat_route by reset token */
    leat_pool routes;
    leat_list conns;   /* all that are not freed */
    leat_list senders; /* those that want to send */
    leat_queue stateless;
    uint64_t *recent; /* server: see leat_endpoint_is_recent() */
    leat_hash_key recent_key;
    leat_route *last;  /* the route of the last datagram, likely the next one's; NULL: none */
    size_t open;       /* connections whose `closed` was not told */
    size_t handshakes; /* of the accepted ones, not settled */
    bool closing;      /* accepts no more */
    bool retry_mode;   /* so many half-open that clients without a token get a Retry */
};

/* recv.c */
leat_conn *leat_endpoint_find(leat_endpoint *ep, const uint8_t *cid, size_t len);

/* accept.c: a datagram that begins with an Initial for no connection. Takes what it keeps. */
void leat_endpoint_on_initial(leat_endpoint *ep, const leat_header *header, leat_buf *datagram,
                              const leat_recv_info *info);

/* An Initial to this ID began a connection whose handshake is confirmed: its client sends there no
 * more, so it is a copy that the network kept back, or somebody else did. The newest
 * LEAT_RECENT_DCIDS_MAX are remembered, or a little fewer: each has the place that its hash says,
 * and gives way to the next one there. */
bool leat_endpoint_is_recent(const leat_endpoint *ep, leat_span dcid);

/* The number of half-open connections changed: begins or ends to ask for Retry. */
void leat_endpoint_note_load(leat_endpoint *ep);

/* stateless.c: each queues one answer, or none when the queue is full or memory is short. */
void leat_stateless_version(leat_endpoint *ep, const leat_header *header,
                            const leat_recv_info *info);
void leat_stateless_retry(leat_endpoint *ep, const leat_header *header, const leat_recv_info *info);
/* Whether a client's Initial opens under the keys that its destination ID gives; its bytes are used
 * up. */
bool leat_stateless_is_authentic(leat_endpoint *ep, const leat_header *header, uint8_t *packet);
void leat_stateless_close(leat_endpoint *ep, const leat_header *header, const leat_recv_info *info,
                          uint64_t code);
/* In answer to a datagram of `len` bytes with a short header: always shorter than that. */
void leat_stateless_reset(leat_endpoint *ep, const uint8_t *packet, size_t len,
                          const leat_recv_info *info);

/* addrtoken.c (RFC 9000 s8.1) */
typedef enum leat_addrtoken_kind {
    LEAT_ADDRTOKEN_NONE,   /* not ours, or its time is over */
    LEAT_ADDRTOKEN_RETRY,  /* from a Retry to this very handshake */
    LEAT_ADDRTOKEN_STALE,  /* from a Retry, but not good (any more): INVALID_TOKEN */
    LEAT_ADDRTOKEN_EARLIER /* from NEW_TOKEN of an earlier connection */
} leat_addrtoken_kind;

#define LEAT_ADDRTOKEN_MAX 128

/* A token for a Retry: names the ID of the Initial that it answers; bound to the address and to the
 * ID that the Retry gives. Returns its length. */
size_t leat_addrtoken_retry(leat_endpoint *ep, const leat_addr *remote, uint32_t version,
                            leat_span odcid, const leat_cid *retry_scid,
                            uint8_t out[LEAT_ADDRTOKEN_MAX]);
/* For a later connection of the same version (RFC 9369 s5). */
size_t leat_addrtoken_new(leat_endpoint *ep, const leat_addr *remote, uint32_t version,
                          uint8_t out[LEAT_ADDRTOKEN_MAX]);
/* What a token is. version: of the Initial that carries it; dcid: where that went. *odcid is set
 * for RETRY. */
leat_addrtoken_kind leat_addrtoken_check(leat_endpoint *ep, const leat_addr *remote,
                                         uint32_t version, leat_span token, leat_span dcid,
                                         leat_cid *odcid);

/* trace.c: where there is a sink (leat_endpoint_traces()) */
static inline bool leat_endpoint_traces(const leat_endpoint *ep)
{
    return LEAT_UNLIKELY(ep->host.sink != NULL);
}

/* An answer goes out to a packet that was sent to odcid. */
void leat_endpoint_trace_answer(leat_endpoint *ep, leat_span odcid, const uint8_t *datagram,
                                size_t len) LEAT_SELDOM;
/* A client asked for a version that is not spoken here. */
void leat_endpoint_trace_version(leat_endpoint *ep, const leat_header *asked) LEAT_SELDOM;
/* retry_mode has changed. */
void leat_endpoint_trace_retry_mode(leat_endpoint *ep) LEAT_SELDOM;

static inline leat_time leat_endpoint_now(const leat_endpoint *ep)
{
    return leat_ctx_now(ep->host.ctx);
}

#endif
