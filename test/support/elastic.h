/* Pods that come and go under a load of tasks, and what has to hold all the while: no
 * task is lost, no pod is made twice, and free + assigned + quarantined = connected.
 *
 * Whom the operator server lists has a process soon after, and whom it no longer lists
 * has none soon after, as Kubernetes has it. Beside the pods there may be a collector
 * "c0" and a learner "l0" of the configuration, which nothing of all this touches. */
#ifndef TEST_SUPPORT_ELASTIC_H
#define TEST_SUPPORT_ELASTIC_H

#include "support/pods.h"

enum { ELASTIC_TASKS_MAX = 2000, ELASTIC_PODS_MAX = 256 };

typedef struct elastic_task {
    bool accepted;
    bool unsure; /* the coordinator died while it was posted */
    int ends;    /* in all lives of the coordinator */
    int life;    /* ... and in which the last was */
} elastic_task;

typedef struct elastic_pod {
    char id[32];
    coord_role role;
    bool listed;
    bool broken;     /* its process never runs */
    bool banned;     /* the host has removed it */
    int64_t up_ms;   /* that starts it */
    int64_t down_ms; /* that ends it, once it is not listed */
} elastic_pod;

typedef struct elastic {
    uint64_t seed;
    uint64_t chance;
    bool configured;  /* there are c0 and l0 */
    int64_t boot_ms;  /* longest start of a process */
    int64_t kill_ms;  /* longest life of one that is not listed; -1: not ended */
    int64_t break_in; /* one of so many pods never runs; 0: none */
    int64_t work_ms;  /* of workers that come; more or less */
    size_t most[3];   /* pods that there may be, by list */
    size_t wanted[3]; /* ... and that a start asks for */

    elastic_task tasks[ELASTIC_TASKS_MAX];
    int task_count;
    int open[2];  /* accepted and without an end, by role */
    int depth[2]; /* ... that many are to be */
    int done;
    int fails;
    char failure[800]; /* the first of them */
    int told[2][2];    /* increases, decreases, by role; in this life */
    int others;        /* workers that belong here by other means */
    bool host_has;     /* the host has added "h0", a collector */
    bool restarts;     /* the coordinator may start more than once */
    bool dying;        /* the coordinator was killed, and has not started since */
    bool eager;        /* a task is posted for each collector that comes */

    elastic_pod pods[ELASTIC_PODS_MAX];
    int pod_count;
    char complaint[256]; /* the first */
    pods p;              /* clears itself: it is large */
} elastic;

uint64_t elastic_draw(elastic *e, uint64_t count); /* 0 to count - 1 */

/* A world; its weather, workers and the lag of lists come from the seed. */
void elastic_open(elastic *e, uint64_t seed, int api);
/* Starts the coordinator, which asks for so many pods and gets them. `ask` and `more` as
 * for pods_begin(). */
void elastic_begin(elastic *e, int collectors, int learners, const char *ask,
                   const char *more);
/* The same, but the coordinator's process dies so long after it has asked for its pods.
 */
void elastic_begin_and_die(elastic *e, int collectors, int learners, const char *ask,
                           const char *more, int64_t after_ms);
/* So many pods from now on; nothing is waited for. */
void elastic_scale(elastic *e, int collectors, int learners);
/* How many pods of a role there are. */
int elastic_count(elastic *e, coord_role role);
/* The id of the n-th of them. */
const char *elastic_id(elastic *e, coord_role role, int n);
/* Ends its process; another one starts at its address after that time. */
void elastic_crash(elastic *e, const char *id, int64_t back_after_ms);
/* Time passes, with pods and load, and is looked at ever so often. */
void elastic_run(elastic *e, int64_t ms);
/* One look. */
void elastic_check(elastic *e);
/* Until exactly those that are listed work here; fails after limit_ms. */
void elastic_await_all(elastic *e, int64_t limit_ms);
/* Callbacks of this life: increases - decreases. */
int elastic_gain(const elastic *e);

/* The host removes a pod's worker, if it is known yet. */
void elastic_ban(elastic *e, const char *id, comm_coordinator_removal how);
/* The host adds or removes "h0". */
void elastic_host(elastic *e, bool has);
/* Stops its process as SIGSTOP does, or lets it go on. */
void elastic_pause(elastic *e, const char *id, bool paused);
/* No process is paused, none stays broken. */
void elastic_mend(elastic *e);

/* The coordinator's process dies, and comes back; without enough workers it does not
 * start, and may be tried again. `config`: pods_config(). */
void elastic_die(elastic *e);
bool elastic_come_back(elastic *e, const char *config);

/* No more load: all tasks end, all that is listed works here, all books agree. Tasks may
 * have failed only if `may_fail`. Closes and destroys all. */
void elastic_end(elastic *e, bool may_fail);

#endif
