/* trainyard/model.h - a network as a C function.
 *
 * A model is one file, model.c, with one function, model(). It is called to say what is computed; it computes nothing
 * itself. Every call adds a piece to a graph; gradients, optimizer, memory plan and kernels follow from that graph.
 *
 *     #include <trainyard/model.h>
 *
 *     void model(ty_net *net)
 *     {
 *         ty_var x = ty_input(net, "x", "f32[batch,64]");
 *         x = ty_relu(net, ty_linear(net, "hidden", x, 128));
 *         ty_output(net, "logits", ty_linear(net, "out", x, 10));
 *     }
 *
 * Name the file in the recipe (`model: model.c`) and train; nothing is to be compiled or linked by hand. The system's C
 * compiler makes a shared object of it, which needs no symbol of ours: every call goes through a table in `net`.
 *
 * When model() runs
 *   Several times: when the file is opened (first in a process of its own, so that a crash or an endless loop there is
 *   an error with the line and not the end of the job), and again for every graph, for training and for evaluation.
 *   It must add the same things each time, so it must not depend on time, files or static variables. After that
 *   rehearsal it runs in the trainer's own process, with all its rights: a model.c is a program, not data.
 *
 * Shapes
 *   Are known at every call: ty_dim() gives a plain number. An input may leave dimensions free by giving a name instead
 *   of a number ("f32[batch,64]"); they are bound before model() runs. When the file is opened the first is bound to 32,
 *   then to 64, a second name to 33 and 65, and so on, to learn how the outputs depend on them; do not write such a
 *   number into the network: take ty_dim().
 *
 * Values
 *   A ty_var is a tensor that will exist when the graph runs. Copy it freely, never keep it longer than the call.
 *   Binary operators broadcast as NumPy's: shapes are aligned at the right, dimensions of 1 stretch. Element types must
 *   agree: ty_cast converts. Axes count from 0, or from the end with -1.
 *
 * Mistakes
 *   The first one (a shape that does not fit, a name used twice) ends the building with the file and line of the call;
 *   all later calls do nothing. So model() need not check anything.
 */
#ifndef TRAINYARD_MODEL_H
#define TRAINYARD_MODEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Counts changes of this header that old objects would not survive. */
#define TY_MODEL_VERSION 1

/* ---- types ------------------------------------------------------------------------------------------------------ */

#define TY_MODEL_MAX_RANK 8

/* A tensor of the network. {0} is none. */
typedef struct ty_var {
    uint32_t id;
} ty_var;

/* A list of up to 8 whole numbers: a shape, axes, a permutation. Write ty_dims(2, 3). */
typedef struct ty_shape {
    int64_t n;
    int64_t dim[TY_MODEL_MAX_RANK];
} ty_shape;

#define ty_dims(...)                                                                                                   \
    ((ty_shape){.n = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = {__VA_ARGS__}})

/* How a parameter starts. Numbers come from a counter-based generator: a function of the seed (ty_seed), the
 * parameter's name and the element's position alone. Adding a layer changes no other layer's start. */
typedef enum ty_init_kind {
    TY_INIT_DEFAULT, /* what the layer's text says; for ty_parameter: zeros */
    TY_INIT_CONSTANT,
    TY_INIT_UNIFORM,
    TY_INIT_NORMAL,
    TY_INIT_KAIMING_UNIFORM,
    TY_INIT_KAIMING_NORMAL,
    TY_INIT_XAVIER_UNIFORM,
    TY_INIT_XAVIER_NORMAL
} ty_init_kind;

typedef struct ty_init {
    ty_init_kind kind;
    double a, b;
} ty_init;

#define ty_zeros()           ((ty_init){TY_INIT_CONSTANT, 0, 0})
#define ty_ones()            ((ty_init){TY_INIT_CONSTANT, 1, 0})
#define ty_filled(value)     ((ty_init){TY_INIT_CONSTANT, (value), 0})
#define ty_uniform(lo, hi)   ((ty_init){TY_INIT_UNIFORM, (lo), (hi)})
#define ty_normal(mean, dev) ((ty_init){TY_INIT_NORMAL, (mean), (dev)})
/* He et al. 2015, for layers before a ReLU: variance 2 / fan_in. fan_in is the product of all dimensions but the first,
 * as in [out, in, window...]. */
#define ty_kaiming_uniform() ((ty_init){TY_INIT_KAIMING_UNIFORM, 0, 0})
#define ty_kaiming_normal()  ((ty_init){TY_INIT_KAIMING_NORMAL, 0, 0})
/* Glorot and Bengio 2010: variance gain^2 * 2 / (fan_in + fan_out). */
#define ty_xavier_uniform(gain) ((ty_init){TY_INIT_XAVIER_UNIFORM, (gain), 0})
#define ty_xavier_normal(gain)  ((ty_init){TY_INIT_XAVIER_NORMAL, (gain), 0})

/* ---- options of layers: write .field = value behind the arguments; left out: the value given here --- */

typedef struct ty_linear_options {
    int unset_;
    bool no_bias;
    ty_init weight, bias; /* uniform in +-1 / sqrt(fan_in), both (PyTorch's) */
} ty_linear_options;

/* The plural fields say one number an axis and win over the singular ones. */
typedef struct ty_conv_options {
    int unset_;
    int64_t stride, dilation, groups; /* 1 */
    int64_t padding;                  /* 0; zeros on both sides */
    int64_t output_padding;           /* 0; ty_conv_transpose only */
    ty_shape kernels, strides, dilations, paddings, output_paddings;
    bool no_bias;
    ty_init weight, bias; /* as in ty_linear_options */
} ty_conv_options;

typedef struct ty_pool_options {
    int unset_;
    int64_t stride;         /* the window's size */
    int64_t padding;        /* 0 */
    int64_t dilation;       /* 1 */
    bool ceil;              /* a last window that only partly lies inside counts */
    bool count_padding;     /* ty_avg_pool: zeros of the padding are averaged too */
    ty_shape kernels, strides, dilations, paddings;
} ty_pool_options;

typedef struct ty_norm_options {
    int unset_;
    double eps;      /* 1e-5 */
    double momentum; /* 0.1; ty_batch_norm: share of the new batch in the running statistics */
    int64_t axes;    /* 1; ty_layer_norm, ty_rms_norm: how many last axes are normalised together */
    bool no_bias, no_scale;
    ty_init scale, bias; /* ones, zeros */
} ty_norm_options;

typedef struct ty_embedding_options {
    int unset_;
    ty_init weight; /* ty_normal(0, 1) */
} ty_embedding_options;

typedef struct ty_attention_options {
    int unset_;
    bool causal;    /* position i sees positions up to i only */
    double scale;   /* 1 / sqrt(size of a head) */
    ty_var mask;    /* broadcast to [batch, heads, queries, keys]; bool: true is seen; float: added to the scores */
    ty_var memory;  /* ty_multi_head_attention: keys and values come from here; none: from x itself */
    double dropout; /* 0; of the attention weights */
    bool no_bias;   /* ty_multi_head_attention */
} ty_attention_options;

/* ---- how calls travel: nothing here is for models to use -------------------------------------------------------- */

typedef struct ty_net ty_net;

typedef struct ty_args {
    int unset_;
    const char *name, *text;
    ty_shape dims, more;
    int64_t axis, from, to, count;
    double value, value2;
    bool flag;
    ty_init init;
    const void *data, *options;
} ty_args;

/* Several tensors; {0} stands for one that is left out. Write ty_vars(x, w). */
typedef struct ty_list {
    const ty_var *var;
    int64_t n;
} ty_list;

#define ty_vars(...)                                                                                                   \
    ((ty_list){.var = (const ty_var[]){__VA_ARGS__}, .n = (int64_t)(sizeof((ty_var[]){__VA_ARGS__}) / sizeof(ty_var))})

struct ty_onnx_call_ {
    ty_list in;
    ty_var *out;
    int64_t n_out;
};

typedef struct ty_net_calls {
    ty_var (*apply)(ty_net *net, const char *op, const ty_var *in, int n_in, const ty_args *args);
    ty_shape (*shape)(ty_net *net, ty_var x);
    bool (*training)(ty_net *net);
    const char *(*text)(ty_net *net, const char *text);
    void (*fail)(ty_net *net, const char *text);
    /* of layers */
    void (*define)(ty_net *net, const char *class_name, void (*layer)(ty_net *net));
    double (*number)(ty_net *net, const char *key, double absent);
    const char *(*setting)(ty_net *net, const char *key, const char *absent);
    ty_shape (*settings)(ty_net *net, const char *key);
} ty_net_calls;

/* The network being built. The first members are filled by the calls below. */
struct ty_net {
    const ty_net_calls *calls;
    const char *file; /* where the call in progress stands */
    int line;
};

/* The function that a model.c defines, and the one of a source of layers. */
__attribute__((visibility("default"))) void model(ty_net *net);
__attribute__((visibility("default"))) void trainyard_layers(ty_net *net);

#ifndef TY_MODEL_TYPES_ONLY

__attribute__((visibility("default"), weak, used)) const int ty_model_version = TY_MODEL_VERSION;

static inline ty_net *ty_at_(ty_net *net, const char *file, int line)
{
    net->file = file;
    net->line = line;
    return net;
}

static inline ty_var ty_apply0_(ty_net *net, const char *op, const ty_args *args)
{
    return net->calls->apply(net, op, NULL, 0, args);
}

static inline ty_var ty_apply1_(ty_net *net, const char *op, ty_var x, const ty_args *args)
{
    return net->calls->apply(net, op, &x, 1, args);
}

static inline ty_var ty_apply2_(ty_net *net, const char *op, ty_var a, ty_var b, const ty_args *args)
{
    ty_var in[] = {a, b};
    return net->calls->apply(net, op, in, 2, args);
}

static inline ty_var ty_apply3_(ty_net *net, const char *op, ty_var a, ty_var b, ty_var c, const ty_args *args)
{
    ty_var in[] = {a, b, c};
    return net->calls->apply(net, op, in, 3, args);
}

static inline int64_t ty_dim_(ty_net *net, ty_var x, int axis)
{
    ty_shape shape = net->calls->shape(net, x);
    int64_t i = axis < 0 ? axis + shape.n : axis;
    if (i >= 0 && i < shape.n)
        return shape.dim[i];
    net->calls->fail(net, "the axis is outside the tensor");
    return 1;
}

__attribute__((format(printf, 2, 3))) static inline const char *ty_text_(ty_net *net, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return net->calls->text(net, text);
}

#define TY_AT_(net)                ty_at_(net, __FILE__, __LINE__)
#define TY_1_(net, op, x, ...)     ty_apply1_(TY_AT_(net), op, x, &(ty_args){.unset_ = 0, __VA_ARGS__})
#define TY_2_(net, op, a, b, ...)  ty_apply2_(TY_AT_(net), op, a, b, &(ty_args){.unset_ = 0, __VA_ARGS__})
#define TY_OPTIONS_(type, ...)     .options = &(type){.unset_ = 0, __VA_ARGS__}

/* ---- the network ------------------------------------------------------------------------------------------------ */

/* An input of the model. type: element type and shape, "f32[batch,1,8,8]"; a name is a free dimension. Element types:
 * bool i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64. */
#define ty_input(net, name_, type_) ty_apply0_(TY_AT_(net), "input", &(ty_args){.name = name_, .text = type_})
/* Names x as an output: what losses, metrics and users read. */
#define ty_output(net, name_, x) ((void)TY_1_(net, "output", x, .name = name_))
/* f32 numbers that training changes. Asking again for a name gives the same parameter: that is how layers share. */
#define ty_parameter(net, name_, dims_, init_)                                                                         \
    ty_apply0_(TY_AT_(net), "parameter", &(ty_args){.name = name_, .dims = dims_, .init = init_})
/* f32 numbers that belong to the model but get no gradient; ty_update gives the value after a training step. */
#define ty_buffer(net, name_, dims_, init_)                                                                            \
    ty_apply0_(TY_AT_(net), "buffer", &(ty_args){.name = name_, .dims = dims_, .init = init_})
#define ty_update(net, buffer_, value_) ((void)TY_2_(net, "update", buffer_, value_))
/* Fixed numbers; they are copied. dtype "f32", "i64" ...; data: an array of that type. */
#define ty_constant(net, dtype_, dims_, data_)                                                                         \
    ty_apply0_(TY_AT_(net), "constant", &(ty_args){.text = dtype_, .dims = dims_, .data = data_})
/* One number in all places of a shape; ty_dims() is a scalar. */
#define ty_full(net, dtype_, dims_, value_)                                                                            \
    ty_apply0_(TY_AT_(net), "full", &(ty_args){.text = dtype_, .dims = dims_, .value = value_})
#define ty_number(net, dtype_, value_) ty_full(net, dtype_, ((ty_shape){.n = 0}), value_)
/* 0, 1, 2 ... along an axis. */
#define ty_iota(net, dtype_, dims_, axis_)                                                                             \
    ty_apply0_(TY_AT_(net), "iota", &(ty_args){.text = dtype_, .dims = dims_, .axis = axis_})
/* f32 in [0, 1), other numbers each step; in training only. */
#define ty_random(net, dims_) ty_apply0_(TY_AT_(net), "random", &(ty_args){.dims = dims_})

/* Names of parameters and buffers between these two begin with "name.". Scopes nest. */
#define ty_scope(net, name_) ((void)ty_apply0_(TY_AT_(net), "scope", &(ty_args){.name = name_}))
#define ty_end(net)          ((void)ty_apply0_(TY_AT_(net), "end", NULL))
/* Text as by printf, kept as long as the network: ty_text(net, "layers.%d", i). */
#define ty_text(net, ...) ty_text_(TY_AT_(net), __VA_ARGS__)
/* Seed of the parameters' start, before the first parameter. */
#define ty_seed(net, seed_) ((void)ty_apply0_(TY_AT_(net), "seed", &(ty_args){.count = (int64_t)(seed_)}))
/* True if this graph is for training: dropout drops, batch norm uses the batch. The layers know by themselves. */
#define ty_training(net) (net)->calls->training(net)
#define ty_rank(net, x)  ((int)TY_AT_(net)->calls->shape(net, x).n)
#define ty_dim(net, x, axis_) ty_dim_(TY_AT_(net), x, axis_)
/* Refuses the model: ty_fail(net, "needs an even width, has %d", w). */
#define ty_fail(net, ...) ty_at_(net, __FILE__, __LINE__)->calls->fail(net, ty_text_(net, __VA_ARGS__))

/* ---- layers: a name, an input, sizes, options ---------------------------------------------------------------------
 * Names and shapes of their parameters are PyTorch's, so that its safetensors fit. Options are written behind:
 * ty_conv(net, "conv1", x, 16, 3, .padding = 1, .no_bias = true). */

/* x W' + b over the last axis. NAME.weight [out, in], NAME.bias [out]. */
#define ty_linear(net, name_, x, out, ...)                                                                             \
    TY_1_(net, "linear", x, .name = name_, .count = out, TY_OPTIONS_(ty_linear_options, __VA_ARGS__))
/* Cross-correlation over 1 to 3 spatial axes: x [N, C, spatial...] -> [N, out, ...].
 * NAME.weight [out, C / groups, kernel...], NAME.bias [out]. */
#define ty_conv(net, name_, x, out, kernel, ...)                                                                       \
    TY_1_(net, "conv", x, .name = name_, .count = out, .from = kernel, TY_OPTIONS_(ty_conv_options, __VA_ARGS__))
/* The gradient of ty_conv as a layer: strides enlarge. NAME.weight [C, out / groups, kernel...]. */
#define ty_conv_transpose(net, name_, x, out, kernel, ...)                                                             \
    TY_1_(net, "conv_transpose", x, .name = name_, .count = out, .from = kernel,                                       \
          TY_OPTIONS_(ty_conv_options, __VA_ARGS__))
/* x [N, C, ...], each channel to mean 0 and variance 1 over the batch, then scale and shift; in evaluation by running
 * statistics. NAME.weight, NAME.bias, NAME.running_mean, NAME.running_var, all [C]. Ioffe and Szegedy 2015. */
#define ty_batch_norm(net, name_, x, ...)                                                                              \
    TY_1_(net, "batch_norm", x, .name = name_, TY_OPTIONS_(ty_norm_options, __VA_ARGS__))
/* Each row over its last axes to mean 0 and variance 1, then scale and shift. NAME.weight, NAME.bias. */
#define ty_layer_norm(net, name_, x, ...)                                                                              \
    TY_1_(net, "layer_norm", x, .name = name_, TY_OPTIONS_(ty_norm_options, __VA_ARGS__))
/* x / sqrt(mean(x^2) + eps) * scale. NAME.weight. */
#define ty_rms_norm(net, name_, x, ...)                                                                                \
    TY_1_(net, "rms_norm", x, .name = name_, TY_OPTIONS_(ty_norm_options, __VA_ARGS__))
/* x [N, C, ...], each group of C / groups channels of a sample. NAME.weight, NAME.bias [C]. */
#define ty_group_norm(net, name_, x, groups, ...)                                                                      \
    TY_1_(net, "group_norm", x, .name = name_, .count = groups, TY_OPTIONS_(ty_norm_options, __VA_ARGS__))
/* Rows of a table by their numbers, 0 <= ids < rows (i32 or i64): shape of ids, then size. NAME.weight [rows, size]. */
#define ty_embedding(net, name_, ids, rows, size, ...)                                                                 \
    TY_1_(net, "embedding", ids, .name = name_, .count = rows, .from = size,                                           \
          TY_OPTIONS_(ty_embedding_options, __VA_ARGS__))
/* In training, zeroes each number with this probability and divides the others by 1 - probability. */
#define ty_dropout(net, x, probability) TY_1_(net, "dropout", x, .value = probability)
/* softmax(q k' scale + mask) v; q [batch, heads, queries, size], k and v [batch, heads, keys, size]. */
#define ty_attention(net, q, k, v, ...)                                                                                \
    ty_apply3_(TY_AT_(net), "attention", q, k, v,                                                                      \
               &(ty_args){.unset_ = 0, TY_OPTIONS_(ty_attention_options, __VA_ARGS__)})
/* Projections to heads, attention, projection back: x [batch, length, size] keeps its shape.
 * NAME.q, NAME.k, NAME.v, NAME.out: each .weight [size, size] and .bias [size]. */
#define ty_multi_head_attention(net, name_, x, heads, ...)                                                             \
    TY_1_(net, "multi_head_attention", x, .name = name_, .count = heads, TY_OPTIONS_(ty_attention_options, __VA_ARGS__))

/* x [N, C, spatial...], windows of `kernel` on every spatial axis. */
#define ty_max_pool(net, x, kernel, ...)                                                                               \
    TY_1_(net, "max_pool", x, .from = kernel, TY_OPTIONS_(ty_pool_options, __VA_ARGS__))
#define ty_avg_pool(net, x, kernel, ...)                                                                               \
    TY_1_(net, "avg_pool", x, .from = kernel, TY_OPTIONS_(ty_pool_options, __VA_ARGS__))
/* Over all spatial positions: [N, C, 1, ...]. */
#define ty_global_max_pool(net, x) TY_1_(net, "global_max_pool", x)
#define ty_global_avg_pool(net, x) TY_1_(net, "global_avg_pool", x)

/* ---- activations ------------------------------------------------------------------------------------------------ */

#define ty_relu(net, x)              TY_1_(net, "relu", x)                      /* max(x, 0) */
#define ty_leaky_relu(net, x, slope) TY_1_(net, "leaky_relu", x, .value = slope) /* slope below 0 */
#define ty_elu(net, x, alpha)        TY_1_(net, "elu", x, .value = alpha)       /* alpha (exp(x) - 1) below 0 */
#define ty_selu(net, x)              TY_1_(net, "selu", x)
#define ty_gelu(net, x)              TY_1_(net, "gelu", x)      /* x/2 (1 + erf(x / sqrt 2)) */
#define ty_gelu_tanh(net, x)         TY_1_(net, "gelu_tanh", x) /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
#define ty_silu(net, x)              TY_1_(net, "silu", x)      /* x sigmoid(x) */
#define ty_mish(net, x)              TY_1_(net, "mish", x)      /* x tanh(softplus(x)) */
#define ty_sigmoid(net, x)           TY_1_(net, "sigmoid", x)
#define ty_tanh(net, x)              TY_1_(net, "tanh", x)
#define ty_softplus(net, x)          TY_1_(net, "softplus", x)     /* log(1 + exp(x)) */
#define ty_softsign(net, x)          TY_1_(net, "softsign", x)     /* x / (1 + |x|) */
#define ty_hard_sigmoid(net, x)      TY_1_(net, "hard_sigmoid", x) /* clip(x + 3, 0, 6) / 6 */
#define ty_hard_swish(net, x)        TY_1_(net, "hard_swish", x)   /* x hard_sigmoid(x) */
#define ty_clip(net, x, lo, hi)      TY_1_(net, "clip", x, .value = lo, .value2 = hi)
#define ty_softmax(net, x, axis_)    TY_1_(net, "softmax", x, .axis = axis_)
#define ty_log_softmax(net, x, axis_) TY_1_(net, "log_softmax", x, .axis = axis_)

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

#define ty_add(net, a, b) TY_2_(net, "add", a, b)
#define ty_sub(net, a, b) TY_2_(net, "sub", a, b)
#define ty_mul(net, a, b) TY_2_(net, "mul", a, b)
#define ty_div(net, a, b) TY_2_(net, "div", a, b)
#define ty_rem(net, a, b) TY_2_(net, "rem", a, b) /* C's: the sign of a */
#define ty_pow(net, a, b) TY_2_(net, "pow", a, b)
#define ty_max(net, a, b) TY_2_(net, "max", a, b)
#define ty_min(net, a, b) TY_2_(net, "min", a, b)
#define ty_scale(net, x, factor) TY_1_(net, "scale", x, .value = factor) /* x times a number */
#define ty_shift(net, x, term)   TY_1_(net, "shift", x, .value = term)   /* x plus a number */
#define ty_eq(net, a, b) TY_2_(net, "eq", a, b) /* bool, like the next ones */
#define ty_ne(net, a, b) TY_2_(net, "ne", a, b)
#define ty_lt(net, a, b) TY_2_(net, "lt", a, b)
#define ty_le(net, a, b) TY_2_(net, "le", a, b)
#define ty_gt(net, a, b) TY_2_(net, "gt", a, b)
#define ty_ge(net, a, b) TY_2_(net, "ge", a, b)
#define ty_and(net, a, b) TY_2_(net, "and", a, b) /* bool and integers */
#define ty_or(net, a, b)  TY_2_(net, "or", a, b)
#define ty_xor(net, a, b) TY_2_(net, "xor", a, b)
#define ty_not(net, x)    TY_1_(net, "not", x)
#define ty_where(net, condition, a, b) ty_apply3_(TY_AT_(net), "where", condition, a, b, NULL) /* a if true, else b */
#define ty_cast(net, x, dtype_)        TY_1_(net, "cast", x, .text = dtype_)
#define ty_stop_gradient(net, x)       TY_1_(net, "stop_gradient", x) /* x, through which no gradient flows */

#define ty_neg(net, x)        TY_1_(net, "neg", x)
#define ty_abs(net, x)        TY_1_(net, "abs", x)
#define ty_sign(net, x)       TY_1_(net, "sign", x)
#define ty_floor(net, x)      TY_1_(net, "floor", x)
#define ty_ceil(net, x)       TY_1_(net, "ceil", x)
#define ty_round(net, x)      TY_1_(net, "round", x) /* half to even */
#define ty_square(net, x)     TY_1_(net, "square", x)
#define ty_sqrt(net, x)       TY_1_(net, "sqrt", x)
#define ty_rsqrt(net, x)      TY_1_(net, "rsqrt", x)
#define ty_reciprocal(net, x) TY_1_(net, "reciprocal", x)
#define ty_exp(net, x)        TY_1_(net, "exp", x)
#define ty_expm1(net, x)      TY_1_(net, "expm1", x)
#define ty_log(net, x)        TY_1_(net, "log", x)
#define ty_log1p(net, x)      TY_1_(net, "log1p", x)
#define ty_sin(net, x)        TY_1_(net, "sin", x)
#define ty_cos(net, x)        TY_1_(net, "cos", x)
#define ty_atan(net, x)       TY_1_(net, "atan", x)
#define ty_erf(net, x)        TY_1_(net, "erf", x)

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

#define TY_END INT64_MAX

/* 0 keeps the dimension of x at that place, one -1 takes what is left: ty_reshape(net, x, ty_dims(0, -1)). */
#define ty_reshape(net, x, dims_) TY_1_(net, "reshape", x, .dims = dims_)
/* Joins all axes from this one on: [N, C, H, W] at 1 is [N, C H W]. */
#define ty_flatten(net, x, axis_) TY_1_(net, "flatten", x, .axis = axis_)
/* Axis i of the result is axis perm[i] of x. */
#define ty_transpose(net, x, perm) TY_1_(net, "transpose", x, .dims = perm)
#define ty_expand(net, x, dims_)   TY_1_(net, "expand", x, .dims = dims_) /* stretches dimensions of 1 */
#define ty_unsqueeze(net, x, axis_) TY_1_(net, "unsqueeze", x, .axis = axis_)
#define ty_squeeze(net, x, axis_)   TY_1_(net, "squeeze", x, .axis = axis_)
/* x[..., from:to, ...] on one axis, as in NumPy: negative counts from the end, too far is cut. */
#define ty_slice(net, x, axis_, from_, to_) TY_1_(net, "slice", x, .axis = axis_, .from = from_, .to = to_)
/* lo and hi: how many to add before and behind on every axis. */
#define ty_pad(net, x, lo, hi, value_) TY_1_(net, "pad", x, .dims = lo, .more = hi, .value = value_)
#define ty_reverse(net, x, axis_)      TY_1_(net, "reverse", x, .axis = axis_)
/* ty_concat(net, 1, a, b, c). */
#define ty_concat(net, axis_, ...)                                                                                     \
    TY_AT_(net)->calls->apply(net, "concat", (ty_var[]){__VA_ARGS__},                                                  \
                              (int)(sizeof((ty_var[]){__VA_ARGS__}) / sizeof(ty_var)), &(ty_args){.axis = axis_})

/* ---- lookup, reduction, products -------------------------------------------------------------------------------- */

/* Rows of x along the axis, 0 <= index < dimension: axis is replaced by the shape of index. */
#define ty_gather(net, x, index, axis_) TY_2_(net, "gather", x, index, .axis = axis_)
/* As NumPy's take_along_axis. */
#define ty_take(net, x, index, axis_) TY_2_(net, "take", x, index, .axis = axis_)
/* f32, one axis of `classes` more: 1 where the class is ids. */
#define ty_one_hot(net, ids, classes) TY_1_(net, "one_hot", ids, .count = classes)
/* axes: ty_dims(...); none means all. keep: the axes stay with dimension 1. */
#define ty_reduce_sum(net, x, axes, keep)  TY_1_(net, "reduce_sum", x, .dims = axes, .flag = keep)
#define ty_reduce_mean(net, x, axes, keep) TY_1_(net, "reduce_mean", x, .dims = axes, .flag = keep)
#define ty_reduce_max(net, x, axes, keep)  TY_1_(net, "reduce_max", x, .dims = axes, .flag = keep)
#define ty_reduce_min(net, x, axes, keep)  TY_1_(net, "reduce_min", x, .dims = axes, .flag = keep)
#define ty_reduce_prod(net, x, axes, keep) TY_1_(net, "reduce_prod", x, .dims = axes, .flag = keep)
#define ty_log_sum_exp(net, x, axes, keep) TY_1_(net, "log_sum_exp", x, .dims = axes, .flag = keep)
#define ty_arg_max(net, x, axis_)          TY_1_(net, "arg_max", x, .axis = axis_) /* i64; the first of equals */
#define ty_arg_min(net, x, axis_)          TY_1_(net, "arg_min", x, .axis = axis_)
#define ty_cumsum(net, x, axis_)           TY_1_(net, "cumsum", x, .axis = axis_)
/* NumPy's: leading axes broadcast, vectors are rows or columns. */
#define ty_matmul(net, a, b) TY_2_(net, "matmul", a, b)

/* ---- layers of Keras models ------------------------------------------------------------------------------------------
 * A Keras file names the classes of its layers; the code of one's own classes is not in it. A C source that the recipe
 * names (`layers: my_layers.c`) brings it:
 *
 *     static void scaled(ty_net *net)            // Python: self.w = add_weight(...); call(x): x * self.w * self.factor
 *     {
 *         ty_var x = ty_layer_input(net, 0);
 *         ty_var w = ty_parameter(net, "w", ty_dims(ty_dim(net, x, -1)), ty_ones());
 *         ty_layer_output(net, 0, ty_scale(net, ty_mul(net, x, w), ty_layer_number(net, "factor", 1)));
 *     }
 *
 *     void trainyard_layers(ty_net *net)
 *     {
 *         trainyard_layer_register(net, "Scaled", scaled);
 *     }
 *
 * Parameters and buffers are asked for in the order of the class's add_weight() calls, those with trainable=False as
 * buffers: so they find their data sets in the file. Those of a layer that the class keeps as self.dense are asked for
 * in ty_scope(net, "dense"). The function runs for every call of the layer in the model. */

#define trainyard_layer_register(net, class_name_, layer_) TY_AT_(net)->calls->define(net, class_name_, layer_)
/* Tensor i of the call's first argument. */
#define ty_layer_input(net, i_) ty_apply0_(TY_AT_(net), "layer_input", &(ty_args){.count = i_})
#define ty_layer_output(net, i_, x) ((void)TY_1_(net, "layer_output", x, .count = i_))
/* Entries of the layer's configuration (get_config()); what is missing or null is `absent`, a list without entries. */
#define ty_layer_number(net, key_, absent_) TY_AT_(net)->calls->number(net, key_, absent_)
#define ty_layer_text(net, key_, absent_)   TY_AT_(net)->calls->setting(net, key_, absent_)
#define ty_layer_dims(net, key_)            TY_AT_(net)->calls->settings(net, key_)

/* ---- every other operator --------------------------------------------------------------------------------------- */

/* Any operator that can be imported from a file, by its name in ONNX (opset 23; "com.microsoft.FastGelu" for those of
 * another domain), with its inputs and attributes there. Attributes are a YAML map without braces, NULL for none:
 *
 *     ty_var y = ty_onnx(net, "DepthToSpace", ty_vars(x), "blocksize: 2, mode: CRD");
 *     ty_var clipped = ty_onnx(net, "Clip", ty_vars(x, none, six), NULL);                  // ty_var none = {0}
 *     ty_var out[3];
 *     ty_onnx_results(net, "LSTM", ty_vars(x, w, r), "hidden_size: 32, activations: [Tanh, Tanh, Tanh]", out, 3);
 *
 * What ONNX wants as a constant (axes, shapes) is a ty_constant. Sequences and what has graphs inside (If, Loop, Scan)
 * are left to C itself. ty_onnx is the first result; ty_onnx_results fills out with the first n_out, {0} where the
 * operator leaves one out. */
#define ty_onnx(net, op_, inputs_, attributes_) ty_onnx_(net, op_, inputs_, attributes_, NULL, 1)
#define ty_onnx_results(net, op_, inputs_, attributes_, out_, n_out_)                                                  \
    ((void)ty_onnx_(net, op_, inputs_, attributes_, out_, n_out_))
#define ty_onnx_(net, op_, inputs_, attributes_, out_, n_out_)                                                         \
    ty_apply0_(TY_AT_(net), "onnx",                                                                                    \
               &(ty_args){.name = op_, .text = attributes_, .options = &(struct ty_onnx_call_){inputs_, out_, n_out_}})

#endif /* TY_MODEL_TYPES_ONLY */
#endif
