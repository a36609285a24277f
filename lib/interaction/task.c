#include "interaction/task.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "env/op.h"
#include "interaction/master.h"

#include <stdio.h>
#include <string.h>

static void run_start_job(coordi_job *job);
static void run_cancel_job(coordi_job *job);
static void run_start_report(coordi_job *job);
static void run_settle_report(coordi_job *job);
static void on_timeout(coordi_timer *timer);

static coord_loop *loop_of(const coord_task *task)
{
    return task->connection->master->loop;
}

/* ---- life ---- */

coord_status coordi_task_create(coord_connection *connection, coord_text data,
                                coord_task **ret, coord_error *err)
{
    coord_task *task = coordi_zalloc(sizeof *task);
    char *copy = coordi_memdup(data.ptr, data.len);
    if (task == NULL || copy == NULL) {
        coordi_free(task);
        coordi_free(copy);
        (void)coordi_fail_nomem(err, "task");
        return COORD_ERR_NOMEM;
    }
    atomic_init(&task->refs, 1);
    atomic_init(&task->status, COORD_TASK_IDLE);
    atomic_flag_clear(&task->start_posted);
    atomic_flag_clear(&task->cancel_posted);
    task->connection = coordi_connection_ref(connection);
    coordi_random_uuid(connection->master->loop, task->id);
    task->data = copy;
    task->data_len = data.len;
    task->timeout.fire = on_timeout;
    task->start_job.run = run_start_job;
    task->cancel_job.run = run_cancel_job;
    task->start_report.run = run_start_report;
    task->settle_report.run = run_settle_report;
    coordi_list_init(&task->await_start);
    coordi_list_init(&task->await_settle);
    coordi_list_init(&task->held);
    *ret = task;
    return COORD_OK;
}

coord_task *coord_task_ref(coord_task *task)
{
    if (task != NULL) {
        atomic_fetch_add(&task->refs, 1);
    }
    return task;
}

void coord_task_unref(coord_task *task)
{
    if (task == NULL || atomic_fetch_sub(&task->refs, 1) != 1) {
        return;
    }
    if (coordi_check_fork(loop_of(task), "task", NULL) == COORD_OK) {
        coordi_connection_unref(task->connection);
    } /* else it stays as it is; but of the task nobody else knows any more */
    coordi_free(task->data);
    coordi_free(task->result);
    coordi_free(task);
}

/* ---- reports to the host, on the connection's lane ---- */

static void run_start_report(coordi_job *job)
{
    coord_task *task = COORDI_ITEM(job, coord_task, start_report);
    coord_connection *c = task->connection;
    coordi_frame frame;

    coordi_master_enter_callback(c->master, &frame);
    c->host.on_new_task(c, task, task->accepted ? NULL : &task->error, c->host.user);
    coordi_master_leave_callback(c->master, &frame);
    coord_task_unref(task);
}

static void run_settle_report(coordi_job *job)
{
    coord_task *task = COORDI_ITEM(job, coord_task, settle_report);
    bool completed = atomic_load(&task->status) == COORD_TASK_COMPLETED;
    coordi_frame frame;

    coordi_master_enter_callback(task->connection->master, &frame);
    if (completed) {
        task->on_complete(task, NULL, task->complete_user);
    } else {
        task->on_fail(task, &task->error, task->fail_user);
    }
    coordi_master_leave_callback(task->connection->master, &frame);
    coord_task_unref(task);
}

static void report_start(coord_task *task)
{
    coord_connection *c = task->connection;
    if (c->host.on_new_task != NULL && c->lane != NULL) {
        coord_task_ref(task);
        coordi_master_call_host(c->master, c->lane, &task->start_report);
    }
}

void coordi_task_report_settled(coord_task *task)
{
    if (!coordi_task_is_settled(task) || task->reported ||
        task->connection->lane == NULL) {
        return;
    }
    bool completed = atomic_load(&task->status) == COORD_TASK_COMPLETED;
    if ((completed ? task->on_complete : task->on_fail) != NULL) {
        task->reported = true;
        coord_task_ref(task);
        coordi_master_call_host(task->connection->master, task->connection->lane,
                                &task->settle_report);
    }
}

/* ---- transitions, on the loop ---- */

static void tell(coord_task *task)
{
    if (task->listener != NULL) {
        task->listener(task, task->listener_arg);
    }
}

static void became_started(coord_task *task)
{
    task->accepted = true;
    atomic_store(&task->status, COORD_TASK_STARTED);
    coordi_op_finish_all(&task->await_start, COORD_OK, NULL);
    report_start(task);
    tell(task);
}

/* Settles it: `why` NULL means completed. */
static void settle(coord_task *task, coord_task_status status, const coord_error *why)
{
    coord_status rc = why == NULL ? COORD_OK : why->status;

    if (coordi_linked(&task->link)) { /* it was started: undo what start did */
        coordi_list_remove(&task->link);
        (void)coordi_map_remove(&task->connection->master->tasks, task->id);
        coordi_timer_stop(loop_of(task), &task->timeout);
        coordi_exchange_cancel(task->exchange);
        task->exchange = NULL;
    } else {
        coord_task_ref(task); /* the one that start would have taken */
    }
    if (why != NULL) {
        task->error = *why;
    }
    atomic_store(&task->status, status);
    coordi_op_finish_all(&task->await_start, rc, why);
    coordi_op_finish_all(&task->await_settle, rc, why);
    if (!task->accepted) {
        report_start(task);
    }
    coordi_task_report_settled(task);
    tell(task);
    coord_task_unref(task);
}

/* A libcoord slave learns, if all goes well, that nobody waits for the task any more. */
static void tell_slave(const coord_task *task)
{
    coord_connection *c = task->connection;
    char what[160];
    coordi_exchange *exchange;

    bool alive = c->state == COORDI_CONNECTION_CONNECTED ||
                 c->state == COORDI_CONNECTION_DISCONNECTING;
    if (!c->marked || !alive || atomic_load(&task->status) == COORD_TASK_IDLE) {
        return;
    }
    (void)snprintf(what, sizeof what, "cancel of task %s at '%.80s'", task->id, c->id);
    coordi_exchange_spec spec = {
        .method = "DELETE",
        .path = "/task/cancel",
        .what = what,
        .patience = {.timeout_ms = c->master->patience.timeout_ms},
    };
    spec.body = coordi_wire_cancel(task->id, &spec.body_len);
    if (coordi_exchange_start(c->master->loop, c->peer, &spec, &exchange, NULL) ==
        COORD_OK) {
        coordi_exchange_orphan(exchange, &c->orphans);
    }
}

void coordi_task_fail(coord_task *task, const coord_error *why)
{
    if (coordi_task_is_settled(task)) {
        return;
    }
    bool given_up = why->status == COORD_ERR_CANCELED || why->status == COORD_ERR_TIMEOUT;
    if (given_up || why->status == COORD_ERR_CLOSED) {
        tell_slave(task); /* before the listener sends the slave something else */
    }
    settle(task, task->accepted || given_up ? COORD_TASK_FAILED : COORD_TASK_START_FAILED,
           why);
}

static void on_timeout(coordi_timer *timer)
{
    coord_task *task = COORDI_ITEM(timer, coord_task, timeout);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_TIMEOUT, "task %s on '%s': %s after %lld ms",
                      task->id, task->connection->id,
                      atomic_load(&task->status) == COORD_TASK_STARTED ? "no result"
                                                                       : "not accepted",
                      (long long)task->timeout_ms);
    (void)coordi_connection_doubt(task->connection, why.cause, sizeof why.cause);
    coordi_task_fail(task, &why);
}

static void on_start_outcome(const coordi_outcome *outcome, void *arg)
{
    coord_task *task = arg;
    coord_connection *c = task->connection;

    task->exchange = NULL;
    if (atomic_load(&task->status) != COORD_TASK_STARTING) {
        return; /* its result was faster */
    }
    /* A libcoord would have known the task again, and said yes. */
    bool taken_before = outcome->status == COORD_ERR_REFUSED &&
                        (outcome->maybe_delivered || task->maybe_sent) &&
                        !outcome->marked &&
                        outcome->answer.code == COORDI_CODE_SLAVE_BUSY;
    task->assumed = taken_before;
    if (outcome->status == COORD_OK || taken_before) {
        became_started(task);
        return;
    }
    coord_error why = *outcome->error;
    if (outcome->status == COORD_ERR_REFUSED &&
        outcome->answer.code == COORDI_CODE_SLAVE_BUSY) {
        why.status = COORD_ERR_BUSY;
    }
    bool gone = outcome->status == COORD_ERR_LOST || outcome->status == COORD_ERR_TIMEOUT;
    bool disowned = outcome->status == COORD_ERR_REFUSED &&
                    outcome->answer.code == COORDI_CODE_WRONG_MASTER_TOKEN;
    if (gone || disowned) {
        why.status = COORD_ERR_LOST; /* the loss takes all tasks along, this one too */
        coordi_connection_lose(c, &why);
    } else {
        coordi_task_fail(task, &why);
    }
}

coord_status coordi_task_start(coord_task *task, int64_t timeout_ms, coord_error *err)
{
    coord_connection *c = task->connection;
    if (atomic_load(&task->status) != COORD_TASK_IDLE) {
        return coordi_fail(err, COORD_ERR_STATE, "task %s: started before", task->id);
    }
    if (c->state == COORDI_CONNECTION_LOST) {
        return coordi_fail_because(err, COORD_ERR_LOST, &c->end,
                                   "task %s: the connection to '%s' is lost", task->id,
                                   c->id);
    }
    if (c->state != COORDI_CONNECTION_CONNECTED) {
        return coordi_fail(err, COORD_ERR_STATE, "task %s: '%s' is not connected",
                           task->id, c->id);
    }
    char what[160];
    (void)snprintf(what, sizeof what, "task %s to '%.100s'", task->id, c->id);
    coordi_exchange_spec spec = {
        .method = "POST",
        .path = "/task/new",
        .what = what,
        .patience = c->master->patience,
        .fresh = !c->marked,
        .repeatable = c->marked,
        .retry_busy = !task->maybe_sent || c->marked,
        .done = on_start_outcome,
        .arg = task,
    };
    spec.body = coordi_wire_new_task(task->id, (coord_text){task->data, task->data_len},
                                     &spec.body_len);
    if (!coordi_map_put(&c->master->tasks, task->id, task)) {
        coordi_free(spec.body);
        return coordi_fail_nomem(err, what);
    }
    coord_status rc =
        coordi_exchange_start(c->master->loop, c->peer, &spec, &task->exchange, err);
    if (rc != COORD_OK) {
        (void)coordi_map_remove(&c->master->tasks, task->id);
        return rc;
    }
    coord_task_ref(task);
    coordi_list_append(&c->tasks, &task->link);
    atomic_store(&task->status, COORD_TASK_STARTING);
    task->timeout_ms = timeout_ms;
    if (timeout_ms > 0) {
        coordi_timer_in(c->master->loop, &task->timeout, timeout_ms);
    }
    return COORD_OK;
}

coord_status coordi_task_adopt(coord_connection *c, const char *id, coord_task **ret,
                               coord_error *err)
{
    coord_task *task = NULL;
    coord_status rc = coordi_task_create(c, coord_text_of("{}"), &task, err);
    if (rc != COORD_OK) {
        return rc;
    }
    memcpy(task->id, id, sizeof task->id);
    if (!coordi_map_put(&c->master->tasks, task->id, task)) {
        coord_task_unref(task);
        return coordi_fail_nomem(err, "task");
    }
    coord_task_ref(task);
    coordi_list_append(&c->tasks, &task->link);
    task->accepted = true;
    atomic_store(&task->status, COORD_TASK_STARTED);
    *ret = task;
    return COORD_OK;
}

/* A result proves that the slave took the task: no answer to the start is needed. */
static void prove_start(coord_task *task)
{
    if (atomic_load(&task->status) == COORD_TASK_STARTING) {
        coordi_exchange_orphan(task->exchange, &task->connection->orphans);
        task->exchange = NULL;
        became_started(task);
    }
}

void coordi_task_fail_report(coord_task *task, const coord_error *why)
{
    coord_task_ref(task); /* the listener may let it go */
    prove_start(task);
    coordi_task_fail(task, why);
    coord_task_unref(task);
}

bool coordi_task_report(coord_task *task, bool completed, coord_text result)
{
    if (coordi_task_is_settled(task)) {
        return false;
    }
    coord_error why;
    char *copy = result.len == 0 ? NULL : coordi_memdup(result.ptr, result.len);
    if (result.len > 0 && copy == NULL) {
        (void)coordi_fail(&why, COORD_ERR_NOMEM,
                          "task %s: out of memory for its result of %zu bytes", task->id,
                          result.len);
        coordi_task_fail_report(task, &why);
        return true;
    }
    task->result = copy;
    task->result_len = result.len;
    coord_task_ref(task); /* the listener may let it go */
    prove_start(task);
    if (!coordi_task_is_settled(task)) {
        if (!completed) {
            (void)coordi_fail(&why, COORD_ERR_TASK, "task %s on '%s': failed with %.*s",
                              task->id, task->connection->id,
                              (int)(result.len < 128 ? result.len : 128),
                              result.len == 0 ? "" : result.ptr);
        }
        settle(task, completed ? COORD_TASK_COMPLETED : COORD_TASK_FAILED,
               completed ? NULL : &why);
    }
    coord_task_unref(task);
    return true;
}

/* ---- posted by the public calls ---- */

static void run_start_job(coordi_job *job)
{
    coord_task *task = COORDI_ITEM(job, coord_task, start_job);
    coord_error why;
    if (coordi_task_start(task, task->timeout_ms, &why) != COORD_OK &&
        atomic_load(&task->status) == COORD_TASK_IDLE) {
        settle(task, COORD_TASK_START_FAILED, &why);
    }
    coord_task_unref(task);
}

static void run_cancel_job(coordi_job *job)
{
    coord_task *task = COORDI_ITEM(job, coord_task, cancel_job);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CANCELED, "task %s: canceled", task->id);
    coordi_task_fail(task, &why);
    coord_task_unref(task);
}
