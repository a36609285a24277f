#ifndef CARTPOLE_HOST_H
#define CARTPOLE_HOST_H

#include "history.h"
#include "run_folder.h"
#include "settings.h"

#include "coord.h"

/* What the coordinator calls: it decides who does what next, and when it is solved.
 *
 * The learner has one task for the whole run. Collectors get a task for each chunk and
 * for each evaluation. There are as many chunks, unused or being played, as an update
 * needs: the next batch is played while the learner works on this one, and nobody runs
 * further ahead. That is counted, not timed: a collector may be slow, or gone. */
typedef struct host host;

typedef enum host_state {
    HOST_RUNNING,
    HOST_SOLVED,
    HOST_FAILED,
    HOST_STOPPED, /* by host_stop() */
} host_state;

/* A snapshot. */
typedef struct host_view {
    host_state state;
    char why[512]; /* with HOST_FAILED */
    int64_t version;
    int64_t env_steps;
    bool evaluated; /* ever? then: */
    double evaluation;
    int64_t solved_version; /* with HOST_SOLVED */
    int64_t solved_env_steps;
    double solved_means[2];
} host_view;

/* `wake_fd` is an eventfd, which is written to when the state has changed. What is given
 * must live as long as the host. */
coord_status host_create(const settings *set, const run_folder *folder, history *lines,
                         int wake_fd, host **ret, coord_error *err);

/* Once the coordinator is closed. Takes NULL. */
void host_destroy(host *h);

void host_callbacks(host *h, comm_coordinator_callbacks *ret);

/* Sends the first task; all others follow from it. */
void host_begin(host *h, CommCoordinator *c);

/* A worker process has ended. */
void host_worker_ended(host *h, coord_role role, const char *name, const char *how);

/* Ends the run as failed, unless it has an end already. */
void host_fail(host *h, const char *format, ...) COORD_PRINTF(2, 3);

/* From here on nothing new begins, and failing tasks are no news. */
void host_stop(host *h);

void host_look(host *h, host_view *ret);

#endif
