/* io/sockaddr.h: between leat's addresses and the system's.
 *
 * A socket for both families is an IPv6 one; the kernel shows IPv4 addresses there as
 * ::ffff:a.b.c.d. leat knows them as IPv4 only: they are mapped on the way out and unmapped on the
 * way in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_SOCKADDR_H
#define LEAT_IO_SOCKADDR_H

#include <leat/loop.h>

#include <netinet/in.h>
#include <sys/socket.h>

typedef union leat_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} leat_sockaddr;

/* Fills in *out for a socket of this family (4 or 6) and returns its length. */
socklen_t leat_sockaddr_write(const leat_addr *addr, uint8_t socket_family, leat_sockaddr *out);

/* False, and *out without a family, if it is not IP. */
bool leat_sockaddr_read(const struct sockaddr *in, leat_addr *out);

/* Makes ::ffff:a.b.c.d the IPv4 address that it means. */
void leat_addr_unmap(leat_addr *addr);

/* True for 0.0.0.0 and ::. */
bool leat_addr_is_any(const leat_addr *addr);

/* The address (not the port) as an IPv6 socket needs it. */
void leat_addr_to_in6(const leat_addr *addr, struct in6_addr *out);

#endif
