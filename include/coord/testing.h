/**
 * @file testing.h
 * A whole cluster inside a unit test: coordinators, slaves and servers that live on
 * loops of a coord_sim run in virtual time, one thing at a time, in an order that a seed
 * decides. The same seed gives the same run, so a seed is a bug report. No socket is
 * opened, nobody sleeps, an hour of heartbeats takes a moment.
 *
 * Put a loop from coord_sim_loop() into the `loop` field of an object's options, then
 * call the object as always: a call that waits runs the world until it is answered.
 *
 * Threads: those that the world knows (coord_sim_thread_start(), and the library's own)
 * run one at a time, whenever the seed says so. The thread that runs the world, a test's
 * main thread, is the *driver*. One driver keeps runs repeatable; several are safe.
 * "@thread driver" below: not from a callback that runs on a loop of this world.
 */
#ifndef COORD_TESTING_H
#define COORD_TESTING_H

#include "coord/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_sim coord_sim;
typedef struct coord_sim_thread coord_sim_thread;

/** One line for each event, "<time> <host>#<loop> <what>", borrowed until the sink
 *  returns. @thread any, one at a time. It must not call libcoord. */
typedef void coord_sim_trace_fn(const char *line, void *user);

typedef struct coord_sim_options {
    size_t size;            /**< written by coord_sim_options_init() */
    uint64_t seed;          /**< default 1 */
    int64_t start_ms;       /**< first reading of the clock; default 1000 */
    int64_t wall_start_ms;  /**< time of day then; default 2026-01-01, in ms since 1970 */
    int64_t latency_min_ms; /**< of links nobody set, one way; default 1 */
    int64_t latency_max_ms; /**< default 5 */
    double yield_chance;    /**< 0 to 1, that a thread lets others go first in a call that
                             *   need not wait; default 0, for hosts that call with locks */
    coord_sim_trace_fn *trace; /**< optional; to see what a seed does */
    coord_log_level log_level; /**< of the loops; default off */
    coord_log_fn *log;         /**< optional */
    void *user;                /**< passed to trace and log */
} coord_sim_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_sim_options_init(coord_sim_options *options, size_t size);

/** Makes an empty world. @param options optional; copied. @param[out] ret yours: free
 *  with coord_sim_destroy(). @thread any */
COORD_API COORD_MUST_USE coord_status coord_sim_create(const coord_sim_options *options,
                                                       coord_sim **ret, coord_error *err);

/**
 * Gives the world back, after the objects in it were destroyed, threads joined and loops
 * given back: does what they still had to do, without moving the clock (sleepers are
 * woken), and frees all. With loops or threads left the world stays until the last of
 * them has gone; objects that are destroyed then do the rest of their work within that
 * call. Workers of testing_worker.h go by themselves. Takes NULL.
 *
 * @thread driver
 */
COORD_API void coord_sim_destroy(coord_sim *sim);

/**
 * A loop on a machine of this world: one process there. Machines come into being when
 * first named. Loops of one machine share its address and its ports; a restart after
 * coord_sim_crash() is a new loop with the same host.
 *
 * @param host      "10.0.0.1", "127.0.0.1" or a name such as "node-3", at most 63 bytes.
 * @param[out] ret  Yours: give back with coord_loop_destroy().
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_sim_loop(coord_sim *sim, const char *host,
                                                     coord_loop **ret, coord_error *err);

/** The virtual monotonic clock, in ms. @thread any */
COORD_API int64_t coord_sim_now_ms(const coord_sim *sim);

/** Sets the time of day (ms since 1970); the monotonic clock goes on. @thread any */
COORD_API void coord_sim_set_wall_ms(coord_sim *sim, int64_t wall_ms);

/** A number made of all that happened so far: when, where, what, and the bytes of each
 *  message. Equal for equal seeds. @thread any */
COORD_API uint64_t coord_sim_trace_hash(const coord_sim *sim);

/** For a test that has failed: the seed, who waits for what, and the last 32 lines of the
 *  trace, which are kept without a trace sink, too. @param sink gets one line at a time;
 *  must not call libcoord. @thread any */
COORD_API void coord_sim_report(const coord_sim *sim, coord_sim_trace_fn *sink,
                                void *user);

/* ---- running the world ---- */

/* All of these answer COORD_ERR_STATE from a callback on a loop of this world, and when
 * a million events pass in one millisecond: something goes round in a circle. */

/** Does the next thing, moving the clock to it. False: there is none. @thread driver */
COORD_API bool coord_sim_step(coord_sim *sim);

/** Does all that is due in the next `ms` milliseconds. In a thread of this world: sleeps
 *  for so long. @thread driver, or a thread of this world */
COORD_API COORD_MUST_USE coord_status coord_sim_run_for(coord_sim *sim, int64_t ms,
                                                        coord_error *err);

/** Asked between two events, on the driver's thread; may call anything. */
typedef bool coord_sim_done_fn(void *user);

/** Runs until done() says true. @retval COORD_ERR_TIMEOUT `limit_ms` have passed; the
 *  cause in *err tells who waits for what: requests, calls, processes that stand still.
 *  @thread driver */
COORD_API COORD_MUST_USE coord_status coord_sim_run_until(coord_sim *sim,
                                                          int64_t limit_ms,
                                                          coord_sim_done_fn *done,
                                                          void *user, coord_error *err);

/** Runs until nothing is under way: no message travels, no job and no thread is ready.
 *  Timers, deadlines and programs that lie in the future do not count, nor what a paused
 *  process has before it. @retval COORD_ERR_TIMEOUT after `limit_ms`. @thread driver */
COORD_API COORD_MUST_USE coord_status coord_sim_run_until_idle(coord_sim *sim,
                                                               int64_t limit_ms,
                                                               coord_error *err);

/**
 * Starts a thread of this world, for calls that wait while others go on. It runs only
 * when the world runs, until it waits in libcoord or returns. It must not wait for
 * anything else.
 *
 * @param[out] ret  Yours: free with coord_sim_thread_join().
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_sim_thread_start(coord_sim *sim,
                                                             void (*run)(void *user),
                                                             void *user,
                                                             coord_sim_thread **ret,
                                                             coord_error *err);

/** Runs the world until the thread has returned, and frees it. @retval COORD_ERR_TIMEOUT
 *  it has not within `limit_ms`, and is still yours. @thread driver, or a thread of this
 *  world */
COORD_API COORD_MUST_USE coord_status coord_sim_thread_join(coord_sim_thread *thread,
                                                            int64_t limit_ms,
                                                            coord_error *err);

/* ---- faults ---- */

/* `from` and `to` are hosts as given to coord_sim_loop(), which need not exist yet; NULL
 * is any. Loopback traffic goes from a host to itself. */

/** One direction. Probabilities are from 0 to 1. */
typedef struct coord_sim_link {
    size_t size;            /**< written by coord_sim_link_init() */
    int64_t latency_min_ms; /**< default: the world's */
    int64_t latency_max_ms;
    double loss;         /**< of a request or an answer: vanishes after the connection
                          *   was made, so that the sender waits for its timeout */
    double duplicate;    /**< of a request on a kept connection: arrives twice */
    double reset_before; /**< of a request: the connection breaks, it never arrives */
    double reset_after;  /**< of a request: it arrives, the answer does not */
} coord_sim_link;

/** Fills in a link without faults that has the world's latency. @thread any */
COORD_API void coord_sim_link_init(const coord_sim *sim, coord_sim_link *link,
                                   size_t size);

/** Sets one direction, for what is sent from now on; copied. The pair wins over from,
 * from over to, to over any. @thread any */
COORD_API COORD_MUST_USE coord_status coord_sim_set_link(coord_sim *sim, const char *from,
                                                         const char *to,
                                                         const coord_sim_link *link,
                                                         coord_error *err);

/** Cuts one direction (true), what travels there included, or ends that cut (false). No
 *  connection can be made with either direction cut; over a kept one, the open direction
 *  still carries. Cuts add up, whatever coord_sim_set_link() says. @thread any */
COORD_API COORD_MUST_USE coord_status coord_sim_block(coord_sim *sim, const char *from,
                                                      const char *to, bool blocked,
                                                      coord_error *err);

/** Ends all cuts. @thread any */
COORD_API void coord_sim_heal(coord_sim *sim);

/**
 * Kills a process as SIGKILL does: its ports close, peers see refusals and resets, its
 * jobs, timers and threads stand still. Its objects are still the host's to destroy.
 * That lets the corpse finish what it had begun, cut off from the network, so that their
 * memory goes; callbacks may run then. Make no call on them but destroy.
 *
 * @thread any
 */
COORD_API void coord_sim_crash(coord_sim *sim, coord_loop *loop);

/** Stops a process as SIGSTOP does (true): it accepts and never answers. False: it goes
 *  on with what has gathered. @thread any */
COORD_API void coord_sim_pause(coord_sim *sim, coord_loop *loop, bool paused);

/** Makes the requests and answers of a loop look as if no libcoord had sent them: peers
 *  take it for a Python worker. @thread any */
COORD_API void coord_sim_set_foreign(coord_sim *sim, coord_loop *loop, bool foreign);

/** From now on writing files fails with ENOSPC (true), or works again. @thread any */
COORD_API void coord_sim_set_disk_full(coord_sim *sim, bool full);

/* ---- what is around ---- */

/* Files and the environment are the world's, the same for all its loops; empty first. */

/** Puts a file there, or replaces it; `content` is copied. @thread any */
COORD_API COORD_MUST_USE coord_status coord_sim_put_file(coord_sim *sim, const char *path,
                                                         coord_text content,
                                                         coord_error *err);

/** Looks at a file. @param[out] content borrowed until that file is written again.
 *  @retval COORD_ERR_NOT_FOUND no such file. @thread any */
COORD_API COORD_MUST_USE coord_status coord_sim_get_file(const coord_sim *sim,
                                                         const char *path,
                                                         coord_text *content,
                                                         coord_error *err);

/** Sets an environment variable; NULL removes it. Before the objects that read it are
 *  created. @thread setup */
COORD_API COORD_MUST_USE coord_status coord_sim_set_env(coord_sim *sim, const char *name,
                                                        const char *value,
                                                        coord_error *err);

#ifdef __cplusplus
}
#endif
#endif
