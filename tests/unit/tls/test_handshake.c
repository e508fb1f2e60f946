/* Handshakes that succeed, and what both ends then know.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <stdio.h>

#include "../crypto/alloc_count.h"
#include "crypto/keys.h"

static struct identity identity;
static struct pair pair;

static int make_one_identity(void **state)
{
    (void)state;
    make_identity(&identity, DATE_2000, DATE_2099);
    return 0;
}

static void assert_span(leat_span span, const char *text)
{
    assert_int_equal(span.len, strlen(text));
    assert_memory_equal(span.data, text, span.len);
}

/* What one sends with, the other receives with; and nobody has secrets that QUIC has no use for. */
static void assert_same_secrets(const struct pair *p, leat_aead aead)
{
    for (int level = 0; level < LEAT_LEVEL_COUNT; level++) {
        bool used = level == LEAT_LEVEL_HANDSHAKE || level == LEAT_LEVEL_ONE_RTT;
        for (int dir = LEAT_RX; dir <= LEAT_TX; dir++) {
            const struct secret *c = &p->client.secrets[level][dir];
            const struct secret *s = &p->server.secrets[level][dir == LEAT_RX ? LEAT_TX : LEAT_RX];
            assert_int_equal(c->set, used);
            assert_int_equal(s->set, used);
            if (!used) {
                continue;
            }
            assert_int_equal(c->aead, aead);
            assert_int_equal(s->aead, aead);
            assert_memory_equal(c->bytes, s->bytes, c->len);
        }
    }
}

static void assert_complete(struct pair *p, leat_aead aead)
{
    leat_aead got;
    assert_true(leat_tls_complete(p->client.tls));
    assert_true(leat_tls_complete(p->server.tls));
    assert_int_equal(leat_tls_read_level(p->client.tls), LEAT_LEVEL_ONE_RTT);
    assert_int_equal(leat_tls_read_level(p->server.tls), LEAT_LEVEL_ONE_RTT);
    assert_same_secrets(p, aead);
    assert_true(leat_tls_aead(p->client.tls, &got));
    assert_int_equal(got, aead);
    assert_true(leat_tls_aead(p->server.tls, &got));
    assert_int_equal(got, aead);
    assert_span(leat_tls_alpn(p->client.tls), "hq-interop");
    assert_span(leat_tls_alpn(p->server.tls), "hq-interop");
    assert_span(leat_tls_sni(p->server.tls), "leat.example");
    assert_span(leat_tls_peer_params(p->server.tls), "the client's parameters");
    assert_span(leat_tls_peer_params(p->client.tls), "and the server's");
    assert_int_equal(p->client.params_len, 16);
    assert_memory_equal(p->server.params, "the client's parameters", 23);
    assert_string_equal(leat_tls_verify_text(p->client.tls), "certificate: verified");
    assert_true(leat_tls_peer_certificate(p->client.tls).len > 100);
    assert_int_equal(leat_tls_peer_certificate(p->server.tls).len, 0);
    assert_int_equal(leat_tls_fail(p->client.tls).err, LEAT_OK);

    uint8_t a[40];
    uint8_t b[40];
    assert_int_equal(leat_tls_export(p->client.tls, "EXPORTER-leat", text_span("x"), a, sizeof a),
                     LEAT_OK);
    assert_int_equal(leat_tls_export(p->server.tls, "EXPORTER-leat", text_span("x"), b, sizeof b),
                     LEAT_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(leat_tls_export(p->server.tls, "EXPORTER-leat", text_span("y"), b, sizeof b),
                     LEAT_OK);
    assert_memory_not_equal(a, b, sizeof a);
}

static const size_t steps[] = {0, 1, 7, 1000};

static void test_each_cipher_whole_and_byte_by_byte(void **state)
{
    (void)state;
    for (int aead = 0; aead < LEAT_AEAD_COUNT; aead++) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            leat_tls_settings client = client_settings(identity.cert);
            leat_tls_settings server = server_settings(&identity);
            client.ciphers[0] = (leat_tls_cipher)leat_aead_info_get((leat_aead)aead)->cipher_suite;
            client.cipher_count = 1;
            pair_open(&pair, &client, &server, "leat.example");
            assert_int_equal(pair_run(&pair, steps[i]), LEAT_OK);
            assert_complete(&pair, (leat_aead)aead);
            assert_int_equal(pair.server.params_calls, 1);
            pair_close(&pair);
        }
    }
}

static void test_secrets_protect_packets_after_tls_is_gone(void **state)
{
    (void)state;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    leat_tls_free(pair.client.tls);
    leat_tls_free(pair.server.tls);
    pair.client.tls = NULL;
    pair.server.tls = NULL;

    leat_key_cache *cache;
    leat_packet_keys tx = {0};
    leat_packet_keys rx = {0};
    const struct secret *out = &pair.client.secrets[LEAT_LEVEL_ONE_RTT][LEAT_TX];
    const struct secret *in = &pair.server.secrets[LEAT_LEVEL_ONE_RTT][LEAT_RX];
    assert_int_equal(leat_key_cache_new(pair.mem, NULL, 4, &cache), LEAT_OK);
    leat_packet_keys_set(&tx, leat_schedule_for(1), out->aead, out->bytes);
    leat_packet_keys_set(&rx, leat_schedule_for(1), in->aead, in->bytes);
    uint8_t packet[64] = {0x40, 1, 2, 'h', 'e', 'l', 'l', 'o'};
    leat_seal_op seal = {.packet = packet, .pn = 2, .header_len = 3, .payload_len = 5, .pn_len = 1};
    leat_mask_op mask = {.sample = packet + 6};
    leat_open_op open = {
        .header = packet, .payload = packet + 3, .pn = 2, .header_len = 3, .payload_len = 21};
    uint32_t pn;
    assert_int_equal(leat_seal(cache, &tx, &seal, 1), LEAT_OK);
    assert_int_equal(leat_mask(cache, &rx, &mask, 1), LEAT_OK);
    assert_int_equal(leat_hp_remove(packet, 2, mask.mask, &pn), 1);
    assert_int_equal(pn, 2);
    assert_int_equal(leat_open(cache, &rx, &open, 1), LEAT_OK);
    assert_int_equal(open.result, LEAT_OK);
    assert_memory_equal(packet + 3, "hello", 5);
    leat_packet_keys_drop(&tx, cache);
    leat_packet_keys_drop(&rx, cache);
    leat_key_cache_free(cache);
    pair_close(&pair);
}

static void test_hello_retry_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        leat_tls_settings client = client_settings(identity.cert);
        leat_tls_settings server = server_settings(&identity);
        server.groups[0] = LEAT_TLS_GROUP_P384; /* the client guesses X25519 */
        server.group_count = 1;
        pair_open(&pair, &client, &server, "leat.example");
        assert_int_equal(pair_run(&pair, steps[i]), LEAT_OK);
        assert_complete(&pair, LEAT_AEAD_AES_128_GCM);
        assert_int_equal(pair.client.out.piece[0].level, LEAT_LEVEL_INITIAL);
        assert_int_equal(pair.client.out.piece[1].level, LEAT_LEVEL_INITIAL); /* asked twice */
        pair_close(&pair);
    }
}

static void test_server_chooses_the_protocol(void **state)
{
    (void)state;
    static const char *const reversed[] = {"unknown", "h3", "hq-interop"};
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.alpn = reversed;
    client.alpn_count = 3;
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_span(leat_tls_alpn(pair.client.tls), "hq-interop");
    pair_close(&pair);
}

static void test_protocols_of_one_connection_replace_the_configs(void **state)
{
    (void)state;
    static const char *const own[] = {"h3"};
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    pair_open(&pair, &client, &server, "leat.example");
    leat_tls_free(pair.client.tls);
    leat_tls_params params = {.config = pair.client_config,
                              .server_name = "leat.example",
                              .alpn = own,
                              .alpn_count = 1,
                              .transport_params = text_span("x"),
                              .hooks = &test_hooks,
                              .user = &pair.client};
    assert_int_equal(leat_tls_new(pair.mem, &params, &pair.client.tls), LEAT_OK);
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_span(leat_tls_alpn(pair.server.tls), "h3");
    pair_close(&pair);
}

static void test_server_may_answer_with_parameters_made_from_the_clients(void **state)
{
    (void)state;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    pair_open(&pair, &client, &server, "leat.example");
    pair.server.answer = "made on seeing the client's";
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_span(leat_tls_peer_params(pair.client.tls), "made on seeing the client's");
    assert_int_equal(leat_tls_set_params(pair.server.tls, text_span("too late")), LEAT_ERR_STATE);
    pair_close(&pair);
}

static void test_names_and_addresses_of_the_certificate_are_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *sni;
    } cases[] = {{"LEAT.example", "LEAT.example"},
                 {"localhost", "localhost"},
                 {"leat.example.", "leat.example"},
                 {"127.0.0.1", ""},
                 {"::1", ""},
                 {"0:0:0:0:0:0:0:1", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat_tls_settings client = client_settings(identity.cert);
        leat_tls_settings server = server_settings(&identity);
        pair_open(&pair, &client, &server, cases[i].name);
        assert_int_equal(pair_run(&pair, 0), LEAT_OK);
        assert_string_equal(leat_tls_verify_text(pair.client.tls), "certificate: verified");
        leat_span sni = leat_tls_sni(pair.server.tls);
        assert_int_equal(sni.len, strlen(cases[i].sni));
        pair_close(&pair);
    }
}

static void test_certificate_signed_by_a_given_authority(void **state)
{
    (void)state;
    static struct identity signed_identity;
    static char ca[LEAT_TLS_PEM_MAX];
    make_signed_identity(&signed_identity, ca);
    leat_tls_settings client = client_settings(ca);
    leat_tls_settings server = server_settings(&signed_identity);
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_complete(&pair, LEAT_AEAD_AES_128_GCM);
    pair_close(&pair);
}

static void test_without_verify_anything_passes_and_says_so(void **state)
{
    (void)state;
    static struct identity old;
    make_identity(&old, DATE_2000, DATE_2001);
    leat_tls_settings client = client_settings("");
    leat_tls_settings server = server_settings(&old);
    client.verify = false;
    pair_open(&pair, &client, &server, "another.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_true(leat_tls_complete(pair.client.tls));
    assert_string_equal(leat_tls_verify_text(pair.client.tls),
                        "certificate: not verified (verify is off)");
    pair_close(&pair);
}

/* ---- the key log ---- */

struct lines {
    char text[16][256];
    size_t count;
};

static void on_line(void *user, const char *line)
{
    struct lines *lines = user;
    assert_true(lines->count < 16);
    assert_true(strlen(line) < 256);
    strcpy(lines->text[lines->count++], line);
}

static void find_line(const struct lines *lines, const char *label, const struct secret *secret)
{
    char hex[2 * LEAT_SECRET_MAX + 1];
    for (size_t i = 0; i < secret->len; i++) {
        sprintf(hex + 2 * i, "%02x", secret->bytes[i]);
    }
    for (size_t i = 0; i < lines->count; i++) {
        size_t n = strlen(label);
        if (strncmp(lines->text[i], label, n) != 0 || lines->text[i][n] != ' ') {
            continue;
        }
        assert_int_equal(lines->text[i][n + 1 + 64], ' '); /* the client's random, in hex */
        assert_string_equal(lines->text[i] + n + 1 + 64 + 1, hex);
        return;
    }
    fail_msg("no line %s", label);
}

static void test_key_log_has_the_secrets_in_use(void **state)
{
    (void)state;
    static struct lines lines;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.ciphers[0] = LEAT_TLS_AES_256_GCM_SHA384;
    client.cipher_count = 1;
    client.keylog = on_line;
    client.keylog_user = &lines;
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    const struct end *c = &pair.client;
    find_line(&lines, "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
              &c->secrets[LEAT_LEVEL_HANDSHAKE][LEAT_TX]);
    find_line(&lines, "SERVER_HANDSHAKE_TRAFFIC_SECRET",
              &c->secrets[LEAT_LEVEL_HANDSHAKE][LEAT_RX]);
    find_line(&lines, "CLIENT_TRAFFIC_SECRET_0", &c->secrets[LEAT_LEVEL_ONE_RTT][LEAT_TX]);
    find_line(&lines, "SERVER_TRAFFIC_SECRET_0", &c->secrets[LEAT_LEVEL_ONE_RTT][LEAT_RX]);
    pair_close(&pair);
}

/* ---- after the handshake ---- */

static void test_tickets_come_and_are_counted(void **state)
{
    (void)state;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.tickets = 1;
    server.tickets = 2;
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(leat_tls_send_tickets(pair.server.tls), LEAT_ERR_STATE);
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_int_equal(pair.server.delivered, pair.server.out.pieces); /* none by itself */
    size_t before = pair.server.out.len;
    assert_int_equal(leat_tls_send_tickets(pair.server.tls), LEAT_OK);
    assert_true(pair.server.out.len > before);
    assert_int_equal(pair.server.out.piece[pair.server.delivered].level, LEAT_LEVEL_ONE_RTT);
    assert_int_equal(deliver(&pair.server, &pair.client, 3), LEAT_OK);
    assert_int_equal(leat_tls_tickets_seen(pair.client.tls), 2);
    pair_close(&pair);
}

/* The TLS state may go at any byte of a ticket; the small parser takes the rest. */
static void test_leaving_in_the_middle_of_a_ticket(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < 12; cut++) {
        leat_tls_settings client = client_settings(identity.cert);
        leat_tls_settings server = server_settings(&identity);
        client.tickets = 1;
        server.tickets = 2;
        pair_open(&pair, &client, &server, "leat.example");
        assert_int_equal(pair_run(&pair, 0), LEAT_OK);
        size_t from = pair.server.out.len;
        assert_int_equal(leat_tls_send_tickets(pair.server.tls), LEAT_OK);
        const uint8_t *bytes = pair.server.out.bytes + from;
        size_t len = pair.server.out.len - from;
        assert_int_equal(leat_tls_recv(pair.client.tls, LEAT_LEVEL_ONE_RTT, bytes, cut), LEAT_OK);
        leat_tls_post post;
        leat_tls_leave(pair.client.tls, &post);
        leat_tls_free(pair.client.tls);
        pair.client.tls = NULL;
        assert_int_equal(leat_tls_post_recv(&post, bytes + cut, len - cut, NULL), 0);
        assert_int_equal(post.tickets, 2);
        assert_int_equal(post.left, 0);
        assert_int_equal(post.have, 0);
        pair_close(&pair);
    }
}

/* ---- what a handshake costs in heap ---- */

static size_t handshake_allocations(bool verify)
{
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.verify = verify;
    pair_open(&pair, &client, &server, "leat.example");
    size_t before = alloc_count;
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    size_t count = alloc_count - before;
    assert_true(leat_tls_complete(pair.server.tls));
    pair_close(&pair);
    return count;
}

static void test_allocations_of_a_handshake_do_not_depend_on_the_pieces(void **state)
{
    (void)state;
    alloc_count_start();
    handshake_allocations(true); /* GnuTLS makes some things once */
    size_t verified = handshake_allocations(true);
    size_t unverified = handshake_allocations(false);
    print_message("both ends of a handshake: %zu allocations verified, %zu not verified\n",
                  verified, unverified);
    assert_true(verified > unverified);

    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    pair_open(&pair, &client, &server, "leat.example");
    size_t before = alloc_count;
    assert_int_equal(pair_run(&pair, 1), LEAT_OK);
    size_t single = alloc_count - before;
    pair_close(&pair);
    print_message("and %zu with its bytes one at a time\n", single);
    assert_in_range(single, verified - 20, verified + 20); /* signatures differ in length */
}

/* RFC 9001 s4.2, s5.3: of the ciphers of TLS 1.3 those that QUIC can carry, and no older version.
 */
static void test_client_hello_offers_what_quic_can_carry(void **state)
{
    (void)state;
    leat_tls_settings c = client_settings(identity.cert);
    leat_tls_settings s = server_settings(&identity);
    leat_cursor hello, list;
    size_t versions = 0;
    c.cipher_count = 0;
    c.ciphers[c.cipher_count++] = LEAT_TLS_AES_128_GCM_SHA256;
    c.ciphers[c.cipher_count++] = LEAT_TLS_AES_256_GCM_SHA384;
    c.ciphers[c.cipher_count++] = LEAT_TLS_CHACHA20_POLY1305_SHA256;
    pair_open(&pair, &c, &s, "leat.example");
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    leat_cursor_init(&hello, pair.client.out.bytes, pair.client.out.len);
    assert_int_equal(leat_cursor_u8(&hello), 1); /* ClientHello */
    leat_cursor_skip(&hello, 3 + 2 + 32);        /* length, version, random */
    assert_int_equal(leat_cursor_u8(&hello), 0); /* no session ID */
    list = leat_cursor_sub(&hello, leat_cursor_u16(&hello));
    while (leat_cursor_left(&list) > 0) {
        uint16_t cipher = leat_cursor_u16(&list);
        assert_in_range(cipher, 0x1301, 0x1303); /* 0x1304, 0x1305: CCM */
    }
    leat_cursor_skip(&hello, leat_cursor_u8(&hello)); /* compression */
    leat_cursor_skip(&hello, 2);
    while (leat_cursor_left(&hello) > 0) {
        uint16_t type = leat_cursor_u16(&hello);
        list = leat_cursor_sub(&hello, leat_cursor_u16(&hello));
        if (type == 43) { /* supported_versions */
            assert_int_equal(leat_cursor_u8(&list), 2);
            assert_int_equal(leat_cursor_u16(&list), 0x0304);
            versions++;
        }
    }
    assert_true(leat_cursor_ok(&hello));
    assert_int_equal(versions, 1);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_cipher_whole_and_byte_by_byte),
        cmocka_unit_test(test_secrets_protect_packets_after_tls_is_gone),
        cmocka_unit_test(test_client_hello_offers_what_quic_can_carry),
        cmocka_unit_test(test_hello_retry_request),
        cmocka_unit_test(test_server_chooses_the_protocol),
        cmocka_unit_test(test_protocols_of_one_connection_replace_the_configs),
        cmocka_unit_test(test_server_may_answer_with_parameters_made_from_the_clients),
        cmocka_unit_test(test_names_and_addresses_of_the_certificate_are_accepted),
        cmocka_unit_test(test_certificate_signed_by_a_given_authority),
        cmocka_unit_test(test_without_verify_anything_passes_and_says_so),
        cmocka_unit_test(test_key_log_has_the_secrets_in_use),
        cmocka_unit_test(test_tickets_come_and_are_counted),
        cmocka_unit_test(test_leaving_in_the_middle_of_a_ticket),
        cmocka_unit_test(test_allocations_of_a_handshake_do_not_depend_on_the_pieces),
    };
    return cmocka_run_group_tests(tests, make_one_identity, NULL);
}
