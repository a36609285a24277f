/* Where host callbacks run.
 *
 * An executor owns threads; a lane is a queue of jobs that run one after the other. Lanes
 * of one executor run side by side, each on whichever thread is free.
 *   per_task  as many threads as there are open lanes: no lane ever waits for another
 *   pool      a fixed number of threads
 *   inline    no thread: jobs are posted to the loop itself */
#ifndef COORDI_ENV_LANE_H
#define COORDI_ENV_LANE_H

#include "env/env.h"

typedef struct coordi_executor coordi_executor;
typedef struct coordi_lane coordi_lane;

/* `threads` counts for the pool alone. Keeps a reference of the loop until the last
 * thread has ended. */
coord_status coordi_executor_create(coord_loop *loop, coord_executor kind, size_t threads,
                                    coordi_executor **ret, coord_error *err);

/* No more lanes are opened. Threads end, and memory goes, when the open lanes are closed
 * and their last job has returned. Never waits. Takes NULL. */
void coordi_executor_destroy(coordi_executor *executor);

/* Any lane that was opened has a thread: what can fail, fails here. */
coord_status coordi_lane_open(coordi_executor *executor, coordi_lane **ret,
                              coord_error *err);

/* Queues a job; never fails. The job runs under no lock, may call anything, and tells the
 * loop by posting that it is done. */
void coordi_lane_run(coordi_lane *lane, coordi_job *job);

/* No more jobs come. Those queued still run; then the lane goes. Takes NULL. */
void coordi_lane_close(coordi_lane *lane);

#endif
