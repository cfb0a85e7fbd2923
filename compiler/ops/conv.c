/* conv.c - convolution (cross-correlation, as everywhere in deep learning) and its two gradients.
 *
 * All three are one bilinear form, sum over positions of x * w * y, seen from a different side: conv yields y, conv_dx
 * x and conv_dw w. So they share one loop nest, and the gradient of each is made of the other two.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/sliding.h"

#include <inttypes.h>
#include <stdlib.h>

/* x [batch, groups * c, in..], w [groups * o, c, size..], y [batch, groups * o, out..]; x and y channels-last if the
 * flags say so */
typedef struct conv_shape {
    ty_sliding slide;
    int64_t batch, groups, c, o;
} conv_shape;

static int conv_shape_of(conv_shape *s, const ty_attr *attr, const ty_type *x, const ty_type *given, ty_error *err)
{
    const ty_attr laid = ty_sliding_of_weights(attr);
    const ty_type as_first = ty_sliding_first(&laid, given), *w = &as_first;
    if (ty_sliding_expect_axes(attr, err) < 0 || ty_expect_float("x", x, err) < 0 ||
        ty_expect_dtype("w", w, x->dtype, err) < 0 ||
        ty_expect_rank("w", w, 2 + (int)attr->n, 2 + (int)attr->n, err) < 0 ||
        ty_sliding_make(&s->slide, attr, x, w->dim + 2, err) < 0)
        return -1;
    ty_type first = ty_sliding_first(attr, x);
    int64_t groups = attr->groups, c = first.dim[1], o = w->dim[0];
    if (groups < 1 || c % groups || o % groups)
        return ty_error_set(err, TY_E_SHAPE,
                            "groups: expected a divisor of %" PRId64 " input and %" PRId64
                            " output channels, found %" PRId64,
                            c, o, groups);
    if (w->dim[1] != c / groups)
        return ty_error_set(err, TY_E_SHAPE,
                            "w: expected %" PRId64 " channels (%" PRId64 " of x in %" PRId64 " groups), found %" PRId64,
                            c / groups, c, groups, w->dim[1]);
    s->batch = first.dim[0];
    s->groups = groups;
    s->c = c / groups;
    s->o = o / groups;
    return 0;
}

/* y's type for the types of x and w. */
static int conv_y_type(const ty_attr *attr, const ty_type *x, const ty_type *w, ty_type *y, ty_error *err)
{
    conv_shape s;
    if (conv_shape_of(&s, attr, x, w, err) < 0)
        return -1;
    return ty_sliding_result(&s.slide, attr, x->dtype, s.batch, s.groups * s.o, y, err);
}

int ty_op_infer_conv(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    return conv_y_type(attr, in[0], in[1], res, err);
}

int ty_op_infer_conv_bias(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    conv_shape s;
    ty_type bias;
    if (attr->index < 0 || attr->index > 1)
        return ty_error_set(err, TY_E_RANGE, "index: expected 0 or 1");
    if (conv_y_type(attr, in[0], in[1], res, err) < 0 || conv_shape_of(&s, attr, in[0], in[1], err) < 0 ||
        ty_expect_result((ty_dtype)res->dtype, 1, (int64_t[]){s.groups * s.o}, &bias, err) < 0 ||
        ty_expect_type("b", in[2], &bias, err) < 0)
        return -1;
    return n_in > 3 && in[3] ? ty_expect_type("z", in[3], res, err) : 0;
}

int ty_op_infer_conv_dx(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type y;
    (void)n_in;
    if (conv_y_type(attr, &attr->type, in[1], &y, err) < 0 || ty_expect_type("dy", in[0], &y, err) < 0)
        return -1;
    *res = attr->type;
    return 0;
}

/* The gradient of a weight may be f32 where x and dy have 16 bits: it is then not rounded. */
int ty_op_infer_conv_dw(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type y, w = attr->type;
    (void)n_in;
    if (w.dtype == ty_wide_dtype((ty_dtype)in[0]->dtype))
        w.dtype = in[0]->dtype;
    if (conv_y_type(attr, in[0], &w, &y, err) < 0 || ty_expect_type("dy", in[1], &y, err) < 0)
        return -1;
    *res = attr->type;
    return 0;
}

/* What is done with n positions of a row: one weight, elements of x `step` apart, elements of y side by side. */
typedef void conv_row_fn(double *x, double *w, double *y, int64_t n, int64_t step);

/* Rows without gaps are apart, because the compiler makes vectors of them. Each y has its terms in the same order. */
static void conv_row_y(double *x, double *w, double *y, int64_t n, int64_t step)
{
    double weight = *w;
    if (step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] += weight * x[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] += weight * x[i * step];
}

static void conv_row_x(double *x, double *w, double *y, int64_t n, int64_t step)
{
    double weight = *w;
    if (step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] += weight * y[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        x[i * step] += weight * y[i];
}

static void conv_row_w(double *x, double *w, double *y, int64_t n, int64_t step)
{
    double sum = *w;
    for (int64_t i = 0; i < n; i++)
        sum += x[i * step] * y[i];
    *w = sum;
}

/* Where one tap of the window meets a plane: `depth` slices of `rows` rows of n positions, from x and y on, and how far
 * apart slices and rows lie. */
typedef struct conv_tap {
    int64_t x, y, n, rows, depth;
    int64_t x_row, y_row, x_slice, y_slice;
} conv_tap;

static conv_tap conv_tap_of(const ty_sliding *s, int64_t tap)
{
    int64_t k[3] = {tap / (s->size[1] * s->size[2]), tap / s->size[2] % s->size[1], tap % s->size[2]};
    int64_t first[3], end[3], at[3];
    for (int a = 0; a < 3; a++)
        ty_sliding_span(s, a, k[a], &first[a], &end[a], &at[a]);
    conv_tap t = {.x = (at[0] * s->in[1] + at[1]) * s->in[2] + at[2],
                  .y = (first[0] * s->out[1] + first[1]) * s->out[2] + first[2],
                  .n = end[2] - first[2],
                  .rows = end[1] - first[1],
                  .depth = end[0] - first[0],
                  .x_row = s->step[1] * s->in[2],
                  .y_row = s->out[2],
                  .x_slice = s->step[0] * s->in[1] * s->in[2],
                  .y_slice = s->out[1] * s->out[2]};
    if (s->step[2] == 1 && t.n == t.x_row && t.n == t.y_row && t.rows > 0) { /* rows without gaps are one */
        t.n *= t.rows;
        t.rows = 1;
    }
    return t;
}

/* All taps of one window over one plane of x and of y; `w` is that window. */
static void conv_plane(const ty_sliding *s, const conv_tap *taps, double *x, double *w, double *y, conv_row_fn *row)
{
    for (int64_t tap = 0; tap < s->size_elems; tap++) {
        const conv_tap *t = &taps[tap];
        for (int64_t d = 0; d < t->depth && t->n > 0; d++)
            for (int64_t h = 0; h < t->rows; h++)
                row(x + t->x + d * t->x_slice + h * t->x_row, w + tap, y + t->y + d * t->y_slice + h * t->y_row, t->n,
                    s->step[2]);
    }
}

static int conv_all(const conv_shape *s, double *x, double *w, double *y, conv_row_fn *row, ty_error *err)
{
    int64_t n_planes = s->batch * s->groups, n_taps = s->slide.size_elems;
    conv_tap *taps = malloc(sizeof *taps * (size_t)(n_taps + 1));
    if (!taps)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a window of %" PRId64 " taps", n_taps);
    for (int64_t tap = 0; tap < n_taps; tap++)
        taps[tap] = conv_tap_of(&s->slide, tap);
    for (int64_t plane = 0; plane < n_planes; plane++) /* batch and group together: both strides are the same */
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t c = 0; c < s->c; c++)
                conv_plane(&s->slide, taps, x + (plane * s->c + c) * s->slide.in_elems,
                           w + ((plane % s->groups * s->o + o) * s->c + c) * n_taps,
                           y + (plane * s->o + o) * s->slide.out_elems, row);
    free(taps);
    return 0;
}

/* `res` is the one of the three that is made. */
static int conv_ref(const ty_attr *attr, const ty_ref *x, const ty_ref *w, const ty_ref *y, ty_ref *res,
                    conv_row_fn *row, ty_error *err)
{
    conv_shape s;
    ty_ref first[3]; /* x, w, y */
    ty_type w_type = w->type;
    const ty_attr of_weights = ty_sliding_of_weights(attr), *laid[] = {attr, &of_weights, attr};
    const ty_ref *given[] = {x, w, y};
    w_type.dtype = x->type.dtype; /* a gradient may be wider */
    if (conv_shape_of(&s, attr, &x->type, &w_type, err) < 0)
        return -1;
    int rc = 0, n = 0;
    while (n < 3 && (rc = ty_sliding_enter(laid[n], given[n], &first[n], err)) == 0)
        n++;
    if (rc == 0)
        rc = conv_all(&s, first[0].f, first[1].f, first[2].f, row, err);
    while (n-- > 0)
        ty_sliding_leave(laid[n], &first[n], given[n] == res ? res : NULL);
    return rc;
}

int ty_op_ref_conv(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in;
    return conv_ref(attr, &in[0], &in[1], res, res, conv_row_y, err);
}

int ty_op_ref_conv_bias(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    if (ty_op_ref_conv(attr, in, 2, res, err) < 0)
        return -1;
    int64_t channels = ty_type_elems(&in[2].type), n = ty_type_elems(&res->type);
    int64_t plane = attr->flags & TY_SLIDING_LAST || n == 0 ? 1 : n / res->type.dim[0] / channels;
    for (int64_t i = 0; i < n; i++) {
        double y = res->f[i] + in[2].f[i / plane % channels] + (n_in > 3 ? in[3].f[i] : 0);
        res->f[i] = attr->index && y <= 0 ? 0 : y;
    }
    return 0;
}

int ty_op_ref_conv_dx(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in;
    return conv_ref(attr, res, &in[1], &in[0], res, conv_row_x, err);
}

int ty_op_ref_conv_dw(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in;
    return conv_ref(attr, &in[0], res, &in[1], res, conv_row_w, err);
}

/* One of the three ops with the geometry of `attr`. `like` gives the type of what it yields; unused by conv. */
static ty_val conv_emit(ty_graph *g, ty_op op, const ty_attr *attr, ty_val a, ty_val b, ty_val like)
{
    ty_attr own = *attr;
    own.type = op == TY_OP_CONV ? (ty_type){0} : *ty_graph_type(g, like);
    return ty_graph_emit(g, op, &own, (ty_val[]){a, b}, 2);
}

void ty_op_grad_conv(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_val x = ty_graph_in(g, node, 0), w = ty_graph_in(g, node, 1);
    din[0] = conv_emit(g, TY_OP_CONV_DX, attr, dres[0], w, x);
    din[1] = conv_emit(g, TY_OP_CONV_DW, attr, x, dres[0], w);
}

/* dres is a gradient of what has x's shape. */
void ty_op_grad_conv_dx(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_val dy = ty_graph_in(g, node, 0), w = ty_graph_in(g, node, 1);
    din[0] = conv_emit(g, TY_OP_CONV, attr, dres[0], w, TY_NONE);
    din[1] = conv_emit(g, TY_OP_CONV_DW, attr, dres[0], dy, w);
}

/* dres is a gradient of what has w's shape. */
void ty_op_grad_conv_dw(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_val x = ty_graph_in(g, node, 0), dy = ty_graph_in(g, node, 1);
    ty_val dw = ty_b_cast(g, dres[0], ty_b_dtype(g, x));
    din[0] = conv_emit(g, TY_OP_CONV_DX, attr, dy, dw, x);
    din[1] = conv_emit(g, TY_OP_CONV, attr, x, dw, TY_NONE);
}
