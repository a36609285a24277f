#include "service/operator_server.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "env/op.h"

/* The public face: calls that wait. The inside is on the loop (operator_run.c). */

enum { BEYOND_MS = 2000 }; /* for the loop to tell what became of a call in its time */

static const int64_t LONGEST_MS = (int64_t)1 << 40;

struct coord_operator_server {
    atomic_size_t refs;
    coord_loop *loop;
    bool owns_loop;
    char name_space[COORD_ID_SIZE];
    coordi_job destroy_job;

    /* The loop's. */
    coordi_operator *inside; /* NULL: it is destroyed */
    coordi_link waiting;     /* ops */
};

static void unref(coord_operator_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) == 1) {
        coordi_loop_unref(server->loop);
        coordi_free(server);
    }
}

/* ---- create ---- */

typedef struct create_op {
    coordi_op op;
    const coordi_operator_settings *settings;
    const coordi_log *log;
    coord_operator_server *made;
} create_op;

static coord_status make(create_op *call, coord_error *err)
{
    coord_operator_server *server = coordi_zalloc(sizeof *server);
    if (server == NULL) {
        return coordi_fail_nomem(err, "operator server");
    }
    const coord_status rc = coordi_operator_create(call->op.loop, call->settings,
                                                   call->log, &server->inside, err);
    if (rc != COORD_OK) {
        coordi_free(server);
        return rc;
    }
    atomic_init(&server->refs, 1);
    server->loop = coordi_loop_ref(call->op.loop);
    memcpy(server->name_space, call->settings->name_space, sizeof server->name_space);
    coordi_list_init(&server->waiting);
    call->made = server;
    return COORD_OK;
}

static void run_create(coordi_op *op)
{
    coord_error err;
    const coord_status rc = make((create_op *)op, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

static coord_status create_on(coord_loop *loop, const coord_operator_server_options *o,
                              coord_operator_server **ret, coord_error *err)
{
    coordi_operator_settings settings;
    const coordi_log log = {o->log, o->user, o->log_level, "operator_server"};
    coord_status rc = coordi_operator_settings_read(&settings, loop, o, err);
    if (rc != COORD_OK) {
        return rc;
    }
    create_op *call = coordi_op_create(loop, sizeof *call, run_create, NULL, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    call->op.borrows = true;
    call->settings = &settings;
    call->log = &log;
    rc = coordi_op_wait(&call->op, COORDI_OP_PATIENCE_MS, "operator server create", err);
    if (rc == COORD_OK) {
        *ret = call->made;
    }
    coordi_op_unref(&call->op);
    return rc;
}

coord_status coord_operator_server_create(const coord_operator_server_options *options,
                                          coord_operator_server **ret, coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: no place for the result");
    }
    coord_operator_server_options ours;
    coord_operator_server_options_init(&ours, sizeof ours);
    coord_status rc = COORD_OK;
    if (options != NULL) {
        rc = coordi_options_adopt(&ours, sizeof ours, options,
                                  "coord_operator_server_options", err);
    }
    coord_loop *loop;
    if (rc == COORD_OK) {
        rc = coordi_loop_take(ours.loop, &loop, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    rc = create_on(loop, &ours, ret, err);
    if (rc == COORD_OK) {
        (*ret)->owns_loop = ours.loop == NULL;
    }
    if (ours.loop != NULL) {
        coordi_loop_unref(loop);
    } else if (rc != COORD_OK) {
        coordi_loop_retire(loop);
    }
    return rc;
}

/* ---- calls ---- */

typedef struct wait_op {
    coordi_op op;
    coordi_operator_call *call; /* until it has begun */
    /* Whoever takes it out has it: the caller, or the release after his time. */
    coord_operator_answer *_Atomic answer;
} wait_op;

static void on_done(const coordi_operator_outcome *outcome, void *arg)
{
    wait_op *wait = arg;
    atomic_store(&wait->answer, outcome->answer);
    coordi_list_remove(&wait->op.link);
    coordi_op_finish(&wait->op, outcome->status, outcome->error);
}

static void run_call(coordi_op *op)
{
    wait_op *wait = (wait_op *)op;
    coord_operator_server *server = op->object;
    if (server->inside == NULL) {
        coordi_op_finish(op, COORD_ERR_CLOSED, NULL);
        return;
    }
    coordi_list_append(&server->waiting, &op->link);
    coordi_operator_call_begin(server->inside, wait->call);
    wait->call = NULL;
}

static void release_wait(coordi_op *op)
{
    wait_op *wait = (wait_op *)op;
    coordi_operator_call_free(wait->call);
    coord_operator_answer_destroy(atomic_exchange(&wait->answer, NULL));
    unref(op->object);
}

static coord_status check(const coord_operator_server *server, int64_t wait_ms,
                          coord_operator_answer **ret, const char *what, coord_error *err)
{
    if (server == NULL || ret == NULL || wait_ms < 1) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: needs a server, a time of at least 1 ms and a place for "
                           "the answer",
                           what);
    }
    *ret = NULL;
    const coord_status rc = coordi_check_fork(server->loop, what, err);
    return rc == COORD_OK ? coordi_check_may_wait(server->loop, NULL, what, err) : rc;
}

static coord_status run(coord_operator_server *server, coordi_operator_spec *spec,
                        int64_t wait_ms, const char *what, coord_operator_answer **ret,
                        coord_error *err)
{
    coord_status rc = check(server, wait_ms, ret, what, err);
    if (rc != COORD_OK) {
        return rc;
    }
    wait_op *wait = coordi_op_create(server->loop, sizeof *wait, run_call, server, err);
    if (wait == NULL) {
        return COORD_ERR_NOMEM;
    }
    (void)atomic_fetch_add(&server->refs, 1);
    wait->op.release = release_wait;
    spec->wait_ms = wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS;
    spec->retry = true;
    spec->done = on_done;
    spec->arg = wait;
    rc = coordi_operator_call_create(spec, server->name_space, &wait->call, err);
    if (rc != COORD_OK) {
        coordi_op_discard(&wait->op);
        return rc;
    }
    rc = coordi_op_wait(&wait->op, spec->wait_ms + BEYOND_MS, what, err);
    *ret = atomic_exchange(&wait->answer, NULL);
    coordi_op_unref(&wait->op);
    return rc;
}

coord_status coord_operator_server_get(coord_operator_server *server, int64_t wait_ms,
                                       coord_operator_answer **ret, coord_error *err)
{
    coordi_operator_spec spec = {.kind = COORDI_OPERATOR_GET};
    return run(server, &spec, wait_ms, "operator server get", ret, err);
}

coord_status coord_operator_server_post(coord_operator_server *server,
                                        const coord_operator_request *request,
                                        int64_t wait_ms, coord_operator_answer **ret,
                                        coord_error *err)
{
    coordi_operator_spec spec = {.kind = COORDI_OPERATOR_POST, .request = request};
    return run(server, &spec, wait_ms, "operator server post", ret, err);
}

coord_status coord_operator_server_delete(coord_operator_server *server,
                                          const coord_operator_request *request,
                                          int64_t wait_ms, coord_operator_answer **ret,
                                          coord_error *err)
{
    coordi_operator_spec spec = {.kind = COORDI_OPERATOR_DELETE, .request = request};
    return run(server, &spec, wait_ms, "operator server delete", ret, err);
}

coord_status coord_operator_server_failed(coord_operator_server *server,
                                          const char *const *names, size_t count,
                                          int64_t wait_ms, coord_operator_answer **ret,
                                          coord_error *err)
{
    coordi_operator_spec spec = {
        .kind = COORDI_OPERATOR_FAILED, .names = names, .name_count = count};
    return run(server, &spec, wait_ms, "operator server failed", ret, err);
}

/* ---- destroy ---- */

static void run_destroy(coordi_job *job)
{
    coord_operator_server *server = COORDI_ITEM(job, coord_operator_server, destroy_job);
    coordi_operator_destroy(server->inside);
    server->inside = NULL;
    coordi_op_finish_all(&server->waiting, COORD_ERR_CLOSED, NULL);
    unref(server);
}

void coord_operator_server_destroy(coord_operator_server *server)
{
    if (server == NULL || coordi_stays_behind(server->loop, &server->destroy_job.link)) {
        return;
    }
    coord_loop *loop = server->loop;
    const bool owns_loop = server->owns_loop;
    server->destroy_job.run = run_destroy;
    coordi_post(loop, &server->destroy_job);
    if (owns_loop) {
        coordi_loop_retire(loop);
    }
}
