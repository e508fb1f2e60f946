/* cli/preload.c: see preload.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "preload.h"

#include <string.h>
#include <unistd.h>

#include "cli.h"

/* From the folder that the command is in: in the build, then as installed. */
static const char *const places[] = {
    "../tools/liballoccount.so",
    "../" LEAT_CLI_LIBDIR "/leat/liballoccount.so",
};

bool leat_cli_preload_path(char *path, size_t size)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        int len = snprintf(path, size, "%.*s/%s", (int)(slash - self), self, places[i]);

        if (len > 0 && (size_t)len < size && access(path, R_OK) == 0) {
            return true;
        }
    }
    leat_cli_error("liballoccount.so is not where it was built or installed, beside %s", self);
    return false;
}
