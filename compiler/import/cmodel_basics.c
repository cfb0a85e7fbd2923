/* cmodel_basics.c - operators of trainyard/model.h that are no layers: arithmetic, activations, shapes, lookup,
 * reduction.
 *
 * Branches that are not taken are fed with harmless values, because a gradient of 0 times infinity would be NaN.
 */
#include "compiler/import/cmodel_net.h"
#include "compiler/import/special.h"
#include "compiler/ops/activation.h"

#include <math.h>
#include <string.h>

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

static ty_val op_constant(cmodel_net *net, const cmodel_call *c)
{
    ty_dtype dtype;
    const ty_shape *s = &c->args->dims;
    if (!cmodel_dtype(net, c->args->text, &dtype) || !cmodel_shape_ok(net, s, dtype))
        return TY_NONE;
    if (!c->args->data)
        return cmodel_fail(net, TY_E_GRAPH, "a constant without data");
    return ty_b_const_copy(net->g, ty_type_make(dtype, (int)s->n, s->dim), c->args->data);
}

static ty_val op_full(cmodel_net *net, const cmodel_call *c)
{
    ty_dtype dtype;
    const ty_shape *s = &c->args->dims;
    if (!cmodel_dtype(net, c->args->text, &dtype) || !cmodel_shape_ok(net, s, dtype))
        return TY_NONE;
    return ty_b_full(net->g, dtype, (int)s->n, s->dim, c->args->value);
}

static ty_val op_iota(cmodel_net *net, const cmodel_call *c)
{
    ty_dtype dtype;
    int axis;
    const ty_shape *s = &c->args->dims;
    if (!cmodel_dtype(net, c->args->text, &dtype) || !cmodel_shape_ok(net, s, dtype) ||
        !cmodel_axis(net, c->args->axis, (int)s->n, &axis))
        return TY_NONE;
    return ty_b_iota(net->g, ty_type_make(dtype, (int)s->n, s->dim), axis);
}

static ty_val op_random(cmodel_net *net, const cmodel_call *c)
{
    const ty_shape *s = &c->args->dims;
    return cmodel_shape_ok(net, s, TY_F32) ? cmodel_random(net, (int)s->n, s->dim) : TY_NONE;
}

/* ---- elementwise ------------------------------------------------------------------------------------------------ */

static ty_val op_unary(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_unary(net->g, (ty_op)c->arg, c->in[0]);
}

static ty_val op_binary(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_binary(net->g, (ty_op)c->arg, c->in[0], c->in[1]);
}

/* a > b is b < a. */
static ty_val op_swapped(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_binary(net->g, (ty_op)c->arg, c->in[1], c->in[0]);
}

static ty_val op_ne(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_ne(net->g, c->in[0], c->in[1]);
}

static ty_val op_where(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_select(net->g, c->in[0], c->in[1], c->in[2]);
}

static ty_val op_cast(cmodel_net *net, const cmodel_call *c)
{
    ty_dtype dtype;
    return cmodel_dtype(net, c->args->text, &dtype) ? ty_b_cast(net->g, c->in[0], dtype) : TY_NONE;
}

static ty_val op_stop_gradient(cmodel_net *net, const cmodel_call *c)
{
    ty_dtype dtype = ty_b_dtype(net->g, c->in[0]);
    return dtype == TY_F32 || dtype == TY_F64 ? ty_special_held(net->g, c->in[0]) : c->in[0];
}

static ty_val op_scale(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_mul_s(net->g, c->in[0], c->args->value);
}

static ty_val op_shift(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_add_s(net->g, c->in[0], c->args->value);
}

typedef ty_val plain_unary(ty_graph *g, ty_val x);

static ty_val plain_ceil(ty_graph *g, ty_val x)
{
    return ty_b_neg(g, ty_b_unary(g, TY_OP_FLOOR, ty_b_neg(g, x)));
}

static ty_val plain_clip(ty_graph *g, ty_val x, double lo, double hi)
{
    ty_val l = ty_b_full_like(g, x, lo), h = ty_b_full_like(g, x, hi);
    x = ty_b_select(g, ty_b_lt(g, x, l), l, x);
    return ty_b_select(g, ty_b_lt(g, h, x), h, x);
}

/* x > 0 ? yes : no */
static ty_val plain_if_positive(ty_graph *g, ty_val x, ty_val yes, ty_val no)
{
    return ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, x, 0), x), yes, no);
}

static ty_val plain_elu(ty_graph *g, ty_val x, double alpha)
{
    ty_val low = plain_if_positive(g, x, ty_b_full_like(g, x, 0), x);
    return plain_if_positive(g, x, x, ty_b_mul_s(g, ty_b_unary(g, TY_OP_EXPM1, low), alpha));
}

/* Klambauer et al. 2017. */
static ty_val plain_selu(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, plain_elu(g, x, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946);
}

static ty_val plain_silu(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, ty_b_sigmoid(g, x));
}

static ty_val plain_mish(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, ty_b_unary(g, TY_OP_TANH, ty_b_softplus(g, x)));
}

static ty_val plain_softsign(ty_graph *g, ty_val x)
{
    return ty_b_div(g, x, ty_b_add_s(g, ty_b_unary(g, TY_OP_ABS, x), 1));
}

static ty_val plain_hard_sigmoid(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, plain_clip(g, ty_b_add_s(g, x, 3), 0, 6), 1.0 / 6);
}

static ty_val plain_hard_swish(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, plain_hard_sigmoid(g, x));
}

static ty_val op_plain(cmodel_net *net, const cmodel_call *c)
{
    static plain_unary *const functions[] = {ty_b_relu,      plain_selu,         ty_gelu_by_erf,   ty_gelu_by_tanh,
                                             plain_silu,     plain_mish,         ty_b_sigmoid,     ty_b_softplus,
                                             plain_softsign, plain_hard_sigmoid, plain_hard_swish, ty_b_sign,
                                             plain_ceil,     ty_b_square,        ty_b_reciprocal};
    return functions[c->arg](net->g, c->in[0]);
}

static ty_val op_leaky_relu(cmodel_net *net, const cmodel_call *c)
{
    return plain_if_positive(net->g, c->in[0], c->in[0], ty_b_mul_s(net->g, c->in[0], c->args->value));
}

static ty_val op_elu(cmodel_net *net, const cmodel_call *c)
{
    return plain_elu(net->g, c->in[0], c->args->value);
}

static ty_val op_clip(cmodel_net *net, const cmodel_call *c)
{
    return plain_clip(net->g, c->in[0], c->args->value, c->args->value2);
}

/* arg 1: its logarithm. */
static ty_val op_softmax(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_softmax(net->g, c->in[0], axis, c->arg);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static ty_val op_reshape(cmodel_net *net, const cmodel_call *c)
{
    const ty_type t = *ty_graph_type(net->g, c->in[0]);
    ty_shape s = c->args->dims;
    int64_t known = 1, elems = ty_type_elems(&t);
    int open = -1;
    char text[160];
    for (int i = 0; i < s.n && i < TY_MAX_RANK; i++) {
        if (s.dim[i] == 0 && i < t.rank)
            s.dim[i] = t.dim[i];
        if (s.dim[i] == -1 && open < 0)
            open = i;
        else if (s.dim[i] < 0 || __builtin_mul_overflow(known, s.dim[i], &known))
            return cmodel_fail(net, TY_E_SHAPE, "dimension %d of the new shape is %lld", i, (long long)s.dim[i]);
    }
    if (open >= 0)
        s.dim[open] = known > 0 ? elems / known : 0;
    if (open >= 0 ? known == 0 || elems % known : known != elems)
        return cmodel_fail(net, TY_E_SHAPE, "%s has %lld elements, which do not fill the new shape",
                           ty_type_text(&t, text, sizeof text), (long long)elems);
    return cmodel_shape_ok(net, &s, (ty_dtype)t.dtype) ? ty_b_reshape(net->g, c->in[0], (int)s.n, s.dim) : TY_NONE;
}

static ty_val op_flatten(cmodel_net *net, const cmodel_call *c)
{
    const ty_type t = *ty_graph_type(net->g, c->in[0]);
    int64_t dim[TY_MAX_RANK] = {1};
    int axis;
    if (!cmodel_axis(net, c->args->axis, t.rank, &axis))
        return TY_NONE;
    dim[axis] = 1;
    for (int i = 0; i < t.rank; i++)
        dim[i < axis ? i : axis] = i <= axis ? t.dim[i] : dim[axis] * t.dim[i];
    return ty_b_reshape(net->g, c->in[0], axis + 1, dim);
}

static ty_val op_transpose(cmodel_net *net, const cmodel_call *c)
{
    const ty_shape *s = &c->args->dims;
    int64_t perm[TY_MAX_RANK];
    uint32_t seen = 0;
    int rank = ty_b_rank(net->g, c->in[0]), axis;
    for (int i = 0; i < rank && s->n == rank; i++) {
        if (!cmodel_axis(net, s->dim[i], rank, &axis))
            return TY_NONE;
        seen |= 1u << axis;
        perm[i] = axis;
    }
    if (s->n != rank || seen != (1u << rank) - 1)
        return cmodel_fail(net, TY_E_ATTRIBUTE, "a permutation names each of the %d axes once", rank);
    return ty_b_transpose(net->g, c->in[0], perm);
}

static ty_val op_expand(cmodel_net *net, const cmodel_call *c)
{
    const ty_shape *s = &c->args->dims;
    if (!cmodel_shape_ok(net, s, ty_b_dtype(net->g, c->in[0])))
        return TY_NONE;
    return ty_b_broadcast(net->g, c->in[0], (int)s->n, s->dim);
}

static ty_val op_unsqueeze(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]) + 1, &axis))
        return TY_NONE;
    return ty_b_unsqueeze(net->g, c->in[0], axis);
}

static ty_val op_squeeze(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_squeeze(net->g, c->in[0], axis);
}

static int64_t slice_bound(int64_t at, int64_t dim)
{
    at = at < 0 ? (at < -dim ? 0 : at + dim) : at;
    return at > dim ? dim : at;
}

static ty_val op_slice(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    int64_t dim = ty_b_dim(net->g, c->in[0], axis);
    int64_t lo = slice_bound(c->args->from, dim), hi = slice_bound(c->args->to, dim);
    return ty_b_slice_axis(net->g, c->in[0], axis, lo, hi < lo ? lo : hi);
}

static ty_val op_pad(cmodel_net *net, const cmodel_call *c)
{
    int rank = ty_b_rank(net->g, c->in[0]);
    if (c->args->dims.n != rank || c->args->more.n != rank)
        return cmodel_fail(net, TY_E_ATTRIBUTE, "expected %d paddings before and behind, found %lld and %lld", rank,
                           (long long)c->args->dims.n, (long long)c->args->more.n);
    return ty_b_pad(net->g, c->in[0], c->args->dims.dim, c->args->more.dim, c->args->value);
}

static ty_val op_reverse(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_reverse(net->g, c->in[0], 1u << axis);
}

static ty_val op_concat(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_concat(net->g, c->in, c->n_in, axis);
}

/* ---- lookup, reduction, products -------------------------------------------------------------------------------- */

/* arg 1: take */
static ty_val op_gather(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return c->arg ? ty_b_take(net->g, c->in[0], c->in[1], axis) : ty_b_gather(net->g, c->in[0], c->in[1], axis);
}

static ty_val op_one_hot(cmodel_net *net, const cmodel_call *c)
{
    ty_type t = *ty_graph_type(net->g, c->in[0]);
    if (!cmodel_rank_is(net, c->in[0], 0, TY_MAX_RANK - 1))
        return TY_NONE;
    ty_shape s = {.n = t.rank + 1};
    memcpy(s.dim, t.dim, sizeof t.dim);
    s.dim[t.rank] = c->args->count;
    if (!cmodel_shape_ok(net, &s, TY_I64))
        return TY_NONE;
    ty_val classes = ty_b_iota(net->g, ty_type_make((ty_dtype)t.dtype, (int)s.n, s.dim), t.rank);
    return ty_b_cast(net->g, ty_b_eq(net->g, ty_b_unsqueeze(net->g, c->in[0], t.rank), classes), TY_F32);
}

static bool reduce_axes(cmodel_net *net, const cmodel_call *c, uint32_t *axes)
{
    int rank = ty_b_rank(net->g, c->in[0]), axis;
    *axes = c->args->dims.n ? 0 : ty_b_all_axes(net->g, c->in[0]);
    for (int i = 0; i < c->args->dims.n && i < TY_MAX_RANK; i++) {
        if (!cmodel_axis(net, c->args->dims.dim[i], rank, &axis))
            return false;
        *axes |= 1u << axis;
    }
    return true;
}

static ty_val op_reduce(cmodel_net *net, const cmodel_call *c)
{
    uint32_t axes;
    return reduce_axes(net, c, &axes) ? ty_b_reduce(net->g, c->in[0], (ty_combine)c->arg, axes, c->args->flag)
                                      : TY_NONE;
}

static ty_val op_mean(cmodel_net *net, const cmodel_call *c)
{
    uint32_t axes;
    return reduce_axes(net, c, &axes) ? ty_b_mean(net->g, c->in[0], axes, c->args->flag) : TY_NONE;
}

/* max + log(sum(exp(x - max))) */
static ty_val op_log_sum_exp(cmodel_net *net, const cmodel_call *c)
{
    ty_graph *g = net->g;
    uint32_t axes;
    if (!reduce_axes(net, c, &axes))
        return TY_NONE;
    ty_val top = ty_b_reduce(g, c->in[0], TY_MAX, axes, true);
    ty_val sum = ty_b_log(g, ty_b_sum(g, ty_b_exp(g, ty_b_sub(g, c->in[0], top)), axes, true));
    ty_val y = ty_b_add(g, top, sum);
    return c->args->flag ? y : ty_b_sum(g, y, axes, false);
}

static ty_val op_arg_reduce(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_argreduce(net->g, c->in[0], (ty_combine)c->arg, axis, false);
}

static ty_val op_cumsum(cmodel_net *net, const cmodel_call *c)
{
    int axis;
    if (!cmodel_axis(net, c->args->axis, ty_b_rank(net->g, c->in[0]), &axis))
        return TY_NONE;
    return ty_b_scan(net->g, c->in[0], TY_SUM, axis, false, false);
}

static ty_val op_matmul(cmodel_net *net, const cmodel_call *c)
{
    return ty_b_matmul(net->g, c->in[0], c->in[1]);
}

const cmodel_row cmodel_basics[] = {
    {"constant", 0, 0, op_constant, 0},
    {"full", 0, 0, op_full, 0},
    {"iota", 0, 0, op_iota, 0},
    {"random", 0, 0, op_random, 0},

    {"neg", 1, 1, op_unary, TY_OP_NEG},
    {"abs", 1, 1, op_unary, TY_OP_ABS},
    {"floor", 1, 1, op_unary, TY_OP_FLOOR},
    {"round", 1, 1, op_unary, TY_OP_RINT},
    {"sqrt", 1, 1, op_unary, TY_OP_SQRT},
    {"rsqrt", 1, 1, op_unary, TY_OP_RSQRT},
    {"exp", 1, 1, op_unary, TY_OP_EXP},
    {"expm1", 1, 1, op_unary, TY_OP_EXPM1},
    {"log", 1, 1, op_unary, TY_OP_LOG},
    {"log1p", 1, 1, op_unary, TY_OP_LOG1P},
    {"sin", 1, 1, op_unary, TY_OP_SIN},
    {"cos", 1, 1, op_unary, TY_OP_COS},
    {"tanh", 1, 1, op_unary, TY_OP_TANH},
    {"erf", 1, 1, op_unary, TY_OP_ERF},
    {"atan", 1, 1, op_unary, TY_OP_ATAN},
    {"not", 1, 1, op_unary, TY_OP_NOT},

    {"relu", 1, 1, op_plain, 0},
    {"selu", 1, 1, op_plain, 1},
    {"gelu", 1, 1, op_plain, 2},
    {"gelu_tanh", 1, 1, op_plain, 3},
    {"silu", 1, 1, op_plain, 4},
    {"mish", 1, 1, op_plain, 5},
    {"sigmoid", 1, 1, op_plain, 6},
    {"softplus", 1, 1, op_plain, 7},
    {"softsign", 1, 1, op_plain, 8},
    {"hard_sigmoid", 1, 1, op_plain, 9},
    {"hard_swish", 1, 1, op_plain, 10},
    {"sign", 1, 1, op_plain, 11},
    {"ceil", 1, 1, op_plain, 12},
    {"square", 1, 1, op_plain, 13},
    {"reciprocal", 1, 1, op_plain, 14},
    {"leaky_relu", 1, 1, op_leaky_relu, 0},
    {"elu", 1, 1, op_elu, 0},
    {"clip", 1, 1, op_clip, 0},
    {"softmax", 1, 1, op_softmax, 0},
    {"log_softmax", 1, 1, op_softmax, 1},

    {"add", 2, 2, op_binary, TY_OP_ADD},
    {"sub", 2, 2, op_binary, TY_OP_SUB},
    {"mul", 2, 2, op_binary, TY_OP_MUL},
    {"div", 2, 2, op_binary, TY_OP_DIV},
    {"rem", 2, 2, op_binary, TY_OP_REM},
    {"pow", 2, 2, op_binary, TY_OP_POW},
    {"max", 2, 2, op_binary, TY_OP_MAX},
    {"min", 2, 2, op_binary, TY_OP_MIN},
    {"and", 2, 2, op_binary, TY_OP_AND},
    {"or", 2, 2, op_binary, TY_OP_OR},
    {"xor", 2, 2, op_binary, TY_OP_XOR},
    {"eq", 2, 2, op_binary, TY_OP_EQ},
    {"lt", 2, 2, op_binary, TY_OP_LT},
    {"le", 2, 2, op_binary, TY_OP_LE},
    {"gt", 2, 2, op_swapped, TY_OP_LT},
    {"ge", 2, 2, op_swapped, TY_OP_LE},
    {"ne", 2, 2, op_ne, 0},
    {"where", 3, 3, op_where, 0},
    {"stop_gradient", 1, 1, op_stop_gradient, 0},
    {"scale", 1, 1, op_scale, 0},
    {"shift", 1, 1, op_shift, 0},
    {"cast", 1, 1, op_cast, 0},

    {"reshape", 1, 1, op_reshape, 0},
    {"flatten", 1, 1, op_flatten, 0},
    {"transpose", 1, 1, op_transpose, 0},
    {"expand", 1, 1, op_expand, 0},
    {"unsqueeze", 1, 1, op_unsqueeze, 0},
    {"squeeze", 1, 1, op_squeeze, 0},
    {"slice", 1, 1, op_slice, 0},
    {"pad", 1, 1, op_pad, 0},
    {"reverse", 1, 1, op_reverse, 0},
    {"concat", 1, -1, op_concat, 0},

    {"gather", 2, 2, op_gather, 0},
    {"take", 2, 2, op_gather, 1},
    {"one_hot", 1, 1, op_one_hot, 0},
    {"reduce_sum", 1, 1, op_reduce, TY_SUM},
    {"reduce_max", 1, 1, op_reduce, TY_MAX},
    {"reduce_min", 1, 1, op_reduce, TY_MIN},
    {"reduce_prod", 1, 1, op_reduce, TY_PROD},
    {"reduce_mean", 1, 1, op_mean, 0},
    {"log_sum_exp", 1, 1, op_log_sum_exp, 0},
    {"arg_max", 1, 1, op_arg_reduce, TY_MAX},
    {"arg_min", 1, 1, op_arg_reduce, TY_MIN},
    {"cumsum", 1, 1, op_cumsum, 0},
    {"matmul", 2, 2, op_matmul, 0},
    {NULL, 0, 0, NULL, 0},
};
