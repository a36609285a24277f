#ifndef CARTPOLE_MLP_H
#define CARTPOLE_MLP_H

#include "array.h"
#include "rng.h"

#include <stdbool.h>
#include <stddef.h>

enum { MLP_MAX_LAYERS = 4 };

typedef enum mlp_activation {
    MLP_TANH,
    MLP_RELU,
} mlp_activation;

/* A multilayer perceptron: fully connected layers, an activation after each of them but
 * the last. All parameters stand in one block, layer after layer, the weight [out, in]
 * before the bias [out]; gradients and an optimizer's moments have the same layout. */
typedef struct mlp {
    mlp_activation activation;
    size_t layers;
    size_t sizes[MLP_MAX_LAYERS + 1]; /* input, hidden ..., output */
    size_t max_rows;                  /* the largest batch */
    size_t count;                     /* of parameters */
    float *params;
    float *grads;

    /* What the last forward pass leaves for the backward pass. */
    const float *input; /* the caller's */
    size_t rows;
    float *outputs[MLP_MAX_LAYERS]; /* [max_rows, out] after the activation */
    float *deltas[2];               /* [max_rows, widest], by turns */
} mlp;

/* Keeps the BLAS in the calling thread. Call it at program start: the matrices are
 * small, and the processes of one job share the cores. */
void mlp_use_one_thread(void);

/* `sizes` has layers + 1 entries. NULL when out of memory; parameters are zero. */
mlp *mlp_create(const size_t *sizes, size_t layers, mlp_activation activation,
                size_t max_rows);

/* Takes NULL. */
void mlp_destroy(mlp *net);

/* Draws weights that keep the scale of a signal from layer to layer. The last layer's
 * are multiplied by `output_gain`: with a small one, a policy starts out undecided. */
void mlp_randomize(mlp *net, rng *r, float output_gain);

/* `input` is [rows, in] and has to stay until the backward pass, if there is one.
 * Returns [rows, out], valid until the next call. */
const float *mlp_forward(mlp *net, const float *input, size_t rows);

/* Sets net->grads from the loss's gradient by the outputs of the last forward pass. */
void mlp_backward(mlp *net, const float *output_grad);

/* Describes `block` (net->params or moments of the same layout) as arrays named
 * `<prefix>layers.<i>.weight` and `.bias`. Returns how many: two for each layer. */
size_t mlp_arrays(const mlp *net, float *block, const char *prefix, named_array *out);

#endif
