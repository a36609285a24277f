/* The only place where the host's functions are called. They run on lanes: whatever they
 * are told stands in the run and does not change while its job is on its way. */
#include "base/error.h"
#include "coordinator/coordinator.h"

/* What the callback that this thread runs is about; c is NULL when it runs none. A copy
 * of what it was about when it was queued: the loop may go on with the run meanwhile, and
 * even begin another attempt. */
static _Thread_local struct {
    const CommCoordinator *c;
    coordi_delivery about;
} current;

static coordi_delivery now_about(const coordi_run *run)
{
    return (coordi_delivery){run->attempt, run->sequence};
}

/* A destroyed coordinator's host may be gone: then nothing is called. */
static bool enter(const coordi_run *run, coordi_delivery about, coordi_frame *frame)
{
    if (atomic_load(&run->c->dead)) {
        return false;
    }
    coordi_frame_enter(frame, run->c);
    current.c = run->c;
    current.about = about;
    return true;
}

static void leave(coordi_frame *frame)
{
    current.c = NULL;
    coordi_frame_leave(frame);
}

static coordi_lane *lane_of(const coordi_run *run)
{
    return run->lane != NULL ? run->lane : run->c->lane;
}

/* ---- callbacks in the course of a task ---- */

static void job_returned(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, job);
    if (run->returned == COORDI_EVENT_BROKEN) {
        coordi_run_stop(run, COORDI_EVENT_BROKEN, &run->call_why);
    } else {
        coordi_run_dispatch(run, run->returned);
    }
    coordi_run_unref(run);
}

static void run_job(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, job);
    coordi_frame frame;
    run->returned = COORDI_EVENT_NO;
    if (enter(run, run->call_about, &frame)) {
        run->returned = run->call(run);
        leave(&frame);
    }
    run->job.run = job_returned;
    coordi_post(run->c->loop, &run->job);
}

void coordi_run_call(coordi_run *run, coordi_event_kind (*call)(coordi_run *run))
{
    run->call = call;
    run->call_about = now_about(run);
    run->job.run = run_job;
    run->refs++;
    coordi_lane_run(lane_of(run), &run->job);
}

/* ---- task_start ---- */

static void start_returned(coordi_job *job)
{
    coordi_run_unref(COORDI_ITEM(job, coordi_run, start_job));
}

static void run_start(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, start_job);
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coordi_frame frame;
    if (enter(run, run->start_about, &frame)) {
        cb->deal_with_task_start(run->c, run->id, run->worker_id, cb->user);
        leave(&frame);
    }
    run->start_job.run = start_returned;
    coordi_post(run->c->loop, &run->start_job);
}

void coordi_run_call_started(coordi_run *run)
{
    if (run->c->callbacks.deal_with_task_start != NULL) {
        run->start_about = now_about(run);
        run->start_job.run = run_start;
        run->refs++;
        coordi_lane_run(lane_of(run), &run->start_job);
    }
}

/* ---- task_restart ---- */

static void restart_returned(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, restart_job);
    coord_error why;
    if (coordi_run_take_text(run, &why) == COORD_OK) {
        coordi_run_dispatch(run, COORDI_EVENT_WARNED);
    } else {
        coordi_run_stop(run, COORDI_EVENT_BROKEN, &why);
    }
    coordi_run_unref(run);
}

static void run_restart(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, restart_job);
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coordi_frame frame;
    coordi_out_done(&run->out); /* a learner's batch that was never sent */
    if (cb->deal_with_task_restart != NULL && enter(run, now_about(run), &frame)) {
        cb->deal_with_task_restart(run->c, run->id, run->attempt, &run->moved_why,
                                   &run->out, cb->user);
        leave(&frame);
    }
    run->restart_job.run = restart_returned;
    coordi_post(run->c->loop, &run->restart_job);
}

static void resume_returned(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, restart_job);
    if (run->state == COORDI_STATE_RESUMING) {
        coordi_run_after_resume(run);
    }
    coordi_run_unref(run);
}

static void run_resume(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, restart_job);
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coordi_frame frame;
    if (cb->deal_with_task_resume != NULL && enter(run, now_about(run), &frame)) {
        cb->deal_with_task_resume(run->c, run->id, (coord_text){run->task, run->task_len},
                                  cb->user);
        leave(&frame);
    }
    run->restart_job.run = resume_returned;
    coordi_post(run->c->loop, &run->restart_job);
}

void coordi_run_call_resume(coordi_run *run)
{
    run->restart_job.run = run_resume;
    run->refs++;
    coordi_lane_run(lane_of(run), &run->restart_job);
}

/* Also without a function to call: what the lane still holds of the attempt before comes
 * back first, and so never meets the new one. */
void coordi_run_call_restart(coordi_run *run)
{
    run->restart_job.run = run_restart;
    run->refs++;
    coordi_lane_run(lane_of(run), &run->restart_job);
}

/* ---- the last one ---- */

static void end_returned(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, end_job);
    coordi_run_dispatch(run, COORDI_EVENT_TOLD);
    coordi_run_unref(run);
}

static void tell_end(coordi_run *run)
{
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coord_text result = {run->result, run->result_len};
    if (run->state == COORDI_STATE_FAILING) {
        cb->deal_with_task_fail(run->c, run->id, &run->why, cb->user);
    } else if (run->kind->role == COORD_COLLECTOR) {
        cb->deal_with_collector_finish_task(run->c, run->id, result, cb->user);
    } else {
        cb->deal_with_learner_finish_task(run->c, run->id, result, cb->user);
    }
}

static void run_end(coordi_job *job)
{
    coordi_run *run = COORDI_ITEM(job, coordi_run, end_job);
    coordi_frame frame;
    if (run->state != COORDI_STATE_SHELVING && enter(run, now_about(run), &frame)) {
        tell_end(run);
        run->told = true;
        leave(&frame);
    }
    run->end_job.run = end_returned;
    coordi_post(run->c->loop, &run->end_job);
}

void coordi_run_call_end(coordi_run *run)
{
    run->end_job.run = run_end;
    run->refs++;
    coordi_lane_run(lane_of(run), &run->end_job);
}

/* ---- public ---- */

coord_status comm_coordinator_get_delivery(CommCoordinator *c,
                                           comm_coordinator_delivery *ret,
                                           coord_error *err)
{
    if (c == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "delivery: c and ret are required");
    }
    if (ret->size < sizeof *ret) {
        return coordi_fail(err, COORD_ERR_ABI, "delivery: size is %zu, expected %zu",
                           ret->size, sizeof *ret);
    }
    coord_status rc = coordi_check_fork(c->loop, "delivery", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (current.c != c) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "delivery: this thread runs no callback of a task");
    }
    ret->attempt = current.about.attempt;
    ret->sequence = current.about.sequence;
    return COORD_OK;
}
