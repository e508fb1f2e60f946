/* h3/qpack.h: a head as a QPACK field section (RFC 9204 s4.5) that any decoder reads without having
 * seen anything before: indices of the static table, and literals.
 *
 * Nothing refers to the dynamic table, so nothing has to be kept, acknowledged or undone, and
 * nothing of the connection is told by how long a section is (s7.1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_H3_QPACK_H
#define LEAT_H3_QPACK_H

#include <leat/h3.h>

enum {
    LEAT_QPACK_BEGIN = 2, /* bytes ahead of the fields */
    LEAT_QPACK_FIELD = 12 /* bytes that a field takes at most, beside its name and value */
};

/* Both write at p and return where they ended. */
uint8_t *leat_qpack_begin(uint8_t *p);
/* Name and value are of less than 2^32 bytes. */
uint8_t *leat_qpack_field(uint8_t *p, const leat_http_field *field);

#endif
