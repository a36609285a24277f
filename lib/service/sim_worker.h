/* Scripted workers: the inside. See coord/testing_worker.h for their public face.
 *
 * Vocabulary
 *   worker  a guest of its world, for ever
 *   life    one process of a worker, from its start to its crash; its loop, its slave
 *   keeper  a second loop on the worker's machine, which outlives crashes: buries the
 *           dead, and brings the worker back
 *   serve   what a life does with one step that it is asked for
 *
 * Memory of lives stays until the world ends: callbacks of a dead one may still run.
 * Fields "shared" are under the world's lock; the rest belongs to the life's lane. */
#ifndef COORDI_SERVICE_SIM_WORKER_H
#define COORDI_SERVICE_SIM_WORKER_H

#include "coord/testing_worker.h"
#include "coord/worker.h"
#include "env/sim_guest.h"

enum { COORDI_SIM_STEPS = 6, COORDI_SIM_COUNTERS = 6 };

typedef struct coordi_sim_life {
    coordi_job rise; /* on its own loop */
    struct coordi_sim_life *before;
    coord_sim_worker *worker;
    coord_loop *loop;
    /* Shared */
    coord_collector *collector; /* one of them; NULL: not yet, or buried */
    coord_learner *learner;
    bool dead;
    bool buried;
    bool silent;
    /* Of the running task */
    uint64_t answered[COORDI_SIM_STEPS];
    uint64_t in_round; /* samples since the last progress */
} coordi_sim_life;

struct coord_sim_worker {
    coordi_sim_guest guest;
    coord_sim *sim;
    coord_sim_worker_options options; /* texts and faults are its own */
    coord_loop *keeper;
    coordi_timer back; /* on the keeper */
    coordi_job tend;   /* on the keeper */
    /* Shared */
    coordi_sim_life *lives; /* all, the latest first */
    bool tending;           /* `tend` is on its way */
    bool reviving;
    bool left; /* the world is given back */
    int64_t back_after_ms;
    uint64_t asked[COORDI_SIM_STEPS]; /* by step; [ANY]: all */
    uint64_t counts[COORDI_SIM_COUNTERS];
    char *last_task;
    size_t last_task_len;
};

/* ---- sim_worker.c: lives ---- */

/* Has the life ended meanwhile? */
bool coordi_sim_life_is_over(const coordi_sim_life *life);

/* ---- sim_worker_options.c ---- */

/* Copies, checks and fills in; `index` counts the workers of that role in the world. */
coord_status coordi_sim_worker_adopt(coord_sim_worker *worker,
                                     const coord_sim_worker_options *options,
                                     coord_error *err);
void coordi_sim_worker_free_options(coord_sim_worker *worker);
/* Has the script something that needs a thread to wait in? */
bool coordi_sim_worker_takes_time(const coord_sim_worker *worker);
/* NULL: this guest is no worker. */
coord_sim_worker *coordi_sim_worker_of(coordi_sim_guest *guest);

/* ---- sim_worker_script.c ---- */

/* What a life's slave does; `life` is the user pointer. */
void coordi_sim_worker_collect(coordi_sim_life *life, coord_collector_callbacks *ret);
void coordi_sim_worker_learn(coordi_sim_life *life, coord_learner_callbacks *ret);

#endif
