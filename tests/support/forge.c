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

static void forge(leat_pair *pair, leat_conn *from, leat_space space, uint8_t or_bits,
                  const leat_forge_odd *odd, const void *payload, size_t len)
{
    uint8_t packet[1500];
    leat_pnspace *pn = leat_conn_space(from, space);
    leat_packet_keys *keys = space == LEAT_SPACE_APP ? &from->rekey.tx : &pn->keys->tx;
    const leat_cid *scid = odd->scid ? odd->scid : &from->local_cids.entry[0].cid;
    size_t size = odd->size ? odd->size : 1200;
    bool early = space == LEAT_SPACE_APP && !leat_packet_keys_ready(keys);
    uint64_t number = leat_sent_next_pn(&pn->sent);
    const leat_cid *dcid = leat_remote_cids_current(&from->remote_cids);
    leat_seal_op op = {.packet = packet, .pn = number, .pn_len = 4};
    leat_long_packet header;
    leat_writer w;

    leat_writer_init(&w, packet, sizeof(packet) - LEAT_AEAD_TAG);
    if (early) {
        keys = leat_early_tx(from);
        assert_non_null(keys);
        assert_true(leat_header_write_long(&w, &header, LEAT_PACKET_ZERO_RTT, from->version, dcid,
                                           &from->local_cids.entry[0].cid, (leat_span){NULL, 0},
                                           number, 4));
    } else if (space == LEAT_SPACE_APP) {
        assert_true(leat_header_write_short(&w, dcid, false, from->rekey.tx_phase & 1, number, 4));
    } else {
        assert_true(leat_header_write_long(
            &w, &header, space == LEAT_SPACE_INITIAL ? LEAT_PACKET_INITIAL : LEAT_PACKET_HANDSHAKE,
            from->version, dcid, scid, odd->token, number, 4));
    }
    packet[0] |= or_bits;
    op.header_len = (uint32_t)leat_writer_len(&w);
    leat_writer_bytes(&w, payload, len);
    if (space == LEAT_SPACE_INITIAL && leat_writer_len(&w) < size - LEAT_AEAD_TAG) {
        leat_writer_zero(&w, size - LEAT_AEAD_TAG - leat_writer_len(&w));
    }
    assert_true(leat_writer_ok(&w));
    op.payload_len = (uint32_t)leat_writer_len(&w) - op.header_len;
    if (early || space != LEAT_SPACE_APP) {
        leat_header_finish_long(&header, op.payload_len + LEAT_AEAD_TAG);
    }
    assert_int_equal(leat_sent_begin(&pn->sent, true), LEAT_OK);
    leat_sent_commit(&pn->sent, leat_ctx_now(pair->ctx), 0, 0, 0);
    assert_int_equal(leat_seal(from->host->shared->keys, keys, &op, 1), LEAT_OK);
    leat_pair_inject(pair, !from->is_server, packet, leat_writer_len(&w) + LEAT_AEAD_TAG);
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
