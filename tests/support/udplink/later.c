/* tests/support/udplink/later.c: datagrams on their way, in a binary heap by time, then order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "udplink.h"

#include <stdlib.h>

link_datagram *link_later_take(link_later *later)
{
    link_datagram *datagram = later->free;

    if (datagram) {
        later->free = datagram->next_free;
        return datagram;
    }
    return malloc(sizeof *datagram);
}

void link_later_give(link_later *later, link_datagram *datagram)
{
    datagram->next_free = later->free;
    later->free = datagram;
}

static bool before(const link_datagram *a, const link_datagram *b)
{
    return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

bool link_later_add(link_later *later, link_datagram *datagram)
{
    size_t at = later->count;

    if (later->count == later->cap) {
        size_t cap = later->cap ? later->cap * 2 : 1024;
        link_datagram **heap = realloc(later->heap, cap * sizeof *heap);

        if (!heap) {
            link_later_give(later, datagram);
            return false;
        }
        later->heap = heap;
        later->cap = cap;
    }
    datagram->serial = later->serial++;
    while (at > 0 && before(datagram, later->heap[(at - 1) / 2])) {
        later->heap[at] = later->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    later->heap[at] = datagram;
    later->count++;
    return true;
}

leat_time link_later_next(const link_later *later)
{
    return later->count ? later->heap[0]->at : LEAT_TIME_NEVER;
}

link_datagram *link_later_due(link_later *later, leat_time now)
{
    link_datagram *first, *last;
    size_t at = 0;

    if (link_later_next(later) > now || later->count == 0) {
        return NULL;
    }
    first = later->heap[0];
    last = later->heap[--later->count];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < later->count && before(later->heap[child + 1], later->heap[child])) {
            child++;
        }
        if (child >= later->count || !before(later->heap[child], last)) {
            break;
        }
        later->heap[at] = later->heap[child];
        at = child;
    }
    later->heap[at] = last;
    return first;
}

void link_later_free(link_later *later)
{
    while (later->count) {
        free(later->heap[--later->count]);
    }
    while (later->free) {
        link_datagram *datagram = later->free;

        later->free = datagram->next_free;
        free(datagram);
    }
    free(later->heap);
}
