/* Who belongs to the coordinator, and changes of that while it runs. See
 * coord/membership.h for what a host sees of it.
 *
 * Vocabulary
 *   origin  who has brought a member, and so may take it away again
 *   source  an origin that lists members again and again: the operator server
 *           (operator_sync.c), discovery (discovery.c)
 *   roster  what a source has listed last (roster.c)
 *   notice  an increase or decrease that the host is told of */
#ifndef COORDI_COORDINATOR_MEMBERSHIP_H
#define COORDI_COORDINATOR_MEMBERSHIP_H

#include "coordinator/coordinator.h"

const char *coordi_origin_str(coordi_origin origin);

/* ---- the life of a coordinator ---- */

/* Makes the members that are known. */
coord_status coordi_membership_begin(CommCoordinator *c, coord_error *err);
/* It has started: who came meanwhile is told of. */
void coordi_membership_started(CommCoordinator *c);
/* No source brings or takes anybody any more. Idempotent. */
void coordi_membership_stop(CommCoordinator *c);
/* Everything is released. Idempotent. */
void coordi_membership_release(CommCoordinator *c);

/* How many workers of a role start waits for. */
size_t coordi_membership_needed(const CommCoordinator *c, coord_role role);
/* Does anybody list members? */
bool coordi_membership_has_sources(const CommCoordinator *c);
/* A complete list has come: when all sources have brought one, workers of an earlier life
 * that are in none go. */
void coordi_membership_settle(CommCoordinator *c);
/* May a worker come that nobody knows of yet? */
bool coordi_membership_may_grow(const CommCoordinator *c);

/* ---- changes ---- */

/* Adds a worker, and connects it unless start will. COORD_ERR_EXISTS: the id is in use.
 */
coord_status coordi_membership_add(CommCoordinator *c, const coordi_config_worker *worker,
                                   coordi_origin origin, coord_error *err);
/* Takes a member out; what it works at goes to its end first, or is given to another
 * (`drop`). */
void coordi_membership_remove(coordi_member *m, bool drop, const coord_error *why);
/* The member that has this id; not one that is being removed. NULL: none. */
coordi_member *coordi_membership_find(const CommCoordinator *c, coord_role role,
                                      const char *id);
/* It is ready: the host is told, once. */
void coordi_membership_ready(coordi_member *m);
/* It has become GONE. */
void coordi_membership_gone(coordi_member *m);

/* ---- notices ---- */

/* NULL: out of memory. */
coordi_notice *coordi_notice_create(CommCoordinator *c, comm_coordinator_member_fn *call);
void coordi_notice_free(coordi_notice *notice); /* takes NULL */

#endif
