/* tls/address.h: is a server's name an IP address? It then goes into certificates as such, and
 * never into SNI (RFC 6066 §3). Text alone, no resolver and no socket headers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_ADDRESS_H
#define LEAT_TLS_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of an IPv4 (four decimal numbers) or IPv6 address (RFC 4291 §2.2, without zone and
 * brackets) in network order. Returns 4, 16, or 0 when the text is neither. */
size_t leat_tls_parse_address(const char *text, uint8_t out[16]);

#endif
