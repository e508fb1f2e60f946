/* bench/bare_tls.c: see bare_tls.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bare_tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum {
    CHECKS = 2,
    MESSAGES = 16,
    MESSAGE_MOST = 4096,
    CLIENT_PARAMS = 76,
    SERVER_PARAMS = 108,
    TRANSPORT_PARAMETERS = 0x39
};

/* What one end has sent and the other not yet read. */
typedef struct message {
    gnutls_record_encryption_level_t level;
    size_t len;
    uint8_t data[MESSAGE_MOST];
} message;

typedef struct end {
    gnutls_session_t session;
    message out[MESSAGES];
    size_t first, count;
    bool server, done;
} end;

struct leat_bare_tls {
    gnutls_priority_t priority;
    gnutls_certificate_credentials_t server, client;
    bool verify, resume;
    gnutls_typed_vdata_st checks[CHECKS]; /* with verify: what leat asks for too */
    gnutls_datum_t ticket_key;            /* with resume */
    gnutls_datum_t session;               /* of the last handshake, or empty */
    end ends[2];
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        leat_bench_fail("bare TLS: %s: %s", what, gnutls_strerror(rc));
    }
}

static gnutls_datum_t datum(leat_span span)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)span.data, (unsigned)span.len};
}

leat_bare_tls *leat_bare_tls_new(leat_span cert_pem, leat_span key_pem, bool verify, bool resume)
{
    leat_bare_tls *bare = calloc(1, sizeof *bare);
    gnutls_datum_t cert = datum(cert_pem), key = datum(key_pem);

    if (!bare) {
        leat_bench_fail("out of memory");
    }
    bare->verify = verify;
    bare->checks[0] = (gnutls_typed_vdata_st){GNUTLS_DT_KEY_PURPOSE_OID,
                                              (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER, 0};
    bare->checks[1] =
        (gnutls_typed_vdata_st){GNUTLS_DT_DNS_HOSTNAME, (unsigned char *)"localhost", 0};
    bare->resume = resume;
    if (resume) {
        must(gnutls_session_ticket_key_generate(&bare->ticket_key), "ticket key");
    }
    must(gnutls_priority_init(&bare->priority,
                              "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:"
                              "+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE",
                              NULL),
         "priorities");
    must(gnutls_certificate_allocate_credentials(&bare->server), "credentials");
    must(gnutls_certificate_allocate_credentials(&bare->client), "credentials");
    must(gnutls_certificate_set_x509_key_mem(bare->server, &cert, &key, GNUTLS_X509_FMT_PEM),
         "certificate");
    if (verify) {
        must(gnutls_certificate_set_x509_trust_mem(bare->client, &cert, GNUTLS_X509_FMT_PEM),
             "authority");
    }
    return bare;
}

void leat_bare_tls_free(leat_bare_tls *bare)
{
    gnutls_certificate_free_credentials(bare->server);
    gnutls_certificate_free_credentials(bare->client);
    gnutls_priority_deinit(bare->priority);
    gnutls_free(bare->ticket_key.data);
    gnutls_free(bare->session.data);
    free(bare);
}

/* ---- hooks ---- */

static int on_send(gnutls_session_t session, gnutls_record_encryption_level_t level,
                   gnutls_handshake_description_t type, const void *data, size_t len)
{
    end *e = gnutls_session_get_ptr(session);
    message *m = &e->out[e->count];

    if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC) {
        return 0;
    }
    if (e->count == MESSAGES || len > MESSAGE_MOST) {
        return GNUTLS_E_INTERNAL_ERROR;
    }
    m->level = level;
    m->len = len;
    memcpy(m->data, data, len);
    e->count++;
    return 0;
}

static int on_secret(gnutls_session_t session, gnutls_record_encryption_level_t level,
                     const void *rx, const void *tx, size_t len)
{
    (void)session, (void)level, (void)rx, (void)tx, (void)len;
    return 0;
}

static int on_keylog(gnutls_session_t session, const char *label, const gnutls_datum_t *secret)
{
    (void)session, (void)label, (void)secret;
    return 0;
}

static int on_params_send(gnutls_session_t session, gnutls_buffer_t out)
{
    static const uint8_t params[SERVER_PARAMS];
    const end *e = gnutls_session_get_ptr(session);
    size_t len = e->server ? SERVER_PARAMS : CLIENT_PARAMS; /* as many as leat's */
    int rc = gnutls_buffer_append_data(out, params, len);

    return rc < 0 ? rc : (int)len;
}

static int on_params_recv(gnutls_session_t session, const unsigned char *data, size_t len)
{
    (void)session, (void)data, (void)len;
    return 0;
}

/* ---- a handshake ---- */

static void start(leat_bare_tls *bare, end *e, bool server)
{
    gnutls_datum_t alpn = {(unsigned char *)(uintptr_t) "leat-bench", 10};
    gnutls_session_t session;

    must(gnutls_init(&session, (server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_SIGNAL |
                                   GNUTLS_NONBLOCK | GNUTLS_NO_AUTO_REKEY |
                                   GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_END_OF_EARLY_DATA |
                                   GNUTLS_KEY_SHARE_TOP |
                                   (bare->resume ? 0u : (unsigned)GNUTLS_NO_TICKETS)),
         "session");
    e->session = session;
    e->first = e->count = 0;
    e->server = server;
    e->done = false;
    gnutls_session_set_ptr(session, e);
    gnutls_handshake_set_secret_function(session, on_secret);
    gnutls_handshake_set_read_function(session, on_send);
    gnutls_session_set_keylog_function(session, on_keylog);
    must(gnutls_priority_set(session, bare->priority), "priorities");
    must(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE,
                                server ? bare->server : bare->client),
         "credentials");
    must(gnutls_session_ext_register(
             session, "quic_transport_parameters", TRANSPORT_PARAMETERS, GNUTLS_EXT_TLS,
             on_params_recv, on_params_send, NULL, NULL, NULL,
             GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE),
         "extension");
    must(gnutls_alpn_set_protocols(session, &alpn, 1, GNUTLS_ALPN_MANDATORY), "ALPN");
    if (server && bare->resume) {
        must(gnutls_session_ticket_enable_server(session, &bare->ticket_key), "tickets");
    }
    if (!server && bare->session.size > 0) {
        must(gnutls_session_set_data(session, bare->session.data, bare->session.size), "session");
    }
    if (!server) {
        must(gnutls_server_name_set(session, GNUTLS_NAME_DNS, "localhost", 9), "name");
        if (bare->verify) {
            gnutls_session_set_verify_cert2(session, bare->checks, CHECKS, 0);
        }
    }
}

static void drive(end *e)
{
    int rc = e->done ? 0 : gnutls_handshake(e->session);

    if (rc != GNUTLS_E_AGAIN) {
        must(rc, "handshake");
        e->done = true;
    }
}

/* Passes on what one end has sent; true if there was something. */
static bool pass_on(end *from, end *to)
{
    bool any = from->first < from->count;

    while (from->first < from->count) {
        message *m = &from->out[from->first++];
        int rc = gnutls_handshake_write(to->session, m->level, m->data, m->len);

        must(rc == GNUTLS_E_AGAIN ? 0 : rc, "message");
        drive(to);
    }
    return any;
}

/* The server's ticket, and the session that the client makes of it. */
static void pass_ticket(leat_bare_tls *bare, end *client, end *server)
{
    if (bare->session.size > 0 && !gnutls_session_is_resumed(client->session)) {
        leat_bench_fail("bare TLS: the session was not resumed");
    }
    server->first = server->count = 0;
    must(gnutls_session_ticket_send(server->session, 1, 0), "ticket");
    pass_on(server, client);
    gnutls_free(bare->session.data);
    bare->session.data = NULL;
    must(gnutls_session_get_data2(client->session, &bare->session), "session");
}

void leat_bare_tls_handshake(leat_bare_tls *bare)
{
    end *client = &bare->ends[0], *server = &bare->ends[1];

    start(bare, client, false);
    start(bare, server, true);
    drive(client);
    while (pass_on(client, server) || pass_on(server, client)) {
    }
    if (!client->done || !server->done) {
        leat_bench_fail("bare TLS: the handshake stopped");
    }
    if (bare->resume) {
        pass_ticket(bare, client, server);
    }
    gnutls_deinit(client->session);
    gnutls_deinit(server->session);
}
