/* plan.c - declarations of sounds: defaults, checks, what the data decide. */
#include "container/input/audio/plan.h"

#include "base/hash.h"

#include <math.h>

#define PLAN_MAX_GAIN 120.0

ty_audio_plan ty_audio_plan_make(void)
{
    return (ty_audio_plan){.scale = 1.0, .max_seconds = TY_AUDIO_MAX_SECONDS};
}

static int plan_check_numbers(const ty_audio_plan *p, ty_error *err)
{
    if (!isfinite(p->scale) || p->scale == 0.0)
        return ty_error_set(err, TY_E_RANGE, "scale must be a number and not 0");
    if (!(p->seconds >= 0.0 && p->seconds <= 1e6) || (p->seconds > 0.0 && p->length > 0))
        return ty_error_set(err, TY_E_RANGE, "give a length in frames, or above 0 seconds, and one of them");
    if (!(p->gain[0] >= -PLAN_MAX_GAIN && p->gain[0] <= p->gain[1] && p->gain[1] <= PLAN_MAX_GAIN))
        return ty_error_set(err, TY_E_RANGE,
                            "gain: [%g, %g], expected two numbers of decibels, %g to %g, the smaller "
                            "first",
                            p->gain[0], p->gain[1], -PLAN_MAX_GAIN, PLAN_MAX_GAIN);
    if (!(p->max_seconds > 0.0 && p->max_seconds <= 1e6))
        return ty_error_set(err, TY_E_RANGE, "max_seconds: %g, expected above 0", p->max_seconds);
    if (p->normalize != TY_AUDIO_AS_IS && p->gain[0] != p->gain[1])
        return ty_error_set(err, TY_E_CONFIG, "gain changes nothing where normalize takes it out again");
    return 0;
}

int ty_audio_plan_check(const ty_audio_plan *p, ty_dtype dtype, ty_error *err)
{
    bool has_length = p->length > 0 || p->seconds > 0.0;
    if (dtype != TY_F32 && dtype != TY_F64 && dtype != TY_F16 && dtype != TY_BF16)
        return ty_error_set(err, TY_E_TYPE, "sounds become floats, not %s", ty_dtype_text(dtype));
    if (p->rate < 0 || p->rate > TY_AUDIO_MAX_RATE)
        return ty_error_set(err, TY_E_RANGE, "sample_rate: %d, expected 1 to %d", p->rate, TY_AUDIO_MAX_RATE);
    if (p->channels < 0 || p->channels > TY_AUDIO_MAX_CHANNELS)
        return ty_error_set(err, TY_E_RANGE, "channels: %d, expected 1 to %d", p->channels, TY_AUDIO_MAX_CHANNELS);
    if (p->length < 0 || p->length > TY_AUDIO_MAX_SAMPLES)
        return ty_error_set(err, TY_E_RANGE, "length: %lld, expected 1 to %lld frames", (long long)p->length,
                            (long long)TY_AUDIO_MAX_SAMPLES);
    if (!has_length && (p->crop != TY_AUDIO_CROP_START || p->pad != TY_AUDIO_PAD_END))
        return ty_error_set(err, TY_E_CONFIG, "crop and pad need a length, or seconds");
    if (p->layout == TY_AUDIO_T && p->channels > 1)
        return ty_error_set(err, TY_E_CONFIG, "layout: t is for one channel, and channels is %d", p->channels);
    return plan_check_numbers(p, err);
}

/* The shape of a row, before anything of its size is allocated. */
static int plan_settle_length(ty_audio_plan *p, const ty_audio_info *first, ty_error *err)
{
    double frames = p->length > 0 ? (double)p->length : nearbyint(p->seconds * p->rate);
    p->length_alike = p->length == 0 && p->seconds == 0.0;
    if (p->length_alike)
        frames = (double)ty_audio_frames_at(first->frames, first->rate, p->rate);
    if (!(frames >= 1.0 && frames * p->channels <= (double)TY_AUDIO_MAX_SAMPLES)) {
        ty_error_set(err, TY_E_LIMIT, "a row would have %.0f frames of %d channels, expected 1 to %lld samples", frames,
                     p->channels, (long long)TY_AUDIO_MAX_SAMPLES);
        return ty_error_help(err, "say what is wanted: audio: {length: FRAMES} or {seconds: S}");
    }
    p->length = (int64_t)frames;
    return 0;
}

int ty_audio_plan_settle(ty_audio_plan *p, const ty_audio_info *first, ty_error *err)
{
    p->rate_alike = p->rate == 0;
    if (p->rate_alike)
        p->rate = first->rate;
    if (p->channels == 0)
        p->channels = p->layout == TY_AUDIO_T ? 1 : first->channels;
    if (p->layout == TY_AUDIO_AUTO)
        p->layout = p->channels == 1 ? TY_AUDIO_T : TY_AUDIO_CT;
    return plan_settle_length(p, first, err);
}

ty_type ty_audio_plan_type(const ty_audio_plan *p, ty_dtype dtype)
{
    int64_t ct[2] = {p->channels, p->length}, tc[2] = {p->length, p->channels};
    return ty_type_make(dtype, p->layout == TY_AUDIO_T ? 1 : 2, p->layout == TY_AUDIO_CT ? ct : tc);
}

uint64_t ty_audio_plan_fingerprint(const ty_audio_plan *p)
{
    int64_t whole[] = {p->rate,      p->length, p->channels,   p->crop,        p->pad,
                       p->normalize, p->layout, p->rate_alike, p->length_alike};
    double real[] = {p->scale, p->gain[0], p->gain[1], p->max_seconds};
    return ty_fnv1a(ty_fnv1a(TY_FNV_START, whole, sizeof whole), real, sizeof real);
}
