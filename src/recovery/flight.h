/* recovery/flight.h: what is under way on one path: bytes in flight, and the delivery-rate sampler
 * (draft-ietf-ccwg-bbr §4.1).
 *
 * One leat_flight a path, shared by the packet-number spaces that send on it. recovery/sent.h
 * writes it; congestion controllers and the sender read it.
 *
 * A rate sample says how many bytes were delivered in which time, around the newest packet that an
 * ACK newly acknowledges: delivered / interval estimates the bandwidth of the path; an app_limited
 * sample may fall short of it, because the sender had too little to send.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_FLIGHT_H
#define LEAT_RECOVERY_FLIGHT_H

#include <leat/base.h>

typedef struct leat_flight {
    uint64_t bytes; /* in flight: sent, counted by congestion control, not acked or lost */
    uint64_t
        app_limited; /* until delivered passes this, samples are app-limited; 0: they are not */
    leat_time delivered_at;  /* when `delivered` last grew */
    leat_time first_sent_at; /* when the packet most recently acknowledged was sent */
    uint64_t delivered;      /* bytes acknowledged so far */
    uint64_t lost;           /* bytes declared lost so far */
} leat_flight;

typedef struct leat_rate_sample {
    uint64_t delivered; /* bytes delivered within interval */
    leat_time interval; /* 0: no sample */
    uint64_t
        prior_delivered;   /* flight.delivered when the packet was sent: rounds are counted by it */
    uint64_t prior_lost;   /* flight.lost when the packet was sent */
    uint64_t tx_in_flight; /* bytes in flight just after the packet was sent */
    bool app_limited;
} leat_rate_sample;

void leat_flight_init(leat_flight *flight);

/* The sender has nothing (more) to send though the window has room: samples of what is in flight
 * now say nothing about the path's limit. */
static inline void leat_flight_set_app_limited(leat_flight *flight)
{
    uint64_t mark = flight->delivered + flight->bytes;

    flight->app_limited = mark ? mark : 1;
}

#endif
