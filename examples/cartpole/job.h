#ifndef CARTPOLE_JOB_H
#define CARTPOLE_JOB_H

#include "paths.h"

#include "coord.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_ENVS_MAX = 100, JOB_STEPS_MAX = 65536, JOB_EPISODES_MAX = 100000 };

/* What a task asks of a collector. */
typedef struct job {
    bool evaluate;
    char collector_id[NAME_SIZE];
    char folder[PATH_SIZE];
    int64_t seed;
    int64_t envs; /* of a collect task, and steps of each */
    int64_t steps;
    int64_t version; /* of an evaluate task, and how many episodes */
    int64_t episodes;
} job;

/* Reads a task's info. A member that is missing or out of range is COORD_ERR_FORMAT or
 * COORD_ERR_NOT_FOUND. */
coord_status job_read(coord_text task, job *ret, coord_error *err);

#endif
