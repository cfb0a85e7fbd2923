/* native_rows.c - find_rows sorts the numbers of an index, sum_rows adds up the rows that go to each.
 *
 * The numbers are sorted with their places, by digits of RADIX_BITS from the lowest (Knuth, The Art of Computer
 * Programming 3, 5.2.5): each thread counts the digits of its stretch, and goes where those before it end, so that the
 * order is that of one thread. Equal numbers then are neighbours in the order of the index. Sums are dealt out by
 * places, so that a frequent number does not leave threads idle. No memory as large as the table is touched; neither
 * order nor sums depend on how many threads there are.
 *
 * A number outside the table goes nowhere.
 */
#include "compiler/target/cpu/native.h"

#include "compiler/target/cpu/clones.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define RADIX_BITS  11 /* of a digit at most; all have as few as their number allows */
#define RADIX       (1 << RADIX_BITS)
#define ROWS_SERIAL 8192 /* fewer numbers, or elements to be added, are not worth waking threads for */
#define ROWS_AHEAD  8    /* rows fetched ahead: they lie anywhere in memory */

/* Numbers in arenas are aligned to 4 bytes only. */
typedef int64_t rows_i64 __attribute__((aligned(4)));

typedef struct rows_item {
    uint32_t row, at; /* a number of the index and its place there */
} rows_item;

typedef struct rows_call {
    int64_t n, n_table, n_rows, inner; /* numbers in the index; rows of the table; results; elements of a row */
    bool wide;                         /* integers that come in are i64, else i32 */
    int digits, digit_bits, threads;
} rows_call;

static int64_t rows_number(const rows_call *c, const void *list, int64_t k)
{
    return c->wide ? ((const rows_i64 *)list)[k] : ((const int32_t *)list)[k];
}

/* What lies in the scratch memory. */
typedef struct rows_scratch {
    rows_item *item, *other; /* [n] */
    int64_t *count;          /* [threads][RADIX], then places */
    int64_t *n_runs;         /* [threads] */
} rows_scratch;

static size_t rows_item_bytes(const rows_call *c)
{
    return ((size_t)c->n * sizeof(rows_item) + 63) / 64 * 64;
}

static size_t rows_scratch_bytes(const rows_call *c)
{
    return 2 * rows_item_bytes(c) + sizeof(int64_t) * (size_t)c->threads * (RADIX + 1);
}

static rows_scratch rows_lay_out(const rows_call *c, char *at)
{
    rows_scratch s = {(rows_item *)at, (rows_item *)(at + rows_item_bytes(c)), NULL, NULL};
    s.count = (int64_t *)(at + 2 * rows_item_bytes(c));
    s.n_runs = s.count + (size_t)c->threads * RADIX;
    return s;
}

static inline uint32_t rows_digit(const rows_call *c, const rows_item *item, int digit)
{
    return item->row >> (digit * c->digit_bits) & ((1u << c->digit_bits) - 1);
}

/* Numbers outside the table become n_table, which is last. */
static void rows_read(const rows_call *c, const void *index, rows_item *item, int64_t lo, int64_t hi)
{
    for (int64_t k = lo; k < hi; k++) {
        int64_t row = rows_number(c, index, k);
        item[k] = (rows_item){(uint32_t)((uint64_t)row < (uint64_t)c->n_table ? row : c->n_table), (uint32_t)k};
    }
}

/* Counts of all threads become the places where each begins to write a digit. */
static void rows_places(const rows_call *c, int64_t *count, int threads)
{
    int64_t at = 0;
    for (int d = 0; d < 1 << c->digit_bits; d++)
        for (int t = 0; t < threads; t++) {
            int64_t n = count[(size_t)t * RADIX + d];
            count[(size_t)t * RADIX + d] = at;
            at += n;
        }
}

/* One digit, by all threads of a parallel region; which buffer is which changes for all of them. */
static void rows_sort_digit(const rows_call *c, rows_scratch *s, int digit, int t, int threads, int64_t lo, int64_t hi)
{
    int64_t *count = s->count + (size_t)t * RADIX;
    memset(count, 0, sizeof *count << c->digit_bits);
    for (int64_t k = lo; k < hi; k++)
        count[rows_digit(c, &s->item[k], digit)]++;
#pragma omp barrier
#pragma omp single
    rows_places(c, s->count, threads);
    for (int64_t k = lo; k < hi; k++)
        s->other[count[rows_digit(c, &s->item[k], digit)]++] = s->item[k];
#pragma omp barrier
    rows_item *sorted = s->other;
    s->other = s->item;
    s->item = sorted;
}

static bool rows_begins(const rows_item *item, int64_t k)
{
    return k == 0 || item[k].row != item[k - 1].row;
}

/* Results for the numbers in [lo, hi), of which the first new one is row number `row` of the list. */
static void rows_list(const rows_call *c, const rows_item *item, void *const *out, int64_t row, int64_t lo, int64_t hi)
{
    rows_i64 *rows = out[0], *order = out[1], *start = out[2];
    for (int64_t k = lo; k < hi; k++) {
        order[k] = item[k].at;
        if (!rows_begins(item, k))
            continue;
        start[row] = k;
        if (item[k].row < c->n_table)
            rows[row++] = item[k].row;
    }
}

/* The list ends with -1; nothing goes there. */
static void rows_end(const rows_call *c, void *const *out, const rows_item *item, int64_t n_runs)
{
    rows_i64 *rows = out[0], *start = out[2];
    int64_t n = c->n, n_rows = n_runs;
    if (n && item[n - 1].row >= c->n_table) /* numbers outside: their run is behind the end of the last row's */
        n = start[--n_rows];
    for (int64_t k = n_rows; k <= c->n_rows; k++)
        start[k] = n;
    for (int64_t k = n_rows; k < c->n_rows; k++)
        rows[k] = -1;
}

static void rows_find_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const rows_call *c = prepared;
    rows_scratch shared = rows_lay_out(c, scratch);
#pragma omp parallel num_threads(c->threads)
    {
        int t = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t lo = c->n * t / threads, hi = c->n * (t + 1) / threads, first = 0, n_runs = 0;
        rows_scratch s = shared;
        rows_read(c, in[0], s.item, lo, hi);
        for (int digit = 0; digit < c->digits; digit++)
            rows_sort_digit(c, &s, digit, t, threads, lo, hi);
        for (int64_t k = lo; k < hi; k++)
            n_runs += rows_begins(s.item, k);
        s.n_runs[t] = n_runs;
#pragma omp barrier
        for (int other = 0; other < t; other++)
            first += s.n_runs[other];
        rows_list(c, s.item, out, first, lo, hi);
#pragma omp barrier
        if (t == threads - 1)
            rows_end(c, out, s.item, first + n_runs);
    }
}

/* ---- sums ---- */

TY_CPU_CLONES static void rows_add(float *to, const float *from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static const float *rows_update(const rows_call *c, const void *const *in, int64_t p)
{
    return (const float *)in[0] + rows_number(c, in[1], p) * c->inner;
}

/* Row j of the result, of the places [p, end). */
static void rows_sum(const rows_call *c, const void *const *in, float *sum, int64_t p, int64_t end)
{
    size_t row_bytes = (size_t)c->inner * sizeof *sum;
    memcpy(sum, rows_update(c, in, p), row_bytes);
    for (p++; p < end; p++) {
        const char *ahead = (const char *)rows_update(c, in, p + ROWS_AHEAD < c->n ? p + ROWS_AHEAD : p);
        for (size_t b = 0; b < row_bytes && b < 256; b += 64)
            __builtin_prefetch(ahead + b);
        rows_add(sum, rows_update(c, in, p), c->inner);
    }
}

/* The first row whose places begin at p or behind it. */
static int64_t rows_from(const rows_call *c, const void *start, int64_t p)
{
    int64_t lo = 0, hi = c->n_rows;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (rows_number(c, start, middle) < p)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void rows_sum_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const rows_call *c = prepared;
    int64_t used = rows_from(c, in[2], rows_number(c, in[2], c->n_rows)), rest = c->n_rows - used;
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int t = 0; t < c->threads; t++) {
        int64_t lo = rows_from(c, in[2], c->n * t / c->threads), hi = rows_from(c, in[2], c->n * (t + 1) / c->threads);
        float *sums = out[0];
        for (int64_t j = lo; j < hi && j < used; j++)
            rows_sum(c, in, sums + j * c->inner, rows_number(c, in[2], j), rows_number(c, in[2], j + 1));
        lo = used + rest * t / c->threads, hi = used + rest * (t + 1) / c->threads;
        memset(sums + lo * c->inner, 0, (size_t)((hi - lo) * c->inner) * sizeof *sums);
    }
}

/* ---- preparing ---- */

static int rows_prepare(const rows_call *call, void (*run)(void *, const void *const *, void *const *, void *),
                        size_t scratch_bytes, ty_library_call *out, ty_error *err)
{
    rows_call *c = malloc(sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared call on rows");
    *c = *call;
    *out =
        (ty_library_call){.run = run, .release = free, .prepared = c, .scratch_bytes = scratch_bytes, .text = "native"};
    return 0;
}

static int rows_threads(const ty_library_shape *shape, int64_t elems)
{
    return elems < ROWS_SERIAL || shape->threads < 1 ? 1 : shape->threads;
}

int ty_native_prepare_find_rows(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    int64_t n = ty_type_elems(&shape->in[0]);
    if (n > UINT32_MAX || shape->attr->index >= UINT32_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED, "rows: expected less than 2^32 numbers of less than 2^32 rows");
    rows_call c = {.n = n,
                   .n_table = shape->attr->index,
                   .n_rows = shape->res[0].dim[0],
                   .wide = shape->in[0].dtype == TY_I64,
                   .threads = rows_threads(shape, n)};
    int bits = 1;
    while (c.n_table >> bits)
        bits++;
    c.digits = (bits + RADIX_BITS - 1) / RADIX_BITS;
    c.digit_bits = (bits + c.digits - 1) / c.digits;
    return rows_prepare(&c, rows_find_run, rows_scratch_bytes(&c), out, err);
}

int ty_native_prepare_sum_rows(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    const ty_type *update = &shape->in[0];
    if (update->dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "sums of rows: expected f32 data, found %s",
                            ty_dtype_text((ty_dtype)update->dtype));
    int64_t n = ty_type_elems(&shape->in[1]), elems = ty_type_elems(update);
    rows_call c = {.n = n,
                   .n_rows = shape->res[0].dim[0],
                   .inner = elems / n,
                   .wide = shape->in[1].dtype == TY_I64,
                   .threads = rows_threads(shape, elems)};
    return rows_prepare(&c, rows_sum_run, 0, out, err);
}
