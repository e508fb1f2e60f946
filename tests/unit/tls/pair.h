/* Two leat_tls that talk to each other in memory, as two connections would.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_PAIR_H
#define LEAT_TEST_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tls/tls.h"

/* Dates that hold whenever the test runs: GnuTLS compares them with the real clock. */
#define DATE_2000 INT64_C(946684800)
#define DATE_2001 INT64_C(978307200)
#define DATE_2090 INT64_C(3786912000)
#define DATE_2099 INT64_C(4070908800)

/* What one end sent: pieces in order, each of one level. */
struct outbox {
    struct {
        leat_level level;
        size_t at;
        size_t len;
    } piece[64];
    size_t pieces;
    uint8_t bytes[160000];
    size_t len;
};

struct secret {
    bool set;
    leat_aead aead;
    size_t len;
    uint8_t bytes[LEAT_SECRET_MAX];
};

struct end {
    leat_tls *tls;
    struct outbox out;
    size_t delivered; /* pieces of `out` that the other end has had */
    struct secret secrets[LEAT_LEVEL_COUNT][2];
    uint8_t params[LEAT_TLS_PARAMS_MAX];
    size_t params_len;
    unsigned params_calls;
    uint64_t refuse_params; /* what the params hook returns */
    const char *answer;     /* set from within the params hook */
    leat_err fail_send;     /* what the send hook returns */
    uint8_t session[16384]; /* the last that the ticket hook gave */
    size_t session_len;
    bool session_early;
};

struct pair {
    leat_mem *mem;
    leat_tls_config *client_config;
    leat_tls_config *server_config;
    struct end client;
    struct end server;
};

/* A PEM certificate with its key. */
struct identity {
    char cert[3 * LEAT_TLS_PEM_MAX];
    char key[LEAT_TLS_PEM_MAX];
};

/* Self-signed for leat.example, localhost, 127.0.0.1 and ::1. */
void make_identity(struct identity *id, int64_t not_before, int64_t not_after);

/* Signed by an authority whose certificate goes to ca; for leat.example. */
void make_signed_identity(struct identity *id, char ca[LEAT_TLS_PEM_MAX]);

static inline leat_span text_span(const char *text)
{
    return (leat_span){(const uint8_t *)text, strlen(text)};
}

/* Settings that work together: ALPN "hq-interop" and "h3"; the client believes in the identity. */
leat_tls_settings server_settings(const struct identity *id);
leat_tls_settings client_settings(const char *ca);

/* Makes configs and both ends; the client asks for `name`. */
void pair_open(struct pair *p, const leat_tls_settings *client, const leat_tls_settings *server,
               const char *name);
void pair_close(struct pair *p);

/* What a resumed handshake is made of besides. */
struct resume {
    leat_span session; /* the client's */
    bool client_early, server_early;
    leat_shared *shared;
    uint64_t tag;
};
void pair_open_resumed(struct pair *p, const leat_tls_settings *client,
                       const leat_tls_settings *server, const char *name, const struct resume *how);
/* Another server for the same pair, that has heard nothing. */
void pair_new_server(struct pair *p, const struct resume *how);

/* Carries what one end has sent to the other in pieces of at most `step` bytes (0: as they were).
 */
leat_err deliver(struct end *from, struct end *to, size_t step);

/* Starts the client and carries bytes both ways until nobody sends or somebody fails. */
leat_err pair_run(struct pair *p, size_t step);

extern const leat_tls_hooks test_hooks;

#endif
