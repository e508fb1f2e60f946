/* roq/rate.c: a bandwidth estimator at the connection's congestion-control door.
 *
 * What QUIC knows of its packets is turned into the results that the estimator takes, whatever it
 * is; what the estimator decides becomes the connection's window and pacing. The connection has no
 * controller of its own meanwhile. What a probe lacks when the media are too little for it, the
 * connection pads: QUIC's PADDING, of which the application and the other side's know nothing.
 *
 * Results go to the estimator by rising numbers, as it wants them: what an ACK shows to be lost has
 * lower numbers than what it acknowledges, and is told after it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/estimate.h>

#include "roq/roq.h"

enum { BATCH = 64 };

/* Tells the connection, and the application if it matters to it. */
static void apply(leat_roq *roq)
{
    leat_roq_rate *rate = &roq->rate;
    const leat_estimate *e = rate->estimate;
    bool changed = e->target_rate != rate->target;

    if (e->window != rate->window || e->pacing_rate != rate->pacing) {
        rate->window = e->window;
        rate->pacing = e->pacing_rate;
        (void)leat_conn_set_rate(roq->conn, e->window, e->pacing_rate / 8);
    }
    if (leat_estimate_padding(e) != rate->padding) {
        rate->padding = leat_estimate_padding(e);
        (void)leat_conn_set_padding(roq->conn, (size_t)rate->padding);
    }
    leat_timer_set(&rate->timer, leat_estimate_deadline(e));
    rate->target = e->target_rate;
    if (changed && roq->events->estimated) {
        roq->events->estimated(roq, rate->target, roq->user);
    }
}

/* Nearly in order: an insertion sort has little to do. */
static void sort(leat_fb_result *results, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        leat_fb_result r = results[i];
        size_t at = i;

        for (; at > 0 && results[at - 1].seq > r.seq; at--) {
            results[at] = results[at - 1];
        }
        results[at] = r;
    }
}

static void flush(leat_roq *roq, leat_time now, leat_fb_result *results, size_t *n)
{
    if (*n > 0) {
        sort(results, *n);
        leat_estimate_on_results(roq->rate.estimate, now, results, *n);
        *n = 0;
    }
}

void leat_roq_rate_news(leat_roq *roq, const leat_packet_news *news, size_t count)
{
    leat_fb_result results[BATCH];
    leat_time now = 0;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (news[i].fate == LEAT_PACKET_SENT) {
            flush(roq, now, results, &n);
            leat_estimate_on_sent(roq->rate.estimate, news[i].sent, news[i].size);
            continue;
        }
        if (n == BATCH || (n > 0 && news[i].at != now)) {
            flush(roq, now, results, &n);
        }
        now = news[i].at;
        results[n++] = (leat_fb_result){
            .seq = news[i].number,
            .sent = news[i].sent,
            .arrived = news[i].arrived,
            .size = news[i].size,
            .state = news[i].fate == LEAT_PACKET_ACKED ? LEAT_FB_ARRIVED : LEAT_FB_LOST,
        };
    }
    flush(roq, now, results, &n);
    apply(roq);
}

void leat_roq_rate_timer(leat_timer *timer, leat_time now)
{
    leat_roq *roq = LEAT_ROQ_OF(timer, leat_roq, rate.timer);

    leat_estimate_on_time(roq->rate.estimate, now);
    apply(roq);
}

void leat_roq_set_estimate(leat_roq *roq, leat_estimate *estimate)
{
    bool had = roq->rate.estimate != NULL;

    leat_timer_unset(&roq->rate.timer);
    roq->rate.estimate = estimate;
    roq->rate.window = roq->rate.pacing = roq->rate.target = roq->rate.padding = 0;
    (void)leat_conn_set_padding(roq->conn, 0);
    if (estimate) {
        (void)leat_conn_set_rate(roq->conn, estimate->window, estimate->pacing_rate / 8);
        roq->rate.window = estimate->window;
        roq->rate.pacing = estimate->pacing_rate;
        leat_timer_set(&roq->rate.timer, leat_estimate_deadline(estimate));
    } else if (had) {
        (void)leat_conn_set_rate(roq->conn, 0, 0);
    }
    leat_roq_listen(roq);
}
