/**
 * @file connection.h
 * A master's connection to one slave. It stays valid, but inert (COORD_ERR_LOST), when
 * the slave is lost, until it is destroyed.
 */
#ifndef COORD_CONNECTION_H
#define COORD_CONNECTION_H

#include "coord/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_connection coord_connection;

/**
 * An attempt to connect or disconnect has ended, well or not; or the connection was lost.
 *
 * @param failure  NULL: it went well.
 * @param data     JSON that the slave gave with a refusal; else empty. Borrowed.
 * @thread a thread of the master's executor, one at a time per connection
 */
typedef void coord_connection_fn(coord_connection *connection, const coord_error *failure,
                                 coord_text data, void *user);

/** The slave has accepted (`failure` NULL) or not accepted a task. Thread as above. */
typedef void coord_connection_task_fn(coord_connection *connection, coord_task *task,
                                      const coord_error *failure, void *user);

typedef struct coord_connection_options {
    size_t size;      /**< written by coord_connection_options_init() */
    const char *id;   /**< name of the slave, 1 to 255 bytes, unique in the master while
                       * connected; copied */
    const char *host; /**< name or numeric address; copied */
    uint16_t port;
    coord_connection_fn *on_connect;       /**< optional: every attempt's outcome */
    coord_connection_fn *on_disconnect;    /**< optional: every attempt's outcome */
    coord_connection_task_fn *on_new_task; /**< optional: every start's outcome */
    coord_connection_fn *on_lost;          /**< optional: silent or unreachable */
    void *user;                            /**< passed to the functions */
} coord_connection_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_connection_options_init(coord_connection_options *options,
                                             size_t size);

/**
 * Connects: tells the slave where to report.
 *
 * @param data     JSON object for the slave's connect hook; empty: `{}`.
 * @param wait_ms  Milliseconds to wait for the outcome; 0: none, on_connect tells.
 * @retval COORD_OK           Connected (or on the way, with wait_ms 0).
 * @retval COORD_ERR_STATE    Connected or connecting already.
 * @retval COORD_ERR_EXISTS   The id is connected through another object.
 * @retval COORD_ERR_REFUSED  The slave said no; err->peer_code is its code, 501 if
 * another master has it.
 * @retval COORD_ERR_LOST     Not reached, also after the retries.
 * @retval COORD_ERR_TIMEOUT  Not known within wait_ms; the attempt goes on.
 * @thread any; with wait_ms > 0 not the loop thread
 */
COORD_API COORD_MUST_USE coord_status coord_connection_connect(
    coord_connection *connection, coord_text data, int64_t wait_ms, coord_error *err);

/**
 * Disconnects. Tasks that still run fail with COORD_ERR_CLOSED. Unless the slave refuses,
 * the connection ends here whatever the slave answers. Idempotent.
 *
 * @param data     JSON object for the slave's disconnect hook; empty: `{}`.
 * @param wait_ms  As above; on_disconnect tells.
 * @retval COORD_ERR_REFUSED  The slave's hook said no; still connected.
 * @thread any; with wait_ms > 0 not the loop thread
 */
COORD_API COORD_MUST_USE coord_status coord_connection_disconnect(
    coord_connection *connection, coord_text data, int64_t wait_ms, coord_error *err);

/** True between a connect that went well and loss or disconnect. @thread any */
COORD_API bool coord_connection_is_connected(const coord_connection *connection);

/** The id given at creation; lives as long as the connection. @thread any */
COORD_API const char *coord_connection_id(const coord_connection *connection);

/**
 * Makes a task for this slave; start it with coord_task_start().
 *
 * @param data      JSON of any type, passed on byte for byte; empty or null: `{}`.
 * @param[out] ret  Yours: free with coord_task_unref().
 * @retval COORD_ERR_FORMAT  The data is not well-formed JSON.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_connection_new_task(
    coord_connection *connection, coord_text data, coord_task **ret, coord_error *err);

/**
 * Gives the connection back: it is dropped without a word to the slave (disconnect first
 * to be polite), tasks fail with COORD_ERR_CLOSED. Never waits. Takes NULL.
 *
 * @thread any, its own callbacks too
 */
COORD_API void coord_connection_destroy(coord_connection *connection);

#ifdef __cplusplus
}
#endif
#endif
