/* Which backends this build has, and the choice among them at run time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/backend.h"

#include <string.h>

const leat_crypto_backend *const leat_crypto_backends[] = {
#if defined(LEAT_HAVE_IPSEC_MB)
    &leat_crypto_ipsecmb,
#endif
    &leat_crypto_gnutls,
    NULL,
};

const leat_crypto_backend *leat_crypto_backend_pick(const char *name)
{
    for (size_t i = 0; leat_crypto_backends[i]; i++) {
        const leat_crypto_backend *backend = leat_crypto_backends[i];
        if (name && strcmp(name, backend->name) != 0) {
            continue;
        }
        if (backend->usable()) {
            return backend;
        }
    }
    return NULL;
}
