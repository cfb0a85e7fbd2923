/* keras_layers_augment.c - pictures that are flipped, cut, turned, zoomed, moved and sheared at random, each in its own
 * way, in training alone. What lies between pixels is read as TensorFlow's ImageProjectiveTransformV3 reads it.
 */
#include "compiler/import/keras/keras_augment.h"
#include "compiler/import/linear.h"

#include <math.h>

ty_val augment_pictures(keras_call *c)
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

void augment_set(keras_call *c, ty_val y)
{
    if (y != TY_NONE)
        keras_set(c, 0, keras_channels_first(c) ? keras_to_first(c, y, false) : y);
}

bool augment_has_colours(keras_call *c, ty_val x)
{
    int64_t n = ty_b_dim(c->g, x, 3);
    if (n != 3)
        keras_fail(c, TY_E_SHAPE, "expected 3 channels, found %lld", (long long)n);
    return n == 3;
}

/* ---- settings ---- */

bool augment_read_range(keras_call *c, const char *key, double least, double most, augment_range *r)
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

bool augment_read_values(keras_call *c, augment_range *r)
{
    *r = (augment_range){0, 255};
    return !keras_config(c, "value_range") || augment_read_range(c, "value_range", -1e30, 1e30, r);
}

ty_val augment_draw(keras_call *c, ty_val x, int rank, augment_range r)
{
    int64_t dim[] = {ty_b_dim(c->g, x, 0), 1, 1, 1};
    if (r.lo == r.hi)
        return ty_b_full(c->g, TY_F32, rank, dim, r.lo);
    return ty_b_add_s(c->g, ty_b_mul_s(c->g, keras_uniform(c, rank, dim), r.hi - r.lo), r.lo);
}

ty_val augment_choose(keras_call *c, augment_range share, ty_val x, ty_val y)
{
    ty_val wanted = augment_draw(c, x, 4, share), number = augment_draw(c, x, 4, (augment_range){0, 1});
    return ty_b_select(c->g, ty_b_lt(c->g, number, wanted), y, x);
}

ty_val augment_scale(ty_graph *g, ty_val x, augment_range from, augment_range to)
{
    if (from.lo == to.lo && from.hi == to.hi)
        return x;
    ty_val part = ty_b_mul_s(g, ty_b_add_s(g, x, -from.lo), 1 / (from.hi - from.lo));
    return ty_b_add_s(g, ty_b_mul_s(g, part, to.hi - to.lo), to.lo);
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

bool augment_plane_read(keras_call *c, ty_val x, augment_plane *p)
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

static ty_val augment_from(ty_graph *g, double a, ty_val x)
{
    return ty_b_sub(g, ty_b_full_like(g, x, a), x);
}

static ty_val augment_apply(const augment_plane *p, const ty_picture_map *m)
{
    return ty_picture_project(&p->reader, m, p->height, p->width);
}

/* Around the middle of the picture: what a map leaves where it is. */
static void augment_center(const augment_plane *p, ty_picture_map *m)
{
    ty_graph *g = p->c->g;
    double x = (double)(p->width - 1) / 2, y = (double)(p->height - 1) / 2;
    m->a1 = augment_from(g, x, ty_b_add(g, ty_b_mul_s(g, m->ax, x), ty_b_mul_s(g, m->ay, y)));
    m->b1 = augment_from(g, y, ty_b_add(g, ty_b_mul_s(g, m->bx, x), ty_b_mul_s(g, m->by, y)));
}

ty_val augment_rotate(const augment_plane *p, augment_range turns)
{
    ty_graph *g = p->c->g;
    ty_val angle = ty_b_mul_s(g, augment_draw(p->c, p->x, 3, turns), 2 * M_PI);
    ty_picture_map m = {.cx = TY_NONE, .cy = TY_NONE, .ax = ty_b_unary(g, TY_OP_COS, angle)};
    m.bx = ty_b_unary(g, TY_OP_SIN, angle);
    m.ay = ty_b_neg(g, m.bx);
    m.by = m.ax;
    augment_center(p, &m);
    return augment_apply(p, &m);
}

void keras_call_random_rotation(keras_call *c)
{
    augment_plane p;
    augment_range turns;
    if (augment_plane_read(c, augment_pictures(c), &p) && augment_read_range(c, "factor", -1, 1, &turns))
        augment_set(c, augment_rotate(&p, turns));
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
    augment_set(c, augment_apply(&p, &m));
}

ty_val augment_translate(const augment_plane *p, augment_range rows, augment_range columns)
{
    ty_graph *g = p->c->g;
    ty_picture_map m = {.cx = TY_NONE, .cy = TY_NONE};
    m.b1 = ty_b_mul_s(g, augment_draw(p->c, p->x, 3, rows), -(double)p->height);
    m.a1 = ty_b_mul_s(g, augment_draw(p->c, p->x, 3, columns), -(double)p->width);
    m.ax = m.by = ty_b_full_like(g, m.a1, 1);
    m.ay = m.bx = ty_b_full_like(g, m.a1, 0);
    return augment_apply(p, &m);
}

void keras_call_random_translation(keras_call *c)
{
    augment_plane p;
    augment_range rows, columns;
    if (augment_plane_read(c, augment_pictures(c), &p) && augment_read_range(c, "height_factor", -1, 1, &rows) &&
        augment_read_range(c, "width_factor", -1, 1, &columns))
        augment_set(c, augment_translate(&p, rows, columns));
}

ty_val augment_shear(const augment_plane *p, augment_range across, augment_range down)
{
    ty_graph *g = p->c->g;
    ty_val number = augment_draw(p->c, p->x, 3, (augment_range){0, 1}), one = ty_b_full_like(g, number, 1);
    ty_val is_half = ty_b_lt(g, ty_b_sub(g, one, number), ty_b_full_like(g, number, 0.5));
    ty_val sign = ty_b_select(g, is_half, ty_b_neg(g, one), one);
    ty_picture_map m = {.cx = TY_NONE, .cy = TY_NONE, .ax = one, .by = one, .a1 = ty_b_full_like(g, one, 0)};
    m.b1 = m.a1;
    m.ay = ty_b_mul(g, augment_draw(p->c, p->x, 3, across), sign);
    m.bx = ty_b_mul(g, augment_draw(p->c, p->x, 3, down), sign);
    return augment_apply(p, &m);
}

void keras_call_random_shear(keras_call *c)
{
    augment_plane p;
    augment_range across = {0, 0}, down = {0, 0};
    if (augment_plane_read(c, augment_pictures(c), &p) && augment_read_range(c, "x_factor", 0, 1, &across) &&
        augment_read_range(c, "y_factor", 0, 1, &down))
        augment_set(c, augment_shear(&p, across, down));
}

/* ---- seen from elsewhere ---- */

/* [B] of coordinate `axis` of corner `corner` of [B, 4, 2], as [B, 1, 1]. */
static ty_val perspective_at(ty_graph *g, ty_val corners, int corner, int axis)
{
    ty_val one = ty_b_slice_axis(g, ty_b_slice_axis(g, corners, 1, corner, corner + 1), 2, axis, axis + 1);
    return ty_b_reshape(g, one, 3, (int64_t[]){ty_b_dim(g, corners, 0), 1, 1});
}

/* The map that takes the corners of the result, to[B, 4, 2], to `from`: eight equations for eight numbers. Two rows of
 * the system a corner. */
static ty_picture_map perspective_solve(ty_graph *g, ty_val from, ty_val to)
{
    ty_val row[8], target[8], zero = TY_NONE, one = TY_NONE;
    for (int i = 0; i < 8; i++) {
        ty_val x = perspective_at(g, to, i / 2, 0), y = perspective_at(g, to, i / 2, 1);
        target[i] = perspective_at(g, from, i / 2, i % 2);
        zero = ty_b_full_like(g, x, 0);
        one = ty_b_full_like(g, x, 1);
        ty_val sx = ty_b_neg(g, ty_b_mul(g, target[i], x)), sy = ty_b_neg(g, ty_b_mul(g, target[i], y));
        bool is_y = i % 2;
        ty_val in[] = {is_y ? zero : x,
                       is_y ? zero : y,
                       is_y ? zero : one,
                       is_y ? x : zero,
                       is_y ? y : zero,
                       is_y ? one : zero,
                       sx,
                       sy};
        row[i] = ty_b_concat(g, in, 8, 2);
    }
    ty_val matrix = ty_b_concat(g, row, 8, 1), v = ty_b_concat(g, target, 8, 1), m[8];
    ty_val h = ty_b_matmul(g, ty_linear_inverse(g, matrix), v);
    for (int i = 0; i < 8; i++)
        m[i] = ty_b_slice_axis(g, h, 1, i, i + 1);
    return (ty_picture_map){m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]};
}

void keras_call_random_perspective(keras_call *c)
{
    augment_plane p;
    augment_range share = {0, 1};
    ty_graph *g = c->g;
    double scale = keras_number(c, "scale", 1);
    if (!augment_plane_read(c, augment_pictures(c), &p) ||
        (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &share)))
        return;
    double right = (double)(p.width - 1), low = (double)(p.height - 1);
    double corner[] = {0, 0, right, 0, 0, low, right, low};
    int64_t dim[] = {ty_b_dim(g, p.x, 0), 4, 2};
    ty_val from = keras_const(c, TY_F32, 2, dim + 1, corner);
    ty_val moved = ty_b_mul_s(g, ty_b_add_s(g, keras_uniform(c, 3, dim), -0.5), scale);
    from = ty_b_broadcast(g, from, 3, dim);
    ty_picture_map m = perspective_solve(g, from, ty_b_add(g, from, ty_b_mul(g, from, moved)));
    p.reader.fill = TY_FILL_CONSTANT;
    augment_set(c, augment_choose(c, share, p.x, augment_apply(&p, &m)));
}
