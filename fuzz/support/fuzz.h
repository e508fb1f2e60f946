/* fuzz/support/fuzz.h: what the targets have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_FUZZ_H
#define LEAT_FUZZ_H

#include <stdlib.h>

#include <leat/base.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Takes bytes off an input; zeros behind its end. */
typedef struct fuzz_input {
    const uint8_t *at, *end;
} fuzz_input;

static inline bool fuzz_left(const fuzz_input *in)
{
    return in->at < in->end;
}

static inline uint8_t fuzz_byte(fuzz_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Up to n bytes as they stand in the input. */
static inline leat_span fuzz_bytes(fuzz_input *in, size_t n)
{
    size_t left = (size_t)(in->end - in->at);
    leat_span span = {in->at, n < left ? n : left};

    in->at += span.len;
    return span;
}

#endif
