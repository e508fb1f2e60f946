/* io/loop.h: the inside of a loop.
 *
 * A source is anything that epoll reports on: a UDP socket, a watch, the wake-up. Its `ready` is
 * called with epoll's events. A source may be removed at any time, also from a `ready` function
 * while reports of the same turn wait: leat_loop_remove() takes it out of those too.
 *
 * The loop and its parts lie in buffers of the context's memory: src/io allocates nothing by
 * itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_LOOP_H
#define LEAT_IO_LOOP_H

#include <leat/loop.h>

#include <sys/epoll.h>

#include "base/list.h"

typedef struct leat_source leat_source;
struct leat_source {
    void (*ready)(leat_source *source, uint32_t events);
    int fd;
};

enum { LEAT_LOOP_REPORTS = 64 };

struct leat_loop {
    leat_buf self; /* the buffer that the loop lies in */
    leat_ctx *ctx;
    leat_list udps; /* of leat_udp */
    leat_source wake;
    int epoll_fd;
    leat_time busy_poll; /* looks for so long before it sleeps; 0: not at all */
    bool no_pwait2;      /* the kernel does not have epoll_pwait2 */
    int stopped;         /* atomic: set by leat_loop_stop() */
    int reports;         /* of the present turn */
    int reported;        /* of these, handled */
    struct epoll_event events[LEAT_LOOP_REPORTS];
};

/* Takes zeroed memory for an object that keeps its own buffer in *self. NULL: out of memory. */
void *leat_io_take(leat_mem *mem, size_t size, leat_buf *self);

/* LEAT_ERR_IO. */
leat_err leat_loop_add(leat_loop *loop, leat_source *source, uint32_t events);
leat_err leat_loop_change(leat_loop *loop, leat_source *source, uint32_t events);
void leat_loop_remove(leat_loop *loop, leat_source *source);

/* Of io/udp.c: sends what the socket's endpoint has. */
void leat_udp_send(leat_udp *udp);
/* True when the endpoint would send and the socket would take it. */
bool leat_udp_wants_send(const leat_udp *udp);

static inline leat_udp *leat_udp_of(leat_link *link)
{
    return (leat_udp *)(void *)link; /* the link is its first member: io/udp.c asserts it */
}

#endif
