/* onnx_ops_conv.c - windows: convolution, its transpose, blocks added up, pooling.
 *
 * Letters: N batch, C channels in, O channels out, k window, s stride, p padding, d dilation.
 */
#include "compiler/import/onnx_import.h"

#include <string.h>

typedef enum auto_pad { PAD_NOTSET, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } auto_pad;

typedef struct window {
    int n; /* spatial axes */
    auto_pad pad;
    int64_t size[TY_MAX_RANK], step[TY_MAX_RANK], dil[TY_MAX_RANK], lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    int64_t extent[TY_MAX_RANK]; /* (k - 1) d + 1 */
} window;

static bool positive(onnx_ctx *c, const char *attr, const int64_t *v, int n, int64_t least)
{
    for (int i = 0; i < n; i++)
        if (v[i] < least || v[i] > 1 << 24) {
            onnx_fail_attr(c, attr, "entries must lie in %lld to %d", (long long)least, 1 << 24);
            return false;
        }
    return true;
}

/* Padding so that the result has ceil(in / stride) entries. */
static void pad_same(window *w, int i, int64_t in)
{
    int64_t out = (in + w->step[i] - 1) / w->step[i];
    int64_t total = (out - 1) * w->step[i] + w->extent[i] - in;
    total = total > 0 ? total : 0;
    w->lo[i] = w->pad == PAD_SAME_UPPER ? total / 2 : total - total / 2;
    w->hi[i] = total - w->lo[i];
}

/* Attributes of a window over x; kernel is the window of a weight, or NULL: from kernel_shape. */
static bool window_read(onnx_ctx *c, window *w, ty_val x, const int64_t *kernel)
{
    static const char *const pads_names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};
    int64_t pads[2 * TY_MAX_RANK];
    *w = (window){.n = onnx_rank(c, x) - 2};
    if (w->n < 1 || w->n > 3) {
        onnx_fail_input(c, 0, TY_E_UNSUPPORTED, "must have 3 to 5 dimensions");
        return false;
    }
    if (!kernel && !onnx_find_attr(c, "kernel_shape")) {
        onnx_fail(c, TY_E_ATTRIBUTE, "%s: attribute kernel_shape is missing", c->node->op_type);
        return false;
    }
    w->pad = (auto_pad)onnx_attr_choice(c, "auto_pad", "NOTSET", pads_names);
    if (!onnx_attr_int_list(c, "kernel_shape", w->n, 1, w->size) ||
        !onnx_attr_int_list(c, "strides", w->n, 1, w->step) || !onnx_attr_int_list(c, "dilations", w->n, 1, w->dil) ||
        !onnx_attr_int_list(c, "pads", 2 * w->n, 0, pads))
        return false;
    for (int i = 0; i < w->n && kernel; i++) {
        if (onnx_find_attr(c, "kernel_shape") && w->size[i] != kernel[i])
            onnx_fail_attr(c, "kernel_shape", "is not the weight's %lld", (long long)kernel[i]);
        w->size[i] = kernel[i];
    }
    if (c->failed || !positive(c, "kernel_shape", w->size, w->n, 1) || !positive(c, "strides", w->step, w->n, 1) ||
        !positive(c, "dilations", w->dil, w->n, 1) || !positive(c, "pads", pads, 2 * w->n, 0))
        return false;
    for (int i = 0; i < w->n; i++) {
        w->extent[i] = (w->size[i] - 1) * w->dil[i] + 1;
        w->lo[i] = w->pad == PAD_NOTSET ? pads[i] : 0;
        w->hi[i] = w->pad == PAD_NOTSET ? pads[i + w->n] : 0;
        if (w->pad == PAD_SAME_UPPER || w->pad == PAD_SAME_LOWER)
            pad_same(w, i, onnx_dim(c, x, i + 2));
    }
    return true;
}

static ty_attr window_attr(const window *w)
{
    ty_attr a = {.n = (uint32_t)w->n, .groups = 1};
    for (int i = 0; i < w->n; i++) {
        a.size[i] = w->size[i];
        a.step[i] = w->step[i];
        a.dil[i] = w->dil[i];
        a.lo[i] = w->lo[i];
        a.hi[i] = w->hi[i];
    }
    return a;
}

ty_val onnx_per_channel(onnx_ctx *c, ty_val v, int rank)
{
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == 1 ? ty_type_elems(onnx_type_of(c, v)) : 1;
    return ty_b_reshape(c->g, v, rank, dim);
}

/* Zeros are none, whatever their shape: where a convolution over volumes has no bias, PyTorch's dynamo exporter writes
 * zeros [channels, 2] (torchlib's conv3d, onnxscript 0.7). */
static ty_val add_bias(onnx_ctx *c, ty_val y)
{
    double number;
    if (!onnx_has(c, 2) || y == TY_NONE || (ty_graph_splat_value(c->g, onnx_in(c, 2), &number) && number == 0))
        return y;
    int64_t channels = onnx_dim(c, y, 1);
    if (ty_type_elems(onnx_type_of(c, onnx_in(c, 2))) != channels) {
        onnx_fail_input(c, 2, TY_E_SHAPE, "must have a number a channel, %lld", (long long)channels);
        return TY_NONE;
    }
    return ty_b_add(c->g, y, onnx_per_channel(c, onnx_in(c, 2), onnx_rank(c, y)));
}

/* ---- convolution --------------------------------------------------------------------------------------------------
 */

static bool conv_weight_fits(onnx_ctx *c, ty_val x, ty_val w)
{
    if (onnx_rank(c, w) == onnx_rank(c, x) && onnx_rank(c, x) >= 3)
        return true;
    onnx_fail_input(c, 1, TY_E_SHAPE, "must have %d dimensions, at least 3", onnx_rank(c, x));
    return false;
}

void onnx_op_conv(onnx_ctx *c)
{
    ty_val in[2] = {onnx_in(c, 0), onnx_in(c, 1)};
    window w;
    if (!conv_weight_fits(c, in[0], in[1]) || !window_read(c, &w, in[0], onnx_type_of(c, in[1])->dim + 2))
        return;
    ty_attr a = window_attr(&w);
    a.groups = onnx_attr_int(c, "group", 1);
    onnx_set(c, 0, add_bias(c, ty_graph_emit(c->g, TY_OP_CONV, &a, in, 2)));
}

typedef struct transposed {
    int64_t out[TY_MAX_RANK]; /* spatial dims of the result */
    bool direct;              /* conv_dx gives it at once */
} transposed;

/* Sizes and paddings as the ONNX text of ConvTranspose has them. */
static bool transposed_shape(onnx_ctx *c, window *w, ty_val x, transposed *t)
{
    int64_t extra[TY_MAX_RANK], wanted[TY_MAX_RANK];
    bool has_shape = onnx_find_attr(c, "output_shape") != NULL;
    if (!onnx_attr_int_list(c, "output_padding", w->n, 0, extra) || !positive(c, "output_padding", extra, w->n, 0) ||
        !onnx_attr_int_list(c, "output_shape", w->n, 1, wanted) || !positive(c, "output_shape", wanted, w->n, 1))
        return false;
    bool same = w->pad == PAD_SAME_UPPER || w->pad == PAD_SAME_LOWER;
    t->direct = true;
    for (int i = 0; i < w->n; i++) {
        int64_t in = onnx_dim(c, x, i + 2), full = w->step[i] * (in - 1) + extra[i] + w->extent[i];
        if (extra[i] >= w->step[i] && extra[i] >= w->dil[i]) {
            onnx_fail_attr(c, "output_padding", "must be smaller than stride or dilation (%lld, %lld)",
                           (long long)w->step[i], (long long)w->dil[i]);
            return false;
        }
        if (same || has_shape) {
            int64_t total = full - (has_shape ? wanted[i] : in * w->step[i]);
            w->lo[i] = total < 0 ? 0 : w->pad == PAD_SAME_UPPER ? total / 2 : total - total / 2;
            w->hi[i] = total - w->lo[i];
        }
        t->out[i] = full - w->lo[i] - w->hi[i];
        t->direct = t->direct && w->lo[i] >= 0 && w->hi[i] >= 0 && extra[i] < w->step[i];
    }
    return true;
}

/* The whole result without padding, then the part that is wanted; what lies beyond it is zero. */
static ty_val transposed_cut(onnx_ctx *c, const window *w, const transposed *t, ty_val y)
{
    int rank = w->n + 2;
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0}, pad_lo[TY_MAX_RANK] = {0}, pad_hi[TY_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        int64_t dim = onnx_dim(c, y, i), from = i < 2 ? 0 : w->lo[i - 2], to = i < 2 ? dim : from + t->out[i - 2];
        pad_lo[i] = from < 0 ? -from : 0;
        pad_hi[i] = to > dim ? to - dim : 0;
        lo[i] = from < 0 ? 0 : from;
        hi[i] = to > dim ? dim : to;
        if (lo[i] > hi[i]) {
            onnx_fail(c, TY_E_SHAPE, "ConvTranspose: padding takes more than there is");
            return TY_NONE;
        }
    }
    return ty_b_pad(c->g, ty_b_slice(c->g, y, lo, hi, NULL), pad_lo, pad_hi, 0);
}

void onnx_op_conv_transpose(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), weight = onnx_in(c, 1), in[2] = {x, weight};
    window w;
    transposed t;
    if (!conv_weight_fits(c, x, weight) || !window_read(c, &w, x, onnx_type_of(c, weight)->dim + 2) ||
        !transposed_shape(c, &w, x, &t))
        return;
    ty_attr a = window_attr(&w);
    a.groups = onnx_attr_int(c, "group", 1);
    int64_t dim[TY_MAX_RANK] = {onnx_dim(c, x, 0), a.groups > 0 ? onnx_dim(c, weight, 1) * a.groups : 0};
    for (int i = 0; i < w.n; i++) {
        a.lo[i] = t.direct ? w.lo[i] : 0;
        a.hi[i] = t.direct ? w.hi[i] : 0;
        dim[i + 2] = t.direct ? t.out[i] : w.step[i] * (onnx_dim(c, x, i + 2) - 1) + w.extent[i];
    }
    if (!onnx_shape_ok(c, w.n + 2, dim))
        return;
    a.type = ty_type_make(onnx_dtype_of(c, x), w.n + 2, dim);
    ty_val y = ty_graph_emit(c->g, TY_OP_CONV_DX, &a, in, 2);
    if (y != TY_NONE && !t.direct)
        y = transposed_cut(c, &w, &t, y);
    onnx_set(c, 0, add_bias(c, y));
}

/* ---- blocks added up ----------------------------------------------------------------------------------------------
 */

enum { MAX_BLOCK_AXES = TY_MAX_RANK - 4, MAX_BLOCK = 4096 };

/* Of Col2Im: K numbers of a block lie at L places of the image. */
typedef struct blocks {
    int n; /* axes of the image */
    int64_t image[MAX_BLOCK_AXES], size[MAX_BLOCK_AXES], places[MAX_BLOCK_AXES];
    int64_t step[MAX_BLOCK_AXES], dil[MAX_BLOCK_AXES], pad[2 * MAX_BLOCK_AXES];
    int64_t k, l;
} blocks;

static bool blocks_lists(onnx_ctx *c, blocks *b)
{
    const int64_t *image, *size;
    int64_t n, n_size;
    if (!onnx_const_ints(c, 1, &image, &n) || !onnx_const_ints(c, 2, &size, &n_size))
        return false;
    if (n < 1 || n > MAX_BLOCK_AXES || n_size != n) {
        onnx_fail_input(c, 2, TY_E_SHAPE, "has %lld sizes of a block for an image of %lld axes (1 to %d are possible)",
                        (long long)n_size, (long long)n, MAX_BLOCK_AXES);
        return false;
    }
    b->n = (int)n;
    memcpy(b->image, image, sizeof *image * (size_t)n);
    memcpy(b->size, size, sizeof *size * (size_t)n);
    return onnx_shape_ok(c, b->n, b->image) && onnx_attr_int_list(c, "strides", b->n, 1, b->step) &&
           onnx_attr_int_list(c, "dilations", b->n, 1, b->dil) && onnx_attr_int_list(c, "pads", 2 * b->n, 0, b->pad) &&
           positive(c, "strides", b->step, b->n, 1) && positive(c, "dilations", b->dil, b->n, 1) &&
           positive(c, "pads", b->pad, 2 * b->n, 0);
}

/* x is [N, C * K, L]. */
static bool blocks_read(onnx_ctx *c, blocks *b, ty_val x)
{
    if (!blocks_lists(c, b))
        return false;
    b->k = b->l = 1;
    for (int i = 0; i < b->n; i++) {
        int64_t room = b->image[i] + b->pad[i] + b->pad[b->n + i];
        if (b->size[i] < 1 || b->size[i] > MAX_BLOCK || (b->k *= b->size[i]) > MAX_BLOCK) {
            onnx_fail_input(c, 2, TY_E_UNSUPPORTED, "has blocks of %lld along axis %d; of 1 to %d numbers are possible",
                            (long long)b->size[i], i, MAX_BLOCK);
            return false;
        }
        int64_t left = room - 1 - b->dil[i] * (b->size[i] - 1);
        b->places[i] = left < 0 ? 0 : left / b->step[i] + 1;
        b->l *= b->places[i];
    }
    if (onnx_rank(c, x) == 3 && onnx_dim(c, x, 1) % b->k == 0 && onnx_dim(c, x, 2) == b->l && b->l > 0)
        return true;
    onnx_fail_input(c, 0, TY_E_SHAPE, "must be [N, C * %lld, %lld], the numbers of a block by its places",
                    (long long)b->k, (long long)b->l);
    return false;
}

/* [N, C, K, places] to [N, C, K, places * step]: zeros between the places. */
static ty_val blocks_spread(ty_graph *g, const blocks *b, ty_val x)
{
    for (int i = 0; i < b->n; i++) {
        ty_type t = *ty_graph_type(g, x);
        int64_t dim[TY_MAX_RANK], none[TY_MAX_RANK] = {0}, more[TY_MAX_RANK] = {0};
        for (int d = 0, at = 0; d < t.rank; d++) {
            dim[at++] = t.dim[d];
            if (d == 3 + i)
                dim[at++] = 1;
        }
        more[4 + i] = b->step[i] - 1;
        t.dim[3 + i] *= b->step[i];
        x = ty_b_reshape(g, ty_b_pad(g, ty_b_reshape(g, x, t.rank + 1, dim), none, more, 0), t.rank, t.dim);
    }
    return x;
}

/* Number k of all blocks, where it lies in the image; TY_NONE if nowhere. x: what blocks_spread gives. */
static ty_val blocks_laid(ty_graph *g, const blocks *b, ty_val x, int64_t k)
{
    const ty_type *t = ty_graph_type(g, x);
    int64_t lo[TY_MAX_RANK] = {0, 0, k}, hi[TY_MAX_RANK] = {t->dim[0], t->dim[1], k + 1};
    int64_t before[TY_MAX_RANK] = {0}, after[TY_MAX_RANK] = {0}, dim[TY_MAX_RANK] = {t->dim[0], t->dim[1]};
    for (int i = b->n; i-- > 0; k /= b->size[i]) {
        int64_t from = b->dil[i] * (k % b->size[i]) - b->pad[i], length = t->dim[3 + i], end = b->image[i] - from;
        lo[3 + i] = from < 0 ? -from : 0;
        hi[3 + i] = end < length ? end : length;
        if (lo[3 + i] >= hi[3 + i])
            return TY_NONE;
        dim[2 + i] = hi[3 + i] - lo[3 + i];
        before[2 + i] = from < 0 ? 0 : from;
        after[2 + i] = b->image[i] - before[2 + i] - dim[2 + i];
    }
    ty_val part = ty_b_reshape(g, ty_b_slice(g, x, lo, hi, NULL), b->n + 2, dim);
    return ty_b_pad(g, part, before, after, 0);
}

void onnx_op_col2im(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), sum = TY_NONE;
    blocks b;
    if (!blocks_read(c, &b, x))
        return;
    int64_t dim[TY_MAX_RANK] = {onnx_dim(c, x, 0), onnx_dim(c, x, 1) / b.k, b.k}, image[TY_MAX_RANK] = {dim[0], dim[1]};
    memcpy(dim + 3, b.places, sizeof *dim * (size_t)b.n);
    memcpy(image + 2, b.image, sizeof *image * (size_t)b.n);
    if (!onnx_shape_ok(c, b.n + 2, image))
        return;
    x = blocks_spread(g, &b, ty_b_reshape(g, x, b.n + 3, dim));
    for (int64_t k = 0; k < b.k; k++) {
        ty_val part = blocks_laid(g, &b, x, k);
        sum = sum == TY_NONE ? part : part == TY_NONE ? sum : ty_b_add(g, sum, part);
    }
    onnx_set(c, 0, sum == TY_NONE ? ty_b_full(g, onnx_dtype_of(c, x), b.n + 2, image, 0) : sum);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------
 */

/* A window that is wider than the padded input, by less than a step, still stands there once: it has what there is.
 * (Hugging Face's EfficientNet pools 2 x 2 with a window of 2,560.) */
static void pool_clip(window *w, int i, int64_t padded)
{
    w->size[i] = (padded - 1) / w->dil[i] + 1;
    w->extent[i] = (w->size[i] - 1) * w->dil[i] + 1;
}

/* With ceil_mode, the high padding grows until the last window fits; a window that would begin beyond the padded input
 * is dropped (PyTorch's rule, ONNX's since 1.16). */
static void pool_ceil(onnx_ctx *c, window *w, ty_val x)
{
    if (!onnx_attr_int(c, "ceil_mode", 0) || w->pad != PAD_NOTSET)
        return;
    for (int i = 0; i < w->n; i++) {
        int64_t in = onnx_dim(c, x, i + 2), room = in + w->lo[i] + w->hi[i] - w->extent[i];
        if (room < 0 && room + w->step[i] > 0 && in > 0)
            pool_clip(w, i, room + w->extent[i]);
        if (room < 0)
            continue;
        int64_t out = (room + w->step[i] - 1) / w->step[i] + 1;
        if ((out - 1) * w->step[i] >= in + w->lo[i])
            out--;
        int64_t need = (out - 1) * w->step[i] + w->extent[i] - in - w->lo[i];
        w->hi[i] = need > w->hi[i] ? need : w->hi[i];
    }
}

/* i32 positions in the plane to i64 positions in the whole tensor, row- or column-major inside the plane. */
static ty_val pool_indices(onnx_ctx *c, const window *w, ty_val index, ty_val x)
{
    ty_graph *g = c->g;
    const ty_type xt = *onnx_type_of(c, x);
    ty_type planes = {.dtype = TY_I64, .rank = xt.rank, .dim = {xt.dim[0], xt.dim[1]}};
    int64_t area = 1;
    for (int i = 0; i < w->n; i++) {
        area *= xt.dim[i + 2];
        planes.dim[i + 2] = 1;
    }
    ty_val at = ty_b_cast(g, index, TY_I64);
    if (onnx_attr_int(c, "storage_order", 0) && w->n == 2) {
        ty_val cols = ty_b_scalar(g, TY_I64, (double)xt.dim[3]);
        ty_val row = ty_b_div(g, at, cols), col = ty_b_binary(g, TY_OP_REM, at, cols);
        at = ty_b_add(g, ty_b_mul_s(g, col, (double)xt.dim[2]), row);
    }
    ty_val n = ty_b_mul_s(g, ty_b_iota(g, planes, 0), (double)(xt.dim[1] * area));
    ty_val ch = ty_b_mul_s(g, ty_b_iota(g, planes, 1), (double)area);
    return ty_b_add(g, at, ty_b_add(g, n, ch));
}

void onnx_op_max_pool(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    window w;
    if (!window_read(c, &w, x, NULL))
        return;
    pool_ceil(c, &w, x);
    ty_attr a = window_attr(&w);
    ty_val y = ty_graph_emit(c->g, TY_OP_POOL_MAX, &a, &x, 1);
    onnx_set(c, 0, y);
    if (y != TY_NONE && onnx_wants(c, 1))
        onnx_set(c, 1, pool_indices(c, &w, ty_val_make(ty_val_node(y), 1), x));
}

/* Taps of the window at output o that lie in [from, to). */
static int64_t count_taps(const window *w, int axis, int64_t o, int64_t from, int64_t to)
{
    int64_t n = 0, first = o * w->step[axis] - w->lo[axis];
    for (int64_t k = 0; k < w->size[axis]; k++) {
        int64_t at = first + k * w->dil[axis];
        n += at >= from && at < to;
    }
    return n;
}

/* Number of elements that each output averages, as a constant of the result's spatial shape. */
static ty_val pool_counts(onnx_ctx *c, const window *w, const int64_t *hi_given, ty_val x, ty_val y)
{
    bool padded = onnx_attr_int(c, "count_include_pad", 0);
    ty_dtype dtype = onnx_dtype_of(c, y);
    ty_val counts = ty_b_scalar(c->g, dtype, 1);
    for (int i = 0; i < w->n; i++) {
        int64_t n = onnx_dim(c, y, i + 2), in = onnx_dim(c, x, i + 2), dim[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        double *v = onnx_alloc(c, (size_t)n, sizeof *v);
        for (int64_t o = 0; o < n; o++)
            v[o] = (double)count_taps(w, i, o, padded ? -w->lo[i] : 0, padded ? in + hi_given[i] : in);
        dim[i + 2] = n;
        counts = ty_b_mul(c->g, counts, onnx_const_from(c, dtype, w->n + 2, dim, v));
    }
    return counts;
}

void onnx_op_average_pool(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    window w;
    int64_t hi_given[TY_MAX_RANK];
    if (!window_read(c, &w, x, NULL))
        return;
    for (int i = 0; i < w.n; i++)
        hi_given[i] = w.hi[i];
    pool_ceil(c, &w, x);
    ty_attr a = window_attr(&w);
    ty_val y = ty_graph_emit(c->g, TY_OP_POOL_SUM, &a, &x, 1);
    if (y == TY_NONE)
        return;
    for (int i = 0; i < w.n; i++)
        if (onnx_dim(c, y, i + 2) > 1 << 20 || w.size[i] > 1 << 12) {
            onnx_fail(c, TY_E_LIMIT, "AveragePool: a window of %lld over %lld results is too large",
                      (long long)w.size[i], (long long)onnx_dim(c, y, i + 2));
            return;
        }
    onnx_set(c, 0, ty_b_div(c->g, y, pool_counts(c, &w, hi_given, x, y)));
}

/* (sum |x|^p)^(1/p) */
static ty_val lp_root(ty_graph *g, ty_val sum, double p)
{
    return p == 1   ? sum
           : p == 2 ? ty_b_unary(g, TY_OP_SQRT, sum)
                    : ty_b_binary(g, TY_OP_POW, sum, ty_b_full_like(g, sum, 1 / p));
}

static ty_val lp_power(ty_graph *g, ty_val x, double p)
{
    ty_val a = ty_b_unary(g, TY_OP_ABS, x);
    return p == 1 ? a : p == 2 ? ty_b_square(g, x) : ty_b_binary(g, TY_OP_POW, a, ty_b_full_like(g, a, p));
}

void onnx_op_lp_pool(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    window w;
    double p = c->opset < 2 ? onnx_attr_float(c, "p", 2) : (double)onnx_attr_int(c, "p", 2);
    if (!window_read(c, &w, x, NULL))
        return;
    pool_ceil(c, &w, x);
    ty_attr a = window_attr(&w);
    ty_val powers = lp_power(c->g, x, p);
    onnx_set(c, 0, lp_root(c->g, ty_graph_emit(c->g, TY_OP_POOL_SUM, &a, &powers, 1), p));
}

/* arg: the ty_combine; TY_SUM stands for the mean. */
void onnx_op_global_pool(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    if (onnx_rank(c, x) < 2) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
        return;
    }
    uint32_t axes = ty_b_all_axes(c->g, x) & ~3u;
    if (c->row->arg == TY_SUM)
        onnx_set(c, 0, ty_b_mean(c->g, x, axes, true));
    else
        onnx_set(c, 0, ty_b_reduce(c->g, x, (ty_combine)c->row->arg, axes, true));
}

void onnx_op_global_lp_pool(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    double p = c->opset < 2 ? onnx_attr_float(c, "p", 2) : (double)onnx_attr_int(c, "p", 2);
    if (onnx_rank(c, x) < 2) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
        return;
    }
    ty_val sum = ty_b_sum(c->g, lp_power(c->g, x, p), ty_b_all_axes(c->g, x) & ~3u, true);
    onnx_set(c, 0, lp_root(c->g, sum, p));
}

/* Puts values back at the flat positions that MaxPool gave. */
void onnx_op_max_unpool(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    window w;
    int64_t dim[TY_MAX_RANK], n_out = 1;
    if (!window_read(c, &w, x, NULL))
        return;
    const int64_t *wanted = NULL;
    int64_t n = 0;
    if (onnx_has(c, 2) && !onnx_const_ints(c, 2, &wanted, &n))
        return;
    if (wanted && n != w.n + 2) {
        onnx_fail_input(c, 2, TY_E_SHAPE, "must have %d entries", w.n + 2);
        return;
    }
    int64_t plain[TY_MAX_RANK] = {onnx_dim(c, x, 0), onnx_dim(c, x, 1)};
    for (int i = 0; i < w.n; i++)
        plain[i + 2] = (onnx_dim(c, x, i + 2) - 1) * w.step[i] - w.lo[i] - w.hi[i] + w.size[i];
    for (int i = 0; i < w.n + 2; i++)
        dim[i] = wanted ? wanted[i] : plain[i];
    if (!onnx_shape_ok(c, w.n + 2, dim))
        return;
    /* Positions count in the shape without output_shape. */
    for (int i = 0; i < w.n + 2; i++)
        n_out *= plain[i] > 0 ? plain[i] : 0;
    ty_val zeros = ty_b_full(g, onnx_dtype_of(c, x), 1, &n_out, 0);
    ty_val index = ty_b_flatten(g, ty_b_cast(g, onnx_in(c, 1), TY_I64));
    ty_val y = ty_b_reshape(g, ty_b_put(g, zeros, index, ty_b_flatten(g, x), 0, TY_SET), w.n + 2, plain);
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    for (int i = 0; i < w.n + 2 && wanted; i++)
        hi[i] = dim[i] - plain[i];
    for (int i = 0; i < w.n + 2; i++)
        if (hi[i] < 0) {
            onnx_fail_input(c, 2, TY_E_SHAPE, "is smaller than the unpooled shape");
            return;
        }
    onnx_set(c, 0, wanted ? ty_b_pad(g, y, lo, hi, 0) : y);
}
