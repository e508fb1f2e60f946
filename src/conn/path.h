/* conn/path.h: a network path: two addresses, whether the peer's is validated, how large datagrams
 * may be.
 *
 * Until the peer's address is validated a server sends at most three times what it received
 * (RFC 9000 s8.1): leat_path_allowance(). PATH_CHALLENGE is answered on the path that it came on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_PATH_H
#define LEAT_CONN_PATH_H

#include <leat/quic.h>

#include "wire/frames.h"

#define LEAT_PATH_AMPLIFICATION 3 /* RFC 9000 s8.1 */

typedef struct leat_path {
    leat_addr local;
    leat_addr remote;
    bool validated;
    uint8_t responses; /* PATH_RESPONSEs to send */
    uint64_t received; /* bytes of UDP payload, while not validated */
    uint64_t sent;
    uint8_t response[LEAT_PATH_RESPONSES_MAX][LEAT_PATH_DATA];
} leat_path;

void leat_path_init(leat_path *path, const leat_addr *local, const leat_addr *remote,
                    bool validated);

void leat_path_on_received(leat_path *path, size_t bytes);
void leat_path_on_sent(leat_path *path, size_t bytes);

/* Bytes that may be sent now; SIZE_MAX on a validated path. */
size_t leat_path_allowance(const leat_path *path);

static inline void leat_path_validate(leat_path *path)
{
    path->validated = true;
}

/* A PATH_CHALLENGE arrived: keeps it to be answered, the newest LEAT_PATH_RESPONSES_MAX of them. */
void leat_path_challenge(leat_path *path, const uint8_t data[LEAT_PATH_DATA]);

/* The next response to send, or NULL; leat_path_responded() takes it off. */
const uint8_t *leat_path_response(const leat_path *path);
void leat_path_responded(leat_path *path);

#endif
