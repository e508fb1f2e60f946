/* tests/sim/run.h: one run of a plan, from two empty contexts to two empty contexts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_RUN_H
#define LEAT_TESTS_SIM_RUN_H

#include <leat/event.h>

#include "plan.h"

/* The server's certificate, which the client takes as authority. */
typedef struct leat_sim_identity {
    char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    size_t cert_len, key_len;
} leat_sim_identity;

/* How a run ended, if not as a failure. X(name, what) */
#define LEAT_SIM_ENDING_LIST(X)                                                                    \
    X(complete, "all streams came to their end")                                                   \
    X(closed_early, "closed before that, as planned")                                              \
    X(timed_out, "timed out, as the plan explains")                                                \
    X(restarted, "reset by a server that began anew, as planned")                                  \
    X(version, "no version in common, or a damaged packet was taken for a version negotiation")

#define LEAT_SIM_ENUM(name, text) LEAT_SIM_##name,
typedef enum leat_sim_ending {
    LEAT_SIM_ENDING_LIST(LEAT_SIM_ENUM) LEAT_SIM_ENDINGS
} leat_sim_ending;
#undef LEAT_SIM_ENUM

/* X(name): sums over both ends. */
#define LEAT_SIM_TOTAL_LIST(X)                                                                     \
    X(steps)                                                                                       \
    X(datagrams)                                                                                   \
    X(bytes)                                                                                       \
    X(dropped)                                                                                     \
    X(damaged)                                                                                     \
    X(streams)                                                                                     \
    X(resets)                                                                                      \
    X(stops)                                                                                       \
    X(stream_bytes)                                                                                \
    X(lost)                                                                                        \
    X(spurious)                                                                                    \
    X(probes)                                                                                      \
    X(key_updates)                                                                                 \
    X(extra_conns)                                                                                 \
    X(connections)                                                                                 \
    X(resumed)                                                                                     \
    X(early_accepted)                                                                              \
    X(early_rejected)                                                                              \
    X(version_2)                                                                                   \
    X(changes)                                                                                     \
    X(rebindings)                                                                                  \
    X(migrations)                                                                                  \
    X(preferred)                                                                                   \
    X(reborn)                                                                                      \
    X(datagram_frames)                                                                             \
    X(stale)

#define LEAT_SIM_TOTAL(name) uint64_t name;
typedef struct leat_sim_result {
    leat_sim_ending ending;
    uint64_t digest; /* of all datagrams and when they were sent */
    leat_time took;  /* virtual */
    LEAT_SIM_TOTAL_LIST(LEAT_SIM_TOTAL)
} leat_sim_result;
#undef LEAT_SIM_TOTAL

typedef struct leat_sim_options {
    uint64_t seed;
    leat_sim_plan plan;
    const leat_sim_identity *identity;
    const char *pcap;   /* file, or NULL */
    const char *keylog; /* file, or NULL */
    leat_event_sink *sink;
    uint64_t check; /* walks everything each so many steps */
    int fault;      /* fault.h */
} leat_sim_options;

/* Once, before any child is forked for a run: makes what runs would else make for themselves. */
void leat_sim_prepare(const leat_sim_identity *identity);

/* A failure does not return: leat_sim_fail(), or a failed assertion. */
void leat_sim_run(const leat_sim_options *options, leat_sim_result *result);

/* trace.c: prints events, one line each. */
extern leat_event_sink leat_sim_trace;

#endif
