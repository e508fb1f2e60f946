/* Reading IP addresses in text form.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/address.h"

#include <stdbool.h>
#include <string.h>

/* Four decimal numbers without leading zeros, and the end of the text. */
static bool parse_v4(const char *text, uint8_t out[4])
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned value = 0;
        unsigned digits = 0;
        for (; *text >= '0' && *text <= '9' && digits < 4; text++, digits++) {
            value = value * 10 + (unsigned)(*text - '0');
        }
        if (digits == 0 || value > 255 || (digits > 1 && text[-(int)digits] == '0')) {
            return false;
        }
        out[i] = (uint8_t)value;
        if (*text++ != (i < 3 ? '.' : '\0')) {
            return false;
        }
    }
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* Groups are written from the front; when "::" has come, what follows it is moved to the end at
 * last. */
static bool parse_v6(const char *text, uint8_t out[16])
{
    size_t n = 0;
    size_t gap = SIZE_MAX;
    memset(out, 0, 16);
    if (text[0] == ':' && text[1] != ':') {
        return false;
    }
    while (*text) {
        if (text[0] == ':' && text[1] == ':') {
            if (gap != SIZE_MAX) {
                return false;
            }
            gap = n;
            text += 2;
            continue;
        }
        if (n == 16) {
            return false;
        }
        if (n <= 12 && parse_v4(text, out + n)) {
            n += 4;
            break;
        }
        unsigned value = 0;
        unsigned digits = 0;
        for (; hex_digit(*text) >= 0 && digits < 5; text++, digits++) {
            value = value * 16 + (unsigned)hex_digit(*text);
        }
        if (digits == 0 || digits > 4) {
            return false;
        }
        out[n++] = (uint8_t)(value >> 8);
        out[n++] = (uint8_t)value;
        if (*text == ':' && text[1] != ':' && text[1] != '\0') {
            text++;
        } else if (*text != '\0' && !(*text == ':' && text[1] == ':')) {
            return false;
        }
    }
    if (gap == SIZE_MAX) {
        return n == 16;
    }
    if (n == 16) {
        return false;
    }
    memmove(out + 16 - (n - gap), out + gap, n - gap);
    memset(out + gap, 0, 16 - n);
    return true;
}

size_t leat_tls_parse_address(const char *text, uint8_t out[16])
{
    if (parse_v4(text, out)) {
        return 4;
    }
    return parse_v6(text, out) ? 16 : 0;
}
