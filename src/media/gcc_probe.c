/* media/gcc_probe.c: clusters of packets that ask the path for more.
 *
 * A cluster is what leaves from the moment it is asked for until it has five packets and 15 ms of
 * its rate, and the bytes of five packets of the usual size. Feedback on four fifths of it, packets
 * and bytes, gives two rates: at which it left and at which it came. What came cannot be more than
 * the path carries, and what took longer to come than to leave filled a queue: then a little less
 * than that is safe.
 *
 * QUIC's acknowledgements say of one packet in several when it came. The others of them count, for
 * they came between that one and the one before it, of which it is known as well.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/gcc.h"

static const double PACKET_BYTES = 1200; /* what padding makes a packet of */
static const double ENOUGH = 0.8;        /* of packets and bytes */
/* Departures took less than this of what arrivals did: the path's limit. Of rates the first and
 * last size are part. */
static const double SLOWER = 0.95;
static const double SAFE = 0.95;     /* of that limit */
static const double FASTER_MOST = 2; /* arrivals faster than departures by more: no measurement */
static const double BURST =
    2; /* left faster than asked for by more: asks for no more all the same */

enum { TIMES = 4 }; /* of fewer arrivals, jitter may be all that they tell of */

#define INTERVAL_MOST LEAT_SECOND

void leat_gcc_probe_begin(leat_gcc_probe *p, leat_time now, double rate, double next_rate)
{
    double bytes = rate / 8 * (double)LEAT_GCC_PROBE_TIME / (double)LEAT_SECOND;
    double least = LEAT_GCC_PROBE_PACKETS * PACKET_BYTES;

    *p = (leat_gcc_probe){.state = LEAT_GCC_PROBE_SENDING,
                          .rate = rate,
                          .next_rate = next_rate,
                          .want_bytes = (uint64_t)(bytes > least ? bytes : least) + 1,
                          .began = now};
}

void leat_gcc_probe_on_sent(leat_gcc_probe *p, leat_time now, uint32_t size)
{
    if (p->state != LEAT_GCC_PROBE_SENDING) {
        return;
    }
    if (p->sent_packets == 0) {
        p->first_sent = now;
    }
    p->last_sent = now;
    p->sent_packets++;
    p->sent_bytes += size;
    if (p->sent_bytes >= p->want_bytes && p->sent_packets >= LEAT_GCC_PROBE_PACKETS) {
        p->state = LEAT_GCC_PROBE_WAITING;
        p->began = now;
    }
}

/* When it came: the earliest and the latest are kept. */
static void take_time(leat_gcc_probe *p, const leat_fb_result *r)
{
    if (p->got_times == 0 || r->arrived < p->got_first_arrived) {
        p->got_first_arrived = r->arrived;
        p->got_first_size = r->size;
    }
    if (p->got_times == 0 || r->arrived > p->got_last_arrived) {
        p->got_last_arrived = r->arrived;
    }
    p->got_times++;
    p->pending_bytes = 0;
}

/* Which of those of which it is known when they came left first and last. */
static void take_departure(leat_gcc_probe *p, const leat_fb_result *r)
{
    if (p->got_times == 0 || r->sent < p->got_first_sent) {
        p->got_first_sent = r->sent;
    }
    if (p->got_times == 0 || r->sent >= p->got_last_sent) {
        p->got_last_sent = r->sent;
        p->got_last_size = r->size;
    }
}

static void take_result(leat_gcc_probe *p, const leat_fb_result *r)
{
    if (r->state != LEAT_FB_ARRIVED || r->sent < p->first_sent || r->sent > p->last_sent) {
        return;
    }
    if (r->arrived != LEAT_TIME_NEVER) {
        take_departure(p, r);
        take_time(p, r);
    } else if (p->got_times == 0) {
        p->early_bytes += r->size;
    } else {
        p->pending_bytes += r->size;
    }
    p->got_packets++;
    p->got_bytes += r->size;
}

void leat_gcc_probe_on_results(leat_gcc_probe *p, const leat_fb_result *results, size_t n)
{
    if (p->state == LEAT_GCC_PROBE_NONE || p->sent_packets == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        take_result(p, &results[i]);
    }
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Bits a second. */
static double rate_of(double bytes, leat_time time)
{
    return bytes * 8 * (double)LEAT_SECOND / (double)(time > 0 ? time : 1);
}

double leat_gcc_probe_result(leat_gcc_probe *p)
{
    leat_time left, came;
    double timed, mean, sent, got, answer;
    bool stretched;

    if (p->state != LEAT_GCC_PROBE_WAITING ||
        (double)p->got_bytes < ENOUGH * (double)p->sent_bytes ||
        p->got_packets < ENOUGH * p->sent_packets) {
        return 0;
    }
    p->state = LEAT_GCC_PROBE_NONE;
    p->vague = true;
    left = p->got_last_sent - p->got_first_sent;
    came = p->got_last_arrived - p->got_first_arrived;
    if (p->got_times < 2 || came == 0 || left > INTERVAL_MOST || came > INTERVAL_MOST) {
        return 0;
    }
    /* Both of the same packets. The first to come took no time yet. What the first or the last to
     * leave took is up to who sends: half of both. */
    timed = (double)(p->got_bytes - p->early_bytes - p->pending_bytes);
    mean = timed - (p->got_first_size + p->got_last_size) / 2.0;
    sent = rate_of(mean, left);
    got = rate_of(timed - p->got_first_size, came);
    if (got > FASTER_MOST * sent) {
        return 0;
    }
    stretched = SLOWER * (double)came > (double)left;
    answer = lesser(sent, stretched ? SAFE * got : rate_of(mean, came));
    p->vague = sent <= LEAT_GCC_PROBE_ANSWERED * p->rate || (stretched && p->got_times < TIMES);
    return sent > BURST * p->rate && answer > p->rate ? p->rate : answer;
}

bool leat_gcc_probe_expire(leat_gcc_probe *p, leat_time now)
{
    if (p->state == LEAT_GCC_PROBE_NONE || now - p->began < LEAT_GCC_PROBE_PATIENCE) {
        return false;
    }
    p->state = LEAT_GCC_PROBE_NONE;
    return true;
}
