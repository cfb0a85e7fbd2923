/* native_order.c - where the extremum is (argreduce), running sums and extrema (scan), order (sort).
 *
 * All three work on lines along an axis. Lines side by side (axes behind it) are taken ORDER_WIDE at a time, so that
 * memory is read in order and the inner loop vectorises; a line of its own gets a loop of its own.
 */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/refiter.h"
#include "compiler/target/cpu/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_WIDE         64    /* lines taken together */
#define ORDER_SERIAL_ELEMS 16384 /* fewer elements are not worth waking threads for */
#define ORDER_RUN          8     /* sorted by insertion before runs are merged */

#define ARGREDUCE_LAST  1u
#define SCAN_EXCLUSIVE  1u
#define SCAN_FROM_END   2u
#define SORT_DESCENDING 1u

/* Numbers in arenas are aligned to 4 bytes only. */
typedef int64_t order_i64 __attribute__((aligned(4)));
typedef double order_f64 __attribute__((aligned(4)));

typedef struct order_call order_call;
/* A kernel does lines [first, first + wide) of slab `slab`. */
typedef void order_lines_fn(const order_call *c, const void *in, void *out, int64_t slab, int64_t first, int64_t wide);
typedef void order_sort_fn(const order_call *c, const void *in, void *values, void *places, int64_t line,
                           void *scratch);

struct order_call {
    int64_t outer, n, inner; /* x around the axis */
    int64_t blocks;          /* of lines in a slab */
    uint32_t flags;
    int threads;
    order_lines_fn *lines;
    order_sort_fn *sort;
    size_t scratch_bytes; /* of one thread */
};

static void order_run_lines(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const order_call *c = prepared;
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t unit = 0; unit < c->outer * c->blocks; unit++) {
        int64_t first = unit % c->blocks * ORDER_WIDE, rest = c->inner - first;
        c->lines(c, in[0], out[0], unit / c->blocks, first, rest < ORDER_WIDE ? rest : ORDER_WIDE);
    }
}

/* ---- argreduce ---- */

/* Of one dense line: the extremum first, with a flag for NaN, then the place of it. Both loops vectorise, which finding
 * value and place together does not. BETTER(v, best) is strict. Returns n never: some element equals the extremum. */
#define ARGREDUCE_LINE(TYPE, NAME, BETTER)                                                  \
    TY_CPU_CLONES static TYPE argreduce_extremum_##NAME(const TYPE *x, int64_t n, int *nan) \
    {                                                                                       \
        TYPE lane[16], best = x[0];                                                         \
        int odd[16] = {0}, any = 0;                                                         \
        int64_t k = 0;                                                                      \
        for (int i = 0; i < 16; i++)                                                        \
            lane[i] = x[0];                                                                 \
        for (; k + 16 <= n; k += 16)                                                        \
            _Pragma("omp simd") for (int i = 0; i < 16; i++)                                \
            {                                                                               \
                TYPE v = x[k + i];                                                          \
                lane[i] = BETTER(v, lane[i]) ? v : lane[i];                                 \
                odd[i] |= v != v;                                                           \
            }                                                                               \
        for (; k < n; k++) {                                                                \
            best = BETTER(x[k], best) ? x[k] : best;                                        \
            any |= x[k] != x[k];                                                            \
        }                                                                                   \
        for (int i = 0; i < 16; i++) {                                                      \
            best = BETTER(lane[i], best) ? lane[i] : best;                                  \
            any |= odd[i];                                                                  \
        }                                                                                   \
        *nan = any;                                                                         \
        return best;                                                                        \
    }                                                                                       \
    static int64_t argreduce_line_##NAME(const TYPE *x, int64_t n, bool last)               \
    {                                                                                       \
        int nan;                                                                            \
        TYPE best = argreduce_extremum_##NAME(x, n, &nan);                                  \
        int64_t k = last ? n - 1 : 0, step = last ? -1 : 1;                                 \
        while (nan ? x[k] == x[k] : x[k] != best)                                           \
            k += step;                                                                      \
        return k;                                                                           \
    }

/* Of lines side by side: value and place of the best so far of each. */
#define ARGREDUCE_LINES(TYPE, NAME, BETTER)                                                                    \
    ARGREDUCE_LINE(TYPE, NAME, BETTER)                                                                         \
    TY_CPU_CLONES static void argreduce_beside_##NAME(const TYPE *x, int64_t n, int64_t step, order_i64 *out,  \
                                                      int64_t wide, int last)                                  \
    {                                                                                                          \
        TYPE best[ORDER_WIDE];                                                                                 \
        int32_t place[ORDER_WIDE] = {0};                                                                       \
        memcpy(best, x, (size_t)wide * sizeof *best);                                                          \
        for (int64_t k = 1; k < n; k++)                                                                        \
            _Pragma("omp simd") for (int64_t i = 0; i < wide; i++)                                             \
            {                                                                                                  \
                TYPE v = x[k * step + i], b = best[i];                                                         \
                int take = BETTER(v, b) | ((v != v) & (b == b)) | (last & ((v == b) | ((v != v) & (b != b)))); \
                best[i] = take ? v : b;                                                                        \
                place[i] = take ? (int32_t)k : place[i];                                                       \
            }                                                                                                  \
        for (int64_t i = 0; i < wide; i++)                                                                     \
            out[i] = place[i];                                                                                 \
    }                                                                                                          \
    static void argreduce_##NAME(const order_call *c, const void *in, void *out, int64_t slab, int64_t first,  \
                                 int64_t wide)                                                                 \
    {                                                                                                          \
        const TYPE *x = (const TYPE *)in + slab * c->n * c->inner + first;                                     \
        order_i64 *to = (order_i64 *)out + slab * c->inner + first;                                            \
        bool last = c->flags & ARGREDUCE_LAST;                                                                 \
        if (c->inner == 1)                                                                                     \
            *to = argreduce_line_##NAME(x, c->n, last);                                                        \
        else                                                                                                   \
            argreduce_beside_##NAME(x, c->n, c->inner, to, wide, last);                                        \
    }

#define ORDER_MORE(a, b) ((a) > (b))
#define ORDER_LESS(a, b) ((a) < (b))
ARGREDUCE_LINES(float, f32_max, ORDER_MORE)
ARGREDUCE_LINES(float, f32_min, ORDER_LESS)
ARGREDUCE_LINES(order_f64, f64_max, ORDER_MORE)
ARGREDUCE_LINES(order_f64, f64_min, ORDER_LESS)
ARGREDUCE_LINES(int32_t, i32_max, ORDER_MORE)
ARGREDUCE_LINES(int32_t, i32_min, ORDER_LESS)
ARGREDUCE_LINES(order_i64, i64_max, ORDER_MORE)
ARGREDUCE_LINES(order_i64, i64_min, ORDER_LESS)

/* ---- scan ---- */

/* Floats are carried in double and rounded where they are written, so that long sums stay exact to the last digit. */
#define SCAN_LINES(TYPE, CARRY, NAME, IDENTITY, EXPR)                                                                  \
    TY_CPU_INLINE void scan_block_##NAME(const TYPE *x, TYPE *y, int64_t n, int64_t step, int64_t wide,                \
                                         bool exclusive)                                                               \
    {                                                                                                                  \
        CARRY carry[ORDER_WIDE];                                                                                       \
        for (int64_t i = 0; i < wide; i++)                                                                             \
            carry[i] = IDENTITY;                                                                                       \
        for (int64_t k = 0; k < n; k++, x += step, y += step)                                                          \
            for (int64_t i = 0; i < wide; i++) {                                                                       \
                CARRY a = carry[i], b = x[i], next = EXPR;                                                             \
                y[i] = (TYPE)(exclusive ? a : next);                                                                   \
                carry[i] = next;                                                                                       \
            }                                                                                                          \
    }                                                                                                                  \
    static void scan_##NAME(const order_call *c, const void *in, void *out, int64_t slab, int64_t first, int64_t wide) \
    {                                                                                                                  \
        bool from_end = c->flags & SCAN_FROM_END, exclusive = c->flags & SCAN_EXCLUSIVE;                               \
        int64_t step = from_end ? -c->inner : c->inner;                                                                \
        int64_t at = (slab * c->n + (from_end ? c->n - 1 : 0)) * c->inner + first;                                     \
        if (wide == 1)                                                                                                 \
            scan_block_##NAME((const TYPE *)in + at, (TYPE *)out + at, c->n, step, 1, exclusive);                      \
        else                                                                                                           \
            scan_block_##NAME((const TYPE *)in + at, (TYPE *)out + at, c->n, step, wide, exclusive);                   \
    }

#define SCAN_FLOAT(TYPE, NAME)                                                \
    SCAN_LINES(TYPE, double, NAME##_sum, 0, a + b)                            \
    SCAN_LINES(TYPE, double, NAME##_prod, 1, a *b)                            \
    SCAN_LINES(TYPE, double, NAME##_max, -INFINITY, a != a || a >= b ? a : b) \
    SCAN_LINES(TYPE, double, NAME##_min, INFINITY, a != a || a <= b ? a : b)

#define SCAN_INTEGER(TYPE, NAME, UNSIGNED, LEAST, GREATEST)                   \
    SCAN_LINES(TYPE, TYPE, NAME##_sum, 0, (TYPE)((UNSIGNED)a + (UNSIGNED)b))  \
    SCAN_LINES(TYPE, TYPE, NAME##_prod, 1, (TYPE)((UNSIGNED)a * (UNSIGNED)b)) \
    SCAN_LINES(TYPE, TYPE, NAME##_max, LEAST, a >= b ? a : b)                 \
    SCAN_LINES(TYPE, TYPE, NAME##_min, GREATEST, a <= b ? a : b)

SCAN_FLOAT(float, f32)
SCAN_FLOAT(order_f64, f64)
SCAN_INTEGER(int32_t, i32, uint32_t, INT32_MIN, INT32_MAX)
SCAN_INTEGER(order_i64, i64, uint64_t, INT64_MIN, INT64_MAX)

/* ---- sort ---- */

/* Four bytes of key above four of place, in one number: comparing them is comparing both, which makes it stable. */
typedef uint64_t sort_short;
typedef struct sort_long {
    uint64_t key;
    int64_t at;
} sort_long;

/* Floats order like their bits once negative ones are inverted and positive ones lifted above them. Both zeros are one,
 * and all NaN are one above infinity. */
static inline uint32_t sort_key_f32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (v != v)
        return UINT32_MAX;
    if (v == 0)
        bits = 0;
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static inline uint64_t sort_key_f64(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (v != v)
        return UINT64_MAX;
    if (v == 0)
        bits = 0;
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline uint32_t sort_key_i32(int32_t v)
{
    return (uint32_t)v ^ UINT32_C(1) << 31;
}

static inline uint64_t sort_key_i64(int64_t v)
{
    return (uint64_t)v ^ UINT64_C(1) << 63;
}

/* Runs by insertion, then merged in pairs from one half of the scratch to the other. Equal items keep their order.
 * Returns the half that holds the result. */
#define SORT_ITEMS(ITEM, NAME, AFTER)                                                                            \
    static void sort_insert_##NAME(ITEM *p, int64_t n)                                                           \
    {                                                                                                            \
        for (int64_t k = 1; k < n; k++) {                                                                        \
            ITEM v = p[k];                                                                                       \
            int64_t at = k;                                                                                      \
            for (; at > 0 && AFTER(p[at - 1], v); at--)                                                          \
                p[at] = p[at - 1];                                                                               \
            p[at] = v;                                                                                           \
        }                                                                                                        \
    }                                                                                                            \
    static void sort_merge_##NAME(const ITEM *restrict a, int64_t n_a, const ITEM *restrict b, int64_t n_b,      \
                                  ITEM *restrict to)                                                             \
    {                                                                                                            \
        const ITEM *end_a = a + n_a, *end_b = b + n_b;                                                           \
        while (a < end_a && b < end_b) {                                                                         \
            int64_t second = AFTER(*a, *b); /* picked by address: a branch here would be a guess, half wrong */  \
            *to++ = *(const ITEM *)((uintptr_t)a + ((uintptr_t)b - (uintptr_t)a) * (uintptr_t)second);           \
            b += second;                                                                                         \
            a += 1 - second;                                                                                     \
        }                                                                                                        \
        memcpy(to, a, (size_t)(end_a - a) * sizeof *a);                                                          \
        memcpy(to + (end_a - a), b, (size_t)(end_b - b) * sizeof *b);                                            \
    }                                                                                                            \
    static ITEM *sort_items_##NAME(ITEM *from, ITEM *to, int64_t n)                                              \
    {                                                                                                            \
        for (int64_t at = 0; at < n; at += ORDER_RUN)                                                            \
            sort_insert_##NAME(from + at, n - at < ORDER_RUN ? n - at : ORDER_RUN);                              \
        for (int64_t run = ORDER_RUN; run < n; run *= 2) {                                                       \
            for (int64_t at = 0; at < n; at += 2 * run) {                                                        \
                int64_t rest = n - at, n_a = rest < run ? rest : run, n_b = rest - n_a < run ? rest - n_a : run; \
                sort_merge_##NAME(from + at, n_a, from + at + n_a, n_b, to + at);                                \
            }                                                                                                    \
            ITEM *swap = from;                                                                                   \
            from = to;                                                                                           \
            to = swap;                                                                                           \
        }                                                                                                        \
        return from;                                                                                             \
    }

#define SORT_SHORT_AFTER(p, q) ((p) > (q))
#define SORT_LONG_AFTER(p, q)  ((p).key > (q).key)
SORT_ITEMS(sort_short, short, SORT_SHORT_AFTER)
SORT_ITEMS(sort_long, long, SORT_LONG_AFTER)

/* One line: keys and places into scratch, sorted, and what they name written out. MAKE(key, k), PLACE(item). */
#define SORT_LINE(TYPE, NAME, ITEM, ITEMS, MAKE, PLACE)                                                         \
    static void sort_line_##NAME(const order_call *c, const void *in, void *values, void *places, int64_t line, \
                                 void *scratch)                                                                 \
    {                                                                                                           \
        int64_t start = line / c->inner * c->n * c->inner + line % c->inner, step = c->inner, n = c->n;         \
        const TYPE *x = (const TYPE *)in + start;                                                               \
        TYPE *y = (TYPE *)values + start;                                                                       \
        order_i64 *at = (order_i64 *)places + start;                                                            \
        ITEM *item = scratch;                                                                                   \
        bool down = c->flags & SORT_DESCENDING;                                                                 \
        for (int64_t k = 0; k < n; k++)                                                                         \
            item[k] = MAKE(down ? ~sort_key_##NAME(x[k * step]) : sort_key_##NAME(x[k * step]), k);             \
        item = sort_items_##ITEMS(item, item + n, n);                                                           \
        for (int64_t k = 0; k < n; k++) {                                                                       \
            int64_t place = PLACE(item[k]);                                                                     \
            at[k * step] = place;                                                                               \
            y[k * step] = x[place * step];                                                                      \
        }                                                                                                       \
    }

#define SORT_SHORT_MAKE(key, k) ((uint64_t)(key) << 32 | (uint32_t)(k))
#define SORT_SHORT_PLACE(item)  ((int64_t)((item)&UINT32_MAX))
#define SORT_LONG_MAKE(key, k)  ((sort_long){key, k})
#define SORT_LONG_PLACE(item)   ((item).at)
SORT_LINE(float, f32, sort_short, short, SORT_SHORT_MAKE, SORT_SHORT_PLACE)
SORT_LINE(int32_t, i32, sort_short, short, SORT_SHORT_MAKE, SORT_SHORT_PLACE)
SORT_LINE(order_f64, f64, sort_long, long, SORT_LONG_MAKE, SORT_LONG_PLACE)
SORT_LINE(order_i64, i64, sort_long, long, SORT_LONG_MAKE, SORT_LONG_PLACE)

static void order_run_sort(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const order_call *c = prepared;
    int64_t lines = c->outer * c->inner;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int t = 0; t < c->threads; t++)
        for (int64_t line = lines * t / c->threads; line < lines * (t + 1) / c->threads; line++)
            c->sort(c, in[0], out[0], out[1], line, (char *)scratch + (size_t)t * c->scratch_bytes);
}

/* ---- preparing ---- */

/* The kernels of a dtype; argreduce has two of its modes. */
typedef struct order_row {
    order_lines_fn *argreduce[TY_SET + 1], *scan[TY_SET + 1];
    order_sort_fn *sort;
    size_t sort_item_bytes;
} order_row;

#define ORDER_ROW(NAME, ITEM)                                                                \
    {                                                                                        \
        .argreduce = {[TY_MAX] = argreduce_##NAME##_max, [TY_MIN] = argreduce_##NAME##_min}, \
        .scan = {[TY_SUM] = scan_##NAME##_sum,                                               \
                 [TY_MAX] = scan_##NAME##_max,                                               \
                 [TY_MIN] = scan_##NAME##_min,                                               \
                 [TY_PROD] = scan_##NAME##_prod},                                            \
        .sort = sort_line_##NAME, .sort_item_bytes = sizeof(ITEM)                            \
    }

static const order_row order_rows[TY_N_DTYPES] = {
    [TY_F32] = ORDER_ROW(f32, sort_short),
    [TY_F64] = ORDER_ROW(f64, sort_long),
    [TY_I32] = ORDER_ROW(i32, sort_short),
    [TY_I64] = ORDER_ROW(i64, sort_long),
};

static int order_prepare(const ty_library_shape *shape, order_lines_fn *lines, const order_row *sort,
                         ty_library_call *out, ty_error *err)
{
    const ty_type *x = &shape->in[0];
    order_call c = {.flags = shape->attr->flags, .lines = lines, .threads = shape->threads > 1 ? shape->threads : 1};
    ty_refiter_split(x, shape->attr->axis, &c.outer, &c.n, &c.inner);
    if ((!lines && !(sort && sort->sort)) || c.n > INT32_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED, "along an axis: expected f32, f64, i32 or i64, found %s",
                            ty_dtype_text((ty_dtype)x->dtype));
    c.blocks = (c.inner + ORDER_WIDE - 1) / ORDER_WIDE;
    if (ty_type_elems(x) < ORDER_SERIAL_ELEMS)
        c.threads = 1;
    if (sort) {
        if (c.outer * c.inner < c.threads)
            c.threads = c.outer * c.inner > 0 ? (int)(c.outer * c.inner) : 1;
        c.sort = sort->sort;
        c.scratch_bytes = (2 * (size_t)c.n * sort->sort_item_bytes + 63) / 64 * 64;
    }
    order_call *kept = malloc(sizeof *kept);
    if (!kept)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared call");
    *kept = c;
    *out = (ty_library_call){.run = sort ? order_run_sort : order_run_lines,
                             .release = free,
                             .prepared = kept,
                             .scratch_bytes = c.scratch_bytes * (size_t)c.threads,
                             .text = "native"};
    return 0;
}

int ty_native_prepare_argreduce(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    uint32_t mode = shape->attr->mode;
    order_lines_fn *lines = mode <= TY_SET ? order_rows[shape->in[0].dtype].argreduce[mode] : NULL;
    return order_prepare(shape, lines, NULL, out, err);
}

int ty_native_prepare_scan(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    uint32_t mode = shape->attr->mode;
    order_lines_fn *lines = mode <= TY_SET ? order_rows[shape->in[0].dtype].scan[mode] : NULL;
    return order_prepare(shape, lines, NULL, out, err);
}

int ty_native_prepare_sort(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return order_prepare(shape, NULL, &order_rows[shape->in[0].dtype], out, err);
}
