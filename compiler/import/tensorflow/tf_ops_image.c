/* tf_ops_image.c - pictures: colours, reading at points between pixels, patches. */
#include "compiler/import/picture.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

enum { MAX_POSITIONS = 1 << 22 };

/* ---- colours ---- */

static bool image_has_colours(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    if (tf_rank(c, x) < 1 || tf_dim(c, x, tf_rank(c, x) - 1) != 3)
        tf_fail_input(c, 0, TY_E_SHAPE, "must have 3 channels");
    return !c->failed;
}

/* arg 1: from hue, saturation, value. */
void tf_op_hsv(tf_ctx *c)
{
    if (image_has_colours(c))
        tf_set(c, 0, (c->row->arg ? ty_picture_rgb : ty_picture_hsv)(c->g, tf_in(c, 0)));
}

void tf_op_adjust_hue(tf_ctx *c)
{
    if (image_has_colours(c))
        tf_set(c, 0, ty_picture_turn_hue(c->g, tf_in(c, 0), tf_in(c, 1)));
}

void tf_op_adjust_saturation(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val part[3];
    if (!image_has_colours(c))
        return;
    ty_picture_apart(g, ty_picture_hsv(g, tf_in(c, 0)), part);
    part[1] = ty_b_mul(g, part[1], tf_in(c, 1));
    part[1] = ty_b_min(g, ty_b_max(g, part[1], ty_b_full_like(g, part[1], 0)), ty_b_full_like(g, part[1], 1));
    tf_set(c, 0, ty_picture_rgb(g, ty_picture_together(g, part)));
}

void tf_op_adjust_contrast(tf_ctx *c)
{
    if (tf_rank(c, tf_in(c, 0)) < 3)
        tf_fail_input(c, 0, TY_E_SHAPE, "must be [.., height, width, channels]");
    else
        tf_set(c, 0, ty_picture_contrast(c->g, tf_in(c, 0), tf_in(c, 1)));
}

/* ---- reading between pixels ---- */

static bool image_choice(tf_ctx *c, const char *attr, const char *absent, const char *const *words, int *out)
{
    const char *text = tf_text(c, attr, absent);
    for (*out = 0; words[*out]; ++*out)
        if (strcmp(text, words[*out]) == 0)
            return true;
    tf_fail_attr(c, attr, "\"%.30s\" is not known", text);
    return false;
}

/* Column i of transforms [B, 8] or [1, 8], as [.., 1, 1]. */
static ty_val image_column(tf_ctx *c, ty_val transforms, int i)
{
    ty_val column = ty_b_slice_axis(c->g, transforms, 1, i, i + 1);
    return ty_b_reshape(c->g, column, 3, (int64_t[]){tf_dim(c, transforms, 0), 1, 1});
}

/* images, transforms, [h, w], fill value (of V3) */
void tf_op_image_projective(tf_ctx *c)
{
    static const char *const fills[] = {"REFLECT", "WRAP", "CONSTANT", "NEAREST", NULL};
    static const char *const filters[] = {"BILINEAR", "NEAREST", NULL};
    ty_val x = tf_in(c, 0), t = tf_in(c, 1);
    const int64_t *size;
    int64_t n;
    int fill, filter;
    if (!tf_const_ints(c, 2, &size, &n) || !image_choice(c, "fill_mode", "CONSTANT", fills, &fill) ||
        !image_choice(c, "interpolation", "", filters, &filter))
        return;
    if (tf_rank(c, x) != 4 || tf_rank(c, t) != 2 || tf_dim(c, t, 1) != 8 || n != 2 ||
        (tf_dim(c, t, 0) != 1 && tf_dim(c, t, 0) != tf_dim(c, x, 0))) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must be [batch, 8] for images [batch, height, width, channels]");
        return;
    }
    ty_picture_reader r = {.g = c->g, .x = x, .fill = (ty_picture_fill)fill, .is_nearest = filter == 1};
    r.value = tf_has(c, 3) ? ty_b_cast(c->g, tf_in(c, 3), tf_dtype_of(c, x)) : TY_NONE;
    ty_picture_map m = {image_column(c, t, 0), image_column(c, t, 1), image_column(c, t, 2), image_column(c, t, 3),
                        image_column(c, t, 4), image_column(c, t, 5), image_column(c, t, 6), image_column(c, t, 7)};
    tf_set(c, 0, ty_picture_project(&r, &m, size[0], size[1]));
}

/* Where the `out` results of boxes [N, 1] from lo to hi, in shares of an axis of n, are read: [N, out]. */
static ty_val image_crop_points(tf_ctx *c, ty_val lo, ty_val hi, int64_t n, int64_t out)
{
    ty_graph *g = c->g;
    int64_t dim[] = {tf_dim(c, lo, 0), out};
    double last = (double)(n - 1);
    if (out == 1)
        return ty_b_mul_s(g, ty_b_add(g, lo, hi), last / 2);
    ty_val step = ty_b_mul_s(g, ty_b_sub(g, hi, lo), last / (double)(out - 1));
    ty_val at = ty_b_iota(g, ty_type_make(TY_F32, 2, dim), 1);
    return ty_b_add(g, ty_b_mul_s(g, lo, last), ty_b_mul(g, at, step));
}

/* Are points within 0 .. n - 1? */
static ty_val image_is_inside(tf_ctx *c, ty_val at, int64_t n)
{
    ty_graph *g = c->g;
    ty_val above = ty_b_le(g, ty_b_full_like(g, at, 0), at);
    return ty_b_binary(g, TY_OP_AND, above, ty_b_le(g, at, ty_b_full_like(g, at, (double)(n - 1))));
}

/* images, boxes [N, 4] (y1, x1, y2, x2), whose image [N], [h, w] */
void tf_op_crop_and_resize(tf_ctx *c)
{
    static const char *const methods[] = {"bilinear", "nearest", NULL};
    ty_graph *g = c->g;
    ty_val x = ty_b_cast(g, tf_in(c, 0), TY_F32), boxes = tf_in(c, 1), at[2], edge[4];
    const int64_t *size;
    int64_t n;
    int method;
    if (!tf_const_ints(c, 3, &size, &n) || !image_choice(c, "method", "bilinear", methods, &method))
        return;
    if (tf_rank(c, tf_in(c, 0)) != 4 || tf_rank(c, boxes) != 2 || tf_dim(c, boxes, 1) != 4 || n != 2 || size[0] < 1 ||
        size[1] < 1 || tf_rank(c, tf_in(c, 2)) != 1 || tf_dim(c, tf_in(c, 2), 0) != tf_dim(c, boxes, 0)) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must be [boxes, 4] for images [batch, height, width, channels]");
        return;
    }
    for (int i = 0; i < 4; i++)
        edge[i] = ty_b_slice_axis(g, boxes, 1, i, i + 1);
    for (int i = 0; i < 2; i++) {
        int64_t dim[] = {tf_dim(c, boxes, 0), i == 0 ? size[0] : 1, i == 1 ? size[1] : 1};
        at[i] = image_crop_points(c, edge[i], edge[i + 2], tf_dim(c, x, i + 1), size[i]);
        at[i] = ty_b_reshape(g, at[i], 3, dim);
    }
    int64_t plane[] = {tf_dim(c, boxes, 0), size[0], size[1], 1};
    ty_val inside = ty_b_binary(g, TY_OP_AND, image_is_inside(c, at[0], tf_dim(c, x, 1)),
                                image_is_inside(c, at[1], tf_dim(c, x, 2)));
    ty_picture_reader r = {.g = g, .x = x, .fill = TY_FILL_NEAREST, .is_nearest = method == 1, .value = TY_NONE};
    ty_val y = ty_picture_read(&r, tf_in(c, 2), ty_b_broadcast(g, at[1], 3, plane), ty_b_broadcast(g, at[0], 3, plane));
    ty_val outside = ty_b_scalar(g, TY_F32, tf_attr_float(c->node, "extrapolation_value", 0));
    tf_set(c, 0, ty_b_select(g, ty_b_reshape(g, inside, 4, plane), y, outside));
}

/* ---- patches ---- */

typedef struct image_patches {
    int n; /* axes of space */
    int64_t size[3], step[3], rate[3], lo[3], hi[3], out[3];
} image_patches;

static bool image_patches_list(tf_ctx *c, const char *name, int n, int64_t *out)
{
    const int64_t *v;
    int64_t count;
    for (int i = 0; i < n; i++)
        out[i] = 1;
    if (!tf_attr_ints(c->node, name, &v, &count))
        return true;
    bool ok = count == n + 2 && v[0] == 1 && v[n + 1] == 1;
    for (int i = 0; ok && i < n; i++) {
        out[i] = v[i + 1];
        ok = out[i] >= 1 && out[i] <= 1 << 20;
    }
    if (!ok)
        tf_fail_attr(c, name, "must be 1, then %d numbers from 1 on, then 1", n);
    return ok;
}

static bool image_patches_read(tf_ctx *c, image_patches *p)
{
    ty_val x = tf_in(c, 0);
    const char *padding = tf_text(c, "padding", "VALID");
    p->n = c->row->arg;
    if (tf_rank(c, x) != p->n + 2)
        tf_fail_input(c, 0, TY_E_SHAPE, "must have %d dimensions", p->n + 2);
    if (c->failed || !image_patches_list(c, "ksizes", p->n, p->size) ||
        !image_patches_list(c, "strides", p->n, p->step) || !image_patches_list(c, "rates", p->n, p->rate))
        return false;
    bool same = strcmp(padding, "SAME") == 0;
    for (int i = 0; i < p->n; i++) {
        int64_t in = tf_dim(c, x, i + 1), extent = (p->size[i] - 1) * p->rate[i] + 1;
        p->out[i] = same ? (in + p->step[i] - 1) / p->step[i] : in < extent ? 0 : (in - extent) / p->step[i] + 1;
        int64_t more = same ? (p->out[i] - 1) * p->step[i] + extent - in : 0;
        p->lo[i] = more > 0 ? more / 2 : 0;
        p->hi[i] = more > 0 ? more - p->lo[i] : 0;
        if (p->out[i] < 1 || p->out[i] * p->size[i] > MAX_POSITIONS)
            tf_fail_attr(c, "ksizes", "no patch of %lld fits %lld positions", (long long)extent, (long long)in);
    }
    return !c->failed;
}

/* Axis `axis` of x becomes [out, size]: position of each result's each tap. Where patches lie side by side nothing is
 * copied. */
static ty_val image_patches_axis(tf_ctx *c, const image_patches *p, ty_val x, int i, int axis)
{
    int64_t n = p->out[i] * p->size[i];
    if (p->step[i] == p->size[i] && p->rate[i] == 1)
        return ty_b_slice_axis(c->g, x, axis, 0, n);
    int64_t *at = tf_alloc(c, (size_t)n, sizeof *at);
    for (int64_t o = 0; o < p->out[i]; o++)
        for (int64_t k = 0; k < p->size[i]; k++)
            at[o * p->size[i] + k] = o * p->step[i] + k * p->rate[i];
    return ty_b_gather(c->g, x, tf_ints(c, TY_I64, at, n), axis);
}

/* [B, space.., C] to [B, results.., taps.. C]; arg: axes of space. */
void tf_op_extract_patches(tf_ctx *c)
{
    ty_graph *g = c->g;
    image_patches p;
    if (!image_patches_read(c, &p))
        return;
    ty_val x = tf_in(c, 0);
    const ty_type t = *tf_type(c, x);
    int64_t lo[5] = {0}, hi[5] = {0}, wide[TY_MAX_RANK], perm[TY_MAX_RANK], dim[5] = {t.dim[0]}, taps = t.dim[p.n + 1];
    for (int i = 0; i < p.n; i++) {
        lo[i + 1] = p.lo[i];
        hi[i + 1] = p.hi[i];
    }
    x = ty_b_pad(g, x, lo, hi, 0);
    for (int i = 0; i < p.n; i++) {
        x = image_patches_axis(c, &p, x, i, i + 1);
        wide[2 * i + 1] = dim[i + 1] = p.out[i];
        wide[2 * i + 2] = p.size[i];
        perm[i + 1] = 2 * i + 1;
        perm[p.n + i + 1] = 2 * i + 2;
        taps *= p.size[i];
    }
    wide[0] = t.dim[0];
    wide[2 * p.n + 1] = t.dim[p.n + 1];
    perm[0] = 0;
    perm[2 * p.n + 1] = 2 * p.n + 1;
    dim[p.n + 1] = taps;
    x = ty_b_transpose(g, ty_b_reshape(g, x, 2 * p.n + 2, wide), perm);
    tf_set(c, 0, ty_b_reshape(g, x, p.n + 2, dim));
}
