/* endpoint/stateless.c: answers for which no connection is kept. Each is a datagram in a short
 * queue; when that is full the question goes unanswered, as if it was lost. No answer is larger
 * than three times the question, and none is given to what may be an answer itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/assert.h"
#include "crypto/retry.h"
#include "crypto/token.h"
#include "endpoint/endpoint.h"

#define RESET_MIN 21 /* bytes: 5 unpredictable ones and the token (RFC 9000 s10.3) */
#define RESET_MAX 43 /* as long as a small packet of a connection with our IDs */

/* Room for an answer of at most `max` bytes, or NULL. */
static leat_stateless *answer_begin(leat_endpoint *ep, const leat_recv_info *info, size_t max,
                                    leat_writer *w)
{
    leat_stateless *answer;

    if (leat_queue_count(&ep->stateless) >= LEAT_STATELESS_QUEUE_DEFAULT) {
        return NULL;
    }
    answer = leat_queue_push(&ep->stateless);
    if (!answer) {
        return NULL;
    }
    *answer = (leat_stateless){.remote = info->remote, .local = info->local};
    if (leat_buf_take(leat_ctx_mem(ep->host.ctx), max, &answer->datagram) != LEAT_OK) {
        ep->stateless.count--; /* the newest: ours */
        return NULL;
    }
    leat_writer_init(w, answer->datagram.data, max);
    return answer;
}

/* asked: where the packet that is answered was sent to. */
static void answer_end(leat_endpoint *ep, leat_stateless *answer, leat_span asked, size_t len)
{
    leat_buf_trim(&answer->datagram, len);
    if (leat_endpoint_traces(ep)) {
        leat_endpoint_trace_answer(ep, asked, answer->datagram.data, len);
    }
    if (leat_queue_count(&ep->stateless) == 1 && leat_list_empty(&ep->senders) &&
        ep->settings.want_send) {
        ep->settings.want_send(ep->settings.want_send_user);
    }
}

void leat_stateless_version(leat_endpoint *ep, const leat_header *header,
                            const leat_recv_info *info)
{
    const leat_conn_settings *ours = &ep->settings.conn;
    uint64_t random = leat_random_u64(&ep->host.shared->random);
    leat_stateless *answer;
    leat_writer w;
    bool fits;

    answer = answer_begin(
        ep, info, 1 + 4 + 2 * (1 + LEAT_CID_INVARIANT_MAX) + 4 * (1 + LEAT_VERSIONS_MAX), &w);
    if (!answer) {
        return;
    }
    fits = leat_header_write_version_negotiation(
        &w, header->scid, header->dcid, ours->versions, ours->version_count,
        leat_version_grease((uint32_t)random), (uint8_t)(random >> 32));
    LEAT_ASSERT(fits);
    if (leat_endpoint_traces(ep)) {
        leat_endpoint_trace_version(ep, header);
    }
    answer_end(ep, answer, header->dcid, leat_writer_len(&w));
}

void leat_stateless_retry(leat_endpoint *ep, const leat_header *header, const leat_recv_info *info)
{
    leat_random *random = &ep->host.shared->random;
    uint8_t token[LEAT_ADDRTOKEN_MAX];
    leat_cid dcid, scid;
    leat_stateless *answer;
    leat_writer w;
    size_t len;
    bool fits;

    answer = answer_begin(ep, info,
                          1 + 4 + 2 * (1 + LEAT_CID_MAX) + LEAT_ADDRTOKEN_MAX + LEAT_RETRY_TAG, &w);
    if (!answer) {
        return;
    }
    scid = leat_conn_host_new_cid(&ep->host);
    leat_cid_set(&dcid, header->scid.data, header->scid.len);
    len = leat_addrtoken_retry(ep, &info->remote, header->version, header->dcid, &scid, token);
    fits = leat_header_write_retry(&w, header->version, &dcid, &scid, (leat_span){token, len},
                                   (uint8_t)leat_random_u64(random));
    LEAT_ASSERT(fits);
    len = leat_writer_len(&w);
    leat_retry_tag(leat_schedule_for(header->version), header->dcid.data, header->dcid.len,
                   answer->datagram.data, len, answer->datagram.data + len);
    answer_end(ep, answer, header->dcid, len + LEAT_RETRY_TAG);
}

bool leat_stateless_is_authentic(leat_endpoint *ep, const leat_header *header, uint8_t *packet)
{
    leat_key_cache *cache = ep->host.shared->keys;
    leat_mask_op mask = {.sample = packet + header->pn_offset + LEAT_PN_LEN_MAX};
    leat_packet_keys client, server;
    leat_open_op op = {.header = packet, .result = LEAT_ERR_CRYPTO};
    uint32_t truncated;
    size_t pn_len;
    bool opens = false;

    leat_packet_keys_init(&client);
    leat_packet_keys_init(&server);
    leat_packet_keys_initial(&client, &server, leat_schedule_for(header->version),
                             header->dcid.data, header->dcid.len);
    if (leat_mask(cache, &client, &mask, 1) == LEAT_OK) {
        pn_len = leat_hp_remove(packet, header->pn_offset, mask.mask, &truncated);
        op.pn = leat_pn_decode(0, truncated, pn_len);
        op.header_len = (uint32_t)(header->pn_offset + pn_len);
        op.payload = packet + op.header_len;
        op.payload_len = (uint32_t)(header->packet_len - op.header_len);
        opens = leat_open(cache, &client, &op, 1) == LEAT_OK && op.result == LEAT_OK;
    }
    leat_packet_keys_drop(&client, cache);
    leat_packet_keys_drop(&server, cache);
    return opens;
}

/* RFC 9000 s10.2.3: an Initial with CONNECTION_CLOSE, under keys that are forgotten at once. */
void leat_stateless_close(leat_endpoint *ep, const leat_header *header, const leat_recv_info *info,
                          uint64_t code)
{
    leat_frame_connection_close frame = {.error = code};
    leat_packet_keys client, server;
    leat_long_packet packet;
    leat_cid dcid, scid;
    leat_stateless *answer;
    leat_seal_op op;
    leat_writer w;
    bool fits;

    answer = answer_begin(ep, info, 128, &w);
    if (!answer) {
        return;
    }
    leat_cid_set(&dcid, header->scid.data, header->scid.len);
    leat_cid_set(&scid, header->dcid.data, header->dcid.len);
    leat_packet_keys_init(&client);
    leat_packet_keys_init(&server);
    leat_packet_keys_initial(&client, &server, leat_schedule_for(header->version),
                             header->dcid.data, header->dcid.len);
    fits = leat_header_write_long(&w, &packet, LEAT_PACKET_INITIAL, header->version, &dcid, &scid,
                                  (leat_span){NULL, 0}, 0, 1);
    op = (leat_seal_op){
        .packet = answer->datagram.data, .header_len = (uint32_t)leat_writer_len(&w), .pn_len = 1};
    fits = fits && leat_frame_write_connection_close(&w, &frame);
    LEAT_ASSERT(fits);
    op.payload_len = (uint32_t)leat_writer_len(&w) - op.header_len;
    leat_header_finish_long(&packet, op.payload_len + LEAT_AEAD_TAG);
    if (leat_seal(ep->host.shared->keys, &server, &op, 1) == LEAT_OK) {
        answer_end(ep, answer, header->dcid, leat_writer_len(&w) + LEAT_AEAD_TAG);
    } else {
        leat_buf_release(&answer->datagram);
        ep->stateless.count--;
    }
    leat_packet_keys_drop(&client, ep->host.shared->keys);
    leat_packet_keys_drop(&server, ep->host.shared->keys);
}

void leat_stateless_reset(leat_endpoint *ep, const uint8_t *packet, size_t len,
                          const leat_recv_info *info)
{
    size_t reset = len - 1 < RESET_MAX ? len - 1 : RESET_MAX;
    leat_stateless *answer;
    leat_writer w;
    uint8_t *out;

    /* Shorter than the packet, so that two endpoints that know nothing fall silent (s10.3.3). */
    if (len <= RESET_MIN || len < 1u + ep->host.cid_len) {
        return;
    }
    answer = answer_begin(ep, info, reset, &w);
    if (!answer) {
        return;
    }
    out = answer->datagram.data;
    leat_random_fill(&ep->host.shared->random, out, reset - LEAT_STATELESS_RESET_TOKEN);
    out[0] = (uint8_t)((out[0] & 0x3f) | LEAT_FIRST_FIXED);
    leat_reset_token(ep->host.reset_key, packet + 1, ep->host.cid_len,
                     out + reset - LEAT_STATELESS_RESET_TOKEN);
    answer_end(ep, answer, (leat_span){packet + 1, ep->host.cid_len}, reset);
}
