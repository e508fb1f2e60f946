/* net/link.h: an in-memory network between two endpoints: a pipe for each direction.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_NET_LINK_H
#define LEAT_NET_LINK_H

#include "base/time.h"
#include "net/pipe.h"

/* The two ends are 0 and 1; pipe[i] carries what end i sends. */
typedef struct leat_net_link {
    leat_pipe pipe[2];
} leat_net_link;

/* The same settings for both directions (leat_pipe_set() changes one), chance of its own for each.
 */
static inline void leat_net_link_init(leat_net_link *link, leat_mem *mem,
                                      const leat_pipe_settings *settings, uint64_t seed)
{
    leat_pipe_init(&link->pipe[0], mem, settings, seed);
    leat_pipe_init(&link->pipe[1], mem, settings, ~seed);
}

static inline void leat_net_link_free(leat_net_link *link)
{
    leat_pipe_free(&link->pipe[0]);
    leat_pipe_free(&link->pipe[1]);
}

/* End `from` sends: takes the datagram's buffer. */
static inline void leat_net_link_send(leat_net_link *link, int from, leat_time now,
                                      leat_dgram *dgram)
{
    leat_pipe_send(&link->pipe[from], now, dgram);
}

/* The next datagram that has arrived at end `at`. */
static inline bool leat_net_link_recv(leat_net_link *link, int at, leat_time now, leat_dgram *out)
{
    return leat_pipe_recv(&link->pipe[1 - at], now, out);
}

/* When the next datagram arrives at either end. */
static inline leat_time leat_net_link_deadline(const leat_net_link *link)
{
    return leat_time_min(leat_pipe_deadline(&link->pipe[0]), leat_pipe_deadline(&link->pipe[1]));
}

#endif
