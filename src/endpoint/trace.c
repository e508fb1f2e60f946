/* endpoint/trace.c: what the sink is told of answers for which no connection is kept. Each is told
 * by what was written, so that Retry, Version Negotiation and refusals need no words of their own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "endpoint/endpoint.h"

#include "base/assert.h"
#include "base/cursor.h"
#include "conn/trace.h"

static leat_event begin(const leat_endpoint *ep, leat_event_type type, leat_span odcid)
{
    return (leat_event){
        .type = type,
        .now = leat_endpoint_now(ep),
        .odcid = odcid,
        .server = true,
        .no_conn = true,
    };
}

static void emit(const leat_endpoint *ep, const leat_event *event)
{
    ep->host.sink->emit(ep->host.sink, event);
}

void leat_endpoint_trace_answer(leat_endpoint *ep, leat_span odcid, const uint8_t *datagram,
                                size_t len)
{
    leat_event event = begin(ep, LEAT_EVENT_PACKET_SENT, odcid);
    leat_event_packet *packet = &event.packet;
    leat_header header;
    leat_err err;

    *packet = (leat_event_packet){.type = "stateless_reset", .len = len};
    if (datagram[0] & LEAT_FIRST_LONG) {
        err = leat_header_parse(datagram, len, 0, &header);
        LEAT_ASSERT(err == LEAT_OK);
        packet->type = leat_trace_packet_type(header.type);
        packet->version = header.version;
        packet->dcid = header.dcid;
        packet->scid = header.scid;
        packet->token = header.token;
        packet->retry_token = header.type == LEAT_PACKET_RETRY;
        if (header.type == LEAT_PACKET_VERSION_NEGOTIATION) {
            packet->versions = header.rest;
        }
    }
    emit(ep, &event);
}

void leat_endpoint_trace_version(leat_endpoint *ep, const leat_header *asked)
{
    const leat_conn_settings *ours = &ep->settings.conn;
    uint8_t server[4 * LEAT_VERSIONS_MAX], client[4];
    leat_event event = begin(ep, LEAT_EVENT_VERSION_INFORMATION, asked->dcid);

    for (size_t i = 0; i < ours->version_count; i++) {
        leat_store_u32(server + 4 * i, ours->versions[i]);
    }
    leat_store_u32(client, asked->version);
    event.versions = (leat_event_versions){
        .server = {server, 4 * (size_t)ours->version_count},
        .client = {client, sizeof(client)},
    };
    emit(ep, &event);
}

void leat_endpoint_trace_retry_mode(leat_endpoint *ep)
{
    leat_event event = begin(ep, LEAT_EVENT_RETRY_MODE, (leat_span){NULL, 0});

    event.retry_mode = (leat_event_retry_mode){.on = ep->retry_mode, .half_open = ep->handshakes};
    emit(ep, &event);
}
