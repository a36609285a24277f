/**
 * @file inspect.h
 * What a CommCoordinator tells of itself.
 */
#ifndef COORD_INSPECT_H
#define COORD_INSPECT_H

#include "coord/callbacks.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A snapshot as JSON: phase ("draining" from comm_coordinator_drain() on), workers,
 * tasks, pools, counters. In each pool free + assigned + quarantined = connected; a
 * worker that is still asked for the first time what it has is not counted as connected
 * yet.
 *
 * "discovery" is null, or an object: its "state" is "starting" until it has been
 * answered, "following" or "failing"; "last_list_ms" is how long ago the last list came,
 * or null; "collectors" and "learners" are how many are in it; "failures" counts the
 * questions that went wrong since then, and "error" says of the last of them why.
 *
 * "operator_server" is null, or an object:
 *
 *     {"address": "http://di-server:8080", "api_version": "v1alpha1",
 *      "state": "following", "outage_ms": 0, "error": null, "last_list_ms": 300,
 *      "collectors": 4, "learners": 1, "pending": 0, "complete": true, "skipped": 0,
 *      "demand": {"collectors": 4, "learners": 1, "failures": 0, "state": "met",
 *                 "error": null},
 *      "reported": 2, "report_error": null}
 *
 * Its "state" is "starting" until a list has come and pods were asked for, then
 * "following", "unreachable" for as long as `outage_ms` says, "stopped" outside of start
 * and close. `collectors` and `learners` are how many the last list had, `last_list_ms`
 * ago, `pending` are nodes without an address, and who is not in a list that is not
 * `complete` may be there all the same, for entries were `skipped`. "demand" is what
 * init_replicas_request asks for, or null; it is "open", "sent", "met", or "given_up"
 * when start is over. `reported` counts pods that could not be reached.
 *
 * @param[out] ret  Yours: free with coord_free(). Closed by a NUL.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_status(CommCoordinator *c,
                                                              char **ret,
                                                              coord_error *err);

/**
 * Why a task or a worker is as it is: a chain of causes, from the immediate one to the
 * root. A task waits because no collector is free, because two work (for which tasks, how
 * long) and one is quarantined, because it accepted a task and reported nothing.
 *
 *     {"id": "t", "kind": "task", "role": "collector", "state": "queued",
 *      "since_ms": 4100, "causes": [
 *        {"code": "no_free_worker", "seen": "no collector is free: of 1, 1 work, ...",
 *         "since_ms": 4100, "advice": "Wait, or have more workers of this role."}, ...],
 *      "left_out": 0}
 *
 * `since_ms` is how long ago it came into that state, or was seen. `code` is a word for
 * programs, and the `reason` of errors: "connection_lost" (refused, reset or unanswered,
 * after the retries), "silent" (no heartbeat within the tolerance), "no_progress"
 * (accepted, nothing reported in time), "quarantined", "no_free_worker",
 * "discovery_fails", "operator_unreachable", "operator_demand_unmet" (the operator server
 * lists fewer than are wanted), "host_has_no_data", "callback_running", "refused_start",
 * "canceled", ... More words may come. `left_out` counts causes beyond those that there
 * is room for: the answer is less than 100 KiB.
 *
 * Known are all workers; tasks that are queued or run; and the last 1000 that failed, of
 * which the oldest are forgotten first. Tasks that finished are not.
 *
 * @param id        Of a task or worker. Where several have it, the first is the answer
 *                  and the others stand in it as a list "also": task, collector, learner.
 *                  "task/t", "collector/c0" and "learner/l0" name one of them.
 * @param[out] ret  Yours: free with coord_free(). Closed by a NUL.
 * @retval COORD_ERR_NOT_FOUND  No task or worker of this id is known.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_why(CommCoordinator *c,
                                                           const char *id, char **ret,
                                                           coord_error *err);

/** Port it listens on; 0 before start. @thread any */
COORD_API uint16_t comm_coordinator_port(const CommCoordinator *c);

/** Host it listens on, as configured; lives as long as c. @thread any */
COORD_API const char *comm_coordinator_host(const CommCoordinator *c);

#ifdef __cplusplus
}
#endif
#endif
