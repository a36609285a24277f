/* Filling in a coord_error: once, where the failure is seen. */
#ifndef COORDI_BASE_ERROR_H
#define COORDI_BASE_ERROR_H

#include "coord/error.h"

/* Clears *err (may be NULL), sets status and text, and returns status. A text that does
 * not fit ends in "..."; it is always one line of UTF-8, whatever a peer said. */
coord_status coordi_fail(coord_error *err, coord_status status, const char *format, ...)
    COORD_PRINTF(3, 4);

/* The same for a failed system call: COORD_ERR_IO, the errno, and its words as cause. */
coord_status coordi_fail_errno(coord_error *err, int os_errno, const char *format, ...)
    COORD_PRINTF(3, 4);

/* The same when another failure is the reason: its numbers and word are taken over, its
 * text and cause become the cause. `cause` may be NULL. */
coord_status coordi_fail_because(coord_error *err, coord_status status,
                                 const coord_error *cause, const char *format, ...)
    COORD_PRINTF(4, 5);

/* "out of memory" for the thing named. */
coord_status coordi_fail_nomem(coord_error *err, const char *what);

/* Copies a failure to a caller who may not want it; returns its status. */
coord_status coordi_fail_copy(coord_error *err, const coord_error *from);

#endif
