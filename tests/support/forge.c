/* tests/support/forge.c: see forge.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "forge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "wire/header.h"

static leat_packet_keys *keys_of(leat_conn *from, leat_space space, bool early)
{
    if (early) {
        return leat_early_tx(from);
    }
    return space == LEAT_SPACE_APP ? &from->rekey.tx : &leat_conn_space(from, space)->keys->tx;
}

static leat_packet_type type_of(leat_space space, bool early)
{
    return space == LEAT_SPACE_INITIAL     ? LEAT_PACKET_INITIAL
           : space == LEAT_SPACE_HANDSHAKE ? LEAT_PACKET_HANDSHAKE
           : early                         ? LEAT_PACKET_ZERO_RTT
                                           : LEAT_PACKET_ONE_RTT;
}

static void forge(leat_pair *pair, leat_conn *from, leat_space space, uint8_t or_bits,
                  const leat_forge_odd *odd, const void *payload, size_t len)
{
    uint8_t packet[1500];
    leat_pnspace *pn = leat_conn_space(from, space);
    bool early = space == LEAT_SPACE_APP && !leat_packet_keys_ready(&from->rekey.tx);
    leat_packet_keys *keys = odd->keys ? odd->keys : keys_of(from, space, early);
    const leat_cid *own = &from->local_cids.entry[0].cid;
    const leat_cid *scid = odd->scid ? odd->scid : own;
    const leat_cid *dcid = odd->dcid   ? odd->dcid
                           : odd->back ? own
                                       : leat_remote_cids_current(&from->remote_cids);
    size_t size = odd->size ? odd->size : 1200;
    uint64_t number = odd->number ? *odd->number : leat_sent_next_pn(&pn->sent);
    leat_seal_op op = {.packet = packet, .pn = number, .pn_len = 4};
    leat_packet_type type = type_of(space, early);
    leat_long_packet header;
    leat_writer w;

    assert_non_null(keys);
    leat_writer_init(&w, packet, sizeof(packet) - LEAT_AEAD_TAG);
    if (type == LEAT_PACKET_ONE_RTT) {
        assert_true(leat_header_write_short(&w, dcid, false, from->rekey.tx_phase & 1, number, 4));
    } else {
        assert_true(leat_header_write_long(&w, &header, type,
                                           odd->version ? odd->version : from->version, dcid, scid,
                                           odd->token, number, 4));
    }
    packet[0] |= or_bits;
    op.header_len = (uint32_t)leat_writer_len(&w);
    leat_writer_bytes(&w, payload, len);
    if (space == LEAT_SPACE_INITIAL && leat_writer_len(&w) < size - LEAT_AEAD_TAG) {
        leat_writer_zero(&w, size - LEAT_AEAD_TAG - leat_writer_len(&w));
    }
    assert_true(leat_writer_ok(&w));
    op.payload_len = (uint32_t)leat_writer_len(&w) - op.header_len;
    if (type != LEAT_PACKET_ONE_RTT) {
        leat_header_finish_long(&header, op.payload_len + LEAT_AEAD_TAG);
    }
    if (!odd->number) {
        assert_int_equal(leat_sent_begin(&pn->sent, true), LEAT_OK);
        leat_sent_commit(&pn->sent, leat_ctx_now(pair->ctx), 0, 0, 0);
    }
    assert_int_equal(leat_seal(from->host->shared->keys, keys, &op, 1), LEAT_OK);
    if (odd->into) {
        leat_writer_bytes(odd->into, packet, leat_writer_len(&w) + LEAT_AEAD_TAG);
        assert_true(leat_writer_ok(odd->into));
        return;
    }
    leat_pair_inject(pair, from->is_server == odd->back, packet,
                     leat_writer_len(&w) + LEAT_AEAD_TAG);
}

void leat_forge(leat_pair *pair, leat_conn *from, const void *payload, size_t len)
{
    forge(pair, from, LEAT_SPACE_APP, 0, &(leat_forge_odd){0}, payload, len);
}

void leat_forge_in(leat_pair *pair, leat_conn *from, leat_space space, const void *payload,
                   size_t len)
{
    forge(pair, from, space, 0, &(leat_forge_odd){0}, payload, len);
}

void leat_forge_first(leat_pair *pair, leat_conn *from, uint8_t or_bits, const void *payload,
                      size_t len)
{
    forge(pair, from, LEAT_SPACE_APP, or_bits, &(leat_forge_odd){0}, payload, len);
}

void leat_forge_initial(leat_pair *pair, leat_conn *from, const leat_forge_odd *odd,
                        const void *payload, size_t len)
{
    forge(pair, from, LEAT_SPACE_INITIAL, 0, odd, payload, len);
}

void leat_forge_odd_in(leat_pair *pair, leat_conn *from, leat_space space,
                       const leat_forge_odd *odd, const void *payload, size_t len)
{
    forge(pair, from, space, 0, odd, payload, len);
}
