/* media/jitter.c: order and pace.
 *
 * Order: a ring by number. Those in [next, end) may be there; `head` is the first that is. What is
 * below `next` has gone out or been given up.
 *
 * Pace: a packet's transit is its arrival less its timestamp, both in ns since the packet with
 * which the pace began. The fastest transit of the last period and this one stands for a network
 * without queues; a packet is due at its timestamp plus that plus the delay. By how much the
 * slowest packets were slower is the spread. The delay rises to the spread at once, and sinks
 * towards it by an eighth each period. All of it in bounds: a transit far beyond delay_max, either
 * way, is no late or early packet but a leap of the timestamps, and begins the pace anew. So does a
 * timestamp decades from where the pace began, to which only small leaps without end lead.
 *
 * Bounds: too many packets, or bytes: the oldest are dropped. Numbers far off are not believed
 * until a row of them follow each other; then everything begins anew.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/jitter.h>
#include <leat/limits.h>

#include "base/assert.h"
#include "base/time.h"
#include "media/restart.h"
#include "mem/mem.h"

enum {
    ORIGIN = 1 << 20,
    SINK = 8, /* the delay sinks by one part in so many, a period */
};

#define PERIOD      (5 * LEAT_SECOND)
#define LEAP        ((int64_t)(5 * LEAT_SECOND)) /* beyond delay_max: not lateness */
#define FIRST_STAMP ((uint64_t)1 << 40)          /* of unwrapped timestamps */
#define FAR         ((int64_t)1 << 30)           /* seconds: their ns leave room for sums */

void leat_jitter_settings_init(leat_jitter_settings *s, uint32_t clock_rate)
{
    *s = (leat_jitter_settings){
        .clock_rate = clock_rate,
        .packets = LEAT_JITTER_PACKETS_DEFAULT,
        .bytes = LEAT_JITTER_BYTES_DEFAULT,
        .delay_min = 20 * LEAT_MILLISECOND,
        .delay_max = 500 * LEAT_MILLISECOND,
    };
}

leat_err leat_jitter_init(leat_jitter *j, leat_mem *mem, const leat_jitter_settings *s)
{
    *j = (leat_jitter){.set = *s, .mem = mem, .delay = s->delay_min};
    if (s->clock_rate == 0 || s->packets < LEAT_JITTER_PACKETS_MIN ||
        s->packets > LEAT_JITTER_PACKETS_MAX || (s->packets & (s->packets - 1)) != 0 ||
        s->bytes < LEAT_JITTER_BYTES_MIN || s->bytes > LEAT_JITTER_BYTES_MAX ||
        s->delay_min > s->delay_max || s->delay_max > 3600 * LEAT_SECOND) {
        return LEAT_ERR_INVALID;
    }
    j->mask = s->packets - 1;
    j->ring = (leat_jitter_packet *)leat_mem_take_zeroed(mem, s->packets * sizeof *j->ring);
    return j->ring ? LEAT_OK : LEAT_ERR_NOMEM;
}

static leat_jitter_packet *slot_of(const leat_jitter *j, uint64_t seq)
{
    return &j->ring[seq & j->mask];
}

static bool is_there(const leat_jitter *j, uint64_t seq)
{
    return slot_of(j, seq)->buf.len != 0;
}

/* Takes the head out of the ring; the numbers before it are passed. */
static leat_jitter_packet take_head(leat_jitter *j)
{
    leat_jitter_packet *slot = slot_of(j, j->head);
    leat_jitter_packet p = *slot;

    LEAT_DCHECK(j->count > 0);
    p.gap = j->head != j->next;
    j->stats.missing += j->head - j->next;
    slot->buf = (leat_buf){.data = NULL};
    j->count--;
    j->bytes -= p.buf.len;
    j->next = ++j->head;
    while (j->count > 0 && !is_there(j, j->head)) {
        j->head++;
    }
    return p;
}

static void drop_head(leat_jitter *j)
{
    leat_jitter_packet p = take_head(j);

    leat_buf_release(&p.buf);
    j->popped = true;
    j->stats.overflowed++;
}

void leat_jitter_free(leat_jitter *j)
{
    if (j->ring) {
        while (j->count > 0) {
            drop_head(j);
        }
        leat_mem_give(j->mem, j->ring, (j->mask + 1) * sizeof *j->ring);
        j->ring = NULL;
    }
}

/* ---- pace -------------------------------------------------------------------------------------
 */

/* Whether a timestamp is too far from the pace's first to be reckoned with. */
static bool is_far(const leat_jitter *j, uint64_t timestamp)
{
    int64_t seconds = (int64_t)(timestamp - j->pace_stamp) / (int64_t)j->set.clock_rate;

    return seconds > FAR || seconds < -FAR;
}

/* A timestamp that is not far, in ns since the pace began; below 0 before that. */
static int64_t stamp_time(const leat_jitter *j, uint64_t timestamp)
{
    int64_t units = (int64_t)(timestamp - j->pace_stamp), rate = j->set.clock_rate;

    return units / rate * (int64_t)LEAT_SECOND + units % rate * (int64_t)LEAT_SECOND / rate;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The packet with this timestamp, come now, is what others are measured by: its transit is 0. */
static void begin_pace(leat_jitter *j, uint64_t timestamp, leat_time now)
{
    j->pace_from = j->end;
    j->pace_stamp = timestamp;
    j->pace_began = now;
    j->fastest[0] = j->fastest[1] = 0;
    j->spread[0] = j->spread[1] = 0;
    j->period_end = leat_time_add(now, PERIOD);
}

static void end_period(leat_jitter *j, int64_t transit, leat_time now)
{
    int64_t aim = most(most(j->spread[0], j->spread[1]), (int64_t)j->set.delay_min);
    int64_t delay = (int64_t)j->delay;

    if (delay > aim) {
        j->delay = (leat_time)(delay - (delay - aim) / SINK);
    }
    j->fastest[1] = j->fastest[0];
    j->fastest[0] = transit;
    j->spread[1] = j->spread[0];
    j->spread[0] = 0;
    j->period_end = leat_time_add(now, PERIOD);
}

static void keep_pace(leat_jitter *j, uint64_t timestamp, leat_time now)
{
    int64_t transit, late, leap = (int64_t)j->set.delay_max + LEAP;
    bool far = is_far(j, timestamp);

    transit = far ? 0 : (int64_t)(now - j->pace_began) - stamp_time(j, timestamp);
    late = transit - least(j->fastest[0], j->fastest[1]);
    if (far || late > leap || late < -leap) {
        j->stats.restarts++;
        begin_pace(j, timestamp, now);
        return;
    }
    if (now >= j->period_end) {
        end_period(j, transit, now);
    }
    j->fastest[0] = least(j->fastest[0], transit);
    j->spread[0] = most(j->spread[0], late);
    if (late > (int64_t)j->delay) {
        j->delay = leat_time_min((leat_time)late, j->set.delay_max);
    }
}

/* When a packet is to be played. One from before a leap has no place on the new scale: at once. */
static leat_time due(const leat_jitter *j, const leat_jitter_packet *p)
{
    int64_t at;

    if (p->seq < j->pace_from) {
        return 0;
    }
    at = stamp_time(j, p->timestamp) + least(j->fastest[0], j->fastest[1]) + (int64_t)j->delay;
    return at < 0 && j->pace_began < (leat_time)-at ? 0 : j->pace_began + (leat_time)at;
}

/* ---- order ------------------------------------------------------------------------------------
 */

static uint64_t unwrap_stamp(uint64_t near, uint32_t timestamp)
{
    return near + (uint64_t)(int64_t)(int32_t)(timestamp - (uint32_t)near);
}

static void begin(leat_jitter *j, const leat_rtp_packet *packet, leat_time now)
{
    uint64_t base = j->started ? j->end : ORIGIN;

    while (j->count > 0) {
        drop_head(j);
    }
    j->next = base + (uint16_t)(packet->seq - (uint16_t)base);
    j->head = j->end = j->next;
    j->popped = false;
    j->restart.count = 0;
    j->last_timestamp = FIRST_STAMP + packet->timestamp;
    begin_pace(j, j->last_timestamp, now);
    j->pace_from = 0; /* packets before the first may come late, and have their place */
    j->started = true;
}

/* Whether the packet is of the stream as it is known, or the stream begins with it. */
static bool follow(leat_jitter *j, const leat_rtp_packet *packet, leat_time now)
{
    uint64_t full = leat_seq_unwrap(j->end, packet->seq), size = j->mask + 1;

    if (!j->started) {
        begin(j, packet, now);
        return true;
    }
    if (full < j->end + size && full + size >= j->end) {
        j->restart.count = 0;
        return true;
    }
    if (!leat_restart_on_far(&j->restart, packet->seq, LEAT_RESTART_ROW)) {
        return false;
    }
    j->stats.restarts++;
    begin(j, packet, now);
    return true;
}

/* Whether the number may still be put in; before anything went out, playing may begin with one that
 * comes late. */
static leat_err check_number(leat_jitter *j, uint64_t full)
{
    if (full < j->next && !j->popped && j->end - full <= j->mask + 1) {
        j->next = full;
    }
    if (full < j->next) {
        j->stats.late++;
        return LEAT_ERR_STATE;
    }
    if (full < j->end && full >= j->head && j->count > 0 && is_there(j, full) &&
        slot_of(j, full)->seq == full) {
        j->stats.duplicates++;
        return LEAT_ERR_STATE;
    }
    return LEAT_OK;
}

/* Drops the oldest until the packet finds room; false: it would be the oldest itself, or is too
 * large. */
static bool make_room(leat_jitter *j, uint64_t full, size_t len)
{
    if (len > j->set.bytes) {
        return false;
    }
    while (j->count > 0 && (j->bytes + len > j->set.bytes || full > j->head + j->mask)) {
        if (full < j->head) {
            return false;
        }
        drop_head(j);
    }
    if (full > j->next + j->mask) { /* nothing lies between: these numbers are passed */
        uint64_t next = full - j->mask;

        next = j->count > 0 && j->head < next ? j->head : next;
        j->stats.missing += next - j->next;
        j->next = next;
    }
    return true;
}

static leat_err push(leat_jitter *j, const leat_rtp_packet *packet, leat_buf *buf, leat_time now)
{
    uint64_t full;
    leat_err err;

    j->stats.pushed++;
    if (buf->len == 0) {
        return LEAT_ERR_INVALID;
    }
    if (!follow(j, packet, now)) {
        return LEAT_ERR_LIMIT;
    }
    full = leat_seq_unwrap(j->end, packet->seq);
    err = check_number(j, full);
    if (err != LEAT_OK) {
        return err;
    }
    j->last_timestamp = unwrap_stamp(j->last_timestamp, packet->timestamp);
    keep_pace(j, j->last_timestamp, now);
    if (!make_room(j, full, buf->len)) {
        j->stats.overflowed++;
        return LEAT_ERR_LIMIT;
    }
    *slot_of(j, full) = (leat_jitter_packet){
        .buf = *buf, .seq = full, .timestamp = j->last_timestamp, .marker = packet->marker};
    j->bytes += buf->len;
    j->head = j->count == 0 || full < j->head ? full : j->head;
    j->count++;
    j->end = full >= j->end ? full + 1 : j->end;
    *buf = (leat_buf){.data = NULL};
    return LEAT_OK;
}

leat_err leat_jitter_push(leat_jitter *j, const leat_rtp_packet *packet, leat_buf *buf,
                          leat_time now)
{
    leat_err err = push(j, packet, buf, now);

    leat_buf_release(buf);
    return err;
}

leat_time leat_jitter_deadline(const leat_jitter *j)
{
    return j->count > 0 ? due(j, slot_of(j, j->head)) : LEAT_TIME_NEVER;
}

bool leat_jitter_pop(leat_jitter *j, leat_time now, leat_jitter_packet *out)
{
    leat_time deadline = leat_jitter_deadline(j);

    if (j->count == 0 || now < deadline) {
        return false;
    }
    *out = take_head(j);
    out->due = deadline;
    j->popped = true;
    j->stats.popped++;
    return true;
}

void leat_jitter_check(const leat_jitter *j)
{
    size_t count = 0, bytes = 0;

    for (uint64_t i = 0; i <= j->mask; i++) {
        const leat_jitter_packet *p = &j->ring[i];

        if (p->buf.len == 0) {
            continue;
        }
        count++;
        bytes += p->buf.len;
        LEAT_ASSERT((p->seq & j->mask) == i);
        LEAT_ASSERT(p->seq >= j->head);
        LEAT_ASSERT(p->seq < j->end);
    }
    LEAT_ASSERT(count == j->count);
    LEAT_ASSERT(bytes == j->bytes);
    LEAT_ASSERT(bytes <= j->set.bytes);
    LEAT_ASSERT(j->next <= j->head || count == 0);
    LEAT_ASSERT(count == 0 || is_there(j, j->head));
    LEAT_ASSERT(j->delay >= j->set.delay_min);
    LEAT_ASSERT(j->delay <= j->set.delay_max);
}
