/* keras_activation.c - activation functions by name, as keras/src/activations and keras/src/backend/tensorflow/nn.py
 * compute them, slopes at kinks included: relu and relu6 have slope 0 at theirs, clipping 1 at its bounds. */
#include "compiler/import/keras/keras_walk.h"

#include <math.h>
#include <string.h>

typedef ty_val activation_fn(ty_graph *g, ty_val x);

static ty_val activation_number(ty_graph *g, ty_val like, double v)
{
    return ty_b_full_like(g, like, v);
}

static ty_val activation_linear(ty_graph *g, ty_val x)
{
    (void)g;
    return x;
}

static ty_val activation_relu6(ty_graph *g, ty_val x)
{
    ty_val r = ty_b_relu(g, x), six = activation_number(g, x, 6);
    return ty_b_select(g, ty_b_lt(g, r, six), r, six);
}

static ty_val activation_hard_sigmoid(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, activation_relu6(g, ty_b_add_s(g, x, 3)), 1.0 / 6);
}

static ty_val activation_hard_silu(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, activation_hard_sigmoid(g, x));
}

ty_val keras_leaky(ty_graph *g, ty_val x, double slope)
{
    return ty_b_select(g, ty_b_lt(g, activation_number(g, x, 0), x), x, ty_b_mul_s(g, x, slope));
}

static ty_val activation_leaky_relu(ty_graph *g, ty_val x)
{
    return keras_leaky(g, x, 0.2);
}

/* x < 0: alpha (e^x - 1). What lies above is kept from the exponential. */
ty_val keras_elu(ty_graph *g, ty_val x, double alpha)
{
    ty_val zero = activation_number(g, x, 0), is_below = ty_b_lt(g, x, zero);
    ty_val below = ty_b_unary(g, TY_OP_EXPM1, ty_b_select(g, is_below, x, zero));
    return ty_b_select(g, is_below, alpha == 1 ? below : ty_b_mul_s(g, below, alpha), x);
}

static ty_val activation_elu(ty_graph *g, ty_val x)
{
    return keras_elu(g, x, 1);
}

static ty_val activation_selu(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, keras_elu(g, x, 1.6732632423543772), 1.0507009873554805);
}

static ty_val activation_celu(ty_graph *g, ty_val x)
{
    return keras_elu(g, x, 1);
}

static ty_val activation_gelu(ty_graph *g, ty_val x)
{
    return ty_graph_emit(g, TY_OP_GELU, &(ty_attr){.flags = 0}, &x, 1);
}

static ty_val activation_silu(ty_graph *g, ty_val x)
{
    return ty_graph_emit(g, TY_OP_SILU, NULL, &x, 1);
}

static ty_val activation_softsign(ty_graph *g, ty_val x)
{
    return ty_b_div(g, x, ty_b_add_s(g, ty_b_unary(g, TY_OP_ABS, x), 1));
}

static ty_val activation_tanh(ty_graph *g, ty_val x)
{
    return ty_b_unary(g, TY_OP_TANH, x);
}

static ty_val activation_tanh_shrink(ty_graph *g, ty_val x)
{
    return ty_b_sub(g, x, activation_tanh(g, x));
}

static ty_val activation_mish(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, activation_tanh(g, ty_b_softplus(g, x)));
}

static ty_val activation_log_sigmoid(ty_graph *g, ty_val x)
{
    return ty_b_neg(g, ty_b_softplus(g, ty_b_neg(g, x)));
}

/* Slope 1 at the bounds, as clip_by_value has it. */
ty_val keras_clip(ty_graph *g, ty_val x, double lo, double hi)
{
    ty_val low = activation_number(g, x, lo), high = activation_number(g, x, hi);
    ty_val below = ty_b_select(g, ty_b_lt(g, high, x), high, x);
    return ty_b_select(g, ty_b_lt(g, x, low), low, below);
}

static ty_val activation_hard_tanh(ty_graph *g, ty_val x)
{
    return keras_clip(g, x, -1, 1);
}

static ty_val activation_hard_shrink(ty_graph *g, ty_val x)
{
    ty_val is_far = ty_b_lt(g, activation_number(g, x, 0.5), ty_b_unary(g, TY_OP_ABS, x));
    return ty_b_select(g, is_far, x, activation_number(g, x, 0));
}

static ty_val activation_soft_shrink(ty_graph *g, ty_val x)
{
    ty_val t = activation_number(g, x, 0.5), zero = activation_number(g, x, 0);
    ty_val below = ty_b_select(g, ty_b_lt(g, x, ty_b_neg(g, t)), ty_b_add(g, x, t), zero);
    return ty_b_select(g, ty_b_lt(g, t, x), ty_b_sub(g, x, t), below);
}

static ty_val activation_squareplus(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, ty_b_add(g, x, ty_b_unary(g, TY_OP_SQRT, ty_b_add_s(g, ty_b_square(g, x), 4))), 0.5);
}

static ty_val activation_sparse_plus(ty_graph *g, ty_val x)
{
    ty_val one = activation_number(g, x, 1), zero = activation_number(g, x, 0);
    ty_val curve = ty_b_mul_s(g, ty_b_square(g, ty_b_add_s(g, x, 1)), 0.25);
    ty_val above = ty_b_select(g, ty_b_lt(g, x, one), curve, x);
    return ty_b_select(g, ty_b_le(g, x, ty_b_neg(g, one)), zero, above);
}

static ty_val activation_sparse_sigmoid(ty_graph *g, ty_val x)
{
    ty_val one = activation_number(g, x, 1), zero = activation_number(g, x, 0);
    ty_val above = ty_b_select(g, ty_b_le(g, one, x), one, ty_b_mul_s(g, ty_b_add_s(g, x, 1), 0.5));
    return ty_b_select(g, ty_b_le(g, x, ty_b_neg(g, one)), zero, above);
}

static ty_val activation_softmax(ty_graph *g, ty_val x)
{
    return ty_b_softmax(g, x, ty_b_rank(g, x) - 1, false);
}

static ty_val activation_log_softmax(ty_graph *g, ty_val x)
{
    return ty_b_softmax(g, x, ty_b_rank(g, x) - 1, true);
}

/* The first half of the last axis, gated by the second. */
static ty_val activation_glu(ty_graph *g, ty_val x)
{
    int axis = ty_b_rank(g, x) - 1;
    int64_t n = ty_b_dim(g, x, axis);
    if (n % 2)
        return ty_graph_fail(g, TY_E_SHAPE, "glu: the last axis has %lld elements, an odd number", (long long)n);
    return ty_b_mul(g, ty_b_slice_axis(g, x, axis, 0, n / 2), ty_b_sigmoid(g, ty_b_slice_axis(g, x, axis, n / 2, n)));
}

/* Martins, Astudillo, "From softmax to sparsemax", 2016: max(x - tau, 0), where those above tau add up to 1. */
static ty_val activation_sparsemax(ty_graph *g, ty_val x)
{
    int axis = ty_b_rank(g, x) - 1;
    ty_val sorted = ty_b_sort(g, x, axis, true, NULL), sums = ty_b_scan(g, sorted, TY_SUM, axis, false, false);
    ty_type t = *ty_graph_type(g, x);
    t.dtype = TY_I64;
    ty_val rank = ty_b_add_s(g, ty_b_cast(g, ty_b_iota(g, t, axis), ty_b_dtype(g, x)), 1);
    ty_val zero = activation_number(g, x, 0);
    ty_val edge = ty_b_sub(g, sorted, ty_b_div(g, ty_b_add_s(g, sums, -1), rank));
    ty_val support = ty_b_lt(g, zero, edge);
    ty_val count = ty_b_sum(g, ty_b_cast(g, support, ty_b_dtype(g, x)), 1u << axis, true);
    ty_val inside = ty_b_sum(g, ty_b_select(g, support, sums, zero), 1u << axis, true);
    return ty_b_relu(g, ty_b_sub(g, x, ty_b_div(g, ty_b_add_s(g, inside, -1), count)));
}

typedef struct activation_row {
    const char *name;
    activation_fn *fn;
    bool needs_axis; /* the last one */
} activation_row;

static const activation_row activation_rows[] = {
    {"linear", activation_linear, false},
    {"relu", ty_b_relu, false},
    {"relu6", activation_relu6, false},
    {"leaky_relu", activation_leaky_relu, false},
    {"elu", activation_elu, false},
    {"selu", activation_selu, false},
    {"celu", activation_celu, false},
    {"gelu", activation_gelu, false},
    {"silu", activation_silu, false},
    {"swish", activation_silu, false},
    {"hard_silu", activation_hard_silu, false},
    {"hard_swish", activation_hard_silu, false},
    {"sigmoid", ty_b_sigmoid, false},
    {"hard_sigmoid", activation_hard_sigmoid, false},
    {"log_sigmoid", activation_log_sigmoid, false},
    {"sparse_sigmoid", activation_sparse_sigmoid, false},
    {"tanh", activation_tanh, false},
    {"hard_tanh", activation_hard_tanh, false},
    {"tanh_shrink", activation_tanh_shrink, false},
    {"hard_shrink", activation_hard_shrink, false},
    {"soft_shrink", activation_soft_shrink, false},
    {"softplus", ty_b_softplus, false},
    {"sparse_plus", activation_sparse_plus, false},
    {"squareplus", activation_squareplus, false},
    {"softsign", activation_softsign, false},
    {"exponential", ty_b_exp, false},
    {"mish", activation_mish, false},
    {"softmax", activation_softmax, true},
    {"log_softmax", activation_log_softmax, true},
    {"glu", activation_glu, true},
    {"sparsemax", activation_sparsemax, true},
};

ty_val keras_activation_named(keras_call *c, const char *name, ty_val x)
{
    for (size_t i = 0; i < sizeof activation_rows / sizeof *activation_rows; i++) {
        const activation_row *row = &activation_rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (row->fn == activation_linear || x == TY_NONE)
            return x;
        if (row->needs_axis && ty_b_rank(c->g, x) == 0) {
            keras_fail(c, TY_E_SHAPE, "activation %s of a number without axes", name);
            return TY_NONE;
        }
        return row->fn(c->g, keras_float(c, x));
    }
    keras_fail(c, TY_E_UNSUPPORTED, "unknown activation \"%.100s\"", name);
    keras_help(c, "use an activation of Keras' own, or layers in its place");
    return TY_NONE;
}

/* A function as Keras 3 writes one of the user's: {"module", "class_name": "function", "config": name}; Keras' own are
 * names, or functions of the module builtins. */
const char *keras_activation_name(const ty_doc *d)
{
    if (!d || d->kind == TY_DOC_NULL)
        return "linear";
    const char *name = keras_string(d), *class_name = keras_string(ty_doc_find(d, "class_name"));
    if (!name && class_name && strcmp(class_name, "function") == 0)
        name = keras_string(ty_doc_find(d, "config"));
    return name;
}

/* A layer as activation (LeakyReLU ...): it has no weights of its own and is applied in place. */
static ty_val activation_layer(keras_call *c, const ty_doc *d, ty_val x)
{
    const char *class_name = keras_string(ty_doc_find(d, "class_name"));
    keras_layer *layer = TY_NEW(&c->walk->arena, keras_layer);
    *layer = *c->layer;
    layer->row = class_name ? keras_find_row(class_name) : NULL;
    layer->config = layer->data = ty_doc_find(d, "config");
    layer->class_name = class_name ? class_name : "?";
    layer->weight = NULL, layer->sub = NULL, layer->n_weights = layer->n_subs = 0;
    if (!layer->row || strcmp(class_name, "PReLU") == 0) {
        keras_fail(c, TY_E_UNSUPPORTED, "unknown activation of class %.100s", layer->class_name);
        keras_help(c, "use an activation of Keras' own, or layers in its place");
        return TY_NONE;
    }
    layer->created = true;
    keras_apply a = {.layer = layer, .in = &x, .n_in = 1, .bare = true};
    return keras_apply_layer(c, &a) ? a.out[0] : TY_NONE;
}

ty_val keras_activation(keras_call *c, const ty_doc *d, ty_val x)
{
    const char *name = keras_activation_name(d);
    if (c->failed || x == TY_NONE)
        return TY_NONE;
    return name ? keras_activation_named(c, name, x) : activation_layer(c, d, x);
}
