/**
 * @file loop.h
 * Where objects live. Every master, slave and coordinator is touched by the thread of
 * its loop alone. Most hosts never see one: an options struct whose `loop` is NULL gives
 * its object a loop and a thread of its own.
 *
 * Fork. What lives on a loop, and the loop itself, belongs to the process that made it.
 * In a forked child every call on it answers COORD_ERR_FORKED (or 0, false, NULL) and
 * changes nothing. Destroy functions take it; they wait for nobody, send nothing, and the
 * parent does not notice. They free what no other thread can have been changing when the
 * child was made: a task with its data and result, when its last reference goes, and a
 * loop on which nothing ever lived. All else stays in the child's memory until the child
 * ends or calls exec, for it can't be told there whether the threads that the child does
 * not have had left it whole, and libcurl's and libmicrohttpd's parts of it can't be
 * freed without a word to the parent's peers; it stays reachable, so that leak checkers
 * have nothing to say. So do the child's copies of our sockets (all are close-on-exec),
 * and peers do not notice the parent's end before the child's: a child does well to end
 * or to call exec soon. What it makes anew works, and so do objects without a loop
 * (resource managers, safetensors, JSON).
 */
#ifndef COORD_LOOP_H
#define COORD_LOOP_H

#include "coord/api.h"
#include "coord/error.h"
#include "coord/log.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_loop coord_loop;

/** Which threads run the host's callbacks. */
typedef enum coord_executor {
    COORD_EXECUTOR_PER_TASK = 0, /**< a thread for each that may be running at once */
    COORD_EXECUTOR_POOL = 1,     /**< a fixed number of threads */
    COORD_EXECUTOR_INLINE = 2    /**< the loop thread: fastest, for callbacks that never
                                  * block; waiting calls answer COORD_ERR_STATE there */
} coord_executor;

typedef struct coord_loop_options {
    size_t size;     /**< written by coord_loop_options_init() */
    bool own_thread; /**< default true; false: the host calls coord_loop_step() */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to log */
} coord_loop_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_loop_options_init(coord_loop_options *options, size_t size);

/**
 * Creates a loop that several objects can share.
 *
 * @param options   Optional; copied.
 * @param[out] ret  Yours: free with coord_loop_destroy().
 * @retval COORD_ERR_IO  No descriptor or thread could be had.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_loop_create(const coord_loop_options *options,
                                                        coord_loop **ret,
                                                        coord_error *err);

/**
 * A descriptor that becomes readable when coord_loop_step() has something to do, timers
 * included; for the host's own poll, epoll or select. -1 for simulated loops and for
 * loops with a thread of their own. Borrowed: do not close it.
 *
 * @thread any
 */
COORD_API int coord_loop_fd(const coord_loop *loop);

/**
 * Does what is due, waiting at most `wait_ms` milliseconds for the first of it.
 * Callbacks of objects with the `inline` executor run in here.
 *
 * A waiting call (join, send, close, ...) made while no thread is in here steps the loop
 * itself, so a program with one thread can use all of them.
 *
 * @retval COORD_ERR_STATE  The loop has its own thread, another thread is in here, or
 *                          the call comes from a callback of this loop.
 * @thread one
 */
COORD_API COORD_MUST_USE coord_status coord_loop_step(coord_loop *loop, int64_t wait_ms,
                                                      coord_error *err);

/**
 * Gives the loop back. Objects that live on it keep it alive until they are destroyed.
 * Takes NULL.
 *
 * @thread any
 */
COORD_API void coord_loop_destroy(coord_loop *loop);

#ifdef __cplusplus
}
#endif
#endif
