/* tests/unit/wire/any_frame.h: what tests and fuzz targets do with frames of any kind.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_ANY_FRAME_H
#define LEAT_TEST_ANY_FRAME_H

#include "wire/frames.h"

/* Writes the frame, and an ACK with these ranges, ascending. False, and nothing is written: it does
 * not go in whole (of an ACK and a close a part may), or there is no such frame (empty CRYPTO). */
bool write_frame(leat_writer *w, const leat_frame *f, const leat_range *ranges, size_t range_count);

/* Two frames that were read, or no ACKs. */
bool same_frame(const leat_frame *a, const leat_frame *b);

#endif
