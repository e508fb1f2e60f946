/* fuzz/rtp_twcc.c: libFuzzer on the TWCC reader and the sender behind it: both ways of reading
 * agree, and no feedback upsets the history.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <leat/twcc.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static leat_mem *mem;
static leat_twcc_sender sender;

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void read_both_ways(leat_twcc_iter one)
{
    static leat_twcc_status many[65536];
    leat_twcc_iter all = one;
    leat_twcc_status status;
    size_t count = leat_twcc_read(&all, many, 65536), n = 0;

    check(count == one.status_count);
    while (leat_twcc_next(&one, &status)) {
        check(status.seq == many[n].seq && status.received == many[n].received);
        check(status.arrival == many[n].arrival);
        n++;
    }
    check(n == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_fb_result results[64];
    leat_twcc_iter it;
    size_t n;

    if (!mem) {
        check(leat_mem_new(NULL, &mem) == LEAT_OK);
        check(leat_twcc_sender_init(&sender, mem, 1024) == LEAT_OK);
    }
    for (int i = 0; i < 20; i++) {
        leat_twcc_sent(&sender, sender.sent.next, 100);
    }
    if (leat_twcc_feedback(&sender, (leat_span){data, size}, &it) != LEAT_OK) {
        leat_twcc_status status;

        check(!leat_twcc_next(&it, &status));
        return 0;
    }
    read_both_ways(it);
    while ((n = leat_twcc_results(&sender, &it, results, 64)) > 0) {
        for (size_t i = 0; i < n; i++) {
            check(results[i].size == 100);
            check(results[i].sent == results[i].seq);
        }
    }
    check(sender.sent.in_flight == (sender.sent.next - sender.sent.reported) * 100);
    return 0;
}
