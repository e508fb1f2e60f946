/* tests/support/udplink/faults.c: what one direction does to its datagrams.
 *
 * In this order: darkness and numbers, then loss, corruption and marks by chance, then the queue in
 * front of the rate, then the delay. Loss and corruption share the limit of how many are hit in a
 * row. The queue is a ring of the times at which those that wait leave: a new one leaves when the
 * rate has let the last through.
 *
 * SPDX-License-Identifier: MIT
 */
#include "udplink.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_QUEUE = 100, DEFAULT_REORDER_BY = 10 };

/* ---- chance: xoshiro256**, seeded by splitmix64
 * --------------------------------------------------- */

static uint64_t rotate(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static uint64_t chance(link_direction *direction)
{
    uint64_t *s = direction->random;
    uint64_t out = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return out;
}

static void seed_chance(link_direction *direction, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        direction->random[i] = z ^ z >> 31;
    }
}

/* Always draws, so that a fault that is off does not change what the others hit. */
static bool happens(link_direction *direction, double percent)
{
    double drawn = (double)(chance(direction) >> 11) / (double)(1ull << 53);

    return drawn * 100 < percent;
}

/* ---- fates -------------------------------------------------------------------------------------
 */

static leat_time milliseconds(double ms)
{
    return (leat_time)llround(ms * (double)LEAT_MILLISECOND);
}

bool link_direction_init(link_direction *direction, const link_faults *faults, uint64_t seed)
{
    *direction = (link_direction){.faults = *faults, .first = LEAT_TIME_NEVER};
    seed_chance(direction, seed);
    if (direction->faults.queue <= 0) {
        direction->faults.queue = DEFAULT_QUEUE;
    }
    if (direction->faults.queue > LINK_QUEUE_MOST) {
        direction->faults.queue = LINK_QUEUE_MOST;
    }
    if (direction->faults.reorder_by <= 0) {
        direction->faults.reorder_by = DEFAULT_REORDER_BY;
    }
    direction->departure = calloc((size_t)direction->faults.queue, sizeof(leat_time));
    return direction->departure != NULL;
}

static bool is_dark(const link_direction *direction, leat_time now)
{
    leat_time light = milliseconds(direction->faults.dark_after);
    leat_time dark = milliseconds(direction->faults.dark_for);

    return dark && (now - direction->first) % (light + dark) >= light;
}

static bool is_numbered(const link_direction *direction)
{
    double number = (double)direction->counts.received;

    return direction->faults.first_lost > 0 && number >= direction->faults.first_lost &&
           number <= direction->faults.last_lost;
}

/* The datagram's place in the queue: false when it is full, otherwise when it has left. */
static bool pass_rate(link_direction *direction, leat_time now, size_t len, leat_time *out)
{
    size_t cap = (size_t)direction->faults.queue;
    leat_time start = direction->idle_at > now ? direction->idle_at : now;

    *out = now;
    if (direction->faults.rate <= 0) {
        return true;
    }
    while (direction->queue_count && direction->departure[direction->queue_head] <= now) {
        direction->queue_head = (direction->queue_head + 1) % cap;
        direction->queue_count--;
    }
    if (direction->queue_count == cap) {
        return false;
    }
    direction->idle_at = start + (leat_time)((double)len * 8 / (direction->faults.rate * 1000) *
                                             (double)LEAT_SECOND);
    direction->departure[(direction->queue_head + direction->queue_count++) % cap] =
        direction->idle_at;
    *out = direction->idle_at;
    return true;
}

/* Lost or corrupted by chance, within the limit of a row. */
static bool hits(link_direction *direction, double percent)
{
    bool hit = happens(direction, percent) &&
               (direction->faults.burst <= 0 || direction->in_a_row < direction->faults.burst);

    direction->in_a_row += hit;
    return hit;
}

link_fate link_decide(link_direction *direction, leat_time now, size_t len, uint8_t ecn)
{
    const link_faults *faults = &direction->faults;
    link_fate fate = {.copies = 1};
    unsigned before = direction->in_a_row;
    bool lost = hits(direction, faults->loss), late, twice;

    direction->counts.received++;
    if (direction->first == LEAT_TIME_NEVER) {
        direction->first = now;
    }
    fate.corrupt = hits(direction, faults->corrupt) && len > 0 && !lost;
    fate.corrupt_at = len ? chance(direction) % len : 0;
    fate.corrupt_with = (uint8_t)(1 + chance(direction) % 255);
    twice = happens(direction, faults->duplicate);
    late = happens(direction, faults->reorder);
    fate.mark = happens(direction, faults->ce) && (ecn == 1 || ecn == 2);
    if (direction->in_a_row == before) {
        direction->in_a_row = 0;
    }
    if (is_dark(direction, now)) {
        direction->counts.dark++;
        fate.copies = 0;
    } else if (lost || is_numbered(direction)) {
        direction->counts.lost++;
        fate.copies = 0;
    } else if (!pass_rate(direction, now, len, &fate.at[0])) {
        direction->counts.full++;
        fate.copies = 0;
    }
    if (fate.copies == 0) {
        return fate;
    }
    fate.at[0] += milliseconds(faults->delay);
    fate.at[1] = fate.at[0];
    if (late) {
        fate.at[0] += milliseconds(faults->reorder_by);
    }
    fate.copies += twice;
    direction->counts.reordered += late;
    direction->counts.duplicated += twice;
    direction->counts.corrupted += fate.corrupt;
    direction->counts.marked += fate.mark;
    return fate;
}
