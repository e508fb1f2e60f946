/* cli/session.c: secrets that outlive the command: a client's session and address token, a server's
 * ticket key. Both are files that only their owner may read.
 *
 * A client's file is the session, and behind it, if there is a token, the token, its length in two
 * bytes, and TOKEN_END.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that the file has, up to cap bytes; -1: errno says why. */
static ssize_t read_all(const char *path, uint8_t *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    if (fd < 0) {
        return -1;
    }
    while (len < cap && (n = read(fd, out + len, cap - len)) != 0) {
        if (n < 0 && errno != EINTR) {
            int error = errno;

            close(fd);
            errno = error;
            return -1;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return (ssize_t)len;
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void place_init(leat_cli_place *place, const char *path)
{
    bool descriptor;

    place->path = path;
    place->real = leat_cli_resolve(path, &descriptor);
    place->part = leat_cli_part_name(place->real);
}

static void place_free(leat_cli_place *place)
{
    free(place->part);
    free(place->real);
    place->part = place->real = NULL;
}

static bool write_file(leat_cli_place *place, const uint8_t *data, size_t len)
{
    int fd = leat_cli_part_open(place->part, 0600);
    bool good = fd >= 0 && write_all(fd, data, len);

    good = fd >= 0 && close(fd) == 0 && good && rename(place->part, place->real) == 0;
    if (fd >= 0 && !good) {
        int error = errno;

        unlink(place->part);
        errno = error;
    }
    return good;
}

/* ---- a client's session ---- */

#define TOKEN_END "leat-token"

enum { TOKEN_END_LEN = sizeof TOKEN_END - 1, TOKEN_TAIL = 2 + TOKEN_END_LEN };
/* A token is a server's of LEAT_TOKEN_MAX bytes at most, and a little of the library's. */
enum { TOKEN_ROOM = 2 * LEAT_TOKEN_MAX, FILE_MAX = LEAT_SESSION_MAX + TOKEN_ROOM + TOKEN_TAIL };

void leat_cli_session_init(leat_cli_session *session)
{
    session->data = leat_cli_alloc(1, FILE_MAX);
}

/* Where the token has its place. */
static uint8_t *token_place(const leat_cli_session *session)
{
    return session->data + LEAT_SESSION_MAX;
}

/* Takes the token off the end of what the file has. */
static void split_token(leat_cli_session *session)
{
    const uint8_t *end = session->data + session->len;
    size_t len;

    if (session->len < TOKEN_TAIL || memcmp(end - TOKEN_END_LEN, TOKEN_END, TOKEN_END_LEN) != 0) {
        return;
    }
    len = (size_t)end[-TOKEN_TAIL] << 8 | end[1 - TOKEN_TAIL];
    if (len > TOKEN_ROOM || len > session->len - TOKEN_TAIL) {
        return;
    }
    memmove(token_place(session), end - TOKEN_TAIL - len, len);
    session->token = (leat_span){token_place(session), len};
    session->len -= TOKEN_TAIL + len;
}

/* What goes into the file, in `out`, FILE_MAX bytes. Returns its length. */
static size_t join_token(const leat_cli_session *session, uint8_t *out)
{
    size_t token = session->token.len;
    uint8_t *end = out + session->len;

    memcpy(out, session->data, session->len);
    if (token == 0) {
        return session->len;
    }
    memcpy(end, session->token.data, token);
    end += token;
    *end++ = (uint8_t)(token >> 8);
    *end++ = (uint8_t)token;
    memcpy(end, TOKEN_END, TOKEN_END_LEN);
    return (size_t)(end - out) + TOKEN_END_LEN;
}

/* What else stands there is somebody's file, and must not be written over. An empty one may. */
static bool is_session(const leat_cli_session *session)
{
    static const char magic[] = LEAT_SESSION_MAGIC;
    size_t n = strlen(magic);

    return session->len >= n && memcmp(session->data, magic, n) == 0;
}

bool leat_cli_session_load(leat_cli_session *session, const char *path)
{
    ssize_t n;

    place_init(&session->place, path);
    leat_cli_session_init(session);
    n = read_all(path, session->data, FILE_MAX);
    if (n < 0 && errno != ENOENT) {
        leat_cli_error("cannot read the session file %s: %s", path, strerror(errno));
        return false;
    }
    session->len = n > 0 ? (size_t)n : 0;
    split_token(session);
    if (session->len > 0 && !is_session(session)) {
        leat_cli_error("%s is no session file: it is left as it is", path);
        return false;
    }
    if (session->len > 0 && !leat_session_is_whole((leat_span){session->data, session->len})) {
        leat_cli_error("warning: the session in %s is damaged: a new one begins", path);
        session->len = 0;
    }
    return true;
}

void leat_cli_session_keep(leat_cli_session *session, leat_span data)
{
    if (session->data && data.len <= LEAT_SESSION_MAX) {
        memcpy(session->data, data.data, data.len);
        session->len = data.len;
        session->fresh = true;
    }
}

void leat_cli_session_keep_token(leat_cli_session *session, leat_span token)
{
    if (session->data && token.len <= TOKEN_ROOM) {
        memcpy(token_place(session), token.data, token.len);
        session->token = (leat_span){token_place(session), token.len};
        session->token_changed = true;
    }
}

void leat_cli_session_token_used(leat_cli_session *session)
{
    session->token_changed |= session->token.len > 0;
    session->token.len = 0;
}

bool leat_cli_session_save(leat_cli_session *session)
{
    uint8_t file[FILE_MAX];
    bool good;

    if (!session->fresh && !session->token_changed) {
        return true;
    }
    session->fresh = session->token_changed = false;
    good = write_file(&session->place, file, join_token(session, file));
    explicit_bzero(file, sizeof file);
    if (good) {
        return true;
    }
    leat_cli_error("cannot write the session file %s: %s", session->place.path, strerror(errno));
    return false;
}

void leat_cli_session_free(leat_cli_session *session)
{
    if (session->data) {
        explicit_bzero(session->data, FILE_MAX);
        free(session->data);
        session->data = NULL;
    }
    place_free(&session->place);
}

/* ---- a server's ticket key ---- */

bool leat_cli_random(void *out, size_t len)
{
    if (getrandom(out, len, 0) == (ssize_t)len) {
        return true;
    }
    leat_cli_error("no random bytes: %s", strerror(errno));
    return false;
}

static bool make_ticket_key(const char *path, uint8_t key[LEAT_TLS_TICKET_KEY])
{
    leat_cli_place place;
    bool good = leat_cli_random(key, LEAT_TLS_TICKET_KEY);

    place_init(&place, path);
    if (good && !write_file(&place, key, LEAT_TLS_TICKET_KEY)) {
        leat_cli_error("cannot write the ticket key %s: %s", path, strerror(errno));
        good = false;
    }
    place_free(&place);
    return good;
}

bool leat_cli_ticket_key(const char *path, uint8_t key[LEAT_TLS_TICKET_KEY])
{
    uint8_t bytes[LEAT_TLS_TICKET_KEY + 1];
    ssize_t n = read_all(path, bytes, sizeof bytes);
    bool good = n == LEAT_TLS_TICKET_KEY;

    if (n < 0 && errno == ENOENT) {
        good = make_ticket_key(path, bytes);
    } else if (n < 0) {
        leat_cli_error("cannot read the ticket key %s: %s", path, strerror(errno));
    } else if (!good) {
        leat_cli_error("%s is no ticket key: it must have %d bytes", path, LEAT_TLS_TICKET_KEY);
    }
    if (good) {
        memcpy(key, bytes, LEAT_TLS_TICKET_KEY);
    }
    explicit_bzero(bytes, sizeof bytes);
    return good;
}

leat_cli_exit leat_cli_shared_new(const char *ticket_key_path, bool early_data, leat_shared **out)
{
    uint8_t key[LEAT_TLS_TICKET_KEY];
    leat_shared_settings settings;
    leat_err err = LEAT_ERR_IO;

    leat_shared_settings_init(&settings);
    if (ticket_key_path) {
        if (!leat_cli_ticket_key(ticket_key_path, key)) {
            return LEAT_EXIT_FILE;
        }
        settings.ticket_key = (leat_span){key, sizeof key};
    }
    if (!early_data) {
        settings.early_tickets = 0;
    }
    if (leat_cli_random(settings.seed, sizeof settings.seed)) {
        err = leat_shared_new(&settings, out);
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(&settings, sizeof settings);
    if (err == LEAT_ERR_NOMEM) {
        leat_cli_no_memory();
    }
    return err == LEAT_OK ? LEAT_EXIT_OK : LEAT_EXIT_FAILURE;
}
