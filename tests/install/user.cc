// A stranger's C++ program on the installed leat: user VERSION.
#include <leat/leat.h>

#include <cstring>
#include <iostream>

struct once {
    leat_task task;
    bool ran;
};

static void run(leat_task *task)
{
    reinterpret_cast<once *>(task)->ran = true;
}

int main(int argc, char **argv)
{
    if (argc != 2 || std::strcmp(leat_version(), argv[1]) != 0) {
        std::cerr << "the library says that it is " << leat_version() << '\n';
        return 1;
    }

    leat_ctx *ctx = nullptr;
    leat_err err = leat_ctx_new(nullptr, &ctx);
    if (err != LEAT_OK) {
        std::cerr << "leat_ctx_new: " << leat_err_text(err) << '\n';
        return 1;
    }

    once job = {};
    leat_task_init(&job.task, ctx, run);
    leat_ctx_run_soon(ctx, &job.task);
    leat_ctx_turn(ctx, LEAT_SECOND);
    leat_ctx_free(ctx);
    if (!job.ran) {
        std::cerr << "the task did not run\n";
        return 1;
    }
    return 0;
}
