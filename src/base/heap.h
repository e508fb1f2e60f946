/* base/heap.h: an intrusive pairing heap, made for one type by including this file.
 *
 * The type has three members of its own pointer type: child, next, prev. Before including, define
 *
 *     LEAT_HEAP_NAME          the prefix of the functions made: leat_timer_heap
 *     LEAT_HEAP_TYPE          the type: leat_timer
 *     LEAT_HEAP_BEFORE(a, b)  true if *a comes out strictly before *b
 *
 * They are undefined again at the end; the file may be included for more than one type. The heap
 * itself is not stable: for ties in order, let LEAT_HEAP_BEFORE compare an order number too.
 *
 * A heap is the pointer to its root, which is the first that will come out; NULL is an empty one,
 * so `LEAT_HEAP_TYPE *root = NULL` makes it. What is made for it (T is the type):
 *
 *     void NAME_insert(T **root, T *node)          O(1)
 *     T   *NAME_pop(T **root)                      the first out, or NULL; amortised O(log n)
 *     void NAME_remove(T **root, T *node)          node is in this heap; amortised O(log n)
 *     bool NAME_contains(const T *root, const T *node)
 *                                                  O(1), by the links: only for a node whose links
 *                                                  were NULL before it was first inserted
 *     void NAME_check(const T *root)               walks it and asserts order and links
 *
 * A node that is out of the heap has all three links NULL. To move a node: remove, change its key,
 * insert. No function allocates or recurses (check alone recurses, once a level of the tree).
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

#if !defined(LEAT_HEAP_NAME) || !defined(LEAT_HEAP_TYPE) || !defined(LEAT_HEAP_BEFORE)
#    error "define LEAT_HEAP_NAME, LEAT_HEAP_TYPE and LEAT_HEAP_BEFORE before base/heap.h"
#endif

#define LEAT_HEAP_GLUE2(a, b) a##b
#define LEAT_HEAP_GLUE(a, b)  LEAT_HEAP_GLUE2(a, b)
#define LEAT_HEAP_FN(suffix)  LEAT_HEAP_GLUE(LEAT_HEAP_NAME, suffix)

/* A node's children are a list through next; prev is the previous sibling, or the parent for the
 * first child, or NULL for the root. */

/* Makes the later of two roots the first child of the other, which is returned. */
static inline LEAT_HEAP_TYPE *LEAT_HEAP_FN(_meld)(LEAT_HEAP_TYPE *a, LEAT_HEAP_TYPE *b)
{
    if (LEAT_HEAP_BEFORE(b, a)) {
        LEAT_HEAP_TYPE *t = a;

        a = b;
        b = t;
    }
    b->next = a->child;
    if (b->next) {
        b->next->prev = b;
    }
    b->prev = a;
    a->child = b;
    return a;
}

static inline void LEAT_HEAP_FN(_insert)(LEAT_HEAP_TYPE **root, LEAT_HEAP_TYPE *node)
{
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    *root = *root ? LEAT_HEAP_FN(_meld)(*root, node) : node;
}

/* Two passes: melds a list of siblings pair by pair, left to right, keeping the pairs in reverse
 * order, then melds the pairs into one. The result has no prev and no next. */
static inline LEAT_HEAP_TYPE *LEAT_HEAP_FN(_merge)(LEAT_HEAP_TYPE *first)
{
    LEAT_HEAP_TYPE *pairs = NULL;
    LEAT_HEAP_TYPE *root;

    while (first) {
        LEAT_HEAP_TYPE *a = first;
        LEAT_HEAP_TYPE *b = a->next;

        first = b ? b->next : NULL;
        if (b) {
            a = LEAT_HEAP_FN(_meld)(a, b);
        }
        a->next = pairs;
        pairs = a;
    }
    root = pairs;
    if (root) {
        pairs = root->next;
        while (pairs) {
            LEAT_HEAP_TYPE *after = pairs->next;

            root = LEAT_HEAP_FN(_meld)(root, pairs);
            pairs = after;
        }
        root->next = NULL;
        root->prev = NULL;
    }
    return root;
}

static inline LEAT_HEAP_TYPE *LEAT_HEAP_FN(_pop)(LEAT_HEAP_TYPE **root)
{
    LEAT_HEAP_TYPE *node = *root;

    if (node) {
        *root = LEAT_HEAP_FN(_merge)(node->child);
        node->child = NULL;
    }
    return node;
}

static inline bool LEAT_HEAP_FN(_contains)(const LEAT_HEAP_TYPE *root, const LEAT_HEAP_TYPE *node)
{
    return node == root || node->prev != NULL;
}

static inline void LEAT_HEAP_FN(_remove)(LEAT_HEAP_TYPE **root, LEAT_HEAP_TYPE *node)
{
    LEAT_HEAP_TYPE *rest;

    LEAT_DCHECK(LEAT_HEAP_FN(_contains)(*root, node));
    if (node == *root) {
        LEAT_HEAP_FN(_pop)(root);
        return;
    }
    if (node->prev->child == node) {
        node->prev->child = node->next;
    } else {
        node->prev->next = node->next;
    }
    if (node->next) {
        node->next->prev = node->prev;
    }
    rest = LEAT_HEAP_FN(_merge)(node->child);
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    if (rest) {
        *root = LEAT_HEAP_FN(_meld)(*root, rest);
    }
}

static inline void LEAT_HEAP_FN(_check)(const LEAT_HEAP_TYPE *root)
{
    const LEAT_HEAP_TYPE *before = root;

    if (!root) {
        return;
    }
    for (const LEAT_HEAP_TYPE *n = root->child; n; n = n->next) {
        LEAT_ASSERT(n->prev == before);
        LEAT_ASSERT(!LEAT_HEAP_BEFORE(n, root));
        LEAT_HEAP_FN(_check)(n);
        before = n;
    }
}

#undef LEAT_HEAP_FN
#undef LEAT_HEAP_GLUE
#undef LEAT_HEAP_GLUE2
#undef LEAT_HEAP_NAME
#undef LEAT_HEAP_TYPE
#undef LEAT_HEAP_BEFORE
