/* Files: read whole, key log, captures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/udpip.h"

static char folder[] = "/tmp/leat-test-XXXXXX";
static char path[256];
static leat_mem *mem;

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL || leat_mem_new(NULL, &mem) != LEAT_OK) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/file", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    leat_mem_free(mem);
    return rmdir(folder);
}

static void write_file(const void *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
}

static void file_is_read_whole_and_terminated(void **state)
{
    (void)state;
    leat_buf buf;
    static char text[100000];
    memset(text, 'x', sizeof(text));
    const size_t sizes[] = {0, 1, 4096, sizeof(text)};
    for (int i = 0; i < 4; i++) {
        write_file(text, sizes[i]);
        assert_int_equal(leat_file_read(mem, path, sizeof(text), &buf), LEAT_OK);
        assert_int_equal(buf.len, sizes[i] + 1);
        assert_memory_equal(buf.data, text, sizes[i]);
        assert_int_equal(buf.data[sizes[i]], 0);
        leat_buf_release(&buf);
    }
    unlink(path);
}

static void file_too_large_or_missing_is_an_error(void **state)
{
    (void)state;
    leat_buf buf;
    write_file("12345", 5);
    assert_int_equal(leat_file_read(mem, path, 5, &buf), LEAT_OK);
    leat_buf_release(&buf);
    assert_int_equal(leat_file_read(mem, path, 4, &buf), LEAT_ERR_LIMIT);
    assert_null(buf.block);
    unlink(path);
    assert_int_equal(leat_file_read(mem, path, 4, &buf), LEAT_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(leat_file_read(mem, folder, 4, &buf), LEAT_ERR_IO);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(leat_file_read(mem, "/dev/zero", 1000, &buf), LEAT_ERR_LIMIT);
}

static void keylog_appends_lines_for_the_owner_alone(void **state)
{
    (void)state;
    leat_keylog *keylog;
    leat_buf buf;
    struct stat st;
    for (int i = 0; i < 2; i++) { /* the second opening appends */
        assert_int_equal(leat_keylog_open(path, &keylog), LEAT_OK);
        assert_non_null(keylog);
        leat_keylog_write(keylog, i == 0 ? "CLIENT_RANDOM 00 11" : "SECOND");
        leat_keylog_close(keylog);
    }
    assert_int_equal(leat_file_read(mem, path, 1000, &buf), LEAT_OK);
    assert_string_equal((const char *)buf.data, "CLIENT_RANDOM 00 11\nSECOND\n");
    leat_buf_release(&buf);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    unlink(path);
}

static void a_full_disk_is_told_by_the_key_log(void **state)
{
    (void)state;
    leat_keylog *keylog;
    assert_int_equal(leat_keylog_open("/dev/full", &keylog), LEAT_OK);
    assert_int_equal(leat_keylog_close(keylog), LEAT_OK); /* nothing was to be written */
    assert_int_equal(leat_keylog_open("/dev/full", &keylog), LEAT_OK);
    assert_int_equal(leat_keylog_error(keylog), 0);
    leat_keylog_write(keylog, "CLIENT_RANDOM 00 11");
    assert_int_equal(leat_keylog_error(keylog), ENOSPC);
    assert_int_equal(leat_keylog_close(keylog), LEAT_ERR_IO);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(leat_keylog_error(NULL), 0);
}

static void keylog_is_off_unless_asked(void **state)
{
    (void)state;
    leat_keylog *keylog = (leat_keylog *)&state;
    unsetenv("SSLKEYLOGFILE");
    assert_int_equal(leat_keylog_open(NULL, &keylog), LEAT_OK);
    assert_null(keylog);
    leat_keylog_close(keylog);
    setenv("SSLKEYLOGFILE", path, 1);
    assert_int_equal(leat_keylog_open(NULL, &keylog), LEAT_OK);
    assert_non_null(keylog);
    leat_keylog_close(keylog);
    assert_int_equal(unlink(path), 0);
    setenv("SSLKEYLOGFILE", "/no/such/folder/keys", 1);
    assert_int_equal(leat_keylog_open(NULL, &keylog), LEAT_ERR_IO);
    assert_int_equal(errno, ENOENT);
    unsetenv("SSLKEYLOGFILE");
}

static uint32_t get32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return value;
}

/* Asserts what the record at p says and returns the one behind it. */
static const uint8_t *check_record(const uint8_t *p, leat_time now, const leat_addr *src,
                                   const leat_addr *dst, size_t len)
{
    leat_udpip how;
    leat_span payload;
    assert_int_equal(get32(p), now / LEAT_SECOND);
    assert_int_equal(get32(p + 4), now % LEAT_SECOND);
    size_t packet = get32(p + 8);
    assert_int_equal(get32(p + 12), packet);
    assert_int_equal(leat_udpip_parse(p + 16, packet, &how, &payload), LEAT_OK);
    assert_int_equal(payload.len, len);
    assert_int_equal(how.ecn, LEAT_ECN_ECT0);
    assert_same_addr(&how.src, src);
    assert_same_addr(&how.dst, dst);
    return p + 16 + packet;
}

static void capture_holds_ip_packets(void **state)
{
    (void)state;
    leat_pcap *pcap;
    leat_buf buf;
    static uint8_t bytes[65000];
    leat_addr a4 = parse_addr("10.0.0.1:1"), b4 = parse_addr("10.0.0.2:2");
    leat_addr a6 = parse_addr("[2001:db8::1]:3"), b6 = parse_addr("[2001:db8::2]:4");
    assert_int_equal(leat_pcap_open(path, &pcap), LEAT_OK);
    leat_span small = {bytes, 33}, large = {bytes, sizeof(bytes)}, none = {NULL, 0};
    leat_pcap_write(pcap, 5 * LEAT_SECOND + 7, &a4, &b4, LEAT_ECN_ECT0, small);
    leat_pcap_write(pcap, 1, &a4, &b6, LEAT_ECN_ECT0, small); /* two families: left out */
    leat_pcap_write(pcap, 6 * LEAT_SECOND, &a6, &b6, LEAT_ECN_ECT0, none);
    for (int i = 0; i < 9; i++) { /* more than the writer's buffer */
        leat_pcap_write(pcap, 7 * LEAT_SECOND, &b6, &a6, LEAT_ECN_ECT0, large);
    }
    assert_int_equal(leat_pcap_close(pcap), LEAT_OK);
    assert_int_equal(leat_file_read(mem, path, 1000000, &buf), LEAT_OK);
    assert_int_equal(get32(buf.data), 0xa1b23c4d);
    assert_int_equal(get32(buf.data + 20), 101);
    const uint8_t *p = buf.data + 24;
    p = check_record(p, 5 * LEAT_SECOND + 7, &a4, &b4, 33);
    p = check_record(p, 6 * LEAT_SECOND, &a6, &b6, 0);
    for (int i = 0; i < 9; i++) {
        p = check_record(p, 7 * LEAT_SECOND, &b6, &a6, sizeof(bytes));
    }
    assert_ptr_equal(p, buf.data + buf.len - 1);
    leat_buf_release(&buf);
    unlink(path);
}

static void capture_that_cannot_be_written_says_so(void **state)
{
    (void)state;
    leat_pcap *pcap;
    assert_int_equal(leat_pcap_open("/no/such/folder/x.pcap", &pcap), LEAT_ERR_IO);
    assert_null(pcap);
    assert_int_equal(leat_pcap_open("/dev/full", &pcap), LEAT_OK);
    assert_int_equal(leat_pcap_close(pcap), LEAT_ERR_IO);
    assert_int_equal(leat_pcap_close(NULL), LEAT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_read_whole_and_terminated),
        cmocka_unit_test(file_too_large_or_missing_is_an_error),
        cmocka_unit_test(keylog_appends_lines_for_the_owner_alone),
        cmocka_unit_test(a_full_disk_is_told_by_the_key_log),
        cmocka_unit_test(keylog_is_off_unless_asked),
        cmocka_unit_test(capture_holds_ip_packets),
        cmocka_unit_test(capture_that_cannot_be_written_says_so),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
