/* conn/host.h: what a connection needs of the endpoint that holds it, so that conn/ knows no
 * endpoint.
 *
 * The endpoint embeds a leat_conn_host. Calls come on the context's thread and must not call back
 * into the connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_HOST_H
#define LEAT_CONN_HOST_H

#include <leat/event.h>
#include <leat/quic.h>

#include "conn/shared.h"
#include "wire/cid.h"

typedef struct leat_conn_host leat_conn_host;

typedef struct leat_conn_host_ops {
    /* Packets with this destination ID are for this connection, until removed. LEAT_ERR_NOMEM. */
    leat_err (*route_add)(leat_conn_host *host, leat_conn *conn, const leat_cid *cid);
    void (*route_remove)(leat_conn_host *host, leat_conn *conn, const leat_cid *cid);
    /* Datagrams that end in this token reset this connection, until removed. LEAT_ERR_NOMEM. */
    leat_err (*reset_add)(leat_conn_host *host, leat_conn *conn,
                          const uint8_t token[LEAT_STATELESS_RESET_TOKEN]);
    void (*reset_remove)(leat_conn_host *host, leat_conn *conn,
                         const uint8_t token[LEAT_STATELESS_RESET_TOKEN]);
    /* leat_conn_send() may have something. Called often: cheap when it is known already. */
    void (*want_send)(leat_conn_host *host, leat_conn *conn);
    /* The handshake is confirmed, or over for good. Called once. */
    void (*settled)(leat_conn_host *host, leat_conn *conn);
    /* Server: what the client first sent to is its ID no more, for it has another and uses it. */
    void (*dcid_done)(leat_conn_host *host, const leat_cid *dcid);
    /* The `closed` event is about to be told: the connection counts no more. Called once. */
    void (*closed)(leat_conn_host *host, leat_conn *conn);
    /* Nothing is left to do: the last thing that a connection says before it frees itself. */
    void (*gone)(leat_conn_host *host, leat_conn *conn);
    /* Server: writes a token for a later connection from addr (RFC 9000 s8.1.3), at most max bytes;
     * returns its length, 0: none. */
    size_t (*new_token)(leat_conn_host *host, const leat_addr *addr, uint32_t version, uint8_t *out,
                        size_t max);
} leat_conn_host_ops;

struct leat_conn_host {
    const leat_conn_host_ops *ops;
    leat_ctx *ctx;
    leat_conn_shared *shared;
    leat_event_sink *sink; /* NULL: no trace */
    leat_endpoint *endpoint;
    void (*make_cid)(uint8_t *cid, size_t len, void *user);
    void *make_cid_user;
    uint8_t cid_len;
    uint8_t reset_key[32];
    leat_addr preferred_ip4, preferred_ip6; /* a server's, or family 0 */
    leat_shared *common;                    /* what endpoints have in common, or NULL */
};

/* A new connection ID of this endpoint's: random, or as its settings make it. */
leat_cid leat_conn_host_new_cid(leat_conn_host *host);

#endif
