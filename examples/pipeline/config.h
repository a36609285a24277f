#ifndef PIPELINE_CONFIG_H
#define PIPELINE_CONFIG_H

#include "coord.h"

typedef struct task {
    char id[COORD_ID_SIZE];
    coord_text text; /* as it stands in the file */
    coord_role role;
    int64_t learned; /* steps of its present attempt; its own callbacks alone touch it */
} task;

typedef struct config {
    char *text;        /* the file: tasks borrow from it */
    char *coordinator; /* what the library is given */
    task *tasks;       /* learners first */
    size_t task_count;
    coord_text each;       /* a task for each collector; ptr NULL: none */
    size_t collectors;     /* that the coordinator's configuration names */
    int64_t learner_iters; /* 0: learners know themselves when they are done */
    int64_t timeout_ms;    /* 0: no limit */
} config;

/* Reads and checks the file. False: stderr has been told what is wrong, and where. */
bool config_read(const char *path, config *ret);

/* NULL: there is none of that name. */
task *config_find_task(const config *c, const char *id);

void config_done(config *c);

#endif
