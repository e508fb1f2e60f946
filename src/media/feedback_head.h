/* media/feedback_head.h: the head that all RTPFB packets share, checked once for both parsers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_FEEDBACK_HEAD_H
#define LEAT_MEDIA_FEEDBACK_HEAD_H

#include <leat/rtcp.h>

/* Checks that data is one whole RTPFB packet of the format; *body is what follows the four bytes of
 * the header, without padding. LEAT_ERR_INVALID: of another kind. */
static inline leat_err leat_feedback_head(leat_span data, uint8_t fmt, leat_span *body)
{
    const uint8_t *p = data.data;
    size_t padding;

    if (data.len < 4) {
        return LEAT_ERR_TRUNCATED;
    }
    if (p[0] >> 6 != 2) {
        return LEAT_ERR_MALFORMED;
    }
    if (p[1] != LEAT_RTCP_RTPFB || (p[0] & 0x1f) != fmt) {
        return LEAT_ERR_INVALID;
    }
    if ((((size_t)p[2] << 8 | p[3]) + 1) * 4 != data.len) {
        return LEAT_ERR_MALFORMED;
    }
    padding = p[0] & 0x20 ? p[data.len - 1] : 0;
    if ((p[0] & 0x20 && padding == 0) || padding > data.len - 4) {
        return LEAT_ERR_MALFORMED;
    }
    *body = (leat_span){p + 4, data.len - 4 - padding};
    return LEAT_OK;
}

#endif
