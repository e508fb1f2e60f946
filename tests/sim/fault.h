/* tests/sim/fault.h: faults put in by order, each of which the simulator must see.
 *
 * A check that cannot fail is none. Each fault breaks the state of a connection, or what an end
 * does, as a fault in the library would; the run must then fail and say so. `leat-sim --fault NAME`
 * puts one in, tests/sim/test-faults.sh all in turn.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_FAULT_H
#define LEAT_TESTS_SIM_FAULT_H

typedef struct leat_sim leat_sim;

/* X(name, what the failure says) */
#define LEAT_SIM_FAULT_LIST(X)                                                                     \
    X(none, "")                                                                                    \
    X(wrong_byte, "is wrong")                                                                      \
    X(short_stream, "ends after")                                                                  \
    X(datagram_twice, " twice")                                                                    \
    X(datagram_untold, "there is no rest")                                                         \
    X(strange_reset, "reset with code")                                                            \
    X(over_budget, "of a budget of")                                                               \
    X(amplification, "to an address that sent")                                                    \
    X(lost_credit, "does not hold")                                                                \
    X(wrong_streams, "streams opened")                                                             \
    X(wrong_count, "stream bytes sent and received")                                               \
    X(wrong_datagrams, "datagrams sent, by connection and network")                                \
    X(hot_loop, "a hot loop")                                                                      \
    X(stall, "not done")                                                                           \
    X(closed_by_itself, "connection ended: local")                                                 \
    X(timed_out_by_itself, "connection ended: idle")                                               \
    X(no_probes, "has not probed for")                                                             \
    X(ghost_closed, "that its client has forgotten ended: local")                                  \
    X(not_resumed, "a session was brought, and not resumed")                                       \
    X(stream_left, "streams left")                                                                 \
    X(buffer_left, "buffers left")

#define LEAT_SIM_FAULT_ENUM(name, text) LEAT_SIM_FAULT_##name,
enum { LEAT_SIM_FAULT_LIST(LEAT_SIM_FAULT_ENUM) LEAT_SIM_FAULTS };
#undef LEAT_SIM_FAULT_ENUM

/* After each step: breaks what options->fault says, once it can. */
void leat_sim_fault(leat_sim *s);

/* By name; -1: there is none. The name and what the failure says by number; NULL: no more. */
int leat_sim_fault_find(const char *name);
const char *leat_sim_fault_name(int fault);
const char *leat_sim_fault_text(int fault);

#endif
