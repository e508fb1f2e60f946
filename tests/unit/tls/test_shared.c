/* The record of tickets good for early data, and keys, used by threads at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tls/shared.h"

#define THREADS 4
#define TICKETS 4000

static leat_shared *make(size_t early_tickets)
{
    leat_shared_settings settings;
    leat_shared *shared;
    leat_shared_settings_init(&settings);
    settings.seed[0] = 1;
    settings.early_tickets = early_tickets;
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
    return shared;
}

static leat_span ticket_of(uint32_t n, uint8_t bytes[32])
{
    memset(bytes, 0, 32);
    memcpy(bytes + 16, &n, sizeof n); /* the first 16 are the key's name */
    return (leat_span){bytes, 32};
}

static void test_a_ticket_is_taken_once_under_its_own_conditions(void **state)
{
    (void)state;
    leat_shared *shared = make(1000);
    uint8_t bytes[32];
    leat_span ticket = ticket_of(1, bytes);
    assert_false(leat_shared_claim(shared, ticket, 5));
    leat_shared_issued(shared, 0, ticket, 5, true);
    assert_false(leat_shared_claim(shared, ticket, 6));
    assert_true(leat_shared_claim(shared, ticket, 5));
    assert_false(leat_shared_claim(shared, ticket, 5));
    leat_shared_issued(shared, 0, ticket_of(2, bytes), 5, false);
    assert_false(leat_shared_claim(shared, ticket_of(2, bytes), 5));
    leat_shared_free(shared);
}

/* However many are issued, memory stays, and the newest are the ones that count. */
static void test_the_newest_tickets_are_remembered(void **state)
{
    (void)state;
    leat_shared *shared = make(700);
    uint8_t bytes[32];
    for (uint32_t i = 0; i < 100000; i++) {
        leat_shared_issued(shared, 0, ticket_of(i, bytes), 0, true);
        assert_true(i % 1000 != 0 || leat_shared_claim(shared, ticket_of(i, bytes), 0));
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        kept += leat_shared_claim(shared, ticket_of(i, bytes), 0);
    }
    assert_true(kept >= 600);
    assert_true(kept <= 128 * 7);
    leat_shared_free(shared);
    shared = make(0);
    leat_shared_issued(shared, 0, ticket_of(1, bytes), 0, true);
    assert_false(leat_shared_claim(shared, ticket_of(1, bytes), 0));
    leat_shared_free(shared);
}

static void test_token_keys_rotate(void **state)
{
    (void)state;
    leat_shared *shared = make(0);
    uint8_t first[LEAT_SHARED_KEY], key[LEAT_SHARED_KEY], again[LEAT_SHARED_KEY];
    uint8_t number = leat_shared_token_key(shared, first);
    assert_false(leat_shared_token_key_of(shared, (uint8_t)(number + 1), key));
    assert_false(leat_shared_token_key_of(shared, (uint8_t)(number - 1), key));
    for (unsigned i = 1; i < 600; i++) {
        memset(key, (int)i, sizeof key);
        leat_shared_rotate_tokens(shared, key);
        uint8_t now = leat_shared_token_key(shared, again);
        assert_memory_equal(again, key, sizeof key);
        assert_int_equal(now, (uint8_t)(number + i));
        assert_true(leat_shared_token_key_of(shared, now, again));
        assert_true(leat_shared_token_key_of(shared, number, again) == (i % 256 < 4));
        if (i < 4) {
            assert_memory_equal(again, first, sizeof first);
        }
    }
    leat_shared_free(shared);
}

static void test_keys_come_from_the_ticket_key_when_it_is_given(void **state)
{
    (void)state;
    static const uint8_t ticket_key[LEAT_TLS_TICKET_KEY] = {9};
    uint8_t token[2][LEAT_SHARED_KEY], reset[2][LEAT_SHARED_KEY];
    for (int i = 0; i < 2; i++) {
        leat_shared_settings settings;
        leat_shared *shared;
        leat_shared_settings_init(&settings);
        settings.seed[0] = (uint8_t)(i + 1);
        settings.ticket_key = (leat_span){ticket_key, sizeof ticket_key};
        assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
        leat_shared_token_key(shared, token[i]);
        memcpy(reset[i], leat_shared_reset_key(shared), LEAT_SHARED_KEY);
        leat_shared_free(shared);
    }
    assert_memory_equal(token[0], token[1], LEAT_SHARED_KEY);
    assert_memory_equal(reset[0], reset[1], LEAT_SHARED_KEY);
    assert_memory_not_equal(token[0], reset[0], LEAT_SHARED_KEY);
}

static void test_bad_settings_are_refused(void **state)
{
    (void)state;
    static const uint8_t key[100];
    leat_shared_settings settings;
    leat_shared *shared;
    leat_shared_settings_init(&settings);
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_ERR_INVALID);
    assert_null(shared);
    settings.seed[31] = 1;
    settings.ticket_key = (leat_span){key, 63};
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_ERR_INVALID);
    settings.ticket_key.len = 0;
    settings.token_key = (leat_span){key, 31};
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_ERR_INVALID);
    settings.token_key.len = 0;
    settings.early_tickets = (size_t)LEAT_EARLY_TICKETS_MAX + 1;
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_ERR_INVALID);
}

/* ---- threads ---- */

static struct {
    leat_shared *shared;
    _Atomic uint32_t won[TICKETS];
} race;

/* All claim the same tickets, each also issues its own, and keys go round meanwhile. */
static void *racer(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    uint8_t bytes[32], key[LEAT_TLS_TICKET_KEY], slot;
    for (uint32_t i = 0; i < TICKETS; i++) {
        if (leat_shared_claim(race.shared, ticket_of(i, bytes), 1)) {
            atomic_fetch_add(&race.won[i], 1);
        }
        leat_shared_ticket_key(race.shared, ticket_of(i, bytes), key, &slot);
        leat_shared_issued(race.shared, slot, ticket_of(1000000 * (me + 1) + i, bytes), 1, true);
        leat_shared_token_key(race.shared, key);
        if (me == 0 && i % 100 == 0) {
            leat_shared_rotate_tokens(race.shared, key);
            leat_shared_rotate_tickets(race.shared, key);
        }
    }
    return NULL;
}

static void test_of_threads_that_claim_a_ticket_one_wins(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint8_t bytes[32];
    race.shared = make(1000000);
    for (uint32_t i = 0; i < TICKETS; i++) {
        leat_shared_issued(race.shared, 0, ticket_of(i, bytes), 1, true);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, racer, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < TICKETS; i++) {
        assert_int_equal(atomic_load(&race.won[i]), 1);
    }
    leat_shared_free(race.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ticket_is_taken_once_under_its_own_conditions),
        cmocka_unit_test(test_the_newest_tickets_are_remembered),
        cmocka_unit_test(test_token_keys_rotate),
        cmocka_unit_test(test_keys_come_from_the_ticket_key_when_it_is_given),
        cmocka_unit_test(test_bad_settings_are_refused),
        cmocka_unit_test(test_of_threads_that_claim_a_ticket_one_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
