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
#include "compiler/target/cpu/last_rows.h"
#include "compiler/target/cpu/native.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, DEPTH_MOST = 7 };
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
    ty_last_rows x; /* and dy, of which a row is loaded the same way */
    int64_t images, out_h, out_w;
    int64_t size[2], step[2], dil[2], lo;
    int64_t sum_floats; /* of a part */
    int64_t own_floats; /* of a thread */
    int threads;
    char text[TY_CONVOLUTION_TEXT];
} depth_call;

/* ---- sums ---- */

/* Sums of a part are [window, channels]; dy is a row of a thread's own. */
static void depth_part(const depth_call *c, int64_t part, const void *const *in, ty_last_own *own, float *dy,
                       float *sums)
{
    int64_t all = c->images * c->out_h, first = all * part / PARTS, end = all * (part + 1) / PARTS, wide = c->x.wide;
    memset(sums, 0, (size_t)c->sum_floats * sizeof *sums);
    ty_last_forget(&c->x, own);
    for (int64_t row = first; row < end; row++) {
        int64_t image = row / c->out_h, top = row % c->out_h * c->step[0] - c->lo;
        ty_last_positions(&c->x, in[1], row * c->out_w, c->out_w, dy);
        for (int64_t k = 0; k < c->size[0]; k++) {
            int64_t y = top + k * c->dil[0];
            if (y >= 0 && y < c->x.in_h)
                c->row(ty_last_find_row(&c->x, in[0], image, y, own), c->step[1] * wide, c->dil[1] * wide, c->size[1],
                       dy, c->out_w, wide, sums + k * c->size[1] * wide);
        }
    }
}

/* dw [channels, window] */
static void depth_add_parts(const depth_call *c, const float *sums, int64_t first, int64_t end, float *dw)
{
    int64_t taps = c->size[0] * c->size[1];
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t channel = first; channel < end; channel++) {
            const float *at = sums + tap * c->x.wide + channel;
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
        ty_last_own own = {.rows = all + omp_get_thread_num() * c->own_floats};
#pragma omp for schedule(static)
        for (int64_t part = 0; part < PARTS; part++)
            depth_part(c, part, in, &own, own.rows + c->x.rows * c->x.row_floats, sums + part * c->sum_floats);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < c->x.channels; first += TY_LAST_LANES) {
            int64_t end = first + TY_LAST_LANES;
            depth_add_parts(c, sums, first, end < c->x.channels ? end : c->x.channels, out[0]);
        }
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
    depth_call c = {.row = depth_best(&name), .threads = s->threads};
    c.images = x->dim[0], c.out_h = dy->dim[1], c.out_w = dy->dim[2], c.lo = a->lo[0];
    int first = a->flags & TY_SLIDING_WEIGHTS_LAST ? 1 : 2;
    for (int i = 0; i < 2; i++)
        c.size[i] = w->dim[first + i], c.step[i] = a->step[i], c.dil[i] = a->dil[i];
    c.x = ty_last_rows_make(a, x, c.size, c.out_w);
    c.sum_floats = c.size[0] * c.size[1] * c.x.wide;
    c.own_floats = c.x.rows * c.x.row_floats + c.out_w * c.x.wide;
    if (2.0 * (double)ty_type_elems(dy) * (double)(c.size[0] * c.size[1]) < DEPTH_SERIAL_FLOPS)
        c.threads = 1;
    if (c.x.rows > TY_LAST_MOST_ROWS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "windows of more than %d rows", TY_LAST_MOST_ROWS);
    ty_convolution_text(name, a, x, w, c.text, sizeof c.text);
    depth_call *kept = malloc(sizeof *kept);
    if (!kept)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    *kept = c;
    *out = (ty_library_call){.run = depth_run, .release = free, .prepared = kept, .text = kept->text};
    out->scratch_bytes = sizeof(float) * (size_t)(PARTS * c.sum_floats + c.threads * c.own_floats);
    return 0;
}
