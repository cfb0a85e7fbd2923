/* cmodel_layers.c - layers of trainyard/model.h with weights, and those that act otherwise in training.
 *
 * Names, shapes, initial values and formulas are PyTorch's.
 */
#include "compiler/import/cmodel_net.h"

#include <math.h>
#include <string.h>

static ty_init layer_init(ty_init given, ty_init otherwise)
{
    return given.kind == TY_INIT_DEFAULT ? otherwise : given;
}

static ty_init layer_constant(ty_init given, double value)
{
    return layer_init(given, (ty_init){TY_INIT_CONSTANT, value, 0});
}

static bool layer_size_ok(cmodel_net *net, const char *what, int64_t size)
{
    if (size >= 1)
        return true;
    cmodel_fail(net, TY_E_ATTRIBUTE, "%s must be at least 1, found %lld", what, (long long)size);
    return false;
}

/* ---- linear ----------------------------------------------------------------------------------------------------- */

static ty_val layer_linear(cmodel_net *net, const char *name, ty_val x, int64_t out, const ty_linear_options *o)
{
    ty_graph *g = net->g;
    if (!cmodel_rank_is(net, x, 1, TY_MAX_RANK) || !layer_size_ok(net, "the size", out))
        return TY_NONE;
    const ty_type t = *ty_graph_type(g, x);
    int64_t in = t.dim[t.rank - 1], dim[] = {out, in}, rows[] = {in ? ty_type_elems(&t) / in : 0, in};
    double bound = 1 / sqrt(in > 0 ? (double)in : 1);
    ty_init usual = {TY_INIT_UNIFORM, -bound, bound};
    ty_val w = cmodel_parameter(net, cmodel_join(net, name, "weight"), 2, dim, layer_init(o->weight, usual));
    ty_val y = ty_b_dot(g, ty_b_reshape(g, x, 2, rows), w, false, true);
    if (!o->no_bias)
        y = ty_b_add(g, y, cmodel_parameter(net, cmodel_join(net, name, "bias"), 1, &out, layer_init(o->bias, usual)));
    int64_t shape[TY_MAX_RANK];
    memcpy(shape, t.dim, sizeof shape);
    shape[t.rank - 1] = out;
    return ty_b_reshape(g, y, t.rank, shape);
}

static ty_val op_linear(cmodel_net *net, const cmodel_call *c)
{
    return layer_linear(net, c->args->name, c->in[0], c->args->count, c->args->options);
}

/* ---- normalisation ---------------------------------------------------------------------------------------------- */

typedef struct channels {
    int64_t n;
    int64_t dim[TY_MAX_RANK]; /* [1, n, 1, ...]: broadcasts over x */
    int rank;
    ty_val scale, bias; /* [n]; ones and zeros where the layer has none */
} channels;

static bool channels_of(cmodel_net *net, const cmodel_call *c, channels *out)
{
    const ty_norm_options *o = c->args->options;
    if (!cmodel_rank_is(net, c->in[0], 2, TY_MAX_RANK))
        return false;
    *out = (channels){.rank = ty_b_rank(net->g, c->in[0]), .n = ty_b_dim(net->g, c->in[0], 1)};
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = i == 1 ? out->n : 1;
    out->scale = o->no_scale ? ty_b_full(net->g, TY_F32, 1, &out->n, 1)
                             : cmodel_parameter(net, cmodel_join(net, c->args->name, "weight"), 1, &out->n,
                                                layer_constant(o->scale, 1));
    out->bias = o->no_bias ? ty_b_full(net->g, TY_F32, 1, &out->n, 0)
                           : cmodel_parameter(net, cmodel_join(net, c->args->name, "bias"), 1, &out->n,
                                              layer_constant(o->bias, 0));
    return !net->failed;
}

static ty_val channels_wide(cmodel_net *net, const channels *ch, ty_val v)
{
    return ty_b_reshape(net->g, v, ch->rank, ch->dim);
}

static double norm_eps(const ty_norm_options *o)
{
    return o->eps > 0 ? o->eps : 1e-5;
}

static ty_val norm_blend(cmodel_net *net, ty_val old, ty_val fresh, double share)
{
    return ty_b_add(net->g, ty_b_mul_s(net->g, old, 1 - share), ty_b_mul_s(net->g, fresh, share));
}

/* The running variance takes the unbiased one of the batch, the normalisation the biased one. */
static ty_val batch_norm_train(cmodel_net *net, const cmodel_call *c, const channels *ch, ty_val mean, ty_val var)
{
    ty_graph *g = net->g;
    const ty_norm_options *o = c->args->options;
    int replicas = net->binding && net->binding->batch_norm_replicas > 1 ? net->binding->batch_norm_replicas : 1;
    ty_attr attr = {.value = norm_eps(o), .replicas = replicas > 1 ? replicas : 0};
    int64_t n = ch->n ? ty_type_elems(ty_graph_type(g, c->in[0])) / ch->n * replicas : 0;
    double share = o->momentum > 0 ? o->momentum : 0.1;
    if (n < 2)
        return cmodel_fail(net, TY_E_SHAPE, "%lld value a channel has no variance to learn: use a larger batch",
                           (long long)n);
    ty_val y = ty_graph_emit(g, TY_OP_BATCHNORM, &attr, (ty_val[]){c->in[0], ch->scale, ch->bias}, 3);
    if (y == TY_NONE)
        return y;
    ty_val batch_mean = ty_val_make(ty_val_node(y), 1), batch_var = ty_val_make(ty_val_node(y), 2);
    ty_val unbiased = ty_b_mul_s(g, batch_var, (double)n / (double)(n - 1));
    cmodel_update(net, mean, norm_blend(net, mean, batch_mean, share));
    cmodel_update(net, var, norm_blend(net, var, unbiased, share));
    return y;
}

static ty_val op_batch_norm(cmodel_net *net, const cmodel_call *c)
{
    ty_graph *g = net->g;
    channels ch;
    if (!channels_of(net, c, &ch))
        return TY_NONE;
    ty_init zeros = {TY_INIT_CONSTANT, 0, 0}, ones = {TY_INIT_CONSTANT, 1, 0};
    ty_val mean = cmodel_buffer(net, cmodel_join(net, c->args->name, "running_mean"), 1, &ch.n, zeros);
    ty_val var = cmodel_buffer(net, cmodel_join(net, c->args->name, "running_var"), 1, &ch.n, ones);
    if (net->mode == TY_MODEL_TRAIN)
        return batch_norm_train(net, c, &ch, mean, var);
    ty_val factor = ty_b_mul(g, ch.scale, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, norm_eps(c->args->options))));
    ty_val y = ty_b_mul(g, ty_b_sub(g, c->in[0], channels_wide(net, &ch, mean)), channels_wide(net, &ch, factor));
    return ty_b_add(g, y, channels_wide(net, &ch, ch.bias));
}

/* arg 1: RMS norm. */
static ty_val op_layer_norm(cmodel_net *net, const cmodel_call *c)
{
    const ty_norm_options *o = c->args->options;
    int axes = o->axes > 0 && o->axes < TY_MAX_RANK ? (int)o->axes : 1;
    if (!cmodel_rank_is(net, c->in[0], axes, TY_MAX_RANK))
        return TY_NONE;
    const ty_type t = *ty_graph_type(net->g, c->in[0]);
    const int64_t *dim = t.dim + t.rank - axes;
    ty_val scale = TY_NONE, bias = TY_NONE;
    if (!o->no_scale || (!o->no_bias && !c->arg))
        scale = o->no_scale ? ty_b_full(net->g, TY_F32, axes, dim, 1)
                            : cmodel_parameter(net, cmodel_join(net, c->args->name, "weight"), axes, dim,
                                               layer_constant(o->scale, 1));
    if (!o->no_bias && !c->arg)
        bias = cmodel_parameter(net, cmodel_join(net, c->args->name, "bias"), axes, dim, layer_constant(o->bias, 0));
    return net->failed ? TY_NONE : ty_b_norm(net->g, c->in[0], scale, bias, axes, norm_eps(o), c->arg);
}

static ty_val op_group_norm(cmodel_net *net, const cmodel_call *c)
{
    ty_graph *g = net->g;
    channels ch;
    if (!layer_size_ok(net, "the number of groups", c->args->count) || !channels_of(net, c, &ch))
        return TY_NONE;
    const ty_type t = *ty_graph_type(g, c->in[0]);
    if (ch.n % c->args->count)
        return cmodel_fail(net, TY_E_ATTRIBUTE, "%lld groups do not divide %lld channels", (long long)c->args->count,
                           (long long)ch.n);
    int64_t rows = t.dim[0] * c->args->count, dim[] = {rows, rows ? ty_type_elems(&t) / rows : 0};
    ty_val y = ty_b_norm(g, ty_b_reshape(g, c->in[0], 2, dim), TY_NONE, TY_NONE, 1, norm_eps(c->args->options), false);
    y = ty_b_mul(g, ty_b_reshape(g, y, t.rank, t.dim), channels_wide(net, &ch, ch.scale));
    return ty_b_add(g, y, channels_wide(net, &ch, ch.bias));
}

/* ---- embedding, dropout ----------------------------------------------------------------------------------------- */

static ty_val op_embedding(cmodel_net *net, const cmodel_call *c)
{
    const ty_embedding_options *o = c->args->options;
    int64_t dim[] = {c->args->count, c->args->from};
    if (!layer_size_ok(net, "the number of rows", dim[0]) || !layer_size_ok(net, "the size", dim[1]))
        return TY_NONE;
    ty_val w = cmodel_parameter(net, cmodel_join(net, c->args->name, "weight"), 2, dim,
                                layer_init(o->weight, (ty_init){TY_INIT_NORMAL, 0, 1}));
    return ty_b_gather(net->g, w, c->in[0], 0);
}

static ty_val layer_dropout(cmodel_net *net, ty_val x, double p)
{
    ty_graph *g = net->g;
    if (!(p >= 0 && p < 1))
        return cmodel_fail(net, TY_E_ATTRIBUTE, "the probability %g is outside [0, 1)", p);
    if (net->mode != TY_MODEL_TRAIN || p == 0 || x == TY_NONE)
        return x;
    const ty_type t = *ty_graph_type(g, x);
    ty_val u = cmodel_random(net, t.rank, t.dim);
    ty_val kept = ty_b_le(g, ty_b_full_like(g, u, p), u);
    return ty_b_select(g, kept, ty_b_mul_s(g, x, 1 / (1 - p)), ty_b_full_like(g, x, 0));
}

static ty_val op_dropout(cmodel_net *net, const cmodel_call *c)
{
    return layer_dropout(net, c->in[0], c->args->value);
}

/* ---- attention -------------------------------------------------------------------------------------------------- */

/* Far below every score, and finite: a row that sees nothing gets equal weights, not NaN. */
#define UNSEEN (-1e30)

/* Query i of S sees key j of T if j <= i + T - S: the last query sees all. */
static ty_val attention_causal(ty_graph *g, ty_val scores)
{
    int64_t s = ty_b_dim(g, scores, 2), t = ty_b_dim(g, scores, 3), dim[] = {1, 1, s, t};
    ty_type square = ty_type_make(TY_I32, 4, dim);
    ty_val last = ty_b_add_s(g, ty_b_iota(g, square, 2), (double)(t - s));
    return ty_b_le(g, ty_b_iota(g, square, 3), last);
}

/* What hides scores, as one condition: so it is known as an attention's mask (compiler/passes/raise_attention.c).
 * TY_NONE: nothing does. */
static ty_val attention_seen(cmodel_net *net, ty_val scores, bool causal, ty_val mask)
{
    ty_graph *g = net->g;
    ty_val past = causal && scores != TY_NONE ? attention_causal(g, scores) : TY_NONE;
    bool chooses = mask != TY_NONE && ty_b_dtype(g, mask) == TY_BOOL;
    if (past == TY_NONE || !chooses)
        return chooses ? mask : past;
    return ty_b_binary(g, TY_OP_AND, past, mask);
}

static ty_val attention_of(cmodel_net *net, ty_val q, ty_val k, ty_val v, const ty_attention_options *o)
{
    ty_graph *g = net->g;
    if (!cmodel_rank_is(net, q, 4, 4) || !cmodel_rank_is(net, k, 4, 4) || !cmodel_rank_is(net, v, 4, 4))
        return TY_NONE;
    int64_t size = ty_b_dim(g, q, 3);
    double scale = o->scale != 0 ? o->scale : 1 / sqrt(size > 0 ? (double)size : 1);
    ty_val scores = ty_b_mul_s(g, ty_b_dot(g, q, k, false, true), scale);
    ty_val mask = cmodel_optional(net, o->mask), seen = attention_seen(net, scores, o->causal, mask);
    if (seen != TY_NONE)
        scores = ty_b_select(g, seen, scores, ty_b_full_like(g, scores, UNSEEN));
    if (mask != TY_NONE && ty_b_dtype(g, mask) != TY_BOOL)
        scores = ty_b_add(g, scores, mask);
    return ty_b_dot(g, layer_dropout(net, ty_b_softmax(g, scores, 3, false), o->dropout), v, false, false);
}

static ty_val op_attention(cmodel_net *net, const cmodel_call *c)
{
    return attention_of(net, c->in[0], c->in[1], c->in[2], c->args->options);
}

/* [B, S, H D] projected and seen as [B, H, S, D] */
static ty_val attention_heads(cmodel_net *net, const cmodel_call *c, const char *part, ty_val x, int64_t size)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    const ty_attention_options *o = c->args->options;
    ty_linear_options linear = {.no_bias = o->no_bias};
    ty_val y = layer_linear(net, cmodel_join(net, c->args->name, part), x, size, &linear);
    if (y == TY_NONE)
        return y;
    int64_t heads = c->args->count, dim[] = {ty_b_dim(net->g, y, 0), ty_b_dim(net->g, y, 1), heads, size / heads};
    return ty_b_transpose(net->g, ty_b_reshape(net->g, y, 4, dim), perm);
}

static ty_val op_multi_head_attention(cmodel_net *net, const cmodel_call *c)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    ty_graph *g = net->g;
    const ty_attention_options *o = c->args->options;
    ty_val x = c->in[0], from = cmodel_optional(net, o->memory);
    from = from == TY_NONE ? x : from;
    if (!cmodel_rank_is(net, x, 3, 3) || !cmodel_rank_is(net, from, 3, 3))
        return TY_NONE;
    const ty_type t = *ty_graph_type(g, x);
    if (c->args->count < 1 || t.dim[2] % c->args->count)
        return cmodel_fail(net, TY_E_ATTRIBUTE, "%lld heads do not divide the size %lld", (long long)c->args->count,
                           (long long)t.dim[2]);
    ty_val q = attention_heads(net, c, "q", x, t.dim[2]), k = attention_heads(net, c, "k", from, t.dim[2]);
    ty_val v = attention_heads(net, c, "v", from, t.dim[2]);
    ty_val y = net->failed ? TY_NONE : attention_of(net, q, k, v, o);
    ty_linear_options linear = {.no_bias = o->no_bias};
    y = ty_b_reshape(g, ty_b_transpose(g, y, perm), 3, t.dim);
    return y == TY_NONE ? y : layer_linear(net, cmodel_join(net, c->args->name, "out"), y, t.dim[2], &linear);
}

const cmodel_row cmodel_layers[] = {
    {"linear", 1, 1, op_linear, 0},
    {"batch_norm", 1, 1, op_batch_norm, 0},
    {"layer_norm", 1, 1, op_layer_norm, 0},
    {"rms_norm", 1, 1, op_layer_norm, 1},
    {"group_norm", 1, 1, op_group_norm, 0},
    {"embedding", 1, 1, op_embedding, 0},
    {"dropout", 1, 1, op_dropout, 0},
    {"attention", 3, 3, op_attention, 0},
    {"multi_head_attention", 1, 1, op_multi_head_attention, 0},
    {NULL, 0, 0, NULL, 0},
};
