/* native_scatter.c - writing rows (scatter) and single elements (put) by number.
 *
 * The result starts as a copy of x, or as zeros where there is no x. Updates that meet in one place combine in the
 * order of the index whatever the number of threads is, because each place belongs to one thread, which goes through
 * the whole index in order and takes what is its own. How places are dealt out depends on the shape: whole slabs in
 * front of the axis, or pieces of rows, or, for an embedding's gradient (many short rows), rows by a hash of their
 * number, which spreads frequent ones.
 *
 * Nothing is sorted for a sum. Sorting the index first and adding up what goes to the same row (native_rows.c, which
 * has to, since it makes no table) took 1.24 times as long as this for DeepFM's gradients (40,000 numbers of 117,581
 * rows of 32 and of 1; median of 5 pairs of one thread, AMD EPYC), and did not yet write the table.
 *
 * An index outside the axis writes nothing.
 */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/refiter.h"
#include "compiler/target/cpu/clones.h"

#include <stdlib.h>
#include <string.h>

#define SCATTER_SERIAL_BYTES (64 << 10) /* fewer bytes of result and update are not worth waking threads for */
#define SCATTER_PIECE_BYTES  256        /* least piece of a row for a thread of its own */
#define SCATTER_COPY_BYTES   (1 << 20)  /* piece of the copy of x */
#define SCATTER_AHEAD        8          /* rows fetched ahead: they lie anywhere in memory */

/* Numbers in arenas are aligned to 4 bytes only. */
typedef int64_t scatter_i64 __attribute__((aligned(4)));
typedef double scatter_f64 __attribute__((aligned(4)));

/* to[i] = combine(to[i], from[i]) */
typedef void scatter_row_fn(void *to, const void *from, int64_t n);

#define SCATTER_ROW(TYPE, NAME, EXPR)                                               \
    TY_CPU_CLONES static void scatter_##NAME(void *to, const void *from, int64_t n) \
    {                                                                               \
        TYPE *restrict p = to;                                                      \
        const TYPE *restrict q = from;                                              \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                         \
        {                                                                           \
            TYPE a = p[i], b = q[i];                                                \
            p[i] = EXPR;                                                            \
        }                                                                           \
    }

/* A NaN wins in MAX and MIN; integers wrap. */
#define SCATTER_FLOAT(TYPE, NAME)                                \
    SCATTER_ROW(TYPE, NAME##_sum, a + b)                         \
    SCATTER_ROW(TYPE, NAME##_prod, a *b)                         \
    SCATTER_ROW(TYPE, NAME##_max, ((a != a) | (a >= b)) ? a : b) \
    SCATTER_ROW(TYPE, NAME##_min, ((a != a) | (a <= b)) ? a : b)

#define SCATTER_INTEGER(TYPE, UNSIGNED, NAME)                         \
    SCATTER_ROW(TYPE, NAME##_sum, (TYPE)((UNSIGNED)a + (UNSIGNED)b))  \
    SCATTER_ROW(TYPE, NAME##_prod, (TYPE)((UNSIGNED)a * (UNSIGNED)b)) \
    SCATTER_ROW(TYPE, NAME##_max, a >= b ? a : b)                     \
    SCATTER_ROW(TYPE, NAME##_min, a <= b ? a : b)

SCATTER_FLOAT(float, f32)
SCATTER_FLOAT(scatter_f64, f64)
SCATTER_INTEGER(int32_t, uint32_t, i32)
SCATTER_INTEGER(scatter_i64, uint64_t, i64)

static void scatter_set4(void *to, const void *from, int64_t n)
{
    memcpy(to, from, (size_t)n * 4);
}

static void scatter_set8(void *to, const void *from, int64_t n)
{
    memcpy(to, from, (size_t)n * 8);
}

#define SCATTER_MODES(NAME, SET)                                                                           \
    {                                                                                                      \
        [TY_SUM] = scatter_##NAME##_sum, [TY_MAX] = scatter_##NAME##_max, [TY_MIN] = scatter_##NAME##_min, \
        [TY_PROD] = scatter_##NAME##_prod, [TY_SET] = SET                                                  \
    }

static scatter_row_fn *const scatter_rows[TY_N_DTYPES][TY_SET + 1] = {
    [TY_F32] = SCATTER_MODES(f32, scatter_set4),
    [TY_F64] = SCATTER_MODES(f64, scatter_set8),
    [TY_I32] = SCATTER_MODES(i32, scatter_set4),
    [TY_I64] = SCATTER_MODES(i64, scatter_set8),
};

typedef enum scatter_deal { SCATTER_BY_SLAB, SCATTER_BY_PIECE, SCATTER_BY_ROW } scatter_deal;

typedef struct scatter_call {
    int64_t outer, n, inner; /* x around the axis */
    int64_t n_index;         /* numbers in the index (scatter), or of them along the axis (put) */
    size_t elem_bytes;
    bool wide; /* the index is i64, else i32 */
    scatter_row_fn *combine;
    scatter_deal deal;
    int threads;
} scatter_call;

TY_CPU_INLINE int64_t scatter_index(const scatter_call *c, const void *index, int64_t k)
{
    return c->wide ? ((const scatter_i64 *)index)[k] : ((const int32_t *)index)[k];
}

TY_CPU_INLINE bool scatter_is_inside(const scatter_call *c, int64_t at)
{
    return (uint64_t)at < (uint64_t)c->n;
}

/* from: NULL for zeros; `to` itself where the plan let the result take the place of x. */
static void scatter_copy(const scatter_call *c, char *to, const char *from)
{
    int64_t bytes = from == to ? 0 : c->outer * c->n * c->inner * (int64_t)c->elem_bytes;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t at = 0; at < bytes; at += SCATTER_COPY_BYTES) {
        size_t n = (size_t)(bytes - at < SCATTER_COPY_BYTES ? bytes - at : SCATTER_COPY_BYTES);
        if (from)
            memcpy(to + at, from + at, n);
        else
            memset(to + at, 0, n);
    }
}

/* ---- scatter ---- */

/* Elements [first, end) of all updated rows of one slab. */
static void scatter_slab(const scatter_call *c, char *out, const void *index, const char *update, int64_t first,
                         int64_t end)
{
    size_t row_bytes = (size_t)c->inner * c->elem_bytes, skip = (size_t)first * c->elem_bytes;
    for (int64_t k = 0; k < c->n_index; k++) {
        int64_t at = scatter_index(c, index, k);
        if (scatter_is_inside(c, at))
            c->combine(out + (size_t)at * row_bytes + skip, update + (size_t)k * row_bytes + skip, end - first);
    }
}

/* The thread that owns a row: the upper bits of a multiplicative hash, scaled to the number of threads. */
static inline uint32_t scatter_owner(const scatter_call *c, int64_t row)
{
    return (uint32_t)(((uint64_t)((uint32_t)row * 0x9e3779b1u) * (uint64_t)c->threads) >> 32);
}

/* Whole rows of one slab, those of one owner. */
static void scatter_owned(const scatter_call *c, char *out, const void *index, const char *update, uint32_t owner)
{
    size_t row_bytes = (size_t)c->inner * c->elem_bytes;
    for (int64_t k = 0; k < c->n_index; k++) {
        int64_t at = scatter_index(c, index, k);
        int64_t next = k + SCATTER_AHEAD < c->n_index ? scatter_index(c, index, k + SCATTER_AHEAD) : -1;
        if (scatter_is_inside(c, next) && scatter_owner(c, next) == owner)
            for (size_t b = 0; b < row_bytes && b < SCATTER_PIECE_BYTES; b += 64)
                __builtin_prefetch(out + (size_t)next * row_bytes + b, 1);
        if (scatter_is_inside(c, at) && scatter_owner(c, at) == owner)
            c->combine(out + (size_t)at * row_bytes, update + (size_t)k * row_bytes, c->inner);
    }
}

static void scatter_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const scatter_call *c = prepared;
    const void *index = in[1];
    const char *update = in[2];
    char *to = out[0];
    size_t slab = (size_t)(c->n * c->inner) * c->elem_bytes,
           update_slab = (size_t)(c->n_index * c->inner) * c->elem_bytes;
    (void)scratch;
    scatter_copy(c, to, in[0]);
    if (c->deal == SCATTER_BY_SLAB) {
#pragma omp parallel for schedule(static) num_threads(c->threads)
        for (int64_t o = 0; o < c->outer; o++)
            scatter_slab(c, to + (size_t)o * slab, index, update + (size_t)o * update_slab, 0, c->inner);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int t = 0; t < c->threads; t++)
        for (int64_t o = 0; o < c->outer; o++) {
            char *slab_to = to + (size_t)o * slab;
            const char *slab_update = update + (size_t)o * update_slab;
            if (c->deal == SCATTER_BY_ROW)
                scatter_owned(c, slab_to, index, slab_update, (uint32_t)t);
            else
                scatter_slab(c, slab_to, index, slab_update, c->inner * t / c->threads,
                             c->inner * (t + 1) / c->threads);
        }
}

/* ---- put ---- */

/* Lines [first, end) of those that run along the axis in one slab: each has an index of its own. */
static void scatter_put_lines(const scatter_call *c, char *out, const void *index, const char *update, int64_t slab,
                              int64_t first, int64_t end)
{
    for (int64_t k = 0; k < c->n_index; k++)
        for (int64_t i = first; i < end; i++) {
            int64_t from = (slab * c->n_index + k) * c->inner + i, at = scatter_index(c, index, from);
            if (scatter_is_inside(c, at))
                c->combine(out + (size_t)((slab * c->n + at) * c->inner + i) * c->elem_bytes,
                           update + (size_t)from * c->elem_bytes, 1);
        }
}

static void scatter_put_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const scatter_call *c = prepared;
    int64_t parts = c->deal == SCATTER_BY_SLAB ? 1 : c->threads;
    (void)scratch;
    scatter_copy(c, out[0], in[0]);
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t unit = 0; unit < c->outer * parts; unit++) {
        int64_t part = unit % parts;
        scatter_put_lines(c, out[0], in[1], in[2], unit / parts, c->inner * part / parts,
                          c->inner * (part + 1) / parts);
    }
}

/* ---- preparing ---- */

static scatter_deal scatter_choose(const scatter_call *c)
{
    if (c->threads == 1 || c->outer >= 4 * c->threads)
        return SCATTER_BY_SLAB;
    return (size_t)c->inner * c->elem_bytes >= (size_t)SCATTER_PIECE_BYTES * (size_t)c->threads ? SCATTER_BY_PIECE
                                                                                                : SCATTER_BY_ROW;
}

static int scatter_prepare(const ty_library_shape *shape, bool is_put,
                           void (*run)(void *, const void *const *, void *const *, void *), ty_library_call *out,
                           ty_error *err)
{
    const ty_type *x = &shape->in[0], *index = &shape->in[1];
    bool known = shape->attr->mode <= TY_SET && scatter_rows[x->dtype][shape->attr->mode];
    if (!known || (index->dtype != TY_I64 && index->dtype != TY_I32))
        return ty_error_set(err, TY_E_UNSUPPORTED, "writing by number: expected f32, f64, i32 or i64 data, found %s",
                            ty_dtype_text((ty_dtype)x->dtype));
    scatter_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared scatter");
    ty_refiter_split(x, shape->attr->axis, &c->outer, &c->n, &c->inner);
    c->n_index = is_put ? index->dim[shape->attr->axis] : ty_type_elems(index);
    c->elem_bytes = ty_dtype_bytes((ty_dtype)x->dtype);
    c->wide = index->dtype == TY_I64;
    c->combine = scatter_rows[x->dtype][shape->attr->mode];
    c->threads = shape->threads > 1 ? shape->threads : 1;
    if (ty_type_bytes(x) + ty_type_bytes(&shape->in[2]) < SCATTER_SERIAL_BYTES)
        c->threads = 1;
    c->deal = scatter_choose(c);
    *out = (ty_library_call){.run = run, .release = free, .prepared = c, .text = "native"};
    return 0;
}

int ty_native_prepare_scatter(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return scatter_prepare(shape, false, scatter_run, out, err);
}

int ty_native_prepare_put(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return scatter_prepare(shape, true, scatter_put_run, out, err);
}
