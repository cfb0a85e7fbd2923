/* native_slim.c - a convolution to few channels, as a generator's or a segmentation's last one, channels-last, float32:
 * forward, and the gradient of its weights.
 *
 * A library has 16 filters in a vector, and with three of them computes thirteen zeros. Here the channels of x are in
 * it: windows are multiplied lane by lane, and the lanes of a finished sum added up; on the way back each position adds
 * its window, times one number for a filter, to the sums of all taps. Rows of x are kept with zeros around
 * (last_rows.h).
 *
 * Each y is one sum in a fixed order. The rows of dy, of all images, are dealt out in PARTS, whose sums are added in
 * order: the bits do not depend on the number of threads.
 */
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/last_rows.h"
#include "compiler/target/cpu/native.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, SLIM_MOST = 4 /* filters */, SLIM_TAPS = 3 /* of a window's row at a time */, SLIM_MOST_ROWS = 16 };
enum { LEAST_CHANNELS = 16 };
#define SLIM_SERIAL_FLOPS 1e6

typedef struct ty_slim ty_slim;
typedef void slim_row_fn(const ty_slim *s, const float *const *rows, const float *w, float *y);
typedef void slim_back_fn(const ty_slim *s, const float *x, const float *dy, float *sums);

struct ty_slim {
    slim_row_fn *row;
    slim_back_fn *back;
    ty_last_rows x;
    int64_t images, out_h, out_w, outs;
    int64_t size[2], step[2], lo;
    int64_t w_floats;   /* of all filters, or a part's sums, with channels filled up */
    int64_t own_floats; /* of a thread */
    int threads;
    char text[TY_CONVOLUTION_TEXT];
};

typedef float slim_four __attribute__((vector_size(16), may_alias, aligned(4)));

#define SLIM_NAME           slim_plain
#define SLIM_TARGET         __attribute__((unused))
#define SLIM_LANES          4
#define SLIM_BLOCK          2
#define SLIM_ADD(sum, a, b) sum += (a) * (b)
#include "compiler/target/cpu/slim_tile.def"

#if defined(__x86_64__)
#define SLIM_FUSED(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))

#define SLIM_NAME   slim_avx2
#define SLIM_TARGET __attribute__((target("avx2,fma")))
#define SLIM_LANES  8
#define SLIM_BLOCK  2
#define SLIM_ADD    SLIM_FUSED
#include "compiler/target/cpu/slim_tile.def"

#define SLIM_NAME   slim_avx512
#define SLIM_TARGET __attribute__((target("avx512f,fma")))
#define SLIM_LANES  16
#define SLIM_BLOCK  4
#define SLIM_ADD    SLIM_FUSED
#include "compiler/target/cpu/slim_tile.def"
#endif

/* Row k of the windows of row `row` of y, of all images; NULL: it is outside. */
static const float *slim_find_row(const ty_slim *s, const void *x, int64_t row, int64_t k, ty_last_own *own)
{
    int64_t at = row % s->out_h * s->step[0] - s->lo + k;
    return at >= 0 && at < s->x.in_h ? ty_last_find_row(&s->x, x, row / s->out_h, at, own) : NULL;
}

/* ---- forward ---- */

/* w [outs, channels, size..] to [outs, size.., wide] */
static void slim_load_filters(const ty_slim *s, const float *w, float *to)
{
    int64_t taps = s->size[0] * s->size[1];
    memset(to, 0, (size_t)s->w_floats * sizeof *to);
    for (int64_t o = 0; o < s->outs; o++, w += s->x.channels * taps)
        for (int64_t tap = 0; tap < taps; tap++, to += s->x.wide)
            for (int64_t c = 0; c < s->x.channels; c++)
                to[c] = w[c * taps + tap];
}

static void slim_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const ty_slim *s = prepared;
    float *w = scratch, *y = out[0], *all = w + s->w_floats;
    slim_load_filters(s, in[1], w);
#pragma omp parallel num_threads(s->threads)
    {
        ty_last_own own = {.rows = all + omp_get_thread_num() * s->own_floats};
        ty_last_forget(&s->x, &own);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < s->images * s->out_h; row++) {
            const float *rows[SLIM_MOST_ROWS];
            for (int64_t k = 0; k < s->size[0]; k++)
                rows[k] = slim_find_row(s, in[0], row, k, &own);
            s->row(s, rows, w, y + row * s->out_w * s->outs);
        }
    }
}

/* ---- the gradient of the weights ---- */

static void slim_part(const ty_slim *s, int64_t part, const void *const *in, ty_last_own *own, float *sums)
{
    int64_t all = s->images * s->out_h, first = all * part / PARTS, end = all * (part + 1) / PARTS;
    memset(sums, 0, (size_t)s->w_floats * sizeof *sums);
    ty_last_forget(&s->x, own);
    for (int64_t row = first; row < end; row++)
        for (int64_t k = 0; k < s->size[0]; k++) {
            const float *x = slim_find_row(s, in[0], row, k, own);
            if (x)
                s->back(s, x, (const float *)in[1] + row * s->out_w * s->outs, sums + k * s->size[1] * s->x.wide);
        }
}

/* Sums of all parts to dw [outs, channels, size..]. */
static void slim_add_parts(const ty_slim *s, float *sums, float *dw)
{
    int64_t taps = s->size[0] * s->size[1];
    for (int64_t part = 1; part < PARTS; part++)
        for (int64_t i = 0; i < s->w_floats; i++)
            sums[i] += sums[part * s->w_floats + i];
    for (int64_t o = 0; o < s->outs; o++, dw += s->x.channels * taps)
        for (int64_t tap = 0; tap < taps; tap++, sums += s->x.wide)
            for (int64_t c = 0; c < s->x.channels; c++)
                dw[c * taps + tap] = sums[c];
}

static void slim_dw_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const ty_slim *s = prepared;
    float *sums = scratch, *all = sums + PARTS * s->w_floats;
#pragma omp parallel num_threads(s->threads)
    {
        ty_last_own own = {.rows = all + omp_get_thread_num() * s->own_floats};
#pragma omp for schedule(static)
        for (int64_t part = 0; part < PARTS; part++)
            slim_part(s, part, in, &own, sums + part * s->w_floats);
    }
    slim_add_parts(s, sums, out[0]);
}

/* ---- preparing ---- */

static const char *slim_best(ty_slim *s)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return s->row = slim_avx512_row, s->back = slim_avx512_back, "native-slim:avx512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return s->row = slim_avx2_row, s->back = slim_avx2_back, "native-slim:avx2";
#endif
    return s->row = slim_plain_row, s->back = slim_plain_back, "native-slim:plain";
}

static bool slim_takes(const ty_attr *a, const ty_type *x, const ty_type *w)
{
    return a->n == 2 && a->groups == 1 && a->flags & TY_SLIDING_LAST && !(a->flags & TY_SLIDING_WEIGHTS_LAST) &&
           a->dil[0] == 1 && a->dil[1] == 1 && x->dtype == TY_F32 && w->dim[0] <= SLIM_MOST &&
           x->dim[3] >= LEAST_CHANNELS && w->dim[2] <= SLIM_MOST_ROWS;
}

static int slim_prepare(const ty_library_shape *sh, const ty_type *w, const ty_type *y, int64_t weights,
                        void (*run)(void *, const void *const *, void *const *, void *), ty_library_call *out,
                        ty_error *err)
{
    const ty_attr *a = sh->attr;
    const ty_type *x = &sh->in[0];
    if (!slim_takes(a, x, w))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution to few channels");
    ty_slim *s = calloc(1, sizeof *s);
    if (!s)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    s->images = x->dim[0], s->out_h = y->dim[1], s->out_w = y->dim[2], s->outs = y->dim[3], s->lo = a->lo[0];
    for (int i = 0; i < 2; i++)
        s->size[i] = w->dim[2 + i], s->step[i] = a->step[i];
    s->x = ty_last_rows_make(a, x, s->size, s->out_w);
    s->w_floats = s->outs * s->size[0] * s->size[1] * s->x.wide;
    s->own_floats = s->x.rows * s->x.row_floats;
    s->threads = 2.0 * (double)ty_type_elems(y) * (double)(s->w_floats / s->outs) < SLIM_SERIAL_FLOPS ? 1 : sh->threads;
    ty_convolution_text(slim_best(s), a, x, w, s->text, sizeof s->text);
    *out = (ty_library_call){.run = run, .release = free, .prepared = s, .text = s->text};
    out->scratch_bytes = sizeof(float) * (size_t)(weights * s->w_floats + s->threads * s->own_floats);
    return 0;
}

int ty_native_prepare_slim(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return slim_prepare(s, &s->in[1], &s->res[0], 1, slim_run, out, err);
}

int ty_native_prepare_slim_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return slim_prepare(s, &s->res[0], &s->in[1], PARTS, slim_dw_run, out, err);
}
