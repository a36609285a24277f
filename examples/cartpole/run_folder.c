#include "run_folder.h"
#include "files.h"
#include "ppo.h"
#include "report.h"

#include "coord/json.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAME_SECOND_MAX = 100, DIGITS = 6 };

/* ---- creating ---- */

/* Named after the time, so that names sort as the runs came; a number tells those of the
 * same second apart. */
static coord_status make_folder(const settings *set, run_folder *f, coord_error *err)
{
    char when[32];
    struct tm local;
    time_t now = time(NULL);
    (void)localtime_r(&now, &local);
    (void)strftime(when, sizeof when, "%Y%m%d-%H%M%S", &local);

    for (int i = 1; i <= SAME_SECOND_MAX; i++) {
        (void)snprintf(f->id, sizeof f->id, "%s-seed%" PRId64, when, set->seed);
        if (i > 1) {
            size_t len = strlen(f->id);
            (void)snprintf(f->id + len, sizeof f->id - len, "-%d", i);
        }
        coord_status rc = path_make(f->path, err, "%s/%s", set->runs, f->id);
        if (rc != COORD_OK) {
            return rc;
        }
        if (mkdir(f->path, 0777) == 0) {
            return COORD_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return report_errno(err, "create", f->path);
}

static json_t *describe_ppo(void)
{
    ppo_options o;
    ppo_options_init(&o);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f}", "gamma",
                     (double)o.gamma, "lambda", (double)o.lambda, "clip", (double)o.clip,
                     "entropy", (double)o.entropy, "rate", (double)o.rate,
                     "max_grad_norm", (double)o.max_grad_norm, "epochs",
                     (json_int_t)o.epochs, "minibatch", (json_int_t)o.minibatch, "max_kl",
                     (double)o.max_kl);
}

static coord_status write_config(const settings *set, const run_folder *f,
                                 coord_error *err)
{
    char path[PATH_SIZE];
    coord_status rc = path_make(path, err, "%s/config.json", f->path);
    if (rc != COORD_OK) {
        return rc;
    }
    json_t *config = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:i, s:I, s:i, s:i, s:i, s:i, s:o}",
        "run_id", f->id, "env", "CartPole-v1", "libcoord", coord_version(), "seed",
        (json_int_t)set->seed, "collectors", (json_int_t)set->collectors, "timeout_s",
        (double)set->timeout_ms / 1000, "envs_per_collector",
        (json_int_t)settings_envs(set), "steps_per_env", STEPS_PER_ENV,
        "chunks_per_update", (json_int_t)set->collectors, "evaluate_every",
        EVALUATE_EVERY, "evaluation_episodes", EVALUATION_EPISODES, "solved_return",
        SOLVED_RETURN, "confident_return", CONFIDENT_RETURN, "ppo", describe_ppo());
    if (config == NULL ||
        json_dump_file(config, path, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) != 0) {
        rc = report_errno(err, "write", path);
    }
    json_decref(config);
    return rc;
}

/* RUNS/latest: a link that is replaced as a whole. */
static coord_status link_latest(const settings *set, const run_folder *f,
                                coord_error *err)
{
    char beside[PATH_SIZE];
    char latest[PATH_SIZE];
    coord_status rc = path_make(latest, err, "%s/latest", set->runs);
    if (rc == COORD_OK) {
        rc = path_make(beside, err, "%s/.latest-%s", set->runs, f->id);
    }
    if (rc == COORD_OK && (symlink(f->id, beside) != 0 || rename(beside, latest) != 0)) {
        rc = report_errno(err, "link", latest);
        (void)unlink(beside);
    }
    return rc;
}

coord_status run_folder_create(const settings *set, run_folder *ret, coord_error *err)
{
    char chunks[PATH_SIZE];
    if (mkdir(set->runs, 0777) != 0 && errno != EEXIST) {
        return report_errno(err, "create", set->runs);
    }
    coord_status rc = make_folder(set, ret, err);
    if (rc == COORD_OK) {
        rc = path_make(chunks, err, "%s/" CHUNKS_NAME, ret->path);
    }
    if (rc == COORD_OK && mkdir(chunks, 0777) != 0) {
        rc = report_errno(err, "create", chunks);
    }
    if (rc == COORD_OK) {
        rc = write_config(set, ret, err);
    }
    return rc == COORD_OK ? link_latest(set, ret, err) : rc;
}

/* ---- tidying up ---- */

/* The version in a name such as policy-12.safetensors; -1: it is no such name. */
static int64_t version_in(const char *name, const char *prefix)
{
    char *end = NULL;
    const size_t len = strlen(prefix);
    if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9') {
        return -1;
    }
    int64_t version = strtoll(name + len, &end, 10);
    return strcmp(end, ".safetensors") == 0 ? version : -1;
}

/* Does a file have to go, now that `newest` is the version to keep? */
static bool is_left_over(const char *name, int64_t newest)
{
    const char *suffix = strrchr(name, '.');
    if (suffix != NULL && strcmp(suffix, ".tmp") == 0) {
        return true; /* its writer was killed */
    }
    const int64_t learner = version_in(name, "learner-");
    return version_in(name, "policy-") > newest || (learner >= 0 && learner != newest);
}

/* Removes the files of a folder that are left over; all of them if `newest` is NULL. */
static coord_status sweep(const char *folder, const int64_t *newest, coord_error *err)
{
    coord_status rc = COORD_OK;
    const struct dirent *entry;
    char path[PATH_SIZE];
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return report_errno(err, "read", folder);
    }
    while (rc == COORD_OK && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (newest != NULL && !is_left_over(name, *newest))) {
            continue;
        }
        rc = path_make(path, err, "%s/%s", folder, name);
        if (rc == COORD_OK && unlink(path) != 0) {
            rc = report_errno(err, "remove", path);
        }
    }
    (void)closedir(dir);
    return rc;
}

coord_status run_folder_tidy(const run_folder *folder, int64_t solved, int64_t env_steps,
                             coord_error *err)
{
    char chunks[PATH_SIZE];
    int64_t newest = solved;
    coord_status rc = path_make(chunks, err, "%s/" CHUNKS_NAME, folder->path);
    if (rc == COORD_OK) {
        rc = sweep(chunks, NULL, err);
    }
    if (rc == COORD_OK && rmdir(chunks) != 0) {
        rc = report_errno(err, "remove", chunks);
    }
    if (rc == COORD_OK && solved >= 0) {
        rc = checkpoint_write(folder->path, solved, env_steps, true, err);
    } else if (rc == COORD_OK) {
        rc = checkpoint_read(folder->path, &newest, NULL, err);
        if (rc == COORD_ERR_NOT_FOUND) { /* ended before it had begun */
            newest = 0;
            rc = COORD_OK;
        }
    }
    return rc == COORD_OK ? sweep(folder->path, &newest, err) : rc;
}
