/* tls/shared.h: the inside of a leat_shared (leat/shared.h), for TLS and the endpoint.
 *
 * Keys lie in a few slots, each key in atomic words. A rotation writes the next slot and then makes
 * it the current one; a slot is written again only after three more. Whoever reads a key copies it.
 *
 * The record of tickets good for early data is a table of fingerprints in buckets of one cache
 * line. Issuing puts a fingerprint into its bucket, over the oldest there; early data takes it out
 * by compare-and-swap, which only one can win.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_SHARED_H
#define LEAT_TLS_SHARED_H

#include <leat/shared.h>

#define LEAT_SHARED_SLOTS 4 /* the current key and three before it */

struct gnutls_anti_replay_st;

/* ---- tickets ---- */

/* The ticket key to use with a client that shows this ticket (empty: none): the one that the ticket
 * was made under, if that is known, or the current one. *slot names it. */
void leat_shared_ticket_key(const leat_shared *shared, leat_span ticket,
                            uint8_t key[LEAT_TLS_TICKET_KEY], uint8_t *slot);

/* A ticket was issued under the key of this slot. early: it is good for early data, under the
 * conditions that `context` is a hash of. */
void leat_shared_issued(leat_shared *shared, uint8_t slot, leat_span ticket, uint64_t context,
                        bool early);

/* Early data comes with this ticket, under these conditions: true once. */
bool leat_shared_claim(leat_shared *shared, leat_span ticket, uint64_t context);

/* A hash under a key of this object: for contexts. */
uint64_t leat_shared_hash(const leat_shared *shared, const void *data, size_t len);

/* What GnuTLS asks for before it accepts early data; its function is tls_early.c's. */
struct gnutls_anti_replay_st *leat_shared_anti_replay(const leat_shared *shared);

/* ---- keys of the endpoint ---- */

/* The current token key, and its number. */
uint8_t leat_shared_token_key(const leat_shared *shared, uint8_t key[LEAT_SHARED_KEY]);
/* The key of this number; false: it is not kept (any more). */
bool leat_shared_token_key_of(const leat_shared *shared, uint8_t number,
                              uint8_t key[LEAT_SHARED_KEY]);
const uint8_t *leat_shared_reset_key(const leat_shared *shared);

#endif
