/* Discovery: a command, or a callback of the host, is asked again and again who is there.
 * See coord/membership.h for what it answers, and for what becomes of that.
 *
 * Never is it asked twice at a time. A command that takes too long is killed; a callback
 * can't be, so it is not asked again until it has returned. Whatever goes wrong, those
 * that were listed last stay. */
#ifndef COORDI_COORDINATOR_DISCOVERY_H
#define COORDI_COORDINATOR_DISCOVERY_H

#include "coordinator/membership.h"

/* COORD_ERR_CONFIG: there is nobody to ask. */
coord_status coordi_discovery_check(const CommCoordinator *c, coord_error *err);

/* Asks from now on, if the configuration says so. */
coord_status coordi_discovery_begin(CommCoordinator *c, coord_error *err);
/* Asks no more: a command is killed, and what a callback still brings is dropped.
 * Idempotent. */
void coordi_discovery_stop(CommCoordinator *c);
/* Stops, and frees all. Idempotent. */
void coordi_discovery_release(CommCoordinator *c);

/* What went wrong last; NULL: nothing since the last list, or no discovery. *failures in
 * a row, *since_ms the first of them. */
const coord_error *coordi_discovery_trouble(const CommCoordinator *c, uint64_t *failures,
                                            int64_t *since_ms);
/* For the status: adds a JSON object, or null. */
void coordi_discovery_print(const CommCoordinator *c, coordi_buf *buf);

#endif
