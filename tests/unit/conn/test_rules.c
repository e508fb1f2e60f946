/* tests/unit/conn/test_rules.c: what RFC 9000 and RFC 9001 say must be done, or not, with packets
 * of the handshake, of the end, and with keys: rules that no other test here is about
 * (docs/RFC.md).
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/retry.h"
#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"
#include "wire/header.h"

static leat_echo e;

#define UNKNOWN BYTES(0x21) /* a frame that closes whoever reads it */
#define HEARD   BYTES(0x01) /* PING */

static bool drop_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

static bool nothing_passes(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

static bool server_started(void *arg)
{
    (void)arg;
    return leat_endpoint_conns(e.pair.server) > 0;
}

/* The server has answered, and the client has not heard of it. */
static leat_conn *in_the_handshake(void)
{
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = drop_to_client;
    assert_true(leat_pair_run(&e.pair, server_started, NULL, LEAT_SECOND));
    leat_pair_run(&e.pair, NULL, NULL, 10 * LEAT_MILLISECOND);
    return LEAT_CONTAINER_OF(leat_list_first(&e.pair.server->conns), leat_conn, host_link);
}

static void soon(void)
{
    leat_pair_run(&e.pair, NULL, NULL, 10 * LEAT_MILLISECOND);
}

static void expect_unknown_frame(const leat_echo_app *app)
{
    soon();
    assert_int_equal(app->closed, 1);
    assert_int_equal(app->info.code, LEAT_TE_FRAME_ENCODING_ERROR);
}

/* ---- Initials ---- */

/* RFC 9000 s14.1: not only the first one of a connection. */
static void an_initial_in_a_small_datagram_is_dropped(void **state)
{
    leat_conn *server;

    (void)state;
    server = in_the_handshake();
    leat_forge_initial(&e.pair, e.pair.conn, &(leat_forge_odd){.size = 1199}, UNKNOWN);
    soon();
    assert_true(leat_conn_is_open(server));
    leat_forge_initial(&e.pair, e.pair.conn, &(leat_forge_odd){.size = 1200}, UNKNOWN);
    soon();
    assert_false(leat_conn_is_open(server));
    leat_pair_free(&e.pair);
}

/* s17.2.2 */
static void a_servers_initial_with_a_token_is_dropped(void **state)
{
    leat_conn *server = in_the_handshake();
    leat_forge_odd odd = {.token = {(const uint8_t *)"token", 5}};

    (void)state;
    leat_forge_initial(&e.pair, server, &odd, UNKNOWN);
    soon();
    assert_int_equal(e.client.closed, 0);
    odd.token.len = 0;
    leat_forge_initial(&e.pair, server, &odd, UNKNOWN);
    expect_unknown_frame(&e.client);
    leat_pair_free(&e.pair);
}

/* s7.2: the source ID of the first packet holds for all of the handshake. */
static void another_source_id_is_dropped(void **state)
{
    leat_conn *server = in_the_handshake();
    leat_cid other = {.len = 8, .data = {1, 2, 3, 4, 5, 6, 7, 8}};

    (void)state;
    leat_forge_initial(&e.pair, server, &(leat_forge_odd){0}, HEARD);
    soon();
    assert_true(leat_cid_equal(leat_remote_cids_current(&e.pair.conn->remote_cids),
                               &server->local_cids.entry[0].cid));
    leat_forge_initial(&e.pair, server, &(leat_forge_odd){.scid = &other}, UNKNOWN);
    soon();
    assert_int_equal(e.client.closed, 0);
    leat_forge_initial(&e.pair, server, &(leat_forge_odd){0}, UNKNOWN);
    expect_unknown_frame(&e.client);
    leat_pair_free(&e.pair);
}

static bool initials_are_padded(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *seen = pair->user;
    leat_header header;

    if (leat_header_parse(data, *len, LEAT_CID_LEN_DEFAULT, &header) == LEAT_OK &&
        header.type == LEAT_PACKET_INITIAL) {
        /* A server's later ones only acknowledge, and need no padding. */
        assert_true(*len >= 1200 || (!to_server && seen[0] > 0));
        seen[to_server]++;
    }
    return true;
}

static void datagrams_with_an_initial_are_padded(void **state)
{
    unsigned seen[2] = {0, 0};

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = initials_are_padded;
    e.pair.user = seen;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    assert_true(seen[0] > 0);
    assert_true(seen[1] > 1);
    leat_echo_finish(&e);
}

/* ---- Retry, Version Negotiation ---- */

static void send_retry_of(uint32_t version, bool to_server, const leat_cid *dcid,
                          const leat_cid *scid, size_t token_len)
{
    const leat_cid *odcid = &e.pair.conn->odcid;
    uint8_t packet[200];
    leat_writer w;
    size_t len;

    leat_writer_init(&w, packet, sizeof(packet));
    assert_true(leat_header_write_retry(&w, version, dcid, scid,
                                        (leat_span){(const uint8_t *)"0123456789", 10}, 0));
    len = leat_writer_len(&w) - 10 + token_len; /* the token is at its end */
    leat_retry_tag(leat_schedule_for(version), odcid->data, odcid->len, packet, len, packet + len);
    leat_pair_inject(&e.pair, to_server, packet, len + LEAT_RETRY_TAG);
    soon();
}

static void send_retry(bool to_server, const leat_cid *dcid, const leat_cid *scid, size_t token_len)
{
    send_retry_of(LEAT_QUIC_V1, to_server, dcid, scid, token_len);
}

/* s17.2.5.2 */
static void a_retry_without_sense_is_dropped(void **state)
{
    leat_cid scid = {.len = 8, .data = {9, 8, 7, 6, 5, 4, 3, 2}};
    const leat_cid *client;

    (void)state;
    (void)in_the_handshake();
    client = &e.pair.conn->local_cids.entry[0].cid;
    send_retry(false, client, &e.pair.conn->odcid, 10); /* it changes nothing */
    assert_false(e.pair.conn->hs->has_retry);
    send_retry(false, client, &scid, 0);
    assert_false(e.pair.conn->hs->has_retry);
    send_retry_of(LEAT_QUIC_V2, false, client, &scid, 10); /* RFC 9369 s4.1 */
    assert_false(e.pair.conn->hs->has_retry);
    send_retry(false, client, &scid, 10);
    assert_true(e.pair.conn->hs->has_retry);
    leat_pair_free(&e.pair);
}

/* s17.2.5.2: one at most, and none after an Initial. s17.2.5.3: numbers go on. */
static void a_retry_is_followed_once_and_before_anything_else(void **state)
{
    leat_cid first = {.len = 8, .data = {9, 8, 7, 6, 5, 4, 3, 2}};
    leat_cid second = {.len = 8, .data = {1, 1, 1, 1, 1, 1, 1, 1}};
    leat_conn *server = in_the_handshake(), *client = e.pair.conn;
    uint64_t next = leat_sent_next_pn(&client->hs->spaces[LEAT_SPACE_INITIAL].sent);

    (void)state;
    assert_true(next > 0);
    send_retry(false, &client->local_cids.entry[0].cid, &first, 10);
    assert_true(leat_cid_equal(leat_remote_cids_current(&client->remote_cids), &first));
    assert_true(leat_sent_next_pn(&client->hs->spaces[LEAT_SPACE_INITIAL].sent) > next);
    send_retry(false, &client->local_cids.entry[0].cid, &second, 10);
    assert_true(leat_cid_equal(leat_remote_cids_current(&client->remote_cids), &first));
    leat_pair_free(&e.pair);

    server = in_the_handshake();
    client = e.pair.conn;
    leat_forge_initial(&e.pair, server, &(leat_forge_odd){0}, HEARD);
    soon();
    assert_true(client->hs->saw_packet);
    send_retry(false, &client->local_cids.entry[0].cid, &first, 10);
    assert_false(client->hs->has_retry);
    assert_false(leat_cid_equal(leat_remote_cids_current(&client->remote_cids), &first));
    leat_pair_free(&e.pair);
}

/* s17.2.5, s17.2.1: neither is for a server. */
static void a_server_follows_neither_retry_nor_version_negotiation(void **state)
{
    leat_conn *server = in_the_handshake();
    leat_cid id = server->local_cids.entry[0].cid;
    static const uint32_t versions[] = {0x1a2a3a4a};
    uint8_t packet[100];
    leat_writer w;

    (void)state;
    send_retry(true, &id, &e.pair.conn->odcid, 10);
    leat_writer_init(&w, packet, sizeof(packet));
    assert_true(leat_header_write_version_negotiation(
        &w, leat_cid_span(&id), leat_cid_span(&e.pair.conn->odcid), versions, 1, 0, 0));
    leat_pair_inject(&e.pair, true, packet, leat_writer_len(&w));
    e.pair.filter = NULL;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_finish(&e);
}

static size_t write_version_negotiation(uint8_t packet[100], uint32_t version, const leat_cid *dcid,
                                        const leat_cid *scid)
{
    leat_writer w;

    leat_writer_init(&w, packet, 100);
    assert_true(leat_header_write_version_negotiation(&w, leat_cid_span(dcid), leat_cid_span(scid),
                                                      &version, 1, 0, 0));
    return leat_writer_len(&w);
}

static void send_version_negotiation(uint32_t version)
{
    leat_conn *conn = e.pair.conn;
    uint8_t packet[100];
    size_t len =
        write_version_negotiation(packet, version, &conn->local_cids.entry[0].cid, &conn->odcid);

    leat_pair_inject(&e.pair, false, packet, len);
    soon();
}

/* s6.2 */
static void version_negotiation_after_another_packet_is_dropped(void **state)
{
    (void)state;
    leat_forge_initial(&e.pair, in_the_handshake(), &(leat_forge_odd){0}, HEARD);
    soon();
    send_version_negotiation(0x1a2a3a4a);
    assert_int_equal(e.client.closed, 0);
    leat_pair_free(&e.pair);
    (void)in_the_handshake();
    send_version_negotiation(0x1a2a3a4a); /* before any */
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_VERSION);
    leat_pair_free(&e.pair);
}

/* A client that has sent its first Initial and hears nothing. */
static leat_conn *alone_in_the_handshake(void)
{
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = nothing_passes;
    soon();
    return e.pair.conn;
}

/* s6.2: an earlier Version Negotiation, and a Retry, are other packets too. */
static void version_negotiation_after_one_like_it_or_a_retry_is_dropped(void **state)
{
    leat_cid scid = {.len = 8, .data = {9, 8, 7, 6, 5, 4, 3, 2}};
    leat_conn *client;

    (void)state;
    client = alone_in_the_handshake();
    send_version_negotiation(LEAT_QUIC_V2);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    send_version_negotiation(LEAT_QUIC_V1);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    send_version_negotiation(0x1a2a3a4a);
    assert_int_equal(e.client.closed, 0);
    leat_pair_free(&e.pair);

    client = alone_in_the_handshake();
    send_retry(false, &client->local_cids.entry[0].cid, &scid, 10);
    assert_true(client->hs->has_retry);
    send_version_negotiation(LEAT_QUIC_V2);
    assert_int_equal(client->version, LEAT_QUIC_V1);
    send_version_negotiation(0x1a2a3a4a);
    assert_int_equal(e.client.closed, 0);
    leat_pair_free(&e.pair);
}

/* RFC 8999 s6: whoever has not seen the Initial does not know both of its IDs. */
static void version_negotiation_with_other_ids_is_dropped(void **state)
{
    leat_cid other = {.len = 8, .data = {1, 2, 3, 4, 5, 6, 7, 8}};
    leat_conn *client = alone_in_the_handshake();

    (void)state;
    for (unsigned wrong = 1; wrong < 4; wrong++) {
        const leat_cid *own = &client->local_cids.entry[0].cid;
        uint8_t packet[100];
        size_t len = write_version_negotiation(packet, LEAT_QUIC_V2, wrong & 1 ? &other : own,
                                               wrong & 2 ? &other : &client->odcid);
        leat_header header;
        bool give_up;

        assert_int_equal(leat_header_parse(packet, len, 8, &header), LEAT_OK);
        assert_false(leat_version_on_negotiation(client, &header, &give_up));
        assert_false(give_up);
        assert_int_equal(client->version, LEAT_QUIC_V1);
    }
    send_version_negotiation(LEAT_QUIC_V2);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    leat_pair_free(&e.pair);
}

/* RFC 9369 s5: a token that the application brings is of one version, and is not taken into the
 * next. */
static void a_token_is_not_taken_into_another_version(void **state)
{
    leat_conn *client = alone_in_the_handshake();

    (void)state;
    client->hs->token = leat_conn_keep(client, "of version 1", 12);
    send_version_negotiation(LEAT_QUIC_V2);
    assert_int_equal(client->version, LEAT_QUIC_V2);
    assert_int_equal(client->hs->token.len, 0);
    leat_pair_free(&e.pair);
}

/* RFC 9368 s8: one that does not know version_information speaks version 1 alone, and Version
 * Negotiation of it may be followed; one of version 2 has to know it. */
static void a_server_that_only_speaks_version_1_is_believed(void **state)
{
    leat_tparams none;
    const char *why;
    bool changed;

    (void)state;
    leat_tparams_init(&none);
    leat_echo_prepare(&e);
    e.setup.conn.version = LEAT_QUIC_V2;
    leat_echo_begin(&e);
    e.pair.filter = nothing_passes;
    soon();
    assert_int_equal(leat_version_on_params(e.pair.conn, &none, &changed, &why),
                     LEAT_TE_VERSION_NEGOTIATION_ERROR);
    send_version_negotiation(LEAT_QUIC_V1);
    assert_int_equal(leat_conn_version(e.pair.conn), LEAT_QUIC_V1);
    assert_int_equal(leat_version_on_params(e.pair.conn, &none, &changed, &why), 0);
    leat_pair_free(&e.pair);
}

/* ---- keys ---- */

/* RFC 9001 s4.9.1, s4.9.2: Initial keys go with the first Handshake packet that a client sends and
 * a server processes, Handshake keys when the handshake is confirmed. */
static void keys_go_in_their_time(void **state)
{
    leat_conn *server;
    unsigned steps = 0;
    leat_time until;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.delay = 5 * LEAT_MILLISECOND;
    leat_echo_begin(&e);
    until = e.pair.now + LEAT_SECOND;
    while (leat_pair_step(&e.pair, until) && !(e.pair.conn->confirmed && steps > 4)) {
        const leat_handshake *hs = e.pair.conn->hs;
        leat_link *first = leat_list_first(&e.pair.server->conns);

        steps++;
        assert_true(e.pair.conn->confirmed == (hs == NULL));
        if (hs && leat_sent_next_pn(&hs->spaces[LEAT_SPACE_HANDSHAKE].sent) > 0) {
            assert_false(hs->spaces[LEAT_SPACE_INITIAL].open);
        }
        server = first ? LEAT_CONTAINER_OF(first, leat_conn, host_link) : NULL;
        if (server && server->hs &&
            leat_acks_expected(&server->hs->spaces[LEAT_SPACE_HANDSHAKE].acks) > 0) {
            assert_false(server->hs->spaces[LEAT_SPACE_INITIAL].open);
        }
    }
    assert_true(e.pair.conn->confirmed);
    assert_null(e.server.conn->hs);
    leat_echo_finish(&e);
}

/* Damages the Handshake packets of what goes to the server. */
static bool spoil_handshake(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    size_t at = 0;

    (void)pair;
    while (to_server && at < *len) {
        leat_header header;

        if (leat_header_parse(data + at, *len - at, LEAT_CID_LEN_DEFAULT, &header) != LEAT_OK) {
            break;
        }
        at += header.packet_len;
        if (header.type == LEAT_PACKET_HANDSHAKE) {
            data[at - 1] ^= 1;
        }
    }
    return true;
}

/* RFC 9001 s5.7: a server has the keys for 1-RTT packets before the client has proved anything. */
static void a_server_reads_no_1rtt_before_the_handshake_is_complete(void **state)
{
    leat_stream *stream;
    size_t written;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = spoil_handshake;
    leat_pair_run(&e.pair, NULL, NULL, 100 * LEAT_MILLISECOND);
    assert_int_equal(e.client.connected, 1);
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "early", 5, &written), LEAT_OK);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_SECOND);
    assert_int_equal(e.server.connected, 0);
    assert_int_equal(e.server.opened, 0);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(e.server.connected, 1);
    assert_int_equal(e.server.received, 5);
    leat_echo_finish(&e);
}

static bool short_to_client_are_lost(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *lost = pair->user;

    (void)len;
    if (to_server || (data[0] & 0x80) || *lost == 3) {
        return true;
    }
    ++*lost;
    return false;
}

/* RFC 9000 s13.3 */
static void handshake_done_is_sent_until_it_arrives(void **state)
{
    unsigned lost = 0;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = short_to_client_are_lost;
    e.pair.user = &lost;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    assert_false(e.pair.conn->confirmed);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(lost, 3);
    assert_true(e.pair.conn->confirmed);
    leat_echo_finish(&e);
}

/* A short packet of noise for a connection. */
static void noise_for(const leat_conn *conn, bool to_server)
{
    uint8_t packet[40] = {0x40};
    const leat_cid *id = &conn->local_cids.entry[0].cid;

    memcpy(packet + 1, id->data, id->len);
    leat_pair_inject(&e.pair, to_server, packet, sizeof(packet));
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MICROSECOND);
}

/* s6.6: forgeries of every level count together. */
static void forgeries_of_the_handshake_count(void **state)
{
    leat_conn *server;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = spoil_handshake;
    leat_pair_run(&e.pair, NULL, NULL, 100 * LEAT_MILLISECOND);
    server = LEAT_CONTAINER_OF(leat_list_first(&e.pair.server->conns), leat_conn, host_link);
    assert_true(server->rekey.forged > 0);
    assert_true(leat_conn_is_open(server));
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(e.server.connected, 1);
    server->rekey.forged = (UINT64_C(1) << 52) - 1;
    noise_for(server, true);
    assert_int_equal(server->state, LEAT_CONN_CLOSING);
    assert_int_equal(server->closing.info.code, LEAT_TE_AEAD_LIMIT_REACHED);
    leat_pair_free(&e.pair);
}

/* RFC 9001 s6.1 */
static void a_key_update_waits_for_the_handshake_and_for_the_last_one(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_ERR_STATE);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(e.pair.conn->confirmed);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_ERR_STATE);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    assert_true(leat_rekey_may_update(&e.pair.conn->rekey));
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_ERR_STATE); /* s6.5 */
    e.pair.now += leat_conn_rekey_wait(e.pair.conn);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

static size_t sent_by_client;

static bool count_clients(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    sent_by_client += to_server;
    return true;
}

/* RFC 9001 s6.6: the last batch that the keys have room for may not go past it. */
static void keys_are_not_used_past_their_limit(void **state)
{
    static const uint8_t data[100000];
    leat_stream *stream;
    leat_rekey *rekey;
    uint64_t limit;
    size_t written;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_bytes(&e, 300000, 5 * LEAT_SECOND); /* a window for many packets */
    leat_echo_settle(&e, LEAT_SECOND);
    rekey = &e.pair.conn->rekey;
    limit = leat_packet_keys_info(&rekey->tx)->seal_limit;
    rekey->tx.sealed = limit - 20;
    rekey->acked = false; /* no update is possible */
    sent_by_client = 0;
    e.pair.filter = count_clients;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.code, LEAT_TE_AEAD_LIMIT_REACHED);
    assert_in_range(sent_by_client, 1, 20);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

/* ---- packets ---- */

static uint8_t kept[1500];
static size_t kept_len;

static bool keep_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && *len <= sizeof(kept) && *len > kept_len) {
        memcpy(kept, data, *len);
        kept_len = *len;
    }
    return true;
}

/* RFC 9000 s12.3 */
static void a_packet_that_comes_twice_is_taken_once(void **state)
{
    leat_conn_stats_data before, after;
    leat_stream *stream;
    size_t written;

    (void)state;
    kept_len = 0;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    e.pair.filter = keep_to_server;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "once", 4, &written), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(kept_len > 0);
    leat_conn_stats(e.server.conn, &before);
    leat_pair_inject(&e.pair, true, kept, kept_len);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_conn_stats(e.server.conn, &after);
    assert_int_equal(after.packets_dropped, before.packets_dropped + 1);
    assert_int_equal(after.packets_received, before.packets_received);
    assert_int_equal(e.server.received, 4);
    leat_echo_finish(&e);
}

static size_t to_server_count;

static bool to_server_is_counted(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    to_server_count += to_server;
    return false;
}

/* The client is about to send its packet `next`, and nothing of its is on the way. */
static void at_number(uint64_t next)
{
    leat_sent *sent;

    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    sent = &e.pair.conn->app.sent;
    assert_int_equal(sent->outstanding, 0);
    leat_sent_shrink(sent);
    sent->head = sent->open = sent->next_pn = sent->largest_acked_end = next;
    e.pair.conn->skip_at = UINT64_MAX;
    to_server_count = 0;
    e.pair.filter = to_server_is_counted;
}

static void packet_numbers_end_and_the_connection_without_a_word(void **state)
{
    (void)state;
    at_number(LEAT_PN_LAST - 2);
    leat_echo_write(&e, 8000);
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(e.client.info.err, LEAT_ERR_LIMIT);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_SECOND); /* all that was sent has come by */
    assert_int_equal(to_server_count, 2);
    leat_echo_finish(&e);
}

static void a_close_at_the_end_of_the_numbers_is_not_told(void **state)
{
    (void)state;
    at_number(LEAT_PN_LAST);
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&e.pair, leat_echo_client_closed, &e, 5 * LEAT_SECOND));
    leat_pair_run(&e.pair, NULL, NULL, LEAT_SECOND);
    assert_int_equal(to_server_count, 0);
    leat_echo_finish(&e);
}

static bool to_server_is_watched(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    size_t *least = pair->user;

    (void)data;
    if (*len < least[to_server]) {
        least[to_server] = *len;
    }
    return true;
}

/* s8.2.1, s8.2.2: PATH_CHALLENGE and PATH_RESPONSE come in datagrams of 1,200 bytes. */
static void probes_of_a_path_are_padded(void **state)
{
    leat_addr elsewhere = {.family = 4, .port = 40000, .ip = {10, 9, 9, 9}};
    size_t least[2] = {SIZE_MAX, SIZE_MAX};
    size_t before;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    e.pair.filter = to_server_is_watched;
    e.pair.user = least;
    before = e.pair.datagrams[0];
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    /* Until the first datagrams of each side have arrived. */
    while (e.pair.datagrams[0] == before) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    assert_true(least[1] >= 1200 && least[1] < SIZE_MAX);
    assert_true(least[0] >= 1200 && least[0] < SIZE_MAX);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_echo_finish(&e);
}

/* ---- the end ---- */

/* s10.1: the lesser of what both say. */
static void the_shorter_idle_timeout_holds_for_both(void **state)
{
    leat_time begin;

    (void)state;
    for (int i = 0; i < 2; i++) {
        leat_echo_prepare(&e);
        e.setup.conn.idle_timeout = (i == 0 ? 60 : 5) * LEAT_SECOND;
        e.setup.server.conn.idle_timeout = (i == 0 ? 5 : 60) * LEAT_SECOND;
        leat_echo_connect(&e);
        begin = e.pair.now;
        assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 20 * LEAT_SECOND));
        assert_true(e.pair.now - begin < 7 * LEAT_SECOND);
        assert_int_equal(e.client.info.kind, LEAT_CLOSE_IDLE);
        assert_int_equal(e.server.info.kind, LEAT_CLOSE_IDLE);
        leat_pair_free(&e.pair);
    }
}

/* s10.1: on a long path no shorter than three PTOs, whatever was said. */
static void the_idle_timeout_is_three_ptos_at_least(void **state)
{
    leat_time begin, pto;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.delay = 300 * LEAT_MILLISECOND;
    e.setup.conn.idle_timeout = e.setup.server.conn.idle_timeout = LEAT_SECOND;
    leat_echo_begin(&e);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    e.pair.filter = nothing_passes;
    begin = e.pair.now;
    pto = leat_loss_pto(&e.pair.conn->loss, LEAT_SPACE_APP);
    assert_true(3 * pto > 3 * LEAT_SECOND / 2);
    leat_pair_run(&e.pair, NULL, NULL, 3 * LEAT_SECOND / 2);
    assert_int_equal(e.client.closed + e.server.closed, 0);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 30 * LEAT_SECOND));
    assert_int_equal(e.client.info.kind, LEAT_CLOSE_IDLE);
    assert_int_equal(e.server.info.kind, LEAT_CLOSE_IDLE);
    assert_true(e.pair.now - begin >= 3 * LEAT_SECOND / 2);
    leat_pair_free(&e.pair);
}

/* s10.2.3: who reads an Initial has proved nothing. */
static void an_application_close_before_1rtt_hides_its_code(void **state)
{
    leat_conn *server = in_the_handshake();

    (void)state;
    assert_int_equal(server->state, LEAT_CONN_HANDSHAKE);
    leat_conn_close(e.pair.conn, 42, (leat_span){(const uint8_t *)"secret", 6});
    soon();
    assert_int_equal(server->state, LEAT_CONN_DRAINING);
    assert_false(server->closing.info.application);
    assert_int_equal(server->closing.info.code, LEAT_TE_APPLICATION_ERROR);
    assert_int_equal(server->closing.info.reason.len, 0);
    leat_pair_free(&e.pair);
}

/* s10.2.1: answers get fewer. s10.2.2: whoever was told sends nothing. */
static void closing_answers_ever_more_seldom_and_draining_never(void **state)
{
    leat_conn *conn;
    uint64_t before;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    e.pair.filter = nothing_passes;
    conn = e.pair.conn;
    before = conn->count.packets_sent;
    leat_conn_close(conn, 0, (leat_span){NULL, 0});
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MICROSECOND);
    assert_int_equal(conn->count.packets_sent, before + 1);
    for (int i = 1; i < 16; i++) {
        noise_for(conn, false);
    }
    assert_int_equal(conn->count.packets_sent, before + 1 + 4); /* after 1, 2, 4, 8 */
    assert_int_equal(e.server.closed, 0);
    e.pair.filter = NULL;
    noise_for(conn, false); /* the 16th */
    assert_int_equal(conn->count.packets_sent, before + 1 + 5);
    conn = e.server.conn;
    before = conn->count.packets_sent;
    leat_pair_run(&e.pair, NULL, NULL, 50 * LEAT_MILLISECOND);
    assert_int_equal(e.server.closed, 1);
    for (int i = 0; i < 16; i++) {
        noise_for(conn, true);
    }
    assert_int_equal(conn->count.packets_sent, before);
    leat_pair_free(&e.pair);
}

/* ---- packet numbers ---- */

static struct {
    uint8_t data[1500];
    size_t len, later;
} late;

/* The first datagram to the server comes after the next 200. */
static bool keep_the_first(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    if (!to_server) {
        return true;
    }
    if (late.len == 0) {
        memcpy(late.data, data, *len);
        late.len = *len;
        return false;
    }
    if (++late.later == 200) {
        leat_pair_inject(pair, true, late.data, late.len);
    }
    return true;
}

/* When it was sent nothing else was on its way, so that a number of one byte would have done. */
static void a_packet_that_two_hundred_overtake_is_taken(void **state)
{
    uint64_t dropped;

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_bytes(&e, 2000000, 10 * LEAT_SECOND); /* the window grows */
    leat_echo_settle(&e, LEAT_SECOND);
    dropped = e.server.conn->count.packets_dropped;
    late.len = late.later = 0;
    e.pair.filter = keep_the_first;
    leat_echo_bytes(&e, 1000000, 10 * LEAT_SECOND);
    assert_true(late.later >= 200);
    assert_int_equal(e.server.conn->count.packets_dropped, dropped);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_initial_in_a_small_datagram_is_dropped),
        cmocka_unit_test(a_servers_initial_with_a_token_is_dropped),
        cmocka_unit_test(another_source_id_is_dropped),
        cmocka_unit_test(datagrams_with_an_initial_are_padded),
        cmocka_unit_test(a_retry_without_sense_is_dropped),
        cmocka_unit_test(a_retry_is_followed_once_and_before_anything_else),
        cmocka_unit_test(a_server_follows_neither_retry_nor_version_negotiation),
        cmocka_unit_test(version_negotiation_after_another_packet_is_dropped),
        cmocka_unit_test(version_negotiation_after_one_like_it_or_a_retry_is_dropped),
        cmocka_unit_test(version_negotiation_with_other_ids_is_dropped),
        cmocka_unit_test(a_token_is_not_taken_into_another_version),
        cmocka_unit_test(a_server_that_only_speaks_version_1_is_believed),
        cmocka_unit_test(keys_go_in_their_time),
        cmocka_unit_test(a_server_reads_no_1rtt_before_the_handshake_is_complete),
        cmocka_unit_test(a_key_update_waits_for_the_handshake_and_for_the_last_one),
        cmocka_unit_test(keys_are_not_used_past_their_limit),
        cmocka_unit_test(handshake_done_is_sent_until_it_arrives),
        cmocka_unit_test(forgeries_of_the_handshake_count),
        cmocka_unit_test(a_packet_that_comes_twice_is_taken_once),
        cmocka_unit_test(packet_numbers_end_and_the_connection_without_a_word),
        cmocka_unit_test(a_close_at_the_end_of_the_numbers_is_not_told),
        cmocka_unit_test(probes_of_a_path_are_padded),
        cmocka_unit_test(the_shorter_idle_timeout_holds_for_both),
        cmocka_unit_test(the_idle_timeout_is_three_ptos_at_least),
        cmocka_unit_test(an_application_close_before_1rtt_hides_its_code),
        cmocka_unit_test(closing_answers_ever_more_seldom_and_draining_never),
        cmocka_unit_test(a_packet_that_two_hundred_overtake_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
