/* endpoint/accept.c: an Initial that belongs to no connection (RFC 9000 s5.2.2, s8.1).
 *
 * SPDX-License-Identifier: MIT
 */
#include "endpoint/endpoint.h"

#include "base/assert.h"

#define LEAT_CLIENT_DCID_MIN 8 /* RFC 9000 s7.2 */

/* On above the threshold, off at half of it: so that it does not change with each connection. */
void leat_endpoint_note_load(leat_endpoint *ep)
{
    size_t above = ep->settings.retry_above;
    bool on = ep->retry_mode ? ep->handshakes > above / 2 : above > 0 && ep->handshakes > above;

    if (on == ep->retry_mode) {
        return;
    }
    ep->retry_mode = on;
    if (leat_endpoint_traces(ep)) {
        leat_endpoint_trace_retry_mode(ep);
    }
}

static void accept_conn(leat_endpoint *ep, const leat_header *header, leat_buf *datagram,
                        const leat_recv_info *info, const leat_cid *odcid, bool validated)
{
    leat_conn *conn;
    leat_accept how = {
        .tls = ep->settings.server_tls,
        .settings = &ep->settings.conn,
        .events = ep->settings.events,
        .user = ep->settings.user,
        .local = info->local,
        .remote = info->remote,
        .version = header->version,
        .dcid = header->dcid,
        .scid = header->scid,
        .odcid = odcid,
        .validated = validated,
    };
    leat_buf whole = leat_buf_slice(datagram, 0, datagram->len);
    leat_recv_info one = *info;

    if (leat_conn_new_server(&ep->host, &how, &conn) != LEAT_OK) {
        leat_buf_release(&whole);
        return; /* no memory: as if the datagram was lost */
    }
    leat_list_push_back(&ep->conns, &conn->host_link);
    ep->open++;
    ep->handshakes++;
    leat_endpoint_note_load(ep);
    one.segment = 0;
    leat_conn_deliver(conn, &whole, &one);
}

void leat_endpoint_on_initial(leat_endpoint *ep, const leat_header *header, leat_buf *datagram,
                              const leat_recv_info *info)
{
    leat_addrtoken_kind kind;
    leat_cid odcid = {.len = 0};

    if (leat_endpoint_is_recent(ep, header->dcid)) {
        return;
    }
    kind = leat_addrtoken_check(ep, &info->remote, header->version, header->token, header->dcid,
                                &odcid);
    /* What a client chose itself; after a Retry it is our own, of our length. */
    if (kind != LEAT_ADDRTOKEN_RETRY && kind != LEAT_ADDRTOKEN_STALE &&
        header->dcid.len < LEAT_CLIENT_DCID_MIN) {
        return;
    }
    if (kind == LEAT_ADDRTOKEN_STALE) {
        /* RFC 9000 s8.1.3: "otherwise valid". A token damaged on the way is no reason to end it
         * all. */
        if (leat_stateless_is_authentic(ep, header, datagram->data)) {
            leat_stateless_close(ep, header, info, LEAT_TE_INVALID_TOKEN);
        }
        return;
    }
    if (ep->closing || ep->open >= ep->settings.max_conns) {
        leat_stateless_close(ep, header, info, LEAT_TE_CONNECTION_REFUSED);
        return;
    }
    if (kind == LEAT_ADDRTOKEN_NONE && (ep->settings.conn.wait_for_validation || ep->retry_mode)) {
        leat_stateless_retry(ep, header, info);
        return;
    }
    if (ep->handshakes >= ep->settings.max_handshakes) {
        leat_stateless_close(ep, header, info, LEAT_TE_CONNECTION_REFUSED);
        return;
    }
    accept_conn(ep, header, datagram, info, kind == LEAT_ADDRTOKEN_RETRY ? &odcid : NULL,
                kind != LEAT_ADDRTOKEN_NONE);
}
