/* tls/assemble.h: puts TLS handshake messages together from CRYPTO bytes.
 *
 * GnuTLS is given whole messages only. That keeps what a peer can make this end hold under leat's
 * own limit (GnuTLS would keep a block of its own for each piece), and lets the level be checked
 * after every message. A message that lies whole in the input is not copied; memory for one that
 * does not grows as its bytes come, so a peer gets no memory for a length that it only announces.
 *
 * For each message: leat_tls_assemble_header() until it is true, judge the header,
 * leat_tls_assemble_body() in the same call that brought the header and in later ones until it
 * gives the message, use it, leat_tls_assembler_reset().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_ASSEMBLE_H
#define LEAT_TLS_ASSEMBLE_H

#include <leat/base.h>
#include <leat/buf.h>

#include "tls/message.h"

typedef struct leat_tls_assembler {
    uint8_t header[LEAT_TLS_MESSAGE_HEADER];
    bool split;       /* the header came in more than one piece */
    uint32_t have;    /* bytes of the present message so far, header included */
    uint32_t room;    /* bytes of `message` */
    uint8_t *message; /* from mem; NULL while nothing of the body had to be kept */
} leat_tls_assembler;

/* Takes what is missing of the header from the input, moving it on. True when the header is whole.
 */
bool leat_tls_assemble_header(leat_tls_assembler *in, const uint8_t **data, size_t *len);

/* Takes what is missing of the body. *message is the whole message, good until the reset or as long
 * as the input, or empty when more is needed. LEAT_OK or LEAT_ERR_NOMEM. */
leat_err leat_tls_assemble_body(leat_tls_assembler *in, leat_mem *mem, const uint8_t **data,
                                size_t *len, leat_span *message);

/* Forgets the present message, wipes it and gives its memory back. */
void leat_tls_assembler_reset(leat_tls_assembler *in, leat_mem *mem);

#endif
