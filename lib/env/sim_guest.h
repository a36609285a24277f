/* For floors above that put something into a simulated world, beyond what
 * coord/testing.h has for everybody: guests live there and go with it. */
#ifndef COORDI_ENV_SIM_GUEST_H
#define COORDI_ENV_SIM_GUEST_H

#include "coord/testing.h"
#include "env/env.h"

typedef struct coordi_sim_guest coordi_sim_guest;
struct coordi_sim_guest {
    coordi_link link; /* env's */
    /* The world is given back: destroys what it has on loops, and waits for nothing. */
    void (*leave)(coordi_sim_guest *guest);
    /* Nothing runs in the world any more: frees the guest. */
    void (*release)(coordi_sim_guest *guest);
};

/* For ever. Any thread. */
void coordi_sim_guest_add(coord_sim *sim, coordi_sim_guest *guest);

/* The guest that came next, or the first (NULL); NULL: there is none. Any thread. */
coordi_sim_guest *coordi_sim_guest_next(coord_sim *sim, const coordi_sim_guest *guest);

/* The world's lock, for what a guest shares between threads: nothing of the environment
 * may be called under it. Any thread. */
void coordi_sim_guest_lock(coord_sim *sim);
void coordi_sim_guest_unlock(coord_sim *sim);

/* May the calling thread make calls that wait? Any thread. */
bool coordi_sim_may_wait(coord_sim *sim);

/* A line of the trace, as an event of this loop. Any thread. */
void coordi_sim_note(coord_loop *loop, const char *what, const char *detail);

#endif
