/* io/sockaddr.c: between leat's addresses and the system's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/sockaddr.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void leat_addr_to_in6(const leat_addr *addr, struct in6_addr *out)
{
    if (addr->family == 6) {
        memcpy(out, addr->ip, 16);
        return;
    }
    memcpy(out->s6_addr, mapped_prefix, sizeof(mapped_prefix));
    memcpy(out->s6_addr + sizeof(mapped_prefix), addr->ip, 4);
}

socklen_t leat_sockaddr_write(const leat_addr *addr, uint8_t socket_family, leat_sockaddr *out)
{
    memset(out, 0, sizeof(*out));
    if (socket_family == 4) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(addr->port);
        memcpy(&out->v4.sin_addr, addr->ip, 4);
        return sizeof(out->v4);
    }
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(addr->port);
    out->v6.sin6_scope_id = addr->scope;
    leat_addr_to_in6(addr, &out->v6.sin6_addr);
    return sizeof(out->v6);
}

bool leat_sockaddr_read(const struct sockaddr *in, leat_addr *out)
{
    memset(out, 0, sizeof(*out));
    if (in->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)in;
        out->family = 4;
        out->port = ntohs(v4->sin_port);
        memcpy(out->ip, &v4->sin_addr, 4);
        return true;
    }
    if (in->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)in;
        out->family = 6;
        out->port = ntohs(v6->sin6_port);
        out->scope = v6->sin6_scope_id;
        memcpy(out->ip, &v6->sin6_addr, 16);
        leat_addr_unmap(out);
        return true;
    }
    return false;
}

void leat_addr_unmap(leat_addr *addr)
{
    if (addr->family != 6 || memcmp(addr->ip, mapped_prefix, sizeof(mapped_prefix)) != 0) {
        return;
    }
    addr->family = 4;
    addr->scope = 0;
    memmove(addr->ip, addr->ip + sizeof(mapped_prefix), 4);
    memset(addr->ip + 4, 0, sizeof(addr->ip) - 4);
}

bool leat_addr_is_any(const leat_addr *addr)
{
    static const uint8_t zeros[16];
    return memcmp(addr->ip, zeros, addr->family == 4 ? 4 : 16) == 0;
}
