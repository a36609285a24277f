/* A cluster with a task "t" in a chosen state, and the faults that can strike the worker
 * that has it. What the matrix of states, faults and calls is made of. */
#ifndef TEST_SUPPORT_SCENE_H
#define TEST_SUPPORT_SCENE_H

#include "support/cluster.h"
#include "support/peers.h"

enum {
    SCENE_TOLERANCE_MS = 17000, /* until silence is loss ... */
    SCENE_NOTICED_MS = 20000,   /* ... and its task has ended */
    SCENE_CLOSE_MS = 10000,     /* close_timeout_s */
    SCENE_SEND_MS = 12000       /* queue_timeout_s + start_timeout_s + 2 s of grace */
};

typedef struct scene_spot {
    coord_role role;
    const char *state;
} scene_spot;

typedef struct scene {
    cluster k;
    const scene_spot *at;
    bool ledger;     /* with one */
    char worker[32]; /* has the task, or will have it */
    bool has_forger;
    peer forger;  /* sends results in the name of the worker */
    int accepted; /* tasks */
} scene;

typedef struct scene_fault {
    const char *name;
    void (*strike)(scene *s);
    /* The task has ended so long after it, whatever else is done; 0: it may go on. */
    int64_t ends_within_ms;
} scene_fault;

extern const scene_spot SCENE_SPOTS[];
extern const size_t SCENE_SPOT_COUNT;
/* ... and those that only a ledger brings about. */
extern const scene_spot SCENE_LEDGER_SPOTS[];
extern const size_t SCENE_LEDGER_SPOT_COUNT;
extern const scene_fault SCENE_FAULTS[];
extern const size_t SCENE_FAULT_COUNT;

/* Brings the task to the spot, with a ledger or without. Tells what it can not do by
 * failing. */
void scene_reach(scene *s, const scene_spot *at, bool ledger);
/* A coordinator that was not started, with one collector that takes its time. */
void scene_create(scene *s);
/* Everything works again. */
void scene_mend(scene *s);
/* "t" has its one end within so long. False: it has not. */
bool scene_await_end(scene *s, int64_t limit_ms);
/* The worker is free again, and does another task; unless the coordinator drains. Not
 * after close. */
void scene_expect_recovery(scene *s, bool drains);
void scene_done(scene *s);

#endif
