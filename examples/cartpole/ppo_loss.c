#include "ppo_loss.h"
#include "cartpole.h"
#include "policy.h"

#include <math.h>
#include <stdbool.h>

/* Beyond this, e to the power of it says nothing more; without a bound it overflows. */
static const float LOG_RATIO_LIMIT = 20.0F;

void ppo_policy_loss(size_t rows, const float *logits, const int32_t *action,
                     const float *logp, const float *advantage, float clip, float entropy,
                     float *grad, ppo_sums *sums)
{
    const float share = 1.0F / (float)rows;

    for (size_t i = 0; i < rows; i++) {
        float now[CARTPOLE_ACTIONS];
        policy_log_probs(logits + i * CARTPOLE_ACTIONS, now);
        const float change = now[action[i]] - logp[i];
        const float ratio = expf(fminf(fmaxf(change, -LOG_RATIO_LIMIT), LOG_RATIO_LIMIT));
        const bool clipped =
            advantage[i] > 0.0F ? ratio > 1.0F + clip : ratio < 1.0F - clip;
        const float bound = fminf(fmaxf(ratio, 1.0F - clip), 1.0F + clip);
        const float pull = clipped ? 0.0F : ratio * advantage[i];

        float spread = 0.0F;
        for (int a = 0; a < CARTPOLE_ACTIONS; a++) {
            spread -= expf(now[a]) * now[a];
        }
        for (int a = 0; a < CARTPOLE_ACTIONS; a++) {
            const float p = expf(now[a]);
            const float taken = a == action[i] ? 1.0F : 0.0F;
            grad[i * CARTPOLE_ACTIONS + (size_t)a] =
                share * (entropy * p * (now[a] + spread) - pull * (taken - p));
        }
        sums->policy_loss -= (double)fminf(ratio * advantage[i], bound * advantage[i]);
        sums->entropy += (double)spread;
        sums->kl += (double)(ratio - 1.0F - change);
        sums->clipped += clipped ? 1.0 : 0.0;
    }
    sums->samples += rows;
}

void ppo_value_loss(size_t rows, const float *values, const float *target, float *grad,
                    ppo_sums *sums)
{
    for (size_t i = 0; i < rows; i++) {
        const float error = values[i] - target[i];
        grad[i] = error / (float)rows;
        sums->value_loss += 0.5 * (double)error * (double)error;
    }
}
