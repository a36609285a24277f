#include "host.h"
#include "say.h"

#include "coord/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { DRAIN_MS = 10000 };

/* ---- one task for each collector ---- */

/* Until there are as many tasks as collectors. A task is posted outside of the lock: with
 * a ledger, that can take a moment. */
static void keep_busy(host *h)
{
    for (;;) {
        char task[96];
        coord_error err = {0};
        (void)pthread_mutex_lock(&h->lock);
        bool wanted = h->tasks < h->collectors && !atomic_load(&h->ending);
        h->tasks += wanted ? 1 : 0;
        unsigned n = wanted ? ++h->made : 0;
        (void)pthread_mutex_unlock(&h->lock);
        if (!wanted) {
            return;
        }
        (void)snprintf(task, sizeof task,
                       "{\"task_id\": \"collect-%u\", \"buffer_id\": \"samples\"}", n);
        if (comm_coordinator_post_collector_task(h->coordinator, coord_text_of(task),
                                                 &err) != COORD_OK) {
            complain(task, &err);
            return;
        }
    }
}

static void on_increase(CommCoordinator *c, void *user)
{
    host *h = user;
    (void)c;
    (void)pthread_mutex_lock(&h->lock);
    size_t count = ++h->collectors;
    (void)pthread_mutex_unlock(&h->lock);
    tell("a collector has come: %zu", count);
    keep_busy(h);
}

/* Its task, if it had one, is on its way to another collector. Where there are now more
 * tasks than collectors they wait, and no new ones are posted until they have ended. */
static void on_decrease(CommCoordinator *c, void *user)
{
    host *h = user;
    (void)c;
    (void)pthread_mutex_lock(&h->lock);
    size_t count = --h->collectors;
    (void)pthread_mutex_unlock(&h->lock);
    tell("a collector has gone: %zu", count);
}

static void on_collected(CommCoordinator *c, const char *task_id, coord_text result,
                         void *user)
{
    host *h = user;
    (void)c;
    (void)result;
    (void)task_id;
    (void)pthread_mutex_lock(&h->lock);
    h->tasks--;
    (void)pthread_mutex_unlock(&h->lock);
    keep_busy(h);
}

/* ---- samples, from collectors to the learner ---- */

static void on_sample(CommCoordinator *c, const char *task_id, const char *buffer_id,
                      const char *data_id, coord_text data, void *user)
{
    host *h = user;
    coord_error err = {0};
    (void)task_id;
    (void)data_id;
    (void)pthread_mutex_lock(&h->lock);
    (void)snprintf(h->sample, sizeof h->sample, "%.*s", (int)data.len, data.ptr);
    (void)pthread_mutex_unlock(&h->lock);
    atomic_fetch_add(&h->samples, 1);
    if (comm_coordinator_data_ready(c, buffer_id, &err) != COORD_OK) {
        complain("data_ready", &err);
    }
}

static coord_status put_copies(coord_out *out, const char *sample, int64_t count)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL) {
        return COORD_ERR_NOMEM;
    }
    for (int64_t i = 0; i < count; i++) {
        (void)fprintf(to, "%s%s", i == 0 ? "[" : ", ", sample);
    }
    (void)fputc(']', to);
    coord_status rc = fclose(to) == 0 ? coord_out_json(out, (coord_text){text, len}, NULL)
                                      : COORD_ERR_NOMEM;
    free(text);
    return rc;
}

/* A real host would draw from its buffer: here it is the last sample, several times. */
static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    host *h = user;
    char sample[SAMPLE_SIZE];
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)cur_learner_iter;
    (void)pthread_mutex_lock(&h->lock);
    (void)snprintf(sample, sizeof sample, "%s", h->sample);
    (void)pthread_mutex_unlock(&h->lock);
    return sample[0] == '\0' ? COORD_AGAIN : put_copies(out, sample, batch_size);
}

static void on_step(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)info;
    atomic_fetch_add(&h->steps, 1);
}

static bool is_trained(CommCoordinator *c, const char *task_id, coord_text info,
                       void *user)
{
    host *h = user;
    (void)c;
    (void)task_id;
    (void)info;
    return atomic_load(&h->ending);
}

static bool is_collected(CommCoordinator *c, const char *task_id, coord_text info,
                         void *user)
{
    (void)c;
    (void)task_id;
    (void)info;
    (void)user;
    return true; /* asked when the worker has no more samples */
}

static void on_trained(CommCoordinator *c, const char *task_id, coord_text result,
                       void *user)
{
    (void)c;
    (void)user;
    tell("%s: %.*s", task_id, (int)result.len, result.ptr);
}

/* ---- what goes wrong ---- */

static void on_restart(CommCoordinator *c, const char *task_id, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    host *h = user;
    (void)c;
    (void)out; /* left alone: the task stays as it is */
    tell("%s begins anew, attempt %u: %s", task_id, attempt, cause->text);
    atomic_fetch_add(&h->moved, 1);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    host *h = user;
    (void)c;
    tell("%s has failed: %s: %s", task_id, why->text, why->cause);
    atomic_fetch_add(&h->failed, 1);
}

/* ---- life ---- */

static void fill_in(host *h, comm_coordinator_callbacks *cb)
{
    comm_coordinator_callbacks_init(cb, sizeof *cb);
    cb->deal_with_increase_collector = on_increase;
    cb->deal_with_decrease_collector = on_decrease;
    cb->deal_with_collector_send_data = on_sample;
    cb->deal_with_collector_judge_finish = is_collected;
    cb->deal_with_collector_finish_task = on_collected;
    cb->deal_with_learner_get_data = on_get_data;
    cb->deal_with_learner_send_info = on_step;
    cb->deal_with_learner_judge_finish = is_trained;
    cb->deal_with_learner_finish_task = on_trained;
    cb->deal_with_task_restart = on_restart;
    cb->deal_with_task_fail = on_fail;
    cb->user = h;
}

bool host_start(host *h, const char *config)
{
    coord_error err = {0};
    comm_coordinator_callbacks callbacks;
    comm_coordinator_options options;
    memset(h, 0, sizeof *h);
    if (pthread_mutex_init(&h->lock, NULL) != 0) {
        complain("no mutex", NULL);
        return false;
    }
    fill_in(h, &callbacks);
    comm_coordinator_options_init(&options, sizeof options);
    options.callbacks = &callbacks;
    options.config = config;
    if (comm_coordinator_create(&options, &h->coordinator, &err) != COORD_OK ||
        comm_coordinator_start(h->coordinator, &err) != COORD_OK) {
        complain("coordinator", &err);
        return false;
    }
    return true;
}

bool host_learn(host *h)
{
    coord_error err = {0};
    coord_text task =
        coord_text_of("{\"task_id\": \"learn\", \"buffer_id\": \"samples\"}");
    if (comm_coordinator_post_learner_task(h->coordinator, task, &err) != COORD_OK) {
        complain("learner", &err);
        return false;
    }
    return true;
}

bool host_drain(host *h)
{
    coord_error err = {0};
    atomic_store(&h->ending, true);
    if (comm_coordinator_drain(h->coordinator, DRAIN_MS, &err) != COORD_OK) {
        complain("drain", &err);
        return false;
    }
    return true;
}

int64_t host_status(host *h, const char *path)
{
    coord_error err = {0};
    char *text = NULL;
    json_t *status = NULL;
    int64_t number = -1;
    bool yes;
    if (comm_coordinator_status(h->coordinator, &text, &err) != COORD_OK ||
        coord_json_parse(coord_text_of(text), &status, &err) != COORD_OK) {
        complain("status", &err);
    } else if (coord_json_get_int(status, path, &number, &err) != COORD_OK) {
        number = coord_json_get_bool(status, path, &yes, &err) == COORD_OK ? yes : -1;
    }
    json_decref(status);
    coord_free(text);
    return number;
}

bool host_stop(host *h)
{
    coord_error err = {0};
    bool good = h->coordinator == NULL ||
                comm_coordinator_close(h->coordinator, &err) == COORD_OK;
    if (!good) {
        complain("close", &err);
    }
    comm_coordinator_destroy(h->coordinator);
    h->coordinator = NULL;
    return good;
}
