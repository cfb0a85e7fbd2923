/* tf_ops_shape.c - movement and shape arithmetic. Shapes are known while importing, so that Shape is a constant and
 * what is computed from it folds. */
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>
#include <string.h>

enum { MAX_PARTS = 4096 };

/* ---- shapes -------------------------------------------------------------------------------------------------------
 */

/* Of ShapeN: one an input. */
void tf_op_shape(tf_ctx *c)
{
    ty_dtype dtype = tf_attr_dtype(c, "out_type", TY_I32);
    for (int i = 0; i < c->n_in; i++) {
        ty_val rows = tf_in_rows(c, i);
        ty_val imag, x = tf_in_parts(c, i, &imag);
        const ty_type *t = tf_type(c, rows != TY_NONE ? rows : x);
        tf_set(c, i, tf_ints(c, dtype, t->dim, t->rank));
    }
}

void tf_op_rank(tf_ctx *c)
{
    tf_set(c, 0, ty_b_scalar(c->g, TY_I32, tf_rank(c, tf_in(c, 0))));
}

void tf_op_size(tf_ctx *c)
{
    ty_dtype dtype = tf_attr_dtype(c, "out_type", TY_I32);
    tf_set(c, 0, ty_b_scalar(c->g, dtype, (double)ty_type_elems(tf_type(c, tf_in(c, 0)))));
}

/* Dims of a constant input as a shape. */
static bool shape_in(tf_ctx *c, int i, const int64_t **dim, int *rank)
{
    int64_t n;
    if (!tf_const_ints(c, i, dim, &n))
        return false;
    *rank = (int)n;
    return true;
}

void tf_op_reshape(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *wanted;
    int64_t dim[TY_MAX_RANK], known = 1, n = ty_type_elems(tf_type(c, x));
    int rank, open = -1;
    if (!shape_in(c, 1, &wanted, &rank))
        return;
    for (int i = 0; i < rank && i < TY_MAX_RANK; i++) {
        dim[i] = wanted[i];
        if (wanted[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, wanted[i], &known))
            known = 0; /* refused below: more than x can have */
    }
    if (open >= 0 && rank <= TY_MAX_RANK)
        dim[open] = known > 0 ? n / known : 0;
    if (!tf_shape_ok(c, rank, rank > TY_MAX_RANK ? NULL : dim))
        return;
    if (ty_dims_elems_checked(rank, dim, 1) != n) {
        tf_fail_input(c, 0, TY_E_SHAPE, "has %lld elements, the new shape another number", (long long)n);
        return;
    }
    tf_set(c, 0, ty_b_reshape(c->g, x, rank, dim));
}

void tf_op_expand_dims(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int axis;
    if (tf_axis_in(c, 1, tf_rank(c, x) + 1, &axis))
        tf_set(c, 0, ty_b_unsqueeze(c->g, x, axis));
}

void tf_op_squeeze(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *axes = NULL;
    int64_t n = 0, dim[TY_MAX_RANK];
    uint32_t mask = 0;
    int rank = 0;
    if (!tf_attr_ints(c->node, "squeeze_dims", &axes, &n) || n == 0)
        tf_attr_ints(c->node, "axis", &axes, &n);
    if (!tf_axes(c, axes, n, tf_rank(c, x), &mask))
        return;
    for (int i = 0; i < tf_rank(c, x); i++) {
        if (n ? mask >> i & 1 : tf_dim(c, x, i) == 1) {
            if (tf_dim(c, x, i) != 1)
                tf_fail_input(c, 0, TY_E_SHAPE, "has more than one entry along axis %d", i);
            continue;
        }
        dim[rank++] = tf_dim(c, x, i);
    }
    tf_set(c, 0, ty_b_reshape(c->g, x, rank, dim));
}

void tf_op_transpose(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *given;
    int64_t perm[TY_MAX_RANK], n;
    uint32_t mask;
    if (!tf_const_ints(c, 1, &given, &n))
        return;
    if (n != tf_rank(c, x) || !tf_axes(c, given, n, (int)n, &mask) || mask + 1 != 1u << n) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must name each of %d axes once", tf_rank(c, x));
        return;
    }
    for (int i = 0; i < n; i++)
        perm[i] = given[i] < 0 ? given[i] + n : given[i];
    tf_set(c, 0, ty_b_transpose(c->g, x, perm));
}

void tf_op_invert_permutation(tf_ctx *c)
{
    const int64_t *p;
    int64_t n;
    if (!tf_const_ints(c, 0, &p, &n))
        return;
    int64_t *inverse = tf_alloc(c, (size_t)n, sizeof *inverse);
    for (int64_t i = 0; i < n; i++)
        if (p[i] >= 0 && p[i] < n)
            inverse[p[i]] = i;
    tf_set(c, 0, tf_ints(c, tf_dtype_of(c, tf_in(c, 0)), inverse, n));
}

/* ---- joining and cutting ------------------------------------------------------------------------------------------
 */

void tf_op_pack(tf_ctx *c)
{
    ty_val *part = tf_alloc(c, (size_t)c->n_in, sizeof *part);
    int axis;
    if (!tf_axis(c, tf_attr_int(c->node, "axis", 0), tf_rank(c, tf_in(c, 0)) + 1, &axis))
        return;
    for (int i = 0; i < c->n_in; i++)
        part[i] = ty_b_unsqueeze(c->g, tf_in(c, i), axis);
    tf_set(c, 0, c->n_in == 1 ? part[0] : ty_b_concat_many(c->g, part, c->n_in, axis));
}

void tf_op_unpack(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int axis;
    if (!tf_axis(c, tf_attr_int(c->node, "axis", 0), tf_rank(c, x), &axis))
        return;
    int64_t n = tf_attr_int(c->node, "num", tf_dim(c, x, axis));
    if (tf_dim(c, x, axis) != n) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have %lld entries along axis %d", (long long)n, axis);
        return;
    }
    for (int i = 0; i < c->n_out && i < n; i++)
        tf_set(c, i, ty_b_squeeze(c->g, ty_b_slice_axis(c->g, x, axis, i, i + 1), axis));
}

/* arg 1: Concat, whose axis comes first. Parts without elements may have another rank. */
void tf_op_concat(tf_ctx *c)
{
    int first = c->row->arg, at = c->row->arg ? 0 : c->n_in - 1, axis, n = 0;
    ty_val *part = tf_alloc(c, (size_t)c->n_in, sizeof *part);
    for (int i = first; i < first + c->n_in - 1; i++)
        part[n++] = tf_in(c, i);
    if (n && tf_axis_in(c, at, tf_rank(c, part[0]), &axis))
        tf_set(c, 0, n == 1 ? part[0] : ty_b_concat_many(c->g, part, n, axis));
}

/* Split: axis, value. SplitV (arg 1): value, sizes, axis; one size may be -1. */
void tf_op_split(tf_ctx *c)
{
    ty_val x = tf_in(c, c->row->arg ? 0 : 1);
    int axis;
    const int64_t *sizes = NULL;
    int64_t n = tf_attr_int(c->node, "num_split", 1), n_sizes = n, at = 0, known = 0;
    if (!tf_axis_in(c, c->row->arg ? 2 : 0, tf_rank(c, x), &axis) ||
        (c->row->arg && !tf_const_ints(c, 1, &sizes, &n_sizes)))
        return;
    int64_t all = tf_dim(c, x, axis);
    for (int64_t i = 0; sizes && i < n_sizes && known <= all; i++)
        known = sizes[i] > all ? all + 1 : known + (sizes[i] > 0 ? sizes[i] : 0);
    if (n < 1 || n > MAX_PARTS || n_sizes != n || (!sizes && all % n) || known > all) {
        tf_fail(c, TY_E_SHAPE, "%lld entries along axis %d do not make %lld parts", (long long)all, axis, (long long)n);
        return;
    }
    for (int i = 0; i < n; i++) {
        int64_t size = !sizes ? all / n : sizes[i] < 0 ? all - known : sizes[i];
        if (at + size > all) {
            tf_fail_input(c, 1, TY_E_SHAPE, "names more than %lld entries", (long long)all);
            return;
        }
        tf_set(c, i, ty_b_slice_axis(c->g, x, axis, at, at + size));
        at += size;
    }
}

void tf_op_slice(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *begin, *size;
    int64_t n, m, hi[TY_MAX_RANK];
    if (!tf_const_ints(c, 1, &begin, &n) || !tf_const_ints(c, 2, &size, &m))
        return;
    if (n != tf_rank(c, x) || m != n) {
        tf_fail(c, TY_E_SHAPE, "begin and size must have %d entries", tf_rank(c, x));
        return;
    }
    for (int i = 0; i < n; i++) {
        int64_t all = tf_dim(c, x, i);
        if (begin[i] < 0 || begin[i] > all || size[i] > all - begin[i]) {
            tf_fail_input(c, 0, TY_E_SHAPE, "has no %lld entries from %lld on along axis %d", (long long)size[i],
                          (long long)begin[i], i);
            return;
        }
        hi[i] = size[i] < 0 ? all : begin[i] + size[i];
    }
    tf_set(c, 0, ty_b_slice(c->g, x, begin, hi, NULL));
}

/* ---- StridedSlice -------------------------------------------------------------------------------------------------
 */

/* What begin, end, strides and the five masks come to: a slice with steps, axes turned round, and a shape. */
typedef struct strided {
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK], step[TY_MAX_RANK]; /* of the slice; step >= 1 */
    uint32_t reversed;                                           /* axes that are turned round behind the slice */
    int64_t dim[TY_MAX_RANK];                                    /* of the result */
    int rank;
} strided;

typedef struct strided_spec {
    const int64_t *begin, *end, *step;
    int64_t n, masks[5]; /* begin, end, ellipsis, new axis, shrink */
} strided_spec;

static bool strided_read(tf_ctx *c, strided_spec *s, int first)
{
    static const char *const names[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
    int64_t n[3];
    if (!tf_const_ints(c, first, &s->begin, &n[0]) || !tf_const_ints(c, first + 1, &s->end, &n[1]) ||
        !tf_const_ints(c, first + 2, &s->step, &n[2]))
        return false;
    s->n = n[0];
    for (int i = 0; i < 5; i++)
        s->masks[i] = tf_attr_int(c->node, names[i], 0);
    if (n[0] != n[1] || n[0] != n[2] || n[0] > 2 * TY_MAX_RANK)
        tf_fail(c, TY_E_SHAPE, "begin, end and strides differ in length");
    return !c->failed;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* One entry of the lists on one axis of x of n entries. False if it is outside. */
static bool strided_axis(const strided_spec *s, int64_t i, int64_t n, int axis, strided *out)
{
    int64_t step = clamp(s->step[i], -n - 1, n + 1); /* a longer one comes to the same */
    int64_t bit = (int64_t)1 << i, begin = clamp(s->begin[i], -n - 1, n), end = clamp(s->end[i], -n - 1, n);
    begin += begin < 0 ? n : 0;
    end += end < 0 ? n : 0;
    if (s->masks[4] & bit) { /* one entry, and the axis goes */
        out->lo[axis] = begin;
        out->hi[axis] = begin + 1;
        out->step[axis] = 1;
        return begin >= 0 && begin < n;
    }
    if (step > 0) {
        begin = s->masks[0] & bit ? 0 : clamp(begin, 0, n);
        end = s->masks[1] & bit ? n : clamp(end, 0, n);
        out->lo[axis] = begin;
        out->hi[axis] = end > begin ? end : begin;
        out->step[axis] = step;
    } else if (step < 0) {
        begin = s->masks[0] & bit ? n - 1 : clamp(begin, -1, n - 1);
        end = s->masks[1] & bit ? -1 : clamp(end, -1, n - 1);
        int64_t count = begin > end ? (begin - end - step - 1) / -step : 0;
        out->hi[axis] = begin + 1;
        out->lo[axis] = count ? begin + (count - 1) * step : begin + 1;
        out->step[axis] = -step;
        out->reversed |= 1u << axis;
    }
    return step != 0;
}

static int64_t strided_count(const strided *s, int axis)
{
    return (s->hi[axis] - s->lo[axis] + s->step[axis] - 1) / s->step[axis];
}

static void strided_keep(strided *s, int64_t dim)
{
    if (s->rank < TY_MAX_RANK)
        s->dim[s->rank] = dim;
    s->rank++;
}

static void strided_whole(strided *s, const ty_type *x, int axis)
{
    s->lo[axis] = 0;
    s->hi[axis] = x->dim[axis];
    s->step[axis] = 1;
    strided_keep(s, x->dim[axis]);
}

static bool strided_resolve(tf_ctx *c, const strided_spec *s, const ty_type *x, strided *out)
{
    int axis = 0, used = 0;
    bool has_dots = false;
    *out = (strided){0};
    for (int64_t i = 0; i < s->n; i++)
        used += !(s->masks[2] >> i & 1) && !(s->masks[3] >> i & 1);
    for (int64_t i = 0; i < s->n; i++) {
        if (s->masks[2] >> i & 1) {
            for (int k = used; k < x->rank && !has_dots; k++)
                strided_whole(out, x, axis++);
            has_dots = true;
        } else if (s->masks[3] >> i & 1) {
            strided_keep(out, 1);
        } else if (axis >= x->rank || !strided_axis(s, i, x->dim[axis], axis, out)) {
            tf_fail(c, TY_E_SHAPE, "entry %lld is outside what it cuts", (long long)i);
            return false;
        } else {
            if (!(s->masks[4] >> i & 1))
                strided_keep(out, strided_count(out, axis));
            axis++;
        }
    }
    while (axis < x->rank)
        strided_whole(out, x, axis++);
    return tf_shape_ok(c, out->rank, out->dim);
}

void tf_op_strided_slice(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    strided_spec spec;
    strided s;
    if (!strided_read(c, &spec, 1) || !strided_resolve(c, &spec, tf_type(c, x), &s))
        return;
    ty_val y = ty_b_slice(c->g, x, s.lo, s.hi, s.step);
    if (s.reversed)
        y = ty_b_reverse(c->g, y, s.reversed);
    tf_set(c, 0, ty_b_reshape(c->g, y, s.rank, s.dim));
}

/* dy spread out with zeros between, where the slice took it from. */
static ty_val spread(tf_ctx *c, ty_val dy, int axis, int64_t lo, int64_t step, int64_t n)
{
    ty_graph *g = c->g;
    int64_t count = tf_dim(c, dy, axis), pad_lo[TY_MAX_RANK + 1] = {0}, pad_hi[TY_MAX_RANK + 1] = {0};
    if (step > 1 && count > 0) {
        int rank = tf_rank(c, dy);
        int64_t dim[TY_MAX_RANK + 1];
        ty_val wide = ty_b_unsqueeze(g, dy, axis + 1);
        pad_hi[axis + 1] = step - 1;
        wide = ty_b_pad(g, wide, pad_lo, pad_hi, 0);
        for (int i = 0; i < rank; i++)
            dim[i] = i == axis ? count * step : tf_dim(c, dy, i);
        dy = ty_b_reshape(g, wide, rank, dim);
        dy = ty_b_slice_axis(g, dy, axis, 0, (count - 1) * step + 1);
        count = (count - 1) * step + 1;
        pad_hi[axis + 1] = 0;
    }
    pad_lo[axis] = lo;
    pad_hi[axis] = n - lo - count;
    return ty_b_pad(g, dy, pad_lo, pad_hi, 0);
}

/* The same along all axes of a slice of [dim..]. */
static ty_val spread_all(tf_ctx *c, ty_val y, const strided *s, int rank, const int64_t *dim)
{
    int64_t full[TY_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        full[i] = strided_count(s, i);
    y = ty_b_reshape(c->g, y, rank, full);
    if (s->reversed)
        y = ty_b_reverse(c->g, y, s->reversed);
    for (int i = 0; i < rank && y != TY_NONE; i++)
        y = spread(c, y, i, s->lo[i], s->step[i], dim[i]);
    return y;
}

/* shape, begin, end, strides, dy */
void tf_op_strided_slice_grad(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    strided_spec spec;
    strided s;
    if (!shape_in(c, 0, &dim, &rank) || !tf_shape_ok(c, rank, dim))
        return;
    ty_type x = ty_type_make(tf_dtype_of(c, tf_in(c, 4)), rank, dim);
    if (!strided_read(c, &spec, 1) || !strided_resolve(c, &spec, &x, &s))
        return;
    tf_set(c, 0, spread_all(c, tf_in(c, 4), &s, rank, dim));
}

/* x, begin, end, strides, value: x with that in the place of the slice. arg 1: x is a variable, which is assigned. */
void tf_op_strided_slice_assign(tf_ctx *c)
{
    ty_graph *g = c->g;
    strided_spec spec;
    strided s;
    int v = c->row->arg ? tf_in_variable(c, 0) : -1;
    if (c->failed)
        return;
    ty_val x = v >= 0 ? tf_present(c->imp, v) : tf_in(c, 0), value = tf_in(c, 4);
    const ty_type t = *tf_type(c, x);
    if (!strided_read(c, &spec, 1) || !strided_resolve(c, &spec, &t, &s))
        return;
    value = ty_b_broadcast(g, value, s.rank, s.dim);
    ty_val is_there = ty_b_cast(g, spread_all(c, ty_b_full(g, TY_F32, s.rank, s.dim, 1), &s, t.rank, t.dim), TY_BOOL);
    ty_val y = ty_b_select(g, is_there, spread_all(c, value, &s, t.rank, t.dim), x);
    if (v >= 0)
        tf_assign(c, v, y);
    if (v >= 0)
        tf_set_item(c, 0, &c->in[0]);
    else
        tf_set(c, 0, y);
}

/* ---- filling ------------------------------------------------------------------------------------------------------
 */

void tf_op_fill(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (shape_in(c, 0, &dim, &rank) && tf_shape_ok(c, rank, dim))
        tf_set(c, 0, ty_b_broadcast(c->g, tf_in(c, 1), rank, dim));
}

void tf_op_broadcast_to(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (shape_in(c, 1, &dim, &rank) && tf_shape_ok(c, rank, dim))
        tf_set(c, 0, ty_b_broadcast(c->g, tf_in(c, 0), rank, dim));
}

/* arg: the number. */
void tf_op_like(tf_ctx *c)
{
    tf_set(c, 0, ty_b_full_like(c->g, tf_in(c, 0), c->row->arg));
}

void tf_op_range(tf_ctx *c)
{
    const double *v[3];
    int64_t n[3];
    ty_dtype dtype = tf_dtype_of(c, tf_in(c, 0));
    for (int i = 0; i < 3; i++)
        if (!tf_const_floats(c, i, &v[i], &n[i]))
            return;
    double from = v[0][0], to = v[1][0], by = v[2][0], count = ceil((to - from) / by);
    bool exact = ty_dtype_is_float(dtype) || (fabs(from) < 0x1p53 && fabs(to) < 0x1p53 && fabs(by) < 0x1p53);
    if (n[0] != 1 || n[1] != 1 || n[2] != 1 || by == 0 || !(count < 1 << 24) || !exact) {
        tf_fail(c, TY_E_SHAPE, "from %g to %g by %g is no range that a step holds", from, to, by);
        return;
    }
    int64_t entries = count > 0 ? (int64_t)count : 0;
    if (ty_dtype_is_float(dtype)) {
        double *f = tf_alloc(c, (size_t)entries, sizeof *f);
        for (int64_t i = 0; i < entries; i++)
            f[i] = from + (double)i * by;
        tf_set(c, 0, tf_floats(c, dtype, 1, &entries, f));
        return;
    }
    int64_t *k = tf_alloc(c, (size_t)entries, sizeof *k);
    for (int64_t i = 0; i < entries; i++)
        k[i] = (int64_t)from + i * (int64_t)by;
    tf_set(c, 0, tf_ints(c, dtype, k, entries));
}

void tf_op_lin_space(tf_ctx *c)
{
    double from, to;
    int64_t n;
    if (!tf_const_float(c, 0, &from) || !tf_const_float(c, 1, &to) || !tf_const_int(c, 2, &n))
        return;
    if (n < 1 || n > 1 << 24) {
        tf_fail_input(c, 2, TY_E_SHAPE, "must lie in 1 to %d", 1 << 24);
        return;
    }
    double *f = tf_alloc(c, (size_t)n, sizeof *f);
    for (int64_t i = 0; i < n; i++)
        f[i] = n == 1 ? from : from + (to - from) * (double)i / (double)(n - 1);
    tf_set(c, 0, tf_floats(c, tf_dtype_of(c, tf_in(c, 0)), 1, &n, f));
}

void tf_op_tile(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *times;
    int64_t n, wide[2 * TY_MAX_RANK], dim[TY_MAX_RANK];
    int rank = tf_rank(c, x), at = 0;
    if (!tf_const_ints(c, 1, &times, &n))
        return;
    if (n != rank) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must have %d entries", rank);
        return;
    }
    ty_val y = x;
    int64_t tall[2 * TY_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(tf_dim(c, x, i), times[i], &dim[i]))
            dim[i] = -1;                             /* refused below */
        if (times[i] != 1 && tf_dim(c, x, i) != 1) { /* an axis in front that is stretched */
            wide[at] = 1;
            tall[at++] = times[i];
        }
        wide[at] = tf_dim(c, x, i);
        tall[at++] = tf_dim(c, x, i) == 1 ? times[i] : tf_dim(c, x, i);
    }
    if (!tf_shape_ok(c, rank, dim) || !tf_shape_ok(c, at, tall))
        return;
    y = ty_b_broadcast(c->g, ty_b_reshape(c->g, y, at, wide), at, tall);
    tf_set(c, 0, ty_b_reshape(c->g, y, rank, dim));
}

/* arg 1: axes are an input, counted from the end if negative; 0: a bool for each axis. */
void tf_op_reverse(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *v;
    int64_t n;
    uint32_t mask = 0;
    if (!tf_const_ints(c, 1, &v, &n))
        return;
    if (c->row->arg && !tf_axes(c, v, n, tf_rank(c, x), &mask))
        return;
    for (int64_t i = 0; i < n && i < TY_MAX_RANK && !c->row->arg; i++)
        mask |= (uint32_t)(v[i] != 0) << i;
    tf_set(c, 0, mask ? ty_b_reverse(c->g, x, mask) : x);
}

void tf_op_roll(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const int64_t *shift, *axes;
    int64_t n, m;
    if (!tf_const_ints(c, 1, &shift, &n) || !tf_const_ints(c, 2, &axes, &m))
        return;
    for (int64_t i = 0; i < n && i < m; i++) {
        int axis;
        if (!tf_axis(c, axes[i], tf_rank(c, x), &axis))
            return;
        int64_t size = tf_dim(c, x, axis), at = size ? (size - shift[i] % size) % size : 0;
        if (at == 0)
            continue;
        ty_val part[] = {ty_b_slice_axis(c->g, x, axis, at, size), ty_b_slice_axis(c->g, x, axis, 0, at)};
        x = ty_b_concat(c->g, part, 2, axis);
    }
    tf_set(c, 0, x);
}

/* ---- the gradient of broadcasting ---------------------------------------------------------------------------------
 */

/* r0, r1: axes of the joint shape along which each operand was stretched. */
void tf_op_broadcast_gradient_args(tf_ctx *c)
{
    const int64_t *s[2];
    int64_t n[2], rank;
    if (!tf_const_ints(c, 0, &s[0], &n[0]) || !tf_const_ints(c, 1, &s[1], &n[1]))
        return;
    rank = n[0] > n[1] ? n[0] : n[1];
    for (int k = 0; k < 2; k++) {
        int64_t axes[TY_MAX_RANK], found = 0;
        for (int64_t i = 0; i < rank && i < TY_MAX_RANK; i++) {
            int64_t own = i - (rank - n[k]);
            if (own < 0 || s[k][own] == 1)
                axes[found++] = i;
        }
        tf_set(c, k, tf_ints(c, tf_dtype_of(c, tf_in(c, k)), axes, found));
    }
}

void tf_op_broadcast_args(tf_ctx *c)
{
    const int64_t *s[2];
    int64_t n[2], dim[TY_MAX_RANK];
    if (!tf_const_ints(c, 0, &s[0], &n[0]) || !tf_const_ints(c, 1, &s[1], &n[1]))
        return;
    int64_t rank = n[0] > n[1] ? n[0] : n[1];
    if (rank > TY_MAX_RANK) {
        tf_fail(c, TY_E_UNSUPPORTED, "at most %d dimensions are possible", TY_MAX_RANK);
        return;
    }
    for (int64_t i = 0; i < rank; i++) {
        int64_t a = i - (rank - n[0]), b = i - (rank - n[1]);
        int64_t d = a < 0 ? 1 : s[0][a], e = b < 0 ? 1 : s[1][b];
        dim[i] = d == 1 ? e : d;
    }
    tf_set(c, 0, tf_ints(c, tf_dtype_of(c, tf_in(c, 0)), dim, rank));
}

/* Where each of several shapes begins in their concatenation: axis, shapes. */
void tf_op_concat_offset(tf_ctx *c)
{
    int64_t axis, at = 0;
    if (!tf_const_int(c, 0, &axis))
        return;
    for (int i = 1; i < c->n_in; i++) {
        const int64_t *shape;
        int64_t n, offset[TY_MAX_RANK] = {0};
        if (!tf_const_ints(c, i, &shape, &n))
            return;
        axis += axis < 0 ? n : 0; /* n is 0 or more */
        if (n > TY_MAX_RANK || axis < 0 || axis >= n) {
            tf_fail(c, TY_E_SHAPE, "axis %lld is outside", (long long)axis);
            return;
        }
        offset[axis] = at;
        if (__builtin_add_overflow(at, shape[axis], &at)) {
            tf_fail_input(c, i, TY_E_SHAPE, "is too large");
            return;
        }
        tf_set(c, i - 1, tf_ints(c, tf_dtype_of(c, tf_in(c, i)), offset, n));
    }
}
