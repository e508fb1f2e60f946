/* leat/pace.h: packets leave at an even rate, the important ones first.
 *
 * A pacer holds what waits: a word of the caller's for each packet (a pointer, an index), its size
 * and its kind. The packets stay the caller's. Audio goes before video, video before
 * retransmissions, these before padding; within a kind, first in, first out.
 *
 * Ask leat_pace_pop() until it says false, send what it gives, and again at leat_pace_deadline().
 * Each kind has a bounded queue: what does not fit is refused, and the caller drops it or a whole
 * frame (leat_pace_drop()).
 *
 * Memory is taken once, when one is initialised. One thread at a time uses an object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_PACE_H
#define LEAT_PACE_H

#include <leat/base.h>
#include <leat/buf.h>

LEAT_BEGIN_DECLS

/* X(NAME, name), the first to go first */
#define LEAT_PACE_LIST(X)                                                                          \
    X(AUDIO, "audio")                                                                              \
    X(VIDEO, "video")                                                                              \
    X(RETRANSMISSION, "retransmission")                                                            \
    X(PADDING, "padding")

#define LEAT_PACE_ENUM(name, text) LEAT_PACE_##name,
typedef enum leat_pace_kind { LEAT_PACE_LIST(LEAT_PACE_ENUM) LEAT_PACE_KINDS } leat_pace_kind;
#undef LEAT_PACE_ENUM

typedef struct leat_pace_item {
    void *packet; /* the caller's */
    leat_time at; /* when it was pushed */
    uint32_t size;
    uint32_t kind; /* leat_pace_kind */
} leat_pace_item;

typedef struct leat_pace {
    leat_pace_item *items; /* a ring for each kind */
    leat_mem *mem;
    uint32_t mask; /* of a ring */
    uint32_t head[LEAT_PACE_KINDS], tail[LEAT_PACE_KINDS];
    uint64_t queued[LEAT_PACE_KINDS]; /* bytes that wait, by kind */
    uint64_t rate;                    /* bits a second */
    leat_time next;                   /* when the next packet may leave */
} leat_pace;

/* packets: how many of each kind may wait, a power of two, LEAT_PACE_PACKETS_MIN to _MAX; 0:
 * LEAT_PACE_PACKETS_DEFAULT. rate: bits a second, above 0. LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_pace_init(leat_pace *pacer, leat_mem *mem, size_t packets, uint64_t rate);
/* What waits is forgotten: take it out before (leat_pace_drop()). */
LEAT_API void leat_pace_free(leat_pace *pacer);

/* From the next packet on. 0 stops it but for audio. */
LEAT_API void leat_pace_set_rate(leat_pace *pacer, uint64_t rate);

/* LEAT_ERR_LIMIT: as many of this kind wait as may; nothing is kept then. */
LEAT_API leat_err leat_pace_push(leat_pace *pacer, leat_pace_kind kind, void *packet, uint32_t size,
                                 leat_time now);

/* The next packet that may leave at `now`; false: none. Audio does not wait for the rate: its bytes
 * are counted, and the others wait the longer. A pause is not made up for: at most
 * LEAT_PACE_BURST of time is. */
LEAT_API bool leat_pace_pop(leat_pace *pacer, leat_time now, leat_pace_item *out);

/* When leat_pace_pop() will have something: 0 for at once, LEAT_TIME_NEVER while nothing waits. */
LEAT_API leat_time leat_pace_deadline(const leat_pace *pacer);

/* Takes the oldest packet of a kind out, unsent: for those that are late. False: none waits. */
LEAT_API bool leat_pace_drop(leat_pace *pacer, leat_pace_kind kind, leat_pace_item *out);

/* Bytes of padding that may leave at `now`: 0 while anything waits. What is then sent is told by
 * leat_pace_sent(). */
LEAT_API uint64_t leat_pace_room(const leat_pace *pacer, leat_time now);
/* A packet went out that was not in the queue. */
LEAT_API void leat_pace_sent(leat_pace *pacer, leat_time now, uint32_t size);

/* Bytes that wait, of all kinds, and how long the last of them will. */
LEAT_API uint64_t leat_pace_queued(const leat_pace *pacer);
LEAT_API leat_time leat_pace_queue_time(const leat_pace *pacer);

#define LEAT_PACE_BURST (5 * LEAT_MILLISECOND)

LEAT_END_DECLS

#endif
