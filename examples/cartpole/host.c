#include "host_state.h"
#include "report.h"
#include "screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* ---- life ---- */

coord_status host_create(const settings *set, const run_folder *folder, history *lines,
                         int wake_fd, host **ret, coord_error *err)
{
    host *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return report(err, COORD_ERR_NOMEM, "host: out of memory");
    }
    (void)pthread_mutex_init(&h->lock, NULL); /* can't fail with this C library */
    h->set = set;
    h->folder = folder;
    h->history = lines;
    h->wake_fd = wake_fd;
    h->buffer.folder = folder->path;
    h->exam.next = EVALUATE_EVERY;
    h->collectors = set->collectors;
    *ret = h;
    return COORD_OK;
}

void host_destroy(host *h)
{
    if (h != NULL) {
        (void)pthread_mutex_destroy(&h->lock);
        free(h);
    }
}

/* ---- state ---- */

bool host_end_locked(host *h, host_state state)
{
    if (h->state != HOST_RUNNING) {
        return false;
    }
    h->state = state;
    (void)eventfd_write(h->wake_fd, 1);
    return true;
}

static void fail_with(host *h, const char *format, va_list args) COORD_PRINTF(2, 0);

static void fail_with(host *h, const char *format, va_list args)
{
    if (host_end_locked(h, HOST_FAILED)) {
        (void)vsnprintf(h->why, sizeof h->why, format, args);
    }
}

void host_fail_locked(host *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(h, format, args);
    va_end(args);
}

void host_fail(host *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&h->lock);
    fail_with(h, format, args);
    (void)pthread_mutex_unlock(&h->lock);
    va_end(args);
}

void host_stop(host *h)
{
    (void)pthread_mutex_lock(&h->lock);
    (void)host_end_locked(h, HOST_STOPPED);
    (void)pthread_mutex_unlock(&h->lock);
}

void host_worker_ended(host *h, coord_role role, const char *name, const char *how)
{
    (void)pthread_mutex_lock(&h->lock);
    if (role == COORD_LEARNER) {
        host_fail_locked(h, "%s has ended: %s", name, how);
    } else if (--h->collectors == 0) {
        host_fail_locked(h, "the last collector, %s, has ended: %s", name, how);
    } else if (h->state == HOST_RUNNING) {
        screen_note("cartpole: %s has ended: %s; %zu of %zu collectors go on", name, how,
                    h->collectors, h->set->collectors);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

void host_look(host *h, host_view *ret)
{
    (void)pthread_mutex_lock(&h->lock);
    *ret = (host_view){
        .state = h->state,
        .version = h->version,
        .env_steps = h->env_steps,
        .evaluated = h->exam.any,
        .evaluation = h->exam.latest,
        .solved_version = h->exam.version,
        .solved_env_steps = h->exam_env_steps,
        .solved_means = {h->exam.means[0], h->exam.means[1]},
    };
    memcpy(ret->why, h->why, sizeof ret->why);
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- tasks ---- */

/* Takes the tree over. */
static void post(host *h, CommCoordinator *c, coord_role role, json_t *task)
{
    coord_error err = {0};
    char *text = NULL;
    coord_status rc = task == NULL ? report(&err, COORD_ERR_NOMEM, "task: out of memory")
                                   : coord_json_text(task, &text, NULL, &err);
    if (rc == COORD_OK && role == COORD_LEARNER) {
        rc = comm_coordinator_post_learner_task(c, coord_text_of(text), &err);
    } else if (rc == COORD_OK) {
        rc = comm_coordinator_post_collector_task(c, coord_text_of(text), &err);
    }
    if (rc != COORD_OK) { /* no news if the coordinator is being closed */
        host_fail(h, "can't send a task: %s", err.text);
    }
    coord_free(text);
    json_decref(task);
}

void host_post_learner(host *h, CommCoordinator *c)
{
    json_t *task =
        json_pack("{s:s, s:s, s:s, s:I, s:I}", "task_id", "learn", "buffer_id", BUFFER_ID,
                  "folder", h->folder->path, "seed", (json_int_t)h->set->seed,
                  "batch_size", (json_int_t)h->set->collectors);
    post(h, c, COORD_LEARNER, task);
}

static void post_collector(host *h, CommCoordinator *c, int64_t number)
{
    char id[64];
    (void)snprintf(id, sizeof id, "collect-%" PRId64, number);
    json_t *task = json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:i}", "task_id", id,
                             "buffer_id", BUFFER_ID, "folder", h->folder->path,
                             "evaluate", 0, "seed", (json_int_t)h->set->seed, "envs",
                             (json_int_t)settings_envs(h->set), "steps", STEPS_PER_ENV);
    post(h, c, COORD_COLLECTOR, task);
}

void host_post_collectors(host *h, CommCoordinator *c)
{
    (void)pthread_mutex_lock(&h->lock);
    const size_t wanted = h->state == HOST_RUNNING ? h->set->collectors : 0;
    const size_t there = h->buffer.ready_count + h->collecting;
    const size_t count = wanted > there ? wanted - there : 0;
    int64_t number = h->next_task;
    h->next_task += (int64_t)count;
    h->collecting += count;
    (void)pthread_mutex_unlock(&h->lock);

    for (size_t i = 0; i < count; i++) {
        post_collector(h, c, number++);
    }
}

void host_post_exam(host *h, CommCoordinator *c)
{
    char id[64];
    (void)pthread_mutex_lock(&h->lock);
    const exam e = h->exam;
    const int64_t number = h->next_task++;
    const bool running = h->state == HOST_RUNNING;
    (void)pthread_mutex_unlock(&h->lock);

    if (!running) {
        return;
    }
    (void)snprintf(id, sizeof id, "evaluate-%" PRId64, number);
    json_t *task =
        json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:i}", "task_id", id, "buffer_id",
                  BUFFER_ID, "folder", h->folder->path, "evaluate", 1, "seed",
                  (json_int_t)exam_seed(&e, h->set->seed), "policy_version",
                  (json_int_t)e.version, "episodes", EVALUATION_EPISODES);
    post(h, c, COORD_COLLECTOR, task);
}

void host_begin(host *h, CommCoordinator *c)
{
    host_post_learner(h, c);
}
