/* Making configs and certificates, and the errors that name what is wrong; reading of IP addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include "tls/address.h"

static struct identity identity;
static struct identity other;

static int make_identities(void **state)
{
    (void)state;
    make_identity(&identity, DATE_2000, DATE_2099);
    make_identity(&other, DATE_2000, DATE_2099);
    return 0;
}

static void refused(leat_err (*make)(const leat_tls_settings *, leat_tls_config **,
                                     leat_tls_error *),
                    const leat_tls_settings *settings, leat_err err, const char *words)
{
    leat_tls_config *config = (leat_tls_config *)1;
    leat_tls_error error = {""};
    assert_int_equal(make(settings, &config, &error), err);
    assert_null(config);
    if (!strstr(error.text, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, error.text);
    }
    assert_int_equal(make(settings, &config, NULL), err);
}

static void test_server_identity(void **state)
{
    (void)state;
    leat_tls_settings s = server_settings(&identity);
    s.cert_pem = (leat_span){0};
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "certificate: none given");
    s = server_settings(&identity);
    s.key_pem = (leat_span){0};
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "private key: none given");
    s = server_settings(&identity);
    s.cert_pem = text_span("not PEM at all");
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "certificate: no valid PEM");
    s.cert_pem = text_span("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "certificate: ");
    s = server_settings(&identity);
    s.key_pem = text_span("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "private key: ");
    s.key_pem = text_span(identity.cert);
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE, "private key: no valid PEM");
    s = server_settings(&identity);
    s.key_pem = text_span(other.key);
    refused(leat_tls_config_server, &s, LEAT_ERR_CERTIFICATE,
            "private key: does not belong to the certificate");
}

static void test_client_authorities(void **state)
{
    (void)state;
    leat_tls_settings s = client_settings("garbage");
    refused(leat_tls_config_client, &s, LEAT_ERR_CERTIFICATE, "CA certificates: no valid PEM");
    s = client_settings("");
    refused(leat_tls_config_client, &s, LEAT_ERR_CERTIFICATE, "CA certificates: none given");
    s.verify = false;
    leat_tls_config *config;
    assert_int_equal(leat_tls_config_client(&s, &config, NULL), LEAT_OK);
    assert_false(leat_tls_config_is_server(config));
    leat_tls_config_free(config);
    leat_tls_config_free(NULL);
}

static void test_protocols_ciphers_groups_and_ticket_key(void **state)
{
    (void)state;
    static const char *const empty[] = {"h3", ""};
    leat_tls_settings s = server_settings(&identity);
    s.alpn_count = 0;
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "ALPN");
    s.alpn = empty;
    s.alpn_count = 2;
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "ALPN");
    s = server_settings(&identity);
    s.cipher_count = 0;
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "ciphers");
    s.cipher_count = 1;
    s.ciphers[0] = (leat_tls_cipher)0x1304;
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "ciphers");
    s = server_settings(&identity);
    s.group_count = 4;
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "groups");
    s = server_settings(&identity);
    s.tickets = 1;
    s.ticket_key = text_span("short");
    refused(leat_tls_config_server, &s, LEAT_ERR_INVALID, "ticket key");
    uint8_t key[LEAT_TLS_TICKET_KEY] = {1};
    s.ticket_key = (leat_span){key, sizeof key};
    leat_tls_config *config;
    assert_int_equal(leat_tls_config_server(&s, &config, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_tickets(config), 1);
    assert_true(leat_tls_config_is_server(config));
    leat_tls_config_free(config);
}

static void test_self_signed_requests_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const hosts[] = {"a", ""};
    static char cert[LEAT_TLS_PEM_MAX];
    static char key[LEAT_TLS_PEM_MAX];
    size_t cert_len;
    size_t key_len;
    leat_tls_error error;
    leat_tls_self_signed r = {
        .hosts = hosts, .host_count = 2, .not_before = DATE_2000, .not_after = DATE_2099};
    assert_int_equal(leat_tls_make_self_signed(&r, cert, &cert_len, key, &key_len, &error),
                     LEAT_ERR_INVALID);
    assert_true(strlen(error.text) > 0);
    r.host_count = 0;
    assert_int_equal(leat_tls_make_self_signed(&r, cert, &cert_len, key, &key_len, NULL),
                     LEAT_ERR_INVALID);
    r.host_count = 1;
    r.not_after = r.not_before;
    assert_int_equal(leat_tls_make_self_signed(&r, cert, &cert_len, key, &key_len, NULL),
                     LEAT_ERR_INVALID);
    r.not_after = DATE_2099;
    assert_int_equal(leat_tls_make_self_signed(&r, cert, &cert_len, key, &key_len, &error),
                     LEAT_OK);
    assert_string_equal(error.text, "");
    leat_tls_settings s;
    leat_tls_config *config;
    static const char *const alpn[] = {"h3"};
    int64_t from, to;
    leat_tls_settings_init(&s);
    s.alpn = alpn;
    s.alpn_count = 1;
    s.cert_pem = text_span(cert);
    s.key_pem = text_span(key);
    assert_int_equal(leat_tls_config_server(&s, &config, NULL), LEAT_OK);
    leat_tls_config_validity(config, &from, &to);
    assert_int_equal(from, DATE_2000);
    assert_int_equal(to, DATE_2099);
    leat_tls_config_free(config);
    assert_memory_equal(cert, "-----BEGIN CERTIFICATE-----", 27);
    assert_memory_equal(key, "-----BEGIN PRIVATE KEY-----", 27);
    assert_int_equal(cert_len, strlen(cert));
}

static void test_addresses_and_what_only_looks_like_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        uint8_t bytes[16];
    } cases[] = {
        {"127.0.0.1", 4, {127, 0, 0, 1}},
        {"255.255.255.255", 4, {255, 255, 255, 255}},
        {"::", 16, {0}},
        {"::1", 16, {[15] = 1}},
        {"1::", 16, {0, 1}},
        {"2001:db8::8:800:200C:417a",
         16,
         {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 8, 8, 0, 0x20, 0x0c, 0x41, 0x7a}},
        {"1:2:3:4:5:6:7:8", 16, {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8}},
        {"::ffff:192.0.2.1", 16, {[10] = 0xff, 0xff, 192, 0, 2, 1}},
        {"1:2:3:4:5:6:1.2.3.4", 16, {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4}},
        {"", 0, {0}},
        {"localhost", 0, {0}},
        {"1.2.3", 0, {0}},
        {"1.2.3.4.5", 0, {0}},
        {"256.0.0.1", 0, {0}},
        {"01.2.3.4", 0, {0}},
        {"1.2.3.", 0, {0}},
        {"1..2.3", 0, {0}},
        {"1.2.3.4 ", 0, {0}},
        {":", 0, {0}},
        {":::", 0, {0}},
        {":1", 0, {0}},
        {"1:", 0, {0}},
        {"1::2::3", 0, {0}},
        {"1:::2", 0, {0}},
        {"12345::", 0, {0}},
        {"1:2:3:4:5:6:7", 0, {0}},
        {"1:2:3:4:5:6:7:8:9", 0, {0}},
        {"1:2:3:4::5:6:7:8", 0, {0}},
        {"1:2:3:4:5:6:7:1.2.3.4", 0, {0}},
        {"g::", 0, {0}},
        {"::1%lo", 0, {0}},
        {"[::1]", 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t out[16];
        size_t len = leat_tls_parse_address(cases[i].text, out);
        if (len != cases[i].len) {
            fail_msg("\"%s\": %zu bytes", cases[i].text, len);
        }
        assert_memory_equal(out, cases[i].bytes, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_identity),
        cmocka_unit_test(test_client_authorities),
        cmocka_unit_test(test_protocols_ciphers_groups_and_ticket_key),
        cmocka_unit_test(test_self_signed_requests_that_make_no_sense),
        cmocka_unit_test(test_addresses_and_what_only_looks_like_one),
    };
    return cmocka_run_group_tests(tests, make_identities, NULL);
}
