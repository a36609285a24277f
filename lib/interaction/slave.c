#include "interaction/slave.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "env/op.h"
#include "interaction/endpoint.h"

#include <stdio.h>
#include <string.h>

enum { HEARTBEAT_MIN_MS = 200 }; /* DI-engine's MIN_HEARTBEAT_SPAN */

void coord_slave_options_init(coord_slave_options *options, size_t size)
{
    static const coord_slave_options DEFAULTS = {
        .size = sizeof DEFAULTS,
        .host = "127.0.0.1",
        .heartbeat_ms = 3000,
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

static coord_status check_options(const coord_slave_options *o, coord_error *err)
{
    if (o->host == NULL || o->host[0] == '\0' || strlen(o->host) >= COORDI_HOST_SIZE) {
        return coordi_fail(err, COORD_ERR_ARG, "slave: host must have 1 to 255 bytes");
    }
    if (o->process_task == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "slave: process_task is required");
    }
    if (o->heartbeat_ms < HEARTBEAT_MIN_MS || o->request_timeout_ms < 1 ||
        o->request_retry_wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "slave: heartbeat_ms (%lld) must be at least %d, "
                           "request_timeout_ms (%lld) at least 1, request_retry_wait_ms "
                           "(%lld) at least 0",
                           (long long)o->heartbeat_ms, HEARTBEAT_MIN_MS,
                           (long long)o->request_timeout_ms,
                           (long long)o->request_retry_wait_ms);
    }
    if (o->max_body_bytes == 0 || o->max_inflight_bytes < o->max_body_bytes) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "slave: max_body_bytes (%zu) must be at least 1 and "
                           "max_inflight_bytes (%zu) no less",
                           o->max_body_bytes, o->max_inflight_bytes);
    }
    return coordi_endpoint_check_host(o->host, o->insecure, "slave", err);
}

/* ---- life ---- */

coord_slave *coordi_slave_ref(coord_slave *slave)
{
    atomic_fetch_add(&slave->refs, 1);
    return slave;
}

void coordi_slave_unref(coord_slave *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    if (s->release != NULL) {
        s->release(s->release_user);
    }
    coordi_loop_unref(s->loop);
    coordi_free(s);
}

static void run_lost(coordi_job *job);

static void init_fields(coord_slave *s, coord_loop *loop, const coord_slave_options *o)
{
    atomic_init(&s->refs, 1);
    atomic_init(&s->connected, false);
    atomic_init(&s->canceled, false);
    s->loop = coordi_loop_ref(loop);
    s->options = *o;
    s->options.host = NULL; /* the text is in our own field */
    s->options.loop = NULL;
    (void)snprintf(s->host, sizeof s->host, "%s", o->host);
    s->log = (coordi_log){o->log, o->user, o->log_level, "slave"};
    s->patience = (coordi_patience){o->request_timeout_ms, o->request_retry_wait_ms,
                                    o->request_retries};
    s->lost_job.run = run_lost;
    coordi_list_init(&s->asks);
    coordi_list_init(&s->deliveries);
    coordi_list_init(&s->await_close);
    coordi_endpoint_new_token(loop, s->token);
}

/* Deaf and dumb; what runs may end. Idempotent. */
static void shut(coord_slave *s)
{
    s->closing = true;
    coordi_slave_unlink(s, NULL);
    coordi_slave_drop_asks(s);
    coordi_slave_forget_last(s);
    if (s->work != NULL) {
        atomic_store(&s->canceled, true);
    }
    if (s->server != NULL) {
        s->loop->env->server_destroy(s->server);
        s->server = NULL;
    }
    coordi_lane_close(s->ask_lane);
    coordi_lane_close(s->work_lane);
    s->ask_lane = NULL;
    s->work_lane = NULL;
    coordi_executor_destroy(s->executor);
    s->executor = NULL;
}

static coord_status open_lanes(coord_slave *s, coord_error *err)
{
    const coord_slave_options *o = &s->options;
    coord_status rc = coordi_executor_create(s->loop, o->executor, o->executor_threads,
                                             &s->executor, err);
    if (rc == COORD_OK) {
        rc = coordi_lane_open(s->executor, &s->work_lane, err);
    }
    bool hooks = o->on_connect != NULL || o->on_disconnect != NULL ||
                 o->on_task != NULL || o->on_lost != NULL;
    if (rc == COORD_OK && hooks) {
        rc = coordi_lane_open(s->executor, &s->ask_lane, err);
    }
    return rc;
}

typedef struct create_op {
    coordi_op op;
    const coord_slave_options *options;
    void *process_user;
    coord_slave **ret; /* written before the first callback can run */
    bool owns_loop;
} create_op;

static coord_status create_on_loop(coord_loop *loop, const create_op *create,
                                   coord_error *err)
{
    coord_slave *s = coordi_zalloc(sizeof *s);
    if (s == NULL) {
        return coordi_fail_nomem(err, "slave");
    }
    init_fields(s, loop, create->options);
    s->owns_loop = create->owns_loop;
    s->process_user = create->process_user;
    coordi_http_server_spec spec = {
        .host = s->host,
        .port = create->options->port,
        .max_body_bytes = create->options->max_body_bytes,
        .max_inflight_bytes = create->options->max_inflight_bytes,
        .on_call = coordi_slave_on_call,
        .arg = s,
    };
    coord_status rc = open_lanes(s, err);
    if (rc == COORD_OK) {
        rc = loop->env->server_create(loop, &spec, &s->server, err);
    }
    if (rc != COORD_OK) {
        shut(s);
        coordi_slave_unref(s);
        return rc;
    }
    s->port = loop->env->server_port(s->server);
    *create->ret = s;
    COORDI_LOG(&s->log, COORD_LOG_INFO, "listening host=%s port=%u", s->host,
               (unsigned)s->port);
    return COORD_OK;
}

static void run_create(coordi_op *op)
{
    coord_error err;
    coord_status rc = create_on_loop(op->loop, (create_op *)op, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status coord_slave_create(const coord_slave_options *options, coord_slave **ret,
                                coord_error *err)
{
    if (options == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "slave: options and ret are required");
    }
    return coordi_slave_create(options, options->user, ret, err);
}

coord_status coordi_slave_create(const coord_slave_options *options, void *process_user,
                                 coord_slave **ret, coord_error *err)
{
    coord_slave_options ours;
    coord_slave_options_init(&ours, sizeof ours);
    coord_status rc =
        coordi_options_adopt(&ours, sizeof ours, options, "coord_slave_options", err);
    if (rc == COORD_OK) {
        rc = check_options(&ours, err);
    }
    coord_loop *loop;
    if (rc == COORD_OK) {
        rc = coordi_loop_take(ours.loop, &loop, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    create_op *op = coordi_op_create(loop, sizeof *op, run_create, NULL, err);
    rc = COORD_ERR_NOMEM;
    if (op != NULL) {
        op->op.borrows = true;
        op->options = &ours;
        op->process_user = process_user;
        op->ret = ret;
        op->owns_loop = ours.loop == NULL;
        rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "slave", err);
        coordi_op_unref(&op->op);
    }
    if (ours.loop != NULL) {
        coordi_loop_unref(loop);
    } else if (rc != COORD_OK) {
        coordi_loop_retire(loop);
    }
    return rc;
}

uint16_t coord_slave_port(const coord_slave *slave)
{
    return slave == NULL ? 0 : slave->port;
}

const char *coord_slave_host(const coord_slave *slave)
{
    return slave == NULL ? NULL : slave->host;
}

bool coord_slave_is_connected(const coord_slave *slave)
{
    return slave != NULL && atomic_load(&slave->connected);
}

bool coord_slave_task_canceled(const coord_slave *slave)
{
    return slave != NULL && atomic_load(&slave->canceled);
}

/* ---- on_lost ---- */

static void finish_lost(coordi_job *job)
{
    coord_slave *s = COORDI_ITEM(job, coord_slave, lost_job);
    s->lost_pending = false;
    s->lost_job.run = run_lost;
    coordi_slave_check_closed(s);
    coordi_slave_unref(s);
}

/* On the ask lane. */
static void run_lost(coordi_job *job)
{
    coord_slave *s = COORDI_ITEM(job, coord_slave, lost_job);
    coordi_frame frame;
    coordi_frame_enter(&frame, s);
    s->options.on_lost(s, &s->lost_why, s->options.user);
    coordi_frame_leave(&frame);
    s->lost_job.run = finish_lost;
    coordi_post(s->loop, &s->lost_job);
}

/* ---- closing ---- */

void coordi_slave_check_closed(coord_slave *s)
{
    if (s->work == NULL && s->asking == NULL && !s->lost_pending) {
        coordi_op_finish_all(&s->await_close, COORD_OK, NULL);
    }
}

static void release_slave(coordi_op *op)
{
    coordi_slave_unref(op->object);
}

static void run_close(coordi_op *op)
{
    coord_slave *s = op->object;
    coordi_op_await(op, &s->await_close);
    shut(s);
    coordi_slave_check_closed(s);
}

coord_status coord_slave_close(coord_slave *slave, int64_t wait_ms, coord_error *err)
{
    if (slave == NULL || wait_ms < 1) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "slave close: needs a slave and a time of at least 1 ms");
    }
    coord_status rc = coordi_check_fork(slave->loop, "slave close", err);
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(slave->loop, slave, "slave close", err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_op *op = coordi_op_create(slave->loop, sizeof *op, run_close,
                                     coordi_slave_ref(slave), err);
    if (op == NULL) {
        coordi_slave_unref(slave);
        return COORD_ERR_NOMEM;
    }
    op->release = release_slave;
    rc = coordi_op_wait(op, wait_ms, "slave close", err);
    coordi_op_unref(op);
    return rc;
}

static void run_destroy(coordi_job *job)
{
    coord_slave *s = COORDI_ITEM(job, coord_slave, destroy_job);
    shut(s);
    coordi_op_finish_all(&s->await_close, COORD_OK, NULL);
    coordi_slave_unref(s);
}

void coord_slave_destroy(coord_slave *slave)
{
    coordi_slave_destroy_with(slave, NULL, NULL);
}

void coordi_slave_destroy_with(coord_slave *slave, void (*release)(void *user),
                               void *user)
{
    if (slave == NULL || coordi_stays_behind(slave->loop, &slave->destroy_job.link)) {
        return;
    }
    coord_loop *loop = slave->loop;
    bool owns_loop = slave->owns_loop;
    slave->release = release;
    slave->release_user = user;
    slave->destroy_job.run = run_destroy;
    coordi_post(loop, &slave->destroy_job);
    if (owns_loop) {
        coordi_loop_retire(loop);
    }
}
