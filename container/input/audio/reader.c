/* reader.c - sounds to rows of a batch.
 *
 * Of a long sound only the part that is wanted is decoded and resampled, with enough around it that its samples are
 * those of the whole, to 24 bits and more: filters of libsoxr's HQ reach some hundred frames of the lower rate.
 */
#include "base/rng.h"
#include "container/input/audio/plan.h"
#include "container/input/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { READER_MARGIN = 4096, WORD_CROP = 0, WORD_GAIN = 1, WORDS = 4 };

/* What is taken of a sound: frames [first, first + n) at the row's rate, which come to the row's frame `at`; of the
 * file [from, from + n_from), whose first is the row's rate's frame `begin`. */
typedef struct reader_part {
    int64_t first, n, at, begin, from, n_from;
} reader_part;

static uint32_t reader_word(const ty_chance *c, int word)
{
    return ty_rng_u32(c->seed, TY_STREAM_AUDIO, (uint32_t)c->epoch, (uint64_t)c->sample * WORDS + (uint64_t)word);
}

static int64_t reader_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int reader_room(ty_audio_room *room, int64_t n, ty_error *err)
{
    if ((size_t)n <= room->n)
        return 0;
    free(room->v);
    room->v = malloc((size_t)n * sizeof *room->v);
    room->n = room->v ? (size_t)n : 0;
    return room->v ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %lld samples of a sound", (long long)n);
}

/* ---- which part ---- */

static int64_t reader_crop(const ty_audio_plan *p, const ty_chance *chance, int64_t spare)
{
    if (p->crop == TY_AUDIO_CROP_START)
        return 0;
    if (p->crop == TY_AUDIO_CROP_CENTRE || !chance->augment)
        return spare / 2;
    return (int64_t)((uint64_t)reader_word(chance, WORD_CROP) * (uint64_t)(spare + 1) >> 32);
}

/* Begins where a frame of one rate is one of the other, so that what is resampled stands on the same grid. */
static void reader_source(const ty_audio_info *info, int to, reader_part *t)
{
    int64_t common = reader_gcd(info->rate, to), down = info->rate / common, up = to / common;
    int64_t margin = READER_MARGIN * (info->rate > to ? 1 : (to + (int64_t)info->rate - 1) / info->rate);
    int64_t block = t->first > margin ? (t->first - margin) / up : 0;
    int64_t end = ((t->first + t->n + margin) / up + 1) * down;
    t->begin = block * up;
    t->from = block * down;
    t->n_from = (end < info->frames ? end : info->frames) - t->from;
}

static void reader_choose(const ty_audio_plan *p, const ty_audio_info *info, const ty_chance *chance, reader_part *t)
{
    int64_t all = ty_audio_frames_at(info->frames, info->rate, p->rate), spare = all - p->length;
    *t = (reader_part){.n = all < p->length ? all : p->length};
    if (spare > 0)
        t->first = reader_crop(p, chance, spare);
    else if (p->pad != TY_AUDIO_PAD_END)
        t->at = p->pad == TY_AUDIO_PAD_BOTH ? -spare / 2 : -spare;
    if (info->rate == p->rate)
        t->begin = t->from = t->first, t->n_from = t->n;
    else
        reader_source(info, p->rate, t);
}

/* ---- samples ---- */

/* n frames of `channels` become `wanted` in place: their mean, or the one as often as it takes. */
static void reader_mix(float *v, int64_t n, int channels, int wanted)
{
    for (int64_t i = 0; channels > 1 && wanted == 1 && i < n; i++) {
        double sum = 0.0;
        for (int c = 0; c < channels; c++)
            sum += v[i * channels + c];
        v[i] = (float)(sum / channels);
    }
    for (int64_t i = n - 1; channels == 1 && wanted > 1 && i >= 0; i--)
        for (int c = wanted - 1; c >= 0; c--)
            v[i * wanted + c] = v[i];
}

static int reader_fits(const ty_audio_plan *p, const ty_audio_info *info, ty_error *err)
{
    if (p->rate_alike && info->rate != p->rate) {
        ty_error_set(err, TY_E_DATA_VALUE, "the sound has %d frames a second, expected %d as the first one", info->rate,
                     p->rate);
        return ty_error_help(err, "say which rate sounds are brought to: audio: {sample_rate: %d}", p->rate);
    }
    int64_t all = ty_audio_frames_at(info->frames, info->rate, p->rate);
    if (p->length_alike && all != p->length) {
        ty_error_set(err, TY_E_DATA_VALUE, "the sound has %lld frames, expected %lld as the first one", (long long)all,
                     (long long)p->length);
        return ty_error_help(err, "say how long a row is: audio: {length: %lld} or {seconds: S}", (long long)p->length);
    }
    if (info->channels != p->channels && info->channels > 1 && p->channels > 1)
        return ty_error_set(err, TY_E_DATA_VALUE, "a sound of %d channels cannot become one of %d", info->channels,
                            p->channels);
    if ((double)info->frames > p->max_seconds * info->rate)
        return ty_error_set(err, TY_E_LIMIT, "the sound takes %.0f seconds, expected at most %g (max_seconds)",
                            (double)info->frames / info->rate, p->max_seconds);
    return info->frames > 0 ? 0 : ty_error_set(err, TY_E_DATA_VALUE, "the sound is empty");
}

static int64_t reader_widest(const ty_audio_plan *p, const ty_audio_info *info)
{
    return info->channels > p->channels ? info->channels : p->channels;
}

int ty_audio_look(const ty_audio_plan *p, const uint8_t *bytes, size_t n, size_t *work, ty_error *err)
{
    ty_audio_info info;
    reader_part t;
    if (ty_audio_probe(bytes, n, &info, err) < 0 || reader_fits(p, &info, err) < 0)
        return -1;
    reader_choose(p, &info, &(ty_chance){0}, &t);
    int64_t samples = t.n_from * reader_widest(p, &info), made = p->length * p->channels;
    if (info.rate != p->rate)
        samples += ty_audio_frames_at(t.n_from, info.rate, p->rate) * p->channels * 2;
    size_t most = (size_t)(samples + made) * sizeof(float);
    *work = most > *work ? most : *work;
    return 0;
}

/* The part's samples at the row's rate and channels. */
static int reader_take(ty_audio_reader *r, ty_audio *sound, const reader_part *t, float **out, ty_error *err)
{
    const ty_audio_plan *p = r->plan;
    const ty_audio_info *info = &sound->info;
    if (reader_room(&r->decoded, t->n_from * reader_widest(p, info), err) < 0 ||
        ty_audio_read(sound, t->from, t->n_from, r->decoded.v, err) < 0)
        return -1;
    reader_mix(r->decoded.v, t->n_from, info->channels, p->channels);
    *out = r->decoded.v;
    if (info->rate == p->rate)
        return 0;
    if (reader_room(&r->resampled, ty_audio_frames_at(t->n_from, info->rate, p->rate) * p->channels, err) < 0 ||
        ty_audio_resample(r->decoded.v, t->n_from, p->channels, info->rate, p->rate, r->resampled.v, err) < 0)
        return -1;
    *out = r->resampled.v + (t->first - t->begin) * p->channels;
    return 0;
}

/* ---- values ---- */

static float reader_peak(const float *v, int64_t n)
{
    float most = 0.0f;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(v[i]) > most ? fabsf(v[i]) : most;
    return most;
}

/* value = (sample - *mean) * *by */
static void reader_values(const ty_audio_plan *p, const ty_chance *chance, const float *v, int64_t n, double *mean,
                          double *by)
{
    double sum = 0.0, squares = 0.0;
    *mean = 0.0;
    *by = p->scale;
    if (p->normalize == TY_AUDIO_PEAK) {
        double most = reader_peak(v, n);
        *by = most > 0.0 ? p->scale / most : p->scale;
    } else if (p->normalize == TY_AUDIO_STANDARD && n > 0) {
        for (int64_t i = 0; i < n; i++)
            sum += v[i];
        *mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (v[i] - *mean) * (v[i] - *mean);
        *by = p->scale / sqrt(squares / (double)n + 1e-7);
    } else if (chance->augment && (p->gain[0] != 0.0 || p->gain[1] != 0.0)) {
        double share = ((double)reader_word(chance, WORD_GAIN) + 0.5) * 0x1p-32;
        *by *= pow(10.0, (p->gain[0] + (p->gain[1] - p->gain[0]) * share) / 20.0);
    }
}

static void reader_store(const ty_audio_plan *p, const reader_part *t, const float *v, double mean, double by,
                         float *row)
{
    int64_t c_step = p->layout == TY_AUDIO_CT ? p->length : 1, t_step = p->layout == TY_AUDIO_CT ? 1 : p->channels;
    memset(row, 0, (size_t)(p->length * p->channels) * sizeof *row);
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t c = 0; c < p->channels; c++)
            row[(t->at + i) * t_step + c * c_step] = (float)((v[i * p->channels + c] - mean) * by);
}

static int reader_row(ty_audio_reader *r, ty_audio *sound, const ty_chance *chance, float *row, ty_error *err)
{
    const ty_audio_plan *p = r->plan;
    reader_part t;
    float *v;
    double mean, by;
    if (reader_fits(p, &sound->info, err) < 0)
        return -1;
    reader_choose(p, &sound->info, chance, &t);
    if (reader_take(r, sound, &t, &v, err) < 0)
        return -1;
    reader_values(p, chance, v, t.n * p->channels, &mean, &by);
    reader_store(p, &t, v, mean, by, row);
    return 0;
}

int ty_audio_row(ty_audio_reader *r, const uint8_t *bytes, size_t n, const ty_chance *chance, ty_dtype dtype, void *out,
                 ty_error *err)
{
    ty_audio sound;
    int64_t elems = r->plan->length * r->plan->channels;
    if (dtype != TY_F32 && reader_room(&r->row, elems, err) < 0)
        return -1;
    if (ty_audio_open(&sound, bytes, n, err) < 0)
        return -1;
    int rc = reader_row(r, &sound, chance, dtype == TY_F32 ? out : r->row.v, err);
    ty_audio_close(&sound);
    if (rc == 0 && dtype != TY_F32)
        ty_convert_scaled(TY_F32, r->row.v, dtype, out, elems, 1.0, 0.0);
    return rc;
}

int ty_audio_hear(ty_audio_reader *r, const uint8_t *bytes, size_t n, ty_error *err)
{
    ty_audio sound;
    if (ty_audio_open(&sound, bytes, n, err) < 0)
        return -1;
    int rc = reader_fits(r->plan, &sound.info, err);
    int64_t left = sound.info.frames, block = left < 1 << 16 ? left : 1 << 16;
    if (rc == 0)
        rc = reader_room(&r->decoded, block * sound.info.channels, err);
    for (int64_t at = 0; rc == 0 && at < left; at += block)
        rc = ty_audio_read(&sound, at, left - at < block ? left - at : block, r->decoded.v, err);
    ty_audio_close(&sound);
    return rc;
}

size_t ty_audio_reader_bytes(const ty_audio_reader *r)
{
    return (r->decoded.n + r->resampled.n + r->row.n) * sizeof(float);
}

void ty_audio_reader_fini(ty_audio_reader *r)
{
    free(r->decoded.v);
    free(r->resampled.v);
    free(r->row.v);
    *r = (ty_audio_reader){.plan = r->plan};
}
