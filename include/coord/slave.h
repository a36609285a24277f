/**
 * @file slave.h
 * A worker's endpoint: masters connect to it and give it one task at a time. Speaks the
 * protocol of DI-engine's `ding.interaction` to Python masters and to libcoord's.
 */
#ifndef COORD_SLAVE_H
#define COORD_SLAVE_H

#include "coord/api.h"
#include "coord/error.h"
#include "coord/log.h"
#include "coord/loop.h"
#include "coord/out.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_slave coord_slave;

/**
 * A master asks to connect, to disconnect, or to have a task done. COORD_OK accepts; any
 * other status refuses, with `out` as refuse data (JSON; `{}` if none was set). `data` is
 * the master's JSON, borrowed until the function returns.
 *
 * @thread one thread per slave, one call at a time, under no lock
 */
typedef coord_status coord_slave_ask_fn(coord_slave *slave, coord_text data,
                                        coord_out *out, void *user);

/**
 * Does a task. COORD_OK completes it with `out` as its result (`{}` if none was set); any
 * other status fails it with `out` as what is told of the failure. `data` as above. The
 * result is kept until the next task is taken: a libcoord master may ask for it again.
 *
 * @thread a thread of the slave's executor, one call at a time, beside the ask functions
 */
typedef coord_status coord_slave_process_fn(coord_slave *slave, coord_text data,
                                            coord_out *out, void *user);

/** The master is gone without a goodbye. Thread as coord_slave_ask_fn. */
typedef void coord_slave_lost_fn(coord_slave *slave, const coord_error *why, void *user);

typedef struct coord_slave_options {
    size_t size;      /**< written by coord_slave_options_init() */
    const char *host; /**< address to listen on, IPv6 without brackets; default
                       * "127.0.0.1"; copied */
    uint16_t port;    /**< default 0: any free port */
    bool insecure;   /**< default false: listening beyond loopback is refused, for whoever
                      * reaches the port and guesses the channel owns the slave */
    int32_t channel; /**< default 0; the master must have the same */
    int64_t heartbeat_ms;          /**< default 3000, at least 200 */
    int64_t request_timeout_ms;    /**< for one request to the master; default 10000 */
    int64_t request_retry_wait_ms; /**< pause before one is repeated; default 1000 */
    uint32_t request_retries;      /**< after the first attempt; default 5; 0: none */
    coord_executor executor;       /**< default COORD_EXECUTOR_PER_TASK */
    size_t executor_threads;       /**< for COORD_EXECUTOR_POOL; default 4 */
    size_t max_body_bytes;         /**< of a request; default 16 MiB */
    size_t max_inflight_bytes;     /**< of requests being received; default 256 MiB */
    coord_slave_process_fn *process_task; /**< required */
    coord_slave_ask_fn *on_connect;       /**< optional: accepts every master */
    coord_slave_ask_fn *on_disconnect;    /**< optional: lets every master go */
    coord_slave_ask_fn *on_task;          /**< optional: accepts every task */
    coord_slave_lost_fn *on_lost;         /**< optional */
    coord_loop *loop;                     /**< default NULL: a loop of its own */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to every function above */
} coord_slave_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_slave_options_init(coord_slave_options *options, size_t size);

/**
 * Creates a slave and listens: masters can connect from here on.
 *
 * @param options   Copied.
 * @param[out] ret  Yours: free with coord_slave_destroy(). Written before the first
 *                  callback runs.
 * @retval COORD_ERR_IO   The address can't be listened on; err->os_errno says why.
 * @retval COORD_ERR_ARG  An option is missing or out of range; err->text names it.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_slave_create(
    const coord_slave_options *options, coord_slave **ret, coord_error *err);

/** Port it listens on. @thread any */
COORD_API uint16_t coord_slave_port(const coord_slave *slave);

/** Host it listens on, as given; lives as long as the slave. @thread any */
COORD_API const char *coord_slave_host(const coord_slave *slave);

/** Is a master connected? @thread any */
COORD_API bool coord_slave_is_connected(const coord_slave *slave);

/**
 * Should process_task give up? True once the master has given the running task up (a
 * libcoord says so; DI-engine's has no word for it), or is gone, or the slave is closing:
 * nobody will read the result, and it is not sent. The slave is free for the next task
 * when process_task returns, so look now and then, and return soon. @thread any
 */
COORD_API bool coord_slave_task_canceled(const coord_slave *slave);

/**
 * Stops listening and heartbeats, drops the master, and waits for a running process_task.
 * Idempotent.
 *
 * @param wait_ms  At most so many milliseconds, more than 0.
 * @retval COORD_ERR_TIMEOUT  A callback still runs; may be called again.
 * @retval COORD_ERR_STATE    Called from a callback of this slave or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_slave_close(coord_slave *slave,
                                                        int64_t wait_ms,
                                                        coord_error *err);

/**
 * Gives the slave back: at once deaf and dumb; what a running callback needs goes when it
 * returns. Never waits for a peer. Takes NULL.
 *
 * @thread any, its own callbacks too
 */
COORD_API void coord_slave_destroy(coord_slave *slave);

#ifdef __cplusplus
}
#endif
#endif
