/* ccfb_lines: RFC 8888 reports as lines of text, so that another implementation can be held against
 * leat.
 *
 *   ccfb_lines make SEED COUNT   writes reports, a line of hexadecimal digits each
 *   ccfb_lines read              reads such lines and writes what each says:
 *                                "sender time | ssrc seq received ecn ato | …"
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/ccfb.h>

#include "base/prng.h"

enum { MOST = 8192 };

static void write_hex(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", data[i]);
    }
    putchar('\n');
}

/* One to four streams, of which each has at least two numbers to report (see pion_ccfb.go). */
static void record_some(leat_ccfb_recorder *r, leat_prng *prng, leat_time *now)
{
    uint32_t streams = (uint32_t)leat_prng_between(prng, 1, 4);

    for (uint32_t s = 0; s < streams; s++) {
        uint16_t seq = (uint16_t)leat_prng_u64(prng);
        uint32_t ssrc = (uint32_t)leat_prng_u64(prng);

        for (uint64_t n = leat_prng_between(prng, 2, 40); n > 0; n--) {
            leat_ccfb_record(r, ssrc, seq, *now, (uint8_t)leat_prng_below(prng, 4));
            seq = (uint16_t)(seq + leat_prng_between(prng, 1, 3));
            *now += leat_prng_below(prng, 20 * LEAT_MILLISECOND);
        }
    }
}

static int make(uint64_t seed, unsigned count)
{
    leat_ccfb_settings settings;
    leat_ccfb_recorder r;
    leat_time now = LEAT_SECOND;
    uint8_t out[MOST];
    leat_prng prng;
    leat_mem *mem;

    leat_prng_seed(&prng, seed);
    leat_ccfb_settings_init(&settings);
    if (leat_mem_new(NULL, &mem) != LEAT_OK) {
        return 1;
    }
    for (unsigned i = 0; i < count; i++) {
        settings.sender_ssrc = (uint32_t)leat_prng_u64(&prng);
        if (leat_ccfb_recorder_init(&r, mem, &settings) != LEAT_OK) {
            return 1;
        }
        if (i > 0) { /* the first has no stream */
            record_some(&r, &prng, &now);
        }
        write_hex(out, leat_ccfb_build(&r, now, out, sizeof out));
        leat_ccfb_recorder_free(&r);
    }
    leat_mem_free(mem);
    return 0;
}

static int digit(int c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool read_line(const char *line)
{
    static uint8_t data[MOST];
    size_t len = 0;
    leat_ccfb_iter it;
    leat_ccfb_status s;

    for (; digit(line[0]) >= 0 && digit(line[1]) >= 0 && len < sizeof data; line += 2) {
        data[len++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
    }
    if (leat_ccfb_parse((leat_span){data, len}, &it) != LEAT_OK) {
        return false;
    }
    printf("%u %u", it.sender_ssrc, it.report_time);
    while (leat_ccfb_next(&it, &s)) {
        printf(" | %u %u %d %u %u", s.ssrc, s.seq, s.received, s.ecn, s.received ? s.ato : 0);
    }
    putchar('\n');
    return true;
}

int main(int argc, char **argv)
{
    static char line[2 * MOST + 2];

    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        return make(strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3]));
    }
    while (fgets(line, sizeof line, stdin)) {
        if (!read_line(line)) {
            fprintf(stderr, "cannot be read: %s", line);
            return 1;
        }
    }
    return 0;
}
