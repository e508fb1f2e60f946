/* conn/version.c: see conn/version.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "base/assert.h"
#include "base/cursor.h"
#include "conn/trace.h"

bool leat_version_spoken(const leat_conn_settings *settings, uint32_t version)
{
    for (size_t i = 0; i < settings->version_count; i++) {
        if (settings->versions[i] == version) {
            return true;
        }
    }
    return false;
}

/* Whether a list of 4-byte numbers on the wire has a version. */
static bool lists(leat_span list, uint32_t version)
{
    for (size_t i = 0; i + 4 <= list.len; i += 4) {
        if (leat_load_u32(list.data + i) == version) {
            return true;
        }
    }
    return false;
}

/* The best of ours that is in the list or is `also` (0: none), but for `except` (0: none); 0: there
 * is none. */
static uint32_t best_common(const leat_conn *conn, leat_span list, uint32_t also, uint32_t except)
{
    const leat_conn_settings *s = conn->settings;

    for (size_t i = 0; i < s->version_count; i++) {
        uint32_t version = s->versions[i];

        if (version != except && (version == also || lists(list, version))) {
            return version;
        }
    }
    return 0;
}

/* ---- keys ---- */

void leat_version_initial_keys(leat_conn *conn, const leat_cid *dcid)
{
    leat_pnspace *pn = &conn->hs->spaces[LEAT_SPACE_INITIAL];
    leat_key_cache *cache = leat_conn_shared_of(conn)->keys;

    leat_packet_keys_drop(&pn->keys->tx, cache);
    leat_packet_keys_drop(&pn->keys->rx, cache);
    leat_packet_keys_initial(conn->is_server ? &pn->keys->rx : &pn->keys->tx,
                             conn->is_server ? &pn->keys->tx : &pn->keys->rx,
                             leat_schedule_for(conn->version), dcid->data, dcid->len);
    conn->hs->version.initial_dcid = *dcid;
    leat_trace_keys(conn, LEAT_EVENT_KEY_UPDATED, LEAT_LEVEL_INITIAL);
}

/* Keys to read the peer's Initials of another version with. */
static void make_other(leat_conn *conn, uint32_t version)
{
    leat_version_state *v = &conn->hs->version;
    leat_key_cache *cache = leat_conn_shared_of(conn)->keys;
    leat_packet_keys tx;

    leat_packet_keys_drop(&v->other_rx, cache);
    leat_packet_keys_init(&tx);
    leat_packet_keys_initial(conn->is_server ? &v->other_rx : &tx,
                             conn->is_server ? &tx : &v->other_rx, leat_schedule_for(version),
                             v->initial_dcid.data, v->initial_dcid.len);
    leat_packet_keys_drop(&tx, cache);
    v->other = version;
}

/* A server may acknowledge in the client's version before it has read the ClientHello, and change
 * then: with its first CRYPTO it has decided. */
static bool may_change(const leat_conn *conn)
{
    return !conn->is_server && !conn->hs->version.followed &&
           conn->hs->crypto[LEAT_SPACE_INITIAL].recv.flow.received == 0;
}

leat_packet_keys *leat_version_rx(leat_conn *conn, const leat_header *header,
                                  leat_packet_keys *present)
{
    leat_version_state *v = conn->hs ? &conn->hs->version : NULL;

    if (header->version == conn->version || header->type == LEAT_PACKET_ONE_RTT) {
        return present;
    }
    if (!v || header->type != LEAT_PACKET_INITIAL) {
        return NULL;
    }
    if (v->other == header->version) {
        return &v->other_rx;
    }
    if (!may_change(conn) || !leat_version_known(header->version) ||
        !leat_version_spoken(conn->settings, header->version)) {
        return NULL;
    }
    make_other(conn, header->version);
    return &v->other_rx;
}

void leat_version_follow(leat_conn *conn, uint32_t version)
{
    leat_version_state *v = conn->hs ? &conn->hs->version : NULL;

    if (v && version != conn->version && may_change(conn)) {
        uint32_t former = conn->version;

        conn->version = version;
        v->followed = true;
        leat_version_initial_keys(conn, &v->initial_dcid);
        make_other(conn, former); /* a server's first packets may be of both (RFC 9369 s4.1) */
    }
}

void leat_version_free(leat_conn *conn)
{
    leat_packet_keys_drop(&conn->hs->version.other_rx, leat_conn_shared_of(conn)->keys);
}

/* ---- transport parameters ---- */

void leat_version_offer(const leat_conn *conn, leat_tparams *params,
                        uint8_t room[4 * LEAT_VERSIONS_MAX])
{
    const leat_conn_settings *s = conn->settings;

    for (size_t i = 0; i < s->version_count; i++) {
        leat_store_u32(room + 4 * i, s->versions[i]);
    }
    params->version_information.chosen = conn->version;
    params->version_information.available = (leat_span){room, 4 * (size_t)s->version_count};
    params->present |= LEAT_TP_version_information;
}

static uint64_t refuse(const char *text, const char **why)
{
    *why = text;
    return LEAT_TE_VERSION_NEGOTIATION_ERROR;
}

/* RFC 9368 s2.3, s4: a server takes the best version that both have, if it is compatible with the
 * client's. */
static uint32_t servers_choice(const leat_conn *conn, const leat_version_information *info)
{
    uint32_t best = best_common(conn, info->available, 0, 0);

    return best != 0 && leat_version_known(best) ? best : conn->version;
}

uint32_t leat_version_foreseen(const leat_conn *conn, leat_span params)
{
    leat_tparams decoded;
    const char *why;

    if (leat_tparams_decode(params, false, &decoded, &why) != LEAT_TE_NO_ERROR ||
        !leat_tparams_has(&decoded, LEAT_TP_version_information)) {
        return conn->version;
    }
    return servers_choice(conn, &decoded.version_information);
}

static uint64_t server_chooses(leat_conn *conn, const leat_version_information *info, bool *changed,
                               const char **why)
{
    uint32_t best;

    if (info->chosen != conn->hs->version.original) {
        return refuse("the chosen version is not the one in use", why);
    }
    best = servers_choice(conn, info);
    if (best != conn->version) {
        uint32_t former = conn->version;
        leat_cid dcid = conn->hs->version.initial_dcid;

        conn->version = best;
        leat_version_initial_keys(conn, &dcid);
        make_other(conn, former);
        *changed = true;
    }
    return LEAT_TE_NO_ERROR;
}

/* RFC 9368 s4, s5: the server's word about its versions must explain what this client saw. */
static uint64_t client_checks(const leat_conn *conn, const leat_tparams *params, const char **why)
{
    const leat_version_state *v = &conn->hs->version;
    const leat_version_information *info = &params->version_information;

    if (!leat_tparams_has(params, LEAT_TP_version_information)) {
        /* A server that knows nothing of it speaks version 1 alone (RFC 9368 s8). */
        if (conn->version != LEAT_QUIC_V1 || conn->version != v->original) {
            return refuse("the version changed, and the server does not say why", why);
        }
        return LEAT_TE_NO_ERROR;
    }
    if (info->chosen != conn->version) {
        return refuse("the server chose another version than the one in use", why);
    }
    /* What was negotiated counts as available whether it is named or not. */
    if (v->renegotiated && info->available.len == 0) {
        return refuse("a server that negotiated a version names none", why);
    }
    if (v->renegotiated && best_common(conn, info->available, conn->version, 0) != v->original) {
        return refuse("a better version was hidden from this client", why);
    }
    return LEAT_TE_NO_ERROR;
}

uint64_t leat_version_on_params(leat_conn *conn, const leat_tparams *params, bool *changed,
                                const char **why)
{
    *changed = false;
    if (!conn->is_server) {
        return client_checks(conn, params, why);
    }
    if (!leat_tparams_has(params, LEAT_TP_version_information)) {
        return LEAT_TE_NO_ERROR;
    }
    return server_chooses(conn, &params->version_information, changed, why);
}

/* ---- Version Negotiation packets ---- */

bool leat_version_on_negotiation(leat_conn *conn, const leat_header *header, bool *give_up)
{
    leat_version_state *v = conn->hs ? &conn->hs->version : NULL;
    uint32_t best;

    *give_up = false;
    /* RFC 9000 s6.2: ignored when it lists the version in use, or comes after anything else. */
    if (conn->is_server || !v || conn->hs->saw_packet || v->renegotiated || conn->hs->has_retry ||
        !leat_cid_equal_span(&conn->local_cids.entry[0].cid, header->dcid) ||
        !leat_cid_equal_span(&conn->odcid, header->scid) ||
        leat_header_lists_version(header, conn->version)) {
        return false;
    }
    best = best_common(conn, header->rest, 0, conn->version);
    leat_trace_unprotected(conn, header);
    if (best == 0) {
        leat_trace_versions(conn, header->rest, 0);
        *give_up = true;
        return false;
    }
    leat_trace_versions(conn, header->rest, best);
    conn->version = best;
    v->original = best;
    v->renegotiated = true;
    leat_version_initial_keys(conn, &conn->odcid);
    return true;
}
