/* bench/limit/tls.c: bulk by TLS 1.3 over TCP on loopback, OpenSSL at both ends: what leat's bulk
 * is held to. Two processes, a core each; TLS_AES_128_GCM_SHA256, records of 16 KiB, one
 * connection.
 *
 *     leat-limit-tls [--bytes N]
 *
 * Prints one line of JSON: bytes that the receiver read, in which time from the handshake's end on,
 * and CPU seconds of both.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { RECORD = 16384, DAY = 86400 };

typedef struct shared {
    uint64_t received;
    double seconds, cpu; /* the receiver's */
} shared;

/* With what OpenSSL says of it. */
static void tls_must(bool good, const char *what)
{
    if (!good) {
        ERR_print_errors_fp(stderr);
    }
    leat_limit_must(good, what);
}

static void give_certificate(SSL_CTX *ctx)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();

    tls_must(key && cert, "key");
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY);
    X509_gmtime_adj(X509_getm_notAfter(cert), DAY);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    tls_must(X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
                 X509_set_pubkey(cert, key) == 1 && X509_sign(cert, key, EVP_sha256()) > 0,
             "certificate");
    tls_must(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1,
             "certificate");
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* A TLS connection over fd, the handshake done. */
static SSL *handshake(int fd, bool server)
{
    SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    int on = 1;
    SSL *ssl;

    tls_must(ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1,
             "TLS");
    if (server) {
        give_certificate(ctx);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ssl = SSL_new(ctx);
    tls_must(ssl && SSL_set_fd(ssl, fd) == 1, "TLS");
    tls_must((server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "handshake");
    return ssl;
}

static void receive_all(int fd, shared *out)
{
    static uint8_t data[RECORD];
    SSL *ssl = handshake(fd, false);
    double began = leat_limit_now();
    int n;

    while ((n = SSL_read(ssl, data, sizeof data)) > 0) {
        out->received += (uint64_t)n;
    }
    out->seconds = leat_limit_now() - began;
    out->cpu = leat_limit_cpu();
}

static void send_all(int fd, uint64_t bytes)
{
    static uint8_t data[RECORD];
    SSL *ssl = handshake(fd, true);

    for (uint64_t sent = 0; sent < bytes; sent += sizeof data) {
        leat_limit_must(SSL_write(ssl, data, sizeof data) == (int)sizeof data, "write");
    }
    SSL_shutdown(ssl);
    shutdown(fd, SHUT_WR);
}

static void run(uint64_t bytes, shared *both)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), status;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    pid_t child;
    int fd;

    leat_limit_must(listener >= 0 && bind(listener, (struct sockaddr *)&addr, len) == 0 &&
                        listen(listener, 1) == 0 &&
                        getsockname(listener, (struct sockaddr *)&addr, &len) == 0,
                    "socket");
    child = fork();
    leat_limit_must(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        leat_limit_stay_on(1);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        leat_limit_must(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0,
                        "connect");
        receive_all(fd, both);
        _exit(0);
    }
    leat_limit_stay_on(0);
    fd = accept(listener, NULL, NULL);
    leat_limit_must(fd >= 0, "accept");
    send_all(fd, bytes);
    leat_limit_must(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                        WEXITSTATUS(status) == 0,
                    "receiver");
    leat_limit_must(both->received >= bytes, "not all arrived");
}

int main(int argc, char **argv)
{
    uint64_t bytes = UINT64_C(2000000000);
    shared *both;

    if (argc == 3 && strcmp(argv[1], "--bytes") == 0) {
        bytes = strtoull(argv[2], NULL, 10);
    } else if (argc != 1) {
        fprintf(stderr, "usage: leat-limit-tls [--bytes N]\n");
        return 2;
    }
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    leat_limit_must(both != MAP_FAILED, "memory");
    signal(SIGPIPE, SIG_IGN);
    run(bytes, both);
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_sender\": %.6f, \"cpu_receiver\": %.6f, "
           "\"library\": \"%s\"}\n",
           (unsigned long long)both->received, both->seconds, leat_limit_cpu(), both->cpu,
           OpenSSL_version(OPENSSL_VERSION));
    return 0;
}
