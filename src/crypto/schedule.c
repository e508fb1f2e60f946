/* The key schedule of QUIC, on Nettle's HMAC: its contexts are on the stack, so nothing allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/schedule.h"

#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"

static const leat_schedule schedules[] = {
    /* RFC 9001 §5.2, §5.8 */
    {.version = 0x00000001,
     .initial_salt = {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
                      0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a},
     .key = "quic key",
     .iv = "quic iv",
     .hp = "quic hp",
     .ku = "quic ku",
     .retry_key = {0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3,
                   0x68, 0xc8, 0x4e},
     .retry_nonce = {0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb}},
    /* RFC 9369 §3.3 */
    {.version = 0x6b3343cf,
     .initial_salt = {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
                      0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9},
     .key = "quicv2 key",
     .iv = "quicv2 iv",
     .hp = "quicv2 hp",
     .ku = "quicv2 ku",
     .retry_key = {0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad,
                   0x7c, 0xcc, 0x92},
     .retry_nonce = {0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a}},
};

const leat_schedule *leat_schedule_for(uint32_t version)
{
    for (size_t i = 0; i < LEAT_COUNT_OF(schedules); i++) {
        if (schedules[i].version == version) {
            return &schedules[i];
        }
    }
    return NULL;
}

/* One HMAC context of either hash, and the functions that Nettle wants with it. */
typedef struct mac {
    union {
        struct hmac_sha256_ctx sha256;
        struct hmac_sha384_ctx sha384;
    } ctx;
    nettle_hash_update_func *update;
    nettle_hash_digest_func *digest;
    size_t len;
} mac;

static void mac_init(mac *m, leat_hash hash, const uint8_t *key, size_t key_len)
{
    if (hash == LEAT_HASH_SHA256) {
        hmac_sha256_set_key(&m->ctx.sha256, key_len, key);
        m->update = (nettle_hash_update_func *)nettle_hmac_sha256_update;
        m->digest = (nettle_hash_digest_func *)nettle_hmac_sha256_digest;
        m->len = SHA256_DIGEST_SIZE;
    } else {
        hmac_sha384_set_key(&m->ctx.sha384, key_len, key);
        m->update = (nettle_hash_update_func *)nettle_hmac_sha512_update;
        m->digest = (nettle_hash_digest_func *)nettle_hmac_sha384_digest;
        m->len = SHA384_DIGEST_SIZE;
    }
}

void leat_hmac(leat_hash hash, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len,
               uint8_t *out)
{
    mac m;
    mac_init(&m, hash, key, key_len);
    m.update(&m.ctx, len, data);
    m.digest(&m.ctx, m.len, out);
    leat_wipe(&m, sizeof m);
}

void leat_hkdf_extract(leat_hash hash, const uint8_t *salt, size_t salt_len, const uint8_t *ikm,
                       size_t ikm_len, uint8_t *out)
{
    leat_hmac(hash, salt, salt_len, ikm, ikm_len, out); /* RFC 5869 §2.2 */
}

/* One block of HKDF-Expand (RFC 5869 §2.3), or two, under a context that is ready; Nettle's digest
 * functions leave it ready for the next. */
static void expand(mac *m, const leat_hkdf_label *want)
{
    static const char prefix[6] = {'t', 'l', 's', '1', '3', ' '};
    size_t label_len = strlen(want->label);
    LEAT_ASSERT(label_len <= 32);
    LEAT_ASSERT(want->out_len <= 64);

    /* struct { uint16 length; opaque label<7..255>; opaque context<0..255>; } */
    uint8_t info[2 + 1 + sizeof prefix + 32 + 1];
    size_t n = 0;
    info[n++] = (uint8_t)(want->out_len >> 8);
    info[n++] = (uint8_t)want->out_len;
    info[n++] = (uint8_t)(sizeof prefix + label_len);
    memcpy(info + n, prefix, sizeof prefix);
    n += sizeof prefix;
    memcpy(info + n, want->label, label_len);
    n += label_len;
    info[n++] = 0;
    hkdf_expand(&m->ctx, m->update, m->digest, m->len, n, info, want->out_len, want->out);
}

void leat_hkdf_expand_labels(leat_hash hash, const uint8_t *secret, const leat_hkdf_label *labels,
                             size_t count)
{
    mac m;
    mac_init(&m, hash, secret, hash == LEAT_HASH_SHA256 ? SHA256_DIGEST_SIZE : SHA384_DIGEST_SIZE);
    for (size_t i = 0; i < count; i++) {
        expand(&m, &labels[i]);
    }
    leat_wipe(&m, sizeof m);
}

void leat_hkdf_expand_label(leat_hash hash, const uint8_t *secret, const char *label, uint8_t *out,
                            size_t out_len)
{
    leat_hkdf_expand_labels(hash, secret, &(leat_hkdf_label){label, out, out_len}, 1);
}

void leat_initial_secrets(const leat_schedule *schedule, const uint8_t *dcid, size_t dcid_len,
                          uint8_t client[32], uint8_t server[32])
{
    uint8_t initial[32];
    leat_hkdf_extract(LEAT_HASH_SHA256, schedule->initial_salt, sizeof schedule->initial_salt, dcid,
                      dcid_len, initial);
    const leat_hkdf_label labels[] = {{"client in", client, 32}, {"server in", server, 32}};
    leat_hkdf_expand_labels(LEAT_HASH_SHA256, initial, labels, LEAT_COUNT_OF(labels));
    leat_wipe(initial, sizeof initial);
}
