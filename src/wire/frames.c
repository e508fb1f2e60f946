/* wire/frames.c: the frame table made from LEAT_FRAME_LIST, and the way from a code to its row. */
#include "wire/frames.h"

#define ROW(kind, member, first_code, last_code, packet_bits, prop_bits, text)                     \
    [LEAT_FRAME_##kind] = {                                                                        \
        .name = (text),                                                                            \
        .first = (first_code),                                                                     \
        .last = (last_code),                                                                       \
        .packets = (packet_bits),                                                                  \
        .props = (prop_bits),                                                                      \
    },

const leat_frame_facts leat_frame_table[LEAT_FRAME_KINDS] = {LEAT_FRAME_LIST(ROW)};

#define KIND_CASE(kind, member, first, last, packets, props, name)                                 \
    case (first)...(last):                                                                         \
        return LEAT_FRAME_##kind;

leat_frame_kind leat_frame_kind_of(uint64_t code)
{
    switch (code) {
        LEAT_FRAME_LIST(KIND_CASE)
    default:
        return LEAT_FRAME_KINDS;
    }
}
