#include "chunk.h"

#include <math.h>
#include <stdlib.h>

/* calloc() may answer NULL for nothing, which would look like a failure. */
static void *room(size_t count, size_t width)
{
    return calloc(count > 0 ? count : 1, width);
}

chunk *chunk_create(size_t steps, size_t cuts, size_t episodes)
{
    chunk *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->steps = steps;
    c->cuts = cuts;
    c->episodes = episodes;
    c->obs = room(steps, CARTPOLE_OBS * sizeof(float));
    c->action = room(steps, sizeof(int32_t));
    c->logp = room(steps, sizeof(float));
    c->reward = room(steps, sizeof(float));
    c->terminated = room(steps, 1);
    c->truncated = room(steps, 1);
    c->final_obs = room(cuts, CARTPOLE_OBS * sizeof(float));
    c->returns = room(episodes, sizeof(float));
    if (c->obs == NULL || c->action == NULL || c->logp == NULL || c->reward == NULL ||
        c->terminated == NULL || c->truncated == NULL || c->final_obs == NULL ||
        c->returns == NULL) {
        chunk_destroy(c);
        return NULL;
    }
    return c;
}

void chunk_destroy(chunk *c)
{
    if (c == NULL) {
        return;
    }
    free(c->obs);
    free(c->action);
    free(c->logp);
    free(c->reward);
    free(c->terminated);
    free(c->truncated);
    free(c->final_obs);
    free(c->returns);
    free(c);
}

void chunk_arrays(chunk *c, named_array out[CHUNK_ARRAYS])
{
    const size_t n = c->steps;

    out[0] = array_describe("", "obs", ARRAY_F32, n, CARTPOLE_OBS, c->obs);
    out[1] = array_describe("", "action", ARRAY_I32, n, 0, c->action);
    out[2] = array_describe("", "logp", ARRAY_F32, n, 0, c->logp);
    out[3] = array_describe("", "reward", ARRAY_F32, n, 0, c->reward);
    out[4] = array_describe("", "terminated", ARRAY_U8, n, 0, c->terminated);
    out[5] = array_describe("", "truncated", ARRAY_U8, n, 0, c->truncated);
    out[6] =
        array_describe("", "final_obs", ARRAY_F32, c->cuts, CARTPOLE_OBS, c->final_obs);
    out[7] = array_describe("", "returns", ARRAY_F32, c->episodes, 0, c->returns);
}

static bool all_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

bool chunk_is_valid(const chunk *c)
{
    size_t cuts = 0;

    for (size_t i = 0; i < c->steps; i++) {
        if (c->action[i] < 0 || c->action[i] >= CARTPOLE_ACTIONS ||
            c->terminated[i] > 1 || c->truncated[i] > 1 ||
            (c->terminated[i] == 1 && c->truncated[i] == 1)) {
            return false;
        }
        cuts += c->truncated[i];
    }
    return c->steps > 0 && cuts == c->cuts &&
           (c->terminated[c->steps - 1] == 1 || c->truncated[c->steps - 1] == 1) &&
           all_finite(c->obs, c->steps * CARTPOLE_OBS) &&
           all_finite(c->final_obs, c->cuts * CARTPOLE_OBS) &&
           all_finite(c->logp, c->steps) && all_finite(c->reward, c->steps);
}

void chunk_advantages(const chunk *c, const float *values, const float *final_values,
                      float gamma, float lambda, float *advantages)
{
    size_t cut = c->cuts;
    float later = 0.0F; /* the advantage of the step after this one */

    for (size_t i = c->steps; i-- > 0;) {
        float next_value;
        if (c->terminated[i] == 1) {
            next_value = 0.0F;
            later = 0.0F;
        } else if (c->truncated[i] == 1) {
            next_value = final_values[--cut];
            later = 0.0F;
        } else {
            next_value = values[i + 1];
        }
        const float surprise = c->reward[i] + gamma * next_value - values[i];
        later = surprise + gamma * lambda * later;
        advantages[i] = later;
    }
}
