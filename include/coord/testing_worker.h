/**
 * @file testing_worker.h
 * Scripted collectors and learners for a coord_sim: whole workers that do made-up work
 * and misbehave where a test says so. What a host's callbacks are tested against.
 *
 * A worker has a machine of its own and belongs to its world, which takes it down with
 * coord_sim_destroy(). It answers the requests of a coordinator in *steps*: what it has
 * (RESOURCE), a task begins (START), a collector's sample or a learner's wish for a batch
 * (DATA), a collector's progress or a learner's step (INFO), the task ends (CLOSE).
 *
 *     coord_sim_fault dies = {.what = COORD_SIM_FAULT_CRASH,
 *                             .at = COORD_SIM_STEP_DATA, .nth = 2};
 *     coord_sim_worker_options_init(&options, sizeof options);
 *     options.faults = &dies;
 *     options.fault_count = 1;
 *     coord_sim_worker_add(sim, &options, &collector0, &err);
 *     coord_sim_worker_config(sim, "host", NULL, &config, &err);
 */
#ifndef COORD_TESTING_WORKER_H
#define COORD_TESTING_WORKER_H

#include "coord/out.h"
#include "coord/resource_manager.h"
#include "coord/testing.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_sim_worker coord_sim_worker;

/** What a worker is asked to do. */
typedef enum coord_sim_worker_step {
    COORD_SIM_STEP_ANY = 0,
    COORD_SIM_STEP_RESOURCE = 1, /**< tell what it has, when a coordinator connects, and
                                  *   after each task */
    COORD_SIM_STEP_START = 2,    /**< begin a task */
    COORD_SIM_STEP_DATA = 3,     /**< collector: a sample; learner: ask for a batch */
    COORD_SIM_STEP_INFO = 4, /**< collector: progress; learner: learn and tell of it */
    COORD_SIM_STEP_CLOSE = 5 /**< end the task */
} coord_sim_worker_step;

/** How a worker misbehaves. */
typedef enum coord_sim_fault_kind {
    COORD_SIM_FAULT_FAIL = 0,    /**< says that it failed; at START it refuses the task */
    COORD_SIM_FAULT_HANG = 1,    /**< never ends the step, and goes on with heartbeats */
    COORD_SIM_FAULT_CRASH = 2,   /**< dies as by SIGKILL: refuses connections */
    COORD_SIM_FAULT_SILENCE = 3, /**< stands still as by SIGSTOP: never answers */
} coord_sim_fault_kind;

/** One misbehaviour at one point. What is zero is the default. */
typedef struct coord_sim_fault {
    coord_sim_fault_kind what;
    coord_sim_worker_step at; /**< which steps count; default any */
    uint64_t nth;             /**< the n-th of them, from 1, since the worker was added,
                               *   crashes included; default the first */
    uint64_t times;           /**< so many of them in a row; default one */
    const char *words;        /**< what it says when it fails; default "as scripted" */
    int64_t back_after_ms;    /**< after a crash it starts anew, after a silence it goes
                               *   on, so much later; default 0: never */
    uint64_t reserved[4];
} coord_sim_fault;

/**
 * Makes the worker's answer to a step: JSON into `out`. Whatever leaves `out` empty gets
 * the default answer; a failure fails the step, with the text of `err`.
 *
 * @param n   Counts from 1: DATA and INFO that were answered in the running task, so that
 *            one that fails is asked for again; all of its kind for the other steps.
 * @param in  The task's info; for a learner's INFO the batch; else empty. Borrowed.
 * @thread one of the world's, or the one that runs the world. It must not wait.
 */
typedef coord_status coord_sim_answer_fn(coord_sim_worker *worker,
                                         coord_sim_worker_step step, uint64_t n,
                                         coord_text in, coord_out *out, coord_error *err,
                                         void *user);

typedef struct coord_sim_worker_options {
    size_t size;          /**< written by coord_sim_worker_options_init() */
    coord_role role;      /**< default COORD_COLLECTOR */
    const char *id;       /**< default "collector0", "collector1", "learner0", ... */
    const char *host;     /**< its machine, as for coord_sim_loop(); default its id */
    uint16_t port;        /**< default 22270; 0: any free port */
    uint64_t samples;     /**< of a collector: so many before it tells of progress with
                           *   "collector_done": true, and so on; default 3 */
    uint64_t learn_steps; /**< of a learner: so many before its info says "learner_done":
                           *   true; default 3 */
    int64_t batch_size;   /**< that a learner asks for; default 4 */
    const char *resource; /**< JSON object: what it has; default "{}" */
    int64_t step_ms[8];   /**< by coord_sim_worker_step: virtual ms that one takes; [ANY]:
                           *   those that are 0; default 0 */
    const coord_sim_fault *faults; /**< its script; the first that fits happens */
    size_t fault_count;
    bool foreign;                /**< looks like a Python worker; default false */
    int64_t heartbeat_ms;        /**< as of coord_slave_options; default 3000 */
    int32_t channel;             /**< must be the coordinator's; default 0 */
    coord_sim_answer_fn *answer; /**< optional */
    void *user;                  /**< passed to answer */
} coord_sim_worker_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_sim_worker_options_init(coord_sim_worker_options *options,
                                             size_t size);

/**
 * Puts a worker into the world; it listens when this returns.
 *
 * Unless `answer` says otherwise the n-th sample of collector "c" is {"data_id": "c-n"},
 * its progress {"collector_done": true, "samples": n}, each with the task's id and
 * buffer; a learner's info is {"learner_step": n, "learner_done": false}. What it tells
 * at the end is {"samples": n} or {"learner_step": n}.
 *
 * @param options   Optional: a collector. Copied, texts and faults too.
 * @param[out] ret  Optional. Borrowed: lives as long as the world.
 * @retval COORD_ERR_ARG     An option is out of range; err->text names it.
 * @retval COORD_ERR_EXISTS  The world has a worker of that role and id.
 * @retval COORD_ERR_IO      Somebody listens on that host and port.
 * @retval COORD_ERR_STATE   In code that this world runs on a loop.
 * @thread driver, or a thread of this world
 */
COORD_API COORD_MUST_USE coord_status
coord_sim_worker_add(coord_sim *sim, const coord_sim_worker_options *options,
                     coord_sim_worker **ret, coord_error *err);

/**
 * Writes the configuration of a coordinator that lives on `host` and has all workers of
 * this world.
 *
 * @param more      Optional: a JSON object of further keys, such as {"max_reassign": 1}.
 * @param[out] ret  Yours: free with coord_free(). Closed by a NUL.
 * @retval COORD_ERR_FORMAT  `more` is not a well-formed object.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_sim_worker_config(
    coord_sim *sim, const char *host, const char *more, char **ret, coord_error *err);

/* ---- misbehaving on a word ---- */

/** Kills the worker's process; `back_after_ms` later it starts anew, with nothing that it
 *  knew, at the same address. 0: never. A dead one only gets the new time. @thread any */
COORD_API void coord_sim_worker_crash(coord_sim_worker *worker, int64_t back_after_ms);

/** Stops the worker's process as SIGSTOP does; `back_after_ms` later it goes on. 0:
 *  never. Nothing happens to a dead one. @thread any */
COORD_API void coord_sim_worker_silence(coord_sim_worker *worker, int64_t back_after_ms);

/** Starts a dead worker anew, or lets a silent one go on, as soon as the world runs.
 *  @thread any */
COORD_API void coord_sim_worker_revive(coord_sim_worker *worker);

/* ---- looking ---- */

/** What is counted, since the worker was added. */
typedef enum coord_sim_worker_counter {
    COORD_SIM_COUNT_STEPS = 0,   /**< all that it was asked to do */
    COORD_SIM_COUNT_STARTED = 1, /**< tasks begun */
    COORD_SIM_COUNT_CLOSED = 2,  /**< tasks ended by a CLOSE */
    COORD_SIM_COUNT_FAILED = 3,  /**< steps that it said had failed */
    COORD_SIM_COUNT_DONE = 4,    /**< samples handed out; learn steps done */
    COORD_SIM_COUNT_CRASHES = 5
} coord_sim_worker_counter;

/** @thread any */
COORD_API uint64_t coord_sim_worker_count(const coord_sim_worker *worker,
                                          coord_sim_worker_counter what);

/** Is its process alive? Silent counts as alive. @thread any */
COORD_API bool coord_sim_worker_is_up(const coord_sim_worker *worker);

/** Does it think that a coordinator is connected? @thread any */
COORD_API bool coord_sim_worker_is_connected(const coord_sim_worker *worker);

/** The info of the last task it was given, as it came; empty before the first. Borrowed
 *  until it is given the next. Closed by a NUL. @thread any */
COORD_API coord_text coord_sim_worker_last_task(const coord_sim_worker *worker);

/** Id, as in the configuration; lives as long as the world. @thread any */
COORD_API const char *coord_sim_worker_id(const coord_sim_worker *worker);

/** Machine, for coord_sim_block() and its like; lives as long as the world. @thread any
 */
COORD_API const char *coord_sim_worker_host(const coord_sim_worker *worker);

/** Port it listens on. @thread any */
COORD_API uint16_t coord_sim_worker_port(const coord_sim_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
