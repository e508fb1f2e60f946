/* tests/unit/io/fake_endpoint.h: an endpoint that knows nothing of QUIC: it hands out the batches
 * that the test queues and keeps what arrives, or sends it back.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_FAKE_ENDPOINT_H
#define LEAT_TESTS_FAKE_ENDPOINT_H

#include <leat/quic.h>

enum { FAKE_BATCHES = 512, FAKE_RECEIVED = 512 };

struct leat_endpoint {
    leat_ctx *ctx;
    bool used;
    bool echo; /* send back what comes, a datagram a batch */
    struct {
        leat_send_info info;
        size_t len;
        uint8_t fill; /* every byte of the batch */
    } batches[FAKE_BATCHES];
    size_t batch_first;
    size_t batch_count;
    struct {
        leat_recv_info info;
        leat_buf buf;
    } received[FAKE_RECEIVED];
    size_t received_count;
};

/* Queues a batch of len bytes, each `fill`, in datagrams of `segment`. */
void fake_queue(leat_endpoint *e, const leat_addr *remote, size_t len, size_t segment, uint8_t fill,
                uint8_t ecn);
/* The same from an address of this end. */
void fake_queue_from(leat_endpoint *e, const leat_addr *local, const leat_addr *remote, size_t len,
                     size_t segment, uint8_t fill, uint8_t ecn);

/* Releases what has arrived. */
void fake_forget(leat_endpoint *e);

#endif
