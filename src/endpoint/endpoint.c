/* endpoint/endpoint.c: beginning and end of an endpoint, and what its connections ask of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "endpoint/endpoint.h"

#include <string.h>

#include <leat/event.h>

#include "base/assert.h"
#include "crypto/secret.h"
#include "tls/shared.h"

void leat_endpoint_settings_init(leat_endpoint_settings *settings)
{
    *settings = (leat_endpoint_settings){
        .cid_len = LEAT_CID_LEN_DEFAULT,
        .token_life = 24 * 3600 * LEAT_SECOND,
        .max_conns = LEAT_CONNS_DEFAULT,
        .max_handshakes = LEAT_HANDSHAKES_DEFAULT,
        .retry_above = LEAT_RETRY_ABOVE_DEFAULT,
    };
    leat_conn_settings_init(&settings->conn);
}

/* ---- what connections ask (conn/host.h) ---- */

static leat_endpoint *endpoint_of(leat_conn_host *host)
{
    return LEAT_CONTAINER_OF(host, leat_endpoint, host);
}

static leat_err add(leat_endpoint *ep, leat_hmap *map, leat_conn *conn, const uint8_t *key,
                    size_t len)
{
    leat_route *route;

    if (leat_hmap_find_bytes(map, key, len)) {
        return LEAT_ERR_INVALID;
    }
    route = leat_pool_take(&ep->routes);
    if (!route) {
        return LEAT_ERR_NOMEM;
    }
    route->conn = conn;
    leat_hmap_insert_bytes(map, &route->node, key, len);
    return LEAT_OK;
}

static void take_out(leat_endpoint *ep, leat_hmap *map, const leat_conn *conn, const uint8_t *key,
                     size_t len)
{
    leat_hnode_bytes *node = leat_hmap_find_bytes(map, key, len);
    leat_route *route = node ? LEAT_CONTAINER_OF(node, leat_route, node) : NULL;

    if (!route || route->conn != conn) {
        return; /* two peers may give out one reset token: the first had it */
    }
    if (ep->last == route) {
        ep->last = NULL;
    }
    leat_hmap_remove(map, &node->node);
    leat_pool_give(&ep->routes, route);
}

static leat_err route_add(leat_conn_host *host, leat_conn *conn, const leat_cid *cid)
{
    leat_endpoint *ep = endpoint_of(host);

    if (leat_hmap_find_bytes(&ep->cids, cid->data, cid->len)) {
        return LEAT_ERR_STATE; /* the application made one twice */
    }
    return add(ep, &ep->cids, conn, cid->data, cid->len);
}

static void route_remove(leat_conn_host *host, leat_conn *conn, const leat_cid *cid)
{
    leat_endpoint *ep = endpoint_of(host);

    take_out(ep, &ep->cids, conn, cid->data, cid->len);
}

static leat_err reset_add(leat_conn_host *host, leat_conn *conn,
                          const uint8_t token[LEAT_STATELESS_RESET_TOKEN])
{
    leat_endpoint *ep = endpoint_of(host);

    return add(ep, &ep->resets, conn, token, LEAT_STATELESS_RESET_TOKEN);
}

static void reset_remove(leat_conn_host *host, leat_conn *conn,
                         const uint8_t token[LEAT_STATELESS_RESET_TOKEN])
{
    leat_endpoint *ep = endpoint_of(host);

    take_out(ep, &ep->resets, conn, token, LEAT_STATELESS_RESET_TOKEN);
}

static void want_send(leat_conn_host *host, leat_conn *conn)
{
    leat_endpoint *ep = endpoint_of(host);
    bool idle;

    if (leat_link_listed(&conn->send_link)) {
        return;
    }
    idle = !leat_endpoint_wants_send(ep);
    leat_list_push_back(&ep->senders, &conn->send_link);
    if (idle && ep->settings.want_send) {
        ep->settings.want_send(ep->settings.want_send_user);
    }
}

static void settled(leat_conn_host *host, leat_conn *conn)
{
    leat_endpoint *ep = endpoint_of(host);

    if (conn->is_server) {
        LEAT_ASSERT(ep->handshakes > 0);
        ep->handshakes--;
        leat_endpoint_note_load(ep);
    }
}

/* 0 stands for none. */
static uint64_t recent_hash(const leat_endpoint *ep, leat_span dcid)
{
    uint64_t hash = leat_hash_bytes(&ep->recent_key, dcid.data, dcid.len);

    return hash != 0 ? hash : 1;
}

static void dcid_done(leat_conn_host *host, const leat_cid *dcid)
{
    leat_endpoint *ep = endpoint_of(host);
    uint64_t hash = recent_hash(ep, leat_cid_span(dcid));

    ep->recent[hash % LEAT_RECENT_DCIDS_MAX] = hash;
}

bool leat_endpoint_is_recent(const leat_endpoint *ep, leat_span dcid)
{
    uint64_t hash = recent_hash(ep, dcid);

    return ep->recent[hash % LEAT_RECENT_DCIDS_MAX] == hash;
}

static void closed(leat_conn_host *host, leat_conn *conn)
{
    leat_endpoint *ep = endpoint_of(host);

    (void)conn;
    LEAT_ASSERT(ep->open > 0);
    ep->open--;
}

static void gone(leat_conn_host *host, leat_conn *conn)
{
    (void)host;
    if (leat_link_listed(&conn->send_link)) {
        leat_link_remove(&conn->send_link);
    }
    if (leat_link_listed(&conn->host_link)) {
        leat_link_remove(&conn->host_link);
    }
    LEAT_ASSERT(conn->routes == 0);
}

static size_t new_token(leat_conn_host *host, const leat_addr *addr, uint32_t version, uint8_t *out,
                        size_t max)
{
    LEAT_ASSERT(max >= LEAT_ADDRTOKEN_MAX);
    return leat_addrtoken_new(endpoint_of(host), addr, version, out);
}

static const leat_conn_host_ops host_ops = {
    .route_add = route_add,
    .route_remove = route_remove,
    .reset_add = reset_add,
    .reset_remove = reset_remove,
    .want_send = want_send,
    .settled = settled,
    .dcid_done = dcid_done,
    .closed = closed,
    .gone = gone,
    .new_token = new_token,
};

/* ---- beginning and end ---- */

/* A server's preferred address of a family; or none. */
static bool preferred_valid(const leat_endpoint_settings *s, const leat_addr *addr, uint8_t family)
{
    return addr->family == 0 || (s->server_tls && addr->family == family && addr->port != 0);
}

static bool settings_valid(const leat_endpoint_settings *s)
{
    return preferred_valid(s, &s->preferred_ip4, 4) && preferred_valid(s, &s->preferred_ip6, 6) &&
           s->cid_len >= LEAT_CID_LEN_MIN && s->cid_len <= LEAT_CID_LEN_MAX && s->max_conns > 0 &&
           s->max_conns <= LEAT_CONNS_MAX && s->max_handshakes > 0 &&
           s->max_handshakes <= LEAT_HANDSHAKES_MAX && s->retry_above <= LEAT_RETRY_ABOVE_MAX &&
           (!s->server_tls ||
            (leat_tls_config_is_server(s->server_tls) && leat_conn_settings_valid(&s->conn) &&
             (!s->conn.early_data || s->shared)));
}

/* A key that the application did not set is made at random: good for this endpoint's life. */
static void fill_key(leat_random *random, uint8_t key[32])
{
    static const uint8_t unset[32];

    if (leat_secret_equal(key, unset, sizeof(unset))) {
        leat_random_fill(random, key, 32);
    }
}

static leat_hash_key hash_key(leat_random *random)
{
    return (leat_hash_key){.k = {leat_random_u64(random), leat_random_u64(random)}};
}

leat_err leat_endpoint_new(leat_ctx *ctx, const leat_endpoint_settings *settings,
                           leat_endpoint **out)
{
    leat_mem *mem = leat_ctx_mem(ctx);
    leat_conn_shared *shared;
    leat_endpoint *ep;
    leat_err err;

    *out = NULL;
    if (!settings_valid(settings)) {
        return LEAT_ERR_INVALID;
    }
    err = leat_conn_shared_get(ctx, &shared);
    if (err != LEAT_OK) {
        return err;
    }
    ep = leat_mem_take_zeroed(mem, sizeof(*ep));
    if (!ep) {
        return LEAT_ERR_NOMEM;
    }
    if (settings->server_tls) {
        ep->recent = leat_mem_take_zeroed(mem, LEAT_RECENT_DCIDS_MAX * sizeof(*ep->recent));
        if (!ep->recent) {
            leat_mem_give(mem, ep, sizeof(*ep));
            return LEAT_ERR_NOMEM;
        }
    }
    ep->settings = *settings;
    if (settings->shared) {
        memcpy(ep->settings.reset_key, leat_shared_reset_key(settings->shared), LEAT_SHARED_KEY);
    }
    fill_key(&shared->random, ep->settings.reset_key);
    fill_key(&shared->random, ep->settings.token_key);
    ep->host = (leat_conn_host){
        .ops = &host_ops,
        .ctx = ctx,
        .shared = shared,
        .sink = settings->events_sink,
        .endpoint = ep,
        .make_cid = settings->make_cid,
        .make_cid_user = settings->make_cid_user,
        .cid_len = settings->cid_len,
        .preferred_ip4 = settings->preferred_ip4,
        .preferred_ip6 = settings->preferred_ip6,
        .common = settings->shared,
    };
    memcpy(ep->host.reset_key, ep->settings.reset_key, sizeof(ep->host.reset_key));
    ep->recent_key = hash_key(&shared->random);
    leat_hmap_init(&ep->cids, mem, hash_key(&shared->random));
    leat_hmap_init(&ep->resets, mem, hash_key(&shared->random));
    leat_pool_init(&ep->routes, mem, sizeof(leat_route), "routes");
    leat_list_init(&ep->conns);
    leat_list_init(&ep->senders);
    leat_queue_init(&ep->stateless, mem, sizeof(leat_stateless));
    *out = ep;
    return LEAT_OK;
}

void leat_endpoint_free(leat_endpoint *ep)
{
    leat_link *link;
    leat_stateless *answer;
    leat_mem *mem;

    if (!ep) {
        return;
    }
    ep->closing = true;
    while ((link = leat_list_first(&ep->conns)) != NULL) {
        leat_conn_drop(LEAT_CONTAINER_OF(link, leat_conn, host_link));
    }
    while ((answer = leat_queue_pop(&ep->stateless)) != NULL) {
        leat_buf_release(&answer->datagram);
    }
    mem = leat_ctx_mem(ep->host.ctx);
    leat_queue_free(&ep->stateless);
    leat_hmap_free(&ep->cids);
    leat_hmap_free(&ep->resets);
    leat_pool_free(&ep->routes);
    if (ep->recent) {
        leat_mem_give(mem, ep->recent, LEAT_RECENT_DCIDS_MAX * sizeof(*ep->recent));
    }
    leat_wipe(ep, sizeof(*ep));
    leat_mem_give(mem, ep, sizeof(*ep));
}

void leat_endpoint_close(leat_endpoint *ep, uint64_t code)
{
    ep->closing = true;
    for (leat_link *l = leat_list_first(&ep->conns); l; l = leat_list_next(&ep->conns, l)) {
        leat_conn_close(LEAT_CONTAINER_OF(l, leat_conn, host_link), code, (leat_span){NULL, 0});
    }
}

leat_ctx *leat_endpoint_ctx(leat_endpoint *ep)
{
    return ep->host.ctx;
}

size_t leat_endpoint_conns(const leat_endpoint *ep)
{
    return ep->open;
}

leat_err leat_conn_connect(leat_endpoint *ep, const leat_connect *how, leat_conn **out)
{
    leat_err err;

    if (ep->closing) {
        return LEAT_ERR_CLOSED;
    }
    if (ep->open >= ep->settings.max_conns) {
        return LEAT_ERR_LIMIT;
    }
    err = leat_conn_new_client(&ep->host, how, out);
    if (err == LEAT_OK) {
        leat_list_push_back(&ep->conns, &(*out)->host_link);
        ep->open++;
    }
    return err;
}
