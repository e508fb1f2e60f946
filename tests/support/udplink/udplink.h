/* tests/support/udplink/udplink.h: a bad link for UDP, as a program between a client and a server.
 *
 *     client <-> front socket | up, down: faults, delay, rate | a socket a flow <-> server
 *
 * Each client address is a flow with a socket of its own towards the server, as behind a NAT; a
 * rebinding gives every flow a new one. Datagrams keep their ECN mark. Whatever is decided by
 * chance comes from one seed. What the client's side and the server's side see goes to a capture
 * each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_UDPLINK_H
#define LEAT_TESTS_UDPLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/loop.h>

/* ---- faults.c: what one direction does to its datagrams
 * ------------------------------------------ */

/* X(name, key, what it is). All are numbers; 0 is none. Percentages may have fractions. */
#define LINK_FAULT_LIST(X)                                                                         \
    X(loss, "loss", "percent of the datagrams that are lost")                                      \
    X(corrupt, "corrupt", "percent that get a byte changed")                                       \
    X(duplicate, "duplicate", "percent that come twice")                                           \
    X(reorder, "reorder", "percent that come late by reorder-by, and so out of order")             \
    X(reorder_by, "reorder-by", "milliseconds (default: 10)")                                      \
    X(ce, "ce", "percent of those marked ECT that become CE")                                      \
    X(burst, "burst", "the most that are lost or corrupted in a row (0: any number)")              \
    X(delay, "delay", "milliseconds one way")                                                      \
    X(rate, "rate", "kbit/s")                                                                      \
    X(queue, "queue", "datagrams that wait for the rate; more are lost (default: 100)")            \
    X(dark_after, "dark-after", "milliseconds of light, counted from the first datagram ...")      \
    X(dark_for, "dark-for", "... and then of darkness, in turns: all is lost")                     \
    X(first_lost, "first-lost", "number of the first datagram that is lost for certain ...")       \
    X(last_lost, "last-lost", "... to this one; the first of all is number 1")

#define LINK_FAULT_MEMBER(name, key, text) double name;
typedef struct link_faults {
    LINK_FAULT_LIST(LINK_FAULT_MEMBER)
} link_faults;
#undef LINK_FAULT_MEMBER

/* X(name, what it counts) */
#define LINK_COUNT_LIST(X)                                                                         \
    X(received, "came from the sender")                                                            \
    X(sent, "went to the receiver")                                                                \
    X(lost, "lost by chance or by number")                                                         \
    X(dark, "lost in the dark")                                                                    \
    X(full, "lost because the queue was full")                                                     \
    X(corrupted, "with a byte changed")                                                            \
    X(duplicated, "sent twice")                                                                    \
    X(reordered, "sent late")                                                                      \
    X(marked, "marked CE")                                                                         \
    X(refused, "that the system did not send")

#define LINK_COUNT_MEMBER(name, text) uint64_t name;
typedef struct link_counts {
    LINK_COUNT_LIST(LINK_COUNT_MEMBER)
} link_counts;
#undef LINK_COUNT_MEMBER

enum { LINK_QUEUE_MOST = 65536 };

/* One direction. Takes `link_direction_init()`; nothing of it is freed. */
typedef struct link_direction {
    link_faults faults;
    link_counts counts;
    uint64_t random[4];
    unsigned in_a_row;    /* lost or corrupted since the last that was not */
    leat_time first;      /* when the first datagram came; LEAT_TIME_NEVER before it */
    leat_time idle_at;    /* when the rate has let everything so far through */
    leat_time *departure; /* ring of queue entries: when those that wait leave */
    size_t queue_head, queue_count;
} link_direction;

/* False: out of memory. */
bool link_direction_init(link_direction *direction, const link_faults *faults, uint64_t seed);

/* What becomes of a datagram. */
typedef struct link_fate {
    unsigned copies; /* 0: lost; 1; 2 */
    leat_time at[2]; /* when each goes on */
    bool corrupt;    /* change byte `corrupt_at` by XOR with `corrupt_with` (not 0) */
    size_t corrupt_at;
    uint8_t corrupt_with;
    bool mark; /* set CE */
} link_fate;

link_fate link_decide(link_direction *direction, leat_time now, size_t len, uint8_t ecn);

/* ---- later.c: datagrams on their way
 * --------------------------------------------------------------- */

typedef struct link_datagram {
    struct link_datagram *next_free;
    leat_time at;
    uint64_t serial; /* those of one time go in the order they came */
    size_t flow;
    bool up;
    uint8_t ecn;
    uint16_t len;
    uint8_t data[65536];
} link_datagram;

/* A binary heap by time, then order. */
typedef struct link_later {
    link_datagram **heap;
    size_t count, cap;
    uint64_t serial;
    link_datagram *free;
} link_later;

/* A datagram to fill in; NULL: out of memory. */
link_datagram *link_later_take(link_later *later);
void link_later_give(link_later *later, link_datagram *datagram);
/* Keeps it until its time; false (and it is given back): out of memory. */
bool link_later_add(link_later *later, link_datagram *datagram);
/* The next one that is due, taken out; NULL when none is. */
link_datagram *link_later_due(link_later *later, leat_time now);
/* When the next is due; LEAT_TIME_NEVER when there is none. */
leat_time link_later_next(const link_later *later);
void link_later_free(link_later *later);

/* ---- sock.c: sockets that keep ECN
 * ------------------------------------------------------------------ */

/* Binds a UDP socket that does not block; -1 after a message. */
int link_sock_open(const leat_addr *local);
leat_addr link_sock_local(int fd);
/* A datagram's length, or -1 when there is none. */
int link_sock_receive(int fd, void *data, size_t cap, leat_addr *from, uint8_t *ecn);
bool link_sock_send(int fd, const void *data, size_t len, const leat_addr *to, uint8_t ecn);

#endif
