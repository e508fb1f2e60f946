/* endpoint/routable.c: connection IDs that a load balancer can route, in the plaintext form of
 * draft-ietf-quic-load-balancers-21:
 *
 *     first octet    3 bits: configuration; 5 bits: length of what follows, or random ones
 *     server ID      as the configuration says
 *     nonce          the rest: random, so that no two are the same
 *
 * Configuration 7 says that an ID cannot be routed (section 3.2 there), so it is none that could be
 * used.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/quic.h>

#include <string.h>

#include "base/assert.h"

#define CONFIG_SHIFT 5
#define LENGTH_MASK  0x1f
#define UNROUTABLE   7
#define NONCE_MIN    4
#define BOTH_MAX     19

leat_err leat_routable_check(const leat_routable *routable)
{
    if (routable->config >= UNROUTABLE || routable->server_id_len < 1 ||
        routable->server_id_len > sizeof(routable->server_id) || routable->nonce_len < NONCE_MIN ||
        routable->server_id_len + routable->nonce_len > BOTH_MAX) {
        return LEAT_ERR_INVALID;
    }
    return LEAT_OK;
}

void leat_routable_make(uint8_t *cid, size_t len, void *user)
{
    const leat_routable *routable = user;
    uint8_t low = routable->hide_length ? cid[0] & LENGTH_MASK : (uint8_t)(len - 1);

    LEAT_ASSERT(len == leat_routable_len(routable));
    cid[0] = (uint8_t)(routable->config << CONFIG_SHIFT | low);
    memcpy(cid + 1, routable->server_id, routable->server_id_len);
}

bool leat_routable_read(const leat_routable *routable, leat_span cid, leat_span *server_id)
{
    if (cid.len < leat_routable_len(routable) || cid.data[0] >> CONFIG_SHIFT != routable->config) {
        return false;
    }
    if (!routable->hide_length && (cid.data[0] & LENGTH_MASK) != leat_routable_len(routable) - 1) {
        return false;
    }
    *server_id = (leat_span){cid.data + 1, routable->server_id_len};
    return true;
}
