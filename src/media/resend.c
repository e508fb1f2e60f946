/* media/resend.c: packets kept to be sent again.
 *
 * A ring by number. Those in [begin, end) may be there; begin moves up as room or bytes run out, so
 * the oldest go first. `bytes` is the sum of the buffers in the ring. A row of packets below that
 * follow each other is an encoder that began anew: its numbers go on above.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <leat/nack.h>
#include <leat/rtp.h>

#include "base/assert.h"
#include "base/time.h"
#include "media/restart.h"
#include "mem/mem.h"

enum { ORIGIN = 1 << 20 };

leat_err leat_resend_init(leat_resend *r, leat_mem *mem, size_t packets, size_t bytes,
                          leat_time interval)
{
    *r = (leat_resend){
        .end = ORIGIN, .begin = ORIGIN, .most_bytes = bytes, .interval = interval, .mem = mem};
    if (packets < LEAT_RESEND_PACKETS_MIN || packets > LEAT_RESEND_PACKETS_MAX ||
        (packets & (packets - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    r->mask = packets - 1;
    r->ring = (leat_resend_packet *)leat_mem_take_zeroed(mem, packets * sizeof *r->ring);
    return r->ring ? LEAT_OK : LEAT_ERR_NOMEM;
}

static leat_resend_packet *slot_of(const leat_resend *r, uint64_t seq)
{
    return &r->ring[seq & r->mask];
}

static void drop(leat_resend *r, leat_resend_packet *p)
{
    r->bytes -= p->buf.len;
    leat_buf_release(&p->buf);
}

/* Drops what lies below `begin`. */
static void move_begin(leat_resend *r, uint64_t begin)
{
    uint64_t last = begin < r->end ? begin : r->end;

    if (last - r->begin > r->mask) {
        r->begin = last - r->mask - 1; /* one round of the ring is all there is */
    }
    for (; r->begin < last; r->begin++) {
        drop(r, slot_of(r, r->begin));
    }
    r->begin = begin;
}

void leat_resend_free(leat_resend *r)
{
    if (r->ring) {
        move_begin(r, r->end);
        LEAT_ASSERT(r->bytes == 0);
        leat_mem_give(r->mem, r->ring, (r->mask + 1) * sizeof *r->ring);
        r->ring = NULL;
    }
}

/* Moves the ring so that `full` lies in it; false: it lies below. */
static bool make_room(leat_resend *r, uint64_t full, size_t len)
{
    if (full < r->begin) {
        return false;
    }
    if (full >= r->end) {
        uint64_t size = r->mask + 1;

        if (full + 1 - r->begin > size) {
            move_begin(r, full + 1 - size);
        }
        r->end = full + 1;
    } else {
        drop(r, slot_of(r, full));
    }
    while (r->bytes + len > r->most_bytes) {
        if (r->begin >= full) {
            return false;
        }
        move_begin(r, r->begin + 1);
    }
    return true;
}

/* The number in full. */
static uint64_t place(leat_resend *r, uint16_t seq)
{
    uint64_t full = leat_seq_unwrap(r->end, seq);

    if (!r->started) {
        r->started = true;
        r->begin = r->end = r->end + seq;
        return r->end;
    }
    if (r->end - full <= r->mask + 1 || full >= r->end) {
        r->restart.count = 0;
    } else if (leat_restart_on_far(&r->restart, seq, LEAT_RESTART_ROW)) {
        full = r->end + (uint16_t)(seq - (uint16_t)r->end);
    }
    return full;
}

void leat_resend_keep(leat_resend *r, uint16_t seq, leat_time now, leat_buf *packet)
{
    uint64_t full = place(r, seq);
    leat_resend_packet *p;

    if (packet->len == 0 || packet->len > r->most_bytes || !make_room(r, full, packet->len)) {
        leat_buf_release(packet);
        return;
    }
    p = slot_of(r, full);
    *p = (leat_resend_packet){.buf = *packet, .seq = full, .sent = now};
    r->bytes += packet->len;
    *packet = (leat_buf){.data = NULL};
}

bool leat_resend_find(leat_resend *r, uint16_t seq, leat_time now, leat_span *out)
{
    uint64_t full = r->end - (uint16_t)((uint16_t)r->end - seq);
    leat_resend_packet *p = slot_of(r, full);

    *out = (leat_span){NULL, 0};
    if (full < r->begin || full >= r->end || p->buf.len == 0 || p->seq != full ||
        leat_time_since(now, p->sent) < r->interval) {
        return false;
    }
    p->sent = now;
    *out = (leat_span){p->buf.data, p->buf.len};
    return true;
}
