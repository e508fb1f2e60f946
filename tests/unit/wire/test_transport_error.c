/* Names and texts of transport error codes. */
#include "wire_test.h"

#include <leat/transport_error.h>

static void codes_have_the_values_of_the_rfc(void **state)
{
    (void)state;
    assert_int_equal(LEAT_TE_NO_ERROR, 0x00);
    assert_int_equal(LEAT_TE_FLOW_CONTROL_ERROR, 0x03);
    assert_int_equal(LEAT_TE_FRAME_ENCODING_ERROR, 0x07);
    assert_int_equal(LEAT_TE_TRANSPORT_PARAMETER_ERROR, 0x08);
    assert_int_equal(LEAT_TE_PROTOCOL_VIOLATION, 0x0a);
    assert_int_equal(LEAT_TE_CRYPTO_BUFFER_EXCEEDED, 0x0d);
    assert_int_equal(LEAT_TE_NO_VIABLE_PATH, 0x10);
    assert_int_equal(LEAT_TE_VERSION_NEGOTIATION_ERROR, 0x11);
    assert_int_equal(LEAT_TE_CRYPTO_ERROR, 0x100);
}

static void names_and_texts_come_from_the_list(void **state)
{
    (void)state;
    assert_string_equal(leat_transport_error_name(0x0a), "PROTOCOL_VIOLATION");
    assert_string_equal(leat_transport_error_text(0x00), "no error");
    assert_string_equal(leat_transport_error_name(0x12), "UNKNOWN");
    assert_string_equal(leat_transport_error_text(UINT64_MAX), "unknown transport error");
}

static void every_alert_is_a_crypto_error(void **state)
{
    (void)state;
    for (uint64_t code = 0x100; code <= 0x1ff; code++) {
        assert_true(leat_transport_error_is_crypto(code));
        assert_string_equal(leat_transport_error_name(code), "CRYPTO_ERROR");
        assert_int_equal(leat_transport_error_alert(code), code - 0x100);
    }
    assert_string_equal(leat_transport_error_name(0xff), "UNKNOWN");
    assert_string_equal(leat_transport_error_name(0x200), "UNKNOWN");
    assert_false(leat_transport_error_is_crypto(0x1ff + 0x10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_the_values_of_the_rfc),
        cmocka_unit_test(names_and_texts_come_from_the_list),
        cmocka_unit_test(every_alert_is_a_crypto_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
