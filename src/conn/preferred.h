/* conn/preferred.h: the server's preferred address (RFC 9000 s9.6): a server names other addresses
 * of its own in its transport parameters, and a client goes to the one of its family once the
 * handshake is confirmed.
 *
 * The parameter brings a connection ID, sequence number 1, so that the client has one to go there
 * with. Moving is conn/migrate.c's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_PREFERRED_H
#define LEAT_CONN_PREFERRED_H

#include "conn/conn.h"

/* Server, before the handshake begins: makes the connection ID, when there is an address to offer.
 * LEAT_ERR_NOMEM. */
leat_err leat_preferred_prepare(leat_conn *conn);

/* Server: adds the parameter. */
void leat_preferred_offer(const leat_conn *conn, leat_tparams *params);

/* Client: takes the connection ID, and remembers where to go. */
void leat_preferred_on_params(leat_conn *conn, const leat_tparams *params);

/* Client, the handshake is confirmed: goes there, when there is an address to go to. */
void leat_preferred_follow(leat_conn *conn);

#endif
