/* tf_ops_resize.c - resizing, which is a product with a matrix for each axis.
 *
 * Sources: tensorflow/core/kernels/image/resize_bilinear_op.cc, resize_bicubic_op.cc, resize_area_op.cc,
 * scale_and_translate_op.cc.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>
#include <string.h>

enum { MAX_SIZE = 1 << 14, MAX_MATRIX = 1 << 25 };

typedef enum resize_how { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_AREA } resize_how;

typedef struct resize {
    int64_t in, out;
    resize_how how;
    bool align, half;
} resize;

static double resize_scale(const resize *r)
{
    return r->align && r->out > 1 ? (double)(r->in - 1) / (double)(r->out - 1) : (double)r->in / (double)r->out;
}

static int64_t resize_bound(double at, int64_t n)
{
    return at < 0 ? 0 : at > (double)(n - 1) ? n - 1 : (int64_t)at;
}

/* What result o takes of each entry. */
static void resize_two(const resize *r, int64_t o, double *row)
{
    bool linear = r->how == RESIZE_LINEAR;
    double scale = resize_scale(r);
    double at = r->half ? ((double)o + 0.5) * scale - (linear ? 0.5 : 0) : (double)o * scale;
    double low = linear || !r->align ? floor(at) : floor(at + 0.5), part = linear ? at - low : 0;
    row[resize_bound(low, r->in)] += 1 - part;
    row[resize_bound(ceil(at), r->in)] += part;
}

/* R. Keys, Cubic convolution interpolation for digital image processing, IEEE Trans. ASSP 29 (1981); x from 0 to 2. */
static double resize_keys(double a, double x)
{
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* Weights are those of 1024ths, as in TensorFlow's table. With half-pixel centres what lies outside counts nothing,
 * else as the pixel at the edge. */
static void resize_four(const resize *r, int64_t o, double *row)
{
    float scale = (float)resize_scale(r);
    float at = r->half ? ((float)o + 0.5f) * scale - 0.5f : (float)o * scale;
    double low = floor((double)at), part = (double)lrintf((at - (float)low) * 1024) / 1024, sum = 0;
    double weight[4], a = r->half ? -0.5 : -0.75;
    for (int k = 0; k < 4; k++) {
        bool inside = low - 1 + k >= 0 && low - 1 + k < (double)r->in;
        weight[k] = inside || !r->half ? resize_keys(a, fabs(part + 1 - k)) : 0;
        sum += weight[k];
    }
    for (int k = 0; k < 4; k++)
        row[resize_bound(low - 1 + k, r->in)] += weight[k] / (r->half ? sum : 1);
}

/* The mean of what lies under a result. */
static void resize_under(const resize *r, int64_t o, double *row)
{
    double scale = resize_scale(r), from = (double)o * scale, to = (double)(o + 1) * scale;
    for (double at = floor(from); at < to; at++)
        row[resize_bound(at, r->in)] += (fmin(at + 1, to) - fmax(at, from)) / scale;
}

/* [out, in] */
static ty_val resize_matrix(tf_ctx *c, const resize *r, ty_dtype dtype)
{
    static void (*const rows[])(const resize *, int64_t, double *) = {resize_two, resize_two, resize_four,
                                                                      resize_under};
    int64_t dim[] = {r->out, r->in};
    double *m = tf_alloc(c, (size_t)(r->in * r->out), sizeof *m);
    for (int64_t o = 0; o < r->out; o++)
        rows[r->how](r, o, m + o * r->in);
    return tf_floats(c, dtype, 2, dim, m);
}

/* x [N, H, W, C] with H (axis 1) or W (2) multiplied by m [out, in] or, back, by its transpose. */
static ty_val resize_axis(tf_ctx *c, ty_val x, ty_val m, int axis, bool back)
{
    ty_graph *g = c->g;
    ty_type t = *tf_type(c, x);
    int64_t flat[3] = {t.dim[0], t.dim[1], t.dim[2] * t.dim[3]};
    if (axis == 2) {
        flat[0] = t.dim[0] * t.dim[1];
        flat[1] = t.dim[2];
        flat[2] = t.dim[3];
    }
    t.dim[axis] = tf_dim(c, m, back ? 1 : 0);
    m = back ? ty_b_transpose(g, m, (int64_t[]){1, 0}) : m;
    ty_val y = ty_b_matmul(g, m, ty_b_reshape(g, x, 3, flat));
    return ty_b_reshape(g, y, 4, t.dim);
}

static bool resize_fits(tf_ctx *c, int64_t here, int64_t there)
{
    if (there >= 1 && there <= MAX_SIZE && here >= 1 && here <= MAX_SIZE && here * there <= MAX_MATRIX)
        return true;
    tf_fail(c, TY_E_LIMIT, "a side of %lld entries to %lld", (long long)here, (long long)there);
    return false;
}

/* Height and width from input `at`, which must be known. */
static bool resize_size(tf_ctx *c, int at, const int64_t **size)
{
    int64_t n;
    if (!tf_const_ints(c, at, size, &n))
        return false;
    if (n != 2)
        tf_fail_input(c, at, TY_E_SHAPE, "must be height and width");
    return n == 2;
}

static bool resize_is_pictures(tf_ctx *c, int at)
{
    if (tf_rank(c, tf_in(c, at)) != 4)
        tf_fail_input(c, at, TY_E_SHAPE, "must be [batch, height, width, channels]");
    return !c->failed;
}

/* images, [h, w]; the gradients: dy, and what was resized (nearest: its size). arg: how, and 8 for the gradient. */
void tf_op_resize(tf_ctx *c)
{
    resize_how how = (resize_how)(c->row->arg & 7);
    bool back = c->row->arg & 8, is_like = back && how != RESIZE_NEAREST;
    if (!resize_is_pictures(c, 0) || (is_like && !resize_is_pictures(c, 1)))
        return;
    ty_val x = tf_in(c, 0);
    const int64_t *size = is_like ? tf_type(c, tf_in(c, 1))->dim + 1 : NULL;
    if (!size && !resize_size(c, 1, &size))
        return;
    bool is_float = how != RESIZE_NEAREST && !back;
    ty_dtype dtype = is_float || !tf_is_float(c, x) ? TY_F32 : tf_dtype_of(c, x);
    ty_val y = ty_b_cast(c->g, x, dtype);
    for (int axis = 1; axis < 3; axis++) {
        int64_t here = tf_dim(c, x, axis), there = size[axis - 1];
        resize r = {.in = back ? there : here, .out = back ? here : there, .how = how};
        r.align = tf_attr_bool(c->node, "align_corners", false);
        r.half = tf_attr_bool(c->node, "half_pixel_centers", false);
        if (!resize_fits(c, here, there))
            return;
        if (here != there || how == RESIZE_CUBIC)
            y = resize_axis(c, y, resize_matrix(c, &r, dtype), axis, back);
    }
    tf_set(c, 0, how != RESIZE_NEAREST ? y : ty_b_cast(c->g, y, tf_dtype_of(c, x)));
}

/* ---- scaled and moved, with any filter ---- */

static double filter_lanczos(double x, double radius)
{
    return x > radius ? 0 : x == 0 ? 1 : radius * sin(M_PI * x) * sin(M_PI * x / radius) / (M_PI * M_PI * x * x);
}

static double filter_box(double x, double radius)
{
    return x < radius ? 1 : x == radius ? 0.5 : 0;
}

static double filter_triangle(double x, double radius)
{
    return x < radius ? 1 - x : 0;
}

/* Of three standard deviations. */
static double filter_gaussian(double x, double radius)
{
    double deviation = radius / 3;
    return x >= radius ? 0 : exp(-x * x / (2 * deviation * deviation));
}

static double filter_keys(double x, double radius)
{
    return x >= radius ? 0 : resize_keys(-0.5, x);
}

/* D. Mitchell, A. Netravali, Reconstruction filters in computer graphics, SIGGRAPH 1988; B = C = 1/3. */
static double filter_mitchell(double x, double radius)
{
    if (x >= radius)
        return 0;
    return x >= 1 ? ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9 : (7.0 / 6 * x - 2) * x * x + 8.0 / 9;
}

typedef struct resize_filter {
    const char *name;
    double (*at)(double, double);
    double radius;
} resize_filter;

static const resize_filter filters[] = {
    {"lanczos1", filter_lanczos, 1}, {"lanczos3", filter_lanczos, 3},
    {"lanczos5", filter_lanczos, 5}, {"gaussian", filter_gaussian, 1.5},
    {"box", filter_box, 0.5},        {"triangle", filter_triangle, 1},
    {"keyscubic", filter_keys, 2},   {"mitchellcubic", filter_mitchell, 2},
};

static const resize_filter *filter_find(tf_ctx *c)
{
    const char *name = tf_text(c, "kernel_type", "lanczos3");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(filters[i].name, name) == 0)
            return &filters[i];
    tf_fail_attr(c, "kernel_type", "\"%.30s\" is not known", name);
    return NULL;
}

/* What a result whose middle lies at `at` takes of entries 0 .. in - 1, together 1; nothing if it lies outside. In
 * floats, as TensorFlow: where a filter ends, a rounding decides. */
static void filter_row(const resize_filter *f, float at, float stretch, int64_t in, double *row)
{
    float reach = (float)f->radius * stretch, by = 1 / stretch;
    double sum = 0;
    if (at < 0 || at > (float)in)
        return;
    int64_t first = resize_bound(ceilf(at - reach - 0.5f), in), last = resize_bound(floorf(at + reach - 0.5f), in);
    for (int64_t i = first; i <= last; i++)
        sum += row[i] = f->at((double)fabsf(((float)i + 0.5f - at) * by), f->radius);
    for (int64_t i = first; i <= last && fabs(sum) > 1e-30; i++)
        row[i] /= sum;
}

/* images, [h, w], scales [2], translations [2]; arg 1, the gradient: dy, what was scaled, and so on. */
void tf_op_scale_and_translate(tf_ctx *c)
{
    bool back = c->row->arg;
    const int64_t *size = NULL;
    const double *scale, *moved;
    int64_t n_scale, n_moved;
    if (!resize_is_pictures(c, 0) || (back ? !resize_is_pictures(c, 1) : !resize_size(c, 1, &size)) ||
        !tf_const_floats(c, 2, &scale, &n_scale) || !tf_const_floats(c, 3, &moved, &n_moved))
        return;
    if (back)
        size = tf_type(c, tf_in(c, 1))->dim + 1;
    const resize_filter *f = filter_find(c);
    if (n_scale != 2 || n_moved != 2 || !(scale[0] > 0) || !(scale[1] > 0)) {
        tf_fail_input(c, 2, TY_E_SHAPE, "must be two numbers above 0");
        return;
    }
    ty_val y = ty_b_cast(c->g, tf_in(c, 0), TY_F32);
    bool smooth = tf_attr_bool(c->node, "antialias", true);
    for (int axis = 1; axis < 3 && f; axis++) {
        int64_t here = tf_dim(c, tf_in(c, 0), axis), there = size[axis - 1];
        int64_t in = back ? there : here, out = back ? here : there, dim[] = {out, in};
        if (!resize_fits(c, in, out))
            return;
        double *m = tf_alloc(c, (size_t)(in * out), sizeof *m);
        float by = 1 / (float)scale[axis - 1], from = -by * (float)moved[axis - 1];
        for (int64_t o = 0; o < out; o++)
            filter_row(f, ((float)o + 0.5f) * by + from, smooth && by > 1 ? by : 1, in, m + o * in);
        y = resize_axis(c, y, tf_floats(c, TY_F32, 2, dim, m), axis, back);
    }
    if (!c->failed)
        tf_set(c, 0, y);
}
