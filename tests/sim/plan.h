/* tests/sim/plan.h: all that a run of the simulator depends on: a list of numbers.
 *
 * leat_sim_plan_random() draws one from a seed; each number can then be set by name, to narrow down
 * a failure or to ask for one case. Names of the three lists below: those of the run stand alone,
 * those of the network are "up." (to the server) and "down.", those of an end "client." and
 * "server."; without the prefix both are meant.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_PLAN_H
#define LEAT_TESTS_SIM_PLAN_H

#include <stdio.h>

#include <leat/base.h>
#include <leat/limits.h>

#define LEAT_SIM_WHOLE 1000000u /* chances are in parts of a million */

/* X(name, default, what) */
#define LEAT_SIM_RUN_LIST(X)                                                                       \
    X(content, 1, "seed of stream contents, sizes and fates")                                      \
    X(size, 65536, "bytes of the file: stream 0, from the server")                                 \
    X(other_size, 4096, "bytes at most of every other direction of a stream")                      \
    X(clients, 1, "that connect, each by a network of its own")                                    \
    X(stagger_us, 0, "each so long after the last")                                                \
    X(again, 0, "times that all of them come back when all is over")                               \
    X(again_after_us, 0, "so long after")                                                          \
    X(resume, 1, "and bring the session of last time")                                             \
    X(token, 1, "and the address token")                                                           \
    X(shrinks, 0, "the server has half its windows then")                                          \
    X(hello_retry, 0, "the server wants another group than the client first offers")               \
    X(retry_above, 0, "with more half-open connections than this it asks for Retry; 0: never")     \
    X(resets, 0, "chance that a sender resets its direction of a stream")                          \
    X(reliable, 0, "chance that it does so by RESET_STREAM_AT")                                    \
    X(stops, 0, "chance that a receiver stops one")                                                \
    X(cipher, 0, "0: all are offered; 1 to 3: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305")        \
    X(verify, 1, "the client checks the certificate")                                              \
    X(retry, 0, "the server asks for address validation first")                                    \
    X(closer, 0, "who closes: 0 client, 1 server")                                                 \
    X(close_at_us, 0, "closes then, whatever is open; 0: when all is done")                        \
    X(close_how, 0, "0: the connection, 1: the endpoint, 2: the endpoint is freed")                \
    X(settle, 1, "lets all come to rest before the end, and compares both sides' statistics")      \
    X(late_us, 0, "turns come up to so much too late")                                             \
    X(steps_back, 0, "chance that the clock steps back for a turn")                                \
    X(rebind_at_us, 0,                                                                             \
      "a NAT gives the client another port so long after the handshake; 0: never")                 \
    X(rebind_every_us, 0, "and again each so many; 0: once")                                       \
    X(rebind_ip, 0, "another IP address, too")                                                     \
    X(rebind_keep, 0, "what goes to the old address still arrives")                                \
    X(preferred, 0,                                                                                \
      "the server would be met elsewhere: 1: another port, 2: another host, 3: nobody gets there") \
    X(migrate_at_us, 0,                                                                            \
      "the client moves to an address of its own so long after the handshake; 0: never")           \
    X(migrate_every_us, 0, "and to another each so many; 0: once")                                 \
    X(restart_at_us, 0, "the server forgets all so long after the handshake, and begins anew")     \
    X(reborn_at_us, 0,                                                                             \
      "each client forgets all so long after its handshake, and connects from where it was")       \
    X(jump_at_us, 0, "both machines sleep then: what comes meanwhile waits")                       \
    X(jump_us, 0, "for so long; 0: never")                                                         \
    X(harsh, 0, "timeouts are no failure")                                                         \
    X(limit_s, 3600, "virtual seconds, and one more for each 10 kB of the file, to be done in")

#define LEAT_SIM_NET_LIST(X)                                                                       \
    X(delay_us, 10000, "one way")                                                                  \
    X(jitter_us, 0, "up to so much more")                                                          \
    X(rate, 0, "bits a second; 0: no limit")                                                       \
    X(queue, 0, "bytes that may wait for the rate; 0: no limit")                                   \
    X(mark, 0, "more bytes than this waiting: marked CE; 0: never")                                \
    X(codel_us, 0,                                                                                 \
      "CoDel's target of waiting, its interval being twenty times that; 0: drop-tail")             \
    X(mtu, 0, "the largest payload that gets through; 0: any")                                     \
    X(loss, 0, "chance that a loss begins")                                                        \
    X(loss_burst, 0, "mean length of a loss")                                                      \
    X(duplicate, 0, "chance")                                                                      \
    X(reorder, 0, "chance to be held back")                                                        \
    X(reorder_delay_us, 0, "for so long")                                                          \
    X(corrupt, 0, "chance that a bit is flipped")                                                  \
    X(truncate, 0, "chance that the end is cut off")                                               \
    X(change_at_us, 0, "from then on the next three count; 0: never")                              \
    X(change_back_us, 0, "for so long; 0: for good")                                               \
    X(change_delay_us, 10000, "one way")                                                           \
    X(change_rate, 0, "bits a second; 0: no limit")                                                \
    X(change_mtu, 0, "the largest payload that gets through; 0: any")                              \
    X(bleach, 0, "ECN bits are 1: cleared, 2: set to CE, 3: from ECT(0) to ECT(1)")                \
    X(drop_first, 0, "bit n: the nth datagram is lost")                                            \
    X(outage_at_us, 0, "when nothing gets through")                                                \
    X(outage_us, 0, "for so long; 0: never")

#define LEAT_SIM_END_LIST(X)                                                                       \
    X(bidi, 1, "bidirectional streams that it opens")                                              \
    X(uni, 0, "unidirectional ones")                                                               \
    X(max_streams_bidi, 128, "that the peer may have open at once")                                \
    X(max_streams_uni, 128, "the same, unidirectional")                                            \
    X(max_data, 8388608, "bytes that the peer may send before more is read")                       \
    X(max_stream_data, 4194304, "the same, a stream")                                              \
    X(send_buffer, 1048576, "bytes a stream buffers")                                              \
    X(memory, 67108864, "bytes that the connection may retain")                                    \
    X(udp_payload, 1452, "bytes a datagram")                                                       \
    X(versions, 0, "0: 1 and 2, 1: 1 alone, 2: 2 alone, 3: 2 and 1")                               \
    X(version, 0, "client: begins with it; 0: its best")                                           \
    X(congestion, 0, "the controller, by its number in leat/quic.h")                               \
    X(tickets, 0, "server: that it gives out; client: that it waits for")                          \
    X(early_data, 0, "0-RTT")                                                                      \
    X(min_ack_delay_us, 0, "microseconds; 0: no ACK_FREQUENCY")                                    \
    X(no_ecn, 0, "sends no ECT")                                                                   \
    X(no_spin, 0, "no spin bit")                                                                   \
    X(no_grease, 0, "no reserved bits and parameters")                                             \
    X(no_reset_at, 0, "takes no RESET_STREAM_AT")                                                  \
    X(no_migration, 0, "server: asks the client to stay where it is")                              \
    X(ignore_preferred, 0, "client: stays with the server's first address")                        \
    X(rekey_every_us, 0, "the application asks for a key update each so many; 0: never")           \
    X(leap_at_us, 0, "when its clock leaps ahead")                                                 \
    X(leap_us, 0, "by so much; 0: never")                                                          \
    X(max_ack_delay_ms, 25, "milliseconds")                                                        \
    X(key_update_packets, 0, "packets sealed with one key; 0: by the AEAD's limits")               \
    X(idle_ms, 30000, "milliseconds until it gives up")                                            \
    X(keep_alive_ms, 0, "a PING after so long; 0: none")                                           \
    X(handshake_ms, 60000, "milliseconds for the handshake")                                       \
    X(cid_len, 8, "bytes of its connection IDs")                                                   \
    X(slab_size, 65536, "bytes a slab of its context")                                             \
    X(send_cap, 65536, "bytes a call of leat_endpoint_send() may write")                           \
    X(group, 0, "datagrams that one receive call may bring, as with GRO; 0 and 1: one")            \
    X(read_chunk, 0, "bytes read from a stream a tick; 0: all, at once")                           \
    X(write_chunk, 0, "bytes written to a stream a tick; 0: all that there is room for")           \
    X(tick_us, 10000, "the tick of a slow application")                                            \
    X(piece, 65536, "bytes a call writes at most")                                                 \
    X(write_how, 0, "0: copied, 1: in place, 2: by reference, 3: each in turn")                    \
    X(priorities, 0, "streams get urgencies of their own")                                         \
    X(datagrams, 0, "DATAGRAM frames that it sends")                                               \
    X(datagram_size, 1000, "bytes of each at most")                                                \
    X(datagram_every_us, 1000, "one each so many")                                                 \
    X(datagram_life_us, 0, "not sent any more after so long; 0: always")                           \
    X(datagram_frame, 65535, "the largest DATAGRAM frame that it takes")                           \
    X(datagram_queue, 256, "datagrams that may wait")                                              \
    X(datagram_urgency, 3, "against the streams'")

#define LEAT_SIM_MEMBER(name, value, text) uint64_t name;
typedef struct leat_sim_net_plan {
    LEAT_SIM_NET_LIST(LEAT_SIM_MEMBER)
} leat_sim_net_plan;
typedef struct leat_sim_end_plan {
    LEAT_SIM_END_LIST(LEAT_SIM_MEMBER)
} leat_sim_end_plan;
typedef struct leat_sim_plan {
    LEAT_SIM_RUN_LIST(LEAT_SIM_MEMBER)
    leat_sim_net_plan net[2]; /* [i]: what end i sends */
    leat_sim_end_plan end[2]; /* client, server */
} leat_sim_plan;
#undef LEAT_SIM_MEMBER

/* The defaults: nothing goes wrong. */
void leat_sim_plan_plain(leat_sim_plan *plan);

/* Drawn from a seed. */
void leat_sim_plan_random(leat_sim_plan *plan, uint64_t seed);

/* Sets what a text of the form "name=value,name=value" names. False: it cannot be read, and *wrong
 * points at what cannot. */
bool leat_sim_plan_set(leat_sim_plan *plan, const char *text, const char **wrong);

/* Prints what is not as in the plain plan, in the form that leat_sim_plan_set() reads. */
void leat_sim_plan_print(const leat_sim_plan *plan, FILE *file);

/* The numbers of a plan one by one, for whoever tries others: the ith, and what it is in the plain
 * plan. NULL: there are no more. */
uint64_t *leat_sim_plan_at(leat_sim_plan *plan, size_t i, uint64_t *plain);

/* Prints all names with their meaning. */
void leat_sim_plan_help(FILE *file);

#endif
