#include "adam.h"

#include <math.h>
#include <stdlib.h>

static const double MEAN_DECAY = 0.9;
static const double SQUARE_DECAY = 0.999;
static const float EPSILON = 1e-5F; /* larger than usual: gradients of PPO are noisy */

adam *adam_create(size_t count)
{
    adam *optimizer = calloc(1, sizeof *optimizer);
    if (optimizer == NULL) {
        return NULL;
    }
    optimizer->count = count;
    optimizer->mean = calloc(count, sizeof(float));
    optimizer->square = calloc(count, sizeof(float));
    if (optimizer->mean == NULL || optimizer->square == NULL) {
        adam_destroy(optimizer);
        return NULL;
    }
    return optimizer;
}

void adam_destroy(adam *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    free(optimizer->mean);
    free(optimizer->square);
    free(optimizer);
}

void adam_step(adam *optimizer, float *params, const float *grads, float rate)
{
    optimizer->steps++;
    /* The moments start at zero; dividing by these undoes their bias towards it. */
    const double n = (double)optimizer->steps;
    const float mean_share = (float)(1.0 - pow(MEAN_DECAY, n));
    const float square_share = (float)(1.0 - pow(SQUARE_DECAY, n));
    const float keep_mean = (float)MEAN_DECAY;
    const float keep_square = (float)SQUARE_DECAY;
    float *mean = optimizer->mean;
    float *square = optimizer->square;

    for (size_t i = 0; i < optimizer->count; i++) {
        mean[i] = keep_mean * mean[i] + (1.0F - keep_mean) * grads[i];
        square[i] = keep_square * square[i] + (1.0F - keep_square) * grads[i] * grads[i];
        const float scale = sqrtf(square[i] / square_share) + EPSILON;
        params[i] -= rate * (mean[i] / mean_share) / scale;
    }
}

float adam_clip(float *grads, size_t count, float limit)
{
    double squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        squares += (double)grads[i] * (double)grads[i];
    }
    const float norm = (float)sqrt(squares);
    if (norm > limit) {
        const float scale = limit / norm;
        for (size_t i = 0; i < count; i++) {
            grads[i] *= scale;
        }
    }
    return norm;
}
