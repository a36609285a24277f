#include "summary.h"
#include "files.h"
#include "plot.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 16 };

void summary_progress(const host_view *view, int64_t elapsed_ms, char *ret, size_t size)
{
    char bar[BAR_WIDTH + 1];
    char mean[16] = "-";
    const double share = view->evaluated ? view->evaluation / SOLVED_RETURN : 0;
    const int full = share >= 1 ? BAR_WIDTH : (int)(share * BAR_WIDTH);
    const int64_t ms = elapsed_ms > 0 ? elapsed_ms : 1;

    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    bar[BAR_WIDTH] = '\0';
    if (view->evaluated) {
        (void)snprintf(mean, sizeof mean, "%.1f", view->evaluation);
    }
    (void)snprintf(ret, size,
                   "%5.1f s %8" PRId64 " steps %6" PRId64 "/s %4" PRId64
                   " updates  eval %5s [%s] %d",
                   (double)elapsed_ms / 1000, view->env_steps,
                   view->env_steps * 1000 / ms, view->version, mean, bar, SOLVED_RETURN);
}

void summary_result(const host_view *view, int64_t elapsed_ms)
{
    const double seconds = (double)elapsed_ms / 1000;
    if (view->state == HOST_SOLVED) {
        (void)printf("Solved CartPole-v1 in %.1f s, after %" PRId64
                     " updates and %" PRId64 " environment steps:\n"
                     "mean return %.1f over %d greedy episodes, confirmed by %.1f over "
                     "%d others.\n",
                     seconds, view->solved_version, view->solved_env_steps,
                     view->solved_means[0], EVALUATION_EPISODES, view->solved_means[1],
                     EVALUATION_EPISODES);
        return;
    }
    (void)printf("Not solved after %.1f s, %" PRId64 " updates and %" PRId64
                 " environment steps: %s.\n",
                 seconds, view->version, view->env_steps, view->why);
}

void summary_draw(const run_folder *folder, int stop_fd)
{
    coord_error err = {0};
    coord_status rc = plot_draw(folder->path, stop_fd, &err);
    if (rc == COORD_ERR_NOT_FOUND) {
        (void)printf("No learning_curve.png: gnuplot is not installed.\n");
    } else if (rc != COORD_OK) {
        (void)complain("cartpole: learning_curve.png", &err);
    }
}

static void tell(const char *what, const run_folder *folder, const char *name)
{
    char path[PATH_SIZE];
    coord_error err;
    if (path_make(path, &err, "%s/%s", folder->path, name) == COORD_OK &&
        access(path, F_OK) == 0) {
        (void)printf("  %-11s %s\n", what, path);
    }
}

void summary_files(const run_folder *folder, const host_view *view)
{
    char name[NAME_SIZE];
    int64_t newest = view->solved_version;
    coord_error err;
    if (view->state == HOST_SOLVED ||
        checkpoint_read(folder->path, &newest, NULL, &err) == COORD_OK) {
        (void)snprintf(name, sizeof name, "policy-%" PRId64 ".safetensors", newest);
        tell("policy", folder, name);
    }
    tell("checkpoint", folder, CHECKPOINT_NAME);
    tell("history", folder, "history.jsonl");
    tell("curve", folder, "learning_curve.png");
    tell("settings", folder, "config.json");
}
