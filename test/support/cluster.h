/* A simulated cluster for tests: a coordinator whose callbacks write down what they are
 * told, and collectors and learners with scripted work. */
#ifndef TEST_SUPPORT_CLUSTER_H
#define TEST_SUPPORT_CLUSTER_H

#include "coord.h"

enum { CLUSTER_WORKERS_MAX = 16, CLUSTER_EVENTS_MAX = 4096 };

/* What a worker does, and how far it has got. */
typedef struct cluster_worker {
    struct cluster *cluster;
    coord_role role;
    char id[32];
    char host[32];
    coord_loop *loop;
    coord_collector *collector;
    coord_learner *learner;
    int samples;        /* before a collector says that it is done */
    int learns;         /* before a learner says so */
    int count;          /* done of the running task */
    int starts;         /* tasks begun, ever */
    int fail_starts;    /* so many starts fail first */
    int fail_asks;      /* so many data or get_data requests fail first */
    int fail_learns;
    int fail_closes;
    bool no_resource;
} cluster_worker;

/* One callback. */
typedef struct cluster_event {
    char name[24];
    char task[32];
    char detail[200];
    int64_t at_ms;
} cluster_event;

typedef struct cluster {
    coord_sim *sim;
    coord_loop *loop;
    CommCoordinator *c;
    cluster_worker workers[CLUSTER_WORKERS_MAX];
    int worker_count;
    cluster_event events[CLUSTER_EVENTS_MAX];
    int event_count;
    int data_in_buffer;      /* samples that came, for get_data */
    bool hold_data;          /* get_data answers "not yet" whatever came */
    bool get_data_fails;
    void (*on_event)(struct cluster *k, const char *name, const char *task_id, void *user);
    void *on_event_user;
    char config[4096];
} cluster;

/* Makes the world and `collectors` + `learners` workers, "c0", "l0", ... with 3 samples and
 * 3 learns each. Asserts that it works. */
void cluster_init(cluster *k, uint64_t seed, int collectors, int learners);
/* Creates the coordinator; `more` is further configuration, such as "\"port\": 0," or "". */
void cluster_create(cluster *k, const char *more);
/* ... and starts it. */
void cluster_start(cluster *k, const char *more);
/* Closes and destroys whatever is there. */
void cluster_done(cluster *k);

cluster_worker *cluster_find(cluster *k, const char *id);
/* Crashes a worker; cluster_revive() makes a new one at its address. */
void cluster_crash(cluster *k, const char *id);
void cluster_revive(cluster *k, const char *id);

void cluster_post(cluster *k, coord_role role, const char *task_id);
int cluster_count(const cluster *k, const char *name, const char *task_id);
const cluster_event *cluster_last(const cluster *k, const char *name, const char *task_id);
/* Runs until that event was seen so often; false when limit_ms pass first. */
bool cluster_await(cluster *k, const char *name, const char *task_id, int times,
                   int64_t limit_ms);
/* The names of all events of a task, "a b c"; borrowed until the next call. */
const char *cluster_story(const cluster *k, const char *task_id);

#endif
