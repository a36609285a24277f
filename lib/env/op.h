/* A call from any thread that is carried out on the loop, and that the caller may wait
 * for.
 *
 * The caller makes an op, fills in what it needs, and runs it. On the loop, op->run()
 * finishes it at once or links it into a list of waiters to finish it later. A caller
 * whose deadline passes goes away; the op lives on until it is finished. One that borrows
 * is not run any more then; while it runs, its caller stays. One that can be revoked has
 * no effect any more then, unless the loop has claimed it; if so, its caller stays. */
#ifndef COORDI_ENV_OP_H
#define COORDI_ENV_OP_H

#include "env/env.h"

typedef struct coordi_op coordi_op;
struct coordi_op {
    coordi_job job;
    coordi_link link; /* for the list that it waits in */
    coord_loop *loop;
    coordi_event *event; /* NULL while nobody waits */
    atomic_int refs;     /* the caller's and the loop's */
    bool borrows;        /* run uses memory of the caller, and finishes at once */
    bool revocable;      /* coordi_op_claim() comes before anything that lasts */
    atomic_bool taken;   /* of those: by run or claim, or by a caller who gives up */
    bool finished;       /* loop thread only */
    coord_status status; /* written by finish, read after the event */
    coord_error error;
    void *object;                   /* whatever run needs */
    void (*run)(coordi_op *op);     /* on the loop; may fail the op */
    void (*release)(coordi_op *op); /* optional: frees what a larger struct owns */
};

/* `size` bytes that begin with an op, all else zero; NULL and *err when memory is out. */
void *coordi_op_create(coord_loop *loop, size_t size, void (*run)(coordi_op *op),
                       void *object, coord_error *err);

/* Gives it up unrun. */
void coordi_op_discard(coordi_op *op);

/* Runs it on the loop and waits for its end, at most wait_ms. On the loop thread it runs
 * at once, and must finish at once: else it is COORD_ERR_STATE. `what` names the call in
 * the error of a timeout. Keeps the caller's reference: see coordi_op_unref. */
coord_status coordi_op_wait(coordi_op *op, int64_t wait_ms, const char *what,
                            coord_error *err);

/* Of one that can be revoked: it is about to go well, and will be finished at once.
 * False: its caller has given up. Loop thread. */
bool coordi_op_claim(coordi_op *op);

/* Lets it stand in a list until it is finished. Those in there whose callers have gone
 * are finished now, so that a host which polls with short waits costs nothing. Loop
 * thread. */
void coordi_op_await(coordi_op *op, coordi_link *head);

/* The end of it; once. err may be NULL. Loop thread. */
void coordi_op_finish(coordi_op *op, coord_status status, const coord_error *err);

/* Finishes all ops that are linked through their `link`. Loop thread. */
void coordi_op_finish_all(coordi_link *head, coord_status status, const coord_error *err);

void coordi_op_unref(coordi_op *op);

/* How long a call that only needs the loop's attention waits for it. */
enum { COORDI_OP_PATIENCE_MS = 10000 };

/* COORD_ERR_STATE when this thread must not wait for `owner`: it runs the loop, or one of
 * owner's callbacks. */
coord_status coordi_check_may_wait(const coord_loop *loop, const void *owner,
                                   const char *what, coord_error *err);

/* The host's loop with one more reference, or a new one with a thread of its own. The
 * caller lets go of it with coordi_loop_unref (a failure, or the host's) or, having
 * posted its teardown, with coordi_loop_retire. */
coord_status coordi_loop_take(coord_loop *given, coord_loop **ret, coord_error *err);

#endif
