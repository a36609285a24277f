/* The public face of the coordinator: every call becomes an op or a job on the loop. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "coordinator/call.h"
#include "coordinator/discovery.h"
#include "coordinator/operator_sync.h"

#include <string.h>

/* What a call waits for beyond the deadline that the loop keeps. */
enum { GRACE_MS = 2000, CONFIG_MAX_BYTES = 16 << 20 };

void comm_coordinator_callbacks_init(comm_coordinator_callbacks *callbacks, size_t size)
{
    static const comm_coordinator_callbacks DEFAULTS = {.size = sizeof DEFAULTS};
    coordi_options_init(callbacks, size, &DEFAULTS, sizeof DEFAULTS);
}

void comm_coordinator_options_init(comm_coordinator_options *options, size_t size)
{
    static const comm_coordinator_options DEFAULTS = {
        .size = sizeof DEFAULTS,
        .log_level = COORD_LOG_INFO,
    };
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- life ---- */

CommCoordinator *coordi_coordinator_ref(CommCoordinator *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void coordi_coordinator_unref(CommCoordinator *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) {
        return;
    }
    coordi_map_done(&c->runs);
    coordi_past_done(c);
    coordi_operator_sync_free(c->operator_sync);
    coordi_config_done(&c->config);
    coordi_loop_unref(c->loop);
    coordi_free(c);
}

static void init_fields(CommCoordinator *c, coord_loop *loop)
{
    atomic_init(&c->refs, 1);
    atomic_init(&c->port, 0);
    atomic_init(&c->dead, false);
    atomic_init(&c->tasks, 0);
    atomic_flag_clear(&c->begun);
    c->loop = loop;
    for (int role = 0; role < COORDI_ROLES; role++) {
        coordi_queue_init(&c->queues[role]);
    }
    coordi_list_init(&c->past_oldest_first);
    coordi_list_init(&c->await_start);
    coordi_list_init(&c->await_empty);
    coordi_list_init(&c->await_close);
}

static coord_status read_config(const comm_coordinator_options *o, coordi_config *ret,
                                coord_error *err)
{
    if ((o->config == NULL) == (o->config_file == NULL)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "coordinator: needs either config or config_file");
    }
    coordi_buf text = {0};
    coord_status rc = COORD_OK;
    if (o->config != NULL) {
        rc = coordi_config_read(coord_text_of(o->config), ret, err);
    } else {
        rc =
            coordi_env_real.file_read(NULL, o->config_file, CONFIG_MAX_BYTES, &text, err);
        if (rc == COORD_OK) {
            rc = coordi_config_read((coord_text){text.ptr, text.len}, ret, err);
        }
        coordi_buf_done(&text);
    }
    return rc;
}

static coord_status adopt(CommCoordinator *c, const comm_coordinator_options *o,
                          coord_error *err)
{
    c->callbacks.size = sizeof c->callbacks;
    coord_status rc =
        coordi_options_adopt(&c->callbacks, sizeof c->callbacks, o->callbacks,
                             "comm_coordinator_callbacks", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (c->callbacks.deal_with_task_fail == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "coordinator: the callback deal_with_task_fail is required");
    }
    rc = read_config(o, &c->config, err);
    if (rc == COORD_OK) {
        rc = coordi_discovery_check(c, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    c->policy = *(o->resource_policy != NULL
                      ? o->resource_policy
                      : coord_resource_policy_find(c->config.resource_manager));
    c->log = (coordi_log){o->log, o->user, o->log_level, "coordinator"};
    return COORD_OK;
}

/* The host's loop, or one of its own. On failure all of it is freed. */
static coord_status settle_on_loop(CommCoordinator *c, coord_loop *given,
                                   coord_error *err)
{
    coord_loop *loop = NULL;
    coord_status rc = coordi_loop_take(given, &loop, err);
    if (rc != COORD_OK) {
        coordi_config_done(&c->config);
        coordi_free(c);
        return rc;
    }
    c->owns_loop = given == NULL;
    init_fields(c, c->owns_loop ? coordi_loop_ref(loop) : loop);
    rc = coordi_operator_sync_create(c, err);
    if (rc != COORD_OK) {
        coordi_coordinator_unref(c);
        if (given == NULL) {
            coordi_loop_retire(loop);
        }
    }
    return rc;
}

coord_status comm_coordinator_create(const comm_coordinator_options *options,
                                     CommCoordinator **ret, coord_error *err)
{
    if (options == NULL || options->callbacks == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "coordinator: options, its callbacks, and ret are required");
    }
    comm_coordinator_options ours;
    comm_coordinator_options_init(&ours, sizeof ours);
    coord_status rc = coordi_options_adopt(&ours, sizeof ours, options,
                                           "comm_coordinator_options", err);
    if (rc != COORD_OK) {
        return rc;
    }
    CommCoordinator *c = coordi_zalloc(sizeof *c);
    if (c == NULL) {
        return coordi_fail_nomem(err, "coordinator");
    }
    rc = adopt(c, &ours, err);
    if (rc == COORD_OK) {
        rc = settle_on_loop(c, ours.loop, err);
    } else {
        coordi_config_done(&c->config);
        coordi_free(c);
    }
    if (rc == COORD_OK) {
        *ret = c;
    }
    return rc;
}

static void run_destroy(coordi_job *job)
{
    CommCoordinator *c = COORDI_ITEM(job, CommCoordinator, destroy_job);
    coordi_coordinator_tear_down(c);
    coordi_coordinator_unref(c);
}

void comm_coordinator_destroy(CommCoordinator *c)
{
    if (c == NULL || coordi_stays_behind(c->loop, &c->destroy_job.link)) {
        return;
    }
    coord_loop *loop = c->loop;
    bool owns_loop = c->owns_loop;
    atomic_store(&c->dead, true);
    c->destroy_job.run = run_destroy;
    coordi_post(loop, &c->destroy_job);
    if (owns_loop) {
        coordi_loop_retire(loop);
    }
}

/* ---- start, close ---- */

typedef struct start_op {
    coordi_op op;
    coordi_ledger *ledger; /* owned until start takes it; NULL: none */
} start_op;

static void run_start(coordi_op *op)
{
    CommCoordinator *c = op->object;
    coord_error err;
    coordi_ledger *ledger = ((start_op *)op)->ledger;
    ((start_op *)op)->ledger = NULL;
    coordi_op_await(op, &c->await_start);
    coord_status rc = coordi_coordinator_begin(c, ledger, &err);
    if (rc != COORD_OK) {
        coordi_list_remove(&op->link);
        coordi_op_finish(op, rc, &err);
    } else {
        coordi_coordinator_check(c); /* with no worker to wait for it has started */
    }
}

static void release_start(coordi_op *op)
{
    CommCoordinator *c = op->object;
    coordi_ledger *ledger = ((start_op *)op)->ledger;
    if (ledger != NULL) { /* it never ran */
        coordi_ledger_close(ledger);
        atomic_flag_clear(&c->begun);
    }
    coordi_call_release(op);
}

/* On the caller's thread: it may take a while, and the loop may have others to serve. */
static coord_status open_ledger(CommCoordinator *c, coordi_ledger **ret, coord_error *err)
{
    if (c->config.ledger[0] == '\0') {
        return COORD_OK;
    }
    if (atomic_flag_test_and_set(&c->begun)) {
        return coordi_fail(err, COORD_ERR_STATE, "start: started or closed already");
    }
    coord_status rc = coordi_ledger_open(c->loop, &c->config, &c->log, ret, err);
    if (rc != COORD_OK) {
        atomic_flag_clear(&c->begun);
    }
    return rc;
}

coord_status comm_coordinator_start(CommCoordinator *c, coord_error *err)
{
    coord_status rc;
    start_op *op = coordi_call_make(c, sizeof *op, run_start, true, c, "start", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.release = release_start;
    op->op.revocable = true;
    rc = open_ledger(c, &op->ledger, err);
    if (rc != COORD_OK) {
        coordi_op_discard(&op->op);
        return rc;
    }
    return coordi_call_finish(&op->op, c->config.max_retry_ms + GRACE_MS, "start", err);
}

static void run_close(coordi_op *op)
{
    CommCoordinator *c = op->object;
    coordi_op_await(op, &c->await_close);
    coordi_coordinator_begin_close(c);
}

coord_status comm_coordinator_close(CommCoordinator *c, coord_error *err)
{
    coord_status rc;
    coordi_op *op =
        coordi_call_make(c, sizeof *op, run_close, true, c, "close", err, &rc);
    return op == NULL ? rc
                      : coordi_call_finish(op, c->config.close_timeout_ms, "close", err);
}

/* ---- tasks ---- */

coord_status coordi_coordinator_check_callbacks(const CommCoordinator *c, coord_role role,
                                                coord_error *err)
{
    const comm_coordinator_callbacks *cb = &c->callbacks;
    const struct {
        coord_role role;
        bool given;
        const char *name;
    } needed[] = {
        {COORD_COLLECTOR, cb->deal_with_collector_send_data != NULL,
         "collector_send_data"},
        {COORD_COLLECTOR, cb->deal_with_collector_judge_finish != NULL,
         "collector_judge_finish"},
        {COORD_COLLECTOR, cb->deal_with_collector_finish_task != NULL,
         "collector_finish_task"},
        {COORD_LEARNER, cb->deal_with_learner_get_data != NULL, "learner_get_data"},
        {COORD_LEARNER, cb->deal_with_learner_send_info != NULL, "learner_send_info"},
        {COORD_LEARNER, cb->deal_with_learner_judge_finish != NULL,
         "learner_judge_finish"},
        {COORD_LEARNER, cb->deal_with_learner_finish_task != NULL, "learner_finish_task"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (needed[i].role == role && !needed[i].given) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "%s task: the callback deal_with_%s is NULL",
                               coord_role_str(role), needed[i].name);
        }
    }
    return COORD_OK;
}

static void run_send(coordi_op *op)
{
    coordi_send_op *send = (coordi_send_op *)op;
    CommCoordinator *c = op->object;
    coord_error err;
    coord_status rc = coordi_coordinator_check_callbacks(c, send->kind->role, &err);
    if (rc == COORD_OK && c->phase != COORDI_PHASE_RUNNING) {
        rc = coordi_fail(&err, COORD_ERR_STATE, "send: the coordinator is %s",
                         c->phase < COORDI_PHASE_RUNNING ? "not started" : "closed");
    }
    if (rc == COORD_OK && c->draining) {
        rc = coordi_fail(&err, COORD_ERR_CLOSED,
                         "send: the coordinator drains, it takes no more tasks");
    }
    if (rc == COORD_OK) {
        rc = coordi_run_create(c, send->kind, send->task, send, &err);
    }
    if (rc != COORD_OK) {
        coordi_op_finish(op, rc, &err);
    }
}

static void release_send(coordi_op *op)
{
    coordi_free((char *)(uintptr_t)((coordi_send_op *)op)->task.ptr);
    coordi_call_release(op);
}

static coord_status give(CommCoordinator *c, const coordi_run_kind *kind, coord_text task,
                         bool post, char *worker_id, coord_error *err)
{
    const char *what = post ? "post" : "send";
    coord_status rc;
    coordi_send_op *op =
        coordi_call_make(c, sizeof *op, run_send, !post, NULL, what, err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.release = release_send;
    op->op.revocable = true; /* a caller who was told "too late" is not surprised later */
    op->kind = kind;
    op->post = post;
    op->task = (coord_text){coordi_memdup(task.ptr, task.len), task.len};
    if (op->task.ptr == NULL) {
        coordi_op_discard(&op->op);
        return coordi_fail_nomem(err, what);
    }
    int64_t queue_ms = c->config.queue_timeout_ms;
    int64_t once_ms = queue_ms + c->config.start_timeout_ms;
    int64_t wait_ms = post           ? COORDI_OP_PATIENCE_MS
                      : queue_ms > 0 ? once_ms * (c->config.max_reassign + 1) + GRACE_MS
                                     : INT64_MAX / 4; /* the host chose no limit */
    rc = coordi_op_wait(&op->op, wait_ms, what, err);
    if (rc == COORD_OK && worker_id != NULL) {
        memcpy(worker_id, op->worker_id, COORD_ID_SIZE);
    }
    coordi_op_unref(&op->op);
    return rc;
}

coord_status comm_coordinator_send_collector_task(CommCoordinator *c, coord_text task,
                                                  char worker_id[COORD_ID_SIZE],
                                                  coord_error *err)
{
    return give(c, &coordi_collector_run, task, false, worker_id, err);
}

coord_status comm_coordinator_send_learner_task(CommCoordinator *c, coord_text task,
                                                char worker_id[COORD_ID_SIZE],
                                                coord_error *err)
{
    return give(c, &coordi_learner_run, task, false, worker_id, err);
}

coord_status comm_coordinator_post_collector_task(CommCoordinator *c, coord_text task,
                                                  coord_error *err)
{
    return give(c, &coordi_collector_run, task, true, NULL, err);
}

coord_status comm_coordinator_post_learner_task(CommCoordinator *c, coord_text task,
                                                coord_error *err)
{
    return give(c, &coordi_learner_run, task, true, NULL, err);
}

/* ---- calls about one task or buffer ---- */

static void run_cancel(coordi_op *op)
{
    CommCoordinator *c = op->object;
    const char *id = ((coordi_name_op *)op)->name;
    coordi_run *run = coordi_map_get(&c->runs, id);
    coord_error err;
    if (run == NULL) {
        coord_status rc =
            coordi_fail(&err, COORD_ERR_NOT_FOUND, "cancel: no task '%.100s' runs", id);
        coordi_op_finish(op, rc, &err);
        return;
    }
    (void)coordi_fail(&err, COORD_ERR_CANCELED, "task '%.100s': canceled", id);
    coordi_run_stop(run, COORDI_EVENT_STOP, &err);
    coordi_op_finish(op, COORD_OK, NULL);
}

coord_status comm_coordinator_cancel_task(CommCoordinator *c, const char *task_id,
                                          coord_error *err)
{
    if (task_id == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "cancel: task_id is required");
    }
    coord_status rc;
    coordi_name_op *op =
        coordi_call_make_named(c, run_cancel, task_id, false, "cancel", err, &rc);
    return op == NULL ? rc
                      : coordi_call_finish(&op->op, COORDI_OP_PATIENCE_MS, "cancel", err);
}

static bool same_buffer(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void run_data_ready(coordi_op *op)
{
    CommCoordinator *c = op->object;
    size_t at = 0;
    for (coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        if (run->kind->role != COORD_LEARNER ||
            !same_buffer(run->buffer_id, ((coordi_name_op *)op)->name)) {
            continue;
        }
        if (run->state == COORDI_STATE_WAITING) {
            run->pause_ms = 0;
            coordi_timer_in(c->loop, &run->timer, 0);
        } else if (run->state == COORDI_STATE_SAMPLING) {
            run->ready = true;
        }
    }
    coordi_op_finish(op, COORD_OK, NULL);
}

coord_status comm_coordinator_data_ready(CommCoordinator *c, const char *buffer_id,
                                         coord_error *err)
{
    coord_status rc;
    coordi_name_op *op = coordi_call_make_named(c, run_data_ready, buffer_id, false,
                                                "data_ready", err, &rc);
    return op == NULL
               ? rc
               : coordi_call_finish(&op->op, COORDI_OP_PATIENCE_MS, "data_ready", err);
}

/* ---- waiting ---- */

static void run_wait(coordi_op *op)
{
    CommCoordinator *c = op->object;
    if (c->runs.count == 0) {
        coordi_op_finish(op, COORD_OK, NULL);
    } else {
        coordi_op_await(op, &c->await_empty);
    }
}

coord_status comm_coordinator_wait(CommCoordinator *c, int64_t wait_ms, coord_error *err)
{
    if (wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "wait: wait_ms must be 0 or more, got %lld",
                           (long long)wait_ms);
    }
    coord_status rc;
    coordi_op *op = coordi_call_make(c, sizeof *op, run_wait, true, c, "wait", err, &rc);
    if (op == NULL) {
        return rc;
    }
    coord_error why;
    rc = coordi_op_wait(op, wait_ms, "wait", &why);
    size_t left = atomic_load(&c->tasks);
    if (rc == COORD_ERR_TIMEOUT && left == 0) {
        rc = COORD_OK; /* in no time at all the loop has not even been asked */
    } else if (rc == COORD_ERR_TIMEOUT) {
        (void)coordi_fail(err, rc, "wait: %zu tasks are left after %lld ms", left,
                          (long long)wait_ms);
    } else if (rc != COORD_OK) {
        rc = coordi_fail_copy(err, &why);
    }
    coordi_op_unref(op); /* which may be what holds a destroyed coordinator */
    return rc;
}

static void run_wait_task(coordi_op *op)
{
    CommCoordinator *c = op->object;
    coordi_run *run = coordi_map_get(&c->runs, ((coordi_name_op *)op)->name);
    if (run == NULL) {
        coordi_op_finish(op, COORD_OK, NULL);
    } else {
        coordi_op_await(op, &run->await_end);
    }
}

coord_status comm_coordinator_wait_task(CommCoordinator *c, const char *task_id,
                                        int64_t wait_ms, coord_error *err)
{
    if (task_id == NULL || wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "wait_task: needs a task_id and a time of 0 or more");
    }
    coord_status rc;
    coordi_name_op *op =
        coordi_call_make_named(c, run_wait_task, task_id, true, "wait_task", err, &rc);
    return op == NULL ? rc : coordi_call_finish(&op->op, wait_ms, "wait_task", err);
}

/* ---- looking ---- */

typedef struct status_op {
    coordi_op op;
    char *text; /* owned until the caller has it */
} status_op;

static void release_status(coordi_op *op)
{
    coordi_free(((status_op *)op)->text);
    coordi_call_release(op);
}

static void run_status(coordi_op *op)
{
    status_op *status = (status_op *)op;
    status->text = coordi_coordinator_status(op->object);
    coordi_op_finish(op, status->text == NULL ? COORD_ERR_NOMEM : COORD_OK, NULL);
}

coord_status comm_coordinator_status(CommCoordinator *c, char **ret, coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "status: ret is required");
    }
    coord_status rc;
    status_op *op =
        coordi_call_make(c, sizeof *op, run_status, false, NULL, "status", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.release = release_status;
    rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "status", err);
    if (rc == COORD_OK) {
        *ret = op->text;
        op->text = NULL;
    }
    coordi_op_unref(&op->op);
    return rc;
}

uint16_t comm_coordinator_port(const CommCoordinator *c)
{
    return c == NULL ? 0 : (uint16_t)atomic_load(&c->port);
}

const char *comm_coordinator_host(const CommCoordinator *c)
{
    return c == NULL ? NULL : c->config.host;
}
