/* Transport parameters with random values, there and back in any order; every prefix; damage;
 * noise. */
#include "wire_test.h"

#include "wire/tparams.h"

typedef struct sample {
    leat_tparams params;
    uint8_t versions[4 * LEAT_TPARAMS_VERSIONS_MAX];
    uint8_t grease[LEAT_TPARAMS_GREASE_MAX];
} sample;

static uint64_t random_within(leat_prng *prng, uint64_t least, uint64_t most)
{
    uint64_t v = random_varint(prng);

    return v < least ? least : v > most ? most : v;
}

#define RANDOM_NUMBER(name, id, def, least, most, why)                                             \
    if (leat_prng_below(prng, 2) == 1) {                                                           \
        t->name = random_within(prng, (least), (most));                                            \
    }

/* A legal set of a server. */
static void random_set(leat_prng *prng, sample *s)
{
    leat_tparams *t = &s->params;
    uint8_t noise[LEAT_CID_MAX];

    leat_tparams_init(t);
    LEAT_TPARAM_NUMBER_LIST(RANDOM_NUMBER)
    t->present = (uint32_t)leat_prng_u64(prng) & ((1 << LEAT_TPARAM_KINDS) - 1) &
                 ~(uint32_t)((1 << LEAT_TPARAM_NUMBERS) - 1);
    leat_prng_fill(prng, noise, sizeof noise);
    leat_cid_set(&t->original_dcid, noise, leat_prng_below(prng, 21));
    leat_prng_fill(prng, noise, sizeof noise);
    leat_cid_set(&t->initial_scid, noise, leat_prng_between(prng, 1, 20));
    leat_prng_fill(prng, noise, sizeof noise);
    leat_cid_set(&t->retry_scid, noise, leat_prng_below(prng, 21));
    leat_prng_fill(prng, t->stateless_reset_token, 16);
    leat_prng_fill(prng, t->preferred_address.ipv4, 4);
    leat_prng_fill(prng, t->preferred_address.ipv6, 16);
    leat_prng_fill(prng, t->preferred_address.reset_token, 16);
    t->preferred_address.ipv4_port = (uint16_t)leat_prng_u64(prng);
    t->preferred_address.ipv6_port = (uint16_t)leat_prng_u64(prng);
    leat_cid_set(&t->preferred_address.cid, noise, leat_prng_between(prng, 1, 20));
    memset(s->versions, 0x5a, sizeof s->versions);
    t->version_information.chosen = (uint32_t)leat_prng_between(prng, 1, UINT32_MAX);
    t->version_information.available =
        (leat_span){s->versions, 4 * leat_prng_below(prng, LEAT_TPARAMS_VERSIONS_MAX + 1)};
    if (leat_prng_below(prng, 2) == 1) {
        leat_prng_fill(prng, s->grease, sizeof s->grease);
        t->grease_id = 31 * (random_varint(prng) / 32) + 27;
        t->grease_id = t->grease_id == 0x2ab2 ? 27 : t->grease_id;
        t->grease = (leat_span){s->grease, leat_prng_below(prng, LEAT_TPARAMS_GREASE_MAX + 1)};
    }
}

static void assert_set_equal(const leat_tparams *got, const leat_tparams *want)
{
    uint32_t others = ~(uint32_t)((1 << LEAT_TPARAM_NUMBERS) - 1);

    assert_memory_equal(got->numbers, want->numbers, sizeof got->numbers);
    assert_int_equal(got->present & others, want->present & others);
    if (leat_tparams_has(want, LEAT_TP_original_dcid)) {
        assert_memory_equal(&got->original_dcid, &want->original_dcid, sizeof(leat_cid));
    }
    if (leat_tparams_has(want, LEAT_TP_initial_scid)) {
        assert_memory_equal(&got->initial_scid, &want->initial_scid, sizeof(leat_cid));
    }
    if (leat_tparams_has(want, LEAT_TP_retry_scid)) {
        assert_memory_equal(&got->retry_scid, &want->retry_scid, sizeof(leat_cid));
    }
    if (leat_tparams_has(want, LEAT_TP_stateless_reset_token)) {
        assert_memory_equal(got->stateless_reset_token, want->stateless_reset_token, 16);
    }
    if (leat_tparams_has(want, LEAT_TP_preferred_address)) {
        const leat_preferred_address *a = &got->preferred_address;
        const leat_preferred_address *b = &want->preferred_address;

        assert_memory_equal(a->ipv4, b->ipv4, 4);
        assert_memory_equal(a->ipv6, b->ipv6, 16);
        assert_int_equal(a->ipv4_port, b->ipv4_port);
        assert_int_equal(a->ipv6_port, b->ipv6_port);
        assert_true(leat_cid_equal(&a->cid, &b->cid));
        assert_memory_equal(a->reset_token, b->reset_token, 16);
    }
    if (leat_tparams_has(want, LEAT_TP_version_information)) {
        leat_span a = got->version_information.available;
        leat_span b = want->version_information.available;

        assert_int_equal(got->version_information.chosen, want->version_information.chosen);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
    }
}

static bytes encode(const leat_tparams *t)
{
    uint8_t out[LEAT_TPARAMS_MAX];
    leat_writer w;

    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_tparams_encode(t, &w));
    assert_int_equal(leat_writer_len(&w), leat_tparams_size(t));
    return bytes_copy(out, leat_writer_len(&w));
}

/* The offset after the parameter at `at`, written here without the code under test. */
static size_t after(bytes b, size_t at)
{
    for (int i = 0; i < 2; i++) {
        size_t n = (size_t)1 << (b.data[at] >> 6);
        uint64_t v = b.data[at] & 0x3f;

        for (size_t k = 1; k < n; k++) {
            v = v << 8 | b.data[at + k];
        }
        at += n + (i == 1 ? v : 0);
    }
    return at;
}

/* The same parameters, turned so that the one at `at` comes first. */
static bytes turned(bytes b, size_t at)
{
    bytes t = bytes_copy(b.data, b.len);

    memcpy(t.data, b.data + at, b.len - at);
    memcpy(t.data + b.len - at, b.data, at);
    return t;
}

static void a_set_comes_back_in_any_order(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(21));
    for (int round = 0; round < 3000; round++) {
        leat_tparams got;
        const char *why;
        sample s;
        bytes b;

        random_set(&prng, &s);
        b = encode(&s.params);
        for (size_t at = 0; at < b.len; at = after(b, at)) {
            bytes t = turned(b, at);

            assert_int_equal(leat_tparams_decode((leat_span){t.data, t.len}, true, &got, &why), 0);
            assert_set_equal(&got, &s.params);
            free(t.data);
        }
        free(b.data);
    }
}

/* A prefix is a set only where a parameter ends. */
static void a_cut_set_is_refused(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(22));
    for (int round = 0; round < 1000; round++) {
        size_t boundary = 0;
        sample s;
        bytes b;

        random_set(&prng, &s);
        b = encode(&s.params);
        for (size_t len = 0; len <= b.len; len++) {
            bytes cut = bytes_copy(b.data, len);
            leat_tparams got;
            const char *why;
            uint64_t error = leat_tparams_decode((leat_span){cut.data, cut.len}, true, &got, &why);

            assert_int_equal(error, len == boundary ? 0 : LEAT_TE_TRANSPORT_PARAMETER_ERROR);
            if (len == boundary && len < b.len) {
                boundary = after(b, boundary);
            }
            free(cut.data);
        }
        free(b.data);
    }
}

static void every_parameter_given_twice_is_refused(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(23));
    for (int round = 0; round < 1000; round++) {
        sample s;
        bytes b;

        random_set(&prng, &s);
        b = encode(&s.params);
        for (size_t at = 0; at < b.len; at = after(b, at)) {
            size_t len = after(b, at) - at;
            bytes twice = {malloc(b.len + len), b.len + len};
            leat_tparams got;
            const char *why;

            memcpy(twice.data, b.data, b.len);
            memcpy(twice.data + b.len, b.data + at, len);
            assert_int_equal(
                leat_tparams_decode((leat_span){twice.data, twice.len}, true, &got, &why),
                LEAT_TE_TRANSPORT_PARAMETER_ERROR);
            free(twice.data);
        }
        free(b.data);
    }
}

/* What was accepted is legal, whatever it was made from. */
static void assert_legal(const leat_tparams *t)
{
    assert_true(t->max_udp_payload_size >= 1200);
    assert_true(t->initial_max_streams_bidi <= UINT64_C(1) << 60);
    assert_true(t->initial_max_streams_uni <= UINT64_C(1) << 60);
    assert_true(t->ack_delay_exponent <= 20);
    assert_true(t->max_ack_delay < 1 << 14);
    assert_true(t->active_connection_id_limit >= 2);
    assert_true(t->original_dcid.len <= LEAT_CID_MAX);
    assert_true(t->initial_scid.len <= LEAT_CID_MAX);
    assert_true(t->retry_scid.len <= LEAT_CID_MAX);
    for (size_t i = 0; i < LEAT_TPARAM_NUMBERS; i++) {
        assert_true(t->numbers[i] <= LEAT_VARINT_MAX);
    }
    if (leat_tparams_has(t, LEAT_TP_preferred_address)) {
        assert_in_range(t->preferred_address.cid.len, 1, LEAT_CID_MAX);
    }
    assert_int_equal(t->version_information.available.len % 4, 0);
}

static void damaged_sets_and_noise_stay_within_bounds(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(24));
    for (int round = 0; round < 100000; round++) {
        leat_tparams got;
        const char *why;
        sample s;
        bytes b;

        if (round % 4 == 0) {
            uint8_t noise[64];

            leat_prng_fill(&prng, noise, sizeof noise);
            noise[0] &= 0x1f;
            noise[1] &= 0x07;
            b = bytes_copy(noise, leat_prng_below(&prng, sizeof noise));
        } else {
            random_set(&prng, &s);
            b = encode(&s.params);
            if (b.len > 0) {
                b.data[leat_prng_below(&prng, b.len)] = (uint8_t)leat_prng_u64(&prng);
            }
        }
        if (leat_tparams_decode((leat_span){b.data, b.len}, leat_prng_below(&prng, 2) == 1, &got,
                                &why) == 0) {
            assert_legal(&got);
        }
        free(b.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_comes_back_in_any_order),
        cmocka_unit_test(a_cut_set_is_refused),
        cmocka_unit_test(every_parameter_given_twice_is_refused),
        cmocka_unit_test(damaged_sets_and_noise_stay_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
