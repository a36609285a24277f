#include "batch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static batch *allocate(size_t steps)
{
    batch *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->steps = steps;
    b->obs = calloc(steps * CARTPOLE_OBS, sizeof(float));
    b->action = calloc(steps, sizeof(int32_t));
    b->logp = calloc(steps, sizeof(float));
    b->advantage = calloc(steps, sizeof(float));
    b->target = calloc(steps, sizeof(float));
    b->order = calloc(steps, sizeof(uint32_t));
    if (b->obs == NULL || b->action == NULL || b->logp == NULL || b->advantage == NULL ||
        b->target == NULL || b->order == NULL) {
        batch_destroy(b);
        return NULL;
    }
    return b;
}

void batch_destroy(batch *b)
{
    if (b == NULL) {
        return;
    }
    free(b->obs);
    free(b->action);
    free(b->logp);
    free(b->advantage);
    free(b->target);
    free(b->order);
    free(b);
}

/* The values of any number of observations, in pieces that the network can take. */
static void evaluate(mlp *value, float scale, const float *obs, size_t count, float *out)
{
    for (size_t at = 0; at < count; at += value->max_rows) {
        const size_t left = count - at;
        const size_t rows = left < value->max_rows ? left : value->max_rows;
        const float *answer = mlp_forward(value, obs + at * CARTPOLE_OBS, rows);
        for (size_t i = 0; i < rows; i++) {
            out[at + i] = scale * answer[i];
        }
    }
}

/* Puts chunk `c` at step `at` of the batch. `values` and `final_values` are scratch. */
static void append(batch *b, size_t at, const chunk *c, const float *values,
                   const float *final_values, float value_scale, float gamma,
                   float lambda)
{
    memcpy(b->obs + at * CARTPOLE_OBS, c->obs, c->steps * CARTPOLE_OBS * sizeof(float));
    memcpy(b->action + at, c->action, c->steps * sizeof(int32_t));
    memcpy(b->logp + at, c->logp, c->steps * sizeof(float));
    chunk_advantages(c, values, final_values, gamma, lambda, b->advantage + at);
    for (size_t i = 0; i < c->steps; i++) {
        b->target[at + i] = (b->advantage[at + i] + values[i]) / value_scale;
        b->order[at + i] = (uint32_t)(at + i);
    }
}

/* Only the differences between advantages matter; this takes out their scale too, which
 * grows as the episodes do. */
static void normalize(float *values, size_t count)
{
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    const double mean = sum / (double)count;
    const double variance = fmax(squares / (double)count - mean * mean, 0.0);
    const double scale = 1.0 / (sqrt(variance) + 1e-8);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(((double)values[i] - mean) * scale);
    }
}

batch *batch_create(const chunk *const *chunks, size_t count, mlp *value,
                    float value_scale, float gamma, float lambda)
{
    size_t steps = 0;
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t rows = chunks[i]->steps + chunks[i]->cuts;
        steps += chunks[i]->steps;
        longest = rows > longest ? rows : longest;
    }
    assert(longest >= 1 && steps >= 1);
    assert(steps <= UINT32_MAX); /* `order` has 32 bits */

    batch *b = allocate(steps);
    float *values = calloc(longest, sizeof(float));
    if (b == NULL || values == NULL) {
        free(values);
        batch_destroy(b);
        return NULL;
    }
    for (size_t i = 0, at = 0; i < count; at += chunks[i]->steps, i++) {
        const chunk *c = chunks[i];
        float *final_values = values + c->steps;
        evaluate(value, value_scale, c->obs, c->steps, values);
        evaluate(value, value_scale, c->final_obs, c->cuts, final_values);
        append(b, at, c, values, final_values, value_scale, gamma, lambda);
    }
    free(values);
    normalize(b->advantage, steps);
    return b;
}

void batch_shuffle(batch *b, rng *r)
{
    for (size_t i = b->steps; i > 1; i--) {
        const size_t j = rng_below(r, (uint32_t)i);
        const uint32_t swap = b->order[i - 1];
        b->order[i - 1] = b->order[j];
        b->order[j] = swap;
    }
}
