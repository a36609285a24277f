#include "mlp.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mlp_use_one_thread(void)
{
    openblas_set_num_threads(1);
}

static bool allocate(mlp *net)
{
    size_t widest = 0;
    bool complete = true;

    for (size_t i = 0; i < net->layers; i++) {
        const size_t in = net->sizes[i];
        const size_t out = net->sizes[i + 1];
        assert(in >= 1 && out >= 1);
        net->count += out * in + out;
        widest = out > widest ? out : widest;
        net->outputs[i] = calloc(net->max_rows * out, sizeof(float));
        complete = complete && net->outputs[i] != NULL;
    }
    net->params = calloc(net->count, sizeof(float));
    net->grads = calloc(net->count, sizeof(float));
    net->deltas[0] = calloc(net->max_rows * widest, sizeof(float));
    net->deltas[1] = calloc(net->max_rows * widest, sizeof(float));
    return complete && net->params != NULL && net->grads != NULL &&
           net->deltas[0] != NULL && net->deltas[1] != NULL;
}

mlp *mlp_create(const size_t *sizes, size_t layers, mlp_activation activation,
                size_t max_rows)
{
    assert(layers >= 1 && layers <= MLP_MAX_LAYERS && max_rows >= 1);

    mlp *net = calloc(1, sizeof *net);
    if (net == NULL) {
        return NULL;
    }
    net->activation = activation;
    net->layers = layers;
    net->max_rows = max_rows;
    memcpy(net->sizes, sizes, (layers + 1) * sizeof *sizes);
    if (!allocate(net)) {
        mlp_destroy(net);
        return NULL;
    }
    return net;
}

void mlp_destroy(mlp *net)
{
    if (net == NULL) {
        return;
    }
    for (size_t i = 0; i < net->layers; i++) {
        free(net->outputs[i]);
    }
    free(net->params);
    free(net->grads);
    free(net->deltas[0]);
    free(net->deltas[1]);
    free(net);
}

/* Where a layer's weight begins in a block of parameters; its bias follows. */
static size_t layer_offset(const mlp *net, size_t layer)
{
    size_t offset = 0;
    for (size_t i = 0; i < layer; i++) {
        offset += net->sizes[i + 1] * (net->sizes[i] + 1);
    }
    return offset;
}

void mlp_randomize(mlp *net, rng *r, float output_gain)
{
    const float hidden_gain = net->activation == MLP_RELU ? sqrtf(2.0F) : 1.0F;

    memset(net->params, 0, net->count * sizeof(float)); /* biases stay so */
    for (size_t i = 0; i < net->layers; i++) {
        const size_t in = net->sizes[i];
        const size_t weights = net->sizes[i + 1] * in;
        const float gain = i + 1 == net->layers ? output_gain : hidden_gain;
        const float scale = gain / sqrtf((float)in);
        float *weight = net->params + layer_offset(net, i);
        for (size_t j = 0; j < weights; j++) {
            weight[j] = scale * (float)rng_normal(r);
        }
    }
}

static void activate(mlp_activation activation, float *values, size_t count)
{
    if (activation == MLP_TANH) {
        for (size_t i = 0; i < count; i++) {
            values[i] = tanhf(values[i]);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            values[i] = values[i] > 0.0F ? values[i] : 0.0F;
        }
    }
}

/* Turns the gradient by an activation's output into that by its input. Both derivatives
 * can be told from the output alone, so inputs need not be kept. */
static void activate_back(mlp_activation activation, const float *outputs, float *grads,
                          size_t count)
{
    if (activation == MLP_TANH) {
        for (size_t i = 0; i < count; i++) {
            grads[i] *= 1.0F - outputs[i] * outputs[i];
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            grads[i] = outputs[i] > 0.0F ? grads[i] : 0.0F;
        }
    }
}

const float *mlp_forward(mlp *net, const float *input, size_t rows)
{
    assert(rows >= 1 && rows <= net->max_rows);

    const float *from = input;
    for (size_t i = 0; i < net->layers; i++) {
        const size_t in = net->sizes[i];
        const size_t out = net->sizes[i + 1];
        const float *weight = net->params + layer_offset(net, i);
        const float *bias = weight + out * in;
        float *to = net->outputs[i];

        for (size_t row = 0; row < rows; row++) {
            memcpy(to + row * out, bias, out * sizeof(float));
        }
        /* to [rows, out] = from [rows, in] * weight' + bias */
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)out, (int)in,
                    1.0F, from, (int)in, weight, (int)in, 1.0F, to, (int)out);
        if (i + 1 < net->layers) {
            activate(net->activation, to, rows * out);
        }
        from = to;
    }
    net->input = input;
    net->rows = rows;
    return from;
}

/* The gradients of one layer's weight and bias; `delta` is that by its outputs. */
static void layer_grads(mlp *net, size_t layer, const float *delta)
{
    const size_t in = net->sizes[layer];
    const size_t out = net->sizes[layer + 1];
    const float *from = layer == 0 ? net->input : net->outputs[layer - 1];
    float *weight = net->grads + layer_offset(net, layer);
    float *bias = weight + out * in;

    /* weight [out, in] = delta' * from */
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in,
                (int)net->rows, 1.0F, delta, (int)out, from, (int)in, 0.0F, weight,
                (int)in);
    memset(bias, 0, out * sizeof(float));
    for (size_t row = 0; row < net->rows; row++) {
        cblas_saxpy((int)out, 1.0F, delta + row * out, 1, bias, 1);
    }
}

void mlp_backward(mlp *net, const float *output_grad)
{
    const float *delta = output_grad;

    for (size_t layer = net->layers; layer-- > 0;) {
        const size_t in = net->sizes[layer];
        const size_t out = net->sizes[layer + 1];
        layer_grads(net, layer, delta);
        if (layer == 0) {
            break; /* nobody asks for the gradient by the input */
        }
        const float *weight = net->params + layer_offset(net, layer);
        float *below = net->deltas[layer % 2];
        /* below [rows, in] = delta [rows, out] * weight */
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)net->rows, (int)in,
                    (int)out, 1.0F, delta, (int)out, weight, (int)in, 0.0F, below,
                    (int)in);
        activate_back(net->activation, net->outputs[layer - 1], below, net->rows * in);
        delta = below;
    }
}

size_t mlp_arrays(const mlp *net, float *block, const char *prefix, named_array *out)
{
    size_t count = 0;

    for (size_t i = 0; i < net->layers; i++) {
        const size_t in = net->sizes[i];
        const size_t rows = net->sizes[i + 1];
        float *weight = block + layer_offset(net, i);
        char name[48];
        (void)snprintf(name, sizeof name, "layers.%zu.weight", i);
        out[count++] = array_describe(prefix, name, ARRAY_F32, rows, in, weight);
        (void)snprintf(name, sizeof name, "layers.%zu.bias", i);
        out[count++] =
            array_describe(prefix, name, ARRAY_F32, rows, 0, weight + rows * in);
    }
    return count;
}
