/* A small host, to be tested: it keeps what collectors hand over, gives learners batches
 * of the newest, and ends tasks when it has enough. */
#ifndef UNIT_TEST_HOST_H
#define UNIT_TEST_HOST_H

#include "coord.h"

typedef struct host host;

enum { HOST_SAMPLES_KEPT = 64 };

/* When the host has enough. */
typedef struct host_goal {
    int samples;     /* ends collector tasks, when their worker tells of progress */
    int learn_steps; /* ends learner tasks */
} host_goal;

/* What has happened so far. */
typedef struct host_counts {
    int samples;  /* that came; the newest are kept */
    int asked;    /* times that learners wanted a batch */
    int batches;  /* that they got */
    int steps;    /* that they told of */
    int restarts; /* tasks that moved to another worker */
    int finished; /* tasks that did, and those that did not */
    int failed;
    coord_error why; /* of the last restart or failure */
} host_counts;

/* `loop` is NULL in real life. NULL: *err says why. */
host *host_create(const char *config, coord_loop *loop, host_goal goal, coord_error *err);
void host_destroy(host *h); /* takes NULL */

coord_status host_start(host *h, coord_error *err);
coord_status host_collect(host *h, const char *task_id, coord_error *err);
coord_status host_learn(host *h, const char *task_id, coord_error *err);
/* Until all tasks have ended. */
coord_status host_wait(host *h, int64_t wait_ms, coord_error *err);
coord_status host_close(host *h, coord_error *err);

host_counts host_look(host *h);

#endif
