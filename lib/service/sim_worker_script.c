#include "service/sim_worker.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/out.h"

#include <stdio.h>
#include <string.h>

/* Scripted workers: what one does with a step.
 *
 * A step is counted and looked up in the script when it begins; then it takes its time;
 * then it goes wrong, or is answered. What a life does after its death counts for
 * nothing: nobody hears of it. */

static coord_status is_over(coord_error *err)
{
    return coordi_fail(err, COORD_ERR_LOST, "sim: this worker has crashed");
}

/* ---- script ---- */

static bool fits(const coord_sim_fault *f, coord_sim_worker_step step,
                 const uint64_t *asked)
{
    uint64_t n = asked[f->at];
    return (f->at == COORD_SIM_STEP_ANY || f->at == step) && n >= f->nth &&
           n - f->nth < f->times;
}

/* False: the life is over, and the step does not count. */
static bool begin(coordi_sim_life *life, coord_sim_worker_step step,
                  const coord_sim_fault **fault)
{
    coord_sim_worker *w = life->worker;
    *fault = NULL;
    coordi_sim_guest_lock(w->sim);
    bool alive = !life->dead;
    if (alive) {
        w->counts[COORD_SIM_COUNT_STEPS]++;
        w->asked[COORD_SIM_STEP_ANY]++;
        w->asked[step]++;
    }
    for (size_t i = 0; alive && *fault == NULL && i < w->options.fault_count; i++) {
        const coord_sim_fault *f = &w->options.faults[i];
        *fault = fits(f, step, w->asked) ? f : NULL;
    }
    coordi_sim_guest_unlock(w->sim);
    return alive;
}

/* False: the life ended meanwhile. */
static bool take_time(const coordi_sim_life *life, coord_sim_worker_step step)
{
    const coord_sim_worker *w = life->worker;
    int64_t ms = w->options.step_ms[step];
    if (ms == 0) {
        ms = w->options.step_ms[COORD_SIM_STEP_ANY];
    }
    if (ms > 0 && coord_sim_run_for(w->sim, ms, NULL) != COORD_OK) {
        return false;
    }
    return !coordi_sim_life_is_over(life);
}

/* COORD_OK: to be answered all the same. */
static coord_status misbehave(coordi_sim_life *life, const coord_sim_fault *fault,
                              coord_error *err)
{
    coord_sim_worker *w = life->worker;
    switch (fault->what) {
    case COORD_SIM_FAULT_FAIL:
        coordi_sim_note(life->loop, "fails", fault->words);
        return coordi_fail(err, COORD_ERR_TASK, "%s", fault->words);
    case COORD_SIM_FAULT_HANG:
        coordi_sim_note(life->loop, "hangs", "for ever");
        return coord_sim_run_for(w->sim, INT64_MAX, err) == COORD_OK
                   ? is_over(err) /* the world has ended */
                   : COORD_ERR_STATE;
    case COORD_SIM_FAULT_CRASH:
        coord_sim_worker_crash(w, fault->back_after_ms);
        return is_over(err);
    case COORD_SIM_FAULT_SILENCE:
        coord_sim_worker_silence(w, fault->back_after_ms);
        break; /* the answer stays here until it goes on */
    }
    return COORD_OK;
}

/* ---- answers ---- */

static coord_status put(coord_out *out, coordi_buf *text, coord_error *err)
{
    coord_status rc = COORD_ERR_NOMEM;
    if (text->failed) {
        rc = coordi_fail_nomem(err, "sim: worker");
    } else {
        rc = coord_out_json(out, (coord_text){text->ptr, text->len}, err);
    }
    coordi_buf_done(text);
    return rc;
}

/* {"data_id": "collector0-7"}; counted over all tasks, so that no two are the same. */
static coord_status default_sample(const coord_sim_worker *w, coord_out *out,
                                   coord_error *err)
{
    char id[COORD_ID_SIZE + 32];
    coordi_buf text = {0};
    int len =
        snprintf(id, sizeof id, "%s-%llu", w->options.id,
                 (unsigned long long)coord_sim_worker_count(w, COORD_SIM_COUNT_DONE) + 1);
    coordi_buf_adds(&text, "{\"data_id\": ");
    coordi_buf_add_json(&text, id, len < 0 ? 0 : (size_t)len);
    coordi_buf_adds(&text, "}");
    return put(out, &text, err);
}

static coord_status default_answer(const coordi_sim_life *life,
                                   coord_sim_worker_step step, coord_out *out,
                                   coord_error *err)
{
    const coord_sim_worker_options *o = &life->worker->options;
    bool collects = o->role == COORD_COLLECTOR;
    unsigned long long samples = life->answered[COORD_SIM_STEP_DATA];
    unsigned long long learned = life->answered[COORD_SIM_STEP_INFO];
    switch (step) {
    case COORD_SIM_STEP_RESOURCE:
        return coord_out_json(out, coord_text_of(o->resource), err);
    case COORD_SIM_STEP_DATA:
        return collects ? default_sample(life->worker, out, err)
                        : coord_out_printf(out, err,
                                           "{\"batch_size\": %lld, "
                                           "\"cur_learner_iter\": %llu}",
                                           (long long)o->batch_size, learned);
    case COORD_SIM_STEP_INFO:
        return collects
                   ? coord_out_printf(out, err,
                                      "{\"collector_done\": true, \"samples\": %llu}",
                                      samples)
                   : coord_out_printf(
                         out, err, "{\"learner_step\": %llu, \"learner_done\": %s}",
                         learned + 1, learned + 1 >= o->learn_steps ? "true" : "false");
    case COORD_SIM_STEP_CLOSE:
        return collects ? coord_out_printf(out, err, "{\"samples\": %llu}", samples)
                        : coord_out_printf(out, err, "{\"learner_step\": %llu}", learned);
    case COORD_SIM_STEP_ANY:
    case COORD_SIM_STEP_START: /* worker.c has an answer to it */
        break;
    }
    return COORD_OK;
}

/* Steps that are answered before this one, and count for its n. */
static uint64_t answered_before(const coordi_sim_life *life, coord_sim_worker_step step)
{
    if (step == COORD_SIM_STEP_DATA || step == COORD_SIM_STEP_INFO) {
        return life->answered[step];
    }
    coordi_sim_guest_lock(life->worker->sim);
    uint64_t asked = life->worker->asked[step];
    coordi_sim_guest_unlock(life->worker->sim);
    return asked - 1;
}

static coord_status answer(const coordi_sim_life *life, coord_sim_worker_step step,
                           coord_text in, coord_out *out, coord_error *err)
{
    coord_sim_worker *w = life->worker;
    coord_status rc = COORD_OK;
    if (w->options.answer != NULL) {
        rc = w->options.answer(w, step, answered_before(life, step) + 1, in, out, err,
                               w->options.user);
    }
    if (rc == COORD_OK && !out->set) {
        rc = default_answer(life, step, out, err);
    }
    return rc;
}

/* ---- serving ---- */

/* What is remembered of a step, as it was given or done. */
static void remember_task(coordi_sim_life *life, coord_text info)
{
    coord_sim_worker *w = life->worker;
    char *copy = coordi_memdup(info.ptr, info.len); /* without memory the old one stays */
    memset(life->answered, 0, sizeof life->answered);
    life->in_round = 0;
    if (copy != NULL) {
        coordi_sim_guest_lock(w->sim);
        char *old = w->last_task;
        w->last_task = copy;
        w->last_task_len = info.len;
        coordi_sim_guest_unlock(w->sim);
        coordi_free(old);
    }
}

static void count(coordi_sim_life *life, coord_sim_worker_step step, coord_status rc)
{
    coord_sim_worker *w = life->worker;
    bool collects = w->options.role == COORD_COLLECTOR;
    coordi_sim_guest_lock(w->sim);
    if (life->dead) {
        rc = COORD_ERR_LOST;
    } else if (rc != COORD_OK) {
        w->counts[COORD_SIM_COUNT_FAILED]++;
    }
    if (rc == COORD_OK) {
        bool is_work = step == (collects ? COORD_SIM_STEP_DATA : COORD_SIM_STEP_INFO);
        w->counts[COORD_SIM_COUNT_STARTED] += step == COORD_SIM_STEP_START;
        w->counts[COORD_SIM_COUNT_CLOSED] += step == COORD_SIM_STEP_CLOSE;
        w->counts[COORD_SIM_COUNT_DONE] += is_work;
        life->answered[step]++;
    }
    coordi_sim_guest_unlock(w->sim);
}

static coord_status serve(coordi_sim_life *life, coord_sim_worker_step step,
                          coord_text in, coord_out *out, coord_error *err)
{
    const coord_sim_fault *fault;
    coord_status rc = COORD_OK;
    if (!begin(life, step, &fault)) {
        return is_over(err);
    }
    if (step == COORD_SIM_STEP_START) {
        remember_task(life, in);
    }
    if (!take_time(life, step)) {
        return is_over(err);
    }
    if (fault != NULL) {
        rc = misbehave(life, fault, err);
    }
    if (rc == COORD_OK) {
        rc = answer(life, step, in, out, err);
    }
    count(life, step, rc);
    return rc;
}

/* ---- for worker.h ---- */

static coord_status do_resource(coord_slave *slave, coord_text in, coord_out *out,
                                coord_error *err, void *user)
{
    (void)slave;
    return serve(user, COORD_SIM_STEP_RESOURCE, in, out, err);
}

static coord_status do_start(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    return serve(user, COORD_SIM_STEP_START, in, out, err);
}

/* On the wire a collector's samples and progress are answers to one request. */
static coord_status do_data(coord_slave *slave, coord_text in, coord_out *out,
                            coord_error *err, void *user)
{
    coordi_sim_life *life = user;
    bool is_sample = life->in_round < life->worker->options.samples;
    (void)slave;
    coord_status rc =
        serve(life, is_sample ? COORD_SIM_STEP_DATA : COORD_SIM_STEP_INFO, in, out, err);
    if (rc == COORD_OK) {
        life->in_round = is_sample ? life->in_round + 1 : 0;
    }
    return rc;
}

static coord_status do_get_data(coord_slave *slave, coord_text in, coord_out *out,
                                coord_error *err, void *user)
{
    (void)slave;
    return serve(user, COORD_SIM_STEP_DATA, in, out, err);
}

static coord_status do_learn(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    return serve(user, COORD_SIM_STEP_INFO, in, out, err);
}

static coord_status do_close(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    return serve(user, COORD_SIM_STEP_CLOSE, in, out, err);
}

void coordi_sim_worker_collect(coordi_sim_life *life, coord_collector_callbacks *ret)
{
    coord_collector_callbacks_init(ret, sizeof *ret);
    ret->resource = do_resource;
    ret->start = do_start;
    ret->data = do_data;
    ret->close = do_close;
    ret->user = life;
}

void coordi_sim_worker_learn(coordi_sim_life *life, coord_learner_callbacks *ret)
{
    coord_learner_callbacks_init(ret, sizeof *ret);
    ret->resource = do_resource;
    ret->start = do_start;
    ret->get_data = do_get_data;
    ret->learn = do_learn;
    ret->close = do_close;
    ret->user = life;
}
