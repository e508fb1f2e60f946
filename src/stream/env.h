/* stream/env.h: what the streams of a connection draw on.
 *
 * The pools belong to the context and serve all its connections; the budget is the connection's.
 * The two parts of a stream, and the CRYPTO streams, each hold a pointer to one leat_stream_env,
 * which must outlive them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_ENV_H
#define LEAT_STREAM_ENV_H

#include "mem/budget.h"
#include "mem/pool.h"

#define LEAT_STREAM_OFFSET_MAX ((UINT64_C(1) << 62) - 1) /* RFC 9000 §4.5: no stream is longer */

/* One a context. */
typedef struct leat_stream_pools {
    leat_mem *mem;
    leat_pool streams;  /* struct leat_stream */
    leat_pool segments; /* pieces of received data that wait: struct leat_recv_segment */
    leat_pool lines;    /* struct leat_stream_lines */
} leat_stream_pools;

/* One a connection. */
typedef struct leat_stream_env {
    leat_stream_pools *pools;
    leat_budget *budget;
} leat_stream_env;

void leat_stream_pools_init(leat_stream_pools *pools, leat_mem *mem);

/* Everything must have come back before. */
void leat_stream_pools_free(leat_stream_pools *pools);

#endif
