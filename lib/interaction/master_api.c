/* The public face of masters, and how they close. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "env/op.h"
#include "interaction/master.h"

#include <string.h>

void coord_master_options_init(coord_master_options *options, size_t size)
{
    static const coord_master_options DEFAULTS = {
        .size = sizeof DEFAULTS,
        .host = "127.0.0.1",
        .heartbeat_tolerance_ms = 17000,
        .heartbeat_check_ms = 1000,
        .request_timeout_ms = 10000,
        .request_retry_wait_ms = 1000,
        .request_retries = 5,
        .executor = COORD_EXECUTOR_PER_TASK,
        .executor_threads = 4,
        .max_body_bytes = (size_t)16 << 20,
        .max_inflight_bytes = (size_t)256 << 20,
        .log_level = COORD_LOG_INFO,
    };
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- creation ---- */

typedef struct create_op {
    coordi_op op;
    const coord_master_options *options;
    coord_master *made;
} create_op;

static void run_create(coordi_op *op)
{
    create_op *create = (create_op *)op;
    coord_error err;
    coord_status rc =
        coordi_master_create(op->loop, create->options, &create->made, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status coord_master_create(const coord_master_options *options, coord_master **ret,
                                 coord_error *err)
{
    if (options == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "master: options and ret are required");
    }
    coord_master_options ours;
    coord_master_options_init(&ours, sizeof ours);
    coord_status rc =
        coordi_options_adopt(&ours, sizeof ours, options, "coord_master_options", err);
    if (rc != COORD_OK) {
        return rc;
    }
    coord_loop *loop;
    rc = coordi_loop_take(ours.loop, &loop, err);
    if (rc != COORD_OK) {
        return rc;
    }
    create_op *op = coordi_op_create(loop, sizeof *op, run_create, NULL, err);
    rc = op == NULL ? COORD_ERR_NOMEM : COORD_OK;
    if (op != NULL) {
        op->op.borrows = true;
        op->options = &ours;
        rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "master", err);
    }
    if (rc == COORD_OK) {
        op->made->owns_loop = ours.loop == NULL;
        *ret = op->made;
    }
    if (op != NULL) {
        coordi_op_unref(&op->op);
    }
    if (ours.loop != NULL) {
        coordi_loop_unref(loop);
    } else if (rc != COORD_OK) {
        coordi_loop_retire(loop);
    }
    return rc;
}

uint16_t coord_master_port(const coord_master *master)
{
    return master == NULL ? 0 : master->port;
}

const char *coord_master_host(const coord_master *master)
{
    return master == NULL ? NULL : master->host;
}

/* ---- ping ---- */

typedef struct ping_op {
    coordi_op op;
    coordi_http_peer *peer;
    int64_t timeout_ms;
} ping_op;

static void on_pong(const coordi_outcome *outcome, void *arg)
{
    ping_op *ping = arg;
    ping->op.loop->env->peer_destroy(ping->peer);
    coordi_op_finish(&ping->op, outcome->status, outcome->error);
}

static void run_ping(coordi_op *op)
{
    ping_op *ping = (ping_op *)op;
    coord_master *m = op->object;
    coordi_address address = {.port = m->port};
    bool any4 = strcmp(m->host, "0.0.0.0") == 0;
    bool any6 = strcmp(m->host, "::") == 0;
    const char *host = any4 ? "127.0.0.1" : any6 ? "::1" : m->host;
    memcpy(address.host, host, strlen(host) + 1);
    coordi_http_header token = {"Token", m->token};
    coord_error err;
    coord_status rc =
        op->loop->env->peer_create(op->loop, &address, &token, 1, &ping->peer, &err);
    if (rc == COORD_OK) {
        coordi_exchange *exchange;
        coordi_exchange_spec spec = {
            .method = "GET",
            .path = "/ping",
            .what = "ping of the master to itself",
            .patience = {ping->timeout_ms, 0, 0},
            .fresh = true,
            .done = on_pong,
            .arg = ping,
        };
        spec.body = coordi_wire_nothing(&spec.body_len);
        rc = coordi_exchange_start(op->loop, ping->peer, &spec, &exchange, &err);
        if (rc != COORD_OK) {
            op->loop->env->peer_destroy(ping->peer);
        }
    }
    if (rc != COORD_OK) {
        coordi_op_finish(op, rc, &err);
    }
}

static void release_master(coordi_op *op)
{
    coordi_master_unref(op->object);
}

coord_status coord_master_ping(coord_master *master, int64_t wait_ms, coord_error *err)
{
    if (master == NULL || wait_ms < 1) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "ping: needs a master and a time of at least 1 ms");
    }
    coord_status rc = coordi_check_fork(master->loop, "ping", err);
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(master->loop, NULL, "ping", err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    ping_op *op = coordi_op_create(master->loop, sizeof *op, run_ping,
                                   coordi_master_ref(master), err);
    if (op == NULL) {
        coordi_master_unref(master);
        return COORD_ERR_NOMEM;
    }
    op->op.release = release_master;
    op->timeout_ms = wait_ms;
    rc = coordi_op_wait(&op->op, wait_ms, "ping", err);
    coordi_op_unref(&op->op);
    return rc;
}

/* ---- callbacks of the host ---- */

static void run_idle(coordi_job *job)
{
    coord_master *m = COORDI_ITEM(job, coord_master, idle_job);
    coordi_master_check_closed(m);
    coordi_master_unref(m);
}

void coordi_master_call_host(coord_master *master, coordi_lane *lane, coordi_job *job)
{
    atomic_fetch_add(&master->callbacks, 1);
    coordi_lane_run(lane, job);
}

void coordi_master_enter_callback(coord_master *master, coordi_frame *frame)
{
    coordi_frame_enter(frame, master);
}

void coordi_master_leave_callback(coord_master *master, coordi_frame *frame)
{
    coordi_frame_leave(frame);
    if (atomic_fetch_sub(&master->callbacks, 1) == 1 &&
        atomic_exchange(&master->close_waits, false)) {
        master->idle_job.run = run_idle;
        coordi_post(coordi_master_ref(master)->loop, &master->idle_job);
    }
}

/* ---- closing ---- */

/* Finishes the close when the last connection and the last callback are gone. Whoever is
 * last, a connection here or a callback in leave, comes back here. */
void coordi_master_check_closed(coord_master *m)
{
    if (coordi_list_empty(&m->await_close) || m->by_id.count > 0) {
        return;
    }
    atomic_store(&m->close_waits, true);
    if (atomic_load(&m->callbacks) > 0 || !atomic_exchange(&m->close_waits, false)) {
        return; /* the last callback posts the idle job */
    }
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the master was closed");
    coordi_timer_stop(m->loop, &m->close_deadline);
    coordi_master_shut(m, &why);
    coordi_op_finish_all(&m->await_close, COORD_OK, NULL);
}

static void on_close_deadline(coordi_timer *timer)
{
    coord_master *m = COORDI_ITEM(timer, coord_master, close_deadline);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the master was closed");
    for (size_t at = 0;;) {
        coord_connection *c = coordi_map_next(&m->by_id, &at);
        if (c == NULL) {
            break;
        }
        coordi_connection_drop(c, &why);
    }
    coordi_master_check_closed(m);
}

typedef struct close_op {
    coordi_op op;
    int64_t wait_ms;
} close_op;

static void run_close(coordi_op *op)
{
    coord_master *m = op->object;
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the master was closed");

    /* Slaves are heard until they are gone: an error would end a Python slave's threads.
     * The op may be finished, and gone, as soon as the first of them is. */
    m->closing = true;
    m->close_deadline.fire = on_close_deadline;
    coordi_timer_in(m->loop, &m->close_deadline, ((close_op *)op)->wait_ms / 4 * 3);
    coordi_op_await(op, &m->await_close);
    for (size_t at = 0;;) {
        coord_connection *c = coordi_map_next(&m->by_id, &at);
        if (c == NULL) {
            break;
        }
        bool idle =
            c->state == COORDI_CONNECTION_CONNECTED && coordi_list_empty(&c->tasks);
        if (c->state == COORDI_CONNECTION_DISCONNECTING ||
            (idle && coordi_connection_disconnect(c, (coord_text){NULL, 0}, NULL, NULL,
                                                  NULL) == COORD_OK)) {
            continue;
        }
        coordi_connection_drop(c, &why);
    }
    coordi_master_check_closed(m);
}

coord_status coord_master_close(coord_master *master, int64_t wait_ms, coord_error *err)
{
    if (master == NULL || wait_ms < 1) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "master close: needs a master and a time of at least 1 ms");
    }
    coord_status rc = coordi_check_fork(master->loop, "master close", err);
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(master->loop, master, "master close", err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    close_op *op = coordi_op_create(master->loop, sizeof *op, run_close,
                                    coordi_master_ref(master), err);
    if (op == NULL) {
        coordi_master_unref(master);
        return COORD_ERR_NOMEM;
    }
    op->op.release = release_master;
    op->wait_ms = wait_ms;
    rc = coordi_op_wait(&op->op, wait_ms, "master close", err);
    coordi_op_unref(&op->op);
    return rc;
}

static void run_destroy(coordi_job *job)
{
    coord_master *m = COORDI_ITEM(job, coord_master, destroy_job);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the master was destroyed");
    coordi_timer_stop(m->loop, &m->close_deadline);
    coordi_master_shut(m, &why);
    coordi_op_finish_all(&m->await_close, COORD_OK, NULL);
    coordi_master_unref(m);
}

void coord_master_destroy(coord_master *master)
{
    if (master == NULL || coordi_stays_behind(master->loop, &master->destroy_job.link)) {
        return;
    }
    coord_loop *loop = master->loop;
    bool owns_loop = master->owns_loop;
    master->destroy_job.run = run_destroy;
    coordi_post(loop, &master->destroy_job);
    if (owns_loop) {
        coordi_loop_retire(loop);
    }
}
