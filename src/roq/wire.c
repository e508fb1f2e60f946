/* roq/wire.c: the varints of RTP over QUIC, and the names of its errors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

size_t leat_roq_varint_read(leat_span data, uint64_t *out)
{
    size_t len = data.len > 0 ? (size_t)1 << (data.data[0] >> 6) : 1;
    uint64_t value;

    if (data.len < len) {
        return 0;
    }
    value = data.data[0] & 0x3f;
    for (size_t i = 1; i < len; i++) {
        value = value << 8 | data.data[i];
    }
    *out = value;
    return len;
}

size_t leat_roq_varint_len(uint64_t value)
{
    return value < 64 ? 1 : value < 16384 ? 2 : value < 1073741824 ? 4 : 8;
}

size_t leat_roq_varint_write(uint8_t *out, uint64_t value)
{
    size_t len = leat_roq_varint_len(value);

    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(value >> 8 * (len - 1 - i));
    }
    out[0] |= (uint8_t)((len == 1 ? 0 : len == 2 ? 1 : len == 4 ? 2 : 3) << 6);
    return len;
}

const char *leat_roq_error_name(uint64_t code)
{
    switch (code) {
#define ERROR_NAME(name, value, text)                                                              \
    case LEAT_ROQ_##name:                                                                          \
        return "ROQ_" #name;
        LEAT_ROQ_ERROR_LIST(ERROR_NAME)
#undef ERROR_NAME
    }
    return "ROQ_?";
}

const char *leat_roq_error_text(uint64_t code)
{
    switch (code) {
#define ERROR_TEXT(name, value, text)                                                              \
    case LEAT_ROQ_##name:                                                                          \
        return text;
        LEAT_ROQ_ERROR_LIST(ERROR_TEXT)
#undef ERROR_TEXT
    }
    return "unknown error";
}
