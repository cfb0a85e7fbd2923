/* onnx_ops_index.c - gather, scatter, top-k, one-hot.
 *
 * ONNX indices may count from the end; ours may not. Constant ones are wrapped now, others by a select in the graph.
 */
#include "compiler/import/onnx_import.h"

enum { ONE_HOT_FOLDED = 4096 }; /* classes */

ty_val onnx_wrap_index(onnx_ctx *c, ty_val index, int64_t dim)
{
    ty_graph *g = c->g;
    ty_dtype dtype = onnx_dtype_of(c, index);
    if (index == TY_NONE)
        return index;
    if (ty_dtype_is_float(dtype) || dtype == TY_BOOL) {
        onnx_fail(c, TY_E_UNSUPPORTED, "%s: indices must be integers, found %s", c->node->op_type,
                  ty_dtype_text(dtype));
        return TY_NONE;
    }
    if (dtype != TY_I32 && dtype != TY_I64)
        index = ty_b_cast(g, index, TY_I64);
    if (!ty_dtype_is_signed(dtype))
        return index;
    const int64_t *v;
    int64_t n, i = 0;
    if (onnx_val_ints(c, index, &v, &n)) {
        while (i < n && v[i] >= 0 && v[i] < dim)
            i++;
        if (i == n)
            return index;
        for (i = 0; i < n; i++)
            if (v[i] < -dim || v[i] >= dim) {
                onnx_fail(c, TY_E_SHAPE, "%s: index %lld is outside an axis of %lld entries", c->node->op_type,
                          (long long)v[i], (long long)dim);
                return TY_NONE;
            }
    }
    ty_val zero = ty_b_scalar(g, onnx_dtype_of(c, index), 0);
    return ty_b_select(g, ty_b_lt(g, index, zero), ty_b_add_s(g, index, (double)dim), index);
}

ty_val onnx_take_rows(onnx_ctx *c, ty_val x, ty_val index, int axis)
{
    return ty_b_gather(c->g, x, onnx_wrap_index(c, index, onnx_dim(c, x, axis)), axis);
}

void onnx_op_gather(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int axis;
    if (onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        onnx_set(c, 0, onnx_take_rows(c, x, onnx_in(c, 1), axis));
}

/* Cuts the axes other than `axis` of x to the index's shape: ONNX lets the index be smaller there, take does not. */
static ty_val cut_like(onnx_ctx *c, ty_val x, ty_val index, int axis)
{
    int rank = onnx_rank(c, x);
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK];
    if (onnx_rank(c, index) != rank) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "must have %d dimensions", rank);
        return TY_NONE;
    }
    for (int i = 0; i < rank; i++) {
        hi[i] = i == axis ? onnx_dim(c, x, i) : onnx_dim(c, index, i);
        if (hi[i] > onnx_dim(c, x, i)) {
            onnx_fail_input(c, 1, TY_E_SHAPE, "has %lld entries along axis %d, the data %lld", (long long)hi[i], i,
                            (long long)onnx_dim(c, x, i));
            return TY_NONE;
        }
    }
    return ty_b_slice(c->g, x, lo, hi, NULL);
}

void onnx_op_gather_elements(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), index = onnx_in(c, 1);
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        return;
    ty_val cut = cut_like(c, x, index, axis);
    onnx_set(c, 0, ty_b_take(c->g, cut, onnx_wrap_index(c, index, onnx_dim(c, x, axis)), axis));
}

static ty_combine combine_mode(onnx_ctx *c)
{
    static const char *const modes[] = {"none", "add", "mul", "max", "min", NULL};
    static const ty_combine combine[] = {TY_SET, TY_SUM, TY_PROD, TY_MAX, TY_MIN};
    return combine[onnx_attr_choice(c, "reduction", "none", modes)];
}

/* Where the index is smaller than the data, only that box changes. */
static ty_val put_box(onnx_ctx *c, ty_val x, ty_val box)
{
    ty_graph *g = c->g;
    int rank = onnx_rank(c, x);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    for (int axis = rank - 1; axis >= 0 && box != TY_NONE; axis--) {
        int64_t have = onnx_dim(c, box, axis), full = onnx_dim(c, x, axis);
        if (have == full)
            continue;
        for (int i = 0; i < rank; i++) {
            lo[i] = i == axis ? have : 0;
            hi[i] = i < axis ? onnx_dim(c, box, i) : onnx_dim(c, x, i);
        }
        box = ty_b_concat(g, (ty_val[]){box, ty_b_slice(g, x, lo, hi, NULL)}, 2, axis);
    }
    return box;
}

void onnx_op_scatter_elements(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), index = onnx_in(c, 1);
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        return;
    ty_combine how = combine_mode(c);
    ty_val cut = cut_like(c, x, index, axis);
    if (cut == TY_NONE)
        return;
    ty_val box = ty_b_put(c->g, cut, onnx_wrap_index(c, index, onnx_dim(c, x, axis)), onnx_in(c, 2), axis, how);
    onnx_set(c, 0, put_box(c, x, box));
}

/* ---- indices that are tuples --------------------------------------------------------------------------------------
 */

typedef struct nd_args {
    int64_t batch, n_tuples, n_rows, rest; /* data seen as [batch * n_rows, rest], index as [batch, n_tuples, k] */
    int k, b, rank;                        /* entries of a tuple, batch axes */
    ty_val row;                            /* i64 [batch * n_tuples]: row of each tuple */
} nd_args;

static bool nd_shape(onnx_ctx *c, ty_val x, ty_val index, int64_t b, nd_args *a)
{
    int rank = onnx_rank(c, x), rank_i = onnx_rank(c, index);
    int64_t k = rank_i > 0 ? onnx_dim(c, index, rank_i - 1) : 0;
    if (rank_i < 1 || b < 0 || b >= rank_i || b + k > rank || k < 1) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "does not fit data of %d dimensions with %lld batch axes", rank,
                        (long long)b);
        return false;
    }
    *a = (nd_args){.batch = 1, .n_tuples = 1, .n_rows = 1, .rest = 1, .k = (int)k, .b = (int)b, .rank = rank};
    for (int i = 0; i < rank; i++)
        *(i < b ? &a->batch : i < b + k ? &a->n_rows : &a->rest) *= onnx_dim(c, x, i);
    for (int i = (int)b; i < rank_i - 1; i++)
        a->n_tuples *= onnx_dim(c, index, i);
    for (int i = 0; i < b; i++)
        if (onnx_dim(c, x, i) != onnx_dim(c, index, i)) {
            onnx_fail_input(c, 1, TY_E_SHAPE, "differs from the data in batch axis %d", i);
            return false;
        }
    return true;
}

/* row = ((batch * d0 + i0) * d1 + i1) ... */
static void nd_rows(onnx_ctx *c, ty_val x, ty_val index, nd_args *a)
{
    ty_graph *g = c->g;
    int64_t dim[] = {a->batch, a->n_tuples, a->k}, flat = a->batch * a->n_tuples;
    ty_val tuples = ty_b_reshape(g, ty_b_cast(g, index, TY_I64), 3, dim);
    ty_val row = ty_b_iota(g, ty_type_make(TY_I64, 2, dim), 0);
    for (int i = 0; i < a->k; i++) {
        int64_t n = onnx_dim(c, x, a->b + i);
        ty_val part = ty_b_squeeze(g, ty_b_slice_axis(g, tuples, 2, i, i + 1), 2);
        row = ty_b_add(g, ty_b_mul_s(g, row, (double)n), onnx_wrap_index(c, part, n));
    }
    a->row = ty_b_reshape(g, row, 1, &flat);
}

void onnx_op_gather_nd(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), index = onnx_in(c, 1);
    nd_args a;
    if (!nd_shape(c, x, index, onnx_attr_int(c, "batch_dims", 0), &a))
        return;
    nd_rows(c, x, index, &a);
    int64_t flat[] = {a.batch * a.n_rows, a.rest}, dim[TY_MAX_RANK];
    int rank = 0, rank_i = onnx_rank(c, index);
    if (rank_i - 1 + a.rank - a.b - a.k > TY_MAX_RANK) {
        onnx_fail(c, TY_E_UNSUPPORTED, "GatherND: the result has more than %d dimensions", TY_MAX_RANK);
        return;
    }
    for (int i = 0; i < rank_i - 1; i++)
        dim[rank++] = onnx_dim(c, index, i);
    for (int i = a.b + a.k; i < a.rank; i++)
        dim[rank++] = onnx_dim(c, x, i);
    onnx_set(c, 0, ty_b_reshape(g, ty_b_gather(g, ty_b_reshape(g, x, 2, flat), a.row, 0), rank, dim));
}

void onnx_op_scatter_nd(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), index = onnx_in(c, 1);
    nd_args a;
    ty_combine how = combine_mode(c);
    if (!nd_shape(c, x, index, 0, &a))
        return;
    nd_rows(c, x, index, &a);
    int64_t flat[] = {a.n_rows, a.rest}, rows[] = {a.n_tuples, a.rest};
    ty_val y = ty_b_scatter(g, ty_b_reshape(g, x, 2, flat), a.row, ty_b_reshape(g, onnx_in(c, 2), 2, rows), 0, how);
    onnx_set(c, 0, ty_b_reshape(g, y, onnx_rank(c, x), onnx_type_of(c, x)->dim));
}

/* ---- order --------------------------------------------------------------------------------------------------------
 */

/* arg: TY_MAX or TY_MIN. */
void onnx_op_arg_reduce(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        return;
    ty_val y = ty_b_argreduce(c->g, x, (ty_combine)c->row->arg, axis, onnx_attr_int(c, "select_last_index", 0));
    onnx_set(c, 0, onnx_attr_int(c, "keepdims", 1) ? ty_b_unsqueeze(c->g, y, axis) : y);
}

void onnx_op_top_k(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), index;
    int axis;
    int64_t k;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", -1), onnx_rank(c, x), &axis))
        return;
    if (c->opset < 10)
        k = onnx_attr_int(c, "k", 0);
    else if (!onnx_const_int(c, 1, 0, &k))
        return;
    if (k < 0 || k > onnx_dim(c, x, axis)) {
        onnx_fail(c, TY_E_SHAPE, "TopK: %lld of %lld entries", (long long)k, (long long)onnx_dim(c, x, axis));
        return;
    }
    ty_val sorted = ty_b_sort(g, x, axis, onnx_attr_int(c, "largest", 1), &index);
    if (sorted == TY_NONE)
        return;
    onnx_set(c, 0, ty_b_slice_axis(g, sorted, axis, 0, k));
    onnx_set(c, 1, ty_b_slice_axis(g, index, axis, 0, k));
}

/* 0 to depth - 1 along an axis. Constants where the result is one: PyTorch's repeat_interleave computes with it how
 * often a Tile repeats. */
static ty_val one_hot_numbers(onnx_ctx *c, int rank, const int64_t *dim, int axis)
{
    int64_t n = dim[axis], shape[TY_MAX_RANK];
    if (!onnx_is_const(c, 0) || n > ONE_HOT_FOLDED)
        return ty_b_iota(c->g, ty_type_make(TY_I64, rank, dim), axis);
    int64_t *number = onnx_alloc(c, (size_t)n, sizeof *number);
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? n : 1;
    for (int64_t i = 0; i < n; i++)
        number[i] = i;
    return ty_b_reshape(c->g, onnx_ints_const(c, number, n), rank, shape);
}

void onnx_op_one_hot(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val index = onnx_in(c, 0), values = onnx_in(c, 2);
    int rank = onnx_rank(c, index) + 1, axis;
    double depth;
    int64_t dim[TY_MAX_RANK];
    if (!onnx_const_float(c, 1, 0, &depth))
        return;
    if (rank > TY_MAX_RANK || !(depth >= 1 && depth <= 1 << 24) || ty_type_elems(onnx_type_of(c, values)) != 2 ||
        onnx_rank(c, values) != 1) {
        onnx_fail(c, TY_E_SHAPE, "OneHot: depth must be positive, values must be two numbers");
        return;
    }
    if (!onnx_axis(c, onnx_attr_int(c, "axis", -1), rank, &axis))
        return;
    index = ty_b_cast(g, index, TY_I64);
    ty_val wrapped = ty_b_add_s(g, index, (double)(int64_t)depth);
    index = ty_b_select(g, ty_b_lt(g, index, ty_b_scalar(g, TY_I64, 0)), wrapped, index);
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? (int64_t)depth : onnx_dim(c, index, i < axis ? i : i - 1);
    if (!onnx_shape_ok(c, rank, dim))
        return;
    ty_val hit = ty_b_eq(g, one_hot_numbers(c, rank, dim, axis), ty_b_unsqueeze(g, index, axis));
    ty_val off = ty_b_reshape(g, ty_b_slice_axis(g, values, 0, 0, 1), 0, NULL);
    ty_val on = ty_b_reshape(g, ty_b_slice_axis(g, values, 0, 1, 2), 0, NULL);
    onnx_set(c, 0, ty_b_select(g, hit, on, off));
}

/* Rows that a constant condition picks. */
void onnx_op_compress(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *keep;
    int64_t n, count = 0;
    int axis = 0;
    if (!onnx_is_const(c, 1)) {
        onnx_fail_input(c, 1, TY_E_UNSUPPORTED, "depends on the data, so the size of the result would");
        onnx_suggest(c);
        return;
    }
    if (!onnx_find_attr(c, "axis"))
        x = ty_b_flatten(c->g, x);
    else if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        return;
    if (!onnx_const_ints(c, 1, &keep, &n))
        return;
    int64_t *index = onnx_alloc(c, (size_t)n + 1, sizeof *index);
    for (int64_t i = 0; i < n; i++)
        if (keep[i])
            index[count++] = i;
    onnx_set(c, 0, onnx_take_rows(c, x, onnx_ints_const(c, index, count), axis));
}

/* Positions of what is not zero, of a constant: exporters write masks and shapes this way. */
void onnx_op_non_zero(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const double *v;
    const ty_type t = *onnx_type_of(c, x);
    int64_t n, count = 0, at = 0;
    if (!onnx_is_const(c, 0)) {
        onnx_fail_input(c, 0, TY_E_UNSUPPORTED, "depends on the data, so the size of the result would");
        onnx_help(c, "write the model with Where and a mask in place of NonZero");
        return;
    }
    if (!onnx_const_floats(c, 0, &v, &n))
        return;
    for (int64_t i = 0; i < n; i++)
        count += v[i] != 0;
    int64_t *out = onnx_alloc(c, (size_t)(count * t.rank) + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        if (v[i] == 0)
            continue;
        int64_t rest = i;
        for (int axis = t.rank - 1; axis >= 0; axis--) {
            out[axis * count + at] = rest % t.dim[axis];
            rest /= t.dim[axis];
        }
        at++;
    }
    int64_t dim[] = {t.rank, count};
    onnx_set(c, 0, ty_b_reshape(c->g, onnx_ints_const(c, out, count * t.rank), 2, dim));
}
