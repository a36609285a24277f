#ifndef ELASTIC_HOST_H
#define ELASTIC_HOST_H

#include "coord.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SAMPLE_SIZE = 512 };

/* A host as it would be anywhere else: it keeps every collector at work, and hands their
 * samples to the learner. It does not know where its workers come from. */
typedef struct host {
    CommCoordinator *coordinator;

    atomic_size_t samples; /* that have come */
    atomic_size_t steps;   /* that the learner has done */
    atomic_size_t moved;   /* tasks that began anew on another worker */
    atomic_size_t failed;  /* tasks that ended without finishing */
    atomic_bool ending;    /* no task is to go on */

    pthread_mutex_t lock; /* guards all that follows */
    size_t collectors;    /* that have come and not gone */
    size_t tasks;         /* of collectors, that have not ended */
    unsigned made;        /* tasks so far: their ids are numbered */
    char sample[SAMPLE_SIZE];
} host;

/* False, as everywhere here: stderr has been told why. */
bool host_start(host *h, const char *config);
bool host_learn(host *h);

/* Lets the tasks come to their ends, and takes no more. */
bool host_drain(host *h);

/* A number or boolean of the coordinator's status, such as "pools.collector.assigned"; -1
 * when there is none. */
int64_t host_status(host *h, const char *path);

/* Says goodbye to all workers. Takes a host that did not start. */
bool host_stop(host *h);

#endif
