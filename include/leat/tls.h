/* leat/tls.h: who this end is and whom it believes: certificates, ciphers, ALPN, the key log.
 *
 * A leat_tls_config is made once, before connections, and is immutable: contexts on any threads may
 * share it. It must outlive every connection made with it. Nothing here opens a file: PEM comes as
 * bytes (only the system's trust store is read, by the TLS library itself).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_H
#define LEAT_TLS_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

typedef struct leat_tls_config leat_tls_config;

/* The cipher suites of TLS 1.3 that QUIC uses here. */
typedef enum leat_tls_cipher {
    LEAT_TLS_AES_128_GCM_SHA256 = 0x1301,
    LEAT_TLS_AES_256_GCM_SHA384 = 0x1302,
    LEAT_TLS_CHACHA20_POLY1305_SHA256 = 0x1303
} leat_tls_cipher;

/* Groups of the key exchange, by their TLS numbers. */
typedef enum leat_tls_group {
    LEAT_TLS_GROUP_P256 = 23,
    LEAT_TLS_GROUP_P384 = 24,
    LEAT_TLS_GROUP_X25519 = 29
} leat_tls_group;

enum { LEAT_TLS_CIPHERS = 3, LEAT_TLS_GROUPS = 3 };

/* Says what failed, in words for a person: "certificate: expired on 2024-01-31". Empty after
 * success. */
typedef struct leat_tls_error {
    char text[256];
} leat_tls_error;

/* One line of the key log in the format of SSLKEYLOGFILE, without the newline. Called during a
 * handshake on the thread of its context: a config shared by threads needs a callback that is safe
 * from all. */
typedef void leat_tls_keylog_fn(void *user, const char *line);

/* What a config is made from. Everything is copied; the caller's memory may go afterwards. */
typedef struct leat_tls_settings {
    /* Server: the certificate chain, leaf first, and its private key, PEM. Client: none. */
    leat_span cert_pem;
    leat_span key_pem;

    /* Client: believe certificates that these authorities signed; both may be used together. */
    leat_span ca_pem;
    bool system_ca;
    /* Client: check the certificate (chain, dates, and with verify_host the server's name or
     * address). Without `verify` any certificate passes: for tests and for --insecure. */
    bool verify;
    bool verify_host;

    /* ALPN protocols, best first, each 1 to 255 bytes, LEAT_TLS_ALPN_MAX at most. A QUIC connection
     * always has one: there must be at least one here. */
    const char *const *alpn;
    size_t alpn_count;

    /* Ciphers and groups, best first. */
    leat_tls_cipher ciphers[LEAT_TLS_CIPHERS];
    size_t cipher_count;
    leat_tls_group groups[LEAT_TLS_GROUPS];
    size_t group_count;

    /* NULL: no key log. */
    leat_tls_keylog_fn *keylog;
    void *keylog_user;

    /* Server: session tickets sent after each handshake; 0: none. Client: more than 0 keeps the TLS
     * state until they have come. ticket_key: LEAT_TLS_TICKET_KEY bytes, empty: made at random. */
    unsigned tickets;
    leat_span ticket_key;
} leat_tls_settings;

enum { LEAT_TLS_TICKET_KEY = 64, LEAT_TLS_ALPN_MAX = 16 };

/* The defaults: verify and verify_host on, the system's authorities, all three ciphers with
 * AES-128-GCM first, X25519 then P-256 then P-384, no ALPN, no certificate, no tickets. */
LEAT_API void leat_tls_settings_init(leat_tls_settings *settings);

/* Makes the config of a server. LEAT_ERR_CERTIFICATE when certificate or key cannot be read or do
 * not belong together, LEAT_ERR_INVALID for any other setting, LEAT_ERR_NOMEM. `error` (may be
 * NULL) says what failed. The caller owns *out. */
LEAT_API leat_err leat_tls_config_server(const leat_tls_settings *settings, leat_tls_config **out,
                                         leat_tls_error *error);

/* Makes the config of a client, likewise. LEAT_ERR_CERTIFICATE when ca_pem or the system's store
 * holds no usable certificate although `verify` is on. */
LEAT_API leat_err leat_tls_config_client(const leat_tls_settings *settings, leat_tls_config **out,
                                         leat_tls_error *error);

/* Of a server's config: from when to when the whole certificate chain is valid, in seconds since
 * 1970. A chain outside its time can be used; most clients refuse it. */
LEAT_API void leat_tls_config_validity(const leat_tls_config *config, int64_t *not_before,
                                       int64_t *not_after);

/* Frees. No connection may use it any more. NULL is allowed. */
LEAT_API void leat_tls_config_free(leat_tls_config *config);

/* A certificate for a server that has none: self-signed, ECDSA P-256. */
typedef struct leat_tls_self_signed {
    /* DNS names and IP addresses, at least one; the first is the subject, at most 64 bytes. */
    const char *const *hosts;
    size_t host_count;
    int64_t not_before; /* seconds since 1970 */
    int64_t not_after;
} leat_tls_self_signed;

/* Writes certificate and key as PEM, ended by a zero byte that *_len does not count. Each buffer
 * needs LEAT_TLS_PEM_MAX bytes. LEAT_ERR_INVALID, LEAT_ERR_TRUNCATED, LEAT_ERR_CRYPTO; `error` may
 * be NULL. */
enum { LEAT_TLS_PEM_MAX = 4096 };
LEAT_API leat_err leat_tls_make_self_signed(const leat_tls_self_signed *request,
                                            char cert_pem[LEAT_TLS_PEM_MAX], size_t *cert_len,
                                            char key_pem[LEAT_TLS_PEM_MAX], size_t *key_len,
                                            leat_tls_error *error);

LEAT_END_DECLS

#endif
