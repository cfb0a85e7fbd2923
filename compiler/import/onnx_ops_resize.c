/* onnx_ops_resize.c - Resize and Upsample.
 *
 * Every mode is separable and every coordinate is known now, so an axis becomes either a gather with constant indices
 * (nearest) or a product with a constant matrix (linear, cubic, with or without antialiasing). Formulas: the ONNX text
 * of Resize and its reference implementation.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>
#include <string.h>

typedef enum coord_mode {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE
} coord_mode;

typedef enum filter { NEAREST, LINEAR, CUBIC } filter;
typedef enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, FLOOR, CEIL } rounding;

typedef struct resize_args {
    coord_mode coord;
    filter filter;
    rounding rounding;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    int rank;
    double scale[TY_MAX_RANK];
    int64_t in[TY_MAX_RANK], out[TY_MAX_RANK];
    double roi_lo[TY_MAX_RANK], roi_hi[TY_MAX_RANK];
} resize_args;

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

static void resize_modes(onnx_ctx *c, resize_args *a)
{
    static const char *const coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const filters[] = {"nearest", "linear", "cubic", "bilinear", NULL};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
    bool old = c->opset < 11 || strcmp(c->node->op_type, "Upsample") == 0;
    int mode = onnx_attr_choice(c, "mode", "nearest", filters);
    a->filter = mode == 3 ? LINEAR : (filter)mode;
    a->coord =
        old ? ASYMMETRIC : (coord_mode)onnx_attr_choice(c, "coordinate_transformation_mode", "half_pixel", coords);
    a->rounding = old ? FLOOR : (rounding)onnx_attr_choice(c, "nearest_mode", "round_prefer_floor", rounds);
    a->antialias = onnx_attr_int(c, "antialias", 0);
    a->exclude_outside = onnx_attr_int(c, "exclude_outside", 0);
    a->cubic_a = onnx_attr_float(c, "cubic_coeff_a", -0.75);
    a->extrapolation = onnx_attr_float(c, "extrapolation_value", 0);
}

static bool resize_axes(onnx_ctx *c, const resize_args *a, int *axes, int64_t *n)
{
    const int64_t *given = NULL;
    *n = a->rank;
    bool has = onnx_attr_ints(c, "axes", &given, n);
    if (*n > a->rank) {
        onnx_fail_attr(c, "axes", "names more than %d axes", a->rank);
        return false;
    }
    for (int64_t i = 0; i < *n; i++) {
        axes[i] = (int)i;
        if (has && !onnx_axis(c, given[i], a->rank, &axes[i]))
            return false;
    }
    return true;
}

static bool take_scales(onnx_ctx *c, resize_args *a, const int *axes, int64_t n_axes, const double *v, int64_t n)
{
    if (n != n_axes) {
        onnx_fail(c, TY_E_SHAPE, "%s: %lld scales for %lld axes", c->node->op_type, (long long)n, (long long)n_axes);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        int axis = axes[i];
        double out = floor((double)a->in[axis] * v[i]);
        if (!(v[i] > 0) || !(out >= 0 && out < 1 << 24)) {
            onnx_fail(c, TY_E_SHAPE, "%s: scale %g of axis %d is not possible", c->node->op_type, v[i], axis);
            return false;
        }
        a->scale[axis] = v[i];
        a->out[axis] = (int64_t)out;
    }
    return true;
}

static bool take_sizes(onnx_ctx *c, resize_args *a, const int *axes, int64_t n_axes, const int64_t *v, int64_t n)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    int policy = onnx_attr_choice(c, "keep_aspect_ratio_policy", "stretch", policies);
    double common = 0;
    if (n != n_axes) {
        onnx_fail(c, TY_E_SHAPE, "Resize: %lld sizes for %lld axes", (long long)n, (long long)n_axes);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double s = a->in[axes[i]] ? (double)v[i] / (double)a->in[axes[i]] : 1;
        if (v[i] < 1 || v[i] > 1 << 24 || a->in[axes[i]] < 1) {
            onnx_fail(c, TY_E_SHAPE, "Resize: size %lld of axis %d is not possible", (long long)v[i], axes[i]);
            return false;
        }
        common = i == 0 || (policy == 1 ? s < common : s > common) ? s : common;
        a->scale[axes[i]] = s;
        a->out[axes[i]] = v[i];
    }
    for (int64_t i = 0; i < n && policy; i++) {
        a->scale[axes[i]] = common;
        a->out[axes[i]] = (int64_t)floor(common * (double)a->in[axes[i]] + 0.5);
    }
    return true;
}

static bool resize_roi(onnx_ctx *c, resize_args *a, const int *axes, int64_t n_axes)
{
    const double *v;
    int64_t n;
    if (a->coord != TF_CROP_AND_RESIZE)
        return true;
    if (!onnx_const_floats(c, 1, &v, &n))
        return false;
    if (n != 2 * n_axes) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "must have %lld entries", (long long)(2 * n_axes));
        return false;
    }
    for (int64_t i = 0; i < n_axes; i++) {
        a->roi_lo[axes[i]] = v[i];
        a->roi_hi[axes[i]] = v[i + n_axes];
    }
    return true;
}

static bool resize_read(onnx_ctx *c, resize_args *a)
{
    ty_val x = onnx_in(c, 0);
    int axes[TY_MAX_RANK];
    int64_t n_axes, n = 0;
    const double *scales = NULL;
    *a = (resize_args){.rank = onnx_rank(c, x)};
    for (int i = 0; i < a->rank; i++) {
        a->in[i] = a->out[i] = onnx_dim(c, x, i);
        a->scale[i] = a->roi_hi[i] = 1;
    }
    resize_modes(c, a);
    if (c->failed || !resize_axes(c, a, axes, &n_axes))
        return false;
    bool upsample = strcmp(c->node->op_type, "Upsample") == 0;
    int scales_at = upsample || c->opset < 11 ? 1 : 2;
    if (upsample && c->opset < 9 && onnx_attr_floats(c, "scales", &scales, &n))
        return take_scales(c, a, axes, n_axes, scales, n);
    if (onnx_has(c, scales_at) && !onnx_const_floats(c, scales_at, &scales, &n))
        return false;
    if (!resize_roi(c, a, axes, n_axes))
        return false;
    const int64_t *sizes;
    if (n > 0)
        return take_scales(c, a, axes, n_axes, scales, n);
    return onnx_const_ints(c, 3, &sizes, &n) && take_sizes(c, a, axes, n_axes, sizes, n);
}

/* ---- coordinates --------------------------------------------------------------------------------------------------
 */

/* Position in the input of entry o of the output. */
static double source_of(const resize_args *a, int axis, int64_t o)
{
    double in = (double)a->in[axis], out = (double)a->out[axis], s = a->scale[axis], at = (double)o, exact = in * s;
    switch (a->coord) {
    case HALF_PIXEL:
        return (at + 0.5) / s - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - out / exact) + (at + 0.5) / s - 0.5;
    case PYTORCH_HALF_PIXEL:
        return out > 1 ? (at + 0.5) / s - 0.5 : 0;
    case ALIGN_CORNERS:
        return exact > 1 ? at * (in - 1) / (exact - 1) : 0;
    case ASYMMETRIC:
        return at / s;
    case TF_HALF_PIXEL_FOR_NN:
        return (at + 0.5) / s;
    default:
        break;
    }
    double lo = a->roi_lo[axis], hi = a->roi_hi[axis];
    return out > 1 ? lo * (in - 1) + at * (hi - lo) * (in - 1) / (out - 1) : 0.5 * (lo + hi) * (in - 1);
}

static int64_t nearest_of(const resize_args *a, int axis, int64_t o)
{
    double x = source_of(a, axis, o);
    switch (a->rounding) {
    case ROUND_PREFER_FLOOR:
        x = ceil(x - 0.5);
        break;
    case ROUND_PREFER_CEIL:
        x = floor(x + 0.5);
        break;
    case FLOOR:
        x = floor(x);
        break;
    case CEIL:
        x = ceil(x);
        break;
    }
    double last = (double)a->in[axis] - 1;
    return (int64_t)(x < 0 || !(x == x) ? 0 : x > last ? last : x);
}

/* Keys' cubic kernel with free parameter a. */
static double cubic_kernel(double t, double a)
{
    t = fabs(t);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Adds the weights of output o to a row of `in` numbers. */
static void weights_of(const resize_args *a, int axis, int64_t o, double *row)
{
    double x = source_of(a, axis, o), base = floor(x), s = a->antialias && a->scale[axis] < 1 ? a->scale[axis] : 1;
    double radius = a->filter == CUBIC ? 2 : 1, sum = 0;
    int64_t in = a->in[axis];
    if (x == base)
        base -= 1; /* the reference prefers the left neighbour */
    int64_t start = (int64_t)floor(-radius / s) + 1, count = 2 - 2 * start;
    for (int64_t k = start; k < start + count; k++) {
        double t = ((double)k - (x - base)) * s;
        double w = a->filter == CUBIC ? cubic_kernel(t, a->cubic_a) : fmax(1 - fabs(t), 0);
        int64_t at = (int64_t)base + k;
        if (a->exclude_outside && (at < 0 || at >= in))
            continue;
        row[at < 0 ? 0 : at >= in ? in - 1 : at] += w;
        sum += w;
    }
    for (int64_t i = 0; i < in && sum != 0; i++)
        row[i] /= sum;
}

/* ---- emission -----------------------------------------------------------------------------------------------------
 */

/* x seen as [before, n, after], the axis in the middle. */
static ty_val axis_repeat(onnx_ctx *c, ty_val x, int axis, int64_t times)
{
    const ty_type t = *onnx_type_of(c, x);
    int64_t dim[4] = {1, t.dim[axis], 1, 1}, out[TY_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        if (i != axis)
            dim[i < axis ? 0 : 3] *= t.dim[i];
        out[i] = t.dim[i] * (i == axis ? times : 1);
    }
    ty_val y = ty_b_reshape(c->g, x, 4, dim);
    dim[2] = times;
    return ty_b_reshape(c->g, ty_b_broadcast(c->g, y, 4, dim), t.rank, out);
}

static ty_val axis_nearest(onnx_ctx *c, const resize_args *a, ty_val x, int axis)
{
    int64_t n = a->out[axis], in = a->in[axis], times = in ? n / in : 0;
    int64_t *index = onnx_alloc(c, (size_t)n + 1, sizeof *index);
    bool repeats = times > 0 && times * in == n;
    for (int64_t o = 0; o < n; o++) {
        index[o] = nearest_of(a, axis, o);
        repeats = repeats && index[o] == o / times;
    }
    return repeats ? axis_repeat(c, x, axis, times) : ty_b_gather(c->g, x, onnx_ints_const(c, index, n), axis);
}

static ty_val axis_matrix(onnx_ctx *c, const resize_args *a, ty_val x, int axis)
{
    ty_graph *g = c->g;
    const ty_type t = *onnx_type_of(c, x);
    int64_t in = a->in[axis], out = a->out[axis], dim[] = {out, in}, perm[TY_MAX_RANK], moved[TY_MAX_RANK], rows = 1;
    double *m = onnx_alloc(c, (size_t)(in * out) + 1, sizeof *m);
    for (int64_t o = 0; o < out; o++)
        weights_of(a, axis, o, m + o * in);
    for (int i = 0; i < t.rank; i++)
        perm[i] = i;
    perm[axis] = t.rank - 1;
    perm[t.rank - 1] = axis;
    for (int i = 0; i < t.rank; i++) {
        moved[i] = t.dim[perm[i]];
        rows *= i < t.rank - 1 ? moved[i] : 1;
    }
    int64_t flat[] = {rows, in};
    ty_val y = ty_b_reshape(g, ty_b_transpose(g, x, perm), 2, flat);
    y = ty_b_dot(g, y, onnx_const_from(c, (ty_dtype)t.dtype, 2, dim, m), false, true);
    moved[t.rank - 1] = out;
    return ty_b_transpose(g, ty_b_reshape(g, y, t.rank, moved), perm);
}

/* tf_crop_and_resize: what comes from outside the image has a value of its own. */
static ty_val paint_outside(onnx_ctx *c, const resize_args *a, ty_val y)
{
    ty_graph *g = c->g;
    for (int axis = 0; axis < a->rank; axis++) {
        int64_t n = a->out[axis], dim[] = {1, 1, 1, 1, 1, 1, 1, 1}, outside = 0;
        double *flag = onnx_alloc(c, (size_t)n + 1, sizeof *flag);
        for (int64_t o = 0; o < n; o++) {
            double x = source_of(a, axis, o);
            flag[o] = x < 0 || x > (double)a->in[axis] - 1;
            outside += flag[o] != 0;
        }
        dim[axis] = n;
        if (outside)
            y = ty_b_select(g, onnx_const_from(c, TY_BOOL, a->rank, dim, flag), ty_b_full_like(g, y, a->extrapolation),
                            y);
    }
    return y;
}

void onnx_op_resize(onnx_ctx *c)
{
    resize_args a;
    ty_val x = onnx_in(c, 0);
    if (!resize_read(c, &a) || !onnx_shape_ok(c, a.rank, a.out))
        return;
    ty_dtype dtype = onnx_dtype_of(c, x);
    bool widen = a.filter != NEAREST && !ty_dtype_is_float(dtype);
    x = widen ? ty_b_cast(c->g, x, TY_F32) : x;
    for (int axis = 0; axis < a.rank; axis++) {
        if (a.in[axis] == a.out[axis] && a.scale[axis] == 1 && a.coord != TF_CROP_AND_RESIZE)
            continue;
        if (a.filter != NEAREST && (a.in[axis] < 1 || a.in[axis] * a.out[axis] > 1 << 26)) {
            onnx_fail(c, TY_E_LIMIT, "%s: axis %d from %lld to %lld entries is too large", c->node->op_type, axis,
                      (long long)a.in[axis], (long long)a.out[axis]);
            return;
        }
        x = a.filter == NEAREST ? axis_nearest(c, &a, x, axis) : axis_matrix(c, &a, x, axis);
    }
    if (a.coord == TF_CROP_AND_RESIZE && x != TY_NONE)
        x = paint_outside(c, &a, x);
    onnx_set(c, 0, ty_b_cast(c->g, x, dtype));
}
