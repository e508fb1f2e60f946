/* tls/early.h: session tickets and early data, as far as leat looks at them itself.
 *
 * GnuTLS accepts early data only where its own replay protection says so. That protection forgets
 * all older tickets whenever its time window moves on, for everybody, and is not made for threads.
 * Here its window never moves, and the word that it asks for comes from leat_shared_claim(): each
 * ticket once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_EARLY_H
#define LEAT_TLS_EARLY_H

#include <leat/tls.h>

struct gnutls_anti_replay_st;
struct leat_tls;

/* What a NewSessionTicket message (RFC 8446 §4.6.1) says. */
typedef struct leat_tls_ticket {
    leat_span ticket;
    bool early;         /* it has an early_data extension */
    uint32_t early_max; /* and that says so many bytes */
} leat_tls_ticket;

/* Reads a whole message, header included. False: it does not parse. */
bool leat_tls_read_ticket(leat_span message, leat_tls_ticket *out);

/* What a server looks at in a ClientHello itself. */
typedef struct leat_tls_hello {
    leat_span ticket; /* the first that it offers (pre_shared_key, RFC 8446 §4.2.11), or empty */
    leat_span shares; /* the content of key_share (§4.2.8), or empty */
    leat_span params; /* the transport parameters (RFC 9001 §8.2), or empty */
} leat_tls_hello;

/* Reads a whole ClientHello; what does not parse is empty: GnuTLS will complain. */
void leat_tls_read_hello(leat_span message, leat_tls_hello *out);

/* The client has sent a share of a group that is ours: no HelloRetryRequest will be needed. */
bool leat_tls_has_share(const leat_tls_hello *hello, const leat_tls_config *config);

/* Sets a leat_shared's object up. */
void leat_tls_early_prepare(struct gnutls_anti_replay_st *anti_replay);

/* Says whose handshake this thread works on; NULL: nobody's. */
void leat_tls_early_enter(struct leat_tls *tls);

/* The conditions under which a ticket is good for early data, as a hash: the connection's own, the
 * protocol and the server's name. */
uint64_t leat_tls_early_context(const struct leat_tls *tls);

#endif
