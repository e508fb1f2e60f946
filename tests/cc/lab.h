/* tests/cc/lab.h: congestion control experiments: real connections over a bottleneck, in virtual
 * time.
 *
 *     client --[ rate, queue, half of the RTT, random loss ]--> server
 *            <--------------[ half of the RTT ]---------------
 *
 * Each flow is a connection that sends on one stream for as long as the experiment runs; all share
 * the bottleneck. Everything is the real thing (TLS, packet protection, streams, recovery); only
 * clock and network are not. The same experiment gives the same numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_LAB_H
#define LEAT_TESTS_CC_LAB_H

#include <leat/quic.h>

#define LEAT_LAB_FLOWS 4

/* What the media flow's estimator hears from. */
typedef enum leat_lab_feedback {
    LEAT_LAB_TWCC, /* RTP over UDP, feedback each 50 ms */
    LEAT_LAB_CCFB, /* the same, RFC 8888 */
    LEAT_LAB_QUIC, /* RTP over QUIC, whose acknowledgements it is */
    LEAT_LAB_FEEDBACKS,
} leat_lab_feedback;

typedef struct leat_lab_flow {
    leat_congestion congestion;
    leat_time start;
} leat_lab_flow;

/* What a flow did since the sample before. */
typedef struct leat_lab_flow_sample {
    double goodput;    /* stream bits a second that arrived */
    leat_time rtt;     /* smoothed */
    uint64_t cwnd;     /* bytes */
    uint64_t lost;     /* packets declared lost */
    const char *state; /* of the controller */
} leat_lab_flow_sample;

/* What the media flow did since the sample before (media_flow.h, roq_flow.h). */
typedef struct leat_lab_media_sample {
    double goodput; /* bits a second that arrived, padding too */
    double target;  /* bits a second */
    uint64_t lost;  /* packets, as feedback tells */
} leat_lab_media_sample;

typedef struct leat_lab_sample {
    leat_time at; /* since the beginning */
    double queue; /* bytes in the bottleneck's queue */
    leat_lab_flow_sample flow[LEAT_LAB_FLOWS];
    leat_lab_media_sample media;
} leat_lab_sample;

/* One end stands still, as a process that is not scheduled: what comes for it waits. */
typedef struct leat_lab_stall {
    leat_time at;    /* for the first time */
    leat_time last;  /* so long; 0: never */
    leat_time every; /* from one to the next; 0: there is one */
    int end;         /* 0: the senders, 1: the receivers */
} leat_lab_stall;

typedef struct leat_lab {
    uint64_t rate;    /* bits a second of UDP payload */
    leat_time rtt;    /* without queue */
    double queue_bdp; /* the queue in rate * rtt */
    uint32_t loss;    /* parts of a million, at random */
    leat_time jitter; /* ACKs come up to so much later, at random */
    leat_lab_flow flow[LEAT_LAB_FLOWS];
    size_t flows;
    leat_time way_jitter; /* what is sent comes up to so much later, at random */
    bool media;           /* a media flow too, from the beginning */
    leat_lab_feedback media_feedback;
    uint64_t media_most;   /* bits a second that it has to send; 0: as much as it may */
    uint64_t media_deaf;   /* bits a second that it makes whatever the estimate says; 0: none */
    bool media_datagrams;  /* over QUIC in datagrams, otherwise a stream a frame */
    uint32_t media_spread; /* percent by which its frames are larger or smaller, at most: 25 */
    leat_time change_at;   /* the bottleneck gets another rate … */
    uint64_t change_rate;  /* … this; 0: it does not */
    leat_time warm;        /* what comes before does not count in the result */
    leat_time end;
    leat_time interval; /* of samples */
    leat_time turn;     /* nothing happens in between: what arrives waits, as for a busy host */
    leat_lab_stall stall;
    uint64_t seed;
    void (*sample)(void *user, const leat_lab_sample *sample); /* or NULL */
    void *user;
} leat_lab;

typedef struct leat_lab_flow_result {
    double goodput; /* bits a second, from warm (or its start) to the end */
    uint64_t sent, lost, spurious;
} leat_lab_flow_result;

typedef struct leat_lab_result {
    leat_lab_flow_result flow[LEAT_LAB_FLOWS];
    double share;      /* goodput of all, of the rate */
    double queue;      /* mean bytes in the queue, after warm */
    double queue_time; /* the same in seconds at the rate */
    uint64_t dropped;  /* by the queue, from the beginning */
    uint64_t datagrams;
    double burst;            /* datagrams in a batch of the client's, on average, after warm */
    size_t queue_limit;      /* bytes */
    double media_goodput;    /* bits a second */
    double media_target;     /* at the end */
    leat_time media_delay95; /* in the queue, of 95 of 100 of its datagrams, after warm */
    uint64_t media_lost;
} leat_lab_result;

/* 100 Mbit/s, 40 ms, a queue of one BDP, one flow, 30 s of which 10 are warm-up. */
void leat_lab_init(leat_lab *lab);

/* Runs it. Ends the program with a message when something fails. */
void leat_lab_run(const leat_lab *lab, leat_lab_result *result);

#endif
