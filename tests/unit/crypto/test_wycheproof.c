/* Project Wycheproof's AEAD cases on every backend of this build that this processor can run: what
 * is valid opens and seals to the same bytes, what is not does not open and leaves no plaintext
 * that anybody reads. wycheproof.txt says where they come from.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"

#include <stdio.h>
#include <stdlib.h>

#include "crypto/aead.h"
#include "mem/mem.h"

enum { FIELDS = 9, BYTES_MAX = 1024, LINE_MAX_BYTES = 8192 };

typedef struct one_case {
    unsigned number;
    leat_aead aead;
    bool valid;
    uint8_t key[LEAT_AEAD_KEY_MAX], iv[LEAT_AEAD_IV];
    uint8_t aad[BYTES_MAX], message[BYTES_MAX], sealed[BYTES_MAX]; /* ciphertext, then tag */
    size_t key_len, aad_len, message_len, sealed_len;
} one_case;

static size_t field(const char *text, uint8_t *out, size_t room)
{
    return strcmp(text, "-") == 0 ? 0 : unhex(text, out, room);
}

static bool read_case(FILE *f, one_case *c)
{
    static char line[LINE_MAX_BYTES];
    static const char *const names[] = {"aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"};
    char *at[FIELDS];

    do {
        if (!fgets(line, sizeof line, f)) {
            return false;
        }
    } while (line[0] == '#');
    line[strcspn(line, "\n")] = '\0';
    for (unsigned i = 0; i < FIELDS; i++) {
        at[i] = strtok(i ? NULL : line, " ");
        assert_non_null(at[i]);
    }
    c->number = (unsigned)strtoul(at[0], NULL, 10);
    for (c->aead = 0; strcmp(names[c->aead], at[1]) != 0; c->aead++) {
        assert_true(c->aead + 1 < LEAT_AEAD_COUNT);
    }
    c->valid = strcmp(at[2], "valid") == 0;
    c->key_len = field(at[3], c->key, sizeof c->key);
    assert_int_equal(c->key_len, leat_aead_info_get(c->aead)->key_len);
    assert_int_equal(field(at[4], c->iv, sizeof c->iv), LEAT_AEAD_IV);
    c->aad_len = field(at[5], c->aad, sizeof c->aad);
    c->message_len = field(at[6], c->message, sizeof c->message);
    c->sealed_len = field(at[7], c->sealed, sizeof c->sealed - LEAT_AEAD_TAG);
    c->sealed_len += field(at[8], c->sealed + c->sealed_len, sizeof c->sealed - c->sealed_len);
    return true;
}

/* A packet number of 0 leaves the IV as it is: it is the nonce. */
static void opens_as_it_should(const leat_crypto_backend *b, void *engine, void *slot,
                               const one_case *c)
{
    uint8_t payload[BYTES_MAX];
    leat_open_op op = {.header = c->aad,
                       .header_len = (uint32_t)c->aad_len,
                       .payload = payload,
                       .payload_len = (uint32_t)c->sealed_len};

    memcpy(payload, c->sealed, c->sealed_len);
    b->open(engine, slot, &op, 1);
    if ((op.result == LEAT_OK) != c->valid) {
        fail_msg("%s: case %u %s", b->name, c->number, c->valid ? "does not open" : "opens");
    }
    if (c->valid) {
        assert_int_equal(c->sealed_len, c->message_len + LEAT_AEAD_TAG);
        assert_memory_equal(payload, c->message, c->message_len);
    }
}

/* Sealing protects the header as well: its first byte and the packet number, which is the last byte
 * of what the case authenticates. So it takes cases with so many bytes. */
static bool seals_as_it_should(const leat_crypto_backend *b, void *engine, void *slot,
                               const one_case *c)
{
    uint8_t packet[3 * BYTES_MAX];
    leat_seal_op op = {.packet = packet,
                       .header_len = (uint32_t)c->aad_len,
                       .payload_len = (uint32_t)c->message_len,
                       .pn_len = 1};

    if (!c->valid || c->aad_len < 2 || c->message_len < 3) {
        return false;
    }
    memcpy(packet, c->aad, c->aad_len);
    memcpy(packet + c->aad_len, c->message, c->message_len);
    assert_int_equal(b->seal(engine, slot, &op, 1), LEAT_OK);
    assert_memory_equal(packet + c->aad_len, c->sealed, c->sealed_len);
    return true;
}

static void every_backend_agrees_with_wycheproof(void **state)
{
    static one_case c;

    (void)state;
    for (size_t i = 0; leat_crypto_backends[i]; i++) {
        const leat_crypto_backend *b = leat_crypto_backends[i];
        unsigned opened = 0, refused = 0, sealed = 0;
        void *engine = NULL, *slot[LEAT_AEAD_COUNT];
        FILE *f = fopen(LEAT_WYCHEPROOF, "r");
        leat_mem *mem;

        if (!b->usable()) {
            fclose(f);
            continue;
        }
        assert_non_null(f);
        assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
        assert_int_equal(b->engine_new ? b->engine_new(mem, &engine) : LEAT_OK, LEAT_OK);
        for (leat_aead a = 0; a < LEAT_AEAD_COUNT; a++) {
            slot[a] = aligned_alloc(64, (b->slot_size + 63) / 64 * 64);
            memset(slot[a], 0, b->slot_size);
            assert_int_equal(b->slot_new(engine, slot[a], a), LEAT_OK);
        }
        while (read_case(f, &c)) {
            assert_int_equal(b->slot_key(engine, slot[c.aead], c.key, c.iv, c.key), LEAT_OK);
            opens_as_it_should(b, engine, slot[c.aead], &c);
            sealed += seals_as_it_should(b, engine, slot[c.aead], &c);
            opened += c.valid;
            refused += !c.valid;
        }
        fclose(f);
        print_message("%s: %u opened, %u refused, %u sealed\n", b->name, opened, refused, sealed);
        assert_int_equal(opened, 276); /* all that there are */
        assert_int_equal(refused, 114);
        assert_true(sealed > 150);
        for (leat_aead a = 0; a < LEAT_AEAD_COUNT; a++) {
            b->slot_free(engine, slot[a]);
            free(slot[a]);
        }
        if (b->engine_free) {
            b->engine_free(mem, engine);
        }
        leat_mem_free(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_agrees_with_wycheproof),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
