/* tests/unit/conn/test_codes.c: every transport error code (RFC 9000 s20.1, RFC 9001 s4.8, RFC 9368
 * s10.2), provoked from the peer's side: who closes says it, and who is at fault is told it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "echo.h"
#include "endpoint/endpoint.h"
#include "forge.h"

static leat_echo e;

#define PING BYTES(0x01, 0, 0, 0)

static void soon(void)
{
    leat_pair_run(&e.pair, NULL, NULL, 2 * e.setup.delay);
}

static void closed_with(const leat_echo_app *app, leat_close_kind kind, uint64_t code)
{
    assert_int_equal(app->closed, 1);
    assert_int_equal(app->info.kind, kind);
    assert_int_equal(app->info.code, code);
    assert_false(app->info.application);
}

/* Both ends know, and nothing is left of the connection. */
static void ends_with(const leat_echo_app *victim, uint64_t code)
{
    e.pair.filter = NULL;
    leat_echo_settle(&e, LEAT_SECOND);
    closed_with(victim, LEAT_CLOSE_LOCAL, code);
    closed_with(victim == &e.client ? &e.server : &e.client, LEAT_CLOSE_PEER, code);
    leat_echo_finish(&e);
}

/* The same where the server gave up before its application knew of the connection. */
static void client_is_told(uint64_t code)
{
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    closed_with(&e.client, LEAT_CLOSE_PEER, code);
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    assert_int_equal(leat_endpoint_conns(e.pair.client), 0);
    leat_pair_free(&e.pair);
}

/* The client sends this, and the server closes. */
static void server_closes(const void *payload, size_t len, uint64_t code)
{
    leat_echo_establish(&e);
    leat_forge(&e.pair, e.pair.conn, payload, len);
    ends_with(&e.server, code);
}

static void client_closes(const void *payload, size_t len, uint64_t code)
{
    leat_echo_establish(&e);
    leat_forge(&e.pair, e.server.conn, payload, len);
    ends_with(&e.client, code);
}

/* ---- frames ---- */

/* Nobody here sends it alone: a close without an error is the application's. */
static void no_error(void **state)
{
    (void)state;
    leat_echo_establish(&e);
    leat_forge(&e.pair, e.server.conn, BYTES(0x1c, 0, 0, 0));
    soon();
    closed_with(&e.client, LEAT_CLOSE_PEER, LEAT_TE_NO_ERROR);
    leat_pair_free(&e.pair);
}

static void flow_control_error(void **state)
{
    static const uint8_t far[] = {0x0c, 0x00, 0xbf, 0xff, 0xff, 0xff, 'a'};

    (void)state;
    server_closes(far, sizeof(far), LEAT_TE_FLOW_CONTROL_ERROR);
    leat_echo_establish(&e); /* on a stream that the client opened itself */
    {
        leat_stream *stream;
        size_t written;

        assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
        assert_int_equal(leat_stream_write(stream, "a", 1, &written), LEAT_OK);
        leat_echo_settle(&e, LEAT_SECOND);
        leat_forge(&e.pair, e.server.conn, far, sizeof(far));
        ends_with(&e.client, LEAT_TE_FLOW_CONTROL_ERROR);
    }
}

static void stream_limit_error(void **state)
{
    (void)state;
    server_closes(BYTES(0x08, 0x80, 0x04, 0x00, 0x00, 'a'), LEAT_TE_STREAM_LIMIT_ERROR);
    client_closes(BYTES(0x08, 0x80, 0x04, 0x00, 0x03, 'a'), LEAT_TE_STREAM_LIMIT_ERROR);
}

static void stream_state_error(void **state)
{
    (void)state;
    server_closes(BYTES(0x08, 0x01, 'a'), LEAT_TE_STREAM_STATE_ERROR);
    client_closes(BYTES(0x08, 0x00, 'a'), LEAT_TE_STREAM_STATE_ERROR);
}

static void final_size_error(void **state)
{
    (void)state;
    server_closes(BYTES(0x0b, 0x00, 0x02, 'a', 'b', 0x04, 0x00, 0x00, 0x01),
                  LEAT_TE_FINAL_SIZE_ERROR);
    client_closes(BYTES(0x0b, 0x03, 0x02, 'a', 'b', 0x04, 0x03, 0x00, 0x01),
                  LEAT_TE_FINAL_SIZE_ERROR);
}

static void frame_encoding_error(void **state)
{
    (void)state;
    server_closes(BYTES(0x21, 0, 0, 0), LEAT_TE_FRAME_ENCODING_ERROR);
    client_closes(BYTES(0x21, 0, 0, 0), LEAT_TE_FRAME_ENCODING_ERROR);
}

static void connection_id_limit_error(void **state)
{
    leat_forge_payload payload;

    (void)state;
    leat_echo_establish(&e);
    leat_forge_begin(&payload);
    for (uint8_t i = 0; i < 8; i++) {
        leat_frame_new_connection_id frame = {.sequence = 10u + i, .cid = {.len = 8}};

        memset(frame.cid.data, 0xa0 + i, 8);
        memset(frame.reset_token, 0xb0 + i, sizeof(frame.reset_token));
        assert_true(leat_frame_write_new_connection_id(&payload.w, &frame));
    }
    leat_forge_send(&e.pair, e.pair.conn, &payload);
    ends_with(&e.server, LEAT_TE_CONNECTION_ID_LIMIT_ERROR);
}

static void protocol_violation(void **state)
{
    (void)state;
    server_closes(BYTES(0x1e), LEAT_TE_PROTOCOL_VIOLATION);             /* HANDSHAKE_DONE */
    client_closes(BYTES(0x19, 0x3f, 0, 0), LEAT_TE_PROTOCOL_VIOLATION); /* no such ID */
    client_closes(BYTES(0x02, 0x7f, 0xff, 0, 0, 0), LEAT_TE_PROTOCOL_VIOLATION); /* ACK */
}

static void crypto_buffer_exceeded(void **state)
{
    (void)state;
    server_closes(BYTES(0x06, 0x80, 0x10, 0x00, 0x00, 0x01, 'x'), LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    client_closes(BYTES(0x06, 0x80, 0x10, 0x00, 0x00, 0x01, 'x'), LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
}

/* More gaps than leat bears: nothing that the RFC forbids, so it is said to be leat's. */
static void internal_error(void **state)
{
    (void)state;
    leat_echo_establish(&e);
    for (uint64_t i = 0; i < 20000 && !e.server.closed; i++) {
        leat_forge_payload payload;
        leat_data_fit fit = {.len = 1, .fits = true};

        leat_forge_begin(&payload);
        leat_frame_write_stream_head(&payload.w, 0, 2 * i + 1, &fit, false);
        leat_writer_u8(&payload.w, 'x');
        leat_forge_send(&e.pair, e.pair.conn, &payload);
        leat_pair_run(&e.pair, NULL, NULL, LEAT_MICROSECOND);
    }
    ends_with(&e.server, LEAT_TE_INTERNAL_ERROR);
}

/* ---- keys ---- */

/* RFC 9001 s6.4: of two packets the one with the higher number has no older keys. */
static void key_update_error(void **state)
{
    uint64_t ahead;

    (void)state;
    leat_echo_establish(&e);
    ahead = leat_sent_next_pn(&e.pair.conn->app.sent) + 10;
    e.pair.filter = leat_pair_nothing_to_client;
    leat_forge_odd_in(&e.pair, e.pair.conn, LEAT_SPACE_APP, &(leat_forge_odd){.number = &ahead},
                      PING);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_MILLISECOND);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay);
    ends_with(&e.server, LEAT_TE_KEY_UPDATE_ERROR);
}

static void aead_limit_reached(void **state)
{
    uint8_t packet[40] = {0x40};
    const leat_cid *id;

    (void)state;
    leat_echo_establish(&e);
    e.server.conn->rekey.forged = (UINT64_C(1) << 52) - 1;
    id = &e.server.conn->local_cids.entry[0].cid;
    memcpy(packet + 1, id->data, id->len);
    leat_pair_inject(&e.pair, true, packet, sizeof(packet));
    ends_with(&e.server, LEAT_TE_AEAD_LIMIT_REACHED);
}

/* ---- the handshake ---- */

static void connection_refused(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
    leat_endpoint_close(e.pair.server, 0);
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    client_is_told(LEAT_TE_CONNECTION_REFUSED);
}

/* RFC 9000 s7.3: each ID that a side's parameters name is compared with what the other has seen. */
static void transport_parameter_error(void **state)
{
    static const uint8_t head[] = {0x06, 0, 1, 1}; /* CRYPTO: the first byte of a ClientHello */
    leat_cid *own;

    (void)state;
    for (unsigned retry = 0; retry < 2; retry++) {
        leat_echo_prepare(&e);
        leat_echo_begin(&e);
        while (leat_endpoint_conns(e.pair.server) == 0) {
            assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
        }
        if (retry) { /* the client has seen one, and the server says nothing of it */
            e.pair.conn->hs->has_retry = true;
        } else { /* the client began with another ID */
            e.pair.conn->odcid.data[0] ^= 1;
        }
        leat_pair_run(&e.pair, leat_echo_client_closed, &e, LEAT_SECOND);
        leat_pair_run(&e.pair, NULL, NULL, 10 * LEAT_MILLISECOND);
        closed_with(&e.client, LEAT_CLOSE_LOCAL, LEAT_TE_TRANSPORT_PARAMETER_ERROR);
        closed_with(&e.server, LEAT_CLOSE_PEER, LEAT_TE_TRANSPORT_PARAMETER_ERROR);
        e.pair.conn->odcid.data[0] ^= retry ? 0 : 1; /* it is known by that name */
        leat_pair_free(&e.pair);
    }
    /* The client's packets have another source ID than its parameters. */
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    leat_forge_in(&e.pair, e.pair.conn, LEAT_SPACE_INITIAL, head, sizeof(head));
    leat_ctx_turn(e.pair.ctx, e.pair.now);
    own = &e.pair.conn->local_cids.entry[0].cid;
    own->data[0] ^= 1;
    leat_echo_server_conn(&e)->hs->first_scid = *own;
    leat_pair_run(&e.pair, NULL, NULL, 8 * LEAT_MILLISECOND);
    closed_with(&e.server, LEAT_CLOSE_LOCAL, LEAT_TE_TRANSPORT_PARAMETER_ERROR);
    own->data[0] ^= 1;
    leat_pair_free(&e.pair);
}

/* What has a token comes from another port than the Retry went to. */
static bool move_with_token(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    if (!to_server || leat_header_parse(data, *len, LEAT_CID_LEN_DEFAULT, &header) != LEAT_OK ||
        header.token.len == 0) {
        return true;
    }
    pair->nat = pair->client_addr;
    pair->nat.port++;
    leat_pair_inject_from(pair, &pair->nat, data, *len);
    return false;
}

/* The token of a Retry, good but for the address that it comes from. */
static void invalid_token(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = true;
    leat_echo_begin(&e);
    e.pair.filter = move_with_token;
    client_is_told(LEAT_TE_INVALID_TOKEN);
}

static void application_error(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    e.pair.filter = leat_pair_nothing_to_client;
    while (leat_endpoint_conns(e.pair.server) == 0) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    leat_conn_close(e.pair.conn, 42, (leat_span){NULL, 0});
    leat_pair_run(&e.pair, NULL, NULL, 10 * LEAT_MILLISECOND);
    closed_with(&e.server, LEAT_CLOSE_PEER, LEAT_TE_APPLICATION_ERROR);
    leat_pair_free(&e.pair);
}

/* Answers the client's first Initial with a Version Negotiation that hides version 1. */
static bool hide_version_1(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    static const uint32_t only_2[] = {LEAT_QUIC_V2};
    uint8_t packet[100];
    leat_header header;
    leat_writer w;

    assert_true(to_server);
    assert_int_equal(leat_header_parse(data, *len, LEAT_CID_LEN_DEFAULT, &header), LEAT_OK);
    leat_writer_init(&w, packet, sizeof(packet));
    assert_true(
        leat_header_write_version_negotiation(&w, header.scid, header.dcid, only_2, 1, 0, 0));
    leat_pair_inject(pair, false, packet, leat_writer_len(&w));
    pair->filter = NULL;
    return false;
}

static void version_negotiation_error(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.versions[0] = LEAT_QUIC_V2; /* it stays with what the client comes with */
    e.setup.server.conn.versions[1] = LEAT_QUIC_V1;
    leat_echo_begin(&e);
    e.pair.filter = hide_version_1;
    leat_pair_run(&e.pair, leat_echo_client_closed, &e, LEAT_SECOND);
    ends_with(&e.client, LEAT_TE_VERSION_NEGOTIATION_ERROR);
}

static void crypto_error(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.client_alpn = "something-else";
    leat_echo_begin(&e);
    leat_pair_run(&e.pair, leat_echo_both_closed, &e, LEAT_SECOND);
    ends_with(&e.server, LEAT_TE_CRYPTO_ERROR + 120); /* no_application_protocol */
}

/* ---- paths ---- */

/* A client that comes from elsewhere and does not answer, when there is no path to go back to. */
static void no_viable_path(void **state)
{
    leat_conn *server;
    leat_stream *stream;
    size_t written;

    (void)state;
    leat_echo_establish(&e);
    server = e.server.conn;
    e.pair.nat = e.pair.client_addr;
    e.pair.nat.port++;
    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, "a", 1, &written), LEAT_OK);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.delay);
    e.pair.filter = leat_pair_nothing_to_server;
    assert_true(leat_addr_equal(leat_conn_remote(server), &e.pair.nat));
    assert_false(leat_paths_active(&server->paths)->validated);
    server->paths.fallback = server->paths.active;
    while (!e.server.closed) {
        assert_true(leat_pair_step(&e.pair, e.pair.now + LEAT_SECOND));
    }
    /* It had sent all that it may; what comes from there is answered. */
    leat_forge(&e.pair, e.pair.conn, PING);
    ends_with(&e.server, LEAT_TE_NO_VIABLE_PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error),
        cmocka_unit_test(internal_error),
        cmocka_unit_test(connection_refused),
        cmocka_unit_test(flow_control_error),
        cmocka_unit_test(stream_limit_error),
        cmocka_unit_test(stream_state_error),
        cmocka_unit_test(final_size_error),
        cmocka_unit_test(frame_encoding_error),
        cmocka_unit_test(transport_parameter_error),
        cmocka_unit_test(connection_id_limit_error),
        cmocka_unit_test(protocol_violation),
        cmocka_unit_test(invalid_token),
        cmocka_unit_test(application_error),
        cmocka_unit_test(crypto_buffer_exceeded),
        cmocka_unit_test(key_update_error),
        cmocka_unit_test(aead_limit_reached),
        cmocka_unit_test(no_viable_path),
        cmocka_unit_test(version_negotiation_error),
        cmocka_unit_test(crypto_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
