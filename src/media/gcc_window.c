/* media/gcc_window.c: how fast packets leave, and how many may be in flight.
 *
 * A frame larger than others leaves half as fast again as the target, so that it does not wait long
 * in the sender. That is for frames, not for an application that makes more than it may: who has
 * sent 30 ms of the target too much goes on at little more than the target, and what waits then
 * waits in the sender, where it can be dropped. The path's queue holds no more than that for it.
 *
 * The window is what the target fills in a round trip, the least one of the last ten to twenty
 * seconds: a round trip that holds the flow's own queue would let it grow. To it come the interval
 * of feedback, as it is met, and a bound on jitter and frames.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/gcc.h"

#include "base/time.h"

static const double FRAME_PACING = 1.5; /* times the target */
/* Times the target, for as long as more waits. Above one, so that an encoder that makes a little
 * more than it was told, for headers or by chance, does not fill the sender's queue for good. */
static const double EVEN_PACING = 1.1;

#define BUCKET       (30 * LEAT_MILLISECOND) /* of the target */
#define ROUND_TURN   (10 * LEAT_SECOND)
#define RTT_GUESS    (500 * LEAT_MILLISECOND)
#define INTERVAL_MIN (50 * LEAT_MILLISECOND)
#define INTERVAL_MAX (250 * LEAT_MILLISECOND) /* leat_fb_interval_for_rate() has no longer one */
#define EXTRA        (100 * LEAT_MILLISECOND)

enum { INTERVAL_FADE = 16 }; /* a longer one is forgotten over so many feedbacks */

static double bits_in(double rate, leat_time time)
{
    return rate * (double)time / (double)LEAT_SECOND;
}

bool leat_gcc_bucket_take(leat_gcc_bucket *b, leat_time now, uint32_t size, double target)
{
    double drained = bits_in(EVEN_PACING * target, leat_time_since(now, b->at));
    bool was = b->full;

    b->bits = (b->bits > drained ? b->bits - drained : 0) + (double)size * 8;
    b->at = leat_time_max(b->at, now);
    b->full = b->bits > bits_in(target, b->full ? BUCKET / 2 : BUCKET);
    return b->full != was;
}

double leat_gcc_bucket_pacing(const leat_gcc_bucket *b, double target)
{
    return target * (b->full ? EVEN_PACING : FRAME_PACING);
}

void leat_gcc_round_take(leat_gcc_round *r, leat_time now, leat_time rtt, leat_time waited)
{
    waited = leat_time_min(waited, INTERVAL_MAX);
    if (waited > r->interval) {
        r->interval = waited;
    } else {
        r->interval -= (r->interval - waited) / INTERVAL_FADE;
    }
    if (rtt == 0) {
        return;
    }
    if (r->least[0] != 0 && now - r->turned >= ROUND_TURN) {
        r->least[1] = r->least[0];
        r->least[0] = 0;
    }
    if (r->least[0] == 0) {
        r->turned = now;
        r->least[0] = rtt;
    }
    r->least[0] = leat_time_min(r->least[0], rtt);
}

static leat_time least_rtt(const leat_gcc_round *r)
{
    if (r->least[0] == 0) {
        return RTT_GUESS;
    }
    return r->least[1] ? leat_time_min(r->least[0], r->least[1]) : r->least[0];
}

double leat_gcc_round_window(const leat_gcc_round *r, double target)
{
    return bits_in(target, least_rtt(r) + leat_time_max(r->interval, INTERVAL_MIN) + EXTRA) / 8;
}
