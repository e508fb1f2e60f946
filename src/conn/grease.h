/* conn/grease.h: the bits of the first byte that mean nothing to the packet's reader: the spin bit
 * (RFC 9000 s17.4) and the QUIC bit once both sides may grease it (RFC 9287); and a reserved
 * transport parameter (RFC 9000 s18.1).
 *
 * The spin bit shows one's round trip time to whoever watches the path. It is off in one connection
 * of sixteen at least, so that watchers get used to that, and where the settings say so: it then
 * has a random value, which does not change.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_GREASE_H
#define LEAT_CONN_GREASE_H

#include <leat/quic.h>

#include "crypto/random.h"
#include "wire/header.h"
#include "wire/tparams.h"

#define LEAT_SPIN_OFF_ONE_IN 16 /* RFC 9000 s17.4 */

typedef struct leat_grease {
    bool spins;
    bool spin;      /* the bit of the next packets */
    bool spin_told; /* conn/trace.h: the bit that a sink was told of last */
    bool quic_bit;  /* the peer takes packets whose QUIC bit is clear */
    bool accepts;   /* we do */
    uint8_t left;   /* of `bits` */
    uint64_t bits;  /* random ones, for the QUIC bit */
} leat_grease;

void leat_grease_init(leat_grease *grease, leat_random *random, bool no_spin, bool no_grease);

/* A 1-RTT packet, the largest number so far, came with this spin bit. */
static inline void leat_grease_on_spin(leat_grease *grease, bool bit, bool is_server)
{
    if (grease->spins) {
        grease->spin = bit != !is_server; /* a server reflects, a client inverts */
    }
}

/* The packets from now on go to another connection ID of the peer's (s17.4). */
static inline void leat_grease_on_new_path(leat_grease *grease)
{
    grease->spin = grease->spins ? false : grease->spin;
}

/* Clears the QUIC bit of a header just written, or not. */
static inline void leat_grease_first(leat_grease *grease, leat_random *random, uint8_t *first)
{
    if (!grease->quic_bit) {
        return;
    }
    if (grease->left == 0) {
        grease->bits = leat_random_u64(random);
        grease->left = 64;
    }
    *first &= (uint8_t) ~(grease->bits & 1 ? LEAT_FIRST_FIXED : 0);
    grease->bits >>= 1;
    grease->left--;
}

/* Adds what greases a set of transport parameters; `room` must live until they are encoded. */
void leat_grease_params(const leat_grease *grease, leat_random *random, leat_tparams *params,
                        uint8_t room[16]);

#endif
