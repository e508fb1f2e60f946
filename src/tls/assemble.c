/* The assembler of handshake messages; assemble.h says why there is one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/assemble.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"
#include "mem/mem.h"

enum { FIRST_ROOM = 1024 };

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool leat_tls_assemble_header(leat_tls_assembler *in, const uint8_t **data, size_t *len)
{
    if (in->have >= LEAT_TLS_MESSAGE_HEADER) {
        return true;
    }
    in->split = in->have > 0;
    while (in->have<LEAT_TLS_MESSAGE_HEADER && * len> 0) {
        in->header[in->have++] = *(*data)++;
        (*len)--;
    }
    return in->have == LEAT_TLS_MESSAGE_HEADER;
}

/* Room for at least n bytes, doubling, never beyond the message's end. */
static leat_err grow(leat_tls_assembler *in, leat_mem *mem, uint32_t n, uint32_t total)
{
    if (n <= in->room) {
        return LEAT_OK;
    }
    uint32_t room = in->room ? in->room : FIRST_ROOM;
    while (room < n) {
        room *= 2;
    }
    room = min_u32(room, total);
    uint8_t *message = leat_mem_regrow(mem, in->message, in->room, room);
    if (!message) {
        return LEAT_ERR_NOMEM;
    }
    if (!in->message) {
        memcpy(message, in->header, sizeof in->header);
    }
    in->message = message;
    in->room = room;
    return LEAT_OK;
}

leat_err leat_tls_assemble_body(leat_tls_assembler *in, leat_mem *mem, const uint8_t **data,
                                size_t *len, leat_span *message)
{
    LEAT_ASSERT(in->have >= LEAT_TLS_MESSAGE_HEADER);
    uint32_t body = leat_tls_message_len(in->header);
    uint32_t total = LEAT_TLS_MESSAGE_HEADER + body;
    *message = (leat_span){0};

    if (!in->message && !in->split && *len >= body) {
        *message = (leat_span){*data - LEAT_TLS_MESSAGE_HEADER, total};
        *data += body;
        *len -= body;
        return LEAT_OK;
    }
    uint32_t take = *len < total - in->have ? (uint32_t)*len : total - in->have;
    leat_err err = grow(in, mem, in->have + take, total);
    if (err != LEAT_OK) {
        return err;
    }
    LEAT_ASSERT(in->message != NULL); /* room for its header at least */
    memcpy(in->message + in->have, *data, take);
    in->have += take;
    *data += take;
    *len -= take;
    if (in->have == total) {
        *message = (leat_span){in->message, total};
    }
    return LEAT_OK;
}

void leat_tls_assembler_reset(leat_tls_assembler *in, leat_mem *mem)
{
    if (in->message) {
        leat_wipe(in->message, in->room);
        leat_mem_give(mem, in->message, in->room);
    }
    *in = (leat_tls_assembler){0};
}
