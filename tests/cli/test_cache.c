/* tests/cli/test_cache.c: what `leat serve` keeps in memory: how long it is believed, what happens
 * when files, names and links change under it, and that it stays within its bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "cache.h"

enum { PATH = 512 };

static const uint64_t MOST = 1048576;

static char folder[PATH];
static int root;
static leat_mem *mem;
static leat_cli_cache cache;
static leat_time now;
static int64_t wall_offset; /* of the clock that files are compared with */

/* ---- what the command would bring ---- */

bool leat_cli_random(void *out, size_t len)
{
    memset(out, 0x5a, len);
    return true;
}

void leat_cli_error(const char *format, ...)
{
    fail_msg("%s", format);
}

void *leat_cli_alloc(size_t count, size_t size)
{
    (void)count, (void)size;
    fail_msg("not at start-up");
    return NULL;
}

/* ---- the stage: DIR/www is served, DIR/secret is not ---- */

static int64_t wall(void)
{
    return leat_cli_wall() + wall_offset;
}

static const char *at(const char *name)
{
    static char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *data, size_t len)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void start(uint64_t most, size_t limit)
{
    leat_mem_settings settings;

    leat_mem_settings_init(&settings);
    settings.limit = limit;
    assert_int_equal(leat_mem_new(&settings, &mem), LEAT_OK);
    leat_cli_cache_init(&cache, mem, root, most, wall);
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/leat-cache.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(mkdir(at("www"), 0700), 0);
    put_text("secret", "secret");
    root = open(at("www"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    now = 1000 * LEAT_SECOND;
    wall_offset = 3600 * (int64_t)LEAT_SECOND; /* all files have been at rest for long */
    start(MOST, 0);
    return 0;
}

static int end(void **state)
{
    char command[2 * PATH];

    (void)state;
    leat_cli_cache_free(&cache);
    leat_mem_free(mem); /* asserts that all came back */
    close(root);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static unsigned ask(const char *path, leat_cli_served *out)
{
    unsigned status =
        leat_cli_cache_open(&cache, (leat_span){(const uint8_t *)path, strlen(path)}, now, out);

    leat_cli_cache_check(&cache);
    return status;
}

/* Reads a few bytes at a time. */
static size_t read_served(const leat_cli_served *served, uint8_t *to, size_t step)
{
    size_t len = 0, got = 0;

    while (len < served->file.size) {
        assert_int_equal(leat_cli_served_read(served, len, (leat_mspan){to + len, step}, &got),
                         LEAT_OK);
        assert_true(got > 0);
        len += got;
    }
    return len;
}

static void assert_serves(const char *path, const char *text)
{
    leat_cli_served served;
    uint8_t data[256];

    assert_int_equal(ask(path, &served), 200);
    assert_int_equal(read_served(&served, data, 3), strlen(text));
    assert_memory_equal(data, text, strlen(text));
    leat_cli_served_close(&served);
    leat_cli_cache_check(&cache);
}

static void assert_status(const char *path, unsigned status)
{
    leat_cli_served served;

    assert_int_equal(ask(path, &served), status);
}

static void assert_counts(uint64_t hits, uint64_t looks, uint64_t reads)
{
    assert_int_equal(cache.hits, hits);
    assert_int_equal(cache.looks, looks);
    assert_int_equal(cache.reads, reads);
}

/* ---- how long ---- */

static void a_second_passes_between_two_looks_at_a_file(void **state)
{
    (void)state;
    put_text("www/a", "one");
    assert_serves("/a", "one");
    now += LEAT_SECOND - 1;
    assert_serves("/a", "one");
    assert_serves("/%61?query", "one"); /* the same name */
    assert_counts(2, 1, 1);
    now += 1;
    assert_serves("/a", "one");
    assert_counts(2, 2, 1); /* unchanged: not read again */
    now += LEAT_SECOND - 1;
    assert_serves("/a", "one"); /* from the last look on */
    assert_counts(3, 2, 1);
}

static void a_change_is_served_after_a_second(void **state)
{
    (void)state;
    put_text("www/a", "one");
    assert_serves("/a", "one");
    put_text("www/a", "longer");
    assert_serves("/a", "one");
    now += LEAT_SECOND;
    assert_serves("/a", "longer");
    put("www/a", "", 0);
    now += LEAT_SECOND;
    assert_serves("/a", "");
    put_text("www/a", "again");
    now += LEAT_SECOND;
    assert_serves("/a", "again");
    assert_int_equal(cache.count, 1);
}

/* Two changes in one tick of the kernel's clock leave the same times. */
static void a_file_that_had_just_changed_is_read_again(void **state)
{
    (void)state;
    put_text("www/a", "one");
    wall_offset = 0; /* it is read at once */
    assert_serves("/a", "one");
    put_text("www/a", "two"); /* as long, and maybe in the same tick */
    now += LEAT_SECOND;
    assert_serves("/a", "two");
    assert_counts(0, 2, 2);
    wall_offset = 2 * (int64_t)LEAT_SECOND; /* at rest */
    now += LEAT_SECOND;
    assert_serves("/a", "two");
    assert_counts(0, 3, 3);
    now += LEAT_SECOND;
    assert_serves("/a", "two");
    assert_counts(0, 4, 3);
}

/* ---- what happens to names ---- */

static void a_file_that_goes_is_gone(void **state)
{
    (void)state;
    put_text("www/a", "one");
    assert_serves("/a", "one");
    unlink(at("www/a"));
    now += LEAT_SECOND;
    assert_status("/a", 404);
    assert_int_equal(cache.count, 0);
    assert_int_equal(cache.bytes, 0);
    put_text("www/a", "back");
    assert_serves("/a", "back"); /* what is missing is not kept */
}

static void another_file_of_the_same_size_in_its_place_is_seen(void **state)
{
    char old[2 * PATH];

    (void)state;
    put_text("www/a", "one");
    put_text("www/b", "two");
    assert_serves("/a", "one");
    strcpy(old, at("www/b"));
    assert_int_equal(rename(old, at("www/a")), 0);
    now += LEAT_SECOND;
    assert_serves("/a", "two");
}

static void a_link_that_is_turned_outwards_is_refused(void **state)
{
    (void)state;
    put_text("www/a", "inside");
    assert_int_equal(symlink("a", at("www/link")), 0);
    assert_serves("/link", "inside");
    unlink(at("www/link"));
    assert_int_equal(symlink("../secret", at("www/link")), 0);
    now += LEAT_SECOND;
    assert_status("/link", 403);
    assert_status("/link", 403);
    assert_serves("/a", "inside");
}

static void a_folder_that_is_replaced_by_a_way_out_is_refused(void **state)
{
    char old[2 * PATH];

    (void)state;
    assert_int_equal(mkdir(at("www/sub"), 0700), 0);
    put_text("www/sub/secret", "inside");
    assert_serves("/sub/secret", "inside");
    strcpy(old, at("www/sub"));
    assert_int_equal(rename(old, at("www/moved")), 0);
    assert_int_equal(symlink("..", at("www/sub")), 0);
    now += LEAT_SECOND;
    assert_status("/sub/secret", 403);
    assert_serves("/moved/secret", "inside");
}

static void a_folder_stands_for_its_index(void **state)
{
    leat_cli_served served;

    (void)state;
    assert_int_equal(mkdir(at("www/sub"), 0700), 0);
    put_text("www/sub/index.html", "index");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask("/sub", &served), 200);
        assert_string_equal(served.file.type, "text/html; charset=utf-8");
        leat_cli_served_close(&served);
    }
    assert_counts(1, 1, 1);
    unlink(at("www/sub/index.html"));
    now += LEAT_SECOND;
    assert_status("/sub", 404);
}

static void no_name_leads_out(void **state)
{
    static const char *paths[] = {
        "/../secret", "/%2e%2e/secret", "/a/../../secret", "/a%00", "a", ""};

    (void)state;
    put_text("www/a", "inside");
    assert_serves("/a", "inside");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        leat_cli_served served;
        unsigned status = ask(paths[i], &served);

        assert_true(status == 403 || status == 404);
    }
    assert_int_equal(cache.count, 1);
}

/* ---- while it is served ---- */

static void what_is_being_served_stays_whole(void **state)
{
    leat_cli_served served;
    uint8_t data[16];
    size_t got;

    (void)state;
    put_text("www/a", "whole");
    assert_int_equal(ask("/a", &served), 200);
    assert_int_equal(leat_cli_served_read(&served, 0, (leat_mspan){data, 2}, &got), LEAT_OK);
    assert_int_equal(truncate(at("www/a"), 0), 0);
    now += LEAT_SECOND;
    assert_serves("/a", "");
    assert_int_equal(read_served(&served, data, 2), 5);
    assert_memory_equal(data, "whole", 5);
    leat_cli_served_close(&served);
    assert_int_equal(cache.count, 1);
    assert_true(cache.bytes > 0);
}

static void a_large_file_is_served_from_its_descriptor(void **state)
{
    static uint8_t data[LEAT_FILE_CACHE_FILE_MAX + 1], back[sizeof data];
    leat_cli_served served;
    size_t got;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    put("www/large", data, sizeof data);
    put("www/most", data, sizeof data - 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask("/large", &served), 200);
        assert_null(served.kept);
        assert_int_equal(read_served(&served, back, 4096), sizeof data);
        assert_memory_equal(back, data, sizeof data);
        leat_cli_served_close(&served);
    }
    assert_int_equal(ask("/most", &served), 200);
    assert_non_null(served.kept);
    assert_int_equal(read_served(&served, back, 4096), sizeof data - 1);
    assert_memory_equal(back, data, sizeof data - 1);
    leat_cli_served_close(&served);
    assert_int_equal(ask("/large", &served), 200);
    assert_int_equal(truncate(at("www/large"), 10), 0);
    assert_int_equal(leat_cli_served_read(&served, 10, (leat_mspan){back, 1}, &got), LEAT_ERR_IO);
    leat_cli_served_close(&served);
}

/* ---- bounds ---- */

static void the_files_asked_for_longest_ago_make_room(void **state)
{
    static uint8_t data[30000]; /* 32,768 bytes of memory */
    leat_cli_served served;
    char path[32];

    (void)state;
    for (int i = 0; i < 40; i++) { /* there is room for 32 */
        snprintf(path, sizeof path, "www/%d", i);
        put(path, data, sizeof data);
        assert_int_equal(ask("/0", &served), 200); /* stays the newest but one */
        leat_cli_served_close(&served);
        assert_int_equal(ask(path + 3, &served), 200);
        leat_cli_served_close(&served);
    }
    assert_int_equal(cache.count, MOST / 32768);
    assert_int_equal(cache.reads, 40);
    assert_int_equal(ask("/39", &served), 200);
    leat_cli_served_close(&served);
    assert_int_equal(ask("/0", &served), 200);
    leat_cli_served_close(&served);
    assert_int_equal(cache.reads, 40); /* both were there */
    assert_int_equal(ask("/1", &served), 200);
    leat_cli_served_close(&served);
    assert_int_equal(cache.reads, 41);
}

static void what_slow_readers_hold_counts(void **state)
{
    static uint8_t data[60000]; /* 65,536 bytes of memory */
    leat_cli_served held[32];
    char path[32];
    size_t kept = 0;

    (void)state;
    for (int i = 0; i < 32; i++) { /* each changes, and is held in its old form and its new one */
        snprintf(path, sizeof path, "www/%d", i / 2);
        data[0] = (uint8_t)i;
        put(path, data, sizeof data - (size_t)(i % 2));
        assert_int_equal(ask(path + 3, &held[i]), 200);
        kept += held[i].kept != NULL;
        now += LEAT_SECOND;
    }
    assert_int_equal(kept, MOST / 65536);
    assert_int_equal(cache.bytes, MOST);
    for (int i = 0; i < 32; i++) {
        uint8_t first = 0;
        size_t got;

        assert_int_equal(leat_cli_served_read(&held[i], 0, (leat_mspan){&first, 1}, &got), LEAT_OK);
        if (held[i].kept) {
            assert_int_equal(first, i);
        }
        leat_cli_served_close(&held[i]);
        leat_cli_cache_check(&cache);
    }
    assert_int_equal(cache.bytes, 65536 * cache.count);
}

static void so_many_files_and_no_more_are_kept(void **state)
{
    char path[32];

    (void)state;
    for (int i = 0; i < LEAT_FILE_CACHE_FILES_MAX + 10; i++) {
        snprintf(path, sizeof path, "www/%d", i);
        put_text(path, path);
        assert_serves(path + 3, path);
    }
    assert_int_equal(cache.count, LEAT_FILE_CACHE_FILES_MAX);
    assert_true(cache.bytes < cache.most);
}

static void without_room_files_are_opened(void **state)
{
    static const uint64_t most[] = {0, 64};

    (void)state;
    put_text("www/a", "one");
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        leat_cli_cache_free(&cache);
        leat_mem_free(mem);
        start(most[i], 0);
        for (int j = 0; j < 3; j++) {
            assert_serves("/a", "one");
        }
        assert_int_equal(cache.bytes, 0);
        assert_int_equal(cache.looks, 3);
    }
}

static void without_memory_files_are_opened(void **state)
{
    static uint8_t data[60000], back[sizeof data];
    leat_cli_served held[16];
    char path[32];
    size_t kept = 0;

    (void)state;
    leat_cli_cache_free(&cache);
    leat_mem_free(mem);
    start(MOST, 524288); /* half of what the cache may have */
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "www/%d", i);
        data[0] = (uint8_t)i;
        put(path, data, sizeof data);
        assert_int_equal(ask(path + 3, &held[i]), 200);
        kept += held[i].kept != NULL;
    }
    assert_in_range(kept, 1, 8);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(read_served(&held[i], back, 4096), sizeof data);
        assert_int_equal(back[0], i);
        leat_cli_served_close(&held[i]);
    }
}

/* Names that come and go in a cache that is too small for them: memory is asked of the system until
 * the cache has been full, and no more. */
static void a_full_cache_takes_no_more_memory(void **state)
{
    static uint8_t data[3000];
    leat_mem_stats before, after;
    leat_cli_served served;
    char path[32];

    (void)state;
    for (int i = 0; i < 300; i++) { /* room for 256 */
        snprintf(path, sizeof path, "www/%d", i);
        put(path, data, sizeof data);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(path, sizeof path, "/%d", i % 300);
        assert_int_equal(ask(path, &served), 200);
        leat_cli_served_close(&served);
        leat_mem_stats_get(mem, i < 300 ? &before : &after);
    }
    assert_int_equal(cache.reads, 3000); /* in turns, none is there when it is asked for again */
    assert_int_equal(after.grown, before.grown);
}

static void what_it_serves_is_what_there_was_within_a_second(void **state)
{
    enum { FILES = 12, STEPS = 4000, HELD = 6 };
    struct {
        int text; /* below 0: none */
        int old;  /* the one before */
        leat_time changed;
    } files[FILES];
    uint64_t seed = 20261130;
    leat_prng prng;
    leat_cli_served held[HELD];
    int held_text[HELD];
    char path[32], text[64];

    (void)state;
    leat_prng_seed(&prng, seed);
    for (int i = 0; i < FILES; i++) {
        files[i].text = files[i].old = -1;
        files[i].changed = 0;
    }
    memset(held_text, 0xff, sizeof held_text);
    wall_offset = 0;
    for (int step = 0; step < STEPS; step++) {
        size_t f = leat_prng_u64(&prng) % FILES, h = leat_prng_u64(&prng) % HELD;

        snprintf(path, sizeof path, "www/%zu", f);
        if (leat_prng_u64(&prng) % 8 == 0 && now > files[f].changed + LEAT_SECOND) {
            files[f].old = files[f].text;
            files[f].text = leat_prng_u64(&prng) % 4 ? step : -1;
            files[f].changed = now;
            unlink(at(path));
            if (files[f].text >= 0) {
                snprintf(text, sizeof text, "%d", files[f].text);
                put_text(path, text);
            }
        } else if (held_text[h] >= 0) {
            uint8_t data[64] = {0};

            read_served(&held[h], data, 1 + leat_prng_u64(&prng) % 9);
            assert_int_equal(atoi((char *)data), held_text[h]);
            leat_cli_served_close(&held[h]);
            held_text[h] = -1;
        } else {
            unsigned status = ask(path + 3, &held[h]);
            bool settled = now >= files[f].changed + LEAT_SECOND;

            if (status == 200) {
                uint8_t data[64] = {0};

                read_served(&held[h], data, sizeof data);
                held_text[h] = atoi((char *)data);
                assert_true(held_text[h] == files[f].text ||
                            (!settled && held_text[h] == files[f].old));
            } else {
                assert_int_equal(status, 404);
                assert_true(files[f].text < 0 || (!settled && files[f].old < 0));
            }
        }
        now += leat_prng_u64(&prng) % (LEAT_SECOND / 4);
        leat_cli_cache_check(&cache);
    }
    assert_true(cache.hits > 0 && cache.reads > 0);
    for (int h = 0; h < HELD; h++) {
        if (held_text[h] >= 0) {
            leat_cli_served_close(&held[h]);
        }
    }
}

static void what_is_served_outlives_the_cache(void **state)
{
    leat_cli_served served;
    uint8_t data[8];

    (void)state;
    put_text("www/a", "whole");
    assert_int_equal(ask("/a", &served), 200);
    leat_cli_cache_free(&cache);
    assert_int_equal(read_served(&served, data, 2), 5);
    leat_cli_served_close(&served);
    assert_int_equal(cache.bytes, 0);
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(a_second_passes_between_two_looks_at_a_file),
        CACHE_TEST(a_change_is_served_after_a_second),
        CACHE_TEST(a_file_that_had_just_changed_is_read_again),
        CACHE_TEST(a_file_that_goes_is_gone),
        CACHE_TEST(another_file_of_the_same_size_in_its_place_is_seen),
        CACHE_TEST(a_link_that_is_turned_outwards_is_refused),
        CACHE_TEST(a_folder_that_is_replaced_by_a_way_out_is_refused),
        CACHE_TEST(a_folder_stands_for_its_index),
        CACHE_TEST(no_name_leads_out),
        CACHE_TEST(what_is_being_served_stays_whole),
        CACHE_TEST(a_large_file_is_served_from_its_descriptor),
        CACHE_TEST(the_files_asked_for_longest_ago_make_room),
        CACHE_TEST(what_slow_readers_hold_counts),
        CACHE_TEST(so_many_files_and_no_more_are_kept),
        CACHE_TEST(without_room_files_are_opened),
        CACHE_TEST(without_memory_files_are_opened),
        CACHE_TEST(a_full_cache_takes_no_more_memory),
        CACHE_TEST(what_it_serves_is_what_there_was_within_a_second),
        CACHE_TEST(what_is_served_outlives_the_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
