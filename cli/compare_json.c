/* cli/compare_json.c: metrics by their names, and the numbers in a program's JSON by their path
 * (compare_run.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare_run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void leat_compare_add(leat_compare_run *run, const char *name, double value)
{
    leat_compare_metric *m = &run->metrics[run->count];

    for (size_t i = 0; i < run->count; i++) {
        if (strcmp(run->metrics[i].name, name) == 0) {
            return;
        }
    }
    if (run->count < LEAT_COMPARE_METRICS) {
        snprintf(m->name, sizeof(m->name), "%s", name);
        m->value = value;
        run->count++;
    }
}

/* A reader over the text, with the path of where it is. Nesting is bounded by the path's room. */
typedef struct reader {
    const char *at, *end;
    char path[LEAT_COMPARE_NAME];
    size_t path_len;
    unsigned depth;
    leat_compare_run *out;
} reader;

enum { DEPTH_MOST = 32 };

static bool read_value(reader *r);

static void skip_space(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->at < r->end && *r->at == c) {
        r->at++;
        return true;
    }
    return false;
}

/* A string, as it stands; escapes are passed over, not decoded: names of metrics have none. */
static bool read_string(reader *r, const char **text, size_t *len)
{
    if (!take(r, '"')) {
        return false;
    }
    *text = r->at;
    while (r->at < r->end && *r->at != '"') {
        r->at += *r->at == '\\' ? 2 : 1;
    }
    if (r->at >= r->end) {
        return false;
    }
    *len = (size_t)(r->at - *text);
    r->at++;
    return true;
}

/* Adds a step to the path; what does not fit is cut, so that two long names may fall together. */
static size_t push_path(reader *r, const char *step, size_t len)
{
    size_t before = r->path_len;

    if (r->path_len > 0 && r->path_len + 1 < sizeof(r->path)) {
        r->path[r->path_len++] = '.';
    }
    while (len-- > 0 && r->path_len + 1 < sizeof(r->path)) {
        r->path[r->path_len++] = *step++;
    }
    r->path[r->path_len] = 0;
    return before;
}

static void pop_path(reader *r, size_t before)
{
    r->path_len = before;
    r->path[before] = 0;
}

static bool read_object(reader *r)
{
    if (take(r, '}')) {
        return true;
    }
    do {
        const char *name;
        size_t len, before;

        if (!read_string(r, &name, &len) || !take(r, ':')) {
            return false;
        }
        before = push_path(r, name, len);
        if (!read_value(r)) {
            return false;
        }
        pop_path(r, before);
    } while (take(r, ','));
    return take(r, '}');
}

/* Whether an object comes that begins with a name, which then is the step for it. */
static bool peek_name(const reader *r, const char **name, size_t *len)
{
    reader ahead = *r;
    const char *key;
    size_t key_len;

    return take(&ahead, '{') && read_string(&ahead, &key, &key_len) && key_len == 4 &&
           memcmp(key, "name", 4) == 0 && take(&ahead, ':') && read_string(&ahead, name, len);
}

static bool read_array(reader *r)
{
    unsigned i = 0;

    if (take(r, ']')) {
        return true;
    }
    do {
        char index[16];
        const char *step = index;
        size_t len = (size_t)snprintf(index, sizeof(index), "%u", i++), before;

        if (peek_name(r, &step, &len)) {
            before = push_path(r, step, len);
        } else {
            before = push_path(r, index, strlen(index));
        }

        if (!read_value(r)) {
            return false;
        }
        pop_path(r, before);
    } while (take(r, ','));
    return take(r, ']');
}

static bool read_word(reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static bool read_number(reader *r)
{
    char text[64];
    size_t len = 0;
    char *end;
    double value;

    while (r->at < r->end && len + 1 < sizeof(text) && *r->at &&
           strchr("+-.0123456789eE", *r->at)) {
        text[len++] = *r->at++;
    }
    text[len] = 0;
    value = strtod(text, &end);
    if (len == 0 || *end) {
        return false;
    }
    leat_compare_add(r->out, r->path, value);
    return true;
}

static bool read_value(reader *r)
{
    const char *text;
    size_t len;
    bool good;

    skip_space(r);
    if (r->at >= r->end || r->depth >= DEPTH_MOST) {
        return false;
    }
    switch (*r->at) {
    case '{':
    case '[':
        r->depth++;
        good = *r->at++ == '{' ? read_object(r) : read_array(r);
        r->depth--;
        return good;
    case '"':
        return read_string(r, &text, &len);
    case 't':
        return read_word(r, "true");
    case 'f':
        return read_word(r, "false");
    case 'n':
        return read_word(r, "null");
    default:
        return read_number(r);
    }
}

bool leat_compare_numbers(const char *text, size_t len, leat_compare_run *out)
{
    reader r = {.at = text, .end = text + len, .out = out};

    return read_value(&r) && (skip_space(&r), r.at == r.end);
}

bool leat_compare_higher_is_better(const char *name)
{
    static const char *const rates[] = {"_per_s", "_per_second", "bit_s", "_a_second", "ops_s"};
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        size_t n = strlen(rates[i]);

        if (len >= n && strcmp(name + len - n, rates[i]) == 0) {
            return true;
        }
    }
    return false;
}
