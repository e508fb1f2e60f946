/* tls/config.h: what a leat_tls_config holds, for the GnuTLS backend's own files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_CONFIG_H
#define LEAT_TLS_CONFIG_H

#include <gnutls/gnutls.h>
#include <leat/tls.h>

/* Immutable once made, so threads share it; GnuTLS reads credentials and priorities without
 * changing them. */
struct leat_tls_config {
    bool server;
    bool verify;
    bool verify_host;
    unsigned tickets;
    int64_t not_before, not_after; /* server: of the chain, see leat_tls_config_validity() */
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    gnutls_datum_t ticket_key; /* server with tickets */
    leat_tls_keylog_fn *keylog;
    void *keylog_user;
    size_t group_count;
    leat_tls_group groups[LEAT_TLS_GROUPS];
    size_t alpn_count;
    gnutls_datum_t alpn[LEAT_TLS_ALPN_MAX]; /* into alpn_bytes */
    uint8_t alpn_bytes[LEAT_TLS_ALPN_MAX * 255];
};

/* Puts a list of protocol names into `out` (room for LEAT_TLS_ALPN_MAX), which then points at them.
 * False when there is none, too many, or one is empty or longer than 255 bytes. */
bool leat_tls_alpn_list(const char *const *alpn, size_t count, gnutls_datum_t *out);

/* Fills in error->text, "what: why"; error may be NULL. */
void leat_tls_error_set(leat_tls_error *error, const char *what, const char *why);

/* The verify function of a client's credentials (tls_verify.c); GnuTLS calls it during a handshake.
 */
int leat_tls_verify_peer(gnutls_session_t session);

#endif
