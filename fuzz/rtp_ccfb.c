/* fuzz/rtp_ccfb.c: libFuzzer on the RFC 8888 reader and the sender behind it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include <leat/ccfb.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static leat_mem *mem;
static leat_ccfb_sender sender;
static uint16_t seq;

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_fb_result results[64];
    leat_ccfb_iter it, copy;
    leat_ccfb_status status;
    size_t n, count = 0;

    if (!mem) {
        check(leat_mem_new(NULL, &mem) == LEAT_OK);
        check(leat_ccfb_sender_init(&sender, mem, 4, 1024) == LEAT_OK);
    }
    for (int i = 0; i < 20; i++, seq++) {
        check(leat_ccfb_sent(&sender, 0x01010101u * (unsigned)(seq % 4), seq / 4, 1000, 100) ==
              LEAT_OK);
    }
    if (leat_ccfb_feedback(&sender, (leat_span){data, size}, &it) != LEAT_OK) {
        check(!leat_ccfb_next(&it, &status));
        return 0;
    }
    copy = it;
    while (leat_ccfb_next(&copy, &status)) {
        check(status.received || status.arrival == LEAT_TIME_NEVER);
        count++;
    }
    check(count * 2 <= size);
    while ((n = leat_ccfb_results(&sender, &it, results, 64)) > 0) {
        for (size_t i = 0; i < n; i++) {
            check(results[i].size == 100);
        }
    }
    return 0;
}
