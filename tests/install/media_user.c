/* A program on libleat-media alone: a packet's arrival recorded, its feedback written and read; an
 * estimate and a pacer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include <leat/ccfb.h>
#include <leat/estimate.h>
#include <leat/jitter.h>
#include <leat/nack.h>
#include <leat/pace.h>
#include <leat/report.h>
#include <leat/rtp.h>
#include <leat/twcc.h>

int main(void)
{
    leat_twcc_recorder recorder;
    leat_twcc_status status;
    leat_twcc_iter it;
    leat_estimate estimate;
    leat_pace pace;
    leat_mem *mem;
    uint8_t out[100];
    size_t len;

    if (leat_mem_new(NULL, &mem) != LEAT_OK ||
        leat_twcc_recorder_init(&recorder, mem, 1, 0) != LEAT_OK) {
        return 1;
    }
    leat_twcc_record(&recorder, 2, 3, LEAT_SECOND);
    len = leat_twcc_build(&recorder, out, sizeof out);
    if (leat_twcc_parse((leat_span){out, len}, &it) != LEAT_OK || !leat_twcc_next(&it, &status) ||
        status.seq != 3) {
        return 1;
    }
    if (leat_estimate_init(&estimate, NULL, NULL, NULL) != LEAT_OK ||
        leat_pace_init(&pace, mem, 0, estimate.pacing_rate) != LEAT_OK) {
        return 1;
    }
    leat_pace_free(&pace);
    leat_twcc_recorder_free(&recorder);
    leat_mem_free(mem);
    printf("%zu bytes\n", len);
    return 0;
}
