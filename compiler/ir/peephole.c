/* peephole.c - identities that hold node by node, applied as nodes are built.
 *
 * A rule looks at the draft and at what its inputs are, and returns a value that means the same and costs less, or
 * TY_NONE. Rules are exact but for the sign of zero (x + 0) and for rounding where noted; what would hide a NaN
 * (x * 0 for floats) is no rule. IR.md lists them.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/storage.h"
#include "compiler/ops/op.h"
#include "compiler/ops/sliding.h"

#include <math.h>
#include <string.h>

typedef ty_val peep_fn(ty_graph *g, const graph_draft *d);

static bool peep_is(const ty_graph *g, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(g, ty_val_node(v)) == op;
}

/* Input i of the node that makes v. */
static ty_val peep_in(const ty_graph *g, ty_val v, int i)
{
    return ty_graph_in(g, ty_val_node(v), i);
}

static const ty_attr *peep_attr(const ty_graph *g, ty_val v)
{
    return ty_graph_attr(g, ty_val_node(v));
}

static bool peep_splat(const ty_graph *g, ty_val v, double value)
{
    double s;
    return ty_graph_splat_value(g, v, &s) && s == value;
}

static bool peep_is_float(const graph_draft *d)
{
    return ty_dtype_is_float((ty_dtype)d->res[0].dtype);
}

static ty_val peep_full(ty_graph *g, const graph_draft *d, double value)
{
    return ty_b_full(g, (ty_dtype)d->res[0].dtype, d->res[0].rank, d->res[0].dim, value);
}

/* ---- elementwise ---- */

static ty_val peep_neg(ty_graph *g, const graph_draft *d)
{
    return peep_is(g, d->in[0], d->op) ? peep_in(g, d->in[0], 0) : TY_NONE; /* neg(neg(x)), not(not(x)) */
}

static ty_val peep_idempotent(ty_graph *g, const graph_draft *d)
{
    return peep_is(g, d->in[0], d->op) ? d->in[0] : TY_NONE; /* abs(abs(x)), floor(floor(x)) */
}

static ty_val peep_add(ty_graph *g, const graph_draft *d)
{
    return peep_splat(g, d->in[1], 0) ? d->in[0] : TY_NONE;
}

static ty_val peep_sub(ty_graph *g, const graph_draft *d)
{
    if (d->in[0] == d->in[1] && !peep_is_float(d))
        return peep_full(g, d, 0);
    return peep_add(g, d);
}

static ty_val peep_mul(ty_graph *g, const graph_draft *d)
{
    double s;
    if (!ty_graph_splat_value(g, d->in[1], &s))
        return TY_NONE;
    if (s == 1)
        return d->in[0];
    if (s == -1)
        return ty_b_neg(g, d->in[0]);
    return s == 0 && !peep_is_float(d) ? d->in[1] : TY_NONE;
}

static ty_val peep_div(ty_graph *g, const graph_draft *d)
{
    double s;
    if (!ty_graph_splat_value(g, d->in[1], &s))
        return TY_NONE;
    if (s == 1)
        return d->in[0];
    int exponent;
    if (!peep_is_float(d) || fabs(frexp(s, &exponent)) != 0.5 || exponent < -12 || exponent > 12)
        return TY_NONE;
    return ty_b_mul_s(g, d->in[0], 1 / s); /* exact: a power of two in every float dtype's range */
}

/* x^3 and x^-1 round as PyTorch's pow does, which has the same special cases. */
static ty_val peep_pow(ty_graph *g, const graph_draft *d)
{
    double s;
    ty_val x = d->in[0];
    if (!ty_graph_splat_value(g, d->in[1], &s))
        return TY_NONE;
    if (s == 0)
        return peep_full(g, d, 1);
    if (s == 1)
        return x;
    if (s == 2)
        return ty_b_mul(g, x, x);
    if (s == 3)
        return ty_b_mul(g, ty_b_mul(g, x, x), x);
    if (s == 0.5 && peep_is_float(d))
        return ty_b_unary(g, TY_OP_SQRT, x);
    return s == -1 && peep_is_float(d) ? ty_b_reciprocal(g, x) : TY_NONE;
}

static ty_val peep_same_inputs(ty_graph *g, const graph_draft *d)
{
    (void)g;
    return d->in[0] == d->in[1] ? d->in[0] : TY_NONE;
}

static ty_val peep_and(ty_graph *g, const graph_draft *d)
{
    if (peep_splat(g, d->in[1], 0))
        return d->in[1];
    if (d->res[0].dtype == TY_BOOL && peep_splat(g, d->in[1], 1))
        return d->in[0];
    return peep_same_inputs(g, d);
}

static ty_val peep_or(ty_graph *g, const graph_draft *d)
{
    if (peep_splat(g, d->in[1], 0))
        return d->in[0];
    if (d->res[0].dtype == TY_BOOL && peep_splat(g, d->in[1], 1))
        return d->in[1];
    return peep_same_inputs(g, d);
}

static ty_val peep_xor(ty_graph *g, const graph_draft *d)
{
    return d->in[0] == d->in[1] ? peep_full(g, d, 0) : peep_add(g, d);
}

static ty_val peep_compare(ty_graph *g, const graph_draft *d)
{
    ty_dtype dtype = ty_b_dtype(g, d->in[0]);
    if (d->in[0] == d->in[1] && !ty_dtype_is_float(dtype))
        return peep_full(g, d, d->op != TY_OP_LT);
    if (d->op == TY_OP_EQ && dtype == TY_BOOL && peep_splat(g, d->in[1], 1))
        return d->in[0];
    if (d->op == TY_OP_EQ && dtype == TY_BOOL && peep_splat(g, d->in[1], 0))
        return ty_b_unary(g, TY_OP_NOT, d->in[0]);
    return TY_NONE;
}

/* Bits an integer dtype needs for every value, or that a float dtype holds exactly. */
static int peep_exact_bits(ty_dtype d)
{
    static const int float_bits[TY_N_DTYPES] = {[TY_F16] = 11, [TY_BF16] = 8, [TY_F32] = 24, [TY_F64] = 53};
    return ty_dtype_is_float(d) ? float_bits[d] : d == TY_BOOL ? 1 : (int)ty_dtype_bytes(d) * 8 - ty_dtype_is_signed(d);
}

/* Every value of `a` is a value of `b`. */
static bool peep_holds(ty_dtype b, ty_dtype a)
{
    if (a == b)
        return true;
    if (ty_dtype_is_float(a))
        return b == TY_F64 || (b == TY_F32 && a != TY_F64);
    if (ty_dtype_is_signed(a) && !ty_dtype_is_signed(b) && !ty_dtype_is_float(b))
        return false;
    return b != TY_BOOL && peep_exact_bits(a) <= peep_exact_bits(b);
}

/* v is a float that a cast has widened: what was cast, or TY_NONE. */
static ty_val peep_widened(const ty_graph *g, ty_val v)
{
    if (!peep_is(g, v, TY_OP_CAST))
        return TY_NONE;
    ty_dtype from = ty_b_dtype(g, peep_in(g, v, 0)), to = ty_b_dtype(g, v);
    return from != to && ty_dtype_is_float(from) && peep_holds(to, from) ? peep_in(g, v, 0) : TY_NONE;
}

/* A number or zero is chosen in its own width and then widened: the gradient behind a ReLU. The ReLU itself is left as
 * it is, so that it is known as one. */
static ty_val peep_narrow_select(ty_graph *g, const graph_draft *d)
{
    ty_val x = peep_widened(g, d->in[2]);
    bool relu = peep_is(g, d->in[0], TY_OP_LE) && peep_in(g, d->in[0], 0) == d->in[2];
    if (x == TY_NONE || relu || !ty_graph_is_zero(g, d->in[1]))
        return TY_NONE;
    return ty_b_cast(g, ty_b_select(g, d->in[0], ty_b_full_like(g, x, 0), x), (ty_dtype)d->res[0].dtype);
}

static ty_val peep_select(ty_graph *g, const graph_draft *d)
{
    double s;
    if (d->in[1] == d->in[2])
        return d->in[1];
    if (ty_graph_splat_value(g, d->in[0], &s))
        return s != 0 ? d->in[1] : d->in[2];
    if (peep_is(g, d->in[0], TY_OP_NOT))
        return ty_b_select(g, peep_in(g, d->in[0], 0), d->in[2], d->in[1]);
    return peep_narrow_select(g, d);
}

static ty_val peep_cast(ty_graph *g, const graph_draft *d)
{
    ty_dtype to = (ty_dtype)d->res[0].dtype, from = ty_b_dtype(g, d->in[0]);
    if (to == from)
        return d->in[0];
    if (!peep_is(g, d->in[0], TY_OP_CAST))
        return TY_NONE;
    ty_val x = peep_in(g, d->in[0], 0);
    ty_dtype first = ty_b_dtype(g, x);
    if (!peep_holds(from, first))
        return TY_NONE;
    /* int -> float -> int saturates where int -> int wraps */
    bool differs = ty_dtype_is_float(from) && !ty_dtype_is_float(first) && !ty_dtype_is_float(to) && to != first;
    return differs ? TY_NONE : ty_b_cast(g, x, to);
}

static ty_val peep_bitcast(ty_graph *g, const graph_draft *d)
{
    return ty_type_same(ty_graph_type(g, d->in[0]), &d->res[0]) ? d->in[0] : TY_NONE;
}

/* ---- movement ---- */

/* v stretches a single element: its source, or TY_NONE. */
static ty_val peep_stretched_scalar(const ty_graph *g, ty_val v)
{
    if (!peep_is(g, v, TY_OP_BROADCAST))
        return TY_NONE;
    ty_val x = peep_in(g, v, 0);
    return ty_type_elems(ty_graph_type(g, x)) == 1 ? x : TY_NONE;
}

/* A stretched single element stays one under any movement: stretch it to the result's shape. */
static ty_val peep_restretch(ty_graph *g, const graph_draft *d)
{
    ty_val x = peep_stretched_scalar(g, d->in[0]);
    if (x == TY_NONE)
        return TY_NONE;
    return ty_b_broadcast(g, ty_b_reshape(g, x, 0, NULL), d->res[0].rank, d->res[0].dim);
}

static ty_val peep_reshape(ty_graph *g, const graph_draft *d)
{
    if (ty_type_same(ty_graph_type(g, d->in[0]), &d->res[0]))
        return d->in[0];
    if (peep_is(g, d->in[0], TY_OP_RESHAPE))
        return ty_b_reshape(g, peep_in(g, d->in[0], 0), d->res[0].rank, d->res[0].dim);
    return ty_type_elems(&d->res[0]) == 1 ? TY_NONE : peep_restretch(g, d);
}

/* The permutation moves nothing but axes of one element, so the bytes stay where they are. */
static bool peep_perm_is_reshape(const ty_type *type, const int64_t *perm)
{
    int64_t last = -1;
    for (int i = 0; i < type->rank; i++) {
        if (type->dim[perm[i]] == 1)
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static ty_val peep_transpose(ty_graph *g, const graph_draft *d)
{
    if (peep_perm_is_reshape(ty_graph_type(g, d->in[0]), d->attr.lo))
        return ty_b_reshape(g, d->in[0], d->res[0].rank, d->res[0].dim);
    if (!peep_is(g, d->in[0], TY_OP_TRANSPOSE))
        return peep_restretch(g, d);
    int64_t perm[TY_MAX_RANK];
    for (int i = 0; i < d->res[0].rank; i++)
        perm[i] = peep_attr(g, d->in[0])->lo[d->attr.lo[i]];
    return ty_b_transpose(g, peep_in(g, d->in[0], 0), perm);
}

static ty_val peep_broadcast(ty_graph *g, const graph_draft *d)
{
    if (ty_type_same(ty_graph_type(g, d->in[0]), &d->res[0]))
        return d->in[0];
    if (peep_is(g, d->in[0], TY_OP_BROADCAST))
        return ty_b_broadcast(g, peep_in(g, d->in[0], 0), d->res[0].rank, d->res[0].dim);
    return TY_NONE;
}

static ty_val peep_slice_of_slice(ty_graph *g, const graph_draft *d)
{
    const ty_attr *inner = peep_attr(g, d->in[0]);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK], step[TY_MAX_RANK];
    for (int i = 0; i < d->res[0].rank; i++) {
        if (d->res[0].dim[i] == 0)
            return TY_NONE;
        lo[i] = inner->lo[i] + d->attr.lo[i] * inner->step[i];
        step[i] = inner->step[i] * d->attr.step[i];
        hi[i] = lo[i] + (d->res[0].dim[i] - 1) * step[i] + 1;
    }
    return ty_b_slice(g, peep_in(g, d->in[0], 0), lo, hi, step);
}

/* The same slice of `x`, which lies in the sliced tensor from `at` on; TY_NONE if the slice is not all inside it. */
static ty_val peep_slice_inside(ty_graph *g, const graph_draft *d, ty_val x, const int64_t *at)
{
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    for (int i = 0; i < d->res[0].rank; i++) {
        lo[i] = d->attr.lo[i] - at[i];
        hi[i] = d->attr.hi[i] - at[i];
        if (lo[i] < 0 || hi[i] > ty_b_dim(g, x, i))
            return TY_NONE;
    }
    return ty_b_slice(g, x, lo, hi, d->attr.step);
}

static ty_val peep_slice_of_concat(ty_graph *g, const graph_draft *d)
{
    uint32_t node = ty_val_node(d->in[0]);
    int64_t axis = ty_graph_attr(g, node)->axis, at[TY_MAX_RANK] = {0};
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val v = peep_slice_inside(g, d, ty_graph_in(g, node, (int)i), at);
        if (v != TY_NONE || g->failed)
            return v;
        at[axis] += ty_b_dim(g, ty_graph_in(g, node, (int)i), (int)axis);
    }
    return TY_NONE;
}

static ty_val peep_slice(ty_graph *g, const graph_draft *d)
{
    ty_val x = d->in[0];
    if (ty_type_same(ty_graph_type(g, x), &d->res[0]))
        return x;
    if (peep_is(g, x, TY_OP_SLICE))
        return peep_slice_of_slice(g, d);
    if (peep_is(g, x, TY_OP_CONCAT))
        return peep_slice_of_concat(g, d);
    if (peep_is(g, x, TY_OP_PAD))
        return peep_slice_inside(g, d, peep_in(g, x, 0), peep_attr(g, x)->lo);
    return peep_restretch(g, d);
}

static ty_val peep_pad(ty_graph *g, const graph_draft *d)
{
    ty_val x = d->in[0];
    if (ty_type_same(ty_graph_type(g, x), &d->res[0]))
        return x;
    if (!peep_is(g, x, TY_OP_PAD) || memcmp(&peep_attr(g, x)->value, &d->attr.value, sizeof(double)) != 0)
        return TY_NONE;
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    for (int i = 0; i < d->res[0].rank; i++) {
        lo[i] = d->attr.lo[i] + peep_attr(g, x)->lo[i];
        hi[i] = d->attr.hi[i] + peep_attr(g, x)->hi[i];
    }
    return ty_b_pad(g, peep_in(g, x, 0), lo, hi, d->attr.value);
}

/* One input is itself; inputs without elements fall away. */
static ty_val peep_concat(ty_graph *g, const graph_draft *d)
{
    if (d->n_in == 1)
        return d->in[0];
    int n = 0;
    ty_val *kept = TY_NEW_ARRAY(&g->arena, ty_val, d->n_in);
    for (int i = 0; i < d->n_in; i++)
        if (ty_b_dim(g, d->in[i], (int)d->attr.axis) > 0)
            kept[n++] = d->in[i];
    return n > 0 && n < d->n_in ? ty_b_concat(g, kept, n, (int)d->attr.axis) : TY_NONE;
}

static ty_val peep_reverse(ty_graph *g, const graph_draft *d)
{
    uint32_t axes = d->attr.axes;
    for (int i = 0; i < d->res[0].rank; i++)
        if (d->res[0].dim[i] == 1)
            axes &= ~(1u << i);
    if (axes == 0)
        return d->in[0];
    if (peep_is(g, d->in[0], TY_OP_REVERSE))
        return ty_b_reverse(g, peep_in(g, d->in[0], 0), axes ^ peep_attr(g, d->in[0])->axes);
    return axes != d->attr.axes ? ty_b_reverse(g, d->in[0], axes) : peep_restretch(g, d);
}

/* ---- index and reduction ---- */

/* One constant index is a slice, whose gradient is a pad instead of a scatter. */
static ty_val peep_gather(ty_graph *g, const graph_draft *d)
{
    double s;
    if (ty_type_elems(ty_graph_type(g, d->in[1])) != 1 || !ty_graph_splat_value(g, d->in[1], &s))
        return TY_NONE;
    int64_t i = (int64_t)s;
    if (i < 0 || i >= ty_b_dim(g, d->in[0], (int)d->attr.axis))
        return TY_NONE;
    return ty_b_reshape(g, ty_b_slice_axis(g, d->in[0], (int)d->attr.axis, i, i + 1), d->res[0].rank, d->res[0].dim);
}

static ty_val peep_reduce(ty_graph *g, const graph_draft *d)
{
    const ty_type *x = ty_graph_type(g, d->in[0]);
    int64_t count = 1;
    double s;
    for (int i = 0; i < x->rank; i++)
        if (d->attr.axes >> i & 1)
            count *= x->dim[i];
    if (count == 1)
        return ty_b_reshape(g, d->in[0], d->res[0].rank, d->res[0].dim);
    if (count < 1 || !ty_graph_splat_value(g, d->in[0], &s))
        return TY_NONE;
    if (d->attr.mode == TY_MAX || d->attr.mode == TY_MIN)
        return peep_full(g, d, s);
    if (d->attr.mode == TY_SUM && peep_is_float(d) && isfinite(s * (double)count))
        return peep_full(g, d, s * (double)count);
    return TY_NONE;
}

/* ---- products ---- */

/* v is x with its last two axes swapped: x, or TY_NONE. */
static ty_val peep_swapped_matrix(const ty_graph *g, ty_val v)
{
    if (!peep_is(g, v, TY_OP_TRANSPOSE))
        return TY_NONE;
    const int64_t *perm = peep_attr(g, v)->lo;
    int r = ty_b_rank(g, v);
    for (int i = 0; i < r; i++)
        if (perm[i] != (i < r - 2 ? i : r - 2 + (r - 1 - i)))
            return TY_NONE;
    return peep_in(g, v, 0);
}

/* A product reads either side transposed as well as it lies. */
static ty_val peep_dot(ty_graph *g, const graph_draft *d)
{
    ty_val a = peep_swapped_matrix(g, d->in[0]), b = peep_swapped_matrix(g, d->in[1]);
    if (a == TY_NONE && b == TY_NONE)
        return TY_NONE;
    ty_attr attr = {.flags = d->attr.flags};
    attr.flags ^= a != TY_NONE ? TY_DOT_TRANS_A : 0;
    attr.flags ^= b != TY_NONE ? TY_DOT_TRANS_B : 0;
    ty_val in[3] = {a != TY_NONE ? a : d->in[0], b != TY_NONE ? b : d->in[1], d->n_in > 2 ? d->in[2] : TY_NONE};
    return ty_graph_emit(g, TY_OP_DOT, &attr, in, d->n_in);
}

/* ---- windows ---- */

/* v is x with zeros around it, perhaps with its axes in another order: that without the zeros, of which lo and hi are
 * so many along each axis of v. */
static ty_val peep_unpadded(ty_graph *g, ty_val v, int64_t *lo, int64_t *hi)
{
    bool turned = peep_is(g, v, TY_OP_TRANSPOSE);
    ty_val padded = turned ? peep_in(g, v, 0) : v;
    if (!peep_is(g, padded, TY_OP_PAD) || peep_attr(g, padded)->value != 0)
        return TY_NONE;
    const ty_attr *pad = peep_attr(g, padded);
    int64_t perm[TY_MAX_RANK];
    for (int i = 0; i < ty_b_rank(g, v); i++) {
        perm[i] = turned ? peep_attr(g, v)->lo[i] : i;
        lo[i] = pad->lo[perm[i]];
        hi[i] = pad->hi[perm[i]];
    }
    ty_val x = peep_in(g, padded, 0);
    return turned ? ty_b_transpose(g, x, perm) : x;
}

/* Zeros around x become the window's own; as long as none is all padding, which is no case for a library. */
static bool peep_pad_window(const ty_graph *g, ty_val padded, ty_attr *attr, const int64_t *size, const int64_t *lo,
                            const int64_t *hi)
{
    int at = attr->flags & TY_SLIDING_LAST ? 1 : 2;
    for (int i = 0; i < ty_b_rank(g, padded); i++) {
        bool spatial = i >= at && i < at + (int)attr->n;
        if (!spatial && (lo[i] || hi[i]))
            return false;
        if (!spatial)
            continue;
        int64_t reach = (size[i - at] - 1) * attr->dil[i - at];
        attr->lo[i - at] += lo[i];
        attr->hi[i - at] += hi[i];
        if (attr->lo[i - at] > reach || attr->hi[i - at] > reach)
            return false;
    }
    return true;
}

static ty_val peep_window(ty_graph *g, const graph_draft *d, const int64_t *size)
{
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    ty_attr attr = d->attr;
    ty_val in[2] = {peep_unpadded(g, d->in[0], lo, hi), d->n_in > 1 ? d->in[1] : TY_NONE};
    if (in[0] == TY_NONE || !peep_pad_window(g, d->in[0], &attr, size, lo, hi))
        return TY_NONE;
    return ty_graph_emit(g, d->op, &attr, in, d->n_in);
}

static ty_val peep_conv(ty_graph *g, const graph_draft *d)
{
    const ty_type *w = d->op == TY_OP_CONV ? ty_graph_type(g, d->in[1]) : &d->attr.type;
    return peep_window(g, d, w->dim + (d->attr.flags & TY_SLIDING_WEIGHTS_LAST ? 1 : 2));
}

static ty_val peep_pool_sum(ty_graph *g, const graph_draft *d)
{
    return peep_window(g, d, d->attr.size);
}

/* ---- the table ---- */

static peep_fn *const peep_rules[TY_N_OPS] = {
    [TY_OP_NEG] = peep_neg,
    [TY_OP_NOT] = peep_neg,
    [TY_OP_ABS] = peep_idempotent,
    [TY_OP_FLOOR] = peep_idempotent,
    [TY_OP_RINT] = peep_idempotent,
    [TY_OP_CAST] = peep_cast,
    [TY_OP_BITCAST] = peep_bitcast,
    [TY_OP_ADD] = peep_add,
    [TY_OP_SUB] = peep_sub,
    [TY_OP_MUL] = peep_mul,
    [TY_OP_DIV] = peep_div,
    [TY_OP_POW] = peep_pow,
    [TY_OP_MAX] = peep_same_inputs,
    [TY_OP_MIN] = peep_same_inputs,
    [TY_OP_AND] = peep_and,
    [TY_OP_OR] = peep_or,
    [TY_OP_XOR] = peep_xor,
    [TY_OP_SHL] = peep_add,
    [TY_OP_SHR] = peep_add,
    [TY_OP_EQ] = peep_compare,
    [TY_OP_LT] = peep_compare,
    [TY_OP_LE] = peep_compare,
    [TY_OP_SELECT] = peep_select,
    [TY_OP_RESHAPE] = peep_reshape,
    [TY_OP_TRANSPOSE] = peep_transpose,
    [TY_OP_BROADCAST] = peep_broadcast,
    [TY_OP_SLICE] = peep_slice,
    [TY_OP_PAD] = peep_pad,
    [TY_OP_CONCAT] = peep_concat,
    [TY_OP_REVERSE] = peep_reverse,
    [TY_OP_GATHER] = peep_gather,
    [TY_OP_REDUCE] = peep_reduce,
    [TY_OP_DOT] = peep_dot,
    [TY_OP_CONV] = peep_conv,
    [TY_OP_CONV_DW] = peep_conv,
    [TY_OP_POOL_SUM] = peep_pool_sum,
};

/* Bitwise the same with operands swapped. */
static const uint8_t peep_commutes[TY_N_OPS] = {
    [TY_OP_ADD] = 1, [TY_OP_MUL] = 1, [TY_OP_MAX] = 1, [TY_OP_MIN] = 1,
    [TY_OP_AND] = 1, [TY_OP_OR] = 1,  [TY_OP_XOR] = 1, [TY_OP_EQ] = 1,
};

/* Numbers on the right, else the older value first: a + b and b + a are one node. */
static void peep_order(const ty_graph *g, const graph_draft *d, ty_val *in)
{
    double s;
    if (!peep_commutes[d->op] || ty_graph_splat_value(g, in[1], &s))
        return;
    if (ty_graph_splat_value(g, in[0], &s) || in[0] > in[1]) {
        ty_val a = in[0];
        in[0] = in[1];
        in[1] = a;
    }
}

/* An elementwise op of nothing but numbers is a number: worked out once and stretched. */
static ty_val peep_all_splats(ty_graph *g, const graph_draft *d)
{
    if (!ty_op_is_elementwise(d->op) || d->op == TY_OP_BITCAST || ty_type_elems(&d->res[0]) <= 1)
        return TY_NONE;
    double s[3];
    ty_val one[3];
    for (int i = 0; i < d->n_in; i++)
        if (!ty_graph_splat_value(g, d->in[i], &s[i]))
            return TY_NONE;
    for (int i = 0; i < d->n_in; i++)
        one[i] = ty_b_scalar(g, ty_b_dtype(g, d->in[i]), s[i]);
    ty_val v = ty_graph_emit(g, d->op, &d->attr, one, d->n_in);
    return ty_b_broadcast(g, v, d->res[0].rank, d->res[0].dim);
}

ty_val ty_graph_peephole(ty_graph *g, graph_draft *d, ty_val *in)
{
    ty_val v = peep_all_splats(g, d);
    if (v != TY_NONE || g->failed)
        return v;
    peep_order(g, d, in);
    return peep_rules[d->op] ? peep_rules[d->op](g, d) : TY_NONE;
}
