/* base/list.h: an intrusive doubly linked list.
 *
 * Embed a leat_link in what is listed; LEAT_CONTAINER_OF() leads back. The list is a ring through
 * a sentinel that lies in the leat_list itself, so insert and remove have no special cases, and:
 *   - a leat_list that is not empty must not be copied or moved as bytes;
 *   - a link knows whether it is listed (leat_link_listed), if it was zeroed or leat_link_init()ed.
 * Removing needs no list. Nothing here allocates; every operation but count and check is O(1).
 *
 *     for (leat_link *l = leat_list_first(&list); l; l = leat_list_next(&list, l)) …
 * (to remove while walking, fetch the next one first).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_LIST_H
#define LEAT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

typedef struct leat_link leat_link;
struct leat_link {
    leat_link *next; /* NULL: not on a list */
    leat_link *prev;
};

typedef struct leat_list {
    leat_link ring;
} leat_list;

static inline void leat_link_init(leat_link *link)
{
    link->next = NULL;
    link->prev = NULL;
}

static inline bool leat_link_listed(const leat_link *link)
{
    return link->next != NULL;
}

static inline void leat_list_init(leat_list *list)
{
    list->ring.next = &list->ring;
    list->ring.prev = &list->ring;
}

static inline bool leat_list_empty(const leat_list *list)
{
    return list->ring.next == &list->ring;
}

/* The first, last and next link, or NULL where there is none. */
static inline leat_link *leat_list_first(const leat_list *list)
{
    return leat_list_empty(list) ? NULL : list->ring.next;
}

static inline leat_link *leat_list_last(const leat_list *list)
{
    return leat_list_empty(list) ? NULL : list->ring.prev;
}

static inline leat_link *leat_list_next(const leat_list *list, const leat_link *link)
{
    return link->next == &list->ring ? NULL : link->next;
}

/* Puts a link that is on no list between two neighbours. */
static inline void leat_link_between(leat_link *link, leat_link *prev, leat_link *next)
{
    LEAT_DCHECK(prev->next == next);
    LEAT_DCHECK(next->prev == prev);
    link->prev = prev;
    link->next = next;
    prev->next = link;
    next->prev = link;
}

static inline void leat_list_push_back(leat_list *list, leat_link *link)
{
    leat_link_between(link, list->ring.prev, &list->ring);
}

static inline void leat_list_push_front(leat_list *list, leat_link *link)
{
    leat_link_between(link, &list->ring, list->ring.next);
}

/* Takes the link off whatever list it is on. It must be on one. */
static inline void leat_link_remove(leat_link *link)
{
    LEAT_DCHECK(leat_link_listed(link));
    link->prev->next = link->next;
    link->next->prev = link->prev;
    leat_link_init(link);
}

static inline leat_link *leat_list_pop_front(leat_list *list)
{
    leat_link *link = leat_list_first(list);

    if (link) {
        leat_link_remove(link);
    }
    return link;
}

/* Walks it: O(n). */
static inline size_t leat_list_count(const leat_list *list)
{
    size_t n = 0;

    for (const leat_link *l = list->ring.next; l != &list->ring; l = l->next) {
        n++;
    }
    return n;
}

/* Walks it and asserts that each neighbour points back. */
static inline void leat_list_check(const leat_list *list)
{
    const leat_link *l = &list->ring;

    do {
        LEAT_ASSERT(l->next != NULL);
        LEAT_ASSERT(l->next->prev == l);
        l = l->next;
    } while (l != &list->ring);
}

#endif
