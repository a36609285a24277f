/* After a restart: tasks, connections and requests of the life before.
 *
 * The host is told of each task first (task_resume). A task that waited waits again. For
 * one that a worker had, the old connection is taken up: if the worker still knows it,
 * the result of what it was at comes by itself, and names by its ticket what it answers.
 * If none comes, the last result that the ledger has is told to the host once more, and
 * what follows is asked again, under the same ticket, so that a worker which has heard it
 * before knows it. A worker that is gone costs the attempt, unless it had closed the
 * task: then nothing is left but to tell the host; nor is more left of a task that had
 * failed. */
#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "coordinator/membership.h"

#include <stdio.h>
#include <string.h>

/* ---- requests of the life before ---- */

static int64_t patience_ms(const coordi_run *run)
{
    const coordi_config *config = &run->c->config;
    /* A libcoord knows what it is asked twice, so little is lost by asking early. */
    return run->member->connection->marked ? 2 * config->request_retry_wait_ms
                                           : config->heartbeat_tolerance_ms / 2;
}

void coordi_run_drop_parked(coordi_run *run)
{
    if (run->parked != NULL) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_CANCELED, "nobody waits for it any more");
        coordi_task_fail(run->parked, &why);
        coord_task_unref(run->parked);
        run->parked = NULL;
    }
}

/* The parked request becomes the one under way. */
static void unpark(coordi_run *run)
{
    coord_task *task = run->parked;
    uint64_t sequence = run->parked_ticket.sequence;
    run->parked = NULL;
    run->resumes = false; /* what follows was never sent before */
    coordi_run_listen(run, task, sequence);
    if (coordi_task_is_settled(task)) {
        task->listener(task, run);
    }
}

bool coordi_run_take_parked(coordi_run *run, const char *id)
{
    if (run->parked == NULL || strcmp(run->parked->id, id) != 0) {
        coordi_run_drop_parked(run); /* the host has decided otherwise than before */
        return false;
    }
    unpark(run);
    return true;
}

static coordi_event_kind claimed(coordi_ticket_kind kind)
{
    static const coordi_event_kind EVENT[] = {
        [COORDI_TICKET_START] = COORDI_EVENT_CLAIMED_START,
        [COORDI_TICKET_ASK] = COORDI_EVENT_CLAIMED_ASK,
        [COORDI_TICKET_LEARN] = COORDI_EVENT_CLAIMED_LEARN,
        [COORDI_TICKET_CLOSE] = COORDI_EVENT_CLAIMED_CLOSE,
    };
    return EVENT[kind];
}

/* A busy worker was taken for one that is at this request; it was at another one. */
static void correct_assumption(coordi_run *run)
{
    coord_error why;
    if (run->request != NULL && run->request->assumed) {
        (void)coordi_fail(&why, COORD_ERR_BUSY, "'%.100s' was busy with something else",
                          run->worker_id);
        coordi_task_fail(run->request, &why);
    }
}

/* Is it the result of a request that this run will send next, or has to be at? */
static bool is_ahead(const coordi_run *run, const char *id, coordi_ticket *ticket)
{
    return coordi_ticket_read(&run->c->key, id, ticket) && ticket->task == run->number &&
           ticket->attempt == coordi_ticket_attempt(run->attempt) &&
           ticket->sequence > coordi_ticket_sequence(run->sequence);
}

coord_task *coordi_claim(coord_connection *from, const char *id, void *arg)
{
    CommCoordinator *c = arg;
    const coordi_member *m = from->watcher;
    coordi_run *run = m->run;
    coordi_ticket ticket;
    if (run == NULL || run->member != m || !run->restored || run->parked != NULL) {
        return NULL;
    }
    if (!is_ahead(run, id, &ticket)) {
        correct_assumption(run);
        return NULL;
    }
    if (coordi_task_adopt(from, id, &run->parked, NULL) != COORD_OK) {
        return NULL;
    }
    run->parked->kept = c->ledger != NULL;
    run->parked_ticket = ticket;
    coord_task *task = run->parked;
    if (run->state == COORDI_STATE_AWAITING) {
        coordi_run_dispatch(run, claimed(ticket.kind));
    }
    return task;
}

void coordi_run_claimed(coordi_run *run)
{
    coordi_timer_stop(run->c->loop, &run->timer);
    run->accepted |= run->state != COORDI_STATE_STARTING;
    run->close_sent |= run->state == COORDI_STATE_CLOSING;
    if (run->parked != NULL) {
        unpark(run);
        return;
    }
    if (run->kept_completed) {
        coordi_run_completed(run, (coord_text){run->kept, run->kept_len});
        return;
    }
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_TASK, "task '%.60s' on '%.60s': failed with %.128s",
                      run->id, run->worker_id, run->kept);
    coordi_run_request_failed(run, &why);
}

void coordi_run_await(coordi_run *run)
{
    coord_error why;
    if (run->lane == NULL &&
        coordi_lane_open(run->c->executor, &run->lane, &why) != COORD_OK) {
        coordi_run_stop(run, COORDI_EVENT_LOST, &why);
    } else if (run->parked != NULL) {
        coordi_run_dispatch(run, claimed(run->parked_ticket.kind));
    } else {
        coordi_timer_in(run->c->loop, &run->timer, patience_ms(run));
    }
}

void coordi_run_await_due(coordi_run *run)
{
    if (run->member->connection->unproven) {
        coordi_timer_in(run->c->loop, &run->timer, patience_ms(run));
    } else if (run->sequence == 0) {
        coordi_run_dispatch(run, COORDI_EVENT_ASSIGNED);
    } else {
        coordi_run_dispatch(run, claimed(run->kept_request));
    }
}

/* ---- after task_resume ---- */

/* Its worker has closed it: only the host may still have to hear of it. */
static bool is_closed(const coordi_run *run)
{
    return run->sequence > 0 && run->kept_request == COORDI_TICKET_CLOSE;
}

void coordi_run_after_resume(coordi_run *run)
{
    coord_error why;
    if (run->doomed) {
        why = run->why;
        coordi_run_stop(run, COORDI_EVENT_STOP, &why);
    } else if (is_closed(run)) {
        coordi_run_dispatch(run, COORDI_EVENT_CLAIMED_CLOSE);
    } else if (run->member != NULL) {
        coordi_run_dispatch(run, COORDI_EVENT_RESUMED);
    } else if (run->worker_id[0] == '\0') {
        coordi_run_dispatch(run, COORDI_EVENT_WARNED);
    } else {
        (void)coordi_fail(&why, COORD_ERR_LOST,
                          "the coordinator was restarted, and '%.100s' could not be "
                          "taken over",
                          run->worker_id);
        coordi_run_stop(run, COORDI_EVENT_MOVED, &why);
    }
}

/* ---- taking up what the ledger has ---- */

static void give_texts(coordi_run *run, coordi_ledger_task *past)
{
    (void)snprintf(run->past, sizeof run->past, "%s", past->past);
    (void)snprintf(run->worker_id, sizeof run->worker_id, "%s",
                   past->running ? past->worker : "");
    if (past->fails != COORD_OK) { /* its cause tells of the attempts before */
        run->why.status = past->fails;
        (void)snprintf(run->why.text, sizeof run->why.text, "%s", past->error);
        (void)snprintf(run->why.cause, sizeof run->why.cause, "%s", past->cause);
        run->past[0] = '\0';
        run->doomed = true;
    }
    run->kept = past->result;
    run->kept_len = past->result_len;
    past->result = NULL;
}

static coord_status restore_run(CommCoordinator *c, coordi_ledger_task *past,
                                coord_error *err)
{
    const coordi_run_kind *kind =
        past->role == COORD_LEARNER ? &coordi_learner_run : &coordi_collector_run;
    coord_status rc = coordi_coordinator_check_callbacks(c, past->role, err);
    coordi_run *run =
        rc != COORD_OK ? NULL
                       : coordi_run_allocate(
                             c, kind, (coord_text){past->task, past->task_len}, &rc, err);
    if (run == NULL) {
        coord_error why = err == NULL ? (coord_error){0} : *err;
        return coordi_fail_because(err, rc, &why, "ledger: its task '%.100s' can't go on",
                                   past->id);
    }
    run->state = COORDI_STATE_RESUMING;
    run->number = past->number;
    run->attempt = past->attempt;
    run->losses = past->losses;
    run->sequence = past->sequence;
    run->accepted = past->sequence > 0;
    run->kept_request = past->request;
    run->kept_completed = past->completed;
    run->restored = true;
    run->resumes = true;
    give_texts(run, past);
    return COORD_OK;
}

/* The task that the worker got by this connection and may still be at. A new connection
 * is a new worker: it knows nothing of what the one before was at. */
static const coordi_ledger_task *find_task_at(const CommCoordinator *c,
                                              const coordi_ledger_past *past,
                                              const coordi_ledger_worker *worker)
{
    for (const coordi_link *link = past->tasks.next; link != &past->tasks;
         link = link->next) {
        const coordi_ledger_task *task = COORDI_ITEM(link, coordi_ledger_task, link);
        const coordi_run *run = coordi_map_get(&c->runs, task->id);
        if (task->running && !run->doomed && !is_closed(run) &&
            strcmp(task->token, worker->token) == 0) {
            return task;
        }
    }
    return NULL;
}

/* A token is of use where the slave reports to: at the old address. */
static bool is_same_address(const CommCoordinator *c, const coordi_ledger_past *past)
{
    char address[COORDI_HOST_PORT_SIZE + 8];
    coordi_master_print_address(c->master, NULL, address);
    return strcmp(past->address, address) == 0;
}

/* One that a source brought then may be listed again; till then it belongs here. */
static coordi_member *find_member(CommCoordinator *c, const coordi_ledger_worker *past)
{
    coordi_member *m = coordi_map_get(&c->members[past->role], past->id);
    if (m != NULL || !past->connected || !coordi_membership_has_sources(c)) {
        return m;
    }
    coordi_config_worker worker = {.role = past->role, .port = past->port};
    memcpy(worker.id, past->id, sizeof worker.id);
    memcpy(worker.host, past->host, sizeof worker.host);
    (void)coordi_membership_add(c, &worker, COORDI_ORIGIN_LEDGER, NULL);
    return coordi_map_get(&c->members[past->role], past->id);
}

static void restore_worker(CommCoordinator *c, const coordi_ledger_past *past,
                           const coordi_ledger_worker *worker, bool same_address)
{
    char key[COORDI_KEY_SIZE];
    coordi_member *m = find_member(c, worker);
    bool same = m != NULL && strcmp(m->worker.host, worker->host) == 0 &&
                m->worker.port == worker->port;
    if (same && same_address && worker->connected) {
        const coordi_ledger_task *task = find_task_at(c, past, worker);
        coordi_run *run = task == NULL ? NULL : coordi_map_get(&c->runs, task->id);
        if (coordi_member_adopt(m, worker, run, task == NULL ? "{}" : task->resource)) {
            return;
        }
    }
    if (same) { /* it may refuse us until it is told that this one is over */
        coordi_member_print_key(m, key);
        coordi_master_expect(c->master, worker->token, key);
    }
}

static void restore_totals(CommCoordinator *c, const coordi_ledger_past *past)
{
    c->key = past->key;
    c->last_number = past->last_number;
    c->counters.accepted = past->accepted;
    c->counters.finished = past->finished;
    c->counters.failed = past->failed;
    c->counters.moved = past->moved;
}

/* Before anybody knows of them. */
static void forget_runs(CommCoordinator *c)
{
    size_t at = 0;
    for (coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        run->state = COORDI_STATE_ENDED;
        coordi_run_end(run);
    }
}

coord_status coordi_coordinator_restore(CommCoordinator *c, coord_error *err)
{
    coordi_ledger_past *past = coordi_ledger_get_past(c->ledger);
    coord_status rc = COORD_OK;
    char address[COORDI_HOST_PORT_SIZE + 8];
    bool same_address = is_same_address(c, past);

    restore_totals(c, past);
    for (coordi_link *link = past->tasks.next; rc == COORD_OK && link != &past->tasks;
         link = link->next) {
        rc = restore_run(c, COORDI_ITEM(link, coordi_ledger_task, link), err);
    }
    if (rc != COORD_OK) {
        forget_runs(c);
        return rc;
    }
    coordi_master_print_address(c->master, NULL, address);
    coordi_ledger_listening(c->ledger, address, c->master->port);
    for (coordi_link *link = past->workers.next; link != &past->workers;
         link = link->next) {
        restore_worker(c, past, COORDI_ITEM(link, coordi_ledger_worker, link),
                       same_address);
    }
    coordi_ledger_forget_past(c->ledger);
    size_t at = 0;
    for (coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        coordi_run_call_resume(run);
    }
    return COORD_OK;
}
