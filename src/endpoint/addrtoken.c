/* endpoint/addrtoken.c: tokens that prove an address (RFC 9000 s8.1).
 *
 * A token is one byte of kind, one that numbers the key, and a sealed blob (crypto/token.h). Sealed
 * is when it ends to be good, and for a Retry the original destination ID; authenticated besides
 * are kind, version and address, for a Retry with the port, and the connection ID that the Retry
 * gave.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/assert.h"
#include "base/cursor.h"
#include "base/time.h"
#include "crypto/token.h"
#include "crypto/secret.h"
#include "endpoint/endpoint.h"
#include "tls/shared.h"

#define KIND_RETRY   0x52
#define KIND_EARLIER 0x4e

/* How long a client may take to answer a Retry. */
#define RETRY_LIFE   (15 * LEAT_SECOND)

/* Kind, and number of the key. */
#define HEAD         2

#define AAD_MAX      (1 + 4 + 1 + 16 + 2 + 1 + LEAT_CID_MAX)
#define PLAIN_MAX    (8 + 1 + LEAT_CID_MAX)

static leat_span make_aad(uint8_t kind, const leat_addr *remote, uint32_t version,
                          leat_span retry_scid, uint8_t out[AAD_MAX])
{
    leat_writer w;

    leat_writer_init(&w, out, AAD_MAX);
    leat_writer_u8(&w, kind);
    leat_writer_u32(&w, version);
    leat_writer_u8(&w, remote->family);
    leat_writer_bytes(&w, remote->ip, remote->family == 4 ? 4 : 16);
    if (kind == KIND_RETRY) {
        leat_writer_u16(&w, remote->port);
        leat_writer_u8(&w, (uint8_t)retry_scid.len);
        leat_writer_bytes(&w, retry_scid.data, retry_scid.len);
    }
    LEAT_ASSERT(leat_writer_ok(&w));
    return (leat_span){out, leat_writer_len(&w)};
}

/* The key to seal with, and its number. */
static uint8_t present_key(const leat_endpoint *ep, uint8_t key[LEAT_SHARED_KEY])
{
    if (ep->settings.shared) {
        return leat_shared_token_key(ep->settings.shared, key);
    }
    memcpy(key, ep->settings.token_key, LEAT_SHARED_KEY);
    return 0;
}

static bool key_of(const leat_endpoint *ep, uint8_t number, uint8_t key[LEAT_SHARED_KEY])
{
    if (ep->settings.shared) {
        return leat_shared_token_key_of(ep->settings.shared, number, key);
    }
    memcpy(key, ep->settings.token_key, LEAT_SHARED_KEY);
    return number == 0;
}

static bool open_token(const leat_endpoint *ep, leat_span token, leat_span aad, uint8_t *plain,
                       size_t *len)
{
    uint8_t key[LEAT_SHARED_KEY];
    bool good =
        key_of(ep, token.data[1], key) &&
        leat_token_open(key, aad, token.data + HEAD, token.len - HEAD, plain, len) == LEAT_OK;

    leat_wipe(key, sizeof(key));
    return good;
}

static size_t seal(leat_endpoint *ep, uint8_t kind, leat_time life, leat_span odcid, leat_span aad,
                   uint8_t out[LEAT_ADDRTOKEN_MAX])
{
    uint8_t plain[PLAIN_MAX], key[LEAT_SHARED_KEY];
    leat_writer w;
    size_t len;

    leat_writer_init(&w, plain, sizeof(plain));
    leat_writer_u64(&w, leat_time_add(leat_endpoint_now(ep), life));
    if (kind == KIND_RETRY) {
        leat_writer_u8(&w, (uint8_t)odcid.len);
        leat_writer_bytes(&w, odcid.data, odcid.len);
    }
    LEAT_ASSERT(leat_writer_ok(&w));
    out[0] = kind;
    out[1] = present_key(ep, key);
    len =
        leat_token_seal(key, &ep->host.shared->random, aad, plain, leat_writer_len(&w), out + HEAD);
    leat_wipe(key, sizeof(key));
    return HEAD + len;
}

size_t leat_addrtoken_retry(leat_endpoint *ep, const leat_addr *remote, uint32_t version,
                            leat_span odcid, const leat_cid *retry_scid,
                            uint8_t out[LEAT_ADDRTOKEN_MAX])
{
    uint8_t aad[AAD_MAX];

    return seal(ep, KIND_RETRY, RETRY_LIFE, odcid,
                make_aad(KIND_RETRY, remote, version, leat_cid_span(retry_scid), aad), out);
}

size_t leat_addrtoken_new(leat_endpoint *ep, const leat_addr *remote, uint32_t version,
                          uint8_t out[LEAT_ADDRTOKEN_MAX])
{
    uint8_t aad[AAD_MAX];
    leat_span none = {NULL, 0};

    if (ep->settings.token_life == 0) {
        return 0;
    }
    return seal(ep, KIND_EARLIER, ep->settings.token_life, none,
                make_aad(KIND_EARLIER, remote, version, none, aad), out);
}

leat_addrtoken_kind leat_addrtoken_check(leat_endpoint *ep, const leat_addr *remote,
                                         uint32_t version, leat_span token, leat_span dcid,
                                         leat_cid *odcid)
{
    uint8_t plain[LEAT_ADDRTOKEN_MAX], aad_room[AAD_MAX];
    leat_addrtoken_kind bad;
    const uint8_t *cid;
    leat_cursor c;
    leat_time until;
    size_t len;

    LEAT_ASSERT(dcid.len <= LEAT_CID_MAX); /* of a version that we speak */
    if (token.len < HEAD + LEAT_TOKEN_OVERHEAD || token.len > LEAT_ADDRTOKEN_MAX ||
        (token.data[0] != KIND_RETRY && token.data[0] != KIND_EARLIER)) {
        return LEAT_ADDRTOKEN_NONE;
    }
    /* Whoever comes with what looks like a Retry's token expects it to be taken (s8.1.3). */
    bad = token.data[0] == KIND_RETRY ? LEAT_ADDRTOKEN_STALE : LEAT_ADDRTOKEN_NONE;
    if (!open_token(ep, token, make_aad(token.data[0], remote, version, dcid, aad_room), plain,
                    &len)) {
        return bad;
    }
    leat_cursor_init(&c, plain, len);
    until = leat_cursor_u64(&c); /* 0 when there is none: over */
    /* One too far ahead is of a clock that began anew since: its age is unknown. */
    if (until <= leat_endpoint_now(ep) ||
        until > leat_time_add(leat_endpoint_now(ep),
                              leat_time_max(RETRY_LIFE, ep->settings.token_life))) {
        return bad;
    }
    if (token.data[0] == KIND_EARLIER) {
        return LEAT_ADDRTOKEN_EARLIER;
    }
    len = leat_cursor_u8(&c);
    cid = leat_cursor_bytes(&c, len);
    if (!leat_cursor_ok(&c)) {
        return LEAT_ADDRTOKEN_STALE;
    }
    leat_cid_set(odcid, cid, len);
    return LEAT_ADDRTOKEN_RETRY;
}
