/* cli/url.c: https URLs, and percent-decoding.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdlib.h>

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int leat_cli_percent_decode(leat_span s, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        int c = s.data[i];

        if (c == '%') {
            int high = s.len - i > 2 ? hex(s.data[i + 1]) : -1;
            int low = s.len - i > 2 ? hex(s.data[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return -1;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0 || n + 1 >= cap) {
            return -1;
        }
        out[n++] = (char)c;
    }
    out[n] = 0;
    return (int)n;
}

static bool bad(const char *text, const char *why)
{
    leat_cli_error("not a URL that leat can fetch: %s: %s", text, why);
    return false;
}

/* What may stand in a URL as it goes into a request: no space, no control, no raw byte above ASCII.
 */
static bool clean(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            return false;
        }
    }
    return true;
}

/* The port after a host, ":443"; 0: not one. Nothing: 443. */
static uint32_t port_of(const char *text, size_t len)
{
    uint32_t port = 0;

    if (len <= 1) {
        return 443;
    }
    for (size_t i = 1; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || port > 65535) {
            return 0;
        }
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* Nobody wants a new line, or what a terminal acts on, in a file's name. */
static bool has_control(const char *name)
{
    for (const uint8_t *p = (const uint8_t *)name; *p; p++) {
        if (*p < ' ' || *p == 0x7f) {
            return true;
        }
    }
    return false;
}

/* The last segment of a path, as a file's name. */
static void name_of(const char *path, char *out, size_t cap)
{
    const char *end = path + strcspn(path, "?");
    const char *from = end;
    int n;

    while (from > path && from[-1] != '/') {
        from--;
    }
    n = leat_cli_percent_decode((leat_span){(const uint8_t *)from, (size_t)(end - from)}, out, cap);
    if (n < 0 || has_control(out) || strchr(out, '/') || strcmp(out, ".") == 0 ||
        strcmp(out, "..") == 0) {
        out[0] = 0;
    }
}

bool leat_cli_url_parse(const char *text, leat_cli_url *out)
{
    static const char scheme[] = "https://";
    const char *authority = text + sizeof scheme - 1, *host, *host_end, *end, *port;
    size_t len = strlen(text);
    char *memory, *p;
    uint32_t number;

    *out = (leat_cli_url){.text = text};
    if (strncasecmp(text, scheme, sizeof scheme - 1) != 0) {
        return bad(text, "it must start with https://");
    }
    if (!clean(text)) {
        return bad(text, "spaces and bytes outside ASCII must be percent-encoded");
    }
    end = authority + strcspn(authority, "/?#");
    if (memchr(authority, '@', (size_t)(end - authority))) {
        return bad(text, "user names are not supported");
    }
    host = *authority == '[' ? authority + 1 : authority;
    host_end = memchr(host, *authority == '[' ? ']' : ':', (size_t)(end - host));
    if (*authority == '[' && !host_end) {
        return bad(text, "']' is missing");
    }
    host_end = host_end ? host_end : end;
    port = *authority == '[' ? host_end + 1 : host_end;
    number = port < end && *port != ':' ? 0 : port_of(port, (size_t)(end - port));
    if (host == host_end || number == 0) {
        return bad(text, host == host_end ? "there is no host" : "the port is not one");
    }

    memory = leat_cli_alloc(1, 4 * len + 16);
    p = memory;
    out->host = p;
    p = stpncpy(p, host, (size_t)(host_end - host)) + 1;
    out->authority = p;
    p = stpncpy(p, authority, (size_t)(end - authority)) + 1;
    out->path = p;
    if (*end != '/') {
        *p++ = '/';
    }
    p = stpncpy(p, end, strcspn(end, "#")) + 1;
    out->name = p;
    name_of(out->path, p, len + 2);
    out->port = (uint16_t)number;
    return true;
}

void leat_cli_url_free(leat_cli_url *url)
{
    free((void *)(uintptr_t)url->host);
    *url = (leat_cli_url){.text = NULL};
}
