/* stream/input.h: frames about streams, as they come from the peer. Each returns 0 or the transport
 * error to close with. Streams that the peer opens appear with event OPENED. Values are as decoded:
 * below 2^62.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_INPUT_H
#define LEAT_STREAM_INPUT_H

#include "stream/table.h"

/* STREAM, §19.8. data is borrowed; what is kept takes a reference. Errors: those of
 * leat_stream_recv_on_data() and leat_streams_for_frame(). */
uint64_t leat_streams_on_stream(leat_streams *streams, uint64_t id, uint64_t offset,
                                const leat_buf *data, bool fin);
/* RESET_STREAM, §19.4. */
uint64_t leat_streams_on_reset_stream(leat_streams *streams, uint64_t id, uint64_t code,
                                      uint64_t final_size);
/* RESET_STREAM_AT (wire/frames.h). */
uint64_t leat_streams_on_reset_stream_at(leat_streams *streams, uint64_t id, uint64_t code,
                                         uint64_t final_size, uint64_t reliable);
/* STOP_SENDING, §19.5: the sending part is reset with the same code. */
uint64_t leat_streams_on_stop_sending(leat_streams *streams, uint64_t id, uint64_t code);
/* MAX_DATA, §19.9. */
uint64_t leat_streams_on_max_data(leat_streams *streams, uint64_t limit);
/* MAX_STREAM_DATA, §19.10. */
uint64_t leat_streams_on_max_stream_data(leat_streams *streams, uint64_t id, uint64_t limit);
/* MAX_STREAMS, §19.11: FRAME_ENCODING_ERROR above 2^60. */
uint64_t leat_streams_on_max_streams(leat_streams *streams, bool bidi, uint64_t limit);
/* DATA_BLOCKED, §19.12: only tells; nothing to do. STREAM_DATA_BLOCKED, §19.13: checks the ID.
 * STREAMS_BLOCKED, §19.14: FRAME_ENCODING_ERROR above 2^60; gives credit that waits for a better
 * moment. */
uint64_t leat_streams_on_data_blocked(leat_streams *streams, uint64_t limit);
uint64_t leat_streams_on_stream_data_blocked(leat_streams *streams, uint64_t id, uint64_t limit);
uint64_t leat_streams_on_streams_blocked(leat_streams *streams, bool bidi, uint64_t limit);

#endif
