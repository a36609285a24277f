#ifndef CARTPOLE_ADAM_H
#define CARTPOLE_ADAM_H

#include <stddef.h>
#include <stdint.h>

/* The Adam optimizer over one block of parameters, with the usual decay rates. */
typedef struct adam {
    size_t count;
    int64_t steps;
    float *mean;   /* of the gradient */
    float *square; /* mean of its square */
} adam;

/* NULL when out of memory. */
adam *adam_create(size_t count);

/* Takes NULL. */
void adam_destroy(adam *optimizer);

/* Moves `params` against `grads`; both have `count` entries. */
void adam_step(adam *optimizer, float *params, const float *grads, float rate);

/* Scales `grads` down to the Euclidean norm `limit` if it is longer. Returns the norm
 * that it had. */
float adam_clip(float *grads, size_t count, float limit);

#endif
