/* leat/shared.h: what server endpoints on several threads have in common.
 *
 * Without one, each endpoint has keys of its own, made at random unless its settings say otherwise.
 * With one, a client may come back to any of them: its session ticket, its address validation token
 * and a stateless reset are good at all. It is made before the contexts and freed after their
 * endpoints; endpoints of any threads use it at the same time, without locks.
 *
 * Replay of early data (0-RTT, RFC 8446 s8.1). A ticket is good for early data once, and only while
 * it is among the newest `early_tickets` that were issued here; a ticket that is not found still
 * resumes, without early data. So nothing that came as early data can be accepted twice, however
 * late it is repeated, by any endpoint that shares this. Memory is fixed when it is made.
 *
 * After a restart nothing is remembered: tickets made before resume if their key was kept, and
 * their early data is refused, as it could be a replay.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_SHARED_H
#define LEAT_SHARED_H

#include <leat/base.h>
#include <leat/limits.h>
#include <leat/tls.h>

LEAT_BEGIN_DECLS

typedef struct leat_shared leat_shared;

enum { LEAT_SHARED_KEY = 32 };

typedef struct leat_shared_settings {
    /* Bytes of a cryptographic random source: the keys that are not given are made from them. */
    uint8_t seed[LEAT_SHARED_KEY];
    /* LEAT_TLS_TICKET_KEY bytes, kept by the owner so that tickets outlive a restart, or empty.
     * When it is given, keys below that are not are made from it, and outlive the restart too. */
    leat_span ticket_key;
    leat_span token_key;  /* address validation tokens: LEAT_SHARED_KEY bytes, or empty */
    leat_span reset_key;  /* stateless resets: the same */
    size_t early_tickets; /* tickets whose early data may be accepted; 0: no early data at all */
} leat_shared_settings;

/* No keys, a seed of zeros that must be filled, LEAT_EARLY_TICKETS_DEFAULT. */
LEAT_API void leat_shared_settings_init(leat_shared_settings *settings);

/* LEAT_ERR_NOMEM; LEAT_ERR_INVALID: a key of another length, or no seed and no ticket key. All is
 * copied. */
LEAT_API leat_err leat_shared_new(const leat_shared_settings *settings, leat_shared **out);

/* Wipes and frees. No endpoint may use it any more. NULL is allowed. */
LEAT_API void leat_shared_free(leat_shared *shared);

/* New keys for what is issued from now on: 32 random bytes, or another ticket key's 64. Those
 * issued under the last three keys stay good until their own time is over. From any thread, but
 * from one at a time. */
LEAT_API void leat_shared_rotate_tokens(leat_shared *shared, const uint8_t key[LEAT_SHARED_KEY]);
LEAT_API void leat_shared_rotate_tickets(leat_shared *shared,
                                         const uint8_t key[LEAT_TLS_TICKET_KEY]);

typedef struct leat_shared_stats_data {
    uint64_t tickets_issued;
    uint64_t early_accepted;
    uint64_t early_refused; /* not among the remembered, or used before */
} leat_shared_stats_data;

LEAT_API void leat_shared_stats(const leat_shared *shared, leat_shared_stats_data *out);

LEAT_END_DECLS

#endif
