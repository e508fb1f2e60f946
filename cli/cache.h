/* cli/cache.h: small files that `leat serve` keeps in memory, a cache for each loop.
 *
 * A file is answered from memory for a second after it was last looked at. Then the next request
 * for it opens its name again, as any request does, and what is kept goes on being served only
 * where that leads to the same file, unchanged. So whatever happens to a file, a name or a link is
 * seen within a second of the next request.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_CACHE_H
#define LEAT_CLI_CACHE_H

#include "cli.h"

/* A file in memory; it stays while somebody reads it. */
typedef struct leat_cli_kept leat_cli_kept;

/* Nanoseconds since 1970, by the clock that files are stamped with. */
typedef int64_t leat_cli_wall_fn(void);
int64_t leat_cli_wall(void);

typedef struct leat_cli_cache {
    leat_mem *mem;
    int root;                       /* the served folder; borrowed */
    uint64_t most;                  /* bytes that it may take */
    uint64_t bytes;                 /* that it takes, with what is no longer found but still read */
    size_t count;                   /* files that can be found */
    uint64_t seed;                  /* of the names' hash */
    leat_cli_kept *newest, *oldest; /* by the last request */
    leat_cli_kept **buckets;        /* NULL: nothing is kept */
    leat_cli_wall_fn *wall;
    uint64_t hits, looks, reads; /* answered from memory, names opened, files read whole */
} leat_cli_cache;

/* What is served: a file that is kept, or an open one. */
typedef struct leat_cli_served {
    leat_cli_kept *kept; /* NULL: file.fd is open */
    leat_cli_file file;
} leat_cli_served;

/* `most` 0, or no memory: keeps nothing, and opens each file. */
void leat_cli_cache_init(leat_cli_cache *cache, leat_mem *mem, int root, uint64_t most,
                         leat_cli_wall_fn *wall);
/* Gives back what it has. What is still served goes when it is closed; *cache must stay so long. */
void leat_cli_cache_free(leat_cli_cache *cache);

/* As leat_cli_file_open(), now in a context's time. 200: the caller closes *out. */
unsigned leat_cli_cache_open(leat_cli_cache *cache, leat_span path, leat_time now,
                             leat_cli_served *out);
/* Bytes from an offset below the file's size on, into room that is not empty. LEAT_ERR_IO: it
 * cannot be read, or is shorter than it was. */
leat_err leat_cli_served_read(const leat_cli_served *served, uint64_t offset, leat_mspan room,
                              size_t *got);
void leat_cli_served_close(leat_cli_served *served);

/* Walks it and asserts that lists, counts and bytes agree. */
void leat_cli_cache_check(const leat_cli_cache *cache);

#endif
