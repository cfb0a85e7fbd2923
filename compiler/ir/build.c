/* build.c - typed constructors: one op each, broadcasting as NumPy does. Derived forms are in derive.c. */
#include "compiler/ir/build.h"

#include "compiler/ir/storage.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/ref.h"
#include "compiler/ops/refiter.h"

#include <math.h>
#include <string.h>

static ty_val build_1(ty_graph *g, ty_op op, const ty_attr *attr, ty_val x)
{
    return ty_graph_emit(g, op, attr, &x, 1);
}

/* ---- dims ---- */

int ty_b_rank(const ty_graph *g, ty_val v)
{
    return v == TY_NONE ? 0 : ty_graph_type(g, v)->rank;
}

int64_t ty_b_dim(const ty_graph *g, ty_val v, int axis)
{
    return v == TY_NONE || axis < 0 || axis >= ty_b_rank(g, v) ? 0 : ty_graph_type(g, v)->dim[axis];
}

ty_dtype ty_b_dtype(const ty_graph *g, ty_val v)
{
    return v == TY_NONE ? TY_F32 : (ty_dtype)ty_graph_type(g, v)->dtype;
}

uint32_t ty_b_all_axes(const ty_graph *g, ty_val v)
{
    return (1u << ty_b_rank(g, v)) - 1;
}

/* ---- leaves ---- */

ty_val ty_b_input(ty_graph *g, int input)
{
    if (g->failed)
        return TY_NONE;
    if (input < 0 || input >= ty_graph_n_inputs(g))
        return ty_graph_fail(g, TY_E_GRAPH, "input %d: the graph has %d", input, ty_graph_n_inputs(g));
    ty_attr attr = {.type = ty_graph_input(g, input)->type, .index = input};
    return ty_graph_emit(g, TY_OP_INPUT, &attr, NULL, 0);
}

ty_val ty_b_state(ty_graph *g, int state)
{
    if (g->failed)
        return TY_NONE;
    if (state < 0 || state >= ty_graph_n_states(g))
        return ty_graph_fail(g, TY_E_GRAPH, "state %d: the graph has %d", state, ty_graph_n_states(g));
    ty_attr attr = {.type = ty_graph_state(g, state)->type, .index = state};
    return ty_graph_emit(g, TY_OP_STATE, &attr, NULL, 0);
}

ty_val ty_b_const(ty_graph *g, ty_type type, const void *data)
{
    return ty_graph_const(g, &type, data, false);
}

ty_val ty_b_const_copy(ty_graph *g, ty_type type, const void *data)
{
    return ty_graph_const_copy(g, &type, data);
}

ty_val ty_b_scalar(ty_graph *g, ty_dtype dtype, double value)
{
    uint64_t bytes = 0;
    int64_t i = ty_dtype_is_float(dtype) || isnan(value) ? 0
                : value >= 0x1p63                        ? INT64_MAX
                : value <= -0x1p63                       ? INT64_MIN
                                                         : (int64_t)value;
    i = ty_refiter_wrap(dtype, i);
    ty_type type = ty_type_scalar(dtype);
    bool is_float = ty_dtype_is_float(dtype);
    ty_ref one = {.type = type, .f = is_float ? &value : NULL, .i = is_float ? NULL : &i};
    ty_ref_store(&one, &bytes);
    return ty_graph_const(g, &type, &bytes, false);
}

ty_val ty_b_full(ty_graph *g, ty_dtype dtype, int rank, const int64_t *dim, double value)
{
    return ty_b_broadcast(g, ty_b_scalar(g, dtype, value), rank, dim);
}

ty_val ty_b_full_like(ty_graph *g, ty_val like, double value)
{
    if (like == TY_NONE || g->failed)
        return TY_NONE;
    const ty_type *t = ty_graph_type(g, like);
    return ty_b_full(g, (ty_dtype)t->dtype, t->rank, t->dim, value);
}

ty_val ty_b_iota(ty_graph *g, ty_type type, int axis)
{
    return ty_graph_emit(g, TY_OP_IOTA, &(ty_attr){.type = type, .axis = axis}, NULL, 0);
}

ty_val ty_b_rng(ty_graph *g, ty_val seed, ty_val step, int64_t stream, int rank, const int64_t *dim)
{
    ty_attr attr = {.type = ty_type_make(TY_U32, rank, dim), .index = stream};
    return ty_graph_emit(g, TY_OP_RNG, &attr, (ty_val[]){seed, step}, 2);
}

/* ---- elementwise ---- */

ty_val ty_b_unary(ty_graph *g, ty_op op, ty_val x)
{
    return build_1(g, op, NULL, x);
}

/* Widens *rank and dim to hold v's shape too, by NumPy's rule. False if they do not fit: an error is stored. */
static bool build_join_shape(ty_graph *g, ty_val v, int *rank, int64_t *dim)
{
    const ty_type *t = ty_graph_type(g, v);
    if (t->rank > *rank) {
        memmove(dim + (t->rank - *rank), dim, sizeof(int64_t) * (size_t)*rank);
        for (int i = 0; i < t->rank - *rank; i++)
            dim[i] = 1;
        *rank = t->rank;
    }
    for (int i = 0; i < t->rank; i++) {
        int64_t *to = &dim[*rank - t->rank + i];
        if (*to == 1)
            *to = t->dim[i];
        if (t->dim[i] == *to || t->dim[i] == 1)
            continue;
        char a[160], b[160];
        ty_type joined = ty_type_make((ty_dtype)t->dtype, *rank, dim);
        ty_graph_fail(g, TY_E_SHAPE,
                      "shapes %s and %s do not broadcast: axis %d from the end has %lld and %lld elements",
                      ty_type_text(&joined, a, sizeof a), ty_type_text(t, b, sizeof b), t->rank - i, (long long)*to,
                      (long long)t->dim[i]);
        return false;
    }
    return true;
}

/* Broadcasts n values to their common shape, in place. */
static bool build_join(ty_graph *g, ty_val *v, int n)
{
    int rank = 0;
    int64_t dim[TY_MAX_RANK] = {0};
    bool same = true;
    for (int i = 0; i < n; i++) {
        if (v[i] == TY_NONE || g->failed)
            return false;
        same = same && ty_type_same_shape(ty_graph_type(g, v[i]), ty_graph_type(g, v[0]));
    }
    if (same)
        return true;
    for (int i = 0; i < n; i++)
        if (!build_join_shape(g, v[i], &rank, dim))
            return false;
    for (int i = 0; i < n; i++)
        v[i] = ty_b_broadcast(g, v[i], rank, dim);
    return !g->failed;
}

ty_val ty_b_binary(ty_graph *g, ty_op op, ty_val a, ty_val b)
{
    ty_val in[2] = {a, b};
    return build_join(g, in, 2) ? ty_graph_emit(g, op, NULL, in, 2) : TY_NONE;
}

ty_val ty_b_select(ty_graph *g, ty_val cond, ty_val a, ty_val b)
{
    ty_val in[3] = {cond, a, b};
    return build_join(g, in, 3) ? ty_graph_emit(g, TY_OP_SELECT, NULL, in, 3) : TY_NONE;
}

#define BUILD_UNARY(NAME, OP)                 \
    ty_val ty_b_##NAME(ty_graph *g, ty_val x) \
    {                                         \
        return ty_b_unary(g, TY_OP_##OP, x);  \
    }
BUILD_UNARY(neg, NEG)
BUILD_UNARY(exp, EXP)
BUILD_UNARY(log, LOG)

#define BUILD_BINARY(NAME, OP)                          \
    ty_val ty_b_##NAME(ty_graph *g, ty_val a, ty_val b) \
    {                                                   \
        return ty_b_binary(g, TY_OP_##OP, a, b);        \
    }
BUILD_BINARY(add, ADD)
BUILD_BINARY(sub, SUB)
BUILD_BINARY(mul, MUL)
BUILD_BINARY(div, DIV)
BUILD_BINARY(max, MAX)
BUILD_BINARY(min, MIN)
BUILD_BINARY(eq, EQ)
BUILD_BINARY(lt, LT)
BUILD_BINARY(le, LE)

ty_val ty_b_cast(ty_graph *g, ty_val x, ty_dtype dtype)
{
    if (x == TY_NONE || g->failed || ty_b_dtype(g, x) == dtype)
        return g->failed ? TY_NONE : x;
    return build_1(g, TY_OP_CAST, &(ty_attr){.type = ty_type_scalar(dtype)}, x);
}

/* ---- movement ---- */

/* Lists come from importers: a rank beyond the limit must not be read. */
static bool build_rank_fits(ty_graph *g, const char *op, int rank)
{
    if (rank >= 0 && rank <= TY_MAX_RANK)
        return true;
    ty_graph_fail(g, TY_E_SHAPE, "%s: rank %d; the most is %d", op, rank, TY_MAX_RANK);
    return false;
}

ty_val ty_b_reshape(ty_graph *g, ty_val x, int rank, const int64_t *dim)
{
    if (x == TY_NONE || g->failed || !build_rank_fits(g, "reshape", rank))
        return TY_NONE;
    return build_1(g, TY_OP_RESHAPE, &(ty_attr){.type = ty_type_make(ty_b_dtype(g, x), rank, dim)}, x);
}

ty_val ty_b_transpose(ty_graph *g, ty_val x, const int64_t *perm)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    ty_attr attr = {.n = (uint32_t)ty_b_rank(g, x)};
    memcpy(attr.lo, perm, sizeof(int64_t) * attr.n);
    return build_1(g, TY_OP_TRANSPOSE, &attr, x);
}

ty_val ty_b_broadcast(ty_graph *g, ty_val x, int rank, const int64_t *dim)
{
    if (x == TY_NONE || g->failed || !build_rank_fits(g, "broadcast", rank))
        return TY_NONE;
    const ty_type *from = ty_graph_type(g, x);
    ty_type to = ty_type_make((ty_dtype)from->dtype, rank, dim);
    if (from->rank > rank) {
        char a[160], b[160];
        return ty_graph_fail(g, TY_E_SHAPE, "%s does not broadcast to %s", ty_type_text(from, a, sizeof a),
                             ty_type_text(&to, b, sizeof b));
    }
    int64_t padded[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        padded[i] = i < rank - from->rank ? 1 : from->dim[i - (rank - from->rank)];
    x = ty_b_reshape(g, x, rank, padded);
    return build_1(g, TY_OP_BROADCAST, &(ty_attr){.type = to}, x);
}

ty_val ty_b_slice(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *hi, const int64_t *step)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    ty_attr attr = {.n = (uint32_t)ty_b_rank(g, x)};
    for (uint32_t i = 0; i < attr.n; i++) {
        attr.lo[i] = lo[i];
        attr.hi[i] = hi[i];
        attr.step[i] = step ? step[i] : 1;
    }
    return build_1(g, TY_OP_SLICE, &attr, x);
}

ty_val ty_b_slice_axis(ty_graph *g, ty_val x, int axis, int64_t lo, int64_t hi)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    if (axis < 0 || axis >= ty_b_rank(g, x))
        return ty_graph_fail(g, TY_E_SHAPE, "slice: no axis %d in rank %d", axis, ty_b_rank(g, x));
    int64_t from[TY_MAX_RANK] = {0}, to[TY_MAX_RANK];
    memcpy(to, ty_graph_type(g, x)->dim, sizeof to);
    from[axis] = lo;
    to[axis] = hi;
    return ty_b_slice(g, x, from, to, NULL);
}

ty_val ty_b_pad(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *hi, double value)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    ty_attr attr = {.n = (uint32_t)ty_b_rank(g, x), .value = value};
    memcpy(attr.lo, lo, sizeof(int64_t) * attr.n);
    memcpy(attr.hi, hi, sizeof(int64_t) * attr.n);
    return build_1(g, TY_OP_PAD, &attr, x);
}

ty_val ty_b_concat(ty_graph *g, const ty_val *in, int n_in, int axis)
{
    return ty_graph_emit(g, TY_OP_CONCAT, &(ty_attr){.axis = axis}, in, n_in);
}

enum { CONCAT_MAX_INPUTS = 32 };

ty_val ty_b_concat_many(ty_graph *g, const ty_val *in, int n_in, int axis)
{
    if (n_in <= CONCAT_MAX_INPUTS)
        return ty_b_concat(g, in, n_in, axis);
    int n_parts = (n_in + CONCAT_MAX_INPUTS - 1) / CONCAT_MAX_INPUTS;
    ty_val *part = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n_parts);
    for (int i = 0; i < n_parts; i++) {
        int lo = i * CONCAT_MAX_INPUTS, n = n_in - lo < CONCAT_MAX_INPUTS ? n_in - lo : CONCAT_MAX_INPUTS;
        part[i] = ty_b_concat(g, in + lo, n, axis);
    }
    return ty_b_concat_many(g, part, n_parts, axis);
}

ty_val ty_b_reverse(ty_graph *g, ty_val x, uint32_t axes)
{
    return build_1(g, TY_OP_REVERSE, &(ty_attr){.axes = axes}, x);
}

ty_val ty_b_unsqueeze(ty_graph *g, ty_val x, int axis)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    int rank = ty_b_rank(g, x);
    if (axis < 0 || axis > rank || rank == TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_SHAPE, "unsqueeze: no place for axis %d in rank %d", axis, rank);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i <= rank; i++)
        dim[i] = i == axis ? 1 : ty_b_dim(g, x, i - (i > axis));
    return ty_b_reshape(g, x, rank + 1, dim);
}

ty_val ty_b_squeeze(ty_graph *g, ty_val x, int axis)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    int rank = ty_b_rank(g, x);
    if (axis < 0 || axis >= rank || ty_b_dim(g, x, axis) != 1)
        return ty_graph_fail(g, TY_E_SHAPE, "squeeze: axis %d of rank %d has %lld elements, not 1", axis, rank,
                             (long long)ty_b_dim(g, x, axis));
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < rank - 1; i++)
        dim[i] = ty_b_dim(g, x, i + (i >= axis));
    return ty_b_reshape(g, x, rank - 1, dim);
}

ty_val ty_b_flatten(ty_graph *g, ty_val x)
{
    if (x == TY_NONE || g->failed)
        return TY_NONE;
    int64_t n = ty_type_elems(ty_graph_type(g, x));
    return ty_b_reshape(g, x, 1, &n);
}

/* ---- index and reduction ---- */

ty_val ty_b_gather(ty_graph *g, ty_val x, ty_val index, int axis)
{
    return ty_graph_emit(g, TY_OP_GATHER, &(ty_attr){.axis = axis}, (ty_val[]){x, index}, 2);
}

ty_val ty_b_take(ty_graph *g, ty_val x, ty_val index, int axis)
{
    return ty_graph_emit(g, TY_OP_TAKE, &(ty_attr){.axis = axis}, (ty_val[]){x, index}, 2);
}

ty_val ty_b_scatter(ty_graph *g, ty_val x, ty_val index, ty_val update, int axis, ty_combine mode)
{
    ty_attr attr = {.axis = axis, .mode = mode};
    return ty_graph_emit(g, TY_OP_SCATTER, &attr, (ty_val[]){x, index, update}, 3);
}

ty_val ty_b_put(ty_graph *g, ty_val x, ty_val index, ty_val update, int axis, ty_combine mode)
{
    ty_attr attr = {.axis = axis, .mode = mode};
    return ty_graph_emit(g, TY_OP_PUT, &attr, (ty_val[]){x, index, update}, 3);
}

ty_val ty_b_find_rows(ty_graph *g, ty_val i, int64_t n_rows, ty_val *order, ty_val *start)
{
    ty_val v = build_1(g, TY_OP_FIND_ROWS, &(ty_attr){.index = n_rows}, i);
    *order = v == TY_NONE ? TY_NONE : ty_val_make(ty_val_node(v), 1);
    *start = v == TY_NONE ? TY_NONE : ty_val_make(ty_val_node(v), 2);
    return v;
}

ty_val ty_b_sum_rows(ty_graph *g, ty_val u, ty_val order, ty_val start)
{
    return ty_graph_emit(g, TY_OP_SUM_ROWS, NULL, (ty_val[]){u, order, start}, 3);
}

ty_val ty_b_get_rows(ty_graph *g, ty_val x, ty_val rows)
{
    return ty_graph_emit(g, TY_OP_GET_ROWS, NULL, (ty_val[]){x, rows}, 2);
}

ty_val ty_b_set_rows(ty_graph *g, ty_val x, ty_val rows, ty_val u)
{
    return ty_graph_emit(g, TY_OP_SET_ROWS, NULL, (ty_val[]){x, rows, u}, 3);
}

ty_val ty_b_sort(ty_graph *g, ty_val x, int axis, bool descending, ty_val *indices)
{
    ty_val v = build_1(g, TY_OP_SORT, &(ty_attr){.axis = axis, .flags = descending}, x);
    if (indices)
        *indices = v == TY_NONE ? TY_NONE : ty_val_make(ty_val_node(v), 1);
    return v;
}

ty_val ty_b_reduce(ty_graph *g, ty_val x, ty_combine how, uint32_t axes, bool keep_dims)
{
    ty_val v = build_1(g, TY_OP_REDUCE, &(ty_attr){.mode = how, .axes = axes}, x);
    if (v == TY_NONE || !keep_dims)
        return v;
    const ty_type *t = ty_graph_type(g, x);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dim[i] = axes >> i & 1 ? 1 : t->dim[i];
    return ty_b_reshape(g, v, t->rank, dim);
}

ty_val ty_b_argreduce(ty_graph *g, ty_val x, ty_combine how, int axis, bool last)
{
    return build_1(g, TY_OP_ARGREDUCE, &(ty_attr){.mode = how, .axis = axis, .flags = last}, x);
}

ty_val ty_b_scan(ty_graph *g, ty_val x, ty_combine how, int axis, bool exclusive, bool from_end)
{
    ty_attr attr = {.mode = how, .axis = axis, .flags = (exclusive ? 1u : 0) | (from_end ? 2u : 0)};
    return build_1(g, TY_OP_SCAN, &attr, x);
}

/* ---- of replicas ---- */

ty_val ty_b_all_reduce(ty_graph *g, ty_val x, int64_t replicas)
{
    return replicas == 1 ? x : build_1(g, TY_OP_ALL_REDUCE, &(ty_attr){.replicas = replicas}, x);
}

ty_val ty_b_all_gather(ty_graph *g, ty_val x, int64_t replicas)
{
    return replicas == 1 ? x : build_1(g, TY_OP_ALL_GATHER, &(ty_attr){.replicas = replicas}, x);
}

ty_val ty_b_all_reduce_gradients(ty_graph *g, ty_val x, int64_t replicas, int state, int64_t lo, int64_t hi)
{
    ty_attr attr = {.replicas = replicas, .flags = TY_OF_GRADIENTS, .index = state, .n = 1, .lo = {lo}, .hi = {hi}};
    return replicas == 1 ? x : build_1(g, TY_OP_ALL_REDUCE, &attr, x);
}

ty_val ty_b_reduce_scatter_gradients(ty_graph *g, ty_val x, ty_val replica, int64_t replicas, int state, int64_t lo,
                                     int64_t hi)
{
    ty_attr attr = {.replicas = replicas, .flags = TY_OF_GRADIENTS, .index = state, .n = 1, .lo = {lo}, .hi = {hi}};
    return ty_graph_emit(g, TY_OP_REDUCE_SCATTER, &attr, (ty_val[]){x, replica}, 2);
}

ty_val ty_b_all_gather_gradients(ty_graph *g, ty_val x, int64_t replicas)
{
    ty_attr attr = {.replicas = replicas, .flags = TY_OF_GRADIENTS};
    return replicas == 1 ? x : build_1(g, TY_OP_ALL_GATHER, &attr, x);
}

/* ---- contraction and composites ---- */

ty_val ty_b_dot(ty_graph *g, ty_val a, ty_val b, bool trans_a, bool trans_b)
{
    ty_attr attr = {.flags = (trans_a ? TY_DOT_TRANS_A : 0) | (trans_b ? TY_DOT_TRANS_B : 0)};
    return ty_graph_emit(g, TY_OP_DOT, &attr, (ty_val[]){a, b}, 2);
}

ty_val ty_b_dot_wide(ty_graph *g, ty_val a, ty_val b, bool trans_a, bool trans_b)
{
    ty_attr attr = {.flags = (trans_a ? TY_DOT_TRANS_A : 0) | (trans_b ? TY_DOT_TRANS_B : 0)};
    if (a != TY_NONE && ty_wide_dtype(ty_b_dtype(g, a)) != ty_b_dtype(g, a))
        attr.flags |= TY_DOT_WIDE;
    return ty_graph_emit(g, TY_OP_DOT, &attr, (ty_val[]){a, b}, 2);
}

ty_val ty_b_dot_full(ty_graph *g, ty_val a, ty_val b)
{
    ty_attr attr = {.flags = TY_DOT_FULL};
    return ty_graph_emit(g, TY_OP_DOT, &attr, (ty_val[]){a, b}, 2);
}

ty_val ty_b_dot_add(ty_graph *g, ty_val a, ty_val b, ty_val c, bool trans_a, bool trans_b)
{
    ty_attr attr = {.flags = (trans_a ? TY_DOT_TRANS_A : 0) | (trans_b ? TY_DOT_TRANS_B : 0)};
    if (a != TY_NONE && c != TY_NONE && ty_b_dtype(g, c) != ty_b_dtype(g, a))
        attr.flags |= TY_DOT_WIDE;
    return ty_graph_emit(g, TY_OP_DOT, &attr, (ty_val[]){a, b, c}, 3);
}

ty_val ty_b_softmax(ty_graph *g, ty_val x, int axis, bool log)
{
    return build_1(g, TY_OP_SOFTMAX, &(ty_attr){.axis = axis, .flags = log}, x);
}

ty_val ty_b_norm(ty_graph *g, ty_val x, ty_val scale, ty_val bias, int n_axes, double eps, bool rms)
{
    ty_attr attr = {.n = (uint32_t)n_axes, .flags = rms, .value = eps};
    return ty_graph_emit(g, TY_OP_NORM, &attr, (ty_val[]){x, scale, bias}, 3);
}
