/* perf.c - see perf.h.
 *
 * What ranks give repeats after three elements, so that data and expected results are made and compared in blocks:
 * element i of rank r is (i + r) % 3, small enough that sums are exact in every type. Numbers are compared as their
 * bits, of which neighbours of a float differ by one.
 */
#include "dist/comm/perf.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PERIOD = 3, BLOCK_ELEMS = PERIOD * 16384 };

typedef struct bench {
    ty_comm *c;
    const ty_perf_carrier *carrier;
    const ty_perf_options *o;
    int rank, size;
    int64_t elem; /* bytes */
    char *a, *b;  /* the carrier's */
    char *block;  /* what is given or expected: up to BLOCK_ELEMS elements, and as many of what has come */
} bench;

/* ---- the comm as a carrier ---- */

static int host_alloc(void *ctx, size_t bytes, char **out, ty_error *err)
{
    (void)ctx;
    *out = malloc(bytes);
    return *out ? 0 : ty_error_set(err, TY_E_LIMIT, "perf: no memory for two tensors of %zu bytes", bytes);
}

static void host_free(void *ctx, char *at)
{
    (void)ctx;
    free(at);
}

static int host_put(void *ctx, char *to, const void *from, size_t bytes, ty_error *err)
{
    (void)ctx, (void)err;
    memcpy(to, from, bytes);
    return 0;
}

static int host_get(void *ctx, void *to, const char *from, size_t bytes, ty_error *err)
{
    return host_put(ctx, to, from, bytes, err);
}

static int host_run(void *ctx, const ty_collective *what, ty_error *err)
{
    return ty_comm_run(ctx, what, err);
}

static int host_wait(void *ctx, ty_error *err)
{
    (void)ctx, (void)err;
    return 0;
}

/* ---- data ---- */

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

static int64_t block_of(int64_t n)
{
    return n < BLOCK_ELEMS ? n : BLOCK_ELEMS;
}

/* The block of n elements from `first` on: of rank r, or (r < 0) of the reduction. */
static void make_block(bench *b, int r, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < block_of(n); i++)
        put_elem(b->o->dtype, b->block, i, r < 0 ? reduced(b, (first + i) % PERIOD) : given(b, r, first + i));
}

static int fill(bench *b, char *to, int64_t n, ty_error *err)
{
    make_block(b, b->rank, 0, n);
    for (int64_t i = 0; i < n; i += BLOCK_ELEMS)
        if (b->carrier->put(b->carrier->ctx, to + i * b->elem, b->block, (size_t)(block_of(n - i) * b->elem), err) < 0)
            return -1;
    return 0;
}

/* By how many neighbours a number may be off: an average's parts may be divided, and rounded, before they are added up.
 * The comm does so where they travel in 16 bits. */
static int64_t may_be_off(const bench *b)
{
    const ty_perf_options *o = b->o;
    bool rounds = o->reduce == TY_REDUCE_AVERAGE && ty_dtype_is_float(o->dtype);
    return rounds && (o->wire != TY_WIRE_AS_IS || b->carrier->divides_first) ? b->size : 0;
}

static bool is_wrong(const bench *b, const char *found, const char *expected)
{
    int64_t x = 0, y = 0, rounded = may_be_off(b);
    memcpy(&x, found, (size_t)b->elem);
    memcpy(&y, expected, (size_t)b->elem);
    return x < y - rounded || x > y + rounded;
}

/* Elements of `from` that are not the ones from `first` on, added to *wrong. */
static int count_wrong(bench *b, const char *from, int64_t n, int r, int64_t first, int64_t *wrong, ty_error *err)
{
    char *found = b->block + BLOCK_ELEMS * b->elem;
    make_block(b, r, first, n);
    for (int64_t i = 0; i < n; i += BLOCK_ELEMS) {
        int64_t m = block_of(n - i);
        if (b->carrier->get(b->carrier->ctx, found, from + i * b->elem, (size_t)(m * b->elem), err) < 0)
            return -1;
        if (memcmp(found, b->block, (size_t)(m * b->elem)) == 0)
            continue;
        for (int64_t k = 0; k < m; k++)
            *wrong += is_wrong(b, found + k * b->elem, b->block + k * b->elem);
    }
    return 0;
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

static int wrong_elems(bench *b, const ty_collective *w, int64_t n, int64_t *wrong, ty_error *err)
{
    int64_t part = n / b->size;
    if (w->kind == TY_ALL_REDUCE)
        return count_wrong(b, w->out, n, -1, 0, wrong, err);
    if (w->kind == TY_REDUCE_SCATTER)
        return count_wrong(b, w->out, part, -1, part * b->rank, wrong, err);
    if (w->kind == TY_BROADCAST)
        return count_wrong(b, w->out, n, 0, 0, wrong, err);
    for (int r = 0; r < b->size; r++)
        if (count_wrong(b, (const char *)w->out + part * r * b->elem, part, r,
                        w->kind == TY_ALL_GATHER ? 0 : part * b->rank, wrong, err) < 0)
            return -1;
    return 0;
}

static int meet(bench *b, ty_error *err)
{
    return ty_comm_run(b->c, &(ty_collective){.kind = TY_BARRIER, .name = "perf"}, err);
}

/* So many calls, done when it returns. */
static int carry(bench *b, const ty_collective *w, int n, ty_error *err)
{
    for (int i = 0; i < n; i++)
        if (b->carrier->run(b->carrier->ctx, w, err) < 0)
            return -1;
    return b->carrier->wait(b->carrier->ctx, err);
}

static int check_results(bench *b, const ty_collective *w, int64_t n, int64_t *wrong, ty_error *err)
{
    if (fill(b, (char *)(uintptr_t)w->in, w->n, err) < 0 || carry(b, w, 1, err) < 0)
        return -1;
    return wrong_elems(b, w, n, wrong, err);
}

/* One size, one way. */
static int measure(bench *b, int64_t n, bool in_place, ty_perf_way *way, ty_error *err)
{
    ty_collective w = call_for(b, n, in_place);
    int64_t wrong = 0;
    *way = (ty_perf_way){.us = -1, .wrong = -1};
    if (in_place && w.kind == TY_ALL_TO_ALL && !b->carrier->exchanges_in_place)
        return 0;
    if (fill(b, (char *)(uintptr_t)w.in, w.n, err) < 0 || carry(b, &w, b->o->warmups, err) < 0 || meet(b, err) < 0)
        return -1;
    int64_t start = ty_clock_ns();
    if (carry(b, &w, b->o->iterations, err) < 0)
        return -1;
    way->us = (double)(ty_clock_ns() - start) / 1e3 / b->o->iterations;
    if (b->o->check && check_results(b, &w, n, &wrong, err) < 0)
        return -1;
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

int ty_perf_run(ty_comm *comm, const ty_perf_carrier *carrier, const ty_perf_options *o,
                void (*tell)(void *ctx, const ty_perf_row *row), void *ctx, ty_error *err)
{
    const ty_perf_carrier host = {.ctx = comm,
                                  .alloc = host_alloc,
                                  .free = host_free,
                                  .put = host_put,
                                  .get = host_get,
                                  .run = host_run,
                                  .wait = host_wait,
                                  .exchanges_in_place = true};
    bench b = {.c = comm,
               .carrier = carrier ? carrier : &host,
               .o = o,
               .rank = ty_comm_rank(comm),
               .size = ty_comm_size(comm),
               .elem = (int64_t)ty_dtype_bytes(o->dtype)};
    size_t bytes = (size_t)o->max_bytes + 64;
    if (check_options(o, err) < 0)
        return -1;
    b.block = malloc((size_t)(2 * BLOCK_ELEMS * b.elem));
    int rc = b.block ? 0 : ty_error_set(err, TY_E_LIMIT, "perf: no memory for numbers to compare with");
    if (rc == 0)
        rc = b.carrier->alloc(b.carrier->ctx, bytes, &b.a, err);
    if (rc == 0)
        rc = b.carrier->alloc(b.carrier->ctx, bytes, &b.b, err);
    if (rc == 0)
        rc = run_sizes(&b, tell, ctx, err);
    b.carrier->free(b.carrier->ctx, b.a);
    b.carrier->free(b.carrier->ctx, b.b);
    free(b.block);
    return rc;
}
