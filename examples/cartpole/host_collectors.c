/* Collectors bring chunks, and the results of evaluations. */
#include "host_state.h"
#include "report.h"

#include <stdio.h>

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

static void on_collected(CommCoordinator *c, const char *task_id, coord_text result,
                         void *user)
{
    host *h = user;
    const bool evaluation = host_is_evaluation(task_id);
    (void)pthread_mutex_lock(&h->lock);
    h->failures = 0;
    h->collecting -= evaluation ? 0 : 1;
    (void)pthread_mutex_unlock(&h->lock);

    if (!evaluation) {
        host_post_collectors(h, c);
    } else if (note_evaluation(h, task_id, result) == EXAM_ANOTHER_ROUND) {
        host_post_exam(h, c);
    } else {
        host_evaluate_if_due(h, c);
    }
}

void host_collector_callbacks(comm_coordinator_callbacks *ret)
{
    ret->deal_with_collector_send_data = on_chunk;
    ret->deal_with_collector_judge_finish = is_collected;
    ret->deal_with_collector_finish_task = on_collected;
}
