/* io/entropy.c: the system's random device.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/loop.h>

#include <errno.h>
#include <sys/random.h>

leat_err leat_entropy(void *buf, size_t len)
{
    uint8_t *out = buf;
    while (len > 0) {
        /* More than 256 bytes may come in parts, or be interrupted. */
        ssize_t got = getrandom(out, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return LEAT_ERR_IO;
        }
        out += got;
        len -= (size_t)got;
    }
    return LEAT_OK;
}
