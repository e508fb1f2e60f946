/* cli/progress.c: the line on the terminal while files travel.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stddef.h>
#include <unistd.h>

static const leat_time PERIOD = 200 * LEAT_MILLISECOND;

const char *leat_cli_bytes_text(uint64_t bytes, char out[LEAT_CLI_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t unit = 0;

    while (v >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        unit++;
    }
    snprintf(out, LEAT_CLI_TEXT,
             unit == 0 ? "%.0f %s"
             : v < 10  ? "%.2f %s"
                       : "%.1f %s",
             v, units[unit]);
    return out;
}

static void time_left(const leat_cli_progress *progress, char out[LEAT_CLI_TEXT])
{
    double seconds = (double)(progress->expected - progress->bytes) / progress->rate;

    if (seconds >= 3600) {
        snprintf(out, LEAT_CLI_TEXT, ", %d:%02d:%02d left", (int)(seconds / 3600) % 100000,
                 (int)(seconds / 60) % 60, (int)seconds % 60);
    } else if (seconds >= 0) {
        snprintf(out, LEAT_CLI_TEXT, ", %d:%02d left", (int)(seconds / 60), (int)seconds % 60);
    }
}

static void draw(leat_cli_progress *progress)
{
    char done[LEAT_CLI_TEXT], all[LEAT_CLI_TEXT], rate[LEAT_CLI_TEXT], left[LEAT_CLI_TEXT] = "";

    fputs("\r\033[K", stderr);
    if (progress->files > 1) {
        fprintf(stderr, "%zu of %zu files, ", progress->files_done, progress->files);
    }
    if (progress->expected_known && progress->expected >= progress->bytes) {
        fprintf(stderr, "%3.0f %%, %s of %s",
                progress->expected ? 100.0 * (double)progress->bytes / (double)progress->expected
                                   : 100.0,
                leat_cli_bytes_text(progress->bytes, done),
                leat_cli_bytes_text(progress->expected, all));
        if (progress->rate > 0) {
            time_left(progress, left);
        }
    } else {
        fputs(leat_cli_bytes_text(progress->bytes, done), stderr);
    }
    fprintf(stderr, ", %s/s%s", leat_cli_bytes_text((uint64_t)progress->rate, rate), left);
    fflush(stderr);
    progress->drawn = true;
}

static void tick(leat_timer *timer, leat_time now)
{
    leat_cli_progress *progress =
        (leat_cli_progress *)((char *)timer - offsetof(leat_cli_progress, timer));
    double seconds = (double)(now - progress->last) / (double)LEAT_SECOND;

    if (seconds > 0) {
        double rate = (double)(progress->bytes - progress->last_bytes) / seconds;

        progress->rate = progress->drawn ? 0.7 * progress->rate + 0.3 * rate : rate;
    }
    progress->last = now;
    progress->last_bytes = progress->bytes;
    draw(progress);
    leat_timer_set(timer, now + PERIOD);
}

void leat_cli_progress_start(leat_cli_progress *progress, leat_ctx *ctx, bool wanted, size_t files)
{
    *progress = (leat_cli_progress){.files = files, .on = wanted && isatty(STDERR_FILENO)};
    leat_timer_init(&progress->timer, ctx, tick);
    if (progress->on) {
        progress->started = progress->last = leat_clock_now();
        leat_ctx_set_now(ctx, progress->started);
        leat_timer_set(&progress->timer, progress->started + PERIOD);
    }
}

void leat_cli_progress_stop(leat_cli_progress *progress)
{
    if (progress->on) {
        leat_timer_unset(&progress->timer);
        if (progress->drawn) {
            fputs("\r\033[K", stderr);
        }
        progress->on = false;
    }
}
