/**
 * @file comm_coordinator.h
 * CommCoordinator: connects to collectors and learners, assigns tasks to them, and calls
 * the host back for every sample, batch and result.
 */
#ifndef COORD_COMM_COORDINATOR_H
#define COORD_COMM_COORDINATOR_H

#include "coord/callbacks.h"
#include "coord/inspect.h"
#include "coord/log.h"
#include "coord/loop.h"
#include "coord/resource_manager.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct comm_coordinator_options {
    size_t size;             /**< written by comm_coordinator_options_init() */
    const char *config;      /**< configuration as JSON text; copied */
    const char *config_file; /**< ... or the path of a file that holds it */
    const comm_coordinator_callbacks *callbacks; /**< copied */
    /** Optional: instead of the configured one; copied. */
    const coord_resource_policy *resource_policy;
    coord_loop *loop; /**< default NULL: a loop of its own */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to log */
} comm_coordinator_options;

/** Fills in this build's defaults. @thread any */
COORD_API void comm_coordinator_options_init(comm_coordinator_options *options,
                                             size_t size);

/**
 * Checks the whole configuration and creates a coordinator. Nothing is sent or listened
 * to yet.
 *
 * @param[out] ret  Yours: free with comm_coordinator_destroy().
 * @retval COORD_ERR_CONFIG       err->text names the path, the value, what was expected.
 * @retval COORD_ERR_UNSUPPORTED  A key whose feature this release does not have is set.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_create(
    const comm_coordinator_options *options, CommCoordinator **ret, coord_error *err);

/**
 * Listens, and connects to the configured workers. Returns once `min_collectors` and
 * `min_learners` are connected, or after `max_retry_second` if each configured role has
 * one; those missing are tried on in the background. With a `ledger`, tasks that had not
 * ended when the process before this one did go on: deal_with_task_resume.
 *
 * With an `operator_server` it asks for those pods of `init_replicas_request` that the
 * server does not list, once and for all, and waits for `collector_target_num` and
 * `learner_target_num` workers, too, whoever brought them.
 *
 * @param[out] err  Also written with COORD_OK when some are missing: text names them.
 * @retval COORD_ERR_IO       The address can't be listened on, or the ledger not be used.
 * @retval COORD_ERR_FORMAT   The ledger is damaged, newer or no ledger; it is left alone.
 * @retval COORD_ERR_BUSY     Another coordinator has the ledger.
 * @retval COORD_ERR_ARG      The ledger has tasks for which a callback is NULL.
 * @retval COORD_ERR_TIMEOUT  A role has no worker; text names the missing and why.
 *                            Everything is released: it may be started again.
 * @retval COORD_ERR_STATE    Started or closed already, or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_start(CommCoordinator *c,
                                                             coord_error *err);

/**
 * Gives a task to a free worker, waiting in the queue for one, and waits until that
 * worker has accepted its start. Callbacks may run before this returns: register the task
 * on your side first.
 *
 * @param task            JSON object with `task_id`, 1 to 255 bytes; passed on byte for
 *                        byte, with `collector_id` and `resource_info` added.
 * @param[out] worker_id  Optional: who got it.
 * @retval COORD_ERR_ARG      The id is missing or no string, or a callback of this role
 *                            is NULL.
 * @retval COORD_ERR_FORMAT   The task is not a well-formed JSON object.
 * @retval COORD_ERR_EXISTS   A task of this id is queued or runs.
 * @retval COORD_ERR_BUSY     `max_queued_tasks` wait already.
 * @retval COORD_ERR_IO       The ledger could not be told of it. No callback runs.
 * @retval COORD_ERR_REFUSED  The worker refused it; err has its words. No callback runs.
 * @retval COORD_ERR_TIMEOUT  `queue_timeout_s` or `start_timeout_s` has passed, and no
 *                            other worker can have it; no callback runs.
 * @retval COORD_ERR_STATE    Not started, closed, or called on the loop thread.
 * @retval COORD_ERR_CLOSED   Drains, or was closed while the task waited.
 * @retval other              Why it could not be started; no callback runs.
 * @thread any, except the loop thread
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_send_collector_task(
    CommCoordinator *c, coord_text task, char worker_id[COORD_ID_SIZE], coord_error *err);

/** The same for a learner; `learner_id` and `resource_info` are added. */
COORD_API COORD_MUST_USE coord_status comm_coordinator_send_learner_task(
    CommCoordinator *c, coord_text task, char worker_id[COORD_ID_SIZE], coord_error *err);

/**
 * As send, but waits for no worker: acceptance is told by deal_with_task_start, refusal
 * by deal_with_task_fail. Works in every callback. With a ledger it returns when the task
 * is written down; on the loop thread, where nothing may wait, a moment before that.
 *
 * @retval COORD_OK  Queued: the task will end in exactly one of its finish callback and
 *                   deal_with_task_fail.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_post_collector_task(
    CommCoordinator *c, coord_text task, coord_error *err);

/** The same for a learner. */
COORD_API COORD_MUST_USE coord_status
comm_coordinator_post_learner_task(CommCoordinator *c, coord_text task, coord_error *err);

/**
 * Ends a task with deal_with_task_fail (COORD_ERR_CANCELED), unless another end is
 * already on its way. From one of the task's own callbacks this is how a host fails it.
 * A libcoord worker is told that nobody waits for its step any more.
 *
 * @retval COORD_ERR_NOT_FOUND  No such task is queued or runs.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_cancel_task(CommCoordinator *c,
                                                                   const char *task_id,
                                                                   coord_error *err);

/**
 * Learners of this buffer that were told "not yet" are asked again at once.
 *
 * @param buffer_id  NULL: those that named no buffer.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_data_ready(CommCoordinator *c,
                                                                  const char *buffer_id,
                                                                  coord_error *err);

/** Which delivery a callback is about. */
typedef struct comm_coordinator_delivery {
    size_t size;       /**< sizeof(comm_coordinator_delivery), written by the caller */
    uint32_t attempt;  /**< 1 for the first */
    uint64_t sequence; /**< counts the requests to the worker within the attempt */
} comm_coordinator_delivery;

/**
 * Which (attempt, sequence) the callback that runs on this thread is about: what is the
 * same was delivered before.
 *
 * @retval COORD_ERR_STATE  Not in a task's callback.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_get_delivery(
    CommCoordinator *c, comm_coordinator_delivery *ret, coord_error *err);

/**
 * Waits until no task is queued or runs and its last callback has returned.
 *
 * @retval COORD_ERR_ARG      wait_ms is negative.
 * @retval COORD_ERR_TIMEOUT  Tasks are left after wait_ms; text says how many.
 * @retval COORD_ERR_STATE    In a callback of this coordinator or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_wait(CommCoordinator *c,
                                                            int64_t wait_ms,
                                                            coord_error *err);

/** The same for one task; COORD_OK also when it is unknown (any more). */
COORD_API COORD_MUST_USE coord_status comm_coordinator_wait_task(CommCoordinator *c,
                                                                 const char *task_id,
                                                                 int64_t wait_ms,
                                                                 coord_error *err);

/**
 * Takes no more tasks: send_* and post_* answer COORD_ERR_CLOSED from here on. Those that
 * are queued or run go to their ends as always, also on other workers. Waits until none
 * is left; comm_coordinator_close() is quick then. There is no way back. Idempotent.
 *
 * @param wait_ms  Milliseconds; 0: does not wait, and so may be called in every callback
 *                 (which sees its own task left).
 * @retval COORD_OK           No task is left, and none will come.
 * @retval COORD_ERR_ARG      wait_ms is negative.
 * @retval COORD_ERR_TIMEOUT  It drains, but tasks are left; text says how many. May be
 *                            called again, to wait on.
 * @retval COORD_ERR_STATE    Not started; or, with wait_ms > 0, in a callback of this
 *                            coordinator or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_drain(CommCoordinator *c,
                                                             int64_t wait_ms,
                                                             coord_error *err);

/**
 * Ends everything: queued and running tasks through deal_with_task_fail
 * (COORD_ERR_CLOSED), idle workers are disconnected politely, busy ones at once. Returns
 * within `close_timeout_s`. Idempotent. With a `ledger`, those tasks stay pending in it
 * instead, and nobody is told: the next start goes on with them.
 *
 * @retval COORD_OK           Closed; no callback runs or will run.
 * @retval COORD_ERR_TIMEOUT  Host callbacks still run; text names their tasks. May be
 *                            called again.
 * @retval COORD_ERR_STATE    In a callback of this coordinator or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_close(CommCoordinator *c,
                                                             coord_error *err);

/**
 * Gives the coordinator back, closed or not: at once deaf and dumb, and no callback
 * begins. What a callback that still runs needs goes when it returns. Never waits for a
 * peer. Takes NULL.
 *
 * @thread any, its own callbacks too
 */
COORD_API void comm_coordinator_destroy(CommCoordinator *c);

#ifdef __cplusplus
}
#endif
#endif
