/* tests/hostile/test_secrets.c: keys do not outlive their connection. The test reads the whole
 * writable memory of its own process and looks for them: while the connection lives they must be
 * there (so that the search is known to work), and afterwards nowhere.
 *
 * What is looked for is kept inverted, so that the test does not find itself. Not under
 * AddressSanitizer, which keeps what is freed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "echo.h"
#include "conn/conn.h"

#define KEYS_MAX 32

typedef struct hidden {
    const char *name;
    size_t len;
    uint8_t inverted[LEAT_SECRET_MAX];
} hidden;

static hidden keys[KEYS_MAX];
static size_t key_count;

static void hide(const char *name, const uint8_t *key, size_t len)
{
    hidden *h = &keys[key_count++];

    assert_true(key_count <= KEYS_MAX);
    h->name = name;
    h->len = len;
    for (size_t i = 0; i < len; i++) {
        h->inverted[i] = key[i] ^ 0xff;
    }
}

static void hide_keys(const leat_packet_keys *k, const char *key, const char *secret)
{
    assert_true(leat_packet_keys_ready(k));
    hide(key, k->key, 16);
    hide(key, k->hp, 16);
    hide(secret, k->secret, 32);
}

static uint8_t byte_of(const hidden *h, size_t i)
{
    return (uint8_t)(h->inverted[i] ^ 0xff);
}

static bool matches(const volatile uint8_t *at, const hidden *h)
{
    for (size_t i = 0; i < h->len; i++) {
        if (at[i] != byte_of(h, i)) {
            return false;
        }
    }
    return true;
}

/* How often it is found in memory that can be written: heap, data, mapped blocks; not the stack,
 * whose dead frames are nobody's to wipe. */
static size_t count(const hidden *h)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    size_t found = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        char mode[8];

        if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[0] != 'r' ||
            mode[1] != 'w' || strstr(line, "[stack]") || strstr(line, "[v")) {
            continue;
        }
        for (const volatile uint8_t *at = (const volatile uint8_t *)from;
             at + h->len <= (const volatile uint8_t *)to; at++) {
            found += at[0] == byte_of(h, 0) && matches(at, h);
        }
    }
    fclose(maps);
    return found;
}

static void keys_do_not_outlive_their_connection(void **state)
{
    static leat_echo e;
    leat_conn *sides[2];

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    sides[0] = e.pair.conn;
    sides[1] = e.server.conn;
    for (int i = 0; i < 2; i++) {
        hide_keys(&sides[i]->rekey.tx, "a 1-RTT key", "a 1-RTT secret");
        hide_keys(&sides[i]->rekey.rx, "a 1-RTT key", "a 1-RTT secret");
    }
    for (size_t i = 0; i < key_count; i++) {
        assert_true(count(&keys[i]) > 0);
    }
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 60 * LEAT_SECOND));
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    for (size_t i = 0; i < key_count; i++) {
        size_t left = count(&keys[i]);

        if (left > 0) {
            print_message("  %s is still there, %zu times\n", keys[i].name, left);
        }
        assert_int_equal(left, 0);
    }
    leat_pair_free(&e.pair); /* only now: the context still has all its memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_do_not_outlive_their_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
