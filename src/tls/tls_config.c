/* Making a leat_tls_config: certificates, keys, authorities, and the pinned priority string.
 *
 * Certificate and key are read one after the other, so that an error names the one that is at
 * fault.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/config.h"

#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cursor.h"
#include "crypto/aead.h"
#include "crypto/secret.h"
#include "tls/tls.h"

void leat_tls_error_set(leat_tls_error *error, const char *what, const char *why)
{
    if (error) {
        snprintf(error->text, sizeof error->text, "%s: %s", what, why);
    }
}

void leat_tls_settings_init(leat_tls_settings *settings)
{
    *settings = (leat_tls_settings){
        .system_ca = true,
        .verify = true,
        .verify_host = true,
        .ciphers = {LEAT_TLS_AES_128_GCM_SHA256, LEAT_TLS_AES_256_GCM_SHA384,
                    LEAT_TLS_CHACHA20_POLY1305_SHA256},
        .cipher_count = 3,
        .groups = {LEAT_TLS_GROUP_X25519, LEAT_TLS_GROUP_P256, LEAT_TLS_GROUP_P384},
        .group_count = 3,
    };
}

bool leat_tls_alpn_list(const char *const *alpn, size_t count, gnutls_datum_t *out)
{
    if (!alpn || count == 0 || count > LEAT_TLS_ALPN_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t len = alpn[i] ? strlen(alpn[i]) : 0;
        if (len == 0 || len > 255) {
            return false;
        }
        out[i].data = (unsigned char *)alpn[i];
        out[i].size = (unsigned)len;
    }
    return true;
}

static leat_err copy_alpn(leat_tls_config *config, const leat_tls_settings *settings,
                          leat_tls_error *error)
{
    if (!leat_tls_alpn_list(settings->alpn, settings->alpn_count, config->alpn)) {
        leat_tls_error_set(error, "ALPN", "wants 1 to 16 protocol names of 1 to 255 bytes");
        return LEAT_ERR_INVALID;
    }
    config->alpn_count = settings->alpn_count;
    uint8_t *to = config->alpn_bytes;
    for (size_t i = 0; i < config->alpn_count; i++) {
        memcpy(to, config->alpn[i].data, config->alpn[i].size);
        config->alpn[i].data = to;
        to += config->alpn[i].size;
    }
    return LEAT_OK;
}

/* GnuTLS's word for a cipher or group; NULL for a number that is not in the list. */
static const char *cipher_word(leat_tls_cipher cipher)
{
    switch (cipher) {
    case LEAT_TLS_AES_128_GCM_SHA256:
        return ":+AES-128-GCM";
    case LEAT_TLS_AES_256_GCM_SHA384:
        return ":+AES-256-GCM";
    case LEAT_TLS_CHACHA20_POLY1305_SHA256:
        return ":+CHACHA20-POLY1305";
    }
    return NULL;
}

static const char *group_word(leat_tls_group group)
{
    switch (group) {
    case LEAT_TLS_GROUP_P256:
        return ":+GROUP-SECP256R1";
    case LEAT_TLS_GROUP_P384:
        return ":+GROUP-SECP384R1";
    case LEAT_TLS_GROUP_X25519:
        return ":+GROUP-X25519";
    }
    return NULL;
}

/* False: there is no such word. */
static bool add_word(leat_writer *text, const char *word)
{
    if (word) {
        leat_writer_bytes(text, word, strlen(word));
    }
    return word != NULL;
}

/* TLS 1.3 with the chosen ciphers alone: GnuTLS's own list has CCM, which leat cannot carry.
 * Without the compatibility mode there is no session ID and no ChangeCipherSpec (RFC 9001 §8.4). */
static leat_err make_priority(leat_tls_config *config, const leat_tls_settings *settings,
                              leat_tls_error *error)
{
    uint8_t text[512];
    leat_writer w;
    bool good = settings->cipher_count > 0 && settings->cipher_count <= LEAT_TLS_CIPHERS &&
                settings->group_count > 0 && settings->group_count <= LEAT_TLS_GROUPS;
    leat_writer_init(&w, text, sizeof text);
    add_word(&w, "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE:-CIPHER-ALL");
    for (size_t i = 0; good && i < settings->cipher_count; i++) {
        good = add_word(&w, cipher_word(settings->ciphers[i]));
    }
    add_word(&w, ":-GROUP-ALL");
    for (size_t i = 0; good && i < settings->group_count; i++) {
        good = add_word(&w, group_word(settings->groups[i]));
    }
    leat_writer_u8(&w, 0);
    LEAT_ASSERT(leat_writer_ok(&w));
    if (!good) {
        leat_tls_error_set(error, "ciphers and groups", "wants 1 to 3 of those in leat/tls.h");
        return LEAT_ERR_INVALID;
    }
    const char *at = NULL;
    int rc = gnutls_priority_init(&config->priority, (const char *)text, &at);
    if (rc == 0) {
        memcpy(config->groups, settings->groups, sizeof config->groups);
        config->group_count = settings->group_count;
        return LEAT_OK;
    }
    leat_tls_error_set(error, "ciphers and groups", gnutls_strerror(rc));
    return rc == GNUTLS_E_MEMORY_ERROR ? LEAT_ERR_NOMEM : LEAT_ERR_UNSUPPORTED;
}

static leat_err certificate_error(leat_tls_error *error, const char *what, int rc)
{
    const char *why = gnutls_strerror(rc);
    if (rc == GNUTLS_E_NO_CERTIFICATE_FOUND || rc == GNUTLS_E_BASE64_DECODING_ERROR ||
        rc == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR ||
        rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        why = "no valid PEM block found";
    }
    leat_tls_error_set(error, what, why);
    return rc == GNUTLS_E_MEMORY_ERROR ? LEAT_ERR_NOMEM : LEAT_ERR_CERTIFICATE;
}

static gnutls_datum_t datum(leat_span span)
{
    return (gnutls_datum_t){(unsigned char *)span.data, (unsigned)span.len};
}

static leat_err use_chain(leat_tls_config *config, gnutls_x509_crt_t *chain, unsigned count,
                          const leat_tls_settings *settings, leat_tls_error *error)
{
    gnutls_x509_privkey_t key;
    int rc = gnutls_x509_privkey_init(&key);
    if (rc != 0) {
        return certificate_error(error, "private key", rc);
    }
    gnutls_datum_t pem = datum(settings->key_pem);
    leat_err err = LEAT_OK;
    rc = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (rc == GNUTLS_E_DECRYPTION_FAILED) {
        leat_tls_error_set(error, "private key", "encrypted with a password; give it in the clear");
        err = LEAT_ERR_CERTIFICATE;
    } else if (rc != 0) {
        err = certificate_error(error, "private key", rc);
    } else {
        rc = gnutls_certificate_set_x509_key(config->credentials, chain, (int)count, key);
        if (rc == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) {
            leat_tls_error_set(error, "private key", "does not belong to the certificate");
            err = LEAT_ERR_CERTIFICATE;
        } else if (rc < 0) {
            err = certificate_error(error, "certificate", rc);
        }
    }
    gnutls_x509_privkey_deinit(key);
    return err;
}

static void note_validity(leat_tls_config *config, const gnutls_x509_crt_t *chain, unsigned count)
{
    config->not_before = INT64_MIN;
    config->not_after = INT64_MAX;
    for (unsigned i = 0; i < count; i++) {
        int64_t from = (int64_t)gnutls_x509_crt_get_activation_time(chain[i]);
        int64_t to = (int64_t)gnutls_x509_crt_get_expiration_time(chain[i]);
        config->not_before = from > config->not_before ? from : config->not_before;
        config->not_after = to < config->not_after ? to : config->not_after;
    }
}

static leat_err load_identity(leat_tls_config *config, const leat_tls_settings *settings,
                              leat_tls_error *error)
{
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;
    gnutls_datum_t pem = datum(settings->cert_pem);
    if (pem.size == 0 || settings->key_pem.len == 0) {
        leat_tls_error_set(error, pem.size == 0 ? "certificate" : "private key", "none given");
        return LEAT_ERR_CERTIFICATE;
    }
    int rc = gnutls_x509_crt_list_import2(&chain, &count, &pem, GNUTLS_X509_FMT_PEM,
                                          GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (rc == GNUTLS_E_CERTIFICATE_LIST_UNSORTED) {
        leat_tls_error_set(error, "certificate", "chain is not in order, leaf first");
        return LEAT_ERR_CERTIFICATE;
    }
    if (rc < 0) {
        return certificate_error(error, "certificate", rc);
    }
    note_validity(config, chain, count);
    leat_err err = use_chain(config, chain, count, settings, error);
    for (unsigned i = 0; i < count; i++) {
        gnutls_x509_crt_deinit(chain[i]);
    }
    gnutls_free(chain);
    return err;
}

static leat_err load_authorities(leat_tls_config *config, const leat_tls_settings *settings,
                                 leat_tls_error *error)
{
    int found = 0;
    if (settings->ca_pem.len > 0) {
        gnutls_datum_t pem = datum(settings->ca_pem);
        int rc =
            gnutls_certificate_set_x509_trust_mem(config->credentials, &pem, GNUTLS_X509_FMT_PEM);
        if (rc <= 0) {
            return certificate_error(error, "CA certificates",
                                     rc < 0 ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND);
        }
        found += rc;
    }
    if (settings->system_ca) {
        int rc = gnutls_certificate_set_x509_system_trust(config->credentials);
        found += rc > 0 ? rc : 0;
    }
    if (found > 0) {
        return LEAT_OK;
    }
    leat_tls_error_set(error, "CA certificates",
                       settings->system_ca ? "the system's store has none" : "none given");
    return LEAT_ERR_CERTIFICATE;
}

static leat_err make_ticket_key(leat_tls_config *config, const leat_tls_settings *settings,
                                leat_tls_error *error)
{
    if (settings->ticket_key.len != 0 && settings->ticket_key.len != LEAT_TLS_TICKET_KEY) {
        leat_tls_error_set(error, "ticket key", "must have 64 bytes");
        return LEAT_ERR_INVALID;
    }
    if (gnutls_session_ticket_key_generate(&config->ticket_key) != 0) {
        return LEAT_ERR_NOMEM;
    }
    LEAT_ASSERT(config->ticket_key.size == LEAT_TLS_TICKET_KEY);
    if (settings->ticket_key.len > 0) {
        memcpy(config->ticket_key.data, settings->ticket_key.data, LEAT_TLS_TICKET_KEY);
    }
    return LEAT_OK;
}

static leat_err fill(leat_tls_config *config, const leat_tls_settings *settings,
                     leat_tls_error *error)
{
    leat_err err = copy_alpn(config, settings, error);
    if (err == LEAT_OK) {
        err = make_priority(config, settings, error);
    }
    if (err != LEAT_OK) {
        return err;
    }
    if (gnutls_certificate_allocate_credentials(&config->credentials) != 0) {
        return LEAT_ERR_NOMEM;
    }
    if (config->server) {
        err = load_identity(config, settings, error);
        if (err == LEAT_OK && config->tickets > 0) {
            err = make_ticket_key(config, settings, error);
        }
        return err;
    }
    gnutls_certificate_set_verify_function(config->credentials, leat_tls_verify_peer);
    return config->verify ? load_authorities(config, settings, error) : LEAT_OK;
}

static leat_err make(const leat_tls_settings *settings, bool server, leat_tls_config **out,
                     leat_tls_error *error)
{
    *out = NULL;
    if (error) {
        error->text[0] = '\0';
    }
    leat_tls_config *config = calloc(1, sizeof *config);
    if (!config) {
        return LEAT_ERR_NOMEM;
    }
    config->server = server;
    config->verify = settings->verify;
    config->verify_host = settings->verify_host;
    config->tickets = settings->tickets;
    config->keylog = settings->keylog;
    config->keylog_user = settings->keylog_user;
    leat_err err = fill(config, settings, error);
    if (err != LEAT_OK) {
        leat_tls_config_free(config);
        return err;
    }
    *out = config;
    return LEAT_OK;
}

leat_err leat_tls_config_server(const leat_tls_settings *settings, leat_tls_config **out,
                                leat_tls_error *error)
{
    return make(settings, true, out, error);
}

leat_err leat_tls_config_client(const leat_tls_settings *settings, leat_tls_config **out,
                                leat_tls_error *error)
{
    return make(settings, false, out, error);
}

void leat_tls_config_validity(const leat_tls_config *config, int64_t *not_before,
                              int64_t *not_after)
{
    *not_before = config->not_before;
    *not_after = config->not_after;
}

void leat_tls_config_free(leat_tls_config *config)
{
    if (!config) {
        return;
    }
    if (config->credentials) {
        gnutls_certificate_free_credentials(config->credentials);
    }
    if (config->priority) {
        gnutls_priority_deinit(config->priority);
    }
    if (config->ticket_key.data) {
        leat_wipe(config->ticket_key.data, config->ticket_key.size);
        gnutls_free(config->ticket_key.data);
    }
    free(config);
}

bool leat_tls_config_is_server(const leat_tls_config *config)
{
    return config->server;
}

unsigned leat_tls_config_tickets(const leat_tls_config *config)
{
    return config->tickets;
}

unsigned leat_tls_config_trust(const leat_tls_config *config)
{
    return (config->verify ? 1u : 0u) | (config->verify && config->verify_host ? 2u : 0u);
}

bool leat_tls_config_has_alpn(const leat_tls_config *config, leat_span protocol)
{
    for (size_t i = 0; i < config->alpn_count; i++) {
        if (config->alpn[i].size == protocol.len &&
            memcmp(config->alpn[i].data, protocol.data, protocol.len) == 0) {
            return true;
        }
    }
    return false;
}
