/* crypto/key_cache.h: what keys.c needs of key_cache.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_KEY_CACHE_H
#define LEAT_CRYPTO_KEY_CACHE_H

#include "crypto/keys.h"

/* Wipes the slot that holds these keys, if one still does. */
void leat_key_cache_forget(leat_key_cache *cache, const leat_packet_keys *keys);

#endif
