/* base/error.c: names and texts of errors, all from LEAT_ERROR_LIST, and the version.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/base.h>

const char *leat_err_name(leat_err err)
{
    switch (err) {
#define ERROR_NAME(name, value, text)                                                              \
    case LEAT_##name:                                                                              \
        return "LEAT_" #name;
        LEAT_ERROR_LIST(ERROR_NAME)
#undef ERROR_NAME
    }
    return "LEAT_ERR_?";
}

const char *leat_err_text(leat_err err)
{
    switch (err) {
#define ERROR_TEXT(name, value, text)                                                              \
    case LEAT_##name:                                                                              \
        return text;
        LEAT_ERROR_LIST(ERROR_TEXT)
#undef ERROR_TEXT
    }
    return "unknown error";
}

const char *leat_version(void)
{
    return LEAT_VERSION_STRING;
}
