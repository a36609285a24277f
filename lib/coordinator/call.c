#include "coordinator/call.h"

#include "base/alloc.h"
#include "base/error.h"

void coordi_call_release(coordi_op *op)
{
    coordi_coordinator_unref(op->object);
}

void *coordi_call_make(CommCoordinator *c, size_t size, void (*run)(coordi_op *),
                       bool waits, const void *owner, const char *what, coord_error *err,
                       coord_status *status)
{
    if (c == NULL) {
        *status = coordi_fail(err, COORD_ERR_ARG, "%s: the coordinator is NULL", what);
        return NULL;
    }
    *status = coordi_check_fork(c->loop, what, err);
    if (*status == COORD_OK && waits) {
        *status = coordi_check_may_wait(c->loop, owner, what, err);
    }
    if (*status != COORD_OK) {
        return NULL;
    }
    coordi_op *op = coordi_op_create(c->loop, size, run, coordi_coordinator_ref(c), err);
    if (op == NULL) {
        coordi_coordinator_unref(c);
        *status = COORD_ERR_NOMEM;
        return NULL;
    }
    op->release = coordi_call_release;
    return op;
}

coord_status coordi_call_finish(coordi_op *op, int64_t wait_ms, const char *what,
                                coord_error *err)
{
    coord_status rc = coordi_op_wait(op, wait_ms, what, err);
    coordi_op_unref(op);
    return rc;
}

static void release_name(coordi_op *op)
{
    coordi_free(((coordi_name_op *)op)->name);
    coordi_call_release(op);
}

coordi_name_op *coordi_call_make_named(CommCoordinator *c, void (*run)(coordi_op *),
                                       const char *name, bool waits, const char *what,
                                       coord_error *err, coord_status *status)
{
    coordi_name_op *op =
        coordi_call_make(c, sizeof *op, run, waits, c, what, err, status);
    if (op == NULL) {
        return NULL;
    }
    op->op.release = release_name;
    op->name = name == NULL ? NULL : coordi_strdup(name);
    if (name != NULL && op->name == NULL) {
        coordi_op_discard(&op->op);
        *status = coordi_fail_nomem(err, what);
        return NULL;
    }
    return op;
}
