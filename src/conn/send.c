/* conn/send.c: packets out.
 *
 * A batch is as many datagrams to the peer as the caller's buffer, the window, the pacer and UDP
 * GSO's rule (all of one size, only the last may be shorter) let through. A datagram is one packet
 * of each level that has something to say. A packet is framed where it will be sent from; its
 * record in recovery/sent.h is made as the frames are written, and sealing is left to the end of
 * the batch, so that it can be done for many packets with one key at once.
 *
 *     leat_conn_send
 *       batch_datagram            one datagram: levels in order, padding; batch_close: the last
 *       batch_padding             the same with nothing to say: for a bandwidth estimator
 *         packet_open             header, room
 *         packet_ack, packet_frames
 *         packet_close            length, record, an entry for sealing
 *       batch_seal
 *
 * What may go out (RFC 9002 s7): packets that are in flight need room in the congestion window,
 * except for probes after a PTO, and most need the pacer's word; ACKs alone need neither;
 * everything needs room under the anti-amplification limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "conn/frames_out.h"
#include "conn/migrate.h"
#include "conn/trace.h"
#include "stream/output.h"
#include "wire/header.h"

/* Packets of one batch: 64 KiB of the smallest datagrams, and the levels of the handshake. */
#define LEAT_BATCH_PACKETS 64

typedef struct leat_send_batch {
    leat_conn *conn;
    leat_path *path; /* that it goes out on */
    leat_time now;
    uint8_t *buf;
    size_t cap;
    size_t len;
    size_t segment; /* bytes of the first datagram */
    size_t datagrams;
    uint8_t ecn;                /* enum leat_ecn: what the datagrams are marked with */
    uint64_t paced;             /* bytes that the pacer still lets out */
    leat_packet_keys *app_keys; /* of the application space: 1-RTT's or 0-RTT's */
    leat_packet_keys *keys;     /* of the packets not yet sealed */
    size_t ops_count;
    bool apart;     /* one datagram that had to go alone: what is usual comes next */
    bool said_all;  /* nothing waits to be sent */
    bool in_flight; /* something that was sent counts as that */
    bool failed;
    leat_seal_op ops[LEAT_BATCH_PACKETS];
} leat_send_batch;

/* ---- sealing ---- */

static void batch_seal(leat_send_batch *batch)
{
    leat_key_cache *cache = leat_conn_shared_of(batch->conn)->keys;

    if (batch->ops_count > 0 &&
        leat_seal(cache, batch->keys, batch->ops, batch->ops_count) != LEAT_OK) {
        batch->failed = true;
    }
    batch->ops_count = 0;
}

static leat_seal_op *batch_op(leat_send_batch *batch, leat_packet_keys *keys)
{
    if (batch->ops_count > 0 && (batch->keys != keys || batch->ops_count == LEAT_BATCH_PACKETS)) {
        batch_seal(batch);
    }
    batch->keys = keys;
    return &batch->ops[batch->ops_count++];
}

/* ---- one packet ---- */

/* Before there are 1-RTT keys the application space may have those of 0-RTT. */
static leat_packet_keys *app_keys(leat_conn *conn)
{
    leat_packet_keys *early = leat_packet_keys_ready(&conn->rekey.tx) ? NULL : leat_early_tx(conn);

    return early ? early : &conn->rekey.tx;
}

static leat_packet_keys *packet_keys(const leat_send_batch *batch, leat_pnspace *pn)
{
    return pn->space == LEAT_SPACE_APP ? batch->app_keys : &pn->keys->tx;
}

static leat_packet_type packet_type(const leat_send_batch *batch, const leat_pnspace *pn)
{
    if (LEAT_LIKELY(pn->space == LEAT_SPACE_APP)) {
        return batch->app_keys == &batch->conn->rekey.tx ? LEAT_PACKET_ONE_RTT
                                                         : LEAT_PACKET_ZERO_RTT;
    }
    return pn->space == LEAT_SPACE_INITIAL ? LEAT_PACKET_INITIAL : LEAT_PACKET_HANDSHAKE;
}

/* Now and then a number is left out: whoever acknowledges it acknowledges what it has not received
 * (RFC 9000 s21.4). Ever more seldom, for each costs the peer a range. */
#define LEAT_SKIP_FIRST 128
#define LEAT_SKIP_LAST  65536

static void skip_number(leat_conn *conn, leat_pnspace *pn)
{
    uint64_t next = leat_sent_next_pn(&pn->sent);
    uint64_t period = conn->skip_period;

    if (pn->space != LEAT_SPACE_APP || !conn->confirmed || next < conn->skip_at) {
        return;
    }
    if (conn->skip_at > 0 && !leat_sent_skip(&pn->sent)) {
        return; /* nothing is under way: it would not be seen */
    }
    conn->skip_period = period == 0               ? LEAT_SKIP_FIRST
                        : period < LEAT_SKIP_LAST ? 2 * period
                                                  : period;
    conn->skip_at = next + conn->skip_period +
                    leat_random_u64(&leat_conn_shared_of(conn)->random) % conn->skip_period;
}

/* What goes by another path may be overtaken by any number of packets on this one; and on one path
 * by more than the 127 that a single byte would bear, however few are on their way now. */
static size_t pn_len(leat_conn *conn, const leat_path *path, const leat_pnspace *pn,
                     uint64_t number)
{
    size_t len = leat_pn_len(number, leat_sent_acked_end(&pn->sent));

    if (path != leat_paths_active(&conn->paths)) {
        return LEAT_PN_LEN_MAX;
    }
    return len == 1 && pn->space == LEAT_SPACE_APP ? 2 : len;
}

/* The room behind the header and before the tag is out->w. False: it does not fit, or the record
 * has no room. */
static bool packet_open(leat_send_batch *batch, leat_packet_out *out, leat_pnspace *pn, uint8_t *at,
                        size_t room, bool must)
{
    leat_conn *conn = batch->conn;
    leat_path *path = batch->path;
    const leat_cid *dcid = leat_migrate_dcid(conn, path);
    leat_span token = {NULL, 0};
    uint64_t number;
    bool fits;

    skip_number(conn, pn);
    number = leat_sent_next_pn(&pn->sent);
    if (!dcid || room <= LEAT_AEAD_TAG + LEAT_PN_LEN_MAX || number >= LEAT_PN_LAST ||
        leat_sent_begin(&pn->sent, must) != LEAT_OK) {
        return false;
    }
    *out = (leat_packet_out){
        .conn = conn, .pn = pn, .now = batch->now, .start = at, .path = path->number};
    out->keys = packet_keys(batch, pn);
    out->type = packet_type(batch, pn);
    out->pn_len = pn_len(conn, path, pn, number);
    leat_writer_init(&out->w, at, room - LEAT_AEAD_TAG);
    if (out->type == LEAT_PACKET_ONE_RTT) {
        fits = leat_header_write_short(&out->w, dcid, conn->grease.spin, conn->rekey.tx_phase & 1,
                                       number, out->pn_len);
        leat_grease_first(&conn->grease, &leat_conn_shared_of(conn)->random, at);
    } else {
        if (pn->space == LEAT_SPACE_INITIAL && conn->hs->token.len > 0) {
            token = (leat_span){conn->hs->token.data, conn->hs->token.len};
        }
        fits = leat_header_write_long(&out->w, &out->header, out->type,
                                      out->keys->schedule->version, dcid,
                                      &conn->local_cids.entry[0].cid, token, number, out->pn_len);
    }
    out->payload = out->w.at;
    if (!fits || leat_writer_left(&out->w) < LEAT_PN_LEN_MAX) {
        leat_sent_abort(&pn->sent);
        return false;
    }
    return true;
}

static void packet_pad(leat_packet_out *out, size_t n)
{
    if (n > 0 && leat_frame_write_padding(&out->w, n)) {
        out->in_flight = true; /* RFC 9002 s2 */
    }
}

/* What is written has room for the sample of header protection (RFC 9001 s5.4.2): to be said before
 * anything is written behind the packet. */
static void packet_fill_up(leat_packet_out *out)
{
    size_t payload = (size_t)(out->w.at - out->payload);
    size_t least = leat_header_min_payload(out->pn_len);

    if (payload < least) {
        packet_pad(out, least - payload);
    }
}

/* Brings a datagram that ends with this packet, `before` bytes in front of it, to the size that an
 * Initial in it needs. */
static LEAT_SELDOM void packet_pad_datagram(leat_packet_out *out, size_t before)
{
    size_t used = before + (size_t)(out->w.at - out->start) + LEAT_AEAD_TAG;
    size_t left = leat_writer_left(&out->w);

    if (used < LEAT_INITIAL_MIN_SIZE) {
        size_t want = LEAT_INITIAL_MIN_SIZE - used;

        packet_pad(out, want < left ? want : left);
    }
}

/* Completes the packet; returns its bytes, tag included. */
static size_t packet_close(leat_send_batch *batch, leat_packet_out *out)
{
    leat_conn *conn = batch->conn;
    leat_pnspace *pn = out->pn;
    size_t payload = (size_t)(out->w.at - out->payload);
    leat_seal_op *op;
    size_t len;
    uint8_t flags = 0;

    LEAT_ASSERT(payload >= leat_header_min_payload(out->pn_len));
    if (out->type != LEAT_PACKET_ONE_RTT) {
        leat_header_finish_long(&out->header, payload + LEAT_AEAD_TAG);
    }
    len = (size_t)(out->w.at - out->start) + LEAT_AEAD_TAG;
    op = batch_op(batch, out->keys);
    *op = (leat_seal_op){
        .packet = out->start,
        .pn = leat_sent_next_pn(&pn->sent),
        .header_len = (uint32_t)(out->payload - out->start),
        .payload_len = (uint32_t)payload,
        .pn_len = (uint8_t)out->pn_len,
    };
    flags |= out->eliciting ? LEAT_SENT_ELICITING : 0;
    flags |= out->in_flight || out->eliciting ? LEAT_SENT_IN_FLIGHT : 0;
    if (out->probe) {
        flags |= LEAT_SENT_MTU_PROBE;
    } else {
        leat_mtu_on_sent(&conn->mtu, len);
    }
    if (batch->ecn == LEAT_ECN_ECT0) {
        flags |= LEAT_SENT_ECT0;
        leat_ecn_on_sent(&conn->ecn, &pn->ecn);
    }
    if (leat_trace_on(conn)) {
        leat_trace_out(out, batch->path, op->pn, len, batch->ecn);
    }
    leat_sent_commit(&pn->sent, batch->now, (uint16_t)len, flags, out->path);
    conn->count.packets_sent++;
    if (leat_conn_tells_news(conn, pn->space)) {
        leat_news_sent(&conn->news, op->pn, batch->now, len, flags);
    }
    batch->in_flight |= (flags & LEAT_SENT_IN_FLIGHT) != 0;
    if ((flags & LEAT_SENT_IN_FLIGHT) && out->path == leat_paths_active(&conn->paths)->number) {
        leat_cc_on_sent(&conn->cc, &conn->flight, batch->now, (uint32_t)len);
        leat_pacer_on_sent(&conn->pacer, batch->now, len);
        batch->paced -= batch->paced < len ? batch->paced : len;
    }
    leat_conn_not_small(conn);
    if (out->eliciting) {
        if (conn->ack_only_idle) {
            conn->last_received = batch->now; /* idle time starts anew (RFC 9000 s10.1) */
            conn->ack_only_idle = false;
        }
        conn->last_sent = batch->now;
        pn->probes -= pn->probes > 0;
    }
    return len;
}

/* ---- one datagram ---- */

/* Congestion control and pacing let a full datagram out. */
static bool window_open(const leat_send_batch *batch)
{
    const leat_conn *conn = batch->conn;

    return batch->paced > 0 && leat_cc_room(&conn->cc, &conn->flight) >= conn->mtu.size;
}

/* A server's Initial that asks for an ACK goes in 1,200 bytes (RFC 9000 s14.1), or waits until so
 * many may be sent. */
static LEAT_SELDOM bool must_wait(const leat_send_batch *batch, const leat_pnspace *pn, size_t room)
{
    return pn->space == LEAT_SPACE_INITIAL && batch->conn->is_server &&
           room < LEAT_INITIAL_MIN_SIZE;
}

/* A client's Initial, in 1,200 bytes even with an ACK alone, is in flight whatever is in it. */
static inline bool is_always_padded(const leat_conn *conn, const leat_pnspace *pn)
{
    return pn->space == LEAT_SPACE_INITIAL && !conn->is_server;
}

/* Writes one level's packet at `at`, left open in *out; false: this level has nothing to say. */
static bool datagram_packet(leat_send_batch *batch, leat_packet_out *out, leat_pnspace *pn,
                            uint8_t *at, size_t room)
{
    bool waits = pn->space != LEAT_SPACE_APP && must_wait(batch, pn, room);
    bool probe = pn->probes > 0 && !waits;
    bool open = probe || (!waits && window_open(batch));
    bool due =
        leat_acks_is_due(&pn->acks, batch->now) && (open || !is_always_padded(batch->conn, pn));

    /* Either probe of the handshake brings the data: a PING alone would tell the peer nothing. */
    if (probe && pn->space != LEAT_SPACE_APP && !leat_frames_waiting(batch->conn, pn)) {
        leat_sent_requeue(&pn->sent, 1);
    }

    if (!leat_packet_keys_ready(packet_keys(batch, pn)) ||
        (!due && !(open && leat_frames_waiting(batch->conn, pn)) && !probe)) {
        return false;
    }
    if (!packet_open(batch, out, pn, at, room, due || probe)) {
        return false;
    }
    /* A probe takes the ACK along even when one went before: that may be lost, and the peer then
     * probes at ever longer intervals, however much it hears from here. */
    if (due || leat_acks_has_news(&pn->acks) || probe) {
        leat_frames_ack(out);
    }
    if (open) {
        leat_frames_fill(out);
    }
    if (probe && !out->eliciting) {
        leat_frames_ping(out);
    }
    if (out->w.at == out->payload) {
        leat_sent_abort(&pn->sent);
        return false;
    }
    packet_fill_up(out);
    return true;
}

/* Whether a datagram with this Initial in it must be as large as RFC 9000 s14.1 says. */
static bool needs_padding(const leat_packet_out *out)
{
    return out->pn->space == LEAT_SPACE_INITIAL && (!out->conn->is_server || out->eliciting);
}

/* A client's Initial keys go when it sends its first Handshake packet (RFC 9001 s4.9.1). */
static void after_datagram(leat_conn *conn, bool handshake)
{
    if (handshake && !conn->is_server) {
        leat_conn_drop_initial(conn);
    }
}

/* Writes one datagram of at most `room` bytes; 0: nothing to say. */
static size_t batch_datagram(leat_send_batch *batch, uint8_t *at, size_t room)
{
    leat_conn *conn = batch->conn;
    leat_packet_out out[2]; /* the one that is open, and the one before it */
    leat_packet_out *open = NULL;
    size_t len = 0;
    bool pad = false, handshake = false;

    for (int space = conn->hs ? LEAT_SPACE_INITIAL : LEAT_SPACE_APP; space < LEAT_SPACES; space++) {
        leat_pnspace *pn = leat_conn_space(conn, (leat_space)space);
        leat_packet_out *next = open == &out[0] ? &out[1] : &out[0];
        /* The open packet's bytes so far are its own: the next one starts behind its tag. */
        size_t used = open ? len + (size_t)(open->w.at - open->start) + LEAT_AEAD_TAG : 0;

        if (!pn || !datagram_packet(batch, next, pn, at + used, room > used ? room - used : 0)) {
            continue;
        }
        if (open) {
            size_t closed = packet_close(batch, open);

            LEAT_ASSERT(len + closed == used);
            len += closed;
        }
        open = next;
        pad |= needs_padding(open);
        handshake |= space == LEAT_SPACE_HANDSHAKE;
    }
    if (!open) {
        return 0;
    }
    if (pad) {
        packet_pad_datagram(open, len);
    }
    len += packet_close(batch, open);
    if (handshake) {
        batch_seal(batch); /* before the Initial keys go */
    }
    after_datagram(conn, handshake);
    return len;
}

/* Somebody wants padding sent, and nothing else waits. */
static bool wants_padding(const leat_conn *conn)
{
    return conn->padding > 0 && conn->confirmed && !conn->hs &&
           !leat_frames_waiting(conn, &conn->app);
}

/* A full datagram of padding, that it may stand in one batch with others. 0: not now. */
static size_t batch_padding(leat_send_batch *batch, uint8_t *at, size_t room)
{
    leat_conn *conn = batch->conn;
    leat_packet_out out;
    size_t len;

    if (room < conn->mtu.size || !wants_padding(conn) || !window_open(batch) ||
        !packet_open(batch, &out, &conn->app, at, room, false)) {
        return 0;
    }
    leat_frames_ping(&out);
    packet_pad(&out, leat_writer_left(&out.w));
    len = packet_close(batch, &out);
    conn->padding -= conn->padding < len ? conn->padding : len;
    return len;
}

/* A datagram of a size to be tried: alone in its batch, for its size is not the others'. */
static LEAT_SELDOM size_t batch_probe(leat_send_batch *batch, size_t size)
{
    leat_conn *conn = batch->conn;
    leat_packet_out out;

    if (batch->paced == 0 || leat_cc_room(&conn->cc, &conn->flight) < size ||
        !packet_open(batch, &out, &conn->app, batch->buf, size, false)) {
        return 0;
    }
    if (!leat_frames_mtu_probe(&out, size)) {
        leat_sent_abort(&conn->app.sent);
        return 0;
    }
    leat_mtu_probe_sent(&conn->mtu, (uint16_t)size);
    return packet_close(batch, &out);
}

/* Whether congestion control lets out what a path wants. The active one has the connection's
 * window, and its probes. All others together have an initial window, which never grows: they carry
 * nothing else. A challenge that is late is a probe after a PTO. */
static LEAT_SELDOM bool path_window_open(const leat_send_batch *batch, const leat_path *path)
{
    const leat_conn *conn = batch->conn;

    if (path->challenge_late) {
        return true;
    }
    if (path == leat_paths_active_const(&conn->paths)) {
        return conn->app.probes > 0 ||
               leat_cc_room(&conn->cc, &conn->flight) >= LEAT_INITIAL_MIN_SIZE;
    }
    return conn->app.sent.aside + LEAT_INITIAL_MIN_SIZE <=
           leat_cc_initial_window(LEAT_INITIAL_MIN_SIZE);
}

/* A datagram with what a path wants for its validation, alone in its batch, for it may go elsewhere
 * than the rest. It is padded (RFC 9000 s8.2.1) where the peer's address may be sent so much; where
 * not, what padding would take is left for a challenge after this one. On the active path an ACK
 * goes along: a packet that is more than a probe takes back a peer that was led away (s9.3.3). 0:
 * not possible now. */
static LEAT_SELDOM size_t batch_path(leat_send_batch *batch, leat_path *path)
{
    leat_conn *conn = batch->conn;
    size_t allowed = leat_path_allowance(path);
    size_t room = batch->cap < LEAT_INITIAL_MIN_SIZE ? batch->cap : LEAT_INITIAL_MIN_SIZE;
    bool full = allowed >= LEAT_INITIAL_MIN_SIZE && room == LEAT_INITIAL_MIN_SIZE;
    leat_packet_out out;

    batch->path = path;
    if (!path_window_open(batch, path) ||
        !packet_open(batch, &out, &conn->app, batch->buf, allowed < room ? allowed : room, true)) {
        return 0;
    }
    leat_frames_path(&out, path, full, leat_migrate_pto(conn));
    if (!out.eliciting) {
        leat_sent_abort(&conn->app.sent);
        return 0;
    }
    if (path != leat_paths_active(&conn->paths)) {
        batch->ecn = LEAT_ECN_NOT_ECT;
    } else if (full && leat_acks_has_news(&conn->app.acks)) {
        leat_frames_ack(&out);
    }
    if (allowed >= room) {
        packet_pad(&out, leat_writer_left(&out.w));
    }
    return packet_close(batch, &out);
}

/* The first of the paths that want something and can have it: one may have no connection ID left,
 * or nothing more to send to an address that is not validated, and must not hold up the others. */
static LEAT_SELDOM bool batch_paths(leat_send_batch *batch)
{
    leat_paths *paths = &batch->conn->paths;
    leat_path *path = NULL;

    while (batch->len == 0 && (path = leat_paths_wanting(paths, path)) != NULL) {
        batch->len = batch_path(batch, path);
    }
    return batch->len > 0;
}

/* ---- the batch ---- */

/* The most that the next datagram may take; 0: no more. */
static size_t batch_room(const leat_send_batch *batch)
{
    size_t room = batch->conn->mtu.size;
    size_t allowed = leat_conn_is_open(batch->conn) ? leat_path_allowance_of_data(batch->path)
                                                    : leat_path_allowance(batch->path);

    if (batch->segment > 0 && batch->segment < room) {
        room = batch->segment;
    }
    if (room > batch->cap - batch->len) {
        return 0; /* a datagram cut short would end the batch too early */
    }
    return room < allowed ? room : allowed;
}

/* Keys that near their limit, or that a batch could bring past it: an update, or the end. */
static LEAT_SELDOM void renew_worn_keys(leat_conn *conn)
{
    bool exhausted = leat_rekey_exhausted(&conn->rekey, LEAT_BATCH_PACKETS);
    leat_time wait = exhausted ? 0 : leat_conn_rekey_wait(conn);

    if (leat_rekey_should_update(&conn->rekey, leat_conn_now(conn), wait)) {
        leat_conn_begin_update(conn);
    } else if (exhausted) {
        leat_conn_fail(conn, LEAT_TE_AEAD_LIMIT_REACHED, 0, "keys used up, and no update possible");
    }
}

static void renew_keys(leat_conn *conn)
{
    if (conn->confirmed && leat_rekey_wants_update(&conn->rekey)) {
        renew_worn_keys(conn);
    }
}

void leat_conn_note_blocked(leat_conn *conn)
{
    size_t allowed = leat_path_allowance_of_data(leat_paths_active(&conn->paths));
    bool initial = conn->is_server && leat_conn_space(conn, LEAT_SPACE_INITIAL);

    conn->loss.blocked = allowed < (initial ? LEAT_INITIAL_MIN_SIZE : 1);
}

/* What there is to do when a batch has ended: why did it, and when does it go on? */
static void batch_end(leat_send_batch *batch)
{
    leat_conn *conn = batch->conn;
    bool room = leat_cc_room(&conn->cc, &conn->flight) >= conn->mtu.size;

    conn->send_at = LEAT_TIME_NEVER;
    leat_conn_note_blocked(conn);
    conn->more = batch->apart || conn->hs || conn->app.probes > 0 ||
                 leat_acks_is_due(&conn->app.acks, batch->now);
    if (room &&
        ((!batch->said_all && leat_frames_waiting(conn, &conn->app)) || wants_padding(conn))) {
        conn->more = true;
        if (batch->paced == 0) {
            conn->send_at = leat_pacer_next_at(&conn->pacer);
        }
    } else if (room) {
        leat_cc_on_app_limited(&conn->cc, &conn->flight, batch->now);
    }
    leat_conn_tell_more(conn); /* datagrams that were too old, or room for more */
    if (batch->datagrams > 0) {
        leat_loss_on_sent(&conn->loss, batch->now, batch->in_flight);
    }
    leat_conn_rearm_usual(conn);
}

/* Larger datagrams have a use: conn/mtu.h. */
static bool wants_larger(const leat_conn *conn)
{
    return conn->confirmed &&
           (leat_datagrams_taken(&conn->datagrams) || leat_streams_wants_send(&conn->streams));
}

/* The size of a probe that may go now; 0: none. On a path that is dark it would tell nothing. */
static size_t batch_probe_size(leat_send_batch *batch)
{
    leat_conn *conn = batch->conn;

    if (!conn->mtu.enabled && wants_larger(conn)) {
        leat_mtu_enable(&conn->mtu);
    }
    return conn->loss.pto_count == 0 ? leat_mtu_probe(&conn->mtu, batch->now) : 0;
}

static void batch_run(leat_send_batch *batch)
{
    leat_conn *conn = batch->conn;
    size_t probe = batch_probe_size(batch);

    if (conn->confirmed && leat_paths_any_wanting(&conn->paths) && batch_paths(batch)) {
        batch->segment = batch->len;
        batch->datagrams = 1;
        batch->apart = true;
        leat_path_on_sent(batch->path, batch->len);
        return;
    }
    batch->path = leat_paths_active(&conn->paths);
    if (probe > 0 && probe <= batch->cap && probe <= leat_path_allowance_of_data(batch->path) &&
        (batch->len = batch_probe(batch, probe)) > 0) {
        batch->segment = batch->len;
        batch->datagrams = 1;
        batch->apart = true;
        leat_path_on_sent(batch->path, batch->len);
        return;
    }
    while (batch->ops_count + LEAT_SPACES <= LEAT_BATCH_PACKETS && leat_conn_is_open(conn)) {
        size_t room = batch_room(batch);
        size_t len = room > 0 ? batch_datagram(batch, batch->buf + batch->len, room) : 0;

        if (len == 0) {
            len = batch_padding(batch, batch->buf + batch->len, room);
        }
        if (len == 0) {
            return;
        }
        batch->len += len;
        batch->datagrams++;
        leat_path_on_sent(batch->path, len);
        if (batch->segment == 0) {
            batch->segment = len;
            /* Not full: mostly because all is said. */
            if (len < room && !conn->hs && conn->app.probes == 0 &&
                !leat_frames_waiting(conn, &conn->app)) {
                batch->said_all = true;
                return;
            }
        } else if (len < batch->segment) {
            return;
        }
    }
}

/* One datagram with CONNECTION_CLOSE. Nobody waits for its acknowledgement. */
static LEAT_SELDOM void batch_close(leat_send_batch *batch)
{
    leat_conn *conn = batch->conn;
    size_t room = batch_room(batch);
    bool pad = !conn->is_server && leat_conn_close_level(conn, LEAT_SPACE_INITIAL);
    leat_packet_out out;

    for (int i = LEAT_SPACE_INITIAL; i <= LEAT_SPACE_APP; i++) {
        leat_space space = (leat_space)i;
        bool last = space == LEAT_SPACE_APP || !leat_conn_close_level(conn, (leat_space)(i + 1));
        leat_frame_connection_close frame;

        if (!leat_conn_close_level(conn, space) || room <= batch->len ||
            !packet_open(batch, &out, leat_conn_space(conn, space), batch->buf + batch->len,
                         room - batch->len, true)) {
            continue;
        }
        frame = leat_conn_close_frame(conn, space);
        if (!leat_frame_write_connection_close(&out.w, &frame)) {
            leat_sent_abort(&out.pn->sent);
            continue;
        }
        packet_fill_up(&out);
        if (last && pad) {
            packet_pad_datagram(&out, batch->len);
        }
        out.in_flight = false;
        batch->len += packet_close(batch, &out);
    }
    batch->segment = batch->len;
    batch->datagrams = batch->len > 0;
    leat_path_on_sent(batch->path, batch->len);
}

static void batch_init(leat_send_batch *batch, leat_conn *conn, uint8_t *buf, size_t cap)
{
    batch->conn = conn;
    batch->path = leat_paths_active(&conn->paths);
    batch->now = leat_conn_now(conn);
    batch->buf = buf;
    batch->cap = cap;
    batch->len = batch->segment = batch->datagrams = batch->ops_count = 0;
    batch->keys = NULL;
    batch->app_keys = app_keys(conn);
    batch->apart = batch->said_all = batch->in_flight = batch->failed = false;
    batch->ecn = leat_ecn_mark(&conn->ecn);
    batch->paced = leat_pacer_budget(&conn->pacer, batch->now);
}

/* What has been sent, and where it goes. */
static size_t batch_told(const leat_send_batch *batch, leat_send_info *info)
{
    leat_conn *conn = batch->conn;

    *info = (leat_send_info){.remote = batch->path->remote,
                             .local = batch->path->local,
                             .ecn = batch->ecn,
                             .segment = batch->segment,
                             .datagrams = batch->datagrams};
    conn->count.datagrams_sent += batch->datagrams;
    conn->count.bytes_sent += batch->len;
    return batch->len;
}

/* What a connection that is not open any more has to say. */
static LEAT_SELDOM size_t send_close(leat_conn *conn, uint8_t *buf, size_t cap,
                                     leat_send_info *info)
{
    leat_send_batch batch;

    conn->more = true;
    batch_init(&batch, conn, buf, cap);
    if (leat_conn_close_due(conn)) {
        batch_close(&batch);
        batch_seal(&batch);
    }
    if (batch.failed) {
        batch.len = batch.segment = batch.datagrams = 0;
    }
    return batch_told(&batch, info);
}

size_t leat_conn_send(leat_conn *conn, uint8_t *buf, size_t cap, leat_send_info *info)
{
    leat_send_batch batch;

    if (leat_conn_is_open(conn)) {
        if (LEAT_LIKELY(leat_sent_next_pn(&conn->app.sent) < LEAT_PN_LAST)) {
            renew_keys(conn);
        } else {
            leat_conn_end(conn, LEAT_CLOSE_LOCAL, LEAT_ERR_LIMIT);
        }
    }
    if (!leat_conn_is_open(conn)) {
        return send_close(conn, buf, cap, info);
    }
    batch_init(&batch, conn, buf, cap);
    if (conn->flight.bytes == 0 && leat_frames_waiting(conn, &conn->app)) {
        leat_cc_on_idle_restart(&conn->cc, &conn->flight, batch.now);
    }
    batch_run(&batch);
    batch_seal(&batch);
    if (batch.failed) {
        leat_conn_fail(conn, LEAT_TE_INTERNAL_ERROR, 0, "packet protection failed");
        return send_close(conn, buf, cap, info); /* whoever sends nothing is not asked again */
    }
    batch_end(&batch);
    return batch_told(&batch, info);
}
