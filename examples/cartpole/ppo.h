#ifndef CARTPOLE_PPO_H
#define CARTPOLE_PPO_H

#include "adam.h"
#include "array.h"
#include "chunk.h"
#include "mlp.h"
#include "policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ppo_options {
    float gamma;         /* discount */
    float lambda;        /* of the advantage estimates */
    float clip;          /* how far a probability's ratio may be rewarded to move */
    float entropy;       /* weight of the entropy bonus */
    float rate;          /* learning rate of both networks */
    float max_grad_norm; /* of each network */
    size_t epochs;       /* passes over a batch */
    size_t minibatch;    /* samples */
    float max_kl;        /* a pass that moved the policy further is the last */
} ppo_options;

/* The learner: everything that training has to remember from update to update. Update
 * number n draws its random numbers from (seed, n), so a learner that is saved and
 * restored goes on as if nothing had happened. */
typedef struct ppo {
    ppo_options options;
    int64_t seed;
    int64_t updates; /* also the version of the policy */
    int64_t env_steps;
    mlp *policy;
    mlp *value;
    adam *policy_adam;
    adam *value_adam;
} ppo;

/* Means over the samples of one update. */
typedef struct ppo_report {
    size_t steps;  /* in the batch */
    size_t epochs; /* done */
    double policy_loss;
    double value_loss;
    double entropy;
    double kl;      /* after the last epoch */
    double clipped; /* share */
} ppo_report;

enum { PPO_STATE_ARRAYS = 6 * POLICY_ARRAYS + 5 };

/* Settings that solve CartPole. */
void ppo_options_init(ppo_options *options);

/* A learner with a random policy. NULL when out of memory. */
ppo *ppo_create(const ppo_options *options, int64_t seed);

/* Takes NULL. */
void ppo_destroy(ppo *p);

/* Learns from one batch of valid chunks and raises the version. The chunks' policy may
 * be a few versions old: the loss compares with the probabilities of that time. False
 * when out of memory; nothing has changed then. */
bool ppo_update(ppo *p, const chunk *const *chunks, size_t count, ppo_report *ret);

/* What collectors need: the arrays `layers.<i>.weight` and `layers.<i>.bias`. */
void ppo_policy_arrays(ppo *p, named_array out[POLICY_ARRAYS]);

/* What a restart needs, policy included. */
void ppo_state_arrays(ppo *p, named_array out[PPO_STATE_ARRAYS]);

#endif
