/* plan.c - declarations of pictures: defaults, checks, what the data decide. */
#include "container/input/image/plan.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

enum { PLAN_MAX_SIDE = 16384 };

ty_image_plan ty_image_plan_make(void)
{
    return (ty_image_plan){.scale = 1.0 / 255.0, .gap = 2.0, .area = {0.08, 1.0}, .ratio = {3.0 / 4.0, 4.0 / 3.0}};
}

static int plan_check_range(const char *key, const double range[2], double most, ty_error *err)
{
    if (range[0] > 0.0 && range[0] <= range[1] && range[1] <= most)
        return 0;
    return ty_error_set(err, TY_E_RANGE, "%s: [%g, %g], expected two numbers above 0, the smaller first", key, range[0],
                        range[1]);
}

static int plan_check_numbers(const ty_image_plan *p, ty_error *err)
{
    if (!isfinite(p->scale) || p->scale == 0.0)
        return ty_error_set(err, TY_E_RANGE, "scale must be a number and not 0");
    for (int i = 0; i < p->n_mean; i++)
        if (!isfinite(p->mean[i]))
            return ty_error_set(err, TY_E_RANGE, "mean must be finite");
    for (int i = 0; i < p->n_std; i++)
        if (!isfinite(p->std[i]) || p->std[i] <= 0.0)
            return ty_error_set(err, TY_E_RANGE, "std must be above 0, found %g", p->std[i]);
    if (!(p->gap == 0.0 || (p->gap >= 1.0 && p->gap <= 64.0)))
        return ty_error_set(err, TY_E_RANGE, "reducing_gap: %g, expected 1 or more, or 0 to decode at full size",
                            p->gap);
    if (p->mix != TY_IMAGE_MIX_NONE && !(p->alpha > 0.0 && p->alpha <= 1e6))
        return ty_error_set(err, TY_E_RANGE, "mix: the alpha of its Beta distribution must be above 0, found %g",
                            p->alpha);
    return 0;
}

static int plan_check_type(const ty_image_plan *p, ty_dtype dtype, ty_error *err)
{
    bool is_float = dtype == TY_F32 || dtype == TY_F64 || dtype == TY_F16 || dtype == TY_BF16;
    if (!is_float && dtype != TY_U8)
        return ty_error_set(err, TY_E_TYPE, "pictures become floats or uint8, not %s", ty_dtype_text(dtype));
    if (!is_float && (p->scale_given || p->n_mean > 0 || p->n_std > 0 || p->mean_of_data))
        return ty_error_set(err, TY_E_CONFIG, "scale, mean and std make floats; the field's type is uint8");
    if (p->mix != TY_IMAGE_MIX_NONE && dtype != TY_F32)
        return ty_error_set(err, TY_E_CONFIG, "mix needs a field of type float32");
    return 0;
}

int ty_image_plan_check(const ty_image_plan *p, ty_dtype dtype, ty_error *err)
{
    bool sized = p->height > 0 && p->width > 0;
    if ((p->height != 0 || p->width != 0) && (!sized || p->height > PLAN_MAX_SIDE || p->width > PLAN_MAX_SIDE))
        return ty_error_set(err, TY_E_RANGE, "size: [%d, %d], expected height and width, 1 to %d", p->height, p->width,
                            PLAN_MAX_SIDE);
    if (p->channels < 0 || p->channels > 4)
        return ty_error_set(err, TY_E_RANGE, "channels: %d, expected 1 (grey), 2, 3 (RGB) or 4", p->channels);
    if (!sized && (p->fit != TY_IMAGE_STRETCH || p->crop != TY_IMAGE_CROP_CENTRE || p->pad > 0))
        return ty_error_set(err, TY_E_CONFIG, "resize, crop and pad need a size: [HEIGHT, WIDTH]");
    if (p->fit == TY_IMAGE_SHORTER && (p->shorter < 1 || p->shorter > PLAN_MAX_SIDE))
        return ty_error_set(err, TY_E_RANGE, "resize: %d, expected 1 to %d", p->shorter, PLAN_MAX_SIDE);
    int side = p->height < p->width ? p->height : p->width;
    if (p->pad < 0 || (p->pad > 0 && p->pad >= side))
        return ty_error_set(err, TY_E_RANGE, "pad: %d, expected 0 to %d, less than a side of size", p->pad, side - 1);
    if (p->crop == TY_IMAGE_CROP_RANDOM && p->fit == TY_IMAGE_STRETCH && p->pad == 0) {
        ty_error_set(err, TY_E_CONFIG, "crop: random has nothing to choose: the picture is stretched to size");
        return ty_error_help(err, "say resize: N (shorter side), cover or none, or pad: N");
    }
    if (!(p->grey >= 0 && p->grey <= 1 && p->erase >= 0 && p->erase <= 1 && p->rotate >= 0 && p->rotate <= 180 &&
          p->jitter[TY_JITTER_HUE] >= 0 && p->jitter[TY_JITTER_HUE] <= 0.5))
        return ty_error_set(err, TY_E_RANGE, "grayscale and erase are 0 to 1, rotate 0 to 180, jitter.hue 0 to 0.5");
    if (plan_check_range("area", p->area, 1.0, err) < 0 || plan_check_range("ratio", p->ratio, 1e6, err) < 0)
        return -1;
    return plan_check_numbers(p, err) < 0 ? -1 : plan_check_type(p, dtype, err);
}

static int plan_spread(const char *key, double *v, int *n, double none, int channels, ty_error *err)
{
    if (*n > 1 && *n != channels)
        return ty_error_set(err, TY_E_SHAPE, "%s has %d numbers, expected 1 or one for each of %d channels", key, *n,
                            channels);
    for (int i = *n; i < 4; i++)
        v[i] = *n == 0 ? none : v[0];
    *n = channels;
    return 0;
}

int ty_image_plan_settle(ty_image_plan *p, const ty_image_info *first, ty_error *err)
{
    if (p->height == 0) {
        p->height = first->height;
        p->width = first->width;
        p->fit = TY_IMAGE_AS_IS;
        p->all_alike = true;
        if (p->height > PLAN_MAX_SIDE || p->width > PLAN_MAX_SIDE)
            return ty_error_set(err, TY_E_LIMIT, "the picture is %d x %d pixels: say which size: is wanted", p->width,
                                p->height);
    }
    if (p->channels == 0)
        p->channels = first->channels;
    if (plan_spread("mean", p->mean, &p->n_mean, 0.0, p->channels, err) < 0)
        return -1;
    return plan_spread("std", p->std, &p->n_std, 1.0, p->channels, err);
}

ty_type ty_image_plan_type(const ty_image_plan *p, ty_dtype dtype)
{
    int64_t chw[3] = {p->channels, p->height, p->width}, hwc[3] = {p->height, p->width, p->channels};
    return ty_type_make(dtype, 3, p->hwc ? hwc : chw);
}

static bool plan_varies(const ty_image_plan *p)
{
    bool varies = p->grey > 0 || p->erase > 0 || p->rotate > 0;
    for (int i = 0; i < TY_N_JITTERS; i++)
        varies |= p->jitter[i] > 0;
    return varies;
}

uint64_t ty_image_plan_fingerprint(const ty_image_plan *p)
{
    int64_t whole[] = {p->height, p->width,       p->channels,  p->fit, p->shorter, p->filter,    p->crop,
                       p->pad,    p->flip_across, p->flip_down, p->hwc, p->mix,     p->all_alike, p->max_pixels};
    double real[] = {p->area[0], p->area[1], p->ratio[0], p->ratio[1], p->scale, p->alpha, p->gap};
    uint64_t h = ty_fnv1a(TY_FNV_START, whole, sizeof whole);
    h = ty_fnv1a(h, real, sizeof real);
    double varied[] = {p->jitter[0], p->jitter[1], p->jitter[2], p->jitter[3], p->grey, p->erase, p->rotate};
    if (plan_varies(p)) /* others are what they were before there was this */
        h = ty_fnv1a(h, varied, sizeof varied);
    h = ty_fnv1a(h, p->mean, sizeof p->mean);
    return ty_fnv1a(h, p->std, sizeof p->std);
}

void ty_image_sums_add(ty_image_sums *to, const ty_image_sums *from)
{
    for (int c = 0; c < 4; c++) {
        to->sum[c] += from->sum[c];
        to->squares[c] += from->squares[c];
    }
    to->n += from->n;
}

int ty_image_sums_agree(ty_image_sums *sums, const ty_agree *agree, ty_error *err)
{
    int64_t number[sizeof *sums / sizeof(int64_t)];
    memcpy(number, sums, sizeof number);
    if (ty_agree_numbers(agree, "means of pictures", TY_AGREE_SUM, number, sizeof number / sizeof *number, err) < 0)
        return -1;
    memcpy(sums, number, sizeof number);
    return 0;
}

void ty_image_plan_keep(ty_image_plan *declared, const ty_image_plan *settled)
{
    memcpy(declared->mean, settled->mean, sizeof declared->mean);
    memcpy(declared->std, settled->std, sizeof declared->std);
    declared->n_mean = settled->n_mean;
    declared->n_std = settled->n_std;
    declared->channels = settled->channels;
    declared->mean_of_data = false;
}

void ty_image_plan_take(ty_image_plan *p, const ty_image_sums *sums)
{
    for (int c = 0; c < p->channels && sums->n > 0; c++) {
        double n = (double)sums->n, mean = (double)sums->sum[c] / n;
        double variance = (double)sums->squares[c] / n - mean * mean;
        p->mean[c] = p->scale * mean;
        p->std[c] = variance > 1e-9 ? fabs(p->scale) * sqrt(variance) : 1.0;
    }
    p->n_mean = p->n_std = p->channels;
}
