/**
 * @file membership.h
 * Workers that come and go while a CommCoordinator runs.
 *
 * Who belongs to it is said by its configuration (`collector`, `learner`), by the host
 * (the functions below), by an operator server (`operator_server`: pods of
 * DI-orchestrator) and by discovery (`discovery`: a command or a callback). Each only
 * takes away what it has brought; the host can take away all. Ids are unique within a
 * role: where two name the same, the first has it, and if an operator server or discovery
 * lets go of it, it becomes the other's of them that still lists it, as a new worker.
 *
 * Discovery asks a command, or the callback deal_with_discovery, every
 * `discovery.interval_s`. The answer is text with a line for each worker,
 *
 *     collector 10.0.0.7:22270
 *     learner [fd00::2]:22271 learner-of-rack-2
 *
 * that is its role, address and, optionally, id (default: the address). Empty lines and
 * those that begin with # are skipped; no line at all says that nobody is there. If the
 * command fails, takes longer than `discovery.timeout_s` (and is killed then), or prints
 * one line of something else, the last list stays as it was; the status says why. There
 * is room for 10,000 workers in 1 MiB. The command is run as it is, without a shell, with
 * the environment of this process and no input; what it leaves running is killed.
 *
 * New workers are connected side by side, and tried again for as long as they belong
 * here. deal_with_increase_collector and its like tell who has come and gone.
 */
#ifndef COORD_MEMBERSHIP_H
#define COORD_MEMBERSHIP_H

#include "coord/callbacks.h"
#include "coord/resource_manager.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What becomes of the task that a worker has when it is removed. */
typedef enum comm_coordinator_removal {
    COMM_COORDINATOR_DRAIN = 0, /**< goes to its end there; the worker gets no other */
    COMM_COORDINATOR_DROP = 1   /**< starts anew on another worker, which does not count
                                 *   for `max_reassign` */
} comm_coordinator_removal;

/**
 * Adds a worker, which is connected in the background, or by start if that is yet to
 * come. Never waits for it, and so may be called in every callback.
 *
 * One that is being removed comes back; with another address it is a new worker, which
 * takes the place of the old one.
 *
 * @param id    1 to 255 bytes of UTF-8.
 * @param host  Name or address of the worker, without port and brackets; IPv6 is fine.
 * @param port  That it listens on.
 * @retval COORD_ERR_ARG     Role, id, host or port is wrong; text names it.
 * @retval COORD_ERR_EXISTS  A worker of this role and id is there, whoever brought it.
 * @retval COORD_ERR_CLOSED  The coordinator is closed, or closes.
 * @retval COORD_ERR_NOMEM   Nothing has changed.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
comm_coordinator_add_worker(CommCoordinator *c, coord_role role, const char *id,
                            const char *host, uint16_t port, coord_error *err);

/**
 * Removes a worker, whoever brought it. It gets no further task, and is disconnected when
 * it has none. Never waits for that, and so may be called in every callback. One that is
 * being drained may still be dropped.
 *
 * An operator server's or discovery's list does not bring it back, unless it has left the
 * list in between.
 *
 * @retval COORD_ERR_ARG        An argument is wrong; text names it.
 * @retval COORD_ERR_NOT_FOUND  No worker of this role and id is there.
 * @retval COORD_ERR_CLOSED     The coordinator is closed, or closes.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
comm_coordinator_remove_worker(CommCoordinator *c, coord_role role, const char *id,
                               comm_coordinator_removal how, coord_error *err);

#ifdef __cplusplus
}
#endif
#endif
