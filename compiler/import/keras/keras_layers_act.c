/* keras_layers_act.c - layers that are activations. Source: keras/src/layers/activations. */
#include "compiler/import/keras/keras.h"

#include <math.h>

void keras_call_activation(keras_call *c)
{
    keras_set(c, 0, keras_activation(c, keras_config(c, "activation"), c->in[0]));
}

/* A setting under its name, or under the one that Keras 2 had for it. */
static double act_setting(keras_call *c, const char *key, const char *old, double absent)
{
    return keras_number(c, keras_config(c, key) ? key : old, absent);
}

/* x above the threshold, else slope (x - threshold) as relu(threshold - x) gives it; at most max_value. */
void keras_call_relu_layer(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_float(c, c->in[0]);
    double slope = act_setting(c, "negative_slope", "alpha", 0), threshold = act_setting(c, "threshold", "theta", 0);
    bool has_max = keras_config(c, "max_value") != NULL;
    double max = keras_number(c, "max_value", 0);
    if (slope != 0 && !has_max && threshold == 0) {
        keras_set(c, 0, keras_leaky(g, x, slope));
        return;
    }
    ty_val y;
    if (threshold != 0)
        y = ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, x, threshold), x), x, ty_b_full_like(g, x, 0));
    else
        y = has_max && max == 6 ? keras_activation_named(c, "relu6", x) : ty_b_relu(g, x);
    if (has_max && (threshold != 0 || max != 6))
        y = keras_clip(g, y, 0, max);
    if (slope != 0)
        y = ty_b_sub(g, y, ty_b_mul_s(g, ty_b_relu(g, ty_b_add_s(g, ty_b_neg(g, x), threshold)), slope));
    keras_set(c, 0, y);
}

void keras_call_leaky_relu_layer(keras_call *c)
{
    double slope = act_setting(c, "negative_slope", "alpha", 0.3);
    keras_set(c, 0, keras_leaky(c->g, keras_float(c, c->in[0]), slope));
}

void keras_call_elu_layer(keras_call *c)
{
    keras_set(c, 0, keras_elu(c->g, keras_float(c, c->in[0]), keras_number(c, "alpha", 1)));
}

void keras_call_thresholded_relu(keras_call *c)
{
    ty_val x = keras_float(c, c->in[0]), theta = ty_b_full_like(c->g, x, keras_number(c, "theta", 1));
    keras_set(c, 0, ty_b_select(c->g, ty_b_lt(c->g, theta, x), x, ty_b_full_like(c->g, x, 0)));
}

/* One slope for every element of a row, but for axes that share theirs. */
void keras_create_prelu(keras_call *c)
{
    const ty_type type = *ty_graph_type(c->g, c->in[0]);
    int64_t shared[TY_MAX_RANK];
    int n = keras_list(c, "shared_axes", TY_MAX_RANK, shared), axis;
    keras_spec spec = {.label = "alpha",
                       .rank = type.rank - 1,
                       .initializer = "alpha_initializer",
                       .initializer_absent = "zeros",
                       .regularizer = "alpha_regularizer",
                       .constraint = "alpha_constraint"};
    for (int i = 1; i < type.rank; i++)
        spec.dim[i - 1] = type.dim[i];
    for (int i = 0; i < n; i++) {
        if (!keras_axis(c, shared[i], type.rank, &axis))
            return;
        if (axis == 0) {
            keras_fail_key(c, "shared_axes", "axes behind the batch");
            return;
        }
        spec.dim[axis - 1] = 1;
    }
    keras_add_weight(c, &spec);
}

void keras_call_prelu(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_float(c, c->in[0]), alpha = keras_var(c, "alpha");
    ty_val below = ty_b_mul(g, ty_b_neg(g, alpha), ty_b_relu(g, ty_b_neg(g, x)));
    keras_set(c, 0, ty_b_add(g, ty_b_relu(g, x), below));
}

/* Where the mask is false the number becomes -1e9. Over several axes: e^(x - log of the sum of e^x). */
void keras_call_softmax_layer(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_float(c, c->in[0]), mask = c->mask[0];
    int rank = ty_b_rank(g, x), axis;
    int64_t list[TY_MAX_RANK] = {-1};
    int n = keras_config(c, "axis") ? keras_list(c, "axis", TY_MAX_RANK, list) : 1;
    if (n < 1 || rank < 1 || !keras_axis(c, list[0], rank, &axis))
        return;
    if (mask != TY_NONE) {
        if (ty_b_dtype(g, mask) != TY_BOOL)
            mask = ty_b_lt(g, ty_b_full_like(g, mask, 0.5), mask);
        x = ty_b_select(g, mask, x, ty_b_full_like(g, x, -1e9));
    }
    if (n == 1) {
        keras_set(c, 0, ty_b_softmax(g, x, axis, false));
        return;
    }
    uint32_t axes = 0;
    for (int i = 0; i < n; i++) {
        if (!keras_axis(c, list[i], rank, &axis))
            return;
        axes |= 1u << axis;
    }
    ty_val e = ty_b_exp(g, ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, axes, true)));
    keras_set(c, 0, ty_b_div(g, e, ty_b_sum(g, e, axes, true)));
}
