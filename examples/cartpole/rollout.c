#include "rollout.h"
#include "policy.h"

#include <stdlib.h>
#include <string.h>

/* One environment and what belongs to it. */
typedef struct player {
    cartpole env;
    double episode_return;
    size_t cuts; /* in the chunk under way */
} player;

struct rollout {
    size_t envs;
    size_t steps;
    size_t max_cuts;  /* of one environment in one chunk */
    rng rng;          /* for the actions */
    player *players;  /* [envs] */
    float *obs;       /* [envs, 4] */
    float *final_obs; /* [envs, max_cuts, 4] until the chunk's order is known */
};

rollout *rollout_create(size_t envs, size_t steps, uint64_t seed)
{
    rollout *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    r->envs = envs;
    r->steps = steps;
    r->max_cuts = steps / CARTPOLE_MAX_STEPS + 2; /* one under way, one at the end */
    r->players = calloc(envs, sizeof *r->players);
    r->obs = calloc(envs * CARTPOLE_OBS, sizeof(float));
    r->final_obs = calloc(envs * r->max_cuts * CARTPOLE_OBS, sizeof(float));
    if (r->players == NULL || r->obs == NULL || r->final_obs == NULL) {
        rollout_destroy(r);
        return NULL;
    }
    rng_seed(&r->rng, rng_mix(seed, 0), 0);
    for (size_t i = 0; i < envs; i++) {
        cartpole_init(&r->players[i].env, rng_mix(seed, i + 1));
    }
    return r;
}

void rollout_destroy(rollout *r)
{
    if (r == NULL) {
        return;
    }
    free(r->players);
    free(r->obs);
    free(r->final_obs);
    free(r);
}

chunk *rollout_chunk(const rollout *r)
{
    const size_t steps = r->envs * r->steps;
    return chunk_create(steps, r->envs * r->max_cuts, steps);
}

/* Does `action` in environment `e` and records it as step `at` of the chunk. */
static void play(rollout *r, size_t e, int action, bool last, chunk *out, size_t at)
{
    player *p = &r->players[e];
    const cartpole_outcome o = cartpole_step(&p->env, action);
    const bool over = o.terminated || o.truncated;
    const bool cut = !o.terminated && (o.truncated || last);

    out->action[at] = action;
    out->reward[at] = o.reward;
    out->terminated[at] = o.terminated ? 1 : 0;
    out->truncated[at] = cut ? 1 : 0;
    if (cut) {
        const size_t row = e * r->max_cuts + p->cuts++;
        cartpole_observe(&p->env, r->final_obs + row * CARTPOLE_OBS);
    }
    p->episode_return += (double)o.reward;
    if (over) {
        out->returns[out->episodes++] = (float)p->episode_return;
        p->episode_return = 0.0;
        cartpole_reset(&p->env);
    }
}

static void gather_final_obs(rollout *r, chunk *out)
{
    out->cuts = 0;
    for (size_t e = 0; e < r->envs; e++) {
        const size_t count = r->players[e].cuts * CARTPOLE_OBS;
        memcpy(out->final_obs + out->cuts * CARTPOLE_OBS,
               r->final_obs + e * r->max_cuts * CARTPOLE_OBS, count * sizeof(float));
        out->cuts += r->players[e].cuts;
        r->players[e].cuts = 0;
    }
}

void rollout_collect(rollout *r, mlp *policy, chunk *out)
{
    out->steps = r->envs * r->steps;
    out->episodes = 0;
    for (size_t t = 0; t < r->steps; t++) {
        for (size_t e = 0; e < r->envs; e++) {
            float *obs = out->obs + (e * r->steps + t) * CARTPOLE_OBS;
            cartpole_observe(&r->players[e].env, obs);
            memcpy(r->obs + e * CARTPOLE_OBS, obs, CARTPOLE_OBS * sizeof(float));
        }
        const float *logits = mlp_forward(policy, r->obs, r->envs);
        for (size_t e = 0; e < r->envs; e++) {
            const size_t at = e * r->steps + t;
            const int action =
                policy_sample(logits + e * CARTPOLE_ACTIONS, &r->rng, &out->logp[at]);
            play(r, e, action, t + 1 == r->steps, out, at);
        }
    }
    gather_final_obs(r, out);
}

/* Steps every environment that still runs. Finished ones leave the row of the running
 * ones, which keeps the batch dense. Returns how many run on. */
static size_t advance(mlp *policy, cartpole *envs, float *obs, size_t running,
                      evaluation *sum)
{
    size_t left = 0;

    for (size_t i = 0; i < running; i++) {
        cartpole_observe(&envs[i], obs + i * CARTPOLE_OBS);
    }
    const float *logits = mlp_forward(policy, obs, running);
    for (size_t i = 0; i < running; i++) {
        const int action = policy_greedy(logits + i * CARTPOLE_ACTIONS);
        const cartpole_outcome o = cartpole_step(&envs[i], action);
        if (!o.terminated && !o.truncated) {
            envs[left++] = envs[i];
            continue;
        }
        const double total = (double)envs[i].steps; /* every step's reward is 1 */
        sum->mean += total;                         /* divided when all are in */
        sum->min = total < sum->min ? total : sum->min;
        sum->max = total > sum->max ? total : sum->max;
    }
    return left;
}

bool rollout_evaluate(mlp *policy, size_t episodes, uint64_t seed, evaluation *ret)
{
    const size_t group = episodes < policy->max_rows ? episodes : policy->max_rows;
    evaluation sum = {.episodes = episodes, .min = CARTPOLE_MAX_STEPS};
    cartpole *envs = calloc(group, sizeof *envs);
    float *obs = calloc(group * CARTPOLE_OBS, sizeof(float));
    const bool ok = envs != NULL && obs != NULL;

    for (size_t done = 0; ok && done < episodes; done += group) {
        size_t running = episodes - done < group ? episodes - done : group;
        for (size_t i = 0; i < running; i++) {
            cartpole_init(&envs[i], rng_mix(seed, done + i));
        }
        while (running > 0) {
            running = advance(policy, envs, obs, running, &sum);
        }
    }
    if (ok) {
        sum.mean /= (double)episodes;
        *ret = sum;
    }
    free(envs);
    free(obs);
    return ok;
}
