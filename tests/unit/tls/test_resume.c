/* Sessions resumed, early data taken once, and tickets that outlive keys and servers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"
#include "tls/early.h"
#include "tls/shared.h"

static struct identity identity;
static struct pair pair;
static leat_tls_settings client, server;

static leat_shared *make_shared(uint8_t seed, leat_span ticket_key)
{
    leat_shared_settings settings;
    leat_shared *shared;
    leat_shared_settings_init(&settings);
    memset(settings.seed, seed, sizeof settings.seed);
    settings.ticket_key = ticket_key;
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
    return shared;
}

static void prepare(void)
{
    client = client_settings(identity.cert);
    server = server_settings(&identity);
    client.tickets = 1;
    server.tickets = 1;
}

static void say_and_take_ticket(void)
{
    assert_int_equal(leat_tls_send_tickets(pair.server.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.server, &pair.client, 7), LEAT_OK);
    assert_true(pair.client.session_len > 0);
}

/* A whole handshake; its session is then in `session`. */
static struct end former;
static leat_span first_session(leat_shared *shared)
{
    struct resume how = {.shared = shared, .server_early = true, .tag = 7};
    pair_open_resumed(&pair, &client, &server, "leat.example", &how);
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    assert_false(leat_tls_resumed(pair.client.tls));
    say_and_take_ticket();
    former = pair.client;
    pair_close(&pair);
    return (leat_span){former.session, former.session_len};
}

static bool sent_certificate(const struct end *end)
{
    for (size_t i = 0; i < end->out.pieces; i++) {
        if (end->out.piece[i].level == LEAT_LEVEL_HANDSHAKE &&
            end->out.bytes[end->out.piece[i].at] == 11) {
            return true;
        }
    }
    return false;
}

static void open_again(const struct resume *how)
{
    pair_open_resumed(&pair, &client, &server, "leat.example", how);
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
}

static void test_resumption_sends_no_certificate(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    leat_span session = first_session(shared);
    for (int i = 0; i < 2; i++) { /* and from a resumed one again */
        open_again(&(struct resume){.session = session, .shared = shared});
        assert_true(leat_tls_resumed(pair.client.tls));
        assert_true(leat_tls_resumed(pair.server.tls));
        assert_false(sent_certificate(&pair.server));
        assert_false(leat_tls_early_offered(pair.client.tls));
        assert_false(leat_tls_early_accepted(pair.server.tls));
        say_and_take_ticket();
        former = pair.client;
        session = (leat_span){former.session, former.session_len};
        pair_close(&pair);
    }
    leat_shared_free(shared);
}

static void test_without_a_shared_object_the_configs_key_is_used(void **state)
{
    (void)state;
    static const uint8_t key[LEAT_TLS_TICKET_KEY] = {5};
    prepare();
    server.ticket_key = (leat_span){key, sizeof key};
    leat_span session = first_session(NULL);
    assert_false(former.session_early);
    open_again(&(struct resume){.session = session});
    assert_true(leat_tls_resumed(pair.client.tls));
    pair_close(&pair);
}

static struct resume early(leat_span session, leat_shared *shared)
{
    return (struct resume){
        .session = session, .shared = shared, .client_early = true, .server_early = true, .tag = 7};
}

static void test_early_data_is_accepted_with_the_same_secret(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    leat_span session = first_session(shared);
    assert_true(former.session_early);
    struct resume how = early(session, shared);
    open_again(&how);
    const struct secret *c = &pair.client.secrets[LEAT_LEVEL_ZERO_RTT][LEAT_TX];
    const struct secret *s = &pair.server.secrets[LEAT_LEVEL_ZERO_RTT][LEAT_RX];
    assert_true(leat_tls_early_offered(pair.client.tls));
    assert_true(leat_tls_early_accepted(pair.client.tls));
    assert_true(leat_tls_early_accepted(pair.server.tls));
    assert_true(c->set);
    assert_true(s->set);
    assert_int_equal(c->aead, s->aead);
    assert_memory_equal(c->bytes, s->bytes, c->len);
    pair_close(&pair);
    leat_shared_free(shared);
}

static void refused(const struct resume *how, bool resumed)
{
    open_again(how);
    assert_true(leat_tls_early_offered(pair.client.tls));
    assert_false(leat_tls_early_accepted(pair.client.tls));
    assert_false(leat_tls_early_accepted(pair.server.tls));
    assert_false(pair.server.secrets[LEAT_LEVEL_ZERO_RTT][LEAT_RX].set);
    assert_true(leat_tls_resumed(pair.client.tls) == resumed);
    pair_close(&pair);
}

static void test_early_data_is_taken_once_and_only_as_promised(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = early(first_session(shared), shared);
    struct resume other = how;
    other.tag = 8; /* limits changed */
    refused(&other, true);
    other = how;
    other.server_early = false;
    refused(&other, true);
    open_again(&how);
    assert_true(leat_tls_early_accepted(pair.server.tls));
    /* The very same ClientHello at another endpoint. */
    pair_new_server(&pair, &how);
    pair.client.delivered = 0;
    pair.client.out.pieces = 1;
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    assert_true(leat_tls_resumed(pair.server.tls));
    assert_false(leat_tls_early_accepted(pair.server.tls));
    pair_close(&pair);
    refused(&how, true);
    leat_shared_stats_data stats;
    leat_shared_stats(shared, &stats);
    assert_int_equal(stats.tickets_issued, 1);
    assert_int_equal(stats.early_accepted, 1);
    assert_int_equal(stats.early_refused, 3);
    leat_shared_free(shared);
}

static void test_another_protocol_resumes_without_early_data(void **state)
{
    (void)state;
    static const char *const h3[] = {"h3"};
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = early(first_session(shared), shared);
    client.alpn = h3;
    client.alpn_count = 1;
    refused(&how, true);
    leat_shared_free(shared);
}

/* The server takes another group than the client sends a share of. */
static void test_hello_retry_request_resumes_and_no_early_data_is_offered_next(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = early(first_session(shared), shared);
    assert_true(former.session_early);
    server.groups[0] = LEAT_TLS_GROUP_P384;
    server.group_count = 1;
    how.client_early = false;
    open_again(&how);
    assert_true(leat_tls_resumed(pair.client.tls));
    say_and_take_ticket();
    assert_false(pair.client.session_early);
    pair_close(&pair);
    leat_shared_free(shared);
}

static void test_server_refuses_early_data_that_needs_another_hello(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = early(first_session(shared), shared);
    server.groups[0] = LEAT_TLS_GROUP_P384;
    server.group_count = 1;
    pair_open_resumed(&pair, &client, &server, "leat.example", &how);
    assert_int_equal(leat_tls_start(pair.client.tls), LEAT_OK);
    assert_int_equal(deliver(&pair.client, &pair.server, 0), LEAT_OK);
    assert_true(pair.server.out.pieces > 0); /* HelloRetryRequest */
    assert_false(leat_tls_early_accepted(pair.server.tls));
    assert_false(pair.server.secrets[LEAT_LEVEL_ZERO_RTT][LEAT_RX].set);
    pair_close(&pair);
    leat_shared_free(shared);
}

static void test_tickets_outlive_the_server_but_their_early_data_does_not(void **state)
{
    (void)state;
    static const uint8_t key[LEAT_TLS_TICKET_KEY] = {1, 2, 3};
    leat_span span = {key, sizeof key};
    prepare();
    leat_shared *shared = make_shared(1, span);
    leat_span session = first_session(shared);
    leat_shared_free(shared);
    shared = make_shared(2, span);
    struct resume how = early(session, shared);
    refused(&how, true);
    leat_shared_free(shared);
    shared = make_shared(3, (leat_span){0});
    how.shared = shared;
    refused(&how, false);
    leat_shared_free(shared);
}

static void test_tickets_of_the_last_three_keys_stay_good(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    leat_span session = first_session(shared);
    for (uint8_t i = 1; i <= 4; i++) {
        uint8_t key[LEAT_TLS_TICKET_KEY];
        memset(key, i, sizeof key);
        leat_shared_rotate_tickets(shared, key);
        open_again(&(struct resume){.session = session, .shared = shared});
        assert_true(leat_tls_resumed(pair.client.tls) == (i < 4));
        pair_close(&pair);
    }
    leat_shared_free(shared);
}

/* A name is part of what a ticket's early data is good for, and so is that there is none. */
static void test_early_data_needs_no_name(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = {.shared = shared, .server_early = true, .tag = 7};
    for (int i = 0; i < 2; i++) {
        pair_open_resumed(&pair, &client, &server, "127.0.0.1", &how); /* not sent (RFC 6066 §3) */
        assert_int_equal(pair_run(&pair, 0), LEAT_OK);
        assert_true(leat_tls_early_accepted(pair.server.tls) == (i == 1));
        say_and_take_ticket();
        former = pair.client;
        pair_close(&pair);
        how = early((leat_span){former.session, former.session_len}, shared);
    }
    leat_shared_free(shared);
}

/* GnuTLS would refuse it; until then it promises nothing. */
static void test_a_share_cut_short_is_none(void **state)
{
    (void)state;
    /* One of X25519 that says 32 bytes, then as many as there are; and one of another group. */
    static const uint8_t cut[] = {0, 6, 0, 29, 0, 32, 1, 2}, other[] = {0, 5, 0, 99, 0, 1, 7},
                         whole[] = {0, 6, 0, 29, 0, 2, 1, 2};
    prepare();
    pair_open(&pair, &client, &server, "leat.example");
    leat_tls_hello hello = {.shares = {cut, sizeof cut}};
    assert_false(leat_tls_has_share(&hello, pair.server_config));
    hello.shares = (leat_span){other, sizeof other};
    assert_false(leat_tls_has_share(&hello, pair.server_config));
    hello.shares = (leat_span){whole, sizeof whole};
    assert_true(leat_tls_has_share(&hello, pair.server_config));
    pair_close(&pair);
}

/* RFC 9001 §4.6.1. */
static void test_ticket_with_another_early_data_size_closes(void **state)
{
    (void)state;
    prepare();
    leat_shared *shared = make_shared(1, (leat_span){0});
    struct resume how = {.shared = shared, .server_early = true};
    pair_open_resumed(&pair, &client, &server, "leat.example", &how);
    assert_int_equal(pair_run(&pair, 0), LEAT_OK);
    size_t from = pair.server.out.len;
    assert_int_equal(leat_tls_send_tickets(pair.server.tls), LEAT_OK);
    pair.server.out.bytes[pair.server.out.len - 1] = 0xfe; /* the extension's last byte */
    assert_true(pair.server.out.len > from);
    assert_int_equal(deliver(&pair.server, &pair.client, 0), LEAT_ERR_TLS);
    assert_int_equal(leat_tls_fail(pair.client.tls).code, LEAT_TE_PROTOCOL_VIOLATION);
    pair_close(&pair);
    leat_shared_free(shared);
}

static int group_setup(void **state)
{
    (void)state;
    make_identity(&identity, DATE_2000, DATE_2099);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resumption_sends_no_certificate),
        cmocka_unit_test(test_without_a_shared_object_the_configs_key_is_used),
        cmocka_unit_test(test_early_data_is_accepted_with_the_same_secret),
        cmocka_unit_test(test_early_data_is_taken_once_and_only_as_promised),
        cmocka_unit_test(test_another_protocol_resumes_without_early_data),
        cmocka_unit_test(test_hello_retry_request_resumes_and_no_early_data_is_offered_next),
        cmocka_unit_test(test_server_refuses_early_data_that_needs_another_hello),
        cmocka_unit_test(test_tickets_outlive_the_server_but_their_early_data_does_not),
        cmocka_unit_test(test_tickets_of_the_last_three_keys_stay_good),
        cmocka_unit_test(test_early_data_needs_no_name),
        cmocka_unit_test(test_a_share_cut_short_is_none),
        cmocka_unit_test(test_ticket_with_another_early_data_size_closes),
    };
    return cmocka_run_group_tests(tests, group_setup, NULL);
}
