/* tests/unit/conn/early_rig.h: a client that comes again with what it keeps of its last connection,
 * and asks in 0-RTT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_EARLY_RIG_H
#define LEAT_TESTS_EARLY_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "conn/conn.h"
#include "echo.h"
#include "endpoint/endpoint.h"

#define STREAMS     6
#define STREAM_SIZE 700

/* What a run of these tests has besides the echo pair. */
struct early_run {
    leat_echo echo;
    leat_shared *shared;
    leat_conn_events client_events, server_events;
    uint8_t session[32768];
    size_t session_len;
    unsigned tickets, early_told;
    unsigned opened_before_connected;
    /* the network */
    leat_prng prng;
    unsigned loss_percent, repeat_percent;
    bool record;
    size_t recorded;
    struct {
        uint8_t data[1500];
        size_t len;
    } record_of[8];
};
extern struct early_run t;

/* What is added to the system's clock, by which GnuTLS tells how old a ticket is. */
extern int64_t clock_skew;

leat_shared *make_shared(uint8_t seed, const uint8_t *ticket_key);

/* A server that takes 0-RTT, a client that offers it; the setup may then be changed. */
void prepare_with(const uint8_t *ticket_key);
void prepare(void);
/* A connection that leaves a session behind. */
void first_connection(void);
/* Both. */
void begin(void);
/* The next connection, with the session of the last. */
void connect_again(void);
bool both_connected(void *arg);
void close_it(void);
/* The server starts anew. */
void another_server(leat_shared *shared);
void finish(void);

/* ---- streams whose bytes are looked at ---- */

struct early_asked {
    leat_stream *stream;
    size_t got;
    bool closed;
};
extern struct early_asked asked[STREAMS];
extern size_t open_count;
extern leat_time answered_at; /* the last of them */

/* Opens n streams, as far as it may, and writes so many bytes on each. */
void ask(size_t n, size_t size);
bool all_answered(void *arg);
/* All of them are, with those bytes, and the server saw none twice. */
void answers_come(leat_time within, size_t size);
void connect_and_ask(size_t n);

#endif
