#include "base/error.h"
#include "service/launcher.h"

typedef struct start_op {
    coordi_op op;
    coordi_order order;
    int64_t pid;
} start_op;

static void release_start(coordi_op *op)
{
    coordi_order_done(&((start_op *)op)->order);
    coordi_launcher_release(op);
}

/* Lets go of the child that had the name before, or NULL. */
static void replace_child(coord_launcher *launcher, coordi_child *old)
{
    if (old == NULL) {
        return;
    }
    if (old->done) {
        coordi_list_remove(&old->link);
        launcher->record_count--;
    }
    coordi_child_unref(old);
}

static coord_status check_start(const coord_launcher *launcher, const coordi_child *old,
                                const char *name, coord_error *err)
{
    if (launcher->closing) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "launcher: closed, '%.200s' is not started", name);
    }
    if (old != NULL && old->process != NULL) {
        return coordi_fail(err, COORD_ERR_EXISTS,
                           "launcher: '%.200s' runs as process %lld", name,
                           (long long)old->pid);
    }
    return COORD_OK;
}

/* The name is entered first, so that nothing can fail once the process runs. */
static coord_status start(coord_launcher *launcher, start_op *call, coord_error *err)
{
    coordi_child *old = coordi_map_get(&launcher->by_name, call->order.name);
    coord_status rc = check_start(launcher, old, call->order.name, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_child *child = coordi_child_create(&call->order);
    if (child == NULL) {
        return coordi_fail_nomem(err, "launcher");
    }
    if (!coordi_map_put(&launcher->by_name, child->name, child)) {
        coordi_child_unref(child);
        return coordi_fail_nomem(err, "launcher");
    }
    rc = coordi_child_start(child, launcher, &call->order, err);
    if (rc == COORD_OK) {
        call->pid = child->pid;
        replace_child(launcher, old);
        return COORD_OK;
    }
    if (old != NULL) { /* replacing never fails */
        (void)coordi_map_put(&launcher->by_name, child->name, old);
    } else {
        (void)coordi_map_remove(&launcher->by_name, child->name);
    }
    coordi_child_unref(child);
    return rc;
}

static void run_start(coordi_op *op)
{
    coord_error err;
    if (atomic_load(&op->refs) == 1) { /* the caller has been told that it timed out */
        coordi_op_finish(op, COORD_ERR_TIMEOUT, NULL);
        return;
    }
    coord_status rc = start(op->object, (start_op *)op, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status coord_launcher_start(coord_launcher *launcher,
                                  const coord_launcher_spec *spec, int64_t *pid,
                                  coord_error *err)
{
    coord_status rc =
        coordi_launcher_check_call(launcher, true, NULL, "launcher start", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (spec == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "launcher start: spec is NULL");
    }
    start_op *call = coordi_launcher_op(launcher, sizeof *call, run_start, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    call->op.release = release_start;
    rc = coordi_order_init(&call->order, launcher->loop, spec, err);
    if (rc != COORD_OK) {
        coordi_op_discard(&call->op);
        return rc;
    }
    rc = coordi_op_wait(&call->op, COORDI_OP_PATIENCE_MS, "launcher start", err);
    if (rc == COORD_OK && pid != NULL) {
        *pid = call->pid;
    }
    coordi_op_unref(&call->op);
    return rc;
}
