/* native_depth_dw.c - the gradient of the weights of a depthwise convolution, one channel a group, with more taps than
 * oneDNN's kernel for such takes, channels-last, of float32 or bfloat16.
 *
 * Channels lie side by side in vectors. The rows of x below a row of y are copied once, as float32, with zeros outside
 * and behind the last channel, so that the loop over a row of y has no edges; the next row of y finds most of them.
 * For each row of a window the sums of its taps are in registers.
 *
 * The rows of y, of all images, are dealt out in PARTS, whose sums are added in order: the bits do not depend on the
 * number of threads.
 */
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/native.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, LANES = 16 /* channels are filled up to a multiple */, MOST_ROWS = 64, DEPTH_MOST = 7 };
enum { LEAST_TAPS = 10 };
#define DEPTH_SERIAL_FLOPS 1e6

#define DEPTH_NAME           depth_plain
#define DEPTH_TARGET         __attribute__((unused))
#define DEPTH_LANES          4
#define DEPTH_ADD(sum, a, b) sum += (a) * (b)
#include "compiler/target/cpu/depth_tile.def"

#if defined(__x86_64__)
#define DEPTH_FUSED(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "m"(b))

#define DEPTH_NAME   depth_avx2
#define DEPTH_TARGET __attribute__((target("avx2,fma")))
#define DEPTH_LANES  8
#define DEPTH_ADD    DEPTH_FUSED
#include "compiler/target/cpu/depth_tile.def"

#define DEPTH_NAME   depth_avx512
#define DEPTH_TARGET __attribute__((target("avx512f,fma")))
#define DEPTH_LANES  16
#define DEPTH_ADD    DEPTH_FUSED
#include "compiler/target/cpu/depth_tile.def"
#endif

typedef void depth_row_fn(const float *x, int64_t step, int64_t tap, int64_t taps, const float *dy, int64_t n,
                          int64_t channels, float *sums);

typedef struct depth_call {
    depth_row_fn *row;
    bool is_half; /* x and dy are bfloat16 */
    int64_t images, in_h, in_w, out_h, out_w, channels;
    int64_t size[2], step[2], dil[2], lo[2];
    int64_t wide;       /* channels, filled up */
    int64_t row_floats; /* of a row of x with what lies outside */
    int64_t rows;       /* of x that are kept: those below a row of y, and in between */
    int64_t sum_floats; /* of a part */
    int64_t own_floats; /* of a thread */
    int threads;
    char text[TY_CONVOLUTION_TEXT];
} depth_call;

/* ---- rows ---- */

/* n positions of number `first` of an operand, filled up with channels of zeros. */
static void depth_positions(const depth_call *c, const void *x, int64_t first, int64_t n, float *to)
{
    bool together = c->wide == c->channels;
    int64_t times = together ? 1 : n, each = together ? n * c->channels : c->channels, at = first * c->channels;
    if (!together)
        memset(to, 0, (size_t)(n * c->wide) * sizeof *to);
    for (int64_t i = 0; i < times; i++, at += c->channels, to += c->wide)
        if (c->is_half)
            ty_native_load_short(TY_BF16, (const uint16_t *)x + at, to, (int)each);
        else
            memcpy(to, (const float *)x + at, (size_t)each * sizeof *to);
}

/* Row `row` of x, of all images, from column -lo on. */
static void depth_x_row(const depth_call *c, const void *x, int64_t row, float *to)
{
    int64_t n = c->row_floats / c->wide, inside = n - c->lo[1] < c->in_w ? n - c->lo[1] : c->in_w;
    memset(to, 0, (size_t)c->row_floats * sizeof *to);
    if (inside > 0)
        depth_positions(c, x, row * c->in_w, inside, to + c->lo[1] * c->wide);
}

/* A thread's rows of x, by number; its row of dy behind them. */
typedef struct depth_own {
    float *rows, *dy;
    int64_t has[MOST_ROWS];
} depth_own;

static const float *depth_find_row(const depth_call *c, const void *x, int64_t image, int64_t y, depth_own *own)
{
    int64_t number = image * c->in_h + y, slot = y % c->rows;
    float *row = own->rows + slot * c->row_floats;
    if (own->has[slot] != number)
        depth_x_row(c, x, number, row);
    own->has[slot] = number;
    return row;
}

/* ---- sums ---- */

/* Sums of a part are [window, channels]. */
static void depth_part(const depth_call *c, int64_t part, const void *x, const void *dy, depth_own *own, float *sums)
{
    int64_t all = c->images * c->out_h, first = all * part / PARTS, end = all * (part + 1) / PARTS;
    memset(sums, 0, (size_t)c->sum_floats * sizeof *sums);
    for (int64_t i = 0; i < c->rows; i++)
        own->has[i] = -1;
    for (int64_t row = first; row < end; row++) {
        int64_t image = row / c->out_h, top = row % c->out_h * c->step[0] - c->lo[0];
        depth_positions(c, dy, row * c->out_w, c->out_w, own->dy);
        for (int64_t k = 0; k < c->size[0]; k++) {
            int64_t y = top + k * c->dil[0];
            if (y >= 0 && y < c->in_h)
                c->row(depth_find_row(c, x, image, y, own), c->step[1] * c->wide, c->dil[1] * c->wide, c->size[1],
                       own->dy, c->out_w, c->wide, sums + k * c->size[1] * c->wide);
        }
    }
}

/* dw [channels, window] */
static void depth_add_parts(const depth_call *c, const float *sums, int64_t first, int64_t end, float *dw)
{
    int64_t taps = c->size[0] * c->size[1];
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t channel = first; channel < end; channel++) {
            const float *at = sums + tap * c->wide + channel;
            float sum = at[0];
            for (int64_t part = 1; part < PARTS; part++)
                sum += at[part * c->sum_floats];
            dw[channel * taps + tap] = sum;
        }
}

static void depth_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const depth_call *c = prepared;
    float *sums = scratch, *all = sums + PARTS * c->sum_floats;
#pragma omp parallel num_threads(c->threads)
    {
        depth_own own = {.rows = all + omp_get_thread_num() * c->own_floats};
        own.dy = own.rows + c->rows * c->row_floats;
#pragma omp for schedule(static)
        for (int64_t part = 0; part < PARTS; part++)
            depth_part(c, part, in[0], in[1], &own, sums + part * c->sum_floats);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < c->wide; first += LANES)
            depth_add_parts(c, sums, first, first + LANES < c->channels ? first + LANES : c->channels, out[0]);
    }
}

/* ---- preparing ---- */

static depth_row_fn *depth_best(const char **name)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return *name = "native-depth:avx512", depth_avx512_row;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return *name = "native-depth:avx2", depth_avx2_row;
#endif
    return *name = "native-depth:plain", depth_plain_row;
}

static bool depth_takes(const ty_library_shape *s)
{
    const ty_attr *a = s->attr;
    const ty_type *x = &s->in[0], *dy = &s->in[1], *w = &s->res[0];
    return a->n == 2 && a->flags & TY_SLIDING_LAST && a->groups == x->dim[3] && dy->dim[3] == x->dim[3] &&
           (x->dtype == TY_F32 || x->dtype == TY_BF16) && dy->dtype == x->dtype && w->dtype == TY_F32 &&
           ty_type_elems(w) >= LEAST_TAPS * x->dim[3];
}

int ty_native_prepare_depth_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    const ty_attr *a = s->attr;
    const ty_type *x = &s->in[0], *dy = &s->in[1], *w = &s->res[0];
    const char *name;
    if (!depth_takes(s))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a depthwise convolution of many taps");
    depth_call c = {.row = depth_best(&name), .is_half = x->dtype == TY_BF16, .threads = s->threads};
    c.images = x->dim[0], c.in_h = x->dim[1], c.in_w = x->dim[2], c.channels = x->dim[3];
    c.out_h = dy->dim[1], c.out_w = dy->dim[2];
    int first = a->flags & TY_SLIDING_WEIGHTS_LAST ? 1 : 2;
    for (int i = 0; i < 2; i++)
        c.size[i] = w->dim[first + i], c.step[i] = a->step[i], c.dil[i] = a->dil[i], c.lo[i] = a->lo[i];
    c.wide = (c.channels + LANES - 1) / LANES * LANES;
    c.rows = (c.size[0] - 1) * c.dil[0] + 1;
    c.row_floats = ((c.out_w - 1) * c.step[1] + (c.size[1] - 1) * c.dil[1] + 1) * c.wide;
    c.sum_floats = c.size[0] * c.size[1] * c.wide;
    c.own_floats = c.rows * c.row_floats + c.out_w * c.wide;
    if (2.0 * (double)ty_type_elems(dy) * (double)(c.size[0] * c.size[1]) < DEPTH_SERIAL_FLOPS)
        c.threads = 1;
    if (c.rows > MOST_ROWS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "windows of more than %d rows", MOST_ROWS);
    ty_convolution_text(name, a, x, w, c.text, sizeof c.text);
    depth_call *kept = malloc(sizeof *kept);
    if (!kept)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    *kept = c;
    *out = (ty_library_call){.run = depth_run, .release = free, .prepared = kept, .text = kept->text};
    out->scratch_bytes = sizeof(float) * (size_t)(PARTS * c.sum_floats + c.threads * c.own_floats);
    return 0;
}
