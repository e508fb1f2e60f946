/* conn/rekey.h: the 1-RTT keys of a connection and their updates (RFC 9001 s6).
 *
 * Sending uses one set of keys. For receiving there are three: those in use, the next, made in
 * advance so that a packet of the next phase takes no longer than any other, and for a while the
 * former, for packets that were overtaken. A phase is counted; its low bit is on the wire.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_REKEY_H
#define LEAT_CONN_REKEY_H

#include "base/assert.h"
#include "crypto/keys.h"

typedef struct leat_rekey {
    leat_packet_keys tx;
    leat_packet_keys rx;
    leat_packet_keys rx_next;
    leat_packet_keys rx_prev; /* unset when there are none */
    uint64_t tx_phase;
    uint64_t rx_phase;
    uint64_t tx_first_pn;   /* first packet number sent in tx_phase */
    uint64_t rx_first_pn;   /* lowest packet number received in rx_phase */
    leat_time drop_prev_at; /* LEAT_TIME_NEVER when rx_prev is unset */
    uint64_t packets;       /* update after so many sealed; 0: by the AEAD's limit */
    uint64_t forged;        /* packets that failed to open, of all levels and phases */
    uint64_t updates;
    leat_time settled_at; /* when the last update was known to have been received */
    bool acked;           /* a packet of tx_phase was acknowledged */
} leat_rekey;

void leat_rekey_init(leat_rekey *rekey, uint64_t packets);
void leat_rekey_free(leat_rekey *rekey, leat_key_cache *cache);

/* The traffic secrets of 1-RTT are there, one direction each. */
void leat_rekey_set_tx(leat_rekey *rekey, const leat_schedule *schedule, leat_aead aead,
                       const uint8_t *secret);
void leat_rekey_set_rx(leat_rekey *rekey, const leat_schedule *schedule, leat_aead aead,
                       const uint8_t *secret);

/* The keys to try on a packet: by its phase bit, and by its number where former keys are still
 * held. NULL: no such keys. */
leat_packet_keys *leat_rekey_for(leat_rekey *rekey, bool phase_bit, uint64_t pn);

/* A packet opened with these keys. Returns true when that begins a new phase: the peer has updated,
 * or answers our update. expected: 1 + the largest number opened before; next_pn: of this side;
 * drop_after: how long to keep the former keys (3 PTO, s6.5). *error is set to KEY_UPDATE_ERROR
 * when a newer phase's packet has a lower number than one that older keys opened (s6.4). */
bool leat_rekey_on_opened(leat_rekey *rekey, leat_key_cache *cache, const leat_packet_keys *keys,
                          uint64_t pn, uint64_t expected, uint64_t next_pn, leat_time now,
                          leat_time drop_after, uint64_t *error);

/* This side may begin an update: the last one was acknowledged and answered (s6.1). */
bool leat_rekey_may_update(const leat_rekey *rekey);
/* It should: the peer, which keeps former keys for a while, has had the time for it. wait: 3 PTO
 * (s6.5). */
bool leat_rekey_should_update(const leat_rekey *rekey, leat_time now, leat_time wait);
/* Begins one. */
void leat_rekey_update(leat_rekey *rekey, leat_key_cache *cache, uint64_t next_pn);

/* Sealed so much that an update is due, or so much that nothing may be sealed any more (s6.6). */
bool leat_rekey_wants_update(const leat_rekey *rekey);
/* Before so many more packets have been sealed. */
bool leat_rekey_exhausted(const leat_rekey *rekey, uint64_t packets);

/* Each end follows the other's update at once, and begins none before its last one is answered. */
static inline void leat_rekey_check(const leat_rekey *rekey)
{
    LEAT_ASSERT(rekey->rx_phase <= rekey->tx_phase);
    LEAT_ASSERT(rekey->tx_phase <= rekey->rx_phase + 1);
}

/* A packet of ours with this number was acknowledged. */
static inline void leat_rekey_on_acked(leat_rekey *rekey, uint64_t largest, leat_time now)
{
    if (LEAT_UNLIKELY(!rekey->acked && largest >= rekey->tx_first_pn)) {
        rekey->acked = true;
        rekey->settled_at = now;
    }
}

/* A packet failed to open, at any level: all count together. True when the integrity limit of the
 * AEAD agreed on is reached (s6.6): AEAD_LIMIT_REACHED. */
bool leat_rekey_on_forged(leat_rekey *rekey);

/* Drops the former keys when their time is over. */
void leat_rekey_on_time(leat_rekey *rekey, leat_key_cache *cache, leat_time now);

#endif
