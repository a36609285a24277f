#ifndef CARTPOLE_CHUNK_H
#define CARTPOLE_CHUNK_H

#include "array.h"
#include "cartpole.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of experience: what a collector hands to the learner.
 *
 * Steps are flat; the stretches of the environments follow one another. Every stretch
 * ends in a step that is `terminated` (nothing comes after it) or `truncated` (the
 * episode's cap, or the end of the chunk, cut it off; never both). For the latter the
 * learner wants the value of what would have come next, so the observation after the
 * i-th truncated step is row i of `final_obs`.
 *
 * `logp` is the logarithm of the probability that the policy of that time gave to the
 * action. It makes data of an older policy usable. */
typedef struct chunk {
    int64_t policy_version;
    size_t steps;
    size_t cuts;         /* truncated steps */
    size_t episodes;     /* finished within the chunk */
    float *obs;          /* [steps, 4] */
    int32_t *action;     /* [steps] */
    float *logp;         /* [steps] */
    float *reward;       /* [steps] */
    uint8_t *terminated; /* [steps] */
    uint8_t *truncated;  /* [steps] */
    float *final_obs;    /* [cuts, 4] */
    float *returns;      /* [episodes] whole episodes, begun here or earlier */
} chunk;

enum { CHUNK_ARRAYS = 8 };

/* With room for that many steps, cuts and episodes; all zero. NULL when out of memory. */
chunk *chunk_create(size_t steps, size_t cuts, size_t episodes);

/* Takes NULL. */
void chunk_destroy(chunk *c);

/* Describes the arrays as they are filled now. */
void chunk_arrays(chunk *c, named_array out[CHUNK_ARRAYS]);

/* Whether a learner can use it: a chunk may come from anywhere. */
bool chunk_is_valid(const chunk *c);

/* Generalized advantage estimates of all steps. `values` belongs to `obs`,
 * `final_values` to `final_obs`. */
void chunk_advantages(const chunk *c, const float *values, const float *final_values,
                      float gamma, float lambda, float *advantages);

#endif
