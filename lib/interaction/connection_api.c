/* The public face of connections: every call becomes an op or a job on the loop. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/json.h"
#include "env/op.h"
#include "interaction/master.h"

#include <string.h>

void coord_connection_options_init(coord_connection_options *options, size_t size)
{
    static const coord_connection_options DEFAULTS = {.size = sizeof DEFAULTS};
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- creation ---- */

typedef struct create_op {
    coordi_op op;
    const coord_connection_options *options;
    coord_connection *made;
} create_op;

static void run_create(coordi_op *op)
{
    create_op *create = (create_op *)op;
    const coord_connection_options *o = create->options;
    coord_error err;
    coord_status rc = coordi_connection_create(op->object, o, &create->made, &err);
    bool has_callbacks = o->on_connect != NULL || o->on_disconnect != NULL ||
                         o->on_new_task != NULL || o->on_lost != NULL;
    if (rc == COORD_OK && has_callbacks) {
        rc = coordi_connection_need_lane(create->made, &err);
        if (rc != COORD_OK) {
            coordi_connection_unref(create->made);
        }
    }
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status coord_master_new_connection(coord_master *master,
                                         const coord_connection_options *options,
                                         coord_connection **ret, coord_error *err)
{
    if (master == NULL || options == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "new connection: master, options and ret are required");
    }
    coord_connection_options ours;
    coord_connection_options_init(&ours, sizeof ours);
    coord_status rc = coordi_options_adopt(&ours, sizeof ours, options,
                                           "coord_connection_options", err);
    if (rc == COORD_OK) {
        rc = coordi_check_fork(master->loop, "new connection", err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    create_op *op = coordi_op_create(master->loop, sizeof *op, run_create, master, err);
    if (op == NULL) {
        return COORD_ERR_NOMEM;
    }
    op->op.borrows = true;
    op->options = &ours;
    rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "new connection", err);
    if (rc == COORD_OK) {
        *ret = op->made;
    }
    coordi_op_unref(&op->op);
    return rc;
}

/* ---- connect, disconnect ---- */

typedef struct attempt_op {
    coordi_op op;
    char *data; /* owned */
    size_t data_len;
    bool disconnect;
    bool wait;
} attempt_op;

static void release_attempt(coordi_op *op)
{
    coordi_free(((attempt_op *)op)->data);
    coordi_connection_unref(op->object);
}

static void run_attempt(coordi_op *op)
{
    attempt_op *attempt = (attempt_op *)op;
    coord_connection *c = op->object;
    coord_text data = {attempt->data, attempt->data_len};
    coord_error err;
    coord_status rc;

    if (!attempt->disconnect) {
        rc = coordi_connection_connect(c, data, NULL, NULL, &err);
    } else if (c->state == COORDI_CONNECTION_CONNECTED) {
        rc = coordi_connection_disconnect(c, data, NULL, NULL, &err);
    } else if (c->state == COORDI_CONNECTION_DISCONNECTING) {
        rc = COORD_OK; /* joins the attempt under way */
    } else if (c->state == COORDI_CONNECTION_CONNECTING) {
        if (attempt->wait) {
            coordi_op_await(op, &c->await_disconnect);
        } else {
            coordi_op_finish(op, COORD_OK, NULL);
        }
        coordi_connection_abort(c);
        return;
    } else {
        coordi_op_finish(op, COORD_OK, NULL); /* idempotent */
        return;
    }
    if (rc != COORD_OK || !attempt->wait) {
        coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
        return;
    }
    coordi_op_await(op, attempt->disconnect ? &c->await_disconnect : &c->await_connect);
}

static coord_status attempt(coord_connection *c, coord_text data, int64_t wait_ms,
                            bool disconnect, coord_error *err)
{
    const char *what = disconnect ? "disconnect" : "connect";
    if (c == NULL || wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: needs a connection and a time of 0 or more", what);
    }
    coord_loop *loop = c->master->loop;
    coord_status rc = coordi_check_fork(loop, what, err);
    if (rc == COORD_OK && data.len > 0) {
        rc = coordi_json_check(data, err);
    }
    if (rc == COORD_OK && wait_ms > 0) {
        rc = coordi_check_may_wait(loop, NULL, what, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    attempt_op *op =
        coordi_op_create(loop, sizeof *op, run_attempt, coordi_connection_ref(c), err);
    if (op == NULL) {
        coordi_connection_unref(c);
        return COORD_ERR_NOMEM;
    }
    op->op.release = release_attempt;
    op->disconnect = disconnect;
    op->wait = wait_ms > 0;
    op->data = coordi_memdup(data.ptr, data.len);
    op->data_len = data.len;
    if (op->data == NULL) {
        coordi_op_discard(&op->op);
        return coordi_fail_nomem(err, what);
    }
    rc =
        coordi_op_wait(&op->op, wait_ms > 0 ? wait_ms : COORDI_OP_PATIENCE_MS, what, err);
    coordi_op_unref(&op->op);
    return rc;
}

coord_status coord_connection_connect(coord_connection *connection, coord_text data,
                                      int64_t wait_ms, coord_error *err)
{
    return attempt(connection, data, wait_ms, false, err);
}

coord_status coord_connection_disconnect(coord_connection *connection, coord_text data,
                                         int64_t wait_ms, coord_error *err)
{
    return attempt(connection, data, wait_ms, true, err);
}

bool coord_connection_is_connected(const coord_connection *connection)
{
    return connection != NULL && atomic_load(&connection->connected);
}

const char *coord_connection_id(const coord_connection *connection)
{
    return connection == NULL ? NULL : connection->id;
}

/* ---- tasks ---- */

coord_status coord_connection_new_task(coord_connection *connection, coord_text data,
                                       coord_task **ret, coord_error *err)
{
    if (connection == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "new task: connection and ret are required");
    }
    coord_status rc = coordi_check_fork(connection->master->loop, "new task", err);
    if (rc == COORD_OK && data.len > 0) {
        rc = coordi_json_check(data, err);
    }
    return rc == COORD_OK ? coordi_task_create(connection, data, ret, err) : rc;
}

/* ---- the end ---- */

static void run_destroy(coordi_job *job)
{
    coord_connection *c = COORDI_ITEM(job, coord_connection, destroy_job);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "connection '%s': destroyed", c->id);
    coordi_connection_drop(c, &why);
    coordi_connection_unref(c);
}

void coord_connection_destroy(coord_connection *connection)
{
    if (connection == NULL ||
        coordi_stays_behind(connection->master->loop, &connection->destroy_job.link)) {
        return;
    }
    connection->destroy_job.run = run_destroy;
    coordi_post(connection->master->loop, &connection->destroy_job);
}
