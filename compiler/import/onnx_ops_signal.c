/* onnx_ops_signal.c - spectra: DFT, STFT, and the matrix that sums them up to a mel scale. */
#include "compiler/import/fourier.h"
#include "compiler/import/onnx_import.h"

#include <math.h>

enum { SIGNAL_MAX = 1 << 30 };

static bool signal_is_float(onnx_ctx *c, ty_val x, int least_rank)
{
    int rank = onnx_rank(c, x);
    int64_t parts = rank ? onnx_dim(c, x, rank - 1) : 0;
    if (rank >= least_rank && (parts == 1 || parts == 2) && ty_dtype_is_float(onnx_dtype_of(c, x)))
        return true;
    onnx_fail_input(c, 0, TY_E_SHAPE, "must be floats with a last axis of 1 (real) or 2 (real, imaginary)");
    return false;
}

/* Refuses what has no result, or a matrix beyond all measure. */
static bool signal_length_ok(onnx_ctx *c, ty_fourier f, int64_t entries, int64_t parts)
{
    if (f.n < 1 || f.n > SIGNAL_MAX || entries < 1) {
        onnx_fail(c, TY_E_SHAPE, "%s: a transform of %lld numbers, found %lld", c->node->op_type, (long long)f.n,
                  (long long)entries);
        return false;
    }
    if (ty_fourier_fits(f, entries, (int)parts))
        return true;
    onnx_fail(c, TY_E_UNSUPPORTED, "%s: a transform of %lld numbers is too long: its matrix would have over %d numbers",
              c->node->op_type, (long long)f.n, TY_FOURIER_MAX);
    onnx_help(c, "compute such spectra when the data are prepared");
    return false;
}

static bool signal_half_ok(onnx_ctx *c, ty_fourier f, int64_t parts)
{
    if (!f.is_half || f.is_inverse || parts == 1)
        return true;
    onnx_fail_attr(c, "onesided", "must be 0 for complex numbers: their spectrum is not symmetric");
    return false;
}

/* Since 20 the axis is an input, and the last but one if there is none; it was an attribute, and 1. */
static bool dft_axis(onnx_ctx *c, int rank, int *axis)
{
    int64_t asked = c->opset < 20 ? onnx_attr_int(c, "axis", 1) : -2;
    if (c->opset >= 20 && !onnx_const_int(c, 2, -2, &asked))
        return false;
    if (!onnx_axis(c, asked, rank, axis))
        return false;
    if (*axis < rank - 1)
        return true;
    onnx_fail(c, TY_E_SHAPE, "DFT: axis %lld is that of the real and imaginary parts", (long long)asked);
    return false;
}

void onnx_op_dft(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x), axis;
    ty_fourier f = {.is_inverse = onnx_attr_int(c, "inverse", 0), .is_half = onnx_attr_int(c, "onesided", 0)};
    if (!signal_is_float(c, x, 2) || !dft_axis(c, rank, &axis))
        return;
    int64_t entries = onnx_dim(c, x, axis), parts = onnx_dim(c, x, rank - 1);
    if (!onnx_const_int(c, 1, f.is_inverse && f.is_half ? 2 * (entries - 1) : entries, &f.n) ||
        !signal_length_ok(c, f, entries, parts))
        return;
    if (!signal_half_ok(c, f, parts))
        return;
    ty_type y = *onnx_type_of(c, x);
    y.dim[axis] = f.n;
    if (onnx_shape_ok(c, rank, y.dim))
        onnx_set(c, 0, ty_fourier_transform(c->g, x, axis, f));
}

/* The length of frames is that of the window, or given; both agree. */
static bool stft_length(onnx_ctx *c, int64_t *n)
{
    ty_val window = onnx_in(c, 2);
    int64_t wide = window == TY_NONE ? 0 : ty_type_elems(onnx_type_of(c, window));
    if (!onnx_const_int(c, 3, wide, n))
        return false;
    if (window == TY_NONE || (onnx_rank(c, window) == 1 && wide == *n))
        return true;
    onnx_fail_input(c, 2, TY_E_SHAPE, "must be [%lld], a number for each sample of a frame", (long long)*n);
    return false;
}

/* [batch, samples] is real. */
static ty_val stft_signal(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    return onnx_rank(c, x) == 2 ? ty_b_unsqueeze(c->g, x, 2) : x;
}

void onnx_op_stft(onnx_ctx *c)
{
    ty_val x = stft_signal(c);
    ty_fourier f = {.is_half = onnx_attr_int(c, "onesided", 1)};
    int64_t step;
    if (!signal_is_float(c, x, 3) || !onnx_const_int(c, 1, 0, &step) || !stft_length(c, &f.n) ||
        !signal_length_ok(c, f, f.n, onnx_dim(c, x, 2)))
        return;
    if (onnx_rank(c, x) != 3 || step < 1 || f.n > onnx_dim(c, x, 1)) {
        onnx_fail(c, TY_E_SHAPE,
                  "STFT: expected a signal [batch, samples, 1 or 2] of at least a frame, found frames of %lld every "
                  "%lld samples",
                  (long long)f.n, (long long)step);
        return;
    }
    if (signal_half_ok(c, f, onnx_dim(c, x, 2)))
        onnx_set(c, 0, ty_fourier_frames(c->g, x, onnx_in(c, 2), step, f));
}

/* ---- mel scale ------------------------------------------------------------------------------------------------------
 */

typedef struct mel_scale {
    int64_t bins, n, rate; /* bins of the scale; numbers that were transformed; samples a second */
    double low, high;      /* Hz */
} mel_scale;

static bool mel_read(onnx_ctx *c, mel_scale *m)
{
    if (!onnx_const_int(c, 0, 0, &m->bins) || !onnx_const_int(c, 1, 0, &m->n) || !onnx_const_int(c, 2, 0, &m->rate) ||
        !onnx_const_float(c, 3, 0, &m->low) || !onnx_const_float(c, 4, 0, &m->high))
        return false;
    if (m->bins >= 1 && m->bins <= 1 << 16 && m->n >= 1 && m->n <= 1 << 20 && m->rate >= 1 && m->low >= 0 &&
        m->high >= m->low && m->high <= (double)m->rate / 2)
        return true;
    onnx_fail(c, TY_E_SHAPE, "MelWeightMatrix: %lld bins from %g to %g Hz, of %lld samples at %lld Hz",
              (long long)m->bins, m->low, m->high, (long long)m->n, (long long)m->rate);
    return false;
}

static double mel_of(double hz)
{
    return 2595 * log10(1 + hz / 700);
}

/* Bin of the spectrum in which band edge i lies, of bins + 2. ONNX divides what lies between the ends by bins + 2, not
 * by bins + 1, and so its last band ends below `high`. */
static int64_t mel_edge(const mel_scale *m, int64_t i)
{
    double low = mel_of(m->low), step = (mel_of(m->high) - low) / (double)(m->bins + 2);
    double hz = 700 * (pow(10, (low + (double)i * step) / 2595) - 1);
    int64_t bin = (int64_t)floor((double)(m->n + 1) * hz / (double)m->rate);
    return bin < m->n / 2 ? bin : m->n / 2;
}

/* A triangle for each band: up from its lower edge to the middle, down to the upper edge. v: [n / 2 + 1, bins]. */
static void mel_fill(const mel_scale *m, double *v)
{
    for (int64_t i = 0; i < m->bins; i++) {
        int64_t low = mel_edge(m, i), middle = mel_edge(m, i + 1), high = mel_edge(m, i + 2);
        for (int64_t j = low; j < middle; j++)
            v[j * m->bins + i] = (double)(j - low) / (double)(middle - low);
        for (int64_t j = middle; j < high; j++)
            v[j * m->bins + i] = (double)(high - j) / (double)(high - middle);
        v[middle * m->bins + i] = 1;
    }
}

void onnx_op_mel_weight_matrix(onnx_ctx *c)
{
    mel_scale m;
    ty_dtype dtype = onnx_dtype(onnx_attr_int(c, "output_datatype", 1));
    if (!mel_read(c, &m))
        return;
    int64_t dim[] = {m.n / 2 + 1, m.bins};
    if (dtype == TY_N_DTYPES || dim[0] > TY_FOURIER_MAX / dim[1]) {
        onnx_fail(c, TY_E_UNSUPPORTED, "MelWeightMatrix: expected numbers, at most %d of them", TY_FOURIER_MAX);
        return;
    }
    double *v = onnx_alloc(c, (size_t)(dim[0] * dim[1]), sizeof *v);
    mel_fill(&m, v);
    onnx_set(c, 0, onnx_const_from(c, dtype, 2, dim, v));
}
