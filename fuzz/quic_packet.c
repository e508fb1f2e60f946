/* fuzz/quic_packet.c: datagrams of any bytes, as an endpoint without connections gets them, and
 * what the header parser says of them. Answers are never larger than three times what was received.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "support/world.h"

/* The parts of a packet lie within it, and in order. */
static void check_header(leat_span datagram, size_t cid_len)
{
    leat_header h;

    if (leat_header_parse(datagram.data, datagram.len, cid_len, &h) != LEAT_OK) {
        return;
    }
    fuzz_check(h.packet_len <= datagram.len);
    fuzz_check(h.dcid.len == 0 || (h.dcid.data > datagram.data &&
                                   h.dcid.data + h.dcid.len <= datagram.data + datagram.len));
    if (h.type == LEAT_PACKET_INITIAL || h.type == LEAT_PACKET_HANDSHAKE ||
        h.type == LEAT_PACKET_ZERO_RTT || h.type == LEAT_PACKET_ONE_RTT) {
        fuzz_check(h.pn_offset + LEAT_PN_LEN_MAX + LEAT_HP_SAMPLE <= h.packet_len);
    }
    if (h.token.len > 0) {
        fuzz_check(h.token.data > datagram.data);
        fuzz_check(h.token.data + h.token.len <= datagram.data + datagram.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;
    static uint8_t out[65536];
    fuzz_input in = {data, data + size};
    leat_addr from = {.family = 4, .port = 777, .ip = {10, 0, 0, 9}};
    size_t received = 0, sent = 0;
    uint8_t flags = fuzz_byte(&in);

    world_open(&w, true);
    if (flags & 1) {
        w.server->settings.conn.wait_for_validation = true;
    }
    while (fuzz_left(&in)) {
        uint8_t datagram[1500] = {0};
        leat_span raw = fuzz_bytes(&in, fuzz_byte(&in) * 6u);
        size_t len = raw.len;
        leat_send_info info;
        size_t n;

        memcpy(datagram, raw.data, raw.len);
        if (flags & 2 && len < 1200) {
            len = 1200; /* as a client would pad it */
        }
        check_header((leat_span){datagram, len}, 8);
        check_header((leat_span){datagram, len}, flags >> 3 & 20);
        world_inject(&w, !(flags & 4), flags & 4 ? &w.client_addr : &from,
                     (leat_span){datagram, len});
        received += len;
        leat_ctx_turn(w.ctx, w.now);
        while ((n = leat_endpoint_send(w.server, out, sizeof(out), &info)) > 0) {
            if (leat_addr_equal(&info.remote, &from)) {
                sent += n;
            }
        }
        fuzz_check(sent <= 3 * received);
        world_settle(&w);
    }
    world_close(&w);
    return 0;
}
