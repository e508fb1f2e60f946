/* fuzz/quic_token.c: what comes back to an endpoint after a time: address validation tokens, which
 * a changed byte must make worthless; stored sessions; and the TLS messages that leat reads itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "conn/session.h"
#include "crypto/schedule.h"
#include "support/world.h"
#include "tls/early.h"
#include "tls/post.h"

static void tokens(world *w, fuzz_input *in)
{
    leat_addr addr = {.family = fuzz_byte(in) & 1 ? 4 : 6, .port = 77, .ip = {1, 2, 3, 4}};
    leat_cid scid = {.len = 8, .data = {8, 7, 6}}, odcid, other = {.len = 8, .data = {1}};
    uint8_t token[LEAT_ADDRTOKEN_MAX];
    uint8_t how = fuzz_byte(in), at = fuzz_byte(in), bits = fuzz_byte(in);
    leat_addrtoken_kind kind;
    leat_span raw;
    uint32_t version = how & 2 ? LEAT_QUIC_V2 : LEAT_QUIC_V1;
    size_t len;

    len = how & 1
              ? leat_addrtoken_retry(w->server, &addr, version, leat_cid_span(&other), &scid, token)
              : leat_addrtoken_new(w->server, &addr, version, token);
    fuzz_check(len > 0 && len <= sizeof(token));
    kind = leat_addrtoken_check(w->server, &addr, version, (leat_span){token, len},
                                leat_cid_span(&scid), &odcid);
    fuzz_check(kind == (how & 1 ? LEAT_ADDRTOKEN_RETRY : LEAT_ADDRTOKEN_EARLIER));
    if (bits != 0) {
        token[at % len] ^= bits;
        kind = leat_addrtoken_check(w->server, &addr, version, (leat_span){token, len},
                                    leat_cid_span(&scid), &odcid);
        fuzz_check(kind == LEAT_ADDRTOKEN_NONE || kind == LEAT_ADDRTOKEN_STALE);
    }
    raw = fuzz_bytes(in, 200);
    kind = leat_addrtoken_check(w->server, &addr, version, raw, leat_cid_span(&scid), &odcid);
    fuzz_check(kind == LEAT_ADDRTOKEN_NONE || kind == LEAT_ADDRTOKEN_STALE);
}

/* A blob whose check sum is right, so that its content is read. */
static void sessions(fuzz_input *in)
{
    uint8_t blob[2048] = {'l', 'e', 'a', 'S', 1}, sum[32];
    leat_session session;
    leat_span raw = fuzz_bytes(in, 1500);
    size_t len = 5 + raw.len;

    memcpy(blob + 5, raw.data, raw.len);
    leat_hmac(LEAT_HASH_SHA256, blob, 4, blob, len, sum);
    memcpy(blob + len, sum, 16);
    if (leat_session_decode((leat_span){blob, len + 16}, &session)) {
        static uint8_t out[8192];
        leat_session again;
        size_t n = leat_session_encode(&session, out, sizeof(out));

        fuzz_check(n > 0 && leat_session_decode((leat_span){out, n}, &again));
        fuzz_check(again.tls.len == session.tls.len && again.version == session.version);
        fuzz_check(leat_session_limits_kept(&session.params, &again.params));
    }
}

static void messages(fuzz_input *in)
{
    leat_tls_hello hello;
    leat_tls_ticket ticket;
    leat_tls_post post;
    leat_span raw = fuzz_bytes(in, 4000);
    const char *text = NULL;

    leat_tls_read_hello(raw, &hello);
    fuzz_check(hello.ticket.len <= raw.len && hello.shares.len <= raw.len);
    if (leat_tls_read_ticket(raw, &ticket)) {
        fuzz_check(ticket.ticket.len <= raw.len);
    }
    for (int server = 0; server < 2; server++) {
        uint64_t error = LEAT_TE_NO_ERROR;

        leat_tls_post_init(&post, server);
        for (size_t at = 0; at < raw.len && error == LEAT_TE_NO_ERROR;) {
            size_t n = 1 + at % 7 < raw.len - at ? 1 + at % 7 : raw.len - at;

            error = leat_tls_post_recv(&post, raw.data + at, n, &text);
            at += n;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;
    fuzz_input in = {data, data + size};

    if (!w.ctx) {
        world_open(&w, true);
    }
    switch (fuzz_byte(&in) % 3) {
    case 0:
        tokens(&w, &in);
        break;
    case 1:
        sessions(&in);
        break;
    default:
        messages(&in);
        break;
    }
    return 0;
}
