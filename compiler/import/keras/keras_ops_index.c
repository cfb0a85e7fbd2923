/* keras_ops_index.c - slices, gathers, scatters, one-hot rows, segments, and values of constant content. */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>
#include <string.h>

/* ---- x[key]
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct getter {
    keras_call *c;
    ty_val x;
    int at; /* axis of x that is next */
} getter;

/* Python's slice.indices: what start:stop:step means for a length. */
static int64_t slice_bound(const keras_arg *a, int64_t len, int64_t step, int64_t absent)
{
    if (a->kind != KERAS_INT)
        return absent;
    int64_t v = a->integer < 0 ? a->integer + len : a->integer, least = step < 0 ? -1 : 0,
            most = step < 0 ? len - 1 : len;
    return v < least ? least : v > most ? most : v;
}

static void get_slice(getter *s, const keras_arg *key)
{
    ty_graph *g = s->c->g;
    int64_t len = ty_b_dim(g, s->x, s->at), step = key->item[2].kind == KERAS_INT ? key->item[2].integer : 1;
    for (int i = 0; i < 3; i++)
        if ((key->item[i].kind != KERAS_NONE && key->item[i].kind != KERAS_INT) || step == 0) {
            keras_fail(s->c, TY_E_UNSUPPORTED, "GetItem: bounds of a slice must be whole numbers, its step not 0");
            return;
        }
    step = step < -len - 1 ? -len - 1 : step; /* a longer one comes to the same */
    int64_t start = slice_bound(&key->item[0], len, step, step < 0 ? len - 1 : 0);
    int64_t stop = slice_bound(&key->item[1], len, step, step < 0 ? -1 : len);
    if (step < 0) { /* the same elements from the other end, turned round */
        s->x = ty_b_reverse(g, s->x, 1u << s->at);
        start = len - 1 - start;
        stop = len - 1 - stop;
        step = -step;
    }
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK], by[TY_MAX_RANK];
    for (int i = 0; i < ty_b_rank(g, s->x); i++) {
        hi[i] = ty_b_dim(g, s->x, i);
        by[i] = 1;
    }
    lo[s->at] = start;
    hi[s->at] = stop < start ? start : stop;
    by[s->at] = step > len && len > 0 ? len : step;
    s->x = ty_b_slice(g, s->x, lo, hi, by);
    s->at++;
}

static void get_one(getter *s, const keras_arg *key)
{
    ty_graph *g = s->c->g;
    int64_t len = ty_b_dim(g, s->x, s->at);
    if (key->kind == KERAS_TENSOR && ty_b_rank(g, key->val) == 0) {
        s->x = ty_b_gather(g, s->x, keras_op_index(s->c, key->val, len), s->at);
        return;
    }
    int64_t i = key->kind == KERAS_INT ? key->integer : len;
    if (i < -len || i >= len) {
        keras_fail(s->c, TY_E_UNSUPPORTED,
                   "GetItem: expected a number within the %lld elements of axis %d, a slice, None or"
                   " an ellipsis",
                   (long long)len, s->at);
        return;
    }
    i = i < 0 ? i + len : i;
    s->x = ty_b_squeeze(g, ty_b_slice_axis(g, s->x, s->at, i, i + 1), s->at);
}

void keras_op_get_item(keras_call *c)
{
    getter s = {.c = c, .x = keras_op_in(c, 0, "x")};
    const keras_arg *key = keras_argument(c, 1, "key");
    if (s.x == TY_NONE)
        return;
    const keras_arg none = {.kind = KERAS_NONE}, *item = key && key->kind == KERAS_LIST ? key->item : key ? key : &none;
    int n = key && key->kind == KERAS_LIST ? key->n_items : 1, takes = 0;
    for (int i = 0; i < n; i++)
        takes += item[i].kind != KERAS_NONE && item[i].kind != KERAS_ELLIPSIS;
    if (takes > ty_b_rank(c->g, s.x)) {
        keras_fail(c, TY_E_SHAPE, "GetItem: %d indices for %d axes", takes, ty_b_rank(c->g, s.x));
        return;
    }
    for (int i = 0; i < n && !c->failed && s.x != TY_NONE; i++) {
        if (item[i].kind == KERAS_ELLIPSIS) {
            s.at = ty_b_rank(c->g, s.x) - takes;
        } else if (item[i].kind == KERAS_NONE) {
            s.x = ty_b_unsqueeze(c->g, s.x, s.at++);
        } else {
            takes--;
            if (item[i].kind == KERAS_SLICE)
                get_slice(&s, &item[i]);
            else
                get_one(&s, &item[i]);
        }
    }
    keras_set(c, 0, s.x);
}

/* ---- by tensors of indices
 * ------------------------------------------------------------------------------------------- */

void keras_op_take(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x"), at = keras_op_in(c, 1, "indices");
    int axis;
    if (x == TY_NONE || at == TY_NONE || !keras_op_axis(c, "axis", 0, ty_b_rank(c->g, x), &axis))
        return;
    if (axis < 0) {
        x = ty_b_flatten(c->g, x);
        axis = 0;
    }
    keras_set(c, 0, ty_b_gather(c->g, x, keras_op_index(c, at, ty_b_dim(c->g, x, axis)), axis));
}

void keras_op_take_along_axis(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x"), at = keras_op_in(c, 1, "indices");
    int axis;
    if (x == TY_NONE || at == TY_NONE || !keras_op_axis(c, "axis", 0, ty_b_rank(g, x), &axis))
        return;
    if (axis < 0) {
        x = ty_b_flatten(g, x);
        axis = 0;
    }
    at = keras_op_index(c, at, ty_b_dim(g, x, axis));
    const ty_type of_x = *ty_graph_type(g, x), of_at = *ty_graph_type(g, at);
    if (of_x.rank != of_at.rank) {
        keras_fail(c, TY_E_SHAPE, "TakeAlongAxis: %d axes of indices for %d of values", of_at.rank, of_x.rank);
        return;
    }
    int64_t wide_x[TY_MAX_RANK], wide_at[TY_MAX_RANK];
    for (int i = 0; i < of_x.rank; i++) {
        int64_t most = of_x.dim[i] == 1 ? of_at.dim[i] : of_x.dim[i];
        wide_x[i] = i == axis ? of_x.dim[i] : most;
        wide_at[i] = i == axis ? of_at.dim[i] : most;
    }
    x = ty_b_broadcast(g, x, of_x.rank, wide_x);
    keras_set(c, 0, ty_b_take(g, x, ty_b_broadcast(g, at, of_x.rank, wide_at), axis));
}

ty_val keras_one_hot(ty_graph *g, ty_val x, int64_t n, int axis)
{
    int rank = ty_b_rank(g, x);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i <= rank; i++)
        dim[i] = i == axis ? n : 1;
    ty_val wide = ty_b_unsqueeze(g, ty_b_cast(g, x, TY_I64), axis);
    return ty_b_eq(g, wide, ty_b_iota(g, ty_type_make(TY_I64, rank + 1, dim), axis));
}

void keras_op_one_hot(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    int rank = ty_b_rank(g, x), axis;
    int64_t n = keras_int(c, "num_classes", 0);
    if (x == TY_NONE || c->failed || !keras_axis(c, keras_int(c, "axis", -1), rank + 1, &axis))
        return;
    if (n < 1 || rank == TY_MAX_RANK) {
        keras_fail_key(c, "num_classes", "must be at least 1");
        return;
    }
    keras_set(c, 0, ty_b_cast(g, keras_one_hot(g, x, n, axis), keras_op_dtype(c, "dtype", TY_F32)));
}

/* ---- segments, scatters
 * ---------------------------------------------------------------------------------------------- */

/* What rows that nothing is put into have. */
static double segment_start(ty_combine how, ty_dtype dtype)
{
    bool is_float = ty_dtype_is_float(dtype);
    if (how == TY_MAX)
        return is_float ? -3.4028234663852886e38 : dtype == TY_I64 ? -9223372036854775808.0 : -2147483648.0;
    if (how == TY_MIN)
        return is_float ? 3.4028234663852886e38 : dtype == TY_I64 ? 9223372036854775807.0 : 2147483647.0;
    return how == TY_PROD ? 1 : 0;
}

/* arg: ty_combine. Rows of data are put into row segment_ids[i] of num_segments; ids outside are left out. */
void keras_op_segment(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "data"), ids = keras_op_in(c, 1, "segment_ids");
    int64_t n = keras_int(c, "num_segments", 0), dim[TY_MAX_RANK];
    ty_combine how = (ty_combine)c->layer->op->arg;
    if (x == TY_NONE || ids == TY_NONE || c->failed)
        return;
    const ty_type t = *ty_graph_type(g, x);
    if (n < 1 || t.rank < 1 || ty_b_rank(g, ids) != 1) {
        keras_fail(c, TY_E_UNSUPPORTED,
                   "%s: expected num_segments and ids of one axis: how many rows there are must be known",
                   c->layer->class_name);
        return;
    }
    memcpy(dim, t.dim, sizeof dim);
    dim[0] = n + 1; /* the last row takes what belongs nowhere */
    ids = ty_b_cast(g, ids, TY_I64);
    ty_val low = ty_b_lt(g, ids, ty_b_full_like(g, ids, 0)), last = ty_b_full_like(g, ids, (double)n);
    ids = ty_b_select(g, ty_b_binary(g, TY_OP_OR, low, ty_b_lt(g, last, ids)), last, ids);
    ty_val rows = ty_b_full(g, (ty_dtype)t.dtype, t.rank, dim, segment_start(how, (ty_dtype)t.dtype));
    keras_set(c, 0, ty_b_slice_axis(g, ty_b_scatter(g, rows, ids, x, 0, how), 0, 0, n));
}

void keras_op_slice(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "inputs");
    const keras_arg *start = keras_argument(c, 1, "start_indices");
    int rank = ty_b_rank(g, x);
    int64_t size[TY_MAX_RANK], lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    if (x == TY_NONE)
        return;
    if (keras_list(c, "shape", TY_MAX_RANK, size) != rank || !start || start->kind != KERAS_LIST ||
        start->n_items != rank) {
        if (!c->failed)
            keras_fail(c, TY_E_UNSUPPORTED, "Slice: expected %d sizes and as many numbers to begin at", rank);
        return;
    }
    for (int i = 0; i < rank; i++) {
        int64_t len = ty_b_dim(g, x, i);
        lo[i] = start->item[i].kind == KERAS_INT ? start->item[i].integer : -1;
        hi[i] = size[i] < 0 ? len : lo[i] + size[i];
        if (lo[i] < 0 || hi[i] < lo[i] || hi[i] > len) {
            keras_fail(c, TY_E_UNSUPPORTED, "Slice: axis %d has %lld elements; what is cut must be numbers within them",
                       i, (long long)len);
            return;
        }
    }
    keras_set(c, 0, ty_b_slice(g, x, lo, hi, NULL));
}

/* ---- constants
 * -------------------------------------------------------------------------------------------------------- */

/* OnesLike, ZerosLike; arg: the number. */
void keras_op_like(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    keras_set(c, 0, ty_b_full(c->g, keras_op_dtype(c, "dtype", (ty_dtype)t.dtype), t.rank, t.dim, c->layer->op->arg));
}

void keras_op_full_like(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x"), fill = keras_op_in(c, 1, "fill_value");
    if (x == TY_NONE || fill == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    fill = ty_b_cast(c->g, fill, keras_op_dtype(c, "dtype", (ty_dtype)t.dtype));
    keras_set(c, 0, ty_b_broadcast(c->g, fill, t.rank, t.dim));
}

/* arg 1: the number of elements, 0: of axes; as int32. */
void keras_op_count(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x == TY_NONE)
        return;
    const ty_type *t = ty_graph_type(c->g, x);
    keras_set(c, 0, ty_b_scalar(c->g, TY_I32, c->layer->op->arg ? (double)ty_type_elems(t) : t->rank));
}
