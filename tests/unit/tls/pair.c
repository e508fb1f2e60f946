/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

static leat_err on_secret(void *user, leat_level level, leat_dir dir, leat_aead aead,
                          const uint8_t *secret, size_t len)
{
    struct end *end = user;
    struct secret *s = &end->secrets[level][dir];
    assert_false(s->set);
    assert_int_equal(len, leat_aead_info_get(aead)->secret_len);
    s->set = true;
    s->aead = aead;
    s->len = len;
    memcpy(s->bytes, secret, len);
    return LEAT_OK;
}

static leat_err on_send(void *user, leat_level level, const uint8_t *data, size_t len)
{
    struct end *end = user;
    struct outbox *out = &end->out;
    if (end->fail_send != LEAT_OK) {
        return end->fail_send;
    }
    if (level != LEAT_LEVEL_INITIAL) {
        assert_true(end->secrets[level][LEAT_TX].set);
    }
    assert_true(out->pieces < sizeof out->piece / sizeof out->piece[0]);
    assert_true(len <= sizeof out->bytes - out->len);
    out->piece[out->pieces].level = level;
    out->piece[out->pieces].at = out->len;
    out->piece[out->pieces].len = len;
    out->pieces++;
    memcpy(out->bytes + out->len, data, len);
    out->len += len;
    return LEAT_OK;
}

static uint64_t on_params(void *user, const uint8_t *data, size_t len)
{
    struct end *end = user;
    assert_true(len <= sizeof end->params);
    memcpy(end->params, data, len);
    end->params_len = len;
    end->params_calls++;
    if (end->answer) {
        assert_int_equal(leat_tls_set_params(end->tls, text_span(end->answer)), LEAT_OK);
    }
    return end->refuse_params;
}

static void on_ticket(void *user, leat_span session, bool early)
{
    struct end *end = user;
    assert_true(session.len <= sizeof end->session);
    memcpy(end->session, session.data, session.len);
    end->session_len = session.len;
    end->session_early = early;
}

const leat_tls_hooks test_hooks = {
    .secret = on_secret, .send = on_send, .params = on_params, .ticket = on_ticket};

void make_identity(struct identity *id, int64_t not_before, int64_t not_after)
{
    static const char *const hosts[] = {"leat.example", "localhost", "127.0.0.1", "::1"};
    const leat_tls_self_signed request = {
        .hosts = hosts, .host_count = 4, .not_before = not_before, .not_after = not_after};
    leat_tls_error error;
    size_t cert_len;
    size_t key_len;
    assert_int_equal(
        leat_tls_make_self_signed(&request, id->cert, &cert_len, id->key, &key_len, &error),
        LEAT_OK);
    assert_int_equal(cert_len, strlen(id->cert));
    assert_int_equal(key_len, strlen(id->key));
}

static void import_identity(const struct identity *id, gnutls_x509_crt_t *crt,
                            gnutls_x509_privkey_t *key)
{
    gnutls_datum_t cert_pem = {(unsigned char *)id->cert, (unsigned)strlen(id->cert)};
    gnutls_datum_t key_pem = {(unsigned char *)id->key, (unsigned)strlen(id->key)};
    assert_int_equal(gnutls_x509_crt_init(crt), 0);
    assert_int_equal(gnutls_x509_privkey_init(key), 0);
    assert_int_equal(gnutls_x509_crt_import(*crt, &cert_pem, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_x509_privkey_import(*key, &key_pem, GNUTLS_X509_FMT_PEM), 0);
}

void make_signed_identity(struct identity *id, char ca[LEAT_TLS_PEM_MAX])
{
    static struct identity authority;
    gnutls_x509_crt_t ca_crt;
    gnutls_x509_privkey_t ca_key;
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    make_identity(&authority, DATE_2000, DATE_2099);
    make_identity(id, DATE_2000, DATE_2099);
    import_identity(&authority, &ca_crt, &ca_key);
    import_identity(id, &crt, &key);
    gnutls_x509_crt_set_dn(ca_crt, "CN=the authority", NULL);
    gnutls_x509_crt_sign2(ca_crt, ca_crt, ca_key, GNUTLS_DIG_SHA256, 0);
    gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
    assert_int_equal(gnutls_x509_crt_sign2(crt, ca_crt, ca_key, GNUTLS_DIG_SHA256, 0), 0);
    size_t len = sizeof id->cert;
    assert_int_equal(gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, id->cert, &len), 0);
    len = LEAT_TLS_PEM_MAX;
    assert_int_equal(gnutls_x509_crt_export(ca_crt, GNUTLS_X509_FMT_PEM, ca, &len), 0);
    gnutls_x509_crt_deinit(ca_crt);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(ca_key);
    gnutls_x509_privkey_deinit(key);
}

static const char *const protocols[] = {"hq-interop", "h3"};

leat_tls_settings server_settings(const struct identity *id)
{
    leat_tls_settings s;
    leat_tls_settings_init(&s);
    s.cert_pem = text_span(id->cert);
    s.key_pem = text_span(id->key);
    s.alpn = protocols;
    s.alpn_count = 2;
    return s;
}

leat_tls_settings client_settings(const char *ca)
{
    leat_tls_settings s;
    leat_tls_settings_init(&s);
    s.system_ca = false;
    s.ca_pem = text_span(ca);
    s.alpn = protocols;
    s.alpn_count = 2;
    return s;
}

void pair_open(struct pair *p, const leat_tls_settings *client, const leat_tls_settings *server,
               const char *name)
{
    pair_open_resumed(p, client, server, name, &(struct resume){.tag = 0});
}

void pair_open_resumed(struct pair *p, const leat_tls_settings *client,
                       const leat_tls_settings *server, const char *name, const struct resume *how)
{
    leat_tls_error error;
    memset(p, 0, sizeof *p);
    assert_int_equal(leat_mem_new(NULL, &p->mem), LEAT_OK);
    assert_int_equal(leat_tls_config_client(client, &p->client_config, &error), LEAT_OK);
    assert_int_equal(leat_tls_config_server(server, &p->server_config, &error), LEAT_OK);
    assert_string_equal(error.text, "");
    leat_tls_params params = {.config = p->client_config,
                              .server_name = name,
                              .transport_params = text_span("the client's parameters"),
                              .hooks = &test_hooks,
                              .user = &p->client,
                              .session = how->session,
                              .early_data = how->client_early};
    assert_int_equal(leat_tls_new(p->mem, &params, &p->client.tls), LEAT_OK);
    pair_new_server(p, how);
}

void pair_new_server(struct pair *p, const struct resume *how)
{
    leat_tls_params params = {.config = p->server_config,
                              .transport_params = text_span("and the server's"),
                              .hooks = &test_hooks,
                              .user = &p->server,
                              .shared = how->shared,
                              .early_data = how->server_early,
                              .early_tag = how->tag};
    leat_tls_free(p->server.tls);
    memset(&p->server, 0, sizeof p->server);
    assert_int_equal(leat_tls_new(p->mem, &params, &p->server.tls), LEAT_OK);
}

void pair_close(struct pair *p)
{
    leat_tls_free(p->client.tls);
    leat_tls_free(p->server.tls);
    leat_tls_config_free(p->client_config);
    leat_tls_config_free(p->server_config);
    leat_mem_free(p->mem);
}

leat_err deliver(struct end *from, struct end *to, size_t step)
{
    while (from->delivered < from->out.pieces) {
        size_t i = from->delivered++;
        const uint8_t *data = from->out.bytes + from->out.piece[i].at;
        size_t len = from->out.piece[i].len;
        while (len > 0) {
            size_t n = step == 0 || step > len ? len : step;
            leat_err err = leat_tls_recv(to->tls, from->out.piece[i].level, data, n);
            if (err != LEAT_OK) {
                return err;
            }
            data += n;
            len -= n;
        }
    }
    return LEAT_OK;
}

static void say_failure(const char *who, const struct end *end)
{
    leat_tls_failure f = leat_tls_fail(end->tls);
    if (f.err != LEAT_OK) {
        print_message("  %s ends with %s, 0x%llx, \"%s\"\n", who, leat_err_name(f.err),
                      (unsigned long long)f.code, f.text);
    }
}

leat_err pair_run(struct pair *p, size_t step)
{
    leat_err err = leat_tls_start(p->client.tls);
    while (err == LEAT_OK && (p->client.delivered < p->client.out.pieces ||
                              p->server.delivered < p->server.out.pieces)) {
        err = deliver(&p->client, &p->server, step);
        if (err == LEAT_OK) {
            err = deliver(&p->server, &p->client, step);
        }
    }
    say_failure("client", &p->client);
    say_failure("server", &p->server);
    return err;
}
