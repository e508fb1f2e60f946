/* Errors have names and texts, assertions stop the process, time saturates.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

#include <leat/base.h>

#include "base/time.h"

static void every_error_has_its_own_name_and_text(void **state)
{
#define ERROR_VALUE(name, value, text) LEAT_##name,
    static const leat_err all[] = {LEAT_ERROR_LIST(ERROR_VALUE)};

    (void)state;
    assert_string_equal(leat_err_name(LEAT_OK), "LEAT_OK");
    assert_string_equal(leat_err_name(LEAT_ERR_NOMEM), "LEAT_ERR_NOMEM");
    for (size_t i = 0; i < LEAT_COUNT_OF(all); i++) {
        assert_true(i == 0 ? all[i] == 0 : all[i] < 0);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(leat_err_name(all[i]), leat_err_name(all[k]));
            assert_string_not_equal(leat_err_text(all[i]), leat_err_text(all[k]));
        }
    }
}

static void a_value_outside_the_list_is_named_unknown(void **state)
{
    (void)state;
    assert_string_equal(leat_err_name((leat_err)-1000), "LEAT_ERR_?");
    assert_string_equal(leat_err_text((leat_err)-1000), "unknown error");
}

static void the_version_is_three_numbers(void **state)
{
    unsigned major;
    unsigned minor;
    unsigned patch;
    char more;

    (void)state;
    assert_int_equal(sscanf(leat_version(), "%u.%u.%u%c", &major, &minor, &patch, &more), 3);
}

static void fail_an_assertion(void)
{
    int one = 1;

    LEAT_ASSERT(one == 1);
    LEAT_ASSERT(one == 2);
}

static void an_assertion_that_fails_names_its_condition(void **state)
{
    (void)state;
    assert_true(panics(fail_an_assertion, "one == 2"));
}

static void hook_that_returns(const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    (void)text;
}

static void the_process_ends_even_if_the_hook_returns(void **state)
{
    int status = 0;
    pid_t pid;

    (void)state;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        leat_panic_set_hook(hook_that_returns);
        leat_panic("file", 1, "text");
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

static void time_saturates(void **state)
{
    (void)state;
    assert_true(leat_time_add(5, 6) == 11);
    assert_true(leat_time_add(LEAT_TIME_NEVER, 1) == LEAT_TIME_NEVER);
    assert_true(leat_time_add(LEAT_TIME_NEVER - 3, 4) == LEAT_TIME_NEVER);
    assert_true(leat_time_add(LEAT_TIME_NEVER - 4, 3) == LEAT_TIME_NEVER - 1);
    assert_true(leat_time_since(9, 4) == 5);
    assert_true(leat_time_since(4, 9) == 0);
    assert_true(leat_time_mul(3, 4) == 12);
    assert_true(leat_time_mul(0, UINT64_MAX) == 0);
    assert_true(leat_time_mul(LEAT_TIME_NEVER / 2, 3) == LEAT_TIME_NEVER);
    assert_true(leat_time_backoff(10, 3) == 80);
    assert_true(leat_time_backoff(10, 63) == LEAT_TIME_NEVER);
    assert_true(leat_time_backoff(10, 64) == LEAT_TIME_NEVER);
    assert_true(leat_time_backoff(0, 200) == 0);
    assert_true(leat_time_min(3, LEAT_TIME_NEVER) == 3);
    assert_true(leat_time_max(3, 4) == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_name_and_text),
        cmocka_unit_test(a_value_outside_the_list_is_named_unknown),
        cmocka_unit_test(the_version_is_three_numbers),
        cmocka_unit_test(an_assertion_that_fails_names_its_condition),
        cmocka_unit_test(the_process_ends_even_if_the_hook_returns),
        cmocka_unit_test(time_saturates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
