/* The receiving side when memory is short.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <unistd.h>

#include "io/rx.h"
#include "mem/mem.h"

enum { MESSAGES = LEAT_RX_SLOTS };

typedef struct fixture {
    leat_mem *mem;
    leat_rx rx;
    leat_sock to, from;
    leat_udp_stats stats;
    unsigned got;
    bool keep; /* what was received */
    leat_buf kept[MESSAGES];
} fixture;

static void open_fixture(fixture *f)
{
    leat_udp_settings settings;

    memset(f, 0, sizeof(*f));
    assert_int_equal(leat_mem_new(NULL, &f->mem), LEAT_OK);
    assert_int_equal(leat_rx_init(&f->rx, f->mem), LEAT_OK);
    leat_udp_settings_init(&settings);
    settings.local = parse_addr("127.0.0.1:0");
    assert_int_equal(leat_sock_open(&f->to, &settings), LEAT_OK);
    settings.remote = f->to.local;
    assert_int_equal(leat_sock_open(&f->from, &settings), LEAT_OK);
}

static void release_kept(fixture *f)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        leat_buf_release(&f->kept[i]);
    }
}

static void close_fixture(fixture *f)
{
    release_kept(f);
    leat_sock_close(&f->to);
    leat_sock_close(&f->from);
    leat_rx_free(&f->rx);
    leat_mem_free(f->mem);
}

static void send_numbers(fixture *f, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        assert_int_equal(write(f->from.fd, &n, sizeof(n)), sizeof(n));
    }
}

static void on_message(void *user, leat_buf *buf, const leat_recv_info *info)
{
    fixture *f = user;
    uint32_t n;

    (void)info;
    assert_int_equal(buf->len, sizeof(n));
    memcpy(&n, buf->data, sizeof(n));
    assert_int_equal(n, f->got);
    f->got++;
    if (f->keep) {
        f->kept[n] = *buf;
        *buf = (leat_buf){0};
    } else {
        leat_buf_release(buf);
    }
}

static void read_all(fixture *f)
{
    while (leat_rx_read(&f->rx, &f->to, &f->stats, on_message, f)) {
    }
}

/* Where copies find no memory a message takes its slot's buffer along; given back, it is there for
 * the next. */
static void messages_come_through_without_memory(void **state)
{
    fixture f;

    (void)state;
    open_fixture(&f);
    leat_mem_fault_set(f.mem, LEAT_MEM_FAULT_GROWTH, 1, true);
    for (unsigned round = 0; round < 10; round++) {
        f.got = 0;
        send_numbers(&f, LEAT_RX_SLOTS - 1);
        read_all(&f);
        assert_int_equal(f.got, LEAT_RX_SLOTS - 1);
    }
    assert_int_equal(f.stats.recv_dropped, 0);
    assert_int_equal(f.stats.recv_copied, 0);
    close_fixture(&f);
}

static void the_last_slot_keeps_its_buffer(void **state)
{
    fixture f;

    (void)state;
    open_fixture(&f);
    leat_mem_fault_set(f.mem, LEAT_MEM_FAULT_GROWTH, 1, true);
    f.keep = true;
    send_numbers(&f, LEAT_RX_SLOTS + 2);
    read_all(&f);
    assert_int_equal(f.got, LEAT_RX_SLOTS - 1);
    assert_int_equal(f.stats.recv_dropped, 3);

    release_kept(&f);
    f.keep = false;
    f.got = 0;
    send_numbers(&f, LEAT_RX_SLOTS - 1);
    read_all(&f);
    assert_int_equal(f.got, LEAT_RX_SLOTS - 1);
    assert_int_equal(f.stats.recv_dropped, 3);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_through_without_memory),
        cmocka_unit_test(the_last_slot_keeps_its_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
