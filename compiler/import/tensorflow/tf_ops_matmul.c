/* tf_ops_matmul.c - products, einsum, and resizing, which is a product with a matrix for each axis. */
#include "compiler/import/einsum.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>

enum { MAX_SIZE = 1 << 14, MAX_MATRIX = 1 << 25 };

static ty_val turned(tf_ctx *c, ty_val x, bool turn)
{
    int64_t perm[TY_MAX_RANK];
    int rank = tf_rank(c, x);
    if (!turn || rank < 2)
        return x;
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ty_b_transpose(c->g, x, perm);
}

/* arg 1: of batches. */
void tf_op_matmul(tf_ctx *c)
{
    bool batch = c->row->arg;
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    if (tf_rank(c, a) < 2 || tf_rank(c, b) < 2) {
        tf_fail(c, TY_E_SHAPE, "both inputs must have 2 dimensions or more");
        return;
    }
    a = turned(c, a, tf_attr_bool(c->node, batch ? "adj_x" : "transpose_a", false));
    b = turned(c, b, tf_attr_bool(c->node, batch ? "adj_y" : "transpose_b", false));
    tf_set(c, 0, ty_b_matmul(c->g, a, b));
}

void tf_op_einsum(tf_ctx *c)
{
    ty_val *in = tf_alloc(c, (size_t)c->n_in, sizeof *in);
    const char *why = NULL;
    for (int i = 0; i < c->n_in; i++)
        in[i] = tf_in(c, i);
    if (c->n_in > TY_EINSUM_MAX_INPUTS) {
        tf_fail(c, TY_E_LIMIT, "at most %d inputs are possible", TY_EINSUM_MAX_INPUTS);
        return;
    }
    tf_set(c, 0, ty_einsum(c->g, tf_text(c, "equation", ""), in, c->n_in, &why));
    if (why)
        tf_fail_attr(c, "equation", "%s", why);
}

/* ---- resizing ------------------------------------------------------------------------------------------------------
 */

typedef struct resize {
    int64_t in, out;
    bool linear, align, half;
} resize;

/* [out, in]: what each result takes of each entry. */
static ty_val resize_matrix(tf_ctx *c, const resize *r, ty_dtype dtype)
{
    int64_t dim[] = {r->out, r->in};
    double *m = tf_alloc(c, (size_t)(r->in * r->out), sizeof *m);
    double scale = r->align && r->out > 1 ? (double)(r->in - 1) / (double)(r->out - 1) : (double)r->in / (double)r->out;
    for (int64_t o = 0; o < r->out; o++) {
        double at = r->half ? ((double)o + 0.5) * scale - (r->linear ? 0.5 : 0) : (double)o * scale;
        double low = r->linear || !r->align ? floor(at) : floor(at + 0.5), part = r->linear ? at - low : 0;
        int64_t first = low < 0 ? 0 : low > (double)(r->in - 1) ? r->in - 1 : (int64_t)low;
        double up = ceil(at);
        int64_t second = up < 0 ? 0 : up > (double)(r->in - 1) ? r->in - 1 : (int64_t)up;
        m[o * r->in + first] += 1 - part;
        m[o * r->in + second] += part;
    }
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
    ty_val y = ty_b_matmul(g, turned(c, m, back), ty_b_reshape(g, x, 3, flat));
    return ty_b_reshape(g, y, 4, t.dim);
}

/* images, [h, w]; the gradients: dy, and what was resized (linear) or its size. arg bit 0: linear, 1: the gradient. */
void tf_op_resize(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    bool linear = c->row->arg & 1, back = c->row->arg & 2;
    const int64_t *size = back && linear ? tf_type(c, tf_in(c, 1))->dim + 1 : NULL;
    int64_t n = 2;
    if (tf_rank(c, x) != 4 || (back && linear && tf_rank(c, tf_in(c, 1)) != 4)) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must be [batch, height, width, channels]");
        return;
    }
    if (!size && !tf_const_ints(c, 1, &size, &n))
        return;
    ty_dtype dtype = linear && !back ? TY_F32 : tf_dtype_of(c, x);
    if (!tf_is_float(c, x) && !linear)
        dtype = TY_F32;
    ty_val y = ty_b_cast(c->g, x, dtype);
    if (n != 2) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must be height and width");
        return;
    }
    for (int axis = 1; axis < 3; axis++) {
        int64_t here = tf_dim(c, x, axis), there = size[axis - 1];
        resize r = {.in = back ? there : here, .out = back ? here : there, .linear = linear};
        r.align = tf_attr_bool(c->node, "align_corners", false);
        r.half = tf_attr_bool(c->node, "half_pixel_centers", false);
        if (there < 1 || there > MAX_SIZE || here < 1 || here > MAX_SIZE || here * there > MAX_MATRIX) {
            tf_fail(c, TY_E_LIMIT, "a side of %lld entries to %lld", (long long)here, (long long)there);
            return;
        }
        if (here != there)
            y = resize_axis(c, y, resize_matrix(c, &r, dtype), axis, back);
    }
    tf_set(c, 0, linear ? y : ty_b_cast(c->g, y, tf_dtype_of(c, x)));
}
