/**
 * @file worker.h
 * Slaves that know what a coordinator asks of them. The host fills in what a collector or
 * a learner does; names, ids and refusals of the task protocol are seen to here.
 * (DI-engine: `ding.worker` comm collectors and learners.)
 */
#ifndef COORD_WORKER_H
#define COORD_WORKER_H

#include "coord/slave.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_collector coord_collector;
typedef struct coord_learner coord_learner;

/**
 * One step of a worker. `in` is JSON, borrowed until the function returns; what goes into
 * `out` must be a JSON object. COORD_OK completes the step; any other status fails it,
 * and the coordinator retries or gives up; the text of `err` is what it is told. A long
 * step asks coord_slave_task_canceled(slave) now and then, and returns when it says yes.
 *
 * @thread a thread of the worker's executor, one call at a time
 */
typedef coord_status coord_worker_fn(coord_slave *slave, coord_text in, coord_out *out,
                                     coord_error *err, void *user);

/** What a collector does. */
typedef struct coord_collector_callbacks {
    size_t size;               /**< written by coord_collector_callbacks_init() */
    coord_worker_fn *resource; /**< optional: `out` = what it has, such as {"cpu": 2};
                                * `in` is empty. Default `{}` */
    coord_worker_fn *start;    /**< required: `in` = the task's info */
    coord_worker_fn *data;  /**< required: `out` = a sample's metadata with "data_id", or
                             * progress without. task_id and buffer_id are added. `in` is
                             * the task's info */
    coord_worker_fn *close; /**< optional: `out` = the summary; task_id is added */
    void *user;             /**< passed to the functions */
} coord_collector_callbacks;

/** What a learner does. */
typedef struct coord_learner_callbacks {
    size_t size;               /**< written by coord_learner_callbacks_init() */
    coord_worker_fn *resource; /**< as for a collector */
    coord_worker_fn *start;    /**< required: `in` = the task's info */
    coord_worker_fn
        *get_data;          /**< required: `out` = {"batch_size": n,
                             * "cur_learner_iter": n}; task_id and buffer_id are added */
    coord_worker_fn *learn; /**< required: `in` = the list of samples' metadata, `out` =
                             * the step's info object */
    coord_worker_fn *close; /**< optional: `out` = a summary; task_id, buffer_id added */
    void *user;             /**< passed to the functions */
} coord_learner_callbacks;

/** Fills in this build's defaults (all NULL). @thread any */
COORD_API void coord_collector_callbacks_init(coord_collector_callbacks *callbacks,
                                              size_t size);
/** Fills in this build's defaults (all NULL). @thread any */
COORD_API void coord_learner_callbacks_init(coord_learner_callbacks *callbacks,
                                            size_t size);

/**
 * Creates a collector and listens.
 *
 * @param options    Of its slave; process_task must be NULL, it is ours. `user` is passed
 *                   to the hooks and the log, not to `callbacks`.
 * @param callbacks  Copied.
 * @param[out] ret   Yours: free with coord_collector_destroy().
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_collector_create(
    const coord_slave_options *options, const coord_collector_callbacks *callbacks,
    coord_collector **ret, coord_error *err);

/** The slave inside, for port, close and so on; do not destroy it. @thread any */
COORD_API coord_slave *coord_collector_slave(coord_collector *collector);

/** As coord_slave_destroy(). Takes NULL. @thread any */
COORD_API void coord_collector_destroy(coord_collector *collector);

/** Creates a learner and listens; all as for a collector. @thread any */
COORD_API COORD_MUST_USE coord_status coord_learner_create(
    const coord_slave_options *options, const coord_learner_callbacks *callbacks,
    coord_learner **ret, coord_error *err);

/** The slave inside, for port, close and so on; do not destroy it. @thread any */
COORD_API coord_slave *coord_learner_slave(coord_learner *learner);

/** As coord_slave_destroy(). Takes NULL. @thread any */
COORD_API void coord_learner_destroy(coord_learner *learner);

#ifdef __cplusplus
}
#endif
#endif
