/* bench/peers/ngtcp2_handshakes.c: handshakes a second of an ngtcp2 client on GnuTLS, over sockets,
 * for bench/peers/rates.py: Debian's gtlsclient makes one and ends.
 *
 *     ngtcp2_handshakes ADDR PORT AT_ONCE SECONDS     prints one JSON object
 *
 * As `leat perf client --handshakes --alpn h3` does: AES-128-GCM, X25519, the certificate not
 * checked, a socket for each connection; one that is complete is closed and the next begun.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

enum { DATAGRAM = 1452, CID = 8, WINDOW = 1 << 20, AT_ONCE_MOST = 1024 };

typedef struct client {
    ngtcp2_conn *conn;
    gnutls_session_t session;
    ngtcp2_crypto_conn_ref ref;
    int complete;
    struct sockaddr_in local;
} client;

static client clients[AT_ONCE_MOST];
static struct pollfd polled[AT_ONCE_MOST];
static size_t at_once;
static struct sockaddr_in server;
static gnutls_certificate_credentials_t credentials;
static gnutls_priority_t priority;
static uint64_t done;

/* ---- callbacks ---- */

static void on_rand(uint8_t *dest, size_t len, const ngtcp2_rand_ctx *ctx)
{
    (void)ctx;
    gnutls_rnd(GNUTLS_RND_NONCE, dest, len);
}

static int on_new_cid(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t len, void *user)
{
    (void)conn, (void)user;
    cid->datalen = len;
    gnutls_rnd(GNUTLS_RND_NONCE, cid->data, len);
    gnutls_rnd(GNUTLS_RND_NONCE, token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static int on_complete(ngtcp2_conn *conn, void *user)
{
    (void)conn;
    ((client *)user)->complete = 1;
    return 0;
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((client *)ref->user_data)->conn;
}

/* ---- one connection ---- */

static ngtcp2_path path_of(client *c)
{
    ngtcp2_path path = {{(struct sockaddr *)&c->local, sizeof c->local},
                        {(struct sockaddr *)&server, sizeof server},
                        NULL};

    return path;
}

static void set_session(client *c)
{
    gnutls_datum_t alpn = {(unsigned char *)(uintptr_t) "h3", 2};

    c->ref = (ngtcp2_crypto_conn_ref){get_conn, c};
    peer_must(gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NO_END_OF_EARLY_DATA) == 0,
              "session");
    peer_must(gnutls_priority_set(c->session, priority) == 0, "priority");
    peer_must(ngtcp2_crypto_gnutls_configure_client_session(c->session) == 0, "session");
    gnutls_session_set_ptr(c->session, &c->ref);
    peer_must(gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, credentials) == 0,
              "credentials");
    peer_must(gnutls_alpn_set_protocols(c->session, &alpn, 1, GNUTLS_ALPN_MANDATORY) == 0, "ALPN");
    gnutls_server_name_set(c->session, GNUTLS_NAME_DNS, "localhost", 9);
}

static int open_socket(client *c)
{
    socklen_t len = sizeof c->local;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    peer_must(fd >= 0 && connect(fd, (struct sockaddr *)&server, sizeof server) == 0 &&
                  getsockname(fd, (struct sockaddr *)&c->local, &len) == 0,
              "socket");
    return fd;
}

static void flush(client *c, int fd)
{
    uint8_t packet[2048];
    ngtcp2_pkt_info info;
    ngtcp2_path_storage path;
    ngtcp2_ssize n;

    ngtcp2_path_storage_zero(&path);
    while ((n = ngtcp2_conn_write_pkt(c->conn, &path.path, &info, packet, DATAGRAM, peer_clock())) >
           0) {
        (void)!send(fd, packet, (size_t)n, 0);
    }
    peer_must(n == 0, "write");
}

static void begin(size_t i)
{
    client *c = &clients[i];
    ngtcp2_callbacks callbacks = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .handshake_completed = on_complete,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .rand = on_rand,
        .get_new_connection_id = on_new_cid,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    };
    ngtcp2_transport_params params;
    ngtcp2_settings settings;
    ngtcp2_cid scid = {.datalen = CID}, dcid = {.datalen = CID};
    ngtcp2_path path;

    memset(c, 0, sizeof *c);
    polled[i] = (struct pollfd){.fd = open_socket(c), .events = POLLIN};
    set_session(c);
    path = path_of(c);
    ngtcp2_settings_default(&settings);
    settings.initial_ts = peer_clock();
    ngtcp2_transport_params_default(&params);
    params.initial_max_data = WINDOW;
    params.initial_max_stream_data_bidi_local = WINDOW;
    params.initial_max_stream_data_uni = WINDOW;
    params.initial_max_streams_uni = 3;
    params.max_idle_timeout = 30 * NGTCP2_SECONDS;
    gnutls_rnd(GNUTLS_RND_NONCE, scid.data, CID);
    gnutls_rnd(GNUTLS_RND_NONCE, dcid.data, CID);
    peer_must(ngtcp2_conn_client_new(&c->conn, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &callbacks,
                                     &settings, &params, NULL, c) == 0,
              "client");
    ngtcp2_conn_set_tls_native_handle(c->conn, c->session);
    flush(c, polled[i].fd);
}

/* Says goodbye, and forgets it: a close that is lost costs the server an idle timeout. */
static void end(size_t i)
{
    client *c = &clients[i];
    uint8_t packet[2048];
    ngtcp2_connection_close_error error;
    ngtcp2_pkt_info info;
    ngtcp2_path_storage path;
    ngtcp2_ssize n;

    ngtcp2_path_storage_zero(&path);
    ngtcp2_connection_close_error_default(&error);
    n = ngtcp2_conn_write_connection_close(c->conn, &path.path, &info, packet, DATAGRAM, &error,
                                           peer_clock());
    if (n > 0) {
        (void)!send(polled[i].fd, packet, (size_t)n, 0);
    }
    ngtcp2_conn_del(c->conn);
    gnutls_deinit(c->session);
    close(polled[i].fd);
}

static void receive(size_t i)
{
    client *c = &clients[i];
    uint8_t packet[65536];
    ngtcp2_path path = path_of(c);
    ngtcp2_pkt_info info = {0};
    ssize_t n;

    while ((n = recv(polled[i].fd, packet, sizeof packet, 0)) > 0) {
        peer_must(ngtcp2_conn_read_pkt(c->conn, &path, &info, packet, (size_t)n, peer_clock()) == 0,
                  "read");
    }
    flush(c, polled[i].fd);
    if (c->complete) {
        done++;
        end(i);
        begin(i);
    }
}

/* What is due, and the milliseconds until something else is. */
static int expire(void)
{
    uint64_t now = peer_clock(), next = now + NGTCP2_SECONDS;

    for (size_t i = 0; i < at_once; i++) {
        uint64_t at = ngtcp2_conn_get_expiry(clients[i].conn);

        if (at <= now) {
            peer_must(ngtcp2_conn_handle_expiry(clients[i].conn, now) == 0, "expiry");
            flush(&clients[i], polled[i].fd);
            at = ngtcp2_conn_get_expiry(clients[i].conn);
        }
        next = at < next ? at : next;
    }
    return next > now ? (int)((next - now) / NGTCP2_MILLISECONDS) + 1 : 0;
}

int main(int argc, char **argv)
{
    double seconds = argc == 5 ? strtod(argv[4], NULL) : 0;
    uint64_t began, until;

    if (argc != 5 || seconds <= 0 || strtoul(argv[3], NULL, 10) - 1 >= AT_ONCE_MOST) {
        fprintf(stderr, "usage: ngtcp2_handshakes ADDR PORT AT_ONCE SECONDS\n");
        return 2;
    }
    server = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10))};
    peer_must(inet_pton(AF_INET, argv[1], &server.sin_addr) == 1, "address");
    at_once = strtoul(argv[3], NULL, 10);
    peer_must(gnutls_priority_init(&priority,
                                   "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:"
                                   "-GROUP-ALL:+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE",
                                   NULL) == 0,
              "priorities");
    peer_must(gnutls_certificate_allocate_credentials(&credentials) == 0, "credentials");
    began = peer_clock();
    until = began + (uint64_t)(seconds * (double)NGTCP2_SECONDS);
    for (size_t i = 0; i < at_once; i++) {
        begin(i);
    }
    while (peer_clock() < until) {
        poll(polled, at_once, expire());
        for (size_t i = 0; i < at_once; i++) {
            if (polled[i].revents) {
                receive(i);
            }
        }
    }
    printf("{\"operations\": %llu, \"seconds\": %.6f}\n", (unsigned long long)done,
           (double)(peer_clock() - began) / (double)NGTCP2_SECONDS);
    return 0;
}
