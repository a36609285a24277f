/* The public face of tasks: every call becomes an op or a job on the loop. */
#include "base/alloc.h"
#include "base/error.h"
#include "env/op.h"
#include "interaction/master.h"

static coord_loop *loop_of(const coord_task *task)
{
    return task->connection->master->loop;
}

typedef struct start_op {
    coordi_op op;
    int64_t timeout_ms;
} start_op;

static void release_task(coordi_op *op)
{
    coord_task_unref(op->object);
}

static void run_start_op(coordi_op *op)
{
    coord_task *task = op->object;
    coord_error err;
    coord_status rc = coordi_task_start(task, ((start_op *)op)->timeout_ms, &err);
    if (rc == COORD_OK) {
        coordi_op_await(op, &task->await_start);
        return;
    }
    if (rc == COORD_ERR_STATE) {
        atomic_flag_clear(&task->start_posted); /* once it is connected it may start */
    } else {
        coordi_task_fail(task, &err);
    }
    coordi_op_finish(op, rc, &err);
}

coord_status coord_task_start(coord_task *task, int64_t wait_ms, int64_t timeout_ms,
                              coord_error *err)
{
    if (task == NULL || wait_ms < 0 || timeout_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "task start: needs a task and times of 0 or more");
    }
    coord_loop *loop = loop_of(task);
    coord_status rc = coordi_check_fork(loop, "task start", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (wait_ms > 0 &&
        (rc = coordi_check_may_wait(loop, NULL, "task start", err)) != COORD_OK) {
        return rc;
    }
    if (atomic_flag_test_and_set(&task->start_posted)) {
        return coordi_fail(err, COORD_ERR_STATE, "task %s: started before", task->id);
    }
    if (wait_ms == 0) {
        task->timeout_ms = timeout_ms;
        coord_task_ref(task);
        coordi_post(loop, &task->start_job);
        return COORD_OK;
    }
    start_op *op =
        coordi_op_create(loop, sizeof *op, run_start_op, coord_task_ref(task), err);
    if (op == NULL) {
        coord_task_unref(task);
        atomic_flag_clear(&task->start_posted);
        return COORD_ERR_NOMEM;
    }
    op->op.release = release_task;
    op->timeout_ms = timeout_ms;
    rc = coordi_op_wait(&op->op, wait_ms, "task start", err);
    coordi_op_unref(&op->op);
    return rc;
}

static void run_join_op(coordi_op *op)
{
    coord_task *task = op->object;
    if (coordi_task_is_settled(task)) {
        coordi_op_finish(op, task->error.status, &task->error);
    } else if (atomic_load(&task->status) == COORD_TASK_IDLE) {
        coord_error err;
        (void)coordi_fail(&err, COORD_ERR_STATE, "task %s: joined before it was started",
                          task->id);
        coordi_op_finish(op, COORD_ERR_STATE, &err);
    } else {
        coordi_op_await(op, &task->await_settle);
    }
}

coord_status coord_task_join(coord_task *task, int64_t wait_ms, coord_error *err)
{
    if (task == NULL || wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "task join: needs a task and a time of 0 or more");
    }
    coord_loop *loop = loop_of(task);
    coord_status rc = coordi_check_fork(loop, "task join", err);
    if (rc == COORD_OK && coordi_task_is_settled(task)) {
        rc = task->error.status;
        return rc == COORD_OK ? rc : coordi_fail_copy(err, &task->error);
    }
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(loop, NULL, "task join", err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_op *op =
        coordi_op_create(loop, sizeof *op, run_join_op, coord_task_ref(task), err);
    if (op == NULL) {
        coord_task_unref(task);
        return COORD_ERR_NOMEM;
    }
    op->release = release_task;
    rc = coordi_op_wait(op, wait_ms, "task join", err);
    coordi_op_unref(op);
    return rc;
}

typedef struct listen_op {
    coordi_op op;
    coord_task_fn *fn;
    void *user;
    bool complete;
} listen_op;

static void run_listen_op(coordi_op *op)
{
    listen_op *listen = (listen_op *)op;
    coord_task *task = op->object;
    coord_error err;
    coord_status rc = coordi_connection_need_lane(task->connection, &err);
    if (task->reported) {
        coordi_op_finish(op, COORD_OK, NULL); /* another function was told already */
        return;
    }
    if (rc == COORD_OK && listen->complete) {
        task->on_complete = listen->fn;
        task->complete_user = listen->user;
    } else if (rc == COORD_OK) {
        task->on_fail = listen->fn;
        task->fail_user = listen->user;
    }
    if (rc == COORD_OK) {
        coordi_task_report_settled(task);
    }
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

static coord_status listen(coord_task *task, coord_task_fn *fn, void *user, bool complete,
                           coord_error *err)
{
    if (task == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "task: is NULL");
    }
    coord_loop *loop = loop_of(task);
    coord_status rc = coordi_check_fork(loop, "task", err);
    if (rc != COORD_OK) {
        return rc;
    }
    listen_op *op =
        coordi_op_create(loop, sizeof *op, run_listen_op, coord_task_ref(task), err);
    if (op == NULL) {
        coord_task_unref(task);
        return COORD_ERR_NOMEM;
    }
    op->op.release = release_task;
    op->fn = fn;
    op->user = user;
    op->complete = complete;
    rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "task callback", err);
    coordi_op_unref(&op->op);
    return rc;
}

coord_status coord_task_on_complete(coord_task *task, coord_task_fn *done, void *user,
                                    coord_error *err)
{
    return listen(task, done, user, true, err);
}

coord_status coord_task_on_fail(coord_task *task, coord_task_fn *done, void *user,
                                coord_error *err)
{
    return listen(task, done, user, false, err);
}

void coord_task_cancel(coord_task *task)
{
    if (task != NULL && !atomic_flag_test_and_set(&task->cancel_posted) &&
        coordi_check_fork(loop_of(task), "task", NULL) == COORD_OK) {
        coord_task_ref(task);
        coordi_post(loop_of(task), &task->cancel_job);
    }
}

const char *coord_task_id(const coord_task *task)
{
    return task == NULL ? NULL : task->id;
}

coord_text coord_task_data(const coord_task *task)
{
    return task == NULL ? (coord_text){NULL, 0}
                        : (coord_text){task->data, task->data_len};
}

coord_task_status coord_task_get_status(const coord_task *task)
{
    return task == NULL ? COORD_TASK_IDLE : (coord_task_status)atomic_load(&task->status);
}

coord_text coord_task_result(const coord_task *task)
{
    if (task == NULL || !coordi_task_is_settled(task)) {
        return (coord_text){NULL, 0};
    }
    return (coord_text){task->result, task->result_len};
}
