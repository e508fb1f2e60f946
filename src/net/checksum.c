/* net/checksum.c: the Internet checksum (RFC 1071).
 *
 * One's complement sums do not care about byte order as long as it is the same throughout (RFC 1071
 * s2 B): the words are added as the machine reads them, and the bytes are swapped once at the end.
 * Nor do they care about width, as a carry out of 64 bits counts one like a carry out of 16 (s2 C):
 * eight bytes are added at a time, in two sums that need not wait for each other. What comes in and
 * goes out is a sum of 32-bit words that cannot overflow for 2^32 of them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/udpip.h"

#include <string.h>

typedef struct wide {
    uint64_t sum, carries;
} wide;

static inline void add_word(wide *w, const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof(word));
    w->carries += __builtin_add_overflow(w->sum, word, &w->sum);
}

/* The same sum modulo 2^16 - 1, in 33 bits. */
static inline uint64_t narrow(uint64_t sum)
{
    return (sum & UINT32_MAX) + (sum >> 32);
}

uint64_t leat_checksum_add(uint64_t sum, const uint8_t *data, size_t n)
{
    wide even = {0, 0}, odd = {0, 0};
    for (; n >= 32; n -= 32, data += 32) {
        add_word(&even, data);
        add_word(&odd, data + 8);
        add_word(&even, data + 16);
        add_word(&odd, data + 24);
    }
    sum += narrow(even.sum) + narrow(odd.sum) + even.carries + odd.carries;
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
