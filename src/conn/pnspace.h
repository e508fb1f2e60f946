/* conn/pnspace.h: all that one packet-number space has: what arrived, what was sent, its CRYPTO
 * stream, its keys (the application space keeps its keys in conn/rekey.h instead).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_PNSPACE_H
#define LEAT_CONN_PNSPACE_H

#include "conn/ecn.h"
#include "crypto/keys.h"
#include "crypto/level.h"
#include "recovery/acks.h"
#include "recovery/sent.h"
#include "recovery/space.h"
#include "stream/recv.h"
#include "stream/send.h"

/* Both ways of a CRYPTO stream. */
typedef struct leat_crypto {
    leat_stream_send send;
    leat_stream_recv recv;
} leat_crypto;

/* The keys of a level of the handshake, one a direction. */
typedef struct leat_level_keys {
    leat_packet_keys tx;
    leat_packet_keys rx;
} leat_level_keys;

typedef struct leat_pnspace {
    leat_space space;
    bool open;      /* until its keys are dropped */
    uint8_t probes; /* ack-eliciting packets to send whatever the window says (RFC 9002 s6.2.4) */
    leat_acks acks;
    leat_sent sent;
    leat_crypto *crypto;   /* the application's: NULL until leat_conn_crypto() makes it */
    leat_level_keys *keys; /* NULL: the application's */
    leat_ecn_space ecn;
} leat_pnspace;

/* The space of a level, and the level whose CRYPTO a space carries. */
static inline leat_space leat_level_space(leat_level level)
{
    return level == LEAT_LEVEL_INITIAL     ? LEAT_SPACE_INITIAL
           : level == LEAT_LEVEL_HANDSHAKE ? LEAT_SPACE_HANDSHAKE
                                           : LEAT_SPACE_APP;
}

static inline leat_level leat_space_level(leat_space space)
{
    return space == LEAT_SPACE_INITIAL     ? LEAT_LEVEL_INITIAL
           : space == LEAT_SPACE_HANDSHAKE ? LEAT_LEVEL_HANDSHAKE
                                           : LEAT_LEVEL_ONE_RTT;
}

#endif
