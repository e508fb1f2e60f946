/* tests/oom/test_io.c: memory fails below the ready loop: when loop, sockets, groups and watches
 * are made, when datagrams are read and sent, and when files are opened. Endpoints are fake: those
 * of QUIC are tried in the other files.
 *
 * The linker puts __wrap_leat_mem_new() in the place of leat_mem_new(), so that a memory can be
 * told to fail that is made inside.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <unistd.h>

#include <leat/loop.h>

#include "../unit/io/fake_endpoint.h"
#include "mem/mem.h"

static struct {
    leat_mem *mem; /* the memory that fails: the next one that is made */
    bool wanted;
    uint64_t nth; /* 1: it is not made; 2: its first take fails, … */
    leat_mem_fault kind;
    bool lasting;
    bool hit;
} order;

leat_err __real_leat_mem_new(const leat_mem_settings *settings, leat_mem **out);
leat_err __wrap_leat_mem_new(const leat_mem_settings *settings, leat_mem **out);
leat_err __wrap_leat_mem_new(const leat_mem_settings *settings, leat_mem **out)
{
    leat_err err;

    if (order.wanted && order.nth == 1) {
        order.wanted = false;
        order.hit = true;
        *out = NULL;
        return LEAT_ERR_NOMEM;
    }
    err = __real_leat_mem_new(settings, out);
    if (err == LEAT_OK && order.wanted) {
        order.wanted = false;
        order.mem = *out;
        leat_mem_fault_set(*out, order.kind, order.nth - 1, order.lasting);
    }
    return err;
}

static void arm(leat_mem_fault kind, uint64_t nth, bool lasting)
{
    memset(&order, 0, sizeof(order));
    order.wanted = true;
    order.kind = kind;
    order.nth = nth;
    order.lasting = lasting;
}

/* Whether memory has failed, while it is there. */
static bool hit(void)
{
    order.hit = order.hit || (order.mem && leat_mem_fault_count(order.mem) > 0);
    return order.hit;
}

static void disarm(void)
{
    hit();
    if (order.mem) {
        leat_mem_fault_set(order.mem, LEAT_MEM_FAULT_NONE, 0, false);
    }
}

static unsigned open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count;
}

/* An error is LEAT_ERR_NOMEM, and only when memory has failed. */
static bool made(leat_err err)
{
    assert_true(err == LEAT_OK || (err == LEAT_ERR_NOMEM && hit()));
    return err == LEAT_OK;
}

/* The same of what has its memory inside, and takes it along when it cannot be made. */
static bool survives(leat_err err)
{
    if (err != LEAT_OK) {
        assert_int_equal(err, LEAT_ERR_NOMEM);
        assert_true(order.hit || order.mem);
        order.mem = NULL;
        order.hit = true;
    }
    return err == LEAT_OK;
}

/* ---- the loop ---- */

typedef struct things {
    leat_loop *loop;
    leat_udp *udp[2]; /* the second is in a group */
    leat_udp_group group;
    leat_addr added;
    leat_watch *watch;
    int pipe[2];
} things;

static void on_watch(leat_watch *watch, int fd, uint32_t ready, void *user)
{
    (void)watch, (void)fd, (void)ready, (void)user;
}

/* What is not there yet is made. True: all of it is. */
static bool make(things *t)
{
    leat_udp_settings settings;
    leat_endpoint_settings endpoint = {0};
    bool all = true;

    for (int i = 0; i < 2; i++) {
        leat_udp_settings_init(&settings);
        assert_int_equal(leat_addr_parse("127.0.0.1:0", &settings.local), LEAT_OK);
        settings.group = i == 1 ? &t->group : NULL;
        t->group.count = 1;
        if (!t->udp[i]) {
            all = made(leat_udp_open(t->loop, &settings, &endpoint, &t->udp[i])) && all;
        }
    }
    leat_udp_settings_init(&settings);
    assert_int_equal(leat_addr_parse("127.0.0.1:0", &settings.local), LEAT_OK);
    if (t->udp[0] && t->added.family == 0 && !made(leat_udp_add(t->udp[0], &settings, &t->added))) {
        t->added.family = 0;
    }
    if (!t->watch) {
        made(leat_watch_add(t->loop, t->pipe[0], LEAT_WATCH_READ, on_watch, NULL, &t->watch));
    }
    return all && t->added.family != 0 && t->watch;
}

/* Batches from one to the other, as one send and as many. */
static void send(things *t, uint8_t fill)
{
    leat_addr to = leat_udp_local(t->udp[1]);

    fake_queue(leat_udp_endpoint(t->udp[0]), &to, 3000, 1000, fill, 0);
    fake_queue(leat_udp_endpoint(t->udp[0]), &to, 100, 100, fill, 0);
}

static bool came(const things *t, uint8_t fill)
{
    const leat_endpoint *e = leat_udp_endpoint(t->udp[1]);

    return e->received_count > 0 && e->received[e->received_count - 1].buf.data[0] == fill;
}

static void drop(things *t)
{
    leat_watch_remove(t->watch);
    for (int i = 0; i < 2; i++) {
        if (t->udp[i]) {
            fake_forget(leat_udp_endpoint(t->udp[i]));
        }
        leat_udp_close(t->udp[i]);
    }
    leat_loop_free(t->loop);
    close(t->pipe[0]);
    close(t->pipe[1]);
}

static bool try_loop(leat_mem_fault kind, uint64_t nth, bool lasting)
{
    unsigned files = open_files();
    things t = {.added = {0}};
    bool failed;

    assert_int_equal(pipe(t.pipe), 0);
    arm(kind, nth, lasting);
    if (survives(leat_loop_new(NULL, &t.loop))) {
        if (make(&t)) {
            send(&t, 1);
        }
        for (int i = 0; i < 8; i++) { /* what comes, comes: some may be lost */
            assert_int_equal(leat_loop_turn(t.loop, 0), LEAT_OK);
        }
        disarm();
        assert_true(make(&t)); /* the same calls again, and now there is memory */
        send(&t, 2);
        while (!came(&t, 2)) {
            assert_int_equal(leat_loop_turn(t.loop, LEAT_TIME_NEVER), LEAT_OK);
        }
        leat_mem_check(order.mem);
    } else {
        assert_null(t.loop);
    }
    failed = hit();
    drop(&t);
    assert_int_equal(open_files(), files);
    return failed;
}

static uint64_t try_all(bool (*one)(leat_mem_fault kind, uint64_t nth, bool lasting),
                        leat_mem_fault kind, bool lasting)
{
    uint64_t n = 1;

    while (one(kind, n, lasting)) {
        n++;
    }
    return n - 1;
}

static void memory_fails_below_the_loop(void **state)
{
    (void)state;
    assert_true(try_all(try_loop, LEAT_MEM_FAULT_TAKE, false) > 20);
    try_all(try_loop, LEAT_MEM_FAULT_TAKE, true);
    assert_true(try_all(try_loop, LEAT_MEM_FAULT_GROWTH, false) > 2);
    try_all(try_loop, LEAT_MEM_FAULT_GROWTH, true);
}

/* ---- files ---- */

static char folder[] = "/tmp/leat-oom-XXXXXX";

static bool try_files(leat_mem_fault kind, uint64_t nth, bool lasting, int which)
{
    unsigned files = open_files();
    char path[64];
    leat_err err;
    bool failed;

    snprintf(path, sizeof(path), "%s/file", folder);
    arm(kind, nth, lasting);
    if (which == 0) {
        leat_keylog *keylog;
        err = leat_keylog_open(path, &keylog);
        failed = !survives(err);
        disarm();
        if (!failed) {
            leat_keylog_write(keylog, "LINE");
            assert_int_equal(leat_keylog_close(keylog), LEAT_OK);
        }
    } else if (which == 1) {
        leat_pcap *pcap;
        leat_addr addr = {.family = 4, .port = 1};
        err = leat_pcap_open(path, &pcap);
        failed = !survives(err);
        disarm();
        if (!failed) {
            leat_pcap_write(pcap, 1, &addr, &addr, 0, (leat_span){(const uint8_t *)"abc", 3});
            assert_int_equal(leat_pcap_close(pcap), LEAT_OK);
        }
    } else {
        leat_qlog *qlog;
        err = leat_qlog_open(folder, &qlog);
        failed = !survives(err);
        disarm();
        if (!failed) {
            assert_int_equal(leat_qlog_close(qlog), LEAT_OK);
        }
    }
    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
    assert_int_equal(open_files(), files);
    return failed;
}

static bool try_keylog(leat_mem_fault kind, uint64_t nth, bool lasting)
{
    return try_files(kind, nth, lasting, 0);
}

static bool try_pcap(leat_mem_fault kind, uint64_t nth, bool lasting)
{
    return try_files(kind, nth, lasting, 1);
}

static bool try_qlog(leat_mem_fault kind, uint64_t nth, bool lasting)
{
    return try_files(kind, nth, lasting, 2);
}

static void memory_fails_for_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_true(try_all(try_keylog, LEAT_MEM_FAULT_TAKE, false) >= 2);
    assert_true(try_all(try_pcap, LEAT_MEM_FAULT_TAKE, false) >= 2);
    assert_true(try_all(try_qlog, LEAT_MEM_FAULT_TAKE, false) >= 2);
    assert_true(try_all(try_keylog, LEAT_MEM_FAULT_GROWTH, true) >= 2);
    assert_true(try_all(try_pcap, LEAT_MEM_FAULT_GROWTH, true) >= 2);
    assert_true(try_all(try_qlog, LEAT_MEM_FAULT_GROWTH, true) >= 2);
}

/* A qlog's file of one connection, and a file that is read. */
static void memory_fails_for_what_is_read(void **state)
{
    leat_mem *mem;
    leat_buf buf;
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "%s/file", folder);
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, false);
    assert_int_equal(leat_file_read(mem, path, 100000, &buf), LEAT_ERR_NOMEM);
    assert_int_equal(leat_file_read(mem, path, 100000, &buf), LEAT_OK);
    leat_buf_release(&buf);
    leat_mem_check(mem);
    leat_mem_free(mem);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_below_the_loop),
        cmocka_unit_test(memory_fails_for_files),
        cmocka_unit_test(memory_fails_for_what_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
