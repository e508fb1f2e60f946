/* io/watch.c: file descriptors of the application's in the loop.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/loop.h"

struct leat_watch {
    leat_source source; /* first: leads back from it */
    leat_buf self;
    leat_loop *loop;
    leat_watch_fn *fn;
    void *user;
};

static uint32_t to_epoll(uint32_t want)
{
    return ((want & LEAT_WATCH_READ) != 0 ? EPOLLIN : 0u) |
           ((want & LEAT_WATCH_WRITE) != 0 ? EPOLLOUT : 0u);
}

static void watch_ready(leat_source *source, uint32_t events)
{
    leat_watch *watch = (leat_watch *)source;
    uint32_t ready = 0;
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
        ready |= LEAT_WATCH_READ;
    }
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        ready |= LEAT_WATCH_WRITE;
    }
    watch->fn(watch, source->fd, ready, watch->user);
}

leat_err leat_watch_add(leat_loop *loop, int fd, uint32_t want, leat_watch_fn *fn, void *user,
                        leat_watch **out)
{
    *out = NULL;
    leat_buf self;
    leat_watch *watch = leat_io_take(leat_ctx_mem(loop->ctx), sizeof(*watch), &self);
    if (watch == NULL) {
        return LEAT_ERR_NOMEM;
    }
    watch->source = (leat_source){.ready = watch_ready, .fd = fd};
    watch->self = self;
    watch->loop = loop;
    watch->fn = fn;
    watch->user = user;
    leat_err err = leat_loop_add(loop, &watch->source, to_epoll(want));
    if (err != LEAT_OK) {
        leat_buf_release(&self);
        return err;
    }
    *out = watch;
    return LEAT_OK;
}

leat_err leat_watch_set(leat_watch *watch, uint32_t want)
{
    return leat_loop_change(watch->loop, &watch->source, to_epoll(want));
}

void leat_watch_remove(leat_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    leat_loop_remove(watch->loop, &watch->source);
    leat_buf self = watch->self;
    leat_buf_release(&self);
}
