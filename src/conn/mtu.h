/* conn/mtu.h: the size of the datagrams sent on the active path (RFC 9000 s14, RFC 8899).
 *
 * Starts at the 1,200 bytes that every QUIC path carries. Once the handshake is confirmed and there
 * is something to send, probes look for more: a PING and padding, one at a time. A connection that
 * says nothing, or only listens, sends none; one whose peer takes DATAGRAM frames looks at once,
 * for its application may ask how long they can be before it sends the first. The first probe has
 * the size wanted, as most paths carry it; when LEAT_MTU_PROBES of them are lost, the largest size
 * that passes is searched for by halving what lies between, down to steps of LEAT_MTU_STEP. After
 * LEAT_MTU_RAISE the search begins anew, since paths change. A lost probe is no sign of congestion.
 *
 * A black hole is a path that used to carry a size and does so no more. Signs of one are
 * LEAT_MTU_BLACK_LOSSES packets above the base size lost in a row, none of that sort acknowledged
 * in between; or LEAT_MTU_BLACK_PTOS probe timeouts in a row while one of that sort is out. The
 * size then falls to the base, and the search begins anew: a false alarm costs a few smaller
 * packets. Where all that is lost is small, size is not why: it would restart a search on a lossy
 * path for ever.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_MTU_H
#define LEAT_CONN_MTU_H

#include <leat/base.h>

#define LEAT_MTU_BASE         1200
#define LEAT_MTU_PROBES       3                   /* RFC 8899 s5.1.2: MAX_PROBES */
#define LEAT_MTU_STEP         16                  /* closer than that is not worth a round trip */
#define LEAT_MTU_RAISE        (600 * LEAT_SECOND) /* s5.1.1: PMTU_RAISE_TIMER */
#define LEAT_MTU_BLACK_LOSSES 10 /* an initial window: more than one burst against a full queue */
#define LEAT_MTU_BLACK_PTOS   2

typedef struct leat_mtu {
    uint16_t size;      /* bytes a datagram may have now */
    uint16_t most;      /* the setting, cut at what the peer takes */
    uint16_t too_large; /* did not pass; above `most` when nothing is known not to */
    uint16_t probe;     /* size of the probe in flight; 0: none */
    uint8_t lost;       /* probes of the present size, in a row */
    uint8_t black;      /* packets above the base size lost in a row */
    bool enabled;
    bool large; /* a packet above the base size went out, and none of that sort was acked since */
    leat_time raise_at; /* when the search is over: the next one's time; NEVER: it is not over */
} leat_mtu;

void leat_mtu_init(leat_mtu *mtu, uint16_t wanted);

/* The peer takes no larger datagrams than this (max_udp_payload_size). */
void leat_mtu_limit(leat_mtu *mtu, uint64_t most);

/* The handshake is confirmed, and larger datagrams have a use: probing may start. */
static inline void leat_mtu_enable(leat_mtu *mtu)
{
    mtu->enabled = true;
}

/* The size of a probe to send now; 0: none. */
uint16_t leat_mtu_probe(leat_mtu *mtu, leat_time now);
void leat_mtu_probe_sent(leat_mtu *mtu, uint16_t size);

/* A packet that is no probe goes out. */
static inline void leat_mtu_on_sent(leat_mtu *mtu, size_t size)
{
    mtu->large |= size > LEAT_MTU_BASE;
}

/* These: true when the size changed, which congestion control and the pacer must hear of. */
bool leat_mtu_probe_acked(leat_mtu *mtu, uint16_t size);
/* A packet that is no probe was lost. */
bool leat_mtu_on_lost(leat_mtu *mtu, uint16_t size);
/* So many probe timeouts in a row. */
bool leat_mtu_on_pto(leat_mtu *mtu, uint32_t count);

void leat_mtu_probe_lost(leat_mtu *mtu);
/* The largest packet that an ACK acknowledged had this size. */
void leat_mtu_on_acked(leat_mtu *mtu, uint16_t size);

#endif
