/* keras_layers_plane.c - padding, cropping and resizing of planes. */
#include "compiler/import/keras/keras_window.h"

#include <math.h>
#include <string.h>

/* ---- padding, cropping ---- */

/* One number for both ends, or two. */
static bool plane_pair(const ty_doc *d, int64_t *pair)
{
    bool is_list = d && d->kind == TY_DOC_LIST;
    for (size_t k = 0; k < 2; k++) {
        const ty_doc *v = is_list ? ty_doc_at(d, k) : d;
        if (!v || v->kind != TY_DOC_INT || (is_list && ty_doc_len(d) != 2))
            return false;
        pair[k] = v->integer;
    }
    return true;
}

/* What is to be added or taken in front and behind: one number for all axes, or a list with a number or a pair for
 * each; of one axis a number or a pair. */
static bool plane_pairs(keras_call *c, const char *key, int n, int64_t pair[][2])
{
    const ty_doc *given = keras_config(c, key);
    bool is_list = n > 1 && given->kind == TY_DOC_LIST, ok = !is_list || ty_doc_len(given) == (size_t)n;
    for (int i = 0; i < n && ok; i++)
        ok = plane_pair(is_list ? ty_doc_at(given, (size_t)i) : given, pair[i]);
    if (!ok)
        keras_fail_key(c, key, n > 1 ? "expected a number, or %d numbers or pairs" : "expected a number or a pair", n);
    return ok;
}

/* arg: axes of space. */
static bool plane_read(keras_call *c, const char *key, int64_t absent, int64_t *lo, int64_t *hi)
{
    int n = c->layer->row->arg;
    int64_t pair[3][2];
    bool first = keras_channels_first(c);
    if (c->failed || !keras_has_planes(c, n))
        return false;
    for (int i = 0; i < 3; i++)
        pair[i][0] = pair[i][1] = absent;
    if (keras_config(c, key) && !plane_pairs(c, key, n, pair))
        return false;
    for (int i = 0; i < n; i++)
        if (pair[i][0] < 0 || pair[i][1] < 0 || pair[i][0] > KERAS_WINDOW_MOST || pair[i][1] > KERAS_WINDOW_MOST) {
            keras_fail_key(c, key, "expected numbers from 0 to %d", KERAS_WINDOW_MOST);
            return false;
        } else {
            lo[keras_space_axis(first, i)] = pair[i][0];
            hi[keras_space_axis(first, i)] = pair[i][1];
        }
    return true;
}

void keras_call_pad(keras_call *c)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    if (plane_read(c, "padding", 1, lo, hi))
        keras_set(c, 0, ty_b_pad(c->g, c->in[0], lo, hi, 0));
}

void keras_call_crop(keras_call *c)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    if (!plane_read(c, "cropping", c->layer->row->arg == 2 ? 0 : 1, lo, hi))
        return;
    for (int i = 0; i < ty_b_rank(c->g, c->in[0]); i++) {
        int64_t dim = ty_b_dim(c->g, c->in[0], i);
        if (lo[i] + hi[i] >= dim && lo[i] + hi[i] > 0) {
            keras_fail_key(c, "cropping", "expected less than the %lld positions of axis %d", (long long)dim, i);
            return;
        }
        hi[i] = dim - hi[i];
    }
    keras_set(c, 0, ty_b_slice(c->g, c->in[0], lo, hi, NULL));
}

/* ---- resizing ---- */

/* Every position `times` times, as one more axis: so the others may lie in any order. */
static ty_val plane_repeat(keras_call *c, ty_val x, int axis, int64_t times)
{
    if (x == TY_NONE || times == 1)
        return x;
    const ty_type t = *ty_graph_type(c->g, x);
    int64_t wide[TY_MAX_RANK], dim[TY_MAX_RANK];
    for (int i = 0, k = 0; i < t.rank; i++) {
        dim[i] = t.dim[i] * (i == axis ? times : 1);
        wide[k++] = t.dim[i];
        if (i == axis)
            wide[k++] = 1;
    }
    ty_val y = ty_b_reshape(c->g, x, t.rank + 1, wide);
    wide[axis + 1] = times;
    return ty_b_reshape(c->g, ty_b_broadcast(c->g, y, t.rank + 1, wide), t.rank, dim);
}

enum { PLANE_MATRIX = 1 << 20 }; /* numbers of a matrix for one axis */

/* Half-pixel centres: result o lies at (o + 1/2) in / out - 1/2. */
static ty_val plane_nearest(keras_call *c, ty_val x, int axis, int64_t out)
{
    int64_t in = ty_b_dim(c->g, x, axis), *index = keras_alloc(c, (size_t)out + 1, sizeof *index);
    for (int64_t o = 0; o < out; o++) {
        int64_t at = (2 * o + 1) * in / (2 * out);
        index[o] = at < in ? at : in - 1;
    }
    return in == out ? x : keras_pick(c, x, axis, out, index);
}

/* Where result o lies between positions `a` and `b`, beyond the edges the edge; the share of b. */
static double plane_between(int64_t o, int64_t in, int64_t out, int64_t *a, int64_t *b)
{
    double at = ((double)o + 0.5) * (double)in / (double)out - 0.5, low = floor(at);
    *a = low < 0 ? 0 : (int64_t)low;
    *b = low + 1 > (double)(in - 1) ? in - 1 : (int64_t)low + 1;
    return at - low;
}

/* Between the two nearest: a product with a matrix, or of an axis too long for one, two picks and a blend. */
static ty_val plane_linear(keras_call *c, ty_val x, int axis, int64_t out)
{
    int64_t in = ty_b_dim(c->g, x, axis), a, b;
    if (in == out)
        return x;
    if (in <= PLANE_MATRIX / out) {
        double *m = keras_alloc(c, (size_t)(in * out) + 1, sizeof *m);
        for (int64_t o = 0; o < out; o++) {
            double share = plane_between(o, in, out, &a, &b);
            m[o * in + a] += 1 - share;
            m[o * in + b] += share;
        }
        return keras_along(c, x, axis, out, m);
    }
    int64_t *low = keras_alloc(c, (size_t)out + 1, sizeof *low), *high = keras_alloc(c, (size_t)out + 1, sizeof *high);
    double *share = keras_alloc(c, (size_t)out + 1, sizeof *share);
    for (int64_t o = 0; o < out; o++)
        share[o] = plane_between(o, in, out, &low[o], &high[o]);
    ty_val from = keras_pick(c, x, axis, out, low), to = keras_pick(c, x, axis, out, high);
    ty_val s = keras_const(c, ty_b_dtype(c->g, x), 1, &out, share);
    s = keras_on_axis(c, s, axis, ty_b_rank(c->g, x));
    return ty_b_add(c->g, from, ty_b_mul(c->g, ty_b_sub(c->g, to, from), s));
}

static const char *const plane_filters[] = {"nearest", "bilinear", NULL};

static bool plane_size_ok(keras_call *c, const char *key, int64_t in, int64_t out)
{
    if (out >= 1 && out <= KERAS_WINDOW_MOST && in >= 1 && in <= KERAS_WINDOW_MOST)
        return true;
    keras_fail_key(c, key, "expected a number that brings %lld positions to 1 to %d", (long long)in, KERAS_WINDOW_MOST);
    return false;
}

/* UpSampling1D has neither data_format nor interpolation, UpSampling3D no interpolation. */
void keras_call_upsample(keras_call *c)
{
    int n = c->layer->row->arg;
    int64_t size[TY_MAX_RANK];
    bool first = n > 1 && keras_channels_first(c);
    int filter = n == 2 ? keras_choice(c, "interpolation", "nearest", plane_filters) : 0;
    if (c->failed || !keras_has_planes(c, n) || !keras_ints(c, "size", n, 2, size))
        return;
    ty_val x = filter ? keras_float(c, c->in[0]) : c->in[0];
    for (int i = 0; i < n && x != TY_NONE; i++) {
        int axis = keras_space_axis(first, i);
        int64_t in = ty_b_dim(c->g, x, axis);
        if (!plane_size_ok(c, "size", in, size[i]) || !plane_size_ok(c, "size", in, in * size[i]))
            return;
        x = filter ? plane_linear(c, x, axis, in * size[i]) : plane_repeat(c, x, axis, size[i]);
    }
    keras_set(c, 0, x);
}

static bool plane_refuses(keras_call *c, const char *const *keys)
{
    for (; *keys; keys++)
        if (keras_flag(c, *keys, false)) {
            keras_fail_key(c, *keys, "is not supported");
            return true;
        }
    return c->failed;
}

/* [.., height, width, channels] to another height and width. */
void keras_call_resizing(keras_call *c)
{
    static const char *const refused[] = {"crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias", NULL};
    static const char *const keys[] = {"height", "width"};
    int filter = keras_choice(c, "interpolation", "bilinear", plane_filters);
    bool first = keras_channels_first(c);
    if (c->failed || plane_refuses(c, refused) || !keras_has_planes(c, 2))
        return;
    ty_val x = filter ? keras_float(c, c->in[0]) : c->in[0];
    for (int i = 0; i < 2 && x != TY_NONE; i++) {
        int axis = keras_space_axis(first, i);
        int64_t out = keras_int(c, keys[i], 0);
        if (c->failed || !plane_size_ok(c, keys[i], ty_b_dim(c->g, x, axis), out))
            return;
        x = filter ? plane_linear(c, x, axis, out) : plane_nearest(c, x, axis, out);
    }
    keras_set(c, 0, x);
}

void keras_call_center_crop(keras_call *c)
{
    static const char *const keys[] = {"height", "width"};
    bool first = keras_channels_first(c);
    if (c->failed || !keras_has_planes(c, 2))
        return;
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK];
    memcpy(hi, ty_graph_type(c->g, c->in[0])->dim, sizeof hi);
    for (int i = 0; i < 2; i++) {
        int axis = keras_space_axis(first, i);
        int64_t in = hi[axis], out = keras_int(c, keys[i], 0);
        if (!c->failed && (out < 1 || out > in))
            keras_fail_key(c, keys[i], "expected 1 to %lld: images that are smaller would be resized", (long long)in);
        if (c->failed)
            return;
        lo[axis] = (in - out) / 2;
        hi[axis] = lo[axis] + out;
    }
    keras_set(c, 0, ty_b_slice(c->g, c->in[0], lo, hi, NULL));
}
