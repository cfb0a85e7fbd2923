/* perf.c - see perf.h.
 *
 * What ranks give repeats after three elements, so that data and expected results are made and compared in blocks:
 * element i of rank r is (i + r) % 3, small enough that sums are exact in every type.
 */
#include "dist/comm/perf.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PERIOD = 3, BLOCK_ELEMS = PERIOD * 512 };

typedef struct bench {
    ty_comm *c;
    const ty_perf_options *o;
    int rank, size;
    int64_t elem; /* bytes */
    char *a, *b;
    char block[BLOCK_ELEMS * 8];
} bench;

static void put_elem(ty_dtype dtype, void *to, int64_t i, int64_t x)
{
    int64_t bytes = (int64_t)ty_dtype_bytes(dtype);
    if (dtype == TY_F64)
        ((double *)to)[i] = (double)x;
    else if (dtype == TY_F32)
        ((float *)to)[i] = (float)x;
    else if (dtype == TY_F16 || dtype == TY_BF16)
        ((uint16_t *)to)[i] = dtype == TY_F16 ? ty_f32_to_f16((float)x) : ty_f32_to_bf16((float)x);
    else
        memcpy((char *)to + i * bytes, &x, (size_t)bytes); /* little-endian, cut to the type */
}

/* Element i of rank r. */
static int64_t given(const bench *b, int r, int64_t i)
{
    int64_t x = (i + r) % PERIOD;
    if (b->o->kind != TY_ALL_REDUCE && b->o->kind != TY_REDUCE_SCATTER)
        return b->o->dtype == TY_BOOL ? x == 0 : x;
    if (b->o->dtype == TY_BOOL)
        return x == 0;
    if (b->o->reduce == TY_REDUCE_PRODUCT)
        return r == 0 ? x : 1;
    return b->o->reduce == TY_REDUCE_AVERAGE ? i % PERIOD * b->size : x;
}

/* Element i of the ranks' reduction. */
static int64_t reduced(const bench *b, int64_t i)
{
    ty_reduce reduce = b->o->reduce;
    bool is_bool = b->o->dtype == TY_BOOL;
    int64_t x = given(b, 0, i);
    for (int r = 1; r < b->size && reduce != TY_REDUCE_AVERAGE; r++) {
        int64_t y = given(b, r, i);
        if (reduce == TY_REDUCE_MIN || (is_bool && reduce == TY_REDUCE_PRODUCT))
            x = y < x ? y : x;
        else if (reduce == TY_REDUCE_MAX || (is_bool && reduce == TY_REDUCE_SUM))
            x = y > x ? y : x;
        else
            x = reduce == TY_REDUCE_PRODUCT ? x * y : x + y;
    }
    return x;
}

/* The block of elements from `first` on: of rank r, or (r < 0) of the reduction. */
static void make_block(bench *b, int r, int64_t first)
{
    for (int64_t i = 0; i < BLOCK_ELEMS; i++)
        put_elem(b->o->dtype, b->block, i, r < 0 ? reduced(b, (first + i) % PERIOD) : given(b, r, first + i));
}

static void fill(bench *b, char *to, int64_t n)
{
    make_block(b, b->rank, 0);
    for (int64_t i = 0; i < n; i += BLOCK_ELEMS)
        memcpy(to + i * b->elem, b->block, (size_t)((n - i < BLOCK_ELEMS ? n - i : BLOCK_ELEMS) * b->elem));
}

/* Elements of `from` that are not the ones from `first` on. */
static int64_t count_wrong(bench *b, const char *from, int64_t n, int r, int64_t first)
{
    int64_t wrong = 0;
    make_block(b, r, first);
    for (int64_t i = 0; i < n; i += BLOCK_ELEMS) {
        int64_t m = n - i < BLOCK_ELEMS ? n - i : BLOCK_ELEMS;
        const char *part = from + i * b->elem;
        if (memcmp(part, b->block, (size_t)(m * b->elem)) == 0)
            continue;
        for (int64_t k = 0; k < m; k++)
            wrong += memcmp(part + k * b->elem, b->block + k * b->elem, (size_t)b->elem) != 0;
    }
    return wrong;
}

/* Where a call reads and writes, for a tensor of n elements. */
static ty_collective call_for(const bench *b, int64_t n, bool in_place)
{
    int64_t part = n / b->size, own = part * b->rank * b->elem;
    ty_collective w = {.kind = b->o->kind,
                       .name = "perf",
                       .dtype = b->o->dtype,
                       .reduce = b->o->reduce,
                       .wire = b->o->wire,
                       .in = b->a,
                       .out = in_place ? b->a : b->b,
                       .n = n};
    if (w.kind == TY_ALL_GATHER) {
        w.n = part;
        w.in = in_place ? b->a + own : b->a;
    } else if (w.kind == TY_REDUCE_SCATTER && in_place) {
        w.out = b->a + own;
    }
    return w;
}

static int64_t wrong_elems(bench *b, const ty_collective *w, int64_t n)
{
    int64_t part = n / b->size, wrong = 0;
    if (w->kind == TY_ALL_REDUCE)
        return count_wrong(b, w->out, n, -1, 0);
    if (w->kind == TY_REDUCE_SCATTER)
        return count_wrong(b, w->out, part, -1, part * b->rank);
    if (w->kind == TY_BROADCAST)
        return count_wrong(b, w->out, n, 0, 0);
    for (int r = 0; r < b->size; r++)
        wrong += count_wrong(b, (const char *)w->out + part * r * b->elem, part, r,
                             w->kind == TY_ALL_GATHER ? 0 : part * b->rank);
    return wrong;
}

static int meet(bench *b, ty_error *err)
{
    return ty_comm_run(b->c, &(ty_collective){.kind = TY_BARRIER, .name = "perf"}, err);
}

/* One size, one way. */
static int measure(bench *b, int64_t n, bool in_place, ty_perf_way *way, ty_error *err)
{
    ty_collective w = call_for(b, n, in_place);
    int64_t start = 0, wrong = 0;
    fill(b, (char *)(uintptr_t)w.in, w.n);
    for (int i = -b->o->warmups; i < b->o->iterations; i++) {
        if (i == 0 && meet(b, err) < 0)
            return -1;
        start = i <= 0 ? ty_clock_ns() : start;
        if (ty_comm_run(b->c, &w, err) < 0)
            return -1;
    }
    way->us = (double)(ty_clock_ns() - start) / 1e3 / b->o->iterations;
    if (b->o->check) {
        fill(b, (char *)(uintptr_t)w.in, w.n);
        if (ty_comm_run(b->c, &w, err) < 0)
            return -1;
        wrong = wrong_elems(b, &w, n);
    }
    ty_collective mean = {.kind = TY_ALL_REDUCE, .name = "perf", .dtype = TY_F64, .reduce = TY_REDUCE_AVERAGE, .n = 1};
    ty_collective sum = {.kind = TY_ALL_REDUCE, .name = "perf", .dtype = TY_I64, .n = 1};
    mean.in = mean.out = &way->us;
    sum.in = sum.out = &wrong;
    if (ty_comm_run(b->c, &mean, err) < 0 || ty_comm_run(b->c, &sum, err) < 0)
        return -1;
    way->wrong = b->o->check ? wrong : -1;
    return 0;
}

static double bus_factor(const bench *b)
{
    double n = b->size;
    return b->o->kind == TY_ALL_REDUCE ? 2 * (n - 1) / n : b->o->kind == TY_BROADCAST ? 1 : (n - 1) / n;
}

static void find_bandwidth(const bench *b, int64_t n_bytes, ty_perf_way *way)
{
    way->algbw = way->us > 0 ? (double)n_bytes / way->us / 1e3 : 0;
    way->busbw = way->algbw * bus_factor(b);
}

static int run_size(bench *b, int64_t n_bytes, ty_perf_row *row, ty_error *err)
{
    bool parts = b->o->kind != TY_ALL_REDUCE && b->o->kind != TY_BROADCAST;
    int64_t unit = b->elem * (parts ? b->size : 1), n = n_bytes / unit * unit / b->elem;
    bool reduces = b->o->kind == TY_ALL_REDUCE || b->o->kind == TY_REDUCE_SCATTER;
    *row = (ty_perf_row){.n_bytes = n * b->elem,
                         .count = b->o->kind == TY_ALL_GATHER ? n / b->size : n,
                         .dtype = b->o->dtype,
                         .reduce = reduces ? b->o->reduce : TY_N_REDUCES,
                         .root = b->o->kind == TY_BROADCAST ? 0 : -1};
    if (measure(b, n, false, &row->out_of_place, err) < 0 || measure(b, n, true, &row->in_place, err) < 0)
        return -1;
    find_bandwidth(b, row->n_bytes, &row->out_of_place);
    find_bandwidth(b, row->n_bytes, &row->in_place);
    return 0;
}

static int check_options(const ty_perf_options *o, ty_error *err)
{
    if (o->kind == TY_BARRIER || (unsigned)o->kind >= TY_N_COLLECTIVES)
        return ty_error_set(err, TY_E_RANGE, "perf: %s carries nothing", ty_collective_text(o->kind));
    if (o->min_bytes < 0 || o->max_bytes < o->min_bytes)
        return ty_error_set(err, TY_E_RANGE, "perf: sizes from %lld to %lld bytes", (long long)o->min_bytes,
                            (long long)o->max_bytes);
    if ((o->step_bytes <= 0 && o->factor < 2) || o->iterations < 1 || o->warmups < 0)
        return ty_error_set(err, TY_E_RANGE,
                            "perf: factor %d, %d iterations, %d warm-ups; expected at least 2, 1 and 0", o->factor,
                            o->iterations, o->warmups);
    return 0;
}

static int run_sizes(bench *b, void (*tell)(void *ctx, const ty_perf_row *row), void *ctx, ty_error *err)
{
    const ty_perf_options *o = b->o;
    ty_perf_row row;
    for (int64_t n = o->min_bytes; n <= o->max_bytes;) {
        if (run_size(b, n, &row, err) < 0)
            return -1;
        tell(ctx, &row);
        n = o->step_bytes > 0 ? n + o->step_bytes : n ? n * o->factor : (int64_t)ty_dtype_bytes(o->dtype);
    }
    return 0;
}

int ty_perf_run(ty_comm *comm, const ty_perf_options *o, void (*tell)(void *ctx, const ty_perf_row *row), void *ctx,
                ty_error *err)
{
    if (check_options(o, err) < 0)
        return -1;
    bench b = {.c = comm, .o = o, .rank = ty_comm_rank(comm), .size = ty_comm_size(comm)};
    b.elem = (int64_t)ty_dtype_bytes(o->dtype);
    b.a = malloc((size_t)o->max_bytes + 64);
    b.b = malloc((size_t)o->max_bytes + 64);
    int rc = b.a && b.b ? run_sizes(&b, tell, ctx, err)
                        : ty_error_set(err, TY_E_LIMIT, "perf: no memory for two tensors of %lld bytes",
                                       (long long)o->max_bytes);
    free(b.a);
    free(b.b);
    return rc;
}
