/* fuzz/quic_frame.c: frames. What decodes is within its payload and has possible values; what can
 * be written again decodes to the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include "any_frame.h"
#include "support/fuzz.h"

static void check_ack(const leat_frame_ack *ack)
{
    leat_ack_iter iter;
    leat_range range;
    uint64_t below = ack->largest + 1, count = 0;

    leat_ack_iter_init(&iter, ack);
    while (leat_ack_iter_next(&iter, &range)) {
        fuzz_check(range.from < range.to);
        fuzz_check(range.to <= below && (count == 0 || range.to < below));
        below = range.from;
        count++;
    }
    fuzz_check(count == ack->range_count + 1);
    fuzz_check(below == ack->smallest);
}

static bool within(leat_span payload, leat_span part)
{
    return part.len == 0 ||
           (part.data >= payload.data && part.data + part.len <= payload.data + payload.len);
}

/* An ACK's ranges, ascending; 0: too many for here. */
static size_t ranges_of(const leat_frame_ack *ack, leat_range *out, size_t max)
{
    leat_ack_iter iter;
    leat_range range;
    size_t count = (size_t)ack->range_count + 1, i = count;

    if (count > max) {
        return 0;
    }
    leat_ack_iter_init(&iter, ack);
    while (leat_ack_iter_next(&iter, &range)) {
        out[--i] = range;
    }
    return count;
}

static void check_again(const leat_frame *f)
{
    static uint8_t out[65536];
    static leat_range ranges[1024];
    size_t range_count = 0;
    leat_frame again;
    leat_cursor c;
    leat_writer w;

    if (f->kind == LEAT_FRAME_ACK) {
        range_count = ranges_of(&f->ack, ranges, LEAT_COUNT_OF(ranges));
        if (range_count == 0) {
            return;
        }
    }
    leat_writer_init(&w, out, sizeof(out));
    if (!write_frame(&w, f, ranges, range_count)) {
        fuzz_check(f->kind == LEAT_FRAME_CRYPTO && f->crypto.data.len == 0);
        return;
    }
    leat_cursor_init(&c, out, leat_writer_len(&w));
    fuzz_check(leat_frame_decode(&c, &again) == LEAT_TE_NO_ERROR);
    fuzz_check(leat_cursor_left(&c) == 0);
    fuzz_check(same_frame(&again, f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_span payload = {data, size};
    leat_cursor c;
    leat_frame f;

    leat_cursor_init(&c, data, size);
    while (leat_cursor_left(&c) > 0) {
        size_t left = leat_cursor_left(&c);

        if (leat_frame_decode(&c, &f) != LEAT_TE_NO_ERROR) {
            return 0;
        }
        fuzz_check(leat_cursor_left(&c) < left);
        fuzz_check(f.kind < LEAT_FRAME_KINDS);
        switch (f.kind) {
        case LEAT_FRAME_ACK:
            check_ack(&f.ack);
            break;
        case LEAT_FRAME_STREAM:
            fuzz_check(within(payload, f.stream.data));
            fuzz_check(f.stream.offset + f.stream.data.len <= LEAT_VARINT_MAX);
            break;
        case LEAT_FRAME_CRYPTO:
            fuzz_check(within(payload, f.crypto.data));
            fuzz_check(f.crypto.offset + f.crypto.data.len <= LEAT_VARINT_MAX);
            break;
        case LEAT_FRAME_CONNECTION_CLOSE:
        case LEAT_FRAME_APPLICATION_CLOSE:
            fuzz_check(within(payload, f.connection_close.reason));
            break;
        case LEAT_FRAME_DATAGRAM:
            fuzz_check(within(payload, f.datagram.data));
            break;
        default:
            break;
        }
        check_again(&f);
    }
    return 0;
}
