/* endpoint/recv.c: datagrams to connections.
 *
 * A receive call may bring many datagrams in one buffer (UDP GRO). Neighbours for one connection
 * are passed on as one slice, so that a bulk transfer costs one look-up and one queue entry a
 * receive call. The last route is tried first.
 *
 * SPDX-License-Identifier: MIT
 */
#include "endpoint/endpoint.h"

#include <string.h>

#include "base/assert.h"

/* A usual length is known to the compiler: each datagram is looked at. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
    return len == LEAT_CID_LEN_DEFAULT ? memcmp(a, b, LEAT_CID_LEN_DEFAULT) == 0
                                       : memcmp(a, b, len) == 0;
}

static leat_route *find_route(leat_endpoint *ep, const uint8_t *cid, size_t len)
{
    leat_route *last = ep->last;
    leat_hnode_bytes *node;

    if (last && last->node.len == len && same_bytes(last->node.key, cid, len)) {
        return last;
    }
    node = len <= LEAT_CID_MAX ? leat_hmap_find_bytes(&ep->cids, cid, len) : NULL;
    if (node) {
        ep->last = LEAT_CONTAINER_OF(node, leat_route, node);
        return ep->last;
    }
    return NULL;
}

leat_conn *leat_endpoint_find(leat_endpoint *ep, const uint8_t *cid, size_t len)
{
    leat_route *route = find_route(ep, cid, len);

    return route ? route->conn : NULL;
}

/* The destination ID that a datagram begins with (RFC 8999 s5); false: it has none. */
static bool datagram_cid(const leat_endpoint *ep, const uint8_t *data, size_t len, leat_span *cid)
{
    if (len > 0 && !(data[0] & LEAT_FIRST_LONG)) {
        *cid = (leat_span){data + 1, ep->host.cid_len};
        return len >= 1 + cid->len;
    }
    if (len < 6 || len - 6 < data[5]) {
        return false;
    }
    *cid = (leat_span){data + 6, data[5]};
    return true;
}

static leat_conn *conn_for(leat_endpoint *ep, const uint8_t *data, size_t len)
{
    leat_span cid;

    return datagram_cid(ep, data, len, &cid) ? leat_endpoint_find(ep, cid.data, cid.len) : NULL;
}

/* The connection that a stateless reset is for, or NULL (RFC 9000 s10.3.1). It comes from where the
 * connection's packets go. */
static leat_conn *reset_conn(leat_endpoint *ep, const uint8_t *data, size_t len,
                             const leat_recv_info *info)
{
    leat_hnode_bytes *node = NULL;
    leat_conn *conn;

    if (len >= 21) {
        node = leat_hmap_find_bytes(&ep->resets, data + len - LEAT_STATELESS_RESET_TOKEN,
                                    LEAT_STATELESS_RESET_TOKEN);
    }
    conn = node ? LEAT_CONTAINER_OF(node, leat_route, node)->conn : NULL;
    return conn && leat_conn_sends_to(conn, &info->remote) ? conn : NULL;
}

/* A datagram for no connection: it may end one, whatever it begins with (RFC 9000 s10.3). Else only
 * a server has something to say to it. */
static void on_unknown(leat_endpoint *ep, leat_buf *datagram, const leat_recv_info *info)
{
    leat_conn *reset = reset_conn(ep, datagram->data, datagram->len, info);
    leat_header header;
    leat_err err;

    if (reset) {
        leat_conn_on_reset(reset);
        return;
    }
    if (datagram->len == 0) {
        return;
    }
    if (!(datagram->data[0] & LEAT_FIRST_LONG)) {
        if (ep->settings.server_tls) {
            leat_stateless_reset(ep, datagram->data, datagram->len, info);
        }
        return;
    }
    err = leat_header_parse(datagram->data, datagram->len, ep->host.cid_len, &header);
    if (err != LEAT_OK || !ep->settings.server_tls || datagram->len < LEAT_INITIAL_MIN_SIZE) {
        return;
    }
    if (header.type == LEAT_PACKET_UNKNOWN_VERSION ||
        (header.type == LEAT_PACKET_INITIAL &&
         !leat_version_spoken(&ep->settings.conn, header.version))) {
        leat_stateless_version(ep, &header, info);
    } else if (header.type == LEAT_PACKET_INITIAL) {
        leat_endpoint_on_initial(ep, &header, datagram, info);
    }
}

/* The length of the run of datagrams from `at` on that go to one connection. */
static size_t run_length(leat_endpoint *ep, const leat_buf *buf, size_t at, size_t step,
                         const leat_conn *conn)
{
    size_t end = at;

    do {
        end += buf->len - end < step ? buf->len - end : step;
    } while (end < buf->len &&
             conn_for(ep, buf->data + end, buf->len - end < step ? buf->len - end : step) == conn);
    return end - at;
}

void leat_endpoint_recv(leat_endpoint *ep, leat_buf *buf, const leat_recv_info *info)
{
    size_t step = info->segment > 0 && info->segment < buf->len ? info->segment : buf->len;
    size_t at = 0;

    while (at < buf->len) {
        size_t len = buf->len - at < step ? buf->len - at : step;
        leat_conn *conn = conn_for(ep, buf->data + at, len);
        leat_buf part;

        if (conn) {
            len = run_length(ep, buf, at, step, conn);
        }
        if (conn && len == buf->len) {
            leat_conn_deliver(conn, buf, info);
            return;
        }
        part = leat_buf_slice(buf, at, len);
        if (conn) {
            leat_conn_deliver(conn, &part, info);
        } else {
            on_unknown(ep, &part, info);
            leat_buf_release(&part);
        }
        at += len;
    }
    leat_buf_release(buf);
}

leat_err leat_endpoint_recv_copy(leat_endpoint *ep, const void *data, size_t len,
                                 const leat_recv_info *info)
{
    leat_buf buf;
    leat_err err = leat_buf_take(leat_ctx_mem(ep->host.ctx), len, &buf);

    if (err != LEAT_OK) {
        return err;
    }
    if (len > 0) {
        memcpy(buf.data, data, len);
    }
    leat_endpoint_recv(ep, &buf, info);
    return LEAT_OK;
}
