/* tf_ops_index.c - gather, scatter, top-k, one-hot, bins. */
#include "compiler/import/tensorflow/tf_ops.h"

ty_val tf_index(tf_ctx *c, ty_val index, int64_t dim)
{
    ty_dtype dtype = tf_dtype_of(c, index);
    const int64_t *v;
    int64_t n;
    if (index == TY_NONE)
        return index;
    if (dtype != TY_I32 && dtype != TY_I64)
        index = ty_b_cast(c->g, index, TY_I64);
    if (!tf_val_ints(c, index, &v, &n))
        return index;
    for (int64_t i = 0; i < n; i++)
        if (v[i] < 0 || v[i] >= dim) {
            tf_fail(c, TY_E_SHAPE, "index %lld is outside an axis of %lld entries", (long long)v[i], (long long)dim);
            return TY_NONE;
        }
    return index;
}

/* ---- gather -------------------------------------------------------------------------------------------------------
 */

static int64_t product(const int64_t *dim, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dim[i];
    return n;
}

/* x [b.., rows, rest..], index [b.., k..]: rows of x seen as one table of all batches. */
static ty_val gather_batch(tf_ctx *c, ty_val x, ty_val index, int b)
{
    ty_graph *g = c->g;
    const ty_type xt = *tf_type(c, x), it = *tf_type(c, index);
    int64_t batch = product(xt.dim, 0, b), rows = xt.dim[b], dim[TY_MAX_RANK], flat[TY_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < b; i++)
        if (xt.dim[i] != it.dim[i]) {
            tf_fail_input(c, 1, TY_E_SHAPE, "differs from the data in batch axis %d", i);
            return TY_NONE;
        }
    if (it.rank + xt.rank - b - 1 > TY_MAX_RANK) {
        tf_fail(c, TY_E_UNSUPPORTED, "the result has more than %d dimensions", TY_MAX_RANK);
        return TY_NONE;
    }
    int64_t n_each = product(it.dim, b, it.rank), pair[] = {batch, n_each}, all = batch * n_each;
    if (b == xt.rank - 1 && n_each == 1) { /* one number of each row */
        int64_t row[] = {batch, rows};
        ty_val one = ty_b_take(g, ty_b_reshape(g, x, 2, row), ty_b_reshape(g, index, 2, pair), 1);
        return ty_b_reshape(g, one, it.rank, it.dim);
    }
    flat[0] = batch * rows;
    int flat_rank = 1;
    for (int i = b + 1; i < xt.rank; i++)
        flat[flat_rank++] = xt.dim[i];
    ty_val base = ty_b_mul_s(g, ty_b_iota(g, ty_type_make(TY_I64, 2, pair), 0), (double)rows);
    ty_val at = ty_b_add(g, ty_b_cast(g, ty_b_reshape(g, index, 2, pair), TY_I64), base);
    ty_val y = ty_b_gather(g, ty_b_reshape(g, x, flat_rank, flat), ty_b_reshape(g, at, 1, &all), 0);
    for (int i = 0; i < it.rank; i++)
        dim[rank++] = it.dim[i];
    for (int i = b + 1; i < xt.rank; i++)
        dim[rank++] = xt.dim[i];
    return ty_b_reshape(g, y, rank, dim);
}

static void gather(tf_ctx *c, ty_val x, ty_val index, int axis, int64_t batch_dims)
{
    int rank_i = tf_rank(c, index);
    batch_dims += batch_dims < 0 ? rank_i : 0;
    index = tf_index(c, index, tf_dim(c, x, axis));
    if (index == TY_NONE)
        return;
    if (batch_dims <= 0) {
        tf_set(c, 0, ty_b_gather(c->g, x, index, axis));
        return;
    }
    if (batch_dims > axis || batch_dims > rank_i) {
        tf_fail_attr(c, "batch_dims", "must not be above axis %d", axis);
        return;
    }
    /* The axes between batch and axis come behind. */
    int rank = tf_rank(c, x), b = (int)batch_dims, between = axis - b, n = 0;
    int64_t perm[TY_MAX_RANK];
    for (int i = 0; i < b; i++)
        perm[n++] = i;
    perm[n++] = axis;
    for (int i = b; i < rank; i++)
        if (i != axis)
            perm[n++] = i;
    ty_val y = gather_batch(c, ty_b_transpose(c->g, x, perm), index, b);
    if (y == TY_NONE)
        return;
    int out = tf_rank(c, y), k = rank_i - b; /* [b.., k.., between.., rest..] -> [b.., between.., k.., rest..] */
    for (int i = 0; i < out; i++)
        perm[i] = i < b ? i : i < b + between ? i + k : i < b + between + k ? i - between : i;
    tf_set(c, 0, ty_b_transpose(c->g, y, perm));
}

/* Gather: x, index. GatherV2 (arg 1): also axis. Of ResourceGather x is a variable. */
void tf_op_gather(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int axis = 0;
    int64_t batch_dims = tf_attr_int(c->node, "batch_dims", 0);
    if (tf_rank(c, x) < 1) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have a dimension");
        return;
    }
    if (tf_in_rows(c, 1) != TY_NONE) {
        tf_set(c, 0, ty_b_get_rows(c->g, x, tf_in_rows(c, 1)));
        return;
    }
    if (c->row->arg ? !tf_axis_in(c, 2, tf_rank(c, x), &axis) : !tf_axis(c, batch_dims, tf_rank(c, x), &axis))
        return;
    gather(c, x, tf_in(c, 1), axis, batch_dims);
}

/* ---- indices that are tuples ---------------------------------------------------------------------------------------
 */

ty_val tf_tuple_rows(tf_ctx *c, const ty_type *table, ty_val index, int batch)
{
    ty_graph *g = c->g;
    int rank = tf_rank(c, index), k = rank > 0 ? (int)tf_dim(c, index, rank - 1) : -1;
    if (k < 0 || k > TY_MAX_RANK || batch >= rank || batch + k > table->rank) {
        tf_fail(c, TY_E_SHAPE, "indices of %d numbers do not fit %d dimensions", k, table->rank - batch);
        return TY_NONE;
    }
    int64_t tuples = product(tf_type(c, index)->dim, 0, rank - 1), each = tuples, dim[] = {tuples, k};
    for (int i = 0; i < batch; i++)
        each = table->dim[i] ? each / table->dim[i] : 0;
    ty_val flat = ty_b_reshape(g, ty_b_cast(g, index, TY_I64), 2, dim);
    ty_val row = ty_b_full(g, TY_I64, 1, &tuples, 0);
    if (batch) {
        int64_t pair[] = {each ? tuples / each : 0, each};
        row = ty_b_reshape(g, ty_b_iota(g, ty_type_make(TY_I64, 2, pair), 0), 1, &tuples);
    }
    for (int i = 0; i < k; i++) {
        ty_val part = ty_b_squeeze(g, ty_b_slice_axis(g, flat, 1, i, i + 1), 1);
        row = ty_b_add(g, ty_b_mul_s(g, row, (double)table->dim[batch + i]), part);
    }
    return row;
}

/* [rows, rest] for a table of which a tuple of k numbers names a row. */
static ty_val as_rows(tf_ctx *c, ty_val x, int k)
{
    const ty_type *t = tf_type(c, x);
    int64_t dim[] = {product(t->dim, 0, k), product(t->dim, k, t->rank)};
    return ty_b_reshape(c->g, x, 2, dim);
}

void tf_op_gather_nd(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), index = tf_in(c, 1);
    int64_t dim[TY_MAX_RANK], batch_dims = tf_attr_int(c->node, "batch_dims", 0);
    const ty_type xt = *tf_type(c, x), it = *tf_type(c, index);
    if (batch_dims < 0 || batch_dims > xt.rank) {
        tf_fail_attr(c, "batch_dims", "must lie in 0 to %d", xt.rank);
        return;
    }
    int b = (int)batch_dims, rank = 0;
    ty_val row = tf_tuple_rows(c, &xt, index, b);
    if (row == TY_NONE)
        return;
    int k = (int)it.dim[it.rank - 1];
    if (it.rank - 1 + xt.rank - b - k > TY_MAX_RANK) {
        tf_fail(c, TY_E_UNSUPPORTED, "the result has more than %d dimensions", TY_MAX_RANK);
        return;
    }
    for (int i = 0; i < it.rank - 1; i++)
        dim[rank++] = it.dim[i];
    for (int i = b + k; i < xt.rank; i++)
        dim[rank++] = xt.dim[i];
    tf_set(c, 0, ty_b_reshape(c->g, ty_b_gather(c->g, as_rows(c, x, b + k), row, 0), rank, dim));
}

/* x with the rows that tuples of indices name combined with updates. */
ty_val tf_scatter_tuples(tf_ctx *c, ty_val x, ty_val index, ty_val update, ty_combine how)
{
    const ty_type xt = *tf_type(c, x), it = *tf_type(c, index);
    ty_val row = tf_tuple_rows(c, &xt, index, 0);
    if (row == TY_NONE)
        return TY_NONE;
    int k = (int)it.dim[it.rank - 1];
    int64_t dim[] = {product(it.dim, 0, it.rank - 1), product(xt.dim, k, xt.rank)};
    update = ty_b_reshape(c->g, update, 2, dim);
    return ty_b_reshape(c->g, ty_b_scatter(c->g, as_rows(c, x, k), row, update, 0, how), xt.rank, xt.dim);
}

/* indices, updates, shape */
void tf_op_scatter_nd(tf_ctx *c)
{
    const int64_t *dim;
    int64_t n;
    if (!tf_const_ints(c, 2, &dim, &n) || !tf_shape_ok(c, n, dim))
        return;
    ty_val zeros = ty_b_full(c->g, tf_dtype_of(c, tf_in(c, 1)), (int)n, dim, 0);
    tf_set(c, 0, tf_scatter_tuples(c, zeros, tf_in(c, 0), tf_in(c, 1), TY_SUM));
}

/* tensor, indices, updates; arg: the ty_combine, -1: subtracted. */
void tf_op_tensor_scatter(tf_ctx *c)
{
    ty_val update = tf_in(c, 2);
    ty_combine how = c->row->arg < 0 ? TY_SUM : (ty_combine)c->row->arg;
    if (c->row->arg < 0)
        update = ty_b_neg(c->g, update);
    tf_set(c, 0, tf_scatter_tuples(c, tf_in(c, 0), tf_in(c, 1), update, how));
}

/* Rows that Unique found: each at most once. */
static ty_val scatter_unique(tf_ctx *c, ty_val x, ty_val rows, ty_val update, ty_combine how)
{
    ty_graph *g = c->g;
    ty_val old = ty_b_get_rows(g, x, rows);
    ty_val y = how == TY_SUM   ? ty_b_add(g, old, update)
               : how == TY_MAX ? ty_b_max(g, old, update)
               : how == TY_MIN ? ty_b_min(g, old, update)
               : how == TY_SET ? update
                               : ty_b_mul(g, old, update);
    return ty_b_set_rows(g, x, rows, y);
}

ty_val tf_scatter_rows(tf_ctx *c, ty_val x, int index, ty_val update, ty_combine how)
{
    ty_graph *g = c->g;
    const ty_type xt = *tf_type(c, x);
    ty_val rows = tf_in_rows(c, index), at = rows == TY_NONE ? tf_in(c, index) : rows;
    int64_t dim[TY_MAX_RANK] = {ty_type_elems(tf_type(c, at))};
    if (xt.rank < 1) {
        tf_fail(c, TY_E_SHAPE, "a number has no rows");
        return TY_NONE;
    }
    for (int i = 1; i < xt.rank; i++)
        dim[i] = xt.dim[i];
    update = tf_rank(c, update) == 0 ? ty_b_broadcast(g, update, xt.rank, dim) : ty_b_reshape(g, update, xt.rank, dim);
    if (rows != TY_NONE)
        return scatter_unique(c, x, rows, update, how);
    return ty_b_scatter(g, x, tf_index(c, ty_b_flatten(g, at), xt.dim[0]), update, 0, how);
}

/* ---- order ---------------------------------------------------------------------------------------------------------
 */

/* The different numbers of x, and for each of x which of them it is. How many they are depends on the data, so they are
 * known as a list of rows alone: in rising order (TensorFlow: as they occur), -1 behind them. */
void tf_op_unique(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = ty_b_cast(g, tf_in(c, 0), TY_I64), place;
    if (tf_rank(c, x) != 1 || tf_is_float(c, tf_in(c, 0)) || tf_dim(c, x, 0) < 1) {
        tf_fail_input(c, 0, TY_E_UNSUPPORTED, "must be a list of integers");
        return;
    }
    int64_t n = tf_dim(c, x, 0), lo = 1, hi = 0;
    ty_val sorted = ty_b_sort(g, x, 0, false, &place);
    if (sorted == TY_NONE)
        return;
    ty_val before = ty_b_slice_axis(g, sorted, 0, 0, n - 1), after = ty_b_slice_axis(g, sorted, 0, 1, n);
    ty_val fresh = ty_b_cast(g, ty_b_ne(g, before, after), TY_I64);
    ty_val number = ty_b_scan(g, ty_b_pad(g, fresh, &lo, &hi, 0), TY_SUM, 0, false, false);
    ty_val rows = ty_b_put(g, ty_b_full(g, TY_I64, 1, &n, -1), number, sorted, 0, TY_SET);
    ty_val which = ty_b_put(g, ty_b_full(g, TY_I64, 1, &n, 0), place, number, 0, TY_SET);
    tf_set_item(c, 0, &(tf_item){.kind = TF_ROWS, .val = rows, .variable = -1});
    tf_set(c, 1, ty_b_cast(g, which, tf_attr_dtype(c, "out_idx", TY_I32)));
}

/* arg 1: k is an input. */
void tf_op_top_k(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), index;
    int axis = tf_rank(c, x) - 1;
    int64_t k = tf_attr_int(c->node, "k", 0);
    if (c->row->arg && !tf_const_int(c, 1, &k))
        return;
    if (axis < 0 || k < 0 || k > tf_dim(c, x, axis)) {
        tf_fail_input(c, 0, TY_E_SHAPE, "has no %lld entries to choose", (long long)k);
        return;
    }
    ty_val sorted = ty_b_sort(c->g, x, axis, true, &index);
    if (sorted == TY_NONE)
        return;
    tf_set(c, 0, ty_b_slice_axis(c->g, sorted, axis, 0, k));
    index = ty_b_slice_axis(c->g, index, axis, 0, k);
    tf_set(c, 1, ty_b_cast(c->g, index, tf_attr_dtype(c, "index_type", TY_I32)));
}

/* indices, depth, on, off; an index outside hits nothing. */
void tf_op_one_hot(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val index = ty_b_cast(g, tf_in(c, 0), TY_I64);
    int64_t depth, dim[TY_MAX_RANK];
    int rank = tf_rank(c, index) + 1, axis;
    if (!tf_const_int(c, 1, &depth) || !tf_axis(c, tf_attr_int(c->node, "axis", -1), rank, &axis))
        return;
    for (int i = 0; i < rank && rank <= TY_MAX_RANK; i++)
        dim[i] = i == axis ? depth : tf_dim(c, index, i < axis ? i : i - 1);
    if (!tf_shape_ok(c, rank, dim))
        return;
    ty_val hit = ty_b_eq(g, ty_b_iota(g, ty_type_make(TY_I64, rank, dim), axis), ty_b_unsqueeze(g, index, axis));
    tf_set(c, 0, ty_b_select(g, hit, tf_in(c, 2), tf_in(c, 3)));
}

/* ---- places that are known -----------------------------------------------------------------------------------------
 */

/* Where a constant is not zero: [n, rank]. */
void tf_op_where(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const ty_type t = *tf_type(c, x);
    const double *v;
    int64_t n, count = 0, at = 0;
    if (!tf_val_floats(c, x, &v, &n)) {
        tf_fail_input(c, 0, TY_E_UNSUPPORTED, "depends on the data, so the size of the result would");
        tf_help(c, "write the model with tf.where(condition, a, b) and a mask");
        return;
    }
    for (int64_t i = 0; i < n; i++)
        count += v[i] != 0;
    int64_t *out = tf_alloc(c, (size_t)(count * t.rank), sizeof *out), dim[] = {count, t.rank};
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        if (v[i] == 0)
            continue;
        for (int axis = t.rank - 1; axis >= 0; axis--) {
            out[at * t.rank + axis] = rest % t.dim[axis];
            rest /= t.dim[axis];
        }
        at++;
    }
    tf_set(c, 0, ty_b_reshape(c->g, tf_ints(c, TY_I64, out, count * t.rank), 2, dim));
}

/* Where each row of the result comes from: of repeated numbers the last one wins. NULL (and failed). */
static int64_t *stitch_sources(tf_ctx *c, int n, int64_t *n_rows)
{
    int64_t largest = -1, at = 0, count;
    const int64_t *v;
    for (int i = 0; i < n; i++) {
        if (!tf_const_ints(c, i, &v, &count))
            return NULL;
        for (int64_t k = 0; k < count; k++)
            largest = v[k] > largest ? v[k] : largest;
        at += count;
    }
    if (largest >= 1 << 24) {
        tf_fail(c, TY_E_LIMIT, "row %lld is too far out", (long long)largest);
        return NULL;
    }
    int64_t *from = tf_alloc(c, (size_t)largest + 1, sizeof *from);
    at = 0;
    for (int i = 0; i < n; i++) {
        tf_const_ints(c, i, &v, &count);
        for (int64_t k = 0; k < count; k++, at++)
            if (v[k] >= 0)
                from[v[k]] = at;
    }
    *n_rows = largest + 1;
    return from;
}

/* indices.., data.. -> rows in the places that the indices name. */
void tf_op_dynamic_stitch(tf_ctx *c)
{
    ty_graph *g = c->g;
    int n = c->n_in / 2;
    int64_t n_rows = 0, *from = stitch_sources(c, n, &n_rows);
    ty_val *part = tf_alloc(c, (size_t)n, sizeof *part);
    if (!from)
        return;
    for (int i = 0; i < n; i++) {
        ty_val x = tf_in(c, n + i);
        int k = tf_rank(c, tf_in(c, i)), rank = 1;
        int64_t dim[TY_MAX_RANK] = {ty_type_elems(tf_type(c, tf_in(c, i)))};
        for (int axis = k; axis < tf_rank(c, x) && rank < TY_MAX_RANK; axis++)
            dim[rank++] = tf_dim(c, x, axis);
        part[i] = ty_b_reshape(g, x, rank, dim);
    }
    ty_val all = n == 1 ? part[0] : ty_b_concat(g, part, n, 0);
    tf_set(c, 0, ty_b_gather(g, all, tf_ints(c, TY_I64, from, n_rows), 0));
}

/* ---- sequences, bins ----------------------------------------------------------------------------------------------
 */

/* x, lengths [batch]: the first so many entries backwards, the others as they are. */
void tf_op_reverse_sequence(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), length = tf_in(c, 1);
    int rank = tf_rank(c, x), time, batch;
    if (!tf_axis(c, tf_attr_int(c->node, "seq_dim", 0), rank, &time) ||
        !tf_axis(c, tf_attr_int(c->node, "batch_dim", 0), rank, &batch))
        return;
    if (time == batch || tf_rank(c, length) != 1 || tf_dim(c, length, 0) != tf_dim(c, x, batch)) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must have a length for each of the batch");
        return;
    }
    int64_t dim[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[batch] = tf_dim(c, x, batch);
    ty_type type = *tf_type(c, x);
    type.dtype = TY_I64;
    ty_val at = ty_b_iota(g, type, time), n = ty_b_reshape(g, ty_b_cast(g, length, TY_I64), rank, dim);
    ty_val back = ty_b_sub(g, ty_b_add_s(g, n, -1), at);
    tf_set(c, 0, ty_b_take(g, x, ty_b_select(g, ty_b_lt(g, at, n), back, at), time));
}

/* Sums (or, of binary output, 1) by bin. ids [n] or [rows, n], the number of bins, weights or none. */
void tf_op_bincount(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val ids = tf_in(c, 0), weights = tf_in(c, 2);
    int64_t n, rows = 1, dim[2];
    if (!tf_const_int(c, 1, &n))
        return;
    int rank = tf_rank(c, ids);
    if (rank < 1 || rank > 2 || n < 0) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have one or two dimensions, of bins from 0 on");
        return;
    }
    bool is_weighted = ty_type_elems(tf_type(c, weights)) > 0,
         is_binary = tf_attr_bool(c->node, "binary_output", false);
    ty_dtype dtype = tf_dtype_of(c, weights);
    ids = ty_b_cast(g, ids, TY_I64);
    ty_val what = is_weighted && !is_binary ? weights : ty_b_full(g, dtype, rank, tf_type(c, ids)->dim, 1);
    ty_val is_beyond = ty_b_le(g, ty_b_full_like(g, ids, (double)n), ids);
    ids = ty_b_select(g, is_beyond, ty_b_full_like(g, ids, (double)n), ids);
    if (rank == 2) {
        rows = tf_dim(c, ids, 0);
        ty_val row = ty_b_iota(g, *tf_type(c, ids), 0);
        ids = ty_b_add(g, ids, ty_b_mul_s(g, row, (double)(n + 1)));
    }
    int64_t all = rows * (n + 1);
    ty_combine how = is_binary ? TY_MAX : TY_SUM;
    dim[0] = rows, dim[1] = n + 1;
    if (!tf_shape_ok(c, 2, dim))
        return;
    ty_val y = ty_b_scatter(g, ty_b_full(g, dtype, 1, &all, 0), ty_b_flatten(g, ids), ty_b_flatten(g, what), 0, how);
    y = ty_b_slice_axis(g, ty_b_reshape(g, y, 2, dim), 1, 0, n);
    tf_set(c, 0, rank == 2 ? y : ty_b_reshape(g, y, 1, &n));
}

/* How many of the numbers bounds [.., n] are below each of x [.., m], or not above it: [.., m]. */
static ty_val index_count_below(tf_ctx *c, ty_val bounds, ty_val x, bool or_equal)
{
    ty_graph *g = c->g;
    int rank = tf_rank(c, x);
    ty_val each = ty_b_unsqueeze(g, bounds, tf_rank(c, bounds) - 1), point = ty_b_unsqueeze(g, x, rank);
    ty_val below = or_equal ? ty_b_le(g, each, point) : ty_b_lt(g, each, point);
    return ty_b_sum(g, ty_b_cast(g, below, TY_I32), 1u << rank, false);
}

void tf_op_bucketize(tf_ctx *c)
{
    const double *edge;
    int64_t n;
    ty_val x = tf_in(c, 0);
    if (!tf_attr_floats(c->node, &c->imp->arena, "boundaries", &edge, &n) || n > 1 << 16 ||
        tf_rank(c, x) >= TY_MAX_RANK) {
        tf_fail_attr(c, "boundaries", "must be up to %d numbers", 1 << 16);
        return;
    }
    ty_dtype dtype = tf_dtype_of(c, x) == TY_F64 ? TY_F64 : TY_F32;
    tf_set(c, 0, index_count_below(c, tf_floats(c, dtype, 1, &n, edge), ty_b_cast(c->g, x, dtype), true));
}

/* Sorted numbers [rows, n], values [rows, m]; arg 1: the upper bound. */
void tf_op_bound(tf_ctx *c)
{
    ty_val sorted = tf_in(c, 0), x = tf_in(c, 1);
    if (tf_rank(c, sorted) != 2 || tf_rank(c, x) != 2 || tf_dim(c, sorted, 0) != tf_dim(c, x, 0)) {
        tf_fail_input(c, 0, TY_E_SHAPE, "and the values must be [rows, numbers]");
        return;
    }
    ty_val y = index_count_below(c, sorted, x, c->row->arg);
    tf_set(c, 0, ty_b_cast(c->g, y, tf_attr_dtype(c, "out_type", TY_I32)));
}

/* numbers, two bounds, how many bins of the same width: how many numbers each has, those outside in the first or last.
 */
void tf_op_histogram(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = ty_b_flatten(g, tf_in(c, 0)), range = tf_in(c, 1);
    int64_t n;
    if (!tf_const_int(c, 2, &n))
        return;
    if (tf_rank(c, range) != 1 || tf_dim(c, range, 0) != 2 || n < 1 || n > 1 << 24) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must be two numbers, and there must be a bin");
        return;
    }
    ty_val lo = ty_b_slice_axis(g, range, 0, 0, 1), hi = ty_b_slice_axis(g, range, 0, 1, 2);
    ty_val step = ty_b_div(g, ty_b_sub(g, hi, lo), ty_b_full_like(g, hi, (double)n));
    ty_val bin = ty_b_div(g, ty_b_sub(g, x, lo), step), last = ty_b_full_like(g, bin, (double)(n - 1));
    bin = ty_b_min(g, ty_b_max(g, ty_b_unary(g, TY_OP_FLOOR, bin), ty_b_full_like(g, bin, 0)), last);
    ty_dtype dtype = tf_attr_dtype(c, "dtype", TY_I32);
    ty_val one = ty_b_full(g, dtype, 1, tf_type(c, bin)->dim, 1);
    tf_set(c, 0, ty_b_scatter(g, ty_b_full(g, dtype, 1, &n, 0), ty_b_cast(g, bin, TY_I64), one, 0, TY_SUM));
}
