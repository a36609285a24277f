#ifndef CARTPOLE_POLICY_H
#define CARTPOLE_POLICY_H

#include "cartpole.h"
#include "mlp.h"
#include "rng.h"

#include <stddef.h>

enum {
    POLICY_HIDDEN = 64, /* width of both hidden layers */
    POLICY_LAYERS = 3,
    POLICY_ARRAYS = 2 * POLICY_LAYERS,
};

/* The network from an observation to one logit for each action. Collectors and the
 * learner have to agree on it, so its shape is not an option. NULL when out of memory. */
mlp *policy_create(size_t max_rows);

/* Logarithms of the probabilities that belong to logits. */
void policy_log_probs(const float logits[CARTPOLE_ACTIONS],
                      float log_probs[CARTPOLE_ACTIONS]);

/* Draws an action and tells the logarithm of its probability. */
int policy_sample(const float logits[CARTPOLE_ACTIONS], rng *r, float *logp);

/* The likeliest action. */
int policy_greedy(const float logits[CARTPOLE_ACTIONS]);

#endif
