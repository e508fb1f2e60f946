/* net/pipe.h: one direction of a network, in memory and in virtual time.
 *
 * A datagram goes in with the time of sending and comes out when its time has come; in between the
 * pipe may delay, drop, double, reorder, damage or mark it, as its settings say. All chance comes
 * from the pipe's own generator: the same calls with the same seed give the same datagrams at the
 * same times.
 *
 * The way of a datagram:
 *   1. MTU: one that is too large is dropped.
 *   2. filter: the owner's own rule, for what the settings cannot say.
 *   3. loss: singly, or in bursts.
 *   4. rate and queue: it waits until those before it are through; a queue that is full drops it,
 *      one that is long marks it (ECN).
 *   5. damage: a bit flipped, the end cut off, the ECN bits bleached.
 *   6. delay, and jitter, which keep the order (a delay that shrinks does too).
 *   7. reordering: some are held back for longer and are overtaken.
 *   8. duplication: a copy takes the same way from 5 on.
 *
 * Buffers belong to the pipe from leat_pipe_send() to leat_pipe_recv(). A copy has a buffer of its
 * own, because the receiver decrypts in place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_NET_PIPE_H
#define LEAT_NET_PIPE_H

#include <leat/buf.h>
#include <leat/quic.h>

#include "base/prng.h"
#include "mem/pool.h"

/* Probabilities are in parts of a million: 20000 is 2 %. */
#define LEAT_PIPE_WHOLE 1000000u

typedef struct leat_dgram {
    leat_buf buf;
    leat_addr src;
    leat_addr dst;
    uint8_t ecn;    /* enum leat_ecn */
    size_t segment; /* its owner's: buf is a batch of datagrams, each of so many bytes; 0: it is
                       one. The pipe takes a batch as one. */
    bool damaged;   /* by the pipe */
} leat_dgram;

/* The owner's rule: `index` counts the datagrams sent into the pipe, from 0. It may change the
 * datagram (addresses, ECN, bytes). False drops it. */
typedef bool leat_pipe_filter_fn(void *user, leat_dgram *dgram, uint64_t index);

typedef struct leat_pipe_settings {
    leat_time delay;             /* one way */
    leat_time jitter;            /* up to so much more, evenly */
    uint64_t rate;               /* bits a second, of payload; 0: no limit */
    size_t queue;                /* bytes that may wait for the rate; 0: no limit */
    size_t mark;                 /* more bytes than this waiting: ECT becomes CE; 0: never */
    leat_time codel;             /* CoDel (RFC 8289): the target of waiting; 0: drop-tail alone */
    size_t mtu;                  /* the largest payload that gets through; 0: any */
    uint32_t loss;               /* chance that a loss begins with this datagram */
    uint32_t loss_burst;         /* mean length of a loss in datagrams; 0 and 1: single losses */
    uint32_t duplicate;          /* chance */
    uint32_t reorder;            /* chance to be held back by reorder_delay */
    leat_time reorder_delay;     /* 0 with reorder set: 1 ms */
    uint32_t corrupt;            /* chance that one bit is flipped */
    uint32_t truncate;           /* chance that the end is cut off */
    bool bleach;                 /* ECN bits come out as zero */
    leat_pipe_filter_fn *filter; /* or NULL */
    void *filter_user;
} leat_pipe_settings;

/* X(name, what it counts) */
#define LEAT_PIPE_STAT_LIST(X)                                                                     \
    X(sent, "datagrams sent into the pipe")                                                        \
    X(delivered, "datagrams that came out, copies too")                                            \
    X(bytes_delivered, "their bytes")                                                              \
    X(lost, "dropped by chance")                                                                   \
    X(filtered, "dropped by the owner's rule")                                                     \
    X(too_large, "dropped: larger than the MTU")                                                   \
    X(overflowed, "dropped: the queue was full")                                                   \
    X(codel, "dropped by CoDel")                                                                   \
    X(no_memory, "dropped, or not copied: out of memory")                                          \
    X(duplicated, "copies made")                                                                   \
    X(reordered, "held back")                                                                      \
    X(damaged, "corrupted or truncated")                                                           \
    X(marked, "marked CE")

#define LEAT_PIPE_STAT_MEMBER(name, text) uint64_t name;
typedef struct leat_pipe_stats {
    LEAT_PIPE_STAT_LIST(LEAT_PIPE_STAT_MEMBER)
} leat_pipe_stats;
#undef LEAT_PIPE_STAT_MEMBER

typedef struct leat_pipe_entry leat_pipe_entry;

/* CoDel's state, named as RFC 8289 s5.3 does. */
typedef struct leat_pipe_codel {
    leat_time first_above; /* 0: the waiting was below the target */
    leat_time drop_next;
    uint32_t count;
    bool dropping;
} leat_pipe_codel;

typedef struct leat_pipe {
    leat_pipe_settings settings;
    leat_pipe_stats stats;
    leat_mem *mem;
    leat_prng prng;
    leat_pool pool;
    leat_pipe_entry *first; /* those that keep their order, a list whose times never fall */
    leat_pipe_entry *last;
    leat_pipe_entry *held; /* heap of those held back */
    uint64_t order;        /* of the next entry: ties come out in the order in which they went in */
    leat_time idle_at;     /* when what has been sent is through the rate */
    leat_time last_at;     /* the latest time of delivery, without those held back */
    bool losing;           /* in a burst of losses */
    leat_pipe_codel codel;
} leat_pipe;

/* NULL settings: a pipe that delivers at once and loses nothing. Takes no memory. */
void leat_pipe_init(leat_pipe *pipe, leat_mem *mem, const leat_pipe_settings *settings,
                    uint64_t seed);

/* Drops what is under way. */
void leat_pipe_free(leat_pipe *pipe);

/* From the next datagram on. What is under way stays as it was planned. */
void leat_pipe_set(leat_pipe *pipe, const leat_pipe_settings *settings);

/* Sends a datagram at time now; takes its buffer (dgram->buf is empty afterwards). Times of calls
 * do not step back. */
void leat_pipe_send(leat_pipe *pipe, leat_time now, leat_dgram *dgram);

/* Takes out the next datagram whose time has come; the caller releases its buffer. False: none. */
bool leat_pipe_recv(leat_pipe *pipe, leat_time now, leat_dgram *out);

/* When the next datagram comes out, or LEAT_TIME_NEVER. */
leat_time leat_pipe_deadline(const leat_pipe *pipe);

/* How many are under way. */
static inline size_t leat_pipe_count(const leat_pipe *pipe)
{
    return leat_pool_live(&pipe->pool);
}

/* Walks it and asserts order, links and counts. */
void leat_pipe_check(const leat_pipe *pipe);

#endif
