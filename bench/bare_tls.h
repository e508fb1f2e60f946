/* bench/bare_tls.h: the TLS library's own handshake, both ends in one thread, with its hooks for
 * QUIC and nothing of leat: what a handshake cannot be cheaper than.
 *
 * The same certificate, cipher, group, ALPN and transport parameters' extension as in world.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_BARE_TLS_H
#define LEAT_BENCH_BARE_TLS_H

#include <leat/base.h>

typedef struct leat_bare_tls leat_bare_tls;

/* Certificate and key as PEM. Fails the work on any error, as the others do. */
leat_bare_tls *leat_bare_tls_new(leat_span cert_pem, leat_span key_pem, bool verify, bool resume);
void leat_bare_tls_free(leat_bare_tls *bare);
/* One handshake, made and forgotten; with `resume` it goes on from the session of the one before
 * and takes the next. */
void leat_bare_tls_handshake(leat_bare_tls *bare);

#endif
