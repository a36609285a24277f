#ifndef CARTPOLE_CARTPOLE_H
#define CARTPOLE_CARTPOLE_H

#include "rng.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CARTPOLE_OBS = 4,         /* x, x_dot, theta, theta_dot */
    CARTPOLE_ACTIONS = 2,     /* 0 pushes to the left, 1 to the right */
    CARTPOLE_MAX_STEPS = 500, /* an episode that gets so far is truncated */
};

/* Gymnasium's CartPole-v1. Plain data: environments share nothing, any number of them
 * may be stepped in any order. */
typedef struct cartpole {
    double x;         /* m */
    double x_dot;     /* m/s */
    double theta;     /* rad, 0 is upright */
    double theta_dot; /* rad/s */
    int steps;        /* of the running episode */
    rng rng;          /* for the starting states */
} cartpole;

/* Both flags are set when the last allowed step also leaves the limits, as in
 * Gymnasium. After either one only cartpole_reset() is meaningful. */
typedef struct cartpole_outcome {
    float reward; /* 1 for every step, also for the one that ends the episode */
    bool terminated;
    bool truncated;
} cartpole_outcome;

/* Seeds the environment and starts its first episode. */
void cartpole_init(cartpole *env, uint64_t seed);

/* Starts an episode near the upright position. */
void cartpole_reset(cartpole *env);

cartpole_outcome cartpole_step(cartpole *env, int action);

void cartpole_observe(const cartpole *env, float obs[CARTPOLE_OBS]);

#endif
