/* keras_layers_sound.c - STFTSpectrogram and MelSpectrogram: spectra of waves.
 *
 * The first is a convolution with kernels that are weights, the second a transform without any. Letters: B batch, C
 * channels of sound, T samples or frames, F bins of a spectrum.
 */
#include "compiler/import/fourier.h"
#include "compiler/import/keras/keras_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOUND_MOST = 1 << 20 }; /* samples of a frame */

static const char *const sound_windows[] = {"hann", "hamming", NULL};

/* A count from 1 to SOUND_MOST. */
static int64_t sound_count(keras_call *c, const char *key, int64_t absent)
{
    int64_t n = keras_int(c, key, absent);
    if (!c->failed && (n < 1 || n > SOUND_MOST))
        keras_fail_key(c, key, "expected a number from 1 to %d", SOUND_MOST);
    return c->failed ? 1 : n;
}

/* ---- STFTSpectrogram
 * --------------------------------------------------------------------------------------------------
 */

typedef enum stft_mode { STFT_LOG, STFT_MAGNITUDE, STFT_PSD, STFT_REAL, STFT_IMAG, STFT_ANGLE, STFT_BOTH } stft_mode;

typedef struct stft_args {
    stft_mode mode;
    int64_t n, bins; /* samples of a frame */
    keras_window w;
} stft_args;

/* Its own frames: a stride of half of one, a transform of the next power of two. */
static bool stft_read(keras_call *c, stft_args *a)
{
    static const char *const modes[] = {"log", "magnitude", "psd", "real", "imag", "angle", "stft", NULL};
    static const char *const paddings[] = {"valid", "same", NULL};
    int64_t power = 1;
    *a =
        (stft_args){.mode = (stft_mode)keras_choice(c, "mode", "log", modes), .n = sound_count(c, "frame_length", 256)};
    while (power < a->n)
        power *= 2;
    a->bins = sound_count(c, "fft_length", power) / 2 + 1;
    a->w.padding = keras_choice(c, "padding", "valid", paddings) ? KERAS_PAD_SAME : KERAS_PAD_VALID;
    a->w.first = keras_channels_first(c);
    a->w.extent[0] = a->n;
    a->w.attr = (ty_attr){.n = 1, .groups = 1, .size = {a->n}, .dil = {1}};
    a->w.attr.step[0] = sound_count(c, "frame_step", a->n > 1 ? a->n / 2 : 1);
    return !c->failed && keras_has_planes(c, 1);
}

void keras_create_stft_spectrogram(keras_call *c)
{
    stft_args a;
    if (!stft_read(c, &a))
        return;
    keras_spec spec = {.rank = 3, .dim = {a.n, 1, a.bins}};
    for (int imag = 0; imag < 2; imag++) {
        if (a.mode == (imag ? STFT_REAL : STFT_IMAG))
            continue;
        spec.label = imag ? "imag_kernel" : "real_kernel";
        spec.initializer_absent = imag ? "stft_imag" : "stft_real";
        keras_add_weight(c, &spec);
    }
}

/* x [B C, 1, T] with a kernel [T, 1, F]: [B, C, F, T]. */
static ty_val stft_part(keras_call *c, const stft_args *a, ty_val x, int64_t channels, const char *label)
{
    static const int64_t turned[] = {2, 1, 0};
    ty_val in[] = {x, ty_b_transpose(c->g, keras_var(c, label), turned)};
    ty_val y = ty_graph_emit(c->g, TY_OP_CONV, &a->w.attr, in, 2);
    if (y == TY_NONE)
        return y;
    int64_t dim[] = {ty_b_dim(c->g, y, 0) / channels, channels, a->bins, ty_b_dim(c->g, y, 2)};
    return ty_b_reshape(c->g, y, 4, dim);
}

/* The angle of (x, y) in (-pi, pi], 0 of nothing. */
static ty_val stft_angle(ty_graph *g, ty_val y, ty_val x)
{
    ty_val zero = ty_b_full_like(g, x, 0), half = ty_b_full_like(g, x, M_PI);
    ty_val turn = ty_b_select(g, ty_b_lt(g, y, zero), ty_b_neg(g, half), half);
    ty_val angle = ty_b_unary(g, TY_OP_ATAN, ty_b_div(g, y, x));
    angle = ty_b_add(g, angle, ty_b_select(g, ty_b_lt(g, x, zero), turn, zero));
    ty_val square = ty_b_add(g, ty_b_square(g, x), ty_b_square(g, y));
    return ty_b_select(g, ty_b_eq(g, square, zero), zero, angle);
}

/* All bins but the first and the last stand for two. */
static ty_val stft_density(ty_graph *g, const stft_args *a, ty_val power)
{
    int64_t lo[] = {0, 0, 1, 0}, hi[] = {0, 0, 1, 0};
    if (a->bins < 3)
        return power;
    return ty_b_add(g, power, ty_b_pad(g, ty_b_slice_axis(g, power, 2, 1, a->bins - 1), lo, hi, 0));
}

static ty_val stft_result(keras_call *c, const stft_args *a, ty_val x, int64_t channels)
{
    ty_graph *g = c->g;
    ty_val real = a->mode == STFT_IMAG ? TY_NONE : stft_part(c, a, x, channels, "real_kernel");
    ty_val imag = a->mode == STFT_REAL ? TY_NONE : stft_part(c, a, x, channels, "imag_kernel");
    if (real == TY_NONE || imag == TY_NONE)
        return real == TY_NONE ? imag : real;
    if (a->mode == STFT_ANGLE)
        return stft_angle(g, imag, real);
    if (a->mode == STFT_BOTH)
        return ty_b_concat(g, (ty_val[]){real, imag}, 2, 2);
    ty_val power = ty_b_add(g, ty_b_square(g, real), ty_b_square(g, imag));
    if (a->mode == STFT_PSD)
        return stft_density(g, a, power);
    ty_val least = ty_b_full_like(g, power, 1e-7);
    ty_val size = ty_b_unary(g, TY_OP_SQRT, ty_b_max(g, power, least));
    return a->mode == STFT_MAGNITUDE ? size : ty_b_log(g, ty_b_max(g, size, least));
}

/* y [B, C, F, T] as the layer has it: channels and bins are one axis unless it is told to keep them apart. */
static ty_val stft_laid(keras_call *c, const stft_args *a, ty_val y)
{
    static const int64_t last[] = {0, 3, 2, 1}, first[] = {0, 1, 3, 2}, turned[] = {0, 2, 1};
    const ty_type t = *ty_graph_type(c->g, y);
    if (keras_flag(c, "expand_dims", false))
        return ty_b_transpose(c->g, y, a->w.first ? first : last);
    y = ty_b_reshape(c->g, y, 3, (int64_t[]){t.dim[0], t.dim[1] * t.dim[2], t.dim[3]});
    return a->w.first ? y : ty_b_transpose(c->g, y, turned);
}

void keras_call_stft_spectrogram(keras_call *c)
{
    stft_args a;
    if (!stft_read(c, &a))
        return;
    ty_val x = keras_to_first(c, keras_float(c, c->in[0]), a.w.first);
    const ty_type t = *ty_graph_type(c->g, x);
    x = ty_b_reshape(c->g, x, 3, (int64_t[]){t.dim[0] * t.dim[1], 1, t.dim[2]});
    if (!keras_window_place(c, &a.w, x))
        return;
    ty_val y = stft_result(c, &a, x, t.dim[1]);
    if (y != TY_NONE)
        keras_set(c, 0, stft_laid(c, &a, y));
}

/* ---- MelSpectrogram
 * ---------------------------------------------------------------------------------------------------
 */

typedef struct mel_args {
    int64_t n, step, wide; /* samples of a transform, between two, of a window */
    int64_t rate, bins;
    double low, high; /* Hz */
} mel_args;

static bool mel_read(keras_call *c, mel_args *a)
{
    *a = (mel_args){.n = sound_count(c, "fft_length", 2048), .step = sound_count(c, "sequence_stride", 512)};
    a->wide = sound_count(c, "sequence_length", a->n);
    a->rate = sound_count(c, "sampling_rate", 16000);
    a->bins = sound_count(c, "num_mel_bins", 128);
    a->low = keras_number(c, "min_freq", 20);
    a->high = keras_number(c, "max_freq", (double)(a->rate / 2));
    if (!c->failed && a->wide > a->n)
        keras_fail_key(c, "sequence_length", "expected at most fft_length, %lld", (long long)a->n);
    if (!c->failed && !ty_fourier_fits((ty_fourier){.n = a->n, .is_half = true}, a->n, 1))
        keras_fail_key(c, "fft_length", "is too long: a transform's matrix has at most %d numbers", TY_FOURIER_MAX);
    if (!c->failed && a->bins > TY_FOURIER_MAX / (a->n / 2 + 1))
        keras_fail_key(c, "num_mel_bins", "a matrix has at most %d numbers", TY_FOURIER_MAX);
    return !c->failed;
}

/* In the middle of the transform. As tf.signal has them: periodic where their length is even. Other back ends of Keras
 * have periodic ones of odd lengths, too. */
static ty_val mel_window(keras_call *c, const mel_args *a)
{
    double *v = keras_alloc(c, (size_t)a->n, sizeof *v);
    int64_t ahead = (a->n - a->wide) / 2;
    bool hamming = keras_choice(c, "window", "hann", sound_windows);
    double mean = hamming ? 0.54 : 0.5, whole = (double)(a->wide - a->wide % 2);
    memset(v, 0, (size_t)a->n * sizeof *v);
    for (int64_t i = 0; i < a->wide; i++)
        v[ahead + i] = a->wide == 1 ? 1 : mean - (1 - mean) * cos(2 * M_PI * (double)i / whole);
    return keras_const(c, TY_F32, 1, &a->n, v);
}

/* x [B, T] with half a transform around it, mirrored at its ends. */
static ty_val mel_mirrored(keras_call *c, const mel_args *a, ty_val x)
{
    int64_t t = ty_b_dim(c->g, x, 1), side = a->n / 2, out = t + 2 * side;
    if (t <= side) {
        keras_fail(c, TY_E_SHAPE, "expected more than fft_length / 2 = %lld samples, found %lld", (long long)side,
                   (long long)t);
        return TY_NONE;
    }
    int64_t *at = keras_alloc(c, (size_t)out, sizeof *at);
    for (int64_t i = 0; i < out; i++) {
        int64_t k = llabs(i - side);
        at[i] = k < t ? k : 2 * (t - 1) - k;
    }
    return keras_pick(c, x, 1, out, at);
}

static double mel_of(double hz)
{
    return 1127 * log1p(hz / 700);
}

/* [F, bins]: triangles over the mel scale, between the edges around each; without the first bin, which is not sound. */
static ty_val mel_matrix(keras_call *c, const mel_args *a)
{
    int64_t dim[] = {a->n / 2 + 1, a->bins};
    double *v = keras_alloc(c, (size_t)(dim[0] * dim[1]), sizeof *v);
    double low = mel_of(a->low), step = (mel_of(a->high) - low) / (double)(a->bins + 1);
    for (int64_t f = 0; f < dim[0]; f++) {
        double mel = mel_of((double)a->rate / 2 * (double)f / (double)(dim[0] - 1));
        for (int64_t k = 0; k < dim[1]; k++) {
            double up = (mel - low) / step - (double)k, down = 2 - up, least = up < down ? up : down;
            v[f * dim[1] + k] = f > 0 && least > 0 ? least : 0;
        }
    }
    return keras_const(c, TY_F32, 2, dim, v);
}

/* The size of z [.., 2] to a power. */
static ty_val mel_power(keras_call *c, ty_val z)
{
    ty_graph *g = c->g;
    double power = keras_number(c, "mag_exp", 2);
    int last = ty_b_rank(g, z) - 1;
    ty_val square = ty_b_squeeze(g, ty_b_reduce(g, ty_b_square(g, z), TY_SUM, 1u << last, true), last);
    return power == 2   ? square
           : power == 1 ? ty_b_unary(g, TY_OP_SQRT, square)
                        : ty_b_binary(g, TY_OP_POW, square, ty_b_full_like(g, square, power / 2));
}

/* Decibels above ref_power, and no more than top_db below the loudest of the batch. */
static ty_val mel_decibels(keras_call *c, ty_val x)
{
    ty_graph *g = c->g;
    double least = keras_number(c, "min_power", 1e-10), top = keras_number(c, "top_db", 80);
    double zero = 10 * log10(fmax(fabs(keras_number(c, "ref_power", 1)), least));
    ty_val y = ty_b_mul_s(g, ty_b_log(g, ty_b_max(g, x, ty_b_full_like(g, x, least))), 10 / log(10));
    y = ty_b_add_s(g, y, -zero);
    ty_val loudest = ty_b_reduce(g, y, TY_MAX, ty_b_all_axes(g, y), true);
    return ty_b_max(g, y, ty_b_add_s(g, loudest, -top));
}

void keras_call_mel_spectrogram(keras_call *c)
{
    static const int64_t turned[] = {0, 2, 1};
    ty_graph *g = c->g;
    mel_args a;
    ty_val x = keras_float(c, c->in[0]);
    if (!mel_read(c, &a))
        return;
    if (ty_b_rank(g, x) != 2) {
        keras_fail(c, TY_E_SHAPE, "expected [batch, samples], found %d axes", ty_b_rank(g, x));
        return;
    }
    x = mel_mirrored(c, &a, x);
    if (x == TY_NONE)
        return;
    ty_fourier f = {.n = a.n, .is_half = true};
    ty_val frames = ty_fourier_frames(g, ty_b_unsqueeze(g, x, 2), mel_window(c, &a), a.step, f);
    ty_val power = mel_power(c, frames);
    if (power == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(g, power);
    int64_t flat[] = {t.dim[0] * t.dim[1], t.dim[2]}, apart[] = {t.dim[0], t.dim[1], a.bins};
    ty_val y = ty_b_dot_full(g, ty_b_reshape(g, power, 2, flat), mel_matrix(c, &a));
    y = ty_b_reshape(g, y, 3, apart);
    if (keras_flag(c, "power_to_db", true))
        y = mel_decibels(c, y);
    keras_set(c, 0, ty_b_transpose(g, y, turned));
}
