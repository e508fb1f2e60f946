/* conn/path.c: see conn/path.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/path.h"

#include <string.h>

#include "base/assert.h"

void leat_path_init(leat_path *path, const leat_addr *local, const leat_addr *remote,
                    bool validated)
{
    *path = (leat_path){.local = *local, .remote = *remote, .validated = validated};
}

void leat_path_on_received(leat_path *path, size_t bytes)
{
    path->received += bytes;
}

void leat_path_on_sent(leat_path *path, size_t bytes)
{
    path->sent += bytes;
}

size_t leat_path_allowance(const leat_path *path)
{
    uint64_t allowed = LEAT_PATH_AMPLIFICATION * path->received;

    if (path->validated) {
        return SIZE_MAX;
    }
    return allowed > path->sent ? (size_t)(allowed - path->sent) : 0;
}

void leat_path_challenge(leat_path *path, const uint8_t data[LEAT_PATH_DATA])
{
    if (path->responses == LEAT_PATH_RESPONSES_MAX) {
        leat_path_responded(path);
    }
    memcpy(path->response[path->responses++], data, LEAT_PATH_DATA);
}

const uint8_t *leat_path_response(const leat_path *path)
{
    return path->responses > 0 ? path->response[0] : NULL;
}

void leat_path_responded(leat_path *path)
{
    LEAT_ASSERT(path->responses > 0);
    path->responses--;
    memmove(path->response[0], path->response[1], (size_t)path->responses * LEAT_PATH_DATA);
}
