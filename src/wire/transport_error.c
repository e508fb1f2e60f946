/* wire/transport_error.c: names and texts of transport error codes, from the one list. */
#include <leat/transport_error.h>

/* What the list calls a code: the 256 crypto errors share one row. */
static uint64_t row_of(uint64_t code)
{
    return leat_transport_error_is_crypto(code) ? LEAT_TE_CRYPTO_ERROR : code;
}

#define NAME_CASE(name, value, text)                                                               \
    case value:                                                                                    \
        return #name;

const char *leat_transport_error_name(uint64_t code)
{
    switch (row_of(code)) {
        LEAT_TRANSPORT_ERROR_LIST(NAME_CASE)
    default:
        return "UNKNOWN";
    }
}

#define TEXT_CASE(name, value, text)                                                               \
    case value:                                                                                    \
        return text;

const char *leat_transport_error_text(uint64_t code)
{
    switch (row_of(code)) {
        LEAT_TRANSPORT_ERROR_LIST(TEXT_CASE)
    default:
        return "unknown transport error";
    }
}
