#include "plot.h"
#include "paths.h"
#include "report.h"
#include "settings.h"

#include "coord/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 15000 };

extern char **environ;

/* ---- the script ---- */

/* Writes a line of the history as a point, if it is of that event and has that key. */
static coord_status write_point(FILE *script, coord_text line, const char *event,
                                const char *key, coord_error *err)
{
    json_t *tree = NULL;
    const char *what = "";
    double env_steps;
    double value;
    coord_error missing;
    coord_status rc = coord_json_parse(line, &tree, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_string(tree, "event", &what, err);
    }
    if (rc == COORD_OK && strcmp(what, event) == 0 &&
        coord_json_get_double(tree, "env_steps", &env_steps, &missing) == COORD_OK &&
        coord_json_get_double(tree, key, &value, &missing) == COORD_OK) {
        (void)fprintf(script, "%.0f %.3f\n", env_steps, value);
    }
    json_decref(tree);
    return rc;
}

/* A data block. One without any point would be an error: each begins with one that is not
 * drawn. */
static coord_status write_points(FILE *script, FILE *lines, const char *event,
                                 const char *key, coord_error *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    coord_status rc = COORD_OK;

    rewind(lines);
    (void)fprintf(script, "$%s << END\nNaN NaN\n", event);
    while (rc == COORD_OK && (len = getline(&line, &size, lines)) > 0) {
        rc = write_point(script, (coord_text){line, (size_t)len}, event, key, err);
    }
    (void)fputs("END\n", script);
    free(line);
    return rc;
}

static coord_status write_script(FILE *script, FILE *lines, coord_error *err)
{
    coord_status rc = write_points(script, lines, "update", "return_mean", err);
    if (rc == COORD_OK) {
        rc = write_points(script, lines, "evaluation", "mean", err);
    }
    (void)fprintf(script,
                  "set terminal png size 900,540\n"
                  "set output 'learning_curve.png'\n"
                  "set title 'CartPole-v1'\n"
                  "set xlabel 'environment steps'\n"
                  "set ylabel 'return'\n"
                  "set xrange [0:*]\n"
                  "set yrange [0:520]\n"
                  "set key below\n"
                  "set grid\n"
                  "plot %d with lines linecolor rgb 'gray40' title 'solved', \\\n"
                  "     $update with lines linewidth 2 title 'training episodes', \\\n"
                  "     $evaluation with linespoints linewidth 2 pointtype 7 "
                  "title '%d greedy episodes'\n",
                  SOLVED_RETURN, EVALUATION_EPISODES);
    return rc;
}

static coord_status make_script(const char *folder, coord_error *err)
{
    char path[PATH_SIZE];
    coord_status rc = path_make(path, err, "%s/history.jsonl", folder);
    if (rc != COORD_OK) {
        return rc;
    }
    FILE *lines = fopen(path, "re");
    if (lines == NULL) {
        return report_errno(err, "open", path);
    }
    rc = path_make(path, err, "%s/learning_curve.gp", folder);
    FILE *script = rc == COORD_OK ? fopen(path, "we") : NULL;
    if (rc == COORD_OK && script == NULL) {
        rc = report_errno(err, "create", path);
    }
    if (script != NULL) {
        rc = write_script(script, lines, err);
        bool whole = ferror(script) == 0;
        if ((fclose(script) != 0 || !whole) && rc == COORD_OK) {
            rc = report_errno(err, "write", path);
        }
    }
    (void)fclose(lines);
    return rc;
}

/* ---- gnuplot ---- */

static coord_status start_gnuplot(const char *folder, pid_t *pid, coord_error *err)
{
    char *argv[] = {"gnuplot", "learning_curve.gp", NULL};
    posix_spawn_file_actions_t actions;
    int why = posix_spawn_file_actions_init(&actions);
    if (why == 0) {
        why = posix_spawn_file_actions_addchdir_np(&actions, folder);
        if (why == 0) {
            why = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        }
        if (why == 0) {
            why = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    if (why != 0) {
        errno = why;
        coord_status rc = report_errno(err, "start", argv[0]);
        return why == ENOENT ? COORD_ERR_NOT_FOUND : rc;
    }
    return COORD_OK;
}

/* Waits for it; kills it when it takes too long or nobody wants it any more. */
static coord_status await_gnuplot(pid_t pid, int stop_fd, coord_error *err)
{
    int status = 0;
    struct pollfd fds[] = {{pidfd_open(pid, 0), POLLIN, 0}, {stop_fd, POLLIN, 0}};
    int ready = -1;
    do {
        ready = fds[0].fd < 0 ? -1 : poll(fds, 2, LIMIT_MS);
    } while (ready < 0 && errno == EINTR);
    const bool ended = ready > 0 && fds[0].revents != 0;
    if (!ended) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (fds[0].fd >= 0) {
        (void)close(fds[0].fd);
    }
    if (!ended) {
        return ready > 0 ? report(err, COORD_ERR_CANCELED, "interrupted")
                         : report(err, COORD_ERR_TIMEOUT, "gnuplot did not end");
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? COORD_OK
               : report(err, COORD_ERR_IO, "gnuplot has failed");
}

coord_status plot_draw(const char *folder, int stop_fd, coord_error *err)
{
    pid_t pid = 0;
    coord_status rc = make_script(folder, err);
    if (rc == COORD_OK) {
        rc = start_gnuplot(folder, &pid, err);
    }
    return rc == COORD_OK ? await_gnuplot(pid, stop_fd, err) : rc;
}
