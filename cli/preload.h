/* cli/preload.h: where the counter of heap calls is (tools/alloccount).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_PRELOAD_H
#define LEAT_CLI_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/* The path of liballoccount.so, beside this program as built or as installed. False after a
 * message. */
bool leat_cli_preload_path(char *path, size_t size);

#endif
