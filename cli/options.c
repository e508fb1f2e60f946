/* cli/options.c: options by getopt_long, from tables that the help is printed from too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* ---- the parser ---- */

void leat_cli_parser_init(leat_cli_parser *parser, const char *command,
                          const leat_cli_option *options, size_t count)
{
    char *letter;

    *parser = (leat_cli_parser){.options = options, .count = count, .command = command};
    letter = parser->shorts;
    *letter++ = ':'; /* missing arguments are told apart */
    for (size_t i = 0; i < count && i < LEAT_CLI_OPTIONS_MOST; i++) {
        parser->longs[i] = (struct option){
            options[i].name, options[i].arg ? required_argument : no_argument, NULL, options[i].id};
        if (options[i].letter) {
            *letter++ = options[i].letter;
            if (options[i].arg) {
                *letter++ = ':';
            }
        }
    }
    opterr = 0;
    optind = 1;
}

int leat_cli_option_next(leat_cli_parser *parser, int argc, char **argv)
{
    int at = optind;
    int c = getopt_long(argc, argv, parser->shorts, parser->longs, NULL);

    if (c == '?' || c == ':') {
        const char *given = argv[optind > at ? optind - 1 : at];

        leat_cli_error("%s %s (try 'leat %s --help')",
                       c == ':' ? "an argument is missing after" : "no such option, or badly used:",
                       given, parser->command);
        return '?';
    }
    for (size_t i = 0; i < parser->count; i++) {
        if (c > 0 && parser->options[i].letter == c) {
            return parser->options[i].id;
        }
    }
    return c;
}

void leat_cli_print_options(const leat_cli_option *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char left[64];

        snprintf(left, sizeof left, "%c%c%c --%s%s%s", options[i].letter ? '-' : ' ',
                 options[i].letter ? options[i].letter : ' ', options[i].letter ? ',' : ' ',
                 options[i].name, options[i].arg ? " " : "", options[i].arg ? options[i].arg : "");
        printf("  %-28s %s\n", left, options[i].help);
    }
}

void leat_cli_print_exit_codes(void)
{
#define EXIT_LINE(name, code, text) printf("  %-4d %s\n", code, text);
    puts("\nExit codes:");
    LEAT_CLI_EXIT_LIST(EXIT_LINE)
#undef EXIT_LINE
}

/* ---- arguments ---- */

bool leat_cli_number(const char *what, const char *text, uint64_t least, uint64_t most,
                     uint64_t *out)
{
    static const char units[] = "kMGT";
    unsigned long long v;
    char *end;
    const char *unit;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (end == text || *text == '-' || errno == ERANGE) {
        goto bad;
    }
    unit = *end ? strchr(units, *end == 'K'   ? 'k'
                                : *end == 'm' ? 'M'
                                : *end == 'g' ? 'G'
                                              : *end)
                : NULL;
    if (unit && end[1] == 0) {
        for (const char *u = units; u <= unit; u++) {
            if (v > UINT64_MAX / 1024) {
                goto bad;
            }
            v *= 1024;
        }
    } else if (*end) {
        goto bad;
    }
    if (v >= least && v <= most) {
        *out = v;
        return true;
    }
bad:
    leat_cli_error("--%s wants a number from %llu to %llu, not '%s'", what,
                   (unsigned long long)least, (unsigned long long)most, text);
    return false;
}

bool leat_cli_seconds(const char *what, const char *text, enum leat_cli_zero zero, leat_time *out)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end || !isfinite(v) || v < 0 || v > 1e6) {
        leat_cli_error("--%s wants seconds, such as 2 or 0.5, not '%s'", what, text);
        return false;
    }
    *out = (leat_time)(v * (double)LEAT_SECOND);
    if (*out == 0 && zero == LEAT_CLI_NOT_ZERO) {
        leat_cli_error("--%s wants more than no time at all, not '%s'", what, text);
        return false;
    }
    return true;
}

/* Calls `take` for each item of a list with commas; false when it refuses one or there is none. An
 * item that is said twice stands where it stood first. */
static bool each_item(const char *what, const char *list,
                      bool (*take)(leat_cli_common *common, leat_span item),
                      leat_cli_common *common)
{
    const char *from = list;

    for (;;) {
        size_t n = strcspn(from, ",");

        if (!take(common, (leat_span){(const uint8_t *)from, n})) {
            leat_cli_error("--%s does not know '%.*s'", what, (int)n, from);
            return false;
        }
        if (from[n] == 0) {
            return true;
        }
        from += n + 1;
    }
}

static bool is(leat_span s, const char *text)
{
    return s.len == strlen(text) && strncasecmp((const char *)s.data, text, s.len) == 0;
}

static bool take_alpn(leat_cli_common *common, leat_span item)
{
    const char *known = is(item, LEAT_HTTP_ALPN_H3)   ? LEAT_HTTP_ALPN_H3
                        : is(item, LEAT_HTTP_ALPN_HQ) ? LEAT_HTTP_ALPN_HQ
                                                      : NULL;

    for (size_t i = 0; i < common->alpn_count; i++) {
        if (common->alpn[i] == known) {
            return true; /* said twice: the first stands */
        }
    }
    if (known) {
        common->alpn[common->alpn_count++] = known;
    }
    return known != NULL;
}

typedef struct named {
    const char *name;
    uint32_t value;
} named;

static const named *find_named(leat_span item, const named *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is(item, known[i].name)) {
            return &known[i];
        }
    }
    return NULL;
}

#define FIND_NAMED(item, known) find_named(item, known, sizeof known / sizeof known[0])

static bool take_version(leat_cli_common *common, leat_span item)
{
    static const named known[] = {
        {"v1", 0x00000001}, {"1", 0x00000001}, {"v2", 0x6b3343cf}, {"2", 0x6b3343cf}};
    leat_conn_settings *conn = &common->conn;
    const named *found = FIND_NAMED(item, known);

    for (size_t i = 0; found && i < conn->version_count; i++) {
        if (conn->versions[i] == found->value) {
            return true;
        }
    }
    if (found) {
        conn->versions[conn->version_count++] = found->value;
    }
    return found != NULL;
}

static bool take_cipher(leat_cli_common *common, leat_span item)
{
    static const named known[] = {
        {"aes-128-gcm", LEAT_TLS_AES_128_GCM_SHA256},
        {"TLS_AES_128_GCM_SHA256", LEAT_TLS_AES_128_GCM_SHA256},
        {"aes-256-gcm", LEAT_TLS_AES_256_GCM_SHA384},
        {"TLS_AES_256_GCM_SHA384", LEAT_TLS_AES_256_GCM_SHA384},
        {"chacha20-poly1305", LEAT_TLS_CHACHA20_POLY1305_SHA256},
        {"chacha20", LEAT_TLS_CHACHA20_POLY1305_SHA256},
        {"TLS_CHACHA20_POLY1305_SHA256", LEAT_TLS_CHACHA20_POLY1305_SHA256},
    };
    leat_tls_settings *tls = &common->tls;
    const named *found = FIND_NAMED(item, known);

    for (size_t i = 0; found && i < tls->cipher_count; i++) {
        if ((uint32_t)tls->ciphers[i] == found->value) {
            return true;
        }
    }
    if (found) {
        tls->ciphers[tls->cipher_count++] = (leat_tls_cipher)found->value;
    }
    return found != NULL;
}

static bool take_group(leat_cli_common *common, leat_span item)
{
    static const named known[] = {{"x25519", LEAT_TLS_GROUP_X25519},
                                  {"p256", LEAT_TLS_GROUP_P256},
                                  {"p384", LEAT_TLS_GROUP_P384}};
    leat_tls_settings *tls = &common->tls;
    const named *found = FIND_NAMED(item, known);

    for (size_t i = 0; found && i < tls->group_count; i++) {
        if ((uint32_t)tls->groups[i] == found->value) {
            return true;
        }
    }
    if (found) {
        tls->groups[tls->group_count++] = (leat_tls_group)found->value;
    }
    return found != NULL;
}

/* ---- common options ---- */

void leat_cli_common_init(leat_cli_common *common)
{
    *common = (leat_cli_common){.alpn_count = 0};
    leat_tls_settings_init(&common->tls);
    leat_conn_settings_init(&common->conn);
}

static void set_window(leat_conn_settings *conn, uint64_t window)
{
    conn->max_stream_data_bidi_local = window;
    conn->max_stream_data_bidi_remote = window;
    conn->max_stream_data_uni = window;
    conn->max_data = window * 2;
}

static void print_line(leat_log_level level, const char *text, void *user)
{
    (void)user;
    fprintf(stderr, "%s %s\n", leat_log_level_name(level), text);
}

static bool take_log_level(leat_cli_common *common, const char *arg)
{
    for (int level = LEAT_LOG_NOTHING + 1; level < LEAT_LOG_LEVELS; level++) {
        if (strcasecmp(arg, leat_log_level_name((leat_log_level)level)) == 0) {
            common->log.level = (leat_log_level)level;
            return true;
        }
    }
    leat_cli_error("--log-level does not know '%s': error, warn, info, debug, trace", arg);
    return false;
}

struct leat_event_sink *leat_cli_common_sink(leat_cli_common *common)
{
    leat_event_sink *qlog = leat_qlog_sink(common->qlog);

    if (common->log.level == LEAT_LOG_NOTHING) {
        return qlog;
    }
    leat_log_init(&common->log, common->log.level, print_line, NULL, qlog);
    return &common->log.sink;
}

bool leat_cli_common_take(leat_cli_common *common, int id, const char *arg)
{
    uint64_t n;

    switch (id) {
    case LEAT_OPT_ALPN:
        common->alpn_count = 0;
        return each_item("alpn", arg, take_alpn, common);
    case LEAT_OPT_CIPHERS:
        common->tls.cipher_count = 0;
        return each_item("ciphers", arg, take_cipher, common);
    case LEAT_OPT_GROUPS:
        common->tls.group_count = 0;
        return each_item("groups", arg, take_group, common);
    case LEAT_OPT_VERSIONS:
        common->conn.version_count = 0;
        return each_item("versions", arg, take_version, common);
    case LEAT_OPT_IDLE_TIMEOUT:
        return leat_cli_seconds("idle-timeout", arg, LEAT_CLI_ZERO_TOO, &common->conn.idle_timeout);
    case LEAT_OPT_WINDOW:
        if (!leat_cli_number("window", arg, 1024, LEAT_CONN_WINDOW_MAX / 2, &n)) {
            return false;
        }
        set_window(&common->conn, n);
        return true;
    case LEAT_OPT_SEND_BUFFER:
        if (!leat_cli_number("send-buffer", arg, LEAT_STREAM_SEND_BUFFER_MIN,
                             LEAT_STREAM_SEND_BUFFER_MAX, &n)) {
            return false;
        }
        common->conn.send_buffer = (size_t)n;
        return true;
    case LEAT_OPT_UDP_PAYLOAD:
        if (!leat_cli_number("udp-payload", arg, LEAT_UDP_PAYLOAD_MIN, LEAT_UDP_PAYLOAD_MAX, &n)) {
            return false;
        }
        common->conn.udp_payload = (uint16_t)n;
        return true;
    case LEAT_OPT_CONGESTION:
        if (!leat_congestion_find(arg, &common->conn.congestion) ||
            common->conn.congestion == LEAT_CONGESTION_FIXED) {
            leat_cli_error("--congestion does not know '%s': cubic, newreno, bbr", arg);
            return false;
        }
        return true;
    case LEAT_OPT_KEY_UPDATE:
        return leat_cli_number("key-update", arg, 1, UINT64_MAX, &common->conn.key_update_packets);
    case LEAT_OPT_NO_OFFLOAD:
        common->no_offload = true;
        return true;
    case LEAT_OPT_KEYLOG:
        common->keylog_path = arg;
        return true;
    case LEAT_OPT_QLOG:
        common->qlog_dir = arg;
        return true;
    case LEAT_OPT_LOG_LEVEL:
        return take_log_level(common, arg);
    case LEAT_OPT_STATS:
        common->stats = true;
        return true;
    case LEAT_OPT_QUIET:
        common->quiet = true;
        return true;
    case LEAT_OPT_VERBOSE:
        common->verbose = true;
        return true;
    case LEAT_OPT_HELP:
        common->help = true;
        return true;
    default:
        return false;
    }
}

static const char *keylog_path(const leat_cli_common *common)
{
    return common->keylog_path ? common->keylog_path : getenv("SSLKEYLOGFILE");
}

static const char *qlog_dir(const leat_cli_common *common)
{
    return common->qlog_dir ? common->qlog_dir : getenv("QLOGDIR");
}

leat_cli_exit leat_cli_common_open(leat_cli_common *common)
{
    leat_err err = leat_keylog_open(common->keylog_path, &common->keylog);

    if (err != LEAT_OK) {
        leat_cli_error("cannot write the key log %s: %s", keylog_path(common), leat_cli_why(err));
        return leat_cli_exit_of(err, LEAT_EXIT_FILE);
    }
    err = leat_qlog_open(common->qlog_dir, &common->qlog);
    if (err != LEAT_OK) {
        leat_cli_error("cannot write qlog files into %s: %s", qlog_dir(common), leat_cli_why(err));
        return leat_cli_exit_of(err, LEAT_EXIT_FILE);
    }
    if (common->keylog) {
        common->tls.keylog = leat_keylog_write;
        common->tls.keylog_user = common->keylog;
    }
    common->tls.alpn = common->alpn;
    common->tls.alpn_count = common->alpn_count;
    return LEAT_EXIT_OK;
}

static void warn_once(bool *told, const char *what, const char *where, int error)
{
    if (error != 0 && !__atomic_exchange_n(told, true, __ATOMIC_RELAXED)) {
        leat_cli_error("warning: the %s %s: %s", what, where, strerror(error));
    }
}

void leat_cli_common_warn(const leat_cli_common *common)
{
    static bool keylog_told, qlog_told;

    warn_once(&keylog_told, "key log cannot be written into", keylog_path(common),
              leat_keylog_error(common->keylog));
    warn_once(&qlog_told, "qlog files cannot be written into", qlog_dir(common),
              leat_qlog_error(common->qlog));
}

leat_cli_exit leat_cli_common_close(leat_cli_common *common, leat_cli_exit exit_code)
{
    bool whole = true;

    if (leat_keylog_close(common->keylog) != LEAT_OK) {
        leat_cli_error("the key log %s is not whole: %s", keylog_path(common), strerror(errno));
        whole = false;
    }
    if (leat_qlog_close(common->qlog) != LEAT_OK) {
        leat_cli_error("the qlog files in %s are not whole: %s", qlog_dir(common), strerror(errno));
        whole = false;
    }
    common->keylog = NULL;
    common->qlog = NULL;
    return exit_code == LEAT_EXIT_OK && !whole ? LEAT_EXIT_FILE : exit_code;
}
