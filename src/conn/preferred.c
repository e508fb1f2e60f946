/* conn/preferred.c: see conn/preferred.h.
 *
 * A client follows to the address of the family that it speaks already: nothing says that the other
 * works here. It does not follow to where no server can be (an address of all, a group, port 0),
 * nor from the network into this machine, where a server could have it send to what listens on
 * loopback alone (s21.5.6).
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/preferred.h"

#include <string.h>

#include "base/assert.h"
#include "conn/migrate.h"
#include "crypto/token.h"

#define LEAT_PREFERRED_SEQUENCE 1 /* s5.1.1 */

/* ---- server ---- */

static bool is_offered(const leat_conn_host *host)
{
    return host->preferred_ip4.family != 0 || host->preferred_ip6.family != 0;
}

leat_err leat_preferred_prepare(leat_conn *conn)
{
    leat_cid cid;
    leat_err err;

    if (!is_offered(conn->host)) {
        return LEAT_OK;
    }
    cid = leat_conn_host_new_cid(conn->host);
    err = leat_conn_add_local_cid(conn, &cid);
    if (err == LEAT_OK) {
        leat_local_cids_add_known(&conn->local_cids, &cid);
    }
    return err;
}

void leat_preferred_offer(const leat_conn *conn, leat_tparams *params)
{
    const leat_conn_host *host = conn->host;
    leat_preferred_address *offer = &params->preferred_address;
    const leat_local_cid *known = &conn->local_cids.entry[1];

    if (!is_offered(host)) {
        return;
    }
    LEAT_ASSERT(known->state == LEAT_CID_SENT);
    LEAT_ASSERT(known->sequence == LEAT_PREFERRED_SEQUENCE);
    /* A family without an address is all zero. */
    memcpy(offer->ipv4, host->preferred_ip4.ip, sizeof(offer->ipv4));
    offer->ipv4_port = host->preferred_ip4.port;
    memcpy(offer->ipv6, host->preferred_ip6.ip, sizeof(offer->ipv6));
    offer->ipv6_port = host->preferred_ip6.port;
    offer->cid = known->cid;
    leat_reset_token(host->reset_key, known->cid.data, known->cid.len, offer->reset_token);
    params->present |= LEAT_TP_preferred_address;
}

/* ---- client ---- */

static void take_cid(leat_conn *conn, const leat_preferred_address *offer)
{
    leat_frame_new_connection_id frame = {.sequence = LEAT_PREFERRED_SEQUENCE, .cid = offer->cid};
    leat_cids_change change;
    uint64_t error;

    memcpy(frame.reset_token, offer->reset_token, sizeof(frame.reset_token));
    error = leat_remote_cids_add(&conn->remote_cids, &frame, &change);
    LEAT_ASSERT(error == LEAT_TE_NO_ERROR); /* leat_tparams_decode() has seen that it is another */
}

/* ::ffff:a.b.c.d is IPv4's a.b.c.d to a system that lets its sockets speak both. */
static bool is_mapped(const leat_addr *addr)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return addr->family == 6 && memcmp(addr->ip, mapped, sizeof(mapped)) == 0;
}

static bool is_loopback(const leat_addr *addr)
{
    static const uint8_t loopback6[16] = {[15] = 1};

    if (addr->family == 4 || is_mapped(addr)) {
        return addr->ip[addr->family == 4 ? 0 : 12] == 127;
    }
    return memcmp(addr->ip, loopback6, sizeof(loopback6)) == 0;
}

static bool is_host(const leat_addr *addr)
{
    static const uint8_t any[16];

    if (memcmp(addr->ip, any, addr->family == 4 ? 4 : 16) == 0) {
        return false;
    }
    if (is_mapped(addr)) {
        return memcmp(addr->ip + 12, any, 4) != 0 && addr->ip[12] < 224;
    }
    return addr->family == 4 ? addr->ip[0] < 224 : addr->ip[0] != 0xff;
}

void leat_preferred_on_params(leat_conn *conn, const leat_tparams *params)
{
    const leat_preferred_address *offer = &params->preferred_address;
    const leat_addr *remote = leat_conn_remote(conn);
    leat_addr to = {.family = remote->family, .scope = remote->scope};

    if (conn->is_server || !leat_tparams_has(params, LEAT_TP_preferred_address)) {
        return;
    }
    take_cid(conn, offer);
    if (to.family == 4) {
        memcpy(to.ip, offer->ipv4, sizeof(offer->ipv4));
        to.port = offer->ipv4_port;
    } else {
        memcpy(to.ip, offer->ipv6, sizeof(offer->ipv6));
        to.port = offer->ipv6_port;
    }
    if (!conn->settings->ignore_preferred && to.port != 0 && is_host(&to) &&
        (!is_loopback(&to) || is_loopback(remote))) {
        conn->hs->preferred = to;
    }
}

void leat_preferred_follow(leat_conn *conn)
{
    leat_addr to = conn->hs->preferred; /* family 0 at a server */

    if (to.family != 0 && !leat_addr_equal(&to, leat_conn_remote(conn))) {
        leat_migrate_to_preferred(conn, &to, LEAT_PREFERRED_SEQUENCE);
    }
}
