/* Draining: no task comes any more, and those that are there go to their ends. */
#include "base/error.h"
#include "coordinator/call.h"

typedef struct drain_op {
    coordi_op op;
    bool waits;
} drain_op;

static void run_drain(coordi_op *op)
{
    CommCoordinator *c = op->object;
    coord_error err;
    if (c->phase < COORDI_PHASE_RUNNING) {
        (void)coordi_fail(&err, COORD_ERR_STATE, "drain: the coordinator is not started");
        coordi_op_finish(op, COORD_ERR_STATE, &err);
        return;
    }
    if (!c->draining) {
        c->draining = true;
        COORDI_LOG(&c->log, COORD_LOG_INFO, "drains tasks=%zu", c->runs.count);
    }
    if (c->runs.count == 0) {
        coordi_op_finish(op, COORD_OK, NULL);
    } else if (((drain_op *)op)->waits) {
        coordi_op_await(op, &c->await_empty);
    } else {
        coordi_op_finish(op, COORD_ERR_TIMEOUT, NULL);
    }
}

coord_status comm_coordinator_drain(CommCoordinator *c, int64_t wait_ms, coord_error *err)
{
    if (wait_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "drain: wait_ms must be 0 or more, got %lld",
                           (long long)wait_ms);
    }
    bool waits = wait_ms > 0;
    coord_status rc;
    drain_op *op =
        coordi_call_make(c, sizeof *op, run_drain, waits, c, "drain", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->waits = waits;
    rc = coordi_op_wait(&op->op, waits ? wait_ms : COORDI_OP_PATIENCE_MS, "drain", err);
    if (rc == COORD_ERR_TIMEOUT) {
        (void)coordi_fail(err, rc, "drain: %zu tasks are left after %lld ms",
                          atomic_load(&c->tasks), (long long)wait_ms);
    }
    coordi_op_unref(&op->op); /* which may be what holds a destroyed coordinator */
    return rc;
}
