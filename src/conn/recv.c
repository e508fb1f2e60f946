/* conn/recv.c: datagrams in. A turn's worth is taken from the inbound queue at once; each datagram
 * is cut into its coalesced packets, and each packet goes through the same steps (RFC 9001 s5.5,
 * RFC 9000 s12):
 *
 *     find its keys -> remove header protection -> decode its number -> open in place
 *     -> drop a duplicate -> frames (conn/frames.c) -> note it for acknowledgement
 *
 * Of a message of many datagrams the steps up to opening are done for some packets together.
 *
 * A packet that cannot be opened is dropped without a trace in the connection's state, except that
 * forgeries are counted (RFC 9001 s6.6). Packets that come before their keys are kept for a while.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "conn/frames_out.h"
#include "conn/migrate.h"
#include "conn/trace.h"
#include "crypto/secret.h"
#include "wire/header.h"

/* A datagram on its way through. */
typedef struct leat_datagram_in {
    const leat_inbound *in;
    leat_path *path;     /* that it came on; NULL: not known (yet) */
    size_t len;          /* of all of it */
    leat_span dcid;      /* of its first packet; data NULL before that */
    leat_open_op *ahead; /* its packet, tried already; NULL: not */
} leat_datagram_in;

static LEAT_SELDOM void drop(leat_conn *conn, leat_packet_type type, size_t len, leat_drop why)
{
    conn->count.packets_dropped++;
    if (leat_trace_on(conn)) {
        leat_trace_dropped(conn, type, len, why);
    }
}

/* Keeps a packet whose keys are not there yet: a copy, since a slice would pin the whole receive
 * buffer. A full shelf drops it: the peer sends it again. */
static LEAT_SELDOM void keep_early(leat_conn *conn, const leat_inbound *in,
                                   const leat_header *header, const uint8_t *packet)
{
    leat_handshake *hs = conn->hs;
    leat_inbound *early = &hs->early[hs->early_count];

    if (hs->early_count == LEAT_EARLY_PACKETS_MAX ||
        !leat_budget_charge(&conn->budget, LEAT_BUDGET_PACKETS, header->packet_len)) {
        drop(conn, header->type, header->packet_len, LEAT_DROP_NO_KEYS_YET);
        return;
    }
    *early = *in;
    early->info.segment = 0;
    early->buf = leat_conn_keep(conn, packet, header->packet_len);
    if (!early->buf.block) {
        leat_budget_refund(&conn->budget, LEAT_BUDGET_PACKETS, header->packet_len);
        drop(conn, header->type, header->packet_len, LEAT_DROP_NO_MEMORY);
        return;
    }
    hs->early_count++;
    leat_trace_buffered(conn, header);
}

bool leat_conn_sends_to(const leat_conn *conn, const leat_addr *remote)
{
    for (size_t i = 0; i < leat_paths_room(&conn->paths); i++) {
        const leat_path *path = leat_paths_at_const(&conn->paths, i);

        if (path->used && leat_addr_equal(&path->remote, remote)) {
            return true;
        }
    }
    return false;
}

/* Whether the last 16 bytes are the reset token of one of the peer's IDs that packets went to (RFC
 * 9000 s10.3.1). Other versions may have long headers in front of it. */
static LEAT_SELDOM bool is_stateless_reset(const leat_conn *conn, const uint8_t *datagram,
                                           size_t len)
{
    const leat_remote_cids *cids = &conn->remote_cids;
    bool found = false;

    if (len < 21) {
        return false;
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        if (cids->entry[i].used && cids->entry[i].taken && cids->entry[i].has_token) {
            found |= leat_secret_equal(cids->entry[i].reset_token,
                                       datagram + len - LEAT_STATELESS_RESET_TOKEN,
                                       LEAT_STATELESS_RESET_TOKEN);
        }
    }
    return found;
}

static LEAT_SELDOM void forged(leat_conn *conn, const leat_header *header)
{
    drop(conn, header->type, header->packet_len, LEAT_DROP_FORGED);
    if (leat_rekey_on_forged(&conn->rekey)) {
        leat_conn_fail(conn, LEAT_TE_AEAD_LIMIT_REACHED, 0, "too many forged packets");
    }
}

/* The packet was opened: what its number space and keys make of that. False: drop it. */
static bool opened(leat_conn *conn, leat_pnspace *pn, leat_packet_keys *keys,
                   const leat_header *header, uint8_t first, uint64_t number, leat_time at)
{
    leat_conn_shared *shared = leat_conn_shared_of(conn);
    leat_key_phases before;
    bool answers;
    uint64_t error;

    if (!leat_header_reserved_clear(first)) {
        leat_conn_fail(conn, LEAT_TE_PROTOCOL_VIOLATION, 0, "reserved bits are set");
        return false;
    }
    if (leat_acks_is_duplicate(&pn->acks, number)) {
        drop(conn, header->type, header->packet_len, LEAT_DROP_DUPLICATE);
        return false;
    }
    if (header->type != LEAT_PACKET_ONE_RTT ||
        (keys == &conn->rekey.rx && number >= conn->rekey.rx_first_pn)) {
        return true;
    }
    before = leat_key_phases_of(&conn->rekey);
    answers = before.tx > before.rx;
    if (leat_rekey_on_opened(&conn->rekey, shared->keys, keys, number,
                             leat_acks_expected(&pn->acks), leat_sent_next_pn(&pn->sent), at,
                             3 * leat_loss_pto(&conn->loss, LEAT_SPACE_APP), &error)) {
        leat_trace_rekey(conn, before, answers ? "local_update" : "remote_update");
        leat_conn_rearm(conn);
    }
    if (error != LEAT_TE_NO_ERROR) {
        leat_conn_fail(conn, error, 0, "a packet of a newer key phase has a lower number");
        return false;
    }
    return true;
}

/* The first packet of the peer's tells its connection ID (RFC 9000 s7.2). False: not for us. */
static bool learn_peer_cid(leat_conn *conn, const leat_header *header)
{
    leat_handshake *hs = conn->hs;

    if (header->type == LEAT_PACKET_ONE_RTT || !hs) {
        return true;
    }
    if (!hs->saw_first_scid) {
        leat_cid_set(&hs->first_scid, header->scid.data, header->scid.len);
        hs->saw_first_scid = true;
        leat_trace_cid(conn, leat_remote_cids_current(&conn->remote_cids), &hs->first_scid);
        leat_remote_cids_replace(&conn->remote_cids, &hs->first_scid);
        return true;
    }
    return leat_cid_equal_span(&hs->first_scid, header->scid);
}

/* What a good packet says about the peer, before its frames. */
static void note_authentic(leat_conn *conn, const leat_header *header)
{
    leat_conn_not_small(conn);
    conn->count.packets_received++;
    conn->last_received = leat_conn_now(conn);
    conn->ack_only_idle = true;
    if (conn->hs) {
        conn->hs->saw_packet = true;
    }
    if (header->type != LEAT_PACKET_ONE_RTT) {
        leat_version_follow(conn, header->version);
    }
    if (header->type == LEAT_PACKET_HANDSHAKE && conn->is_server) {
        /* Only the true owner of the address can have the keys (RFC 9000 s8.1). */
        leat_path_validate(leat_paths_active(&conn->paths));
        leat_conn_drop_initial(conn);
    }
}

static void process(leat_conn *conn, leat_packet_in *in, const leat_header *header,
                    leat_span payload, uint8_t first)
{
    uint64_t error;

    if (payload.len == 0) {
        leat_conn_fail(conn, LEAT_TE_PROTOCOL_VIOLATION, 0, "a packet without frames");
        return;
    }
    if (!learn_peer_cid(conn, header)) {
        drop(conn, header->type, header->packet_len, LEAT_DROP_OTHER_SCID);
        return;
    }
    note_authentic(conn, header);
    error = leat_conn_on_payload(conn, in, payload);
    if (leat_trace_on(conn)) {
        leat_trace_received(conn, header, in, first);
        leat_trace_spin(conn);
    }
    if (error != LEAT_TE_NO_ERROR) {
        return;
    }
    /* The space may be gone by what the frames did. */
    if (leat_conn_is_open(conn) && in->pn->open) {
        leat_acks_on_packet(&in->pn->acks, in->number, in->at, in->ecn, in->eliciting);
        if (in->ack_now) {
            leat_acks_set_immediate(&in->pn->acks);
        }
        if (LEAT_UNLIKELY(conn->asked && in->eliciting)) {
            conn->asked = false; /* the next silence may be asked into again */
            conn->timer_settled = false;
        }
        leat_migrate_on_packet(conn, in);
    }
}

static inline bool key_phase(const leat_header *header, const uint8_t *packet)
{
    return header->type == LEAT_PACKET_ONE_RTT && leat_header_key_phase(packet[0]);
}

/* The keys for a packet, its phase bit and number being known; NULL: none. */
static leat_packet_keys *keys_for(leat_conn *conn, leat_packet_keys *hp, const leat_header *header,
                                  bool phase, uint64_t number)
{
    if (header->type == LEAT_PACKET_ONE_RTT) {
        return leat_rekey_for(&conn->rekey, phase, number);
    }
    return hp;
}

/* What a packet of these bytes is to be opened with, once its header protection is gone. */
static inline leat_open_op unmask(const leat_pnspace *pn, uint8_t *packet, size_t len,
                                  size_t pn_offset, const uint8_t mask[LEAT_HP_MASK])
{
    uint32_t truncated;
    size_t pn_len = leat_hp_remove(packet, pn_offset, mask, &truncated);
    size_t header_len = pn_offset + pn_len;

    return (leat_open_op){
        .header = packet,
        .payload = packet + header_len,
        .pn = leat_pn_decode(leat_acks_expected(&pn->acks), truncated, pn_len),
        .header_len = (uint32_t)header_len,
        .payload_len = (uint32_t)(len - header_len),
        .result = LEAT_ERR_CRYPTO,
    };
}

/* ---- opening ahead ---- */

/* Packets of one message that are opened together, before the first one's frames are looked at: as
 * many as stay in the first cache until they are. Each run of the AEAD takes most of the
 * processor's instruction cache, and what handles frames much of the rest. */
#define LEAT_AHEAD 8

typedef struct leat_ahead {
    size_t count, next;
    leat_open_op ops[LEAT_AHEAD];
} leat_ahead;

/* Opens those of the datagrams from `at` on that are 1-RTT packets of the present key phase, up to
 * the first that is not. Numbers are told by what was received before all of them: the peer chose
 * their length by less, what it knows to be acknowledged (RFC 9000 s17.1). */
static void open_ahead(leat_conn *conn, const leat_inbound *in, size_t at, leat_ahead *ahead)
{
    leat_key_cache *cache = leat_conn_shared_of(conn)->keys;
    size_t step = in->info.segment;
    size_t pn_offset = 1 + conn->host->cid_len;
    size_t least = pn_offset + LEAT_PN_LEN_MAX + LEAT_HP_SAMPLE;
    bool phase = conn->rekey.rx_phase & 1;
    leat_mask_op masks[LEAT_AHEAD];
    size_t n = 0;

    ahead->count = ahead->next = 0;
    while (n < LEAT_AHEAD && at + n * step + least <= in->buf.len && least <= step) {
        const uint8_t *packet = in->buf.data + at + n * step;

        if (packet[0] & LEAT_FIRST_LONG) {
            break;
        }
        masks[n++].sample = packet + pn_offset + LEAT_PN_LEN_MAX;
    }
    if (n < 2 || leat_mask(cache, &conn->rekey.rx, masks, n) != LEAT_OK) {
        return;
    }
    for (size_t i = 0; i < n; i++, at += step) {
        uint8_t *packet = in->buf.data + at;
        size_t left = in->buf.len - at;

        if (leat_header_key_phase((uint8_t)(packet[0] ^ masks[i].mask[0])) != phase) {
            break;
        }
        ahead->ops[ahead->count++] =
            unmask(&conn->app, packet, left < step ? left : step, pn_offset, masks[i].mask);
    }
    if (ahead->count > 0) {
        (void)leat_open(cache, &conn->rekey.rx, ahead->ops, ahead->count); /* each result tells */
    }
}

/* What usually can be opened ahead: several datagrams, and keys that stay. */
static inline bool may_open_ahead(const leat_conn *conn, const leat_inbound *in, size_t at)
{
    return in->info.segment > 0 && in->buf.len - at > in->info.segment && conn->confirmed &&
           !conn->hs && leat_conn_is_open(conn) && leat_packet_keys_ready(&conn->rekey.rx);
}

/* ---- one packet ---- */

/* One protected packet, whose space and header protection key are there. */
static void open_packet(leat_conn *conn, leat_pnspace *pn, leat_packet_keys *hp,
                        const leat_datagram_in *dg, const leat_header *header, uint8_t *packet)
{
    leat_key_cache *cache = leat_conn_shared_of(conn)->keys;
    const leat_inbound *in = dg->in;
    leat_open_op op;
    leat_packet_keys *keys;

    if (dg->ahead) {
        LEAT_DCHECK(dg->ahead->header == packet);
        op = *dg->ahead;
        keys = hp;
    } else {
        leat_mask_op mask = {.sample = packet + header->pn_offset + LEAT_PN_LEN_MAX};

        if (leat_mask(cache, hp, &mask, 1) != LEAT_OK) {
            drop(conn, header->type, header->packet_len, LEAT_DROP_NO_MEMORY);
            return;
        }
        op = unmask(pn, packet, header->packet_len, header->pn_offset, mask.mask);
        keys = keys_for(conn, hp, header, key_phase(header, packet), op.pn);
        if (leat_open(cache, keys, &op, 1) != LEAT_OK) {
            op.result = LEAT_ERR_CRYPTO;
        }
    }
    if (op.result != LEAT_OK) {
        forged(conn, header);
        return;
    }
    if (opened(conn, pn, keys, header, packet[0], op.pn, in->at)) {
        if (header->type == LEAT_PACKET_ONE_RTT && op.pn >= leat_acks_expected(&pn->acks)) {
            leat_grease_on_spin(&conn->grease, leat_header_spin(packet[0]), conn->is_server);
        }
        leat_packet_in frames = {
            .pn = pn,
            .number = op.pn,
            .at = in->at,
            .type = header->type,
            .ecn = in->info.ecn,
            .probing = true,
            .datagram_len = in->info.segment > 0 ? in->info.segment : in->buf.len,
            .dcid = header->dcid,
            .path = dg->path,
            .buf = &in->buf,
            .info = &in->info,
        };

        process(conn, &frames, header, (leat_span){op.payload, op.payload_len - LEAT_AEAD_TAG},
                packet[0]);
    }
}

static LEAT_SELDOM void recv_zero_rtt(leat_conn *conn, const leat_datagram_in *dg,
                                      const leat_header *header, uint8_t *packet)
{
    bool wait;
    leat_packet_keys *keys = leat_early_rx(conn, header, &wait);

    if (keys) {
        open_packet(conn, &conn->app, keys, dg, header, packet);
    } else if (wait) {
        keep_early(conn, dg->in, header, packet);
    } else {
        drop(conn, header->type, header->packet_len, LEAT_DROP_NO_EARLY);
    }
}

/* Finds space and keys of a protected packet. */
static void recv_protected(leat_conn *conn, const leat_datagram_in *dg, const leat_header *header,
                           uint8_t *packet)
{
    leat_pnspace *pn;
    leat_packet_keys *hp;

    switch (header->type) {
    case LEAT_PACKET_INITIAL:
        pn = leat_conn_space(conn, LEAT_SPACE_INITIAL);
        break;
    case LEAT_PACKET_HANDSHAKE:
        pn = leat_conn_space(conn, LEAT_SPACE_HANDSHAKE);
        break;
    case LEAT_PACKET_ONE_RTT:
        pn = &conn->app;
        break;
    default:
        recv_zero_rtt(conn, dg, header, packet);
        return;
    }
    if (!pn) {
        drop(conn, header->type, header->packet_len, LEAT_DROP_KEYS_GONE);
        return;
    }
    hp = header->type == LEAT_PACKET_ONE_RTT ? &conn->rekey.rx
                                             : leat_version_rx(conn, header, &pn->keys->rx);
    if (!hp) {
        drop(conn, header->type, header->packet_len, LEAT_DROP_OTHER_VERSION);
        return;
    }
    /* A server reads no 1-RTT before the handshake is complete (RFC 9001 s5.7). */
    if (!leat_packet_keys_ready(hp) ||
        (header->type == LEAT_PACKET_ONE_RTT && conn->state == LEAT_CONN_HANDSHAKE)) {
        if (conn->hs) {
            keep_early(conn, dg->in, header, packet);
        } else {
            drop(conn, header->type, header->packet_len, LEAT_DROP_NO_KEYS);
        }
        return;
    }
    open_packet(conn, pn, hp, dg, header, packet);
}

/* One packet at `packet`; returns how many bytes of the datagram it took. */
static size_t recv_packet(leat_conn *conn, leat_datagram_in *dg, uint8_t *packet, size_t len)
{
    leat_header header;
    leat_err err = leat_header_parse(packet, len, conn->host->cid_len, &header);

    if (err == LEAT_ERR_TRUNCATED) {
        drop(conn, header.type, header.packet_len, LEAT_DROP_TOO_SHORT);
        return header.packet_len;
    }
    if (err != LEAT_OK) {
        drop(conn, LEAT_PACKET_UNKNOWN_VERSION, len, LEAT_DROP_MALFORMED);
        return len;
    }
    if (dg->dcid.data && (header.dcid.len != dg->dcid.len ||
                          memcmp(header.dcid.data, dg->dcid.data, dg->dcid.len) != 0)) {
        drop(conn, header.type, len, LEAT_DROP_OTHER_CONN);
        return len;
    }
    dg->dcid = header.dcid;
    if (header.type == LEAT_PACKET_INITIAL && !conn->is_server && header.token.len > 0) {
        /* RFC 9000 s17.2.2: a server never sends one. */
        drop(conn, header.type, header.packet_len, LEAT_DROP_SERVER_TOKEN);
    } else if (header.type == LEAT_PACKET_INITIAL && conn->is_server &&
               dg->len < LEAT_INITIAL_MIN_SIZE) {
        drop(conn, header.type, header.packet_len, LEAT_DROP_SMALL_INITIAL); /* s14.1 */
    } else if (!conn->grease.accepts && !leat_header_fixed_bit(&header) &&
               header.type != LEAT_PACKET_VERSION_NEGOTIATION) {
        drop(conn, header.type, header.packet_len, LEAT_DROP_FIXED_BIT);
    } else if (header.type == LEAT_PACKET_VERSION_NEGOTIATION) {
        leat_conn_on_version_negotiation(conn, &header);
    } else if (header.type == LEAT_PACKET_RETRY && header.version == conn->version) {
        leat_conn_on_retry(conn, &header, (leat_span){packet, header.packet_len});
    } else {
        recv_protected(conn, dg, &header, packet);
    }
    return header.packet_len;
}

static void recv_datagram(leat_conn *conn, const leat_inbound *in, uint8_t *data, size_t len,
                          leat_open_op *ahead)
{
    leat_datagram_in dg = {.in = in, .len = len, .ahead = ahead};
    uint64_t received = conn->count.packets_received;
    const uint8_t *datagram = data;

    conn->count.datagrams_received++;
    conn->count.bytes_received += len;
    if (!leat_migrate_admits(conn, &in->info, len, &dg.path)) {
        drop(conn, LEAT_PACKET_UNKNOWN_VERSION, len, LEAT_DROP_OTHER_ADDRESS);
        return;
    }
    if (!leat_conn_is_open(conn)) {
        leat_conn_close_poke(conn);
        return;
    }
    while (len > 0 && leat_conn_is_open(conn)) {
        size_t used = recv_packet(conn, &dg, data, len);

        LEAT_ASSERT(used > 0 && used <= len);
        data += used;
        len -= used;
    }
    if (conn->count.packets_received == received && leat_conn_is_open(conn) &&
        leat_conn_sends_to(conn, &in->info.remote) && is_stateless_reset(conn, datagram, dg.len)) {
        leat_conn_on_reset(conn);
    }
}

static void recv_inbound(leat_conn *conn, const leat_inbound *in)
{
    size_t step = in->info.segment > 0 ? in->info.segment : in->buf.len;
    size_t at = 0;
    leat_ahead ahead;

    ahead.count = ahead.next = 0;
    while (at < in->buf.len) {
        size_t len = in->buf.len - at < step ? in->buf.len - at : step;
        leat_open_op *op;

        if (ahead.next == ahead.count && may_open_ahead(conn, in, at)) {
            open_ahead(conn, in, at, &ahead);
        }
        op = ahead.next < ahead.count ? &ahead.ops[ahead.next++] : NULL;
        recv_datagram(conn, in, in->buf.data + at, len, op);
        at += len;
    }
}

/* What came may have to be answered, or let something out. */
static bool may_answer(leat_conn *conn)
{
    return !conn->confirmed || conn->hs || conn->app.probes > 0 ||
           leat_acks_is_due(&conn->app.acks, leat_conn_now(conn)) ||
           leat_frames_waiting(conn, &conn->app) || leat_paths_any_wanting(&conn->paths);
}

/* Closing may be seen while packets are received; draining needs them too. */
static void settle(leat_conn *conn)
{
    leat_conn_note_blocked(conn);
    leat_conn_tell_more(conn);
    if (!leat_conn_is_open(conn)) {
        if (conn->state < LEAT_CONN_DRAINING) {
            leat_conn_want_send(conn);
        }
        leat_conn_rearm(conn);
        return;
    }
    if (may_answer(conn)) {
        leat_conn_want_send(conn);
    }
    if (conn->timer_waits) {
        leat_conn_timer_fired(&conn->timer, leat_conn_now(conn));
    } else if (!leat_link_listed(&conn->send_link)) {
        leat_conn_rearm_usual(conn); /* who is asked to send, next, does it then */
    }
}

/* Tries again what came before its keys. */
static LEAT_SELDOM void replay_early(leat_conn *conn)
{
    leat_handshake *hs = conn->hs;
    uint8_t count = hs ? hs->early_count : 0;
    leat_inbound early[LEAT_EARLY_PACKETS_MAX];

    if (count == 0) {
        return;
    }
    /* Those still without keys come back onto the shelf. */
    memcpy(early, hs->early, count * sizeof(early[0]));
    hs->early_count = 0;
    for (uint8_t i = 0; i < count; i++) {
        leat_datagram_in dg = {.in = &early[i], .len = LEAT_INITIAL_MIN_SIZE};

        leat_budget_refund(&conn->budget, LEAT_BUDGET_PACKETS, early[i].buf.len);
        if (leat_conn_is_open(conn)) {
            recv_packet(conn, &dg, early[i].buf.data, early[i].buf.len);
        }
        leat_buf_release(&early[i].buf);
    }
}

void leat_conn_recv_task(leat_task *task)
{
    leat_conn *conn = LEAT_CONTAINER_OF(task, leat_conn, recv_task);
    leat_queue *batch = &leat_conn_shared_of(conn)->batch;
    leat_inbound *in;

    if (leat_queue_drain(&conn->inbound, batch) != LEAT_OK) {
        batch = &conn->inbound; /* no memory to exchange: works from where it lies */
    }
    while ((in = leat_queue_pop(batch)) != NULL) {
        recv_inbound(conn, in);
        leat_buf_release(&in->buf);
        while (conn->hs && conn->hs->fresh_keys) {
            conn->hs->fresh_keys = false;
            replay_early(conn);
        }
        leat_conn_handshake_retire(conn);
    }
    if (conn->is_server && conn->count.packets_received == 0 && leat_conn_is_open(conn)) {
        leat_conn_abandon(conn); /* what began it was not authentic */
        return;
    }
    settle(conn);
    /* This is no call of the application's: it can be told at once, and what it answers goes out
     * with the acknowledgement. During the handshake TLS's answer goes first. It may be the
     * connection's end. */
    if (!conn->hs && leat_task_cancel(&conn->event_task)) {
        leat_conn_event_task(&conn->event_task);
    }
}
