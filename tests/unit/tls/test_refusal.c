/* Handshakes that must fail: who ends them, with which code, and in which words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <leat/limits.h>
#include <stdio.h>
#include <time.h>

#include "base/prng.h"
#include "mem/mem.h"
#include "tls/message.h"

#define SERVER_HELLO 2

static struct identity identity;
static struct pair pair;

static int make_one_identity(void **state)
{
    (void)state;
    make_identity(&identity, DATE_2000, DATE_2099);
    return 0;
}

static void open_usual(void)
{
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    pair_open(&pair, &client, &server, "leat.example");
}

static void assert_failure(leat_tls *tls, leat_err err, uint64_t code, const char *words)
{
    leat_tls_failure f = leat_tls_fail(tls);
    assert_int_equal(f.err, err);
    assert_int_equal(f.code, code);
    if (!strstr(f.text, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, f.text);
    }
    /* and it stays dead */
    assert_int_equal(leat_tls_recv(tls, LEAT_LEVEL_INITIAL, (const uint8_t *)"x", 1), err);
    assert_int_equal(leat_tls_start(tls), err);
    assert_false(leat_tls_complete(tls));
}

/* ---- certificates ---- */

static void refused_certificate(const struct identity *id, const char *ca, const char *name,
                                uint8_t alert, const char *words)
{
    static const size_t steps[] = {0, 1};
    for (size_t i = 0; i < 2; i++) {
        leat_tls_settings client = client_settings(ca);
        leat_tls_settings server = server_settings(id);
        pair_open(&pair, &client, &server, name);
        assert_int_equal(pair_run(&pair, steps[i]), LEAT_ERR_CERTIFICATE);
        assert_failure(pair.client.tls, LEAT_ERR_CERTIFICATE, 0x100 + alert, words);
        assert_string_equal(leat_tls_verify_text(pair.client.tls),
                            leat_tls_fail(pair.client.tls).text);
        assert_false(pair.client.secrets[LEAT_LEVEL_ONE_RTT][LEAT_TX].set);
        pair_close(&pair);
    }
}

static void test_expired_certificate(void **state)
{
    (void)state;
    static struct identity id;
    make_identity(&id, DATE_2000, DATE_2001);
    refused_certificate(&id, id.cert, "leat.example", 45, "certificate: expired");
}

static void test_certificate_of_the_future(void **state)
{
    (void)state;
    static struct identity id;
    make_identity(&id, DATE_2090, DATE_2099);
    refused_certificate(&id, id.cert, "leat.example", 45, "certificate: not yet valid");
}

static void test_certificate_for_another_name(void **state)
{
    (void)state;
    refused_certificate(&identity, identity.cert, "other.example", 42,
                        "certificate: not issued for other.example");
    refused_certificate(&identity, identity.cert, "127.0.0.2", 42,
                        "certificate: not issued for 127.0.0.2");
}

static void test_self_signed_certificate_nobody_vouches_for(void **state)
{
    (void)state;
    static struct identity other;
    make_identity(&other, DATE_2000, DATE_2099);
    refused_certificate(&other, identity.cert, "leat.example", 48, "certificate: self-signed");
    static struct identity id; /* the trusted one has another name */
    static char ca[LEAT_TLS_PEM_MAX];
    make_signed_identity(&id, ca);
    refused_certificate(&other, ca, "leat.example", 48, "certificate: self-signed");
}

static void test_unknown_authority(void **state)
{
    (void)state;
    static struct identity id;
    static char ca[LEAT_TLS_PEM_MAX];
    make_signed_identity(&id, ca);
    refused_certificate(&id, identity.cert, "leat.example", 48,
                        "certificate: signed by an unknown authority");
}

static void test_verify_host_off_forgives_the_name_alone(void **state)
{
    (void)state;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.verify_host = false;
    pair_open(&pair, &client, &server, "other.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    pair_close(&pair);
    static struct identity old;
    make_identity(&old, DATE_2000, DATE_2001);
    client = client_settings(old.cert);
    server = server_settings(&old);
    client.verify_host = false;
    pair_open(&pair, &client, &server, "other.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_ERR_CERTIFICATE);
    pair_close(&pair);
}

/* ---- what the hellos must bring ---- */

static void test_no_protocol_in_common(void **state)
{
    (void)state;
    static const char *const other[] = {"smtp"};
    for (size_t step = 0; step < 2; step++) {
        leat_tls_settings client = client_settings(identity.cert);
        leat_tls_settings server = server_settings(&identity);
        client.alpn = other;
        client.alpn_count = 1;
        pair_open(&pair, &client, &server, "leat.example");
        assert_int_equal(pair_run(&pair, step), LEAT_ERR_TLS);
        assert_failure(pair.server.tls, LEAT_ERR_TLS, 0x178, "");
        assert_int_equal(pair.server.out.pieces, 0);
        pair_close(&pair);
    }
}

static void test_no_cipher_in_common(void **state)
{
    (void)state;
    leat_tls_settings client = client_settings(identity.cert);
    leat_tls_settings server = server_settings(&identity);
    client.ciphers[0] = LEAT_TLS_AES_256_GCM_SHA384;
    client.cipher_count = 1;
    server.ciphers[0] = LEAT_TLS_CHACHA20_POLY1305_SHA256;
    server.cipher_count = 1;
    pair_open(&pair, &client, &server, "leat.example");
    assert_int_equal(pair_run(&pair, 0), LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, 0x128, "TLS: "); /* handshake_failure */
    pair_close(&pair);
}

static size_t get16(const uint8_t *p)
{
    return (size_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, size_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

/* Takes one extension out of a ClientHello or an EncryptedExtensions message; returns the new
 * length. */
static size_t strip_extension(uint8_t *message, size_t len, unsigned type)
{
    size_t at = 4;
    if (message[0] == LEAT_TLS_CLIENT_HELLO) {
        at += 2 + 32;
        at += 1 + message[at];         /* session ID */
        at += 2 + get16(message + at); /* cipher suites */
        at += 1 + message[at];         /* compression */
    } else if (message[0] == SERVER_HELLO) {
        at += 2 + 32;
        at += 1 + message[at]; /* session ID */
        at += 2 + 1;           /* cipher suite, compression */
    }
    size_t list = at;
    for (at += 2; at < len; at += 4 + get16(message + at + 2)) {
        if (get16(message + at) != type) {
            continue;
        }
        size_t gone = 4 + get16(message + at + 2);
        memmove(message + at, message + at + gone, len - at - gone);
        len -= gone;
        put16(message + list, get16(message + list) - gone);
        put16(message + 2, get16(message + 2) - gone);
        return len;
    }
    fail_msg("no extension %u", type);
    return 0;
}

static void strip_client_hello(unsigned type, uint64_t code)
{
    open_usual();
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    struct outbox *out = &pair.client.out;
    assert_int_equal(out->pieces, 1);
    out->piece[0].len = strip_extension(out->bytes, out->piece[0].len, type);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, code, "");
    assert_int_equal(pair.server.out.pieces, 0);
    pair_close(&pair);
}

static void strip_encrypted_extensions(unsigned type, uint64_t code)
{
    open_usual();
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    struct outbox *out = &pair.server.out;
    bool found = false;
    for (size_t i = 0; i < out->pieces; i++) {
        uint8_t *message = out->bytes + out->piece[i].at;
        if (message[0] != LEAT_TLS_ENCRYPTED_EXTENSIONS) {
            continue;
        }
        out->piece[i].len = strip_extension(message, out->piece[i].len, type);
        found = true;
    }
    assert_true(found);
    assert_int_equal(deliver(&pair.server, &pair.client, 0), LEAT_ERR_TLS);
    assert_failure(pair.client.tls, LEAT_ERR_TLS, code, "");
    pair_close(&pair);
}

/* RFC 9001 s4.2: whoever offers, or takes, no more than TLS 1.2 is not talked to. */
static void test_no_version_below_1_3(void **state)
{
    (void)state;
    strip_client_hello(43, 0x128); /* supported_versions */
    open_usual();
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    struct outbox *out = &pair.server.out;
    assert_int_equal(out->bytes[out->piece[0].at], SERVER_HELLO);
    out->piece[0].len = strip_extension(out->bytes + out->piece[0].at, out->piece[0].len, 43);
    assert_int_equal(deliver(&pair.server, &pair.client, 0), LEAT_ERR_TLS);
    assert_int_equal(leat_tls_fail(pair.client.tls).code >> 8, 1); /* an alert */
    assert_false(pair.client.secrets[LEAT_LEVEL_HANDSHAKE][LEAT_RX].set);
    pair_close(&pair);
}

/* Puts cipher suites in front of those of a ClientHello, or in their place; returns the new
 * length. */
static size_t offer_also(uint8_t *message, size_t len, const uint16_t *suites, size_t n, bool alone)
{
    size_t at = 4 + 2 + 32 + 1 + message[4 + 2 + 32];
    size_t list = at, old = alone ? get16(message + list) : 0;

    at += 2;
    memmove(message + at + 2 * n, message + at + old, len - at - old);
    for (size_t i = 0; i < n; i++) {
        put16(message + at + 2 * i, suites[i]);
    }
    put16(message + list, get16(message + list) + 2 * n - old);
    put16(message + 2, get16(message + 2) + 2 * n - old);
    return len + 2 * n - old;
}

/* s5.3: suites that QUIC cannot carry, and what nobody knows, do not end a handshake, and are not
 * chosen. */
static void test_suites_that_are_not_for_quic(void **state)
{
    static const uint16_t suites[] = {0x1305, 0x1a1a, 0xc02f, 0x00ff, 0x1304, 0xfefe};
    size_t count = sizeof(suites) / sizeof(suites[0]);

    (void)state;
    for (unsigned alone = 0; alone < 2; alone++) {
        open_usual();
        assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
        struct outbox *out = &pair.client.out;
        assert_int_equal(out->pieces, 1);
        out->piece[0].len = offer_also(out->bytes, out->piece[0].len, suites, count, alone);
        if (alone) {
            assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_ERR_TLS);
            assert_failure(pair.server.tls, LEAT_ERR_TLS, 0x128, "TLS: "); /* handshake_failure */
        } else {
            assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
            const uint8_t *hello = pair.server.out.bytes + pair.server.out.piece[0].at;
            assert_int_equal(hello[0], SERVER_HELLO);
            assert_in_range(get16(hello + 4 + 2 + 32 + 1 + hello[38]), 0x1301, 0x1303);
        }
        pair_close(&pair);
    }
}

static void test_missing_transport_parameters(void **state)
{
    (void)state;
    strip_client_hello(57, 0x16d);
    strip_encrypted_extensions(57, 0x16d);
}

static void test_missing_protocol_extension(void **state)
{
    (void)state;
    strip_client_hello(16, 0x178);
    strip_encrypted_extensions(16, 0x178);
}

static void test_parameters_that_the_connection_refuses(void **state)
{
    (void)state;
    open_usual();
    pair.server.refuse_params = LEAT_TE_TRANSPORT_PARAMETER_ERROR;
    assert_int_equal(pair_run(&pair, 0), LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, LEAT_TE_TRANSPORT_PARAMETER_ERROR,
                   "transport parameters");
    pair_close(&pair);
    open_usual();
    pair.client.refuse_params = LEAT_TE_TRANSPORT_PARAMETER_ERROR;
    assert_int_equal(pair_run(&pair, 1), LEAT_ERR_TLS);
    assert_failure(pair.client.tls, LEAT_ERR_TLS, LEAT_TE_TRANSPORT_PARAMETER_ERROR,
                   "transport parameters");
    pair_close(&pair);
}

/* ---- levels and messages ---- */

static void test_bytes_at_the_wrong_level(void **state)
{
    (void)state;
    open_usual();
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_HANDSHAKE, (const uint8_t *)"\1", 1),
                     LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION, "level");
    pair_close(&pair);

    open_usual(); /* more of INITIAL once the server reads HANDSHAKE */
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    assert_int_equal(leat_tls_read_level(pair.server.tls), LEAT_LEVEL_HANDSHAKE);
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_INITIAL, (const uint8_t *)"\1", 1),
                     LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION, "level");
    pair_close(&pair);
}

/* One byte of the next message glued to the ServerHello, at the level that ends with it. */
static void test_bytes_left_over_when_the_level_changes(void **state)
{
    (void)state;
    open_usual();
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    struct outbox *out = &pair.server.out;
    assert_int_equal(out->piece[0].level, LEAT_LEVEL_INITIAL);
    out->piece[0].len++;
    assert_int_equal(deliver(&pair.server, &pair.client, 0), LEAT_ERR_TLS);
    assert_failure(pair.client.tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION, "level");
    pair_close(&pair);
}

static void refused_message(leat_level level, bool after, const uint8_t *message, size_t len,
                            uint64_t code)
{
    open_usual();
    leat_tls *tls = pair.client.tls;
    if (after) {
        assert_int_equal(pair_run(&pair, 0), LEAT_OK);
        assert_true(leat_tls_complete(tls));
    } else {
        assert_int_equal(leat_tls_start(tls), LEAT_OK);
    }
    assert_int_equal(leat_tls_recv(tls, level, message, len), LEAT_ERR_TLS);
    assert_int_equal(leat_tls_fail(tls).code, code);
    pair_close(&pair);
}

static void test_messages_that_quic_does_without(void **state)
{
    (void)state;
    static const uint8_t key_update[] = {24, 0, 0, 1, 0};
    static const uint8_t end_of_early_data[] = {5, 0, 0, 0};
    static const uint8_t certificate_request[] = {13, 0, 0, 3, 0, 0, 0};
    static const uint8_t finished[] = {20, 0, 0, 1, 0};
    static const uint8_t unknown[] = {99, 0, 0, 0};
    refused_message(LEAT_LEVEL_INITIAL, false, key_update, sizeof key_update, 0x10a);
    refused_message(LEAT_LEVEL_INITIAL, false, end_of_early_data, sizeof end_of_early_data, 0x10a);
    refused_message(LEAT_LEVEL_INITIAL, false, finished, sizeof finished, 0x10a);
    refused_message(LEAT_LEVEL_ONE_RTT, true, key_update, sizeof key_update, 0x10a);
    refused_message(LEAT_LEVEL_ONE_RTT, true, finished, sizeof finished, 0x10a);
    refused_message(LEAT_LEVEL_ONE_RTT, true, unknown, sizeof unknown, 0x10a);
    refused_message(LEAT_LEVEL_ONE_RTT, true, certificate_request, sizeof certificate_request,
                    LEAT_TE_PROTOCOL_VIOLATION);
}

static void test_client_hello_with_a_session_id(void **state)
{
    (void)state;
    uint8_t hello[4 + 2 + 32 + 1 + 32] = {1, 0, 0, 67, 3, 3};
    hello[38] = 32;
    open_usual();
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_INITIAL, hello, sizeof hello),
                     LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, LEAT_TE_PROTOCOL_VIOLATION, "session ID");
    pair_close(&pair);
}

static void test_message_too_long(void **state)
{
    (void)state;
    static const uint8_t header[] = {1, 1, 0, 1}; /* 65,537 bytes */
    open_usual();
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_INITIAL, header, sizeof header),
                     LEAT_ERR_TLS);
    assert_failure(pair.server.tls, LEAT_ERR_TLS, LEAT_TE_CRYPTO_BUFFER_EXCEEDED, "too long");
    pair_close(&pair);
}

static void test_announced_length_takes_no_memory(void **state)
{
    (void)state;
    static const uint8_t start[] = {1, 0, 0xff, 0xff, 3, 3, 0, 0};
    leat_mem_stats before;
    leat_mem_stats after;
    open_usual();
    leat_mem_stats_get(pair.mem, &before);
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_INITIAL, start, sizeof start),
                     LEAT_OK);
    leat_mem_stats_get(pair.mem, &after);
    assert_true(after.obj_live - before.obj_live <= 4096);
    pair_close(&pair);
}

static void test_longest_message_is_judged_by_tls_itself(void **state)
{
    (void)state;
    static uint8_t hello[4 + LEAT_TLS_MESSAGE_DEFAULT] = {1, 1, 0, 0, 3, 3};
    open_usual();
    assert_int_equal(leat_tls_recv(pair.server.tls, LEAT_LEVEL_INITIAL, hello, sizeof hello),
                     LEAT_ERR_TLS);
    assert_true(leat_transport_error_is_crypto(leat_tls_fail(pair.server.tls).code));
    pair_close(&pair);
}

/* ---- trouble on this side ---- */

static void test_error_of_a_hook_comes_out(void **state)
{
    (void)state;
    open_usual();
    pair.client.fail_send = LEAT_ERR_NOMEM;
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_ERR_NOMEM);
    assert_int_equal(leat_tls_fail(pair.client.tls).code, LEAT_TE_INTERNAL_ERROR);
    pair_close(&pair);
    open_usual();
    pair.server.fail_send = LEAT_ERR_LIMIT;
    assert_int_equal(pair_run(&pair, 1), LEAT_ERR_LIMIT);
    assert_int_equal(leat_tls_fail(pair.server.tls).code, LEAT_TE_INTERNAL_ERROR);
    pair_close(&pair);
}

static void test_memory_that_runs_out_at_each_place(void **state)
{
    (void)state;
    uint64_t nth = 0;
    leat_err err;
    do {
        open_usual();
        leat_mem_fault_set(pair.mem, LEAT_MEM_FAULT_TAKE, ++nth, false);
        err = pair_run(&pair, 1);
        bool failed = leat_mem_fault_count(pair.mem) > 0;
        leat_mem_fault_set(pair.mem, LEAT_MEM_FAULT_NONE, 0, false);
        assert_int_equal(err, failed ? LEAT_ERR_NOMEM : LEAT_OK);
        pair_close(&pair);
        assert_true(nth < 1000);
    } while (err != LEAT_OK);
    assert_true(nth > 3); /* parameters and messages of both ends */
}

static void test_bad_arguments(void **state)
{
    (void)state;
    static const char long_name[300] = {[0 ... 298] = 'a'};
    static const uint8_t long_params[LEAT_TLS_PARAMS_MAX + 1];
    open_usual();
    leat_tls_params good = {.config = pair.client_config,
                            .server_name = "leat.example",
                            .transport_params = text_span("x"),
                            .hooks = &test_hooks,
                            .user = &pair.client};
    leat_tls *tls;
    leat_tls_params bad = good;
    bad.server_name = long_name;
    assert_int_equal(leat_tls_new(pair.mem, &bad, &tls), LEAT_ERR_INVALID);
    assert_null(tls);
    bad = good;
    bad.transport_params = (leat_span){long_params, sizeof long_params};
    assert_int_equal(leat_tls_new(pair.mem, &bad, &tls), LEAT_ERR_INVALID);
    bad.transport_params.len = 0;
    assert_int_equal(leat_tls_new(pair.mem, &bad, &tls), LEAT_ERR_INVALID);
    static const char *const empty[] = {""};
    bad = good;
    bad.alpn = empty;
    bad.alpn_count = 1;
    assert_int_equal(leat_tls_new(pair.mem, &bad, &tls), LEAT_ERR_INVALID);
    assert_int_equal(leat_tls_export(pair.client.tls, "x", text_span(""), (uint8_t[8]){0}, 8),
                     LEAT_ERR_STATE);
    assert_string_equal(leat_tls_verify_text(pair.client.tls), "certificate: none yet");
    assert_true(strlen(leat_tls_alert_text(45)) > 5);
    assert_string_equal(leat_tls_alert_text(200), "unknown alert");
    pair_close(&pair);
}

/* ---- noise ---- */

/* Every byte of a handshake may be changed by somebody on the way (before keys protect it) or sent
 * by a hostile peer: nothing crashes, and ends that both think they are done agree on all secrets.
 */
static void test_random_changes_never_pass_unseen(void **state)
{
    (void)state;
    const char *text = getenv("LEAT_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    print_message("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)seed);
    leat_prng prng;
    leat_prng_seed(&prng, seed);
    for (int round = 0; round < 300; round++) {
        open_usual();
        leat_err err = leat_tls_start(pair.client.tls);
        bool changed = false;
        while (err == LEAT_OK && (pair.client.delivered < pair.client.out.pieces ||
                                  pair.server.delivered < pair.server.out.pieces)) {
            struct end *from =
                pair.client.delivered < pair.client.out.pieces ? &pair.client : &pair.server;
            if (!changed && leat_prng_chance(&prng, 1, 2)) {
                size_t at = from->out.piece[from->delivered].at;
                size_t pos = at + leat_prng_below(&prng, from->out.len - at);
                from->out.bytes[pos] ^= (uint8_t)(1u << leat_prng_below(&prng, 8));
                changed = true;
            }
            err = deliver(from, from == &pair.client ? &pair.server : &pair.client,
                          leat_prng_below(&prng, 40));
        }
        if (leat_tls_complete(pair.client.tls) && leat_tls_complete(pair.server.tls)) {
            assert_memory_equal(pair.client.secrets[LEAT_LEVEL_ONE_RTT][LEAT_TX].bytes,
                                pair.server.secrets[LEAT_LEVEL_ONE_RTT][LEAT_RX].bytes, 32);
        }
        if (changed) {
            assert_false(leat_tls_complete(pair.client.tls) && leat_tls_complete(pair.server.tls));
        }
        pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expired_certificate),
        cmocka_unit_test(test_certificate_of_the_future),
        cmocka_unit_test(test_certificate_for_another_name),
        cmocka_unit_test(test_self_signed_certificate_nobody_vouches_for),
        cmocka_unit_test(test_unknown_authority),
        cmocka_unit_test(test_verify_host_off_forgives_the_name_alone),
        cmocka_unit_test(test_no_protocol_in_common),
        cmocka_unit_test(test_no_cipher_in_common),
        cmocka_unit_test(test_no_version_below_1_3),
        cmocka_unit_test(test_suites_that_are_not_for_quic),
        cmocka_unit_test(test_missing_transport_parameters),
        cmocka_unit_test(test_missing_protocol_extension),
        cmocka_unit_test(test_parameters_that_the_connection_refuses),
        cmocka_unit_test(test_bytes_at_the_wrong_level),
        cmocka_unit_test(test_bytes_left_over_when_the_level_changes),
        cmocka_unit_test(test_messages_that_quic_does_without),
        cmocka_unit_test(test_client_hello_with_a_session_id),
        cmocka_unit_test(test_message_too_long),
        cmocka_unit_test(test_announced_length_takes_no_memory),
        cmocka_unit_test(test_longest_message_is_judged_by_tls_itself),
        cmocka_unit_test(test_error_of_a_hook_comes_out),
        cmocka_unit_test(test_memory_that_runs_out_at_each_place),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_random_changes_never_pass_unseen),
    };
    return cmocka_run_group_tests(tests, make_one_identity, NULL);
}
