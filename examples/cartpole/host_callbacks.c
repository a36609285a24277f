/* The callbacks of the coordinator. Each takes a note under the lock, and then sends what
 * follows from it. */
#include "host_state.h"
#include "report.h"
#include "screen.h"

#include <stdio.h>
#include <unistd.h>

enum { FAILURES_MAX = 20 };

static bool is_evaluation(const char *task_id)
{
    return strncmp(task_id, "evaluate-", strlen("evaluate-")) == 0;
}

/* ---- collectors -------------------------------------------------------------------- */

static coord_status read_chunk(coord_text data, chunk_entry *ret, coord_error *err)
{
    json_t *tree = NULL;
    const char *name = "";
    char path[PATH_SIZE];
    coord_status rc = coord_json_parse(data, &tree, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_string(tree, "file", &name, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_int(tree, "policy_version", &ret->version, err);
    }
    if (rc == COORD_OK) {
        rc = path_of_chunk(path, "", name, err); /* is it a name? */
    }
    if (rc == COORD_OK && strlen(name) >= sizeof ret->name) {
        rc = report(err, COORD_ERR_TOO_BIG, "the name of a chunk is too long");
    }
    if (rc == COORD_OK) {
        (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    }
    json_decref(tree);
    return rc;
}

static void on_chunk(CommCoordinator *c, const char *task_id, const char *buffer_id,
                     const char *data_id, coord_text data, void *user)
{
    host *h = user;
    chunk_entry entry;
    coord_error err = {0};
    (void)data_id;

    if (read_chunk(data, &entry, &err) != COORD_OK) {
        host_fail(h, "%s sent nonsense: %s", task_id, err.text);
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    buffer_add(&h->buffer, &entry);
    (void)pthread_mutex_unlock(&h->lock);
    if (comm_coordinator_data_ready(c, buffer_id, &err) != COORD_OK) {
        host_fail(h, "data_ready: %s", err.text);
    }
}

static bool is_collected(CommCoordinator *c, const char *task_id, coord_text info,
                         void *user)
{
    json_t *tree = NULL;
    bool done = false;
    coord_error err = {0};
    (void)c;
    coord_status rc = coord_json_parse(info, &tree, &err);
    if (rc == COORD_OK) {
        rc = coord_json_get_bool(tree, "collector_done", &done, &err);
    }
    json_decref(tree);
    if (rc != COORD_OK) {
        host_fail(user, "%s sent nonsense: %s", task_id, err.text);
    }
    return done || rc != COORD_OK;
}

/* A round is over. Says what follows from it. */
static exam_result note_evaluation(host *h, const char *task_id, coord_text result)
{
    json_t *tree = NULL;
    double mean = 0;
    exam_result passed = EXAM_NOT_PASSED;
    coord_error err = {0};
    coord_status rc = coord_json_parse(result, &tree, &err);
    if (rc == COORD_OK) {
        rc = coord_json_get_double(tree, "mean", &mean, &err);
    }
    (void)pthread_mutex_lock(&h->lock);
    if (rc == COORD_OK) {
        (void)json_object_set_new(tree, "round", json_integer(h->exam.round + 1));
        (void)json_object_set_new(tree, "env_steps", json_integer(h->exam_env_steps));
        rc = history_add(h->history, "evaluation", tree, &err);
    }
    if (rc == COORD_OK) {
        passed = exam_end_round(&h->exam, mean);
    } else {
        host_fail_locked(h, "%s: %s: %s", task_id, err.text, err.cause);
    }
    if (passed == EXAM_SOLVED) {
        (void)host_end_locked(h, HOST_SOLVED);
    }
    (void)pthread_mutex_unlock(&h->lock);
    json_decref(tree);
    return passed;
}

/* Evaluates the newest version if that is due. */
static void evaluate_if_due(host *h, CommCoordinator *c)
{
    (void)pthread_mutex_lock(&h->lock);
    bool due = h->state == HOST_RUNNING && exam_begin(&h->exam, h->version);
    if (due) {
        h->exam_env_steps = h->env_steps;
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (due) {
        host_post_exam(h, c);
    }
}

static void on_collected(CommCoordinator *c, const char *task_id, coord_text result,
                         void *user)
{
    host *h = user;
    const bool evaluation = is_evaluation(task_id);
    (void)pthread_mutex_lock(&h->lock);
    h->failures = 0;
    h->collecting -= evaluation ? 0 : 1;
    (void)pthread_mutex_unlock(&h->lock);

    if (!evaluation) {
        host_post_collectors(h, c);
    } else if (note_evaluation(h, task_id, result) == EXAM_ANOTHER_ROUND) {
        host_post_exam(h, c);
    } else {
        evaluate_if_due(h, c);
    }
}

/* ---- learner ----------------------------------------------------------------------- */

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    host *h = user;
    coord_error err = {0};
    coord_status rc = COORD_AGAIN;
    (void)task_id;
    (void)buffer_id;

    (void)pthread_mutex_lock(&h->lock);
    buffer_drop_old(&h->buffer, cur_learner_iter - LAG_MAX);
    if (h->state == HOST_RUNNING && buffer_take(&h->buffer, (size_t)batch_size)) {
        rc = buffer_tell(&h->buffer, out, &err);
    }
    if (rc != COORD_OK && rc != COORD_AGAIN) {
        host_fail_locked(h, "%s", err.text);
    }
    (void)pthread_mutex_unlock(&h->lock);
    host_post_collectors(h, c);
    return rc;
}

/* Old policies go; the one under evaluation waits for its result, and so do those after
 * it. Under the lock. */
static void remove_old_policies(host *h)
{
    char path[PATH_SIZE];
    coord_error err;
    const int64_t first = h->version - POLICIES_KEPT + 1;
    while (h->oldest_policy < first &&
           !(h->exam.running && h->oldest_policy == h->exam.version)) {
        if (path_of_policy(path, h->folder->path, h->oldest_policy, &err) == COORD_OK) {
            (void)unlink(path);
        }
        if (path_of_learner(path, h->folder->path, h->oldest_policy, &err) == COORD_OK) {
            (void)unlink(path);
        }
        h->oldest_policy++;
    }
}

static void on_update(CommCoordinator *c, const char *task_id, const char *buffer_id,
                      coord_text info, void *user)
{
    host *h = user;
    json_t *tree = NULL;
    coord_error err = {0};
    (void)buffer_id;

    coord_status rc = coord_json_parse(info, &tree, &err);
    (void)pthread_mutex_lock(&h->lock);
    if (rc == COORD_OK) {
        rc = coord_json_get_int(tree, "version", &h->version, &err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_int(tree, "env_steps", &h->env_steps, &err);
    }
    if (rc == COORD_OK) {
        rc = history_add(h->history, "update", tree, &err);
    }
    if (rc != COORD_OK) {
        host_fail_locked(h, "%s: %s: %s", task_id, err.text, err.cause);
    }
    buffer_return(&h->buffer);
    remove_old_policies(h);
    (void)pthread_mutex_unlock(&h->lock);
    json_decref(tree);
    evaluate_if_due(h, c);
}

static bool is_trained(CommCoordinator *c, const char *task_id, coord_text info,
                       void *user)
{
    host_view view;
    (void)c;
    (void)task_id;
    (void)info;
    host_look(user, &view);
    return view.state != HOST_RUNNING;
}

static void on_trained(CommCoordinator *c, const char *task_id, coord_text result,
                       void *user)
{
    (void)c;
    (void)result;
    host_fail(user, "%s has finished too early", task_id); /* no news after the end */
}

/* ---- both -------------------------------------------------------------------------- */

/* The learner has published its first policy: there is something to play with. */
static void on_start(CommCoordinator *c, const char *task_id, const char *worker_id,
                     void *user)
{
    (void)worker_id;
    if (strcmp(task_id, "learn") == 0) {
        host_post_collectors(user, c);
    }
}

/* Without its learner a run is over; what a collector did not do another one can. */
static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    host *h = user;
    const bool evaluation = is_evaluation(task_id);
    if (strcmp(task_id, "learn") == 0) {
        host_fail(h, "the learner's task has failed: %s%s%s", why->text,
                  why->cause[0] != '\0' ? ": " : "", why->cause);
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    h->collecting -= evaluation ? 0 : 1;
    if (++h->failures > FAILURES_MAX) {
        host_fail_locked(h, "%d tasks in a row have failed, the last: %s", h->failures,
                         why->text);
    }
    const bool running = h->state == HOST_RUNNING;
    (void)pthread_mutex_unlock(&h->lock);

    if (running) {
        screen_note("cartpole: %s has failed and is given to another collector: %s",
                    task_id, why->text);
    }
    if (evaluation) {
        host_post_exam(h, c);
    } else {
        host_post_collectors(h, c);
    }
}

void host_callbacks(host *h, comm_coordinator_callbacks *ret)
{
    comm_coordinator_callbacks_init(ret, sizeof *ret);
    ret->deal_with_collector_send_data = on_chunk;
    ret->deal_with_collector_judge_finish = is_collected;
    ret->deal_with_collector_finish_task = on_collected;
    ret->deal_with_learner_get_data = on_get_data;
    ret->deal_with_learner_send_info = on_update;
    ret->deal_with_learner_judge_finish = is_trained;
    ret->deal_with_learner_finish_task = on_trained;
    ret->deal_with_task_start = on_start;
    ret->deal_with_task_fail = on_fail;
    ret->user = h;
}
