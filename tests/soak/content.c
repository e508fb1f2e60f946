/* tests/soak/content.c: bytes that follow from a key, and what is counted.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "soak.h"

soak_counts soak_count;

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t soak_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state);
}

/* Eight bytes at a time, wherever the piece begins. */
void soak_fill(uint64_t key, uint64_t offset, uint8_t *out, size_t len)
{
    while (len > 0) {
        uint64_t word = mix(key ^ (offset >> 3) * UINT64_C(0xd1342543de82ef95));
        size_t skip = offset & 7;
        size_t n = 8 - skip < len ? 8 - skip : len;

        memcpy(out, (const uint8_t *)&word + skip, n);
        out += n;
        offset += n;
        len -= n;
    }
}

bool soak_same(uint64_t key, uint64_t offset, const uint8_t *data, size_t len)
{
    uint8_t want[1024];

    while (len > 0) {
        size_t n = len < sizeof want ? len : sizeof want;

        soak_fill(key, offset, want, n);
        if (memcmp(want, data, n) != 0) {
            return false;
        }
        data += n;
        offset += n;
        len -= n;
    }
    return true;
}

void soak_fault(const char *format, ...)
{
    va_list args;

    soak_count.faults++;
    va_start(args, format);
    printf("FAULT ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
}

unsigned soak_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    while (dir && readdir(dir)) {
        count++;
    }
    if (dir) {
        closedir(dir);
        count -= 3; /* itself, and two dots */
    }
    return count;
}
