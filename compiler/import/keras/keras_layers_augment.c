/* keras_layers_augment.c - pictures that are changed at random, each in its own way, in training alone.
 *
 * Source: keras/src/layers/preprocessing/image_preprocessing; what is turned, moved and zoomed is read as TensorFlow's
 * ImageProjectiveTransformV3 reads it (tensorflow/core/kernels/image/image_ops.h). Random numbers are of our generator:
 * their distribution is Keras', not their values. Letters: B pictures, H rows, W columns, C channels.
 */
#include "compiler/import/keras/keras_window.h"
#include "compiler/import/picture.h"

#include <math.h>

/* The pictures as floats [B, H, W, C]; TY_NONE where there is nothing to do (they are the result then) or after
 * failing. */
static ty_val augment_pictures(keras_call *c)
{
    bool first = keras_channels_first(c);
    if (c->failed)
        return TY_NONE;
    if (c->n_in != 1 || ty_b_rank(c->g, c->in[0]) != 4) {
        keras_fail(c, TY_E_SHAPE, "expected pictures [batch, height, width, channels]");
        return TY_NONE;
    }
    ty_val x = keras_float(c, c->in[0]);
    if (!c->training) {
        keras_set(c, 0, x);
        return TY_NONE;
    }
    return first ? keras_from_first(c, x, false) : x;
}

static void augment_set(keras_call *c, ty_val y)
{
    if (y != TY_NONE)
        keras_set(c, 0, keras_channels_first(c) ? keras_to_first(c, y, false) : y);
}

/* ---- settings ---- */

typedef struct augment_range {
    double lo, hi;
} augment_range;

/* Two numbers, or one that stands for -x to x, cut off at `least`. False (and failed) outside [least, most]. */
static bool augment_read_range(keras_call *c, const char *key, double least, double most, augment_range *r)
{
    const ty_doc *d = keras_config(c, key);
    double v[2] = {0, 0};
    bool is_list = d && d->kind == TY_DOC_LIST, ok = !is_list || ty_doc_len(d) == 2;
    for (size_t i = 0; d && ok && i < (is_list ? 2u : 1u); i++)
        ok = ty_doc_float(is_list ? ty_doc_at(d, i) : d, &v[i], NULL) == 0 && v[i] >= least && v[i] <= most;
    if (!ok) {
        keras_fail_key(c, key, "expected a number or two from %g to %g", least, most);
        return false;
    }
    *r = is_list ? (augment_range){fmin(v[0], v[1]), fmax(v[0], v[1])}
                 : (augment_range){fmax(-fabs(v[0]), least), fabs(v[0])};
    return true;
}

/* value_range: what is computed stays inside. */
static bool augment_read_values(keras_call *c, augment_range *r)
{
    *r = (augment_range){0, 255};
    return !keras_config(c, "value_range") || augment_read_range(c, "value_range", -1e30, 1e30, r);
}

/* A number for each picture, [B, 1, 1, 1] or fewer axes. */
static ty_val augment_draw(keras_call *c, ty_val x, int rank, augment_range r)
{
    int64_t dim[] = {ty_b_dim(c->g, x, 0), 1, 1, 1};
    if (r.lo == r.hi)
        return ty_b_full(c->g, TY_F32, rank, dim, r.lo);
    return ty_b_add_s(c->g, ty_b_mul_s(c->g, keras_uniform(c, rank, dim), r.hi - r.lo), r.lo);
}

/* ---- values ---- */

void keras_call_random_contrast(keras_call *c)
{
    ty_graph *g = c->g;
    augment_range factor, values;
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || !augment_read_range(c, "factor", 0, 1, &factor) || !augment_read_values(c, &values))
        return;
    ty_val by = augment_draw(c, x, 4, (augment_range){1 - factor.lo, 1 + factor.hi});
    augment_set(c, keras_clip(g, ty_picture_contrast(g, x, by), values.lo, values.hi));
}

void keras_call_random_brightness(keras_call *c)
{
    augment_range factor, values;
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || !augment_read_range(c, "factor", -1, 1, &factor) || !augment_read_values(c, &values))
        return;
    ty_val more = ty_b_mul_s(c->g, augment_draw(c, x, 4, factor), values.hi - values.lo);
    augment_set(c, keras_clip(c->g, ty_b_add(c->g, x, more), values.lo, values.hi));
}

void keras_call_random_grayscale(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = augment_pictures(c);
    double share = keras_number(c, "factor", 0.5);
    if (x == TY_NONE || c->failed)
        return;
    if (ty_b_dim(g, x, 3) != 3) {
        keras_fail(c, TY_E_SHAPE, "expected 3 channels, found %lld", (long long)ty_b_dim(g, x, 3));
        return;
    }
    ty_val number = augment_draw(c, x, 4, (augment_range){0, 1});
    augment_set(c, ty_b_select(g, ty_b_lt(g, number, ty_b_full_like(g, number, share)), ty_picture_gray(g, x), x));
}

void keras_call_random_invert(keras_call *c)
{
    ty_graph *g = c->g;
    augment_range factor = {0, 1}, values;
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &factor)) ||
        !augment_read_values(c, &values))
        return;
    ty_val share = augment_draw(c, x, 4, factor), number = augment_draw(c, x, 4, (augment_range){0, 1});
    ty_val other = ty_b_sub(g, ty_b_full_like(g, x, values.hi), x);
    augment_set(c, ty_b_select(g, ty_b_lt(g, number, share), other, x));
}

/* ---- flipped, cut out ---- */

void keras_call_random_flip(keras_call *c)
{
    static const char *const modes[] = {"horizontal_and_vertical", "horizontal", "vertical", NULL};
    static const uint32_t axes[] = {1u << 1 | 1u << 2, 1u << 2, 1u << 1};
    int mode = keras_choice(c, "mode", "horizontal_and_vertical", modes);
    ty_val x = c->failed ? TY_NONE : augment_pictures(c);
    if (x == TY_NONE)
        return;
    ty_val number = augment_draw(c, x, 4, (augment_range){0, 1});
    ty_val is_flipped = ty_b_le(c->g, number, ty_b_full_like(c->g, number, 0.5));
    augment_set(c, ty_b_select(c->g, is_flipped, ty_b_reverse(c->g, x, axes[mode]), x));
}

/* Where a cut of `size` out of n begins: the same for all pictures, [size] positions. */
static ty_val augment_cut(keras_call *c, int64_t n, int64_t size, bool is_random)
{
    ty_graph *g = c->g;
    ty_val at = ty_b_iota(g, ty_type_make(TY_I64, 1, &size), 0);
    if (!is_random)
        return ty_b_add_s(g, at, (double)((n - size) / 2));
    ty_val start = ty_b_mul_s(g, keras_uniform(c, 0, NULL), (double)(n - size + 1));
    ty_val last = ty_b_scalar(g, TY_I64, (double)(n - size));
    return ty_b_add(g, at, ty_b_min(g, ty_b_cast(g, ty_b_unary(g, TY_OP_FLOOR, start), TY_I64), last));
}

void keras_call_random_crop(keras_call *c)
{
    int64_t height = keras_int(c, "height", 0), width = keras_int(c, "width", 0);
    ty_val x = c->failed ? TY_NONE : augment_pictures(c);
    if (x == TY_NONE)
        return;
    int64_t rows = ty_b_dim(c->g, x, 1), columns = ty_b_dim(c->g, x, 2);
    if (height < 1 || width < 1 || height > rows || width > columns) {
        keras_fail(c, TY_E_UNSUPPORTED,
                   "%lld x %lld out of %lld x %lld: pictures that would have to grow are not "
                   "supported",
                   (long long)height, (long long)width, (long long)rows, (long long)columns);
        keras_help(c, "put a Resizing layer in front");
        return;
    }
    bool is_random = rows > height && columns > width;
    ty_val y = ty_b_gather(c->g, x, augment_cut(c, rows, height, is_random), 1);
    augment_set(c, ty_b_gather(c->g, y, augment_cut(c, columns, width, is_random), 2));
}

/* ---- turned, zoomed, moved, sheared ---- */

typedef struct augment_plane {
    keras_call *c;
    ty_picture_reader reader;
    ty_val x; /* [B, H, W, C] */
    int64_t height, width;
} augment_plane;

static bool augment_plane_read(keras_call *c, ty_val x, augment_plane *p)
{
    static const char *const fills[] = {"reflect", "wrap", "constant", "nearest", NULL};
    static const char *const filters[] = {"bilinear", "nearest", NULL};
    if (x == TY_NONE)
        return false;
    *p = (augment_plane){.c = c, .x = x, .height = ty_b_dim(c->g, x, 1), .width = ty_b_dim(c->g, x, 2)};
    p->reader = (ty_picture_reader){.g = c->g, .x = x};
    p->reader.fill = (ty_picture_fill)keras_choice(c, "fill_mode", "reflect", fills);
    p->reader.is_nearest = keras_choice(c, "interpolation", "bilinear", filters) == 1;
    p->reader.value = ty_b_scalar(c->g, ty_b_dtype(c->g, x), keras_number(c, "fill_value", 0));
    return !c->failed;
}

static ty_val augment_is_below(ty_graph *g, ty_val x, double bound)
{
    return ty_b_lt(g, x, ty_b_full_like(g, x, bound));
}

static ty_val augment_from(ty_graph *g, double a, ty_val x)
{
    return ty_b_sub(g, ty_b_full_like(g, x, a), x);
}

static void augment_apply(const augment_plane *p, const ty_picture_map *m)
{
    augment_set(p->c, ty_picture_project(&p->reader, m, p->height, p->width));
}

/* Around the middle of the picture: what a map leaves where it is. */
static void augment_center(const augment_plane *p, ty_picture_map *m)
{
    ty_graph *g = p->c->g;
    double x = (double)(p->width - 1) / 2, y = (double)(p->height - 1) / 2;
    m->a1 = augment_from(g, x, ty_b_add(g, ty_b_mul_s(g, m->ax, x), ty_b_mul_s(g, m->ay, y)));
    m->b1 = augment_from(g, y, ty_b_add(g, ty_b_mul_s(g, m->bx, x), ty_b_mul_s(g, m->by, y)));
}

void keras_call_random_rotation(keras_call *c)
{
    augment_plane p;
    augment_range turns;
    if (!augment_plane_read(c, augment_pictures(c), &p) || !augment_read_range(c, "factor", -1, 1, &turns))
        return;
    ty_val angle = ty_b_mul_s(c->g, augment_draw(c, p.x, 3, turns), 2 * M_PI);
    ty_picture_map m = {.cx = TY_NONE,
                        .cy = TY_NONE,
                        .ax = ty_b_unary(c->g, TY_OP_COS, angle),
                        .bx = ty_b_unary(c->g, TY_OP_SIN, angle)};
    m.ay = ty_b_neg(c->g, m.bx);
    m.by = m.ax;
    augment_center(&p, &m);
    augment_apply(&p, &m);
}

void keras_call_random_zoom(keras_call *c)
{
    augment_plane p;
    augment_range rows, columns;
    if (!augment_plane_read(c, augment_pictures(c), &p) || !augment_read_range(c, "height_factor", -1, 1, &rows))
        return;
    ty_picture_map m = {.cx = TY_NONE, .cy = TY_NONE, .by = ty_b_add_s(c->g, augment_draw(c, p.x, 3, rows), 1)};
    m.ax = m.by;
    if (keras_config(c, "width_factor")) {
        if (!augment_read_range(c, "width_factor", -1, 1, &columns))
            return;
        m.ax = ty_b_add_s(c->g, augment_draw(c, p.x, 3, columns), 1);
    }
    m.ay = m.bx = ty_b_full_like(c->g, m.ax, 0);
    augment_center(&p, &m);
    augment_apply(&p, &m);
}

void keras_call_random_translation(keras_call *c)
{
    augment_plane p;
    augment_range rows, columns;
    if (!augment_plane_read(c, augment_pictures(c), &p) || !augment_read_range(c, "height_factor", -1, 1, &rows) ||
        !augment_read_range(c, "width_factor", -1, 1, &columns))
        return;
    ty_picture_map m = {
        .cx = TY_NONE, .cy = TY_NONE, .b1 = ty_b_mul_s(c->g, augment_draw(c, p.x, 3, rows), -(double)p.height)};
    m.a1 = ty_b_mul_s(c->g, augment_draw(c, p.x, 3, columns), -(double)p.width);
    m.ax = m.by = ty_b_full_like(c->g, m.a1, 1);
    m.ay = m.bx = ty_b_full_like(c->g, m.a1, 0);
    augment_apply(&p, &m);
}

void keras_call_random_shear(keras_call *c)
{
    ty_graph *g = c->g;
    augment_plane p;
    augment_range across = {0, 0}, down = {0, 0};
    if (!augment_plane_read(c, augment_pictures(c), &p) || !augment_read_range(c, "x_factor", 0, 1, &across) ||
        !augment_read_range(c, "y_factor", 0, 1, &down))
        return;
    ty_val number = augment_draw(c, p.x, 3, (augment_range){0, 1}), one = ty_b_full_like(g, number, 1);
    ty_val sign = ty_b_select(g, augment_is_below(g, augment_from(g, 1, number), 0.5), ty_b_neg(g, one), one);
    ty_picture_map m = {.cx = TY_NONE, .cy = TY_NONE, .ax = one, .by = one, .a1 = ty_b_full_like(g, one, 0)};
    m.b1 = m.a1;
    m.ay = ty_b_mul(g, augment_draw(c, p.x, 3, across), sign);
    m.bx = ty_b_mul(g, augment_draw(c, p.x, 3, down), sign);
    augment_apply(&p, &m);
}
