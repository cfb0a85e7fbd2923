/* onnx_ops_shape.c - operators that move, cut and stretch. */
#include "compiler/import/onnx_import.h"

#include <string.h>

void onnx_op_reshape(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *want;
    int64_t n, dim[TY_MAX_RANK], known = 1;
    if (!onnx_ints_either(c, "shape", 1, &want, &n))
        return;
    if (n < 0 || n > TY_MAX_RANK) {
        onnx_fail(c, TY_E_UNSUPPORTED, "Reshape: to %lld dimensions; at most %d are possible", (long long)n,
                  TY_MAX_RANK);
        return;
    }
    bool zero_is_zero = onnx_attr_int(c, "allowzero", 0);
    int free_axis = -1;
    for (int i = 0; i < n; i++) {
        dim[i] = want[i] == 0 && !zero_is_zero && i < onnx_rank(c, x) ? onnx_dim(c, x, i) : want[i];
        if (dim[i] == -1 && free_axis < 0)
            free_axis = i;
        else if (dim[i] < 0 || __builtin_mul_overflow(known, dim[i], &known)) {
            onnx_fail_input(c, 1, TY_E_SHAPE, "has the impossible entry %lld at %d", (long long)want[i], i);
            return;
        }
    }
    int64_t elems = ty_type_elems(onnx_type_of(c, x));
    if (free_axis >= 0)
        dim[free_axis] = known > 0 && elems % known == 0 ? elems / known : -1;
    if (free_axis >= 0 && dim[free_axis] < 0) {
        onnx_fail(c, TY_E_SHAPE, "Reshape: %lld elements do not divide into rows of %lld", (long long)elems,
                  (long long)known);
        return;
    }
    onnx_set(c, 0, ty_b_reshape(c->g, x, (int)n, dim));
}

void onnx_op_transpose(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x);
    const int64_t *given = NULL;
    int64_t n = rank, perm[TY_MAX_RANK];
    uint32_t seen;
    bool has = onnx_attr_ints(c, "perm", &given, &n);
    if (n != rank) {
        onnx_fail_attr(c, "perm", "must have %d entries", rank);
        return;
    }
    for (int i = 0; i < rank; i++)
        perm[i] = has ? given[i] : rank - 1 - i;
    if (!onnx_axes(c, perm, rank, rank, &seen))
        return;
    for (int i = 0; i < rank; i++)
        perm[i] += perm[i] < 0 ? rank : 0;
    onnx_set(c, 0, ty_b_transpose(c->g, x, perm));
}

void onnx_op_concat(onnx_ctx *c)
{
    ty_val *in = onnx_alloc(c, (size_t)c->n_in, sizeof *in);
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", c->opset < 4 ? 1 : 0), onnx_rank(c, onnx_in(c, 0)), &axis))
        return;
    for (int i = 0; i < c->n_in; i++)
        in[i] = onnx_in(c, i);
    onnx_set(c, 0, ty_b_concat(c->g, in, c->n_in, axis));
}

void onnx_op_flatten(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x), axis;
    int64_t want = onnx_attr_int(c, "axis", 1), dim[2] = {1, 1};
    if (want == rank)
        axis = rank;
    else if (!onnx_axis(c, want, rank, &axis))
        return;
    for (int i = 0; i < rank; i++)
        dim[i >= axis] *= onnx_dim(c, x, i);
    onnx_set(c, 0, ty_b_reshape(c->g, x, 2, dim));
}

void onnx_op_squeeze(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *axes;
    int64_t n, dim[TY_MAX_RANK];
    int rank = onnx_rank(c, x), kept = 0;
    uint32_t mask = 0;
    if (!onnx_ints_either(c, "axes", 1, &axes, &n) || !onnx_axes(c, axes, n < 0 ? 0 : n, rank, &mask))
        return;
    for (int i = 0; i < rank; i++) {
        bool drop = n < 0 ? onnx_dim(c, x, i) == 1 : mask >> i & 1;
        if (!drop)
            dim[kept++] = onnx_dim(c, x, i);
        else if (onnx_dim(c, x, i) != 1) {
            onnx_fail(c, TY_E_SHAPE, "Squeeze: axis %d has %lld entries, not 1", i, (long long)onnx_dim(c, x, i));
            return;
        }
    }
    onnx_set(c, 0, ty_b_reshape(c->g, x, kept, dim));
}

void onnx_op_unsqueeze(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *axes;
    int64_t n, dim[TY_MAX_RANK];
    uint32_t mask;
    if (!onnx_ints_either(c, "axes", 1, &axes, &n))
        return;
    int64_t rank = onnx_rank(c, x) + (n < 0 ? 0 : n);
    if (rank > TY_MAX_RANK) {
        onnx_fail(c, TY_E_UNSUPPORTED, "Unsqueeze: to %lld dimensions; at most %d are possible", (long long)rank,
                  TY_MAX_RANK);
        return;
    }
    if (!onnx_axes(c, axes, n < 0 ? 0 : n, (int)rank, &mask))
        return;
    for (int i = 0, from = 0; i < rank; i++)
        dim[i] = mask >> i & 1 ? 1 : onnx_dim(c, x, from++);
    onnx_set(c, 0, ty_b_reshape(c->g, x, (int)rank, dim));
}

/* NumPy broadcasting of x's shape and the wanted one. */
void onnx_op_expand(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *want;
    int64_t n, dim[TY_MAX_RANK];
    if (!onnx_const_ints(c, 1, &want, &n))
        return;
    int rank_x = onnx_rank(c, x), rank = n > rank_x ? (int)n : rank_x;
    if (n > TY_MAX_RANK) {
        onnx_fail(c, TY_E_UNSUPPORTED, "Expand: to %lld dimensions; at most %d are possible", (long long)n,
                  TY_MAX_RANK);
        return;
    }
    for (int i = 0; i < rank; i++) {
        int from_x = i - (rank - rank_x), from_want = i - (rank - (int)n);
        int64_t a = from_x < 0 ? 1 : onnx_dim(c, x, from_x), b = from_want < 0 ? 1 : want[from_want];
        if (a != b && a != 1 && b != 1) {
            onnx_fail(c, TY_E_SHAPE, "Expand: axis %d has %lld entries and cannot become %lld", i, (long long)a,
                      (long long)b);
            return;
        }
        dim[i] = a == 1 ? b : a;
    }
    if (onnx_shape_ok(c, rank, dim))
        onnx_set(c, 0, ty_b_broadcast(c->g, x, rank, dim));
}

/* ---- shapes as values ---------------------------------------------------------------------------------------------
 */

static int64_t shape_bound(int64_t at, int rank)
{
    at += at < 0 ? rank : 0;
    return at < 0 ? 0 : at > rank ? rank : at;
}

void onnx_op_shape(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x);
    int64_t start = shape_bound(onnx_attr_int(c, "start", 0), rank);
    int64_t end = shape_bound(onnx_attr_int(c, "end", rank), rank);
    onnx_set(c, 0, onnx_ints_const(c, onnx_type_of(c, x)->dim + start, end > start ? end - start : 0));
}

void onnx_op_size(onnx_ctx *c)
{
    onnx_set(c, 0, onnx_int_const(c, ty_type_elems(onnx_type_of(c, onnx_in(c, 0)))));
}

void onnx_op_constant_of_shape(onnx_ctx *c)
{
    const int64_t *dim;
    int64_t n;
    if (!onnx_const_ints(c, 0, &dim, &n) || !onnx_shape_ok(c, n > TY_MAX_RANK ? TY_MAX_RANK + 1 : (int)n, dim))
        return;
    const onnx_attr *a = onnx_find_attr(c, "value");
    if (!a || !a->t) {
        onnx_set(c, 0, ty_b_full(c->g, TY_F32, (int)n, dim, 0));
        return;
    }
    ty_val v;
    if (!onnx_tensor_const(c->imp->m, c->g, a->t, &v, &c->err)) {
        c->failed = true;
        return;
    }
    if (ty_type_elems(onnx_type_of(c, v)) != 1) {
        onnx_fail_attr(c, "value", "must be one element");
        return;
    }
    onnx_set(c, 0, ty_b_broadcast(c->g, ty_b_reshape(c->g, v, 0, NULL), (int)n, dim));
}

void onnx_op_constant(onnx_ctx *c)
{
    const onnx_attr *a;
    const double *floats;
    const int64_t *ints;
    int64_t n;
    ty_val v = TY_NONE;
    if ((a = onnx_find_attr(c, "value")) && a->t) {
        if (!onnx_tensor_const(c->imp->m, c->g, a->t, &v, &c->err))
            c->failed = true;
    } else if (onnx_find_attr(c, "value_float"))
        v = ty_b_scalar(c->g, TY_F32, onnx_attr_float(c, "value_float", 0));
    else if (onnx_find_attr(c, "value_int"))
        v = onnx_int_const(c, onnx_attr_int(c, "value_int", 0));
    else if (onnx_attr_floats(c, "value_floats", &floats, &n))
        v = onnx_const_from(c, TY_F32, 1, &n, floats);
    else if (onnx_attr_ints(c, "value_ints", &ints, &n))
        v = onnx_ints_const(c, ints, n);
    else
        onnx_fail(c, TY_E_UNSUPPORTED, "Constant: holds text or a sparse tensor; a dense tensor of numbers is needed");
    onnx_set(c, 0, v);
}

static double range_count(double start, double limit, double delta)
{
    double n = (limit - start) / delta;
    return n > 0 ? __builtin_ceil(n) : 0;
}

void onnx_op_range(onnx_ctx *c)
{
    double part[3], n;
    for (int i = 0; i < 3; i++)
        if (!onnx_const_float(c, i, 0, &part[i]))
            return;
    n = part[2] != 0 ? range_count(part[0], part[1], part[2]) : -1;
    if (!(n >= 0 && n <= 1 << 22)) {
        onnx_fail(c, TY_E_SHAPE, "Range: from %g to %g by %g is no list of at most %d numbers", part[0], part[1],
                  part[2], 1 << 22);
        return;
    }
    int64_t count = (int64_t)n;
    double *v = onnx_alloc(c, (size_t)count + 1, sizeof *v);
    for (int64_t i = 0; i < count; i++)
        v[i] = part[0] + (double)i * part[2];
    onnx_set(c, 0, onnx_const_from(c, onnx_dtype_of(c, onnx_in(c, 0)), 1, &count, v));
}

/* ---- slices -------------------------------------------------------------------------------------------------------
 */

typedef struct slice_args {
    const int64_t *start, *end, *axes, *step; /* axes, step: NULL if absent */
    int64_t n;
} slice_args;

static bool slice_read(onnx_ctx *c, slice_args *s)
{
    int64_t n_end, n_axes = -1, n_step = -1;
    *s = (slice_args){0};
    if (!onnx_ints_either(c, "starts", 1, &s->start, &s->n) || !onnx_ints_either(c, "ends", 2, &s->end, &n_end) ||
        !onnx_ints_either(c, "axes", 3, &s->axes, &n_axes))
        return false;
    if (onnx_has(c, 4) && !onnx_const_ints(c, 4, &s->step, &n_step))
        return false;
    if (s->n < 0 || n_end != s->n || (n_axes >= 0 && n_axes != s->n) || (n_step >= 0 && n_step != s->n)) {
        onnx_fail(c, TY_E_SHAPE, "Slice: starts, ends, axes and steps have different lengths");
        return false;
    }
    if (n_axes < 0)
        s->axes = NULL;
    return true;
}

static int64_t clamp_to(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Bounds of one axis as NumPy reads them. A negative step becomes a reversed slice. */
static void slice_axis(int64_t start, int64_t end, int64_t step, int64_t dim, int64_t *lo, int64_t *hi, int64_t *by,
                       bool *reversed)
{
    start += start < 0 ? dim : 0;
    end += end < 0 ? dim : 0;
    *reversed = step < 0;
    if (step > 0) {
        *lo = clamp_to(start, 0, dim);
        *hi = clamp_to(end, *lo, dim);
        *by = step;
        return;
    }
    start = clamp_to(start, -1, dim - 1);
    end = clamp_to(end, -1, dim - 1);
    int64_t s = step == INT64_MIN ? INT64_MAX : -step, n = start > end ? (start - end - 1) / s + 1 : 0;
    *lo = n > 0 ? start - (n - 1) * s : 0;
    *hi = n > 0 ? start + 1 : 0;
    *by = n > 0 ? s : 1;
}

void onnx_op_slice(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    slice_args s;
    if (!slice_read(c, &s))
        return;
    int rank = onnx_rank(c, x);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK], step[TY_MAX_RANK];
    uint32_t reversed = 0;
    for (int i = 0; i < rank; i++)
        lo[i] = 0, hi[i] = onnx_dim(c, x, i), step[i] = 1;
    for (int64_t i = 0; i < s.n; i++) {
        int axis;
        bool back;
        int64_t by = s.step ? s.step[i] : 1;
        if (!onnx_axis(c, s.axes ? s.axes[i] : i, rank, &axis))
            return;
        if (by == 0) {
            onnx_fail(c, TY_E_SHAPE, "Slice: the step of axis %d is 0", axis);
            return;
        }
        slice_axis(s.start[i], s.end[i], by, onnx_dim(c, x, axis), &lo[axis], &hi[axis], &step[axis], &back);
        reversed |= (uint32_t)back << axis;
    }
    ty_val y = ty_b_slice(c->g, x, lo, hi, step);
    onnx_set(c, 0, reversed ? ty_b_reverse(c->g, y, reversed) : y);
}

/* ---- splits -------------------------------------------------------------------------------------------------------
 */

/* Sizes of n parts; the last one is smaller if they do not divide. */
static int64_t *even_sizes(onnx_ctx *c, int64_t total, int64_t n)
{
    int64_t *size = onnx_alloc(c, (size_t)n + 1, sizeof *size), each = n > 0 ? (total + n - 1) / n : 0;
    for (int64_t i = 0; i < n; i++)
        size[i] = clamp_to(total - i * each, 0, each);
    return size;
}

static bool sizes_fit(onnx_ctx *c, const int64_t *size, int64_t n, int64_t total)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (size[i] < 0 || __builtin_add_overflow(sum, size[i], &sum))
            sum = -1, n = 0;
    if (sum != total)
        onnx_fail(c, TY_E_SHAPE, "%s: the parts add up to %lld, the axis has %lld entries", c->node->op_type,
                  (long long)sum, (long long)total);
    return sum == total;
}

void onnx_op_split(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *size;
    int64_t n, at = 0;
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis) ||
        !onnx_ints_either(c, "split", 1, &size, &n))
        return;
    int64_t total = onnx_dim(c, x, axis);
    if (n < 0) {
        n = c->opset >= 18 ? onnx_attr_int(c, "num_outputs", c->n_out) : c->n_out;
        n = n > c->n_out ? c->n_out : n;
        size = even_sizes(c, total, n);
    }
    if (n > c->n_out)
        n = c->n_out;
    if (!sizes_fit(c, size, n, total))
        return;
    for (int i = 0; i < n; at += size[i++])
        onnx_set(c, i, ty_b_slice_axis(c->g, x, axis, at, at + size[i]));
}

void onnx_op_split_to_sequence(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *given = NULL;
    int64_t n_given = 0, at = 0, n;
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), onnx_rank(c, x), &axis))
        return;
    if (onnx_has(c, 1) && !onnx_const_ints(c, 1, &given, &n_given))
        return;
    int64_t total = onnx_dim(c, x, axis);
    bool is_list = given && onnx_rank(c, onnx_in(c, 1)) == 1;
    int64_t each = given && !is_list ? given[0] : 1;
    n = is_list ? n_given : each > 0 ? (total + each - 1) / each : -1;
    if (n < 0 || n > 1 << 16) {
        onnx_fail(c, TY_E_SHAPE, "SplitToSequence: parts of %lld entries", (long long)each);
        return;
    }
    if (is_list && !sizes_fit(c, given, n, total))
        return;
    ty_val *seq = onnx_alloc(c, (size_t)n + 1, sizeof *seq);
    bool keep = given || onnx_attr_int(c, "keepdims", 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t size = is_list ? given[i] : clamp_to(total - at, 0, each);
        seq[i] = ty_b_slice_axis(c->g, x, axis, at, at + size);
        seq[i] = keep ? seq[i] : ty_b_squeeze(c->g, seq[i], axis);
        at += size;
    }
    onnx_set_sequence(c, 0, seq, (int)n);
}

/* ---- repetition ---------------------------------------------------------------------------------------------------
 */

/* One axis at a time, seen as [before, 1, rest]: stretched to [before, r, rest]. */
static ty_val tile_axis(onnx_ctx *c, ty_val x, int axis, int64_t repeat)
{
    const ty_type type = *onnx_type_of(c, x);
    int64_t dim[3] = {1, 1, 1}, out[TY_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        dim[i < axis ? 0 : 2] *= type.dim[i];
        out[i] = type.dim[i] * (i == axis ? repeat : 1);
    }
    ty_val y = ty_b_reshape(c->g, x, 3, dim);
    dim[1] = repeat;
    return ty_b_reshape(c->g, ty_b_broadcast(c->g, y, 3, dim), type.rank, out);
}

void onnx_op_tile(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *repeat;
    int64_t n, tiled[TY_MAX_RANK];
    int rank = onnx_rank(c, x);
    if (!onnx_const_ints(c, 1, &repeat, &n))
        return;
    if (c->opset < 6 && onnx_has(c, 2)) {
        onnx_fail(c, TY_E_UNSUPPORTED, "Tile of opset 1; export the model with opset 6 or later");
        return;
    }
    if (n != rank) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "must have %d entries", rank);
        return;
    }
    for (int i = 0; i < rank; i++)
        if (repeat[i] < 0 || __builtin_mul_overflow(onnx_dim(c, x, i), repeat[i], &tiled[i]))
            tiled[i] = -1;
    if (!onnx_shape_ok(c, rank, tiled))
        return;
    for (int i = 0; i < rank; i++)
        if (repeat[i] != 1)
            x = tile_axis(c, x, i, repeat[i]);
    onnx_set(c, 0, x);
}

/* ---- blocks and channels ------------------------------------------------------------------------------------------
 */

static bool block_read(onnx_ctx *c, int64_t *block)
{
    ty_val x = onnx_in(c, 0);
    *block = onnx_attr_int(c, "blocksize", 0);
    if (*block < 1 || *block > 1 << 16) {
        onnx_fail_attr(c, "blocksize", "must be positive");
        return false;
    }
    if (onnx_rank(c, x) != 4) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have 4 dimensions");
        return false;
    }
    return true;
}

void onnx_op_depth_to_space(onnx_ctx *c)
{
    static const char *const modes[] = {"DCR", "CRD", NULL};
    ty_val x = onnx_in(c, 0);
    int64_t b;
    if (!block_read(c, &b))
        return;
    bool crd = onnx_attr_choice(c, "mode", "DCR", modes);
    int64_t n = onnx_dim(c, x, 0), depth = onnx_dim(c, x, 1) / (b * b), h = onnx_dim(c, x, 2), w = onnx_dim(c, x, 3);
    int64_t dcr_dim[] = {n, b, b, depth, h, w}, crd_dim[] = {n, depth, b, b, h, w}, out[] = {n, depth, h * b, w * b};
    static const int64_t dcr_perm[] = {0, 3, 4, 1, 5, 2}, crd_perm[] = {0, 1, 4, 2, 5, 3};
    ty_val y = ty_b_reshape(c->g, x, 6, crd ? crd_dim : dcr_dim);
    onnx_set(c, 0, ty_b_reshape(c->g, ty_b_transpose(c->g, y, crd ? crd_perm : dcr_perm), 4, out));
}

void onnx_op_space_to_depth(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int64_t b;
    if (!block_read(c, &b))
        return;
    int64_t n = onnx_dim(c, x, 0), d = onnx_dim(c, x, 1), h = onnx_dim(c, x, 2) / b, w = onnx_dim(c, x, 3) / b;
    int64_t dim[] = {n, d, h, b, w, b}, out[] = {n, d * b * b, h, w};
    static const int64_t perm[] = {0, 3, 5, 1, 2, 4};
    onnx_set(c, 0, ty_b_reshape(c->g, ty_b_transpose(c->g, ty_b_reshape(c->g, x, 6, dim), perm), 4, out));
}

/* ---- masks --------------------------------------------------------------------------------------------------------
 */

/* Row and column numbers of the last two axes, broadcast against each other. */
static void row_and_column(onnx_ctx *c, int64_t rows, int64_t cols, ty_val *row, ty_val *col)
{
    int64_t dim[] = {rows, cols};
    ty_type type = ty_type_make(TY_I64, 2, dim);
    *row = ty_b_iota(c->g, type, 0);
    *col = ty_b_iota(c->g, type, 1);
}

void onnx_op_trilu(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), row, col;
    int rank = onnx_rank(c, x);
    int64_t k;
    if (!onnx_const_int(c, 1, 0, &k))
        return;
    if (rank < 2) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
        return;
    }
    int64_t rows = onnx_dim(c, x, rank - 2), cols = onnx_dim(c, x, rank - 1);
    k = clamp_to(k, -rows - 1, cols + 1);
    row_and_column(c, rows, cols, &row, &col);
    ty_val edge = ty_b_add_s(g, row, (double)k);
    ty_val keep = onnx_attr_int(c, "upper", 1) ? ty_b_le(g, edge, col) : ty_b_le(g, col, edge);
    onnx_set(c, 0, ty_b_select(g, keep, x, ty_b_full_like(g, x, 0)));
}

void onnx_op_eye_like(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), row, col;
    int64_t k = onnx_attr_int(c, "k", 0);
    ty_dtype dtype = onnx_find_attr(c, "dtype") ? onnx_dtype(onnx_attr_int(c, "dtype", 0)) : onnx_dtype_of(c, x);
    if (onnx_rank(c, x) != 2 || dtype == TY_N_DTYPES) {
        onnx_fail(c, TY_E_UNSUPPORTED, "EyeLike: needs a matrix and a number type");
        return;
    }
    k = clamp_to(k, -onnx_dim(c, x, 0) - 1, onnx_dim(c, x, 1) + 1);
    row_and_column(c, onnx_dim(c, x, 0), onnx_dim(c, x, 1), &row, &col);
    onnx_set(c, 0, ty_b_cast(c->g, ty_b_eq(c->g, ty_b_add_s(c->g, row, (double)k), col), dtype));
}
