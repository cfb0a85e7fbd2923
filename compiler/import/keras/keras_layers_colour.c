/* keras_layers_colour.c - pictures whose values are changed at random, each in its own way, in training alone. */
#include "compiler/import/keras/keras_augment.h"

#include <math.h>

static const augment_range colour_bytes = {0, 255}, colour_unit = {0, 1};

static ty_val colour_clip(ty_graph *g, ty_val x, augment_range values)
{
    return keras_clip(g, x, values.lo, values.hi);
}

/* x + by (to - x) */
static ty_val colour_blend(ty_graph *g, ty_val x, ty_val to, ty_val by)
{
    return ty_b_add(g, x, ty_b_mul(g, by, ty_b_sub(g, to, x)));
}

/* `factor` from least to most, value_range, and the pictures; TY_NONE: there is nothing to do. */
static ty_val colour_read(keras_call *c, double least, double most, augment_range *factor, augment_range *values)
{
    ty_val x = augment_pictures(c);
    bool ok = x != TY_NONE && augment_read_range(c, "factor", least, most, factor) && augment_read_values(c, values);
    return ok ? x : TY_NONE;
}

/* ---- brighter, with more contrast, sharper ---- */

ty_val augment_contrast(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    ty_val by = augment_draw(c, x, 4, (augment_range){1 - factor.lo, 1 + factor.hi});
    return colour_clip(c->g, ty_picture_contrast(c->g, x, by), values);
}

void keras_call_random_contrast(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, 0, 1, &factor, &values);
    if (x != TY_NONE)
        augment_set(c, augment_contrast(c, x, factor, values));
}

ty_val augment_brightness(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    ty_val more = ty_b_mul_s(c->g, augment_draw(c, x, 4, factor), values.hi - values.lo);
    return colour_clip(c->g, ty_b_add(c->g, x, more), values);
}

void keras_call_random_brightness(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, -1, 1, &factor, &values);
    if (x != TY_NONE)
        augment_set(c, augment_brightness(c, x, factor, values));
}

/* Each channel under a window [rows, columns] of numbers, with zeros around. */
static ty_val colour_filter(ty_graph *g, ty_val x, ty_val window)
{
    int64_t rows = ty_b_dim(g, window, 0), columns = ty_b_dim(g, window, 1), n = ty_b_dim(g, x, 3);
    ty_attr a = {.n = 2, .groups = n, .size = {rows, columns}, .step = {1, 1}, .dil = {1, 1}};
    a.lo[0] = a.hi[0] = rows / 2;
    a.lo[1] = a.hi[1] = columns / 2;
    ty_val kernel = ty_b_broadcast(g, ty_b_cast(g, window, ty_b_dtype(g, x)), 4, (int64_t[]){n, 1, rows, columns});
    ty_val in[] = {ty_b_transpose(g, x, (int64_t[]){0, 3, 1, 2}), kernel};
    return ty_b_transpose(g, ty_graph_emit(g, TY_OP_CONV, &a, in, 2), (int64_t[]){0, 2, 3, 1});
}

/* Factor 1/2 leaves it as it is, 0 is the smoothest, 1 the sharpest. */
ty_val augment_sharpen(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    static const double smooth[] = {1. / 13, 1. / 13, 1. / 13, 1. / 13, 5. / 13, 1. / 13, 1. / 13, 1. / 13, 1. / 13};
    ty_graph *g = c->g;
    ty_val by = ty_b_add_s(g, ty_b_mul_s(g, augment_draw(c, x, 4, factor), -2), 1);
    ty_val other = colour_filter(g, x, keras_const(c, TY_F32, 2, (int64_t[]){3, 3}, smooth));
    return colour_clip(g, colour_blend(g, x, other, by), values);
}

void keras_call_random_sharpness(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, 0, 1, &factor, &values);
    if (x != TY_NONE)
        augment_set(c, augment_sharpen(c, x, factor, values));
}

/* A Gaussian of n taps, [n], which are together 1. */
static ty_val colour_gaussian(keras_call *c, int64_t n, ty_val deviation)
{
    ty_graph *g = c->g;
    ty_val at = ty_b_add_s(g, ty_b_iota(g, ty_type_make(TY_F32, 1, &n), 0), -(double)(n - 1) / 2);
    ty_val y = ty_b_exp(g, ty_b_mul_s(g, ty_b_square(g, ty_b_div(g, at, deviation)), -0.5));
    return ty_b_div(g, y, ty_b_sum(g, y, 1u, true));
}

/* One deviation of each axis for all pictures of a step. Windows that are not square are Keras' own: the numbers of
 * columns x rows, by row, as rows x columns. */
static ty_val colour_blur(keras_call *c, ty_val x, const int64_t size[2], augment_range deviation)
{
    ty_graph *g = c->g;
    ty_val tap[2];
    for (int i = 0; i < 2; i++) {
        ty_val number = keras_uniform(c, 0, NULL);
        number = ty_b_add_s(g, ty_b_mul_s(g, number, deviation.hi - deviation.lo), deviation.lo + 1e-6);
        tap[i] = colour_gaussian(c, size[i], number);
    }
    ty_val window = ty_b_mul(g, ty_b_unsqueeze(g, tap[1], 1), ty_b_unsqueeze(g, tap[0], 0));
    return colour_filter(g, x, ty_b_reshape(g, window, 2, size));
}

void keras_call_random_gaussian_blur(keras_call *c)
{
    augment_range factor = {0, 1}, deviation = {0, 1}, values;
    int64_t size[2];
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &factor)) ||
        (keras_config(c, "sigma") && !augment_read_range(c, "sigma", 0, 1, &deviation)) ||
        !augment_read_values(c, &values) || !keras_ints(c, "kernel_size", 2, 3, size))
        return;
    if (size[0] < 1 || size[1] < 1 || size[0] % 2 == 0 || size[1] % 2 == 0 || size[0] > 1 << 12 || size[1] > 1 << 12) {
        keras_fail_key(c, "kernel_size", "expected an odd number, or two");
        return;
    }
    ty_val y = augment_choose(c, factor, x, colour_blur(c, x, size, deviation));
    augment_set(c, colour_clip(c->g, y, values));
}

/* ---- colours ---- */

/* Three channels of the same. */
static ty_val colour_gray(ty_graph *g, ty_val x)
{
    ty_val gray = ty_picture_gray(g, x);
    return ty_picture_together(g, (ty_val[]){gray, gray, gray});
}

void keras_call_random_grayscale(keras_call *c)
{
    ty_val x = augment_pictures(c);
    double share = keras_number(c, "factor", 0.5);
    if (x != TY_NONE && !c->failed && augment_has_colours(c, x))
        augment_set(c, augment_choose(c, (augment_range){share, share}, x, colour_gray(c->g, x)));
}

ty_val augment_fade(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    ty_val y = colour_blend(c->g, x, colour_gray(c->g, x), augment_draw(c, x, 4, factor));
    return colour_clip(c->g, y, values);
}

void keras_call_random_color_degeneration(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, -1, 1, &factor, &values);
    if (x != TY_NONE && augment_has_colours(c, x))
        augment_set(c, augment_fade(c, x, factor, values));
}

/* By half a turn at most, in one direction or the other. */
static ty_val colour_turn(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    ty_graph *g = c->g;
    ty_val number = augment_draw(c, x, 4, colour_unit), by = augment_draw(c, x, 4, factor);
    ty_val is_back = ty_b_lt(g, ty_b_full_like(g, number, 0.5), number);
    by = ty_b_mul_s(g, ty_b_select(g, is_back, ty_b_neg(g, by), by), 0.5);
    ty_val y = ty_picture_turn_hue(g, augment_scale(g, x, values, colour_unit), by);
    return augment_scale(g, colour_clip(g, y, colour_unit), colour_unit, values);
}

void keras_call_random_hue(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, 0, 1, &factor, &values);
    if (x != TY_NONE && augment_has_colours(c, x))
        augment_set(c, colour_turn(c, x, factor, values));
}

/* Factor f multiplies the saturation with f / (1 - f); that is kept inside the range of values, as in Keras. */
static ty_val colour_saturate(keras_call *c, ty_val x, augment_range factor, augment_range values)
{
    ty_graph *g = c->g;
    ty_val part[3], f = augment_draw(c, x, 4, factor);
    ty_val by = ty_b_div(g, f, ty_b_sub(g, ty_b_full_like(g, f, 1 + 1e-7), f));
    ty_picture_apart(g, ty_picture_hsv(g, x), part);
    part[1] = colour_clip(g, ty_b_mul(g, part[1], by), values);
    return ty_picture_rgb(g, ty_picture_together(g, part));
}

void keras_call_random_saturation(keras_call *c)
{
    augment_range factor, values;
    ty_val x = colour_read(c, -1, 1, &factor, &values);
    if (x != TY_NONE && augment_has_colours(c, x))
        augment_set(c, colour_saturate(c, x, factor, values));
}

void keras_call_random_color_jitter(keras_call *c)
{
    augment_range values, r;
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || !augment_read_values(c, &values) || !augment_has_colours(c, x))
        return;
    if (keras_config(c, "brightness_factor") && augment_read_range(c, "brightness_factor", -1, 1, &r))
        x = augment_brightness(c, x, r, values);
    if (keras_config(c, "contrast_factor") && augment_read_range(c, "contrast_factor", 0, 1, &r))
        x = augment_contrast(c, x, r, values);
    if (keras_config(c, "saturation_factor") && augment_read_range(c, "saturation_factor", -1, 1, &r))
        x = colour_saturate(c, x, r, values);
    if (keras_config(c, "hue_factor") && augment_read_range(c, "hue_factor", 0, 1, &r))
        x = colour_turn(c, x, r, values);
    augment_set(c, x);
}

/* ---- values that become others ---- */

void keras_call_random_invert(keras_call *c)
{
    ty_graph *g = c->g;
    augment_range factor = colour_unit, values;
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &factor)) ||
        !augment_read_values(c, &values))
        return;
    augment_set(c, augment_choose(c, factor, x, ty_b_sub(g, ty_b_full_like(g, x, values.hi), x)));
}

/* Of the eight bits of a value only the first ones, as many as drawn from least to below most, are kept. */
ty_val augment_posterize(keras_call *c, ty_val x, int64_t least, int64_t most, augment_range values)
{
    static const double step[] = {256, 128, 64, 32, 16, 8, 4, 2, 1};
    ty_graph *g = c->g;
    augment_range bits = {(double)least, most > least ? (double)most : (double)least};
    ty_val n = ty_b_unary(g, TY_OP_FLOOR, augment_draw(c, x, 4, bits));
    ty_val steps = keras_const(c, TY_F32, 1, (int64_t[]){9}, step);
    ty_val size = ty_b_gather(g, steps, ty_b_cast(g, keras_clip(g, n, 0, 8), TY_I64), 0);
    ty_val y = ty_b_unary(g, TY_OP_FLOOR, augment_scale(g, x, values, colour_bytes));
    y = ty_b_mul(g, ty_b_unary(g, TY_OP_FLOOR, ty_b_div(g, y, size)), size);
    return augment_scale(g, y, colour_bytes, values);
}

void keras_call_random_posterization(keras_call *c)
{
    augment_range factor, values;
    ty_val x = augment_pictures(c);
    if (x != TY_NONE && augment_read_range(c, "factor", 1, 8, &factor) && augment_read_values(c, &values))
        augment_set(c, augment_posterize(c, x, (int64_t)factor.lo, (int64_t)factor.hi, values));
}

/* Something is added, then what is not below a threshold is inverted; of both the upper bound is a share of 255. */
ty_val augment_solarize(keras_call *c, ty_val x, augment_range more, augment_range threshold, augment_range values)
{
    ty_graph *g = c->g;
    ty_val sum = augment_draw(c, x, 4, (augment_range){more.lo, more.hi * 255});
    ty_val bound = augment_draw(c, x, 4, (augment_range){threshold.lo, threshold.hi * 255});
    ty_val y = colour_clip(g, ty_b_add(g, augment_scale(g, x, values, colour_bytes), sum), colour_bytes);
    y = ty_b_select(g, ty_b_lt(g, y, bound), y, ty_b_sub(g, ty_b_full_like(g, y, 255), y));
    return augment_scale(g, y, colour_bytes, values);
}

void keras_call_solarization(keras_call *c)
{
    augment_range more = {0, 0}, threshold = {0, 0}, values;
    ty_val x = augment_pictures(c);
    if (x != TY_NONE && augment_read_range(c, "addition_factor", 0, 1, &more) &&
        augment_read_range(c, "threshold_factor", 0, 1, &threshold) && augment_read_values(c, &values))
        augment_set(c, augment_solarize(c, x, more, threshold, values));
}

/* Axes 1 and 2 from the least to the largest value, where these differ; x: in whatever layout. */
ty_val augment_auto_contrast(keras_call *c, ty_val x, augment_range values)
{
    ty_graph *g = c->g;
    ty_val y = augment_scale(g, x, values, colour_bytes);
    ty_val low = ty_b_reduce(g, y, TY_MIN, 1u << 1 | 1u << 2, true);
    ty_val range = ty_b_sub(g, ty_b_reduce(g, y, TY_MAX, 1u << 1 | 1u << 2, true), low);
    ty_val is_flat = ty_b_le(g, range, ty_b_full_like(g, range, 0));
    ty_val scale = ty_b_select(g, is_flat, ty_b_full_like(g, range, 1), range);
    scale = ty_b_div(g, ty_b_full_like(g, range, 255), scale);
    y = colour_clip(g, ty_b_mul(g, ty_b_sub(g, y, low), scale), colour_bytes);
    return ty_b_select(g, is_flat, x, augment_scale(g, y, colour_bytes, values));
}

/* In training and afterwards. */
void keras_call_auto_contrast(keras_call *c)
{
    augment_range values;
    if (c->n_in != 1 || ty_b_rank(c->g, c->in[0]) != 4)
        keras_fail(c, TY_E_SHAPE, "expected pictures [batch, height, width, channels]");
    else if (augment_read_values(c, &values))
        keras_set(c, 0, augment_auto_contrast(c, keras_float(c, c->in[0]), values));
}

/* How many values of each channel, over all pictures, are in each bin and those before: [C, bins]. at: bins, counted
 * from that of the first channel on. */
static ty_val colour_heaped(ty_graph *g, ty_val at, int64_t channels, int64_t bins)
{
    int64_t all = channels * bins, dim[] = {channels, bins};
    ty_val flat = ty_b_flatten(g, at), one = ty_b_full(g, TY_F32, 1, ty_graph_type(g, flat)->dim, 1);
    ty_val counts = ty_b_scatter(g, ty_b_full(g, TY_F32, 1, &all, 0), flat, one, 0, TY_SUM);
    return ty_b_scan(g, ty_b_reshape(g, counts, 2, dim), TY_SUM, 1, false, false);
}

/* What each bin becomes, [C, bins]: its share of the values, as a byte. *is_flat: channels that have one bin alone,
 * [C, 1]. Counts are whole numbers below 2^24, which floats hold. */
static ty_val colour_table(ty_graph *g, ty_val heaped, int64_t bins, ty_val *is_flat)
{
    ty_val zero = ty_b_full_like(g, heaped, 0), last = ty_b_slice_axis(g, heaped, 1, bins - 1, bins);
    ty_val some = ty_b_select(g, ty_b_lt(g, zero, heaped), heaped, last);
    ty_val first = ty_b_reduce(g, some, TY_MIN, 1u << 1, true), rest = ty_b_sub(g, last, first);
    *is_flat = ty_b_le(g, rest, ty_b_full_like(g, rest, 0));
    ty_val share = ty_b_select(g, *is_flat, ty_b_full_like(g, rest, 1), rest);
    ty_val y = ty_b_div(g, ty_b_mul_s(g, ty_b_sub(g, heaped, first), 255), share);
    return keras_clip(g, ty_b_unary(g, TY_OP_RINT, y), 0, 255);
}

/* So that each byte is as frequent in each channel, over all pictures. */
ty_val augment_equalize(keras_call *c, ty_val x, int64_t bins, augment_range values)
{
    ty_graph *g = c->g;
    const ty_type t = *ty_graph_type(g, x);
    int64_t channels = t.dim[3], all = channels * bins, dim[] = {1, 1, 1, channels};
    ty_val bytes = augment_scale(g, x, values, colour_bytes), is_flat;
    ty_val bin = keras_clip(g, ty_b_mul_s(g, bytes, (double)(bins - 1) / 255), 0, (double)(bins - 1));
    ty_val channel = ty_b_mul_s(g, ty_b_iota(g, ty_type_make(TY_I64, 4, dim), 3), (double)bins);
    ty_val at = ty_b_add(g, ty_b_cast(g, bin, TY_I64), channel);
    ty_val table = colour_table(g, colour_heaped(g, at, channels, bins), bins, &is_flat);
    ty_val y = ty_b_gather(g, ty_b_reshape(g, table, 1, &all), at, 0);
    y = ty_b_select(g, ty_b_reshape(g, is_flat, 4, dim), bytes, ty_b_cast(g, y, (ty_dtype)t.dtype));
    return augment_scale(g, y, colour_bytes, values);
}

void keras_call_equalization(keras_call *c)
{
    augment_range values;
    int64_t bins = keras_int(c, "bins", 256);
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || !augment_read_values(c, &values))
        return;
    if (bins < 1 || bins > 1 << 16)
        keras_fail_key(c, "bins", "expected a number from 1 to %d", 1 << 16);
    else
        augment_set(c, augment_equalize(c, x, bins, values));
}

/* ---- erased ---- */

/* Of an axis of n, the positions from a random place on, over a share [B, 1, 1, 1] of it. */
static ty_val colour_strip(keras_call *c, ty_val x, int axis, ty_val share)
{
    ty_graph *g = c->g;
    int64_t n = ty_b_dim(g, x, axis), dim[] = {1, 1, 1, 1};
    dim[axis] = n;
    ty_val length = ty_b_mul_s(g, share, (double)n), free = ty_b_sub(g, ty_b_full_like(g, length, (double)n), length);
    ty_val from = ty_b_mul(g, augment_draw(c, x, 4, colour_unit), free),
           at = ty_b_iota(g, ty_type_make(TY_F32, 4, dim), axis);
    return ty_b_binary(g, TY_OP_AND, ty_b_le(g, from, at), ty_b_lt(g, at, ty_b_add(g, from, length)));
}

/* What stands where something was: noise, a number, or one for each channel. */
static ty_val colour_filling(keras_call *c, ty_val x, augment_range values)
{
    ty_graph *g = c->g;
    const ty_type t = *ty_graph_type(g, x);
    const ty_doc *given = keras_config(c, "fill_value");
    double v[3];
    if (!given)
        return colour_clip(g, ty_b_mul_s(g, keras_normal(c, t.rank, t.dim), values.hi), values);
    if (given->kind != TY_DOC_LIST)
        return colour_clip(g, ty_b_full_like(g, x, keras_number(c, "fill_value", 0)), values);
    bool ok = ty_doc_len(given) == 3 && t.dim[3] == 3;
    for (size_t i = 0; i < 3 && ok; i++)
        ok = ty_doc_float(ty_doc_at(given, i), &v[i], NULL) == 0;
    if (!ok) {
        keras_fail_key(c, "fill_value", "expected a number, or three for pictures of 3 channels");
        return TY_NONE;
    }
    return colour_clip(g, keras_const(c, TY_F32, 4, (int64_t[]){1, 1, 1, 3}, v), values);
}

void keras_call_random_erasing(keras_call *c)
{
    ty_graph *g = c->g;
    augment_range factor = colour_unit, size = {0.02, 0.33}, values;
    ty_val x = augment_pictures(c), inside[2];
    if (x == TY_NONE || (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &factor)) ||
        (keras_config(c, "scale") && !augment_read_range(c, "scale", 0, 1, &size)) || !augment_read_values(c, &values))
        return;
    for (int axis = 1; axis <= 2; axis++)
        inside[axis - 1] = colour_strip(c, x, axis, ty_b_unary(g, TY_OP_SQRT, augment_draw(c, x, 4, size)));
    ty_val filling = colour_filling(c, x, values);
    if (c->failed)
        return;
    ty_val y =
        ty_b_select(g, ty_b_binary(g, TY_OP_AND, inside[0], inside[1]), ty_b_cast(g, filling, ty_b_dtype(g, x)), x);
    augment_set(c, augment_choose(c, factor, x, y));
}
