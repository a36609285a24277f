#ifndef CARTPOLE_ROLLOUT_H
#define CARTPOLE_ROLLOUT_H

#include "chunk.h"
#include "mlp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The collector's side: several environments that a policy plays in step with one
 * another. An episode that a chunk cuts off goes on in the next one. */
typedef struct rollout rollout;

typedef struct evaluation {
    size_t episodes;
    double mean;
    double min;
    double max;
} evaluation;

/* Each chunk will have envs * steps steps. NULL when out of memory. */
rollout *rollout_create(size_t envs, size_t steps, uint64_t seed);

/* Takes NULL. */
void rollout_destroy(rollout *r);

/* A chunk with enough room for rollout_collect(). Free it with chunk_destroy(); NULL
 * when out of memory. */
chunk *rollout_chunk(const rollout *r);

/* Plays on with actions drawn from `policy` (max_rows: at least envs) and fills `out`,
 * all but policy_version, which only the caller knows. */
void rollout_collect(rollout *r, mlp *policy, chunk *out);

/* Plays whole episodes with the likeliest actions and tells their returns. The seed
 * settles the starting states. False when out of memory. */
bool rollout_evaluate(mlp *policy, size_t episodes, uint64_t seed, evaluation *ret);

#endif
