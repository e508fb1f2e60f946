/* TLS messages out of pieces of any size: what comes together is not copied, what does not is, in
 * room that grows with what has come and never with what is promised.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mem/mem.h"
#include "tls/assemble.h"

static leat_mem *mem;
static uint8_t input[100000];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof input; i++) {
        input[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    return leat_mem_new(NULL, &mem) == LEAT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    leat_mem_free(mem);
    return 0;
}

/* A message with so long a body at the beginning of the input. */
static size_t begin(uint32_t body)
{
    input[0] = 11;
    input[1] = (uint8_t)(body >> 16);
    input[2] = (uint8_t)(body >> 8);
    input[3] = (uint8_t)body;
    return 4 + body;
}

/* Hands the message over in pieces of `piece` bytes; the most room that was taken for it. */
static uint32_t assemble(size_t total, size_t piece)
{
    leat_tls_assembler in = {.have = 0};
    leat_span message = {NULL, 0};
    uint32_t most = 0;

    for (size_t at = 0; at < total;) {
        const uint8_t *data = input + at;
        size_t len = piece < total - at ? piece : total - at;

        at += len;
        assert_int_equal(message.len, 0);
        if (leat_tls_assemble_header(&in, &data, &len)) {
            assert_int_equal(leat_tls_assemble_body(&in, mem, &data, &len, &message), LEAT_OK);
        }
        assert_int_equal(len, 0);
        assert_true(in.room <= 1024 || in.room <= 2 * at);
        most = in.room > most ? in.room : most;
    }
    assert_int_equal(message.len, total);
    assert_memory_equal(message.data, input, total);
    leat_tls_assembler_reset(&in, mem);
    assert_null(in.message);
    assert_int_equal(in.have, 0);
    return most;
}

static void any_pieces_make_the_message(void **state)
{
    static const uint32_t bodies[] = {0, 1, 3, 1020, 1021, 5000, 60000};
    static const size_t pieces[] = {1, 3, 5, 700, 3000, 100000};

    (void)state;
    for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
        for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
            size_t total = begin(bodies[b]);
            uint32_t room = assemble(total, pieces[p]);

            assert_true(room <= total);
            if (pieces[p] >= total) {
                assert_int_equal(room, 0); /* where it lay */
            }
        }
    }
}

static void without_memory_it_says_so_and_may_be_forgotten(void **state)
{
    leat_mem_settings settings;
    leat_tls_assembler in = {.have = 0};
    const uint8_t *data = input;
    size_t len = 50000;
    leat_span message;
    leat_mem *small;

    (void)state;
    begin(90000);
    leat_mem_settings_init(&settings);
    settings.limit = 40000;
    settings.slab_size = 4096;
    assert_int_equal(leat_mem_new(&settings, &small), LEAT_OK);
    assert_true(leat_tls_assemble_header(&in, &data, &len));
    assert_int_equal(leat_tls_assemble_body(&in, small, &data, &len, &message), LEAT_ERR_NOMEM);
    leat_tls_assembler_reset(&in, small);
    leat_mem_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_pieces_make_the_message),
        cmocka_unit_test(without_memory_it_says_so_and_may_be_forgotten),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
