/* leat/estimate.h: how much a path carries: the rate that real-time media may send at, worked out
 * from what became of each packet (leat_fb_result, of leat/feedback.h).
 *
 * An estimator is a table of functions over a leat_estimate, which lies inside the caller's memory;
 * nothing is allocated. It decides three numbers, target_rate, pacing_rate and window, which the
 * sender reads as plain fields. It knows what these calls tell it:
 *
 *  1. leat_estimate_init().
 *  2. leat_estimate_on_sent() for each packet that goes out, media, retransmission or padding.
 *  3. leat_estimate_on_results() for each feedback, with all its results (leat_twcc_results(),
 *     leat_ccfb_results(), or made of QUIC's acknowledgements, as below), then read the fields.
 *  4. leat_estimate_on_time() when leat_estimate_deadline() is reached, then read the fields.
 *
 * Send at pacing_rate (leat/pace.h does; over QUIC, leat_conn_set_rate(conn, e->window,
 * e->pacing_rate / 8)), with no more than `window` bytes in flight, and give target_rate to the
 * encoders, all of them together. What they make past it is to wait in the sender, and to be
 * dropped there when it is late: the path's queue stays short then, too. When the window is full
 * and no feedback comes, all that it waits for may be lost: let a packet out now and then. While
 * the estimator probes, pacing_rate is above target_rate for some packets; with media alone to send
 * it makes do with that. A sender that has nothing to send meanwhile may send padding,
 * leat_estimate_padding() bytes of it: then the path's rate is found within a second. Without
 * padding the estimate grows by 8 % a second, bounded by what is sent; and once the application
 * sends less than half of it, no more is asked for.
 *
 * QUIC's own acknowledgements as results: `seq` rising with each packet, `sent` and `size` as when
 * it went out, LEAT_FB_ARRIVED or LEAT_FB_LOST, in the order of seq. `arrived`: when the ACK came
 * less its delay for the largest number that an ACK acknowledges, LEAT_TIME_NEVER for the others of
 * it: their time is not known, and they count for rate, loss and probes alone. The connection pads
 * probes (leat_conn_set_padding(conn, leat_estimate_padding(e))); leat_roq_set_estimate() does all
 * this.
 *
 * Rates are bits a second here, sizes bytes, times nanoseconds. One thread at a time uses an
 * object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ESTIMATE_H
#define LEAT_ESTIMATE_H

#include <leat/feedback.h>

LEAT_BEGIN_DECLS

enum { LEAT_ESTIMATE_STATE = 2048 }; /* bytes of an estimator's own */

typedef struct leat_estimate leat_estimate;

/* All zero is not a set of settings: begin with leat_estimate_settings_init(). */
typedef struct leat_estimate_settings {
    uint64_t start_rate; /* before anything is known: 300 kbit/s */
    uint64_t min_rate;   /* the target is never below: 30 kbit/s */
    uint64_t max_rate;   /* never above: what the encoders can make of it; 100 Mbit/s */
    bool probe;          /* looks for more by sending some packets faster: true */
} leat_estimate_settings;

LEAT_API void leat_estimate_settings_init(leat_estimate_settings *settings);

/* An estimator: a table, so that another may stand in its place, the application's own too. Every
 * function but init may be NULL. Each sets what it changes of target_rate, pacing_rate, window and
 * deadline; leat_estimate_on_…() then hold them to the settings' bounds. */
typedef struct leat_estimate_ops {
    const char *name;
    size_t state_size; /* at most LEAT_ESTIMATE_STATE */
    void (*init)(leat_estimate *e);
    void (*on_sent)(leat_estimate *e, leat_time now, uint32_t size);
    void (*on_results)(leat_estimate *e, leat_time now, const leat_fb_result *results, size_t n);
    void (*on_time)(leat_estimate *e, leat_time now);
} leat_estimate_ops;

/* Google congestion control (draft-ietf-rmcat-gcc-02), as it is deployed: the default. */
LEAT_API const leat_estimate_ops *leat_estimate_gcc(void);

/* What delay says of the path. X(NAME, name) */
#define LEAT_USAGE_LIST(X)                                                                         \
    X(NORMAL, "normal")                                                                            \
    X(OVER, "over")   /* a queue grows */                                                          \
    X(UNDER, "under") /* a queue drains */

#define LEAT_USAGE_ENUM(name, text) LEAT_USAGE_##name,
typedef enum leat_usage { LEAT_USAGE_LIST(LEAT_USAGE_ENUM) LEAT_USAGES } leat_usage;
#undef LEAT_USAGE_ENUM

struct leat_estimate {
    /* the decisions */
    uint64_t target_rate; /* for all that is sent: media with their headers, retransmissions */
    uint64_t pacing_rate; /* at which packets leave; read it after each that was sent */
    uint64_t window;      /* bytes that may be in flight: a bound, not a target */
    /* what they are made of, to be shown */
    uint64_t acked_rate; /* what arrived, over some 500 ms; 0: not known yet */
    uint64_t delay_rate; /* what delay alone would allow */
    uint64_t loss_rate;  /* what loss alone would allow */
    double loss;         /* the share lost lately, 0 to 1 */
    double trend;        /* how delay grows, as the over-use detector sees it, in milliseconds */
    double threshold;    /* past which that counts as over-use */
    leat_time rtt;       /* from a packet's departure to feedback on it, the last; 0: not known */
    leat_usage usage;
    bool probing;
    bool app_limited; /* the application sends less than it may */
    /* the library's */
    uint64_t padding; /* see leat_estimate_padding() */
    leat_time deadline;
    const leat_estimate_ops *ops;
    void *user; /* an estimator's of the application */
    leat_estimate_settings settings;
    union {
        uint64_t align;
        void *align_pointer;
        uint8_t bytes[LEAT_ESTIMATE_STATE];
    } state;
};

/* ops NULL: leat_estimate_gcc(). settings NULL: the defaults. LEAT_ERR_INVALID: unless min_rate <=
 * start_rate <= max_rate, min_rate >= LEAT_ESTIMATE_MIN_RATE_MIN, max_rate <=
 * LEAT_ESTIMATE_MAX_RATE_MAX, or the table is wrong. The estimate may be copied and moved; there is
 * nothing to free. */
LEAT_API leat_err leat_estimate_init(leat_estimate *e, const leat_estimate_ops *ops,
                                     const leat_estimate_settings *settings, void *user);

/* A packet of `size` bytes went out at `now`: as in the history, if there is one. */
LEAT_API void leat_estimate_on_sent(leat_estimate *e, leat_time now, uint32_t size);

/* A feedback came at `now`: its results, each packet's at most once as lost and once as arrived, by
 * rising numbers but for those that are late. n may be 0. */
LEAT_API void leat_estimate_on_results(leat_estimate *e, leat_time now,
                                       const leat_fb_result *results, size_t n);

/* When leat_estimate_on_time() wants to be called; LEAT_TIME_NEVER. Calling it early does nothing.
 */
static inline leat_time leat_estimate_deadline(const leat_estimate *e)
{
    return e->deadline;
}
LEAT_API void leat_estimate_on_time(leat_estimate *e, leat_time now);

/* Bytes of padding that would help now, if no media wait: what the probe in progress still lacks.
 * 0: none. */
static inline uint64_t leat_estimate_padding(const leat_estimate *e)
{
    return e->padding;
}

/* Other bounds from now on, as when streams begin or end. LEAT_ERR_INVALID as above (start_rate
 * does not matter any more). They hold from the next decision on. */
LEAT_API leat_err leat_estimate_set_bounds(leat_estimate *e, uint64_t min_rate, uint64_t max_rate);

/* "normal", … */
LEAT_API const char *leat_usage_name(leat_usage usage);

/* An estimator's own memory: zero when init is called. */
static inline void *leat_estimate_state(leat_estimate *e)
{
    return e->state.bytes;
}

LEAT_END_DECLS

#endif
