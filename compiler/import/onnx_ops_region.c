/* onnx_ops_region.c - reading planes at points that are computed: boxes (RoiAlign), windows whose taps move
 * (DeformConv).
 *
 * Sources: K. He et al., Mask R-CNN, ICCV 2017; J. Dai et al., Deformable convolutional networks, ICCV 2017, with the
 * masks of X. Zhu et al., Deformable ConvNets v2, CVPR 2019. Letters: N batch, C channels, H rows, W columns.
 */
#include "compiler/import/onnx_import.h"
#include "compiler/import/picture.h"

/* [N, C, H, W] with channels last, and back. */
static ty_val region_last(ty_graph *g, ty_val x)
{
    return ty_b_transpose(g, x, (int64_t[]){0, 2, 3, 1});
}

static ty_val region_first(ty_graph *g, ty_val x)
{
    return ty_b_transpose(g, x, (int64_t[]){0, 3, 1, 2});
}

static ty_val region_clip(ty_graph *g, ty_val x, double lo, double hi)
{
    return ty_b_min(g, ty_b_max(g, x, ty_b_full_like(g, x, lo)), ty_b_full_like(g, x, hi));
}

/* ---- boxes ---- */

typedef struct boxes {
    onnx_ctx *c;
    ty_val x, picture; /* [N, H, W, C], [boxes] */
    int64_t n, out[2], grid, size[2];
    double scale, shift, least;
    bool is_max;
} boxes;

static bool boxes_read(onnx_ctx *c, boxes *b)
{
    static const char *const forms[] = {"half_pixel", "output_half_pixel", NULL}, *const modes[] = {"avg", "max", NULL};
    ty_val x = onnx_in(c, 0), rois = onnx_in(c, 1);
    bool is_old = c->opset < 16;
    int form = is_old ? 1 : onnx_attr_choice(c, "coordinate_transformation_mode", "half_pixel", forms);
    int mode = onnx_attr_choice(c, "mode", "avg", modes);
    if (c->failed)
        return false;
    if (onnx_rank(c, x) != 4 || onnx_rank(c, rois) != 2 || onnx_dim(c, rois, 1) != 4) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "must be [boxes, 4] for planes [N, C, H, W]");
        return false;
    }
    *b = (boxes){.c = c, .x = region_last(c->g, x), .picture = onnx_in(c, 2), .n = onnx_dim(c, rois, 0)};
    b->out[0] = onnx_attr_int(c, "output_height", 1);
    b->out[1] = onnx_attr_int(c, "output_width", 1);
    b->grid = onnx_attr_int(c, "sampling_ratio", 0);
    b->scale = onnx_attr_float(c, "spatial_scale", 1);
    b->shift = form == 0 ? 0.5 : 0;
    b->least = form == 0 ? -1 : 1;
    b->is_max = mode == 1;
    b->size[0] = onnx_dim(c, x, 2);
    b->size[1] = onnx_dim(c, x, 3);
    if (b->grid < 1 || b->grid > 64) {
        onnx_fail_attr(c, "sampling_ratio", "must be 1 to 64: with 0 how many points are read depends on the boxes");
        return false;
    }
    if (b->out[0] < 1 || b->out[1] < 1 || b->out[0] > 1 << 12 || b->out[1] > 1 << 12)
        onnx_fail_attr(c, "output_height", "and output_width must be 1 to %d", 1 << 12);
    return !c->failed;
}

/* Where axis 0 (rows) or 1 is read, in pixels: [boxes, out grid, 1] or [boxes, 1, out grid]. */
static ty_val boxes_points(const boxes *b, int axis)
{
    ty_graph *g = b->c->g;
    ty_val rois = ty_b_cast(g, onnx_in(b->c, 1), TY_F32);
    int64_t n = b->out[axis] * b->grid, dim[] = {b->n, axis ? 1 : n, axis ? n : 1}, one[] = {b->n, 1, 1};
    ty_val edge[2];
    for (int i = 0; i < 2; i++) {
        edge[i] = ty_b_slice_axis(g, rois, 1, 2 * i + 1 - axis, 2 * i + 2 - axis);
        edge[i] = ty_b_add_s(g, ty_b_mul_s(g, ty_b_reshape(g, edge[i], 3, one), b->scale), -b->shift);
    }
    ty_val length = ty_b_sub(g, edge[1], edge[0]);
    if (b->least > 0)
        length = ty_b_max(g, length, ty_b_full_like(g, length, b->least));
    ty_val at = ty_b_add_s(g, ty_b_iota(g, ty_type_make(TY_F32, 3, dim), axis ? 2 : 1), 0.5);
    return ty_b_add(g, edge[0], ty_b_mul(g, at, ty_b_mul_s(g, length, 1 / (double)n)));
}

/* Is it read at all: from one pixel before the first to one behind the last. */
static ty_val boxes_is_inside(ty_graph *g, ty_val at, int64_t n)
{
    ty_val low = ty_b_le(g, ty_b_full_like(g, at, -1), at);
    return ty_b_binary(g, TY_OP_AND, low, ty_b_le(g, at, ty_b_full_like(g, at, (double)n)));
}

/* The largest of the four pixels around a point, each times its share: what ONNX' max is. */
static ty_val boxes_largest(const boxes *b, const ty_picture_reader *r, ty_val x, ty_val y, const int64_t *dim)
{
    ty_graph *g = b->c->g;
    ty_val most = TY_NONE, low[2], part[2], at[2] = {y, x};
    for (int i = 0; i < 2; i++) {
        at[i] = region_clip(g, at[i], 0, (double)(b->size[i] - 1));
        low[i] = ty_b_unary(g, TY_OP_FLOOR, at[i]);
        part[i] = ty_b_sub(g, at[i], low[i]);
    }
    for (int k = 0; k < 4; k++) {
        ty_val share[2], to[2];
        for (int i = 0; i < 2; i++) {
            bool second = k >> i & 1;
            share[i] = second ? part[i] : ty_b_sub(g, ty_b_full_like(g, part[i], 1), part[i]);
            to[i] = second ? ty_b_add_s(g, low[i], 1) : low[i];
        }
        ty_val v = ty_picture_read(r, b->picture, to[1], to[0]);
        v = ty_b_mul(g, v, ty_b_reshape(g, ty_b_mul(g, share[0], share[1]), 4, dim));
        most = k ? ty_b_max(g, most, v) : v;
    }
    return most;
}

/* planes, boxes (x1, y1, x2, y2), whose planes: [boxes, C, rows, columns] */
void onnx_op_roi_align(onnx_ctx *c)
{
    ty_graph *g = c->g;
    boxes b;
    if (!boxes_read(c, &b))
        return;
    ty_val at[2], inside[2];
    int64_t rows = b.out[0] * b.grid, columns = b.out[1] * b.grid, dim[] = {b.n, rows, columns, 1};
    for (int i = 0; i < 2; i++) {
        at[i] = boxes_points(&b, i);
        inside[i] = boxes_is_inside(g, at[i], b.size[i]);
        at[i] = ty_b_broadcast(g, at[i], 3, dim);
    }
    ty_picture_reader r = {.g = g, .x = b.x, .fill = TY_FILL_NEAREST, .value = TY_NONE, .is_nearest = b.is_max};
    ty_val y = b.is_max ? boxes_largest(&b, &r, at[1], at[0], dim) : ty_picture_read(&r, b.picture, at[1], at[0]);
    if (y == TY_NONE)
        return;
    ty_val is = ty_b_reshape(g, ty_b_binary(g, TY_OP_AND, inside[0], inside[1]), 4, dim);
    y = ty_b_select(g, is, y, ty_b_full_like(g, y, 0));
    int64_t wide[] = {b.n, b.out[0], b.grid, b.out[1], b.grid, ty_b_dim(g, y, 3)};
    y = ty_b_reshape(g, y, 6, wide);
    y = b.is_max ? ty_b_reduce(g, y, TY_MAX, 1u << 2 | 1u << 4, false) : ty_b_mean(g, y, 1u << 2 | 1u << 4, false);
    onnx_set(c, 0, region_first(g, y));
}

/* ---- windows whose taps move ---- */

typedef struct moving {
    onnx_ctx *c;
    int64_t kernel[2], step[2], dil[2], pad[2], out[2];
    int64_t groups, offset_groups, taps;
} moving;

static bool moving_read(onnx_ctx *c, moving *m)
{
    ty_val x = onnx_in(c, 0), w = onnx_in(c, 1), offset = onnx_in(c, 2);
    int64_t pads[4];
    if (onnx_rank(c, x) != 4 || onnx_rank(c, w) != 4 || onnx_rank(c, offset) != 4) {
        onnx_fail(c, TY_E_UNSUPPORTED, "only planes [N, C, H, W] are possible");
        return false;
    }
    *m = (moving){.c = c, .groups = onnx_attr_int(c, "group", 1), .offset_groups = onnx_attr_int(c, "offset_group", 1)};
    if (!onnx_attr_int_list(c, "strides", 2, 1, m->step) || !onnx_attr_int_list(c, "dilations", 2, 1, m->dil) ||
        !onnx_attr_int_list(c, "pads", 4, 0, pads))
        return false;
    for (int i = 0; i < 2; i++) {
        m->kernel[i] = onnx_dim(c, w, i + 2);
        m->pad[i] = pads[i];
        m->out[i] = onnx_dim(c, offset, i + 2);
    }
    m->taps = m->kernel[0] * m->kernel[1];
    int64_t channels = onnx_dim(c, x, 1);
    if (m->groups < 1 || m->offset_groups < 1 || channels % m->offset_groups || channels % m->groups ||
        onnx_dim(c, w, 0) % m->groups || onnx_dim(c, w, 1) * m->groups != channels ||
        onnx_dim(c, offset, 1) != m->offset_groups * m->taps * 2)
        onnx_fail(c, TY_E_SHAPE, "groups, channels and offsets do not fit each other");
    return !c->failed;
}

/* Where the taps of offset group `k` read along an axis: [N, taps, rows, columns]. */
static ty_val moving_points(const moving *m, int64_t k, int axis)
{
    ty_graph *g = m->c->g;
    ty_val offset = onnx_in(m->c, 2);
    int64_t n = onnx_dim(m->c, offset, 0), dim[] = {n, m->taps, m->out[0], m->out[1]};
    int64_t split[] = {n, m->offset_groups * m->taps, 2, m->out[0] * m->out[1]};
    ty_val all = ty_b_slice_axis(g, ty_b_reshape(g, offset, 4, split), 2, axis, axis + 1);
    ty_val own = ty_b_reshape(g, ty_b_slice_axis(g, all, 1, k * m->taps, (k + 1) * m->taps), 4, dim);
    double *tap = TY_NEW_ARRAY(ty_graph_arena(g), double, m->taps + 1);
    for (int64_t t = 0; t < m->taps; t++)
        tap[t] = (double)((axis ? t % m->kernel[1] : t / m->kernel[1]) * m->dil[axis] - m->pad[axis]);
    ty_val from = onnx_const_from(m->c, TY_F32, 3, (int64_t[]){m->taps, 1, 1}, tap);
    ty_type line = ty_type_make(TY_F32, 3, (int64_t[]){1, axis ? 1 : m->out[0], axis ? m->out[1] : 1});
    ty_val at = ty_b_mul_s(g, ty_b_iota(g, line, axis ? 2 : 1), (double)m->step[axis]);
    return ty_b_add(g, ty_b_add(g, ty_b_cast(g, own, TY_F32), from), at);
}

/* What the taps of offset group k read: [N, rows, columns, channels of the group, taps]. */
static ty_val moving_taps(const moving *m, ty_val x, int64_t k)
{
    ty_graph *g = m->c->g;
    int64_t n = ty_b_dim(g, x, 0), each = ty_b_dim(g, x, 3) / m->offset_groups, area = m->out[0] * m->out[1];
    int64_t flat[] = {n, m->taps, area}, wide[] = {n, m->taps, m->out[0], m->out[1], each};
    ty_picture_reader r = {.g = g, .fill = TY_FILL_CONSTANT, .value = TY_NONE};
    r.x = ty_b_slice_axis(g, x, 3, k * each, (k + 1) * each);
    ty_val at_y = ty_b_reshape(g, moving_points(m, k, 0), 3, flat);
    ty_val at_x = ty_b_reshape(g, moving_points(m, k, 1), 3, flat);
    ty_val y = ty_picture_read(&r, TY_NONE, at_x, at_y);
    if (onnx_has(m->c, 4)) {
        ty_val mask = ty_b_slice_axis(g, onnx_in(m->c, 4), 1, k * m->taps, (k + 1) * m->taps);
        y = ty_b_mul(g, y, ty_b_reshape(g, mask, 4, (int64_t[]){n, m->taps, area, 1}));
    }
    return ty_b_transpose(g, ty_b_reshape(g, y, 5, wide), (int64_t[]){0, 2, 3, 4, 1});
}

/* x, weights, offsets (rows, columns), bias, masks */
void onnx_op_deform_conv(onnx_ctx *c)
{
    ty_graph *g = c->g;
    moving m;
    if (!moving_read(c, &m))
        return;
    ty_val x = region_last(g, onnx_in(c, 0)), w = onnx_in(c, 1);
    ty_val *part = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m.offset_groups + m.groups);
    for (int64_t k = 0; k < m.offset_groups; k++)
        part[k] = moving_taps(&m, x, k);
    ty_val taps = ty_b_concat_many(g, part, (int)m.offset_groups, 3);
    int64_t n = ty_b_dim(g, x, 0), in = onnx_dim(c, w, 1), out = onnx_dim(c, w, 0) / m.groups;
    int64_t flat[] = {n * m.out[0] * m.out[1], in * m.taps}, dim[] = {n, m.out[0], m.out[1], out};
    for (int64_t k = 0; k < m.groups; k++) {
        ty_val a = ty_b_reshape(g, ty_b_slice_axis(g, taps, 3, k * in, (k + 1) * in), 2, flat);
        ty_val b = ty_b_reshape(g, ty_b_slice_axis(g, w, 0, k * out, (k + 1) * out), 2, (int64_t[]){out, flat[1]});
        part[k] = ty_b_reshape(g, ty_b_dot(g, a, b, false, true), 4, dim);
    }
    ty_val y = region_first(g, ty_b_concat_many(g, part, (int)m.groups, 3));
    if (onnx_has(c, 3) && y != TY_NONE)
        y = ty_b_add(g, y, ty_b_reshape(g, onnx_in(c, 3), 4, (int64_t[]){1, ty_b_dim(g, y, 1), 1, 1}));
    onnx_set(c, 0, y);
}
