/* wire/cid.h: a connection ID as a value (RFC 9000 §5.1).
 *
 * Small enough to copy. Bytes past len are not significant, and leat_cid_set() clears them, so that
 * two equal IDs set by it are equal byte for byte (handy for hashing). Version-independent packets
 * (RFC 8999) may carry IDs of up to 255 bytes: those stay spans, see wire/header.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_CID_H
#define LEAT_WIRE_CID_H

#include <string.h>

#include <leat/base.h>

#define LEAT_CID_MAX               20 /* bytes in versions 1 and 2 (RFC 9000 §17.2) */
#define LEAT_CID_INVARIANT_MAX     255
#define LEAT_STATELESS_RESET_TOKEN 16 /* bytes (RFC 9000 §10.3) */

typedef struct leat_cid {
    uint8_t len; /* 0 to LEAT_CID_MAX */
    uint8_t data[LEAT_CID_MAX];
} leat_cid;

/* Copies at most LEAT_CID_MAX bytes by a few moves that may overlap, in place of a call. */
static inline void leat_cid_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len >= 8) {
        uint64_t first, last;

        memcpy(&first, from, 8);
        memcpy(&last, from + len - 8, 8);
        if (len > 16) {
            memcpy(to + 8, from + 8, 8);
        }
        memcpy(to, &first, 8);
        memcpy(to + len - 8, &last, 8);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        to[i] = from[i];
    }
}

/* Copies len bytes into *cid. False, and *cid empty, when len is above LEAT_CID_MAX. */
static inline bool leat_cid_set(leat_cid *cid, const uint8_t *data, size_t len)
{
    *cid = (leat_cid){.len = 0};
    if (len > LEAT_CID_MAX) {
        return false;
    }
    cid->len = (uint8_t)len;
    leat_cid_copy(cid->data, data, len);
    return true;
}

static inline leat_span leat_cid_span(const leat_cid *cid)
{
    return (leat_span){cid->data, cid->len};
}

/* Not in constant time: connection IDs are not secret. */
static inline bool leat_cid_equal(const leat_cid *a, const leat_cid *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static inline bool leat_cid_equal_span(const leat_cid *a, leat_span b)
{
    return a->len == b.len && (b.len == 0 || memcmp(a->data, b.data, b.len) == 0);
}

#endif
