/* leat/jitter.h: a jitter buffer: packets come in as the network brings them and go out in order,
 * at the pace of their timestamps.
 *
 * A packet is played at its timestamp, on a clock set by the fastest packet of the last seconds,
 * plus a delay. The delay rises at once when packets come too late for it and sinks slowly when
 * they come early, within bounds. Memory is bounded by the count of packets and of bytes, whatever
 * comes. A buffer belongs to the thread that has its leat_mem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_JITTER_H
#define LEAT_JITTER_H

#include <leat/buf.h>
#include <leat/rtp.h>

LEAT_BEGIN_DECLS

typedef struct leat_jitter_settings {
    uint32_t clock_rate; /* units of the timestamp in a second; not 0 */
    size_t packets;      /* most that wait; a power of two, LEAT_JITTER_PACKETS_MIN to _MAX */
    size_t bytes;        /* most that their buffers have, LEAT_JITTER_BYTES_MIN to _MAX */
    leat_time delay_min;
    leat_time delay_max; /* equal to delay_min: a fixed delay; an hour at most */
} leat_jitter_settings;

typedef struct leat_jitter_packet {
    leat_buf buf;       /* the whole RTP packet */
    uint64_t seq;       /* unwrapped */
    uint64_t timestamp; /* unwrapped */
    leat_time due;      /* when it was to be played */
    bool marker;
    bool gap; /* numbers before it are missing: lost, or too late */
} leat_jitter_packet;

/* X(name, what it counts) */
#define LEAT_JITTER_STAT_LIST(X)                                                                   \
    X(pushed, "packets that came")                                                                 \
    X(popped, "packets handed out")                                                                \
    X(duplicates, "packets that were there already")                                               \
    X(late, "packets that came when their number had been passed")                                 \
    X(missing, "numbers passed without a packet")                                                  \
    X(overflowed, "packets dropped or handed out early because the buffer was full")               \
    X(restarts, "times that the numbers or timestamps leapt and playing began anew")

#define LEAT_JITTER_STAT_MEMBER(name, text) uint64_t name;
typedef struct leat_jitter_stats {
    LEAT_JITTER_STAT_LIST(LEAT_JITTER_STAT_MEMBER)
} leat_jitter_stats;
#undef LEAT_JITTER_STAT_MEMBER

typedef struct leat_jitter {
    leat_jitter_settings set;
    leat_mem *mem;
    leat_jitter_packet *ring;
    uint64_t mask;
    uint64_t next; /* the number that is to go out next */
    uint64_t head; /* the first that is there, if count > 0 */
    uint64_t end;  /* one past the highest that came */
    size_t count;
    size_t bytes;
    uint64_t last_timestamp; /* unwrapped, of the last packet that came */
    uint64_t pace_stamp;     /* the timestamp with which the pace began … */
    leat_time pace_began;    /* … and when: what transits count from */
    int64_t fastest[2];      /* least transit, ns: in this period and the last */
    int64_t spread[2];       /* how much later than the fastest the slowest were */
    leat_time period_end;
    uint64_t pace_from; /* packets before this number came before the pace began anew */
    leat_time delay;
    bool popped; /* something went out: what comes before it is too late */
    leat_seq_restart restart;
    bool started;
    leat_jitter_stats stats;
} leat_jitter;

LEAT_API void leat_jitter_settings_init(leat_jitter_settings *settings, uint32_t clock_rate);
/* LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_jitter_init(leat_jitter *jitter, leat_mem *mem,
                                   const leat_jitter_settings *settings);
/* Releases what waits. */
LEAT_API void leat_jitter_free(leat_jitter *jitter);

/* A packet came, read by leat_rtp_parse() from *buf. Takes the buffer over (it is emptied) whatever
 * becomes of it. LEAT_OK: it waits. LEAT_ERR_STATE: a duplicate, or its turn has passed;
 * LEAT_ERR_LIMIT: there was no room. */
LEAT_API leat_err leat_jitter_push(leat_jitter *jitter, const leat_rtp_packet *packet,
                                   leat_buf *buf, leat_time now);

/* When the next packet is due; LEAT_TIME_NEVER: none waits. */
LEAT_API leat_time leat_jitter_deadline(const leat_jitter *jitter);

/* Hands out the next packet if it is due; the caller owns out->buf. False: not yet. Again until
 * then: packets of one frame are due together. */
LEAT_API bool leat_jitter_pop(leat_jitter *jitter, leat_time now, leat_jitter_packet *out);

/* A walker: asserts what must hold. O(packets). */
LEAT_API void leat_jitter_check(const leat_jitter *jitter);

LEAT_END_DECLS

#endif
