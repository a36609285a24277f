/* How the public calls of a coordinator are made: each becomes an op on its loop. */
#ifndef COORDI_COORDINATOR_CALL_H
#define COORDI_COORDINATOR_CALL_H

#include "coordinator/coordinator.h"

/* An op that is about a task, worker or buffer. */
typedef struct coordi_name_op {
    coordi_op op;
    char *name; /* owned; NULL: none */
} coordi_name_op;

/* Checks that the call may wait, and makes its op, of `size` bytes, with a reference of c
 * as its object. `owner` NULL: it needs the loop alone. NULL: *status and *err say why.
 */
void *coordi_call_make(CommCoordinator *c, size_t size, void (*run)(coordi_op *),
                       bool waits, const void *owner, const char *what, coord_error *err,
                       coord_status *status);
coordi_name_op *coordi_call_make_named(CommCoordinator *c, void (*run)(coordi_op *),
                                       const char *name, bool waits, const char *what,
                                       coord_error *err, coord_status *status);

/* Waits for it, and lets go of it. */
coord_status coordi_call_finish(coordi_op *op, int64_t wait_ms, const char *what,
                                coord_error *err);

/* What an op's `release` ends with, when it has one of its own. */
void coordi_call_release(coordi_op *op);

#endif
