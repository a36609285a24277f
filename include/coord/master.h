/**
 * @file master.h
 * The HTTP endpoint that slaves report to: heartbeats and results. Speaks the protocol of
 * DI-engine's `ding.interaction`, both to Python slaves and to libcoord's.
 */
#ifndef COORD_MASTER_H
#define COORD_MASTER_H

#include "coord/connection.h"
#include "coord/log.h"
#include "coord/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_master coord_master;

typedef struct coord_master_options {
    size_t size;            /**< written by coord_master_options_init() */
    const char *host;       /**< address to listen on, IPv6 without brackets; default
                             * "127.0.0.1"; copied */
    const char *my_address; /**< host that slaves report to; default: the local address of
                             * the path to each slave; copied */
    uint16_t port;          /**< default 0: any free port */
    bool insecure;          /**< default false: listening beyond loopback is refused, for
                             * whoever reaches the port and guesses the channel can talk */
    int32_t channel;        /**< default 0; slaves must have the same */
    int64_t heartbeat_tolerance_ms; /**< silence before a slave is lost; default 17000 */
    int64_t heartbeat_check_ms;     /**< how often that is looked at; default 1000 */
    int64_t request_timeout_ms;     /**< for one request to a slave; default 10000 */
    int64_t
        request_retry_wait_ms; /**< pause before a request is repeated; default 1000 */
    uint32_t request_retries;  /**< after the first attempt; default 5; 0: none */
    coord_executor executor;   /**< default COORD_EXECUTOR_PER_TASK: a lane each for
                                * connections and tasks that have callbacks */
    size_t max_body_bytes;     /**< of a result; default 16 MiB */
    size_t max_inflight_bytes; /**< of results being received; default 256 MiB */
    size_t executor_threads;   /**< for COORD_EXECUTOR_POOL; default 4 */
    coord_loop *loop;          /**< default NULL: a loop of its own */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to log */
} coord_master_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_master_options_init(coord_master_options *options, size_t size);

/**
 * Creates a master and listens: slaves can report from here on.
 *
 * @param options   Copied.
 * @param[out] ret  Yours: free with coord_master_destroy().
 * @retval COORD_ERR_IO   The address can't be listened on; err->os_errno says why.
 * @retval COORD_ERR_ARG  An option is out of range; err->text names it.
 * @thread any; on a thread that steps the loop itself, too
 */
COORD_API COORD_MUST_USE coord_status coord_master_create(
    const coord_master_options *options, coord_master **ret, coord_error *err);

/** Port it listens on. @thread any */
COORD_API uint16_t coord_master_port(const coord_master *master);

/** Host it listens on, as given; lives as long as the master. @thread any */
COORD_API const char *coord_master_host(const coord_master *master);

/**
 * Sends itself a `/ping` over the network: is the endpoint reachable and its own?
 *
 * @param wait_ms  At most so many milliseconds, more than 0.
 * @thread any, except the loop thread
 */
COORD_API COORD_MUST_USE coord_status coord_master_ping(coord_master *master,
                                                        int64_t wait_ms,
                                                        coord_error *err);

/**
 * Makes a connection to a slave; coord_connection_connect() connects it.
 *
 * @param options   Copied.
 * @param[out] ret  Yours: free with coord_connection_destroy(). It holds the master.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
coord_master_new_connection(coord_master *master, const coord_connection_options *options,
                            coord_connection **ret, coord_error *err);

/**
 * Stops listening, disconnects every slave (asking those that are idle, dropping the rest
 * after wait_ms), fails what runs with COORD_ERR_CLOSED. Idempotent.
 *
 * @param wait_ms  At most so many milliseconds, more than 0.
 * @retval COORD_ERR_STATE  Called from a callback of this master or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_master_close(coord_master *master,
                                                         int64_t wait_ms,
                                                         coord_error *err);

/**
 * Gives the master back: at once deaf and dumb; memory goes when its connections are
 * destroyed too. Never waits for a peer. Takes NULL.
 *
 * @thread any, its own callbacks too
 */
COORD_API void coord_master_destroy(coord_master *master);

#ifdef __cplusplus
}
#endif
#endif
