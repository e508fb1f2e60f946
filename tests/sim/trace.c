/* tests/sim/trace.c: prints what both ends do, one line an event.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "run.h"

static void print_frame(const leat_event_frame *f)
{
    printf(" %s", f->name);
    for (size_t i = 0; i < f->values; i++) {
        printf(" %s=%llu", f->key[i], (unsigned long long)f->value[i]);
    }
    for (size_t i = 0; i < f->range_count && i < 8; i++) {
        printf(" %llu-%llu", (unsigned long long)f->ranges[i].first,
               (unsigned long long)f->ranges[i].last);
    }
}

static void print(leat_event_sink *sink, const leat_event *e)
{
    (void)sink;
    printf("%13.6f %s %s", (double)e->now / 1e9, e->server ? "server" : "client",
           leat_event_name(e->type));
    switch (e->type) {
    case LEAT_EVENT_FRAME_SENT:
    case LEAT_EVENT_FRAME_RECEIVED:
        print_frame(&e->frame);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
    case LEAT_EVENT_PACKET_LOST:
        printf(" %s %llu, %zu bytes", e->packet.type, (unsigned long long)e->packet.number,
               e->packet.len);
        break;
    case LEAT_EVENT_PACKET_DROPPED:
        printf(" %s, %zu bytes: %s", e->dropped.packet, e->dropped.len, e->dropped.reason);
        break;
    case LEAT_EVENT_METRICS_UPDATED:
        printf(" srtt %.3f ms, cwnd %llu, in flight %llu, pto %u",
               (double)e->metrics.rtt_smoothed / 1e6, (unsigned long long)e->metrics.cwnd,
               (unsigned long long)e->metrics.bytes_in_flight, e->metrics.pto_count);
        break;
    case LEAT_EVENT_CONGESTION_STATE:
        printf(" %s to %s", e->congestion.from, e->congestion.to);
        break;
    case LEAT_EVENT_CONNECTION_CLOSED:
        printf(" kind %d code %#llx %s", e->closed.kind, (unsigned long long)e->closed.code,
               e->closed.detail ? e->closed.detail : "");
        break;
    case LEAT_EVENT_KEY_UPDATED:
    case LEAT_EVENT_KEY_DISCARDED:
        printf(" %s %s", e->key.name, e->key.trigger ? e->key.trigger : "");
        break;
    default:
        break;
    }
    printf("\n");
}

leat_event_sink leat_sim_trace = {print};
