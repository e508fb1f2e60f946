/* tests/hostile/test_secrets.c: keys do not outlive what they are for. The test reads the whole
 * writable memory of its own process and looks for them: while the connection lives they must be
 * there (so that the search is known to work), and afterwards nowhere. And no trace has them.
 *
 * What is looked for is kept inverted, so that the test does not find itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <leat/loop.h>

#include "echo.h"
#include "conn/conn.h"
#include "endpoint/endpoint.h"

#define KEYS_MAX 32

typedef struct hidden {
    const char *name;
    size_t len;
    size_t found;
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

/* AddressSanitizer must not look on: much of what is read here is poisoned, and its shadow it would
 * ask about itself. */
#if LEAT_MEM_ASAN
void __asan_get_shadow_mapping(size_t *scale, size_t *offset);
#    define UNCHECKED __attribute__((no_sanitize("address"), noinline))
#else
#    define UNCHECKED
#endif

/* AddressSanitizer's shadow: terabytes that were never touched, and nobody's memory. */
static bool is_shadow(uintptr_t from, uintptr_t to)
{
#if LEAT_MEM_ASAN
    size_t scale, offset;

    __asan_get_shadow_mapping(&scale, &offset);
    return to > offset && from < offset + ((uintptr_t)1 << (47 - scale));
#else
    (void)from, (void)to;
    return false;
#endif
}

/* ---- the search: all keys in one pass ---- */

static uint8_t heads[256]; /* some key begins with this byte */

UNCHECKED static void look_at(const volatile uint8_t *at, const volatile uint8_t *end)
{
    for (size_t k = 0; k < key_count; k++) {
        hidden *h = &keys[k];
        size_t i = 0;

        while (i < h->len && at + i < end && at[i] == byte_of(h, i)) {
            i++;
        }
        h->found += i == h->len;
    }
}

UNCHECKED static void look_through(uintptr_t from, uintptr_t to)
{
    const volatile uint8_t *end = (const volatile uint8_t *)to;

    for (const volatile uint8_t *at = (const volatile uint8_t *)from; at < end; at++) {
        if (heads[*at]) {
            look_at(at, end);
        }
    }
}

/* How often each is found in memory that can be written: heap, data, mapped blocks; not the stack,
 * whose dead frames are nobody's to wipe. */
static void search(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    assert_non_null(maps);
    memset(heads, 0, sizeof(heads));
    for (size_t i = 0; i < key_count; i++) {
        keys[i].found = 0;
        heads[byte_of(&keys[i], 0)] = 1;
    }
    while (fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        char mode[8];

        if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && strncmp(mode, "rw", 2) == 0 &&
            !strstr(line, "[stack]") && !strstr(line, "[v") && !is_shadow(from, to)) {
            look_through(from, to);
        }
    }
    fclose(maps);
}

static void all_are_there(void)
{
    search();
    for (size_t i = 0; i < key_count; i++) {
        assert_true(keys[i].found > 0);
    }
}

static void none_is_left(void)
{
    search();
    for (size_t i = 0; i < key_count; i++) {
        if (keys[i].found > 0) {
            print_message("  %s is still there, %zu times\n", keys[i].name, keys[i].found);
        }
        assert_int_equal(keys[i].found, 0);
    }
}

static leat_echo e;

static void keys_do_not_outlive_their_connection(void **state)
{
    leat_conn *sides[2];

    (void)state;
    key_count = 0;
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
    all_are_there();
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 60 * LEAT_SECOND));
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    none_is_left();
    leat_pair_free(&e.pair); /* only now: the context still has all its memory */
}

static bool client_has_handshake_keys(void *arg)
{
    leat_conn *conn = ((leat_echo *)arg)->pair.conn;

    return conn->hs && leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
}

/* RFC 9001 s4.9.2: when the handshake is confirmed. */
static void handshake_keys_do_not_outlive_the_handshake(void **state)
{
    const leat_level_keys *level;

    (void)state;
    key_count = 0;
    leat_echo_prepare(&e);
    leat_echo_begin(&e);
    assert_true(leat_pair_run(&e.pair, client_has_handshake_keys, &e, LEAT_SECOND));
    level = &e.pair.conn->hs->keys[LEAT_SPACE_HANDSHAKE];
    hide_keys(&level->tx, "a Handshake key", "a Handshake secret");
    hide_keys(&level->rx, "a Handshake key", "a Handshake secret");
    all_are_there();
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.client.closed, 0);
    none_is_left();
    leat_echo_finish(&e);
}

/* Those of an update, too, when the next one has taken their place. */
static void keys_do_not_outlive_their_update(void **state)
{
    (void)state;
    key_count = 0;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    hide_keys(&e.pair.conn->rekey.tx, "an old key", "an old secret");
    key_count -= 2; /* the header protection key stays (RFC 9001 s6.1) */
    hide("an old secret", e.pair.conn->rekey.tx.secret, 32);
    all_are_there();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
        leat_echo_bytes(&e, 1000, 5 * LEAT_SECOND);
        leat_echo_settle(&e, 5 * LEAT_SECOND);
    }
    none_is_left();
    leat_echo_finish(&e);
}

/* Keys of a server, given by its owner; all of its own copies go with it. */
static void keys_of_an_endpoint_are_wiped_with_it(void **state)
{
    (void)state;
    key_count = 0;
    leat_echo_prepare(&e);
    for (size_t i = 0; i < 32; i++) {
        e.setup.server.reset_key[i] = (uint8_t)(0x31 + 7 * i);
        e.setup.server.token_key[i] = (uint8_t)(0xc5 + 11 * i);
    }
    hide("the reset key", e.setup.server.reset_key, 32);
    hide("the token key", e.setup.server.token_key, 32);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    memset(&e.setup.server, 0, sizeof(e.setup.server)); /* the owner's copy */
    all_are_there();
    leat_endpoint_free(e.pair.server);
    e.pair.server = NULL;
    none_is_left();
    leat_endpoint_free(e.pair.client);
    e.pair.client = NULL;
    leat_pair_free(&e.pair);
}

/* ---- traces ---- */

static void find_in_trace(const char *text, const hidden *h)
{
    char hex[17];

    for (size_t i = 0; i < 8; i++) { /* eight bytes of it are too many */
        snprintf(hex + 2 * i, 3, "%02x", byte_of(h, i));
    }
    if (strstr(text, hex)) {
        fail_msg("%s is in the trace", h->name);
    }
}

/* The keys of both sides, and the reset tokens that the client was given. */
static void hide_all(void)
{
    const leat_conn *sides[2] = {e.pair.conn, e.server.conn};

    key_count = 0;
    for (int i = 0; i < 2; i++) {
        hide_keys(&sides[i]->rekey.tx, "a key", "a secret");
        hide_keys(&sides[i]->rekey.rx, "a key", "a secret");
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &e.pair.conn->remote_cids.entry[i];

        if (entry->used && entry->has_token) {
            hide("a reset token", entry->reset_token, LEAT_STATELESS_RESET_TOKEN);
        }
    }
    assert_true(key_count > 12);
}

static void no_secret_is_in_a_trace(void **state)
{
    char folder[] = "/tmp/leat-secrets-XXXXXX", path[512];
    static char text[1 << 20];
    struct dirent *entry;
    unsigned files = 0;
    leat_qlog *qlog;
    DIR *dir;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(leat_qlog_open(folder, &qlog), LEAT_OK);
    leat_echo_prepare(&e);
    e.setup.client.events_sink = e.setup.server.events_sink = leat_qlog_sink(qlog);
    e.setup.tickets = 2;
    leat_echo_connect(&e);
    leat_echo_bytes(&e, 3000, 5 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    hide_all();
    leat_pair_free(&e.pair);
    assert_int_equal(leat_qlog_close(qlog), LEAT_OK);
    dir = opendir(folder);
    while ((entry = readdir(dir)) != NULL) {
        FILE *f;

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        f = fopen(path, "r");
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        fclose(f);
        assert_non_null(strstr(text, "new_connection_id")); /* what has a token is in it */
        for (size_t i = 0; i < key_count; i++) {
            find_in_trace(text, &keys[i]);
        }
        unlink(path);
        files++;
    }
    closedir(dir);
    rmdir(folder);
    assert_int_equal(files, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_do_not_outlive_their_connection),
        cmocka_unit_test(handshake_keys_do_not_outlive_the_handshake),
        cmocka_unit_test(keys_do_not_outlive_their_update),
        cmocka_unit_test(keys_of_an_endpoint_are_wiped_with_it),
        cmocka_unit_test(no_secret_is_in_a_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
