/* fuzz/rtp_file.c: libFuzzer on capture files, pcap and rtpdump, as `leat rtp dump` reads and
 * prints them: offsets lie in the file and grow, what cannot be read is told.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/rtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static unsigned told; /* messages */

/* In place of the command's, which writes them to standard error. */
void leat_cli_error(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    check(vsnprintf(text, sizeof text, format, args) > 0);
    va_end(args);
    told++;
}

/* In place of io/'s, which needs sockets. */
const char *leat_addr_format(const leat_addr *addr, char out[LEAT_ADDR_TEXT_MAX])
{
    check(addr->family == 4 || addr->family == 6);
    snprintf(out, LEAT_ADDR_TEXT_MAX, "%u:%u", addr->ip[0], addr->port);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat_cli_capture capture;
    static leat_cli_rtp_printer printer;
    static int fd = -1;
    static char path[32];
    leat_cli_datagram d;
    uint64_t last = 0;
    leat_cli_exit code;

    if (fd < 0) {
        fd = memfd_create("capture", 0);
        check(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        printer.to = fopen("/dev/null", "w");
        check(printer.to != NULL);
    }
    check(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    told = 0;
    printer.json = size & 1;
    code = leat_cli_capture_open(&capture, path);
    check((code == LEAT_EXIT_OK) == (told == 0));
    while (code == LEAT_EXIT_OK && leat_cli_capture_next(&capture, &d)) {
        check(d.offset > last && d.offset + d.data.len <= size);
        last = d.offset;
        leat_cli_rtp_print(&printer, &d);
    }
    check(capture.at <= size + 1);
    leat_cli_capture_close(&capture);
    return 0;
}
