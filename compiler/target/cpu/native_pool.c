/* native_pool.c - maximum and sum of float32 over sliding windows, and their gradients.
 *
 * A row of outputs is computed tap by tap: tap k of all windows of the row is a run of one input row with a fixed
 * stride, so that the inner loop goes along the row and vectorises whatever the window is. Which outputs a tap reaches
 * (the others have it in the padding) is known beforehand for the last axis. Gradients go the same way back, one plane
 * a thread at a time, so that no two threads add to the same element.
 *
 * Two windows are so common that they have loops of their own: 2 x 2 with step 2, and the whole plane.
 */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOL_MAX_TAPS     65536 /* along the last axis; wider windows are left to the reference */
#define POOL_SERIAL_ELEMS 16384 /* fewer elements are not worth waking threads for */
#define POOL_LANES        16    /* partial sums of a whole plane: fixed, so that bits do not depend on the machine */

/* A tap of the last axis: it reaches outputs [first, first + n), from input position `at` on. */
typedef struct pool_tap {
    int64_t first, n, at;
} pool_tap;

typedef struct pool_call {
    ty_sliding s;
    int64_t planes;
    int64_t parts; /* a plane's output rows are dealt to threads in this many parts */
    int threads;
    pool_tap tap[]; /* s.size[2] */
} pool_call;

/* The taps along axis a that are inside the input for output position o: [*first, *end). */
TY_CPU_INLINE void pool_inside(const ty_sliding *s, int a, int64_t o, int64_t *first, int64_t *end)
{
    int64_t start = o * s->step[a] - s->lo[a], dil = s->dil[a];
    *first = start < 0 ? (-start + dil - 1) / dil : 0;
    int64_t room = s->in[a] - start;
    *end = room <= 0 ? 0 : (room - 1) / dil + 1;
    if (*end > s->size[a])
        *end = s->size[a];
}

/* ---- maximum ---- */

/* Four floats or integers from any address of a multiple of 4, and what compares of them give. */
typedef float pool_f4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t pool_i4 __attribute__((vector_size(16), aligned(4), may_alias));

/* All ones where the later candidate is greater than the earlier, or is NaN and the earlier is not. */
TY_CPU_INLINE pool_i4 pool_beats(pool_f4 later, pool_f4 earlier)
{
    return ~(pool_i4)(later <= earlier) & (pool_i4)(earlier == earlier);
}

TY_CPU_INLINE pool_i4 pool_pick(pool_i4 take, pool_i4 yes, pool_i4 no)
{
    return (take & yes) | (~take & no);
}

/* Takes the later where it wins, and its place with it. */
TY_CPU_INLINE void pool_challenge(pool_f4 *best, pool_i4 *place, pool_f4 later, pool_i4 later_place)
{
    pool_i4 take = pool_beats(later, *best);
    *best = (pool_f4)pool_pick(take, (pool_i4)later, (pool_i4)*best);
    *place = pool_pick(take, later_place, *place);
}

/* One tap of one window: v, at `place`. A NaN beats all but an earlier NaN. */
TY_CPU_INLINE void pool_max_one(float *y, int32_t *index, float v, int32_t place)
{
    if (*index < 0 || v > *y || (v != v && *y == *y)) {
        *y = v;
        *index = place;
    }
}

/* One tap of n windows: src[i * step] at position at + i * step. Four at a time; what is left over is done again
 * together with what is in front of it, which changes nothing there: an element does not beat itself. */
TY_CPU_INLINE void pool_max_tap(float *y, int32_t *index, const float *src, int64_t n, int64_t step, int32_t at)
{
    pool_i4 offset = (int32_t)step * (pool_i4){0, 1, 2, 3};
    for (int64_t i = 0; n < 4 && i < n; i++)
        pool_max_one(y + i, index + i, src[i * step], at + (int32_t)(i * step));
    for (int64_t i = 0; n >= 4 && i < n; i += 4) {
        int64_t k = i + 4 <= n ? i : n - 4;
        const float *p = src + k * step;
        pool_f4 v = step == 1 ? *(const pool_f4 *)p : (pool_f4){p[0], p[step], p[2 * step], p[3 * step]};
        pool_f4 best = *(pool_f4 *)(y + k);
        pool_i4 old = *(pool_i4 *)(index + k), take = pool_beats(v, best) | (old < 0);
        *(pool_f4 *)(y + k) = (pool_f4)pool_pick(take, (pool_i4)v, (pool_i4)best);
        *(pool_i4 *)(index + k) = pool_pick(take, at + (int32_t)(k * step) + offset, old);
    }
}

/* All taps of one input row, whose first element is number `row` of the plane x. */
TY_CPU_INLINE void pool_max_taps(const pool_call *c, const float *x, int64_t row, float *y, int32_t *index)
{
    for (int64_t k = 0; k < c->s.size[2]; k++) {
        const pool_tap *t = &c->tap[k];
        int64_t at = row + t->at, step = c->s.step[2];
        if (step == 1)
            pool_max_tap(y + t->first, index + t->first, x + at, t->n, 1, (int32_t)at);
        else if (step == 2)
            pool_max_tap(y + t->first, index + t->first, x + at, t->n, 2, (int32_t)at);
        else
            pool_max_tap(y + t->first, index + t->first, x + at, t->n, step, (int32_t)at);
    }
}

/* Output row `row` (of the two leading spatial axes together) of one plane. */
TY_CPU_INLINE void pool_max_row(const pool_call *c, const float *x, int64_t row, float *y, int32_t *index)
{
    const ty_sliding *s = &c->s;
    int64_t o0 = row / s->out[1], o1 = row % s->out[1], first0, end0, first1, end1;
    pool_inside(s, 0, o0, &first0, &end0);
    pool_inside(s, 1, o1, &first1, &end1);
    for (int64_t i = 0; i < s->out[2]; i++) {
        y[i] = -INFINITY;
        index[i] = -1; /* the first element is taken whatever it is */
    }
    for (int64_t k0 = first0; k0 < end0; k0++)
        for (int64_t k1 = first1; k1 < end1; k1++) {
            int64_t at0 = o0 * s->step[0] - s->lo[0] + k0 * s->dil[0];
            int64_t at1 = o1 * s->step[1] - s->lo[1] + k1 * s->dil[1];
            pool_max_taps(c, x, (at0 * s->in[1] + at1) * s->in[2], y, index);
        }
}

TY_CPU_CLONES static void pool_max_rows(const pool_call *c, const float *x, int64_t first, int64_t end, float *y,
                                        int32_t *index)
{
    for (int64_t row = first; row < end; row++)
        pool_max_row(c, x, row, y + row * c->s.out[2], index + row * c->s.out[2]);
}

/* Four windows of 2 x 2, step 2, side by side; `at` is the position of the first one's first element. */
TY_CPU_INLINE void pool_max_four_2x2(float *y, int32_t *index, const float *upper, const float *lower, int32_t at,
                                     int32_t wide)
{
    pool_f4 u0 = *(const pool_f4 *)upper, u1 = *(const pool_f4 *)(upper + 4);
    pool_f4 l0 = *(const pool_f4 *)lower, l1 = *(const pool_f4 *)(lower + 4);
    pool_i4 place = at + (pool_i4){0, 2, 4, 6}, below = place + wide;
    pool_f4 high = __builtin_shufflevector(u0, u1, 0, 2, 4, 6), low = __builtin_shufflevector(l0, l1, 0, 2, 4, 6);
    pool_challenge(&high, &place, __builtin_shufflevector(u0, u1, 1, 3, 5, 7), place + 1);
    pool_challenge(&low, &below, __builtin_shufflevector(l0, l1, 1, 3, 5, 7), below + 1);
    pool_challenge(&high, &place, low, below);
    *(pool_f4 *)y = high;
    *(pool_i4 *)index = place;
}

/* Output rows [first, end) of a plane of 2 axes. What is left of a row is done again together with what is in front of
 * it, so rows hold four at least. */
TY_CPU_CLONES static void pool_max_rows_2x2(const pool_call *c, const float *x, int64_t first, int64_t end, float *y,
                                            int32_t *index)
{
    int64_t n = c->s.out[2], wide = c->s.in[2];
    for (int64_t row = first; row < end; row++)
        for (int64_t i = 0; i < n; i += 4) {
            int64_t from = i + 4 <= n ? i : n - 4, at = 2 * (row * wide + from);
            pool_max_four_2x2(y + row * n + from, index + row * n + from, x + at, x + at + wide, (int32_t)at,
                              (int32_t)wide);
        }
}

static bool pool_is_2x2(const ty_sliding *s)
{
    for (int a = 1; a < TY_SLIDING_AXES; a++)
        if (s->size[a] != 2 || s->step[a] != 2 || s->dil[a] != 1 || s->lo[a] != 0 || 2 * s->out[a] > s->in[a])
            return false;
    return s->in[0] == 1 && s->out[0] == 1 && s->lo[0] == 0 && s->out[2] >= 4;
}

/* The output rows of part p of all parts. */
static int64_t pool_part(const pool_call *c, int64_t p)
{
    return c->s.out[0] * c->s.out[1] * p / c->parts;
}

static void pool_max_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const pool_call *c = prepared;
    const float *x = in[0];
    float *y = out[0];
    int32_t *index = out[1];
    bool is_2x2 = pool_is_2x2(&c->s);
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t unit = 0; unit < c->planes * c->parts; unit++) {
        int64_t plane = unit / c->parts, part = unit % c->parts, to = plane * c->s.out_elems;
        (is_2x2 ? pool_max_rows_2x2 : pool_max_rows)(c, x + plane * c->s.in_elems, pool_part(c, part),
                                                     pool_part(c, part + 1), y + to, index + to);
    }
}

/* Goes by the index alone, which holds for every window; a plane is small enough to stay in the cache. */
static void pool_max_grad_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const pool_call *c = prepared;
    const float *dy_all = in[0];
    const int32_t *index_all = in[1];
    float *dx_all = out[0];
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t plane = 0; plane < c->planes; plane++) {
        const float *restrict dy = dy_all + plane * c->s.out_elems;
        const int32_t *restrict index = index_all + plane * c->s.out_elems;
        float *restrict dx = dx_all + plane * c->s.in_elems;
        memset(dx, 0, (size_t)c->s.in_elems * sizeof *dx);
        for (int64_t k = 0; k < c->s.out_elems; k++)
            if ((uint64_t)(int64_t)index[k] < (uint64_t)c->s.in_elems)
                dx[index[k]] += dy[k];
    }
}

/* ---- sum ---- */

/* Adds one tap of n windows: forward, far elements to near ones; backward, near ones to far ones. */
TY_CPU_INLINE void pool_sum_tap(float *restrict near_, float *restrict far_, int64_t n, int64_t step, bool forward)
{
    if (forward) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            near_[i] += far_[i * step];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            far_[i * step] += near_[i];
    }
}

/* One output row y and all that it covers in x. One of the two is only read. */
TY_CPU_INLINE void pool_sum_row(const pool_call *c, float *x, int64_t row, float *y, bool forward)
{
    const ty_sliding *s = &c->s;
    int64_t o0 = row / s->out[1], o1 = row % s->out[1], first0, end0, first1, end1, step = s->step[2];
    pool_inside(s, 0, o0, &first0, &end0);
    pool_inside(s, 1, o1, &first1, &end1);
    for (int64_t k0 = first0; k0 < end0; k0++)
        for (int64_t k1 = first1; k1 < end1; k1++) {
            int64_t at0 = o0 * s->step[0] - s->lo[0] + k0 * s->dil[0];
            int64_t at1 = o1 * s->step[1] - s->lo[1] + k1 * s->dil[1];
            float *from = x + (at0 * s->in[1] + at1) * s->in[2];
            for (const pool_tap *t = c->tap; t < c->tap + s->size[2]; t++) {
                if (step == 1)
                    pool_sum_tap(y + t->first, from + t->at, t->n, 1, forward);
                else if (step == 2)
                    pool_sum_tap(y + t->first, from + t->at, t->n, 2, forward);
                else
                    pool_sum_tap(y + t->first, from + t->at, t->n, step, forward);
            }
        }
}

TY_CPU_CLONES static void pool_sum_rows(const pool_call *c, const float *x, int64_t first, int64_t end, float *y)
{
    for (int64_t row = first; row < end; row++) {
        float *to = y + row * c->s.out[2];
        memset(to, 0, (size_t)c->s.out[2] * sizeof *to);
        pool_sum_row(c, (float *)(uintptr_t)x, row, to, true); /* x is only read */
    }
}

TY_CPU_CLONES static void pool_sum_back(const pool_call *c, float *dx, const float *dy)
{
    memset(dx, 0, (size_t)c->s.in_elems * sizeof *dx);
    for (int64_t row = 0; row < c->s.out[0] * c->s.out[1]; row++)
        pool_sum_row(c, dx, row, (float *)(uintptr_t)(dy + row * c->s.out[2]), false); /* dy is only read */
}

TY_CPU_CLONES static float pool_sum_all(const float *x, int64_t n)
{
    float lane[POOL_LANES] = {0};
    int64_t k = 0;
    for (; k + POOL_LANES <= n; k += POOL_LANES)
#pragma omp simd
        for (int i = 0; i < POOL_LANES; i++)
            lane[i] += x[k + i];
    for (int i = 0; k + i < n; i++)
        lane[i] += x[k + i];
    for (int half = POOL_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

/* One window that covers the whole plane. */
static bool pool_is_global(const ty_sliding *s)
{
    for (int a = 0; a < TY_SLIDING_AXES; a++)
        if (s->out[a] != 1 || s->size[a] != s->in[a] || s->lo[a] != 0 || (s->dil[a] != 1 && s->size[a] != 1))
            return false;
    return true;
}

static void pool_sum_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const pool_call *c = prepared;
    const float *x = in[0];
    float *y = out[0];
    bool is_global = pool_is_global(&c->s);
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t unit = 0; unit < c->planes * c->parts; unit++) {
        int64_t plane = unit / c->parts, part = unit % c->parts;
        const float *from = x + plane * c->s.in_elems;
        if (is_global)
            y[plane] = pool_sum_all(from, c->s.in_elems);
        else
            pool_sum_rows(c, from, pool_part(c, part), pool_part(c, part + 1), y + plane * c->s.out_elems);
    }
}

static void pool_sum_grad_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const pool_call *c = prepared;
    const float *dy = in[0];
    float *dx = out[0];
    bool is_global = pool_is_global(&c->s);
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t plane = 0; plane < c->planes; plane++) {
        float *to = dx + plane * c->s.in_elems;
        if (!is_global)
            pool_sum_back(c, to, dy + plane * c->s.out_elems);
        else
            for (int64_t k = 0; k < c->s.in_elems; k++)
                to[k] = dy[plane];
    }
}

/* ---- preparing ---- */

static void pool_fill_taps(pool_call *c)
{
    for (int64_t k = 0; k < c->s.size[2]; k++) {
        int64_t first, end, at;
        ty_sliding_span(&c->s, 2, k, &first, &end, &at);
        c->tap[k] = first < end ? (pool_tap){first, end - first, at} : (pool_tap){0, 0, 0};
    }
}

/* x: the type of the side with the planes that windows slide over. */
static int pool_prepare(const ty_library_shape *shape, const ty_type *x,
                        void (*run)(void *, const void *const *, void *const *, void *), ty_library_call *out,
                        ty_error *err)
{
    ty_sliding s;
    if (shape->attr->flags & TY_SLIDING_LAST)
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling: expected channels-first tensors");
    if (shape->in[0].dtype != TY_F32 || shape->res[0].dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling: expected f32, found %s",
                            ty_dtype_text((ty_dtype)shape->in[0].dtype));
    if (ty_sliding_make(&s, shape->attr, x, shape->attr->size, err) < 0)
        return -1;
    if (s.size[2] > POOL_MAX_TAPS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling: expected a window of at most %d along the last axis",
                            POOL_MAX_TAPS);
    pool_call *c = calloc(1, sizeof *c + (size_t)s.size[2] * sizeof *c->tap);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared pooling");
    int64_t planes = x->dim[0] * x->dim[1], rows = s.out[0] * s.out[1];
    *c = (pool_call){.s = s, .planes = planes, .parts = 1, .threads = shape->threads > 1 ? shape->threads : 1};
    if (planes * s.in_elems < POOL_SERIAL_ELEMS)
        c->threads = 1;
    if (planes < 4 * c->threads && c->threads > 1)
        c->parts = rows < c->threads ? rows : c->threads;
    pool_fill_taps(c);
    *out = (ty_library_call){.run = run, .release = free, .prepared = c, .text = "native"};
    return 0;
}

int ty_native_prepare_pool_max(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return pool_prepare(shape, &shape->in[0], pool_max_run, out, err);
}

int ty_native_prepare_pool_max_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return pool_prepare(shape, &shape->res[0], pool_max_grad_run, out, err);
}

int ty_native_prepare_pool_sum(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return pool_prepare(shape, &shape->in[0], pool_sum_run, out, err);
}

int ty_native_prepare_pool_sum_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return pool_prepare(shape, &shape->res[0], pool_sum_grad_run, out, err);
}
