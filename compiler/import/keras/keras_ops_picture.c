/* keras_ops_picture.c - pictures: colours, edges, patches; depth and space; windows. */
#include "compiler/import/keras/keras_ops.h"
#include "compiler/import/keras/keras_window.h"
#include "compiler/import/picture.h"

/* A picture or pictures with channels last, of which *first says whether that is another order than theirs. */
static ty_val picture_read(keras_call *c, bool *first)
{
    ty_val x = keras_op_in(c, 0, "images");
    *first = keras_channels_first(c);
    int rank = x == TY_NONE ? 0 : ty_b_rank(c->g, x);
    if (x == TY_NONE || c->failed)
        return TY_NONE;
    if (rank != 3 && rank != 4) {
        keras_fail(c, TY_E_SHAPE, "%s: expected one picture or several, with channels", c->layer->class_name);
        return TY_NONE;
    }
    int64_t to_last[] = {0, rank - 2, rank - 1, rank - 3};
    if (rank == 3)
        to_last[0] = 1, to_last[1] = 2, to_last[2] = 0;
    return *first ? ty_b_transpose(c->g, x, to_last) : x;
}

static void picture_set(keras_call *c, ty_val y, bool first)
{
    if (y == TY_NONE)
        return;
    int rank = ty_b_rank(c->g, y);
    int64_t to_first[] = {0, rank - 1, rank - 3, rank - 2};
    if (rank == 3)
        to_first[0] = 2, to_first[1] = 0, to_first[2] = 1;
    keras_set(c, 0, first ? ty_b_transpose(c->g, y, to_first) : y);
}

/* arg 0: to hue, saturation, value, 1: back, 2: gray. */
void keras_op_colours(keras_call *c)
{
    static ty_val (*const functions[])(ty_graph *, ty_val) = {ty_picture_hsv, ty_picture_rgb, ty_picture_gray};
    bool first;
    ty_val x = picture_read(c, &first);
    if (x == TY_NONE)
        return;
    if (ty_b_dim(c->g, x, ty_b_rank(c->g, x) - 1) != 3) {
        keras_fail(c, TY_E_SHAPE, "%s: expected 3 channels", c->layer->class_name);
        return;
    }
    ty_dtype dtype = ty_b_dtype(c->g, x);
    ty_val y = functions[c->layer->op->arg](c->g, ty_dtype_is_float(dtype) ? x : ty_b_cast(c->g, x, TY_F32));
    picture_set(c, ty_b_cast(c->g, y, dtype), first);
}

/* What is added or taken at both ends of an axis of n: two of near, far and the size wanted are given. */
static bool picture_ends(keras_call *c, const char *const keys[3], int64_t n, bool pads, int64_t *near, int64_t *far)
{
    bool has[3];
    int64_t v[3];
    for (int i = 0; i < 3; i++) {
        has[i] = keras_config(c, keys[i]) != NULL;
        v[i] = keras_int(c, keys[i], 0);
    }
    int64_t all = pads ? v[2] - n : n - v[2];
    if (has[0] + has[1] + has[2] != 2)
        keras_fail(c, TY_E_MODEL_FILE, "%s: expected two of %s, %s and %s", c->layer->class_name, keys[0], keys[1],
                   keys[2]);
    *near = has[0] ? v[0] : all - v[1];
    *far = has[1] ? v[1] : all - v[0];
    if (!c->failed && (*near < 0 || *far < 0 || (!pads && *near + *far >= n) || *near > 1 << 24 || *far > 1 << 24))
        keras_fail(c, TY_E_SHAPE, "%s: %lld and %lld of an axis of %lld make no sense", c->layer->class_name,
                   (long long)*near, (long long)*far, (long long)n);
    return !c->failed;
}

/* arg 1: zeros are added, 0: edges are cut off. */
void keras_op_picture_edges(keras_call *c)
{
    static const char *const cut[2][3] = {{"top_cropping", "bottom_cropping", "target_height"},
                                          {"left_cropping", "right_cropping", "target_width"}};
    static const char *const pad[2][3] = {{"top_padding", "bottom_padding", "target_height"},
                                          {"left_padding", "right_padding", "target_width"}};
    bool first, pads = c->layer->op->arg;
    ty_val x = picture_read(c, &first);
    if (x == TY_NONE)
        return;
    int rank = ty_b_rank(c->g, x);
    int64_t lo[4] = {0}, hi[4] = {0};
    for (int i = 0; i < 2; i++)
        if (!picture_ends(c, pads ? pad[i] : cut[i], ty_b_dim(c->g, x, rank - 3 + i), pads, &lo[rank - 3 + i],
                          &hi[rank - 3 + i]))
            return;
    for (int i = 0; i < rank && !pads; i++)
        hi[i] = ty_b_dim(c->g, x, i) - hi[i];
    picture_set(c, pads ? ty_b_pad(c->g, x, lo, hi, 0) : ty_b_slice(c->g, x, lo, hi, NULL), first);
}

/* ---- depth and space ---- */

/* Blocks of the plane become channels; arg 1: back. */
void keras_op_depth(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    int64_t size = keras_int(c, "block_size", 2);
    bool back = c->layer->op->arg, first = keras_channels_first(c);
    if (x == TY_NONE || c->failed)
        return;
    x = first ? keras_from_first(c, x, false) : x;
    const ty_type t = *ty_graph_type(g, x);
    int64_t h = t.dim[1], w = t.dim[2], n = t.dim[3];
    if (t.rank != 4 || size < 1 || (back ? n % (size * size) : h % size || w % size)) {
        keras_fail_key(c, "block_size", "must divide what becomes blocks of [batch, height, width, channels]");
        return;
    }
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5};
    int64_t wide[2][6] = {{t.dim[0], h / size, size, w / size, size, n},
                          {t.dim[0], h, w, size, size, n / (size * size)}};
    int64_t dim[2][4] = {{t.dim[0], h / size, w / size, n * size * size},
                         {t.dim[0], h * size, w * size, n / (size * size)}};
    ty_val y = ty_b_transpose(g, ty_b_reshape(g, x, 6, wide[back]), perm);
    y = ty_b_reshape(g, y, 4, dim[back]);
    keras_set(c, 0, first ? keras_to_first(c, y, false) : y);
}
