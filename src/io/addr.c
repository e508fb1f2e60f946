/* io/addr.c: addresses as people write them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/sockaddr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_TEXT_MAX = INET6_ADDRSTRLEN + 1 + IF_NAMESIZE };

static leat_err parse_port(const char *text, uint16_t *port)
{
    uint32_t value = 0;
    if (*text == '\0') {
        return LEAT_ERR_ADDRESS;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return LEAT_ERR_ADDRESS;
        }
        value = value * 10 + (uint32_t)(*text - '0');
        if (value > UINT16_MAX) {
            return LEAT_ERR_ADDRESS;
        }
    }
    *port = (uint16_t)value;
    return LEAT_OK;
}

/* "fe80::1%eth0", "fe80::1%2" */
static leat_err parse_ip6(char *host, leat_addr *out)
{
    char *percent = strchr(host, '%');
    if (percent != NULL) {
        *percent = '\0';
        out->scope = if_nametoindex(percent + 1);
        if (out->scope == 0) {
            uint16_t number;
            if (parse_port(percent + 1, &number) != LEAT_OK || number == 0) {
                return LEAT_ERR_ADDRESS;
            }
            out->scope = number;
        }
    }
    struct in6_addr ip;
    if (inet_pton(AF_INET6, host, &ip) != 1) {
        return LEAT_ERR_ADDRESS;
    }
    out->family = 6;
    memcpy(out->ip, &ip, sizeof(ip));
    leat_addr_unmap(out);
    return LEAT_OK;
}

static leat_err parse_ip4(const char *host, leat_addr *out)
{
    struct in_addr ip;
    if (inet_pton(AF_INET, host, &ip) != 1) {
        return LEAT_ERR_ADDRESS;
    }
    out->family = 4;
    memcpy(out->ip, &ip, sizeof(ip));
    return LEAT_OK;
}

/* Copies [from, to) as a string; false if it is too long to be an address. */
static bool copy_host(const char *from, const char *to, char host[HOST_TEXT_MAX])
{
    size_t len = (size_t)(to - from);
    if (len >= HOST_TEXT_MAX) {
        return false;
    }
    memcpy(host, from, len);
    host[len] = '\0';
    return true;
}

leat_err leat_addr_parse(const char *text, leat_addr *out)
{
    leat_addr addr = {0};
    char host[HOST_TEXT_MAX];
    leat_err err = LEAT_ERR_ADDRESS;
    const char *colon = strrchr(text, ':');
    const char *port = colon != NULL ? colon + 1 : text;
    if (parse_port(port, &addr.port) != LEAT_OK) {
        return LEAT_ERR_ADDRESS;
    }
    if (colon == NULL || colon == text) {
        addr.family = 6; /* "PORT", ":PORT": any address */
        err = LEAT_OK;
    } else if (text[0] == '[' && colon[-1] == ']' && copy_host(text + 1, colon - 1, host)) {
        err = parse_ip6(host, &addr);
    } else if (text[0] != '[' && copy_host(text, colon, host)) {
        err = parse_ip4(host, &addr);
    }
    if (err == LEAT_OK) {
        *out = addr;
    }
    return err;
}

leat_err leat_addr_resolve(const char *host, uint16_t port, leat_addr *out, size_t max,
                           size_t *count)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_DGRAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    *count = 0;
    int failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed == EAI_NONAME || failed == EAI_ADDRFAMILY || failed == EAI_NODATA) {
        /* AI_ADDRCONFIG hides ::1 where only the loopback has IPv6. */
        hints.ai_flags = AI_NUMERICSERV;
        failed = getaddrinfo(host, NULL, &hints, &list);
    }
    if (failed != 0) {
        return LEAT_ERR_ADDRESS;
    }
    for (const struct addrinfo *a = list; a != NULL && *count < max; a = a->ai_next) {
        if (leat_sockaddr_read(a->ai_addr, &out[*count])) {
            out[*count].port = port;
            (*count)++;
        }
    }
    freeaddrinfo(list);
    return *count > 0 ? LEAT_OK : LEAT_ERR_ADDRESS;
}

const char *leat_addr_format(const leat_addr *addr, char out[LEAT_ADDR_TEXT_MAX])
{
    char ip[INET6_ADDRSTRLEN];
    if (addr->family == 4) {
        inet_ntop(AF_INET, addr->ip, ip, sizeof(ip));
        snprintf(out, LEAT_ADDR_TEXT_MAX, "%s:%u", ip, addr->port);
    } else if (addr->family == 6 && addr->scope != 0) {
        inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip));
        snprintf(out, LEAT_ADDR_TEXT_MAX, "[%s%%%u]:%u", ip, addr->scope, addr->port);
    } else if (addr->family == 6) {
        inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip));
        snprintf(out, LEAT_ADDR_TEXT_MAX, "[%s]:%u", ip, addr->port);
    } else {
        snprintf(out, LEAT_ADDR_TEXT_MAX, "(none)");
    }
    return out;
}
