#include "ppo.h"
#include "batch.h"
#include "ppo_loss.h"

#include <stdlib.h>
#include <string.h>

/* Streams of the learner's seed; updates count up from the last. */
enum { STREAM_POLICY, STREAM_VALUE, STREAM_UPDATES };

/* Room for one minibatch, gathered in shuffled order. */
typedef struct minibatch {
    float *obs;
    int32_t *action;
    float *logp;
    float *advantage;
    float *target;
    float *grad;
} minibatch;

void ppo_options_init(ppo_options *options)
{
    *options = (ppo_options){
        .gamma = 0.99F,
        .lambda = 0.95F,
        .clip = 0.2F,
        .entropy = 0.01F,
        .rate = 1e-3F,
        .max_grad_norm = 0.5F,
        .epochs = 10,
        .minibatch = 256,
        .max_kl = 0.03F,
    };
}

static void randomize(mlp *net, int64_t seed, uint64_t stream, float output_gain)
{
    rng r;
    rng_seed(&r, rng_mix((uint64_t)seed, stream), stream);
    mlp_randomize(net, &r, output_gain);
}

ppo *ppo_create(const ppo_options *options, int64_t seed)
{
    static const size_t value_sizes[POLICY_LAYERS + 1] = {CARTPOLE_OBS, POLICY_HIDDEN,
                                                          POLICY_HIDDEN, 1};
    ppo *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->options = *options;
    p->seed = seed;
    p->policy = policy_create(options->minibatch);
    p->value = mlp_create(value_sizes, POLICY_LAYERS, MLP_TANH, options->minibatch);
    if (p->policy != NULL && p->value != NULL) {
        p->policy_adam = adam_create(p->policy->count);
        p->value_adam = adam_create(p->value->count);
    }
    if (p->policy_adam == NULL || p->value_adam == NULL) {
        ppo_destroy(p);
        return NULL;
    }
    randomize(p->policy, seed, STREAM_POLICY, 0.01F);
    randomize(p->value, seed, STREAM_VALUE, 1.0F);
    return p;
}

void ppo_destroy(ppo *p)
{
    if (p == NULL) {
        return;
    }
    mlp_destroy(p->policy);
    mlp_destroy(p->value);
    adam_destroy(p->policy_adam);
    adam_destroy(p->value_adam);
    free(p);
}

static void minibatch_done(minibatch *m)
{
    free(m->obs);
    free(m->action);
    free(m->logp);
    free(m->advantage);
    free(m->target);
    free(m->grad);
}

static bool minibatch_init(minibatch *m, size_t rows)
{
    m->obs = calloc(rows * CARTPOLE_OBS, sizeof(float));
    m->action = calloc(rows, sizeof(int32_t));
    m->logp = calloc(rows, sizeof(float));
    m->advantage = calloc(rows, sizeof(float));
    m->target = calloc(rows, sizeof(float));
    m->grad = calloc(rows * CARTPOLE_ACTIONS, sizeof(float));
    if (m->obs == NULL || m->action == NULL || m->logp == NULL || m->advantage == NULL ||
        m->target == NULL || m->grad == NULL) {
        minibatch_done(m);
        return false;
    }
    return true;
}

static void gather(minibatch *m, const batch *b, size_t at, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        const size_t from = b->order[at + i];
        memcpy(m->obs + i * CARTPOLE_OBS, b->obs + from * CARTPOLE_OBS,
               CARTPOLE_OBS * sizeof(float));
        m->action[i] = b->action[from];
        m->logp[i] = b->logp[from];
        m->advantage[i] = b->advantage[from];
        m->target[i] = b->target[from];
    }
}

static void descend(const ppo_options *o, mlp *net, adam *optimizer, const float *grad)
{
    mlp_backward(net, grad);
    (void)adam_clip(net->grads, net->count, o->max_grad_norm);
    adam_step(optimizer, net->params, net->grads, o->rate);
}

/* One pass over the batch. A last minibatch that is not full is left for another pass,
 * unless there is no other one. */
static ppo_sums train_epoch(ppo *p, const batch *b, minibatch *m)
{
    const ppo_options *o = &p->options;
    const size_t rows = o->minibatch < b->steps ? o->minibatch : b->steps;
    ppo_sums sums = {0};

    for (size_t at = 0; at + rows <= b->steps; at += rows) {
        gather(m, b, at, rows);

        const float *logits = mlp_forward(p->policy, m->obs, rows);
        ppo_policy_loss(rows, logits, m->action, m->logp, m->advantage, o->clip,
                        o->entropy, m->grad, &sums);
        descend(o, p->policy, p->policy_adam, m->grad);

        const float *values = mlp_forward(p->value, m->obs, rows);
        ppo_value_loss(rows, values, m->target, m->grad, &sums);
        descend(o, p->value, p->value_adam, m->grad);
    }
    return sums;
}

/* An untrained value network cannot answer the discounted sum of many rewards; it
 * answers in units of what a reward of 1 for ever is worth. */
static float value_scale(const ppo *p)
{
    return 1.0F / (1.0F - p->options.gamma);
}

static void report(ppo_report *ret, const ppo_sums *sums)
{
    const double n = (double)sums->samples;
    ret->policy_loss = sums->policy_loss / n;
    ret->value_loss = sums->value_loss / n;
    ret->entropy = sums->entropy / n;
    ret->kl = sums->kl / n;
    ret->clipped = sums->clipped / n;
}

bool ppo_update(ppo *p, const chunk *const *chunks, size_t count, ppo_report *ret)
{
    const ppo_options *o = &p->options;
    minibatch m;
    if (!minibatch_init(&m, o->minibatch)) {
        return false;
    }
    batch *b = batch_create(chunks, count, p->value, value_scale(p), o->gamma, o->lambda);
    if (b == NULL) {
        minibatch_done(&m);
        return false;
    }

    rng r;
    rng_seed(&r, rng_mix((uint64_t)p->seed, STREAM_UPDATES + (uint64_t)p->updates), 0);
    *ret = (ppo_report){.steps = b->steps};
    while (ret->epochs < o->epochs) {
        batch_shuffle(b, &r);
        const ppo_sums sums = train_epoch(p, b, &m);
        report(ret, &sums);
        ret->epochs++;
        if (ret->kl > (double)o->max_kl) {
            break;
        }
    }
    p->updates++;
    p->env_steps += (int64_t)b->steps;
    batch_destroy(b);
    minibatch_done(&m);
    return true;
}

void ppo_policy_arrays(ppo *p, named_array out[POLICY_ARRAYS])
{
    (void)mlp_arrays(p->policy, p->policy->params, "", out);
}

void ppo_state_arrays(ppo *p, named_array out[PPO_STATE_ARRAYS])
{
    size_t n = 0;
    adam *pa = p->policy_adam;
    adam *va = p->value_adam;

    n += mlp_arrays(p->policy, p->policy->params, "policy.", out + n);
    n += mlp_arrays(p->policy, pa->mean, "policy_adam.mean.", out + n);
    n += mlp_arrays(p->policy, pa->square, "policy_adam.square.", out + n);
    n += mlp_arrays(p->value, p->value->params, "value.", out + n);
    n += mlp_arrays(p->value, va->mean, "value_adam.mean.", out + n);
    n += mlp_arrays(p->value, va->square, "value_adam.square.", out + n);
    out[n++] = array_describe("", "policy_adam.steps", ARRAY_I64, 1, 0, &pa->steps);
    out[n++] = array_describe("", "value_adam.steps", ARRAY_I64, 1, 0, &va->steps);
    out[n++] = array_describe("", "updates", ARRAY_I64, 1, 0, &p->updates);
    out[n++] = array_describe("", "env_steps", ARRAY_I64, 1, 0, &p->env_steps);
    out[n++] = array_describe("", "seed", ARRAY_I64, 1, 0, &p->seed);
}
