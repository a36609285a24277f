/* A real loop with a thread of its own, and a way to do things on it and wait. */
#ifndef TEST_SUPPORT_ENV_RIG_H
#define TEST_SUPPORT_ENV_RIG_H

#include "env/env.h"

typedef struct env_rig {
    coord_loop *loop;
    coordi_event *event; /* for on-loop code to say that it is done */
} env_rig;

/* `log` may be NULL. */
void env_rig_open(env_rig *rig, coord_log_fn *log, void *user);
void env_rig_close(env_rig *rig); /* every thread is joined when it returns */

/* Runs a function on the loop and returns when it has. */
void env_rig_do(env_rig *rig, void (*run)(void *arg), void *arg);

/* Waits for somebody to set rig->event. */
bool env_rig_await(env_rig *rig);
void env_rig_wake(env_rig *rig);

#endif
