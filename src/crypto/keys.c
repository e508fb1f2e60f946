/* What a leat_packet_keys is derived from; the work with packets is in key_cache.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/keys.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/key_cache.h"
#include "crypto/secret.h"

/* Key and IV from keys->secret, and the header protection key unless a key update keeps it. */
static void derive(leat_packet_keys *keys, bool hp)
{
    const leat_aead_info *info = leat_packet_keys_info(keys);
    const leat_hkdf_label labels[] = {{keys->schedule->key, keys->key, info->key_len},
                                      {keys->schedule->iv, keys->iv, LEAT_AEAD_IV},
                                      {keys->schedule->hp, keys->hp, info->key_len}};
    leat_hkdf_expand_labels(info->hash, keys->secret, labels, hp ? 3 : 2);
}

void leat_packet_keys_set(leat_packet_keys *keys, const leat_schedule *schedule, leat_aead aead,
                          const uint8_t *secret)
{
    LEAT_ASSERT(schedule != NULL);
    LEAT_ASSERT(!leat_packet_keys_ready(keys));
    const leat_aead_info *info = leat_aead_info_get(aead);
    leat_packet_keys_init(keys);
    keys->schedule = schedule;
    keys->aead = (uint8_t)aead;
    memcpy(keys->secret, secret, info->secret_len);
    derive(keys, true);
}

void leat_packet_keys_initial(leat_packet_keys *client, leat_packet_keys *server,
                              const leat_schedule *schedule, const uint8_t *dcid, size_t dcid_len)
{
    uint8_t client_secret[32];
    uint8_t server_secret[32];
    leat_initial_secrets(schedule, dcid, dcid_len, client_secret, server_secret);
    leat_packet_keys_set(client, schedule, LEAT_AEAD_AES_128_GCM, client_secret);
    leat_packet_keys_set(server, schedule, LEAT_AEAD_AES_128_GCM, server_secret);
    leat_wipe(client_secret, sizeof client_secret);
    leat_wipe(server_secret, sizeof server_secret);
}

void leat_packet_keys_next(const leat_packet_keys *now, leat_packet_keys *next)
{
    LEAT_ASSERT(leat_packet_keys_ready(now));
    LEAT_ASSERT(!leat_packet_keys_ready(next));
    const leat_aead_info *info = leat_packet_keys_info(now);
    leat_packet_keys_init(next);
    next->schedule = now->schedule;
    next->aead = now->aead;
    leat_hkdf_expand_label(info->hash, now->secret, now->schedule->ku, next->secret,
                           info->secret_len);
    derive(next, false);
    memcpy(next->hp, now->hp, info->key_len);
}

void leat_packet_keys_drop(leat_packet_keys *keys, leat_key_cache *cache)
{
    if (cache && leat_packet_keys_ready(keys)) {
        leat_key_cache_forget(cache, keys);
    }
    leat_wipe(keys, sizeof *keys);
}
