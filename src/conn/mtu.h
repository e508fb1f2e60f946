/* conn/mtu.h: the size of the datagrams sent on a path (RFC 9000 s14, RFC 8899).
 *
 * Starts at the 1,200 bytes that every QUIC path carries. Once the handshake is confirmed, one
 * datagram of the size wanted is tried, a PING and padding, up to LEAT_MTU_PROBES times; when one
 * is acknowledged all datagrams may be as large. A lost probe is no sign of congestion.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_MTU_H
#define LEAT_CONN_MTU_H

#include <leat/base.h>

#define LEAT_MTU_BASE   1200
#define LEAT_MTU_PROBES 3

typedef struct leat_mtu {
    uint16_t size;   /* bytes a datagram may have now */
    uint16_t wanted; /* what probes try; size once it is settled */
    uint8_t tries;   /* probes left */
    bool enabled;
    bool in_flight;
} leat_mtu;

void leat_mtu_init(leat_mtu *mtu, uint16_t wanted);

/* The peer takes no larger datagrams than this (max_udp_payload_size). */
void leat_mtu_limit(leat_mtu *mtu, uint64_t most);

/* The handshake is confirmed: probing may start. */
static inline void leat_mtu_enable(leat_mtu *mtu)
{
    mtu->enabled = true;
}

/* The size of a probe to send now; 0: none. */
static inline uint16_t leat_mtu_probe(const leat_mtu *mtu)
{
    return mtu->enabled && !mtu->in_flight && mtu->tries > 0 && mtu->wanted > mtu->size
               ? mtu->wanted
               : 0;
}

void leat_mtu_probe_sent(leat_mtu *mtu);
/* True when the size changed: tell congestion control and pacer. */
bool leat_mtu_probe_acked(leat_mtu *mtu, uint16_t size);
void leat_mtu_probe_lost(leat_mtu *mtu);

#endif
