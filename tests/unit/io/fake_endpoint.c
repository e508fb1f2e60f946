/* tests/unit/io/fake_endpoint.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_endpoint.h"

#include <stdlib.h>
#include <string.h>

enum { FAKES = 8 };
static leat_endpoint fakes[FAKES];

leat_err leat_endpoint_new(leat_ctx *ctx, const leat_endpoint_settings *settings,
                           leat_endpoint **out)
{
    (void)settings;
    for (int i = 0; i < FAKES; i++) {
        if (!fakes[i].used) {
            memset(&fakes[i], 0, sizeof(fakes[i]));
            fakes[i].used = true;
            fakes[i].ctx = ctx;
            *out = &fakes[i];
            return LEAT_OK;
        }
    }
    return LEAT_ERR_LIMIT;
}

void leat_endpoint_free(leat_endpoint *e)
{
    if (e != NULL) {
        fake_forget(e);
        e->used = false;
    }
}

void leat_endpoint_recv(leat_endpoint *e, leat_buf *buf, const leat_recv_info *info)
{
    if (e->echo) {
        size_t segment = info->segment != 0 ? info->segment : buf->len;
        fake_queue_from(e, &info->local, &info->remote, buf->len, segment, buf->data[0], info->ecn);
        leat_buf_release(buf);
        return;
    }
    if (e->received_count == FAKE_RECEIVED) {
        abort();
    }
    e->received[e->received_count].info = *info;
    e->received[e->received_count].buf = *buf;
    e->received_count++;
    *buf = (leat_buf){0};
}

size_t leat_endpoint_send(leat_endpoint *e, uint8_t *buf, size_t cap, leat_send_info *info)
{
    if (e->batch_count == 0) {
        return 0;
    }
    size_t i = e->batch_first;
    if (e->batches[i].len > cap) {
        abort();
    }
    e->batch_first = (i + 1) % FAKE_BATCHES;
    e->batch_count--;
    memset(buf, e->batches[i].fill, e->batches[i].len);
    *info = e->batches[i].info;
    return e->batches[i].len;
}

bool leat_endpoint_wants_send(const leat_endpoint *e)
{
    return e->batch_count != 0;
}

__attribute__((weak)) bool leat_addr_equal(const leat_addr *a, const leat_addr *b)
{
    return a->family == b->family && a->port == b->port && a->scope == b->scope &&
           memcmp(a->ip, b->ip, a->family == 4 ? 4 : 16) == 0;
}

void fake_queue(leat_endpoint *e, const leat_addr *remote, size_t len, size_t segment, uint8_t fill,
                uint8_t ecn)
{
    leat_addr any = {0};
    fake_queue_from(e, &any, remote, len, segment, fill, ecn);
}

void fake_queue_from(leat_endpoint *e, const leat_addr *local, const leat_addr *remote, size_t len,
                     size_t segment, uint8_t fill, uint8_t ecn)
{
    if (e->batch_count == FAKE_BATCHES) {
        abort();
    }
    size_t i = (e->batch_first + e->batch_count++) % FAKE_BATCHES;
    e->batches[i].info =
        (leat_send_info){.remote = *remote, .local = *local, .ecn = ecn, .segment = segment};
    e->batches[i].info.datagrams = (len + segment - 1) / segment;
    e->batches[i].len = len;
    e->batches[i].fill = fill;
}

void fake_forget(leat_endpoint *e)
{
    for (size_t i = 0; i < e->received_count; i++) {
        leat_buf_release(&e->received[i].buf);
    }
    e->received_count = 0;
}
