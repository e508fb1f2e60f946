/* conn/path.c: see conn/path.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/path.h"

#include <string.h>

#include "base/assert.h"
#include "base/time.h"
#include "crypto/secret.h"

/* Lengths that the compiler knows: each packet is looked at. */
static inline bool same_addr(const leat_addr *a, const leat_addr *b)
{
    if (a->family != b->family || a->port != b->port || a->scope != b->scope) {
        return false;
    }
    return a->family == 4 ? memcmp(a->ip, b->ip, 4) == 0 : memcmp(a->ip, b->ip, 16) == 0;
}

bool leat_addr_equal(const leat_addr *a, const leat_addr *b)
{
    return same_addr(a, b);
}

/* ---- one path ---- */

static void probe_over(leat_path *path)
{
    path->challenge_due = path->challenge_late = false;
    path->challenges = 0;
    path->full = 0;
    path->retry_at = LEAT_TIME_NEVER;
    path->give_up_at = LEAT_TIME_NEVER;
}

void leat_path_validate(leat_path *path)
{
    path->validated = path->carries = true;
    probe_over(path);
}

void leat_path_probe(leat_path *path, leat_time now, leat_time pto)
{
    if (path->give_up_at == LEAT_TIME_NEVER) {
        path->challenge_due = true;
        path->retry_at = leat_time_add(now, pto);
        path->give_up_at = leat_time_add(now, leat_time_mul(pto, 3));
    }
}

void leat_path_challenge_sent(leat_path *path, const uint8_t data[LEAT_PATH_DATA], bool full,
                              leat_time now, leat_time pto)
{
    LEAT_ASSERT(path->challenges < LEAT_PATH_CHALLENGES);
    path->full |= (uint8_t)(full << path->challenges);
    memcpy(path->challenge[path->challenges++], data, LEAT_PATH_DATA);
    path->challenge_due = path->challenge_late = false;
    path->retry_at =
        path->challenges < LEAT_PATH_CHALLENGES ? leat_time_add(now, pto) : LEAT_TIME_NEVER;
}

void leat_path_challenged(leat_path *path, const uint8_t data[LEAT_PATH_DATA])
{
    if (path->responses == LEAT_PATH_RESPONSES_MAX) {
        leat_path_responded(path);
    }
    memcpy(path->response[path->responses++], data, LEAT_PATH_DATA);
}

const uint8_t *leat_path_response(const leat_path *path)
{
    return path->responses > 0 ? path->response[0] : NULL;
}

void leat_path_responded(leat_path *path)
{
    LEAT_ASSERT(path->responses > 0);
    path->responses--;
    memmove(path->response[0], path->response[1], (size_t)path->responses * LEAT_PATH_DATA);
}

/* ---- all of them ---- */

static void path_init(leat_path *path, const leat_addr *local, const leat_addr *remote)
{
    *path = (leat_path){.local = *local, .remote = *remote, .used = true, .cid = LEAT_PATH_NO_CID};
    path->expire_at = LEAT_TIME_NEVER;
    probe_over(path);
}

void leat_paths_init(leat_paths *paths, leat_pool *pool, const leat_addr *local,
                     const leat_addr *remote, bool validated)
{
    memset(paths, 0, sizeof(*paths));
    paths->pool = pool;
    path_init(&paths->first, local, remote);
    paths->first.validated = paths->first.carries = validated;
    paths->next_number = 1;
    paths->next_id = 1;
    paths->count = 1;
}

void leat_paths_free(leat_paths *paths)
{
    leat_pool_give(paths->pool, paths->others);
    paths->others = NULL;
}

/* What an index says once the path at `from` is the first. */
static uint8_t index_after(uint8_t i, uint8_t from)
{
    return i == from ? 0 : i;
}

void leat_paths_shrink(leat_paths *paths)
{
    uint8_t only = paths->active;

    if (paths->count > 1) {
        return;
    }
    if (only > 0) {
        paths->first = *leat_paths_active(paths);
        leat_paths_active(paths)->used = false;
        paths->fallback = index_after(paths->fallback, only);
        paths->heard = index_after(paths->heard, only);
        paths->active = 0;
    }
    if (paths->active == 0 && paths->fallback == 0 && paths->heard == 0) {
        leat_paths_free(paths);
    }
}

/* Room for more than one. */
static bool make_others(leat_paths *paths)
{
    if (!paths->others) {
        paths->others = leat_pool_take_zeroed(paths->pool);
    }
    return paths->others != NULL;
}

static bool matches(const leat_path *path, const leat_addr *local, const leat_addr *remote)
{
    return path->used && same_addr(&path->remote, remote) &&
           (path->local.family == 0 || local->family == 0 || same_addr(&path->local, local));
}

leat_path *leat_paths_find(leat_paths *paths, const leat_addr *local, const leat_addr *remote)
{
    leat_path *active = leat_paths_active(paths);

    if (matches(active, local, remote)) {
        return active; /* as nearly always */
    }
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        if (matches(leat_paths_at(paths, i), local, remote)) {
            return leat_paths_at(paths, i);
        }
    }
    return NULL;
}

/* How much a path is worth when one has to give way; 0: it is not given up. */
static unsigned readiness_to_go(const leat_paths *paths, size_t i)
{
    const leat_path *path = leat_paths_at_const(paths, i);

    if (i == paths->active || i == paths->fallback || i == paths->heard || path->move_to) {
        return 0;
    }
    return path->validated ? 1 : path->give_up_at == LEAT_TIME_NEVER ? 3 : 2;
}

leat_path *leat_paths_add(leat_paths *paths, const leat_addr *local, const leat_addr *remote)
{
    size_t best = LEAT_PATHS_MAX;
    leat_path *path;

    if (!make_others(paths)) {
        return NULL;
    }
    for (size_t i = 0; i < LEAT_PATHS_MAX && best == LEAT_PATHS_MAX; i++) {
        best = leat_paths_at(paths, i)->used ? best : i;
    }
    if (best == LEAT_PATHS_MAX) {
        unsigned most = 0;

        for (size_t i = 0; i < leat_paths_room(paths); i++) {
            if (readiness_to_go(paths, i) > most) {
                most = readiness_to_go(paths, i);
                best = i;
            }
        }
        if (most == 0) {
            return NULL;
        }
    } else {
        paths->count++;
    }
    path = leat_paths_at(paths, best);
    path_init(path, local, remote);
    path->number = paths->next_number++;
    path->id = paths->next_id++;
    return path;
}

void leat_paths_drop(leat_paths *paths, leat_path *path)
{
    LEAT_ASSERT(path->used);
    path->used = false;
    paths->count--;
}

bool leat_paths_know_peer(const leat_paths *paths, const leat_addr *remote)
{
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        const leat_path *path = leat_paths_at_const(paths, i);

        if (path->used && path->validated && leat_addr_equal(&path->remote, remote)) {
            return true;
        }
    }
    return false;
}

bool leat_paths_use_cid(const leat_paths *paths, uint64_t cid)
{
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        const leat_path *path = leat_paths_at_const(paths, i);

        if (path->used && i != paths->active && path->cid == cid) {
            return true;
        }
    }
    return false;
}

leat_path *leat_paths_on_response(leat_paths *paths, const uint8_t data[LEAT_PATH_DATA])
{
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        leat_path *path = leat_paths_at(paths, i);

        for (size_t k = 0; path->used && k < path->challenges; k++) {
            if (leat_secret_equal(path->challenge[k], data, LEAT_PATH_DATA)) {
                bool carries = path->carries || (path->full >> k & 1);

                leat_path_validate(path);
                path->carries = carries;
                return path;
            }
        }
    }
    return NULL;
}

leat_path *leat_paths_wanting(leat_paths *paths, const leat_path *after)
{
    size_t from = after ? leat_paths_index(paths, after) + 1u : 0;

    for (size_t i = from; i < leat_paths_room(paths); i++) {
        if (leat_path_wants_send(leat_paths_at(paths, i))) {
            return leat_paths_at(paths, i);
        }
    }
    return NULL;
}

/* A peer that cannot follow yet, for want of connection IDs, goes on sending to where it is, and
 * what it sends is what brings it new ones. */
static bool stays(const leat_paths *paths, size_t i)
{
    return i == paths->fallback || i == paths->heard;
}

leat_time leat_paths_deadline(const leat_paths *paths)
{
    leat_time at = LEAT_TIME_NEVER;

    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        const leat_path *path = leat_paths_at_const(paths, i);

        if (path->used) {
            at = leat_time_min(at, leat_time_min(path->retry_at, path->give_up_at));
            at = stays(paths, i) ? at : leat_time_min(at, path->expire_at);
        }
    }
    return at;
}

leat_path *leat_paths_on_time(leat_paths *paths, leat_time now)
{
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        leat_path *path = leat_paths_at(paths, i);

        if (path->used && now >= path->give_up_at) {
            probe_over(path);
            return path;
        }
        if (path->used && now >= path->retry_at) {
            path->retry_at = LEAT_TIME_NEVER;
            path->challenge_due = path->challenge_late = true;
        }
    }
    return NULL;
}

leat_path *leat_paths_expired(leat_paths *paths, leat_time now)
{
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        leat_path *path = leat_paths_at(paths, i);

        if (path->used && !stays(paths, i) && now >= path->expire_at) {
            return path;
        }
    }
    return NULL;
}

void leat_paths_check(const leat_paths *paths)
{
    size_t count = 0;

    LEAT_ASSERT(paths->active < leat_paths_room(paths));
    LEAT_ASSERT(paths->fallback < leat_paths_room(paths));
    LEAT_ASSERT(paths->heard < leat_paths_room(paths));
    LEAT_ASSERT(leat_paths_at_const(paths, paths->active)->used);
    LEAT_ASSERT(leat_paths_at_const(paths, paths->fallback)->used);
    LEAT_ASSERT(leat_paths_at_const(paths, paths->active)->expire_at == LEAT_TIME_NEVER);
    for (size_t i = 0; i < leat_paths_room(paths); i++) {
        const leat_path *path = leat_paths_at_const(paths, i);

        count += path->used;
        LEAT_ASSERT(path->challenges <= LEAT_PATH_CHALLENGES);
        LEAT_ASSERT(path->responses <= LEAT_PATH_RESPONSES_MAX);
        LEAT_ASSERT(!path->used || path->give_up_at != LEAT_TIME_NEVER ||
                    (!path->challenge_due && path->challenges == 0));
        LEAT_ASSERT(path->challenge_due || !path->challenge_late);
    }
    LEAT_ASSERT(count == paths->count);
}
