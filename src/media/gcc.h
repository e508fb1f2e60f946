/* media/gcc.h: the parts of Google congestion control, each a small state of its own.
 *
 *     results -> groups -> trendline -> detector -> rate control -> target_rate
 *             -> acked rate ------------------------^      ^
 *             -> probe ------------------------------------'
 *             -> loss ------------------------------------------> (the lesser)
 *
 * The numbers are the draft's (draft-ietf-rmcat-gcc-02), or where it leaves them open or practice
 * has moved on (the trendline in place of the Kalman filter, the near-maximum estimate, probing),
 * those that deployed implementations use; gcc_*.c say which.
 *
 * Times that enter are nanoseconds; delays inside are milliseconds, rates bits a second.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_GCC_H
#define LEAT_MEDIA_GCC_H

#include <leat/estimate.h>

/* ---- gcc_delay.c: groups of packets ----------------------------------------------------------
 */

/* Packets that left within 5 ms of the first, or that came in one burst. */
typedef struct leat_gcc_group {
    leat_time first_sent, last_sent;
    leat_time first_arrived, last_arrived;
    leat_time span; /* what leaves less than this after the first belongs to it; 0: no group yet */
} leat_gcc_group;

typedef struct leat_gcc_groups {
    leat_gcc_group before, present;
    uint32_t disorders; /* groups in a row that ended before the one before them */
} leat_gcc_groups;

/* What two groups that follow each other tell. */
typedef struct leat_gcc_delta {
    double sent_ms;    /* from the last departure of one to that of the next */
    double arrived_ms; /* the same of arrivals */
    leat_time arrived; /* when the later one was complete */
    uint64_t bytes;    /* that had arrived by then, of all, or a little later */
    uint32_t size;     /* of the packet that came later */
} leat_gcc_delta;

/* leat_gcc_groups_take() for what did not leave within the present group's span. */
bool leat_gcc_groups_take_other(leat_gcc_groups *groups, leat_time sent, leat_time arrived,
                                leat_gcc_delta *out);

static inline void leat_gcc_group_join(leat_gcc_group *group, leat_time sent, leat_time arrived)
{
    group->last_sent = sent > group->last_sent ? sent : group->last_sent;
    group->last_arrived =
        (int64_t)(arrived - group->last_arrived) > 0 ? arrived : group->last_arrived;
}

/* The next packet that arrived, in the order of departure; true: a group is complete, and *out says
 * how it compares with the one before. */
static inline bool leat_gcc_groups_take(leat_gcc_groups *groups, leat_time sent, leat_time arrived,
                                        leat_gcc_delta *out)
{
    leat_gcc_group *g = &groups->present;

    if (sent - g->first_sent < g->span) {
        leat_gcc_group_join(g, sent, arrived);
        return false;
    }
    return leat_gcc_groups_take_other(groups, sent, arrived, out);
}

/* ---- gcc_delay.c: trendline ------------------------------------------------------------------
 */

enum { LEAT_GCC_TREND_POINTS = 20 };

/* The slope of smoothed delay over time, by least squares over the last points: of sums, to which
 * the newest point is added and from which the oldest is taken. */
typedef struct leat_gcc_trend {
    double at[LEAT_GCC_TREND_POINTS];
    double delay[LEAT_GCC_TREND_POINTS];
    double believed_at[LEAT_GCC_TREND_POINTS]; /* delay before it is smoothed */
    uint64_t bytes[LEAT_GCC_TREND_POINTS];
    uint32_t size;
    uint32_t count; /* points ever; stops where it does not matter any more */
    uint32_t next;
    double at_from, delay_from; /* what the points are counted from in the sums: */
    double sum_at, sum_delay, sum_products, sum_squares;
    double accumulated; /* delay, as arrivals tell */
    double believed;    /* the same without what stands out */
    double smoothed;
    leat_time origin;
    double slope; /* ms of delay a ms */
} leat_gcc_trend;

void leat_gcc_trend_take(leat_gcc_trend *trend, const leat_gcc_delta *delta);
/* What the detector compares: grows with the slope and, at the start, with how many points there
 * are. */
double leat_gcc_trend_value(const leat_gcc_trend *trend);
/* What the path has carried lately while its queue grew, bits a second; 0: not known. */
double leat_gcc_trend_carried(const leat_gcc_trend *trend);

/* ---- gcc_delay.c: over-use detector ----------------------------------------------------------
 */

/* The detector's threshold is THRESHOLD_MIN at least, and what it compares is at most GAIN times
 * COUNT_FULL times the slope: a slope below this one is never over-use. */
#define LEAT_GCC_SLOPE_SEEN 0.025

typedef struct leat_gcc_detector {
    double threshold;
    double over_ms; /* time spent above it; below 0: none */
    uint32_t over;  /* points above it */
    double last_slope;
    leat_time last; /* when the threshold was adapted */
    leat_usage usage;
} leat_gcc_detector;

void leat_gcc_detector_init(leat_gcc_detector *detector);
/* value and slope: the trendline's; sent_ms: of the delta; now: its arrival. */
leat_usage leat_gcc_detector_take(leat_gcc_detector *detector, double value, double slope,
                                  double sent_ms, leat_time now);

/* ---- gcc_rate.c: what arrives ----------------------------------------------------------------
 */

/* The rate of what arrived: samples over windows, joined as in a Kalman filter, so that a sample
 * that is far off counts for less. */
typedef struct leat_gcc_acked {
    double rate; /* below 0: none yet */
    double variance;
    leat_time began;  /* the present window … */
    leat_time length; /* … and how long it is to be; 0: nothing arrived yet */
    uint64_t bytes;   /* in it */
    leat_time last;   /* arrival of all */
} leat_gcc_acked;

void leat_gcc_acked_init(leat_gcc_acked *acked);
/* The path is over-used: what arrives is what it carries, and the next samples count for more. */
void leat_gcc_acked_expect_change(leat_gcc_acked *acked);
/* A probe arrived at that rate, which the windows do not show yet. The next samples count for more.
 */
void leat_gcc_acked_set(leat_gcc_acked *acked, double rate);

/* leat_gcc_acked_take() for what does not arrive in the present window, ahead of its bytes. */
void leat_gcc_acked_turn(leat_gcc_acked *acked, leat_time arrived, bool app_limited);

/* So many bytes arrived in the present window, the last of them then. */
static inline void leat_gcc_acked_add(leat_gcc_acked *acked, leat_time last, uint64_t size)
{
    acked->last = last > acked->last ? last : acked->last;
    acked->bytes += size;
}

static inline void leat_gcc_acked_take(leat_gcc_acked *acked, leat_time arrived, uint32_t size,
                                       bool app_limited)
{
    if (arrived - acked->began >= acked->length) {
        leat_gcc_acked_turn(acked, arrived, app_limited);
        acked->bytes += size;
    } else {
        leat_gcc_acked_add(acked, arrived, size);
    }
}

/* ---- gcc_rate.c: additive increase, multiplicative decrease ----------------------------------
 */

/* Where over-use was met lately: mean and spread of the acknowledged rate at those times. */
typedef struct leat_gcc_capacity {
    double rate; /* kbit/s; below 0: not known */
    double deviation;
} leat_gcc_capacity;

typedef enum leat_gcc_control_state {
    LEAT_GCC_HOLD,
    LEAT_GCC_INCREASE,
} leat_gcc_control_state;

typedef struct leat_gcc_control {
    double rate; /* bits a second */
    leat_gcc_control_state state;
    leat_gcc_capacity capacity;
    leat_time changed;   /* when the rate last changed by time passing */
    leat_time decreased; /* when it was last decreased; 0: never */
} leat_gcc_control;

void leat_gcc_control_init(leat_gcc_control *control, double rate);
/* acked: bits a second, below 0 while not known. rtt as in leat_estimate. */
void leat_gcc_control_take(leat_gcc_control *control, leat_time now, leat_usage usage, double acked,
                           leat_time rtt);
/* A probe said that the path carries that much. */
void leat_gcc_control_set(leat_gcc_control *control, leat_time now, double rate);

/* ---- gcc_rate.c: loss ------------------------------------------------------------------------
 */

typedef struct leat_gcc_loss {
    double rate; /* what loss allows; `most` while it does not limit */
    double share;
    uint32_t packets, lost; /* not yet judged */
    leat_time judged, decreased;
} leat_gcc_loss;

void leat_gcc_loss_init(leat_gcc_loss *loss, double most);
/* So many packets were told of for the first time, `lost` of them as lost; and `late` ones that
 * were counted as lost before were not. */
static inline void leat_gcc_loss_count(leat_gcc_loss *loss, uint32_t packets, uint32_t lost,
                                       uint32_t late)
{
    loss->packets += packets;
    loss->lost += lost;
    loss->lost -= late < loss->lost ? late : loss->lost;
}
/* After each feedback. target: the rate in use; most: what stands for no limit. */
void leat_gcc_loss_judge(leat_gcc_loss *loss, leat_time now, double target, double most,
                         leat_time rtt);

/* ---- gcc_probe.c -----------------------------------------------------------------------------
 */

typedef enum leat_gcc_probe_state {
    LEAT_GCC_PROBE_NONE,
    LEAT_GCC_PROBE_SENDING, /* the packets that leave now are the cluster's */
    LEAT_GCC_PROBE_WAITING, /* for feedback on them */
} leat_gcc_probe_state;

/* One cluster at a time: packets that leave one after the other at a rate higher than the target.
 * Which packets are its own is told by their departure. */
typedef struct leat_gcc_probe {
    leat_gcc_probe_state state;
    double rate;         /* at which they are to leave */
    double next_rate;    /* of the cluster after it; 0: none */
    uint64_t want_bytes; /* that the cluster has at least */
    uint64_t sent_bytes;
    uint32_t sent_packets;
    leat_time began; /* when it was asked for */
    leat_time first_sent, last_sent;
    uint32_t last_size;
    /* as feedback tells */
    uint64_t got_bytes;
    uint64_t early_bytes;   /* of these, before the first of which is known when it came … */
    uint64_t pending_bytes; /* … and after the last such */
    uint32_t got_packets, got_times;
    bool vague;                             /* an answer below the rate says little of the path */
    uint32_t got_first_size, got_last_size; /* by arrival; by departure */
    leat_time got_first_sent, got_last_sent, got_first_arrived, got_last_arrived;
} leat_gcc_probe;

enum { LEAT_GCC_PROBE_PACKETS = 5 };
#define LEAT_GCC_PROBE_ANSWERED 0.7                     /* of a probe's rate, for a further one */
#define LEAT_GCC_PROBE_TIME     (15 * LEAT_MILLISECOND) /* how long a cluster lasts at its rate */
#define LEAT_GCC_PROBE_PATIENCE LEAT_SECOND             /* for sending it, and for feedback on it */

void leat_gcc_probe_begin(leat_gcc_probe *probe, leat_time now, double rate, double next_rate);
void leat_gcc_probe_on_sent(leat_gcc_probe *probe, leat_time now, uint32_t size);
void leat_gcc_probe_on_results(leat_gcc_probe *probe, const leat_fb_result *results, size_t n);
/* What the cluster shows the path to carry, bits a second; 0: nothing yet, or nothing at all. The
 * cluster is done then. */
double leat_gcc_probe_result(leat_gcc_probe *probe);
/* Gives up a cluster that took too long; true: it did. */
bool leat_gcc_probe_expire(leat_gcc_probe *probe, leat_time now);

/* ---- gcc_window.c: what may leave at once ------------------------------------------------------
 */

/* What was sent past the target lately: a bucket that drains at the even rate. */
typedef struct leat_gcc_bucket {
    double bits;
    leat_time at;
    bool full; /* packets leave at the even rate, until it is half empty */
} leat_gcc_bucket;

/* True: `full` changed. */
bool leat_gcc_bucket_take(leat_gcc_bucket *bucket, leat_time now, uint32_t size, double target);
/* Bits a second at which packets leave. */
double leat_gcc_bucket_pacing(const leat_gcc_bucket *bucket, double target);

/* The path's own round trip, and how long feedback lets wait for itself. */
typedef struct leat_gcc_round {
    leat_time least[2]; /* RTT in the present interval, in the one before; 0: none */
    leat_time turned;   /* when the present one began */
    leat_time interval; /* of feedback */
} leat_gcc_round;

/* rtt: of the newest packet of a feedback, 0: none. waited: since the feedback before. */
void leat_gcc_round_take(leat_gcc_round *round, leat_time now, leat_time rtt, leat_time waited);
/* Bytes that may be in flight: of a round trip without the queue, and what feedback and frames ask
 * for on top. */
double leat_gcc_round_window(const leat_gcc_round *round, double target);

/* ---- gcc.c -----------------------------------------------------------------------------------
 */

typedef struct leat_gcc {
    leat_gcc_groups groups;
    leat_gcc_trend trend;
    leat_gcc_detector detector;
    leat_gcc_acked acked;
    leat_gcc_control control;
    leat_gcc_loss loss;
    leat_gcc_probe probe;
    leat_gcc_bucket bucket;
    leat_gcc_round round;
    leat_time started;       /* the first packet sent; 0: none yet */
    leat_time last_feedback; /* or the first packet after a pause */
    leat_time last_probe;    /* when one began */
    uint32_t tries;          /* at its rate, one after the other */
    leat_time window_began;  /* for app_limited: */
    uint64_t window_bytes;
    double calm_rate;    /* that delay allowed before the present over-use */
    double sent_rate;    /* in the last window; 0: none is over yet */
    uint64_t came;       /* bytes that arrived, of all */
    uint64_t unanswered; /* bytes sent since the last feedback */
} leat_gcc;

#endif
