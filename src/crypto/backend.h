/* crypto/backend.h: the backends by name, for backend.c alone; everybody else goes through
 * leat_crypto_backend_pick().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_BACKEND_H
#define LEAT_CRYPTO_BACKEND_H

#include "crypto/aead.h"

/* Everywhere: AEADs of GnuTLS, header protection by Nettle, which GnuTLS itself stands on. */
extern const leat_crypto_backend leat_crypto_gnutls;

#if defined(LEAT_HAVE_IPSEC_MB)
/* On amd64 where Intel's IPSec Multi-Buffer library was there at build time. */
extern const leat_crypto_backend leat_crypto_ipsecmb;
#endif

#endif
