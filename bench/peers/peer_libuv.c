/* bench/peers/peer_libuv.c: tasks posted from another thread in bursts of 256, on libuv: a list of
 * the poster's own nodes and uv_async_send(), which is how libuv's users do it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <uv.h>

#include "peer.h"

enum { BURST = 256, BURSTS = 200 };

typedef struct node {
    struct node *next;
} node;

static uv_loop_t loop;
static uv_async_t async;
static node nodes[2][BURST];
static node *posted; /* atomic: a stack */
static uint64_t ran; /* atomic */
static uint64_t go, gone;
static int end;

static void run_posted(uv_async_t *handle)
{
    node *n = __atomic_exchange_n(&posted, NULL, __ATOMIC_ACQUIRE);

    (void)handle;
    for (; n; n = n->next) {
        __atomic_store_n(&ran, ran + 1, __ATOMIC_RELEASE);
    }
}

static void post(node *n)
{
    n->next = __atomic_load_n(&posted, __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(&posted, &n->next, n, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    uv_async_send(&async);
}

static void poster(void *arg)
{
    uint64_t target = 0;

    (void)arg;
    for (uint64_t round = 1; !__atomic_load_n(&end, __ATOMIC_ACQUIRE); round++) {
        while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) != round) {
            if (__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
                return;
            }
        }
        for (int b = 0; b < BURSTS; b++) {
            for (int i = 0; i < BURST; i++) {
                post(&nodes[b % 2][i]);
            }
            target += BURST;
            while (__atomic_load_n(&ran, __ATOMIC_ACQUIRE) != target) {
            }
        }
        __atomic_store_n(&gone, round, __ATOMIC_RELEASE);
    }
}

static void one_round(void *arg)
{
    uint64_t round = go + 1;

    (void)arg;
    __atomic_store_n(&go, round, __ATOMIC_RELEASE);
    while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE) != round) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

int main(void)
{
    uv_thread_t thread;

    peer_must(uv_loop_init(&loop) == 0, "uv_loop_init");
    peer_must(uv_async_init(&loop, &async, run_posted) == 0, "uv_async_init");
    peer_must(uv_thread_create(&thread, poster, NULL) == 0, "uv_thread_create");
    peer_measure(
        (peer_name){"libuv", uv_version_string(), "tasks", "another thread, bursts of 256"},
        one_round, NULL, BURST * BURSTS);
    __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
    uv_thread_join(&thread);
    return 0;
}
