/* endpoint/send.c: datagrams out. Answers without a connection first; then the connections that
 * want to send, one batch each in turn. One that has nothing leaves the line.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/assert.h"
#include "endpoint/endpoint.h"

bool leat_endpoint_wants_send(const leat_endpoint *ep)
{
    return !leat_queue_empty(&ep->stateless) || !leat_list_empty(&ep->senders);
}

static size_t send_stateless(leat_endpoint *ep, uint8_t *buf, size_t cap, leat_send_info *info)
{
    leat_stateless *answer = leat_queue_pop(&ep->stateless);
    size_t len = answer->datagram.len;

    if (len > cap) {
        len = 0; /* the caller's buffer is below what the contract asks for */
    } else {
        memcpy(buf, answer->datagram.data, len);
    }
    *info = (leat_send_info){
        .remote = answer->remote, .local = answer->local, .segment = len, .datagrams = len > 0};
    leat_buf_release(&answer->datagram);
    return len;
}

size_t leat_endpoint_send(leat_endpoint *ep, uint8_t *buf, size_t cap, leat_send_info *info)
{
    leat_link *link;

    while (!leat_queue_empty(&ep->stateless)) {
        size_t len = send_stateless(ep, buf, cap, info);

        if (len > 0) {
            return len;
        }
    }
    while ((link = leat_list_first(&ep->senders)) != NULL) {
        leat_conn *conn = LEAT_CONTAINER_OF(link, leat_conn, send_link);
        size_t len;

        leat_link_remove(link);
        len = leat_conn_send(conn, buf, cap, info);
        if (len > 0) {
            if (conn->more && !leat_link_listed(link)) {
                leat_list_push_back(&ep->senders, link);
            }
            return len;
        }
    }
    return 0;
}
