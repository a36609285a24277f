#include "env/op.h"

#include "base/alloc.h"
#include "base/error.h"

static void run_job(coordi_job *job)
{
    coordi_op *op = COORDI_ITEM(job, coordi_op, job);
    if (op->borrows ? !coordi_op_claim(op) : op->revocable && atomic_load(&op->taken)) {
        coordi_op_unref(op); /* the caller has gone, with what was borrowed */
        return;
    }
    op->run(op);
}

void *coordi_op_create(coord_loop *loop, size_t size, void (*run)(coordi_op *op),
                       void *object, coord_error *err)
{
    coordi_op *op = coordi_zalloc(size);
    if (op == NULL) {
        (void)coordi_fail_nomem(err, "call");
        return NULL;
    }
    op->job.run = run_job;
    op->loop = coordi_loop_ref(loop);
    op->run = run;
    op->object = object;
    atomic_init(&op->refs, 2);
    atomic_init(&op->taken, false);
    return op;
}

void coordi_op_unref(coordi_op *op)
{
    if (atomic_fetch_sub(&op->refs, 1) != 1) {
        return;
    }
    if (op->release != NULL) {
        op->release(op);
    }
    if (op->event != NULL) {
        op->loop->env->event_destroy(op->event);
    }
    coordi_loop_unref(op->loop);
    coordi_free(op);
}

void coordi_op_discard(coordi_op *op)
{
    coordi_op_unref(op);
    coordi_op_unref(op);
}

bool coordi_op_claim(coordi_op *op)
{
    return !atomic_exchange(&op->taken, true);
}

void coordi_op_finish(coordi_op *op, coord_status status, const coord_error *err)
{
    op->finished = true;
    op->status = status;
    if (err != NULL) {
        op->error = *err;
    } else if (status != COORD_OK) {
        (void)coordi_fail(&op->error, status, "%s", coord_status_str(status));
    }
    if (op->event != NULL) {
        op->loop->env->event_set(op->event);
    }
    coordi_op_unref(op);
}

void coordi_op_await(coordi_op *op, coordi_link *head)
{
    coordi_link *next;
    for (coordi_link *at = head->next; at != head; at = next) {
        next = at->next;
        coordi_op *other = COORDI_ITEM(at, coordi_op, link);
        if (atomic_load(&other->refs) == 1) { /* ours: its caller has let go */
            coordi_list_remove(at);
            coordi_op_finish(other, COORD_ERR_TIMEOUT, NULL);
        }
    }
    coordi_list_append(head, &op->link);
}

void coordi_op_finish_all(coordi_link *head, coord_status status, const coord_error *err)
{
    for (coordi_link *link = coordi_list_pop(head); link != NULL;
         link = coordi_list_pop(head)) {
        coordi_op_finish(COORDI_ITEM(link, coordi_op, link), status, err);
    }
}

static coord_status outcome(const coordi_op *op, coord_error *err)
{
    if (err != NULL && op->error.text[0] != '\0') {
        *err = op->error; /* may hold a remark with COORD_OK, too */
    }
    return op->status;
}

static coord_status run_here(coordi_op *op, const char *what, coord_error *err)
{
    op->run(op);
    if (op->finished) {
        return outcome(op, err);
    }
    return coordi_fail(err, COORD_ERR_STATE, "%s: would wait on the loop thread", what);
}

coord_status coordi_op_wait(coordi_op *op, int64_t wait_ms, const char *what,
                            coord_error *err)
{
    coord_loop *loop = op->loop;
    if (coordi_inside(loop)) {
        return run_here(op, what, err);
    }
    op->event = loop->env->event_create(loop);
    if (op->event == NULL) {
        coordi_op_unref(op); /* the loop will never see it */
        return coordi_fail_nomem(err, what);
    }
    int64_t deadline = coordi_deadline(loop, wait_ms);
    coordi_post(loop, &op->job);
    if (!loop->env->event_wait(op->event, deadline)) {
        if (!(op->borrows || op->revocable) || !atomic_exchange(&op->taken, true)) {
            return coordi_fail(err, COORD_ERR_TIMEOUT, "%s: no outcome within %lld ms",
                               what, (long long)wait_ms);
        }
        (void)loop->env->event_wait(op->event, INT64_MAX); /* it ends just now */
    }
    return outcome(op, err);
}

coord_status coordi_check_may_wait(const coord_loop *loop, const void *owner,
                                   const char *what, coord_error *err)
{
    if (coordi_inside(loop)) {
        return coordi_fail(err, COORD_ERR_STATE, "%s: would wait on the loop thread",
                           what);
    }
    if (owner != NULL && coordi_frame_has(owner)) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "%s: would wait for the callback that calls it", what);
    }
    return COORD_OK;
}

coord_status coordi_loop_take(coord_loop *given, coord_loop **ret, coord_error *err)
{
    if (given == NULL) {
        return coord_loop_create(NULL, ret, err);
    }
    coord_status rc = coordi_check_fork(given, "loop", err);
    if (rc == COORD_OK) {
        *ret = coordi_loop_ref(given);
    }
    return rc;
}
