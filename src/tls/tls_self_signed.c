/* A self-signed certificate for a server that was given none.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "tls/address.h"
#include "tls/config.h"

static int add_host(gnutls_x509_crt_t crt, const char *host)
{
    uint8_t address[16];
    size_t len = leat_tls_parse_address(host, address);
    if (len > 0) {
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address,
                                                    (unsigned)len, GNUTLS_FSAN_APPEND);
    }
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, host,
                                                (unsigned)strlen(host), GNUTLS_FSAN_APPEND);
}

static int fill_subject(gnutls_x509_crt_t crt, const leat_tls_self_signed *request)
{
    int rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, request->hosts[0],
                                           (unsigned)strlen(request->hosts[0]));
    for (size_t i = 0; rc == 0 && i < request->host_count; i++) {
        rc = add_host(crt, request->hosts[i]);
    }
    return rc;
}

/* Everything but the subject. It is its own authority, so that a client may be given it as --ca. */
static int fill_rest(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key,
                     const leat_tls_self_signed *request)
{
    uint8_t serial[16];
    int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);
    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and of full length */
    if (rc == 0) {
        rc = gnutls_x509_crt_set_version(crt, 3);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_serial(crt, serial, sizeof serial);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_activation_time(crt, (time_t)request->not_before);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_expiration_time(crt, (time_t)request->not_after);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_key(crt, key);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_basic_constraints(crt, 1, 0);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_key_usage(crt,
                                           GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_CERT_SIGN);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
    }
    return rc;
}

/* GnuTLS writes PEM text, counts the zero byte in when it is short of room, and not when it is not.
 */
static int export_pem(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, char *cert_pem,
                      size_t *cert_len, char *key_pem, size_t *key_len)
{
    *cert_len = LEAT_TLS_PEM_MAX;
    *key_len = LEAT_TLS_PEM_MAX;
    int rc = gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, cert_pem, cert_len);
    if (rc == 0) {
        rc = gnutls_x509_privkey_export_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                              key_pem, key_len);
    }
    return rc;
}

static bool request_good(const leat_tls_self_signed *request)
{
    if (request->host_count == 0 || request->not_after <= request->not_before) {
        return false;
    }
    for (size_t i = 0; i < request->host_count; i++) {
        size_t len = request->hosts[i] ? strlen(request->hosts[i]) : 0;
        if (len == 0 || len > 253) {
            return false;
        }
    }
    return strlen(request->hosts[0]) <= 64; /* the common name's bound, RFC 5280 */
}

leat_err leat_tls_make_self_signed(const leat_tls_self_signed *request,
                                   char cert_pem[LEAT_TLS_PEM_MAX], size_t *cert_len,
                                   char key_pem[LEAT_TLS_PEM_MAX], size_t *key_len,
                                   leat_tls_error *error)
{
    if (error) {
        error->text[0] = '\0';
    }
    *cert_len = 0;
    *key_len = 0;
    if (!request_good(request)) {
        leat_tls_error_set(error, "self-signed certificate", "host names or dates are not valid");
        return LEAT_ERR_INVALID;
    }
    gnutls_x509_crt_t crt = NULL;
    gnutls_x509_privkey_t key = NULL;
    int rc = gnutls_x509_crt_init(&crt);
    if (rc == 0) {
        rc = gnutls_x509_privkey_init(&key);
    }
    if (rc == 0) {
        rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    }
    if (rc == 0) {
        rc = fill_subject(crt, request);
    }
    if (rc == 0) {
        rc = fill_rest(crt, key, request);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0);
    }
    if (rc == 0) {
        rc = export_pem(crt, key, cert_pem, cert_len, key_pem, key_len);
    }
    if (key) {
        gnutls_x509_privkey_deinit(key);
    }
    if (crt) {
        gnutls_x509_crt_deinit(crt);
    }
    if (rc == 0) {
        return LEAT_OK;
    }
    leat_tls_error_set(error, "self-signed certificate", gnutls_strerror(rc));
    *cert_len = 0;
    *key_len = 0;
    return rc == GNUTLS_E_SHORT_MEMORY_BUFFER ? LEAT_ERR_TRUNCATED : LEAT_ERR_CRYPTO;
}
