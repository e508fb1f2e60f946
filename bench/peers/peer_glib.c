/* bench/peers/peer_glib.c: tasks on GLib: an idle source a task, attached to the main context by
 * its owner and by another thread, in bursts of 256.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>

#include "peer.h"

enum { BURST = 256, BURSTS = 20 };

static GMainContext *context;
static uint64_t ran; /* atomic */
static uint64_t go, gone;
static int end;

static gboolean run_task(gpointer arg)
{
    (void)arg;
    __atomic_store_n(&ran, ran + 1, __ATOMIC_RELEASE);
    return G_SOURCE_REMOVE;
}

static void post(void)
{
    GSource *source = g_idle_source_new();

    g_source_set_callback(source, run_task, NULL, NULL);
    g_source_attach(source, context);
    g_source_unref(source);
}

static void owner_round(void *arg)
{
    (void)arg;
    for (int b = 0; b < BURSTS; b++) {
        uint64_t target = ran + BURST;

        for (int i = 0; i < BURST; i++) {
            post();
        }
        while (ran != target) {
            g_main_context_iteration(context, FALSE);
        }
    }
}

static gpointer poster(gpointer arg)
{
    (void)arg;
    for (uint64_t round = 1;; round++) {
        while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) != round) {
            if (__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
                return NULL;
            }
        }
        for (int b = 0; b < BURSTS; b++) {
            uint64_t target = __atomic_load_n(&ran, __ATOMIC_ACQUIRE) + BURST;

            for (int i = 0; i < BURST; i++) {
                post();
            }
            while (__atomic_load_n(&ran, __ATOMIC_ACQUIRE) < target) {
                if (__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
                    return NULL;
                }
            }
        }
        __atomic_store_n(&gone, round, __ATOMIC_RELEASE);
    }
}

static void other_round(void *arg)
{
    uint64_t round = go + 1;

    (void)arg;
    __atomic_store_n(&go, round, __ATOMIC_RELEASE);
    while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE) != round) {
        g_main_context_iteration(context, FALSE);
    }
}

int main(void)
{
    char version[32];
    GThread *thread;

    snprintf(version, sizeof version, "%u.%u.%u", glib_major_version, glib_minor_version,
             glib_micro_version);
    context = g_main_context_new();
    peer_measure((peer_name){"GLib", version, "tasks", "owner, bursts of 256"}, owner_round, NULL,
                 BURST * BURSTS);
    thread = g_thread_new("poster", poster, NULL);
    peer_measure((peer_name){"GLib", version, "tasks", "another thread, bursts of 256"},
                 other_round, NULL, BURST * BURSTS);
    __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
    g_thread_join(thread);
    g_main_context_unref(context);
    return 0;
}
