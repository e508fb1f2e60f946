/* conn/version.h: which version of QUIC a connection speaks (RFC 9368, RFC 9369).
 *
 * A client starts with one version. Three things may happen:
 *   - the server goes on with it;
 *   - the server prefers another that the client lists and that is compatible (1 and 2 are, to each
 * other): it answers in that one, and the client, which recognises the answer by its keys, follows;
 *   - the server does not speak it, and says so in a Version Negotiation packet: the client begins
 * again with the best version that both speak. The versions that each side names in its transport
 * parameters, authenticated by TLS, show whether somebody on the path had a hand in that:
 * VERSION_NEGOTIATION_ERROR.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_VERSION_H
#define LEAT_CONN_VERSION_H

#include <leat/quic.h>

#include "crypto/keys.h"
#include "wire/header.h"
#include "wire/tparams.h"

struct leat_conn;

/* While the handshake goes on. */
typedef struct leat_version_state {
    uint32_t
        original; /* of the client's first Initial, or of its first after Version Negotiation */
    bool renegotiated;         /* client: a Version Negotiation packet was followed */
    bool followed;             /* client: the server changed the version, and this side too */
    leat_cid initial_dcid;     /* what Initial keys are made from */
    uint32_t other;            /* another version in which Initials may come; 0: none */
    leat_packet_keys other_rx; /* their keys */
} leat_version_state;

/* Whether these settings speak a version. */
bool leat_version_spoken(const leat_conn_settings *settings, uint32_t version);

/* Both directions of Initial keys for the present version. */
void leat_version_initial_keys(leat_conn *conn, const leat_cid *dcid);

/* The keys to read an Initial or Handshake packet of this version with, or NULL: it is not for this
 * connection. */
leat_packet_keys *leat_version_rx(leat_conn *conn, const leat_header *header,
                                  leat_packet_keys *present);

/* A packet that came in another version than the present one was authentic: a client follows. */
void leat_version_follow(leat_conn *conn, uint32_t version);

/* This side's version_information. `room` must live as long as params. */
void leat_version_offer(const leat_conn *conn, leat_tparams *params,
                        uint8_t room[4 * LEAT_VERSIONS_MAX]);

/* The peer's parameters have come. A server may change the version now: *changed. Errors:
 * VERSION_NEGOTIATION_ERROR, *why (static) says why. */
uint64_t leat_version_on_params(leat_conn *conn, const leat_tparams *params, bool *changed,
                                const char **why);

/* Server: the version that the connection will be of, as the parameters of a ClientHello tell it.
 */
uint32_t leat_version_foreseen(const leat_conn *conn, leat_span params);

/* A Version Negotiation packet. True: the client begins again in another version; false: it is to
 * be ignored, or, if *give_up, no version is left. */
bool leat_version_on_negotiation(leat_conn *conn, const leat_header *header, bool *give_up);

void leat_version_free(leat_conn *conn);

#endif
