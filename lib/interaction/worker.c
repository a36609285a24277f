/* Collectors and learners: slaves that know the coordinator's task names.
 *
 * All state here belongs to the slave's work lane: one task at a time. */
#include "coord/worker.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/json.h"
#include "interaction/slave.h"

#include <stdio.h>
#include <string.h>

typedef struct worker worker;

/* One row a task name. */
typedef struct step {
    const char *name;
    const char *input;   /* member of the request that the function gets; NULL: none */
    const char *message; /* answered when the function puts nothing in; NULL: `{}` */
    const char *wrap;    /* the function's output becomes this member; NULL: it is all */
    coord_worker_fn *fn; /* NULL: nothing to do */
    bool needs_start;    /* fails before a task has started; gets the task's info */
    bool adds_task_id;   /* to the output */
    bool adds_buffer_id;
    bool ends; /* the task is over afterwards */
} step;

enum { STEPS_MAX = 5 };

struct worker {
    coord_slave *slave;
    void *user;
    step steps[STEPS_MAX];
    size_t step_count;
    char *info; /* of the running task, owned; NULL: none */
    size_t info_len;
};

struct coord_collector {
    worker worker;
};

struct coord_learner {
    worker worker;
};

/* ---- one task ---- */

static coord_status say(coord_out *out, const char *message)
{
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "{\"message\": ");
    coordi_buf_add_json(&buf, message, strlen(message));
    coordi_buf_adds(&buf, "}");
    coord_status rc = COORD_ERR_NOMEM;
    if (!buf.failed) {
        rc = coord_out_json(out, (coord_text){buf.ptr, buf.len}, NULL);
    }
    coordi_buf_done(&buf);
    return rc;
}

static coord_status fail(coord_out *out, const char *message)
{
    (void)say(out, message); /* without memory the failure alone has to do */
    return COORD_ERR_TASK;
}

static coord_status keep_info(worker *w, coord_text info, coord_error *err)
{
    char *copy = coordi_memdup(info.ptr, info.len);
    if (copy == NULL) {
        return coordi_fail_nomem(err, "task info");
    }
    coordi_free(w->info);
    w->info = copy;
    w->info_len = info.len;
    return COORD_OK;
}

/* Writes the function's output as the reference's workers answer: wrapped if need be,
 * with the ids of the task. */
static coord_status dress(const worker *w, const step *s, coord_out *out,
                          coord_error *err)
{
    coordi_json_member ids[] = {{.key = "buffer_id"}, {.key = "task_id"}};
    coordi_buf plain = {0};
    coordi_buf dressed = {0};
    coord_text body = coordi_out_text(out);
    coord_status rc = COORD_OK;

    if (!s->adds_task_id || w->info == NULL) {
        return COORD_OK;
    }
    if (body.len == 0) {
        body = coord_text_of("{}");
    }
    if (s->wrap != NULL) {
        coordi_buf_addf(&plain, "{\"%s\": ", s->wrap);
        coordi_buf_addt(&plain, body);
        coordi_buf_adds(&plain, "}");
        body = (coord_text){plain.ptr, plain.len};
    }
    (void)coordi_json_get_many((coord_text){w->info, w->info_len}, ids, 2, NULL);
    if (!s->adds_buffer_id) {
        ids[0].present = false;
    }
    if (plain.failed) {
        rc = coordi_fail_nomem(err, s->name);
    } else {
        rc = coordi_json_splice(&dressed, body, s->adds_buffer_id ? ids : ids + 1,
                                s->adds_buffer_id ? 2 : 1, err);
    }
    if (rc == COORD_OK) {
        rc = coord_out_json(out, (coord_text){dressed.ptr, dressed.len}, err);
    }
    coordi_buf_done(&plain);
    coordi_buf_done(&dressed);
    return rc;
}

static coord_status run_step(worker *w, const step *s, coord_text request, coord_out *out,
                             coord_error *err)
{
    coord_text in = {NULL, 0};
    coord_status rc = COORD_OK;

    if (s->needs_start && w->info == NULL) {
        return coordi_fail(err, COORD_ERR_STATE, "%s: no task has started", s->name);
    }
    if (s->input != NULL) {
        (void)coordi_json_get(request, s->input, &in, NULL);
        if (coordi_json_type_of(in) == COORDI_JSON_NONE ||
            coordi_json_type_of(in) == COORDI_JSON_NULL) {
            return coordi_fail(err, COORD_ERR_ARG, "%s: no %s", s->name, s->input);
        }
    } else if (s->needs_start) {
        in = (coord_text){w->info, w->info_len};
    }
    if (s->fn != NULL) {
        rc = s->fn(w->slave, in, out, err, w->user);
    }
    if (rc == COORD_OK && !s->needs_start && s->input != NULL) {
        rc = keep_info(w, in, err);
    }
    if (rc == COORD_OK && s->message != NULL && !out->set) {
        rc = say(out, s->message);
    }
    return rc == COORD_OK ? dress(w, s, out, err) : rc;
}

static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    worker *w = user;
    coord_text name = {NULL, 0};
    coord_error err = {0};

    (void)slave;
    (void)coordi_json_get(data, "name", &name, NULL);
    for (size_t i = 0; i < w->step_count; i++) {
        const step *s = &w->steps[i];
        if (!coordi_json_string_is(name, s->name)) {
            continue;
        }
        coord_status rc = run_step(w, s, data, out, &err);
        if (s->ends) {
            coordi_free(w->info);
            w->info = NULL;
        }
        if (rc == COORD_OK) {
            return COORD_OK;
        }
        return fail(out, err.text[0] != '\0' ? err.text : coord_status_str(rc));
    }
    return fail(out, "task name error");
}

/* ---- both kinds ---- */

static coord_status create_slave(worker *w, const coord_slave_options *options,
                                 coord_error *err)
{
    coord_slave_options ours;
    coord_slave_options_init(&ours, sizeof ours);
    coord_status rc =
        coordi_options_adopt(&ours, sizeof ours, options, "coord_slave_options", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (ours.process_task != NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "worker: process_task must be NULL, the worker has its own");
    }
    ours.process_task = process;
    return coordi_slave_create(&ours, w, &w->slave, err);
}

/* The slave's last callback may still run when it is destroyed, and needs the worker: it
 * goes with the slave. */
static void free_worker(void *user)
{
    worker *w = user;
    coordi_free(w->info);
    coordi_free(w);
}

/* ---- collector ---- */

void coord_collector_callbacks_init(coord_collector_callbacks *callbacks, size_t size)
{
    static const coord_collector_callbacks DEFAULTS = {.size = sizeof DEFAULTS};
    coordi_options_init(callbacks, size, &DEFAULTS, sizeof DEFAULTS);
}

coord_status coord_collector_create(const coord_slave_options *options,
                                    const coord_collector_callbacks *callbacks,
                                    coord_collector **ret, coord_error *err)
{
    coord_collector_callbacks cb = {.size = sizeof cb};
    if (options == NULL || callbacks == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "collector: options, callbacks and ret are required");
    }
    coord_status rc =
        coordi_options_adopt(&cb, sizeof cb, callbacks, "coord_collector_callbacks", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (cb.start == NULL || cb.data == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "collector: start and data are required");
    }
    coord_collector *c = coordi_zalloc(sizeof *c);
    if (c == NULL) {
        return coordi_fail_nomem(err, "collector");
    }
    const step steps[] = {
        {.name = "resource", .fn = cb.resource},
        {.name = "collector_start_task",
         .input = "task_info",
         .message = "collector task has started",
         .fn = cb.start},
        {.name = "collector_data_task",
         .fn = cb.data,
         .needs_start = true,
         .adds_task_id = true,
         .adds_buffer_id = true},
        {.name = "collector_close_task",
         .fn = cb.close,
         .needs_start = true,
         .adds_task_id = true,
         .ends = true},
    };
    memcpy(c->worker.steps, steps, sizeof steps);
    c->worker.step_count = sizeof steps / sizeof steps[0];
    c->worker.user = cb.user;
    rc = create_slave(&c->worker, options, err);
    if (rc != COORD_OK) {
        coordi_free(c);
        return rc;
    }
    *ret = c;
    return COORD_OK;
}

coord_slave *coord_collector_slave(coord_collector *collector)
{
    return collector == NULL ? NULL : collector->worker.slave;
}

void coord_collector_destroy(coord_collector *collector)
{
    if (collector != NULL) {
        coordi_slave_destroy_with(collector->worker.slave, free_worker, collector);
    }
}

/* ---- learner ---- */

void coord_learner_callbacks_init(coord_learner_callbacks *callbacks, size_t size)
{
    static const coord_learner_callbacks DEFAULTS = {.size = sizeof DEFAULTS};
    coordi_options_init(callbacks, size, &DEFAULTS, sizeof DEFAULTS);
}

coord_status coord_learner_create(const coord_slave_options *options,
                                  const coord_learner_callbacks *callbacks,
                                  coord_learner **ret, coord_error *err)
{
    coord_learner_callbacks cb = {.size = sizeof cb};
    if (options == NULL || callbacks == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "learner: options, callbacks and ret are required");
    }
    coord_status rc =
        coordi_options_adopt(&cb, sizeof cb, callbacks, "coord_learner_callbacks", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (cb.start == NULL || cb.get_data == NULL || cb.learn == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "learner: start, get_data and learn are required");
    }
    coord_learner *l = coordi_zalloc(sizeof *l);
    if (l == NULL) {
        return coordi_fail_nomem(err, "learner");
    }
    const step steps[] = {
        {.name = "resource", .fn = cb.resource},
        {.name = "learner_start_task",
         .input = "task_info",
         .message = "learner task has started",
         .fn = cb.start},
        {.name = "learner_get_data_task",
         .fn = cb.get_data,
         .needs_start = true,
         .adds_task_id = true,
         .adds_buffer_id = true},
        {.name = "learner_learn_task",
         .input = "data",
         .wrap = "info",
         .fn = cb.learn,
         .needs_start = true,
         .adds_task_id = true,
         .adds_buffer_id = true},
        {.name = "learner_close_task",
         .fn = cb.close,
         .needs_start = true,
         .adds_task_id = true,
         .adds_buffer_id = true,
         .ends = true},
    };
    memcpy(l->worker.steps, steps, sizeof steps);
    l->worker.step_count = sizeof steps / sizeof steps[0];
    l->worker.user = cb.user;
    rc = create_slave(&l->worker, options, err);
    if (rc != COORD_OK) {
        coordi_free(l);
        return rc;
    }
    *ret = l;
    return COORD_OK;
}

coord_slave *coord_learner_slave(coord_learner *learner)
{
    return learner == NULL ? NULL : learner->worker.slave;
}

void coord_learner_destroy(coord_learner *learner)
{
    if (learner != NULL) {
        coordi_slave_destroy_with(learner->worker.slave, free_worker, learner);
    }
}
