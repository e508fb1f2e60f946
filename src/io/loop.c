/* io/loop.c: the ready loop.
 *
 * A turn:
 *   1. how long to wait: not at all if an endpoint has something to send or the context something
 * to run; else until the context's deadline or the caller's;
 *   2. epoll; with busy_poll again and again for a while, before it sleeps;
 *   3. the clock, once;
 *   4. sources that are ready: sockets hand their datagrams to their endpoints;
 *   5. one turn of the context: all work and all events happen here;
 *   6. each socket sends what its endpoint has.
 *
 * Other threads and signal handlers wake the loop through an eventfd.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/time.h"

void *leat_io_take(leat_mem *mem, size_t size, leat_buf *self)
{
    if (leat_buf_take(mem, size, self) != LEAT_OK) {
        return NULL;
    }
    memset(self->data, 0, size);
    return self->data;
}

/* ---- sources --------------------------------------------------------------------------------- */

static leat_err control(leat_loop *loop, int operation, leat_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    int failed = epoll_ctl(loop->epoll_fd, operation, source->fd, &event);
    return failed == 0 ? LEAT_OK : LEAT_ERR_IO;
}

leat_err leat_loop_add(leat_loop *loop, leat_source *source, uint32_t events)
{
    return control(loop, EPOLL_CTL_ADD, source, events);
}

leat_err leat_loop_change(leat_loop *loop, leat_source *source, uint32_t events)
{
    return control(loop, EPOLL_CTL_MOD, source, events);
}

void leat_loop_remove(leat_loop *loop, leat_source *source)
{
    control(loop, EPOLL_CTL_DEL, source, 0);
    for (int i = loop->reported; i < loop->reports; i++) {
        if (loop->events[i].data.ptr == source) {
            loop->events[i].data.ptr = NULL;
        }
    }
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Any thread, signal handlers too. The user pointer is the eventfd itself, which exists before the
 * loop does. */
static void wake(void *user)
{
    int saved = errno;
    uint64_t one = 1;
    /* It can only fail when the count is at its limit, and then the owner wakes anyway. */
    ssize_t ignored = write((int)(intptr_t)user, &one, sizeof(one));
    (void)ignored;
    errno = saved;
}

static void woken(leat_source *source, uint32_t events)
{
    uint64_t count;
    (void)events;
    ssize_t ignored = read(source->fd, &count, sizeof(count));
    (void)ignored;
}

void leat_loop_stop(leat_loop *loop)
{
    __atomic_store_n(&loop->stopped, 1, __ATOMIC_RELEASE);
    wake((void *)(intptr_t)loop->wake.fd);
}

/* ---- making and ending ----------------------------------------------------------------------- */

void leat_loop_settings_init(leat_loop_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    leat_mem_settings_init(&settings->mem);
}

static leat_err make_ctx(const leat_loop_settings *settings, int wake_fd, leat_ctx **out)
{
    leat_ctx_settings ctx_settings;
    leat_ctx_settings_init(&ctx_settings);
    if (settings != NULL) {
        ctx_settings.mem = settings->mem;
    }
    ctx_settings.wake = wake;
    ctx_settings.user = (void *)(intptr_t)wake_fd;
    leat_err err = leat_entropy(ctx_settings.seed, sizeof(ctx_settings.seed));
    if (err == LEAT_OK) {
        err = leat_ctx_new(&ctx_settings, out);
    }
    explicit_bzero(ctx_settings.seed, sizeof(ctx_settings.seed));
    return err;
}

static leat_err make_loop(leat_ctx *ctx, int wake_fd, leat_loop **out)
{
    leat_buf self;
    leat_loop *loop = leat_io_take(leat_ctx_mem(ctx), sizeof(*loop), &self);
    if (loop == NULL) {
        return LEAT_ERR_NOMEM;
    }
    loop->self = self;
    loop->ctx = ctx;
    loop->wake = (leat_source){.ready = woken, .fd = wake_fd};
    leat_list_init(&loop->udps);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0 || leat_loop_add(loop, &loop->wake, EPOLLIN) != LEAT_OK) {
        int saved = errno;
        if (loop->epoll_fd >= 0) {
            close(loop->epoll_fd);
        }
        leat_buf_release(&self);
        errno = saved;
        return LEAT_ERR_IO;
    }
    leat_ctx_set_now(ctx, leat_clock_now());
    *out = loop;
    return LEAT_OK;
}

leat_err leat_loop_new(const leat_loop_settings *settings, leat_loop **out)
{
    *out = NULL;
    int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) {
        return LEAT_ERR_IO;
    }
    leat_ctx *ctx = NULL;
    leat_err err = make_ctx(settings, wake_fd, &ctx);
    if (err == LEAT_OK) {
        err = make_loop(ctx, wake_fd, out);
    }
    if (err != LEAT_OK) {
        int saved = errno;
        leat_ctx_free(ctx);
        close(wake_fd);
        errno = saved;
    }
    return err;
}

void leat_loop_free(leat_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    for (leat_link *l; (l = leat_list_first(&loop->udps)) != NULL;) {
        leat_udp_close(leat_udp_of(l));
    }
    leat_ctx *ctx = loop->ctx;
    leat_buf self = loop->self;
    close(loop->epoll_fd);
    int wake_fd = loop->wake.fd;
    leat_buf_release(&self);
    leat_ctx_free(ctx);
    close(wake_fd); /* last: nothing posts any more */
}

leat_ctx *leat_loop_ctx(leat_loop *loop)
{
    return loop->ctx;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool wants_send(const leat_loop *loop)
{
    for (leat_link *l = leat_list_first(&loop->udps); l != NULL;
         l = leat_list_next(&loop->udps, l)) {
        if (leat_udp_wants_send(leat_udp_of(l))) {
            return true;
        }
    }
    return false;
}

/* How long to wait, LEAT_TIME_NEVER: until something happens. */
static leat_time time_to_wait(leat_loop *loop, leat_time deadline)
{
    deadline = leat_time_min(deadline, leat_ctx_deadline(loop->ctx));
    if (deadline <= leat_ctx_now(loop->ctx) || wants_send(loop)) {
        return 0;
    }
    if (deadline == LEAT_TIME_NEVER) {
        return LEAT_TIME_NEVER;
    }
    /* The second reading is on the way to sleep alone: the turn may have taken long. */
    return leat_time_since(deadline, leat_clock_now());
}

static int wait_coarsely(leat_loop *loop, leat_time wait)
{
    int ms = -1;
    if (wait != LEAT_TIME_NEVER) {
        leat_time up = wait / LEAT_MILLISECOND + (wait % LEAT_MILLISECOND != 0);
        ms = up < INT32_MAX ? (int)up : INT32_MAX;
    }
    return epoll_wait(loop->epoll_fd, loop->events, LEAT_LOOP_REPORTS, ms);
}

static int sleep_until_reports(leat_loop *loop, leat_time wait)
{
    if (loop->no_pwait2 || wait == 0) {
        return wait_coarsely(loop, wait);
    }
    struct timespec ts = {.tv_sec = (time_t)(wait / LEAT_SECOND),
                          .tv_nsec = (long)(wait % LEAT_SECOND)};
    int n = epoll_pwait2(loop->epoll_fd, loop->events, LEAT_LOOP_REPORTS,
                         wait == LEAT_TIME_NEVER ? NULL : &ts, NULL);
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
        loop->no_pwait2 = true; /* Linux before 5.11, or a sandbox that does not know it */
        return wait_coarsely(loop, wait);
    }
    return n;
}

static int wait_for_reports(leat_loop *loop, leat_time wait)
{
    if (wait > 0 && loop->busy_poll > 0) {
        leat_time began = leat_clock_now(), spent = 0;

        while (spent < wait && spent < loop->busy_poll) {
            int n = wait_coarsely(loop, 0);
            if (n != 0) {
                return n;
            }
            spent = leat_time_since(leat_clock_now(), began);
        }
        if (wait != LEAT_TIME_NEVER) {
            wait = leat_time_since(wait, spent);
        }
    }
    return sleep_until_reports(loop, wait);
}

static void handle_reports(leat_loop *loop, int n)
{
    loop->reports = n;
    for (loop->reported = 0; loop->reported < loop->reports;) {
        struct epoll_event event = loop->events[loop->reported++];
        leat_source *source = event.data.ptr;
        if (source != NULL) {
            source->ready(source, event.events);
        }
    }
    loop->reports = 0;
    loop->reported = 0;
}

static void send_all(leat_loop *loop)
{
    for (leat_link *l = leat_list_first(&loop->udps); l != NULL;
         l = leat_list_next(&loop->udps, l)) {
        leat_udp_send(leat_udp_of(l));
    }
}

leat_err leat_loop_turn(leat_loop *loop, leat_time deadline)
{
    int n = wait_for_reports(loop, time_to_wait(loop, deadline));
    if (n < 0 && errno != EINTR) {
        return LEAT_ERR_IO;
    }
    leat_time now = leat_clock_now();
    leat_ctx_set_now(loop->ctx, now); /* what the sources do happens now */
    handle_reports(loop, n > 0 ? n : 0);
    leat_ctx_turn(loop->ctx, now);
    send_all(loop);
    return LEAT_OK;
}

leat_err leat_loop_run(leat_loop *loop)
{
    leat_err err = LEAT_OK;
    while (err == LEAT_OK && __atomic_load_n(&loop->stopped, __ATOMIC_ACQUIRE) == 0) {
        err = leat_loop_turn(loop, LEAT_TIME_NEVER);
    }
    __atomic_store_n(&loop->stopped, 0, __ATOMIC_RELEASE);
    return err;
}
