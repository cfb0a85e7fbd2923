/* rnn_layers.h - kinds of recurrent layers for tests, and how far their numbers may be apart where weights have 16
 * bits. */
#ifndef TY_TESTS_RNN_LAYERS_H
#define TY_TESTS_RNN_LAYERS_H

#include "compiler/ops/recurrence.h"

#include <math.h>
#include <string.h>

typedef struct rnn_layer {
    const char *name;
    int gates;
    uint32_t flags;
    int64_t block[TY_RNN_MAX_GATES];
} rnn_layer;

/* In the order of PyTorch (i f g o; r z n), then of ONNX (i o f g; z r n). */
static const rnn_layer layers[] = {
    {"vanilla", 1, 0, {0}},
    {"relu", 1, TY_RNN_RELU, {0}},
    {"GRU", 3, TY_RNN_RESET_AFTER, {1, 0, 2}},
    {"LSTM", 4, 0, {0, 1, 2, 3}},
    {"GRU of ONNX", 3, TY_RNN_RESET_AFTER, {0, 1, 2}},
    {"GRU, reset first", 3, 0, {0, 1, 2}},
    {"GRU, reset first, odd order", 3, 0, {2, 0, 1}},
    {"LSTM of ONNX", 4, 0, {0, 2, 3, 1}},
};
enum { N_LAYERS = sizeof layers / sizeof *layers, N_OF_PYTORCH = 4 };

/* backward: 0 or TY_RNN_BACKWARD */
static inline ty_attr layer_attr(const rnn_layer *l, uint32_t backward)
{
    ty_attr a = {.n = (uint32_t)l->gates, .flags = l->flags | backward};
    memcpy(a.lo, l->block, sizeof l->block);
    return a;
}

/* The share of numbers that differ by more than `tol`, and the largest difference. What is rounded to 16 bits now and
 * then falls to the other side, as its last bit of 32 has it, and moves what comes of it by 1e-3; without the rounding
 * half of all numbers and more differ by more than 2e-5. */
static inline double layer_share_apart(const float *x, const float *y, int64_t n, double tol, double *worst)
{
    int64_t apart = 0;
    *worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)x[i] - (double)y[i]) / fmax(1, fabs((double)y[i]));
        apart += !(off <= tol);
        *worst = off > *worst || isnan(off) ? off : *worst;
    }
    return (double)apart / (double)n;
}

#endif
