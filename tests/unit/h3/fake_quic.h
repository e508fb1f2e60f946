/* A QUIC that is not there: two connections joined in memory, enough of leat/quic.h for HTTP to
 * stand on. Bytes move when the test says so, in segments as small as it wants, and every span
 * handed out is a copy that is freed as soon as the interface allows, so that AddressSanitizer sees
 * late reads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_QUIC_H
#define FAKE_QUIC_H

#include <leat/quic.h>

typedef struct fake_net {
    leat_ctx *ctx;
    leat_endpoint *endpoint;
    leat_conn *client, *server; /* NULL after `closed` */
    size_t segment;             /* bytes of a span received */
    size_t window;              /* bytes a stream buffers */
    size_t span;                /* longest span that reserve gives */
    size_t max_bidi;            /* streams open at once */
    leat_time now;
    bool early; /* 0-RTT is offered */
} fake_net;

void fake_net_open(fake_net *net, const char *alpn);
void fake_net_close(fake_net *net);

/* Moves bytes and tells events until nothing moves any more; returns whether anything did. */
bool fake_net_run(fake_net *net);
/* One round of it. */
bool fake_net_step(fake_net *net);

#endif
