#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct host {
    CommCoordinator *c;
    host_goal goal;
    pthread_mutex_t lock; /* guards the rest; nothing of libcoord is called under it */
    host_counts counts;
    char *samples[HOST_SAMPLES_KEPT]; /* a ring of JSON texts, owned */
};

/* ---- callbacks; each task's on a thread of its own ---- */

static void on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text data, void *user)
{
    host *h = user;
    char *copy = strndup(data.ptr, data.len);
    (void)task_id;
    (void)data_id;
    if (copy == NULL) {
        return; /* one sample less: the collector brings others */
    }
    (void)pthread_mutex_lock(&h->lock);
    int at = h->counts.samples++ % HOST_SAMPLES_KEPT;
    char *old = h->samples[at];
    h->samples[at] = copy;
    (void)pthread_mutex_unlock(&h->lock);
    free(old);
    /* Learners that were told "not yet" need not wait any longer. */
    if (comm_coordinator_data_ready(c, buffer_id, NULL) != COORD_OK) {
        (void)fprintf(stderr, "host: learners will ask by themselves\n");
    }
}

static bool is_enough(CommCoordinator *c, const char *task_id, coord_text info,
                      void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)info;
    return host_look(h).samples >= h->goal.samples;
}

/* "[newest, one before, ...]", yours to free; NULL: not enough are there, or no memory.
 */
static char *print_batch_locked(const host *h, int64_t size)
{
    char *text = NULL;
    size_t len = 0;
    if (size < 1 || size > HOST_SAMPLES_KEPT || size > h->counts.samples) {
        return NULL;
    }
    FILE *to = open_memstream(&text, &len);
    for (int i = 1; to != NULL && i <= (int)size; i++) {
        (void)fprintf(to, "%s%s", i == 1 ? "[" : ", ",
                      h->samples[(h->counts.samples - i) % HOST_SAMPLES_KEPT]);
    }
    if (to == NULL) {
        return NULL;
    }
    bool good = fputs("]", to) != EOF;
    if (fclose(to) != 0 || !good) {
        free(text);
        return NULL;
    }
    return text;
}

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)cur_learner_iter;
    (void)pthread_mutex_lock(&h->lock);
    char *batch = print_batch_locked(h, batch_size);
    h->counts.asked++;
    h->counts.batches += batch != NULL;
    (void)pthread_mutex_unlock(&h->lock);
    if (batch == NULL) {
        return COORD_AGAIN;
    }
    coord_status rc = coord_out_json(out, coord_text_of(batch), NULL);
    free(batch);
    return rc;
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)info;
    (void)pthread_mutex_lock(&h->lock);
    h->counts.steps++;
    (void)pthread_mutex_unlock(&h->lock);
}

/* Asked before on_info() tells of the same step. */
static bool is_trained(CommCoordinator *c, const char *task_id, coord_text info,
                       void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)info;
    return host_look(h).steps + 1 >= h->goal.learn_steps;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)result;
    (void)pthread_mutex_lock(&h->lock);
    h->counts.finished++;
    (void)pthread_mutex_unlock(&h->lock);
}

static void on_restart(CommCoordinator *c, const char *task_id, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)attempt;
    (void)out; /* the new worker gets the same task */
    (void)pthread_mutex_lock(&h->lock);
    h->counts.restarts++;
    h->counts.why = *cause;
    (void)pthread_mutex_unlock(&h->lock);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)pthread_mutex_lock(&h->lock);
    h->counts.failed++;
    h->counts.why = *why;
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- life ---- */

host *host_create(const char *config, coord_loop *loop, host_goal goal, coord_error *err)
{
    comm_coordinator_callbacks cb;
    comm_coordinator_options options;
    host *h = calloc(1, sizeof *h);
    if (h == NULL || pthread_mutex_init(&h->lock, NULL) != 0) {
        free(h);
        (void)snprintf(err->text, sizeof err->text, "host: no memory");
        return NULL;
    }
    h->goal = goal;
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = is_trained;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_task_restart = on_restart;
    cb.deal_with_task_fail = on_fail;
    cb.user = h;
    comm_coordinator_options_init(&options, sizeof options);
    options.config = config;
    options.callbacks = &cb;
    options.loop = loop;
    if (comm_coordinator_create(&options, &h->c, err) != COORD_OK) {
        host_destroy(h);
        return NULL;
    }
    return h;
}

void host_destroy(host *h)
{
    if (h == NULL) {
        return;
    }
    comm_coordinator_destroy(h->c);
    for (int i = 0; i < HOST_SAMPLES_KEPT; i++) {
        free(h->samples[i]);
    }
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

/* ---- passed on ---- */

coord_status host_start(host *h, coord_error *err)
{
    return comm_coordinator_start(h->c, err);
}

typedef coord_status post_fn(CommCoordinator *c, coord_text task, coord_error *err);

static coord_status post(host *h, post_fn *to, const char *task_id, coord_error *err)
{
    char task[256];
    int len = snprintf(task, sizeof task, "{\"task_id\": \"%s\", \"buffer_id\": \"b\"}",
                       task_id);
    if (len < 0 || (size_t)len >= sizeof task) {
        return COORD_ERR_ARG;
    }
    return to(h->c, coord_text_of(task), err);
}

coord_status host_collect(host *h, const char *task_id, coord_error *err)
{
    return post(h, comm_coordinator_post_collector_task, task_id, err);
}

coord_status host_learn(host *h, const char *task_id, coord_error *err)
{
    return post(h, comm_coordinator_post_learner_task, task_id, err);
}

coord_status host_wait(host *h, int64_t wait_ms, coord_error *err)
{
    return comm_coordinator_wait(h->c, wait_ms, err);
}

coord_status host_close(host *h, coord_error *err)
{
    return comm_coordinator_close(h->c, err);
}

host_counts host_look(host *h)
{
    (void)pthread_mutex_lock(&h->lock);
    host_counts counts = h->counts;
    (void)pthread_mutex_unlock(&h->lock);
    return counts;
}
