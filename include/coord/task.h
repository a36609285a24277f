/**
 * @file task.h
 * One request to a slave and what became of it.
 *
 * A task is shared: the library holds references while it runs, the host as long as it
 * wants. It settles exactly once, as COMPLETED, FAILED or START_FAILED.
 */
#ifndef COORD_TASK_H
#define COORD_TASK_H

#include "coord/api.h"
#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_task coord_task;

/** Where a task is. The numbers are those of DI-engine's TaskStatus. */
typedef enum coord_task_status {
    COORD_TASK_IDLE = 0x00,         /**< made, not started */
    COORD_TASK_STARTING = 0x11,     /**< on its way to the slave */
    COORD_TASK_STARTED = 0x12,      /**< accepted by the slave */
    COORD_TASK_START_FAILED = 0x13, /**< refused, or never reached the slave: settled */
    COORD_TASK_COMPLETED = 0x21,    /**< the slave sent a result: settled */
    COORD_TASK_FAILED = 0x22        /**< failed, lost, canceled or timed out: settled */
} coord_task_status;

/**
 * The task settled. `failure` is NULL for coord_task_on_complete(), and says why for
 * coord_task_on_fail(); borrowed until the function returns. So is `task`.
 *
 * @thread a thread of the master's executor, under no lock
 */
typedef void coord_task_fn(coord_task *task, const coord_error *failure, void *user);

/**
 * Sends the task to its slave.
 *
 * @param wait_ms     Milliseconds to wait for the slave to accept or refuse; 0: none, the
 *                    connection's on_new_task tells.
 * @param timeout_ms  The task fails with COORD_ERR_TIMEOUT when it has not settled so
 * many milliseconds after this call; 0: only loss of the slave ends it.
 * @retval COORD_OK           Accepted (wait_ms > 0), or on its way (0).
 * @retval COORD_ERR_STATE    Started before, or not connected.
 * @retval COORD_ERR_REFUSED  The slave refused; err->text has its words.
 * @retval COORD_ERR_BUSY     The slave has another task, also after the retries.
 * @retval COORD_ERR_LOST     The slave can't be reached.
 * @retval COORD_ERR_TIMEOUT  Not known within wait_ms; the task goes on.
 * @thread any; with wait_ms > 0 not the loop thread
 */
COORD_API COORD_MUST_USE coord_status coord_task_start(coord_task *task, int64_t wait_ms,
                                                       int64_t timeout_ms,
                                                       coord_error *err);

/**
 * Waits until the task has settled.
 *
 * @retval COORD_OK           Completed.
 * @retval COORD_ERR_STATE    Never started; or called on the loop thread.
 * @retval COORD_ERR_TIMEOUT  Not settled within wait_ms, or settled by its own timeout:
 *                            coord_task_get_status() tells which.
 * @retval other              Why it failed: COORD_ERR_TASK (the slave says so),
 *                            COORD_ERR_LOST, COORD_ERR_REFUSED, COORD_ERR_CANCELED, ...
 * @thread any, except the loop thread
 */
COORD_API COORD_MUST_USE coord_status coord_task_join(coord_task *task, int64_t wait_ms,
                                                      coord_error *err);

/**
 * Has `done` called when the task completes; at once (still on the executor) when it
 * has. One function a task; the later one replaces the earlier.
 *
 * @retval COORD_ERR_NOMEM  Not registered.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_task_on_complete(coord_task *task,
                                                             coord_task_fn *done,
                                                             void *user,
                                                             coord_error *err);

/** The same for every other way to settle. @thread any */
COORD_API COORD_MUST_USE coord_status coord_task_on_fail(coord_task *task,
                                                         coord_task_fn *done, void *user,
                                                         coord_error *err);

/**
 * Gives the task up: it settles as FAILED with COORD_ERR_CANCELED unless it has settled
 * already. A libcoord slave is told, once, and can stop early
 * (coord_slave_task_canceled()); so it is when the task times out. DI-engine's protocol
 * has no word for it: a Python slave works on, and its result is dropped. Does not wait.
 *
 * @thread any
 */
COORD_API void coord_task_cancel(coord_task *task);

/** UUID of the task, lower case; lives as long as the task. @thread any */
COORD_API const char *coord_task_id(const coord_task *task);

/** What the task was made with; lives as long as the task. @thread any */
COORD_API coord_text coord_task_data(const coord_task *task);

/** Where the task is now. @thread any */
COORD_API coord_task_status coord_task_get_status(const coord_task *task);

/**
 * The slave's result as JSON text, byte for byte; empty before the task has settled and
 * where the slave sent none. Lives as long as the task. @thread any
 */
COORD_API coord_text coord_task_result(const coord_task *task);

/** Takes a reference. @thread any */
COORD_API coord_task *coord_task_ref(coord_task *task);

/** Gives a reference back; the last one frees the task. Takes NULL. @thread any */
COORD_API void coord_task_unref(coord_task *task);

#ifdef __cplusplus
}
#endif
#endif
