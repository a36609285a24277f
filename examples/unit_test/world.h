/* What every test begins and ends with: a world, a host in it, and workers. */
#ifndef UNIT_TEST_WORLD_H
#define UNIT_TEST_WORLD_H

#include "host.h"

typedef struct world {
    coord_sim *sim;
    coord_loop *loop; /* the host's machine */
    host *host;
} world;

/* SEED=n repeats a run that failed. */
void world_open(world *w, uint64_t seed);
/* A worker of this role, with one fault if `fault` is not NULL. */
coord_sim_worker *world_add(world *w, coord_role role, const coord_sim_fault *fault);
/* When all workers are there: makes the host, and starts it. */
void world_start(world *w, host_goal goal);
void world_close(world *w);

/* Fails the test unless this is COORD_OK, and tells why and what the world is at. */
void world_must(world *w, coord_status rc, const coord_error *err);

#endif
