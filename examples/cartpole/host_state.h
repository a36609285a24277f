#ifndef CARTPOLE_HOST_STATE_H
#define CARTPOLE_HOST_STATE_H

#include "buffer.h"
#include "exam.h"
#include "host.h"

#include <pthread.h>

/* What the files host*.c share. */
struct host {
    const settings *set;
    const run_folder *folder;
    int wake_fd;

    /* Callbacks of different tasks run side by side: the lock guards everything below.
     * It is not held while libcoord is called. */
    pthread_mutex_t lock;
    host_state state;
    char why[512];
    history *history;
    buffer buffer;
    exam exam;
    int64_t version; /* newest one */
    int64_t env_steps;
    int64_t exam_env_steps; /* when the version under evaluation was the newest */
    int64_t oldest_policy;  /* whose file is there */
    int64_t next_task;      /* for ids */
    size_t collecting;      /* collect tasks that have not ended */
    size_t collectors;      /* alive */
    int failures;           /* of collectors' tasks, without a success in between */
};

/* The same as host_fail() under the lock. */
void host_fail_locked(host *h, const char *format, ...) COORD_PRINTF(2, 3);

/* Ends the run; under the lock. False: it has ended before. */
bool host_end_locked(host *h, host_state state);

bool host_is_evaluation(const char *task_id);

/* Fill in those of one role. */
void host_collector_callbacks(comm_coordinator_callbacks *ret);
void host_learner_callbacks(comm_coordinator_callbacks *ret);

/* Queue tasks. None waits. */
void host_post_learner(host *h, CommCoordinator *c);
void host_post_collectors(host *h, CommCoordinator *c); /* as many as are missing */
void host_post_exam(host *h, CommCoordinator *c);       /* the round that is due */
void host_evaluate_if_due(host *h, CommCoordinator *c); /* the newest version */

#endif
