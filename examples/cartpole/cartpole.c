#include "cartpole.h"

#include <math.h>

static const double GRAVITY = 9.8;
static const double POLE_MASS = 0.1;
static const double TOTAL_MASS = 0.1 + 1.0;       /* pole and cart */
static const double HALF_LENGTH = 0.5;            /* of the pole */
static const double POLE_MASS_LENGTH = 0.1 * 0.5; /* pole mass times half length */
static const double FORCE = 10.0;
static const double TAU = 0.02; /* seconds between two steps */

static const double X_LIMIT = 2.4;
static const double THETA_LIMIT = 12.0 * 2.0 * 3.14159265358979323846 / 360.0;
static const double START_RANGE = 0.05;

void cartpole_init(cartpole *env, uint64_t seed)
{
    rng_seed(&env->rng, seed, 0);
    cartpole_reset(env);
}

void cartpole_reset(cartpole *env)
{
    env->x = rng_uniform(&env->rng, -START_RANGE, START_RANGE);
    env->x_dot = rng_uniform(&env->rng, -START_RANGE, START_RANGE);
    env->theta = rng_uniform(&env->rng, -START_RANGE, START_RANGE);
    env->theta_dot = rng_uniform(&env->rng, -START_RANGE, START_RANGE);
    env->steps = 0;
}

/* One explicit Euler step: positions move with the velocities from before the push. */
static void integrate(cartpole *env, double force)
{
    const double cosine = cos(env->theta);
    const double sine = sin(env->theta);
    const double spin = env->theta_dot * env->theta_dot;

    const double push = (force + POLE_MASS_LENGTH * spin * sine) / TOTAL_MASS;
    const double theta_acc =
        (GRAVITY * sine - cosine * push) /
        (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
    const double x_acc = push - POLE_MASS_LENGTH * theta_acc * cosine / TOTAL_MASS;

    env->x += TAU * env->x_dot;
    env->x_dot += TAU * x_acc;
    env->theta += TAU * env->theta_dot;
    env->theta_dot += TAU * theta_acc;
}

cartpole_outcome cartpole_step(cartpole *env, int action)
{
    integrate(env, action == 1 ? FORCE : -FORCE);
    env->steps++;

    return (cartpole_outcome){
        .reward = 1.0F,
        .terminated = env->x < -X_LIMIT || env->x > X_LIMIT ||
                      env->theta < -THETA_LIMIT || env->theta > THETA_LIMIT,
        .truncated = env->steps >= CARTPOLE_MAX_STEPS,
    };
}

void cartpole_observe(const cartpole *env, float obs[CARTPOLE_OBS])
{
    obs[0] = (float)env->x;
    obs[1] = (float)env->x_dot;
    obs[2] = (float)env->theta;
    obs[3] = (float)env->theta_dot;
}
