#ifndef CARTPOLE_BATCH_H
#define CARTPOLE_BATCH_H

#include "chunk.h"
#include "mlp.h"
#include "rng.h"

#include <stddef.h>
#include <stdint.h>

/* The steps of all chunks of one update, with what the value network says of them. */
typedef struct batch {
    size_t steps;
    float *obs;       /* [steps, 4] */
    int32_t *action;  /* [steps] */
    float *logp;      /* [steps] as the collectors saw it */
    float *advantage; /* [steps] with mean 0 and deviation 1 */
    float *target;    /* [steps] what the value network should answer */
    uint32_t *order;  /* [steps] a permutation, see batch_shuffle() */
} batch;

/* `value` answers in units of `value_scale`. The chunks must be valid; they are copied.
 * NULL when out of memory. */
batch *batch_create(const chunk *const *chunks, size_t count, mlp *value,
                    float value_scale, float gamma, float lambda);

/* Takes NULL. */
void batch_destroy(batch *b);

void batch_shuffle(batch *b, rng *r);

#endif
