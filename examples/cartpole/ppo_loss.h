#ifndef CARTPOLE_PPO_LOSS_H
#define CARTPOLE_PPO_LOSS_H

#include <stddef.h>
#include <stdint.h>

/* Sums over the samples of one or more calls. */
typedef struct ppo_sums {
    size_t samples;
    double policy_loss; /* negative clipped objective, without the entropy */
    double entropy;
    double kl;      /* from the collectors' policy, estimated */
    double clipped; /* samples that the clip took out */
    double value_loss;
} ppo_sums;

/* PPO's clipped loss minus `entropy` times the entropy, averaged over `rows` samples.
 * Writes its gradient by the logits [rows, 2]. */
void ppo_policy_loss(size_t rows, const float *logits, const int32_t *action,
                     const float *logp, const float *advantage, float clip, float entropy,
                     float *grad, ppo_sums *sums);

/* Half the mean squared error, and its gradient by the values. */
void ppo_value_loss(size_t rows, const float *values, const float *target, float *grad,
                    ppo_sums *sums);

#endif
