/* tests/oom/test_tls.c: the TLS library fails. It does not survive its own failures everywhere, so
 * failure is injected at leat's door to it (tls/tls.h), and at the ciphers: the linker
 * puts these in place of what they wrap.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <gnutls/crypto.h>

#include "crypto/backend.h"
#include "crypto/keys.h"
#include "tls/tls.h"
#include "world.h"

static struct {
    bool door; /* calls through the door fail; else ciphers: their making, and sealing */
    uint64_t nth, seen, hits;
    bool lasting;
    const leat_tls *failed; /* by order */
} order;

static bool fails(bool door)
{
    if (order.nth == 0 || door != order.door) {
        return false;
    }
    order.seen++;
    if (order.seen == order.nth || (order.lasting && order.seen > order.nth)) {
        order.hits++;
        return true;
    }
    return false;
}

leat_err __real_leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out);
leat_err __wrap_leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out);
leat_err __wrap_leat_tls_new(leat_mem *mem, const leat_tls_params *params, leat_tls **out)
{
    *out = NULL;
    return fails(true) ? LEAT_ERR_NOMEM : __real_leat_tls_new(mem, params, out);
}

leat_err __real_leat_tls_start(leat_tls *tls);
leat_err __wrap_leat_tls_start(leat_tls *tls);
leat_err __wrap_leat_tls_start(leat_tls *tls)
{
    if (fails(true)) {
        order.failed = tls;
        return LEAT_ERR_TLS;
    }
    return __real_leat_tls_start(tls);
}

leat_err __real_leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len);
leat_err __wrap_leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len);
leat_err __wrap_leat_tls_recv(leat_tls *tls, leat_level level, const uint8_t *data, size_t len)
{
    if (fails(true)) {
        order.failed = tls;
        return LEAT_ERR_TLS;
    }
    return __real_leat_tls_recv(tls, level, data, len);
}

leat_err __real_leat_tls_send_tickets(leat_tls *tls);
leat_err __wrap_leat_tls_send_tickets(leat_tls *tls);
leat_err __wrap_leat_tls_send_tickets(leat_tls *tls)
{
    if (fails(true)) {
        order.failed = tls;
        return LEAT_ERR_TLS;
    }
    return __real_leat_tls_send_tickets(tls);
}

leat_tls_failure __real_leat_tls_fail(const leat_tls *tls);
leat_tls_failure __wrap_leat_tls_fail(const leat_tls *tls);
leat_tls_failure __wrap_leat_tls_fail(const leat_tls *tls)
{
    if (tls == order.failed) {
        return (leat_tls_failure){LEAT_ERR_TLS, LEAT_TE_INTERNAL_ERROR, "out of memory, by order"};
    }
    return __real_leat_tls_fail(tls);
}

int __real_gnutls_aead_cipher_init(gnutls_aead_cipher_hd_t *handle,
                                   gnutls_cipher_algorithm_t cipher, const gnutls_datum_t *key);
int __wrap_gnutls_aead_cipher_init(gnutls_aead_cipher_hd_t *handle,
                                   gnutls_cipher_algorithm_t cipher, const gnutls_datum_t *key);
int __wrap_gnutls_aead_cipher_init(gnutls_aead_cipher_hd_t *handle,
                                   gnutls_cipher_algorithm_t cipher, const gnutls_datum_t *key)
{
    return fails(false) ? GNUTLS_E_MEMORY_ERROR
                        : __real_gnutls_aead_cipher_init(handle, cipher, key);
}

/* IPSec-MB makes its contexts in leat's memory: the library that has a heap of its own is GnuTLS.
 */
const leat_crypto_backend *__real_leat_crypto_backend_pick(const char *name);
const leat_crypto_backend *__wrap_leat_crypto_backend_pick(const char *name);
const leat_crypto_backend *__wrap_leat_crypto_backend_pick(const char *name)
{
    return __real_leat_crypto_backend_pick(name ? name : "gnutls");
}

leat_err __real_leat_seal(leat_key_cache *cache, leat_packet_keys *keys, leat_seal_op *ops,
                          size_t n);
leat_err __wrap_leat_seal(leat_key_cache *cache, leat_packet_keys *keys, leat_seal_op *ops,
                          size_t n);
leat_err __wrap_leat_seal(leat_key_cache *cache, leat_packet_keys *keys, leat_seal_op *ops,
                          size_t n)
{
    return fails(false) ? LEAT_ERR_NOMEM : __real_leat_seal(cache, keys, ops, n);
}

static uint64_t arm(oom_world *w, uint64_t nth, bool lasting, bool door)
{
    uint64_t hits = order.hits;

    (void)w;
    memset(&order, 0, sizeof(order));
    order.door = door;
    order.nth = nth;
    order.lasting = lasting;
    return hits;
}

static uint64_t arm_door(oom_world *w, uint64_t nth, bool lasting)
{
    return arm(w, nth, lasting, true);
}

static uint64_t arm_ciphers(oom_world *w, uint64_t nth, bool lasting)
{
    return arm(w, nth, lasting, false);
}

static void prepare(oom_world *w)
{
    w->setup.tickets = 2;
}

static void play(oom_world *w)
{
    leat_oom_connect(w);
    leat_oom_run(w, LEAT_SECOND);
    leat_oom_open(w, 5000);
    leat_oom_run(w, LEAT_SECOND);
}

static void judge(oom_world *w, bool whole)
{
    assert_true(!whole || (w->client.connected && w->server.connected));
}

static const oom_scenario handshake = {.prepare = prepare, .play = play, .judge = judge};

static void the_door_to_tls_fails(void **state)
{
    (void)state;
    assert_true(leat_oom_try_with(&handshake, arm_door, false) >= 6);
    leat_oom_try_with(&handshake, arm_door, true);
}

static void ciphers_fail(void **state)
{
    (void)state;
    assert_true(leat_oom_try_with(&handshake, arm_ciphers, false) >= 2);
    leat_oom_try_with(&handshake, arm_ciphers, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_door_to_tls_fails),
        cmocka_unit_test(ciphers_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
