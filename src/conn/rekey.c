/* conn/rekey.c: see conn/rekey.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/rekey.h"

#include <leat/transport_error.h>

#include "base/assert.h"
#include "base/time.h"
#include "crypto/secret.h"

void leat_rekey_init(leat_rekey *rekey, uint64_t packets)
{
    *rekey = (leat_rekey){.drop_prev_at = LEAT_TIME_NEVER, .packets = packets};
}

void leat_rekey_free(leat_rekey *rekey, leat_key_cache *cache)
{
    leat_packet_keys_drop(&rekey->tx, cache);
    leat_packet_keys_drop(&rekey->rx, cache);
    leat_packet_keys_drop(&rekey->rx_next, cache);
    leat_packet_keys_drop(&rekey->rx_prev, cache);
}

void leat_rekey_set_tx(leat_rekey *rekey, const leat_schedule *schedule, leat_aead aead,
                       const uint8_t *secret)
{
    leat_packet_keys_set(&rekey->tx, schedule, aead, secret);
}

void leat_rekey_set_rx(leat_rekey *rekey, const leat_schedule *schedule, leat_aead aead,
                       const uint8_t *secret)
{
    leat_packet_keys_set(&rekey->rx, schedule, aead, secret);
    leat_packet_keys_next(&rekey->rx, &rekey->rx_next);
}

leat_packet_keys *leat_rekey_for(leat_rekey *rekey, bool phase_bit, uint64_t pn)
{
    if (!leat_packet_keys_ready(&rekey->rx)) {
        return NULL;
    }
    if (phase_bit == (rekey->rx_phase & 1)) {
        return &rekey->rx;
    }
    if (leat_packet_keys_ready(&rekey->rx_prev) && pn < rekey->rx_first_pn) {
        return &rekey->rx_prev;
    }
    return &rekey->rx_next;
}

/* Moves keys on: what was in `from` is in `to`, and `from` is unset. */
static void move_keys(leat_packet_keys *to, leat_packet_keys *from, leat_key_cache *cache)
{
    leat_packet_keys_drop(to, cache);
    *to = *from;
    leat_wipe(from, sizeof(*from));
    leat_packet_keys_init(from);
}

static void next_tx(leat_rekey *rekey, leat_key_cache *cache, uint64_t next_pn)
{
    leat_packet_keys next;

    leat_packet_keys_init(&next);
    leat_packet_keys_next(&rekey->tx, &next);
    move_keys(&rekey->tx, &next, cache);
    rekey->tx_phase++;
    rekey->tx_first_pn = next_pn;
    rekey->acked = false;
    rekey->updates++;
}

bool leat_rekey_on_opened(leat_rekey *rekey, leat_key_cache *cache, const leat_packet_keys *keys,
                          uint64_t pn, uint64_t expected, uint64_t next_pn, leat_time now,
                          leat_time drop_after, uint64_t *error)
{
    *error = LEAT_TE_NO_ERROR;
    if (keys == &rekey->rx) {
        if (pn < rekey->rx_first_pn) {
            rekey->rx_first_pn = pn;
        }
        return false;
    }
    if (keys == &rekey->rx_prev) {
        return false;
    }
    LEAT_ASSERT(keys == &rekey->rx_next);
    if (pn < expected) {
        *error = LEAT_TE_KEY_UPDATE_ERROR;
        return false;
    }
    move_keys(&rekey->rx_prev, &rekey->rx, cache);
    move_keys(&rekey->rx, &rekey->rx_next, cache);
    leat_packet_keys_next(&rekey->rx, &rekey->rx_next);
    rekey->rx_phase++;
    rekey->rx_first_pn = pn;
    rekey->drop_prev_at = leat_time_add(now, drop_after);
    if (rekey->tx_phase < rekey->rx_phase) {
        next_tx(rekey, cache, next_pn);
    }
    return true;
}

bool leat_rekey_may_update(const leat_rekey *rekey)
{
    return rekey->acked && rekey->rx_phase == rekey->tx_phase &&
           leat_packet_keys_ready(&rekey->tx) && leat_packet_keys_ready(&rekey->rx);
}

bool leat_rekey_should_update(const leat_rekey *rekey, leat_time now, leat_time wait)
{
    return leat_rekey_may_update(rekey) &&
           (rekey->updates == 0 || leat_time_since(now, rekey->settled_at) >= wait);
}

void leat_rekey_update(leat_rekey *rekey, leat_key_cache *cache, uint64_t next_pn)
{
    LEAT_ASSERT(leat_rekey_may_update(rekey));
    next_tx(rekey, cache, next_pn);
}

/* The AEAD's own limit is left with an eighth of it to spare, for the time that an update may have
 * to wait. */
bool leat_rekey_wants_update(const leat_rekey *rekey)
{
    uint64_t limit = leat_packet_keys_info(&rekey->tx)->seal_limit;
    uint64_t due = limit - limit / 8;

    if (rekey->packets > 0 && rekey->packets < due) {
        due = rekey->packets;
    }
    return rekey->tx.sealed >= due;
}

bool leat_rekey_exhausted(const leat_rekey *rekey, uint64_t packets)
{
    return rekey->tx.sealed + packets > leat_packet_keys_info(&rekey->tx)->seal_limit;
}

bool leat_rekey_on_forged(leat_rekey *rekey)
{
    rekey->forged++;
    return leat_packet_keys_ready(&rekey->rx) &&
           rekey->forged >= leat_packet_keys_info(&rekey->rx)->open_fail_limit;
}

void leat_rekey_on_time(leat_rekey *rekey, leat_key_cache *cache, leat_time now)
{
    if (now >= rekey->drop_prev_at) {
        leat_packet_keys_drop(&rekey->rx_prev, cache);
        rekey->drop_prev_at = LEAT_TIME_NEVER;
    }
}
