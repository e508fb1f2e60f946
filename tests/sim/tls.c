/* tests/sim/tls.c: what both ends bring to a handshake: certificate, ciphers, groups, tickets.
 *
 * Reading a certificate and a key takes GnuTLS as long as a whole small run, and plans that are
 * drawn want but few kinds. So all of these are made in the process that forks the runs, ahead of
 * the first: how GnuTLS draws in a run depends on what it did before, which must be the same
 * whatever is run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/assert.h"
#include "sim.h"

static const leat_tls_cipher ciphers[] = {LEAT_TLS_AES_128_GCM_SHA256, LEAT_TLS_AES_256_GCM_SHA384,
                                          LEAT_TLS_CHACHA20_POLY1305_SHA256};

#define CIPHERS (sizeof(ciphers) / sizeof(ciphers[0]))

enum {
    TICKETS_USUAL = 3,
    /* that plan.c draws, at most */ KINDS_MAX =
        2 * 2 * (int)(CIPHERS + 1) * (TICKETS_USUAL + 1) + 2
};

/* All that a plan says of it: equal kinds are one. */
typedef struct kind {
    int side;
    uint64_t cipher, tickets;
    bool verify, hello_retry;
} kind;

typedef struct made {
    kind kind;
    leat_tls_config *config;
} made;

static made all[KINDS_MAX];
static size_t count;
static FILE *keylog; /* of the run, or NULL */

static void log_key(void *user, const char *line)
{
    (void)user;
    if (keylog) {
        fprintf(keylog, "%s\n", line);
    }
}

static kind kind_of(const leat_sim_plan *plan, int side)
{
    return (kind){
        .side = side,
        .cipher = plan->cipher > 0 ? 1 + (plan->cipher - 1) % CIPHERS : 0,
        .tickets = plan->end[side].tickets,
        .verify = side == 0 && plan->verify,
        .hello_retry = side == 1 && plan->hello_retry,
    };
}

static bool same(const kind *a, const kind *b)
{
    return a->side == b->side && a->cipher == b->cipher && a->tickets == b->tickets &&
           a->verify == b->verify && a->hello_retry == b->hello_retry;
}

static leat_tls_config *make(const kind *k, const leat_sim_identity *id)
{
    static const char *const alpn = "leat-sim";
    leat_tls_config *config;
    leat_tls_settings tls;
    leat_tls_error error;

    leat_tls_settings_init(&tls);
    if (k->cipher > 0) {
        tls.ciphers[0] = ciphers[k->cipher - 1];
        tls.cipher_count = 1;
    }
    tls.alpn = &alpn;
    tls.alpn_count = 1;
    tls.system_ca = false;
    tls.verify = tls.verify_host = k->verify;
    tls.tickets = (unsigned)k->tickets;
    if (k->side == 0) {
        if (k->verify) {
            tls.ca_pem = (leat_span){(const uint8_t *)id->cert, id->cert_len};
        }
        tls.keylog = log_key;
        LEAT_ASSERT(leat_tls_config_client(&tls, &config, &error) == LEAT_OK);
        return config;
    }
    tls.cert_pem = (leat_span){(const uint8_t *)id->cert, id->cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)id->key, id->key_len};
    if (k->hello_retry) {
        tls.groups[0] = LEAT_TLS_GROUP_P384;
        tls.group_count = 1;
    }
    LEAT_ASSERT(leat_tls_config_server(&tls, &config, &error) == LEAT_OK);
    return config;
}

static const leat_tls_config *find(const kind *k, const leat_sim_identity *id)
{
    for (size_t i = 0; i < count; i++) {
        if (same(&all[i].kind, k)) {
            return all[i].config;
        }
    }
    LEAT_ASSERT(count < KINDS_MAX);
    all[count] = (made){*k, make(k, id)};
    return all[count++].config;
}

void leat_sim_prepare(const leat_sim_identity *id)
{
    for (uint64_t cipher = 0; cipher <= CIPHERS; cipher++) {
        for (uint64_t tickets = 0; tickets <= TICKETS_USUAL; tickets++) {
            for (int other = 0; other < 2; other++) {
                kind client = {0, cipher, tickets, other, false};
                kind server = {1, cipher, tickets, false, other};

                (void)find(&client, id);
                (void)find(&server, id);
            }
        }
    }
}

void leat_sim_tls(const leat_sim_options *options, FILE *keys, const leat_tls_config *out[2])
{
    keylog = keys;
    for (int side = 0; side < 2; side++) {
        kind k = kind_of(&options->plan, side);

        out[side] = find(&k, options->identity);
    }
}
