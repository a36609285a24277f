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
    int port;
    bool stranger; /* not in the configuration */
    coord_loop *loop;
    coord_collector *collector;
    coord_learner *learner;
    int samples;     /* before a collector says that it is done */
    int learns;      /* before a learner says so */
    int count;       /* done of the running task */
    int starts;      /* tasks begun, ever */
    char info[256];  /* of the last one, as it came */
    int fail_starts; /* so many starts fail first */
    int fail_asks;   /* so many data or get_data requests fail first */
    int fail_learns;
    int fail_closes;
    bool no_resource;
    bool stuck;      /* whatever it begins does not end; cluster_done() lets it go */
    bool obeys;      /* ... unless it is told that nobody waits for it any more */
    char log[64];    /* what it was asked that made sense, a letter each: r(esource),
                      * s(tart), d(ata) or g(et_data), l(earn), c(lose) */
    bool foreign;    /* is no libcoord, as far as others see; for cluster_revive(), too */
    int64_t work_ms; /* each start, data, get_data, learn and close takes so long */
    int64_t resource_ms; /* each resource request */
} cluster_worker;

/* One callback. Those about members are called "increase" and "decrease", and their task
 * is "collector" or "learner". */
typedef struct cluster_event {
    char name[24];
    char task[32];
    char detail[640];
    int64_t at_ms;
    int life; /* of the coordinator: 0 before its first crash */
    uint32_t attempt;
    uint64_t sequence;
} cluster_event;

typedef struct cluster {
    coord_sim *sim;
    coord_loop *loop;
    CommCoordinator *c;
    cluster_worker workers[CLUSTER_WORKERS_MAX];
    int worker_count;
    int event_count;    /* of the events below */
    int life;           /* crashes of the coordinator */
    int data_in_buffer; /* samples that came, for get_data */
    bool hold_data;     /* get_data answers "not yet" whatever came */
    bool get_data_fails;
    bool judge_says_no;       /* of collectors, whatever they say */
    const char *restart_text; /* what task_restart puts out; NULL: nothing */
    int64_t callback_ms;      /* each callback takes so long */
    char busy[64][32];        /* tasks whose callbacks run */
    int overlaps;             /* callbacks of one task at once: must stay 0 */
    bool closed;              /* close has returned COORD_OK ... */
    int after_close;          /* ... and a callback began afterwards: must stay 0 */
    /* What deal_with_discovery does; NULL when it is created: no such callback. */
    coord_status (*discover)(struct cluster *k, coord_out *out);
    void (*on_event)(struct cluster *k, const char *name, const char *task_id,
                     void *user);
    void *on_event_user;
    /* Optional: sees each callback as it begins, also those that find no room above. */
    void (*on_note)(struct cluster *k, const cluster_event *e, void *user);
    void *on_note_user;
    coord_log_fn *log; /* optional: sees the coordinator's log; user is the cluster */
    char config[4096];
    /* Last: megabytes that are not cleared for each world. */
    cluster_event events[CLUSTER_EVENTS_MAX];
} cluster;

/* Makes the world and `collectors` + `learners` workers, "c0", "l0", ... with 3 samples
 * and 3 learns each. Asserts that it works. */
void cluster_init(cluster *k, uint64_t seed, int collectors, int learners);
/* The same in a world with these options. */
void cluster_init_in(cluster *k, coord_sim_options options, int collectors, int learners);
/* One more worker, a stranger. */
cluster_worker *cluster_add(cluster *k, coord_role role, const char *id, const char *host,
                            int port);
/* Makes a worker look as if it were a Python worker. */
void cluster_set_foreign(cluster *k, const char *id);
/* The world of cluster_init() has these links between all of its machines. */
void cluster_link(cluster *k, const coord_sim_link *link);
/* Creates the coordinator; `more` is further configuration, such as "\"port\": 0," or "".
 */
void cluster_create(cluster *k, const char *more);
/* ... or tells why not. */
coord_status cluster_try_create(cluster *k, const char *more, coord_error *err);
/* ... and starts it. */
void cluster_start(cluster *k, const char *more);
/* Asks the coordinator to close; what it answers is seen in `closed`, too. */
coord_status cluster_close(cluster *k, coord_error *err);
/* Closes and destroys whatever is there, and checks that callbacks never overlapped and
 * that no memory is left. */
void cluster_done(cluster *k);
/* Checks that every connected worker is free, assigned or quarantined, in the status and
 * in the resource manager alike (G9). */
void cluster_check(cluster *k);

cluster_worker *cluster_find(cluster *k, const char *id);
/* Crashes a worker; cluster_revive() makes a new one at its address. */
void cluster_crash(cluster *k, const char *id);
/* Ends what serves at a worker's address, for somebody else on its loop to do so. */
void cluster_vacate(cluster *k, const char *id);
void cluster_revive(cluster *k, const char *id);
/* It has crashed, and never comes back: there is room for another. */
void cluster_forget(cluster *k, const char *id);

/* Kills the coordinator's process; _restart starts another at its address. */
void cluster_crash_coordinator(cluster *k);
void cluster_restart(cluster *k, const char *more);

/* State of a task or of a worker, as the status names it; "" when there is none. Static.
 */
const char *cluster_task_state(cluster *k, const char *task_id);
const char *cluster_worker_state(cluster *k, const char *id);
bool cluster_await_task(cluster *k, const char *task_id, const char *state,
                        int64_t limit_ms);
bool cluster_await_worker(cluster *k, const char *id, const char *state,
                          int64_t limit_ms);
void cluster_run(cluster *k, int64_t ms);

void cluster_post(cluster *k, coord_role role, const char *task_id);
/* "{"task_id": ..., "buffer_id": "b"}"; static, until the next call. */
coord_text cluster_task(const char *task_id);
/* Finish and fail callbacks of a task; all when NULL. */
int cluster_ends(const cluster *k, const char *task_id);
int cluster_count(const cluster *k, const char *name, const char *task_id);
const cluster_event *cluster_last(const cluster *k, const char *name,
                                  const char *task_id);
/* Runs until that event was seen so often; false when limit_ms pass first. */
bool cluster_await(cluster *k, const char *name, const char *task_id, int times,
                   int64_t limit_ms);
/* The names of all events of a task, "a b c"; borrowed until the next call. */
const char *cluster_story(const cluster *k, const char *task_id);

#endif
