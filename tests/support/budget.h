/* tests/support/budget.h: what a victim spends on what it is sent, counted, never timed.
 *
 * Work is counted in events: one for each packet and each frame received or sent, each packet
 * dropped, each change of state that a sink is told of. Under valgrind's callgrind, where
 * instructions.py runs the same tests, it is counted in instructions, those of the attacker's side
 * with them: an upper bound, which shows loops that no event tells of. Answers are bytes of UDP
 * payload. Memory is what the whole context takes from the system, and what the connection is
 * charged.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SUPPORT_BUDGET_H
#define LEAT_TESTS_SUPPORT_BUDGET_H

#include <leat/event.h>

#include "echo.h"
#include "forge.h"

/* Counts from hostile_begin() on. */
typedef struct hostile {
    leat_echo echo;
    bool against_client;  /* or else the server is the victim */
    bool many;            /* the test counts instructions over many of these, by itself */
    leat_event_sink sink; /* of the victim */
    uint64_t work;
    uint64_t in, out; /* bytes to the victim, from it, at the beginning */
    uint64_t datagrams_out;
    uint64_t unheard, unheard_datagrams; /* of what the victim sent: lost by hostile_deaf() */
    size_t memory;                       /* of the context, at the beginning */
    uint64_t held;                       /* by one of its connections, the most seen */
} hostile;

/* Defaults, and the server's sink counts; then the setup may be changed. */
void hostile_prepare(hostile *h);
/* The same with the client as the victim. */
void hostile_prepare_against_client(hostile *h);
/* Runs the handshake and lets all come to rest. */
void hostile_connect(hostile *h);
/* A filter: what the victim says is lost; pair.user is the hostile. */
bool hostile_deaf(leat_pair *pair, bool to_server, uint8_t *data, size_t *len);
/* From now on it counts. */
void hostile_begin(hostile *h);
/* What has come is worked on, and so much time passes; notes what the victim holds. */
void hostile_settle(hostile *h, leat_time time);

/* For each byte received: events and bytes of answers, in thousandths; and bytes that the context
 * may have grown by, and that a connection may hold. Instructions a byte are held to
 * instructions.json's by the name of the test. A budget is at most twice what was
 * measured, rounded up, in the build that grows most: under AddressSanitizer. */
typedef struct hostile_budget {
    uint64_t work_per_1000;
    uint64_t answer_per_1000;
    size_t growth;
    uint64_t held;
} hostile_budget;

void hostile_assert_named(const char *test, const hostile *h, const hostile_budget *budget);
#define hostile_assert(h, ...) hostile_assert_named(__func__, h, __VA_ARGS__)
/* For tests that weigh the rest by themselves: only the instructions, counted since
 * hostile_begin() or hostile_count(), for so many bytes. */
void hostile_count(void);
void hostile_counted(const char *test, uint64_t bytes);

#endif
