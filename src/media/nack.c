/* media/nack.c: what is missing, and when to ask for it.
 *
 * The list has the numbers missing below the highest that came, in order. A packet above the
 * highest appends those in between; one below removes itself. A number is asked for when `reorder`
 * packets above it have come, then again after each interval, until it comes, has been asked for
 * too often, or is too old. The list is bounded: when it is full its oldest number is given up. So
 * whatever comes, what is asked for is what lies between two packets that did come, less than a
 * leap apart.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <leat/nack.h>
#include <leat/rtp.h>

#include "base/assert.h"
#include "base/time.h"
#include "media/restart.h"
#include "mem/mem.h"

#include <string.h>

enum {
    ORIGIN = 1 << 20, /* of unwrapped numbers; its low 16 bits are 0 */
    WRITE_MAX = 253,  /* numbers in one NACK at most, whatever room there is */
};

void leat_nack_settings_init(leat_nack_settings *s)
{
    *s = (leat_nack_settings){
        .missing = LEAT_NACK_MISSING_DEFAULT,
        .leap = 1000,
        .reorder = 2,
        .tries = 10,
        .interval = 100 * LEAT_MILLISECOND,
        .patience = LEAT_SECOND,
    };
}

leat_err leat_nack_init(leat_nack *nack, leat_mem *mem, const leat_nack_settings *s)
{
    *nack = (leat_nack){.set = *s, .mem = mem};
    if (s->missing < LEAT_NACK_MISSING_MIN || s->missing > LEAT_NACK_MISSING_MAX || s->tries == 0 ||
        s->leap == 0 || s->leap > 0x7fff) {
        return LEAT_ERR_INVALID;
    }
    nack->list = (leat_nack_missing *)leat_mem_take(mem, s->missing * sizeof *nack->list);
    return nack->list ? LEAT_OK : LEAT_ERR_NOMEM;
}

void leat_nack_free(leat_nack *nack)
{
    if (nack->list) {
        leat_mem_give(nack->mem, nack->list, nack->set.missing * sizeof *nack->list);
        nack->list = NULL;
        nack->count = 0;
    }
}

void leat_nack_set_interval(leat_nack *nack, leat_time interval)
{
    nack->set.interval = interval;
}

/* Takes n entries out, from the i-th on. */
static void remove_at(leat_nack *nack, size_t i, size_t n)
{
    nack->count -= n;
    memmove(nack->list + i, nack->list + i + n, (nack->count - i) * sizeof *nack->list);
}

/* The numbers of [from, to) are missing: of more than the list holds, the newest. */
static void add_missing(leat_nack *nack, uint64_t from, uint64_t to, leat_time now)
{
    size_t most = nack->set.missing, n;

    if (to - from > most) {
        nack->given_up += to - from - most;
        from = to - most;
    }
    n = (size_t)(to - from);
    if (nack->count + n > most) {
        size_t out = nack->count + n - most;

        nack->given_up += out;
        remove_at(nack, 0, out);
    }
    for (; from < to; from++) {
        nack->list[nack->count++] =
            (leat_nack_missing){.seq = from, .since = now, .next = LEAT_TIME_NEVER};
    }
}

/* What lies `reorder` packets behind the highest is due now. */
static void make_due(leat_nack *nack, leat_time now)
{
    for (size_t i = nack->count; i-- > 0;) {
        leat_nack_missing *m = &nack->list[i];

        if (nack->end - 1 - m->seq < nack->set.reorder) {
            continue;
        }
        if (m->next != LEAT_TIME_NEVER) {
            break; /* so are all before it */
        }
        m->next = now;
    }
}

static void begin(leat_nack *nack, uint16_t seq)
{
    nack->given_up += nack->count;
    nack->count = 0;
    nack->end = (nack->end ? nack->end : ORIGIN) + (uint16_t)(seq - (uint16_t)nack->end) + 1;
    nack->restart.count = 0;
}

/* A packet further from the highest than a leap: a new start if others follow it. */
static void on_far(leat_nack *nack, uint16_t seq)
{
    if (leat_restart_on_far(&nack->restart, seq, LEAT_RESTART_ROW)) {
        begin(nack, seq);
    }
}

static void on_late(leat_nack *nack, uint64_t full)
{
    size_t low = 0, high = nack->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (nack->list[mid].seq < full) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low < nack->count && nack->list[low].seq == full) {
        nack->recovered += nack->list[low].tries > 0;
        remove_at(nack, low, 1);
    }
}

void leat_nack_on_packet(leat_nack *nack, uint16_t seq, leat_time now)
{
    uint64_t full;

    if (nack->end == 0) {
        begin(nack, seq);
        return;
    }
    full = leat_seq_unwrap(nack->end, seq);
    if (full >= nack->end && full - nack->end < nack->set.leap) {
        add_missing(nack, nack->end, full, now);
        nack->end = full + 1;
        nack->restart.count = 0;
        make_due(nack, now);
    } else if (full < nack->end && nack->end - full <= nack->set.leap) {
        nack->restart.count = 0;
        on_late(nack, full);
    } else {
        on_far(nack, seq);
    }
}

leat_time leat_nack_deadline(const leat_nack *nack)
{
    leat_time next = LEAT_TIME_NEVER;

    for (size_t i = 0; i < nack->count; i++) {
        next = leat_time_min(next, nack->list[i].next);
    }
    return next;
}

static bool is_given_up(const leat_nack *nack, const leat_nack_missing *m, leat_time now)
{
    return leat_time_since(now, m->since) >= nack->set.patience ||
           (m->tries >= nack->set.tries && m->next <= now);
}

static void give_up_old(leat_nack *nack, leat_time now)
{
    size_t kept = 0;

    for (size_t i = 0; i < nack->count; i++) {
        if (is_given_up(nack, &nack->list[i], now)) {
            nack->given_up++;
        } else {
            nack->list[kept++] = nack->list[i];
        }
    }
    nack->count = kept;
}

/* How many pairs of PID and mask the first n numbers take; at most `pairs`, else fewer numbers. */
static size_t fit(const uint16_t *seqs, size_t n, size_t pairs)
{
    size_t i = 0;

    while (i < n && pairs > 0) {
        uint16_t pid = seqs[i++];

        pairs--;
        while (i < n && (uint16_t)(seqs[i] - pid) <= 16) {
            i++;
        }
    }
    return i;
}

size_t leat_nack_write(leat_nack *nack, leat_time now, uint32_t sender_ssrc, uint32_t media_ssrc,
                       leat_rtcp_writer *w)
{
    uint16_t seqs[WRITE_MAX];
    size_t n = 0, left = w->cap - w->len, asked = 0;

    give_up_old(nack, now);
    for (size_t i = 0; i < nack->count && n < WRITE_MAX; i++) {
        if (nack->list[i].next <= now) {
            seqs[n++] = (uint16_t)nack->list[i].seq;
        }
    }
    n = left < 16 ? 0 : fit(seqs, n, (left - 12) / 4);
    if (n == 0 || leat_rtcp_write_nack(w, sender_ssrc, media_ssrc, seqs, n) != LEAT_OK) {
        return 0;
    }
    for (size_t i = 0; i < nack->count && asked < n; i++) {
        leat_nack_missing *m = &nack->list[i];

        if (m->next <= now) {
            m->next = leat_time_add(now, nack->set.interval);
            m->tries++;
            asked++;
        }
    }
    nack->asked += n;
    return n;
}
