/* net/checksum.c: the Internet checksum (RFC 1071).
 *
 * One's complement sums do not care about byte order as long as it is the same throughout (RFC 1071
 * s2 B): the words are added as the machine reads them, four bytes at a time into a 64-bit sum that
 * cannot overflow for 2^32 words, and the bytes are swapped once at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/udpip.h"

#include <string.h>

uint64_t leat_checksum_add(uint64_t sum, const uint8_t *data, size_t n)
{
    uint32_t word;
    for (; n >= sizeof(word); n -= sizeof(word), data += sizeof(word)) {
        memcpy(&word, data, sizeof(word));
        sum += word;
    }
    if (n > 0) {
        word = 0; /* the odd end counts as if followed by zeros */
        memcpy(&word, data, n);
        sum += word;
    }
    return sum;
}

uint16_t leat_checksum_end(uint64_t sum)
{
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    uint16_t folded = (uint16_t)~sum;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    folded = __builtin_bswap16(folded);
#endif
    return folded;
}
