/* A file that belongs to one owner at a time: in this process, and among all.
 *
 * It is a lock on the file "<path>-lock" beside it, which is there while the lock is: the
 * system takes it from a process that dies, and gives none to a forked child. */
#ifndef COORDI_ENV_REAL_CLAIM_H
#define COORDI_ENV_REAL_CLAIM_H

#include "coord/error.h"

typedef struct coordi_claim coordi_claim;

/* Makes the file when it is not there, for its owner's eyes only. Any thread. `what` and
 * the path open the error texts.
 *
 * COORD_ERR_BUSY: somebody has had it until the deadline. COORD_ERR_FORKED: this process
 * was forked while its parent had it. COORD_ERR_IO: all else. */
coord_status coordi_claim_take(const char *what, const char *path, int64_t deadline_ms,
                               coordi_claim **ret, coord_error *err);

/* Absolute, without links; lives as long as the claim. */
const char *coordi_claim_path(const coordi_claim *claim);

/* Gives it back; any thread. Takes NULL. */
void coordi_claim_release(coordi_claim *claim);

/* In a forked child, to which it does not belong: closes the child's descriptor. */
void coordi_claim_disown(coordi_claim *claim);

#endif
