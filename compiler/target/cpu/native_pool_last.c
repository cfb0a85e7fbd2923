/* native_pool_last.c - maximum and sum of float32 over sliding windows of channels-last tensors, and their gradients.
 *
 * The channels of one position lie side by side, so every loop here runs along them: a window is a few rows of x, taken
 * in one after the other into one row of y. Gradients go back by rows of x (a sum asks which windows cover it) or by
 * images and ranges of channels (a maximum, whose index may point anywhere), so that no two threads add to the same
 * element. Large images whose windows stand apart are taken slab by slab, as long as indices stay in their slabs.
 */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/clones.h"

#include <stdlib.h>
#include <string.h>

#define LAST_SERIAL_ELEMS 16384              /* fewer elements are not worth waking threads for */
#define LAST_CHANNELS     16                 /* least number of channels that a thread takes of an image */
#define LAST_LARGE        (INT64_C(1) << 20) /* bytes of an image that does not stay in a core's cache */

typedef struct last_call {
    ty_sliding s;
    int64_t batch, c;
    int64_t parts; /* gradient of a maximum: the channels are dealt to threads in this many parts */
    int threads;
} last_call;

/* The taps along axis a that are inside the input for output position o: [*first, *end). */
static void last_taps(const ty_sliding *s, int a, int64_t o, int64_t *first, int64_t *end)
{
    int64_t start = o * s->step[a] - s->lo[a], dil = s->dil[a], room = s->in[a] - start;
    *first = start < 0 ? (-start + dil - 1) / dil : 0;
    *end = room <= 0 ? 0 : (room - 1) / dil + 1;
    *end = *end < s->size[a] ? *end : s->size[a];
}

/* All taps of the window at output position o (of three axes) that are inside the input, in order. */
typedef struct last_window {
    const ty_sliding *s;
    int64_t o[3], k[3], first[3], end[3];
    bool none;
} last_window;

static last_window last_open(const ty_sliding *s, int64_t position)
{
    last_window w = {.s = s,
                     .o = {position / (s->out[1] * s->out[2]), position / s->out[2] % s->out[1], position % s->out[2]}};
    for (int a = 0; a < 3; a++) {
        last_taps(s, a, w.o[a], &w.first[a], &w.end[a]);
        w.k[a] = w.first[a];
        w.none |= w.first[a] >= w.end[a];
    }
    return w;
}

/* The position in the input's plane of the next tap, or -1. */
static int64_t last_next(last_window *w)
{
    const ty_sliding *s = w->s;
    if (w->none)
        return -1;
    int64_t at = 0;
    for (int a = 0; a < 3; a++)
        at = at * s->in[a] + w->o[a] * s->step[a] - s->lo[a] + w->k[a] * s->dil[a];
    for (int a = 2; a >= 0; a--) {
        if (++w->k[a] < w->end[a])
            return at;
        w->k[a] = w->first[a];
    }
    w->none = true;
    return at;
}

/* ---- maximum ---- */

/* A NaN beats all but an earlier NaN. */
TY_CPU_CLONES static void last_challenge(float *restrict y, int32_t *restrict index, const float *restrict x, int64_t n,
                                         int32_t at)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float now = y[i], v = x[i];
        bool take = !(v <= now) & (now == now);
        y[i] = take ? v : now;
        index[i] = take ? at : index[i];
    }
}

static void last_max_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const last_call *k = prepared;
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(k->threads)
    for (int64_t unit = 0; unit < k->batch * k->s.out_elems; unit++) {
        const float *x = (const float *)in[0] + unit / k->s.out_elems * k->s.in_elems * k->c;
        float *y = (float *)out[0] + unit * k->c;
        int32_t *index = (int32_t *)out[1] + unit * k->c;
        last_window w = last_open(&k->s, unit % k->s.out_elems);
        int64_t at = last_next(&w); /* there is one: see ty_sliding_expect_inside */
        memcpy(y, x + at * k->c, (size_t)k->c * sizeof *y);
        for (int64_t i = 0; i < k->c; i++)
            index[i] = (int32_t)at;
        while ((at = last_next(&w)) >= 0)
            last_challenge(y, index, x + at * k->c, k->c, (int32_t)at);
    }
}

/* A slab: what windows with one number along the slowest axis cover, planes of x behind each other. */
typedef struct last_slabs {
    int64_t n_out, n_in;         /* of an image, along that axis */
    int64_t elems_out, elems_in; /* of a plane, all channels */
    int64_t step, lo;
} last_slabs;

/* False if images are small, or windows overlap along that axis. */
static bool last_find_slabs(const last_call *k, last_slabs *t)
{
    const ty_sliding *s = &k->s;
    int a = s->in[0] > 1 ? 0 : 1;
    *t = (last_slabs){.n_out = s->out[a],
                      .n_in = s->in[a],
                      .elems_out = s->out_elems / s->out[a] * k->c,
                      .elems_in = s->in_elems / s->in[a] * k->c,
                      .step = s->step[a],
                      .lo = s->lo[a]};
    return s->in_elems * k->c * (int64_t)sizeof(float) > LAST_LARGE && (s->size[a] - 1) * s->dil[a] < s->step[a] &&
           s->out[a] > 1;
}

/* Adds n channels of windows to a slab that begins at element `begin` of a plane; how many indices point out of it. */
static int64_t last_max_back(float *dx, const float *dy, const int32_t *index, int64_t n, int64_t c, int64_t begin,
                             int64_t elems)
{
    int64_t outside = 0;
    for (int64_t o = 0; o < n; o += c)
        for (int64_t i = o; i < o + c; i++) {
            int64_t at = (int64_t)index[i] * c - begin;
            if ((uint64_t)at < (uint64_t)elems)
                dx[at + i - o] += dy[i];
            else
                outside++;
        }
    return outside;
}

/* False if an index points out of its slab, as no maximum's does: then what dx holds is wrong. */
static bool last_max_by_slabs(const last_call *k, const last_slabs *t, const float *dy, const int32_t *index, float *dx)
{
    int64_t outside = 0;
#pragma omp parallel for schedule(static) num_threads(k->threads) reduction(+ : outside)
    for (int64_t unit = 0; unit < k->batch * t->n_out; unit++) {
        int64_t o = unit % t->n_out, first = o * t->step - t->lo, end = first + t->step;
        first = first < 0 ? 0 : first;
        end = o + 1 == t->n_out || end > t->n_in ? t->n_in : end;
        float *slab = dx + (unit / t->n_out * t->n_in + first) * t->elems_in;
        memset(slab, 0, (size_t)((end - first) * t->elems_in) * sizeof *slab);
        outside += last_max_back(slab, dy + unit * t->elems_out, index + unit * t->elems_out, t->elems_out, k->c,
                                 first * t->elems_in, (end - first) * t->elems_in);
    }
    return outside == 0;
}

/* By the index alone, as the op is defined. */
static void last_max_scatter(const last_call *k, const float *all_dy, const int32_t *all_index, float *all_dx)
{
#pragma omp parallel for schedule(static) num_threads(k->threads)
    for (int64_t unit = 0; unit < k->batch * k->parts; unit++) {
        int64_t n = unit / k->parts, part = unit % k->parts, c = k->c;
        int64_t lo = c * part / k->parts, hi = c * (part + 1) / k->parts;
        const float *dy = all_dy + n * k->s.out_elems * c;
        const int32_t *index = all_index + n * k->s.out_elems * c;
        float *dx = all_dx + n * k->s.in_elems * c;
        for (int64_t p = 0; p < k->s.in_elems; p++)
            memset(dx + p * c + lo, 0, (size_t)(hi - lo) * sizeof *dx);
        for (int64_t o = 0; o < k->s.out_elems; o++)
            for (int64_t i = o * c + lo; i < o * c + hi; i++)
                if ((uint64_t)(int64_t)index[i] < (uint64_t)k->s.in_elems)
                    dx[(int64_t)index[i] * c + i - o * c] += dy[i];
    }
}

static void last_max_grad_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const last_call *k = prepared;
    last_slabs slabs;
    (void)scratch;
    if (!last_find_slabs(k, &slabs) || !last_max_by_slabs(k, &slabs, in[0], in[1], out[0]))
        last_max_scatter(k, in[0], in[1], out[0]);
}

/* ---- sum ---- */

TY_CPU_CLONES static void last_add(float *restrict to, const float *restrict from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void last_sum_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const last_call *k = prepared;
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(k->threads)
    for (int64_t unit = 0; unit < k->batch * k->s.out_elems; unit++) {
        const float *x = (const float *)in[0] + unit / k->s.out_elems * k->s.in_elems * k->c;
        float *y = (float *)out[0] + unit * k->c;
        last_window w = last_open(&k->s, unit % k->s.out_elems);
        memset(y, 0, (size_t)k->c * sizeof *y);
        for (int64_t at; (at = last_next(&w)) >= 0;)
            last_add(y, x + at * k->c, k->c);
    }
}

/* All windows that cover the input position `at` of a plane, in order. */
typedef struct last_cover {
    const ty_sliding *s;
    int64_t p[3], o[3], first[3], end[3];
    bool none;
} last_cover;

/* The output positions along axis a whose windows reach over p: [*first, *end). */
static void last_reach(const ty_sliding *s, int a, int64_t p, int64_t *first, int64_t *end)
{
    int64_t at = p + s->lo[a], before = at - (s->size[a] - 1) * s->dil[a];
    *first = before <= 0 ? 0 : (before + s->step[a] - 1) / s->step[a];
    *end = at / s->step[a] + 1 < s->out[a] ? at / s->step[a] + 1 : s->out[a];
}

static last_cover last_cover_open(const ty_sliding *s, int64_t at)
{
    last_cover c = {.s = s, .p = {at / (s->in[1] * s->in[2]), at / s->in[2] % s->in[1], at % s->in[2]}};
    for (int a = 0; a < 3; a++) {
        last_reach(s, a, c.p[a], &c.first[a], &c.end[a]);
        c.o[a] = c.first[a];
        c.none |= c.first[a] >= c.end[a];
    }
    return c;
}

/* Dilated windows step over some of the positions that they reach over. */
static bool last_is_stepped_over(const last_cover *c)
{
    bool over = false;
    for (int a = 0; a < 3; a++)
        over |= (c->p[a] + c->s->lo[a] - c->o[a] * c->s->step[a]) % c->s->dil[a] != 0;
    return over;
}

/* The next one's place among the results, or -1. */
static int64_t last_cover_next(last_cover *c)
{
    const ty_sliding *s = c->s;
    int64_t at = -1;
    while (!c->none && at < 0) {
        at = last_is_stepped_over(c) ? -1 : (c->o[0] * s->out[1] + c->o[1]) * s->out[2] + c->o[2];
        int a = 2;
        for (; a >= 0 && ++c->o[a] == c->end[a]; a--)
            c->o[a] = c->first[a];
        c->none = a < 0;
    }
    return at;
}

static void last_sum_grad_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const last_call *k = prepared;
    const ty_sliding *s = &k->s;
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(k->threads)
    for (int64_t unit = 0; unit < k->batch * s->in_elems; unit++) {
        const float *dy = (const float *)in[0] + unit / s->in_elems * s->out_elems * k->c;
        float *dx = (float *)out[0] + unit * k->c;
        last_cover cover = last_cover_open(s, unit % s->in_elems);
        memset(dx, 0, (size_t)k->c * sizeof *dx);
        for (int64_t o; (o = last_cover_next(&cover)) >= 0;)
            last_add(dx, dy + o * k->c, k->c);
    }
}

/* ---- preparing ---- */

/* x: the type of the side with the planes that windows slide over. */
static int last_prepare(const ty_library_shape *shape, const ty_type *x,
                        void (*run)(void *, const void *const *, void *const *, void *), ty_library_call *out,
                        ty_error *err)
{
    ty_sliding s;
    if (!(shape->attr->flags & TY_SLIDING_LAST))
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling: expected channels-last tensors");
    if (shape->in[0].dtype != TY_F32 || shape->res[0].dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling: expected f32, found %s",
                            ty_dtype_text((ty_dtype)shape->in[0].dtype));
    if (ty_sliding_make(&s, shape->attr, x, shape->attr->size, err) < 0)
        return -1;
    last_call *k = calloc(1, sizeof *k);
    if (!k)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared pooling");
    *k = (last_call){.s = s,
                     .batch = x->dim[0],
                     .c = x->dim[x->rank - 1],
                     .parts = 1,
                     .threads = ty_type_elems(x) < LAST_SERIAL_ELEMS || shape->threads < 1 ? 1 : shape->threads};
    if (k->batch < 4 * k->threads && k->threads > 1)
        k->parts = k->c / LAST_CHANNELS < k->threads ? k->c / LAST_CHANNELS : k->threads;
    k->parts = k->parts > 0 ? k->parts : 1;
    *out = (ty_library_call){.run = run, .release = free, .prepared = k, .text = "native"};
    return 0;
}

int ty_native_prepare_last_max(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return last_prepare(shape, &shape->in[0], last_max_run, out, err);
}

int ty_native_prepare_last_max_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return last_prepare(shape, &shape->res[0], last_max_grad_run, out, err);
}

int ty_native_prepare_last_sum(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return last_prepare(shape, &shape->in[0], last_sum_run, out, err);
}

int ty_native_prepare_last_sum_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return last_prepare(shape, &shape->res[0], last_sum_grad_run, out, err);
}
