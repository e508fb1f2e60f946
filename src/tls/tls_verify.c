/* A client's verdict on its server's certificate, with the reason in words and the alert that fits.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gnutls/x509.h>
#include <stdio.h>

#include "base/assert.h"
#include "tls/session.h"

/* What GnuTLS may find, the most telling first. */
static const struct {
    unsigned status;
    uint8_t alert;
    const char *text;
} findings[] = {
    {GNUTLS_CERT_REVOKED, LEAT_TLS_ALERT_CERTIFICATE_REVOKED, "revoked"},
    {GNUTLS_CERT_EXPIRED, LEAT_TLS_ALERT_CERTIFICATE_EXPIRED, "expired"},
    {GNUTLS_CERT_NOT_ACTIVATED, LEAT_TLS_ALERT_CERTIFICATE_EXPIRED, "not yet valid"},
    {GNUTLS_CERT_SIGNER_NOT_FOUND, LEAT_TLS_ALERT_UNKNOWN_CA, "signed by an unknown authority"},
    {GNUTLS_CERT_SIGNER_NOT_CA, LEAT_TLS_ALERT_UNKNOWN_CA, "its signer is not an authority"},
    {GNUTLS_CERT_UNEXPECTED_OWNER, LEAT_TLS_ALERT_BAD_CERTIFICATE, "not issued for this name"},
    {GNUTLS_CERT_PURPOSE_MISMATCH, LEAT_TLS_ALERT_BAD_CERTIFICATE, "not meant for a TLS server"},
    {GNUTLS_CERT_INSECURE_ALGORITHM, LEAT_TLS_ALERT_BAD_CERTIFICATE,
     "signed with an insecure algorithm"},
    /* Another authority of the same name signed it, most likely; this one did not. */
    {GNUTLS_CERT_SIGNATURE_FAILURE, LEAT_TLS_ALERT_UNKNOWN_CA,
     "not signed by the authority that it names"},
};

static int refuse(leat_tls *tls, uint8_t alert, const char *why)
{
    char text[sizeof tls->text];
    snprintf(text, sizeof text, "certificate: %s", why);
    leat_tls_set_failure(tls, LEAT_ERR_CERTIFICATE, LEAT_TE_CRYPTO_ERROR + alert, text);
    tls->verify_text = tls->failure.text;
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* Signed by itself: the commonest unknown authority, and worth its own words. */
static bool is_self_signed(gnutls_session_t session)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    gnutls_x509_crt_t leaf;
    if (count != 1 || gnutls_x509_crt_init(&leaf) != 0) {
        return false;
    }
    bool own = gnutls_x509_crt_import(leaf, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
               gnutls_x509_crt_check_issuer(leaf, leaf) == 1;
    gnutls_x509_crt_deinit(leaf);
    return own;
}

static int refuse_status(leat_tls *tls, unsigned status)
{
    for (size_t i = 0; i < LEAT_COUNT_OF(findings); i++) {
        if (!(status & findings[i].status)) {
            continue;
        }
        const char *why = findings[i].text;
        char named[LEAT_TLS_NAME_MAX + 16];
        if (findings[i].alert == LEAT_TLS_ALERT_UNKNOWN_CA && is_self_signed(tls->session)) {
            why = "self-signed, and not among the trusted ones";
        }
        if (findings[i].status == GNUTLS_CERT_UNEXPECTED_OWNER) {
            snprintf(named, sizeof named, "not issued for %s", tls->name);
            why = named;
        }
        return refuse(tls, findings[i].alert, why);
    }
    return refuse(tls, LEAT_TLS_ALERT_BAD_CERTIFICATE, "not valid");
}

int leat_tls_verify_peer(gnutls_session_t session)
{
    leat_tls *tls = gnutls_session_get_ptr(session);
    if (!tls->config->verify) {
        tls->verify_text = "certificate: not verified (verify is off)";
        return 0;
    }
    gnutls_typed_vdata_st data[2] = {
        {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER},
        {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)tls->name},
    };
    unsigned status = 0;
    int rc =
        gnutls_certificate_verify_peers(session, data, tls->config->verify_host ? 2 : 1, &status);
    if (rc < 0) {
        return refuse(tls, LEAT_TLS_ALERT_BAD_CERTIFICATE, gnutls_strerror(rc));
    }
    if (status != 0) {
        return refuse_status(tls, status);
    }
    tls->verify_text = "certificate: verified";
    return 0;
}
