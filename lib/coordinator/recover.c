/* What a worker is asked between tasks, and what becomes of one that is alive and of no
 * use.
 *
 * RECOVERING  has come back from a run. It first ends what an attempt that was given up
 *             has left it at, then gets the close that it is owed, then is asked what it
 *             has; with the answer it is FREE.
 * QUARANTINED the same after a pause, again and again, for a worker whose heartbeats come
 *             and which does nothing: the probe is a real task (`resource`), for only
 * that shows that tasks are run. The pause doubles each time, and begins anew only when
 * the worker has done a task: one that answers probes and never does a task is used less
 * and less often.
 *
 * A worker runs one task at a time, so a close that it has accepted comes before all that
 * follows; one that it was too busy for is sent again. A lost connection ends all debts:
 * whoever is connected next may be another process, and Python's workers never answer a
 * close without a task. */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/membership.h"
#include "coordinator/reason.h"

enum {
    QUARANTINE_FIRST_MS = 1000,
    QUARANTINE_EAGER_MS = 1000, /* longest while start still waits */
    QUARANTINE_LONGEST_MS = 300000,
    FAILED_STARTS_MAX = 3 /* in a row; then it costs the host no more tasks for now */
};

static void on_closed(coord_task *task, void *arg);
static void on_resource(coord_task *task, void *arg);

static const coordi_run_kind *kind_of(const coordi_member *m)
{
    return m->worker.role == COORD_LEARNER ? &coordi_learner_run : &coordi_collector_run;
}

static bool is_on_the_wire(const coordi_member *m)
{
    return m->connection != NULL && m->connection->state == COORDI_CONNECTION_CONNECTED;
}

/* ---- quarantine ---- */

static int64_t next_pause(const coordi_member *m)
{
    int64_t longest = m->c->phase == COORDI_PHASE_STARTING ? QUARANTINE_EAGER_MS
                                                           : QUARANTINE_LONGEST_MS;
    int64_t pause = m->quarantine_ms == 0 ? QUARANTINE_FIRST_MS : 2 * m->quarantine_ms;
    return pause < longest ? pause : longest;
}

/* Not probed in vain, but new in quarantine. */
static void enter_quarantine(coordi_member *m, const coord_error *why)
{
    m->why = *why;
    m->why_ms = coordi_now(m->c->loop);
    m->probes = 0;
    m->c->counters.quarantined++;
    (void)coord_resource_manager_delete(m->c->resources, m->worker.role, m->worker.id);
    coordi_member_set_state(m, COORDI_MEMBER_QUARANTINED);
}

/* Alive, but of no use: out of the pool until it answers a probe. */
static void quarantine(coordi_member *m, const coord_error *why)
{
    CommCoordinator *c = m->c;
    coord_error told = *why; /* may belong to what goes now */
    bool again = m->state == COORDI_MEMBER_QUARANTINED;
    coordi_reason_mark(&told);
    if (!is_on_the_wire(m)) {
        coordi_member_lose(m, &told);
        return;
    }
    if (m->leaving) {
        coordi_member_leave(m);
        return;
    }
    if (again) {
        m->probes++;
        m->probe_why = told;
    } else {
        enter_quarantine(m, &told);
    }
    m->quarantine_ms = next_pause(m);
    coordi_timer_in(c->loop, &m->retry, m->quarantine_ms);
    COORDI_LOG(&c->log, COORD_LOG_WARN,
               "worker quarantined worker=%s role=%s probes=%u pause_ms=%lld why=\"%s\" "
               "cause=\"%s\"",
               m->worker.id, coord_role_str(m->worker.role), m->probes,
               (long long)m->quarantine_ms, told.text, told.cause);
    if (!again) {
        coordi_member_let_run_finish(m);
        coordi_coordinator_check_stranded(c, m->worker.role);
        coordi_coordinator_check(c);
    }
}

/* ---- requests ---- */

static void cancel(coord_task *task)
{
    coord_error why;
    task->listener = NULL;
    (void)coordi_fail(&why, COORD_ERR_CANCELED, "nobody waits for it any more");
    coordi_task_fail(task, &why);
}

static void forget(coord_task **slot)
{
    coord_task *task = *slot;
    *slot = NULL;
    if (task != NULL) {
        cancel(task);
        coord_task_unref(task);
    }
}

void coordi_member_forget_requests(coordi_member *m)
{
    forget(&m->task);
    forget(&m->left);
}

static void send(coordi_member *m, const char *name, int64_t timeout_ms,
                 coordi_task_listener_fn *listener)
{
    coordi_buf body = {0};
    coord_error err;
    coordi_buf_addf(&body, "{\"name\": \"%s\"}", name);
    coord_status rc = body.failed ? coordi_fail_nomem(&err, "request") : COORD_OK;
    if (rc == COORD_OK) {
        rc = coordi_task_create(m->connection, (coord_text){body.ptr, body.len}, &m->task,
                                &err);
    }
    coordi_buf_done(&body);
    if (rc == COORD_OK) {
        m->task->listener = listener;
        m->task->listener_arg = m;
        rc = coordi_task_start(m->task, timeout_ms, &err);
    }
    if (rc != COORD_OK) {
        forget(&m->task);
        quarantine(m, &err);
    }
}

/* The close that it is owed, then what it has. */
static void next_step(coordi_member *m)
{
    const coordi_config *config = &m->c->config;
    if (m->owed != NULL) {
        send(m, m->owed, config->start_timeout_ms, on_closed);
    } else {
        send(m, "resource", config->request_timeout_ms, on_resource);
    }
}

/* Its own request has ended. True: the worker runs tasks, whatever it said. */
static bool settled(coordi_member *m, coord_task *task, const coordi_ask *ask)
{
    coord_error why = task->error;
    m->task = NULL;
    if (why.status == COORD_OK || why.status == COORD_ERR_TASK) {
        return true;
    }
    coord_task_unref(task);
    if (why.status == COORD_ERR_LOST) {
        return false; /* its connection tells us */
    }
    coord_error told;
    coordi_explain(m, ask, &why, &told);
    quarantine(m, &told);
    return false;
}

/* As far as this request of it tells: must the worker still be told to close? */
static bool is_open(coordi_left_kind kind, const coord_task *request)
{
    bool sent = atomic_load(&request->status) != COORD_TASK_IDLE;
    coord_status failure = request->error.status;
    bool unknown = failure == COORD_OK || failure == COORD_ERR_TIMEOUT;
    switch (kind) {
    case COORDI_LEFT_START:
        return sent && (unknown || (request->accepted && failure != COORD_ERR_TASK));
    case COORDI_LEFT_CLOSE:
        return !sent || (!request->accepted &&
                         (failure == COORD_ERR_BUSY || failure == COORD_ERR_TIMEOUT));
    default:
        return true;
    }
}

static void on_closed(coord_task *task, void *arg)
{
    coordi_member *m = arg;
    if (!coordi_task_is_settled(task)) {
        return;
    }
    coordi_ask ask = {m->owed, task->accepted, task->timeout_ms, "start_timeout_s"};
    if (!is_open(COORDI_LEFT_CLOSE, task)) {
        m->owed = NULL;
    }
    if (!settled(m, task, &ask)) {
        return;
    }
    coord_task_unref(task);
    if (m->leaving) {
        coordi_member_leave(m);
    } else {
        next_step(m);
    }
}

static coord_status keep_resource(coordi_member *m, const coord_task *task,
                                  coord_error *err)
{
    coord_text result = coord_task_result(task);
    bool completed = coord_task_get_status(task) == COORD_TASK_COMPLETED;
    char *copy = completed ? coordi_memdup(result.ptr, result.len) : coordi_strdup("{}");
    if (copy == NULL) {
        return coordi_fail_nomem(err, "worker");
    }
    coordi_free(m->resource);
    m->resource = copy;
    return coord_resource_manager_update(m->c->resources, m->worker.role, m->worker.id,
                                         coord_text_of(copy), err);
}

static void become_free(coordi_member *m)
{
    if (m->run != NULL) { /* whose task it has done */
        m->quarantine_ms = 0;
    }
    forget(&m->left); /* it runs other tasks, so that one will not be reported */
    coordi_timer_stop(m->c->loop, &m->retry);
    coordi_member_set_state(m, COORDI_MEMBER_FREE);
    m->pause_ms = 0;
    m->why.status = COORD_OK;
    m->lost_why.status = COORD_OK;
    coordi_member_let_run_finish(m);
    coordi_membership_ready(m);
}

static void on_resource(coord_task *task, void *arg)
{
    coordi_member *m = arg;
    coord_error err;
    if (!coordi_task_is_settled(task)) {
        return;
    }
    coordi_ask ask = {"resource", task->accepted, task->timeout_ms, "request_timeout_s"};
    if (!settled(m, task, &ask)) {
        return;
    }
    coord_status rc = keep_resource(m, task, &err);
    coord_task_unref(task);
    if (rc != COORD_OK) {
        quarantine(m, &err);
        return;
    }
    COORDI_LOG(&m->c->log, COORD_LOG_INFO,
               "worker ready worker=%s role=%s resource=%.200s", m->worker.id,
               coord_role_str(m->worker.role), m->resource);
    become_free(m);
    if (m->leaving && m->state == COORDI_MEMBER_FREE) {
        coordi_member_leave(m);
        return;
    }
    coordi_coordinator_check(m->c);
    coordi_coordinator_pump(m->c, m->worker.role);
}

void coordi_member_ask(coordi_member *m)
{
    if (m->leaving) {
        coordi_member_leave(m);
        return;
    }
    coordi_member_set_state(m, COORDI_MEMBER_ASKING);
    next_step(m);
}

/* ---- back from a run ---- */

void coordi_member_release(coordi_member *m, bool closed)
{
    const coordi_run *run = m->run;
    const char *close_name = run->kind->close_name;
    const coord_task *close = run->request;
    m->failed_starts = 0;
    bool still_open = close != NULL && is_open(COORDI_LEFT_CLOSE, close);
    m->owed = closed && !still_open ? NULL : close_name;
    /* Still its run's, until the pool has it. */
    coordi_member_set_state(m, COORDI_MEMBER_RECOVERING);
    if (closed && close != NULL && close->error.status == COORD_ERR_TIMEOUT) {
        coordi_ask ask = {close_name, close->accepted, close->timeout_ms,
                          "start_timeout_s"};
        coord_error told;
        coordi_explain(m, &ask, &close->error, &told);
        quarantine(m, &told);
    } else if (m->leaving && m->owed == NULL) {
        coordi_member_leave(m);
    } else {
        next_step(m);
    }
}

/* What the attempt left it at has ended, so that it is free for what it is owed. */
static void on_left(coord_task *task, void *arg)
{
    coordi_member *m = arg;
    if (!coordi_task_is_settled(task)) {
        return; /* merely accepted */
    }
    coord_error why = task->error;
    bool open = is_open(m->left_kind, task);
    coordi_ask ask = {"the last request of a task that was given up", task->accepted,
                      task->timeout_ms, "its own limit"};
    if (m->left_kind == COORDI_LEFT_START && !open) {
        m->owed = NULL;
    } else if (m->left_kind == COORDI_LEFT_CLOSE && open) {
        m->owed = kind_of(m)->close_name;
    }
    m->left = NULL;
    coord_task_unref(task);
    bool reported = why.status != COORD_ERR_TIMEOUT && why.status != COORD_ERR_LOST;
    if (reported && m->task == NULL) {
        coordi_timer_stop(m->c->loop, &m->retry);
        next_step(m);
    } else if (why.status == COORD_ERR_TIMEOUT && m->state == COORDI_MEMBER_RECOVERING) {
        coord_error told;
        coordi_explain(m, &ask, &why, &told);
        quarantine(m, &told);
    }
}

/* It goes on with what it was asked last: told when that ends, and patient till then. */
static void wait_for_left(coordi_member *m, coord_task *request, int64_t patience_ms)
{
    m->left = coord_task_ref(request);
    m->left->listener = on_left;
    m->left->listener_arg = m;
    coordi_timer_in(m->c->loop, &m->retry, patience_ms);
}

void coordi_member_recover_on_timer(coordi_member *m)
{
    if (m->state == COORDI_MEMBER_QUARANTINED) {
        next_step(m);
    } else if (m->state == COORDI_MEMBER_RECOVERING && m->left != NULL) {
        coord_error why;
        (void)coordi_fail(
            &why, COORD_ERR_BUSY,
            "abandoned work: '%.60s' is still at the last request of a task "
            "that was given up, after %g s (request_timeout_s)",
            m->worker.id, (double)m->c->config.request_timeout_ms / 1000.0);
        why.reason = coordi_reason_word(COORDI_REASON_ABANDONED_WORK);
        quarantine(m, &why);
    }
}

/* Refusals are final for a task, so a worker that refuses all would eat the queue up. */
static bool refuses_all(coordi_member *m, const coordi_run *run,
                        const coord_task *request, coord_error *why)
{
    coord_status failure = request == NULL ? COORD_OK : request->error.status;
    if (run->accepted) {
        m->failed_starts = 0;
    } else if (failure == COORD_ERR_TASK || failure == COORD_ERR_REFUSED ||
               failure == COORD_ERR_PROTOCOL) {
        m->failed_starts++;
    }
    if (m->failed_starts < FAILED_STARTS_MAX || run->accepted) {
        return false;
    }
    (void)coordi_fail_because(why, COORD_ERR_REFUSED, &run->why,
                              "refused start: '%.60s' did not start the last %u tasks",
                              m->worker.id, m->failed_starts);
    why->reason = coordi_reason_word(COORDI_REASON_REFUSED_START);
    return true;
}

/* A worker that was removed and its task given to another. A Python worker that is
 * disconnected in the middle of a request is of no use to anybody afterwards: its task
 * thread ends when it can't report. So it may report first, unless its place is wanted.
 */
static bool may_end_first(const coordi_member *m)
{
    return m->removed && !m->connection->marked && m->heir == NULL &&
           m->c->phase != COORDI_PHASE_CLOSING;
}

void coordi_run_let_go(coordi_run *run)
{
    coordi_member *m = run->member;
    coord_task *request = run->sequence == 0 ? NULL : run->request; /* of this attempt */
    bool sent = request != NULL && atomic_load(&request->status) != COORD_TASK_IDLE;
    bool under_way = sent && !coordi_task_is_settled(request);
    coord_status failure = request == NULL ? COORD_OK : request->error.status;
    coord_error why;

    if (run->request != NULL) {
        run->request->listener = NULL;
    }
    if (m == NULL) {
        return; /* lost; what it was asked went with its connection, or goes now */
    }
    run->member = NULL;
    m->run = NULL;
    m->left_kind = !run->accepted    ? COORDI_LEFT_START
                   : run->close_sent ? COORDI_LEFT_CLOSE
                                     : COORDI_LEFT_WORK;
    /* What an earlier life has asked for last is not known: it may be at anything. */
    bool open = request != NULL ? is_open(m->left_kind, request) : run->resumes;
    m->owed = open ? run->kind->close_name : NULL;
    bool refused = refuses_all(m, run, request, &why);
    coordi_member_set_state(m, COORDI_MEMBER_RECOVERING);
    if (!is_on_the_wire(m)) {
        coordi_explain_loss(m, &run->why, &why);
        coordi_member_lose(m, &why);
    } else if (under_way && may_end_first(m)) {
        wait_for_left(m, request, m->c->config.start_timeout_ms);
    } else if (m->leaving &&
               (under_way || failure == COORD_ERR_TIMEOUT || m->owed == NULL)) {
        coordi_member_leave(m);
    } else if (under_way && m->connection->marked && m->left_kind != COORDI_LEFT_CLOSE) {
        cancel(request); /* a libcoord is told, and need not report: it becomes free */
        next_step(m);
    } else if (under_way) {
        wait_for_left(m, request, m->c->config.request_timeout_ms);
    } else if (failure == COORD_ERR_TIMEOUT || failure == COORD_ERR_BUSY) {
        quarantine(m, &run->why);
    } else if (refused) {
        quarantine(m, &why);
    } else {
        next_step(m);
    }
}
