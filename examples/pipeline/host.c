#include "host.h"
#include "event.h"
#include "raw.h"

#include <stdio.h>

static void complain(const char *what, const char *task_id, const coord_error *err)
{
    (void)fprintf(stderr, "pipeline: task %s: %s: %s\n", task_id, what, err->text);
}

/* A callback fails its task by canceling it. */
static void give_up(CommCoordinator *c, const char *task_id, const char *what)
{
    coord_error err = {0};
    (void)fprintf(stderr, "pipeline: task %s: %s\n", task_id, what);
    if (comm_coordinator_cancel_task(c, task_id, &err) != COORD_OK) {
        complain("cancel", task_id, &err);
    }
}

/* ---- collectors ---- */

static void on_send_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                         const char *data_id, coord_text data, void *user)
{
    host *h = user;
    coord_error err = {0};
    event e;
    event_begin(&e, "collector_send_data", task_id);
    event_add_string(&e, "buffer_id", buffer_id);
    event_add_string(&e, "data_id", data_id);
    event_add_json(&e, "data", data);
    event_end(&e);
    if (!buffers_add(h->buffers, buffer_id, data)) {
        give_up(c, task_id, "no memory for its sample");
    } else if (comm_coordinator_data_ready(c, buffer_id, &err) != COORD_OK) {
        complain("data_ready", task_id, &err);
    }
}

static bool on_judge(const char *name, const char *task_id, coord_text info, bool finish)
{
    event e;
    event_begin(&e, name, task_id);
    event_add_json(&e, "info", info);
    event_add_bool(&e, "finish", finish);
    event_end(&e);
    return finish;
}

static bool on_judge_collector(CommCoordinator *c, const char *task_id, coord_text info,
                               void *user)
{
    (void)c;
    (void)user;
    return on_judge("collector_judge_finish", task_id, info,
                    raw_is_true(info, "collector_done"));
}

/* Tasks that are not in the file are those of the crew. */
static void count_end(host *h, CommCoordinator *c, const char *task_id,
                      atomic_size_t *counter)
{
    if (config_find_task(h->config, task_id) != NULL) {
        atomic_fetch_add(counter, 1);
    } else {
        crew_end(&h->crew, c);
    }
}

static void on_finish(host *h, CommCoordinator *c, const char *name, const char *task_id,
                      coord_text result)
{
    event e;
    event_begin(&e, name, task_id);
    event_add_json(&e, "result", result);
    event_end(&e);
    count_end(h, c, task_id, &h->finished);
}

static void on_finish_collector(CommCoordinator *c, const char *task_id,
                                coord_text result, void *user)
{
    host *h = user;
    on_finish(h, c, "collector_finish_task", task_id, result);
}

/* ---- learners ---- */

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    host *h = user;
    event e;
    (void)c;
    coord_status rc = buffers_draw(h->buffers, buffer_id, batch_size, out);
    event_begin(&e, "learner_get_data", task_id);
    event_add_string(&e, "buffer_id", buffer_id);
    event_add_int(&e, "batch_size", batch_size);
    event_add_int(&e, "cur_learner_iter", cur_learner_iter);
    event_add_int(&e, "returned", rc == COORD_OK ? batch_size : 0);
    event_end(&e);
    return rc;
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    event e;
    (void)c;
    (void)user;
    event_begin(&e, "learner_send_info", task_id);
    event_add_string(&e, "buffer_id", buffer_id);
    event_add_json(&e, "info", info);
    event_end(&e);
}

static bool on_judge_learner(CommCoordinator *c, const char *task_id, coord_text info,
                             void *user)
{
    const host *h = user;
    int64_t enough = h->config->learner_iters;
    task *t = config_find_task(h->config, task_id);
    (void)c;
    int64_t learned = t == NULL ? 0 : ++t->learned;
    return on_judge("learner_judge_finish", task_id, info,
                    (enough > 0 && learned >= enough) ||
                        raw_is_true(info, "learner_done"));
}

static void on_finish_learner(CommCoordinator *c, const char *task_id, coord_text result,
                              void *user)
{
    host *h = user;
    on_finish(h, c, "learner_finish_task", task_id, result);
}

/* ---- both ---- */

static void on_increase(CommCoordinator *c, void *user)
{
    host *h = user;
    event e;
    event_begin(&e, "increase_collector", NULL);
    event_end(&e);
    crew_come(&h->crew, c, 1);
}

static void on_decrease(CommCoordinator *c, void *user)
{
    host *h = user;
    event e;
    (void)c;
    event_begin(&e, "decrease_collector", NULL);
    event_end(&e);
    crew_go(&h->crew);
}

static void on_start(CommCoordinator *c, const char *task_id, const char *worker_id,
                     void *user)
{
    event e;
    (void)c;
    (void)user;
    event_begin(&e, "task_start", task_id);
    event_add_string(&e, "worker_id", worker_id);
    event_end(&e);
}

static void add_error(event *e, const coord_error *err)
{
    event_add_int(e, "code", err->status);
    event_add_string(e, "text", err->text);
    event_add_string(e, "cause", err->cause);
}

static void on_restart(CommCoordinator *c, const char *task_id, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    const host *h = user;
    task *t = config_find_task(h->config, task_id);
    event e;
    (void)c;
    (void)out; /* the task stays as it is */
    if (t != NULL) {
        t->learned = 0;
    }
    event_begin(&e, "task_restart", task_id);
    event_add_int(&e, "attempt", attempt);
    add_error(&e, cause);
    event_end(&e);
}

static void on_resume(CommCoordinator *c, const char *task_id, coord_text text,
                      void *user)
{
    host *h = user;
    event e;
    (void)c;
    event_begin(&e, "task_resume", task_id);
    event_add_json(&e, "task", text);
    event_end(&e);
    if (config_find_task(h->config, task_id) == NULL) {
        crew_resume(&h->crew);
    }
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    host *h = user;
    event e;
    event_begin(&e, "task_fail", task_id);
    add_error(&e, why);
    event_end(&e);
    count_end(h, c, task_id, &h->failed);
}

void host_callbacks(host *h, comm_coordinator_callbacks *ret)
{
    comm_coordinator_callbacks_init(ret, sizeof *ret);
    ret->deal_with_collector_send_data = on_send_data;
    ret->deal_with_collector_judge_finish = on_judge_collector;
    ret->deal_with_collector_finish_task = on_finish_collector;
    ret->deal_with_learner_get_data = on_get_data;
    ret->deal_with_learner_send_info = on_info;
    ret->deal_with_learner_judge_finish = on_judge_learner;
    ret->deal_with_learner_finish_task = on_finish_learner;
    ret->deal_with_increase_collector = on_increase;
    ret->deal_with_decrease_collector = on_decrease;
    ret->deal_with_task_start = on_start;
    ret->deal_with_task_restart = on_restart;
    ret->deal_with_task_resume = on_resume;
    ret->deal_with_task_fail = on_fail;
    ret->user = h;
}
