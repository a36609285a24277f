/* What the ledger is told of a run. Without a ledger all of it is done at once. */
#include "base/error.h"
#include "coordinator/coordinator.h"

enum { RETRY_MS = 1000 }; /* before an attempt that could not be written is tried again */

/* A write of this run has come back. True: it was the last one under way, so that all
 * that was written before it is settled, too. */
static bool came_back(coordi_run *run)
{
    return --run->writes == 0;
}

static coordi_run *depart(coordi_run *run)
{
    run->refs++;
    run->writes++;
    return run;
}

static void undo_depart(coordi_run *run)
{
    run->writes--;
    run->refs--; /* the caller has one */
}

/* ---- a task is accepted ---- */

/* False: whoever posted it has been told that it took too long. */
static bool answer_post(coordi_run *run, const coord_error *failure)
{
    coordi_op *post = run->post;
    bool wanted = post == NULL || failure != NULL || coordi_op_claim(post);
    run->post = NULL;
    if (post != NULL) {
        coordi_op_finish(post, failure == NULL ? COORD_OK : failure->status, failure);
    }
    return wanted;
}

/* No callback is to speak of it. */
static void take_back(coordi_run *run)
{
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_TIMEOUT,
                      "task '%.100s': whoever posted it has given up", run->id);
    if (run->c->ledger != NULL) {
        (void)coordi_ledger_end(run->c->ledger, run->number, &why, NULL, NULL, NULL);
    }
    coordi_run_stop(run, COORDI_EVENT_BROKEN, &why);
}

static void on_accepted(const coord_error *failure, void *arg)
{
    coordi_run *run = arg;
    bool last = came_back(run);
    if (failure != NULL) {
        coord_error why;
        (void)coordi_fail_because(&why, failure->status, failure,
                                  "task '%.100s': the ledger could not be told of it",
                                  run->id);
        (void)answer_post(run, &why);
        coordi_run_stop(run, COORDI_EVENT_BROKEN, &why);
    } else if (!answer_post(run, NULL)) {
        take_back(run);
    } else if (last) {
        coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
    }
    coordi_run_unref(run);
}

void coordi_run_record_acceptance(coordi_run *run)
{
    CommCoordinator *c = run->c;
    coord_error err;
    c->counters.accepted++;
    if (c->ledger == NULL) {
        if (answer_post(run, NULL)) {
            coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
        } else {
            take_back(run);
        }
        return;
    }
    if (coordi_ledger_accept(c->ledger, run->number, run->id, run->kind->role,
                             (coord_text){run->task, run->task_len}, on_accepted,
                             depart(run), &err) != COORD_OK) {
        on_accepted(&err, run);
        return;
    }
    if (run->post != NULL && run->post->event == NULL) { /* nobody may wait there */
        (void)answer_post(run, NULL);
    }
}

/* ---- an attempt ---- */

static void on_attempt(const coord_error *failure, void *arg)
{
    coordi_run *run = arg;
    if (came_back(run) && run->state == COORDI_STATE_ASSIGNING) {
        if (failure == NULL) {
            coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
        } else {
            coordi_timer_in(run->c->loop, &run->timer, RETRY_MS);
        }
    }
    coordi_run_unref(run);
}

static coordi_ledger_attempt describe(const coordi_run *run)
{
    const coordi_member *m = run->member;
    return (coordi_ledger_attempt){
        .number = run->number,
        .attempt = run->attempt,
        .losses = run->losses,
        .worker = m == NULL ? "" : m->worker.id,
        .resource = m == NULL || m->resource == NULL ? "" : m->resource,
        .past = run->past,
        .token = m == NULL ? "" : m->connection->token,
    };
}

void coordi_run_record_attempt(coordi_run *run)
{
    CommCoordinator *c = run->c;
    coordi_timer_stop(c->loop, &run->timer);
    coordi_run_leave_queue(run);
    if (c->ledger == NULL) {
        coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
        return;
    }
    coordi_ledger_attempt what = describe(run);
    coord_error err;
    if (coordi_ledger_begin(c->ledger, &what, on_attempt, depart(run), &err) !=
        COORD_OK) {
        undo_depart(run);
        coordi_timer_in(c->loop, &run->timer, RETRY_MS);
    }
}

void coordi_run_record_move(const coordi_run *run)
{
    if (run->c->ledger != NULL) {
        coordi_ledger_attempt what = describe(run);
        coordi_ledger_requeue(run->c->ledger, &what);
    }
}

void coordi_run_record_text(const coordi_run *run)
{
    if (run->c->ledger != NULL) {
        coordi_ledger_replace_text(run->c->ledger, run->number,
                                   (coord_text){run->task, run->task_len});
    }
}

/* ---- a result ---- */

static void on_kept(const coord_error *failure, void *arg)
{
    (void)failure; /* the ledger has said so; the run goes on */
    coordi_master_release(arg);
}

bool coordi_keep(coordi_held *held, void *arg)
{
    CommCoordinator *c = arg;
    const coordi_member *m = held->task->connection->watcher;
    const coordi_run *run = m->run;
    coordi_ticket ticket;
    if (c->ledger == NULL || run == NULL ||
        !coordi_ticket_read(&c->key, held->task->id, &ticket)) {
        return false;
    }
    ticket.attempt = run->attempt; /* all of its bits */
    if (held->task == run->request) {
        ticket.sequence = run->sequence;
    }
    return coordi_ledger_result(c->ledger, &ticket, held->completed, held->result,
                                on_kept, held, NULL) == COORD_OK;
}

/* Its worker has closed it, or was asked to and did not say so: either way it has no
 * more to do with the task, and may have the next one before the host has heard of it. */
void coordi_run_record_closed(const coordi_run *run)
{
    coord_error err;
    coordi_ticket ticket = {
        .task = run->number,
        .attempt = run->attempt,
        .sequence = run->sequence,
        .kind = COORDI_TICKET_CLOSE,
    };
    if (run->c->ledger != NULL && run->result == NULL &&
        coordi_ledger_result(run->c->ledger, &ticket, true, coord_text_of("{}"), NULL,
                             NULL, &err) != COORD_OK) {
        COORDI_LOG(&run->c->log, COORD_LOG_ERROR, "task=%s: %s", run->id, err.text);
    }
}

/* ---- the end ---- */

static void on_failure(const coord_error *failure, void *arg)
{
    coordi_run *run = arg;
    (void)failure; /* the ledger has said so; the host hears of it all the same */
    (void)came_back(run);
    coordi_run_tell_failure(run);
    coordi_run_unref(run);
}

bool coordi_run_record_failure(coordi_run *run)
{
    if (run->c->ledger == NULL || atomic_load(&run->c->dead)) {
        return false; /* a host that is gone is told nothing: the next life goes on */
    }
    if (coordi_ledger_fail(run->c->ledger, run->number, &run->why, on_failure,
                           depart(run), NULL) != COORD_OK) {
        undo_depart(run);
        return false;
    }
    return true;
}

static void on_ended(const coord_error *failure, void *arg)
{
    coordi_run *run = arg;
    (void)failure; /* then the ledger tries again by itself */
    if (came_back(run)) {
        coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
    }
    coordi_run_unref(run);
}

void coordi_run_record_end(coordi_run *run)
{
    CommCoordinator *c = run->c;
    const coord_error *why = run->failed ? &run->why : NULL;
    if (c->ledger == NULL || !run->told) {
        coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
        return;
    }
    if (coordi_ledger_end(c->ledger, run->number, why, on_ended, depart(run), NULL) !=
        COORD_OK) {
        undo_depart(run);
        coordi_run_dispatch(run, COORDI_EVENT_RECORDED);
    }
}
