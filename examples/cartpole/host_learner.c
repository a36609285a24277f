/* The learner asks for chunks, and tells of each version that it has published. */
#include "host_state.h"

#include <unistd.h>

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
    host_evaluate_if_due(h, c);
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

void host_learner_callbacks(comm_coordinator_callbacks *ret)
{
    ret->deal_with_learner_get_data = on_get_data;
    ret->deal_with_learner_send_info = on_update;
    ret->deal_with_learner_judge_finish = is_trained;
    ret->deal_with_learner_finish_task = on_trained;
}
