/* bench/peers/peer_ngtcp2.c: the works of `leat bench` on ngtcp2 with GnuTLS: client and server in
 * one thread, datagrams handed over in memory, without IP and UDP headers: `leat bench --stack
 * quic` is its counterpart.
 *
 * The same cipher, group and kind of certificate (ECDSA P-256, not checked), datagrams of up to
 * 1,452 bytes. Time is the machine's; pacing is off, since no send times are told.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <string.h>

#include "peer.h"

enum { DATAGRAM = 1452, MESSAGE = 1200, TRANSFER = 500000, WINDOW = 4 << 20, CID = 8, SMALL = 100 };

typedef struct end {
    ngtcp2_conn *conn;
    gnutls_session_t session;
    ngtcp2_crypto_conn_ref ref;
    int server;
    int complete;
    uint64_t received; /* bytes on streams */
    uint64_t closed;   /* streams */
    int64_t asked[64]; /* server: streams that wait for their answer */
    size_t asked_count;
} end;

static end client, server;
static gnutls_certificate_credentials_t server_cred, client_cred;
static gnutls_priority_t priority;
static struct sockaddr_in addrs[2];
static int64_t stream;
static uint8_t content[TRANSFER];

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
    ((end *)user)->complete = 1;
    return 0;
}

static int on_data(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t offset,
                   const uint8_t *data, size_t len, void *user, void *stream_user)
{
    end *e = user;

    (void)offset, (void)data, (void)stream_user;
    e->received += len;
    ngtcp2_conn_extend_max_stream_offset(conn, id, len);
    ngtcp2_conn_extend_max_offset(conn, len);
    if (e->server && (flags & NGTCP2_STREAM_DATA_FLAG_FIN) && ngtcp2_is_bidi_stream(id)) {
        e->asked[e->asked_count++] = id;
    } else if (e->server && (flags & NGTCP2_STREAM_DATA_FLAG_FIN)) {
        ngtcp2_conn_extend_max_streams_uni(conn, 1); /* its end is not told by stream_close */
    }
    return 0;
}

static int on_stream_close(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t code, void *user,
                           void *stream_user)
{
    end *e = user;

    (void)flags, (void)code, (void)stream_user;
    e->closed++;
    if (e->server && ngtcp2_is_bidi_stream(id)) {
        ngtcp2_conn_extend_max_streams_bidi(conn, 1);
    }
    return 0;
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((end *)ref->user_data)->conn;
}

/* ---- making ---- */

static ngtcp2_callbacks make_callbacks(void)
{
    return (ngtcp2_callbacks){
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .handshake_completed = on_complete,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_stream_data = on_data,
        .stream_close = on_stream_close,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .rand = on_rand,
        .get_new_connection_id = on_new_cid,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    };
}

static ngtcp2_path path_of(const end *e)
{
    ngtcp2_path path = {{(struct sockaddr *)&addrs[e->server], sizeof addrs[0]},
                        {(struct sockaddr *)&addrs[!e->server], sizeof addrs[0]},
                        NULL};

    return path;
}

static void set_params(ngtcp2_transport_params *params)
{
    ngtcp2_transport_params_default(params);
    params->initial_max_data = 2 * WINDOW;
    params->initial_max_stream_data_bidi_local = WINDOW;
    params->initial_max_stream_data_bidi_remote = WINDOW;
    params->initial_max_stream_data_uni = WINDOW;
    params->initial_max_streams_bidi = 128;
    params->initial_max_streams_uni = 128;
    params->max_idle_timeout = 30 * NGTCP2_SECONDS;
    params->active_connection_id_limit = 4;
}

static void set_session(end *e, int is_server)
{
    gnutls_datum_t alpn = {(unsigned char *)(uintptr_t) "leat-bench", 10};

    e->server = is_server;
    e->ref = (ngtcp2_crypto_conn_ref){get_conn, e};
    peer_must(gnutls_init(&e->session, (is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
                                           GNUTLS_NO_END_OF_EARLY_DATA | GNUTLS_NO_TICKETS |
                                           GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_KEY_SHARE_TOP) == 0,
              "gnutls_init");
    peer_must(gnutls_priority_set(e->session, priority) == 0, "priority");
    peer_must((is_server ? ngtcp2_crypto_gnutls_configure_server_session(e->session)
                         : ngtcp2_crypto_gnutls_configure_client_session(e->session)) == 0,
              "session");
    gnutls_session_set_ptr(e->session, &e->ref);
    peer_must(gnutls_credentials_set(e->session, GNUTLS_CRD_CERTIFICATE,
                                     is_server ? server_cred : client_cred) == 0,
              "credentials");
    peer_must(gnutls_alpn_set_protocols(e->session, &alpn, 1, GNUTLS_ALPN_MANDATORY) == 0, "ALPN");
    if (!is_server) {
        gnutls_server_name_set(e->session, GNUTLS_NAME_DNS, "localhost", 9);
    }
}

static void random_cid(ngtcp2_cid *cid)
{
    cid->datalen = CID;
    gnutls_rnd(GNUTLS_RND_NONCE, cid->data, CID);
}

static void start(end *e, const ngtcp2_pkt_hd *hd)
{
    ngtcp2_callbacks callbacks = make_callbacks();
    ngtcp2_transport_params params;
    ngtcp2_settings settings;
    ngtcp2_cid scid, dcid;
    ngtcp2_path path;

    memset(e, 0, sizeof *e);
    set_session(e, hd != NULL);
    path = path_of(e);
    ngtcp2_settings_default(&settings);
    settings.initial_ts = peer_clock();
    settings.max_tx_udp_payload_size = DATAGRAM;
    settings.no_tx_udp_payload_size_shaping = 1;
    set_params(&params);
    random_cid(&scid);
    random_cid(&dcid);
    if (hd) {
        params.original_dcid = hd->dcid;
        peer_must(ngtcp2_conn_server_new(&e->conn, &hd->scid, &scid, &path, hd->version, &callbacks,
                                         &settings, &params, NULL, e) == 0,
                  "server");
    } else {
        peer_must(ngtcp2_conn_client_new(&e->conn, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1,
                                         &callbacks, &settings, &params, NULL, e) == 0,
                  "client");
    }
    ngtcp2_conn_set_tls_native_handle(e->conn, e->session);
}

static void drop(end *e)
{
    ngtcp2_conn_del(e->conn);
    gnutls_deinit(e->session);
}

/* ---- running ---- */

static void receive(end *to, const uint8_t *data, size_t len)
{
    ngtcp2_pkt_info info = {0};
    ngtcp2_path path;

    if (!to->conn) {
        ngtcp2_pkt_hd hd;

        peer_must(ngtcp2_accept(&hd, data, len) == 0, "accept");
        start(to, &hd);
    }
    path = path_of(to);
    peer_must(ngtcp2_conn_read_pkt(to->conn, &path, &info, data, len, peer_clock()) == 0, "read");
}

/* Sends one datagram, with bytes of a stream when id is not -1; returns how many of them, -1: none.
 * *sent: whether there was a datagram. */
static ngtcp2_ssize send_one(end *from, end *to, int64_t id, size_t len, int fin, int *sent)
{
    static uint8_t packet[2048];
    ngtcp2_vec vec = {content, len};
    ngtcp2_pkt_info info;
    ngtcp2_path_storage path;
    ngtcp2_ssize taken = -1, n;

    ngtcp2_path_storage_zero(&path);
    n = ngtcp2_conn_writev_stream(from->conn, &path.path, &info, packet, DATAGRAM, &taken,
                                  fin ? NGTCP2_WRITE_STREAM_FLAG_FIN
                                      : NGTCP2_WRITE_STREAM_FLAG_NONE,
                                  id, &vec, id < 0 ? 0 : 1, peer_clock());
    if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
        n = 0;
    }
    peer_must(n >= 0, "write");
    *sent = n > 0;
    if (n > 0) {
        receive(to, packet, (size_t)n);
    }
    return taken;
}

static void expire(end *e)
{
    uint64_t now = peer_clock();

    if (e->conn && ngtcp2_conn_get_expiry(e->conn) <= now) {
        int rc = ngtcp2_conn_handle_expiry(e->conn, now);

        peer_must(rc == 0, ngtcp2_strerror(rc));
    }
}

static void flush(end *from, end *to)
{
    int sent = 1;

    while (sent) {
        send_one(from, to, -1, 0, 0, &sent);
    }
}

/* Answers waiting at the server, then whatever either side has to say. */
static void exchange(void)
{
    int sent;

    while (server.asked_count > 0) {
        int64_t id = server.asked[--server.asked_count];

        while (send_one(&server, &client, id, SMALL, 1, &sent) < 0) {
            flush(&client, &server);
        }
    }
    expire(&client);
    expire(&server);
    flush(&server, &client);
    flush(&client, &server);
}

static void connect_both(void)
{
    server.conn = NULL;
    start(&client, NULL);
    while (!client.complete || !server.complete) {
        flush(&client, &server);
        flush(&server, &client);
    }
    exchange();
}

static void handshakes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        connect_both();
        drop(&client);
        drop(&server);
    }
}

/* n bytes on a stream, in datagrams. */
static void put(int64_t id, size_t n, int fin)
{
    size_t done = 0;
    int sent;

    while (done < n) {
        ngtcp2_ssize taken = send_one(&client, &server, id, n - done, fin, &sent);

        done += taken > 0 ? (size_t)taken : 0;
        if (taken < 0) {
            exchange();
        }
    }
}

static void messages(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        uint64_t target = server.received + MESSAGE;

        put(stream, MESSAGE, 0);
        while (server.received < target) {
            exchange();
        }
        exchange();
    }
}

static void transfers(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        uint64_t target = server.received + TRANSFER;
        int64_t id;

        while (ngtcp2_conn_open_uni_stream(client.conn, &id, NULL) != 0) {
            exchange();
        }
        put(id, TRANSFER, 1);
        while (server.received < target) {
            exchange();
        }
    }
}

static void streams(void *arg)
{
    const int at_once = *(const int *)arg;

    for (int i = 0; i < 1000; i += at_once) {
        uint64_t target = client.closed + (uint64_t)at_once;

        for (int k = 0; k < at_once; k++) {
            int64_t id;

            while (ngtcp2_conn_open_bidi_stream(client.conn, &id, NULL) != 0) {
                exchange();
            }
            put(id, SMALL, 1);
        }
        while (client.closed < target) {
            exchange();
        }
    }
}

/* ---- transport parameters ---- */

static uint8_t encoded[512];
static size_t encoded_len;

static void encode(void *arg)
{
    const ngtcp2_transport_params *params = arg;

    for (int i = 0; i < 5000; i++) {
        __asm__ volatile("" : : "r"(params) : "memory");
        encoded_len = (size_t)ngtcp2_encode_transport_params(
            encoded, sizeof encoded, NGTCP2_TRANSPORT_PARAMS_TYPE_CLIENT_HELLO, params);
    }
}

static void decode(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++) {
        ngtcp2_transport_params params;

        peer_must(ngtcp2_decode_transport_params(&params, NGTCP2_TRANSPORT_PARAMS_TYPE_CLIENT_HELLO,
                                                 encoded, encoded_len) == 0,
                  "decode");
        __asm__ volatile("" : : "r"(&params) : "memory");
    }
}

/* ---- all ---- */

static void make_credentials(void)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;

    gnutls_x509_privkey_init(&key);
    gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    gnutls_x509_crt_init(&cert);
    gnutls_x509_crt_set_version(cert, 3);
    gnutls_x509_crt_set_serial(cert, "\1", 1);
    gnutls_x509_crt_set_activation_time(cert, time(NULL) - 86400);
    gnutls_x509_crt_set_expiration_time(cert, time(NULL) + 86400);
    gnutls_x509_crt_set_dn(cert, "CN=localhost", NULL);
    gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, "localhost", 9, 0);
    gnutls_x509_crt_set_key(cert, key);
    peer_must(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0) == 0, "certificate");
    gnutls_certificate_allocate_credentials(&server_cred);
    gnutls_certificate_allocate_credentials(&client_cred);
    peer_must(gnutls_certificate_set_x509_key(server_cred, &cert, 1, key) == 0, "key");
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

int main(void)
{
    const char *version = ngtcp2_version(0)->version_str;
    ngtcp2_transport_params params;
    int one = 1, ten = 10;

    addrs[0] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(40000)};
    addrs[1] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(4433)};
    make_credentials();
    peer_must(gnutls_priority_init(&priority,
                                   "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:"
                                   "-GROUP-ALL:+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE",
                                   NULL) == 0,
              "priority");
    peer_measure((peer_name){"ngtcp2", version, "handshake", "not verified"}, handshakes, NULL, 10);
    connect_both();
    peer_must(ngtcp2_conn_open_uni_stream(client.conn, &stream, NULL) == 0, "stream");
    peer_measure((peer_name){"ngtcp2", version, "transfer", "message of 1200 bytes"}, messages,
                 NULL, 1000);
    peer_measure((peer_name){"ngtcp2", version, "transfer", "500,000 bytes"}, transfers, NULL, 10);
    peer_measure((peer_name){"ngtcp2", version, "streams", "100 up, 100 down, 1 at once"}, streams,
                 &one, 1000);
    peer_measure((peer_name){"ngtcp2", version, "streams", "100 up, 100 down, 10 at once"}, streams,
                 &ten, 1000);
    set_params(&params);
    peer_measure((peer_name){"ngtcp2", version, "tparams", "encode, client's"}, encode, &params,
                 5000);
    peer_measure((peer_name){"ngtcp2", version, "tparams", "decode, client's"}, decode, NULL, 5000);
    drop(&client);
    drop(&server);
    return 0;
}
