/* fuzz/quic_tparams.c: transport parameters. What decodes encodes, and decodes to the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "support/fuzz.h"
#include "wire/tparams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t out[LEAT_TPARAMS_MAX];
    leat_tparams first, again;
    leat_writer w;
    const char *why = NULL;
    bool server = size > 0 && data[0] & 1;

    if (size == 0) {
        return 0;
    }
    if (leat_tparams_decode((leat_span){data + 1, size - 1}, server, &first, &why) !=
        LEAT_TE_NO_ERROR) {
        fuzz_check(why != NULL);
        return 0;
    }
    if (leat_tparams_has(&first, LEAT_TP_version_information) &&
        first.version_information.available.len > 4 * LEAT_TPARAMS_VERSIONS_MAX) {
        first.version_information.available.len = 4 * LEAT_TPARAMS_VERSIONS_MAX;
    }
    leat_writer_init(&w, out, sizeof(out));
    fuzz_check(leat_tparams_encode(&first, &w));
    fuzz_check(leat_writer_len(&w) == leat_tparams_size(&first));
    fuzz_check(leat_tparams_decode((leat_span){out, leat_writer_len(&w)}, server, &again, &why) ==
               LEAT_TE_NO_ERROR);
    for (size_t i = 0; i < LEAT_TPARAM_NUMBERS; i++) {
        fuzz_check(first.numbers[i] == again.numbers[i]);
    }
    fuzz_check(leat_cid_equal(&first.initial_scid, &again.initial_scid));
    fuzz_check(leat_cid_equal(&first.original_dcid, &again.original_dcid));
    fuzz_check(leat_cid_equal(&first.retry_scid, &again.retry_scid));
    fuzz_check(first.min_ack_delay == again.min_ack_delay);
    return 0;
}
