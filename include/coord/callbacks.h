/**
 * @file callbacks.h
 * What a CommCoordinator asks of its host.
 *
 * Callbacks of one task never overlap; callbacks of different tasks may. None runs under
 * a lock of ours; each may call every function of comm_coordinator.h that does not wait.
 * Text given to a callback lives until it returns.
 */
#ifndef COORD_CALLBACKS_H
#define COORD_CALLBACKS_H

#include "coord/api.h"
#include "coord/error.h"
#include "coord/out.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CommCoordinator CommCoordinator;

/** A sample's metadata came from a collector. `buffer_id` is NULL where it sent none. */
typedef void comm_coordinator_send_data_fn(CommCoordinator *c, const char *task_id,
                                           const char *buffer_id, const char *data_id,
                                           coord_text data, void *user);
/** Is the task finished, now that its worker sent `info`? */
typedef bool comm_coordinator_judge_finish_fn(CommCoordinator *c, const char *task_id,
                                              coord_text info, void *user);
/** The task has finished; `result` is what its worker sent at close. */
typedef void comm_coordinator_finish_fn(CommCoordinator *c, const char *task_id,
                                        coord_text result, void *user);
/**
 * A learner wants a batch: put a JSON list of `batch_size` objects into `out` and answer
 * COORD_OK. COORD_AGAIN: not yet; asked again after comm_coordinator_data_ready(), or
 * after 10 ms growing to 1 s. Any other status fails the task.
 */
typedef coord_status comm_coordinator_get_data_fn(CommCoordinator *c, const char *task_id,
                                                  const char *buffer_id,
                                                  int64_t batch_size,
                                                  int64_t cur_learner_iter,
                                                  coord_out *out, void *user);
/** A learner has done a step; `info` tells of it, priorities for example. */
typedef void comm_coordinator_send_info_fn(CommCoordinator *c, const char *task_id,
                                           const char *buffer_id, coord_text info,
                                           void *user);
/**
 * A worker of that role has joined: an operator server, discovery or
 * comm_coordinator_add_worker() brought it, and it is ready for its first task. Or it has
 * left: it was removed, or is no longer listed, and gets no further task. Once each for
 * every change, in the order in which they happened, and never two at a time; not before
 * comm_coordinator_start() has succeeded, but then also for those that came meanwhile.
 * Not for workers of the configuration, nor when a connection is lost and comes back.
 * comm_coordinator_status() names who is there.
 */
typedef void comm_coordinator_member_fn(CommCoordinator *c, void *user);
/**
 * Who is there? Puts lines of text into `out`, one for each worker, as a discovery
 * command prints them (membership.h); see coord_out_line(). No line: nobody.
 *
 * Asked every `discovery.interval_s`, from the beginning of comm_coordinator_start() to
 * that of comm_coordinator_close(), and never twice at a time: one that takes longer than
 * `discovery.timeout_s` is told in the status, and asked again when it has returned. Only
 * asked if the configuration has `discovery` without a `command`.
 *
 * @return COORD_OK: these are all there are. Anything else: not known now; those listed
 * last stay.
 */
typedef coord_status comm_coordinator_discovery_fn(CommCoordinator *c, coord_out *out,
                                                   void *user);
/** The worker has accepted the task. */
typedef void comm_coordinator_start_fn(CommCoordinator *c, const char *task_id,
                                       const char *worker_id, void *user);
/**
 * The ledger has brought a task of an earlier life back, before anything else is said of
 * it. The last result that was delivered then may be delivered once more:
 * comm_coordinator_get_delivery() tells. `task` is what was sent.
 */
typedef void comm_coordinator_resume_fn(CommCoordinator *c, const char *task_id,
                                        coord_text task, void *user);
/**
 * A new attempt begins on another worker, because of `cause`.
 *
 * @param out  Left alone, the new worker gets the task as it was. A JSON object put in
 *             replaces it for this attempt and those after it, to point a learner at its
 *             checkpoint, say. Its `task_id` must be the same: else the task fails with
 *             COORD_ERR_CALLBACK.
 */
typedef void comm_coordinator_restart_fn(CommCoordinator *c, const char *task_id,
                                         uint32_t attempt, const coord_error *cause,
                                         coord_out *out, void *user);
/** The task has ended without finishing, and why. */
typedef void comm_coordinator_fail_fn(CommCoordinator *c, const char *task_id,
                                      const coord_error *why, void *user);

/**
 * What the host does. A role's functions may be NULL until its tasks are sent, which
 * then answers COORD_ERR_ARG naming the missing one; the optional ones always may.
 *
 * @thread a thread of the configured executor
 */
typedef struct comm_coordinator_callbacks {
    size_t size; /**< written by comm_coordinator_callbacks_init() */
    comm_coordinator_send_data_fn *deal_with_collector_send_data;
    comm_coordinator_judge_finish_fn *deal_with_collector_judge_finish;
    comm_coordinator_finish_fn *deal_with_collector_finish_task;
    comm_coordinator_get_data_fn *deal_with_learner_get_data;
    comm_coordinator_send_info_fn *deal_with_learner_send_info;
    comm_coordinator_judge_finish_fn *deal_with_learner_judge_finish;
    comm_coordinator_finish_fn *deal_with_learner_finish_task;
    comm_coordinator_member_fn *deal_with_increase_collector; /**< optional */
    comm_coordinator_member_fn *deal_with_decrease_collector; /**< optional */
    comm_coordinator_member_fn *deal_with_increase_learner;   /**< optional */
    comm_coordinator_member_fn *deal_with_decrease_learner;   /**< optional */
    comm_coordinator_discovery_fn *deal_with_discovery;       /**< optional */
    comm_coordinator_start_fn *deal_with_task_start;          /**< optional */
    comm_coordinator_restart_fn *deal_with_task_restart;      /**< optional */
    comm_coordinator_resume_fn *deal_with_task_resume;        /**< optional */
    comm_coordinator_fail_fn *deal_with_task_fail;            /**< required */
    void *user; /**< passed to all of them */
} comm_coordinator_callbacks;

/** Fills in NULLs. @thread any */
COORD_API void comm_coordinator_callbacks_init(comm_coordinator_callbacks *callbacks,
                                               size_t size);

#ifdef __cplusplus
}
#endif
#endif
