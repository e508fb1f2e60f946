/* A stranger's C program on the installed leat: user VERSION. */
#include <leat/leat.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(leat_version(), argv[1]) != 0) {
        fprintf(stderr, "the library says that it is %s\n", leat_version());
        return 1;
    }

    leat_ctx_settings settings;
    leat_ctx_settings_init(&settings);
    settings.mem.slab_size = 16384;

    leat_ctx *ctx = NULL;
    leat_err err = leat_ctx_new(&settings, &ctx);
    if (err != LEAT_OK) {
        fprintf(stderr, "leat_ctx_new: %s\n", leat_err_text(err));
        return 1;
    }

    leat_buf buf;
    err = leat_buf_take(leat_ctx_mem(ctx), 1200, &buf);
    if (err != LEAT_OK || buf.len != 1200) {
        fprintf(stderr, "leat_buf_take: %s\n", leat_err_text(err));
        return 1;
    }
    memset(buf.data, 0, buf.len);
    leat_buf_release(&buf);
    leat_ctx_free(ctx);

    /* An error is an error here, too. */
    settings.mem.slab_size = 3;
    err = leat_ctx_new(&settings, &ctx);
    if (err != LEAT_ERR_INVALID) {
        fprintf(stderr, "a slab of 3 bytes: %s\n", leat_err_name(err));
        return 1;
    }
    return 0;
}
