/* cli/tls.c: TLS from files: a server's identity, a client's authorities. A message names the file
 * that is at fault.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <time.h>
#include <unistd.h>

enum {
    IDENTITY_MOST = 1 << 20, /* bytes of a certificate or key file */
    CA_MOST = 16 << 20,
    CERT_DAYS = 30, /* how long a certificate made at start-up lasts */
    DAY = 86400
};

static leat_cli_exit read_pem(leat_mem *mem, const char *path, size_t most, leat_buf *out)
{
    leat_err err = leat_file_read(mem, path, most, out);

    if (err == LEAT_ERR_LIMIT) {
        leat_cli_error("%s is too large: at most %zu MiB of PEM are read", path, most >> 20);
        return LEAT_EXIT_FILE;
    }
    if (err != LEAT_OK) {
        leat_cli_error("cannot read %s: %s", path, leat_cli_why(err));
        return leat_cli_exit_of(err, LEAT_EXIT_FILE);
    }
    if (out->len == 1) { /* the zero byte at the end */
        leat_cli_error("%s is empty", path);
        leat_buf_release(out);
        return LEAT_EXIT_CERTIFICATE;
    }
    return LEAT_EXIT_OK;
}

/* The zero byte at the end is not PEM. */
static leat_span pem_of(const leat_buf *buf)
{
    return (leat_span){buf->data, buf->len - 1};
}

static leat_cli_exit failed(const char *path, leat_err err, const leat_tls_error *error)
{
    leat_cli_error("%s: %s", path ? path : "TLS",
                   error->text[0] ? error->text : leat_err_text(err));
    return err == LEAT_ERR_CERTIFICATE ? LEAT_EXIT_CERTIFICATE
                                       : leat_cli_exit_of(err, LEAT_EXIT_FAILURE);
}

/* ---- a client's ---- */

leat_cli_exit leat_cli_tls_client(leat_tls_settings *settings, leat_mem *mem, const char *ca_path,
                                  leat_tls_config **out)
{
    leat_buf ca = {NULL, 0, NULL};
    leat_tls_error error = {.text = ""};
    leat_err err;

    if (ca_path) {
        leat_cli_exit exit_code = read_pem(mem, ca_path, CA_MOST, &ca);

        if (exit_code != LEAT_EXIT_OK) {
            return exit_code;
        }
        settings->ca_pem = pem_of(&ca);
    }
    err = leat_tls_config_client(settings, out, &error);
    leat_buf_release(&ca);
    return err == LEAT_OK ? LEAT_EXIT_OK : failed(ca_path, err, &error);
}

/* ---- a server's ---- */

/* A certificate that no client will take is served all the same: the clock may be wrong. */
static void warn_of_dates(const char *path, const leat_tls_config *config)
{
    int64_t now = (int64_t)time(NULL), from, to;

    leat_tls_config_validity(config, &from, &to);
    if (now > to) {
        leat_cli_error("warning: the certificate in %s has expired: clients will refuse it", path);
    } else if (now < from) {
        leat_cli_error("warning: the certificate in %s is not valid yet: clients will refuse it",
                       path);
    }
}

static leat_cli_exit from_files(leat_tls_settings *settings, leat_mem *mem, const char *cert_path,
                                const char *key_path, leat_tls_config **out)
{
    static const char of_key[] = "private key";
    leat_buf cert = {NULL, 0, NULL}, key = {NULL, 0, NULL};
    leat_cli_exit exit_code = read_pem(mem, cert_path, IDENTITY_MOST, &cert);
    leat_tls_error error = {.text = ""};
    leat_err err;

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = read_pem(mem, key_path, IDENTITY_MOST, &key);
    }
    if (exit_code == LEAT_EXIT_OK) {
        settings->cert_pem = pem_of(&cert);
        settings->key_pem = pem_of(&key);
        err = leat_tls_config_server(settings, out, &error);
        if (err == LEAT_OK) {
            warn_of_dates(cert_path, *out);
        } else {
            bool key_failed = strncmp(error.text, of_key, sizeof of_key - 1) == 0;

            exit_code = failed(key_failed ? key_path : cert_path, err, &error);
        }
    }
    leat_buf_release(&cert);
    leat_buf_release(&key);
    return exit_code;
}

static leat_cli_exit self_signed(leat_tls_settings *settings, leat_tls_config **out)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX], host[256];
    const char *hosts[4] = {"localhost", "127.0.0.1", "::1", host};
    int64_t now = (int64_t)time(NULL);
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 3,
                                    .not_before = now - DAY,
                                    .not_after = now + CERT_DAYS * DAY};
    size_t cert_len, key_len;
    leat_tls_error error = {.text = ""};
    leat_err err;

    if (gethostname(host, sizeof host - 1) == 0 && host[0] && strcmp(host, hosts[0]) != 0) {
        request.host_count++;
    }
    err = leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error);
    if (err == LEAT_OK) {
        settings->cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
        settings->key_pem = (leat_span){(const uint8_t *)key, key_len};
        err = leat_tls_config_server(settings, out, &error);
    }
    return err == LEAT_OK ? LEAT_EXIT_OK : failed("the certificate made at start-up", err, &error);
}

leat_cli_exit leat_cli_tls_server(leat_tls_settings *settings, leat_mem *mem, const char *cert_path,
                                  const char *key_path, leat_tls_config **out)
{
    return cert_path ? from_files(settings, mem, cert_path, key_path, out)
                     : self_signed(settings, out);
}
