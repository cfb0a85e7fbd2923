/* picture.c - see picture.h. */
#include "compiler/import/picture.h"

#include "compiler/ir/build.h"

/* ---- small things ---- */

static ty_val picture_floor(ty_graph *g, ty_val x)
{
    return ty_b_unary(g, TY_OP_FLOOR, x);
}

static ty_val picture_is_below(ty_graph *g, ty_val x, double bound)
{
    return ty_b_lt(g, x, ty_b_full_like(g, x, bound));
}

/* a - x */
static ty_val picture_from(ty_graph *g, double a, ty_val x)
{
    return ty_b_sub(g, ty_b_full_like(g, x, a), x);
}

static ty_val picture_clip(ty_graph *g, ty_val x, double lo, double hi)
{
    return ty_b_min(g, ty_b_max(g, x, ty_b_full_like(g, x, lo)), ty_b_full_like(g, x, hi));
}

/* ---- colours ---- */

/* Each channel becomes a plane of its own, of which neighbours lie side by side: what follows is done many at a time.
 */
void ty_picture_apart(ty_graph *g, ty_val x, ty_val channel[3])
{
    if (x == TY_NONE) {
        channel[0] = channel[1] = channel[2] = TY_NONE;
        return;
    }
    ty_type t = *ty_graph_type(g, x);
    int64_t flat[] = {ty_type_elems(&t) / 3, 3};
    ty_val planes = ty_b_transpose(g, ty_b_reshape(g, x, 2, flat), (int64_t[]){1, 0});
    t.dim[t.rank - 1] = 1;
    for (int i = 0; i < 3; i++)
        channel[i] = ty_b_reshape(g, ty_b_slice_axis(g, planes, 0, i, i + 1), t.rank, t.dim);
}

ty_val ty_picture_together(ty_graph *g, const ty_val channel[3])
{
    ty_val row[3];
    if (channel[0] == TY_NONE)
        return TY_NONE;
    ty_type t = *ty_graph_type(g, channel[0]);
    int64_t flat[] = {1, ty_type_elems(&t)};
    for (int i = 0; i < 3; i++)
        row[i] = ty_b_reshape(g, channel[i], 2, flat);
    t.dim[t.rank - 1] = 3;
    ty_val y = ty_b_transpose(g, ty_b_concat(g, row, 3, 0), (int64_t[]){1, 0});
    return ty_b_reshape(g, y, t.rank, t.dim);
}

/* Where it is not 0, else 1: what may be divided by. */
static ty_val picture_divisor(ty_graph *g, ty_val x, ty_val is_zero)
{
    return ty_b_select(g, is_zero, ty_b_full_like(g, x, 1), x);
}

/* (a - b) / (6 range) + from */
static ty_val picture_sector(ty_graph *g, ty_val a, ty_val b, ty_val norm, double from)
{
    return ty_b_add_s(g, ty_b_mul(g, norm, ty_b_sub(g, a, b)), from);
}

ty_val ty_picture_hsv(ty_graph *g, ty_val rgb)
{
    ty_val c[3];
    ty_picture_apart(g, rgb, c);
    ty_val value = ty_b_max(g, ty_b_max(g, c[0], c[1]), c[2]);
    ty_val range = ty_b_sub(g, value, ty_b_min(g, ty_b_min(g, c[0], c[1]), c[2])), zero = ty_b_full_like(g, value, 0);
    ty_val is_black = ty_b_le(g, value, zero), is_gray = ty_b_le(g, range, zero);
    ty_val part = ty_b_div(g, range, picture_divisor(g, value, is_black));
    ty_val norm = ty_b_reciprocal(g, ty_b_mul_s(g, picture_divisor(g, range, is_gray), 6));
    ty_val by_green = picture_sector(g, c[2], c[0], norm, 2.0 / 6),
           by_blue = picture_sector(g, c[0], c[1], norm, 4.0 / 6);
    ty_val hue = ty_b_select(g, ty_b_eq(g, c[1], value), by_green, by_blue);
    hue = ty_b_select(g, ty_b_eq(g, c[0], value), picture_sector(g, c[1], c[2], norm, 0), hue);
    hue = ty_b_select(g, is_gray, zero, hue);
    hue = ty_b_select(g, picture_is_below(g, hue, 0), ty_b_add_s(g, hue, 1), hue);
    return ty_picture_together(g, (ty_val[]){hue, ty_b_select(g, is_black, zero, part), value});
}

/* How much of a colour a hue has: by how far it is from where that is purest, in sixths. */
static ty_val picture_share(ty_graph *g, ty_val sixths, double middle, double sign, double from)
{
    ty_val away = ty_b_unary(g, TY_OP_ABS, ty_b_add_s(g, sixths, -middle));
    return picture_clip(g, ty_b_add_s(g, ty_b_mul_s(g, away, sign), from), 0, 1);
}

ty_val ty_picture_rgb(ty_graph *g, ty_val hsv)
{
    static const double middle[] = {3, 2, 4}, sign[] = {1, -1, -1}, from[] = {-1, 2, 2};
    ty_val c[3], out[3];
    ty_picture_apart(g, hsv, c);
    ty_val sixths = ty_b_mul_s(g, c[0], 6), rest = picture_from(g, 1, c[1]);
    for (int i = 0; i < 3; i++) {
        ty_val share = picture_share(g, sixths, middle[i], sign[i], from[i]);
        out[i] = ty_b_mul(g, ty_b_add(g, rest, ty_b_mul(g, c[1], share)), c[2]);
    }
    return ty_picture_together(g, out);
}

ty_val ty_picture_gray(ty_graph *g, ty_val rgb)
{
    static const double parts[] = {0.2989, 0.587, 0.114};
    ty_val c[3], gray = TY_NONE;
    ty_picture_apart(g, rgb, c);
    for (int i = 0; i < 3; i++)
        gray = i ? ty_b_add(g, gray, ty_b_mul_s(g, c[i], parts[i])) : ty_b_mul_s(g, c[i], parts[i]);
    return gray;
}

ty_val ty_picture_turn_hue(ty_graph *g, ty_val rgb, ty_val turns)
{
    ty_val c[3];
    ty_picture_apart(g, ty_picture_hsv(g, rgb), c);
    c[0] = ty_b_add(g, c[0], turns);
    c[0] = ty_b_sub(g, c[0], picture_floor(g, c[0]));
    return ty_picture_rgb(g, ty_picture_together(g, c));
}

ty_val ty_picture_contrast(ty_graph *g, ty_val x, ty_val by)
{
    int rank = ty_b_rank(g, x);
    ty_val mean = ty_b_mean(g, x, 1u << (rank - 3) | 1u << (rank - 2), true);
    return ty_b_add(g, ty_b_mul(g, ty_b_sub(g, x, mean), by), mean);
}

/* ---- reading between pixels ---- */

typedef struct picture_plane {
    const ty_picture_reader *r;
    ty_val rows;  /* [B H W, C] */
    ty_val first; /* [N, 1, 1] the first pixel of the picture that is read */
    int64_t height, width;
    int64_t dim[4]; /* [N, h, w, 1] of the result */
} picture_plane;

/* How many times n goes into a number that is not negative. */
static ty_val picture_turns(ty_graph *g, ty_val x, double n)
{
    return picture_floor(g, ty_b_div(g, x, ty_b_full_like(g, x, n)));
}

static ty_val picture_reflect(ty_graph *g, ty_val at, double n)
{
    ty_val low = ty_b_add(g, ty_b_mul_s(g, picture_turns(g, ty_b_neg(g, at), 2 * n), 2 * n), at);
    low = ty_b_select(g, picture_is_below(g, low, -n), ty_b_add_s(g, low, 2 * n), picture_from(g, -1, low));
    ty_val high = ty_b_sub(g, at, ty_b_mul_s(g, picture_turns(g, at, 2 * n), 2 * n));
    high = ty_b_select(g, picture_is_below(g, high, n), high, picture_from(g, 2 * n - 1, high));
    high = ty_b_select(g, ty_b_le(g, at, ty_b_full_like(g, at, n - 1)), at, high);
    return ty_b_select(g, picture_is_below(g, at, 0), low, high);
}

static ty_val picture_wrap(ty_graph *g, ty_val at, double n)
{
    ty_val low = ty_b_add_s(g, picture_turns(g, ty_b_neg(g, at), n - 1), 1);
    low = ty_b_add(g, at, ty_b_mul_s(g, low, n));
    ty_val high = ty_b_sub(g, at, ty_b_mul_s(g, picture_turns(g, at, n - 1), n));
    high = ty_b_select(g, ty_b_le(g, at, ty_b_full_like(g, at, n - 1)), at, high);
    return ty_b_select(g, picture_is_below(g, at, 0), low, high);
}

/* A position along an axis of n, brought inside unless what lies outside has a value of its own. */
static ty_val picture_inside(const ty_picture_reader *r, ty_val at, int64_t n)
{
    if (r->fill == TY_FILL_CONSTANT)
        return at;
    if (n < 2)
        return ty_b_full_like(r->g, at, 0);
    if (r->fill == TY_FILL_REFLECT)
        at = picture_reflect(r->g, at, (double)n);
    if (r->fill == TY_FILL_WRAP)
        at = picture_wrap(r->g, at, (double)n);
    return picture_clip(r->g, at, 0, (double)(n - 1));
}

/* The pixels [N, h, w, C] at whole numbers x and y. */
static ty_val picture_pixels(const picture_plane *p, ty_val x, ty_val y)
{
    ty_graph *g = p->r->g;
    ty_val column = picture_clip(g, x, 0, (double)(p->width - 1));
    ty_val row = picture_clip(g, y, 0, (double)(p->height - 1));
    ty_val at = ty_b_add(g, ty_b_mul_s(g, ty_b_cast(g, row, TY_I64), (double)p->width), p->first);
    at = ty_b_add(g, at, ty_b_cast(g, column, TY_I64));
    ty_val pixel = ty_b_gather(g, p->rows, at, 0);
    if (p->r->fill != TY_FILL_CONSTANT || pixel == TY_NONE)
        return pixel;
    ty_val there = ty_b_binary(g, TY_OP_AND, ty_b_eq(g, row, y), ty_b_eq(g, column, x));
    ty_val value = p->r->value == TY_NONE ? ty_b_scalar(g, ty_b_dtype(g, pixel), 0) : p->r->value;
    return ty_b_select(g, ty_b_reshape(g, there, 4, p->dim), pixel, value);
}

/* Halves away from 0. */
static ty_val picture_round(ty_graph *g, ty_val x)
{
    ty_val up = picture_floor(g, ty_b_add_s(g, x, 0.5)), down = picture_floor(g, ty_b_add_s(g, ty_b_neg(g, x), 0.5));
    return ty_b_select(g, picture_is_below(g, x, 0), ty_b_neg(g, down), up);
}

/* Between two pixels: (1 - part) a + part b. */
static ty_val picture_between(const picture_plane *p, ty_val a, ty_val b, ty_val part)
{
    ty_graph *g = p->r->g;
    part = ty_b_cast(g, ty_b_reshape(g, part, 4, p->dim), ty_b_dtype(g, a));
    return ty_b_add(g, ty_b_mul(g, picture_from(g, 1, part), a), ty_b_mul(g, part, b));
}

static ty_val picture_sample(const picture_plane *p, ty_val x, ty_val y)
{
    ty_graph *g = p->r->g;
    if (p->r->is_nearest)
        return picture_pixels(p, picture_round(g, x), picture_round(g, y));
    ty_val left = picture_floor(g, x), top = picture_floor(g, y), right = ty_b_add_s(g, left, 1),
           low = ty_b_add_s(g, top, 1);
    ty_val across = ty_b_sub(g, x, left), down = ty_b_sub(g, y, top);
    ty_val above = picture_between(p, picture_pixels(p, left, top), picture_pixels(p, right, top), across);
    ty_val below = picture_between(p, picture_pixels(p, left, low), picture_pixels(p, right, low), across);
    return picture_between(p, above, below, down);
}

ty_val ty_picture_read(const ty_picture_reader *r, ty_val picture, ty_val x, ty_val y)
{
    ty_graph *g = r->g;
    if (r->x == TY_NONE || x == TY_NONE || y == TY_NONE)
        return TY_NONE;
    const ty_type t = *ty_graph_type(g, r->x), at = *ty_graph_type(g, x);
    picture_plane p = {.r = r, .height = t.dim[1], .width = t.dim[2]};
    int64_t each[] = {at.dim[0], 1, 1};
    for (int i = 0; i < 3; i++)
        p.dim[i] = at.dim[i];
    p.dim[3] = 1;
    p.rows = ty_b_reshape(g, r->x, 2, (int64_t[]){t.dim[0] * t.dim[1] * t.dim[2], t.dim[3]});
    picture = picture == TY_NONE ? ty_b_iota(g, ty_type_make(TY_I64, 1, each), 0) : ty_b_cast(g, picture, TY_I64);
    p.first = ty_b_mul_s(g, ty_b_reshape(g, picture, 3, each), (double)(t.dim[1] * t.dim[2]));
    return picture_sample(&p, picture_inside(r, x, p.width), picture_inside(r, y, p.height));
}

static ty_val picture_dot(ty_graph *g, ty_val a, ty_val x, ty_val b, ty_val y, ty_val one)
{
    return ty_b_add(g, ty_b_add(g, ty_b_mul(g, a, x), ty_b_mul(g, b, y)), one);
}

ty_val ty_picture_project(const ty_picture_reader *r, const ty_picture_map *m, int64_t height, int64_t width)
{
    ty_graph *g = r->g;
    if (r->x == TY_NONE)
        return TY_NONE;
    ty_type plane = ty_type_make(TY_F32, 3, (int64_t[]){ty_b_dim(g, r->x, 0), height, width});
    ty_val x = ty_b_iota(g, plane, 2), y = ty_b_iota(g, plane, 1);
    ty_val at_x = picture_dot(g, m->ax, x, m->ay, y, m->a1), at_y = picture_dot(g, m->bx, x, m->by, y, m->b1);
    if (m->cx != TY_NONE) {
        ty_val k = picture_dot(g, m->cx, x, m->cy, y, ty_b_full_like(g, m->cx, 1));
        at_x = ty_b_div(g, at_x, k);
        at_y = ty_b_div(g, at_y, k);
    }
    return ty_picture_read(r, TY_NONE, at_x, at_y);
}
