/* native_taps.c - convolution and its gradient for x, a tap of the window at a time (taps.h).
 *
 * `from` is multiplied, `to` is what comes out: x and y forward, dy and dx on the way back. A unit of work is a chunk
 * of a row of `to`. Each of its numbers is one sum in a fixed order: the bits do not depend on the number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/taps.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct taps_call {
    ty_taps t;
    bool back;
    int64_t from_c, to_c, panels, packed_floats;
    const int64_t *from, *to; /* extents */
    int64_t chunks;           /* of a row */
} taps_call;

/* Where a chunk lies, and where its sums are. */
typedef struct taps_chunk {
    int64_t image, row[2], begin, end;
    float *c;
    int64_t c_step;
} taps_chunk;

/* w to [taps][panels][from_c, 32] */
static void taps_pack_panel(const taps_call *c, const float *w, int64_t panel, float *packed)
{
    const ty_taps *t = &c->t;
    int64_t strip = t->kernels->strip, taps = t->s.size_elems, left = c->to_c - panel * TY_PANEL;
    for (int64_t j = 0; j < TY_PANEL; j++)
        for (int64_t i = 0; i < c->from_c; i++) {
            float *to = packed + panel * c->from_c * TY_PANEL + (j / strip * c->from_c + i) * strip + j % strip;
            int64_t of_to = panel * TY_PANEL + j, out = c->back ? i : of_to, in = c->back ? of_to : i;
            for (int64_t tap = 0; tap < taps; tap++)
                to[tap * c->panels * c->from_c * TY_PANEL] = j < left ? w[ty_taps_weight(t, out, in, tap)] : 0;
        }
}

/* The row of `from` along an axis that tap k needs for a row of `to`, -1 if there is none. */
static int64_t taps_source(const taps_call *c, int axis, int64_t row, int64_t k)
{
    const ty_sliding *s = &c->t.s;
    if (!c->back)
        return ty_taps_in(&c->t, axis, row, k);
    int64_t at = row + s->lo[axis] - k * s->dil[axis];
    return at >= 0 && at % s->step[axis] == 0 && at / s->step[axis] < s->out[axis] ? at / s->step[axis] : -1;
}

/* Adds what tap number `tap`, number k along a row, brings from this row of `from`. */
static void taps_add(const taps_call *c, const taps_chunk *h, const float *from, const float *packed, int64_t k)
{
    const ty_sliding *s = &c->t.s;
    int64_t first, end, at, step = s->step[2];
    ty_sliding_span(s, 2, k, &first, &end, &at);
    int64_t lo = c->back ? first + (h->begin > at ? (h->begin - at + step - 1) / step : 0) : h->begin;
    int64_t hi = c->back ? (h->end > at ? first + (h->end - at + step - 1) / step : first) : h->end;
    lo = lo < first ? first : lo;
    hi = hi > end ? end : hi;
    if (lo >= hi)
        return;
    int64_t x = at + (lo - first) * step, a = c->back ? lo : x, a_step = c->from_c * (c->back ? 1 : step);
    float *to = h->c + ((c->back ? x : lo) - h->begin) * h->c_step;
    for (int64_t panel = 0; panel < c->panels; panel++)
        c->t.kernels->rows(from + a * c->from_c, a_step, hi - lo, c->from_c, packed + panel * c->from_c * TY_PANEL,
                           c->from_c, to + panel * TY_PANEL, h->c_step * (c->back ? step : 1), true);
}

static void taps_sum(const taps_call *c, const taps_chunk *h, const float *from, const float *packed)
{
    const ty_sliding *s = &c->t.s;
    int64_t each = c->panels * c->from_c * TY_PANEL;
    memset(h->c, 0, (size_t)((h->end - h->begin) * h->c_step) * sizeof *h->c);
    for (int64_t k0 = 0; k0 < s->size[0]; k0++)
        for (int64_t k1 = 0; k1 < s->size[1]; k1++) {
            int64_t row0 = taps_source(c, 0, h->row[0], k0), row1 = taps_source(c, 1, h->row[1], k1);
            int64_t row = (h->image * c->from[0] + row0) * c->from[1] + row1, tap = (k0 * s->size[1] + k1) * s->size[2];
            for (int64_t k = 0; row0 >= 0 && row1 >= 0 && k < s->size[2]; k++)
                taps_add(c, h, from + row * c->from[2] * c->from_c, packed + (tap + k) * each, k);
        }
}

/* Number `unit` of the chunks; own: memory for its sums where panels are no multiple of the channels. */
static void taps_unit(const taps_call *c, int64_t unit, const float *from, const float *packed, float *own, float *to)
{
    int64_t chunk = unit % c->chunks, row = unit / c->chunks, wide = c->panels * TY_PANEL;
    taps_chunk h = {.image = row / (c->to[0] * c->to[1]),
                    .row = {row / c->to[1] % c->to[0], row % c->to[1]},
                    .begin = chunk * c->to[2] / c->chunks,
                    .end = (chunk + 1) * c->to[2] / c->chunks,
                    .c_step = wide};
    float *y = to + (row * c->to[2] + h.begin) * c->to_c;
    h.c = wide == c->to_c ? y : own;
    taps_sum(c, &h, from, packed);
    for (int64_t i = 0; h.c == own && i < h.end - h.begin; i++)
        memcpy(y + i * c->to_c, own + i * wide, (size_t)c->to_c * sizeof *own);
}

static void taps_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const taps_call *c = prepared;
    float *packed = scratch;
    int64_t own_floats = TY_TAPS_CHUNK * c->panels * TY_PANEL;
#pragma omp parallel num_threads(c->t.threads)
    {
        float *own = packed + c->packed_floats + omp_get_thread_num() * own_floats;
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < c->panels; panel++)
            taps_pack_panel(c, in[1], panel, packed);
#pragma omp for schedule(static)
        for (int64_t unit = 0; unit < c->t.images * c->to[0] * c->to[1] * c->chunks; unit++)
            taps_unit(c, unit, in[0], packed, own, out[0]);
    }
}

/* ---- preparing ---- */

static int taps_prepare(const ty_library_shape *s, const ty_type *x, const ty_type *y, bool back, ty_library_call *out,
                        ty_error *err)
{
    taps_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    if (ty_taps_make(&c->t, s, x, &s->in[1], y, err) < 0) {
        free(c);
        return -1;
    }
    c->back = back;
    c->from_c = back ? c->t.out_c : c->t.in_c;
    c->to_c = back ? c->t.in_c : c->t.out_c;
    c->from = back ? c->t.s.out : c->t.s.in;
    c->to = back ? c->t.s.in : c->t.s.out;
    c->panels = ty_panels_of(c->to_c);
    c->packed_floats = c->t.s.size_elems * c->panels * c->from_c * TY_PANEL;
    c->chunks = (c->to[2] + TY_TAPS_CHUNK - 1) / TY_TAPS_CHUNK;
    *out = (ty_library_call){.run = taps_run, .release = free, .prepared = c, .text = c->t.text};
    out->scratch_bytes =
        sizeof(float) * (size_t)(c->packed_floats + c->t.threads * TY_TAPS_CHUNK * c->panels * TY_PANEL);
    return 0;
}

int ty_native_prepare_taps(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return taps_prepare(s, &s->in[0], &s->res[0], false, out, err);
}

int ty_native_prepare_taps_dx(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return taps_prepare(s, &s->res[0], &s->in[0], true, out, err);
}
