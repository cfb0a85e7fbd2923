/* onnx_ops_grid.c - sampling at positions that the data give: GridSample, and AffineGrid that makes such positions.
 *
 * A position falls between pixels. Along each axis it becomes a few taps: a pixel number and a weight. The result sums,
 * over all combinations of taps, gathered pixels times the product of weights.
 * Letters: N batch, C channels, P positions, D spatial axes (2 or 3), K taps of an axis.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

enum { MAX_TAPS = 4, MAX_SPACE = 3 };

typedef enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } grid_mode;
typedef enum grid_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } grid_padding;

typedef struct grid_args {
    onnx_ctx *c;
    grid_mode mode;
    grid_padding padding;
    bool align;
    int space;      /* D */
    ty_dtype dtype; /* of positions */
    int64_t batch, channels, positions, size[MAX_SPACE];
} grid_args;

/* Pixels and weights along one axis; each [N, P]. */
typedef struct grid_taps {
    int n;
    ty_val pixel[MAX_TAPS];  /* float, whole numbers inside the axis */
    ty_val weight[MAX_TAPS]; /* TY_NONE: 1 */
} grid_taps;

static ty_val clamp_to(ty_graph *g, ty_val x, double lo, double hi)
{
    return ty_b_min(g, ty_b_max(g, x, ty_b_full_like(g, x, lo)), ty_b_full_like(g, x, hi));
}

/* Folds x back and forth into [lo, hi]. */
static ty_val reflect(ty_graph *g, ty_val x, double lo, double hi)
{
    double range = hi - lo;
    if (range <= 0)
        return ty_b_full_like(g, x, lo);
    ty_val d = ty_b_unary(g, TY_OP_ABS, ty_b_add_s(g, x, -lo));
    ty_val turns = ty_b_unary(g, TY_OP_FLOOR, ty_b_mul_s(g, d, 0.5 / range));
    ty_val m = ty_b_sub(g, d, ty_b_mul_s(g, turns, 2 * range));
    ty_val back = ty_b_sub(g, ty_b_full_like(g, m, 2 * range), m);
    return ty_b_add_s(g, ty_b_min(g, m, back), lo);
}

static ty_val pad_position(const grid_args *a, ty_val x, double n)
{
    double lo = a->align ? 0 : -0.5, hi = a->align ? n - 1 : n - 0.5;
    if (a->padding == PAD_BORDER)
        return clamp_to(a->c->g, x, 0, n - 1);
    return a->padding == PAD_REFLECTION ? reflect(a->c->g, x, lo, hi) : x;
}

/* Keys' cubic kernel with a = -0.75, at distance t of tap k: |t - k|. */
static ty_val cubic_weight(ty_graph *g, ty_val t, int k)
{
    const double a = -0.75;
    ty_val d = ty_b_unary(g, TY_OP_ABS, ty_b_add_s(g, t, -k));
    ty_val square = ty_b_square(g, d), cube = ty_b_mul(g, square, d);
    if (k == 0 || k == 1) {
        ty_val s = ty_b_sub(g, ty_b_mul_s(g, cube, a + 2), ty_b_mul_s(g, square, a + 3));
        return ty_b_add_s(g, s, 1);
    }
    ty_val s = ty_b_sub(g, ty_b_mul_s(g, cube, a), ty_b_mul_s(g, square, 5 * a));
    return ty_b_add_s(g, ty_b_add(g, s, ty_b_mul_s(g, d, 8 * a)), -4 * a);
}

/* A pixel number brought inside the axis; with zeros, what lies outside gets weight 0. */
static void add_tap(const grid_args *a, grid_taps *taps, ty_val pixel, ty_val weight, double n)
{
    ty_graph *g = a->c->g;
    ty_val inside = pad_position(a, pixel, n);
    if (a->padding == PAD_REFLECTION)
        inside = ty_b_unary(g, TY_OP_RINT, inside);
    inside = clamp_to(g, inside, 0, n - 1);
    if (a->padding == PAD_ZEROS) {
        ty_val zero = ty_b_full_like(g, pixel, 0);
        weight = weight == TY_NONE ? ty_b_full_like(g, pixel, 1) : weight;
        weight = ty_b_select(g, ty_b_eq(g, inside, pixel), weight, zero);
    }
    taps->pixel[taps->n] = inside;
    taps->weight[taps->n++] = weight;
}

/* position: normalised to [-1, 1]. */
static void axis_taps(const grid_args *a, ty_val position, int axis, grid_taps *taps)
{
    ty_graph *g = a->c->g;
    double n = (double)a->size[axis];
    ty_val x =
        ty_b_add_s(g, ty_b_mul_s(g, ty_b_add_s(g, position, 1), a->align ? (n - 1) / 2 : n / 2), a->align ? 0 : -0.5);
    taps->n = 0;
    if (a->mode == GRID_NEAREST) {
        add_tap(a, taps, pad_position(a, ty_b_unary(g, TY_OP_RINT, x), n), TY_NONE, n);
        return;
    }
    x = pad_position(a, x, n);
    ty_val base = ty_b_unary(g, TY_OP_FLOOR, x), t = ty_b_sub(g, x, base);
    if (a->mode == GRID_LINEAR) {
        add_tap(a, taps, base, ty_b_sub(g, ty_b_full_like(g, t, 1), t), n);
        add_tap(a, taps, ty_b_add_s(g, base, 1), t, n);
        return;
    }
    for (int k = -1; k <= 2; k++)
        add_tap(a, taps, ty_b_add_s(g, base, k), cubic_weight(g, t, k), n);
}

/* Sum over all combinations; rows [N * pixels, C] are the image. Result [N, P, C]. */
static ty_val sum_taps(const grid_args *a, ty_val rows, const grid_taps *taps)
{
    ty_graph *g = a->c->g;
    int64_t total = 1, flat[] = {a->batch, a->positions}, out[] = {a->batch, a->positions, 1};
    ty_val sum = TY_NONE, image = ty_b_iota(g, ty_type_make(TY_I64, 2, flat), 0);
    for (int d = 0; d < a->space; d++)
        total *= taps[d].n;
    for (int64_t number = 0; number < total; number++) {
        ty_val row = image, weight = TY_NONE;
        int64_t rest = number;
        for (int d = 0; d < a->space; d++) {
            int k = (int)(rest % taps[d].n);
            rest /= taps[d].n;
            row = ty_b_add(g, ty_b_mul_s(g, row, (double)a->size[d]), ty_b_cast(g, taps[d].pixel[k], TY_I64));
            if (taps[d].weight[k] != TY_NONE)
                weight = weight == TY_NONE ? taps[d].weight[k] : ty_b_mul(g, weight, taps[d].weight[k]);
        }
        ty_val value = ty_b_gather(g, rows, row, 0);
        if (weight != TY_NONE)
            value = ty_b_mul(g, value, ty_b_cast(g, ty_b_reshape(g, weight, 3, out), onnx_dtype_of(a->c, rows)));
        sum = sum == TY_NONE ? value : ty_b_add(g, sum, value);
    }
    return sum;
}

static bool grid_read(onnx_ctx *c, grid_args *a)
{
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    static const grid_mode mode_of[] = {GRID_LINEAR, GRID_NEAREST, GRID_CUBIC, GRID_LINEAR, GRID_CUBIC};
    ty_val x = onnx_in(c, 0), grid = onnx_in(c, 1);
    *a = (grid_args){.c = c, .space = onnx_rank(c, x) - 2, .dtype = onnx_dtype_of(c, grid), .positions = 1};
    a->mode = mode_of[onnx_attr_choice(c, "mode", c->opset < 20 ? "bilinear" : "linear", modes)];
    a->padding = (grid_padding)onnx_attr_choice(c, "padding_mode", "zeros", paddings);
    a->align = onnx_attr_int(c, "align_corners", 0);
    bool fits = (a->space == 2 || a->space == 3) && onnx_rank(c, grid) == a->space + 2 &&
                onnx_dim(c, grid, a->space + 1) == a->space && onnx_dim(c, grid, 0) == onnx_dim(c, x, 0);
    if (!fits || !ty_dtype_is_float(a->dtype)) {
        onnx_fail(c, TY_E_SHAPE, "GridSample: needs an image of 4 or 5 dimensions and positions to match");
        return false;
    }
    a->batch = onnx_dim(c, x, 0);
    a->channels = onnx_dim(c, x, 1);
    for (int d = 0; d < a->space; d++) {
        a->size[d] = onnx_dim(c, x, d + 2);
        a->positions *= onnx_dim(c, grid, d + 1);
        if (a->size[d] < 1) {
            onnx_fail_input(c, 0, TY_E_SHAPE, "has no pixels");
            return false;
        }
    }
    return !c->failed;
}

void onnx_op_grid_sample(onnx_ctx *c)
{
    ty_graph *g = c->g;
    grid_args a;
    grid_taps taps[MAX_SPACE];
    if (!grid_read(c, &a))
        return;
    int64_t to_rows[TY_MAX_RANK] = {0}, out[TY_MAX_RANK] = {a.batch, a.channels};
    int64_t flat[] = {a.batch, a.positions, a.space}, pixels = 1;
    for (int d = 0; d < a.space; d++) {
        to_rows[d + 1] = d + 2;
        out[d + 2] = onnx_dim(c, onnx_in(c, 1), d + 1);
        pixels *= a.size[d];
    }
    to_rows[a.space + 1] = 1;
    int64_t rows_dim[] = {a.batch * pixels, a.channels};
    ty_val rows = ty_b_reshape(g, ty_b_transpose(g, onnx_in(c, 0), to_rows), 2, rows_dim);
    ty_val grid = ty_b_reshape(g, onnx_in(c, 1), 3, flat);
    /* The grid's last axis names the image's axes from the last one on. */
    for (int d = 0; d < a.space; d++) {
        int at = a.space - 1 - d;
        axis_taps(&a, ty_b_squeeze(g, ty_b_slice_axis(g, grid, 2, at, at + 1), 2), d, &taps[d]);
    }
    static const int64_t back[] = {0, 2, 1};
    ty_val y = ty_b_transpose(g, sum_taps(&a, rows, taps), back);
    onnx_set(c, 0, ty_b_reshape(g, y, a.space + 2, out));
}

/* Positions [P, D + 1] of all pixels with a 1 behind, x first; times theta's rows. */
static ty_val affine_base(onnx_ctx *c, ty_dtype dtype, int space, const int64_t *size, bool align)
{
    int64_t pixels = 1, dim[2];
    for (int d = 0; d < space; d++)
        pixels *= size[d];
    double *v = onnx_alloc(c, (size_t)(pixels * (space + 1)) + 1, sizeof *v);
    for (int64_t p = 0; p < pixels; p++) {
        int64_t rest = p;
        for (int d = space - 1; d >= 0; d--) {
            double n = (double)size[d], at = (double)(rest % size[d]);
            rest /= size[d];
            v[p * (space + 1) + space - 1 - d] = align ? (n > 1 ? 2 * at / (n - 1) - 1 : 0) : (2 * at + 1) / n - 1;
        }
        v[p * (space + 1) + space] = 1;
    }
    dim[0] = pixels;
    dim[1] = space + 1;
    return onnx_const_from(c, dtype, 2, dim, v);
}

void onnx_op_affine_grid(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val theta = onnx_in(c, 0);
    const int64_t *size;
    int64_t n, out[TY_MAX_RANK] = {0}, wide[3] = {0};
    if (!onnx_const_ints(c, 1, &size, &n))
        return;
    int space = (int)n - 2;
    if ((n != 4 && n != 5) || onnx_rank(c, theta) != 3 || onnx_dim(c, theta, 1) != space ||
        onnx_dim(c, theta, 2) != space + 1 || onnx_dim(c, theta, 0) != size[0]) {
        onnx_fail(c, TY_E_SHAPE, "AffineGrid: needs sizes of 4 or 5 axes and theta [N, %d, %d]", space, space + 1);
        return;
    }
    if (!onnx_shape_ok(c, (int)n, size) || ty_dims_elems_checked(space, size + 2, 1) > 1 << 24)
        return;
    ty_val base = affine_base(c, onnx_dtype_of(c, theta), space, size + 2, onnx_attr_int(c, "align_corners", 0));
    wide[0] = out[0] = size[0];
    wide[1] = onnx_dim(c, base, 0);
    wide[2] = space + 1;
    for (int d = 0; d < space; d++)
        out[d + 1] = size[d + 2];
    out[space + 1] = space;
    ty_val y = ty_b_dot(g, ty_b_broadcast(g, ty_b_unsqueeze(g, base, 0), 3, wide), theta, false, true);
    onnx_set(c, 0, ty_b_reshape(g, y, space + 2, out));
}
