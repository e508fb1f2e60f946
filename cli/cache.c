/* cli/cache.c: small files in memory, found by their decoded names.
 *
 * A name that is due for a look is resolved and opened as for any request (files.c), so what it may
 * reach and what it means is judged anew, by the kernel. What was read is kept where device, inode,
 * size and both times of change are the same. That is not enough for a file that had been changed
 * just before it was read: changed once more in the same tick of the kernel's clock it would look
 * the same. Such a file is read again at each look, until it was at rest for SETTLED.
 *
 * Bytes are counted as the memory hands them out, in powers of two, with what is being sent
 * although it can no longer be found: a client that reads slowly cannot make it more than `most`.
 * Files make room for others in the order of their last request, but for those that are being sent.
 * What has no room is served from its descriptor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = LEAT_FILE_CACHE_FILES_MAX, NAME_MOST = 1024 };

static const leat_time LOOK_AGAIN = LEAT_SECOND;
static const int64_t SETTLED =
    LEAT_SECOND; /* ticks are 10 ms at most, file servers' clocks worse */

struct leat_cli_kept {
    leat_cli_cache *cache;
    leat_cli_kept *chain;         /* the next of its bucket */
    leat_cli_kept *newer, *older; /* by the last request */
    uint64_t hash;
    leat_time looked; /* when the name was last opened */
    leat_cli_file file;
    uint64_t charge; /* bytes of memory */
    size_t users;    /* that are being served */
    bool listed;     /* it can be found */
    bool settled;    /* a change would show */
    size_t name_len;
    uint8_t bytes[]; /* the name, then the contents */
};

int64_t leat_cli_wall(void)
{
    struct timespec ts = {0};

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * (int64_t)LEAT_SECOND + ts.tv_nsec;
}

static int64_t stamp(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * (int64_t)LEAT_SECOND + ts->tv_nsec;
}

/* ---- finding ---- */

/* FNV-1a from a secret start. Clients know names that collide only by trying, and a chain is never
 * longer than the cache has files. */
static uint64_t hash_of(const leat_cli_cache *cache, const char *name, size_t len)
{
    uint64_t h = cache->seed;

    for (size_t i = 0; i < len; i++) {
        h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    }
    return h ^ h >> 32;
}

static leat_cli_kept **bucket_of(const leat_cli_cache *cache, uint64_t hash)
{
    return &cache->buckets[hash % BUCKETS];
}

static leat_cli_kept *find(const leat_cli_cache *cache, const char *name, size_t len, uint64_t hash)
{
    leat_cli_kept *kept = *bucket_of(cache, hash);

    while (kept &&
           !(kept->hash == hash && kept->name_len == len && memcmp(kept->bytes, name, len) == 0)) {
        kept = kept->chain;
    }
    return kept;
}

static void link_newest(leat_cli_cache *cache, leat_cli_kept *kept)
{
    kept->newer = NULL;
    kept->older = cache->newest;
    *(kept->older ? &kept->older->newer : &cache->oldest) = kept;
    cache->newest = kept;
}

static void unlink_age(leat_cli_cache *cache, leat_cli_kept *kept)
{
    *(kept->newer ? &kept->newer->older : &cache->newest) = kept->older;
    *(kept->older ? &kept->older->newer : &cache->oldest) = kept->newer;
}

/* Asked for now. */
static void touch(leat_cli_cache *cache, leat_cli_kept *kept)
{
    if (cache->newest != kept) {
        unlink_age(cache, kept);
        link_newest(cache, kept);
    }
}

/* ---- coming and going ---- */

static void list(leat_cli_cache *cache, leat_cli_kept *kept)
{
    leat_cli_kept **bucket = bucket_of(cache, kept->hash);

    kept->chain = *bucket;
    *bucket = kept;
    link_newest(cache, kept);
    kept->listed = true;
    cache->count++;
}

static void give_back(leat_cli_kept *kept)
{
    leat_cli_cache *cache = kept->cache;

    cache->bytes -= kept->charge;
    leat_mem_release(cache->mem, kept);
}

/* It is not found any more, and goes with its last reader. */
static void drop(leat_cli_kept *kept)
{
    leat_cli_cache *cache = kept->cache;
    leat_cli_kept **at = bucket_of(cache, kept->hash);

    while (*at != kept) {
        at = &(*at)->chain;
    }
    *at = kept->chain;
    unlink_age(cache, kept);
    kept->listed = false;
    cache->count--;
    if (kept->users == 0) {
        give_back(kept);
    }
}

static bool has_room(const leat_cli_cache *cache, uint64_t charge)
{
    return cache->count < LEAT_FILE_CACHE_FILES_MAX && charge <= cache->most - cache->bytes;
}

static bool make_room(leat_cli_cache *cache, uint64_t charge)
{
    leat_cli_kept *next;

    if (charge > cache->most) {
        return false;
    }
    for (leat_cli_kept *kept = cache->oldest; kept && !has_room(cache, charge); kept = next) {
        next = kept->newer;
        if (kept->users == 0) {
            drop(kept);
        }
    }
    return has_room(cache, charge);
}

static uint64_t power_of_two_from(uint64_t n)
{
    uint64_t p = 64;

    while (p < n) {
        p *= 2;
    }
    return p;
}

static bool read_whole(int fd, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, to + at, size - at, (off_t)at);

        if (n > 0) {
            at += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Reads an open file into memory; NULL: it is not to be kept. */
static leat_cli_kept *keep(leat_cli_cache *cache, const char *name, size_t len,
                           const leat_cli_file *file, leat_time now)
{
    size_t size = sizeof(leat_cli_kept) + len + (size_t)file->size;
    uint64_t charge = power_of_two_from(size + 32); /* with what the memory puts before it */
    int64_t began = cache->wall();
    leat_cli_file_id after;
    leat_cli_kept *kept;

    if (!make_room(cache, charge) || !(kept = leat_mem_malloc(cache->mem, size))) {
        return NULL;
    }
    *kept = (leat_cli_kept){
        .cache = cache, .looked = now, .file = *file, .charge = charge, .name_len = len};
    kept->file.fd = -1;
    cache->reads++;
    cache->bytes += charge;
    memcpy(kept->bytes, name, len);
    if (!read_whole(file->fd, kept->bytes + len, (size_t)file->size) ||
        !leat_cli_file_identify(file->fd, &after) ||
        !leat_cli_file_same(&after, &file->id)) { /* it changes at this moment */
        give_back(kept);
        return NULL;
    }
    kept->settled = stamp(&after.changed) <= began - SETTLED;
    return kept;
}

/* ---- from outside ---- */

void leat_cli_cache_init(leat_cli_cache *cache, leat_mem *mem, int root, uint64_t most,
                         leat_cli_wall_fn *wall)
{
    *cache = (leat_cli_cache){.mem = mem, .root = root, .most = most, .wall = wall};
    if (most > 0 && leat_cli_random(&cache->seed, sizeof cache->seed)) {
        cache->buckets = leat_mem_calloc(mem, BUCKETS, sizeof *cache->buckets);
    }
}

void leat_cli_cache_free(leat_cli_cache *cache)
{
    while (cache->oldest) {
        drop(cache->oldest);
    }
    if (cache->buckets) {
        leat_mem_release(cache->mem, cache->buckets);
        cache->buckets = NULL;
    }
}

static unsigned serve_kept(leat_cli_kept *kept, leat_cli_served *out)
{
    kept->users++;
    *out = (leat_cli_served){.kept = kept, .file = kept->file};
    return 200;
}

/* The name leads to what was read, and that has not changed. */
static bool still_good(const leat_cli_kept *kept, const leat_cli_file *file)
{
    return kept->settled && leat_cli_file_same(&kept->file.id, &file->id);
}

/* Looks at the name: serves what it leads to, from memory where it can be. */
static unsigned look(leat_cli_cache *cache, leat_cli_name *name, uint64_t hash, leat_cli_kept *kept,
                     leat_time now, leat_cli_served *out)
{
    unsigned status = leat_cli_file_open(cache->root, name, &out->file);

    cache->looks++;
    if (kept && (status != 200 || !still_good(kept, &out->file))) {
        drop(kept);
        kept = NULL;
    }
    if (status != 200) {
        return status;
    }
    if (kept) {
        kept->looked = now;
        touch(cache, kept);
    } else if (name->len <= NAME_MOST && out->file.size <= LEAT_FILE_CACHE_FILE_MAX) {
        kept = keep(cache, name->text, name->len, &out->file, now);
        if (kept) {
            kept->hash = hash;
            list(cache, kept);
        }
    }
    if (!kept) {
        return status;
    }
    close(out->file.fd);
    return serve_kept(kept, out);
}

unsigned leat_cli_cache_open(leat_cli_cache *cache, leat_span path, leat_time now,
                             leat_cli_served *out)
{
    leat_cli_name name;
    leat_cli_kept *kept;
    uint64_t hash;
    unsigned status = leat_cli_name_of(path, &name);

    *out = (leat_cli_served){.file.fd = -1};
    if (status != 200) {
        return status;
    }
    if (!cache->buckets) {
        cache->looks++;
        return leat_cli_file_open(cache->root, &name, &out->file);
    }
    hash = hash_of(cache, name.text, name.len);
    kept = find(cache, name.text, name.len, hash);
    if (kept && now < kept->looked + LOOK_AGAIN) {
        cache->hits++;
        touch(cache, kept);
        return serve_kept(kept, out);
    }
    return look(cache, &name, hash, kept, now, out);
}

leat_err leat_cli_served_read(const leat_cli_served *served, uint64_t offset, leat_mspan room,
                              size_t *got)
{
    const leat_cli_kept *kept = served->kept;
    ssize_t n;

    if (kept) {
        size_t left = (size_t)(kept->file.size - offset);

        *got = left < room.len ? left : room.len;
        memcpy(room.data, kept->bytes + kept->name_len + offset, *got);
        return LEAT_OK;
    }
    do {
        n = pread(served->file.fd, room.data, room.len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    return n > 0 ? LEAT_OK : LEAT_ERR_IO;
}

void leat_cli_served_close(leat_cli_served *served)
{
    leat_cli_kept *kept = served->kept;

    if (!kept) {
        close(served->file.fd);
    } else if (--kept->users == 0 && !kept->listed) {
        give_back(kept);
    }
    *served = (leat_cli_served){.file.fd = -1};
}

/* ---- checking ---- */

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

void leat_cli_cache_check(const leat_cli_cache *cache)
{
    uint64_t bytes = 0;
    size_t count = 0, chained = 0;

    for (const leat_cli_kept *kept = cache->newest; kept; kept = kept->older) {
        must(kept->listed && kept->cache == cache);
        must(kept->newer ? kept->newer->older == kept : cache->newest == kept);
        must(kept->older || cache->oldest == kept);
        bytes += kept->charge;
        count++;
    }
    for (size_t i = 0; cache->buckets && i < BUCKETS; i++) {
        for (const leat_cli_kept *kept = cache->buckets[i]; kept; kept = kept->chain) {
            must(kept->listed && kept->hash % BUCKETS == i);
            chained++;
        }
    }
    must(count == cache->count && chained == count && count <= LEAT_FILE_CACHE_FILES_MAX);
    must(bytes <= cache->bytes && cache->bytes <= cache->most);
}
