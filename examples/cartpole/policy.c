#include "policy.h"

#include <math.h>

mlp *policy_create(size_t max_rows)
{
    static const size_t sizes[POLICY_LAYERS + 1] = {CARTPOLE_OBS, POLICY_HIDDEN,
                                                    POLICY_HIDDEN, CARTPOLE_ACTIONS};
    return mlp_create(sizes, POLICY_LAYERS, MLP_TANH, max_rows);
}

int policy_greedy(const float logits[CARTPOLE_ACTIONS])
{
    int best = 0;
    for (int a = 1; a < CARTPOLE_ACTIONS; a++) {
        if (logits[a] > logits[best]) {
            best = a;
        }
    }
    return best;
}

void policy_log_probs(const float logits[CARTPOLE_ACTIONS],
                      float log_probs[CARTPOLE_ACTIONS])
{
    /* The largest logit is taken out first, so that no power overflows. */
    const float top = logits[policy_greedy(logits)];
    float sum = 0.0F;
    for (int a = 0; a < CARTPOLE_ACTIONS; a++) {
        sum += expf(logits[a] - top);
    }
    const float log_sum = top + logf(sum);
    for (int a = 0; a < CARTPOLE_ACTIONS; a++) {
        log_probs[a] = logits[a] - log_sum;
    }
}

int policy_sample(const float logits[CARTPOLE_ACTIONS], rng *r, float *logp)
{
    float log_probs[CARTPOLE_ACTIONS];
    policy_log_probs(logits, log_probs);

    double left = rng_unit(r);
    int action = 0;
    while (action < CARTPOLE_ACTIONS - 1) {
        left -= (double)expf(log_probs[action]);
        if (left < 0.0) {
            break;
        }
        action++;
    }
    *logp = log_probs[action];
    return action;
}
