/* base/assert.c: the one way out when something that must hold does not.
 *
 * The hook lets a test see the text, and a program log in its own way; the process aborts in any
 * case, because nothing that relied on the condition can go on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

static void print_panic(const char *file, int line, const char *text)
{
    fprintf(stderr, "leat: %s:%d: does not hold: %s\n", file, line, text);
}

static leat_panic_fn *panic_hook = print_panic;

leat_panic_fn *leat_panic_set_hook(leat_panic_fn *hook)
{
    leat_panic_fn *before = panic_hook;

    panic_hook = hook ? hook : print_panic;
    return before;
}

void leat_panic(const char *file, int line, const char *text)
{
    panic_hook(file, line, text);
    abort();
}
